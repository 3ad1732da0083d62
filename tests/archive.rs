//! `ng record` on real panes, and what `ng replay` makes of it, of labelled captures, and of damaged files.

#![expect(clippy::disallowed_methods, reason = "tests run real programs")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/fleet.rs"]
mod fleet;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use fleet::{Fleet, PATIENCE};
use serde_json::Value;

/// A recording in progress, and the events that it printed.
struct Recording {
    child: Child,
    events: Receiver<Value>,
    /// The state of each window in the newest frame of it.
    states: RefCell<BTreeMap<String, String>>,
}

impl Recording {
    fn start(fleet: &Fleet, args: &[&str]) -> Self {
        let mut command = fleet.command(env!("CARGO_BIN_EXE_ng"));
        command.args(["record", "--json", "--every", "100ms"]).args(args).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, events) = channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _nobody_waits = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, events, states: RefCell::default() }
    }

    /// Waits for an event.
    fn wait(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.events.recv_timeout(PATIENCE).expect("an event that was waited for");
            if let (Some(window), Some(state)) = (event["window"].as_str(), event["state"].as_str()) {
                self.states.borrow_mut().insert(window.to_owned(), state.to_owned());
            }
            if wanted(&event) {
                return event;
            }
        }
    }

    /// Waits until the newest screen of a window is in a state.
    fn wait_state(&self, window: &str, state: &str) {
        let is_so = || self.states.borrow().get(window).is_some_and(|seen| seen == state);
        if !is_so() {
            self.wait(|_| is_so());
        }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Tells it to end; its exit code.
    fn end(mut self, signal: rustix::process::Signal) -> Option<i32> {
        self.signal(signal);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// The recordings in a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// Every frame in a folder, as `zcat` would print it.
fn frames(dir: &Path) -> Vec<Value> {
    let mut text = String::new();
    for path in files(dir) {
        flate2::read::MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    }
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_was_recorded_is_judged_again_with_the_same_result() {
    let fleet = Fleet::new();
    fleet.agent("worker", &fleet.hooks("worker"));
    fleet.agent("asks", "--dialog permission");
    let dir = fleet.root().join("night");
    let recording = Recording::start(&fleet, &["--all", "--dir", dir.to_str().unwrap()]);
    recording.wait_state("asks", "blocked");
    recording.wait_state("worker", "idle");
    fleet.tell("worker", "busy");
    recording.wait_state("worker", "busy");
    fleet.tmux(&["copy-mode", "-t", &fleet.window("worker")]);
    recording.wait(|event| event["event"] == "frame" && event["window"] == "worker");
    // A pane whose program ended, and one that comes later.
    fleet.tmux(&["set-option", "-w", "-t", &fleet.window("asks"), "remain-on-exit", "on"]);
    fleet.agent("later", "");
    recording.wait_state("later", "idle");
    let pid: i32 = fleet.tmux(&["display-message", "-p", "-t", &fleet.window("asks"), "#{pane_pid}"]).parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
    recording.wait_state("asks", "absent");
    let kept = frames(&dir).len();
    assert_eq!(recording.end(rustix::process::Signal::INT), Some(0));

    let (code, said) = fleet.ng(&["replay", dir.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("0 judged otherwise than recorded"), "{said}");
    assert!(last.split(' ').next().unwrap().parse::<usize>().unwrap() >= kept && kept >= 6, "{kept} {said}");
    // Only what changed is kept.
    assert!(frames(&dir).iter().filter(|frame| frame["facts"]["window_name"] == "keeper").count() <= 2);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dir), mode(&files(&dir)[0])), (0o700, 0o600));

    let (code, said) = fleet.ng(&["replay", dir.to_str().unwrap(), "--table"]);
    assert!(code == 0 && said.lines().any(|line| line.starts_with("demo ") && line.contains("blocked")), "{said}");
    let (_, said) = fleet.ng(&["replay", dir.to_str().unwrap(), "--json"]);
    let document: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((document["changes"].as_array().unwrap().len(), &document["damaged"]), (0, &serde_json::json!([])));

    // A screen out of it is a capture like any other.
    let number = frames(&dir).iter().position(|frame| frame["verdict"]["state"] == "blocked").unwrap() + 1;
    let (code, screen) = fleet.ng(&["replay", dir.to_str().unwrap(), "--screen", &number.to_string()]);
    assert!(code == 0 && screen.contains('\u{1b}'), "{screen}");
    let saved = fleet.root().join("screen.ansi");
    fs::write(&saved, screen).unwrap();
    let (_, said) = fleet.ng(&["pane-state", "--capture", saved.to_str().unwrap(), "--agent", "demo"]);
    assert!(said.starts_with("state=blocked"), "{said}");
    assert_eq!(fleet.ng(&["replay", dir.to_str().unwrap(), "--screen", "99999"]).0, 2);
}

#[test]
fn a_recorder_that_is_killed_leaves_what_it_had_and_the_next_goes_on_beside_it() {
    let fleet = Fleet::new();
    fleet.agent("worker", "");
    let dir = fleet.state("recordings");
    let recording = Recording::start(&fleet, &["worker"]);
    recording.wait_state("worker", "idle");
    fleet.tell("worker", "busy");
    recording.wait_state("worker", "busy");
    recording.end(rustix::process::Signal::KILL);
    // As if it had been killed in the middle of a record.
    let first = files(&dir)[0].clone();
    let bytes = fs::read(&first).unwrap();
    fs::write(&first, &bytes[..bytes.len() - 5]).unwrap();

    let recording = Recording::start(&fleet, &["worker", "--for", "1h"]);
    recording.wait_state("worker", "busy");
    assert_eq!(recording.end(rustix::process::Signal::TERM), Some(0));
    assert_eq!(files(&dir).len(), 2);
    let (code, said) = fleet.ng(&["replay", dir.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("cut off") && said.contains("1 damaged pieces left out"), "{said}");
    let (_, said) = fleet.ng(&["replay", dir.to_str().unwrap(), "--json"]);
    let document: Value =
        serde_json::from_str(said.split_once('{').map(|(_, rest)| format!("{{{rest}")).unwrap().as_str()).unwrap();
    assert!(document["screens"].as_u64() >= Some(2) && document["damaged"].as_array().unwrap().len() == 1, "{said}");
}

#[test]
fn a_recording_ends_by_itself_and_survives_a_server_that_goes() {
    let fleet = Fleet::new();
    fleet.agent("worker", "");
    let dir = fleet.root().join("night");
    let (code, said) =
        fleet.ng(&["record", "worker", "--dir", dir.to_str().unwrap(), "--for", "300ms", "--every", "100ms"]);
    assert!(code == 0 && said.contains("screens kept") && said.contains("ng replay"), "{code} {said}");

    let recording = Recording::start(&fleet, &["--all", "--dir", dir.to_str().unwrap()]);
    recording.wait_state("worker", "idle");
    fleet.tmux(&["kill-server"]);
    recording.wait(|event| event["event"] == "trouble");
    fleet.start_server();
    recording.wait(|event| event["event"] == "goes-on");
    fleet.agent("again", "");
    recording.wait_state("again", "idle");
    assert_eq!(recording.end(rustix::process::Signal::TERM), Some(0));
    let (code, said) = fleet.ng(&["replay", dir.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn what_cannot_be_recorded_or_read_is_refused_with_a_reason() {
    let fleet = Fleet::new();
    let check = |args: &[&str], code: i32, words: &str| {
        let (found, said) = fleet.ng(args);
        assert!(found == code && said.contains(words), "{args:?}: {found} {said}");
    };
    check(&["record"], 64, "which pane?");
    check(&["record", "nobody"], 3, "no window");
    check(&["record", "--all", "--for", "soon"], 64, "1h30m");
    check(&["record", "--all", "--max-size", "1"], 64, "at least 64K");
    let link = fleet.root().join("link");
    std::os::unix::fs::symlink(fleet.root(), &link).unwrap();
    check(&["record", "--all", "--dir", link.to_str().unwrap()], 1, "symbolic link");
    check(&["replay"], 64, "<DIR>");
    check(&["replay", "/nowhere"], 2, "/nowhere");
    let empty = fleet.root().join("empty");
    fs::create_dir(&empty).unwrap();
    check(&["replay", empty.to_str().unwrap()], 2, "holds no recorded screens");
    fs::write(empty.join("screens-1.jsonl.gz"), b"not a recording").unwrap();
    check(&["replay", empty.to_str().unwrap()], 2, "no recording");
    check(&["replay", empty.to_str().unwrap(), "--against=-x"], 2, "neither a profile file nor a git revision");
}

#[test]
fn a_profile_or_a_revision_is_tried_against_labelled_captures() {
    let fleet = Fleet::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let captures = root.join("tests/captures/claude-2.1.332");
    let captures = captures.to_str().unwrap();
    let (code, said) = fleet.ng(&["replay", captures, "--json"]);
    let document: Value = serde_json::from_str(&said).unwrap();
    assert!(document["grades"]["right"].as_u64() > Some(100) && document["grades"].get("unsafe").is_none(), "{said}");
    assert_eq!(code, i32::from(!document["changes"].as_array().unwrap().is_empty()));

    // The profile as it is changes nothing; one without its permission rule does, and only there.
    let own = root.join("config/agents/claude.yml");
    let (code, said) = fleet.ng(&["replay", captures, "--against", own.to_str().unwrap()]);
    assert!(code == 0 && said.contains("0 would be judged otherwise"), "{said}");
    let without = fleet.root().join("claude.yml");
    let text = fs::read_to_string(&own).unwrap().replace("overlay: permission", "overlay: menu");
    fs::write(&without, text).unwrap();
    let (code, said) = fleet.ng(&["replay", captures, "--against", without.to_str().unwrap()]);
    assert!(code == 1 && said.contains("overlay permission -> menu") && said.contains("right -> wrong"), "{said}");
    assert!(!said.lines().any(|line| line.starts_with('#') && !line.contains("permission")), "{said}");

    // A profile of a name that nobody has would change nothing silently.
    let stranger = fleet.root().join("stranger.yml");
    fs::copy(&own, &stranger).unwrap();
    let (code, said) = fleet.ng(&["replay", captures, "--against", stranger.to_str().unwrap()]);
    assert!(code == 2 && said.contains("\"stranger\""), "{said}");
    let (code, said) = fleet.ng(&["replay", captures, "--against", "no-such-revision"]);
    assert!(code == 2 && said.contains("no revision"), "{said}");
}

#[test]
fn the_profiles_of_a_git_revision_are_taken_and_the_code_is_not() {
    let fleet = Fleet::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let checkout = fleet.root().join("checkout");
    fs::create_dir_all(checkout.join("config/agents")).unwrap();
    let git = |args: &[&str]| {
        let mut command = fleet.command("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@t", "-C", checkout.to_str().unwrap()]).args(args);
        assert!(command.output().unwrap().status.success(), "git {args:?}");
    };
    let text = fs::read_to_string(root.join("config/agents/claude.yml")).unwrap();
    fs::write(checkout.join("config/agents/claude.yml"), text.replace("overlay: permission", "overlay: menu")).unwrap();
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "old"]);
    let mut command = fleet.command(env!("CARGO_BIN_EXE_ng"));
    let captures = root.join("tests/captures/claude-2.1.332");
    command.current_dir(&checkout).args(["replay", captures.to_str().unwrap(), "--against", "HEAD"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("overlay permission -> menu"), "{said}");
    assert!(said.contains("read by this program's code") && said.contains("taken as they are now"), "{said}");
}

/// A window whose name, title, hooks and screen hold what nobody else may see.
fn private_agent(fleet: &Fleet) {
    fleet.agent("jane-wedding", &fleet.hooks("jane-wedding"));
    fleet.tmux(&["select-pane", "-t", &fleet.window("jane-wedding"), "-T", "✳ Pay Jane Doe"]);
}

#[test]
fn a_masked_recording_tells_no_names_and_no_titles() {
    let fleet = Fleet::new();
    private_agent(&fleet);
    let dir = fleet.root().join("night");
    let recording = Recording::start(&fleet, &["jane-wedding", "--mask", "--dir", dir.to_str().unwrap()]);
    recording.wait(|event| event["event"] == "frame" && event["state"] == "idle");
    assert_eq!(recording.end(rustix::process::Signal::TERM), Some(0));
    let kept = frames(&dir);
    let told = serde_json::to_string(&kept).unwrap();
    assert!(!kept.is_empty() && kept.iter().all(|frame| frame["masked"] == true));
    for private in ["jane", "Jane", "wedding", fleet.root().to_str().unwrap()] {
        assert!(!told.contains(private), "{private}: {told}");
    }
    let (code, said) = fleet.ng(&["replay", dir.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_report_is_shown_masked_asked_about_and_read_back() {
    let fleet = Fleet::new();
    private_agent(&fleet);
    fleet.wait("the agent's box", || fleet.ng(&["pane-state", "jane-wedding"]).1.starts_with("state=idle"));
    let path = fleet.root().join("report.json");
    let out = path.to_str().unwrap();
    // Without a terminal nobody can be asked.
    assert_eq!(fleet.ng(&["pane-state", "jane-wedding", "--report", "--out", out]).0, 64);
    assert!(!path.exists());
    let mut command = fleet.command(env!("CARGO_BIN_EXE_ng"));
    command.args(["pane-state", "jane-wedding", "--report", "--yes", "--out", out]);
    let output = command.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{shown}");
    let saved = fs::read_to_string(&path).unwrap();
    for text in [&shown, &saved] {
        assert!(text.contains("idle") && !text.to_lowercase().contains("jane"), "{text}");
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fleet.ng(&["replay", out]).0, 0);
    // What is there is not written over.
    assert_eq!(fleet.ng(&["pane-state", "jane-wedding", "--report", "--yes", "--out", out]).0, 2);
    assert_eq!(fleet.ng(&["pane-state", "nobody", "--report", "--yes"]).0, 3);
}
