//! Runs checks a few at a time, for those that mostly wait.

use std::sync::{Mutex, PoisonError};

/// How many at a time.
const AT_ONCE: usize = 4;

/// Runs a check of each case; a failure of one fails the test, after the others that had begun.
pub(crate) fn all_at_once<T: Send>(cases: Vec<T>, check: impl Fn(T) + Sync) {
    let cases = Mutex::new(cases);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(case) = cases.lock().unwrap_or_else(PoisonError::into_inner).pop() else { return };
                    check(case);
                }
            });
        }
    });
}
