//! `ng log-action`: append one event to the action log.

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Invocation, Verb, render};
use crate::logic::snapshot::ActionEvent;
use crate::sys::action_log;
use crate::sys::clock::Clock;

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

/// Exit code: the arguments can't be used.
const USAGE: u8 = 2;
/// The keys that every event has; an extra field must not take their place.
const OWN_KEYS: &[&str] = &["ts", "agent", "event", "note"];

fn command() -> Command {
    Command::new("log-action")
        .about("Append one event to the action log; prints nothing")
        .arg(Arg::new("agent").required(true).value_name("AGENT").help("Who did it"))
        .arg(Arg::new("event").long("event").required(true).value_name("EVENT").help("What: spawn, wrap-up, ..."))
        .arg(Arg::new("note").long("note").value_name("TEXT").help("Free text"))
        .arg(
            Arg::new("extra")
                .long("extra")
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .help("A further field; can be repeated"),
        )
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let text = |name: &str| args.get_one::<String>(name).cloned().unwrap_or_default();
    let mut event = ActionEvent {
        ts: Clock::System.now().iso(),
        agent: text("agent"),
        event: text("event"),
        note: text("note"),
        ..ActionEvent::default()
    };
    for field in args.get_many::<String>("extra").unwrap_or_default() {
        match field.split_once('=') {
            Some((key, value)) if is_key(key) => {
                event.extra.insert(key.to_owned(), value.to_owned());
            }
            _ => {
                render::note(&format!(
                    "ng log-action: --extra {field:?} is not KEY=VALUE with a key of letters, digits, '-' and '_' other than {}",
                    OWN_KEYS.join(", ")
                ));
                return Ok(USAGE);
            }
        }
    }
    let state = super::state_dir(invocation)?;
    action_log::append(&state, &event)
        .with_context(|| format!("appending to {}", state.at("action-log.jsonl").display()))?;
    Ok(0)
}

/// Whether a text can name a further field.
fn is_key(key: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !key.is_empty() && key.bytes().all(is_plain) && !OWN_KEYS.contains(&key)
}
