//! `scripts/run.sh`, with the real demo agents and a stand-in for the watcher: it starts, proves, says so, is content to
//! be run twice, and leaves nothing behind.

#![expect(clippy::disallowed_methods, reason = "tests start programs")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Stands in for the watcher's launcher: starts something of the right name, and pastes one report.
const LAUNCHER: &str = r#"#!/bin/sh
t() { tmux -u -S "$NEXUS_TMUX_SOCKET" "$@"; }
setsid "$NEXUS_BIN_DIR/nexus-watcher" 1000 </dev/null >/dev/null 2>&1 &
echo $! >"$NEXUS_STATE_DIR/watcher.pid"
for _ in $(seq 100); do t capture-pane -p -t =nexus:=orchestrator | grep -q '? for shortcuts' && break; sleep 0.1; done
printf 'report\n\n\n  ack=monitor/ng decision-ack worker-decision 0a1b2c3d4e5f\n--- sig ---' | t load-buffer -b r -
t paste-buffer -p -d -b r -t =nexus:=orchestrator
for _ in $(seq 100); do t capture-pane -p -t =nexus:=orchestrator | grep -q 'Pasted text' && break; sleep 0.1; done
t send-keys -t =nexus:=orchestrator Enter
"#;

/// Stands in for `ng`: knows of one report once the orchestrator has it; the demo agents are the real ones. It is asked
/// without `--root`, which would name the nexus's usual state directory, not the demo's.
const NG: &str = r#"#!/bin/sh
case "$*" in
  "emits --json")
    if grep -q '"event":"submit"' "$NEXUS_STATE_DIR/demo/orchestrator.log"; then got=true; else got=false; fi
    printf '[\n  {\n    "sig": "abc123",\n    "received": %s,\n    "witness": "hook"\n  }\n]\n' "$got" ;;
  *) exec "REAL" "$@" ;;
esac
"#;

/// A root with the script and the stand-ins.
struct Root {
    dir: tempfile::TempDir,
}

impl Root {
    fn new() -> Self {
        let root = Self { dir: tempfile::tempdir().expect("a temporary directory") };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/run.sh");
        root.program("scripts/run.sh", &fs::read_to_string(script).expect("the script"));
        root.program("monitor/watcher/launcher.sh", LAUNCHER);
        root.program("monitor/ng", "#!/bin/sh\necho \"acked $2 $3\"\n");
        root.program("target/debug/ng", &NG.replace("REAL", env!("CARGO_BIN_EXE_ng")));
        fs::write(root.at("nexus.example.yml"), "monitor: {}\n").expect("the example");
        fs::copy("/bin/sleep", root.at("target/debug/nexus-watcher")).expect("a program that waits");
        fs::create_dir_all(root.at("tmp")).expect("a place for the socket");
        root
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn program(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("it is in a directory")).expect("its directory");
        fs::write(&path, text).expect("the program's text");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its mode");
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.at("scripts/run.sh"));
        command
            .args(args)
            .env("CARGO_TARGET_DIR", self.at("target"))
            .env("HOME", self.dir.path())
            // A container has no locale, and tmux then spoils what it prints unless it is told better.
            .env("LC_ALL", "C")
            .env("TMUX_TMPDIR", self.at("tmp"))
            .env("NEXUS_DEMO_WAIT_S", "30")
            .env_remove("TMUX")
            .env_remove("NEXUS_CONFIG")
            .env_remove("NEXUS_STATE_DIR")
            .env_remove("NEXUS_TMUX_SOCKET")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the script runs")
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.run(&["--stop"]);
    }
}

/// Runs it and checks the exit code; returns what it said on both streams.
fn check(root: &Root, args: &[&str], code: i32) -> String {
    let output = root.run(args);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}:\n{said}");
    said
}

#[test]
fn the_demo_proves_a_report_and_leaves_nothing_behind() {
    let root = Root::new();
    let start = ["--demo", "--debug", "--no-build", "--no-install"];
    let said = check(&root, &start, 0);
    for part in ["Report abc123 arrived", "proof: hook", "settled the decision of worker-decision", "--stop"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    assert_eq!(fs::read_to_string(root.at("config/nexus.yml")).expect("a configuration"), "monitor: {}\n");
    let pid = fs::read_to_string(root.at("monitor/.demo-state/watcher.pid")).expect("the watcher's pid");
    assert!(check(&root, &["--status"], 0).contains(&format!("watcher pid {}", pid.trim())));

    assert!(check(&root, &start, 0).contains("running already"));

    assert!(check(&root, &["--stop"], 0).contains("stopped"));
    assert!(!root.at("monitor/.demo-state").exists(), "the demo's files are gone");
    let comm = fs::read_to_string(format!("/proc/{}/comm", pid.trim())).unwrap_or_default();
    assert_ne!(comm.trim(), "nexus-watcher", "the watcher is gone");
    let sockets = fs::read_dir(root.at("tmp")).expect("the socket's place").flatten();
    let left: Vec<_> = sockets.flat_map(|dir| fs::read_dir(dir.path()).into_iter().flatten().flatten()).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(check(&root, &["--stop"], 0).contains("Nothing was running"));
    assert!(check(&root, &["--status"], 0).contains("nothing is running"));
}

#[test]
fn a_configuration_is_never_overwritten() {
    let root = Root::new();
    fs::create_dir_all(root.at("config")).expect("its directory");
    fs::write(root.at("config/nexus.yml"), "mine: 1\n").expect("a configuration");
    // No such agent: everything before the start has run.
    let said = check(&root, &["--agent", "no-such-agent", "--debug", "--no-build", "--no-install"], 1);
    assert!(said.contains("'no-such-agent' is not in PATH"), "{said}");
    assert_eq!(fs::read_to_string(root.at("config/nexus.yml")).expect("it is there"), "mine: 1\n");
}

#[test]
fn an_agent_is_opened_once_and_only_ours_is_closed() {
    let root = Root::new();
    let agent = root.at("agent.sh");
    root.program("agent.sh", "#!/bin/sh\nexec sleep 1000\n");
    root.program("monitor/watcher/launcher.sh", "#!/bin/sh\nsetsid \"$NEXUS_BIN_DIR/nexus-watcher\" 1000 </dev/null >/dev/null 2>&1 &\necho $! >\"$NEXUS_STATE_DIR/watcher.pid\"\n");
    let start = ["--agent", agent.to_str().expect("UTF-8"), "--debug", "--no-build", "--no-install"];
    assert!(check(&root, &start, 0).contains("Starting the watcher"));
    let again = check(&root, &start, 0);
    assert!(again.contains("open in tmux session nexus already") && again.contains("running already"), "{again}");
    let session = fs::read_to_string(root.at("monitor/.state/orchestrator-session-id")).expect("the pinned session");
    let record = fs::read_to_string(root.at("monitor/.state/windows/orchestrator.json")).expect("the provenance");
    let record: serde_json::Value = serde_json::from_str(&record).expect("it is JSON");
    assert_eq!(record["session_id"], session.trim());
    let said = check(&root, &["--stop"], 0);
    assert!(said.contains("watcher is stopped") && said.contains("is closed"), "{said}");
}

#[test]
fn an_agent_that_ends_at_once_is_a_failure() {
    let root = Root::new();
    let said = check(&root, &["--agent", "false", "--debug", "--no-build", "--no-install"], 1);
    assert!(said.contains("'false' ended at once"), "{said}");
    assert!(!root.at("monitor/.state/watcher.pid").exists(), "no watcher without an orchestrator");
}

#[test]
fn faulty_calls_say_what_to_do() {
    let root = Root::new();
    assert!(check(&root, &["--dmeo"], 2).contains("unknown argument '--dmeo'"));
    assert!(check(&root, &["--agent"], 2).contains("needs a command"));
    assert!(check(&root, &["--demo", "--agent", "x"], 2).contains("exclude each other"));

    // A PATH without tmux, and one with an old one.
    let path = root.at("bin");
    fs::create_dir_all(&path).expect("a directory of programs");
    for program in ["bash", "cat", "cksum", "cut", "dirname", "env", "git", "grep", "head", "id", "sed", "tr"] {
        let real = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(program)).find(|path| path.exists());
        std::os::unix::fs::symlink(real.expect("a usual program"), path.join(program)).expect("a link");
    }
    let run = |code: i32, part: &str| {
        let args = ["--demo", "--debug", "--no-build", "--no-install"];
        let output = root.command(&args).env("PATH", &path).output().expect("the script runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part) && said.trim().lines().count() == 1, "one line with {part:?}: {said}");
    };
    run(2, "apt-get install tmux");
    root.program("bin/tmux", "#!/bin/sh\necho tmux 3.1c\n");
    run(2, "tmux 3.1c is too old: version 3.2 or later");
}
