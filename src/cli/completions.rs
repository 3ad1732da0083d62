//! `ng completions`: what a shell completes after `ng`. Made from the table of verbs, so it can't be behind it.

use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;
use serde_json::json;

use super::{Invocation, Verb, render};

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

fn command() -> Command {
    Command::new("completions").about("Print a completion script for a shell").arg(
        Arg::new("shell")
            .value_name("SHELL")
            .required(true)
            .value_parser(clap::value_parser!(Shell))
            .help("bash, elvish, fish, powershell or zsh"),
    )
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let Some(shell) = args.get_one::<Shell>("shell") else { return Ok(2) };
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut super::command(), "ng", &mut script);
    let text = String::from_utf8_lossy(&script);
    if invocation.json {
        render::json(&json!({"shell": shell.to_string(), "text": text}))?;
    } else {
        render::line(text.trim_end());
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_every_verb() {
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut super::super::command(), "ng", &mut script);
            let script = String::from_utf8(script).unwrap();
            for verb in super::super::COMMANDS {
                let name = (verb.command)().get_name().to_owned();
                assert!(script.contains(&name), "{shell}: {name}");
            }
        }
    }
}
