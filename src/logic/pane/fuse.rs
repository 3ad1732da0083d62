//! Weighs the screen's verdict against tmux, the process tree and the hooks.
//!
//! Order (`docs/contracts.md` §3): a pane that is dead or in no agent's hands; a live overlay; a usage limit; then hook
//! and screen together. A fresh hook never hides a live overlay, a stale hook never makes a pane idle, and no witness
//! makes it idle without the screen.

use std::time::Duration;

use super::verdict::{Evidence, Overlay, PaneVerdict, State, Witness};
use crate::logic::snapshot::PaneFacts;
use crate::logic::time::Timestamp;

/// How long a hook's word stands against a screen that contradicts it: the screen may not be repainted yet.
// Seen: the pane shows a submitted prompt 45 to 98 ms after the hook, later on a loaded machine.
const REPAINT: Duration = Duration::from_secs(3);
/// How long a turn's end counts, where the hook recorded one.
const TURN_END_FRESH: Duration = Duration::from_secs(1800);
/// How old a hook may be for its declared waits to count.
const ASYNC_FRESH: Duration = Duration::from_secs(60);

/// Whether the agent's process lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Liveness {
    /// Seen under the pane.
    Alive,
    /// Positively not there: the whole tree under the pane could be read, and no agent is in it.
    Gone,
    /// Could not be told.
    #[default]
    Unknown,
}

/// What the process tree under a pane says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessFacts {
    /// Profile of the agent that was found.
    pub agent: Option<String>,
    /// Its process id.
    pub agent_pid: Option<u32>,
    /// Its version, by the path of its executable.
    pub version: Option<String>,
    /// Whether it lives.
    pub liveness: Liveness,
    /// Whether the foreground is a shell that waits.
    pub shell: bool,
    /// Something else is alive under the pane (a launcher, a build): `Gone` is then no proof that nothing runs.
    pub other: Option<String>,
    /// Background shells below the agent, where they could be counted.
    pub background_shells: Option<u32>,
}

/// What the agent's hooks wrote last (`heartbeat/<window>.json`, `protocol-facts` §3.11).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookFacts {
    /// `busy`, `user_prompt`, `permission_prompt`, `idle_prompt`, or anything else.
    pub state: String,
    /// Event that was last.
    pub event: Option<String>,
    /// When.
    pub last_activity: Option<Timestamp>,
    /// When the last turn ended, if its end was the last event.
    pub last_turn_end: Option<Timestamp>,
    /// The agent's session.
    pub session_id: Option<String>,
    /// When the agent has asked to be woken.
    pub scheduled_wakeup_at: Option<Timestamp>,
    /// Declared external waits, `kind:id` each.
    pub external_waits: Vec<String>,
    /// The file it was read from.
    pub source: Option<String>,
}

impl HookFacts {
    /// Age of the last word; never negative. `None` without a time.
    fn age(&self, now: Timestamp) -> Option<Duration> {
        self.last_turn_end.or(self.last_activity).map(|at| now.since(at))
    }

    /// Whether the word still counts.
    fn is_fresh(&self, now: Timestamp, fresh: Duration) -> bool {
        let limit = if self.last_turn_end.is_some() { TURN_END_FRESH } else { fresh };
        self.age(now).is_some_and(|age| age <= limit)
    }

    /// The hook as evidence.
    fn evidence(&self, rule: &str, now: Timestamp) -> Evidence {
        let mut evidence = Evidence::new(Witness::Hook, rule).with_line(match &self.event {
            Some(event) => format!("{} ({event})", self.state),
            None => self.state.clone(),
        });
        evidence.source.clone_from(&self.source);
        evidence.age_s = self.age(now);
        evidence
    }
}

/// The pane's verdict from all witnesses. `fresh` is how long a hook's word counts (`hook_fresh`).
pub fn fuse(
    facts: &PaneFacts,
    process: &ProcessFacts,
    hook: Option<&HookFacts>,
    screen: PaneVerdict,
    now: Timestamp,
    fresh: Duration,
) -> PaneVerdict {
    if let Some(dead) = facts.dead {
        let how = match (dead.status, dead.signal) {
            (_, Some(signal)) => format!("signal {signal}"),
            (Some(status), _) => format!("status {status}"),
            _ => "status not known".to_owned(),
        };
        return over(screen, State::Absent, Evidence::new(Witness::Tmux, "pane_dead").with_line(how), true);
    }
    if process.liveness == Liveness::Gone {
        return match &process.other {
            Some(other) => {
                let evidence = Evidence::new(Witness::Process, "live-descendant").with_line(other.clone());
                over(screen, State::Unknown, evidence, true)
            }
            None => {
                let rule = if process.shell { "shell" } else { "pid-gone" };
                over(screen, State::Absent, Evidence::new(Witness::Process, rule), true)
            }
        };
    }
    let mut verdict = screen;
    if process.liveness == Liveness::Alive {
        verdict.agent = process.agent.clone().or(verdict.agent);
        verdict.agent_version = process.version.clone().or(verdict.agent_version);
        let mut evidence = Evidence::new(Witness::Process, "agent-alive");
        evidence.line = process.agent_pid.map(|pid| format!("pid {pid}"));
        let blank = verdict.evidence.iter().any(|reason| reason.rule == "blank-screen");
        if verdict.state == State::Unknown && blank {
            verdict.state = State::Empty;
        }
        verdict.evidence.push(evidence);
    } else if verdict.agent.is_none() && process.shell {
        verdict.evidence.push(Evidence::new(Witness::Process, "shell"));
    }
    if matches!(verdict.state, State::Blocked | State::OverLimit) {
        if let Some(hook) = hook {
            verdict.evidence.push(hook.evidence("hook-behind-screen", now));
        }
        return verdict;
    }
    match hook {
        Some(hook) => with_background(with_hook(verdict, hook, now, fresh), process),
        None => with_background(verdict, process),
    }
}

/// Weighs a hook against a screen without overlay or limit.
fn with_hook(verdict: PaneVerdict, hook: &HookFacts, now: Timestamp, fresh: Duration) -> PaneVerdict {
    if !hook.is_fresh(now, fresh) {
        let mut verdict = verdict;
        verdict.evidence.push(hook.evidence("hook-stale", now));
        return refined(verdict, hook, now);
    }
    let settled = hook.age(now).is_some_and(|age| age > REPAINT);
    match hook.state.as_str() {
        "busy" | "user_prompt" => {
            // Interrupts and declined calls fire no hook; the screen says so, and is believed once it had time to be
            // painted anew.
            let over_by_screen = settled && verdict.evidence.iter().any(|reason| reason.rule == TURN_OVER);
            if over_by_screen {
                let mut verdict = verdict;
                verdict.evidence.push(hook.evidence("hook-contradicted", now));
                verdict
            } else {
                over(verdict, State::Busy, hook.evidence("hook-busy", now), false)
            }
        }
        "permission_prompt" if verdict.input.is_some() => {
            // An input row is on the screen, so no dialog is; either it is not painted yet, or it was answered.
            let rule = if settled { "hook-contradicted" } else { "hook-permission-not-painted" };
            if settled || verdict.state == State::UserTyping {
                let mut verdict = verdict;
                verdict.evidence.push(hook.evidence(rule, now));
                verdict
            } else {
                over(verdict, State::Busy, hook.evidence(rule, now), false)
            }
        }
        "permission_prompt" => {
            let mut verdict = over(verdict, State::Blocked, hook.evidence("hook-permission", now), false);
            verdict.overlay = Some(Overlay::Permission);
            verdict
        }
        _ => {
            let mut verdict = verdict;
            verdict.evidence.push(hook.evidence("hook-idle", now));
            refined(verdict, hook, now)
        }
    }
}

/// Rule id under which a screen tells that the turn ended without a hook (an interrupt); profiles vote for it.
pub const TURN_OVER: &str = "turn-over";

/// An idle pane that declared what it waits for.
fn refined(verdict: PaneVerdict, hook: &HookFacts, now: Timestamp) -> PaneVerdict {
    if !matches!(verdict.state, State::Idle | State::AutosuggestOnly) {
        return verdict;
    }
    let recent = hook.last_activity.is_some_and(|at| now.since(at) <= ASYNC_FRESH);
    if recent && hook.scheduled_wakeup_at.is_some_and(|at| at > now) {
        return over(verdict, State::WorkingSelfPaced, hook.evidence("hook-wakeup", now), false);
    }
    if !hook.external_waits.is_empty() {
        let evidence = hook.evidence("hook-external-waits", now).with_line(hook.external_waits.join(","));
        return over(verdict, State::IdleOrphanAsync, evidence, false);
    }
    verdict
}

/// An idle pane with live shells below the agent is waiting for its own job.
fn with_background(verdict: PaneVerdict, process: &ProcessFacts) -> PaneVerdict {
    match process.background_shells {
        Some(count) if count > 0 => {
            let mut verdict = verdict;
            if matches!(verdict.state, State::Idle | State::AutosuggestOnly) {
                let evidence = Evidence::new(Witness::Process, "background-shells").with_line(count.to_string());
                verdict = over(verdict, State::WorkingBackground, evidence, false);
            }
            if verdict.state == State::WorkingBackground {
                verdict.background = Some(count);
            }
            verdict
        }
        _ => verdict,
    }
}

/// The verdict with another state, for this reason. `bare` drops what only a live agent's screen can mean.
fn over(mut verdict: PaneVerdict, state: State, reason: Evidence, bare: bool) -> PaneVerdict {
    verdict.state = state;
    verdict.evidence.insert(0, reason);
    if bare {
        let evidence = std::mem::take(&mut verdict.evidence);
        let (hash, mode) = (verdict.content_hash, verdict.mode);
        let mut bare = PaneVerdict { evidence, ..PaneVerdict::of(state, Evidence::new(Witness::Screen, "")) };
        (bare.content_hash, bare.mode) = (hash, mode);
        return bare;
    }
    verdict
}
