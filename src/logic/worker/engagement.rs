//! The anchors of idle ages: when each worker was last engaged (`engagement-log.tsv`, `window\t<epoch>`).
//!
//! A window's first sight counts as engagement, so a newborn window does not inherit an old activity time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::logic::pane::verdict::State;
use crate::logic::time::Timestamp;

/// The anchors, by window label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchors(BTreeMap<String, Timestamp>);

impl Anchors {
    /// Reads the table; the newest line of a window counts, lines of another form are ignored.
    pub fn parse(text: &str) -> Self {
        let mut anchors = Self::default();
        for line in text.lines() {
            let Some((label, epoch)) = line.rsplit_once('\t') else { continue };
            let Ok(epoch) = epoch.trim().parse() else { continue };
            let at = Timestamp::from_secs(epoch);
            let newest = anchors.0.entry(label.to_owned()).or_insert(at);
            *newest = at.max(*newest);
        }
        anchors
    }

    /// The table's text.
    pub fn render(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, (label, at)| {
            let _infallible = writeln!(text, "{label}\t{}", at.secs());
            text
        })
    }

    /// Notes what a worker is seen doing, and returns its anchor.
    pub fn note(&mut self, label: &str, state: State, now: Timestamp) -> Timestamp {
        let anchor = self.0.entry(label.to_owned()).or_insert(now);
        // An anchor from the future is from before the clock was set back: age counts from now.
        if is_engaged(state) || *anchor > now {
            *anchor = now;
        }
        *anchor
    }

    /// Forgets the windows that are gone. Returns whether there were any.
    pub fn retain(&mut self, present: &BTreeSet<String>) -> bool {
        let before = self.0.len();
        self.0.retain(|label, _| present.contains(label));
        self.0.len() != before
    }

    /// The windows that have an anchor.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Whether a pane in this state is being worked in.
const fn is_engaged(state: State) -> bool {
    matches!(state, State::Busy | State::UserTyping | State::WorkingSelfPaced | State::WorkingBackground)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newborn_window_starts_at_zero_and_work_renews_the_anchor() {
        let mut anchors = Anchors::parse("w1\t100\nw1\t90\nx\n\t\n");
        let at = Timestamp::from_secs;
        assert_eq!(anchors.note("w1", State::Idle, at(500)), at(100));
        assert_eq!(anchors.note("w2", State::Idle, at(500)), at(500));
        assert_eq!(anchors.note("w2", State::Idle, at(530)), at(500));
        for state in [State::Busy, State::UserTyping, State::WorkingSelfPaced, State::WorkingBackground] {
            assert_eq!(anchors.note("w1", state, at(560)), at(560), "{state}");
        }
        for state in [State::Unknown, State::Empty, State::Blocked, State::OverLimit] {
            assert_eq!(anchors.note("w1", state, at(600)), at(560), "{state}");
        }
        assert_eq!(Anchors::parse(&anchors.render()), anchors);
    }

    #[test]
    fn an_anchor_from_the_future_is_set_back() {
        let mut anchors = Anchors::parse("w1\t9000");
        assert_eq!(anchors.note("w1", State::Idle, Timestamp::from_secs(500)), Timestamp::from_secs(500));
    }

    #[test]
    fn windows_that_are_gone_are_forgotten() {
        let mut anchors = Anchors::parse("a b\t1\nw2\t2");
        assert!(anchors.retain(&BTreeSet::from(["a b".to_owned()])));
        assert!(!anchors.retain(&BTreeSet::from(["a b".to_owned()])));
        assert_eq!(anchors.labels().collect::<Vec<_>>(), ["a b"]);
    }
}
