//! What a report holds and what its delivery settles, with the real watcher, a real tmux and a demo agent.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use fleet::Fleet;
use serde_json::Value;

/// The text of an archived emit.
fn archived(fleet: &Fleet, emit: &Value) -> String {
    fs::read_to_string(fleet.state("diffs").join(emit["archive"].as_str().unwrap())).unwrap()
}

/// The lines of the scheduler's log about a task, as (phase, return code).
fn runs(fleet: &Fleet, task: &str) -> Vec<(String, i64)> {
    let log = fs::read_to_string(fleet.state("watcher-scheduler.jsonl")).unwrap_or_default();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        (line["task"] == task).then(|| (line["phase"].as_str().unwrap().to_owned(), line["rc"].as_i64().unwrap()))
    };
    log.lines().filter_map(line).collect()
}

#[test]
fn a_held_report_consumes_nothing_and_its_delivery_does() {
    let mut fleet = Fleet::new();
    fleet.orchestrator("--dialog permission");
    let marker = "reason=heartbeat stale\ndowntime_estimate_s=260\nrestarted_by=orchestrator-monitor\n";
    fs::write(fleet.state("watcher-revived"), marker).unwrap();
    fs::write(fleet.state("local-claude-install-failed.1759000000"), "npm ERR! network\n").unwrap();
    let settled = ["last-emit-stable-hash.ring", "last-prelude.ts"].map(|name| fleet.state(name));
    let told = ["watcher-revived", "local-claude-install-failed.1759000000"].map(|name| fleet.state(name));
    fleet.watch();
    let held = fleet.wait_emit("the sweep to be held", |emit| emit["outcome"] == "held");
    assert_eq!(held["reason"], "startup-sweep");
    // Archived before anything else, it is all there.
    let text = archived(&fleet, &held);
    assert!(text.contains("\n--- watcher revived (was down) ---\n"), "{text}");
    assert!(text.contains("\nwhy: heartbeat stale\n") && text.contains("\n  npm ERR! network\n"), "{text}");
    assert_eq!(fs::read_to_string(fleet.state("last-change.txt")).unwrap(), text);
    assert!(settled.iter().all(|path| !path.exists()) && told.iter().all(|path| path.exists()));
    fleet.tell("orchestrator", "close");
    fleet.wait_settled("the sweep to arrive", || fleet.emits().iter().any(|emit| emit["received"] == true));
    assert!(settled.iter().all(|path| path.exists()) && told.iter().all(|path| !path.exists()));
    let told: Vec<_> = fleet.submitted("orchestrator").into_iter().filter(|text| text.contains("was down")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn what_another_program_writes_pulls_the_report_forward() {
    let mut fleet = Fleet::new();
    fleet.orchestrator("");
    fleet.env.push(("MONITOR_WATCHER_SUPERVISOR_ENABLED".into(), "true".into()));
    fleet.configure("monitor:\n  interval_seconds: 3600\n");
    fs::write(fleet.state("watcher-supervisor-heartbeat"), "").unwrap();
    fleet.watch();
    fleet.wait("an empty sweep", || !runs(&fleet, "compose_emit").is_empty());
    // A standing condition that nobody would look at for an hour.
    fs::remove_file(fleet.state("watcher-supervisor-heartbeat")).unwrap();
    let composed = runs(&fleet, "compose_emit").len();
    fs::write(fleet.state("deliveries-queue.lines"), "").unwrap();
    let looked = runs(&fleet, "target_window").len();
    fleet.wait("two more passes", || runs(&fleet, "target_window").len() >= looked + 2);
    assert_eq!(runs(&fleet, "compose_emit").len(), composed, "an empty file is no news");
    fs::write(fleet.state("deliveries-queue.lines"), "issue=1 id=2 author=x\n").unwrap();
    let emit = fleet.wait_emit("the reminder", |emit| emit["received"] == true);
    assert_eq!(emit["reason"], "poll-resurface");
    assert!(archived(&fleet, &emit).contains("\n--- arm watcher supervisor ---\n"));
}

#[test]
fn a_full_snapshot_is_told_and_its_delivery_remembers_it() {
    let mut fleet = Fleet::new();
    fleet.orchestrator("");
    fleet.agent("w3", "--busy");
    fleet.configure("monitor:\n  interval_seconds: 1\n  full_state_emit_interval_seconds: 2\n");
    fleet.watch();
    let emit = fleet.wait_emit("the snapshot", |emit| emit["received"] == true);
    assert_eq!(emit["reason"], "poll-full-state");
    assert!(emit["archive"].as_str().unwrap().ends_with("_full-state.md"), "{emit}");
    let text = archived(&fleet, &emit);
    assert!(text.contains("\n--- workspace snapshot ---\n"), "{text}");
    assert!(text.contains("\n(full snapshot; transitions only between snapshots)\n"), "{text}");
    fleet.wait_settled("its delivery", || true);
    let canonical = fleet.state("last-full-state-canonical.txt");
    let form = || fs::read_to_string(&canonical).unwrap();
    assert!(form().starts_with("workspace: ") && form().contains("\n---snapshot---\n"), "{}", form());
    assert!(form().contains("\n  - w3 (active, state=busy)\n"), "{}", form());
    // What says the same rests.
    let considered = runs(&fleet, "full_state_snap").len();
    fleet.wait("two more considerations", || runs(&fleet, "full_state_snap").len() >= considered + 2);
    assert_eq!(fleet.emits().len(), 1);
    // A change is told, also to a watcher that has forgotten all but what the files say.
    let anchor = fs::read_to_string(fleet.state("last-full-state-change.ts")).unwrap();
    fleet.kill_watcher();
    fleet.tell("w3", "idle");
    fleet.wait("the worker to be idle", || !fleet.screen("w3").contains("esc to interrupt"));
    fleet.watch();
    fleet.wait("the change to be told", || form().contains("\n  - w3 (active, state=idle)\n"));
    assert_ne!(fs::read_to_string(fleet.state("last-full-state-change.ts")).unwrap(), anchor);
}

#[test]
fn a_slow_git_holds_nothing_up() {
    let mut fleet = Fleet::new();
    fleet.orchestrator("");
    fleet.configure("monitor:\n  interval_seconds: 1\n  snapshot:\n    git_enabled: true\n");
    fs::create_dir(fleet.root().join(".git")).unwrap();
    // A git that answers when the test lets it.
    let bin = fleet.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let go = fleet.root().join("go");
    let script = format!(
        "#!/bin/sh\nn=0\nwhile [ ! -e '{}' ] && [ $n -lt 90 ]; do sleep 0.1; n=$((n+1)); done\n\
         echo '# branch.oid 0123456789abcdef'\necho '# branch.head main'\n",
        go.display()
    );
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    fleet.env.push(("PATH".into(), format!("{}:{path}", bin.display())));
    fleet.watch();
    fleet.wait("git to be asked", || runs(&fleet, "snapshot_local") == [("async-start".to_owned(), 0)]);
    let looked = runs(&fleet, "target_window").len();
    fleet.wait("two more passes meanwhile", || runs(&fleet, "target_window").len() >= looked + 2);
    assert_eq!(runs(&fleet, "snapshot_local").len(), 1, "git still runs");
    fs::write(&go, "").unwrap();
    fleet.wait("its end", || runs(&fleet, "snapshot_local").contains(&("async-done".to_owned(), 0)));
    let baseline = fleet.state("last-snapshot.txt");
    fleet.wait("the baseline", || fs::read_to_string(&baseline).unwrap_or_default().contains(" main 0123456 clean\n"));
}

#[test]
fn one_sweep_waits_for_what_is_fetched_beside_it() {
    let fleet = Fleet::new();
    fleet.orchestrator("");
    fleet.configure("monitor:\n  snapshot:\n    git_enabled: true\n");
    fs::create_dir(fleet.root().join(".git")).unwrap();
    fs::write(fleet.state("watcher-revived"), "reason=test\n").unwrap();
    let (code, said) = fleet.run_watcher(&["--once"]);
    assert_eq!(code, 0, "{said}");
    assert!(runs(&fleet, "snapshot_local").iter().any(|(phase, _)| phase == "async-done"));
    assert!(fleet.emits().iter().any(|emit| emit["received"] == true), "{said}");
}
