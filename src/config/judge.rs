//! Holds a written file against the key table: values, problems and notices. Reads nothing itself.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::{Place, Problem};
use super::keys::{self, Fate, nearest_key};
use super::value::{Bases, Value, found};
use super::yaml::{self, Half, Node, NotYaml, Position};

/// Problems for which a near key is looked for.
const MAX_EXPLAINED: usize = 20;

/// Bytes that may be read to find positions; each look-up reads the text again, and a file of a megabyte full of
/// problems must not take minutes.
const LOOK_UP_BYTES: usize = 2 << 20;

/// What a file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Judged {
    /// Values by key, with the route to each for its position.
    pub(super) values: BTreeMap<&'static str, (Value, Vec<usize>)>,
    /// What is wrong.
    pub(super) problems: Vec<Problem>,
    /// Keys that are known and set nothing, with what they say.
    pub(super) unused: Vec<(String, Fate, Node)>,
}

/// Holds the text of a file against the key table.
pub(super) fn judge(path: &Path, text: &str, bases: Bases<'_>) -> Judged {
    let mut judge = Judge { path, text, bases, judged: Judged::default(), budget: LOOK_UP_BYTES };
    match yaml::parse(text) {
        Err(error) => {
            let place = Place::File { path: path.to_owned(), at: error.at };
            let hint = hint_for(text, &error);
            let what = format!("this is not valid YAML: {}", error.reason);
            judge.judged.problems.push(Problem { place, key: None, what, hint });
        }
        Ok(Node::Null) => {}
        Ok(Node::Map(entries)) => judge.section("", &entries, &mut Vec::new()),
        Ok(other) => {
            let what = format!("found {}, expected sections such as monitor:", found(&other));
            judge.problem(None, what, None, &[], Half::Value);
        }
    }
    judge.judged
}

/// What to do about a text that is not YAML, where that can be told.
fn hint_for(text: &str, error: &NotYaml) -> Option<String> {
    let line = text.lines().nth(error.at?.line.saturating_sub(1)).unwrap_or_default();
    let is_tabbed = line.chars().take_while(|c| c.is_whitespace()).any(|c| c == '\t');
    let by_reason = [
        ("character that cannot start", is_tabbed, "use spaces to indent, YAML allows no tabs"),
        ("expected key", true, "compare the indentation of this line with the lines above"),
        ("mapping values are not allowed", true, "put a value that has a colon in it in quotes"),
        ("end of stream", true, "a quote or bracket is not closed"),
    ];
    by_reason.into_iter().find(|(reason, fits, _)| *fits && error.reason.contains(reason)).map(|(.., hint)| hint.into())
}

/// A walk over one file.
struct Judge<'a> {
    path: &'a Path,
    text: &'a str,
    bases: Bases<'a>,
    judged: Judged,
    /// Bytes that may still be read to find positions.
    budget: usize,
}

impl Judge<'_> {
    /// The position at the end of a route, while there is budget for it.
    fn position(&mut self, route: &[usize], half: Half) -> Option<Position> {
        self.budget = self.budget.checked_sub(self.text.len())?;
        yaml::position(self.text, route, half)
    }

    /// Notes a problem at the end of a route.
    fn problem(&mut self, key: Option<&str>, what: String, hint: Option<String>, route: &[usize], half: Half) {
        let at = self.position(route, half);
        let place = Place::File { path: self.path.to_owned(), at };
        self.judged.problems.push(Problem { place, key: key.map(shown), what, hint });
    }

    /// Walks the entries of a section; `prefix` is its name with a dot, or empty.
    fn section(&mut self, prefix: &str, entries: &[(String, Node)], route: &mut Vec<usize>) {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (number, (name, node)) in entries.iter().enumerate() {
            let path = format!("{prefix}{name}");
            let earlier = *first.entry(name).or_insert(number);
            if earlier != number {
                route.push(earlier);
                let line = self.position(route, Half::Key).map(|at| at.line);
                route.pop();
                let what =
                    line.map_or_else(|| "given twice".into(), |line| format!("given twice, first on line {line}"));
                route.push(number);
                self.problem(Some(&path), what, Some("keep one".into()), route, Half::Key);
                route.pop();
                continue;
            }
            route.push(number);
            if (name.contains('.') || name.is_empty()) && keys::fate(prefix.trim_end_matches('.')).is_none() {
                self.unknown(&path, route);
            } else {
                self.entry(&path, node, route);
            }
            route.pop();
        }
    }

    /// Judges one entry.
    fn entry(&mut self, path: &str, node: &Node, route: &mut Vec<usize>) {
        if let Some(key) = keys::by_path(path) {
            match key.kind.check_file(node, self.bases) {
                Ok(value) => {
                    if *node != Node::Null {
                        self.judged.values.insert(key.path, (value, route.clone()));
                    }
                }
                Err(wrong) => {
                    let what = format!("found {}, expected {}", wrong.found, wrong.expected);
                    let depth = route.len();
                    route.extend(wrong.item);
                    self.problem(Some(path), what, wrong.hint, route, Half::Value);
                    route.truncate(depth);
                }
            }
        } else if let (true, Node::Map(entries)) = (keys::is_section(path), node) {
            self.section(&format!("{path}."), entries, route);
        } else if let Some(fate) = keys::fate(path) {
            match node {
                // The keys below are told one by one, and repeats among them are found.
                Node::Map(entries) if !entries.is_empty() => self.section(&format!("{path}."), entries, route),
                Node::Null => {}
                _ => self.judged.unused.push((path.to_owned(), fate, node.clone())),
            }
        } else if keys::is_section(path) {
            if *node != Node::Null {
                let what = format!("found {}, expected keys below it", found(node));
                self.problem(Some(path), what, None, route, Half::Value);
            }
        } else {
            self.unknown(path, route);
        }
    }

    /// Notes a key that nobody knows.
    fn unknown(&mut self, path: &str, route: &[usize]) {
        let hint = if keys::by_path(path).is_some() || keys::fate(path).is_some() {
            Some("write each section on a line of its own, with the next one indented below it".to_owned())
        } else if self.judged.problems.len() < MAX_EXPLAINED {
            let near = nearest_key(path).map(|key| format!("did you mean {key}?"));
            Some(near.unwrap_or_else(|| "`ng config example` has every key".to_owned()))
        } else {
            None
        };
        self.problem(Some(path), "there is no such key".into(), hint, route, Half::Key);
    }
}

/// A key as it is shown: outside text without control characters, and not endless.
fn shown(key: &str) -> String {
    key.chars().take(120).map(|c| if c.is_control() { '?' } else { c }).collect()
}
