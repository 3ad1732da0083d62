//! The kinds of value that a key can have: what is accepted from a file and from the environment, how it is described
//! when it is wrong, and how it is written out again.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::error::nearest;
use super::resolved::Settings;
use super::yaml::Node;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Days.
    Days,
    /// Hours.
    Hours,
    /// No unit.
    None,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// The unit after `a whole number`.
    fn of(self) -> &'static str {
        match self {
            Self::Bytes => " of bytes",
            Self::Days => " of days",
            Self::Hours => " of hours",
            Self::None => "",
            Self::Seconds => " of seconds",
        }
    }

    /// What people write behind a number for this unit.
    fn suffixes(self) -> &'static [&'static str] {
        match self {
            Self::Bytes => &["b", "bytes"],
            Self::Days => &["d", "day", "days"],
            Self::Hours => &["h", "hour", "hours"],
            Self::None => &[],
            Self::Seconds => &["s", "sec", "second", "seconds"],
        }
    }
}

/// A kind of value with its default and the place in [`Settings`] where it lands.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A list of texts; `words` limits them, an empty `words` does not.
    List {
        default: &'static [&'static str],
        words: &'static [&'static str],
        may_be_empty: bool,
        set: fn(&mut Settings, Vec<String>),
    },
    /// A path; no value means that there is none.
    Path { set: fn(&mut Settings, Option<PathBuf>) },
    /// `true` or `false`.
    Switch { default: bool, set: fn(&mut Settings, bool) },
    /// One line of text.
    Text { default: &'static str, may_be_empty: bool, set: fn(&mut Settings, String) },
    /// A whole number.
    Whole { default: u64, range: RangeInclusive<u64>, unit: Unit, set: fn(&mut Settings, u64) },
    /// One of a few words.
    Word { default: &'static str, words: &'static [&'static str], set: fn(&mut Settings, &str) },
}

/// A checked value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of [`Kind::List`].
    List(Vec<String>),
    /// Of [`Kind::Path`].
    Path(Option<PathBuf>),
    /// Of [`Kind::Switch`].
    Switch(bool),
    /// Of [`Kind::Text`] and [`Kind::Word`].
    Text(String),
    /// Of [`Kind::Whole`].
    Whole(u64),
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// What was found, as in `found "soon"`.
    pub(super) found: String,
    /// What would be right.
    pub(super) expected: String,
    /// What to do, where it can be told.
    pub(super) hint: Option<String>,
    /// Number of the list item that is wrong, if it is one.
    pub(super) item: Option<usize>,
}

/// What relative and shortened paths refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bases<'a> {
    /// For relative paths and `$NEXUS_ROOT`.
    pub(super) root: &'a Path,
    /// For `~`.
    pub(super) home: Option<&'a Path>,
}

impl Bases<'_> {
    /// The path that is meant.
    pub(super) fn expand(&self, text: &str) -> PathBuf {
        let below = |base: &Path, rest: &str| base.join(rest.trim_start_matches('/'));
        let shortened = |name: &str| text.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        if let (Some(rest), Some(home)) = (shortened("~"), self.home) {
            return below(home, rest);
        }
        match shortened("$NEXUS_ROOT").or_else(|| shortened("${NEXUS_ROOT}")) {
            Some(rest) => below(self.root, rest),
            None => self.root.join(text),
        }
    }
}

impl Kind {
    /// The default.
    pub fn default_value(&self) -> Value {
        match self {
            Self::List { default, .. } => Value::List(default.iter().map(ToString::to_string).collect()),
            Self::Path { .. } => Value::Path(None),
            Self::Switch { default, .. } => Value::Switch(*default),
            Self::Text { default, .. } | Self::Word { default, .. } => Value::Text((*default).to_owned()),
            Self::Whole { default, .. } => Value::Whole(*default),
        }
    }

    /// Puts a value of this kind in its place. A value of another kind changes nothing.
    pub(super) fn apply(&self, settings: &mut Settings, value: Value) {
        match (self, value) {
            (Self::List { set, .. }, Value::List(list)) => set(settings, list),
            (Self::Path { set }, Value::Path(path)) => set(settings, path),
            (Self::Switch { set, .. }, Value::Switch(on)) => set(settings, on),
            (Self::Text { set, .. }, Value::Text(text)) => set(settings, text),
            (Self::Word { set, .. }, Value::Text(word)) => set(settings, &word),
            (Self::Whole { set, .. }, Value::Whole(number)) => set(settings, number),
            (kind, value) => debug_assert!(false, "{value:?} is not of kind {kind:?}"),
        }
    }

    /// What is accepted, in words.
    pub fn expected(&self) -> String {
        match self {
            Self::List { words, .. } if !words.is_empty() => format!("a list of {}", listed(words, "and")),
            Self::List { .. } => "a list of texts".into(),
            Self::Path { .. } => "a path".into(),
            Self::Switch { .. } => "true or false".into(),
            Self::Text { may_be_empty: true, .. } => "one line of text".into(),
            Self::Text { .. } => "one line of text that is not empty".into(),
            Self::Whole { range, unit, .. } => {
                format!("a whole number{} from {} to {}", unit.of(), range.start(), range.end())
            }
            Self::Word { words, .. } => listed(words, "or"),
        }
    }

    /// Checks what a file says.
    pub(super) fn check_file(&self, node: &Node, bases: Bases<'_>) -> Result<Value, Wrong> {
        match (self, node) {
            (_, Node::Null) => Ok(self.default_value()),
            (Self::List { .. }, Node::List(items)) => {
                let mut texts = Vec::with_capacity(items.len());
                for (number, item) in items.iter().enumerate() {
                    let Node::Text(text) = item else { return Err(self.wrong(item).at(number)) };
                    texts.push(text.clone());
                }
                self.checked_list(texts)
            }
            (Self::Path { .. } | Self::Text { .. } | Self::Word { .. }, Node::Text(text)) => {
                self.checked_text(text, bases)
            }
            (Self::Switch { .. }, Node::Switch(on)) => Ok(Value::Switch(*on)),
            (Self::Whole { range, .. }, Node::Whole(number)) if range.contains(number) => Ok(Value::Whole(*number)),
            _ => Err(self.wrong(node)),
        }
    }

    /// Checks what an environment variable says. Lists are separated by commas.
    pub(super) fn check_variable(&self, text: &str, bases: Bases<'_>) -> Result<Value, Wrong> {
        if let Self::List { .. } = self {
            return self.checked_list(text.split(',').map(|item| item.trim().to_owned()).collect());
        }
        let as_in_file = match (self, text) {
            (Self::Switch { .. }, "true" | "1") => Node::Switch(true),
            (Self::Switch { .. }, "false" | "0") => Node::Switch(false),
            (Self::Whole { .. }, digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_or_else(|_too_long| Node::Text(text.to_owned()), Node::Whole)
            }
            _ => Node::Text(text.to_owned()),
        };
        // A variable has no quotes that could be left out, so a hint names the value only.
        let hint = || self.meant(text).map(|meant| format!("did you mean {meant}?"));
        self.check_file(&as_in_file, bases).map_err(|wrong| Wrong { hint: hint(), ..wrong })
    }

    /// Checks a text for the kinds that are written as one.
    fn checked_text(&self, text: &str, bases: Bases<'_>) -> Result<Value, Wrong> {
        let fits = match self {
            Self::Text { may_be_empty, .. } => is_line(text) && (*may_be_empty || !text.trim().is_empty()),
            Self::Word { words, .. } => words.contains(&text),
            _ => is_line(text),
        };
        match self {
            _ if !fits => Err(self.wrong(&Node::Text(text.to_owned()))),
            Self::Path { .. } => Ok(Value::Path(Some(text).filter(|text| !text.is_empty()).map(|t| bases.expand(t)))),
            _ => Ok(Value::Text(text.to_owned())),
        }
    }

    /// Checks the items of a list.
    fn checked_list(&self, texts: Vec<String>) -> Result<Value, Wrong> {
        let Self::List { words, may_be_empty, .. } = self else { return Err(self.wrong(&Node::List(Vec::new()))) };
        if texts.is_empty() && !may_be_empty {
            return Err(self.wrong(&Node::List(Vec::new())));
        }
        for (number, text) in texts.iter().enumerate() {
            let fits =
                if words.is_empty() { !text.is_empty() && is_line(text) } else { words.contains(&text.as_str()) };
            if !fits {
                return Err(self.wrong(&Node::Text(text.clone())).at(number));
            }
        }
        Ok(Value::List(texts))
    }

    /// What to say of a value that does not fit.
    fn wrong(&self, node: &Node) -> Wrong {
        let mut expected = self.expected();
        if matches!((self, node), (Self::List { may_be_empty: false, .. }, Node::List(items)) if items.is_empty()) {
            expected.push_str(" with at least one of them");
        }
        Wrong { found: found(node), expected, hint: self.hint(node), item: None }
    }

    /// What to do about a value in a file that does not fit.
    fn hint(&self, node: &Node) -> Option<String> {
        match (self, node) {
            (Self::Whole { .. }, Node::Text(text)) => {
                self.meant(text).map(|meant| format!("write {meant}, without quotes or unit"))
            }
            (Self::Switch { .. }, Node::Text(text)) => {
                self.meant(text).map(|meant| format!("write {meant}, without quotes"))
            }
            (Self::Switch { .. }, Node::Whole(1)) => Some("write true".into()),
            (Self::Switch { .. }, Node::Whole(0)) => Some("write false".into()),
            (Self::Text { .. } | Self::Path { .. }, Node::Whole(_) | Node::Number(_) | Node::Switch(_)) => {
                Some("put it in quotes".into())
            }
            (Self::List { words, .. }, Node::Text(text)) if words.is_empty() || words.contains(&text.as_str()) => {
                (!text.is_empty()).then(|| format!("write [{}]", quoted(text)))
            }
            (Self::List { .. } | Self::Word { .. }, Node::Text(text)) => {
                self.meant(text).map(|meant| format!("did you mean {meant}?"))
            }
            _ => None,
        }
    }

    /// The value that a text was probably meant to be.
    fn meant(&self, text: &str) -> Option<String> {
        match self {
            Self::Whole { range, unit, .. } => {
                let text = text.trim().to_ascii_lowercase().replace('_', "");
                let number: String = text.chars().take_while(char::is_ascii_digit).collect();
                let suffix = text.get(number.len()..)?.trim_start();
                let number: u64 = number.parse().ok().filter(|number| range.contains(number))?;
                (suffix.is_empty() || unit.suffixes().contains(&suffix)).then(|| number.to_string())
            }
            Self::Switch { .. } => match text.trim().to_ascii_lowercase().as_str() {
                "yes" | "on" | "y" | "true" | "enabled" => Some("true".into()),
                "no" | "off" | "n" | "false" | "disabled" => Some("false".into()),
                _ => None,
            },
            Self::List { words, .. } | Self::Word { words, .. } => {
                nearest(&text.to_ascii_lowercase(), words.iter().copied()).map(str::to_owned)
            }
            Self::Path { .. } | Self::Text { .. } => None,
        }
    }
}

impl Wrong {
    /// The same, of one item of a list.
    fn at(mut self, item: usize) -> Self {
        self.item = Some(item);
        self
    }
}

impl Value {
    /// The value as it is written in a YAML file; empty for no path.
    pub fn to_yaml(&self) -> String {
        match self {
            Self::List(items) => format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", ")),
            Self::Path(None) => String::new(),
            Self::Path(Some(path)) => quoted(&path.to_string_lossy()),
            Self::Switch(on) => on.to_string(),
            Self::Text(text) => quoted(text),
            Self::Whole(number) => number.to_string(),
        }
    }

    /// The value alone, for a script: items one a line, nothing for no path.
    pub fn to_plain(&self) -> String {
        match self {
            Self::List(items) => items.join("\n"),
            Self::Path(path) => path.as_deref().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default(),
            Self::Text(text) => text.clone(),
            Self::Switch(_) | Self::Whole(_) => self.to_yaml(),
        }
    }

    /// The value of this kind that [`Self::to_json`] wrote; `None` if the kind does not accept it.
    pub(super) fn of_json(kind: &Kind, json: &serde_json::Value) -> Option<Self> {
        if json.is_null() {
            return Some(kind.default_value());
        }
        let node = match json {
            serde_json::Value::Bool(on) => Node::Switch(*on),
            serde_json::Value::Number(number) => Node::Whole(number.as_u64()?),
            serde_json::Value::String(text) => Node::Text(text.clone()),
            serde_json::Value::Array(items) => {
                let texts = items.iter().map(|item| item.as_str().map(|text| Node::Text(text.to_owned())));
                Node::List(texts.collect::<Option<_>>()?)
            }
            _ => return None,
        };
        // Paths were made absolute when they were written.
        kind.check_file(&node, Bases { root: Path::new("/"), home: None }).ok()
    }

    /// The value in JSON.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::List(items) => items.clone().into(),
            Self::Path(path) => path.as_deref().map(|path| path.to_string_lossy().into_owned()).into(),
            Self::Switch(on) => (*on).into(),
            Self::Text(text) => text.clone().into(),
            Self::Whole(number) => (*number).into(),
        }
    }
}

/// Whether a text is one line without control characters.
fn is_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// What stands in a file, in words. Text is cut, since anything may stand there.
pub(super) fn found(node: &Node) -> String {
    const SHOWN: usize = 40;
    match node {
        Node::Null => "nothing".into(),
        Node::Switch(on) => on.to_string(),
        Node::Whole(number) => number.to_string(),
        Node::Number(number) => number.to_string(),
        Node::Text(text) if text.chars().count() > SHOWN => {
            format!("{:?}...", text.chars().take(SHOWN).collect::<String>())
        }
        Node::Text(text) => format!("{text:?}"),
        Node::List(items) if items.is_empty() => "an empty list".into(),
        Node::List(_) => "a list".into(),
        Node::Map(_) => "keys below it".into(),
        Node::Tagged => "a value with a !tag".into(),
    }
}

/// Words with commas, and the last with `and` or `or`.
fn listed(words: &[&str], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// A text as YAML, in quotes where it would read as something else. What JSON quotes, YAML reads.
fn quoted(text: &str) -> String {
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./@".contains(c))
        && !["null", "true", "false", "yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str());
    if is_word { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}
