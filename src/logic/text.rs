//! What of a text from outside may be pasted: one function, and the tables of what it drops.
//!
//! An agent that finds characters which nobody can see cleans the text itself and waits for a second Enter (seen on
//! Claude Code 2.1.332: `Removed 76 invisible characters · review and press Enter to send`), so what we paste must hold
//! none. It then equals what the agent has, and can be known again in its box and in its session file.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use sha2::{Digest as _, Sha256};

/// What becomes of characters that join or vary the one before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joiners {
    /// They go like every other character that cannot be seen.
    Drop,
    /// They stay where they work on the character before them: in an emoji, in a script that joins its letters.
    Keep,
}

/// The text with every line end as `\n`, and without escape sequences, control characters but the tab, and characters
/// that cannot be seen or that reorder what stands around them.
///
/// Shape: stripping it again changes nothing.
pub fn visible(text: &str, joiners: Joiners) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = '\n';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let kept = match c {
            '\r' if rest.peek() == Some(&'\n') => continue,
            '\r' | '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => '\n',
            '\t' => '\t',
            '\u{1b}' if rest.peek() == Some(&'[') => {
                rest.next();
                skip_sequence(&mut rest);
                continue;
            }
            '\u{9b}' => {
                skip_sequence(&mut rest);
                continue;
            }
            c if c.is_control() => continue,
            c if is_in(c, HIDDEN) => {
                let works = joiners == Joiners::Keep && works_on(c, before);
                if !works {
                    continue;
                }
                c
            }
            c => c,
        };
        out.push(kept);
        before = kept;
    }
    out
}

/// The SHA-256 of these bytes, in lower-case hexadecimal.
pub fn hex_digest(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _infallible = write!(hex, "{byte:02x}");
    }
    hex
}

/// Drops the parameters and the final byte of a control sequence, and stops before anything else.
fn skip_sequence(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|c| (' '..='?').contains(c)).is_some() {}
    rest.next_if(|c| ('@'..='~').contains(c));
}

/// A run of characters, both ends included.
type Run = (char, char);

/// Whether a character is in one of these runs.
fn is_in(c: char, table: &[Run]) -> bool {
    table.iter().any(|&(first, last)| (first..=last).contains(&c))
}

/// Characters that take no room, or reorder what stands around them. Claude Code 2.1.332 removes each of them beside a
/// Latin letter; tags and shorthand marks are read by models only.
const HIDDEN: &[Run] = &[
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{202a}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// What a joiner may follow: letters of the scripts that join (Arabic to Malayalam, Sinhala), emoji and their modifiers.
const JOINED: &[Run] =
    &[('\u{620}', '\u{dff}'), ('\u{2190}', '\u{2bff}'), ('\u{fe0f}', '\u{fe0f}'), ('\u{1f000}', '\u{1faff}')];

/// What a selector of an emoji's form may follow.
const VARIED: &[Run] =
    &[('\u{a9}', '\u{a9}'), ('\u{ae}', '\u{ae}'), ('\u{203c}', '\u{2bff}'), ('\u{1f000}', '\u{1faff}')];

/// Whether a hidden character does its work after this one, so that a reader would miss it.
fn works_on(c: char, before: char) -> bool {
    match c {
        '\u{200c}' | '\u{200d}' => is_in(before, JOINED),
        '\u{fe0e}' | '\u{fe0f}' => is_in(before, VARIED),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let cleaned = visible(text, Joiners::Keep);
        assert_eq!(cleaned, expected, "{text:?}");
        assert_eq!(visible(&cleaned, Joiners::Keep), cleaned, "{text:?}: twice");
    }

    #[test]
    fn what_cannot_be_seen_beside_plain_letters_goes() {
        for &(first, last) in HIDDEN {
            for c in [first, last] {
                check(&format!("A{c}B ü{c}B\n{c}"), "AB üB\n");
            }
        }
    }

    #[test]
    fn what_can_be_seen_stays() {
        for c in ['\u{a0}', '\u{2003}', '\u{3000}', '\u{300}', '\u{2800}', '\t', 'я', '字'] {
            check(&format!("A{c}B"), &format!("A{c}B"));
        }
    }

    #[test]
    fn a_joiner_stays_where_it_joins_and_goes_from_emits() {
        for text in [
            "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
            "\u{645}\u{6cc}\u{200c}\u{62e}",
            "\u{915}\u{94d}\u{200d}\u{937}",
            "\u{a9}\u{fe0e}",
        ] {
            check(text, text);
            assert!(!visible(text, Joiners::Drop).contains(['\u{200c}', '\u{200d}', '\u{fe0e}', '\u{fe0f}']));
        }
    }

    #[test]
    fn every_line_end_is_one_and_no_sequence_stays() {
        check("a\r\nb\rc\u{2028}d\u{2029}e\u{85}f\u{b}g\u{c}h", "a\nb\nc\nd\ne\nf\ng\nh");
        check("\u{1b}[31mred\u{1b}[0m\u{7}\u{9b}201~x\u{1b}\u{1b}[201~y", "redxy");
        check("b\u{202e}idi\u{2066}!\u{2069}", "bidi!");
    }
}
