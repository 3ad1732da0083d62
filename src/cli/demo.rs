//! `ng demo`: small programs that behave like agents, for trials and tests.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use super::{Invocation, Verb};
use crate::demo::{self, DialogKind, HookTarget, Options, Role};
use crate::sys::clock::Clock;
use crate::sys::env::{Env as _, ProcessEnv};

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

fn command() -> Command {
    let switch =
        |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        text(name, value, help).value_parser(value_parser!(PathBuf))
    };
    let number = |name: &'static str, value: &'static str, help: &'static str| {
        text(name, value, help).value_parser(value_parser!(u32))
    };
    let agent = Command::new("agent")
        .about("Behave like a coding agent in this terminal")
        .arg(
            text("role", "ROLE", "What it plays")
                .value_parser(PossibleValuesParser::new(Role::NAMES.map(|(name, _)| name)))
                .default_value("idle"),
        )
        .arg(switch("act", "Run the decision-ack commands of the reports it gets"))
        .arg(switch("busy", "Begin with a turn that runs until told"))
        .arg(number("busy-for", "SECONDS", "Begin with a turn of this length"))
        .arg(switch("canonical", "Leave the terminal in line mode"))
        .arg(path("control", "PIPE", "Read commands from this named pipe; made if missing"))
        .arg(
            text("dialog", "KIND", "Begin with this dialog")
                .value_parser(PossibleValuesParser::new(DialogKind::NAMES.map(|(name, _)| name))),
        )
        .arg(text("draft", "TEXT", "Begin with this text in the input row"))
        .arg(number("drop-enter", "N", "Ignore the first N Enters"))
        .arg(number("enter-dead-ms", "N", "Take an Enter this soon after a paste for a line break"))
        .arg(text("ghost", "TEXT", "Show this suggestion in the empty input row"))
        .arg(switch("hooks", "Run `ng hook` as a real agent does").requires("window").requires("state"))
        .arg(switch("inline", "Draw below the scrollback, not on the alternate screen"))
        .arg(path("log", "FILE", "Log what is read, sent and answered, as JSON lines"))
        .arg(switch("no-bracketed", "Do not ask for framed pastes"))
        .arg(switch("no-collapse", "Show long pastes whole in the input row"))
        .arg(text("session-id", "ID", "Session id in payloads and records"))
        .arg(path("state", "DIR", "State directory for the hooks"))
        .arg(switch("target", "Tell the hooks that this is the target window"))
        .arg(path("transcript", "FILE", "Append session records to this file"))
        .arg(switch("vim", "Vim keys, starting in normal mode"))
        .arg(text("window", "NAME", "Window name for the hooks"));
    Command::new("demo")
        .about("Run a small program that behaves like an agent, for trials without an account")
        .subcommand_required(true)
        .subcommand(agent)
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let (_, args) = args.subcommand().context("`ng demo` needs the name of a program: agent")?;
    demo::run(options(invocation, args)?)
}

fn options(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<Options> {
    let here = std::env::current_dir().context("finding the working directory")?;
    let text = |name: &str| args.get_one::<String>(name).cloned();
    let path = |name: &str| args.get_one::<PathBuf>(name).map(|path| here.join(path));
    let number = |name: &str| args.get_one::<u32>(name).copied();
    let root = invocation.root.clone().or_else(|| ProcessEnv.non_empty("NEXUS_ROOT").map(PathBuf::from));
    let role = text("role").and_then(|name| Role::by_name(&name)).unwrap_or_default();
    let hooks = match (args.get_flag("hooks"), text("window"), path("state")) {
        (true, Some(window), Some(state_dir)) => Some(HookTarget {
            program: std::env::current_exe().context("finding our own program for the hooks")?,
            window,
            state_dir,
            target: args.get_flag("target") || role == Role::Orchestrator,
        }),
        _ => None,
    };
    Ok(Options {
        role,
        act: args.get_flag("act"),
        root: here.join(root.unwrap_or_default()),
        inline: args.get_flag("inline"),
        enter_dead: Duration::from_millis(number("enter-dead-ms").unwrap_or(0).into()),
        drop_enter: number("drop-enter").unwrap_or(0),
        vim: args.get_flag("vim"),
        busy: args.get_flag("busy"),
        busy_for: number("busy-for").map(|seconds| Duration::from_secs(seconds.into())),
        ghost: text("ghost"),
        draft: text("draft").map(|draft| draft.replace("\\n", "\n")),
        canonical: args.get_flag("canonical"),
        no_bracketed: args.get_flag("no-bracketed"),
        collapse: !args.get_flag("no-collapse"),
        dialog: text("dialog").and_then(|name| DialogKind::by_name(&name)),
        log: path("log"),
        control: path("control"),
        hooks,
        transcript: path("transcript"),
        session_id: text("session-id").unwrap_or_else(session_id),
    })
}

/// An id in the form of a UUID, different for every process.
fn session_id() -> String {
    let at = Clock::System.now().at.millis();
    format!("{:08x}-0000-4000-8000-{:012x}", std::process::id(), at & 0xffff_ffff_ffff)
}
