//! The report from what is staged: when it waits, what it says, what holds it back.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::testing::{at, settings, tmux};
use super::*;
use crate::logic::action::Emit;
use crate::logic::hook::Notification;
use crate::logic::ids::WindowId;
use crate::logic::pane::verdict::State;
use crate::logic::signal::{Commit, Section, SectionKind, StagedSignal};
use crate::logic::snapshot::{FileStamp, Gathered, InstallFailure};
use crate::logic::time::Timestamp;
use crate::logic::worker::class::Outcome;
use crate::logic::worker::roster::{Entry, Roster};
use crate::logic::worker::scope::tests::pane;

/// The task with a ring, producers that stage what the test says, and what else it may look at.
struct Lab {
    task: ComposeEmit,
    settings: Settings,
    world: Snapshot,
    ring: String,
    staged: BTreeMap<&'static str, StagedSignal>,
    told: bool,
}

impl Lab {
    /// A watcher whose startup sweep found nothing.
    fn running() -> Self {
        let mut lab = Self::starting();
        for name in SWEPT {
            lab.stage(name, 1000, &[]);
        }
        assert_eq!(lab.run(1000), []);
        lab
    }

    fn starting() -> Self {
        Self {
            task: ComposeEmit::default(),
            settings: settings(),
            world: Snapshot::default(),
            ring: String::new(),
            staged: BTreeMap::new(),
            told: false,
        }
    }

    /// All producers have run and found nothing.
    fn stage_nothing(&mut self, secs: i64) {
        for name in SWEPT {
            self.stage(name, secs, &[]);
        }
    }

    fn stage(&mut self, name: &'static str, secs: i64, sections: &[Section]) {
        let at = Timestamp::from_secs(secs);
        let roster = (name == "idle_section").then(|| Rc::new(Roster { at, ..Roster::default() }));
        let signal = StagedSignal { at, sections: sections.to_vec(), roster, ..StagedSignal::default() };
        self.staged.insert(name, signal);
    }

    fn run(&mut self, secs: i64) -> Vec<Action> {
        let mut snap = Snapshot {
            staged: self.staged.clone(),
            nonce: format!("{secs:06x}"),
            told: self.told,
            ..self.world.clone()
        };
        snap.files.insert(RING_FILE, StateText::Text(self.ring.clone()));
        let mut out = Out::default();
        self.task.decide(&at(secs), &self.settings, &snap, &mut out);
        out.actions
    }

    fn emit(&mut self, secs: i64) -> Option<Emit> {
        self.run(secs).into_iter().find_map(|action| match action {
            Action::Deliver(emit) => Some(*emit),
            _ => None,
        })
    }

    fn deliver(&mut self, secs: i64, emit: &Emit) {
        for commit in &emit.commits {
            match commit {
                Commit::RememberHash { hash, .. } => {
                    let delivered = Delivered { at: Timestamp::from_secs(secs), hash: hash.clone() };
                    self.ring = Ring::parse(&self.ring).with(delivered, 8);
                }
                Commit::WriteState { path, text } if path == STANDING_FILE => {
                    self.world.files.insert(STANDING_FILE, StateText::Text(text.clone()));
                }
                _ => {}
            }
        }
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

fn stamp(secs: i64) -> FileStamp {
    FileStamp::At { modified: Timestamp::from_secs(secs), is_empty: true }
}

#[test]
fn a_revival_and_failed_installations_ride_the_sweep_until_it_has_arrived() {
    let mut lab = Lab::starting();
    lab.stage_nothing(100);
    lab.world.files.insert(REVIVED_FILE, StateText::Text("reason=heartbeat stale\n".into()));
    let name = "local-claude-install-failed.90".to_owned();
    lab.world.install_failures = vec![InstallFailure { name, text: StateText::Text("npm ERR!".into()) }];
    let emit = lab.emit(101).unwrap();
    assert_eq!(emit.reason, "startup-sweep");
    assert_eq!(emit.sections[..2], [SectionKind::WatcherRevived, SectionKind::InstallFailure]);
    for path in ["watcher-revived", "local-claude-install-failed.90"] {
        assert!(emit.commits.contains(&Commit::RemoveState { path: path.into() }), "{:?}", emit.commits);
    }
    // Held, it is composed again with the same news.
    assert_eq!(lab.emit(110).unwrap().stable_hash, emit.stable_hash);
    lab.told = true;
    lab.stage_nothing(160);
    assert_eq!(lab.run(160), []);
}

#[test]
fn an_unarmed_supervisor_is_told_with_any_news_and_alone_once_a_day() {
    let mut lab = Lab::running();
    lab.world.stamps.insert(SUPERVISOR_FILE, FileStamp::Absent);
    lab.stage_nothing(1060);
    let alone = lab.emit(1060).unwrap();
    assert_eq!((alone.reason.as_str(), alone.sections[0]), ("poll-resurface", SectionKind::ArmSupervisor));
    lab.deliver(1061, &alone);
    // Other news tell it along, and push its own emit out of the ring.
    for n in 1..20 {
        let secs = 1060 + n * 600;
        lab.stage_nothing(secs);
        let news = Section { lines: vec![format!("  - w{n}")], ..bell() };
        lab.stage("bell_windows", secs, &[news]);
        let emit = lab.emit(secs).unwrap();
        assert_eq!(emit.sections[..2], [SectionKind::ArmSupervisor, SectionKind::Bells]);
        lab.deliver(secs + 1, &emit);
        lab.stage_nothing(secs + 60);
        assert_eq!(lab.emit(secs + 60), None, "{n}");
    }
    let last = 1060 + 19 * 600;
    lab.stage_nothing(last + 86_400);
    assert!(lab.emit(last + 86_400).is_some());
    lab.world.stamps.insert(SUPERVISOR_FILE, stamp(last + 86_400));
    assert_eq!(lab.emit(last + 86_401), None);
    lab.world.stamps.insert(SUPERVISOR_FILE, FileStamp::Absent);
    lab.settings.supervisor_reminder = false;
    assert_eq!(lab.emit(last + 86_402), None);
}

/// What `full_state_snap` stages of these workers.
fn snapshot_of(numbers: &[u32], secs: i64) -> StagedSignal {
    let entry = |number: &u32| Entry {
        label: format!("w{number}"),
        name: format!("w{number}"),
        window: WindowId::new(*number),
        state: State::Busy,
        age: Duration::ZERO,
        outcome: Outcome::Active,
    };
    let at = Timestamp::from_secs(secs);
    let roster = Roster { at, entries: numbers.iter().map(entry).collect(), log_missing: false };
    let world = Snapshot::default();
    let section = full_state::section(at, &roster, full_state_snap::last_told(&world));
    StagedSignal {
        at,
        sections: section.into_iter().collect(),
        roster: Some(Rc::new(roster)),
        ..StagedSignal::default()
    }
}

fn listed(numbers: &[u32]) -> Gathered<crate::logic::snapshot::TmuxView> {
    tmux(numbers.iter().map(|number| pane(*number, &format!("w{number}"))).collect())
}

#[test]
fn a_full_snapshot_passes_the_ring_and_is_not_told_twice() {
    let mut lab = Lab::running();
    lab.stage_nothing(1600);
    lab.staged.insert("full_state_snap", snapshot_of(&[1, 2], 1600));
    let emit = lab.emit(1600).unwrap();
    assert_eq!(emit.reason, "poll-full-state");
    let rows = "\n--- workspace snapshot ---\n  - w1 (active, state=busy)\n  - w2 (active, state=busy)\n\
                (full snapshot; transitions only between snapshots)\n";
    assert!(emit.body.contains(rows), "{}", emit.body);
    lab.deliver(1602, &emit);
    lab.stage_nothing(1660);
    assert_eq!(lab.run(1660), []);
    lab.stage_nothing(2200);
    lab.staged.insert("full_state_snap", snapshot_of(&[1, 2], 2200));
    assert_eq!(lab.emit(2200).unwrap().stable_hash, emit.stable_hash);
}

#[test]
fn a_window_that_closed_before_the_paste_is_not_in_the_snapshot() {
    let check = |view: Gathered<crate::logic::snapshot::TmuxView>, re_stat: bool, expected: &[&str]| {
        let mut lab = Lab::running();
        lab.settings.full_state_re_stat = re_stat;
        lab.stage_nothing(1600);
        lab.staged.insert("full_state_snap", snapshot_of(&[1, 2], 1600));
        lab.world.tmux = view;
        let emit = lab.emit(1600);
        let body = emit.as_ref().map_or("", |emit| emit.body.as_str());
        let rows: Vec<&str> = body.lines().filter(|line| line.contains("(active")).collect();
        assert_eq!(rows, expected);
        let form = emit.and_then(|emit| {
            emit.commits.into_iter().find_map(|commit| match commit {
                Commit::WriteState { path, text } if path == CANONICAL_FILE => Some(text),
                _ => None,
            })
        });
        // What is remembered is what was told.
        assert_eq!(form.map_or(0, |form| form.matches("(active").count()), expected.len());
    };
    let (one, two) = ("  - w1 (active, state=busy)", "  - w2 (active, state=busy)");
    check(listed(&[1, 2, 3]), true, &[one, two]);
    check(listed(&[2]), true, &[two]);
    check(listed(&[3]), true, &[]);
    check(listed(&[2]), false, &[one, two]);
    check(listed(&[]), true, &[one, two]);
    check(Gathered::Failed("timeout".into()), true, &[one, two]);
}

#[test]
fn who_asked_since_the_last_report_is_counted_and_the_delivery_settles_it() {
    let mut lab = Lab::running();
    let roster = snapshot_of(&[1, 2, 3], 1060);
    lab.stage_nothing(1060);
    lab.staged.insert("idle_section", StagedSignal { sections: vec![], ..roster });
    lab.stage("bell_windows", 1060, &[bell()]);
    let asked = |window: &str, secs| Notification { window: window.into(), at: Timestamp::from_secs(secs) };
    lab.world.notifications = vec![asked("w1", 900), asked("w2", 950), asked("w2", 960), asked("gone", 970)];
    assert!(lab.emit(1060).unwrap().body.contains("| 2 awaiting-input\n"));
    lab.world.files.insert(PRELUDE_FILE, StateText::Text("900.5\n".into()));
    let emit = lab.emit(1060).unwrap();
    assert!(emit.body.contains("| 1 awaiting-input\n"), "{}", emit.body);
    let counted = Commit::WriteState { path: "last-prelude.ts".into(), text: "1060.000\n".into() };
    assert!(emit.commits.contains(&counted), "{:?}", emit.commits);
}
