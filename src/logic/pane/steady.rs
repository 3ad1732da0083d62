//! Keeps a verdict steady over time. A mark that is there acts at once; a mark that is missing needs repeated looks and
//! time, since a screen is repainted in parts and a box is drawn in every turn.
//!
//! A pure step: what is remembered, the verdict of this look and the time give the verdict to report and what is to be
//! remembered. Only what is reported over time goes through it; what types looks anew and decides by that look.

use std::time::Duration;

use super::fuse::TURN_OVER;
use super::verdict::{Evidence, PaneVerdict, State, Witness};
use crate::logic::time::{Now, Timestamp};

/// Looks that must agree that nothing runs, where nothing says that it ended.
pub const MIN_LOOKS: u32 = 2;
/// For how long they must, at least.
// A box that is idle for one second in two never gets there.
pub const QUIET: Duration = Duration::from_millis(1100);
/// How long after the last drawing a pane counts as one that is being drawn. tmux counts in whole seconds.
const DRAWN: Duration = Duration::from_millis(1200);
/// What is drawn this many seconds after the first look at rest is the rest of the repaint that it saw.
const REPAINT_S: i64 = 1;
/// For how long nothing may run in a pane that is being drawn all the while: a mark that shows rarely is no end.
pub const DRAWN_QUIET: Duration = Duration::from_secs(30);
/// How soon after it was reported idle a pane that works again counts as one that flaps.
const FLAP: Duration = Duration::from_secs(10);
/// Most doublings of [`QUIET`] for a pane that flaps.
const MAX_FLAPS: u32 = 4;
/// After how long without one the flaps are forgotten.
const FLAPS_LAST: Duration = Duration::from_secs(120);

/// Rule under which a held verdict is reported.
pub const SETTLING: &str = "settling";

/// Rules that say that a turn ended; each is a mark that is there.
const ENDS: &[&str] = &[TURN_OVER, "hook-turn-end", "hook-idle", "transcript-turn-over"];

/// What is remembered of a pane between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The state that was reported last and says something.
    shown: Option<State>,
    /// The looks that found it at rest, while it is still reported as working.
    leaving: Option<Leaving>,
    /// When it was last reported at rest, after it had worked.
    rested_at: Option<Duration>,
    /// How often it worked again at once, and when it last did.
    flaps: u32,
    /// When it last did, or would have.
    flapped_at: Option<Duration>,
    /// When it was last seen to work.
    worked_at: Option<Timestamp>,
}

/// Looks that agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leaving {
    /// Time of the first, by the clock that never jumps.
    since: Duration,
    /// The same by the clock that tmux stamps with.
    since_at: Timestamp,
    /// How many.
    looks: u32,
}

impl Memory {
    /// Takes in a look: what is to be remembered, and what is to be reported. `drawn_at` is when the pane was last drawn.
    #[must_use]
    pub fn step(mut self, verdict: PaneVerdict, drawn_at: Timestamp, now: &Now) -> (Self, PaneVerdict) {
        if !rests(verdict.state) {
            // A look that tells nothing is no look at a pane at rest.
            let was_leaving = self.leaving.take().is_some();
            if was_leaving && self.flaps > 0 {
                self.flapped_at = Some(now.uptime);
            }
            if !matches!(verdict.state, State::Unknown | State::Empty) {
                self.note_flap(verdict.state, now.uptime);
                self.worked_at = Some(now.at);
                self.shown = Some(verdict.state);
            }
            return (self, verdict);
        }
        let held = self.shown.filter(|shown| is_left_slowly(*shown));
        let Some(held) = held.filter(|_| !self.says_end(&verdict, now)) else { return self.rest(verdict, now.uptime) };
        let leaving = match self.leaving {
            Some(before) => Leaving { looks: before.looks.saturating_add(1), ..before },
            None => Leaving { since: now.uptime, since_at: now.at, looks: 1 },
        };
        self.leaving = Some(leaving);
        let lasted = now.uptime.saturating_sub(leaving.since);
        let is_drawn = drawn_at.secs() > leaving.since_at.secs().saturating_add(REPAINT_S) || is_recent(drawn_at, now);
        let needed = self.needed(is_drawn);
        if leaving.looks >= MIN_LOOKS && lasted >= needed {
            return self.rest(verdict, now.uptime);
        }
        let evidence = Evidence::new(Witness::Memory, SETTLING).with_line(format!(
            "{} in {} of {MIN_LOOKS} looks, for {:.1} of {:.1} s",
            verdict.state,
            leaving.looks.min(MIN_LOOKS),
            lasted.min(needed).as_secs_f32(),
            needed.as_secs_f32()
        ));
        let mut verdict = verdict;
        verdict.state = held;
        verdict.evidence.insert(0, evidence);
        (self, verdict)
    }

    /// Reports a pane at rest.
    fn rest(mut self, verdict: PaneVerdict, uptime: Duration) -> (Self, PaneVerdict) {
        if self.shown.is_some_and(is_left_slowly) {
            self.rested_at = Some(uptime);
        }
        self.leaving = None;
        self.shown = Some(verdict.state);
        (self, verdict)
    }

    /// Whether something says that the turn ended which was seen, and not only that nothing runs.
    fn says_end(&self, verdict: &PaneVerdict, now: &Now) -> bool {
        // Times of hooks are whole seconds. What has no age is on the screen now.
        let is_later = |age: Duration| {
            self.worked_at.is_none_or(|worked_at| now.at.before(age).secs().saturating_add(1) >= worked_at.secs())
        };
        let ends = verdict.evidence.iter().filter(|reason| ENDS.contains(&reason.rule.as_str()));
        ends.map(|reason| reason.age_s).any(|age| age.is_none_or(is_later))
    }

    /// Counts a pane that works again as soon as it was reported at rest.
    fn note_flap(&mut self, state: State, uptime: Duration) {
        let is_soon = |at: Duration| uptime.saturating_sub(at) < FLAP;
        if state == State::Busy && self.shown.is_some_and(rests) && self.rested_at.is_some_and(is_soon) {
            self.flaps = self.flaps.saturating_add(1).min(MAX_FLAPS);
            self.flapped_at = Some(uptime);
        }
        if self.flapped_at.is_some_and(|at| uptime.saturating_sub(at) >= FLAPS_LAST) {
            (self.flaps, self.flapped_at) = (0, None);
        }
    }

    /// For how long nothing may run before the pane is reported at rest.
    fn needed(&self, is_drawn: bool) -> Duration {
        let quiet = QUIET.saturating_mul(1 << self.flaps.min(MAX_FLAPS));
        if is_drawn { quiet.max(DRAWN_QUIET) } else { quiet }
    }
}

/// Whether nothing runs in a pane of this state, as far as anybody sees.
const fn rests(state: State) -> bool {
    matches!(state, State::Idle | State::AutosuggestOnly | State::IdleOrphanAsync)
}

/// Whether a pane of this state is at rest only after repeated looks.
const fn is_left_slowly(state: State) -> bool {
    matches!(
        state,
        State::Busy | State::WorkingBackground | State::WorkingSelfPaced | State::Blocked | State::OverLimit
    )
}

/// Whether a pane was drawn so lately that it may be drawn all the while.
fn is_recent(drawn_at: Timestamp, now: &Now) -> bool {
    now.at >= drawn_at && now.at.since(drawn_at) < DRAWN
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look: when (ms), what the pane is, when it was drawn last (ms), and a further rule that speaks.
    type Look = (u64, State, u64, Option<&'static str>);

    /// What is reported at each look.
    fn reported(looks: impl IntoIterator<Item = Look>) -> Vec<State> {
        let mut memory = Memory::default();
        let mut list = Vec::new();
        for (at_ms, state, drawn_ms, rule) in looks {
            let millis = |ms: u64| Timestamp::from_millis(1_000_000_000 + i64::try_from(ms).unwrap());
            // tmux counts in whole seconds.
            let drawn = Timestamp::from_secs(millis(drawn_ms).secs());
            let mut verdict = PaneVerdict::of(state, Evidence::new(Witness::Screen, "rule"));
            verdict.evidence.extend(rule.map(|rule| Evidence::new(Witness::Screen, rule)));
            let now = Now { uptime: Duration::from_millis(at_ms), ..Now::fixed(millis(at_ms)) };
            let (next, verdict) = memory.step(verdict, drawn, &now);
            memory = next;
            list.push(verdict.state);
        }
        list
    }

    fn changes(states: &[State]) -> usize {
        states.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    #[test]
    fn a_box_that_is_redrawn_while_a_spinner_shows_once_in_20_s_is_never_idle() {
        let looks = (0..600_u64).map(|tick| {
            let state = if tick % 40 == 0 { State::Busy } else { State::Idle };
            (tick * 500, state, tick * 500, None)
        });
        assert_eq!(changes(&reported(looks)), 0);
    }

    #[test]
    fn a_repaint_that_a_look_saw_in_the_middle_needs_no_half_minute() {
        // Looked at 20 ms before the end of a second; the last rows are drawn in the next one.
        let looks = [(980, State::Idle), (1480, State::Idle), (2480, State::Idle), (2980, State::Idle)];
        let looks = looks.map(|(at, state)| (at, state, 1010.min(at), None));
        let states = reported([(400, State::Busy, 400, None)].into_iter().chain(looks));
        assert_eq!(states.last(), Some(&State::Idle), "{states:?}");
    }

    #[test]
    fn a_turn_that_ends_within_the_second_it_was_seen_in_is_over_two_seconds_later() {
        // Looks every 500 ms at any phase; the screen turns idle 250 ms after it was busy, and is silent from then on.
        for phase in (0..500).step_by(10) {
            let looks = (0..10_u64).map(|tick| {
                let at = phase + tick * 500;
                (1000 + at, if at < 250 { State::Busy } else { State::Idle }, 1000 + at.min(250), None)
            });
            let times: Vec<u64> = (0..10).map(|tick| phase + tick * 500).collect();
            let states = reported(looks);
            for (at, state) in times.iter().zip(&states) {
                assert!(*at < 2250 || *state == State::Idle, "phase {phase}, {at} ms: {states:?}");
            }
        }
    }

    #[test]
    fn a_pane_that_is_busy_and_idle_by_turns_is_busy() {
        for (phase, every) in [(0, 500), (130, 500), (499, 500), (0, 250), (70, 1000)] {
            let looks = (0..60_000 / every).map(|tick| {
                let at = phase + tick * every;
                let state = if (at / 1000) % 2 == 0 { State::Idle } else { State::Busy };
                (at, state, at, None)
            });
            let states = reported(looks);
            assert!(changes(&states) <= 1, "{phase} {every}: {states:?}");
        }
    }

    #[test]
    fn slower_flapping_is_damped_more_each_time() {
        // Three seconds idle and silent, one busy.
        let looks = (0..1200_u64).map(|tick| {
            let at = tick * 500;
            let is_busy = (at / 1000) % 4 == 0;
            (at, if is_busy { State::Busy } else { State::Idle }, at / 4000 * 4000, None)
        });
        let states = reported(looks);
        assert!(changes(&states) <= 2 * 3, "{} changes", changes(&states));
    }

    #[test]
    fn marks_act_at_once() {
        for state in State::ALL.iter().filter(|state| !rests(**state)) {
            assert_eq!(reported([(0, State::Idle, 0, None), (1, *state, 1, None)]), [State::Idle, *state]);
        }
        for mark in ENDS.iter().copied() {
            let seen = reported([(0, State::Busy, 0, None), (1, State::Idle, 1, Some(mark))]);
            assert_eq!(seen, [State::Busy, State::Idle], "{mark}");
        }
        // Nothing was seen of it before, so nothing is left.
        assert_eq!(reported([(0, State::Idle, 0, None)]), [State::Idle]);
    }

    #[test]
    fn an_end_that_was_before_the_turn_ends_no_turn() {
        let now = Now::fixed(Timestamp::from_secs(1000));
        let ended = |age: u64| {
            let mut verdict = PaneVerdict::of(State::Idle, Evidence::new(Witness::Screen, "input-blank"));
            let age_s = Some(Duration::from_secs(age));
            verdict.evidence.push(Evidence { age_s, ..Evidence::new(Witness::Hook, "hook-idle") });
            verdict
        };
        let busy = PaneVerdict::of(State::Busy, Evidence::new(Witness::Screen, "spinner"));
        for (age, expected) in [(0, State::Idle), (1, State::Idle), (9, State::Busy)] {
            let (memory, _) = Memory::default().step(busy.clone(), now.at, &now);
            let (_, seen) = memory.step(ended(age), Timestamp::default(), &now);
            assert_eq!(seen.state, expected, "{age}");
        }
    }

    #[test]
    fn a_box_that_is_drawn_between_two_looks_is_given_time() {
        // Looks ten seconds apart, and a second of work between them that none of them sees.
        let looks = (0..4_u64).map(|look| {
            let at = look * 10_000;
            (at, if look == 0 { State::Busy } else { State::Idle }, at.saturating_sub(4000), None)
        });
        assert_eq!(reported(looks), [State::Busy, State::Busy, State::Busy, State::Busy]);
    }

    #[test]
    fn a_look_that_tells_nothing_ends_no_turn() {
        let looks = [
            (0, State::Busy, 0, None),
            (10_000, State::Idle, 0, None),
            (20_000, State::Unknown, 0, None),
            (30_000, State::Idle, 0, None),
            (40_000, State::Idle, 0, None),
        ];
        assert_eq!(reported(looks), [State::Busy, State::Busy, State::Unknown, State::Busy, State::Idle]);
    }

    #[test]
    fn time_alone_is_no_second_look() {
        let looks = [(0, State::Busy, 0, None), (600_000, State::Idle, 0, None), (600_001, State::Idle, 0, None)];
        assert_eq!(reported(looks), [State::Busy, State::Busy, State::Busy]);
    }

    #[test]
    fn a_held_verdict_says_why() {
        let now = Now::fixed(Timestamp::from_secs(1000));
        let look = |state| PaneVerdict::of(state, Evidence::new(Witness::Screen, "input-blank"));
        let (memory, _) = Memory::default().step(look(State::Busy), now.at, &now);
        let (_, held) = memory.step(look(State::Idle), Timestamp::from_secs(0), &now);
        let rules: Vec<&str> = held.evidence.iter().map(|reason| reason.rule.as_str()).collect();
        assert_eq!((held.state, rules.as_slice()), (State::Busy, [SETTLING, "input-blank"].as_slice()));
        assert_eq!(held.evidence[0].line.as_deref(), Some("idle in 1 of 2 looks, for 0.0 of 1.1 s"));
    }
}
