//! The offline half of `ng pane-state`: judges a saved screen, and the hook's word beside it, as a live pane is judged.
//!
//! The flags are those of the original's `pane-state.sh --fixture`, so that its callers and tests go on.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command};

use super::pane_state::Label;
use super::render;
use crate::agents::Profiles;
use crate::logic::hook::Heartbeat;
use crate::logic::ids::{PaneId, SessionId, WindowId, WindowName};
use crate::logic::pane::{self, Evidence, HookFacts, PaneVerdict, ProcessFacts, ScreenFacts, State, Witness, fuse};
use crate::logic::screen::Capture;
use crate::logic::snapshot::PaneFacts;
use crate::logic::time::Timestamp;
use crate::sys::clock::Clock;
use crate::sys::files;

/// Flags of the original that a saved screen has no use for here.
const UNUSED: [&str; 6] = [
    "heartbeat-turn-end-staleness",
    "heartbeat-async-staleness",
    "over-limit-file",
    "pane-pid",
    "bg-cpu",
    "bg-oldest-start",
];

/// Adds the flags for a saved screen.
pub(super) fn args(command: Command) -> Command {
    let path = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(clap::value_parser!(PathBuf)).help(help)
    };
    let of_saved =
        |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value).requires("capture");
    let seconds = |name: &'static str| of_saved(name, "SECONDS").value_parser(clap::value_parser!(u32));
    let command = command
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
                .help("When the saved screen was, for the age of its heartbeat"),
        )
        .arg(seconds("heartbeat-staleness").default_value("30").help("How long a heartbeat counts"))
        .arg(
            of_saved("bg-shells", "COUNT")
                .value_parser(clap::value_parser!(u32))
                .help("Background shells below the agent of the saved screen"),
        );
    UNUSED.iter().fold(command, |command, name| command.arg(of_saved(name, "VALUE").hide(true)))
}

/// Judges the saved screen that the arguments name; `None` if they name none.
pub(super) fn judge(args: &ArgMatches, profiles: &Profiles) -> Option<anyhow::Result<(Label, PaneVerdict)>> {
    args.get_one::<PathBuf>("capture").map(|path| judge_file(args, profiles, path))
}

/// Judges a saved screen.
fn judge_file(args: &ArgMatches, profiles: &Profiles, path: &Path) -> anyhow::Result<(Label, PaneVerdict)> {
    let text = read_capture(path)?;
    let capture = Capture::from_bytes(text.as_bytes());
    let wanted = args.get_one::<String>("agent").and_then(|name| profiles.get(name));
    let screen = match wanted {
        Some(profile) => pane::judge_capture(profile, &ScreenFacts::default(), &capture),
        None => judge_any(profiles, &capture),
    };
    for name in UNUSED.iter().filter(|name| args.get_one::<String>(name).is_some()) {
        render::note(&format!("ng pane-state: --{name} tells nothing about a saved screen here; it is not used"));
    }
    let heartbeat = args.get_one::<PathBuf>("heartbeat-file").and_then(|path| read_heartbeat(path));
    let shells = args.get_one::<u32>("bg-shells").copied();
    let now = args.get_one::<i64>("now").copied();
    let now = now.map_or_else(|| Clock::System.now().at, Timestamp::from_secs);
    let fresh = Duration::from_secs(u64::from(args.get_one::<u32>("heartbeat-staleness").copied().unwrap_or(30)));
    let verdict = if heartbeat.is_none() && shells.is_none() {
        screen
    } else {
        let process = ProcessFacts { background_shells: shells, ..ProcessFacts::default() };
        fuse(&nowhere(now), &process, heartbeat.as_ref(), screen, now, fresh)
    };
    let text = |name: &str| args.get_one::<String>(name).cloned();
    let stem = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let label = Label {
        window: text("index").and_then(|index| index.parse().ok()),
        name: text("name").or(stem),
        active: text("active").as_deref() == Some("1"),
    };
    Ok((label, verdict))
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

/// Judges a saved screen by the first profile that recognises anything on it.
fn judge_any(profiles: &Profiles, capture: &Capture) -> PaneVerdict {
    let mut first = None;
    for profile in profiles.iter() {
        let verdict = pane::judge_capture(profile, &ScreenFacts::default(), capture);
        if verdict.agent.is_some() {
            return verdict;
        }
        first.get_or_insert(verdict);
    }
    first.unwrap_or_else(|| PaneVerdict::of(State::Unknown, Evidence::new(Witness::Screen, "no-profiles")))
}
