//! What is to be done, as values named by intent. `daemon` carries them out in order.

use std::time::Duration;

use super::ids::Signature;
use super::signal::{Commit, SectionKind};
use super::time::Timestamp;

/// A composed emit, ready to be archived and delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emit {
    /// `startup-sweep`, `poll`, `poll-resurface`, ... (`protocol-facts` §4.12).
    pub reason: String,
    /// When it was composed.
    pub at: Timestamp,
    /// Its signature; also the last line of `body`.
    pub signature: Signature,
    /// The whole text, sanitised, ending in the trailer line without a newline.
    pub body: String,
    /// The sections it holds, in order.
    pub sections: Vec<SectionKind>,
    /// Hex SHA-256 of the body without what changes by itself; equal means "says the same".
    pub stable_hash: String,
    /// What its verified delivery retires.
    pub commits: Vec<Commit>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Archive and deliver this emit to the target window.
    Deliver(Box<Emit>),
    /// Carry out commits that need no delivery.
    Commit(Vec<Commit>),
    /// Write or append local state that is not a signal (anchors, caches). Path relative to the state directory.
    WriteState {
        /// Relative path.
        path: String,
        /// Whole new text.
        text: String,
    },
    /// Delete these archived emits (names in `diffs/`).
    PruneArchive {
        /// File names.
        names: Vec<String>,
    },
    /// Clear away what hooks left and nobody will ask for again.
    PruneHookFiles {
        /// Files older than this go.
        keep: Duration,
    },
    /// Rename a log that has grown past its size to `<name>.<epoch>`.
    RotateLog {
        /// Relative path.
        path: String,
        /// Size from which it is rotated.
        max_bytes: u64,
        /// Archives older than this are deleted.
        keep: Duration,
    },
    /// Pull another task forward: due now, then at `every` for `lasting`.
    Hurry {
        /// The task.
        task: &'static str,
        /// Cadence while it lasts.
        every: Duration,
        /// How long.
        lasting: Duration,
    },
    /// Say something in the log at `info`, once an episode.
    Note(String),
}
