//! What the tests of tasks share: settings, times and a tmux view.

use std::path::Path;

use crate::config::resolved::Settings;
use crate::logic::ids::ServerId;
use crate::logic::snapshot::{Gathered, PaneFacts, TmuxView};
use crate::logic::time::{Now, Timestamp};

/// Defaults for a root that does not exist.
pub(super) fn settings() -> Settings {
    Settings::defaults(Path::new("/nexus"))
}

/// A time in whole seconds.
pub(super) fn at(secs: i64) -> Now {
    Now::fixed(Timestamp::from_secs(secs))
}

/// A server that lists these panes.
pub(super) fn tmux(panes: Vec<PaneFacts>) -> Gathered<TmuxView> {
    let server = ServerId { socket: "/tmp/test".into(), pid: 1, start_s: 1 };
    Gathered::Got(TmuxView::of_one(server, "3.3a", panes))
}
