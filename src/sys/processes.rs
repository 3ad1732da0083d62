//! The processes of panes, as the watcher asks for them: the one place a simulated fleet stands in for `/proc`.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::procfs::{Held, Process, ProcessTable};
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

    /// Takes hold of a line of processes, each the parent of the next, so that looking at them again is cheap. `None`
    /// where that can't be done; then the tree is asked for each time.
    fn hold(&self, line: &[&Process]) -> Option<Box<dyn Hold>> {
        let _ = line;
        None
    }
}

/// A line of processes that is held.
pub trait Hold: std::fmt::Debug {
    /// Whether every one of them lives, still below the first, and runs the program that it ran when it was taken hold
    /// of. `false` where that can't be told.
    fn is_unchanged(&self) -> bool;
}

/// The processes of this machine, read at most every two seconds.
#[derive(Debug, Default)]
pub struct Machine {
    /// The last reading and its monotonic time.
    table: RefCell<Option<(Duration, ProcessTable)>>,
    /// Counts what is held, a clone each.
    held: Rc<()>,
}

/// Processes held by their directories. A process has another parent only after its own has ended, so a line in which
/// all live is still a line.
#[derive(Debug)]
struct Line {
    processes: Vec<Held>,
    _counted: Vec<Rc<()>>,
}

impl Hold for Line {
    fn is_unchanged(&self) -> bool {
        self.processes.iter().all(Held::runs_the_same)
    }
}

/// How many processes may be held: a descriptor each, and half of all that we may have open.
fn most_held() -> usize {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    most.map_or(usize::MAX, |most| usize::try_from(most / 2).unwrap_or(usize::MAX))
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

    fn hold(&self, line: &[&Process]) -> Option<Box<dyn Hold>> {
        if Rc::strong_count(&self.held) + line.len() > most_held() {
            return None;
        }
        let processes = line.iter().map(|process| Held::take(process)).collect::<Option<Vec<Held>>>()?;
        let counted = processes.iter().map(|_| Rc::clone(&self.held)).collect();
        Some(Box::new(Line { processes, _counted: counted }))
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
