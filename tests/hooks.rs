//! `ng hook`, `ng hooks settings`, `ng decision-ack` and `ng log-action` as programs, against a state directory.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs the real programs"
)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A state directory and `ng` with an environment of its own.
struct Nexus {
    dir: tempfile::TempDir,
}

impl Nexus {
    fn new() -> Self {
        let nexus = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(nexus.state()).unwrap();
        nexus
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("monitor/.state")
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.state().join(relative)
    }

    fn ng(&self, args: &[&str]) -> Command {
        let mut ng = Command::new(env!("CARGO_BIN_EXE_ng"));
        ng.args(args).env_clear().env("NEXUS_STATE_DIR", self.state()).env("HOME", self.dir.path());
        ng.env("TMUX_PANE", "%12").current_dir(self.dir.path());
        ng.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ng
    }

    fn run(&self, args: &[&str]) -> Output {
        feed(&mut self.ng(args), b"")
    }

    /// Runs a hook and checks that it is silent and successful.
    fn hook_raw(&self, event: &str, window: &str, input: &[u8]) {
        quiet(&feed(&mut self.ng(&["hook", event, "--window", window]), input));
    }

    fn hook(&self, window: &str, payload: &Value) {
        let event = payload["hook_event_name"].as_str().unwrap();
        self.hook_raw(event, window, payload.to_string().as_bytes());
    }

    fn text(&self, relative: &str) -> Option<String> {
        fs::read_to_string(self.path(relative)).ok()
    }

    fn json(&self, relative: &str) -> Value {
        let text = self.text(relative).unwrap_or_else(|| panic!("{relative} is missing"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{relative}: {error}: {text}"))
    }

    fn names(&self, relative: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(relative)) else { return Vec::new() };
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn open_decisions(&self) -> Vec<Value> {
        let live = self.names("decisions").into_iter().filter(|name| !name.ends_with(".handled.json"));
        live.map(|name| self.json(&format!("decisions/{name}"))).collect()
    }
}

fn feed(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that ends early closes its end; that is its right.
    let _early = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn quiet(output: &Output) {
    let printed = [&output.stdout[..], &output.stderr[..]].concat();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&printed).as_ref()), (Some(0), ""));
}

fn captured(file: &str) -> Vec<(String, Value)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/claude-hooks").join(file);
    let text = fs::read_to_string(path).unwrap();
    let read = |line| {
        let record: Value = serde_json::from_str(line).unwrap();
        (record["after"].as_str().unwrap().to_owned(), record["payload"].clone())
    };
    text.lines().map(read).collect()
}

fn bash(event: &str, id: &str) -> Value {
    json!({"hook_event_name": event, "session_id": "s-1", "tool_name": "Bash", "tool_use_id": id,
        "tool_input": {"command": "touch build.tmp"}})
}

#[test]
fn every_event_of_a_recorded_session_leaves_a_true_heartbeat_and_no_complaint() {
    for file in ["sequence-2.0.77.jsonl", "sequence-2.1.332.jsonl"] {
        let nexus = Nexus::new();
        let mut last_of_scene: Vec<(String, String, usize)> = Vec::new();
        for (scene, payload) in captured(file) {
            nexus.hook("w3", &payload);
            let beat = nexus.text("heartbeat/w3.json").map(|_| nexus.json("heartbeat/w3.json")).unwrap_or_default();
            let state = beat["state"].as_str().unwrap_or_default().to_owned();
            let is_clean_stop = beat["event"] == "Stop" && state == "idle_prompt";
            assert_eq!(beat.get("last_turn_end").is_some(), is_clean_stop, "{file} {scene}: {beat}");
            if last_of_scene.last().is_none_or(|(last, ..)| *last != scene) {
                last_of_scene.push((scene.clone(), String::new(), 0));
            }
            let last = last_of_scene.last_mut().unwrap();
            (last.1, last.2) = (state, nexus.open_decisions().len());
        }
        assert_eq!(nexus.text("hook-errors.log"), None, "{file}");
        let state_after = |scene: &str| {
            let found = last_of_scene.iter().find(|(name, ..)| name.starts_with(scene));
            found.map_or_else(|| panic!("{file} has no {scene}"), |(_, state, _)| state.as_str())
        };
        for (scene, state) in [
            ("text turn", "idle_prompt"),
            ("bash, permission prompt", "idle_prompt"),
            ("bash, denied", "permission_prompt"),
            ("question shown, answered", "idle_prompt"),
            ("question shown, Esc", "permission_prompt"),
            ("failing tool", "idle_prompt"),
            ("interrupted by Esc before", "user_prompt"),
            ("queued message", "idle_prompt"),
            ("/exit", "session_end"),
        ] {
            assert_eq!(state_after(scene), state, "{file} {scene}");
        }
        let open_after = |scene: &str| last_of_scene.iter().find(|(name, ..)| name.starts_with(scene)).unwrap().2;
        assert_eq!(open_after("bash, permission prompt"), 0, "{file}: answered in the pane");
        assert_eq!(open_after("bash, denied"), 1, "{file}: declined, which no event tells");
        let kinds: Vec<_> = nexus.open_decisions().iter().map(|d| d["kind"].as_str().unwrap().to_owned()).collect();
        assert!(kinds.contains(&"blocked_question".into()) && kinds.contains(&"idle_prompt".into()), "{kinds:?}");
    }
}

#[test]
fn a_permission_prompt_is_a_decision_at_once() {
    let nexus = Nexus::new();
    nexus.hook("w3", &bash("PreToolUse", "toolu_1"));
    assert_eq!(nexus.json("pending-tool/w3.json")["tool_input"]["command"], "touch build.tmp");
    nexus.hook("w3", &bash("PermissionRequest", ""));
    let open = nexus.open_decisions();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0]["kind"], "permission_prompt");
    assert_eq!(open[0]["prompt_excerpt"], "permission to use Bash: touch build.tmp");
    assert_eq!(nexus.json("heartbeat/w3.json")["state"], "permission_prompt");
    assert_eq!(nexus.json("heartbeat/w3.json")["pane"], "%12");
    nexus.hook("w3", &json!({"hook_event_name": "Stop"}));
    assert_eq!(nexus.open_decisions()[0]["unresolved"], true);
}

#[test]
fn a_pasted_signature_leaves_a_receipt_of_the_orchestrator() {
    let nexus = Nexus::new();
    let prompt = "<pasted_content id=\"3290\">\n…\n--- nexus-emit-sig 2026-05-11T13:42:01-07:00 0a1b2c ---\n</pasted_content id=\"3290\">";
    let payload = json!({"hook_event_name": "UserPromptSubmit", "session_id": "85ad3742-4e87-4e06-ad5e-b3de1cb7df53",
        "prompt": prompt});
    let args = ["hook", "UserPromptSubmit", "--window", "orchestrator", "--target"];
    quiet(&feed(&mut nexus.ng(&args), payload.to_string().as_bytes()));
    let receipt = nexus.json("receipts/0a1b2c.json");
    assert_eq!((&receipt["window"], &receipt["pane"]), (&"orchestrator".into(), &"%12".into()));
    assert_eq!(receipt["iso"], "2026-05-11T13:42:01-07:00");
    assert!(receipt["epoch_ms"].as_i64().unwrap() > 1_700_000_000_000);
    assert_eq!(nexus.text("orchestrator-session-id").unwrap(), "85ad3742-4e87-4e06-ad5e-b3de1cb7df53\n");
    assert_eq!(nexus.text("orchestrator-paste-received").unwrap(), "");
    // A worker that quotes the emit later does not take the proof away.
    nexus.hook("w3", &payload);
    assert_eq!(nexus.json("receipts/0a1b2c.json")["window"], "orchestrator");
}

#[test]
fn hostile_names_and_payloads_stay_inside_the_state_directory() {
    let nexus = Nexus::new();
    for window in ["../../escape", "a/b", ".hidden", "..", "x\ny", "--target", "ü \u{1b}[31m", "%2e%2e"] {
        nexus.hook(
            window,
            &json!({"hook_event_name": "UserPromptSubmit", "session_id": "../../../etc/x\n\t",
            "transcript_path": "/etc/passwd", "prompt": "nexus-emit-sig 2026-05-11T13:42:01Z ../../a ---"}),
        );
        nexus.hook(window, &bash("PreToolUse", "../../t"));
        nexus.hook(window, &bash("PermissionRequest", ""));
        nexus.hook(window, &json!({"hook_event_name": "Notification", "notification_type": "../../kind\u{1b}", "message": "\u{1b}[2J"}));
        nexus.hook(
            window,
            &json!({"hook_event_name": "StopFailure", "error": "../x", "last_assistant_message": "\u{0}"}),
        );
    }
    let outside: Vec<_> = fs::read_dir(nexus.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(outside, ["monitor"]);
    assert_eq!(nexus.names("heartbeat").len(), 8);
    assert!(nexus.names("decisions").iter().all(|name| !name.starts_with('.')));
    assert_eq!(nexus.names("receipts"), [""; 0]);
    for decision in nexus.open_decisions() {
        assert!(!decision.to_string().contains("\\u001b[2J"), "{decision}");
    }
}

#[test]
fn odd_input_is_one_line_in_the_log_and_changes_nothing() {
    for input in ["", "{", "[]", "\u{0}\u{1}", "null", "{\"hook_event_name\":\"Stop\"} trailing"] {
        let nexus = Nexus::new();
        nexus.hook_raw("Stop", "w3", input.as_bytes());
        let log = nexus.text("hook-errors.log").unwrap_or_default();
        assert_eq!(log.lines().count(), 1, "{input:?}: {log}");
        assert_eq!(nexus.names(""), ["hook-errors.log"], "{input:?}");
    }
    let nexus = Nexus::new();
    nexus.hook_raw("FutureEvent", "w3", b"{\"hook_event_name\":\"FutureEvent\"}");
    assert_eq!(nexus.names(""), [""; 0], "an event that nobody knows is ignored");
}

#[test]
fn the_error_log_does_not_grow_without_end() {
    let nexus = Nexus::new();
    fs::write(nexus.path("hook-errors.log"), "x".repeat(300_000)).unwrap();
    nexus.hook_raw("Stop", "w3", b"{");
    assert!(nexus.text("hook-errors.log").unwrap().len() < 2000);
    assert_eq!(nexus.names(""), ["hook-errors.log", "hook-errors.log.1"]);
}

#[test]
fn a_payload_beyond_the_limit_still_counts_as_a_sign_of_life() {
    let nexus = Nexus::new();
    let mut payload = bash("PostToolUse", "toolu_1");
    payload["tool_response"] = "x".repeat(3 << 20).into();
    nexus.hook("w3", &payload);
    assert_eq!(nexus.json("heartbeat/w3.json")["last_tool"], "Bash");
    payload["tool_response"] = "x".repeat(20 << 20).into();
    nexus.hook("w4", &payload);
    assert_eq!(nexus.json("heartbeat/w4.json")["state"], "busy");
    assert!(nexus.text("hook-errors.log").unwrap().contains("longer than"));
}

#[test]
fn an_input_that_is_never_closed_is_given_up_and_what_came_is_used() {
    let nexus = Nexus::new();
    let mut child = nexus.ng(&["hook", "Stop", "--window", "w3"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"hook_event_name\":\"Stop\"}").unwrap();
    let began = Instant::now();
    let status = child.wait().unwrap();
    assert!(began.elapsed() < Duration::from_secs(20) && status.success());
    drop(stdin);
    assert_eq!(nexus.json("heartbeat/w3.json")["state"], "idle_prompt");
}

#[test]
fn a_state_directory_that_cannot_be_written_is_no_concern_of_the_agent() {
    let nexus = Nexus::new();
    fs::remove_dir(nexus.state()).unwrap();
    // A file stands where the directory should be, which stops root too.
    fs::write(nexus.state(), "").unwrap();
    for event in ["UserPromptSubmit", "PreToolUse", "PermissionRequest", "Notification", "Stop", "StopFailure"] {
        nexus.hook("w3", &bash(event, "toolu_1"));
    }
    let mut nowhere = nexus.ng(&["hook", "Stop", "--window", "w3"]);
    quiet(&feed(nowhere.env_remove("NEXUS_STATE_DIR"), b"{\"hook_event_name\":\"Stop\"}"));
}

#[test]
fn two_hooks_at_once_leave_whole_files() {
    let nexus = Nexus::new();
    let payload = bash("PreToolUse", "toolu_1").to_string();
    for _ in 0..10 {
        let start = || {
            let mut child = nexus.ng(&["hook", "PreToolUse", "--window", "w3"]).spawn().unwrap();
            child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
            child
        };
        let children = [start(), start(), start()];
        for child in children {
            quiet(&child.wait_with_output().unwrap());
        }
        assert_eq!(nexus.json("heartbeat/w3.json")["state"], "busy");
        assert_eq!(nexus.json("pending-tool/w3.json")["tool_use_id"], "toolu_1");
    }
    assert_eq!(nexus.names("heartbeat"), ["w3.json"]);
    assert_eq!(nexus.text("hook-errors.log"), None);
}

#[test]
fn an_acked_decision_stays_closed_when_the_hook_fires_again() {
    let nexus = Nexus::new();
    let idle = json!({"hook_event_name": "Notification", "notification_type": "idle_prompt",
        "message": "Claude is waiting for your input"});
    nexus.hook("w3", &idle);
    let fingerprint = nexus.open_decisions()[0]["fingerprint"].as_str().unwrap().to_owned();
    let acked = nexus.run(&["decision-ack", "w3", &fingerprint, "--reason", "seen"]);
    assert_eq!(acked.status.code(), Some(0));
    nexus.hook("w3", &idle);
    assert_eq!(nexus.names("decisions"), [format!("w3.{fingerprint}.handled.json")]);
    let again = nexus.run(&["decision-ack", "w3", &fingerprint]);
    assert_eq!((again.status.code(), again.stdout.starts_with(b"already acked: w3")), (Some(0), true));
    let log = nexus.text("action-log.jsonl").unwrap();
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(
        log.contains(&format!("\"event\":\"decision-ack\",\"note\":\"seen\",\"fingerprint\":\"{fingerprint}\"")),
        "{log}"
    );
}

#[test]
fn a_decision_that_came_back_is_said_to_have_come_back() {
    let nexus = Nexus::new();
    let idle = json!({"hook_event_name": "Notification", "notification_type": "idle_prompt", "message": "m"});
    nexus.hook("w3", &idle);
    let fingerprint = nexus.open_decisions()[0]["fingerprint"].as_str().unwrap().to_owned();
    let file = nexus.path(&format!("decisions/w3.{fingerprint}.json"));
    // It was told, then somebody removed the file, then the hook wrote it again.
    fs::write(nexus.path("pending-decisions-emit-state.tsv"), format!("w3\t{fingerprint}\t1790000000\n")).unwrap();
    let acked = nexus.run(&["decision-ack", "w3", &fingerprint]);
    assert!(String::from_utf8_lossy(&acked.stderr).contains("came back"), "{acked:?}");
    // Another tool writes the file although it was acked.
    fs::write(&file, "{}").unwrap();
    let acked = nexus.run(&["decision-ack", file.to_str().unwrap()]);
    assert_eq!(acked.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&acked.stderr).contains("came back") && !file.exists());
}

#[test]
fn decision_ack_has_the_documented_exit_codes() {
    let nexus = Nexus::new();
    for id in ["toolu_1", "toolu_2"] {
        nexus.hook("a/b", &bash("PreToolUse", id));
        nexus.hook("a/b", &bash("PermissionRequest", ""));
    }
    let outside = nexus.dir.path().join("a%2Fb.0a1b2c3d4e5f.json");
    fs::write(&outside, "{}").unwrap();
    for (args, code) in [
        (vec!["decision-ack", "a/b", "0a1b2c3d4e5f"], 3),
        (vec!["decision-ack", "a/b", "NOT-HEX"], 2),
        (vec!["decision-ack", "a/b"], 2),
        (vec!["decision-ack"], 2),
        (vec!["decision-ack", outside.to_str().unwrap()], 2),
        (vec!["decision-ack", "other", "--all"], 3),
        (vec!["decision-ack", "a/b", "--all"], 0),
        (vec!["decision-ack", "a/b", "--all"], 0),
    ] {
        let output = nexus.run(&args);
        assert_eq!(output.status.code(), Some(code), "{args:?} {output:?}");
        assert_eq!(output.stderr.is_empty(), code == 0, "{args:?} {output:?}");
    }
    assert_eq!(nexus.open_decisions().len(), 0);
    assert!(outside.exists());
}

#[test]
fn decision_ack_fails_when_the_tombstone_cannot_be_written() {
    let nexus = Nexus::new();
    nexus.hook("w3", &bash("PermissionRequest", "toolu_1"));
    let fingerprint = nexus.open_decisions()[0]["fingerprint"].as_str().unwrap().to_owned();
    let live = nexus.path(&format!("decisions/w3.{fingerprint}.json"));
    // A directory that is not empty stands for a live file that can't be removed, for root too.
    fs::remove_file(&live).unwrap();
    fs::create_dir_all(live.join("x")).unwrap();
    let output = nexus.run(&["decision-ack", "w3", &fingerprint]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn log_action_writes_one_compact_line_and_nothing_else() {
    let nexus = Nexus::new();
    let args = [
        "log-action",
        "monitor",
        "--event",
        "wrap-up",
        "--note",
        "done",
        "--extra",
        "window=w3",
        "--extra",
        "report=a=b.md",
    ];
    quiet(&nexus.run(&args));
    let log = nexus.text("action-log.jsonl").unwrap();
    let (ts, rest) = log.split_once(",\"agent\"").unwrap();
    assert!(ts.starts_with("{\"ts\":\"20"), "{ts}");
    assert_eq!(rest, ":\"monitor\",\"event\":\"wrap-up\",\"note\":\"done\",\"report\":\"a=b.md\",\"window\":\"w3\"}\n");
    for bad in ["novalue", "event=x", "=x", "a b=c"] {
        let output = nexus.run(&["log-action", "monitor", "--event", "e", "--extra", bad]);
        assert_eq!(output.status.code(), Some(2), "{bad}");
    }
    assert_eq!(nexus.text("action-log.jsonl").unwrap(), log);
}

#[test]
fn the_settings_run_the_hook_through_a_shell_whatever_the_names() {
    for window in ["w3", "it's $(touch pwned) \"x\"", "a/b"] {
        let nexus = Nexus::new();
        let args = ["hooks", "settings", "--window", window, "--target", "--agent-version", "2.1.332"];
        let output = nexus.run(&args);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let path = String::from_utf8(output.stdout).unwrap();
        assert!(Path::new(path.trim_end()).starts_with(nexus.path("hook-settings")), "{path}");
        let settings: Value = serde_json::from_str(&fs::read_to_string(path.trim_end()).unwrap()).unwrap();
        for (event, entry) in settings["hooks"].as_object().unwrap() {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(entry[0]["hooks"][0]["command"].as_str().unwrap());
            shell.env_clear().current_dir(nexus.dir.path());
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            quiet(&feed(&mut shell, bash(event, "toolu_1").to_string().as_bytes()));
        }
        assert_eq!(nexus.names("heartbeat").len(), 1);
        assert!(nexus.path("orchestrator-heartbeat").exists());
        assert!(!nexus.dir.path().join("pwned").exists());
        assert_eq!(nexus.text("hook-errors.log"), None);
    }
}

#[test]
fn every_event_in_the_settings_is_known_to_that_version() {
    let known_2_0_77 = "PreToolUse PostToolUse PostToolUseFailure Notification UserPromptSubmit SessionStart SessionEnd \
        Stop SubagentStart SubagentStop PreCompact PermissionRequest";
    for version in [None, Some("2.0.77"), Some("unknown")] {
        let nexus = Nexus::new();
        let mut args = vec!["hooks", "settings", "--window", "w", "--out", "-"];
        args.extend(version.map(|_| "--agent-version"));
        args.extend(version);
        let settings: Value = serde_json::from_slice(&nexus.run(&args).stdout).unwrap();
        for event in settings["hooks"].as_object().unwrap().keys() {
            assert!(known_2_0_77.split_whitespace().any(|known| known == event), "{version:?} {event}");
        }
    }
}
