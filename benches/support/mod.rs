//! What the benches share: figures beside their baseline, processor time and memory of processes, a private tmux server
//! full of agents' screens, a bare control client, and the real watcher.
//!
//! Owns no measurement of its own. Everything that is started here ends with its value.

#![allow(dead_code, unreachable_pub, reason = "each bench uses its part")]
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::format_push_string,
    clippy::unchecked_time_subtraction,
    reason = "a bench reads clocks, starts programs, prints figures and ends at the first surprise"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

pub mod bare;
pub mod process;
pub mod report;
pub mod screens;
pub mod server;
pub mod watcher;

/// Whether only to show that the bench runs (`BENCH_SHORT=1`); its figures then mean nothing.
pub fn is_short() -> bool {
    std::env::var_os("BENCH_SHORT").is_some_and(|value| value != "0" && !value.is_empty())
}

/// A number from the environment.
pub fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).unwrap_or_default();
    if text.is_empty() { default } else { text.parse().unwrap_or_else(|_| panic!("{name}={text}: want a number")) }
}

/// `full` in a real run, `short` in a short one.
pub fn sized<T>(full: T, short: T) -> T {
    if is_short() { short } else { full }
}

/// The root of the repository.
pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Time that passes from here on.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts it.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// What has passed.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// How long a call takes.
pub fn timed<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    let watch = Stopwatch::start();
    let value = run();
    (value, watch.elapsed())
}

/// Waits until a condition holds; panics after a minute.
pub fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain for: {what}");
        pause(Duration::from_millis(20));
    }
}

/// Lets time pass: the time itself is part of what is measured.
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// What a process uses in a second while nobody asks anything of it.
pub fn spare(cpu: impl Fn() -> Duration, time: Duration) -> Duration {
    let (before, start) = (cpu(), Instant::now());
    pause(time);
    (cpu() - before).div_f64(start.elapsed().as_secs_f64())
}

/// The value below which this share of the values lies.
pub fn quantile(values: &[Duration], share: f64) -> Duration {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().checked_sub(1).expect("something was measured");
    sorted[(last as f64 * share).round() as usize]
}

/// The middle value.
pub fn median(values: &[Duration]) -> Duration {
    quantile(values, 0.5)
}
