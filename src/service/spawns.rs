//! `watcher-spawns.log`: one line for whatever a launcher started, ended or refused, so that a restart can be traced to
//! whoever asked for it.

use std::fs;

use crate::cli::render;
use crate::sys::clock::Clock;
use crate::sys::detach;
use crate::sys::files::{self, Durability, StateDir};

/// The log's name in the state directory.
const SPAWNS_LOG: &str = "watcher-spawns.log";

/// Size from which the log is set aside, as `.1`.
const MAX_BYTES: u64 = 1 << 20;

/// Adds a line: `<iso> launcher[<pid>] caller=[…] <what>`. The log is no condition for a start.
pub(super) fn note(state: &StateDir, what: &str) {
    let path = state.at(SPAWNS_LOG);
    if fs::symlink_metadata(&path).is_ok_and(|meta| meta.len() > MAX_BYTES) {
        // Kept where it is if it can't be renamed; it is only too long then.
        let _kept = fs::rename(&path, state.at(format!("{SPAWNS_LOG}.1")));
    }
    let line = format!(
        "{} launcher[{}] caller=[{}] {}\n",
        Clock::System.now().iso(),
        std::process::id(),
        detach::caller(),
        what.replace(char::is_control, " ")
    );
    if let Err(error) = files::append_lines(&path, &line, Durability::Hint) {
        render::note(&format!("launcher: {} can't be written: {error}", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_form_of_the_original_and_a_long_log_is_rolled() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        note(&state, "spawned pid=7 target=a\nb replace=0 ensure=0");
        let text = fs::read_to_string(state.at(SPAWNS_LOG)).unwrap();
        let (time, rest) = text.split_once(" launcher[").unwrap();
        assert!(crate::logic::time::Timestamp::parse_iso(time).is_some(), "{text}");
        assert!(rest.contains("] caller=[ppid=") && rest.ends_with("] spawned pid=7 target=a b replace=0 ensure=0\n"));
        fs::write(state.at(SPAWNS_LOG), vec![b'x'; 1 << 20]).unwrap();
        note(&state, "a line more, and it is too long");
        note(&state, "spawned pid=8");
        let text = fs::read_to_string(state.at(SPAWNS_LOG)).unwrap();
        assert!(text.lines().count() == 1 && text.ends_with("spawned pid=8\n"), "{text}");
        assert!(fs::metadata(state.at("watcher-spawns.log.1")).unwrap().len() > 1 << 20);
    }
}
