//! Real coding agents for tests: Claude Code from the cache that `scripts/test.sh` fills, talking to the scripted
//! model server in `tests/lab/mock_llm.py` on loopback, each in a window of one private tmux server with a home of its
//! own. No account, no network, nothing of the person's own settings.
//!
//! What an agent does is in its prompts: `SCENARIO:slow 25` streams for 25 s, `SCENARIO:bash rm -rf build` asks for
//! permission, and so on (the head of `mock_llm.py` lists them).

#![allow(dead_code, reason = "each test file uses the part that it needs")]
#![expect(clippy::disallowed_methods, reason = "tests start programs and read their environment")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::tmux_server::{TmuxServer, wait_until};

/// The version that the tests run.
pub(crate) const CLAUDE_VERSION: &str = "2.1.332";
/// The screen of an agent that waits for its first prompt.
pub(crate) const READY: &str = r"\? for shortcuts";
/// How long an agent may take to start on a busy machine.
pub(crate) const START_WITHIN: Duration = Duration::from_secs(60);

/// A key for a model server that looks at none.
const KEY: &str = "sk-ant-demo-0000000000000000000000000000000000000000";

/// A private tmux server with its model server; both end on drop.
#[derive(Debug)]
pub(crate) struct Lab {
    /// The tmux server. Its session is `nexus`.
    pub(crate) tmux: TmuxServer,
    mock: Child,
    port: u16,
    bin: PathBuf,
    path: String,
}

impl Lab {
    /// Starts both servers, with windows of 120 columns and 40 rows.
    pub(crate) fn start() -> Self {
        Self::start_sized(120, 40)
    }

    /// Starts both servers, with windows of this size.
    pub(crate) fn start_sized(columns: u16, rows: u16) -> Self {
        let bin = claude_bin();
        let tmux = TmuxServer::start(columns, rows);
        let port_file = tmux.dir().join("mock.port");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/mock_llm.py");
        let mock = Command::new("python3")
            .arg(script)
            .args(["--port", "0", "--port-file"])
            .arg(&port_file)
            .arg("--log")
            .arg(tmux.dir().join("mock.jsonl"))
            .arg("--log-bodies")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 runs; install it (Debian: apt-get install python3)");
        let mut lab = Self { tmux, mock, port: 0, bin, path: std::env::var("PATH").unwrap_or_default() };
        lab.port = wait_until("the model server's port", Duration::from_secs(20), || {
            let text = fs::read_to_string(&port_file).map_err(|error| error.to_string())?;
            text.trim().parse().map_err(|_| text)
        });
        lab
    }

    /// A private directory that lives as long as the lab.
    pub(crate) fn dir(&self) -> &Path {
        self.tmux.dir()
    }

    /// Root of a nexus of the lab's own.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir().join("nexus")
    }

    /// Its state directory.
    pub(crate) fn state(&self) -> PathBuf {
        self.root().join("monitor/.state")
    }

    /// One of our programs, set up for this nexus and this tmux server only.
    pub(crate) fn program(&self, path: &str) -> Command {
        fs::create_dir_all(self.state()).expect("the state directory");
        let mut command = Command::new(path);
        command
            .env("HOME", self.dir())
            .env("NEXUS_ROOT", self.root())
            .env("NEXUS_STATE_DIR", self.state())
            .env("NEXUS_TMUX_SOCKET", self.tmux.socket())
            .env("MONITOR_WATCHER_SUPERVISOR_ENABLED", "false")
            .env_remove("NEXUS_CONFIG")
            .env_remove("TMUX")
            .env_remove("TMUX_PANE")
            .stdin(Stdio::null());
        command
    }

    /// Runs `ng` for this nexus; returns its exit code and what it printed as a result.
    pub(crate) fn ng(&self, args: &[&str]) -> (i32, String) {
        let output = self.program(env!("CARGO_BIN_EXE_ng")).args(args).output().expect("ng runs");
        let code = output.status.code().expect("ng ends by itself");
        (code, String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Writes the hook settings of a window as a spawn would; returns the file's path.
    pub(crate) fn hooks(&self, window: &str, is_target: bool) -> PathBuf {
        let mut args = vec!["hooks", "settings", "--window", window, "--agent-version", CLAUDE_VERSION];
        args.extend(is_target.then_some("--target"));
        let (code, path) = self.ng(&args);
        assert_eq!(code, 0, "ng {}: {path}", args.join(" "));
        PathBuf::from(path)
    }

    /// A Claude Code to be started in a window of this name.
    pub(crate) fn claude(&self, window: &str) -> Claude<'_> {
        Claude {
            lab: self,
            window: window.to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            home: self.dir().join(format!("home-{window}")),
            shell: false,
        }
    }

    /// Overrides every answer until called with an empty directive (`overlimit`, `error529`, ...).
    pub(crate) fn mock_mode(&self, directive: &str) {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.port)).expect("the model server listens");
        let length = directive.len();
        write!(
            stream,
            "POST /__mode HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{directive}"
        )
        .expect("the mode is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the model server answers");
        assert!(answer.contains(" 200 "), "the model server answered: {answer}");
    }

    /// Everything that the agents have asked the model so far, one request a line.
    pub(crate) fn requests(&self) -> String {
        fs::read_to_string(self.dir().join("mock.jsonl")).unwrap_or_default()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ended = self.mock.kill();
        let _ended = self.mock.wait();
    }
}

/// One Claude Code that is being set up.
#[derive(Debug)]
pub(crate) struct Claude<'a> {
    lab: &'a Lab,
    window: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    cwd: Option<PathBuf>,
    home: PathBuf,
    shell: bool,
}

impl Claude<'_> {
    /// More command-line arguments.
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// A settings file on top of its own (`--settings`).
    pub(crate) fn settings(self, path: &Path) -> Self {
        let path = path.display().to_string();
        self.args(&["--settings", &path])
    }

    /// One more environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Its working directory; by default an empty one of its own.
    pub(crate) fn cwd(mut self, dir: &Path) -> Self {
        self.cwd = Some(dir.to_owned());
        self
    }

    /// Runs it under an interactive shell, so that the pane is a shell once it has ended.
    pub(crate) fn under_shell(mut self) -> Self {
        self.shell = true;
        self
    }

    /// Its home directory.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Starts it without waiting for its first screen. Returns its home directory.
    pub(crate) fn start(self) -> PathBuf {
        let cwd = self.cwd.clone().unwrap_or_else(|| self.lab.dir().join(format!("work-{}", self.window)));
        fs::create_dir_all(&cwd).expect("the working directory");
        let cwd = cwd.canonicalize().expect("the working directory's real path");
        fs::create_dir_all(self.home.join("tmp")).expect("the home directory");
        let state = json!({
            "numStartups": 5,
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "lastOnboardingVersion": "9.9.9",
            "projects": {cwd.to_str().expect("a UTF-8 path"): {
                "hasTrustDialogAccepted": true,
                "hasCompletedProjectOnboarding": true,
                "projectOnboardingSeenCount": 9,
            }},
            "customApiKeyResponses": {"approved": [&KEY[KEY.len() - 20..]], "rejected": []},
        });
        fs::write(self.home.join(".claude.json"), state.to_string()).expect("the agent's state file");
        // TERM and TMUX must come from the pane itself, so they are expanded there.
        let mut run = String::from("exec env -i TERM=\"$TERM\" TMUX=\"$TMUX\" TMUX_PANE=\"$TMUX_PANE\"");
        for (name, value) in self.environment() {
            run.push(' ');
            run.push_str(&quote(&format!("{name}={value}")));
        }
        let mut agent = String::from("claude");
        // Else auto mode answers its own permission prompts.
        if !self.args.iter().any(|arg| arg.contains("permission")) {
            agent.push_str(" --permission-mode default");
        }
        for arg in &self.args {
            agent.push(' ');
            agent.push_str(&quote(arg));
        }
        if self.shell {
            run.push_str(" PS1='demo$ ' bash --norc --noprofile -ic ");
            run.push_str(&quote(&format!("{agent}; exec bash --norc --noprofile -i")));
        } else {
            run.push(' ');
            run.push_str(&agent);
        }
        self.lab.tmux.window(&self.window, &cwd, &["bash", "-c", &run]);
        self.home
    }

    /// Starts it and waits for its first prompt. Returns its home directory.
    pub(crate) fn start_ready(self) -> PathBuf {
        let lab = self.lab;
        let window = self.window.clone();
        let home = self.start();
        lab.tmux.wait_for(&window, READY, START_WITHIN);
        home
    }

    fn environment(&self) -> Vec<(String, String)> {
        let home = self.home.display().to_string();
        let fixed = [
            ("HOME", home.clone()),
            ("TMPDIR", format!("{home}/tmp")),
            ("CLAUDE_CODE_TMPDIR", format!("{home}/tmp")),
            ("PATH", format!("{}:{}", self.lab.bin.display(), self.lab.path)),
            ("LANG", "C.UTF-8".into()),
            ("LC_ALL", "C.UTF-8".into()),
            ("SHELL", "/bin/bash".into()),
            ("USER", "demo".into()),
            ("LOGNAME", "demo".into()),
            ("XDG_CONFIG_HOME", format!("{home}/.config")),
            ("XDG_DATA_HOME", format!("{home}/.local/share")),
            ("XDG_CACHE_HOME", format!("{home}/.cache")),
            ("XDG_STATE_HOME", format!("{home}/.local/state")),
            ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", self.lab.port)),
            ("ANTHROPIC_API_KEY", KEY.into()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
            ("DISABLE_AUTOUPDATER", "1".into()),
            ("DISABLE_TELEMETRY", "1".into()),
            ("DISABLE_ERROR_REPORTING", "1".into()),
            ("NO_BROWSER", "1".into()),
        ];
        let fixed = fixed.into_iter().map(|(name, value)| (name.to_owned(), value));
        fixed.chain(self.env.iter().cloned()).collect()
    }
}

/// The session files of an agent with this home, parsed, in no order.
pub(crate) fn transcripts(home: &Path) -> Vec<Vec<Value>> {
    let projects = fs::read_dir(home.join(".claude/projects")).into_iter().flatten().flatten();
    let files = projects.filter_map(|project| fs::read_dir(project.path()).ok()).flatten().flatten();
    files
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "jsonl"))
        .filter_map(|file| fs::read_to_string(file.path()).ok())
        .map(|text| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
        .collect()
}

/// Writes a settings file whose hooks each run this shell command, for these events. Returns its path.
pub(crate) fn hook_settings(path: &Path, events: &[&str], command: impl Fn(&str) -> String) -> PathBuf {
    let hooks: serde_json::Map<String, Value> = events
        .iter()
        .map(|event| {
            let hook = json!({"type": "command", "command": command(event)});
            ((*event).to_owned(), json!([{"hooks": [hook]}]))
        })
        .collect();
    fs::write(path, json!({ "hooks": hooks }).to_string()).expect("the settings file");
    path.to_owned()
}

/// Where the agent's program is, or a panic that says how to get it.
fn claude_bin() -> PathBuf {
    // The default is where `scripts/test.sh` installs.
    let cache = std::env::var_os("NEXUS_LAB_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/lab"), PathBuf::from);
    let prefix = cache.join(format!("agents/claude-{CLAUDE_VERSION}"));
    let bin = prefix.join("node_modules/.bin");
    assert!(
        prefix.join(".installed").exists() && bin.join("claude").exists(),
        "Claude Code {CLAUDE_VERSION} is not in {}: run scripts/test.sh, or tests/lab/agent_lab.sh install {} claude@{CLAUDE_VERSION}",
        prefix.display(),
        cache.display()
    );
    bin
}

/// A word as a shell reads it back unchanged.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
