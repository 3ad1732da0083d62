//! Who runs in a pane, by the tree of processes below it: which agent, or why there is none or it can't be told.
//!
//! *Gone* needs proof: the whole tree was read, nothing in it is alive but shells, and it is too old to be one whose
//! agent has yet to start. What can't be read, or leads elsewhere, is never called gone.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::elsewhere::elsewhere;
use super::fuse::{Liveness, ProcessFacts};
use super::process::{self, Process};
use super::profile::Profile;
use crate::logic::time::Timestamp;

/// A pane younger than this may be one whose agent has not started yet (`NEXUS_PANE_BOOT_GRACE_SECONDS`).
const BOOT_GRACE: Duration = Duration::from_secs(90);

/// An agent that lived for so long was started for good: when it is gone, the grace of a young pane is over. A launcher
/// may run the program for a moment before, to ask its version.
const SETTLED: Duration = Duration::from_secs(15);

/// Why who runs in a pane can't be told, or what it does can't.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unclear {
    /// tmux names no process.
    NoPanePid,
    /// The processes of the pane can't be seen from here.
    Blind,
    /// A process can't be looked into, and may be an agent.
    Indeterminate,
    /// Only a shell runs, in a pane in which an agent may be about to start.
    BootGrace,
    /// The terminal shows another place: another multiplexer, machine or container.
    NotWatched,
    /// An agent runs, but keys typed into the pane do not reach it: a shell or an editor is in front of it.
    InBackground,
}

impl Unclear {
    /// Its rule, as it stands in evidence and in `reason=`.
    pub const fn rule(self) -> &'static str {
        match self {
            Self::NoPanePid => "no-pane-pid",
            Self::Blind => "proc-view-blind",
            Self::Indeterminate => "claude-identity-indeterminate",
            Self::BootGrace => "boot-grace",
            Self::NotWatched => "not-watched",
            Self::InBackground => "agent-in-background",
        }
    }

    /// The same for people.
    pub const fn says(self) -> &'static str {
        match self {
            Self::NoPanePid => "tmux does not say which process runs in it",
            Self::Blind => "its processes can't be seen from here",
            Self::Indeterminate => "a process in it can't be looked into",
            Self::BootGrace => "only a shell runs in it so far",
            Self::NotWatched => "it shows another place, which is not watched",
            Self::InBackground => "its agent is in the background, and something else takes the keys",
        }
    }

    /// Whether the screen tells nothing either: whoever draws it is no agent that could be typed to. Else an agent may be
    /// what draws it, and the screen is judged.
    pub const fn hides_screen(self) -> bool {
        match self {
            Self::BootGrace | Self::NotWatched | Self::InBackground => true,
            Self::NoPanePid | Self::Blind | Self::Indeterminate => false,
        }
    }

    /// As facts of which nothing else is known.
    pub fn alone(self) -> ProcessFacts {
        ProcessFacts { unclear: Some(self), ..ProcessFacts::default() }
    }
}

/// The agent in a tree, parents before children: the process nearest to the pane, and its profile.
pub fn agent<'t, 'p>(
    tree: &'t [Process],
    profile_of: impl Fn(&Process) -> Option<&'p Profile>,
) -> Option<(&'t Process, &'p Profile)> {
    tree.iter().filter(|process| process.is_live()).find_map(|process| Some((process, profile_of(process)?)))
}

/// What a tree says in which this agent runs.
pub fn with_agent(tree: &[Process], agent: &Process, profile: &Profile, now: Timestamp) -> ProcessFacts {
    let below = process::below(tree, agent.pid, now);
    let by_path = |process: &Process| {
        let exe = process.exe.as_deref().unwrap_or_default();
        profile.process.version(exe, process.argv.as_deref().unwrap_or_default())
    };
    ProcessFacts {
        agent: Some(profile.name.clone()),
        agent_pid: Some(agent.pid),
        agent_exe: agent.exe.clone(),
        agent_started: Some(agent.started_at),
        version: same_agent(tree, agent, profile).find_map(by_path),
        liveness: Liveness::Alive,
        unclear: (agent.in_front == Some(false)).then_some(Unclear::InBackground),
        shell_behind: tree.iter().any(|process| {
            process.depth < agent.depth && process.is_shell() && process.is_live() && process.in_front == Some(false)
        }),
        background_shells: Some(below.shells),
        background_cpu: Some(below.shell_cpu),
        background_oldest: below.oldest,
        child_cpu: Some(below.cpu),
        counted_at: Some(now),
        ..ProcessFacts::default()
    }
}

/// The agent's process and the one it only launches: a script that starts the program proper.
pub fn same_agent<'t>(
    tree: &'t [Process],
    agent: &'t Process,
    profile: &'t Profile,
) -> impl Iterator<Item = &'t Process> {
    let child = tree.iter().find(|process| {
        process.ppid == agent.pid && process.is_live() && !process.is_shell() && profile.process.is_process(process)
    });
    std::iter::once(agent).chain(child)
}

/// What a tree says in which no agent was found. `before` is what it said at the last look.
pub fn without_agent(tree: &[Process], age: Duration, before: Option<&ProcessFacts>) -> ProcessFacts {
    let live = || tree.iter().filter(|process| process.is_live());
    if let Some(place) = elsewhere(tree) {
        return ProcessFacts { other: Some(place), ..Unclear::NotWatched.alone() };
    }
    let other = live().find(|process| !process.is_shell());
    // A shell that can't be looked into is a shell all the same; what it starts would be below it.
    if let Some(hidden) = live().find(|process| process.exe.is_none() && !process.is_shell()) {
        return ProcessFacts { other: Some(hidden.comm.clone()), ..Unclear::Indeterminate.alone() };
    }
    if let Some(other) = other {
        return ProcessFacts { liveness: Liveness::Gone, other: Some(other.comm.clone()), ..ProcessFacts::default() };
    }
    // Where others' processes are hidden, the terminal may be in the hands of somebody who is not on the list.
    let holds = |in_front: bool| live().any(|process| process.in_front == Some(in_front));
    if holds(false) && !holds(true) {
        return Unclear::Indeterminate.alone();
    }
    let was_here = before.is_some_and(|before| match (before.agent_started, before.counted_at) {
        (Some(started), Some(counted)) => counted.since(started) >= SETTLED,
        _ => false,
    });
    if age < BOOT_GRACE && !was_here {
        return ProcessFacts { shell: true, ..Unclear::BootGrace.alone() };
    }
    ProcessFacts { liveness: Liveness::Gone, shell: true, ..ProcessFacts::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, exe: Option<&str>, line: &str) -> Process {
        let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let comm = argv.first().map(|word| word.rsplit('/').next().unwrap_or(word).to_owned()).unwrap_or_default();
        Process {
            pid,
            ppid: parent,
            exe: exe.map(str::to_owned),
            argv: Some(argv),
            comm,
            state: 'S',
            in_front: Some(true),
            ..Process::default()
        }
    }

    fn old() -> Duration {
        Duration::from_secs(90)
    }

    fn young() -> Duration {
        Duration::from_secs(89)
    }

    /// An agent that had lived for so many seconds at the last look.
    fn before(lived: i64) -> ProcessFacts {
        ProcessFacts {
            agent_started: Some(Timestamp::from_secs(100)),
            counted_at: Some(Timestamp::from_secs(100 + lived)),
            ..ProcessFacts::default()
        }
    }

    fn shell() -> Process {
        process(10, 1, Some("/usr/bin/bash"), "bash")
    }

    type Says<'a> = (Liveness, Option<Unclear>, Option<&'a str>, bool);

    fn check(tree: &[Process], age: Duration, before: Option<&ProcessFacts>, expected: Says<'_>) {
        let found = without_agent(tree, age, before);
        assert_eq!((found.liveness, found.unclear, found.other.as_deref(), found.shell), expected, "{tree:?}");
    }

    #[test]
    fn shells_alone_are_proof_in_an_old_pane_only() {
        check(&[shell()], old(), None, (Liveness::Gone, None, None, true));
        check(&[shell()], young(), None, (Liveness::Unknown, Some(Unclear::BootGrace), None, true));
        let ended = Process { state: 'Z', ..process(11, 10, None, "claude") };
        check(&[shell(), ended], old(), None, (Liveness::Gone, None, None, true));
    }

    #[test]
    fn an_agent_that_was_there_for_good_ends_the_grace_of_a_young_pane() {
        check(&[shell()], young(), Some(&before(15)), (Liveness::Gone, None, None, true));
        let asked_for_its_version = before(2);
        let expected = (Liveness::Unknown, Some(Unclear::BootGrace), None, true);
        check(&[shell()], young(), Some(&asked_for_its_version), expected);
    }

    #[test]
    fn another_program_is_no_agent_and_no_proof_either() {
        let tree = [shell(), process(11, 10, Some("/usr/bin/make"), "make")];
        for age in [young(), old()] {
            check(&tree, age, None, (Liveness::Gone, None, Some("make"), false));
        }
    }

    #[test]
    fn a_process_that_cannot_be_read_may_be_the_agent() {
        let tree = [shell(), process(11, 10, None, "sudo -u other x")];
        check(&tree, old(), None, (Liveness::Unknown, Some(Unclear::Indeterminate), Some("sudo"), false));
        let other_user = [Process { exe: None, ..shell() }];
        check(&other_user, old(), None, (Liveness::Gone, None, None, true));
    }

    #[test]
    fn a_terminal_in_hidden_hands_is_no_proof() {
        let waits = Process { in_front: Some(false), ..shell() };
        check(
            std::slice::from_ref(&waits),
            old(),
            Some(&before(99)),
            (Liveness::Unknown, Some(Unclear::Indeterminate), None, false),
        );
        check(&[waits, process(11, 10, Some("/usr/bin/dash"), "sh")], old(), None, (Liveness::Gone, None, None, true));
        let without_terminal = Process { in_front: None, ..shell() };
        check(&[without_terminal], old(), None, (Liveness::Gone, None, None, true));
    }

    #[test]
    fn what_leads_elsewhere_is_not_watched_however_old_it_is() {
        let tree = [shell(), process(11, 10, Some("/usr/bin/ssh"), "ssh me@box")];
        check(&tree, old(), Some(&before(99)), (Liveness::Unknown, Some(Unclear::NotWatched), Some("ssh box"), false));
        let tree = [shell(), process(11, 10, Some("/usr/bin/tmux"), "tmux attach")];
        check(&tree, young(), None, (Liveness::Unknown, Some(Unclear::NotWatched), Some("tmux"), false));
    }
}
