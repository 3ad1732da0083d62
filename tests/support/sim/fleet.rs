//! The life of a simulated fleet: an orchestrator that reads and answers, workers that work, ask, ring, rest, come and go.
//!
//! It tells [`Truth`] what really happens and writes what agents' hooks would. Chance comes from the run's seed only.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use nexus_watcher::logic::hook::Whose;
use nexus_watcher::logic::ids::{Fingerprint, PaneId, PaneKey, WindowId, WindowName};
use nexus_watcher::logic::snapshot::ActionEvent;
use nexus_watcher::logic::time::Now;
use nexus_watcher::sys::clock::Clock;
use nexus_watcher::sys::files::StateDir;
use nexus_watcher::sys::{action_log, decisions, hook_files};
use serde_json::json;
use tokio::sync::Notify;

use super::agent::{Dialog, Did};
use super::dice::Dice;
use super::hooks::{HookPlace, set_time};
use super::machine::Happening;
use super::plan::Plan;
use super::program::Program;
use super::tmux::SimTmux;
use super::truth::{Bounds, Truth};

/// The session that is watched.
pub(crate) const SESSION: &str = "nexus";
/// The orchestrator's window.
pub(crate) const TARGET: &str = "orchestrator";
/// How often everything is checked.
const CHECK_EVERY: Duration = Duration::from_secs(20);
/// How much of what happened is kept for a report.
const TRACE: usize = 400;
/// How old our own text may get in the box before somebody looks at it.
const STUCK: Duration = Duration::from_secs(300);

/// What the watcher's own code is told by its outside, beside tmux.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    /// The watcher's code runs at this moment, not an agent's.
    pub(crate) running: Cell<bool>,
    /// Nothing can be written.
    pub(crate) disk_full: Cell<bool>,
    /// So many further writes succeed before one fails.
    pub(crate) fail_write: Cell<Option<u32>>,
    /// So many further steps pass before the watcher ends.
    pub(crate) end_in: Cell<Option<u32>>,
    /// Its end has come: whatever it still does has no effect.
    pub(crate) ended: Cell<bool>,
    /// It wrote something that is judged.
    pub(crate) wrote: Cell<bool>,
    /// Rings when the watcher has to end.
    pub(crate) end: Notify,
}

/// What happens at a time.
type Job = Box<dyn FnOnce(&mut Fleet)>;

/// One agent's hooks.
#[derive(Clone, Debug)]
struct Seat {
    hooks: HookPlace,
    prompts: u64,
}

/// A worker.
#[derive(Clone, Debug, Default)]
struct Worker {
    name: String,
    place: Option<(WindowId, PaneId)>,
    /// The tool call under way.
    tool: Option<String>,
    /// When its turn began.
    busy_from: Option<Duration>,
}

/// The fleet.
pub(crate) struct Fleet {
    /// The machine.
    pub(crate) tmux: SimTmux,
    /// What is true.
    pub(crate) truth: Truth,
    /// What the watcher's code is told.
    pub(crate) switches: Rc<Switches>,
    /// Rings as tmux tells the watcher that windows changed.
    pub(crate) wake: Rc<Notify>,
    /// Rings for the simulation.
    pub(crate) state: StateDir,
    pub(crate) clock: Clock,
    pub(crate) set_by: &'static AtomicI64,
    pub(super) plan: Plan,
    pub(super) dice: Dice,
    pub(super) target: Option<(WindowId, PaneId)>,
    /// Reasons for which the orchestrator's hook writes nothing, or late.
    pub(super) receipts: Duration,
    /// The same of its transcript.
    pub(super) transcripts: Duration,
    /// Its longest turn, in seconds.
    pub(super) longest_turn: u64,
    /// When the watcher was started last; `None` while it does not run.
    pub(crate) up_since: Option<Duration>,
    root: PathBuf,
    seats: BTreeMap<PaneKey, Seat>,
    workers: Vec<Worker>,
    reports: BTreeSet<String>,
    jobs: BTreeMap<(Duration, u64), Job>,
    job_count: u64,
    calm_since: Option<Duration>,
    ours_since: Option<Duration>,
    trace: VecDeque<String>,
    sessions: u64,
}

impl Fleet {
    /// A fleet at the start of its run, with everything of its plan arranged.
    pub(crate) fn new(plan: Plan, root: &Path, clock: Clock, set_by: &'static AtomicI64, bounds: Bounds) -> Self {
        let state = StateDir::new(root.join("monitor/.state"));
        let mut fleet = Self {
            tmux: SimTmux::new(clock),
            truth: Truth::new(bounds, state.clone()),
            switches: Rc::default(),
            wake: Rc::default(),
            state,
            clock,
            set_by,
            dice: Dice::new(plan.seed),
            plan,
            target: None,
            receipts: Duration::ZERO,
            transcripts: Duration::ZERO,
            longest_turn: 25,
            up_since: None,
            root: root.to_owned(),
            seats: BTreeMap::new(),
            workers: Vec::new(),
            reports: BTreeSet::new(),
            jobs: BTreeMap::new(),
            job_count: 0,
            calm_since: None,
            ours_since: None,
            trace: VecDeque::new(),
            sessions: 0,
        };
        fleet.begin();
        fleet
    }

    fn begin(&mut self) {
        self.tmux.touch().start_server();
        self.open_target();
        for number in 0..self.plan.workers {
            self.workers.push(Worker { name: format!("w{}", number + 1), ..Worker::default() });
            self.open_worker(number);
            let first = Duration::from_secs(30) + self.dice.span(self.plan.pace / 2);
            self.later(first, move |fleet| fleet.work(number));
        }
        self.truth.begin(self.lines());
        for fault in self.plan.faults() {
            self.job_at(fault.at, move |fleet| fleet.strike(fault));
        }
        self.job_at(CHECK_EVERY, Self::check);
        let first = self.dice.span(self.plan.pace);
        self.later(Duration::from_secs(60) + first, Self::report_comes);
        let first = self.dice.span(self.plan.pace);
        self.later(Duration::from_secs(60) + first, Self::window_goes);
        self.later(first, Self::person_prompts);
    }

    /// What time it is.
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Keeps a line of what happened.
    pub(crate) fn note(&mut self, what: impl std::fmt::Display) {
        let at = self.now().uptime;
        self.trace.push_back(format!("{:>12.3}  {what}", at.as_secs_f64()));
        if self.trace.len() > TRACE {
            self.trace.pop_front();
        }
    }

    /// What happened last.
    pub(crate) fn trace(&self) -> impl Iterator<Item = &String> {
        self.trace.iter()
    }

    /// Does something after a while.
    pub(super) fn later(&mut self, after: Duration, job: impl FnOnce(&mut Self) + 'static) {
        self.job_at(self.now().uptime + after, job);
    }

    fn job_at(&mut self, at: Duration, job: impl FnOnce(&mut Self) + 'static) {
        self.job_count += 1;
        self.jobs.insert((at, self.job_count), Box::new(job));
    }

    /// When something happens next.
    pub(crate) fn next_time(&self) -> Duration {
        let job = self.jobs.keys().next().map_or(Duration::MAX, |(at, _)| *at);
        self.tmux.look().next_change().map_or(job, |at| at.min(job))
    }

    /// Lets everything happen that is due.
    pub(crate) fn step(&mut self) {
        loop {
            self.take_in();
            let now = self.now().uptime;
            let due = self.jobs.first_key_value().is_some_and(|((at, _), _)| *at <= now);
            let Some((_, job)) = due.then(|| self.jobs.pop_first()).flatten() else { break };
            job(self);
        }
        if self.switches.wrote.take() {
            let at = self.now().uptime;
            self.truth.read_files(at);
        }
        self.judge_calm();
    }

    /// Takes in what the machine and the agents did.
    fn take_in(&mut self) {
        self.tmux.touch().pass();
        loop {
            let happened = self.tmux.touch().take_happenings();
            if happened.is_empty() {
                return;
            }
            for happening in happened {
                self.take(happening);
            }
        }
    }

    fn take(&mut self, happening: Happening) {
        let now = self.now();
        match happening {
            Happening::Acted { pane, window, act, wrong } => {
                let what = match &act {
                    nexus_watcher::sys::tmux::Act::Paste(text) => format!("pasted {} bytes", text.len()),
                    nexus_watcher::sys::tmux::Act::Press(keys) => format!("pressed {keys:?}"),
                };
                self.note(format!("the watcher {what} in {window}"));
                if let Some(wrong) = wrong {
                    self.truth.fail(now.uptime, format!("{wrong}: {what} in {window}"));
                }
                if self.target.is_none_or(|(_, target)| target != pane.pane) {
                    self.truth.fail(now.uptime, format!("{what} in {window}, which is not the orchestrator's pane"));
                }
            }
            Happening::Agent { pane, window, did } => self.agent_did(&now, &pane, &window, did),
            Happening::BellsCleared(windows) => {
                self.note(format!("bells cleared: {windows:?}"));
                self.truth.bells_cleared(now.uptime, &windows);
            }
            Happening::Windows => {
                self.wake.notify_one();
                let lines = self.lines();
                self.truth.local(now.uptime, &lines);
            }
        }
    }

    fn agent_did(&mut self, now: &Now, pane: &PaneKey, window: &str, did: Did) {
        let Some(seat) = self.seats.get_mut(pane) else { return };
        if seat.hooks.is_target {
            self.target_did(now, pane, did);
            return;
        }
        let seat = seat.clone();
        let Some(number) = self.workers.iter().position(|worker| worker.name == window) else { return };
        match did {
            Did::Sent { text, .. } => {
                seat.hooks.event(&self.state, now, "UserPromptSubmit", &json!({"prompt": text, "prompt_id": "p"}));
                self.job_count += 1;
                let tool = format!("toolu_{:08}", self.job_count);
                seat.hooks.event(&self.state, now, "PreToolUse", &call(&tool));
                self.truth.stirs(window);
                let worker = &mut self.workers[number];
                worker.tool = Some(tool);
                worker.busy_from = Some(now.uptime);
            }
            Did::TookUp(_) => {}
            Did::TurnEnded { .. } => {
                if let Some(tool) = self.workers[number].tool.take() {
                    seat.hooks.event(&self.state, now, "PostToolUse", &call(&tool));
                }
                seat.hooks.event(&self.state, now, "Stop", &json!({}));
                self.note(format!("{window} rests"));
                let busy = self.workers[number].busy_from.take().map(|from| now.uptime.saturating_sub(from));
                let seen = Duration::from_secs(60);
                let was_seen = self.calm_since.is_some_and(|since| now.uptime.saturating_sub(since) > seen);
                if was_seen && busy.is_some_and(|busy| busy > seen) {
                    self.truth.rests(now.uptime, window);
                }
                self.after_turn(number);
            }
            Did::Answered(_) => {
                if let Some(tool) = self.workers[number].tool.take() {
                    seat.hooks.event(&self.state, now, "PostToolUse", &call(&tool));
                }
                self.truth.decision_closed(window);
                self.note(format!("{window}'s dialog is answered"));
            }
        }
    }

    fn target_did(&mut self, now: &Now, pane: &PaneKey, did: Did) {
        let turn = self.dice.secs(2, self.longest_turn);
        if let Some((_, target)) = self.target {
            self.tmux.touch().with_agent(target, |agent, _| agent.set_turn(turn));
        }
        let Some(seat) = self.seats.get_mut(pane) else { return };
        match did {
            Did::Sent { text, queued } => {
                if !queued {
                    seat.prompts += 1;
                }
                let fields = json!({"prompt": text, "prompt_id": format!("p{}", seat.prompts)});
                let (receipts, transcripts) = (self.receipts, self.transcripts);
                let hooks = seat.hooks.clone();
                if receipts.is_zero() {
                    hooks.event(&self.state, now, "UserPromptSubmit", &fields);
                } else if receipts < Duration::MAX {
                    let hooks = hooks.clone();
                    self.later(receipts, move |fleet| {
                        hooks.event(&fleet.state, &fleet.now(), "UserPromptSubmit", &fields);
                    });
                }
                if transcripts.is_zero() {
                    hooks.record(&text, queued);
                } else if transcripts < Duration::MAX {
                    let text = text.clone();
                    self.later(transcripts, move |_| hooks.record(&text, queued));
                }
                let told = self.truth.sent(now, &text, receipts.is_zero());
                self.note(match &told {
                    Some(told) => format!(
                        "the orchestrator was sent {}{}{}: {:?} {:?} +{:?} -{:?} {:?}",
                        told.signature,
                        told.repeat_of.as_ref().map(|of| format!(" (repeat of {of})")).unwrap_or_default(),
                        if queued { " into its queue" } else { "" },
                        told.decisions,
                        told.bells,
                        told.came,
                        told.went,
                        told.workers
                    ),
                    None => "somebody prompted the orchestrator".into(),
                });
                for (window, fingerprint) in told.into_iter().flat_map(|told| told.decisions) {
                    self.will_answer(window, fingerprint);
                }
            }
            Did::TookUp(text) => {
                if self.transcripts.is_zero() {
                    seat.hooks.record(&text, false);
                }
            }
            Did::TurnEnded { .. } => {
                let hooks = seat.hooks.clone();
                hooks.event(&self.state, now, "Stop", &json!({}));
            }
            Did::Answered(_) => {}
        }
    }

    /// The orchestrator answers a worker's dialog, or closes the record of one that is gone.
    fn will_answer(&mut self, window: String, fingerprint: String) {
        let after = self.dice.secs(5, 400);
        self.later(after, move |fleet| {
            let pane = fleet.workers.iter().find(|worker| worker.name == window).and_then(|worker| worker.place);
            if let Some((_, pane)) = pane
                && fleet.tmux.look().pane(pane).and_then(|pane| pane.agent()?.dialog()).is_some()
            {
                fleet.tmux.touch().enter(pane);
            } else if let Some(fingerprint) = Fingerprint::parse(&fingerprint) {
                let closed = decisions::close(&fleet.state, &WindowName(window), &fingerprint, &[]);
                closed.expect("the orchestrator can close a record");
                let at = fleet.now().at;
                set_time(&fleet.state.at("decisions"), at).expect("the folder is there");
            }
        });
    }

    /// A worker gets something to do.
    fn work(&mut self, number: usize) {
        let again = Duration::from_secs(60) + self.dice.span(self.plan.pace);
        self.later(again, move |fleet| fleet.work(number));
        let Some((window, pane)) = self.workers[number].place else { return };
        let turn = self.dice.secs(15, 240);
        let asks = self.dice.chance(35);
        let rings = self.dice.chance(20);
        let name = self.workers[number].name.clone();
        let begun = self.tmux.touch().with_agent(pane, |agent, now| {
            let free = agent.is_at_rest();
            if free {
                agent.set_turn(turn);
                agent.write("go on with the next step", false);
                agent.enter(now);
            }
            free
        });
        if begun != Some(true) {
            return;
        }
        self.note(format!("{name} works for {turn:?}"));
        self.take_in();
        if asks {
            let after = self.dice.secs(2, turn.as_secs().max(4) / 2);
            self.later(after, move |fleet| fleet.ask(number));
        }
        if rings {
            let after = self.dice.secs(1, 300);
            self.later(after, move |fleet| fleet.ring(number, window));
        }
    }

    /// A worker asks for permission, if it still works.
    fn ask(&mut self, number: usize) {
        let worker = &self.workers[number];
        let (Some((_, pane)), Some(tool)) = (worker.place, worker.tool.clone()) else { return };
        let name = worker.name.clone();
        let asked = self.tmux.touch().with_agent(pane, |agent, now| {
            let works = agent.busy_since().is_some() && agent.dialog().is_none();
            if works {
                agent.ask(Dialog::Permission, now);
            }
            works
        });
        let now = self.now();
        let Some(seat) = self.seat(pane).filter(|_| asked == Some(true)) else { return };
        let hooks = seat.hooks.clone();
        hooks.event(&self.state, &now, "PermissionRequest", &call(&tool));
        let beat = hook_files::read_heartbeat(&self.state, &WindowName(name.clone()), Whose::default()).ok().flatten();
        let fingerprint = beat.map(|found| found.heartbeat.open_decision).unwrap_or_default();
        self.note(format!("{name} asks ({fingerprint})"));
        self.truth.decision_opened(now.uptime, &name, &fingerprint);
        // A person finds it in the end.
        let found = self.dice.secs(1800, 7200);
        self.later(found, move |fleet| fleet.will_answer(name, fingerprint));
    }

    fn ring(&mut self, number: usize, window: WindowId) {
        if self.workers[number].place.is_none_or(|(held, _)| held != window) {
            return;
        }
        let name = self.workers[number].name.clone();
        let at = self.now().uptime;
        self.tmux.touch().ring(window);
        self.note(format!("{name} rings"));
        self.truth.rang(at, window, &name);
    }

    /// Some workers wrap up when their turn ends.
    fn after_turn(&mut self, number: usize) {
        let name = self.workers[number].name.clone();
        if self.dice.chance(30) {
            let report = format!("{name}.md");
            let now = self.now();
            let event = ActionEvent {
                ts: now.iso(),
                agent: name.clone(),
                event: "wrap-up".into(),
                note: String::new(),
                extra: BTreeMap::from([("window".into(), name), ("report".into(), report)]),
            };
            action_log::append(&self.state, &event).expect("the log can be written");
        }
    }

    /// A report appears, or an old one is moved away.
    fn report_comes(&mut self) {
        let again = Duration::from_secs(60) + self.dice.span(self.plan.pace);
        self.later(again, Self::report_comes);
        let name = format!("finding-{}.md", self.dice.below(12));
        let path = self.root.join("reports").join(&name);
        if self.reports.remove(&name) {
            fs::remove_file(path).expect("a report can be removed");
            self.note(format!("the report {name} goes"));
        } else {
            fs::write(path, "# finding\n").expect("a report can be written");
            self.note(format!("the report {name} comes"));
            self.reports.insert(name);
        }
        self.truth.news();
        let (at, lines) = (self.now().uptime, self.lines());
        self.truth.local(at, &lines);
    }

    /// A worker's window goes, and comes again later.
    fn window_goes(&mut self) {
        let again = Duration::from_secs(60) + self.dice.span(self.plan.pace * 2);
        self.later(again, Self::window_goes);
        if self.workers.len() < 2 {
            return;
        }
        let number = usize::try_from(self.dice.below(self.workers.len() as u64)).unwrap_or_default();
        let Some((window, pane)) = self.workers[number].place.take() else { return };
        let name = self.workers[number].name.clone();
        self.note(format!("the window {name} goes"));
        self.forget_worker(number, window, pane);
        self.tmux.touch().kill_window(window);
        self.truth.news();
        let after = self.dice.secs(20, 3600);
        self.later(after, move |fleet| {
            if fleet.workers[number].place.is_none() && fleet.tmux.look().server().is_some() {
                fleet.open_worker(number);
                fleet.truth.news();
            }
        });
    }

    fn forget_worker(&mut self, number: usize, window: WindowId, pane: PaneId) {
        let name = self.workers[number].name.clone();
        self.workers[number].tool = None;
        self.workers[number].busy_from = None;
        self.truth.window_gone(window);
        self.truth.decision_closed(&name);
        self.truth.stirs(&name);
        self.seats.retain(|key, _| key.pane != pane);
    }

    /// Somebody else prompts the orchestrator.
    fn person_prompts(&mut self) {
        let again = Duration::from_secs(60) + self.dice.span(self.plan.pace / 3);
        self.later(again, Self::person_prompts);
        if let Some((_, pane)) = self.target {
            self.tmux.touch().with_agent(pane, |agent, now| {
                if agent.dialog().is_none() && agent.pieces().is_empty() {
                    agent.write("how far are we?", false);
                    agent.enter(now);
                }
            });
        }
    }

    /// Opens the orchestrator's window with a fresh agent in it.
    pub(super) fn open_target(&mut self) {
        let turn = self.dice.secs(2, self.longest_turn);
        let (window, pane) = self.tmux.touch().new_window(SESSION, TARGET, Program::agent(turn));
        self.target = Some((window, pane));
        self.tmux.touch().select(window);
        self.sit_down(pane, TARGET, true);
    }

    /// Opens a worker's window with a fresh agent in it.
    fn open_worker(&mut self, number: usize) {
        let name = self.workers[number].name.clone();
        let turn = self.dice.secs(15, 240);
        let (window, pane) = self.tmux.touch().new_window(SESSION, &name, Program::agent(turn));
        self.workers[number].place = Some((window, pane));
        self.sit_down(pane, &name, false);
        self.note(format!("the window {name} comes"));
    }

    /// Opens the windows of those who have none, on a new server.
    pub(super) fn open_workers(&mut self) {
        for number in 0..self.workers.len() {
            if self.workers[number].place.is_none() {
                self.open_worker(number);
            }
        }
    }

    /// Everything on the server is gone.
    pub(super) fn server_is_gone(&mut self) {
        self.target = None;
        for number in 0..self.workers.len() {
            if let Some((window, pane)) = self.workers[number].place.take() {
                self.forget_worker(number, window, pane);
            }
        }
        self.seats.clear();
        self.truth.server_gone();
    }

    /// A fresh agent in a pane begins a session.
    pub(super) fn sit_down(&mut self, pane: PaneId, window: &str, is_target: bool) {
        self.sessions += 1;
        let session = format!("5e550000-0000-4000-8000-{:012x}", self.sessions);
        let server = self.tmux.look().server().cloned().expect("a server runs");
        let hooks = HookPlace {
            window: window.to_owned(),
            pane,
            transcript: self.root.join("sessions").join(format!("{session}.jsonl")),
            session,
            is_target,
        };
        hooks.event(&self.state, &self.now(), "SessionStart", &json!({"source": "startup"}));
        self.seats.insert(PaneKey { server, pane }, Seat { hooks, prompts: 0 });
    }

    fn seat(&self, pane: PaneId) -> Option<&Seat> {
        let server = self.tmux.look().server().cloned()?;
        self.seats.get(&PaneKey { server, pane })
    }

    /// The local state, as lines of the watcher's baseline without bells.
    pub(super) fn lines(&self) -> BTreeSet<String> {
        let machine = self.tmux.look();
        let windows = machine.windows().map(|(id, window)| format!("{} {id}", window.name));
        windows.chain(self.reports.iter().cloned()).collect()
    }

    /// Checks everything, again and again.
    fn check(&mut self) {
        self.later(CHECK_EVERY, Self::check);
        let now = self.now();
        if self.tmux.look().server().is_some() && self.target.is_some() {
            let lines = self.lines();
            self.truth.local(now.uptime, &lines);
        }
        if let Some(calm) = self.calm_since {
            self.truth.check(now.uptime, calm);
            self.truth.check_fresh(&now, calm);
        }
        let open = self.truth.open_decisions();
        self.truth.check_volume(now.uptime, open);
        self.look_after_the_box(now.uptime);
    }

    /// Somebody notices a text of the watcher's that has been standing in the box for minutes.
    fn look_after_the_box(&mut self, at: Duration) {
        let Some((_, pane)) =
            self.target.filter(|_| self.ours_since.is_some_and(|since| at.saturating_sub(since) > STUCK))
        else {
            return;
        };
        let send = self.dice.chance(50);
        self.note(if send { "somebody sends what stands in the box" } else { "somebody clears the box" });
        self.tmux.touch().with_agent(pane, |agent, now| {
            if send {
                agent.enter(now);
            } else {
                agent.clear();
            }
        });
        self.take_in();
    }

    /// Notes since when nothing is wrong that would keep the watcher from telling.
    fn judge_calm(&mut self) {
        let now = self.now().uptime;
        let machine = self.tmux.look();
        let agent = self.target.and_then(|(_, pane)| machine.pane(pane)).filter(|pane| !pane.in_mode);
        let agent = agent.and_then(super::machine::Pane::agent);
        let ours = agent.is_some_and(|agent| !agent.pieces().is_empty());
        self.ours_since = if ours { self.ours_since.or(Some(now)) } else { None };
        let stuck = self.ours_since.is_some_and(|since| now.saturating_sub(since) > Duration::from_secs(10));
        let is_open = agent.is_some_and(|agent| {
            agent.dialog().is_none() && agent.queue().is_empty() && agent.pieces().iter().all(|piece| piece.is_ours)
        });
        let twins = machine.windows().filter(|(_, window)| window.name == TARGET).count();
        let synchronized = machine.windows().any(|(_, window)| window.synchronized);
        let weather = &machine.weather;
        let fair = weather.deaf_until.is_none()
            && weather.next.is_empty()
            && weather.next_acts.is_empty()
            && weather.echo.is_zero()
            && weather.swallow_enters == 0
            && self.receipts.is_zero()
            && self.transcripts.is_zero()
            && !self.switches.disk_full.get()
            && self.switches.fail_write.get().is_none()
            && self.up_since.is_some();
        let calm = fair && is_open && !stuck && twins == 1 && !synchronized;
        self.calm_since = if calm { self.calm_since.or(Some(now)) } else { None };
    }
}

/// The payload of a tool call.
fn call(tool: &str) -> serde_json::Value {
    json!({"tool_name": "Bash", "tool_use_id": tool, "tool_input": {"command": format!("make {tool}")}})
}
