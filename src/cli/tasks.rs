//! `ng tasks`: everything the watcher does on a schedule, and when it last did it.

use std::time::Duration;

use clap::{ArgMatches, Command};
use serde::Serialize;

use super::{Invocation, Verb, render};
use crate::config::resolved::Settings;
use crate::logic::schedule::{Phase, Telemetry};
use crate::logic::time::{Now, Timestamp, age_text};
use crate::sys::clock::Clock;
use crate::sys::files::StateDir;
use crate::sys::liveness;
use crate::sys::lock::{self, Probe};
use crate::tasks::TASKS;

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

fn command() -> Command {
    Command::new("tasks")
        .about("List every scheduled task, its cadence and its last run")
        .after_help("LAST and RC come from the scheduler's log, NEXT only while a watcher runs.")
}

fn run(invocation: &Invocation, _args: &ArgMatches) -> anyhow::Result<u8> {
    let settings = invocation.settings_of_watcher()?;
    let rows = rows(&settings, &Clock::System.now());
    if invocation.json {
        render::json(&rows)?;
    } else {
        for line in table(&rows) {
            render::line(&line);
        }
    }
    Ok(0)
}

/// One task, as printed.
#[derive(Debug, Serialize)]
pub(super) struct TaskRow {
    name: &'static str,
    every_s: u64,
    class: &'static str,
    /// How long ago the last run ended or was started.
    last_age_s: Option<u64>,
    last_rc: Option<i32>,
    last_elapsed_ms: Option<u64>,
    /// Whether a run has been started and has not ended.
    running: bool,
    /// In how many seconds it runs next; zero means now.
    next_in_s: Option<u64>,
    doc: &'static str,
}

/// Every task with what the scheduler's log says of it.
pub(super) fn rows(settings: &Settings, now: &Now) -> Vec<TaskRow> {
    let state = StateDir::new(&settings.state_dir);
    let runs = liveness::last_runs(&state);
    let is_running = matches!(lock::probe(&state), Probe::Held(_));
    let row = |spec: &crate::tasks::TaskSpec| {
        row(spec.name, (spec.every)(settings), spec.class.word(), spec.doc, runs.get(spec.name), is_running, now)
    };
    TASKS.iter().map(row).collect()
}

/// One task with its last record.
fn row(
    name: &'static str,
    every: Duration,
    class: &'static str,
    doc: &'static str,
    last: Option<&Telemetry>,
    is_running: bool,
    now: &Now,
) -> TaskRow {
    let started = last.is_some_and(|record| record.phase == Phase::AsyncStart);
    TaskRow {
        name,
        every_s: every.as_secs(),
        class,
        last_age_s: last.and_then(|record| Timestamp::parse_iso(&record.ts)).map(|at| now.at.since(at).as_secs()),
        last_rc: last.filter(|_| !started).map(|record| record.rc),
        last_elapsed_ms: last.filter(|_| !started).map(|record| record.elapsed_ms),
        running: started && is_running,
        next_in_s: last
            .filter(|_| is_running)
            .map(|record| Timestamp::from_secs(record.next_fire).since(now.at).as_secs()),
        doc,
    }
}

/// The rows under a heading, in columns.
pub(super) fn table(rows: &[TaskRow]) -> Vec<String> {
    let age = |secs: Option<u64>| secs.map(|secs| age_text(Duration::from_secs(secs)));
    let line = |cells: [&str; 7]| {
        let [name, every, class, last, rc, next, doc] = cells;
        format!("{name:<22} {every:>6} {class:<9} {last:>11} {rc:>7} {next:>10}  {doc}").trim_end().to_owned()
    };
    let mut lines = vec![line(["TASK", "EVERY", "CLASS", "LAST", "RC", "NEXT", "WHAT IT DOES"])];
    for row in rows {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let rc = if row.running { Some("running".to_owned()) } else { row.last_rc.map(|rc| rc.to_string()) };
        let next = match row.next_in_s {
            Some(0) => Some("now".to_owned()),
            other => age(other).map(|age| format!("in {age}")),
        };
        lines.push(line([
            row.name,
            &age_text(Duration::from_secs(row.every_s)),
            row.class,
            &or_dash(age(row.last_age_s).map(|age| format!("{age} ago"))),
            &or_dash(rc),
            &or_dash(next),
            row.doc,
        ]));
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The rows of the specification, "Registered tasks and cadences", for every task that is built: seconds and class.
    const SPECIFIED: &[(&str, u64, &str)] = &[
        ("bell_windows", 30, "cheap"),
        ("compose_emit", 60, "medium"),
        ("detect_unstick", 10, "medium"),
        ("full_state_snap", 600, "expensive"),
        ("functional_check", 600, "expensive"),
        ("idle_section", 30, "expensive"),
        ("orchestrator_liveness", 5, "cheap"),
        ("orphan_async_scan", 60, "expensive"),
        ("orphan_async_wakes", 15, "cheap"),
        ("over_limit_scan", 60, "expensive"),
        ("over_limit_wakes", 5, "cheap"),
        ("pending_decisions", 10, "cheap"),
        ("prune_archive", 600, "cheap"),
        ("requests_poll", 10, "cheap"),
        ("snapshot_local", 30, "medium"),
        ("target_window", 2, "cheap"),
    ];

    #[test]
    fn cadences_and_classes_are_those_of_the_specification() {
        let settings = Settings::defaults(Path::new("/x"));
        for spec in TASKS {
            let (_, every_s, class) = SPECIFIED
                .iter()
                .find(|(name, ..)| *name == spec.name)
                .unwrap_or_else(|| panic!("{} has no row of the specification here", spec.name));
            assert_eq!((spec.every)(&settings).as_secs(), *every_s, "{}", spec.name);
            assert_eq!(spec.class.word(), *class, "{}", spec.name);
        }
    }

    #[test]
    fn the_emit_follows_the_configured_interval() {
        let mut settings = Settings::defaults(Path::new("/x"));
        settings.interval = Duration::from_secs(90);
        let spec = TASKS.iter().find(|spec| spec.name == "compose_emit").unwrap();
        assert_eq!((spec.every)(&settings).as_secs(), 90);
    }

    #[test]
    fn names_are_sorted_and_unique_and_fit_the_schedule() {
        assert!(TASKS.windows(2).all(|pair| pair[0].name < pair[1].name));
        let limits = crate::logic::schedule::Limits {
            max_sleep: Duration::from_secs(10),
            hang_floor: Duration::from_secs(300),
            hang_backoff_cap: 2,
        };
        let mut schedule = crate::logic::schedule::Schedule::new(limits);
        for spec in TASKS {
            schedule.register(spec.name, Duration::from_secs(1), crate::logic::schedule::Mode::Sync).unwrap();
        }
    }

    #[test]
    fn a_row_says_when_it_ran_and_runs_next() {
        let now = Now::fixed(Timestamp::from_secs(1000));
        let record = |phase, next_fire| Telemetry {
            ts: Timestamp::from_secs(900).to_string(),
            task: "t".into(),
            rc: 75,
            elapsed_ms: 12,
            next_fire,
            phase,
        };
        let check = |last: Option<&Telemetry>, is_running: bool, expected: &str| {
            let row = row("t", Duration::from_secs(60), "cheap", "Does it.", last, is_running, &now);
            let line = table(&[row]).pop().unwrap();
            assert_eq!(line.split_whitespace().collect::<Vec<_>>().join(" "), expected);
        };
        check(None, true, "t 1m cheap - - - Does it.");
        check(Some(&record(Phase::Sync, 1090)), true, "t 1m cheap 1m ago 75 in 1m Does it.");
        check(Some(&record(Phase::Sync, 1090)), false, "t 1m cheap 1m ago 75 - Does it.");
        check(Some(&record(Phase::Sync, 0)), true, "t 1m cheap 1m ago 75 now Does it.");
        check(Some(&record(Phase::AsyncStart, 1090)), true, "t 1m cheap 1m ago running in 1m Does it.");
    }
}
