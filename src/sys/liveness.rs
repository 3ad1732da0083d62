//! The liveness files on disk, and the facts from which `logic::instance::verdict` judges a watcher.
//!
//! Writers are for the running watcher; [`look`] works with no watcher, missing files and rubbish in them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::logic::instance::records::{self, Cycle, Heartbeat, PidLock};
use crate::logic::instance::verdict::{Facts, Identity, LockState};
use crate::logic::schedule::Telemetry;
use crate::logic::time::{Now, Timestamp};
use crate::sys::archived;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES, StateDir};
use crate::sys::group;
use crate::sys::lock::{self, Probe};
use crate::sys::ticker::HEARTBEAT_FILE;

/// File name of the service's program; a process that runs another one is no watcher.
pub const PROGRAM: &str = "nexus-watcher";

/// How the command line of the original tools' watcher, a shell script, ends in its first or second word.
const ORIGINAL: &str = "monitor/watcher/main.sh";

/// The loop moved.
pub const PROGRESS_FILE: &str = "watcher-progress";
/// A cycle was completed.
pub const CYCLE_FILE: &str = "watcher-cycle";
/// The watcher's pid, alone.
pub const PID_FILE: &str = "watcher.pid";
/// Who runs, for people and old scripts.
pub const PID_LOCK_FILE: &str = "watcher.lock";
/// The target window, alone.
pub const TARGET_FILE: &str = "watcher-target";
/// One line for each start and end of a task.
pub const SCHEDULER_LOG: &str = "watcher-scheduler.jsonl";
/// How much of its end is read to tell the last runs; more than ten minutes of a busy watcher.
const MAX_LOG_TAIL: u64 = 1 << 20;
/// Somebody stopped the watcher on purpose: it is not to be revived. A start removes it.
pub const STOP_FILE: &str = "watcher-stop-requested";
/// When a supervisor last looked; its modification time is the datum.
pub const SUPERVISOR_FILE: &str = "watcher-supervisor-heartbeat";
/// A revival that the next report tells.
pub const REVIVED_FILE: &str = "watcher-revived";
/// When the watcher was revived.
pub const REVIVALS_FILE: &str = "watcher-revive-history.txt";
/// Folder of the service's logs.
pub const LOG_DIR: &str = "logs";

/// Publishes our pid. Done as soon as the lock is held and before anything slow, since starters wait for it.
pub fn write_pid(state: &StateDir) -> io::Result<()> {
    write(state, PID_FILE, &format!("{}\n", std::process::id()))
}

/// Publishes who runs: `watcher.lock` and `watcher-target`.
pub fn write_who(state: &StateDir, started: &Now, target: &str, interval: Duration) -> io::Result<()> {
    write(state, PID_LOCK_FILE, &PidLock::render(std::process::id(), started, target, interval))?;
    write(state, TARGET_FILE, &format!("{}\n", target.replace(char::is_control, " ")))
}

/// Says that the loop moved, and where it is: `startup`, `loop-tick`, `compose:start`, …
pub fn bump_progress(state: &StateDir, now: &Now, where_it_is: &str) -> io::Result<()> {
    write(state, PROGRESS_FILE, &records::progress(std::process::id(), now, where_it_is))
}

/// Begins the measurement of cycles anew, at the start of a watcher. The clock of the first cycle runs from here.
pub fn reset_cycle(state: &StateDir, now: &Now) -> io::Result<Cycle> {
    let cycle = Cycle::starting(now);
    write(state, CYCLE_FILE, &cycle.render(std::process::id(), now))?;
    Ok(cycle)
}

/// Says that a cycle was completed at `now`; `cycle` is what the call before returned and takes the new measurement.
pub fn bump_cycle(state: &StateDir, cycle: &mut Cycle, now: &Now) -> io::Result<()> {
    *cycle = cycle.completed(now);
    write(state, CYCLE_FILE, &cycle.render(std::process::id(), now))
}

/// Removes what names us as the running watcher, on a clean exit; what another watcher wrote stays.
///
/// The instance lock's file is never removed, and the heartbeat stays as the record of when we last lived.
pub fn remove_ours(state: &StateDir) -> io::Result<()> {
    let us = Some(std::process::id());
    if recorded_pid(state) == us {
        files::remove(&state.at(PID_FILE))?;
    }
    let theirs = files::read_text(&state.at(PID_LOCK_FILE), MAX_STATE_BYTES)?;
    if theirs.is_some_and(|text| PidLock::parse(&text).pid == us) {
        files::remove(&state.at(PID_LOCK_FILE))?;
    }
    Ok(())
}

/// The pid in `watcher.pid`; `None` if it is missing or unreadable.
pub fn recorded_pid(state: &StateDir) -> Option<u32> {
    read(state, PID_FILE).and_then(|text| text.trim().parse().ok())
}

/// Everything that is known of the watcher of a state directory.
#[derive(Debug)]
pub struct Liveness {
    /// What the verdict needs. Ages are in whole seconds.
    pub facts: Facts,
    /// The heartbeat, if there is one; all its fields are empty if it cannot be read.
    pub heartbeat: Option<Heartbeat>,
    /// `watcher.lock`, if there is one.
    pub pid_lock: Option<PidLock>,
    /// The recorded pid: the heartbeat's, else that of `watcher.pid`.
    pub pid: Option<u32>,
    /// The target window, as recorded.
    pub target: Option<String>,
    /// The instance lock.
    pub lock: Probe,
}

/// Looks at a state directory. Changes nothing in it.
///
/// Errors: the directory exists but cannot be looked into. Any single file may be missing or rubbish.
pub fn look(state: &StateDir, now: &Now) -> io::Result<Liveness> {
    files::check_dir(state.path())?;
    let age = |path: &Path| modified(path).map(|at| Duration::from_secs(now.at.since(at).as_secs()));
    let file_age = |name: &str| age(&state.at(name));
    let heartbeat_age = file_age(HEARTBEAT_FILE);
    let heartbeat = heartbeat_age.map(|_| Heartbeat::parse(&read(state, HEARTBEAT_FILE).unwrap_or_default()));
    let cycle = Cycle::parse(&read(state, CYCLE_FILE).unwrap_or_default());
    let pid = heartbeat.as_ref().and_then(|heartbeat| heartbeat.pid).or_else(|| recorded_pid(state));
    let lock = lock::probe(state);
    let logs = files::list_names(&state.at(LOG_DIR)).unwrap_or_default();
    let holder = pid.map_or(Identity::CannotTell, |pid| identify_here(state, pid));
    // Who starts processes moves.
    let youngest = pid.filter(|_| holder == Identity::Watcher).and_then(group::youngest);
    let other_movement = logs
        .iter()
        .map(|name| age(&state.at(LOG_DIR).join(name)))
        .chain([file_age(SCHEDULER_LOG), file_age("watcher.log"), youngest])
        .flatten()
        .min();
    let facts = Facts {
        heartbeat: heartbeat_age,
        holder,
        lock: match lock {
            Probe::Held(_) => LockState::Held,
            Probe::Free(_) | Probe::Absent => LockState::Free,
            Probe::CannotTell(_) => LockState::CannotTell,
        },
        progress: file_age(PROGRESS_FILE),
        cycle: file_age(CYCLE_FILE),
        other_movement,
        period: cycle.period,
        ema: cycle.ema,
    };
    let target = heartbeat
        .as_ref()
        .and_then(|heartbeat| heartbeat.target.clone())
        .or_else(|| read(state, TARGET_FILE).map(|text| text.trim_end().replace(char::is_control, " ")));
    let pid_lock = read(state, PID_LOCK_FILE).map(|text| PidLock::parse(&text));
    Ok(Liveness { facts, heartbeat, pid_lock, pid, target, lock })
}

/// The latest telemetry record of each task, from the end of the scheduler's log. Lines that do not fit are passed over.
pub fn last_runs(state: &StateDir) -> BTreeMap<String, Telemetry> {
    let text = archived::read_tail(state, SCHEDULER_LOG, MAX_LOG_TAIL).ok().flatten().unwrap_or_default();
    text.lines().filter_map(Telemetry::parse).map(|record| (record.task.clone(), record)).collect()
}

/// Whether a process is a live watcher, by the program that it runs. A pid alone says nothing, since pids are reused.
pub fn identify(pid: u32) -> Identity {
    let proc = |name: &str| format!("/proc/{pid}/{name}");
    let stat = match fs::read(proc("stat")) {
        Ok(stat) => stat,
        // Without /proc itself nothing can be told.
        Err(error) if error.kind() == io::ErrorKind::NotFound && Path::new("/proc/self/stat").exists() => {
            return Identity::NotWatcher;
        }
        Err(_) => return Identity::CannotTell,
    };
    // "pid (name) S …": the name may hold anything, so the state is looked for from the end.
    let state = stat.iter().rposition(|byte| *byte == b')').and_then(|end| stat.get(end + 2));
    if matches!(state, Some(b'Z' | b'X')) {
        return Identity::NotWatcher;
    }
    let is_ours = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The kernel marks a program whose file was replaced, as an update does.
        name.strip_suffix(" (deleted)").unwrap_or(&name) == PROGRAM
    };
    let program = fs::read_link(proc("exe"));
    if program.as_ref().is_ok_and(|program| is_ours(program)) {
        return Identity::Watcher;
    }
    match fs::read(proc("cmdline")) {
        Ok(line) if !line.is_empty() => {
            let mut words = line.split(|byte| *byte == 0);
            let first = words.next().unwrap_or_default();
            let is_original = |word: &[u8]| word.ends_with(ORIGINAL.as_bytes());
            // Of another account's process only the command line can be read.
            let is_watcher = is_original(first)
                || words.next().is_some_and(is_original)
                || program.is_err() && is_ours(Path::new(&*String::from_utf8_lossy(first)));
            if is_watcher { Identity::Watcher } else { Identity::NotWatcher }
        }
        // Also while a program is just being started.
        _ => Identity::CannotTell,
    }
}

/// Whether a recorded process is the live watcher of this state directory. A number that was used again may belong to
/// the watcher of another one, which does not have this lock's file open.
pub fn identify_here(state: &StateDir, pid: u32) -> Identity {
    match identify(pid) {
        Identity::Watcher if lock::has_open(pid, &state.at(lock::LOCK_FILE)) == Some(false) => Identity::NotWatcher,
        found => found,
    }
}

/// When a file was last written; `None` if it is missing or cannot be looked at.
pub fn modified(path: &Path) -> Option<Timestamp> {
    let at = fs::metadata(path).ok()?.modified().ok()?;
    let since_1970 = at.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(0).after(since_1970))
}

/// Replaces a small file of the state directory; losing it loses no signal.
fn write(state: &StateDir, name: &str, text: &str) -> io::Result<()> {
    files::write_atomic(&state.at(name), text.as_bytes(), Durability::Hint)
}

/// The text of a small file; `None` if it is missing or unreadable.
fn read(state: &StateDir, name: &str) -> Option<String> {
    files::read_text(&state.at(name), MAX_STATE_BYTES).ok().flatten()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests start children of their own")]

    use std::process::{Command, Stdio};

    use super::*;
    use crate::logic::instance::verdict::{Verdict, judge};
    use crate::sys::clock::Clock;
    use crate::sys::ticker::Ticker;

    const INTERVAL: Duration = Duration::from_secs(60);
    const TICK: Duration = Duration::from_secs(20);

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        (dir, state)
    }

    #[test]
    fn nothing_there_is_no_heartbeat() {
        let (dir, _) = state();
        let state = StateDir::new(dir.path().join("never made"));
        let seen = look(&state, &Clock::System.now()).unwrap();
        assert_eq!(judge(&seen.facts, INTERVAL, TICK, None).verdict, Verdict::NoHeartbeat);
        assert!(!state.path().exists(), "looking makes nothing");
    }

    #[test]
    fn a_running_watcher_is_up_and_its_end_is_seen() {
        let (_dir, state) = state();
        let now = Clock::System.now();
        let lock = lock::acquire(&state, "x\n").unwrap();
        write_pid(&state).unwrap();
        write_who(&state, &now, "orch\nx", INTERVAL).unwrap();
        bump_progress(&state, &now, "loop-tick").unwrap();
        let mut cycle = reset_cycle(&state, &now).unwrap();
        bump_cycle(&state, &mut cycle, &now).unwrap();
        let ticker = Ticker::start(&state, "orch", INTERVAL).unwrap();
        let seen = look(&state, &now).unwrap();
        // This test program is not the watcher's, so the held lock is what vouches for it.
        assert_eq!((seen.facts.holder, seen.facts.lock), (Identity::NotWatcher, LockState::Held));
        assert_eq!(judge(&seen.facts, INTERVAL, TICK, None).verdict, Verdict::Up);
        assert_eq!((seen.pid, seen.target.as_deref()), (Some(std::process::id()), Some("orch")));
        drop((ticker, lock));
        let seen = look(&state, &now).unwrap();
        assert_eq!(judge(&seen.facts, INTERVAL, TICK, None).verdict, Verdict::Down);
        remove_ours(&state).unwrap();
        assert_eq!(recorded_pid(&state), None);
        assert!(!state.at(PID_LOCK_FILE).exists());
    }

    #[test]
    fn what_another_watcher_wrote_is_not_removed() {
        let (_dir, state) = state();
        fs::write(state.at(PID_FILE), "1\n").unwrap();
        fs::write(state.at(PID_LOCK_FILE), "pid: 1\n").unwrap();
        remove_ours(&state).unwrap();
        assert!(state.at(PID_FILE).exists() && state.at(PID_LOCK_FILE).exists());
    }

    #[test]
    fn the_last_run_of_each_task_is_read_past_rubbish() {
        let (_dir, state) = state();
        assert!(last_runs(&state).is_empty());
        let line = |task: &str, rc: i32| {
            format!(
                "{{\"ts\":\"x\",\"task\":\"{task}\",\"rc\":{rc},\"elapsed_ms\":1,\"next_fire\":5,\"phase\":\"sync\"}}\n"
            )
        };
        let text = format!("cut off\"}}\n{}{}\u{0}\n{}{{\"ts\":", line("a", 0), line("b", 1), line("a", 75));
        fs::write(state.at(SCHEDULER_LOG), text).unwrap();
        let codes: Vec<_> = last_runs(&state).into_iter().map(|(task, record)| (task, record.rc)).collect();
        assert_eq!(codes, [("a".to_owned(), 75), ("b".to_owned(), 1)]);
    }

    #[test]
    fn rubbish_in_every_file_is_still_a_verdict() {
        let (_dir, state) = state();
        for name in [HEARTBEAT_FILE, PROGRESS_FILE, CYCLE_FILE, PID_FILE, PID_LOCK_FILE, TARGET_FILE, lock::LOCK_FILE] {
            fs::write(state.at(name), [0xff, 0, b'=', b'\n', 0x1b]).unwrap();
        }
        let seen = look(&state, &Clock::System.now()).unwrap();
        assert_eq!((seen.pid, seen.facts.holder), (None, Identity::CannotTell));
        assert_eq!(
            judge(&seen.facts, INTERVAL, TICK, None).verdict,
            Verdict::Up,
            "fresh, and nothing says that it is dead"
        );
    }

    #[test]
    fn a_recorded_pid_that_is_now_the_watcher_of_another_directory_is_not_ours() {
        let (dir, state) = state();
        let program = dir.path().join(PROGRAM);
        fs::copy("/bin/sh", &program).unwrap();
        let start = |lock: &Path| {
            let script = "exec 9>>\"$1\"; echo up; read line";
            let mut command = Command::new(&program);
            command.args(["-c", script, "sh"]).arg(lock).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut line = String::new();
            std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.as_mut().unwrap()), &mut line)
                .unwrap();
            child
        };
        let mut ours = start(&state.at(lock::LOCK_FILE));
        let mut theirs = start(&dir.path().join("another.lock"));
        assert_eq!((identify(ours.id()), identify(theirs.id())), (Identity::Watcher, Identity::Watcher));
        assert_eq!(identify_here(&state, ours.id()), Identity::Watcher);
        assert_eq!(identify_here(&state, theirs.id()), Identity::NotWatcher);
        for child in [&mut ours, &mut theirs] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_process_is_known_by_its_program_row_by_row() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join(PROGRAM);
        fs::copy("/bin/sh", &program).unwrap();
        let start = |program: &Path| loop {
            match Command::new(program).args(["-c", "read line"]).stdin(Stdio::piped()).spawn() {
                // Another test's child, just forked, still has the copy open for writing.
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
                child => break child.unwrap(),
            }
        };
        let mut watcher = start(&program);
        assert_eq!(identify(watcher.id()), Identity::Watcher);
        fs::remove_file(&program).unwrap();
        assert_eq!(identify(watcher.id()), Identity::Watcher, "its program was replaced by an update");
        let mut other = start(Path::new("/bin/sh"));
        while identify(other.id()) == Identity::CannotTell {}
        assert_eq!(identify(other.id()), Identity::NotWatcher, "the pid was used again");
        let script = dir.path().join(ORIGINAL);
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::write(&script, "read line\n").unwrap();
        let mut original = Command::new("/bin/sh").arg(&script).stdin(Stdio::piped()).spawn().unwrap();
        let found = loop {
            match identify(original.id()) {
                Identity::CannotTell => {}
                found => break found,
            }
        };
        assert_eq!(found, Identity::Watcher, "the original tools' watcher");
        original.kill().unwrap();
        original.wait().unwrap();
        for child in [&mut watcher, &mut other] {
            drop(child.stdin.take());
            child.wait().unwrap();
            assert_eq!(identify(child.id()), Identity::NotWatcher, "gone");
        }
    }
}
