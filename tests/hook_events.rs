//! Every event of an agent's hooks, by a payload of each, and payloads that no agent should send; and the form of what
//! hooks leave, beside the form that the original tools leave and read.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs the real programs"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nexus_watcher::logic::hook::Whose;
use nexus_watcher::logic::ids::{PaneId, WindowName};
use nexus_watcher::sys::files::StateDir;
use nexus_watcher::sys::{decisions, hook_files};
use serde_json::{Value, json};

/// A state directory whose hooks are run.
struct Hooks {
    dir: tempfile::TempDir,
}

impl Hooks {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    /// Feeds one event in; returns the code. Nothing may be printed.
    fn feed(&self, event: &str, input: &[u8]) -> i32 {
        let mut ng = Command::new(env!("CARGO_BIN_EXE_ng"));
        ng.args(["hook", event, "--window", "w3", "--state"]).arg(self.dir.path());
        ng.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ng.spawn().unwrap();
        let _closed_early = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        let printed = [&output.stdout[..], &output.stderr[..]].concat();
        assert_eq!(String::from_utf8_lossy(&printed), "", "{event}");
        output.status.code().unwrap()
    }

    fn hook(&self, payload: &Value) {
        let event = payload["hook_event_name"].as_str().unwrap();
        assert_eq!(self.feed(event, payload.to_string().as_bytes()), 0, "{event}");
    }

    fn text(&self, relative: &str) -> Option<String> {
        fs::read_to_string(self.path(relative)).ok()
    }

    fn json(&self, relative: &str) -> Value {
        let text = self.text(relative).unwrap_or_else(|| panic!("{relative} is missing"));
        serde_json::from_str(text.lines().next().unwrap_or_default()).unwrap()
    }

    fn state(&self) -> String {
        self.text("heartbeat/w3.json")
            .map(|_| self.json("heartbeat/w3.json")["state"].as_str().unwrap().to_owned())
            .unwrap_or_default()
    }
}

fn fixture(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/payloads").join(name)).unwrap()
}

#[test]
fn every_event_that_a_version_knows_is_taken_in_or_passed_over_in_silence() {
    // What the heartbeat of a session in the middle of a turn says afterwards. What says nothing about it leaves it.
    let left = "user_prompt";
    let expected: BTreeMap<&str, &str> = [
        ("PreToolUse", "busy"),
        ("PostToolUse", "busy"),
        ("PostToolUseFailure", "busy"),
        ("PostToolBatch", "busy"),
        ("Notification", "permission_prompt"),
        ("UserPromptSubmit", "user_prompt"),
        ("SessionStart", "session_start"),
        ("SessionEnd", "session_end"),
        ("Stop", "idle_prompt"),
        ("StopFailure", "stop_failure"),
        ("SubagentStart", "busy"),
        ("SubagentStop", "busy"),
        ("PreCompact", "busy"),
        ("PostCompact", left),
        ("PermissionRequest", "permission_prompt"),
        ("PermissionDenied", "busy"),
        ("Elicitation", "permission_prompt"),
        ("ElicitationResult", "busy"),
    ]
    .into();
    let text = fixture("claude_events.jsonl");
    let mut events = 0;
    for line in text.lines() {
        let hooks = Hooks::new();
        let payload: Value = serde_json::from_str::<Value>(line).unwrap()["payload"].clone();
        let event = payload["hook_event_name"].as_str().unwrap();
        hooks
            .hook(&json!({"hook_event_name": "UserPromptSubmit", "session_id": payload["session_id"], "prompt": "go"}));
        hooks.hook(&payload);
        assert_eq!(hooks.state(), *expected.get(event).unwrap_or(&left), "{event}");
        assert_eq!(hooks.text("hook-errors.log"), None, "{event}");
        events += 1;
    }
    assert_eq!(events, 34, "one for each name that 2.1.332 lists");
}

#[test]
fn no_payload_stops_an_agent() {
    let huge = format!("{{\"hook_event_name\":\"Stop\",\"x\":{}}}", "[".repeat(100_000));
    for input in [
        &b""[..],
        b"\xff\xfe\x00",
        b"{\"hook_event_name\":\"Stop\",\"session_id\":\"\xc3\x28\"}",
        b"{\"hook_event_name\":42,\"tool_input\":7,\"error\":[]}",
        b"{\"hook_event_name\":null,\"session_id\":{\"a\":1},\"prompt\":[1]}",
        b"{\"hook_event_name\":\"Notification\",\"message\":\"cut \\ud83d\"}",
        b"null",
        b"\"text\"",
        b"{}",
        huge.as_bytes(),
    ] {
        for event in [
            "PreToolUse",
            "PermissionRequest",
            "Notification",
            "UserPromptSubmit",
            "StopFailure",
            "Elicitation",
            "",
            "Nonsense",
        ] {
            let hooks = Hooks::new();
            assert_eq!(
                hooks.feed(event, input),
                0,
                "{event} {:?}",
                String::from_utf8_lossy(&input[..input.len().min(60)])
            );
        }
    }
    let hooks = Hooks::new();
    hooks.feed("Stop", b"{\"session_id\":\"\xc3\x28ok\"}");
    assert_eq!(hooks.state(), "idle_prompt", "half a character costs that character only");
}

#[test]
fn the_payloads_of_older_versions_mean_the_same() {
    for (payload, state) in [
        (
            json!({"hook_event_name": "Notification", "message": "Claude needs your permission to use Bash"}),
            "permission_prompt",
        ),
        (
            json!({"hook_event_name": "Notification", "notification": {"type": "idle_prompt", "message": "m"}}),
            "idle_prompt",
        ),
        (
            json!({"hook_event_name": "StopFailure", "error_type": "rate_limit", "message": "hit your limit"}),
            "stop_failure",
        ),
        (json!({"hook_event_name": "Stop"}), "idle_prompt"),
    ] {
        let hooks = Hooks::new();
        hooks.hook(&payload);
        assert_eq!(hooks.state(), state, "{payload}");
    }
    // The original's tokens stand for events where a payload names none.
    for (token, state) in [
        ("busy", "busy"),
        ("turn_end", "idle_prompt"),
        ("user_prompt", "user_prompt"),
        ("permission_prompt", "permission_prompt"),
    ] {
        let hooks = Hooks::new();
        hooks.feed(token, b"{}");
        assert_eq!(hooks.state(), state, "{token}");
    }
}

#[test]
fn a_state_directory_that_is_not_there_is_not_made() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [["--state", "nope"], ["--state", "nope/monitor/.state"], ["--root", "nope"]] {
        let mut ng = Command::new(env!("CARGO_BIN_EXE_ng"));
        ng.args(["hook", "Stop", "--window", "w3"]).args(arguments).env_clear().current_dir(dir.path());
        let output = ng.stdin(Stdio::null()).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Asserts that a value has every field of an example, of the same type.
fn check_form(place: &str, ours: &Value, example: &Value) {
    for (field, wanted) in example.as_object().unwrap() {
        let found = ours.get(field).unwrap_or_else(|| panic!("{place} has no {field}: {ours}"));
        let same = std::mem::discriminant(found) == std::mem::discriminant(wanted);
        assert!(same, "{place}: {field} is {found}, there it is {wanted}");
    }
}

#[test]
fn what_hooks_leave_has_the_form_that_the_original_tools_leave() {
    let forms: Value = serde_json::from_str(&fixture("original_forms.json")).unwrap();
    let session = "85ad3742-4e87-4e06-ad5e-b3de1cb7df53";
    let bash = |event: &str| json!({"hook_event_name": event, "session_id": session, "tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "ls"}});
    let failed = |error: &str, message: &str| json!({"hook_event_name": "StopFailure", "session_id": session, "error": error, "last_assistant_message": message});
    let hooks = Hooks::new();
    let check = |place: &str| check_form(place, &hooks.json(place), &forms[place]);
    hooks.hook(&bash("PreToolUse"));
    check("pending-tool/w3.json");
    hooks.hook(&bash("PostToolUse"));
    check("heartbeat/w3.json");
    hooks.hook(&failed("server_error", "API Error: 500"));
    check("turn-failure/w3.json");
    hooks.hook(&failed("rate_limit", "You've hit your limit · resets 3am (UTC)"));
    check("over-limit/w3.json");
    hooks.hook(&json!({"hook_event_name": "Notification", "session_id": session, "notification_type": "idle_prompt", "message": "Claude is waiting for your input"}));
    check("worker-notifications.jsonl");
    // Window, kind and message make the name, in the original and here.
    let record = hooks.json("decisions/w3.870a309be2b0.json");
    check_form("decisions", &record, &forms["decisions/w3"]);
    hooks.hook(&json!({"hook_event_name": "Stop", "session_id": session}));
    assert_eq!(hooks.json("decisions/w3.870a309be2b0.json")["unresolved"], true);
    assert!(hooks.json("heartbeat/w3.json")["last_turn_end"].is_i64());
    hooks.hook(&json!({"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": "x"}));
    assert!(hooks.json("heartbeat/w3.json").get("last_turn_end").is_none());
    let stamp = hooks.text("user-prompt/w3").unwrap();
    let (epoch, rest) = stamp.split_once('\t').unwrap();
    assert!(epoch.parse::<i64>().is_ok() && rest == format!("{session}\n"), "{stamp:?}");
}

#[test]
fn what_the_original_tools_leave_is_read_and_kept() {
    let hooks = Hooks::new();
    let state = StateDir::new(hooks.dir.path());
    let window = WindowName("w3".into());
    fs::create_dir_all(hooks.path("heartbeat")).unwrap();
    fs::create_dir_all(hooks.path("decisions")).unwrap();
    let beat = r#"{"state":"idle_prompt","last_activity":1759000000,"event":"Stop","last_tool":null,"session_id":null,"window":"w3","external_waits":[{"kind":"slurm","id":"77","since":5}],"dismissed_waits":["ci:1"],"last_turn_end":1759000000,"scheduled_wakeup_at":1759000900}"#;
    fs::write(hooks.path("heartbeat/w3.json"), beat).unwrap();
    let found = hook_files::read_heartbeat(&state, &window, Whose { pane: Some(PaneId::new(1)), ..Whose::default() })
        .unwrap()
        .unwrap()
        .heartbeat;
    assert_eq!((found.state.as_str(), found.last_turn_end), ("idle_prompt", Some(1_759_000_000)));
    assert_eq!(found.external_waits(), [("slurm".to_owned(), "77".to_owned())]);
    hooks.hook(&json!({"hook_event_name": "PostToolUse", "session_id": "s-1", "tool_name": "Bash"}));
    let ours = hooks.json("heartbeat/w3.json");
    assert_eq!(ours["external_waits"], json!([{"kind": "slurm", "id": "77", "since": 5}]));
    assert_eq!((&ours["dismissed_waits"], &ours["scheduled_wakeup_at"]), (&json!(["ci:1"]), &json!(1_759_000_900)));
    // A record whose tool context is a text, as the shell writes it; and its tombstone.
    let record = r#"{"ts":"2026-10-05T16:00:00Z","window":"w3","session_id":"","kind":"permission_prompt","prompt_excerpt":"Claude needs your permission","tool_context":"{\"tool\":\"Bash\"}","fingerprint":"0a1b2c3d4e5f"}"#;
    fs::write(hooks.path("decisions/w3.0a1b2c3d4e5f.json"), record).unwrap();
    let listed = decisions::list(&state).unwrap();
    assert_eq!(listed[0].record.as_ref().unwrap().tool_context, json!("{\"tool\":\"Bash\"}"));
    fs::write(hooks.path("decisions/w3.870a309be2b0.handled.json"), "{}").unwrap();
    hooks.hook(&json!({"hook_event_name": "Notification", "notification_type": "idle_prompt", "message": "Claude is waiting for your input"}));
    assert!(hooks.text("decisions/w3.870a309be2b0.json").is_none(), "a tombstone is terminal");
}
