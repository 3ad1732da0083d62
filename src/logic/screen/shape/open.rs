//! A prompt row without lines around it, as Codex draws it: the prompt's glyph at the left edge, a blank row above and
//! below, an indented footer. The same glyph stands before sent messages and is the cursor of option lists.
//!
//! The live prompt is the last such row, and nothing at the left edge stands below it. An option list has its key hints
//! where the prompt has its footer; that is what tells them apart. Some dialogs float over the page instead, with the prompt still below.

use crate::logic::screen::composer::{BoxRows, NoBox};
use crate::logic::screen::region::{indent, is_blank_row, is_shell_row, unframed_row};
use crate::logic::screen::rule::Layout;
use crate::logic::screen::tail::{Item, joined, paragraph};

/// Most rows of a footer (completions are listed there).
const MAX_FOOTER_ROWS: usize = 30;
/// How many of the last rows may hold an option list's key hints.
const HINT_ROWS: usize = 3;
/// Most rows that the program adds below an answer that are tried.
const MAX_ASIDES: usize = 6;
/// Most rows between the chosen label of a floating dialog and its key hints.
const MAX_PANEL_ROWS: usize = 20;
/// Column from which on no text quotes a list of options: deeper than lists in lists are indented.
const DEEP_COLUMN: usize = 10;

/// Finds the live prompt.
pub(in crate::logic::screen) fn find(layout: &Layout, rows: &[String]) -> Result<BoxRows, NoBox> {
    let end = rows.iter().rposition(|row| !is_blank_row(row)).ok_or(NoBox::NoRule)?;
    let first = rows[..=end].iter().rposition(|row| is_prompt(layout, row)).ok_or(NoBox::NoRule)?;
    let helps = has_help(layout, &rows[first + 1..=end]);
    let below = |at: &usize| indent(&rows[*at]) == Some(0) && !(helps && is_choice(layout, &rows[*at]));
    if let Some(below) = (first + 1..=end).find(below) {
        return Err(NoBox::Remnant(below));
    }
    let top = first.checked_sub(1).filter(|above| is_blank_row(&rows[*above])).ok_or(NoBox::NoPrompt(first))?;
    let mut blanks = rows[first..=end].iter();
    let blank =
        if helps { blanks.position(|row| is_blank_row(row)) } else { blanks.rposition(|row| is_blank_row(row)) };
    let bottom = blank.map(|at| first + at);
    let bottom = bottom.filter(|at| end - at <= MAX_FOOTER_ROWS).ok_or(NoBox::NoPrompt(first))?;
    if is_shell_row(&rows[end]) || !helps && layout.hint.is_match(&last_rows(&rows[bottom..=end])) {
        return Err(NoBox::NoPrompt(first));
    }
    if let Some(panel) = panel(layout, &rows[..top]).filter(|_| may_be_covered(rows, bottom)) {
        return Err(NoBox::Covered(panel));
    }
    let last = rows[first..bottom].iter().rposition(|row| !is_blank_row(row)).map_or(first, |at| first + at);
    Ok(BoxRows { top, first, last, bottom, plain_prompt: true, lead: 2, right: usize::MAX })
}

/// Whether the row starts with the prompt, which may have nothing after it.
fn is_prompt(layout: &Layout, row: &str) -> bool {
    let mut chars = row.chars();
    chars.next() == Some(layout.prompt) && chars.next().is_none_or(|gap| gap == layout.gap)
}

/// Whether the footer below row `bottom` is as short as under a dialog that floats over the page and takes its keys.
/// Such a dialog stands anywhere above, so the whole screen has to be seen.
pub(in crate::logic::screen) fn may_be_covered(rows: &[String], bottom: usize) -> bool {
    rows.iter().skip(bottom + 1).filter(|row| !is_blank_row(row)).count() <= 1
}

/// The first row that tells of a dialog that floats over the page: a label under the cursor, inside the page. Key hints
/// that start in its column tell, and so do numbered labels further right than people quote them.
fn panel(layout: &Layout, rows: &[String]) -> Option<usize> {
    (0..rows.len()).find(|at| {
        let mut before = rows[*at].char_indices().skip(1);
        let cursor =
            before.position(|(start, ch)| ch == layout.prompt && rows[*at][start..].chars().nth(1) == Some(' '));
        let Some(column) = cursor.map(|cursor| cursor + 3) else { return false };
        let below = rows.iter().skip(at + 1).take(MAX_PANEL_ROWS);
        let numbered = |row: &String| {
            let label = row.chars().skip(column).find(|ch| !ch.is_ascii_digit());
            row.chars().nth(column).is_some_and(|ch| ch.is_ascii_digit()) && label == Some('.')
        };
        let hints =
            |row: &String| layout.hint.find(row).is_some_and(|hint| row[..hint.start()].chars().count() == column);
        let deep = column >= DEEP_COLUMN && numbered(&rows[*at]);
        below.clone().any(hints) || deep && below.clone().any(numbered)
    })
}

/// Whether the rows below a prompt are a completion list or the list of keys, which a live prompt has below it and a
/// dialog has not.
fn has_help(layout: &Layout, rows: &[String]) -> bool {
    let below = |row: &String| layout.footer.as_ref().is_some_and(|footer| footer.is_match(&unframed_row(row)));
    rows.iter().skip_while(|row| !is_blank_row(row)).any(below)
}

/// Whether the row has the cursor of a completion list, which is not the prompt's glyph.
fn is_choice(layout: &Layout, row: &str) -> bool {
    let mut chars = row.chars();
    chars.next().is_some_and(|ch| ch != layout.prompt && layout.option_cursor.contains(ch)) && chars.next() == Some(' ')
}

/// The last rows as one line, as key hints are looked for.
fn last_rows(rows: &[String]) -> String {
    let skip = rows.len().saturating_sub(HINT_ROWS);
    rows.iter().skip(skip).map(|row| unframed_row(row)).collect::<Vec<_>>().join(" ")
}

/// The items above row `end`, newest first: lines that the program added below an answer, up to the one that closes it;
/// then the paragraphs that start at the left edge.
pub(in crate::logic::screen) fn items<'a>(
    layout: &'a Layout,
    rows: &'a [String],
    end: usize,
) -> impl Iterator<Item = Item> + 'a {
    let asides = asides(layout, rows, end);
    let rest = asides.last().map_or(end, |item| item.row);
    let heads = (0..rest).rev().filter(|at| is_head(rows, *at)).map(move |at| head(rows, at, rest));
    asides.into_iter().chain(heads)
}

/// The last paragraph that starts at the left edge.
pub(in crate::logic::screen) fn status(rows: &[String], end: usize) -> Option<Item> {
    let at = (0..end).rev().find(|at| is_head(rows, *at))?;
    Some(head(rows, at, end))
}

/// Whether a paragraph at the left edge starts in this row. Long notices wrap to the left edge.
fn is_head(rows: &[String], at: usize) -> bool {
    let starts = |row: &String| indent(row) == Some(0);
    rows.get(at).is_some_and(starts)
        && at.checked_sub(1).and_then(|above| rows.get(above)).is_none_or(|row| !starts(row))
}

/// The paragraph of a head.
fn head(rows: &[String], at: usize, end: usize) -> Item {
    Item { text: paragraph(rows.get(at..end).unwrap_or_default()), row: at, head: true }
}

/// Indented lines right above the prompt that the program itself adds, newest first.
fn asides(layout: &Layout, rows: &[String], end: usize) -> Vec<Item> {
    let mut found = Vec::new();
    for at in (0..end).rev() {
        let Some(row) = rows.get(at).filter(|row| !is_blank_row(row)) else { continue };
        let text = joined(std::slice::from_ref(row));
        let known = layout.asides.iter().any(|aside| aside.is_match(&text));
        if !known || indent(row) == Some(0) || found.len() >= MAX_ASIDES {
            break;
        }
        let closes = layout.closing.as_ref().is_some_and(|closing| closing.is_match(&text));
        found.push(Item { text, row: at, head: false });
        if closes {
            break;
        }
    }
    found
}
