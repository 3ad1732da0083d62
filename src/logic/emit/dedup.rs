//! Tells whether an emit says something that a recent delivered one did not say: the stable hash and its ring.
//!
//! The ring is a guard against storms. It must not swallow a new event, so an emit that carries something which its
//! last delivery retired counts as a repetition for a short time only.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use sha2::{Digest as _, Sha256};

use crate::logic::signal::Section;
use crate::logic::time::Timestamp;

use super::sections::spec;

/// The last delivered emits, relative to the state directory.
pub const RING_FILE: &str = "last-emit-stable-hash.ring";

/// What stood in the last delivered emits, in the form of the ring; a file of its own, since the ring holds whole emits.
pub const STANDING_FILE: &str = "last-emit-standing.ring";

/// How far in the future a stamp may lie before it is taken for one from before the clock was set back.
pub(super) const CLOCK_SLACK: Duration = Duration::from_secs(60);

/// What changes by itself within a line, and what it is replaced by (`protocol-facts` §4.12).
static VOLATILE: LazyLock<[(Regex, &'static str); 3]> = LazyLock::new(|| {
    let compile = |pattern: &str| Regex::new(pattern).expect("the pattern is fixed and a test compiles it");
    [
        (compile(r"\b(idle-too-long|idle|away|interrupted|as of) (\d+h\d\dm|\d+m|\d+s)\b"), "$1 AGE"),
        (compile(r"\b\d+ awaiting-input\b"), "N awaiting-input"),
        (compile(r"^(=== nexus state changed at )\S+"), "$1TIME"),
    ]
});

/// Lines that are no news: the counts of a lively fleet would make a standing condition new at every poll.
const NO_NEWS: [&str; 3] = ["workspace: ", "last put: ", "--- nexus-emit-sig "];

/// Hex SHA-256 of an emit's body without what changes by itself; equal means "says the same".
pub fn stable_hash(body: &str) -> String {
    let mut hasher = Sha256::new();
    for line in body.lines() {
        if NO_NEWS.iter().any(|start| line.starts_with(start)) {
            continue;
        }
        hasher.update(steady(line).as_bytes());
        hasher.update(b"\n");
    }
    hex(hasher)
}

/// Hex SHA-256 of what stands among these sections: what pages and no delivery retires. `None` if nothing does.
///
/// Every emit tells what stands along with its news, so a condition that was told in any of them need not page alone.
pub fn standing_hash(sections: &[Section]) -> Option<String> {
    let mut hasher = Sha256::new();
    let mut any = false;
    for section in sections.iter().filter(|section| section.pages && stands(section)) {
        any = true;
        hasher.update(spec(section.kind).header().as_bytes());
        for line in &section.lines {
            hasher.update(b"\n");
            hasher.update(steady(line).as_bytes());
        }
        hasher.update(b"\n");
    }
    any.then(|| hex(hasher))
}

/// Whether all that pages stands, and nothing of it is news that a delivery retires.
pub fn only_stands(sections: &[Section]) -> bool {
    sections.iter().filter(|section| section.pages).all(stands)
}

/// Whether a section stands for as long as its condition does.
fn stands(section: &Section) -> bool {
    section.commits.is_empty() && !spec(section.kind).own_cooldown
}

/// The digest in lower-case hex.
fn hex(hasher: Sha256) -> String {
    hasher.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _infallible = write!(hex, "{byte:02x}");
        hex
    })
}

/// A line without what changes by itself.
pub fn steady(line: &str) -> Cow<'_, str> {
    let mut line = Cow::Borrowed(line);
    for (pattern, stand_in) in VOLATILE.iter() {
        if let Cow::Owned(changed) = pattern.replace_all(&line, *stand_in) {
            line = Cow::Owned(changed);
        }
    }
    line
}

/// One delivered emit: when, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// When it was proven to have arrived.
    pub at: Timestamp,
    /// Its stable hash.
    pub hash: String,
}

/// The last delivered emits, oldest first, as in `last-emit-stable-hash.ring` (`<epoch>\t<sha256>` a line).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring(Vec<Delivered>);

impl Ring {
    /// Reads the file's text. Lines that are not of the form are ignored: at worst something is told again.
    pub fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let (epoch, hash) = line.split_once('\t')?;
            let at = Timestamp::from_secs(epoch.trim().parse().ok()?);
            Some(Delivered { at, hash: hash.trim().to_owned() })
        };
        Self(text.lines().filter_map(line).collect())
    }

    /// The file's text with one more entry, each hash once, at most `size` entries in all.
    pub fn with(mut self, delivered: Delivered, size: usize) -> String {
        self.0.retain(|entry| entry.hash != delivered.hash);
        self.0.push(delivered);
        let skip = self.0.len().saturating_sub(size.max(1));
        self.0.iter().skip(skip).fold(String::new(), |mut text, entry| {
            let _infallible = writeln!(text, "{}\t{}", entry.at.secs(), entry.hash);
            text
        })
    }

    /// When an emit with this hash was last delivered.
    pub fn last(&self, hash: &str) -> Option<Timestamp> {
        self.0.iter().filter(|entry| entry.hash == hash).map(|entry| entry.at).max()
    }
}

/// How long an emit with these sections may be held back because it was delivered before; `None` means never.
///
/// Comments, requests, decisions and cards are told when their own cooldown says so. Anything else that carries a
/// commit was retired by its last delivery, so its return is a new event: it is held back for `repeat_quiet` only,
/// which bounds what a flapping worker, or a bell that can't be cleared, may cost.
pub fn quiet_period(sections: &[Section], max_quiet: Duration, repeat_quiet: Duration) -> Option<Duration> {
    let paging = || sections.iter().filter(|section| section.pages);
    if paging().any(|section| spec(section.kind).own_cooldown) {
        return None;
    }
    let returns = paging().any(|section| !section.commits.is_empty());
    Some(if returns { repeat_quiet.min(max_quiet) } else { max_quiet })
}

/// Whether a stamp is younger than a period. A stamp from the future (the clock was set back) is not.
pub fn is_within(now: Timestamp, stamp: Timestamp, period: Duration) -> bool {
    stamp <= now.after(CLOCK_SLACK) && now.since(stamp) < period
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::signal::{Commit, SectionKind};

    const BODY: &str = "=== nexus state changed at 2026-05-11T13:42:01-07:00 (poll) ===\nworkspace: 1 busy | 0 awaiting-input\n\
        \n--- idle workers ---\n  - w3 idle 8m WITHOUT wrap-up — consider follow-up paste\n\n--- dashboard ---\n\
        last put: x\n\n--- nexus-emit-sig 2026-05-11T13:42:01-07:00 a1b2c3 ---";

    fn check(from: &str, to: &str, same: bool) {
        assert!(BODY.contains(from), "{from}");
        assert_eq!(stable_hash(BODY) == stable_hash(&BODY.replace(from, to)), same, "{from} -> {to}");
    }

    #[test]
    fn what_changes_by_itself_is_not_hashed() {
        check("idle 8m", "idle 1h12m", true);
        check("idle 8m", "idle 59s", true);
        check("1 busy", "STALE (as of 3m ago) 2 busy", true);
        check("2026-05-11T13:42:01-07:00", "2026-05-11T13:43:01-07:00", true);
        check("a1b2c3", "ffffff", true);
        check("last put: x", "last put: y", true);
    }

    #[test]
    fn what_is_said_is_hashed() {
        check("w3", "w4", false);
        check("(poll)", "(poll-resurface)", false);
        check("WITHOUT wrap-up", "with wrap-up", false);
    }

    #[test]
    fn a_steady_line_has_no_ages_and_no_count_of_who_waits() {
        assert_eq!(steady("  - w3 idle-too-long 25h00m (state=idle)"), "  - w3 idle-too-long AGE (state=idle)");
        assert_eq!(steady("1 busy | 12 awaiting-input"), "1 busy | N awaiting-input");
        assert_eq!(steady("  - w3 (active, state=busy)"), "  - w3 (active, state=busy)");
    }

    #[test]
    fn the_ring_keeps_the_newest_entries() {
        let mut text = String::from("garbage\n\tx\n");
        for n in 0..10 {
            let at = Timestamp::from_secs(n);
            text = Ring::parse(&text).with(Delivered { at, hash: format!("h{n}") }, 8);
        }
        let ring = Ring::parse(&text);
        assert_eq!(text.lines().count(), 8);
        assert_eq!(ring.last("h1"), None);
        assert_eq!(ring.last("h9"), Some(Timestamp::from_secs(9)));
    }

    #[test]
    fn rows_with_a_cooldown_of_their_own_pass_and_events_repeat_soon() {
        let section = |kind, pages, commits| Section { kind, lines: vec![], commits, pages, windows: vec![] };
        let commit = || vec![Commit::RemoveState { path: "x".into() }];
        let (day, soon) = (Duration::from_secs(86_400), Duration::from_secs(300));
        let quiet = |sections: &[Section]| quiet_period(sections, day, soon);
        for kind in [SectionKind::Comments, SectionKind::Requests, SectionKind::Decisions, SectionKind::StalledFanOuts]
        {
            let arm = section(SectionKind::ArmSupervisor, true, vec![]);
            assert_eq!(quiet(&[arm, section(kind, true, vec![])]), None, "{kind:?}");
        }
        assert_eq!(quiet(&[section(SectionKind::ArmSupervisor, true, vec![])]), Some(day));
        assert_eq!(quiet(&[section(SectionKind::IdleWorkers, true, commit())]), Some(soon));
        assert_eq!(quiet(&[section(SectionKind::Decisions, false, vec![])]), Some(day));
    }

    #[test]
    fn what_stands_has_a_hash_of_its_own_whatever_news_come_along() {
        let section = |kind, line: &str, commits| Section {
            kind,
            lines: vec![line.into()],
            commits,
            pages: true,
            windows: vec![],
        };
        let commit = || vec![Commit::RemoveState { path: "x".into() }];
        let arm = || section(SectionKind::ArmSupervisor, "arm it", vec![]);
        let bell = section(SectionKind::Bells, "  - w3", commit());
        let decision = section(SectionKind::Decisions, "window=w3", vec![]);
        let alone = standing_hash(&[arm()]);
        assert!(alone.is_some());
        assert_eq!(standing_hash(&[bell.clone(), arm(), decision.clone()]), alone);
        assert_ne!(standing_hash(&[section(SectionKind::ArmSupervisor, "arm it now", vec![])]), alone);
        assert_eq!(standing_hash(&[bell.clone(), decision.clone()]), None);
        assert!(only_stands(&[arm()]));
        assert!(!only_stands(&[arm(), bell]) && !only_stands(&[arm(), decision]));
    }

    #[test]
    fn a_stamp_from_the_future_holds_nothing_back() {
        let now = Timestamp::from_secs(10_000);
        let period = Duration::from_secs(300);
        assert!(is_within(now, Timestamp::from_secs(9_800), period));
        assert!(!is_within(now, Timestamp::from_secs(9_700), period));
        assert!(!is_within(now, Timestamp::from_secs(13_600), period));
    }
}
