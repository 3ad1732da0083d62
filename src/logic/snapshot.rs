//! Everything a tick may look at, fetched beforehand.
//!
//! A part that could not be had is [`Gathered::Failed`], never an empty list: "no panes" and "tmux did not answer"
//! must not look alike.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::hook::Notification;
use super::ids::{PaneId, SessionId, WindowId, WindowName};
use super::pane::PaneVerdict;
use super::signal::StagedSignal;
use super::time::Timestamp;
pub use super::view::{ServerAnswer, TmuxView};

/// A part of the snapshot: not asked for, had, or not to be had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Gathered<T> {
    /// No due task needs it.
    #[default]
    NotAsked,
    /// Here it is.
    Got(T),
    /// It could not be had; the text says why, for people.
    Failed(String),
}

impl<T> Gathered<T> {
    /// The value, if there is one.
    pub fn got(&self) -> Option<&T> {
        match self {
            Self::Got(value) => Some(value),
            Self::NotAsked | Self::Failed(_) => None,
        }
    }
}

/// How a dead pane (kept by `remain-on-exit`) ended. Both are empty on tmux 3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadPane {
    /// Exit status of the pane's command.
    pub status: Option<i32>,
    /// Signal number that ended it (tmux 3.3 and later).
    pub signal: Option<i32>,
}

/// One row of `list-panes`: what tmux says of a pane without showing its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaneFacts {
    /// The pane.
    pub pane: PaneId,
    /// Its window.
    pub window: WindowId,
    /// A session that the window is linked to (tmux lists a linked window once a session).
    pub session: SessionId,
    /// That session's name.
    pub session_name: String,
    /// The window's name: a label.
    pub window_name: WindowName,
    /// The window's index in that session.
    pub window_index: u32,
    /// Whether the window is its session's current one.
    pub window_active: bool,
    /// Whether the pane is its window's active one.
    pub pane_active: bool,
    /// Last activity in the *window*, whole seconds; shared by its panes.
    pub activity: Timestamp,
    /// Set when the pane's command has ended and the pane is kept.
    pub dead: Option<DeadPane>,
    /// Process id of the pane's command.
    pub pid: Option<u32>,
    /// Whether a tmux mode (copy mode, a chooser) is open in the pane.
    pub in_mode: bool,
    /// Whether typed keys go to every pane of the window.
    pub synchronized: bool,
    /// Whether the program draws on the alternate screen.
    pub alternate_on: bool,
    /// Cursor column and row, from zero.
    pub cursor: (u16, u16),
    /// Whether the program shows the cursor.
    #[serde(default = "shown")]
    pub cursor_shown: bool,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Rows of scrollback.
    pub history: u64,
    /// Whether the window's bell flag is set.
    pub bell: bool,
    /// The pane's title: text from the program.
    pub title: String,
}

/// What a record says that was made before the flag was kept.
const fn shown() -> bool {
    true
}

/// A pane with its verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedPane {
    /// What tmux says of it.
    pub facts: PaneFacts,
    /// What it is doing.
    pub verdict: PaneVerdict,
}

/// A decision record as found in `decisions/` (`protocol-facts` §6). Text fields are data from agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// When it was written, ISO 8601.
    #[serde(default)]
    pub ts: String,
    /// The window it is about.
    #[serde(default)]
    pub window: String,
    /// The agent's session.
    #[serde(default)]
    pub session_id: String,
    /// `permission_prompt`, `idle_prompt`, `blocked_question`, ...
    #[serde(default)]
    pub kind: String,
    /// At most 20 lines of the message.
    #[serde(default)]
    pub prompt_excerpt: String,
    /// Pending tool (an object) or captured pane tail (a string).
    #[serde(default)]
    pub tool_context: serde_json::Value,
    /// Twelve hex digits; also in the file name.
    #[serde(default)]
    pub fingerprint: String,
    /// A Stop event came while it was open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unresolved: Option<bool>,
    /// What other versions added; kept on a rewrite.
    #[serde(flatten)]
    pub other: BTreeMap<String, serde_json::Value>,
}

/// A live decision file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionFile {
    /// Path as shown to people.
    pub path: String,
    /// Window from the file name, else from the record.
    pub window: WindowName,
    /// Fingerprint from the file name, else from the record.
    pub fingerprint: String,
    /// The record; `Err` says why it can't be read.
    pub record: Result<DecisionRecord, String>,
}

/// One line of `action-log.jsonl`, newest last. All values are strings in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionEvent {
    /// ISO 8601 with offset.
    #[serde(default)]
    pub ts: String,
    /// Who logged it.
    #[serde(default)]
    pub agent: String,
    /// `spawn`, `wrap-up`, `window-retain`, ...
    #[serde(default)]
    pub event: String,
    /// Free text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Everything else (`window`, `report`, ...).
    #[serde(flatten)]
    pub extra: BTreeMap<String, String>,
}

/// The local state that `snapshot_local` compares (`--- reports ---`, `--- tmux ---`, `--- git ---`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalState {
    /// Report file names, relative to `reports/`.
    pub reports: Gathered<Vec<String>>,
    /// `<project> <branch> <short sha> <clean|dirty>` a repository; `NotAsked` while `snapshot.git_enabled` is off.
    pub git: Gathered<Vec<String>>,
}

/// A report cited by a wrap-up: its text, or why it can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportText {
    /// The file's text.
    Found(String),
    /// No such file.
    Missing,
    /// There, but not readable; the text says why.
    Unreadable(String),
}

/// A file of the state directory as a task wants it: text, absent, or unreadable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StateText {
    /// No such file (or never asked for).
    #[default]
    Absent,
    /// Its text.
    Text(String),
    /// There, but not readable as text; the text says why.
    Unreadable(String),
}

impl StateText {
    /// The text, if there is any.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }
}

/// What a failed installation of the agent left: `local-claude-install-failed.<epoch>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallFailure {
    /// The file's name in the state directory.
    pub name: String,
    /// What the installation said.
    pub text: StateText,
}

/// What is known of a file without reading it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FileStamp {
    /// No such file (or never asked for).
    #[default]
    Absent,
    /// It is there.
    At {
        /// When it was last written.
        modified: Timestamp,
        /// Whether it has no content.
        is_empty: bool,
    },
    /// It can't be looked at; the text says why.
    Unreadable(String),
}

/// Everything a tick may look at.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The watched tmux servers.
    pub tmux: Gathered<TmuxView>,
    /// The same servers, with the panes of the windows that have the target's name.
    pub target: Gathered<TmuxView>,
    /// The watched panes with verdicts, in list order; only panes of the configured sessions.
    pub panes: Gathered<Vec<ObservedPane>>,
    /// Live decision files, without tombstones.
    pub decisions: Gathered<Vec<DecisionFile>>,
    /// The action log's events, oldest first, archives included where the live file is young.
    pub action_log: Gathered<Rc<Vec<ActionEvent>>>,
    /// Reports and repositories.
    pub local: Gathered<LocalState>,
    /// Texts of the reports that wrap-up events cite, by the base name cited.
    pub report_texts: BTreeMap<String, ReportText>,
    /// Small state files, by path relative to the state directory. A task names those it wants in its `files`.
    pub files: BTreeMap<&'static str, StateText>,
    /// Files of which only the time matters, by path relative to the state directory.
    pub stamps: BTreeMap<&'static str, FileStamp>,
    /// `monitor/services.registry`: names in it are not workers.
    pub registry: StateText,
    /// The file that `status_surface.url_file` names; absent if the setting is.
    pub status_page: StateText,
    /// Failed installations of the agent that nobody was told of.
    pub install_failures: Vec<InstallFailure>,
    /// The newest notifications of agents, oldest first.
    pub notifications: Vec<Notification>,
    /// Names in `diffs/`, for pruning.
    pub archive_names: Gathered<Vec<String>>,
    /// What every producer has staged, by task name (for `compose_emit`).
    pub staged: BTreeMap<&'static str, StagedSignal>,
    /// The nonce for an emit composed in this tick: six lower-case hex digits.
    pub nonce: String,
    /// An emit of this run has arrived.
    pub told: bool,
    /// The emit of unknown outcome whose news this one repeats; said in the header.
    pub repeat_of: Option<super::ids::Signature>,
}
