//! Sections about the watcher's own hosting, from files that others leave in the state directory.
//!
//! What happened once (a revival, a failed installation) rides the startup sweep; the delivery removes its file. What
//! stands (no supervisor) is told as long as it stands, in words that stay the same, so that the dedup ring bounds it.

use std::time::Duration;

use crate::logic::signal::{Commit, Section, SectionKind};
use crate::logic::snapshot::{FileStamp, InstallFailure, StateText};
use crate::logic::time::{Now, Timestamp, age_text};

use super::clean::{label, one_line};

/// What whoever revived the watcher left: lines `key=value`.
pub const REVIVED_FILE: &str = "watcher-revived";

/// Touched by the supervisor at each of its looks.
pub const SUPERVISOR_FILE: &str = "watcher-supervisor-heartbeat";

/// What the name of a failed installation's file begins with; seconds since 1970 follow.
const INSTALL_FAILED: &str = "local-claude-install-failed.";

/// Failed installations that are shown; older ones are counted.
const MAX_FAILURES: usize = 3;

/// Last lines shown of what a failed installation said.
const MAX_FAILURE_LINES: usize = 20;

/// Characters of a value.
const MAX_VALUE_CHARS: usize = 200;

/// When the installation of this file failed; `None` for any other file.
pub fn install_failed_at(name: &str) -> Option<Timestamp> {
    let digits = name.strip_prefix(INSTALL_FAILED)?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some(Timestamp::from_secs(digits.parse().ok().filter(|_| plain)?))
}

/// That the watcher was down and who revived it; `None` without a marker.
pub fn revived(marker: &StateText) -> Option<Section> {
    let mut lines = vec!["This watcher was down and has been revived; nothing was watched meanwhile.".to_owned()];
    match marker {
        StateText::Absent => return None,
        StateText::Unreadable(why) => lines.push(format!("why: the marker can't be read ({})", value(why))),
        StateText::Text(text) => {
            let field = |key: &str| {
                let found = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
                found.map(value).filter(|found| !found.is_empty())
            };
            let or_unknown = |key: &str| field(key).unwrap_or_else(|| "unknown".to_owned());
            let downtime = field("downtime_estimate_s").and_then(|secs| secs.parse().ok());
            let downtime = downtime.map_or("unknown".to_owned(), |secs| age_text(Duration::from_secs(secs)));
            lines.push(format!("why: {}", or_unknown("reason")));
            lines.push(format!("down for: {downtime} (estimate); noticed: {}", or_unknown("detected_at")));
            lines.push(format!("revived by: {}", or_unknown("restarted_by")));
        }
    }
    lines.push(
        "This report tells what stands now. Its log is in monitor/.state/logs; `ng watcher-status` says how it is."
            .into(),
    );
    Some(Section {
        kind: SectionKind::WatcherRevived,
        lines,
        commits: vec![Commit::RemoveState { path: REVIVED_FILE.into() }],
        pages: true,
        windows: Vec::new(),
    })
}

/// That nobody supervises the watcher; `None` while the supervisor's heartbeat is fresh, or if that can't be told.
pub fn arm_supervisor(now: &Now, heartbeat: &FileStamp, stale: Duration) -> Option<Section> {
    match heartbeat {
        FileStamp::Unreadable(_) => return None,
        FileStamp::At { modified, .. } if now.at.since(*modified) <= stale => return None,
        FileStamp::At { .. } | FileStamp::Absent => {}
    }
    let lines = [
        "No fresh monitor/.state/watcher-supervisor-heartbeat: the watcher's supervisor is not armed.",
        "If the watcher crashed now, nothing would revive it before somebody looks. Arm it with your Monitor tool:",
        "  until ! monitor/watcher-supervise-tick.sh; do sleep 15; done",
        "When that ends, do what it printed and arm it again. This reminder ends by itself.",
    ];
    Some(Section {
        kind: SectionKind::ArmSupervisor,
        lines: lines.map(str::to_owned).into(),
        commits: Vec::new(),
        pages: true,
        windows: Vec::new(),
    })
}

/// That the project-local installation of the agent failed; `None` if it did not.
pub fn install_failure(failures: &[InstallFailure]) -> Option<Section> {
    let mut newest: Vec<(Timestamp, &InstallFailure)> =
        failures.iter().filter_map(|failure| Some((install_failed_at(&failure.name)?, failure))).collect();
    newest.sort_unstable_by_key(|(at, failure)| (std::cmp::Reverse(*at), &failure.name));
    let mut lines = Vec::new();
    for (at, failure) in newest.iter().take(MAX_FAILURES) {
        lines.push(format!("The project-local installation of the agent failed at {at}. Its last words:"));
        match &failure.text {
            StateText::Absent => lines.push("  (the file is gone)".to_owned()),
            StateText::Unreadable(why) => lines.push(format!("  (can't be read: {})", value(why))),
            StateText::Text(text) => lines.extend(last_words(text)),
        }
    }
    let more = newest.len().saturating_sub(MAX_FAILURES);
    if more > 0 {
        lines.push(format!("[+{more} earlier failures]"));
    }
    let commits = newest.iter().map(|(_, failure)| Commit::RemoveState { path: failure.name.clone() }).collect();
    let section = Section { kind: SectionKind::InstallFailure, lines, commits, pages: true, windows: Vec::new() };
    (!newest.is_empty()).then_some(section)
}

/// The last lines that say something, indented.
fn last_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(MAX_FAILURE_LINES)
        .map(|line| format!("  {}", one_line(line, MAX_VALUE_CHARS)))
        .collect();
    words.reverse();
    if words.is_empty() {
        words.push("  (it said nothing)".to_owned());
    }
    words
}

/// A value from outside as one clean line.
fn value(text: &str) -> String {
    one_line(&label(text), MAX_VALUE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> StateText {
        StateText::Text(text.to_owned())
    }

    #[test]
    fn a_revival_is_told_with_what_its_marker_says_and_the_delivery_removes_it() {
        let marker = "reason=heartbeat stale\ndowntime_estimate_s=260\ndetected_at=2026-10-05T09:00:00-07:00\n\
                      restarted_by=orchestrator-monitor\n";
        let section = revived(&text(marker)).unwrap();
        assert_eq!(
            section.lines[1..4],
            [
                "why: heartbeat stale",
                "down for: 4m (estimate); noticed: 2026-10-05T09:00:00-07:00",
                "revived by: orchestrator-monitor"
            ]
        );
        assert_eq!(section.commits, [Commit::RemoveState { path: "watcher-revived".into() }]);
        assert!(section.pages);
        assert_eq!(revived(&StateText::Absent), None);
    }

    #[test]
    fn a_marker_that_says_little_or_cannot_be_read_is_told_all_the_same() {
        let section = revived(&text("downtime_estimate_s=-4\nreason=\n")).unwrap();
        assert_eq!(
            section.lines[1..4],
            ["why: unknown", "down for: unknown (estimate); noticed: unknown", "revived by: unknown"]
        );
        let section = revived(&StateText::Unreadable("not UTF-8".into())).unwrap();
        assert_eq!(section.lines[1], "why: the marker can't be read (not UTF-8)");
        assert_eq!(section.commits.len(), 1);
    }

    #[test]
    fn a_supervisor_counts_as_armed_while_its_heartbeat_is_fresh_or_unreadable() {
        let now = Now::fixed(Timestamp::from_secs(10_000));
        let stamp = |secs| FileStamp::At { modified: Timestamp::from_secs(secs), is_empty: true };
        for (heartbeat, reminded) in [
            (FileStamp::Absent, true),
            (stamp(9_909), true),
            (stamp(9_910), false),
            (stamp(20_000), false),
            (FileStamp::Unreadable("denied".into()), false),
        ] {
            let section = arm_supervisor(&now, &heartbeat, Duration::from_secs(90));
            assert_eq!(section.is_some(), reminded, "{heartbeat:?}");
        }
    }

    #[test]
    fn the_reminder_says_the_same_whatever_the_age() {
        let at = |secs| arm_supervisor(&Now::fixed(Timestamp::from_secs(secs)), &FileStamp::Absent, Duration::ZERO);
        assert_eq!(at(10), at(1_000_000));
        assert_eq!(at(10).unwrap().commits, []);
    }

    fn failure(name: &str, text: &str) -> InstallFailure {
        InstallFailure { name: name.into(), text: StateText::Text(text.into()) }
    }

    #[test]
    fn failed_installations_are_told_newest_first_and_all_are_consumed() {
        let words = (0..30).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n\n");
        let failures = [
            failure("local-claude-install-failed.100", "old"),
            failure("local-claude-install-failed.200", ""),
            failure("local-claude-install-failed.400", &words),
            failure("local-claude-install-failed.300", "npm ERR!\n--- dashboard ---"),
            failure("local-claude-install-failed.x", "not ours"),
        ];
        let section = install_failure(&failures).unwrap();
        assert!(section.lines[0].contains("1970-01-01T00:06:40+00:00"), "{:?}", section.lines);
        assert_eq!(section.lines[1..=20], (10..30).map(|n| format!("  line {n}")).collect::<Vec<_>>());
        assert!(section.lines.contains(&"  (it said nothing)".to_owned()));
        assert!(section.lines.contains(&"  npm ERR!".to_owned()));
        assert_eq!(section.lines.last().unwrap(), "[+1 earlier failures]");
        assert_eq!(section.commits.len(), 4);
        assert_eq!(install_failure(&failures[4..]), None);
    }

    #[test]
    fn only_names_with_a_time_are_those_of_failures() {
        for (name, at) in [
            ("local-claude-install-failed.1759000000", Some(1_759_000_000)),
            ("local-claude-install-failed.", None),
            ("local-claude-install-failed.+5", None),
            ("local-claude-install-failed.5.bak", None),
            ("local-claude-install-failed.99999999999999999999", None),
            ("other", None),
        ] {
            assert_eq!(install_failed_at(name), at.map(Timestamp::from_secs), "{name}");
        }
    }
}
