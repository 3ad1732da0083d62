//! Carries out one delivery: drives `logic::delivery::machine` against a pane, for the watcher's emits and for `ng send`
//! alike. Owns the order of lock, look, journal, paste and Enter; what is journalled, and where, is its caller's.

use std::time::Duration;

use super::actuate::{self, On};
use super::audit::{Record, Warrant};
use super::look::{self, Aim};
use super::outside::Outside;
use super::witness::Watch;
use crate::logic::audit::What;
use crate::logic::delivery::Outcome;
use crate::logic::delivery::Pasted;
use crate::logic::delivery::gate::{Hold, Target};
use crate::logic::delivery::machine::{Delivery, Fold, Happened, Limits, Step};
use crate::logic::ids::{PaneKey, WindowName};
use crate::logic::time::Now;
use crate::sys::fault;
use crate::sys::files::{self, Durability};
use crate::sys::target_lock::{self, Attempt, TargetLock};
use crate::sys::tmux::Tmux;

/// How often the target is looked at while a delivery is under way. The pane's proof can scroll away within 100 ms.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// How long an agent may take to take back the letter of the vi guard.
const VI_GUARD_SETTLES: Duration = Duration::from_millis(150);

/// Where a text goes, and as whose.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    /// Which window.
    pub(super) aim: Aim,
    /// Its name, for the files that carry it.
    pub(super) window: WindowName,
    /// Why it is typed, and by whom.
    pub(super) warrant: Warrant,
    /// What is pasted.
    pub(super) pasted: Pasted,
    /// Nothing is typed unless the stamp of machine input could be written.
    pub(super) must_stamp: bool,
}

/// What a delivery writes down so that a crash can be made good.
pub(super) trait Journal {
    /// Writes the intent durably, before anything is typed. Errors: nothing may be typed.
    fn intent(&mut self, pane: &PaneKey, pid: u32, transcript: Option<(String, u64)>, now: &Now)
    -> std::io::Result<()>;

    /// Adds the fold that our paste stands in the box as.
    fn fold(&mut self, fold: &Fold) -> std::io::Result<()>;

    /// Nothing was typed after all.
    fn withdraw(&mut self);
}

/// How long things may take, by the settings.
pub(super) fn limits<T>(out: &Outside<T>, confirm: Duration) -> Limits {
    Limits {
        settle: out.settings.get().paste_settle,
        confirm,
        look_every: LOOK_EVERY,
        screen_counts: out.settings.get().witnesses.screen,
    }
}

/// Runs the machine to its end. Returns the outcome and the machine as it ended.
pub(super) async fn drive<T: Tmux>(
    out: &Outside<T>,
    letter: &Letter,
    mut delivery: Delivery,
    mut watch: Watch,
    journal: &mut impl Journal,
) -> (Outcome, Delivery) {
    let mut record = Record::new(letter.warrant.clone(), letter.window.clone());
    let outcome = steps(out, letter, &mut delivery, &mut watch, journal, &mut record).await;
    record.close(out, What::paste(&letter.pasted.body), &outcome).await;
    (outcome, delivery)
}

/// Carries out one step after the other.
async fn steps<T: Tmux>(
    out: &Outside<T>,
    letter: &Letter,
    delivery: &mut Delivery,
    watch: &mut Watch,
    journal: &mut impl Journal,
    record: &mut Record,
) -> Outcome {
    let mut typist = Typist { key: None, lock: None };
    let mut step = delivery.start();
    loop {
        let happened = match step {
            Step::Done(outcome) => return outcome,
            Step::Look => match typist.look(out, letter, delivery.is_before_paste()).await {
                Ok(target) => {
                    if let Target::Present(seen) = &target {
                        record.saw(&seen.screen, seen.shell_behind);
                    }
                    Happened::Seen(target)
                }
                // Before the paste nothing was typed; afterwards the lock is held, so that this can't be.
                Err(hold) => return Outcome::Held(hold),
            },
            Step::Sleep(time) => {
                tokio::time::sleep(time).await;
                Happened::Slept
            }
            Step::Prove => Happened::Proofs(watch.proof(out, &letter.pasted, delivery.believes_hook())),
            Step::NoteFold(fold) => {
                fault::point("before-fold");
                if let Err(error) = journal.fold(&fold) {
                    let what = "the folded paste could not be written down; a crash now leaves it to a person";
                    out.edges.fails("fold", &error, what);
                }
                fault::point("after-fold");
                Happened::Noted
            }
            Step::Enter { key, pid, require, rows } => {
                let stamped = stamp(out, letter);
                if letter.must_stamp && !stamped {
                    Happened::Refused(Hold::NoJournal)
                } else {
                    record.observed(out, "our text stands in the input box");
                    fault::point("before-enter");
                    let on = On { key, pid, texts: require, rows };
                    let happened = actuate::enter(out, record, on, !letter.must_stamp).await;
                    fault::point("after-enter");
                    happened
                }
            }
            Step::Paste { key, pid, require, rows, vi_guard } => {
                let on = On { key, pid, texts: require, rows };
                paste(out, letter, (on, vi_guard), watch, journal, record).await
            }
        };
        step = delivery.next(out.clock.now().uptime, happened);
    }
}

/// Whoever types holds the lock of the pane.
struct Typist {
    /// The pane that is locked.
    key: Option<PaneKey>,
    /// Its lock.
    lock: Option<TargetLock>,
}

impl Typist {
    /// A look that counts: at a pane of which we hold the lock.
    async fn look<T: Tmux>(&mut self, out: &Outside<T>, letter: &Letter, may_paste: bool) -> Result<Target, Hold> {
        let target = look::at(out, &letter.aim).await;
        let Target::Present(seen) = &target else { return Ok(target) };
        if self.lock.is_some() {
            // Once something was typed, another pane in its place is the machine's to judge.
            let is_other = self.key.as_ref() != Some(&seen.key);
            return if may_paste && is_other { Err(Hold::Changed) } else { Ok(target) };
        }
        match target_lock::try_take(&out.state, &seen.key, &letter.warrant.by.src) {
            Ok(Attempt::Taken(lock)) => {
                out.edges.works("pane-lock");
                self.key = Some(seen.key.clone());
                self.lock = Some(lock);
            }
            Ok(Attempt::Busy) => return Err(Hold::Locked),
            Err(error) => {
                out.edges.fails("pane-lock", &error, "the lock of the pane can't be taken; nothing is typed");
                return Err(Hold::NoJournal);
            }
        }
        // What was seen before the lock was held may be another's doing.
        let again = look::at(out, &letter.aim).await;
        match &again {
            Target::Present(seen) if self.key.as_ref() != Some(&seen.key) => Err(Hold::Changed),
            _ => Ok(again),
        }
    }
}

/// Writes the intent durably, then pastes.
async fn paste<T: Tmux>(
    out: &Outside<T>,
    letter: &Letter,
    (on, vi_guard): (On, bool),
    watch: &mut Watch,
    journal: &mut impl Journal,
    record: &mut Record,
) -> Happened {
    let now = out.clock.now();
    watch.begin(out, &on.key);
    fault::point("before-journal");
    if let Err(error) = journal.intent(&on.key, on.pid, watch.transcript(), &now) {
        // Without a journal a crash could tell twice or lose; nothing is typed.
        out.edges.fails("journal", &error, "the delivery could not be journalled; nothing is typed");
        return Happened::Refused(Hold::NoJournal);
    }
    out.edges.works("journal");
    fault::point("after-journal");
    if !stamp(out, letter) && letter.must_stamp {
        journal.withdraw();
        return Happened::Refused(Hold::NoJournal);
    }
    fault::point("before-paste");
    let mut happened = Happened::Acted;
    if vi_guard {
        happened = actuate::vi_guard(out, record, on.clone()).await;
        // The box shows the letter for a moment, and the paste is refused on a box that is not empty.
        tokio::time::sleep(VI_GUARD_SETTLES).await;
    }
    if happened == Happened::Acted {
        happened = actuate::paste(out, record, on, letter.pasted.body.clone()).await;
    }
    fault::point("after-paste");
    if matches!(happened, Happened::Refused(_) | Happened::Vanished(_) | Happened::NothingTyped(_)) {
        journal.withdraw();
    }
    happened
}

/// Stamps the coming keys as the machine's, so that they are never taken for a person's. `false` if it failed.
fn stamp<T>(out: &Outside<T>, letter: &Letter) -> bool {
    let line =
        format!("{}\t{}\t{}\n", cell(letter.window.as_str()), out.clock.now().at.secs(), cell(&letter.warrant.by.src));
    match files::append_lines(&out.state.at("machine-input.tsv"), &line, Durability::Hint) {
        Ok(()) => {
            out.edges.works("machine-input");
            true
        }
        Err(error) => {
            out.edges.fails("machine-input", &error, "could not stamp machine input");
            false
        }
    }
}

/// A text as one cell of a table.
fn cell(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '_' } else { c }).collect()
}
