//! From a dialog on a worker's screen to the moment at which the watcher has noticed it: by a hook, and by the screen
//! alone. Nothing presses a key by itself yet, so the last step of the budget (the key) is not in these figures.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a bench starts programs and reads clocks")]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

mod support;

use support::report::{Budget, Figure, head, row};
use support::server::Server;
use support::watcher::{Watcher, open_nexus, root};
use support::{median, pause, quantile, repository, sized};

/// Longest wait for the watcher.
const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until what a task has staged speaks of a window; how long that took.
fn until_staged(state: &Path, task: &str, window: &str) -> Duration {
    let start = Instant::now();
    let path = state.join(format!("scheduler-staging/{task}.out"));
    while !fs::read_to_string(&path).unwrap_or_default().contains(window) {
        assert!(start.elapsed() < PATIENCE, "{task} never spoke of {window}");
        pause(Duration::from_millis(5));
    }
    start.elapsed()
}

/// Has an agent's hook tell of a dialog.
fn hook(state: &Path, window: &str, pane: &str) {
    let payload = format!(
        r#"{{"hook_event_name":"PermissionRequest","session_id":"s","tool_name":"Bash","tool_use_id":"{window}","tool_input":{{"command":"touch {window}"}}}}"#
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_ng"));
    command.args(["hook", "PermissionRequest", "--window", window, "--state"]).arg(state);
    command.env_clear().env("TMUX_PANE", pane).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    child.wait().unwrap();
}

fn main() {
    let rounds = sized(12, 1);
    let mut server = Server::start();
    server.grow(2 * rounds);
    server.tmux(&["kill-window", "-t", "nexus:keeper"]);
    open_nexus(&server);
    let state = root(&server).join("monitor/.state");
    let _watcher = Watcher::start(&server);
    let dialog = fs::read_to_string(repository().join("tests/captures/claude-2.1.332/perm-bash--200x50.ansi")).unwrap();
    let shown = format!("\x1b[2J\x1b[H{}", dialog.trim_end_matches('\n').replace('\n', "\r\n"));
    let panes = server.panes();
    // Past what a start brings.
    pause(sized(Duration::from_secs(40), Duration::from_secs(3)));
    let (mut by_hook, mut by_screen) = (Vec::new(), Vec::new());
    for (nth, (pane, tty)) in panes.iter().enumerate() {
        let window = format!("w{nth}");
        let start = Instant::now();
        Server::draw(tty, &shown);
        if nth < rounds {
            hook(&state, &window, pane);
            until_staged(&state, "pending_decisions", &window);
            by_hook.push(start.elapsed());
            // Not in step with the watcher's own turns.
            pause(Duration::from_millis(137 * nth as u64 % 2000));
        } else if by_screen.len() < sized(4, 1) {
            until_staged(&state, "idle_section", &window);
            by_screen.push(start.elapsed());
            pause(Duration::from_millis(3700));
        }
    }
    head();
    let (hooked, screened) = (by_hook.len(), by_screen.len());
    let most = |ms| Budget::AtMost(Figure::Time(Duration::from_millis(ms)));
    let time = |values: &[Duration], share| Figure::Time(quantile(values, share));
    row(&format!("dialog to decision staged, by hook, p99 of {hooked}"), time(&by_hook, 0.99), None, most(1000));
    row("the same, median", Figure::Time(median(&by_hook)), None, Budget::Open);
    row(&format!("dialog to window reported, by screen, p99 of {screened}"), time(&by_screen, 0.99), None, most(2500));
    row("the same, median", Figure::Time(median(&by_screen)), None, Budget::Open);
}
