//! Takes a person's words out of a screen, so that it can be shown to others: letters become `x`, digits `0`, wide letters
//! a wide one; signs, frames and blanks stay, and so does what a rule of the profile matched, without which the screen
//! would say nothing. What looks like a secret goes from there too.
//!
//! The masked screen gets the verdict that the plain one got, or it is no use: [`masked`] checks that.

use std::sync::LazyLock;

use regex::Regex;

use super::frame::Difference;
use crate::logic::pane::{PaneVerdict, Profile, ScreenFacts, judge_capture, matches};
use crate::logic::screen::{Capture, Region};

/// What looks like a secret or a name wherever it stands: keys and tokens, long runs of digits and letters, addresses of
/// mail, addresses with credentials, home directories.
static SECRETS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?:sk|pk|ghp|gho|ghs|github_pat|xox[abp]|AKIA|eyJ)[-_A-Za-z0-9.]{8,}",
        r"|[A-Za-z0-9+/_-]{24,}",
        r"|[\w.+-]+@[\w-]+\.[\w.]+",
        r"|://[^\s/:@]+:[^\s/@]+@",
        r"|/(?:home|Users)/[^\s/]+",
    ))
    .ok()
});

/// The screen with its words masked; `None` if it would then be judged otherwise. The verdict is the one on what is
/// returned, whose evidence holds nothing that was masked.
pub fn masked(profile: &Profile, facts: &ScreenFacts, capture: &Capture) -> Option<(String, PaneVerdict)> {
    let whole = judge_capture(profile, facts, capture);
    let kept = kept_rows(profile, facts, capture);
    // First everything but what matched; where that says something else, the rows at the bottom stay as well.
    for spared in [0, 4, 8, 16, 28] {
        let text = masked_rows(capture, &kept, spared);
        let verdict = judge_capture(profile, facts, &Capture::from_bytes(text.as_bytes()));
        if Difference::between(&whole, &verdict).is_none() {
            return Some((text, verdict));
        }
    }
    None
}

/// Rows that a rule matched, or that the program wrote beside one.
fn kept_rows(profile: &Profile, facts: &ScreenFacts, capture: &Capture) -> Vec<usize> {
    let plain = capture.plain();
    let lines: Vec<String> = matches(profile, facts, plain, None)
        .into_iter()
        .filter(|(region, ..)| *region != Region::Title)
        .map(|(_, _, line)| squeezed(&line))
        .collect();
    let banner = profile.screen.layout.banner.as_ref();
    let is_kept = |row: &str| {
        let row = squeezed(row);
        let says = |line: &String| !row.is_empty() && (line.contains(&row) || row.contains(line.as_str()));
        lines.iter().any(says) || banner.is_some_and(|banner| banner.is_match(&row))
    };
    (0..plain.len()).filter(|at| is_kept(&plain[*at])).collect()
}

/// Text with single blanks and without frames.
fn squeezed(text: &str) -> String {
    text.split(|ch: char| ch.is_whitespace() || matches!(ch, '│' | '┃'))
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The rows with escape sequences, masked except for those that are kept and so many at the bottom.
fn masked_rows(capture: &Capture, kept: &[usize], spared: usize) -> String {
    let last = u16::try_from(capture.plain().len()).unwrap_or(u16::MAX);
    let rows = capture.styled(0, last);
    let filled = capture.plain().iter().rposition(|row| !row.trim().is_empty()).map_or(0, |at| at + 1);
    let from = filled.saturating_sub(spared);
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        let keep = kept.contains(&at) || (spared > 0 && at >= from);
        out.push_str(&without_secrets(&if keep { row.clone() } else { masked_row(row) }));
        out.push('\n');
    }
    out
}

/// One row with every letter and digit masked, escape sequences left as they are.
fn masked_row(row: &str) -> String {
    map_text(row, |ch| match ch {
        ch if ch.is_ascii_digit() => '0',
        ch if ch.is_ascii_uppercase() => 'X',
        ch if ch.is_ascii_lowercase() => 'x',
        ch if ch.is_alphabetic() => match unicode_width::UnicodeWidthChar::width(ch) {
            Some(2) => '文',
            Some(0) => ch,
            _ => 'x',
        },
        ch => ch,
    })
}

/// One row without what looks like a secret.
fn without_secrets(row: &str) -> String {
    let plain = map_text(row, |ch| ch).chars().collect::<String>();
    let Some(secrets) = SECRETS.as_ref() else { return masked_row(row) };
    // Found in the text without sequences, since a colour can change inside a word.
    let text: String = text_of(&plain).into_iter().map(|(_, ch)| ch).collect();
    let mut hidden = vec![false; text.chars().count()];
    for found in secrets.find_iter(&text) {
        let first = text[..found.start()].chars().count();
        let count = found.as_str().chars().count();
        for at in hidden.iter_mut().skip(first).take(count) {
            *at = true;
        }
    }
    let mut nth = 0;
    map_text(row, |ch| {
        let hide = hidden.get(nth).copied().unwrap_or(false);
        nth += 1;
        if hide && ch.is_alphanumeric() { 'x' } else { ch }
    })
}

/// The characters of a row that are no escape sequence, with their byte offsets.
fn text_of(row: &str) -> Vec<(usize, char)> {
    let mut found = Vec::new();
    let mut chars = row.char_indices().peekable();
    while let Some((at, ch)) = chars.next() {
        if ch != '\u{1b}' {
            found.push((at, ch));
            continue;
        }
        let is_string = chars.peek().is_some_and(|(_, next)| matches!(next, ']' | 'P' | '_' | '^' | 'X'));
        let kind = chars.next().map(|(_, next)| next);
        if is_string {
            // Up to the bell or the string terminator.
            while let Some((_, next)) = chars.next() {
                if next == '\u{7}' {
                    break;
                }
                if next == '\u{1b}' {
                    chars.next();
                    break;
                }
            }
        } else if kind == Some('[') {
            for (_, next) in chars.by_ref() {
                if ('\u{40}'..='\u{7e}').contains(&next) {
                    break;
                }
            }
        }
    }
    found
}

/// The row with its text mapped; sequences that could hold text (links, titles) are dropped, colours stay.
fn map_text(row: &str, mut map: impl FnMut(char) -> char) -> String {
    let text = text_of(row);
    let mut out = String::with_capacity(row.len());
    let mut done = 0;
    for (at, ch) in text {
        out.push_str(&colours(row.get(done..at).unwrap_or_default()));
        out.push(map(ch));
        done = at + ch.len_utf8();
    }
    out.push_str(&colours(row.get(done..).unwrap_or_default()));
    out
}

/// Of a run of escape sequences those that set colours.
fn colours(sequences: &str) -> String {
    sequences
        .split_inclusive('m')
        .filter(|part| {
            part.starts_with("\u{1b}[")
                && part.len() > 2
                && part[2..part.len() - 1].chars().all(|ch| ch.is_ascii_digit() || matches!(ch, ';' | ':'))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_and_signs_and_colours_stay() {
        assert_eq!(
            masked_row("\u{1b}[2m● Fixed 日本 in main.rs:12\u{1b}[0m"),
            "\u{1b}[2m● Xxxxx 文文 xx xxxx.xx:00\u{1b}[0m"
        );
    }

    #[test]
    fn what_looks_like_a_secret_goes_from_everywhere() {
        for (row, secret) in [
            ("key sk-ant-REDACTED done", "abcdefghijklmnop"),
            ("mail jane.doe@example.com now", "jane"),
            ("push https://bob:hunter2@host/x", "hunter2"),
            ("in /home/jane/work", "jane"),
            ("sha 0123456789abcdef0123456789abcdef01234567", "89abcdef0123"),
            ("split gh\u{1b}[1mp_abcdefghijklmnopqrstuvwx\u{1b}[0m", "klmnop"),
        ] {
            let clean = without_secrets(row);
            let text: String = text_of(&clean).into_iter().map(|(_, ch)| ch).collect();
            assert!(!text.contains(secret), "{row} became {text}");
        }
    }

    #[test]
    fn links_and_titles_are_dropped() {
        let row = "\u{1b}]8;;https://secret.example/x\u{1b}\\link\u{1b}]8;;\u{1b}\\ \u{1b}[31mred\u{1b}[0m";
        assert_eq!(map_text(row, |ch| ch), "link \u{1b}[31mred\u{1b}[0m");
    }
}
