//! The simulated machine: its tmux server with sessions, windows and panes, and what people and programs do to them.
//!
//! The watcher comes in by `super::tmux`. What came of everything is kept as [`Happening`]s until somebody asks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use nexus_watcher::logic::ids::{PaneId, PaneKey, ServerId, SessionId, WindowId};
use nexus_watcher::logic::snapshot::DeadPane;
use nexus_watcher::logic::time::{Now, Timestamp};
use nexus_watcher::sys::clock::Clock;
use nexus_watcher::sys::tmux::{Act, GuardedAct, Key};

use super::agent::{Agent, Did};
use super::draw::{self, Row};
use super::program::Program;

/// Something that happened on the machine.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    /// The watcher's act was carried out.
    Acted {
        /// The pane.
        pane: PaneKey,
        /// Its window's name.
        window: String,
        /// What was done.
        act: Act,
        /// Why it must not have been done, by what is true and not by what was drawn.
        wrong: Option<&'static str>,
    },
    /// An agent did something.
    Agent {
        /// Its pane.
        pane: PaneKey,
        /// Its window's name.
        window: String,
        /// What it did.
        did: Did,
    },
    /// The watcher cleared the bells of these windows, which had one.
    BellsCleared(Vec<WindowId>),
    /// A window came or went.
    Windows,
}

/// What is wrong with the way to tmux at present.
#[derive(Debug, Default)]
pub(crate) struct Weather {
    /// Until then the server answers nobody; what it was sent is carried out then.
    pub(crate) deaf_until: Option<Duration>,
    /// What becomes of the next calls.
    pub(crate) next: VecDeque<Lost>,
    /// What becomes of the next acts.
    pub(crate) next_acts: VecDeque<Lost>,
    /// How much later than usual an agent draws a paste.
    pub(crate) echo: Duration,
    /// How many Enters agents will not take.
    pub(crate) swallow_enters: u32,
}

/// How a single call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It never reached the server.
    Question,
    /// It was carried out, and the answer was lost.
    Answer,
    /// tmux refuses it.
    Refused,
    /// The answer is rubbish, after it was carried out.
    Garbled,
}

/// Something that is to happen at a moment that only the machine knows.
pub(super) type Strike = Box<dyn FnOnce(&mut Machine)>;

/// A pane.
pub(crate) struct Pane {
    /// Its id.
    pub(crate) id: PaneId,
    /// Its process.
    pub(crate) pid: u32,
    /// What runs in it, or ran.
    pub(crate) program: Program,
    /// Set when the program has ended and the pane stays.
    pub(crate) dead: Option<DeadPane>,
    /// Copy mode or a chooser is open.
    pub(crate) in_mode: bool,
    /// When its program started.
    pub(crate) started: Duration,
}

/// A window.
pub(crate) struct Window {
    /// Its name.
    pub(crate) name: String,
    /// Keys go to every pane.
    pub(crate) synchronized: bool,
    /// Its panes.
    pub(crate) panes: Vec<Pane>,
    pub(super) activity: Timestamp,
}

/// A session: its windows by index. A window can be in several.
pub(super) struct Session {
    pub(super) id: SessionId,
    pub(super) name: String,
    pub(super) windows: BTreeMap<u32, WindowId>,
    pub(super) current: WindowId,
    /// Its windows whose bell flag is set: each session has flags of its own.
    pub(super) ringing: BTreeSet<WindowId>,
    /// The windows that were current, the latest last.
    earlier: Vec<WindowId>,
}

impl Session {
    pub(super) fn holds(&self, window: WindowId) -> bool {
        self.windows.values().any(|held| *held == window)
    }

    /// Makes a window current; whether it was not.
    fn select(&mut self, window: WindowId) -> bool {
        if self.current == window {
            return false;
        }
        self.earlier.retain(|held| *held != window);
        self.earlier.push(self.current);
        self.current = window;
        true
    }

    /// Forgets a window. If it was the current one, the one before it is, else the one to its left; which one.
    fn lose(&mut self, window: WindowId) -> Option<WindowId> {
        let index = self.windows.iter().find_map(|(index, held)| (*held == window).then_some(*index));
        self.windows.retain(|_, held| *held != window);
        self.earlier.retain(|held| *held != window);
        self.ringing.remove(&window);
        if self.current != window {
            return None;
        }
        let left = index.and_then(|index| self.windows.range(..index).next_back());
        let left = left.or_else(|| self.windows.iter().next_back()).map(|(_, id)| *id);
        let next = self.earlier.pop().or(left)?;
        self.current = next;
        Some(next)
    }
}

/// A tmux server.
pub(super) struct Server {
    pub(super) id: ServerId,
    pub(super) sessions: Vec<Session>,
    pub(super) windows: BTreeMap<WindowId, Window>,
    pub(super) places: BTreeMap<PaneId, WindowId>,
    next_session: u32,
    next_window: u32,
    next_pane: u32,
}

impl Server {
    /// A window has become current somewhere: its bell is heard in every session.
    fn is_seen(&mut self, window: WindowId, now: Timestamp) {
        for session in &mut self.sessions {
            session.ringing.remove(&window);
        }
        if let Some(window) = self.windows.get_mut(&window) {
            window.activity = now;
        }
    }
}

/// The machine.
pub(crate) struct Machine {
    clock: Clock,
    pub(super) server: Option<Server>,
    pub(super) by_pid: BTreeMap<u32, PaneId>,
    next_pid: u32,
    pub(super) late: Vec<GuardedAct>,
    pub(super) happened: Vec<Happening>,
    /// What happens around acts, each with the number of acts that pass first.
    pub(super) before_act: Vec<(u32, Strike)>,
    pub(super) after_act: Vec<(u32, Strike)>,
    /// What is wrong at present.
    pub(crate) weather: Weather,
}

impl Pane {
    pub(super) fn is_busy(&self) -> bool {
        matches!(&self.program, Program::Agent(agent) if agent.busy_since().is_some() && agent.dialog().is_none())
    }

    pub(super) fn screen(&self, now: Duration) -> Vec<Row> {
        let rows = self.program.screen(now);
        if let Some(dead) = &self.dead { draw::dead(rows, *dead) } else { rows }
    }

    /// The agent in it.
    pub(crate) fn agent(&self) -> Option<&Agent> {
        match &self.program {
            Program::Agent(agent) if self.dead.is_none() => Some(agent),
            _ => None,
        }
    }
}

/// What people and programs do.
impl Machine {
    /// A machine on which no tmux server runs.
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            server: None,
            by_pid: BTreeMap::new(),
            next_pid: 1000,
            late: Vec::new(),
            happened: Vec::new(),
            before_act: Vec::new(),
            after_act: Vec::new(),
            weather: Weather::default(),
        }
    }

    /// What time it is.
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Starts a server without sessions, which the first session fills.
    pub(crate) fn start_server(&mut self) {
        let now = self.now();
        self.next_pid += 7;
        let id = ServerId { socket: "/tmp/tmux-1000/sim".into(), pid: self.next_pid, start_s: now.at.secs() };
        self.server = Some(Server {
            id,
            sessions: Vec::new(),
            windows: BTreeMap::new(),
            places: BTreeMap::new(),
            next_session: 0,
            next_window: 0,
            next_pane: 0,
        });
        self.happened.push(Happening::Windows);
    }

    /// The server ends, and everything in it.
    pub(crate) fn kill_server(&mut self) {
        self.server = None;
        self.by_pid.clear();
        self.late.clear();
        self.happened.push(Happening::Windows);
    }

    /// The server that runs.
    pub(crate) fn server(&self) -> Option<&ServerId> {
        self.server.as_ref().map(|server| &server.id)
    }

    /// Opens a window in a session, which is made if there is none of that name.
    pub(crate) fn new_window(&mut self, session: &str, name: &str, program: Program) -> (WindowId, PaneId) {
        let now = self.now();
        self.next_pid += 7;
        let pid = self.next_pid;
        let server = self.server.as_mut().expect("a server runs");
        let (window, pane) = (WindowId::new(server.next_window), PaneId::new(server.next_pane));
        server.next_window += 1;
        server.next_pane += 1;
        let held = Pane { id: pane, pid, program, dead: None, in_mode: false, started: now.uptime };
        server.windows.insert(
            window,
            Window {
                name: name.to_owned(),
                synchronized: false,
                panes: vec![held],
                activity: Timestamp::from_secs(now.at.secs()),
            },
        );
        server.places.insert(pane, window);
        if let Some(session) = server.sessions.iter_mut().find(|known| known.name == session) {
            let index = (0_u32..1000).find(|index| !session.windows.contains_key(index)).expect("a free index");
            session.windows.insert(index, window);
        } else {
            let id = SessionId::new(server.next_session);
            server.next_session += 1;
            let windows = BTreeMap::from([(0, window)]);
            let name = session.to_owned();
            let session = Session { id, name, windows, current: window, ringing: BTreeSet::new(), earlier: Vec::new() };
            // tmux lists its sessions by name.
            let place = server.sessions.partition_point(|known| known.name < session.name);
            server.sessions.insert(place, session);
        }
        self.by_pid.insert(pid, pane);
        self.happened.push(Happening::Windows);
        (window, pane)
    }

    /// Opens a further pane in a window.
    pub(crate) fn split(&mut self, window: WindowId, program: Program) -> PaneId {
        let now = self.now().uptime;
        self.next_pid += 7;
        let pid = self.next_pid;
        let server = self.server.as_mut().expect("a server runs");
        let pane = PaneId::new(server.next_pane);
        server.next_pane += 1;
        server.places.insert(pane, window);
        let held = Pane { id: pane, pid, program, dead: None, in_mode: false, started: now };
        server.windows.get_mut(&window).expect("the window exists").panes.push(held);
        self.by_pid.insert(pid, pane);
        pane
    }

    /// A pane goes, with its window, session and server if it was the last of each.
    pub(crate) fn kill_pane(&mut self, pane: PaneId) {
        let stamp = Timestamp::from_secs(self.now().at.secs());
        let Some(server) = &mut self.server else { return };
        let Some(id) = server.places.remove(&pane) else { return };
        if let Some(window) = server.windows.get_mut(&id) {
            window.panes.retain(|held| held.id != pane);
            if window.panes.is_empty() {
                server.windows.remove(&id);
                let next: Vec<_> = server.sessions.iter_mut().filter_map(|session| session.lose(id)).collect();
                for window in next {
                    server.is_seen(window, stamp);
                }
                server.sessions.retain(|session| !session.windows.is_empty());
            }
        }
        self.by_pid.retain(|_, held| *held != pane);
        if server.sessions.is_empty() {
            self.kill_server();
        }
        self.happened.push(Happening::Windows);
    }

    /// A window goes.
    pub(crate) fn kill_window(&mut self, window: WindowId) {
        let panes: Vec<PaneId> =
            self.window(window).iter().flat_map(|window| &window.panes).map(|pane| pane.id).collect();
        for pane in panes {
            self.kill_pane(pane);
        }
    }

    /// A pane's program ends, and the pane stays (`remain-on-exit`). No output, so no activity.
    pub(crate) fn end_program(&mut self, pane: PaneId, status: i32) {
        self.with_quiet_pane(pane, |pane| pane.dead = Some(DeadPane { status: Some(status), signal: None }));
    }

    /// The same by a signal.
    pub(crate) fn end_program_by(&mut self, pane: PaneId, signal: i32) {
        self.with_quiet_pane(pane, |pane| pane.dead = Some(DeadPane { status: None, signal: Some(signal) }));
    }

    /// A pane's program writes a text.
    pub(crate) fn print(&mut self, pane: PaneId, text: &str) {
        self.with_pane(pane, |pane| pane.program.print(text));
    }

    /// Another program takes a pane's place, under another process id. That is no activity unless it writes something.
    pub(crate) fn respawn(&mut self, pane: PaneId, program: Program) {
        let now = self.now().uptime;
        let writes = !matches!(program, Program::Cat(_));
        self.next_pid += 7;
        let pid = self.next_pid;
        self.by_pid.retain(|_, held| *held != pane);
        self.by_pid.insert(pid, pane);
        self.with_quiet_pane(pane, |pane| {
            pane.pid = pid;
            pane.program = program;
            pane.dead = None;
            pane.in_mode = false;
            pane.started = now;
        });
        if writes {
            self.with_pane(pane, |_| ());
        }
    }

    /// A pane's program gives way to another one in the same process (a shell that ran it with `exec`, or went on).
    pub(crate) fn become_program(&mut self, pane: PaneId, program: Program) {
        self.with_pane(pane, |pane| pane.program = program);
    }

    /// A window gets another name.
    pub(crate) fn rename(&mut self, window: WindowId, name: &str) {
        if let Some(window) = self.window_mut(window) {
            name.clone_into(&mut window.name);
        }
        self.happened.push(Happening::Windows);
    }

    /// A window gets another number in its session.
    pub(crate) fn renumber(&mut self, window: WindowId, index: u32) {
        let mut sessions = self.server.iter_mut().flat_map(|server| &mut server.sessions);
        if let Some(session) = sessions.find(|session| session.holds(window)) {
            session.windows.retain(|_, held| *held != window);
            session.windows.insert(index, window);
        }
    }

    /// A window appears in a further session too.
    pub(crate) fn link(&mut self, window: WindowId, session: &str) {
        let mut sessions = self.server.iter_mut().flat_map(|server| &mut server.sessions);
        if let Some(session) = sessions.find(|known| known.name == session) {
            let index = (0_u32..1000).find(|index| !session.windows.contains_key(index)).expect("a free index");
            session.windows.insert(index, window);
        }
    }

    /// The current window of the session that holds it is this one.
    pub(crate) fn select(&mut self, window: WindowId) {
        let mut sessions = self.server.iter().flat_map(|server| &server.sessions);
        if let Some(name) = sessions.find(|session| session.holds(window)).map(|session| session.name.clone()) {
            self.select_in(&name, window);
        }
    }

    /// A session's current window is this one. That counts as activity, and whoever looks has heard its bell.
    pub(crate) fn select_in(&mut self, session: &str, window: WindowId) {
        let now = self.now().at.secs();
        let Some(server) = &mut self.server else { return };
        let Some(known) = server.sessions.iter_mut().find(|known| known.name == session) else { return };
        if known.select(window) {
            server.is_seen(window, Timestamp::from_secs(now));
        }
    }

    /// A program rings.
    pub(crate) fn ring(&mut self, window: WindowId) {
        let now = self.now().at.secs();
        for session in self.server.iter_mut().flat_map(|server| &mut server.sessions) {
            if session.holds(window) {
                session.ringing.insert(window);
            }
        }
        if let Some(window) = self.window_mut(window) {
            window.activity = Timestamp::from_secs(now);
        }
    }

    /// Opens or leaves a mode, which is no output and so no activity.
    pub(crate) fn set_mode(&mut self, pane: PaneId, on: bool) {
        self.with_quiet_pane(pane, |pane| pane.in_mode = on);
    }

    /// Sends the keys of a window to all its panes, or no longer.
    pub(crate) fn set_synchronized(&mut self, window: WindowId, on: bool) {
        if let Some(window) = self.window_mut(window) {
            window.synchronized = on;
        }
    }

    /// A person types a text into a pane.
    pub(crate) fn type_text(&mut self, pane: PaneId, text: &str) {
        let now = self.now().uptime;
        self.with_pane(pane, |pane| match &mut pane.program {
            Program::Agent(agent) => agent.write(text, false),
            other => other.paste(text, false, now, Duration::ZERO),
        });
    }

    /// A person pastes a text into a pane.
    pub(crate) fn paste_text(&mut self, pane: PaneId, text: &str) {
        let now = self.now().uptime;
        self.with_pane(pane, |pane| pane.program.paste(text, false, now, Duration::ZERO));
    }

    /// A person presses Enter in a pane.
    pub(crate) fn enter(&mut self, pane: PaneId) {
        let now = self.now().uptime;
        self.with_pane(pane, |pane| pane.program.press(Key::Enter, now));
        self.collect();
    }

    /// Does something to the agent of a pane, if one lives there.
    pub(crate) fn with_agent<R>(&mut self, pane: PaneId, change: impl FnOnce(&mut Agent, Duration) -> R) -> Option<R> {
        self.pass();
        let now = self.now().uptime;
        let done = self.with_pane(pane, |pane| match &mut pane.program {
            Program::Agent(agent) if pane.dead.is_none() => Some(change(agent, now)),
            _ => None,
        });
        self.collect();
        done.flatten()
    }

    /// What is to happen right before an act of the watcher's, after its last look: its next one, or after so many.
    pub(crate) fn before_act(&mut self, after: u32, strike: impl FnOnce(&mut Self) + 'static) {
        self.before_act.push((after, Box::new(strike)));
    }

    /// What is to happen right after an act of the watcher's: its next one, or after so many.
    pub(crate) fn after_act(&mut self, after: u32, strike: impl FnOnce(&mut Self) + 'static) {
        self.after_act.push((after, Box::new(strike)));
    }

    /// Nothing is to happen around the next act any more.
    pub(crate) fn no_strikes(&mut self) {
        self.before_act.clear();
        self.after_act.clear();
    }

    /// A window.
    pub(crate) fn window(&self, id: WindowId) -> Option<&Window> {
        self.server.as_ref()?.windows.get(&id)
    }

    fn window_mut(&mut self, id: WindowId) -> Option<&mut Window> {
        self.server.as_mut()?.windows.get_mut(&id)
    }

    /// Every window, in order of ids.
    pub(crate) fn windows(&self) -> impl Iterator<Item = (WindowId, &Window)> {
        self.server.iter().flat_map(|server| &server.windows).map(|(id, window)| (*id, window))
    }

    /// A pane.
    pub(crate) fn pane(&self, id: PaneId) -> Option<&Pane> {
        let server = self.server.as_ref()?;
        server.windows.get(server.places.get(&id)?)?.panes.iter().find(|pane| pane.id == id)
    }

    /// Changes a pane, which counts as activity of its window.
    pub(super) fn with_pane<R>(&mut self, id: PaneId, change: impl FnOnce(&mut Pane) -> R) -> Option<R> {
        let now = self.now().at.secs();
        let server = self.server.as_mut()?;
        server.windows.get_mut(server.places.get(&id)?)?.activity = Timestamp::from_secs(now);
        self.with_quiet_pane(id, change)
    }

    /// Changes a pane without any output.
    pub(super) fn with_quiet_pane<R>(&mut self, id: PaneId, change: impl FnOnce(&mut Pane) -> R) -> Option<R> {
        let server = self.server.as_mut()?;
        let window = server.windows.get_mut(server.places.get(&id)?)?;
        window.panes.iter_mut().find(|pane| pane.id == id).map(change)
    }

    /// When something changes by itself next.
    pub(crate) fn next_change(&self) -> Option<Duration> {
        let agents = self.windows().flat_map(|(_, window)| &window.panes).filter_map(Pane::agent);
        agents.filter_map(Agent::next_change).chain(self.weather.deaf_until).min()
    }

    /// Lets everything happen that is due.
    pub(crate) fn pass(&mut self) {
        let now = self.now();
        if self.weather.deaf_until.is_some_and(|until| until <= now.uptime) {
            self.weather.deaf_until = None;
            for act in std::mem::take(&mut self.late) {
                // Nobody waits for this answer any more.
                let _unheard = self.carry_out(&act);
            }
        }
        let stamp = Timestamp::from_secs(now.at.secs());
        for window in self.server.iter_mut().flat_map(|server| server.windows.values_mut()) {
            for pane in &mut window.panes {
                if let Program::Agent(agent) = &mut pane.program
                    && pane.dead.is_none()
                    && agent.pass(now.uptime)
                {
                    window.activity = stamp;
                }
            }
        }
        self.collect();
    }

    /// Takes what agents did.
    pub(super) fn collect(&mut self) {
        let Some(server) = &mut self.server else { return };
        for window in server.windows.values_mut() {
            for pane in &mut window.panes {
                if let Program::Agent(agent) = &mut pane.program {
                    for did in agent.take_deeds() {
                        let key = PaneKey { server: server.id.clone(), pane: pane.id };
                        self.happened.push(Happening::Agent { pane: key, window: window.name.clone(), did });
                    }
                }
            }
        }
    }

    /// What happened since the last call.
    pub(crate) fn take_happenings(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.happened)
    }
}
