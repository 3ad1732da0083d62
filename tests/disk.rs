//! The state directory full, gone or full of traps: the watcher lives, types nothing that it could not journal, and
//! goes on by itself.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use std::fs;

use fleet::Fleet;
use rustix::process::{Pid, Resource, Rlimit, Signal};

const SIGNAL: &str = "0a1b2c3d4e5f";
const LATER: &str = "00000000000a";

fn told(fleet: &Fleet, fingerprint: &str) -> usize {
    fleet.submitted("orchestrator").iter().filter(|text| text.contains(fingerprint)).count()
}

fn start(fault: &str) -> Fleet {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.decide("keeper", SIGNAL);
    fleet.env.push(("NEXUS_FAULT".into(), fault.into()));
    fleet.watch();
    fleet
}

/// Lets the watcher write no byte into any file, as on a full disk, or lets it again.
fn set_full(fleet: &Fleet, full: bool) {
    let pid = Pid::from_raw(i32::try_from(fleet.watcher_pid()).unwrap()).unwrap();
    let limit = Rlimit { current: full.then_some(0), maximum: None };
    rustix::process::prlimit(Some(pid), Resource::Fsize, limit).unwrap();
}

/// Waits until the watcher has gone around its loop some more.
fn wait_cycles(fleet: &Fleet) {
    let ticks = || fleet.cpu_switches();
    let before = ticks();
    fleet.wait("the watcher to go on", || ticks() > before + 20);
}

#[test]
fn on_a_full_disk_nothing_is_typed_and_it_goes_on_when_there_is_space() {
    for place in ["before-archive", "before-journal", "after-journal"] {
        let fleet = start(&format!("{place}=stop"));
        fleet.wait_stopped();
        set_full(&fleet, true);
        fleet.resume_watcher();
        wait_cycles(&fleet);
        assert!(fleet.watcher_lives(), "{place}");
        assert!(fleet.log("orchestrator").iter().all(|event| event["event"] != "read"), "{place}: a byte was typed");
        set_full(&fleet, false);
        fleet.wait_settled(place, || told(&fleet, SIGNAL) > 0);
        assert_eq!(told(&fleet, SIGNAL), 1, "{place}");
    }
}

#[test]
fn a_disk_that_fills_up_after_the_paste_does_not_make_it_tell_twice() {
    for place in ["after-paste", "before-proof", "between-commits"] {
        let fleet = start(&format!("{place}=stop"));
        fleet.wait_stopped();
        set_full(&fleet, true);
        fleet.resume_watcher();
        fleet.wait(place, || told(&fleet, SIGNAL) > 0);
        wait_cycles(&fleet);
        assert!(fleet.watcher_lives(), "{place}");
        set_full(&fleet, false);
        fleet.decide("keeper", LATER);
        fleet.wait_settled(place, || told(&fleet, LATER) > 0);
        assert_eq!((told(&fleet, SIGNAL), told(&fleet, LATER)), (1, 1), "{place}");
    }
}

#[test]
fn with_its_state_directory_removed_it_stays_the_only_watcher_and_goes_on_telling() {
    let fleet = start("");
    fleet.wait_settled("the first", || told(&fleet, SIGNAL) > 0);
    // It goes first: with its cooldown gone while it is still to be told, it would rightly be told again.
    fs::remove_file(fleet.state(&format!("decisions/keeper.{SIGNAL}.json"))).unwrap();
    fleet.wait("the decision to be off the list", || {
        let staged = fs::read_to_string(fleet.state("scheduler-staging/pending_decisions.out"));
        staged.is_ok_and(|text| !text.contains(SIGNAL))
    });
    // It goes on writing meanwhile.
    fleet.wait("the removal", || fs::remove_dir_all(fleet.state("")).is_ok());
    fleet.wait("the lock to be taken again", || fleet.state("watcher.pid").exists());
    let (code, text) = fleet.run_watcher(&[]);
    assert_eq!(code, 4, "a second watcher started: {text}");
    fleet.decide("keeper", LATER);
    fleet.wait("the news", || told(&fleet, LATER) > 0);
    assert_eq!((told(&fleet, SIGNAL), told(&fleet, LATER)), (1, 1));
}

#[test]
fn a_watcher_whose_state_directory_was_taken_over_stands_down() {
    let mut fleet = start("before-archive=stop");
    fleet.wait_stopped();
    fs::remove_dir_all(fleet.state("")).unwrap();
    let second = fleet.spawn_watcher();
    fleet.resume_watcher();
    fleet.wait_ended("the first");
    fleet.adopt_watcher(second);
    fleet.decide("keeper", LATER);
    fleet.wait("the news", || told(&fleet, LATER) > 0);
    assert_eq!(told(&fleet, LATER), 1);
}

#[test]
fn traps_among_its_files_neither_hold_it_up_nor_leak() {
    let fleet = start("");
    fleet.wait_settled("the first", || told(&fleet, SIGNAL) > 0);
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    for path in
        ["decisions/keeper.aaaaaaaaaaa1.json", "heartbeats/keeper.json", "action-log.jsonl", "emit-receipts/x.json"]
    {
        fs::create_dir_all(fleet.state(path).parent().unwrap()).unwrap();
        let _absent = fs::remove_file(fleet.state(path));
        rustix::fs::mkfifoat(rustix::fs::CWD, fleet.state(path), mode).unwrap();
    }
    for (number, to) in ["/dev/zero", "/dev/tty", "/etc/passwd", "/nowhere", "."].iter().enumerate() {
        let path = fleet.state(&format!("decisions/keeper.aaaaaaaaaab{number}.json"));
        std::os::unix::fs::symlink(to, path).unwrap();
    }
    fs::write(fleet.state("decisions/keeper.aaaaaaaaaac1.json"), vec![b' '; 50 << 20]).unwrap();
    let mut garbage = fs::read(fleet.state("emits.jsonl")).unwrap();
    garbage.extend(b"\xff\xfe{not json\n".repeat(6 << 20));
    fs::write(fleet.state("emits.jsonl"), garbage).unwrap();
    fleet.decide("keeper", LATER);
    fleet.wait("the news", || told(&fleet, LATER) > 0);
    assert!(fleet.submitted("orchestrator").iter().all(|text| !text.contains("root:")), "a file leaked");
    assert_eq!((told(&fleet, SIGNAL), told(&fleet, LATER)), (1, 1));
}

#[test]
fn thousands_of_decisions_are_told_without_a_standstill() {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    for number in 0..5000 {
        fleet.decide("keeper", &format!("{number:012x}"));
    }
    fleet.watch();
    fleet.wait("the news", || !fleet.submitted("orchestrator").is_empty());
    fleet.signal_watcher(Signal::TERM);
    fleet.wait_ended("thousands");
}
