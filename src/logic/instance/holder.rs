//! What `nexus-instance.lock` says of its holder. It explains a refusal; whether there *is* a holder is told by the
//! lock alone.

use std::fmt::Write as _;

use super::records::{fields, one_line};

/// The process that took the lock, as it describes itself. Empty means not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its process id, in its own pid namespace.
    pub pid: Option<u32>,
    /// Name of its host.
    pub host: String,
    /// The host's boot id: another one means that the holder died with the machine.
    pub boot_id: String,
    /// Its pid namespace, as `/proc/self/ns/pid` names it.
    pub pid_ns: String,
    /// `yes` if it runs in a sandbox that we know, else `no`.
    pub sandbox: String,
    /// Its tmux socket.
    pub tmux: String,
    /// The account that it runs under.
    pub user: String,
    /// The nexus that it watches.
    pub nexus_root: String,
    /// When it took the lock, ISO 8601.
    pub started_at: String,
}

/// Who a recorded holder is, seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assessment {
    /// Same host, same boot: a peer.
    LiveLocal,
    /// Same host, earlier boot: died with the machine.
    StaleReboot,
    /// Another host: live if that host is up.
    LiveRemote,
    /// The text does not say.
    Unknown,
}

impl Assessment {
    /// The printed word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::LiveLocal => "live-local",
            Self::StaleReboot => "stale-reboot",
            Self::LiveRemote => "live-remote",
            Self::Unknown => "unknown",
        }
    }
}

impl Holder {
    /// The body of the lock file: one `key: value` line each.
    pub fn render(&self) -> String {
        let pid = self.pid.map(|pid| pid.to_string()).unwrap_or_default();
        let lines = [
            ("pid", &pid),
            ("host", &self.host),
            ("boot_id", &self.boot_id),
            ("pid_ns", &self.pid_ns),
            ("sandbox", &self.sandbox),
            ("tmux", &self.tmux),
            ("user", &self.user),
            ("nexus_root", &self.nexus_root),
            ("started_at", &self.started_at),
        ];
        let mut text = String::new();
        for (key, value) in lines {
            let _infallible = writeln!(text, "{key}: {}", one_line(value));
        }
        text
    }

    /// Reads what there is; the body is written by others and may be anything.
    pub fn parse(text: &str) -> Self {
        let mut holder = Self::default();
        for (key, value) in fields(text, ':') {
            let value = one_line(value);
            match key {
                "pid" => holder.pid = value.parse().ok(),
                "host" => holder.host = value,
                "boot_id" => holder.boot_id = value,
                "pid_ns" => holder.pid_ns = value,
                "sandbox" => holder.sandbox = value,
                "tmux" => holder.tmux = value,
                "user" => holder.user = value,
                "nexus_root" => holder.nexus_root = value,
                "started_at" => holder.started_at = value,
                _ => {}
            }
        }
        holder
    }

    /// Whether it certainly runs in another pid namespace than `pid_ns`: its pid means nothing there.
    pub fn is_in_other_namespace(&self, pid_ns: &str) -> bool {
        !self.pid_ns.is_empty() && !pid_ns.is_empty() && self.pid_ns != pid_ns
    }

    /// Who this holder is to a process on `host` in this boot.
    pub fn assess(&self, host: &str, boot_id: &str) -> Assessment {
        if self.host.is_empty() || host.is_empty() {
            Assessment::Unknown
        } else if self.host != host {
            Assessment::LiveRemote
        } else if self.boot_id.is_empty() || boot_id.is_empty() {
            Assessment::Unknown
        } else if self.boot_id == boot_id {
            Assessment::LiveLocal
        } else {
            Assessment::StaleReboot
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder() -> Holder {
        Holder {
            pid: Some(4711),
            host: "here".into(),
            boot_id: "b1".into(),
            pid_ns: "pid:[4026531836]".into(),
            sandbox: "no".into(),
            tmux: "/tmp/tmux-1000/default".into(),
            user: "op".into(),
            nexus_root: "/srv/nexus".into(),
            started_at: "2026-10-05T09:00:00-07:00".into(),
        }
    }

    #[test]
    fn the_body_reads_back_and_a_value_forges_no_line() {
        assert_eq!(Holder::parse(&holder().render()), holder());
        let hostile = Holder { nexus_root: "/x\nhost: elsewhere".into(), ..holder() };
        assert_eq!(Holder::parse(&hostile.render()).host, "here");
    }

    #[test]
    fn another_namespace_is_told_only_where_both_are_known() {
        for (recorded, ours, expected) in [
            ("pid:[1]", "pid:[2]", true),
            ("pid:[1]", "pid:[1]", false),
            ("", "pid:[1]", false),
            ("pid:[1]", "", false),
        ] {
            let holder = Holder { pid_ns: recorded.into(), ..holder() };
            assert_eq!(holder.is_in_other_namespace(ours), expected, "{recorded:?} {ours:?}");
        }
    }

    #[test]
    fn rubbish_is_no_holder() {
        for text in ["", "\u{0}\u{1}", "pid: many\nhost", "4711"] {
            assert_eq!(Holder::parse(text), Holder::default(), "{text:?}");
        }
    }

    #[test]
    fn holders_are_assessed_row_by_row() {
        use Assessment::{LiveLocal, LiveRemote, StaleReboot, Unknown};
        for (host, boot, expected) in [
            ("here", "b1", LiveLocal),
            ("here", "b0", StaleReboot),
            ("there", "b1", LiveRemote),
            ("there", "", LiveRemote),
            ("here", "", Unknown),
            ("", "b1", Unknown),
        ] {
            let recorded = Holder { host: host.into(), boot_id: boot.into(), ..holder() };
            assert_eq!(recorded.assess("here", "b1"), expected, "{host:?} {boot:?}");
        }
        assert_eq!(holder().assess("", ""), Unknown, "we do not know where we are");
    }
}
