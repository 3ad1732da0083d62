//! Logs of the state directory that are renamed when they have grown too large, `<name>` to `<name>.<epoch>`: rotation,
//! and reading across the seam. The newest events may stand in an archive, so whoever wants the end of such a log reads
//! it through here.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use super::files::{self, StateDir};
use crate::logic::time::Timestamp;

/// How many times a log's size its archives may have together. What is beyond goes, however young; the newest stays.
const ARCHIVES: u64 = 5;

/// How many names are tried for an archive.
const MAX_NAMES: i64 = 1000;

/// How often a log is read again that was renamed while it was read.
const ATTEMPTS: u32 = 3;

/// Renames a log that has grown past its size, and deletes archives that are too old or too many. Programs that append
/// open the file each time, so that they go on in a new one.
pub fn rotate(state: &StateDir, name: &str, max_bytes: u64, keep: Duration, now: Timestamp) -> io::Result<()> {
    let live = state.at(name);
    let size = match fs::symlink_metadata(&live) {
        // What is no file is not ours to move.
        Ok(about) if about.is_file() => about.len(),
        Ok(_) => 0,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    if size > max_bytes {
        // A clock that was set back must not write over an archive.
        let free = (now.secs()..now.secs().saturating_add(MAX_NAMES))
            .map(|epoch| state.at(format!("{name}.{epoch}")))
            .find(|at| fs::symlink_metadata(at).is_err());
        fs::rename(&live, free.ok_or_else(|| io::Error::other("no free name for an archive"))?)?;
    }
    let oldest = now.before(keep).secs();
    let mut total = 0_u64;
    for (number, (epoch, name)) in archives(state, name)?.into_iter().rev().enumerate() {
        let path = state.at(&name);
        total = total.saturating_add(fs::symlink_metadata(&path).map_or(0, |about| about.len()));
        let is_too_much = number > 0 && total > max_bytes.saturating_mul(ARCHIVES);
        if is_too_much || i64::try_from(epoch).is_ok_and(|epoch| epoch < oldest) {
            files::remove(&path)?;
        }
    }
    Ok(())
}

/// Reads the whole lines among the last `max_bytes` of a log and its archives, oldest first; `None` if there is neither.
/// What is not UTF-8 is replaced.
pub fn read_tail(state: &StateDir, name: &str, max_bytes: u64) -> io::Result<Option<String>> {
    let live = state.at(name);
    let which = || fs::metadata(&live).map(|about| about.ino()).ok();
    for attempt in 1.. {
        let before = which();
        let text = read_once(state, name, max_bytes)?;
        // Renamed meanwhile: some lines were read twice, or not at all.
        if which() == before || attempt >= ATTEMPTS {
            return Ok(text);
        }
    }
    Ok(None)
}

fn read_once(state: &StateDir, name: &str, max_bytes: u64) -> io::Result<Option<String>> {
    let mut text: Option<String> = None;
    let mut room = max_bytes;
    let names = archives(state, name)?.into_iter().map(|(_, archive)| archive).chain([name.to_owned()]);
    for name in names.rev() {
        let path = state.at(&name);
        let Some(mut before) = files::read_tail(&path, room)? else { continue };
        if !before.is_empty() && !before.ends_with('\n') && text.is_some() {
            // A line that was cut off is not continued by the next file.
            before.push('\n');
        }
        text = Some(before + &text.unwrap_or_default());
        // What does not fit whole ends it: an older file would leave a gap.
        let length = fs::metadata(&path).map_or(u64::MAX, |about| about.len());
        match room.checked_sub(length) {
            Some(left) if left > 0 => room = left,
            _ => break,
        }
    }
    Ok(text)
}

/// The archives of a log, oldest first, by their names below the state directory as that of the log.
fn archives(state: &StateDir, name: &str) -> io::Result<Vec<(u64, String)>> {
    let (folder, own) = name.rsplit_once('/').unwrap_or(("", name));
    let epoch = |file: &String| file.strip_prefix(own)?.strip_prefix('.')?.parse::<u64>().ok();
    let mut found: Vec<(u64, String)> = files::list_names(&state.at(folder))?
        .into_iter()
        .filter_map(|file| epoch(&file).map(|epoch| (epoch, format!("{name}.{epoch}"))))
        .collect();
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        (dir, state)
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn a_log_is_rotated_by_size_and_its_old_archives_go() {
        let (_dir, state) = state();
        fs::write(state.at("log.jsonl"), "0123456789").unwrap();
        fs::write(state.at("log.jsonl.5"), "old").unwrap();
        rotate(&state, "log.jsonl", 10, DAY, at(100)).unwrap();
        assert!(state.at("log.jsonl").exists());
        rotate(&state, "log.jsonl", 9, DAY, at(200_000)).unwrap();
        assert!(!state.at("log.jsonl").exists() && state.at("log.jsonl.200000").exists());
        assert!(!state.at("log.jsonl.5").exists());
        rotate(&state, "missing", 9, DAY, at(1)).unwrap();
    }

    #[test]
    fn a_log_in_a_folder_is_rotated_and_read_there() {
        let (_dir, state) = state();
        fs::create_dir(state.at("audit")).unwrap();
        fs::write(state.at("audit/acts.jsonl"), "old\n").unwrap();
        fs::write(state.at("acts.jsonl.5"), "another's\n").unwrap();
        rotate(&state, "audit/acts.jsonl", 3, DAY, at(100)).unwrap();
        assert!(state.at("audit/acts.jsonl.100").exists() && !state.at("audit/acts.jsonl").exists());
        fs::write(state.at("audit/acts.jsonl"), "new\n").unwrap();
        assert_eq!(read_tail(&state, "audit/acts.jsonl", 100).unwrap().unwrap(), "old\nnew\n");
        rotate(&state, "audit/acts.jsonl", 100, DAY, at(200_000)).unwrap();
        assert!(!state.at("audit/acts.jsonl.100").exists() && state.at("acts.jsonl.5").exists());
    }

    #[test]
    fn archives_are_bounded_together_and_the_newest_stays() {
        let (_dir, state) = state();
        for round in 1..=20 {
            fs::write(state.at("log"), "x".repeat(11)).unwrap();
            rotate(&state, "log", 10, DAY, at(round)).unwrap();
        }
        let names: Vec<_> = archives(&state, "log").unwrap().into_iter().map(|(epoch, _)| epoch).collect();
        assert_eq!(names, [17, 18, 19, 20], "four of 11 bytes are less than five times 10");
        fs::write(state.at("log"), "x".repeat(1000)).unwrap();
        rotate(&state, "log", 10, DAY, at(21)).unwrap();
        assert_eq!(archives(&state, "log").unwrap().len(), 1, "the newest stays, however large");
    }

    #[test]
    fn a_clock_that_was_set_back_writes_over_nothing() {
        let (_dir, state) = state();
        for text in ["first", "second"] {
            fs::write(state.at("log"), text).unwrap();
            rotate(&state, "log", 3, DAY, at(7)).unwrap();
        }
        assert_eq!(fs::read_to_string(state.at("log.7")).unwrap(), "first");
        assert_eq!(fs::read_to_string(state.at("log.8")).unwrap(), "second");
    }

    #[test]
    fn the_end_of_a_log_is_read_across_the_seam() {
        let (_dir, state) = state();
        assert_eq!(read_tail(&state, "log", 100).unwrap(), None);
        fs::write(state.at("log.9"), "a\nb\n").unwrap();
        fs::write(state.at("log.20"), "c\ncut off").unwrap();
        fs::write(state.at("log.lock"), "no\n").unwrap();
        // The newest events stand in an archive, right after a rotation.
        assert_eq!(read_tail(&state, "log", 100).unwrap().unwrap(), "a\nb\nc\ncut off");
        fs::write(state.at("log"), "d\ne\n").unwrap();
        assert_eq!(read_tail(&state, "log", 100).unwrap().unwrap(), "a\nb\nc\ncut off\nd\ne\n");
        // A line that is cut by the bound is left out.
        for (max, expected) in [(1, ""), (3, "e\n"), (5, "d\ne\n"), (11, "d\ne\n"), (12, "cut off\nd\ne\n")] {
            assert_eq!(read_tail(&state, "log", max).unwrap().unwrap(), expected, "{max}");
        }
    }

    #[test]
    fn what_is_no_file_is_left_alone() {
        let (_dir, state) = state();
        fs::create_dir(state.at("log")).unwrap();
        rotate(&state, "log", 0, DAY, at(1)).unwrap();
        assert!(state.at("log").is_dir());
    }
}
