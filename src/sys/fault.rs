//! Places where a test may stop this process dead, make it hold still or let a write fail. Owns no behaviour: without
//! debug assertions it is empty.
//!
//! `NEXUS_FAULT=<place>` ends the process there as a power cut would; `NEXUS_FAULT=<place>=stop` stops it there until it
//! is told to go on (SIGCONT), so that a test can change the world between two steps. Each acts once, at the first
//! passing. `tests/crash.rs` goes through all of [`PLACES`].

/// Every place, in the order of a delivery.
pub const PLACES: &[&str] = &[
    "before-archive",
    "after-archive",
    "before-journal",
    "after-journal",
    "before-paste",
    "before-act",
    "after-act",
    "after-paste",
    "before-fold",
    "after-fold",
    "before-enter",
    "after-enter",
    "before-proof",
    "after-proof",
    "between-commits",
    "before-removal",
    "after-removal",
    "before-repeat",
    "after-repeat",
];

use std::io;
use std::path::Path;

/// What a simulated run on this thread is told, and may interfere with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// One of [`PLACES`] is passed.
    Place(&'static str),
    /// A file is about to be written, appended to or removed.
    Write(&'a Path),
}

/// A place by its name, which is one of [`PLACES`].
#[cfg(not(debug_assertions))]
pub fn point(_place: &'static str) {}

/// A file is about to be changed.
#[cfg(not(debug_assertions))]
pub fn write(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// A file is about to be changed; the error is what that write comes to.
#[cfg(debug_assertions)]
pub fn write(path: &Path) -> io::Result<()> {
    simulated::tell(Step::Write(path))
}

/// Whether a simulated run lives on this thread. Files come and go in it faster than the times of files can tell.
#[cfg(not(debug_assertions))]
pub fn is_simulated() -> bool {
    false
}

#[cfg(debug_assertions)]
pub use simulated::{intercept, is_simulated};

/// Faults of a run that is simulated on one thread, where ending the process would end the test.
#[cfg(debug_assertions)]
mod simulated {
    use std::cell::RefCell;
    use std::io;

    use super::Step;

    /// What a run does at each step; its error is the step's, where the step can fail.
    type Hook = Box<dyn FnMut(Step<'_>) -> io::Result<()>>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    /// Calls `hook` at each step of this thread from now on; `None` ends that.
    pub fn intercept(hook: Option<Hook>) {
        HOOK.set(hook);
    }

    /// Whether a simulated run lives on this thread. Files come and go in it faster than the times of files can tell.
    pub fn is_simulated() -> bool {
        HOOK.with(|hook| hook.try_borrow().map_or(true, |hook| hook.is_some()))
    }

    /// Tells the hook. A step within a hook is not told.
    pub(super) fn tell(step: Step<'_>) -> io::Result<()> {
        HOOK.with(|hook| match hook.try_borrow_mut() {
            Ok(mut hook) => hook.as_mut().map_or(Ok(()), |hook| hook(step)),
            Err(_) => Ok(()),
        })
    }
}

/// A place by its name, which is one of [`PLACES`].
#[cfg(debug_assertions)]
pub fn point(place: &'static str) {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    use super::env::{Env as _, ProcessEnv};

    static PASSED: AtomicBool = AtomicBool::new(false);
    debug_assert!(PLACES.contains(&place), "{place} is not in the list");
    let _no_write = simulated::tell(Step::Place(place));
    let Some(wanted) = ProcessEnv.non_empty("NEXUS_FAULT") else { return };
    let (wanted, how) = wanted.split_once('=').unwrap_or((&wanted, "end"));
    if wanted != place || PASSED.swap(true, Ordering::Relaxed) {
        return;
    }
    let signal = if how == "stop" { Signal::STOP } else { Signal::KILL };
    // Nothing is left to say where even this fails.
    let _gone = kill_process(getpid(), signal);
}
