//! The installed program of an agent, and its version: from where it lies, from its package, else by asking it.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{child, files};

/// How long the program may take to say its version.
const PATIENCE: Duration = Duration::from_secs(10);
/// Folders above the program in which its package is looked for.
const MAX_UP: usize = 4;
/// Largest package description that is read, in bytes.
const MAX_PACKAGE_BYTES: u64 = 1 << 20;

/// The program of this name in a search path (`PATH`), links not resolved.
pub fn find(name: &str, search_path: &str) -> Option<PathBuf> {
    let folders = search_path.split(':').filter(|folder| !folder.is_empty());
    folders.map(|folder| Path::new(folder).join(name)).find(|path| is_executable(path))
}

/// Whether a path names a program that can be run.
pub fn is_program(path: &str) -> bool {
    is_executable(Path::new(path))
}

/// Whether somebody may execute this file.
fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The version that the package says in which a program lies; `None` if it lies in none of this name.
pub fn packaged_version(program: &Path, package: &str) -> Option<String> {
    Some(packaged_version_in(program, package)?.0)
}

/// The same, and the file that says it.
pub(super) fn packaged_version_in(program: &Path, package: &str) -> Option<(String, PathBuf)> {
    let real = program.canonicalize().ok()?;
    for folder in real.ancestors().skip(1).take(MAX_UP) {
        let path = folder.join("package.json");
        let Ok(Some(text)) = files::read_text(&path, MAX_PACKAGE_BYTES) else { continue };
        let Ok(described) = serde_json::from_str::<serde_json::Value>(&text) else { continue };
        if described["name"].as_str().is_some_and(|name| name.starts_with(package)) {
            return Some((described["version"].as_str()?.to_owned(), path));
        }
    }
    None
}

/// What the program answers to `--version`. Starts it.
///
/// Errors: it could not be started, did not end in time, or failed; in words.
pub fn ask_version(program: &Path) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let args = [OsStr::new("--version")];
    let ended = runtime.block_on(child::run(program, &args, &[], PATIENCE)).map_err(|error| error.to_string())?;
    match ended.code {
        Some(0) => Ok(ended.output.trim().to_owned()),
        _ => Err(format!("it failed: {}", ended.output.lines().next().unwrap_or("it said nothing").trim())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn script(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_first_executable_in_the_search_path_is_meant() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/agent")).unwrap();
        fs::create_dir_all(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("b/agent"), "").unwrap();
        script(&dir.path().join("c/agent"), "");
        let search = ["a", "b", "c"].map(|name| dir.path().join(name).display().to_string()).join(":");
        assert_eq!(find("agent", &search), Some(dir.path().join("c/agent")));
        assert_eq!(find("agent", ""), None);
    }

    #[test]
    fn a_package_says_its_version_through_the_link_that_leads_into_it() {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("node_modules/@x/agent");
        script(&package.join("bin/agent"), "exit 1");
        fs::write(package.join("package.json"), r#"{"name":"@x/agent","version":"2.1.332"}"#).unwrap();
        let link = dir.path().join("agent");
        symlink(package.join("bin/agent"), &link).unwrap();
        assert_eq!(packaged_version(&link, "@x/agent").as_deref(), Some("2.1.332"));
        assert_eq!(packaged_version(&link, "@y/other"), None);
        assert_eq!(packaged_version(&dir.path().join("missing"), "@x/agent"), None);
    }

    #[test]
    fn a_program_is_asked_and_one_that_fails_has_no_version() {
        let dir = tempfile::tempdir().unwrap();
        let (good, bad) = (dir.path().join("good"), dir.path().join("bad"));
        script(&good, "[ \"$1\" = --version ] && echo '2.1.332 (Claude Code)'");
        script(&bad, "echo broken; exit 3");
        assert_eq!(ask_version(&good).as_deref(), Ok("2.1.332 (Claude Code)"));
        assert!(ask_version(&bad).unwrap_err().contains("broken"));
        assert!(ask_version(&dir.path().join("missing")).is_err());
    }
}
