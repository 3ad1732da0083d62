//! The liveness verdict: the specification's "Liveness signals" with the numbers of `protocol-facts` §15.4.
//!
//! Three questions, three files: does the process get scheduled (`watcher-heartbeat`), does the loop move
//! (`watcher-progress`), does a whole cycle complete (`watcher-cycle`). A slow cycle is load, not death.

use std::time::Duration;

use serde::Serialize;

/// The answer; its number is the exit code of `ng watcher-status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Alive and in time.
    #[serde(rename = "UP")]
    Up,
    /// Alive under load: leave it alone.
    #[serde(rename = "BUSY")]
    Busy,
    /// Not there.
    #[serde(rename = "DOWN")]
    Down,
    /// There is no heartbeat file.
    #[serde(rename = "NO-HEARTBEAT")]
    NoHeartbeat,
    /// Alive, but the loop or the cycle has stopped.
    #[serde(rename = "WEDGED")]
    Wedged,
}

impl Verdict {
    /// The exit code.
    pub const fn rc(self) -> u8 {
        match self {
            Self::Up => 0,
            Self::Busy => 1,
            Self::Down => 2,
            Self::NoHeartbeat => 3,
            Self::Wedged => 4,
        }
    }

    /// The printed word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Up => "UP",
            Self::Busy => "BUSY",
            Self::Down => "DOWN",
            Self::NoHeartbeat => "NO-HEARTBEAT",
            Self::Wedged => "WEDGED",
        }
    }
}

/// Whether the recorded process is a live watcher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// It runs, and its program is the watcher.
    Watcher,
    /// There is no such process, or it is another program (the pid was used again).
    NotWatcher,
    /// No pid was recorded, or the process cannot be looked at.
    #[default]
    CannotTell,
}

/// Whether somebody holds the instance lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockState {
    /// Somebody does; on this host that is a live process, whatever its pid namespace.
    Held,
    /// Nobody does, or there is no lock file.
    Free,
    /// It cannot be tried.
    #[default]
    CannotTell,
}

/// What the verdict looks at. Ages are `None` where there is no such file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Age of `watcher-heartbeat`, by its modification time.
    pub heartbeat: Option<Duration>,
    /// The recorded process.
    pub holder: Identity,
    /// The instance lock.
    pub lock: LockState,
    /// Age of `watcher-progress`.
    pub progress: Option<Duration>,
    /// Age of `watcher-cycle`.
    pub cycle: Option<Duration>,
    /// Age of the youngest other sign of movement: scheduler log, service log, a child process.
    pub other_movement: Option<Duration>,
    /// Last measured period of the emit cycle, from `watcher-cycle`; zero means not measured yet.
    pub period: Duration,
    /// Its moving average; zero means not measured yet.
    pub ema: Duration,
}

/// The verdict and what led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The answer.
    pub verdict: Verdict,
    /// Why, in a few words.
    pub reason: String,
    /// The heartbeat says DOWN, and only a live process that moves makes it BUSY.
    pub is_lifted: bool,
    /// Age of the youngest sign of movement.
    pub movement: Option<Duration>,
    /// How old that may be before the watcher counts as wedged.
    pub wedge_cutoff: Duration,
    /// How old the last completed cycle may be before the watcher counts as wedged.
    pub cycle_cutoff: Duration,
}

/// How long nothing may move before a watcher counts as wedged: four cycles of the slower of the emit cadence and the
/// measured average, and 15 minutes at least.
pub fn wedge_cutoff(interval: Duration, ema: Duration) -> Duration {
    interval.max(ema).saturating_mul(4).max(Duration::from_secs(900))
}

/// Judges the facts for a watcher whose emit cadence is `interval` and that writes its heartbeat every `tick`.
///
/// `dead_cutoff` is how old a heartbeat may be before the watcher counts as dead; it only ever raises the usual
/// five intervals, or five ticks where the cadence is faster than the heartbeat.
pub fn judge(facts: &Facts, interval: Duration, tick: Duration, dead_cutoff: Option<Duration>) -> Judgement {
    let slowest = interval.max(facts.ema);
    let wedge_cutoff = wedge_cutoff(interval, facts.ema);
    let cycle_cutoff = slowest.saturating_mul(6).max(Duration::from_secs(1800));
    let movement = [facts.progress, facts.cycle, facts.other_movement].into_iter().flatten().min();
    let beat = interval.max(tick);
    let dead = beat.saturating_mul(5).max(dead_cutoff.unwrap_or_default());
    let fresh = beat.saturating_mul(2).saturating_add(Duration::from_secs(15));
    let s = |age: Duration| age.as_secs();

    let (mut verdict, mut reason) = match facts.heartbeat {
        None => (Verdict::NoHeartbeat, "there is no heartbeat file: no watcher has run here".to_owned()),
        Some(_) if facts.holder == Identity::NotWatcher && facts.lock == LockState::Free => {
            (Verdict::Down, "the recorded process is no live watcher and the instance lock is free".to_owned())
        }
        Some(age) if age > dead => (Verdict::Down, format!("the heartbeat is {}s old, over {}s", s(age), s(dead))),
        Some(age) if age > fresh => (Verdict::Busy, format!("the heartbeat is {}s old, over {}s", s(age), s(fresh))),
        Some(_) if facts.period > interval.saturating_mul(2) => {
            (Verdict::Busy, format!("a cycle takes {}s, over {}s", s(facts.period), s(interval.saturating_mul(2))))
        }
        Some(age) => (Verdict::Up, format!("the heartbeat is {}s old", s(age))),
    };
    let mut is_lifted = false;
    match verdict {
        Verdict::Up | Verdict::Busy => {
            if let Some(age) = movement.filter(|age| *age > wedge_cutoff) {
                verdict = Verdict::Wedged;
                reason = format!("alive, but nothing has moved for {}s, over {}s", s(age), s(wedge_cutoff));
            } else if let Some(age) = facts.cycle.filter(|age| *age > cycle_cutoff) {
                verdict = Verdict::Wedged;
                reason = format!("alive, but no cycle was completed for {}s, over {}s", s(age), s(cycle_cutoff));
            }
        }
        Verdict::Down | Verdict::NoHeartbeat => {
            if let (Identity::Watcher, Some(age)) = (facts.holder, movement.filter(|age| *age <= wedge_cutoff)) {
                verdict = Verdict::Busy;
                is_lifted = true;
                reason = format!("{reason}, but its process is alive and moved {}s ago", s(age));
            }
        }
        Verdict::Wedged => {}
    }
    Judgement { verdict, reason, is_lifted, movement, wedge_cutoff, cycle_cutoff }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(60);
    const TICK: Duration = Duration::from_secs(20);

    #[expect(clippy::unnecessary_wraps, reason = "it stands where the facts have an optional age")]
    fn age(secs: u64) -> Option<Duration> {
        Some(Duration::from_secs(secs))
    }

    /// A healthy watcher.
    fn healthy() -> Facts {
        Facts {
            heartbeat: age(5),
            holder: Identity::Watcher,
            lock: LockState::Held,
            progress: age(2),
            cycle: age(40),
            other_movement: age(2),
            period: Duration::from_secs(61),
            ema: Duration::from_secs(61),
        }
    }

    fn check(name: &str, facts: &Facts, expected: Verdict) {
        let judgement = judge(facts, INTERVAL, TICK, None);
        assert_eq!(judgement.verdict, expected, "{name}: {}", judgement.reason);
        assert_eq!(judgement.is_lifted, judgement.reason.contains("but its process is alive"), "{name}");
        assert!(!judgement.reason.is_empty());
    }

    #[test]
    fn the_table_of_the_specification_row_by_row() {
        use Identity::{CannotTell, NotWatcher, Watcher};
        use Verdict::{Busy, Down, NoHeartbeat, Up, Wedged};
        let facts = healthy();
        check("healthy", &facts, Up);
        check("no file at all", &Facts::default(), NoHeartbeat);
        check("aging", &Facts { heartbeat: age(200), ..facts }, Busy);
        check("long cycle", &Facts { period: Duration::from_secs(300), ..facts }, Busy);
        let gone = Facts { holder: NotWatcher, lock: LockState::Free, ..facts };
        check("process gone, lock free", &gone, Down);
        check("process gone, lock free, old files too", &Facts { heartbeat: age(9000), ..gone }, Down);
        check("dead-stale heartbeat", &Facts { heartbeat: age(301), holder: CannotTell, ..facts }, Down);
        check(
            "loop stopped",
            &Facts { progress: age(901), cycle: age(901), other_movement: age(901), ..facts },
            Wedged,
        );
        check("cycle stopped, loop moving", &Facts { cycle: age(1801), ..facts }, Wedged);
        // Another pid namespace: the pid means nothing here, the lock does.
        check("process not seen, lock held", &Facts { holder: NotWatcher, ..facts }, Up);
        // What cannot be told makes nobody dead.
        check(
            "process not seen, lock untried",
            &Facts { holder: NotWatcher, lock: LockState::CannotTell, ..facts },
            Up,
        );
        check("process unreadable, lock free", &Facts { holder: CannotTell, lock: LockState::Free, ..facts }, Up);
        let silent = Facts { progress: None, cycle: None, other_movement: None, ..facts };
        check("no sign of movement is no stop", &silent, Up);
        // A live process that moves is not restarted because its heartbeat is missing or old.
        check("stale heartbeat, live and moving", &Facts { heartbeat: age(5000), holder: Watcher, ..facts }, Busy);
        check("no heartbeat, live and moving", &Facts { heartbeat: None, holder: Watcher, ..facts }, Busy);
        check("stale heartbeat, live, nothing known to move", &Facts { heartbeat: age(5000), ..silent }, Down);
        check("no heartbeat, process gone", &Facts { heartbeat: None, ..gone }, NoHeartbeat);
    }

    #[test]
    fn a_heartbeat_slower_than_the_cadence_is_no_sign_of_load_or_death() {
        // Its process is in another pid namespace: only the heartbeat speaks for it.
        let facts = Facts { holder: Identity::NotWatcher, period: Duration::ZERO, ..healthy() };
        let second = Duration::from_secs(1);
        for (interval, tick, heartbeat, expected) in [
            (second, TICK, 20, Verdict::Up),
            (second, TICK, 55, Verdict::Up),
            (second, TICK, 56, Verdict::Busy),
            (second, TICK, 101, Verdict::Down),
            (INTERVAL, second * 300, 310, Verdict::Up),
            (INTERVAL, second, 136, Verdict::Busy),
        ] {
            let facts = Facts { heartbeat: age(heartbeat), ..facts };
            assert_eq!(judge(&facts, interval, tick, None).verdict, expected, "{interval:?} {tick:?} {heartbeat}");
        }
    }

    #[test]
    fn boundaries_belong_to_the_better_verdict() {
        use Verdict::{Busy, Down, Up, Wedged};
        // Not known to be alive, so that a dead-stale heartbeat is not lifted to BUSY.
        let facts = Facts { holder: Identity::CannotTell, ..healthy() };
        for (heartbeat, expected) in [(135, Up), (136, Busy), (300, Busy), (301, Down)] {
            check("heartbeat", &Facts { heartbeat: age(heartbeat), ..facts }, expected);
        }
        for (period, expected) in [(120, Up), (121, Busy)] {
            check("period", &Facts { period: Duration::from_secs(period), ..facts }, expected);
        }
        for (moved, expected) in [(900, Up), (901, Wedged)] {
            check(
                "movement",
                &Facts { progress: age(moved), cycle: age(moved), other_movement: None, ..facts },
                expected,
            );
        }
        for (cycle, expected) in [(1800, Up), (1801, Wedged)] {
            check("cycle", &Facts { cycle: age(cycle), ..facts }, expected);
        }
        for (moved, expected) in [(900, Busy), (901, Down)] {
            let stale = Facts { heartbeat: age(400), holder: Identity::Watcher, ..healthy() };
            check(
                "lifted to busy",
                &Facts { progress: age(moved), cycle: None, other_movement: None, ..stale },
                expected,
            );
        }
    }

    #[test]
    fn a_dead_cutoff_only_raises() {
        let facts = Facts { heartbeat: age(350), holder: Identity::CannotTell, ..healthy() };
        for (cutoff, expected) in
            [(None, Verdict::Down), (age(100), Verdict::Down), (age(349), Verdict::Down), (age(350), Verdict::Busy)]
        {
            assert_eq!(judge(&facts, INTERVAL, TICK, cutoff).verdict, expected, "{cutoff:?}");
        }
    }

    #[test]
    fn cutoffs_grow_with_the_measured_period() {
        for (ema, wedge, cycle) in [(0, 900, 1800), (225, 900, 1800), (226, 904, 1800), (301, 1204, 1806)] {
            let judgement = judge(&Facts { ema: Duration::from_secs(ema), ..healthy() }, INTERVAL, TICK, None);
            assert_eq!((judgement.wedge_cutoff.as_secs(), judgement.cycle_cutoff.as_secs()), (wedge, cycle), "{ema}");
        }
    }

    #[test]
    fn exit_codes_are_those_of_the_contract() {
        use Verdict::{Busy, Down, NoHeartbeat, Up, Wedged};
        assert_eq!([Up, Busy, Down, NoHeartbeat, Wedged].map(Verdict::rc), [0, 1, 2, 3, 4]);
    }
}
