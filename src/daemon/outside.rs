//! Everything the daemon touches, in one place: a simulated fleet replaces it whole.

use super::audit::Audit;
use super::board::Board;
use super::edges::Edges;
use super::observe::Observer;
use crate::config::live::Live;
use crate::sys::clock::Clock;
use crate::sys::env::Env;
use crate::sys::files::StateDir;

/// The outside as the daemon sees it.
pub struct Outside<T> {
    /// The watched tmux servers.
    pub tmux: T,
    /// Where the time comes from.
    pub clock: Clock,
    /// The state directory.
    pub state: StateDir,
    /// The settings in force. They can change while the watcher runs, so nobody keeps a copy.
    pub settings: Live,
    /// The environment, for where agents keep their sessions.
    pub env: Box<dyn Env>,
    /// What was seen at the last look, so that an unchanged screen is not read again.
    pub observer: Observer,
    /// Where the loop says how it fares.
    pub board: Board,
    /// What the records of acts share.
    pub audit: Audit,
    /// Which failures were said.
    pub edges: Edges,
}

impl<T> std::fmt::Debug for Outside<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outside").field("state", &self.state).finish_non_exhaustive()
    }
}
