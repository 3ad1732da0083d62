//! The watcher where nobody is: no terminal, no home, no locale, no open standard streams, or streams that take nothing.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use std::fs;

use fleet::Fleet;
use rustix::process::Signal;

const NEWS: &str = "0a1b2c3d4e5f";

/// Starts it by this line of shell and sees that it tells.
fn check(line: &str) -> Fleet {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.decide("keeper", NEWS);
    fleet.watch_by(line);
    fleet.wait(line, || fleet.submitted("orchestrator").iter().any(|text| text.contains(NEWS)));
    assert!(fleet.watcher_lives(), "{line}");
    fleet
}

#[test]
fn closed_streams_and_no_home_are_no_hindrance_and_no_file_takes_a_stray_line() {
    let mut fleet = check("exec \"$0\" <&- >&- 2>&-");
    // What is written to the closed streams must not end up in the file that was opened in their place.
    let lock = fs::read_to_string(fleet.state("nexus-instance.lock")).unwrap();
    assert!(lock.lines().all(|line| line.contains(": ") || line.ends_with(':')), "{lock}");
    assert_eq!(fs::read_dir(fleet.root().join("home")).unwrap().count(), 0, "nothing is written to a home");
    fleet.signal_watcher(Signal::TERM);
    fleet.wait_ended("told to end");
}

#[test]
fn streams_that_take_nothing_are_no_hindrance() {
    let mut fleet = check("exec \"$0\" </dev/null >/dev/full 2>/dev/full");
    fleet.signal_watcher(Signal::TERM);
    fleet.wait_ended("told to end");
}

#[test]
fn a_terminal_that_hangs_up_is_no_end() {
    // A session of its own, whose leader goes: what a logout does to what the launcher started.
    let fleet = check("exec setsid sh -c 'exec \"$0\" </dev/null >/dev/null 2>&1' \"$0\"");
    fleet.signal_watcher(Signal::HUP);
    fleet.decide("keeper", "00000000000a");
    fleet.wait("the news", || fleet.submitted("orchestrator").iter().any(|text| text.contains("00000000000a")));
    assert!(fleet.watcher_lives());
}
