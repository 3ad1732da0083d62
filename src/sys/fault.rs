//! Places where a test may stop this process dead or make it hold still. Owns no behaviour: in a release build it is empty.
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

/// A place by its name, which is one of [`PLACES`].
#[cfg(not(debug_assertions))]
pub fn point(_place: &str) {}

/// A place by its name, which is one of [`PLACES`].
#[cfg(debug_assertions)]
pub fn point(place: &str) {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    use super::env::{Env as _, ProcessEnv};

    static PASSED: AtomicBool = AtomicBool::new(false);
    debug_assert!(PLACES.contains(&place), "{place} is not in the list");
    let Some(wanted) = ProcessEnv.non_empty("NEXUS_FAULT") else { return };
    let (wanted, how) = wanted.split_once('=').unwrap_or((&wanted, "end"));
    if wanted != place || PASSED.swap(true, Ordering::Relaxed) {
        return;
    }
    let signal = if how == "stop" { Signal::STOP } else { Signal::KILL };
    // Nothing is left to say where even this fails.
    let _gone = kill_process(getpid(), signal);
}
