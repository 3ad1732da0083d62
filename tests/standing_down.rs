//! A watcher that may not act, with an orchestrator that would take what it types: another host's watcher has taken over
//! while it stood still, at every step of a delivery; or it never had the instance lock.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use fleet::Fleet;

const SIGNAL: &str = "0a1b2c3d4e5f";

fn start(fault: &str) -> Fleet {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.decide("keeper", SIGNAL);
    fleet.env.push(("NEXUS_FAULT".into(), fault.into()));
    fleet
}

fn was_typed_into(fleet: &Fleet) -> bool {
    fleet.log("orchestrator").iter().any(|event| event["event"] == "read")
}

fn told(fleet: &Fleet) -> usize {
    fleet.submitted("orchestrator").iter().filter(|text| text.contains(SIGNAL)).count()
}

/// A step of a delivery, and whether something was typed by then.
const STEPS: &[(&str, bool)] = &[
    ("before-archive", false),
    ("before-journal", false),
    ("before-paste", false),
    ("after-paste", true),
    ("before-enter", true),
];

#[test]
fn one_that_stood_still_at_any_step_types_nothing_after_another_took_over() {
    std::thread::scope(|scope| {
        for (place, is_typed) in STEPS {
            scope.spawn(|| stand_still(place, *is_typed));
        }
    });
}

fn stand_still(place: &str, is_typed: bool) {
    let mut fleet = start(&format!("{place}=stop"));
    fleet.watch();
    fleet.wait_stopped();
    if is_typed {
        fleet.wait("the paste to arrive", || was_typed_into(&fleet));
    }
    // The successor runs on another host, where this lock does not reach.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let beacon = format!("host: elsewhere\npid: 7\nnonce: other\nepoch: {now}\n");
    let path = fleet.state("nexus-instance.heartbeat");
    fs::write(&path, &beacon).unwrap();
    fleet.resume_watcher();
    fleet.wait_ended(place);
    assert_eq!((was_typed_into(&fleet), told(&fleet)), (is_typed, 0), "{place}");
    assert_eq!(fs::read_to_string(&path).unwrap(), beacon, "{place}: the successor's beacon is left alone");
    if is_typed {
        // What stands in the box is for its successor to judge, by the journal.
        assert!(fleet.is_pending(), "{place}");
        return;
    }
    // The successor ends, and what was left is told once by whoever comes then.
    fs::remove_file(&path).unwrap();
    fleet.env.clear();
    fleet.watch();
    fleet.wait_settled(place, || told(&fleet) > 0);
    assert_eq!(told(&fleet), 1, "{place}");
}

#[test]
fn without_the_lock_nothing_is_told_until_it_can_be_had() {
    let mut fleet = start("");
    let (lock, precious) = (fleet.state("nexus-instance.lock"), fleet.root().join("precious"));
    fs::write(&precious, "text").unwrap();
    std::os::unix::fs::symlink(&precious, &lock).unwrap();
    fleet.tmux(&["new-window", "-d", "-n", "ringer", "printf '\\a'; sleep 100000"]);
    fleet.wait("the bell", || fleet_bell(&fleet) == "1");
    fleet.watch();
    let log = || fs::read_to_string(fleet.state("logs/watcher.log")).unwrap_or_default();
    fleet.wait("the news to be found", || log().contains("which a watcher without the instance lock can't"));
    let before = fleet.cpu_switches();
    fleet.wait("the loop to go on", || fleet.cpu_switches() > before + 20);
    assert!(!was_typed_into(&fleet) && told(&fleet) == 0);
    assert_eq!(fleet_bell(&fleet), "1", "the bell still stands");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
    let names = fs::read_dir(fleet.state("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let written: Vec<_> = names.filter(|name| name.starts_with("watcher") || name.ends_with(".heartbeat")).collect();
    let claims: Vec<_> =
        written.iter().filter(|name| !["watcher-observing", "watcher.log"].contains(&name.as_str())).collect();
    assert!(claims.is_empty() && fleet.state("watcher-observing").exists(), "nothing claims the instance: {claims:?}");
    for name in ["diffs", "emits.jsonl", "delivery", "scheduler-staging", "last-snapshot.txt", "config-in-force.json"] {
        assert!(!fleet.state(name).exists(), "{name}");
    }

    fs::remove_file(&lock).unwrap();
    fleet.wait_settled("the news", || told(&fleet) > 0);
    assert_eq!(told(&fleet), 1);
    fleet.wait("the told bell to be cleared", || fleet_bell(&fleet) == "0");
    let (code, status) = fleet.ng(&["watcher-status"]);
    assert!(matches!(code, 0 | 1) && status.contains("instance-lock: held"), "{status}");
}

fn fleet_bell(fleet: &Fleet) -> String {
    fleet.tmux(&["display-message", "-p", "-t", &fleet.window("ringer"), "#{window_bell_flag}"])
}
