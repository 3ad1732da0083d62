//! Taking over from the holder of a state directory, and saying who holds it.
//!
//! Ends one process at most: the recorded holder of *this* state directory, and only after it was recognised by its
//! program and by the lock file that it has open. Everything else is refused with the reason.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::logic::instance::beacon::{self, BeaconVerdict};
use crate::logic::instance::holder::{Assessment, Holder};
use crate::logic::instance::verdict::Identity;
use crate::logic::time::{Now, Timestamp};
use crate::sys::env::Env;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES, StateDir};
use crate::sys::liveness;
use crate::sys::lock::{self, LOCK_FILE, Probe};

/// Name of the beacon in the state directory.
pub const BEACON_FILE: &str = "nexus-instance.heartbeat";

/// How long a process may take to vanish after SIGKILL.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// Where this process runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// Name of the host.
    pub host: String,
    /// Boot id of the host; empty if it cannot be read.
    pub boot_id: String,
    /// Our pid namespace; empty if it cannot be read.
    pub pid_ns: String,
}

impl Here {
    /// Looks around.
    pub fn look() -> Self {
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let pid_ns = fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned());
        Self {
            host: hostname::get().map(|host| host.to_string_lossy().into_owned()).unwrap_or_default(),
            boot_id: boot_id.trim().to_owned(),
            pid_ns: pid_ns.unwrap_or_default(),
        }
    }

    /// How this process describes itself in the lock file. `tmux` is the socket that it watches.
    pub fn describe(&self, env: &dyn Env, nexus_root: &Path, tmux: &str, now: &Now) -> Holder {
        let user = env.non_empty("USER").or_else(|| env.non_empty("LOGNAME"));
        let sandboxed = env.non_empty("IS_SANDBOX").is_some() || Path::new("/.dockerenv").exists();
        Holder {
            pid: Some(std::process::id()),
            host: self.host.clone(),
            boot_id: self.boot_id.clone(),
            pid_ns: self.pid_ns.clone(),
            sandbox: if sandboxed { "yes" } else { "no" }.to_owned(),
            tmux: tmux.to_owned(),
            user: user.unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw())),
            nexus_root: nexus_root.display().to_string(),
            started_at: now.iso(),
        }
    }
}

/// What [`replace_holder`] found to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// Nobody held the state directory.
    Nobody,
    /// The holder was ended.
    Ended {
        /// Its process.
        pid: u32,
        /// Whether it had to be killed.
        forced: bool,
    },
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
    #[error("process {pid} holds {} and did not end: {why}", path.display())]
    Survived {
        /// The holder.
        pid: u32,
        /// The lock file.
        path: PathBuf,
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

/// Ends the holder of a state directory, so that a successor can take the lock: SIGTERM, after `grace` SIGKILL.
///
/// Does nothing if nobody holds it. The successor still has to take the lock, which may fail if another was faster.
pub fn replace_holder(state: &StateDir, grace: Duration) -> Result<Replaced, ReplaceError> {
    let path = state.at(LOCK_FILE);
    let not_certain = |why: String| ReplaceError::NotCertain { path: path.clone(), why };
    check_writable(state)?;
    let body = match lock::probe(state) {
        Probe::Absent | Probe::Free(_) => return Ok(Replaced::Nobody),
        Probe::CannotTell(error) => return Err(not_certain(format!("the lock cannot be tried: {error}"))),
        Probe::Held(body) => body,
    };
    let holder = Holder::parse(&body);
    let here = Here::look();
    if holder.assess(&here.host, &here.boot_id) == Assessment::LiveRemote {
        return Err(not_certain(format!("it runs on host {}; end it there", holder.host)));
    }
    if !holder.pid_ns.is_empty() && !here.pid_ns.is_empty() && holder.pid_ns != here.pid_ns {
        return Err(not_certain("it runs in another sandbox (pid namespace); end it there".to_owned()));
    }
    let Some((pid, raw)) = holder.pid.and_then(|pid| Some((pid, Pid::from_raw(i32::try_from(pid).ok()?)?))) else {
        return Err(not_certain(format!(
            "it did not write its pid into the file; find it with `fuser {}`",
            path.display()
        )));
    };
    if pid == std::process::id() {
        return Err(not_certain("we hold it ourselves".to_owned()));
    }
    // The descriptor keeps naming this process even if its pid is used again, so the checks that follow and the signal
    // are about the same process.
    let process = rustix::process::pidfd_open(raw, PidfdFlags::empty())
        .map_err(|error| not_certain(format!("its recorded process {pid} cannot be opened: {error}")))?;
    if liveness::identify(pid) != Identity::Watcher {
        return Err(not_certain(format!("process {pid} is recorded as its holder, but runs another program")));
    }
    if lock::has_open(pid, &path) != Some(true) {
        return Err(not_certain(format!("process {pid} is recorded as its holder, but is not seen to have it open")));
    }
    let survived = |why: String| ReplaceError::Survived { pid, path: path.clone(), why };
    let io_failed = |error: rustix::io::Errno| survived(error.to_string());
    if signal_and_wait(&process, Signal::TERM, grace).map_err(io_failed)? {
        return Ok(Replaced::Ended { pid, forced: false });
    }
    if signal_and_wait(&process, Signal::KILL, KILL_GRACE).map_err(io_failed)? {
        return Ok(Replaced::Ended { pid, forced: true });
    }
    Err(survived(format!("it is still there {} s after SIGKILL", KILL_GRACE.as_secs())))
}

/// What `--instance-status` prints.
///
/// Shape:  `instance-lock: HELD`, `lock=…`, `assessment=…` and the holder's lines; or
///         `instance-lock: free (no live holder)`, `lock=…` and a note if an earlier holder left its lines; or
///         `instance-lock: unknown (…)`.
pub fn instance_status(state: &StateDir) -> String {
    let lock = state.at(LOCK_FILE);
    let lock = lock.display();
    match lock::probe(state) {
        Probe::Held(body) => {
            let holder = Holder::parse(&body);
            let here = Here::look();
            let word = holder.assess(&here.host, &here.boot_id).word();
            format!("instance-lock: HELD\nlock={lock}\nassessment={word}\n{}", holder.render().trim_end())
        }
        Probe::Free(body) if !body.trim().is_empty() => {
            let holder = Holder::parse(&body);
            let pid = holder.pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string());
            format!(
                "instance-lock: free (no live holder)\nlock={lock}\nnote: the text in it is of an earlier holder \
                 (pid {pid} on {}, started {})",
                holder.host, holder.started_at
            )
        }
        Probe::Free(_) | Probe::Absent => format!("instance-lock: free (no live holder)\nlock={lock}"),
        Probe::CannotTell(error) => format!("instance-lock: unknown ({error})\nlock={lock}"),
    }
}

/// The one line that refuses a start because the lock is held: who holds it, and what to do. `metadata` is what
/// [`lock::LockError::Held`] carries.
pub fn refusal(lock: &Path, metadata: &str) -> String {
    let holder = Holder::parse(metadata);
    let here = Here::look();
    let assessment = holder.assess(&here.host, &here.boot_id);
    let known = |value: &str| if value.is_empty() { "?".to_owned() } else { value.to_owned() };
    let pid = holder.pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string());
    let advice = match assessment {
        Assessment::LiveLocal => "use it, or take over with --replace".to_owned(),
        Assessment::LiveRemote => format!("use it, or end it on host {}", holder.host),
        Assessment::StaleReboot | Assessment::Unknown => {
            format!("its text does not name the holder; find it with `fuser {}`", lock.display())
        }
    };
    format!(
        "another watcher holds {} ({}: pid {pid} on {}, since {}); {advice}",
        lock.display(),
        assessment.word(),
        known(&holder.host),
        known(&holder.started_at)
    )
}

/// Judges the beacon of a watcher on another host, for a starter that found the lock free.
pub fn remote_verdict(state: &StateDir, now: Timestamp, stale_after: Duration) -> BeaconVerdict {
    match files::read_text(&state.at(BEACON_FILE), MAX_STATE_BYTES) {
        Ok(text) => beacon::classify(text.as_deref(), &Here::look().host, now, stale_after),
        Err(_) => BeaconVerdict::Corrupt,
    }
}

/// A takeover on a read-only file system would end the only watcher and start none.
fn check_writable(state: &StateDir) -> Result<(), ReplaceError> {
    let trial = state.at(format!("watcher.trial.{}", std::process::id()));
    files::write_atomic(&trial, b"", Durability::Hint)
        .and_then(|()| files::remove(&trial))
        .map_err(|source| ReplaceError::Unwritable { dir: state.path().to_owned(), source })
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
    use std::io::{BufRead as _, BufReader};
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
            fs::create_dir_all(state.path()).unwrap();
            let program = state.path().parent().unwrap().join(program);
            fs::copy("/bin/sh", &program).unwrap();
            // The second descriptor of the lock belongs to the shell alone; `flock` locks what both share.
            let script = format!("{prelude} exec 9>>\"$1\"; flock -n 9 || exit 9; echo held; read line");
            let mut child = loop {
                let mut command = Command::new(&program);
                command.args(["-c", &script, "sh"]).arg(state.at(LOCK_FILE));
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
        assert_eq!(replace_holder(&state, GRACE).unwrap(), Replaced::Ended { pid, forced: false });
        let _new = lock::acquire(&state, "x\n").unwrap();
        assert!(!old.is_running());
    }

    #[test]
    fn a_holder_that_ignores_sigterm_is_killed() {
        let (_dir, state) = state();
        let old = Stand::holding(&state, liveness::PROGRAM, "trap '' TERM;");
        old.sign(&state, |_| {});
        let pid = old.child.id();
        let replaced = replace_holder(&state, Duration::from_millis(50)).unwrap();
        assert_eq!(replaced, Replaced::Ended { pid, forced: true });
        let _new = lock::acquire(&state, "x\n").unwrap();
    }

    #[test]
    fn whoever_is_not_certainly_the_watcher_is_left_alone() {
        let check = |name: &str, program: &str, change: &dyn Fn(&mut Holder), words: &str| {
            let (_dir, state) = state();
            let mut stand = Stand::holding(&state, program, "");
            stand.sign(&state, change);
            let error = replace_holder(&state, GRACE).unwrap_err();
            assert_eq!(error.exit_code(), 4, "{name}");
            assert!(error.to_string().contains(words), "{name}: {error}");
            assert!(stand.is_running(), "{name}");
        };
        let watcher = liveness::PROGRAM;
        check("another program", "not-the-watcher", &|_| {}, "another program");
        check("another host", watcher, &|holder| holder.host = "elsewhere".into(), "host elsewhere");
        check("another pid namespace", watcher, &|holder| holder.pid_ns = "pid:[1]".into(), "sandbox");
        check("no pid", watcher, &|holder| holder.pid = None, "did not write its pid");
        check("our own pid", watcher, &|holder| holder.pid = Some(std::process::id()), "ourselves");
        check("a pid that is gone", watcher, &|holder| holder.pid = Some(0x3fff_ffff), "cannot be opened");
    }

    #[test]
    fn a_watcher_of_another_state_directory_is_left_alone() {
        let (_dir, state) = state();
        let (_other_dir, elsewhere) = self::state();
        let mut other = Stand::holding(&elsewhere, liveness::PROGRAM, "");
        // Ours is held by a process that recorded the other's pid: a lie, or a number that was used again.
        let _holder = Stand::holding(&state, "not-the-watcher", "");
        other.sign(&state, |_| {});
        let error = replace_holder(&state, GRACE).unwrap_err();
        assert!(error.to_string().contains("not seen to have it open"), "{error}");
        assert!(other.is_running());
    }

    #[test]
    fn nobody_there_is_nothing_to_replace() {
        let (_dir, state) = state();
        assert_eq!(replace_holder(&state, GRACE).unwrap(), Replaced::Nobody);
        drop(lock::acquire(&state, "pid: 1\n").unwrap());
        assert_eq!(replace_holder(&state, GRACE).unwrap(), Replaced::Nobody);
        assert_eq!(files::list_names(state.path()).unwrap(), [LOCK_FILE], "no litter");
    }

    #[test]
    fn a_state_directory_that_cannot_be_written_keeps_its_watcher() {
        let dir = tempfile::tempdir().unwrap();
        // A file stands where the directory should be; unlike permissions, that stops root too.
        let path = dir.path().join("state");
        fs::write(&path, "").unwrap();
        let error = replace_holder(&StateDir::new(path), GRACE).unwrap_err();
        assert_eq!(error.exit_code(), 5, "{error}");
    }

    #[test]
    fn a_refusal_names_the_holder_and_what_to_do_row_by_row() {
        let here = Here::look();
        let holder = Holder { pid: Some(7), host: here.host, boot_id: here.boot_id, ..Holder::default() };
        let check = |name: &str, holder: &Holder, words: [&str; 2]| {
            let text = refusal(Path::new("/s/lock"), &holder.render());
            assert!(words.iter().all(|word| text.contains(word)) && text.lines().count() == 1, "{name}: {text}");
        };
        check("a peer", &holder, ["live-local: pid 7", "--replace"]);
        let remote = Holder { host: "elsewhere".into(), ..holder.clone() };
        check("another host", &remote, ["live-remote", "end it on host elsewhere"]);
        check("another boot", &Holder { boot_id: "old".into(), ..holder }, ["stale-reboot", "fuser /s/lock"]);
        check("no text", &Holder::default(), ["unknown: pid ?", "fuser /s/lock"]);
    }

    #[test]
    fn the_status_says_who_holds_the_lock() {
        let (_dir, state) = state();
        let lock_line = format!("lock={}", state.at(LOCK_FILE).display());
        assert_eq!(instance_status(&state), format!("instance-lock: free (no live holder)\n{lock_line}"));
        let body = Here::look().describe(&BTreeMap::new(), Path::new("/srv"), "/tmp/s", &Clock::System.now()).render();
        let lock = lock::acquire(&state, &body).unwrap();
        assert_eq!(
            instance_status(&state),
            format!("instance-lock: HELD\n{lock_line}\nassessment=live-local\n{}", body.trim_end())
        );
        drop(lock);
        let free = instance_status(&state);
        assert!(free.starts_with("instance-lock: free (no live holder)\n"), "{free}");
        assert!(free.contains(&format!("pid {}", std::process::id())), "{free}");
    }
}
