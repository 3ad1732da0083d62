//! Starts this program anew in its own process: the same process id, so that neither a service manager nor a pid file
//! sees an end, and never two. The instance lock is free for a moment and taken again by the new start.

#![expect(clippy::disallowed_methods, reason = "this module replaces the process")]

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::child;

/// How long the program may take to say its version.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How often ended children are looked for, and how long between two looks: a second in all.
const REAP_TRIES: u32 = 100;
const REAP_EVERY: Duration = Duration::from_millis(10);

/// Flags that speak of another watcher; none is there when a watcher starts itself anew.
const ABOUT_OTHERS: [&str; 2] = ["--replace", "--ensure"];

/// The program's file, which may have been replaced by a newer one since it was started.
fn program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    // Linux says so of a file that was removed or replaced.
    let text = path.to_string_lossy();
    Ok(text.strip_suffix(" (deleted)").map_or_else(|| path.clone(), PathBuf::from))
}

/// Takes leave of children that have ended: the new start does not know them. One that goes on is left alone.
fn reap() {
    for _ in 0..REAP_TRIES {
        match rustix::process::wait(rustix::process::WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => std::thread::sleep(REAP_EVERY),
            // None is left.
            Err(_) => return,
        }
    }
}

/// Whether the program can be started: it answers when asked for its version. Call it inside a tokio runtime.
///
/// Errors: why it can't.
pub async fn can_start(name: &str) -> io::Result<()> {
    let program = program()?;
    if program.file_name().is_none_or(|file| file != name) {
        return Err(io::Error::other(format!("{} is not named {name}", program.display())));
    }
    let ended = child::run(&program, &[OsStr::new("--version")], b"", ANSWER_WITHIN).await?;
    if ended.code == Some(0) && ended.output.starts_with(name) {
        Ok(())
    } else {
        Err(io::Error::other(format!("{} does not say its version", program.display())))
    }
}

/// Replaces this process by a new start of the program with the arguments that it was started with. Returns only if that
/// failed.
pub fn start_anew(args: &[OsString]) -> io::Error {
    let program = match program() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let (name, rest) = match args.split_first() {
        Some((name, rest)) => (name.clone(), rest),
        None => (program.clone().into_os_string(), [].as_slice()),
    };
    reap();
    let rest = rest.iter().filter(|arg| !ABOUT_OTHERS.iter().any(|flag| *arg == *flag));
    Command::new(program).arg0(name).args(rest).exec()
}
