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
    /// A tool call is over: it ran, well or not, or was refused by a rule.
    PostToolUse,
    /// A batch of tools has run.
    PostToolBatch,
    /// A permission dialog or a question opens.
    PermissionRequest,
    /// A tool server asks the person something by a dialog.
    Elicitation,
    /// That dialog was answered.
    ElicitationResult,
    /// The program wants attention.
    Notification,
    /// A turn ended.
    Stop,
    /// A turn ended in an error.
    StopFailure,
    /// The conversation is about to be compacted.
    PreCompact,
    /// It has been compacted.
    PostCompact,
    /// A sign of work that says nothing else.
    Working,
}

impl Event {
    /// The event with this name, as the agent or the original's tokens spell it; `None` for one that tells us nothing.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "SessionStart" => Self::SessionStart,
            "SessionEnd" => Self::SessionEnd,
            "UserPromptSubmit" | "user_prompt" => Self::UserPromptSubmit,
            "PreToolUse" => Self::PreToolUse,
            "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" | "busy" => Self::PostToolUse,
            "PostToolBatch" => Self::PostToolBatch,
            "PermissionRequest" | "permission_prompt" => Self::PermissionRequest,
            "Elicitation" => Self::Elicitation,
            "ElicitationResult" => Self::ElicitationResult,
            "Notification" | "notify" => Self::Notification,
            "Stop" | "turn_end" => Self::Stop,
            "StopFailure" => Self::StopFailure,
            "PreCompact" => Self::PreCompact,
            "PostCompact" => Self::PostCompact,
            "SubagentStart" | "SubagentStop" => Self::Working,
            _ => return None,
        })
    }

    /// Whether the decision needs to know the pending tool.
    pub fn wants_pending_tool(self) -> bool {
        matches!(self, Self::PostToolUse | Self::PermissionRequest | Self::Elicitation | Self::Notification)
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
    /// Where some versions nest the two fields before.
    pub notification: Value,
    /// The error's token; some versions have an object with `type` and `message` here.
    pub error: Value,
    #[serde(deserialize_with = "text")]
    pub error_type: String,
    #[serde(deserialize_with = "text")]
    pub error_details: String,
    #[serde(deserialize_with = "text")]
    pub last_assistant_message: String,
    #[serde(deserialize_with = "text")]
    pub agent_id: String,
    #[serde(deserialize_with = "text")]
    pub source: String,
    /// What began a compaction: `manual` or `auto`.
    #[serde(deserialize_with = "text")]
    pub trigger: String,
    #[serde(deserialize_with = "text")]
    pub mcp_server_name: String,
    #[serde(deserialize_with = "text")]
    pub elicitation_id: String,
}

impl Payload {
    /// Reads a payload: one JSON object. The error says what it is instead.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            // A list would be read as the fields in order.
            return Err(if bytes.is_empty() { "it is empty".into() } else { "it is no JSON object".into() });
        }
        // Agents cut long texts anywhere: half a character, or half of a surrogate pair, must not cost the whole event.
        serde_json::from_slice(bytes)
            .or_else(|_| serde_json::from_str(&mended(&String::from_utf8_lossy(bytes))))
            .map_err(|error| error.to_string())
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
        let named = [self.notification_type.as_str(), nested(&self.notification, "type")];
        if let Some(kind) = named.into_iter().find(|kind| !kind.is_empty()) {
            return kind;
        }
        let message = self.notification_message().to_lowercase();
        if ["permission", "approval"].iter().any(|word| message.contains(word)) {
            "permission_prompt"
        } else if ["waiting", "idle", "input"].iter().any(|word| message.contains(word)) {
            "idle_prompt"
        } else {
            "notify"
        }
    }

    /// The notification's words.
    pub fn notification_message(&self) -> &str {
        if self.message.is_empty() { nested(&self.notification, "message") } else { &self.message }
    }

    /// The token of a failed turn's error.
    pub fn error_token(&self) -> &str {
        let tokens = [self.error.as_str().unwrap_or_default(), &self.error_type, nested(&self.error, "type")];
        tokens.into_iter().find(|token| !token.is_empty()).unwrap_or_default()
    }

    /// What a failed turn says for people.
    pub fn error_message(&self) -> &str {
        let texts = [&self.last_assistant_message, &self.error_details, nested(&self.error, "message"), &self.message];
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }
}

/// A text inside an object; empty if it is not there.
fn nested<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// JSON text in which every escaped half of a surrogate pair that stands alone is a replacement character.
fn mended(text: &str) -> String {
    /// The code unit of a `\uXXXX` at the start of a text.
    fn unit(text: &str) -> Option<u16> {
        u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let is_low = |unit: u16| (0xdc00..0xe000).contains(&unit);
        let taken = match unit(escape) {
            Some(high) if (0xd800..0xdc00).contains(&high) => {
                let low = escape.get(6..).and_then(unit);
                if low.is_some_and(is_low) { 12 } else { 0 }
            }
            Some(low) if is_low(low) => 0,
            Some(_) => 6,
            // A backslash and what it escapes, which may be another backslash.
            None => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        if taken == 0 {
            out.push_str("\\ufffd");
            rest = escape.get(6..).unwrap_or_default();
        } else {
            out.push_str(escape.get(..taken).unwrap_or_default());
            rest = escape.get(taken..).unwrap_or_default();
        }
    }
    out.push_str(rest);
    out
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
            ("Permission needed", "permission_prompt"),
            ("Claude Code needs your approval for the plan", "permission_prompt"),
            ("Claude is waiting for your input", "idle_prompt"),
            ("hello", "notify"),
        ] {
            let payload = Payload { message: message.into(), ..Payload::default() };
            assert_eq!(payload.notification_kind(), kind);
        }
        let nested = Payload::parse(br#"{"notification":{"type":"idle_prompt","message":"m"}}"#).unwrap();
        assert_eq!((nested.notification_kind(), nested.notification_message()), ("idle_prompt", "m"));
    }

    #[test]
    fn a_text_that_was_cut_inside_a_character_costs_that_character_only() {
        for (bytes, message) in [
            (&b"{\"message\":\"a\\ud83d\"}"[..], "a\u{fffd}"),
            (b"{\"message\":\"\\ude00b\"}", "\u{fffd}b"),
            (b"{\"message\":\"\\ud83d\\ud83d\\ude00\"}", "\u{fffd}\u{1f600}"),
            (b"{\"message\":\"\\\\ud83d \\ud83d\"}", "\\ud83d \u{fffd}"),
            (b"{\"message\":\"\xf0\x9f\"}", "\u{fffd}"),
            (b"{\"message\":\"\\u00e9\\n\"}", "\u{e9}\n"),
        ] {
            let payload = Payload::parse(bytes);
            assert_eq!(payload.map(|payload| payload.message).as_deref(), Ok(message), "{bytes:?}");
        }
        assert!(Payload::parse(b"{\"message\":\"\\ud8").is_err());
    }

    #[test]
    fn the_error_of_a_turn_is_read_in_every_form_seen() {
        for (json, token, message) in [
            (r#"{"error":"server_error","last_assistant_message":"API Error: 500"}"#, "server_error", "API Error: 500"),
            (r#"{"error_type":"rate_limit","message":"hit your limit"}"#, "rate_limit", "hit your limit"),
            (r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, "overloaded_error", "Overloaded"),
            (r#"{"error":"unknown","error_details":"d"}"#, "unknown", "d"),
            ("{}", "", ""),
        ] {
            let payload = Payload::parse(json.as_bytes()).unwrap();
            assert_eq!((payload.error_token(), payload.error_message()), (token, message), "{json}");
        }
    }

    #[test]
    fn a_huge_value_is_cut_and_says_so() {
        let (value, cut) = bounded(&serde_json::json!({"a": "x".repeat(10_000), "b": vec![0; 1000]}));
        assert!(cut && serde_json::to_string(&value).unwrap().len() < 5000);
        assert_eq!(bounded(&serde_json::json!({"command": "ls"})), (serde_json::json!({"command": "ls"}), false));
    }
}
