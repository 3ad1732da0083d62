//! Process groups, from `/proc`: who is in one, and ending one whole.
//!
//! Says nothing of what a process is; the caller has made sure of that. A zombie counts as gone, since in a container
//! nobody may ever collect it.

#![expect(clippy::disallowed_methods, reason = "a group can't be waited for, so it is looked at until it is gone")]

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Pause between two looks at a group that is ending.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What one process's `stat` line says of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    /// Its state letter.
    state: u8,
    /// Its group.
    pgid: u32,
    /// When it started, in clock ticks since boot.
    start_ticks: u64,
}

/// The group that a live process is in; `None` if there is no such process.
pub fn group_of(pid: u32) -> Option<u32> {
    read(pid).map(|stat| stat.pgid)
}

/// The live processes of a group, by id.
pub fn members(pgid: u32) -> Vec<u32> {
    live().filter(|(_, stat)| stat.pgid == pgid).map(|(pid, _)| pid).collect()
}

/// How long ago the youngest process of a group started; `None` if it is empty.
pub fn youngest(pgid: u32) -> Option<Duration> {
    let youngest = live().filter(|(_, stat)| stat.pgid == pgid).map(|(_, stat)| stat.start_ticks).max()?;
    let boot = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let started = youngest.checked_div(rustix::param::clock_ticks_per_second())?;
    Some(Duration::from_secs(u64::try_from(boot.tv_sec).ok()?.saturating_sub(started)))
}

/// Every live process, by id.
pub fn all() -> Vec<u32> {
    live().map(|(pid, _)| pid).collect()
}

/// Ends what is left of a group: SIGTERM, after `grace` SIGKILL. Returns who is still there `patience` after that.
pub fn end(pgid: u32, grace: Duration, patience: Duration) -> Vec<u32> {
    if members(pgid).is_empty() {
        return Vec::new();
    }
    for (signal, wait) in [(Signal::TERM, grace), (Signal::KILL, patience)] {
        let Some(group) = i32::try_from(pgid).ok().and_then(Pid::from_raw) else { break };
        // Gone already is what is wanted; what may not be signalled is among the survivors.
        let _gone = kill_process_group(group, signal);
        if is_empty_within(pgid, wait) {
            return Vec::new();
        }
    }
    members(pgid)
}

/// Waits until a group is empty; whether it is.
fn is_empty_within(pgid: u32, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while !members(pgid).is_empty() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
    true
}

/// Every live process with its group.
fn live() -> impl Iterator<Item = (u32, Stat)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, read(pid)?))
    })
}

/// Reads one process; `None` if it is gone or a zombie.
fn read(pid: u32) -> Option<Stat> {
    let stat = parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)?;
    (!matches!(stat.state, b'Z' | b'X')).then_some(stat)
}

/// Reads a `stat` line: `pid (name) state ppid pgrp …`; the name may hold anything, so the end of it is looked for from
/// the end of the line.
fn parse(line: &[u8]) -> Option<Stat> {
    let after_name = line.get(line.iter().rposition(|byte| *byte == b')')? + 1..)?;
    let rest = std::str::from_utf8(after_name).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let pgid = fields.nth(1)?.parse().ok()?;
    Some(Stat { state, pgid, start_ticks: fields.nth(16)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn a_stat_line_is_read_whatever_the_name_holds() {
        for (line, expected) in [
            ("7 (sh) S 1 42 42 0 -1 4 5 6 7 8 1 2 3 4 20 0 1 0 900 1", Some((b'S', 42, 900))),
            ("7 (a) S 9 9 (b) Z 1 42 42 0 -1 4 5 6 7 8 1 2 3 4 20 0 1 0 900 1", Some((b'Z', 42, 900))),
            ("7 (sh) S 1 42", None),
            ("7 (sh)", None),
            ("", None),
        ] {
            assert_eq!(
                parse(line.as_bytes()).map(|stat| (stat.state, stat.pgid, stat.start_ticks)),
                expected,
                "{line:?}"
            );
        }
    }

    #[test]
    fn a_group_without_its_leader_is_seen_and_ended_whole() {
        // The leader starts two more and ends; one of them ignores SIGTERM.
        let script = "sleep 600 & (trap '' TERM; sleep 600 & wait; sleep 600) & echo up";
        let mut leader =
            Command::new("sh").args(["-c", script]).process_group(0).stdout(Stdio::null()).spawn().unwrap();
        let pgid = leader.id();
        leader.wait().unwrap();
        assert!(members(pgid).len() >= 2 && group_of(pgid).is_none());
        assert!(youngest(pgid).is_some_and(|age| age < Duration::from_secs(60)), "{:?}", youngest(pgid));
        assert_eq!(end(pgid, Duration::from_millis(200), PATIENCE), Vec::<u32>::new());
        assert_eq!(members(pgid), Vec::<u32>::new());
    }
}
