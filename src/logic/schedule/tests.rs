//! One row for each rule of `protocol-facts` §2, the cadence table of the specification, and what must hold after any
//! sequence of calls.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::logic::time::{Now, Timestamp};

const LIMITS: Limits =
    Limits { max_sleep: Duration::from_secs(10), hang_floor: Duration::from_secs(300), hang_backoff_cap: 2 };

fn at(secs: i64) -> Now {
    Now::fixed(Timestamp::from_secs(secs))
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A schedule with one task `t`.
fn one(every: u64, mode: Mode) -> Schedule {
    let mut schedule = Schedule::new(LIMITS);
    schedule.register("t", secs(every), mode).unwrap();
    schedule
}

fn next_fire(schedule: &Schedule) -> i64 {
    schedule.rows()[0].next_fire.epoch_s()
}

/// Runs `steps` on a task of 60 s that ended at 1000 with `rc`, and compares `next_fire`.
fn check(rule: &str, mode: Mode, steps: impl FnOnce(&mut Schedule), expected: i64) {
    let mut schedule = one(60, mode);
    steps(&mut schedule);
    assert_eq!(next_fire(&schedule), expected, "{rule}");
}

#[test]
fn another_cadence_pulls_a_later_start_and_keeps_the_rest() {
    let check = |rule: &str, every: u64, expected: (i64, i64)| {
        let mut schedule = one(60, Mode::Sync);
        schedule.finished("t", &at(1000), 0, secs(1));
        assert!(schedule.set_every("t", secs(every), &at(1010)));
        let pulled = next_fire(&schedule);
        schedule.finished("t", &at(1100), 0, secs(1));
        assert_eq!((pulled, next_fire(&schedule)), expected, "{rule}");
    };
    check("shorter: no later than one period from now", 5, (1015, 1105));
    check("shorter, but not nearer than what was planned", 55, (1060, 1155));
    check("longer: once more as planned, then as set", 600, (1060, 1700));
    check("the same", 60, (1060, 1160));

    let mut fresh = one(60, Mode::Sync);
    fresh.set_every("t", secs(600), &at(1000));
    assert_eq!(next_fire(&fresh), 0, "due now stays due now");
    assert!(!fresh.set_every("unknown", secs(1), &at(1000)));
    let mut hurried = one(60, Mode::Sync);
    hurried.finished("t", &at(1000), 0, secs(1));
    hurried.hurry("t", secs(2), secs(60), &at(1000));
    hurried.set_every("t", secs(600), &at(1001));
    hurried.finished("t", &at(1010), 0, secs(1));
    assert_eq!(next_fire(&hurried), 1012, "an override goes on");
}

#[test]
fn next_fire_follows_the_formula_row_by_row() {
    use Mode::{Async, Sync};
    let done = |s: &mut Schedule, rc| drop(s.finished("t", &at(1000), rc, secs(1)));
    let hurry = |s: &mut Schedule, every| s.hurry("t", secs(every), secs(60), &at(1000));

    check("a fresh task is due now", Sync, |_| {}, 0);
    check("anchored at the end of a run", Sync, |s| done(s, 0), 1060);
    check("75 doubles once", Sync, |s| done(s, 75), 1120);
    check("any other code keeps the cadence", Sync, |s| done(s, 1), 1060);
    check("124 keeps the cadence", Sync, |s| done(s, 124), 1060);
    check(
        "the run after a 75 starts from the base again",
        Sync,
        |s| {
            done(s, 75);
            s.finished("t", &at(1120), 0, secs(1));
        },
        1180,
    );
    check(
        "two 75 in a row do not add up",
        Sync,
        |s| {
            done(s, 75);
            s.finished("t", &at(1120), 75, secs(1));
        },
        1240,
    );
    check(
        "an override counts while it lasts",
        Sync,
        |s| {
            hurry(s, 5);
            done(s, 0);
        },
        1005,
    );
    check(
        "75 doubles the override",
        Sync,
        |s| {
            hurry(s, 5);
            done(s, 75);
        },
        1010,
    );
    check(
        "75 goes to four base intervals at most",
        Sync,
        |s| {
            hurry(s, 200);
            done(s, 75);
        },
        1240,
    );
    check(
        "75 never makes a task faster",
        Sync,
        |s| {
            hurry(s, 600);
            done(s, 75);
        },
        1600,
    );
    check(
        "an override that ran out does not count",
        Sync,
        |s| {
            hurry(s, 5);
            s.finished("t", &at(1060), 0, secs(1));
        },
        1120,
    );
    check("asynchronous: anchored at the start", Async, |s| drop(s.started("t", &at(1000))), 1060);
    check(
        "asynchronous: 75 counts at the reap, from the start",
        Async,
        |s| {
            s.started("t", &at(1000));
            s.reaped("t", &at(1030), 75);
        },
        1120,
    );
    check(
        "asynchronous: 75 after both periods passed is a second away",
        Async,
        |s| {
            s.started("t", &at(1000));
            s.reaped("t", &at(1200), 75);
        },
        1201,
    );
    check(
        "asynchronous: a force while it ran outlives a 75",
        Async,
        |s| {
            s.started("t", &at(1000));
            s.force("t");
            s.reaped("t", &at(1010), 75);
        },
        0,
    );
    check(
        "asynchronous: other codes at the reap change nothing",
        Async,
        |s| {
            s.started("t", &at(1000));
            s.reaped("t", &at(1030), 3);
        },
        1060,
    );
}

#[test]
fn an_interval_of_zero_is_a_second_away_and_no_burst() {
    let mut schedule = one(0, Mode::Sync);
    schedule.finished("t", &at(1000), 0, secs(0));
    assert_eq!(next_fire(&schedule), 1001);
}

#[test]
fn missed_periods_are_dropped() {
    let mut schedule = one(60, Mode::Sync);
    schedule.finished("t", &at(1000), 0, secs(1));
    // The machine slept for ten hours: one run, and the next a full period later.
    assert_eq!(schedule.due(&at(37_000)), ["t"]);
    schedule.finished("t", &at(37_001), 0, secs(1));
    assert!(schedule.due(&at(37_002)).is_empty());
    assert_eq!(next_fire(&schedule), 37_061);
}

#[test]
fn controls_move_next_fire_row_by_row() {
    // Each starts with a run that ended at 1000, so that the next is at 1060; the control comes at 1010.
    let now = at(1010);
    let settle = |s: &mut Schedule| drop(s.finished("t", &at(1000), 0, secs(1)));
    let check = |rule, control: &dyn Fn(&mut Schedule), expected| {
        check(
            rule,
            Mode::Sync,
            |s| {
                settle(s);
                control(s);
            },
            expected,
        );
    };
    check("force makes it due now", &|s| _ = s.force("t"), 0);
    check("an override pulls a later start", &|s| _ = s.hurry("t", secs(5), secs(60), &now), 1015);
    check("an override pushes nothing", &|s| _ = s.hurry("t", secs(500), secs(60), &now), 1060);
    check(
        "an override after a force leaves it due now",
        &|s| {
            s.force("t");
            s.hurry("t", secs(5), secs(60), &now);
        },
        0,
    );
    check("a nudge is a force and an override", &|s| _ = s.nudge("t", &now), 0);
    check(
        "after a nudge the cadence is 5 s",
        &|s| {
            s.nudge("t", &now);
            s.finished("t", &now, 0, secs(0));
        },
        1015,
    );
    check("skip until a later time", &|s| _ = s.skip_until("t", Timestamp::from_secs(5000), &now), 5000);
    check("skip until a time that has passed is now", &|s| _ = s.skip_until("t", Timestamp::from_secs(5), &now), 1010);
    check("registering again keeps the timing", &|s| s.register("t", secs(7), Mode::Async).unwrap(), 1060);
}

#[test]
fn a_forced_task_is_due_at_once_whatever_comes_after_it_by_name() {
    // The original kept the soonest time in a variable where 0 meant unset, so the next name hid a forced task.
    let mut schedule = Schedule::new(LIMITS);
    for name in ["a", "m", "z"] {
        schedule.register(name, secs(60), Mode::Sync).unwrap();
        schedule.finished(name, &at(1000), 0, secs(1));
    }
    for name in ["a", "m", "z"] {
        let mut schedule = schedule.clone();
        schedule.force(name);
        assert_eq!(schedule.sleep(&at(1001)), secs(1), "{name}");
        assert_eq!(schedule.due(&at(1001)), [name]);
    }
}

#[test]
fn a_tick_goes_in_byte_order_of_names() {
    let mut schedule = Schedule::new(LIMITS);
    for name in ["b", "a_b", "ab", "a1", "a"] {
        schedule.register(name, secs(1), Mode::Sync).unwrap();
    }
    assert_eq!(schedule.due(&at(1)), ["a", "a1", "a_b", "ab", "b"]);
}

#[test]
fn names_that_cannot_be_files_are_refused() {
    let mut schedule = Schedule::new(LIMITS);
    for name in ["", "a/b", "..", "A", "a b"] {
        assert_eq!(schedule.register(name, secs(1), Mode::Sync), Err(BadTask(name)));
    }
    assert!(!schedule.force("nobody"));
    assert_eq!(schedule.finished("nobody", &at(1), 0, secs(0)), None);
}

#[test]
fn a_run_in_flight_keeps_its_task_waiting_and_its_time_untouched() {
    let mut schedule = one(60, Mode::Async);
    schedule.started("t", &at(1000));
    assert!(schedule.due(&at(1200)).is_empty());
    assert_eq!(next_fire(&schedule), 1060);
    schedule.reaped("t", &at(1201), 0);
    assert_eq!(schedule.due(&at(1201)), ["t"], "the first tick after the reap");
    assert_eq!(schedule.reaped("t", &at(1201), 0), None, "nothing is in flight");
}

#[test]
fn a_disabled_task_neither_runs_nor_wakes_the_loop() {
    let mut schedule = one(60, Mode::Sync);
    schedule.set_enabled("t", false);
    assert!(schedule.due(&at(1000)).is_empty());
    assert_eq!(schedule.sleep(&at(1000)), LIMITS.max_sleep);
    schedule.set_enabled("t", true);
    assert_eq!(schedule.due(&at(1000)), ["t"]);
}

#[test]
fn an_override_is_dropped_only_when_the_task_is_about_to_run() {
    let mut schedule = one(60, Mode::Sync);
    schedule.finished("t", &at(1000), 0, secs(1));
    schedule.hurry("t", secs(59), secs(10), &at(1000));
    schedule.due(&at(1050));
    assert!(schedule.rows()[0].hurried.is_some());
    assert_eq!(schedule.due(&at(1059)), ["t"]);
    assert_eq!(schedule.rows()[0].hurried, None);
}

#[test]
fn the_sleep_ends_with_the_soonest_task_row_by_row() {
    // (start of the next run, sleep at 1000)
    for (next, sleep) in [(995, 1), (1000, 1), (1001, 1), (1004, 4), (1010, 10), (1011, 10), (9999, 10)] {
        let mut schedule = one(60, Mode::Sync);
        schedule.skip_until("t", Timestamp::from_secs(next), &at(900));
        assert_eq!(schedule.sleep(&at(1000)), secs(sleep), "{next}");
    }
    assert_eq!(Schedule::new(LIMITS).sleep(&at(1000)), secs(10), "no task");
    let tight = Limits { max_sleep: Duration::ZERO, ..LIMITS };
    assert_eq!(Schedule::new(tight).sleep(&at(1000)), secs(1), "a bound below a second is a second");
}

#[test]
fn a_run_in_flight_wakes_the_loop_for_its_watchdog_only() {
    let mut schedule = one(1, Mode::Async);
    schedule.started("t", &at(1000));
    assert_eq!(schedule.sleep(&at(1100)), secs(10), "due, but in flight");
    assert_eq!(schedule.sleep(&at(1297)), secs(3), "three seconds of its budget are left");
}

#[test]
fn the_hang_budget_grows_with_each_timeout_and_is_reset_by_a_clean_end() {
    // (interval, streak, budget): max(4 × interval, 300) doubled at most twice.
    for (every, streak, budget) in
        [(15, 0, 300), (75, 0, 300), (76, 0, 304), (600, 0, 2400), (15, 1, 600), (15, 2, 1200), (15, 3, 1200)]
    {
        let mut schedule = one(every, Mode::Async);
        let mut now = 1000;
        for _ in 0..streak {
            schedule.started("t", &at(now));
            now += 10_000;
            assert_eq!(schedule.hung(&at(now)).len(), 1);
            let line = schedule.timed_out("t", &at(now)).unwrap();
            assert_eq!((line.rc, line.phase), (124, Phase::AsyncTimeout));
        }
        schedule.started("t", &at(now));
        assert!(schedule.hung(&at(now + budget - 1)).is_empty(), "{every} {streak}");
        assert_eq!(
            schedule.hung(&at(now + budget))[0].budget,
            secs(u64::try_from(budget).unwrap()),
            "{every} {streak}"
        );
        schedule.reaped("t", &at(now + budget), 0);
        assert_eq!(schedule.rows()[0].timeout_streak, 0);
    }
}

#[test]
fn a_timeout_keeps_the_cadence_and_lets_the_task_start_again() {
    let mut schedule = one(60, Mode::Async);
    schedule.started("t", &at(1000));
    schedule.timed_out("t", &at(1300));
    assert_eq!(next_fire(&schedule), 1060);
    assert_eq!(schedule.due(&at(1300)), ["t"]);
}

#[test]
fn a_floor_of_zero_switches_the_watchdog_off() {
    let mut schedule = Schedule::new(Limits { hang_floor: Duration::ZERO, ..LIMITS });
    schedule.register("t", secs(1), Mode::Async).unwrap();
    schedule.started("t", &at(0));
    assert!(schedule.hung(&at(1_000_000)).is_empty());
}

#[test]
fn a_suspended_machine_hangs_nobody() {
    let mut schedule = one(60, Mode::Async);
    schedule.started("t", &at(1000));
    let woken = Now { uptime: secs(1001), ..at(50_000) };
    assert!(schedule.hung(&woken).is_empty());
}

#[test]
fn a_clock_set_back_does_not_stop_the_tasks() {
    let mut schedule = one(60, Mode::Sync);
    schedule.finished("t", &at(100_000), 0, secs(1));
    // Half a minute later by uptime, and a day earlier by the wall clock.
    let earlier = Now { uptime: secs(100_030), ..at(13_630) };
    assert!(schedule.due(&earlier).is_empty());
    assert_eq!(schedule.sleep(&earlier), secs(10));
    let later = Now { uptime: secs(100_060), ..at(13_660) };
    assert_eq!(schedule.due(&later), ["t"]);
}

#[test]
fn telemetry_has_the_keys_of_the_protocol_in_order() {
    let mut schedule = one(60, Mode::Async);
    let start = schedule.started("t", &at(1000)).unwrap().line();
    let ts = "1970-01-01T00:16:40+00:00";
    assert_eq!(
        start,
        format!(
            "{{\"ts\":\"{ts}\",\"task\":\"t\",\"rc\":0,\"elapsed_ms\":0,\"next_fire\":1060,\"phase\":\"async-start\"}}\n"
        )
    );
    let done = schedule.reaped("t", &at(1002), 3).unwrap();
    assert_eq!((done.rc, done.elapsed_ms, done.phase), (3, 2000, Phase::AsyncDone));
    assert_eq!(Telemetry::parse(&done.line()), Some(done));
    assert_eq!(Telemetry::parse("{\"ts\":\"cut"), None);
}

#[test]
fn the_dump_has_a_heading_and_one_line_a_task() {
    let mut schedule = one(60, Mode::Sync);
    schedule.finished("t", &at(1000), 75, secs(1));
    let dump = schedule.dump(&at(1001));
    let lines: Vec<&str> = dump.lines().collect();
    assert_eq!(lines[0], "scheduler now=1001 max_sleep=10s tasks=1");
    assert!(
        lines[1].contains("t ") && lines[1].contains("next_fire=1120") && lines[1].contains("rc=75"),
        "{}",
        lines[1]
    );
}

#[test]
fn a_nudge_needs_a_newer_file_with_content() {
    let file = |modified, is_empty| WatchedFile { path: "q", modified: Timestamp::from_secs(modified), is_empty };
    let mut nudge = Nudge::default();
    assert!(!nudge.advanced(&[]), "nothing there");
    assert!(nudge.advanced(&[file(5, false)]), "a file that appears");
    assert!(!nudge.advanced(&[file(5, false)]), "the same time");
    assert!(!nudge.advanced(&[file(6, true)]), "newer, empty");
    assert!(!nudge.advanced(&[file(6, false)]), "content without a newer time");
    assert!(nudge.advanced(&[file(7, false)]));
    assert!(!nudge.advanced(&[file(3, false)]), "an older copy");
}

#[derive(Clone, Debug)]
enum Call {
    Pass(u64),
    Due,
    Force(usize),
    Hurry(usize, u64, u64),
    Skip(usize, i64),
    Enable(usize, bool),
    Reap(usize, i32),
    Watchdog,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let rc = prop_oneof![Just(0), Just(75), Just(1)];
    let call = prop_oneof![
        (0..500_u64).prop_map(Call::Pass),
        Just(Call::Due),
        (0..3_usize).prop_map(Call::Force),
        (0..3_usize, 0..100_u64, 0..100_u64).prop_map(|(task, every, lasting)| Call::Hurry(task, every, lasting)),
        (0..3_usize, -100..500_i64).prop_map(|(task, by)| Call::Skip(task, by)),
        (0..3_usize, any::<bool>()).prop_map(|(task, on)| Call::Enable(task, on)),
        (0..3_usize, rc).prop_map(|(task, rc)| Call::Reap(task, rc)),
        Just(Call::Watchdog),
    ];
    proptest::collection::vec(call, 0..60)
}

proptest! {
    #[test]
    fn invariants_hold_after_any_sequence(calls in calls()) {
        const NAMES: [&str; 3] = ["one", "three", "two"];
        let mut schedule = Schedule::new(LIMITS);
        for (name, every, mode) in [("one", 2, Mode::Sync), ("two", 30, Mode::Async), ("three", 0, Mode::Async)] {
            schedule.register(name, secs(every), mode).unwrap();
        }
        let mut now = 1_000_000;
        for call in calls {
            match call {
                Call::Pass(by) => now += i64::try_from(by).unwrap(),
                Call::Due => {
                    let before = schedule.rows();
                    for name in schedule.due(&at(now)) {
                        let row = before.iter().find(|row| row.name == name).unwrap();
                        prop_assert!(row.enabled && row.in_flight.is_none(), "{name}");
                        match row.mode {
                            Mode::Sync => schedule.finished(name, &at(now), 0, secs(0)),
                            Mode::Async => schedule.started(name, &at(now)),
                        };
                        let next = schedule.rows().into_iter().find(|row| row.name == name).unwrap().next_fire;
                        prop_assert!(next.epoch_s() > now, "{name} {next:?}");
                    }
                    prop_assert!(schedule.due(&at(now)).is_empty(), "a tick fires each task once");
                }
                Call::Force(task) => _ = schedule.force(NAMES[task]),
                Call::Hurry(task, every, lasting) => _ = schedule.hurry(NAMES[task], secs(every), secs(lasting), &at(now)),
                Call::Skip(task, by) => _ = schedule.skip_until(NAMES[task], Timestamp::from_secs(now + by), &at(now)),
                Call::Enable(task, on) => _ = schedule.set_enabled(NAMES[task], on),
                Call::Reap(task, rc) => _ = schedule.reaped(NAMES[task], &at(now), rc),
                Call::Watchdog => for hung in schedule.hung(&at(now)) {
                    prop_assert!(hung.age >= hung.budget);
                    schedule.timed_out(hung.name, &at(now));
                },
            }
            let sleep = schedule.sleep(&at(now));
            prop_assert!(sleep >= secs(1) && sleep <= LIMITS.max_sleep);
        }
    }
}
