//! A restless orchestrator: dialogs, drafts, copy mode and deaths of the pane at any moment, while news come in. A short
//! run by default; `scripts/soak.sh` runs it long.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use std::collections::BTreeMap;
use std::time::Duration;

use fleet::Fleet;

const DRAFT: &str = "delete everything";

/// Numbers that look random and are the same at each run with the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// One disturbance, and what undoes it a little later.
fn disturb(fleet: &Fleet, dice: &mut Dice) {
    let window = fleet.window("orchestrator");
    let pause = |dice: &mut Dice| std::thread::sleep(Duration::from_millis(dice.roll(120)));
    pause(dice);
    match dice.roll(5) {
        0 | 1 => {
            let kind = ["permission", "ask", "plan"][usize::try_from(dice.roll(3)).unwrap()];
            fleet.tell("orchestrator", &format!("dialog {kind}"));
            pause(dice);
            fleet.tell("orchestrator", "close");
        }
        2 => {
            fleet.tmux(&["send-keys", "-t", &window, "-l", DRAFT]);
            pause(dice);
            fleet.tell("orchestrator", "draft ");
        }
        3 => {
            fleet.tmux(&["copy-mode", "-t", &window]);
            pause(dice);
            fleet.tmux(&["copy-mode", "-q", "-t", &window]);
        }
        _ => {
            fleet.tell("orchestrator", "exit 3");
            fleet.wait("the pane to die", || fleet.tmux(&["list-panes", "-t", &window, "-F", "#{pane_dead}"]) == "1");
            pause(dice);
            fleet.tmux(&["respawn-pane", "-t", &window]);
            // Its own drawing, not that of the one that died.
            fleet.wait("the agent to be back", || {
                let screen = fleet.screen("orchestrator");
                screen.contains('\u{276f}') && !screen.contains("Pane is dead")
            });
        }
    }
}

#[test]
fn a_restless_orchestrator_is_told_everything_once_and_nothing_is_typed_for_anybody() {
    let rounds = number("NEXUS_SOAK_ROUNDS", 6);
    let seed = number("NEXUS_SOAK_SEED", 1);
    let mut dice = Dice(seed);
    let mut fleet = Fleet::new();
    fleet.configure("monitor:\n  interval_seconds: 1\n  paste_confirm_timeout_seconds: 5\n");
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    let window = fleet.window("orchestrator");
    fleet.tmux(&["set-option", "-w", "-t", &window, "remain-on-exit", "on"]);
    fleet.watch();
    let news: Vec<String> = (0..rounds).map(|round| format!("{round:06x}abcdef")).collect();
    for fingerprint in &news {
        fleet.decide("keeper", fingerprint);
        for _ in 0..5 {
            disturb(&fleet, &mut dice);
        }
        assert!(fleet.server_lives() && fleet.watcher_lives(), "seed {seed}");
    }
    let told = || {
        let texts = fleet.submitted("orchestrator");
        let of =
            |fingerprint: &String| texts.iter().filter(|text| text.contains(fingerprint)).cloned().collect::<Vec<_>>();
        news.iter().map(|fingerprint| (fingerprint.clone(), of(fingerprint))).collect::<BTreeMap<_, _>>()
    };
    let mut cleared = false;
    fleet.wait_settled(&format!("everything to be told, seed {seed}"), || {
        // A fold that can't be proven ours waits for a person.
        let stuck = |emit: &serde_json::Value| emit["detail"].as_str().is_some_and(|why| why.starts_with("unproven"));
        if !cleared && fleet.emits().last().is_some_and(stuck) {
            cleared = true;
            fleet.tell("orchestrator", "draft ");
        }
        told().values().all(|texts| !texts.is_empty())
    });
    for (fingerprint, texts) in told() {
        let untold = texts.iter().skip(1).filter(|text| !text.contains("repeat of")).count();
        assert_eq!(untold, 0, "seed {seed}: {fingerprint}: {texts:#?}");
    }
    for event in fleet.log("orchestrator") {
        assert_ne!(event["event"], "answer", "seed {seed}: {event}");
    }
    for text in fleet.submitted("orchestrator") {
        assert!(!text.contains(DRAFT), "seed {seed}: {text}");
    }
}
