//! One process, many questions: the fallback for reads, and the only way of writes.
//!
//! Owns how the `tmux` program is started and what its complaints mean. Never starts a server (`-N`).

#![expect(clippy::disallowed_methods, reason = "tmux's processes are started here, with a deadline and no terminal")]

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::sys::env::{Env as _, ProcessEnv};

use crate::sys::seed::mark;

use super::TmuxError;
use super::batch::{Answer, Ask, MAX_ASKS_PER_PROCESS, chain, split_chain};

/// Which tmux server is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Socket {
    /// The one that a plain `tmux` talks to.
    #[default]
    Default,
    /// `tmux -L name`.
    Name(String),
    /// `tmux -S path`.
    Path(PathBuf),
}

impl Socket {
    /// Reads a setting: text with a slash is a path, other text a name, `default` and nothing are the default.
    pub fn parse(text: &str) -> Self {
        match text {
            "" | "default" => Self::Default,
            _ if text.contains('/') => Self::Path(PathBuf::from(text)),
            _ => Self::Name(text.to_owned()),
        }
    }

    /// Reads `monitor.tmux.sockets`; none means the default.
    pub fn parse_all(sockets: &[String]) -> Vec<Self> {
        match sockets {
            [] => vec![Self::Default],
            given => given.iter().map(|text| Self::parse(text)).collect(),
        }
    }

    /// How people would name it.
    pub fn describe(&self) -> String {
        match self {
            Self::Default => "the default socket".to_owned(),
            Self::Name(name) => format!("socket {name}"),
            Self::Path(path) => path.display().to_string(),
        }
    }
}

/// How long `tmux -V` may take.
const VERSION_DEADLINE: Duration = Duration::from_secs(5);

/// Checks that a tmux that we support is installed; asks no server.
///
/// Errors: `NotInstalled`, `TooOld` with its own words, `Timeout`, `Io`.
pub async fn check_installed() -> Result<(), TmuxError> {
    const DOING: &str = "asking tmux for its version";
    let io = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => TmuxError::NotInstalled,
        _ => TmuxError::Io { doing: DOING, why: error.to_string() },
    };
    let run = Command::new("tmux").arg("-V").stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(VERSION_DEADLINE, run)
        .await
        .map_err(|_| TmuxError::Timeout { doing: DOING, after_ms: 5000 })?
        .map_err(io)?;
    let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if super::version_is_supported(&found) {
        return Ok(());
    }
    Err(TmuxError::TooOld { found: found.strip_prefix("tmux ").unwrap_or(&found).to_owned() })
}

/// What tmux's client needs of the environment. It sends all that it has to the server before it counts as identified,
/// and a client that ends halfway has crashed servers up to 3.6a (tmux pulls 4980, 5004), so it is given little.
const ENVIRONMENT: [&str; 8] = ["PATH", "HOME", "TMUX", "TMUX_TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TERM"];

/// The program with everything that holds for each call: UTF-8 in any locale, no server started, nothing inherited.
pub(super) fn program(socket: &Socket) -> Command {
    let mut command = Command::new("tmux");
    command.env_clear();
    command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, ProcessEnv.get(name)?))));
    command.args(["-u", "-N"]);
    match socket {
        Socket::Default => {}
        Socket::Name(name) => {
            command.args(["-L", name]);
        }
        Socket::Path(path) => {
            command.arg("-S").arg(path);
        }
    }
    command
}

/// Runs one process and returns what it printed.
///
/// Errors: as tmux's status and words say; `Timeout` after `deadline`, when the process is ended.
pub(super) async fn run(
    socket: &Socket,
    args: &[String],
    input: Option<&[u8]>,
    deadline: Duration,
    doing: &'static str,
) -> Result<Vec<u8>, TmuxError> {
    let io = |why: std::io::Error| TmuxError::Io { doing, why: why.to_string() };
    let mut child = program(socket)
        .args(args)
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|why| spawn_error(&why, doing))?;
    let stdin = child.stdin.take();
    let talk = async {
        let feed = async {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                // A process that has failed already does not read; its own words say why.
                match stdin.write_all(input).await {
                    Err(why) if why.kind() != std::io::ErrorKind::BrokenPipe => return Err(why),
                    _ => {}
                }
            }
            Ok(())
        };
        let (written, output) = tokio::join!(feed, child.wait_with_output());
        written.and(output)
    };
    let output = tokio::time::timeout(deadline, talk).await.map_err(|_| timed_out(doing, deadline))?.map_err(io)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(complaint_error(socket, String::from_utf8_lossy(&output.stderr).trim(), doing))
}

/// Asks everything in as few processes as tmux's limit allows.
///
/// Errors: as [`run`]; `Malformed` if the answers can't be told apart.
pub(super) async fn ask_all(
    socket: &Socket,
    asks: &[Ask],
    deadline: Duration,
    doing: &'static str,
) -> Result<Vec<Answer>, TmuxError> {
    let mut answers = Vec::with_capacity(asks.len());
    for part in asks.chunks(MAX_ASKS_PER_PROCESS) {
        let nonce = mark();
        let raw = run(socket, &chain(part, &nonce), None, deadline, doing).await?;
        answers.extend(split_chain(&raw, part.len(), &nonce, doing)?);
    }
    Ok(answers)
}

/// The error for a deadline that passed.
pub(super) fn timed_out(doing: &'static str, after: Duration) -> TmuxError {
    TmuxError::Timeout { doing, after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX) }
}

/// The error for a process that could not be started.
pub(super) fn spawn_error(why: &std::io::Error, doing: &'static str) -> TmuxError {
    if why.kind() == std::io::ErrorKind::NotFound {
        TmuxError::NotInstalled
    } else {
        TmuxError::Io { doing, why: why.to_string() }
    }
}

/// What tmux's words on standard error mean.
pub(super) fn complaint_error(socket: &Socket, words: &str, doing: &'static str) -> TmuxError {
    let no_server = |why: &str| TmuxError::NoServer { socket: format!("{} ({why})", socket.describe()) };
    let starts = |prefix: &str| words.starts_with(prefix);
    if starts("error connecting to") && words.contains("No such file or directory") {
        no_server("there is no such socket")
    } else if starts("no server running on") || (starts("error connecting to") && words.contains("Connection refused"))
    {
        no_server("nothing listens there")
    } else if starts("protocol version mismatch") || words.contains("server version is too old") {
        no_server("a server of a version that this tmux program can't talk to; restart it")
    } else if starts("server exited") || starts("lost server") || starts("no sessions") {
        no_server("it has just ended")
    } else if words.is_empty() {
        TmuxError::Io { doing, why: "it failed without a word".to_owned() }
    } else {
        TmuxError::Refused { doing, stderr: words.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_setting_with_a_slash_is_a_path() {
        for (text, socket) in [
            ("", Socket::Default),
            ("default", Socket::Default),
            ("work", Socket::Name("work".to_owned())),
            ("/run/x.sock", Socket::Path(PathBuf::from("/run/x.sock"))),
            ("./x", Socket::Path(PathBuf::from("./x"))),
        ] {
            assert_eq!(Socket::parse(text), socket, "{text}");
        }
    }

    #[test]
    fn complaints_become_errors_that_a_caller_can_match() {
        let error = |words| complaint_error(&Socket::Name("x".to_owned()), words, "testing");
        for (words, why) in [
            ("error connecting to /tmp/tmux-0/x (No such file or directory)", "there is no such socket"),
            ("no server running on /tmp/tmux-0/x", "nothing listens there"),
            ("error connecting to /tmp/tmux-0/x (Connection refused)", "nothing listens there"),
            ("protocol version mismatch (client 8, server 7)", "version"),
            ("server exited unexpectedly", "just ended"),
        ] {
            let TmuxError::NoServer { socket } = error(words) else { panic!("{words}: {:?}", error(words)) };
            assert!(socket.starts_with("socket x (") && socket.contains(why), "{socket}");
        }
        for words in ["error connecting to /tmp/x (Permission denied)", "unknown command: x"] {
            assert!(matches!(error(words), TmuxError::Refused { .. }), "{words}");
        }
        assert!(matches!(error(""), TmuxError::Io { .. }), "a process that was killed says nothing, and nor do we");
    }
}
