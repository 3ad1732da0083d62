//! What repeats itself in vain: deliveries that the target's box refused, and deliveries that failed. When a person is to
//! be told, and when the watcher starts itself anew (`protocol-facts` §8.2, §8.4).

use std::time::Duration;

use super::Outcome;
use crate::logic::time::Timestamp;

/// So many refusals in a row are worth an alert …
const DEFERRALS: u32 = 3;

/// … if the first is so long ago. Each further alert comes after twice the time.
const DEFERRED_FOR: Duration = Duration::from_secs(900);

/// Most restarts in [`RESTART_WINDOW`].
const RESTARTS: usize = 3;

/// The window in which restarts are counted.
const RESTART_WINDOW: Duration = Duration::from_secs(3600);

/// Least time between two restarts.
const RESTART_COOLDOWN: Duration = Duration::from_secs(600);

/// What an outcome means for the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// It arrived: every count begins anew.
    Delivered,
    /// The box refused it.
    Deferred,
    /// It failed; a missing target is not a failure of the watcher's.
    Failed,
    /// Neither.
    Nothing,
}

impl Counts {
    /// What this outcome means.
    pub const fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Received(_) => Self::Delivered,
            Outcome::Held(_) => Self::Deferred,
            Outcome::Absent(_) | Outcome::Placed => Self::Nothing,
            Outcome::NoTmux(_) | Outcome::Failed(_) | Outcome::Unknown(_) => Self::Failed,
        }
    }
}

/// Refusals in a row: `paste-deferral/<target>`, `<count>\t<first-epoch>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deferrals {
    /// How many.
    pub count: u32,
    /// When the first was.
    pub first: Timestamp,
}

impl Deferrals {
    /// Reads the file; `None` for anything else, which counts as no refusal so far.
    pub fn parse(text: &str) -> Option<Self> {
        let (count, first) = text.trim().split_once('\t')?;
        Some(Self { count: count.parse().ok()?, first: Timestamp::from_secs(first.trim().parse().ok()?) })
    }

    /// The file's text.
    pub fn text(self) -> String {
        format!("{}\t{}\n", self.count, self.first.secs())
    }

    /// With one more.
    #[must_use]
    pub fn with_one_more(before: Option<Self>, now: Timestamp) -> Self {
        // A first time in the future is of a clock that was set back; nothing is known of it.
        let before = before.filter(|before| before.first <= now);
        before.map_or(Self { count: 1, first: now }, |before| Self { count: before.count.saturating_add(1), ..before })
    }

    /// How many alerts the episode is worth by now: one after a quarter of an hour, one more each time that it has lasted
    /// twice as long. One is due if fewer were given; what was missed is not made up for.
    pub fn alerts_due(self, now: Timestamp) -> u32 {
        let quarters = now.since(self.first).as_secs() / DEFERRED_FOR.as_secs();
        if self.count < DEFERRALS { 0 } else { quarters.checked_ilog2().map_or(0, |doubled| doubled + 1) }
    }
}

/// The alerts of an episode: `paste-deferral-alerts/<target>`, `<alerts>\t<first-epoch of the episode>`.
pub fn alerts_of(text: &str, episode: Deferrals) -> u32 {
    Deferrals::parse(text).filter(|of| of.first == episode.first).map_or(0, |of| of.count)
}

/// Reads `watcher-emit-delivery-fail.count`; anything but a number counts as none.
pub fn parse_count(text: &str) -> u32 {
    text.trim().parse().unwrap_or(0)
}

/// Whether so many failures in a row are worth an alert: at the limit, and at each doubling of it.
pub fn is_worth_saying(failures: u32, limit: u32) -> bool {
    let limit = limit.max(1);
    failures.is_multiple_of(limit) && (failures / limit).is_power_of_two()
}

/// Whether the watcher may start itself anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// Yes.
    Now,
    /// Not yet: the last one was a moment ago.
    Resting,
    /// No: it has not helped so often that something else is wrong.
    Tripped,
}

/// Judges a restart by the earlier ones, the lines `<epoch> <why>` of `watcher-self-heal-history.txt`. Times that lie in
/// the future don't count.
pub fn restart(history: &str, now: Timestamp) -> Restart {
    let earlier = || {
        let epochs = history.lines().filter_map(|line| line.split_whitespace().next()?.parse::<i64>().ok());
        epochs.map(Timestamp::from_secs).filter(|at| *at <= now && now.since(*at) < RESTART_WINDOW)
    };
    if earlier().any(|at| now.since(at) < RESTART_COOLDOWN) {
        Restart::Resting
    } else if earlier().count() >= RESTARTS {
        Restart::Tripped
    } else {
        Restart::Now
    }
}

/// The history with one more restart, older ones than the window left out.
pub fn remember_restart(history: &str, why: &str, now: Timestamp) -> String {
    let recent = history.lines().filter(|line| {
        let at = line.split_whitespace().next().and_then(|epoch| epoch.parse::<i64>().ok());
        at.is_some_and(|at| now.since(Timestamp::from_secs(at)) < RESTART_WINDOW)
    });
    let last = format!("{} {why}", now.secs());
    recent.chain([last.as_str()]).flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn the_count_has_the_form_of_the_protocol() {
        let first = Deferrals::with_one_more(None, at(100));
        assert_eq!(first.text(), "1\t100\n");
        let second = Deferrals::with_one_more(Deferrals::parse(&first.text()), at(160));
        assert_eq!(second.text(), "2\t100\n");
        for odd in ["", "x", "3", "3 100", "\t", "3\tx"] {
            assert_eq!(Deferrals::parse(odd), None, "{odd:?}");
        }
        assert_eq!(Deferrals::with_one_more(Deferrals::parse("7\t900\n"), at(160)).text(), "1\t160\n");
    }

    #[test]
    fn an_alert_needs_three_refusals_and_a_quarter_of_an_hour_and_its_reminders_wait_twice_as_long_each() {
        let check = |count: u32, age: i64, due: u32| {
            let deferrals = Deferrals { count, first: at(1000) };
            assert_eq!(deferrals.alerts_due(at(1000 + age)), due, "{count} {age}");
        };
        check(2, 5000, 0);
        check(3, 899, 0);
        check(3, 900, 1);
        check(9, 1799, 1);
        check(9, 1800, 2);
        check(9, 3599, 2);
        check(9, 3600, 3);
        check(9, -5, 0);
    }

    #[test]
    fn alerts_count_for_their_own_episode_only() {
        let episode = Deferrals { count: 9, first: at(1000) };
        assert_eq!(alerts_of("2\t1000\n", episode), 2);
        assert_eq!(alerts_of("2\t999\n", episode), 0);
        assert_eq!(alerts_of("garbage", episode), 0);
    }

    #[test]
    fn failures_are_said_at_the_limit_and_at_each_doubling() {
        let said: Vec<u32> = (0..=30).filter(|failures| is_worth_saying(*failures, 3)).collect();
        assert_eq!(said, [3, 6, 12, 24]);
    }

    #[test]
    fn restarts_rest_and_trip() {
        let check =
            |history: &str, expected: Restart| assert_eq!(restart(history, at(10_000)), expected, "{history:?}");
        check("", Restart::Now);
        check("9401 x\n", Restart::Resting);
        check("9400 x\n", Restart::Now);
        check("7000 x\n8000 x\n9000 x\n", Restart::Tripped);
        check("6400 x\n8000 x\n9000 x\n", Restart::Now);
        check("garbage\n\n99999 future\n", Restart::Now);
        assert_eq!(
            remember_restart("6400 x\n8000 x\nbad\n", "emit-delivery", at(10_000)),
            "8000 x\n10000 emit-delivery\n"
        );
    }

    #[test]
    fn a_missing_target_is_nobodys_failure() {
        let why = String::new;
        assert_eq!(Counts::of(&Outcome::Absent(why())), Counts::Nothing);
        assert_eq!(Counts::of(&Outcome::NoTmux(why())), Counts::Failed);
        assert_eq!(Counts::of(&Outcome::Failed(why())), Counts::Failed);
        assert_eq!(Counts::of(&Outcome::Unknown(why())), Counts::Failed);
    }
}
