//! `ng hooks install` and `uninstall`: put our hooks into settings that somebody owns, and take them out again.
//!
//! The first change keeps a copy of the file as it was; the undo brings those bytes back where nothing else was changed
//! since, and else edits ours out.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};
use similar::TextDiff;

use super::{Agent, Invocation, agent, agent_args, hook_command, is_ours, note, place, place_args, render};
use crate::logic::hook::{self, Edited, commands_of};
use crate::sys::files;
use crate::sys::settings_file::SettingsFile;

pub(super) fn install_command() -> Command {
    let command = Command::new("install")
        .about("Put our hooks into a settings file, for every agent that reads it")
        .after_help("Nothing is written unless one of --user, --project and --settings names the file. Example: ng hooks install --user --dry-run")
        .arg(Arg::new("dry-run").long("dry-run").action(ArgAction::SetTrue).help("Show the change, write nothing"));
    agent_args(place_args(command))
}

pub(super) fn uninstall_command() -> Command {
    let command = Command::new("uninstall")
        .about("Take our hooks out of a settings file")
        .arg(Arg::new("dry-run").long("dry-run").action(ArgAction::SetTrue).help("Show the change, write nothing"))
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("Also those of every other nexus"));
    place_args(command)
}

/// Puts them in.
pub(super) fn install(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let Some(path) = named(args, "install")? else { return Ok(2) };
    let state = super::super::state_dir(invocation)?;
    let command = hook_command(invocation, &state, None, false)?;
    let agent = agent(invocation, args)?;
    let events = agent.events();
    let is_ours = is_ours(&state);
    let file = read(&path)?;
    let had = file.text().unwrap_or_default();
    let edited = hook::install(had, &command, &events, &is_ours).map_err(|mistake| not_settings(&file, &mistake))?;
    let is_first = !parsed(had).is_some_and(|settings| commands_of(&settings).iter().any(&is_ours));
    if agent.version.is_none() {
        note(&format!("{}; only the events that every version knows are set up. Say --agent-version", agent.shown));
    }
    if is_first && parsed(had).is_some_and(|settings| calls_the_original(&settings)) {
        note(&format!(
            "{} calls hook scripts of the original tools too; what they and these tell is told twice",
            file.path().display()
        ));
    }
    if !args.get_flag("dry-run") && !edited.changes.is_empty() {
        // The hook makes no state directory.
        files::create_private_dir(state.path())
            .with_context(|| format!("creating the state directory {}", state.path().display()))?;
        if is_first {
            file.set_aside().with_context(|| format!("keeping a copy, {}", file.aside().display()))?;
        }
        file.replace(&edited.text).with_context(|| writing(&file))?;
    }
    say(invocation, args, &file, &edited, Some(&agent), None)
}

/// Takes them out.
pub(super) fn uninstall(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let Some(path) = named(args, "uninstall")? else { return Ok(2) };
    let state = super::super::state_dir(invocation)?;
    let is_all = args.get_flag("all");
    let is_own = is_ours(&state);
    let is_ours = move |line: &hook::HookLine| is_all || is_own(line);
    let file = read(&path)?;
    let Some(had) = file.text() else {
        let none = Edited { text: String::new(), changes: Vec::new() };
        return say(invocation, args, &file, &none, None, None);
    };
    let mut edited = hook::uninstall(had, &is_ours).map_err(|mistake| not_settings(&file, &mistake))?;
    let before = file.read_aside().with_context(|| format!("reading the copy {}", file.aside().display()))?;
    let same = |a: &str, b: &str| parsed(a).is_some() && parsed(a) == parsed(b);
    let is_whole = before.as_deref().is_some_and(|before| same(before, &edited.text));
    if let Some(before) = before.as_deref().filter(|_| is_whole) {
        before.clone_into(&mut edited.text);
    }
    // A file that only we have written to was not there before.
    let is_gone = before.is_none() && parsed(&edited.text).is_some_and(|settings| settings == json!({}));
    if !args.get_flag("dry-run") && !edited.changes.is_empty() {
        if is_gone {
            file.remove().with_context(|| format!("removing {}", file.path().display()))?;
        } else {
            file.replace(&edited.text).with_context(|| writing(&file))?;
        }
        if is_whole {
            files::remove(&file.aside()).with_context(|| format!("removing the copy {}", file.aside().display()))?;
        }
    }
    if is_gone {
        edited.text.clear();
    }
    let kept = before.is_some() && !is_whole && !edited.changes.is_empty();
    say(invocation, args, &file, &edited, None, kept.then(|| file.aside()))
}

/// The file that the arguments name; `None` with a word about it if they name none.
fn named(args: &ArgMatches, verb: &str) -> anyhow::Result<Option<PathBuf>> {
    let path = place(args)?;
    if path.is_none() {
        note(&format!("{verb}: say which settings: --user, --project DIR or --settings FILE"));
    }
    Ok(path)
}

/// Reads the settings.
fn read(path: &Path) -> anyhow::Result<SettingsFile> {
    SettingsFile::read(path).with_context(|| format!("reading the settings {}", path.display()))
}

/// What was being done when a write failed.
fn writing(file: &SettingsFile) -> String {
    format!("writing the settings {}", file.path().display())
}

/// The settings are no settings.
fn not_settings(file: &SettingsFile, mistake: &hook::Mistake) -> anyhow::Error {
    let path = file.path().display();
    anyhow::anyhow!(
        "{path}:{}:{}: {}; nothing was written. Correct the file first",
        mistake.line,
        mistake.column,
        mistake.what
    )
}

/// The settings as a value. An empty file is one without settings.
fn parsed(text: &str) -> Option<Value> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Some(json!({}));
    }
    serde_json::from_str(text).ok()
}

/// Whether a settings file calls the hook scripts that the original tools have.
fn calls_the_original(settings: &Value) -> bool {
    let text = settings["hooks"].to_string();
    ["monitor/worker-heartbeat.sh", "monitor/hooks/"].iter().any(|script| text.contains(script))
}

/// Says what was or would be changed.
fn say(
    invocation: &Invocation,
    args: &ArgMatches,
    file: &SettingsFile,
    edited: &Edited,
    agent: Option<&Agent>,
    kept: Option<PathBuf>,
) -> anyhow::Result<u8> {
    let is_dry = args.get_flag("dry-run");
    let path = file.path().display();
    if invocation.json {
        let events: Vec<Value> =
            edited.changes.iter().map(|(event, change)| json!({"event": event, "change": change.word()})).collect();
        let mut document = json!({"file": path.to_string(), "changed": !events.is_empty() && !is_dry, "dry_run": is_dry, "events": events});
        if let Some(agent) = agent {
            document["agent"] = agent.profile.name.clone().into();
            document["agent_version"] = agent.version_text().into();
        }
        render::json(&document)?;
        return Ok(0);
    }
    let whom = agent.map(|agent| format!(" for {}", agent.shown)).unwrap_or_default();
    if edited.changes.is_empty() {
        let count = agent.map(|agent| agent.events().len());
        render::line(&match count {
            Some(count) => format!("nothing to change: {path} has all {count} hooks{whom}"),
            None => format!("nothing to change: {path} has no hooks of ours"),
        });
        return Ok(0);
    }
    if is_dry {
        let had = file.text().unwrap_or_default();
        let shown = file.path().display().to_string();
        let diff = TextDiff::from_lines(had, &edited.text).unified_diff().header(&shown, &shown).to_string();
        render::line(diff.trim_end());
        return Ok(0);
    }
    for (event, change) in &edited.changes {
        render::line(&format!("{:8} {event}", change.word()));
    }
    if edited.text.is_empty() {
        render::line(&format!("{path} is gone: only our hooks were in it"));
    } else {
        render::line(&format!("written: {path}{whom}"));
    }
    if let Some(kept) = kept {
        note(&format!(
            "the file was changed otherwise since the install; the copy from before it stays: {}",
            kept.display()
        ));
    }
    if agent.is_some() {
        note("agents that run already keep the hooks they started with");
    }
    Ok(0)
}
