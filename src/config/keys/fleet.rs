//! Keys of what is watched: servers, sessions and the windows that have a part of their own.

use crate::config::value::Kind;

use super::{Key, Reload};

/// The rows, by name.
pub(super) const KEYS: &[Key] = &[
    Key {
        path: "monitor.agents.dir",
        env: "MONITOR_AGENTS_DIR",
        reload: Reload::Live,
        kind: Kind::Path { set: |s, path| s.agents_dir = path },
        doc: "Directory with your own profiles of agents and amendments to the built-in ones (`ng agents`); empty means `config/agents.d`.",
    },
    Key {
        path: "monitor.orchestrator.command",
        env: "MONITOR_ORCHESTRATOR_COMMAND",
        reload: Reload::NewWindows,
        kind: Kind::Text { default: "", may_be_empty: true, set: |s, text| s.orchestrator_command = text },
        doc: "Command that `scripts/run.sh` starts in the target window; empty starts nothing, since an agent costs money.",
    },
    Key {
        path: "monitor.services_window",
        env: "MONITOR_SERVICES_WINDOW",
        reload: Reload::Restart,
        kind: Kind::Text { default: "services", may_be_empty: false, set: |s, text| s.services_window = text },
        doc: "Name of the window where services run; it is never a worker.",
    },
    Key {
        path: "monitor.target_window",
        env: "MONITOR_TARGET",
        reload: Reload::Restart,
        kind: Kind::Text { default: "orchestrator", may_be_empty: false, set: |s, text| s.target_window = text },
        doc: "Name of the window of the orchestrator agent, which gets the reports.",
    },
    Key {
        path: "monitor.tmux.sessions",
        env: "MONITOR_TMUX_SESSIONS",
        reload: Reload::Restart,
        kind: Kind::List { default: &[], words: &[], may_be_empty: true, set: |s, list| s.tmux_sessions = list },
        doc: "Sessions to watch; none means those that hold the target window, on any server, `*` means all.",
    },
    Key {
        path: "monitor.tmux.sockets",
        env: "NEXUS_TMUX_SOCKET",
        reload: Reload::Restart,
        kind: Kind::List { default: &[], words: &[], may_be_empty: true, set: |s, list| s.tmux_sockets = list },
        doc: "Sockets of the tmux servers to watch, as paths or names for `tmux -L`; none means the user's own server. Ids of all but the first have the position before them, from 0 (`1/%5`).",
    },
];
