//! The version of an agent that runs, by the package that its program lies in. Never runs it.
//!
//! What lies there now may be newer than what runs: an upgrade replaces the files under a running agent. So a package that
//! was installed after the process started says nothing about it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::agent_program;
use super::procfs::Process;
use crate::logic::pane::process_rule::{base, script};
use crate::logic::time::Timestamp;

/// Most entries of a folder of Python packages that are looked at.
const MAX_ENTRIES: usize = 4096;

/// The version of a running process, by the first of these packages that its program or its script lies in.
pub fn of(process: &Process, packages: &[String]) -> Option<String> {
    let files = places(process);
    packages.iter().find_map(|package| {
        let node = files.iter().find_map(|file| {
            let (version, description) = agent_program::packaged_version_in(file, package)?;
            is_older(&description, process.started_at).then_some(version)
        });
        node.or_else(|| files.iter().find_map(|file| python_version(file, package, process.started_at)))
    })
}

/// The files by which a process is started: its program, unless that was replaced, its script, and the interpreter as it
/// was named, which may lie in an environment of its own.
fn places(process: &Process) -> Vec<PathBuf> {
    let argv = process.argv.as_deref().unwrap_or_default();
    let exe = process.exe.as_deref().filter(|_| !process.is_replaced);
    let program = process.exe.as_deref().map_or("", base);
    let script = script(program, argv).map(|(_, script)| script);
    let named = argv.first().map(String::as_str).filter(|name| script.is_some() && name.starts_with('/'));
    let found = [script, exe, named].into_iter().flatten().filter_map(|file| absolute(process.pid, file));
    found.collect()
}

/// A path as the process means it.
fn absolute(pid: u32, file: &str) -> Option<PathBuf> {
    let path = Path::new(file);
    if path.is_absolute() {
        return Some(path.to_owned());
    }
    Some(fs::read_link(format!("/proc/{pid}/cwd")).ok()?.join(path))
}

/// Whether a file was put there before this time.
fn is_older(file: &Path, than: Timestamp) -> bool {
    // Packagers set the time of change to what they like; the time of the inode is the machine's own.
    fs::metadata(file).is_ok_and(|data| data.ctime() <= than.secs())
}

/// The version of a Python package that is installed where this file lies: `<prefix>/bin/<file>` beside
/// `<prefix>/lib/python3.12/site-packages/<package>-<version>.dist-info`. `None` if there is none, or several.
fn python_version(file: &Path, package: &str, started_at: Timestamp) -> Option<String> {
    let real = file.canonicalize().ok()?;
    // A link to the system's interpreter leads out of the environment that it stands in.
    [real.as_path(), file].into_iter().find_map(|file| {
        let prefix = file.parent()?.parent()?;
        let start = format!("{}-", package.replace('-', "_"));
        let mut versions: Vec<String> = Vec::new();
        for library in folders(&prefix.join("lib"), "python3") {
            for kind in ["site-packages", "dist-packages"] {
                for described in folders(&library.join(kind), &start) {
                    let name = described.file_name()?.to_str()?;
                    let version = name.strip_prefix(&start)?.strip_suffix(".dist-info");
                    let is_version = |version: &&str| version.starts_with(|ch: char| ch.is_ascii_digit());
                    if let Some(version) = version.filter(is_version)
                        && is_older(&described, started_at)
                    {
                        versions.push(version.to_owned());
                    }
                }
            }
        }
        versions.dedup();
        match versions.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    })
}

/// The entries of a folder whose names start with this.
fn folders(folder: &Path, start: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let entries = entries.take(MAX_ENTRIES).flatten().map(|entry| entry.path());
    entries
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(start)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn later() -> Timestamp {
        Timestamp::from_secs(4_000_000_000)
    }

    fn process(exe: &Path, argv: &[&str]) -> Process {
        Process {
            pid: std::process::id(),
            exe: Some(exe.display().to_string()),
            argv: Some(argv.iter().map(|word| (*word).to_owned()).collect()),
            started_at: later(),
            ..Process::default()
        }
    }

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn check(process: &Process, expected: Option<&str>) {
        let packages = ["@x/agent".to_owned(), "py-agent".to_owned()];
        assert_eq!(of(process, &packages).as_deref(), expected, "{process:?}");
    }

    #[test]
    fn the_package_around_the_program_or_its_script_says_the_version() {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("lib/node_modules/@x/agent");
        put(&package.join("package.json"), r#"{"name":"@x/agent","version":"2.1.7"}"#);
        put(&package.join("bin/agent.exe"), "");
        put(&package.join("cli.js"), "");
        let link = dir.path().join("agent");
        symlink(package.join("cli.js"), &link).unwrap();
        check(&process(&package.join("bin/agent.exe"), &["agent"]), Some("2.1.7"));
        check(&process(Path::new("/usr/bin/node"), &["node", link.to_str().unwrap(), "--resume"]), Some("2.1.7"));
        check(&process(Path::new("/usr/bin/less"), &["less", link.to_str().unwrap()]), None);
        check(&process(Path::new("/usr/bin/node"), &["agent"]), None);
    }

    #[test]
    fn a_package_that_came_after_the_process_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let package = dir.path().join("@x/agent");
        put(&package.join("package.json"), r#"{"name":"@x/agent","version":"2.1.8"}"#);
        put(&package.join("agent"), "");
        let upgraded = process(&package.join("agent"), &["agent"]);
        check(&Process { started_at: Timestamp::from_secs(1000), ..upgraded.clone() }, None);
        check(&Process { is_replaced: true, ..upgraded.clone() }, None);
        check(&upgraded, Some("2.1.8"));
    }

    #[test]
    fn a_python_package_says_it_beside_the_script_or_the_environments_interpreter() {
        let dir = tempfile::tempdir().unwrap();
        let tool = dir.path().join("tools/py-agent");
        let described = tool.join("lib/python3.12/site-packages/py_agent-0.86.1.dist-info");
        put(&described.join("METADATA"), "");
        put(&tool.join("lib/python3.12/site-packages/py_agent_extra/x"), "");
        put(&tool.join("bin/agent"), "");
        symlink("/bin/true", tool.join("bin/python")).unwrap();
        let link = dir.path().join("bin/agent");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(tool.join("bin/agent"), &link).unwrap();
        let python = Path::new("/usr/bin/python3.12");
        check(&process(python, &["python", link.to_str().unwrap()]), Some("0.86.1"));
        check(&process(python, &[tool.join("bin/python").to_str().unwrap(), "-m", "agent"]), Some("0.86.1"));
        put(&tool.join("lib/python3.12/site-packages/py_agent-0.87.0.dist-info/METADATA"), "");
        check(&process(python, &["python", link.to_str().unwrap()]), None);
    }
}
