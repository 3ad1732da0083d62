//! Says whether there is something worth an emit, from what the producers staged, and which reason it carries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use crate::logic::signal::{Section, SectionKind, StagedSignal};
use crate::logic::time::{Now, Timestamp, age_text};
use crate::logic::worker::roster::Roster;
use crate::logic::worker::workspace::counts;

use super::sections::spec;

/// The least that is added to an interval before staged data counts as missing: a run may itself take a while.
pub const STAGED_SLACK: Duration = Duration::from_secs(30);

/// The oldest staged data of a producer with this cadence that may still be told: half an interval overdue (ADR 0014).
pub fn staged_max_age(every: Duration) -> Duration {
    let overdue = every.checked_div(2).unwrap_or_default();
    every.saturating_add(overdue.max(STAGED_SLACK))
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
///        if it has not run at all. `PARTIAL` is the counts' own word. `gaps` stand behind it.
pub fn workspace(
    now: &Now,
    roster: Option<&Roster>,
    max_age: Duration,
    notified: &BTreeSet<String>,
    gaps: &[String],
) -> String {
    let mut line = match roster {
        None => "UNAVAILABLE (the workers have not been classified yet)".to_owned(),
        Some(roster) if is_fresh(now, roster.at, max_age) => counts(roster, notified),
        Some(roster) => {
            format!("STALE (as of {} ago) {}", age_text(now.at.since(roster.at)), counts(roster, notified))
        }
    };
    if !gaps.is_empty() {
        let _infallible = write!(line, " ({})", gaps.join("; "));
    }
    line
}

/// What an emit may lack although it looks whole, because a producer has not run in time.
///
/// Shape: `STALE: bell_windows as of 4m ago`, `UNAVAILABLE: bell_windows` for one that has never run.
pub fn gaps(
    now: &Now,
    staged: &BTreeMap<&'static str, StagedSignal>,
    max_ages: &[(&'static str, Duration)],
    expected: &[&'static str],
) -> Vec<String> {
    let gap = |name: &&'static str| {
        let (_, max_age) = max_ages.iter().find(|(known, _)| known == name)?;
        match staged.get(name) {
            None => Some(format!("UNAVAILABLE: {name}")),
            Some(signal) if is_fresh(now, signal.at, *max_age) => None,
            Some(signal) => Some(format!("STALE: {name} as of {} ago", age_text(now.at.since(signal.at)))),
        }
    };
    expected.iter().filter_map(gap).collect()
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
        assert_eq!(tellable(&now, &staged_at(940), &[("p", max_age)], &told).len(), 2);
        assert_eq!(tellable(&now, &staged_at(939), &[("p", max_age)], &told).len(), 0);
    }

    #[test]
    fn data_may_be_overdue_by_half_an_interval_or_by_the_slack() {
        for (every, max_age) in [(2, 32), (10, 40), (30, 60), (60, 90), (600, 900), (86_400, 129_600)] {
            assert_eq!(staged_max_age(Duration::from_secs(every)), Duration::from_secs(max_age), "{every}");
        }
    }

    #[test]
    fn what_did_not_run_in_time_is_named() {
        let now = Now::fixed(Timestamp::from_secs(1000));
        let max_ages = [("p", Duration::from_secs(60)), ("q", Duration::from_secs(60))];
        let check = |secs, expected: &[&'static str], found: &[&str]| {
            assert_eq!(gaps(&now, &staged_at(secs), &max_ages, expected), found);
        };
        check(940, &["p"], &[]);
        check(760, &["p"], &["STALE: p as of 4m ago"]);
        check(940, &["p", "q"], &["UNAVAILABLE: q"]);
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
        let line = |at: Option<i64>, gaps: &[&str]| {
            let roster = at.map(|secs| Roster { at: Timestamp::from_secs(secs), ..Roster::default() });
            let gaps: Vec<String> = gaps.iter().map(|gap| (*gap).to_owned()).collect();
            workspace(&now, roster.as_ref(), Duration::from_secs(90), &BTreeSet::new(), &gaps)
        };
        assert!(line(Some(950), &[]).starts_with("0 busy | 0 idle |"), "{}", line(Some(950), &[]));
        assert!(line(Some(820), &[]).starts_with("STALE (as of 3m ago) 0 busy |"));
        assert!(line(None, &[]).starts_with("UNAVAILABLE ("));
        assert!(
            line(Some(950), &["STALE: p as of 4m ago", "UNAVAILABLE: q"])
                .ends_with(" awaiting-input (STALE: p as of 4m ago; UNAVAILABLE: q)")
        );
    }
}
