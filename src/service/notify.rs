//! What the service manager is told, and when: ready after the startup sweep, alive while the loop turns, the state in
//! one line whenever it changes, and that the end has begun.
//!
//! It is the loop's turns that count as life, not the heartbeat thread's beats: a loop that stands still is to be started
//! anew. A long delivery is no standstill, since the loop turns beside it.

use std::cell::RefCell;
use std::time::Duration;

use crate::daemon::board::Board;
use crate::logic::degraded::{self, Mode};
use crate::logic::instance::verdict::wedge_cutoff;
use crate::sys::clock::Clock;
use crate::sys::logging::LogGuard;
use crate::sys::systemd::{ServiceManager, Word};

/// Longest time between two looks at the board and the log.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How much longer a start may take that goes on. It waits for the records of what arrived, on a full disk for hours.
const START_WITHIN: Duration = Duration::from_secs(120);

/// How many times in the span after which we would count as stuck we say that we are not.
const SIGNS_A_SPAN: u32 = 4;

/// How long the manager may take to read the last word.
const LAST_WORD: Duration = Duration::from_millis(500);

/// Tells the service manager; silent where there is none.
#[derive(Debug)]
pub(super) struct Notifier {
    /// The manager, if one started us.
    manager: Option<ServiceManager>,
    /// Where the loop says how it fares.
    board: Board,
    /// The target window, for people.
    target: String,
    /// How often we say that we are not stuck.
    look_every: Duration,
    /// What was told last.
    told: RefCell<Told>,
}

/// What the manager knows.
#[derive(Debug, Default)]
struct Told {
    /// The sweep is done.
    ready: bool,
    /// The line for people.
    status: String,
    /// The turns of the loop at the last sign of life.
    turns: u64,
}

impl Notifier {
    /// Finds the manager. `interval` is the cadence of the reports, from which it follows how long a loop may stand still.
    pub(super) fn new(board: Board, target: &str, interval: Duration) -> Self {
        let manager = ServiceManager::find();
        let watched = manager.as_ref().and(ServiceManager::stuck_after());
        // A unit that was written for a shorter cadence would end a watcher that is only slow.
        let least = wedge_cutoff(interval, Duration::ZERO);
        if let (Some(manager), Some(span)) = (&manager, watched)
            && span < least
        {
            manager.tell(vec![Word::StuckAfter(least)]);
        }
        let look_every = watched.map_or(LOOK_EVERY, |span| LOOK_EVERY.min(span / SIGNS_A_SPAN));
        Self { manager, board, target: target.to_owned(), look_every, told: RefCell::default() }
    }

    /// Tells what changes, for ever; the log's state is on the board for it.
    pub(super) async fn attend(&self, log: &LogGuard) {
        let mut dropped = 0;
        loop {
            self.look_at_log(log, &mut dropped);
            let words = if self.manager.is_some() { self.words() } else { Vec::new() };
            if let Some(manager) = self.manager.as_ref().filter(|_| !words.is_empty())
                && !manager.tell(words)
            {
                // It is said again with the next look.
                *self.told.borrow_mut() = Told::default();
            }
            tokio::select! {
                biased;
                () = self.board.changed() => {}
                () = tokio::time::sleep(self.look_every) => {}
            }
        }
    }

    /// Puts on the board whether the log loses lines. The log can't say it itself.
    fn look_at_log(&self, log: &LogGuard, dropped: &mut usize) {
        let lost = log.dropped().saturating_sub(std::mem::replace(dropped, log.dropped()));
        let trouble = match (log.trouble(), lost) {
            (Some(why), _) => Some(why),
            (None, 0) => None,
            (None, lost) => Some(format!("{lost} lines came faster than they could be written, and are lost")),
        };
        self.board.report(&Clock::System.now(), Mode::LogUnwritable, trouble.as_deref());
    }

    /// What is to be said now.
    fn words(&self) -> Vec<Word> {
        let mut told = self.told.borrow_mut();
        let mut words = Vec::new();
        let has_turned = self.board.turns() != told.turns;
        if self.board.is_started() && !told.ready {
            words.push(Word::Ready);
            told.ready = true;
        } else if !told.ready && has_turned {
            words.push(Word::StartWithin(START_WITHIN));
        }
        if has_turned {
            words.push(Word::Alive);
            told.turns = self.board.turns();
        }
        let status = degraded::summary(&self.target, &self.board.faults());
        let status = if told.ready { status } else { format!("starting: {status}") };
        if status != told.status {
            words.push(Word::Status(status.clone()));
            told.status = status;
        }
        words
    }

    /// Says that the configuration is being read again.
    pub(super) fn reloading(&self) {
        if let Some(manager) = &self.manager {
            manager.tell(vec![Word::Reloading]);
        }
    }

    /// Says that it was read, whatever came of it: what is wrong with it is in the status.
    pub(super) fn reloaded(&self) {
        if let Some(manager) = &self.manager {
            manager.tell(vec![Word::Ready]);
        }
    }

    /// Says that the end has begun.
    pub(super) fn stopping(&self) {
        if let Some(manager) = &self.manager {
            manager.tell(vec![Word::Stopping, Word::Status("ending".to_owned())]);
        }
    }

    /// Waits a moment until the last word is read.
    pub(super) fn finish(self) {
        if let Some(manager) = self.manager {
            manager.finish(LAST_WORD);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::time::{Now, Timestamp};

    fn notifier(board: &Board) -> Notifier {
        Notifier {
            manager: None,
            board: board.clone(),
            target: "orch".into(),
            look_every: LOOK_EVERY,
            told: RefCell::default(),
        }
    }

    fn status(text: &str) -> Word {
        Word::Status(text.into())
    }

    #[test]
    fn it_is_ready_after_the_sweep_and_alive_while_the_loop_turns() {
        let board = Board::default();
        let notifier = notifier(&board);
        assert_eq!(notifier.words(), [status("starting: watching for orch")]);
        assert_eq!(notifier.words(), [], "a start that stands still is not extended");
        board.turn();
        assert_eq!(notifier.words(), [Word::StartWithin(START_WITHIN), Word::Alive]);
        board.turn();
        board.set_started();
        assert_eq!(notifier.words(), [Word::Ready, Word::Alive, status("watching for orch")]);
        assert_eq!(notifier.words(), [], "a loop that stands still gives no sign of life");
        board.turn();
        assert_eq!(notifier.words(), [Word::Alive]);
    }

    #[test]
    fn the_status_says_what_is_degraded_while_it_is() {
        let board = Board::default();
        board.set_started();
        let notifier = notifier(&board);
        notifier.words();
        let now = Now::fixed(Timestamp::from_secs(0));
        board.report(&now, Mode::DeliveryHeld, Some("draft"));
        let line = "watching for orch; delivery-held since 1970-01-01T00:00:00+00:00: draft";
        assert_eq!(notifier.words(), [status(line)]);
        board.report(&now, Mode::DeliveryHeld, None);
        assert_eq!(notifier.words(), [status("watching for orch")]);
    }
}
