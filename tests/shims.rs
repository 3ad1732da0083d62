//! The names in `monitor/` that other tools call: run as scripts, by every shell that is here, from anywhere.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and starts programs")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[path = "support/tmux_server.rs"]
mod tmux_server;

use tmux_server::TmuxServer;

/// A checkout with our scripts and nothing built in it, and a home.
struct Checkout {
    dir: tempfile::TempDir,
}

impl Checkout {
    fn new() -> Self {
        let checkout = Self { dir: tempfile::tempdir().unwrap() };
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("monitor");
        for folder in ["", "hooks"] {
            fs::create_dir_all(checkout.path("a tree/monitor").join(folder)).unwrap();
            for entry in fs::read_dir(from.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    let to = checkout.path("a tree/monitor").join(folder).join(path.file_name().unwrap());
                    fs::copy(&path, to).unwrap();
                }
            }
        }
        fs::create_dir_all(checkout.state()).unwrap();
        checkout
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(relative)
    }

    fn state(&self) -> PathBuf {
        self.path("a tree/monitor/.state")
    }

    /// Puts the built programs into a folder.
    fn build(&self, folder: &str) {
        let folder = self.path(folder);
        fs::create_dir_all(&folder).unwrap();
        for program in [env!("CARGO_BIN_EXE_ng"), env!("CARGO_BIN_EXE_nexus-watcher")] {
            symlink(program, folder.join(Path::new(program).file_name().unwrap())).unwrap();
        }
    }

    fn command(&self, script: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(script);
        command.args(args).env_clear().env("HOME", self.path("home")).env("PATH", "/usr/bin:/bin");
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a script of the checkout's `monitor/`.
    fn run(&self, script: &str, args: &[&str], environment: &[(&str, &str)], input: &str) -> Said {
        let mut command = self.command(&self.path("a tree/monitor").join(script), args);
        said(command.envs(environment.iter().copied()), input)
    }

    /// Runs a hook script for a worker; it must be silent and succeed.
    fn hook(&self, script: &str, args: &[&str], payload: &Value) {
        let environment = [("NEXUS_WORKER_WINDOW", "w3")];
        let answer = self.run(&format!("hooks/{script}"), args, &environment, &payload.to_string());
        assert_eq!((answer.code, answer.text().as_str()), (0, ""), "{script}");
    }

    fn json(&self, relative: &str) -> Value {
        let text =
            fs::read_to_string(self.state().join(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"));
        serde_json::from_str(&text).unwrap()
    }

    fn has(&self, relative: &str) -> bool {
        self.state().join(relative).exists()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.state().join(folder)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// How a script ended.
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    fn text(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

fn said(command: &mut Command, input: &str) -> Said {
    let mut child = command.spawn().unwrap();
    let _ended_early = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code().unwrap(), out: text(&output.stdout), err: text(&output.stderr) }
}

fn bash(event: &str, id: &str) -> Value {
    json!({"hook_event_name": event, "session_id": "s-1", "tool_name": "Bash", "tool_use_id": id,
        "tool_input": {"command": "touch x"}})
}

#[test]
fn the_program_is_found_wherever_it_was_built_or_installed() {
    for (folder, environment) in [
        ("a tree/target/release", None),
        ("a tree/target/debug", None),
        ("home/.local/bin", None),
        ("home/.cargo/bin", None),
        ("elsewhere", Some("NEXUS_BIN_DIR")),
        ("in path", Some("PATH")),
    ] {
        let checkout = Checkout::new();
        checkout.build(folder);
        let place = checkout.path(folder).display().to_string();
        let value = if environment == Some("PATH") { format!("/usr/bin:/bin:{place}") } else { place };
        let environment: Vec<(&str, &str)> = environment.iter().map(|name| (*name, value.as_str())).collect();
        for script in ["ng", "pane-state.sh"] {
            let answer = checkout.run(script, &["--help"], &environment, "");
            assert!(answer.code == 0 && answer.out.contains("Usage: ng"), "{folder} {script}: {}", answer.text());
        }
    }
}

#[test]
fn without_a_built_program_everyone_says_so_and_no_agent_is_stopped() {
    let checkout = Checkout::new();
    // Another program of that name, and this folder's own script in PATH.
    fs::create_dir_all(checkout.path("other")).unwrap();
    fs::write(checkout.path("other/ng"), "#!/bin/sh\necho wrong\n").unwrap();
    fs::set_permissions(checkout.path("other/ng"), fs::Permissions::from_mode(0o755)).unwrap();
    let monitor = checkout.path("a tree/monitor");
    let search = format!("/usr/bin:/bin:{}:{}", checkout.path("other").display(), monitor.display());
    let environment = [("PATH", search.as_str()), ("NEXUS_WORKER_WINDOW", "w3")];
    for (script, args, code) in
        [("ng", vec!["tasks"], 1), ("pane-state.sh", vec!["0"], 2), ("worker-heartbeat.sh", vec!["busy"], 0)]
    {
        let answer = checkout.run(script, &args, &environment, "{}");
        assert_eq!((answer.code, answer.out.as_str()), (code, ""), "{script}: {}", answer.text());
        assert!(answer.err.contains("no built program found; run 'cargo build --release' in "), "{}", answer.err);
    }
    for entry in fs::read_dir(checkout.path("a tree/monitor/hooks")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if matches!(name.as_str(), "run_hook.sh" | "block-askuserquestion.sh") {
            continue;
        }
        let args: &[&str] = if name == "stamp-clear.sh" { &["over-limit"] } else { &[] };
        let answer = checkout.run(&format!("hooks/{name}"), args, &environment, "{}");
        assert!(answer.code == 0 && answer.err.contains("no built program"), "{name}: {}", answer.text());
        // Half a checkout: a shell that can't source a file would end with the code that stops an agent.
        fs::rename(checkout.path("a tree/monitor/hooks/run_hook.sh"), checkout.path("kept")).unwrap();
        assert_eq!(checkout.run(&format!("hooks/{name}"), args, &environment, "{}").code, 0, "{name}");
        fs::rename(checkout.path("kept"), checkout.path("a tree/monitor/hooks/run_hook.sh")).unwrap();
    }
}

#[test]
fn a_link_and_every_shell_do() {
    let checkout = Checkout::new();
    checkout.build("a tree/target/debug");
    fs::create_dir_all(checkout.path("links")).unwrap();
    symlink("../a tree/monitor/pane-state.sh", checkout.path("links/ps")).unwrap();
    let answer = said(&mut checkout.command(&checkout.path("links/ps"), &["--states"]), "");
    assert_eq!((answer.code, answer.out.lines().next()), (0, Some("idle")), "{}", answer.text());
    let mut shells = 0;
    for shell in ["/bin/sh", "/bin/dash", "/bin/bash", "/bin/busybox"].map(Path::new) {
        if !shell.exists() {
            continue;
        }
        shells += 1;
        let script = checkout.path("a tree/monitor/worker-heartbeat.sh");
        let mut command = checkout.command(shell, &[]);
        if shell.ends_with("busybox") {
            command.arg("sh");
        }
        command.arg("-u").arg(script).arg("turn_end").env("NEXUS_WORKER_WINDOW", "w3");
        let answer = said(&mut command, r#"{"hook_event_name":"Stop"}"#);
        assert_eq!((answer.code, answer.text().as_str()), (0, ""), "{}", shell.display());
        assert_eq!(checkout.json("heartbeat/w3.json")["state"], "idle_prompt");
        fs::remove_file(checkout.state().join("heartbeat/w3.json")).unwrap();
    }
    assert!(shells >= 2);
}

#[test]
fn pane_state_has_the_flags_and_codes_of_the_original() {
    let checkout = Checkout::new();
    checkout.build("a tree/target/debug");
    fs::create_dir_all(checkout.path("a tree/config")).unwrap();
    fs::write(checkout.path("a tree/config/nexus.yml"), "monitor:\n  tmux:\n    sessions: [\"*\"]\n").unwrap();
    let server = TmuxServer::start(80, 24);
    server.window("w 3", Path::new("/"), &["/bin/sleep", "1000"]);
    let index = server.format("w 3", "#{window_index}");
    let socket = server.socket().display().to_string();
    let ask = |args: &[&str]| {
        let environment = [("NEXUS_TMUX_SOCKET", socket.as_str())];
        checkout.run("pane-state.sh", args, &environment, "")
    };
    for args in [vec!["w 3"], vec![index.trim()], vec![&format!("nexus:{}", index.trim())]] {
        let answer = ask(&args);
        assert!(answer.code == 0 && answer.out.contains(" name=w_3 "), "{args:?}: {}", answer.text());
        assert!(answer.out.contains(" agent=unknown agent_version=unknown"), "{}", answer.out);
    }
    assert!(ask(&["--all", "nexus"]).out.lines().count() >= 2);
    assert!(ask(&["--states"]).out.lines().any(|word| word == "idle-orphan-async"));
    for (args, code) in
        [(vec!["77"], 3), (vec!["nobody"], 3), (vec!["--fixture"], 64), (vec!["--bogus"], 64), (vec![], 64)]
    {
        let answer = ask(&args);
        assert_eq!((answer.code, answer.out.as_str()), (code, ""), "{args:?}: {}", answer.text());
    }
    let nowhere = checkout.run("pane-state.sh", &["0"], &[("NEXUS_TMUX_SOCKET", "/no/such/socket")], "");
    assert_eq!(nowhere.code, 2, "{}", nowhere.text());
}

#[test]
fn a_fixture_is_judged_with_the_heartbeat_that_is_given() {
    let checkout = Checkout::new();
    checkout.build("a tree/target/debug");
    let screen = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/claude-2.1.332/idle-fresh--80x24.ansi");
    let screen = screen.display().to_string();
    let beat = checkout.path("beat.json").display().to_string();
    fs::write(&beat, r#"{"state":"busy","last_activity":1000,"event":null,"window":"w3","external_waits":[]}"#)
        .unwrap();
    let base = ["--fixture", &screen, "--window", "4", "--name", "w3", "--active", "1"];
    let ask = |more: &[&str]| {
        let args: Vec<&str> = base.iter().chain(more).copied().collect();
        let answer = checkout.run("pane-state.sh", &args, &[], "");
        assert_eq!(answer.code, 0, "{}", answer.text());
        answer
    };
    assert!(ask(&[]).out.starts_with("state=idle active=1 window=4 name=w3 "));
    assert!(ask(&["--heartbeat-file", &beat, "--now", "1010"]).out.starts_with("state=busy "));
    assert!(ask(&["--heartbeat-file", &beat, "--now", "1100"]).out.starts_with("state=idle "));
    assert!(
        ask(&["--heartbeat-file", &beat, "--now", "1100", "--heartbeat-staleness", "200"])
            .out
            .starts_with("state=busy ")
    );
    assert!(ask(&["--heartbeat-file", "/no/such/file"]).out.starts_with("state=idle "));
    assert!(ask(&["--bg-shells", "2"]).out.starts_with("state=working-background "));
}

#[test]
fn every_override_of_a_fixture_does_what_it_says() {
    let checkout = Checkout::new();
    checkout.build("a tree/target/debug");
    let screen = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/claude-2.1.332/idle-fresh--80x24.ansi");
    let screen = screen.display().to_string();
    let file = |name: &str, value: &Value| {
        fs::write(checkout.path(name), value.to_string()).unwrap();
        checkout.path(name).display().to_string()
    };
    let ask = |args: &[&str]| {
        let args: Vec<&str> = ["--fixture", &screen].iter().chain(args).copied().collect();
        let answer = checkout.run("pane-state.sh", &args, &[], "");
        assert_eq!(answer.code, 0, "{}", answer.text());
        answer.out
    };
    let is = |args: &[&str], state: &str| {
        let out = ask(args);
        assert!(out.starts_with(&format!("state={state} ")), "{args:?}: {out}");
    };

    // A turn's end counts for half an hour, another word of a hook for half a minute.
    let ended = json!({"state": "busy", "last_activity": 1000, "last_turn_end": 1000, "window": "w3"});
    let ended = file("ended.json", &ended);
    is(&["--heartbeat-file", &ended, "--now", "2800"], "busy");
    is(&["--heartbeat-file", &ended, "--now", "2801"], "idle");
    is(&["--heartbeat-file", &ended, "--now", "2801", "--heartbeat-turn-end-staleness", "1801"], "busy");
    is(&["--heartbeat-file", &ended, "--now", "1011", "--heartbeat-turn-end-staleness", "10"], "idle");

    let paced = json!({"state": "idle_prompt", "last_activity": 1000, "window": "w3", "scheduled_wakeup_at": 9000});
    let paced = file("paced.json", &paced);
    is(&["--heartbeat-file", &paced, "--now", "1060"], "working-self-paced");
    is(&["--heartbeat-file", &paced, "--now", "1061"], "idle");
    is(&["--heartbeat-file", &paced, "--now", "1061", "--heartbeat-async-staleness", "61"], "working-self-paced");

    let notice = "You've hit your weekly limit · resets 3am (UTC)";
    let limit = json!({"ts": 1000, "session_id": "s", "error_type": "rate_limit", "error_message": notice,
        "reset_at": "3am_UTC", "window": "w3", "hook_event_name": "StopFailure"});
    let limit = file("limit.json", &limit);
    is(&["--over-limit-file", &limit, "--now", "98200"], "over-limit");
    assert!(ask(&["--over-limit-file", &limit, "--now", "98200"]).contains(" reset_at=3am_UTC limit=weekly "));
    is(&["--over-limit-file", &limit, "--now", "98201"], "idle");
    is(&["--over-limit-file", &limit, "--heartbeat-file", &ended, "--now", "2900"], "over-limit");
    let later = json!({"state": "busy", "last_activity": 1001, "window": "w3", "session_id": "s"});
    let later = file("later.json", &later);
    is(&["--over-limit-file", &limit, "--heartbeat-file", &later, "--now", "2900"], "idle");
    is(&["--over-limit-file", "/no/such/file"], "idle");

    // What runs below a process that lives: an agent there is named, and so is that none is.
    let agent = checkout.path("claude");
    fs::copy("/bin/sleep", &agent).unwrap();
    let mut child = std::process::Command::new(&agent).arg("1000").spawn().unwrap();
    let pid = child.id().to_string();
    let args = ["--pane-pid", pid.as_str(), "--bg-shells", "2", "--bg-cpu", "7", "--bg-oldest-start", "1000"];
    let known = ask(&[&args[..], &["--explain"]].concat());
    child.kill().unwrap();
    child.wait().unwrap();
    let gone = ask(&args[..2]);
    assert!(gone.starts_with("state=absent ") && gone.contains(" evidence=fixture-no-process "), "{gone}");
    assert!(known.starts_with("state=working-background "), "{known}");
    assert!(known.contains(&format!("pid {pid}")) && known.contains("2 background shells, 7 ticks"), "{known}");
    for bad in [["--bg-cpu", "many"], ["--pane-pid", "-1"], ["--now", "soon"], ["--heartbeat-staleness", "x"]] {
        let args = ["--fixture", &screen, bad[0], bad[1]];
        assert_eq!(checkout.run("pane-state.sh", &args, &[], "").code, 64, "{bad:?}");
    }
    for flag in ["--over-limit-file", "--bg-oldest-start", "--heartbeat-async-staleness", "--pane-pid"] {
        let args = ["--fixture", &screen, flag];
        assert_eq!(checkout.run("pane-state.sh", &args, &[], "").code, 64, "{flag} without a value");
    }
}

#[test]
fn the_hook_scripts_together_do_what_one_hook_does() {
    let checkout = Checkout::new();
    checkout.build("a tree/target/debug");
    checkout.hook("pending-tool-record.sh", &[], &bash("PreToolUse", "t1"));
    assert_eq!(checkout.json("pending-tool/w3.json")["tool"], "Bash");
    checkout.hook("../worker-heartbeat.sh", &["permission_prompt"], &bash("PermissionRequest", ""));
    assert_eq!(checkout.json("heartbeat/w3.json")["state"], "permission_prompt");
    let notice = json!({"hook_event_name": "Notification", "notification_type": "permission_prompt", "message": "Claude needs your permission"});
    checkout.hook("../worker-heartbeat.sh", &["notify"], &notice);
    checkout.hook("notification-record.sh", &[], &notice);
    checkout.hook("decision-emit.sh", &[], &notice);
    let log = fs::read_to_string(checkout.state().join("worker-notifications.jsonl")).unwrap();
    assert_eq!((log.lines().count(), checkout.names("decisions").len()), (1, 1), "one line, one record");
    checkout.hook("../worker-heartbeat.sh", &["busy"], &bash("PostToolUse", "t1"));
    assert!(checkout.has("pending-tool/w3.json") && checkout.names("decisions")[0].ends_with(".handled.json"));
    checkout.hook("pending-tool-record.sh", &["--clear"], &bash("PostToolUse", "t1"));
    assert!(!checkout.has("pending-tool/w3.json"));

    let failed = |error: &str, message: &str| json!({"hook_event_name": "StopFailure", "error": error, "last_assistant_message": message});
    for (error, message, stamp) in [
        ("server_error", "API Error: 500", "turn-failure"),
        ("rate_limit", "You've hit your limit · resets 3am", "over-limit"),
    ] {
        checkout.hook("over-limit-emit.sh", &[], &failed(error, message));
        checkout.hook("turn-failure-emit.sh", &[], &failed(error, message));
        assert!(checkout.has(&format!("{stamp}/w3.json")), "{stamp}");
        checkout.hook("stamp-clear.sh", &["over-limit"], &json!({"hook_event_name": "Stop"}));
        checkout.hook("stamp-clear.sh", &["turn-failure"], &json!({"hook_event_name": "Stop"}));
        assert!(!checkout.has(&format!("{stamp}/w3.json")), "{stamp}");
    }
    let idle = json!({"hook_event_name": "Notification", "notification_type": "idle_prompt", "message": "Claude is waiting for your input"});
    checkout.hook("decision-emit.sh", &[], &idle);
    checkout.hook("decision-mark-unresolved.sh", &[], &json!({"hook_event_name": "Stop"}));
    let open = checkout.names("decisions").into_iter().find(|name| !name.contains("handled")).unwrap();
    assert_eq!(checkout.json(&format!("decisions/{open}"))["unresolved"], true);
}

#[test]
fn the_orchestrators_scripts_pin_its_session_and_refuse_its_questions() {
    let checkout = Checkout::new();
    checkout.build("a tree/target/debug");
    let session = "85ad3742-4e87-4e06-ad5e-b3de1cb7df53";
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": "x"}).to_string();
    let answer = checkout.run("hooks/orchestrator-session-pin.sh", &[], &[], &prompt);
    assert_eq!((answer.code, answer.text().as_str()), (0, ""));
    assert_eq!(fs::read_to_string(checkout.state().join("orchestrator-session-id")).unwrap(), format!("{session}\n"));
    assert!(checkout.has("orchestrator-paste-received") && checkout.has("heartbeat/orchestrator.json"));

    let question =
        json!({"hook_event_name": "PreToolUse", "tool_name": "AskUserQuestion", "tool_input": {}}).to_string();
    let shim = checkout.run("hooks/block-askuserquestion.sh", &[], &[], &question);
    let state = checkout.state().display().to_string();
    let args = ["hook", "PreToolUse", "--window", "o", "--target", "--state", &state];
    let own = checkout.run("ng", &args, &[], &question);
    assert_eq!((shim.code, own.code, &shim.out), (2, 2, &own.out));
    assert_eq!(shim.err, own.err, "both say the same");
    // A worker that inherited the orchestrator's environment is a worker.
    let inherited = [("NEXUS_WORKER_WINDOW", "w3"), ("NEXUS_IS_ORCHESTRATOR", "1")];
    assert_eq!(checkout.run("hooks/pending-tool-record.sh", &[], &inherited, &question).code, 0);
    // No window at all: not an agent of ours.
    assert_eq!(checkout.run("worker-heartbeat.sh", &["busy"], &[], "{}").text(), "");
    assert_eq!(checkout.names("heartbeat").len(), 3);
}
