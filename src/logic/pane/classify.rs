//! The screen's verdict: staged, pure, the same for a live pane and for a saved capture.
//!
//! Owns the order in which regions are believed. It contains no agent's wording: every word and glyph is in the profile.

use super::choice;
use super::fuse::{SHELLS_ONLY, TURN_CLOSED, TURN_OVER, TURN_PRESUMED};
use super::profile::Profile;
use super::verdict::{Evidence, InputRow, Mode, Overlay, PaneVerdict, State, Witness};
use crate::logic::screen::composer::{self, BoxRows, Composer, NoBox};
use crate::logic::screen::dialog::{self, Dialog};
use crate::logic::screen::region::{self, Region};
use crate::logic::screen::rule::{Context, Match, version_numbers};
use crate::logic::screen::{Shape, tail};
use crate::logic::snapshot::PaneFacts;

/// Priority of a draft against the rules: below a live dialog, above busy marks (text must not be added to it).
const TYPED: i32 = 70;
/// Rule id of a dialog that no rule names: only its shape tells.
pub const DIALOG_SHAPE: &str = "dialog-shape";
/// Rule id under which it is said that the agent is newer than its rules.
pub const VERSION_NOT_SEEN: &str = "version-not-seen";
/// Priority of a suggestion.
const GHOST: i32 = 10;
/// Most items above the box that are tried by the rules of the tail.
const TAIL_ITEMS: usize = 12;
/// How many of the last rows are the `bottom` region.
const BOTTOM_ROWS: usize = 4;

/// What is known of a pane besides its text. Unknown is `None`, as for a saved capture.
#[derive(Clone, Debug, Default)]
pub struct ScreenFacts {
    /// Whether the pane's command has ended and the pane is kept.
    pub dead: Option<bool>,
    /// Whether a tmux mode covers the pane.
    pub in_mode: Option<bool>,
    /// The pane's title.
    pub title: Option<String>,
    /// Whether the pane's cursor is shown.
    pub cursor_shown: Option<bool>,
    /// The agent's version.
    pub version: Option<String>,
}

impl ScreenFacts {
    /// With the agent's version, where the process tree tells it.
    #[must_use]
    pub fn with_version(mut self, version: Option<String>) -> Self {
        self.version = version;
        self
    }
}

impl From<&PaneFacts> for ScreenFacts {
    fn from(facts: &PaneFacts) -> Self {
        Self {
            dead: Some(facts.dead.is_some()),
            in_mode: Some(facts.in_mode),
            title: Some(facts.title.clone()),
            cursor_shown: Some(facts.cursor_shown),
            version: None,
        }
    }
}

/// Which rows are wanted with colour, first and last, once the plain rows are known; `None` if none.
///
/// An empty box needs no colour, so most panes cost one look; only where a rule asks for the drawn cursor is it wanted.
pub fn wanted_style(profile: &Profile, plain: &[String]) -> Option<(u16, u16)> {
    let layout = &profile.screen.layout;
    let at = composer::find(layout, plain).ok()?;
    let empty = !at.plain_prompt || composer::read(layout, plain, at, None).input == InputRow::Blank;
    let cursor_rules = || profile.screen.rules.iter().filter(|rule| rule.cursor.is_some());
    if empty && !cursor_rules().any(|rule| rule.pattern.is_match(&footer_text(plain, at))) {
        return None;
    }
    Some((u16::try_from(at.first).ok()?, u16::try_from(at.last).ok()?))
}

/// The live input box. Where an agent shows the terminal's cursor in it, a hidden one tells of something that has the keys.
pub(super) fn live_box(profile: &Profile, facts: &ScreenFacts, plain: &[String]) -> Result<BoxRows, NoBox> {
    let layout = &profile.screen.layout;
    let found = composer::find(layout, plain)?;
    let is_covered = layout.shows_cursor && facts.cursor_shown == Some(false);
    if is_covered { Err(NoBox::Covered(found.first)) } else { Ok(found) }
}

/// What stands in the input box; `None` if there is no live box.
pub fn composer(profile: &Profile, plain: &[String], styled: Option<(u16, &[String])>) -> Option<Composer> {
    let layout = &profile.screen.layout;
    composer::find(layout, plain).ok().map(|at| composer::read(layout, plain, at, styled))
}

/// Whether the last rows of an agent's screen may be enough: without its version from elsewhere, the banner at the top
/// may tell it.
pub(super) fn is_told_by_last_rows(profile: &Profile, facts: &ScreenFacts) -> bool {
    let layout = &profile.screen.layout;
    layout.shape.is_read_from_the_bottom() && (facts.version.is_some() || layout.banner.is_none())
}

/// Judges the last rows of a screen, of which more stand above; `None` if one of those could matter. `styled` as for
/// [`judge_screen`], counted from the first of `plain`.
pub(super) fn judge_bottom(
    profile: &Profile,
    facts: &ScreenFacts,
    plain: &[String],
    styled: Option<(u16, &[String])>,
) -> Option<PaneVerdict> {
    if !is_told_by_last_rows(profile, facts) {
        return None;
    }
    let mut judge = Judge::new(profile, facts, plain);
    let verdict = judge.judge(styled);
    (!judge.wants_more).then(|| with_mode(verdict, facts))
}

/// Judges a screen. `styled` are rows with escape sequences from the given row on, as [`wanted_style`] asked.
pub fn judge_screen(
    profile: &Profile,
    facts: &ScreenFacts,
    plain: &[String],
    styled: Option<(u16, &[String])>,
) -> PaneVerdict {
    with_mode(Judge::new(profile, facts, plain).judge(styled), facts)
}

/// The verdict with what tmux says of the pane's mode.
fn with_mode(mut verdict: PaneVerdict, facts: &ScreenFacts) -> PaneVerdict {
    if facts.in_mode == Some(true) {
        verdict.mode = Some(Mode::Copy);
        verdict.evidence.push(Evidence::new(Witness::Tmux, "pane-in-mode"));
    }
    verdict
}

/// A judgement with everything that was looked at, for people who ask why.
pub(super) struct Trace<'a> {
    /// The verdict.
    pub(super) verdict: PaneVerdict,
    /// The regions that the rules looked at, in order.
    pub(super) looks: Vec<Look>,
    /// The rules that matched.
    pub(super) found: Vec<Match<'a>>,
    /// The version that the rules went by.
    pub(super) version: Option<Vec<u32>>,
}

/// A region that the rules looked at.
pub(super) struct Look {
    /// Which.
    pub(super) region: Region,
    /// Its text.
    pub(super) text: String,
    /// Its first row.
    pub(super) row: Option<usize>,
    /// Whether the agent drew its cursor in the box.
    pub(super) cursor: Option<bool>,
}

/// Judges a screen, and keeps everything that was looked at.
pub(super) fn trace<'a>(
    profile: &'a Profile,
    facts: &'a ScreenFacts,
    plain: &'a [String],
    styled: Option<(u16, &[String])>,
) -> Trace<'a> {
    let mut judge = Judge::new(profile, facts, plain);
    judge.looks = Some(Vec::new());
    let verdict = with_mode(judge.judge(styled), facts);
    Trace { verdict, looks: judge.looks.unwrap_or_default(), found: judge.found, version: judge.version }
}

/// Every rule that matches somewhere on the screen, for people who ask why.
pub fn matches(
    profile: &Profile,
    facts: &ScreenFacts,
    plain: &[String],
    styled: Option<(u16, &[String])>,
) -> Vec<(Region, String, String)> {
    let trace = trace(profile, facts, plain, styled);
    trace.found.iter().map(|found| (found.rule.region, found.rule.id.clone(), found.line.clone())).collect()
}

/// One judgement in the making.
struct Judge<'a> {
    /// The agent.
    profile: &'a Profile,
    /// What is known besides the text.
    facts: &'a ScreenFacts,
    /// The rows.
    plain: &'a [String],
    /// The agent's version, if known.
    version_text: Option<String>,
    /// The same as numbers.
    version: Option<Vec<u32>>,
    /// First row that is not the conversation's.
    above: Option<usize>,
    /// Whether rows above the given ones could change the verdict. Means nothing where they are all of the screen.
    wants_more: bool,
    /// Rules that matched so far.
    found: Vec<Match<'a>>,
    /// The regions that were looked at so far, if anybody wants to know.
    looks: Option<Vec<Look>>,
}

impl<'a> Judge<'a> {
    /// Starts a judgement.
    fn new(profile: &'a Profile, facts: &'a ScreenFacts, plain: &'a [String]) -> Self {
        let version_text = facts.version.clone().or_else(|| banner_version(profile, plain));
        let version = version_text.as_deref().and_then(version_numbers);
        Self {
            profile,
            facts,
            plain,
            version_text,
            version,
            above: None,
            wants_more: false,
            found: Vec::new(),
            looks: None,
        }
    }

    /// The verdict.
    fn judge(&mut self, styled: Option<(u16, &[String])>) -> PaneVerdict {
        let Some(last) = self.plain.iter().rposition(|row| !region::is_blank_row(row)) else {
            self.wants_more = true;
            return PaneVerdict::of(State::Unknown, Evidence::new(Witness::Screen, "blank-screen"));
        };
        // tmux itself writes this line into a kept pane; without facts (a saved capture) it is the only sign.
        let last_row = &self.plain[last];
        let says_dead = last_row.starts_with("Pane is dead (");
        if self.facts.dead == Some(true) || (self.facts.dead.is_none() && says_dead) {
            let evidence = Evidence::new(Witness::Tmux, "pane_dead").with_line(region::shortened(last_row));
            return PaneVerdict::of(State::Absent, evidence);
        }
        if self.profile.screen.layout.shape == Shape::None {
            self.wants_more = true;
            let mut verdict = PaneVerdict::of(State::Unknown, Evidence::new(Witness::Screen, "screen-not-read"));
            verdict.content_hash = Some(tail::content_hash(&self.profile.screen.layout, self.plain, last + 1).0);
            return verdict;
        }
        let mut verdict = match live_box(self.profile, self.facts, self.plain) {
            Ok(at) => {
                self.wants_more |= composer::may_be_covered(&self.profile.screen.layout, self.plain, at);
                self.judge_box(at, styled)
            }
            Err(no_box) => {
                self.wants_more = true;
                self.judge_without_box(no_box, last)
            }
        };
        if verdict.state != State::Unknown || verdict.agent.is_some() {
            verdict.agent = Some(self.profile.name.clone());
            verdict.agent_version.clone_from(&self.version_text);
            verdict.evidence.extend(self.not_seen());
        }
        let above = self.above.unwrap_or(last + 1);
        let (hash, has_enough) = tail::content_hash(&self.profile.screen.layout, self.plain, above);
        self.wants_more |= !has_enough;
        verdict.content_hash = Some(hash);
        verdict
    }

    /// Says that the agent is newer than every version that the rules were made from. It decides nothing: most releases
    /// change no screen.
    fn not_seen(&self) -> Option<Evidence> {
        let newest = self.profile.newest_seen_before(self.version.as_deref()?)?;
        let newest: Vec<String> = newest.iter().map(ToString::to_string).collect();
        let version = self.version_text.as_deref().unwrap_or_default();
        let line = format!("{version}; the rules were made from versions up to {}", newest.join("."));
        Some(Evidence::new(Witness::Screen, VERSION_NOT_SEEN).with_line(line))
    }

    /// Tries the rules of a region.
    fn look(&mut self, region: Region, text: &str, row: Option<usize>, cursor: Option<bool>) -> bool {
        let ctx = Context { version: self.version.as_deref(), cursor, titled: self.facts.title.is_some() };
        if let Some(looks) = &mut self.looks {
            looks.push(Look { region, text: text.to_owned(), row, cursor });
        }
        let row = row.and_then(|row| u16::try_from(row).ok());
        self.profile.screen.look(region, text, row, &ctx, &mut self.found)
    }

    /// Looks at what stands above row `end`.
    fn look_above(&mut self, end: usize, footer: &str, cursor: Option<bool>) {
        let layout = &self.profile.screen.layout;
        if let Some(status) = tail::status(layout, self.plain, end) {
            self.look(Region::Status, &status.text, Some(status.row), cursor);
        }
        // An item that no rule knows ends the walk, unless its block is known by its first line (a tip below a spinner).
        let (mut skip, mut ended, mut closed) = (false, false, false);
        for item in tail::items(layout, self.plain, end).take(TAIL_ITEMS) {
            if skip && !item.head {
                continue;
            }
            let known = self.look(Region::Tail, &item.text, Some(item.row), cursor);
            let is_last_word = !item.head && known && layout.closing.as_ref().is_none_or(|it| it.is_match(&item.text));
            if item.head && !known {
                // The top row may go on from one above the screen, so only a head below it ends the walk for sure.
                ended = item.row > 0;
                if !closed && !layout.banner.as_ref().is_some_and(|banner| banner.is_match(&item.text)) {
                    let newest = format!("{}\n{footer}", item.text);
                    closed = self.look(Region::Newest, &newest, Some(item.row), cursor) || ended;
                }
                break;
            }
            skip = !known;
            closed |= item.head || is_last_word || !known;
        }
        // The answer may have begun above the screen; then its head is not there to be looked at. Where the banner is
        // still to be seen, nothing was said yet.
        let above = self.plain.get(..end).unwrap_or_default();
        let text = above.iter().rposition(|row| !region::is_blank_row(row)).filter(|_| !ended && !closed);
        if let Some(row) = text.filter(|_| banner_version(self.profile, above).is_none()) {
            self.look(Region::Newest, &format!("…\n{footer}"), Some(row), cursor);
        }
        self.wants_more |= !ended;
    }

    /// A screen with a live input box.
    fn judge_box(&mut self, at: BoxRows, styled: Option<(u16, &[String])>) -> PaneVerdict {
        let layout = &self.profile.screen.layout;
        let composer = composer::read(layout, self.plain, at, styled);
        let footer = footer_text(self.plain, at);
        self.look(Region::Footer, &footer, Some(at.bottom + 1), composer.cursor);
        self.look_above(at.top, &footer, composer.cursor);
        if matches!(composer.input, InputRow::Ghost | InputRow::Unclear) {
            self.look(Region::Ghost, &composer.text, Some(at.first), composer.cursor);
        }
        if let Some(title) = &self.facts.title {
            self.look(Region::Title, title, None, composer.cursor);
        }
        let best = self.best_state();
        let own = match composer.input {
            _ if composer.cursor.is_none() && self.asks_for_cursor(&footer) => {
                (State::Unknown, TYPED, "cursor-not-seen")
            }
            InputRow::Blank => (State::Idle, 0, "input-blank"),
            InputRow::Ghost => (State::AutosuggestOnly, GHOST, "input-ghost"),
            InputRow::Typed => (State::UserTyping, TYPED, "input-typed"),
            InputRow::Unclear => (State::UserTyping, TYPED, "input-without-colour"),
        };
        // A queue's own placeholder is nobody's text, even where no colour tells so.
        let queued = self.found.iter().any(|found| found.rule.votes.queued && found.rule.region == Region::Ghost);
        let (own_state, own_priority, own_rule) =
            if queued && composer.input == InputRow::Unclear { (State::Busy, 0, own.2) } else { own };
        let own_evidence = Evidence::new(Witness::Screen, own_rule)
            .with_line(region::shortened(composer.text.lines().next().unwrap_or_default()))
            .at_row(composer.first_row);
        let mut verdict = match best {
            Some((state, priority, evidence)) if priority > own_priority => {
                let mut verdict = PaneVerdict::of(state, evidence);
                verdict.evidence.push(own_evidence);
                verdict
            }
            _ => PaneVerdict::of(own_state, own_evidence),
        };
        self.add_fields(&mut verdict);
        verdict.input = Some(composer.input);
        verdict.chip = composer.chip.map(|chip| chip.text);
        self.above = Some(at.top);
        verdict
    }

    /// Whether it depends on the drawn cursor what this footer means.
    fn asks_for_cursor(&self, footer: &str) -> bool {
        let mut rules = self.profile.screen.rules.iter().filter(|rule| rule.cursor.is_some());
        rules.any(|rule| rule.pattern.is_match(footer))
    }

    /// A screen without an input box: a viewer, a dialog, a shell, or something unknown.
    fn judge_without_box(&mut self, no_box: NoBox, last: usize) -> PaneVerdict {
        let start = (last + 1).saturating_sub(BOTTOM_ROWS);
        let bottom: Vec<String> = self.plain[start..=last].iter().map(|row| region::unframed_row(row)).collect();
        if !region::is_shell_row(&self.plain[last]) {
            let known = self.look(Region::Bottom, &bottom.join("\n"), Some(start), None);
            // A title outlives a killed agent, so it counts only where the agent's own page is on the screen.
            if let Some(title) = self.facts.title.as_ref().filter(|_| known) {
                self.look(Region::Title, title, None, None);
            }
        }
        let dialog = dialog::find(&self.profile.screen.layout, self.plain);
        if let (NoBox::Running(row), Err(_)) = (no_box, &dialog) {
            let output: Vec<&str> = self.plain[row..=last].iter().map(|row| row.trim()).collect();
            self.look(Region::Output, &output.join("\n"), Some(row), None);
        }
        if let Some((state, _, evidence)) = self.best_state() {
            let mut verdict = PaneVerdict::of(state, evidence);
            self.add_fields(&mut verdict);
            verdict.agent = Some(self.profile.name.clone());
            return verdict;
        }
        match dialog {
            Ok(dialog) => self.judge_dialog(&dialog),
            Err(why) => {
                let (reason, row) = no_box.reason();
                let mut evidence = Evidence::new(Witness::Screen, why)
                    .with_line(region::shortened(&self.plain[last]))
                    .at_row(u16::try_from(last).unwrap_or(u16::MAX));
                if region::is_shell_row(&self.plain[last]) {
                    "shell-prompt".clone_into(&mut evidence.rule);
                }
                let mut verdict = PaneVerdict::of(State::Unknown, evidence);
                let mut nearest = Evidence::new(Witness::Screen, reason);
                if let Some(row) = row.filter(|row| *row <= last) {
                    nearest = nearest.with_line(region::shortened(&self.plain[row]));
                    nearest.row = u16::try_from(row).ok();
                }
                verdict.evidence.push(nearest);
                verdict
            }
        }
    }

    /// A live dialog.
    fn judge_dialog(&mut self, dialog: &Dialog) -> PaneVerdict {
        self.look(Region::Question, &dialog.question, Some(dialog.question_row), None);
        self.look(Region::Options, &dialog.options, dialog.cursor_row, None);
        self.look(Region::Dialog, &dialog.text, Some(dialog.top), None);
        let overlays = self.found.iter().filter(|found| found.rule.votes.overlay.is_some());
        let named = overlays.max_by_key(|found| found.rule.priority);
        let (overlay, evidence) = if let Some(found) = named {
            (found.rule.votes.overlay.unwrap_or(Overlay::Dialog), found.evidence())
        } else {
            let line = dialog.hint.as_deref().or(dialog.options.lines().next()).unwrap_or_default();
            let evidence = Evidence::new(Witness::Screen, DIALOG_SHAPE).with_line(region::shortened(line));
            (Overlay::Dialog, evidence)
        };
        if overlay == Overlay::RateLimit {
            self.look_above(dialog.top, "", None);
        }
        let mut verdict = PaneVerdict::of(State::Blocked, evidence);
        self.add_fields(&mut verdict);
        verdict.overlay = Some(overlay);
        verdict.question = choice::question(dialog);
        verdict.options = choice::choices(dialog);
        if let Some(row) = dialog.cursor_row {
            let label = self.plain.get(row).map(|row| region::unframed_row(row)).unwrap_or_default();
            verdict.evidence.push(
                Evidence::new(Witness::Screen, "option-under-cursor")
                    .with_line(region::shortened(&label))
                    .at_row(u16::try_from(row).unwrap_or(u16::MAX)),
            );
        }
        self.above = Some(dialog.top);
        verdict
    }

    /// The state vote with the highest priority.
    fn best_state(&self) -> Option<(State, i32, Evidence)> {
        let voting = self.found.iter().filter(|found| found.rule.votes.state.is_some());
        // Of equals the first in the order of the profile wins; `max_by_key` would take the last.
        let best = voting.rev().max_by_key(|found| found.rule.priority)?;
        Some((best.rule.votes.state?, best.rule.priority, best.evidence()))
    }

    /// Whether what the program said last closes a turn.
    fn newest_closes_turn(&self) -> bool {
        let newest = self.found.iter().find(|found| found.rule.region == Region::Tail);
        newest.is_some_and(|newest| newest.rule.votes.closes_turn)
    }

    /// Fills the fields that rules vote for, and adds every rule that spoke to the evidence.
    fn add_fields(&self, verdict: &mut PaneVerdict) {
        let mut order: Vec<&Match<'_>> = self.found.iter().collect();
        order.sort_by_key(|found| std::cmp::Reverse(found.rule.priority));
        for found in order {
            let votes = &found.rule.votes;
            verdict.overlay = verdict.overlay.or(votes.overlay);
            verdict.auth = verdict.auth.or(votes.auth);
            verdict.mode = verdict.mode.or(votes.mode);
            verdict.queued |= votes.queued;
            verdict.throttled |= votes.throttled;
            verdict.retrying = verdict.retrying.take().or_else(|| found.retrying.clone());
            verdict.notice = verdict.notice.take().or_else(|| found.notice.clone());
            let better = |old: Option<String>, new: &Option<String>| match (&old, new) {
                (None, _) => new.clone(),
                (Some(word), Some(_)) if word == "unknown" => new.clone(),
                _ => old,
            };
            verdict.limit = better(verdict.limit.take(), &found.limit);
            verdict.reset_at = better(verdict.reset_at.take(), &found.reset_at);
            verdict.background = verdict.background.or(found.background);
            let evidence = found.evidence();
            if votes.turn_over {
                let mut over = evidence.clone();
                TURN_OVER.clone_into(&mut over.rule);
                verdict.evidence.push(over);
            }
            if verdict.state == State::Busy && verdict.evidence.first() == Some(&evidence) {
                let closed = found.rule.region == Region::Footer && self.newest_closes_turn();
                let told = [(TURN_CLOSED, closed), (TURN_PRESUMED, closed || votes.presumed)];
                for (rule, _) in told.into_iter().filter(|(_, holds)| *holds) {
                    verdict.evidence.push(Evidence { rule: rule.to_owned(), ..evidence.clone() });
                }
            }
            if !verdict.evidence.contains(&evidence) {
                verdict.evidence.push(evidence);
            }
        }
        let mut jobs =
            self.found.iter().filter(|found| found.rule.votes.state == Some(State::WorkingBackground)).peekable();
        if verdict.state == State::WorkingBackground
            && jobs.peek().is_some()
            && jobs.all(|found| found.rule.votes.shells)
        {
            verdict.evidence.push(Evidence::new(Witness::Screen, SHELLS_ONLY));
        }
        verdict.queued &= verdict.state == State::Busy;
        if verdict.state != State::Busy {
            verdict.retrying = None;
            verdict.throttled = false;
        }
        if verdict.state == State::OverLimit {
            verdict.limit.get_or_insert_with(|| "unknown".to_owned());
            verdict.reset_at.get_or_insert_with(|| "unknown".to_owned());
        }
    }
}

impl Match<'_> {
    /// The match as evidence.
    fn evidence(&self) -> Evidence {
        let witness = if self.rule.region == Region::Title { Witness::Title } else { Witness::Screen };
        let mut evidence = Evidence::new(witness, self.rule.id.clone()).with_line(self.line.clone());
        evidence.row = self.row;
        evidence
    }
}

/// The rows below the box, blank ones left out.
fn footer_text(plain: &[String], at: BoxRows) -> String {
    let rows = plain.get(at.bottom + 1..).unwrap_or_default();
    let rows: Vec<String> = rows.iter().map(|row| region::unframed_row(row)).filter(|row| !row.is_empty()).collect();
    rows.join("\n")
}

/// The version that the program's banner shows, if it is still on the screen.
fn banner_version(profile: &Profile, plain: &[String]) -> Option<String> {
    let pattern = profile.screen.layout.banner.as_ref()?;
    plain.iter().rev().find_map(|row| Some(pattern.captures(row)?.name("version")?.as_str().to_owned()))
}
