//! Keeps a paste below a size: a text that is longer is cut at the end of a line, with a pointer to where it stands whole.

/// A text as it is pasted.
///
/// Shape: `body` itself if it has at most `max_bytes`. Else its first lines, one line of `pointer` (told how many lines are
///        missing), and `last`, which stands last in `body`: its signature, or nothing. At least the pointer and `last`
///        are there, however small the limit; the first line that alone is too long is cut within.
pub fn fit(body: &str, last: &str, max_bytes: usize, pointer: impl Fn(usize) -> String) -> String {
    if body.len() <= max_bytes {
        return body.to_owned();
    }
    let text = body.strip_suffix(last).unwrap_or(body);
    let all = text.lines().count();
    // The line breaks beside the pointer, and the longest that the pointer can be.
    let mut free = max_bytes.saturating_sub(last.len()).saturating_sub(pointer(all).len()).saturating_sub(2);
    let mut kept: Vec<&str> = Vec::new();
    for line in text.lines() {
        match free.checked_sub(line.len().saturating_add(1)) {
            Some(left) => {
                free = left;
                kept.push(line);
            }
            None if kept.is_empty() => {
                let end = (0..=free.saturating_sub(1)).rev().find(|&end| line.is_char_boundary(end)).unwrap_or(0);
                kept.extend(line.get(..end).filter(|piece| !piece.is_empty()));
                break;
            }
            None => break,
        }
    }
    // A line of which only a part is shown counts as missing, so that nobody takes it for whole.
    let whole = kept.iter().zip(text.lines()).filter(|(kept, line)| *kept == line).count();
    let pointer = pointer(all.saturating_sub(whole));
    let mut cut = kept.join("\n");
    if !cut.is_empty() {
        cut.push('\n');
    }
    cut.push_str(&pointer);
    if !last.is_empty() {
        cut.push('\n');
        cut.push_str(last);
    }
    cut
}

/// The line that stands in a cut text. `how` says how to read it whole.
pub fn pointer(missing: usize, path: &str, how: &str) -> String {
    format!("[… {missing} more lines: {path}; {how}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST: &str = "--- nexus-emit-sig 2026-05-11T13:42:01-07:00 a1b2c3 ---";

    fn cut(body: &str, last: &str, max_bytes: usize) -> String {
        fit(body, last, max_bytes, |missing| pointer(missing, "/s/diffs/x.md", "read it with: ng emits show a1b2c3"))
    }

    #[test]
    fn what_fits_is_pasted_as_it_is() {
        let body = format!("a\nb\n{LAST}");
        assert_eq!(cut(&body, LAST, body.len()), body);
    }

    #[test]
    fn what_does_not_fit_is_cut_at_a_line_and_says_where_the_rest_is() {
        let body: String = (0..100).map(|n| format!("line {n:02}\n")).chain([LAST.to_owned()]).collect();
        for max_bytes in [200, 300, 500, 700] {
            let text = cut(&body, LAST, max_bytes);
            assert!(text.len() <= max_bytes, "{max_bytes}: {}", text.len());
            let lines: Vec<&str> = text.lines().collect();
            let (pointer, last) = (lines[lines.len() - 2], lines[lines.len() - 1]);
            assert_eq!(last, LAST);
            let missing = 100 - (lines.len() - 2);
            assert_eq!(
                pointer,
                format!("[… {missing} more lines: /s/diffs/x.md; read it with: ng emits show a1b2c3]"),
                "{max_bytes}"
            );
            assert!(body.starts_with(&lines[..lines.len() - 2].join("\n")));
        }
    }

    #[test]
    fn one_long_line_is_cut_within_and_counts_as_missing() {
        let body = "ü".repeat(400);
        let text = cut(&body, "", 200);
        assert!(text.len() <= 200 && text.starts_with("üü") && text.contains("[… 1 more lines: "), "{text}");
    }

    #[test]
    fn the_pointer_and_the_signature_are_always_there() {
        let body = format!("{}\n{LAST}", "x".repeat(300));
        let text = cut(&body, LAST, 10);
        assert!(text.starts_with("[… 1 more lines: ") && text.ends_with(LAST), "{text}");
    }
}
