//! A private tmux server for one test: its own socket in its own directory, ended on drop together with what runs in
//! it. Waiting is always for a condition, with a deadline.

#![allow(dead_code, reason = "each test file uses the part that it needs")]
#![expect(clippy::disallowed_methods, reason = "tests start tmux and wait for conditions")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(30);

/// Waits until `look` gives something, and panics with `what` and its last words after the deadline.
pub(crate) fn wait_until<T>(what: &str, within: Duration, mut look: impl FnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if start.elapsed() > within => panic!("waited {within:?} for {what}; last seen:\n{seen}"),
            Err(_) => sleep(LOOK_EVERY),
        }
    }
}

/// One private server with one session, `nexus`.
#[derive(Debug)]
pub(crate) struct TmuxServer {
    dir: tempfile::TempDir,
}

impl TmuxServer {
    /// Starts it. The session's windows are of this size; a window named `keep` holds it open.
    pub(crate) fn start(columns: u16, rows: u16) -> Self {
        let server = Self { dir: tempfile::Builder::new().prefix("nx").tempdir().expect("a temporary directory") };
        let size = (columns.to_string(), rows.to_string());
        server.tmux(&["new-session", "-d", "-s", "nexus", "-n", "keep", "-x", &size.0, "-y", &size.1, "sleep 2147483"]);
        server
    }

    /// A private directory that lives as long as the server.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The server's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("tmux")
    }

    /// Runs one tmux command, and returns what it prints without the last line end.
    pub(crate) fn tmux<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let output = self.try_tmux(args);
        let words: Vec<_> = args.iter().map(|arg| arg.as_ref().to_string_lossy()).collect();
        assert!(output.status.success(), "tmux {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }

    /// Runs one tmux command that may fail.
    pub(crate) fn try_tmux<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        Command::new("tmux")
            .args(["-u", "-f", "/dev/null", "-S"])
            .arg(self.socket())
            .args(args)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("tmux runs; install it (Debian: apt-get install tmux)")
    }

    /// Opens a window that runs this program (its words are not read by a shell).
    pub(crate) fn window<S: AsRef<OsStr>>(&self, name: &str, cwd: &Path, argv: &[S]) {
        let mut command: Vec<&OsStr> = ["new-window", "-d", "-t", "nexus:", "-n", name, "-c"].map(OsStr::new).to_vec();
        command.push(cwd.as_os_str());
        command.push("--".as_ref());
        command.extend(argv.iter().map(AsRef::as_ref));
        // A single word would be read by a shell.
        assert!(argv.len() > 1, "a window's program needs at least one argument");
        self.tmux(&command);
    }

    /// The visible screen of a window's active pane, as plain text.
    pub(crate) fn screen(&self, window: &str) -> String {
        self.tmux(&["capture-pane", "-p", "-t", &target(window)])
    }

    /// The visible screen with escape sequences.
    pub(crate) fn styled_screen(&self, window: &str) -> String {
        self.tmux(&["capture-pane", "-p", "-e", "-t", &target(window)])
    }

    /// The value of a format for a window's active pane.
    pub(crate) fn format(&self, window: &str, format: &str) -> String {
        self.tmux(&["display-message", "-p", "-t", &target(window), format])
    }

    /// Waits until the screen matches; returns it.
    pub(crate) fn wait_for(&self, window: &str, pattern: &str, within: Duration) -> String {
        let regex = regex::Regex::new(pattern).expect("the pattern is a regular expression");
        wait_until(&format!("/{pattern}/ in window {window}"), within, || {
            let screen = self.screen(window);
            if regex.is_match(&screen) { Ok(screen) } else { Err(screen) }
        })
    }

    /// Pastes text in its frame, without Enter.
    pub(crate) fn paste(&self, window: &str, text: &str) {
        let file = self.dir.path().join("paste");
        std::fs::write(&file, text).expect("the paste is written");
        let buffer = format!("test-{window}");
        self.tmux(&["load-buffer".as_ref(), "-b".as_ref(), OsStr::new(&buffer), file.as_os_str()]);
        self.tmux(&["paste-buffer", "-p", "-d", "-b", &buffer, "-t", &target(window)]);
    }

    /// Presses a key by its tmux name.
    pub(crate) fn key(&self, window: &str, key: &str) {
        self.tmux(&["send-keys", "-t", &target(window), key]);
    }

    /// Pastes a text of one line and sends it once it shows.
    pub(crate) fn send(&self, window: &str, text: &str) {
        self.paste(window, text);
        let start: String = text.chars().take(20).collect();
        self.wait_for(window, &regex::escape(&start), Duration::from_secs(10));
        self.key(window, "Enter");
    }

    /// Process ids of every pane.
    fn pane_pids(&self) -> Vec<u32> {
        let output = self.try_tmux(&["list-panes", "-a", "-F", "#{pane_pid}"]);
        String::from_utf8_lossy(&output.stdout).lines().filter_map(|pid| pid.parse().ok()).collect()
    }
}

impl Drop for TmuxServer {
    fn drop(&mut self) {
        let pids = self.pane_pids();
        self.try_tmux(&["kill-server"]);
        // An agent goes on writing into its home for a while; the directory must not be removed under it.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(8) && pids.iter().any(|pid| is_running(*pid)) {
            sleep(LOOK_EVERY);
        }
    }
}

/// Whether a process is there and has not ended.
pub(crate) fn is_running(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// The exact window of our session.
fn target(window: &str) -> String {
    format!("=nexus:={window}")
}
