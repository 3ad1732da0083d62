//! The `decisions/` folder: live records, and the tombstones that close them (`protocol-facts` §6).
//!
//! A tombstone is terminal: a live file beside one counts as closed. What a record says is data from an agent.

use std::io;
use std::path::Path;

use serde_json::Value;

use super::files::{self, Durability, StateDir};
use crate::logic::ids::{Fingerprint, WindowName};
use crate::logic::inbox::{RecordName, decision_path, stems, tombstone_path};
use crate::logic::snapshot::{DecisionFile, DecisionRecord};

/// Largest record that is read, in bytes.
const MAX_RECORD_BYTES: u64 = 1 << 20;
/// Most live records that are read; the rest are counted in one entry that can't be read.
const MAX_RECORDS: usize = 1000;

/// Whether a record could be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// It is written.
    Written,
    /// It is there already.
    Exists,
    /// Its tombstone is there: nothing is written.
    Closed,
}

/// What closing a record found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// It was live and is closed.
    Closed,
    /// It was closed before.
    Already,
    /// It was closed before and had come back as a live file, which is gone again.
    CameBack,
    /// There is no such record.
    Missing,
}

/// Splits the name of a live record into window stem and fingerprint.
fn split_name(name: &str) -> Option<(&str, Fingerprint)> {
    let name = RecordName::parse(name).filter(|name| !name.is_tombstone)?;
    Some((name.stem, name.fingerprint))
}

/// Every live record, by file name.
///
/// Errors: only if the folder can't be read; a record that can't be read is an entry whose `record` is `Err`.
pub fn list(state: &StateDir) -> io::Result<Vec<DecisionFile>> {
    let names = files::list_names(&state.at("decisions"))?;
    let is_closed = |stem: &str, fingerprint: &Fingerprint| {
        names.binary_search(&format!("{stem}.{fingerprint}.handled.json")).is_ok()
    };
    let mut found = Vec::new();
    for name in &names {
        if name.strip_suffix(".json").is_none_or(|stem| stem.ends_with(".handled")) {
            continue;
        }
        let split = split_name(name);
        if split.as_ref().is_some_and(|(stem, fingerprint)| is_closed(stem, fingerprint)) {
            continue;
        }
        let path = state.at("decisions").join(name);
        let record = if found.len() < MAX_RECORDS {
            read(&path)
        } else {
            Err(format!("more than {MAX_RECORDS} records are open; this one was not read"))
        };
        let from_record =
            |field: fn(&DecisionRecord) -> &String| record.as_ref().map(field).cloned().unwrap_or_default();
        let (window, fingerprint) = match split {
            Some((stem, fingerprint)) => {
                let window = window_of(stem, record.as_ref().ok()).unwrap_or_else(|| WindowName(stem.to_owned()));
                (window, fingerprint.to_string())
            }
            None => (WindowName(from_record(|r| &r.window)), from_record(|r| &r.fingerprint)),
        };
        found.push(DecisionFile { path: path.display().to_string(), window, fingerprint, record });
    }
    Ok(found)
}

/// The window that a stem belongs to: by the stem itself, or by the record where the stem is a shortened one.
fn window_of(stem: &str, record: Option<&DecisionRecord>) -> Option<WindowName> {
    WindowName::from_file_stem(stem)
        .or_else(|| record.map(|record| WindowName(record.window.clone())).filter(|window| window.file_stem() == stem))
}

/// The window that the record file at this path is about; `None` if that can't be told.
pub fn window_at(path: &Path, stem: &str) -> Option<WindowName> {
    window_of(stem, read(path).ok().as_ref())
}

/// Reads one record; the error says why it can't be read. A file that vanished meanwhile is an error too.
fn read(path: &Path) -> Result<DecisionRecord, String> {
    match files::read_text(path, MAX_RECORD_BYTES) {
        Ok(Some(text)) => serde_json::from_str(&text).map_err(|error| format!("not a decision record: {error}")),
        Ok(None) => Err("it is gone".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Writes a new record durably, unless it or its tombstone is there.
pub fn create(state: &StateDir, window: &WindowName, record: &DecisionRecord) -> io::Result<Created> {
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "a decision needs a fingerprint of twelve hex digits");
    let fingerprint = Fingerprint::parse(&record.fingerprint).ok_or_else(invalid)?;
    for stem in stems(window) {
        if state.at(tombstone_path(&stem, &fingerprint)).symlink_metadata().is_ok() {
            return Ok(Created::Closed);
        }
        if state.at(decision_path(&stem, &fingerprint)).symlink_metadata().is_ok() {
            return Ok(Created::Exists);
        }
    }
    let path = state.at(decision_path(&window.file_stem(), &fingerprint));
    files::write_atomic(&path, &json_line(record)?, Durability::Durable)?;
    Ok(Created::Written)
}

/// Marks every live record of a window `unresolved`.
pub fn mark_unresolved(state: &StateDir, window: &WindowName) -> io::Result<()> {
    for (stem, fingerprint) in open_records(state, window)? {
        let path = state.at(decision_path(&stem, &fingerprint));
        let Ok(mut record) = read(&path) else { continue };
        if record.unresolved == Some(true) {
            continue;
        }
        record.unresolved = Some(true);
        files::write_atomic(&path, &json_line(&record)?, Durability::Durable)?;
        if state.at(tombstone_path(&stem, &fingerprint)).symlink_metadata().is_ok() {
            // It was acked while we rewrote it.
            files::remove(&path)?;
        }
    }
    Ok(())
}

/// Fingerprints of a window's live records, with the stem each is filed under.
pub fn open_records(state: &StateDir, window: &WindowName) -> io::Result<Vec<(String, Fingerprint)>> {
    let names = files::list_names(&state.at("decisions"))?;
    let stems = stems(window);
    let ours = |name: &String| {
        let (stem, fingerprint) = split_name(name)?;
        let is_open = names.binary_search(&format!("{stem}.{fingerprint}.handled.json")).is_err();
        let is_ours = stems.iter().any(|own| own == stem) && belongs(state, window, stem, name);
        (is_open && is_ours).then(|| (stem.to_owned(), fingerprint))
    };
    Ok(names.iter().filter_map(ours).collect())
}

/// Whether a window has any record, live or closed.
pub fn has_records(state: &StateDir, window: &WindowName) -> io::Result<bool> {
    let stems = stems(window);
    let names = files::list_names(&state.at("decisions"))?;
    Ok(names.iter().any(|name| {
        let stem = RecordName::parse(name).map(|name| name.stem);
        stem.is_some_and(|stem| stems.iter().any(|own| own == stem) && belongs(state, window, stem, name))
    }))
}

/// Closes a record: writes its tombstone durably, removes the live file, and looks that both are so.
///
/// `note` is what the tombstone says beside the record, as `(key, text)`.
pub fn close(
    state: &StateDir,
    window: &WindowName,
    fingerprint: &Fingerprint,
    note: &[(&str, &str)],
) -> io::Result<Closing> {
    for stem in stems(window) {
        let live = state.at(decision_path(&stem, fingerprint));
        let tombstone = state.at(tombstone_path(&stem, fingerprint));
        let is_live = live.symlink_metadata().is_ok();
        let was_closed = tombstone.symlink_metadata().is_ok();
        let newest = if was_closed { &tombstone } else { &live };
        let name = newest.file_name().unwrap_or_default().to_string_lossy();
        if !was_closed && !is_live || !belongs(state, window, &stem, &name) {
            continue;
        }
        if !was_closed {
            // A record that can't be read is closed all the same: the tombstone is what counts.
            let mut record = read(&live).unwrap_or_else(|_| DecisionRecord {
                ts: String::new(),
                window: window.to_string(),
                session_id: String::new(),
                kind: String::new(),
                prompt_excerpt: String::new(),
                tool_context: Value::Null,
                fingerprint: fingerprint.to_string(),
                unresolved: None,
                other: std::collections::BTreeMap::new(),
            });
            record.other.extend(note.iter().map(|(key, text)| ((*key).to_owned(), Value::from(*text))));
            files::write_atomic(&tombstone, &json_line(&record)?, Durability::Durable)?;
        }
        files::remove(&live)?;
        if live.symlink_metadata().is_ok() || tombstone.symlink_metadata().is_err() {
            return Err(io::Error::other("the record is still open after its tombstone was written"));
        }
        return Ok(match (was_closed, is_live) {
            (false, _) => Closing::Closed,
            (true, true) => Closing::CameBack,
            (true, false) => Closing::Already,
        });
    }
    Ok(Closing::Missing)
}

/// Whether a file under one of a window's stems is the window's: the older stem is shared by several names, so there
/// the record itself must say so.
fn belongs(state: &StateDir, window: &WindowName, stem: &str, name: &str) -> bool {
    stem == window.file_stem()
        || read(&state.at("decisions").join(name)).is_ok_and(|record| record.window == window.as_str())
}

/// The file's text.
fn json_line(record: &DecisionRecord) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(record)?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        (dir, state)
    }

    fn record(window: &str, fingerprint: &str) -> DecisionRecord {
        serde_json::from_value(serde_json::json!({"window": window, "fingerprint": fingerprint, "kind": "idle_prompt"}))
            .unwrap()
    }

    #[test]
    fn a_window_name_with_dots_and_slashes_reads_back() {
        let (_dir, state) = state();
        let window = WindowName("a.b/../c".into());
        assert_eq!(create(&state, &window, &record("a.b/../c", "0a1b2c3d4e5f")).unwrap(), Created::Written);
        let found = list(&state).unwrap();
        assert_eq!((found.len(), &found[0].window, found[0].fingerprint.as_str()), (1, &window, "0a1b2c3d4e5f"));
    }

    #[test]
    fn a_record_of_a_very_long_window_name_is_written_read_and_closed() {
        let (_dir, state) = state();
        let window = WindowName("窗口".repeat(80));
        let wanted = record(window.as_str(), "0a1b2c3d4e5f");
        assert_eq!(create(&state, &window, &wanted).unwrap(), Created::Written);
        let found = list(&state).unwrap();
        assert_eq!(found[0].window, window);
        let path = std::path::PathBuf::from(&found[0].path);
        assert_eq!(window_at(&path, &window.file_stem()), Some(window.clone()));
        let fingerprint = Fingerprint::parse("0a1b2c3d4e5f").unwrap();
        assert_eq!(close(&state, &window, &fingerprint, &[]).unwrap(), Closing::Closed);
        assert!(list(&state).unwrap().is_empty());
    }

    #[test]
    fn a_closed_record_is_neither_listed_nor_written_again() {
        let (_dir, state) = state();
        let (window, fingerprint) = (WindowName("w3".into()), Fingerprint::parse("0a1b2c3d4e5f").unwrap());
        let wanted = record("w3", "0a1b2c3d4e5f");
        create(&state, &window, &wanted).unwrap();
        assert_eq!(create(&state, &window, &wanted).unwrap(), Created::Exists);
        assert_eq!(close(&state, &window, &fingerprint, &[("resolved", "x")]).unwrap(), Closing::Closed);
        assert_eq!(close(&state, &window, &fingerprint, &[]).unwrap(), Closing::Already);
        assert_eq!(create(&state, &window, &wanted).unwrap(), Created::Closed);
        // Another tool brings the file back.
        std::fs::write(state.at("decisions/w3.0a1b2c3d4e5f.json"), "{}").unwrap();
        assert!(list(&state).unwrap().is_empty());
        assert_eq!(close(&state, &window, &fingerprint, &[]).unwrap(), Closing::CameBack);
        assert_eq!(files::list_names(&state.at("decisions")).unwrap(), ["w3.0a1b2c3d4e5f.handled.json"]);
    }

    #[test]
    fn a_record_that_is_no_json_is_listed_as_unreadable() {
        let (_dir, state) = state();
        std::fs::create_dir(state.at("decisions")).unwrap();
        std::fs::write(state.at("decisions/w3.0a1b2c3d4e5f.json"), "half {").unwrap();
        std::fs::write(state.at("decisions/w3.0a1b2c3d4e5f.json.tmp.1.0"), "{}").unwrap();
        let found = list(&state).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].record.is_err() && found[0].window == WindowName("w3".into()));
    }

    #[test]
    fn a_stop_marks_the_open_records_of_its_window_only() {
        let (_dir, state) = state();
        for (window, fingerprint) in [("w3", "000000000001"), ("w3", "000000000002"), ("w4", "000000000003")] {
            create(&state, &WindowName(window.into()), &record(window, fingerprint)).unwrap();
        }
        close(&state, &WindowName("w3".into()), &Fingerprint::parse("000000000002").unwrap(), &[]).unwrap();
        mark_unresolved(&state, &WindowName("w3".into())).unwrap();
        let marks: Vec<_> = list(&state).unwrap().iter().map(|f| f.record.as_ref().unwrap().unresolved).collect();
        assert_eq!(marks, [Some(true), None]);
    }

    #[test]
    fn a_window_whose_older_stem_is_anothers_name_leaves_that_one_alone() {
        let (_dir, state) = state();
        let (ours, other) = (WindowName("a/b".into()), WindowName("a_b".into()));
        let fingerprint = Fingerprint::parse("000000000001").unwrap();
        create(&state, &other, &record("a_b", "000000000001")).unwrap();
        assert!(open_records(&state, &ours).unwrap().is_empty() && !has_records(&state, &ours).unwrap());
        assert_eq!(close(&state, &ours, &fingerprint, &[]).unwrap(), Closing::Missing);
        // The original shell tools file ours under that stem too.
        let text = serde_json::to_vec(&record("a/b", "000000000002")).unwrap();
        std::fs::write(state.at("decisions/a_b.000000000002.json"), text).unwrap();
        let open = open_records(&state, &ours).unwrap();
        assert_eq!(open, [("a_b".to_owned(), Fingerprint::parse("000000000002").unwrap())]);
        assert_eq!(close(&state, &ours, &open[0].1, &[]).unwrap(), Closing::Closed);
        assert_eq!(list(&state).unwrap().len(), 1);
    }

    #[test]
    fn a_record_under_the_bare_name_is_closed_by_the_name_that_is_told() {
        let (_dir, state) = state();
        let fingerprint = Fingerprint::parse("0a1b2c3d4e5f").unwrap();
        std::fs::create_dir(state.at("decisions")).unwrap();
        let path = state.at("decisions/two words.0a1b2c3d4e5f.json");
        std::fs::write(path, json_line(&record("two words", "0a1b2c3d4e5f")).unwrap()).unwrap();
        let told = list(&state).unwrap().remove(0).window;
        assert_eq!(close(&state, &told, &fingerprint, &[]).unwrap(), Closing::Closed);
        assert!(list(&state).unwrap().is_empty());
    }

    #[test]
    fn a_missing_folder_is_no_records() {
        let (_dir, state) = state();
        assert!(list(&state).unwrap().is_empty());
        let fingerprint = Fingerprint::parse("000000000001").unwrap();
        assert_eq!(close(&state, &WindowName("w".into()), &fingerprint, &[]).unwrap(), Closing::Missing);
    }
}
