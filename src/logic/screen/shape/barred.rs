//! Blocks with a bar at their left, the input box the one that ends in a corner, as opencode draws it.
//!
//! Dialogs take the box's place at the bottom, without the corner; pickers float over the page and a box that looks live,
//! so the whole screen has to be seen. Beside the page there may be a column of its own, so the box ends where its lower
//! edge does.

use super::paragraphs;
use crate::logic::screen::composer::{BoxRows, NoBox};
use crate::logic::screen::dialog::Dialog;
use crate::logic::screen::region::{indent, is_blank_row, is_shell_row};
use crate::logic::screen::rule::Layout;
use crate::logic::screen::tail::{Item, joined};

/// Most rows below the box.
const MAX_FOOTER_ROWS: usize = 24;
/// Most rows of a box or dialog.
const MAX_ROWS: usize = 60;
/// Corner below the bar of the input box.
const CORNER: char = '╹';
/// What the lower edge consists of.
const EDGE: char = '▀';
/// How many of a dialog's last rows may hold the key hints.
const HINT_ROWS: usize = 3;

/// Finds the live input box.
pub(in crate::logic::screen) fn find(layout: &Layout, rows: &[String]) -> Result<BoxRows, NoBox> {
    let end = rows.iter().rposition(|row| !is_blank_row(row)).ok_or(NoBox::NoRule)?;
    let lowest = end.saturating_sub(MAX_FOOTER_ROWS);
    let (corner, column, width) = (lowest..=end)
        .rev()
        .find_map(|at| lower_edge(&rows[at]).map(|(column, width)| (at, column, width)))
        .ok_or(NoBox::NoRule)?;
    if is_shell_row(&rows[end]) {
        return Err(NoBox::Remnant(end));
    }
    if let Some(picker) = picker(layout, &rows[..=end]) {
        return Err(NoBox::NoPrompt(picker));
    }
    let top = block(layout, rows, corner, column).ok_or(NoBox::NoPrompt(corner))?;
    let right = column + 1 + width;
    let inner = |at: usize| inside(&rows[at], column, right);
    // The last paragraph names the mode and the model.
    let blank = (top..corner).rev().find(|at| inner(*at).is_empty()).ok_or(NoBox::NoPrompt(corner))?;
    let mode: String = (blank + 1..corner).map(inner).collect();
    if !mode.contains('·') {
        return Err(NoBox::NoPrompt(corner - 1));
    }
    let first = (top..blank).find(|at| !inner(*at).is_empty()).unwrap_or(blank);
    let last = (first..blank).rev().find(|at| !inner(*at).is_empty()).unwrap_or(first);
    Ok(BoxRows { top, first, last, bottom: corner, plain_prompt: true, lead: column + 3, right })
}

/// Column of the corner and width of the edge, if the row is the lower edge of a box.
fn lower_edge(row: &str) -> Option<(usize, usize)> {
    let column = indent(row)?;
    let mut chars = row.chars().skip(column);
    chars.next().filter(|ch| *ch == CORNER)?;
    let width = chars.take_while(|ch| *ch == EDGE).count();
    (width >= 10).then_some((column, width))
}

/// First row of the block of bars in this column that ends above `end`.
fn block(layout: &Layout, rows: &[String], end: usize, column: usize) -> Option<usize> {
    let has_bar = |at: &usize| rows.get(*at).and_then(|row| row.chars().nth(column)) == Some(layout.rule);
    let count = (0..end).rev().take(MAX_ROWS).take_while(has_bar).count();
    (count > 0).then(|| end - count)
}

/// What stands in a box between its bar and its right edge.
fn inside(row: &str, column: usize, right: usize) -> String {
    let text: String = row.chars().take(right).skip(column + 1).collect();
    text.trim().to_owned()
}

/// The heading of a picker that floats over the page: its key stands at the right, and its text below begins in the
/// column of its name.
fn picker(layout: &Layout, rows: &[String]) -> Option<usize> {
    (0..rows.len()).find(|at| {
        let Some(found) = layout.picker.as_ref().and_then(|picker| picker.captures(&rows[*at])) else { return false };
        let Some(name) = found.name("name") else { return false };
        let column = rows[*at][..name.start()].chars().count();
        let begins_there = |row: &String| {
            let before: String = row.chars().take(column).collect();
            row.chars().nth(column).is_some_and(|ch| !ch.is_whitespace()) && before.ends_with("   ")
        };
        rows.iter().skip(at + 1).take(3).any(begins_there)
    })
}

/// Finds a live dialog: a block of bars that ends the screen, with key hints at its end; or a picker.
pub(in crate::logic::screen) fn dialog(layout: &Layout, rows: &[String]) -> Result<Dialog, &'static str> {
    let end = rows.iter().rposition(|row| !is_blank_row(row)).ok_or("blank-screen")?;
    if is_shell_row(&rows[end]) {
        return Err("shell-prompt-below");
    }
    if let Some(top) = picker(layout, &rows[..=end]) {
        let text = rows[top..=end].iter().map(|row| row.trim()).collect::<Vec<_>>().join("\n");
        return Ok(Dialog { top, text, hint: Some("esc".to_owned()), ..Dialog::default() });
    }
    let column = indent(&rows[end]).ok_or("blank-screen")?;
    let top = block(layout, rows, end + 1, column).ok_or("no-options-and-no-key-hints")?;
    let lines: Vec<String> = rows[top..=end].iter().map(|row| inside(row, column, usize::MAX)).collect();
    let filled: Vec<&String> = lines.iter().filter(|line| !line.is_empty()).collect();
    let skip = filled.len().saturating_sub(HINT_ROWS);
    let last = filled.iter().skip(skip).map(|line| line.as_str()).collect::<Vec<_>>().join(" ");
    let hint = layout.hint.find(&last).ok_or("no-options-and-no-key-hints")?;
    let text = filled.iter().map(|line| line.as_str()).collect::<Vec<_>>().join("\n");
    let numbered = |line: &&&String| line.trim_start_matches(|ch: char| ch.is_ascii_digit()).starts_with(". ");
    let mut options: Vec<String> = filled.iter().filter(numbered).map(|line| (**line).clone()).collect();
    if options.is_empty() {
        // Buttons stand beside each other in the row of the hints.
        let before = last.find(hint.as_str()).and_then(|at| last.get(..at)).unwrap_or_default();
        let buttons =
            filled.iter().rev().find(|line| before.starts_with(line.get(..4).unwrap_or("\0")) || line.contains("   "));
        let row = buttons.map_or("", |line| line.as_str());
        options = row.split("   ").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect();
    }
    Ok(Dialog {
        top,
        options: options.join("\n"),
        question: filled.first().map(|line| (*line).clone()).unwrap_or_default(),
        question_row: top,
        text,
        hint: Some(hint.as_str().to_owned()),
        ..Dialog::default()
    })
}

/// The blocks above row `end`, newest first; a block of bars is marked with one.
pub(in crate::logic::screen) fn items<'a>(
    layout: &'a Layout,
    rows: &'a [String],
    end: usize,
) -> impl Iterator<Item = Item> + 'a {
    paragraphs(rows, 0, end).filter_map(move |found| {
        let (row, rows) = (found.start, rows.get(found)?);
        let has_bar = rows.first()?.trim_start().starts_with(layout.rule);
        let plain: Vec<String> = rows.iter().map(|row| row.replace(layout.rule, " ")).collect();
        let text = joined(&plain);
        let text = if has_bar { format!("{} {text}", layout.rule) } else { text };
        Some(Item { text, row, head: true })
    })
}
