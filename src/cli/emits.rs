//! `ng emits`: what was told to the orchestrator, whether it arrived, and who saw it.

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Invocation, Verb, render};
use crate::logic::delivery::journal::{self, Row};
use crate::sys::archived;
use crate::sys::files::{self, StateDir};

mod replay;

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

/// How much of the end of the event log is read, in bytes; the log is rotated long before.
const MAX_LOG_BYTES: u64 = 64 << 20;

fn command() -> Command {
    let count = Arg::new("count")
        .short('n')
        .long("count")
        .value_name("N")
        .default_value("20")
        .value_parser(clap::value_parser!(usize))
        .help("Show the newest N emits");
    Command::new("emits")
        .about("List the emits: outcome, whether received, by which witness")
        .long_about(
            "List the emits, newest last: outcome, whether received, by which witness (hook, transcript, screen).\n\
             An emit is received only when a witness has seen it arrive; \"held\" says why nothing was typed.",
        )
        .arg(count)
        .subcommand(
            Command::new("show").about("Print the text of an emit").arg(
                Arg::new("nonce").value_name("NONCE").help("Nonce or start of an archive name; default: the newest"),
            ),
        )
        .subcommand(
            Command::new("replay").about("Print every emit since the last ack, oldest first").arg(
                Arg::new("ack")
                    .long("ack")
                    .action(ArgAction::SetTrue)
                    .help("Remember the newest one printed, so that the next replay begins after it"),
            ),
        )
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let state = super::state_dir(invocation)?;
    if let Some(("replay", replay)) = args.subcommand() {
        return replay::replay(&state, invocation.json, replay.get_flag("ack"));
    }
    let path = state.at(journal::EMITS);
    let text = archived::read_tail(&state, journal::EMITS, MAX_LOG_BYTES)
        .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", path.display()))?
        .unwrap_or_default();
    let (rows, unreadable) = journal::fold(&text);
    if unreadable > 0 {
        render::note(&format!("ng emits: {unreadable} line(s) of {} can't be read and were left out", path.display()));
    }
    if let Some(("show", show)) = args.subcommand() {
        return show_one(invocation, &state, &rows, show.get_one::<String>("nonce").map(String::as_str));
    }
    let count = args.get_one::<usize>("count").copied().unwrap_or(20);
    let newest: Vec<&Row> = rows.iter().skip(rows.len().saturating_sub(count)).collect();
    if invocation.json {
        render::json(&newest)?;
    } else if newest.is_empty() {
        render::note(&format!(
            "no emits yet in {}: nothing was told to the orchestrator (does the watcher run? ng watcher-status)",
            state.path().display()
        ));
    } else {
        for row in newest {
            render::line(&line(row));
        }
    }
    Ok(0)
}

/// One row for people.
fn line(row: &Row) -> String {
    let received = match (row.received, row.witness) {
        (true, Some(witness)) => format!("received witness={}", witness.word()),
        (true, None) => "received".to_owned(),
        (false, _) => "not received".to_owned(),
    };
    let latency = row.latency_ms.map(|ms| format!(" after {ms} ms")).unwrap_or_default();
    let detail = row.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
    let repeat = row.repeat_of.as_ref().map(|sig| format!(" repeat of {sig}")).unwrap_or_default();
    format!("{}  {}  {:<14}  {}  {received}{latency}{detail}{repeat}", row.at, row.nonce, row.reason, row.outcome)
}

/// Prints one emit with its text.
fn show_one(invocation: &Invocation, state: &StateDir, rows: &[Row], which: Option<&str>) -> anyhow::Result<u8> {
    let matching: Vec<&Row> = match which {
        None => rows.last().into_iter().collect(),
        Some(which) => rows
            .iter()
            .filter(|row| row.nonce == which || row.archive.as_ref().is_some_and(|name| name.starts_with(which)))
            .collect(),
    };
    let row = match matching.as_slice() {
        [row] => *row,
        [] => anyhow::bail!("no emit {}; list them with: ng emits", which.unwrap_or("yet")),
        several => anyhow::bail!("{} emits match {}; give the nonce", several.len(), which.unwrap_or_default()),
    };
    let archive = row.archive.as_ref().map(|name| state.at("diffs").join(name));
    let text = match &archive {
        Some(path) => files::read_text(path, MAX_LOG_BYTES)
            .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", path.display()))?,
        None => None,
    };
    if invocation.json {
        let mut value = serde_json::to_value(row)?;
        value["text"] = serde_json::to_value(&text)?;
        render::json(&value)?;
    } else {
        render::note(&line(row));
        match text {
            Some(text) => render::line(text.trim_end()),
            None => render::note("its text is no longer in the archive"),
        }
    }
    Ok(0)
}
