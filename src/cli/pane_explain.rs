//! How `ng pane-state --explain` shows what a verdict rests on, for people and as JSON.

use std::time::Duration;

use serde::Serialize;

use crate::logic::pane::explain::{Explanation, Matched, Near, RegionSeen};
use crate::logic::pane::history::{History, Transition};
use crate::logic::pane::{PaneVerdict, WitnessSeen};
use crate::logic::time::{Timestamp, age_text};

/// What a verdict rests on.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Explain {
    /// What each witness said.
    pub(super) witnesses: Vec<WitnessSeen>,
    /// What the screen was judged by; none if no profile is for it.
    #[serde(flatten)]
    pub(super) screen: Option<Explanation>,
    /// What the running watcher saw the pane become, oldest first; none of a saved screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) history: Option<History>,
    /// When it was looked at, for the ages of the history.
    #[serde(skip)]
    pub(super) at: Timestamp,
}

/// The explanation of a verdict as lines, after the reasons.
pub(super) fn lines(explain: &Explain, verdict: &PaneVerdict) -> Vec<String> {
    let mut lines = Vec::new();
    if verdict.question.is_some() || !verdict.options.is_empty() {
        lines.push("asks:".to_owned());
        lines.extend(verdict.question.iter().map(|question| format!("    {question}")));
        for option in &verdict.options {
            lines.push(format!("  {} {}", if option.under_cursor { '>' } else { ' ' }, option.label));
        }
    }
    lines.push("witnesses:".to_owned());
    lines.extend(explain.witnesses.iter().map(witness_line));
    match &explain.screen {
        Some(screen) => screen_lines(screen, &mut lines),
        None => lines.push("screen: not judged, since no profile is for what runs here".to_owned()),
    }
    if let Some(history) = &explain.history {
        let changes: Vec<String> =
            history.transitions().iter().rev().map(|change| change_line(change, explain.at)).collect();
        lines.push(
            if changes.is_empty() { "history: no watcher has recorded this pane" } else { "history:" }.to_owned(),
        );
        lines.extend(changes);
    }
    lines
}

/// What the screen was judged by.
fn screen_lines(screen: &Explanation, lines: &mut Vec<String>) {
    lines.push(format!("screen, by the profile {} version {}:", screen.profile, screen.profile_version));
    for region in &screen.regions {
        region_lines(region, lines);
    }
    lines.push("matched:".to_owned());
    lines.extend(none_if_empty(screen.matched.iter().map(matched_line).collect()));
    lines.push("nearly matched:".to_owned());
    lines.extend(none_if_empty(screen.nearest.iter().flat_map(near_lines).collect()));
}

/// A change that the running watcher saw.
fn change_line(change: &Transition, now: Timestamp) -> String {
    let overlay = change.overlay.map(|overlay| format!(" overlay={overlay}")).unwrap_or_default();
    let Transition { at, state, rule, .. } = change;
    format!("  {:>6} ago  {state}{overlay} by {rule}", age_text(now.since(*at)))
}

/// The lines, or one that says that there are none.
fn none_if_empty(lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() { vec!["  none".to_owned()] } else { lines }
}

/// What a witness said.
fn witness_line(seen: &WitnessSeen) -> String {
    let age = seen.age_s.map_or_else(|| "-".to_owned(), |age| age_text(Duration::from_secs(age)));
    let source = seen.source.as_deref().map(|source| format!(" file={source}")).unwrap_or_default();
    format!("  {:<10} {age:>6}  {}{source}", seen.witness.word(), seen.says)
}

/// A place on the screen.
fn region_lines(region: &RegionSeen, lines: &mut Vec<String>) {
    let rows = match region.rows {
        None => "-".to_owned(),
        Some((first, last)) if first == last => first.to_string(),
        Some((first, last)) => format!("{first}-{last}"),
    };
    let mut texts = region.lines.iter().filter(|line| !line.is_empty());
    let first = texts.next().map_or("", String::as_str);
    lines.push(format!("  {:<10} {rows:>7}  {first}", region.region).trim_end().to_owned());
    lines.extend(texts.map(|line| format!("  {:<10} {:>7}  {line}", "", "")));
}

/// A rule that matched.
fn matched_line(matched: &Matched) -> String {
    let row = matched.row.map(|row| format!(" row={row}")).unwrap_or_default();
    let Matched { rule, region, line, priority, says, outcome, .. } = matched;
    format!("  {rule} {region}{row} priority={priority} says {}; {outcome}: {line}", said(says))
}

/// What a rule says, for people.
fn said(says: &[String]) -> String {
    if says.is_empty() { "nothing".to_owned() } else { says.join(" ") }
}

/// A rule that nearly matched.
fn near_lines(near: &Near) -> [String; 2] {
    let row = near.row.map(|row| format!(" row={row}")).unwrap_or_default();
    let Near { rule, region, says, percent, reason, line, .. } = near;
    [format!("  {rule} {region}{row} {percent}% would say {}: {line}", said(says)), format!("      {reason}")]
}
