//! The delivery state machine of `contracts.md` §5: what to do next, given what happened.
//!
//! It never repeats a paste that may have arrived, and presses Enter only on a box that shows our own text. The driver
//! carries out a [`Step`] and answers with what [`Happened`]; times are monotonic.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::gate::{Gate, Hold, Seen, Target, judge};
use super::proof::{Before, OwnText, by_screen, locate};
use super::{Outcome, Pasted, Proof, ProofBy};
use crate::logic::ids::PaneKey;

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For the pasted text to show.
    pub settle: Duration,
    /// For a proof of arrival, from the first Enter.
    pub confirm: Duration,
    /// Between two looks.
    pub look_every: Duration,
    /// Whether the pane counts as a witness.
    pub screen_counts: bool,
}

/// Before the one retry of a paste of which nothing was typed.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Waits before a further Enter while our own text stands in the box. Agents ignore an Enter that comes within some
/// hundred milliseconds of a paste (`pains` P29), so each wait is longer than the one before.
const ENTER_GAPS: [Duration; 2] = [Duration::from_millis(700), Duration::from_secs(2)];

/// Wait before an Enter that was refused is tried again.
const ENTER_AGAIN: Duration = Duration::from_millis(500);

/// A folded paste of ours as it stood alone in the box. An agent that numbers its folds shows the same text for no other
/// paste while it runs (seen on Claude Code 2.1.332: across submitting, clearing and `/clear`), so that it is known again
/// after a restart of ours (ADR 0015).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fold {
    /// As drawn: `[Pasted text #3 +41 lines]`.
    pub text: String,
    /// The agent's process.
    pub agent_pid: u32,
}

/// What the driver is to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Look at the target afresh.
    Look,
    /// Note the intent in the journal, then paste the body, if each of these texts is still on the screen.
    Paste {
        /// The pane that was judged.
        key: PaneKey,
        /// Its process.
        pid: u32,
        /// Texts that tmux checks together with the act.
        require: Vec<String>,
        /// Rows of the box that tmux checks whole, so that nobody has typed into it since the look.
        rows: Vec<String>,
        /// Press `i` and `BSpace` first, which leaves an empty vi box in insert mode.
        vi_guard: bool,
    },
    /// Press Enter, if this text of ours is still on the screen.
    Enter {
        /// The pane that was judged.
        key: PaneKey,
        /// Its process.
        pid: u32,
        /// Texts that tmux checks together with the act.
        require: Vec<String>,
        /// Rows of the box that tmux checks whole, so that nobody has typed into it since the look.
        rows: Vec<String>,
    },
    /// Write down that our paste stands in the box as this fold.
    NoteFold(Fold),
    /// Ask the hook's receipt and the transcript.
    Prove,
    /// Wait this long.
    Sleep(Duration),
    /// It is over.
    Done(Outcome),
}

/// What came of the last step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The look found this.
    Seen(Target),
    /// The act was carried out.
    Acted,
    /// tmux checked and did not act.
    Refused(Hold),
    /// The pane is gone or dead; nothing was typed.
    Vanished(String),
    /// The act failed before anything could be typed.
    NothingTyped(String),
    /// The act failed, and something may have been typed.
    MayHaveTyped(String),
    /// The fold was written down, or could not be, which costs nothing but its proof after a crash.
    Noted,
    /// The witnesses other than the pane say this.
    Proofs(Option<Proof>),
    /// The wait is over.
    Slept,
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is typed; looking whether it may be.
    PreCheck,
    /// The paste is under way.
    Pasting,
    /// Waiting before the one retry.
    RetryWait,
    /// Waiting for our text to show.
    Settling,
    /// Our fold is being written down.
    Noting,
    /// An Enter is under way.
    Entering,
    /// Looking for a proof.
    Confirming,
    /// Over.
    Over,
}

/// One delivery of one emit.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// What witnesses look for.
    pasted: Pasted,
    /// How long things may take.
    limits: Limits,
    /// Where it stands.
    phase: Phase,
    /// The pane that was pasted into.
    pane: Option<(PaneKey, u32)>,
    /// The one retry of a paste is used up.
    retried: bool,
    /// How often Enter was pressed, or counts as pressed.
    enters: usize,
    /// When it was pressed last.
    last_enter: Duration,
    /// How often it was tried.
    tries: usize,
    /// When it was refused last.
    refused: Option<Duration>,
    /// When the present phase began.
    since: Duration,
    /// The agent's queue held something before the paste.
    queued_before: bool,
    /// A turn was running at the paste, so the agent will queue the text.
    busy: bool,
    /// What stood on the screen before the paste.
    before: Before,
    /// Only an Enter on our whole visible text is allowed (a delivery from before a restart).
    only_certain: bool,
    /// Our paste is known to have stood in the box as this fold.
    fold: Option<Fold>,
    /// The text is left in the box.
    place_only: bool,
    /// Our text was last seen in the box, unsent.
    stuck: bool,
    /// Why the last look can't rule out that our text is there.
    blind: Option<Hold>,
    /// What tmux said where it did not say whether it acted.
    note: Option<String>,
}

impl Delivery {
    /// A new delivery of a text.
    pub fn new(pasted: Pasted, limits: Limits) -> Self {
        Self {
            pasted,
            limits,
            phase: Phase::PreCheck,
            pane: None,
            retried: false,
            enters: 0,
            tries: 0,
            refused: None,
            last_enter: Duration::ZERO,
            since: Duration::ZERO,
            queued_before: false,
            busy: false,
            before: Before::default(),
            only_certain: false,
            fold: None,
            place_only: false,
            stuck: false,
            blind: None,
            note: None,
        }
    }

    /// A delivery that leaves the text in the box.
    #[must_use]
    pub fn without_enter(self) -> Self {
        Self { place_only: true, ..self }
    }

    /// Settles an earlier delivery whose outcome is unknown: looks for its proof, presses Enter at most once and only
    /// on our whole visible text, or on the fold that was written down; never pastes.
    pub fn settle_earlier(
        pasted: Pasted,
        pane: (PaneKey, u32),
        fold: Option<Fold>,
        limits: Limits,
        now: Duration,
    ) -> Self {
        Self {
            fold,
            phase: Phase::Confirming,
            pane: Some(pane),
            // One Enter is left, and no gap to wait for.
            enters: ENTER_GAPS.len(),
            last_enter: Duration::ZERO,
            since: now,
            only_certain: true,
            ..Self::new(pasted, limits)
        }
    }

    /// The first step.
    pub fn start(&self) -> Step {
        if self.phase == Phase::Confirming { Step::Prove } else { Step::Look }
    }

    /// The next step after what happened.
    pub fn next(&mut self, now: Duration, happened: Happened) -> Step {
        match (self.phase, happened) {
            (Phase::PreCheck, Happened::Seen(target)) => self.pre_check(target),
            (Phase::RetryWait, Happened::Slept) => {
                self.phase = Phase::PreCheck;
                Step::Look
            }
            (Phase::Pasting, Happened::Acted) => self.settle(now, None),
            (Phase::Pasting, Happened::MayHaveTyped(why)) => self.settle(now, Some(why)),
            (Phase::Pasting, Happened::Refused(hold)) => self.over(Outcome::Held(hold)),
            (Phase::Pasting, Happened::Vanished(why)) => self.over(Outcome::Absent(why)),
            (Phase::Pasting, Happened::NothingTyped(why)) if self.retried => self.over(Outcome::Failed(why)),
            (Phase::Pasting, Happened::NothingTyped(_)) => {
                self.retried = true;
                self.phase = Phase::RetryWait;
                Step::Sleep(RETRY_AFTER)
            }
            (Phase::Settling, Happened::Seen(target)) => self.settling(now, &target),
            (Phase::Noting, Happened::Noted) => {
                self.phase = Phase::Settling;
                Step::Look
            }
            (Phase::Entering, Happened::Acted) => {
                // Until a look says otherwise.
                self.stuck = true;
                self.enters += 1;
                self.last_enter = now;
                self.confirm(now)
            }
            // The screen changed under the Enter, or tmux did not say: the witnesses tell what became of it.
            (Phase::Entering, Happened::Refused(_) | Happened::NothingTyped(_)) => {
                self.refused = Some(now);
                self.confirm(now)
            }
            (Phase::Entering, Happened::MayHaveTyped(why)) => {
                self.enters += 1;
                self.last_enter = now;
                self.note = Some(why);
                self.confirm(now)
            }
            (Phase::Entering, Happened::Vanished(why)) => {
                self.note = Some(why);
                self.confirm(now)
            }
            (Phase::Confirming, Happened::Proofs(Some(proof)))
                if proof.by == ProofBy::Hook && !self.believes_hook() =>
            {
                Step::Look
            }
            (Phase::Confirming, Happened::Proofs(Some(proof))) => {
                // The hook does not say whether the text was taken or queued; what was seen before the paste does.
                let queued = proof.queued || (proof.by == ProofBy::Hook && self.busy);
                self.over(Outcome::Received(Proof { queued, ..proof }))
            }
            (Phase::Settling, Happened::Slept) | (Phase::Confirming, Happened::Proofs(None)) => Step::Look,
            (Phase::Confirming, Happened::Seen(target)) => self.confirming(now, &target),
            (Phase::Confirming, Happened::Slept) => Step::Prove,
            (phase, happened) => {
                debug_assert!(phase == Phase::Over, "{happened:?} cannot happen in {phase:?}");
                self.over(Outcome::Unknown(format!("internal: {happened:?} in {phase:?}")))
            }
        }
    }

    /// How often Enter was pressed.
    pub const fn enters(&self) -> usize {
        self.enters
    }

    /// Whether the prompt hook's word is a proof. Of an unsigned text it tells only that some prompt was sent; that was ours
    /// if the box has let go of it and no earlier message waited in the queue.
    pub fn believes_hook(&self) -> bool {
        self.pasted.is_signed() || !(self.stuck || self.queued_before)
    }

    /// Whether the next look may be followed by a paste.
    pub fn is_before_paste(&self) -> bool {
        self.phase == Phase::PreCheck
    }

    /// Whether Enter was pressed and the text is not known to stand in the box still.
    pub fn has_submitted(&self) -> bool {
        self.enters > 0 && !self.stuck
    }

    /// Judges the target before anything is typed.
    fn pre_check(&mut self, target: Target) -> Step {
        let seen = match target {
            Target::NoTmux(why) => return self.over(Outcome::NoTmux(why)),
            Target::Absent(why) => return self.over(Outcome::Absent(why)),
            Target::CannotTell(_) => return self.over(Outcome::Held(Hold::CannotTell)),
            Target::Ambiguous(_) => return self.over(Outcome::Held(Hold::Ambiguous)),
            Target::Present(seen) => seen,
        };
        match judge(&seen) {
            Gate::Held(hold) => self.over(Outcome::Held(hold)),
            Gate::Open { queue } => {
                self.busy = queue;
                self.queued_before = seen.verdict.queued;
                self.before = Before::look(&seen, &self.pasted);
                self.pane = Some((seen.key.clone(), seen.pid));
                self.phase = Phase::Pasting;
                let require = seen.composer_mark.into_iter().collect();
                let first = seen.composer.as_ref().and_then(|composer| composer.rows.first());
                let rows = first.filter(|row| !row.trim().is_empty()).cloned().into_iter().collect();
                Step::Paste { key: seen.key, pid: seen.pid, require, rows, vi_guard: seen.vi_guard }
            }
        }
    }

    /// Begins waiting for our text to show.
    fn settle(&mut self, now: Duration, note: Option<String>) -> Step {
        self.phase = Phase::Settling;
        self.since = now;
        self.note = note;
        Step::Look
    }

    /// One look while waiting for our text to show.
    fn settling(&mut self, now: Duration, target: &Target) -> Step {
        match self.find(target) {
            Found::Own(OwnText::InBox { .. }) if self.place_only => self.over(Outcome::Placed),
            Found::Own(OwnText::InBox { evidence, certain }) => match self.new_fold(&evidence, certain, target) {
                Some(fold) => {
                    self.fold = Some(fold.clone());
                    self.phase = Phase::Noting;
                    Step::NoteFold(fold)
                }
                None => self.enter(evidence, target),
            },
            // Somebody has submitted it already.
            Found::Own(OwnText::Outside) => self.confirm(now),
            Found::Own(OwnText::Mixed | OwnText::Nowhere) | Found::CannotTell => {
                if now.saturating_sub(self.since) >= self.limits.settle {
                    let note = self.note.take().map(|note| format!(" ({note})")).unwrap_or_default();
                    let what = match self.find(target) {
                        Found::Own(OwnText::Mixed) => "the input box holds more than our text",
                        _ => "the pasted text did not show",
                    };
                    return self.over(Outcome::Unknown(format!("{what}; no Enter was pressed{note}")));
                }
                Step::Sleep(self.limits.look_every)
            }
            Found::Replaced => {
                self.over(Outcome::Unknown("the pane was replaced after the paste; no Enter was pressed".into()))
            }
        }
    }

    /// The fold that is to be written down before Enter, if it can prove anything later.
    fn new_fold(&self, evidence: &str, certain: bool, target: &Target) -> Option<Fold> {
        let Target::Present(seen) = target else { return None };
        let can_prove = !certain && self.fold.is_none() && seen.numbered_folds && has_number(evidence);
        let agent_pid = seen.agent_pid.filter(|_| can_prove)?;
        Some(Fold { text: evidence.to_owned(), agent_pid })
    }

    /// Whether a fold in the box is the one that was written down.
    fn is_noted_fold(&self, evidence: &str, target: &Target) -> bool {
        let Target::Present(seen) = target else { return false };
        let noted = self.fold.as_ref().filter(|_| seen.numbered_folds && has_number(evidence));
        noted.is_some_and(|fold| fold.text == evidence && seen.agent_pid == Some(fold.agent_pid))
    }

    /// Presses Enter on our own text.
    fn enter(&mut self, evidence: String, target: &Target) -> Step {
        let Some((key, pid)) = self.pane.clone() else {
            return self.over(Outcome::Unknown("internal: no pane".into()));
        };
        self.phase = Phase::Entering;
        self.tries += 1;
        let composer = match target {
            Target::Present(seen) => seen.composer.as_ref(),
            _ => None,
        };
        // The text before ours would show in the first row, that behind it in the last.
        let drawn: Vec<&String> =
            composer.iter().flat_map(|composer| &composer.rows).filter(|row| !row.trim().is_empty()).collect();
        let rows = match drawn.as_slice() {
            [] => Vec::new(),
            [only] => vec![(*only).clone()],
            [first, .., last] => vec![(*first).clone(), (*last).clone()],
        };
        Step::Enter { key, pid, require: vec![evidence], rows }
    }

    /// Begins or goes on looking for a proof.
    fn confirm(&mut self, now: Duration) -> Step {
        if self.phase != Phase::Confirming && self.tries <= 1 {
            self.since = now;
        }
        self.phase = Phase::Confirming;
        Step::Prove
    }

    /// One look while looking for a proof.
    fn confirming(&mut self, now: Duration, target: &Target) -> Step {
        if self.limits.screen_counts
            && let Target::Present(seen) = target
            && self.is_ours(seen)
            && let Some(proof) = by_screen(seen, &self.pasted, self.before())
        {
            return self.over(Outcome::Received(proof));
        }
        let expired = now.saturating_sub(self.since) >= self.limits.confirm;
        self.blind = self.hides(target);
        let found = self.find(target);
        self.stuck = matches!(found, Found::Own(OwnText::InBox { .. } | OwnText::Mixed));
        if let Found::Own(OwnText::InBox { evidence, certain }) = found {
            let in_mode = matches!(target, Target::Present(seen) if seen.in_mode);
            let rested = self.refused.is_none_or(|at| now.saturating_sub(at) >= ENTER_AGAIN);
            let is_ours = certain || !self.only_certain || self.is_noted_fold(&evidence, target);
            let allowed = is_ours && rested && !in_mode;
            let gap = self.enters.checked_sub(1).and_then(|done| ENTER_GAPS.get(done)).copied();
            let due = match (self.enters, gap) {
                (0, _) => true,
                (_, Some(gap)) => now.saturating_sub(self.last_enter) >= gap,
                (_, None) => false,
            };
            if allowed && due && !expired {
                return self.enter(evidence, target);
            }
        }
        if expired {
            return self.give_up();
        }
        Step::Sleep(self.limits.look_every)
    }

    /// Why a look can't rule out that our text is in the pane: its box is covered, or the agent's queue holds something.
    ///
    /// Until then an earlier delivery is not settled, or its news would be told again and again.
    fn hides(&self, target: &Target) -> Option<Hold> {
        match target {
            Target::CannotTell(_) | Target::NoTmux(_) => Some(Hold::CannotTell),
            Target::Ambiguous(_) => Some(Hold::Ambiguous),
            Target::Present(seen) if self.is_ours(seen) && seen.composer.is_none() => match judge(seen) {
                Gate::Held(hold) => Some(hold),
                Gate::Open { .. } => Some(Hold::CannotTell),
            },
            Target::Present(seen) if self.is_ours(seen) && seen.verdict.queued => Some(Hold::Queue),
            Target::Present(_) | Target::Absent(_) => None,
        }
    }

    /// What was seen before the paste.
    fn before(&self) -> Before {
        // What is in the agent's queue now can only have come from our own Enter.
        let queue_was_empty = !self.only_certain && !self.queued_before && self.enters > 0;
        Before { queue_was_empty, ..self.before }
    }

    /// No proof came.
    fn give_up(&mut self) -> Step {
        let outcome = match (self.stuck, self.only_certain, self.blind) {
            (true, true, _) => Outcome::Held(Hold::Unproven),
            (_, true, Some(hold)) => Outcome::Held(hold),
            (true, false, _) => Outcome::Unknown("the text stands in the input box and Enter did not submit it".into()),
            (false, _, _) => {
                let note = self.note.take().map(|note| format!(" ({note})")).unwrap_or_default();
                Outcome::Unknown(format!("typed and submitted, but no witness has seen it arrive{note}"))
            }
        };
        self.over(outcome)
    }

    /// Finds our text in the pane that was pasted into.
    fn find(&self, target: &Target) -> Found {
        match target {
            Target::Present(seen) if self.is_ours(seen) => Found::Own(locate(seen, &self.pasted)),
            Target::Present(_) | Target::Absent(_) => Found::Replaced,
            Target::NoTmux(_) | Target::CannotTell(_) | Target::Ambiguous(_) => Found::CannotTell,
        }
    }

    /// Whether this is the pane and process that was pasted into.
    fn is_ours(&self, seen: &Seen) -> bool {
        self.pane.as_ref().is_some_and(|(key, pid)| *key == seen.key && *pid == seen.pid)
    }

    /// Ends the delivery.
    fn over(&mut self, outcome: Outcome) -> Step {
        self.phase = Phase::Over;
        Step::Done(outcome)
    }
}

/// Whether a fold's text bears a number, without which two folds look the same.
fn has_number(text: &str) -> bool {
    text.split_once('#').is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// What a look tells about our text.
enum Found {
    /// The pane is the one that was pasted into; the text is here.
    Own(OwnText),
    /// Another pane or process, or none, stands in its place.
    Replaced,
    /// The look failed.
    CannotTell,
}

#[cfg(test)]
mod tests;
