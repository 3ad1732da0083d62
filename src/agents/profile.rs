//! The form of a profile file, and the checks that turn it into what decisions use.
//!
//! The only reader of profile YAML. A space in a pattern stands for any run of blanks, so that a line which wrapped in a
//! narrow pane still matches.

use std::sync::Arc;

use regex::Regex;
use serde::Deserialize;
use thiserror::Error;

use crate::logic::hook::{Event, Hooked, version_of};
use crate::logic::pane::{Auth, BusyPaste, Hooks, Mode, Overlay, PasteTraits, ProcessRule, Profile, State};
use crate::logic::screen::rule::version_numbers;
use crate::logic::screen::{Colour, Layout, Region, Rule, ScreenRules, Shape, Template, Votes};

/// A profile that can't be used.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// Not the form of a profile.
    #[error("profile {profile}: {problem}; see docs/adding-an-agent.md for the form")]
    Form {
        /// The profile's name.
        profile: String,
        /// What the reader said, with line and column.
        problem: String,
        /// The line, if the reader told it.
        line: Option<usize>,
    },
    /// A value that can't be used.
    #[error("profile {profile}: {key}: {problem}; correct that value in the profile's file")]
    Value {
        /// The profile's name.
        profile: String,
        /// Path of the key.
        key: String,
        /// What is wrong with the value.
        problem: String,
    },
}

/// A profile as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProfile {
    name: String,
    title: String,
    #[serde(default)]
    version: u32,
    #[serde(default)]
    seen: Vec<String>,
    process: RawProcess,
    paste: RawPaste,
    #[serde(default)]
    transcript: Option<String>,
    #[serde(default)]
    hooks: RawHooks,
    #[serde(default)]
    hook_events: Vec<RawHookEvent>,
    screen: RawScreen,
}

/// `hooks:`, a word; earlier versions knew yes and no.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum RawHooks {
    Word(RawHooksWord),
    Any(bool),
}

impl Default for RawHooks {
    fn default() -> Self {
        Self::Any(false)
    }
}

/// `hooks:` as a word.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawHooksWord {
    Full,
    Partial,
    None,
}

/// One of `hook_events:`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHookEvent {
    event: String,
    #[serde(default)]
    matcher: bool,
    #[serde(default)]
    since: Option<String>,
}

/// `process:`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProcess {
    #[serde(default)]
    exe_contains: Vec<String>,
    #[serde(default)]
    exe_names: Vec<String>,
    #[serde(default)]
    script_contains: Vec<String>,
    #[serde(default)]
    args_start: Vec<String>,
    #[serde(default)]
    version_path: Option<String>,
    #[serde(default)]
    packages: Vec<String>,
}

/// `paste:`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPaste {
    bracketed: bool,
    #[serde(default)]
    numbered_folds: bool,
    busy: RawBusy,
    #[serde(default)]
    live_marks: Vec<String>,
}

/// `paste.busy:`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawBusy {
    Queue,
    Hold,
}

/// `screen:`, either the name of another profile or a description.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawScreen {
    Same(String),
    // A map is kept as it is, so that a mistake in it is reported with its own words.
    Own(serde_yaml::Value),
}

/// `screen:` as a description.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScreenRules {
    #[serde(default)]
    shape: Shape,
    prompt: char,
    #[serde(default)]
    prompts: String,
    #[serde(default)]
    ghost_colours: Vec<RawColour>,
    #[serde(default)]
    is_never_empty: bool,
    #[serde(default)]
    shows_cursor: bool,
    gap: char,
    #[serde(default = "nothing")]
    rule: char,
    #[serde(default = "nothing")]
    page_edge: char,
    #[serde(default)]
    option_cursor: String,
    #[serde(default = "nothing")]
    tick: char,
    #[serde(default)]
    completes: String,
    #[serde(default)]
    heads: String,
    #[serde(default)]
    edge: usize,
    #[serde(default = "nothing")]
    child: char,
    hint: String,
    #[serde(default)]
    picker: Option<String>,
    #[serde(default)]
    nudges: Vec<String>,
    #[serde(default)]
    chips: Vec<String>,
    #[serde(default)]
    asides: Vec<String>,
    #[serde(default)]
    closing: Option<String>,
    #[serde(default)]
    footer: Option<String>,
    #[serde(default)]
    banner: Option<String>,
    rules: Vec<RawRule>,
}

/// One of `screen.ghost_colours:`, a number of the palette or `#rrggbb`.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawColour {
    Palette(u8),
    Rgb(String),
}

/// A glyph that stands on no screen, for what an agent does not draw.
const fn nothing() -> char {
    '\0'
}

/// One of `screen.rules:`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    pub(super) id: String,
    region: Region,
    #[serde(default)]
    literal: Option<String>,
    #[serde(default)]
    regex: Option<String>,
    #[serde(default)]
    cursor: Option<bool>,
    #[serde(default)]
    untitled: bool,
    #[serde(default)]
    priority: i32,
    says: RawVotes,
    #[serde(default)]
    since: Option<String>,
    #[serde(default)]
    until: Option<String>,
    why: String,
}

/// `says:`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawVotes {
    state: Option<State>,
    overlay: Option<Overlay>,
    auth: Option<Auth>,
    mode: Option<Mode>,
    queued: bool,
    throttled: bool,
    turn_over: bool,
    closes_turn: bool,
    presumed: bool,
    shells: bool,
    retrying: Option<String>,
    notice: Option<String>,
    limit: Option<String>,
    reset_at: Option<String>,
    background: Option<String>,
}

/// What `screen: none` stands for: glyphs that stand nowhere, and a pattern that nothing matches.
const NO_SCREEN: &str = r"{shape: none, prompt: x, gap: x, option_cursor: '', hint: '[^\x00-\x{10FFFF}]', rules: []}";

/// Reads a profile. `other` finds the profiles read before, whose screen this one may share.
///
/// Errors: names the profile and the key that is wrong.
pub fn parse(name: &str, text: &str, other: impl Fn(&str) -> Option<Arc<Profile>>) -> Result<Profile, ProfileError> {
    let form = |problem: serde_yaml::Error| ProfileError::Form {
        profile: name.to_owned(),
        line: problem.location().map(|place| place.line()),
        problem: problem.to_string(),
    };
    // Read twice: the untyped pass refuses a repeated key, which the typed pass would overlook inside `screen`.
    let _no_repeats: serde_yaml::Value = serde_yaml::from_str(text).map_err(form)?;
    let raw: RawProfile = serde_yaml::from_str(text).map_err(form)?;
    let check = Check { profile: name };
    if raw.name != name {
        return Err(check.bad("name", &format!("{:?}, but the file is called {name:?}", raw.name)));
    }
    let screen = match raw.screen {
        RawScreen::Same(word) if word == "none" => {
            Arc::new(check.screen(serde_yaml::from_str(NO_SCREEN).map_err(form)?)?)
        }
        RawScreen::Same(model) => match other(&model) {
            Some(profile) => Arc::clone(&profile.screen),
            None => return Err(check.bad("screen", &format!("no profile {model:?} is read before this one"))),
        },
        RawScreen::Own(value) => Arc::new(check.screen(serde_yaml::from_value(value).map_err(form)?)?),
    };
    let process = ProcessRule {
        exe_contains: raw.process.exe_contains,
        exe_names: raw.process.exe_names,
        script_contains: raw.process.script_contains,
        args_start: raw.process.args_start,
        version_path: check.optional("process.version_path", raw.process.version_path.as_deref(), &["version"])?,
        packages: raw.process.packages,
    };
    let reads_screen = screen.layout.shape != Shape::None;
    if process.is_empty() && reads_screen {
        return Err(check.bad("process", "nothing in it would recognise a process"));
    }
    if raw.paste.live_marks.is_empty() && reads_screen {
        return Err(check.bad("paste.live_marks", "empty, so a paste could never be guarded"));
    }
    let paste = PasteTraits {
        bracketed: raw.paste.bracketed,
        numbered_folds: raw.paste.numbered_folds,
        busy: match raw.paste.busy {
            RawBusy::Queue => BusyPaste::Queue,
            RawBusy::Hold => BusyPaste::Hold,
        },
        live_marks: raw.paste.live_marks,
    };
    let hooks = match raw.hooks {
        RawHooks::Word(RawHooksWord::Full) => Hooks::Full,
        RawHooks::Word(RawHooksWord::Partial) | RawHooks::Any(true) => Hooks::Partial,
        RawHooks::Word(RawHooksWord::None) | RawHooks::Any(false) => Hooks::None,
    };
    let hook_events = check.hook_events(raw.hook_events)?;
    let seen = check.versions("seen", &raw.seen)?;
    let (name, title) = (raw.name, raw.title);
    Ok(Profile {
        name,
        title,
        version: raw.version,
        seen,
        process,
        screen,
        paste,
        transcript: raw.transcript,
        hooks,
        hook_events,
    })
}

/// Spaces as any run of blanks, and the classes of letters, digits and blanks as ASCII ones.
///
/// Screens are full of glyphs beyond ASCII, on which a Unicode word boundary drives the matcher into its slowest engine.
fn ascii_classes(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut chars = text.chars();
    while let Some(ch) = chars.next() {
        match ch {
            ' ' => out.push_str(r"(?:[\x20\t\n]+)"),
            '\\' => match chars.next() {
                Some('d') => out.push_str("[0-9]"),
                Some('w') => out.push_str("[0-9A-Za-z_]"),
                Some('s') => out.push_str(r"[\x20\t\n]"),
                Some('S') => out.push_str(r"[^\x20\t\n]"),
                Some('b') => out.push_str(r"(?-u:\b)"),
                other => {
                    out.push('\\');
                    out.extend(other);
                }
            },
            ch => out.push(ch),
        }
    }
    out
}

/// Checks values of one profile.
struct Check<'a> {
    /// The profile's name.
    profile: &'a str,
}

impl Check<'_> {
    /// A value that can't be used.
    fn bad(&self, key: &str, problem: &str) -> ProfileError {
        ProfileError::Value { profile: self.profile.to_owned(), key: key.to_owned(), problem: problem.to_owned() }
    }

    /// Compiles a pattern that must have these groups. A space matches any run of blanks.
    fn pattern(&self, key: &str, text: &str, groups: &[&str]) -> Result<Regex, ProfileError> {
        // `regex` prints a picture over several lines; the last one says what is wrong.
        let said = |error: regex::Error| {
            error.to_string().lines().last().unwrap_or("not a pattern").trim().trim_start_matches("error: ").to_owned()
        };
        let pattern = Regex::new(&ascii_classes(text)).map_err(|error| self.bad(key, &said(error)))?;
        match groups.iter().find(|group| !pattern.capture_names().flatten().any(|name| name == **group)) {
            Some(group) => Err(self.bad(key, &format!("the pattern has no group {group:?}"))),
            None => Ok(pattern),
        }
    }

    /// Compiles a pattern that may be absent.
    fn optional(&self, key: &str, text: Option<&str>, groups: &[&str]) -> Result<Option<Regex>, ProfileError> {
        text.map(|text| self.pattern(key, text, groups)).transpose()
    }

    /// Compiles a list of patterns.
    fn patterns(&self, key: &str, texts: &[String]) -> Result<Vec<Regex>, ProfileError> {
        texts.iter().enumerate().map(|(i, text)| self.pattern(&format!("{key}[{i}]"), text, &[])).collect()
    }

    /// Checks a list of versions, and sorts it.
    fn versions(&self, key: &str, texts: &[String]) -> Result<Vec<Vec<u32>>, ProfileError> {
        let mut versions = Vec::with_capacity(texts.len());
        for text in texts {
            let bad = || self.bad(key, &format!("{text:?} is no version"));
            versions.push(version_numbers(text).ok_or_else(bad)?);
        }
        versions.sort();
        Ok(versions)
    }

    /// Checks `hook_events:`.
    fn hook_events(&self, raw: Vec<RawHookEvent>) -> Result<Vec<Hooked>, ProfileError> {
        let mut events: Vec<Hooked> = Vec::with_capacity(raw.len());
        for RawHookEvent { event, matcher, since } in raw {
            let key = format!("hook_events.{event}");
            if Event::parse(&event).is_none() {
                return Err(self.bad(&key, "no event that `ng hook` takes in"));
            }
            if events.iter().any(|known| known.event == event) {
                return Err(self.bad(&key, "the event stands twice"));
            }
            let version = since.as_deref().map(|text| {
                version_of(text).ok_or_else(|| self.bad(&format!("{key}.since"), &format!("{text:?} is no version")))
            });
            events.push(Hooked { event, has_matcher: matcher, since: version.transpose()? });
        }
        Ok(events)
    }

    /// Checks `screen:`.
    fn screen(&self, raw: RawScreenRules) -> Result<ScreenRules, ProfileError> {
        let layout = Layout {
            shape: raw.shape,
            prompt: raw.prompt,
            prompts: raw.prompts,
            ghost_colours: self.colours("screen.ghost_colours", raw.ghost_colours)?,
            is_never_empty: raw.is_never_empty,
            shows_cursor: raw.shows_cursor,
            gap: raw.gap,
            rule: raw.rule,
            page_edge: raw.page_edge,
            option_cursor: raw.option_cursor,
            tick: raw.tick,
            completes: raw.completes,
            heads: raw.heads,
            edge: raw.edge,
            child: raw.child,
            hint: self.pattern("screen.hint", &raw.hint, &[])?,
            picker: self.optional("screen.picker", raw.picker.as_deref(), &["name"])?,
            nudges: self.patterns("screen.nudges", &raw.nudges)?,
            chips: self.patterns("screen.chips", &raw.chips)?,
            asides: self.patterns("screen.asides", &raw.asides)?,
            closing: self.optional("screen.closing", raw.closing.as_deref(), &[])?,
            footer: self.optional("screen.footer", raw.footer.as_deref(), &[])?,
            banner: self.optional("screen.banner", raw.banner.as_deref(), &["version"])?,
        };
        let mut rules: Vec<Rule> = Vec::with_capacity(raw.rules.len());
        for rule in raw.rules {
            let rule = self.rule(rule)?;
            if rules.iter().any(|known| known.id == rule.id) {
                return Err(self.bad(&format!("screen.rules.{}", rule.id), "the id is used twice"));
            }
            rules.push(rule);
        }
        Ok(ScreenRules { layout, rules })
    }

    /// Checks colours.
    fn colours(&self, key: &str, raw: Vec<RawColour>) -> Result<Vec<Colour>, ProfileError> {
        let rgb = |text: &str| {
            let is_hex = |digits: &&str| digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let digits = text.strip_prefix('#').filter(is_hex)?;
            let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
            Some(Colour::Rgb(red, green, blue))
        };
        let colour = |raw| match raw {
            RawColour::Palette(number) => Ok(Colour::Palette(number)),
            RawColour::Rgb(text) => rgb(&text).ok_or_else(|| self.bad(key, &format!("{text:?} is no #rrggbb"))),
        };
        raw.into_iter().map(colour).collect()
    }

    /// Checks one rule.
    fn rule(&self, raw: RawRule) -> Result<Rule, ProfileError> {
        let key = format!("screen.rules.{}", raw.id);
        let votes = Votes {
            state: raw.says.state,
            overlay: raw.says.overlay,
            auth: raw.says.auth,
            mode: raw.says.mode,
            queued: raw.says.queued,
            throttled: raw.says.throttled,
            turn_over: raw.says.turn_over,
            closes_turn: raw.says.closes_turn,
            presumed: raw.says.presumed,
            shells: raw.says.shells,
            retrying: raw.says.retrying.map(Template),
            notice: raw.says.notice.map(Template),
            limit: raw.says.limit.map(Template),
            reset_at: raw.says.reset_at.map(Template),
            background: raw.says.background.map(Template),
        };
        let templates = [&votes.retrying, &votes.notice, &votes.limit, &votes.reset_at, &votes.background];
        let groups: Vec<&str> = templates.into_iter().flatten().flat_map(Template::groups).collect();
        let (field, text) = match (&raw.literal, &raw.regex) {
            (Some(literal), None) => ("literal", regex::escape(literal)),
            (None, Some(regex)) => ("regex", regex.clone()),
            _ => return Err(self.bad(&key, "give either `literal` or `regex`")),
        };
        if raw.why.trim().is_empty() {
            return Err(self.bad(&format!("{key}.why"), "empty, so nobody could judge the rule later"));
        }
        let version = |field: &str, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => match version_numbers(text) {
                Some(numbers) => Ok(Some(numbers)),
                None => Err(self.bad(&format!("{key}.{field}"), &format!("{text:?} is no version"))),
            },
        };
        if raw.cursor.is_some() && raw.region != Region::Footer {
            return Err(self.bad(&format!("{key}.cursor"), "only rules of the region `footer` may ask for the cursor"));
        }
        Ok(Rule {
            pattern: self.pattern(&format!("{key}.{field}"), &text, &groups)?,
            since: version("since", &raw.since)?,
            until: version("until", &raw.until)?,
            id: raw.id,
            region: raw.region,
            cursor: raw.cursor,
            untitled: raw.untitled,
            priority: raw.priority,
            votes,
            why: raw.why,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("../../config/agents/claude.yml");

    fn check(change: impl Fn(&str) -> String, expected: &str) {
        let text = change(GOOD);
        assert_ne!(text, GOOD, "the change must change something");
        let error = parse("claude", &text, |_| None).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_bad_pattern_is_an_error_that_names_profile_and_key() {
        check(|text| text.replacen("regex: '", "regex: '(", 1), "profile claude: screen.rules.claude-");
        check(|text| text.replacen("hint: '", "hint: '[", 1), "profile claude: screen.hint: ");
    }

    #[test]
    fn a_key_that_nobody_knows_is_an_error() {
        check(|text| text.replacen("\npaste:", "\npasta: 1\npaste:", 1), "unknown field `pasta`");
        check(|text| text.replacen("  gap:", "  gab:", 1), "unknown field `gab`");
    }

    #[test]
    fn a_colour_is_a_number_of_the_palette_or_six_digits() {
        let with = |colours: &str| GOOD.replacen("  gap:", &format!("  ghost_colours: {colours}\n  gap:"), 1);
        let profile = parse("claude", &with("[103, '#6c7086']"), |_| None).unwrap();
        assert_eq!(profile.screen.layout.ghost_colours, [Colour::Palette(103), Colour::Rgb(0x6c, 0x70, 0x86)]);
        for bad in ["#6c708", "6c7086", "#6c70éf", "#+c7086"] {
            check(|_| with(&format!("['{bad}']")), "profile claude: screen.ghost_colours: ");
        }
    }

    #[test]
    fn a_profile_carries_the_name_of_its_file() {
        check(|text| text.replacen("name: claude", "name: clause", 1), "profile claude: name: \"clause\"");
    }

    #[test]
    fn a_template_may_only_name_groups_of_its_pattern() {
        check(|text| text.replacen("{code}", "{cod}", 1), "the pattern has no group \"cod\"");
    }

    #[test]
    fn a_screen_can_only_be_shared_with_a_profile_read_before() {
        let text = "name: x\ntitle: X\nprocess: {exe_names: [x]}\npaste: {bracketed: true, busy: hold, live_marks: ['>']}\nscreen: claude\n";
        let error = parse("x", text, |_| None).unwrap_err().to_string();
        assert!(error.contains("screen: no profile \"claude\""), "{error}");
    }
}
