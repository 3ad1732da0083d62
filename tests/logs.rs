//! The service's log from outside: bounded, followed by `tail -F` under its old name, and no condition for watching.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;
#[path = "support/running.rs"]
mod running;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use fleet::{Fleet, PATIENCE};
use nexus_watcher::sys::clock::Clock;
use nexus_watcher::sys::log_file::{Limits, LogFile};
use running::Running;

#[test]
fn tail_follows_the_log_under_its_old_name_from_file_to_file() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { max_bytes: 2000, max_files: 3 };
    let mut log = LogFile::new(&dir.path().join("logs"), "watcher", limits, || Clock::System.now());
    std::os::unix::fs::symlink("logs/watcher.log", dir.path().join("watcher.log")).unwrap();
    let mut tail = Command::new("tail");
    tail.args(["-n", "+1", "-s", "0.05", "-F"]).arg(dir.path().join("watcher.log"));
    let mut tail = Running(tail.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let (sender, lines) = mpsc::channel();
    let output = BufReader::new(tail.0.stdout.take().unwrap());
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let see = |wanted: &str| while lines.recv_timeout(PATIENCE).expect(wanted) != wanted {};
    for round in 0..4 {
        let marker = format!("round {round}");
        log.write_all(format!("{marker}\n").as_bytes()).unwrap();
        see(&marker);
        // More than fills a file.
        for _ in 0..30 {
            log.write_all(format!("{}\n", "x".repeat(99)).as_bytes()).unwrap();
        }
    }
}

#[test]
fn a_log_that_cannot_be_written_is_told_elsewhere_and_comes_back() {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.watch();
    fleet.wait("the log", || fs::read_to_string(fleet.state("watcher.log")).is_ok_and(|text| text.contains("started")));
    fs::remove_dir_all(fleet.state("logs")).unwrap();
    fs::write(fleet.state("logs"), "a file in its place").unwrap();
    // Something that is logged.
    fleet.decide("keeper", "0a1b2c3d4e5f");
    fleet.wait("the news", || fleet.submitted("orchestrator").iter().any(|text| text.contains("0a1b2c3d4e5f")));
    let status = || fleet.ng(&["watcher-status"]);
    fleet.wait("the status to say so", || status().1.contains("degraded: log-unwritable since="));
    assert!(matches!(status().0, 0 | 1), "it watches all the same");
    fs::remove_file(fleet.state("logs")).unwrap();
    let number = std::cell::Cell::new(0);
    fleet.wait("the log to come back", || {
        number.set(number.get() + 1);
        fleet.decide("keeper", &format!("{:012x}", number.get()));
        !status().1.contains("log-unwritable") && fs::read_to_string(fleet.state("watcher.log")).is_ok()
    });
}

#[test]
fn a_failure_that_lasts_is_said_once_and_once_when_it_is_over() {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fs::create_dir_all(fleet.state("delivery")).unwrap();
    fs::write(fleet.state("delivery/locks"), "a file in its place").unwrap();
    fleet.decide("keeper", "0a1b2c3d4e5f");
    fleet.watch();
    let refused = || {
        let text = fs::read_to_string(fleet.state("paste-deferral/orchestrator")).unwrap_or_default();
        text.split_once('\t').map_or(0, |(count, _)| count.parse::<u32>().unwrap())
    };
    fleet.wait("several refusals", || refused() >= 4);
    let said = |what: &str| fs::read_to_string(fleet.state("watcher.log")).unwrap().matches(what).count();
    let over = "it works again topic=\"pane-lock\"";
    assert_eq!((said("the lock of the pane can't be taken"), said(over)), (1, 0));
    fs::remove_file(fleet.state("delivery/locks")).unwrap();
    fleet.wait("the news", || !fleet.submitted("orchestrator").is_empty());
    fleet.wait("the end to be said", || said("pane-lock") >= 2);
    assert_eq!((said("the lock of the pane can't be taken"), said(over)), (1, 1));
}
