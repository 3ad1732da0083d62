//! The only reader of the environment, behind a trait so that tests need none.

#![expect(clippy::disallowed_methods, reason = "this is the module that reads the environment")]

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Somewhere to look up environment variables.
pub trait Env {
    /// The value of a variable; `None` if it is unset or not UTF-8.
    fn get(&self, name: &str) -> Option<String>;

    /// Whether a variable is set to something that is not UTF-8.
    fn is_garbled(&self, _name: &str) -> bool {
        false
    }

    /// The value, unless it is empty: an empty variable counts as unset.
    fn non_empty(&self, name: &str) -> Option<String> {
        self.get(name).filter(|value| !value.is_empty())
    }
}

/// The process's own environment.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessEnv;

impl Env for ProcessEnv {
    fn get(&self, name: &str) -> Option<String> {
        std::env::var_os(name).map(OsString::into_string)?.ok()
    }

    fn is_garbled(&self, name: &str) -> bool {
        std::env::var_os(name).is_some_and(|value| value.into_string().is_err())
    }
}

/// A given set of variables.
impl Env for BTreeMap<String, String> {
    fn get(&self, name: &str) -> Option<String> {
        BTreeMap::get(self, name).cloned()
    }
}
