//! The one table of emit sections: header, footer, what a section means for the reason and for the cut.

use crate::logic::signal::SectionKind;

/// How a section is printed and treated.
#[derive(Clone, Copy, Debug)]
pub struct SectionSpec {
    /// Which section.
    pub kind: SectionKind,
    /// The words between the dashes of its header.
    pub title: &'static str,
    /// The line under its body, if it has one.
    pub footer: Option<&'static str>,
    /// Whether its body is cut at `monitor.emit_section_max_lines`.
    pub capped: bool,
    /// Whether the dedup ring leaves it alone, since its rows have a cooldown of their own.
    pub own_cooldown: bool,
    /// The reason label of an emit in which only this section pages.
    pub sole_reason: Option<&'static str>,
}

/// Every section in the order of the page (`contracts.md` §4).
pub const SECTIONS: &[SectionSpec] = &[
    plain(SectionKind::WatcherRevived, "watcher revived (was down)"),
    plain(SectionKind::ArmSupervisor, "arm watcher supervisor"),
    plain(SectionKind::InstallFailure, "install failure"),
    plain(SectionKind::HostingMigration, "watcher hosting migration"),
    alone(SectionKind::ComponentDrift, "component drift (restart needed)", "poll-component-drift"),
    alone(SectionKind::ServiceHealth, "service health", "poll-service-health"),
    alone(SectionKind::AgentUpdate, "claude code update available", "poll-cc-update"),
    alone(SectionKind::ReportsArchived, "reports archived", "poll-reports-roll"),
    SectionSpec { capped: true, ..plain(SectionKind::LocalChanges, "local state changes") },
    SectionSpec { own_cooldown: true, ..plain(SectionKind::Comments, "eligible github comments") },
    SectionSpec {
        footer: Some("(silenced after emit; agents will re-ring on the next event)"),
        ..plain(SectionKind::Bells, "standing bells")
    },
    SectionSpec { own_cooldown: true, ..plain(SectionKind::Decisions, "pending decisions") },
    SectionSpec { own_cooldown: true, ..plain(SectionKind::StalledFanOuts, "stalled fan-outs") },
    plain(SectionKind::FleetWatch, "fleet watch"),
    SectionSpec { own_cooldown: true, ..alone(SectionKind::Requests, "requests", "poll-requests") },
    SectionSpec {
        footer: Some("(emitted on transitions only; see skills/nexus.window-cleanup)"),
        ..plain(SectionKind::IdleWorkers, "idle workers")
    },
    SectionSpec {
        own_cooldown: true,
        footer: Some("(full snapshot; transitions only between snapshots)"),
        ..alone(SectionKind::WorkspaceSnapshot, "workspace snapshot", "poll-full-state")
    },
    plain(SectionKind::Dashboard, "dashboard"),
    plain(SectionKind::StatusSurface, "status surface"),
];

/// A section without peculiarities.
const fn plain(kind: SectionKind, title: &'static str) -> SectionSpec {
    SectionSpec { kind, title, footer: None, capped: false, own_cooldown: false, sole_reason: None }
}

/// A section with a reason label of its own.
const fn alone(kind: SectionKind, title: &'static str, reason: &'static str) -> SectionSpec {
    SectionSpec { sole_reason: Some(reason), ..plain(kind, title) }
}

/// The row of this kind.
pub fn spec(kind: SectionKind) -> &'static SectionSpec {
    SECTIONS.iter().find(|spec| spec.kind == kind).expect("a test checks that every kind has its row")
}

impl SectionSpec {
    /// The header line: `--- standing bells ---`.
    pub fn header(&self) -> String {
        format!("--- {} ---", self.title)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_row_in_the_order_of_the_page() {
        let kinds: Vec<_> = SECTIONS.iter().map(|spec| spec.kind).collect();
        let mut sorted = kinds.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(kinds, sorted);
        assert_eq!(kinds.first(), Some(&SectionKind::WatcherRevived));
        assert_eq!(kinds.last(), Some(&SectionKind::StatusSurface));
        // The enum's discriminants count up from zero, so the last one tells how many kinds there are.
        assert_eq!(kinds.len(), SectionKind::StatusSurface as usize + 1);
    }

    #[test]
    fn headers_have_the_words_of_the_specification() {
        let headers: Vec<_> = SECTIONS.iter().map(SectionSpec::header).collect();
        for header in [
            "--- watcher revived (was down) ---",
            "--- arm watcher supervisor ---",
            "--- install failure ---",
            "--- watcher hosting migration ---",
            "--- component drift (restart needed) ---",
            "--- service health ---",
            "--- claude code update available ---",
            "--- reports archived ---",
            "--- local state changes ---",
            "--- eligible github comments ---",
            "--- standing bells ---",
            "--- pending decisions ---",
            "--- requests ---",
            "--- idle workers ---",
            "--- workspace snapshot ---",
            "--- dashboard ---",
            "--- status surface ---",
        ] {
            assert!(headers.iter().any(|found| found == header), "{header}");
        }
    }

    #[test]
    fn only_local_changes_are_cut() {
        let cut: Vec<_> = SECTIONS.iter().filter(|spec| spec.capped).map(|spec| spec.kind).collect();
        assert_eq!(cut, [SectionKind::LocalChanges]);
    }
}
