//! Notices files in which something worth telling arrived, so that the emit is composed soon.

use std::collections::BTreeMap;

use crate::logic::time::Timestamp;

/// What is known of one watched file in this tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedFile<'a> {
    /// Path relative to the state directory.
    pub path: &'a str,
    /// When it was last written.
    pub modified: Timestamp,
    /// Whether it has no content.
    pub is_empty: bool,
}

/// The latest time of each watched file.
#[derive(Clone, Debug, Default)]
pub struct Nudge {
    /// By path; a file that vanished keeps its time, so that its old copy coming back is no news.
    seen: BTreeMap<String, Timestamp>,
}

impl Nudge {
    /// The files that are watched.
    pub const PATHS: [&'static str; 3] =
        ["deliveries-queue.lines", "scheduler-staging/github_poll.out", "scheduler-staging/requests_poll.out"];

    /// Whether any of these files was written since it was last shown here and has content.
    pub fn advanced(&mut self, files: &[WatchedFile<'_>]) -> bool {
        let mut advanced = false;
        for file in files {
            let newer = self.seen.get(file.path).is_none_or(|seen| file.modified > *seen);
            if newer {
                self.seen.insert(file.path.to_owned(), file.modified);
                advanced |= !file.is_empty;
            }
        }
        advanced
    }
}
