//! A fleet of four different real programs at once, read through `ng pane-state --all`. Needs what `scripts/test.sh`
//! installs; built only with the feature `lab`.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test starts programs and stops at a surprise")]

#[path = "support/tmux_server.rs"]
mod tmux_server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tmux_server::wait_until;

/// The programs and the window of each. `scripts/test.sh` installs these versions.
const FLEET: [(&str, &str); 4] =
    [("claude", "2.1.332"), ("codex", "0.171.0"), ("gemini", "0.61.0"), ("opencode", "1.18.33")];

/// How long a program may take to start, or to get to a state, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// The lab script's directory: the tmux server, the model server, the homes. All of it ends on drop.
struct Mixed {
    dir: tempfile::TempDir,
}

impl Mixed {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cache = std::env::var_os("NEXUS_LAB_DIR")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/lab"), PathBuf::from);
        for (agent, version) in FLEET {
            let installed = cache.join(format!("agents/{agent}-{version}/.installed"));
            assert!(installed.exists(), "{} is not there: run scripts/test.sh", installed.display());
        }
        std::os::unix::fs::symlink(cache.join("agents"), dir.path().join("agents")).unwrap();
        let mixed = Self { dir };
        mixed.lab(&["mock-start"], &[]);
        for (agent, version) in FLEET {
            mixed.lab(&["start"], &[&format!("{agent}@{version}"), agent, "--cols", "120", "--rows", "40"]);
            mixed.tmux(&["rename-window", "-t", &format!("={agent}:"), agent]);
        }
        mixed
    }

    /// Runs the lab script.
    fn lab(&self, verb: &[&str], args: &[&str]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/agent_lab.sh");
        let output = Command::new(script).args(verb).arg(self.dir.path()).args(args).output().unwrap();
        assert!(output.status.success(), "{verb:?} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.dir.path().join("tmux")).args(args);
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    }

    /// Sends a prompt.
    fn send(&self, agent: &str, text: &str) {
        self.lab(&["send"], &[agent, text]);
    }

    /// The verdicts on the windows of the fleet, by window.
    fn look(&self) -> BTreeMap<String, Value> {
        let state = self.dir.path().join("nexus/monitor/.state");
        std::fs::create_dir_all(&state).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_ng"))
            .args(["pane-state", "--all", "--json"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("NEXUS_ROOT", self.dir.path().join("nexus"))
            .env("NEXUS_STATE_DIR", state)
            .env("NEXUS_TMUX_SOCKET", self.dir.path().join("tmux"))
            .output()
            .unwrap();
        let panes: Vec<Value> = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
        let name = |pane: &Value| pane["name"].as_str().map(str::to_owned);
        panes.into_iter().filter_map(|pane| Some((name(&pane)?, pane))).collect()
    }

    /// Waits until every window is in the state that is expected of it, and then still is.
    fn expect(&self, states: [(&str, &[&str]); 4]) -> BTreeMap<String, Value> {
        let right = || {
            let seen = self.look();
            let wrong: Vec<String> = states
                .iter()
                .filter(|(agent, words)| !said(&seen, agent).is_some_and(|said| words.contains(&said.as_str())))
                .map(|(agent, words)| {
                    let screen = self.tmux(&["capture-pane", "-p", "-t", &format!("={agent}:")]);
                    format!("{agent} is not {words:?}: {:?}\n{screen}", seen.get(*agent))
                })
                .collect();
            if wrong.is_empty() { Ok(seen) } else { Err(wrong.join("\n")) }
        };
        wait_until(&format!("{states:?}"), PATIENCE, right);
        right().unwrap_or_else(|wrong| panic!("it did not stay so: {wrong}"))
    }
}

/// State and overlay of a window, as `blocked/permission`.
fn said(seen: &BTreeMap<String, Value>, agent: &str) -> Option<String> {
    let pane = seen.get(agent)?;
    let state = pane["state"].as_str()?;
    Some(pane["overlay"].as_str().map_or_else(|| state.to_owned(), |overlay| format!("{state}/{overlay}")))
}

impl Drop for Mixed {
    fn drop(&mut self) {
        self.lab(&["stop"], &[]);
    }
}

#[test]
fn a_fleet_of_different_programs_is_read_right() {
    let fleet = Mixed::start();
    // An empty box that always shows a placeholder is read as either.
    let free: &[&str] = &["idle", "autosuggest-only"];
    // opencode's first page tells no draft from none.
    let seen = fleet.expect([("claude", free), ("codex", free), ("gemini", free), ("opencode", &["empty"])]);
    for (agent, version) in FLEET {
        assert_eq!(seen[agent]["agent"], agent);
        assert_eq!(seen[agent]["agent_version"], version, "{agent}");
    }

    // What is typed on that page soon after it is drawn is lost, which is why nothing is said of it.
    let screen = || fleet.tmux(&["capture-pane", "-p", "-t", "=opencode:"]);
    wait_until("opencode to take what is typed", PATIENCE, || {
        fleet.lab(&["key"], &["opencode", "x"]);
        let shown = screen();
        if shown.contains("┃  x") { Ok(()) } else { Err(shown) }
    });
    fleet.send("opencode", " ready?");
    fleet.lab(&["wait"], &["opencode", "▣ .* · [0-9.]+m?s", "60"]);
    fleet.send("claude", "SCENARIO:bash rm -rf build");
    fleet.send("codex", "SCENARIO:bash rm -rf build");
    fleet.send("gemini", "SCENARIO:slow 40");
    fleet.send("opencode", "SCENARIO:slow 40");
    let asks: &[&str] = &["blocked/permission"];
    fleet.expect([("claude", asks), ("codex", asks), ("gemini", &["busy"]), ("opencode", &["busy"])]);

    fleet.lab(&["key"], &["claude", "Escape"]);
    fleet.lab(&["key"], &["codex", "Escape"]);
    fleet.expect([("claude", free), ("codex", free), ("gemini", free), ("opencode", free)]);

    fleet.send("claude", "/exit");
    fleet.send("gemini", "SCENARIO:bash rm -rf build");
    fleet.send("opencode", "SCENARIO:bash rm -rf build");
    fleet.send("codex", "SCENARIO:slow 40");
    let gone: &[&str] = &["absent", "unknown"];
    fleet.expect([("claude", gone), ("codex", &["busy"]), ("gemini", asks), ("opencode", asks)]);
}
