//! `ng hook EVENT`: what an agent's hook runs, inside every tool call.
//!
//! It reads the payload on standard input, asks [`logic::hook`](crate::logic::hook) what changes, and changes it. It
//! never fails the agent's turn: the exit code is 0, nothing is printed, and whatever goes wrong becomes one line of
//! `hook-errors.log`. The one exception is meant: the orchestrator's question dialogs are refused with code 2. Nothing is
//! synced to disk but decision records, and a state directory that is not there is not made: its path may be mistyped.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::hook_place::{self, Asked};
use super::{Invocation, Verb, render};
use crate::logic::hook::{Effect, Event, Heartbeat, HookContext, Part, Payload, Prior, effects_of, server_in};
use crate::logic::ids::{PaneId, WindowName};
use crate::logic::time::Now;
use crate::sys::clock::Clock;
use crate::sys::env::{Env as _, ProcessEnv};
use crate::sys::files::{self, Durability, StateDir};
use crate::sys::{decisions, hook_files, stdin};

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

/// Largest payload that is read, in bytes. A tool's whole output is part of one.
const MAX_PAYLOAD_BYTES: usize = 4 << 20;
/// How long the payload may take to arrive; agents write it at once and close their end.
const PATIENCE: Duration = Duration::from_secs(2);
/// Largest small file that is read back, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Size from which the error log is set aside, in bytes.
const ERROR_LOG_BYTES: u64 = 256 << 10;
/// Size from which the notification log is set aside, in bytes.
const NOTIFICATION_LOG_BYTES: u64 = 10 << 20;
/// Exit code by which an agent is kept from what it is about to do, as Claude Code reads it.
const REFUSED: u8 = 2;

fn command() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(clap::value_parser!(OsString)).help(help)
    };
    Command::new("hook")
        .about("Take in one event of an agent's hook; the payload comes on standard input")
        .after_help(
            "Prints nothing and exits 0, so that no agent's turn fails by it; 2 only for a question of the orchestrator.",
        )
        .arg(Arg::new("event").required(true).value_name("EVENT").help("The event, as the agent names it"))
        .arg(option("window", "NAME", "The window the agent runs in [default: NEXUS_WINDOW, else the pane's]"))
        .arg(option("state", "DIR", "The state directory [env: NEXUS_STATE_DIR, NEXUS_ROOT]"))
        .arg(
            option("only", "PART", "Do this part only, as often as needed")
                .action(ArgAction::Append)
                .value_parser(Part::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>()),
        )
        .arg(Arg::new("target").long("target").action(ArgAction::SetTrue).help("The window is the orchestrator's"))
}

/// The slow way in (`ng --root DIR hook …`); the same work.
#[expect(clippy::unnecessary_wraps, reason = "the signature of every verb")]
fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let text = |name: &str| args.get_one::<OsString>(name).map(|text| text.to_string_lossy().into_owned());
    let parts = args.get_many::<String>("only").into_iter().flatten();
    let call = Call {
        event: args.get_one::<String>("event").cloned().unwrap_or_default(),
        window: text("window"),
        root: invocation.root.as_ref().map(|root| root.to_string_lossy().into_owned()),
        state: text("state"),
        is_target: args.get_flag("target"),
        parts: parts.filter_map(|name| Part::parse(name)).collect(),
    };
    Ok(call.run())
}

/// Runs without argument parsing; never fails an agent's turn.
pub(super) fn run_fast(args: &[OsString]) -> u8 {
    let mut call = Call::default();
    let mut args = args.iter().map(|arg| arg.to_string_lossy());
    while let Some(arg) = args.next() {
        let mut value = || args.next().map(std::borrow::Cow::into_owned);
        match arg.as_ref() {
            "--window" => call.window = value(),
            "--state" => call.state = value(),
            "--root" => call.root = value(),
            "--only" => call.parts.extend(value().as_deref().and_then(Part::parse)),
            "--target" => call.is_target = true,
            event if call.event.is_empty() => event.clone_into(&mut call.event),
            _ => {}
        }
    }
    // A defect of ours must not show in the agent's pane.
    std::panic::set_hook(Box::new(|_| {}));
    std::panic::catch_unwind(|| call.run()).unwrap_or(0)
}

/// One call of the hook.
#[derive(Debug, Default)]
struct Call {
    /// The event's name from the command line; the payload's own name wins.
    event: String,
    /// `--window`; wins over the environment, which a nested agent inherits.
    window: Option<String>,
    /// `--root`, the nexus.
    root: Option<String>,
    /// `--state`; wins over the root, and over the environment for the same reason.
    state: Option<String>,
    /// `--target`.
    is_target: bool,
    /// `--only`; empty means everything.
    parts: Vec<Part>,
}

impl Call {
    /// Does the work; problems go to the log. Returns the exit code.
    fn run(&self) -> u8 {
        let input = stdin::read_bounded(MAX_PAYLOAD_BYTES, PATIENCE);
        let Some(state) = self.state_dir() else { return 0 };
        let now = Clock::System.now();
        let mut problems = Vec::new();
        let payload = match input {
            Ok(input) if input.is_cut => {
                problems.push(format!("the payload is longer than {MAX_PAYLOAD_BYTES} bytes; only the event is used"));
                Payload::default()
            }
            Ok(input) => match Payload::parse(&input.bytes) {
                Ok(payload) => payload,
                Err(error) => {
                    log(&state, &now, self, &[format!("the payload is not understood: {error}")]);
                    return 0;
                }
            },
            Err(error) => {
                log(&state, &now, self, &[format!("reading the payload: {error}")]);
                return 0;
            }
        };
        let code = self.take_in(&state, &now, payload, &mut problems);
        if !problems.is_empty() {
            log(&state, &now, self, &problems);
        }
        code
    }

    /// Decides and acts on a payload. Returns the exit code.
    fn take_in(&self, state: &StateDir, now: &Now, mut payload: Payload, problems: &mut Vec<String>) -> u8 {
        if payload.hook_event_name.is_empty() {
            payload.hook_event_name.clone_from(&self.event);
        }
        let Some(event) = Event::parse(&payload.hook_event_name) else { return 0 };
        let Some(context) = self.context(state, event, &payload, now, problems) else { return 0 };
        let prior = context.window.as_ref().map(|window| prior(state, window, event)).unwrap_or_default();
        let mut code = 0;
        for effect in effects_of(event, &payload, &context, prior, now) {
            if !self.parts.is_empty() && Part::of(&effect).is_some_and(|part| !self.parts.contains(&part)) {
                continue;
            }
            if let Effect::Refuse { why } = effect {
                render::note(why);
                code = REFUSED;
            } else if let Err(error) = perform(state, &effect, now) {
                problems.push(format!("{}: {error}", place(&effect)));
            }
        }
        code
    }

    /// Where the hook runs; `None` where it is not our concern.
    fn context(
        &self,
        state: &StateDir,
        event: Event,
        payload: &Payload,
        now: &Now,
        problems: &mut Vec<String>,
    ) -> Option<HookContext> {
        let pane = ProcessEnv.get("TMUX_PANE").as_deref().and_then(PaneId::parse);
        let server = ProcessEnv.get("TMUX").as_deref().and_then(server_in).map(str::to_owned);
        if let Some(window) = self.window.clone().filter(|name| !name.is_empty()) {
            // A named window needs the flag: the environment can be inherited from the orchestrator.
            return Some(HookContext { window: Some(WindowName(window)), pane, server, is_target: self.is_target });
        }
        let asked = Asked {
            state,
            root: self.root.as_deref().map(Path::new),
            session_id: &payload.session_id,
            is_turning: matches!(event, Event::SessionStart | Event::UserPromptSubmit),
            now,
        };
        let found = hook_place::find(&asked).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        })?;
        Some(HookContext { window: Some(found.window), pane, server, is_target: self.is_target || found.is_target })
    }

    /// The state directory; `None` if nothing names it, or if it is not there.
    fn state_dir(&self) -> Option<StateDir> {
        let of_root = |root: &str| format!("{root}/monitor/.state");
        let named = self.state.clone().filter(|dir| !dir.is_empty());
        let named = named.or_else(|| self.root.as_deref().filter(|root| !root.is_empty()).map(of_root));
        let dir = named.or_else(|| ProcessEnv.non_empty("NEXUS_STATE_DIR"));
        let dir = dir.or_else(|| ProcessEnv.non_empty("NEXUS_ROOT").as_deref().map(of_root));
        dir.filter(|dir| Path::new(dir).is_dir()).map(StateDir::new)
    }
}

/// Reads what the decision needs. A file that can't be read counts as absent: it is a hint, and is written anew.
fn prior(state: &StateDir, window: &WindowName, event: Event) -> Prior {
    let read = |path: String| files::read_text(&state.at(path), MAX_FILE_BYTES).ok().flatten();
    let mut prior =
        Prior { heartbeat: read(Heartbeat::path(window)).and_then(|text| Heartbeat::parse(&text)), pending_tool: None };
    if event.wants_pending_tool() {
        let text = read(format!("pending-tool/{}.json", window.file_stem()));
        prior.pending_tool = text.and_then(|text| serde_json::from_str(&text).ok());
    }
    prior
}

/// Carries one change out.
fn perform(state: &StateDir, effect: &Effect, now: &Now) -> io::Result<()> {
    match effect {
        Effect::Write { path, text } => files::write_atomic(&state.at(path), text.as_bytes(), Durability::Hint),
        Effect::Receipt { path, text, from_target } => {
            let path = state.at(path);
            if !from_target && path.symlink_metadata().is_ok() {
                return Ok(());
            }
            files::write_atomic(&path, text.as_bytes(), Durability::Hint)
        }
        Effect::Remove { path } => files::remove(&state.at(path)),
        Effect::Touch { path } => touch(&state.at(path), now),
        Effect::Append { path, line } => append_bounded(&state.at(path), line, NOTIFICATION_LOG_BYTES),
        Effect::Decide(record) => decisions::create(state, &WindowName(record.window.clone()), record).map(drop),
        Effect::Close { window, fingerprint } => {
            let note = [("resolved", hook_files::ANSWERED_IN_PANE), ("resolved_at", &now.iso())];
            decisions::close(state, window, fingerprint, &note).map(drop)
        }
        Effect::MarkUnresolved { window } => decisions::mark_unresolved(state, window),
        Effect::Refuse { .. } => Ok(()),
    }
}

/// What a change is about, for the log.
fn place(effect: &Effect) -> String {
    match effect {
        Effect::Write { path, .. } | Effect::Receipt { path, .. } => format!("writing {path}"),
        Effect::Remove { path } => format!("removing {path}"),
        Effect::Touch { path } => format!("touching {path}"),
        Effect::Append { path, .. } => format!("appending to {path}"),
        Effect::Decide(record) => format!("writing decision {}", record.fingerprint),
        Effect::Close { fingerprint, .. } => format!("closing decision {fingerprint}"),
        Effect::MarkUnresolved { .. } => "marking decisions unresolved".into(),
        Effect::Refuse { .. } => "refusing".into(),
    }
}

/// Sets a file's modification time, creating it if need be.
fn touch(path: &Path, now: &Now) -> io::Result<()> {
    let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let open = || OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(no_follow).open(path);
    let file = open().or_else(|error| match (error.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(dir)) => files::create_private_dir(dir).and_then(|()| open()),
        _ => Err(error),
    })?;
    let since = Duration::from_millis(u64::try_from(now.at.millis()).unwrap_or(0));
    file.set_modified(SystemTime::UNIX_EPOCH + since)
}

/// Appends a line; a log that has grown past its size is set aside as `<name>.1` first.
fn append_bounded(path: &Path, line: &str, max_bytes: u64) -> io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|data| data.len() >= max_bytes) {
        let mut aside = path.as_os_str().to_owned();
        aside.push(".1");
        std::fs::rename(path, aside)?;
    }
    files::append_lines(path, &format!("{line}\n"), Durability::Hint)
}

/// Writes the problems of one call as one line. If that fails too, nobody can be told.
fn log(state: &StateDir, now: &Now, call: &Call, problems: &[String]) {
    let text =
        format!("hook {} window={:?}: {}", call.event, call.window.as_deref().unwrap_or(""), problems.join("; "));
    let line: String = text.chars().take(1000).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let _nowhere_left =
        append_bounded(&state.at("hook-errors.log"), &format!("[{}] {line}", now.iso()), ERROR_LOG_BYTES);
}
