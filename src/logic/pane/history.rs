//! What a pane was before: its last changes of state, with times and reasons, bounded. The running watcher keeps it and
//! writes it to `panes/<number>.json` when it changes; `ng pane-state --explain` prints it.
//!
//! It says what happened, and no decision may rest on it: a file of another server, or none at all, is an empty history.

use serde::{Deserialize, Serialize};

use super::verdict::{Overlay, PaneVerdict, State};
use crate::logic::ids::{PaneId, PaneKey, WindowName};
use crate::logic::time::Timestamp;

/// Directory of the files, below the state directory.
pub const DIR: &str = "panes";

/// Most changes that are kept of one pane.
pub const MAX_TRANSITIONS: usize = 20;

/// A change of a pane's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// When it was seen. Unit: milliseconds since 1970.
    pub at: Timestamp,
    /// What the pane was from then on.
    pub state: State,
    /// What covered its prompt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub overlay: Option<Overlay>,
    /// The rule that decided.
    pub rule: String,
}

/// The last changes, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History(Vec<Transition>);

impl History {
    /// Takes in what the pane is now; whether that is a change.
    pub fn note(&mut self, verdict: &PaneVerdict, at: Timestamp) -> bool {
        let is_same = |last: &Transition| last.state == verdict.state && last.overlay == verdict.overlay;
        if self.0.last().is_some_and(is_same) {
            return false;
        }
        let rule = verdict.evidence.first().map(|reason| reason.rule.clone()).unwrap_or_default();
        self.0.push(Transition { at, state: verdict.state, overlay: verdict.overlay, rule });
        let surplus = self.0.len().saturating_sub(MAX_TRANSITIONS);
        self.0.drain(..surplus);
        true
    }

    /// The changes, oldest first.
    pub fn transitions(&self) -> &[Transition] {
        &self.0
    }
}

/// Since when a working pane shows the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// Checksum of that text ([`PaneVerdict::content_hash`]).
    pub content_hash: u64,
    /// Since when.
    pub since: Timestamp,
}

/// The file of one pane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The pane, and the server that its id belongs to.
    pub key: PaneKey,
    /// Its window's name at the last change.
    pub window: WindowName,
    /// Its last changes, oldest first.
    pub transitions: History,
    /// Since when it is silent, once that was long.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub silent: Option<Silence>,
}

impl Record {
    /// The path of a pane's file, relative to the state directory.
    pub fn path(pane: PaneId) -> String {
        format!("{DIR}/{}", Self::file_name(pane))
    }

    /// The name of a pane's file.
    pub fn file_name(pane: PaneId) -> String {
        match pane.server() {
            0 => format!("{}.json", pane.number()),
            server => format!("{server}-{}.json", pane.number()),
        }
    }

    /// Reads the file of a pane; `None` if it is none, or about a pane of another server.
    pub fn parse(text: &str, key: &PaneKey) -> Option<Self> {
        serde_json::from_str::<Self>(text).ok().filter(|record| record.key == *key)
    }

    /// The file's text; `None` for names that JSON can't hold, of which there are none.
    pub fn render(&self) -> Option<String> {
        serde_json::to_string(self).ok().map(|text| text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::{Evidence, Witness};
    use super::*;
    use crate::logic::ids::ServerId;

    fn verdict(state: State, rule: &str) -> PaneVerdict {
        PaneVerdict::of(state, Evidence::new(Witness::Screen, rule))
    }

    fn history(states: &[State]) -> History {
        let mut history = History::default();
        for (at, state) in (0..).zip(states) {
            history.note(&verdict(*state, "rule"), Timestamp::from_secs(at));
        }
        history
    }

    #[test]
    fn only_changes_are_kept_and_only_the_last_ones() {
        let seen = history(&[State::Busy, State::Busy, State::Idle, State::Busy]);
        let kept: Vec<_> = seen.transitions().iter().map(|one| (one.at.secs(), one.state)).collect();
        assert_eq!(kept, [(0, State::Busy), (2, State::Idle), (3, State::Busy)]);
        let many: Vec<State> = [State::Busy, State::Idle].into_iter().cycle().take(101).collect();
        let kept = history(&many);
        assert_eq!((kept.transitions().len(), kept.transitions()[0].at.secs()), (MAX_TRANSITIONS, 81));
    }

    #[test]
    fn another_dialog_is_a_change() {
        let mut history = History::default();
        let mut seen = verdict(State::Blocked, "a");
        seen.overlay = Some(Overlay::Permission);
        assert!(history.note(&seen, Timestamp::default()));
        seen.overlay = Some(Overlay::Plan);
        assert!(history.note(&seen, Timestamp::default()));
        assert!(!history.note(&seen, Timestamp::default()));
    }

    #[test]
    fn a_record_reads_back_and_is_of_its_server_only() {
        let server = ServerId { socket: "/tmp/s".into(), pid: 7, start_s: 9 };
        let key = PaneKey { server: server.clone(), pane: PaneId::new(5) };
        let record = Record {
            key: key.clone(),
            window: WindowName("w\u{1b}1".into()),
            transitions: history(&[State::Busy, State::Idle]),
            silent: Some(Silence { content_hash: 3, since: Timestamp::from_secs(4) }),
        };
        let text = record.render().unwrap();
        assert_eq!(Record::parse(&text, &key), Some(record));
        let other = PaneKey { server: ServerId { start_s: 10, ..server }, ..key.clone() };
        assert_eq!(Record::parse(&text, &other), None);
        for rubbish in ["", "{}", "null", &text[..text.len() / 2]] {
            assert_eq!(Record::parse(rubbish, &key), None);
        }
        assert_eq!(Record::path(PaneId::new(5)), "panes/5.json");
        assert_eq!(Record::path(PaneId::new(5).on(1)), "panes/1-5.json");
    }
}
