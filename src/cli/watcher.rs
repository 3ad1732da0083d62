//! `ng watcher`: what somebody does who looks after the watcher: one look (`supervise`), a start after a crash
//! (`revive`), a stop on purpose (`stop`).

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::Context as _;
use clap::{ArgMatches, Command};

use super::{Invocation, Verb, render};
use crate::logic::instance::supervise::{self, Revival, Situation};
use crate::logic::instance::verdict::judge;
use crate::logic::time::Now;
use crate::sys::clock::Clock;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES, StateDir};
use crate::sys::liveness::{self, PROGRAM, REVIVALS_FILE, REVIVED_FILE, STOP_FILE, SUPERVISOR_FILE};
use crate::sys::takeover;
use crate::sys::{detach, instance};

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

/// How long a watcher that is stopped may take to end. It finishes a delivery that is under way.
const STOP_GRACE: Duration = Duration::from_secs(8);

fn command() -> Command {
    Command::new("watcher")
        .about("Look after the watcher: supervise, revive, stop")
        .after_help(
            "Exit codes. supervise: 0 it runs, 1 it does not, 2 usage. revive: 0 revived or nothing to do, 3 revived too often,\n\
             4 the state directory can't be written, 5 refused, else the launcher's. stop: 0 stopped, 1 failed.",
        )
        .subcommand_required(true)
        .subcommand(Command::new("revive").about("Start it anew after a crash, unless it lives or was stopped on purpose"))
        .subcommand(Command::new("stop").about("Stop it on purpose; until a start, revive does nothing"))
        .subcommand(Command::new("supervise").about("One look by its supervisor; says what to do if it does not run"))
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    match args.subcommand_name() {
        Some("revive") => revive(invocation),
        Some("stop") => stop(invocation),
        _ => supervise(invocation),
    }
}

/// Looks at the watcher as a supervisor does.
fn look(invocation: &Invocation, now: &Now) -> anyhow::Result<(StateDir, Situation, Option<Duration>)> {
    let settings = invocation.settings_of_watcher()?;
    let state = StateDir::new(&settings.state_dir);
    let seen = liveness::look(&state, now)
        .with_context(|| format!("looking into the state directory {}", state.path().display()))?;
    let cutoff = supervise::dead_cutoff(settings.interval);
    let situation = Situation {
        judgement: judge(&seen.facts, settings.interval, settings.heartbeat_tick, Some(cutoff)),
        is_stopped: state.at(STOP_FILE).exists(),
        observes: instance::observing(&state).is_some(),
    };
    Ok((state, situation, seen.facts.heartbeat))
}

/// Says that a supervisor looks, and whether all is well.
fn supervise(invocation: &Invocation) -> anyhow::Result<u8> {
    let now = Clock::System.now();
    let (state, situation, _) = look(invocation, &now)?;
    if state.path().is_dir()
        && let Err(error) = files::write_atomic(&state.at(SUPERVISOR_FILE), b"", Durability::Hint)
    {
        // The verdict counts for more than that the watcher knows of its supervisor.
        render::note(&format!("ng watcher supervise: {SUPERVISOR_FILE} can't be written: {error}"));
    }
    let judgement = &situation.judgement;
    let advice = situation.advice();
    if invocation.json {
        render::json(&serde_json::json!({
            "state": judgement.verdict,
            "reason": judgement.reason,
            "stopped": situation.is_stopped,
            "observes": situation.observes,
            "advice": advice,
        }))?;
    } else if !situation.is_fine() {
        render::line(&format!("watcher {}: {}", judgement.verdict.word(), judgement.reason));
        for line in advice {
            render::line(line);
        }
    }
    Ok(u8::from(!situation.is_fine()))
}

/// Starts the watcher anew, if that is in order.
fn revive(invocation: &Invocation) -> anyhow::Result<u8> {
    let now = Clock::System.now();
    let (state, situation, heartbeat_age) = look(invocation, &now)?;
    let judgement = &situation.judgement;
    let said = format!("{}: {}", judgement.verdict.word(), judgement.reason);
    let text = files::read_text(&state.at(REVIVALS_FILE), MAX_STATE_BYTES).ok().flatten().unwrap_or_default();
    let history = supervise::parse_history(&text);
    let (code, answer) = match situation.revival(&history, now.at) {
        Revival::Stopped => (0, "the watcher was stopped on purpose; start it with launcher.sh".to_owned()),
        Revival::Alive => (0, format!("the watcher lives ({said}); nothing to do")),
        Revival::Moves => (5, format!("not revived: {said}; a restart would end a watcher that works")),
        Revival::Observes => {
            (5, "not revived: one runs without the instance lock; see launcher.sh --instance-status".to_owned())
        }
        Revival::TooOften => {
            (3, "not revived: it was revived 5 times within 10 minutes; look into its logs first".to_owned())
        }
        Revival::Start => return start(invocation, &state, &situation, heartbeat_age, &history, &now),
    };
    if code == 0 {
        render::line(&answer);
    } else {
        render::note(&format!("ng watcher revive: {answer}"));
    }
    Ok(code)
}

/// Leaves the mark of a revival and runs the launcher.
fn start(
    invocation: &Invocation,
    state: &StateDir,
    situation: &Situation,
    heartbeat_age: Option<Duration>,
    history: &[i64],
    now: &Now,
) -> anyhow::Result<u8> {
    let marker = supervise::marker(&situation.judgement, heartbeat_age, &now.iso());
    let history = supervise::with_revival(history, now.at);
    let written = files::write_atomic(&state.at(REVIVALS_FILE), history.as_bytes(), Durability::Hint)
        .and_then(|()| files::write_atomic(&state.at(REVIVED_FILE), marker.as_bytes(), Durability::Hint));
    if let Err(error) = written {
        let path = state.path().display();
        render::note(&format!("ng watcher revive: not revived: {path} can't be written: {error}"));
        return Ok(4);
    }
    let program = std::env::current_exe().context("finding our own program")?.with_file_name(PROGRAM);
    let mut args = vec![OsStr::new("--launch"), OsStr::new("--replace")];
    if let Some(root) = &invocation.root {
        args.extend([OsStr::new("--root"), root.as_os_str()]);
    }
    let code = detach::run_launcher(&program, &args, state.path())
        .with_context(|| format!("starting {}", program.display()))?;
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Stops the watcher, and says that it was on purpose.
fn stop(invocation: &Invocation) -> anyhow::Result<u8> {
    let state = super::state_dir(invocation)?;
    if state.path().is_dir() {
        files::write_atomic(&state.at(STOP_FILE), b"", Durability::Hint)
            .with_context(|| format!("writing {STOP_FILE} in {}", state.path().display()))?;
    }
    match takeover::take_over(&state, STOP_GRACE) {
        Ok(done) if done.ended.is_empty() && done.reaped.is_empty() => render::line("no watcher runs"),
        Ok(done) => {
            for pid in done.ended.iter().map(|(pid, _)| pid).chain(&done.reaped) {
                render::line(&format!("stopped the watcher {pid}"));
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok(0)
}
