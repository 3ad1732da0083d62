//! `ng hooks`: set up the hooks of agents, and say whether they are.
//!
//! A spawned agent gets a settings file of its own (`settings`); the settings that a person owns are touched by
//! `install` and `uninstall` only, and only those that were named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};

use super::{Invocation, Verb, render};
use crate::logic::hook::{HookCommand, HookLine, Hooked, Version, version_of, wanted};
use crate::logic::ids::WindowName;
use crate::logic::pane::Profile;
use crate::sys::agent_program;
use crate::sys::env::{Env as _, ProcessEnv};
use crate::sys::files::StateDir;

mod install;
mod settings;
mod status;

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

fn command() -> Command {
    Command::new("hooks")
        .about("Set up the hooks of agents")
        .subcommand_required(true)
        .subcommand(install::install_command())
        .subcommand(settings::command())
        .subcommand(status::command())
        .subcommand(install::uninstall_command())
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    match args.subcommand() {
        Some(("install", args)) => install::install(invocation, args),
        Some(("settings", args)) => settings::run(invocation, args),
        Some(("status", args)) => status::run(invocation, args),
        Some(("uninstall", args)) => install::uninstall(invocation, args),
        _ => Ok(2),
    }
}

/// The arguments that name a settings file.
fn place_args(command: Command) -> Command {
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(clap::value_parser!(PathBuf)).help(help)
    };
    command
        .arg(
            Arg::new("user")
                .long("user")
                .action(ArgAction::SetTrue)
                .help("Your own settings: CLAUDE_CONFIG_DIR or ~/.claude, settings.json"),
        )
        .arg(path("project", "DIR", "The personal settings of a project: DIR/.claude/settings.local.json"))
        .arg(path("settings", "FILE", "This settings file"))
        .group(ArgGroup::new("place").args(["user", "project", "settings"]))
}

/// The arguments that name an agent and its version.
fn agent_args(command: Command) -> Command {
    command
        .arg(Arg::new("agent").long("agent").value_name("AGENT").default_value("claude").help("The agent program"))
        .arg(
            Arg::new("agent-version")
                .long("agent-version")
                .value_name("V")
                .help("Its version [default: that of the installed program]"),
        )
        .arg(
            Arg::new("program")
                .long("program")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Its program [default: the first in PATH]"),
        )
}

/// The settings file that the arguments name; `None` if they name none.
fn place(args: &ArgMatches) -> anyhow::Result<Option<PathBuf>> {
    if let Some(file) = args.get_one::<PathBuf>("settings") {
        return Ok(Some(file.clone()));
    }
    if let Some(dir) = args.get_one::<PathBuf>("project") {
        if !dir.is_dir() {
            bail!("--project {}: there is no such folder", dir.display());
        }
        // Not settings.json, which a project shares with others: our paths are of this machine.
        return Ok(Some(dir.join(".claude/settings.local.json")));
    }
    if args.get_flag("user") { user_settings().map(Some) } else { Ok(None) }
}

/// The user's own settings file.
fn user_settings() -> anyhow::Result<PathBuf> {
    let home = || ProcessEnv.non_empty("HOME").map(|home| Path::new(&home).join(".claude"));
    let dir = ProcessEnv.non_empty("CLAUDE_CONFIG_DIR").map(PathBuf::from).or_else(home);
    let dir = dir.context("neither CLAUDE_CONFIG_DIR nor HOME is set; name the file with --settings FILE")?;
    Ok(dir.join("settings.json"))
}

/// An agent as far as its hooks go.
struct Agent {
    /// Its profile.
    profile: Arc<Profile>,
    /// Its version, if it could be told.
    version: Option<Version>,
    /// That version or why there is none, for people.
    shown: String,
}

impl Agent {
    /// The events that this version has.
    fn events(&self) -> Vec<&Hooked> {
        wanted(&self.profile.hook_events, self.version)
    }

    /// The version as `2.1.332`.
    fn version_text(&self) -> Option<String> {
        self.version.map(|(major, minor, patch)| format!("{major}.{minor}.{patch}"))
    }
}

/// The agent that the arguments name, with its version: as given, else by where its program lies, else by its package,
/// else as it says itself.
fn agent(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<Agent> {
    let name = args.get_one::<String>("agent").map_or("claude", String::as_str);
    let profile = hooked_profile(invocation, name)?;
    let known = |text: &str, source: &str| {
        let version = version_of(text);
        let shown = match version {
            Some((major, minor, patch)) => format!("{name} {major}.{minor}.{patch} ({source})"),
            None => format!("{name}, whose version can't be told ({source}: {:?})", text.lines().next().unwrap_or("")),
        };
        Agent { profile: Arc::clone(&profile), version, shown }
    };
    if let Some(given) = args.get_one::<String>("agent-version") {
        if version_of(given).is_none() {
            bail!("--agent-version {given:?}: not of the form 2.1.332");
        }
        return Ok(known(given, "as given"));
    }
    let program_name = profile.process.exe_names.first().map_or(name, String::as_str);
    let program = args.get_one::<PathBuf>("program").cloned();
    let program = program.or_else(|| agent_program::find(program_name, &ProcessEnv.get("PATH").unwrap_or_default()));
    let Some(program) = program else {
        let shown = format!("{name}, whose version can't be told: there is no {program_name} in PATH");
        return Ok(Agent { profile, version: None, shown });
    };
    let real = program.canonicalize().unwrap_or_else(|_| program.clone());
    if let Some(version) = profile.process.version(&real.to_string_lossy(), &[]) {
        return Ok(known(&version, &format!("by its path, {}", real.display())));
    }
    let package = profile.process.packages.first();
    if let Some(version) = package.and_then(|package| agent_program::packaged_version(&program, package)) {
        return Ok(known(&version, &format!("by its package, {}", real.display())));
    }
    Ok(match agent_program::ask_version(&program) {
        Ok(said) => known(&said, &format!("as {} says", program.display())),
        Err(why) => {
            let shown = format!("{name}, whose version can't be told: {} --version: {why}", program.display());
            Agent { profile, version: None, shown }
        }
    })
}

/// The profile of an agent whose hooks we can set up.
fn hooked_profile(invocation: &Invocation, name: &str) -> anyhow::Result<Arc<Profile>> {
    let profiles = invocation.profiles()?;
    match profiles.get(name) {
        Some(profile) if !profile.hook_events.is_empty() => Ok(Arc::clone(profile)),
        found => {
            let able = profiles.iter().filter(|profile| !profile.hook_events.is_empty());
            let able: Vec<&str> = able.map(|profile| profile.name.as_str()).collect();
            let what = if found.is_some() { "its hooks can't be set up" } else { "no such agent" };
            bail!("--agent {name}: {what}; known are: {}", able.join(", "))
        }
    }
}

/// The command that the hooks run: this program, by absolute path.
fn hook_command(
    invocation: &Invocation,
    state: &StateDir,
    window: Option<&WindowName>,
    is_target: bool,
) -> anyhow::Result<HookCommand> {
    let ng = std::env::current_exe().context("finding the path of ng")?;
    let state_dir = std::path::absolute(state.path()).context("finding the place of the state directory")?;
    let text = |path: &Path| {
        // A program that was replaced while it runs shows up with this suffix; its successor has the name.
        let text = path.to_str().with_context(|| format!("{} is not UTF-8; move it", path.display()))?;
        Ok::<_, anyhow::Error>(text.strip_suffix(" (deleted)").unwrap_or(text).to_owned())
    };
    // The usual place tells the nexus; a hook that finds its window by itself needs the configuration.
    let root = if window.is_some() || state_dir.ends_with("monitor/.state") {
        None
    } else {
        let loaded = invocation.settings()?;
        Some(text(&std::path::absolute(&loaded.settings.root).context("finding the place of the nexus")?)?)
    };
    Ok(HookCommand {
        ng: text(&ng)?,
        root,
        state_dir: text(&state_dir)?,
        window: window.map(ToString::to_string),
        is_target,
    })
}

/// Whether a hook belongs to this nexus, or to one that is gone.
fn is_ours(state: &StateDir) -> impl Fn(&HookLine) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    let own = real(state.path());
    move |line| match real(Path::new(&line.state_dir)) {
        Some(found) => own.as_ref() == Some(&found),
        None => true,
    }
}

/// Says something that is not a result.
fn note(text: &str) {
    render::note(&format!("ng hooks: {text}"));
}
