//! `ng watcher-status`.

use clap::{ArgMatches, Command};

use super::{Invocation, Verb};

pub(super) const VERB: Verb = Verb { command, run, usage: 64 };

fn command() -> Command {
    Command::new("watcher-status")
}

fn run(_invocation: &Invocation, _args: &ArgMatches) -> anyhow::Result<u8> {
    anyhow::bail!("not built yet")
}
