//! The queue itself: the task records and every rule that moves `next_fire`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::{Phase, RC_TIMED_OUT, RC_TRY_LATER, Telemetry};
use crate::logic::time::{Now, Timestamp};

/// The least the loop sleeps, and the least that lies between a run and the next.
const TICK: Duration = Duration::from_secs(1);

/// Cadence that a nudged task runs at.
const NUDGE_EVERY: Duration = Duration::from_secs(5);
/// How long it stays there.
const NUDGE_LASTING: Duration = Duration::from_secs(60);

/// A wall clock that fell behind the monotonic one by more than this was set back, not slewed.
const SET_BACK: Duration = Duration::from_secs(2);

/// The settings of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest sleep, so that a signal is seen within a bounded time.
    pub max_sleep: Duration,
    /// Least hang budget; zero switches the watchdog off.
    pub hang_floor: Duration,
    /// How often at most the hang budget is doubled after repeated timeouts.
    pub hang_backoff_cap: u32,
}

/// Whether the loop waits for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The run happens inside the tick.
    Sync,
    /// The run goes on beside the loop and is reaped later.
    Async,
}

/// When a task is next to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextFire {
    /// At once: never run yet, or forced. The protocol writes it as 0.
    DueNow,
    /// Not before this time.
    At(Timestamp),
}

impl NextFire {
    /// Whether the time has come.
    fn is_due(self, now: Timestamp) -> bool {
        match self {
            Self::DueNow => true,
            Self::At(at) => at <= now,
        }
    }

    /// Seconds since 1970 as in the telemetry; 0 means due now.
    pub fn epoch_s(self) -> i64 {
        match self {
            Self::DueNow => 0,
            Self::At(at) => at.secs(),
        }
    }
}

/// Another cadence for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    /// The cadence.
    pub every: Duration,
    /// It counts before this time.
    pub until: Timestamp,
}

/// Why a task cannot be registered. The protocol's return code for it is 64.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task name {0:?} is refused: it names files, so use one or more of a-z, 0-9 and _")]
pub struct BadTask(pub &'static str);

/// A run that the watchdog wants ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hung {
    /// The task.
    pub name: &'static str,
    /// How long the run has been going.
    pub age: Duration,
    /// How long it was given.
    pub budget: Duration,
    /// How long the next run will be given, if this one is ended.
    pub next_budget: Duration,
}

/// What is known of one task, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The task.
    pub name: &'static str,
    /// Its own cadence.
    pub every: Duration,
    /// Whether the loop waits for it.
    pub mode: Mode,
    /// Whether it runs at all.
    pub enabled: bool,
    /// When it is next to run.
    pub next_fire: NextFire,
    /// When it last ended (synchronous) or was started (asynchronous).
    pub last_fire: Option<Timestamp>,
    /// Return code of the last run that ended.
    pub last_rc: Option<i32>,
    /// How long that run took.
    pub last_elapsed: Option<Duration>,
    /// Another cadence, if one was asked for; it may have run out.
    pub hurried: Option<Override>,
    /// Uptime at which the run in flight was started.
    pub in_flight: Option<Duration>,
    /// Runs ended by the watchdog since one ended by itself.
    pub timeout_streak: u32,
}

impl Row {
    /// The cadence that counts at `now`.
    fn interval(&self, now: Timestamp) -> Duration {
        self.hurried.filter(|hurried| hurried.until > now).map_or(self.every, |hurried| hurried.every)
    }

    /// The next start after a run at `last_fire` that returned `rc`: missed periods are dropped, and a late tick causes
    /// no burst.
    fn next_after(&self, last_fire: Timestamp, rc: i32, now: Timestamp) -> Timestamp {
        let mut interval = self.interval(now);
        if rc == RC_TRY_LATER {
            let doubled = interval.saturating_mul(2).min(self.every.saturating_mul(4));
            interval = interval.max(doubled);
        }
        let candidate = last_fire.after(interval);
        if candidate > now { candidate } else { now.after(TICK) }
    }

    /// How long a run may take; `None` if the watchdog is off.
    fn hang_budget(&self, limits: &Limits, streak: u32) -> Option<Duration> {
        if limits.hang_floor.is_zero() {
            return None;
        }
        let doublings = streak.min(limits.hang_backoff_cap).min(31);
        Some(self.every.saturating_mul(4).max(limits.hang_floor).saturating_mul(1 << doublings))
    }

    /// The telemetry line of an event at `now`.
    fn telemetry(&self, now: &Now, rc: i32, elapsed: Duration, phase: Phase) -> Telemetry {
        Telemetry {
            ts: now.iso(),
            task: self.name.to_owned(),
            rc,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            next_fire: self.next_fire.epoch_s(),
            phase,
        }
    }
}

/// Every registered task and when it is next to run.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The settings.
    limits: Limits,
    /// The records; the map's order is the order of a tick (byte order of names).
    tasks: BTreeMap<&'static str, Row>,
    /// The latest time seen, to notice a clock that was set back.
    seen: Option<Now>,
}

impl Schedule {
    /// An empty schedule.
    pub fn new(limits: Limits) -> Self {
        Self { limits, tasks: BTreeMap::new(), seen: None }
    }

    /// Replaces the settings, keeping every record.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Gives a task another cadence, the first time no later than one such period from now. A task that is due now stays
    /// so, and an override goes on.
    pub fn set_every(&mut self, name: &str, every: Duration, now: &Now) -> bool {
        self.follow_clock(now);
        self.change(name, |row| {
            if row.every == every {
                return;
            }
            row.every = every;
            let pulled = now.at.after(every);
            if let NextFire::At(at) = row.next_fire
                && at > pulled
            {
                row.next_fire = NextFire::At(pulled);
            }
        })
    }

    /// Adds a task, due now; a name that is known keeps its timing and takes the cadence and mode given here.
    pub fn register(&mut self, name: &'static str, every: Duration, mode: Mode) -> Result<(), BadTask> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if name.is_empty() || !name.bytes().all(fits) {
            return Err(BadTask(name));
        }
        let fresh = Row {
            name,
            every,
            mode,
            enabled: true,
            next_fire: NextFire::DueNow,
            last_fire: None,
            last_rc: None,
            last_elapsed: None,
            hurried: None,
            in_flight: None,
            timeout_streak: 0,
        };
        let row = self.tasks.entry(name).or_insert(fresh);
        *row = Row { every, mode, enabled: true, ..*row };
        Ok(())
    }

    /// The tasks to run in this tick, in order. A run in flight keeps its task off the list and its `next_fire` as it
    /// is, so that the task starts with the first tick after the run ended. Overrides that have run out are dropped from
    /// the tasks that are about to run.
    pub fn due(&mut self, now: &Now) -> Vec<&'static str> {
        self.follow_clock(now);
        let mut due = Vec::new();
        for row in self.tasks.values_mut() {
            if row.enabled && row.in_flight.is_none() && row.next_fire.is_due(now.at) {
                row.hurried = row.hurried.filter(|hurried| hurried.until > now.at);
                due.push(row.name);
            }
        }
        due
    }

    /// A synchronous run ended at `now`. `None` if the task is not registered.
    pub fn finished(&mut self, name: &str, now: &Now, rc: i32, elapsed: Duration) -> Option<Telemetry> {
        self.follow_clock(now);
        let row = self.tasks.get_mut(name)?;
        row.last_fire = Some(now.at);
        row.last_rc = Some(rc);
        row.last_elapsed = Some(elapsed);
        row.next_fire = NextFire::At(row.next_after(now.at, rc, now.at));
        Some(row.telemetry(now, rc, elapsed, Phase::Sync))
    }

    /// An asynchronous run was started at `now`. `None` if the task is not registered.
    pub fn started(&mut self, name: &str, now: &Now) -> Option<Telemetry> {
        self.follow_clock(now);
        let row = self.tasks.get_mut(name)?;
        row.last_fire = Some(now.at);
        row.last_rc = Some(0);
        row.in_flight = Some(now.uptime);
        row.next_fire = NextFire::At(row.next_after(now.at, 0, now.at));
        Some(row.telemetry(now, 0, Duration::ZERO, Phase::AsyncStart))
    }

    /// An asynchronous run ended by itself. `None` if none is in flight.
    ///
    /// Code 75 pushes the next start as it would for a synchronous task, except one that was forced meanwhile.
    pub fn reaped(&mut self, name: &str, now: &Now, rc: i32) -> Option<Telemetry> {
        self.follow_clock(now);
        let row = self.tasks.get_mut(name)?;
        let elapsed = now.uptime.saturating_sub(row.in_flight.take()?);
        row.last_rc = Some(rc);
        row.last_elapsed = Some(elapsed);
        row.timeout_streak = 0;
        if let (RC_TRY_LATER, NextFire::At(at), Some(last_fire)) = (rc, row.next_fire, row.last_fire) {
            row.next_fire = NextFire::At(at.max(row.next_after(last_fire, rc, now.at)));
        }
        Some(row.telemetry(now, rc, elapsed, Phase::AsyncDone))
    }

    /// Runs in flight whose budget is spent. The daemon ends them with their whole process group, throws their output
    /// away and calls [`Self::timed_out`].
    pub fn hung(&self, now: &Now) -> Vec<Hung> {
        let hung = |row: &Row| {
            let age = now.uptime.saturating_sub(row.in_flight?);
            let budget = row.hang_budget(&self.limits, row.timeout_streak)?;
            let next_budget = row.hang_budget(&self.limits, row.timeout_streak.saturating_add(1))?;
            (age >= budget).then_some(Hung { name: row.name, age, budget, next_budget })
        };
        self.tasks.values().filter_map(hung).collect()
    }

    /// The run in flight was ended by the watchdog. `None` if none is in flight.
    pub fn timed_out(&mut self, name: &str, now: &Now) -> Option<Telemetry> {
        self.follow_clock(now);
        let row = self.tasks.get_mut(name)?;
        let elapsed = now.uptime.saturating_sub(row.in_flight.take()?);
        row.last_rc = Some(RC_TIMED_OUT);
        row.last_elapsed = Some(elapsed);
        row.timeout_streak = row.timeout_streak.saturating_add(1);
        Some(row.telemetry(now, RC_TIMED_OUT, elapsed, Phase::AsyncTimeout))
    }

    /// Makes a task due now. Returns whether it is registered, as the other controls do.
    pub fn force(&mut self, name: &str) -> bool {
        self.change(name, |row| row.next_fire = NextFire::DueNow)
    }

    /// Runs a task at another cadence for a while, the first time no later than one such period from now. A task that
    /// is due now stays so.
    pub fn hurry(&mut self, name: &str, every: Duration, lasting: Duration, now: &Now) -> bool {
        self.follow_clock(now);
        self.change(name, |row| {
            row.hurried = Some(Override { every, until: now.at.after(lasting) });
            let pulled = now.at.after(every);
            if let NextFire::At(at) = row.next_fire
                && at > pulled
            {
                row.next_fire = NextFire::At(pulled);
            }
        })
    }

    /// Makes a task due now and keeps it at 5 s for a minute: something is worth telling soon.
    pub fn nudge(&mut self, name: &str, now: &Now) -> bool {
        self.force(name) && self.hurry(name, NUDGE_EVERY, NUDGE_LASTING, now)
    }

    /// Says whether the loop waits for a task's next run; a run in flight goes on as it was started.
    pub fn set_mode(&mut self, name: &str, mode: Mode) -> bool {
        self.change(name, |row| row.mode = mode)
    }

    /// Leaves a task alone until `until`.
    pub fn skip_until(&mut self, name: &str, until: Timestamp, now: &Now) -> bool {
        self.follow_clock(now);
        self.change(name, |row| row.next_fire = NextFire::At(until.max(now.at)))
    }

    /// Switches a task on or off; off, it neither runs nor wakes the loop. Its timing stays.
    pub fn set_enabled(&mut self, name: &str, enabled: bool) -> bool {
        self.change(name, |row| row.enabled = enabled)
    }

    /// How long the loop may sleep: until the soonest task, at least a second, at most `max_sleep`.
    pub fn sleep(&self, now: &Now) -> Duration {
        let wait = |row: &Row| match row.in_flight {
            Some(started) => {
                let budget = row.hang_budget(&self.limits, row.timeout_streak)?;
                Some(started.saturating_add(budget).saturating_sub(now.uptime))
            }
            None if !row.enabled => None,
            None => match row.next_fire {
                NextFire::DueNow => Some(Duration::ZERO),
                NextFire::At(at) => Some(at.since(now.at)),
            },
        };
        let longest = self.limits.max_sleep.max(TICK);
        self.tasks.values().filter_map(wait).min().unwrap_or(longest).clamp(TICK, longest)
    }

    /// What is known of every task, by name.
    pub fn rows(&self) -> Vec<Row> {
        self.tasks.values().copied().collect()
    }

    /// The whole queue as text: a heading and one line a task.
    pub fn dump(&self, now: &Now) -> String {
        let mut text = format!(
            "scheduler now={} max_sleep={}s tasks={}",
            now.at.secs(),
            self.limits.max_sleep.as_secs(),
            self.tasks.len()
        );
        for row in self.tasks.values() {
            let _infallible = write!(
                text,
                "\n  {:<24} every={:<6} enabled={} async={} next_fire={:<10} rc={:<4} in_flight={}",
                row.name,
                format!("{}s", row.interval(now.at).as_secs()),
                u8::from(row.enabled),
                u8::from(row.mode == Mode::Async),
                row.next_fire.epoch_s(),
                row.last_rc.map_or_else(|| "-".to_owned(), |rc| rc.to_string()),
                u8::from(row.in_flight.is_some()),
            );
        }
        text
    }

    /// Changes one record; returns whether it exists.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut Row)) -> bool {
        self.tasks.get_mut(name).map(change).is_some()
    }

    /// Moves every time back when the wall clock was set back. A clock that went forward needs nothing: what is overdue
    /// runs once.
    fn follow_clock(&mut self, now: &Now) {
        if let Some(seen) = self.seen {
            let expected = seen.at.after(now.uptime.saturating_sub(seen.uptime));
            let behind = expected.since(now.at);
            if behind > SET_BACK {
                for row in self.tasks.values_mut() {
                    if let NextFire::At(at) = row.next_fire {
                        row.next_fire = NextFire::At(at.before(behind));
                    }
                    row.last_fire = row.last_fire.map(|at| at.before(behind));
                    row.hurried = row.hurried.map(|it| Override { until: it.until.before(behind), ..it });
                }
            }
        }
        self.seen = Some(*now);
    }
}
