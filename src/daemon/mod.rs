//! RUNS. The loop: ask what is due, gather what it needs, let it decide, carry out what it asks, deliver, commit.
//!
//! [`run`] is a library function that is given its outside and its shutdown signal; the binary is thin. One thread owns
//! everything; a delivery runs beside the loop on the same thread and reports its end as an `event::Event`. Where several
//! things happen at once they are taken in a fixed order, so that a simulated run can be repeated.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::config::live::News;
use crate::config::resolved::Settings;
use crate::logic::action::Action;
use crate::logic::degraded::Mode as Degraded;
use crate::logic::delivery::Outcome;
use crate::logic::delivery::trouble::Counts;
use crate::logic::instance::records::Cycle;
use crate::logic::schedule::{Limits, Mode, Nudge, Schedule, Telemetry};
use crate::logic::signal::{Commit, StagedSignal};
use crate::logic::snapshot::{Gathered, Snapshot};
use crate::logic::time::Now;
use crate::sys::files::{self, Durability};
use crate::sys::tmux::Tmux;
use crate::sys::{archived, hook_files, liveness};
use crate::tasks::{Need, Out, TASKS, Task, TaskSpec, target_window};

mod actuate;
pub mod audit;
mod beside;
pub mod board;
mod courier;
mod deliver;
mod drive;
pub mod edges;
mod event;
pub mod explain;
mod gather;
mod heal;
mod health;
mod identity;
mod look;
pub mod observe;
pub mod outside;
mod past;
mod perform;
pub mod profiles;
mod recall;
pub mod record;
mod reload;
pub mod send;
mod session;
mod tally;
mod witness;

use beside::{Beside, Fetched, slow_needs};
use courier::Courier;
use event::Event;
use gather::{ActionLog, Gatherer};
use health::Health;
pub use outside::Outside;
use profiles::ProfileWatch;

/// Return code of a task that panicked, or for which something could not be fetched because that did.
const RC_BROKE_OFF: i32 = 70;

/// The task that composes; it runs after every other in the startup sweep.
const COMPOSE: &str = "compose_emit";

/// The task that tells whether the target is there.
const TARGET_WINDOW: &str = "target_window";

/// How long a run of one sweep waits for what is fetched beside it.
const BESIDE_AT_MOST: Duration = Duration::from_secs(60);

/// Least time between two looks that tmux's notifications cause.
const WAKE_EVERY: Duration = Duration::from_secs(1);

/// How often the loop says that it lives while an earlier delivery is settled at the start.
const SETTLE_TURN: Duration = Duration::from_secs(10);

/// The stage of the loop between two ticks, and how often `watcher-progress` says it.
const LOOP_TICK: &str = "loop-tick";
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// How a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Until the shutdown signal.
    Forever,
    /// One sweep and one emit, then the end.
    Once,
    /// Until the shutdown signal, without the instance lock: look and log, but tell nobody, touch no pane and write no
    /// state, since another watcher may be at work on the same state directory.
    Observe,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to, or was to run once.
    Told,
    /// Its deliveries fail, and it is to be started anew; word is left for the new start.
    Anew,
}

/// Runs the watcher on this outside until `shutdown` completes.
///
/// The caller holds the instance lock and has started the heartbeat ticker: liveness does not depend on this loop.
pub async fn run<T: Tmux + 'static>(
    outside: Outside<T>,
    how: Run,
    wake: Rc<tokio::sync::Notify>,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<Ended> {
    let local = tokio::task::LocalSet::new();
    local.run_until(async move { Daemon::new(outside, wake, how)?.run(shutdown).await }).await
}

/// What the schedule needs of the settings.
fn limits(settings: &Settings) -> Limits {
    Limits {
        max_sleep: settings.max_sleep,
        hang_floor: settings.hang_floor,
        hang_backoff_cap: settings.hang_backoff_cap,
    }
}

/// Whether the loop waits for a task.
fn mode(spec: &TaskSpec, settings: &Settings) -> Mode {
    if slow_needs(spec, settings).is_empty() { Mode::Sync } else { Mode::Async }
}

/// The loop and everything it owns.
struct Daemon<T> {
    out: Rc<Outside<T>>,
    how: Run,
    schedule: Schedule,
    tasks: Vec<(&'static TaskSpec, Box<dyn Task>)>,
    staged: BTreeMap<&'static str, StagedSignal>,
    courier: Courier,
    beside: Beside,
    gatherer: Gatherer,
    profiles: ProfileWatch,
    log: ActionLog,
    health: Health,
    cycle: Cycle,
    nudge: Nudge,
    events: mpsc::UnboundedReceiver<Event>,
    sender: mpsc::UnboundedSender<Event>,
    wake: Rc<tokio::sync::Notify>,
    /// A delivery has failed since that was last looked at.
    has_failed: bool,
    /// Notes that are already in the log, so that an episode is one line.
    said: BTreeMap<&'static str, String>,
    /// When `watcher-progress` said last that the loop turns.
    progressed: Option<Duration>,
}

impl<T: Tmux + 'static> Daemon<T> {
    fn new(outside: Outside<T>, wake: Rc<tokio::sync::Notify>, how: Run) -> anyhow::Result<Self> {
        let settings = outside.settings.get();
        let mut schedule = Schedule::new(limits(&settings));
        let mut tasks = Vec::with_capacity(TASKS.len());
        for spec in TASKS {
            schedule.register(spec.name, (spec.every)(&settings), mode(spec, &settings))?;
            tasks.push((spec, (spec.build)()));
        }
        let (sender, events) = mpsc::unbounded_channel();
        Ok(Self {
            courier: Courier::new(),
            beside: Beside::new(),
            gatherer: Gatherer::new(&outside.state),
            log: gather::action_log(),
            health: Health::default(),
            profiles: ProfileWatch::default(),
            cycle: Cycle::default(),
            nudge: Nudge::default(),
            out: Rc::new(outside),
            how,
            schedule,
            tasks,
            staged: BTreeMap::new(),
            events,
            sender,
            wake,
            has_failed: false,
            said: BTreeMap::new(),
            progressed: None,
        })
    }

    async fn run(mut self, shutdown: impl Future<Output = ()>) -> anyhow::Result<Ended> {
        tokio::pin!(shutdown);
        self.out.board.remember(&self.out.state);
        self.progress("startup");
        self.begin_cycles();
        // The sweep: what an earlier run left pending is settled first, then every producer runs, then the emit.
        self.schedule.set_enabled(COMPOSE, false);
        if !self.observes() {
            self.courier.settle_pending(&self.out, &self.sender);
        }
        while self.courier.is_settling() {
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(Ended::Told),
                Some(event) = self.events.recv() => self.take(event),
                // What arrived is recorded until that succeeds, on a full disk for hours: that is no wedge.
                () = tokio::time::sleep(SETTLE_TURN) => self.progress("startup"),
            }
        }
        self.tick().await;
        self.progress("startup:done");
        self.out.board.set_started();
        self.allow_compose();
        if self.how == Run::Once {
            let end = tokio::time::sleep(BESIDE_AT_MOST);
            tokio::pin!(end);
            while self.beside.in_flight() {
                tokio::select! {
                    biased;
                    () = &mut shutdown => return Ok(Ended::Told),
                    () = &mut end => break,
                    fetched = self.beside.next() => self.take_fetched(fetched).await,
                }
            }
            self.tick().await;
            while self.courier.in_flight() {
                tokio::select! {
                    biased;
                    () = &mut shutdown => return Ok(Ended::Told),
                    Some(event) = self.events.recv() => self.take(event),
                }
            }
            return Ok(Ended::Told);
        }
        let mut woken_at = Duration::ZERO;
        let ended = loop {
            if std::mem::take(&mut self.has_failed) && heal::is_due(&self.out).await {
                break Ended::Anew;
            }
            self.tick().await;
            self.nudge();
            self.progress(LOOP_TICK);
            let sleep = self.schedule.sleep(&self.out.clock.now()).min(self.courier.next_look());
            tokio::select! {
                biased;
                () = &mut shutdown => break Ended::Told,
                Some(event) = self.events.recv() => self.take(event),
                fetched = self.beside.next() => self.take_fetched(fetched).await,
                () = self.wake.notified() => {
                    // A window came, went or was renamed: look at once, but a storm of renames costs one look a second.
                    let since = self.out.clock.now().uptime.saturating_sub(woken_at);
                    tokio::select! {
                        biased;
                        () = &mut shutdown => break Ended::Told,
                        () = tokio::time::sleep(WAKE_EVERY.saturating_sub(since)) => {}
                    }
                    woken_at = self.out.clock.now().uptime;
                    self.schedule.force(TARGET_WINDOW);
                }
                // The tick that follows reads the configuration.
                () = self.out.settings.asked() => {}
                () = tokio::time::sleep(sleep) => {}
            }
        };
        // A delivery under way is given the time to say what became of it; if it is cut off, the journal tells.
        let grace = tokio::time::sleep(Duration::from_secs(3));
        tokio::pin!(grace);
        while self.courier.in_flight() {
            tokio::select! {
                biased;
                () = &mut grace => break,
                Some(event) = self.events.recv() => self.take(event),
            }
        }
        Ok(ended)
    }

    /// One pass: everything that is due, in name order.
    async fn tick(&mut self) {
        let now = self.out.clock.now();
        self.follow_configuration(&now);
        self.profiles.look(&self.out, &now);
        self.health.look(&self.out, &self.courier, &now);
        if !self.observes() {
            self.out.board.publish(&self.out.state, &now);
        }
        if self.gatherer.decisions_changed() {
            self.schedule.force("pending_decisions");
            self.schedule.force(COMPOSE);
        }
        if self.courier.wants_look(&now) && courier::gate_is_open(&self.out).await {
            self.schedule.force(COMPOSE);
        }
        if self.courier.retry_settling(&self.out, &now, &self.sender) {
            self.allow_compose();
        }
        self.end_hung(&now);
        let mut due = self.schedule.due(&now);
        // What looks at staged data sees what the other tasks of the same tick have staged; the emit comes last.
        let reads_staged = |name| self.spec(name).is_some_and(|spec| spec.needs.contains(&Need::Staged));
        due.sort_by_key(|name| (*name == COMPOSE, reads_staged(*name)));
        due.retain(|name| !self.start_beside(name, &now));
        if due.is_empty() {
            return;
        }
        let needs: Vec<Need> = self
            .tasks
            .iter()
            .filter(|(spec, _)| due.contains(&spec.name))
            .flat_map(|(spec, _)| spec.needs.iter().copied())
            // They ride the startup sweep only, and to look for them lists the whole directory.
            .filter(|need| *need != Need::InstallFailures || !self.courier.has_told())
            .collect();
        let mut snapshot = gather::gather(&self.out, &self.log, &now, &needs).await;
        if !self.observes() {
            past::write(&self.out);
        }
        let asked = if snapshot.tmux == Gathered::NotAsked { &snapshot.target } else { &snapshot.tmux };
        match asked {
            Gathered::Got(view) => self.out.board.report(&now, Degraded::TmuxUnreachable, view.trouble().as_deref()),
            Gathered::Failed(why) => self.out.board.report(&now, Degraded::TmuxUnreachable, Some(why)),
            Gathered::NotAsked => {}
        }
        for name in due {
            self.run_task(name, &mut snapshot).await;
        }
    }

    /// Pulls the emit forward when another program wrote something worth telling soon. What it wrote is not read here.
    fn nudge(&mut self) {
        if self.nudge.advanced(&gather::watched(&self.out.state)) {
            self.schedule.nudge(COMPOSE, &self.out.clock.now());
        }
    }

    /// Puts in force what the configuration file says by now, and says what became of it.
    fn follow_configuration(&mut self, now: &Now) {
        let mut news = self.out.settings.look(now);
        if !self.observes() {
            news.extend(self.out.settings.write_record(now));
        }
        if news.iter().any(|one| matches!(one, News::InForce(_))) {
            // Whatever else acts on settings asks for them each time; only the schedule is told.
            let settings = self.out.settings.get();
            self.schedule.set_limits(limits(&settings));
            for (spec, _) in &self.tasks {
                self.schedule.set_every(spec.name, (spec.every)(&settings), now);
                self.schedule.set_mode(spec.name, mode(spec, &settings));
            }
        }
        if !news.is_empty() {
            let standing = self.out.settings.standing();
            self.out.board.report(now, Degraded::ConfigReload, standing.failure.as_deref());
            self.out.board.report(now, Degraded::RestartNeeded, standing.waiting.as_deref());
        }
        for one in news {
            match &one {
                News::Failed(error) => {
                    let what = error.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                    self.out.board.report(now, Degraded::ConfigReload, Some(&what));
                }
                News::Fixed => self.out.board.report(now, Degraded::ConfigReload, None),
                _ => {}
            }
            reload::say(&one);
        }
    }

    /// The table's row of a task.
    fn spec(&self, name: &str) -> Option<&'static TaskSpec> {
        self.tasks.iter().map(|(spec, _)| *spec).find(|spec| spec.name == name)
    }

    /// Starts fetching beside the loop what a task wants and what takes long; `false` if there is no such thing.
    fn start_beside(&mut self, name: &'static str, now: &Now) -> bool {
        let needs = self.spec(name).map(|spec| slow_needs(spec, &self.out.settings.get())).unwrap_or_default();
        if needs.is_empty() {
            return false;
        }
        let (out, log, at) = (Rc::clone(&self.out), Rc::clone(&self.log), *now);
        self.beside.start(name, async move { gather::gather(&out, &log, &at, &needs).await });
        let line = self.schedule.started(name, now);
        self.telemetry(line);
        true
    }

    /// Lets a task decide whose slow part was fetched beside the loop; the rest is fetched now.
    async fn take_fetched(&mut self, fetched: Fetched) {
        let (name, now) = (fetched.task, self.out.clock.now());
        let mut rc = RC_BROKE_OFF;
        if let (Some(slow), Some(spec)) = (fetched.snapshot, self.spec(name)) {
            let needs: Vec<Need> = spec.needs.iter().copied().filter(|need| *need != Need::Local).collect();
            let mut snapshot = gather::gather(&self.out, &self.log, &now, &needs).await;
            snapshot.local = slow.local;
            let before = self.staged.get(name).map(|staged| staged.sections.clone());
            rc = self.decide(name, &mut snapshot, &now).await;
            let after = self.staged.get(name).map(|staged| &staged.sections);
            let is_news = after.is_some_and(|sections| sections.iter().any(|section| section.pages));
            if is_news && after != before.as_ref() && self.courier.may_compose() {
                // The emit of the tick that started the fetching could not wait for it.
                self.schedule.force(COMPOSE);
            }
        }
        let line = self.schedule.reaped(name, &self.out.clock.now(), rc);
        self.telemetry(line);
    }

    /// Ends runs beside the loop that take longer than their budget; what they staged before stays and grows old.
    fn end_hung(&mut self, now: &Now) {
        for hung in self.schedule.hung(now) {
            self.beside.abort(hung.name);
            tracing::warn!(
                task = hung.name,
                age_s = hung.age.as_secs(),
                budget_s = hung.budget.as_secs(),
                next_budget_s = hung.next_budget.as_secs(),
                "a task hung and was ended; it runs again at its next time"
            );
            let line = self.schedule.timed_out(hung.name, now);
            self.telemetry(line);
        }
    }

    /// Runs one task inside the tick.
    async fn run_task(&mut self, name: &'static str, snapshot: &mut Snapshot) {
        let started = self.out.clock.now();
        let rc = self.decide(name, snapshot, &started).await;
        let ended = self.out.clock.now();
        let elapsed = ended.uptime.saturating_sub(started.uptime);
        let line = self.schedule.finished(name, &ended, rc, elapsed);
        self.telemetry(line);
    }

    /// Writes a line of the scheduler's log.
    fn telemetry(&mut self, line: Option<Telemetry>) {
        let Some(line) = line.filter(|_| !self.observes()) else { return };
        let path = self.out.state.at("watcher-scheduler.jsonl");
        if let Err(error) = files::append_lines(&path, &line.line(), Durability::Hint) {
            self.say("scheduler-log", &format!("the scheduler log can't be written: {error}"));
        }
    }

    /// Lets a task decide and carries out what it asks for; its return code.
    async fn decide(&mut self, name: &'static str, snapshot: &mut Snapshot, started: &Now) -> i32 {
        if self.spec(name).is_some_and(|spec| spec.needs.contains(&Need::Staged)) {
            // What was staged before the clock was set back counts as staged now, so that a delivery can outdate it.
            for staged in self.staged.values_mut() {
                staged.at = started.at.min(staged.at);
            }
            snapshot.staged.clone_from(&self.staged);
        }
        if name == COMPOSE {
            snapshot.nonce = crate::sys::seed::nonce();
            snapshot.repeat_of = self.courier.repeat_of().cloned();
            snapshot.told = self.courier.has_told();
            self.progress("compose:start");
        }
        let Some((_, task)) = self.tasks.iter_mut().find(|(spec, _)| spec.name == name) else { return RC_BROKE_OFF };
        let mut asked = Out::default();
        let settings = self.out.settings.get();
        let run = std::panic::catch_unwind(AssertUnwindSafe(|| task.decide(started, &settings, snapshot, &mut asked)));
        if run.is_err() {
            // A panic in one check must not end the watch; what it asked for is not to be trusted.
            asked = Out { rc: RC_BROKE_OFF, ..Out::default() };
            self.say(name, "the task panicked; it runs again at its next time");
        }
        if let Some(staged) = asked.staged {
            self.stage(name, staged);
        }
        if let (TARGET_WINDOW, rc @ (0 | target_window::ABSENT)) = (name, asked.rc) {
            let absent = format!("no live pane in a window named {}", settings.target_window);
            self.out.board.report(started, Degraded::TargetAbsent, (rc != 0).then_some(absent.as_str()));
        }
        let mut composed = false;
        for action in asked.actions {
            composed |= matches!(action, Action::Deliver(_));
            self.perform(action, started).await;
        }
        if name == COMPOSE && run.is_ok() {
            if !composed {
                self.courier.nothing_to_tell(&self.out, started);
            }
            self.end_cycle(started);
        }
        asked.rc
    }

    /// Replaces what a producer has staged.
    fn stage(&mut self, name: &'static str, mut staged: StagedSignal) {
        if let Some(note) = staged.note.take() {
            self.note(name, &note);
        }
        let text: String =
            staged.sections.iter().flat_map(|section| &section.lines).flat_map(|line| [line.as_str(), "\n"]).collect();
        let path = self.out.state.at("scheduler-staging").join(format!("{name}.out"));
        if !self.observes()
            && self.staged.get(name).is_none_or(|old| old.sections != staged.sections)
            && let Err(error) = files::write_atomic(&path, text.as_bytes(), Durability::Hint)
        {
            self.say("staging", &format!("{} can't be written: {error}", path.display()));
        }
        self.staged.insert(name, staged);
    }

    /// Carries out what needs no delivery. What fails is asked for again by the task's next run.
    async fn commit(&mut self, commits: &[Commit]) {
        if let Err(error) = perform::commits(&self.out, commits, None).await {
            self.say("commit", &format!("the state directory can't be written: {error}"));
        }
    }

    /// Carries out one action.
    async fn perform(&mut self, action: Action, now: &Now) {
        match action {
            Action::Deliver(_) if self.observes() => {
                self.say("observe", "there is something to tell, which a watcher without the instance lock can't");
            }
            Action::Commit(_)
            | Action::WriteState { .. }
            | Action::PruneArchive { .. }
            | Action::PruneHookFiles { .. }
            | Action::RotateLog { .. }
                if self.observes() => {}
            Action::Deliver(emit) => self.courier.deliver(&self.out, *emit, now, &self.sender),
            Action::Commit(commits) => self.commit(&commits).await,
            Action::WriteState { path, text } => {
                if let Err(error) = files::write_atomic(&self.out.state.at(&path), text.as_bytes(), Durability::Hint) {
                    self.say("state", &format!("{path} can't be written: {error}"));
                }
            }
            Action::PruneArchive { names } => perform::prune_archive(&self.out.state, &names),
            Action::PruneHookFiles { keep } => {
                if let Err(error) = hook_files::prune(&self.out.state, now.at, keep) {
                    self.say("prune", &format!("old receipts can't be removed: {error}"));
                }
            }
            Action::RotateLog { path, max_bytes, keep } => {
                if let Err(error) = archived::rotate(&self.out.state, &path, max_bytes, keep, now.at) {
                    self.say("rotate", &format!("{path} can't be rotated: {error}"));
                }
            }
            Action::Hurry { task, every, lasting } => {
                if task != COMPOSE || self.courier.may_compose() {
                    self.schedule.force(task);
                }
                self.schedule.hurry(task, every, lasting, now);
            }
            Action::Note(text) => self.note("note", &text),
        }
        // While a delivery is under way nothing new is composed.
        self.schedule.set_enabled(COMPOSE, self.courier.may_compose());
    }

    /// Takes in what ended beside the loop.
    fn take(&mut self, event: Event) {
        let now = self.out.clock.now();
        if matches!(event, Event::Settled { .. }) {
            // While an earlier delivery can't be settled, looking for its proof is the whole cycle: nothing may be
            // composed, and that is no wedge.
            self.end_cycle(&now);
        }
        if let Event::Settled { outcome: Outcome::Received(_), .. } = &event {
            // What was staged before the proof came may hold what the proof has just retired; the memory of what the
            // earlier run composed is gone, so every producer looks again first.
            for name in std::mem::take(&mut self.staged).into_keys() {
                self.schedule.force(name);
            }
        }
        if let Event::Delivered { archived, outcome: Outcome::Received(proof) } = &event {
            self.health.delivered(&self.out, &archived.emit, *proof, &now);
        }
        if let Event::Delivered { outcome, .. } = &event {
            // Where no tmux server is, a new start of the watcher would find none either.
            self.has_failed |= Counts::of(outcome) == Counts::Failed && !matches!(outcome, Outcome::NoTmux(_));
        }
        self.courier.take(&self.out, event, &now);
        self.allow_compose();
    }

    /// Lets the next emit be composed at once, unless a delivery is still open.
    fn allow_compose(&mut self) {
        let may = self.courier.may_compose();
        self.schedule.set_enabled(COMPOSE, may);
        if may && self.courier.compose_soon() {
            self.schedule.force(COMPOSE);
        }
    }

    /// Whether it may only look.
    fn observes(&self) -> bool {
        self.how == Run::Observe
    }

    fn progress(&mut self, stage: &str) {
        let now = self.out.clock.now();
        self.out.board.turn();
        if self.observes() {
            return;
        }
        // Whoever reads it allows for minutes; a quiet watcher's own file would be most of what it writes.
        let is_turn = stage == LOOP_TICK;
        let is_soon = |at: Duration| now.uptime.saturating_sub(at) < PROGRESS_EVERY;
        if is_turn && self.progressed.is_some_and(is_soon) {
            return;
        }
        self.progressed = is_turn.then_some(now.uptime);
        let bumped = liveness::bump_progress(&self.out.state, &now, stage);
        let bumped = bumped.map_err(|error| format!("watcher-progress can't be written: {error}"));
        self.out.board.report_result(&now, Degraded::StateUnwritable, bumped);
    }

    /// Begins the measurement of cycles; what an earlier watcher measured says nothing of this one.
    fn begin_cycles(&mut self) {
        if self.observes() {
            return;
        }
        let now = self.out.clock.now();
        match liveness::reset_cycle(&self.out.state, &now) {
            Ok(cycle) => self.cycle = cycle,
            Err(error) => self.say("cycle", &format!("watcher-cycle can't be written: {error}")),
        }
    }

    fn end_cycle(&mut self, now: &Now) {
        if self.observes() {
            return;
        }
        if let Err(error) = liveness::bump_cycle(&self.out.state, &mut self.cycle, now) {
            self.say("cycle", &format!("watcher-cycle can't be written: {error}"));
        }
    }

    /// Warns of something when it differs from the last warning on the same topic: edges, not levels.
    fn say(&mut self, topic: &'static str, text: &str) {
        if self.is_new(topic, text) {
            tracing::warn!(topic, "{text}");
        }
    }

    /// Says what nobody need act on, when it differs from the last note on the same topic.
    fn note(&mut self, topic: &'static str, text: &str) {
        if self.is_new(topic, text) {
            tracing::info!(topic, "{text}");
        }
    }

    /// Whether a text differs from the last one of its topic, which it then is.
    fn is_new(&mut self, topic: &'static str, text: &str) -> bool {
        let is_new = self.said.get(topic).is_none_or(|old| old != text);
        if is_new {
            self.said.insert(topic, text.to_owned());
        }
        is_new
    }
}
