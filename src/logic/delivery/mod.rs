//! Delivery of an emit: when it may be typed, what proves that it arrived, what is remembered.
//!
//! [`gate`] judges the target before anything is typed, [`machine`] is the state machine of `contracts.md` §5,
//! [`proof`] judges what the pane shows, [`journal`] is what survives a crash. All pure: `daemon::deliver` carries
//! the steps out.

pub mod gate;
pub mod journal;
pub mod machine;
pub mod proof;

use serde::{Deserialize, Serialize};

use crate::logic::ids::Signature;

/// What is or was pasted, by which it is known again on a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pasted {
    /// The signature at its end.
    pub signature: Signature,
    /// The whole text.
    pub body: String,
    /// Its line breaks, which a folded mark counts.
    pub line_breaks: u32,
}

impl Pasted {
    /// A text with this signature at its end.
    pub fn new(signature: Signature, body: String) -> Self {
        let line_breaks = u32::try_from(body.matches('\n').count()).unwrap_or(u32::MAX);
        Self { signature, body, line_breaks }
    }
}

/// Which of the three proofs of arrival was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProofBy {
    /// The agent's prompt hook saw the signature.
    Hook,
    /// The session transcript holds it.
    Transcript,
    /// The pane shows it outside the input box.
    Screen,
}

impl ProofBy {
    /// The printed word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Transcript => "transcript",
            Self::Screen => "screen",
        }
    }
}

/// A proof of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// Who saw it.
    pub by: ProofBy,
    /// The agent keeps it in its queue until the running turn allows it.
    pub queued: bool,
}

/// How one delivery ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It arrived, and this proves it.
    Received(Proof),
    /// Nothing was typed, for this reason; tried again when it is gone.
    Held(gate::Hold),
    /// The target window does not exist or holds no live pane; nothing was typed.
    Absent(String),
    /// tmux is not installed or no server runs; nothing was typed.
    NoTmux(String),
    /// tmux failed before anything could have been typed.
    Failed(String),
    /// Something was or may have been typed, and no witness has seen it arrive.
    Unknown(String),
}

impl Outcome {
    /// The specification's return code.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Received(_) => 0,
            Self::NoTmux(_) => 1,
            Self::Absent(_) => 2,
            Self::Failed(_) => 3,
            Self::Unknown(_) => 4,
            Self::Held(_) => 7,
        }
    }
}
