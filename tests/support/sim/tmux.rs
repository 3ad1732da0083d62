//! The simulated tmux as the watcher sees it: lists, screens, and acts that are checked and done in one step.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use nexus_watcher::logic::ids::{PaneId, PaneKey, WindowId, WindowName};
use nexus_watcher::logic::snapshot::{PaneFacts, TmuxView};
use nexus_watcher::logic::time::{Now, Timestamp};
use nexus_watcher::sys::clock::Clock;
use nexus_watcher::sys::processes::{Processes, Tree, Unseen};
use nexus_watcher::sys::tmux::{
    Act, ActOutcome, ActRefusal, Capture, CaptureRequest, GuardedAct, Key, Reading, Tmux, TmuxError, read_in_rounds,
};
use tokio::sync::Notify;

use super::draw;
use super::machine::{Happening, Lost, Machine, Pane, Strike};
use super::program::Program;

/// How long the watcher's client waits for an answer.
const READ_DEADLINE: Duration = Duration::from_secs(2);
const ACT_DEADLINE: Duration = Duration::from_secs(5);
/// What an act takes.
const ACT_TAKES: Duration = Duration::from_millis(3);
/// How soon an agent draws a paste.
const ECHO: Duration = Duration::from_millis(60);

/// A handle on the machine, which the watcher takes for tmux.
#[derive(Clone)]
pub(crate) struct SimTmux {
    machine: Rc<RefCell<Machine>>,
    /// Rings when the watcher did something.
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
        let machine = Machine::new(clock);
        Self { machine: Rc::new(RefCell::new(machine)), stirred: Rc::default() }
    }

    /// The machine, to look at.
    pub(crate) fn look(&self) -> Ref<'_, Machine> {
        self.machine.borrow()
    }

    /// The machine, to do something to it. Not to be held over an `await`.
    pub(crate) fn touch(&self) -> RefMut<'_, Machine> {
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
            let acts = deadline == ACT_DEADLINE;
            let lost = if acts { machine.weather.next_acts.pop_front() } else { None };
            (wait, lost.or_else(|| machine.weather.next.pop_front()))
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

    async fn view_of(&self, window: &WindowName) -> Result<TmuxView, TmuxError> {
        Ok(self.view().await?.of_window(window))
    }

    async fn read(&self, reading: &mut dyn Reading) -> Result<(), TmuxError> {
        read_in_rounds(self, reading).await
    }

    async fn capture(&self, requests: &[CaptureRequest]) -> Result<Vec<Capture>, TmuxError> {
        const DOING: &str = "reading screens";
        if requests.is_empty() {
            return Ok(Vec::new());
        }
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
        if windows.is_empty() {
            return Ok(());
        }
        let lost = self.call(READ_DEADLINE, DOING).await?;
        let outcome = self.machine.borrow_mut().clear_bells(windows);
        self.stirred.notify_one();
        match lost {
            Some(lost) => Err(hidden(lost, DOING)),
            None => outcome,
        }
    }
}

/// The first and the last row that tmux shows of a screen when it is asked for these: what lies below the screen is its
/// last row, what is no small number counts as not said, and the order does not matter.
fn shown(asked: Option<(u16, u16)>, rows: usize) -> (usize, usize) {
    let bottom = rows.saturating_sub(1);
    let row = |number: u16, otherwise| {
        if i16::try_from(number).is_ok() { usize::from(number).min(bottom) } else { otherwise }
    };
    let (first, last) = asked.map_or((0, bottom), |(first, last)| (row(first, 0), row(last, bottom)));
    (first.min(last), first.max(last))
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
    fn view(&mut self) -> Result<TmuxView, TmuxError> {
        self.pass();
        let now = self.now();
        let Some(server) = &mut self.server else { return Err(no_server()) };
        let mut panes = Vec::with_capacity(server.places.len());
        let mut listed = BTreeSet::new();
        let ringing: BTreeSet<WindowId> =
            server.sessions.iter().flat_map(|session| &session.ringing).copied().collect();
        for session in &server.sessions {
            for (index, id) in &session.windows {
                let Some(window) = server.windows.get_mut(id) else { continue };
                if !listed.insert(*id) {
                    continue;
                }
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
                    cursor_shown: true,
                    size: (u16::try_from(draw::COLUMNS).unwrap_or(0), u16::try_from(draw::ROWS).unwrap_or(0)),
                    history: 0,
                    bell: ringing.contains(id),
                    title: pane.program.title().to_owned(),
                }));
            }
        }
        Ok(TmuxView::of_one(server.id.clone(), "3.5a", panes))
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
            let (first, last) = shown(request.rows, rows.len());
            let rows = rows.get(first..=last).unwrap_or_default();
            Capture::Rows(rows.iter().map(if request.styled { draw::styled } else { draw::plain }).collect())
        };
        Ok(requests.iter().map(answer).collect())
    }

    /// Checks and acts, as one step.
    pub(super) fn carry_out(&mut self, act: &GuardedAct) -> Result<ActOutcome, TmuxError> {
        for strike in due(&mut self.before_act) {
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
        for strike in due(&mut self.after_act) {
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
                self.feed(pane, |program| program.paste(&text, true, now, echo));
            }
            Act::Press(keys) => {
                for key in keys {
                    if *key == Key::Enter && self.weather.swallow_enters > 0 {
                        self.weather.swallow_enters -= 1;
                        continue;
                    }
                    self.feed(pane, |program| program.press(*key, now));
                }
            }
        }
    }

    /// Gives a program its input, which is no activity unless it shows it.
    fn feed(&mut self, pane: PaneId, input: impl FnOnce(&mut Program)) {
        if self.pane(pane).is_some_and(|pane| pane.program.echoes()) {
            self.with_pane(pane, |pane| input(&mut pane.program));
        } else {
            self.with_quiet_pane(pane, |pane| input(&mut pane.program));
        }
    }

    fn clear_bells(&mut self, windows: &[WindowId]) -> Result<(), TmuxError> {
        let mut cleared = BTreeSet::new();
        let mut refused = false;
        let Some(server) = &mut self.server else { return Err(no_server()) };
        for session in &mut server.sessions {
            if !session.ringing.iter().any(|window| windows.contains(window)) {
                continue;
            }
            if session.ringing.iter().any(|window| !windows.contains(window)) {
                refused = true;
                continue;
            }
            cleared.append(&mut session.ringing);
        }
        if !cleared.is_empty() {
            self.happened.push(Happening::BellsCleared(cleared.into_iter().collect()));
        }
        if refused {
            return Err(TmuxError::Refused { doing: "clearing bells", stderr: "another window rings".into() });
        }
        Ok(())
    }
}

/// The strikes whose act has come; the others wait for one act less.
fn due(strikes: &mut Vec<(u32, Strike)>) -> Vec<Strike> {
    let mut now = Vec::new();
    for (after, strike) in std::mem::take(strikes) {
        match after.checked_sub(1) {
            Some(left) => strikes.push((left, strike)),
            None => now.push(strike),
        }
    }
    now
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

/// The machine's processes: each pane's program.
#[derive(Clone)]
pub(crate) struct SimProcesses(Rc<RefCell<Machine>>);

impl std::fmt::Debug for SimProcesses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SimProcesses")
    }
}

impl Processes for SimProcesses {
    fn tree(&self, pid: u32, now: &Now) -> Result<Tree, Unseen> {
        let machine = self.0.borrow();
        let pane = machine.by_pid.get(&pid).and_then(|pane| machine.pane(*pane)).filter(|pane| pane.dead.is_none());
        let pane = pane.ok_or(Unseen::Blind)?;
        Ok(Tree {
            processes: vec![pane.program.process(pid)],
            age: now.uptime.saturating_sub(pane.started),
            read_at: *now,
        })
    }
}
