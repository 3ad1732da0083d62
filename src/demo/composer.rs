//! The input row: draft, cursor, folded pastes, a suggestion, vim modes. It edits; it does not draw or send.

/// A paste with more lines than this is folded.
const FOLD_LINES: usize = 3;
/// A paste with more characters than this is folded.
const FOLD_CHARS: usize = 800;

/// Which vim mode the input row is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vim {
    /// Letters are commands.
    Normal,
    /// Letters are text.
    Insert,
}

/// What Enter sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Submission {
    /// As the transcript area shows it: folded pastes in full.
    pub(super) shown: String,
    /// As hooks and the session file carry it: folded pastes inside their tags.
    pub(super) sent: String,
}

/// The input row.
#[derive(Debug)]
pub(super) struct Composer {
    text: String,
    cursor: usize,
    folded: Vec<(String, String)>,
    fold: bool,
    pastes: usize,
    /// A suggestion nobody typed, shown while the row is empty.
    pub(super) ghost: Option<String>,
    /// The vim mode, if vim keys are on.
    pub(super) vim: Option<Vim>,
}

impl Composer {
    /// An empty row.
    pub(super) fn new(fold: bool, vim: bool) -> Self {
        Self {
            text: String::new(),
            cursor: 0,
            folded: Vec::new(),
            fold,
            pastes: 0,
            ghost: None,
            vim: vim.then_some(Vim::Normal),
        }
    }

    /// What is typed, folded pastes as their chips.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where the cursor is, in bytes of [`Self::text`].
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// Puts text at the cursor.
    pub(super) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Puts a paste at the cursor, folded if it is long.
    pub(super) fn paste(&mut self, text: &str) {
        if self.vim == Some(Vim::Normal) && self.text.is_empty() {
            self.vim = Some(Vim::Insert);
        }
        let breaks = text.matches('\n').count();
        if !self.fold || (breaks < FOLD_LINES && text.chars().count() <= FOLD_CHARS) {
            self.insert(text);
            return;
        }
        self.pastes += 1;
        let chip = match breaks {
            0 => format!("[Pasted text #{}]", self.pastes),
            _ => format!("[Pasted text #{} +{breaks} lines]", self.pastes),
        };
        self.insert(&chip);
        self.folded.push((chip, text.to_owned()));
    }

    /// A letter: text, or a command in vim's normal mode.
    pub(super) fn letter(&mut self, letter: char) {
        if self.vim != Some(Vim::Normal) {
            let mut buffer = [0; 4];
            self.insert(letter.encode_utf8(&mut buffer));
            return;
        }
        match letter {
            'i' => self.vim = Some(Vim::Insert),
            'a' => {
                self.right();
                self.vim = Some(Vim::Insert);
            }
            'A' => {
                self.cursor = self.text.len();
                self.vim = Some(Vim::Insert);
            }
            'x' => self.delete_right(),
            'h' => self.left(),
            'l' => self.right(),
            '0' => self.cursor = 0,
            '$' => self.cursor = self.text.len(),
            'D' => self.text.truncate(self.cursor),
            _ => {}
        }
    }

    /// Deletes the character before the cursor; in vim's normal mode only moves.
    pub(super) fn backspace(&mut self) {
        let before = self.cursor;
        self.left();
        if self.vim != Some(Vim::Normal) {
            self.text.replace_range(self.cursor..before, "");
        }
    }

    /// Deletes the character under the cursor.
    pub(super) fn delete_right(&mut self) {
        let at = self.cursor;
        self.right();
        self.text.replace_range(at..self.cursor, "");
        self.cursor = at;
    }

    /// One character to the left.
    pub(super) fn left(&mut self) {
        self.cursor = self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at);
    }

    /// One character to the right.
    pub(super) fn right(&mut self) {
        self.cursor += self.text[self.cursor..].chars().next().map_or(0, char::len_utf8);
    }

    /// Deletes from the start of the cursor's line to the cursor.
    pub(super) fn delete_line_left(&mut self) {
        let start = self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1);
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
    }

    /// Empties the row.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
        self.folded.clear();
    }

    /// Replaces the row's text.
    pub(super) fn set(&mut self, text: &str) {
        self.clear();
        self.insert(text);
    }

    /// Takes what is typed, and empties the row. `None` if there is nothing to send.
    pub(super) fn submit(&mut self) -> Option<Submission> {
        if self.text.trim().is_empty() {
            return None;
        }
        let mut shown = self.text.clone();
        let mut sent = self.text.clone();
        for (number, (chip, full)) in self.folded.iter().enumerate() {
            let id = 0x3290 + number;
            shown = shown.replacen(chip, full, 1);
            sent = sent.replacen(
                chip,
                &format!("<pasted_content id=\"{id:04x}\">\n{full}\n</pasted_content id=\"{id:04x}\">"),
                1,
            );
        }
        self.clear();
        if self.vim.is_some() {
            self.vim = Some(Vim::Insert);
        }
        Some(Submission { shown, sent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pastes a text; checks what the row shows.
    fn check(paste: &str, row: &str) {
        let mut composer = Composer::new(true, false);
        composer.paste(paste);
        assert_eq!(composer.text(), row);
        let submission = composer.submit().expect("something was pasted");
        assert_eq!(submission.shown, paste, "what is sent is the whole paste");
    }

    #[test]
    fn pastes_fold_past_three_lines_or_800_characters() {
        check("one line", "one line");
        check("1\n2\n3", "1\n2\n3");
        check("1\n2\n3\n4", "[Pasted text #1 +3 lines]");
        check(&"é".repeat(800), &"é".repeat(800));
        check(&"é".repeat(801), "[Pasted text #1]");
    }

    #[test]
    fn a_folded_paste_is_sent_inside_its_tags() {
        let mut composer = Composer::new(true, false);
        composer.insert("see ");
        composer.paste("1\n2\n3\n4");
        let sent = composer.submit().expect("typed").sent;
        assert_eq!(sent, "see <pasted_content id=\"3290\">\n1\n2\n3\n4\n</pasted_content id=\"3290\">");
        assert_eq!(composer.submit(), None, "the row is empty after sending");
    }

    #[test]
    fn a_paste_is_inserted_into_a_draft_at_the_cursor() {
        let mut composer = Composer::new(true, false);
        composer.insert("ab");
        composer.left();
        composer.paste("X");
        assert_eq!(composer.text(), "aXb");
    }

    #[test]
    fn the_vi_guard_damages_a_draft_in_normal_mode() {
        let mut composer = Composer::new(true, true);
        composer.insert("old draft");
        composer.left();
        composer.letter('i');
        composer.backspace();
        assert_eq!(composer.text(), "old drat");
    }

    #[test]
    fn letters_are_commands_in_normal_mode() {
        let mut composer = Composer::new(true, true);
        composer.letter('q');
        assert_eq!(composer.text(), "");
        composer.paste("pasted");
        assert_eq!(composer.text(), "pasted");
    }
}
