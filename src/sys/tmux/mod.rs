//! The one door to tmux. Reads go over a persistent control client, with one-shot commands as the fallback; writes are
//! one server-side command list that checks and acts, so that nothing can change between the check and the act.
//!
//! Watching never starts a server, creates a session, resizes a window or sets an option. `tmux-facts` are the source
//! of every rule here; `tests/tmux_real.rs` checks them on the installed version.

use crate::logic::ids::{PaneId, ServerId, WindowId, WindowName};
use crate::logic::snapshot::TmuxView;

mod batch;
mod bells;
mod client;
mod control;
mod framer;
mod guard;
mod oneshot;
mod parse;
mod servers;
mod slot;

pub use client::TmuxClient;
pub use framer::TmuxEvent;
pub use oneshot::{Socket, check_installed};
pub use parse::version_is_supported;
pub use servers::Servers;

/// Why tmux could not be asked or did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TmuxError {
    /// The `tmux` program is not there.
    #[error("tmux is not installed or not in PATH; install it (Debian: apt-get install tmux)")]
    NotInstalled,
    /// No server listens on the socket.
    #[error("no tmux server on {socket}; start tmux there, or set monitor.tmux.sockets")]
    NoServer {
        /// The socket that was tried.
        socket: String,
    },
    /// Older than 3.2.
    #[error("tmux {found} is too old; install version 3.2 or later, and restart its server")]
    TooOld {
        /// What it calls itself.
        found: String,
    },
    /// No answer within the deadline.
    #[error("tmux did not answer within {after_ms} ms while {doing}")]
    Timeout {
        /// What was asked.
        doing: &'static str,
        /// The deadline.
        after_ms: u64,
    },
    /// tmux answered with an error.
    #[error("tmux refused {doing}: {stderr}")]
    Refused {
        /// What was asked.
        doing: &'static str,
        /// Its words.
        stderr: String,
    },
    /// The process could not be run or spoken to.
    #[error("could not run tmux while {doing}: {why}")]
    Io {
        /// What was asked.
        doing: &'static str,
        /// The system's words.
        why: String,
    },
    /// This instance may not act; nothing was asked of tmux.
    #[error("nothing was done: {why}")]
    NotOurs {
        /// Why it may not.
        why: String,
    },
    /// Of several servers, none answered; not all of them are known to be absent.
    #[error("no tmux server answers: {why}")]
    NoneAnswers {
        /// What each of them came to.
        why: String,
    },
    /// The answer could not be understood.
    #[error("could not read tmux's answer to {doing}: {why}")]
    Malformed {
        /// What was asked.
        doing: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

impl TmuxError {
    /// Whether an act ([`Tmux::act`]) that failed with this error has certainly typed nothing, so that trying again
    /// can't repeat it.
    pub fn typed_nothing(&self) -> bool {
        guard::typed_nothing(self)
    }

    /// The same for people who have several servers: with the socket that it is about.
    pub fn says_of(&self, socket: &str) -> String {
        match self {
            // These name it already, or are about none.
            Self::NoServer { .. } | Self::NoneAnswers { .. } | Self::NotInstalled => self.to_string(),
            _ => format!("{socket}: {self}"),
        }
    }
}

/// Which rows of a pane to read, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureRequest {
    /// The pane.
    pub pane: PaneId,
    /// First and last row, from zero at the top of the visible screen; `None` is the whole visible screen.
    pub rows: Option<(u16, u16)>,
    /// With colours and attributes (costs five times as much).
    pub styled: bool,
}

/// The answer to one [`CaptureRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capture {
    /// The rows, top to bottom, as bytes of UTF-8 with escapes if styled; not joined, not trimmed.
    Rows(Vec<String>),
    /// The pane is gone.
    Gone,
}

/// Who reads many screens of one server and does its work on each while tmux is busy with the next ones.
pub trait Reading {
    /// Starts over. Answers that were taken before may have been false (a control client that failed midway) and are
    /// dropped.
    fn begin(&mut self);

    /// The next question, with a number by which its answer is known; `None` if there is none unless an answer brings
    /// one.
    fn next(&mut self) -> Option<(usize, CaptureRequest)>;

    /// Takes in an answer.
    fn take(&mut self, tag: usize, request: CaptureRequest, capture: Capture);
}

/// A key by tmux's own name. Only these are ever pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Return.
    Enter,
    /// Escape. Case D only.
    Escape,
    /// Back space. VI guard only.
    BSpace,
    /// The letter `i`. VI guard only.
    LetterI,
}

impl Key {
    /// Its name, for records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enter => "Enter",
            Self::Escape => "Escape",
            Self::BSpace => "BSpace",
            Self::LetterI => "i",
        }
    }
}

/// What to do to a pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Paste this text, framed where the program asked for frames. No control bytes but `\n` and `\t`; no trailing newline.
    Paste(String),
    /// Press these keys.
    Press(Vec<Key>),
}

/// An act with everything that must still hold, checked by the server in the same command list.
///
/// Always checked besides the fields: the pane is not dead, not in a mode, its window not synchronised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardedAct {
    /// The server that the pane was seen on; another server (pid, start) refuses.
    pub server: ServerId,
    /// The pane.
    pub pane: PaneId,
    /// The process that the pane must still run.
    pub pid: u32,
    /// Texts of which each must be on the visible screen (literal, matched within one row).
    pub require: Vec<String>,
    /// Rows of which each must stand on the visible screen as it is and with nothing beside it; blanks at its end
    /// don't count.
    pub rows: Vec<String>,
    /// Texts of which none may be on the visible screen.
    pub refuse: Vec<String>,
    /// No shell may be in front: one waits behind the agent, and would run what is typed when that has ended.
    pub no_shell: bool,
    /// The act.
    pub act: Act,
}

/// What became of a [`GuardedAct`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActOutcome {
    /// The server carried it out.
    Done,
    /// A check failed; nothing was typed.
    Refused(ActRefusal),
}

/// Which check failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActRefusal {
    /// No such pane.
    #[error("the pane is gone")]
    Gone,
    /// Its command has ended.
    #[error("the pane is dead")]
    Dead,
    /// A tmux mode is open.
    #[error("a tmux mode (copy mode) is open in the pane")]
    InMode,
    /// Keys go to several panes.
    #[error("the window's panes are synchronised")]
    Synchronized,
    /// Another process runs in the pane.
    #[error("the pane runs another process now")]
    OtherProcess,
    /// Another tmux server answers on the socket.
    #[error("another tmux server answers on the socket")]
    OtherServer,
    /// A required text is not on the screen, or a refused one is, or a shell is in front.
    #[error("the screen, or the program in front, is no longer what was checked")]
    ScreenChanged,
}

/// What the watcher asks of tmux. Real: [`TmuxClient`]; simulated in tests.
///
/// No method has a body here: a wrapper that forgot one would quietly fall back to the slower way.
#[expect(async_fn_in_trait, reason = "one thread; the futures need not be Send")]
pub trait Tmux {
    /// Lists every pane of every session with the server's identity, in one exchange.
    async fn view(&self) -> Result<TmuxView, TmuxError>;

    /// The same with the panes of the windows of one name. Without a cheaper way: [`TmuxView::of_window`].
    async fn view_of(&self, window: &WindowName) -> Result<TmuxView, TmuxError>;

    /// Reads rows of panes, one answer a request, in request order.
    async fn capture(&self, requests: &[CaptureRequest]) -> Result<Vec<Capture>, TmuxError>;

    /// Reads rows of panes while more questions turn up: what `reading` asks, in its order, each answer given back to it.
    /// Without a way that streams: [`read_in_rounds`].
    ///
    /// Errors: as for [`Tmux::capture`]; what was given back so far is then not to be used.
    async fn read(&self, reading: &mut dyn Reading) -> Result<(), TmuxError>;

    /// Checks and acts in one server-side command list. Never called but by `daemon::actuate`.
    ///
    /// Errors: leave open whether the act happened (a server that hung may carry it out when it wakes, its checks
    ///         included) unless [`TmuxError::typed_nothing`]; text that may not be sent is `Malformed`.
    async fn act(&self, act: &GuardedAct) -> Result<ActOutcome, TmuxError>;

    /// Clears the bell flag of windows without creating a session and without changing what anybody looks at.
    ///
    /// Shape:  `windows` is every window whose bell may go: those reported, and those seen ringing that are never
    ///         reported (the target). tmux clears a session's bells together or not at all.
    ///         Never called but by `daemon::actuate`.
    /// Errors: `Refused` if another window of the session rings too; that session's bells are left as they are.
    async fn clear_bells(&self, windows: &[WindowId]) -> Result<(), TmuxError>;
}

/// [`Tmux::read`] by rounds of [`Tmux::capture`], each with what the answers of the one before brought.
///
/// Errors: as for [`Tmux::capture`].
pub async fn read_in_rounds(tmux: &impl Tmux, reading: &mut dyn Reading) -> Result<(), TmuxError> {
    reading.begin();
    loop {
        let asked: Vec<(usize, CaptureRequest)> = std::iter::from_fn(|| reading.next()).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let requests: Vec<CaptureRequest> = asked.iter().map(|(_, request)| *request).collect();
        for ((tag, request), capture) in asked.into_iter().zip(tmux.capture(&requests).await?) {
            reading.take(tag, request, capture);
        }
    }
}
