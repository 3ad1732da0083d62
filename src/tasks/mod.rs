//! CHECKS. One short file a registered task: what it needs, which logic it calls, what it stages.
//!
//! Adding a task is one file and one line in [`TASKS`]. Tasks are synchronous and pure: the daemon fetches what they
//! need beforehand and carries out what they ask for afterwards.

use std::time::Duration;

use crate::config::resolved::Settings;
use crate::logic::action::Action;
use crate::logic::signal::StagedSignal;
use crate::logic::snapshot::Snapshot;
use crate::logic::time::Now;

mod bell_windows;
mod compose_emit;
mod full_state_snap;
mod idle_section;
mod pending_decisions;
mod prune_archive;
mod snapshot_local;
pub(crate) mod target_window;
#[cfg(test)]
mod testing;

/// What a task wants in the [`Snapshot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// `tmux`: the list of panes.
    Tmux,
    /// `target`: the panes of the windows that have the target's name, which is cheaper than all of them.
    Target,
    /// `panes`: verdicts on the watched panes (implies `Tmux`).
    Panes,
    /// `decisions`.
    Decisions,
    /// `action_log` and `report_texts`.
    ActionLog,
    /// `local`.
    Local,
    /// `archive_names`.
    ArchiveNames,
    /// `staged` and `nonce`.
    Staged,
    /// `registry`: the text of `<root>/monitor/services.registry`.
    Registry,
    /// `install_failures`, until an emit of this run has arrived.
    InstallFailures,
    /// `notifications`.
    Notifications,
    /// `status_page`: the text of the file that `status_surface.url_file` names.
    StatusPage,
    /// `files[path]`: a small state file, by its path relative to the state directory.
    File(&'static str),
    /// `stamps[path]`: when a state file was last written, by its path relative to the state directory.
    Stamp(&'static str),
}

/// How costly a task is; informational (`protocol-facts` §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// No more than a list or a file.
    Cheap,
    /// Some files or captures.
    Medium,
    /// Looks at every pane.
    Expensive,
}

impl Class {
    /// The printed word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cheap => "cheap",
            Self::Medium => "medium",
            Self::Expensive => "expensive",
        }
    }
}

/// Everything about a registered task.
#[derive(Clone, Copy)]
pub struct TaskSpec {
    /// The specification's name; also the staging file, the log span and the row in `docs/tasks.md`.
    pub name: &'static str,
    /// Cadence, possibly from the settings.
    pub every: fn(&Settings) -> Duration,
    /// How costly it is.
    pub class: Class,
    /// What it wants gathered.
    pub needs: &'static [Need],
    /// One sentence for `ng tasks` and the docs.
    pub doc: &'static str,
    /// Makes the task with its memory empty. It is given no settings, so that it can't keep any: see [`Task::decide`].
    pub build: fn() -> Box<dyn Task>,
}

impl std::fmt::Debug for TaskSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a run of a task asks for.
#[derive(Debug, Default)]
pub struct Out {
    /// Replaces what this task had staged; `None` leaves it as it was (the task could not tell).
    pub staged: Option<StagedSignal>,
    /// To be carried out in order.
    pub actions: Vec<Action>,
    /// The specification's return code: 0 fine, 2 (`target_window`) absent, 75 try later. Others are telemetry.
    pub rc: i32,
}

/// One registered task with its memory.
pub trait Task {
    /// Looks at the snapshot and says what is to be told and done. Called too early or twice it must be harmless.
    ///
    /// `settings` are those in force at this run. They may be others at the next one, since the configuration is
    /// reloaded, so nothing of them may be kept.
    fn decide(&mut self, now: &Now, settings: &Settings, snap: &Snapshot, out: &mut Out);
}

/// Every task, by name.
pub const TASKS: &[TaskSpec] = &[
    bell_windows::SPEC,
    compose_emit::SPEC,
    full_state_snap::SPEC,
    idle_section::SPEC,
    pending_decisions::SPEC,
    prune_archive::SPEC,
    snapshot_local::SPEC,
    target_window::SPEC,
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        let names: Vec<_> = TASKS.iter().map(|task| task.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
    }

    #[test]
    fn every_task_has_its_row_in_the_documentation() {
        let page = include_str!("../../docs/tasks.md");
        let settings = Settings::defaults(Path::new("/nexus"));
        for task in TASKS {
            let cadence = (task.every)(&settings).as_secs();
            let row = format!("| `{}` | {cadence} s | {} | {} |", task.name, task.class.word(), task.doc);
            assert!(page.contains(&row), "docs/tasks.md lacks a row that begins with:\n{row}");
        }
    }

    #[test]
    fn every_task_survives_an_empty_world() {
        let settings = Settings::defaults(Path::new("/nexus"));
        for spec in TASKS {
            let mut task = (spec.build)();
            for at in [0, 1, 1] {
                let mut out = Out::default();
                let now = Now::fixed(crate::logic::time::Timestamp::from_secs(at));
                task.decide(&now, &settings, &Snapshot::default(), &mut out);
                assert!(out.staged.is_none_or(|staged| staged.sections.is_empty()), "{}", spec.name);
            }
        }
    }
}
