//! What stands above the input box or dialog: blocks that start at the left edge, each with indented rows and items.
//!
//! Programs of this kind put their own signs (spinner, bullet, prompt of a sent message) at the left edge and indent
//! everything that the model or a tool said. So a quoted spinner or notice is indented, and a real one is not.

use super::region::{indent, is_blank_row};
use super::rule::Layout;
use super::shape::{Shape, barred, footed, line, open};

/// Most rows that are joined into one item's text.
const MAX_ITEM_ROWS: usize = 10;

/// A paragraph above the box: the first line of a block or one of its marked items, with its wrapped rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its text on one line.
    pub text: String,
    /// Its first row.
    pub row: usize,
    /// Whether it is the block's first line.
    pub head: bool,
}

/// Number of rows above `end` that belong to the conversation: nudges right above the box are cut off.
pub(super) fn without_nudges(layout: &Layout, rows: &[String], end: usize) -> usize {
    let mut end = end.min(rows.len());
    while let Some(row) = end.checked_sub(1).and_then(|at| rows.get(at)) {
        if !(is_blank_row(row) || layout.nudges.iter().any(|nudge| nudge.is_match(row))) {
            break;
        }
        end -= 1;
    }
    end
}

/// The items above row `end`, newest first. Read one at a time: mostly the first one already ends the walk.
pub fn items<'a>(layout: &'a Layout, rows: &'a [String], end: usize) -> Box<dyn Iterator<Item = Item> + 'a> {
    let end = without_nudges(layout, rows, end);
    match layout.shape {
        Shape::Ruled => Box::new(marked(layout, rows, end)),
        Shape::Open => Box::new(open::items(layout, rows, end)),
        Shape::Footed => Box::new(footed::items(layout, rows, end)),
        Shape::Barred => Box::new(barred::items(layout, rows, end)),
        Shape::Line => Box::new(line::items(layout, rows, end)),
        Shape::None => Box::new(std::iter::empty()),
    }
}

/// Blocks that start at the left edge, and the marked items in them.
fn marked<'a>(layout: &'a Layout, rows: &'a [String], end: usize) -> impl Iterator<Item = Item> + 'a {
    let mut below = end;
    (0..end).rev().filter_map(move |at| {
        let head = indent(&rows[at]) == Some(0);
        if !head && !rows[at].trim_start().starts_with(layout.child) {
            return None;
        }
        // Parts of a long error stand below their mark with blank rows between.
        let text = if head { paragraph(&rows[at..below]) } else { joined(&rows[at..below]) };
        below = at;
        Some(Item { text, row: at, head })
    })
}

/// The first line of the last block above row `end`.
pub fn status(layout: &Layout, rows: &[String], end: usize) -> Option<Item> {
    let end = without_nudges(layout, rows, end);
    match layout.shape {
        Shape::Ruled => {}
        Shape::Open => return open::status(rows, end),
        Shape::Footed => return footed::status(rows, end),
        Shape::Barred => return barred::items(layout, rows, end).next(),
        Shape::Line => return line::items(layout, rows, end).next(),
        Shape::None => return None,
    }
    let at = rows[..end].iter().rposition(|row| indent(row) == Some(0))?;
    let wrapped = rows[at..end].iter().skip(1).take_while(|row| !row.trim_start().starts_with(layout.child)).count();
    Some(Item { text: paragraph(&rows[at..=at + wrapped]), row: at, head: true })
}

/// Joins rows up to the first blank one into one line.
pub(super) fn paragraph(rows: &[String]) -> String {
    let end = rows.iter().position(|row| is_blank_row(row)).unwrap_or(rows.len());
    joined(&rows[..end])
}

/// Joins rows into one line.
pub(super) fn joined(rows: &[String]) -> String {
    let mut text = String::new();
    for row in rows.iter().take(MAX_ITEM_ROWS) {
        for word in row.split_whitespace() {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
        }
    }
    text
}

/// Most rows that the checksum is made of: new text comes in at the bottom, so more would be read for nothing.
const HASH_ROWS: usize = 12;

/// Checksum of the last rows above `end` without digits, nudges and repeated blanks; a change of numbers alone is no
/// change. The other value is whether there were as many rows as it wants.
pub fn content_hash(layout: &Layout, rows: &[String], end: usize) -> (u64, bool) {
    // FNV-1a: stable across builds, and fast enough for text of this size.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut eat = |byte: u8| {
        hash ^= u64::from(byte);
        hash = hash.wrapping_mul(0x0000_0100_0000_01b3);
    };
    let end = without_nudges(layout, rows, end);
    let start = end.checked_sub(HASH_ROWS);
    for row in &rows[start.unwrap_or(0)..end] {
        let mut blank = true;
        for byte in row.trim_end().bytes().filter(|byte| !byte.is_ascii_digit()) {
            let is_space = byte.is_ascii_whitespace();
            if !(is_space && blank) {
                eat(if is_space { b' ' } else { byte });
            }
            blank = is_space;
        }
        eat(b'\n');
    }
    (hash, start.is_some())
}
