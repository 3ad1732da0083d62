//! The one delivery at a time: what is under way, what is held and why, what is not settled.
//!
//! A held emit is not pasted late: when its obstacle is gone, a fresh one is composed, and if it says the same, the
//! held one is used. So nothing stale is told and nothing is archived twice.

use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::deliver::{self, Archived};
use super::event::Event;
use super::look::{self, Aim};
use super::outside::Outside;
use crate::logic::action::Emit;
use crate::logic::degraded::Mode;
use crate::logic::delivery::Outcome;
use crate::logic::delivery::gate::{Gate, Hold, Target, judge};
use crate::logic::delivery::journal::{self, Kind};
use crate::logic::ids::Signature;
use crate::logic::time::Now;
use crate::sys::files::Durability;
use crate::sys::tmux::Tmux;

/// How often the obstacle of a held emit is looked at.
const HELD_LOOK_EVERY: Duration = Duration::from_secs(2);

/// Wait before an unknown outcome is looked into again.
const SETTLE_EVERY: Duration = Duration::from_secs(10);

/// Where the one delivery stands.
#[derive(Debug)]
enum Stand {
    /// Nothing is to be delivered.
    Free,
    /// A delivery is under way.
    Delivering,
    /// The pending delivery is being settled.
    Settling,
    /// Nothing of it was typed; it waits.
    Held {
        archived: Box<Archived>,
        /// What was last recorded of it.
        outcome: Outcome,
        next_look: Duration,
    },
    /// Its outcome is unknown; nothing else is told until it is settled.
    Unsettled { signature: Signature, next_try: Duration },
}

/// What stands in the way of telling anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing.
    None,
    /// A delivery is under way; what stood in its way before may still.
    CannotTell,
    /// This.
    Stands(Mode, String),
}

/// The courier.
#[derive(Debug)]
pub(super) struct Courier {
    stand: Stand,
    /// The emit whose news are to be told again.
    repeat_of: Option<Signature>,
    /// Why an earlier delivery can't be settled, as last said.
    said: Option<(Signature, Hold)>,
    /// The last event makes a new emit worthwhile at once.
    compose_soon: bool,
    /// An emit of this run has arrived.
    told: bool,
    /// Monotonic time of the last call, for waits.
    uptime: Duration,
}

impl Courier {
    pub(super) fn new() -> Self {
        Self {
            stand: Stand::Free,
            repeat_of: None,
            said: None,
            compose_soon: true,
            told: false,
            uptime: Duration::ZERO,
        }
    }

    /// Whether a new emit may be composed.
    pub(super) fn may_compose(&self) -> bool {
        matches!(self.stand, Stand::Free | Stand::Held { .. })
    }

    /// Whether a new emit is worthwhile now; asking answers once.
    pub(super) fn compose_soon(&mut self) -> bool {
        std::mem::take(&mut self.compose_soon)
    }

    pub(super) fn in_flight(&self) -> bool {
        matches!(self.stand, Stand::Delivering | Stand::Settling)
    }

    pub(super) fn is_settling(&self) -> bool {
        matches!(self.stand, Stand::Settling)
    }

    /// The signature of the emit whose news the next one repeats.
    pub(super) fn repeat_of(&self) -> Option<&Signature> {
        self.repeat_of.as_ref()
    }

    /// Whether an emit of this run has arrived.
    pub(super) fn has_told(&self) -> bool {
        self.told
    }

    /// What stands in the way of telling anything, for those who ask how the watcher fares.
    pub(super) fn trouble(&self) -> Trouble {
        let stands = |mode: Mode, nonce: &str, why: &str| Trouble::Stands(mode, format!("report {nonce}: {why}"));
        let waits = |mode: Mode, nonce: &str, hold: Hold| {
            let mode = if hold == Hold::Unproven { Mode::UnprovenText } else { mode };
            stands(mode, nonce, &format!("{}: {}", hold.word(), hold.says()))
        };
        match &self.stand {
            Stand::Free => Trouble::None,
            Stand::Delivering | Stand::Settling => Trouble::CannotTell,
            Stand::Held { archived, outcome, .. } => {
                let nonce = &archived.emit.signature.nonce;
                match outcome {
                    Outcome::Held(hold) => waits(Mode::DeliveryHeld, nonce, *hold),
                    // Both are modes of their own, which are told sooner.
                    Outcome::Absent(_) | Outcome::NoTmux(_) | Outcome::Received(_) | Outcome::Placed => Trouble::None,
                    Outcome::Failed(why) | Outcome::Unknown(why) => stands(Mode::DeliveryHeld, nonce, why),
                }
            }
            Stand::Unsettled { signature, .. } => match &self.said {
                Some((said, hold)) if said == signature => waits(Mode::DeliveryOpen, &signature.nonce, *hold),
                _ => stands(Mode::DeliveryOpen, &signature.nonce, "no witness has seen it arrive; looking for it"),
            },
        }
    }

    /// How long the loop may sleep for the courier's sake.
    pub(super) fn next_look(&self) -> Duration {
        match &self.stand {
            Stand::Held { next_look: at, .. } | Stand::Unsettled { next_try: at, .. } => {
                at.saturating_sub(self.uptime).max(Duration::from_millis(100))
            }
            _ => Duration::MAX,
        }
    }

    /// Whether it is time to look at the obstacle of a held emit.
    pub(super) fn wants_look(&mut self, now: &Now) -> bool {
        self.uptime = now.uptime;
        match &mut self.stand {
            Stand::Held { next_look, .. } if *next_look <= now.uptime => {
                *next_look = now.uptime + HELD_LOOK_EVERY;
                true
            }
            _ => false,
        }
    }

    /// Starts settling what an earlier run left pending.
    pub(super) fn settle_pending<T: Tmux + 'static>(&mut self, out: &Rc<Outside<T>>, events: &UnboundedSender<Event>) {
        let Some(pending) = deliver::read_pending(out) else {
            // Its journal may be damaged, or gone since it was found without a proof: what is told next says so.
            self.repeat_of = self.repeat_of.take().or_else(|| deliver::left_open(out));
            return;
        };
        self.stand = Stand::Settling;
        let (out, events) = (Rc::clone(out), events.clone());
        let cut_off = Event::Settled { pending: Box::new(pending.clone()), outcome: Outcome::Held(Hold::CannotTell) };
        beside(events, cut_off, async move {
            let outcome = deliver::settle(&out, &pending).await;
            Event::Settled { pending: Box::new(pending), outcome }
        });
    }

    /// Looks into an unknown outcome again when it is time; `true` if its journal is gone, so that nothing is left to
    /// settle and no event will come.
    pub(super) fn retry_settling<T: Tmux + 'static>(
        &mut self,
        out: &Rc<Outside<T>>,
        now: &Now,
        events: &UnboundedSender<Event>,
    ) -> bool {
        self.uptime = now.uptime;
        if let Stand::Unsettled { next_try, signature } = &self.stand
            && *next_try <= now.uptime
        {
            self.repeat_of = Some(signature.clone());
            self.compose_soon = true;
            self.stand = Stand::Free;
            self.settle_pending(out, events);
            return !self.is_settling();
        }
        false
    }

    /// Delivers an emit, or the held one if it says the same.
    pub(super) fn deliver<T: Tmux + 'static>(
        &mut self,
        out: &Rc<Outside<T>>,
        emit: Emit,
        now: &Now,
        events: &UnboundedSender<Event>,
    ) {
        if !self.may_compose() {
            return;
        }
        let archived = match std::mem::replace(&mut self.stand, Stand::Free) {
            Stand::Held { archived, outcome, next_look } if archived.emit.stable_hash == emit.stable_hash => {
                // What it retires may have moved on although it reads the same.
                let mut archived = archived;
                archived.emit.commits = emit.commits;
                self.stand = Stand::Held { archived: archived.clone(), outcome, next_look };
                archived
            }
            held => {
                if let Stand::Held { archived, .. } = held {
                    supersede(out, &archived, now, "a newer emit took its place");
                }
                match deliver::archive(out, emit, self.repeat_of.as_ref()) {
                    Ok(archived) => {
                        out.edges.works("archive");
                        Box::new(archived)
                    }
                    Err(error) => {
                        let what = "an emit could not be archived; nothing is typed, it is composed again";
                        out.edges.fails("archive", &error, what);
                        return;
                    }
                }
            }
        };
        let before = match std::mem::replace(&mut self.stand, Stand::Delivering) {
            Stand::Held { outcome, .. } => Some(outcome),
            _ => None,
        };
        let (out, events) = (Rc::clone(out), events.clone());
        let cut_off = Event::Delivered {
            archived: archived.clone(),
            // Something may have been typed; the journal and the witnesses tell.
            outcome: Outcome::Unknown("internal: the delivery panicked".to_owned()),
        };
        beside(events, cut_off, async move {
            let outcome = deliver::attempt(&out, &archived).await;
            // The same obstacle as before is no news.
            if !matches!(outcome, Outcome::Received(_)) && before.as_ref() != Some(&outcome) {
                let event = journal::Event::of_outcome(out.clock.now().at, &archived.emit.signature.nonce, &outcome);
                deliver::note(&out, &event, Durability::Hint);
                tracing::info!(nonce = archived.emit.signature.nonce, ?outcome, "emit not delivered");
            }
            Event::Delivered { archived, outcome }
        });
    }

    /// The composer found nothing to tell: what is held is withdrawn.
    pub(super) fn nothing_to_tell<T>(&mut self, out: &Outside<T>, now: &Now) {
        if let Stand::Held { archived, .. } = &self.stand {
            supersede(out, archived, now, "nothing of it is news any more");
            self.stand = Stand::Free;
        }
    }

    /// Takes in how a delivery ended.
    pub(super) fn take<T>(&mut self, out: &Outside<T>, event: Event, now: &Now) {
        self.uptime = now.uptime;
        self.stand = match event {
            Event::Delivered { outcome: Outcome::Received(_), .. } => {
                self.repeat_of = None;
                self.told = true;
                Stand::Free
            }
            Event::Delivered { archived, outcome: Outcome::Unknown(_) } => {
                Stand::Unsettled { signature: archived.emit.signature, next_try: now.uptime + SETTLE_EVERY }
            }
            Event::Delivered { archived, outcome } => {
                Stand::Held { archived, outcome, next_look: now.uptime + HELD_LOOK_EVERY }
            }
            Event::Settled { pending, outcome: Outcome::Held(hold) } => {
                self.say_unsettled(out, &pending.signature, hold, now);
                Stand::Unsettled { signature: pending.signature, next_try: now.uptime + SETTLE_EVERY }
            }
            Event::Settled { pending, outcome } => {
                self.repeat_of = match outcome {
                    Outcome::Received(_) => None,
                    _ => Some(pending.signature.clone()),
                };
                self.compose_soon = true;
                Stand::Free
            }
        };
    }

    /// Records why an earlier delivery can't be settled, once a reason.
    fn say_unsettled<T>(&mut self, out: &Outside<T>, signature: &Signature, hold: Hold, now: &Now) {
        let saying = Some((signature.clone(), hold));
        if self.said == saying {
            return;
        }
        self.said = saying;
        tracing::warn!(reason = hold.word(), "an earlier delivery can't be settled yet: {}", hold.says());
        // It may have been typed, so it is not held as one that waits for its first paste is.
        let why = format!("{}: {}", hold.word(), hold.says());
        let event = journal::Event::of_outcome(now.at, &signature.nonce, &Outcome::Unknown(why));
        deliver::note(out, &event, Durability::Hint);
    }
}

/// Runs a job beside the loop and reports its end; a job that panics ends in `cut_off`, since without any end nothing
/// would ever be told again.
fn beside(events: UnboundedSender<Event>, cut_off: Event, job: impl Future<Output = Event> + 'static) {
    let job = tokio::task::spawn_local(job);
    tokio::task::spawn_local(async move {
        let event = job.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a delivery broke off");
            cut_off
        });
        // The receiver is gone only when the loop has ended; the journal still tells.
        let _ended = events.send(event);
    });
}

/// Whether the target may be typed into now, for a held emit.
pub(super) async fn gate_is_open<T: Tmux>(out: &Outside<T>) -> bool {
    match look::at(out, &Aim::target(out)).await {
        Target::Present(seen) => matches!(judge(&seen), Gate::Open { .. }),
        Target::NoTmux(_) | Target::CannotTell(_) | Target::Ambiguous(_) | Target::Absent(_) => false,
    }
}

/// Records that a held emit will not be told.
fn supersede<T>(out: &Outside<T>, archived: &Archived, now: &Now, why: &str) {
    let event = journal::Event {
        detail: Some(why.to_owned()),
        ..journal::Event::new(now.at, &archived.emit.signature.nonce, Kind::Superseded)
    };
    deliver::note(out, &event, Durability::Hint);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::delivery::journal::Pending;
    use crate::logic::ids::{PaneId, PaneKey, ServerId};
    use crate::logic::time::Timestamp;

    fn pending() -> Pending {
        let server = ServerId { socket: "/tmp/s".into(), pid: 7, start_s: 1 };
        Pending {
            signature: Signature { iso: "2026-11-30T00:00:00+00:00".into(), nonce: "a1b2c3".into() },
            pane: PaneKey { server, pane: PaneId::new(3) },
            pid: 42,
            body: "a\nb".into(),
            fold: None,
            transcript: None,
            commits: Vec::new(),
            at_ms: Timestamp::from_secs(1),
        }
    }

    #[tokio::test]
    async fn a_delivery_that_panics_still_ends() {
        let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
        let cut_off = Event::Settled { pending: Box::new(pending()), outcome: Outcome::Held(Hold::CannotTell) };
        let local = tokio::task::LocalSet::new();
        let event = local
            .run_until(async {
                beside(sender, cut_off, async { panic!("on purpose") });
                events.recv().await
            })
            .await;
        assert!(matches!(event, Some(Event::Settled { outcome: Outcome::Held(Hold::CannotTell), .. })), "{event:?}");
    }

    #[test]
    fn text_that_only_a_person_can_judge_is_a_trouble_of_its_own() {
        let signature = pending().signature;
        let check = |said: Option<Hold>, expected: Mode| {
            let mut courier = Courier::new();
            courier.stand = Stand::Unsettled { signature: signature.clone(), next_try: Duration::ZERO };
            courier.said = said.map(|hold| (signature.clone(), hold));
            let Trouble::Stands(mode, detail) = courier.trouble() else { panic!("{said:?}") };
            assert_eq!(mode, expected);
            assert!(detail.starts_with("report a1b2c3: "), "{detail}");
        };
        check(Some(Hold::Unproven), Mode::UnprovenText);
        check(Some(Hold::Dialog), Mode::DeliveryOpen);
        check(None, Mode::DeliveryOpen);
        let mut courier = Courier::new();
        assert_eq!(courier.trouble(), Trouble::None);
        courier.stand = Stand::Settling;
        assert_eq!(courier.trouble(), Trouble::CannotTell);
    }
}
