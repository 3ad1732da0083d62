//! What a live dialog asks and offers, cut and cleaned so that it can be shown, told and compared. It decides nothing.

use serde::{Deserialize, Serialize};

use crate::logic::screen::dialog::Dialog;
use crate::logic::text::{Joiners, visible};

/// Most options that are kept; a longer list is cut around the one under the cursor.
const MAX_OPTIONS: usize = 24;
/// Most characters of one label.
const MAX_LABEL_CHARS: usize = 120;
/// Most characters of the question.
const MAX_QUESTION_CHARS: usize = 400;

/// One option of a live dialog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Its label as shown, on one line, without control characters.
    pub label: String,
    /// Whether Enter would choose it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub under_cursor: bool,
}

/// The options of a dialog, in order.
pub(super) fn choices(dialog: &Dialog) -> Vec<Choice> {
    let labels: Vec<&str> = dialog.options.lines().collect();
    let chosen = dialog.chosen.unwrap_or(0);
    let first = chosen.saturating_sub(MAX_OPTIONS / 2).min(labels.len().saturating_sub(MAX_OPTIONS));
    let kept = labels.iter().enumerate().skip(first).take(MAX_OPTIONS);
    kept.map(|(at, label)| Choice { label: shown(label, MAX_LABEL_CHARS), under_cursor: dialog.chosen == Some(at) })
        .collect()
}

/// What a dialog asks: the paragraph above its options; `None` where there is none.
pub(super) fn question(dialog: &Dialog) -> Option<String> {
    let text = shown(&dialog.question, MAX_QUESTION_CHARS);
    (!text.is_empty()).then_some(text)
}

/// Text of a screen on one line, without what can't be seen, cut to so many characters.
fn shown(text: &str, max_chars: usize) -> String {
    let clean = visible(text, Joiners::Drop);
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= max_chars {
        return line;
    }
    line.chars().take(max_chars.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog(labels: &[String], chosen: Option<usize>) -> Dialog {
        Dialog { options: labels.join("\n"), chosen, ..Dialog::default() }
    }

    #[test]
    fn labels_are_clean_short_and_in_order_and_one_is_under_the_cursor() {
        let labels = ["1. Yes \u{1b}[31mnow\u{7}".to_owned(), format!("2. {}", "x".repeat(500))];
        let choices = choices(&dialog(&labels, Some(1)));
        assert_eq!(choices[0], Choice { label: "1. Yes now".into(), under_cursor: false });
        assert_eq!((choices[1].label.chars().count(), choices[1].under_cursor), (MAX_LABEL_CHARS, true));
    }

    #[test]
    fn a_long_list_is_cut_around_the_cursor() {
        let labels: Vec<String> = (0..90).map(|number| format!("option {number}")).collect();
        for chosen in [0, 5, 45, 89] {
            let choices = choices(&dialog(&labels, Some(chosen)));
            assert_eq!(choices.len(), MAX_OPTIONS);
            let under: Vec<&str> =
                choices.iter().filter(|one| one.under_cursor).map(|one| one.label.as_str()).collect();
            assert_eq!(under, [format!("option {chosen}")]);
        }
        assert!(choices(&Dialog::default()).is_empty());
    }

    #[test]
    fn a_question_is_one_bounded_line() {
        let asked = |text: &str| question(&Dialog { question: text.into(), ..Dialog::default() });
        assert_eq!(asked("Do you\twant \u{202e}to proceed?").as_deref(), Some("Do you want to proceed?"));
        assert_eq!(asked(&"x".repeat(900)).map(|text| text.chars().count()), Some(MAX_QUESTION_CHARS));
        assert_eq!(asked(" "), None);
    }
}
