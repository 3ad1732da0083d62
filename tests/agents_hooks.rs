//! Real agents with hooks that `ng hooks install` put into their user's settings. Needs what `scripts/test.sh` installs;
//! built only with the feature `lab`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/lab.rs"]
mod lab;
#[path = "support/tmux_server.rs"]
mod tmux_server;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{CLAUDE_VERSION, Lab, READY, START_WITHIN};
use nexus_watcher::logic::ids::WindowName;
use serde_json::Value;
use tmux_server::wait_until;

const ANSWER: Duration = Duration::from_secs(40);

/// Makes the lab's tmux server the watched one.
fn configure(lab: &Lab) {
    fs::create_dir_all(lab.state()).unwrap();
    fs::create_dir_all(lab.root().join("config")).unwrap();
    let config = format!("monitor:\n  tmux:\n    sockets: [\"{}\"]\n", lab.tmux.socket().display());
    fs::write(lab.root().join("config/nexus.yml"), config).unwrap();
}

/// Runs `ng hooks VERB --user` for an agent's home; returns its code and what it printed.
fn hooks(lab: &Lab, home: &Path, verb: &str, args: &[&str]) -> (i32, String) {
    let mut ng = lab.program(env!("CARGO_BIN_EXE_ng"));
    let output = ng.args(["hooks", verb, "--user"]).args(args).env("HOME", home).output().unwrap();
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

/// Installs the hooks into an agent's home before it starts.
fn install(lab: &Lab, home: &Path) {
    let (code, text) = hooks(lab, home, "install", &["--agent-version", CLAUDE_VERSION]);
    assert_eq!(code, 0, "{text}");
}

/// The heartbeat of a window, once it says this.
fn wait_beat(lab: &Lab, window: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
    let stem = WindowName(window.to_owned()).file_stem();
    wait_until(&format!("the heartbeat of {window}"), ANSWER, || {
        let text = fs::read_to_string(lab.state().join(format!("heartbeat/{stem}.json"))).unwrap_or_default();
        let beat: Value = serde_json::from_str(&text).unwrap_or_default();
        if is_meant(&beat) { Ok(beat) } else { Err(format!("{text}\n{}", lab.tmux.screen(window))) }
    })
}

/// What is kept of sessions: file and text.
fn sessions(lab: &Lab) -> Vec<(PathBuf, Value)> {
    let entries = fs::read_dir(lab.state().join("hook-sessions")).into_iter().flatten().flatten();
    let parsed = |path: &Path| serde_json::from_str(&fs::read_to_string(path).unwrap_or_default()).unwrap_or_default();
    entries.map(|entry| (entry.path(), parsed(&entry.path()))).collect()
}

#[test]
fn an_agent_accepts_the_installed_hooks_and_they_find_its_window() {
    let lab = Lab::start();
    configure(&lab);
    let lead = lab.claude("orchestrator");
    let home = lead.home().to_owned();
    install(&lab, &home);
    lead.start();
    let worker = lab.claude("w 2");
    install(&lab, worker.home());
    worker.start();
    for window in ["orchestrator", "w 2"] {
        // A version that did not know an event would open a warning instead.
        lab.tmux.wait_for(window, READY, START_WITHIN);
    }
    lab.tmux.send("w 2", "SCENARIO:bash rm -rf build");
    wait_beat(&lab, "w 2", |beat| beat["state"] == "permission_prompt");
    let records = fs::read_dir(lab.state().join("decisions")).unwrap().flatten();
    let names: Vec<String> = records.map(|record| record.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.len() == 1 && names[0].starts_with("w%202."), "{names:?}");

    // The orchestrator's question is refused, and its turn goes on.
    lab.tmux.send("orchestrator", "SCENARIO:ask ;; SCENARIO:text it went on without asking");
    let screen = lab.tmux.wait_for("orchestrator", "● it went on without asking", ANSWER);
    assert!(!screen.contains("Type something"), "{screen}");
    wait_beat(&lab, "orchestrator", |beat| beat["event"] == "Stop");
    assert!(lab.state().join("orchestrator-paste-received").exists());

    let (code, text) = hooks(&lab, &home, "status", &["--agent-version", CLAUDE_VERSION]);
    assert!(code == 0 && text.contains("13 of 13 events") && text.contains("orchestrator"), "{text}");
    assert!(!lab.state().join("hook-errors.log").exists());
    assert_eq!(hooks(&lab, &home, "uninstall", &[]).0, 0);
    assert!(!home.join(".claude/settings.json").exists());
}

#[test]
fn an_agent_that_an_agent_runs_is_not_taken_for_it() {
    let lab = Lab::start();
    configure(&lab);
    lab.claude("orchestrator").start();
    let worker = lab.claude("w2").args(&["--allowedTools", "Bash(claude:*)"]);
    install(&lab, worker.home());
    worker.start_ready();
    lab.tmux.send("w2", "SCENARIO:bash claude -p 'SUBSCENARIO:text inside' ;; SCENARIO:text outside");
    lab.tmux.wait_for("w2", "● outside", ANSWER);
    let beat = wait_beat(&lab, "w2", |beat| beat["event"] == "Stop");
    let sessions = sessions(&lab);
    let nested: Vec<_> = sessions.iter().filter(|(_, known)| known["place"].is_null()).collect();
    assert_eq!((sessions.len(), nested.len()), (2, 1), "{sessions:?}\n{}", lab.tmux.screen("w2"));
    assert_eq!(lab.state().join("heartbeat").read_dir().unwrap().count(), 1);
    let own = sessions.iter().find(|(_, known)| !known["place"].is_null()).unwrap();
    let session = own.0.file_stem().unwrap().to_string_lossy().into_owned();
    assert_eq!(beat["session_id"], session.as_str(), "the heartbeat is of the outer session");
}

#[test]
fn a_window_with_hooks_of_its_own_is_told_once() {
    let lab = Lab::start();
    configure(&lab);
    lab.claude("orchestrator").start();
    let worker = lab.claude("w2");
    install(&lab, worker.home());
    worker.settings(&lab.hooks("w2", false)).start_ready();
    lab.tmux.send("w2", "SCENARIO:slow 3");
    lab.tmux.wait_for("w2", "esc to interrupt", ANSWER);
    wait_beat(&lab, "w2", |beat| beat["state"] == "user_prompt" && beat.get("queued_prompts").is_none());
    wait_beat(&lab, "w2", |beat| beat["event"] == "Stop" && beat["state"] == "idle_prompt");
    let sessions = sessions(&lab);
    assert!(sessions.iter().all(|(_, known)| known["place"].is_null()), "{sessions:?}");
}
