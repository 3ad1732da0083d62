//! Where this process runs, how it describes itself in the lock's text, and what the lock, its text and the beacon say in
//! words. Looks only; `sys::takeover` ends, `sys::lock` locks.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::logic::instance::beacon::{self, BeaconVerdict};
use crate::logic::instance::holder::{Assessment, Holder};
use crate::logic::instance::records;
use crate::logic::instance::verdict::Identity;
use crate::logic::time::{Now, Timestamp};
use crate::sys::env::Env;
use crate::sys::files::{self, MAX_STATE_BYTES, StateDir};
use crate::sys::liveness;
use crate::sys::lock::{self, LOCK_FILE, OBSERVER_FILE, Probe};

/// Name of the beacon in the state directory.
pub const BEACON_FILE: &str = "nexus-instance.heartbeat";

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

/// What `--instance-status` prints.
///
/// Shape:  `instance-lock: HELD`, `lock=…`, `assessment=…` and the holder's lines; or
///         `instance-lock: free (no live holder)`, `lock=…` and a note if an earlier holder left its lines; or
///         `instance-lock: unknown (…)`.
///         A line on a watcher that only observes follows, if there is one.
pub fn instance_status(state: &StateDir) -> String {
    let status = lock_status(state);
    match observing(state) {
        Some(observing) => format!("{status}\n{}", observing.says()),
        None => status,
    }
}

/// What `--instance-status` prints of the lock.
fn lock_status(state: &StateDir) -> String {
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

/// A watcher that could not open the instance lock and only observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observing {
    /// Its process.
    pub pid: u32,
    /// Since when, as printed by it.
    pub since: String,
    /// Why it does.
    pub reason: String,
}

impl Observing {
    /// What it means and what to do, as one line.
    pub fn says(&self) -> String {
        let Self { pid, since, reason } = self;
        format!(
            "OBSERVE-ONLY: process {pid} has no instance lock since {since} and tells nobody anything: {reason}; it goes on as \
             a full watcher once it gets the lock"
        )
    }
}

/// Whether a watcher only observes this state directory; `None` if none is seen to.
pub fn observing(state: &StateDir) -> Option<Observing> {
    let (body, is_held) = match lock::probe_file(state, OBSERVER_FILE) {
        Probe::Held(body) => (body, true),
        Probe::Free(body) => (body, false),
        Probe::Absent | Probe::CannotTell(_) => return None,
    };
    let pid = Holder::parse(&body).pid?;
    // Where files can't be locked at all, the program is the only witness.
    if !is_held
        && (liveness::identify(pid) != Identity::Watcher || lock::has_open(pid, &state.at(OBSERVER_FILE)) != Some(true))
    {
        return None;
    }
    let reason = records::field(&body, ':', "reason").unwrap_or_default();
    Some(Observing { pid, since: Holder::parse(&body).started_at, reason })
}

/// What an observer writes into its file: who it is, and why it only observes.
pub fn observer_body(holder: &Holder, reason: &str) -> String {
    format!("{}reason: {}\n", holder.render(), reason.replace(char::is_control, " "))
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
        Assessment::LiveLocal if holder.is_in_other_namespace(&here.pid_ns) => {
            "it runs in another sandbox (pid namespace): use it, or end it there".to_owned()
        }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sys::clock::Clock;

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path().join("state"));
        (dir, state)
    }

    #[test]
    fn a_refusal_names_the_holder_and_what_to_do_row_by_row() {
        let here = Here::look();
        let holder =
            Holder { pid: Some(7), host: here.host, boot_id: here.boot_id, pid_ns: here.pid_ns, ..Holder::default() };
        let check = |name: &str, holder: &Holder, words: [&str; 2]| {
            let text = refusal(Path::new("/s/lock"), &holder.render());
            assert!(words.iter().all(|word| text.contains(word)) && text.lines().count() == 1, "{name}: {text}");
        };
        check("a peer", &holder, ["live-local: pid 7", "--replace"]);
        let elsewhere = Holder { pid_ns: "pid:[1]".into(), ..holder.clone() };
        check("another sandbox", &elsewhere, ["live-local: pid 7", "another sandbox (pid namespace)"]);
        let remote = Holder { host: "elsewhere".into(), ..holder.clone() };
        check("another host", &remote, ["live-remote", "end it on host elsewhere"]);
        check("another boot", &Holder { boot_id: "old".into(), ..holder }, ["stale-reboot", "fuser /s/lock"]);
        check("no text", &Holder::default(), ["unknown: pid ?", "fuser /s/lock"]);
    }

    #[test]
    fn a_watcher_that_only_observes_is_said_to() {
        let (_dir, state) = state();
        assert_eq!(observing(&state), None);
        let me = Here::look().describe(&BTreeMap::new(), Path::new("/srv"), "", &Clock::System.now());
        let body = observer_body(&me, "the lock is\na directory");
        let held = lock::acquire_file(&state, OBSERVER_FILE, &body).unwrap();
        let seen = observing(&state).unwrap();
        assert_eq!((seen.pid, seen.reason.as_str()), (std::process::id(), "the lock is a directory"));
        let status = instance_status(&state);
        assert!(status.starts_with("instance-lock: free") && status.contains("\nOBSERVE-ONLY: process"), "{status}");
        drop(held);
        assert_eq!(observing(&state), None, "what an observer that ended has left");
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
