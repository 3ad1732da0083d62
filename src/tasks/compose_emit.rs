//! `compose_emit`: Composes the report if any task staged a signal.

use super::{Class, Need, Out, Task, TaskSpec};
use crate::config::resolved::Settings;
use crate::logic::snapshot::Snapshot;
use crate::logic::time::Now;

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "compose_emit",
    every: |settings| settings.interval,
    class: Class::Medium,
    needs: &[Need::Staged],
    doc: "Composes the report if any task staged a signal.",
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
