//! The alert log, `watcher-alerts.log`: what a person must act on, one line each, in the form of the original tools.

use super::files::{self, Durability, StateDir};
use crate::logic::time::Now;

/// Path of the log, relative to the state directory.
pub const LOG: &str = "watcher-alerts.log";

/// Appends `[<iso>] ALERT <message>`, and logs it as an error; nothing of it may be text from outside but cleaned names.
pub fn raise(state: &StateDir, now: &Now, message: &str) {
    let message: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    tracing::error!("ALERT {message}");
    let line = format!("[{}] ALERT {message}\n", now.iso());
    if let Err(error) = files::append_lines(&state.at(LOG), &line, Durability::Hint) {
        tracing::error!(%error, "the alert log can't be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::time::Timestamp;

    #[test]
    fn an_alert_is_one_line_of_the_known_form() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let now = Now::fixed(Timestamp::parse_iso("2026-05-11T20:42:01Z").unwrap());
        raise(&state, &now, "look\nat %3");
        let text = std::fs::read_to_string(state.at(LOG)).unwrap();
        assert_eq!(text, "[2026-05-11T20:42:01+00:00] ALERT look at %3\n");
    }
}
