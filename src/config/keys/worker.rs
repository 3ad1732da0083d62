//! Keys of workers: when one counts as idle, and what is told of it.

use crate::config::value::{Kind, Unit};

use super::{Key, Reload, secs, usize_of};

/// The rows, by name.
pub(super) const KEYS: &[Key] = &[
    Key {
        path: "monitor.heartbeat_staleness_seconds",
        env: "MONITOR_HEARTBEAT_STALENESS_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole { default: 30, range: 1..=86_400, unit: Unit::Seconds, set: |s, n| s.hook_fresh = secs(n) },
        doc: "How long the heartbeat of an agent's hook counts as fresh.",
    },
    Key {
        path: "monitor.idle_close_hours",
        env: "MONITOR_IDLE_CLOSE_HOURS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 24,
            range: 1..=8760,
            unit: Unit::Hours,
            set: |s, n| s.idle_close = secs(n * 3600),
        },
        doc: "Age after which an idle worker is proposed for closing.",
    },
    Key {
        path: "monitor.idle_pool_spawn_grace_seconds",
        env: "MONITOR_IDLE_POOL_SPAWN_GRACE_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole { default: 120, range: 0..=86_400, unit: Unit::Seconds, set: |s, n| s.spawn_grace = secs(n) },
        doc: "How long a freshly spawned worker is not reported as idle.",
    },
    Key {
        path: "monitor.idle_threshold_seconds",
        env: "MONITOR_IDLE_THRESHOLD_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 60,
            range: 1..=86_400,
            unit: Unit::Seconds,
            set: |s, n| s.idle_threshold = secs(n),
        },
        doc: "How long a worker must be quiet before it counts as idle.",
    },
    Key {
        path: "monitor.report_min_chars",
        env: "MONITOR_REPORT_MIN_CHARS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 500,
            range: 0..=1_000_000,
            unit: Unit::None,
            set: |s, n| s.report_min_chars = usize_of(n),
        },
        doc: "Least length of the body of a finished report.",
    },
    Key {
        path: "monitor.retain_ttl_seconds",
        env: "MONITOR_RETAIN_TTL_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 86_400,
            range: 0..=31_536_000,
            unit: Unit::Seconds,
            set: |s, n| s.retain_ttl = secs(n),
        },
        doc: "How long a request to keep a window holds.",
    },
    Key {
        path: "monitor.snapshot.git_enabled",
        env: "MONITOR_SNAPSHOT_GIT_ENABLED",
        reload: Reload::Live,
        kind: Kind::Switch { default: false, set: |s, on| s.git_enabled = on },
        doc: "Whether the local snapshot looks at the work trees of workers.",
    },
    Key {
        path: "monitor.stale_seconds",
        env: "MONITOR_STALE_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 1800,
            range: 0..=604_800,
            unit: Unit::Seconds,
            set: |s, n| s.stale_after = secs(n),
        },
        doc: "Age of the last new text from which a working pane is marked `stale`; 0 never marks one.",
    },
];
