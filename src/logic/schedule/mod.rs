//! When each registered task runs: a priority queue on `next_fire`, with back-pressure, overrides, the hang watchdog and
//! the length of the loop's sleep.
//!
//! Runs nothing and reads no clock: the daemon asks what is [`Schedule::due`], runs it, and says what came of it with
//! [`Schedule::finished`], [`Schedule::started`], [`Schedule::reaped`] or [`Schedule::timed_out`]. One tick is, in this
//! order: reap what ended, end what is [`Schedule::hung`], run what is due, carry out the [`Nudge`], [`Schedule::sleep`].
//!
//! Semantics: the specification, "The scheduler model", and `protocol-facts` §2, with these choices where they leave
//! one:
//!
//! - *Due now* is a value of its own ([`NextFire::DueNow`]), printed as 0, and never taken for "unset".
//! - A return code 75 of an asynchronous run counts when the run is reaped; it can only push the next start later.
//! - Back-pressure never makes a task faster, not even under an override that is longer than four intervals.
//! - A task in flight does not wake the loop before its hang budget is spent; its end does.
//! - When the wall clock is set back, all times move back with it, so that no task waits for the old time to return.
//!   Ages of runs are measured in uptime, so that a suspended machine hangs nobody.

mod nudge;
mod queue;
mod telemetry;

#[cfg(test)]
mod tests;

pub use nudge::{Nudge, WatchedFile};
pub use queue::{BadTask, Hung, Limits, Mode, NextFire, Override, Row, Schedule};
pub use telemetry::{Phase, Telemetry};

/// Return code of a task that wants to be left alone for a while (`EX_TEMPFAIL`).
pub const RC_TRY_LATER: i32 = 75;

/// Return code recorded for a run that the hang watchdog ended.
pub const RC_TIMED_OUT: i32 = 124;
