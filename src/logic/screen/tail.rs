//! What stands above the input box or dialog: blocks that start at the left edge (or in the column that the profile calls
//! its edge), each with indented rows and items.
//!
//! Programs of this kind put their own signs (spinner, bullet, prompt of a sent message) at the left edge and indent
//! everything that the model or a tool said. So a quoted spinner or notice is indented, and a real one is not.

use std::ops::Range;

use unicode_width::UnicodeWidthStr as _;

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

/// The conversation of a ruled screen: where its blocks begin, though the terminal may have broken off rows.
#[derive(Clone, Copy)]
struct Blocks<'a> {
    /// How the program draws.
    layout: &'a Layout,
    /// The screen.
    rows: &'a [String],
    /// Columns that a row fills if the terminal broke it: those of the line that ends the conversation; 0 where none is
    /// drawn.
    width: usize,
}

impl<'a> Blocks<'a> {
    /// The conversation above row `end`.
    fn above(layout: &'a Layout, rows: &'a [String], end: usize) -> Self {
        let line = rows.get(end).filter(|row| row.starts_with(layout.rule));
        Self { layout, rows, width: line.map_or(0, |row| row.trim_end().width()) }
    }

    /// Whether the terminal went on in row `at` with what did not fit into the row above. The programs themselves indent
    /// what they wrap.
    fn is_broken_off(&self, at: usize) -> bool {
        let has_own_sign = |row: &String| row.starts_with(self.layout.prompt) || self.layout.has_sign(row);
        let is_drawn = |row: &str| row.trim_end().ends_with(['─', '━', '▔', '╮', '╯', '│']);
        let above = at.checked_sub(1).and_then(|above| self.rows.get(above));
        // A wide glyph that does not fit leaves a column free.
        self.width > 0
            && above.is_some_and(|above| above.width() + 1 >= self.width && !is_blank_row(above) && !is_drawn(above))
            && self.rows.get(at).is_some_and(|row| indent(row) == Some(0) && !has_own_sign(row))
    }

    /// Whether a block begins in row `at`.
    fn is_head(&self, at: usize) -> bool {
        let begins = |row: &String| if self.is_indented() { self.layout.has_sign(row) } else { indent(row) == Some(0) };
        self.rows.get(at).is_some_and(begins) && !self.is_broken_off(at)
    }

    /// Whether the program indents its own signs as well. Only the signs tell a block's first line then.
    const fn is_indented(self) -> bool {
        self.layout.edge > 0
    }

    /// These rows on one line.
    fn joined(&self, rows: Range<usize>) -> String {
        let first = rows.start;
        joined_with(self.rows.get(rows).unwrap_or_default(), |at| !self.is_broken_off(first + at))
    }

    /// The same up to the first blank row.
    fn paragraph(&self, rows: Range<usize>) -> String {
        let first = rows.start;
        let length = until_blank(self.rows.get(rows).unwrap_or_default()).len();
        self.joined(first..first + length)
    }

    /// The blocks above row `end`, newest first, and the marked items in them.
    fn items(self, end: usize) -> impl Iterator<Item = Item> + 'a {
        let mut below = end;
        (0..end).rev().filter_map(move |at| {
            let head = self.is_head(at);
            if !head && !self.rows[at].trim_start().starts_with(self.layout.child) {
                return None;
            }
            // Parts of a long error stand below their mark with blank rows between.
            let text = if head { self.paragraph(at..below) } else { self.joined(at..below) };
            below = at;
            Some(Item { text, row: at, head })
        })
    }

    /// The first line of the last block above row `end`.
    fn status(self, end: usize) -> Option<Item> {
        let at = (0..end).rev().find(|at| self.is_head(*at))?;
        let is_child = |row: &&String| row.trim_start().starts_with(self.layout.child);
        let wrapped = self.rows[at..end].iter().skip(1).take_while(|row| !is_child(row)).count();
        let rows = at..at + wrapped + 1;
        // What a program without a left edge keeps below its spinner (messages that wait) has no sign of its own.
        let text = if self.is_indented() { self.joined(rows) } else { self.paragraph(rows) };
        Some(Item { text, row: at, head: true })
    }
}

/// The items above row `end`, newest first. Read one at a time: mostly the first one already ends the walk.
pub fn items<'a>(layout: &'a Layout, rows: &'a [String], end: usize) -> Box<dyn Iterator<Item = Item> + 'a> {
    let blocks = Blocks::above(layout, rows, end);
    let end = without_nudges(layout, rows, end);
    match layout.shape {
        Shape::Ruled => Box::new(blocks.items(end)),
        Shape::Open => Box::new(open::items(layout, rows, end)),
        Shape::Footed => Box::new(footed::items(layout, rows, end)),
        Shape::Barred => Box::new(barred::items(layout, rows, end)),
        Shape::Line => Box::new(line::items(layout, rows, end)),
        Shape::None => Box::new(std::iter::empty()),
    }
}

/// The first line of the last block above row `end`.
pub fn status(layout: &Layout, rows: &[String], end: usize) -> Option<Item> {
    let blocks = Blocks::above(layout, rows, end);
    let end = without_nudges(layout, rows, end);
    match layout.shape {
        Shape::Ruled => blocks.status(end),
        Shape::Open => open::status(rows, end),
        Shape::Footed => footed::status(rows, end),
        Shape::Barred => barred::items(layout, rows, end).next(),
        Shape::Line => line::items(layout, rows, end).next(),
        Shape::None => None,
    }
}

/// Joins rows up to the first blank one into one line.
pub(super) fn paragraph(rows: &[String]) -> String {
    joined(until_blank(rows))
}

/// The rows up to the first blank one.
fn until_blank(rows: &[String]) -> &[String] {
    let end = rows.iter().position(|row| is_blank_row(row)).unwrap_or(rows.len());
    rows.get(..end).unwrap_or_default()
}

/// Joins rows into one line.
pub(super) fn joined(rows: &[String]) -> String {
    joined_with(rows, |_| true)
}

/// Joins rows into one line, with a blank before row `at` if `parts(at)`.
fn joined_with(rows: &[String], parts: impl Fn(usize) -> bool) -> String {
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate().take(MAX_ITEM_ROWS) {
        let mut parts = parts(at);
        for word in row.split_whitespace() {
            if !text.is_empty() && std::mem::replace(&mut parts, true) {
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
