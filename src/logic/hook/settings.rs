//! The hooks that an agent's settings name: which events, the command of each, and how our own is known again.
//!
//! An event that the installed version does not know opens a blocking dialog at its next start (`agent-facts` §4), so
//! each event carries the version it was seen in, and an unknown version gets what every version knows. The list is
//! part of an agent's profile.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::logic::shell::{quote, split};

/// Major, minor and patch number.
pub type Version = (u32, u32, u32);

/// Seconds after which the agent gives a hook up. The hook itself ends sooner.
const TIMEOUT_S: u32 = 10;

/// An event of an agent's hooks that we take in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooked {
    /// The agent's name of it.
    pub event: String,
    /// Whether it is about tools, so that it carries a matcher.
    pub has_matcher: bool,
    /// The first version known to have it; `None` if every version has.
    pub since: Option<Version>,
}

/// The events that a version has.
pub fn wanted(events: &[Hooked], version: Option<Version>) -> Vec<&Hooked> {
    let has = |hooked: &&Hooked| hooked.since.is_none_or(|since| version.is_some_and(|version| version >= since));
    events.iter().filter(has).collect()
}

/// Reads `2.1.332`, with anything after a blank; `None` for anything else.
pub fn version_of(text: &str) -> Option<Version> {
    let mut numbers = text.split_whitespace().next()?.split('.').map(str::parse::<u32>);
    let version = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    numbers.next().is_none().then_some(version)
}

/// The command line of the hook, before quoting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCommand {
    /// Absolute path of `ng`.
    pub ng: String,
    /// Absolute path of the nexus, where the state directory does not tell it.
    pub root: Option<String>,
    /// Absolute path of the state directory.
    pub state_dir: String,
    /// The window; `None` where the hook is to find it out.
    pub window: Option<String>,
    /// Whether the window is the orchestrator's.
    pub is_target: bool,
}

impl HookCommand {
    /// The command line for one event, quoted for a POSIX shell.
    pub fn line(&self, event: &str) -> String {
        let mut line = format!("{} hook {event}", quote(&self.ng));
        let options =
            [("window", self.window.as_ref()), ("root", self.root.as_ref()), ("state", Some(&self.state_dir))];
        for (name, value) in options {
            if let Some(value) = value {
                line.extend([" --", name, " ", &quote(value)]);
            }
        }
        if self.is_target {
            line.push_str(" --target");
        }
        line
    }

    /// The event's entry as the settings hold it.
    pub fn entry(&self, hooked: &Hooked) -> Entry {
        let hook = Hook { kind: "command", command: self.line(&hooked.event), timeout: TIMEOUT_S };
        Entry { matcher: hooked.has_matcher.then_some("*"), hooks: [hook] }
    }

    /// A whole settings file with these events.
    pub fn settings(&self, events: &[&Hooked]) -> Value {
        let hooks: BTreeMap<&str, [Entry; 1]> =
            events.iter().map(|hooked| (hooked.event.as_str(), [self.entry(hooked)])).collect();
        json!({ "hooks": hooks })
    }
}

/// An entry of an event in an agent's settings. The fields are in the order in which people write them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Which tools it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<&'static str>,
    /// Our hook.
    hooks: [Hook; 1],
}

/// A hook in an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Hook {
    /// What kind of hook it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The command line.
    command: String,
    /// When the agent gives it up, in seconds.
    timeout: u32,
}

/// A command in somebody's settings that calls our hook, wherever the program lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookLine {
    /// Path of `ng`.
    pub ng: String,
    /// The event on the command line.
    pub event: String,
    /// `--state`, else the state directory of `--root`.
    pub state_dir: String,
    /// `--window`.
    pub window: Option<String>,
    /// `--target`.
    pub is_target: bool,
}

impl HookLine {
    /// Reads a command; `None` if it is not one of ours: another program, or an `ng` of somebody else's.
    pub fn parse(command: &str) -> Option<Self> {
        let words = split(command)?;
        let mut words = words.into_iter();
        let mut line = Self { ng: words.next()?, ..Self::default() };
        if line.ng.rsplit('/').next() != Some("ng") || words.next().as_deref() != Some("hook") {
            return None;
        }
        line.event = words.next().filter(|event| !event.starts_with('-'))?;
        let mut root = None;
        while let Some(word) = words.next() {
            match word.as_str() {
                "--state" => line.state_dir = words.next()?,
                "--root" => root = Some(words.next()?),
                "--window" => line.window = Some(words.next()?),
                "--target" => line.is_target = true,
                _ => return None,
            }
        }
        if line.state_dir.is_empty() {
            line.state_dir = format!("{}/monitor/.state", root?);
        }
        Some(line)
    }
}

/// Every command of ours in a settings file.
pub fn commands_of(settings: &Value) -> Vec<HookLine> {
    let entries = settings.get("hooks").and_then(Value::as_object).into_iter().flatten();
    let entries = entries.filter_map(|(_, entries)| entries.as_array()).flatten();
    let hooks = entries.filter_map(|entry| entry.get("hooks")?.as_array()).flatten();
    hooks.filter_map(|hook| HookLine::parse(hook.get("command")?.as_str()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> HookCommand {
        HookCommand {
            ng: "/opt/ng".into(),
            root: None,
            state_dir: "/s d".into(),
            window: Some("it's".into()),
            is_target: true,
        }
    }

    #[test]
    fn the_command_line_is_quoted_for_a_shell_and_known_again() {
        let line = command().line("Stop");
        assert_eq!(line, r"/opt/ng hook Stop --window 'it'\''s' --state '/s d' --target");
        let found = HookLine::parse(&line).unwrap();
        let expected = HookLine {
            ng: "/opt/ng".into(),
            event: "Stop".into(),
            state_dir: "/s d".into(),
            window: Some("it's".into()),
            is_target: true,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_command_of_another_program_is_not_ours() {
        for (command, is_ours) in [
            ("/moved/ng hook Stop --state /s", true),
            ("ng hook Stop --root /n", true),
            ("\"/opt/my ng/ng\" hook Stop --state /s", true),
            ("/usr/bin/ng serve --state /s", false),
            ("ng hook", false),
            ("ng hook --state /s", false),
            ("ng hook Stop", false),
            ("ng hook Stop --state /s && rm -rf /", false),
            ("echo ng hook Stop --state /s", false),
            ("ng hook Stop --state /s --verbose", false),
            ("sh -c 'ng hook Stop --state /s'", false),
            ("ng hook 'Stop --state /s", false),
            ("", false),
        ] {
            assert_eq!(HookLine::parse(command).is_some(), is_ours, "{command}");
        }
    }

    #[test]
    fn an_event_is_named_only_for_versions_that_know_it() {
        let events = [
            Hooked { event: "Stop".into(), has_matcher: false, since: None },
            Hooked { event: "StopFailure".into(), has_matcher: false, since: Some((2, 1, 220)) },
        ];
        for (version, count) in [
            ("2.1.332 (Claude Code)", 2),
            ("2.1.220", 2),
            ("2.0.77", 1),
            ("3.0.0", 2),
            ("latest", 1),
            ("2.1", 1),
            ("2.1.332.1", 1),
            ("", 1),
        ] {
            assert_eq!(wanted(&events, version_of(version)).len(), count, "{version:?}");
        }
    }

    #[test]
    fn the_settings_have_an_entry_for_each_event_in_which_our_command_is_found() {
        let events = [Hooked { event: "PreToolUse".into(), has_matcher: true, since: None }];
        let settings = command().settings(&wanted(&events, None));
        assert_eq!(settings["hooks"]["PreToolUse"][0]["matcher"], "*");
        assert_eq!(commands_of(&settings).len(), 1);
        assert!(commands_of(&json!({"hooks": {"Stop": "x"}})).is_empty() && commands_of(&Value::Null).is_empty());
    }
}
