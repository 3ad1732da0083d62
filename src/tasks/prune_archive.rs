//! `prune_archive`: deletes old archived emits by name, old receipts of hooks, and rotates oversized logs.

use std::time::Duration;

use super::{Class, Need, Out, Task, TaskSpec};
use crate::config::resolved::Settings;
use crate::logic::action::Action;
use crate::logic::audit;
use crate::logic::emit::archive::{Retention, to_prune};
use crate::logic::snapshot::Snapshot;
use crate::logic::time::Now;

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "prune_archive",
    every: |_settings| Duration::from_secs(600),
    class: Class::Cheap,
    needs: &[Need::ArchiveNames],
    doc: "Deletes old archived emits and receipts, and rotates oversized logs.",
    build: || Box::new(PruneArchive),
};

/// Logs that grow with every event, relative to the state directory.
const STATE_LOGS: [&str; 10] = [
    "action-log.jsonl",
    audit::ACTS,
    audit::SCREENS,
    "emits.jsonl",
    "machine-input.tsv",
    "sends.jsonl",
    "watcher-alerts.log",
    "watcher-spawns.log",
    "watcher-unstick.log",
    "worker-notifications.jsonl",
];

/// The log of the scheduler, which has a limit of its own.
const SCHEDULER_LOG: &str = "watcher-scheduler.jsonl";

/// The task has no memory: what there is to remove stands in the folders.
struct PruneArchive;

impl Task for PruneArchive {
    fn decide(&mut self, now: &Now, settings: &Settings, snap: &Snapshot, out: &mut Out) {
        let limits = Retention {
            keep: settings.archive_keep,
            max_files: settings.archive_max_files,
            max_per_run: settings.archive_prune_max,
        };
        if let Some(names) = snap.archive_names.got() {
            let names = to_prune(names, now.at, limits);
            if !names.is_empty() {
                out.actions.push(Action::PruneArchive { names });
            }
        }
        out.actions.push(Action::PruneHookFiles { keep: limits.keep });
        let logs = STATE_LOGS.map(|path| (path, settings.state_log_max_bytes));
        for (path, max_bytes) in logs.into_iter().chain([(SCHEDULER_LOG, settings.scheduler_log_max_bytes)]) {
            out.actions.push(Action::RotateLog { path: path.to_owned(), max_bytes, keep: limits.keep });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::settings;
    use super::*;
    use crate::logic::snapshot::Gathered;
    use crate::logic::time::Timestamp;

    #[test]
    fn old_emits_go_and_every_growing_log_is_bounded() {
        let old = "2026-05-01_00-00-00_aaaaaa.md".to_owned();
        let names = Gathered::Got(vec![old.clone(), "2026-05-10_00-00-00_bbbbbb.md".into()]);
        let now = Now::fixed(Timestamp::parse_iso("2026-05-11T00:00:00Z").unwrap());
        let mut out = Out::default();
        let snap = Snapshot { archive_names: names, ..Snapshot::default() };
        PruneArchive.decide(&now, &settings(), &snap, &mut out);
        assert_eq!(out.actions.first(), Some(&Action::PruneArchive { names: vec![old] }));
        let rotated: Vec<_> = out
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::RotateLog { path, max_bytes, .. } => Some((path.as_str(), max_bytes >> 20)),
                _ => None,
            })
            .collect();
        assert_eq!(
            rotated,
            [
                ("action-log.jsonl", 10),
                ("audit/acts.jsonl", 10),
                ("audit/screens.jsonl", 10),
                ("emits.jsonl", 10),
                ("machine-input.tsv", 10),
                ("sends.jsonl", 10),
                ("watcher-alerts.log", 10),
                ("watcher-spawns.log", 10),
                ("watcher-unstick.log", 10),
                ("worker-notifications.jsonl", 10),
                ("watcher-scheduler.jsonl", 50)
            ]
        );
    }

    #[test]
    fn limits_are_those_of_the_run() {
        let names = Gathered::Got(vec!["2026-05-01_00-00-00_aaaaaa.md".to_owned()]);
        let now = Now::fixed(Timestamp::parse_iso("2026-05-11T00:00:00Z").unwrap());
        let snap = Snapshot { archive_names: names, ..Snapshot::default() };
        let mut task = PruneArchive;
        for (days, log_bytes, prunes) in [(30, 70_000, false), (7, 90_000, true)] {
            let keep = Duration::from_secs(days * 86_400);
            let settings = Settings { archive_keep: keep, state_log_max_bytes: log_bytes, ..settings() };
            let mut out = Out::default();
            task.decide(&now, &settings, &snap, &mut out);
            assert_eq!(out.actions.iter().any(|action| matches!(action, Action::PruneArchive { .. })), prunes);
            assert!(
                out.actions
                    .iter()
                    .any(|action| matches!(action, Action::RotateLog { max_bytes, .. } if *max_bytes == log_bytes))
            );
        }
    }

    #[test]
    fn an_archive_that_cannot_be_listed_is_left_alone() {
        let mut out = Out::default();
        let snap = Snapshot { archive_names: Gathered::Failed("denied".into()), ..Snapshot::default() };
        PruneArchive.decide(&super::super::testing::at(1), &settings(), &snap, &mut out);
        assert!(!out.actions.iter().any(|action| matches!(action, Action::PruneArchive { .. })));
        // What hooks left has nothing to do with the archive.
        assert!(out.actions.iter().any(|action| matches!(action, Action::PruneHookFiles { .. })));
    }
}
