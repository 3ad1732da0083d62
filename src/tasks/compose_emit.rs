//! `compose_emit`: composes the report if any task staged a signal. The daemon archives and delivers it.
//!
//! Called twice it says the same again: an emit with the hash of one that is under way is the same emit, and what a
//! delivery may have retired is not told from data that is older than it.

use std::time::Duration;

use super::snapshot_local::BASELINE_FILE;
use super::{Class, Need, Out, TASKS, Task, TaskSpec, full_state_snap};
use crate::config::resolved::{Settings, StatusSurface};
use crate::logic::action::Action;
use crate::logic::emit::bells::absorb_clearing;
use crate::logic::emit::choose::{gaps, reason, staged_max_age, tellable, workspace};
use crate::logic::emit::compose::{Draft, compose};
use crate::logic::emit::dedup::{
    Delivered, RING_FILE, Ring, STANDING_FILE, is_within, only_stands, quiet_period, standing_hash,
};
use crate::logic::emit::footer::{FooterFacts, Surface, footer};
use crate::logic::emit::full_state::{self, CANONICAL_FILE, re_stat, seconds};
use crate::logic::emit::notices::{REVIVED_FILE, SUPERVISOR_FILE, arm_supervisor, install_failure, revived};
use crate::logic::emit::retired::Retired;
use crate::logic::hook::asked_since;
use crate::logic::signal::{Commit, Section, SectionKind};
use crate::logic::snapshot::{Snapshot, StateText};
use crate::logic::time::Now;

/// When the dashboard was last put, relative to the state directory.
const DASHBOARD_FILE: &str = "dashboard-updated.ts";

/// The producers that the startup sweep waits for.
const SWEPT: [&str; 4] = ["bell_windows", "idle_section", "pending_decisions", "snapshot_local"];

/// The producer of the roster that the `workspace:` line counts.
const ROSTER: &str = "idle_section";

/// The other producers that stage something at each run: one that has not run in time is named.
const EXPECTED: [&str; 3] = ["bell_windows", "pending_decisions", "snapshot_local"];

/// How long the startup sweep waits for them.
const SWEEP_WAIT: Duration = Duration::from_secs(20);

/// Cadence while it waits, and how long that lasts when nobody renews it.
const SWEEP_EVERY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// When the notifications on the `workspace:` line were last told, in seconds.
const PRELUDE_FILE: &str = "last-prelude.ts";

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "compose_emit",
    every: |settings| settings.interval,
    class: Class::Medium,
    needs: &[
        Need::Staged,
        Need::StatusPage,
        Need::File(DASHBOARD_FILE),
        Need::File(RING_FILE),
        Need::File(STANDING_FILE),
        Need::File(BASELINE_FILE),
        Need::File(CANONICAL_FILE),
        Need::File(PRELUDE_FILE),
        Need::File(REVIVED_FILE),
        Need::InstallFailures,
        Need::Notifications,
        Need::Stamp(SUPERVISOR_FILE),
        Need::Tmux,
    ],
    doc: "Composes the report if any task staged a signal.",
    build: || Box::new(ComposeEmit::default()),
};

/// Memory of the task.
#[derive(Default)]
struct ComposeEmit {
    /// When the first run was; the startup sweep waits from then on.
    started: Option<Duration>,
    /// Whether the startup sweep is over.
    swept: bool,
    /// What deliveries may have retired.
    retired: Retired,
    /// The hash that was last noted as held back.
    noted: Option<String>,
}

impl ComposeEmit {
    /// Whether the startup sweep still has to wait for a producer.
    fn must_wait(&mut self, now: &Now, snap: &Snapshot) -> bool {
        let started = *self.started.get_or_insert(now.uptime);
        let all = SWEPT.iter().all(|name| snap.staged.contains_key(name));
        !all && now.uptime.saturating_sub(started) < SWEEP_WAIT
    }
}

/// Each producer, and the age from which its data counts as missing.
fn max_ages(settings: &Settings) -> Vec<(&'static str, Duration)> {
    TASKS.iter().map(|task| (task.name, staged_max_age((task.every)(settings)))).collect()
}

/// Drops from a staged full snapshot the windows that are gone by now.
fn re_stat_snapshot(now: &Now, snap: &Snapshot, told: &mut Vec<(&'static str, Section)>) {
    let roster = snap.staged.get(full_state_snap::SPEC.name).and_then(|staged| staged.roster.as_ref());
    let (Some(view), Some(roster)) = (snap.tmux.got(), roster) else { return };
    let left = re_stat(roster, view);
    if left == **roster {
        return;
    }
    let remade = full_state::section(now.at, &left, full_state_snap::last_told(snap));
    told.retain_mut(|(_, section)| {
        if section.kind != SectionKind::WorkspaceSnapshot {
            return true;
        }
        remade.clone().map(|remade| *section = remade).is_some()
    });
}

/// The sections about the watcher itself; what happened once rides the startup sweep only.
fn notices(now: &Now, settings: &Settings, snap: &Snapshot, sweeping: bool) -> Vec<Section> {
    let mut sections = Vec::new();
    if sweeping {
        sections.extend(snap.files.get(REVIVED_FILE).and_then(revived));
        sections.extend(install_failure(&snap.install_failures));
    }
    if settings.supervisor_reminder
        && let Some(heartbeat) = snap.stamps.get(SUPERVISOR_FILE)
    {
        sections.extend(arm_supervisor(now, heartbeat, settings.supervisor_stale));
    }
    sections
}

/// The footer, by the settings.
fn page_footer(now: &Now, settings: &Settings, snap: &Snapshot) -> Section {
    let surface = match &settings.status_surface {
        StatusSurface::Dashboard => Surface::Dashboard,
        StatusSurface::External => Surface::External,
        StatusSurface::Unknown(kind) => Surface::Unknown(kind),
    };
    let shown = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let (url_file, feed) = (shown(&settings.status_url_file), shown(&settings.status_feed));
    let facts = FooterFacts {
        surface,
        last_put: snap.files.get(DASHBOARD_FILE).unwrap_or(&StateText::Absent),
        url_file: url_file.as_deref(),
        url: &snap.status_page,
        feed: feed.as_deref(),
    };
    footer(now, &facts)
}

/// What follows `workspace: `.
fn prelude(now: &Now, snap: &Snapshot, max_ages: &[(&'static str, Duration)]) -> String {
    let roster = snap.staged.get(ROSTER).and_then(|staged| staged.roster.as_deref());
    let max_age = max_ages.iter().find(|(name, _)| *name == ROSTER).map_or(Duration::ZERO, |(_, age)| *age);
    let asked = asked_since(&snap.notifications, snap.files.get(PRELUDE_FILE).and_then(seconds));
    workspace(now, roster, max_age, &asked, &gaps(now, &snap.staged, max_ages, &EXPECTED))
}

impl Task for ComposeEmit {
    fn decide(&mut self, now: &Now, settings: &Settings, snap: &Snapshot, out: &mut Out) {
        // The sweep is over when something of this run has arrived, or when there was nothing to tell.
        self.swept |= snap.told;
        let sweeping = !self.swept;
        if sweeping && self.must_wait(now, snap) {
            let (every, lasting) = SWEEP_EVERY;
            out.actions.push(Action::Hurry { task: SPEC.name, every, lasting });
            return;
        }
        if snap.nonce.is_empty() {
            // Without a nonce of its own an emit could not be proven to have arrived.
            return;
        }
        let text = |name: &str| snap.files.get(name).and_then(StateText::text);
        let ring = Ring::parse(text(RING_FILE).unwrap_or(""));
        let max_ages = max_ages(settings);
        let mut told = tellable(now, &snap.staged, &max_ages, self.retired.until(now, &ring));
        if settings.full_state_re_stat {
            re_stat_snapshot(now, snap, &mut told);
        }
        let mut producers: Vec<&'static str> = told.iter().map(|(name, _)| *name).collect();
        producers.dedup();
        let mut sections: Vec<_> = told.into_iter().map(|(_, section)| section).collect();
        sections.extend(notices(now, settings, snap, sweeping));
        let Some(poll_reason) = reason(&sections) else {
            self.swept = true;
            return;
        };
        let quiet =
            if sweeping { None } else { quiet_period(&sections, settings.dedup_max_quiet, settings.emit_cooldown) };
        let stood = Ring::parse(text(STANDING_FILE).unwrap_or(""));
        let standing = standing_hash(&sections);
        let alone = standing.as_ref().filter(|_| only_stands(&sections)).and_then(|hash| stood.last(hash));
        absorb_clearing(&mut sections, BASELINE_FILE, text(BASELINE_FILE));
        let mut commits = Vec::new();
        if let Some(hash) = standing {
            let text = stood.with(Delivered { at: now.at, hash }, settings.dedup_ring);
            commits.push(Commit::WriteState { path: STANDING_FILE.into(), text });
        }
        let counted = format!("{}.{:03}\n", now.at.secs(), now.at.millis().rem_euclid(1000));
        commits.push(Commit::WriteState { path: PRELUDE_FILE.into(), text: counted });
        let emit = compose(
            now,
            &Draft {
                reason: if sweeping { "startup-sweep" } else { poll_reason },
                nonce: &snap.nonce,
                repeat_of: snap.repeat_of.as_ref(),
                workspace: &prelude(now, snap, &max_ages),
                sections,
                footer: page_footer(now, settings, snap),
                section_max_lines: settings.section_max_lines,
                commits,
            },
        );
        let told_at = ring.last(&emit.stable_hash).max(alone);
        if let (Some(quiet), Some(last)) = (quiet, told_at)
            && is_within(now.at, last, quiet)
        {
            if self.noted.as_ref() != Some(&emit.stable_hash) {
                out.actions.push(Action::Note(format!("held back an emit that says what the one of {last} said")));
                self.noted = Some(emit.stable_hash);
            }
            return;
        }
        self.noted = None;
        self.retired.remember(&emit.stable_hash, now.at, producers);
        out.actions.push(Action::Deliver(Box::new(emit)));
    }
}

#[cfg(test)]
mod tests;
