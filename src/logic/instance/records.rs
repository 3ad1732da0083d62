//! The text of the small liveness files: `watcher-heartbeat`, `watcher-progress`, `watcher-cycle`, `watcher.lock`
//! (`protocol-facts` §1.1). Readers take whatever lines fit and ignore the rest.

use std::time::Duration;

use crate::logic::time::{Now, Timestamp};

/// The `key<separator>value` lines of a text, trimmed; lines without the separator are passed over.
pub(super) fn fields(text: &str, separator: char) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(move |line| line.split_once(separator)).map(|(key, value)| (key.trim(), value.trim()))
}

/// The value of the first line with this key, fit to be printed.
pub fn field(text: &str, separator: char, key: &str) -> Option<String> {
    fields(text, separator).find(|(found, _)| *found == key).map(|(_, value)| one_line(value))
}

/// A value without the line ends and control characters that could forge another line.
pub(super) fn one_line(value: &str) -> String {
    value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `watcher-heartbeat`: the watcher gets scheduled. Its age is the file's, not `ts`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Process of the watcher.
    pub pid: Option<u32>,
    /// When it was written, as printed.
    pub ts: Option<String>,
    /// The target window.
    pub target: Option<String>,
}

impl Heartbeat {
    /// The file's text.
    pub fn render(pid: u32, now: &Now, target: &str) -> String {
        format!("pid={pid}\nts={}\ntarget={}\n", now.iso(), one_line(target))
    }

    /// Reads what there is.
    pub fn parse(text: &str) -> Self {
        let get = |key| field(text, '=', key);
        Self { pid: get("pid").and_then(|pid| pid.parse().ok()), ts: get("ts"), target: get("target") }
    }
}

/// The text of `watcher-progress`: the loop moved, at this stage.
pub fn progress(pid: u32, now: &Now, stage: &str) -> String {
    format!("pid={pid}\nepoch={}\nts={}\nstage={}\n", now.at.secs(), now.iso(), one_line(stage))
}

/// `watcher-cycle`: an emit cycle was completed, and how long cycles take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cycle {
    /// When the last one was completed; `None` in a file that cannot be read.
    pub at: Option<Timestamp>,
    /// Time since the one before; zero means not measured yet.
    pub period: Duration,
    /// Moving average of the period.
    pub ema: Duration,
}

impl Cycle {
    /// The record at the start of a watcher: nothing measured, and the clock of the first cycle runs.
    pub fn starting(now: &Now) -> Self {
        Self { at: Some(now.at), period: Duration::ZERO, ema: Duration::ZERO }
    }

    /// The record after a cycle that was completed at `now`.
    #[must_use]
    pub fn completed(self, now: &Now) -> Self {
        let period = self.at.map_or(Duration::ZERO, |at| Duration::from_secs(now.at.since(at).as_secs()));
        let ema = if self.ema.is_zero() {
            period
        } else {
            Duration::from_secs((self.ema.as_secs().saturating_mul(3).saturating_add(period.as_secs())) / 4)
        };
        Self { at: Some(now.at), period, ema }
    }

    /// The file's text.
    pub fn render(self, pid: u32, now: &Now) -> String {
        format!(
            "pid={pid}\nepoch={}\nts={}\nperiod_s={}\nema_s={}\n",
            self.at.unwrap_or(now.at).secs(),
            now.iso(),
            self.period.as_secs(),
            self.ema.as_secs()
        )
    }

    /// Reads what there is.
    pub fn parse(text: &str) -> Self {
        let number = |key| field(text, '=', key).and_then(|value| value.parse::<u64>().ok());
        let secs = |key| Duration::from_secs(number(key).unwrap_or(0));
        Self {
            at: number("epoch").and_then(|epoch| i64::try_from(epoch).ok()).map(Timestamp::from_secs),
            period: secs("period_s"),
            ema: secs("ema_s"),
        }
    }
}

/// `watcher.lock`: who runs, for people and old scripts. It guards nothing; the instance lock does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PidLock {
    /// Process of the watcher.
    pub pid: Option<u32>,
    /// When it started, as printed.
    pub started_at: Option<String>,
}

impl PidLock {
    /// The file's text.
    pub fn render(pid: u32, started: &Now, target: &str, interval: Duration) -> String {
        format!(
            "pid: {pid}\nstarted_at: {}\ntarget_window: {}\ntmux_window: headless\ninterval_seconds: {}\n",
            started.iso(),
            one_line(target),
            interval.as_secs()
        )
    }

    /// Reads what there is.
    pub fn parse(text: &str) -> Self {
        let get = |key| field(text, ':', key);
        Self { pid: get("pid").and_then(|pid| pid.parse().ok()), started_at: get("started_at") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Now {
        Now::fixed(Timestamp::from_secs(secs))
    }

    #[test]
    fn the_files_have_the_lines_of_the_protocol() {
        let now = at(1000);
        let ts = "1970-01-01T00:16:40+00:00";
        assert_eq!(Heartbeat::render(7, &now, "orch"), format!("pid=7\nts={ts}\ntarget=orch\n"));
        assert_eq!(progress(7, &now, "loop-tick"), format!("pid=7\nepoch=1000\nts={ts}\nstage=loop-tick\n"));
        assert_eq!(
            Cycle::starting(&at(940)).completed(&now).render(7, &now),
            format!("pid=7\nepoch=1000\nts={ts}\nperiod_s=60\nema_s=60\n")
        );
        assert_eq!(
            PidLock::render(7, &now, "orch", Duration::from_secs(60)),
            format!("pid: 7\nstarted_at: {ts}\ntarget_window: orch\ntmux_window: headless\ninterval_seconds: 60\n")
        );
    }

    #[test]
    fn the_files_read_back_and_a_name_forges_no_line() {
        let now = at(1000);
        let heartbeat = Heartbeat::parse(&Heartbeat::render(7, &now, "a=b\npid=1"));
        assert_eq!((heartbeat.pid, heartbeat.target.as_deref()), (Some(7), Some("a=b pid=1")));
        let cycle = Cycle { at: Some(now.at), period: Duration::from_secs(62), ema: Duration::from_secs(61) };
        assert_eq!(Cycle::parse(&cycle.render(7, &now)), cycle);
        let lock = PidLock::parse(&PidLock::render(7, &now, "orch", Duration::from_secs(60)));
        assert_eq!((lock.pid, lock.started_at.as_deref()), (Some(7), Some("1970-01-01T00:16:40+00:00")));
    }

    #[test]
    fn rubbish_reads_as_nothing_known() {
        for text in ["", "\n\n", "pid", "pid=x\nepoch=-5\nperiod_s=1e9\nema_s=", "\u{1b}[31m=\u{0}"] {
            assert_eq!(Heartbeat::parse(text).pid, None, "{text:?}");
            assert_eq!(Cycle::parse(text), Cycle::default(), "{text:?}");
            assert_eq!(PidLock::parse(text).pid, None, "{text:?}");
        }
    }

    #[test]
    fn the_average_moves_by_a_quarter() {
        // (ema before, period, ema after)
        for (before, period, after) in [(0, 60, 60), (60, 60, 60), (60, 100, 70), (100, 0, 75)] {
            let cycle = Cycle {
                at: Some(Timestamp::from_secs(1000)),
                period: Duration::ZERO,
                ema: Duration::from_secs(before),
            };
            assert_eq!(cycle.completed(&at(1000 + period)).ema.as_secs(), after, "{before} {period}");
        }
    }
}
