//! Delivery into small, resized and bare terminals, and from a watcher without a locale: still typed and proven.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
#[expect(dead_code, reason = "each test uses its part of the fleet")]
mod fleet;

use fleet::Fleet;

const FINGERPRINT: &str = "0a1b2c3d4e5f";

/// Makes the window of the orchestrator this large.
fn resize(fleet: &Fleet, columns: u16, rows: u16) {
    let window = fleet.window("orchestrator");
    fleet.tmux(&["resize-window", "-t", &window, "-x", &columns.to_string(), "-y", &rows.to_string()]);
    fleet.wait("the agent to draw anew", || fleet.screen("orchestrator").contains('\u{276f}'));
}

/// Asserts that the decision is told once, whole, and that the emit is proven.
fn check_told(fleet: &Fleet, what: &str) {
    let emit = fleet.wait_emit(&format!("a proven emit: {what}"), |emit| emit["received"] == true);
    let nonce = emit["nonce"].as_str().unwrap();
    let submitted = fleet.submitted("orchestrator");
    let told: Vec<&String> = submitted.iter().filter(|text| text.contains(FINGERPRINT)).collect();
    assert_eq!(told.len(), 1, "{what}: {submitted:#?}");
    assert!(told[0].trim_end().ends_with(&format!("{nonce} ---")), "{what}: {}", told[0]);
    assert!(fleet.server_lives(), "{what}");
}

/// Each witness alone, with a short emit and a long one, both folded as Claude Code folds them.
fn check_size(columns: u16, rows: u16) {
    for (witness, more) in [("hook", 0), ("transcript", 0), ("screen", 0), ("hook", 20), ("screen", 20)] {
        let mut fleet = Fleet::new();
        fleet.configure(&format!("monitor:\n  interval_seconds: 1\n  paste:\n    witnesses: [{witness}]\n"));
        let transcript = fleet.root().join("session.jsonl");
        let hooks = fleet.hooks("orchestrator");
        fleet.orchestrator(&format!("{hooks} --transcript {}", transcript.display()));
        resize(&fleet, columns, rows);
        fleet.decide("keeper", FINGERPRINT);
        for n in 0..more {
            fleet.decide("keeper", &format!("ffffffffff{n:02x}"));
        }
        fleet.watch();
        check_told(&fleet, &format!("{columns}x{rows}, {witness} alone, {more} more"));
    }
}

#[test]
fn forty_columns_are_enough() {
    check_size(40, 30);
}

#[test]
fn twenty_four_rows_are_enough() {
    check_size(80, 24);
}

#[test]
fn ten_rows_are_enough() {
    check_size(80, 10);
}

#[test]
fn forty_columns_and_ten_rows_are_enough() {
    check_size(40, 10);
}

#[test]
fn a_window_that_changes_its_size_all_the_time_gets_the_emit_once() {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.decide("keeper", FINGERPRINT);
    fleet.watch();
    let window = fleet.window("orchestrator");
    for (columns, rows) in [(120, 40), (60, 12), (100, 30), (41, 11)].into_iter().cycle().take(400) {
        fleet.tmux(&["resize-window", "-t", &window, "-x", &columns.to_string(), "-y", &rows.to_string()]);
        if fleet.emits().iter().any(|emit| emit["received"] == true) {
            break;
        }
    }
    check_told(&fleet, "resized");
}

#[test]
fn the_environment_of_the_watcher_makes_no_difference() {
    // The fleet starts every program with no variable but `PATH`, `HOME` and the two that name the nexus.
    for (name, value) in [("LANG", "C"), ("LC_ALL", "POSIX"), ("TERM", "dumb"), ("TERM", ""), ("TMUX", "/nowhere,1,0")]
    {
        let mut fleet = Fleet::new();
        fleet.env.push((name.to_owned(), value.to_owned()));
        fleet.configure("monitor:\n  interval_seconds: 1\n  paste:\n    witnesses: [screen]\n");
        fleet.orchestrator("");
        fleet.agent("wörker-🦀", "");
        fleet.decide("wörker-🦀", FINGERPRINT);
        fleet.watch();
        check_told(&fleet, &format!("{name}={value}"));
        let told = fleet.submitted("orchestrator").concat();
        assert!(told.contains("window='wörker-🦀' "), "{name}={value}: {told}");
        assert_eq!(fleet.ng(&["decision-ack", "wörker-🦀", FINGERPRINT]).0, 0, "{name}={value}");
    }
}
