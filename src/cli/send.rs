//! `ng send`: type a text into an agent's window, safely, and say truthfully what became of it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use serde_json::json;

use super::pane_live::{self, Chosen};
use super::{Invocation, Verb, render};
use crate::daemon::Outside;
use crate::daemon::send::{self, Order, Report};
use crate::logic::delivery::sends::{self, Row, Sent};
use crate::logic::delivery::{Outcome, ProofBy};
use crate::logic::snapshot::ActionEvent;
use crate::logic::text::{self, Joiners};
use crate::logic::time::{Now, age_text};
use crate::sys::action_log;
use crate::sys::archived;
use crate::sys::clock::Clock;
use crate::sys::files::{self, StateDir};
use crate::sys::seed;
use crate::sys::stdin;
use crate::sys::tmux::{Servers, TmuxClient};

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

/// Exit code: the arguments can't be used.
const USAGE: u8 = 2;
/// Most that is read of a text, in bytes; what is too long to paste is stored whole all the same.
const MAX_TEXT_BYTES: u64 = 4 << 20;
/// How long standard input may take to end.
const STDIN_WITHIN: Duration = Duration::from_secs(60);
/// How much of the end of the log is read, in bytes.
const MAX_LOG_BYTES: u64 = 4 << 20;
/// What the action log calls a text that was typed for somebody, in the words of the original tools.
const EVENT: &str = "paste-followup";

fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let seconds = |name: &'static str, default: &'static str, help: &'static str| {
        text(name, "SECONDS", help).default_value(default).value_parser(value_parser!(u64).range(0..=3600))
    };
    Command::new("send")
        .about("Type a text into an agent's window, and say whether it arrived")
        .long_about(
            "Type a text into an agent's window, and say whether it arrived.\n\
             It waits for an idle prompt, then for the queue of a running turn. It types nothing over a draft, into a dialog\n\
             or a dead pane, and never types a text twice. The text is --message, --file, or standard input.",
        )
        .after_help(
            "Exit: 0 delivered or queued (or placed, with --no-enter), 1 failed, 2 usage, 3 sent but unconfirmed,\n\
             4 typed but not sent, 5 no live agent there, 6 no such window, 7 held: nothing was typed.",
        )
        .arg(
            Arg::new("window")
                .value_name("WINDOW")
                .required_unless_present("list")
                .help("A window by name, index, @id or session:index, or a pane by %id; on further servers 1/@id, 1/%id"),
        )
        .arg(text("message", "TEXT", "The text").short('m').allow_hyphen_values(true))
        .arg(text("file", "FILE", "A file with the text; - is standard input").short('f').value_parser(value_parser!(PathBuf)))
        .group(ArgGroup::new("text").args(["message", "file"]))
        .arg(Arg::new("no-enter").long("no-enter").action(ArgAction::SetTrue).help("Leave the text in the box, unsent"))
        .arg(seconds("wait", "30", "How long to wait for an idle prompt").overrides_with_all(["wait", "no-wait"]))
        .arg(
            Arg::new("no-wait")
                .long("no-wait")
                .action(ArgAction::SetTrue)
                .overrides_with_all(["wait", "no-wait"])
                .help("Send now or not at all; a running turn's queue counts as now"),
        )
        .arg(seconds("confirm-timeout", "20", "How long to look for a proof that it arrived"))
        .arg(text("once", "KEY", "Type it at most once under this key, also after a crash").overrides_with("once"))
        .arg(text("note", "TEXT", "A note for the action log"))
        .arg(text("issue", "N", "The issue that it is about, for the action log"))
        .arg(text("comment", "ID", "The comment that it is about, for the action log"))
        .arg(text("src", "WORD", "Who sends, in machine-input.tsv").default_value("ng-send").overrides_with("src"))
        .arg(
            Arg::new("list")
                .long("list")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["window", "text", "no-enter"])
                .help("List the last sends and what became of them"),
        )
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    if args.get_flag("list") {
        return list(invocation);
    }
    let words = |name: &str| args.get_one::<String>(name).map(String::as_str);
    let src = words("src").unwrap_or_default();
    if src.is_empty() || src.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Ok(refuse(USAGE, "--src is one word"));
    }
    if words("once").is_some_and(|key| key.trim().is_empty() || key.chars().any(char::is_control)) {
        return Ok(refuse(USAGE, "--once is a line of text that names what is sent"));
    }
    let raw = match read_text(args) {
        Ok(raw) => raw,
        Err(why) => return Ok(refuse(USAGE, &format!("{why:#}"))),
    };
    let text = text::visible(&raw, Joiners::Keep);
    let text = text.trim_end_matches(['\n', ' ', '\t']);
    if text.trim().is_empty() {
        return Ok(refuse(USAGE, "there is no text; give --message TEXT, --file FILE, or standard input"));
    }
    let number = |name: &str| Duration::from_secs(args.get_one::<u64>(name).copied().unwrap_or_default());
    let enter = !args.get_flag("no-enter");
    let settings = invocation.settings()?.settings;
    let state = StateDir::new(&settings.state_dir);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")?;
    runtime.block_on(async {
        let out = pane_live::outside(settings, invocation.profiles()?)?;
        let pane = match pane_live::choose(&out, words("window").unwrap_or_default()).await {
            Chosen::Pane(pane) => *pane,
            Chosen::CannotLook(why) => return Ok(refuse(Sent::Failed.code(), &why)),
            Chosen::NoSuchWindow(why) => {
                return Ok(refuse(
                    Sent::UnknownPane.code(),
                    &format!("{why}; list them with: ng pane-state --all; nothing was typed"),
                ));
            }
            Chosen::Ambiguous(why) => return Ok(refuse(USAGE, &format!("{why}; nothing was typed"))),
        };
        warn_of_cut_off(&state, &pane.window_name.0);
        let order = Order {
            id: seed::nonce(),
            pane: pane.pane,
            window: pane.window_name.clone(),
            text: text.to_owned(),
            src: if enter { src.to_owned() } else { format!("{src}-no-enter") },
            enter,
            once: words("once").map(str::to_owned),
            wait: if args.get_flag("no-wait") { Duration::ZERO } else { number("wait") },
            confirm: number("confirm-timeout"),
        };
        let wait = order.wait.as_secs();
        let report = send(&out, &order, wait).await?;
        log(&state, &order, &report, &words);
        print(invocation.json, &order, &report)?;
        Ok(report.sent.code())
    })
}

async fn send(out: &Outside<Servers<TmuxClient>>, order: &Order, wait: u64) -> anyhow::Result<Report> {
    let mut say = |why: &str| render::note(&format!("ng send: waiting for {}, up to {wait} s: {why}", order.window));
    send::send(out, order, &mut say).await.with_context(|| {
        format!(
            "storing the text, which is too long to paste whole, in {}; nothing was typed",
            out.state.path().display()
        )
    })
}

/// The text as it was given.
fn read_text(args: &ArgMatches) -> anyhow::Result<String> {
    if let Some(message) = args.get_one::<String>("message") {
        return Ok(message.clone());
    }
    if let Some(path) = args.get_one::<PathBuf>("file").filter(|path| path.as_os_str() != "-") {
        return files::read_text(path, MAX_TEXT_BYTES)
            .with_context(|| format!("reading {}", path.display()))?
            .with_context(|| format!("there is no file {}", path.display()));
    }
    let max = usize::try_from(MAX_TEXT_BYTES).unwrap_or(usize::MAX);
    let input = stdin::read_bounded(max, STDIN_WITHIN).context("reading standard input")?;
    anyhow::ensure!(!input.is_cut, "standard input holds more than {MAX_TEXT_BYTES} bytes");
    String::from_utf8(input.bytes).ok().context("standard input is not UTF-8")
}

/// Says that an earlier send to this window was cut off: its text may stand in the box.
fn warn_of_cut_off(state: &StateDir, window: &str) {
    let Ok((rows, _)) = read_rows(state) else { return };
    if let Some(row) = rows.iter().rev().find(|row| row.window == window)
        && row.outcome == sends::INTENT
    {
        render::note(&format!(
            "ng send: an earlier send to {window} ({}, from {}) was cut off or is under way; its text may stand in the box",
            row.id, row.src
        ));
    }
}

fn read_rows(state: &StateDir) -> std::io::Result<(Vec<Row>, usize)> {
    Ok(sends::fold(&archived::read_tail(state, sends::SENDS, MAX_LOG_BYTES)?.unwrap_or_default()))
}

/// Tells the action log of a text that was typed.
fn log<'a>(state: &StateDir, order: &Order, report: &Report, words: &dyn Fn(&str) -> Option<&'a str>) {
    let was_typed = matches!(report.outcome, Outcome::Received(_) | Outcome::Placed | Outcome::Unknown(_));
    if !was_typed {
        return;
    }
    let mut event = ActionEvent {
        ts: Clock::System.now().iso(),
        agent: order.src.clone(),
        event: EVENT.to_owned(),
        note: words("note").unwrap_or_default().to_owned(),
        ..ActionEvent::default()
    };
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            event.extra.insert(key.to_owned(), value);
        }
    };
    add("window", Some(order.window.to_string()));
    add("outcome", Some(report.sent.word().to_owned()));
    add("rc", Some(report.sent.code().to_string()));
    add("issue", words("issue").map(str::to_owned));
    add("comment", words("comment").map(str::to_owned));
    add("no_enter", (!order.enter).then(|| "1".to_owned()));
    add("enter_retried", (report.enters > 1).then(|| "1".to_owned()));
    if let Err(error) = action_log::append(state, &event) {
        render::note(&format!("ng send: the action log can't be written: {error}"));
    }
}

/// Prints what became of it: a result on standard output, a trouble on standard error.
fn print(json: bool, order: &Order, report: &Report) -> anyhow::Result<()> {
    let window = &order.window;
    let detail = detail(&report.outcome);
    if json {
        return render::json(&json!({
            "id": order.id, "window": window.as_str(), "pane": order.pane.to_string(),
            "outcome": report.sent.word(), "code": report.sent.code(),
            "witness": report.proof.map(|proof| proof.by.word()), "enters": report.enters, "detail": detail,
            "bytes": order.text.len(), "whole_text": report.whole.as_ref().map(|path| path.display().to_string()),
        }));
    }
    if let Some(path) = &report.whole {
        render::note(&format!("ng send: the text is too long to paste whole; all of it stands in {}", path.display()));
    }
    let seen = report.proof.map_or("", |proof| match proof.by {
        ProofBy::Hook => " (its hook saw it)",
        ProofBy::Transcript => " (its session file has it)",
        ProofBy::Screen => " (its screen shows it)",
    });
    match report.sent {
        Sent::Delivered => render::line(&format!("delivered to {window}{seen}")),
        Sent::Queued => render::line(&format!("queued in {window}, which takes it up when its turn ends{seen}")),
        Sent::Placed => render::line(&format!("placed in the input box of {window}, unsent")),
        Sent::Unconfirmed => render::note(&format!(
            "ng send: typed and sent to {window}, but nobody has seen it arrive: {detail}; look there before you send it again"
        )),
        Sent::NotSubmitted => render::note(&format!(
            "ng send: typed into {window}, but not sent: {detail}; the text may stand in its box: send or clear it there"
        )),
        Sent::Held => render::note(&format!("ng send: nothing was typed into {window}: {detail}")),
        Sent::DeadPane | Sent::UnknownPane | Sent::Failed => {
            render::note(&format!("ng send: nothing was typed into {window}: {detail}"));
        }
    }
    Ok(())
}

/// Why, for people; empty where there is nothing to say.
fn detail(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Received(_) | Outcome::Placed => String::new(),
        Outcome::Held(hold) => format!("{}: {}", hold.word(), hold.says()),
        Outcome::Absent(why) | Outcome::NoTmux(why) | Outcome::Failed(why) | Outcome::Unknown(why) => why.clone(),
    }
}

/// Lists the last sends.
fn list(invocation: &Invocation) -> anyhow::Result<u8> {
    let state = super::state_dir(invocation)?;
    let path = state.at(sends::SENDS);
    let (rows, unreadable) = read_rows(&state).with_context(|| format!("reading {}", path.display()))?;
    if unreadable > 0 {
        render::note(&format!("ng send: {unreadable} line(s) of {} can't be read and were left out", path.display()));
    }
    let newest = rows.get(rows.len().saturating_sub(20)..).unwrap_or_default();
    if invocation.json {
        render::json(&newest)?;
    } else if newest.is_empty() {
        render::note(&format!("nothing was sent yet in {}", state.path().display()));
    } else {
        let now = Clock::System.now();
        for row in newest {
            render::line(&line(row, &now));
        }
    }
    Ok(0)
}

/// One send for people.
fn line(row: &Row, now: &Now) -> String {
    let outcome = if row.outcome == sends::INTENT { "cut off, or under way" } else { &row.outcome };
    let witness = row.witness.map(|witness| format!(" witness={}", witness.word())).unwrap_or_default();
    let detail = row.detail.as_ref().map(|detail| format!(" ({detail})")).unwrap_or_default();
    let age = age_text(now.at.since(row.at_ms));
    let at = row.at_ms.iso(now.offset);
    format!("{at}  {}  {}  {}  {outcome}{witness}{detail}  {age} ago: {}", row.id, row.window, row.src, row.excerpt)
}

/// Says why nothing was sent.
fn refuse(code: u8, why: &str) -> u8 {
    render::note(&format!("ng send: {why}"));
    code
}
