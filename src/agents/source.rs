//! Where the profiles in use come from: the text of each, the operator's files, and what is wrong with a file.
//!
//! Files are read by whoever has a disk (`crate::sys::profile_files`); here they are texts with a name.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

/// A file of the operator's: a whole profile, or an amendment to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds; why it can't be read.
    pub text: Result<String, String>,
}

impl ProfileFile {
    /// Its name without the ending.
    pub(super) fn stem(&self) -> &str {
        self.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }
}

/// Where a profile's text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is part of the program.
    BuiltIn,
    /// A file holds it whole.
    File(PathBuf),
}

/// What a file changes about a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amended {
    /// The file.
    pub path: PathBuf,
    /// The version of the profile that it was made for, if it says so.
    pub made_for: Option<u32>,
    /// Ids of the rules that it adds.
    pub added: Vec<String>,
    /// Ids of the rules that it changes.
    pub changed: Vec<String>,
    /// Ids of the rules that it takes out.
    pub removed: Vec<String>,
    /// Other keys that it sets.
    pub set: Vec<String>,
    /// What the file says of itself.
    pub why: Option<String>,
}

impl Amended {
    /// What it does, for people: `adds a, b; removes c`.
    pub fn summary(&self) -> String {
        let parts =
            [("adds", &self.added), ("changes", &self.changed), ("removes", &self.removed), ("sets", &self.set)];
        let said = parts.iter().filter(|(_, what)| !what.is_empty());
        let said: Vec<String> = said.map(|(verb, what)| format!("{verb} {}", what.join(", "))).collect();
        if said.is_empty() { "changes nothing".to_owned() } else { said.join("; ") }
    }
}

/// Where one profile in use comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where its text is from.
    pub origin: Origin,
    /// Files that amend it, in the order in which they were applied.
    pub amended: Vec<Amended>,
    /// The text in effect: as written where nothing amends it.
    pub text: Cow<'static, str>,
}

/// A file of the operator's that can't be used; the profiles are as if it were not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The file.
    pub path: PathBuf,
    /// The line, where it can be told, counted from 1.
    pub line: Option<usize>,
    /// The key that is wrong; empty where none can be named.
    pub key: String,
    /// What is wrong.
    pub what: String,
}

impl FileProblem {
    /// A problem with a file as a whole.
    pub(super) fn of(path: &Path, line: Option<usize>, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, key: String::new(), what: what.into() }
    }

    /// A problem with a key, whose line is looked for in the file's text.
    pub(super) fn at(path: &Path, text: &str, key: &str, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: line_of(text, key), key: key.to_owned(), what: what.into() }
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.what)
    }
}

/// The line in which a key of a profile stands: `screen.rules.ID.field`, `add.ID`, `paste.busy`. Looked for as people
/// look for it, since the reader tells no places once a file is read; `None` if it does not stand there.
fn line_of(text: &str, key: &str) -> Option<usize> {
    let rule = ["screen.rules.", "add.", "change.", "remove."].iter().find_map(|start| key.strip_prefix(start));
    let lines = || text.lines().enumerate();
    let Some(rule) = rule else {
        let last = key.rsplit('.').next()?.split('[').next()?;
        let in_braces = |line: &str| ["{", ", "].iter().any(|before| line.contains(&format!("{before}{last}:")));
        let found = lines().find(|(_, line)| has_key(line, last));
        return found.or_else(|| lines().find(|(_, line)| in_braces(line))).map(|(at, _)| at + 1);
    };
    let (id, field) = rule.split_once('.').unwrap_or((rule, ""));
    let names = |line: &str| {
        has_key(line, id) || value_of(line, "id") == Some(id) || (key.starts_with("remove.") && line.contains(id))
    };
    let (start, line) = lines().find(|(_, line)| names(line))?;
    // A rule in braces stands on its line whole.
    if field.is_empty() || line.contains('{') {
        return Some(start + 1);
    }
    let within = lines().skip(start + 1).take_while(|(_, line)| value_of(line, "id").is_none());
    Some(within.into_iter().find(|(_, line)| has_key(line, field)).map_or(start, |(at, _)| at) + 1)
}

/// Whether the line begins with this key, as a list item or not.
fn has_key(line: &str, key: &str) -> bool {
    line.trim_start().trim_start_matches("- ").strip_prefix(key).is_some_and(|rest| rest.starts_with(':'))
}

/// The plain value of a key, if the line begins with it or has it in braces.
fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let line = line.trim_start().trim_start_matches("- ").trim_start_matches('{').trim_start();
    let value = line.strip_prefix(key)?.strip_prefix(':')?.trim_start();
    let end = value.find([',', '}', '#', ' ']).unwrap_or(value.len());
    value.get(..end).map(|value| value.trim_matches(['\'', '"']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_its_line() {
        let text = "amends: claude\nset:\n  paste:\n    busy: hold\nadd:\n  - id: one\n    region: tail\n    regex: 'x('\n    \
                    why: y\n  - {id: two, region: tail}\nchange:\n  three:\n    regex: '['\nremove: [four]\n\
                    set: {gap: ' ', child: x}\n";
        for (key, line) in [
            ("amends", Some(1)),
            ("paste.busy", Some(4)),
            ("screen.rules.one", Some(6)),
            ("screen.rules.one.regex", Some(8)),
            ("screen.rules.one.since", Some(6)),
            ("screen.rules.two.regex", Some(10)),
            ("screen.rules.three.regex", Some(13)),
            ("change.three", Some(12)),
            ("remove.four", Some(14)),
            ("screen.rules.nobody", None),
            ("screen.child", Some(15)),
            ("screen.hint", None),
        ] {
            assert_eq!(line_of(text, key), line, "{key}");
        }
    }

    #[test]
    fn a_problem_names_file_line_and_key() {
        let problem = FileProblem::at(Path::new("/n/x.yml"), "a: 1\nb: 2\n", "b", "no such thing");
        assert_eq!(problem.to_string(), "/n/x.yml:2: b: no such thing");
        assert_eq!(FileProblem::of(Path::new("x.yml"), None, "empty").to_string(), "x.yml: empty");
    }
}
