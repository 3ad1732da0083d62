//! The launcher with the service itself: one runs, the next is refused, `--replace` succeeds it, a killed one leaves
//! nothing in the way. Each test has a nexus and a tmux server of its own.

#![expect(clippy::disallowed_methods, reason = "tests start children of their own")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/output.rs"]
mod output;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use output::check;
use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(30);

/// A nexus beside a private tmux server with an orchestrator window.
struct Nexus {
    dir: tempfile::TempDir,
}

impl Nexus {
    fn new() -> Self {
        let nexus = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(nexus.at("root/config")).unwrap();
        nexus.tmux(&["new-session", "-d", "-s", "nexus", "-n", "orchestrator", "cat"]);
        nexus
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn tmux(&self, args: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        self.hermetic(command.arg("-S").arg(self.at("tmux")).args(["-f", "/dev/null"]).args(args)).output().unwrap()
    }

    fn hermetic<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let bin = Path::new(env!("CARGO_BIN_EXE_nexus-watcher")).parent().unwrap();
        command
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("LC_ALL", "C.UTF-8")
            .env("NEXUS_BIN_DIR", bin)
            .env("NEXUS_TMUX_SOCKET", self.at("tmux"))
    }

    fn launcher(&self, args: &[&str]) -> Command {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("monitor/watcher/launcher.sh"));
        self.hermetic(command.arg("--root").arg(self.at("root")).args(args));
        command
    }

    fn launch(&self, args: &[&str]) -> Output {
        self.launcher(args).output().unwrap()
    }

    fn status(&self) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ng"));
        self.hermetic(command.arg("--root").arg(self.at("root")).arg("watcher-status")).output().unwrap()
    }

    fn pid(&self) -> Option<u32> {
        fs::read_to_string(self.at("root/monitor/.state/watcher.pid")).ok()?.trim().parse().ok()
    }

    /// Sends a signal to the watcher of this nexus and waits until it is gone.
    fn end(&self, signal: Signal) {
        let pid = self.pid().expect("a watcher runs");
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
        // The kernel frees a lock a moment after the program is gone.
        wait_until("the watcher and its lock are gone", || {
            let status = self.launch(&["--instance-status"]);
            !is_running(pid) && String::from_utf8_lossy(&status.stdout).starts_with("instance-lock: free")
        });
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        let watcher = self.pid().filter(|pid| is_running(*pid)).and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = watcher {
            let _gone = kill_process(pid, Signal::KILL);
        }
        self.tmux(&["kill-server"]);
    }
}

/// Whether the process runs the service's program; one that ended and was not waited for does not.
fn is_running(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program.ends_with("nexus-watcher"))
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn one_runs_the_next_is_refused_and_a_replacement_succeeds_it() {
    let nexus = Nexus::new();
    check(&nexus.launch(&["--target", "orchestrator"]), 0, "started");
    let first = nexus.pid().unwrap();
    check(&nexus.status(), 0, "state=UP");
    check(&nexus.launch(&["--instance-status"]), 0, "assessment=live-local");
    check(&nexus.launch(&[]), 4, "--replace");
    check(&nexus.launch(&["--ensure"]), 0, "nothing to do");
    assert_eq!(nexus.pid(), Some(first));

    check(&nexus.launch(&["--replace"]), 0, "started");
    let second = nexus.pid().unwrap();
    assert_ne!(first, second);
    assert!(!is_running(first) && is_running(second));
    check(&nexus.status(), 0, "state=UP");

    nexus.end(Signal::TERM);
    check(&nexus.launch(&["--instance-status"]), 0, "instance-lock: free");
    assert!([Some(2), Some(3)].contains(&nexus.status().status.code()), "a watcher that ended is down");
}

#[test]
fn of_two_starts_at_once_one_runs() {
    let nexus = Nexus::new();
    let start = || -> Child { nexus.launcher(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap() };
    let mut codes = [start(), start()].map(|child| child.wait_with_output().unwrap().status.code());
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(4)]);
    // Past the launcher, the lock decides.
    let mut direct = Command::new(env!("CARGO_BIN_EXE_nexus-watcher"));
    let output = nexus.hermetic(direct.arg("--root").arg(nexus.at("root"))).output().unwrap();
    check(&output, 4, "another watcher holds");
}

#[test]
fn a_killed_watcher_is_seen_and_the_next_starts_at_once() {
    let nexus = Nexus::new();
    check(&nexus.launch(&[]), 0, "started");
    nexus.end(Signal::KILL);
    check(&nexus.status(), 2, "state=DOWN");
    check(&nexus.launch(&[]), 0, "started");
    check(&nexus.status(), 0, "state=UP");
}
