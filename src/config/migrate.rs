//! Rewrites a file of an older form: the values that are read as they were meant are written as they are now. Comments,
//! unknown keys and the order stay. Reads and writes nothing itself.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::{ConfigError, Place, Problem};
use super::judge::{Judged, judge};
use super::old::Old;
use super::value::Bases;
use super::yaml::{self, Half, Position};

/// What is to be done to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The whole text as it would be.
    pub text: String,
    /// Each line that changes in more than its indentation.
    pub lines: Vec<LineChange>,
    /// How many lines are indented with tabs.
    pub tabbed: usize,
}

/// A line that changes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LineChange {
    /// Its number, from 1.
    pub line: usize,
    /// As it is.
    pub before: String,
    /// As it would be.
    pub after: String,
}

impl Migration {
    /// Whether the file is as it should be.
    pub fn is_nothing(&self) -> bool {
        self.lines.is_empty() && self.tabbed == 0
    }
}

/// What is to be done to this file.
///
/// Errors: it is wrong, or a value stands in a way that can't be rewritten with certainty.
pub fn plan(path: &Path, text: &str, root: &Path) -> Result<Migration, ConfigError> {
    let bases = Bases { root, home: None };
    let judged = judge(path, text, bases);
    if !judged.problems.is_empty() {
        return Err(ConfigError { problems: judged.problems });
    }
    let plain = judged.text.as_deref().unwrap_or(text);
    let mut lines: Vec<String> = plain.split('\n').map(str::to_owned).collect();
    for ((line, _), edit) in edits(plain, &judged.old).into_iter().rev() {
        let done = lines.get_mut(line - 1).is_some_and(|line| edit.apply(line));
        if !done {
            return Err(by_hand(path, edit.old, Some(edit.at)));
        }
    }
    let after = lines.join("\n");
    let again = judge(path, &after, bases);
    if !says_the_same(&judged, &again) {
        let old = judged.old.first();
        return Err(old.map_or_else(|| unclear(path), |old| by_hand(path, old, None)));
    }
    let changes = text.split('\n').zip(plain.split('\n')).zip(after.split('\n')).enumerate();
    let lines = changes.filter(|(_, ((_, plain), after))| plain != after).map(|(number, ((before, _), after))| {
        LineChange { line: number + 1, before: before.to_owned(), after: after.to_owned() }
    });
    let tabbed = text.split('\n').zip(plain.split('\n')).filter(|(before, plain)| before != plain).count();
    Ok(Migration { lines: lines.collect(), tabbed, text: after })
}

/// A word to be replaced.
struct Edit<'a> {
    old: &'a Old,
    at: Position,
    from: &'a str,
    to: &'a str,
}

/// The words to replace, by line and column. Two keys may share one value through an alias.
fn edits<'a>(text: &str, olds: &'a [Old]) -> BTreeMap<(usize, usize), Edit<'a>> {
    let mut edits = BTreeMap::new();
    for old in olds {
        if let Some(at) = yaml::position(text, &old.route, Half::Value) {
            edits.insert((at.line, at.column), Edit { old, at, from: &old.written, to: &old.meant });
        }
        let name = old.key.rsplit('.').next().unwrap_or(old.key);
        if let (Some(written), Some(at)) = (&old.name, yaml::position(text, &old.route, Half::Key)) {
            edits.insert((at.line, at.column), Edit { old, at, from: written, to: name });
        }
    }
    edits
}

impl Edit<'_> {
    /// Replaces the word, with its quotes, if it stands there. Returns whether it does.
    fn apply(&self, line: &mut String) -> bool {
        let Some((start, _)) = line.char_indices().nth(self.at.column.saturating_sub(1)) else { return false };
        // An anchor stands before its value.
        let anchored = line[start..].strip_prefix('&').and_then(|rest| rest.split_once(' '));
        let start = anchored.map_or(start, |(_, rest)| line.len() - rest.trim_start_matches(' ').len());
        let rest = &line[start..];
        let quotes = ["\"", "'", ""];
        let Some(word) = quotes.iter().map(|q| format!("{q}{}{q}", self.from)).find(|word| rest.starts_with(word))
        else {
            return false;
        };
        // Should it be the beginning of a longer one, the result says something else, which is found before it is written.
        line.replace_range(start..start + word.len(), self.to);
        true
    }
}

/// Whether the rewritten file says what the old one was read as, in the forms of now.
fn says_the_same(before: &Judged, after: &Judged) -> bool {
    let values =
        |judged: &Judged| judged.values.iter().map(|(key, (value, _))| (*key, value.clone())).collect::<Vec<_>>();
    after.problems.is_empty()
        && after.old.is_empty()
        && after.text.is_none()
        && values(before) == values(after)
        && before.unused == after.unused
        && before.warnings.len() == after.warnings.len()
}

/// What can't be rewritten with certainty.
fn by_hand(path: &Path, old: &Old, at: Option<Position>) -> ConfigError {
    let hint = format!("change it by hand: {}", old.told());
    let what = "this can't be rewritten with certainty".into();
    let place = Place::File { path: path.to_owned(), at };
    Problem { place, key: Some(old.key.into()), what, hint: Some(hint) }.into()
}

/// Tabs whose replacement would change what the file says.
fn unclear(path: &Path) -> ConfigError {
    let hint = Some("replace the tabs by hand".into());
    let place = Place::File { path: path.to_owned(), at: None };
    Problem { place, key: None, what: "the tabs can't be replaced with certainty".into(), hint }.into()
}
