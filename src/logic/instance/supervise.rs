//! What a supervisor of the watcher is told to do, and whether a revival is in order.

use std::time::Duration;

use super::verdict::{Judgement, Verdict};
use crate::logic::time::Timestamp;

/// How many revivals are let pass within [`GUARD_WINDOW`].
pub const GUARD_LIMIT: usize = 5;

/// The window in which revivals are counted.
pub const GUARD_WINDOW: Duration = Duration::from_secs(600);

/// How a line of the history of revivals ends.
const HISTORY_WORD: &str = "watcher-revive";

/// How old a heartbeat may be before a supervisor acts: later than the watcher's own guard against hung tasks, so that
/// the two do not race.
pub fn dead_cutoff(interval: Duration) -> Duration {
    let hang = interval.saturating_mul(4).max(Duration::from_secs(300));
    hang.saturating_add(interval.saturating_mul(2)).max(interval.saturating_mul(5))
}

/// What is known of a watcher that is supervised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation {
    /// Whether it lives.
    pub judgement: Judgement,
    /// Somebody stopped it on purpose.
    pub is_stopped: bool,
    /// A watcher runs that could not open the lock and only observes.
    pub observes: bool,
}

/// What a revival comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revival {
    /// It was stopped on purpose; nothing to do.
    Stopped,
    /// It lives; nothing to do.
    Alive,
    /// Its heartbeat is missing, but its process lives and moves: to restart it would end a healthy watcher.
    Moves,
    /// One runs without the lock, and a new one would fare no better.
    Observes,
    /// It was revived too often lately; a person must look.
    TooOften,
    /// Start it anew.
    Start,
}

impl Situation {
    /// Whether all is well.
    pub fn is_fine(&self) -> bool {
        matches!(self.judgement.verdict, Verdict::Up | Verdict::Busy)
    }

    /// What a supervisor does, a line each; nothing if all is well.
    pub fn advice(&self) -> Vec<&'static str> {
        if self.is_fine() {
            return Vec::new();
        }
        if self.is_stopped {
            return vec![
                "It was stopped on purpose (watcher-stop-requested): do not revive it.",
                "To have it back: monitor/watcher/launcher.sh",
            ];
        }
        if self.observes {
            return vec![
                "A watcher runs, but it could not open nexus-instance.lock and tells nobody anything.",
                "What is wrong with the lock: monitor/watcher/launcher.sh --instance-status",
                "It goes on by itself once the lock can be opened.",
            ];
        }
        let mut lines = match self.judgement.verdict {
            Verdict::Wedged => vec![
                "Its process lives, but its loop stands still. Keep the log: monitor/.state/logs/watcher.log",
                "Then start it anew: monitor/ng watcher revive",
            ],
            _ => vec!["Start it anew: monitor/ng watcher revive"],
        };
        lines.push(
            "If that says that it was revived too often, look into monitor/.state/logs before you start it again.",
        );
        lines
    }

    /// Decides on a revival. `history` is when there were others, in seconds since 1970.
    pub fn revival(&self, history: &[i64], now: Timestamp) -> Revival {
        if self.is_stopped {
            return Revival::Stopped;
        }
        if self.is_fine() {
            return if self.judgement.is_lifted { Revival::Moves } else { Revival::Alive };
        }
        if self.observes {
            return Revival::Observes;
        }
        let since = now.before(GUARD_WINDOW).secs();
        if history.iter().filter(|at| **at > since).count() >= GUARD_LIMIT { Revival::TooOften } else { Revival::Start }
    }
}

/// Reads the history of revivals; lines that do not fit are passed over.
pub fn parse_history(text: &str) -> Vec<i64> {
    text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// The history with a revival at `now`; what no longer counts is left out.
pub fn with_revival(history: &[i64], now: Timestamp) -> String {
    let since = now.before(GUARD_WINDOW).secs();
    let kept = history.iter().copied().filter(|at| *at > since).chain([now.secs()]);
    kept.fold(String::new(), |text, at| text + &format!("{at} {HISTORY_WORD}\n"))
}

/// The text of `watcher-revived`, which the first report after a revival tells and removes.
pub fn marker(judgement: &Judgement, heartbeat_age: Option<Duration>, detected_at: &str) -> String {
    let reason: String = judgement.reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!(
        "reason={} ({reason})\ndowntime_estimate_s={}\ndetected_at={detected_at}\nrestarted_by=orchestrator-monitor\n",
        judgement.verdict.word(),
        heartbeat_age.unwrap_or_default().as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn situation(verdict: Verdict) -> Situation {
        let judgement = Judgement {
            verdict,
            reason: "so it is".into(),
            is_lifted: false,
            movement: None,
            wedge_cutoff: Duration::ZERO,
            cycle_cutoff: Duration::ZERO,
        };
        Situation { judgement, is_stopped: false, observes: false }
    }

    #[test]
    fn the_cutoff_stays_above_the_watchers_own_guard() {
        for (interval, cutoff) in [(10, 320), (60, 420), (75, 450), (100, 600), (600, 3600), (0, 300)] {
            assert_eq!(dead_cutoff(Duration::from_secs(interval)).as_secs(), cutoff, "{interval}");
        }
    }

    #[test]
    fn a_revival_is_decided_row_by_row() {
        let now = Timestamp::from_secs(10_000);
        let lately = [9_401, 9_500, 9_600, 9_700, 9_999];
        let check = |name: &str, situation: &Situation, history: &[i64], expected: Revival| {
            assert_eq!(situation.revival(history, now), expected, "{name}");
        };
        for (verdict, expected) in [
            (Verdict::Up, Revival::Alive),
            (Verdict::Busy, Revival::Alive),
            (Verdict::Down, Revival::Start),
            (Verdict::NoHeartbeat, Revival::Start),
            (Verdict::Wedged, Revival::Start),
        ] {
            check(verdict.word(), &situation(verdict), &[], expected);
            let stopped = Situation { is_stopped: true, ..situation(verdict) };
            check("stopped on purpose", &stopped, &[], Revival::Stopped);
        }
        let mut lifted = situation(Verdict::Busy);
        lifted.judgement.is_lifted = true;
        check("its pid lives and moves", &lifted, &[], Revival::Moves);
        let down = situation(Verdict::Down);
        check("it observes", &Situation { observes: true, ..down.clone() }, &[], Revival::Observes);
        check("five within ten minutes", &down, &lately, Revival::TooOften);
        check("one of them is older", &down, &[9_400, 9_500, 9_600, 9_700, 9_999], Revival::Start);
        check("four", &down, &lately[1..], Revival::Start);
        check("it lives, whatever was", &situation(Verdict::Up), &lately, Revival::Alive);
    }

    #[test]
    fn advice_is_given_only_where_something_is_wrong() {
        for (verdict, words) in [
            (Verdict::Up, None),
            (Verdict::Busy, None),
            (Verdict::Down, Some("ng watcher revive")),
            (Verdict::NoHeartbeat, Some("ng watcher revive")),
            (Verdict::Wedged, Some("loop stands still")),
        ] {
            let advice = situation(verdict).advice().join("\n");
            assert_eq!(advice.is_empty(), words.is_none(), "{advice}");
            assert!(advice.contains(words.unwrap_or_default()), "{advice}");
        }
        let down = situation(Verdict::Down);
        let stopped = Situation { is_stopped: true, ..down.clone() }.advice().join("\n");
        assert!(stopped.contains("do not revive"), "{stopped}");
        let observes = Situation { observes: true, ..down }.advice().join("\n");
        assert!(observes.contains("--instance-status") && !observes.contains("revive"), "{observes}");
    }

    #[test]
    fn the_history_is_a_window_and_rubbish_in_it_is_passed_over() {
        let now = Timestamp::from_secs(10_000);
        let history = parse_history("9000 watcher-revive\nrubbish\n\n9900 watcher-revive\n");
        assert_eq!(history, [9000, 9900]);
        assert_eq!(with_revival(&history, now), "9900 watcher-revive\n10000 watcher-revive\n");
    }

    #[test]
    fn the_marker_has_the_lines_of_the_protocol() {
        let mut judgement = situation(Verdict::Down).judgement;
        judgement.reason = "gone\nrestarted_by=somebody".into();
        assert_eq!(
            marker(&judgement, Some(Duration::from_secs(75)), "2026-10-05T09:00:00-07:00"),
            "reason=DOWN (gone restarted_by=somebody)\ndowntime_estimate_s=75\n\
             detected_at=2026-10-05T09:00:00-07:00\nrestarted_by=orchestrator-monitor\n"
        );
    }
}
