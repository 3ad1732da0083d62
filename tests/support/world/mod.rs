//! A tmux server and what people and programs do to it, in two forms: the simulated one and the installed one. What the
//! watcher asks goes through [`World::client`] in both, so that one check can be made of either.

use std::time::Duration;

use nexus_watcher::logic::ids::PaneId;
use nexus_watcher::sys::tmux::Tmux;
use tokio::time::Instant;

pub(crate) mod ask;
pub(crate) mod real;
pub(crate) mod simulated;

/// Columns and rows of every window.
pub(crate) const SIZE: (u16, u16) = (120, 40);
/// How long any condition may take, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(20);

/// What runs in a pane.
#[derive(Clone, Debug)]
pub(crate) enum Program {
    /// Echoes what is typed, and repeats each line that ended.
    Cat,
    /// Shows these lines and a last one, `end`.
    Shows(Vec<&'static str>),
    /// Keeps what it is sent, byte by byte, and shows `ready` and what it is told to.
    Receiver {
        /// Whether it asks for framed pastes.
        framed: bool,
    },
    /// Ends at once with this status; its pane stays.
    Ends(u8),
}

/// A machine with room for one tmux server.
///
/// A server has a session `main` whose first and current window `first` runs `cat`, keeps the panes of ended programs,
/// and opens further windows in the background.
pub(crate) trait World: Sized {
    /// The watcher's way to tmux.
    type Client: Tmux;
    /// Whether time goes by itself only while everybody waits.
    const VIRTUAL: bool;

    /// A machine on which no server runs.
    fn new() -> Self;
    /// The watcher's way to tmux.
    fn client(&self) -> &Self::Client;

    /// Starts the server, on the same socket each time.
    async fn start_server(&self);
    /// Ends it.
    async fn stop_server(&self);

    /// Opens a window in a session, which is made if there is none of that name; returns when the program is ready.
    async fn open(&self, session: &str, name: &str, program: Program) -> PaneId;
    /// Opens `cat` in a further pane of a pane's window.
    fn split(&self, pane: PaneId) -> PaneId;
    /// Ends a pane's process, and starts `cat` in its place.
    fn respawn(&self, pane: PaneId);
    /// Ends a pane's program with SIGTERM; returns when it is known how it ended.
    async fn terminate(&self, pane: PaneId);
    /// Closes a pane's window.
    fn close(&self, pane: PaneId);
    /// Gives a pane's window another name.
    fn rename(&self, pane: PaneId, name: &str);
    /// Gives a pane's window another number.
    fn renumber(&self, pane: PaneId, index: u32);
    /// Lets a pane's window appear in a further session.
    fn link(&self, pane: PaneId, session: &str);
    /// Makes a pane's window current in a session.
    fn select(&self, pane: PaneId, session: &str);
    /// Opens or leaves copy mode.
    fn copy_mode(&self, pane: PaneId, on: bool);
    /// Sends what is typed in a pane's window to all its panes, or no longer.
    fn synchronize(&self, pane: PaneId, on: bool);

    /// A pane's program rings.
    fn ring(&self, pane: PaneId);
    /// A pane's program writes a text.
    fn print(&self, pane: PaneId, text: &str);
    /// What a [`Program::Receiver`] was sent so far.
    fn received(&self, pane: PaneId) -> String;
}

/// Waits until a condition gives a value.
pub(crate) async fn until<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
