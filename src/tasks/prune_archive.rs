//! `prune_archive`: Deletes old archived emits and rotates oversized logs.

use std::time::Duration;

use super::{Class, Need, Out, Task, TaskSpec};
use crate::config::resolved::Settings;
use crate::logic::snapshot::Snapshot;
use crate::logic::time::Now;

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "prune_archive",
    every: |_settings| Duration::from_secs(600),
    class: Class::Cheap,
    needs: &[Need::ArchiveNames],
    doc: "Deletes old archived emits and rotates oversized logs.",
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
