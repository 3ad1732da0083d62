//! The real watcher on a private server, with the demo's orchestrator as its target.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::process;
use super::server::Server;
use super::{pause, wait};

/// Between two looks at whether a process was started; several that end between two looks count as one.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The watcher; ended with the value.
#[derive(Debug)]
pub struct Watcher {
    child: Child,
    /// The server's process.
    server: u32,
    /// The control client's process.
    client: u32,
}

/// What a stretch of time has cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Processor time a second of the watcher.
    pub watcher: Duration,
    /// Processor time a second of its control client.
    pub client: Duration,
    /// Processor time a second of the tmux server.
    pub server: Duration,
    /// Processes that the watcher started.
    pub started: u64,
}

/// The nexus of a server.
pub fn root(server: &Server) -> PathBuf {
    server.path("nexus")
}

/// Makes the nexus, and opens the orchestrator's window.
pub fn open_nexus(server: &Server) {
    let root = root(server);
    for folder in ["config", "reports", "monitor/.state"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("config/nexus.yml"), "monitor:\n  interval_seconds: 60\n").unwrap();
    let (ng, shown) = (env!("CARGO_BIN_EXE_ng"), root.display());
    let agent = format!(
        "exec {ng} demo agent --root {shown} --role orchestrator --hooks --window orchestrator --state {shown}/monitor/.state"
    );
    server.tmux(&["new-window", "-d", "-t", "nexus:", "-n", "orchestrator", &agent]);
    wait("the orchestrator to draw", || {
        server.tmux(&["capture-pane", "-p", "-t", "=nexus:orchestrator"]).contains('❯')
    });
}

/// Writes what a fleet leaves in the state directory: a heartbeat a worker, and an action log of 8 MB.
pub fn fill_state(server: &Server, panes: usize) {
    let state = root(server).join("monitor/.state");
    fs::create_dir_all(state.join("heartbeat")).unwrap();
    for (nth, (pane, _)) in server.panes().into_iter().enumerate().take(panes) {
        let text = format!(
            r#"{{"state":"idle_prompt","event":"Stop","window":"w{nth}","last_activity":1700000000,"last_turn_end":1700000000,"session_id":"0b0f6b1e-2d5c-4c55-9d7e-{nth:012}","pane":"{pane}"}}"#
        );
        fs::write(state.join(format!("heartbeat/w{nth}.json")), text).unwrap();
    }
    let mut log = String::with_capacity(8 << 20);
    for nth in 0.. {
        let line = format!(
            r#"{{"ts":"2026-10-05T09:01:02-07:00","agent":"orchestrator","event":"paste-followup","note":"asked for a review of what was done so far","window":"old{}"}}"#,
            nth % 500
        );
        if log.len() + line.len() + 1 > 8_000_000 {
            break;
        }
        log.push_str(&line);
        log.push('\n');
    }
    fs::write(state.join("action-log.jsonl"), log).unwrap();
}

/// System calls a second of the watcher; `None` without strace.
pub fn system_calls(watcher: &Watcher, time: Duration, log: &Path) -> Option<u64> {
    let seconds = time.as_secs().max(1);
    let mut command = Command::new("timeout");
    command.args(["-s", "INT", &seconds.to_string(), "strace", "-c", "-f", "-qq", "-o"]).arg(log);
    command.args(["-p", &watcher.pid().to_string()]).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    let text = fs::read_to_string(log).ok()?;
    let total = text.lines().find(|line| line.trim_end().ends_with(" total"))?;
    Some(total.split_whitespace().nth(3)?.parse::<u64>().ok()? / seconds)
}

impl Watcher {
    /// Starts the watcher and waits until it has swept once.
    pub fn start(server: &Server) -> Self {
        let root = root(server);
        let child = Command::new(env!("CARGO_BIN_EXE_nexus-watcher"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", server.path("home"))
            .env("NEXUS_ROOT", &root)
            .env("NEXUS_TMUX_SOCKET", server.socket())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut watcher = Self { child, server: server.pid, client: 0 };
        wait("the watcher's first sweep", || is_up(&root));
        wait("its control client", || watcher.find_client());
        watcher
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its control client's process.
    pub fn client(&self) -> u32 {
        self.client
    }

    fn find_client(&mut self) -> bool {
        let found = process::children(self.pid()).into_iter().find(|&pid| process::name(pid).starts_with("tmux"));
        self.client = found.unwrap_or_default();
        found.is_some()
    }

    /// Lets time pass and says what it cost.
    pub fn spend(&self, time: Duration) -> Cost {
        let before = [self.pid(), self.client, self.server].map(process::cpu);
        let (running, mut faults) = (process::children(self.pid()), process::faults_of_children(self.pid()));
        let start = Instant::now();
        let mut started = 0;
        while start.elapsed() < time {
            pause(BETWEEN_LOOKS.min(time));
            let now = process::faults_of_children(self.pid());
            started += u64::from(now != faults);
            faults = now;
        }
        started += process::children(self.pid()).difference(&running).count() as u64;
        let after = [self.pid(), self.client, self.server].map(process::cpu);
        let [watcher, client, server] =
            [0, 1, 2].map(|nth| (after[nth] - before[nth]).div_f64(start.elapsed().as_secs_f64()));
        Cost { watcher, client, server, started }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap();
        // One that has ended already is not there to be told.
        let _ended = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        drop(self.child.wait());
    }
}

fn is_up(root: &Path) -> bool {
    let text = fs::read_to_string(root.join("monitor/.state/watcher-progress")).unwrap_or_default();
    text.contains("startup:done") || text.contains("loop-tick")
}
