//! Every worker as the last look found it: what the `workspace:` line counts and the full snapshot lists.

use std::time::Duration;

use crate::logic::ids::WindowId;
use crate::logic::pane::verdict::State;
use crate::logic::time::Timestamp;

use super::class::Outcome;

/// One worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What it is called on the page: clean, and unique among the workers.
    pub label: String,
    /// Its window's name as one clean line; two workers may share it.
    pub name: String,
    /// Its window.
    pub window: WindowId,
    /// What its pane is doing.
    pub state: State,
    /// How long ago it was last engaged.
    pub age: Duration,
    /// What classifying it came to.
    pub outcome: Outcome,
}

/// All workers, in the order of tmux's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// When they were looked at.
    pub at: Timestamp,
    /// The workers.
    pub entries: Vec<Entry>,
    /// Whether the action log could not be had, so that nobody's wrap-up is known.
    pub log_missing: bool,
}

impl Roster {
    /// Only the workers whose window is still listed.
    #[must_use]
    pub fn still_listed(&self, is_listed: impl Fn(WindowId) -> bool) -> Self {
        let entries = self.entries.iter().filter(|entry| is_listed(entry.window)).cloned().collect();
        Self { entries, ..*self }
    }
}
