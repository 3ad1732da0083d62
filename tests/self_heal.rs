//! A watcher whose deliveries fail again and again alerts and starts itself anew: in its own process, so that there is
//! never none and never two.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use fleet::Fleet;

/// A fleet whose orchestrator gets every text, and of which no witness counts: each delivery fails.
fn deaf(settings: &str) -> Fleet {
    let mut fleet = Fleet::new();
    fleet.configure(&format!(
        "monitor:\n  interval_seconds: 1\n  paste_confirm_timeout_seconds: 2\n  paste:\n    settle_seconds: 1\n    witnesses: [transcript]\n  watcher:\n{settings}"
    ));
    fleet.orchestrator("");
    fleet.decide("keeper", "0a1b2c3d4e5f");
    fleet.watch();
    fleet
}

/// How often the watcher has started, by its log.
fn starts(fleet: &Fleet) -> usize {
    let log = std::fs::read_to_string(fleet.state("logs/watcher.log")).unwrap_or_default();
    log.matches("watcher started").count()
}

/// The process that holds the state directory, by its own file.
fn holder(fleet: &Fleet) -> String {
    std::fs::read_to_string(fleet.state("watcher.pid")).unwrap_or_default().trim().to_owned()
}

#[test]
fn failing_deliveries_make_it_start_anew_in_its_own_process_and_not_again_at_once() {
    let mut fleet = deaf("    delivery_fail_limit: 1\n");
    let pid = fleet.watcher_pid();
    fleet.wait("the new start", || starts(&fleet) == 2);
    let alerts = fleet.alerts();
    assert!(
        alerts.contains("ALERT emit-delivery 1 deliveries to orchestrator failed in a row; it starts itself anew"),
        "{alerts}"
    );
    let history = std::fs::read_to_string(fleet.state("watcher-self-heal-history.txt")).unwrap();
    assert_eq!(history.lines().count(), 1, "{history}");
    assert!(fleet.watcher_lives());
    fleet.wait("the pid file of the new start", || holder(&fleet) == pid.to_string());
    // Another finds it held, as before.
    let (code, text) = fleet.run_watcher(&[]);
    assert_eq!(code, 4, "{text}");
    // What failed before goes on failing, and the watcher goes on as it is.
    fleet.wait("the next alert", || fleet.alerts().contains("it has started itself anew a moment ago"));
    assert_eq!(starts(&fleet), 2);
    assert!(fleet.watcher_lives());
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    for child in children.split_whitespace() {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        assert!(!stat.contains(") Z "), "a dead child is left: {stat}");
    }
    // It ends as ever.
    fleet.signal_watcher(rustix::process::Signal::TERM);
    fleet.wait_ended("told to end");
}

#[test]
fn the_new_start_says_that_it_is_one() {
    let fleet = deaf("    delivery_fail_limit: 1\n");
    // The marker is read by the startup sweep, whose report is typed like any other.
    let marker = || std::fs::read_to_string(fleet.state("watcher-revived")).unwrap_or_default();
    fleet.wait("the marker or its news", || {
        marker().contains("restarted_by=watcher-self-heal")
            || fleet.submitted("orchestrator").iter().any(|text| text.contains("watcher-self-heal"))
    });
}

#[test]
fn switched_off_it_alerts_and_goes_on() {
    let fleet = deaf("    delivery_fail_limit: 1\n    self_heal_enabled: false\n");
    fleet.wait("the alert", || fleet.alerts().contains("monitor.watcher.self_heal_enabled is off"));
    let count = || std::fs::read_to_string(fleet.state("watcher-emit-delivery-fail.count")).unwrap_or_default();
    fleet.wait("a second failure", || count() == "2\n");
    assert_eq!(starts(&fleet), 1);
}
