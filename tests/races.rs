//! The world changed between two steps of a delivery: the watcher is stopped at a step, something happens, and it goes
//! on. What counts is what the receiver got: nothing that was not ours is ever sent, no dialog is ever answered.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use fleet::Fleet;

const SIGNAL: &str = "0a1b2c3d4e5f";
const DRAFT: &str = "delete everything";
const STEPS: [&str; 4] = ["before-paste", "after-paste", "before-enter", "after-enter"];

fn told(fleet: &Fleet) -> Vec<String> {
    fleet.submitted("orchestrator").into_iter().filter(|text| text.contains(SIGNAL)).collect()
}

/// Asserts that the signal was told, and again only as a repetition that says so.
fn assert_told_once(fleet: &Fleet, what: &str) {
    let texts = told(fleet);
    assert!(!texts.is_empty(), "{what}: lost");
    assert!(texts.iter().skip(1).all(|text| text.contains("repeat of")), "{what}: {texts:#?}");
}

/// A fleet whose watcher is stopped at a step of its first delivery.
fn stopped_at(place: &str, switches: &str) -> Fleet {
    let mut fleet = Fleet::new();
    fleet.configure("monitor:\n  interval_seconds: 1\n  paste_confirm_timeout_seconds: 5\n");
    let transcript = fleet.root().join("session.jsonl");
    fleet.orchestrator(&format!("{} --transcript {} {switches}", fleet.hooks("orchestrator"), transcript.display()));
    fleet.decide("keeper", SIGNAL);
    fleet.env.push(("NEXUS_FAULT".into(), format!("{place}=stop")));
    fleet.watch();
    fleet.wait_stopped();
    fleet
}

fn press(fleet: &Fleet, keys: &[&str]) {
    let window = fleet.window("orchestrator");
    fleet.tmux(&[&["send-keys", "-t", window.as_str()], keys].concat());
}

/// Waits until the watcher has said what became of its first emit.
fn wait_outcome(fleet: &Fleet, what: &str) {
    fleet.wait_emit(what, |emit| !matches!(emit["outcome"].as_str(), Some("composed" | "in-flight")));
}

/// Waits until the signal is told and settled. A bare fold that may not be ours waits for a person, who sends it.
fn wait_told(fleet: &Fleet, what: &str) {
    let mut sent = false;
    fleet.wait(what, || {
        let unproven = |emit: &serde_json::Value| {
            emit["outcome"] == "unknown" && emit["detail"].as_str().is_some_and(|why| why.starts_with("unproven-text"))
        };
        if !sent && fleet.emits().iter().any(unproven) {
            sent = true;
            press(fleet, &["Enter"]);
        }
        !told(fleet).is_empty() && !fleet.is_pending()
    });
}

/// Runs checks a few at a time: each mostly waits.
fn all_at_once<T: Send>(cases: Vec<T>, check: impl Fn(T) + Sync) {
    let cases = std::sync::Mutex::new(cases);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(case) = cases.lock().unwrap().pop() else { return };
                    check(case);
                }
            });
        }
    });
}

/// Every step, with a text that shows whole in the box and with one that folds.
fn steps() -> Vec<(&'static str, &'static str)> {
    STEPS.iter().flat_map(|step| [(*step, "--no-collapse"), (*step, "")]).collect()
}

#[test]
fn a_dialog_that_opens_between_two_steps_is_never_answered() {
    all_at_once(steps(), |(place, switches)| {
        let what = format!("a dialog at {place} with {switches:?}");
        let fleet = stopped_at(place, switches);
        fleet.tell("orchestrator", "dialog permission");
        fleet.wait(&what, || fleet.screen("orchestrator").contains("1. Yes"));
        fleet.resume_watcher();
        wait_outcome(&fleet, &what);
        let answers = || fleet.log("orchestrator").iter().filter(|event| event["event"] == "answer").count();
        assert_eq!(answers(), 0, "{what}");
        fleet.tell("orchestrator", "close");
        wait_told(&fleet, &what);
        assert_eq!(answers(), 0, "{what}");
        assert_told_once(&fleet, &what);
    });
}

#[test]
fn a_draft_typed_between_two_steps_is_never_sent() {
    all_at_once(steps(), |(place, switches)| {
        let what = format!("a draft at {place} with {switches:?}");
        let fleet = stopped_at(place, switches);
        press(&fleet, &["-l", DRAFT]);
        fleet.wait(&what, || fleet.screen("orchestrator").contains(DRAFT));
        fleet.resume_watcher();
        wait_outcome(&fleet, &what);
        let sent = || fleet.submitted("orchestrator").iter().any(|text| text.contains(DRAFT));
        assert!(!sent(), "{what}: {:#?}", fleet.submitted("orchestrator"));
        fleet.tell("orchestrator", "draft ");
        wait_told(&fleet, &what);
        assert!(!sent(), "{what}: {:#?}", fleet.submitted("orchestrator"));
        assert_told_once(&fleet, &what);
    });
}

#[test]
fn copy_mode_opened_between_two_steps_takes_no_key() {
    all_at_once(steps(), |(place, switches)| {
        let what = format!("copy mode at {place} with {switches:?}");
        let fleet = stopped_at(place, switches);
        let window = fleet.window("orchestrator");
        fleet.tmux(&["copy-mode", "-t", &window]);
        fleet.resume_watcher();
        wait_outcome(&fleet, &what);
        let in_mode = || fleet.tmux(&["display-message", "-p", "-t", &window, "#{pane_in_mode}"]) == "1";
        assert!(in_mode(), "{what}: a key ended it");
        fleet.tmux(&["send-keys", "-t", &window, "-X", "cancel"]);
        wait_told(&fleet, &what);
        assert_told_once(&fleet, &what);
    });
}
