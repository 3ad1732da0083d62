//! One line of `worker-notifications.jsonl`: an agent asked for attention.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::effects::INFORMATIONAL;
use crate::logic::emit::clean::label;
use crate::logic::time::Timestamp;

/// A notification, as far as it is counted. The texts are data from an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The window's name.
    pub window: String,
    /// When it came, to the second.
    pub at: Timestamp,
}

/// The line's fields.
#[derive(Deserialize)]
struct Line {
    /// What kind of attention.
    #[serde(default)]
    notification_type: String,
    /// The window's name.
    window: String,
    /// Whole or fractional seconds since 1970.
    ts: f64,
}

impl Notification {
    /// Reads one line; `None` for one that asks nothing of anybody, and for anything else.
    pub fn parse(line: &str) -> Option<Self> {
        let line: Line = serde_json::from_str(line.trim()).ok()?;
        if line.window.is_empty() || INFORMATIONAL.contains(&line.notification_type.as_str()) {
            return None;
        }
        // A cast saturates, and a time that is no number becomes 0.
        #[expect(clippy::cast_possible_truncation, reason = "fractions of a second do not matter, and it saturates")]
        let secs = line.ts as i64;
        Some(Self { window: line.window, at: Timestamp::from_secs(secs) })
    }
}

/// The windows, as labels, that asked after a time; without one, all.
pub fn asked_since(notifications: &[Notification], since: Option<Timestamp>) -> BTreeSet<String> {
    let later = |one: &&Notification| since.is_none_or(|since| one.at > since);
    notifications.iter().filter(later).map(|one| label(&one.window)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(&str, i64)>) {
        let expected =
            expected.map(|(window, secs)| Notification { window: window.into(), at: Timestamp::from_secs(secs) });
        assert_eq!(Notification::parse(line), expected, "{line}");
    }

    #[test]
    fn lines_of_the_protocol_are_read_and_others_are_not() {
        let original = r#"{"event":"Notification","notification_type":"idle_prompt","message":"m","window":"w3","ts":1759000000.1}"#;
        check(original, Some(("w3", 1_759_000_000)));
        check(r#"{"window":"w3","ts":5}"#, Some(("w3", 5)));
        check(r#"{"window":"w3","ts":1e99}"#, Some(("w3", i64::MAX)));
        check(r#"{"notification_type":"auth_success","window":"w3","ts":5}"#, None);
        check(r#"{"window":"","ts":5}"#, None);
        check(r#"{"window":"w3"}"#, None);
        check(r#"{"window":"w3","ts":"#, None);
        check("", None);
    }

    #[test]
    fn windows_count_once_and_only_after_the_last_report() {
        let lines = [("w1", 90), ("w2", 101), ("w2", 102), ("w\u{7}3", 103)];
        let lines = lines.map(|(window, secs)| Notification { window: window.into(), at: Timestamp::from_secs(secs) });
        let names =
            |since: Option<i64>| asked_since(&lines, since.map(Timestamp::from_secs)).into_iter().collect::<Vec<_>>();
        assert_eq!(names(Some(100)), ["w2", "w3"]);
        assert_eq!(names(Some(102)), ["w3"]);
        assert_eq!(names(None), ["w1", "w2", "w3"]);
    }
}
