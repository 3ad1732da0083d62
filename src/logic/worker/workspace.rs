//! The counts on the emit's `workspace:` line (`protocol-facts` §4.11).

use std::collections::BTreeSet;

use crate::logic::pane::verdict::State;

use super::class::{Class, Outcome};
use super::roster::Roster;

/// What follows `workspace: `; begins with `PARTIAL` where something could not be read.
///
/// Shape: who has no idle class counts as busy, who can't be told as well, which is why the line then says `PARTIAL`.
///        Awaiting input are those before whom a dialog waits and those named in `notified`, who asked for attention
///        since the last report.
pub fn counts(roster: &Roster, notified: &BTreeSet<String>) -> String {
    let entries = &roster.entries;
    let class = |outcome: &Outcome| match outcome {
        Outcome::Idle(finding) => Some(finding.class),
        Outcome::Active | Outcome::Unclear => None,
    };
    let count = |classes: &[Class]| {
        entries.iter().filter(|entry| class(&entry.outcome).is_some_and(|class| classes.contains(&class))).count()
    };
    let busy = entries.iter().filter(|entry| class(&entry.outcome).is_none()).count();
    let unclear = entries.iter().filter(|entry| entry.outcome == Outcome::Unclear).count();
    let awaiting =
        entries.iter().filter(|entry| entry.state == State::Blocked || notified.contains(&entry.name)).count();
    let line = format!(
        "{busy} busy | {} idle | {} retained | {} idle-too-long | {} pane-absent | {} over-limit | {} orphan-async | \
         0 interrupted | 0 parked-skeptic | 0 idle-children | {awaiting} awaiting-input",
        count(&[Class::NoWrapUp, Class::Wrapped, Class::WrappedButStub]),
        count(&[Class::Retained]),
        count(&[Class::IdleTooLong]),
        count(&[Class::PaneAbsent]),
        count(&[Class::OverLimit]),
        count(&[Class::IdleOrphanAsync]),
    );
    if roster.log_missing {
        format!("PARTIAL {line} (the action log could not be read)")
    } else if unclear > 0 {
        format!("PARTIAL {line} ({unclear} of {} windows could not be read)", entries.len())
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::super::class::Finding;
    use super::super::roster::Entry;
    use super::*;
    use crate::logic::ids::WindowId;

    fn entry(name: &str, state: State, outcome: Outcome) -> Entry {
        let (label, name) = (format!("{name} (@1)"), name.to_owned());
        Entry { label, name, window: WindowId::new(1), state, age: std::time::Duration::ZERO, outcome }
    }

    #[test]
    fn everybody_is_counted_once() {
        let classes = [Class::NoWrapUp, Class::Wrapped, Class::Retained, Class::PaneAbsent, Class::OverLimit];
        let idle = |class| Outcome::Idle(Finding { label: "w".into(), class, line: String::new() });
        let mut entries: Vec<_> = classes.into_iter().map(|class| entry("w", State::Idle, idle(class))).collect();
        entries.extend((0..2).map(|_| entry("w6", State::Busy, Outcome::Active)));
        let mut roster = Roster { entries, ..Roster::default() };
        let nobody = BTreeSet::new();
        assert_eq!(
            counts(&roster, &nobody),
            "2 busy | 2 idle | 1 retained | 0 idle-too-long | 1 pane-absent | 1 over-limit | 0 orphan-async | \
             0 interrupted | 0 parked-skeptic | 0 idle-children | 0 awaiting-input"
        );
        roster.entries.push(entry("w7", State::Unknown, Outcome::Unclear));
        let partial = counts(&roster, &nobody);
        assert!(partial.starts_with("PARTIAL 3 busy") && partial.ends_with("(1 of 8 windows could not be read)"));
        roster.log_missing = true;
        assert!(counts(&roster, &nobody).contains("action log"));
    }

    #[test]
    fn awaiting_input_are_the_blocked_and_those_who_asked_each_once() {
        let check = |entries: Vec<Entry>, notified: &[&str], expected: usize| {
            let notified = notified.iter().map(|name| (*name).to_owned()).collect();
            let line = counts(&Roster { entries, ..Roster::default() }, &notified);
            assert!(line.ends_with(&format!("| {expected} awaiting-input")), "{line}");
        };
        let busy = |name| entry(name, State::Busy, Outcome::Active);
        let blocked = |name| entry(name, State::Blocked, Outcome::Active);
        check(vec![busy("w1"), busy("w2")], &[], 0);
        check(vec![busy("w1"), blocked("w2")], &[], 1);
        check(vec![busy("w1"), blocked("w2")], &["w1", "w2", "gone"], 2);
    }
}
