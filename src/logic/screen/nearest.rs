//! How near a pattern comes to a text that it does not match: how far into the pattern the text follows it, and which of
//! its words the text has. For people who ask why a rule did not speak; nothing is decided by it.
//!
//! The pattern is cut at its outermost pieces (a letter, a class, a group). The longest run of pieces from the start
//! that still matches somewhere in the text tells what is missing: the next piece. Words that changed at the start of a
//! pattern would hide all the rest, so the words that stand anywhere in the text count too.

use regex::Regex;

/// Fewest characters of a word that is looked for by itself.
const MIN_WORD_CHARS: usize = 4;

/// How near a pattern comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearness {
    /// How much of what the pattern spells out is there, in percent.
    pub percent: u32,
    /// What is missing, for people.
    pub reason: String,
    /// In which of the texts the part that is there was found.
    pub text: usize,
    /// Where in it, in bytes.
    pub at: usize,
}

/// How near `pattern` comes to the nearest of these texts; `None` if nothing of it is in any of them.
pub fn nearness(pattern: &str, texts: &[&str]) -> Option<Nearness> {
    // Most rules of a profile have no word in common with a text, and cutting them up takes long.
    let lower: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    let mut words = letter_runs(pattern).peekable();
    if words.peek().is_some() && !words.any(|word| lower.iter().any(|text| text.contains(&word.to_lowercase()))) {
        return None;
    }
    let (flags, rest) = split_flags(pattern);
    alternatives(rest).into_iter().filter_map(|pieces| near(flags, &pieces, texts)).max_by_key(|near| near.percent)
}

/// Runs of letters in a pattern that are long enough to tell anything, wherever they stand in it.
fn letter_runs(pattern: &str) -> impl Iterator<Item = &str> {
    pattern.split(|ch: char| !ch.is_alphabetic()).filter(|run| run.chars().count() >= 3)
}

/// One outermost piece of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece<'p> {
    /// As written, with what repeats it.
    text: &'p str,
    /// What it spells out, if it is plain text.
    plain: String,
    /// How many visible characters it asks for at least.
    weight: u32,
}

impl Piece<'_> {
    /// Whether it asks for the start of a line or of the text.
    fn is_start(&self) -> bool {
        matches!(self.text, "^" | r"\A")
    }
}

/// How near one alternative of a pattern comes.
fn near(flags: &str, pieces: &[Piece<'_>], texts: &[&str]) -> Option<Nearness> {
    let whole: u32 = pieces.iter().map(|piece| piece.weight).sum();
    if whole == 0 {
        return None;
    }
    let percent = |part: u32| part.saturating_mul(100) / whole;
    let find = |pieces: &[Piece<'_>]| {
        let pattern: String = std::iter::once(flags).chain(pieces.iter().map(|piece| piece.text)).collect();
        let pattern = Regex::new(&pattern).ok()?;
        let find = |(at, text): (usize, &&str)| pattern.find(text).map(|found| (at, found.start(), found.end()));
        texts.iter().enumerate().find_map(find)
    };
    let anchored = pieces.iter().take_while(|piece| piece.is_start()).count();
    if anchored > 0
        && let Some((text, at, _)) = find(&pieces[anchored..])
    {
        return Some(Nearness { percent: 95, reason: "all of it is there, but not at the start".into(), text, at });
    }
    // The longest run from the start that matches somewhere; a longer one never matches where a shorter one does not.
    let (mut count, mut beyond) = (0, pieces.len());
    while count + 1 < beyond {
        let middle = usize::midpoint(count, beyond);
        if find(&pieces[..middle]).is_some() {
            count = middle;
        } else {
            beyond = middle;
        }
    }
    let by_start = find(&pieces[..count]).filter(|_| count > 0).and_then(|(text, start, end)| {
        let part: u32 = pieces[..count].iter().map(|piece| piece.weight).sum();
        // A word that is half there is not there.
        let in_word =
            |piece: Option<&Piece<'_>>| piece.is_some_and(|piece| piece.plain.chars().any(char::is_alphanumeric));
        let half = pieces[..count].iter().rev().take_while(|piece| in_word(Some(piece))).count();
        let cut = if in_word(pieces.get(count)) { count - half } else { count };
        let (text, start, end) =
            if cut == 0 { (text, start, start) } else { find(&pieces[..cut]).unwrap_or((text, start, end)) };
        let missing = words_from(&pieces[cut..]);
        let instead = texts.get(text).and_then(|text| text.get(end..)).unwrap_or_default();
        let instead: String = instead.chars().take_while(|ch| *ch != '\n').take(24).collect();
        let instead = if instead.trim().is_empty() { "nothing".to_owned() } else { format!("{:?}", instead.trim()) };
        let reason = format!("it follows up to `{}`, then {instead} instead of {missing}", words(&pieces[..cut]));
        (part > 0).then(|| Nearness { percent: percent(part), reason, text, at: start })
    });
    let by_words = texts.iter().enumerate().filter_map(|(at, text)| by_words(pieces, at, text, percent));
    by_start.into_iter().chain(by_words).max_by_key(|near| near.percent)
}

/// How near by the words of the pattern that the text has.
fn by_words(pieces: &[Piece<'_>], nth: usize, text: &str, percent: impl Fn(u32) -> u32) -> Option<Nearness> {
    let mut runs: Vec<String> = vec![String::new()];
    for piece in pieces {
        match (piece.plain.as_str(), runs.last_mut()) {
            ("", _) => runs.push(String::new()),
            (plain, Some(run)) => run.push_str(plain),
            _ => {}
        }
    }
    let runs = runs.iter().flat_map(|run| run.split_whitespace());
    let mut words: Vec<&str> = runs.filter(|word| visible(word) as usize >= MIN_WORD_CHARS).collect();
    words.dedup();
    let (there, missing): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| text.contains(**word));
    let first = there.first()?;
    let part: u32 = there.iter().map(|run| visible(run)).sum();
    let quoted = |runs: &[&str]| runs.iter().map(|run| format!("{run:?}")).collect::<Vec<_>>().join(", ");
    let reason = if missing.is_empty() {
        format!("it has {}, but not what belongs around", quoted(&there))
    } else {
        format!("it has {}, and not {}", quoted(&there), quoted(&missing))
    };
    Some(Nearness { percent: percent(part).min(94), reason, text: nth, at: text.find(first)? })
}

/// The pieces as people wrote them.
fn words(pieces: &[Piece<'_>]) -> String {
    as_written(&pieces.iter().map(|piece| piece.text).collect::<String>())
}

/// What would have to follow: pieces up to the end of the first word.
fn words_from(pieces: &[Piece<'_>]) -> String {
    let mut text = String::new();
    for piece in pieces.iter().take(24) {
        if piece.plain.trim().is_empty() && visible(&text) > 2 {
            break;
        }
        text.push_str(piece.text);
    }
    format!("`{}`", as_written(&text))
}

/// A pattern as it stands in its profile, where a space means any run of blanks.
pub fn as_written(pattern: &str) -> String {
    [
        (r"(?:[\x20\t\n]+)", " "),
        ("[0-9A-Za-z_]", r"\w"),
        ("[0-9]", r"\d"),
        (r"[^\x20\t\n]", r"\S"),
        (r"[\x20\t\n]", r"\s"),
        (r"(?-u:\b)", r"\b"),
    ]
    .iter()
    .fold(pattern.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// How many characters can be seen.
fn visible(text: &str) -> u32 {
    u32::try_from(text.chars().filter(|ch| !ch.is_whitespace()).count()).unwrap_or(u32::MAX)
}

/// Flags at the start of a pattern, which hold for all of it, and the rest.
fn split_flags(pattern: &str) -> (&str, &str) {
    let end = pattern.strip_prefix("(?").and_then(|rest| rest.find(|ch: char| !ch.is_ascii_lowercase() && ch != '-'));
    match end {
        Some(end) if end > 0 && pattern[end + 2..].starts_with(')') => pattern.split_at(end + 3),
        _ => ("", pattern),
    }
}

/// The outermost pieces of each alternative of a pattern. A pattern that is one group is as good as what is in it.
fn alternatives(pattern: &str) -> Vec<Vec<Piece<'_>>> {
    let mut found: Vec<Vec<Piece<'_>>> = vec![Vec::new()];
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        if first == '|' {
            found.push(Vec::new());
            rest = &rest[1..];
            continue;
        }
        let body = piece_end(rest);
        let all = body + repeat_end(&rest[body..]);
        let (text, after) = rest.split_at(all);
        let may_lack = text[body..].starts_with(['?', '*']) || text[body..].starts_with("{0");
        let plain = plain_text(&text[..body]).filter(|_| all == body).unwrap_or_default();
        let weight = if may_lack { 0 } else { weight(&text[..body], &plain) };
        if let Some(pieces) = found.last_mut() {
            pieces.push(Piece { text, plain, weight });
        }
        rest = after;
    }
    found
}

/// Where the piece that begins the text ends: a group, a class, an escape, or one character.
fn piece_end(text: &str) -> usize {
    let mut depth = 0_u32;
    let mut in_class = 0_u32;
    let mut chars = text.char_indices().peekable();
    while let Some((at, ch)) = chars.next() {
        let end = at + ch.len_utf8();
        match ch {
            '\\' => {
                let next = chars.next().map_or(end, |(at, next)| at + next.len_utf8());
                let escape = &text[at..next];
                // `\x20`, `\p{..}` and `\u{..}` go on.
                let more = match escape {
                    r"\x" if !text[next..].starts_with('{') => text[next..].chars().take(2).map(char::len_utf8).sum(),
                    r"\x" | r"\p" | r"\P" | r"\u" | r"\U" => text[next..].find('}').map_or(0, |brace| brace + 1),
                    _ => 0,
                };
                while chars.peek().is_some_and(|(at, _)| *at < next + more) {
                    chars.next();
                }
                if depth == 0 && in_class == 0 {
                    return next + more;
                }
            }
            '[' => in_class += 1,
            ']' if in_class > 0 => in_class -= 1,
            '(' if in_class == 0 => depth += 1,
            ')' if in_class == 0 => depth = depth.saturating_sub(1),
            _ => {}
        }
        if ch != '\\' && depth == 0 && in_class == 0 {
            return end;
        }
    }
    text.len()
}

/// Where what repeats a piece ends: `?`, `*`, `+`, `{2,}`, each with a `?` behind it or not.
fn repeat_end(text: &str) -> usize {
    let end = match text.chars().next() {
        Some('?' | '*' | '+') => 1,
        Some('{') => text.find('}').map_or(0, |brace| brace + 1),
        _ => 0,
    };
    if end > 0 && text[end..].starts_with('?') { end + 1 } else { end }
}

/// What a piece spells out, if it is plain text. A run of blanks counts as one.
fn plain_text(piece: &str) -> Option<String> {
    if piece == r"(?:[\x20\t\n]+)" {
        return Some(" ".to_owned());
    }
    let mut chars = piece.chars();
    match (chars.next(), chars.next(), chars.next()) {
        (Some('\\'), Some(ch), None) if !ch.is_ascii_alphanumeric() => Some(ch.to_string()),
        (Some(ch), None, None) if !matches!(ch, '^' | '$' | '.') => Some(ch.to_string()),
        _ => None,
    }
}

/// How many visible characters a piece asks for at least; a class counts as one, a group as its shortest alternative.
fn weight(piece: &str, plain: &str) -> u32 {
    if !plain.is_empty() {
        return visible(plain);
    }
    if let Some(inner) = piece.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        if inner.starts_with("?-") {
            return 0;
        }
        let inner = match inner.strip_prefix('?') {
            Some(named) if named.starts_with("P<") || named.starts_with('<') => {
                named.split_once('>').map_or("", |(_, rest)| rest)
            }
            Some(flags) => flags.split_once(':').map_or("", |(_, rest)| rest),
            None => inner,
        };
        let sums = alternatives(inner).into_iter().map(|pieces| pieces.iter().map(|piece| piece.weight).sum());
        return sums.min().unwrap_or(0);
    }
    u32::from(piece.starts_with('[') && !piece.starts_with("[^") && piece != r"[\x20\t\n]")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pattern: &str, text: &str, percent: u32, reason: &str) {
        let near = nearness(pattern, &[text]).unwrap_or_else(|| panic!("{pattern} has nothing of {text}"));
        assert!(near.reason.contains(reason), "{pattern}: {near:?}");
        assert_eq!(near.percent, percent, "{pattern}: {near:?}");
    }

    #[test]
    fn what_follows_the_start_of_a_pattern_tells_what_is_missing() {
        check("esc to interrupt", "x · esc to stop", 35, r#"up to `esc to `, then "stop" instead of `interrupt`"#);
        check("^✻ .*retrying in", "✻ 500 · retrying soon", 81, r#"then "soon" instead of `in`"#);
        check(r"^[·✻] [0-9]+ shells? running", "✻ 3 jobs running", 50, r#"it has "running", and not "shell""#);
        check("^Usage limit", "⚠ Usage limit reached", 95, "not at the start");
    }

    #[test]
    fn words_count_wherever_they_stand() {
        check("^✢ Compacting .* esc to stop", "✻ Compacting now", 50, r#"it has "Compacting", and not "stop""#);
    }

    #[test]
    fn the_best_alternative_counts_and_flags_hold_for_each() {
        check("abcdef|uvw xyz", "uvw xy!", 83, r#"then "xy!" instead of `xyz`"#);
        assert_eq!(nearness("retrying in", &["trying on"]), None);
        check("(?i)press|ESC to", "esc now", 60, "then");
        assert_eq!(nearness("abc", &["xyz"]), None);
        assert_eq!(nearness(".*", &[""]), None);
    }

    #[test]
    fn a_pattern_is_shown_as_it_was_written() {
        assert_eq!(as_written(r"a(?:[\x20\t\n]+)[0-9]+(?-u:\b)"), r"a \d+\b");
    }

    #[test]
    fn pieces_are_whole() {
        let pieces = |pattern| alternatives(pattern).concat().iter().map(|piece| piece.text).collect::<Vec<_>>();
        assert_eq!(
            pieces(r"^a\.(b|[)\]])+?\x20{2,}[^\[]$"),
            ["^", "a", r"\.", r"(b|[)\]])+?", r"\x20{2,}", r"[^\[]", "$"]
        );
        assert_eq!(pieces(r"\x(é"), [r"\x(é"]);
        assert_eq!(split_flags("(?im)x"), ("(?im)", "x"));
        assert_eq!(split_flags("(?:x)"), ("", "(?:x)"));
    }

    proptest! {
        #[test]
        fn no_pattern_and_no_text_make_it_panic(pattern in ".{0,40}", text in "\\PC{0,60}") {
            let _any = nearness(&pattern, &[&text]);
        }

        #[test]
        fn no_mixture_of_signs_makes_it_panic(pattern in "[\\[\\](){}?*+|\\\\^$ax2é: <>P-]{0,24}", text in "[ax2é ]{0,20}") {
            let _any = nearness(&pattern, &[&text]);
        }
    }
}
