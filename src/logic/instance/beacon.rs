//! The beacon `nexus-instance.heartbeat`: the only witness of a watcher on another host that shares the state directory,
//! since `flock` does not reliably reach across hosts.

use std::fmt::Write as _;
use std::time::Duration;

use super::records::{fields, one_line};
use crate::logic::time::{Now, Timestamp};

/// One instance's sign of life, as written by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// Name of its host.
    pub host: String,
    /// The host's boot id.
    pub boot_id: String,
    /// Its pid namespace.
    pub pid_ns: String,
    /// Its process id.
    pub pid: u32,
    /// Its tmux socket.
    pub tmux: String,
    /// The nexus that it watches.
    pub nexus_root: String,
    /// Made once at its start; empty in beacons of old watchers.
    pub nonce: String,
    /// When it was written.
    pub at: Timestamp,
}

/// A beacon seen by a starter that found the lock free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeaconVerdict {
    /// There is none.
    None,
    /// Of this host: the lock is the judge there.
    SameHost,
    /// Of another host, and too old to be live.
    StaleRemote,
    /// Of another host, and fresh or from the future: refuse to start.
    LiveRemote(Beacon),
    /// Unreadable. A check before the start refuses; a watcher that already holds the lock goes on.
    Corrupt,
}

impl BeaconVerdict {
    /// The printed word.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SameHost => "same-host",
            Self::StaleRemote => "stale-remote",
            Self::LiveRemote(_) => "live-remote",
            Self::Corrupt => "corrupt",
        }
    }
}

/// What a running watcher does before it refreshes the beacon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fence {
    /// Write ours.
    Refresh,
    /// Another instance took over while we stood still: leave its beacon alone and end, exit code 0.
    StandDown(Beacon),
}

impl Beacon {
    /// The file's text.
    pub fn render(&self, now: &Now) -> String {
        let (pid, epoch, ts) = (self.pid.to_string(), self.at.secs().to_string(), now.iso());
        let lines = [
            ("host", self.host.as_str()),
            ("boot_id", &self.boot_id),
            ("pid_ns", &self.pid_ns),
            ("pid", &pid),
            ("tmux", &self.tmux),
            ("nexus_root", &self.nexus_root),
            ("nonce", &self.nonce),
            ("epoch", &epoch),
            ("ts", &ts),
        ];
        let mut text = String::new();
        for (key, value) in lines {
            let _infallible = writeln!(text, "{key}: {}", one_line(value));
        }
        text
    }

    /// Reads a beacon; `None` without a host, a pid or a time.
    pub fn parse(text: &str) -> Option<Self> {
        let get = |key: &str| fields(text, ':').find(|(found, _)| *found == key).map(|(_, value)| one_line(value));
        let text_of = |key| get(key).unwrap_or_default();
        Some(Self {
            host: get("host").filter(|host| !host.is_empty())?,
            boot_id: text_of("boot_id"),
            pid_ns: text_of("pid_ns"),
            pid: get("pid")?.parse().ok()?,
            tmux: text_of("tmux"),
            nexus_root: text_of("nexus_root"),
            nonce: text_of("nonce"),
            at: Timestamp::from_secs(get("epoch")?.parse().ok()?),
        })
    }

    /// Whether its writer counts as live. A time in the future does: the other clock may be ahead.
    fn is_fresh(&self, now: Timestamp, stale_after: Duration) -> bool {
        Duration::from_secs(now.since(self.at).as_secs()) <= stale_after
    }
}

/// Judges the beacon file that a starter on `host` found; `text` is `None` if there is none.
pub fn classify(text: Option<&str>, host: &str, now: Timestamp, stale_after: Duration) -> BeaconVerdict {
    let Some(text) = text else { return BeaconVerdict::None };
    match Beacon::parse(text) {
        None => BeaconVerdict::Corrupt,
        Some(beacon) if beacon.host == host => BeaconVerdict::SameHost,
        Some(beacon) if beacon.is_fresh(now, stale_after) => BeaconVerdict::LiveRemote(beacon),
        Some(_) => BeaconVerdict::StaleRemote,
    }
}

/// Decides for a running watcher whether the beacon on disk is another instance's that took over.
///
/// The nonce tells instances apart, on one host too; the host does where either side has no nonce.
pub fn fence(text: Option<&str>, host: &str, nonce: &str, now: Timestamp, stale_after: Duration) -> Fence {
    let Some(beacon) = text.and_then(Beacon::parse) else { return Fence::Refresh };
    let ours = if beacon.nonce.is_empty() || nonce.is_empty() { beacon.host == host } else { beacon.nonce == nonce };
    if ours || !beacon.is_fresh(now, stale_after) { Fence::Refresh } else { Fence::StandDown(beacon) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALE: Duration = Duration::from_secs(600);

    fn beacon(host: &str, nonce: &str, epoch: i64) -> String {
        let at = Timestamp::from_secs(epoch);
        Beacon {
            host: host.into(),
            boot_id: "b1".into(),
            pid_ns: "pid:[1]".into(),
            pid: 7,
            tmux: "/tmp/s".into(),
            nexus_root: "/srv".into(),
            nonce: nonce.into(),
            at,
        }
        .render(&Now::fixed(at))
    }

    #[test]
    fn beacons_are_classified_row_by_row() {
        let check = |name: &str, text: Option<String>, expected: &str| {
            let verdict = classify(text.as_deref(), "here", Timestamp::from_secs(10_000), STALE);
            assert_eq!(verdict.word(), expected, "{name}");
        };
        check("no file", None, "none");
        check("empty file", Some(String::new()), "corrupt");
        check("no time", Some("host: there\npid: 7\n".into()), "corrupt");
        check("no host", Some("host: \npid: 7\nepoch: 1\n".into()), "corrupt");
        check("own host, fresh", Some(beacon("here", "n", 9_990)), "same-host");
        check("own host, old", Some(beacon("here", "n", 1)), "same-host");
        check("other host, fresh", Some(beacon("there", "n", 9_990)), "live-remote");
        check("other host, on the edge", Some(beacon("there", "n", 9_400)), "live-remote");
        check("other host, a second older", Some(beacon("there", "n", 9_399)), "stale-remote");
        check("other host, in the future", Some(beacon("there", "n", 99_999)), "live-remote");
    }

    #[test]
    fn a_running_watcher_fences_row_by_row() {
        let check = |name: &str, text: Option<String>, nonce: &str, stands_down: bool| {
            let fence = fence(text.as_deref(), "here", nonce, Timestamp::from_secs(10_000), STALE);
            assert_eq!(matches!(fence, Fence::StandDown(_)), stands_down, "{name}");
        };
        check("no file", None, "mine", false);
        check("corrupt", Some("rubbish".into()), "mine", false);
        check("ours", Some(beacon("here", "mine", 9_990)), "mine", false);
        check("ours, host renamed", Some(beacon("there", "mine", 9_990)), "mine", false);
        check("other instance, same host", Some(beacon("here", "other", 9_990)), "mine", true);
        check("other instance, other host", Some(beacon("there", "other", 9_990)), "mine", true);
        check("other instance, stale", Some(beacon("there", "other", 1)), "mine", false);
        check("other instance, in the future", Some(beacon("there", "other", 99_999)), "mine", true);
        check("no nonce in it, other host", Some(beacon("there", "", 9_990)), "mine", true);
        check("no nonce in it, same host", Some(beacon("here", "", 9_990)), "mine", false);
        check("we have no nonce, other host", Some(beacon("there", "n", 9_990)), "", true);
    }

    #[test]
    fn a_beacon_reads_back() {
        let text = beacon("there", "abc123", 9_990);
        let parsed = Beacon::parse(&text).unwrap();
        assert_eq!((parsed.nonce.as_str(), parsed.at.secs(), parsed.pid_ns.as_str()), ("abc123", 9_990, "pid:[1]"));
        assert_eq!(parsed.render(&Now::fixed(parsed.at)), text);
    }
}
