//! The simulated tmux as a [`World`].

use nexus_watcher::logic::ids::{PaneId, WindowId};
use nexus_watcher::logic::time::Timestamp;
use nexus_watcher::sys::clock::Clock;

use super::{Program, World};
use crate::support::sim::program::Program as Simulated;
use crate::support::sim::tmux::SimTmux;

const SIGTERM: i32 = 15;

/// The simulated machine.
pub(crate) struct SimWorld(SimTmux);

impl SimWorld {
    fn window(&self, pane: PaneId) -> WindowId {
        let machine = self.0.look();
        let holds =
            |id: &WindowId| machine.window(*id).is_some_and(|window| window.panes.iter().any(|held| held.id == pane));
        machine.windows().map(|(id, _)| id).find(holds).expect("the pane is there")
    }
}

impl World for SimWorld {
    type Client = SimTmux;
    const VIRTUAL: bool = true;

    fn new() -> Self {
        Self(SimTmux::new(Clock::starting_at(Timestamp::from_secs(1_790_000_000))))
    }

    fn client(&self) -> &SimTmux {
        &self.0
    }

    async fn start_server(&self) {
        self.0.touch().start_server();
        self.0.touch().new_window("main", "first", Simulated::cat());
    }

    async fn stop_server(&self) {
        self.0.touch().kill_server();
    }

    async fn open(&self, session: &str, name: &str, program: Program) -> PaneId {
        let receiver =
            |framed| Simulated::Receiver { framed, got: String::new(), shown: vec!["ready".into(), String::new()] };
        let (program, ends) = match program {
            Program::Cat => (Simulated::cat(), None),
            Program::Shows(lines) => {
                (Simulated::Rows(lines.iter().chain(&["end"]).map(ToString::to_string).collect()), None)
            }
            Program::Receiver { framed } => (receiver(framed), None),
            Program::Ends(status) => (Simulated::Rows(Vec::new()), Some(status)),
        };
        let (_, pane) = self.0.touch().new_window(session, name, program);
        if let Some(status) = ends {
            self.0.touch().end_program(pane, status.into());
        }
        pane
    }

    fn split(&self, pane: PaneId) -> PaneId {
        let window = self.window(pane);
        self.0.touch().split(window, Simulated::cat())
    }

    fn respawn(&self, pane: PaneId) {
        self.0.touch().respawn(pane, Simulated::cat());
    }

    async fn terminate(&self, pane: PaneId) {
        self.0.touch().end_program_by(pane, SIGTERM);
    }

    fn close(&self, pane: PaneId) {
        let window = self.window(pane);
        self.0.touch().kill_window(window);
    }

    fn rename(&self, pane: PaneId, name: &str) {
        let window = self.window(pane);
        self.0.touch().rename(window, name);
    }

    fn renumber(&self, pane: PaneId, index: u32) {
        let window = self.window(pane);
        self.0.touch().renumber(window, index);
    }

    fn link(&self, pane: PaneId, session: &str) {
        let window = self.window(pane);
        self.0.touch().link(window, session);
    }

    fn select(&self, pane: PaneId, session: &str) {
        let window = self.window(pane);
        self.0.touch().select_in(session, window);
    }

    fn copy_mode(&self, pane: PaneId, on: bool) {
        self.0.touch().set_mode(pane, on);
    }

    fn synchronize(&self, pane: PaneId, on: bool) {
        let window = self.window(pane);
        self.0.touch().set_synchronized(window, on);
    }

    fn ring(&self, pane: PaneId) {
        let window = self.window(pane);
        self.0.touch().ring(window);
    }

    fn print(&self, pane: PaneId, text: &str) {
        self.0.touch().print(pane, text);
    }

    fn received(&self, pane: PaneId) -> String {
        let machine = self.0.look();
        match machine.pane(pane).map(|pane| &pane.program) {
            Some(Simulated::Receiver { got, .. }) => got.clone(),
            other => panic!("{pane} is no receiver: {other:?}"),
        }
    }
}
