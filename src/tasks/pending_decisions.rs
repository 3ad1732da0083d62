//! `pending_decisions`: Lists decisions that wait for an answer.

use std::time::Duration;

use super::{Class, Need, Out, Task, TaskSpec};
use crate::config::resolved::Settings;
use crate::logic::snapshot::Snapshot;
use crate::logic::time::Now;

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "pending_decisions",
    every: |_settings| Duration::from_secs(10),
    class: Class::Cheap,
    needs: &[Need::Decisions, Need::Panes],
    doc: "Lists decisions that wait for an answer.",
    build: |settings| Box::new(Memory::new(settings)),
};

/// Memory of the task.
struct Memory {}

impl Memory {
    fn new(_settings: &Settings) -> Self {
        Self {}
    }
}

impl Task for Memory {
    fn decide(&mut self, _now: &Now, _snap: &Snapshot, _out: &mut Out) {}
}
