//! `ng pane-state`.

use clap::{ArgMatches, Command};

use super::{Invocation, Verb};

pub(super) const VERB: Verb = Verb { command, run, usage: 64 };

fn command() -> Command {
    Command::new("pane-state")
}

fn run(_invocation: &Invocation, _args: &ArgMatches) -> anyhow::Result<u8> {
    anyhow::bail!("not built yet")
}
