//! `ng hooks settings`: the settings file with which a spawned agent calls `ng hook`.
//!
//! It is a file of its own, given to the agent on its command line; the user's settings are never touched.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Invocation, hook_command, hooked_profile, render};
use crate::logic::hook::{version_of, wanted};
use crate::logic::ids::WindowName;
use crate::sys::files::{self, Durability, StateDir};

pub(super) fn command() -> Command {
    Command::new("settings")
        .about("Write the settings file of a window's agent and print its path")
        .after_help("Example: claude --settings \"$(ng hooks settings --window w3 --agent-version 2.1.332)\"")
        .arg(Arg::new("window").long("window").value_name("NAME").required(true).help("The window the agent runs in"))
        .arg(Arg::new("target").long("target").action(ArgAction::SetTrue).help("The window is the orchestrator's"))
        .arg(Arg::new("agent").long("agent").value_name("AGENT").default_value("claude").help("The agent program"))
        .arg(
            Arg::new("agent-version")
                .long("agent-version")
                .value_name("V")
                .help("Its version; without it, only events that every version knows are named"),
        )
        .arg(
            Arg::new("out")
                .long("out")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Where to write; `-` prints the settings instead [default: STATE/hook-settings/WINDOW.json]"),
        )
}

pub(super) fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let text = |name: &str| args.get_one::<String>(name).cloned();
    let window = WindowName(text("window").unwrap_or_default());
    let state = super::super::state_dir(invocation)?;
    let profile = hooked_profile(invocation, &text("agent").unwrap_or_default())?;
    let command = hook_command(invocation, &state, Some(&window), args.get_flag("target"))?;
    let events = wanted(&profile.hook_events, text("agent-version").as_deref().and_then(version_of));
    let settings = serde_json::to_string_pretty(&command.settings(&events))?;
    let out = args.get_one::<PathBuf>("out");
    if out.is_some_and(|out| out == Path::new("-")) {
        render::line(&settings);
        return Ok(0);
    }
    let out = out.cloned().unwrap_or_else(|| settings_path(&state, &window));
    let out = std::path::absolute(&out).with_context(|| format!("finding the place of {}", out.display()))?;
    // The hook makes no state directory.
    files::create_private_dir(state.path())
        .with_context(|| format!("creating the state directory {}", state.path().display()))?;
    files::write_atomic(&out, format!("{settings}\n").as_bytes(), Durability::Hint)
        .with_context(|| format!("writing the hook settings {}", out.display()))?;
    if invocation.json {
        render::json(&serde_json::json!({"file": out.display().to_string()}))?;
    } else {
        render::line(&out.display().to_string());
    }
    Ok(0)
}

/// Where a window's settings file stands.
fn settings_path(state: &StateDir, window: &WindowName) -> PathBuf {
    state.at(format!("hook-settings/{}.json", window.file_stem()))
}
