//! `pending_decisions`: lists decisions that wait for an answer, and pulls the report forward for a new one.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Class, Need, Out, Task, TaskSpec};
use crate::config::resolved::Settings;
use crate::logic::action::Action;
use crate::logic::emit::decisions::{STAMPS_FILE, Stamps, Windows, render};
use crate::logic::signal::{Commit, StagedSignal};
use crate::logic::snapshot::{Snapshot, StateText};
use crate::logic::time::Now;

/// Cadence of `compose_emit` after a new decision, and how long it lasts.
const HURRY: Duration = Duration::from_secs(5);

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "pending_decisions",
    every: |_settings| Duration::from_secs(10),
    class: Class::Cheap,
    needs: &[Need::Decisions, Need::Panes, Need::File(STAMPS_FILE)],
    doc: "Lists decisions that wait for an answer.",
    build: || Box::new(PendingDecisions::default()),
};

/// Memory of the task.
#[derive(Default)]
struct PendingDecisions {
    /// Rows that were due in the last run; another one is news.
    due: BTreeSet<(String, String)>,
}

impl Task for PendingDecisions {
    fn decide(&mut self, now: &Now, settings: &Settings, snap: &Snapshot, out: &mut Out) {
        let Some(files) = snap.decisions.got() else { return };
        let stamps = snap.files.get(STAMPS_FILE).and_then(StateText::text).unwrap_or("");
        if files.is_empty() && !stamps.is_empty() {
            let empty = Commit::WriteState { path: STAMPS_FILE.into(), text: String::new() };
            out.actions.push(Action::Commit(vec![empty]));
        }
        let windows = Windows {
            // A window that is not listed is gone only if every server has said what it has.
            listed: snap.tmux.got().filter(|view| view.unlisted().next().is_none()).map_or(&[], |view| &view.panes),
            observed: snap.panes.got().map_or(&[], Vec::as_slice),
            target: &settings.target_window,
        };
        let rendered = render(now, files, windows, &Stamps::parse(stamps), settings.emit_cooldown);
        let due: BTreeSet<_> = rendered.told.into_iter().collect();
        if !due.is_subset(&self.due) {
            out.actions.push(Action::Hurry { task: "compose_emit", every: HURRY, lasting: HURRY });
        }
        self.due = due;
        let sections = rendered.section.into_iter().collect();
        out.staged = Some(StagedSignal { at: now.at, sections, ..StagedSignal::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, settings};
    use super::*;
    use crate::logic::ids::WindowName;
    use crate::logic::snapshot::{DecisionFile, Gathered};

    fn file(window: &str) -> DecisionFile {
        DecisionFile {
            path: format!("/s/decisions/{window}.0a1b2c3d4e5f.json"),
            window: WindowName(window.into()),
            fingerprint: "0a1b2c3d4e5f".into(),
            record: Err("empty".into()),
        }
    }

    fn run(task: &mut PendingDecisions, secs: i64, files: Gathered<Vec<DecisionFile>>, stamps: &str) -> Out {
        let mut out = Out::default();
        let snap = Snapshot {
            decisions: files,
            files: [(STAMPS_FILE, StateText::Text(stamps.into()))].into(),
            ..Snapshot::default()
        };
        task.decide(&at(secs), &settings(), &snap, &mut out);
        out
    }

    #[test]
    fn a_new_decision_hurries_the_report_once() {
        let mut task = PendingDecisions::default();
        let first = run(&mut task, 1000, Gathered::Got(vec![file("w3")]), "");
        assert!(matches!(first.actions.as_slice(), [Action::Hurry { task: "compose_emit", .. }]));
        assert_eq!(first.staged.unwrap().sections.len(), 1);
        assert_eq!(run(&mut task, 1010, Gathered::Got(vec![file("w3")]), "").actions, []);
        assert_eq!(run(&mut task, 1020, Gathered::Got(vec![file("w3"), file("w4")]), "").actions.len(), 1);
    }

    #[test]
    fn a_delivered_decision_is_staged_again_after_the_cooldown() {
        let mut task = PendingDecisions::default();
        let mut staged = |secs| {
            let out = run(&mut task, secs, Gathered::Got(vec![file("w3")]), "w3\t0a1b2c3d4e5f\t1000\n");
            out.staged.unwrap().sections.len()
        };
        assert_eq!((staged(1010), staged(1299), staged(1300)), (0, 0, 1));
    }

    #[test]
    fn an_empty_directory_truncates_the_table_and_an_unreadable_one_does_nothing() {
        let mut task = PendingDecisions::default();
        let out = run(&mut task, 1000, Gathered::Got(vec![]), "w3\t0a1b2c3d4e5f\t1000\n");
        assert!(matches!(out.actions.as_slice(), [Action::Commit(_)]));
        let out = run(&mut task, 1000, Gathered::Failed("denied".into()), "x\ty\t1\n");
        assert!(out.staged.is_none() && out.actions.is_empty());
        assert_eq!(run(&mut task, 1000, Gathered::Got(vec![]), "").actions, []);
    }
}
