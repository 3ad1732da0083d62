//! The named places of a screen that rules look at.

use serde::Deserialize;

/// Where a rule looks. Each place yields one text (or several items), NBSP as a space, frames removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Region {
    /// The pane's title.
    Title,
    /// Rows below the input box.
    Footer,
    /// First line of the last block above the input box or dialog, with its wrapped rows: the spinner's place.
    Status,
    /// The newest items above the input box or dialog, each tried in turn from the bottom up, until one matches no
    /// rule: what the program itself said last, as opposed to what the transcript quotes.
    Tail,
    /// The newest item, if it is the first line of a block and no rule of the tail knows it, and below it the footer.
    Newest,
    /// What a prompt led to that was sent where it stands, while no new prompt is below.
    Output,
    /// Dim text in the input box that nobody typed.
    Ghost,
    /// The paragraph right above the options of a dialog.
    Question,
    /// The labels of a dialog's options, one a line.
    Options,
    /// The whole dialog.
    Dialog,
    /// The last rows of a screen without an input box.
    Bottom,
}

impl Region {
    /// The word used in profiles.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Footer => "footer",
            Self::Status => "status",
            Self::Tail => "tail",
            Self::Newest => "newest",
            Self::Output => "output",
            Self::Ghost => "ghost",
            Self::Question => "question",
            Self::Options => "options",
            Self::Dialog => "dialog",
            Self::Bottom => "bottom",
        }
    }
}

/// A row without the frame that dialogs draw around themselves, blanks cut at both ends, NBSP as a space.
pub fn unframed_row(row: &str) -> String {
    let inner = row.trim().trim_start_matches('│').trim_end_matches('│').trim();
    inner.replace('\u{a0}', " ")
}

/// Number of characters before the first that is not blank; `None` for a blank row.
pub(super) fn indent(row: &str) -> Option<usize> {
    row.chars().position(|ch| !ch.is_whitespace())
}

/// Whether nothing visible stands in the row.
pub fn is_blank_row(row: &str) -> bool {
    row.chars().all(char::is_whitespace)
}

/// Whether the row looks like a shell waiting for a command: unindented, and its last sign is one that prompts end in.
pub fn is_shell_row(row: &str) -> bool {
    indent(row) == Some(0) && row.trim_end().ends_with(['$', '#', '%', '>', '❯', '➜', '»', 'λ'])
}

/// The line as evidence shows it: at most 100 characters.
pub fn shortened(line: &str) -> String {
    let line = line.trim();
    if line.chars().count() <= 100 {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(99).collect();
    short.push('…');
    short
}
