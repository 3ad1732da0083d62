//! Checked settings: what the rest of the program acts on. Units are in the types; nothing here is a raw string that
//! still needs judging.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which proofs of arrival are looked for (`monitor.paste.witnesses`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witnesses {
    /// The prompt hook's receipt.
    pub hook: bool,
    /// The session transcript.
    pub transcript: bool,
    /// The captured pane.
    pub screen: bool,
}

/// When `i` and `BSpace` are sent before a paste (`monitor.paste.vi_guard`, `contracts.md` §9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViGuard {
    /// Where the program did not ask for framed pastes.
    Auto,
    /// Before every paste.
    Always,
    /// Never.
    Never,
}

/// Which footer the emit carries (`status_surface.kind`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusSurface {
    /// The overview dashboard.
    Dashboard,
    /// The operator's own page.
    External,
    /// A kind that nobody knows; announced in the footer.
    Unknown(String),
}

/// Everything that the watcher acts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Root of the nexus: holds `monitor/`, `config/`, `reports/`.
    pub root: PathBuf,
    /// The state directory (`NEXUS_STATE_DIR`, else `<root>/monitor/.state`).
    pub state_dir: PathBuf,
    /// The configuration file that was read, if any.
    pub config_file: Option<PathBuf>,
    /// `monitor.agents.dir`: the operator's profiles of agents; `config/agents.d` where it is not set.
    pub agents_dir: Option<PathBuf>,
    /// `monitor.interval_seconds`: cadence of `compose_emit`.
    pub interval: Duration,
    /// `monitor.target_window`.
    pub target_window: String,
    /// `monitor.services_window`.
    pub services_window: String,
    /// `monitor.tmux.sockets`: paths or `-L` names; empty means the user's server.
    pub tmux_sockets: Vec<String>,
    /// `monitor.tmux.sessions`: empty means the session that holds the target window; `*` means all.
    pub tmux_sessions: Vec<String>,
    /// `monitor.idle_threshold_seconds`.
    pub idle_threshold: Duration,
    /// `monitor.idle_close_hours`.
    pub idle_close: Duration,
    /// `monitor.idle_pool_spawn_grace_seconds`.
    pub spawn_grace: Duration,
    /// `monitor.retain_ttl_seconds`.
    pub retain_ttl: Duration,
    /// `monitor.report_min_chars`.
    pub report_min_chars: usize,
    /// `monitor.heartbeat_staleness_seconds`: how long an agent's hook heartbeat counts as fresh.
    pub hook_fresh: Duration,
    /// After which time without new text a pane that works is stale; zero means never.
    pub stale_after: Duration,
    /// `monitor.emit_cooldown_seconds`: cooldown of a decision row or comment that was delivered.
    pub emit_cooldown: Duration,
    /// `monitor.emit_dedup_max_quiet_seconds`.
    pub dedup_max_quiet: Duration,
    /// `monitor.emit_dedup_ring_size`.
    pub dedup_ring: usize,
    /// `monitor.emit_section_max_lines`.
    pub section_max_lines: usize,
    /// `monitor.full_state_emit_interval_seconds`: cadence of `full_state_snap`; zero switches it off.
    pub full_state_every: Duration,
    /// `monitor.full_state.safety_floor_seconds`.
    pub full_state_floor: Duration,
    /// `monitor.full_state.idle_backoff_enabled`.
    pub full_state_backs_off: bool,
    /// `monitor.full_state.idle_backoff_max_seconds`.
    pub full_state_cap: Duration,
    /// `monitor.full_state.restat_windows`.
    pub full_state_re_stat: bool,
    /// `monitor.watcher_supervisor.enabled`: whether a supervisor that is not armed is reported.
    pub supervisor_reminder: bool,
    /// `monitor.watcher_supervisor.heartbeat_stale_seconds`.
    pub supervisor_stale: Duration,
    /// `monitor.diff_retention_days`.
    pub archive_keep: Duration,
    /// `monitor.diff_max_files`.
    pub archive_max_files: usize,
    /// `monitor.diff_prune_max_per_run`.
    pub archive_prune_max: usize,
    /// `monitor.state_log_max_bytes`.
    pub state_log_max_bytes: u64,
    /// `monitor.scheduler.log_max_bytes`.
    pub scheduler_log_max_bytes: u64,
    /// `monitor.scheduler.max_sleep_seconds`.
    pub max_sleep: Duration,
    /// `monitor.scheduler.async_timeout_floor_seconds`; zero switches the hang watchdog off.
    pub hang_floor: Duration,
    /// `monitor.scheduler.backoff_cap`: largest doubling of the hang budget.
    pub hang_backoff_cap: u32,
    /// `monitor.watcher.heartbeat_tick_seconds`.
    pub heartbeat_tick: Duration,
    /// `monitor.instance_heartbeat_staleness_seconds`.
    pub beacon_stale: Duration,
    /// `monitor.snapshot.git_enabled`.
    pub git_enabled: bool,
    /// `monitor.paste.witnesses`.
    pub witnesses: Witnesses,
    /// `monitor.paste.vi_guard`.
    pub vi_guard: ViGuard,
    /// `monitor.paste.max_bytes`: what is longer is cut, with a pointer to the whole.
    pub paste_max_bytes: usize,
    /// `monitor.watcher.delivery_fail_limit`: failed deliveries in a row at which the watcher starts itself anew.
    pub delivery_fail_limit: u32,
    /// `monitor.watcher.self_heal_enabled`: whether it does.
    pub self_heal: bool,
    /// `monitor.paste.settle_seconds`: how long the pasted text may take to show.
    pub paste_settle: Duration,
    /// `monitor.paste_confirm_timeout_seconds`: how long a proof of arrival is looked for.
    pub paste_confirm: Duration,
    /// `monitor.orchestrator.command`: what `scripts/run.sh` starts in the target window; empty means nothing.
    pub orchestrator_command: String,
    /// `status_surface.kind`.
    pub status_surface: StatusSurface,
    /// `status_surface.url_file`.
    pub status_url_file: Option<PathBuf>,
    /// `status_surface.feed`.
    pub status_feed: Option<PathBuf>,
}

impl Settings {
    /// Every default, for this root.
    ///
    /// Source: the defaults of [`super::keys::all`]. What stands below is a blank that every row of the table fills.
    pub fn defaults(root: &Path) -> Self {
        let mut settings = Self {
            root: root.to_owned(),
            state_dir: root.join("monitor/.state"),
            config_file: None,
            agents_dir: None,
            interval: Duration::ZERO,
            target_window: String::new(),
            services_window: String::new(),
            tmux_sockets: Vec::new(),
            tmux_sessions: Vec::new(),
            idle_threshold: Duration::ZERO,
            idle_close: Duration::ZERO,
            spawn_grace: Duration::ZERO,
            retain_ttl: Duration::ZERO,
            report_min_chars: 0,
            hook_fresh: Duration::ZERO,
            stale_after: Duration::ZERO,
            emit_cooldown: Duration::ZERO,
            dedup_max_quiet: Duration::ZERO,
            dedup_ring: 0,
            section_max_lines: 0,
            full_state_every: Duration::ZERO,
            full_state_floor: Duration::ZERO,
            full_state_backs_off: false,
            full_state_cap: Duration::ZERO,
            full_state_re_stat: false,
            supervisor_reminder: false,
            supervisor_stale: Duration::ZERO,
            archive_keep: Duration::ZERO,
            archive_max_files: 0,
            archive_prune_max: 0,
            state_log_max_bytes: 0,
            scheduler_log_max_bytes: 0,
            max_sleep: Duration::ZERO,
            hang_floor: Duration::ZERO,
            hang_backoff_cap: 0,
            heartbeat_tick: Duration::ZERO,
            beacon_stale: Duration::ZERO,
            git_enabled: false,
            witnesses: Witnesses { hook: false, transcript: false, screen: false },
            vi_guard: ViGuard::Auto,
            paste_max_bytes: 0,
            delivery_fail_limit: 0,
            self_heal: false,
            paste_settle: Duration::ZERO,
            paste_confirm: Duration::ZERO,
            orchestrator_command: String::new(),
            status_surface: StatusSurface::Dashboard,
            status_url_file: None,
            status_feed: None,
        };
        for key in super::keys::all() {
            key.kind.apply(&mut settings, key.kind.default_value());
        }
        settings
    }
}
