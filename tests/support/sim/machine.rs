//! The simulated machine: its tmux server with sessions, windows and panes, and what a test may do to them.
//!
//! Everything that the watcher does goes through [`SimTmux`]; everything that people and programs do goes through the
//! methods of [`Machine`]. What came of it is kept as [`Happening`]s until somebody asks.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use nexus_watcher::logic::ids::{PaneId, PaneKey, ServerId, SessionId, WindowId, WindowName};
use nexus_watcher::logic::snapshot::{DeadPane, PaneFacts, TmuxView};
use nexus_watcher::logic::time::{Now, Timestamp};
use nexus_watcher::sys::clock::Clock;
use nexus_watcher::sys::processes::{Processes, Tree};
use nexus_watcher::sys::tmux::{
    Act, ActOutcome, ActRefusal, Capture, CaptureRequest, GuardedAct, Key, Tmux, TmuxError,
};
use tokio::sync::Notify;

use super::agent::{Agent, Did};
use super::draw::{self, Row};
use super::program::Program;

/// How long the watcher's client waits for an answer.
const READ_DEADLINE: Duration = Duration::from_secs(2);
const ACT_DEADLINE: Duration = Duration::from_secs(5);
/// What an act takes.
const ACT_TAKES: Duration = Duration::from_millis(3);
/// How soon an agent draws a paste.
const ECHO: Duration = Duration::from_millis(60);

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
type Strike = Box<dyn FnOnce(&mut Machine)>;

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
    /// Whether its bell flag is set.
    pub(crate) bell: bool,
    /// Keys go to every pane.
    pub(crate) synchronized: bool,
    /// Its panes.
    pub(crate) panes: Vec<Pane>,
    activity: Timestamp,
}

/// A session: its windows by index.
struct Session {
    id: SessionId,
    name: String,
    windows: BTreeMap<u32, WindowId>,
    current: WindowId,
}

/// A tmux server.
struct Server {
    id: ServerId,
    sessions: Vec<Session>,
    windows: BTreeMap<WindowId, Window>,
    places: BTreeMap<PaneId, WindowId>,
    next_session: u32,
    next_window: u32,
    next_pane: u32,
}

/// The machine.
pub(crate) struct Machine {
    clock: Clock,
    server: Option<Server>,
    by_pid: BTreeMap<u32, PaneId>,
    next_pid: u32,
    late: Vec<GuardedAct>,
    happened: Vec<Happening>,
    before_act: Vec<Strike>,
    after_act: Vec<Strike>,
    /// What is wrong at present.
    pub(crate) weather: Weather,
}

/// A handle on the machine, which the watcher takes for tmux.
#[derive(Clone)]
pub(crate) struct SimTmux {
    machine: Rc<RefCell<Machine>>,
    /// Rings when something happened.
    pub(crate) stirred: Rc<Notify>,
}

impl std::fmt::Debug for SimTmux {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SimTmux")
    }
}

impl SimTmux {
    /// A machine on which no tmux server runs.
    pub(crate) fn new(clock: Clock) -> Self {
        let machine = Machine {
            clock,
            server: None,
            by_pid: BTreeMap::new(),
            next_pid: 1000,
            late: Vec::new(),
            happened: Vec::new(),
            before_act: Vec::new(),
            after_act: Vec::new(),
            weather: Weather::default(),
        };
        Self { machine: Rc::new(RefCell::new(machine)), stirred: Rc::default() }
    }

    /// The machine, to look at.
    pub(crate) fn look(&self) -> Ref<'_, Machine> {
        self.machine.borrow()
    }

    /// The machine, to do something to it. Not to be held over an `await`.
    pub(crate) fn touch(&self) -> RefMut<'_, Machine> {
        self.stirred.notify_one();
        self.machine.borrow_mut()
    }

    /// Its processes.
    pub(crate) fn processes(&self) -> SimProcesses {
        SimProcesses(Rc::clone(&self.machine))
    }

    /// Waits until the server listens; what becomes of a call.
    async fn call(&self, deadline: Duration, doing: &'static str) -> Result<Option<Lost>, TmuxError> {
        let timeout = || TmuxError::Timeout { doing, after_ms: u64::try_from(deadline.as_millis()).unwrap_or(0) };
        let (wait, lost) = {
            let mut machine = self.machine.borrow_mut();
            let now = machine.now().uptime;
            let wait = machine.weather.deaf_until.map(|until| until.saturating_sub(now)).unwrap_or_default();
            (wait, machine.weather.next.pop_front())
        };
        if wait >= deadline || lost == Some(Lost::Question) {
            tokio::time::sleep(deadline).await;
            return Err(timeout());
        }
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        if lost == Some(Lost::Refused) {
            return Err(TmuxError::Refused { doing, stderr: "simulated refusal".into() });
        }
        Ok(lost)
    }
}

/// The error of a socket on which nobody listens.
fn no_server() -> TmuxError {
    TmuxError::NoServer { socket: "the simulated socket".into() }
}

/// The error that hides an answer.
fn hidden(lost: Lost, doing: &'static str) -> TmuxError {
    match lost {
        Lost::Answer | Lost::Question => TmuxError::Timeout { doing, after_ms: 5000 },
        Lost::Refused | Lost::Garbled => TmuxError::Malformed { doing, why: "simulated rubbish".into() },
    }
}

impl Tmux for SimTmux {
    async fn view(&self) -> Result<TmuxView, TmuxError> {
        const DOING: &str = "listing panes";
        match self.call(READ_DEADLINE, DOING).await? {
            Some(lost) => Err(hidden(lost, DOING)),
            None => self.machine.borrow_mut().view(),
        }
    }

    async fn capture(&self, requests: &[CaptureRequest]) -> Result<Vec<Capture>, TmuxError> {
        const DOING: &str = "reading screens";
        match self.call(READ_DEADLINE, DOING).await? {
            Some(lost) => Err(hidden(lost, DOING)),
            None => self.machine.borrow_mut().capture(requests),
        }
    }

    async fn act(&self, act: &GuardedAct) -> Result<ActOutcome, TmuxError> {
        const DOING: &str = "acting on a pane";
        check_words(act)?;
        let deaf = {
            let mut machine = self.machine.borrow_mut();
            let deaf = machine.weather.deaf_until.is_some_and(|until| until > machine.now().uptime + ACT_DEADLINE);
            if deaf {
                // The server has it in its socket and will carry it out when it wakes, its checks included.
                machine.late.push(act.clone());
            }
            deaf
        };
        let lost = self.call(ACT_DEADLINE, DOING).await?;
        debug_assert!(!deaf, "a deaf server does not answer");
        tokio::time::sleep(ACT_TAKES).await;
        let outcome = self.machine.borrow_mut().carry_out(act);
        self.stirred.notify_one();
        match lost {
            Some(lost) => Err(hidden(lost, DOING)),
            None => outcome,
        }
    }

    async fn clear_bells(&self, windows: &[WindowId]) -> Result<(), TmuxError> {
        const DOING: &str = "clearing bells";
        let lost = self.call(READ_DEADLINE, DOING).await?;
        let outcome = self.machine.borrow_mut().clear_bells(windows);
        self.stirred.notify_one();
        match lost {
            Some(lost) => Err(hidden(lost, DOING)),
            None => outcome,
        }
    }
}

/// Refuses what the real client would not send.
fn check_words(act: &GuardedAct) -> Result<(), TmuxError> {
    let bad = |why: &str| TmuxError::Malformed { doing: "preparing to act on a pane", why: why.to_owned() };
    let texts = act.require.iter().chain(&act.rows).chain(&act.refuse);
    if texts
        .map(|text| text.trim_end_matches([' ', '\t']))
        .any(|text| text.is_empty() || text.chars().any(char::is_control))
    {
        return Err(bad("a screen text to look for is empty or holds control characters; nothing was sent"));
    }
    match &act.act {
        Act::Paste(text) if text.trim_end_matches('\n').is_empty() => Err(bad("no text to paste; nothing was sent")),
        Act::Paste(text) if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') => {
            Err(bad("the text holds a control character; nothing was sent"))
        }
        Act::Press(keys) if keys.is_empty() => Err(bad("no key to press; nothing was sent")),
        Act::Paste(_) | Act::Press(_) => Ok(()),
    }
}

/// The watcher's side.
impl Machine {
    /// What time it is.
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    fn view(&mut self) -> Result<TmuxView, TmuxError> {
        self.pass();
        let now = self.now();
        let Some(server) = &mut self.server else { return Err(no_server()) };
        let mut panes = Vec::with_capacity(server.places.len());
        for session in &server.sessions {
            for (index, id) in &session.windows {
                let Some(window) = server.windows.get_mut(id) else { continue };
                if window.panes.iter().any(|pane| pane.dead.is_none() && pane.is_busy()) {
                    window.activity = Timestamp::from_secs(now.at.secs());
                }
                let window = &*window;
                panes.extend(window.panes.iter().enumerate().map(|(number, pane)| PaneFacts {
                    pane: pane.id,
                    window: *id,
                    session: session.id,
                    session_name: session.name.clone(),
                    window_name: WindowName(window.name.clone()),
                    window_index: *index,
                    window_active: session.current == *id,
                    pane_active: number == 0,
                    activity: window.activity,
                    dead: pane.dead,
                    pid: Some(pane.pid),
                    in_mode: pane.in_mode,
                    synchronized: window.synchronized,
                    alternate_on: matches!(pane.program, Program::Agent(_)),
                    cursor: pane.program.cursor(),
                    size: (u16::try_from(draw::COLUMNS).unwrap_or(0), u16::try_from(draw::ROWS).unwrap_or(0)),
                    history: 0,
                    bell: window.bell,
                    title: pane.program.title().to_owned(),
                }));
            }
        }
        Ok(TmuxView { server: server.id.clone(), version: "3.5a".into(), panes })
    }

    fn capture(&mut self, requests: &[CaptureRequest]) -> Result<Vec<Capture>, TmuxError> {
        self.pass();
        if self.server.is_none() {
            return Err(no_server());
        }
        let now = self.now().uptime;
        let answer = |request: &CaptureRequest| {
            let Some(pane) = self.pane(request.pane) else { return Capture::Gone };
            let rows = pane.screen(now);
            let (first, last) =
                request.rows.map_or((0, rows.len()), |(first, last)| (usize::from(first), usize::from(last) + 1));
            let rows = rows.get(first..last.min(rows.len())).unwrap_or_default();
            Capture::Rows(rows.iter().map(if request.styled { draw::styled } else { draw::plain }).collect())
        };
        Ok(requests.iter().map(answer).collect())
    }

    /// Checks and acts, as one step.
    fn carry_out(&mut self, act: &GuardedAct) -> Result<ActOutcome, TmuxError> {
        for strike in std::mem::take(&mut self.before_act) {
            strike(self);
        }
        self.pass();
        let now = self.now();
        let Some(server) = &self.server else { return Err(no_server()) };
        let key = PaneKey { server: server.id.clone(), pane: act.pane };
        let refused = |why| Ok(ActOutcome::Refused(why));
        if act.server.pid != server.id.pid || act.server.start_s != server.id.start_s {
            return refused(ActRefusal::OtherServer);
        }
        let Some(window) = server.places.get(&act.pane).and_then(|id| server.windows.get(id)) else {
            return refused(ActRefusal::Gone);
        };
        let Some(pane) = window.panes.iter().find(|pane| pane.id == act.pane) else {
            return refused(ActRefusal::Gone);
        };
        if pane.dead.is_some() {
            return refused(ActRefusal::Dead);
        }
        if pane.in_mode {
            return refused(ActRefusal::InMode);
        }
        if window.synchronized {
            return refused(ActRefusal::Synchronized);
        }
        if pane.pid != act.pid {
            return refused(ActRefusal::OtherProcess);
        }
        if !act.require.is_empty() || !act.rows.is_empty() || !act.refuse.is_empty() {
            let rows: Vec<String> = pane.screen(now.uptime).iter().map(draw::plain).collect();
            let blank = [' ', '\t'];
            let shows = |text: &String| rows.iter().any(|row| row.contains(text.trim_end_matches(blank)));
            let stands =
                |text: &String| rows.iter().any(|row| row.trim_end_matches(blank) == text.trim_end_matches(blank));
            if !act.require.iter().all(shows) || !act.rows.iter().all(stands) || act.refuse.iter().any(shows) {
                return refused(ActRefusal::ScreenChanged);
            }
        }
        let wrong = wrong(&act.act, pane);
        let window = window.name.clone();
        self.happened.push(Happening::Acted { pane: key, window, act: act.act.clone(), wrong });
        self.apply(act.pane, &act.act);
        for strike in std::mem::take(&mut self.after_act) {
            strike(self);
        }
        self.collect();
        Ok(ActOutcome::Done)
    }

    /// What an act does to the program.
    fn apply(&mut self, pane: PaneId, act: &Act) {
        let now = self.now().uptime;
        let echo = ECHO + self.weather.echo;
        match act {
            Act::Paste(text) => {
                let text = text.trim_end_matches('\n').to_owned();
                self.with_pane(pane, |pane| pane.program.paste(&text, true, now, echo));
            }
            Act::Press(keys) => {
                for key in keys {
                    if *key == Key::Enter && self.weather.swallow_enters > 0 {
                        self.weather.swallow_enters -= 1;
                        continue;
                    }
                    self.with_pane(pane, |pane| pane.program.press(*key, now));
                }
            }
        }
    }

    fn clear_bells(&mut self, windows: &[WindowId]) -> Result<(), TmuxError> {
        let mut cleared = Vec::new();
        let mut refused = false;
        let Some(server) = &mut self.server else { return Err(no_server()) };
        for session in &server.sessions {
            if !session.windows.values().any(|window| windows.contains(window)) {
                continue;
            }
            let ringing: Vec<WindowId> = session
                .windows
                .values()
                .filter(|id| server.windows.get(id).is_some_and(|window| window.bell))
                .copied()
                .collect();
            if ringing.iter().any(|window| !windows.contains(window)) {
                refused = true;
                continue;
            }
            for id in ringing {
                if let Some(window) = server.windows.get_mut(&id) {
                    window.bell = false;
                    cleared.push(id);
                }
            }
        }
        if !cleared.is_empty() {
            self.happened.push(Happening::BellsCleared(cleared));
        }
        if refused {
            return Err(TmuxError::Refused { doing: "clearing bells", stderr: "another window rings".into() });
        }
        Ok(())
    }
}

/// Why an act must not be done to a pane in this state; tmux's own checks have passed.
fn wrong(act: &Act, pane: &Pane) -> Option<&'static str> {
    let Program::Agent(agent) = &pane.program else { return Some("into a program that is no agent") };
    match act {
        Act::Paste(_) if agent.dialog().is_some() => Some("a paste into a dialog"),
        Act::Paste(_) if !agent.pieces().is_empty() => Some("a paste into a box that is not empty"),
        Act::Paste(_) => None,
        Act::Press(keys) if keys.as_slice() == [Key::Enter] => match agent.pieces() {
            _ if agent.dialog().is_some() => Some("Enter in a dialog"),
            [only] if only.is_ours => None,
            [] => Some("Enter in an empty box"),
            _ => Some("Enter on text that is not ours alone"),
        },
        Act::Press(_) => Some("a key that nobody should press"),
    }
}

impl Pane {
    fn is_busy(&self) -> bool {
        matches!(&self.program, Program::Agent(agent) if agent.busy_since().is_some() && agent.dialog().is_none())
    }

    fn screen(&self, now: Duration) -> Vec<Row> {
        let rows = self.program.screen(now);
        if self.dead.is_some() { draw::dead(rows) } else { rows }
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
                bell: false,
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
            server.sessions.push(Session { id, name: session.to_owned(), windows, current: window });
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
        let Some(server) = &mut self.server else { return };
        let Some(id) = server.places.remove(&pane) else { return };
        if let Some(window) = server.windows.get_mut(&id) {
            window.panes.retain(|held| held.id != pane);
            if window.panes.is_empty() {
                server.windows.remove(&id);
                for session in &mut server.sessions {
                    session.windows.retain(|_, held| *held != id);
                    if session.current == id
                        && let Some(next) = session.windows.values().next()
                    {
                        session.current = *next;
                    }
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

    /// A pane's program ends, and the pane stays (`remain-on-exit`).
    pub(crate) fn end_program(&mut self, pane: PaneId, status: i32) {
        self.with_pane(pane, |pane| pane.dead = Some(DeadPane { status: Some(status), signal: None }));
    }

    /// Another program takes a pane's place, under another process id.
    pub(crate) fn respawn(&mut self, pane: PaneId, program: Program) {
        let now = self.now().uptime;
        self.next_pid += 7;
        let pid = self.next_pid;
        self.by_pid.retain(|_, held| *held != pane);
        self.by_pid.insert(pid, pane);
        self.with_pane(pane, |pane| {
            pane.pid = pid;
            pane.program = program;
            pane.dead = None;
            pane.in_mode = false;
            pane.started = now;
        });
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

    /// A session's current window is this one.
    pub(crate) fn select(&mut self, window: WindowId) {
        for session in self.server.iter_mut().flat_map(|server| &mut server.sessions) {
            if session.windows.values().any(|held| *held == window) {
                session.current = window;
            }
        }
    }

    /// A program rings.
    pub(crate) fn ring(&mut self, window: WindowId) {
        let now = self.now().at.secs();
        if let Some(window) = self.window_mut(window) {
            window.bell = true;
            window.activity = Timestamp::from_secs(now);
        }
    }

    /// Opens or leaves a mode.
    pub(crate) fn set_mode(&mut self, pane: PaneId, on: bool) {
        self.with_pane(pane, |pane| pane.in_mode = on);
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

    /// What is to happen right before the watcher's next act, after its last look.
    pub(crate) fn before_next_act(&mut self, strike: impl FnOnce(&mut Self) + 'static) {
        self.before_act.push(Box::new(strike));
    }

    /// What is to happen right after the watcher's next act.
    pub(crate) fn after_next_act(&mut self, strike: impl FnOnce(&mut Self) + 'static) {
        self.after_act.push(Box::new(strike));
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
    fn with_pane<R>(&mut self, id: PaneId, change: impl FnOnce(&mut Pane) -> R) -> Option<R> {
        let now = self.now().at.secs();
        let server = self.server.as_mut()?;
        let window = server.windows.get_mut(server.places.get(&id)?)?;
        window.activity = Timestamp::from_secs(now);
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
    fn collect(&mut self) {
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

/// The machine's processes: each pane's program.
#[derive(Clone)]
pub(crate) struct SimProcesses(Rc<RefCell<Machine>>);

impl std::fmt::Debug for SimProcesses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SimProcesses")
    }
}

impl Processes for SimProcesses {
    fn tree(&self, pid: u32, now: &Now) -> Option<Tree> {
        let machine = self.0.borrow();
        let pane = machine.pane(*machine.by_pid.get(&pid)?).filter(|pane| pane.dead.is_none())?;
        Some(Tree { processes: vec![pane.program.process(pid)], age: now.uptime.saturating_sub(pane.started) })
    }
}
