//! A private tmux server whose panes show agents' screens, 200 columns by 50 rows.
//!
//! The program in each pane lies where an agent's would and does nothing but show a file, so that the panes are taken for
//! agents' and cost nothing themselves.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{screens, wait};

/// Where the program is, as the agent's installer puts it, so that it is taken for an agent of a known version.
const AGENT: &str = "claude/versions/2.1.332";

/// The server; ended with the value.
#[derive(Debug)]
pub struct Server {
    dir: tempfile::TempDir,
    /// Its process.
    pub pid: u32,
    files: Vec<PathBuf>,
    panes: usize,
}

impl Server {
    /// A server with one window, `keeper`, that shows nothing.
    pub fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("nexus-bench").tempdir().unwrap();
        fs::create_dir_all(dir.path().join("home")).unwrap();
        fs::create_dir_all(dir.path().join(AGENT).parent().unwrap()).unwrap();
        fs::copy("/bin/cat", dir.path().join(AGENT)).unwrap();
        let files = write_screens(dir.path());
        let mut server = Self { dir, pid: 0, files, panes: 0 };
        server.tmux(&["new-session", "-d", "-s", "nexus", "-n", "keeper", "-x", "200", "-y", "50", "exec cat"]);
        server.pid = server.tmux(&["display-message", "-p", "#{pid}"]).parse().unwrap();
        server
    }

    /// Opens windows until so many panes show an agent's screen.
    pub fn grow(&mut self, panes: usize) {
        while self.panes < panes {
            let file = &self.files[self.panes % self.files.len()];
            let program = format!("exec {} {} -", self.path(AGENT).display(), file.display());
            let name = format!("w{}", self.panes);
            self.tmux(&["new-window", "-d", "-t", "nexus:", "-n", &name, &program]);
            self.panes += 1;
        }
        wait("every pane to show its screen", || {
            let list =
                self.tmux(&["list-panes", "-a", "-F", "#{window_name} #{cursor_y} #{pane_width}x#{pane_height}"]);
            let drawn = |line: &&str| line.starts_with('w') && line.ends_with(" 49 200x50");
            list.lines().filter(drawn).count() == panes
        });
    }

    /// Pane ids and terminals of the agents' panes.
    pub fn panes(&self) -> Vec<(String, PathBuf)> {
        let list = self.tmux(&["list-panes", "-a", "-F", "#{window_name} #{pane_id} #{pane_tty}"]);
        let fields = |line: &str| {
            let mut fields = line.split(' ');
            let is_agent = fields.next()?.starts_with('w');
            Some((fields.next()?.to_owned(), PathBuf::from(fields.next()?))).filter(|_| is_agent)
        };
        list.lines().filter_map(fields).collect()
    }

    /// Draws something in a pane, as its program would.
    pub fn draw(tty: &Path, text: &str) {
        OpenOptions::new().write(true).open(tty).unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// A path in the server's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.path("socket")
    }

    /// The tmux program, to be told more.
    pub fn program(&self) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-u", "-f", "/dev/null", "-S"]).arg(self.socket());
        command.env_remove("TMUX").env_remove("TMUX_PANE").env("HOME", self.path("home")).stdin(Stdio::null());
        command
    }

    /// Runs a command that must succeed; what it printed.
    pub fn tmux(&self, args: &[&str]) -> String {
        let output = self.program().args(args).output().expect("tmux is installed");
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.program().arg("kill-server").output());
    }
}

/// Writes what panes show: a page of transcript, wide and coloured, and below it a saved screen.
fn write_screens(dir: &Path) -> Vec<PathBuf> {
    let mut page = String::new();
    for row in 0..60 {
        let words = "The loader reads every file twice, once for its size: naïve, but “correct” — ✓ 漢字 ".repeat(2);
        page.push_str(&format!("\x1b[3{}m●\x1b[0m {row:3} \x1b[2m{words}\x1b[0m\n", row % 8));
    }
    let screens = screens::all().into_iter().filter(|screen| screen.size.1 >= 24).step_by(3);
    let write = |(nth, screen): (usize, screens::Screen)| {
        let path = dir.join(format!("screen-{nth}"));
        let shown = screen.ansi.strip_suffix(b"\n").unwrap_or(&screen.ansi);
        fs::write(&path, [page.as_bytes(), shown].concat()).unwrap();
        path
    };
    screens.enumerate().map(write).collect()
}
