//! The input box: the prompt row between two rules at the bottom of the screen, and what stands in it.
//!
//! A box counts only while nothing but its footer stands below it. Footer rows are indented; text at the left edge below
//! a box is something that was printed after the agent left (a shell prompt, the next program), so the box is a remnant.

use super::region::{indent, is_blank_row, is_shell_row};
use super::rule::Layout;
use super::style::{Cell, StyledRow, parse_rows};
use crate::logic::pane::InputRow;

/// Most rows that may stand below a live box (completion lists, key help, agent lists).
const MAX_FOOTER_ROWS: usize = 30;

/// Rows of the input box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxRows {
    /// The line above the box (the lowest one, if it wrapped).
    pub top: usize,
    /// First row of text.
    pub first: usize,
    /// Last row of text.
    pub last: usize,
    /// The line below the box (the lowest one, if it wrapped).
    pub bottom: usize,
    /// Whether the row starts with the profile's prompt glyph; another glyph is a mode of its own (a shell command).
    pub plain_prompt: bool,
}

/// Why no live input box was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoBox {
    /// No line like those around a box.
    NoRule,
    /// Lines, but no prompt row between them; the row is the one that does not belong.
    NoPrompt(usize),
    /// A box with something printed below it; the row is the first that can't be footer.
    Remnant(usize),
}

impl NoBox {
    /// The stable id used as evidence, and the row that decided it.
    pub const fn reason(self) -> (&'static str, Option<usize>) {
        match self {
            Self::NoRule => ("no-input-box", None),
            Self::NoPrompt(row) => ("input-box-without-prompt", Some(row)),
            Self::Remnant(row) => ("text-below-input-box", Some(row)),
        }
    }
}

/// A folded paste.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Exactly as shown.
    pub text: String,
    /// How many lines it says it holds beyond the first, where it says so.
    pub lines: Option<u32>,
}

/// What stands in the input box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composer {
    /// First screen row of the text.
    pub first_row: u16,
    /// Last screen row of the text.
    pub last_row: u16,
    /// The text, rows joined by newlines, without prompt glyph and indentation. A suggestion counts as text here.
    pub text: String,
    /// Whether anybody typed it.
    pub input: InputRow,
    /// The first folded paste in it.
    pub chip: Option<Chip>,
    /// Whether the agent draws its cursor in the box; `None` where colours were not seen.
    pub cursor: Option<bool>,
    /// Whether the row is the ordinary prompt; `false` is a mode in which text means something else (a shell command).
    pub plain_prompt: bool,
}

/// Whether the row is a line like those around the box: from the left edge, of one character, perhaps with a label.
pub(super) fn is_rule(row: &str, rule: char) -> bool {
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
pub fn find(layout: &Layout, rows: &[String]) -> Result<BoxRows, NoBox> {
    let end = rows.iter().rposition(|row| !is_blank_row(row)).ok_or(NoBox::NoRule)?;
    let bottom = rows[..=end].iter().rposition(|row| is_rule(row, layout.rule)).ok_or(NoBox::NoRule)?;
    let mut above = bottom;
    while above > 0 && is_rule(&rows[above - 1], layout.rule) {
        above -= 1;
    }
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
    let top = first.checked_sub(1).filter(|top| is_rule(&rows[*top], layout.rule)).ok_or(NoBox::NoPrompt(first))?;
    let found = BoxRows { top, first, last: above - 1, bottom, plain_prompt };
    match not_footer(&rows[..=end], bottom) {
        Some(_) if completes(layout, rows, found) && !is_shell_row(&rows[end]) => Ok(found),
        Some(row) => Err(NoBox::Remnant(row)),
        None => Ok(found),
    }
}

/// Whether the draft is one that completions are listed for. It is a draft whatever stands below.
fn completes(layout: &Layout, rows: &[String], at: BoxRows) -> bool {
    rows.get(at.first).and_then(|row| row.chars().nth(2)).is_some_and(|ch| layout.completes.contains(ch))
}

/// Whether this is a prompt row, and if so, whether it is the ordinary one.
fn prompt_row(layout: &Layout, row: &str) -> Option<bool> {
    let mut chars = row.chars();
    let glyph = chars.next()?;
    let gap = chars.next()?;
    (gap == layout.gap && !glyph.is_whitespace()).then_some(glyph == layout.prompt)
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

/// Reads what stands in the box. `styled` are the box's rows with escape sequences, from row `first` on.
pub fn read(layout: &Layout, rows: &[String], at: BoxRows, styled: Option<(u16, &[String])>) -> Composer {
    let text = text_of(rows, at);
    let chip = layout.chips.iter().find_map(|pattern| {
        let found = pattern.captures(&text)?;
        let lines = found.name("lines").and_then(|lines| lines.as_str().parse().ok());
        Some(Chip { text: found.get(0)?.as_str().to_owned(), lines })
    });
    let cells = styled.and_then(|(first_row, raw)| box_cells(rows, at, first_row, raw));
    let cursor = cells
        .as_ref()
        .map(|rows| rows.iter().any(|row| row.end.reverse || row.cells.iter().any(|cell| cell.attr.reverse)));
    let input = match &cells {
        _ if text.is_empty() => InputRow::Blank,
        Some(cells) => judge_cells(cells),
        None => InputRow::Unclear,
    };
    // An ordinary row with nothing in it is blank; in another mode even an empty row is somebody's half-made command.
    let input = if at.plain_prompt { input } else { InputRow::Typed };
    let row = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
    Composer {
        first_row: row(at.first),
        last_row: row(at.last),
        text,
        input,
        chip,
        cursor,
        plain_prompt: at.plain_prompt,
    }
}

/// The text in the box, rows joined.
fn text_of(rows: &[String], at: BoxRows) -> String {
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate().take(at.last + 1).skip(at.first) {
        let inner = if i == at.first { skip_chars(row, 2) } else { row.strip_prefix("  ").unwrap_or(row) };
        if i > at.first {
            text.push('\n');
        }
        text.push_str(inner.trim_end());
    }
    text.truncate(text.trim_end().len());
    text
}

/// The rest of the row after this many characters.
fn skip_chars(row: &str, count: usize) -> &str {
    row.char_indices().nth(count).map_or("", |(i, _)| &row[i..])
}

/// Cells of the box's text, without prompt and indentation; `None` if the styled rows are not those of the box.
///
/// Rows that were read with colours and carry none are in the default colours: that is how tmux prints a row that is
/// captured alone.
fn box_cells(rows: &[String], at: BoxRows, first_row: u16, raw: &[String]) -> Option<Vec<StyledRow>> {
    let skip = at.first.checked_sub(usize::from(first_row))?;
    let wanted = at.last - at.first + 1;
    let raw = raw.get(skip..skip + wanted).map(|_| &raw[..skip + wanted])?;
    let mut cells = parse_rows(raw).split_off(skip);
    for (i, row) in cells.iter_mut().enumerate() {
        // The styled rows are read later than the plain ones; if the text differs, the screen moved on in between.
        let text: String = row.cells.iter().map(|cell| cell.ch).collect();
        if text.trim_end() != rows.get(at.first + i)?.trim_end() {
            return None;
        }
        row.cells.drain(..row.cells.len().min(2));
    }
    Some(cells)
}

/// Tells a suggestion (dim, its first glyph under the cursor) from typed text.
fn judge_cells(rows: &[StyledRow]) -> InputRow {
    let visible: Vec<Cell> = rows
        .iter()
        .flat_map(|row| &row.cells)
        .copied()
        .filter(|cell| !cell.ch.is_whitespace() && !is_chrome(*cell))
        .collect();
    let typed = visible.iter().any(|cell| !cell.attr.dim && !cell.attr.reverse);
    let dim = visible.iter().any(|cell| cell.attr.dim);
    match (visible.is_empty(), typed, dim) {
        (true, ..) => InputRow::Blank,
        (_, true, _) => InputRow::Typed,
        (_, false, true) => InputRow::Ghost,
        // One glyph under the cursor and nothing else: a one-letter draft and a one-letter suggestion look alike.
        (_, false, false) => InputRow::Unclear,
    }
}

/// Dim box-drawing that agents paint into the row (a frame, a scroll bar) is no text.
fn is_chrome(cell: Cell) -> bool {
    cell.attr.dim && ('\u{2500}'..='\u{259f}').contains(&cell.ch)
}
