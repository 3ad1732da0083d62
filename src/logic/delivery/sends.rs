//! What is remembered of `ng send`: `sends.jsonl`, one line an event, folded into one row a send. A send of which only the
//! intent stands there was cut off, and its text may stand in the box.

use serde::{Deserialize, Serialize};

use super::{Outcome, ProofBy};
use crate::logic::time::Timestamp;

/// Path of the log, relative to the state directory.
pub const SENDS: &str = "sends.jsonl";

/// Folder of the texts that were too long to paste whole, relative to the state directory.
pub const TEXTS: &str = "sends";

/// One line of `sends.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, milliseconds since 1970.
    pub at_ms: Timestamp,
    /// Tells this send from every other.
    pub id: String,
    /// `intent`, then the word of [`Sent`].
    pub event: String,
    /// The window's name; with `intent` only, like the following.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// The pane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane: Option<String>,
    /// Who sends, by the word in `machine-input.tsv`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src: Option<String>,
    /// The size of the text in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its first line, cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// Who saw it arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<ProofBy>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Event {
    /// An event without further fields.
    pub fn new(at: Timestamp, id: &str, event: &str) -> Self {
        Self {
            at_ms: at,
            id: id.to_owned(),
            event: event.to_owned(),
            window: None,
            pane: None,
            src: None,
            bytes: None,
            excerpt: None,
            witness: None,
            detail: None,
        }
    }

    /// The line, with its newline.
    pub fn line(&self) -> String {
        // Plain data of ours always serialises.
        let mut line = serde_json::to_string(self).expect("an event is plain data");
        line.push('\n');
        line
    }
}

/// How a send ended, in the words and exit codes of `ng send` (`contracts.md` §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sent {
    /// A witness saw it in the agent's conversation.
    Delivered,
    /// The agent keeps it until its running turn allows it.
    Queued,
    /// It stands in the box, unsent, as it was asked for.
    Placed,
    /// Nothing was typed: tmux is not there, or failed.
    Failed,
    /// Typed and sent, and nobody has seen it arrive.
    Unconfirmed,
    /// Typed, and it was not sent: the text may stand in the box.
    NotSubmitted,
    /// The pane's program has ended, or no agent runs in it; nothing was typed.
    DeadPane,
    /// No such window or pane; nothing was typed.
    UnknownPane,
    /// Nothing was typed, since something is in the way.
    Held,
}

impl Sent {
    /// What an outcome is called. `submitted` tells whether Enter was pressed and the box has let go of the text.
    pub const fn of(outcome: &Outcome, submitted: bool) -> Self {
        match outcome {
            Outcome::Received(proof) if proof.queued => Self::Queued,
            Outcome::Received(_) => Self::Delivered,
            Outcome::Placed => Self::Placed,
            Outcome::NoTmux(_) | Outcome::Failed(_) => Self::Failed,
            Outcome::Unknown(_) if submitted => Self::Unconfirmed,
            Outcome::Unknown(_) => Self::NotSubmitted,
            Outcome::Absent(_) => Self::DeadPane,
            Outcome::Held(_) => Self::Held,
        }
    }

    /// The printed word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Queued => "queued",
            Self::Placed => "placed",
            Self::Failed => "failed",
            Self::Unconfirmed => "unconfirmed",
            Self::NotSubmitted => "not-submitted",
            Self::DeadPane => "dead-pane",
            Self::UnknownPane => "unknown-pane",
            Self::Held => "held",
        }
    }

    /// The exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Delivered | Self::Queued | Self::Placed => 0,
            Self::Failed => 1,
            Self::Unconfirmed => 3,
            Self::NotSubmitted => 4,
            Self::DeadPane => 5,
            Self::UnknownPane => 6,
            Self::Held => 7,
        }
    }
}

/// One send with what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Tells it from every other.
    pub id: String,
    /// When it was begun, milliseconds since 1970.
    pub at_ms: Timestamp,
    /// The window's name.
    pub window: String,
    /// The pane.
    pub pane: String,
    /// Who sent.
    pub src: String,
    /// The size of the text in bytes.
    pub bytes: u64,
    /// Its first line, cut.
    pub excerpt: String,
    /// The last thing that happened: `intent` is a send under way, or one that was cut off.
    pub outcome: String,
    /// Who saw it arrive.
    pub witness: Option<ProofBy>,
    /// Why, for people.
    pub detail: Option<String>,
}

/// The word of a send under way or cut off.
pub const INTENT: &str = "intent";

/// Folds the log into rows, oldest first. Lines that can't be read are counted, not fatal.
pub fn fold(text: &str) -> (Vec<Row>, usize) {
    let mut rows: Vec<Row> = Vec::new();
    let mut unreadable = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(event) = serde_json::from_str::<Event>(line) else {
            unreadable += 1;
            continue;
        };
        if let Some(row) = rows.iter_mut().rev().find(|row| row.id == event.id) {
            row.outcome = event.event;
            row.witness = event.witness;
            row.detail = event.detail;
            continue;
        }
        rows.push(Row {
            id: event.id,
            at_ms: event.at_ms,
            window: event.window.unwrap_or_default(),
            pane: event.pane.unwrap_or_default(),
            src: event.src.unwrap_or_default(),
            bytes: event.bytes.unwrap_or_default(),
            excerpt: event.excerpt.unwrap_or_default(),
            outcome: event.event,
            witness: event.witness,
            detail: event.detail,
        });
    }
    (rows, unreadable)
}

#[cfg(test)]
mod tests {
    use super::super::Proof;
    use super::super::gate::Hold;
    use super::*;

    #[test]
    fn every_outcome_has_the_exit_code_of_the_contract() {
        let proof = |queued| Outcome::Received(Proof { by: ProofBy::Hook, queued });
        let why = String::new;
        for (outcome, submitted, word, code) in [
            (proof(false), true, "delivered", 0),
            (proof(true), true, "queued", 0),
            (Outcome::Placed, false, "placed", 0),
            (Outcome::NoTmux(why()), false, "failed", 1),
            (Outcome::Failed(why()), false, "failed", 1),
            (Outcome::Unknown(why()), true, "unconfirmed", 3),
            (Outcome::Unknown(why()), false, "not-submitted", 4),
            (Outcome::Absent(why()), false, "dead-pane", 5),
            (Outcome::Held(Hold::Draft), false, "held", 7),
        ] {
            let sent = Sent::of(&outcome, submitted);
            assert_eq!((sent.word(), sent.code()), (word, code), "{outcome:?}");
        }
        assert_eq!((Sent::UnknownPane.word(), Sent::UnknownPane.code()), ("unknown-pane", 6));
    }

    #[test]
    fn a_send_that_was_cut_off_stays_an_intent() {
        let at = Timestamp::from_secs(1);
        let intent = |id: &str| Event { window: Some("w3".into()), ..Event::new(at, id, INTENT) }.line();
        let done = Event { witness: Some(ProofBy::Hook), ..Event::new(at, "a", "delivered") }.line();
        let (rows, bad) = fold(&format!("{}{}{done}{{\"cut", intent("a"), intent("b")));
        assert_eq!(bad, 1);
        let told: Vec<_> =
            rows.iter().map(|row| (row.id.as_str(), row.window.as_str(), row.outcome.as_str())).collect();
        assert_eq!(told, [("a", "w3", "delivered"), ("b", "w3", INTENT)]);
        assert_eq!(rows[0].witness, Some(ProofBy::Hook));
    }
}
