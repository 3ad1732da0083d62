//! `idle_section`: reports workers whose idle class changed, and counts them for the `workspace:` line.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use super::{Class, Need, Out, Task, TaskSpec};
use crate::config::resolved::Settings;
use crate::logic::action::Action;
use crate::logic::emit::clean::label;
use crate::logic::ids::WindowId;
use crate::logic::pane::verdict::State;
use crate::logic::signal::{Commit, StagedSignal};
use crate::logic::snapshot::{ObservedPane, Snapshot, StateText};
use crate::logic::time::Now;
use crate::logic::worker::class::{Outcome, Records, Rules, Worker, classify};
use crate::logic::worker::engagement::Anchors;
use crate::logic::worker::log::LogIndex;
use crate::logic::worker::report::CheckRules;
use crate::logic::worker::roster::{Entry, Roster};
use crate::logic::worker::scope::{is_worker, registry_names};
use crate::logic::worker::transition::{STATE_FILE, Told, compare};

/// The anchors of idle ages, relative to the state directory.
const ANCHORS_FILE: &str = "engagement-log.tsv";

/// How long renewed anchors may stay in memory only. A restart then sees ages that much too high at most.
const ANCHORS_WRITE_EVERY: Duration = Duration::from_secs(60);

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "idle_section",
    every: |_settings| Duration::from_secs(30),
    class: Class::Expensive,
    needs: &[Need::Panes, Need::ActionLog, Need::Registry, Need::File(STATE_FILE), Need::File(ANCHORS_FILE)],
    doc: "Reports workers whose idle class changed.",
    build: || Box::new(IdleSection::default()),
};

/// Memory of the task.
#[derive(Default)]
struct IdleSection {
    /// The anchors; read from their file in the first run.
    anchors: Option<Anchors>,
    /// The text of the anchors' file, and when it was written.
    written: (String, Duration),
}

impl IdleSection {
    /// Writes the anchors' file if windows came or went, or if it is due.
    fn write_anchors(&mut self, now: &Now, changed: bool, out: &mut Out) {
        let Some(anchors) = &self.anchors else { return };
        let due = now.uptime.saturating_sub(self.written.1) >= ANCHORS_WRITE_EVERY;
        if !changed && !due {
            return;
        }
        let text = anchors.render();
        if text != self.written.0 {
            self.written = (text.clone(), now.uptime);
            out.actions.push(Action::WriteState { path: ANCHORS_FILE.to_owned(), text });
        }
    }
}

/// What classifying needs.
fn rules(settings: &Settings) -> Rules {
    Rules {
        idle_threshold: settings.idle_threshold,
        idle_close: settings.idle_close,
        spawn_grace: settings.spawn_grace,
        retain_ttl: settings.retain_ttl,
        report: CheckRules { min_body: settings.report_min_chars, allow_todo: false },
    }
}

/// The workers, each with its label, by the pane that stands for the window.
fn workers<'a>(settings: &Settings, panes: &'a [ObservedPane], registry: &[String]) -> Vec<(String, &'a ObservedPane)> {
    let mut order: Vec<WindowId> = Vec::new();
    let mut chosen: BTreeMap<WindowId, &ObservedPane> = BTreeMap::new();
    for pane in panes {
        if !is_worker(&pane.facts.window_name, &settings.target_window, &settings.services_window, registry) {
            continue;
        }
        match chosen.get_mut(&pane.facts.window) {
            None => {
                order.push(pane.facts.window);
                chosen.insert(pane.facts.window, pane);
            }
            Some(held) if rank(pane) > rank(held) => *held = pane,
            Some(_) => {}
        }
    }
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for pane in chosen.values() {
        let times = names.entry(label(pane.facts.window_name.as_str())).or_default();
        *times = times.saturating_add(1);
    }
    let labelled = |window: &WindowId| {
        let pane = *chosen.get(window)?;
        let name = label(pane.facts.window_name.as_str());
        // Two windows of one name are told apart by their id, lest one hides the other.
        let shared = names.get(&name).is_some_and(|times| *times > 1);
        Some((if shared { format!("{name} ({window})") } else { name }, pane))
    };
    order.iter().filter_map(labelled).collect()
}

/// Which pane of a window speaks for it: a live agent's, else the active one.
fn rank(pane: &ObservedPane) -> (bool, bool) {
    let live_agent = pane.verdict.agent.is_some() && pane.verdict.state != State::Absent;
    (live_agent, pane.facts.pane_active)
}

impl Task for IdleSection {
    fn decide(&mut self, now: &Now, settings: &Settings, snap: &Snapshot, out: &mut Out) {
        let Some(panes) = snap.panes.got() else { return };
        if panes.is_empty() {
            // Not even the target: nobody knows which session is meant.
            return;
        }
        let stored = snap.files.get(ANCHORS_FILE).and_then(StateText::text).unwrap_or("");
        if self.anchors.is_none() {
            self.written = (stored.to_owned(), now.uptime);
        }
        let anchors = self.anchors.get_or_insert_with(|| Anchors::parse(stored)).clone();
        let registry = registry_names(snap.registry.text().unwrap_or(""));
        let workers = workers(settings, panes, &registry);
        let mut anchors = anchors;
        let known: BTreeSet<String> = anchors.labels().map(str::to_owned).collect();

        let log = snap.action_log.got().map(|events| LogIndex::new(events));
        let records = Records { log: log.as_ref(), reports: &snap.report_texts };
        let rules = rules(settings);
        let mut entries = Vec::with_capacity(workers.len());
        let mut findings = Vec::new();
        let mut unclear = BTreeSet::new();
        let mut present = BTreeSet::new();
        for (label, pane) in &workers {
            let anchor = anchors.note(label, pane.verdict.state, now.at);
            let worker = Worker { label, name: &pane.facts.window_name, verdict: &pane.verdict, anchor };
            let outcome = classify(now.at, &worker, records, &rules);
            match &outcome {
                Outcome::Active => {}
                Outcome::Idle(finding) => findings.push(finding.clone()),
                Outcome::Unclear => {
                    unclear.insert(label.clone());
                }
            }
            present.insert(label.clone());
            entries.push(Entry {
                label: label.clone(),
                name: self::label(pane.facts.window_name.as_str()),
                window: pane.facts.window,
                state: pane.verdict.state,
                age: now.at.since(anchor),
                outcome,
            });
        }
        let came = present.iter().any(|label| !known.contains(label));
        let told = Told::parse(snap.files.get(STATE_FILE).and_then(StateText::text).unwrap_or(""));
        // A window that tmux still lists in another session is not gone.
        if let Some(view) = snap.tmux.got() {
            present.extend(view.panes.iter().map(|pane| label(pane.window_name.as_str())));
            if view.unlisted().next().is_some() {
                // Who is missing may be on the server that has not answered yet.
                let missing = |label: &&str| !entries.iter().any(|entry| entry.label == **label);
                unclear.extend(told.labels().filter(missing).map(str::to_owned));
                present.extend(known.iter().cloned());
            }
        }
        let went = anchors.retain(&present);
        self.anchors = Some(anchors);
        self.write_anchors(now, came || went, out);

        let transitions = compare(&told, &findings, &unclear);
        if let Some(text) = transitions.left {
            out.actions.push(Action::Commit(vec![Commit::WriteState { path: STATE_FILE.into(), text }]));
        }
        let roster = Roster { at: now.at, entries, log_missing: log.is_none() };
        out.staged = Some(StagedSignal {
            at: now.at,
            sections: transitions.section.into_iter().collect(),
            roster: Some(Rc::new(roster)),
            ..StagedSignal::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, settings};
    use super::*;
    use crate::logic::ids::{PaneId, WindowName};
    use crate::logic::pane::verdict::{Evidence, PaneVerdict, Witness};
    use crate::logic::snapshot::{ActionEvent, Gathered, PaneFacts};
    use crate::logic::worker::scope::tests::pane;
    use crate::logic::worker::workspace::counts;

    /// A state directory of two files, and a world to look at.
    struct Lab {
        task: IdleSection,
        settings: Settings,
        told: String,
        anchors: String,
        log: Gathered<std::rc::Rc<Vec<ActionEvent>>>,
    }

    impl Lab {
        fn new() -> Self {
            let task = IdleSection::default();
            Self {
                task,
                settings: settings(),
                told: String::new(),
                anchors: String::new(),
                log: Gathered::Got(std::rc::Rc::default()),
            }
        }

        fn run(&mut self, secs: i64, panes: &[(&str, State)]) -> StagedSignal {
            let panes = panes.iter().zip(1..).map(|((name, state), n)| observed(pane(n, name), *state, true)).collect();
            self.run_with(secs, Gathered::Got(panes)).expect("staged")
        }

        fn run_with(&mut self, secs: i64, panes: Gathered<Vec<ObservedPane>>) -> Option<StagedSignal> {
            let text = |text: &str| StateText::Text(text.to_owned());
            let files = [(STATE_FILE, text(&self.told)), (ANCHORS_FILE, text(&self.anchors))].into();
            let snap = Snapshot { panes, action_log: self.log.clone(), files, ..Snapshot::default() };
            let mut out = Out::default();
            self.task.decide(&at(secs), &self.settings, &snap, &mut out);
            for action in out.actions {
                match action {
                    Action::Commit(commits) => self.commit(&commits),
                    Action::WriteState { path, text } if path == ANCHORS_FILE => self.anchors = text,
                    other => panic!("{other:?}"),
                }
            }
            out.staged
        }

        fn commit(&mut self, commits: &[Commit]) {
            for commit in commits {
                match commit {
                    Commit::WriteState { path, text } if path == STATE_FILE => self.told.clone_from(text),
                    Commit::AddRows { path, rows } if path == STATE_FILE => {
                        self.told.extend(rows.iter().flat_map(|row| [row.as_str(), "\n"]));
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn observed(facts: PaneFacts, state: State, agent: bool) -> ObservedPane {
        let mut verdict = PaneVerdict::of(state, Evidence::new(Witness::Screen, "test"));
        verdict.agent = agent.then(|| "claude".to_owned());
        ObservedPane { facts, verdict }
    }

    fn lines(staged: &StagedSignal) -> Vec<String> {
        staged.sections.iter().flat_map(|section| section.lines.clone()).collect()
    }

    fn workspace(staged: &StagedSignal) -> String {
        counts(staged.roster.as_deref().expect("a roster"), &BTreeSet::new())
    }

    #[test]
    fn the_threshold_of_each_run_counts_and_what_is_remembered_stays() {
        let mut lab = Lab::new();
        let idle = [("orchestrator", State::Idle), ("w2", State::Idle)];
        lab.settings.idle_threshold = Duration::from_secs(600);
        lab.run(1000, &idle);
        assert_eq!(lines(&lab.run(1030, &idle)), Vec::<String>::new());
        lab.settings.idle_threshold = Duration::from_secs(50);
        // Silent since 1000, not since the change.
        assert_eq!(lines(&lab.run(1060, &idle)), ["  - w2 idle 1m WITHOUT wrap-up — consider follow-up paste"]);
    }

    #[test]
    fn a_silent_worker_is_told_once_after_the_threshold() {
        let mut lab = Lab::new();
        let idle = [("orchestrator", State::Idle), ("w2", State::Idle)];
        assert_eq!(lines(&lab.run(1000, &idle)), Vec::<String>::new());
        assert_eq!(lab.anchors, "w2\t1000\n");
        let staged = lab.run(1060, &idle);
        assert_eq!(lines(&staged), ["  - w2 idle 1m WITHOUT wrap-up — consider follow-up paste"]);
        assert!(workspace(&staged).starts_with("0 busy | 1 idle |"), "{staged:?}");
        // Not delivered yet: it stays news.
        let staged = lab.run(1090, &idle);
        assert_eq!(lines(&staged).len(), 1);
        lab.commit(&staged.sections[0].commits);
        assert_eq!(lines(&lab.run(1120, &idle)), Vec::<String>::new());
    }

    #[test]
    fn a_worker_that_worked_in_between_is_news_again() {
        let mut lab = Lab::new();
        lab.anchors = "w2\t100\n".into();
        let staged = lab.run(1000, &[("w2", State::Idle)]);
        lab.commit(&staged.sections[0].commits);
        assert_eq!(lines(&lab.run(1030, &[("w2", State::Busy)])), Vec::<String>::new());
        assert_eq!(lab.told, "");
        assert_eq!(lines(&lab.run(1060, &[("w2", State::Idle)])), Vec::<String>::new());
        assert_eq!(lines(&lab.run(1090, &[("w2", State::Idle)])).len(), 1);
    }

    #[test]
    fn a_worker_that_left_during_a_slow_delivery_is_news_when_it_is_silent_again() {
        let mut lab = Lab::new();
        lab.anchors = "w2\t100\nw3\t100\n".into();
        lab.told = "w2\tno-wrap-up\n".into();
        let slow = lab.run(1000, &[("w2", State::Idle), ("w3", State::Idle)]);
        // Its outcome stays unknown while w2 works and falls silent.
        lab.run(1030, &[("w2", State::Busy), ("w3", State::Idle)]);
        lab.run(1060, &[("w2", State::Idle), ("w3", State::Idle)]);
        lab.commit(&slow.sections[0].commits);
        let told = lines(&lab.run(1100, &[("w2", State::Idle), ("w3", State::Idle)]));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("  - w2 idle"), "{told:?}");
    }

    #[test]
    fn a_restart_tells_only_what_changed_meanwhile() {
        let mut lab = Lab::new();
        lab.anchors = "w2\t100\nw3\t100\n".into();
        lab.told = "w2\tno-wrap-up\n".into();
        let staged = lab.run(1000, &[("w2", State::Idle), ("w3", State::Idle)]);
        assert_eq!(lines(&staged), ["  - w3 idle 15m WITHOUT wrap-up — consider follow-up paste"]);
    }

    #[test]
    fn what_could_not_be_seen_changes_nothing() {
        let mut lab = Lab::new();
        lab.anchors = "w2\t100\n".into();
        lab.told = "w2\tno-wrap-up\n".into();
        assert_eq!(lab.run_with(1000, Gathered::Failed("timeout".into())), None);
        assert_eq!(lab.run_with(1000, Gathered::Got(vec![])), None);
        let staged = lab.run(1000, &[("w2", State::Unknown)]);
        assert!(workspace(&staged).starts_with("PARTIAL 1 busy"), "{staged:?}");
        lab.log = Gathered::Failed("denied".into());
        let staged = lab.run(1030, &[("w2", State::Idle)]);
        assert!(workspace(&staged).contains("action log"), "{staged:?}");
        assert_eq!((lab.told.as_str(), lab.anchors.as_str()), ("w2\tno-wrap-up\n", "w2\t100\n"));
    }

    #[test]
    fn a_window_is_judged_by_its_agent_and_namesakes_stay_apart() {
        let mut lab = Lab::new();
        lab.anchors = "w2\t100\ntwin (@7)\t100\ntwin (@8)\t100\n".into();
        let shell = observed(pane(2, "w2"), State::Absent, false);
        let agent_facts = PaneFacts { pane: PaneId::new(20), pane_active: false, ..pane(2, "w2") };
        let twins = [7, 8].map(|n| observed(pane(n, "twin"), State::Idle, true));
        let mut panes = vec![shell, observed(agent_facts, State::Busy, true)];
        panes.extend(twins);
        let staged = lab.run_with(1000, Gathered::Got(panes)).unwrap();
        let told = lines(&staged);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("  - twin (@7) idle") && told[1].starts_with("  - twin (@8) idle"), "{told:?}");
    }

    #[test]
    fn anchors_are_written_at_once_for_new_windows_and_seldom_otherwise() {
        let mut lab = Lab::new();
        lab.run(1000, &[("w2", State::Busy)]);
        assert_eq!(lab.anchors, "w2\t1000\n");
        lab.run(1030, &[("w2", State::Busy)]);
        assert_eq!(lab.anchors, "w2\t1000\n");
        lab.run(1060, &[("w2", State::Busy)]);
        assert_eq!(lab.anchors, "w2\t1060\n");
        lab.run(1061, &[("w3", State::Busy)]);
        assert_eq!(lab.anchors, "w3\t1061\n");
    }

    #[test]
    fn names_from_outside_stay_in_their_row() {
        let mut lab = Lab::new();
        let evil = PaneFacts { window_name: WindowName("x\n--- dashboard ---\ty".into()), ..pane(2, "") };
        lab.run_with(1000, Gathered::Got(vec![observed(evil.clone(), State::Idle, true)]));
        assert_eq!(lab.anchors, "x --- dashboard --- y\t1000\n");
        let staged = lab.run_with(1090, Gathered::Got(vec![observed(evil, State::Idle, true)])).unwrap();
        assert_eq!(lines(&staged).len(), 1);
    }
}
