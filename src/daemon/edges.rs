//! What fails again and again is said once, and once when it works again: edges, not levels.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;

/// What fails at present, by topic.
#[derive(Debug, Default)]
pub struct Edges(RefCell<BTreeMap<&'static str, Failing>>);

/// A failure that lasts.
#[derive(Debug)]
struct Failing {
    why: String,
    times: u64,
}

impl Edges {
    /// Says that something fails, unless it failed in the same way before.
    pub(super) fn fails(&self, topic: &'static str, error: &dyn Display, what: &str) {
        if self.is_news(topic, error.to_string()) {
            tracing::error!(topic, %error, "{what}");
        }
    }

    /// Says that something works again, if it failed.
    pub(super) fn works(&self, topic: &'static str) {
        if let Some(failing) = self.0.borrow_mut().remove(topic) {
            tracing::info!(topic, times = failing.times, "it works again");
        }
    }

    /// Counts a failure; whether it is another than the last one.
    fn is_news(&self, topic: &'static str, why: String) -> bool {
        let mut all = self.0.borrow_mut();
        let Some(failing) = all.get_mut(topic) else {
            all.insert(topic, Failing { why, times: 1 });
            return true;
        };
        failing.times += 1;
        let is_other = failing.why != why;
        failing.why = why;
        is_other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_lasts_is_news_once_and_again_after_it_was_over() {
        let edges = Edges::default();
        let fails = |why: &str| edges.is_news("pane-lock", why.to_owned());
        assert_eq!([fails("full"), fails("full"), fails("full")], [true, false, false]);
        assert!(edges.is_news("journal", "full".to_owned()), "another topic");
        assert!(fails("read-only"), "for another reason");
        assert_eq!(edges.0.borrow()["pane-lock"].times, 4);
        edges.works("pane-lock");
        assert!(fails("read-only"));
    }
}
