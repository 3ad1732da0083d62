//! `compose_emit`: composes the report if any task staged a signal. The daemon archives and delivers it.
//!
//! Called twice it says the same again: an emit with the hash of one that is under way is the same emit, and what a
//! delivery may have retired is not told from data that is older than it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::snapshot_local::BASELINE_FILE;
use super::{Class, Need, Out, TASKS, Task, TaskSpec};
use crate::config::resolved::{Settings, StatusSurface};
use crate::logic::action::Action;
use crate::logic::emit::bells::absorb_clearing;
use crate::logic::emit::choose::{gaps, reason, staged_max_age, tellable, workspace};
use crate::logic::emit::compose::{Draft, compose};
use crate::logic::emit::dedup::{RING_FILE, Ring, is_within, quiet_period};
use crate::logic::emit::footer::{FooterFacts, Surface, footer};
use crate::logic::snapshot::{Snapshot, StateText};
use crate::logic::time::{Now, Timestamp};

/// When the dashboard was last put, relative to the state directory.
const DASHBOARD_FILE: &str = "dashboard-updated.ts";

/// The producers that the startup sweep waits for.
const SWEPT: [&str; 4] = ["bell_windows", "idle_section", "pending_decisions", "snapshot_local"];

/// The producer of the roster that the `workspace:` line counts.
const ROSTER: &str = "idle_section";

/// The other producers that stage something at each run: one that has not run in time is named.
const EXPECTED: [&str; 3] = ["bell_windows", "pending_decisions", "snapshot_local"];

/// How long the startup sweep waits for them.
const SWEEP_WAIT: Duration = Duration::from_secs(20);

/// Cadence while it waits, and how long that lasts when nobody renews it.
const SWEEP_EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// How long after an emit's stamp in the ring its commits may still be under way.
const COMMIT_SLACK: Duration = Duration::from_secs(30);

/// Composed emits that are remembered until their delivery shows in the ring.
const MAX_COMPOSED: usize = 8;

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "compose_emit",
    every: |settings| settings.interval,
    class: Class::Medium,
    needs: &[
        Need::Staged,
        Need::StatusPage,
        Need::File(DASHBOARD_FILE),
        Need::File(RING_FILE),
        Need::File(BASELINE_FILE),
    ],
    doc: "Composes the report if any task staged a signal.",
    build: || Box::new(ComposeEmit::default()),
};

/// An emit that was handed to the delivery.
struct Composed {
    /// Its stable hash.
    hash: String,
    /// When it was first composed.
    at: Timestamp,
    /// The producers whose sections it tells.
    producers: Vec<&'static str>,
    /// The run that first saw its delivery in the ring.
    seen: Option<Timestamp>,
}

/// Memory of the task.
#[derive(Default)]
struct ComposeEmit {
    /// When the first run was; the startup sweep waits from then on.
    started: Option<Duration>,
    /// Whether the startup sweep is over.
    swept: bool,
    /// The newest composed emits.
    composed: VecDeque<Composed>,
    /// The hash that was last noted as held back.
    noted: Option<String>,
}

impl ComposeEmit {
    /// Whether the startup sweep still has to wait for a producer.
    fn must_wait(&mut self, now: &Now, snap: &Snapshot) -> bool {
        let started = *self.started.get_or_insert(now.uptime);
        let all = SWEPT.iter().all(|name| snap.staged.contains_key(name));
        !all && now.uptime.saturating_sub(started) < SWEEP_WAIT
    }

    /// For each producer whose sections were delivered, the time up to which its data may be from before the commits.
    ///
    /// The commits follow the proof of arrival, which follows the composing; so data counts as older until shortly
    /// after the stamp in the ring, or until this task first saw that stamp.
    fn delivered(&mut self, now: &Now, ring: &Ring) -> BTreeMap<&'static str, Timestamp> {
        let mut delivered = BTreeMap::new();
        for composed in &mut self.composed {
            let Some(at) = ring.last(&composed.hash).filter(|at| at.secs() >= composed.at.secs()) else { continue };
            let seen = *composed.seen.get_or_insert(now.at);
            let until = seen.min(at.after(COMMIT_SLACK));
            for producer in &composed.producers {
                let newest = delivered.entry(*producer).or_insert(until);
                *newest = until.max(*newest);
            }
        }
        delivered
    }

    /// Remembers an emit until its delivery shows in the ring. One that is under way keeps its first time.
    fn remember(&mut self, hash: &str, at: Timestamp, producers: Vec<&'static str>) {
        if let Some(known) = self.composed.iter_mut().find(|composed| composed.hash == hash) {
            if known.seen.take().is_some() {
                known.at = at;
            }
            known.producers = producers;
            return;
        }
        self.composed.push_back(Composed { hash: hash.to_owned(), at, producers, seen: None });
        if self.composed.len() > MAX_COMPOSED {
            self.composed.pop_front();
        }
    }
}

/// Each producer, and the age from which its data counts as missing.
fn max_ages(settings: &Settings) -> Vec<(&'static str, Duration)> {
    TASKS.iter().map(|task| (task.name, staged_max_age((task.every)(settings)))).collect()
}

impl Task for ComposeEmit {
    fn decide(&mut self, now: &Now, settings: &Settings, snap: &Snapshot, out: &mut Out) {
        // The sweep is over when something of this run has arrived, or when there was nothing to tell.
        self.swept |= snap.told;
        let sweeping = !self.swept;
        if sweeping && self.must_wait(now, snap) {
            let (every, lasting) = SWEEP_EVERY;
            out.actions.push(Action::Hurry { task: SPEC.name, every, lasting });
            return;
        }
        if snap.nonce.is_empty() {
            // Without a nonce of its own an emit could not be proven to have arrived.
            return;
        }
        let absent = StateText::Absent;
        let file = |name: &str| snap.files.get(name).unwrap_or(&absent);
        let ring = Ring::parse(file(RING_FILE).text().unwrap_or(""));
        let delivered = self.delivered(now, &ring);
        let max_ages = max_ages(settings);
        let tellable = tellable(now, &snap.staged, &max_ages, &delivered);
        let mut producers: Vec<&'static str> = tellable.iter().map(|(name, _)| *name).collect();
        producers.dedup();
        let mut sections: Vec<_> = tellable.into_iter().map(|(_, section)| section).collect();
        let Some(poll_reason) = reason(&sections) else {
            self.swept = true;
            return;
        };
        let quiet =
            if sweeping { None } else { quiet_period(&sections, settings.dedup_max_quiet, settings.emit_cooldown) };
        absorb_clearing(&mut sections, BASELINE_FILE, file(BASELINE_FILE).text());

        let surface = match &settings.status_surface {
            StatusSurface::Dashboard => Surface::Dashboard,
            StatusSurface::External => Surface::External,
            StatusSurface::Unknown(kind) => Surface::Unknown(kind),
        };
        let shown = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let (url_file, feed) = (shown(&settings.status_url_file), shown(&settings.status_feed));
        let facts = FooterFacts {
            surface,
            last_put: file(DASHBOARD_FILE),
            url_file: url_file.as_deref(),
            url: &snap.status_page,
            feed: feed.as_deref(),
        };
        let roster = snap.staged.get(ROSTER).and_then(|staged| staged.roster.as_deref());
        let max_age = max_ages.iter().find(|(name, _)| *name == ROSTER).map_or(Duration::ZERO, |(_, age)| *age);
        let gaps = gaps(now, &snap.staged, &max_ages, &EXPECTED);
        let emit = compose(
            now,
            &Draft {
                reason: if sweeping { "startup-sweep" } else { poll_reason },
                nonce: &snap.nonce,
                repeat_of: snap.repeat_of.as_ref(),
                workspace: &workspace(now, roster, max_age, &BTreeSet::new(), &gaps),
                sections,
                footer: footer(now, &facts),
                section_max_lines: settings.section_max_lines,
            },
        );
        if let (Some(quiet), Some(last)) = (quiet, ring.last(&emit.stable_hash))
            && is_within(now.at, last, quiet)
        {
            if self.noted.as_ref() != Some(&emit.stable_hash) {
                out.actions.push(Action::Note(format!("held back an emit that says what the one of {last} said")));
                self.noted = Some(emit.stable_hash);
            }
            return;
        }
        self.noted = None;
        self.remember(&emit.stable_hash, now.at, producers);
        out.actions.push(Action::Deliver(Box::new(emit)));
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::testing::{at, settings};
    use super::*;
    use crate::logic::action::Emit;
    use crate::logic::emit::dedup::Delivered;
    use crate::logic::ids::WindowId;
    use crate::logic::signal::{Commit, Section, SectionKind, StagedSignal};
    use crate::logic::worker::roster::Roster;

    /// The task with a ring, and producers that stage what the test says.
    struct Lab {
        task: ComposeEmit,
        ring: String,
        staged: BTreeMap<&'static str, StagedSignal>,
        told: bool,
    }

    impl Lab {
        /// A watcher whose startup sweep found nothing.
        fn running() -> Self {
            let mut lab =
                Self { task: ComposeEmit::default(), ring: String::new(), staged: BTreeMap::new(), told: false };
            for name in SWEPT {
                lab.stage(name, 1000, &[]);
            }
            assert_eq!(lab.run(1000), []);
            lab
        }

        fn starting() -> Self {
            Self { task: ComposeEmit::default(), ring: String::new(), staged: BTreeMap::new(), told: false }
        }

        fn stage(&mut self, name: &'static str, secs: i64, sections: &[Section]) {
            let at = Timestamp::from_secs(secs);
            let roster = (name == "idle_section").then(|| Rc::new(Roster { at, ..Roster::default() }));
            let signal = StagedSignal { at, sections: sections.to_vec(), roster, ..StagedSignal::default() };
            self.staged.insert(name, signal);
        }

        fn run(&mut self, secs: i64) -> Vec<Action> {
            let snap = Snapshot {
                staged: self.staged.clone(),
                nonce: format!("{secs:06x}"),
                told: self.told,
                files: [(RING_FILE, StateText::Text(self.ring.clone()))].into(),
                ..Snapshot::default()
            };
            let mut out = Out::default();
            self.task.decide(&at(secs), &settings(), &snap, &mut out);
            out.actions
        }

        fn emit(&mut self, secs: i64) -> Option<Emit> {
            self.run(secs).into_iter().find_map(|action| match action {
                Action::Deliver(emit) => Some(*emit),
                _ => None,
            })
        }

        fn deliver(&mut self, secs: i64, emit: &Emit) {
            let delivered = Delivered { at: Timestamp::from_secs(secs), hash: emit.stable_hash.clone() };
            self.ring = Ring::parse(&self.ring).with(delivered, 8);
        }
    }

    fn bell() -> Section {
        let server = crate::logic::ids::ServerId { socket: "/tmp/s".into(), pid: 1, start_s: 1 };
        section(SectionKind::Bells, vec![Commit::ClearBells { server, windows: vec![WindowId::new(5)] }])
    }

    fn section(kind: SectionKind, commits: Vec<Commit>) -> Section {
        Section { kind, lines: vec!["  - x".into()], commits, pages: true, windows: vec![] }
    }

    #[test]
    fn the_startup_sweep_waits_for_every_producer_and_says_so() {
        let mut lab = Lab::starting();
        assert!(matches!(lab.run(100).as_slice(), [Action::Hurry { task: "compose_emit", .. }]));
        lab.stage("bell_windows", 100, &[bell()]);
        lab.stage("idle_section", 100, &[]);
        lab.stage("pending_decisions", 100, &[]);
        assert_eq!(lab.emit(101), None);
        lab.stage("snapshot_local", 101, &[]);
        assert_eq!(lab.emit(102).unwrap().reason, "startup-sweep");
    }

    #[test]
    fn the_startup_sweep_is_over_when_it_has_arrived_and_not_while_it_is_held() {
        let mut lab = Lab::starting();
        for name in SWEPT {
            lab.stage(name, 100, &[bell()]);
        }
        let held = lab.emit(101).unwrap();
        assert_eq!(held.reason, "startup-sweep");
        // Told before the restart, so the ring knows it; a held sweep is not withdrawn for that.
        lab.deliver(99, &held);
        assert_eq!(lab.emit(110).unwrap().reason, "startup-sweep");
        lab.told = true;
        assert_eq!(lab.emit(111).unwrap().reason, "poll");
    }

    #[test]
    fn a_producer_that_never_answers_does_not_hold_the_sweep_for_ever() {
        let mut lab = Lab::starting();
        lab.stage("bell_windows", 100, &[bell()]);
        assert_eq!(lab.emit(100), None);
        assert_eq!(lab.emit(119), None);
        let emit = lab.emit(120).unwrap();
        assert_eq!(emit.reason, "startup-sweep");
        assert!(emit.body.contains("workspace: UNAVAILABLE ("), "{}", emit.body);
    }

    #[test]
    fn the_sweep_is_sent_even_if_it_was_said_before() {
        let mut lab = Lab::starting();
        for name in SWEPT {
            lab.stage(name, 100, &[]);
        }
        lab.stage("bell_windows", 100, &[bell()]);
        let emit = lab.emit(100).unwrap();
        let mut again = Lab::starting();
        again.staged = lab.staged.clone();
        again.deliver(99, &emit);
        assert!(again.emit(101).is_some());
    }

    #[test]
    fn an_empty_sweep_sends_nothing() {
        let mut lab = Lab::running();
        assert_eq!(lab.run(1060), []);
    }

    #[test]
    fn what_is_delivered_is_not_told_again_from_older_data() {
        let mut lab = Lab::running();
        lab.stage("bell_windows", 1055, &[bell()]);
        let emit = lab.emit(1060).unwrap();
        // Not proven yet: the same thing again, which the delivery recognises by its hash.
        assert_eq!(lab.emit(1065).unwrap().stable_hash, emit.stable_hash);
        lab.deliver(1067, &emit);
        assert_eq!(lab.run(1070), []);
    }

    #[test]
    fn data_from_between_composing_and_commit_is_not_told_again() {
        let mut lab = Lab::running();
        let decision = section(SectionKind::Decisions, vec![Commit::RemoveState { path: "x".into() }]);
        lab.stage("pending_decisions", 1058, std::slice::from_ref(&decision));
        let emit = lab.emit(1060).unwrap();
        lab.stage("pending_decisions", 1062, std::slice::from_ref(&decision));
        // The ring carries the time of composing; the commits came after the producer's run.
        lab.deliver(1060, &emit);
        assert_eq!(lab.run(1065), []);
        lab.stage("pending_decisions", 1072, &[decision]);
        assert!(lab.emit(1072).is_some());
    }

    #[test]
    fn an_event_that_returns_is_told_after_the_cooldown_at_the_latest() {
        let mut lab = Lab::running();
        lab.stage("bell_windows", 1055, &[bell()]);
        let emit = lab.emit(1060).unwrap();
        lab.deliver(1062, &emit);
        let mut told = |secs| {
            for name in SWEPT {
                lab.stage(name, secs, &[]);
            }
            lab.stage("bell_windows", secs, &[bell()]);
            lab.emit(secs).is_some()
        };
        assert!(!told(1120));
        assert!(!told(1361));
        assert!(told(1362));
    }

    #[test]
    fn a_decision_that_is_due_passes_the_ring() {
        let mut lab = Lab::running();
        let decision = section(SectionKind::Decisions, vec![]);
        lab.stage("pending_decisions", 1058, std::slice::from_ref(&decision));
        let emit = lab.emit(1060).unwrap();
        lab.deliver(1060, &emit);
        lab.stage("pending_decisions", 1070, &[decision]);
        assert!(lab.emit(1070).is_some());
    }

    #[test]
    fn a_standing_condition_is_told_once_a_day_and_its_silence_noted_once() {
        let mut lab = Lab::running();
        let standing = section(SectionKind::ArmSupervisor, vec![]);
        lab.stage("snapshot_local", 1060, std::slice::from_ref(&standing));
        lab.stage("idle_section", 1060, &[]);
        let emit = lab.emit(1060).unwrap();
        lab.deliver(1061, &emit);
        let mut run = |secs| {
            lab.stage("snapshot_local", secs, std::slice::from_ref(&standing));
            lab.stage("idle_section", secs, &[]);
            lab.run(secs)
        };
        assert!(matches!(run(1120).as_slice(), [Action::Note(_)]));
        assert_eq!(run(1180), []);
        assert!(matches!(run(1061 + 86_400).as_slice(), [Action::Deliver(_)]));
    }

    #[test]
    fn old_staged_data_is_not_told() {
        let mut lab = Lab::running();
        lab.stage("bell_windows", 1000, &[bell()]);
        assert!(lab.emit(1060).is_some());
        assert_eq!(lab.run(1061), []);
    }

    #[test]
    fn a_workspace_line_that_is_old_says_so() {
        let mut lab = Lab::running();
        lab.stage("bell_windows", 1200, &[bell()]);
        let emit = lab.emit(1200).unwrap();
        assert!(emit.body.contains("\nworkspace: STALE (as of 3m ago) 0 busy | "), "{}", emit.body);
        let named = "(STALE: pending_decisions as of 3m ago; STALE: snapshot_local as of 3m ago)\n";
        assert!(emit.body.contains(named), "{}", emit.body);
    }

    #[test]
    fn without_a_nonce_nothing_is_composed() {
        let mut lab = Lab::running();
        lab.stage("bell_windows", 1000, &[bell()]);
        let snap = Snapshot { staged: lab.staged.clone(), ..Snapshot::default() };
        let mut out = Out::default();
        lab.task.decide(&at(1001), &settings(), &snap, &mut out);
        assert_eq!(out.actions, []);
    }
}
