//! The demo agent in a real terminal: what it is sent, it logs; what it shows, a watcher can read.

#[path = "support/tmux_server.rs"]
mod tmux_server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tmux_server::{TmuxServer, is_running, wait_until};

const SOON: Duration = Duration::from_secs(10);

/// One demo agent in a window.
struct Demo {
    tmux: TmuxServer,
    log: PathBuf,
    control: PathBuf,
}

impl Demo {
    /// Starts it with these switches, and waits for its first screen.
    fn start(switches: &[&str]) -> Self {
        let tmux = TmuxServer::start(80, 24);
        let demo = Self { log: tmux.dir().join("log"), control: tmux.dir().join("control"), tmux };
        let (log, control) = (demo.log.display().to_string(), demo.control.display().to_string());
        let mut argv = vec![env!("CARGO_BIN_EXE_ng"), "demo", "agent", "--log", &log, "--control", &control];
        argv.extend(switches);
        demo.tmux.window("w", demo.tmux.dir(), &argv);
        demo.tmux.wait_for("w", "❯", SOON);
        demo
    }

    fn events(&self, event: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|line| line["event"] == event).collect()
    }

    fn wait_for_event(&self, event: &str) -> Value {
        wait_until(&format!("a {event} in the log"), SOON, || {
            self.events(event).pop().ok_or_else(|| std::fs::read_to_string(&self.log).unwrap_or_default())
        })
    }

    fn tell(&self, command: &str) {
        std::fs::write(&self.control, format!("{command}\n")).expect("the control pipe takes a line");
    }
}

fn long_text() -> String {
    let lines: Vec<String> = (1..=60).map(|number| format!("line {number}")).collect();
    format!("{}\n--- nexus-emit-sig 1 abcdef ---", lines.join("\n"))
}

#[test]
fn a_long_paste_folds_and_is_sent_whole() {
    for switches in [&[][..], &["--inline"]] {
        let demo = Demo::start(switches);
        demo.tmux.paste("w", &long_text());
        demo.tmux.wait_for("w", r"❯\u{a0}\[Pasted text #1 \+60 lines\]", SOON);
        demo.tmux.key("w", "Enter");
        assert_eq!(demo.wait_for_event("submit")["text"], long_text());
        demo.tmux.wait_for("w", "--- nexus-emit-sig 1 abcdef ---", SOON);
        demo.tmux.wait_for("w", r"Worked for 0s(?s:.*)❯\u{a0}", SOON);
    }
}

#[test]
fn a_busy_one_queues_until_it_is_idle() {
    let demo = Demo::start(&["--role", "busy"]);
    demo.tmux.wait_for("w", r"✻ Working… \(\d+s · ↓ \d+ tokens\)(?s:.*)esc to interrupt", SOON);
    demo.tmux.paste("w", &long_text());
    demo.tmux.wait_for("w", r"\[Pasted text #1", SOON);
    demo.tmux.key("w", "Enter");
    let screen = demo.tmux.wait_for("w", "Press up to edit queued messages", SOON);
    assert!(screen.contains("… +57 lines") && screen.contains("⎿  Queued"), "{screen}");
    assert!(!screen.contains("nexus-emit-sig"), "the end of a queued message is hidden");
    demo.tell("idle");
    assert_eq!(demo.wait_for_event("taken-up")["text"], long_text());
    demo.tmux.wait_for("w", "nexus-emit-sig", SOON);
}

#[test]
fn an_enter_into_a_dialog_answers_it() {
    let demo = Demo::start(&["--dialog", "permission"]);
    demo.tmux.wait_for("w", r"Do you want to proceed\?(?s:.*)❯ 1\. Yes", SOON);
    demo.tmux.paste("w", "a report");
    wait_until("the paste", SOON, || demo.events("read").pop().ok_or_else(String::new));
    // The dialog is deaf at first; a person's second press is taken.
    wait_until("the answer", SOON, || {
        demo.tmux.key("w", "Enter");
        demo.events("answer").pop().ok_or_else(|| demo.tmux.screen("w"))
    });
    let answer = demo.wait_for_event("answer");
    assert_eq!((&answer["option"], &answer["label"]), (&1.into(), &"Yes".into()));
    assert!(demo.events("submit").is_empty(), "the paste was swallowed");
}

#[test]
fn control_commands_change_it() {
    let demo = Demo::start(&[]);
    demo.tell("draft half a thought");
    demo.tmux.wait_for("w", "❯\u{a0}half a thought", SOON);
    demo.tell("dialog trust");
    demo.tmux.wait_for("w", "❯ No, exit", SOON);
    demo.tell("close");
    demo.tmux.wait_for("w", "❯\u{a0}half a thought", SOON);
    demo.tmux.tmux(&["set-option", "-w", "-t", "=nexus:=w", "remain-on-exit", "on"]);
    demo.tell("exit 3");
    wait_until("its end", SOON, || {
        // Seen: tmux 3.3a leaves an ended program unreaped, without a status, until another of its children ends.
        demo.tmux.tmux(&["run-shell", "true"]);
        let status = demo.tmux.format("w", "#{pane_dead} #{pane_dead_status}");
        if status == "1 3" { Ok(()) } else { Err(status) }
    });
    assert!(!demo.control.exists(), "the pipe it made is gone");
}

#[test]
fn a_suggestion_is_dim_and_a_draft_is_not() {
    let demo = Demo::start(&["--ghost", "run the tests"]);
    let screen = demo.tmux.styled_screen("w");
    assert!(screen.contains("❯\u{a0}\u{1b}[7mr\u{1b}[0;2m"), "{screen:?}");
    demo.tmux.paste("w", "漢字 é");
    demo.tmux.wait_for("w", "❯\u{a0}漢字 é", SOON);
    let screen = demo.tmux.styled_screen("w");
    assert!(screen.contains("❯\u{a0}漢字 é\u{1b}[7m"), "{screen:?}");
    assert_eq!(demo.tmux.format("w", "#{cursor_x}"), "8", "wide characters take two cells");
}

#[test]
fn it_runs_hooks_and_writes_a_session_file() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let transcript = dir.path().join("session.jsonl");
    let state = dir.path().join("state");
    let demo = Demo::start(&[
        "--hooks",
        "--window",
        "w",
        "--state",
        state.to_str().expect("a UTF-8 path"),
        "--transcript",
        transcript.to_str().expect("a UTF-8 path"),
    ]);
    demo.tmux.send("w", "hello there");
    wait_until("the session file", SOON, || record(&transcript, "hello there"));
}

fn record(transcript: &Path, text: &str) -> Result<(), String> {
    let records = std::fs::read_to_string(transcript).unwrap_or_default();
    let found = records.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut typed = found.filter(|record| record["type"] == "user" && record["promptSource"] == "typed");
    if typed.any(|record| record["message"]["content"] == text) { Ok(()) } else { Err(records) }
}

#[test]
fn it_ends_with_its_terminal_and_uses_no_time_while_idle() {
    let demo = Demo::start(&[]);
    let pid: u32 = demo.tmux.format("w", "#{pane_pid}").parse().expect("a process id");
    let cpu = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let fields: Vec<String> = stat.rsplit(')').next().unwrap_or("").split_whitespace().map(str::to_owned).collect();
        (fields[11].clone(), fields[12].clone())
    };
    let before = cpu();
    // Something else that takes a while, in which an idle program does nothing.
    demo.tmux.tmux(&["run-shell", "sleep 1"]);
    assert_eq!(cpu(), before, "ticks of user and system time");
    demo.tmux.tmux(&["kill-window", "-t", "=nexus:=w"]);
    wait_until("its end", SOON, || if is_running(pid) { Err(format!("{pid} runs")) } else { Ok(()) });
}

#[test]
fn faulty_switches_are_usage_errors() {
    for switches in [&["--role", "boss"][..], &["--dialog", "x"], &["--hooks"], &["--nonsense"]] {
        #[expect(clippy::disallowed_methods, reason = "tests start the program")]
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_ng"))
            .args(["demo", "agent"])
            .args(switches)
            .output()
            .expect("ng runs");
        assert_eq!(output.status.code(), Some(2), "{switches:?}");
    }
}
