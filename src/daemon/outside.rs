//! Everything the daemon touches, in one place: a simulated fleet replaces it whole.

use std::path::PathBuf;

use super::observe::Observer;
use crate::config::resolved::Settings;
use crate::sys::clock::Clock;
use crate::sys::files::StateDir;

/// The outside as the daemon sees it.
#[derive(Debug)]
pub struct Outside<T> {
    /// The watched tmux server.
    pub tmux: T,
    /// Where the time comes from.
    pub clock: Clock,
    /// The state directory.
    pub state: StateDir,
    /// Checked settings.
    pub settings: Settings,
    /// Where the agents keep their sessions (`CLAUDE_CONFIG_DIR`, else `~/.claude`); `None` if there is no home.
    pub agent_home: Option<PathBuf>,
    /// What was seen at the last look, so that an unchanged screen is not read again.
    pub observer: Observer,
}
