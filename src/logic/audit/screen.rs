//! The screens before and after an act, as they are kept: the last rows as plain text, each screen once.

use serde::{Deserialize, Serialize};

use crate::logic::text::{self, Joiners, hex_digest};
use crate::logic::time::Timestamp;

/// Rows that are kept, from the bottom, where an agent's box and its dialogs are.
pub const MAX_ROWS: usize = 40;

/// Characters of a row that are kept.
const MAX_CHARS: usize = 400;

/// A screen by what it shows: the beginning of the digest of its kept rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScreenId(pub String);

/// One line of `audit/screens.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Screen {
    /// When it was first seen in this delivery, milliseconds since 1970.
    pub at_ms: Timestamp,
    /// By what it is named in `audit/acts.jsonl`.
    pub id: ScreenId,
    /// Its rows, top to bottom.
    pub rows: Vec<String>,
}

impl Screen {
    /// What is kept of a screen: its last rows that are not blank, without what a terminal would obey.
    pub fn of(rows: &[String], at: Timestamp) -> Self {
        let filled = rows.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |last| last + 1);
        let kept = rows.get(filled.saturating_sub(MAX_ROWS)..filled).unwrap_or_default();
        let rows: Vec<String> = kept.iter().map(|row| clean(row)).collect();
        let mut id = hex_digest(rows.join("\n").as_bytes());
        id.truncate(16);
        Self { at_ms: at, id: ScreenId(id), rows }
    }

    /// The line as it is written, with its newline.
    pub fn line(&self) -> String {
        // Plain data of ours always serialises.
        let mut line = serde_json::to_string(self).expect("a screen is plain data");
        line.push('\n');
        line
    }
}

/// A row without control characters and what nobody can see, cut.
fn clean(row: &str) -> String {
    let row = text::visible(row, Joiners::Keep).replace(['\n', '\t'], " ");
    row.trim_end().chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rows_are_kept_and_nothing_that_a_terminal_obeys() {
        let mut rows: Vec<String> = (0..60).map(|n| format!("row {n}")).collect();
        rows.push("end \u{1b}[31mred\u{7}\u{9b}2J\ta\u{202e}  ".to_owned());
        rows.extend([String::new(), "  ".to_owned()]);
        let screen = Screen::of(&rows, Timestamp::from_secs(1));
        assert_eq!(screen.rows.len(), MAX_ROWS);
        assert_eq!(screen.rows.first().map(String::as_str), Some("row 21"));
        assert_eq!(screen.rows.last().map(String::as_str), Some("end red a"));
        assert!(screen.rows.iter().all(|row| !row.chars().any(char::is_control)));
        let long = Screen::of(&["x".repeat(5000)], Timestamp::from_secs(1));
        assert_eq!(long.rows[0].len(), MAX_CHARS);
    }

    #[test]
    fn the_same_screen_has_the_same_name_whenever_it_is_seen() {
        let screen = |row: &str, at| Screen::of(&[row.to_owned()], Timestamp::from_secs(at));
        assert_eq!(screen("a", 1).id, screen("a  ", 2).id);
        assert_ne!(screen("a", 1).id, screen("b", 1).id);
        assert!(Screen::of(&[], Timestamp::from_secs(1)).rows.is_empty());
    }
}
