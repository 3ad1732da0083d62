//! `heartbeat/<window>.json`: what the hooks last told of a window (`protocol-facts` §1.3, §3.11).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::logic::ids::WindowName;

/// The heartbeat of a window. Fields that other tools added survive a rewrite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Heartbeat {
    /// `busy`, `user_prompt`, `permission_prompt`, `idle_prompt`; other words say nothing about the pane.
    pub state: String,
    /// When the last event came, seconds.
    #[serde(deserialize_with = "seconds")]
    pub last_activity: i64,
    /// Name of the last event.
    pub event: String,
    /// The tool used last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_tool: String,
    /// The agent's session.
    pub session_id: String,
    /// The window's name.
    pub window: String,
    /// The session's transcript, as the agent named it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub transcript_path: String,
    /// The agent's permission mode: `default`, `acceptEdits`, `plan`, `bypassPermissions`, ...
    #[serde(skip_serializing_if = "String::is_empty")]
    pub permission_mode: String,
    /// The pane the agent runs in (`%12`), from its environment.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pane: String,
    /// The turn's own id, where the version tells it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prompt_id: String,
    /// Prompts that were sent while this turn runs and will be turns of their own.
    #[serde(skip_serializing_if = "is_zero")]
    pub queued_prompts: u32,
    /// Fingerprint of the record of the permission prompt that is open.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub open_decision: String,
    /// The tool call which that prompt is about, where known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub open_tool: String,
    /// When the turn ended; only if the last event was a clean stop.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "maybe_seconds")]
    pub last_turn_end: Option<i64>,
    /// Everything that others wrote: `external_waits`, `dismissed_waits`, `scheduled_wakeup_at`, ...
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

impl Heartbeat {
    /// Reads a heartbeat file; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Its path relative to the state directory.
    pub fn path(window: &WindowName) -> String {
        format!("heartbeat/{}.json", window.file_stem())
    }

    /// Whether the agent was at work when the last event came.
    pub fn is_working(&self) -> bool {
        matches!(self.state.as_str(), "busy" | "user_prompt")
    }

    /// The waits for something outside the agent, as `(kind, id)`.
    pub fn external_waits(&self) -> Vec<(String, String)> {
        let Some(Value::Array(waits)) = self.other.get("external_waits") else { return Vec::new() };
        let field = |wait: &Value, key: &str| wait.get(key).and_then(Value::as_str).map(str::to_owned);
        waits.iter().filter_map(|wait| Some((field(wait, "kind")?, field(wait, "id")?))).collect()
    }

    /// When the agent will wake itself, seconds.
    pub fn scheduled_wakeup_at(&self) -> Option<i64> {
        self.other.get("scheduled_wakeup_at").and_then(whole_seconds)
    }
}

/// Seconds as an integer; other writers use fractions.
#[expect(clippy::cast_possible_truncation, reason = "casts from floats saturate")]
fn whole_seconds(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|secs| secs as i64))
}

/// Reads seconds; anything else is 0.
fn seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok(whole_seconds(&Value::deserialize(deserializer)?).unwrap_or(0))
}

/// Reads seconds; anything else is `None`.
fn maybe_seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(whole_seconds(&Value::deserialize(deserializer)?))
}

/// For serde.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_survives_and_fractions_are_read() {
        let text = r#"{"state":"busy","last_activity":1759000000.7,"external_waits":[{"kind":"slurm","id":"77"}],"scheduled_wakeup_at":12,"x":1}"#;
        let beat = Heartbeat::parse(text).unwrap();
        assert_eq!(beat.last_activity, 1_759_000_000);
        assert_eq!(beat.external_waits(), [("slurm".to_owned(), "77".to_owned())]);
        assert_eq!(beat.scheduled_wakeup_at(), Some(12));
        let again: Value = serde_json::to_value(&beat).unwrap();
        assert_eq!((&again["x"], &again["external_waits"][0]["id"]), (&Value::from(1), &Value::from("77")));
        assert!(again.get("last_turn_end").is_none());
    }

    #[test]
    fn text_that_is_no_heartbeat_is_none() {
        for text in ["", "[]", "{\"state\":", "null"] {
            assert_eq!(Heartbeat::parse(text), None, "{text:?}");
        }
    }
}
