//! Panes on a private tmux server as the watcher sees them: the real observer, with panes that look as old as a test
//! wants and a clock that a test can move on.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![expect(clippy::unwrap_used, reason = "a failure is a panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use nexus_watcher::agents::Profiles;
use nexus_watcher::config::resolved::Settings;
use nexus_watcher::daemon::audit::Audit;
use nexus_watcher::daemon::board::Board;
use nexus_watcher::daemon::edges::Edges;
use nexus_watcher::daemon::{Outside, observe};
use nexus_watcher::logic::ids::PaneId;
use nexus_watcher::logic::pane::{PaneVerdict, State};
use nexus_watcher::logic::time::{Now, Timestamp};
use nexus_watcher::sys::clock::Clock;
use nexus_watcher::sys::files::StateDir;
use nexus_watcher::sys::processes::{Hold, Machine, Processes, Tree, Unseen};
use nexus_watcher::sys::procfs::Process;
use nexus_watcher::sys::tmux::{Tmux as _, TmuxClient};

use super::tmux::{TestTmux, wait_for};

/// The machine's processes in panes that are older than they are.
#[derive(Debug)]
pub struct Aged {
    machine: Machine,
    by: Duration,
}

impl Processes for Aged {
    fn tree(&self, pid: u32, now: &Now) -> Result<Tree, Unseen> {
        let tree = self.machine.tree(pid, now)?;
        Ok(Tree { age: tree.age + self.by, ..tree })
    }

    fn sees(&self, pid: u32, started_at: Timestamp, now: &Now) -> bool {
        self.machine.sees(pid, started_at, now)
    }

    fn version(&self, process: &Process, packages: &[String]) -> Option<String> {
        self.machine.version(process, packages)
    }

    fn hold(&self, line: &[&Process]) -> Option<Box<dyn Hold>> {
        self.machine.hold(line)
    }
}

/// A private server, and the watcher's view of it.
pub struct Scene {
    pub server: TestTmux,
    pub out: Outside<TmuxClient>,
    /// Added to the time of each look.
    pub later: Duration,
}

impl Scene {
    /// Panes look as much older as this.
    pub fn aged(by: u64) -> Self {
        Self::with(by, Profiles::builtin().unwrap())
    }

    /// The same with other profiles.
    pub fn with(by: u64, profiles: Profiles) -> Self {
        Self::on(TestTmux::start(), by, profiles)
    }

    /// On a server whose windows have so many columns and rows.
    pub fn sized(size: (u16, u16)) -> Self {
        let server = TestTmux::absent_sized(size);
        server.start_server();
        Self::on(server, 100, Profiles::builtin().unwrap())
    }

    fn on(server: TestTmux, by: u64, profiles: Profiles) -> Self {
        let processes = Aged { machine: Machine::default(), by: Duration::from_secs(by) };
        let dir = server.path("nexus");
        let env: BTreeMap<String, String> = BTreeMap::new();
        let out = Outside {
            audit: Audit::default(),
            edges: Edges::default(),
            tmux: TmuxClient::new(server.socket(), None).without_control(),
            clock: Clock::System,
            state: StateDir::new(dir.join("monitor/.state")),
            settings: Settings::defaults(&dir).into(),
            env: Box::new(env),
            observer: observe::Observer::with(Rc::new(profiles), Box::new(processes)),
            board: Board::default(),
        };
        for (name, above) in [("idle", "● Done."), ("busy", "✻ Brewing… (12s · ↓ 1.2k tokens · esc to interrupt)")]
        {
            let rule = "─".repeat(100);
            let screen = format!("{above}\n\n{rule}\n❯\u{a0}\n{rule}\n  ? for shortcuts\n");
            fs::write(server.path(name), screen).unwrap();
        }
        Self { server, out, later: Duration::ZERO }
    }

    /// A copy of a program at this path in the test's directory.
    pub fn copy(&self, of: &str, path: &str) -> PathBuf {
        let to = self.server.path(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(fs::canonicalize(of).unwrap(), &to).unwrap();
        to
    }

    /// The command of an agent that shows a screen and waits: a copy of `cat` at this path.
    pub fn agent(&self, path: &str, screen: &str) -> String {
        format!("{} {} -", self.copy("/bin/cat", path).display(), self.server.path(screen).display())
    }

    /// Opens a window in which an agent shows this screen and waits.
    pub fn show(&self, name: &str, screen: &str) -> PaneId {
        self.show_behind("", name, screen)
    }

    /// Opens a window, resizes it, and lets an agent show this screen in it then.
    pub fn show_resized(&self, name: &str, screen: &str, (columns, rows): (u16, u16)) -> PaneId {
        let wait = format!("until [ \"$(stty size)\" = '{rows} {columns}' ]; do sleep 0.02; done;");
        let pane = self.show_behind(&wait, name, screen);
        let size = ["-x", &columns.to_string(), "-y", &rows.to_string()];
        self.server.run(&[&["resize-window", "-t", &pane.to_string()], &size[..]].concat());
        pane
    }

    /// Opens a window in which an agent shows this screen once a line of shell has ended.
    fn show_behind(&self, first: &str, name: &str, screen: &str) -> PaneId {
        let file = self.server.path(&format!("{name}.screen"));
        fs::write(&file, screen).unwrap();
        let claude = self.server.path("bin/claude");
        if !claude.exists() {
            self.copy("/bin/cat", "bin/claude");
        }
        // The last row's line end would scroll a screen that fills its window.
        let show = format!("stty -echo; {first} exec {} '{}' -", claude.display(), file.display());
        self.server.new_window(name, &show)
    }

    /// Opens a window in which an agent runs this shell script.
    pub fn play(&self, name: &str, script: &str) -> PaneId {
        let file = self.server.path(&format!("{name}.sh"));
        fs::write(&file, script).unwrap();
        let claude = self.server.path("seq/claude");
        if !claude.exists() {
            self.copy("/bin/bash", "seq/claude");
        }
        self.server.new_window(name, &format!("stty -echo; exec {} {}", claude.display(), file.display()))
    }

    /// What the watcher says of a pane now.
    pub async fn look(&self, pane: PaneId) -> PaneVerdict {
        self.look_at_all().await.remove(&pane).unwrap()
    }

    /// What the watcher says of every pane now.
    pub async fn look_at_all(&self) -> BTreeMap<PaneId, PaneVerdict> {
        let view = self.out.tmux.view().await.unwrap();
        let now = self.out.clock.now();
        let at = Timestamp::from_millis(now.at.millis() + i64::try_from(self.later.as_millis()).unwrap());
        let now = Now { at, uptime: now.uptime + self.later, ..now };
        let seen = observe::panes(&self.out, &view, &now).await.unwrap();
        seen.into_iter().map(|seen| (seen.facts.pane, seen.verdict)).collect()
    }

    /// Waits for this state with this first reason; an empty reason is any.
    pub async fn expect(&self, pane: PaneId, state: State, reason: &str) -> PaneVerdict {
        let what = format!("{state} {reason}");
        wait_for(&what, async || {
            let verdict = self.look(pane).await;
            let is_meant = verdict.state == state && (reason.is_empty() || verdict.evidence[0].rule == reason);
            is_meant.then_some(verdict)
        })
        .await
    }

    /// The process of the agent, as the evidence names it.
    pub async fn agent_pid(&self, pane: PaneId) -> u32 {
        let verdict = self.look(pane).await;
        line_of(&verdict, "agent-alive").split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// The line of a reason.
pub fn line_of(verdict: &PaneVerdict, rule: &str) -> String {
    let reason = verdict.evidence.iter().find(|reason| reason.rule == rule);
    reason.unwrap_or_else(|| panic!("no {rule}: {:?}", verdict.evidence)).line.clone().unwrap_or_default()
}

/// Ends a process that the test started.
pub fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Who it is taken for, and with which version.
pub fn who(verdict: &PaneVerdict) -> (Option<&str>, Option<&str>) {
    (verdict.agent.as_deref(), verdict.agent_version.as_deref())
}
