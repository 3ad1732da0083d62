//! Rules that look at regions, and the layout that finds the regions. All wording is data from a profile.

use regex::{Captures, Regex};

use super::region::{Region, indent, shortened};
use super::shape::Shape;
use super::style::Colour;
use crate::logic::pane::{Auth, Mode, Overlay, State};

/// Glyphs and shapes of one agent's screen.
#[derive(Clone, Debug)]
pub struct Layout {
    /// How the screen is arranged.
    pub shape: Shape,
    /// Glyph at the start of the input row, e.g. `❯`.
    pub prompt: char,
    /// Further glyphs of an ordinary input row; any other is a mode in which text means something else.
    pub prompts: String,
    /// Colours of a suggestion, where it is not faint.
    pub ghost_colours: Vec<Colour>,
    /// Whether an empty input row always shows a placeholder.
    pub is_never_empty: bool,
    /// Whether the terminal's cursor is shown while the input row has the keys, and only then.
    pub shows_cursor: bool,
    /// What stands between the prompt glyph and the text; differs from the blank after an option cursor.
    pub gap: char,
    /// Character that the lines above and below the input box consist of.
    pub rule: char,
    /// Character that the upper edge of a page over the input box consists of.
    pub page_edge: char,
    /// Glyphs, of which one stands before the option that Enter would choose.
    pub option_cursor: String,
    /// Mark that may stand before a chosen option's label.
    pub tick: char,
    /// First characters of a draft below which completions may be listed at the left edge.
    pub completes: String,
    /// Signs that a block of the conversation starts with.
    pub heads: String,
    /// Column in which those signs stand. Where it isn't the left edge, nothing else begins a block.
    pub edge: usize,
    /// Mark that starts an item below a block's first line.
    pub child: char,
    /// What a dialog's last line says about keys.
    pub hint: Regex,
    /// Heading of a picker that floats over the page, with the group `name`.
    pub picker: Option<Regex>,
    /// Rows just above the box that say nothing about the conversation.
    pub nudges: Vec<Regex>,
    /// Folded pastes in the input box; the group `lines` is the number of further lines.
    pub chips: Vec<Regex>,
    /// Indented lines that the program itself adds below an answer.
    pub asides: Vec<Regex>,
    /// Of those, the one that closes an answer: what stands above it belongs to the answer.
    pub closing: Option<Regex>,
    /// What only stands below a live input box, though it names keys as a dialog does: the hints of a completion list.
    pub footer: Option<Regex>,
    /// Version in the banner, as the group `version`.
    pub banner: Option<Regex>,
}

impl Layout {
    /// Whether the row starts with one of the signs of a block.
    pub(super) fn has_sign(&self, row: &str) -> bool {
        indent(row) == Some(self.edge) && row.trim_start().starts_with(|ch| self.heads.contains(ch))
    }
}

/// A text made of a match's named groups: `api-{code}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(pub String);

impl Template {
    /// Fills the template; `None` if a group that it names took no part in the match.
    pub fn fill(&self, captures: &Captures<'_>) -> Option<String> {
        let mut out = String::new();
        let mut rest = self.0.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (name, tail) = after.split_once('}')?;
            out.push_str(before);
            out.push_str(captures.name(name)?.as_str());
            rest = tail;
        }
        out.push_str(rest);
        Some(out)
    }

    /// Names of the groups that it wants.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.0.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name))
    }
}

/// What a rule says when it matches. Several rules may speak; for each field the one with the highest priority wins.
#[derive(Clone, Debug, Default)]
pub struct Votes {
    /// State of the pane.
    pub state: Option<State>,
    /// What covers the prompt.
    pub overlay: Option<Overlay>,
    /// Credentials.
    pub auth: Option<Auth>,
    /// Mode of the input row.
    pub mode: Option<Mode>,
    /// A message waits in the queue.
    pub queued: bool,
    /// The provider throttles.
    pub throttled: bool,
    /// The turn is over, though no hook may have said so.
    pub turn_over: bool,
    /// The line closes a turn: where it is the newest, a turn that only the footer tells of is presumed.
    pub closes_turn: bool,
    /// The state is presumed from what is missing on the screen; a hook that saw the turn end knows better.
    pub presumed: bool,
    /// What runs in the background are shells, and so processes below the agent.
    pub shells: bool,
    /// `k/N`; `?` where the screen does not count.
    pub retrying: Option<Template>,
    /// Kind of API error.
    pub notice: Option<Template>,
    /// Flavour of a limit.
    pub limit: Option<Template>,
    /// When the limit ends.
    pub reset_at: Option<Template>,
    /// Number of background jobs.
    pub background: Option<Template>,
}

/// One fingerprint.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Stable, kebab-case.
    pub id: String,
    /// Where it looks.
    pub region: Region,
    /// What it looks for.
    pub pattern: Regex,
    /// Only where the agent draws its cursor in the box (`true`) or does not (`false`).
    pub cursor: Option<bool>,
    /// Only where the pane's title is not known (a saved screen), since the title would tell.
    pub untitled: bool,
    /// Higher wins.
    pub priority: i32,
    /// What it says.
    pub votes: Votes,
    /// First agent version that it is for.
    pub since: Option<Vec<u32>>,
    /// First agent version that it is no longer for.
    pub until: Option<Vec<u32>>,
    /// Why the rule is right, for people.
    pub why: String,
}

/// Everything that a profile says about screens.
#[derive(Clone, Debug)]
pub struct ScreenRules {
    /// Where things are.
    pub layout: Layout,
    /// What they mean.
    pub rules: Vec<Rule>,
}

/// A rule that matched, with what it found.
#[derive(Clone, Debug)]
pub struct Match<'r> {
    /// The rule.
    pub rule: &'r Rule,
    /// The matched text, shortened.
    pub line: String,
    /// Screen row of the region's start.
    pub row: Option<u16>,
    /// `retrying=`, filled.
    pub retrying: Option<String>,
    /// `notice=`, filled.
    pub notice: Option<String>,
    /// `limit=`, filled.
    pub limit: Option<String>,
    /// `reset_at=`, filled.
    pub reset_at: Option<String>,
    /// `background=`, filled.
    pub background: Option<u32>,
}

impl ScreenRules {
    /// Tries every rule of `region` on `text` and adds the matches. Returns whether there was one.
    pub fn look<'r>(
        &'r self,
        region: Region,
        text: &str,
        row: Option<u16>,
        ctx: &Context<'_>,
        found: &mut Vec<Match<'r>>,
    ) -> bool {
        let before = found.len();
        if text.is_empty() {
            return false;
        }
        for rule in self.rules.iter().filter(|rule| rule.region == region && ctx.allows(rule)) {
            if let Some(captures) = rule.pattern.captures(text) {
                found.push(rule.matched(text, &captures, row));
            }
        }
        found.len() > before
    }
}

impl Rule {
    /// Turns a match into what it says.
    fn matched(&self, text: &str, captures: &Captures<'_>, row: Option<u16>) -> Match<'_> {
        let fill = |template: &Option<Template>, else_: &str| {
            template.as_ref().map(|template| template.fill(captures).unwrap_or_else(|| else_.to_owned()))
        };
        Match {
            rule: self,
            line: shortened(captures.get(0).map_or("", |all| line_around(text, all.start()))),
            row,
            retrying: fill(&self.votes.retrying, "?"),
            notice: fill(&self.votes.notice, "unknown"),
            limit: fill(&self.votes.limit, "unknown").map(|text| limit_token(&text)),
            reset_at: fill(&self.votes.reset_at, "unknown").map(|text| reset_token(&text)),
            background: fill(&self.votes.background, "").and_then(|text| text.parse().ok()),
        }
    }
}

/// The line of `text` that byte `at` stands in.
fn line_around(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    // A match that begins with the newline before its line has nothing in between.
    text.get(start..end).filter(|line| !line.is_empty()).unwrap_or_else(|| text[at..].trim_start())
}

/// What keeps a rule from speaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It is for other versions.
    Version,
    /// It is for panes whose title is not known.
    Title,
    /// It wants the agent's cursor elsewhere, or wants to see where it is.
    Cursor,
}

/// What decides whether a rule applies at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Context<'a> {
    /// The agent's version, if known; rules bound to versions apply where it is not.
    pub version: Option<&'a [u32]>,
    /// Whether the agent draws its cursor in the box, if that could be seen.
    pub cursor: Option<bool>,
    /// Whether the pane's title is known.
    pub titled: bool,
}

impl Context<'_> {
    /// Whether the rule may speak.
    fn allows(&self, rule: &Rule) -> bool {
        self.silences(rule).is_none()
    }

    /// What keeps the rule from speaking, whatever stands on the screen.
    pub fn silences(&self, rule: &Rule) -> Option<Silence> {
        let is_for_version = self.version.is_none_or(|version| {
            rule.since.as_deref().is_none_or(|since| version >= since)
                && rule.until.as_deref().is_none_or(|until| version < until)
        });
        if !is_for_version {
            Some(Silence::Version)
        } else if rule.untitled && self.titled {
            Some(Silence::Title)
        } else {
            rule.cursor.filter(|wanted| self.cursor != Some(*wanted)).map(|_| Silence::Cursor)
        }
    }
}

/// Reads `2.1.332` as numbers; `None` for anything else.
pub fn version_numbers(text: &str) -> Option<Vec<u32>> {
    text.trim().split('.').map(|part| part.parse().ok()).collect()
}

/// The token that `reset_at=` carries: cut at the next `·`, no brackets, blanks as `_`, at most 40 characters.
fn reset_token(text: &str) -> String {
    let text = text.split('·').next().unwrap_or_default();
    let token: String = joined(text).chars().filter(|ch| !matches!(ch, '(' | ')')).take(40).collect();
    if token.is_empty() { "unknown".to_owned() } else { token }
}

/// The token that `limit=` carries: words joined by `_`.
fn limit_token(text: &str) -> String {
    let token: String = joined(text).chars().take(40).collect();
    if token.is_empty() { "unknown".to_owned() } else { token }
}

/// Words joined by `_`.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_times_become_one_token() {
        for (text, token) in [
            ("3am (America/Los_Angeles)", "3am_America/Los_Angeles"),
            ("1:12am (UTC) · /upgrade", "1:12am_UTC"),
            ("Oct 5, 1am (UTC)", "Oct_5,_1am_UTC"),
            ("  ", "unknown"),
        ] {
            assert_eq!(reset_token(text), token, "{text}");
        }
        assert_eq!(reset_token(&"x".repeat(90)).len(), 40);
    }

    #[test]
    fn a_template_with_an_absent_group_is_not_filled() {
        let pattern = Regex::new("(?P<k>\\d+)(/(?P<n>\\d+))?").unwrap();
        let template = Template("{k}/{n}".into());
        assert_eq!(template.fill(&pattern.captures("4/10").unwrap()).as_deref(), Some("4/10"));
        assert_eq!(template.fill(&pattern.captures("4").unwrap()), None);
    }

    #[test]
    fn a_rule_speaks_from_its_first_version_until_before_its_last() {
        let rule = Rule {
            id: "r".into(),
            region: Region::Tail,
            pattern: Regex::new("x").unwrap(),
            cursor: None,
            untitled: false,
            priority: 0,
            votes: Votes::default(),
            since: version_numbers("2.1.0"),
            until: version_numbers("2.2.0"),
            why: String::new(),
        };
        for (version, speaks) in [
            (None, true),
            (Some("2.0.99"), false),
            (Some("2.1.0"), true),
            (Some("2.1.332"), true),
            (Some("2.2.0"), false),
        ] {
            let numbers = version.and_then(version_numbers);
            let context = Context { version: numbers.as_deref(), ..Context::default() };
            assert_eq!(context.allows(&rule), speaks, "{version:?}");
        }
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert!(version_numbers("2.1.99") < version_numbers("2.1.332"));
        assert_eq!(version_numbers("2.x"), None);
    }
}
