//! Delivery of a text to a pane: when it may be typed, what proves that it arrived, what is remembered.
//!
//! [`gate`] judges the target before anything is typed, [`machine`] is the state machine of `contracts.md` §5,
//! [`proof`] judges what the pane shows, [`journal`] and [`sends`] are what survives a crash, [`cap`] keeps a paste below a
//! size, [`trouble`] counts what fails. All pure: `daemon::drive` carries the steps out, for the watcher's emits and for
//! `ng send` alike.

pub mod cap;
pub mod gate;
pub mod journal;
pub mod machine;
pub mod proof;
pub mod sends;
pub mod trouble;

use serde::{Deserialize, Serialize};

use crate::logic::ids::Signature;

/// What is or was pasted, by which it is known again on a screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pasted {
    /// What tells it from every other text.
    pub mark: Mark,
    /// The whole text.
    pub body: String,
    /// Its line breaks, which a folded mark counts.
    pub line_breaks: u32,
}

/// What tells a text from every other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The signature at its end: no other text has it.
    Signed(Signature),
    /// Its longest run of plain words: somebody else may have said the same, so only what is new counts.
    Words(String),
}

/// Fewer characters than this are too common to be known again by (`protocol-facts` §8.2).
const MIN_WORDS: usize = 12;

impl Pasted {
    /// A text with this signature at its end.
    pub fn new(signature: Signature, body: String) -> Self {
        Self::with(Mark::Signed(signature), body)
    }

    /// A text of a person or an agent, which nobody signed.
    pub fn unsigned(body: String) -> Self {
        Self::with(Mark::Words(plain_words(&body)), body)
    }

    /// A text with this mark.
    fn with(mark: Mark, body: String) -> Self {
        let line_breaks = u32::try_from(body.matches('\n').count()).unwrap_or(u32::MAX);
        Self { mark, body, line_breaks }
    }

    /// Whether no other text can have its mark.
    pub const fn is_signed(&self) -> bool {
        matches!(self.mark, Mark::Signed(_))
    }

    /// The words that witnesses look for; `None` where they would be too common.
    pub fn needle(&self) -> Option<String> {
        match &self.mark {
            Mark::Signed(signature) => Some(signature.needle()),
            Mark::Words(words) => (words.len() >= MIN_WORDS).then(|| words.clone()),
        }
    }

    /// The words at the beginning, by which a long text in an agent's queue is known; `None` where they would be too
    /// common.
    pub fn opening(&self) -> Option<String> {
        match &self.mark {
            Mark::Signed(signature) => Some(signature.opening()),
            Mark::Words(_) => {
                let first = self.body.lines().map(str::trim).find(|line| !line.is_empty())?;
                (first.chars().count() >= MIN_WORDS).then(|| first.to_owned())
            }
        }
    }
}

/// The longest run of printable ASCII in one line that JSON writes as it is.
fn plain_words(body: &str) -> String {
    let is_plain = |c: char| (' '..='~').contains(&c) && c != '"' && c != '\\';
    let runs = body.split(|c: char| !is_plain(c)).map(str::trim);
    let longest = runs.fold("", |longest, run| if run.len() > longest.len() { run } else { longest });
    longest.to_owned()
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
    /// The text stands in the input box, unsent, as it was asked for.
    Placed,
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
            Self::Received(_) | Self::Placed => 0,
            Self::NoTmux(_) => 1,
            Self::Absent(_) => 2,
            Self::Failed(_) => 3,
            Self::Unknown(_) => 4,
            Self::Held(_) => 7,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsigned_text_is_known_by_its_longest_plain_words() {
        let check = |body: &str, needle: Option<&str>| {
            assert_eq!(Pasted::unsigned(body.to_owned()).needle().as_deref(), needle, "{body:?}");
        };
        check("yes", None);
        check("please look at the tests", Some("please look at the tests"));
        check("a line\nand a longer line\n", Some("and a longer line"));
        check("say \"these are the words\" now", Some("these are the words"));
        check("schönes langes Wörterbuch", Some("nes langes W"));
        check("прочитай отчёт", None);
    }
}
