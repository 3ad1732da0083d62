//! Points in time, ages, and how they are printed. Nothing here reads a clock.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, SecondsFormat, TimeZone, Utc};
use serde::{Deserialize, Serialize};

/// A point in time: whole milliseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since 1970.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// From whole seconds since 1970 (the unit of the protocol's files and of tmux).
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Milliseconds since 1970.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970, rounded down.
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// This much later.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// This much earlier.
    #[must_use]
    pub fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero if it is not after it (clocks step back).
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// ISO 8601 in seconds with offset: `2026-05-11T13:42:01-07:00` (UTC is written `+00:00`).
    pub fn iso(self, offset: FixedOffset) -> String {
        match offset.timestamp_millis_opt(self.0).single() {
            Some(time) => time.to_rfc3339_opts(SecondsFormat::Secs, false),
            None => format!("@{}", self.secs()),
        }
    }

    /// Reads an ISO 8601 time with offset.
    pub fn parse_iso(text: &str) -> Option<Self> {
        DateTime::parse_from_rfc3339(text.trim()).ok().map(|time| Self(time.timestamp_millis()))
    }

    /// UTC as used in archive file names: `2026-05-11_20-42-01`.
    pub fn file_stamp(self) -> String {
        match Utc.timestamp_millis_opt(self.0).single() {
            Some(time) => time.format("%Y-%m-%d_%H-%M-%S").to_string(),
            None => format!("@{}", self.secs()),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.iso(utc()))
    }
}

/// The offset zero.
pub fn utc() -> FixedOffset {
    FixedOffset::east_opt(0).expect("zero is a valid offset")
}

/// What a decision knows of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Wall-clock time; can jump in both directions.
    pub at: Timestamp,
    /// Monotonic time since an arbitrary start; stands still while the machine is suspended.
    pub uptime: Duration,
    /// Offset of local time, for what people read.
    pub offset: FixedOffset,
}

impl Now {
    /// A `now` at this time, in UTC, for tests and offline use.
    pub fn fixed(at: Timestamp) -> Self {
        Self { at, uptime: Duration::from_millis(u64::try_from(at.millis()).unwrap_or(0)), offset: utc() }
    }

    /// The wall-clock time as ISO 8601 in local time.
    pub fn iso(&self) -> String {
        self.at.iso(self.offset)
    }
}

/// An age for people: `45s`, `8m`, `1h12m` (`contracts.md`: the specification's form).
pub fn age_text(age: Duration) -> String {
    let secs = age.as_secs();
    match secs {
        0..=59 => format!("{secs}s"),
        60..=3599 => format!("{}m", secs / 60),
        _ => format!("{}h{:02}m", secs / 3600, secs % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_the_form_of_the_specification() {
        for (secs, text) in
            [(0, "0s"), (59, "59s"), (60, "1m"), (480, "8m"), (3599, "59m"), (4320, "1h12m"), (90_000, "25h00m")]
        {
            assert_eq!(age_text(Duration::from_secs(secs)), text);
        }
    }

    #[test]
    fn iso_times_carry_the_offset_and_read_back() {
        let offset = FixedOffset::west_opt(7 * 3600).unwrap();
        let at = Timestamp::parse_iso("2026-05-11T13:42:01-07:00").unwrap();
        assert_eq!(at.iso(offset), "2026-05-11T13:42:01-07:00");
        assert_eq!(at.iso(utc()), "2026-05-11T20:42:01+00:00");
        assert_eq!(at.file_stamp(), "2026-05-11_20-42-01");
    }

    #[test]
    fn whole_seconds_are_rounded_down_before_1970_too() {
        assert_eq!((Timestamp::from_millis(1999).secs(), Timestamp::from_millis(-1).secs()), (1, -1));
    }

    #[test]
    fn an_age_is_never_negative() {
        assert_eq!(Timestamp::from_secs(5).since(Timestamp::from_secs(9)), Duration::ZERO);
    }
}
