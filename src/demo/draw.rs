//! Draws the demo agent: rows of styled text from its state, and the bytes that bring a terminal from the last frame to
//! this one. It reads state and a size; it writes nothing itself.

use std::time::Duration;

use unicode_width::UnicodeWidthChar as _;

use super::agent::{Agent, DEMO_COMMAND, Entry};
use super::composer::Vim;
use super::dialog::{Dialog, Kind};

/// How a piece of a row looks. The colours are those of Claude Code's dark theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Bold,
    Grey,
    Rule,
    Accent,
    Choice,
    User,
    Queued,
    Cursor,
    Ghost,
}

impl Style {
    fn sgr(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Grey => "\x1b[38;5;246m",
            Self::Rule => "\x1b[38;5;244m",
            Self::Accent => "\x1b[38;5;174m",
            Self::Choice => "\x1b[38;5;153m",
            Self::User => "\x1b[38;5;231m\x1b[48;5;237m",
            Self::Queued => "\x1b[38;5;246m\x1b[48;5;237m",
            Self::Cursor => "\x1b[7m",
            Self::Ghost => "\x1b[0;2m",
        }
    }
}

/// One row: pieces from left to right.
type Row = Vec<(Style, String)>;

/// What is on the terminal now.
#[derive(Debug, Default)]
pub(super) struct Painter {
    shown: Vec<Vec<u8>>,
    size: (u16, u16),
    inline: bool,
    printed: usize,
    begun: bool,
}

impl Painter {
    /// A painter for the alternate screen, or for the end of the scrollback.
    pub(super) fn new(inline: bool) -> Self {
        Self { inline, ..Self::default() }
    }

    /// The bytes that show this state at this size (columns, rows).
    pub(super) fn frame(&mut self, agent: &Agent, uptime: Duration, size: (u16, u16)) -> Vec<u8> {
        let columns = usize::from(size.0).max(4);
        let rows = usize::from(size.1).max(1);
        let live = live_rows(agent, columns);
        let mut out = b"\x1b[?25l".to_vec();
        if self.inline {
            self.inline_frame(agent, uptime, live, (columns, rows), &mut out);
        } else {
            let mut screen: Vec<Row> = header(columns);
            for entry in agent.entries() {
                entry_rows(entry, columns, &mut screen);
            }
            screen.extend(pending_rows(agent, uptime, columns));
            let room = rows.saturating_sub(live.len());
            let skip = screen.len().saturating_sub(room);
            screen.drain(..skip);
            screen.resize(room, Row::new());
            screen.extend(live);
            let skip = screen.len().saturating_sub(rows);
            screen.drain(..skip);
            self.diff(&screen, size, &mut out);
        }
        out
    }

    /// Rewrites the rows that differ.
    fn diff(&mut self, screen: &[Row], size: (u16, u16), out: &mut Vec<u8>) {
        if self.size != size {
            self.size = size;
            self.shown.clear();
            out.extend_from_slice(b"\x1b[0m\x1b[H\x1b[2J");
        }
        let bytes: Vec<Vec<u8>> = screen.iter().map(row_bytes).collect();
        for (number, row) in bytes.iter().enumerate() {
            if self.shown.get(number) != Some(row) {
                out.extend_from_slice(format!("\x1b[{};1H\x1b[0m\x1b[2K", number + 1).as_bytes());
                out.extend_from_slice(row);
            }
        }
        self.shown = bytes;
        // The terminal's own cursor is hidden, but stands where the drawn one is, as in the real program.
        if let Some((row, column)) = cursor_cell(screen) {
            out.extend_from_slice(format!("\x1b[{};{}H", row + 1, column + 1).as_bytes());
        }
    }

    /// Goes up to the first live row, prints what is new in the transcript, and the live rows again below it.
    fn inline_frame(
        &mut self,
        agent: &Agent,
        uptime: Duration,
        live: Vec<Row>,
        (columns, rows): (usize, usize),
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(b"\r");
        if self.shown.len() > 1 {
            out.extend_from_slice(format!("\x1b[{}A", self.shown.len() - 1).as_bytes());
        }
        out.extend_from_slice(b"\x1b[0m\x1b[J");
        let mut history = if self.begun { Vec::new() } else { header(columns) };
        self.begun = true;
        let printed = self.printed.saturating_sub(agent.dropped());
        for entry in agent.entries().skip(printed) {
            entry_rows(entry, columns, &mut history);
        }
        self.printed = agent.dropped() + agent.entries().count();
        for row in &history {
            out.extend_from_slice(&row_bytes(row));
            out.extend_from_slice(b"\r\n");
        }
        let mut below = pending_rows(agent, uptime, columns);
        below.extend(live);
        let skip = below.len().saturating_sub(rows);
        below.drain(..skip);
        self.shown = below.iter().map(row_bytes).collect();
        for (number, row) in self.shown.iter().enumerate() {
            if number > 0 {
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(row);
        }
    }
}

/// The few rows at the top that say what this is.
fn header(columns: usize) -> Vec<Row> {
    let name = format!("v{} · not a real one", env!("CARGO_PKG_VERSION"));
    let rows = [
        vec![(Style::Accent, " ▐▛███▛█ ".into()), (Style::Bold, "  Demo agent ".into()), (Style::Grey, name)],
        vec![(Style::Accent, "▝▜███████▀".into()), (Style::Grey, " answers everything, does nothing".into())],
        Row::new(),
    ];
    rows.into_iter().map(|row| clip(row, columns)).collect()
}

/// One piece of the transcript.
fn entry_rows(entry: &Entry, columns: usize, out: &mut Vec<Row>) {
    let (mark, style, text) = match entry {
        Entry::User(text) => (vec![(Style::Queued, "❯ ".to_owned())], Style::User, text),
        Entry::Said(text) => (vec![(Style::Plain, "● ".to_owned())], Style::Plain, text),
        Entry::Result(text) => (vec![(Style::Grey, "  ⎿  ".to_owned())], Style::Grey, text),
        Entry::Done(text) => (vec![(Style::Grey, "✻ ".to_owned())], Style::Grey, text),
    };
    let indent = mark.iter().map(|(_, text)| width(text)).sum::<usize>();
    for (number, line) in wrap(text, columns.saturating_sub(indent + 1)).into_iter().enumerate() {
        let mut row = if number == 0 { mark.clone() } else { vec![(Style::Plain, " ".repeat(indent))] };
        row.push((style, line));
        out.push(row);
    }
    if !matches!(entry, Entry::Result(_)) {
        out.push(Row::new());
    }
}

/// How many rows of a queued message are shown.
const QUEUED_ROWS: usize = 4;

/// What stands between the transcript and the box: queued messages, and the spinner.
fn pending_rows(agent: &Agent, uptime: Duration, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for text in agent.queued() {
        let lines = wrap(text, columns.saturating_sub(3));
        for (number, line) in lines.iter().take(QUEUED_ROWS).enumerate() {
            let mark = if number == 0 { "❯ " } else { "  " };
            rows.push(vec![(Style::Queued, mark.to_owned()), (Style::Queued, line.clone())]);
        }
        if lines.len() > QUEUED_ROWS {
            rows.push(vec![(Style::Grey, format!("  … +{} lines", lines.len() - QUEUED_ROWS))]);
        }
    }
    if !rows.is_empty() {
        rows.push(vec![(Style::Grey, "  ⎿  Queued · ctrl+x ctrl+s to send now".into())]);
        rows.push(Row::new());
    }
    // A dialog takes the spinner's place too.
    if let Some(since) = agent.busy_since().filter(|_| agent.dialog().is_none()) {
        let seconds = uptime.saturating_sub(since).as_secs();
        let tokens = seconds.saturating_mul(28);
        rows.push(vec![
            (Style::Accent, "✻ ".into()),
            (Style::Accent, "Working… ".into()),
            (Style::Grey, format!("({seconds}s · ↓ {tokens} tokens)")),
        ]);
        rows.push(Row::new());
    }
    rows
}

/// The box with its footer, or the dialog in its place.
fn live_rows(agent: &Agent, columns: usize) -> Vec<Row> {
    if let Some(dialog) = agent.dialog() {
        return dialog_rows(dialog, columns);
    }
    let rule = vec![(Style::Rule, "─".repeat(columns))];
    let mut rows = vec![Row::new(), rule.clone()];
    rows.extend(input_rows(agent, columns));
    rows.push(rule);
    rows.push(clip(vec![(Style::Grey, footer(agent))], columns));
    rows
}

/// The line below the box.
fn footer(agent: &Agent) -> String {
    let composer = agent.composer();
    let mode = if composer.vim == Some(Vim::Insert) { "-- INSERT -- " } else { "" };
    let hint = if agent.exit_hint() {
        return "  Press Ctrl-C again to exit".into();
    } else if !composer.text().is_empty() {
        ""
    } else if agent.busy_since().is_some() {
        " · esc to interrupt"
    } else {
        " · ? for shortcuts"
    };
    format!("  {mode}⏸ manual mode on{hint}")
}

/// The input row or rows with the drawn cursor.
fn input_rows(agent: &Agent, columns: usize) -> Vec<Row> {
    let composer = agent.composer();
    let prompt = "❯\u{a0}";
    if composer.text().is_empty() {
        let ghost = agent.queued().next().map(|_| "Press up to edit queued messages").or(composer.ghost.as_deref());
        let Some(ghost) = ghost.filter(|ghost| !ghost.is_empty()) else {
            return vec![vec![(Style::Plain, prompt.into()), (Style::Cursor, " ".into())]];
        };
        let first: String = ghost.chars().take(1).collect();
        let rest: String = ghost.chars().skip(1).collect();
        let row = vec![(Style::Plain, prompt.into()), (Style::Cursor, first), (Style::Ghost, clean(&rest))];
        return vec![clip(row, columns)];
    }
    // The cursor travels through wrapping as a private-use character, which nobody types.
    let (before, after) = composer.text().split_at(composer.cursor());
    let marked = format!("{before}{CURSOR}{after}");
    let mut rows = Vec::new();
    for (number, line) in wrap(&marked, columns.saturating_sub(3)).into_iter().enumerate() {
        let mark = if number == 0 { prompt } else { "  " };
        let mut row = vec![(Style::Plain, mark.to_owned())];
        match line.split_once(CURSOR) {
            Some((left, right)) => {
                let under: String = right.chars().take(1).collect();
                let rest: String = right.chars().skip(1).collect();
                row.push((Style::Plain, left.to_owned()));
                row.push((Style::Cursor, if under.is_empty() { " ".into() } else { under }));
                row.push((Style::Plain, rest));
            }
            None => row.push((Style::Plain, line)),
        }
        rows.push(row);
    }
    let skip = rows.len().saturating_sub(DRAFT_ROWS);
    rows.drain(..skip);
    rows
}

/// Rows of a draft that are shown: as many as most windows hold; the end of the draft is what matters.
const DRAFT_ROWS: usize = 40;
/// Marks the cursor inside the draft while it is wrapped.
const CURSOR: char = '\u{f8ff}';

/// A dialog, at the bottom of the screen in place of the box.
fn dialog_rows(dialog: &Dialog, columns: usize) -> Vec<Row> {
    let rule = |character: &str| vec![(Style::Choice, character.repeat(columns))];
    let plain = |text: &str| vec![(Style::Plain, text.to_owned())];
    let grey = |text: &str| vec![(Style::Grey, text.to_owned())];
    let dotted = || vec![(Style::Rule, "╌".repeat(columns))];
    let bold = |text: &str| vec![(Style::Bold, text.to_owned())];
    let mut rows = match dialog.kind {
        Kind::Permission => vec![
            rule("─"),
            bold(" Bash command"),
            Row::new(),
            grey(" Run the requested command"),
            dotted(),
            plain(&format!(" {DEMO_COMMAND}")),
            dotted(),
            plain(" Do you want to proceed?"),
        ],
        Kind::Ask => vec![
            rule("─"),
            plain(" ☐ Backend"),
            Row::new(),
            bold("Which storage backend should the cache use?"),
            Row::new(),
        ],
        Kind::Trust => vec![
            rule("─"),
            bold(" Accessing workspace:"),
            Row::new(),
            plain(" Quick safety check: Is this a project you created or one you trust?"),
            Row::new(),
            grey(" Security guide"),
            Row::new(),
        ],
        Kind::Plan => vec![
            rule("▔"),
            bold("   Ready to code?"),
            dotted(),
            plain("   Plan: add a --verbose flag"),
            plain("   1. Parse the flag in src/main.py"),
            dotted(),
            grey("   Claude has written up a plan and is ready to execute. Would you like to"),
            grey("   proceed?"),
            Row::new(),
        ],
        Kind::Limit => vec![
            rule("─"),
            bold(" You've hit your session limit · resets 8pm (UTC)"),
            Row::new(),
            plain(" What do you want to do?"),
            Row::new(),
        ],
    };
    let indent = match dialog.kind {
        Kind::Ask => "",
        Kind::Plan => "   ",
        _ => " ",
    };
    for (number, option) in dialog.kind.options().iter().enumerate() {
        let selected = number == dialog.selected;
        let cursor = if selected { "❯ " } else { "  " };
        let digit = if dialog.kind == Kind::Trust { String::new() } else { format!("{}. ", number + 1) };
        let label = if *option == "Type something." && !dialog.typed.is_empty() {
            clean(&dialog.typed.replace('\n', " "))
        } else {
            (*option).to_owned()
        };
        if dialog.kind == Kind::Ask && *option == "Chat about this" {
            rows.push(vec![(Style::Grey, "─".repeat(columns))]);
        }
        rows.push(vec![
            (Style::Choice, format!("{indent}{cursor}")),
            (Style::Grey, digit),
            (if selected { Style::Choice } else { Style::Plain }, label),
        ]);
    }
    rows.push(Row::new());
    rows.push(grey(match dialog.kind {
        Kind::Permission => " Esc to cancel · Tab to amend",
        Kind::Ask => "Enter to select · ↑/↓ to navigate · Esc to cancel",
        Kind::Trust | Kind::Limit => " Enter to confirm · Esc to cancel",
        Kind::Plan => "   ctrl+g to edit in Vim · ~/.claude/plans/demo.md",
    }));
    rows.into_iter().map(|row| clip(row, columns)).collect()
}

/// Bytes of one row, ending in the default style.
fn row_bytes(row: &Row) -> Vec<u8> {
    let mut out = Vec::new();
    for (style, text) in row {
        out.extend_from_slice(style.sgr().as_bytes());
        out.extend_from_slice(text.as_bytes());
        if *style != Style::Plain {
            out.extend_from_slice(b"\x1b[0m");
        }
    }
    out
}

/// Row and column of the drawn cursor.
fn cursor_cell(screen: &[Row]) -> Option<(usize, usize)> {
    for (number, row) in screen.iter().enumerate().rev() {
        let mut column = 0;
        for (style, text) in row {
            if *style == Style::Cursor {
                return Some((number, column));
            }
            column += width(text);
        }
    }
    None
}

/// Text without anything that a terminal would obey.
fn clean(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

/// Cells that a text takes.
fn width(text: &str) -> usize {
    text.chars().map(cells).sum()
}

/// Cells that a character takes.
fn cells(letter: char) -> usize {
    if letter == CURSOR { 0 } else { letter.width().unwrap_or(0) }
}

/// Cuts a row at a width.
fn clip(row: Row, columns: usize) -> Row {
    let mut left = columns;
    let mut out = Row::new();
    for (style, text) in row {
        let mut kept = String::new();
        for letter in text.chars() {
            let wide = cells(letter);
            if wide > left {
                left = 0;
                break;
            }
            left -= wide;
            kept.push(letter);
        }
        out.push((style, kept));
    }
    out
}

/// Breaks text into rows of at most `columns` cells, at spaces where there is one. Control characters are left out.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let line = clean(&line.replace('\t', "    "));
        let mut row = String::new();
        let mut used = 0;
        // Where the row may be broken: behind its last space, and the cells up to there.
        let mut space: Option<(usize, usize)> = None;
        for letter in line.chars() {
            let wide = cells(letter);
            if used + wide > columns {
                let (rest, rest_cells) = match space.take() {
                    Some((at, at_cells)) => (row.split_off(at), used - at_cells),
                    None => (String::new(), 0),
                };
                rows.push(row.trim_end_matches(' ').to_owned());
                row = rest;
                used = rest_cells;
            }
            row.push(letter);
            used += wide;
            if letter == ' ' {
                space = Some((row.len(), used));
            }
        }
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, columns: usize, expected: &[&str]) {
        let rows = wrap(text, columns);
        assert_eq!(rows, expected, "{text:?} at {columns}");
        assert!(rows.iter().all(|row| width(row) <= columns), "no row is too wide");
    }

    #[test]
    fn text_wraps_at_spaces_and_by_cells() {
        check("one two three", 8, &["one two", "three"]);
        check("abcdefgh", 4, &["abcd", "efgh"]);
        check("漢字漢字", 5, &["漢字", "漢字"]);
        check("a\n\nb", 10, &["a", "", "b"]);
        check("evil\x1b[31mred", 20, &["evil[31mred"]);
        check("", 10, &[""]);
    }
}
