//! What a hook costs: `ng hook` runs inside every tool call of every agent. Beside it a Rust program that does nothing,
//! started the same way with the same payload.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench starts programs and ends at the first surprise"
)]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

mod support;

use support::report::{Budget, Figure, head, row};
use support::{median, quantile, sized, timed};

/// The program to compare with: `cargo build --release --example nothing`.
fn nothing() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_ng")).with_file_name("examples").join("nothing");
    assert!(path.exists(), "{} is missing: cargo build --release --example nothing", path.display());
    path
}

/// Starts a program, gives it the payload and waits for its end.
fn run(command: &mut Command, payload: &str) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // One that does not read may have ended already.
    let _unread = child.stdin.take().unwrap().write_all(payload.as_bytes());
    child.wait().unwrap();
}

fn hook(state: &Path, event: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ng"));
    command.args(["hook", event, "--window", "w3", "--state"]).arg(state).env_clear().env("TMUX_PANE", "%12");
    command
}

fn payload(event: &str, output: &str) -> String {
    serde_json::json!({
        "hook_event_name": event,
        "session_id": "0b0f6b1e-2d5c-4c55-9d7e-2f6a3f0c7a11",
        "transcript_path": "/home/u/.claude/projects/p/s.jsonl",
        "cwd": "/home/u/p",
        "permission_mode": "default",
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
        "tool_input": { "command": "cargo test", "description": "Run the tests" },
        "tool_response": { "stdout": output },
        "prompt": "go on",
    })
    .to_string()
}

/// How often a call syncs a file to disk; `None` without strace.
fn syncs(state: &Path, event: &str) -> Option<u64> {
    let log = state.join("strace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=fsync,fdatasync,sync,syncfs", "-o"]).arg(&log);
    command.arg(env!("CARGO_BIN_EXE_ng")).args(["hook", event, "--window", "w3", "--state"]).arg(state);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    child.stdin.take().unwrap().write_all(payload(event, "").as_bytes()).unwrap();
    child.wait().unwrap();
    let text = fs::read_to_string(&log).ok()?;
    Some(text.lines().filter(|line| line.contains("sync")).count() as u64)
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let nothing = nothing();
    let rounds = sized(300, 5);
    head();
    let large = "x".repeat(20_000);
    for (what, event, output) in [
        ("`ng hook PreToolUse`", "PreToolUse", ""),
        ("`ng hook PostToolUse` with 20 kB of output", "PostToolUse", large.as_str()),
        ("`ng hook UserPromptSubmit`", "UserPromptSubmit", ""),
        ("`ng hook Stop`", "Stop", ""),
    ] {
        let payload = payload(event, output);
        let (mut ours, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            bare.push(timed(|| run(Command::new(&nothing).env_clear(), &payload)).1);
            ours.push(timed(|| run(&mut hook(dir.path(), event), &payload)).1);
        }
        let beside = |share| Some(("a program that does nothing", Figure::Time(quantile(&bare, share))));
        row(&format!("{what}, median"), Figure::Time(median(&ours)), beside(0.5), Budget::Times(3.0));
        row(&format!("{what}, p95"), Figure::Time(quantile(&ours, 0.95)), beside(0.95), Budget::Open);
    }
    let mut ours: Vec<Duration> = Vec::new();
    for _ in 0..sized(30, 1) {
        let dir = tempfile::tempdir().unwrap();
        let payload = payload("PermissionRequest", "");
        ours.push(timed(|| run(&mut hook(dir.path(), "PermissionRequest"), &payload)).1);
    }
    row("`ng hook PermissionRequest`, a new decision on disk, median", Figure::Time(median(&ours)), None, Budget::Open);
    if let Some(count) = syncs(dir.path(), "PreToolUse") {
        row("syncs to disk in `ng hook PreToolUse`", Figure::Count(count), None, Budget::AtMost(Figure::Count(0)));
    } else {
        println!("| syncs to disk in `ng hook PreToolUse` | not measured: strace is missing | | | ≤ 0 | |");
    }
}
