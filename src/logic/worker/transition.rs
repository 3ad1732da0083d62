//! What is new since the last delivered report: the pairs (window, class) of `idle-state.tsv`.
//!
//! Only a delivery adds a pair to the table; a worker that is no longer idle leaves it at once, so that its next
//! silence is news again.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::logic::ids::WindowName;
use crate::logic::signal::{Commit, Section, SectionKind};

use super::class::{Class, Finding};

/// The table, relative to the state directory.
pub const STATE_FILE: &str = "idle-state.tsv";

/// Rows of one report; further ones stay new and follow in the next.
const MAX_ROWS: usize = 100;

/// The pairs that were told, by window label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told(BTreeSet<(String, Class)>);

impl Told {
    /// Reads the table. Lines of another form, or with a class that nobody knows, are ignored.
    pub fn parse(text: &str) -> Self {
        let pair = |line: &str| {
            let (label, class) = line.rsplit_once('\t')?;
            Some((label.to_owned(), Class::parse(class.trim())?))
        };
        Self(text.lines().filter_map(pair).collect())
    }

    /// The table's text.
    pub fn render(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, (label, class)| {
            let _infallible = writeln!(text, "{}", row(label, *class));
            text
        })
    }

    /// The labels of all.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(label, _)| label.as_str())
    }

    /// The labels of the retained.
    fn retained(&self) -> BTreeSet<&str> {
        self.0.iter().filter(|(_, class)| *class == Class::Retained).map(|(label, _)| label.as_str()).collect()
    }
}

/// One row of the table.
fn row(label: &str, class: Class) -> String {
    format!("{label}\t{}", class.word())
}

/// What this poll's findings mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transitions {
    /// What is new, to be told; its delivery adds the pairs.
    pub section: Option<Section>,
    /// The table without those who are no longer idle; `None` if nobody left.
    pub left: Option<String>,
}

/// Compares the findings of a poll with what was told.
///
/// Shape: the pairs of `unclear` workers stay as they are. The footer about the retained is printed only when their
///        set changes, and does not page by itself.
pub fn compare(told: &Told, findings: &[Finding], unclear: &BTreeSet<String>) -> Transitions {
    let current: BTreeSet<(String, Class)> = findings.iter().map(|found| (found.label.clone(), found.class)).collect();
    let kept: BTreeSet<(String, Class)> =
        told.0.iter().filter(|pair| current.contains(pair) || unclear.contains(&pair.0)).cloned().collect();
    let left = (kept != told.0).then(|| Told(kept).render());

    let is_new =
        |found: &&Finding| found.class != Class::Retained && !told.0.contains(&(found.label.clone(), found.class));
    let new: Vec<&Finding> = findings.iter().filter(is_new).collect();
    let retained: Vec<&Finding> = findings.iter().filter(|found| found.class == Class::Retained).collect();
    let retained_now: BTreeSet<&str> = retained.iter().map(|found| found.label.as_str()).collect();
    let footer = !retained.is_empty() && retained_now != told.retained();
    if new.is_empty() && !footer {
        return Transitions { section: None, left };
    }

    let shown: Vec<&&Finding> = new.iter().take(MAX_ROWS).collect();
    let mut lines: Vec<String> = shown.iter().map(|found| format!("  - {}", found.line)).collect();
    let more = new.len().saturating_sub(shown.len());
    if more > 0 {
        lines.push(format!("  [+{more} more workers; told in the next report]"));
    }
    if footer {
        let names: Vec<String> = retained.iter().map(|found| format!("{} ({})", found.label, found.line)).collect();
        lines.push(format!("({} retained windows suppressed: {})", retained.len(), names.join(", ")));
    }
    let rows = shown.iter().copied().chain(&retained).map(|found| row(&found.label, found.class)).collect();
    // Rows, not the whole table: a worker that leaves it while the delivery is under way must not come back with it.
    let commit = Commit::AddRows { path: STATE_FILE.into(), rows };
    let windows = shown.iter().map(|found| WindowName(found.label.clone())).collect();
    let section =
        Section { kind: SectionKind::IdleWorkers, lines, commits: vec![commit], pages: !new.is_empty(), windows };
    Transitions { section: Some(section), left }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(label: &str, class: Class, line: &str) -> Finding {
        Finding { label: label.into(), class, line: line.into() }
    }

    /// One row of the specification's table: the class told before, the class now, and whether it is news.
    fn check(before: Option<Class>, now: Option<Class>, news: bool) {
        let told = Told(before.map(|class| ("w3".to_owned(), class)).into_iter().collect());
        let findings: Vec<Finding> = now.map(|class| finding("w3", class, "x")).into_iter().collect();
        let result = compare(&told, &findings, &BTreeSet::new());
        assert_eq!(result.section.is_some_and(|section| section.pages), news, "{before:?} -> {now:?}");
    }

    #[test]
    fn only_new_pairs_are_told() {
        check(None, Some(Class::NoWrapUp), true);
        check(None, Some(Class::PaneAbsent), true);
        check(Some(Class::NoWrapUp), Some(Class::Wrapped), true);
        check(Some(Class::Wrapped), Some(Class::IdleTooLong), true);
        check(Some(Class::Retained), Some(Class::Wrapped), true);
        check(Some(Class::NoWrapUp), None, false);
        check(Some(Class::NoWrapUp), Some(Class::NoWrapUp), false);
        check(None, Some(Class::Retained), false);
        check(None, None, false);
    }

    #[test]
    fn a_detail_that_changed_is_no_news() {
        let told = Told::parse("w3\twrapped-but-stub\n");
        let now = [finding("w3", Class::WrappedButStub, "w3 wrapped-but-stub (other)")];
        assert_eq!(compare(&told, &now, &BTreeSet::new()), Transitions { section: None, left: None });
    }

    #[test]
    fn only_a_delivery_adds_pairs_and_who_left_goes_at_once() {
        let told = Told::parse("w1\tno-wrap-up\nw2\twrapped\n");
        let now = [finding("w2", Class::Wrapped, "w2 x"), finding("w3", Class::NoWrapUp, "w3 x")];
        let result = compare(&told, &now, &BTreeSet::new());
        assert_eq!(result.left.as_deref(), Some("w2\twrapped\n"));
        let section = result.section.unwrap();
        assert_eq!(section.lines, ["  - w3 x"]);
        let rows = vec!["w3\tno-wrap-up".to_owned()];
        assert_eq!(section.commits, [Commit::AddRows { path: STATE_FILE.into(), rows }]);
    }

    #[test]
    fn without_a_table_everything_is_told_once() {
        let now = [finding("w1", Class::Wrapped, "w1 x"), finding("w2", Class::NoWrapUp, "w2 x")];
        let section = compare(&Told::parse(""), &now, &BTreeSet::new()).section.unwrap();
        let Some(Commit::AddRows { rows, .. }) = section.commits.first() else { panic!() };
        assert_eq!(
            compare(&Told::parse(&rows.join("\n")), &now, &BTreeSet::new()),
            Transitions { section: None, left: None }
        );
    }

    #[test]
    fn who_cannot_be_told_stays_as_told() {
        let told = Told::parse("w1\tno-wrap-up\n");
        let unclear = BTreeSet::from(["w1".to_owned()]);
        assert_eq!(compare(&told, &[], &unclear), Transitions { section: None, left: None });
    }

    #[test]
    fn the_retained_are_named_when_their_set_changes_and_do_not_page() {
        let now = [finding("w3", Class::Retained, "review"), finding("w5", Class::Retained, "demo")];
        let section = compare(&Told::parse("w3\tretained\n"), &now, &BTreeSet::new()).section.unwrap();
        assert_eq!(section.lines, ["(2 retained windows suppressed: w3 (review), w5 (demo))"]);
        assert!(!section.pages);
        let told = Told::parse("w3\tretained\nw5\tretained\n");
        assert_eq!(compare(&told, &now, &BTreeSet::new()), Transitions { section: None, left: None });
    }

    #[test]
    fn many_workers_are_told_in_turns() {
        let now: Vec<_> = (0..130).map(|n| finding(&format!("w{n:03}"), Class::NoWrapUp, "x")).collect();
        let section = compare(&Told::default(), &now, &BTreeSet::new()).section.unwrap();
        assert_eq!(section.lines.len(), MAX_ROWS + 1);
        let Some(Commit::AddRows { rows, .. }) = section.commits.first() else { panic!() };
        assert_eq!(rows.len(), MAX_ROWS);
    }
}
