//! The watcher killed, stopped and told to end at every step of a delivery, with the receiver's own log as the truth:
//! each signal is told, and told twice only where a `repeat of` header says so.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/at_once.rs"]
mod at_once;
#[path = "support/fleet.rs"]
mod fleet;

use at_once::all_at_once;
use fleet::Fleet;
use nexus_watcher::sys::fault::PLACES;

const SIGNAL: &str = "0a1b2c3d4e5f";
const OTHER: &str = "00000000000a";

/// Where a kill leaves our text unsent in the box before its fold was written down.
const UNPROVEN_FOLD: [&str; 3] = ["after-act", "after-paste", "before-fold"];

/// The texts that told of a signal.
fn told(fleet: &Fleet, fingerprint: &str) -> Vec<String> {
    fleet.submitted("orchestrator").into_iter().filter(|text| text.contains(fingerprint)).collect()
}

/// Asserts that each signal was told, and again only as a repetition that says so.
fn assert_told_once(fleet: &Fleet, what: &str) {
    for fingerprint in [SIGNAL, OTHER] {
        let texts = told(fleet, fingerprint);
        assert!(!texts.is_empty(), "{what}: {fingerprint} was lost");
        for again in texts.iter().skip(1) {
            assert!(again.contains("repeat of"), "{what}: {fingerprint} was told {} times: {texts:#?}", texts.len());
        }
    }
}

/// A fleet with two signals to tell and a fault in wait.
fn fleet(fault: &str, switches: &str) -> Fleet {
    let mut fleet = Fleet::new();
    let transcript = fleet.root().join("session.jsonl");
    fleet.orchestrator(&format!("{} --transcript {} {switches}", fleet.hooks("orchestrator"), transcript.display()));
    fleet.decide("keeper", SIGNAL);
    fleet.decide("keeper", OTHER);
    fleet.env.push(("NEXUS_FAULT".into(), fault.into()));
    fleet.watch();
    fleet
}

/// Kills the watcher at a place and checks what the orchestrator got in the end.
fn check_killed(place: &str, switches: &str) {
    let what = format!("killed {place} with {switches:?}");
    let mut fleet = fleet(place, switches);
    fleet.wait_watcher_killed(&what);
    fleet.env.clear();
    fleet.watch();
    if switches.is_empty() && UNPROVEN_FOLD.contains(&place) {
        // A fold that nobody wrote down can't be proven ours: it waits for a person, and says so.
        fleet.wait_emit(&what, |emit| {
            emit["outcome"] == "unknown" && emit["detail"].as_str().is_some_and(|why| why.starts_with("unproven-text"))
        });
        assert!(told(&fleet, SIGNAL).is_empty(), "{what}");
        let alerts = std::fs::read_to_string(fleet.state("watcher-alerts.log")).unwrap();
        assert_eq!(alerts.matches("ALERT watcher unproven-text").count(), 1, "{what}: {alerts}");
        fleet.tmux(&["send-keys", "-t", &fleet.window("orchestrator"), "Enter"]);
    }
    fleet.wait_settled(&what, || [SIGNAL, OTHER].iter().all(|signal| !told(&fleet, signal).is_empty()));
    assert_told_once(&fleet, &what);
    assert_eq!(told(&fleet, SIGNAL).len(), 1, "{what}: the witnesses were there");
}

#[test]
fn killed_at_any_step_it_tells_each_signal_once() {
    let places = PLACES.iter().filter(|place| !place.ends_with("-repeat"));
    // Only a folded paste has a fold to write down.
    let is_passed = |(place, switches): &(&str, &str)| switches.is_empty() || !place.ends_with("-fold");
    let cases = places.flat_map(|place| [(*place, "--no-collapse"), (*place, "")]).filter(is_passed).collect();
    all_at_once(cases, |(place, switches)| check_killed(place, switches));
}

#[test]
fn killed_around_a_repetition_it_still_says_what_it_repeats() {
    for place in ["before-repeat", "after-repeat"] {
        // No witness counts, so the first delivery stays open and its news are told again.
        let mut fleet = Fleet::new();
        fleet.configure(
            "monitor:\n  interval_seconds: 1\n  paste_confirm_timeout_seconds: 5\n  paste:\n    witnesses: [transcript]\n",
        );
        fleet.orchestrator("");
        fleet.decide("keeper", SIGNAL);
        fleet.decide("keeper", OTHER);
        fleet.env.push(("NEXUS_FAULT".into(), place.into()));
        fleet.watch();
        fleet.wait_watcher_killed(place);
        fleet.kill_watcher();
        fleet.env.clear();
        fleet.watch();
        fleet.wait(place, || told(&fleet, SIGNAL).len() >= 2);
        assert_told_once(&fleet, place);
    }
}

#[test]
fn a_damaged_or_missing_journal_does_not_hide_a_repetition() {
    for damage in ["garbage", "gone", "pipe"] {
        let mut fleet = fleet("before-proof", "");
        fleet.wait_watcher_killed(damage);
        fleet.kill_watcher();
        let journal = fleet.state("delivery/pending.json");
        std::fs::remove_file(&journal).unwrap();
        match damage {
            "garbage" => std::fs::write(&journal, "{\"signature\":").unwrap(),
            "pipe" => rustix::fs::mkfifoat(rustix::fs::CWD, &journal, rustix::fs::Mode::RUSR).unwrap(),
            _ => {}
        }
        fleet.env.clear();
        fleet.watch();
        fleet.wait(damage, || told(&fleet, SIGNAL).len() == 2);
        assert_told_once(&fleet, damage);
    }
}
