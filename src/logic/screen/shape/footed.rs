//! A line across the screen, below it the state of the modes, the prompt row, and a footer in columns, as Gemini CLI draws
//! it. The line of a running turn stands right above the line across the screen.
//!
//! The prompt is indented by one. An empty prompt always shows a placeholder, so one without any text is being drawn, or
//! its draft begins with an empty row.

use super::ruled::is_rule;
use crate::logic::screen::composer::{BoxRows, NoBox};
use crate::logic::screen::region::{indent, is_blank_row, is_shell_row};
use crate::logic::screen::rule::Layout;
use crate::logic::screen::tail::{Item, joined};

/// Most rows between the line and the prompt.
const MAX_MODE_ROWS: usize = 6;
/// Most rows below the prompt (completions are listed there).
const MAX_FOOTER_ROWS: usize = 30;

/// Finds the live prompt.
pub(in crate::logic::screen) fn find(layout: &Layout, rows: &[String]) -> Result<BoxRows, NoBox> {
    let end = rows.iter().rposition(|row| !is_blank_row(row)).ok_or(NoBox::NoRule)?;
    let top = rows[..=end].iter().rposition(|row| is_rule(row, layout.rule)).ok_or(NoBox::NoRule)?;
    let prompts = rows[top + 1..=end].iter().take(MAX_MODE_ROWS).position(|row| prompt(layout, row).is_some());
    let first = prompts.map(|at| top + 1 + at).ok_or(NoBox::NoPrompt(top))?;
    if let Some(below) = (top + 1..=end).find(|at| indent(&rows[*at]) == Some(0)) {
        return Err(NoBox::Remnant(below));
    }
    let bottom = rows[first..=end].iter().rposition(|row| !is_blank_row(row)).map_or(end, |at| first + at);
    let blank = rows[first..=bottom].iter().position(|row| is_blank_row(row)).map(|at| first + at);
    let blank = blank.filter(|at| bottom - at <= MAX_FOOTER_ROWS).ok_or(NoBox::NoPrompt(first))?;
    if is_shell_row(&rows[end]) {
        return Err(NoBox::Remnant(end));
    }
    let plain_prompt = prompt(layout, &rows[first]).unwrap_or(false);
    Ok(BoxRows { top, first, last: blank - 1, bottom: blank, plain_prompt, lead: 3, right: usize::MAX })
}

/// Whether the row starts with a prompt, and if so, whether it is an ordinary one: another glyph is a mode of its own.
fn prompt(layout: &Layout, row: &str) -> Option<bool> {
    let mut chars = row.chars();
    chars.next().filter(|ch| *ch == ' ')?;
    let glyph = chars.next().filter(char::is_ascii_punctuation)?;
    chars.next().is_none_or(|gap| gap == layout.gap).then_some(())?;
    Some(glyph == layout.prompt || layout.prompts.contains(glyph))
}

/// The line right above the box, if it is indented as the program's own line of a running turn is.
pub(in crate::logic::screen) fn status(rows: &[String], end: usize) -> Option<Item> {
    let at = rows[..end].iter().rposition(|row| !is_blank_row(row))?;
    let row = rows.get(at).filter(|row| indent(row) == Some(1))?;
    Some(Item { text: joined(std::slice::from_ref(row)), row: at, head: true })
}

/// The items above row `end`, newest first: a list that the program itself keeps above its line, then whatever starts at
/// the left edge, and sent messages.
pub(in crate::logic::screen) fn items<'a>(
    layout: &'a Layout,
    rows: &'a [String],
    end: usize,
) -> impl Iterator<Item = Item> + 'a {
    let end = status(rows, end).map_or(end, |status| status.row);
    let aside = aside(layout, rows, end);
    let mut below = aside.as_ref().map_or(end, |aside| aside.row);
    let heads = (0..below).rev().filter_map(move |at| {
        let is_head = indent(&rows[at]) == Some(0) || prompt(layout, &rows[at]).is_some();
        if !is_head {
            return None;
        }
        let wrapped = rows[at..below].iter().take_while(|row| !is_blank_row(row)).count();
        below = at;
        Some(Item { text: joined(&rows[at..at + wrapped]), row: at, head: true })
    });
    aside.into_iter().chain(heads)
}

/// The last paragraph above `end`, if the program itself keeps it there.
fn aside(layout: &Layout, rows: &[String], end: usize) -> Option<Item> {
    let last = rows[..end].iter().rposition(|row| !is_blank_row(row))?;
    let first = rows[..last].iter().rposition(|row| is_blank_row(row)).map_or(0, |blank| blank + 1);
    let text = joined(&rows[first..=last]);
    layout.asides.iter().any(|aside| aside.is_match(&text)).then_some(Item { text, row: first, head: false })
}
