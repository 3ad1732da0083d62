//! Where the loop says how it fares, for what stands beside it (the service manager, `ng watcher-status`): that it
//! turns, that the startup sweep is done, and what is degraded. A handle on one board; every part of the thread may
//! report to it.
//!
//! The loop publishes: edges go to the log, the ledger to `degraded.json`, what lasts to `watcher-alerts.log`. Where
//! that can't be written it is tried again with the next tick.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tokio::sync::Notify;

use crate::logic::degraded::{self, Edge, Fault, Ledger, Mode, Record};
use crate::logic::time::Now;
use crate::sys::alerts;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES, StateDir};

/// Most bytes of alerts that wait while they can't be written.
const MAX_WAITING: usize = 64 << 10;

/// A handle on the board.
#[derive(Clone, Debug, Default)]
pub struct Board(Rc<Inner>);

/// What the handles share.
#[derive(Debug, Default)]
struct Inner {
    /// How often the loop has turned.
    turns: Cell<u64>,
    /// The startup sweep is done.
    started: Cell<bool>,
    /// Wakes who shows the state.
    changed: Notify,
    /// What is degraded.
    ledger: RefCell<Ledger>,
    /// The file does not say what the ledger says.
    unwritten: Cell<bool>,
    /// Lines for people that could not be written yet.
    waiting: RefCell<String>,
}

impl Board {
    /// Says that the loop has turned.
    pub fn turn(&self) {
        self.0.turns.set(self.0.turns.get().wrapping_add(1));
    }

    /// How often the loop has turned.
    pub fn turns(&self) -> u64 {
        self.0.turns.get()
    }

    /// Says that the startup sweep is done.
    pub fn set_started(&self) {
        self.0.started.set(true);
        self.0.changed.notify_one();
    }

    /// Whether the startup sweep is done.
    pub fn is_started(&self) -> bool {
        self.0.started.get()
    }

    /// Completes when something may have changed since the last call.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// What is degraded.
    pub fn faults(&self) -> Vec<Fault> {
        self.0.ledger.borrow().faults()
    }

    /// Says that a mode holds, with what exactly, or (`None`) that it does not. Levels are fine: only edges are said.
    pub fn report(&self, now: &Now, mode: Mode, detail: Option<&str>) {
        let edge = self.0.ledger.borrow_mut().report(now, mode, detail);
        if let Some(edge) = edge {
            self.take(now, edge);
        }
    }

    /// Reports the end of an attempt: an error is the mode, success its end.
    pub(super) fn report_result(&self, now: &Now, mode: Mode, result: Result<(), String>) {
        self.report(now, mode, result.err().as_deref());
    }

    /// Takes over since when things were so before a restart.
    pub(super) fn remember(&self, state: &StateDir) {
        let text = files::read_text(&state.at(degraded::FILE), MAX_STATE_BYTES).ok().flatten();
        if let Some(record) = text.as_deref().and_then(Record::parse) {
            self.0.ledger.borrow_mut().remember(&record);
        }
        // Whatever stands there is an earlier watcher's.
        self.0.unwritten.set(true);
    }

    /// Writes what changed, and alerts people of what lasts.
    pub(super) fn publish(&self, state: &StateDir, now: &Now) {
        let over = self.0.ledger.borrow_mut().expire(now);
        for edge in over {
            self.take(now, edge);
        }
        let due = self.0.ledger.borrow_mut().alerts(now.at);
        for fault in &due {
            self.queue(&degraded::alert_line(now, fault));
        }
        if self.0.unwritten.get() {
            let record = Record { pid: std::process::id(), modes: self.faults() };
            // A failure is the mode `state-unwritable`, which the loop reports.
            let written = files::write_atomic(&state.at(degraded::FILE), record.render().as_bytes(), Durability::Hint);
            self.0.unwritten.set(written.is_err());
        }
        let mut waiting = self.0.waiting.borrow_mut();
        if !waiting.is_empty() && files::append_lines(&state.at(alerts::LOG), &waiting, Durability::Hint).is_ok() {
            waiting.clear();
        }
    }

    /// Logs an edge and marks what is to be written.
    fn take(&self, now: &Now, edge: Edge) {
        match edge {
            Edge::Says(fault) => tracing::warn!(since = fault.since, "{}: {}", fault.mode.word(), fault.detail),
            Edge::Over { mode, lasted, alerted } => {
                tracing::info!(lasted_s = lasted.as_secs(), "{} is over", mode.word());
                if alerted {
                    self.queue(&degraded::over_line(now, mode, lasted));
                }
            }
        }
        self.0.unwritten.set(true);
        self.0.changed.notify_one();
    }

    /// Keeps a line until it can be written.
    fn queue(&self, line: &str) {
        let mut waiting = self.0.waiting.borrow_mut();
        if waiting.len() + line.len() <= MAX_WAITING {
            waiting.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::time::Timestamp;

    fn at(secs: i64) -> Now {
        Now::fixed(Timestamp::from_secs(secs))
    }

    fn read(state: &StateDir, name: &str) -> String {
        std::fs::read_to_string(state.at(name)).unwrap_or_default()
    }

    #[test]
    fn what_holds_is_in_the_file_and_what_is_over_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let board = Board::default();
        board.remember(&state);
        board.publish(&state, &at(1));
        assert_eq!(Record::parse(&read(&state, degraded::FILE)).unwrap().modes, []);
        board.report(&at(2), Mode::TargetAbsent, Some("no window orchestrator"));
        board.publish(&state, &at(2));
        let record = Record::parse(&read(&state, degraded::FILE)).unwrap();
        assert_eq!((record.pid, record.modes.len()), (std::process::id(), 1));
        board.publish(&state, &at(2000));
        assert!(
            read(&state, alerts::LOG).contains("WARN watcher target-absent since=1970-01-01T00:00:02+00:00 age=33m")
        );
        board.report(&at(2400), Mode::TargetAbsent, None);
        board.publish(&state, &at(2400));
        assert_eq!(Record::parse(&read(&state, degraded::FILE)).unwrap().modes, []);
        assert!(
            read(&state, alerts::LOG).ends_with("OVER watcher target-absent after=39m\n"),
            "{}",
            read(&state, alerts::LOG)
        );
    }

    #[test]
    fn what_could_not_be_written_is_written_later() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path().join("state"));
        std::fs::write(state.path(), "a file in its place").unwrap();
        let board = Board::default();
        board.report(&at(0), Mode::UnprovenText, Some("a fold"));
        board.publish(&state, &at(0));
        std::fs::remove_file(state.path()).unwrap();
        board.publish(&state, &at(1));
        assert_eq!(Record::parse(&read(&state, degraded::FILE)).unwrap().modes.len(), 1);
        assert!(read(&state, alerts::LOG).starts_with("[1970-01-01T00:00:00+00:00] ALERT watcher unproven-text"));
    }
}
