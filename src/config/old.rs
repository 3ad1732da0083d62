//! Forms that older files are written in: numbers and switches in quotes, other words for true and false, another unit,
//! tabs. They are read as they were meant; `ng config migrate` rewrites them.

use super::keys::{self, Key};
use super::value::{Kind, Unit};
use super::yaml::Node;

/// A value in a form of its own time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Old {
    /// Its key, as it is named now.
    pub(super) key: &'static str,
    /// The last part of the name that is written, where that is another.
    pub(super) name: Option<String>,
    /// The value as it is written, without quotes.
    pub(super) written: String,
    /// The value as it is written now.
    pub(super) meant: String,
    /// The way to it.
    pub(super) route: Vec<usize>,
}

impl Old {
    /// For people.
    pub(super) fn told(&self) -> String {
        let Self { key, name, written, meant, .. } = self;
        match name {
            Some(name) => format!("{name}: {written} is read as {key}: {meant}"),
            None => format!("{key}: {written:?} is read as {meant}"),
        }
    }
}

/// What a value that its kind does not accept was in older files, if that is plain. A number with a unit is not: the
/// original tools took it for no number.
pub(super) fn meant(kind: &Kind, node: &Node) -> Option<(String, Node)> {
    let meant = match (kind, node) {
        (Kind::Whole { .. }, Node::Text(text)) => number(text).map(Node::Whole),
        (Kind::Switch { .. }, Node::Text(text)) => switch(text).map(Node::Switch),
        (Kind::Switch { .. }, Node::Whole(number @ (0 | 1))) => Some(Node::Switch(*number == 1)),
        _ => None,
    }?;
    let written = match node {
        Node::Text(text) => text.clone(),
        Node::Whole(number) => number.to_string(),
        _ => return None,
    };
    Some((written, meant))
}

/// A whole number in digits alone.
fn number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A leading zero may have been meant as an octal number.
    (is_plain && (text == "0" || !text.starts_with('0'))).then(|| text.parse().ok())?
}

/// The words that shells and older YAML take for a switch.
fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Units in names, in seconds.
const UNITS: [(&str, u64); 4] = [("_days", 86_400), ("_hours", 3600), ("_minutes", 60), ("_seconds", 1)];

/// The key that is meant by its name with another unit, or without one, and the length of the written and of its own
/// unit in seconds.
pub(super) fn in_another_unit(path: &str) -> Option<(&'static Key, u64, u64)> {
    let written = UNITS.iter().find_map(|(suffix, secs)| Some((path.strip_suffix(suffix)?, Some(*secs))));
    let (stem, written) = written.unwrap_or((path, None));
    keys::all().iter().find_map(|key| {
        let Kind::Whole { unit: Unit::Days | Unit::Hours | Unit::Seconds, .. } = &key.kind else { return None };
        let (own_stem, own) = UNITS.iter().find_map(|(suffix, secs)| Some((key.path.strip_suffix(suffix)?, *secs)))?;
        (own_stem == stem).then_some((*key, written.unwrap_or(own), own))
    })
}

/// A text that is indented with tabs alone, with two spaces for each; `None` if there is no tab to indent, or if spaces
/// stand beside tabs, where nobody can tell how wide one was meant to be.
pub(super) fn without_tabs(text: &str) -> Option<String> {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut tabs = false;
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (space, rest) = line.split_at(indent(line));
        if rest.trim().is_empty() {
            plain.push_str(rest);
            continue;
        }
        if space.contains(' ') {
            return None;
        }
        tabs |= !space.is_empty();
        plain.push_str(&space.replace('\t', "  "));
        plain.push_str(rest);
    }
    tabs.then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_forms_are_read() {
        for (text, expected) in
            [("30", Some(30)), ("0", Some(0)), ("030", None), ("30s", None), (" 30", None), ("-3", None), ("", None)]
        {
            assert_eq!(number(text), expected, "{text:?}");
        }
        for (text, expected) in [("YES", Some(true)), ("off", Some(false)), ("enabled", None), ("", None)] {
            assert_eq!(switch(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_name_with_another_unit_is_found_and_its_factor() {
        let check = |path: &str, expected: Option<(&str, u64, u64)>| {
            assert_eq!(in_another_unit(path).map(|(key, from, to)| (key.path, from, to)), expected, "{path}");
        };
        check("monitor.interval_minutes", Some(("monitor.interval_seconds", 60, 1)));
        check("monitor.interval", Some(("monitor.interval_seconds", 1, 1)));
        check("monitor.idle_close_seconds", Some(("monitor.idle_close_hours", 1, 3600)));
        check("monitor.scheduler.max_sleep", Some(("monitor.scheduler.max_sleep_seconds", 1, 1)));
        check("monitor.emit_dedup_ring_size_seconds", None);
        check("monitor.interval_weeks", None);
    }

    #[test]
    fn tabs_become_two_spaces_unless_they_are_mixed() {
        for (text, expected) in [
            ("a:\n\tb: 1\n\t\tc: 2\n", Some("a:\n  b: 1\n    c: 2\n")),
            ("a:\n\n\t\n\tb: '\t'", Some("a:\n\n\n  b: '\t'")),
            ("a:\n  b: 1\n\tc: 2\n", None),
            ("a:\n \tb: 1\n", None),
            ("a: 1\n", None),
        ] {
            assert_eq!(without_tabs(text).as_deref(), expected, "{text:?}");
        }
    }
}
