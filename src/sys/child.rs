//! A short-lived program: arguments and standard input in, exit code and output back, within a deadline.

#![expect(clippy::disallowed_methods, reason = "this module starts processes, with closed descriptors and a deadline")]

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output, then to standard error.
    pub output: String,
}

/// Runs a program to its end. Call it inside a tokio runtime.
///
/// Errors: it could not be started, or did not end `within` (it is killed then).
pub async fn run(program: &Path, args: &[&OsStr], input: &[u8], within: Duration) -> io::Result<Ended> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let stdin = child.stdin.take();
    let talk = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read its input is fine.
            let _closed = stdin.write_all(input).await;
        }
        child.wait_with_output().await
    };
    let output = tokio::time::timeout(within, talk)
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, format!("did not end within {} s", within.as_secs())))??;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(Ended { code: output.status.code(), output: text })
}
