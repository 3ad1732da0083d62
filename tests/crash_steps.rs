//! The watcher ended by a debugger at the n-th of its system calls that change anything, for every n of a telling:
//! files written, renamed, removed and synced, and what is said to tmux. Whatever the step, the next watcher tells each
//! signal, and again only as a repetition that says so.
//!
//! `tests/crash.rs` names the steps that matter; this finds those that nobody thought of. Needs `strace`. A short walk
//! by default; `scripts/crash.sh` goes through every step. A failure names its step, and `NEXUS_CRASH_FROM` repeats it.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test fails by panicking, waits by polling and says how far it went"
)]

#[path = "support/fleet.rs"]
mod fleet;

use std::sync::atomic::{AtomicU32, Ordering};

use fleet::Fleet;

/// The system calls that leave something behind. The tracer counts each kind by itself.
const CHANGES: [&str; 6] =
    ["write,writev", "openat", "rename,renameat,renameat2", "unlink,unlinkat", "fsync", "ftruncate"];

/// Opening is the most frequent of them by far, and the short walk takes longer strides there.
const OPENING: &str = "openat";

const DECISION: &str = "0a1b2c3d4e5f";
const REPORT: &str = "w9_step_report.md";
const BELL: &str = "keeper (idx";

/// Each signal, by what its line in a report holds.
const SIGNALS: [&str; 3] = [DECISION, REPORT, BELL];

fn number(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Whether the orchestrator has been told of everything.
fn has_all(fleet: &Fleet) -> bool {
    let texts = fleet.submitted("orchestrator");
    SIGNALS.iter().all(|signal| texts.iter().any(|text| text.contains(signal)))
}

/// Ends the watcher at its n-th such call while it tells three signals, starts another, and checks what the
/// orchestrator got. Returns whether the first one got as far as that.
fn check(calls: &str, step: u32, switches: &str) -> bool {
    let what = format!("killed at {calls} number {step} with {switches:?}");
    let mut fleet = Fleet::new();
    let transcript = fleet.root().join("session.jsonl");
    fleet.orchestrator(&format!("{} --transcript {} {switches}", fleet.hooks("orchestrator"), transcript.display()));
    // A first run sees the nexus as it is, so that the report is news.
    let (code, said) = fleet.run_watcher(&["--once"]);
    assert_eq!(code, 0, "{what}: {said}");
    std::fs::write(fleet.root().join("reports").join(REPORT), "# A report\n").unwrap();
    fleet.decide("keeper", DECISION);
    fleet.tmux(&["run-shell", "-t", &fleet.window("keeper"), "printf '\\a' > #{pane_tty}"]);
    fleet.watch_killed_at(step, calls);
    let killed = fleet.wait_killed_or(&what, |fleet| has_all(fleet) && !fleet.is_pending());
    if !killed {
        return false;
    }
    fleet.watch();
    fleet.wait_settled(&what, || {
        // A bare fold can't be proven ours: a person who sees it presses Enter.
        if switches.is_empty() && fleet.screen("orchestrator").lines().any(|row| row.contains("[Pasted text #")) {
            let is_held = fleet.emits().last().is_some_and(|emit| {
                emit["outcome"] == "unknown" && emit["detail"].as_str().is_some_and(|why| why.starts_with("unproven"))
            });
            if is_held {
                fleet.tmux(&["send-keys", "-t", &fleet.window("orchestrator"), "Enter"]);
            }
        }
        has_all(&fleet)
    });
    for signal in SIGNALS {
        let texts: Vec<_> = fleet.submitted("orchestrator").into_iter().filter(|text| text.contains(signal)).collect();
        for again in texts.iter().skip(1) {
            assert!(again.contains("repeat of"), "{what}: {signal} was told {} times: {texts:#?}", texts.len());
        }
    }
    true
}

/// Goes through the steps of one kind of call, a few at a time; returns how many were reached.
fn walk(calls: &str, switches: &str) -> u32 {
    let (first, stride) = (number("NEXUS_CRASH_FROM", 2), if calls == OPENING { 60 } else { 13 });
    let by = number("NEXUS_CRASH_BY", stride).max(1);
    let last = number("NEXUS_CRASH_TO", u32::MAX);
    let (next, killed) = (AtomicU32::new(first), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let step = next.fetch_add(by, Ordering::Relaxed);
                    if step > last || !check(calls, step, switches) {
                        return;
                    }
                    killed.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    killed.into_inner()
}

/// Goes through every kind of call.
fn walk_all(switches: &str) {
    let mut killed = 0;
    for calls in CHANGES {
        let reached = walk(calls, switches);
        println!("killed at {reached} calls of {calls} with {switches:?}");
        killed += reached;
    }
    assert!(killed > 0, "no step was reached: is strace allowed to trace?");
}

#[test]
fn killed_at_any_system_call_it_tells_each_signal_once() {
    walk_all("--no-collapse");
}

#[test]
fn killed_at_any_system_call_of_a_folded_telling_it_tells_each_signal_once() {
    walk_all("");
}
