//! Classifies one worker window: the wrap-up core of the idle classifier, and the line that says so.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::logic::emit::clean::one_line;
use crate::logic::ids::WindowName;
use crate::logic::pane::verdict::{PaneVerdict, State};
use crate::logic::pane::{LIVE_DESCENDANT, Unclear};
use crate::logic::snapshot::ReportText;
use crate::logic::time::{Timestamp, age_text};

use super::log::LogIndex;
use super::report::{CheckRules, report_check};

/// Characters of a detail or a token within a line.
const DETAIL_CHARS: usize = 200;

/// An idle class. Its word stands in `idle-state.tsv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Wrapped up, report complete.
    Wrapped,
    /// Wrapped up, report incomplete.
    WrappedButStub,
    /// Idle without a wrap-up.
    NoWrapUp,
    /// Idle past the close threshold, whatever else.
    IdleTooLong,
    /// Nothing alive, or an overlay waits.
    PaneAbsent,
    /// A usage limit holds it.
    OverLimit,
    /// It waits for something that nothing will report.
    IdleOrphanAsync,
    /// Kept on purpose.
    Retained,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 8] = [
        Self::Wrapped,
        Self::WrappedButStub,
        Self::NoWrapUp,
        Self::IdleTooLong,
        Self::PaneAbsent,
        Self::OverLimit,
        Self::IdleOrphanAsync,
        Self::Retained,
    ];

    /// The word in `idle-state.tsv`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Wrapped => "wrapped",
            Self::WrappedButStub => "wrapped-but-stub",
            Self::NoWrapUp => "no-wrap-up",
            Self::IdleTooLong => "idle-too-long",
            Self::PaneAbsent => "pane-absent",
            Self::OverLimit => "over-limit",
            Self::IdleOrphanAsync => "idle-orphan-async",
            Self::Retained => "retained",
        }
    }

    /// The class with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }
}

/// A worker as it is classified.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a> {
    /// What it is called on the page: its name, clean, and unique among the workers.
    pub label: &'a str,
    /// Its window's name.
    pub name: &'a WindowName,
    /// What its pane is doing.
    pub verdict: &'a PaneVerdict,
    /// When it was last engaged.
    pub anchor: Timestamp,
}

/// The settings that classifying needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `monitor.idle_threshold_seconds`.
    pub idle_threshold: Duration,
    /// `monitor.idle_close_hours`.
    pub idle_close: Duration,
    /// `monitor.idle_pool_spawn_grace_seconds`.
    pub spawn_grace: Duration,
    /// `monitor.retain_ttl_seconds`.
    pub retain_ttl: Duration,
    /// `monitor.report_min_chars`.
    pub report: CheckRules,
}

/// What is known besides the pane.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    /// The action log; `None` if it could not be had.
    pub log: Option<&'a LogIndex<'a>>,
    /// Texts of cited reports, by base name.
    pub reports: &'a BTreeMap<String, ReportText>,
}

/// What a worker was found to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its label.
    pub label: String,
    /// Its class.
    pub class: Class,
    /// The line, without the leading `  - `; for a retained worker the reason.
    pub line: String,
}

/// What classifying a worker came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Working, or not idle for long enough.
    Active,
    /// It has a class.
    Idle(Finding),
    /// It can't be told; nothing is said of it, and what was known stays.
    Unclear,
}

/// Classifies one worker (`protocol-facts` §4.2).
pub fn classify(now: Timestamp, worker: &Worker<'_>, records: Records<'_>, rules: &Rules) -> Outcome {
    let state = worker.verdict.state;
    if state == State::OverLimit {
        return found(worker, Class::OverLimit, over_limit(worker));
    }
    if runs_another_program(worker.verdict) {
        return Outcome::Active;
    }
    if matches!(state, State::Unknown | State::Empty) {
        return Outcome::Unclear;
    }
    let spawned = records.log.and_then(|log| log.spawned_at(worker.name));
    if spawned.is_some_and(|at| at <= now && now.since(at) < rules.spawn_grace) {
        return Outcome::Active;
    }
    let age = now.since(worker.anchor);
    if age < rules.idle_threshold {
        return Outcome::Active;
    }
    match state {
        State::Absent => {
            let line = format!("{} pane-absent (claude process gone or unresponsive; relaunch or close)", worker.label);
            found(worker, Class::PaneAbsent, line)
        }
        State::Blocked => {
            let line = format!(
                "{} pane-absent (overlay awaiting the operator (blocked) — ANSWER it in the pane; do NOT relaunch or close)",
                worker.label
            );
            found(worker, Class::PaneAbsent, line)
        }
        State::IdleOrphanAsync => {
            let line = format!(
                "{} idle-orphan-async (waits=unknown; no resume mechanism — install Monitor / background poller, or \
                 `declare-no-wait.sh <kind> <id>`; see skills/nexus.worker-defaults)",
                worker.label
            );
            found(worker, Class::IdleOrphanAsync, line)
        }
        State::Idle | State::AutosuggestOnly => wrap_up_core(now, worker, age, records, rules),
        State::Busy
        | State::UserTyping
        | State::WorkingBackground
        | State::WorkingSelfPaced
        | State::OverLimit
        | State::Empty
        | State::Unknown => Outcome::Active,
    }
}

/// Whether the pane was read and something that is no agent runs in it: an editor or a build, a way to another place, a
/// shell in which an agent may be about to start. Nothing is wrong with it, and nothing can be said of its work.
fn runs_another_program(verdict: &PaneVerdict) -> bool {
    let rules = [LIVE_DESCENDANT, Unclear::NotWatched.rule(), Unclear::BootGrace.rule()];
    let reason = verdict.evidence.first().map(|reason| reason.rule.as_str());
    verdict.state == State::Unknown && reason.is_some_and(|rule| rules.contains(&rule))
}

/// The classes of a worker that is really idle.
fn wrap_up_core(now: Timestamp, worker: &Worker<'_>, age: Duration, records: Records<'_>, rules: &Rules) -> Outcome {
    let Some(log) = records.log else { return Outcome::Unclear };
    let label = worker.label;
    let age_words = age_text(age);
    let wrap_up = log.wrap_up(worker.name);
    // A report that is not there, or that can't be read, can't be checked, and counts as fine.
    let missing = match wrap_up.and_then(|wrap_up| records.reports.get(wrap_up.report)) {
        Some(ReportText::Found(text)) => report_check(text, rules.report),
        Some(ReportText::Missing | ReportText::Unreadable(_)) | None => Vec::new(),
    };
    let detail = one_line(&missing.join(";"), DETAIL_CHARS);
    if age >= rules.idle_close {
        let hint = if detail.is_empty() { String::new() } else { format!(" [{detail}]") };
        let line = format!("{label} idle-too-long {age_words} (exceeds close threshold; consider close){hint}");
        return found(worker, Class::IdleTooLong, line);
    }
    if !missing.is_empty() {
        return found(worker, Class::WrappedButStub, format!("{label} wrapped-but-stub ({detail})"));
    }
    if let Some((at, reason)) = log.retained(worker.name)
        && at <= now
        && now.since(at) <= rules.retain_ttl
        && worker.anchor <= at
    {
        return found(worker, Class::Retained, one_line(reason, 40));
    }
    if wrap_up.is_some() {
        found(worker, Class::Wrapped, format!("{label} wrapped up (idle {age_words}; wrap-up logged)"))
    } else {
        let line = format!("{label} idle {age_words} WITHOUT wrap-up — consider follow-up paste");
        found(worker, Class::NoWrapUp, line)
    }
}

/// The line of a worker at its usage limit.
fn over_limit(worker: &Worker<'_>) -> String {
    let known = |word: &Option<String>| {
        word.as_deref().map(|word| one_line(word, 40)).filter(|word| !word.is_empty() && word != "unknown")
    };
    let resets = match known(&worker.verdict.reset_at) {
        Some(token) => format!("resets {token}"),
        None => "RESET TIME UNKNOWN".to_owned(),
    };
    let flavour = known(&worker.verdict.limit).unwrap_or_else(|| "usage".to_owned());
    format!("{} OVER-LIMIT ({resets}; {flavour} limit hit — schedule resume)", worker.label)
}

/// A finding about this worker.
fn found(worker: &Worker<'_>, class: Class, line: String) -> Outcome {
    Outcome::Idle(Finding { label: worker.label.to_owned(), class, line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::pane::verdict::{Evidence, Witness};
    use crate::logic::snapshot::ActionEvent;

    const RULES: Rules = Rules {
        idle_threshold: Duration::from_secs(60),
        idle_close: Duration::from_secs(24 * 3600),
        spawn_grace: Duration::from_secs(120),
        retain_ttl: Duration::from_secs(86_400),
        report: CheckRules { min_body: 10, allow_todo: false },
    };

    fn now() -> Timestamp {
        Timestamp::parse_iso("2026-05-11T12:00:00Z").unwrap()
    }

    fn log_event(age: u64, event: &str, fields: &[(&str, &str)]) -> ActionEvent {
        let mut extra: BTreeMap<String, String> =
            fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        extra.insert("window".into(), "w3".into());
        let ts = now().before(Duration::from_secs(age)).to_string();
        ActionEvent { ts, event: event.into(), extra, ..ActionEvent::default() }
    }

    fn outcome(verdict: &PaneVerdict, age: u64, events: Option<&[ActionEvent]>, report: Option<ReportText>) -> Outcome {
        let name = WindowName("w3".into());
        let anchor = now().before(Duration::from_secs(age));
        let worker = Worker { label: "w3", name: &name, verdict, anchor };
        let log = events.map(LogIndex::new);
        let reports = report.map(|text| ("r.md".to_owned(), text)).into_iter().collect();
        classify(now(), &worker, Records { log: log.as_ref(), reports: &reports }, &RULES)
    }

    fn verdict(state: State) -> PaneVerdict {
        PaneVerdict::of(state, Evidence::new(Witness::Screen, "test"))
    }

    fn check(state: State, age: u64, events: &[ActionEvent], report: Option<ReportText>, expected: &str) {
        match outcome(&verdict(state), age, Some(events), report) {
            Outcome::Idle(found) => assert_eq!(format!("{}: {}", found.class.word(), found.line), expected),
            other => assert_eq!(format!("{other:?}"), expected),
        }
    }

    fn wrap_up(age: u64) -> ActionEvent {
        log_event(age, "wrap-up", &[("report", "reports/r.md")])
    }

    fn good_text() -> String {
        let headings = "## Summary\n## What Was Done\n## Current State\n## What Remains\n## How to Resume\n";
        let front = "---\nproject: a\ndate: b\nsession-id: c\nstatus: partial\n---\n";
        format!("{front}{headings}")
    }

    fn good() -> ReportText {
        ReportText::Found(good_text())
    }

    fn stub() -> ReportText {
        ReportText::Found(good_text().replace("## Summary\n", "").replace("partial", "done"))
    }

    #[test]
    fn each_class_has_the_line_of_the_specification() {
        use State::{Absent, AutosuggestOnly, Blocked, Idle};
        check(Idle, 4320, &[wrap_up(5000)], Some(good()), "wrapped: w3 wrapped up (idle 1h12m; wrap-up logged)");
        check(Idle, 480, &[], None, "no-wrap-up: w3 idle 8m WITHOUT wrap-up — consider follow-up paste");
        check(AutosuggestOnly, 480, &[], None, "no-wrap-up: w3 idle 8m WITHOUT wrap-up — consider follow-up paste");
        check(
            Idle,
            480,
            &[wrap_up(500)],
            Some(stub()),
            "wrapped-but-stub: w3 wrapped-but-stub (frontmatter field: status (must be completed|partial|blocked, \
             got 'done');section: ## Summary)",
        );
        check(
            Idle,
            90_000,
            &[wrap_up(99_000)],
            Some(good()),
            "idle-too-long: w3 idle-too-long 25h00m (exceeds close threshold; consider close)",
        );
        check(
            Absent,
            480,
            &[],
            None,
            "pane-absent: w3 pane-absent (claude process gone or unresponsive; relaunch or close)",
        );
        check(
            Blocked,
            480,
            &[],
            None,
            "pane-absent: w3 pane-absent (overlay awaiting the operator (blocked) — ANSWER it in the pane; do NOT \
             relaunch or close)",
        );
    }

    #[test]
    fn the_close_threshold_overrides_and_keeps_the_detail() {
        let Outcome::Idle(found) = outcome(&verdict(State::Idle), 90_000, Some(&[wrap_up(99_000)]), Some(stub()))
        else {
            panic!()
        };
        assert_eq!(found.class, Class::IdleTooLong);
        assert!(found.line.contains("section: ## Summary"), "{}", found.line);
    }

    #[test]
    fn a_report_that_cannot_be_checked_counts_as_fine() {
        for report in [None, Some(ReportText::Missing), Some(ReportText::Unreadable("x".into()))] {
            check(State::Idle, 480, &[wrap_up(500)], report, "wrapped: w3 wrapped up (idle 8m; wrap-up logged)");
        }
    }

    #[test]
    fn over_limit_waits_for_no_age_and_no_grace() {
        let mut limited = verdict(State::OverLimit);
        let line = |verdict: &PaneVerdict| match outcome(verdict, 0, Some(&[log_event(5, "spawn", &[])]), None) {
            Outcome::Idle(found) => found.line,
            other => format!("{other:?}"),
        };
        assert_eq!(line(&limited), "w3 OVER-LIMIT (RESET TIME UNKNOWN; usage limit hit — schedule resume)");
        limited.reset_at = Some("3pm".into());
        limited.limit = Some("weekly_Opus".into());
        assert_eq!(line(&limited), "w3 OVER-LIMIT (resets 3pm; weekly_Opus limit hit — schedule resume)");
    }

    #[test]
    fn young_and_working_windows_have_no_class() {
        check(State::Idle, 59, &[], None, "Active");
        check(State::Idle, 60, &[], None, "no-wrap-up: w3 idle 1m WITHOUT wrap-up — consider follow-up paste");
        check(State::Absent, 100, &[log_event(119, "spawn", &[])], None, "Active");
        check(
            State::Absent,
            100,
            &[log_event(120, "spawn", &[])],
            None,
            "pane-absent: w3 pane-absent (claude process gone or unresponsive; relaunch or close)",
        );
        for state in [State::Busy, State::UserTyping, State::WorkingBackground, State::WorkingSelfPaced] {
            check(state, 480, &[], None, "Active");
        }
    }

    #[test]
    fn a_window_with_another_program_is_active_and_not_unread() {
        for (rule, expected) in [
            (LIVE_DESCENDANT, Outcome::Active),
            ("not-watched", Outcome::Active),
            ("boot-grace", Outcome::Active),
            ("agent-in-background", Outcome::Unclear),
            ("proc-view-blind", Outcome::Unclear),
        ] {
            let verdict = PaneVerdict::of(State::Unknown, Evidence::new(Witness::Process, rule).with_line("vim"));
            assert_eq!(outcome(&verdict, 90_000, None, None), expected, "{rule}");
        }
    }

    #[test]
    fn what_cannot_be_told_has_no_class() {
        check(State::Unknown, 90_000, &[], None, "Unclear");
        check(State::Empty, 90_000, &[], None, "Unclear");
        assert_eq!(outcome(&verdict(State::Idle), 480, None, None), Outcome::Unclear);
    }

    #[test]
    fn a_retained_worker_is_kept_until_it_is_engaged_again() {
        let retain = |age| [wrap_up(700), log_event(age, "window-retain", &[("reason", "for the review")])];
        check(State::Idle, 480, &retain(400), Some(good()), "retained: for the review");
        check(State::Idle, 480, &retain(500), Some(good()), "wrapped: w3 wrapped up (idle 8m; wrap-up logged)");
        check(
            State::Idle,
            80_000,
            &retain(0),
            Some(stub()),
            "wrapped-but-stub: w3 wrapped-but-stub (frontmatter field: \
             status (must be completed|partial|blocked, got 'done');section: ## Summary)",
        );
    }

    #[test]
    fn every_class_word_reads_back() {
        for class in Class::ALL {
            assert_eq!(Class::parse(class.word()), Some(class));
        }
    }
}
