//! `ng hook`.

use clap::{ArgMatches, Command};

use super::{Invocation, Verb};

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

fn command() -> Command {
    Command::new("hook")
}

fn run(_invocation: &Invocation, _args: &ArgMatches) -> anyhow::Result<u8> {
    anyhow::bail!("not built yet")
}

/// Runs without argument parsing; never fails an agent's turn.
pub(super) fn run_fast(_args: &[std::ffi::OsString]) -> u8 {
    0
}
