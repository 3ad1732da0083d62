//! Takes a person's words out of a screen, so that it can be shown to others: letters become `x`, digits `0`, wide letters
//! a wide one; signs, frames and blanks stay, and so does what a rule of the profile matched, without which the screen
//! would say nothing. What looks like a secret goes from there too.
//!
//! The masked screen gets the verdict that the plain one got, or it is no use: [`masked`] checks that.

use std::sync::LazyLock;

use regex::Regex;

use super::change::differences;
use super::frame::Frame;
use crate::logic::ids::WindowName;
use crate::logic::pane::{PaneVerdict, Profile, ScreenFacts, judge_capture, matches};
use crate::logic::screen::{Capture, Region};

/// Fields of a verdict that hold words of the screen, and are others when those are masked.
const WORDS: &[&str] = &["question", "options", "chip"];

/// What looks like a secret or a name wherever it stands: keys and tokens, long runs of digits and letters, addresses of
/// mail, addresses with credentials, home directories.
static SECRETS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?:sk|pk|ghp|gho|ghs|github_pat|xox[abp]|AKIA|eyJ)[-_A-Za-z0-9.]{8,}",
        r"|[A-Za-z0-9+/_-]{24,}",
        r"|[\w.+-]+@[\w-]+\.[\w.]+",
        r"|://[^\s/:@]+:[^\s/@]+@",
        r"|/(?:home|Users|root)/\S+",
    ))
    .ok()
});

/// The frame with its words masked: screen, title, names of window and session, and what processes and hooks tell of
/// files; `None` if it would then be judged otherwise.
pub fn masked_frame(frame: &Frame, profile: Option<&Profile>) -> Option<Frame> {
    let mut out = frame.clone();
    out.masked = true;
    out.facts.title = masked_row(&frame.facts.title);
    out.facts.window_name = WindowName(masked_row(&frame.facts.window_name.0));
    out.facts.session_name = masked_row(&frame.facts.session_name);
    out.process.other = frame.process.other.as_deref().map(masked_row);
    out.process.agent_exe = None;
    if let Some(hook) = &mut out.hook {
        (hook.source, hook.session_id, hook.event) = (None, None, None);
        hook.external_waits = hook.external_waits.iter().map(|wait| masked_row(wait)).collect();
        if let Some(turn) = &mut hook.turn {
            turn.source = String::new();
        }
    }
    out.rows = match profile {
        Some(profile) => masked(profile, &out.screen_facts(), &frame.capture())?.0,
        None => masked_rows(&frame.capture(), &[], 0),
    };
    out.verdict = out.judge(profile);
    is_same(&frame.verdict, &out.verdict).then_some(out)
}

/// The rows of a screen with its words masked; `None` if it would then be judged otherwise. The verdict is the one on what
/// is returned, whose evidence holds nothing that was masked.
pub fn masked(profile: &Profile, facts: &ScreenFacts, capture: &Capture) -> Option<(Vec<String>, PaneVerdict)> {
    let whole = judge_capture(profile, facts, capture);
    let kept = kept_rows(profile, facts, capture);
    // First everything but what matched; where that says something else, the rows at the bottom stay as well.
    [0, 4, 8, 16, 28].into_iter().find_map(|spared| {
        let rows = masked_rows(capture, &kept, spared);
        let verdict = judge_capture(profile, facts, &Capture::from_rows(rows.clone()));
        is_same(&whole, &verdict).then_some((rows, verdict))
    })
}

/// Whether the verdicts agree in everything but the words of the screen.
fn is_same(old: &PaneVerdict, new: &PaneVerdict) -> bool {
    differences(old, new).iter().all(|difference| WORDS.contains(&difference.field.as_str()))
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
fn masked_rows(capture: &Capture, kept: &[usize], spared: usize) -> Vec<String> {
    let plain = capture.plain();
    let last = u16::try_from(plain.len()).unwrap_or(u16::MAX);
    let filled = plain.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |at| at + 1);
    let from = filled.saturating_sub(spared);
    let is_kept = |at: usize| kept.contains(&at) || (spared > 0 && at >= from);
    let width = plain.iter().map(|row| row.trim_end().chars().count()).max().unwrap_or(0);
    // A word that the edge cuts goes on in the next row, where no pattern would find the half of a secret.
    let is_cut = |at: usize| plain.get(at).is_some_and(|row| row.trim_end().chars().count() >= width.max(20));
    let rows = capture.styled(0, last);
    let masked = rows.iter().enumerate().map(|(at, row)| {
        if !is_kept(at) {
            return masked_row(row);
        }
        let goes_on = at.checked_sub(1).is_some_and(is_cut);
        without_secrets(row, goes_on, is_cut(at))
    });
    masked.collect()
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

/// One row without what looks like a secret, and without its first and last word where those may be parts of one.
fn without_secrets(row: &str, first_word: bool, last_word: bool) -> String {
    // Found in the text without sequences, since a colour can change inside a word.
    let text: String = text_of(row).into_iter().map(|(_, ch)| ch).collect();
    let Some(secrets) = SECRETS.as_ref() else { return masked_row(row) };
    let mut spans: Vec<(usize, usize)> = secrets.find_iter(&text).map(|found| (found.start(), found.end())).collect();
    let end = text.trim_end().len();
    let start = text.len() - text.trim_start().len();
    if first_word {
        let word = text[start..].find(char::is_whitespace).map_or(end, |at| start + at);
        spans.extend(Some((start, word)).filter(|_| is_long(&text[start..word])));
    }
    if last_word {
        let word = text[..end].rfind(char::is_whitespace).map_or(start, |at| at + 1);
        spans.extend(text.get(word..end).filter(|word| is_long(word)).map(|_| (word, end)));
    }
    let mut at = 0;
    map_text(row, |ch| {
        let hide = spans.iter().any(|(start, end)| (*start..*end).contains(&at));
        at += ch.len_utf8();
        if hide && ch.is_alphanumeric() { 'x' } else { ch }
    })
}

/// Whether a word is long enough to be a part of a secret that says anything.
fn is_long(word: &str) -> bool {
    word.chars().filter(|ch| ch.is_alphanumeric()).count() >= 8
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
            ("in /home/jane/secret-project", "secret-project"),
            ("sha 0123456789abcdef0123456789abcdef01234567", "89abcdef0123"),
            ("split gh\u{1b}[1mp_abcdefghijklmnopqrstuvwx\u{1b}[0m", "klmnop"),
        ] {
            let clean = without_secrets(row, false, false);
            let text: String = text_of(&clean).into_iter().map(|(_, ch)| ch).collect();
            assert!(!text.contains(secret), "{row} became {text}");
        }
    }

    #[test]
    fn a_secret_that_the_edge_cuts_goes_in_both_rows() {
        let rows = "use the key abcdefgh-IJKLMNOP\nQRSTUVWX-yz012345 for it\n";
        let shown = masked_rows(&Capture::from_bytes(rows.as_bytes()), &[0, 1], 0);
        assert_eq!(shown, ["use the key xxxxxxxx-xxxxxxxx", "xxxxxxxx-xxxxxxxx for it"]);
    }

    #[test]
    fn links_and_titles_are_dropped() {
        let row = "\u{1b}]8;;https://secret.example/x\u{1b}\\link\u{1b}]8;;\u{1b}\\ \u{1b}[31mred\u{1b}[0m";
        assert_eq!(map_text(row, |ch| ch), "link \u{1b}[31mred\u{1b}[0m");
    }
}
