//! The heartbeat: a thread of its own that rewrites `watcher-heartbeat`, so that liveness does not depend on how much
//! the loop has to do.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::logic::instance::records::Heartbeat;
use crate::sys::clock::Clock;
use crate::sys::files::{self, Durability, StateDir};

/// Name of the heartbeat file in the state directory.
pub const HEARTBEAT_FILE: &str = "watcher-heartbeat";

/// Least time between two beats.
const LEAST_TICK: Duration = Duration::from_millis(10);

/// What the loop and the thread share.
#[derive(Debug, Default)]
struct Shared {
    /// The target window that is written.
    target: String,
    /// Why the last beat could not be written, if it could not.
    error: Option<String>,
}

/// The running heartbeat thread. Dropping it stops the thread at once.
#[derive(Debug)]
pub struct Ticker {
    /// Hanging up ends the thread.
    stop: Option<Sender<()>>,
    /// The thread.
    thread: Option<JoinHandle<()>>,
    /// Shared with the thread.
    shared: Arc<Mutex<Shared>>,
}

impl Ticker {
    /// Writes the first beat and starts the thread. A beat that cannot be written is remembered ([`Self::error`]).
    ///
    /// Errors: the thread cannot be started.
    pub fn start(state: &StateDir, target: &str, tick: Duration) -> io::Result<Self> {
        let path = state.at(HEARTBEAT_FILE);
        let shared = Arc::new(Mutex::new(Shared { target: target.to_owned(), error: None }));
        let (stop, stopped) = channel::<()>();
        beat(&path, &shared);
        let tick = tick.max(LEAST_TICK);
        let thread = std::thread::Builder::new().name("heartbeat".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                while stopped.recv_timeout(tick) == Err(RecvTimeoutError::Timeout) {
                    beat(&path, &shared);
                }
            }
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread), shared })
    }

    /// One whose thread has ended, as after a panic.
    #[cfg(test)]
    pub(crate) fn dead() -> Self {
        Self { stop: None, thread: None, shared: Arc::default() }
    }

    /// Why the last beat could not be written; `None` if it was.
    pub fn error(&self) -> Option<String> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).error.clone()
    }

    /// Writes another target window from the next beat on.
    pub fn set_target(&self, target: &str) {
        target.clone_into(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner).target);
    }

    /// Whether the thread runs. The loop looks each time round, and starts another ticker if this one has died.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so already.
            let _ended = thread.join();
        }
    }
}

/// Writes one beat. Where the file cannot be replaced (a full disk), its time is moved, since its age is what counts.
fn beat(path: &PathBuf, shared: &Mutex<Shared>) {
    let target = shared.lock().unwrap_or_else(PoisonError::into_inner).target.clone();
    let now = Clock::System.now();
    let text = Heartbeat::render(std::process::id(), &now, &target);
    let error = files::write_atomic(path, text.as_bytes(), Durability::Hint).err().map(|error| {
        let since_1970 = Duration::from_millis(u64::try_from(now.at.millis()).unwrap_or(0));
        let touched = File::open(path).and_then(|file| file.set_modified(std::time::UNIX_EPOCH + since_1970));
        match touched {
            Ok(()) => format!("cannot write {}: {error}; only its time was moved", path.display()),
            Err(_) => format!("cannot write {}: {error}", path.display()),
        }
    });
    shared.lock().unwrap_or_else(PoisonError::into_inner).error = error;
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests wait for a condition with a deadline")]

    use std::fs;
    use std::time::Instant;

    use super::*;

    fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !condition() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_first_beat_is_there_at_once_and_others_follow() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let ticker = Ticker::start(&state, "orch", Duration::from_millis(10)).unwrap();
        let read = || Heartbeat::parse(&fs::read_to_string(state.at(HEARTBEAT_FILE)).unwrap());
        assert_eq!((read().pid, read().target.as_deref()), (Some(std::process::id()), Some("orch")));
        ticker.set_target("other");
        wait_until("the next beat", || read().target.as_deref() == Some("other"));
        assert!(ticker.is_running());
    }

    #[test]
    fn dropping_it_does_not_wait_for_the_next_beat() {
        let dir = tempfile::tempdir().unwrap();
        let ticker = Ticker::start(&StateDir::new(dir.path()), "orch", Duration::from_secs(3600)).unwrap();
        let begun = Instant::now();
        drop(ticker);
        assert!(begun.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_beat_that_cannot_be_written_is_remembered_and_then_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        // A directory stands in the file's place.
        fs::create_dir(state.at(HEARTBEAT_FILE)).unwrap();
        let ticker = Ticker::start(&state, "orch", Duration::from_millis(10)).unwrap();
        assert!(ticker.error().is_some_and(|error| error.contains(HEARTBEAT_FILE)));
        fs::remove_dir(state.at(HEARTBEAT_FILE)).unwrap();
        wait_until("a beat that works", || ticker.error().is_none());
        assert!(ticker.is_running());
    }
}
