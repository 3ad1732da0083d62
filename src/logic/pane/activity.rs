//! What can be said of an agent whose screen nobody knows: whether its text changes.

use std::time::Duration;

use super::verdict::{Evidence, PaneVerdict, State, Witness};
use crate::logic::time::Timestamp;

/// How long after a change of its text a pane still counts as busy: a pause between two lines is no end.
const CHANGE_LASTS: Duration = Duration::from_secs(15);

/// Evidence of a screen that changed a moment ago.
const CHANGES: &str = "text-changes";
/// Evidence of a screen that did not change, or was seen once only: nobody knows what that means.
const STILL: &str = "text-still";

/// The text of a pane over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    /// Checksum of the text at the last look.
    hash: u64,
    /// When it was first seen to be another than before.
    changed_at: Option<Timestamp>,
}

impl Activity {
    /// After another look, at a text with this checksum.
    #[must_use]
    pub fn seen(before: Option<Self>, hash: u64, now: Timestamp) -> Self {
        match before {
            Some(before) if before.hash == hash => before,
            Some(_) => Self { hash, changed_at: Some(now) },
            None => Self { hash, changed_at: None },
        }
    }

    /// The text with this checksum, seen to be another than before at that time.
    pub const fn of(hash: u64, changed_at: Option<Timestamp>) -> Self {
        Self { hash, changed_at }
    }

    /// When it was seen to be another than before.
    pub const fn changed_at(self) -> Option<Timestamp> {
        self.changed_at
    }

    /// The verdict on a screen of which nothing else is known.
    pub fn weigh(self, screen: PaneVerdict, now: Timestamp) -> PaneVerdict {
        let age = self.changed_at.map(|at| now.since(at));
        let is_busy = age.is_some_and(|age| age <= CHANGE_LASTS);
        let mut evidence = Evidence::new(Witness::Screen, if is_busy { CHANGES } else { STILL });
        evidence.age_s = age;
        let mut verdict = screen;
        verdict.state = if is_busy { State::Busy } else { State::Unknown };
        verdict.evidence.insert(0, evidence);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pane_is_busy_while_its_text_changes_and_never_anything_else_that_is_known() {
        let mut activity = None;
        for (at, hash, expected) in [
            (100, 1, State::Unknown),
            (101, 1, State::Unknown),
            (102, 2, State::Busy),
            (117, 2, State::Busy),
            (118, 2, State::Unknown),
            (500, 3, State::Busy),
            (501, 1, State::Busy),
            (517, 1, State::Unknown),
            // The clock was set back.
            (400, 1, State::Busy),
        ] {
            let now = Timestamp::from_secs(at);
            let seen = Activity::seen(activity, hash, now);
            activity = Some(seen);
            let screen = PaneVerdict::of(State::Unknown, Evidence::new(Witness::Screen, "screen-not-read"));
            let verdict = seen.weigh(screen, now);
            assert_eq!((verdict.state, verdict.input), (expected, None), "at {at}");
        }
    }
}
