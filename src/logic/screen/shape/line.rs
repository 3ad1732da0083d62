//! A line across the screen and right below it a prompt at the left edge, as a line editor draws it (aider). What was sent
//! stays where it was, and its output follows below.
//!
//! Nothing on the screen tells a draft from what was sent a moment ago, so both are drafts until something follows.

use super::paragraphs;
use super::ruled::is_rule;
use crate::logic::screen::composer::{BoxRows, NoBox};
use crate::logic::screen::dialog::Dialog;
use crate::logic::screen::region::{is_blank_row, is_shell_row};
use crate::logic::screen::rule::Layout;
use crate::logic::screen::tail::{Item, joined};

/// Most characters of a prompt (the mode before its glyph).
const MAX_PROMPT: usize = 20;

/// Finds the live prompt.
pub(in crate::logic::screen) fn find(layout: &Layout, rows: &[String]) -> Result<BoxRows, NoBox> {
    let end = rows.iter().rposition(|row| !is_blank_row(row)).ok_or(NoBox::NoRule)?;
    let top = (0..end)
        .rev()
        .find(|at| is_rule(&rows[*at], layout.rule) && prompt(layout, &rows[at + 1]).is_some())
        .ok_or(NoBox::NoRule)?;
    let first = top + 1;
    let lead = prompt(layout, &rows[first]).ok_or(NoBox::NoPrompt(first))?;
    let last = rows[first..=end].iter().position(|row| is_blank_row(row)).map_or(end, |blank| first + blank - 1);
    if last < end {
        let is_over = is_shell_row(&rows[end]) && prompt(layout, &rows[end]).is_none();
        return Err(if is_over { NoBox::Remnant(end) } else { NoBox::Running(last + 1) });
    }
    if last > first && is_shell_row(&rows[end]) {
        return Err(NoBox::Remnant(end));
    }
    // A line right below the prompt closes a box, which a line editor has not.
    if let Some(line) = (first + 1..=last).find(|at| is_rule(&rows[*at], layout.rule)) {
        return Err(NoBox::Remnant(line));
    }
    Ok(BoxRows { top, first, last, bottom: last, plain_prompt: true, lead, right: usize::MAX })
}

/// Length of the prompt that the row starts with: the glyph, perhaps with the name of a mode before it.
fn prompt(layout: &Layout, row: &str) -> Option<usize> {
    let at = row.chars().take(MAX_PROMPT).position(|ch| ch == layout.prompt)?;
    let mode = row.chars().take(at).all(|ch| ch.is_ascii_lowercase() || matches!(ch, '-' | ' '));
    let gap = row.chars().nth(at + 1).is_none_or(|gap| gap == layout.gap);
    (mode && gap).then_some(at + 2)
}

/// Finds a live question: a paragraph that ends the screen with its answers and the one that Enter takes, and what may
/// have been typed behind it.
pub(in crate::logic::screen) fn dialog(layout: &Layout, rows: &[String]) -> Result<Dialog, &'static str> {
    let end = rows.iter().rposition(|row| !is_blank_row(row)).ok_or("blank-screen")?;
    let first = rows[..=end].iter().rposition(|row| is_blank_row(row)).map_or(0, |blank| blank + 1);
    // A word that the edge of the screen cuts goes on in the next row.
    let text: String = rows[first..=end].iter().map(|row| row.trim_end_matches('\u{a0}')).collect();
    let found = layout.hint.captures(&text).ok_or("no-options-and-no-key-hints")?;
    let group = |name: &str| found.name(name).map_or("", |part| part.as_str());
    let letters = |label: &str| label.chars().filter(|ch| ch.is_alphabetic()).collect::<String>().to_lowercase();
    let options: Vec<&str> = group("answers").split('/').map(str::trim).collect();
    let default = letters(group("default"));
    Ok(Dialog {
        top: first,
        chosen: options.iter().position(|option| letters(option) == default),
        options: options.join("\n"),
        question: group("question").trim().to_owned(),
        question_row: first,
        hint: Some(group("answers").to_owned()),
        text,
        ..Dialog::default()
    })
}

/// The paragraphs above row `end` up to the line before it, newest first.
pub(in crate::logic::screen) fn items<'a>(
    layout: &Layout,
    rows: &'a [String],
    end: usize,
) -> impl Iterator<Item = Item> + 'a {
    let from = rows[..end].iter().rposition(|row| is_rule(row, layout.rule)).map_or(0, |line| line + 1);
    paragraphs(rows, from, end)
        .filter_map(|found| Some(Item { row: found.start, text: joined(rows.get(found)?), head: true }))
}
