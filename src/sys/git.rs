//! Asks git, with a deadline: `git status` on a large worktree once stalled a watcher for a minute.

#![expect(clippy::disallowed_methods, reason = "this is the module that starts git")]

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// How long git may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// One line for the repository at `root`: `<name> <branch> <short sha> <clean|dirty>`; empty if it is none.
///
/// Errors: `TimedOut` after ten seconds; `Other` with git's words when it fails.
pub async fn describe(root: &Path) -> io::Result<Vec<String>> {
    if !root.join(".git").exists() {
        return Ok(Vec::new());
    }
    let head = ask(root, &["log", "-1", "--format=%h"]).await?;
    let branch = ask(root, &["rev-parse", "--abbrev-ref", "HEAD"]).await?;
    let status = ask(root, &["status", "--porcelain", "--untracked-files=no"]).await?;
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let state = if status.trim().is_empty() { "clean" } else { "dirty" };
    Ok(vec![format!("{name} {} {} {state}", branch.trim(), head.trim())])
}

/// Runs one git command there.
async fn ask(root: &Path, args: &[&str]) -> io::Result<String> {
    let run = tokio::process::Command::new("git")
        .arg("-C")
        .arg(root)
        // A watcher must not wait for a lock or leave one behind.
        .arg("--no-optional-locks")
        .args(args)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(DEADLINE, run).await.map_err(|_| {
        io::Error::new(io::ErrorKind::TimedOut, format!("git {} took more than 10 s", args.join(" ")))
    })??;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("git {}: {}", args.join(" "), words.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
