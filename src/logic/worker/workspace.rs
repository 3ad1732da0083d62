//! The counts on the emit's `workspace:` line (`protocol-facts` §4.11).

use super::class::{Class, Finding};

/// What is counted besides the findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Worker windows.
    pub windows: usize,
    /// Those whose pane could not be read or recognised.
    pub unclear: usize,
    /// Those in front of which a dialog waits.
    pub awaiting_input: usize,
    /// Whether the action log could not be had, so that nobody's wrap-up is known.
    pub log_missing: bool,
}

/// What follows `workspace: `; begins with `PARTIAL` where something could not be read.
///
/// Shape: who has no idle class counts as busy, who can't be told as well, which is why the line then says `PARTIAL`.
pub fn counts(census: &Census, findings: &[Finding]) -> String {
    let count = |classes: &[Class]| findings.iter().filter(|found| classes.contains(&found.class)).count();
    let busy = census.windows.saturating_sub(findings.len());
    let idle = count(&[Class::NoWrapUp, Class::Wrapped, Class::WrappedButStub]);
    let line = format!(
        "{busy} busy | {idle} idle | {} retained | {} idle-too-long | {} pane-absent | {} over-limit | {} orphan-async | \
         0 interrupted | 0 parked-skeptic | 0 idle-children | {} awaiting-input",
        count(&[Class::Retained]),
        count(&[Class::IdleTooLong]),
        count(&[Class::PaneAbsent]),
        count(&[Class::OverLimit]),
        count(&[Class::IdleOrphanAsync]),
        census.awaiting_input,
    );
    if census.log_missing {
        format!("PARTIAL {line} (the action log could not be read)")
    } else if census.unclear > 0 {
        format!("PARTIAL {line} ({} of {} windows could not be read)", census.unclear, census.windows)
    } else {
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_counted_once() {
        let classes = [Class::NoWrapUp, Class::Wrapped, Class::Retained, Class::PaneAbsent, Class::OverLimit];
        let findings: Vec<_> =
            classes.into_iter().map(|class| Finding { label: "w".into(), class, line: String::new() }).collect();
        let census = Census { windows: 9, awaiting_input: 1, ..Census::default() };
        assert_eq!(
            counts(&census, &findings),
            "4 busy | 2 idle | 1 retained | 0 idle-too-long | 1 pane-absent | 1 over-limit | 0 orphan-async | \
             0 interrupted | 0 parked-skeptic | 0 idle-children | 1 awaiting-input"
        );
        let partial = counts(&Census { unclear: 2, ..census }, &findings);
        assert!(partial.starts_with("PARTIAL 4 busy") && partial.ends_with("(2 of 9 windows could not be read)"));
        assert!(counts(&Census { log_missing: true, ..census }, &findings).contains("action log"));
    }
}
