//! The input box and what stands in it. Where it is depends on the agent's shape ([`super::shape`]); how its text is
//! told from a suggestion does not.
//!
//! A box counts only while nothing but its footer stands below it.

use super::rule::Layout;
use super::shape::{Shape, barred, footed, line, open, ruled};
use super::style::{Cell, StyledRow, parse_rows};
use crate::logic::pane::InputRow;

/// Rows of the input box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxRows {
    /// The line above the box (its first row, if it wrapped).
    pub top: usize,
    /// First row of text.
    pub first: usize,
    /// Last row of text.
    pub last: usize,
    /// The line below the box (the lowest one, if it wrapped).
    pub bottom: usize,
    /// Whether the row starts with the profile's prompt glyph; another glyph is a mode of its own (a shell command).
    pub plain_prompt: bool,
    /// Characters before the text of the first row: its prompt.
    pub lead: usize,
    /// Number of characters of a row up to the box's right edge.
    pub right: usize,
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
    /// A prompt that was sent, with what it led to below; the row is the first of that.
    Running(usize),
    /// A prompt under a dialog that floats over the page and takes its keys; the row is one of the dialog's.
    Covered(usize),
}

impl NoBox {
    /// The stable id used as evidence, and the row that decided it.
    pub const fn reason(self) -> (&'static str, Option<usize>) {
        match self {
            Self::NoRule => ("no-input-box", None),
            Self::NoPrompt(row) => ("input-box-without-prompt", Some(row)),
            Self::Remnant(row) => ("text-below-input-box", Some(row)),
            Self::Covered(row) => ("dialog-over-input-box", Some(row)),
            Self::Running(row) => ("output-below-prompt", Some(row)),
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

/// Finds the live input box.
pub fn find(layout: &Layout, rows: &[String]) -> Result<BoxRows, NoBox> {
    match layout.shape {
        Shape::Ruled => ruled::find(layout, rows),
        Shape::Open => open::find(layout, rows),
        Shape::Footed => footed::find(layout, rows),
        Shape::Barred => barred::find(layout, rows),
        Shape::Line => line::find(layout, rows),
        Shape::None => Err(NoBox::NoRule),
    }
}

/// Whether a dialog may float over the page above a box that was found, so that all of the screen has to be seen.
pub fn may_be_covered(layout: &Layout, rows: &[String], at: BoxRows) -> bool {
    layout.shape == Shape::Open && open::may_be_covered(rows, at.bottom)
}

/// Reads what stands in the box. `styled` are the box's rows with escape sequences, from row `first` on.
pub fn read(layout: &Layout, rows: &[String], at: BoxRows, styled: Option<(u16, &[String])>) -> Composer {
    let text = text_of(layout, rows, at);
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
        _ if text.is_empty() && layout.is_never_empty => InputRow::Unclear,
        _ if text.is_empty() => InputRow::Blank,
        Some(cells) => judge_cells(layout, cells),
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
fn text_of(layout: &Layout, rows: &[String], at: BoxRows) -> String {
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate().take(at.last + 1).skip(at.first) {
        let row = row.char_indices().nth(at.right).map_or(row.as_str(), |(end, _)| &row[..end]);
        let inner = if i == at.first {
            skip_chars(row, at.lead)
        } else {
            // Further rows stand below the text of the first, a bar before them at most.
            let before = |ch: char| ch.is_whitespace() || ch == layout.rule;
            skip_chars(row, row.chars().take(at.lead).take_while(|ch| before(*ch)).count())
        };
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
        row.cells.truncate(at.right);
        row.cells.drain(..row.cells.len().min(at.lead));
    }
    Some(cells)
}

/// Tells a suggestion (dim, its first glyph under the cursor) from typed text.
fn judge_cells(layout: &Layout, rows: &[StyledRow]) -> InputRow {
    let visible: Vec<Cell> = rows
        .iter()
        .flat_map(|row| &row.cells)
        .copied()
        .filter(|cell| !cell.ch.is_whitespace() && !is_chrome(*cell))
        .collect();
    let is_dim = |cell: &Cell| cell.attr.dim || cell.attr.fg.is_some_and(|fg| layout.ghost_colours.contains(&fg));
    let typed = visible.iter().any(|cell| !is_dim(cell) && !cell.attr.reverse);
    let dim = visible.iter().any(is_dim);
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
