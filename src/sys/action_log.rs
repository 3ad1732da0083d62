//! `action-log.jsonl`: what agents and tools did, one JSON object a line (`protocol-facts` §5.1).
//!
//! Written compactly (`"event":"wrap-up"`), since other readers search for those bytes; read properly.

use std::io;

use serde_json::Value;

use super::archived;
use super::files::{self, Durability, StateDir};
use crate::logic::snapshot::ActionEvent;

/// The log, relative to the state directory.
const LOG: &str = "action-log.jsonl";
/// Most bytes read from the end of a log, in all.
const MAX_READ_BYTES: u64 = 8 << 20;

/// Appends an event durably. The line appears whole or not at all.
pub fn append(state: &StateDir, event: &ActionEvent) -> io::Result<()> {
    let line = serde_json::to_string(event)?;
    files::append_lines(&state.at(LOG), &format!("{line}\n"), Durability::Durable)
}

/// The newest events, oldest first; archives (`action-log.jsonl.<epoch>`) are read while the log itself is short.
///
/// Lines that are no events are skipped. A missing log is no events.
pub fn read(state: &StateDir) -> io::Result<Vec<ActionEvent>> {
    let text = archived::read_tail(state, LOG, MAX_READ_BYTES)?.unwrap_or_default();
    Ok(text.lines().filter_map(event).collect())
}

/// Reads one line; values of other types become their text.
fn event(line: &str) -> Option<ActionEvent> {
    let Value::Object(fields) = serde_json::from_str(line).ok()? else { return None };
    let mut event = ActionEvent::default();
    for (key, value) in fields {
        let text = match value {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        };
        match key.as_str() {
            "ts" => event.ts = text,
            "agent" => event.agent = text,
            "event" => event.event = text,
            "note" => event.note = text,
            _ => {
                event.extra.insert(key, text);
            }
        }
    }
    (!event.event.is_empty()).then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(name: &str) -> ActionEvent {
        ActionEvent {
            ts: "2026-10-05T09:01:02-07:00".into(),
            agent: "monitor".into(),
            event: name.into(),
            ..Default::default()
        }
    }

    #[test]
    fn a_line_has_the_bytes_that_other_readers_search_for() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let mut event = logged("wrap-up");
        event.extra.insert("window".into(), "w3".into());
        append(&state, &event).unwrap();
        assert_eq!(
            std::fs::read_to_string(state.at(LOG)).unwrap(),
            "{\"ts\":\"2026-10-05T09:01:02-07:00\",\"agent\":\"monitor\",\"event\":\"wrap-up\",\"window\":\"w3\"}\n"
        );
        assert_eq!(read(&state).unwrap(), [event]);
    }

    #[test]
    fn archives_come_first_and_odd_lines_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        std::fs::write(state.at("action-log.jsonl.20"), "{\"event\":\"b\"}\n").unwrap();
        std::fs::write(state.at("action-log.jsonl.9"), "{\"event\":\"a\"}\n").unwrap();
        std::fs::write(state.at("action-log.jsonl.lock"), "{\"event\":\"no\"}\n").unwrap();
        std::fs::write(state.at(LOG), "garbage\n[]\n{\"event\":\"c\",\"rc\":3}\n{\"event\":\"ha").unwrap();
        let events = read(&state).unwrap();
        assert_eq!(events.iter().map(|e| e.event.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(events[2].extra["rc"], "3");
    }

    #[test]
    fn a_missing_log_is_no_events() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(&StateDir::new(dir.path())).unwrap(), []);
    }
}
