//! Draws a simulated pane as Claude Code 2.1.332 would, at 120 columns: the rows that the real profile judges.

use std::time::Duration;

use nexus_watcher::logic::snapshot::DeadPane;
use unicode_width::UnicodeWidthChar as _;

use super::agent::{Agent, Dialog, Entry, Piece};

/// Size of every pane.
pub(crate) const COLUMNS: usize = 120;
pub(crate) const ROWS: usize = 40;
/// Most rows of the box.
const BOX_ROWS: usize = 30;
/// Rows of a queued message that are shown.
const QUEUED_ROWS: usize = 4;

const GREY: &str = "\x1b[38;5;246m";
const RULE: &str = "\x1b[38;5;244m";
const ACCENT: &str = "\x1b[38;5;174m";
const CHOICE: &str = "\x1b[38;5;153m";
const CURSOR: &str = "\x1b[7m";
const GHOST: &str = "\x1b[0;2m";

/// One row: pieces with the escape sequence that begins each.
pub(crate) type Row = Vec<(&'static str, String)>;

/// A row as tmux prints it without colours.
pub(crate) fn plain(row: &Row) -> String {
    let text: String = row.iter().map(|(_, text)| text.as_str()).collect();
    text.trim_end_matches(' ').to_owned()
}

/// A row as tmux prints it with colours.
pub(crate) fn styled(row: &Row) -> String {
    let piece = |(style, text): &(&str, String)| {
        if style.is_empty() { text.clone() } else { format!("{style}{text}\x1b[0m") }
    };
    let text: String = row.iter().map(piece).collect();
    text.trim_end_matches(' ').to_owned()
}

/// The screen of a shell that waits: what it ran before it is gone.
pub(crate) fn shell() -> Vec<Row> {
    let mut rows = vec![one("Resume this session with: claude --resume"), one("❯ ")];
    rows.resize(ROWS, Row::new());
    rows
}

/// The screen of a pane whose command has ended: its last one, with tmux's words below it.
pub(crate) fn dead(mut rows: Vec<Row>, how: DeadPane) -> Vec<Row> {
    let how = match (how.status, how.signal) {
        (_, Some(signal)) => format!("signal {signal}"),
        (status, None) => format!("status {}", status.unwrap_or_default()),
    };
    rows.rotate_left(1);
    if let Some(last) = rows.last_mut() {
        *last = one(&format!("Pane is dead ({how}, Mon Nov 30 00:00:00 2026)"));
    }
    rows
}

/// The screen of an agent.
pub(crate) fn screen(agent: &Agent, now: Duration) -> Vec<Row> {
    let live = agent.dialog().map_or_else(|| input(agent, now), dialog);
    let mut rows = vec![
        vec![(ACCENT, " ▐▛███▛█ ".into()), ("\x1b[1m", "  Claude Code".into()), (GREY, " v2.1.332".into())],
        Row::new(),
    ];
    for entry in agent.entries() {
        let (mark, text) = match entry {
            Entry::User(text) => ("❯ ", text),
            Entry::Said(text) => ("● ", text),
            Entry::Done(text) => ("✻ ", text),
        };
        rows.extend(wrap(text, COLUMNS - 3).into_iter().enumerate().map(|(number, line)| {
            let mark = if number == 0 { mark } else { "  " };
            vec![(GREY, mark.to_owned()), ("", line)]
        }));
        rows.push(Row::new());
    }
    rows.extend(pending(agent, now));
    let room = ROWS.saturating_sub(live.len());
    rows.drain(..rows.len().saturating_sub(room));
    rows.resize(room, Row::new());
    rows.extend(live);
    rows
}

/// What stands between the conversation and the box.
fn pending(agent: &Agent, now: Duration) -> Vec<Row> {
    let mut rows = Vec::new();
    for text in agent.queue() {
        let lines = wrap(text, COLUMNS - 3);
        for (number, line) in lines.iter().take(QUEUED_ROWS).enumerate() {
            rows.push(vec![(GREY, if number == 0 { "❯ ".into() } else { "  ".into() }), (GREY, line.clone())]);
        }
        if lines.len() > QUEUED_ROWS {
            rows.push(vec![(GREY, format!("  … +{} lines", lines.len() - QUEUED_ROWS))]);
        }
    }
    if !rows.is_empty() {
        rows.push(vec![(GREY, "  ⎿  Queued · ctrl+x ctrl+s to send now".into())]);
        rows.push(Row::new());
    }
    if let Some(since) = agent.busy_since().filter(|_| agent.dialog().is_none()) {
        let seconds = now.saturating_sub(since).as_secs();
        rows.push(vec![
            (ACCENT, "✻ ".into()),
            (ACCENT, "Tinkering… ".into()),
            (GREY, format!("({seconds}s · ↓ {} tokens)", seconds * 6)),
        ]);
        rows.push(Row::new());
    }
    rows
}

/// The box with its rules and its footer.
fn input(agent: &Agent, now: Duration) -> Vec<Row> {
    let rule = || vec![(RULE, "─".repeat(COLUMNS))];
    let drawn = agent.drawn(now);
    let mut rows = vec![Row::new(), rule()];
    if drawn.is_empty() && !agent.queue().is_empty() {
        let mut row = vec![(GREY, "❯\u{a0}".to_owned()), (CURSOR, "P".to_owned())];
        row.push((GHOST, "ress up to edit queued messages".to_owned()));
        rows.push(row);
    } else {
        rows.extend(typed(drawn));
    }
    rows.push(rule());
    let hint = match (drawn.is_empty(), agent.busy_since().is_some()) {
        (false, _) => "",
        (true, true) => " · esc to interrupt",
        (true, false) => " · ? for shortcuts",
    };
    rows.push(vec![("", "  ".into()), (GREY, format!("⏸ manual mode on{hint}"))]);
    rows
}

/// The rows of what is in the box, with the cursor behind it.
fn typed(pieces: &[Piece]) -> Vec<Row> {
    let text: String = pieces.iter().map(|piece| piece.chip.as_deref().unwrap_or(&piece.text)).collect();
    let lines = wrap(&text, COLUMNS - 3);
    let last = lines.len() - 1;
    let mut rows: Vec<Row> = lines
        .into_iter()
        .enumerate()
        .map(|(number, line)| {
            let mut row = vec![("", if number == 0 { "❯\u{a0}".to_owned() } else { "  ".to_owned() }), ("", line)];
            if number == last {
                row.push((CURSOR, " ".to_owned()));
            }
            row
        })
        .collect();
    rows.drain(..rows.len().saturating_sub(BOX_ROWS));
    rows
}

/// A dialog in the place of the box.
fn dialog(dialog: Dialog) -> Vec<Row> {
    let rule = vec![(CHOICE, "─".repeat(COLUMNS))];
    let dotted = || vec![(RULE, "╌".repeat(COLUMNS))];
    let option = |selected: bool, number: u32, label: &str| {
        let cursor = if selected { "❯ " } else { "  " };
        vec![(CHOICE, format!(" {cursor}")), (GREY, format!("{number}. ")), ("", label.to_owned())]
    };
    let mut rows = vec![rule];
    match dialog {
        Dialog::Permission => {
            rows.extend([one(" Bash command"), Row::new(), dotted(), one(" rm -rf build"), dotted()]);
            rows.push(one(" Do you want to proceed?"));
            rows.push(option(true, 1, "Yes"));
            rows.push(option(false, 2, "Yes, and don't ask again for rm commands in this project"));
            rows.push(option(false, 3, "No"));
            rows.push(Row::new());
            rows.push(vec![(GREY, " Esc to cancel · Tab to amend".into())]);
        }
        Dialog::Ask => {
            rows.extend([one(" ☐ Backend"), Row::new(), one("Which storage backend should it use?"), Row::new()]);
            rows.push(option(true, 1, "SQLite"));
            rows.push(option(false, 2, "A file"));
            rows.push(option(false, 3, "Type something."));
            rows.push(vec![(RULE, "─".repeat(COLUMNS))]);
            rows.push(option(false, 4, "Chat about this"));
            rows.push(Row::new());
            rows.push(vec![(GREY, "Enter to select · ↑/↓ to navigate · Esc to cancel".into())]);
        }
    }
    rows
}

/// A row of plain text.
pub(crate) fn one(text: &str) -> Row {
    vec![("", text.to_owned())]
}

/// Breaks text into rows of at most so many cells, as a terminal does: a wide character takes two of them, and a tab
/// goes on to the next multiple of eight.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let (mut row, mut used) = (String::new(), 0);
        for letter in line.chars() {
            let cells = if letter == '\t' { 8 - used % 8 } else { letter.width().unwrap_or(0) };
            if used + cells > columns {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            match letter {
                '\t' => row.extend(std::iter::repeat_n(' ', cells)),
                letter => row.push(letter),
            }
            used += cells;
        }
        rows.push(row);
    }
    rows
}
