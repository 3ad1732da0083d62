//! Captured rows with escape sequences, as text with attributes.
//!
//! Owns the reading of SGR; every other sequence (hyperlinks, titles, cursor movement) is dropped. tmux carries
//! attributes from one captured row into the next, so rows are read in order with one running attribute.

use std::fmt::Write as _;

use vte::{Params, Parser, Perform};

/// Attributes of a cell that tell typed text, suggestions and the drawn cursor apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// Faint.
    pub dim: bool,
    /// Inverse video; agents draw their own cursor with it.
    pub reverse: bool,
    /// Bold.
    pub bold: bool,
    /// Foreground colour, `None` for the default.
    pub fg: Option<Colour>,
}

/// A foreground colour as the program asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// An entry of the 256-colour palette (0 to 15 are the named ones).
    Palette(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

impl Attr {
    /// The SGR sequence that sets exactly these attributes.
    fn sgr(self) -> String {
        let mut text = String::from("\x1b[0");
        for (on, code) in [(self.bold, 1), (self.dim, 2), (self.reverse, 7)] {
            if on {
                // Writing to a String cannot fail.
                let _infallible = write!(text, ";{code}");
            }
        }
        let _infallible = match self.fg {
            Some(Colour::Palette(n)) => write!(text, ";38;5;{n}"),
            Some(Colour::Rgb(r, g, b)) => write!(text, ";38;2;{r};{g};{b}"),
            None => Ok(()),
        };
        text.push('m');
        text
    }

    /// Applies one SGR sequence.
    fn apply(&mut self, params: &Params) {
        let mut items = params.iter();
        if params.is_empty() {
            *self = Self::default();
        }
        while let Some(item) = items.next() {
            match item.first().copied().unwrap_or(0) {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                7 => self.reverse = true,
                22 => (self.bold, self.dim) = (false, false),
                27 => self.reverse = false,
                n @ 30..=37 => self.fg = Some(Colour::Palette(u8::try_from(n - 30).unwrap_or(0))),
                n @ 90..=97 => self.fg = Some(Colour::Palette(u8::try_from(n - 82).unwrap_or(0))),
                39 => self.fg = None,
                code @ (38 | 48 | 58) => {
                    let colour = if item.len() > 1 {
                        extended(item.iter().skip(1).copied())
                    } else {
                        extended(items.by_ref().map(|item| item.first().copied().unwrap_or(0)))
                    };
                    if code == 38 {
                        self.fg = colour;
                    }
                }
                _ => {}
            }
        }
    }
}

/// Reads an extended colour (`5;n` or `2;r;g;b`), taking no more numbers than belong to it.
fn extended(mut numbers: impl Iterator<Item = u16>) -> Option<Colour> {
    let byte = |numbers: &mut dyn Iterator<Item = u16>| numbers.next().and_then(|n| u8::try_from(n).ok());
    match numbers.next()? {
        5 => byte(&mut numbers).map(Colour::Palette),
        2 => {
            let (red, green, blue) = (byte(&mut numbers), byte(&mut numbers), byte(&mut numbers));
            Some(Colour::Rgb(red?, green?, blue?))
        }
        _ => None,
    }
}

/// One character with its attributes. A wide glyph is one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The character.
    pub ch: char,
    /// How it is drawn.
    pub attr: Attr,
}

/// A row with attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledRow {
    /// Its characters.
    pub cells: Vec<Cell>,
    /// The attribute in force at its end: tmux cuts trailing blanks, so a cursor drawn on a blank leaves only this.
    pub end: Attr,
}

/// Collects the printed characters of a row.
#[derive(Default)]
struct Row {
    /// Running attribute; lives on into the next row.
    attr: Attr,
    /// Cells so far.
    cells: Vec<Cell>,
}

impl Perform for Row {
    fn print(&mut self, ch: char) {
        self.cells.push(Cell { ch, attr: self.attr });
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: char) {
        if action == 'm' && intermediates.is_empty() {
            self.attr.apply(params);
        }
    }
}

/// Reads consecutive rows as `capture-pane -e` prints them.
pub fn parse_rows(rows: &[String]) -> Vec<StyledRow> {
    let mut row = Row::default();
    let mut parsed = Vec::with_capacity(rows.len());
    for text in rows {
        // A fresh parser a row: a sequence cut off at a row's end must not swallow the next row.
        Parser::new().advance(&mut row, text.as_bytes());
        parsed.push(StyledRow { cells: std::mem::take(&mut row.cells), end: row.attr });
    }
    parsed
}

/// A saved screen with escape sequences, handed out the way the live reader sees it: plain rows first, styled rows on
/// request.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Text of each row.
    plain: Vec<String>,
    /// The rows as saved.
    raw: Vec<String>,
    /// Attribute in force at the start of each row.
    start: Vec<Attr>,
    /// Whether colours would stand in the rows if there were any.
    coloured: bool,
}

impl Capture {
    /// Splits saved bytes into rows. Bytes that are no UTF-8 become U+FFFD.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let coloured = text.contains('\u{1b}');
        Self::of(text.lines().map(str::to_owned).collect(), coloured)
    }

    /// Rows that tmux was asked for with escape sequences, also where it had none to print.
    pub fn from_rows(rows: Vec<String>) -> Self {
        Self::of(rows, true)
    }

    /// Reads rows in order.
    fn of(raw: Vec<String>, coloured: bool) -> Self {
        let mut row = Row::default();
        let (mut plain, mut start) = (Vec::with_capacity(raw.len()), Vec::with_capacity(raw.len()));
        for text in &raw {
            start.push(row.attr);
            Parser::new().advance(&mut row, text.as_bytes());
            plain.push(row.cells.drain(..).map(|cell| cell.ch).collect());
        }
        Self { plain, raw, start, coloured }
    }

    /// Whether the screen was saved with colours: any escape sequence at all, unless that is known otherwise.
    pub fn has_colour(&self) -> bool {
        self.coloured
    }

    /// The rows as text, as `capture-pane -p` gives them.
    pub fn plain(&self) -> &[String] {
        &self.plain
    }

    /// Rows `first` to `last` as `capture-pane -p -e -S first -E last` gives them.
    pub fn styled(&self, first: u16, last: u16) -> Vec<String> {
        let (first, last) = (usize::from(first), usize::from(last));
        let rows = self.raw.iter().zip(&self.start).enumerate();
        rows.filter(|(i, _)| (first..=last).contains(i))
            .map(
                |(i, (raw, attr))| {
                    if i == first && *attr != Attr::default() { format!("{}{raw}", attr.sgr()) } else { raw.clone() }
                },
            )
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[&str], expected: &[(&str, &str)]) {
        let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
        let parsed = parse_rows(&rows);
        let shown: Vec<(String, String)> = parsed
            .iter()
            .map(|row| {
                let cells = &row.cells;
                let mark = |a: Attr| match (a.reverse, a.dim) {
                    (true, _) => 'r',
                    (_, true) => 'd',
                    _ => '.',
                };
                (cells.iter().map(|c| c.ch).collect(), cells.iter().map(|c| mark(c.attr)).collect())
            })
            .collect();
        let expected: Vec<(String, String)> = expected.iter().map(|(t, m)| ((*t).into(), (*m).into())).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn dim_is_a_whole_parameter_and_never_part_of_a_colour() {
        check(&["\x1b[7mr\x1b[0;2mun"], &[("run", "rdd")]);
        check(&["\x1b[2;7ma\x1b[27mb\x1b[22mc"], &[("abc", "rd.")]);
        check(&["\x1b[38;5;2mx\x1b[38;2;2;2;2my\x1b[38:5:2mz\x1b[22mw\x1b[48;5;2mv"], &[("xyzwv", ".....")]);
    }

    #[test]
    fn attributes_last_into_the_next_row() {
        check(&["\x1b[2ma", "b", "\x1b[mc"], &[("a", "d"), ("b", "d"), ("c", ".")]);
    }

    #[test]
    fn hyperlinks_and_other_sequences_leave_only_text() {
        check(&["\x1b]8;id=1;https://x/1 shell\x1b\\link\x1b]8;;\x1b\\!\x1b[2K\x1b(B"], &[("link!", ".....")]);
    }

    #[test]
    fn a_cut_sequence_does_not_swallow_the_next_row() {
        check(&["a\x1b[3", "8b"], &[("a", "."), ("8b", "..")]);
    }

    #[test]
    fn styled_rows_of_a_saved_screen_stand_for_themselves() {
        let capture = Capture::from_bytes(b"\x1b[2mone\ntwo\n\x1b[0mthree\n");
        assert_eq!(capture.plain(), ["one", "two", "three"]);
        assert_eq!(capture.styled(1, 1), ["\x1b[0;2mtwo"]);
        assert!(capture.styled(7, 9).is_empty());
    }
}
