//! The section at the foot of every emit: the dashboard's local stamp, or the operator's own status page.

use std::time::Duration;

use crate::logic::signal::{Section, SectionKind};
use crate::logic::snapshot::StateText;
use crate::logic::time::{Now, Timestamp};

/// Age of the last put from which the footer says that it knows nothing of the page itself.
const ADVISORY_AGE: Duration = Duration::from_secs(2 * 3600);

/// Which footer an emit carries (`status_surface.kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface<'a> {
    /// The overview dashboard.
    Dashboard,
    /// The operator's own page.
    External,
    /// A kind that nobody knows.
    Unknown(&'a str),
}

/// What the footer is made from.
#[derive(Clone, Copy, Debug)]
pub struct FooterFacts<'a> {
    /// `status_surface.kind`.
    pub surface: Surface<'a>,
    /// `dashboard-updated.ts`: the time of the last put.
    pub last_put: &'a StateText,
    /// Path of `status_surface.url_file`, if it is set.
    pub url_file: Option<&'a str>,
    /// The text of that file.
    pub url: &'a StateText,
    /// `status_surface.feed`, if it is set.
    pub feed: Option<&'a str>,
}

/// The one footer of an emit. It never pages.
pub fn footer(now: &Now, facts: &FooterFacts<'_>) -> Section {
    let (kind, lines) = match facts.surface {
        Surface::External => (SectionKind::StatusSurface, external(facts)),
        Surface::Dashboard => (SectionKind::Dashboard, dashboard(now, facts.last_put)),
        Surface::Unknown(kind) => {
            let mut lines = vec![
                format!(
                    "CONFIG ERROR: status_surface.kind '{}' is not a known kind (overview-dashboard | external).",
                    super::clean::label(kind)
                ),
                "Fix status_surface.kind in config/nexus.yml; until then the default footer stands here.".to_owned(),
            ];
            lines.extend(dashboard(now, facts.last_put));
            (SectionKind::Dashboard, lines)
        }
    };
    Section { kind, lines, commits: Vec::new(), pages: false, windows: Vec::new() }
}

/// The lines about the dashboard. They speak of a local stamp only, never of the page.
fn dashboard(now: &Now, last_put: &StateText) -> Vec<String> {
    let note = "(local stamp — when `ng dashboard put` last ran here)";
    let stamp = last_put.text().map(str::trim).filter(|text| !text.is_empty());
    let Some(stamp) = stamp else {
        let why = if matches!(last_put, StateText::Unreadable(_)) { "unknown, stamp unreadable" } else { "never" };
        return vec![format!("last put: {why} {note}")];
    };
    let Some(at) = Timestamp::parse_iso(stamp) else {
        return vec![format!("last put: unknown, stamp unreadable {note}")];
    };
    let mut lines = vec![format!("last put: {} {note}", super::clean::label(stamp))];
    if now.at.since(at) >= ADVISORY_AGE {
        lines.extend(
            [
                "(no put in > 2h. NOT a staleness check: nothing here reads the issue",
                " body, so the dashboard may be current, or stale, or edited elsewhere.",
                " To KNOW, read it: `monitor/ng dashboard get`.)",
            ]
            .map(str::to_owned),
        );
    }
    lines
}

/// The lines about the operator's own page.
fn external(facts: &FooterFacts<'_>) -> Vec<String> {
    let url = facts.url.text().and_then(|text| text.lines().next()).map(str::trim).filter(|line| !line.is_empty());
    let page = match (facts.url_file, url) {
        (None, _) => "(status_surface.url_file unset)".to_owned(),
        (Some(_), Some(url)) => super::clean::one_line(url, 200),
        (Some(path), None) => format!("(unreadable: {})", super::clean::one_line(path, 200)),
    };
    let mut lines =
        vec![format!("external page: {page} — operator-run; the overview dashboard is not maintained here.")];
    if let Some(feed) = facts.feed {
        lines.push(format!("landings feed: {}", super::clean::one_line(feed, 200)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(surface: Surface<'_>, put: &StateText, url_file: Option<&str>, url: &StateText) -> (String, Vec<String>) {
        let now = Now::fixed(Timestamp::parse_iso("2026-05-11T13:42:01-07:00").unwrap());
        let facts = FooterFacts { surface, last_put: put, url_file, url, feed: url_file.map(|_| "/feed.md") };
        let section = footer(&now, &facts);
        (super::super::sections::spec(section.kind).header(), section.lines)
    }

    fn text(text: &str) -> StateText {
        StateText::Text(text.to_owned())
    }

    #[test]
    fn a_recent_put_is_one_line() {
        let (header, lines) = check(Surface::Dashboard, &text("2026-05-11T13:00:00-07:00\n"), None, &StateText::Absent);
        assert_eq!(header, "--- dashboard ---");
        assert_eq!(
            lines,
            ["last put: 2026-05-11T13:00:00-07:00 (local stamp — when `ng dashboard put` last ran here)"]
        );
    }

    #[test]
    fn from_two_hours_on_the_advisory_says_what_it_does_not_know() {
        let at = |stamp: &str| check(Surface::Dashboard, &text(stamp), None, &StateText::Absent).1;
        assert_eq!(at("2026-05-11T11:42:02-07:00").len(), 1);
        let lines = at("2026-05-11T11:42:01-07:00");
        assert_eq!(
            lines[1..],
            [
                "(no put in > 2h. NOT a staleness check: nothing here reads the issue",
                " body, so the dashboard may be current, or stale, or edited elsewhere.",
                " To KNOW, read it: `monitor/ng dashboard get`.)",
            ]
        );
    }

    #[test]
    fn without_a_readable_stamp_nothing_is_claimed() {
        for (stamp, word) in [
            (StateText::Absent, "never"),
            (text("yesterday"), "unknown"),
            (StateText::Unreadable("x".into()), "unknown"),
        ] {
            let lines = check(Surface::Dashboard, &stamp, None, &StateText::Absent).1;
            assert_eq!(lines.len(), 1);
            assert!(lines[0].starts_with(&format!("last put: {word}")), "{lines:?}");
        }
    }

    #[test]
    fn an_external_page_stands_instead_and_never_names_a_put() {
        let external = |file, url: &StateText| check(Surface::External, &StateText::Absent, file, url);
        let (header, lines) = external(Some("/u"), &text("https://status.example\nmore\n"));
        assert_eq!(header, "--- status surface ---");
        assert_eq!(
            lines,
            [
                "external page: https://status.example — operator-run; the overview dashboard is not maintained here.",
                "landings feed: /feed.md",
            ]
        );
        assert!(external(None, &StateText::Absent).1[0].contains("(status_surface.url_file unset)"));
        assert!(external(Some("/u"), &StateText::Absent).1[0].contains("(unreadable: /u)"));
        assert!(!lines.join("\n").contains("put"));
    }

    #[test]
    fn an_unknown_kind_is_announced_above_the_default_lines() {
        let (header, lines) = check(Surface::Unknown("extrenal"), &StateText::Absent, None, &StateText::Absent);
        assert_eq!(header, "--- dashboard ---");
        assert_eq!(
            lines[0],
            "CONFIG ERROR: status_surface.kind 'extrenal' is not a known kind (overview-dashboard | external)."
        );
        assert!(lines[1].contains("config/nexus.yml"));
        assert!(lines[2].starts_with("last put: "));
    }
}
