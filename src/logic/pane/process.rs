//! One process as the machine describes it, and what can be counted below an agent. Read from `/proc` by
//! `sys::procfs`; which program is an agent is said by profiles.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::logic::time::Timestamp;

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub ppid: u32,
    /// Levels below the process that was asked for, which is level 0.
    pub depth: usize,
    /// The program file, without the mark of a file that was replaced or deleted while it runs.
    pub exe: Option<String>,
    /// Whether that file was replaced or deleted while it runs, so that what lies there now is not what runs.
    pub is_replaced: bool,
    /// The command line; empty for kernel threads and zombies, `None` if it can't be read.
    pub argv: Option<Vec<String>>,
    /// The short name, at most 15 bytes, which a program can change.
    pub comm: String,
    /// The state letter: `R`, `S`, `D`, `Z`, `T`, ...
    pub state: char,
    /// Whether it is in the foreground of its terminal, so that typed keys reach it; `None` without a terminal.
    pub in_front: Option<bool>,
    /// When it started, in clock ticks since boot. With the pid and the boot, this is its identity.
    pub start_ticks: u64,
    /// The same as a time of day.
    pub started_at: Timestamp,
    /// User and system time used so far, in clock ticks.
    pub cpu_ticks: u64,
}

impl Process {
    /// Whether it is a shell by its short name; one that runs a script is a shell too.
    pub fn is_shell(&self) -> bool {
        const SHELLS: [&str; 7] = ["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];
        SHELLS.contains(&self.comm.trim_start_matches('-'))
    }

    /// Whether it runs: neither a zombie nor dead.
    pub fn is_live(&self) -> bool {
        is_live_state(self.state)
    }
}

/// Whether a state letter is that of a process that runs.
pub fn is_live_state(state: char) -> bool {
    !matches!(state, 'Z' | 'X' | 'x')
}

/// A shell younger than this may be a hook or a status line that is over in a moment, and is not counted yet: an agent
/// goes on for longer than this after it has started a job in the background.
const SHORT_LIVED: Duration = Duration::from_secs(2);

/// A helper server is started together with its agent, within this.
const STARTS_WITH_AGENT: Duration = Duration::from_secs(60);

/// What runs below an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Below {
    /// Shells, the first on each branch.
    pub shells: u32,
    /// Processor time of those shells and of everything below them, in clock ticks.
    pub shell_cpu: u64,
    /// When the oldest of those shells started.
    pub oldest: Option<Timestamp>,
    /// Processor time of everything below the agent, in clock ticks.
    pub cpu: u64,
}

/// Counts what runs below the process `agent` of a tree, parents before children.
///
/// A shell counts once for its branch. Not counted are our own hooks, shells of servers that started with the agent
/// (MCP), and shells so young that they may be a hook or a status line.
// A tool call in the foreground is such a shell too: the count refines an agent that is idle by its screen, and nothing
// else.
pub fn below(tree: &[Process], agent: u32, now: Timestamp) -> Below {
    let mut count = Below::default();
    let started_at = tree.iter().find(|process| process.pid == agent).map(|process| process.started_at);
    // For each process below the agent: whether a counted shell, or one left out, is on the way to it.
    let mut branches: BTreeMap<u32, Branch> = BTreeMap::from([(agent, Branch::Open)]);
    for process in tree.iter().filter(|process| process.pid != agent) {
        let Some(&above) = branches.get(&process.ppid) else { continue };
        let mut branch = above;
        if process.is_live() {
            count.cpu = count.cpu.saturating_add(process.cpu_ticks);
            if is_helper(process, started_at) {
                branch = if branch == Branch::Counted { branch } else { Branch::LeftOut };
            } else if branch == Branch::Open && process.is_shell() {
                let is_young = now.since(process.started_at) < SHORT_LIVED;
                branch = if is_young || is_hook(process) { Branch::LeftOut } else { Branch::Counted };
                if branch == Branch::Counted {
                    count.shells = count.shells.saturating_add(1);
                    count.oldest = Some(count.oldest.map_or(process.started_at, |at| at.min(process.started_at)));
                }
            }
            if branch == Branch::Counted {
                count.shell_cpu = count.shell_cpu.saturating_add(process.cpu_ticks);
            }
        }
        branches.insert(process.pid, branch);
    }
    count
}

/// What stands above a process, up to the agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Branch {
    /// No shell.
    Open,
    /// A shell that counts.
    Counted,
    /// Something that is not the agent's work.
    LeftOut,
}

/// Whether a shell runs one of our hooks: as it is set up now, or by the script of an earlier version.
fn is_hook(shell: &Process) -> bool {
    let line = shell.argv.as_deref().unwrap_or_default().join(" ");
    ["ng hook", "ng' hook", "ng\" hook", "monitor/hooks/"].iter().any(|mark| line.contains(mark))
}

/// Whether a process is a server that the agent started for its tools when it started itself.
fn is_helper(process: &Process, agent_started: Option<Timestamp>) -> bool {
    let with_agent = agent_started.is_some_and(|at| process.started_at.since(at) < STARTS_WITH_AGENT);
    let is_mcp = |word: &String| word.contains("mcp") || word.contains("modelcontextprotocol");
    with_agent && process.argv.iter().flatten().any(is_mcp)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: u32 = 11;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    /// A process with this command line, started so many seconds after the agent.
    fn process(pid: u32, parent: u32, command: &str, age: i64) -> Process {
        let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let comm = argv[0].rsplit('/').next().unwrap().to_owned();
        Process {
            pid,
            ppid: parent,
            argv: Some(argv),
            comm,
            state: 'S',
            started_at: at(1000 + age),
            cpu_ticks: 10,
            ..Process::default()
        }
    }

    fn check(children: &[Process], shells: u32, shell_cpu: u64, oldest: Option<i64>) {
        let mut tree = vec![process(10, 1, "bash", -9), process(AGENT, 10, "claude", 0)];
        tree.extend_from_slice(children);
        let found = below(&tree, AGENT, at(5000));
        let oldest = oldest.map(|age| at(1000 + age));
        assert_eq!((found.shells, found.shell_cpu, found.oldest), (shells, shell_cpu, oldest), "{children:?}");
    }

    #[test]
    fn the_first_shell_of_each_branch_counts_with_all_below_it() {
        check(&[], 0, 0, None);
        let job = [process(12, AGENT, "/bin/bash -c make", 900), process(13, 12, "make", 900)];
        check(&job, 1, 20, Some(900));
        let nested = [&job[..], &[process(14, 13, "sh -c cc", 901), process(15, AGENT, "zsh -c x", 800)]].concat();
        check(&nested, 2, 40, Some(800));
        // A wrapper between the agent and its shell.
        check(&[process(12, AGENT, "sandbox", 900), process(13, 12, "bash -lc make", 900)], 1, 10, Some(900));
        // What has ended is no work, nor is a program without a shell; and the pane's own shell is above the agent.
        let ended = Process { state: 'Z', ..process(12, AGENT, "bash -c make", 900) };
        check(&[ended, process(13, AGENT, "rg", 900)], 0, 0, None);
    }

    #[test]
    fn hooks_helper_servers_and_what_is_over_in_a_moment_do_not_count() {
        check(&[process(12, AGENT, "/bin/sh -c '/opt/ng' hook Stop", 900)], 0, 0, None);
        check(&[process(12, AGENT, "/bin/sh -c /nexus/monitor/hooks/stop.sh", 900)], 0, 0, None);
        check(&[process(12, AGENT, "sh -c status-line", 3999)], 0, 0, None);
        let server = [
            process(12, AGENT, "npm exec @modelcontextprotocol/server-files", 2),
            process(13, 12, "sh -c mcp-server-files", 3),
            process(14, 13, "node /x/server.js", 3),
        ];
        check(&server, 0, 0, None);
        // A job that only speaks of such servers, and started long after the agent.
        check(&[process(12, AGENT, "bash -c pytest tests/test_mcp.py", 900)], 1, 10, Some(900));
    }

    #[test]
    fn the_work_of_everything_below_is_added_up() {
        let tree = [process(AGENT, 1, "claude", 0), process(12, AGENT, "rg", 9), process(13, 12, "sh", 9)];
        assert_eq!(below(&tree, AGENT, at(5000)).cpu, 20);
        assert_eq!(below(&tree, 99, at(5000)), Below::default());
    }
}
