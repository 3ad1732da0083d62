//! What the end of a session's own file says of its last turn: the ends that no hook tells (an interrupt, a declined
//! call, an error), and what waits in the queue.
//!
//! Its texts are data: what a tool printed can quote any of this, so only records of the right kind count, by their
//! fields. A file that is cut, or of another version, says nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::logic::time::Timestamp;

/// What the program writes when a turn is broken off.
const INTERRUPTED: &[&str] = &["[Request interrupted by user]", "[Request interrupted by user for tool use]"];

/// What stands last in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Last {
    /// A prompt, an answer or a tool's result: a turn runs, or its end is not told.
    Works,
    /// The turn ended by itself.
    Ended,
    /// Somebody broke it off.
    Interrupted,
    /// An error ended it.
    Failed,
}

/// The last turn of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// What stands last, and when it was written.
    pub last: Option<(Last, Timestamp)>,
    /// Kind of the error that ended the turn, as `notice=` names it.
    pub notice: Option<String>,
    /// Messages that wait in the queue, as far as the piece that was read tells.
    pub queued: u32,
    /// The file.
    pub source: String,
}

impl Turn {
    /// Reads the last records of a session, oldest first; lines that are no records are passed over.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a str>, source: String) -> Self {
        let mut turn = Self { source, ..Self::default() };
        for record in lines.into_iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            turn.take(&record);
        }
        turn
    }

    /// When the turn ended, if it did.
    pub fn over_at(&self) -> Option<Timestamp> {
        self.last.filter(|(last, _)| *last != Last::Works).map(|(_, at)| at)
    }

    /// Takes in one record.
    fn take(&mut self, record: &Value) {
        let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
        let is_set = |key: &str| record.get(key).and_then(Value::as_bool).unwrap_or(false);
        let last = match text("type") {
            "queue-operation" => {
                self.queued = match text("operation") {
                    "enqueue" => self.queued.saturating_add(1),
                    "popAll" => 0,
                    _ => self.queued.saturating_sub(1),
                };
                return;
            }
            // Sub-agents and what the program adds by itself are no turn.
            _ if is_set("isSidechain") || is_set("isMeta") || is_set("isCompactSummary") => return,
            "system" if text("subtype") == "turn_duration" => Last::Ended,
            "assistant" if is_set("isApiErrorMessage") => Last::Failed,
            "assistant" => Last::Works,
            "user" => match record.get("message").and_then(|message| message.get("content")) {
                Some(Value::Array(parts)) if text("promptSource").is_empty() && is_interrupt(parts) => {
                    Last::Interrupted
                }
                Some(Value::String(made)) if is_made_by_a_command(made) => return,
                Some(_) => Last::Works,
                None => return,
            },
            _ => return,
        };
        // Without a time it can't be told whether it is about the turn that a hook believes in.
        let Some(at) = Timestamp::parse_iso(text("timestamp")) else { return };
        self.last = Some((last, at));
        self.notice = (last == Last::Failed).then(|| notice(record));
    }
}

/// Whether a message is what the program writes when a turn is broken off.
fn is_interrupt(parts: &[Value]) -> bool {
    let [part] = parts else { return false };
    let text = part.get("text").and_then(Value::as_str).unwrap_or_default();
    part.get("type").and_then(Value::as_str) == Some("text") && INTERRUPTED.contains(&text)
}

/// Whether a message is the trace of a command that the program runs itself, without a turn.
fn is_made_by_a_command(text: &str) -> bool {
    ["<local-command-", "<command-name>", "<bash-"].iter().any(|tag| text.trim_start().starts_with(tag))
}

/// The kind of an error.
fn notice(record: &Value) -> String {
    if let Some(code) = record.get("apiErrorStatus").and_then(Value::as_u64).filter(|code| (100..600).contains(code)) {
        return format!("api-{code}");
    }
    match record.get("error").and_then(Value::as_str) {
        Some("authentication_failed") => "api-401",
        Some("rate_limit") => "api-429",
        _ => "api-error",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str =
        r#"{"type":"user","timestamp":"2026-11-30T21:00:00.500Z","promptSource":"typed","message":{"content":"go"}}"#;
    const TOOL: &str = r#"{"type":"user","timestamp":"2026-11-30T21:00:02Z","message":{"content":[{"type":"tool_result","content":"[Request interrupted by user]"}]}}"#;
    const STOPPED: &str = r#"{"type":"user","timestamp":"2026-11-30T21:00:03Z","message":{"content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}"#;
    const QUOTED: &str = r#"{"type":"user","timestamp":"2026-11-30T21:00:03Z","promptSource":"typed","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
    const ENDED: &str = r#"{"type":"system","subtype":"turn_duration","timestamp":"2026-11-30T21:00:04Z"}"#;
    const FAILED: &str = r#"{"type":"assistant","isApiErrorMessage":true,"apiErrorStatus":529,"timestamp":"2026-11-30T21:00:05Z","message":{}}"#;
    const COMMAND: &str =
        r#"{"type":"user","timestamp":"2026-11-30T21:00:06Z","message":{"content":"<local-command-stdout>ok"}}"#;
    const SUB: &str = r#"{"type":"assistant","isSidechain":true,"timestamp":"2026-11-30T21:00:07Z","message":{}}"#;

    fn check(lines: &[&str], expected: Option<Last>) -> Turn {
        let turn = Turn::of(lines.iter().copied(), String::new());
        assert_eq!(turn.last.map(|(last, _)| last), expected, "{lines:?}");
        turn
    }

    #[test]
    fn the_last_record_of_the_right_kind_tells_how_the_turn_stands() {
        check(&[], None);
        check(&["", "{", "[]", "null", "{\"type\":\"user\"}"], None);
        check(&[PROMPT], Some(Last::Works));
        check(&[PROMPT, STOPPED], Some(Last::Interrupted));
        check(&[PROMPT, ENDED, COMMAND, SUB], Some(Last::Ended));
        check(&[ENDED, PROMPT], Some(Last::Works));
        check(&[PROMPT, r#"{"type":"system","subtype":"turn_duration"}"#], Some(Last::Works));
    }

    #[test]
    fn a_quoted_interrupt_is_none() {
        check(&[PROMPT, TOOL], Some(Last::Works));
        check(&[PROMPT, QUOTED], Some(Last::Works));
    }

    #[test]
    fn an_error_ends_the_turn_and_has_a_kind() {
        assert_eq!(check(&[PROMPT, FAILED], Some(Last::Failed)).notice.as_deref(), Some("api-529"));
        assert_eq!(check(&[FAILED, PROMPT], Some(Last::Works)).notice, None);
    }

    #[test]
    fn what_waits_in_the_queue_is_counted() {
        let queue = |operation: &str| format!(r#"{{"type":"queue-operation","operation":"{operation}"}}"#);
        for (operations, expected) in [
            (vec!["enqueue"], 1),
            (vec!["enqueue", "dequeue"], 0),
            (vec!["enqueue", "enqueue", "remove"], 1),
            (vec!["dequeue", "enqueue"], 1),
            (vec!["enqueue", "enqueue", "popAll"], 0),
        ] {
            let lines: Vec<String> = operations.iter().map(|operation| queue(operation)).collect();
            assert_eq!(Turn::of(lines.iter().map(String::as_str), String::new()).queued, expected, "{operations:?}");
        }
    }
}
