//! `snapshot_local`: compares reports, windows and repositories with the last baseline.

use std::time::Duration;

use super::{Class, Need, Out, Task, TaskSpec};
use crate::config::resolved::Settings;
use crate::logic::action::Action;
use crate::logic::local::baseline::{Change, Observed, compare, listed, tmux_lines};
use crate::logic::signal::{Commit, Section, SectionKind, StagedSignal};
use crate::logic::snapshot::{Snapshot, StateText};
use crate::logic::time::Now;
use crate::logic::worker::scope;

/// The baseline, relative to the state directory.
pub(super) const BASELINE_FILE: &str = "last-snapshot.txt";

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "snapshot_local",
    every: |_settings| Duration::from_secs(30),
    class: Class::Medium,
    needs: &[Need::Tmux, Need::Local, Need::File(BASELINE_FILE)],
    doc: "Compares reports, windows and repositories with the last baseline.",
    build: || Box::new(SnapshotLocal),
};

/// The task has no memory: the baseline is a file, and only a delivery or noise advances it.
struct SnapshotLocal;

/// What this poll shows; `None` for each part that could not be had.
fn observe(settings: &Settings, snap: &Snapshot) -> Observed {
    let target = settings.target_window.as_str();
    let windows = snap.tmux.got().and_then(|view| {
        let sessions = scope::sessions(&view.panes, &settings.tmux_sessions, target)?;
        Some(tmux_lines(&scope::windows(&view.panes, &sessions), target))
    });
    let local = snap.local.got();
    Observed {
        reports: local.and_then(|local| listed(&local.reports)),
        tmux: windows,
        unlisted: snap.tmux.got().map(|view| view.unlisted().collect()).unwrap_or_default(),
        git: local.and_then(|local| listed(&local.git)),
        git_enabled: settings.git_enabled,
    }
}

impl Task for SnapshotLocal {
    fn decide(&mut self, now: &Now, settings: &Settings, snap: &Snapshot, out: &mut Out) {
        // Without the file's own word on the baseline, nothing is compared: "absent" would seed over it.
        let Some(baseline) = snap.files.get(BASELINE_FILE) else { return };
        let write = |text: String| Commit::WriteState { path: BASELINE_FILE.into(), text };
        let mut staged = StagedSignal { at: now.at, ..StagedSignal::default() };
        match compare(baseline, &observe(settings, snap)) {
            Change::None => {}
            Change::Seed { text } => {
                if matches!(baseline, StateText::Text(_)) {
                    staged.note = Some("seeded the local baseline anew".to_owned());
                }
                out.actions.push(Action::Commit(vec![write(text)]));
            }
            Change::Noise { text, verdict } => {
                staged.note = Some(verdict.note());
                out.actions.push(Action::Commit(vec![write(text)]));
            }
            Change::Signal { text, diff } => staged.sections.push(Section {
                kind: SectionKind::LocalChanges,
                lines: diff,
                commits: vec![write(text)],
                pages: true,
                windows: Vec::new(),
            }),
        }
        out.staged = Some(staged);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, settings, tmux};
    use super::*;
    use crate::logic::snapshot::{Gathered, LocalState};
    use crate::logic::worker::scope::tests::pane;

    /// A state directory of one file, and a world to look at.
    struct Lab {
        baseline: StateText,
        reports: Vec<String>,
        windows: Vec<&'static str>,
        tmux_answers: bool,
    }

    impl Lab {
        fn new() -> Self {
            let windows = vec!["orchestrator", "w2"];
            Self { baseline: StateText::Absent, reports: vec!["a.md".into()], windows, tmux_answers: true }
        }

        fn run(&mut self) -> StagedSignal {
            let panes = self.windows.iter().zip(1..).map(|(name, number)| pane(number, name)).collect();
            let local = LocalState { reports: Gathered::Got(self.reports.clone()), git: Gathered::NotAsked };
            let snap = Snapshot {
                tmux: if self.tmux_answers { tmux(panes) } else { Gathered::Failed("timeout".into()) },
                local: Gathered::Got(local),
                files: [(BASELINE_FILE, self.baseline.clone())].into(),
                ..Snapshot::default()
            };
            let mut out = Out::default();
            SnapshotLocal.decide(&at(100), &settings(), &snap, &mut out);
            for action in out.actions {
                if let Action::Commit(commits) = action {
                    self.commit(&commits);
                }
            }
            out.staged.unwrap()
        }

        fn commit(&mut self, commits: &[Commit]) {
            let [Commit::WriteState { path, text }] = commits else { panic!("{commits:?}") };
            assert_eq!(path, BASELINE_FILE);
            self.baseline = StateText::Text(text.clone());
        }
    }

    #[test]
    fn a_change_is_told_until_its_delivery_is_proven() {
        let mut lab = Lab::new();
        assert_eq!(lab.run().sections, []);
        lab.windows.push("w3");
        assert_eq!(lab.run().sections.len(), 1);
        let staged = lab.run();
        assert!(staged.sections[0].lines.contains(&"+w3 @3 bell=0".to_owned()), "{staged:?}");
        lab.commit(&staged.sections[0].commits);
        assert_eq!(lab.run().sections, []);
    }

    #[test]
    fn a_fresh_change_is_not_absorbed_by_an_older_delivery() {
        let mut lab = Lab::new();
        lab.run();
        lab.windows.push("w3");
        let told = lab.run();
        lab.reports.push("b.md".into());
        lab.commit(&told.sections[0].commits);
        let lines = lab.run().sections[0].lines.clone();
        assert!(lines.contains(&"+b.md".to_owned()) && !lines.iter().any(|line| line.starts_with("+w3")), "{lines:?}");
    }

    #[test]
    fn a_baseline_of_another_form_is_seeded_anew_with_a_note_and_a_missing_one_without() {
        let mut lab = Lab::new();
        assert_eq!(lab.run().note, None);
        lab.baseline = StateText::Text("of another form\n".into());
        assert_eq!(lab.run().note.as_deref(), Some("seeded the local baseline anew"));
    }

    #[test]
    fn noise_advances_the_baseline_with_a_note() {
        let mut lab = Lab::new();
        lab.run();
        lab.reports.push("b-interim.md".into());
        let staged = lab.run();
        assert_eq!(staged.sections, []);
        assert!(staged.note.unwrap().starts_with("suppressed emit: "));
        assert_eq!(lab.run().note, None);
    }

    #[test]
    fn a_tmux_that_did_not_answer_and_a_missing_target_change_nothing() {
        let mut lab = Lab::new();
        lab.run();
        lab.tmux_answers = false;
        assert_eq!(lab.run().sections, []);
        lab.tmux_answers = true;
        lab.windows = vec!["elsewhere"];
        assert_eq!(lab.run().sections, []);
    }
}
