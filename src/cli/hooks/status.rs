//! `ng hooks status`: whether the hooks are set up, event by event, and whether they have told anything lately.
//!
//! A hook that is configured proves nothing; the heartbeats that it left do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{ArgMatches, Command};
use serde_json::{Value, json};

use super::{Agent, Invocation, agent, agent_args, hook_command, is_ours, place, place_args, render, user_settings};
use crate::logic::hook::{Audited, Heartbeat, Machine, audit, commands_of};
use crate::logic::time::{Now, Timestamp, age_text};
use crate::sys::agent_program;
use crate::sys::clock::Clock;
use crate::sys::files::{self, StateDir};
use crate::sys::settings_file::SettingsFile;

/// Settings that a machine's administrator makes, which can switch off everybody's hooks.
const MANAGED: &str = "/etc/claude-code/managed-settings.json";
/// Largest heartbeat that is read, in bytes.
const MAX_BEAT_BYTES: u64 = 1 << 20;
/// How much of the end of the log of complaints is read, in bytes.
const TAIL_BYTES: u64 = 16 << 10;

pub(super) fn command() -> Command {
    let command = Command::new("status")
        .about("Say whether the hooks are set up, and whether they have told anything lately")
        .after_help(
            "Without a place: your own settings, and the settings files of windows. Exit: 0 all that is set up is in order, 1 it is not, or nothing is set up, 2 usage.",
        );
    agent_args(place_args(command))
}

/// What one settings file has.
struct Report {
    /// Where it lies.
    path: PathBuf,
    /// Its events, or why it can't be judged.
    rows: Result<Vec<(String, Audited)>, String>,
    /// Whether hooks of ours are in it at all.
    has_ours: bool,
    /// Whether it switches every hook off.
    is_off: bool,
}

impl Report {
    /// Whether everything in it is as it should be.
    fn is_fine(&self) -> bool {
        !self.is_off && self.rows.as_ref().is_ok_and(|rows| rows.iter().all(|(_, standing)| standing.is_fine()))
    }
}

/// What a window's hooks left.
struct Beat {
    /// The window.
    window: String,
    /// The last event.
    event: String,
    /// How long ago it came.
    age: Duration,
}

pub(super) fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let state = super::super::state_dir(invocation)?;
    let agent = agent(invocation, args)?;
    let asked = place(args)?;
    let is_named = asked.is_some();
    let mut paths = vec![asked.map_or_else(user_settings, Ok)?];
    if !is_named {
        let names = files::list_names(&state.at("hook-settings")).unwrap_or_default();
        let names = names.iter().filter(|name| Path::new(name).extension().is_some_and(|end| end == "json"));
        paths.extend(names.map(|name| state.at("hook-settings").join(name)));
    }
    let ng = hook_command(invocation, &state, None, false)?.ng;
    let reports: Vec<Report> = paths.iter().map(|path| report(path, &agent, &ng, &state)).collect();
    let managed = managed_off();
    let beats = beats(&state, &Clock::System.now());
    let complaint = last_complaint(&state);

    let relevant = || reports.iter().filter(|report| is_named || report.has_ours || report.rows.is_err());
    let is_fine = managed.is_none() && relevant().next().is_some() && relevant().all(Report::is_fine);
    if invocation.json {
        let document = json!({
            "agent": agent.profile.name,
            "agent_version": agent.version_text(),
            "in_order": is_fine,
            "files": reports.iter().map(report_json).collect::<Vec<_>>(),
            "managed": managed,
            "fired": beats.iter().map(|beat| json!({"window": beat.window, "event": beat.event, "age_s": beat.age.as_secs()})).collect::<Vec<_>>(),
            "last_complaint": complaint,
        });
        render::json(&document)?;
    } else {
        print(&agent, &reports, is_named, managed.as_deref(), &beats, complaint.as_deref());
    }
    Ok(u8::from(!is_fine))
}

/// Judges one settings file.
fn report(path: &Path, agent: &Agent, ng: &str, state: &StateDir) -> Report {
    let mut report = Report { path: path.to_owned(), rows: Ok(Vec::new()), has_ours: false, is_off: false };
    let judged = (|| {
        let file = SettingsFile::read(path).with_context(|| "reading it".to_owned())?;
        let text = file.text().unwrap_or("{}").trim_start_matches('\u{feff}').to_owned();
        serde_json::from_str::<Value>(if text.trim().is_empty() { "{}" } else { &text }).context("no JSON")
    })();
    match judged {
        Ok(settings) => {
            let is_ours = is_ours(state);
            let machine = Machine {
                ng,
                is_ours: &is_ours,
                runs: &agent_program::is_program,
                has_state: &|state| Path::new(state).is_dir(),
            };
            report.has_ours = commands_of(&settings).iter().any(&is_ours);
            report.is_off = settings["disableAllHooks"] == true;
            report.rows = Ok(audit(&settings, &agent.events(), &machine));
        }
        Err(error) => report.rows = Err(format!("{error:#}")),
    }
    report
}

/// What an administrator's settings say against hooks of users.
fn managed_off() -> Option<String> {
    let text = files::read_text(Path::new(MANAGED), MAX_BEAT_BYTES).ok()??;
    let settings: Value = serde_json::from_str(&text).ok()?;
    let key = ["disableAllHooks", "allowManagedHooksOnly"].into_iter().find(|key| settings[*key] == true)?;
    Some(format!("{MANAGED} has {key}: no hook of a user runs"))
}

/// What each window's hooks told last, the newest first.
fn beats(state: &StateDir, now: &Now) -> Vec<Beat> {
    let names = files::list_names(&state.at("heartbeat")).unwrap_or_default();
    let mut beats: Vec<Beat> = names
        .iter()
        .filter_map(|name| {
            let text = files::read_text(&state.at("heartbeat").join(name), MAX_BEAT_BYTES).ok()??;
            let beat = Heartbeat::parse(&text)?;
            let age = now.at.since(Timestamp::from_secs(beat.last_activity));
            Some(Beat { window: beat.window, event: beat.event, age })
        })
        .collect();
    beats.sort_by(|a, b| a.age.cmp(&b.age).then_with(|| a.window.cmp(&b.window)));
    beats
}

/// The last line of the log of what hooks could not use.
fn last_complaint(state: &StateDir) -> Option<String> {
    let text = files::read_tail(&state.at("hook-errors.log"), TAIL_BYTES).ok()??;
    text.lines().last().map(str::to_owned)
}

/// One file as JSON.
fn report_json(report: &Report) -> Value {
    let mut document = json!({
        "file": report.path.display().to_string(),
        "has_ours": report.has_ours,
        "in_order": report.is_fine(),
        "hooks_switched_off": report.is_off,
    });
    match &report.rows {
        Ok(rows) => {
            let row = |(event, standing): &(String, Audited)| json!({"event": event, "state": standing.word(), "detail": standing.detail()});
            document["events"] = rows.iter().map(row).collect();
        }
        Err(why) => document["error"] = why.clone().into(),
    }
    document
}

/// The answer for people.
fn print(
    agent: &Agent,
    reports: &[Report],
    is_named: bool,
    managed: Option<&str>,
    beats: &[Beat],
    complaint: Option<&str>,
) {
    render::line(&format!("agent: {}", agent.shown));
    if let Some(managed) = managed {
        render::line(&format!("off: {managed}"));
    }
    for report in reports {
        let path = report.path.display();
        match &report.rows {
            Err(why) => render::line(&format!("{path}: can't be judged: {why}")),
            Ok(_) if !report.has_ours && !is_named => render::line(&format!("{path}: no hooks of ours")),
            Ok(rows) => {
                let fine = rows.iter().filter(|(_, standing)| standing.is_fine()).count();
                let off = if report.is_off { ", but disableAllHooks switches every hook off" } else { "" };
                render::line(&format!("{path}: {fine} of {} events{off}", rows.len()));
                for (event, standing) in rows.iter().filter(|(_, standing)| *standing != Audited::Installed) {
                    render::line(format!("  {:15} {event:20} {}", standing.word(), standing.detail()).trim_end());
                }
            }
        }
    }
    if beats.is_empty() {
        render::line("fired: never in this state directory");
    }
    for beat in beats {
        // Names and events are data from outside.
        let clean = |text: &str| text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
        render::line(&format!(
            "fired: {:>9} ago  {:24} {}",
            age_text(beat.age),
            clean(&beat.window),
            clean(&beat.event)
        ));
    }
    if let Some(complaint) = complaint {
        render::line(&format!("last complaint: {complaint}"));
    }
}
