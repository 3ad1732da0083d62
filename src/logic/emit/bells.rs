//! The `standing bells` section, from what tmux lists.

use crate::logic::signal::{Commit, Section, SectionKind};
use crate::logic::snapshot::PaneFacts;
use crate::logic::worker::scope::{WindowRow, rings};

use super::clean::label;

/// Rows of one emit; further bells stay set and are told in the next one.
const MAX_ROWS: usize = 100;

/// The bells that stand on windows in scope; `None` if none does.
pub fn section<'a>(windows: impl IntoIterator<Item = &'a WindowRow<'a>>, target: &str) -> Option<Section> {
    let ringing: Vec<&PaneFacts> = windows
        .into_iter()
        .filter(|row| row.facts.bell && rings(&row.facts.window_name, target))
        .map(|row| row.facts)
        .collect();
    if ringing.is_empty() {
        return None;
    }
    let told: Vec<_> = ringing.iter().take(MAX_ROWS).collect();
    let mut lines: Vec<String> =
        told.iter().map(|row| format!("  - {} (idx {})", label(row.window_name.as_str()), row.window_index)).collect();
    let more = ringing.len().saturating_sub(told.len());
    if more > 0 {
        lines.push(format!("  [+{more} more bells; told in the next report]"));
    }
    Some(Section {
        kind: SectionKind::Bells,
        lines,
        commits: vec![Commit::ClearBells { windows: told.iter().map(|row| row.window).collect() }],
        pages: true,
        windows: told.iter().map(|row| row.window_name.clone()).collect(),
    })
}
