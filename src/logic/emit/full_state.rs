//! The periodic full snapshot: one row a worker, when it is due, and what its delivery remembers.
//!
//! Only what the workers do is compared, not their ages. While that stays the same the snapshot is repeated ever more
//! seldom: after the floor, then after as long as nothing has changed, doubling up to the cap.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::logic::ids::{WindowId, WindowName};
use crate::logic::signal::{Commit, Section, SectionKind};
use crate::logic::snapshot::{FileStamp, StateText, TmuxView};
use crate::logic::time::{Timestamp, age_text};
use crate::logic::worker::class::{Class, Outcome};
use crate::logic::worker::roster::{Entry, Roster};
use crate::logic::worker::workspace::counts;

use super::dedup::{is_within, steady};

/// The form of the last delivered snapshot; the file's time is that of the delivery.
pub const CANONICAL_FILE: &str = "last-full-state-canonical.txt";

/// Since when the form is unchanged, in seconds.
pub const CHANGE_FILE: &str = "last-full-state-change.ts";

/// When a snapshot was last considered, in seconds.
pub const CONSIDERED_FILE: &str = "last-full-state-emit.ts";

/// How often a snapshot is worth repeating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// `monitor.full_state.safety_floor_seconds`: least time between two snapshots that say the same.
    pub floor: Duration,
    /// `monitor.full_state.idle_backoff_enabled`.
    pub backs_off: bool,
    /// `monitor.full_state.idle_backoff_max_seconds`: the floor grows no further than this.
    pub cap: Duration,
}

impl Pace {
    /// Least time between two equal snapshots when nothing has changed for so long.
    pub fn floor_after(&self, unchanged: Duration) -> Duration {
        if !self.backs_off || self.floor.is_zero() {
            return self.floor;
        }
        let mut floor = self.floor;
        while floor < self.cap && unchanged >= floor.saturating_mul(2) {
            floor = floor.saturating_mul(2);
        }
        floor.min(self.cap.max(self.floor))
    }
}

/// What is known of the last delivered snapshot.
#[derive(Clone, Copy, Debug)]
pub struct LastTold<'a> {
    /// Text of [`CANONICAL_FILE`].
    pub canonical: &'a StateText,
    /// Time of that file.
    pub stamp: &'a FileStamp,
    /// Text of [`CHANGE_FILE`].
    pub changed: &'a StateText,
}

impl LastTold<'_> {
    /// Whether the last delivered snapshot said the same as this form.
    fn says(&self, canonical: &str) -> bool {
        self.canonical.text().is_some_and(|text| text.trim_end() == canonical.trim_end())
    }
}

/// Whether a snapshot of this form is to be told.
///
/// Shape: what differs from the last delivered one is; so is what can't be compared with it. What says the same is when
///        the floor for the time without a change has passed.
pub fn is_due(now: Timestamp, canonical: &str, last: LastTold<'_>, pace: &Pace) -> bool {
    let FileStamp::At { modified, .. } = last.stamp else { return true };
    if !last.says(canonical) {
        return true;
    }
    let changed = seconds(last.changed).unwrap_or(*modified);
    !is_within(now, *modified, pace.floor_after(now.since(changed)))
}

/// The time in a file that holds seconds since 1970.
pub fn seconds(text: &StateText) -> Option<Timestamp> {
    let whole = text.text()?.trim().split('.').next()?;
    Some(Timestamp::from_secs(whole.parse().ok()?))
}

/// The section with these workers, and what its delivery remembers; `None` if there are none.
pub fn section(now: Timestamp, roster: &Roster, last: LastTold<'_>) -> Option<Section> {
    if roster.entries.is_empty() {
        return None;
    }
    let canonical = canonical(roster);
    let mut commits = Vec::new();
    if !last.says(&canonical) {
        commits.push(Commit::WriteState { path: CHANGE_FILE.into(), text: format!("{}\n", now.secs()) });
    }
    commits.push(Commit::WriteState { path: CANONICAL_FILE.into(), text: canonical });
    // Its time is what the floor counts from, also for a text that was there before.
    commits.push(Commit::StampFile { path: CANONICAL_FILE.into() });
    Some(Section {
        kind: SectionKind::WorkspaceSnapshot,
        lines: roster.entries.iter().map(row).collect(),
        commits,
        pages: true,
        windows: roster.entries.iter().map(|entry| WindowName(entry.label.clone())).collect(),
    })
}

/// The workers whose windows tmux still lists. A list that is empty says nothing, so everybody stays, and so does who is on
/// a server that does not answer.
pub fn re_stat(roster: &Roster, view: &TmuxView) -> Roster {
    let listed: BTreeSet<WindowId> = view.panes.iter().map(|pane| pane.window).collect();
    let is_known = |window: WindowId| view.silence(window.server()).is_none();
    roster.still_listed(|window| listed.is_empty() || listed.contains(&window) || !is_known(window))
}

/// What is compared: the counts and the rows, without what changes by itself.
pub fn canonical(roster: &Roster) -> String {
    let prelude = format!("workspace: {}", counts(roster, &BTreeSet::new()));
    let rows = roster.entries.iter().map(row);
    let lines = [prelude, "---snapshot---".to_owned()].into_iter().chain(rows);
    lines.flat_map(|line| [steady(&line).into_owned(), "\n".to_owned()]).collect()
}

/// The row of a worker (`protocol-facts` §4.11).
fn row(entry: &Entry) -> String {
    let (label, state, age) = (&entry.label, entry.state, age_text(entry.age));
    match &entry.outcome {
        Outcome::Active => format!("  - {label} (active, state={state})"),
        Outcome::Unclear => format!("  - {label} (could not be told, state={state})"),
        Outcome::Idle(finding) => match finding.class {
            Class::PaneAbsent => format!("  - {label} pane-absent (state={state})"),
            Class::OverLimit => format!("  - {}", finding.line),
            Class::IdleTooLong => format!("  - {label} idle-too-long {age} (state={state})"),
            Class::Wrapped | Class::WrappedButStub | Class::NoWrapUp | Class::IdleOrphanAsync | Class::Retained => {
                format!("  - {label} idle {age} (state={state})")
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::ids::ServerId;
    use crate::logic::pane::verdict::State;
    use crate::logic::worker::class::Finding;
    use crate::logic::worker::scope::tests::pane;

    const PACE: Pace = Pace { floor: Duration::from_secs(900), backs_off: true, cap: Duration::from_secs(86_400) };

    fn entry(number: u32, state: State, age: u64, class: Option<(Class, &str)>) -> Entry {
        let label = format!("w{number}");
        let outcome = class.map_or(Outcome::Active, |(class, line)| {
            Outcome::Idle(Finding { label: label.clone(), class, line: line.to_owned() })
        });
        let window = WindowId::new(number);
        Entry { name: label.clone(), label, window, state, age: Duration::from_secs(age), outcome }
    }

    fn roster(entries: Vec<Entry>) -> Roster {
        Roster { entries, ..Roster::default() }
    }

    #[test]
    fn each_worker_has_the_row_of_its_class() {
        let limit = "w4 OVER-LIMIT (resets 3pm; usage limit hit — schedule resume)";
        for (entry, expected) in [
            (entry(3, State::Busy, 0, None), "  - w3 (active, state=busy)"),
            (entry(3, State::Absent, 90, Some((Class::PaneAbsent, "x"))), "  - w3 pane-absent (state=absent)"),
            (entry(3, State::Blocked, 90, Some((Class::PaneAbsent, "x"))), "  - w3 pane-absent (state=blocked)"),
            (
                entry(4, State::OverLimit, 0, Some((Class::OverLimit, limit))),
                "  - w4 OVER-LIMIT (resets 3pm; usage limit hit — schedule resume)",
            ),
            (entry(3, State::Idle, 300, Some((Class::NoWrapUp, "x"))), "  - w3 idle 5m (state=idle)"),
            (entry(3, State::Idle, 300, Some((Class::Retained, "x"))), "  - w3 idle 5m (state=idle)"),
            (
                entry(3, State::IdleOrphanAsync, 42, Some((Class::IdleOrphanAsync, "x"))),
                "  - w3 idle 42s (state=idle-orphan-async)",
            ),
            (
                entry(3, State::Idle, 90_000, Some((Class::IdleTooLong, "x"))),
                "  - w3 idle-too-long 25h00m (state=idle)",
            ),
            (
                Entry { outcome: Outcome::Unclear, ..entry(3, State::Unknown, 0, None) },
                "  - w3 (could not be told, state=unknown)",
            ),
        ] {
            assert_eq!(row(&entry), expected);
        }
    }

    #[test]
    fn ages_are_not_compared_and_states_are() {
        let at = |state, age| canonical(&roster(vec![entry(1, state, age, Some((Class::NoWrapUp, "x")))]));
        assert_eq!(
            at(State::Idle, 300),
            "workspace: 0 busy | 1 idle | 0 retained | 0 idle-too-long | 0 pane-absent | 0 over-limit | 0 orphan-async \
             | 0 interrupted | 0 parked-skeptic | 0 idle-children | N awaiting-input\n---snapshot---\n  - w1 idle AGE \
             (state=idle)\n"
        );
        assert_eq!(at(State::Idle, 300), at(State::Idle, 86_000));
        assert_ne!(at(State::Idle, 300), at(State::AutosuggestOnly, 300));
    }

    #[test]
    fn the_floor_doubles_with_the_time_without_a_change() {
        for (unchanged, floor) in [
            (0, 900),
            (1799, 900),
            (1800, 1800),
            (3599, 1800),
            (3600, 3600),
            (115_199, 57_600),
            (115_200, 86_400),
            (10_000_000, 86_400),
        ] {
            assert_eq!(PACE.floor_after(Duration::from_secs(unchanged)), Duration::from_secs(floor), "{unchanged}");
        }
        let secs = Duration::from_secs;
        assert_eq!(Pace { backs_off: false, ..PACE }.floor_after(secs(1_000_000)), secs(900));
        assert_eq!(Pace { cap: secs(60), ..PACE }.floor_after(secs(1_000_000)), secs(900));
        assert_eq!(Pace { floor: secs(0), ..PACE }.floor_after(secs(1_000_000)), secs(0));
    }

    proptest::proptest! {
        /// The floor never falls while nothing changes, and never leaves its bounds.
        #[test]
        fn the_floor_grows_and_stays_in_bounds(floor in 1u64..10_000, cap in 1u64..1_000_000, a: u32, b: u32) {
            let pace = Pace { floor: Duration::from_secs(floor), backs_off: true, cap: Duration::from_secs(cap) };
            let (less, more) = (Duration::from_secs(a.min(b).into()), Duration::from_secs(a.max(b).into()));
            let (low, high) = (pace.floor_after(less), pace.floor_after(more));
            proptest::prop_assert!(low <= high);
            proptest::prop_assert!(low >= pace.floor && high <= pace.cap.max(pace.floor));
        }
    }

    /// Whether a snapshot is due whose last delivery was this long ago, unchanged since so long.
    fn check(told_ago: u64, unchanged_for: u64, same: bool) -> bool {
        let now = Timestamp::from_secs(10_000_000);
        let present = canonical(&roster(vec![entry(1, State::Busy, 0, None)]));
        let told = if same { present.clone() } else { "workspace: other\n".to_owned() };
        let stamp = FileStamp::At { modified: now.before(Duration::from_secs(told_ago)), is_empty: false };
        let changed = StateText::Text(format!("{}\n", now.before(Duration::from_secs(unchanged_for)).secs()));
        let last = LastTold { canonical: &StateText::Text(told), stamp: &stamp, changed: &changed };
        is_due(now, &present, last, &PACE)
    }

    #[test]
    fn what_changed_is_due_and_the_rest_when_the_floor_has_passed() {
        assert!(check(10, 10, false));
        assert!(!check(899, 899, true));
        assert!(check(900, 900, true));
        assert!(!check(900, 1800, true));
        assert!(check(1800, 1800, true));
        assert!(!check(80_000, 200_000, true));
        assert!(check(86_400, 200_000, true));
    }

    #[test]
    fn without_a_readable_last_snapshot_it_is_due() {
        let now = Timestamp::from_secs(10_000);
        let stamp = FileStamp::At { modified: now, is_empty: false };
        for (canonical, stamp) in [
            (StateText::Absent, FileStamp::Absent),
            (StateText::Unreadable("denied".into()), stamp),
            (StateText::Text("x".into()), FileStamp::Unreadable("denied".into())),
        ] {
            let last = LastTold { canonical: &canonical, stamp: &stamp, changed: &StateText::Absent };
            assert!(is_due(now, "x\n", last, &PACE), "{canonical:?}");
        }
        // A stamp from the future is from before the clock was set back.
        let future = FileStamp::At { modified: now.after(Duration::from_secs(3600)), is_empty: false };
        let text = StateText::Text("x\n".into());
        assert!(is_due(now, "x\n", LastTold { canonical: &text, stamp: &future, changed: &StateText::Absent }, &PACE));
    }

    #[test]
    fn only_a_delivery_remembers_the_form_and_when_it_changed() {
        let now = Timestamp::from_secs(5000);
        let workers = roster(vec![entry(1, State::Busy, 0, None)]);
        let form = canonical(&workers);
        let write = |path: &str, text: &str| Commit::WriteState { path: path.into(), text: text.into() };
        let stamped = Commit::StampFile { path: CANONICAL_FILE.into() };
        let of = |told: &StateText| {
            let last = LastTold { canonical: told, stamp: &FileStamp::Absent, changed: &StateText::Absent };
            section(now, &workers, last).unwrap().commits
        };
        let changed = [write(CHANGE_FILE, "5000\n"), write(CANONICAL_FILE, &form), stamped.clone()];
        assert_eq!(of(&StateText::Absent), changed);
        assert_eq!(of(&StateText::Text(form.clone())), [write(CANONICAL_FILE, &form), stamped]);
        let last = LastTold { canonical: &StateText::Absent, stamp: &FileStamp::Absent, changed: &StateText::Absent };
        assert_eq!(section(now, &roster(vec![]), last), None);
    }

    #[test]
    fn rows_of_windows_that_are_gone_are_dropped_unless_the_list_is_empty() {
        let workers = roster(vec![entry(1, State::Busy, 0, None), entry(2, State::Busy, 0, None)]);
        let view = |panes| TmuxView::of_one(ServerId { socket: "/s".into(), pid: 1, start_s: 1 }, "3.3a", panes);
        let labels = |roster: Roster| -> Vec<String> { roster.entries.into_iter().map(|entry| entry.label).collect() };
        assert_eq!(labels(re_stat(&workers, &view(vec![pane(2, "w2"), pane(3, "w3")]))), ["w2"]);
        assert_eq!(labels(re_stat(&workers, &view(vec![]))), ["w1", "w2"]);
    }
}
