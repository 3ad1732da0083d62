//! A prompt row between two lines across the screen, as Claude Code and Qwen Code draw it.
//!
//! Footer rows are indented; text at the left edge below a box is something that was printed after the agent left (a
//! shell prompt, the next program), so the box is a remnant.

use crate::logic::screen::composer::{BoxRows, NoBox};
use crate::logic::screen::region::{indent, is_blank_row, is_shell_row};
use crate::logic::screen::rule::Layout;

/// Most rows that may stand below a live box (completion lists, key help, agent lists).
const MAX_FOOTER_ROWS: usize = 30;

/// Whether the row is a line like those around the box: from the left edge, of one character, perhaps with a label.
pub(in crate::logic::screen) fn is_rule(row: &str, rule: char) -> bool {
    let row = row.trim_end();
    if !row.starts_with(rule) {
        return false;
    }
    let count = row.chars().filter(|ch| *ch == rule).count();
    let label = row.chars().filter(|ch| *ch != rule).count();
    let lead = row.chars().take_while(|ch| *ch == rule).count();
    count >= 10 && lead >= 3 && label <= 60
}

/// Finds the live input box.
pub(in crate::logic::screen) fn find(layout: &Layout, rows: &[String]) -> Result<BoxRows, NoBox> {
    let end = rows.iter().rposition(|row| !is_blank_row(row)).ok_or(NoBox::NoRule)?;
    let bottom = (0..=end).rev().find(|at| ends_line(layout, rows, *at)).ok_or(NoBox::NoRule)?;
    let above = line_top(layout, rows, bottom);
    // Upwards over the box's further rows, which are indented below the text of the first, to the prompt row.
    let mut first = None;
    for at in (0..above).rev() {
        let row = &rows[at];
        if let Some(plain_prompt) = prompt_row(layout, row) {
            first = Some((at, plain_prompt));
            break;
        }
        if !(is_blank_row(row) || row.starts_with("  ")) {
            return Err(NoBox::NoPrompt(at));
        }
    }
    let (first, plain_prompt) = first.ok_or(NoBox::NoPrompt(bottom))?;
    let top = first.checked_sub(1).filter(|top| ends_line(layout, rows, *top)).ok_or(NoBox::NoPrompt(first))?;
    // Its other rows are no part of the conversation.
    let top = line_top(layout, rows, top);
    let found = BoxRows { top, first, last: above - 1, bottom, plain_prompt, lead: 2, right: usize::MAX };
    match not_footer(&rows[..=end], bottom) {
        Some(_) if completes(layout, rows, found) && !is_shell_row(&rows[end]) => Ok(found),
        Some(row) => Err(NoBox::Remnant(row)),
        None => Ok(found),
    }
}

/// Whether a line ends in this row: all of it, or what did not fit into the row above.
fn ends_line(layout: &Layout, rows: &[String], at: usize) -> bool {
    let is_rest = |row: &str| !row.is_empty() && row.chars().all(|ch| ch == layout.rule);
    let goes_on = || at > 0 && is_rule(&rows[at - 1], layout.rule) && is_rest(rows[at].trim_end());
    is_rule(&rows[at], layout.rule) || goes_on()
}

/// The first row of the line that ends in row `at`: one that was drawn in a wider window has wrapped.
fn line_top(layout: &Layout, rows: &[String], at: usize) -> usize {
    (0..at).rev().take_while(|above| is_rule(&rows[*above], layout.rule)).last().unwrap_or(at)
}

/// Whether the draft is one that completions are listed for. It is a draft whatever stands below.
fn completes(layout: &Layout, rows: &[String], at: BoxRows) -> bool {
    rows.get(at.first).and_then(|row| row.chars().nth(2)).is_some_and(|ch| layout.completes.contains(ch))
}

/// Whether this is a prompt row, and if so, whether it is the ordinary one.
fn prompt_row(layout: &Layout, row: &str) -> Option<bool> {
    let mut chars = row.chars();
    let glyph = chars.next()?;
    let plain = glyph == layout.prompt || layout.prompts.contains(glyph);
    match chars.next() {
        Some(gap) => (gap == layout.gap && !glyph.is_whitespace()).then_some(plain),
        // A row that the agent draws without its cursor ends at the glyph.
        None => plain.then_some(true),
    }
}

/// The first row below the box that can't belong to a footer. A status line of the user's own may start at the left
/// edge, but only right below the box and with the agent's own footer after it.
fn not_footer(rows: &[String], bottom: usize) -> Option<usize> {
    let below = bottom + 1;
    if rows.len().saturating_sub(below) > MAX_FOOTER_ROWS {
        return Some(below + MAX_FOOTER_ROWS);
    }
    let edge = |at: &usize| rows.get(*at).is_some_and(|row| indent(row) == Some(0));
    let own = (below..rows.len()).take_while(edge).count();
    let last_at_edge = edge(&(rows.len() - 1));
    let skip = if last_at_edge { 0 } else { own };
    (below + skip..rows.len()).find(edge)
}
