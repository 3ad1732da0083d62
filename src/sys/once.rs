//! What is done at most once under a key, whoever asks and whatever ends in between: a file for each key, made before the
//! act and kept after it. A key that was claimed by a process which then ended counts as used: nobody knows how far it got.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::fault;
use super::files::{self, StateDir};
use crate::logic::text::hex_digest;

/// Folder of the keys in the state directory.
pub const FOLDER: &str = "delivery/once";

/// With more keys than this, the oldest go.
const KEEP: usize = 1000;

/// A key that is ours to use.
#[derive(Debug)]
#[must_use]
pub struct Claim(PathBuf);

/// What came of asking for a key.
#[derive(Debug)]
pub enum Asked {
    /// It is ours.
    Ours(Claim),
    /// It was used before.
    Used,
}

impl Claim {
    /// Gives the key back: nothing was done after all.
    pub fn give_back(self) -> io::Result<()> {
        files::remove(&self.0)
    }
}

/// Claims a key durably, and writes down for whom.
///
/// Errors: it can't be told whether the key is ours; nothing may be done.
pub fn claim(state: &StateDir, key: &str, who: &str) -> io::Result<Asked> {
    let path = path(state, key);
    fault::write(&path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    files::create_private_dir(folder)?;
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Asked::Used),
        Err(error) => return Err(error),
    };
    let written = file
        .write_all(format!("{key}\n{who}\n").as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| File::open(folder)?.sync_all());
    if let Err(error) = written {
        // A key that is not surely on disk is not ours; one that stays behind is only used up.
        let _used_up = fs::remove_file(&path);
        return Err(error);
    }
    sweep(folder);
    Ok(Asked::Ours(Claim(path)))
}

/// Whether a key was used before.
pub fn is_used(state: &StateDir, key: &str) -> bool {
    fs::symlink_metadata(path(state, key)).is_ok()
}

fn path(state: &StateDir, key: &str) -> PathBuf {
    state.at(FOLDER).join(hex_digest(key.as_bytes()))
}

/// Removes the oldest keys, once there are many.
fn sweep(folder: &Path) {
    let Ok(names) = files::list_names(folder) else { return };
    if names.len() <= KEEP {
        return;
    }
    let age = |name: &String| fs::symlink_metadata(folder.join(name)).and_then(|found| found.modified()).ok();
    let mut dated: Vec<_> = names.iter().map(|name| (age(name), name)).collect();
    dated.sort_unstable();
    for (_, name) in dated.into_iter().take(names.len() - KEEP) {
        // What stays is looked at again next time.
        let _kept = files::remove(&folder.join(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(state: &StateDir, key: &str) -> Option<Claim> {
        match claim(state, key, "test").unwrap() {
            Asked::Ours(claim) => Some(claim),
            Asked::Used => None,
        }
    }

    #[test]
    fn a_key_is_used_once_unless_it_is_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        assert!(!is_used(&state, "../a key\n"));
        let first = ask(&state, "../a key\n").unwrap();
        assert!(is_used(&state, "../a key\n") && ask(&state, "../a key\n").is_none());
        assert!(ask(&state, "another").is_some());
        first.give_back().unwrap();
        assert!(ask(&state, "../a key\n").is_some());
        // Claimed and never given back, whatever became of its owner.
        assert!(ask(&state, "../a key\n").is_none());
        assert_eq!(files::list_names(dir.path()).unwrap(), ["delivery"]);
    }

    #[test]
    fn the_oldest_keys_go_when_there_are_many() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let old = ask(&state, "old").unwrap();
        let an_hour_ago = std::time::SystemTime::UNIX_EPOCH;
        fs::File::options().write(true).open(&old.0).unwrap().set_modified(an_hour_ago).unwrap();
        for number in 0..KEEP {
            assert!(ask(&state, &number.to_string()).is_some());
        }
        assert!(!is_used(&state, "old") && is_used(&state, "0"));
        assert_eq!(files::list_names(&state.at(FOLDER)).unwrap().len(), KEEP);
    }

    #[test]
    fn a_place_that_cannot_hold_a_key_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("delivery"), "a file").unwrap();
        assert!(claim(&StateDir::new(dir.path()), "key", "test").is_err());
    }
}
