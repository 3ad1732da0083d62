//! `heartbeat/<window>.json`: what the hooks last told of a window (`protocol-facts` §1.3, §3.11).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::logic::ids::{PaneId, ServerId, WindowName};

/// The heartbeat of a window. Fields that other tools added survive a rewrite, in their own form.
///
/// Shape: a field of an unexpected type reads as missing: the original tools write `null` for what they do not know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Heartbeat {
    /// `busy`, `user_prompt`, `permission_prompt`, `idle_prompt`; other words say nothing about the pane.
    #[serde(deserialize_with = "text")]
    pub state: String,
    /// When the last event came, seconds.
    #[serde(deserialize_with = "seconds")]
    pub last_activity: i64,
    /// Name of the last event.
    #[serde(deserialize_with = "text")]
    pub event: String,
    /// The tool used last.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub last_tool: String,
    /// The agent's session.
    #[serde(deserialize_with = "text")]
    pub session_id: String,
    /// The window's name.
    #[serde(deserialize_with = "text")]
    pub window: String,
    /// The session's transcript, as the agent named it.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub transcript_path: String,
    /// The agent's permission mode: `default`, `acceptEdits`, `plan`, `bypassPermissions`, ...
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub permission_mode: String,
    /// The pane the agent runs in (`%12`), from its environment.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub pane: String,
    /// The tmux server of that pane (`/tmp/tmux-1000/default,3312`), from its environment; older hooks do not tell it.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub tmux: String,
    /// The turn's own id, where the version tells it.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub prompt_id: String,
    /// Prompts that were sent while this turn runs and will be turns of their own.
    #[serde(deserialize_with = "count", skip_serializing_if = "is_zero")]
    pub queued_prompts: u32,
    /// Fingerprint of the record of the permission prompt that is open.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub open_decision: String,
    /// The tool call which that prompt is about, where known.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub open_tool: String,
    /// When the turn ended; only if the last event was a clean stop.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "maybe_seconds")]
    pub last_turn_end: Option<i64>,
    /// What the session was doing when a compaction that a person asked for began; it does that again afterwards.
    #[serde(deserialize_with = "text", skip_serializing_if = "String::is_empty")]
    pub before_compact: String,
    /// Everything that others wrote: `external_waits`, `dismissed_waits`, ...
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// Whose heartbeat is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whose<'a> {
    /// The pane; `None` for any of the window.
    pub pane: Option<PaneId>,
    /// Its server; `None` for any.
    pub server: Option<&'a ServerId>,
    /// What another watched server has that the same words could mean.
    pub twin: Twin,
}

/// What another watched server has under the names of a pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Twin {
    /// Nothing.
    #[default]
    None,
    /// A window of the same name.
    Window,
    /// In a window of the same name, a pane of the same number.
    Pane,
}

/// The server in `TMUX` (`socket,pid,session`), as a heartbeat names it; `None` if it is not of that form.
pub fn server_in(variable: &str) -> Option<&str> {
    let (server, session) = variable.rsplit_once(',')?;
    let (socket, pid) = server.rsplit_once(',')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (!socket.is_empty() && is_number(pid) && is_number(session)).then_some(server)
}

impl Heartbeat {
    /// Whether this is about that pane.
    ///
    /// Shape: what it does not name counts for any, but not where the rest could mean a pane of another server as well.
    pub fn is_of(&self, whose: Whose<'_>) -> bool {
        let told = PaneId::parse(&self.pane);
        let is_panes = match (whose.pane, told) {
            (Some(asked), Some(told)) => asked.number() == told.number(),
            _ => true,
        };
        let is_servers = match whose.server {
            Some(server) if !self.tmux.is_empty() => self.tmux == format!("{},{}", server.socket, server.pid),
            _ if told.is_some() => whose.twin < Twin::Pane,
            _ => whose.twin == Twin::None,
        };
        is_panes && is_servers
    }

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
        self.other.get(WAKEUP).and_then(whole_seconds)
    }

    /// Notes when the agent will wake itself.
    pub(super) fn schedule_wakeup(&mut self, at_s: i64) {
        self.other.insert(WAKEUP.to_owned(), Value::from(at_s));
    }

    /// The heartbeat with the two lists that the original tools always write and expect.
    pub(super) fn with_lists(mut self) -> Self {
        for key in ["external_waits", "dismissed_waits"] {
            let list = self.other.entry(key.to_owned()).or_insert(Value::Null);
            if !list.is_array() {
                *list = Value::Array(Vec::new());
            }
        }
        self
    }
}

/// Name of the field that says when the agent will wake itself.
const WAKEUP: &str = "scheduled_wakeup_at";

/// A string; anything else reads as empty.
fn text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        _ => String::new(),
    })
}

/// A small count; anything else reads as zero.
fn count<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_u64().and_then(|count| u32::try_from(count).ok()).unwrap_or(0))
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
    fn what_the_original_does_not_know_it_writes_as_null() {
        let text = r#"{"state":"busy","last_activity":5,"event":null,"last_tool":null,"session_id":null,"window":"w3","external_waits":[],"dismissed_waits":[]}"#;
        let beat = Heartbeat::parse(text).unwrap();
        assert_eq!((beat.state.as_str(), beat.session_id.as_str(), beat.window.as_str()), ("busy", "", "w3"));
    }

    #[test]
    fn the_lists_are_always_there_and_never_emptied() {
        let lists = |text: &str| {
            let beat: Value = serde_json::to_value(Heartbeat::parse(text).unwrap().with_lists()).unwrap();
            (beat["external_waits"].to_string(), beat["dismissed_waits"].to_string())
        };
        assert_eq!(lists(r#"{"external_waits":null}"#), ("[]".to_owned(), "[]".to_owned()));
        assert_eq!(lists(r#"{"external_waits":[{"kind":"ci"}]}"#), (r#"[{"kind":"ci"}]"#.to_owned(), "[]".to_owned()));
    }

    #[test]
    fn a_heartbeat_is_never_taken_for_that_of_another_server() {
        let server = |socket: &str, pid| ServerId { socket: socket.into(), pid, start_s: 1 };
        let (ours, same_socket, other) = (server("/a", 7), server("/a", 8), server("/b,c", 7));
        let beat = |pane: &str, tmux: &str| Heartbeat { pane: pane.into(), tmux: tmux.into(), ..Heartbeat::default() };
        let is_of = |beat: &Heartbeat, number, server, twin| {
            beat.is_of(Whose { pane: Some(PaneId::new(number).on(3)), server: Some(server), twin })
        };
        let told = beat("%5", "/a,7");
        for (number, server, expected) in
            [(5, &ours, true), (6, &ours, false), (5, &same_socket, false), (5, &other, false)]
        {
            for twin in [Twin::None, Twin::Window, Twin::Pane] {
                assert_eq!(is_of(&told, number, server, twin), expected, "{number} {server:?} {twin:?}");
            }
        }
        assert!(is_of(&beat("%5", "/b,c,7"), 5, &other, Twin::Pane));
        // Older ones: what they name must mean one pane only.
        for (pane, twin, expected) in [
            ("%5", Twin::None, true),
            ("%5", Twin::Window, true),
            ("%5", Twin::Pane, false),
            ("", Twin::None, true),
            ("", Twin::Window, false),
        ] {
            assert_eq!(is_of(&beat(pane, ""), 5, &ours, twin), expected, "{pane:?} {twin:?}");
        }
        assert!(told.is_of(Whose::default()), "whoever it is of");
    }

    #[test]
    fn the_server_is_read_from_the_environment() {
        for (variable, server) in [
            ("/tmp/tmux-0/default,3312,0", Some("/tmp/tmux-0/default,3312")),
            ("/a,b/s,7,12", Some("/a,b/s,7")),
            ("/s,7", None),
            (",7,0", None),
            ("/s,x,0", None),
            ("", None),
        ] {
            assert_eq!(server_in(variable), server, "{variable}");
        }
    }

    #[test]
    fn text_that_is_no_heartbeat_is_none() {
        for text in ["", "[]", "{\"state\":", "null"] {
            assert_eq!(Heartbeat::parse(text), None, "{text:?}");
        }
    }
}
