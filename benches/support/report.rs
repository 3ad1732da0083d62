//! Figures as rows of one table, each beside its baseline and its budget.

use std::fmt;
use std::time::Duration;

use super::is_short;

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub enum Figure {
    /// Time that passed, or processor time.
    Time(Duration),
    /// Processor time within one second.
    PerSecond(Duration),
    /// Memory.
    Bytes(u64),
    /// A number of things.
    Count(u64),
}

impl Figure {
    fn value(self) -> f64 {
        match self {
            Self::Time(time) | Self::PerSecond(time) => time.as_secs_f64(),
            Self::Bytes(count) | Self::Count(count) => count as f64,
        }
    }

    /// Whether it depends on how busy the machine is.
    fn is_timing(self) -> bool {
        matches!(self, Self::Time(_) | Self::PerSecond(_))
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Time(time) if time < Duration::from_millis(1) => write!(f, "{:.1} µs", time.as_secs_f64() * 1e6),
            Self::Time(time) => write!(f, "{:.2} ms", time.as_secs_f64() * 1e3),
            Self::PerSecond(time) => write!(f, "{:.2} ms/s", time.as_secs_f64() * 1e3),
            Self::Bytes(bytes) => write!(f, "{:.1} MB", bytes as f64 / 1e6),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

/// What a figure may be.
#[derive(Clone, Copy, Debug)]
pub enum Budget {
    /// At most this many times the baseline.
    Times(f64),
    /// At most this.
    AtMost(Figure),
    /// None is promised; the figure explains another one.
    Open,
}

/// The head of the table.
pub fn head() {
    if is_short() {
        println!("A short run: it shows that everything runs, and judges nothing that depends on the load.");
    }
    println!("| what | measured | baseline | ratio | budget | |");
    println!("|---|---|---|---|---|---|");
}

/// One row of the table: a figure, and beside it what it is compared with. A short run judges no timing.
pub fn row(what: &str, figure: Figure, baseline: Option<(&str, Figure)>, budget: Budget) {
    let ratio = baseline.map(|(_, base)| figure.value() / base.value()).filter(|ratio| ratio.is_finite());
    let (promise, met) = match budget {
        Budget::Times(most) => (format!("≤ {most} ×"), ratio.map(|ratio| ratio <= most)),
        Budget::AtMost(most) => (format!("≤ {most}"), Some(figure.value() <= most.value())),
        Budget::Open => (String::new(), None),
    };
    let beside = baseline.map(|(name, base)| format!("{base} ({name})")).unwrap_or_default();
    let ratio = ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    let met = met.filter(|_| !(is_short() && figure.is_timing()));
    let verdict = met.map_or("", |met| if met { "met" } else { "MISSED" });
    println!("| {what} | {figure} | {beside} | {ratio} | {promise} | {verdict} |");
}
