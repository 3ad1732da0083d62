//! The text that is compared between polls, and what becomes of the baseline.
//!
//! A part that could not be had keeps its lines of the baseline, so a tmux that did not answer never looks like
//! windows that vanished. The baseline advances only by a delivered change, by noise, or where there is nothing to
//! compare with.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use similar::TextDiff;

use crate::logic::emit::clean::one_line;
use crate::logic::ids::{ServerNumber, WindowId};
use crate::logic::snapshot::{Gathered, StateText};
use crate::logic::worker::scope::{WindowRow, is_notice, rings};

use super::classify::{Verdict, classify};

/// Lines of a diff that are kept.
const MAX_DIFF_LINES: usize = 120;

/// Characters of a line of the snapshot.
const MAX_LINE_CHARS: usize = 300;

/// First words of the file; another tag after them means that it was written by another format.
const FORMAT: &str = "# snapshot-format=";

/// The parts in the order of the file.
const PARTS: [&str; 3] = ["reports", "tmux", "git"];

/// What the format tag says, apart from the parts that are in use.
const VERSION: &str = "nexus-watcher-1 tmux-ids,reports-names";

/// One poll's view: the lines of each part, or `None` where the part could not be had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Report names.
    pub reports: Option<Vec<String>>,
    /// Windows.
    pub tmux: Option<Vec<String>>,
    /// Servers whose windows are not among them, since they have not answered yet: the baseline's lines of them stand.
    pub unlisted: Vec<ServerNumber>,
    /// Repositories.
    pub git: Option<Vec<String>>,
    /// Whether repositories are looked at; a change of it re-seeds the baseline.
    pub git_enabled: bool,
}

/// What a poll means for the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The same, or nothing could be had.
    None,
    /// There was nothing to compare with: the text becomes the baseline, and nothing is told.
    Seed {
        /// The new baseline.
        text: String,
    },
    /// Only noise: the text becomes the baseline, and nothing is told.
    Noise {
        /// The new baseline.
        text: String,
        /// What was suppressed.
        verdict: Verdict,
    },
    /// To be told; the text becomes the baseline when it was.
    Signal {
        /// The new baseline.
        text: String,
        /// The diff's lines, without a file header.
        diff: Vec<String>,
    },
}

/// The lines of the tmux part: `<name> @<id> bell=<0|1>`, sorted. A bell that means nothing is always 0.
pub fn tmux_lines(windows: &[WindowRow<'_>], target: &str) -> Vec<String> {
    let mut lines: Vec<String> = windows
        .iter()
        .map(|row| row.facts)
        .filter(|facts| !is_notice(facts.window_name.as_str()))
        .map(|facts| {
            let bell = u8::from(facts.bell && rings(&facts.window_name, target));
            format!("{} {} bell={bell}", line(facts.window_name.as_str()), facts.window)
        })
        .collect();
    lines.sort_unstable();
    lines
}

/// The lines of a gathered list, sorted; `None` where it could not be had.
pub fn listed(part: &Gathered<Vec<String>>) -> Option<Vec<String>> {
    let mut lines: Vec<String> = part.got()?.iter().map(|text| line(text)).collect();
    lines.sort_unstable();
    lines.dedup();
    Some(lines)
}

/// A name as a line of the snapshot. One that looks like a header gets a backslash, so that it stays a name.
fn line(text: &str) -> String {
    let line = one_line(text, MAX_LINE_CHARS);
    if line.starts_with("---") { format!("\\{line}") } else { line }
}

/// Compares a poll with the baseline.
pub fn compare(baseline: &StateText, observed: &Observed) -> Change {
    let old = match baseline {
        StateText::Absent => None,
        StateText::Text(text) => parse(text, observed.git_enabled),
        StateText::Unreadable(why) => {
            let text = render(&parts(observed, &BTreeMap::new()), observed.git_enabled);
            let why = one_line(why, MAX_LINE_CHARS);
            let line = format!("the last baseline can't be read ({why}); what changed since then is not known");
            return Change::Signal { text, diff: vec![line] };
        }
    };
    let Some(old) = old else {
        let new = parts(observed, &BTreeMap::new());
        if new.is_empty() {
            return Change::None;
        }
        return Change::Seed { text: render(&new, observed.git_enabled) };
    };
    let new = parts(observed, &old);
    let text = render(&new, observed.git_enabled);
    // A part that the baseline lacks could not be had when it was made: it is seeded, not told.
    let known: BTreeMap<_, _> =
        new.iter().map(|(name, lines)| (*name, old.get(name).unwrap_or(lines).clone())).collect();
    let before = render(&known, observed.git_enabled);
    if before == text {
        return if baseline.text() == Some(text.as_str()) { Change::None } else { Change::Seed { text } };
    }
    let whole = diff(&before, &text);
    let verdict = classify(whole.iter().map(String::as_str));
    if verdict.is_signal() {
        Change::Signal { text, diff: whole.into_iter().take(MAX_DIFF_LINES).collect() }
    } else {
        Change::Noise { text, verdict }
    }
}

/// The baseline with the bells of these windows off: what it is once they were cleared, so that clearing them is no
/// news. `None` if that changes nothing.
pub fn without_bells(text: &str, windows: &[WindowId]) -> Option<String> {
    let cleared: BTreeSet<String> = windows.iter().map(|window| format!(" {window} bell=1")).collect();
    let mut changed = false;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let id = line.strip_suffix(" bell=1").and_then(|rest| rest.rsplit(' ').next());
        if id.is_some_and(|id| cleared.contains(&format!(" {id} bell=1"))) {
            changed = true;
            out.push_str(line.strip_suffix('1').unwrap_or(line));
            out.push_str("0\n");
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    changed.then_some(out)
}

/// The parts that were had, and the baseline's lines for those that were not.
fn parts(observed: &Observed, old: &BTreeMap<&'static str, Vec<String>>) -> BTreeMap<&'static str, Vec<String>> {
    let had = [("reports", &observed.reports), ("tmux", &observed.tmux), ("git", &observed.git)];
    let lines = |(name, lines): (&'static str, &Option<Vec<String>>)| {
        Some((name, lines.clone().or_else(|| old.get(name).cloned())?))
    };
    let had = had.into_iter().filter(|(name, _)| *name != "git" || observed.git_enabled);
    let mut parts: BTreeMap<&'static str, Vec<String>> = had.filter_map(lines).collect();
    if let (Some(windows), Some(old)) = (parts.get_mut("tmux"), old.get("tmux")) {
        let is_unlisted = |line: &&String| server_of(line).is_some_and(|server| observed.unlisted.contains(&server));
        windows.extend(old.iter().filter(is_unlisted).cloned());
        windows.sort_unstable();
        windows.dedup();
    }
    parts
}

/// The server of the window that a line of the tmux part is about.
fn server_of(line: &str) -> Option<ServerNumber> {
    let id = line.rsplit(' ').nth(1)?;
    WindowId::parse(id).map(WindowId::server)
}

/// The format tag of a baseline.
fn tag(git_enabled: bool) -> String {
    format!("{FORMAT}{VERSION},git-{}", if git_enabled { "on" } else { "off" })
}

/// The whole text of a baseline.
fn render(parts: &BTreeMap<&'static str, Vec<String>>, git_enabled: bool) -> String {
    let mut text = tag(git_enabled);
    text.push('\n');
    for name in PARTS {
        let Some(lines) = parts.get(name) else { continue };
        let _infallible = writeln!(text, "--- {name} ---");
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The parts of a baseline; `None` if it has another format.
fn parse(text: &str, git_enabled: bool) -> Option<BTreeMap<&'static str, Vec<String>>> {
    let mut lines = text.lines();
    if lines.next() != Some(tag(git_enabled).as_str()) {
        return None;
    }
    let mut parts = BTreeMap::new();
    let mut current: Option<&mut Vec<String>> = None;
    for line in lines {
        let name = line.strip_prefix("--- ").and_then(|rest| rest.strip_suffix(" ---"));
        if let Some(name) = name.and_then(|name| PARTS.into_iter().find(|part| *part == name)) {
            current = Some(parts.entry(name).or_default());
        } else if let Some(part) = &mut current {
            part.push(line.to_owned());
        }
    }
    Some(parts)
}

/// The unified diff, three lines of context, without a file header.
fn diff(old: &str, new: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(old, new);
    let hunks = diff.unified_diff().context_radius(3).iter_hunks().map(|hunk| hunk.to_string()).collect::<String>();
    hunks.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::snapshot::PaneFacts;
    use crate::logic::worker::scope::tests::pane;

    fn seen(reports: &[&str], windows: &[&str]) -> Observed {
        let own = |lines: &[&str]| Some(lines.iter().map(|line| (*line).to_owned()).collect());
        Observed { reports: own(reports), tmux: own(windows), ..Observed::default() }
    }

    fn seeded(observed: &Observed) -> StateText {
        match compare(&StateText::Absent, observed) {
            Change::Seed { text } => StateText::Text(text),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_missing_baseline_and_another_format_seed_silently() {
        let now = seen(&["a.md"], &["w1 @1 bell=0"]);
        let StateText::Text(text) = seeded(&now) else { panic!() };
        assert_eq!(
            text,
            "# snapshot-format=nexus-watcher-1 tmux-ids,reports-names,git-off\n--- reports ---\na.md\n--- tmux ---\nw1 @1 bell=0\n"
        );
        for old in ["# snapshot-format=v2 tmux-first,reports-bounded-count,git-off\n--- tmux ---\nx\n", "", "garbage"] {
            assert_eq!(compare(&StateText::Text(old.into()), &now), Change::Seed { text: text.clone() });
        }
        assert_eq!(compare(&StateText::Text(text), &now), Change::None);
    }

    #[test]
    fn a_change_is_told_with_its_diff() {
        let base = seeded(&seen(&["a.md"], &["w1 @1 bell=0"]));
        match compare(&base, &seen(&["a.md", "b.md"], &["w1 @1 bell=0"])) {
            Change::Signal { diff, text } => {
                assert!(diff[0].starts_with("@@"), "{diff:?}");
                assert!(diff.contains(&"+b.md".to_owned()) && diff.contains(&" --- tmux ---".to_owned()), "{diff:?}");
                assert!(text.contains("\nb.md\n"));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn noise_advances_the_baseline_and_is_not_told() {
        let base = seeded(&seen(&["a.md"], &[]));
        let now = seen(&["a.md", "b-interim.md"], &[]);
        let Change::Noise { text, verdict } = compare(&base, &now) else { panic!() };
        assert_eq!(verdict.interim, 1);
        assert_eq!(compare(&StateText::Text(text), &now), Change::None);
    }

    #[test]
    fn a_part_that_could_not_be_had_never_looks_empty() {
        let base = seeded(&seen(&["a.md"], &["w1 @1 bell=0"]));
        assert_eq!(compare(&base, &Observed { tmux: None, ..seen(&["a.md"], &[]) }), Change::None);
        assert_eq!(compare(&base, &Observed::default()), Change::None);
        assert_eq!(compare(&StateText::Absent, &Observed::default()), Change::None);
        assert!(matches!(compare(&base, &seen(&["a.md"], &[])), Change::Signal { .. }));
    }

    #[test]
    fn windows_of_a_server_that_has_not_answered_yet_stand() {
        let base = seeded(&seen(&[], &["a b 1/@1 bell=1", "w1 @1 bell=0"]));
        let unlisted = |windows: &[&str]| Observed { unlisted: vec![1], ..seen(&[], windows) };
        assert_eq!(compare(&base, &unlisted(&["w1 @1 bell=0"])), Change::None);
        let Change::Signal { diff, .. } = compare(&base, &unlisted(&[])) else {
            panic!("the other server is not blinded")
        };
        assert!(diff.contains(&"-w1 @1 bell=0".to_owned()), "{diff:?}");
        let Change::Signal { diff, .. } = compare(&base, &seen(&[], &["w1 @1 bell=0"])) else { panic!() };
        assert!(diff.contains(&"-a b 1/@1 bell=1".to_owned()), "{diff:?}");
    }

    #[test]
    fn a_part_that_the_baseline_lacks_is_seeded() {
        let base = seeded(&Observed { tmux: None, ..seen(&["a.md"], &[]) });
        let now = seen(&["a.md"], &["w1 @1 bell=0"]);
        let Change::Seed { text } = compare(&base, &now) else { panic!() };
        assert!(text.contains("w1 @1"));
    }

    #[test]
    fn an_unreadable_baseline_is_told_not_absorbed() {
        let Change::Signal { diff, .. } = compare(&StateText::Unreadable("denied".into()), &seen(&[], &[])) else {
            panic!()
        };
        assert!(diff[0].contains("denied"));
    }

    #[test]
    fn the_diff_is_cut_after_it_was_judged() {
        let many: Vec<String> = (0..200).map(|n| format!("{n:03}-interim.md")).collect();
        let mut lines: Vec<&str> = many.iter().map(String::as_str).collect();
        let base = seeded(&seen(&[], &[]));
        assert!(matches!(compare(&base, &seen(&lines, &[])), Change::Noise { .. }));
        lines.push("final.md");
        let Change::Signal { diff, .. } = compare(&base, &seen(&lines, &[])) else { panic!() };
        assert_eq!(diff.len(), MAX_DIFF_LINES);
    }

    #[test]
    fn a_report_named_like_a_header_stays_a_report() {
        let reports = listed(&Gathered::Got(vec!["--- git ---".into(), "a.md".into()])).unwrap();
        let now = Observed { reports: Some(reports), ..seen(&[], &["w1 @1 bell=0"]) };
        assert_eq!(compare(&seeded(&now), &now), Change::None);
    }

    #[test]
    fn clearing_a_bell_is_no_news() {
        let base = seeded(&seen(&[], &["a @1 bell=1", "b @11 bell=1", "c @2 bell=0"]));
        let text = without_bells(base.text().unwrap(), &[WindowId::new(1), WindowId::new(2)]).unwrap();
        assert_eq!(
            compare(&StateText::Text(text.clone()), &seen(&[], &["a @1 bell=0", "b @11 bell=1", "c @2 bell=0"])),
            Change::None
        );
        assert_eq!(without_bells(&text, &[WindowId::new(1)]), None);
    }

    #[test]
    fn the_bell_of_the_target_is_never_a_change() {
        let panes: Vec<PaneFacts> = ["orchestrator", "w2", "•w2"]
            .iter()
            .enumerate()
            .map(|(n, name)| PaneFacts { bell: true, ..pane(u32::try_from(n).unwrap(), name) })
            .collect();
        let rows: Vec<_> = panes.iter().map(|facts| WindowRow { facts }).collect();
        assert_eq!(tmux_lines(&rows, "orchestrator"), ["orchestrator @0 bell=0", "w2 @1 bell=1"]);
    }

    proptest::proptest! {
        /// Whatever stands in the file, the text that a comparison makes is one that the next comparison accepts.
        #[test]
        fn a_made_baseline_compares_equal(
            old in "(# snapshot-format=nexus-watcher-1 tmux-ids,reports-names,git-off\n)?(--- (reports|tmux|git|x) ---\n|[ -~ü]{0,9}\n){0,8}",
            reports in proptest::collection::vec("\\PC{0,9}", 0..4),
        ) {
            let now = Observed { reports: listed(&Gathered::Got(reports)), ..seen(&[], &["w @1 bell=0"]) };
            match compare(&StateText::Text(old), &now) {
                Change::None => {}
                Change::Seed { text } | Change::Noise { text, .. } | Change::Signal { text, .. } => {
                    proptest::prop_assert_eq!(compare(&StateText::Text(text), &now), Change::None);
                }
            }
        }
    }
}
