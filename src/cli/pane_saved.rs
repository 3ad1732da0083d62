//! The offline half of `ng pane-state`: judges a saved screen, and the hook's word beside it, as a live pane is judged.
//!
//! The flags are those of the original's `pane-state.sh --fixture`, so that its callers and tests go on.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::RangedI64ValueParser;
use clap::{Arg, ArgMatches, Command};

use super::pane_explain::Explain;
use super::pane_state::{Answered, Label};
use crate::agents::Profiles;
use crate::daemon::observe::Observer;
use crate::logic::hook::Heartbeat;
use crate::logic::ids::{PaneId, SessionId, WindowId, WindowName};
use crate::logic::pane::{
    self, HookFacts, Liveness, PID_GONE, ProcessFacts, Profile, ScreenFacts, Unclear, Witness, WitnessSeen, fuse,
};
use crate::logic::screen::Capture;
use crate::logic::snapshot::PaneFacts;
use crate::logic::time::{Now, Timestamp};
use crate::sys::clock::Clock;
use crate::sys::processes::Machine;
use crate::sys::{files, hook_files, procfs};

/// Adds the flags for a saved screen.
pub(super) fn args(command: Command) -> Command {
    let path = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(clap::value_parser!(PathBuf)).help(help)
    };
    let of_saved =
        |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value).requires("capture");
    let seconds = |name: &'static str, usual: &'static str, help: &'static str| {
        of_saved(name, "SECONDS").value_parser(clap::value_parser!(u32)).default_value(usual).help(help)
    };
    let count = |name: &'static str, value: &'static str, help: &'static str| {
        of_saved(name, value).value_parser(RangedI64ValueParser::<u32>::new()).help(help)
    };
    command
        .arg(
            path("capture", "Judge a saved screen (capture-pane -p -e) instead of a live pane")
                .alias("fixture")
                .conflicts_with_all(["window", "all", "states"]),
        )
        .arg(of_saved("name", "NAME").help("What to call the saved screen"))
        .arg(Arg::new("index").long("window").value_name("INDEX").requires("capture").help("Its window index"))
        .arg(of_saved("active", "0|1").value_parser(["0", "1"]).help("Whether it is the current window"))
        .arg(path("heartbeat-file", "What the hooks of the saved screen told last").requires("capture"))
        .arg(
            of_saved("now", "EPOCH")
                .value_parser(clap::value_parser!(i64))
                .help("When the saved screen was, for the age of its heartbeat and of the stamp of a limit"),
        )
        .arg(seconds("heartbeat-staleness", "30", "How long a heartbeat counts"))
        .arg(seconds("heartbeat-turn-end-staleness", "1800", "How long a heartbeat counts that tells of a turn's end"))
        .arg(seconds("heartbeat-async-staleness", "60", "How long a heartbeat's wake-up counts"))
        .arg(
            path("over-limit-file", "The stamp that a usage limit left of the saved screen's window")
                .requires("capture"),
        )
        .arg(count("pane-pid", "PID", "The process of the saved screen's pane: what runs below it counts as well"))
        .arg(count("bg-shells", "COUNT", "Background shells below the agent of the saved screen"))
        .arg(
            of_saved("bg-cpu", "TICKS")
                .value_parser(clap::value_parser!(u64))
                .help("Processor time of those shells, in clock ticks"),
        )
        .arg(
            of_saved("bg-oldest-start", "EPOCH")
                .value_parser(clap::value_parser!(i64))
                .help("When the oldest of those shells started"),
        )
}

/// Judges the saved screen that the arguments name; `None` if they name none.
pub(super) fn judge(args: &ArgMatches, profiles: &Profiles) -> Option<anyhow::Result<Answered>> {
    args.get_one::<PathBuf>("capture").map(|path| judge_file(args, profiles, path))
}

/// Judges a saved screen.
fn judge_file(args: &ArgMatches, profiles: &Profiles, path: &Path) -> anyhow::Result<Answered> {
    let text = read_capture(path)?;
    let capture = Capture::from_bytes(text.as_bytes());
    let now = match args.get_one::<i64>("now") {
        Some(epoch) => Now::fixed(Timestamp::from_secs(*epoch)),
        None => Clock::System.now(),
    };
    let process = processes(args, profiles);
    let wanted = args.get_one::<String>("agent").or(process.agent.as_ref());
    let wanted = wanted.and_then(|name| profiles.get(name)).or_else(|| profiles.of_screen(&capture));
    let facts = ScreenFacts::default().with_version(process.version.clone());
    let Some(profile) = wanted else { anyhow::bail!("there are no profiles") };
    let screen = pane::judge_capture(profile, &facts, &capture);
    let explanation = args.get_flag("explain").then(|| explain(profile, &facts, &capture));

    let seconds = |name: &str| args.get_one::<u32>(name).map(|seconds| Duration::from_secs(u64::from(*seconds)));
    let mut hook = args.get_one::<PathBuf>("heartbeat-file").and_then(|path| read_heartbeat(path));
    if let Some(hook) = &mut hook {
        hook.counts_for = (seconds("heartbeat-turn-end-staleness"), seconds("heartbeat-async-staleness"));
    }
    let fresh = seconds("heartbeat-staleness").unwrap_or_default();
    let stamp = args.get_one::<PathBuf>("over-limit-file").and_then(|path| hook_files::read_stamp_file(path, None));
    let verdict = fuse(&nowhere(now.at), &process, hook.as_ref(), screen, now.at, fresh);
    let mut verdict = pane::with_limit_stamp(verdict, stamp.as_ref(), hook.as_ref(), now.at);
    // The original's word for a process that the caller named and that is not there.
    if let Some(reason) = verdict.evidence.first_mut().filter(|reason| reason.rule == PID_GONE) {
        "fixture-no-process".clone_into(&mut reason.rule);
    }

    let mut witnesses = vec![WitnessSeen::new(Witness::Screen, format!("saved in {}", path.display()), None)];
    if args.contains_id("pane-pid") {
        witnesses.push(pane::witnesses::of_process(&process, now.at));
    }
    if hook.is_some() {
        witnesses.push(pane::witnesses::of_hook(hook.as_ref(), now.at, fresh));
    }
    witnesses.extend(stamp.map(|stamp| pane::witnesses::of_limit_stamp(&stamp, hook.as_ref(), now.at)));
    let text = |name: &str| args.get_one::<String>(name).cloned();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let label = Label {
        window: text("index").and_then(|index| index.parse().ok()),
        name: text("name").or(stem),
        active: text("active").as_deref() == Some("1"),
        pane: None,
    };
    let explain = explanation.map(|screen| Explain { witnesses, screen: Some(screen), history: None, at: now.at });
    Ok(Answered { label, verdict, explain })
}

/// What runs below the process that is named, and what was counted there.
fn processes(args: &ArgMatches, profiles: &Profiles) -> ProcessFacts {
    let now = Clock::System.now();
    let mut process = match args.get_one::<u32>("pane-pid") {
        Some(pid) => {
            let observer = Observer::with(Rc::new(profiles.clone()), Box::new(Machine::default()));
            let found = observer.processes(&PaneFacts { pid: Some(*pid), ..nowhere(now.at) }, &now);
            // Whoever names a process of this machine knows that it can be seen from here.
            if found.unclear == Some(Unclear::Blind) && !procfs::is_taken(*pid) {
                ProcessFacts { liveness: Liveness::Gone, ..ProcessFacts::default() }
            } else {
                // Its terminal is not the saved screen's, so who has its keys says nothing.
                ProcessFacts { unclear: found.unclear.filter(|why| *why != Unclear::InBackground), ..found }
            }
        }
        None => ProcessFacts::default(),
    };
    if let Some(shells) = args.get_one::<u32>("bg-shells") {
        process.background_shells = Some(*shells);
        (process.background_cpu, process.background_oldest) = (None, None);
    }
    if let Some(cpu) = args.get_one::<u64>("bg-cpu") {
        process.background_cpu = Some(*cpu);
    }
    if let Some(start) = args.get_one::<i64>("bg-oldest-start") {
        process.background_oldest = Some(Timestamp::from_secs(*start));
    }
    process
}

/// Why the screen says what it says.
fn explain(profile: &Profile, facts: &ScreenFacts, capture: &Capture) -> pane::Explanation {
    let wanted = pane::wanted_style(profile, capture.plain()).filter(|_| capture.has_colour());
    let styled = wanted.map(|(first, last)| (first, capture.styled(first, last)));
    let styled = styled.as_ref().map(|(first, rows)| (*first, rows.as_slice()));
    pane::explain(profile, facts, capture.plain(), styled).1
}

/// What a heartbeat file says. One that is missing or damaged tells nothing, as for a live pane.
fn read_heartbeat(path: &Path) -> Option<HookFacts> {
    let text = files::read_text(path, files::MAX_STATE_BYTES).ok().flatten()?;
    Some(HookFacts::of(&Heartbeat::parse(&text)?, path.display().to_string()))
}

/// The pane of a saved screen, of which nothing else is known.
fn nowhere(now: Timestamp) -> PaneFacts {
    PaneFacts {
        pane: PaneId::new(0),
        window: WindowId::new(0),
        session: SessionId::new(0),
        session_name: String::new(),
        window_name: WindowName(String::new()),
        window_index: 0,
        window_active: false,
        pane_active: true,
        activity: now,
        dead: None,
        pid: None,
        in_mode: false,
        synchronized: false,
        alternate_on: false,
        cursor: (0, 0),
        cursor_shown: true,
        size: (0, 0),
        history: 0,
        bell: false,
        title: String::new(),
    }
}

/// Reads a saved screen; also from a pipe, as a shell hands one over.
fn read_capture(path: &Path) -> anyhow::Result<String> {
    let reading = || format!("reading the saved screen {}", path.display());
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            anyhow::bail!("no saved screen {}; make one with `tmux capture-pane -p -e`", path.display())
        }
        opened => opened.with_context(reading)?,
    };
    let mut bytes = Vec::new();
    file.take(files::MAX_STATE_BYTES).read_to_end(&mut bytes).with_context(reading)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
