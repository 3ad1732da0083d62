//! `ng manual`: the manual pages of `ng` and of each of its verbs, made from the table of verbs.

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::json;

use super::{COMMANDS, Invocation, Verb, render};

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

fn command() -> Command {
    Command::new("manual")
        .about("Print a manual page, for man -l or for an installer")
        .arg(Arg::new("verb").value_name("VERB").help("The page of this verb [default: that of ng]"))
        .arg(Arg::new("list").long("list").action(ArgAction::SetTrue).help("Print the names of the pages instead"))
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    if args.get_flag("list") {
        let names: Vec<String> = COMMANDS.iter().map(|verb| (verb.command)().get_name().to_owned()).collect();
        if invocation.json {
            render::json(&names)?;
        } else {
            for name in names {
                render::line(&name);
            }
        }
        return Ok(0);
    }
    let page = page(args.get_one::<String>("verb").map(String::as_str))?;
    if invocation.json {
        render::json(&json!({"text": page}))?;
    } else {
        render::line(page.trim_end());
    }
    Ok(0)
}

/// A page in the language of `man`.
fn page(verb: Option<&str>) -> anyhow::Result<String> {
    let mut ng = super::command();
    ng.build();
    let command = match verb {
        None => ng,
        Some(verb) => {
            let found = ng.find_subcommand(verb);
            found.with_context(|| format!("there is no verb {verb}; list them with: ng manual --list"))?.clone()
        }
    };
    let mut text = Vec::new();
    let name = verb.map_or_else(|| "ng".to_owned(), |verb| format!("ng-{verb}"));
    clap_mangen::Man::new(command.name(name)).render(&mut text).context("writing the page")?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_page_with_its_flags() {
        assert!(page(None).unwrap().contains("watcher\\-status"));
        for verb in COMMANDS {
            let name = (verb.command)().get_name().to_owned();
            let page = page(Some(&name)).unwrap();
            assert!(page.contains(".SH SYNOPSIS") && page.contains(&name.replace('-', "\\-")), "{name}: {page}");
        }
        assert!(page(Some("watcher-status")).unwrap().contains("\\-\\-scheduler"));
        assert!(page(Some("no-such")).unwrap_err().to_string().contains("--list"));
    }
}
