//! What a task staged is told only while it is fresh: a run that hangs leaves its last result standing.

use std::time::Duration;

use crate::logic::time::Timestamp;

/// How old the result of a task with this cadence may be: two periods and the hang floor, so that one slow run loses
/// nothing and a hung task stops being quoted by the time that its watchdog has spoken.
pub fn stage_max_age(every: Duration, hang_floor: Duration) -> Duration {
    every.saturating_mul(2).saturating_add(hang_floor)
}

/// What was staged at `staged_at`, unless it is older than `max_age`: then it counts as missing.
///
/// A time in the future counts as fresh, since a clock set back must not lose a signal.
pub fn usable<T>(staged: T, staged_at: Timestamp, now: Timestamp, max_age: Duration) -> Option<T> {
    (now.since(staged_at) <= max_age).then_some(staged)
}
