//! A nexus with real agents and the real watcher: an orchestrator, a worker that is busy and a worker that waits for a
//! decision, each a Claude Code with a home of its own, in one session of a private tmux server.
//!
//! What counts is what reached the model. Everything ends with the value.

#![expect(clippy::disallowed_methods, reason = "tests start programs and wait by polling")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::lab::{Lab, READY, START_WITHIN};

/// The orchestrator's window.
pub(crate) const LEAD: &str = "orchestrator";
/// The worker whose turn runs.
pub(crate) const BUSY: &str = "w1";
/// The worker that asks for permission.
pub(crate) const ASKING: &str = "w2";

/// How long a condition may take on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// The session of an orchestrator without hooks.
const SESSION: &str = "6f1f64be-2f0e-4b52-9a0d-3c1f7d0c8a11";

/// Whether the orchestrator's hooks report to the watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeadHooks {
    /// As a spawn sets it up.
    On,
    /// It has none; its session is pinned, as a spawn without hooks does.
    Off,
}

/// The nexus.
#[derive(Debug)]
pub(crate) struct Scene {
    watcher: Option<Child>,
    /// The agents and what they talk to.
    pub(crate) lab: Lab,
}

impl Scene {
    /// Starts the three agents and lets the workers come to their states. The watcher does not run yet.
    pub(crate) fn start(hooks: LeadHooks) -> Self {
        let scene = Self { watcher: None, lab: Lab::start() };
        let lab = &scene.lab;
        let lead = lab.claude(LEAD).args(&["--allowedTools", "Bash(python3:*)"]);
        match hooks {
            LeadHooks::On => lead.settings(&lab.hooks(LEAD, true)).start(),
            LeadHooks::Off => {
                fs::create_dir_all(lab.state()).expect("the state directory");
                fs::write(lab.state().join("orchestrator-session-id"), format!("{SESSION}\n")).expect("the pin");
                lead.args(&["--session-id", SESSION]).start()
            }
        };
        for worker in [BUSY, ASKING] {
            lab.claude(worker).settings(&lab.hooks(worker, false)).start();
        }
        for window in [LEAD, BUSY, ASKING] {
            lab.tmux.wait_for(window, READY, START_WITHIN);
        }
        lab.tmux.send(BUSY, "SCENARIO:slow 400");
        lab.tmux.send(ASKING, "SCENARIO:bash rm -rf build");
        lab.tmux.wait_for(BUSY, "esc to interrupt", PATIENCE);
        lab.tmux.wait_for(ASKING, "Do you want to proceed", PATIENCE);
        scene
    }

    /// Starts the watcher with one report a second; `paste` are further lines under `monitor.paste`.
    pub(crate) fn watch(&mut self, paste: &[&str]) {
        self.unwatch();
        self.configure(paste);
        self.watcher = Some(self.spawn_watcher(None));
    }

    /// Runs the watcher until it is killed at this place of a delivery.
    pub(crate) fn watch_until_killed(&mut self, place: &str) {
        self.unwatch();
        self.configure(&[]);
        let mut child = self.spawn_watcher(Some(place));
        let ended = self.wait(&format!("the watcher to be killed {place}"), || child.try_wait().expect("it is ours"));
        assert_eq!(ended.code(), None, "it ended by itself {place}\n{}", self.story());
    }

    /// Writes the configuration; `paste` are lines under `monitor.paste`.
    pub(crate) fn configure(&self, paste: &[&str]) {
        let mut yaml = String::from("monitor:\n  interval_seconds: 1\n");
        if !paste.is_empty() {
            yaml.push_str("  paste:\n");
            for line in paste {
                let _infallible = writeln!(yaml, "    {line}");
            }
        }
        let config = self.lab.root().join("config");
        fs::create_dir_all(&config).expect("the configuration's directory");
        fs::write(config.join("nexus.yml"), yaml).expect("the configuration");
    }

    fn spawn_watcher(&self, fault: Option<&str>) -> Child {
        // The watcher of an orchestrator without hooks looks for its session below the home that both share.
        let mut command = self.lab.program(env!("CARGO_BIN_EXE_nexus-watcher"));
        command.env("HOME", self.lab.dir().join(format!("home-{LEAD}")));
        let log = fs::File::create(self.lab.dir().join("watcher.stderr")).expect("the watcher's log");
        if let Some(place) = fault {
            command.env("NEXUS_FAULT", place);
        }
        command.stdout(Stdio::null()).stderr(log).spawn().expect("the watcher starts")
    }

    /// Ends the watcher without warning.
    pub(crate) fn unwatch(&mut self) {
        if let Some(mut child) = self.watcher.take() {
            let _ended = child.kill();
            child.wait().expect("the watcher ends");
        }
    }

    /// Writes so many decision records of the asking worker, as its hook does; returns their fingerprints.
    pub(crate) fn decide(&self, count: usize) -> Vec<String> {
        let dir = self.lab.state().join("decisions");
        fs::create_dir_all(&dir).expect("the directory of decisions");
        let known = fs::read_dir(&dir).expect("the decisions are listed").count();
        let fingerprint = |n: usize| format!("{:012x}", 0x00de_c100_0000 + known + n);
        let fingerprints: Vec<String> = (0..count).map(fingerprint).collect();
        for fingerprint in &fingerprints {
            let record = json!({
                "ts": "2026-11-30T00:00:00+00:00", "window": ASKING, "session_id": "s", "kind": "permission_prompt",
                "prompt_excerpt": "May I run the tests?", "tool_context": {}, "fingerprint": fingerprint,
            });
            let path = dir.join(format!("{ASKING}.{fingerprint}.json"));
            // As a hook does it: never half a record.
            let draft = dir.join(format!(".{fingerprint}.tmp"));
            fs::write(&draft, record.to_string()).expect("the record");
            fs::rename(draft, path).expect("the record's name");
        }
        fingerprints
    }

    /// The fingerprint of the decision that the asking worker's own hook wrote.
    pub(crate) fn own_decision(&self) -> String {
        let dir = self.lab.state().join("decisions");
        self.wait("the asking worker's hook to write its decision", || {
            let names = fs::read_dir(&dir).into_iter().flatten().flatten();
            let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
            names.find_map(|name| Some(name.strip_prefix("w2.")?.strip_suffix(".json")?.to_owned()))
        })
    }

    /// The emits as `ng emits --json` tells them.
    pub(crate) fn emits(&self) -> Vec<Value> {
        let (_, text) = self.lab.ng(&["emits", "--json", "-n", "1000"]);
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Waits until an emit that tells of this decision fulfils a condition, and returns its row.
    pub(crate) fn wait_emit(&self, fingerprint: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mark = format!("fp={fingerprint} ");
        self.wait(&format!("{what} ({mark})"), || {
            let tells = |emit: &Value| {
                let archive = emit["archive"].as_str().map(|name| self.lab.state().join("diffs").join(name));
                archive.and_then(|path| fs::read_to_string(path).ok()).is_some_and(|text| text.contains(&mark))
            };
            self.emits().into_iter().rev().find(|emit| wanted(emit) && tells(emit))
        })
    }

    /// How often a text stands in the prompts that one conversation has sent to the model so far.
    pub(crate) fn told(&self, text: &str) -> usize {
        let in_request = |line: &str| {
            let row: Value = serde_json::from_str(line).unwrap_or_default();
            let messages = row["body"]["messages"].as_array().cloned().unwrap_or_default();
            let prompts = messages.into_iter().filter(|message| message["role"] == "user");
            prompts.map(|message| texts(&message["content"]).matches(text).count()).sum::<usize>()
        };
        self.lab.requests().lines().filter(|line| line.contains(text)).map(in_request).max().unwrap_or(0)
    }

    /// Waits until the model has got an emit about this decision, and asserts that it got it once.
    pub(crate) fn assert_told_once(&self, fingerprint: &str, emit: &Value) {
        let nonce = emit["nonce"].as_str().expect("an emit has a nonce").to_owned();
        let trailer = format!(" {nonce} ---");
        self.wait(&format!("the emit {nonce} to reach the model"), || (self.told(&trailer) > 0).then_some(()));
        assert_eq!(self.told(&trailer), 1, "the signature of {nonce}\n{}", self.story());
        assert_eq!(self.told(&format!("fp={fingerprint} ")), 1, "the decision {fingerprint}\n{}", self.story());
    }

    /// Waits until the orchestrator's turn is over.
    pub(crate) fn wait_for_rest(&self) {
        self.wait("the orchestrator to come to rest", || {
            let screen = self.lab.tmux.screen(LEAD);
            (screen.contains("? for shortcuts") && !screen.contains("esc to interrupt")).then_some(())
        });
    }

    /// Waits for something, and fails with everything that helps if it does not come.
    pub(crate) fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}\n{}", self.story());
            // A poll, not a synchronisation: the condition decides.
            std::thread::sleep(Duration::from_millis(60));
        }
    }

    /// Lets this much time pass: nothing may happen in it, so there is no condition to wait for.
    pub(crate) fn outlast(&self, time: Duration) {
        let start = Instant::now();
        self.wait("time to pass", || (start.elapsed() >= time).then_some(()));
    }

    /// Everything that helps to see what went wrong.
    pub(crate) fn story(&self) -> String {
        let mut text = String::new();
        for name in ["emits.jsonl", "delivery/pending.json"] {
            let _infallible = writeln!(text, "--- {name}\n{}", tail(&self.lab.state().join(name), 12));
        }
        let log = tail(&self.lab.state().join("logs/watcher.log"), 30);
        let errors = tail(&self.lab.dir().join("watcher.stderr"), 10);
        let _infallible = writeln!(text, "--- watcher's log\n{log}\n--- its standard error\n{errors}");
        for window in [LEAD, BUSY, ASKING] {
            let _infallible = writeln!(text, "--- screen of {window}\n{}", self.lab.tmux.screen(window));
        }
        text
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(mut child) = self.watcher.take() {
            let _ended = child.kill();
            let _ended = child.wait();
        }
    }
}

/// The text parts of a message's content.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// The last lines of a file; empty if it can't be read.
fn tail(path: &Path, count: usize) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(count)..).unwrap_or_default().join("\n")
}
