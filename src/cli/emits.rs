//! `ng emits`.

use clap::{ArgMatches, Command};

use super::{Invocation, Verb};

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

fn command() -> Command {
    Command::new("emits")
}

fn run(_invocation: &Invocation, _args: &ArgMatches) -> anyhow::Result<u8> {
    anyhow::bail!("not built yet")
}
