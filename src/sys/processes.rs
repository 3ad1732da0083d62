//! The processes of panes, as the watcher asks for them: the one place a simulated fleet stands in for `/proc`.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::procfs::{self, Held, ProcError, Process, ProcessTable};
use super::running_version;
use crate::logic::time::{Now, Timestamp};

/// How long one reading of the process table serves.
const TABLE_FRESH: Duration = Duration::from_secs(2);

/// A pane's process and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Parents before children; the first is the pane's own.
    pub processes: Vec<Process>,
    /// How long the pane's own process has been running.
    pub age: Duration,
    /// When the processes were listed; those that started since are not among them.
    pub read_at: Now,
}

/// Why there is no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// No process has that id, and none belongs to its session.
    Gone,
    /// It can't be told.
    Blind,
}

/// What the watcher asks of the machine's processes. Real: [`Machine`]; simulated in tests.
pub trait Processes: std::fmt::Debug {
    /// A process and everything below it.
    ///
    /// Errors: there is none of that id, or it can't be told.
    fn tree(&self, pid: u32, now: &Now) -> Result<Tree, Unseen>;

    /// Whether a process is seen that started at this time: with the process of the tmux server, proof that the ids that
    /// tmux names are those that are seen here, and not of another container.
    fn sees(&self, pid: u32, started_at: Timestamp, now: &Now) -> bool {
        let _ = (pid, started_at, now);
        true
    }

    /// The version that the package says of which a running process is a part; it is not run.
    fn version(&self, process: &Process, packages: &[String]) -> Option<String> {
        let _ = (process, packages);
        None
    }

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
    /// The last reading and when it was made.
    table: RefCell<Option<(Now, ProcessTable)>>,
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

impl Machine {
    /// What the table says, read anew if it is old; `None` if it can't be read.
    fn with_table<T>(&self, now: &Now, ask: impl FnOnce(Now, &ProcessTable) -> T) -> Option<T> {
        let mut table = self.table.borrow_mut();
        if table.as_ref().is_none_or(|(at, _)| now.uptime.saturating_sub(at.uptime) >= TABLE_FRESH) {
            // A table that can't be read now leaves none, rather than an old one.
            *table = None;
            *table = Some((*now, ProcessTable::read().ok()?));
        }
        table.as_ref().map(|(at, table)| ask(*at, table))
    }
}

impl Processes for Machine {
    fn tree(&self, pid: u32, now: &Now) -> Result<Tree, Unseen> {
        // A pane may be newer than the list.
        let is_listed = self.with_table(now, |read_at, table| read_at == *now || table.lists(pid));
        if is_listed == Some(false) {
            *self.table.borrow_mut() = None;
        }
        self.with_table(now, |read_at, table| {
            let processes = match table.below(pid) {
                Ok(processes) => processes,
                // One that hides from the list still has its id.
                Err(ProcError::NoSuchProcess(pid)) if !procfs::is_taken(pid) => return Err(Unseen::Gone),
                Err(_) => return Err(Unseen::Blind),
            };
            let age = processes.first().map(|first| table.age(first)).unwrap_or_default();
            Ok(Tree { processes, age, read_at })
        })
        .unwrap_or(Err(Unseen::Blind))
    }

    fn sees(&self, pid: u32, started_at: Timestamp, now: &Now) -> bool {
        self.with_table(now, |_, table| table.has(pid, started_at)).unwrap_or(false)
    }

    fn version(&self, process: &Process, packages: &[String]) -> Option<String> {
        running_version::of(process, packages)
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

    #[test]
    fn a_process_is_found_and_an_id_that_nobody_has_is_not() {
        let (machine, now) = (Machine::default(), Now::fixed(Timestamp::from_secs(1)));
        let own = machine.tree(std::process::id(), &now).unwrap();
        assert_eq!(own.processes[0].pid, std::process::id());
        assert_eq!(machine.tree(u32::MAX, &now), Err(Unseen::Gone));
        assert!(machine.sees(std::process::id(), own.processes[0].started_at, &now));
        assert!(!machine.sees(std::process::id(), Timestamp::from_secs(1), &now), "another process of that id");
    }
}
