//! `ng decision-ack`: close decision records for good, by their tombstones.

use std::io;
use std::path::Path;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Invocation, Verb, render};
use crate::logic::ids::{Fingerprint, WindowName};
use crate::logic::inbox::RecordName;
use crate::logic::snapshot::ActionEvent;
use crate::logic::time::Timestamp;
use crate::sys::action_log;
use crate::sys::clock::Clock;
use crate::sys::decisions::{self, Closing};
use crate::sys::files::{self, StateDir};

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

/// Exit code: there is no such record.
const NO_SUCH_RECORD: u8 = 3;
/// Exit code: the arguments do not name a record.
const USAGE: u8 = 2;

fn command() -> Command {
    Command::new("decision-ack")
        .about("Close a pending decision, so that it is told no more")
        .after_help(
            "Exit codes: 0 closed, now or before; 1 not writable; 2 usage; 3 no such record.\n\
             Deleting the file does not close a decision: the agent's hook writes it again.",
        )
        .arg(Arg::new("window").required(true).value_name("WINDOW|PATH").help("The window, or the record's file"))
        .arg(Arg::new("fingerprint").value_name("FINGERPRINT").help("The record: twelve hex digits, as the row says"))
        .arg(
            Arg::new("all")
                .long("all")
                .action(ArgAction::SetTrue)
                .conflicts_with("fingerprint")
                .help("Every open record of the window"),
        )
        .arg(Arg::new("reason").long("reason").value_name("TEXT").help("Why, for the action log"))
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let state = super::state_dir(invocation)?;
    let text = |name: &str| args.get_one::<String>(name).map(String::as_str);
    let named = text("window").unwrap_or_default();
    let ack = Ack { state: &state, reason: text("reason").unwrap_or_default(), json: invocation.json };
    if args.get_flag("all") {
        return ack.all(&WindowName(named.to_owned()));
    }
    if let Some(fingerprint) = text("fingerprint") {
        let Some(fingerprint) = Fingerprint::parse(fingerprint) else {
            render::note(&format!(
                "ng decision-ack: {fingerprint:?} is no fingerprint; give the twelve hex digits of the row"
            ));
            return Ok(USAGE);
        };
        return ack.one(&WindowName(named.to_owned()), &fingerprint);
    }
    if let Some((window, fingerprint)) = record_at(&state, Path::new(named)) {
        return ack.one(&window, &fingerprint);
    }
    render::note(&format!(
        "ng decision-ack: {named:?} is no record in {}; give WINDOW FINGERPRINT, WINDOW --all, or the file of a row",
        state.at("decisions").display()
    ));
    Ok(USAGE)
}

/// The record that a path in our `decisions/` names, live or closed.
fn record_at(state: &StateDir, path: &Path) -> Option<(WindowName, Fingerprint)> {
    let folder = path.parent()?.canonicalize().ok()?;
    if folder != state.at("decisions").canonicalize().ok()? {
        return None;
    }
    let name = RecordName::parse(path.file_name()?.to_str()?)?;
    Some((decisions::window_at(path, name.stem)?, name.fingerprint))
}

/// A window's name for a terminal: without control characters.
fn shown(window: &WindowName) -> String {
    window.as_str().chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// One run.
struct Ack<'a> {
    /// Where the records are.
    state: &'a StateDir,
    /// `--reason`.
    reason: &'a str,
    /// `--json`: one object a record, each on its line.
    json: bool,
}

impl Ack<'_> {
    /// Closes one record. The result is the exit code.
    fn one(&self, window: &WindowName, fingerprint: &Fingerprint) -> anyhow::Result<u8> {
        let had_returned = self.returned_after_being_told(window, fingerprint);
        let closing = self.close(window, fingerprint)?;
        let say = |words: &str, outcome: &str| {
            if self.json {
                let answer = serde_json::json!({"window": window, "fingerprint": fingerprint, "outcome": outcome});
                render::line(&answer.to_string());
            } else {
                render::line(&format!("{words}: {} {fingerprint}", shown(window)));
            }
        };
        match closing {
            Closing::Closed => {
                say("acked", "acked");
                if had_returned {
                    render::note(&format!(
                        "ng decision-ack: {} {fingerprint} had been removed without an ack and came back; it stays closed now",
                        shown(window)
                    ));
                }
            }
            Closing::Already => say("already acked", "already"),
            Closing::CameBack => {
                say("acked again", "came-back");
                render::note(&format!(
                    "ng decision-ack: {} {fingerprint} was acked before and its file came back; some other tool writes it",
                    shown(window)
                ));
            }
            Closing::Missing => {
                let open = decisions::open_records(self.state, window).unwrap_or_default();
                let open: Vec<&str> = open.iter().map(|(_, fingerprint)| fingerprint.as_str()).collect();
                let hint =
                    if open.is_empty() { "no record is open".to_owned() } else { format!("open: {}", open.join(" ")) };
                render::note(&format!(
                    "ng decision-ack: no record {fingerprint} for window {} ({hint})",
                    shown(window)
                ));
                return Ok(NO_SUCH_RECORD);
            }
        }
        Ok(0)
    }

    /// Closes every open record of a window.
    fn all(&self, window: &WindowName) -> anyhow::Result<u8> {
        let folder = || format!("reading {}", self.state.at("decisions").display());
        let open = decisions::open_records(self.state, window).with_context(folder)?;
        if open.is_empty() {
            if decisions::has_records(self.state, window).with_context(folder)? {
                if !self.json {
                    render::line(&format!("nothing open for {}", shown(window)));
                }
                return Ok(0);
            }
            render::note(&format!("ng decision-ack: no records for window {}", shown(window)));
            return Ok(NO_SUCH_RECORD);
        }
        for (_, fingerprint) in &open {
            self.one(window, fingerprint)?;
        }
        Ok(0)
    }

    /// Writes the tombstone, and logs it if that changed anything.
    fn close(&self, window: &WindowName, fingerprint: &Fingerprint) -> anyhow::Result<Closing> {
        let now = Clock::System.now().iso();
        let mut note = vec![("resolved", "acked"), ("resolved_at", now.as_str()), ("source", "ng decision-ack")];
        if !self.reason.is_empty() {
            note.push(("verdict", self.reason));
        }
        let closing = decisions::close(self.state, window, fingerprint, &note).with_context(|| {
            format!("closing {fingerprint} of {window} in {}", self.state.at("decisions").display())
        })?;
        if matches!(closing, Closing::Closed | Closing::CameBack) {
            let mut event = ActionEvent {
                ts: now.clone(),
                agent: "ng".into(),
                event: "decision-ack".into(),
                note: self.reason.to_owned(),
                ..ActionEvent::default()
            };
            event.extra.insert("window".into(), window.to_string());
            event.extra.insert("fingerprint".into(), fingerprint.to_string());
            let logged: io::Result<()> = action_log::append(self.state, &event);
            if let Err(error) = logged {
                // The decision is closed, which is what was asked.
                render::note(&format!("ng decision-ack: closed, but the action log can't be written: {error}"));
            }
        }
        Ok(closing)
    }

    /// Whether the record was told before it was written: then somebody removed its file and the hook wrote it again.
    fn returned_after_being_told(&self, window: &WindowName, fingerprint: &Fingerprint) -> bool {
        let Ok(Some(stamps)) =
            files::read_text(&self.state.at("pending-decisions-emit-state.tsv"), files::MAX_STATE_BYTES)
        else {
            return false;
        };
        let told_s = stamps.lines().find_map(|line| {
            let mut fields = line.split('\t');
            let is_ours = fields.next()? == window.as_str() && fields.next()? == fingerprint.as_str();
            is_ours.then(|| fields.next()?.trim().parse::<i64>().ok())?
        });
        let Some(told_s) = told_s else { return false };
        let records = decisions::list(self.state).unwrap_or_default();
        let ours = records.iter().find(|r| r.window == *window && r.fingerprint == fingerprint.as_str());
        let written = ours.and_then(|r| r.record.as_ref().ok()).and_then(|record| Timestamp::parse_iso(&record.ts));
        written.is_some_and(|written| written.secs() > told_s)
    }
}
