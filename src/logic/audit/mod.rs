//! What was done to panes, by whom and why: `audit/acts.jsonl`, up to three lines an act, and the screens before and after
//! it in `audit/screens.jsonl`. [`row`] folds them for `ng audit`; `daemon::actuate` writes them.
//!
//! An act begins with its intent, which is on disk before the act is sent; then comes what tmux said, then what was seen
//! afterwards. An intent alone is an act of which nobody knows whether it happened.

pub mod row;
pub mod screen;

use serde::{Deserialize, Serialize};

use self::screen::ScreenId;
use crate::logic::emit::clean;
use crate::logic::ids::{PaneId, ServerId, WindowId};
use crate::logic::text::hex_digest;
use crate::logic::time::Timestamp;

/// Path of the log, relative to the state directory.
pub const ACTS: &str = "audit/acts.jsonl";

/// Path of the screens, relative to the state directory.
pub const SCREENS: &str = "audit/screens.jsonl";

/// A program that acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// `ng send`, for a person or an agent.
    NgSend,
    /// The watcher by itself.
    Watcher,
}

impl Program {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NgSend => "ng send",
            Self::Watcher => "the watcher",
        }
    }
}

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The program.
    pub program: Program,
    /// The word in `machine-input.tsv`.
    pub src: String,
    /// Its process.
    pub pid: u32,
}

/// Why something is done to a pane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "kebab-case")]
pub enum Cause {
    /// A report is delivered.
    Report {
        /// Its nonce.
        nonce: String,
    },
    /// A report of which nobody knew whether it had arrived is settled.
    EarlierReport {
        /// Its nonce.
        nonce: String,
    },
    /// A text that somebody sends.
    Send {
        /// The id of the send.
        id: String,
    },
    /// What a report has told is cleared away.
    Told {
        /// The nonce of that report, if it was one.
        nonce: Option<String>,
    },
}

impl Cause {
    /// What it is about, as the log of it has it: a nonce or an id.
    pub fn about(&self) -> Option<&str> {
        match self {
            Self::Report { nonce } | Self::EarlierReport { nonce } => Some(nonce),
            Self::Send { id } => Some(id),
            Self::Told { nonce } => nonce.as_deref(),
        }
    }

    /// For people.
    pub fn says(&self) -> String {
        match self {
            Self::Report { nonce } => format!("report {nonce}"),
            Self::EarlierReport { nonce } => format!("earlier report {nonce}"),
            Self::Send { id } => format!("send {id}"),
            Self::Told { nonce: Some(nonce) } => format!("told in report {nonce}"),
            Self::Told { nonce: None } => "nothing left to tell".to_owned(),
        }
    }
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum What {
    /// Bell flags are cleared; nothing is typed.
    Bell {
        /// Of these windows.
        windows: Vec<WindowId>,
        /// The names of those that are there.
        names: Vec<String>,
    },
    /// Keys are pressed.
    Keys {
        /// Their names, in order.
        keys: Vec<String>,
    },
    /// A text is pasted.
    Paste {
        /// Its size in bytes.
        bytes: u64,
        /// Its SHA-256, in hexadecimal.
        sha256: String,
        /// Its first line, cut.
        first_line: String,
    },
}

impl What {
    /// Kinds as `ng audit --kind` spells them.
    pub const KINDS: [&str; 3] = ["bell", "keys", "paste"];

    /// The paste of this text.
    pub fn paste(text: &str) -> Self {
        Self::Paste {
            bytes: text.len() as u64,
            sha256: hex_digest(text.as_bytes()),
            first_line: clean::label(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()),
        }
    }

    /// The word of [`Self::KINDS`].
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Bell { .. } => "bell",
            Self::Keys { .. } => "keys",
            Self::Paste { .. } => "paste",
        }
    }

    /// For people, in a few words.
    pub fn says(&self) -> String {
        match self {
            Self::Bell { windows, .. } => {
                let windows: Vec<String> = windows.iter().map(WindowId::to_string).collect();
                format!("bell {}", windows.join(" "))
            }
            Self::Keys { keys } => format!("keys {}", keys.join(" ")),
            Self::Paste { bytes, .. } => format!("paste {bytes} bytes"),
        }
    }
}

/// What tmux checks together with the act, besides that the pane is there, not dead, in no mode and not synchronised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// The process that the pane runs.
    pub pid: u32,
    /// That no shell is in front.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_shell: bool,
    /// Texts on its screen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<String>,
    /// Whole rows of its screen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
}

/// Where something is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The window's name: a label. Empty where several are meant.
    pub window: String,
    /// The tmux server, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerId>,
    /// The pane, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane: Option<PaneId>,
}

/// How an act ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// tmux has carried it out.
    Done,
    /// Something was in the way; nothing was typed.
    Refused,
    /// It failed; nothing was typed.
    Failed,
    /// It failed, and may have happened.
    Unknown,
}

impl Ended {
    /// Words as `ng audit --outcome` spells them.
    pub const WORDS: [&str; 4] = ["done", "failed", "refused", "unknown"];

    /// The word of [`Self::WORDS`].
    pub const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// An act as it is announced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// Who.
    pub by: Source,
    /// Why.
    pub cause: Cause,
    /// What.
    pub what: What,
    /// Where.
    pub place: Place,
    /// What must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
    /// The screen on which it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ScreenId>,
}

/// What happened to an act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// It is about to be sent.
    Intent(Box<Intent>),
    /// It came to nothing before anything was sent.
    NotTried {
        /// What it would have been.
        #[serde(flatten)]
        intent: Box<Intent>,
        /// How it ended.
        outcome: Ended,
        /// Why.
        why: String,
    },
    /// What tmux said.
    Outcome {
        /// How it ended.
        outcome: Ended,
        /// Why, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// What was seen afterwards.
    Seen {
        /// In words.
        observed: String,
        /// On the screen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<ScreenId>,
    },
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When, milliseconds since 1970.
    pub at_ms: Timestamp,
    /// The act.
    pub id: String,
    /// What happened to it.
    #[serde(flatten)]
    pub event: Event,
}

impl Line {
    /// The line as it is written, with its newline.
    pub fn line(&self) -> String {
        // Plain data of ours always serialises.
        let mut line = serde_json::to_string(self).expect("a line is plain data");
        line.push('\n');
        line
    }
}
