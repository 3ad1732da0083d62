//! A dialog: options with a cursor, or a line of key hints, that own the bottom of a screen without an input box.

use super::region::{indent, is_blank_row, is_shell_row, unframed_row};
use super::rule::Layout;
use super::shape::ruled::is_rule;
use super::shape::{Shape, barred, line};

/// Most rows above the options that are searched for the dialog's upper edge.
const MAX_ROWS: usize = 60;
/// How many of the last rows may hold the key hints.
const HINT_ROWS: usize = 3;
/// Most rows of a question.
const QUESTION_ROWS: usize = 6;

/// What a dialog shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dialog {
    /// First row of the dialog.
    pub top: usize,
    /// Row of the option that Enter would choose.
    pub cursor_row: Option<usize>,
    /// Labels in order, one a line.
    pub options: String,
    /// Which of the labels is under the cursor, counted from zero.
    pub chosen: Option<usize>,
    /// The paragraph right above the options.
    pub question: String,
    /// First row of the question.
    pub question_row: usize,
    /// The whole dialog.
    pub text: String,
    /// The key hints, if any.
    pub hint: Option<String>,
}

/// Finds a live dialog on a screen that has no input box; `Err` says why there is none.
pub fn find(layout: &Layout, rows: &[String]) -> Result<Dialog, &'static str> {
    match layout.shape {
        Shape::Barred => return barred::dialog(layout, rows),
        Shape::Line => return line::dialog(layout, rows),
        Shape::None => return Err("screen-not-read"),
        Shape::Ruled | Shape::Open | Shape::Footed => {}
    }
    let Some(end) = rows.iter().rposition(|row| !is_blank_row(row)) else { return Err("blank-screen") };
    let rows = &rows[..=end];
    if is_shell_row(&rows[end]) {
        return Err("shell-prompt-below");
    }
    let hint = hint(layout, rows);
    let options = options(layout, rows, hint.is_some());
    let Some((first, last, cursor_row, labels, chosen)) = options else {
        let top = upper_edge(layout, rows, end);
        // A page with a scroll bar hides its key hints; its upper edge is drawn by nothing else.
        let page = is_page_edge(layout, &rows[top]) && rows[top + 1..].iter().all(|row| indent(row) != Some(0));
        if hint.is_none() && !page {
            return Err("no-options-and-no-key-hints");
        }
        return Ok(Dialog { top, text: text(&rows[top..]), hint, ..Dialog::default() });
    };
    if let Some(stray) = rows[last + 1..].iter().find(|row| indent(row) == Some(0) && !row.starts_with('│'))
        && hint.is_none()
        && !is_divider(stray)
    {
        return Err("text-below-options");
    }
    let (question_row, question) = question(layout, rows, first);
    let top = upper_edge(layout, rows, first);
    Ok(Dialog {
        top,
        cursor_row: Some(cursor_row),
        options: labels,
        chosen: Some(chosen),
        question,
        question_row,
        text: text(&rows[top..]),
        hint,
    })
}

/// The key hints at the bottom, wrapped rows joined.
fn hint(layout: &Layout, rows: &[String]) -> Option<String> {
    let last: Vec<String> =
        rows.iter().rev().filter(|row| !is_blank_row(row)).take(HINT_ROWS).map(|row| unframed_row(row)).collect();
    let joined = last.into_iter().rev().collect::<Vec<_>>().join(" ");
    layout.hint.find(&joined).map(|found| found.as_str().to_owned())
}

/// The last option list: first row, last row, row of the cursor, labels, and which of them is under the cursor.
fn options(layout: &Layout, rows: &[String], hinted: bool) -> Option<(usize, usize, usize, String, usize)> {
    let top = conversation_end(layout, rows);
    let candidate = |(at, row): (usize, &String)| {
        let column = cursor_column(layout, row)?;
        // A sent message stands at the left edge with the same glyph; only a numbered label or key hints tell.
        let label: String = row.chars().skip(column).take(4).collect();
        let numbered = label.starts_with(|ch: char| ch.is_ascii_digit()) && label.contains('.');
        (indent(row) != Some(0) || hinted || numbered).then_some((at, column))
    };
    let (lowest, column) = rows.iter().enumerate().skip(top).rev().take(MAX_ROWS).find_map(candidate)?;
    // Below the options there may be a field for words of one's own, with the same glyph.
    let above = rows[..lowest].iter().enumerate().skip(top).rev().take_while(|(_, row)| indent(row) != Some(0));
    let mut above = above.filter(|(_, row)| cursor_column(layout, row) == Some(column));
    let is_field = layout.shape == Shape::Open && Kind::of(&rows[lowest], column) == Kind::Plain;
    let listed = above.find(|(_, row)| is_field && Kind::of(row, column) == Kind::Numbered);
    let cursor_row = listed.map_or(lowest, |(at, _)| at);
    let mut columns = vec![column];
    if rows[cursor_row].chars().nth(column) == Some(layout.tick) {
        columns.push(column + 2);
    }
    let kind = |row: &str| Kind::of(row, column);
    let chosen_kind = kind(&rows[cursor_row]);
    // In a narrow pane labels move by a column, and in a frame they wrap to the column of the others; numbers tell.
    let squeezed = layout.shape == Shape::Ruled && chosen_kind == Kind::Numbered;
    let framed = squeezed && rows[cursor_row].trim_start().starts_with('│');
    let is_sibling = |row: &str| {
        text_column(row).is_some_and(|at| match layout.shape {
            _ if squeezed && at.abs_diff(column) <= 1 && Kind::of(row, at) == Kind::Numbered => true,
            _ if framed => false,
            Shape::Open => columns.contains(&at) && kind(row) == chosen_kind,
            _ => columns.contains(&at),
        })
    };
    let furthest_left = if framed { column.saturating_sub(1) } else { column + 1 };
    let passes =
        |row: &str| is_blank_row(row) || is_divider(row) || text_column(row).is_some_and(|at| at >= furthest_left);
    let (mut first, mut last) = (cursor_row, cursor_row);
    for at in (0..cursor_row).rev() {
        if is_sibling(&rows[at]) && !is_divider(&rows[at]) {
            first = at;
        } else if !passes(&rows[at]) {
            break;
        }
    }
    for (at, row) in rows.iter().enumerate().skip(cursor_row + 1) {
        if is_sibling(row) && !is_divider(row) {
            last = at;
        } else if !passes(row) {
            break;
        }
    }
    if first == last && !hinted {
        return None;
    }
    let labelled: Vec<usize> = (first..=last).filter(|at| *at == cursor_row || is_sibling(&rows[*at])).collect();
    let labels = labelled.iter().map(|at| {
        let label = unframed_row(&rows[*at]);
        label.trim_start_matches(|ch| ch == ' ' || layout.option_cursor.contains(ch)).to_owned()
    });
    let chosen = labelled.iter().position(|at| *at == cursor_row)?;
    Some((first, last, cursor_row, labels.collect::<Vec<_>>().join("\n"), chosen))
}

/// How a label begins. Where a dialog's text stands in the column of its options, only this tells them apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// With a number.
    Numbered,
    /// With a box to tick.
    Boxed,
    /// With a word.
    Plain,
}

impl Kind {
    /// How the label that starts in this column begins.
    fn of(row: &str, column: usize) -> Self {
        let mut chars = row.chars().skip(column).skip_while(char::is_ascii_digit);
        let has_digits = row.chars().nth(column).is_some_and(|ch| ch.is_ascii_digit());
        match chars.next() {
            Some('.' | ')') if has_digits => Self::Numbered,
            Some('[') if !has_digits => Self::Boxed,
            _ => Self::Plain,
        }
    }
}

/// Column of the label after an option cursor; the blank after it is an ordinary one.
fn cursor_column(layout: &Layout, row: &str) -> Option<usize> {
    let start = text_column(row)?;
    let mut chars = row.chars().skip(start);
    chars.next().filter(|ch| layout.option_cursor.contains(*ch))?;
    chars.next().filter(|ch| *ch == ' ')?;
    chars.next().filter(|ch| !ch.is_whitespace()).map(|_| start + 2)
}

/// Column of the first visible character inside a frame.
fn text_column(row: &str) -> Option<usize> {
    row.chars().position(|ch| !ch.is_whitespace() && ch != '│')
}

/// Whether the row is a line drawn across the dialog.
fn is_divider(row: &str) -> bool {
    let row = row.trim_matches(|ch: char| ch.is_whitespace() || matches!(ch, '╭' | '╮' | '╰' | '╯' | '│'));
    row.chars().take_while(|ch| matches!(ch, '─' | '╌' | '▔' | '━')).count() >= 5
}

/// The paragraph right above the options, at most one blank row between.
fn question(layout: &Layout, rows: &[String], first: usize) -> (usize, String) {
    if layout.shape == Shape::Open {
        // The question stands above what it is about, with blank rows between.
        let top = upper_edge(layout, rows, first);
        return (top, text(&rows[top..first]));
    }
    let blanks = rows[..first].iter().rev().take_while(|row| unframed_row(row).is_empty()).count();
    if blanks > 1 {
        return (first, String::new());
    }
    let end = first - blanks;
    let belongs = |row: &&String| !(unframed_row(row).is_empty() || is_divider(row) || is_rule(row, layout.rule));
    let count = rows[..end].iter().rev().take(QUESTION_ROWS).take_while(belongs).count();
    (end - count, text(&rows[end - count..end]).replace('\n', " "))
}

/// The row that the conversation ends above, which may quote any list: the lowest line across the screen, or the one above
/// it where a dialog has a line inside.
fn conversation_end(layout: &Layout, rows: &[String]) -> usize {
    let is_edge = |row: &String| is_rule(row, layout.rule) || is_page_edge(layout, row);
    let Some(lowest) = rows.iter().rposition(is_edge) else { return 0 };
    // One that is taller than the screen has its upper edge beyond it.
    let above = rows[..lowest].iter().rposition(is_edge).unwrap_or(0);
    let is_sent = |row: &str| {
        let label = cursor_column(layout, row).filter(|column| *column == 2);
        label.is_some_and(|column| Kind::of(row, column) == Kind::Plain)
    };
    let is_talk = |row: &String| layout.has_sign(row) || row.trim_start().starts_with(layout.child) || is_sent(row);
    if rows[above..lowest].iter().any(is_talk) { lowest } else { above }
}

/// The first row below the nearest line or frame above `from`; the whole screen if the dialog is taller than that.
fn upper_edge(layout: &Layout, rows: &[String], from: usize) -> usize {
    let lowest = from.saturating_sub(MAX_ROWS);
    if layout.shape == Shape::Open {
        let above = rows[lowest..from].iter().rposition(|row| indent(row) == Some(0));
        return above.map_or(lowest, |at| lowest + at + 1);
    }
    let is_edge = |row: &String| {
        let row = row.trim_start();
        is_rule(row, layout.rule) || is_page_edge(layout, row) || row.starts_with("╭──")
    };
    rows[lowest..=from].iter().rposition(is_edge).map_or(lowest, |at| lowest + at)
}

/// Whether the row is the upper edge of a page that covers the input box.
fn is_page_edge(layout: &Layout, row: &str) -> bool {
    is_rule(row, layout.page_edge)
}

/// Rows without frames, one a line, blank ones left out.
fn text(rows: &[String]) -> String {
    let rows: Vec<String> = rows.iter().map(|row| unframed_row(row)).filter(|row| !row.is_empty()).collect();
    rows.join("\n")
}
