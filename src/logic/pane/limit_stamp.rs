//! The stamp that the failure hook leaves when a usage limit ends a turn (`over-limit/<window>.json`), as a witness: the
//! limit holds although its notice may have scrolled away. It counts for 27 hours, and until the agent works again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fuse::HookFacts;
use super::verdict::{Evidence, PaneVerdict, State, Witness};
use crate::logic::screen::region::shortened;
use crate::logic::text::{Joiners, visible};
use crate::logic::time::Timestamp;

/// How long a stamp counts: a day's limit, and the hours that a session may be longer.
// `over-limit/<window>.json` in the original: 97200 s.
const LASTS: Duration = Duration::from_secs(27 * 3600);

/// Rule id under which the stamp decides.
pub const OVER_LIMIT_STAMP: &str = "over-limit-stamp";

/// Most characters of a token.
const MAX_TOKEN_CHARS: usize = 40;

/// A stamp.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitStamp {
    /// When the limit ended the turn.
    pub at: Timestamp,
    /// When the limit ends, as a token; `unknown` where the notice did not say.
    pub reset_at: String,
    /// The agent's notice.
    pub message: String,
    /// The agent's session; empty where nobody knows.
    pub session_id: String,
    /// The file it was read from.
    pub source: String,
}

/// The file as written.
#[derive(Deserialize)]
struct Raw {
    /// Seconds since 1970; other writers may write a text or a fraction.
    #[serde(default)]
    ts: Option<serde_json::Value>,
    /// The agent's session.
    #[serde(default)]
    session_id: Option<String>,
    /// The agent's notice.
    #[serde(default)]
    error_message: Option<String>,
    /// When the limit ends.
    #[serde(default)]
    reset_at: Option<String>,
    /// The window's name.
    #[serde(default)]
    window: Option<String>,
}

impl LimitStamp {
    /// Reads a stamp of this window; without a time of its own it is as old as its file. `None` if it is none, or names
    /// another window.
    pub fn parse(text: &str, window: Option<&str>, modified: Timestamp, source: &str) -> Option<Self> {
        let raw: Raw = serde_json::from_str(text).ok()?;
        if let (Some(own), Some(asked)) = (raw.window.as_deref().filter(|own| !own.is_empty()), window)
            && own != asked
        {
            return None;
        }
        Some(Self {
            at: raw.ts.as_ref().and_then(seconds).filter(|ts| *ts > 0).map_or(modified, Timestamp::from_secs),
            reset_at: token(raw.reset_at.as_deref().unwrap_or_default()),
            message: raw.error_message.unwrap_or_default(),
            session_id: raw.session_id.unwrap_or_default(),
            source: source.to_owned(),
        })
    }

    /// Why it does not count any more.
    pub fn is_over(&self, hook: Option<&HookFacts>, now: Timestamp) -> Option<&'static str> {
        if now.since(self.at) > LASTS {
            return Some("older than 27 hours");
        }
        let hook = hook?;
        let is_other = hook.session_id.as_deref().is_some_and(|id| !id.is_empty() && id != self.session_id);
        if is_other && !self.session_id.is_empty() {
            return Some("of an earlier session");
        }
        // A notice of idleness is no work.
        let works = matches!(hook.state.as_str(), "busy" | "user_prompt" | "permission_prompt");
        let worked_at = hook.last_turn_end.or(hook.last_activity.filter(|_| works));
        worked_at.is_some_and(|at| at > self.at).then_some("the agent worked since")
    }

    /// The stamp as evidence.
    fn evidence(&self, now: Timestamp) -> Evidence {
        let line = shortened(&visible(&self.message, Joiners::Drop).replace(['\n', '\t'], " "));
        let mut evidence = Evidence::new(Witness::Hook, OVER_LIMIT_STAMP).with_line(line);
        evidence.source = Some(self.source.clone());
        evidence.age_s = Some(now.since(self.at));
        evidence
    }
}

/// Whole seconds, however they are written.
fn seconds(value: &serde_json::Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok()).or_else(|| Some(value.as_f64()? as i64))
}

/// The verdict with the stamp weighed in: below a dead pane, a live overlay and a notice on the screen, and below a turn
/// that runs (the agent works again); above everything that only looks idle.
#[must_use]
pub fn with_limit_stamp(
    mut verdict: PaneVerdict,
    stamp: Option<&LimitStamp>,
    hook: Option<&HookFacts>,
    now: Timestamp,
) -> PaneVerdict {
    let Some(stamp) = stamp.filter(|stamp| stamp.is_over(hook, now).is_none()) else { return verdict };
    match verdict.state {
        State::Absent | State::Blocked | State::Busy | State::Unknown => return verdict,
        State::OverLimit => verdict.evidence.push(stamp.evidence(now)),
        State::Idle
        | State::AutosuggestOnly
        | State::UserTyping
        | State::WorkingBackground
        | State::WorkingSelfPaced
        | State::IdleOrphanAsync
        | State::Empty => {
            verdict.state = State::OverLimit;
            verdict.evidence.insert(0, stamp.evidence(now));
        }
    }
    let is_known = |field: &Option<String>| field.as_deref().is_some_and(|text| text != "unknown");
    if !is_known(&verdict.reset_at) {
        verdict.reset_at = Some(stamp.reset_at.clone());
    }
    if !is_known(&verdict.limit) {
        verdict.limit = Some(flavour(&stamp.message));
    }
    verdict
}

/// The flavour in a notice: `You've hit your weekly Opus limit` gives `weekly_Opus`.
fn flavour(message: &str) -> String {
    let words = message.split_once(" your ").and_then(|(_, rest)| rest.split_once(" limit")).map(|(words, _)| words);
    token(words.filter(|words| words.split_whitespace().count() <= 3).unwrap_or_default())
}

/// Words joined by `_`, without what can't be seen, cut; `unknown` where there are none.
fn token(text: &str) -> String {
    let clean = visible(text, Joiners::Drop);
    let joined = clean.split_whitespace().collect::<Vec<_>>().join("_");
    if joined.is_empty() { "unknown".to_owned() } else { joined.chars().take(MAX_TOKEN_CHARS).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000;

    fn at(age: i64) -> Timestamp {
        Timestamp::from_secs(NOW - age)
    }

    fn stamp(age: i64) -> LimitStamp {
        let text = format!(
            r#"{{"ts":{},"session_id":"s","error_message":"You've hit your weekly Opus limit · resets 3am (UTC)","reset_at":"3am_UTC","window":"w"}}"#,
            NOW - age
        );
        LimitStamp::parse(&text, Some("w"), at(0), "over-limit/w.json").unwrap()
    }

    fn hook(state: &str, age: i64) -> HookFacts {
        HookFacts {
            state: state.into(),
            last_activity: Some(at(age)),
            session_id: Some("s".into()),
            ..HookFacts::default()
        }
    }

    fn check(stamp: &LimitStamp, hook: Option<&HookFacts>, seen: State, expected: State) {
        let verdict = PaneVerdict::of(seen, Evidence::new(Witness::Screen, "seen"));
        let verdict = with_limit_stamp(verdict, Some(stamp), hook, at(0));
        assert_eq!(verdict.state, expected, "{seen} {hook:?}");
        if verdict.state == State::OverLimit && seen != State::OverLimit {
            assert_eq!(verdict.evidence[0].rule, OVER_LIMIT_STAMP);
            assert_eq!((verdict.reset_at.as_deref(), verdict.limit.as_deref()), (Some("3am_UTC"), Some("weekly_Opus")));
        }
    }

    #[test]
    fn a_stamp_holds_what_only_looks_idle_and_overrules_nothing_that_is_seen() {
        for (seen, expected) in [
            (State::Idle, State::OverLimit),
            (State::AutosuggestOnly, State::OverLimit),
            (State::UserTyping, State::OverLimit),
            (State::WorkingBackground, State::OverLimit),
            (State::IdleOrphanAsync, State::OverLimit),
            (State::Empty, State::OverLimit),
            (State::OverLimit, State::OverLimit),
            (State::Blocked, State::Blocked),
            (State::Busy, State::Busy),
            (State::Absent, State::Absent),
            (State::Unknown, State::Unknown),
        ] {
            check(&stamp(60), None, seen, expected);
        }
    }

    #[test]
    fn a_stamp_counts_for_27_hours_and_until_the_agent_works_again() {
        check(&stamp(97_200), None, State::Idle, State::OverLimit);
        check(&stamp(97_201), None, State::Idle, State::Idle);
        check(&stamp(60), Some(&hook("busy", 59)), State::Idle, State::Idle);
        check(&stamp(60), Some(&hook("user_prompt", 59)), State::Idle, State::Idle);
        // The hook that wrote the stamp wrote the heartbeat too.
        check(&stamp(60), Some(&hook("busy", 60)), State::Idle, State::OverLimit);
        // Programs say after a minute that they wait for their user.
        check(&stamp(60), Some(&hook("idle_prompt", 0)), State::Idle, State::OverLimit);
        let ended = HookFacts { last_turn_end: Some(at(10)), ..hook("idle_prompt", 10) };
        check(&stamp(60), Some(&ended), State::Idle, State::Idle);
        let other = HookFacts { session_id: Some("t".into()), ..hook("idle_prompt", 10) };
        check(&stamp(60), Some(&other), State::Idle, State::Idle);
    }

    #[test]
    fn a_notice_on_the_screen_that_says_more_keeps_its_words() {
        let mut verdict = PaneVerdict::of(State::OverLimit, Evidence::new(Witness::Screen, "claude-limit"));
        (verdict.reset_at, verdict.limit) = (Some("5am".into()), Some("unknown".into()));
        let verdict = with_limit_stamp(verdict, Some(&stamp(60)), None, at(0));
        assert_eq!((verdict.reset_at.as_deref(), verdict.limit.as_deref()), (Some("5am"), Some("weekly_Opus")));
        assert_eq!(verdict.evidence[0].rule, "claude-limit");
    }

    #[test]
    fn a_damaged_stamp_and_one_of_another_window_are_none() {
        let parse = |text: &str| LimitStamp::parse(text, Some("w"), at(5), "x");
        assert_eq!(parse("{"), None);
        assert_eq!(parse(r#"{"ts":1,"window":"v"}"#), None);
        let bare = parse("{}").unwrap();
        assert_eq!((bare.at, bare.reset_at.as_str()), (at(5), "unknown"));
        assert_eq!(parse(r#"{"ts":"7"}"#).unwrap().at, Timestamp::from_secs(7));
        assert_eq!(parse(r#"{"ts":7.9}"#).unwrap().at, Timestamp::from_secs(7));
        assert_eq!(parse(r#"{"reset_at":"a b\u001b[2Jc"}"#).unwrap().reset_at, "a_bc");
    }
}
