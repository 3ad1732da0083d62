//! What is wrong with a configuration: every problem with its place, its key and what to do about it.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::yaml::Position;

/// How many problems are printed; the rest is counted.
const MAX_SHOWN: usize = 20;

/// All problems of a configuration, in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The problems.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it was found.
    pub place: Place,
    /// The key, such as `monitor.interval_seconds`, if it is about one.
    pub key: Option<String>,
    /// What was found and what was expected.
    pub what: String,
    /// What to do, where more can be told.
    pub hint: Option<String>,
}

/// Where a problem was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file, at a position if it is known.
    File { path: PathBuf, at: Option<Position> },
    /// In an environment variable.
    Variable(String),
    /// In no one place.
    Nowhere,
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, at: Some(at) } => write!(f, "{}:{}:{}: ", path.display(), at.line, at.column),
            Self::File { path, at: None } => write!(f, "{}: ", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}: "),
            Self::Nowhere => Ok(()),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        write!(f, "{}", self.what)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().take(MAX_SHOWN).enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        match self.problems.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n... and {more} more problems"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Serialize for Problem {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            file: Option<String>,
            line: Option<usize>,
            column: Option<usize>,
            variable: Option<&'a str>,
            key: Option<&'a str>,
            problem: &'a str,
            hint: Option<&'a str>,
        }
        let (file, at, variable) = match &self.place {
            Place::File { path, at } => (Some(path.display().to_string()), *at, None),
            Place::Variable(name) => (None, None, Some(name.as_str())),
            Place::Nowhere => (None, None, None),
        };
        let row = Row {
            file,
            line: at.map(|at| at.line),
            column: at.map(|at| at.column),
            variable,
            key: self.key.as_deref(),
            problem: &self.what,
            hint: self.hint.as_deref(),
        };
        row.serialize(serializer)
    }
}

/// The known word that is nearest to a written one, if one is near enough to be meant.
pub(super) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = |candidate: &&str| distance(written, candidate) <= (written.chars().count() / 3).clamp(1, 3);
    // `min_by_key` keeps the first of equals, so the answer does not depend on anything but the table's order.
    known.into_iter().filter(near).min_by_key(|candidate| distance(written, candidate))
}

/// How many letters must be added, removed, changed or swapped with their neighbour to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().take(200).collect(), to.chars().take(200).collect());
    let mut older: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let changed = above[column] + usize::from(letter != other);
            let mut least = changed.min(above[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && *letter == to[column - 1] && from[row - 1] == *other {
                least = least.min(older[column - 1] + 1);
            }
            current.push(least);
        }
        older = std::mem::replace(&mut above, current);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_added_removed_changed_and_swapped_letters() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "abd", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
            assert_eq!(distance(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn only_a_near_word_is_offered() {
        let known = ["auto", "always", "never"];
        for (written, expected) in [("atuo", Some("auto")), ("nevr", Some("never")), ("sometimes", None), ("", None)] {
            assert_eq!(nearest(written, known), expected, "{written}");
        }
    }
}
