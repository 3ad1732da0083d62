//! Keys of the watcher itself: its scheduler, its heartbeat, its logs.

use crate::config::value::{Kind, Unit};

use super::{Key, Reload, secs, u32_of};

/// The rows, by name.
pub(super) const KEYS: &[Key] = &[
    Key {
        path: "monitor.instance_heartbeat_staleness_seconds",
        env: "NEXUS_INSTANCE_HEARTBEAT_STALENESS",
        reload: Reload::Restart,
        kind: Kind::Whole {
            default: 600,
            range: 2..=86_400,
            unit: Unit::Seconds,
            set: |s, n| s.beacon_stale = secs(n),
        },
        doc: "Age of the watcher's heartbeat at which it counts as down.",
    },
    Key {
        path: "monitor.scheduler.async_timeout_floor_seconds",
        env: "MONITOR_SCHEDULER_ASYNC_TIMEOUT_FLOOR",
        reload: Reload::Live,
        kind: Kind::Whole { default: 300, range: 0..=86_400, unit: Unit::Seconds, set: |s, n| s.hang_floor = secs(n) },
        doc: "Least time before a running task counts as hung; 0 switches that off.",
    },
    Key {
        path: "monitor.scheduler.backoff_cap",
        env: "MONITOR_SCHEDULER_BACKOFF_CAP",
        reload: Reload::Live,
        kind: Kind::Whole { default: 2, range: 0..=10, unit: Unit::None, set: |s, n| s.hang_backoff_cap = u32_of(n) },
        doc: "How many times the time allowed to a task that hung is doubled at most.",
    },
    Key {
        path: "monitor.scheduler.log_max_bytes",
        env: "MONITOR_SCHEDULER_LOG_MAX_BYTES",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 52_428_800,
            range: 65_536..=10_737_418_240,
            unit: Unit::Bytes,
            set: |s, n| s.scheduler_log_max_bytes = n,
        },
        doc: "Size at which the scheduler's log is rotated.",
    },
    Key {
        path: "monitor.scheduler.max_sleep_seconds",
        env: "MONITOR_SCHEDULER_MAX_SLEEP",
        reload: Reload::Live,
        kind: Kind::Whole { default: 10, range: 1..=300, unit: Unit::Seconds, set: |s, n| s.max_sleep = secs(n) },
        doc: "Longest sleep of the scheduler when nothing is due.",
    },
    Key {
        path: "monitor.state_log_max_bytes",
        env: "MONITOR_STATE_LOG_MAX_BYTES",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 10_485_760,
            range: 65_536..=10_737_418_240,
            unit: Unit::Bytes,
            set: |s, n| s.state_log_max_bytes = n,
        },
        doc: "Size at which a log in the state directory is rotated.",
    },
    Key {
        path: "monitor.watcher.delivery_fail_limit",
        env: "MONITOR_DELIVERY_FAIL_LIMIT",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 3,
            range: 1..=1000,
            unit: Unit::None,
            set: |s, n| s.delivery_fail_limit = u32_of(n),
        },
        doc: "Failed deliveries in a row after which the watcher alerts and starts itself anew.",
    },
    Key {
        path: "monitor.watcher.heartbeat_tick_seconds",
        env: "MONITOR_HEARTBEAT_TICK_SECONDS",
        reload: Reload::Restart,
        kind: Kind::Whole { default: 20, range: 1..=300, unit: Unit::Seconds, set: |s, n| s.heartbeat_tick = secs(n) },
        doc: "How often the watcher writes its own heartbeat.",
    },
    Key {
        path: "monitor.watcher.self_heal_enabled",
        env: "MONITOR_SELF_HEAL_ENABLED",
        reload: Reload::Live,
        kind: Kind::Switch { default: true, set: |s, on| s.self_heal = on },
        doc: "Whether the watcher starts itself anew when its deliveries fail, at most every ten minutes and three times an hour.",
    },
];
