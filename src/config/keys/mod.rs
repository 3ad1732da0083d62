//! The one table of configuration keys, a file for each part of the watcher. Defaults, checks, the schema,
//! `nexus.example.yml` and `docs/configuration.md` come from it.
//!
//! Adding a key means one row in one of the files and a field of [`Settings`](super::resolved::Settings).

use std::sync::LazyLock;
use std::time::Duration;

use super::error::nearest;
use super::value::Kind;

mod emit;
mod fleet;
mod paste;
mod unused;
mod watcher;
mod worker;

pub use unused::{Fate, TEMPLATE_EXCEPTIONS, TemplateException, UNUSED, Unused, fate};

/// The rows of every part.
const PARTS: &[&[Key]] = &[emit::KEYS, fleet::KEYS, paste::KEYS, watcher::KEYS, worker::KEYS];

/// Every row, by name.
static BY_NAME: LazyLock<Vec<&'static Key>> = LazyLock::new(|| {
    let mut rows: Vec<_> = PARTS.iter().copied().flatten().collect();
    rows.sort_unstable_by_key(|key| key.path);
    rows
});

/// One key of the configuration.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its full name, sections joined by dots.
    pub path: &'static str,
    /// The environment variable that wins over the file.
    pub env: &'static str,
    /// What a change needs to take effect.
    pub reload: Reload,
    /// What is accepted, the default, and where the value lands.
    pub kind: Kind,
    /// What it does, in a sentence.
    pub doc: &'static str,
}

/// There is one row a key.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for Key {}

/// What a change of a key needs to take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// Nothing but a reload of the file.
    Live,
    /// A window that is opened afterwards.
    NewWindows,
    /// A restart of the watcher.
    Restart,
}

impl Reload {
    /// The class as it is written in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::NewWindows => "new windows",
            Self::Restart => "restart",
        }
    }
}

/// Every key that sets something, by name.
pub fn all() -> &'static [&'static Key] {
    &BY_NAME
}

/// The key with this full name.
pub fn by_path(path: &str) -> Option<&'static Key> {
    all().iter().copied().find(|key| key.path == path)
}

/// Whether a name is that of a section: other keys are below it.
pub fn is_section(path: &str) -> bool {
    let names = all().iter().map(|key| key.path).chain(UNUSED.iter().map(|unused| unused.pattern));
    names.into_iter().any(|name| name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// The known key that is probably meant: of the same name in another section, with a unit behind it, or spelt nearly
/// alike.
pub fn nearest_key(path: &str) -> Option<&'static str> {
    let used = || all().iter().map(|key| key.path);
    let known = used()
        .chain(TEMPLATE_EXCEPTIONS.iter().map(|exception| exception.path))
        .chain(UNUSED.iter().map(|unused| unused.pattern).filter(|pattern| !pattern.ends_with('*')));
    let sections = ["github", "monitor", "nexus", "notifications", "status_surface"];
    let name = last_name(path);
    if let Some(key) = used().find(|key| last_name(key) == name) {
        return Some(key);
    }
    let is_longer = |key: &&str| key.strip_prefix(path).is_some_and(|rest| rest.starts_with('_'));
    if let Some(key) = known.clone().find(is_longer) {
        return Some(key);
    }
    let candidates: Vec<&'static str> = if path.contains('.') { known.collect() } else { sections.to_vec() };
    nearest(path, candidates).or_else(|| {
        let by_name = nearest(name, used().map(last_name))?;
        used().find(|key| last_name(key) == by_name)
    })
}

/// The part of a key after the last dot.
fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn usize_of(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn u32_of(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_variables_are_unique_and_rows_are_sorted() {
        for part in PARTS {
            assert!(part.is_sorted_by(|a, b| a.path < b.path), "{part:?}");
        }
        assert!(all().is_sorted_by(|a, b| a.path < b.path), "a key stands in two parts");
        let mut variables: Vec<_> = all().iter().map(|key| key.env).collect();
        variables.sort_unstable();
        assert!(variables.is_sorted_by(|a, b| a < b), "{variables:?}");
        let unused: Vec<_> = UNUSED.iter().map(|unused| unused.pattern).collect();
        assert!(unused.is_sorted_by(|a, b| a < b), "{unused:?}");
    }

    #[test]
    fn no_key_is_both_used_and_unused() {
        for key in all() {
            assert_eq!(fate(key.path), None, "{}", key.path);
        }
    }

    #[test]
    fn every_default_is_within_its_own_bounds() {
        for key in all() {
            match &key.kind {
                Kind::Whole { default, range, .. } => assert!(range.contains(default), "{}", key.path),
                Kind::Word { default, words, .. } => assert!(words.contains(default), "{}", key.path),
                Kind::List { default, words, may_be_empty, .. } => {
                    assert!(*may_be_empty || !default.is_empty(), "{}", key.path);
                    assert!(words.is_empty() || default.iter().all(|word| words.contains(word)), "{}", key.path);
                }
                Kind::Text { default, may_be_empty, .. } => {
                    assert!(*may_be_empty || !default.is_empty(), "{}", key.path);
                }
                Kind::Path { .. } | Kind::Switch { .. } => {}
            }
        }
    }

    #[test]
    fn every_doc_is_one_sentence() {
        for doc in all().iter().map(|key| key.doc).chain(TEMPLATE_EXCEPTIONS.iter().map(|exception| exception.doc)) {
            assert!(doc.ends_with('.') && !doc.contains('|') && !doc.contains('\n'), "{doc}");
        }
    }
}
