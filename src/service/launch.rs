//! `nexus-watcher --launch`, which `monitor/watcher/launcher.sh` runs: starts the service in the background, waits until it
//! is up, and says so. One launcher at a time; nothing is ended before it is sure that a successor may start.
//!
//! Exit codes (`docs/contracts.md` §2): 0 started or nothing to do, 1 refused or bad flag, 2 no tmux or no root, 3 did not
//! come up as a watcher, 4 another watcher holds the state directory, 5 another launcher is at work or the state directory
//! can't be written, 6 an old watcher survived.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::preflight::{self, Corrupt};
use super::{REPLACE_GRACE, Stop, accept, find_root, spawns};
use crate::cli::render;
use crate::config::load::{self, Loaded};
use crate::logic::instance::holder::Holder;
use crate::logic::instance::records::Heartbeat;
use crate::sys::clock::Clock;
use crate::sys::env::ProcessEnv;
use crate::sys::files::{self, MAX_STATE_BYTES, StateDir};
use crate::sys::instance;
use crate::sys::liveness::{self, LOG_DIR, STOP_FILE};
use crate::sys::lock::{self, LOCK_FILE, LockError, Probe};
use crate::sys::takeover;
use crate::sys::ticker::HEARTBEAT_FILE;
use crate::sys::{detach, tmux};

/// The lock of launchers.
const LAUNCH_LOCK: &str = "watcher-restart.lock";

/// What a started service says before its own log is open.
const LAUNCH_LOG: &str = "launch.log";

/// How long to wait for another launcher, in seconds.
const BUSY_AFTER_S: &str = "45";

/// How long a started service may take to show its pid and its heartbeat.
const START_WITHIN: Duration = Duration::from_secs(15);

/// How often a wait says that it goes on.
const SAY_EVERY: Duration = Duration::from_secs(5);

/// How long a watcher whose lock file was removed may take to notice; it looks every five seconds.
const STAND_DOWN_WITHIN: Duration = Duration::from_secs(12);

/// Pause between two looks at a service that is starting.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How a start treats a watcher that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// It is a reason to refuse.
    Start,
    /// It is all that is wanted.
    Ensure,
    /// It is ended first.
    Replace,
}

/// Runs the launcher with these arguments (the first is its name).
pub(super) fn main(args: Vec<OsString>) -> ExitCode {
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            // An empty or a missing value.
            let code = if error.kind() == ErrorKind::InvalidValue { 2 } else { 1 };
            return ExitCode::from(render::usage_error("launcher.sh", &error, code));
        }
    };
    match launch(&matches) {
        Ok(()) => ExitCode::from(render::exit_code("launcher", 0, 1)),
        Err(Stop { code, why }) => {
            render::note(&format!("launcher: {why}"));
            ExitCode::from(code)
        }
    }
}

/// Arguments.
fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    Command::new("launcher.sh")
        .bin_name("launcher.sh")
        .about("Start the watcher of a nexus in the background, wait until it is up, and say so")
        .after_help(
            "Exit: 0 started or nothing to do, 1 refused or bad flag, 2 no tmux, no root or an empty value, 3 did not come up,\n\
             4 another watcher holds the state directory, 5 another launcher is at work or the directory can't be written,\n\
             6 an old watcher survived.",
        )
        .arg(
            Arg::new("root")
                .long("root")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("The nexus to watch (wins over NEXUS_ROOT)"),
        )
        .arg(
            Arg::new("target")
                .long("target")
                .visible_alias("window")
                .value_name("WINDOW")
                .value_parser(NonEmptyStringValueParser::new())
                .help("The orchestrator's window"),
        )
        .arg(flag("replace", "End the watcher of this state directory first"))
        .arg(flag("ensure", "Do nothing if a watcher runs already").conflicts_with("replace"))
        .arg(flag("instance-status", "Say who holds this state directory, and start nothing"))
        .arg(flag("i-accept-no-sandbox", "Record that no sandbox is wanted; none is required"))
        .arg(
            Arg::new("wait")
                .long("wait")
                .value_name("SECONDS")
                .value_parser(value_parser!(u32))
                .default_value(BUSY_AFTER_S)
                .help("How long to wait for another launcher"),
        )
        .arg(Arg::new("program").long("program").value_name("PATH").value_parser(value_parser!(PathBuf)).hide(true))
}

/// Starts the service, or says why not.
fn launch(args: &ArgMatches) -> Result<(), Stop> {
    let here = super::current_dir()?;
    let root = find_root(args.get_one::<PathBuf>("root").map(PathBuf::as_path), &here)?;
    let state_path = load::state_dir(&ProcessEnv, &root, &here).map_err(|error| Stop::new(2, error))?;
    let state = StateDir::new(&state_path);
    if args.get_flag("instance-status") {
        render::line(&instance::instance_status(&state));
        return Ok(());
    }
    let mode = match (args.get_flag("replace"), args.get_flag("ensure")) {
        (true, _) => Mode::Replace,
        (_, true) => Mode::Ensure,
        _ => Mode::Start,
    };
    // Whatever would keep a successor from starting is found before anything is ended.
    let Loaded { settings, .. } = load::load(&ProcessEnv, Some(&root), &here).map_err(|error| Stop::new(1, error))?;
    let runtime = super::runtime()?;
    runtime.block_on(tmux::check_installed()).map_err(|error| super::no_tmux(&error))?;
    super::make_state_dir(&state)?;
    if args.get_flag("i-accept-no-sandbox") {
        accept::record(&state, "launcher.sh --i-accept-no-sandbox");
    }
    let patience = Duration::from_secs(args.get_one::<u32>("wait").copied().unwrap_or(45).into());
    let _one_at_a_time = take_turn(&state, patience)?;

    if mode != Mode::Replace && found_running(&state, mode)? {
        render::line("launcher: a watcher is running; nothing to do");
        return Ok(());
    }
    let corrupt = if mode == Mode::Replace { Corrupt::Passes } else { Corrupt::Refuses };
    preflight::refuse_remote(&state, settings.beacon_stale, corrupt)?;
    if mode == Mode::Replace {
        replace(&state)?;
    }
    if let Err(error) = files::remove(&state.at(STOP_FILE)) {
        render::note(&format!("launcher: {STOP_FILE} can't be removed: {error}"));
    }

    let program = match args.get_one::<PathBuf>("program") {
        Some(program) => program.clone(),
        None => {
            std::env::current_exe().map_err(|error| Stop::new(3, format!("can't find our own program: {error}")))?
        }
    };
    let target = args.get_one::<String>("target");
    let child = spawn(&state, &program, &root, target)?;
    spawns::note(
        &state,
        &format!(
            "spawned pid={} target={} replace={} ensure={}",
            child.id(),
            target.unwrap_or(&settings.target_window),
            u8::from(mode == Mode::Replace),
            u8::from(mode == Mode::Ensure)
        ),
    );
    runtime.block_on(wait_until_up(&state, child, mode))
}

/// Waits for other launchers, so that two of them do not end each other's watcher.
fn take_turn(state: &StateDir, patience: Duration) -> Result<lock::InstanceLock, Stop> {
    let held = |error: LockError| match error {
        LockError::Held { .. } => Stop::new(
            5,
            format!("another launcher has been at work on {} for {} s", state.path().display(), patience.as_secs()),
        ),
        error @ LockError::Unopenable { .. } => Stop::new(5, error),
    };
    match lock::acquire_within(state, LAUNCH_LOCK, Duration::ZERO) {
        Err(LockError::Held { .. }) if !patience.is_zero() => {
            render::note(&format!("launcher: another launcher is at work; waiting up to {} s", patience.as_secs()));
            lock::acquire_within(state, LAUNCH_LOCK, patience).map_err(held)
        }
        taken => taken.map_err(held),
    }
}

/// Whether a watcher runs that makes a start needless.
///
/// Errors: one runs and the start insists; one only observes.
fn found_running(state: &StateDir, mode: Mode) -> Result<bool, Stop> {
    let held = match lock::probe(state) {
        Probe::Held(body) => Some(body),
        Probe::Absent | Probe::Free(_) | Probe::CannotTell(_) => None,
    };
    let pid_of = |body: &str| Holder::parse(body).pid.map_or_else(|| "?".to_owned(), |pid| pid.to_string());
    let observing = instance::observing(state);
    let peers = takeover::watchers(state);
    let live = match (&held, peers.as_slice()) {
        (Some(body), _) => pid_of(body),
        (None, []) => return Ok(false),
        (None, peers) => list(peers),
    };
    if let (None, Some(observing)) = (&held, &observing) {
        spawns::note(state, &format!("refuse-bare live={} observing", observing.pid));
        let code = if mode == Mode::Ensure { 3 } else { 4 };
        return Err(Stop::new(code, format!("{}; or end it and start anew with --replace", observing.says())));
    }
    if mode == Mode::Ensure {
        spawns::note(state, &format!("ensure-noop live={live}"));
        return Ok(true);
    }
    spawns::note(state, &format!("refuse-bare live={live}"));
    Err(Stop::new(
        4,
        match held {
            Some(body) => instance::refusal(&state.at(LOCK_FILE), &body),
            None => format!(
                "watcher {live} of {} runs, though its lock file was removed; use it, or take over with --replace",
                state.path().display()
            ),
        },
    ))
}

/// Ends the watchers that run.
fn replace(state: &StateDir) -> Result<(), Stop> {
    let done = takeover::take_over(state, REPLACE_GRACE).map_err(|error| {
        if error.exit_code() == 6 {
            spawns::note(state, &format!("refuse-unkillable {error}"));
        }
        Stop::new(error.exit_code(), error)
    })?;
    for (pid, forced) in &done.ended {
        let how = if *forced { " (it had to be killed)" } else { "" };
        render::line(&format!("launcher: ended the watcher {pid}{how}"));
    }
    if !done.ended.is_empty() {
        let pids: Vec<u32> = done.ended.iter().map(|(pid, _)| *pid).collect();
        spawns::note(state, &format!("replace-reaped groups={}", list(&pids)));
    }
    for group in &done.reaped {
        render::line(&format!("launcher: ended what was left of the group of watcher {group}"));
        spawns::note(state, &format!("reap-decapitated pgid={group}"));
    }
    if let Some(group) = done.unverified {
        render::note(&format!(
            "launcher: process group {group} was led by an earlier watcher, but nothing shows that its members are ours; \
             left alone"
        ));
        spawns::note(state, &format!("refuse-unverified-group pgid={group}"));
    }
    Ok(())
}

/// Starts the service.
fn spawn(state: &StateDir, program: &Path, root: &Path, target: Option<&String>) -> Result<Child, Stop> {
    let output = launch_log(state);
    let mut args = vec![OsStr::new("--detached"), OsStr::new("--root"), root.as_os_str()];
    if let Some(target) = target {
        args.extend([OsStr::new("--target"), OsStr::new(target)]);
    }
    detach::open_output(&output).and_then(|output| detach::start(program, &args, output)).map_err(|error| {
        spawns::note(state, &format!("spawn-failed ({error})"));
        Stop::new(3, format!("cannot start {} with its output in {}: {error}", program.display(), output.display()))
    })
}

/// Where a started service writes before its log is open.
fn launch_log(state: &StateDir) -> PathBuf {
    state.at(LOG_DIR).join(LAUNCH_LOG)
}

/// Waits until the service is up, or has ended, or is too slow to be waited for.
async fn wait_until_up(state: &StateDir, mut child: Child, mode: Mode) -> Result<(), Stop> {
    let pid = child.id();
    let begun = Clock::System.now().uptime;
    let mut said = Duration::ZERO;
    loop {
        if let Some(status) = child.try_wait().ok().flatten() {
            return ended(state, status.code(), mode);
        }
        if is_up(state, pid) {
            render::line(&format!("launcher: started pid={pid}"));
            break;
        }
        if let Some(observing) = instance::observing(state).filter(|observing| observing.pid == pid) {
            return Err(Stop::new(3, observing.says()));
        }
        let waited = Clock::System.now().uptime.saturating_sub(begun);
        if waited >= START_WITHIN {
            render::line(&format!(
                "launcher: started pid={pid}; slow: it runs, but has shown no pid file and heartbeat within {} s, see {}",
                START_WITHIN.as_secs(),
                state.at(LOG_DIR).display()
            ));
            break;
        }
        if waited.saturating_sub(said) >= SAY_EVERY {
            said = waited;
            render::note(&format!(
                "launcher: waiting for pid {pid} to publish its pid and heartbeat ({} of {} s)",
                waited.as_secs(),
                START_WITHIN.as_secs()
            ));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    probe_duplicates(state, pid).await
}

/// Whether the service has published its pid and its first heartbeat.
fn is_up(state: &StateDir, pid: u32) -> bool {
    let heartbeat = || files::read_text(&state.at(HEARTBEAT_FILE), MAX_STATE_BYTES).ok().flatten();
    liveness::recorded_pid(state) == Some(pid)
        && heartbeat().is_some_and(|text| Heartbeat::parse(&text).pid == Some(pid))
}

/// After a start exactly one watcher may run. One whose lock file was removed under it stands down within seconds.
async fn probe_duplicates(state: &StateDir, pid: u32) -> Result<(), Stop> {
    let begun = Clock::System.now().uptime;
    let mut said = false;
    loop {
        let mut others = takeover::watchers(state);
        others.retain(|other| *other != pid);
        if others.is_empty() {
            return Ok(());
        }
        if Clock::System.now().uptime.saturating_sub(begun) >= STAND_DOWN_WITHIN {
            spawns::note(state, &format!("post-spawn-duplicate pids={pid},{}", list(&others)));
            return Err(Stop::new(
                6,
                format!("more than one watcher runs: {pid}, which was started now, and {}; end those", list(&others)),
            ));
        }
        if !said {
            said = true;
            render::note(&format!("launcher: waiting for watcher {} to stand down", list(&others)));
        }
        tokio::time::sleep(LOOK_EVERY * 4).await;
    }
}

/// What an end of the service before it was up means.
fn ended(state: &StateDir, code: Option<i32>, mode: Mode) -> Result<(), Stop> {
    let log = launch_log(state);
    for line in files::read_text(&log, MAX_STATE_BYTES).ok().flatten().unwrap_or_default().lines() {
        render::note(line);
    }
    let logs = state.at(LOG_DIR);
    match code {
        Some(0) if mode == Mode::Ensure => {
            render::line("launcher: a watcher is running; nothing to do");
            Ok(())
        }
        Some(0) => Err(Stop::new(3, format!("the watcher ended at once without an error; see {}", logs.display()))),
        Some(code @ (1 | 2 | 4 | 5 | 6)) => {
            Err(Stop::new(u8::try_from(code).unwrap_or(1), "the watcher refused to start"))
        }
        Some(code) => Err(Stop::new(3, format!("the watcher ended at once with code {code}; see {}", logs.display()))),
        None => Err(Stop::new(3, format!("the watcher was ended by a signal at once; see {}", logs.display()))),
    }
}

/// Process ids, for people.
fn list(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}
