//! The files that say what each pane was before (`panes/<number>.json`). Reads and writes them; what they mean is
//! `crate::logic::pane::history`.

use std::io;

use super::files::{self, Durability, MAX_STATE_BYTES, StateDir};
use crate::logic::ids::{PaneId, PaneKey};
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

/// Removes the records of panes that are not among these.
///
/// Errors: the directory can't be listed, or a file can't be removed; the others are then left as they are.
pub fn keep_only(state: &StateDir, panes: &[PaneId]) -> io::Result<()> {
    let kept: Vec<String> = panes.iter().map(|pane| Record::file_name(*pane)).collect();
    for name in files::list_names(&state.at(DIR))?.iter().filter(|name| is_ours(name) && !kept.contains(name)) {
        files::remove(&state.at(DIR).join(name))?;
    }
    Ok(())
}

/// Whether a file's name is one that [`write()`] gives.
fn is_ours(name: &str) -> bool {
    name.strip_suffix(".json").is_some_and(|stem| !stem.is_empty() && stem.bytes().all(|byte| byte.is_ascii_digit()))
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
        keep_only(&state, &[]).unwrap();
        for pane in [1, 2] {
            let record = Record {
                key: key(pane),
                window: WindowName("w".into()),
                transitions: History::default(),
                silent: None,
            };
            write(&state, &record).unwrap();
            assert_eq!(read(&state, &key(pane)).unwrap(), Some(record));
        }
        std::fs::write(state.at("panes/notes.json"), "somebody else's").unwrap();
        keep_only(&state, &[PaneId::new(2)]).unwrap();
        assert_eq!(read(&state, &key(1)).unwrap(), None);
        assert!(read(&state, &key(2)).unwrap().is_some());
        assert!(state.at("panes/notes.json").exists());
    }
}
