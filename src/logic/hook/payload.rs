//! The payload of a hook, read leniently: a field of an unexpected type counts as missing.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// An event that we act on. Every other event is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session begins, is resumed, cleared or compacted.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// A prompt was sent.
    UserPromptSubmit,
    /// A tool is about to run.
    PreToolUse,
    /// A tool has run, well or not.
    PostToolUse,
    /// A batch of tools has run.
    PostToolBatch,
    /// A permission dialog or a question opens.
    PermissionRequest,
    /// The program wants attention.
    Notification,
    /// A turn ended.
    Stop,
    /// A turn ended in an error.
    StopFailure,
    /// A sign of work that says nothing else.
    Working,
}

impl Event {
    /// The event with this name, as the agent or the original's tokens spell it.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "SessionStart" => Self::SessionStart,
            "SessionEnd" => Self::SessionEnd,
            "UserPromptSubmit" => Self::UserPromptSubmit,
            "PreToolUse" => Self::PreToolUse,
            "PostToolUse" | "PostToolUseFailure" => Self::PostToolUse,
            "PostToolBatch" => Self::PostToolBatch,
            "PermissionRequest" => Self::PermissionRequest,
            "Notification" => Self::Notification,
            "Stop" => Self::Stop,
            "StopFailure" => Self::StopFailure,
            "SubagentStart" | "SubagentStop" | "PreCompact" => Self::Working,
            _ => return None,
        })
    }

    /// Whether the decision needs to know the pending tool.
    pub fn wants_pending_tool(self) -> bool {
        matches!(self, Self::PostToolUse | Self::PermissionRequest | Self::Notification)
    }
}

/// What an agent tells its hook, under the agent's own field names. All of it is data from outside.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Payload {
    #[serde(deserialize_with = "text")]
    pub hook_event_name: String,
    #[serde(deserialize_with = "text")]
    pub session_id: String,
    #[serde(deserialize_with = "text")]
    pub transcript_path: String,
    #[serde(deserialize_with = "text")]
    pub permission_mode: String,
    #[serde(deserialize_with = "text")]
    pub prompt: String,
    #[serde(deserialize_with = "text")]
    pub prompt_id: String,
    #[serde(deserialize_with = "text")]
    pub tool_name: String,
    #[serde(deserialize_with = "text")]
    pub tool_use_id: String,
    pub tool_input: Value,
    #[serde(deserialize_with = "text")]
    pub message: String,
    #[serde(deserialize_with = "text")]
    pub notification_type: String,
    #[serde(deserialize_with = "text")]
    pub error: String,
    #[serde(deserialize_with = "text")]
    pub last_assistant_message: String,
    #[serde(deserialize_with = "text")]
    pub agent_id: String,
    #[serde(deserialize_with = "text")]
    pub source: String,
}

impl Payload {
    /// Reads a payload: one JSON object. The error says what it is instead.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            // A list would be read as the fields in order.
            return Err(if bytes.is_empty() { "it is empty".into() } else { "it is no JSON object".into() });
        }
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }

    /// Whether the event comes from a sub-agent, which may work while the session itself is idle.
    pub fn is_of_subagent(&self) -> bool {
        !self.agent_id.is_empty()
    }

    /// Whether the prompt was made by the program itself when a background task ended.
    pub fn is_task_notification(&self) -> bool {
        self.prompt.trim_start().starts_with("<task-notification>")
    }

    /// The notification's kind; older versions tell it by words only.
    pub fn notification_kind(&self) -> &str {
        if !self.notification_type.is_empty() {
            &self.notification_type
        } else if self.message.contains("permission") {
            "permission_prompt"
        } else if self.message.contains("waiting for your input") {
            "idle_prompt"
        } else {
            "notify"
        }
    }
}

/// A string; anything else reads as empty.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        _ => String::new(),
    })
}

/// One line of at most `max_chars` characters, control characters as blanks: what we keep of a text from an agent.
pub(super) fn clean(text: &str, max_chars: usize) -> String {
    let mut line: String = text.chars().take(max_chars).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(max_chars).is_some() {
        line.push('…');
    }
    line
}

/// A copy of a JSON value cut to a size that a state file can hold; the flag says whether anything was cut.
pub(super) fn bounded(value: &Value) -> (Value, bool) {
    /// Longest string kept, in characters.
    const MAX_CHARS: usize = 4000;
    /// Most entries of a list or an object.
    const MAX_ENTRIES: usize = 64;
    /// Deepest nesting.
    const MAX_DEPTH: usize = 8;

    fn copy(value: &Value, depth: usize, cut: &mut bool) -> Value {
        if depth > MAX_DEPTH {
            *cut = true;
            return Value::Null;
        }
        match value {
            Value::String(text) if text.chars().nth(MAX_CHARS).is_some() => {
                *cut = true;
                Value::String(text.chars().take(MAX_CHARS).collect())
            }
            Value::Array(items) => {
                *cut |= items.len() > MAX_ENTRIES;
                items.iter().take(MAX_ENTRIES).map(|item| copy(item, depth + 1, cut)).collect()
            }
            Value::Object(entries) => {
                *cut |= entries.len() > MAX_ENTRIES;
                let kept = entries.iter().take(MAX_ENTRIES);
                Value::Object(kept.map(|(key, item)| (clean(key, 200), copy(item, depth + 1, cut))).collect())
            }
            other => other.clone(),
        }
    }
    let mut cut = false;
    (copy(value, 0, &mut cut), cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_an_unexpected_type_counts_as_missing() {
        let payload: Payload =
            serde_json::from_str(r#"{"session_id":7,"prompt":["x"],"tool_name":"Bash","new":{}}"#).unwrap();
        assert_eq!(
            (payload.session_id.as_str(), payload.prompt.as_str(), payload.tool_name.as_str()),
            ("", "", "Bash")
        );
    }

    #[test]
    fn older_notifications_tell_their_kind_by_words() {
        for (message, kind) in [
            ("Claude needs your permission to use Bash", "permission_prompt"),
            ("Claude is waiting for your input", "idle_prompt"),
            ("hello", "notify"),
        ] {
            let payload = Payload { message: message.into(), ..Payload::default() };
            assert_eq!(payload.notification_kind(), kind);
        }
    }

    #[test]
    fn a_huge_value_is_cut_and_says_so() {
        let (value, cut) = bounded(&serde_json::json!({"a": "x".repeat(10_000), "b": vec![0; 1000]}));
        assert!(cut && serde_json::to_string(&value).unwrap().len() < 5000);
        assert_eq!(bounded(&serde_json::json!({"command": "ls"})), (serde_json::json!({"command": "ls"}), false));
    }
}
