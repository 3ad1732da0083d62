//! `ng hooks install`, `status` and `uninstall` as programs, against settings in a home of their own; and the hooks of a
//! user's settings, which find their window by themselves.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs the real programs"
)]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

#[path = "support/tmux_server.rs"]
mod tmux_server;

use tmux_server::TmuxServer;

/// A person's home with an agent of one version, and a nexus.
struct Person {
    dir: tempfile::TempDir,
}

impl Person {
    fn new(version: &str) -> Self {
        let person = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(person.state()).unwrap();
        person.agent(version);
        person
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(relative)
    }

    fn state(&self) -> PathBuf {
        self.path("nexus/monitor/.state")
    }

    fn settings(&self) -> PathBuf {
        self.path(".claude/settings.json")
    }

    /// Installs an agent of this version, as its package manager does.
    fn agent(&self, version: &str) {
        let package = self.path("lib/node_modules/@anthropic-ai/claude-code");
        fs::create_dir_all(package.join("bin")).unwrap();
        fs::create_dir_all(self.path("bin")).unwrap();
        let text = json!({"name": "@anthropic-ai/claude-code", "version": version});
        fs::write(package.join("package.json"), text.to_string()).unwrap();
        fs::write(package.join("bin/claude.exe"), "#!/bin/sh\nexit 1\n").unwrap();
        fs::set_permissions(package.join("bin/claude.exe"), fs::Permissions::from_mode(0o755)).unwrap();
        let _there_already = symlink(package.join("bin/claude.exe"), self.path("bin/claude"));
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut ng = Command::new(program);
        ng.args(args).env_clear().env("NEXUS_STATE_DIR", self.state()).env("HOME", self.path(""));
        ng.env("PATH", self.path("bin")).current_dir(self.path("nexus"));
        ng.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        ng
    }

    /// Runs `ng hooks ...`; returns its code and all that it printed.
    fn hooks(&self, args: &[&str]) -> (i32, String) {
        let args: Vec<&str> = ["hooks"].iter().chain(args).copied().collect();
        said(&self.command(env!("CARGO_BIN_EXE_ng"), &args).output().unwrap())
    }

    fn write(&self, text: &str) {
        fs::create_dir_all(self.path(".claude")).unwrap();
        fs::write(self.settings(), text).unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(self.settings()).unwrap()
    }

    /// The events of the settings that call a program ending in `ng`.
    fn events(&self) -> Vec<String> {
        let settings: Value = serde_json::from_str(&self.text()).unwrap();
        let hooks = settings["hooks"].as_object().cloned().unwrap_or_default();
        let is_ours = |entries: &Value| entries.to_string().contains("/ng hook ");
        hooks.into_iter().filter(|(_, entries)| is_ours(entries)).map(|(event, _)| event).collect()
    }
}

fn said(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

const OTHERS: &str = "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": [ {\"hooks\": [ {\"type\": \"command\", \"command\": \"say done\"} ]} ]\n    },\n    \"x-unknown\": 1.0e3\n}\n";

#[test]
fn nothing_is_written_unless_a_file_is_named() {
    let person = Person::new("2.1.332");
    for verb in ["install", "uninstall"] {
        let (code, text) = person.hooks(&[verb]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("--user, --project DIR or --settings FILE"), "{text}");
    }
    assert!(!person.path(".claude").exists());
    assert_eq!(person.hooks(&["install", "--user", "--project", "."]).0, 2);
}

#[test]
fn an_install_keeps_all_else_and_its_undo_brings_the_bytes_back() {
    let person = Person::new("2.1.332");
    person.write(OTHERS);
    fs::set_permissions(person.settings(), fs::Permissions::from_mode(0o640)).unwrap();
    let (code, diff) = person.hooks(&["install", "--user", "--dry-run"]);
    assert!(code == 0 && diff.contains("+        \"StopFailure\": ["), "{diff}");
    assert_eq!(person.text(), OTHERS);

    let (code, text) = person.hooks(&["install", "--user"]);
    assert!(code == 0 && text.contains("added    StopFailure") && text.contains("claude 2.1.332"), "{text}");
    assert_eq!(person.events().len(), 13);
    assert!(person.text().contains("{\"type\": \"command\", \"command\": \"say done\"}"), "{}", person.text());
    assert!(person.text().ends_with("\"x-unknown\": 1.0e3\n}\n"));
    assert_eq!(fs::metadata(person.settings()).unwrap().permissions().mode() & 0o777, 0o640);
    let installed = person.text();
    let (code, text) = person.hooks(&["install", "--user"]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
    assert_eq!(person.text(), installed);

    let (code, text) = person.hooks(&["uninstall", "--user"]);
    assert_eq!((code, person.text().as_str()), (0, OTHERS), "{text}");
    let names: Vec<_> = fs::read_dir(person.path(".claude")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["settings.json"]);
    let (code, text) = person.hooks(&["uninstall", "--user"]);
    assert!(code == 0 && text.contains("nothing to change"), "{text}");
}

#[test]
fn the_copy_brings_back_what_an_edit_could_not() {
    let person = Person::new("2.1.332");
    for before in ["{ \n\n }", "", "\n"] {
        person.write(before);
        person.hooks(&["install", "--user"]);
        assert_eq!(person.hooks(&["uninstall", "--user"]).0, 0);
        assert_eq!(person.text(), before);
        assert_eq!(fs::read_dir(person.path(".claude")).unwrap().count(), 1, "nothing beside it");
    }
}

#[test]
fn what_was_changed_after_the_install_stays_when_it_is_undone() {
    let person = Person::new("2.1.332");
    person.write(OTHERS);
    person.hooks(&["install", "--user"]);
    person.write(&person.text().replace("opus", "haiku"));
    let (code, text) = person.hooks(&["uninstall", "--user"]);
    assert!(code == 0 && text.contains(".before-nexus"), "{text}");
    assert_eq!(person.text(), OTHERS.replace("opus", "haiku"));
}

#[test]
fn a_file_that_was_not_there_is_gone_again() {
    let person = Person::new("2.1.332");
    assert_eq!(person.hooks(&["install", "--user"]).0, 0);
    assert_eq!(fs::metadata(person.settings()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(person.hooks(&["uninstall", "--user"]).0, 0);
    assert!(!person.settings().exists());
}

#[test]
fn the_events_are_those_of_the_installed_version_and_follow_it() {
    let person = Person::new("2.0.77");
    person.hooks(&["install", "--user"]);
    let old = person.events();
    assert!(!old.contains(&"StopFailure".into()) && old.contains(&"PreCompact".into()), "{old:?}");
    person.agent("2.1.332");
    let (code, text) = person.hooks(&["status", "--user"]);
    assert!(code == 1 && text.contains("missing         StopFailure"), "{text}");
    let (_, text) = person.hooks(&["install", "--user"]);
    assert!(text.contains("added    StopFailure") && !text.contains("updated"), "{text}");
    person.agent("2.0.77");
    let (code, text) = person.hooks(&["status", "--user"]);
    assert!(code == 1 && text.contains("unknown-event   StopFailure"), "{text}");
    let (_, text) = person.hooks(&["install", "--user"]);
    assert!(text.contains("removed  StopFailure"), "{text}");
    assert_eq!(person.events(), old);
    // A version that can't be told gets what every version knows.
    fs::remove_file(person.path("bin/claude")).unwrap();
    let (code, text) = person.hooks(&["install", "--user"]);
    assert!(code == 0 && text.contains("no claude in PATH") && text.contains("--agent-version"), "{text}");
    assert_eq!(person.hooks(&["install", "--user", "--agent-version", "new"]).0, 1);
    assert_eq!(person.hooks(&["install", "--user", "--agent", "vi"]).0, 1);
}

#[test]
fn the_place_follows_the_agents_own_rules() {
    let person = Person::new("2.1.332");
    let own = person.path("elsewhere");
    let mut ng = person.command(env!("CARGO_BIN_EXE_ng"), &["hooks", "install", "--user"]);
    let (code, text) = said(&ng.env("CLAUDE_CONFIG_DIR", &own).output().unwrap());
    assert!(code == 0 && own.join("settings.json").exists() && !person.settings().exists(), "{text}");
    fs::create_dir(person.path("project")).unwrap();
    let project = person.path("project");
    assert_eq!(person.hooks(&["install", "--project", project.to_str().unwrap()]).0, 0);
    assert!(project.join(".claude/settings.local.json").exists() && !project.join(".claude/settings.json").exists());
    assert_eq!(person.hooks(&["install", "--project", "/no/such/folder"]).0, 1);
    let named = person.path("any name.json");
    assert_eq!(person.hooks(&["install", "--settings", named.to_str().unwrap()]).0, 0);
    assert!(named.exists());
}

#[test]
fn settings_that_are_no_json_are_refused_with_their_place_and_left() {
    let person = Person::new("2.1.332");
    for (text, place) in
        [("{\n  // mine\n  \"a\": 1\n}\n", ":2:3: "), ("{\"hooks\": []}", ":1:11: "), ("[1]", ":1:1: ")]
    {
        person.write(text);
        for verb in ["install", "uninstall"] {
            let (code, said) = person.hooks(&[verb, "--user"]);
            let expected = format!("{}{place}", person.settings().display());
            assert!(code == 1 && said.contains(&expected) && said.contains("nothing was written"), "{said}");
            assert_eq!(person.text(), text);
        }
        assert_eq!(person.hooks(&["status", "--user"]).0, 1);
    }
    assert_eq!(fs::read_dir(person.path(".claude")).unwrap().count(), 1, "nothing beside it");
}

#[test]
fn a_link_stays_a_link_and_a_read_only_file_is_refused() {
    let person = Person::new("2.1.332");
    fs::create_dir_all(person.path("dotfiles")).unwrap();
    fs::create_dir_all(person.path(".claude")).unwrap();
    fs::write(person.path("dotfiles/claude.json"), OTHERS).unwrap();
    symlink("../dotfiles/claude.json", person.settings()).unwrap();
    assert_eq!(person.hooks(&["install", "--user"]).0, 0);
    assert!(person.settings().symlink_metadata().unwrap().is_symlink());
    assert_eq!(person.events().len(), 13);
    assert_eq!(person.hooks(&["uninstall", "--user"]).0, 0);
    fs::set_permissions(person.path("dotfiles/claude.json"), fs::Permissions::from_mode(0o444)).unwrap();
    let (code, text) = person.hooks(&["install", "--user"]);
    assert!(code == 1 && text.contains("read-only"), "{text}");
    assert_eq!(fs::read_dir(person.path("dotfiles")).unwrap().count(), 1, "no copy of what was not changed");
    fs::remove_file(person.path("dotfiles/claude.json")).unwrap();
    let (code, text) = person.hooks(&["install", "--user"]);
    assert!(code == 1 && text.contains("link to ../dotfiles/claude.json"), "{text}");
}

#[test]
fn status_tells_a_program_that_is_gone_and_what_has_fired() {
    let person = Person::new("2.1.332");
    assert_eq!(person.hooks(&["status"]).0, 1, "nothing is set up");
    let moved = person.path("bin/ng");
    fs::copy(env!("CARGO_BIN_EXE_ng"), &moved).unwrap();
    let args = ["hooks", "install", "--user"];
    assert_eq!(said(&person.command(moved.to_str().unwrap(), &args).output().unwrap()).0, 0);
    let (code, text) = person.hooks(&["status"]);
    assert!(code == 0 && text.contains("other-program") && text.contains("fired: never"), "{text}");
    fs::remove_file(&moved).unwrap();
    let (code, text) = person.hooks(&["status"]);
    assert!(code == 1 && text.contains("stale-program"), "{text}");
    let (_, text) = person.hooks(&["install", "--user"]);
    assert!(text.contains("updated  Stop"), "{text}");
    let beat = json!({"state": "busy", "last_activity": 5, "event": "Stop", "window": "w\u{1b}3"});
    fs::create_dir(person.state().join("heartbeat")).unwrap();
    fs::write(person.state().join("heartbeat/w3.json"), beat.to_string()).unwrap();
    let (code, text) = person.hooks(&["status"]);
    assert!(code == 0 && text.contains(" ago  w 3 ") && text.contains("13 of 13 events"), "{text}");
    let (_, text) = person.hooks(&["status", "--json"]);
    let status: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&status["in_order"], &status["fired"][0]["event"]), (&json!(true), &json!("Stop")));
    person.write(&person.text().replacen('{', "{\n  \"disableAllHooks\": true,", 1));
    let (code, text) = person.hooks(&["status"]);
    assert!(code == 1 && text.contains("disableAllHooks"), "{text}");
}

#[test]
fn another_nexus_in_the_same_settings_is_left_alone() {
    let person = Person::new("2.1.332");
    person.write(OTHERS);
    let other = person.path("other/monitor/.state");
    fs::create_dir_all(&other).unwrap();
    let install = ["hooks", "install", "--user"];
    let mut ng = person.command(env!("CARGO_BIN_EXE_ng"), &install);
    assert_eq!(said(&ng.env("NEXUS_STATE_DIR", &other).output().unwrap()).0, 0);
    let with_other = person.text();
    person.hooks(&["install", "--user"]);
    person.hooks(&["uninstall", "--user"]);
    assert_eq!(person.text(), with_other);
    // Its nexus is deleted: whose hooks were those?
    fs::remove_dir_all(person.path("other")).unwrap();
    person.hooks(&["uninstall", "--user"]);
    assert!(person.events().is_empty());
}

/// Runs every hook of a settings file that the event has, as the agent would: by a shell, in a pane.
fn fire(person: &Person, environment: &[(&str, &str)], payload: &Value) -> i32 {
    let settings: Value = serde_json::from_str(&person.text()).unwrap();
    let event = payload["hook_event_name"].as_str().unwrap();
    let line = settings["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap();
    let mut shell = person.command("/bin/sh", &["-c", line]);
    shell.env_remove("NEXUS_STATE_DIR").envs(environment.iter().copied()).stdin(Stdio::piped());
    shell.env("PATH", std::env::var_os("PATH").unwrap());
    let mut child = shell.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let (code, text) = said(&child.wait_with_output().unwrap());
    assert!(code == 2 || text.is_empty(), "{text}");
    code
}

#[test]
fn a_hook_without_a_window_finds_it_by_the_pane_and_passes_over_what_is_not_watched() {
    let server = TmuxServer::start(80, 24);
    let person = Person::new("2.1.332");
    fs::create_dir_all(person.path("nexus/config")).unwrap();
    let config = format!("monitor:\n  tmux:\n    sockets: [\"{}\"]\n", server.socket().display());
    fs::write(person.path("nexus/config/nexus.yml"), config).unwrap();
    let mut install = person.command(env!("CARGO_BIN_EXE_ng"), &["hooks", "install", "--user"]);
    install.env_remove("NEXUS_STATE_DIR").env("NEXUS_ROOT", person.path("nexus"));
    assert_eq!(said(&install.output().unwrap()).0, 0);
    let sleep = ["/bin/sleep", "1000"];
    for window in ["orchestrator", "w 1"] {
        server.window(window, Path::new("/"), &sleep);
    }
    server.tmux(&["new-session", "-d", "-s", "elsewhere", "-n", "w9", "/bin/sleep 1000"]);
    let pane_of = |window: &str| server.tmux(&["display-message", "-p", "-t", window, "#{pane_id}"]).trim().to_owned();
    let tmux = format!("{},1,0", server.socket().display());
    let prompt = |session: &str| json!({"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": "x"});
    let beats = || -> Vec<String> {
        let folder = fs::read_dir(person.state().join("heartbeat"));
        let mut names: Vec<String> =
            folder.into_iter().flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let worker = pane_of("nexus:w 1");
    let in_worker = [("TMUX", tmux.as_str()), ("TMUX_PANE", worker.as_str())];
    // Outside tmux, in another session, on another server: nothing.
    let elsewhere = pane_of("elsewhere:w9");
    fire(&person, &[], &prompt("session-1"));
    fire(&person, &[("TMUX", &tmux), ("TMUX_PANE", &elsewhere)], &prompt("session-2"));
    fire(&person, &[("TMUX", "/tmp/other,1,0"), ("TMUX_PANE", &worker)], &prompt("session-3"));
    assert_eq!(beats(), [""; 0]);
    fire(&person, &in_worker, &prompt("session-4"));
    assert_eq!(beats(), ["w%201.json"]);
    // A tool call asks nobody: the answer is kept.
    server.tmux(&["rename-window", "-t", "nexus:w 1", "renamed"]);
    let mut tool = json!({"hook_event_name": "PreToolUse", "session_id": "session-4", "tool_name": "AskUserQuestion"});
    assert_eq!(fire(&person, &in_worker, &tool), 0);
    assert_eq!(beats(), ["w%201.json"]);
    fire(&person, &in_worker, &prompt("session-4"));
    assert_eq!(beats(), ["renamed.json", "w%201.json"]);
    // The target is known by its name, and its questions are refused.
    let lead = pane_of("nexus:orchestrator");
    let in_lead = [("TMUX", tmux.as_str()), ("TMUX_PANE", lead.as_str())];
    fire(&person, &in_lead, &prompt("session-5"));
    assert!(person.state().join("orchestrator-paste-received").exists());
    tool["session_id"] = "session-5".into();
    assert_eq!(fire(&person, &in_lead, &tool), 2);
    let log = fs::read_to_string(person.state().join("hook-errors.log")).unwrap_or_default();
    assert_eq!(log, "");
}
