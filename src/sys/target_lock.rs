//! One typist a pane: a lock across processes, held from the look at a pane's input box to the proof of what was typed.
//!
//! Two of our programs that paste into one box at the same time would send each other's text. The lock is `flock` on a
//! file of its own for each pane of each server; the file is opened close-on-exec, so no child keeps it. Nothing waits
//! here: who finds it taken says so.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::files::{self, StateDir};
use crate::logic::ids::PaneKey;

/// Folder of the lock files in the state directory.
pub const FOLDER: &str = "delivery/locks";

/// With more files than this, those that nobody holds go.
const KEEP: usize = 256;

/// How often the file may be removed by another between opening and locking it.
const TRIES: u32 = 20;

/// The held lock. It is given back when this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct TargetLock(#[expect(dead_code, reason = "the open file carries the lock")] File);

/// What came of an attempt.
#[derive(Debug)]
pub enum Attempt {
    /// It is ours.
    Taken(TargetLock),
    /// Another of our programs holds it.
    Busy,
}

/// Tries to take the lock of a pane, and writes into it who holds it.
///
/// Errors: the file can't be made, opened or locked: nobody can tell whether somebody else types.
pub fn try_take(state: &StateDir, key: &PaneKey, who: &str) -> io::Result<Attempt> {
    let path = state.at(FOLDER).join(file_name(key));
    for _ in 0..TRIES {
        let mut file = open(&path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(Attempt::Busy),
            Err(error) => return Err(error.into()),
        }
        // A file that was removed meanwhile locks out nobody.
        if !is_in_place(&file, &path) {
            continue;
        }
        let text = format!("{who} {} {}\n", std::process::id(), key.pane);
        // For people only: on a full disk the lock still counts.
        let _only_a_note = file
            .set_len(0)
            .and_then(|()| file.seek(io::SeekFrom::Start(0)))
            .and_then(|_| file.write_all(text.as_bytes()));
        sweep(state, &path);
        return Ok(Attempt::Taken(TargetLock(file)));
    }
    Err(io::Error::other(format!("{} is removed again and again", path.display())))
}

/// The name of a pane's lock file.
fn file_name(key: &PaneKey) -> String {
    let identity = format!("{}\0{}\0{}\0{}", key.server.socket, key.server.pid, key.server.start_s, key.pane.raw());
    let digest = Sha256::digest(identity.as_bytes());
    let short = digest.iter().take(8).fold(0_u64, |hash, byte| (hash << 8) | u64::from(*byte));
    format!("{short:016x}.lock")
}

fn open(path: &Path) -> io::Result<File> {
    let no_follow = i32::try_from((rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits()).unwrap_or(0);
    let open = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(no_follow).open(path)
    };
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            files::create_private_dir(path.parent().unwrap_or(Path::new(".")))?;
            open()
        }
        // An empty directory holds nothing that could be lost, and this can't remove a lock that somebody made meanwhile.
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => fs::remove_dir(path).and_then(|()| open()),
        opened => opened,
    }
}

/// Whether the path still names this file.
fn is_in_place(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => ours.dev() == there.dev() && ours.ino() == there.ino(),
        _ => false,
    }
}

/// Removes lock files that nobody holds, once there are many: panes come and go for years.
fn sweep(state: &StateDir, own: &Path) {
    let folder = state.at(FOLDER);
    let Ok(names) = files::list_names(&folder) else { return };
    if names.len() <= KEEP {
        return;
    }
    for path in names.iter().map(|name| folder.join(name)).filter(|path| path != own) {
        let Ok(file) = OpenOptions::new().read(true).open(&path) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // What stays is looked at again next time.
            let _kept = files::remove(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::ids::{PaneId, ServerId};

    fn key(pane: u32, start_s: i64) -> PaneKey {
        PaneKey { server: ServerId { socket: "/tmp/s".into(), pid: 7, start_s }, pane: PaneId::new(pane) }
    }

    fn take(state: &StateDir, key: &PaneKey) -> Option<TargetLock> {
        match try_take(state, key, "test").unwrap() {
            Attempt::Taken(lock) => Some(lock),
            Attempt::Busy => None,
        }
    }

    #[test]
    fn a_pane_has_one_typist_and_other_panes_have_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let held = take(&state, &key(3, 1)).unwrap();
        assert!(take(&state, &key(3, 1)).is_none());
        assert!(take(&state, &key(4, 1)).is_some());
        // Another process may have the servers in another order.
        assert!(take(&state, &PaneKey { pane: PaneId::new(3).on(2), ..key(3, 1) }).is_none());
        // The same number on a later server is another pane.
        assert!(take(&state, &key(3, 2)).is_some());
        drop(held);
        assert!(take(&state, &key(3, 1)).is_some());
    }

    #[test]
    fn files_of_panes_that_nobody_types_into_go_and_held_ones_stay() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let held = take(&state, &key(0, 1)).unwrap();
        for pane in 1..=u32::try_from(KEEP).unwrap() + 1 {
            drop(take(&state, &key(pane, 1)).unwrap());
        }
        let left = files::list_names(&state.at(FOLDER)).unwrap();
        assert!(left.contains(&file_name(&key(0, 1))) && left.len() < 5, "{}", left.len());
        assert!(take(&state, &key(0, 1)).is_none());
        drop(held);
    }

    #[test]
    fn a_place_that_cannot_be_locked_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path().join("state"));
        std::fs::write(dir.path().join("state"), "a file").unwrap();
        assert!(try_take(&state, &key(1, 1), "test").is_err());
    }
}
