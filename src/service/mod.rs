//! The `nexus-watcher` program: arguments, lock, log, heartbeat thread, signals, exit code. The loop is [`daemon`].
//!
//! Exit codes are the launcher's row in `docs/contracts.md` §2: 0 ended or nothing to do, 1 refused or bad flag, 2 no
//! tmux or no root, 4 the instance is held, 5 the state directory can't be written, 6 a holder survived.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::render;
use crate::config::live::{Live, Origins};
use crate::config::load::{self, Flag, Loaded};
use crate::daemon::board::Board;
use crate::daemon::observe::Observer;
use crate::daemon::{self, Outside, Run};
use crate::logic::instance::beacon::BeaconVerdict;
use crate::logic::instance::holder::Holder;
use crate::sys::clock::Clock;
use crate::sys::env::{Env as _, ProcessEnv};
use crate::sys::files::{self, StateDir};
use crate::sys::instance::{self, Here};
use crate::sys::lock::{self, InstanceLock, LockError, Probe};
use crate::sys::ticker::Ticker;
use crate::sys::tmux::{self, Socket, TmuxClient, TmuxError};
use crate::sys::{liveness, logging, takeover};

mod guard;
mod notify;

use guard::Guard;
use notify::Notifier;

/// How long a replaced watcher may take to end before it is killed. It finishes a delivery that is under way.
const REPLACE_GRACE: Duration = Duration::from_secs(8);

/// Runs the program with these arguments (the first is its name).
pub fn main(args: Vec<OsString>) -> ExitCode {
    logging::tighten_umask();
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return ExitCode::from(render::usage_error("nexus-watcher", &error, 1)),
    };
    match start(&matches) {
        Ok(()) => ExitCode::SUCCESS,
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
fn start(args: &ArgMatches) -> Result<(), Stop> {
    let (loaded, origins) = load_settings(args)?;
    let settings = loaded.settings.clone();
    let state = StateDir::new(&settings.state_dir);
    if args.get_flag("instance-status") {
        render::line(&instance::instance_status(&state));
        return Ok(());
    }
    if args.get_flag("ensure") && matches!(lock::probe(&state), Probe::Held(_)) {
        render::note("a watcher runs already; nothing to do");
        return Ok(());
    }
    files::create_private_dir(state.path()).map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "something that is no directory stands there".to_owned(),
            _ => error.to_string(),
        };
        let path = state.path().display();
        Stop::new(
            5,
            format!(
                "cannot make the state directory {path}: {why}; fix its place or permissions, or set NEXUS_STATE_DIR"
            ),
        )
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Stop::new(1, format!("cannot start: {error}")))?;
    let socket = settings.tmux_sockets.first().map_or(Socket::Default, |name| Socket::parse(name));
    runtime.block_on(tmux::check_installed()).map_err(|error| match error {
        TmuxError::NotInstalled | TmuxError::TooOld { .. } => Stop::new(2, error),
        other => Stop::new(2, format!("cannot ask tmux for its version: {other}")),
    })?;
    // Asked before the old watcher is ended: a restart must never end the only one and then refuse to start.
    refuse_remote(&state, settings.beacon_stale)?;
    if args.get_flag("replace") {
        let done = takeover::take_over(&state, REPLACE_GRACE).map_err(|error| Stop::new(error.exit_code(), error))?;
        for (pid, forced) in done.ended {
            render::note(&format!("ended the watcher {pid}{}", if forced { " (it had to be killed)" } else { "" }));
        }
    }
    let (lock, holder) = take_lock(&state, &settings.root, &settings.tmux_sockets)?;
    let log = logging::start(&state, ProcessEnv.non_empty("NEXUS_LOG").as_deref())
        .map_err(|error| Stop::new(1, format!("{error:#}")))?;
    if let [watched, others @ ..] = settings.tmux_sockets.as_slice()
        && !others.is_empty()
    {
        tracing::warn!(watched, ?others, "only the first of monitor.tmux.sockets is watched");
    }
    for notice in &loaded.notices {
        tracing::info!("{notice}");
    }
    let ticker = Ticker::start(&state, &settings.target_window, settings.heartbeat_tick)
        .map_err(|error| Stop::new(1, format!("cannot start the heartbeat: {error}")))?;
    let started = Clock::System.now();
    let live = Live::following(loaded, origins, &started);
    let mut guard = Guard {
        started,
        settings: live.clone(),
        state: state.clone(),
        lock,
        ticker,
        target: settings.target_window.clone(),
        tick: settings.heartbeat_tick,
        interval: settings.interval,
        holder,
        nonce: format!("{}-{}", std::process::id(), Clock::System.now().at.millis()),
        stale_after: settings.beacon_stale,
    };
    guard.announce();
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        root = %settings.root.display(),
        target = settings.target_window,
        "watcher started"
    );
    let how = if args.get_flag("once") { Run::Once } else { Run::Forever };
    let board = Board::default();
    let notifier = Notifier::new(board.clone(), &settings.target_window, settings.interval);
    let ended = runtime.block_on(async {
        let tmux = TmuxClient::new(socket, Some(settings.target_window.clone()));
        let wake = Rc::new(tokio::sync::Notify::new());
        let mut tmux_events = tmux.events();
        let waker = Rc::clone(&wake);
        let outside = Outside {
            tmux,
            clock: Clock::System,
            state: state.clone(),
            settings: live.clone(),
            env: Box::new(ProcessEnv),
            observer: Observer::new()?,
            board,
        };
        // Notifications of the control client are hints to look; a lagging reader has missed some, which is a hint too.
        let listen = async move {
            while !matches!(tmux_events.recv().await, Err(tokio::sync::broadcast::error::RecvError::Closed)) {
                waker.notify_one();
            }
            std::future::pending::<()>().await;
        };
        let told = told_to_end()?;
        let reload = reload_when_told(live, &notifier)?;
        let end = async {
            tokio::select! {
                () = told => {}
                () = guard.watch() => {}
            }
            notifier.stopping();
        };
        let run = daemon::run(outside, how, wake, end);
        tokio::select! {
            ended = run => ended,
            () = listen => Ok(()),
            () = notifier.attend() => Ok(()),
            () = reload => Ok(()),
        }
    });
    tracing::info!("watcher ended");
    guard.retire();
    if let Err(error) = liveness::remove_ours(&state) {
        tracing::warn!(%error, "cannot remove our own pid files");
    }
    notifier.finish();
    drop(log);
    drop(guard);
    ended.map_err(|error| Stop::new(1, format!("{error:#}")))
}

/// Loads the settings, and says where they come from when they are read again; a missing root is 2, a bad
/// configuration is 1.
fn load_settings(args: &ArgMatches) -> Result<(Loaded, Origins), Stop> {
    let here = std::env::current_dir()
        .map_err(|error| Stop::new(2, format!("cannot read the current directory: {error}; go to one that exists")))?;
    let root = args.get_one::<PathBuf>("root").map(PathBuf::as_path);
    let root = load::find_root(&ProcessEnv, root, &here).map_err(|error| Stop::new(2, error))?;
    let mut loaded = load::load(&ProcessEnv, Some(&root), &here).map_err(|error| Stop::new(1, error))?;
    let target = args.get_one::<String>("target").cloned();
    let target = target.map(|value| Flag { name: "--target", key: "monitor.target_window", value });
    if let Some(flag) = &target {
        loaded = loaded.with_flag(flag).map_err(|error| Stop::new(2, error))?;
    }
    Ok((loaded, Origins { env: Box::new(ProcessEnv), cwd: here, flags: target.into_iter().collect() }))
}

/// Refuses to start beside a watcher on another host, which the lock may not show.
fn refuse_remote(state: &StateDir, stale_after: Duration) -> Result<(), Stop> {
    match instance::remote_verdict(state, Clock::System.now().at, stale_after) {
        BeaconVerdict::None | BeaconVerdict::SameHost | BeaconVerdict::StaleRemote => Ok(()),
        BeaconVerdict::LiveRemote(beacon) => Err(Stop::new(
            4,
            format!(
                "a watcher on host {} (pid {}) uses {}; end it there, or wait {} s after its last sign of life",
                beacon.host,
                beacon.pid,
                state.path().display(),
                stale_after.as_secs()
            ),
        )),
        BeaconVerdict::Corrupt => {
            // The lock is the judge on this host; a watcher must not be kept from starting by a file that it writes.
            render::note(&format!(
                "{} can't be read, so a watcher on another host can't be ruled out; starting all the same",
                state.at(instance::BEACON_FILE).display()
            ));
            Ok(())
        }
    }
}

/// Takes the instance lock, or says who holds it and what to do.
fn take_lock(state: &StateDir, root: &std::path::Path, sockets: &[String]) -> Result<(InstanceLock, Holder), Stop> {
    let socket = sockets.first().map_or("default", String::as_str);
    let holder = Here::look().describe(&ProcessEnv, root, socket, &Clock::System.now());
    let lock = lock::acquire(state, &holder.render()).map_err(|error| match error {
        LockError::Held { path, metadata } => Stop::new(4, instance::refusal(&path, &metadata)),
        error @ LockError::Unopenable { .. } => Stop::new(5, error),
    })?;
    Ok((lock, holder))
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
