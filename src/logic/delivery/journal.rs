//! What is remembered of deliveries: `emits.jsonl`, one line an event, folded into one row an emit; and
//! `delivery/pending.json`, the one delivery whose outcome is not known yet.

use serde::{Deserialize, Serialize};

use super::gate::Hold;
use super::machine::Fold;
use super::{Outcome, ProofBy};
use crate::logic::ids::{PaneKey, Signature};
use crate::logic::signal::{Commit, SectionKind};
use crate::logic::time::Timestamp;

/// Path of the event log, relative to the state directory.
pub const EMITS: &str = "emits.jsonl";

/// Path of the pending delivery, relative to the state directory.
pub const PENDING: &str = "delivery/pending.json";

/// What happened to an emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Composed and archived.
    Composed,
    /// Nothing was typed; it waits.
    Held,
    /// A newer emit took its place before anything of it was typed.
    Superseded,
    /// About to be pasted.
    Intent,
    /// It arrived and was taken.
    Verified,
    /// It arrived and waits in the agent's queue.
    Queued,
    /// Typed, or perhaps typed, and nobody saw it arrive.
    Unknown,
    /// tmux failed; nothing was typed.
    Failed,
    /// The target was not there; nothing was typed.
    Absent,
    /// An unknown outcome that no witness could settle; its news are told again in a later emit.
    Repeated,
}

impl Kind {
    /// The printed word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Composed => "composed",
            Self::Held => "held",
            Self::Superseded => "superseded",
            Self::Intent => "in-flight",
            Self::Verified => "verified",
            Self::Queued => "queued",
            Self::Unknown => "unknown",
            Self::Failed => "failed",
            Self::Absent => "absent",
            Self::Repeated => "repeated",
        }
    }

    /// Whether it is proven that the emit arrived.
    pub const fn is_received(self) -> bool {
        matches!(self, Self::Verified | Self::Queued)
    }
}

/// One line of `emits.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, milliseconds since 1970.
    pub at_ms: Timestamp,
    /// The emit's nonce.
    pub nonce: String,
    /// What happened.
    pub event: Kind,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Who saw it arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<ProofBy>,
    /// The timestamp in its signature; with `composed` only, like the following.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iso: Option<String>,
    /// Why it was composed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Name of its archive in `diffs/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// Its sections.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<SectionKind>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The signature of the emit whose news it repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat_of: Option<String>,
}

impl Event {
    /// An event without further fields.
    pub fn new(at: Timestamp, nonce: &str, event: Kind) -> Self {
        Self {
            at_ms: at,
            nonce: nonce.to_owned(),
            event,
            detail: None,
            witness: None,
            iso: None,
            reason: None,
            archive: None,
            sections: Vec::new(),
            bytes: None,
            repeat_of: None,
        }
    }

    /// The event that records how a delivery ended.
    pub fn of_outcome(at: Timestamp, nonce: &str, outcome: &Outcome) -> Self {
        let (kind, detail, witness) = match outcome {
            Outcome::Received(proof) => {
                (if proof.queued { Kind::Queued } else { Kind::Verified }, None, Some(proof.by))
            }
            // An emit is never only placed; the text stands there, so nobody has taken it.
            Outcome::Placed => (Kind::Unknown, Some("it was left in the input box".to_owned()), None),
            Outcome::Held(hold) => (Kind::Held, Some(held_text(*hold)), None),
            Outcome::Absent(why) => (Kind::Absent, Some(why.clone()), None),
            Outcome::NoTmux(why) | Outcome::Failed(why) => (Kind::Failed, Some(why.clone()), None),
            Outcome::Unknown(why) => (Kind::Unknown, Some(why.clone()), None),
        };
        Self { detail, witness, ..Self::new(at, nonce, kind) }
    }

    /// The line, with its newline.
    pub fn line(&self) -> String {
        // Plain data of ours always serialises.
        let mut line = serde_json::to_string(self).expect("an event is plain data");
        line.push('\n');
        line
    }
}

/// `draft: somebody's unsent text …`
fn held_text(hold: Hold) -> String {
    format!("{}: {}", hold.word(), hold.says())
}

/// One emit with what became of it, as `ng emits` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// `<iso> <nonce>`.
    pub sig: String,
    /// The nonce alone.
    pub nonce: String,
    /// When it was composed, ISO 8601 as in the signature.
    pub at: String,
    /// Why it was composed.
    pub reason: String,
    /// The last thing that happened to it.
    pub outcome: String,
    /// Whether it is proven that it arrived.
    pub received: bool,
    /// Who saw it arrive: `hook`, `transcript` or `screen`.
    pub witness: Option<ProofBy>,
    /// Milliseconds from composing to the proof.
    pub latency_ms: Option<u64>,
    /// Why it is held, failed or unknown.
    pub detail: Option<String>,
    /// Name of its archive in `diffs/`.
    pub archive: Option<String>,
    /// Its sections.
    pub sections: Vec<SectionKind>,
    /// Its size in bytes.
    pub bytes: Option<u64>,
    /// The signature of the emit whose news it repeats.
    pub repeat_of: Option<String>,
}

/// Folds the event log into rows, oldest first. Lines that can't be read are counted, not fatal.
pub fn fold(text: &str) -> (Vec<Row>, usize) {
    let mut rows: Vec<(Timestamp, Row)> = Vec::new();
    let mut index = std::collections::HashMap::new();
    let mut unreadable = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let Ok(event) = serde_json::from_str::<Event>(line) else {
            unreadable += 1;
            continue;
        };
        let at = *index.entry(event.nonce.clone()).or_insert_with(|| {
            rows.push((event.at_ms, Row::new(&event.nonce)));
            rows.len() - 1
        });
        if let Some((composed, row)) = rows.get_mut(at) {
            row.apply(*composed, event);
        }
    }
    (rows.into_iter().map(|(_, row)| row).collect(), unreadable)
}

/// The signature (`<iso> <nonce>`) of the last emit that may have been typed, if nothing says what became of it and no
/// later one is known to have arrived. What is told next may be a repetition of it.
pub fn left_open(rows: &[Row]) -> Option<Signature> {
    let open = [Kind::Intent, Kind::Unknown, Kind::Repeated];
    let last = rows.iter().rev().find(|row| row.received || open.iter().any(|kind| kind.word() == row.outcome))?;
    let iso = last.sig.strip_suffix(&last.nonce)?.trim_end();
    (!last.received).then(|| Signature { iso: iso.to_owned(), nonce: last.nonce.clone() })
}

impl Row {
    /// A row of which only the nonce is known.
    fn new(nonce: &str) -> Self {
        Self {
            sig: nonce.to_owned(),
            nonce: nonce.to_owned(),
            at: String::new(),
            reason: String::new(),
            outcome: String::new(),
            received: false,
            witness: None,
            latency_ms: None,
            detail: None,
            archive: None,
            sections: Vec::new(),
            bytes: None,
            repeat_of: None,
        }
    }

    /// Takes in one event; `composed` is the time of the emit's first event.
    fn apply(&mut self, composed: Timestamp, event: Event) {
        if let Some(iso) = event.iso {
            self.sig = format!("{iso} {}", self.nonce);
            self.at = iso;
            self.reason = event.reason.unwrap_or_default();
            self.archive = event.archive;
            self.sections = event.sections;
            self.bytes = event.bytes;
            self.repeat_of = event.repeat_of;
        }
        // What is proven stays proven, whatever a late line says.
        if self.received {
            return;
        }
        event.event.word().clone_into(&mut self.outcome);
        self.detail = event.detail;
        if event.event.is_received() {
            self.received = true;
            self.witness = event.witness;
            self.latency_ms = u64::try_from(event.at_ms.since(composed).as_millis()).ok();
        }
    }
}

/// The one delivery whose outcome is not known yet. Written durably before anything is typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Its signature.
    pub signature: Signature,
    /// The pane that is or was pasted into.
    pub pane: PaneKey,
    /// The pane's process.
    pub pid: u32,
    /// The whole text, by which it is known again in the input box. Empty where it was not written down: then nothing
    /// there counts as ours.
    #[serde(default)]
    pub body: String,
    /// The fold that our paste was seen as, alone in the box; `None` where none was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fold: Option<Fold>,
    /// The transcript at that time and its length, so that only what came later counts.
    pub transcript: Option<(String, u64)>,
    /// What its verified delivery retires.
    pub commits: Vec<Commit>,
    /// When the intent was written.
    pub at_ms: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::super::Proof;
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn events_fold_into_one_row_an_emit() {
        let composed = Event {
            iso: Some("2026-05-11T13:42:01+00:00".into()),
            reason: Some("poll".into()),
            archive: Some("x.md".into()),
            bytes: Some(120),
            ..Event::new(at(1000), "a1b2c3", Kind::Composed)
        };
        let held = Event::of_outcome(at(1100), "a1b2c3", &Outcome::Held(Hold::Draft));
        let done = Event::of_outcome(at(3500), "a1b2c3", &Outcome::Received(Proof { by: ProofBy::Hook, queued: true }));
        let text = composed.line() + &held.line();
        let (rows, bad) = fold(&text);
        assert_eq!((rows.len(), bad), (1, 0));
        assert_eq!((rows[0].outcome.as_str(), rows[0].received), ("held", false));
        assert!(rows[0].detail.as_deref().unwrap().starts_with("draft: "));
        let (rows, _) = fold(&(text + &done.line()));
        assert_eq!((rows[0].outcome.as_str(), rows[0].received), ("queued", true));
        assert_eq!(rows[0].witness, Some(ProofBy::Hook));
        assert_eq!(rows[0].latency_ms, Some(2500));
        assert_eq!(rows[0].detail, None);
    }

    #[test]
    fn a_proof_is_never_taken_back() {
        let received = Outcome::Received(Proof { by: ProofBy::Screen, queued: false });
        let text = Event::of_outcome(at(1), "a1b2c3", &received).line()
            + &Event::of_outcome(at(2), "a1b2c3", &Outcome::Unknown("late".into())).line();
        assert_eq!(fold(&text).0[0].outcome, "verified");
    }

    #[test]
    fn what_was_left_open_is_known_again_until_something_arrives() {
        let composed = |nonce: &str| {
            Event { iso: Some("2026-05-11T13:42:01+00:00".into()), ..Event::new(at(1), nonce, Kind::Composed) }.line()
        };
        let event = |nonce: &str, kind| Event::new(at(2), nonce, kind).line();
        let check = |text: String, nonce: Option<&str>| {
            let open = left_open(&fold(&text).0);
            assert_eq!(open.as_ref().map(|open| open.nonce.as_str()), nonce, "{text}");
            assert!(open.is_none_or(|open| open.iso == "2026-05-11T13:42:01+00:00"), "{text}");
        };
        check(String::new(), None);
        for kind in [Kind::Intent, Kind::Unknown, Kind::Repeated] {
            let open = composed("aaaaaa") + &event("aaaaaa", kind);
            check(open.clone(), Some("aaaaaa"));
            check(open.clone() + &composed("bbbbbb") + &event("bbbbbb", Kind::Held), Some("aaaaaa"));
            check(open + &composed("bbbbbb") + &event("bbbbbb", Kind::Queued), None);
        }
        check(composed("aaaaaa") + &event("aaaaaa", Kind::Held), None);
    }

    #[test]
    fn a_cut_line_is_counted_and_the_rest_is_read() {
        let line = Event::new(at(1), "a1b2c3", Kind::Composed).line();
        let (rows, bad) = fold(&format!("{line}{{\"at_ms\":12,\"non\n{line}"));
        assert_eq!((rows.len(), bad), (1, 1));
    }
}
