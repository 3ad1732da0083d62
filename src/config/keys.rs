//! The one table of configuration keys. Defaults, checks, `nexus.example.yml` and `docs/configuration.md` come from it.
//!
//! Adding a key means one row here and a field of [`Settings`].

use std::time::Duration;

use super::error::nearest;
use super::resolved::{Settings, StatusSurface, ViGuard, Witnesses};
use super::value::{Kind, Unit};

/// One key of the configuration.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its full name, sections joined by dots.
    pub path: &'static str,
    /// The environment variable that wins over the file.
    pub env: &'static str,
    /// What a change needs to take effect.
    pub reload: Reload,
    /// What is accepted, the default, and where the value lands.
    pub kind: Kind,
    /// What it does, in a sentence.
    pub doc: &'static str,
}

/// What a change of a key needs to take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// Nothing but a reload of the file.
    Live,
    /// A window that is opened afterwards.
    NewWindows,
    /// A restart of the watcher.
    Restart,
}

impl Reload {
    /// The class as it is written in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::NewWindows => "new windows",
            Self::Restart => "restart",
        }
    }
}

/// What becomes of a key that is known but sets nothing here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A later version uses it.
    Later,
    /// It belongs to a part of the original tools that this project leaves out.
    Out,
}

/// A key, or all keys that begin alike, which the original tools know and this version does not use.
#[derive(Clone, Copy, Debug)]
pub struct Unused {
    /// Full name; with a `*` at the end, everything that begins like it.
    pub pattern: &'static str,
    /// What becomes of it.
    pub fate: Fate,
}

impl Unused {
    /// Whether this row speaks of that key; `a.*` speaks of the section `a` as well.
    pub fn covers(&self, path: &str) -> bool {
        match self.pattern.strip_suffix('*') {
            Some(start) => path.starts_with(start) || start.strip_suffix('.') == Some(path),
            None => path == self.pattern,
        }
    }
}

/// A key whose value in the example differs from the default that applies when the key is missing.
#[derive(Clone, Copy, Debug)]
pub struct TemplateException {
    /// Full name.
    pub path: &'static str,
    /// What applies when the file lacks the key.
    pub default: bool,
    /// What the example says.
    pub template: bool,
    /// What it does, in a sentence.
    pub doc: &'static str,
}

/// The keys where the example and the default differ, as in the original tools: an existing file without the key keeps
/// the default, a tree without a file of its own reads the example.
pub const TEMPLATE_EXCEPTIONS: &[TemplateException] = &[
    TemplateException {
        path: "monitor.cc_auto_update.enabled",
        default: false,
        template: true,
        doc: "Whether the agent program is updated once a day.",
    },
    TemplateException {
        path: "monitor.requests.enabled",
        default: true,
        template: false,
        doc: "Whether requests between workers are told.",
    },
];

const WITNESSES: &[&str] = &["hook", "transcript", "screen"];

/// Every key that sets something, by name.
pub const KEYS: &[Key] = &[
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
        path: "monitor.interval_seconds",
        env: "MONITOR_INTERVAL",
        reload: Reload::Live,
        kind: Kind::Whole { default: 60, range: 1..=86_400, unit: Unit::Seconds, set: |s, n| s.interval = secs(n) },
        doc: "How often the report to the orchestrator is composed.",
    },
    Key {
        path: "monitor.orchestrator.command",
        env: "MONITOR_ORCHESTRATOR_COMMAND",
        reload: Reload::NewWindows,
        kind: Kind::Text { default: "", may_be_empty: true, set: |s, text| s.orchestrator_command = text },
        doc: "Command that `scripts/run.sh` starts in the target window; empty starts nothing, since an agent costs money.",
    },
    Key {
        path: "monitor.paste.settle_seconds",
        env: "MONITOR_PASTE_SETTLE_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole { default: 5, range: 1..=60, unit: Unit::Seconds, set: |s, n| s.paste_settle = secs(n) },
        doc: "How long pasted text may take to show in the pane.",
    },
    Key {
        path: "monitor.paste.vi_guard",
        env: "MONITOR_PASTE_VI_GUARD",
        reload: Reload::Live,
        kind: Kind::Word { default: "auto", words: &["auto", "always", "never"], set: set_vi_guard },
        doc: "When `i` and backspace are sent before a paste: where the program did not ask for framed pastes, always, or never.",
    },
    Key {
        path: "monitor.paste.witnesses",
        env: "MONITOR_PASTE_WITNESSES",
        reload: Reload::Live,
        kind: Kind::List { default: WITNESSES, words: WITNESSES, may_be_empty: false, set: set_witnesses },
        doc: "Which proofs that a report arrived are looked for: the prompt hook, the session transcript, the screen.",
    },
    Key {
        path: "monitor.paste_confirm_timeout_seconds",
        env: "MONITOR_PASTE_CONFIRM_TIMEOUT_SECONDS",
        reload: Reload::Live,
        kind: Kind::Whole { default: 20, range: 1..=600, unit: Unit::Seconds, set: |s, n| s.paste_confirm = secs(n) },
        doc: "How long a proof is looked for that a report arrived.",
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
        path: "monitor.scheduler.async_timeout_floor_seconds",
        env: "MONITOR_SCHEDULER_ASYNC_TIMEOUT_FLOOR",
        reload: Reload::Restart,
        kind: Kind::Whole { default: 300, range: 0..=86_400, unit: Unit::Seconds, set: |s, n| s.hang_floor = secs(n) },
        doc: "Least time before a running task counts as hung; 0 switches that off.",
    },
    Key {
        path: "monitor.scheduler.backoff_cap",
        env: "MONITOR_SCHEDULER_BACKOFF_CAP",
        reload: Reload::Restart,
        kind: Kind::Whole { default: 2, range: 0..=10, unit: Unit::None, set: |s, n| s.hang_backoff_cap = u32_of(n) },
        doc: "How many times the time allowed to a task that hung is doubled at most.",
    },
    Key {
        path: "monitor.scheduler.log_max_bytes",
        env: "MONITOR_SCHEDULER_LOG_MAX_BYTES",
        reload: Reload::Restart,
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
        reload: Reload::Restart,
        kind: Kind::Whole { default: 10, range: 1..=300, unit: Unit::Seconds, set: |s, n| s.max_sleep = secs(n) },
        doc: "Longest sleep of the scheduler when nothing is due.",
    },
    Key {
        path: "monitor.services_window",
        env: "MONITOR_SERVICES_WINDOW",
        reload: Reload::Restart,
        kind: Kind::Text { default: "services", may_be_empty: false, set: |s, text| s.services_window = text },
        doc: "Name of the window where services run; it is never a worker.",
    },
    Key {
        path: "monitor.snapshot.git_enabled",
        env: "MONITOR_SNAPSHOT_GIT_ENABLED",
        reload: Reload::Live,
        kind: Kind::Switch { default: false, set: |s, on| s.git_enabled = on },
        doc: "Whether the local snapshot looks at the work trees of workers.",
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
        doc: "Sessions to watch; none means the one that holds the target window, `*` means all.",
    },
    Key {
        path: "monitor.tmux.sockets",
        env: "NEXUS_TMUX_SOCKET",
        reload: Reload::Restart,
        kind: Kind::List { default: &[], words: &[], may_be_empty: true, set: |s, list| s.tmux_sockets = list },
        doc: "Sockets of the tmux servers to watch, as paths or names for `tmux -L`; none means the user's own server.",
    },
    Key {
        path: "monitor.watcher.heartbeat_tick_seconds",
        env: "MONITOR_HEARTBEAT_TICK_SECONDS",
        reload: Reload::Restart,
        kind: Kind::Whole { default: 20, range: 1..=300, unit: Unit::Seconds, set: |s, n| s.heartbeat_tick = secs(n) },
        doc: "How often the watcher writes its own heartbeat.",
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

/// Every key that is known and not used, by name.
pub const UNUSED: &[Unused] = &[
    Unused { pattern: "github.*", fate: Fate::Later },
    Unused { pattern: "lit.*", fate: Fate::Out },
    Unused { pattern: "monitor.agent_dead_threshold", fate: Fate::Later },
    Unused { pattern: "monitor.agent_missing_respawn_delay*", fate: Fate::Later },
    Unused { pattern: "monitor.alert_emit_cooldown_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.background_*", fate: Fate::Later },
    Unused { pattern: "monitor.bot_mentions_enabled", fate: Fate::Later },
    Unused { pattern: "monitor.cc_auto_update.*", fate: Fate::Later },
    Unused { pattern: "monitor.cc_update.*", fate: Fate::Later },
    Unused { pattern: "monitor.clone_drift.*", fate: Fate::Later },
    Unused { pattern: "monitor.cockpit_window", fate: Fate::Later },
    Unused { pattern: "monitor.comment_surface.*", fate: Fate::Later },
    Unused { pattern: "monitor.cross_repo_surface", fate: Fate::Later },
    Unused { pattern: "monitor.deliveries.*", fate: Fate::Later },
    Unused { pattern: "monitor.emit_history_retention_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.full_state.*", fate: Fate::Later },
    Unused { pattern: "monitor.full_state_emit_interval_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.functional_max_emits", fate: Fate::Later },
    Unused { pattern: "monitor.functional_sla_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.graphql.*", fate: Fate::Later },
    Unused { pattern: "monitor.graphql_*", fate: Fate::Later },
    Unused { pattern: "monitor.mentions.*", fate: Fate::Later },
    Unused { pattern: "monitor.mentions_enabled", fate: Fate::Later },
    Unused { pattern: "monitor.notifications_log_max_bytes", fate: Fate::Later },
    Unused { pattern: "monitor.operator_engaged_*", fate: Fate::Later },
    Unused { pattern: "monitor.orchestrator_*", fate: Fate::Later },
    Unused { pattern: "monitor.over_limit.*", fate: Fate::Later },
    Unused { pattern: "monitor.pane_cache.*", fate: Fate::Later },
    Unused { pattern: "monitor.paste_confirm_grace_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.pending_decisions.*", fate: Fate::Later },
    Unused { pattern: "monitor.processed_comments_max_entries", fate: Fate::Later },
    Unused { pattern: "monitor.reemit_*", fate: Fate::Later },
    Unused { pattern: "monitor.remote.*", fate: Fate::Out },
    Unused { pattern: "monitor.render_seconds_per_window", fate: Fate::Later },
    Unused { pattern: "monitor.reports_roll.*", fate: Fate::Later },
    Unused { pattern: "monitor.requests.*", fate: Fate::Later },
    Unused { pattern: "monitor.respawn_*", fate: Fate::Later },
    Unused { pattern: "monitor.rofs_alarm.*", fate: Fate::Later },
    Unused { pattern: "monitor.service_health.*", fate: Fate::Later },
    Unused { pattern: "monitor.skeptic.*", fate: Fate::Later },
    Unused { pattern: "monitor.snapshot.git_timeout*", fate: Fate::Later },
    Unused { pattern: "monitor.snapshot.reports_timeout*", fate: Fate::Later },
    Unused { pattern: "monitor.startup_render_*", fate: Fate::Later },
    Unused { pattern: "monitor.version_restart.*", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.api_error_backoff_minutes", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.auth_hold.*", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.auto_unstick", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.dead_threshold_floor_margin_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.delivery_fail_limit", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.idle_pane_override_max", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.liveness_log_throttle_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.on_dialog", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.operator_alert.*", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.orchestrator_dead_threshold_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.paste_response_grace_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.probe_model", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.ratelimit_*", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.self_heal_enabled", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.stale_paste_ceiling_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.turn_failure_gate_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.unstick_window_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.worker_askuq_grace_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher_supervisor.*", fate: Fate::Later },
    Unused { pattern: "monitor.worker_health_slack_seconds", fate: Fate::Later },
    Unused { pattern: "nexus.node_module", fate: Fate::Later },
    Unused { pattern: "nexus.root", fate: Fate::Later },
    Unused { pattern: "notebooks.*", fate: Fate::Out },
    Unused { pattern: "notifications.*", fate: Fate::Later },
    Unused { pattern: "remote.*", fate: Fate::Out },
];

/// The key with this full name.
pub fn by_path(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// What becomes of a key that is known and not used; `None` if it is not such a key.
pub fn fate(path: &str) -> Option<Fate> {
    UNUSED.iter().find(|unused| unused.covers(path)).map(|unused| unused.fate)
}

/// Whether a name is that of a section: other keys are below it.
pub fn is_section(path: &str) -> bool {
    let names = KEYS.iter().map(|key| key.path).chain(UNUSED.iter().map(|unused| unused.pattern));
    names.into_iter().any(|name| name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// The known key that is probably meant: of the same name in another section, with a unit behind it, or spelt nearly
/// alike.
pub fn nearest_key(path: &str) -> Option<&'static str> {
    let used = || KEYS.iter().map(|key| key.path);
    let known = used()
        .chain(TEMPLATE_EXCEPTIONS.iter().map(|exception| exception.path))
        .chain(UNUSED.iter().map(|unused| unused.pattern).filter(|pattern| !pattern.ends_with('*')));
    let sections = ["github", "monitor", "nexus", "notifications", "status_surface"];
    let name = last_name(path);
    if let Some(key) = used().find(|key| last_name(key) == name) {
        return Some(key);
    }
    let is_longer = |key: &&str| key.strip_prefix(path).is_some_and(|rest| rest.starts_with('_'));
    if let Some(key) = known.clone().find(is_longer) {
        return Some(key);
    }
    let candidates: Vec<&'static str> = if path.contains('.') { known.collect() } else { sections.to_vec() };
    nearest(path, candidates).or_else(|| {
        let by_name = nearest(name, used().map(last_name))?;
        used().find(|key| last_name(key) == by_name)
    })
}

/// The part of a key after the last dot.
fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn usize_of(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn u32_of(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[expect(clippy::needless_pass_by_value, reason = "the table's setters own their value")]
fn set_witnesses(settings: &mut Settings, list: Vec<String>) {
    let has = |word: &str| list.iter().any(|item| item == word);
    settings.witnesses = Witnesses { hook: has("hook"), transcript: has("transcript"), screen: has("screen") };
}

fn set_vi_guard(settings: &mut Settings, word: &str) {
    settings.vi_guard = match word {
        "always" => ViGuard::Always,
        "never" => ViGuard::Never,
        _ => ViGuard::Auto,
    };
}

fn set_status_surface(settings: &mut Settings, kind: String) {
    settings.status_surface = match kind.as_str() {
        "overview-dashboard" => StatusSurface::Dashboard,
        "external" => StatusSurface::External,
        _ => StatusSurface::Unknown(kind),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_variables_are_unique_and_keys_are_sorted() {
        let paths: Vec<_> = KEYS.iter().map(|key| key.path).collect();
        assert!(paths.is_sorted_by(|a, b| a < b), "{paths:?}");
        let mut variables: Vec<_> = KEYS.iter().map(|key| key.env).collect();
        variables.sort_unstable();
        assert!(variables.is_sorted_by(|a, b| a < b), "{variables:?}");
        let unused: Vec<_> = UNUSED.iter().map(|unused| unused.pattern).collect();
        assert!(unused.is_sorted_by(|a, b| a < b), "{unused:?}");
    }

    #[test]
    fn no_key_is_both_used_and_unused() {
        for key in KEYS {
            assert_eq!(fate(key.path), None, "{}", key.path);
        }
    }

    #[test]
    fn every_default_is_within_its_own_bounds() {
        for key in KEYS {
            match &key.kind {
                Kind::Whole { default, range, .. } => assert!(range.contains(default), "{}", key.path),
                Kind::Word { default, words, .. } => assert!(words.contains(default), "{}", key.path),
                Kind::List { default, words, may_be_empty, .. } => {
                    assert!(*may_be_empty || !default.is_empty(), "{}", key.path);
                    assert!(words.is_empty() || default.iter().all(|word| words.contains(word)), "{}", key.path);
                }
                Kind::Text { default, may_be_empty, .. } => {
                    assert!(*may_be_empty || !default.is_empty(), "{}", key.path);
                }
                Kind::Path { .. } | Kind::Switch { .. } => {}
            }
        }
    }

    #[test]
    fn every_doc_is_one_sentence() {
        for doc in KEYS.iter().map(|key| key.doc).chain(TEMPLATE_EXCEPTIONS.iter().map(|exception| exception.doc)) {
            assert!(doc.ends_with('.') && !doc.contains('|') && !doc.contains('\n'), "{doc}");
        }
    }
}
