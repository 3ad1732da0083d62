//! What the watcher and its control client hold in memory over a fleet in which some panes always change, and whether
//! it grows.

use std::time::Duration;

mod support;

use support::bare::Bare;
use support::report::{Budget, Figure, head, row};
use support::server::Server;
use support::watcher::{Watcher, fill_state, open_nexus};
use support::{Stopwatch, pause, process, sized};

const WATCHER: u64 = 15_000_000;
const CLIENT: u64 = 4_000_000;
/// Growth that counts as none: an allocator's page runs.
const FLAT: u64 = 500_000;

/// Lets time pass in which every twentieth pane changes each second.
fn live(server: &Server, time: Duration) {
    let panes = server.panes();
    let start = Stopwatch::start();
    let mut round = 0;
    while start.elapsed() < time {
        for (_, tty) in panes.iter().step_by(20) {
            Server::draw(tty, &format!("\r\x1b[1A{round} more\x1b[1B\r"));
        }
        round += 1;
        pause(Duration::from_secs(1));
    }
}

fn main() {
    let panes = sized(200, 20);
    let mut server = Server::start();
    server.grow(panes);
    server.tmux(&["kill-window", "-t", "nexus:keeper"]);
    open_nexus(&server);
    fill_state(&server, panes);
    head();
    let bare = Bare::attach(&server);
    let watcher = Watcher::start(&server);
    live(&server, sized(Duration::from_secs(75), Duration::from_secs(5)));
    let early = process::resident(watcher.pid());
    live(&server, sized(Duration::from_secs(120), Duration::from_secs(5)));
    let late = process::resident(watcher.pid());
    row(
        &format!("{panes} panes, 5 % always changing, log of 8 MB: the watcher"),
        Figure::Bytes(late),
        None,
        Budget::AtMost(Figure::Bytes(WATCHER)),
    );
    let plain = Some(("a bare control client", Figure::Bytes(process::resident(bare.pid()))));
    let client = Figure::Bytes(process::resident(watcher.client()));
    row("its control client", client, plain, Budget::AtMost(Figure::Bytes(CLIENT)));
    let growth = Figure::Bytes(late.saturating_sub(early));
    row("growth of the watcher in two more minutes", growth, None, Budget::AtMost(Figure::Bytes(FLAT)));
}
