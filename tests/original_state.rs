//! The state directory as a contract with the original shell tools: what they left behind is read, and what we write of
//! theirs has their form. The forms here are the published ones; nothing here was written by our own code.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use std::fs;
use std::path::Path;

use fleet::Fleet;
use regex::Regex;

const ISO: &str = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)";

/// A file of the original tools: its path below the state directory, and its whole content, both as patterns in which
/// `ISO` stands for a time.
const FORMS: &[(&str, &str)] = &[
    ("watcher-heartbeat", r"pid=\d+\nts=ISO\ntarget=orchestrator\n"),
    ("watcher-progress", r"pid=\d+\nepoch=\d+\nts=ISO\nstage=[a-z:-]+\n"),
    ("watcher-cycle", r"pid=\d+\nepoch=\d+\nts=ISO\nperiod_s=\d+\nema_s=\d+\n"),
    ("watcher\\.pid", r"\d+\n"),
    (
        "watcher\\.lock",
        r"pid: \d+\nstarted_at: ISO\ntarget_window: orchestrator\ntmux_window: headless\ninterval_seconds: \d+\n",
    ),
    ("watcher-target", r"orchestrator\n"),
    (
        "nexus-instance\\.lock",
        r"pid: \d+\nhost: \S+\nboot_id: \S+\npid_ns: \S+\nsandbox: .*\ntmux: .*\nuser: .*\nnexus_root: /.*\nstarted_at: ISO\n",
    ),
    (
        "nexus-instance\\.heartbeat",
        r"host: \S+\nboot_id: \S+\npid_ns: \S+\npid: \d+\ntmux: .*\nnexus_root: /.*\nnonce: \S+\nepoch: \d+\nts: ISO\n",
    ),
    (
        "watcher-scheduler\\.jsonl",
        r#"(\{"ts":"ISO","task":"[a-z_]+","rc":\d+,"elapsed_ms":\d+,"next_fire":\d+,"phase":"(sync|async-start|async-done|async-timeout)"\}\n)+"#,
    ),
    (r"scheduler-staging/[a-z_]+\.out", r"(?s).*"),
    (
        r"diffs/\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_[0-9a-f]{6}(_full-state)?\.md",
        r"(?s).*nexus-emit-sig \S+ [0-9a-f]{6} ---\n",
    ),
    ("last-change\\.txt", r"(?s).*nexus-emit-sig \S+ [0-9a-f]{6} ---\n"),
    ("last-snapshot\\.txt", r"(?s)# snapshot-format=.+"),
    ("last-emit-stable-hash\\.ring", r"(\d+\t[0-9a-f]{64}\n){1,8}"),
    ("pending-decisions-emit-state\\.tsv", r"([^\t\n]+\t[0-9a-f]{12}\t\d+\n)+"),
    ("engagement-log\\.tsv", r"([^\t\n]+\t\d+\n)*"),
    ("idle-state\\.tsv", r"([^\t\n]+\t[a-z-]+\n)*"),
    ("machine-input\\.tsv", r"([^\t\n]+\t\d+\t[a-z-]+\n)+"),
    (r"user-prompt/[^/]+", r"\d+\t\S*\n"),
    ("orchestrator-(heartbeat|paste-received)", ""),
    ("orchestrator-session-id", r"[0-9a-zA-Z-]+\n"),
    ("(orchestrator-last-paste|watcher-last-emit-delivery)\\.ts", r"\d+\n"),
    (r"last-full-state-(emit|change)\.ts", r"\d+\n"),
    (r"last-full-state-canonical\.txt", r"(?s).*---snapshot---.*"),
    (r"heartbeat/[^/]+\.json", r#"\{.*"state":"[a-z_-]+".*"last_activity":\d+.*\}\n?"#),
    (r"decisions/[^/]+\.[0-9a-f]{12}(\.handled)?\.json", r#"\{.*"fingerprint":\s*"[0-9a-f]{12}".*\}\n?"#),
    (r"last-prelude\.ts", r"\d+(\.\d+)?\n"),
    ("watcher\\.log", r"(\[ISO\] .*\n)+"),
    (r"action-log\.jsonl(\.\d+)?", r#"(\{"ts":"ISO","agent":"[^"]+","event":"[a-z-]+".*\}\n)+"#),
];

/// Files that are ours alone, of which the original tools know nothing.
const OURS: &[&str] =
    &["audit/", "emits.jsonl", "delivery/", "receipts/", "logs/", "config-in-force.json", "degraded.json", "panes/"];

/// Every file below a directory, by its path in it.
fn files_below(dir: &Path, prefix: &str, into: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            files_below(&entry.path(), &format!("{name}/"), into);
        } else if let Ok(bytes) = fs::read(entry.path()) {
            into.push((name, bytes));
        }
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(&format!("^(?:{})$", text.replace("ISO", ISO))).unwrap()
}

#[test]
fn what_we_write_of_the_originals_files_has_their_form() {
    let mut fleet = Fleet::new();
    fleet.configure("monitor:\n  interval_seconds: 1\n  full_state_emit_interval_seconds: 1\n");
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.agent("w3", &fleet.hooks("w3"));
    fleet.agent("w4", "");
    leave_wrap_up(&fleet, "w4");
    fleet.decide("w3", "0a1b2c3d4e5f");
    fleet.decide("w3", "0a1b2c3d4e60");
    fleet.watch();
    fleet.wait_settled("a full snapshot", || {
        ["last-full-state-canonical.txt", "idle-state.tsv"].iter().all(|name| fleet.state(name).exists())
    });
    for args in [
        &["decision-ack", "w3", "0a1b2c3d4e60"][..],
        &["log-action", "monitor", "--event", "window-retain", "--extra", "window=w3"],
    ] {
        assert_eq!(fleet.ng(args).0, 0, "{args:?}");
    }
    fleet.kill_watcher();

    let mut files = Vec::new();
    files_below(&fleet.state(""), "", &mut files);
    let forms: Vec<_> = FORMS.iter().map(|(path, form)| (*path, pattern(path), pattern(form))).collect();
    let mut wrong = Vec::new();
    for (name, bytes) in &files {
        let text = String::from_utf8_lossy(bytes);
        match forms.iter().find(|(_, path, _)| path.is_match(name)) {
            Some((_, _, form)) if form.is_match(&text) => {}
            Some((_, _, form)) => wrong.push(format!("{name} has not the form {form}:\n{text}")),
            None if OURS.iter().any(|ours| name == ours || ours.ends_with('/') && name.starts_with(ours)) => {}
            None => wrong.push(format!("{name} is known to nobody:\n{text}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let unwritten: Vec<_> = forms
        .iter()
        .filter(|(_, path, _)| !files.iter().any(|(name, _)| path.is_match(name)))
        .map(|(path, ..)| path)
        .collect();
    assert!(unwritten.is_empty(), "not written in this run: {unwritten:?}");
}

/// Puts a file as the original tools left it.
fn leave(fleet: &Fleet, name: &str, text: &str) {
    let path = fleet.state(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A worker that wrapped up long ago, in a log that has been archived since.
fn leave_wrap_up(fleet: &Fleet, window: &str) {
    fs::write(fleet.root().join("reports/proj_2026-10-05_090000_fix.md"), "# Fix\n").unwrap();
    let event = format!(
        r#"{{"ts":"2026-10-05T09:01:02-07:00","agent":"monitor","event":"wrap-up","issue":"42","report":"proj_2026-10-05_090000_fix.md","window":"{window}","repo":"org/assets","upload":"ok","comment":"ok","rocket":"skipped"}}"#
    );
    leave(fleet, "action-log.jsonl.1759000000", &format!("{event}\n"));
    leave(fleet, "engagement-log.tsv", &format!("{window}\t{}\n", chrono::Utc::now().timestamp() - 7200));
}

/// A decision record in the form of the original hook.
fn record(window: &str, fingerprint: &str) -> String {
    format!(
        r#"{{"ts":"2026-10-05T09:00:00-07:00","window":"{window}","session_id":"s","kind":"permission_prompt","prompt_excerpt":"May I?","tool_context":null,"fingerprint":"{fingerprint}"}}"#
    )
}

#[test]
fn what_the_original_tools_left_is_read() {
    let (told_lately, told_long_ago, handled) = ("00000000000a", "00000000000b", "00000000000c");
    let mut fleet = Fleet::new();
    fleet.orchestrator("");
    fleet.agent("w3", "");
    let now = chrono::Utc::now().timestamp();

    // A watcher that ended long ago, and one on another host that has not been seen for an hour.
    leave(&fleet, "watcher-heartbeat", "pid=4194304\nts=2026-10-05T09:00:00-07:00\ntarget=orchestrator\n");
    leave(&fleet, "watcher-progress", "pid=4194304\nepoch=1759000000\nts=2026-10-05T09:00:00-07:00\nstage=loop-tick\n");
    leave(
        &fleet,
        "watcher-cycle",
        "pid=4194304\nepoch=1759000000\nts=2026-10-05T09:00:00-07:00\nperiod_s=62\nema_s=61\n",
    );
    leave(&fleet, "watcher.pid", "4194304\n");
    leave(
        &fleet,
        "watcher.lock",
        "pid: 4194304\nstarted_at: 2026-10-05T09:00:00-07:00\ntarget_window: orchestrator\ntmux_window: headless\ninterval_seconds: 60\n",
    );
    let holder = "host: elsewhere\nboot_id: 0b9e4c1e-7f0b-4a53-8b0e-2f6a3a4f6d10\npid_ns: pid:[4026531836]\n";
    leave(
        &fleet,
        "nexus-instance.lock",
        &format!(
            "pid: 4194304\n{holder}sandbox: no\ntmux: default\nuser: nexus\nnexus_root: /nexus\nstarted_at: 2026-10-05T09:00:00-07:00\n"
        ),
    );
    leave(
        &fleet,
        "nexus-instance.heartbeat",
        &format!(
            "{holder}pid: 4194304\ntmux: default\nnexus_root: /nexus\nnonce: 4194304-1\nepoch: {}\nts: 2026-10-05T09:00:00-07:00\n",
            now - 3600
        ),
    );
    let (code, status) = fleet.ng(&["watcher-status"]);
    assert_eq!(code, 2, "{status}");

    // What it has told, and what it has not.
    for fingerprint in [told_lately, told_long_ago, handled] {
        leave(&fleet, &format!("decisions/w3.{fingerprint}.json"), &record("w3", fingerprint));
    }
    leave(&fleet, &format!("decisions/w3.{handled}.handled.json"), &record("w3", handled));
    leave(
        &fleet,
        "pending-decisions-emit-state.tsv",
        &format!("w3\t{told_lately}\t{now}\nw3\t{told_long_ago}\t{}\n", now - 900),
    );
    leave(&fleet, "last-emit-stable-hash.ring", &format!("{}\t{}\n", now - 60, "0f".repeat(32)));
    leave(
        &fleet,
        "last-snapshot.txt",
        "# snapshot-format=v2 tmux-first,reports-bounded-count,git-off\n--- tmux ---\nw1\n",
    );
    leave(&fleet, "dashboard-updated.ts", "2026-10-05T08:00:00-07:00\n");

    // What the worker has done: the newest events may stand in an archive.
    leave_wrap_up(&fleet, "w3");
    leave(&fleet, "action-log.jsonl", "");
    leave(&fleet, "idle-state.tsv", "");

    fleet.watch();
    fleet.wait_settled("the first telling", || !fleet.submitted("orchestrator").is_empty());
    let told = fleet.submitted("orchestrator").join("\n");
    for (wanted, because) in [
        (told_long_ago, "its cooldown is over"),
        ("w3 wrapped", "the archived log says so"),
        ("2026-10-05T08:00:00-07:00", "the dashboard was put then"),
    ] {
        assert!(told.contains(wanted), "{wanted} is missing ({because}) in\n{told}");
    }
    for (unwanted, because) in [
        (told_lately, "it was told a moment ago"),
        (handled, "its tombstone stands"),
        ("local state changes", "a baseline of another format is begun anew without a word"),
    ] {
        assert!(!told.contains(unwanted), "{unwanted} is there ({because}) in\n{told}");
    }
    let ring = fs::read_to_string(fleet.state("last-emit-stable-hash.ring")).unwrap();
    assert!(ring.contains(&"0f".repeat(32)) && ring.lines().count() == 2, "the ring lost a row or gained none: {ring}");
}
