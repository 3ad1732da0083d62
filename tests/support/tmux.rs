//! A private tmux server for one test: its own socket in its own directory, no configuration, ended on drop.
//!
//! Waiting is for a condition with a deadline, never for a time.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests drive the real program; a failure is a panic"
)]

use std::cell::Cell;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nexus_watcher::logic::ids::PaneId;
use nexus_watcher::sys::tmux::Socket;
use tokio::time::Instant;

/// How long any condition may take, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(15);

/// Waits until `condition` gives a value; panics after fifteen seconds.
pub async fn wait_for<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The server.
#[derive(Debug)]
pub struct TestTmux {
    directory: tempfile::TempDir,
    /// Columns and rows of its windows.
    size: (u16, u16),
    /// The running server's process, if one was started.
    pid: Cell<Option<u32>>,
}

impl TestTmux {
    /// A directory for a socket, with no server.
    pub fn absent() -> Self {
        Self::absent_sized((100, 30))
    }

    /// The same for a server whose windows have so many columns and rows.
    pub fn absent_sized(size: (u16, u16)) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), size, pid: Cell::new(None) }
    }

    /// A server with one session `main` (100x30) whose only window `first` runs `cat`.
    pub fn start() -> Self {
        let server = Self::absent();
        server.start_server();
        server
    }

    /// Starts the server (again).
    pub fn start_server(&self) {
        self.new_session("main", "first", "exec cat");
        self.pid.set(Some(self.server_pid()));
    }

    /// Ends the server and waits until nothing listens any more; its socket may stay.
    pub async fn stop_server(&self) {
        self.run(&["kill-server"]);
        self.pid.set(None);
        wait_for("the server to end", async || {
            let words = self.try_run(&["list-sessions"]).stderr;
            String::from_utf8_lossy(&words).starts_with("no server running").then_some(())
        })
        .await;
    }

    /// The socket, as the client takes it.
    pub fn socket(&self) -> Socket {
        Socket::Path(self.socket_path())
    }

    /// Where the socket is.
    pub fn socket_path(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// A path in the test's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a command that may fail.
    pub fn try_run(&self, args: &[&str]) -> Output {
        Command::new("tmux")
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(self.socket_path())
            .args(args)
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .stdin(Stdio::null())
            .output()
            .expect("tmux is installed")
    }

    /// Runs a command that must succeed and returns what it printed, without the last line feed.
    pub fn run(&self, args: &[&str]) -> String {
        let output = self.try_run(args);
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }

    /// Opens a session with a window in the background; its pane.
    pub fn new_session(&self, session: &str, window: &str, command: &str) -> PaneId {
        let (columns, rows) = (self.size.0.to_string(), self.size.1.to_string());
        let size = ["-x", columns.as_str(), "-y", rows.as_str()];
        let told = ["-P", "-F", "#{pane_id}", command];
        let id = self.run(&[&["new-session", "-d", "-s", session, "-n", window], &size[..], &told[..]].concat());
        PaneId::parse(&id).unwrap()
    }

    /// Opens a window in the background; its pane.
    pub fn new_window(&self, name: &str, command: &str) -> PaneId {
        let id = self.run(&["new-window", "-d", "-t", "main:", "-P", "-F", "#{pane_id}", "-n", name, command]);
        PaneId::parse(&id).unwrap()
    }

    /// What a format says of a pane.
    pub fn format(&self, pane: PaneId, format: &str) -> String {
        self.run(&["display-message", "-p", "-t", &pane.to_string(), format])
    }

    /// The process in a pane.
    pub fn pane_pid(&self, pane: PaneId) -> u32 {
        self.format(pane, "#{pane_pid}").parse().unwrap()
    }

    /// The server's process id.
    pub fn server_pid(&self) -> u32 {
        self.run(&["display-message", "-p", "#{pid}"]).parse().unwrap()
    }

    /// A window whose program asks for framed pastes and writes all that it receives to a file; ready to receive.
    pub async fn receiver(&self, name: &str) -> (PaneId, PathBuf) {
        let file = self.path(&format!("received-{name}"));
        let script = format!("stty raw -echo; printf '\\033[?2004hrea''dy'; exec cat > {}", file.display());
        let pane = self.new_window(name, &script);
        self.shows(pane, "ready").await;
        (pane, file)
    }

    /// Waits until a pane shows a text.
    pub async fn shows(&self, pane: PaneId, text: &str) {
        wait_for(text, async || self.screen(pane).contains(text).then_some(())).await;
    }

    /// A pane's visible text.
    pub fn screen(&self, pane: PaneId) -> String {
        self.run(&["capture-pane", "-p", "-t", &pane.to_string()])
    }

    /// Sends a server a signal, by its process id.
    pub fn signal(pid: u32, signal: &str) {
        let status = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for TestTmux {
    fn drop(&mut self) {
        // By its process id and not by a command: a server that a failed test left stopped would never answer one.
        if let Some(pid) = self.pid.take() {
            drop(Command::new("kill").args(["-KILL", &pid.to_string()]).output());
        }
    }
}
