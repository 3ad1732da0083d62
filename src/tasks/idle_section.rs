//! `idle_section`: Reports workers whose idle class changed.

use std::time::Duration;

use super::{Class, Need, Out, Task, TaskSpec};
use crate::config::resolved::Settings;
use crate::logic::snapshot::Snapshot;
use crate::logic::time::Now;

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "idle_section",
    every: |_settings| Duration::from_secs(30),
    class: Class::Expensive,
    needs: &[Need::Panes, Need::ActionLog],
    doc: "Reports workers whose idle class changed.",
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
