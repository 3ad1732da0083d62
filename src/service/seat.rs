//! Whether this process is the instance that may act, asked anew with every act: a process that was stopped, or a machine
//! that slept, wakes up in the midst of anything, and by then another watcher may have taken over.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use crate::logic::ids::{WindowId, WindowName};
use crate::logic::instance::beacon::{self, Fence};
use crate::logic::snapshot::TmuxView;
use crate::logic::time::Timestamp;
use crate::sys::clock::Clock;
use crate::sys::files::{self, MAX_STATE_BYTES, StateDir};
use crate::sys::instance::BEACON_FILE;
use crate::sys::lock::{InstanceLock, LOCK_FILE};
use crate::sys::tmux::{ActOutcome, Capture, CaptureRequest, GuardedAct, Reading, Tmux, TmuxError};

/// The place of the one instance, and our claim to it.
#[derive(Debug)]
pub(super) struct Seat {
    /// The state directory.
    state: StateDir,
    /// Our host.
    host: String,
    /// Made once at our start; tells instances apart.
    nonce: String,
    /// Age from which another instance's beacon counts as dead.
    stale_after: Duration,
    /// The lock file that we hold: device and number. `None` for a watcher that only observes.
    lock: Cell<Option<(u64, u64)>>,
}

impl Seat {
    /// The seat of an instance that does not hold the lock yet: it only observes.
    pub(super) fn new(state: &StateDir, host: &str, nonce: &str, stale_after: Duration) -> Self {
        Self {
            state: state.clone(),
            host: host.to_owned(),
            nonce: nonce.to_owned(),
            stale_after,
            lock: Cell::new(None),
        }
    }

    /// Takes the seat with this lock.
    pub(super) fn take(&self, lock: &InstanceLock) {
        // A lock that can't be looked at objects to every act until it can be; the guard says so.
        self.lock.set(lock.file_id().ok());
    }

    /// Our nonce.
    pub(super) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// What the beacon on disk says of our claim. One that can't be read is no witness.
    pub(super) fn fence(&self, now: Timestamp) -> Fence {
        let found = files::read_text(&self.state.at(BEACON_FILE), MAX_STATE_BYTES).ok().flatten();
        beacon::fence(found.as_deref(), &self.host, &self.nonce, now, self.stale_after)
    }

    /// Why nothing may be done now; `None` if this instance may act.
    fn objection(&self) -> Option<String> {
        let Some(ours) = self.lock.get() else {
            return Some("this watcher only observes".to_owned());
        };
        match fs::metadata(self.state.at(LOCK_FILE)) {
            Ok(there) if (there.dev(), there.ino()) != ours => {
                return Some("the instance lock was replaced under this watcher".to_owned());
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Some("the instance lock was removed under this watcher".to_owned());
            }
            // A file system that does not answer is no proof of a second watcher.
            Ok(_) | Err(_) => {}
        }
        match self.fence(Clock::System.now().at) {
            Fence::Refresh => None,
            Fence::StandDown(other) => {
                Some(format!("another watcher (pid {} on {}) has taken over", other.pid, other.host))
            }
        }
    }
}

/// A tmux that types nothing, and clears no bell, unless this instance may act.
#[derive(Debug)]
pub(super) struct Fenced<T> {
    /// The server.
    inner: T,
    /// Our claim.
    seat: std::rc::Rc<Seat>,
}

impl<T> Fenced<T> {
    pub(super) fn new(inner: T, seat: std::rc::Rc<Seat>) -> Self {
        Self { inner, seat }
    }

    fn check(&self) -> Result<(), TmuxError> {
        self.seat.objection().map_or(Ok(()), |why| Err(TmuxError::NotOurs { why }))
    }
}

impl<T: Tmux> Tmux for Fenced<T> {
    async fn view(&self) -> Result<TmuxView, TmuxError> {
        self.inner.view().await
    }

    async fn view_of(&self, window: &WindowName) -> Result<TmuxView, TmuxError> {
        self.inner.view_of(window).await
    }

    async fn capture(&self, requests: &[CaptureRequest]) -> Result<Vec<Capture>, TmuxError> {
        self.inner.capture(requests).await
    }

    async fn read(&self, reading: &mut dyn Reading) -> Result<(), TmuxError> {
        self.inner.read(reading).await
    }

    async fn act(&self, act: &GuardedAct) -> Result<ActOutcome, TmuxError> {
        self.check()?;
        self.inner.act(act).await
    }

    async fn clear_bells(&self, windows: &[WindowId]) -> Result<(), TmuxError> {
        self.check()?;
        self.inner.clear_bells(windows).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::lock;

    /// A tmux that counts what is done to it, and keeps which of its questions were asked.
    #[derive(Debug, Default)]
    struct Counted(Cell<u32>, std::cell::RefCell<Vec<&'static str>>);

    impl Counted {
        fn asked(&self, what: &'static str) -> TmuxError {
            self.1.borrow_mut().push(what);
            TmuxError::NotInstalled
        }
    }

    impl Tmux for Counted {
        async fn view(&self) -> Result<TmuxView, TmuxError> {
            Err(self.asked("view"))
        }

        async fn view_of(&self, _: &WindowName) -> Result<TmuxView, TmuxError> {
            Err(self.asked("view_of"))
        }

        async fn capture(&self, _: &[CaptureRequest]) -> Result<Vec<Capture>, TmuxError> {
            Err(self.asked("capture"))
        }

        async fn read(&self, _: &mut dyn Reading) -> Result<(), TmuxError> {
            Err(self.asked("read"))
        }

        async fn act(&self, _: &GuardedAct) -> Result<ActOutcome, TmuxError> {
            self.0.set(self.0.get() + 1);
            Ok(ActOutcome::Done)
        }

        async fn clear_bells(&self, _: &[WindowId]) -> Result<(), TmuxError> {
            self.0.set(self.0.get() + 1);
            Ok(())
        }
    }

    fn act() -> GuardedAct {
        GuardedAct {
            server: crate::logic::ids::ServerId { socket: "s".into(), pid: 1, start_s: 1 },
            pane: crate::logic::ids::PaneId::new(1),
            pid: 1,
            require: Vec::new(),
            rows: Vec::new(),
            refuse: Vec::new(),
            no_shell: false,
            act: crate::sys::tmux::Act::Press(Vec::new()),
        }
    }

    fn beacon(nonce: &str, epoch: i64) -> String {
        format!("host: there\npid: 7\nnonce: {nonce}\nepoch: {epoch}\n")
    }

    /// What happened meanwhile, and the words of the refusal, if any.
    type Case<'a> = (&'a str, &'a dyn Fn(&StateDir), Option<&'a str>);

    #[tokio::test]
    async fn who_may_act_row_by_row() {
        let now = Clock::System.now().at.secs();
        let cases: &[Case<'_>] = &[
            ("all as it was", &|_| {}, None),
            ("our own beacon", &|state| write(state, &beacon("mine", now)), None),
            ("a damaged beacon", &|state| write(state, "rubbish"), None),
            ("another's, stale", &|state| write(state, &beacon("other", now - 9000)), None),
            ("another's, fresh", &|state| write(state, &beacon("other", now)), Some("pid 7 on there) has taken over")),
            ("another's, from the future", &|state| write(state, &beacon("other", now + 9000)), Some("taken over")),
            ("the lock file removed", &|state| fs::remove_file(state.at(LOCK_FILE)).unwrap(), Some("removed")),
            ("the lock file replaced", &replace_lock, Some("replaced")),
        ];
        for (name, change, expected) in cases {
            let dir = tempfile::tempdir().unwrap();
            let state = StateDir::new(dir.path());
            let seat = std::rc::Rc::new(Seat::new(&state, "here", "mine", Duration::from_secs(600)));
            let tmux = Fenced::new(Counted::default(), std::rc::Rc::clone(&seat));
            let refused = tmux.act(&act()).await.unwrap_err();
            assert!(refused.to_string().contains("only observes") && refused.typed_nothing(), "{name}: {refused}");
            let lock = lock::acquire(&state, "x\n").unwrap();
            seat.take(&lock);
            change(&state);
            for done in [tmux.act(&act()).await.map(|_| ()), tmux.clear_bells(&[]).await] {
                match (done, expected) {
                    (Ok(()), None) => {}
                    (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{name}: {error}"),
                    (found, _) => panic!("{name}: {found:?}"),
                }
            }
            assert_eq!(tmux.inner.0.get(), if expected.is_none() { 2 } else { 0 }, "{name}");
        }
    }

    /// A reading without a question.
    struct Nothing;

    impl Reading for Nothing {
        fn begin(&mut self) {}

        fn next(&mut self) -> Option<(usize, CaptureRequest)> {
            None
        }

        fn take(&mut self, _: usize, _: CaptureRequest, _: Capture) {}
    }

    #[tokio::test]
    async fn every_question_goes_through_in_its_own_way() {
        let dir = tempfile::tempdir().unwrap();
        let seat = Seat::new(&StateDir::new(dir.path()), "here", "mine", Duration::from_secs(600));
        let tmux = Fenced::new(Counted::default(), std::rc::Rc::new(seat));
        let answers = [
            tmux.view().await.map(drop),
            tmux.view_of(&WindowName("w".into())).await.map(drop),
            tmux.capture(&[]).await.map(drop),
            tmux.read(&mut Nothing).await,
        ];
        assert!(answers.iter().all(|answer| *answer == Err(TmuxError::NotInstalled)), "{answers:?}");
        assert_eq!(*tmux.inner.1.borrow(), ["view", "view_of", "capture", "read"]);
    }

    fn write(state: &StateDir, text: &str) {
        fs::write(state.at(BEACON_FILE), text).unwrap();
    }

    fn replace_lock(state: &StateDir) {
        // Kept, so that the new file can't get its number.
        fs::rename(state.at(LOCK_FILE), state.at("old")).unwrap();
        fs::write(state.at(LOCK_FILE), "").unwrap();
    }
}
