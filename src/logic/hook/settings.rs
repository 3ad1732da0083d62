//! The settings with which an agent calls our hook.
//!
//! An event that the installed version does not know opens a blocking dialog at its next start (`agent-facts` §4), so
//! each event carries the version it was seen in, and an unknown version gets what every version knows.

use serde_json::{Map, Value, json};

use crate::logic::shell::quote;

/// The command line of the hook, before quoting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCommand {
    /// Absolute path of `ng`.
    pub ng: String,
    /// Absolute path of the state directory.
    pub state_dir: String,
    /// The window.
    pub window: String,
    /// Whether the window is the orchestrator's.
    pub is_target: bool,
}

impl HookCommand {
    /// The command line for one event, quoted for a POSIX shell.
    pub fn line(&self, event: &str) -> String {
        let target = if self.is_target { " --target" } else { "" };
        let (ng, window, state) = (quote(&self.ng), quote(&self.window), quote(&self.state_dir));
        format!("{ng} hook {event} --window {window} --state {state}{target}")
    }
}

/// An event that the settings name.
struct Hooked {
    /// The agent's name of it.
    event: &'static str,
    /// Whether it is about tools, so that it carries a matcher.
    has_matcher: bool,
    /// The first version known to have it, beyond the common list.
    since: Option<Version>,
}

/// Major, minor and patch number.
type Version = (u32, u32, u32);

/// Seconds after which the agent gives a hook up. The hook itself ends sooner.
const TIMEOUT_S: u32 = 10;

/// Every event that we use. Seen: 2.0.77 lacks `StopFailure`, 2.1.220 has it.
const EVENTS: &[Hooked] = &[
    Hooked { event: "Notification", has_matcher: false, since: None },
    Hooked { event: "PermissionRequest", has_matcher: true, since: None },
    Hooked { event: "PostToolUse", has_matcher: true, since: None },
    Hooked { event: "PostToolUseFailure", has_matcher: true, since: None },
    Hooked { event: "PreToolUse", has_matcher: true, since: None },
    Hooked { event: "SessionEnd", has_matcher: false, since: None },
    Hooked { event: "SessionStart", has_matcher: false, since: None },
    Hooked { event: "Stop", has_matcher: false, since: None },
    Hooked { event: "StopFailure", has_matcher: false, since: Some((2, 1, 220)) },
    Hooked { event: "UserPromptSubmit", has_matcher: false, since: None },
];

/// The settings for Claude Code (`claude --settings FILE`), with only the events that this version knows.
///
/// Shape: `version` is text such as `2.1.332` or `2.1.332 (Claude Code)`; `None` or anything else counts as unknown.
pub fn claude_settings(command: &HookCommand, version: Option<&str>) -> Value {
    let version = version.and_then(parse_version);
    let mut hooks = Map::new();
    for hooked in EVENTS {
        if hooked.since.is_some_and(|since| version.is_none_or(|version| version < since)) {
            continue;
        }
        let run = json!({"type": "command", "command": command.line(hooked.event), "timeout": TIMEOUT_S});
        let entry = if hooked.has_matcher { json!({"matcher": "*", "hooks": [run]}) } else { json!({"hooks": [run]}) };
        hooks.insert(hooked.event.to_owned(), Value::Array(vec![entry]));
    }
    json!({ "hooks": hooks })
}

/// Reads `2.1.332`, with anything after a blank.
fn parse_version(text: &str) -> Option<Version> {
    let mut numbers = text.split_whitespace().next()?.split('.').map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> HookCommand {
        HookCommand { ng: "/opt/ng".into(), state_dir: "/s d".into(), window: "it's".into(), is_target: true }
    }

    #[test]
    fn the_command_line_is_quoted_for_a_shell() {
        assert_eq!(command().line("Stop"), r"/opt/ng hook Stop --window 'it'\''s' --state '/s d' --target");
    }

    #[test]
    fn an_event_is_named_only_for_versions_that_know_it() {
        for (version, has_stop_failure) in [
            (Some("2.1.332 (Claude Code)"), true),
            (Some("2.1.220"), true),
            (Some("2.0.77"), false),
            (Some("3.0.0"), true),
            (Some("latest"), false),
            (None, false),
        ] {
            let settings = claude_settings(&command(), version);
            assert_eq!(settings["hooks"].get("StopFailure").is_some(), has_stop_failure, "{version:?}");
            assert!(settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"].is_string());
        }
    }
}
