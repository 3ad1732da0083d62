//! Delivery into small, resized and bare terminals, and from a watcher without a locale: still typed and proven.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
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

/// Each witness alone, with a short emit and a long one. Claude Code folds both; where an agent does not fold, the
/// input box must have room on the screen.
fn check_size(columns: u16, rows: u16) {
    for (witness, more, switches) in [
        ("hook", 0, ""),
        ("transcript", 0, ""),
        ("screen", 0, ""),
        ("hook", 20, ""),
        ("screen", 20, ""),
        ("screen", 0, "--no-collapse"),
    ] {
        if switches.contains("no-collapse") && rows < 50 {
            continue;
        }
        let mut fleet = Fleet::new();
        fleet.configure(&format!("monitor:\n  interval_seconds: 1\n  paste:\n    witnesses: [{witness}]\n"));
        let transcript = fleet.root().join("session.jsonl");
        let hooks = fleet.hooks("orchestrator");
        fleet.orchestrator(&format!("{hooks} --transcript {} {switches}", transcript.display()));
        resize(&fleet, columns, rows);
        fleet.decide("keeper", FINGERPRINT);
        for n in 0..more {
            fleet.decide("keeper", &format!("ffffffffff{n:02x}"));
        }
        fleet.watch();
        check_told(&fleet, &format!("{columns}x{rows}, {witness} alone, {more} more, {switches}"));
    }
}

#[test]
fn forty_columns_are_enough_though_the_signature_wraps() {
    check_size(40, 60);
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
fn a_text_that_is_not_folded_and_larger_than_its_window_waits_for_a_person() {
    let mut fleet = Fleet::new();
    fleet.configure("monitor:\n  interval_seconds: 1\n  paste:\n    settle_seconds: 1\n");
    fleet.orchestrator(&format!("{} --no-collapse", fleet.hooks("orchestrator")));
    resize(&fleet, 80, 10);
    fleet.decide("keeper", FINGERPRINT);
    fleet.watch();
    // What stands above the rows that show can't be seen, so that nobody can say that the box holds our text alone.
    fleet.wait_emit("the outcome to be open", |emit| emit["outcome"] == "unknown");
    assert!(fleet.submitted("orchestrator").is_empty());
    assert!(fleet.screen("orchestrator").contains("nexus-emit-sig"), "{}", fleet.screen("orchestrator"));
    let degraded = || std::fs::read_to_string(fleet.state("degraded.json")).unwrap_or_default();
    fleet.wait("the status to say so", || degraded().contains("delivery-open") || degraded().contains("unproven-text"));
    fleet.tmux(&["send-keys", "-t", &fleet.window("orchestrator"), "Enter"]);
    check_told(&fleet, "sent by a person");
}

#[test]
fn a_text_that_is_not_folded_goes_into_a_small_window_if_it_is_cut() {
    let mut fleet = Fleet::new();
    fleet.configure("monitor:\n  interval_seconds: 1\n  paste:\n    max_bytes: 1024\n");
    fleet.orchestrator(&format!("{} --no-collapse", fleet.hooks("orchestrator")));
    resize(&fleet, 120, 24);
    for n in 0..20 {
        fleet.decide("keeper", &format!("ffffffffff{n:02x}"));
    }
    fleet.watch();
    fleet.wait_emit("a proven emit", |emit| emit["received"] == true);
    let submitted = fleet.submitted("orchestrator");
    assert!(submitted.len() == 1 && submitted[0].contains(" more lines: "), "{submitted:?}");
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
