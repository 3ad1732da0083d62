//! Watches over the watcher itself, beside the loop: the lock is still ours, the beacon says that we live, the heartbeat
//! thread runs. Ends (and so ends the watcher, with exit code 0) when another instance has taken over.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::seat::Seat;
use crate::config::live::Live;
use crate::logic::instance::beacon::{Beacon, Fence};
use crate::logic::instance::holder::Holder;
use crate::logic::time::Now;
use crate::sys::clock::Clock;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES, StateDir};
use crate::sys::instance::BEACON_FILE;
use crate::sys::liveness;
use crate::sys::lock::{self, InstanceLock, LockError};
use crate::sys::ticker::Ticker;

/// How often everything is looked at.
const EVERY: Duration = Duration::from_secs(5);

/// What is watched over.
#[derive(Debug)]
pub(super) struct Guard {
    /// The state directory.
    pub(super) state: StateDir,
    /// The held lock.
    pub(super) lock: InstanceLock,
    /// The heartbeat thread.
    pub(super) ticker: Ticker,
    /// The target window, for a new heartbeat thread.
    pub(super) target: String,
    /// Cadence of the heartbeat.
    pub(super) tick: Duration,
    /// When we started.
    pub(super) started: Now,
    /// The settings in force.
    pub(super) settings: Live,
    /// Cadence of the emits, as published.
    pub(super) interval: Duration,
    /// How we describe ourselves.
    pub(super) holder: Holder,
    /// Our claim to be the one instance.
    pub(super) seat: Rc<Seat>,
    /// What does not work, as last said: a failure of an hour is two lines.
    pub(super) said: BTreeMap<&'static str, String>,
}

impl Guard {
    /// Says who watches, and that it lives: whoever holds the lock takes over from what an earlier instance left.
    pub(super) fn announce(&mut self) {
        let now = Clock::System.now();
        self.publish();
        self.write_beacon(&now);
    }

    /// Says who watches.
    fn publish(&self) {
        let published = liveness::write_pid(&self.state)
            .and_then(|()| liveness::write_who(&self.state, &self.started, &self.target, self.interval));
        if let Err(error) = published {
            tracing::error!(%error, "cannot publish who watches");
        }
    }

    /// Goes on until another instance has taken over.
    pub(super) async fn watch(&mut self) {
        loop {
            tokio::time::sleep(EVERY).await;
            if let Some(why) = self.step() {
                tracing::error!("{why}; standing down");
                return;
            }
            let error = self.ticker.error();
            self.say("heartbeat", error.map(|error| format!("the heartbeat can't be written: {error}")));
        }
    }

    /// One look. Returns why we must stand down, if we must.
    fn step(&mut self) -> Option<String> {
        if !self.ticker.is_running() {
            match Ticker::start(&self.state, &self.target, self.tick) {
                Ok(ticker) => self.ticker = ticker,
                Err(error) => {
                    self.say("heartbeat thread", Some(format!("the heartbeat thread can't be started again: {error}")));
                }
            }
        }
        match self.lock.is_in_place() {
            Ok(true) => self.say("instance lock", None),
            // Somebody removed the file or the whole directory; another watcher may have started since.
            Ok(false) => match lock::acquire(&self.state, &self.holder.render()) {
                Ok(lock) => {
                    self.seat.take(&lock);
                    self.lock = lock;
                    tracing::warn!("the instance lock was removed under a running watcher; taken again");
                    self.announce();
                }
                Err(LockError::Held { path, .. }) => {
                    return Some(format!("another watcher holds {}, which was replaced under us", path.display()));
                }
                Err(error) => {
                    let trouble = format!("the instance lock was removed, so nothing is typed: {error}");
                    self.say("instance lock", Some(trouble));
                }
            },
            // A file system that does not answer is no proof of a second watcher.
            Err(error) => self.say("instance lock", Some(format!("the lock file can't be looked at: {error}"))),
        }
        let now = Clock::System.now();
        let interval = self.settings.get().interval;
        if interval != self.interval {
            self.interval = interval;
            self.publish();
        }
        match self.seat.fence(now.at) {
            Fence::Refresh => self.write_beacon(&now),
            Fence::StandDown(other) => {
                return Some(format!("another watcher (pid {} on {}) has taken over", other.pid, other.host));
            }
        }
        None
    }

    /// Writes our beacon.
    fn write_beacon(&mut self, now: &Now) {
        let beacon = Beacon {
            host: self.holder.host.clone(),
            boot_id: self.holder.boot_id.clone(),
            pid_ns: self.holder.pid_ns.clone(),
            pid: std::process::id(),
            tmux: self.holder.tmux.clone(),
            nexus_root: self.holder.nexus_root.clone(),
            nonce: self.seat.nonce().to_owned(),
            at: now.at,
        };
        let written = files::write_atomic(&self.state.at(BEACON_FILE), beacon.render(now).as_bytes(), Durability::Hint);
        self.say("beacon", written.err().map(|error| format!("the beacon can't be written: {error}")));
    }

    /// Says what does not work, and that it works again, each once.
    fn say(&mut self, topic: &'static str, trouble: Option<String>) {
        match trouble {
            Some(trouble) if self.said.get(topic) != Some(&trouble) => {
                tracing::error!("{trouble}");
                self.said.insert(topic, trouble);
            }
            Some(_) => {}
            None => {
                if self.said.remove(topic).is_some() {
                    tracing::info!("the {topic} is as it should be again");
                }
            }
        }
    }

    /// Removes our beacon at a clean end; another instance's stays.
    pub(super) fn retire(&self) {
        let path = self.state.at(BEACON_FILE);
        let ours = files::read_text(&path, MAX_STATE_BYTES)
            .ok()
            .flatten()
            .and_then(|text| Beacon::parse(&text))
            .is_some_and(|beacon| beacon.nonce == self.seat.nonce());
        if ours && let Err(error) = files::remove(&path) {
            tracing::warn!(%error, "our beacon can't be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::resolved::Settings;

    fn guard(dir: &std::path::Path, nonce: &str) -> Guard {
        let state = StateDir::new(dir);
        let holder = Holder { host: "here".into(), ..Holder::parse("") };
        let lock = lock::acquire(&state, "").unwrap();
        let seat = Rc::new(Seat::new(&state, "here", nonce, Duration::from_secs(600)));
        seat.take(&lock);
        Guard {
            lock,
            said: BTreeMap::new(),
            seat,
            ticker: Ticker::start(&state, "orchestrator", Duration::from_secs(60)).unwrap(),
            target: "orchestrator".into(),
            tick: Duration::from_secs(60),
            interval: Duration::from_secs(60),
            holder,
            started: Clock::System.now(),
            settings: Settings::defaults(dir).into(),
            state,
        }
    }

    #[test]
    fn a_removed_lock_is_taken_again_and_one_that_another_took_is_stood_down_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut guard = guard(dir.path(), "a");
        guard.announce();
        assert_eq!(guard.step(), None);
        std::fs::remove_file(guard.lock.path()).unwrap();
        assert_eq!(guard.step(), None);
        assert!(matches!(lock::probe(&guard.state), lock::Probe::Held(_)));
        std::fs::remove_file(guard.lock.path()).unwrap();
        let other = lock::acquire(&guard.state, "").unwrap();
        assert!(guard.step().unwrap().contains("another watcher holds"));
        drop(other);
    }

    #[test]
    fn it_stands_down_for_a_fresh_beacon_of_another_and_leaves_it_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut guard = guard(dir.path(), "a");
        guard.announce();
        let path = guard.state.at(BEACON_FILE);
        let other = std::fs::read_to_string(&path).unwrap().replace("nonce: a", "nonce: b");
        std::fs::write(&path, &other).unwrap();
        assert!(guard.step().unwrap().contains("taken over"));
        guard.retire();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
    }

    #[test]
    fn a_heartbeat_thread_that_died_is_started_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut guard = guard(dir.path(), "a");
        guard.ticker = Ticker::dead();
        std::fs::remove_file(guard.state.at(crate::sys::ticker::HEARTBEAT_FILE)).unwrap();
        assert!(!guard.ticker.is_running());
        assert_eq!(guard.step(), None);
        assert!(guard.ticker.is_running() && guard.state.at(crate::sys::ticker::HEARTBEAT_FILE).exists());
    }

    #[test]
    fn a_beacon_that_is_gone_damaged_or_stale_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut guard = guard(dir.path(), "a");
        guard.announce();
        let path = guard.state.at(BEACON_FILE);
        let stale = "host: there\npid: 7\nnonce: b\nepoch: 1000\n";
        for found in [None, Some("rubbish"), Some(""), Some(stale)] {
            match found {
                None => std::fs::remove_file(&path).unwrap(),
                Some(text) => std::fs::write(&path, text).unwrap(),
            }
            assert_eq!(guard.step(), None, "{found:?}");
            let beacon = Beacon::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!((beacon.nonce.as_str(), beacon.host.as_str()), ("a", "here"), "{found:?}");
        }
    }

    #[test]
    fn what_lasts_is_said_once_and_its_end_too() {
        let dir = tempfile::tempdir().unwrap();
        let mut guard = guard(dir.path(), "a");
        let path = guard.state.at(BEACON_FILE);
        std::fs::create_dir(&path).unwrap();
        for _ in 0..3 {
            assert_eq!(guard.step(), None);
            assert_eq!(guard.said.keys().collect::<Vec<_>>(), [&"beacon"]);
        }
        std::fs::remove_dir(&path).unwrap();
        assert_eq!(guard.step(), None);
        assert!(guard.said.is_empty() && path.exists());
    }

    #[test]
    fn a_clean_end_removes_our_own_beacon() {
        let dir = tempfile::tempdir().unwrap();
        let mut guard = guard(dir.path(), "a");
        guard.announce();
        assert!(guard.state.at(BEACON_FILE).exists());
        guard.retire();
        assert!(!guard.state.at(BEACON_FILE).exists());
    }
}
