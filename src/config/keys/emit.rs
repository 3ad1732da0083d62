//! Keys of the report: when it is composed, what it holds, how long it is kept.

use crate::config::resolved::{Settings, StatusSurface};
use crate::config::value::{Kind, Unit};

use super::{Key, Reload, secs, usize_of};

/// The rows, by name.
pub(super) const KEYS: &[Key] = &[
    Key {
        path: "monitor.diff_max_files",
        env: "MONITOR_DIFF_MAX_FILES",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 20_000,
            range: 1..=10_000_000,
            unit: Unit::None,
            set: |s, n| s.archive_max_files = usize_of(n),
        },
        doc: "Most archived reports that are kept.",
    },
    Key {
        path: "monitor.diff_prune_max_per_run",
        env: "MONITOR_DIFF_PRUNE_MAX_PER_RUN",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 5000,
            range: 1..=10_000_000,
            unit: Unit::None,
            set: |s, n| s.archive_prune_max = usize_of(n),
        },
        doc: "Most archived reports that one clean-up deletes.",
    },
    Key {
        path: "monitor.diff_retention_days",
        env: "DIFF_RETENTION_DAYS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 7,
            range: 1..=3650,
            unit: Unit::Days,
            set: |s, n| s.archive_keep = secs(n * 86_400),
        },
        doc: "How long archived reports are kept.",
    },
    Key {
        path: "monitor.emit_cooldown_seconds",
        env: "MONITOR_EMIT_COOLDOWN_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 300,
            range: 0..=86_400,
            unit: Unit::Seconds,
            set: |s, n| s.emit_cooldown = secs(n),
        },
        doc: "How long a decision that was delivered is not told again.",
    },
    Key {
        path: "monitor.emit_dedup_max_quiet_seconds",
        env: "MONITOR_EMIT_DEDUP_MAX_QUIET_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 86_400,
            range: 60..=31_536_000,
            unit: Unit::Seconds,
            set: |s, n| s.dedup_max_quiet = secs(n),
        },
        doc: "How long an unchanged report stays untold at most.",
    },
    Key {
        path: "monitor.emit_dedup_ring_size",
        env: "MONITOR_EMIT_DEDUP_RING_SIZE",
        reload: Reload::Live,
        kind: Kind::Whole { default: 8, range: 1..=1000, unit: Unit::None, set: |s, n| s.dedup_ring = usize_of(n) },
        doc: "How many of the last reports a report is compared with.",
    },
    Key {
        path: "monitor.emit_section_max_lines",
        env: "MONITOR_EMIT_SECTION_MAX_LINES",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 50,
            range: 1..=10_000,
            unit: Unit::None,
            set: |s, n| s.section_max_lines = usize_of(n),
        },
        doc: "Most lines of one section of a report; the rest is counted.",
    },
    Key {
        path: "monitor.full_state.idle_backoff_enabled",
        env: "MONITOR_FULL_STATE_IDLE_BACKOFF_ENABLED",
        reload: Reload::Live,
        kind: Kind::Switch { default: true, set: |s, on| s.full_state_backs_off = on },
        doc: "Whether a full snapshot that says the same is repeated ever more seldom.",
    },
    Key {
        path: "monitor.full_state.idle_backoff_max_seconds",
        env: "MONITOR_FULL_STATE_IDLE_BACKOFF_MAX_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 86_400,
            range: 0..=31_536_000,
            unit: Unit::Seconds,
            set: |s, n| s.full_state_cap = secs(n),
        },
        doc: "Longest time between two full snapshots that say the same.",
    },
    Key {
        path: "monitor.full_state.restat_windows",
        env: "MONITOR_FULL_STATE_RESTAT_WINDOWS",
        reload: Reload::Live,
        kind: Kind::Switch { default: true, set: |s, on| s.full_state_re_stat = on },
        doc: "Whether windows that closed since a full snapshot was made are dropped from it before it is told.",
    },
    Key {
        path: "monitor.full_state.safety_floor_seconds",
        env: "MONITOR_FULL_STATE_SAFETY_FLOOR_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 900,
            range: 0..=31_536_000,
            unit: Unit::Seconds,
            set: |s, n| s.full_state_floor = secs(n),
        },
        doc: "Least time between two full snapshots that say the same.",
    },
    Key {
        path: "monitor.full_state_emit_interval_seconds",
        env: "MONITOR_FULL_STATE_EMIT_INTERVAL_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 600,
            range: 0..=31_536_000,
            unit: Unit::Seconds,
            set: |s, n| s.full_state_every = secs(n),
        },
        doc: "How often a full snapshot of all workers is considered; 0 switches it off.",
    },
    Key {
        path: "monitor.interval_seconds",
        env: "MONITOR_INTERVAL",
        reload: Reload::Live,
        kind: Kind::Whole { default: 60, range: 1..=86_400, unit: Unit::Seconds, set: |s, n| s.interval = secs(n) },
        doc: "How often the report to the orchestrator is composed.",
    },
    Key {
        path: "monitor.watcher_supervisor.enabled",
        env: "MONITOR_WATCHER_SUPERVISOR_ENABLED",
        reload: Reload::Live,
        kind: Kind::Switch { default: true, set: |s, on| s.supervisor_reminder = on },
        doc: "Whether the report reminds of a watcher supervisor that is not armed; switch it off where something else restarts the watcher.",
    },
    Key {
        path: "monitor.watcher_supervisor.heartbeat_stale_seconds",
        env: "MONITOR_WATCHER_SUPERVISOR_HEARTBEAT_STALE_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole {
            default: 90,
            range: 1..=86_400,
            unit: Unit::Seconds,
            set: |s, n| s.supervisor_stale = secs(n),
        },
        doc: "Age of the supervisor's heartbeat at which it counts as not armed.",
    },
    Key {
        path: "status_surface.feed",
        env: "MONITOR_STATUS_SURFACE_FEED",
        reload: Reload::Live,
        kind: Kind::Path { set: |s, path| s.status_feed = path },
        doc: "File in which your own status page lists what landed.",
    },
    Key {
        path: "status_surface.kind",
        env: "MONITOR_STATUS_SURFACE_KIND",
        reload: Reload::Live,
        kind: Kind::Text { default: "overview-dashboard", may_be_empty: false, set: set_status_surface },
        doc: "Which footer a report has: `overview-dashboard`, or `external` for a page of your own; another word is announced in the footer.",
    },
    Key {
        path: "status_surface.url_file",
        env: "MONITOR_STATUS_SURFACE_URL_FILE",
        reload: Reload::Live,
        kind: Kind::Path { set: |s, path| s.status_url_file = path },
        doc: "File whose first line is the address of your own status page.",
    },
];

fn set_status_surface(settings: &mut Settings, kind: String) {
    settings.status_surface = match kind.as_str() {
        "overview-dashboard" => StatusSurface::Dashboard,
        "external" => StatusSurface::External,
        _ => StatusSurface::Unknown(kind),
    };
}
