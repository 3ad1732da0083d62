//! The only reader of clocks. Everything else is given the time.

#![expect(clippy::disallowed_methods, reason = "this is the module that reads clocks")]

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{Local, Offset as _};

use crate::logic::time::{Now, Timestamp};

/// Where the time comes from.
///
/// The loop's own waiting uses tokio's clock, which tests can pause; [`Clock::Virtual`] derives the wall clock from it,
/// so that a paused runtime turns both together.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The machine's clocks.
    System,
    /// Wall-clock time `base` at tokio instant `start`, then as tokio's clock goes.
    Virtual {
        /// Wall-clock time at `start`.
        base: Timestamp,
        /// The instant that counts as zero.
        start: tokio::time::Instant,
        /// By how many milliseconds the wall clock was set since, as somebody does who corrects it.
        set_by: &'static AtomicI64,
    },
}

/// A wall clock that nobody sets.
static NEVER_SET: AtomicI64 = AtomicI64::new(0);

impl Clock {
    /// A clock that follows tokio's, beginning at `base`. Call it inside a runtime.
    pub fn starting_at(base: Timestamp) -> Self {
        Self::settable(base, &NEVER_SET)
    }

    /// The same, with a wall clock that is set by adding to `set_by`; the monotonic time goes on evenly.
    pub fn settable(base: Timestamp, set_by: &'static AtomicI64) -> Self {
        Self::Virtual { base, start: tokio::time::Instant::now(), set_by }
    }

    /// What time it is.
    pub fn now(&self) -> Now {
        match self {
            Self::System => {
                let local = Local::now();
                Now {
                    at: Timestamp::from_millis(local.timestamp_millis()),
                    uptime: monotonic(),
                    offset: local.offset().fix(),
                }
            }
            Self::Virtual { base, start, set_by } => {
                let passed = start.elapsed();
                let set = Timestamp::from_millis(base.millis().saturating_add(set_by.load(Ordering::Relaxed)));
                Now { at: set.after(passed), uptime: passed, offset: crate::logic::time::utc() }
            }
        }
    }
}

/// Monotonic time since boot, without time spent suspended (`CLOCK_MONOTONIC`).
fn monotonic() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
