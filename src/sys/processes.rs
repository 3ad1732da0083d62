//! The processes of panes, as the watcher asks for them: the one place a simulated fleet stands in for `/proc`.

use std::cell::RefCell;
use std::time::Duration;

use super::procfs::{Process, ProcessTable};
use crate::logic::time::Now;

/// How long one reading of the process table serves.
const TABLE_FRESH: Duration = Duration::from_secs(2);

/// A pane's process and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Parents before children; the first is the pane's own.
    pub processes: Vec<Process>,
    /// How long the pane's own process has been running.
    pub age: Duration,
}

/// What the watcher asks of the machine's processes. Real: [`Machine`]; simulated in tests.
pub trait Processes: std::fmt::Debug {
    /// A process and everything below it; `None` if it can't be told or there is none of that id.
    fn tree(&self, pid: u32, now: &Now) -> Option<Tree>;
}

/// The processes of this machine, read at most every two seconds.
#[derive(Debug, Default)]
pub struct Machine {
    /// The last reading and its monotonic time.
    table: RefCell<Option<(Duration, ProcessTable)>>,
}

impl Processes for Machine {
    fn tree(&self, pid: u32, now: &Now) -> Option<Tree> {
        let mut table = self.table.borrow_mut();
        if table.as_ref().is_none_or(|(at, _)| now.uptime.saturating_sub(*at) >= TABLE_FRESH) {
            // A table that can't be read now leaves none, rather than an old one.
            *table = None;
            *table = Some((now.uptime, ProcessTable::read().ok()?));
        }
        let (_, table) = table.as_ref()?;
        let processes = table.below(pid).ok()?;
        let age = table.age(processes.first()?);
        Some(Tree { processes, age })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::time::Timestamp;

    #[test]
    fn a_process_is_found_and_an_id_that_nobody_has_is_not() {
        let (machine, now) = (Machine::default(), Now::fixed(Timestamp::from_secs(1)));
        let own = machine.tree(std::process::id(), &now).unwrap();
        assert_eq!(own.processes[0].pid, std::process::id());
        assert_eq!(machine.tree(u32::MAX, &now), None);
    }
}
