//! Starts a program that outlives us, and leaves the session of whoever started us.

#![expect(clippy::disallowed_methods, reason = "this module starts a process, with closed descriptors")]

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::sys::files;

/// Starts a program without input, whose output goes to `output`. It is to call [`leave_session`] itself, since only
/// one that leads no group yet can.
pub fn start(program: &Path, args: &[&OsStr], output: File) -> io::Result<Child> {
    let errors = output.try_clone()?;
    Command::new(program).args(args).stdin(Stdio::null()).stdout(output).stderr(errors).spawn()
}

/// Runs a launcher of this account to its end, for a state directory; it says what it has to say itself. Its exit code,
/// `None` if a signal ended it.
pub fn run_launcher(program: &Path, args: &[&OsStr], state: &Path) -> io::Result<Option<i32>> {
    let status = Command::new(program).args(args).env("NEXUS_STATE_DIR", state).stdin(Stdio::null()).status()?;
    Ok(status.code())
}

/// Begins a session and a process group of our own, so that neither a closed terminal nor a signal to our starter's
/// group ends us. Does nothing where we lead one already.
pub fn leave_session() {
    let _leads_already = rustix::process::setsid();
}

/// Opens an empty file for what a started program says, and makes its directory.
pub fn open_output(path: &Path) -> io::Result<File> {
    files::create_private_dir(path.parent().unwrap_or(Path::new(".")))?;
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).custom_flags(no_follow).open(path)
}

/// Who started us: `ppid=<pid> <name>`.
pub fn caller() -> String {
    let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
    let name = fs::read_to_string(format!("/proc/{parent}/comm")).unwrap_or_default();
    let name: String = name.trim().chars().map(|c| if c.is_control() || c == ']' { ' ' } else { c }).collect();
    format!("ppid={parent} {name}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_started_program_has_no_input_and_its_output_is_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/out.log");
        fs::create_dir(dir.path().join("logs")).unwrap();
        fs::write(&path, "of an earlier start").unwrap();
        let script = OsStr::new("read line || echo none; echo bad >&2");
        let mut child = start(Path::new("/bin/sh"), &[OsStr::new("-c"), script], open_output(&path).unwrap()).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(fs::read_to_string(&path).unwrap(), "none\nbad\n");
    }

    #[test]
    fn the_caller_is_one_harmless_line() {
        let caller = caller();
        assert!(caller.starts_with("ppid=") && !caller.contains(['\n', ']']), "{caller}");
    }
}
