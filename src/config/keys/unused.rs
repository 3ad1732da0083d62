//! Keys that the original tools know and that set nothing here, so that their files load.

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
    Unused { pattern: "monitor.full_state.read_failed_persist_polls", fate: Fate::Later },
    Unused { pattern: "monitor.full_state.reset_stamp_on_emit", fate: Fate::Later },
    Unused { pattern: "monitor.full_state.snap_interval_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.full_state.stage_max_age_seconds", fate: Fate::Later },
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
    Unused { pattern: "monitor.watcher.idle_pane_override_max", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.liveness_log_throttle_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.on_dialog", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.operator_alert.*", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.orchestrator_dead_threshold_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.paste_response_grace_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.probe_model", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.ratelimit_*", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.stale_paste_ceiling_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.turn_failure_gate_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.unstick_window_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher.worker_askuq_grace_seconds", fate: Fate::Later },
    Unused { pattern: "monitor.watcher_supervisor.loop_*", fate: Fate::Later },
    Unused { pattern: "monitor.worker_health_slack_seconds", fate: Fate::Later },
    Unused { pattern: "nexus.node_module", fate: Fate::Later },
    Unused { pattern: "nexus.root", fate: Fate::Later },
    Unused { pattern: "notebooks.*", fate: Fate::Out },
    Unused { pattern: "notifications.*", fate: Fate::Later },
    Unused { pattern: "remote.*", fate: Fate::Out },
];

/// What becomes of a key that is known and not used; `None` if it is not such a key.
pub fn fate(path: &str) -> Option<Fate> {
    UNUSED.iter().find(|unused| unused.covers(path)).map(|unused| unused.fate)
}
