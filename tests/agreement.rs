//! A saved screen and a live pane that shows the same get the same verdict: one staged reader serves both.
//!
//! Every capture is printed into a pane of its size under a process that is recognised as the agent, then judged live by
//! `ng pane-state --all` and offline by `ng pane-state --capture`.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and starts programs")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nexus_watcher::agents::Profiles;
use nexus_watcher::logic::pane::{self, ScreenFacts};
use nexus_watcher::logic::screen::Capture;
use serde_json::Value;

#[path = "support/tmux_server.rs"]
mod tmux_server;

use tmux_server::TmuxServer;

/// Panes that are open at the same time.
const BATCH: usize = 40;

/// How each agent is recognised: its program, which is a shell here, and the script that this runs.
const AGENTS: &[(&str, &str, &str)] = &[
    ("claude", "bin/claude", "idle.sh"),
    ("codex", "bin/codex", "idle.sh"),
    ("opencode", "bin/opencode", "idle.sh"),
    ("aider", "bin/python3", "venv/bin/aider"),
    ("gemini", "bin/node", "lib/@google/gemini-cli/idle.sh"),
    ("qwen", "bin/node", "lib/@qwen-code/qwen-code/idle.sh"),
];

/// A capture: its text with escapes, and its size.
struct Saved {
    path: PathBuf,
    agent: String,
    title: String,
    /// Whether the cursor was shown.
    cursor: bool,
    size: (u16, u16),
}

/// Every capture whose label is about what the screen shows, not about tmux.
fn captures() -> Vec<Saved> {
    let mut found = Vec::new();
    for folder in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures")).unwrap() {
        for entry in fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "ansi") {
                continue;
            }
            let label: Value = serde_json::from_str(&fs::read_to_string(path.with_extension("json")).unwrap()).unwrap();
            // Whether the pane is dead is tmux's word, and the program that shows the screen here lives.
            if label["state"] == "dead" {
                continue;
            }
            let number = |key: &str| u16::try_from(label[key].as_u64().unwrap()).unwrap();
            let agent = label["agent"].as_str().unwrap().to_owned();
            let title = label["tmux"]["pane_title"].as_str().unwrap().to_owned();
            // Older captures say nothing of the cursor; of those none is hidden that should be shown.
            let cursor = label["tmux"]["cursor_flag"].as_str() != Some("0");
            found.push(Saved { size: (number("cols"), number("rows")), agent, title, cursor, path });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 400, "only {} captures", found.len());
    found
}

/// The nexus that is asked, with an agent program that shows nothing and ends never.
struct Nexus {
    server: TmuxServer,
    dir: tempfile::TempDir,
}

impl Nexus {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("monitor/.state")).unwrap();
        fs::create_dir_all(dir.path().join("config")).unwrap();
        fs::write(dir.path().join("config/nexus.yml"), "monitor:\n  tmux:\n    sessions: [\"*\"]\n").unwrap();
        for (_, exe, script) in AGENTS {
            let path = dir.path().join(exe);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::copy("/bin/bash", &path).unwrap();
            let script = dir.path().join(script);
            fs::create_dir_all(script.parent().unwrap()).unwrap();
            fs::write(script, "read -r _\n").unwrap();
        }
        Self { server: TmuxServer::start(80, 24), dir }
    }

    fn ng(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_ng"))
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("NEXUS_ROOT", self.dir.path())
            .env("NEXUS_TMUX_SOCKET", self.server.socket())
            .output()
            .unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.ng(args);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Opens a pane of that size that shows the capture.
    fn show(&self, name: &str, saved: &Saved) {
        let text = fs::read_to_string(&saved.path).unwrap();
        let shown = self.dir.path().join(format!("{name}.screen"));
        // Without the last line end, which would scroll a full screen by one row; with the drawn cursor, whose blank
        // cell a capture leaves out at the end of a row.
        let text = text.strip_suffix('\n').unwrap_or(&text).replace("\u{1b}[7m\n", "\u{1b}[7m \n");
        fs::write(&shown, text).unwrap();
        let (_, exe, script) = AGENTS.iter().find(|(agent, ..)| *agent == saved.agent).unwrap();
        let line = format!(
            "printf '\\033[?25{}\\033]2;%s\\033\\\\' '{}'; cat {}; stty -echo; exec {} {}",
            if saved.cursor { 'h' } else { 'l' },
            saved.title.replace('\'', ""),
            shown.display(),
            self.dir.path().join(exe).display(),
            self.dir.path().join(script).display()
        );
        let (cols, rows) = (saved.size.0.to_string(), saved.size.1.to_string());
        self.server.tmux(&[
            "new-session",
            "-d",
            "-s",
            name,
            "-n",
            name,
            "-x",
            &cols,
            "-y",
            &rows,
            &line,
            ";",
            "set-option",
            "-t",
            name,
            "status",
            "off",
            ";",
            "resize-window",
            "-t",
            name,
            "-x",
            &cols,
            "-y",
            &rows,
        ]);
    }
}

/// The fields that the screen decides. A live pane's agent is known to run, so a screen that tells nothing is `empty`.
fn decided(verdict: &Value) -> BTreeMap<&'static str, Value> {
    let fields = [
        "state",
        "overlay",
        "input",
        "auth",
        "mode",
        "queued",
        "throttled",
        "retrying",
        "notice",
        "reset_at",
        "limit",
        "background",
        "chip",
        "content_hash",
    ];
    let mut found: BTreeMap<&'static str, Value> =
        fields.iter().map(|field| (*field, verdict[*field].clone())).collect();
    if found["state"] == "empty" {
        found.insert("state", "unknown".into());
    }
    found
}

/// Into how many tests the captures are dealt, so that each ends in good time on a loaded machine.
const PARTS: usize = 4;

#[test]
fn live_and_saved_screens_get_the_same_verdict_1() {
    agree(0);
}

#[test]
fn live_and_saved_screens_get_the_same_verdict_2() {
    agree(1);
}

#[test]
fn live_and_saved_screens_get_the_same_verdict_3() {
    agree(2);
}

#[test]
fn live_and_saved_screens_get_the_same_verdict_4() {
    agree(3);
}

/// Shows every capture of a part, and compares.
fn agree(part: usize) {
    let nexus = Nexus::new();
    let profiles = Profiles::builtin().unwrap();
    let captures: Vec<Saved> = captures().into_iter().skip(part).step_by(PARTS).collect();
    let mut differences = Vec::new();
    let mut unfaithful = 0;
    for batch in captures.chunks(BATCH) {
        for (number, saved) in batch.iter().enumerate() {
            nexus.show(&format!("c{number}"), saved);
        }
        // Every pane has printed its screen when its shell has become the agent.
        let end = Instant::now() + Duration::from_secs(30);
        let commands = || nexus.server.tmux(&["list-panes", "-a", "-F", "#{session_name} #{pane_current_command}"]);
        let started = || {
            let is_agent = |line: &&str| {
                let command = line.rsplit(' ').next().unwrap_or_default();
                AGENTS.iter().any(|(_, exe, _)| exe.rsplit('/').next() == Some(command))
            };
            commands().lines().filter(is_agent).count()
        };
        while started() < batch.len() {
            assert!(Instant::now() < end, "the panes did not start:\n{}", commands());
            std::thread::sleep(Duration::from_millis(20));
        }
        let live = nexus.json(&["pane-state", "--all", "--json"]);
        for (number, saved) in batch.iter().enumerate() {
            let name = format!("c{number}");
            let found = live.as_array().unwrap().iter().find(|pane| pane["name"] == name.as_str()).unwrap();
            let path = saved.path.display().to_string();
            let capture = Capture::from_bytes(&fs::read(&saved.path).unwrap());
            let offline = {
                let title = Some(saved.title.replace('\'', ""));
                let facts = ScreenFacts { title, cursor_shown: Some(saved.cursor), ..ScreenFacts::default() };
                pane::judge_capture(profiles.get(&saved.agent).unwrap(), &facts, &capture)
            };
            let offline = serde_json::to_value(offline).unwrap();
            let (mut live, mut offline) = (decided(found), decided(&offline));
            let shown = nexus.server.tmux(&["capture-pane", "-p", "-t", &format!("={name}:")]);
            let text = |rows: &mut dyn Iterator<Item = &str>| rows.map(str::trim_end).collect::<Vec<_>>().join("\n");
            let (shown, saved_text) = (text(&mut shown.lines()), text(&mut capture.plain().iter().map(String::as_str)));
            if shown.trim() != saved_text.trim() {
                // The checksum is of the whole text, and the terminal did not print this one as it was.
                unfaithful += 1;
                live.remove("content_hash");
                offline.remove("content_hash");
            }
            if found["evidence"][0]["rule"] == "background-ended" {
                // The screen counts shells and no other work, and below the live pane's agent there are none: then what
                // stands in the box decides, and nothing is counted any more.
                assert_eq!(offline["state"], "working-background", "{path}");
                let by_box = match offline["input"].as_str() {
                    Some("blank") => "idle",
                    Some("ghost") => "autosuggest-only",
                    _ => "working-background",
                };
                offline.insert("state", by_box.into());
                if by_box != "working-background" {
                    offline.insert("background", Value::Null);
                }
            }
            if live != offline {
                let fields: Vec<String> = live
                    .iter()
                    .filter(|(field, value)| offline[*field] != **value)
                    .map(|(field, value)| format!("{field}: live {value}, saved {}", offline[field]))
                    .collect();
                differences.push(format!("{path}: {}", fields.join("; ")));
            }
            nexus.server.tmux(&["kill-session", "-t", &format!("={name}")]);
        }
    }
    assert!(unfaithful * 5 < captures.len(), "{unfaithful} of {} screens were not shown as saved", captures.len());
    assert!(differences.is_empty(), "{} of {} differ:\n{}", differences.len(), captures.len(), differences.join("\n"));
}
