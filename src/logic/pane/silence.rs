//! Whether a pane that works has said nothing new for long: `stale`. It is about one window and its text; a fan-out of
//! which nothing moves is *stalled*, and that is another word.
//!
//! Ages come from the text alone: what tmux stamps as activity is a spinner or a clock as well.

use std::time::Duration;

use super::history::Silence;
use super::verdict::{PaneVerdict, State};
use crate::logic::time::Now;

/// Since when a pane shows the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Checksum of the text.
    hash: u64,
    /// When it was seen first, by the clock that never jumps.
    since: Duration,
    /// For how long it had stood there then, as an earlier run of the watcher recorded it.
    before: Duration,
    /// The same as a time of day.
    silence: Silence,
}

impl Memory {
    /// Takes in a look: what is to be remembered, and for how long the pane is silent if it works.
    ///
    /// Shape: `recorded` is the silence that an earlier run recorded of the pane.
    #[must_use]
    pub fn step(before: Option<Self>, recorded: Option<Silence>, verdict: &PaneVerdict, now: &Now) -> Option<Self> {
        // Work begins anew after every other state, and what waits for a time is not silent but waiting.
        let works = matches!(verdict.state, State::Busy | State::WorkingBackground);
        let is_blocked = verdict.reset_at.is_some() || verdict.limit.is_some() || verdict.throttled;
        let hash = verdict.content_hash.filter(|_| works && !is_blocked)?;
        if let Some(same) = before.filter(|before| before.hash == hash) {
            return Some(same);
        }
        let recorded = recorded.filter(|known| before.is_none() && known.content_hash == hash);
        let silence = recorded.unwrap_or(Silence { content_hash: hash, since: now.at });
        Some(Self { hash, since: now.uptime, before: now.at.since(silence.since), silence })
    }

    /// For how long the text is the same.
    pub fn lasts(&self, now: &Now) -> Duration {
        self.before.saturating_add(now.uptime.saturating_sub(self.since))
    }

    /// The silence as it is recorded.
    pub const fn silence(&self) -> Silence {
        self.silence
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::{Evidence, Witness};
    use super::*;
    use crate::logic::time::Timestamp;

    fn at(secs: u64) -> Now {
        let wall = Timestamp::from_secs(1_000_000 + i64::try_from(secs).unwrap());
        Now { uptime: Duration::from_secs(secs), ..Now::fixed(wall) }
    }

    fn verdict(state: State, hash: u64) -> PaneVerdict {
        let mut verdict = PaneVerdict::of(state, Evidence::new(Witness::Screen, "x"));
        verdict.content_hash = Some(hash);
        verdict
    }

    /// For how long the pane is silent after looks at these times.
    fn check(looks: &[(u64, PaneVerdict)], expected: Option<u64>) {
        let mut memory = None;
        for (secs, verdict) in looks {
            memory = Memory::step(memory, None, verdict, &at(*secs));
        }
        let last = at(looks.last().unwrap().0);
        assert_eq!(memory.map(|memory| memory.lasts(&last).as_secs()), expected, "{looks:?}");
    }

    #[test]
    fn a_pane_is_silent_for_as_long_as_it_works_on_the_same_text() {
        use State::{Busy, Idle, WorkingBackground};
        check(&[(0, verdict(Busy, 1)), (900, verdict(Busy, 1))], Some(900));
        check(&[(0, verdict(Busy, 1)), (900, verdict(WorkingBackground, 1))], Some(900));
        check(&[(0, verdict(Busy, 1)), (900, verdict(Busy, 2))], Some(0));
        check(&[(0, verdict(Idle, 1)), (900, verdict(Busy, 1))], Some(0));
        check(&[(0, verdict(Busy, 1)), (900, verdict(Idle, 1))], None);
        check(&[(0, verdict(Busy, 1)), (400, verdict(Idle, 1)), (900, verdict(Busy, 1))], Some(0));
    }

    #[test]
    fn what_waits_for_a_time_is_not_silent() {
        let mut waits = verdict(State::Busy, 1);
        waits.reset_at = Some("3am".into());
        check(&[(0, verdict(State::Busy, 1)), (900, waits)], None);
        let mut throttled = verdict(State::Busy, 1);
        throttled.throttled = true;
        check(&[(0, throttled.clone()), (900, throttled)], None);
        check(&[(0, verdict(State::OverLimit, 1)), (900, verdict(State::OverLimit, 1))], None);
    }

    #[test]
    fn a_restart_does_not_begin_it_anew() {
        let recorded = Silence { content_hash: 1, since: Timestamp::from_secs(1_000_000) };
        for (hash, expected) in [(1, 500), (2, 0)] {
            let memory = Memory::step(None, Some(recorded), &verdict(State::Busy, hash), &at(500)).unwrap();
            assert_eq!(memory.lasts(&at(500)).as_secs(), expected);
        }
        // The text changed and came back while it was watched.
        let other = Memory::step(None, None, &verdict(State::Busy, 2), &at(500));
        let back = Memory::step(other, Some(recorded), &verdict(State::Busy, 1), &at(501)).unwrap();
        assert_eq!(back.lasts(&at(501)).as_secs(), 0);
    }
}
