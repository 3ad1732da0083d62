//! One line of `watcher-scheduler.jsonl` for each start and end of a run.

use serde::{Deserialize, Serialize};

/// What happened to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// A synchronous run ended.
    Sync,
    /// An asynchronous run was started.
    AsyncStart,
    /// An asynchronous run ended by itself.
    AsyncDone,
    /// An asynchronous run was ended by the watchdog.
    AsyncTimeout,
}

/// One telemetry record.
///
/// Shape:  `{"ts":"<iso>","task":"github_poll","rc":0,"elapsed_ms":812,"next_fire":1759000600,"phase":"sync"}`.
/// Units:  `next_fire` in seconds since 1970, 0 for due now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Telemetry {
    /// When it happened, ISO 8601 with offset.
    pub ts: String,
    /// The task; a log of another version may name one that is not known here.
    pub task: String,
    /// Its return code.
    pub rc: i32,
    /// How long the run took so far.
    pub elapsed_ms: u64,
    /// When the task is next to run.
    pub next_fire: i64,
    /// What happened.
    pub phase: Phase,
}

impl Telemetry {
    /// The record as one line with its newline.
    pub fn line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("plain fields always serialize");
        line.push('\n');
        line
    }

    /// Reads one line; `None` for anything else, such as a line cut off by a crash.
    pub fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line.trim()).ok()
    }
}
