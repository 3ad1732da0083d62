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
use crate::config::load::{self, Loaded};
use crate::daemon::observe::Observer;
use crate::daemon::{self, Outside, Run};
use crate::sys::clock::Clock;
use crate::sys::env::{Env as _, ProcessEnv};
use crate::sys::files::{self, StateDir};
use crate::sys::instance::{self, Here, Replaced};
use crate::sys::lock::{self, InstanceLock, LockError, Probe};
use crate::sys::ticker::Ticker;
use crate::sys::tmux::{self, Socket, TmuxClient, TmuxError};
use crate::sys::{liveness, logging};

/// How long a replaced watcher may take to end before it is killed. It finishes a delivery that is under way.
const REPLACE_GRACE: Duration = Duration::from_secs(8);

/// How often it is looked whether the instance lock still stands in its place.
const LOCK_CHECK: Duration = Duration::from_secs(5);

/// Runs the program with these arguments (the first is its name).
pub fn main(args: Vec<OsString>) -> ExitCode {
    logging::tighten_umask();
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return ExitCode::from(render::usage_error(&error, 1)),
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
    let Loaded { mut settings, notices, .. } = load_settings(args)?;
    if let Some(target) = args.get_one::<String>("target") {
        if target.is_empty() {
            return Err(Stop::new(2, "--target needs the name of a window"));
        }
        settings.target_window.clone_from(target);
    }
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
        Stop::new(
            5,
            format!(
                "cannot create the state directory {}: {error}; fix its permissions or set NEXUS_STATE_DIR",
                state.path().display()
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
    if args.get_flag("replace") {
        match instance::replace_holder(&state, REPLACE_GRACE) {
            Ok(Replaced::Nobody) => {}
            Ok(Replaced::Ended { pid, forced }) => {
                render::note(&format!("ended the watcher {pid}{}", if forced { " (it had to be killed)" } else { "" }));
            }
            Err(error) => return Err(Stop::new(error.exit_code(), error)),
        }
    }
    let mut lock = take_lock(&state, &settings.root, &settings.tmux_sockets)?;
    let (root, sockets) = (settings.root.clone(), settings.tmux_sockets.clone());
    let (target, interval) = (settings.target_window.clone(), settings.interval);
    let guard = logging::start(&state, ProcessEnv.non_empty("NEXUS_LOG").as_deref())
        .map_err(|error| Stop::new(5, format!("{error:#}")))?;
    for notice in &notices {
        tracing::info!("{notice}");
    }
    let ticker = Ticker::start(&state, &settings.target_window, settings.heartbeat_tick)
        .map_err(|error| Stop::new(1, format!("cannot start the heartbeat: {error}")))?;
    if let Err(error) = publish(&state, &settings.target_window, settings.interval) {
        tracing::error!(%error, "cannot publish who watches");
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        pid = std::process::id(),
        root = %settings.root.display(),
        target = settings.target_window,
        "watcher started"
    );
    let how = if args.get_flag("once") { Run::Once } else { Run::Forever };
    let ended = runtime.block_on(async {
        let tmux = TmuxClient::new(socket, Some(settings.target_window.clone()));
        let wake = Rc::new(tokio::sync::Notify::new());
        let mut tmux_events = tmux.events();
        let waker = Rc::clone(&wake);
        let outside = Outside {
            tmux,
            clock: Clock::System,
            state: state.clone(),
            settings,
            env: Box::new(ProcessEnv),
            observer: Observer::new()?,
        };
        // Notifications of the control client are hints to look; a lagging reader has missed some, which is a hint too.
        let listen = async move {
            while !matches!(tmux_events.recv().await, Err(tokio::sync::broadcast::error::RecvError::Closed)) {
                waker.notify_one();
            }
            std::future::pending::<()>().await;
        };
        let keep_lock = async {
            loop {
                tokio::time::sleep(LOCK_CHECK).await;
                if !matches!(lock.is_in_place(), Ok(false)) {
                    continue;
                }
                // Somebody removed the state directory, or the file in it; another watcher may have started since.
                match take_lock(&state, &root, &sockets) {
                    Ok(new) => {
                        lock = new;
                        tracing::warn!("the instance lock was removed under a running watcher; taken again");
                        if let Err(error) = publish(&state, &target, interval) {
                            tracing::error!(%error, "cannot publish who watches");
                        }
                    }
                    Err(Stop { code: 4, why }) => return why,
                    Err(Stop { why, .. }) => tracing::error!(why, "the instance lock was removed and can't be taken"),
                }
            }
        };
        let (stand_down, stood_down) = tokio::sync::oneshot::channel();
        let told = told_to_end()?;
        let run = daemon::run(outside, how, wake, async move {
            tokio::select! {
                () = told => {}
                _ = stood_down => {}
            }
        });
        let keep_lock = async {
            let why = keep_lock.await;
            tracing::warn!(why, "another watcher has taken over this state directory; standing down");
            // The loop ends by it; if it has ended already, so do we.
            let _ended = stand_down.send(());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = run => ended,
            () = listen => Ok(()),
            () = keep_lock => Ok(()),
        }
    });
    tracing::info!("watcher ended");
    drop(ticker);
    if let Err(error) = liveness::remove_ours(&state) {
        tracing::warn!(%error, "cannot remove our own pid files");
    }
    drop(guard);
    drop(lock);
    ended.map_err(|error| Stop::new(1, format!("{error:#}")))
}

/// Writes down who watches.
fn publish(state: &StateDir, target: &str, interval: Duration) -> std::io::Result<()> {
    liveness::write_pid(state)?;
    liveness::write_who(state, &Clock::System.now(), target, interval)
}

/// Loads the settings; a missing root is 2, a bad configuration is 1.
fn load_settings(args: &ArgMatches) -> Result<Loaded, Stop> {
    let here =
        std::env::current_dir().map_err(|error| Stop::new(2, format!("cannot read the current directory: {error}")))?;
    let root = args.get_one::<PathBuf>("root").map(PathBuf::as_path);
    let root = load::find_root(&ProcessEnv, root, &here).map_err(|error| Stop::new(2, error))?;
    load::load(&ProcessEnv, Some(&root), &here).map_err(|error| Stop::new(1, error))
}

/// Takes the instance lock, or says who holds it and what to do.
fn take_lock(state: &StateDir, root: &std::path::Path, sockets: &[String]) -> Result<InstanceLock, Stop> {
    let socket = sockets.first().map_or("default", String::as_str);
    let holder = Here::look().describe(&ProcessEnv, root, socket, &Clock::System.now());
    lock::acquire(state, &holder.render()).map_err(|error| match error {
        LockError::Held { path, metadata } => Stop::new(4, instance::refusal(&path, &metadata)),
        error @ LockError::Unopenable { .. } => Stop::new(5, error),
    })
}

/// Completes when the process is told to end.
fn told_to_end() -> anyhow::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut int = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    let mut hup = signal(SignalKind::hangup()).context("listening for SIGHUP")?;
    // A write beyond a limit on file sizes is an error like a full disk, not an end.
    let size_limit =
        signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).context("listening for SIGXFSZ")?;
    Ok(async move {
        let _listened_to = size_limit;
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
            _ = hup.recv() => {}
        }
    })
}
