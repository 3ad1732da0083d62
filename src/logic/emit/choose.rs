//! Says whether there is something worth an emit, from what the producers staged, and which reason it carries.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::logic::signal::{Section, SectionKind, StagedSignal};
use crate::logic::time::{Now, Timestamp, age_text};

use super::sections::spec;

/// What is added to two intervals before staged data counts as missing: a run may itself take a while.
pub const STAGED_SLACK: Duration = Duration::from_secs(30);

/// The oldest staged data of a producer with this cadence that may still be told.
pub fn staged_max_age(every: Duration) -> Duration {
    every.saturating_mul(2).saturating_add(STAGED_SLACK)
}

/// Whether data staged at that time may be told.
pub fn is_fresh(now: &Now, staged_at: Timestamp, max_age: Duration) -> bool {
    now.at.since(staged_at) <= max_age
}

/// The sections that may be told now.
///
/// Shape:  `max_ages` names each producer with the age from which its data counts as missing. `told` says, for a
///         producer whose sections were delivered, when that was: what it staged up to then and would retire by a
///         delivery may be retired already, so its next run is waited for.
pub fn tellable(
    now: &Now,
    staged: &BTreeMap<&'static str, StagedSignal>,
    max_ages: &[(&'static str, Duration)],
    told: &BTreeMap<&'static str, Timestamp>,
) -> Vec<(&'static str, Section)> {
    let mut sections = Vec::new();
    for (name, max_age) in max_ages {
        let Some(signal) = staged.get(name).filter(|signal| is_fresh(now, signal.at, *max_age)) else { continue };
        let retired = told.get(name).is_some_and(|told| signal.at.secs() <= told.secs());
        let open = signal.sections.iter().filter(|section| !retired || section.commits.is_empty());
        sections.extend(open.map(|section| (*name, section.clone())));
    }
    sections
}

/// The reason label of a poll with these sections (`protocol-facts` §4.12); `None` if nothing pages.
pub fn reason(sections: &[Section]) -> Option<&'static str> {
    let mut paging: Vec<SectionKind> = sections.iter().filter(|section| section.pages).map(|s| s.kind).collect();
    paging.sort_unstable();
    paging.dedup();
    if let [only] = paging.as_slice()
        && let Some(reason) = spec(*only).sole_reason
    {
        return Some(reason);
    }
    let is_change = |kind: &SectionKind| matches!(kind, SectionKind::LocalChanges | SectionKind::Bells);
    match paging.as_slice() {
        [] => None,
        kinds if kinds.iter().any(is_change) => Some("poll"),
        _ => Some("poll-resurface"),
    }
}

/// What follows `workspace: ` in an emit.
///
/// Shape: the counts; `STALE (as of 3m ago) <counts>` if the classifier has not run in time; `UNAVAILABLE (<why>)`
///        if it has not run at all. `PARTIAL` is the classifier's own word.
pub fn workspace(now: &Now, staged: Option<&StagedSignal>, max_age: Duration) -> String {
    let counts = staged.and_then(|signal| Some((signal.at, signal.workspace.as_deref()?)));
    match counts {
        None => "UNAVAILABLE (the workers have not been classified yet)".to_owned(),
        Some((at, counts)) if is_fresh(now, at, max_age) => counts.to_owned(),
        Some((at, counts)) => format!("STALE (as of {} ago) {counts}", age_text(now.at.since(at))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::signal::Commit;

    fn section(kind: SectionKind, pages: bool) -> Section {
        Section { kind, lines: vec![], commits: vec![], pages, windows: vec![] }
    }

    #[test]
    fn the_reason_follows_from_what_pages() {
        use SectionKind as K;
        for (kinds, expected) in [
            (vec![], None),
            (vec![K::LocalChanges], Some("poll")),
            (vec![K::Bells, K::Decisions], Some("poll")),
            (vec![K::Decisions], Some("poll-resurface")),
            (vec![K::IdleWorkers], Some("poll-resurface")),
            (vec![K::Comments, K::Requests], Some("poll-resurface")),
            (vec![K::Requests], Some("poll-requests")),
            (vec![K::WorkspaceSnapshot], Some("poll-full-state")),
            (vec![K::ServiceHealth], Some("poll-service-health")),
            (vec![K::ComponentDrift], Some("poll-component-drift")),
            (vec![K::AgentUpdate], Some("poll-cc-update")),
            (vec![K::ReportsArchived], Some("poll-reports-roll")),
            (vec![K::ServiceHealth, K::LocalChanges], Some("poll")),
        ] {
            let sections: Vec<_> = kinds.iter().map(|kind| section(*kind, true)).collect();
            assert_eq!(reason(&sections), expected, "{kinds:?}");
        }
        assert_eq!(reason(&[section(K::IdleWorkers, false)]), None);
    }

    fn staged_at(secs: i64) -> BTreeMap<&'static str, StagedSignal> {
        let mut retiring = section(SectionKind::Bells, true);
        retiring.commits.push(Commit::RemoveState { path: "x".into() });
        let standing = section(SectionKind::ArmSupervisor, true);
        let at = Timestamp::from_secs(secs);
        BTreeMap::from([("p", StagedSignal { at, sections: vec![retiring, standing], ..StagedSignal::default() })])
    }

    #[test]
    fn old_staged_data_counts_as_missing() {
        let now = Now::fixed(Timestamp::from_secs(1000));
        let max_age = staged_max_age(Duration::from_secs(30));
        let told = BTreeMap::new();
        assert_eq!(tellable(&now, &staged_at(910), &[("p", max_age)], &told).len(), 2);
        assert_eq!(tellable(&now, &staged_at(909), &[("p", max_age)], &told).len(), 0);
    }

    #[test]
    fn what_a_delivery_may_have_retired_waits_for_the_next_run() {
        let now = Now::fixed(Timestamp::from_secs(1000));
        let max_age = Duration::from_secs(90);
        let told = BTreeMap::from([("p", Timestamp::from_secs(990))]);
        let kinds = |secs| -> Vec<_> {
            tellable(&now, &staged_at(secs), &[("p", max_age)], &told).iter().map(|(_, s)| s.kind).collect()
        };
        assert_eq!(kinds(990), [SectionKind::ArmSupervisor]);
        assert_eq!(kinds(991), [SectionKind::Bells, SectionKind::ArmSupervisor]);
    }

    #[test]
    fn the_workspace_line_says_how_good_it_is() {
        let now = Now::fixed(Timestamp::from_secs(1000));
        let line = |at: Option<i64>| {
            let signal = at.map(|secs| StagedSignal {
                at: Timestamp::from_secs(secs),
                workspace: Some("1 busy".into()),
                ..StagedSignal::default()
            });
            workspace(&now, signal.as_ref(), Duration::from_secs(90))
        };
        assert_eq!(line(Some(950)), "1 busy");
        assert_eq!(line(Some(820)), "STALE (as of 3m ago) 1 busy");
        assert!(line(None).starts_with("UNAVAILABLE ("));
    }
}
