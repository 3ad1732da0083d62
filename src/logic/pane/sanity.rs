//! A doubt about the whole fleet: when most panes turn into one class between two sweeps, something they share changed
//! (the agent's look, tmux, the rules), and what was known before is kept until further sweeps agree.
//!
//! A pure step. It delays a true change of that kind by a few sweeps and never withholds it for longer. A pane of which
//! nothing was known before is never held.

use std::collections::BTreeMap;
use std::time::Duration;

use super::verdict::{Evidence, PaneVerdict, State, Witness};
use crate::logic::ids::PaneId;

/// Fewest panes of which most can be doubted.
pub const MIN_PANES: usize = 5;
/// Sweeps that must agree.
pub const CONFIRM_SWEEPS: u32 = 3;
/// Over how much time they must.
const CONFIRM_OVER: Duration = Duration::from_secs(5);
/// After how many sweeps they need not take any time.
const MAX_SWEEPS: u32 = 10;

/// Rule under which a held verdict is reported.
pub const HELD: &str = "fleet-changed";

/// What is remembered of the fleet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// What was reported last of each pane.
    reported: BTreeMap<PaneId, PaneVerdict>,
    /// The change that is not believed yet.
    doubt: Option<Doubt>,
}

/// A change that is not believed yet.
#[derive(Clone, Debug, PartialEq)]
struct Doubt {
    /// What most panes turned into.
    class: State,
    /// When it was seen first, by the clock that never jumps.
    since: Duration,
    /// In how many sweeps.
    sweeps: u32,
    /// Who did.
    panes: Vec<PaneId>,
    /// How many there were.
    of: usize,
}

impl Doubt {
    /// For people.
    fn says(&self) -> String {
        let held =
            if is_held(self.class) { "what was known of them before is kept" } else { "nothing is done about them" };
        format!(
            "{} of {} panes turned {} in one sweep; {held} until {CONFIRM_SWEEPS} sweeps agree",
            self.panes.len(),
            self.of,
            self.class
        )
    }
}

impl Memory {
    /// Forgets panes of which nothing is known any more, and a doubt that is about some of them.
    pub fn forget(&mut self, is_forgotten: impl Fn(PaneId) -> bool) {
        self.reported.retain(|id, _| !is_forgotten(*id));
        self.doubt = self.doubt.take().filter(|doubt| !doubt.panes.iter().any(|id| is_forgotten(*id)));
    }

    /// Takes in a sweep: puts back what is held, and says what is doubted.
    #[must_use]
    pub fn step(mut self, panes: &mut BTreeMap<PaneId, PaneVerdict>, uptime: Duration) -> (Self, Option<String>) {
        self.doubt = match self.doubt.take() {
            Some(doubt) => doubt.again(panes, uptime),
            None => self.begins(panes, uptime),
        };
        if let Some(doubt) = self.doubt.as_ref().filter(|doubt| is_held(doubt.class)) {
            for id in &doubt.panes {
                let (Some(now), Some(before)) = (panes.get_mut(id), self.reported.get(id)) else { continue };
                if now.state == doubt.class {
                    let seen = std::mem::replace(now, before.clone());
                    hold(now, &seen);
                }
            }
        }
        self.reported.clone_from(panes);
        let says = self.doubt.as_ref().map(Doubt::says);
        (self, says)
    }

    /// The doubt that this sweep gives rise to.
    fn begins(&self, panes: &BTreeMap<PaneId, PaneVerdict>, uptime: Duration) -> Option<Doubt> {
        let known: Vec<_> = panes.iter().filter_map(|(id, now)| Some((id, now, self.reported.get(id)?))).collect();
        if known.len() < MIN_PANES {
            return None;
        }
        let turned = |class: State| -> Vec<PaneId> {
            let changed = known.iter().filter(|(_, now, before)| now.state == class && before.state != class);
            changed.map(|(id, ..)| **id).collect()
        };
        // A fleet is set to work in one go, and to take work for something else does no harm.
        let classes = State::ALL.iter().copied().filter(|class| *class != State::Busy);
        let (class, panes) = classes.map(|class| (class, turned(class))).max_by_key(|(_, panes)| panes.len())?;
        let is_most = panes.len() * 2 > known.len();
        is_most.then_some(Doubt { class, since: uptime, sweeps: 1, panes, of: known.len() })
    }
}

impl Doubt {
    /// What is left of it after another sweep: nothing once that was seen often enough, or is not seen any more.
    fn again(mut self, panes: &BTreeMap<PaneId, PaneVerdict>, uptime: Duration) -> Option<Self> {
        self.sweeps = self.sweeps.saturating_add(1);
        let agree = self.panes.iter().filter(|id| panes.get(id).is_some_and(|now| now.state == self.class)).count();
        let took_time = uptime.saturating_sub(self.since) >= CONFIRM_OVER || self.sweeps >= MAX_SWEEPS;
        let is_confirmed = self.sweeps >= CONFIRM_SWEEPS && took_time;
        (agree * 2 > self.panes.len() && !is_confirmed).then_some(self)
    }
}

/// Whether panes of this class are reported as what they were before. Who tells nothing is reported as that.
const fn is_held(class: State) -> bool {
    !matches!(class, State::Unknown | State::Empty)
}

/// Marks a verdict of before as held, with what was seen now.
fn hold(before: &mut PaneVerdict, seen: &PaneVerdict) {
    before.held = true;
    let rule = seen.evidence.first().map(|reason| reason.rule.as_str()).unwrap_or_default();
    let evidence = Evidence::new(Witness::Memory, HELD).with_line(format!("seen: {} ({rule})", seen.state));
    before.evidence.retain(|reason| reason.rule != HELD);
    before.evidence.insert(0, evidence);
}

#[cfg(test)]
mod tests {
    use super::*;

    use State::{Absent, Blocked, Busy, Idle, OverLimit, Unknown};

    /// Runs sweeps ten seconds apart; what is reported of each, and whether something is doubted.
    fn run(sweeps: &[Vec<State>]) -> Vec<(Vec<State>, bool)> {
        let mut memory = Memory::default();
        let mut list = Vec::new();
        for (at, states) in (0_u64..).zip(sweeps) {
            let verdict = |state: &State| PaneVerdict::of(*state, Evidence::new(Witness::Screen, "rule"));
            let mut panes: BTreeMap<PaneId, PaneVerdict> =
                (0..).map(PaneId::new).zip(states.iter().map(verdict)).collect();
            let (next, says) = memory.step(&mut panes, Duration::from_secs(at * 10));
            memory = next;
            for (now, seen) in panes.values().zip(states) {
                assert_eq!(now.held, now.state != *seen, "{states:?}");
            }
            list.push((panes.values().map(|verdict| verdict.state).collect(), says.is_some()));
        }
        list
    }

    #[test]
    fn a_fleet_that_turns_at_once_is_held_until_three_sweeps_agree() {
        for class in [Idle, Blocked, OverLimit, Absent] {
            let (before, after) = (vec![Busy; 6], vec![class; 6]);
            let seen = run(&[before.clone(), after.clone(), after.clone(), after.clone(), after.clone()]);
            let expected = [(&before, false), (&before, true), (&before, true), (&after, false), (&after, false)];
            assert_eq!(seen.iter().map(|(states, says)| (states, *says)).collect::<Vec<_>>(), expected, "{class}");
        }
    }

    #[test]
    fn a_misreading_is_never_reported() {
        let (busy, idle) = (vec![Busy; 6], vec![Idle; 6]);
        let seen = run(&[busy.clone(), idle, busy.clone(), busy.clone()]);
        assert!(seen.iter().all(|(states, _)| *states == busy), "{seen:?}");
        assert_eq!(seen.iter().map(|(_, says)| *says).collect::<Vec<_>>(), [false, true, false, false]);
    }

    #[test]
    fn few_panes_and_half_of_them_are_no_fleet() {
        let few = run(&[vec![Busy; 4], vec![Blocked; 4]]);
        assert_eq!(few[1], (vec![Blocked; 4], false));
        let half = run(&[vec![Busy; 6], [vec![Blocked; 3], vec![Busy; 3]].concat()]);
        assert!(!half[1].1);
        let work = run(&[vec![Idle; 6], vec![Busy; 6]]);
        assert_eq!(work[1], (vec![Busy; 6], false));
    }

    #[test]
    fn what_was_not_there_before_is_not_held() {
        assert_eq!(run(&[vec![], vec![Blocked; 9]])[1], (vec![Blocked; 9], false));
        let grown = run(&[vec![Busy; 6], [vec![Idle; 6], vec![Idle]].concat()]);
        assert_eq!(grown[1].0, [vec![Busy; 6], vec![Idle]].concat());
    }

    #[test]
    fn who_tells_nothing_is_said_and_not_held() {
        let seen = run(&[vec![Idle; 6], vec![Unknown; 6], vec![Unknown; 6], vec![Unknown; 6]]);
        assert!(seen[1..].iter().all(|(states, _)| *states == [Unknown; 6]), "{seen:?}");
        assert_eq!(seen.iter().map(|(_, says)| *says).collect::<Vec<_>>(), [false, true, true, false]);
    }

    #[test]
    fn one_that_turned_into_something_else_meanwhile_is_reported() {
        let mixed = [vec![Blocked], vec![Idle; 5]].concat();
        let seen = run(&[vec![Busy; 6], vec![Idle; 6], mixed]);
        assert_eq!(seen[2], ([vec![Blocked], vec![Busy; 5]].concat(), true));
    }

    #[test]
    fn sweeps_that_take_no_time_end_it_all_the_same() {
        let mut memory = Memory::default();
        let mut ended = false;
        for sweep in 0..20 {
            let state = if sweep == 0 { Busy } else { Idle };
            let mut panes: BTreeMap<PaneId, PaneVerdict> = (0..6)
                .map(|id| (PaneId::new(id), PaneVerdict::of(state, Evidence::new(Witness::Screen, "rule"))))
                .collect();
            let (next, _) = memory.step(&mut panes, Duration::ZERO);
            memory = next;
            ended = panes.values().all(|verdict| verdict.state == Idle);
        }
        assert!(ended);
    }
}
