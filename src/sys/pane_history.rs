//! The files that say what each pane was before (`panes/<number>.json`, of further servers `panes/<server>-<number>.json`). Reads and writes them; what they mean is
//! `crate::logic::pane::history`.

use std::io;

use super::files::{self, Durability, MAX_STATE_BYTES, StateDir};
use crate::logic::ids::{PaneId, PaneKey, ServerNumber};
use crate::logic::pane::history::{DIR, Record};

/// What the running watcher recorded of a pane; `None` where nothing is, or what is there is of another server.
///
/// Errors: the file is there and can't be read.
pub fn read(state: &StateDir, key: &PaneKey) -> io::Result<Option<Record>> {
    let text = files::read_text(&state.at(Record::path(key.pane)), MAX_STATE_BYTES)?;
    Ok(text.and_then(|text| Record::parse(&text, key)))
}

/// Writes the record of a pane over the one before.
///
/// Errors: the file can't be written; the one before stays.
pub fn write(state: &StateDir, record: &Record) -> io::Result<()> {
    let text = record.render().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a record is no JSON"))?;
    files::write_atomic(&state.at(Record::path(record.key.pane)), text.as_bytes(), Durability::Hint)
}

/// Removes the records of panes of these servers that are not among these panes. Of a server that has not answered yet
/// nobody knows which panes it has.
///
/// Errors: the directory can't be listed, or a file can't be removed; the others are then left as they are.
pub fn keep_only(state: &StateDir, servers: &[ServerNumber], panes: &[PaneId]) -> io::Result<()> {
    let kept: Vec<String> = panes.iter().map(|pane| Record::file_name(*pane)).collect();
    let is_theirs = |name: &str| server_of(name).is_some_and(|server| servers.contains(&server));
    for name in files::list_names(&state.at(DIR))?.iter().filter(|name| is_theirs(name) && !kept.contains(name)) {
        files::remove(&state.at(DIR).join(name))?;
    }
    Ok(())
}

/// The server of the pane that a file is about; `None` if its name is not one that [`write()`] gives.
fn server_of(name: &str) -> Option<ServerNumber> {
    let stem = name.strip_suffix(".json")?;
    let (server, number) = stem.split_once('-').unwrap_or(("0", stem));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    server.parse().ok().filter(|_| is_number(server) && is_number(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::ids::{ServerId, WindowName};
    use crate::logic::pane::history::History;

    #[test]
    fn records_are_found_again_and_go_with_their_panes() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let server = ServerId { socket: "/s".into(), pid: 1, start_s: 2 };
        let key = |pane| PaneKey { server: server.clone(), pane: PaneId::new(pane) };
        assert_eq!(read(&state, &key(1)).unwrap(), None);
        keep_only(&state, &[0], &[]).unwrap();
        for pane in [PaneId::new(1), PaneId::new(2), PaneId::new(1).on(1)] {
            let key = |number| PaneKey { pane, ..key(number) };
            let record = Record {
                key: key(pane.number()),
                window: WindowName("w".into()),
                transitions: History::default(),
                silent: None,
            };
            write(&state, &record).unwrap();
            assert_eq!(read(&state, &key(pane.number())).unwrap(), Some(record));
        }
        std::fs::write(state.at("panes/notes.json"), "somebody else's").unwrap();
        keep_only(&state, &[0], &[PaneId::new(2)]).unwrap();
        assert_eq!(read(&state, &key(1)).unwrap(), None);
        assert!(state.at("panes/1-1.json").exists(), "of a server that has not answered yet");
        keep_only(&state, &[0, 1], &[PaneId::new(2)]).unwrap();
        assert!(!state.at("panes/1-1.json").exists());
        assert!(read(&state, &key(2)).unwrap().is_some());
        assert!(state.at("panes/notes.json").exists());
    }
}
