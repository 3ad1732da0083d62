//! The instance lock: one watcher a state directory, by `flock` on `nexus-instance.lock`.
//!
//! The lock is the truth, the text inside only explains it. The file is never unlinked, since after an unlink and a new
//! file two holders coexist. Files are opened close-on-exec, so that no child keeps the lock when the watcher dies. The
//! lock does not reliably reach across hosts; the beacon does (`logic::instance::beacon`). The launcher and a watcher that
//! only observes lock files of their own in the same way.

#![expect(clippy::disallowed_methods, reason = "flock has no wait with a deadline, so an attempt is repeated")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::sys::files::{self, StateDir};

/// Name of the lock file in the state directory.
pub const LOCK_FILE: &str = "nexus-instance.lock";

/// Name of the file that a watcher holds which can't have the instance lock and only observes.
pub const OBSERVER_FILE: &str = "watcher-observing";

/// Longest body that is read, in bytes.
const MAX_BODY: u64 = 64 << 10;

/// How often an attempt is repeated while somebody only looks at the lock. A look takes microseconds, unless the looker
/// is stopped by the scheduler of a busy machine in the midst of it.
const LOOKER_TRIES: u32 = 5000;

/// Pause between such attempts.
const LOOKER_PAUSE: Duration = Duration::from_millis(1);

/// Pause between two attempts of one that waits for the holder.
const WAIT_PAUSE: Duration = Duration::from_millis(50);

/// The held lock. It is given back when this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct InstanceLock {
    /// The open file that carries the lock.
    file: File,
    /// Where it was opened.
    path: PathBuf,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another watcher holds it.
    #[error("another watcher holds {}", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// What the holder wrote into it.
        metadata: String,
    },
    /// It cannot be opened, locked or written. A watcher without the lock observes only.
    #[error("cannot lock {}: {source}; check that the state directory is writable and on a file system with flock", path.display())]
    Unopenable {
        /// The lock file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

/// Whether the lock is held, found without taking it over.
#[derive(Debug)]
pub enum Probe {
    /// There is no lock file.
    Absent,
    /// Nobody holds it; the text is of an earlier holder.
    Free(String),
    /// Somebody holds it, and wrote this.
    Held(String),
    /// It cannot be tried.
    CannotTell(io::Error),
}

/// Takes the lock and writes `metadata` into the file.
///
/// Errors: `Held` at once if another watcher holds it; `Unopenable` for everything else.
pub fn acquire(state: &StateDir, metadata: &str) -> Result<InstanceLock, LockError> {
    acquire_file(state, LOCK_FILE, metadata)
}

/// Takes the lock on another file of the state directory, as [`acquire`] does.
pub fn acquire_file(state: &StateDir, name: &str, metadata: &str) -> Result<InstanceLock, LockError> {
    let path = state.at(name);
    let unopenable = |source| LockError::Unopenable { path: path.clone(), source };
    files::create_private_dir(state.path()).map_err(unopenable)?;
    let mut file = open(&path).map_err(unopenable)?;
    if !try_exclusive(&file).map_err(unopenable)? {
        return Err(LockError::Held { metadata: read_body(&mut file).unwrap_or_default(), path });
    }
    match write_body(&mut file, metadata) {
        // On a full disk the lock still counts; only the explanation is missing.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {}
        Err(error) => return Err(unopenable(error)),
    }
    Ok(InstanceLock { file, path })
}

/// Takes the lock on a file of the state directory, waiting for it up to `patience`; the file's text is left alone.
///
/// Errors: `Held` if another process has it all that time.
pub fn acquire_within(state: &StateDir, name: &str, patience: Duration) -> Result<InstanceLock, LockError> {
    let path = state.at(name);
    let unopenable = |source| LockError::Unopenable { path: path.clone(), source };
    files::create_private_dir(state.path()).map_err(unopenable)?;
    let file = open(&path).map_err(unopenable)?;
    let deadline = Instant::now() + patience;
    while !try_exclusive(&file).map_err(unopenable)? {
        if Instant::now() >= deadline {
            return Err(LockError::Held { metadata: String::new(), path });
        }
        std::thread::sleep(WAIT_PAUSE);
    }
    Ok(InstanceLock { file, path })
}

/// Tries the lock without keeping it, and reads what its holder wrote.
pub fn probe(state: &StateDir) -> Probe {
    probe_file(state, LOCK_FILE)
}

/// Waits up to `patience` for the instance lock to be free, without taking it; whether it is.
pub fn is_free_within(state: &StateDir, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while matches!(probe(state), Probe::Held(_)) {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(LOOKER_PAUSE);
    }
    true
}

/// Tries the lock of another file of the state directory, as [`probe`] does.
pub fn probe_file(state: &StateDir, name: &str) -> Probe {
    let path = state.at(name);
    let look = || -> io::Result<Probe> {
        let mut file = OpenOptions::new().read(true).custom_flags(no_follow()).open(&path).map_err(in_words)?;
        // A shared lock does not disturb other lookers, and a starter knows to try again (`try_exclusive`).
        let held = match fs2::FileExt::try_lock_shared(&file) {
            Ok(()) => {
                fs2::FileExt::unlock(&file)?;
                false
            }
            Err(error) if is_contended(&error) => true,
            Err(error) => return Err(error),
        };
        let body = read_body(&mut file).unwrap_or_default();
        Ok(if held { Probe::Held(body) } else { Probe::Free(body) })
    };
    match look() {
        Ok(probe) => probe,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Probe::Absent,
        Err(error) => Probe::CannotTell(error),
    }
}

/// Whether a process has this file open, or one of that name that was removed since; `None` if its descriptors cannot be
/// looked at.
pub fn has_open(pid: u32, path: &Path) -> Option<bool> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let wanted = fs::metadata(path).ok();
    let is_same = |meta: fs::Metadata| wanted.as_ref().is_some_and(|w| meta.dev() == w.dev() && meta.ino() == w.ino());
    // The kernel names an open file by its real path, and marks a removed one.
    let real = path.parent().zip(path.file_name()).and_then(|(dir, name)| Some(dir.canonicalize().ok()?.join(name)));
    let removed = real.map(|real| format!("{} (deleted)", real.display()));
    let is_removed = |link: &Path| removed.as_ref().is_some_and(|name| link.as_os_str() == name.as_str());
    Some(entries.flatten().any(|entry| {
        fs::metadata(entry.path()).is_ok_and(is_same) || fs::read_link(entry.path()).is_ok_and(|link| is_removed(&link))
    }))
}

impl InstanceLock {
    /// Which file it is: device and number.
    pub fn file_id(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|meta| (meta.dev(), meta.ino()))
    }

    /// Whether the path still names the file that we locked. If not, somebody replaced it, a second watcher may hold
    /// the other one, and ours must stand down.
    pub fn is_in_place(&self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(there) => Ok(there.dev() == ours.dev() && there.ino() == ours.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces the text in the file. Losing it changes nothing but the words of a refusal.
    pub fn describe(&mut self, metadata: &str) -> io::Result<()> {
        write_body(&mut self.file, metadata)
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for InstanceLock {
    fn drop(&mut self) {
        // Unlocking frees the lock even while a child that is just being started still carries a copy of the descriptor.
        // Should it fail, closing the file frees it.
        let _closed_next = fs2::FileExt::unlock(&self.file);
    }
}

/// Takes the exclusive lock unless another process has it; false if one does.
///
/// A probe holds a shared lock for an instant. Where the shared lock can be had too, only such a looker is in the way,
/// and the attempt is repeated.
fn try_exclusive(file: &File) -> io::Result<bool> {
    for _ in 0..LOOKER_TRIES {
        match fs2::FileExt::try_lock_exclusive(file) {
            Ok(()) => return Ok(true),
            Err(error) if is_contended(&error) => {}
            Err(error) => return Err(error),
        }
        match fs2::FileExt::try_lock_shared(file) {
            Ok(()) => fs2::FileExt::unlock(file)?,
            Err(error) if is_contended(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        std::thread::sleep(LOOKER_PAUSE);
    }
    Ok(false)
}

/// Whether a lock attempt failed because another process has the lock.
fn is_contended(error: &io::Error) -> bool {
    error.raw_os_error() == fs2::lock_contended_error().raw_os_error()
}

/// Opens a lock file, and makes it if need be. Descriptors of the standard library are closed in every child.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(no_follow())
        .open(path)
        .map_err(in_words)
}

/// The system's words for a link in the place of the file lead nowhere.
fn in_words(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return io::Error::new(error.kind(), "it is a symbolic link, where a plain file must be");
    }
    error
}

/// Replaces the body of the lock file.
fn write_body(file: &mut File, metadata: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(metadata.as_bytes())
}

/// The flag that refuses a symbolic link in place of the lock file: its target would be overwritten.
fn no_follow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}

/// The body of the lock file, at most [`MAX_BODY`] bytes of it.
fn read_body(file: &mut File) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.take(MAX_BODY).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path().join("state"));
        (dir, state)
    }

    #[test]
    fn a_second_watcher_is_refused_and_told_who_holds_it() {
        let (_dir, state) = state();
        let lock = acquire(&state, "pid: 7\n").unwrap();
        match acquire(&state, "pid: 8\n") {
            Err(LockError::Held { metadata, .. }) => assert_eq!(metadata, "pid: 7\n"),
            other => panic!("{other:?}"),
        }
        drop(lock);
        let _second = acquire(&state, "pid: 8\n").unwrap();
        assert!(matches!(probe(&state), Probe::Held(text) if text == "pid: 8\n"));
    }

    #[test]
    fn of_many_starters_one_wins_while_others_look() {
        let (_dir, state) = state();
        for _ in 0..20 {
            let barrier = std::sync::Barrier::new(8);
            let wins: usize = std::thread::scope(|scope| {
                let starters: Vec<_> = (0..8)
                    .map(|i| {
                        let (state, barrier) = (&state, &barrier);
                        scope.spawn(move || {
                            barrier.wait();
                            let lock = if i % 2 == 0 {
                                acquire(state, "x\n").ok()
                            } else {
                                drop(probe(state));
                                None
                            };
                            // Nobody lets go before everybody has tried.
                            barrier.wait();
                            usize::from(lock.is_some())
                        })
                    })
                    .collect();
                starters.into_iter().map(|starter| starter.join().unwrap()).sum()
            });
            assert_eq!(wins, 1);
        }
    }

    #[test]
    fn a_looker_never_makes_a_starter_fail() {
        let (_dir, state) = state();
        drop(acquire(&state, "x\n").unwrap());
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        drop(probe(&state));
                    }
                });
            }
            let failed = (0..300).filter(|_| acquire(&state, "x\n").is_err()).count();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(failed, 0);
        });
    }

    #[test]
    fn looking_neither_takes_nor_keeps_nor_creates_the_lock() {
        let (_dir, state) = state();
        assert!(matches!(probe(&state), Probe::Absent));
        assert!(!state.path().exists());
        drop(acquire(&state, "pid: 7\n").unwrap());
        assert!(matches!(probe(&state), Probe::Free(text) if text == "pid: 7\n"));
        drop(acquire(&state, "pid: 8\n").unwrap());
    }

    #[test]
    fn one_that_waits_gets_the_lock_when_it_is_free_and_gives_up_in_time() {
        let (_dir, state) = state();
        let held = acquire_within(&state, "x.lock", Duration::ZERO).unwrap();
        let error = acquire_within(&state, "x.lock", Duration::from_millis(80)).unwrap_err();
        assert!(matches!(error, LockError::Held { .. }), "{error}");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| acquire_within(&state, "x.lock", Duration::from_secs(30)).is_ok());
            drop(held);
            assert!(waiter.join().unwrap());
        });
    }

    #[test]
    fn a_new_text_takes_the_place_of_the_old_one() {
        let (_dir, state) = state();
        let mut lock = acquire(&state, "pid: 7\nhost: a long name\n").unwrap();
        lock.describe("pid: 8\n").unwrap();
        assert!(matches!(probe(&state), Probe::Held(text) if text == "pid: 8\n"));
    }

    #[test]
    fn a_replaced_lock_file_is_noticed() {
        let (_dir, state) = state();
        let lock = acquire(&state, "x\n").unwrap();
        assert!(lock.is_in_place().unwrap());
        fs::remove_file(lock.path()).unwrap();
        assert!(!lock.is_in_place().unwrap());
        let _other = acquire(&state, "y\n").unwrap();
        assert!(!lock.is_in_place().unwrap());
    }

    #[test]
    fn a_lock_that_cannot_be_opened_says_so_and_overwrites_nothing() {
        let (dir, state) = state();
        fs::create_dir(state.path()).unwrap();
        let precious = dir.path().join("precious");
        fs::write(&precious, "text").unwrap();
        std::os::unix::fs::symlink(&precious, state.at(LOCK_FILE)).unwrap();
        let error = acquire(&state, "x\n").unwrap_err();
        assert!(matches!(error, LockError::Unopenable { .. }), "{error}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
        assert!(matches!(probe(&state), Probe::CannotTell(_)));
    }

    #[test]
    fn the_holder_is_known_by_its_open_file() {
        let (_dir, state) = state();
        let lock = acquire(&state, "x\n").unwrap();
        assert_eq!(has_open(std::process::id(), lock.path()), Some(true));
        let path = lock.path().to_owned();
        fs::remove_file(&path).unwrap();
        assert_eq!(has_open(std::process::id(), &path), Some(true), "removed under it");
        drop(lock);
        assert_eq!(has_open(std::process::id(), &path), Some(false));
        assert_eq!(has_open(u32::MAX, &path), None);
    }
}
