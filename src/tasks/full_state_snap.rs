//! `full_state_snap`: lists every worker from time to time, a cumulative view between the reports of transitions.
//!
//! It looks at nothing itself: the roster is what `idle_section` has staged. What was told is remembered by the delivery
//! alone; only the time of considering is written at once.

use std::rc::Rc;
use std::time::Duration;

use super::{Class, Need, Out, Task, TaskSpec};
use crate::config::resolved::Settings;
use crate::logic::action::Action;
use crate::logic::emit::choose::{is_fresh, staged_max_age};
use crate::logic::emit::dedup::is_within;
use crate::logic::emit::full_state::{
    CANONICAL_FILE, CHANGE_FILE, CONSIDERED_FILE, LastTold, Pace, canonical, is_due, seconds, section,
};
use crate::logic::signal::StagedSignal;
use crate::logic::snapshot::{FileStamp, Snapshot, StateText};
use crate::logic::time::{Now, Timestamp};

/// Cadence while it is switched off: it runs and does nothing.
const OFF_EVERY: Duration = Duration::from_secs(600);

/// Cadence until there is a roster, and for how long that is asked for.
const NO_ROSTER: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(60));

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "full_state_snap",
    every: |settings| if settings.full_state_every.is_zero() { OFF_EVERY } else { settings.full_state_every },
    class: Class::Expensive,
    needs: &[
        Need::Staged,
        Need::File(CANONICAL_FILE),
        Need::File(CHANGE_FILE),
        Need::File(CONSIDERED_FILE),
        Need::Stamp(CANONICAL_FILE),
    ],
    doc: "Lists every worker from time to time.",
    build: || Box::new(FullStateSnap::default()),
};

/// Memory of the task.
#[derive(Default)]
struct FullStateSnap {
    /// When it was last considered, should the file be lost.
    considered: Option<Timestamp>,
}

/// What the state directory says of the last delivered snapshot.
pub(super) fn last_told(snap: &Snapshot) -> LastTold<'_> {
    const ABSENT: &StateText = &StateText::Absent;
    const NO_STAMP: &FileStamp = &FileStamp::Absent;
    LastTold {
        canonical: snap.files.get(CANONICAL_FILE).unwrap_or(ABSENT),
        stamp: snap.stamps.get(CANONICAL_FILE).unwrap_or(NO_STAMP),
        changed: snap.files.get(CHANGE_FILE).unwrap_or(ABSENT),
    }
}

impl Task for FullStateSnap {
    fn decide(&mut self, now: &Now, settings: &Settings, snap: &Snapshot, out: &mut Out) {
        let interval = settings.full_state_every;
        if interval.is_zero() {
            out.staged = Some(StagedSignal { at: now.at, ..StagedSignal::default() });
            return;
        }
        let hurry = |(every, lasting)| Action::Hurry { task: SPEC.name, every, lasting };
        let roster = snap.staged.get(super::idle_section::SPEC.name).and_then(|staged| staged.roster.as_ref());
        let max_age = staged_max_age((super::idle_section::SPEC.every)(settings));
        let Some(roster) = roster.filter(|roster| is_fresh(now, roster.at, max_age)) else {
            out.actions.push(hurry(NO_ROSTER));
            return;
        };
        let considered = self.considered.or_else(|| snap.files.get(CONSIDERED_FILE).and_then(seconds));
        let consider =
            |at: Timestamp| Action::WriteState { path: CONSIDERED_FILE.into(), text: format!("{}\n", at.secs()) };
        let Some(considered) = considered else {
            // The startup sweep has told what is new; the first full view comes when one interval has passed.
            self.considered = Some(now.at);
            out.actions.push(consider(now.at));
            out.staged = Some(StagedSignal { at: now.at, ..StagedSignal::default() });
            return;
        };
        if is_within(now.at, considered, interval) {
            // Restarted, or woken early: what is left of the interval is waited for.
            let left = interval.saturating_sub(now.at.since(considered)).max(Duration::from_secs(1));
            out.actions.push(hurry((left, left)));
            return;
        }
        self.considered = Some(now.at);
        out.actions.push(consider(now.at));
        let last = last_told(snap);
        let pace = Pace {
            floor: settings.full_state_floor,
            backs_off: settings.full_state_backs_off,
            cap: settings.full_state_cap,
        };
        let due = is_due(now.at, &canonical(roster), last, &pace);
        out.staged = Some(StagedSignal {
            at: now.at,
            sections: section(now.at, roster, last).filter(|_| due).into_iter().collect(),
            roster: due.then(|| Rc::clone(roster)),
            ..StagedSignal::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, settings};
    use super::*;
    use crate::logic::ids::WindowId;
    use crate::logic::pane::verdict::State;
    use crate::logic::signal::Commit;
    use crate::logic::worker::class::Outcome;
    use crate::logic::worker::roster::{Entry, Roster};

    /// A state directory of three files, and workers in it.
    struct Lab {
        task: FullStateSnap,
        settings: Settings,
        considered: Option<String>,
        canonical: StateText,
        told_at: FileStamp,
        changed: StateText,
        workers: Vec<State>,
    }

    impl Lab {
        /// A watcher that was started at 1000.
        fn new() -> Self {
            let mut lab = Self {
                task: FullStateSnap::default(),
                settings: settings(),
                considered: None,
                canonical: StateText::Absent,
                told_at: FileStamp::Absent,
                changed: StateText::Absent,
                workers: vec![State::Busy, State::Idle],
            };
            assert_eq!(lab.run(1000), Some(vec![]));
            lab
        }

        fn run(&mut self, secs: i64) -> Option<Vec<String>> {
            self.run_with(secs, secs)
                .staged
                .map(|staged| staged.sections.iter().flat_map(|section| section.lines.clone()).collect())
        }

        fn run_with(&mut self, secs: i64, roster_at: i64) -> Out {
            let entry = |(number, state): (u32, &State)| Entry {
                label: format!("w{number}"),
                name: format!("w{number}"),
                window: WindowId::new(number),
                state: *state,
                age: Duration::ZERO,
                outcome: Outcome::Active,
            };
            let entries = (1..).zip(&self.workers).map(entry).collect();
            let roster = Roster { at: Timestamp::from_secs(roster_at), entries, log_missing: false };
            let staged = StagedSignal { at: roster.at, roster: Some(Rc::new(roster)), ..StagedSignal::default() };
            let text = |text: &Option<String>| text.clone().map_or(StateText::Absent, StateText::Text);
            let snap = Snapshot {
                staged: [("idle_section", staged)].into(),
                files: [
                    (CONSIDERED_FILE, text(&self.considered)),
                    (CANONICAL_FILE, self.canonical.clone()),
                    (CHANGE_FILE, self.changed.clone()),
                ]
                .into(),
                stamps: [(CANONICAL_FILE, self.told_at.clone())].into(),
                ..Snapshot::default()
            };
            let mut out = Out::default();
            self.task.decide(&at(secs), &self.settings, &snap, &mut out);
            for action in &out.actions {
                match action {
                    Action::WriteState { path, text } if path == CONSIDERED_FILE => {
                        self.considered = Some(text.clone());
                    }
                    Action::Hurry { task: "full_state_snap", .. } => {}
                    other => panic!("{other:?}"),
                }
            }
            out
        }

        fn deliver(&mut self, secs: i64, out: &Out) {
            for commit in &out.staged.as_ref().unwrap().sections[0].commits {
                match commit {
                    Commit::WriteState { path, text } if path == CANONICAL_FILE => {
                        self.canonical = StateText::Text(text.clone());
                    }
                    Commit::WriteState { path, text } if path == CHANGE_FILE => {
                        self.changed = StateText::Text(text.clone());
                    }
                    Commit::StampFile { path } if path == CANONICAL_FILE => {
                        self.told_at = FileStamp::At { modified: Timestamp::from_secs(secs), is_empty: false };
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn told(out: &Out) -> bool {
        out.staged.as_ref().is_some_and(|staged| !staged.sections.is_empty())
    }

    #[test]
    fn the_first_view_comes_after_one_interval_and_is_told_until_it_is_delivered() {
        let mut lab = Lab::new();
        assert_eq!(lab.run(1599), None);
        let rows = vec!["  - w1 (active, state=busy)".to_owned(), "  - w2 (active, state=idle)".to_owned()];
        assert_eq!(lab.run(1600), Some(rows.clone()));
        assert_eq!(lab.run(2200), Some(rows));
        let out = lab.run_with(2800, 2800);
        lab.deliver(2800, &out);
        assert_eq!(lab.run(3400), Some(vec![]));
    }

    #[test]
    fn what_does_not_change_is_told_ever_more_seldom_and_a_change_at_once() {
        let mut lab = Lab::new();
        let mut told_at = Vec::new();
        for secs in (1600..40_000).step_by(600) {
            let out = lab.run_with(secs, secs);
            if told(&out) {
                lab.deliver(secs, &out);
                told_at.push(secs - 1600);
            }
        }
        // The floors 900, 1800, 3600, ... in steps of the cadence.
        assert_eq!(told_at, [0, 1200, 3000, 6600, 13_800, 28_200]);
        lab.workers[0] = State::Idle;
        assert!(told(&lab.run_with(40_000, 40_000)));
    }

    #[test]
    fn a_restart_waits_for_the_rest_of_the_interval() {
        let mut lab = Lab::new();
        lab.task = FullStateSnap::default();
        let out = lab.run_with(1400, 1400);
        let left = Duration::from_secs(200);
        assert_eq!(out.actions, [Action::Hurry { task: "full_state_snap", every: left, lasting: left }]);
        assert_eq!(out.staged, None);
        assert!(told(&lab.run_with(1600, 1600)));
    }

    #[test]
    fn an_old_roster_is_not_told() {
        let mut lab = Lab::new();
        let out = lab.run_with(1700, 1639);
        assert!(!told(&out) && matches!(out.actions.as_slice(), [Action::Hurry { .. }]), "{out:?}");
        assert!(told(&lab.run_with(1730, 1730)));
    }

    #[test]
    fn switched_off_it_stages_nothing() {
        let mut lab = Lab::new();
        lab.settings.full_state_every = Duration::ZERO;
        assert_eq!(lab.run(9000), Some(vec![]));
        assert_eq!((SPEC.every)(&lab.settings), OFF_EVERY);
    }
}
