//! `ng hooks settings`: the settings file with which a spawned agent calls `ng hook`.
//!
//! It is a file of its own, given to the agent on its command line; the user's settings are never touched.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Invocation, Verb, render};
use crate::agents::Profiles;
use crate::logic::hook::{HookCommand, version_of, wanted};
use crate::logic::ids::WindowName;
use crate::sys::files::{self, Durability, StateDir};

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

fn command() -> Command {
    let settings = Command::new("settings")
        .about("Write the settings file of a window's agent and print its path")
        .after_help("Example: claude --settings \"$(ng hooks settings --window w3 --agent-version 2.1.332)\"")
        .arg(Arg::new("window").long("window").value_name("NAME").required(true).help("The window the agent runs in"))
        .arg(Arg::new("target").long("target").action(ArgAction::SetTrue).help("The window is the orchestrator's"))
        .arg(
            Arg::new("agent")
                .long("agent")
                .value_name("AGENT")
                .value_parser(["claude"])
                .default_value("claude")
                .help("The agent program"),
        )
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
        );
    Command::new("hooks").about("Set up the hooks of agents").subcommand_required(true).subcommand(settings)
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let Some(("settings", args)) = args.subcommand() else { return Ok(2) };
    let text = |name: &str| args.get_one::<String>(name).cloned();
    let window = WindowName(text("window").unwrap_or_default());
    let state = super::state_dir(invocation)?;
    let command = hook_command(&state, &window, args.get_flag("target"))?;
    let profiles = Profiles::builtin()?;
    let events = profiles.get(&text("agent").unwrap_or_default()).map(|profile| &profile.hook_events);
    let version = text("agent-version").as_deref().and_then(version_of);
    let events = wanted(events.map(Vec::as_slice).unwrap_or_default(), version);
    let settings = serde_json::to_string_pretty(&command.settings(&events))?;
    let out = args.get_one::<PathBuf>("out");
    if out.is_some_and(|out| out == Path::new("-")) {
        render::line(&settings);
        return Ok(0);
    }
    let out = out.cloned().unwrap_or_else(|| settings_path(&state, &window));
    let out = std::path::absolute(&out).with_context(|| format!("finding the place of {}", out.display()))?;
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

/// The command that the hooks run: this program, by absolute path.
fn hook_command(state: &StateDir, window: &WindowName, is_target: bool) -> anyhow::Result<HookCommand> {
    let ng = std::env::current_exe().context("finding the path of ng")?;
    let state_dir = std::path::absolute(state.path()).context("finding the place of the state directory")?;
    let text = |path: &Path| {
        // A program that was replaced while it runs shows up with this suffix; its successor has the name.
        let text = path.to_str().with_context(|| format!("{} is not UTF-8; move it", path.display()))?;
        Ok::<_, anyhow::Error>(text.strip_suffix(" (deleted)").unwrap_or(text).to_owned())
    };
    Ok(HookCommand {
        ng: text(&ng)?,
        root: None,
        state_dir: text(&state_dir)?,
        window: Some(window.to_string()),
        is_target,
    })
}
