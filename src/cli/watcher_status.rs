//! `ng watcher-status`: whether the watcher lives, with the evidence. The exit code is the verdict.
//!
//! Works with no watcher and with rubbish in every file. A state directory that cannot be looked into is no verdict:
//! exit code 64, since 1 would mean BUSY.

use std::time::Duration;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde::Serialize;

use super::{Invocation, Verb, render, tasks};
use crate::logic::degraded::{self, Fault, Mode, Record};
use crate::logic::delivery::journal;
use crate::logic::instance::holder::Holder;
use crate::logic::instance::verdict::{Identity, Judgement, LockState, Verdict, judge};
use crate::logic::time::{Now, age_text};
use crate::sys::archived;
use crate::sys::clock::Clock;
use crate::sys::files::{self, MAX_STATE_BYTES, StateDir};
use crate::sys::instance::{self, Here};
use crate::sys::liveness::{self, Liveness};
use crate::sys::lock::Probe;
use crate::sys::space;

pub(super) const VERB: Verb = Verb { command, run, usage: 64 };

/// How much of the end of `emits.jsonl` is read for the newest emit, in bytes.
const MAX_TAIL_BYTES: u64 = 64 << 10;

/// Exit code of a question that could not be answered.
const NO_VERDICT: u8 = 64;

fn command() -> Command {
    Command::new("watcher-status")
        .about("Say whether the watcher lives, and how that is known")
        .after_help("Exit code: 0 UP, 1 BUSY, 2 DOWN, 3 no heartbeat, 4 WEDGED, 64 could not look or usage.")
        .arg(
            Arg::new("scheduler")
                .long("scheduler")
                .action(ArgAction::SetTrue)
                .help("Add when each task last ran and runs next"),
        )
}

#[expect(clippy::unnecessary_wraps, reason = "every verb has this shape")]
fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    match answer(invocation, args.get_flag("scheduler")) {
        Ok(verdict) => Ok(verdict.rc()),
        Err(error) => {
            render::note(&format!("ng watcher-status: {error:#}"));
            Ok(NO_VERDICT)
        }
    }
}

/// Looks, judges and prints.
fn answer(invocation: &Invocation, with_scheduler: bool) -> anyhow::Result<Verdict> {
    let settings = invocation.settings_of_watcher()?;
    let state = StateDir::new(&settings.state_dir);
    let now = Clock::System.now();
    let seen = liveness::look(&state, &now).with_context(|| {
        format!("looking into the state directory {}; check its path and permissions", state.path().display())
    })?;
    let judgement = judge(&seen.facts, settings.interval, settings.heartbeat_tick, None);
    let mut status = Status::new(&seen, &judgement, &Here::look(), archived(&state));
    status.delivery = delivery(&state);
    status.degraded = degraded(&state, &seen, judgement.verdict, &now);
    let rows = if with_scheduler { tasks::rows(&settings, &now) } else { Vec::new() };
    if invocation.json {
        render::json(&WithScheduler { status: &status, scheduler: with_scheduler.then_some(&rows) })?;
    } else {
        let table = if with_scheduler { tasks::table(&rows) } else { Vec::new() };
        for line in status.lines().iter().chain(&table) {
            render::line(line);
        }
    }
    Ok(judgement.verdict)
}

/// What became of the newest emit, in a few words; `None` if there is none.
fn delivery(state: &StateDir) -> Option<String> {
    let text = archived::read_tail(state, journal::EMITS, MAX_TAIL_BYTES).ok()??;
    let (rows, _) = journal::fold(&text);
    let row = rows.last()?;
    let detail = row.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
    let witness = row.witness.map(|witness| format!(" witness={}", witness.word())).unwrap_or_default();
    Some(format!("{} {}{witness}{detail}", row.sig, row.outcome))
}

/// What is degraded: what the running watcher last wrote of itself, and what a look from here finds. A watcher that
/// can't write can't say so, and what it wrote before is then said to be old.
fn degraded(state: &StateDir, seen: &Liveness, verdict: Verdict, now: &Now) -> Vec<Shown> {
    let text = files::read_text(&state.at(degraded::FILE), MAX_STATE_BYTES).ok().flatten();
    let record = text.as_deref().and_then(Record::parse);
    let runs = !matches!(verdict, Verdict::Down | Verdict::NoHeartbeat);
    // What another watcher left is of another time.
    let faults = record.filter(|record| runs && Some(record.pid) == seen.pid).map_or_else(Vec::new, |r| r.modes);
    let mut shown: Vec<Shown> = faults.iter().map(|fault| Shown::of(fault, now)).collect();
    let unwritable = Mode::StateUnwritable;
    if let Err(error) = space::check_writable(state.path())
        && error.kind() != std::io::ErrorKind::NotFound
        && shown.iter().all(|row| row.mode != unwritable)
    {
        let old = seen.facts.progress.map(|age| format!("; what the watcher wrote is {} old", age_text(age)));
        let detail = format!("{} can't be written: {error}{}", state.path().display(), old.unwrap_or_default());
        shown.insert(0, Shown { mode: unwritable, since: None, age_s: None, detail, remedy: unwritable.remedy() });
    }
    if let Some(observing) = instance::observing(state) {
        let mode = Mode::ObserveOnly;
        let since = Some(observing.since.clone());
        shown.insert(0, Shown { mode, since, age_s: None, detail: observing.says(), remedy: mode.remedy() });
    }
    shown
}

/// How many emits are archived.
fn archived(state: &StateDir) -> usize {
    let names = files::list_names(&state.at("diffs")).unwrap_or_default();
    names.iter().filter(|name| name.strip_suffix(".md").is_some()).count()
}

/// The JSON document.
#[derive(Serialize)]
struct WithScheduler<'a> {
    #[serde(flatten)]
    status: &'a Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduler: Option<&'a Vec<tasks::TaskRow>>,
}

/// One degraded mode, as data.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Shown {
    mode: Mode,
    /// As printed by the watcher; `None` where only this look has found it.
    since: Option<String>,
    age_s: Option<u64>,
    detail: String,
    /// What a person does about it.
    remedy: &'static str,
}

impl Shown {
    fn of(fault: &Fault, now: &Now) -> Self {
        let printable = |text: &str| text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
        Self {
            mode: fault.mode,
            since: Some(printable(&fault.since)),
            age_s: Some(fault.age(now.at).as_secs()),
            detail: printable(&fault.detail),
            remedy: fault.mode.remedy(),
        }
    }

    fn line(&self) -> String {
        let age = self.age_s.map(|age| format!(" ({})", age_text(Duration::from_secs(age)))).unwrap_or_default();
        let since = text(self.since.as_ref());
        format!("degraded: {} since={since}{age} {}; do: {}", self.mode.word(), self.detail, self.remedy)
    }
}

/// The answer, as data. Ages in whole seconds.
#[derive(Debug, Serialize)]
struct Status {
    state: Verdict,
    rc: u8,
    reason: String,
    pid: Option<u32>,
    /// `alive`, `DEAD` or `unknown`.
    pid_state: &'static str,
    /// As printed by the watcher.
    heartbeat: Option<String>,
    heartbeat_age_s: Option<u64>,
    progress_age_s: Option<u64>,
    cycle_age_s: Option<u64>,
    period_s: u64,
    wedge_cutoff_s: u64,
    target: Option<String>,
    /// `watcher.lock`, as printed.
    lock: String,
    instance_lock: String,
    hosting: &'static str,
    archived_diffs: usize,
    /// What became of the newest emit; a held one says why.
    delivery: Option<String>,
    /// What does not work as it should, and what a person does about it.
    degraded: Vec<Shown>,
    /// What is odd though it does not change the verdict.
    warning: Option<String>,
}

impl Status {
    fn new(seen: &Liveness, judgement: &Judgement, here: &Here, archived_diffs: usize) -> Self {
        let facts = &seen.facts;
        let secs = |age: Option<Duration>| age.map(|age| age.as_secs());
        let warning = match (facts.holder, facts.lock, seen.pid) {
            (Identity::Watcher, LockState::Free, Some(pid)) => Some(format!(
                "process {pid} is a live watcher that does not hold the instance lock (its lock file was replaced, or it \
                 only observes)"
            )),
            _ => None,
        };
        Self {
            state: judgement.verdict,
            rc: judgement.verdict.rc(),
            reason: judgement.reason.clone(),
            pid: seen.pid,
            pid_state: match (facts.holder, facts.lock) {
                (Identity::Watcher, _) => "alive",
                (Identity::NotWatcher, LockState::Free) => "DEAD",
                // The lock says that somebody lives; the pid may be of another namespace.
                _ => "unknown",
            },
            heartbeat: seen
                .heartbeat
                .as_ref()
                .map(|heartbeat| heartbeat.ts.clone().unwrap_or_else(|| "unreadable".into())),
            heartbeat_age_s: secs(facts.heartbeat),
            progress_age_s: secs(facts.progress),
            cycle_age_s: secs(facts.cycle),
            period_s: facts.period.as_secs(),
            wedge_cutoff_s: judgement.wedge_cutoff.as_secs(),
            target: seen.target.clone(),
            lock: seen.pid_lock.as_ref().map_or_else(
                || "absent".into(),
                |lock| format!("pid={} started={}", text(lock.pid), text(lock.started_at.as_ref())),
            ),
            instance_lock: instance_lock(&seen.lock, here),
            hosting: "headless",
            archived_diffs,
            delivery: None,
            degraded: Vec::new(),
            warning,
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            match &self.heartbeat {
                Some(ts) => format!("heartbeat: {ts} (age={}s)", text(self.heartbeat_age_s)),
                None => "heartbeat: missing".to_owned(),
            },
            format!("pid: {} ({})", text(self.pid), self.pid_state),
            format!("target: {}", text(self.target.as_ref())),
            format!("lock: {}", self.lock),
            format!("instance-lock: {}", self.instance_lock),
            format!("hosting: {}", self.hosting),
            format!("archived_diffs: {}", self.archived_diffs),
        ];
        if let Some(delivery) = &self.delivery {
            lines.push(format!("delivery: {delivery}"));
        }
        lines.extend(self.degraded.iter().map(Shown::line));
        if let Some(warning) = &self.warning {
            lines.push(format!("warning: {warning}"));
        }
        lines.push(format!(
            "verdict: state={} rc={} pid={} hb_age={} progress_age={} cycle_age={} period_s={} wedge_cutoff={} reason={}",
            self.state.word(),
            self.rc,
            text(self.pid),
            text(self.heartbeat_age_s),
            text(self.progress_age_s),
            text(self.cycle_age_s),
            self.period_s,
            self.wedge_cutoff_s,
            self.reason,
        ));
        lines
    }
}

/// The lock in a few words.
fn instance_lock(lock: &Probe, here: &Here) -> String {
    let body = match lock {
        Probe::Absent => return "absent".to_owned(),
        Probe::CannotTell(error) => return format!("unknown ({error})"),
        Probe::Held(body) | Probe::Free(body) => body,
    };
    let holder = Holder::parse(body);
    let known = |value: &str| if value.is_empty() { "?".to_owned() } else { value.to_owned() };
    let who = format!("host={} pid={} started={}", known(&holder.host), text(holder.pid), known(&holder.started_at));
    match lock {
        Probe::Held(_) => {
            format!("held (assessment={} {who})", holder.assess(&here.host, &here.boot_id).word())
        }
        _ if holder == Holder::default() => "free (no live holder)".to_owned(),
        _ => format!("free (no live holder; last {who})"),
    }
}

/// A value, or `?` if it is not known.
fn text<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::instance::records::{Heartbeat, PidLock};
    use crate::logic::instance::verdict::Facts;

    fn here() -> Here {
        Here { host: "box".into(), boot_id: "b1".into(), pid_ns: String::new() }
    }

    fn lines(seen: &Liveness) -> Vec<String> {
        Status::new(seen, &judge(&seen.facts, Duration::from_secs(60), Duration::from_secs(20), None), &here(), 12)
            .lines()
    }

    fn nothing() -> Liveness {
        Liveness {
            facts: Facts::default(),
            heartbeat: None,
            pid_lock: None,
            pid: None,
            target: None,
            lock: Probe::Absent,
        }
    }

    #[test]
    fn no_watcher_is_said_line_by_line() {
        assert_eq!(
            lines(&nothing()),
            [
                "heartbeat: missing",
                "pid: ? (unknown)",
                "target: ?",
                "lock: absent",
                "instance-lock: absent",
                "hosting: headless",
                "archived_diffs: 12",
                "verdict: state=NO-HEARTBEAT rc=3 pid=? hb_age=? progress_age=? cycle_age=? period_s=0 \
                 wedge_cutoff=900 reason=there is no heartbeat file: no watcher has run here",
            ]
        );
    }

    #[test]
    fn a_running_watcher_is_said_line_by_line() {
        let age = |secs| Some(Duration::from_secs(secs));
        let body = Holder {
            pid: Some(7),
            host: "box".into(),
            boot_id: "b1".into(),
            started_at: "2026-10-05T08:00:00-07:00".into(),
            ..Holder::default()
        };
        let seen = Liveness {
            facts: Facts {
                heartbeat: age(4),
                holder: Identity::Watcher,
                lock: LockState::Held,
                progress: age(1),
                cycle: age(30),
                period: Duration::from_secs(61),
                ..Facts::default()
            },
            heartbeat: Some(Heartbeat {
                pid: Some(7),
                ts: Some("2026-10-05T09:00:00-07:00".into()),
                target: Some("orchestrator".into()),
            }),
            pid_lock: Some(PidLock { pid: Some(7), started_at: Some("2026-10-05T08:00:00-07:00".into()) }),
            pid: Some(7),
            target: Some("orchestrator".into()),
            lock: Probe::Held(body.render()),
        };
        assert_eq!(
            lines(&seen),
            [
                "heartbeat: 2026-10-05T09:00:00-07:00 (age=4s)",
                "pid: 7 (alive)",
                "target: orchestrator",
                "lock: pid=7 started=2026-10-05T08:00:00-07:00",
                "instance-lock: held (assessment=live-local host=box pid=7 started=2026-10-05T08:00:00-07:00)",
                "hosting: headless",
                "archived_diffs: 12",
                "verdict: state=UP rc=0 pid=7 hb_age=4 progress_age=1 cycle_age=30 period_s=61 wedge_cutoff=900 \
                 reason=the heartbeat is 4s old",
            ]
        );
    }

    #[test]
    fn a_live_watcher_without_the_lock_is_pointed_out() {
        let facts = Facts { holder: Identity::Watcher, lock: LockState::Free, ..Facts::default() };
        let all = lines(&Liveness { facts, pid: Some(7), ..nothing() }).join("\n");
        assert!(all.contains("warning: process 7 is a live watcher that does not hold"), "{all}");
    }

    #[test]
    fn the_lock_is_put_in_words_row_by_row() {
        let body = "pid: 7\nhost: elsewhere\nstarted_at: then\n".to_owned();
        for (lock, expected) in [
            (Probe::Held(String::new()), "held (assessment=unknown host=? pid=? started=?)"),
            (Probe::Held(body.clone()), "held (assessment=live-remote host=elsewhere pid=7 started=then)"),
            (Probe::Free(String::new()), "free (no live holder)"),
            (Probe::Free(body), "free (no live holder; last host=elsewhere pid=7 started=then)"),
        ] {
            assert_eq!(instance_lock(&lock, &here()), expected);
        }
    }
}
