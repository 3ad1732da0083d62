//! Weighs the screen's verdict against tmux, the process tree and the hooks.
//!
//! Who overrules whom is one table ([`precedence`](super::precedence), `docs/fusion.md`); this carries out the row that
//! decides, and then refines a pane at rest. A fresh hook never hides a live overlay, a stale hook never makes a pane
//! idle, and no witness makes it idle without the screen.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::identity::Unclear;
use super::precedence::{Case, Row, Then};
use super::turn::Turn;
use super::verdict::{Evidence, InputRow, PaneVerdict, State, Witness};
use crate::logic::hook::Heartbeat;
use crate::logic::snapshot::PaneFacts;
use crate::logic::time::Timestamp;

/// Rule of a pane in which no agent runs, but something else does.
pub const LIVE_DESCENDANT: &str = "live-descendant";
/// Rule of a pane whose process is not there, nor anything of its session.
pub const PID_GONE: &str = "pid-gone";
/// How long a turn's end counts, where the hook recorded one.
const TURN_END_FRESH: Duration = Duration::from_secs(1800);
/// How old a hook may be for its declared waits to count.
const ASYNC_FRESH: Duration = Duration::from_secs(60);

/// Rule id under which a screen tells that the turn ended without a hook (an interrupt); profiles vote for it.
pub const TURN_OVER: &str = "turn-over";

/// Rule id under which a screen tells that it only presumes a running turn.
pub const TURN_PRESUMED: &str = "turn-presumed";
/// Rule under which the screen says that what was said last closes a turn, though a mark tells of one.
pub const TURN_CLOSED: &str = "turn-closed";

/// Rule id under which a screen tells that only shells, and so processes, run in the background.
pub const SHELLS_ONLY: &str = "background-shells-only";

/// Whether the agent's process lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessFacts {
    /// Profile of the agent that was found.
    pub agent: Option<String>,
    /// Its process id.
    pub agent_pid: Option<u32>,
    /// Its program file.
    pub agent_exe: Option<String>,
    /// When it started.
    pub agent_started: Option<Timestamp>,
    /// Its version, by the path of its executable or by its package.
    pub version: Option<String>,
    /// Whether it lives.
    pub liveness: Liveness,
    /// Why it can't be told, or why an agent that lives can't be reached.
    pub unclear: Option<Unclear>,
    /// Whether the foreground is a shell that waits.
    pub shell: bool,
    /// Whether a shell waits behind the agent: it takes the keys when the agent ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shell_behind: bool,
    /// What else is alive under the pane (a launcher, a build), or where it leads: `Gone` is then no proof that nothing
    /// runs.
    pub other: Option<String>,
    /// Background shells below the agent, where they could be counted.
    pub background_shells: Option<u32>,
    /// Processor time of those shells and of all below them, in clock ticks, since each started.
    pub background_cpu: Option<u64>,
    /// When the oldest of those shells started.
    pub background_oldest: Option<Timestamp>,
    /// Processor time of everything below the agent, in clock ticks, since each started.
    pub child_cpu: Option<u64>,
    /// When the shells and the processor time were counted.
    pub counted_at: Option<Timestamp>,
}

impl ProcessFacts {
    /// The agent's process for people: its id and its program file.
    fn described(&self) -> Option<String> {
        let pid = self.agent_pid?;
        Some(match &self.agent_exe {
            Some(exe) => format!("pid {pid} {exe}"),
            None => format!("pid {pid}"),
        })
    }
}

/// What the agent's hooks wrote last (`heartbeat/<window>.json`, `protocol-facts` §3.11).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
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
    /// How long a turn's end counts, and how old declared waits may be, where other values than the usual are asked for.
    #[serde(skip)]
    pub counts_for: (Option<Duration>, Option<Duration>),
    /// Where the hooks said that the session's own file is.
    pub session_file: Option<String>,
    /// What that file says of the last turn, where it was looked at.
    pub turn: Option<Turn>,
}

impl HookFacts {
    /// What a heartbeat says that was read from `source`.
    pub fn of(heartbeat: &Heartbeat, source: String) -> Self {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            state: heartbeat.state.clone(),
            event: some(&heartbeat.event),
            last_activity: Some(Timestamp::from_secs(heartbeat.last_activity)),
            last_turn_end: heartbeat.last_turn_end.map(Timestamp::from_secs),
            session_id: some(&heartbeat.session_id),
            scheduled_wakeup_at: heartbeat.scheduled_wakeup_at().map(Timestamp::from_secs),
            external_waits: heartbeat.external_waits().into_iter().map(|(kind, id)| format!("{kind}:{id}")).collect(),
            source: Some(source),
            counts_for: (None, None),
            session_file: some(&heartbeat.transcript_path),
            turn: None,
        }
    }

    /// Whether its last word is that a turn runs.
    pub(super) fn says_busy(&self) -> bool {
        matches!(self.state.as_str(), "busy" | "user_prompt")
    }

    /// Age of the last word; never negative. `None` without a time.
    pub(super) fn age(&self, now: Timestamp) -> Option<Duration> {
        self.last_turn_end.or(self.last_activity).map(|at| now.since(at))
    }

    /// Whether the word still counts.
    pub(super) fn is_fresh(&self, now: Timestamp, fresh: Duration) -> bool {
        let turn_end = self.counts_for.0.unwrap_or(TURN_END_FRESH);
        let limit = if self.last_turn_end.is_some() { turn_end } else { fresh };
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

/// The pane's verdict from all witnesses, by the table of [`precedence`](super::precedence). `fresh` is how long a hook's
/// word counts (`hook_fresh`).
pub fn fuse(
    facts: &PaneFacts,
    process: &ProcessFacts,
    hook: Option<&HookFacts>,
    screen: PaneVerdict,
    now: Timestamp,
    fresh: Duration,
) -> PaneVerdict {
    let case = Case { facts, process, hook, screen: &screen, now, fresh };
    let row = Row::of(&case);
    let reason = reason(row, &case);
    if let Then::Nobody(state) = row.then {
        let mut verdict = over(screen, state, reason);
        // What the screen shows is nobody's, but what is known of it stays.
        let known = |what: &Option<String>| what.clone().filter(|_| process.unclear.is_some());
        let bare = PaneVerdict::of(state, Evidence::new(Witness::Screen, ""));
        verdict = PaneVerdict {
            agent: known(&process.agent),
            agent_version: known(&process.version),
            evidence: verdict.evidence,
            content_hash: verdict.content_hash,
            mode: verdict.mode,
            ..bare
        };
        return verdict;
    }
    let verdict = with_process(screen, process);
    let mut verdict = match row.then {
        Then::Is(state) | Then::Nobody(state) => over(verdict, state, reason),
        Then::Asks(overlay) => {
            let mut verdict = over(verdict, State::Blocked, reason);
            verdict.overlay = Some(overlay);
            verdict
        }
        Then::ByBox => by_box(verdict, reason),
        Then::Screen => {
            let mut verdict = verdict;
            verdict.evidence.extend(reason);
            verdict
        }
    };
    if matches!(verdict.state, State::Blocked | State::OverLimit) {
        return verdict;
    }
    if let Some(turn) = hook.and_then(|hook| hook.turn.as_ref()) {
        verdict.queued |= verdict.state == State::Busy && turn.queued > 0;
        if verdict.state != State::Busy {
            verdict.notice = verdict.notice.or_else(|| turn.notice.clone());
        }
    }
    refined(with_background(verdict, process), hook, now)
}

/// The evidence of a row; none where it has nothing to show.
fn reason(row: &Row, case: &Case<'_>) -> Option<Evidence> {
    let evidence = Evidence::new(row.witness, row.id);
    Some(match (row.witness, row.id, case.hook) {
        (Witness::Tmux, ..) => match case.facts.dead {
            Some(dead) => evidence.with_line(match (dead.status, dead.signal) {
                (_, Some(signal)) => format!("signal {signal}"),
                (Some(status), _) => format!("status {status}"),
                _ => "status not known".to_owned(),
            }),
            None => Evidence { age_s: Some(case.now.since(case.facts.activity)), ..evidence },
        },
        (Witness::Process, ..) => {
            let rule = case.process.unclear.filter(|why| why.hides_screen()).map_or(row.id, Unclear::rule);
            let line = case.process.other.clone().or_else(|| case.process.described());
            Evidence { line, ..Evidence::new(Witness::Process, rule) }
        }
        (Witness::Transcript, _, Some(hook)) => {
            let turn = hook.turn.as_ref()?;
            let (last, at) = turn.last?;
            let mut evidence = evidence.with_line(format!("{last:?}").to_lowercase());
            evidence.source = Some(turn.source.clone());
            evidence.age_s = Some(case.now.since(at));
            evidence
        }
        // What a hook says beside a screen that decides.
        (_, _, Some(hook)) => hook.evidence(row.id, case.now),
        (_, _, None) => return None,
    })
}

/// What the process tree says of a screen that is drawn by somebody, or may be.
fn with_process(mut verdict: PaneVerdict, process: &ProcessFacts) -> PaneVerdict {
    if process.liveness == Liveness::Alive {
        verdict.agent = process.agent.clone().or(verdict.agent);
        verdict.agent_version = process.version.clone().or(verdict.agent_version);
        let mut evidence = Evidence::new(Witness::Process, "agent-alive");
        evidence.line = process.described();
        let blank = verdict.evidence.iter().any(|reason| reason.rule == "blank-screen");
        if verdict.state == State::Unknown && blank {
            verdict.state = State::Empty;
        }
        verdict.evidence.push(evidence);
    } else if let Some(why) = process.unclear {
        let mut evidence = Evidence::new(Witness::Process, why.rule());
        evidence.line.clone_from(&process.other);
        // Where the screen does not tell either, that is the reason to name.
        let first = if verdict.state == State::Unknown { 0 } else { verdict.evidence.len() };
        verdict.evidence.insert(first, evidence);
    }
    verdict
}

/// An idle pane that declared what it waits for.
fn refined(verdict: PaneVerdict, hook: Option<&HookFacts>, now: Timestamp) -> PaneVerdict {
    let Some(hook) = hook.filter(|_| matches!(verdict.state, State::Idle | State::AutosuggestOnly)) else {
        return verdict;
    };
    let counts_for = hook.counts_for.1.unwrap_or(ASYNC_FRESH);
    let recent = hook.last_activity.is_some_and(|at| now.since(at) <= counts_for);
    if recent && hook.scheduled_wakeup_at.is_some_and(|at| at > now) {
        return over(verdict, State::WorkingSelfPaced, Some(hook.evidence("hook-wakeup", now)));
    }
    if !hook.external_waits.is_empty() {
        let evidence = hook.evidence("hook-external-waits", now).with_line(hook.external_waits.join(","));
        return over(verdict, State::IdleOrphanAsync, Some(evidence));
    }
    verdict
}

/// Whether the session's own file can change what this screen comes to; else it need not be looked at: a hook believes in
/// a turn, or the screen presumes one.
pub fn weighs_session(hook: &HookFacts, screen: &PaneVerdict) -> bool {
    let presumed = screen.evidence.iter().any(|reason| reason.rule == TURN_PRESUMED);
    (presumed || hook.says_busy() || hook.state == "permission_prompt")
        && !matches!(screen.state, State::Blocked | State::OverLimit | State::Absent)
}

/// Whether what runs below the agent can change what this screen comes to; else it need not be counted. A turn that is
/// only presumed may turn out to be over.
pub fn weighs_background(screen: &PaneVerdict) -> bool {
    matches!(screen.state, State::Idle | State::AutosuggestOnly | State::WorkingBackground)
        || screen.evidence.iter().any(|reason| reason.rule == TURN_PRESUMED)
}

/// An idle pane with live shells below the agent is waiting for its own job.
fn with_background(verdict: PaneVerdict, process: &ProcessFacts) -> PaneVerdict {
    match process.background_shells {
        Some(count) if count > 0 => {
            let mut verdict = verdict;
            if matches!(verdict.state, State::Idle | State::AutosuggestOnly) {
                let evidence = Evidence::new(Witness::Process, "background-shells").with_line(count.to_string());
                verdict = over(verdict, State::WorkingBackground, Some(evidence));
            }
            if verdict.state == State::WorkingBackground {
                verdict.background = Some(count);
                verdict.background_reliable = Some(true);
                verdict.background_cpu = process.background_cpu;
                verdict.background_oldest = process.background_oldest;
            }
            verdict
        }
        Some(_) if verdict.state == State::WorkingBackground && counts_shells_only(&verdict) => {
            let mut verdict = by_box(verdict, Some(Evidence::new(Witness::Process, "background-ended")));
            verdict.background = verdict.background.filter(|_| verdict.state == State::WorkingBackground);
            verdict
        }
        _ => {
            let mut verdict = verdict;
            verdict.background_reliable = verdict.background.map(|_| false);
            verdict
        }
    }
}

/// Whether the screen tells of no other background work than shells.
fn counts_shells_only(verdict: &PaneVerdict) -> bool {
    verdict.evidence.iter().any(|reason| reason.rule == SHELLS_ONLY)
}

/// The verdict on a turn that is over, by what stands in the box.
fn by_box(verdict: PaneVerdict, reason: Option<Evidence>) -> PaneVerdict {
    let state = match verdict.input {
        Some(InputRow::Blank) => State::Idle,
        Some(InputRow::Ghost) => State::AutosuggestOnly,
        _ => verdict.state,
    };
    over(verdict, state, reason)
}

/// The verdict with another state, for this reason.
fn over(mut verdict: PaneVerdict, state: State, reason: Option<Evidence>) -> PaneVerdict {
    verdict.state = state;
    verdict.evidence.splice(0..0, reason);
    verdict
}

#[cfg(test)]
mod tests {
    use super::super::turn::Last;
    use super::super::verdict::Auth;
    use super::*;
    use crate::logic::ids::{PaneId, SessionId, WindowId, WindowName};
    use crate::logic::snapshot::DeadPane;

    const FRESH: Duration = Duration::from_secs(30);

    fn now() -> Timestamp {
        Timestamp::from_secs(1_000_000)
    }

    fn facts() -> PaneFacts {
        PaneFacts {
            pane: PaneId::new(1),
            window: WindowId::new(1),
            session: SessionId::new(0),
            session_name: "main".into(),
            window_name: WindowName("w1".into()),
            window_index: 1,
            window_active: false,
            pane_active: true,
            activity: now(),
            dead: None,
            pid: Some(10),
            in_mode: false,
            synchronized: false,
            alternate_on: true,
            cursor: (0, 0),
            cursor_shown: true,
            size: (80, 24),
            history: 0,
            bell: false,
            title: String::new(),
        }
    }

    fn alive() -> ProcessFacts {
        ProcessFacts {
            agent: Some("claude".into()),
            agent_pid: Some(11),
            liveness: Liveness::Alive,
            ..ProcessFacts::default()
        }
    }

    fn screen(state: State, rule: &str) -> PaneVerdict {
        let mut verdict = PaneVerdict::of(state, Evidence::new(Witness::Screen, rule));
        verdict.input = match state {
            State::Idle | State::Busy => Some(InputRow::Blank),
            State::UserTyping => Some(InputRow::Typed),
            _ => None,
        };
        verdict
    }

    fn hook(state: &str, age_s: i64) -> HookFacts {
        let at = Timestamp::from_secs(now().secs() - age_s);
        HookFacts { state: state.into(), last_activity: Some(at), ..HookFacts::default() }
    }

    fn check(process: &ProcessFacts, hook: Option<&HookFacts>, seen: PaneVerdict, expected: (State, &str)) {
        let verdict = fuse(&facts(), process, hook, seen, now(), FRESH);
        let rules: Vec<&str> = verdict.evidence.iter().map(|reason| reason.rule.as_str()).collect();
        assert_eq!(verdict.state, expected.0, "{rules:?}");
        assert!(rules.contains(&expected.1), "{rules:?}");
    }

    #[test]
    fn a_dead_pane_is_absent_whatever_stands_in_it() {
        let mut dead = facts();
        dead.dead = Some(DeadPane { status: None, signal: Some(9) });
        let verdict = fuse(&dead, &alive(), Some(&hook("busy", 1)), screen(State::Idle, "input-blank"), now(), FRESH);
        assert_eq!((verdict.state, verdict.input), (State::Absent, None));
        assert_eq!(verdict.evidence[0].line.as_deref(), Some("signal 9"));
    }

    #[test]
    fn a_frame_left_by_a_killed_agent_is_no_life() {
        let gone = ProcessFacts { liveness: Liveness::Gone, shell: true, ..ProcessFacts::default() };
        check(&gone, None, screen(State::Idle, "input-blank"), (State::Absent, "tree-empty-past-grace"));
        let building = ProcessFacts { other: Some("make".into()), ..gone };
        check(&building, None, screen(State::Idle, "input-blank"), (State::Unknown, "live-descendant"));
    }

    #[test]
    fn a_fresh_hook_never_hides_a_live_overlay_or_a_limit() {
        for state in ["busy", "user_prompt", "idle_prompt"] {
            let (blocked, limit) =
                (screen(State::Blocked, "claude-permission"), screen(State::OverLimit, "claude-limit"));
            check(&alive(), Some(&hook(state, 1)), blocked, (State::Blocked, "claude-permission"));
            check(&alive(), Some(&hook(state, 1)), limit, (State::OverLimit, "claude-limit"));
        }
    }

    #[test]
    fn a_fresh_busy_hook_outweighs_an_idle_looking_screen() {
        check(&alive(), Some(&hook("busy", 5)), screen(State::Idle, "input-blank"), (State::Busy, "hook-busy"));
        check(&alive(), Some(&hook("user_prompt", 0)), screen(State::Idle, "input-blank"), (State::Busy, "hook-busy"));
        // Clocks of hook and watcher may differ: an age below zero is no age.
        check(&alive(), Some(&hook("busy", -9)), screen(State::Idle, "input-blank"), (State::Busy, "hook-busy"));
    }

    #[test]
    fn a_stale_hook_leaves_the_word_to_the_screen() {
        check(&alive(), Some(&hook("busy", 1200)), screen(State::Busy, "claude-spinner"), (State::Busy, "hook-stale"));
        check(&alive(), Some(&hook("busy", 31)), screen(State::Idle, "input-blank"), (State::Idle, "hook-stale"));
        check(&alive(), Some(&hook("idle_prompt", 99)), screen(State::Unknown, "x"), (State::Unknown, "hook-stale"));
    }

    #[test]
    fn no_hook_makes_a_pane_idle() {
        check(&alive(), Some(&hook("idle_prompt", 1)), screen(State::Unknown, "x"), (State::Unknown, "hook-idle"));
        check(
            &alive(),
            Some(&hook("idle_prompt", 1)),
            screen(State::Busy, "claude-spinner"),
            (State::Busy, "hook-idle"),
        );
    }

    #[test]
    fn an_interrupt_on_the_screen_ends_the_turn_that_the_hook_still_believes_in() {
        let seen = || {
            let mut seen = screen(State::Idle, "input-blank");
            seen.evidence.push(Evidence::new(Witness::Screen, TURN_OVER));
            seen
        };
        check(&alive(), Some(&hook("busy", 10)), seen(), (State::Idle, "hook-contradicted"));
        // Just after a prompt the screen may still show what was there before it.
        check(&alive(), Some(&hook("user_prompt", 1)), seen(), (State::Busy, "hook-busy"));
    }

    #[test]
    fn a_permission_hook_is_not_believed_over_an_input_row() {
        let hook_now = hook("permission_prompt", 1);
        let declined = hook("permission_prompt", 10);
        check(&alive(), Some(&hook_now), screen(State::Unknown, "x"), (State::Blocked, "hook-permission"));
        check(&alive(), Some(&declined), screen(State::Idle, "input-blank"), (State::Idle, "hook-answered"));
        check(
            &alive(),
            Some(&hook_now),
            screen(State::Idle, "input-blank"),
            (State::Busy, "hook-permission-not-painted"),
        );
    }

    #[test]
    fn a_blank_screen_of_a_living_agent_is_empty_and_of_nobody_unknown() {
        check(&alive(), None, screen(State::Unknown, "blank-screen"), (State::Empty, "agent-alive"));
        check(&ProcessFacts::default(), None, screen(State::Unknown, "blank-screen"), (State::Unknown, "blank-screen"));
    }

    #[test]
    fn live_shells_below_an_idle_agent_mean_that_it_waits_for_its_own_job() {
        let process = ProcessFacts { background_shells: Some(2), ..alive() };
        check(&process, None, screen(State::Idle, "input-blank"), (State::WorkingBackground, "background-shells"));
        check(&process, None, screen(State::UserTyping, "input-typed"), (State::UserTyping, "input-typed"));
    }

    #[test]
    fn a_count_on_the_screen_ends_with_the_last_shell() {
        let seen = |shells_only: bool| {
            let mut seen = screen(State::WorkingBackground, "claude-footer-jobs");
            (seen.input, seen.background) = (Some(InputRow::Blank), Some(1));
            if shells_only {
                seen.evidence.push(Evidence::new(Witness::Screen, SHELLS_ONLY));
            }
            seen
        };
        let with = |shells| ProcessFacts { background_shells: shells, ..alive() };
        check(&with(Some(0)), None, seen(true), (State::Idle, "background-ended"));
        check(&with(Some(0)), None, seen(false), (State::WorkingBackground, "claude-footer-jobs"));
        check(&with(Some(1)), None, seen(true), (State::WorkingBackground, "claude-footer-jobs"));
        check(&with(None), None, seen(true), (State::WorkingBackground, "claude-footer-jobs"));
    }

    #[test]
    fn declared_waits_refine_idle_only() {
        let mut waiting = hook("idle_prompt", 20);
        waiting.external_waits = vec!["slurm:77".into()];
        check(
            &alive(),
            Some(&waiting),
            screen(State::Idle, "input-blank"),
            (State::IdleOrphanAsync, "hook-external-waits"),
        );
        check(&alive(), Some(&waiting), screen(State::Busy, "claude-spinner"), (State::Busy, "hook-idle"));
        waiting.scheduled_wakeup_at = Some(Timestamp::from_secs(now().secs() + 60));
        check(&alive(), Some(&waiting), screen(State::Idle, "input-blank"), (State::WorkingSelfPaced, "hook-wakeup"));
    }

    #[test]
    fn a_turn_that_the_screen_only_presumes_is_over_when_its_hook_saw_the_end() {
        let seen = || {
            let mut seen = screen(State::Busy, "claude-turn-without-end");
            seen.evidence.push(Evidence::new(Witness::Screen, TURN_PRESUMED));
            seen
        };
        let mut ended = hook("idle_prompt", 600);
        ended.last_turn_end = ended.last_activity;
        check(&alive(), Some(&ended), seen(), (State::Idle, "hook-turn-end"));
        check(&alive(), Some(&ended), screen(State::Busy, "claude-spinner"), (State::Busy, "hook-idle"));
        check(&alive(), Some(&hook("idle_prompt", 5)), seen(), (State::Busy, "hook-idle"));
        check(&alive(), None, seen(), (State::Busy, "claude-turn-without-end"));
    }

    #[test]
    fn a_turn_that_the_screen_only_presumes_is_over_once_nothing_was_drawn_for_long() {
        let presumed = |input| {
            let mut seen = screen(State::Busy, "codex-turn-without-title");
            seen.evidence.push(Evidence::new(Witness::Screen, TURN_PRESUMED));
            seen.input = input;
            seen
        };
        // The clock runs on while the pane is as it was.
        let after = |secs: i64, hook: Option<&HookFacts>, seen: PaneVerdict| {
            let later = Timestamp::from_secs(now().secs() + secs);
            let verdict = fuse(&facts(), &alive(), hook, seen, later, FRESH);
            (verdict.state, verdict.evidence[0].rule.clone())
        };
        let (ghost, blank) = (Some(InputRow::Ghost), Some(InputRow::Blank));
        let is = |state, rule: &str| (state, rule.to_owned());
        for secs in [-60, 0, 60, 309] {
            assert_eq!(after(secs, None, presumed(ghost)), is(State::Busy, "codex-turn-without-title"), "{secs}");
        }
        assert_eq!(after(310, None, presumed(ghost)), is(State::AutosuggestOnly, "presumed-silent"));
        assert_eq!(after(4000, None, presumed(blank)), is(State::Idle, "presumed-silent"));
        // Below a line that closes a turn that is soon.
        let mut closed = presumed(blank);
        closed.evidence.push(Evidence::new(Witness::Screen, TURN_CLOSED));
        assert_eq!(after(29, None, closed.clone()).0, State::Busy);
        assert_eq!(after(30, None, closed), is(State::Idle, "closed-silent"));
        // A command that prints nothing has no box below it, and a draft stays a draft.
        assert_eq!(after(4000, None, presumed(None)).0, State::Busy);
        // A mark that is there is not presumed, and what a hook says counts.
        assert_eq!(after(4000, None, screen(State::Busy, "codex-working")), is(State::Busy, "codex-working"));
        let busy = HookFacts { last_activity: Some(Timestamp::from_secs(now().secs() + 390)), ..hook("busy", 0) };
        assert_eq!(after(400, Some(&busy), presumed(ghost)), is(State::Busy, "hook-busy"));
    }

    #[test]
    fn the_session_s_own_file_ends_a_turn_that_no_hook_saw_end() {
        let presumed = || {
            let mut seen = screen(State::Busy, "claude-turn-without-end");
            seen.evidence.push(Evidence::new(Witness::Screen, TURN_PRESUMED));
            seen
        };
        let told = |state: &str, age_s: i64, last: Last, last_age_s: i64| {
            let at = Timestamp::from_secs(now().secs() - last_age_s);
            let turn = Turn { last: Some((last, at)), ..Turn::default() };
            HookFacts { turn: Some(turn), ..hook(state, age_s) }
        };
        let over = |state| (state, "transcript-turn-over");
        for age in [10, 29, 1200] {
            let stopped = told("busy", age, Last::Interrupted, age.min(9));
            check(&alive(), Some(&stopped), presumed(), over(State::Idle));
            check(&alive(), Some(&stopped), screen(State::Idle, "input-blank"), over(State::Idle));
        }
        let stopped = told("busy", 10, Last::Interrupted, 9);
        // What the screen shows to run, runs.
        check(&alive(), Some(&stopped), screen(State::Busy, "claude-spinner"), (State::Busy, "hook-busy"));
        check(&alive(), Some(&stopped), screen(State::Blocked, "x"), (State::Blocked, "x"));
        // Written before the hook spoke, a moment ago, or about a turn that goes on.
        let idle = || screen(State::Idle, "input-blank");
        check(&alive(), Some(&told("busy", 10, Last::Ended, 11)), idle(), (State::Busy, "hook-busy"));
        check(&alive(), Some(&told("busy", 3, Last::Ended, 2)), idle(), (State::Busy, "hook-busy"));
        check(&alive(), Some(&told("busy", 10, Last::Works, 9)), idle(), (State::Busy, "hook-busy"));
    }

    #[test]
    fn the_session_s_own_file_tells_the_error_and_the_queue() {
        let at = Timestamp::from_secs(now().secs() - 9);
        let turn =
            Turn { last: Some((Last::Failed, at)), notice: Some("api-529".into()), queued: 1, ..Turn::default() };
        let failed = HookFacts { turn: Some(turn), ..hook("busy", 10) };
        let see = |seen| fuse(&facts(), &alive(), Some(&failed), seen, now(), FRESH);
        let verdict = see(screen(State::Idle, "input-blank"));
        assert_eq!((verdict.state, verdict.notice.as_deref(), verdict.queued), (State::Idle, Some("api-529"), false));
        let verdict = see(screen(State::Busy, "claude-spinner"));
        assert_eq!((verdict.state, verdict.notice, verdict.queued), (State::Busy, None, true));
    }

    #[test]
    fn signed_out_survives_fusion() {
        let mut seen = screen(State::Idle, "input-blank");
        seen.auth = Some(Auth::Expired);
        assert_eq!(fuse(&facts(), &alive(), None, seen, now(), FRESH).auth, Some(Auth::Expired));
    }
}
