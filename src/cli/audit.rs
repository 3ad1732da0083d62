//! `ng audit`: every key and paste that was ever sent: when, where, why, by whom, with which outcome, and the screens
//! before and after.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command};
use serde_json::json;

use super::{Invocation, Verb, amount, render};
use crate::logic::audit::row::{self, Filter, Row};
use crate::logic::audit::screen::{Screen, ScreenId};
use crate::logic::audit::{ACTS, Ended, SCREENS, What};
use crate::logic::time::{Now, Timestamp, age_text};
use crate::sys::archived;
use crate::sys::clock::Clock;
use crate::sys::files::StateDir;
use crate::sys::procfs;

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

/// How much of the end of the log is read, in bytes; rotation keeps it and its archives below.
const MAX_LOG_BYTES: u64 = 64 << 20;

/// An act without an end that is older than this is not under way, whoever has the number of its process by now.
const UNDER_WAY_S: u64 = 600;

fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("audit")
        .about("List every key and paste that was sent to a pane, and why")
        .long_about(
            "List every key and paste that was sent to a pane, newest last: when, where, what, the outcome, why, and by whom.\n\
             Refusals are listed too: something was in the way, and nothing was typed.",
        )
        .after_help("Exit: 0 done, 1 failed, 2 usage.")
        .arg(text("window", "WINDOW", "Only in the window of this name, or in a pane (%id)"))
        .arg(
            text("since", "TIME", "Only this recent (2h, 30m), or since a time (ISO 8601 with offset)")
                .value_parser(clap::builder::ValueParser::new(since)),
        )
        .arg(
            text("kind", "KIND", "Only of this kind: paste, keys, bell (a cleared bell flag)")
                .value_parser(PossibleValuesParser::new(What::KINDS)),
        )
        .arg(
            text("outcome", "OUTCOME", "Only with this outcome: done, refused, failed, unknown")
                .value_parser(PossibleValuesParser::new(Ended::WORDS)),
        )
        .arg(
            text("last", "N", "Show the newest N")
                .default_value("20")
                .overrides_with("last")
                .value_parser(clap::value_parser!(usize)),
        )
        .arg(
            text("show", "ID", "Show an act, or all acts of a report or send, with the screens before and after")
                .conflicts_with_all(["window", "since", "kind", "outcome", "last"]),
        )
}

/// A point in time, or how long ago.
#[derive(Clone, Copy, Debug)]
enum Since {
    Ago(std::time::Duration),
    At(Timestamp),
}

fn since(text: &str) -> Result<Since, String> {
    if let Some(at) = Timestamp::parse_iso(text) {
        return Ok(Since::At(at));
    }
    let duration = amount::duration(text).map(Since::Ago);
    duration.map_err(|why| format!("{why}; or a time like 2026-05-11T13:42:01+02:00"))
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let state = super::state_dir(invocation)?;
    let now = Clock::System.now();
    let rows = read(&state, &now)?;
    if let Some(id) = args.get_one::<String>("show") {
        return show(invocation, &state, &rows, id, &now);
    }
    let word = |name: &str| args.get_one::<String>(name).cloned();
    let filter = Filter {
        window: word("window"),
        since: args.get_one::<Since>("since").map(|since| match since {
            Since::Ago(ago) => now.at.before(*ago),
            Since::At(at) => *at,
        }),
        kind: word("kind"),
        outcome: word("outcome"),
    };
    let wanted: Vec<&Row> = rows.iter().filter(|row| filter.wants(row)).collect();
    let last = args.get_one::<usize>("last").copied().unwrap_or(20);
    let newest = wanted.get(wanted.len().saturating_sub(last)..).unwrap_or_default();
    if invocation.json {
        let newest: Vec<_> = newest.iter().map(|row| with_iso(row, &now)).collect::<Result<_, _>>()?;
        render::json(&newest)?;
    } else if newest.is_empty() {
        let of_what = if rows.is_empty() { "nothing was typed yet" } else { "nothing of that kind was typed" };
        render::note(&format!("{of_what} from {}", state.path().display()));
    } else {
        for row in newest {
            render::line(&line(row, &now));
        }
    }
    Ok(0)
}

/// The acts on record, oldest first. What can't be read of them is said.
fn read(state: &StateDir, now: &Now) -> anyhow::Result<Vec<Row>> {
    let path = state.at(ACTS);
    let text = archived::read_tail(state, ACTS, MAX_LOG_BYTES)
        .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", path.display()))?
        .unwrap_or_default();
    let (rows, unreadable) =
        row::fold(&text, &|by, at| now.at.since(at).as_secs() <= UNDER_WAY_S && procfs::is_taken(by.pid));
    if unreadable > 0 {
        render::note(&format!("ng audit: {unreadable} line(s) of {} can't be read and were left out", path.display()));
    }
    Ok(rows)
}

/// An act for programs, with its time for people.
fn with_iso(row: &Row, now: &Now) -> serde_json::Result<serde_json::Value> {
    let mut value = serde_json::to_value(row)?;
    value["at"] = json!(row.at_ms.iso(now.offset));
    Ok(value)
}

/// One act for people.
fn line(row: &Row, now: &Now) -> String {
    let place = [Some(row.place.window.clone()), row.place.pane.map(|pane| pane.to_string())];
    let place: Vec<String> = place.into_iter().flatten().filter(|word| !word.is_empty()).collect();
    let what = match &row.what {
        What::Paste { first_line, .. } => format!(": {first_line}"),
        What::Bell { names, .. } => format!(": {}", names.join(", ")),
        What::Keys { .. } => String::new(),
    };
    let why = row.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    format!(
        "{}  {}  {}  {}  {}{why}  for {} by {}{what}",
        row.at_ms.iso(now.offset),
        row.id,
        if place.is_empty() { "-".to_owned() } else { place.join(" ") },
        row.what.says(),
        row.outcome.word(),
        row.cause.says(),
        who(row),
    )
}

/// Who acted.
fn who(row: &Row) -> String {
    let by = &row.by;
    format!("{} ({}, pid {})", by.program.name(), by.src, by.pid)
}

/// Shows acts whole.
fn show(invocation: &Invocation, state: &StateDir, rows: &[Row], id: &str, now: &Now) -> anyhow::Result<u8> {
    let named: Vec<&Row> = rows.iter().filter(|row| row.is_named(id)).collect();
    anyhow::ensure!(!named.is_empty(), "no act, report or send {id:?} on record; list them with: ng audit --last 100");
    let screens = archived::read_tail(state, SCREENS, MAX_LOG_BYTES)
        .map_err(|error| anyhow::anyhow!("cannot read {}: {error}", state.at(SCREENS).display()))?
        .unwrap_or_default();
    let screen = |id: &Option<ScreenId>| {
        let id = id.as_ref()?;
        // Most lines are others'; only those that may be it are read.
        let lines = screens.lines().rev().filter(|line| line.contains(&id.0));
        lines.filter_map(|line| serde_json::from_str::<Screen>(line).ok()).find(|screen| screen.id == *id)
    };
    if invocation.json {
        let mut values = Vec::with_capacity(named.len());
        for row in named {
            let mut value = with_iso(row, now)?;
            value["screen_before"] = json!(screen(&row.before).map(|screen| screen.rows));
            value["screen_after"] = json!(screen(&row.after).map(|screen| screen.rows));
            values.push(value);
        }
        render::json(&values)?;
        return Ok(0);
    }
    for (number, row) in named.iter().enumerate() {
        if number > 0 {
            render::line("");
        }
        for line in details(row, now) {
            render::line(&line);
        }
        for (when, id) in [("before", &row.before), ("after", &row.after)] {
            match (id, screen(id)) {
                (_, Some(screen)) => {
                    render::line(&format!("screen {when}:"));
                    for row in screen.rows {
                        render::line(&format!("  │{row}"));
                    }
                }
                (Some(_), None) => render::line(&format!("screen {when}: no longer kept")),
                (None, None) => render::line(&format!("screen {when}: not seen")),
            }
        }
    }
    Ok(0)
}

/// Everything about an act but its screens, a line each.
fn details(row: &Row, now: &Now) -> Vec<String> {
    let mut lines = vec![
        format!("act:      {}", row.id),
        format!("when:     {} ({} ago)", row.at_ms.iso(now.offset), age_text(now.at.since(row.at_ms))),
        format!("why:      {}", row.cause.says()),
        format!("by:       {}", who(row)),
    ];
    let server = row.place.server.as_ref();
    let server =
        server.map(|server| format!(", tmux server {} (pid {})", server.socket, server.pid)).unwrap_or_default();
    let pane = row.place.pane.map(|pane| format!(" {pane}")).unwrap_or_default();
    lines.push(format!("where:    {}{pane}{server}", row.place.window));
    lines.push(format!("what:     {}", row.what.says()));
    match &row.what {
        What::Paste { sha256, first_line, .. } => {
            lines.push(format!("text:     {first_line}"));
            lines.push(format!("sha256:   {sha256}"));
        }
        What::Bell { names, .. } => lines.push(format!("windows:  {}", names.join(", "))),
        What::Keys { .. } => {}
    }
    if let Some(checked) = &row.checked {
        let mut what = vec![format!("process {}, not dead, no tmux mode, not synchronised", checked.pid)];
        what.extend(checked.no_shell.then(|| "no shell in front".to_owned()));
        what.extend(checked.texts.iter().map(|text| format!("on its screen {text:?}")));
        what.extend(checked.rows.iter().map(|row| format!("the whole row {row:?}")));
        lines.push(format!("checked:  {}", what.join("; ")));
    }
    let why = row.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let after = row.ended_ms.map(|at| format!(" after {} ms", at.since(row.at_ms).as_millis())).unwrap_or_default();
    lines.push(format!("outcome:  {}{after}{why}", row.outcome.word()));
    lines.push(format!("seen:     {}", row.observed.as_deref().unwrap_or("nothing was recorded of what followed")));
    lines
}
