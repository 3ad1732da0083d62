//! A configuration that is fine: every value with its origin, and the settings made of them. Reads nothing.

use std::collections::BTreeMap;
use std::path::Path;

use super::checks::{CHECKS, Objection};
use super::error::{ConfigError, Place, Problem};
use super::keys::{Key, Reload as Class};
use super::resolved::Settings;
use super::value::{Bases, Value};
use super::yaml::{self, Half, Position};

/// A configuration that was read and is fine.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What the program acts on.
    pub settings: Settings,
    /// What the operator should know once; nothing here is an error.
    pub notices: Vec<String>,
    /// Keys in the file that nobody knows; they set nothing.
    pub warnings: Vec<Problem>,
    /// Whether something in the file is written as it was in an older version.
    pub is_in_an_older_form: bool,
    /// Every key with its value, in the order of the table.
    pub values: Vec<Setting>,
    /// The text that was read, and the way to each value in it.
    pub(super) source: Option<Source>,
}

/// The file that was read.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// Its text.
    pub(super) text: String,
    /// The way to each value in it.
    pub(super) routes: BTreeMap<&'static str, Vec<usize>>,
}

impl Loaded {
    /// Where the file sets this key; `None` if it does not.
    ///
    /// The text is read again for each call, so this is for people's questions only.
    pub fn position(&self, setting: &Setting) -> Option<Position> {
        let source = self.source.as_ref().filter(|_| setting.origin == Origin::File)?;
        yaml::position(&source.text, source.routes.get(setting.key.path)?, Half::Key)
    }

    /// Whether a file was read in which nothing is written, not even a comment.
    pub(super) fn is_blank(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.text.trim().is_empty())
    }

    /// Makes the settings of the values.
    ///
    /// Errors: values that do not go together, each blamed where it was set.
    pub(super) fn settled(mut self) -> Result<Self, ConfigError> {
        for setting in &self.values {
            setting.key.kind.apply(&mut self.settings, setting.value.clone());
        }
        let problem = |objection: Objection| Problem {
            place: self.place(objection.key),
            key: Some(objection.key.into()),
            what: objection.what,
            hint: None,
        };
        let problems: Vec<_> = CHECKS.iter().filter_map(|check| check(&self.settings)).map(problem).collect();
        if problems.is_empty() { Ok(self) } else { Err(ConfigError { problems }) }
    }

    /// Where to point for the value of a key.
    fn place(&self, path: &str) -> Place {
        let Some(setting) = self.values.iter().find(|setting| setting.key.path == path) else { return Place::Nowhere };
        match (&setting.origin, &self.source, &self.settings.config_file) {
            (Origin::File, Some(source), Some(file)) => {
                let at = source.routes.get(path).and_then(|route| yaml::position(&source.text, route, Half::Value));
                Place::File { path: file.clone(), at }
            }
            (Origin::Variable(name), ..) => Place::Variable((*name).into()),
            _ => Place::Nowhere,
        }
    }

    /// The same with a value that the command line gives, which wins over everything else.
    ///
    /// Errors: it is not what the key accepts, or it does not go together with the others.
    pub fn with_flag(mut self, flag: &Flag) -> Result<Self, ConfigError> {
        let Some(setting) = self.values.iter_mut().find(|setting| setting.key.path == flag.key) else {
            return Ok(self);
        };
        let bases = Bases { root: &self.settings.root, home: None };
        setting.value = setting.key.kind.check_variable(&flag.value, bases).map_err(|wrong| Problem {
            place: Place::Nowhere,
            key: None,
            what: format!("{}: found {}, expected {}", flag.name, wrong.found, wrong.expected),
            hint: wrong.hint,
        })?;
        setting.origin = Origin::Flag(flag.name);
        self.settled()
    }

    /// What of this configuration may come into force in a process in which `running` is: keys that need a restart keep
    /// the running value.
    ///
    /// Errors: what would then be in force does not go together.
    pub(super) fn in_place_of(mut self, running: &Self) -> Result<Reload, ConfigError> {
        let mut changes = Vec::new();
        for (new, old) in self.values.iter_mut().zip(&running.values) {
            if new.value == old.value {
                continue;
            }
            changes.push(Change { key: new.key, from: old.value.clone(), to: new.value.clone() });
            if new.key.reload == Class::Restart {
                new.clone_from(old);
            }
        }
        Ok(Reload { loaded: self.settled()?, changes })
    }

    /// Where a value came from, in words: `default`, `FILE:LINE` or the name of the variable.
    pub fn origin(&self, setting: &Setting) -> String {
        let file = || self.settings.config_file.as_deref().unwrap_or(Path::new("")).display();
        match setting.origin {
            Origin::Default => "default".into(),
            Origin::Flag(name) | Origin::Variable(name) => name.into(),
            Origin::File => match self.position(setting) {
                Some(at) => format!("{}:{}", file(), at.line),
                None => file().to_string(),
            },
        }
    }
}

/// A value that the command line gives for a key.
#[derive(Clone, Debug)]
pub struct Flag {
    /// The switch, as `--target`.
    pub name: &'static str,
    /// The key.
    pub key: &'static str,
    /// What stands behind the switch.
    pub value: String,
}

/// A key whose value is another than the one in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: &'static Key,
    /// The value in force until now.
    pub from: Value,
    /// The value that is set now.
    pub to: Value,
}

/// What a reload comes to.
#[derive(Debug)]
pub(super) struct Reload {
    /// What is in force from now on.
    pub(super) loaded: Loaded,
    /// Every key that is set to another value than the running one, whether or not that value comes into force.
    pub(super) changes: Vec<Change>,
}

/// One key with its value.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The key.
    pub key: &'static Key,
    /// Its value.
    pub value: Value,
    /// Where the value came from.
    pub origin: Origin,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The key table.
    Default,
    /// The file.
    File,
    /// This switch of the command line.
    Flag(&'static str),
    /// This environment variable.
    Variable(&'static str),
}
