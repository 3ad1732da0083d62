//! `ng service`: what a service manager needs to know of this nexus's watcher. Prints; installs and starts nothing.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Arg, ArgMatches, Command};
use serde_json::json;

use super::{Invocation, Verb, current_dir, render};
use crate::logic::instance::unit::{Unit, socket_of};
use crate::sys::env::{self, Env as _};
use crate::sys::liveness::PROGRAM;

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

/// Programs that the watcher calls.
const CALLED: [&str; 2] = ["tmux", "git"];

/// Variables that say where things are, and that a service would not see.
const PLACES: [&str; 2] = ["NEXUS_STATE_DIR", "NEXUS_CONFIG"];

fn command() -> Command {
    Command::new("service")
        .about("Say what a service manager needs to know of the watcher")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("unit").about("Print a systemd user unit for this nexus").arg(
                Arg::new("program")
                    .long("program")
                    .value_name("FILE")
                    .value_parser(clap::value_parser!(PathBuf))
                    .help("The nexus-watcher to run [default: the one beside this ng]"),
            ),
        )
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let Some(("unit", sub)) = args.subcommand() else { return Ok(2) };
    let settings = invocation.settings()?.settings;
    let unit = unit(invocation, sub.get_one::<PathBuf>("program"), &settings.root, settings.interval)?;
    let has_socket = !settings.tmux_sockets.is_empty();
    let text = with_socket(unit, invocation, has_socket)?.render()?;
    if invocation.json {
        render::json(&json!({"name": format!("{PROGRAM}.service"), "text": text}))?;
    } else {
        render::line(text.trim_end());
    }
    Ok(0)
}

/// The unit, by what this shell sees.
fn unit(
    invocation: &Invocation,
    program: Option<&PathBuf>,
    root: &std::path::Path,
    interval: std::time::Duration,
) -> anyhow::Result<Unit> {
    let here = current_dir()?;
    let env = invocation.env();
    let text = |path: &std::path::Path| {
        let text = path.to_str().with_context(|| format!("{} is not UTF-8; move it", path.display()))?;
        Ok::<_, anyhow::Error>(text.to_owned())
    };
    let program = match program {
        Some(given) => here.join(given),
        None => std::env::current_exe().context("finding the path of ng")?.with_file_name(PROGRAM),
    };
    let mut environment = Vec::new();
    for name in PLACES {
        if let Some(value) = env.non_empty(name) {
            environment.push((name, text(&here.join(value))?));
        }
    }
    let mut path: Vec<String> = Vec::new();
    for called in CALLED {
        path.extend(env::folder_of(&env, called).map(|folder| text(&folder)).transpose()?);
    }
    path.extend(program.parent().map(text).transpose()?);
    Ok(Unit {
        root: text(&here.join(root))?,
        program: text(&program)?,
        interval,
        path,
        environment,
        runtime_dir: env.non_empty("XDG_RUNTIME_DIR"),
    })
}

/// Adds where tmux is found. What the configuration file says of it, the service reads itself.
fn with_socket(mut unit: Unit, invocation: &Invocation, is_configured: bool) -> anyhow::Result<Unit> {
    let env = invocation.env();
    let tmpdir = env.non_empty("TMUX_TMPDIR");
    let given = env.non_empty("NEXUS_TMUX_SOCKET").map(|sockets| {
        // A name without a slash is a name among the account's sockets, not a path.
        let whole = |socket: &str| {
            if socket.contains('/') {
                current_dir().map(|here| here.join(socket).display().to_string())
            } else {
                Ok(socket.to_owned())
            }
        };
        let sockets: anyhow::Result<Vec<String>> = sockets.split(',').map(|socket| whole(socket.trim())).collect();
        sockets.map(|sockets| sockets.join(","))
    });
    let socket = match given {
        Some(given) => Some(given?),
        None if is_configured => None,
        None => socket_of(env.non_empty("TMUX").as_deref(), tmpdir.as_deref(), rustix::process::getuid().as_raw()),
    };
    unit.environment.extend(tmpdir.map(|dir| ("TMUX_TMPDIR", dir)));
    unit.environment.extend(socket.map(|socket| ("NEXUS_TMUX_SOCKET", socket)));
    Ok(unit)
}
