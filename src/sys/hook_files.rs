//! Reads what agents' hooks left (heartbeats, receipts), and clears away what nobody will ask for again.
//!
//! Writing them is `cli::hook`'s. All of it is a hint from an agent: it is checked against the pane it is used for.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::files::{self, StateDir};
use crate::logic::hook::{Heartbeat, Receipt, Twin, Whose, is_session_id};
use crate::logic::ids::WindowName;
use crate::logic::inbox::{RecordName, stems};
use crate::logic::pane::LimitStamp;
use crate::logic::snapshot::{DecisionRecord, FileStamp};
use crate::logic::time::Timestamp;

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Most files deleted in one call.
const MAX_PRUNED: usize = 1000;

/// A heartbeat and the file it was read from, for evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundHeartbeat {
    /// What the hooks last told.
    pub heartbeat: Heartbeat,
    /// Path as shown to people.
    pub path: String,
}

/// The files from which [`read_heartbeat`] reads.
pub fn heartbeat_files(state: &StateDir, window: &WindowName) -> impl Iterator<Item = PathBuf> {
    stems(window).into_iter().map(|stem| state.at(format!("heartbeat/{stem}.json")))
}

/// The heartbeat of a window.
///
/// Shape:  `None` if there is none, if it is of another pane (a second window of that name, on this server or another),
///         or if a file under the older stem is of another window.
/// Errors: a file that is there but can't be read or understood, with its path.
pub fn read_heartbeat(
    state: &StateDir,
    window: &WindowName,
    whose: Whose<'_>,
) -> Result<Option<FoundHeartbeat>, String> {
    for (stem, path) in stems(window).into_iter().zip(heartbeat_files(state, window)) {
        let shown = path.display().to_string();
        let text = files::read_text(&path, MAX_BYTES).map_err(|error| format!("{shown}: {error}"))?;
        let Some(text) = text else { continue };
        let heartbeat = Heartbeat::parse(&text).ok_or_else(|| format!("{shown}: not a heartbeat"))?;
        let is_windows =
            heartbeat.window == window.as_str() || (heartbeat.window.is_empty() && stem == window.file_stem());
        if is_windows && heartbeat.is_of(whose) {
            return Ok(Some(FoundHeartbeat { heartbeat, path: shown }));
        }
    }
    Ok(None)
}

/// The files from which [`read_limit_stamp`] reads.
pub fn limit_stamp_files(state: &StateDir, window: &WindowName) -> impl Iterator<Item = PathBuf> {
    stems(window).into_iter().map(|stem| state.at(format!("over-limit/{stem}.json")))
}

/// The stamp that a usage limit left of this window. One that can't be understood is none, and neither is that of
/// another pane of the same name: the screen decides then. It names a window only, so where another server has one of that
/// name, only a heartbeat of this pane tells that it is its own.
pub fn read_limit_stamp(state: &StateDir, window: &WindowName, whose: Whose<'_>) -> Option<LimitStamp> {
    let found = limit_stamp_files(state, window).find_map(|path| read_stamp_file(&path, Some(window.as_str())))?;
    let heartbeat = read_heartbeat(state, window, whose);
    let is_own = match whose.twin {
        Twin::None => {
            let is_others = heartbeat_files(state, window).any(|path| path.exists()) && matches!(heartbeat, Ok(None));
            !is_others
        }
        Twin::Window | Twin::Pane => matches!(heartbeat, Ok(Some(_))),
    };
    is_own.then_some(found)
}

/// Reads one stamp, of this window if one is named.
pub fn read_stamp_file(path: &Path, window: Option<&str>) -> Option<LimitStamp> {
    let text = files::read_text(path, MAX_BYTES).ok()??;
    let modified = match files::stamp(path) {
        FileStamp::At { modified, .. } => modified,
        FileStamp::Absent | FileStamp::Unreadable(_) => return None,
    };
    LimitStamp::parse(&text, window, modified, &path.display().to_string())
}

/// The receipt of the emit with this nonce; `None` while there is none.
///
/// Errors: a file that is there but can't be read or understood.
pub fn read_receipt(state: &StateDir, nonce: &str) -> io::Result<Option<Receipt>> {
    let Some(path) = Receipt::path(nonce) else { return Ok(None) };
    let text = files::read_text(&state.at(path), MAX_BYTES)?;
    Ok(text.map(|text| serde_json::from_str(&text)).transpose()?)
}

/// Deletes receipts, what is kept of sessions, and tombstones of prompts that were answered in their pane, older than
/// `keep`. Returns how many.
///
/// What is kept of a session is made anew with its next prompt. A prompt that was answered never comes back under its
/// fingerprint, so its tombstone closes nothing any more; every other tombstone stays. At most 1000 files go in one call.
pub fn prune(state: &StateDir, now: Timestamp, keep: Duration) -> io::Result<usize> {
    let epoch_ms = u64::try_from(now.before(keep).millis()).unwrap_or(0);
    let before = SystemTime::UNIX_EPOCH + Duration::from_millis(epoch_ms);
    let is_old =
        |path: &std::path::Path| fs::metadata(path).and_then(|data| data.modified()).is_ok_and(|at| at < before);
    let mut pruned = 0;
    let folders =
        [("receipts", is_receipt as fn(&str) -> bool), ("hook-sessions", is_session), ("decisions", is_tombstone)];
    for (folder, is_candidate) in folders {
        for name in files::list_names(&state.at(folder))?.iter().filter(|name| is_candidate(name)) {
            let path = state.at(folder).join(name);
            if pruned >= MAX_PRUNED {
                return Ok(pruned);
            }
            if is_old(&path) && (folder != "decisions" || was_answered(&path)) {
                files::remove(&path)?;
                pruned += 1;
            }
        }
    }
    Ok(pruned)
}

/// Whether a file name is a receipt's.
fn is_receipt(name: &str) -> bool {
    name.strip_suffix(".json").is_some_and(|nonce| Receipt::path(nonce).is_some())
}

/// Whether a file name is that of a session.
fn is_session(name: &str) -> bool {
    name.strip_suffix(".json").is_some_and(is_session_id)
}

/// Whether a file name is a tombstone's.
fn is_tombstone(name: &str) -> bool {
    RecordName::parse(name).is_some_and(|name| name.is_tombstone)
}

/// Whether a tombstone was made because its prompt was answered in the pane.
fn was_answered(path: &std::path::Path) -> bool {
    let text = files::read_text(path, MAX_BYTES).ok().flatten();
    let record = text.and_then(|text| serde_json::from_str::<DecisionRecord>(&text).ok());
    record.is_some_and(|record| record.other.get("resolved").is_some_and(|how| how == ANSWERED_IN_PANE))
}

/// What the tombstone of such a prompt says as `resolved`.
pub const ANSWERED_IN_PANE: &str = "answered in the pane";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::ids::PaneId;

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        for folder in ["heartbeat", "hook-sessions", "receipts", "decisions"] {
            fs::create_dir(state.at(folder)).unwrap();
        }
        (dir, state)
    }

    #[test]
    fn a_heartbeat_counts_for_its_own_window_and_pane_only() {
        let (_dir, state) = state();
        let write = |file: &str, text: &str| fs::write(state.at(format!("heartbeat/{file}.json")), text).unwrap();
        write("w3", r#"{"state":"busy","window":"w3","pane":"%12"}"#);
        write("a_b", r#"{"state":"busy","window":"a_b"}"#);
        write("c_d", r#"{"state":"busy","window":"c/d"}"#);
        write("bad", "{");
        let found = |name: &str, pane: Option<u32>| {
            let whose = Whose { pane: pane.map(PaneId::new), ..Whose::default() };
            let found = read_heartbeat(&state, &WindowName(name.into()), whose);
            found.map(|found| found.is_some()).map_err(|_| ())
        };
        for (name, pane, wanted) in [
            ("w3", Some(12), Ok(true)),
            ("w3", None, Ok(true)),
            ("w3", Some(13), Ok(false)),
            ("a_b", Some(1), Ok(true)),
            ("a/b", None, Ok(false)),
            ("c/d", None, Ok(true)),
            ("none", None, Ok(false)),
            ("bad", None, Err(())),
        ] {
            assert_eq!(found(name, pane), wanted, "{name} {pane:?}");
        }
    }

    #[test]
    fn pruning_takes_old_receipts_and_answered_tombstones_and_nothing_else() {
        let (_dir, state) = state();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let write = |path: &str, text: &str, is_old: bool| {
            fs::write(state.at(path), text).unwrap();
            let at = if is_old { old } else { old + Duration::from_secs(100_000) };
            fs::File::options().append(true).open(state.at(path)).unwrap().set_modified(at).unwrap();
        };
        let answered = format!(r#"{{"resolved":"{ANSWERED_IN_PANE}"}}"#);
        write("receipts/0a1b2c.json", "{}", true);
        write("receipts/0a1b2d.json", "{}", false);
        write("receipts/notes.json", "{}", true);
        write("hook-sessions/85ad3742-4e87.json", "{}", true);
        write("hook-sessions/85ad3742-4e88.json", "{}", false);
        write("decisions/w.000000000001.handled.json", &answered, true);
        write("decisions/w.000000000002.handled.json", r#"{"resolved":"acked"}"#, true);
        write("decisions/w.000000000003.handled.json", &answered, false);
        write("decisions/w.000000000004.json", &answered, true);
        assert_eq!(prune(&state, Timestamp::from_secs(1_050_000), Duration::from_secs(1000)).unwrap(), 3);
        assert_eq!(files::list_names(&state.at("receipts")).unwrap(), ["0a1b2d.json", "notes.json"]);
        assert_eq!(files::list_names(&state.at("hook-sessions")).unwrap(), ["85ad3742-4e88.json"]);
        assert_eq!(files::list_names(&state.at("decisions")).unwrap().len(), 3);
    }

    #[test]
    fn a_receipt_is_read_by_its_nonce() {
        let (_dir, state) = state();
        fs::write(state.at("receipts/0a1b2c.json"), r#"{"epoch_ms":5,"window":"o","iso":"x"}"#).unwrap();
        assert_eq!(read_receipt(&state, "0a1b2c").unwrap().unwrap().epoch_ms, 5);
        assert_eq!(read_receipt(&state, "ffffff").unwrap(), None);
        assert_eq!(read_receipt(&state, "../heartbeat/w3").unwrap(), None);
    }
}
