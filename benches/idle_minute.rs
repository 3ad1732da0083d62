//! What a minute costs in which nothing happens: the real watcher over a fleet of quiet agents, each with a heartbeat of
//! its hooks, and an action log of 8 MB.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::time::Duration;

mod support;

use support::report::{Budget, Figure, head, row};
use support::server::Server;
use support::watcher::{Watcher, fill_state, open_nexus, system_calls};
use support::{process, sized, spare};

const QUIET: Duration = Duration::from_millis(3);

fn main() {
    let panes = sized(200, 20);
    let minute = sized(Duration::from_secs(60), Duration::from_secs(8));
    let mut server = Server::start();
    server.grow(panes);
    server.tmux(&["kill-window", "-t", "nexus:keeper"]);
    open_nexus(&server);
    fill_state(&server, panes);
    head();
    let alone = spare(|| process::cpu(server.pid), sized(Duration::from_secs(20), Duration::from_secs(2)));
    let watcher = Watcher::start(&server);
    // Past the first emit and everything else that a start brings.
    support::pause(sized(Duration::from_secs(45), Duration::from_secs(5)));
    let cost = watcher.spend(minute);
    let total = cost.watcher + cost.client + cost.server.saturating_sub(alone);
    let base = Some(("the server when nobody watches", Figure::PerSecond(alone)));
    row(
        &format!("{panes} quiet panes: watcher, control client and what they cause in the server"),
        Figure::PerSecond(total),
        base,
        Budget::AtMost(Figure::PerSecond(QUIET)),
    );
    row("of it the watcher", Figure::PerSecond(cost.watcher), None, Budget::Open);
    row("of it the control client", Figure::PerSecond(cost.client), None, Budget::Open);
    let started = Figure::Count(cost.started);
    row(&format!("processes started in {} s", minute.as_secs()), started, None, Budget::AtMost(Figure::Count(0)));
    match system_calls(&watcher, sized(Duration::from_secs(30), Duration::from_secs(2)), &server.path("strace")) {
        Some(count) => row("system calls of the watcher a second", Figure::Count(count), None, Budget::Open),
        None => println!("| system calls of the watcher a second | not measured: strace is missing | | | | |"),
    }
}
