//! What a real agent tells others: hook payloads and session-file records, in the shapes of Claude Code 2.1.332.

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

use crate::logic::time::Timestamp;

/// Who is speaking: the same in every payload and record.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Session id.
    pub(super) id: String,
    /// The session file, empty if none is written.
    pub(super) transcript: String,
    /// Working directory.
    pub(super) cwd: String,
}

/// One hook event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    /// The session began.
    SessionStart,
    /// A message was sent.
    UserPromptSubmit(String),
    /// A turn ended with these words.
    Stop(String),
    /// A tool is about to be called.
    PreToolUse(String),
    /// A tool call waits for a person.
    PermissionRequest(String),
    /// A tool call is done.
    PostToolUse(String),
    /// The person is told something.
    Notification(&'static str, &'static str),
}

impl Hook {
    /// Its name as Claude Code spells it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::UserPromptSubmit(_) => "UserPromptSubmit",
            Self::Stop(_) => "Stop",
            Self::PreToolUse(_) => "PreToolUse",
            Self::PermissionRequest(_) => "PermissionRequest",
            Self::PostToolUse(_) => "PostToolUse",
            Self::Notification(..) => "Notification",
        }
    }

    /// Its name as `ng hook` spells it.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::SessionStart => "session-start",
            Self::UserPromptSubmit(_) => "user-prompt-submit",
            Self::Stop(_) => "stop",
            Self::PreToolUse(_) => "pre-tool-use",
            Self::PermissionRequest(_) => "permission-request",
            Self::PostToolUse(_) => "post-tool-use",
            Self::Notification(..) => "notification",
        }
    }

    /// The payload that it gets on its standard input.
    pub(super) fn payload(&self, session: &Session) -> Value {
        let mut payload = json!({
            "session_id": session.id,
            "transcript_path": session.transcript,
            "cwd": session.cwd,
            "permission_mode": "default",
            "hook_event_name": self.name(),
        });
        let tool = |command: &str| {
            json!({
                "tool_name": "Bash",
                "tool_input": {"command": command, "description": "Run the requested command"},
            })
        };
        let own = match self {
            Self::SessionStart => json!({"source": "startup", "model": "demo"}),
            Self::UserPromptSubmit(prompt) => json!({"prompt": prompt}),
            Self::Stop(said) => json!({
                "stop_hook_active": false,
                "last_assistant_message": said,
                "background_tasks": [],
                "session_crons": [],
            }),
            Self::PreToolUse(command) => with(tool(command), json!({"tool_use_id": "toolu_demo"})),
            Self::PermissionRequest(command) => with(tool(command), json!({"permission_suggestions": []})),
            Self::PostToolUse(command) => with(
                tool(command),
                json!({"tool_use_id": "toolu_demo", "tool_response": {"stdout": "", "stderr": "", "interrupted": false}}),
            ),
            Self::Notification(kind, message) => json!({"message": message, "notification_type": kind}),
        };
        payload = with(payload, own);
        payload
    }
}

/// One record of the session file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A message, as typed or as taken from the queue.
    User {
        /// Its text.
        text: String,
        /// Whether it waited in the queue.
        queued: bool,
    },
    /// The agent's words.
    Assistant(String),
    /// A message went into the queue.
    Enqueue(String),
    /// A message left the queue.
    Dequeue,
    /// The turn ended.
    TurnEnd,
    /// The turn was cut off by the person.
    Interrupted,
}

impl Record {
    /// The record's line, without its line end. `number` makes its id.
    pub(super) fn value(&self, session: &Session, at: Timestamp, number: u64) -> Value {
        let stamp = DateTime::from_timestamp_millis(at.millis())
            .map_or_else(|| at.to_string(), |time| time.to_rfc3339_opts(SecondsFormat::Millis, true));
        let common = json!({
            "uuid": format!("00000000-0000-4000-8000-{number:012}"),
            "timestamp": stamp,
            "sessionId": session.id,
            "cwd": session.cwd,
            "isSidechain": false,
            "version": env!("CARGO_PKG_VERSION"),
        });
        let own = match self {
            Self::User { text, queued } => json!({
                "type": "user",
                "message": {"role": "user", "content": text},
                "origin": {"kind": "human"},
                "promptSource": if *queued { "queued" } else { "typed" },
            }),
            Self::Assistant(text) => json!({
                "type": "assistant",
                "message": {
                    "role": "assistant",
                    "model": "demo",
                    "content": [{"type": "text", "text": text}],
                    "stop_reason": "end_turn",
                },
            }),
            Self::Enqueue(text) => json!({"type": "queue-operation", "operation": "enqueue", "content": text}),
            Self::Dequeue => json!({"type": "queue-operation", "operation": "dequeue"}),
            Self::TurnEnd => json!({"type": "system", "subtype": "turn_duration", "isMeta": false}),
            Self::Interrupted => json!({
                "type": "user",
                "message": {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]},
            }),
        };
        with(own, common)
    }
}

/// The fields of both objects.
fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut object, more) {
        fields.extend(more);
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Session {
        Session { id: "s".into(), transcript: "/t.jsonl".into(), cwd: "/w".into() }
    }

    #[test]
    fn payloads_carry_what_the_real_ones_do() {
        let payload = Hook::UserPromptSubmit("hi".into()).payload(&session());
        for (field, expected) in [
            ("session_id", "s"),
            ("transcript_path", "/t.jsonl"),
            ("hook_event_name", "UserPromptSubmit"),
            ("prompt", "hi"),
        ] {
            assert_eq!(payload[field], expected, "{field}");
        }
        let payload = Hook::PermissionRequest("rm x".into()).payload(&session());
        assert_eq!(payload["tool_input"]["command"], "rm x");
    }

    #[test]
    fn a_typed_message_is_a_user_record() {
        let record = Record::User { text: "a\nb".into(), queued: false };
        let value = record.value(&session(), Timestamp::from_millis(1_796_075_868_043), 1);
        assert_eq!(value["message"]["content"], "a\nb");
        assert_eq!(value["promptSource"], "typed");
        assert_eq!(value["timestamp"], "2026-11-30T21:57:48.043Z");
        assert!(!value.to_string().contains('\n'), "one record is one line");
    }
}
