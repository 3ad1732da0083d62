//! The only reader of the environment, behind a trait so that tests need none.

#![expect(clippy::disallowed_methods, reason = "this is the module that reads the environment")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

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

/// The folder in which a program of this name is found, by `PATH`.
pub fn folder_of(env: &dyn Env, program: &str) -> Option<PathBuf> {
    let is_program = |folder: &PathBuf| {
        std::fs::metadata(folder.join(program))
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&env.non_empty("PATH")?).filter(|folder| folder.is_absolute()).find(is_program)
}

/// A given set of variables.
impl Env for BTreeMap<String, String> {
    fn get(&self, name: &str) -> Option<String> {
        BTreeMap::get(self, name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_where_it_can_be_run() {
        let dir = tempfile::tempdir().unwrap();
        for (folder, mode) in [("a", 0o644), ("b", 0o755), ("c", 0o755)] {
            let program = dir.path().join(folder).join("tmux");
            std::fs::create_dir(program.parent().unwrap()).unwrap();
            std::fs::write(&program, "").unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let at = |folder: &str| dir.path().join(folder);
        let path = std::env::join_paths([PathBuf::from("."), at("missing"), at("a"), at("b"), at("c")]).unwrap();
        let env = BTreeMap::from([("PATH".to_owned(), path.into_string().unwrap())]);
        assert_eq!(folder_of(&env, "tmux"), Some(at("b")));
        assert_eq!(folder_of(&env, "git"), None);
        assert_eq!(folder_of(&BTreeMap::new(), "tmux"), None);
    }
}
