//! `ng`: the command of the orchestrator agent and of people. One file a verb; `COMMANDS` lists them.
//!
//! Results go to standard output, everything else to standard error, both through [`render`] only. Exit codes are the
//! table in `docs/contracts.md` §2. A broken pipe is success.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::agents::{ProfileFile, Profiles};
use crate::config::in_force;
use crate::config::load::{self, Loaded};
use crate::config::resolved::Settings;
use crate::daemon::profiles;
use crate::sys::env::{Env, ProcessEnv};
use crate::sys::files::{self, StateDir};

pub mod render;

mod agents;
mod amount;
mod audit;
mod completions;
mod config;
mod decision_ack;
mod demo;
mod emits;
mod hook;
mod hook_place;
mod hooks;
mod log_action;
mod manual;
mod pane_explain;
mod pane_live;
mod pane_report;
mod pane_saved;
mod pane_state;
mod record;
mod replay;
mod send;
mod service;
mod tasks;
mod watcher;
mod watcher_status;

/// One verb of `ng`.
pub(crate) struct Verb {
    /// Arguments and help; its name is the verb.
    pub(crate) command: fn() -> Command,
    /// Runs it; the result is the exit code.
    pub(crate) run: fn(&Invocation, &ArgMatches) -> anyhow::Result<u8>,
    /// Exit code of a usage error: 64 where the exit code is a verdict, else 2.
    pub(crate) usage: u8,
}

/// What every verb is told.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// `--root`, if given.
    pub(crate) root: Option<PathBuf>,
    /// `--json`.
    pub(crate) json: bool,
}

impl Invocation {
    /// The configuration of the nexus that is asked, and where it is.
    ///
    /// Errors: every problem of the configuration, each with its place and key.
    pub(crate) fn settings(&self) -> anyhow::Result<Loaded> {
        Ok(load::load(&self.env(), self.root.as_deref(), &current_dir()?)?)
    }

    /// The settings for a question about the watcher: those that the running one has in force. Where none runs they are
    /// those of the configuration, and where that is broken the defaults, which is said.
    ///
    /// Errors: nothing says which nexus is meant.
    pub(crate) fn settings_of_watcher(&self) -> anyhow::Result<Settings> {
        let state = state_dir(self)?;
        let defaults = |root: &Path| Settings { state_dir: state.path().to_owned(), ..Settings::defaults(root) };
        if let Some(record) = in_force::of_running(&state) {
            let root = load::find_root(&self.env(), self.root.as_deref(), &current_dir()?).unwrap_or_default();
            return Ok(record.settings(&defaults(&root)));
        }
        match self.settings() {
            Ok(loaded) => Ok(loaded.settings),
            Err(error) => {
                render::note(&format!(
                    "ng: the cadences are the defaults, since the configuration can't be used: {error:#}"
                ));
                Ok(defaults(&self.root.clone().unwrap_or_default()))
            }
        }
    }

    /// The profiles of agents of the nexus that is asked; the built-in ones where there is none. A file that can't be
    /// used is said, and changes nothing.
    ///
    /// Errors: a built-in profile does not load; a build like that fails its tests.
    pub(crate) fn profiles(&self) -> anyhow::Result<Profiles> {
        self.profiles_with(&[])
    }

    /// The same with further files, which may not be bad.
    ///
    /// Errors: what is wrong with one of them.
    pub(crate) fn profiles_with(&self, given: &[&PathBuf]) -> anyhow::Result<Profiles> {
        let files = agents::with_given(self.profile_files(), given);
        let (profiles, problems) = Profiles::with_files(&files)?;
        for problem in problems {
            if given.iter().any(|path| **path == problem.path) {
                anyhow::bail!("{problem}");
            }
            render::note(&format!("ng: {problem}; the file is left out (`ng agents check`)"));
        }
        Ok(profiles)
    }

    /// The profile files of the nexus that is asked. Without a nexus there are none; a broken configuration leaves the
    /// usual place.
    pub(crate) fn profile_files(&self) -> Vec<ProfileFile> {
        if let Ok(loaded) = self.settings() {
            return profiles::files(&loaded.settings);
        }
        let root = current_dir().and_then(|here| Ok(load::find_root(&self.env(), self.root.as_deref(), &here)?));
        root.map(|root| profiles::files(&Settings::defaults(&root))).unwrap_or_default()
    }

    /// The environment that this verb sees.
    fn env(&self) -> VerbEnv {
        VerbEnv { has_root: self.root.is_some() }
    }
}

/// The current directory.
fn current_dir() -> anyhow::Result<PathBuf> {
    std::env::current_dir().context("reading the current directory (does it still exist?)")
}

/// Every verb, by name.
pub(crate) const COMMANDS: &[Verb] = &[
    agents::VERB,
    audit::VERB,
    completions::VERB,
    config::VERB,
    decision_ack::VERB,
    demo::VERB,
    emits::VERB,
    hook::VERB,
    hooks::VERB,
    log_action::VERB,
    manual::VERB,
    pane_state::VERB,
    record::VERB,
    replay::VERB,
    send::VERB,
    service::VERB,
    tasks::VERB,
    watcher::VERB,
    watcher_status::VERB,
];

/// The whole command line.
pub fn command() -> Command {
    let mut ng = Command::new("ng")
        .about("Ask the nexus watcher, and answer it")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .arg(
            Arg::new("root")
                .long("root")
                .global(true)
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .help("The nexus to ask (wins over NEXUS_ROOT)"),
        )
        .arg(Arg::new("json").long("json").global(true).action(ArgAction::SetTrue).help("Answer in JSON"));
    for verb in COMMANDS {
        ng = ng.subcommand((verb.command)());
    }
    ng
}

/// Runs `ng` with these arguments (the first is the program's name).
///
/// `ng hook` is dispatched before argument parsing, since it runs inside every tool call of an agent.
pub fn run(args: Vec<OsString>) -> ExitCode {
    let asks_for_help = args.get(2).is_none_or(|arg| arg == "--help" || arg == "-h");
    if args.get(1).is_some_and(|verb| verb == "hook") && !asks_for_help {
        return ExitCode::from(hook::run_fast(&args[2..]));
    }
    let verb_named = args.iter().skip(1).filter_map(|arg| arg.to_str()).find_map(verb_by_name);
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            let usage = verb_named.map_or(2, |verb| verb.usage);
            let program =
                verb_named.map_or_else(|| "ng".to_owned(), |verb| format!("ng {}", (verb.command)().get_name()));
            return ExitCode::from(render::usage_error(&program, &error, usage));
        }
    };
    let Some((name, sub)) = matches.subcommand() else { return ExitCode::from(2) };
    let verb = verb_by_name(name).expect("clap only accepts registered verbs");
    let invocation = Invocation { root: sub.get_one("root").cloned(), json: sub.get_flag("json") };
    match (verb.run)(&invocation, sub) {
        Ok(code) => {
            // Where the code is a verdict, 1 would be one.
            let lost = if verb.usage == 64 { 64 } else { 1 };
            ExitCode::from(render::exit_code(&format!("ng {name}"), code, lost))
        }
        Err(error) => ExitCode::from(render::failure(name, &error)),
    }
}

/// The state directory, without reading the configuration: `NEXUS_STATE_DIR`, else below the root.
///
/// Errors: no nexus is found, or the directory can't be looked into, which must not pass for an empty one.
pub(crate) fn state_dir(invocation: &Invocation) -> anyhow::Result<StateDir> {
    let here = current_dir()?;
    let env = invocation.env();
    // A hook or a script that names the state directory needs no root.
    let root = match env.non_empty("NEXUS_STATE_DIR") {
        Some(_) => here.clone(),
        None => load::find_root(&env, invocation.root.as_deref(), &here)?,
    };
    let state = StateDir::new(load::state_dir(&env, &root, &here)?);
    files::check_dir(state.path()).with_context(|| {
        let path = state.path().display();
        format!("cannot look into the state directory {path} (check its path and permissions, or set NEXUS_STATE_DIR)")
    })?;
    Ok(state)
}

/// The environment of a verb: `--root` wins over every variable that would lead elsewhere.
struct VerbEnv {
    /// Whether `--root` was given.
    has_root: bool,
}

impl VerbEnv {
    /// Whether a variable would lead elsewhere than the root that was given.
    fn hides(&self, name: &str) -> bool {
        self.has_root && matches!(name, "NEXUS_ROOT" | "NEXUS_STATE_DIR" | "NEXUS_CONFIG")
    }
}

impl Env for VerbEnv {
    fn get(&self, name: &str) -> Option<String> {
        if self.hides(name) { None } else { ProcessEnv.get(name) }
    }

    fn is_garbled(&self, name: &str) -> bool {
        !self.hides(name) && ProcessEnv.is_garbled(name)
    }
}

/// The verb with this name.
fn verb_by_name(name: &str) -> Option<&'static Verb> {
    COMMANDS.iter().find(|verb| (verb.command)().get_name() == name)
}
