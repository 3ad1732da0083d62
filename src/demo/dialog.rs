//! Dialogs: what they offer, which keys answer them. Shapes and defaults are those of Claude Code 2.1.332.

use std::time::Duration;

use super::keys::Key;

/// A dialog does not take keys before it is this old.
// Seen: keys sent within 100 ms of the dialog's first paint are ignored, at 200 ms they are taken.
const DEAF: Duration = Duration::from_millis(150);

/// Which dialog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// May this command run?
    Permission,
    /// A question with options and a free row.
    Ask,
    /// May this directory be trusted? The default is no.
    Trust,
    /// May this plan be carried out?
    Plan,
    /// The usage window is used up: wait, or pay?
    Limit,
}

impl Kind {
    /// Names as switches and control commands spell them.
    pub(crate) const NAMES: [(&'static str, Self); 5] = [
        ("ask", Self::Ask),
        ("limit", Self::Limit),
        ("permission", Self::Permission),
        ("plan", Self::Plan),
        ("trust", Self::Trust),
    ];

    /// The kind with this name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("dialog", |(name, _)| name)
    }

    /// Its options, in order.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Permission => {
                &["Yes", "Yes, and don't ask again for this command", "Yes, and switch to auto mode", "No"]
            }
            Self::Ask => &["SQLite", "Redis", "In memory", "Type something.", "Chat about this"],
            Self::Trust => &["No, exit", "Yes, I trust this folder"],
            Self::Plan => &["Yes, and use auto mode", "Yes, manually approve edits", "Tell Claude what to change"],
            Self::Limit => &["Stop and wait for limit to reset", "Upgrade your plan"],
        }
    }

    /// Whether a digit chooses at once.
    fn takes_digits(self) -> bool {
        self != Self::Trust
    }
}

/// How a dialog was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// This option (from 1) was chosen.
    Chosen(usize),
    /// The free row's text was sent.
    Typed(String),
    /// Left with Escape.
    Cancelled,
}

/// An open dialog.
#[derive(Debug)]
pub(super) struct Dialog {
    /// Which.
    pub(super) kind: Kind,
    /// The highlighted option, from 0.
    pub(super) selected: usize,
    /// Text in the free row of a question.
    pub(super) typed: String,
    opened: Duration,
}

/// The free row of a question.
const FREE_ROW: usize = 3;

impl Dialog {
    /// Opens one at this time.
    pub(super) fn open(kind: Kind, now: Duration) -> Self {
        Self { kind, selected: 0, typed: String::new(), opened: now }
    }

    /// Takes a key. `Some` if that answered the dialog.
    pub(super) fn key(&mut self, key: &Key, now: Duration) -> Option<Answer> {
        if now.saturating_sub(self.opened) < DEAF {
            return None;
        }
        let last = self.kind.options().len().saturating_sub(1);
        let in_free_row = self.kind == Kind::Ask && self.selected == FREE_ROW;
        match key {
            Key::Escape => return Some(Answer::Cancelled),
            Key::Enter if in_free_row && !self.typed.is_empty() => {
                return Some(Answer::Typed(std::mem::take(&mut self.typed)));
            }
            Key::Enter => return Some(Answer::Chosen(self.selected + 1)),
            Key::Up => self.selected = self.selected.saturating_sub(1),
            Key::Down => self.selected = (self.selected + 1).min(last),
            // Text goes to a question's free row; every other dialog swallows it.
            Key::Paste(text) if self.kind == Kind::Ask => {
                self.selected = FREE_ROW;
                self.typed.push_str(text);
            }
            Key::Char(letter) if in_free_row => self.typed.push(*letter),
            Key::Backspace if in_free_row => {
                self.typed.pop();
            }
            Key::Char(digit) if self.kind.takes_digits() => {
                let number = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or(0);
                if (1..=last + 1).contains(&number) {
                    return Some(Answer::Chosen(number));
                }
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a dialog, presses keys a second later, and checks the answer of the last.
    fn check(kind: Kind, keys: &[Key], expected: impl Into<Option<Answer>>) {
        let mut dialog = Dialog::open(kind, Duration::ZERO);
        let answer = keys.iter().fold(None, |_, key| dialog.key(key, Duration::from_secs(1)));
        assert_eq!(answer, expected.into(), "{kind:?} {keys:?}");
    }

    #[test]
    fn enter_after_a_paste_answers_the_dialog() {
        let paste = Key::Paste("report".into());
        check(Kind::Permission, &[paste.clone(), Key::Enter], Some(Answer::Chosen(1)));
        check(Kind::Trust, &[paste.clone(), Key::Enter], Some(Answer::Chosen(1)));
        check(Kind::Ask, &[paste, Key::Enter], Some(Answer::Typed("report".into())));
    }

    #[test]
    fn keys_choose_as_in_the_real_one() {
        check(Kind::Permission, &[Key::Char('3')], Some(Answer::Chosen(3)));
        check(Kind::Permission, &[Key::Char('y')], None);
        check(Kind::Permission, &[Key::Char('9')], None);
        check(Kind::Trust, &[Key::Char('2')], None);
        check(Kind::Trust, &[Key::Down, Key::Enter], Some(Answer::Chosen(2)));
        check(Kind::Plan, &[Key::Escape], Some(Answer::Cancelled));
        check(Kind::Limit, &[Key::Enter], Some(Answer::Chosen(1)));
    }

    #[test]
    fn a_dialog_just_opened_is_deaf() {
        let mut dialog = Dialog::open(Kind::Permission, Duration::ZERO);
        assert_eq!(dialog.key(&Key::Enter, Duration::from_millis(100)), None);
        assert_eq!(dialog.key(&Key::Enter, Duration::from_millis(200)), Some(Answer::Chosen(1)));
    }
}
