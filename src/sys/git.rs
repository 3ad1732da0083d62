//! Asks git, with a deadline: `git status` on a large worktree once stalled a watcher for a minute.

#![expect(clippy::disallowed_methods, reason = "this is the module that starts git")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Digits of a commit that are shown.
const SHA_DIGITS: usize = 7;

/// How long git may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// One line for the repository at `root`: `<name> <branch> <short sha> <clean|dirty>`; empty if it is none.
///
/// Errors: `TimedOut` after ten seconds; `Other` with git's words when it fails.
pub async fn describe(root: &Path) -> io::Result<Vec<String>> {
    if !root.join(".git").exists() {
        return Ok(Vec::new());
    }
    let status = ask(root, &["status", "--porcelain=v2", "--branch", "--untracked-files=no"]).await?;
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(vec![line(&name, &status)])
}

/// The line of a repository, from `git status --porcelain=v2 --branch`.
///
/// Shape: a branch without a commit has no sha, which is written as zeros; a detached head is `HEAD`.
fn line(name: &str, status: &str) -> String {
    let header =
        |key: &str| status.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(key)?.strip_prefix(' '));
    let sha = header("branch.oid").filter(|oid| !oid.starts_with('(')).and_then(|oid| oid.get(..SHA_DIGITS));
    let branch = header("branch.head").map_or("HEAD", |head| if head == "(detached)" { "HEAD" } else { head });
    let state = if status.lines().all(|line| line.starts_with('#')) { "clean" } else { "dirty" };
    format!("{name} {branch} {} {state}", sha.unwrap_or("0000000"))
}

/// The commit that a revision names, in the repository that `dir` is in, and the root of that.
///
/// Errors: with git's words: no repository, no such revision.
pub async fn find_commit(dir: &Path, revision: &str) -> io::Result<(PathBuf, String)> {
    let root = ask(dir, &["rev-parse", "--show-toplevel"]).await?;
    let commit = format!("{revision}^{{commit}}");
    let commit = ask(dir, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("there is no revision {revision:?}")))?;
    Ok((PathBuf::from(root.trim_end()), commit.trim().to_owned()))
}

/// The files of a folder as they were in a commit: paths and texts.
///
/// Errors: with git's words.
pub async fn files_of(root: &Path, commit: &str, folder: &str) -> io::Result<Vec<(String, String)>> {
    let names = ask(root, &["ls-tree", "--name-only", "-z", commit, &format!("{folder}/")]).await?;
    let mut files = Vec::new();
    for path in names.split('\0').filter(|path| !path.is_empty()) {
        files.push((path.to_owned(), ask(root, &["cat-file", "blob", &format!("{commit}:{path}")]).await?));
    }
    Ok(files)
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

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_repository_is_one_line_whatever_its_state() {
        for (status, expected) in [
            ("# branch.oid 0123456789abcdef\n# branch.head main\n", "web main 0123456 clean"),
            ("# branch.oid 0123456789abcdef\n# branch.head (detached)\n", "web HEAD 0123456 clean"),
            ("# branch.oid (initial)\n# branch.head main\n", "web main 0000000 clean"),
            ("# branch.oid 0123456789ab\n# branch.head a/b\n1 .M N... 1 1 1 a b f\n", "web a/b 0123456 dirty"),
            ("", "web HEAD 0000000 clean"),
        ] {
            assert_eq!(line("web", status), expected, "{status:?}");
        }
    }
}
