//! The configuration changed under a real watcher on a private tmux server: what it does differently, what it says, and
//! that nothing an editor or a deployment does to the file ends it.

#![expect(clippy::disallowed_methods, reason = "tests run real programs")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/fleet.rs"]
mod fleet;

use std::fs;
use std::os::unix::fs::symlink;

use fleet::Fleet;
use rustix::process::Signal;
use serde_json::Value;

const FILE: &str = "config/nexus.yml";

/// A fleet whose watcher runs and has read its file.
fn watching(yaml: &str) -> Fleet {
    let mut fleet = Fleet::new();
    fleet.orchestrator("");
    fleet.configure(yaml);
    fleet.watch();
    fleet.wait("what is in force to be written down", || fleet.state("config-in-force.json").exists());
    fleet
}

/// What the running watcher says is in force.
fn record(fleet: &Fleet) -> Value {
    serde_json::from_str(&fs::read_to_string(fleet.state("config-in-force.json")).unwrap_or_default())
        .unwrap_or_default()
}

/// Waits until a key has a value in force.
fn wait_in_force(fleet: &Fleet, key: &str, value: &Value) {
    fleet.wait(&format!("{key} to be {value}"), || record(fleet)["keys"][key] == *value);
}

/// The lines of the log that hold these words.
fn logged(fleet: &Fleet, words: &str) -> usize {
    let log = fs::read_to_string(fleet.state("logs/watcher.log")).unwrap_or_default();
    log.lines().filter(|line| line.contains(words)).count()
}

/// How often a task has run.
fn runs(fleet: &Fleet, task: &str) -> usize {
    let log = fs::read_to_string(fleet.state("watcher-scheduler.jsonl")).unwrap_or_default();
    log.lines().filter(|line| line.contains(task)).count()
}

#[test]
fn a_change_of_the_cadence_is_a_change_of_the_cadence() {
    let fleet = watching("monitor:\n  interval_seconds: 3600\n");
    fleet.wait("the first composing", || runs(&fleet, "compose_emit") > 0);
    fleet.configure("monitor:\n  interval_seconds: 1\n");
    let before = runs(&fleet, "compose_emit");
    fleet.wait("composing each second", || runs(&fleet, "compose_emit") >= before + 3);
    // The watcher's own cadence, not what the caller's file would give.
    fleet.configure("monitor:\n  interval_seconds: soon\n");
    let (_, tasks) = fleet.ng(&["tasks", "--json"]);
    let tasks: Value = serde_json::from_str(&tasks).unwrap();
    let compose = tasks.as_array().unwrap().iter().find(|task| task["name"] == "compose_emit").unwrap();
    assert_eq!(compose["every_s"], 1);
    fleet.wait("the published interval", || {
        fs::read_to_string(fleet.state("watcher.lock")).unwrap_or_default().contains("interval_seconds: 1\n")
    });
}

#[test]
fn what_reports_hold_and_how_they_end_follows_the_file() {
    let fleet = watching("monitor:\n  interval_seconds: 1\n  emit_section_max_lines: 1\n");
    fleet.decide("keeper", "aaaaaaaaaaaa");
    let first = fleet.wait_emit("the first report", |emit| emit["received"] == true);
    let body = |emit: &Value| {
        let name = emit["archive"].as_str().unwrap_or_default();
        fs::read_to_string(fleet.state("diffs").join(name)).unwrap_or_default()
    };
    assert!(!body(&first).contains("a page of my own"), "{}", body(&first));
    fs::write(fleet.root().join("url"), "http://localhost/ a page of my own\n").unwrap();
    fleet.configure(
        "monitor:\n  interval_seconds: 1\n  emit_cooldown_seconds: 0\nstatus_surface:\n  kind: external\n  url_file: url\n",
    );
    wait_in_force(&fleet, "status_surface.kind", &"external".into());
    fleet.decide("keeper", "bbbbbbbbbbbb");
    fleet.wait_emit("a report with the new footer", |emit| body(emit).contains("a page of my own"));
    // The cooldown is over at once now, so a decision that was told is told again.
    fleet.wait("the first decision told again", || {
        fleet.emits().iter().filter(|emit| body(emit).contains("aaaaaaaaaaaa")).count() > 1
    });
}

#[test]
fn a_hang_up_reads_the_file_and_ends_nothing() {
    let fleet = watching("monitor:\n  interval_seconds: 60\n");
    for value in 1..=3 {
        fleet.configure(&format!("monitor:\n  interval_seconds: 60\n  emit_dedup_ring_size: {value}\n"));
        fleet.signal_watcher(Signal::HUP);
        wait_in_force(&fleet, "monitor.emit_dedup_ring_size", &value.into());
    }
    fleet.signal_watcher(Signal::HUP);
    fleet.wait("the answer to a reload without a change", || logged(&fleet, "nothing differs") > 0);
    assert!(fleet.watcher_lives());
}

#[test]
fn a_bad_file_is_said_once_and_a_restart_key_waits() {
    let mut fleet = watching("monitor:\n  interval_seconds: 1\n");
    fleet.configure("monitor:\n  interval_seconds: soon\n");
    let problem = "nexus.yml:2:21: monitor.interval_seconds: found \\\"soon\\\"";
    let said = "WARN config-reload: ";
    fleet.wait("the problem to be written down", || record(&fleet)["problems"].to_string().contains(problem));
    for _ in 0..3 {
        fleet.signal_watcher(Signal::HUP);
    }
    let before = runs(&fleet, "compose_emit");
    fleet.wait("composing as before", || runs(&fleet, "compose_emit") >= before + 3);
    assert_eq!(logged(&fleet, said), 1);
    assert!(fleet.ng(&["config", "check"]).0 == 1 && fleet.watcher_lives());
    let (code, shown) = fleet.ng(&["config", "show"]);
    assert!(code == 1 && shown.contains("monitor.interval_seconds ") && shown.contains("  1  (in force)\n"), "{shown}");
    let (_, status) = fleet.ng(&["watcher-status"]);
    assert!(status.contains("\ndegraded: config-reload since="), "{status}");

    fleet.configure("monitor:\n  interval_seconds: 1\n  services_window: cellar\n");
    fleet.wait("the key to wait", || record(&fleet)["waiting"][0]["key"] == "monitor.services_window");
    fleet.wait("the log to say so", || logged(&fleet, "WARN restart-needed: monitor.services_window was changed") == 1);
    assert_eq!(record(&fleet)["problems"], serde_json::json!([]));
    assert_eq!(record(&fleet)["keys"]["monitor.services_window"], "services");
    assert_eq!(logged(&fleet, "config-reload is over"), 1);
    let waits = "monitor.services_window was changed from \"services\" to \"cellar\", which needs a restart";
    let (_, status) = fleet.ng(&["watcher-status"]);
    assert!(status.contains("\ndegraded: restart-needed since=") && !status.contains("config-reload"), "{status}");
    let (code, checked) = fleet.ng(&["config", "check"]);
    assert!(code == 0 && checked.contains(&format!("\nrunning watcher: {waits}\n")), "{checked}");
    let (_, shown) = fleet.ng(&["config", "show"]);
    let row = |key: &str| shown.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    assert!(
        row("monitor.services_window ")
            .ends_with("/config/nexus.yml:3; restart; the running watcher has \"services\" until a restart)"),
        "{shown}"
    );
    assert!(row("monitor.interval_seconds ").ends_with("/config/nexus.yml:2; live; in force)"), "{shown}");

    fleet.signal_watcher(Signal::TERM);
    fleet.wait_ended("told to end");
    fleet.watch();
    wait_in_force(&fleet, "monitor.services_window", &"cellar".into());
    fleet.wait("nothing to wait", || record(&fleet)["waiting"] == serde_json::json!([]));
}

#[test]
fn no_way_to_replace_or_remove_the_file_loses_the_configuration() {
    let fleet = watching("monitor:\n  interval_seconds: 1\n  emit_dedup_ring_size: 11\n");
    let path = fleet.root().join(FILE);
    let with = |size: u64| format!("monitor:\n  interval_seconds: 1\n  emit_dedup_ring_size: {size}\n");
    let ring = "monitor.emit_dedup_ring_size";
    let problems = |words: &str| record(&fleet)["problems"].to_string().contains(words);

    let draft = fleet.root().join("draft");
    fs::write(&draft, with(22)).unwrap();
    fs::rename(&draft, &path).unwrap();
    wait_in_force(&fleet, ring, &22.into());

    fs::write(&path, "\n").unwrap();
    fleet.wait("the emptied file to be told", || problems("the file is empty"));
    assert_eq!(record(&fleet)["keys"][ring], 22);

    fs::remove_file(&path).unwrap();
    fleet.wait("the missing file to be told", || problems("the file is gone"));
    assert_eq!(record(&fleet)["keys"][ring], 22);

    fs::write(fleet.root().join("elsewhere.yml"), with(33)).unwrap();
    symlink("../elsewhere.yml", &path).unwrap();
    wait_in_force(&fleet, ring, &33.into());
    assert_eq!(record(&fleet)["problems"], serde_json::json!([]));

    fs::remove_file(fleet.root().join("elsewhere.yml")).unwrap();
    fleet.wait("the link that leads nowhere to be told", || problems("there is no such file"));
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    fleet.wait("the folder to be told", || problems("this is a folder"));
    assert_eq!(record(&fleet)["keys"][ring], 33);

    fs::remove_dir(&path).unwrap();
    fs::write(&path, with(44)).unwrap();
    wait_in_force(&fleet, ring, &44.into());
    assert!(fleet.watcher_lives());
}
