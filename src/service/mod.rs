//! The `nexus-watcher` program: arguments, lock, log, heartbeat thread, signals, exit code. The loop is [`daemon`].
//!
//! Exit codes are the launcher's row in `docs/contracts.md` §2: 0 ended or nothing to do, 1 refused or bad flag, 2 no
//! tmux or no root, 4 the instance is held, 5 the state directory can't be written, 6 a holder survived.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::render;
use crate::config::live::{Live, Origins};
use crate::config::load::{self, Flag, Loaded};
use crate::config::resolved::Settings;
use crate::daemon::audit::Audit;
use crate::daemon::board::Board;
use crate::daemon::edges::Edges;
use crate::daemon::observe::Observer;
use crate::daemon::{self, Ended, Outside, Run};
use crate::logic::degraded::Mode;
use crate::logic::instance::holder::Holder;
use crate::sys::clock::Clock;
use crate::sys::env::{Env as _, ProcessEnv};
use crate::sys::files::{self, StateDir};
use crate::sys::instance::{self, Here};
use crate::sys::join;
use crate::sys::lock::{self, InstanceLock, LockError, Probe};
use crate::sys::logging::{self, LogGuard};
use crate::sys::ticker::Ticker;
use crate::sys::tmux::{self, Servers, Tmux, TmuxClient, TmuxError};
use crate::sys::{detach, handover, liveness, takeover};

mod accept;
mod guard;
mod launch;
mod notify;
mod observe;
mod preflight;
mod seat;
mod spawns;

use guard::Guard;
use notify::Notifier;
use preflight::Corrupt;
use seat::{Fenced, Seat};

/// How long a replaced watcher may take to end before it is killed. It finishes a delivery that is under way.
const REPLACE_GRACE: Duration = Duration::from_secs(8);

/// Runs the program with these arguments (the first is its name).
pub fn main(mut args: Vec<OsString>) -> ExitCode {
    logging::tighten_umask();
    if args.get(1).is_some_and(|arg| arg == "--launch") {
        args.remove(1);
        return launch::main(args);
    }
    let matches = match command().try_get_matches_from(&args) {
        Ok(matches) => matches,
        Err(error) => return ExitCode::from(render::usage_error("nexus-watcher", &error, 1)),
    };
    match start(&matches) {
        Ok(Ended::Told) => ExitCode::SUCCESS,
        Ok(Ended::Anew) => {
            // Not an end: a service manager must start it again if this fails.
            let error = handover::start_anew(&args);
            render::note(&format!("nexus-watcher: cannot start itself anew: {error}"));
            ExitCode::FAILURE
        }
        Err(Stop { code, why }) => {
            render::note(&format!("nexus-watcher: {why}"));
            ExitCode::from(code)
        }
    }
}

/// Arguments.
fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    Command::new("nexus-watcher")
        .about("Watch a tmux session full of coding agents, in the foreground")
        .version(env!("CARGO_PKG_VERSION"))
        .after_help("Exit: 0 ended or nothing to do, 1 refused or bad flag, 2 no tmux or no root, 4 another watcher holds this\nstate directory, 5 it can't be written, 6 the watcher to replace survived.")
        .arg(
            Arg::new("root")
                .long("root")
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .help("The nexus to watch (wins over NEXUS_ROOT)"),
        )
        .arg(Arg::new("target").long("target").visible_alias("window").value_name("WINDOW").help("The orchestrator's window"))
        .arg(flag("ensure", "Do nothing if a watcher runs already"))
        .arg(flag("replace", "End the watcher of this state directory first"))
        .arg(flag("once", "One sweep and one emit, then end"))
        .arg(flag("instance-status", "Say who holds this state directory, and start nothing"))
        .arg(flag("i-accept-no-sandbox", "Record that no sandbox is wanted; none is required"))
        .arg(flag("detached", "Leave the session of whoever started it, as the launcher asks").hide(true))
}

/// Why the program ends early.
struct Stop {
    code: u8,
    why: String,
}

impl Stop {
    fn new(code: u8, why: impl std::fmt::Display) -> Self {
        Self { code, why: why.to_string() }
    }
}

/// Everything before the loop, and after it.
fn start(args: &ArgMatches) -> Result<Ended, Stop> {
    if args.get_flag("detached") {
        detach::leave_session();
    }
    let here = current_dir()?;
    let root = find_root(args.get_one::<PathBuf>("root").map(PathBuf::as_path), &here)?;
    let state = StateDir::new(load::state_dir(&ProcessEnv, &root, &here).map_err(|error| Stop::new(2, error))?);
    if args.get_flag("instance-status") {
        render::line(&instance::instance_status(&state));
        return Ok(Ended::Told);
    }
    if args.get_flag("ensure") && matches!(lock::probe(&state), Probe::Held(_)) {
        render::note("a watcher runs already; nothing to do");
        return Ok(Ended::Told);
    }
    make_state_dir(&state)?;
    if args.get_flag("i-accept-no-sandbox") {
        accept::record(&state, "nexus-watcher --i-accept-no-sandbox");
    }
    let runtime = runtime()?;
    // A restart must never end the only watcher and then refuse to start, so what would refuse is found first. Else our
    // pid is published first, since starters wait for it and reading the configuration can take long on a slow disk.
    let replaces = args.get_flag("replace");
    let early = (replaces || preflight::another_host_was_here(&state))
        .then(|| prepare(args, &root, &here, &runtime))
        .transpose()?;
    if let Some((Loaded { settings, .. }, _)) = &early {
        preflight::refuse_remote(&state, settings.beacon_stale, Corrupt::Passes)?;
    }
    if replaces {
        let done = takeover::take_over(&state, REPLACE_GRACE).map_err(|error| Stop::new(error.exit_code(), error))?;
        for (pid, forced) in done.ended {
            render::note(&format!("ended the watcher {pid}{}", if forced { " (it had to be killed)" } else { "" }));
        }
    }
    let nonce = format!("{}-{}", std::process::id(), Clock::System.now().at.millis());
    let mut holder = Here::look().describe(&ProcessEnv, &root, "", &Clock::System.now());
    let (mut lock, objection) = match lock::acquire(&state, &holder.render()) {
        Ok(lock) => (Some(lock), None),
        Err(LockError::Held { path, metadata }) => return Err(Stop::new(4, instance::refusal(&path, &metadata))),
        Err(error @ LockError::Unopenable { .. }) => (None, Some(error.to_string())),
    };
    let published = lock.is_some().then(|| Published::new(&state));
    let (loaded, origins) = match early {
        Some(loaded) => loaded,
        None => prepare(args, &root, &here, &runtime)?,
    };
    let settings = loaded.settings.clone();
    // It may have started since the first look.
    preflight::refuse_remote(&state, settings.beacon_stale, Corrupt::Passes)?;
    holder.tmux =
        if settings.tmux_sockets.is_empty() { "default".to_owned() } else { settings.tmux_sockets.join(", ") };
    if let Some(error) = lock.as_mut().and_then(|lock| lock.describe(&holder.render()).err()) {
        render::note(&format!("{} can't be described: {error}", state.at(lock::LOCK_FILE).display()));
    }
    if let Some(why) = objection.as_ref().filter(|_| args.get_flag("once")) {
        return Err(Stop::new(5, format!("{why} (without the lock nothing is told, so --once has nothing to do)")));
    }
    let place = objection.as_ref().map(|why| observe::Place::take(&state, &observe::body(&holder, why))).transpose()?;
    let log = logging::start(&state, ProcessEnv.non_empty("NEXUS_LOG").as_deref())
        .map_err(|error| Stop::new(1, format!("{error:#}")))?;
    for warning in loaded.warnings.iter().take(20) {
        tracing::warn!("{warning}");
    }
    for notice in &loaded.notices {
        tracing::info!("{notice}");
    }
    let seat = Rc::new(Seat::new(&state, &holder.host, &nonce, settings.beacon_stale));
    let service = Service { state: &state, settings: &settings, seat, holder, log: &log };
    let ended = runtime.block_on(async {
        let mut told = Box::pin(told_to_end()?);
        let (lock, published) = match (lock, published) {
            (Some(lock), Some(published)) => (lock, published),
            _ => match observe::until_locked(&service, &objection.unwrap_or_default(), told.as_mut()).await? {
                Some(lock) => (lock, Published::new(&state)),
                None => return Ok(Ended::Told),
            },
        };
        drop(place);
        let live = Live::following(loaded, origins, &Clock::System.now());
        let how = if args.get_flag("once") { Run::Once } else { Run::Forever };
        let ended = service.watch(lock, live, how, told.as_mut()).await;
        drop(published);
        ended
    });
    tracing::info!("watcher ended");
    drop(log);
    ended.map_err(|error| Stop::new(1, format!("{error:#}")))
}

/// What a run needs, whether it may act or only observes.
struct Service<'a> {
    state: &'a StateDir,
    /// As at the start.
    settings: &'a Settings,
    seat: Rc<Seat>,
    /// How we describe ourselves.
    holder: Holder,
    log: &'a LogGuard,
}

impl Service<'_> {
    /// Watches as the one instance, until told to end or another has taken over.
    async fn watch(
        &self,
        lock: InstanceLock,
        live: Live,
        how: Run,
        told: impl Future<Output = ()>,
    ) -> anyhow::Result<Ended> {
        let settings = self.settings;
        let ticker = Ticker::start(self.state, &settings.target_window, settings.heartbeat_tick)
            .context("starting the heartbeat")?;
        self.seat.take(&lock);
        let mut guard = Guard {
            started: Clock::System.now(),
            settings: live.clone(),
            state: self.state.clone(),
            lock,
            ticker,
            target: settings.target_window.clone(),
            tick: settings.heartbeat_tick,
            interval: settings.interval,
            holder: self.holder.clone(),
            seat: Rc::clone(&self.seat),
            said: std::collections::BTreeMap::new(),
        };
        guard.announce();
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            pid = std::process::id(),
            root = %settings.root.display(),
            target = settings.target_window,
            "watcher started"
        );
        let end = async {
            tokio::select! {
                () = told => {}
                () = guard.watch() => {}
            }
        };
        let ended = self.run(live, how, end).await;
        guard.retire();
        ended
    }

    /// Runs the loop until `end`.
    async fn run(&self, live: Live, how: Run, end: impl Future<Output = ()>) -> anyhow::Result<Ended> {
        let settings = self.settings;
        let board = Board::default();
        if how == Run::Observe {
            let why = instance::observing(self.state).map_or_else(String::new, |observing| observing.says());
            board.report(&Clock::System.now(), Mode::ObserveOnly, Some(&why));
        }
        let notifier = Notifier::new(board.clone(), &settings.target_window, settings.interval);
        // Before anything slow: until somebody listens, a hang-up ends the process.
        let reload = reload_when_told(live.clone(), &notifier)?;
        let prefer = &settings.target_window;
        let tmux = Servers::of_sockets(&settings.tmux_sockets, |socket| TmuxClient::new(socket, Some(prefer.clone())));
        if how != Run::Observe {
            say_what_is_awaited(&tmux, &settings.target_window).await;
        }
        let wake = Rc::new(tokio::sync::Notify::new());
        let listen = listen(&tmux, &wake);
        let outside = Outside {
            audit: Audit::default(),
            edges: Edges::default(),
            tmux: Fenced::new(tmux, Rc::clone(&self.seat)),
            clock: Clock::System,
            state: self.state.clone(),
            settings: live,
            env: Box::new(ProcessEnv),
            observer: Observer::new()?,
            board,
        };
        let end = async {
            end.await;
            if how != Run::Observe {
                notifier.stopping();
            }
        };
        let run = Box::pin(daemon::run(outside, how, wake, end));
        let ended = tokio::select! {
            ended = run => ended,
            () = listen => Ok(Ended::Told),
            () = notifier.attend(self.log) => Ok(Ended::Told),
            () = reload => Ok(Ended::Told),
        };
        notifier.finish();
        ended
    }
}

/// Our pid in the state directory, from when the lock is held. Dropping it takes back what still names us.
struct Published<'a>(&'a StateDir);

impl<'a> Published<'a> {
    fn new(state: &'a StateDir) -> Self {
        if let Err(error) = liveness::write_pid(state) {
            render::note(&format!("nexus-watcher: our pid can't be published: {error}"));
        }
        Self(state)
    }
}

impl Drop for Published<'_> {
    fn drop(&mut self) {
        if let Err(error) = liveness::remove_ours(self.0) {
            tracing::warn!(%error, "cannot remove our own pid files");
        }
    }
}

/// Wakes the loop at notifications of the control clients. They are hints to look; a lagging reader has missed some, which
/// is a hint too. Never completes.
fn listen(tmux: &Servers<TmuxClient>, wake: &Rc<tokio::sync::Notify>) -> impl Future<Output = ()> + use<> {
    let mut events: Vec<_> = tmux.clients().map(TmuxClient::events).collect();
    let wake = Rc::clone(wake);
    async move {
        join::all(events.iter_mut().map(async |events| {
            while !matches!(events.recv().await, Err(tokio::sync::broadcast::error::RecvError::Closed)) {
                wake.notify_one();
            }
        }))
        .await;
        std::future::pending::<()>().await;
    }
}

/// Says on standard error what a watcher in somebody's terminal waits for, since it is silent otherwise.
async fn say_what_is_awaited(tmux: &impl Tmux, target: &str) {
    let say = |what: &str| {
        render::note(&format!("nexus-watcher: {what}"));
        tracing::info!("{what}");
    };
    match tmux.view().await {
        Ok(view) if view.panes.iter().any(|pane| pane.window_name.as_str() == target) => {
            say(&format!("watching; reports go to the window {target}"));
        }
        Ok(_) => say(&format!("waiting for a window named {target}; what there is to tell is told then")),
        Err(error) => say(&format!("waiting for a tmux server with a window named {target}: {error}")),
    }
}

/// A runtime of one thread.
fn runtime() -> Result<tokio::runtime::Runtime, Stop> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Stop::new(1, format!("cannot start: {error}")))
}

/// The current directory.
fn current_dir() -> Result<PathBuf, Stop> {
    std::env::current_dir()
        .map_err(|error| Stop::new(2, format!("cannot read the current directory: {error}; go to one that exists")))
}

/// The root of the nexus that is meant.
fn find_root(root: Option<&Path>, here: &Path) -> Result<PathBuf, Stop> {
    load::find_root(&ProcessEnv, root, here).map_err(|error| Stop::new(2, error))
}

/// Makes the state directory, and makes sure that it may be written.
fn make_state_dir(state: &StateDir) -> Result<(), Stop> {
    let path = state.path().display();
    let advice = "fix its place or permissions, or set NEXUS_STATE_DIR";
    files::create_private_dir(state.path()).map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "something that is no directory stands there".to_owned(),
            _ => error.to_string(),
        };
        Stop::new(5, format!("cannot make the state directory {path}: {why}; {advice}"))
    })?;
    takeover::check_permitted(state)
        .map_err(|error| Stop::new(5, format!("cannot write to the state directory {path}: {error}; {advice}")))
}

/// Loads the settings, says where they come from when they are read again, and looks for tmux. A bad configuration is 1.
fn prepare(
    args: &ArgMatches,
    root: &Path,
    here: &Path,
    runtime: &tokio::runtime::Runtime,
) -> Result<(Loaded, Origins), Stop> {
    let mut loaded = load::load(&ProcessEnv, Some(root), here).map_err(|error| Stop::new(1, error))?;
    let target = args.get_one::<String>("target").cloned();
    let target = target.map(|value| Flag { name: "--target", key: "monitor.target_window", value });
    if let Some(flag) = &target {
        loaded = loaded.with_flag(flag).map_err(|error| Stop::new(2, error))?;
    }
    runtime.block_on(tmux::check_installed()).map_err(|error| no_tmux(&error))?;
    Ok((loaded, Origins { env: Box::new(ProcessEnv), cwd: here.to_owned(), flags: target.into_iter().collect() }))
}

/// Why tmux can't be used.
fn no_tmux(error: &TmuxError) -> Stop {
    match error {
        TmuxError::NotInstalled | TmuxError::TooOld { .. } => Stop::new(2, error),
        other => Stop::new(2, format!("cannot ask tmux for its version: {other}")),
    }
}

/// Completes when the process is told to end.
fn told_to_end() -> anyhow::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut int = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    // A write beyond a limit on file sizes is an error like a full disk, not an end.
    let size_limit =
        signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).context("listening for SIGXFSZ")?;
    Ok(async move {
        let _listened_to = size_limit;
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}

/// Reloads the configuration each time the process is hung up on. Never completes.
fn reload_when_told(settings: Live, notifier: &Notifier) -> anyhow::Result<impl Future<Output = ()>> {
    let mut hup = signal(SignalKind::hangup()).context("listening for SIGHUP")?;
    Ok(async move {
        while hup.recv().await.is_some() {
            notifier.reloading();
            settings.reload().await;
            notifier.reloaded();
        }
        std::future::pending::<()>().await;
    })
}
