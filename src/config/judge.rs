//! Holds a written file against the key table: values, problems and warnings. Reads nothing itself.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::{Place, Problem};
use super::keys::{self, Fate, Key, nearest_key};
use super::old::{self, Old};
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
    /// Keys that nobody knows. They may be of a later version, so they set nothing and are no reason to refuse the rest.
    pub(super) warnings: Vec<Problem>,
    /// Values in a form of their own time, which are read as they were meant.
    pub(super) old: Vec<Old>,
    /// Keys that are known and set nothing, with what they say.
    pub(super) unused: Vec<(String, Fate, Node)>,
    /// The text that was judged, where that is not the one that is written: tabs have become spaces.
    pub(super) text: Option<String>,
}

/// Holds the text of a file against the key table.
pub(super) fn judge(path: &Path, text: &str, bases: Bases<'_>) -> Judged {
    if yaml::parse(text).is_err()
        && let Some(plain) = old::without_tabs(text)
        && yaml::parse(&plain).is_ok()
    {
        return Judged { text: Some(plain.clone()), ..judge(path, &plain, bases) };
    }
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
                        self.set(path, key, value, route);
                    }
                }
                Err(wrong) => {
                    if let Some((written, node)) = old::meant(&key.kind, node)
                        && let Ok(value) = key.kind.check_file(&node, self.bases)
                    {
                        self.read_old(
                            path,
                            Old { key: key.path, name: None, written, meant: value.to_yaml(), route: route.clone() },
                            key,
                            value,
                        );
                        return;
                    }
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
        } else if !self.in_another_unit(path, node, route) {
            self.unknown(path, route);
        }
    }

    /// Takes a value for a key.
    fn set(&mut self, path: &str, key: &'static Key, value: Value, route: &[usize]) {
        if self.judged.values.insert(key.path, (value, route.to_vec())).is_some() {
            // The same name twice in a section is found before; these are two names of one key.
            let what = format!("given twice: in another unit as well, as {}", key.path);
            self.problem(Some(path), what, Some("keep one".into()), route, Half::Key);
        }
    }

    /// Takes a value in a form of its own time.
    fn read_old(&mut self, path: &str, old: Old, key: &'static Key, value: Value) {
        self.set(path, key, value, &old.route);
        self.judged.old.push(old);
    }

    /// Takes a value under the name of a key with another unit; `false` if it is no such name.
    fn in_another_unit(&mut self, path: &str, node: &Node, route: &[usize]) -> bool {
        let Some((key, from, to)) = old::in_another_unit(path) else { return false };
        let number = match node {
            Node::Whole(number) => Some(*number),
            other => match old::meant(&key.kind, other) {
                Some((_, Node::Whole(number))) => Some(number),
                _ => None,
            },
        };
        let Some(number) = number else { return false };
        let meant = number.checked_mul(from).filter(|secs| secs % to == 0).map(|secs| secs / to);
        if let Some(Ok(value)) = meant.map(|meant| key.kind.check_file(&Node::Whole(meant), self.bases)) {
            let name = path.rsplit('.').next().map(str::to_owned);
            let (written, meant) = (number.to_string(), value.to_yaml());
            self.read_old(path, Old { key: key.path, name, written, meant, route: route.to_vec() }, key, value);
        } else {
            let what = format!("found {number}, expected what comes to {} in {}", key.kind.expected(), key.path);
            self.problem(Some(path), what, None, route, Half::Value);
        }
        true
    }

    /// Notes a key that nobody knows.
    fn unknown(&mut self, path: &str, route: &[usize]) {
        let hint = if keys::by_path(path).is_some() || keys::fate(path).is_some() {
            Some("write each section on a line of its own, with the next one indented below it".to_owned())
        } else if self.judged.warnings.len() < MAX_EXPLAINED {
            let near = nearest_key(path).map(|key| format!("did you mean {key}?"));
            Some(near.unwrap_or_else(|| "`ng config example` has every key".to_owned()))
        } else {
            None
        };
        let place = Place::File { path: self.path.to_owned(), at: self.position(route, Half::Key) };
        let what = "there is no such key".into();
        self.judged.warnings.push(Problem { place, key: Some(shown(path)), what, hint });
    }
}

/// A key as it is shown: outside text without control characters, and not endless.
fn shown(key: &str) -> String {
    key.chars().take(120).map(|c| if c.is_control() { '?' } else { c }).collect()
}
