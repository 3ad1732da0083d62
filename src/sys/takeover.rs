//! Ends the watchers of one state directory, so that a successor can start: `logic::instance::takeover` decides whom.
//!
//! A process is named by a descriptor of it, looked at through that, and only then signalled, so that a number that was
//! used again is never hit.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::logic::instance::holder::Holder;
use crate::logic::instance::takeover::{Scene, Target, Watcher, plan};
use crate::logic::instance::verdict::{Identity, LockState};
use crate::sys::files::StateDir;
use crate::sys::instance::Here;
use crate::sys::lock::{self, LOCK_FILE, OBSERVER_FILE, Probe};
use crate::sys::{group, liveness, space};

/// How long a process may take to vanish after SIGKILL.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// How long the lock may still be held after its holder is gone.
const FREE_WITHIN: Duration = Duration::from_secs(2);

/// Who was ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenOver {
    /// Watchers, and whether each had to be killed.
    pub ended: Vec<(u32, bool)>,
    /// Groups whose leader was gone already.
    pub reaped: Vec<u32>,
    /// A group without its leader that is not certainly a watcher's; it was left alone.
    pub unverified: Option<u32>,
}

/// Why the holder was not replaced. Nothing was ended, except in `Survived`.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// The successor could not work here, so the holder is left running.
    #[error("cannot write to {}: {source}; the running watcher is left alone", dir.display())]
    Unwritable {
        /// The state directory.
        dir: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The lock is held, by a process that is not certainly this state directory's watcher.
    #[error("not replacing the holder of {}: {why}", path.display())]
    NotCertain {
        /// The lock file.
        path: PathBuf,
        /// What was missing.
        why: String,
    },
    /// It could not be ended.
    #[error("process {pid} is in the way of a successor in {}: {why}", dir.display())]
    Survived {
        /// The process, or the group.
        pid: u32,
        /// The state directory.
        dir: PathBuf,
        /// What happened.
        why: String,
    },
}

impl ReplaceError {
    /// The exit code of `nexus-watcher` and the launcher (`contracts.md` §2).
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::NotCertain { .. } => 4,
            Self::Unwritable { .. } => 5,
            Self::Survived { .. } => 6,
        }
    }
}

/// Ends every watcher of a state directory: SIGTERM, after `grace` SIGKILL, and then what is left of its group.
///
/// Does nothing if there is none. The successor still has to take the lock, which may fail if another was faster.
pub fn take_over(state: &StateDir, grace: Duration) -> Result<TakenOver, ReplaceError> {
    // On a read-only file system the only watcher would end and none start.
    match space::check_writable(state.path()) {
        Ok(()) => {}
        // No directory, no watcher.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TakenOver::default()),
        Err(source) => return Err(ReplaceError::Unwritable { dir: state.path().to_owned(), source }),
    }
    let path = state.at(LOCK_FILE);
    let scene = look(state);
    let targets = plan(&scene, &path).map_err(|why| ReplaceError::NotCertain { path, why })?;
    let mut done = TakenOver::default();
    if !scene.orphans.is_empty() && !targets.iter().any(|target| matches!(target, Target::Orphans { .. })) {
        done.unverified = scene.holder.pid;
    }
    for target in targets {
        match target {
            Target::Watcher { pid, group } => {
                if let Some(forced) = end_watcher(state, pid, group, grace)? {
                    done.ended.push((pid, forced));
                }
            }
            Target::Orphans { group } => {
                end_group(state, group, grace)?;
                done.reaped.push(group);
            }
        }
    }
    if !done.ended.is_empty() || !done.reaped.is_empty() {
        check_free(state)?;
    }
    Ok(done)
}

/// Makes sure that nobody has inherited the lock from those who were ended.
fn check_free(state: &StateDir) -> Result<(), ReplaceError> {
    let path = state.at(LOCK_FILE);
    // A process closes its files a moment after it is gone.
    if lock::is_free_within(state, FREE_WITHIN) {
        return Ok(());
    }
    let has_it = |pid: &u32| *pid != std::process::id() && lock::has_open(*pid, &path) == Some(true);
    // Another watcher that was faster is no survivor; it refuses the successor itself.
    let is_heir = |pid: &u32| liveness::identify(*pid) == Identity::NotWatcher;
    match group::all().into_iter().filter(has_it).find(is_heir) {
        None => Ok(()),
        Some(pid) => Err(ReplaceError::Survived {
            pid,
            dir: state.path().to_owned(),
            why: "the watcher that was ended has left it behind, and it still has the lock; end it yourself".to_owned(),
        }),
    }
}

/// The live watchers of a state directory: by the lock's file or the observer's, which they have open.
///
/// One whose lock file was removed still counts; it notices within seconds.
pub fn watchers(state: &StateDir) -> Vec<u32> {
    let is_open = |pid: &u32| is_here(state, *pid);
    group::all().into_iter().filter(|pid| liveness::identify(*pid) == Identity::Watcher).filter(is_open).collect()
}

/// Makes sure that a watcher may write here. A full disk passes: a watcher does what it can until there is space again.
pub fn check_permitted(state: &StateDir) -> io::Result<()> {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    match space::check_writable(state.path()) {
        Err(error) if matches!(error.kind(), StorageFull | QuotaExceeded) => Ok(()),
        checked => checked,
    }
}

/// Looks at everything that the decision needs.
fn look(state: &StateDir) -> Scene {
    let (lock, body) = match lock::probe(state) {
        Probe::Absent => (LockState::Free, String::new()),
        Probe::Free(body) => (LockState::Free, body),
        Probe::Held(body) => (LockState::Held, body),
        Probe::CannotTell(_) => (LockState::CannotTell, String::new()),
    };
    let holder = Holder::parse(&body);
    let here = Here::look();
    let recorded = holder.pid.map_or(Identity::CannotTell, liveness::identify);
    let leaderless = holder.pid.filter(|pid| group::group_of(*pid).is_none());
    let orphans = leaderless.map(group::members).unwrap_or_default();
    let path = state.at(LOCK_FILE);
    let is_ours =
        |pid: &u32| lock::has_open(*pid, &path) == Some(true) || liveness::identify(*pid) == Identity::Watcher;
    Scene {
        lock,
        orphans_are_ours: orphans.iter().any(is_ours),
        orphans,
        recorded,
        holder,
        host: here.host,
        boot_id: here.boot_id,
        pid_ns: here.pid_ns,
        own_pid: std::process::id(),
        own_group: group::group_of(std::process::id()),
        watchers: watchers(state)
            .into_iter()
            .filter_map(|pid| Some(Watcher { pid, group: group::group_of(pid)? }))
            .collect(),
    }
}

/// Whether a process has the lock's file or the observer's open.
fn is_here(state: &StateDir, pid: u32) -> bool {
    [LOCK_FILE, OBSERVER_FILE].iter().any(|name| lock::has_open(pid, &state.at(name)) == Some(true))
}

/// Ends a watcher and what is left of its group; whether it had to be killed, `None` if it was gone by itself.
fn end_watcher(state: &StateDir, pid: u32, led: Option<u32>, grace: Duration) -> Result<Option<bool>, ReplaceError> {
    let survived = |why: String| ReplaceError::Survived { pid, dir: state.path().to_owned(), why };
    let io_failed = |error: rustix::io::Errno| survived(error.to_string());
    let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    let process = match rustix::process::pidfd_open(raw, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(rustix::io::Errno::SRCH) => return Ok(None),
        Err(error) => return Err(io_failed(error)),
    };
    // The descriptor keeps naming this process even if its pid is used again, so this look and the signal are about the
    // same process.
    if liveness::identify(pid) != Identity::Watcher || !is_here(state, pid) {
        return Ok(None);
    }
    // It alone first: it ends its children itself, and finishes a delivery that is under way.
    let mut forced = false;
    if !signal_and_wait(&process, Signal::TERM, grace).map_err(io_failed)? {
        forced = true;
        if !signal_and_wait(&process, Signal::KILL, KILL_GRACE).map_err(io_failed)? {
            return Err(survived(format!("it is still there {} s after SIGKILL", KILL_GRACE.as_secs())));
        }
    }
    // The number can't be used again while its group has members.
    if let Some(group) = led {
        end_group(state, group, Duration::from_secs(2).min(grace))?;
    }
    Ok(Some(forced))
}

/// Ends what is left of a group.
fn end_group(state: &StateDir, pgid: u32, grace: Duration) -> Result<(), ReplaceError> {
    match group::end(pgid, grace, KILL_GRACE).first() {
        None => Ok(()),
        Some(left) => Err(ReplaceError::Survived {
            pid: *left,
            dir: state.path().to_owned(),
            why: format!("it is of its process group {pgid}, and still there after SIGKILL"),
        }),
    }
}

/// Sends a signal and waits for the process to end; whether it did.
fn signal_and_wait(process: &OwnedFd, signal: Signal, patience: Duration) -> rustix::io::Result<bool> {
    match rustix::process::pidfd_send_signal(process, signal) {
        Err(rustix::io::Errno::SRCH) => return Ok(true),
        sent => sent?,
    }
    let patience = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    loop {
        let mut watched = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
        match rustix::event::poll(&mut watched, Some(&patience)) {
            Ok(ready) => return Ok(ready > 0),
            // A signal to us; being patient once more is harmless.
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests start children of their own")]

    use std::collections::BTreeMap;
    use std::fs;
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::process::CommandExt as _;
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::sys::clock::Clock;

    const GRACE: Duration = Duration::from_secs(10);

    /// A process under the given program name that holds the lock of a state directory until its input ends.
    struct Stand {
        child: Child,
    }

    impl Stand {
        fn holding(state: &StateDir, program: &str, prelude: &str) -> Self {
            Self::start(state, program, prelude, false)
        }

        /// `prelude` runs while the lock is held; `leads` puts it into a group of its own.
        fn start(state: &StateDir, program: &str, prelude: &str, leads: bool) -> Self {
            fs::create_dir_all(state.path()).unwrap();
            let program = state.path().parent().unwrap().join(program);
            fs::copy("/bin/sh", &program).unwrap();
            // The second descriptor of the lock belongs to the shell alone; `flock` locks what both share.
            let script = format!("exec 9>>\"$1\"; flock -n 9 || exit 9; {prelude} echo held; read line");
            let mut child = loop {
                let mut command = Command::new(&program);
                command
                    .args(["-c", &script, "sh"])
                    .arg(state.at(LOCK_FILE))
                    .current_dir(state.path().parent().unwrap());
                if leads {
                    command.process_group(0);
                }
                match command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
                    // Another test's child, just forked, still has the copy open for writing.
                    Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {}
                    child => break child.unwrap(),
                }
            };
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "held\n");
            Self { child }
        }

        /// Writes the body of the lock file in the name of this process.
        fn sign(&self, state: &StateDir, change: impl FnOnce(&mut Holder)) {
            let env = BTreeMap::new();
            let mut holder = Here::look().describe(&env, Path::new("/srv"), "", &Clock::System.now());
            holder.pid = Some(self.child.id());
            change(&mut holder);
            fs::write(state.at(LOCK_FILE), holder.render()).unwrap();
        }

        fn is_running(&mut self) -> bool {
            self.child.try_wait().unwrap().is_none()
        }
    }

    impl Drop for Stand {
        fn drop(&mut self) {
            let _gone = self.child.kill();
            let _gone = self.child.wait();
        }
    }

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path().join("state"));
        (dir, state)
    }

    #[test]
    fn a_holder_ends_at_sigterm_and_its_successor_gets_the_lock() {
        let (_dir, state) = state();
        let mut old = Stand::holding(&state, liveness::PROGRAM, "");
        old.sign(&state, |_| {});
        let pid = old.child.id();
        assert!(matches!(lock::acquire(&state, "x\n"), Err(lock::LockError::Held { .. })));
        assert_eq!(take_over(&state, GRACE).unwrap().ended, [(pid, false)]);
        let _new = lock::acquire(&state, "x\n").unwrap();
        assert!(!old.is_running());
    }

    #[test]
    fn a_holder_that_ignores_sigterm_is_killed() {
        let (_dir, state) = state();
        let old = Stand::holding(&state, liveness::PROGRAM, "trap '' TERM;");
        old.sign(&state, |_| {});
        let pid = old.child.id();
        assert_eq!(take_over(&state, Duration::from_millis(50)).unwrap().ended, [(pid, true)]);
        let _new = lock::acquire(&state, "x\n").unwrap();
    }

    #[test]
    fn the_whole_group_of_a_leader_ends_and_that_of_a_guest_does_not() {
        // What it starts neither has the lock open nor ends with it.
        for leads in [true, false] {
            let (dir, state) = state();
            let mut old = Stand::start(&state, liveness::PROGRAM, "sleep 600 9>&- &", leads);
            old.sign(&state, |_| {});
            let pid = old.child.id();
            let all = group::members(group::group_of(pid).unwrap());
            assert_eq!(take_over(&state, GRACE).unwrap().ended, [(pid, false)]);
            assert!(!old.is_running());
            if leads {
                assert!(all.len() >= 2 && group::members(pid).is_empty(), "{all:?}");
            } else {
                // We are in that group ourselves, or this line would not be reached; the child it left has no parent.
                let is_left = |pid: &u32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == dir.path());
                let left: Vec<_> = group::all().into_iter().filter(is_left).collect();
                assert_eq!(left.len(), 1);
                group_of_one_is_ended(left[0]);
            }
        }
    }

    fn group_of_one_is_ended(pid: u32) {
        rustix::process::kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    }

    #[test]
    fn a_group_whose_leader_was_killed_is_reaped_and_the_lock_that_it_kept_is_free() {
        let (_dir, state) = state();
        let mut old = Stand::start(&state, liveness::PROGRAM, "(while :; do sleep 600; done) &", true);
        old.sign(&state, |_| {});
        let pid = old.child.id();
        old.child.kill().unwrap();
        old.child.wait().unwrap();
        assert!(matches!(lock::probe(&state), Probe::Held(_)), "its child has inherited the lock");
        let done = take_over(&state, GRACE).unwrap();
        assert!(done.reaped == [pid] || !done.ended.is_empty(), "{done:?}");
        assert!(group::members(pid).is_empty());
        let _new = lock::acquire(&state, "x\n").unwrap();
    }

    #[test]
    fn a_group_that_nothing_shows_to_be_ours_is_left_alone() {
        let (_dir, state) = state();
        let mut other = Stand::start(&state, "not-the-watcher", "sleep 600 9>&- &", true);
        other.sign(&state, |_| {});
        let pid = other.child.id();
        other.child.kill().unwrap();
        other.child.wait().unwrap();
        let done = take_over(&state, GRACE).unwrap();
        assert_eq!(done, TakenOver { unverified: Some(pid), ..TakenOver::default() });
        assert_eq!(group::members(pid).len(), 1);
        assert_eq!(group::end(pid, GRACE, GRACE), Vec::<u32>::new());
    }

    #[test]
    fn a_watcher_whose_lock_file_was_removed_is_found_by_it() {
        let (_dir, state) = state();
        let mut old = Stand::holding(&state, liveness::PROGRAM, "");
        fs::remove_file(state.at(LOCK_FILE)).unwrap();
        assert_eq!(watchers(&state), [old.child.id()]);
        let _new = lock::acquire(&state, "x\n").unwrap();
        assert_eq!(take_over(&state, GRACE).unwrap().ended.len(), 1);
        assert!(!old.is_running());
    }

    #[test]
    fn whoever_is_not_certainly_the_watcher_is_left_alone() {
        let check = |name: &str, program: &str, change: &dyn Fn(&mut Holder), words: &str| {
            let (_dir, state) = state();
            let mut stand = Stand::holding(&state, program, "");
            stand.sign(&state, change);
            let error = take_over(&state, GRACE).unwrap_err();
            assert_eq!(error.exit_code(), 4, "{name}");
            assert!(error.to_string().contains(words), "{name}: {error}");
            assert!(stand.is_running(), "{name}");
        };
        let watcher = liveness::PROGRAM;
        check("another program", "not-the-watcher", &|_| {}, "another program");
        check("another program, no pid", "not-the-watcher", &|holder| holder.pid = None, "did not write its pid");
        check("another host", watcher, &|holder| holder.host = "elsewhere".into(), "host elsewhere");
        check("another pid namespace", watcher, &|holder| holder.pid_ns = "pid:[1]".into(), "sandbox");
        check("our own pid", watcher, &|holder| holder.pid = Some(std::process::id()), "ourselves");
    }

    #[test]
    fn a_watcher_of_another_state_directory_is_left_alone() {
        let (_dir, state) = state();
        let (_other_dir, elsewhere) = self::state();
        let mut other = Stand::holding(&elsewhere, liveness::PROGRAM, "");
        // Ours is held by a process that recorded the other's pid: a lie, or a number that was used again.
        let _holder = Stand::holding(&state, "not-the-watcher", "");
        other.sign(&state, |_| {});
        let error = take_over(&state, GRACE).unwrap_err();
        assert!(error.to_string().contains("not seen to have it open"), "{error}");
        assert!(other.is_running());
    }

    #[test]
    fn nobody_there_is_nothing_to_replace() {
        let (_dir, state) = state();
        assert_eq!(take_over(&state, GRACE).unwrap(), TakenOver::default());
        drop(lock::acquire(&state, "pid: 1\n").unwrap());
        assert_eq!(take_over(&state, GRACE).unwrap(), TakenOver::default());
        assert_eq!(crate::sys::files::list_names(state.path()).unwrap(), [LOCK_FILE], "no litter");
    }

    #[test]
    fn a_state_directory_that_cannot_be_written_keeps_its_watcher() {
        let dir = tempfile::tempdir().unwrap();
        // A file stands where the directory should be; unlike permissions, that stops root too.
        let path = dir.path().join("state");
        fs::write(&path, "").unwrap();
        let error = take_over(&StateDir::new(path), GRACE).unwrap_err();
        assert_eq!(error.exit_code(), 5, "{error}");
    }
}
