//! The world changed between two steps of a delivery: the watcher is stopped at a step, something happens, and it goes
//! on. What counts is what the receiver got: nothing that was not ours is ever sent, no dialog is ever answered.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/at_once.rs"]
mod at_once;
#[path = "support/fleet.rs"]
mod fleet;

use at_once::all_at_once;
use fleet::Fleet;

const SIGNAL: &str = "0a1b2c3d4e5f";
const DRAFT: &str = "delete everything";
const STEPS: [&str; 5] = ["before-paste", "before-act", "after-paste", "before-enter", "after-enter"];

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

/// Changes the world at every step, and again after the watcher has seen it; what is submitted anywhere is ours, and is
/// told once.
fn check_world(what: &str, change: impl Fn(&Fleet) + Sync, back: impl Fn(&Fleet) + Sync) {
    all_at_once(STEPS.to_vec(), |place| {
        let what = format!("{what} at {place}");
        let fleet = stopped_at(place, "--no-collapse");
        change(&fleet);
        fleet.resume_watcher();
        wait_outcome(&fleet, &what);
        back(&fleet);
        wait_told(&fleet, &what);
        assert!(fleet.server_lives(), "{what}");
        assert_told_once(&fleet, &what);
        for other in ["orchestrator2", "bystander"] {
            assert!(fleet.submitted(other).is_empty(), "{what}: {:?}", fleet.submitted(other));
        }
    });
}

/// Opens another agent that must get nothing.
fn bystander(fleet: &Fleet, name: &str) {
    fleet.agent(name, "");
}

#[test]
fn a_window_that_is_renamed_moved_or_linked_gets_nothing_wrong() {
    check_world(
        "renamed",
        |fleet| {
            let window = fleet.window("orchestrator");
            fleet.tmux(&["rename-window", "-t", &window, "away"]);
        },
        |fleet| {
            let window = fleet.window("away");
            fleet.tmux(&["rename-window", "-t", &window, "orchestrator"]);
        },
    );
    check_world(
        "moved",
        |fleet| {
            let window = fleet.window("orchestrator");
            fleet.tmux(&["move-window", "-s", &window, "-t", "nexus:7"]);
        },
        |_| {},
    );
    check_world(
        "linked",
        |fleet| {
            let window = fleet.window("orchestrator");
            fleet.tmux(&["new-session", "-d", "-s", "second", "sleep 100000"]);
            fleet.tmux(&["link-window", "-s", &window, "-t", "second:"]);
        },
        |_| {},
    );
}

#[test]
fn a_second_window_of_the_name_or_another_agent_in_its_place_gets_nothing() {
    check_world(
        "another agent takes the name",
        |fleet| {
            let window = fleet.window("orchestrator");
            bystander(fleet, "bystander");
            let other = fleet.window("bystander");
            fleet.tmux(&["rename-window", "-t", &window, "away"]);
            fleet.tmux(&["rename-window", "-t", &other, "orchestrator"]);
        },
        |fleet| {
            let other = fleet.window("orchestrator");
            let window = fleet.window("away");
            fleet.tmux(&["kill-window", "-t", &other]);
            fleet.tmux(&["rename-window", "-t", &window, "orchestrator"]);
        },
    );
    check_world(
        "split",
        |fleet| {
            let window = fleet.window("orchestrator");
            fleet.tmux(&["split-window", "-d", "-t", &window, "sleep 100000"]);
        },
        |_| {},
    );
}

#[test]
fn a_window_that_is_replaced_gets_the_news_once() {
    let replace = |fleet: &Fleet| {
        let window = fleet.window("orchestrator");
        fleet.tmux(&["kill-window", "-t", &window]);
        fleet.wait("the window to go", || !fleet.has_window("orchestrator"));
        fleet.orchestrator(&fleet.hooks("orchestrator"));
    };
    check_world("replaced", replace, |_| {});
}

#[test]
fn a_server_that_is_killed_and_started_again_gets_the_news_once() {
    let restart = |fleet: &Fleet| {
        fleet.tmux(&["kill-server"]);
        fleet.wait("the server to end", || !fleet.server_lives());
        fleet.start_server();
        fleet.orchestrator(&fleet.hooks("orchestrator"));
    };
    check_world("server restarted", restart, |_| {});
}

#[test]
fn a_server_that_hangs_in_the_middle_gets_the_news_once() {
    check_world(
        "hung server",
        |fleet| {
            let pid = fleet.tmux(&["display-message", "-p", "#{pid}"]).parse().unwrap();
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
            // It wakes after every deadline of the watcher's has passed; the time is what is tested.
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_secs(10));
                rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
            });
        },
        |_| {},
    );
}

#[test]
fn told_to_end_in_the_middle_it_ends_soon_and_the_next_one_tells_once() {
    all_at_once(STEPS.to_vec(), |place| {
        let mut fleet = stopped_at(place, "--no-collapse --drop-enter 1");
        fleet.signal_watcher(rustix::process::Signal::TERM);
        let start = std::time::Instant::now();
        fleet.resume_watcher();
        fleet.wait_ended(place);
        assert!(start.elapsed() < std::time::Duration::from_secs(5), "{place}: {:?}", start.elapsed());
        for left in ["watcher.pid", "monitor.pid"] {
            assert!(!fleet.state(left).exists(), "{place}: {left} is left");
        }
        fleet.wait(place, || fleet.tmux(&["list-clients"]).is_empty());
        fleet.env.clear();
        fleet.watch();
        wait_told(&fleet, place);
        assert_told_once(&fleet, place);
    });
}
