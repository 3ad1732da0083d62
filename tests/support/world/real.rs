//! The installed tmux as a [`World`], on a private server.

#![expect(clippy::unwrap_used, reason = "a failure is a panic")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use nexus_watcher::logic::ids::PaneId;
use nexus_watcher::sys::tmux::TmuxClient;

use super::{Program, SIZE, World, until};
use crate::support::tmux::TestTmux;

/// The installed tmux; the client reads over control mode, or a process for each question.
pub(crate) struct RealWorld<const CONTROL: bool> {
    server: TestTmux,
    client: TmuxClient,
    /// Where receivers keep what they are sent.
    files: RefCell<BTreeMap<PaneId, PathBuf>>,
    /// Numbers files.
    next: Cell<u32>,
}

impl<const CONTROL: bool> RealWorld<CONTROL> {
    fn file(&self) -> PathBuf {
        let number = self.next.get();
        self.next.set(number + 1);
        self.server.path(&format!("file-{number}"))
    }

    /// Waits until tmux knows how a pane's program ended. tmux 3.3a sometimes overlooks the end of a child until the next
    /// one ends, and leaves the pane dead without a status so long.
    async fn ends(&self, pane: PaneId) {
        until("its end", async || {
            self.server.run(&["run-shell", "true"]);
            (!self.server.format(pane, "#{pane_dead_status}#{pane_dead_signal}").is_empty()).then_some(())
        })
        .await;
    }

    /// Runs a command whose target is a pane or its window.
    fn on(&self, pane: PaneId, command: &[&str], rest: &[&str]) -> String {
        let target = pane.to_string();
        self.server.run(&[command, &["-t", &target], rest].concat())
    }
}

/// A name as tmux wants it, which takes names for formats.
fn literal(name: &str) -> String {
    name.replace('#', "##")
}

impl<const CONTROL: bool> World for RealWorld<CONTROL> {
    type Client = TmuxClient;
    const VIRTUAL: bool = false;

    fn new() -> Self {
        let server = TestTmux::absent_sized(SIZE);
        let client = TmuxClient::new(server.socket(), None);
        let client = if CONTROL { client } else { client.without_control() };
        Self { server, client, files: RefCell::default(), next: Cell::default() }
    }

    fn client(&self) -> &TmuxClient {
        &self.client
    }

    async fn start_server(&self) {
        self.server.start_server();
        self.server.run(&["set-option", "-g", "remain-on-exit", "on"]);
    }

    async fn stop_server(&self) {
        self.server.stop_server().await;
    }

    async fn open(&self, session: &str, name: &str, program: Program) -> PaneId {
        let file = self.file();
        let (command, sign) = match &program {
            Program::Cat => ("exec cat".to_owned(), None),
            Program::Shows(lines) => {
                std::fs::write(&file, lines.join("\n") + if lines.is_empty() { "end" } else { "\nend" }).unwrap();
                (format!("stty -echo; cat {}; exec cat > /dev/null", file.display()), Some("end"))
            }
            Program::Receiver { framed } => {
                let ask = if *framed { "\\033[?2004h" } else { "" };
                // The sign is put together here, so that it is not taken from a command line on the screen.
                let script = format!("stty raw -echo; printf '{ask}rea''dy\\r\\n'; exec cat > {}", file.display());
                (script, Some("ready"))
            }
            Program::Ends(status) => (format!("exit {status}"), None),
        };
        let exists = self.server.try_run(&["has-session", "-t", &format!("={session}")]).status.success();
        let pane = if exists {
            let target = format!("={session}:");
            let name = literal(name);
            let told = ["-P", "-F", "#{pane_id}", "-n", &name, &command];
            let id = self.server.run(&[&["new-window", "-d", "-t", &target][..], &told[..]].concat());
            PaneId::parse(&id).unwrap()
        } else {
            self.server.new_session(session, &literal(name), &command)
        };
        if let Some(sign) = sign {
            let shows = || self.server.screen(pane).lines().any(|row| row == sign);
            until(sign, async || shows().then_some(())).await;
        }
        if matches!(program, Program::Ends(_)) {
            self.ends(pane).await;
        }
        self.files.borrow_mut().insert(pane, file);
        pane
    }

    fn split(&self, pane: PaneId) -> PaneId {
        PaneId::parse(&self.on(pane, &["split-window", "-d", "-P", "-F", "#{pane_id}"], &["exec cat"])).unwrap()
    }

    fn respawn(&self, pane: PaneId) {
        self.on(pane, &["respawn-pane", "-k"], &["exec cat"]);
    }

    async fn terminate(&self, pane: PaneId) {
        TestTmux::signal(self.server.pane_pid(pane), "-TERM");
        self.ends(pane).await;
    }

    fn close(&self, pane: PaneId) {
        self.on(pane, &["kill-window"], &[]);
    }

    fn rename(&self, pane: PaneId, name: &str) {
        self.on(pane, &["rename-window"], &["--", &literal(name)]);
    }

    fn renumber(&self, pane: PaneId, index: u32) {
        self.server.run(&["move-window", "-s", &pane.to_string(), "-t", &format!("=main:{index}")]);
    }

    fn link(&self, pane: PaneId, session: &str) {
        self.server.run(&["link-window", "-d", "-s", &pane.to_string(), "-t", &format!("={session}:")]);
    }

    fn select(&self, pane: PaneId, session: &str) {
        let window = self.server.format(pane, "#{window_id}");
        self.server.run(&["select-window", "-t", &format!("={session}:{window}")]);
    }

    fn copy_mode(&self, pane: PaneId, on: bool) {
        self.on(pane, if on { &["copy-mode"] } else { &["copy-mode", "-q"] }, &[]);
    }

    fn synchronize(&self, pane: PaneId, on: bool) {
        self.on(pane, &["set-option", "-w"], &["synchronize-panes", if on { "on" } else { "off" }]);
    }

    fn ring(&self, pane: PaneId) {
        self.print(pane, "\u{7}");
    }

    fn print(&self, pane: PaneId, text: &str) {
        // What is written to the pane's terminal by anybody is its program's output.
        let terminal = self.server.format(pane, "#{pane_tty}");
        let mut terminal = std::fs::File::options().write(true).open(terminal).unwrap();
        terminal.write_all(text.as_bytes()).unwrap();
    }

    fn received(&self, pane: PaneId) -> String {
        std::fs::read_to_string(&self.files.borrow()[&pane]).unwrap()
    }
}
