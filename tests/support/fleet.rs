//! A nexus in a temporary directory with a private tmux server, demo agents in its windows, and the real watcher.
//!
//! Everything ends with the value: the watcher by its own process id, the tmux server by its private socket.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long a condition may take on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// One emit a second.
const CONFIG: &str = "monitor:\n  interval_seconds: 1\n";

/// A nexus under test.
pub(crate) struct Fleet {
    dir: tempfile::TempDir,
    socket: String,
    watcher: Option<Child>,
    /// Extra environment of the watcher.
    pub(crate) env: Vec<(String, String)>,
}

#[allow(dead_code, reason = "each test file uses a part of it")]
impl Fleet {
    /// An empty nexus with a tmux server that holds one window `keeper`.
    pub(crate) fn new() -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let dir = tempfile::Builder::new().prefix("nexus").tempdir().unwrap();
        let socket = format!("nexus-test-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let fleet = Self { dir, socket, watcher: None, env: Vec::new() };
        for sub in ["monitor/.state", "config", "reports", "home"] {
            fs::create_dir_all(fleet.root().join(sub)).unwrap();
        }
        fs::write(fleet.root().join("config/nexus.yml"), CONFIG).unwrap();
        fleet.start_server();
        fleet
    }

    /// Starts the private server, with the window `keeper`.
    pub(crate) fn start_server(&self) {
        let start = ["new-session", "-d", "-s", "nexus", "-n", "keeper", "-x", "120", "-y", "40", "sleep 100000"];
        // A server that was killed a moment ago may still hold the socket, and takes the new one's client down with it.
        self.wait("the server to start", || self.tmux_command(&start).output().unwrap().status.success());
    }

    /// The name of the private server's socket.
    pub(crate) fn socket(&self) -> &str {
        &self.socket
    }

    /// The root of the nexus.
    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    /// A file of the state directory.
    pub(crate) fn state(&self, path: &str) -> PathBuf {
        self.root().join("monitor/.state").join(path)
    }

    /// Runs tmux on the private server and returns what it prints.
    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let output = self.tmux_command(args).output().unwrap();
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn tmux_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-u", "-L", &self.socket, "-f", "/dev/null"]).args(args);
        command.env_remove("TMUX").env("HOME", self.root().join("home"));
        command
    }

    /// Whether the private server still answers.
    pub(crate) fn server_lives(&self) -> bool {
        self.tmux_command(&["list-sessions"]).output().unwrap().status.success()
    }

    /// Opens a window with a demo agent; its log is `<name>.log`, its control pipe `<name>.pipe` in the root.
    pub(crate) fn agent(&self, name: &str, switches: &str) {
        let root = self.root();
        let line = format!(
            "exec {} demo agent --root {} --log {} --control {} {switches}",
            env!("CARGO_BIN_EXE_ng"),
            root.display(),
            root.join(format!("{name}.log")).display(),
            root.join(format!("{name}.pipe")).display(),
        );
        self.tmux(&["new-window", "-d", "-t", "nexus:", "-n", name, "-c", &root.display().to_string(), &line]);
        let target = self.window(name);
        self.tmux(&["set-option", "-w", "-t", &target, "automatic-rename", "off"]);
        self.wait(&format!("the agent in {name} to draw"), || {
            self.tmux(&["capture-pane", "-p", "-t", &target]).contains('\u{276f}')
        });
    }

    /// The orchestrator, with hooks and a transcript unless `switches` say otherwise.
    pub(crate) fn orchestrator(&self, switches: &str) {
        self.agent("orchestrator", &format!("--role orchestrator {switches}"));
    }

    /// Switches that give an agent hooks like a real one's.
    pub(crate) fn hooks(&self, window: &str) -> String {
        format!("--hooks --window {window} --state {}", self.state("").display())
    }

    /// The id of the window with this name.
    pub(crate) fn window(&self, name: &str) -> String {
        self.find_window(name).unwrap_or_else(|| panic!("no window {name}"))
    }

    /// Whether a window has this name.
    pub(crate) fn has_window(&self, name: &str) -> bool {
        self.find_window(name).is_some()
    }

    fn find_window(&self, name: &str) -> Option<String> {
        let list = self.tmux(&["list-windows", "-t", "nexus", "-F", "#{window_id} #{window_name}"]);
        list.lines().find_map(|line| line.strip_suffix(&format!(" {name}"))).map(str::to_owned)
    }

    /// The screen of a window.
    pub(crate) fn screen(&self, name: &str) -> String {
        self.tmux(&["capture-pane", "-p", "-t", &self.window(name)])
    }

    /// Sends a command to a demo agent.
    pub(crate) fn tell(&self, name: &str, command: &str) {
        let path = self.root().join(format!("{name}.pipe"));
        let mut pipe = fs::OpenOptions::new().write(true).open(path).unwrap();
        writeln!(pipe, "{command}").unwrap();
    }

    /// What a demo agent has logged.
    pub(crate) fn log(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.root().join(format!("{name}.log"))).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Every byte that a demo agent got, escaped.
    pub(crate) fn bytes(&self, name: &str) -> String {
        self.log(name).iter().filter_map(|event| event["bytes"].as_str().map(str::to_owned)).collect()
    }

    /// The texts that were submitted to a demo agent.
    pub(crate) fn submitted(&self, name: &str) -> Vec<String> {
        let of =
            |event: &Value| (event["event"] == "submit").then(|| event["text"].as_str().unwrap_or_default().to_owned());
        self.log(name).iter().filter_map(of).collect()
    }

    /// The alert log.
    pub(crate) fn alerts(&self) -> String {
        fs::read_to_string(self.state("watcher-alerts.log")).unwrap_or_default()
    }

    /// Writes a decision record, as a hook does: something to tell.
    pub(crate) fn decide(&self, window: &str, fingerprint: &str) {
        let record = serde_json::json!({
            "ts": "2026-11-30T00:00:00+00:00", "window": window, "session_id": "s", "kind": "permission_prompt",
            "prompt_excerpt": "May I run the tests?", "tool_context": {}, "fingerprint": fingerprint,
        });
        let path = self.state(&format!("decisions/{window}.{fingerprint}.json"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // As a hook writes it: a running watcher must never read half a record.
        let draft = self.root().join(format!("{window}.{fingerprint}.draft"));
        fs::write(&draft, record.to_string()).unwrap();
        fs::rename(&draft, path).unwrap();
    }

    /// Sets keys of the configuration file.
    pub(crate) fn configure(&self, yaml: &str) {
        fs::write(self.root().join("config/nexus.yml"), yaml).unwrap();
    }

    /// One of our programs, set up for this nexus and this tmux server only.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.root().join("home"))
            .env("NEXUS_ROOT", self.root())
            .env("NEXUS_TMUX_SOCKET", &self.socket)
            // Nobody supervises the watcher of a test, and a reminder of that would be an emit of its own.
            .env("MONITOR_WATCHER_SUPERVISOR_ENABLED", "false")
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Starts the watcher.
    pub(crate) fn watch(&mut self) {
        assert!(self.watcher.is_none(), "one watcher at a time");
        let mut command = self.command(env!("CARGO_BIN_EXE_nexus-watcher"));
        self.watcher = Some(command.stdout(Stdio::null()).spawn().unwrap());
    }

    /// Starts the watcher under a tracer that ends it when one of its threads begins its n-th of these system calls.
    pub(crate) fn watch_killed_at(&mut self, step: u32, calls: &str) {
        assert!(self.watcher.is_none(), "one watcher at a time");
        let mut command = self.command("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
        command.args(["-e", &format!("inject={calls}:signal=KILL:when={step}"), env!("CARGO_BIN_EXE_nexus-watcher")]);
        self.watcher = Some(command.stdout(Stdio::null()).spawn().expect("strace is installed"));
    }

    /// Waits until the traced watcher has been killed, or the condition holds while it runs, and then ends it. Returns
    /// whether it was killed.
    pub(crate) fn wait_killed_or(&mut self, what: &str, condition: impl Fn(&Self) -> bool) -> bool {
        let mut tracer = self.watcher.take().expect("a watcher runs");
        let mut killed = false;
        self.wait(what, || {
            let status = tracer.try_wait().unwrap();
            assert!(status.is_none_or(|status| status.signal().is_some()), "it ended by itself: {status:?}");
            killed = status.is_some();
            killed || condition(self)
        });
        if !killed {
            let id = tracer.id();
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
            for pid in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
                let _gone = rustix::process::kill_process(
                    rustix::process::Pid::from_raw(pid).expect("a child has an id"),
                    rustix::process::Signal::KILL,
                );
            }
            tracer.wait().unwrap();
        }
        killed
    }

    /// Starts the watcher by a line of shell, in which it is `"$0"`, without HOME.
    pub(crate) fn watch_by(&mut self, line: &str) {
        assert!(self.watcher.is_none(), "one watcher at a time");
        let mut command = self.command("sh");
        command.args(["-c", line, env!("CARGO_BIN_EXE_nexus-watcher")]).env_remove("HOME");
        self.watcher = Some(command.spawn().unwrap());
    }

    /// Starts a watcher that is not this fleet's own.
    pub(crate) fn spawn_watcher(&self) -> Child {
        let mut command = self.command(env!("CARGO_BIN_EXE_nexus-watcher"));
        command.env_remove("NEXUS_FAULT").stdout(Stdio::null()).spawn().unwrap()
    }

    /// Takes a watcher for its own.
    pub(crate) fn adopt_watcher(&mut self, child: Child) {
        assert!(self.watcher.is_none(), "one watcher at a time");
        self.watcher = Some(child);
    }

    /// Runs another watcher to its end.
    pub(crate) fn run_watcher(&self, args: &[&str]) -> (i32, String) {
        let output = self.command(env!("CARGO_BIN_EXE_nexus-watcher")).args(args).output().unwrap();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Whether the watcher has not ended.
    pub(crate) fn watcher_lives(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.watcher_pid())).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
    }

    /// How often the watcher has waited for something, a sign that its loop turns.
    pub(crate) fn cpu_switches(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.watcher_pid())).unwrap_or_default();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    /// Waits until the watcher has been ended by its fault; one that ends by itself is a failure.
    pub(crate) fn wait_watcher_killed(&mut self, what: &str) {
        let mut child = self.watcher.take().expect("a watcher runs");
        self.wait(what, || {
            let status = child.try_wait().unwrap();
            assert!(status.is_none_or(|status| status.signal().is_some()), "it ended by itself: {status:?}");
            status.is_some()
        });
    }

    /// Whether a delivery is under way or unsettled.
    pub(crate) fn is_pending(&self) -> bool {
        self.state("delivery/pending.json").exists()
    }

    /// Waits for a condition and for every delivery to be settled, then for two more looks at what there is to tell.
    pub(crate) fn wait_settled(&self, what: &str, mut condition: impl FnMut() -> bool) {
        self.wait(what, || condition() && !self.is_pending());
        let runs = || {
            let log = fs::read_to_string(self.state("watcher-scheduler.jsonl")).unwrap_or_default();
            log.lines().filter(|line| line.contains("compose_emit")).count()
        };
        let before = runs();
        self.wait(&format!("{what}: further composing"), || runs() >= before + 2 && !self.is_pending());
    }

    /// Waits until a fault has stopped the watcher.
    pub(crate) fn wait_stopped(&self) {
        let stat = format!("/proc/{}/stat", self.watcher_pid());
        self.wait("the watcher to be stopped", || {
            let text = fs::read_to_string(&stat).unwrap();
            text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
        });
    }

    /// Lets a stopped watcher go on.
    pub(crate) fn resume_watcher(&self) {
        self.signal_watcher(rustix::process::Signal::CONT);
    }

    /// Sends the watcher a signal.
    pub(crate) fn signal_watcher(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.watcher_pid()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// The watcher's process id.
    pub(crate) fn watcher_pid(&self) -> u32 {
        self.watcher.as_ref().expect("a watcher runs").id()
    }

    /// Waits until the watcher has ended as it should.
    pub(crate) fn wait_ended(&mut self, what: &str) {
        let mut child = self.watcher.take().expect("a watcher runs");
        let mut status = None;
        self.wait(&format!("{what}: the end of the watcher"), || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.expect("it ended").success(), "{what}: {status:?}");
    }

    /// Ends the watcher without warning.
    pub(crate) fn kill_watcher(&mut self) {
        if let Some(mut child) = self.watcher.take() {
            let _ended = child.kill();
            child.wait().unwrap();
        }
    }

    /// Runs `ng` and returns its exit code and standard output.
    pub(crate) fn ng(&self, args: &[&str]) -> (i32, String) {
        let output = self.command(env!("CARGO_BIN_EXE_ng")).args(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code().unwrap_or(-1), text)
    }

    /// The emits as `ng emits --json` tells them.
    pub(crate) fn emits(&self) -> Vec<Value> {
        let output = self.command(env!("CARGO_BIN_EXE_ng")).args(["emits", "--json", "-n", "1000"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Waits until an emit fulfils a condition, and returns it.
    pub(crate) fn wait_emit(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut found = None;
        self.wait(what, || {
            found = self.emits().into_iter().rev().find(|emit| wanted(emit));
            found.is_some()
        });
        found.expect("the condition held")
    }

    /// Waits for a condition, and fails with everything that helps if it does not come.
    pub(crate) fn wait(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !condition() {
            assert!(Instant::now() <= end, "waited in vain for {what}\n{}", self.story());
            // A poll, not a synchronisation: the condition decides.
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Everything that helps to see what went wrong.
    fn story(&self) -> String {
        let mut text = String::new();
        for name in ["emits.jsonl", "delivery/pending.json", "watcher-scheduler.jsonl"] {
            let file = fs::read_to_string(self.state(name)).unwrap_or_default();
            let tail: Vec<&str> = file.lines().rev().take(8).collect();
            let _infallible = writeln!(text, "--- {name}\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        if let Ok(entries) = fs::read_dir(self.state("logs")) {
            for entry in entries.flatten() {
                let file = fs::read_to_string(entry.path()).unwrap_or_default();
                let tail: Vec<&str> = file.lines().rev().take(30).collect();
                let _infallible = writeln!(text, "--- log\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
            }
        }
        let list = self.tmux_command(&["list-windows", "-a", "-F", "#{window_name}"]).output().unwrap();
        for name in String::from_utf8_lossy(&list.stdout).lines().filter(|name| *name != "keeper") {
            let _infallible = writeln!(text, "--- screen of {name}\n{}", self.screen(name));
        }
        text
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.kill_watcher();
        let _gone = self.tmux_command(&["kill-server"]).output();
    }
}
