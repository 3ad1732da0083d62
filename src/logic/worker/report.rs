//! Checks a report for completeness: what `ng report-check` prints and what makes a wrap-up a stub.

use std::sync::LazyLock;

use regex::Regex;

/// Frontmatter keys that must have a value.
const KEYS: [&str; 4] = ["project", "date", "session-id", "status"];

/// Heading lines that must be there, exactly.
const HEADINGS: [&str; 5] =
    ["## Summary", "## What Was Done", "## Current State", "## What Remains", "## How to Resume"];

/// Values of `status`.
const STATUSES: [&str; 3] = ["completed", "partial", "blocked"];

/// Words that mark unfinished text.
static PLACEHOLDER_WORDS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(?:TODO|FIXME)\b").expect("the pattern is fixed and a test compiles it"));

/// What to allow and require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckRules {
    /// `monitor.report_min_chars`: bytes of the body after the frontmatter.
    pub min_body: usize,
    /// `--allow-todo`: words that mark unfinished text are fine.
    pub allow_todo: bool,
}

/// Everything that is missing in a report, one text each, in the order of the checks; empty means complete.
///
/// Source: `protocol-facts` §5.2.
pub fn report_check(text: &str, rules: CheckRules) -> Vec<String> {
    let mut missing = Vec::new();
    let (front, body) = split(text);
    if front.is_none() {
        missing.push("frontmatter: file must start with a '---' line".to_owned());
    }
    for key in KEYS {
        let value = front.and_then(|front| field(front, key)).unwrap_or("");
        if value.is_empty() {
            missing.push(format!("frontmatter field: {key}"));
        } else if key == "session-id" && value == "unknown" {
            missing.push(
                "frontmatter field: session-id (resolved to 'unknown'; set explicitly or fix capture)".to_owned(),
            );
        } else if key == "status" && !STATUSES.contains(&value) {
            missing.push(format!("frontmatter field: status (must be completed|partial|blocked, got '{value}')"));
        }
    }
    for heading in HEADINGS {
        if !body.lines().any(|line| line.trim_end() == heading) {
            missing.push(format!("section: {heading}"));
        }
    }
    let length = body_bytes(text);
    if length < rules.min_body {
        missing.push(format!("body too short: {length} < {} chars", rules.min_body));
    }
    if !rules.allow_todo && PLACEHOLDER_WORDS.is_match(body) {
        missing.push("placeholder text: TODO/FIXME present (pass --allow-todo to skip)".to_owned());
    }
    for placeholder in ["<...>", "_(fill in)_", "_(later)_"] {
        if body.contains(placeholder) {
            missing.push(format!("placeholder text: {placeholder} present"));
        }
    }
    missing
}

/// Bytes of the body after the frontmatter.
pub fn body_bytes(text: &str) -> usize {
    split(text).1.trim().len()
}

/// The frontmatter's lines and the body. Without a closing line there is no body.
fn split(text: &str) -> (Option<&str>, &str) {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some((first, after)) = rest.split_once('\n') else { return (None, rest) };
    if first.trim_end() != "---" {
        return (None, rest);
    }
    rest = after;
    let mut length: usize = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let end = length.saturating_add(line.len());
            return (rest.get(..length), rest.get(end..).unwrap_or(""));
        }
        length = length.saturating_add(line.len());
    }
    (Some(rest), "")
}

/// The value of a frontmatter key, without quotes.
fn field<'a>(front: &'a str, key: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(key)?.trim_start().strip_prefix(':').map(str::trim);
    let value = front.lines().find_map(value)?;
    let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    Some(unquoted.unwrap_or(value).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete() -> String {
        let front = "---\nproject: web\ndate: 2026-05-11\nsession-id: \"abc\"\nstatus: completed\n---\n";
        let sections = HEADINGS.map(|heading| format!("\n{heading}\n{}\n", "words ".repeat(20)));
        front.to_owned() + &sections.concat()
    }

    fn check(change: impl Fn(String) -> String, expected: &[&str]) {
        let rules = CheckRules { min_body: 500, allow_todo: false };
        assert_eq!(report_check(&change(complete()), rules), expected);
    }

    #[test]
    fn a_complete_report_passes() {
        check(|text| text, &[]);
        check(|text| text.replace('\n', "\r\n"), &[]);
    }

    #[test]
    fn each_check_has_its_text() {
        check(
            |text| text.replacen("---\n", "", 1),
            &[
                "frontmatter: file must start with a '---' line",
                "frontmatter field: project",
                "frontmatter field: date",
                "frontmatter field: session-id",
                "frontmatter field: status",
            ],
        );
        check(|text| text.replace("project: web", "project:"), &["frontmatter field: project"]);
        check(|text| text.replace("date: 2026-05-11\n", ""), &["frontmatter field: date"]);
        check(
            |text| text.replace("\"abc\"", "unknown"),
            &["frontmatter field: session-id (resolved to 'unknown'; set explicitly or fix capture)"],
        );
        check(
            |text| text.replace("completed", "done"),
            &["frontmatter field: status (must be completed|partial|blocked, got 'done')"],
        );
        check(|text| text.replace("## What Remains", "### What Remains"), &["section: ## What Remains"]);
        check(|text| text.replace("## What Remains", "## What Remains Open"), &["section: ## What Remains"]);
        check(|text| text + "\nTODO: more", &["placeholder text: TODO/FIXME present (pass --allow-todo to skip)"]);
        check(|text| text + "\nmastodon TODOS", &[]);
        check(|text| text + "\n<...>", &["placeholder text: <...> present"]);
        check(|text| text + "\n_(fill in)_", &["placeholder text: _(fill in)_ present"]);
        check(|text| text + "\n_(later)_", &["placeholder text: _(later)_ present"]);
    }

    #[test]
    fn a_short_body_is_counted_in_bytes() {
        let rules = CheckRules { min_body: 500, allow_todo: true };
        let text = "---\nproject: a\n---\nü\n";
        assert!(report_check(text, rules).contains(&"body too short: 2 < 500 chars".to_owned()));
    }

    #[test]
    fn odd_files_do_not_panic() {
        let rules = CheckRules { min_body: 500, allow_todo: false };
        for text in ["", "---", "---\n", "---\n---", "---\nproject", "\u{feff}---\nx: y\n---\n"] {
            assert!(!report_check(text, rules).is_empty(), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_check_panic(text in "(---\n)?(project ?: ?\"?[a-zü\"]{0,3}\n){0,2}(---\r?\n?)?.{0,20}") {
            let _problems = report_check(&text, CheckRules { min_body: 500, allow_todo: false });
        }
    }
}
