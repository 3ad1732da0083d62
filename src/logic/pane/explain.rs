//! Why a screen got its verdict, for people: the regions that were looked at, the rules that matched, and the rules that
//! nearly did. It judges nothing; the verdict is [`judge_screen`](super::judge_screen)'s.

use std::cmp::Reverse;

use serde::Serialize;

use super::classify::{Look, ScreenFacts, Trace, live_box, trace};
use super::profile::Profile;
use super::verdict::{InputRow, PaneVerdict, State};
use crate::logic::screen::composer;
use crate::logic::screen::nearest::{Nearness, nearness};
use crate::logic::screen::region::{Region, is_blank_row, shortened};
use crate::logic::screen::rule::{Context, Silence};
use crate::logic::screen::{Rule, Votes};
use crate::logic::text::{Joiners, visible};

/// Most rules that nearly matched.
const MAX_NEAREST: usize = 6;
/// How much of a pattern must be there for its rule to be near.
const NEAR_PERCENT: u32 = 40;
/// Most lines of one region.
const MAX_LINES: usize = 12;

/// Why a screen got its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The profile that judged it.
    pub profile: String,
    /// Its version.
    pub profile_version: u32,
    /// The places that were found on the screen, in the order in which they were looked at.
    pub regions: Vec<RegionSeen>,
    /// The rules that matched, the strongest first.
    pub matched: Vec<Matched>,
    /// The rules that nearly did, the nearest first.
    pub nearest: Vec<Near>,
}

/// A place that was found on the screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RegionSeen {
    /// Its name, as rules use it, or `input` for the box.
    pub region: String,
    /// Its first and its last row; none for what is not on the screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<(usize, usize)>,
    /// What stands there, a line each, shortened.
    pub lines: Vec<String>,
}

/// A rule that matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Matched {
    /// Its id.
    pub rule: String,
    /// Where it looks.
    pub region: String,
    /// The first row of that place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u16>,
    /// The line that matched.
    pub line: String,
    /// Higher wins.
    pub priority: i32,
    /// What it says.
    pub says: Vec<String>,
    /// What came of it: that it decides the state, or what outranks it.
    pub outcome: String,
}

/// A rule that nearly matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Near {
    /// Its id.
    pub rule: String,
    /// Where it looks.
    pub region: String,
    /// The first row of that place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<usize>,
    /// What it would have said.
    pub says: Vec<String>,
    /// How much of its pattern is there, in percent; 100 if only a condition kept it silent.
    pub percent: u32,
    /// Why it did not speak.
    pub reason: String,
    /// The line that comes near.
    pub line: String,
}

/// Explains the verdict on a screen that was read whole. `styled` as for [`judge_screen`](super::judge_screen).
pub fn explain(
    profile: &Profile,
    facts: &ScreenFacts,
    plain: &[String],
    styled: Option<(u16, &[String])>,
) -> (PaneVerdict, Explanation) {
    let trace = trace(profile, facts, plain, styled);
    let explanation = Explanation {
        profile: profile.name.clone(),
        profile_version: profile.version,
        regions: regions(profile, facts, plain, styled, &trace),
        matched: matched(&trace),
        nearest: nearest(profile, facts, &trace),
    };
    (trace.verdict, explanation)
}

/// The places that were found.
fn regions(
    profile: &Profile,
    facts: &ScreenFacts,
    plain: &[String],
    styled: Option<(u16, &[String])>,
    trace: &Trace<'_>,
) -> Vec<RegionSeen> {
    let mut seen = Vec::new();
    let layout = &profile.screen.layout;
    match live_box(profile, facts, plain) {
        Ok(at) => {
            let composer = composer::read(layout, plain, at, styled);
            let mut lines = shown_lines(&composer.text);
            lines.insert(0, format!("({})", input_word(composer.input)));
            seen.push(RegionSeen { region: "input".into(), rows: Some((at.first, at.last)), lines });
        }
        Err(no_box) => {
            let (reason, row) = no_box.reason();
            let line = row.and_then(|row| plain.get(row)).map(|row| shown(row)).unwrap_or_default();
            let rows = row.map(|row| (row, row));
            let lines = vec![format!("(none: {reason})"), line];
            seen.push(RegionSeen { region: "input".into(), rows, lines });
        }
    }
    for look in trace.looks.iter().filter(|look| !look.text.trim().is_empty()) {
        let rows = look.row.map(|row| (row, last_row(plain, row, &look.text)));
        seen.push(RegionSeen { region: look.region.word().to_owned(), rows, lines: shown_lines(&look.text) });
    }
    seen
}

/// What is in the box, for people.
const fn input_word(input: InputRow) -> &'static str {
    match input {
        InputRow::Blank => "blank",
        InputRow::Ghost => "a suggestion that nobody typed",
        InputRow::Typed => "typed",
        InputRow::Unclear => "typed or suggested: no colour tells",
    }
}

/// The last row of a text that begins at `first`: as many visible characters further on, frames not counted.
fn last_row(plain: &[String], first: usize, text: &str) -> usize {
    let count = |text: &str| text.chars().filter(|ch| !ch.is_whitespace() && *ch != '│').count();
    let mut left = count(text);
    let mut last = first;
    for (at, row) in plain.iter().enumerate().skip(first) {
        if left == 0 {
            break;
        }
        left = left.saturating_sub(count(row));
        if !is_blank_row(row) {
            last = at;
        }
    }
    last
}

/// The rules that matched, the strongest first.
fn matched(trace: &Trace<'_>) -> Vec<Matched> {
    let winner = trace.verdict.evidence.first().map_or("", |reason| reason.rule.as_str());
    let mut list: Vec<Matched> = trace
        .found
        .iter()
        .map(|found| Matched {
            rule: found.rule.id.clone(),
            region: found.rule.region.word().to_owned(),
            row: found.row,
            line: shown(&found.line),
            priority: found.rule.priority,
            says: said(&found.rule.votes),
            outcome: outcome(found.rule, winner, &trace.verdict),
        })
        .collect();
    list.sort_by_key(|matched| Reverse(matched.priority));
    list
}

/// What came of a rule that matched.
fn outcome(rule: &Rule, winner: &str, verdict: &PaneVerdict) -> String {
    let speaks_of_state = rule.votes.state.is_some() || rule.votes.overlay.is_some();
    if rule.id == winner {
        format!("decides: {}", verdict.state)
    } else if said(&rule.votes).is_empty() {
        "known, and says nothing of the state".to_owned()
    } else if speaks_of_state && verdict.state != State::Unknown {
        format!("outranked by {winner}")
    } else {
        "adds a field".to_owned()
    }
}

/// What a rule says, a word each.
fn said(votes: &Votes) -> Vec<String> {
    let word = |key: &str, value: Option<&str>| value.map(|value| format!("{key}={value}"));
    let flag = |key: &str, on: bool| on.then(|| key.to_owned());
    [
        word("state", votes.state.map(State::word)),
        word("overlay", votes.overlay.map(super::Overlay::word)),
        word("auth", votes.auth.map(super::Auth::word)),
        word("mode", votes.mode.map(super::Mode::word)),
        flag("queued", votes.queued),
        flag("throttled", votes.throttled),
        flag("turn-over", votes.turn_over),
        flag("closes-turn", votes.closes_turn),
        flag("presumed", votes.presumed),
        flag("shells", votes.shells),
        word("retrying", votes.retrying.as_ref().map(|template| template.0.as_str())),
        word("notice", votes.notice.as_ref().map(|template| template.0.as_str())),
        word("limit", votes.limit.as_ref().map(|template| template.0.as_str())),
        word("reset_at", votes.reset_at.as_ref().map(|template| template.0.as_str())),
        word("background", votes.background.as_ref().map(|template| template.0.as_str())),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The rules that did not match and came nearest.
fn nearest(profile: &Profile, facts: &ScreenFacts, trace: &Trace<'_>) -> Vec<Near> {
    let is_silent = |rule: &&Rule| !trace.found.iter().any(|found| found.rule.id == rule.id);
    let mut list: Vec<(i32, Near)> = profile
        .screen
        .rules
        .iter()
        .filter(is_silent)
        .filter_map(|rule| {
            let looks = trace.looks.iter().filter(|look| look.region == rule.region && !look.text.is_empty());
            let looks: Vec<&Look> = looks.collect();
            Some((rule.priority, near(rule, &looks, trace.version.as_deref(), facts.title.is_some())?))
        })
        .filter(|(_, near)| near.percent >= NEAR_PERCENT)
        .collect();
    list.sort_by_key(|(priority, near)| Reverse((near.percent, *priority)));
    list.truncate(MAX_NEAREST);
    list.into_iter().map(|(_, near)| near).collect()
}

/// How near a rule comes in the places that it is about; `None` if nothing of it is there.
fn near(rule: &Rule, looks: &[&Look], version: Option<&[u32]>, titled: bool) -> Option<Near> {
    let silenced = looks.iter().enumerate().find_map(|(at, look)| Some((at, rule.pattern.find(&look.text)?.start())));
    let found = if let Some((text, at)) = silenced {
        let ctx = Context { version, cursor: looks.get(text)?.cursor, titled };
        Nearness { percent: 100, reason: condition(rule, &ctx)?, text, at }
    } else {
        let texts: Vec<&str> = looks.iter().map(|look| look.text.as_str()).collect();
        nearness(rule.pattern.as_str(), &texts)?
    };
    let look = looks.get(found.text)?;
    let line = look.text.get(found.at..).unwrap_or_default().trim_start().lines().next().unwrap_or_default();
    Some(Near {
        rule: rule.id.clone(),
        region: rule.region.word().to_owned(),
        row: look.row.filter(|_| rule.region != Region::Title),
        says: said(&rule.votes),
        percent: found.percent,
        reason: shown(&found.reason),
        line: shown(line),
    })
}

/// The condition that keeps a rule silent whose pattern matches.
fn condition(rule: &Rule, ctx: &Context<'_>) -> Option<String> {
    let text = |version: &[u32]| version.iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
    Some(match ctx.silences(rule)? {
        Silence::Version => {
            let bound = |word: &str, at: &Option<Vec<u32>>| at.as_deref().map(|at| format!(" {word} {}", text(at)));
            let (since, until) = (bound("from", &rule.since), bound("before", &rule.until));
            let this = text(ctx.version.unwrap_or_default());
            format!("it is for versions{}{}; this is {this}", since.unwrap_or_default(), until.unwrap_or_default())
        }
        Silence::Title => "it speaks only where the pane's title is not known".to_owned(),
        Silence::Cursor => {
            let wanted = if rule.cursor == Some(true) { "in" } else { "outside" };
            let seen = match ctx.cursor {
                Some(true) => "it is in it",
                Some(false) => "it is not in it",
                None => "no colour tells where it is",
            };
            format!("it wants the agent's cursor {wanted} the box; {seen}")
        }
    })
}

/// Text of a screen as lines without what can't be seen, the last ones where there are many.
fn shown_lines(text: &str) -> Vec<String> {
    let lines: Vec<String> = text.lines().map(shown).collect();
    let more = lines.len().saturating_sub(MAX_LINES);
    let left_out = (more > 0).then(|| format!("({more} lines above are left out)"));
    left_out.into_iter().chain(lines.into_iter().skip(more)).collect()
}

/// One line of a screen, without what can't be seen, shortened.
fn shown(line: &str) -> String {
    shortened(&visible(line, Joiners::Drop).replace(['\n', '\t'], " "))
}
