//! Names of archived emits in `diffs/`, and which of them are old enough to go. Works by name alone: looking at
//! thousands of files once stalled a watcher.

use std::time::Duration;

use chrono::NaiveDateTime;

use crate::logic::time::Timestamp;

/// The file name of an emit: `<UTC YYYY-MM-DD_HH-MM-SS>_<6hex>[_<tag>].md`.
pub fn file_name(at: Timestamp, nonce: &str, reason: &str) -> String {
    let id: String = nonce.chars().filter(char::is_ascii_hexdigit).take(6).collect();
    match tag(reason) {
        Some(tag) => format!("{}_{id}_{tag}.md", at.file_stamp()),
        None => format!("{}_{id}.md", at.file_stamp()),
    }
}

/// The tag of an emit with this reason; a plain poll and the startup sweep have none.
pub fn tag(reason: &str) -> Option<&str> {
    const TAGS: &[&str] = &[
        "full-state",
        "resurface",
        "cc-update",
        "component-drift",
        "service-health",
        "requests",
        "reports-roll",
        "comments",
    ];
    let word = reason.strip_prefix("poll-").unwrap_or(reason);
    TAGS.iter().find(|tag| **tag == word).copied()
}

/// When the emit with this file name was composed; `None` for any other file.
pub fn composed_at(name: &str) -> Option<Timestamp> {
    let stamp = name.strip_suffix(".md")?.get(..19)?;
    let time = NaiveDateTime::parse_from_str(stamp, "%Y-%m-%d_%H-%M-%S").ok()?;
    Some(Timestamp::from_millis(time.and_utc().timestamp_millis()))
}

/// The archived emits that were composed after a time, oldest first; without one, all. Files with other names are not
/// emits.
pub fn newer_than(names: &[String], time: Option<Timestamp>) -> Vec<String> {
    let mut newer: Vec<(Timestamp, &String)> = names
        .iter()
        .filter_map(|name| Some((composed_at(name)?, name)))
        .filter(|(at, _)| time.is_none_or(|time| at.secs() > time.secs()))
        .collect();
    newer.sort_unstable();
    newer.into_iter().map(|(_, name)| name.clone()).collect()
}

/// Limits on the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Emits older than this go.
    pub keep: Duration,
    /// At most so many stay.
    pub max_files: usize,
    /// At most so many go in one run.
    pub max_per_run: usize,
}

/// Which archived emits to delete, oldest first. Files with other names are not ours and stay.
pub fn to_prune(names: &[String], now: Timestamp, limits: Retention) -> Vec<String> {
    let mut ours: Vec<(Timestamp, &String)> =
        names.iter().filter_map(|name| Some((composed_at(name)?, name))).collect();
    ours.sort_unstable();
    let surplus = ours.len().saturating_sub(limits.max_files);
    ours.iter()
        .enumerate()
        .filter(|(place, (at, _))| *place < surplus || now.since(*at) > limits.keep)
        .take(limits.max_per_run)
        .map(|(_, (_, name))| (*name).clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_time_nonce_and_tag() {
        let at = Timestamp::parse_iso("2026-05-11T13:42:01-07:00").unwrap();
        for (reason, name) in [
            ("poll", "2026-05-11_20-42-01_a1b2c3.md"),
            ("startup-sweep", "2026-05-11_20-42-01_a1b2c3.md"),
            ("poll-resurface", "2026-05-11_20-42-01_a1b2c3_resurface.md"),
            ("poll-full-state", "2026-05-11_20-42-01_a1b2c3_full-state.md"),
        ] {
            assert_eq!(file_name(at, "a1b2c3", reason), name);
            assert_eq!(composed_at(name), Some(at));
        }
    }

    #[test]
    fn what_was_archived_after_the_last_ack_is_replayed_oldest_first() {
        let names = [
            "2026-05-11_20-42-03_aaaaaa_full-state.md",
            "notes.md",
            "2026-05-11_20-42-01_ffffff.md",
            "2026-05-11_20-42-02_bbbbbb_resurface.md",
        ]
        .map(str::to_owned);
        let check = |iso: Option<&str>, expected: &[&String]| {
            let time = iso.and_then(Timestamp::parse_iso);
            assert_eq!(newer_than(&names, time).iter().collect::<Vec<_>>(), expected, "{iso:?}");
        };
        check(None, &[&names[2], &names[3], &names[0]]);
        check(Some("2026-05-11T20:42:01.999Z"), &[&names[3], &names[0]]);
        check(Some("2026-05-11T13:42:02-07:00"), &[&names[0]]);
        check(Some("2027-01-01T00:00:00Z"), &[]);
    }

    fn check(names: &[&str], limits: (u64, usize, usize), expected: &[&str]) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let now = Timestamp::parse_iso("2026-05-11T00:00:00+00:00").unwrap();
        let (days, max_files, max_per_run) = limits;
        let limits = Retention { keep: Duration::from_secs(days * 86_400), max_files, max_per_run };
        assert_eq!(to_prune(&names, now, limits), expected);
    }

    #[test]
    fn old_and_surplus_emits_go_by_the_date_in_the_name() {
        let names = [
            "2026-05-10_00-00-00_aaaaaa.md",
            "2026-05-01_00-00-00_bbbbbb.md",
            "2026-04-01_00-00-00_cccccc_resurface.md",
            "notes.md",
            "2026-13-01_00-00-00_dddddd.md",
        ];
        check(&names, (7, 100, 100), &[names[2], names[1]]);
        check(&names, (7, 100, 1), &[names[2]]);
        check(&names, (700, 2, 100), &[names[2]]);
        check(&names, (700, 0, 100), &[names[2], names[1], names[0]]);
        check(&[], (7, 0, 100), &[]);
    }
}
