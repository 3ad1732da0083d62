//! What is known of one agent program, as data: how to recognise its process, how its screen looks, how it takes a paste.
//!
//! Profiles are read from `config/agents/*.yml` by `crate::agents`; this is the checked form that decisions use.

use std::sync::Arc;

use regex::Regex;

use crate::logic::hook::Hooked;
use crate::logic::screen::ScreenRules;

/// What a paste while a turn runs does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyPaste {
    /// The agent keeps the message and takes it up by itself.
    Queue,
    /// It cuts the turn, or nobody knows: wait for the end of the turn.
    Hold,
}

/// How the agent takes a paste.
#[derive(Clone, Debug)]
pub struct PasteTraits {
    /// Whether it understands paste frames (bracketed paste).
    pub bracketed: bool,
    /// Whether it numbers folded pastes and never uses a number again while it runs.
    pub numbered_folds: bool,
    /// What happens while a turn runs.
    pub busy: BusyPaste,
    /// Texts of which one stands on the screen whenever the input box is live; for checks inside the tmux server.
    pub live_marks: Vec<String>,
}

/// How the agent's process is recognised.
#[derive(Clone, Debug, Default)]
pub struct ProcessRule {
    /// Parts of the path of the executable.
    pub exe_contains: Vec<String>,
    /// Names of the executable file.
    pub exe_names: Vec<String>,
    /// Parts of the first argument, for programs that run under an interpreter.
    pub script_contains: Vec<String>,
    /// What the arguments after the program's name must start with; empty means anything.
    pub args_start: Vec<String>,
    /// Finds the version in the path, as the group `version`.
    pub version_path: Option<Regex>,
}

impl ProcessRule {
    /// Whether a process with this executable and these arguments (the first is the program's name) is the agent.
    pub fn is_match(&self, exe: &str, argv: &[String]) -> bool {
        let words = argv.get(1..).unwrap_or_default();
        if !words.starts_with(&self.args_start) {
            return false;
        }
        // An upgrade in place leaves every running agent with a deleted executable.
        let exe = exe.strip_suffix(" (deleted)").unwrap_or(exe);
        let name = exe.rsplit('/').next().unwrap_or(exe);
        self.exe_contains.iter().any(|part| exe.contains(part))
            || self.exe_names.iter().any(|known| known == name)
            || words.first().is_some_and(|script| self.script_contains.iter().any(|part| script.contains(part)))
    }

    /// The agent's version by the path of its executable or script.
    pub fn version(&self, exe: &str, argv: &[String]) -> Option<String> {
        let pattern = self.version_path.as_ref()?;
        let script = argv.get(1).map_or("", String::as_str);
        let found = pattern.captures(exe).or_else(|| pattern.captures(script))?;
        Some(found.name("version")?.as_str().to_owned())
    }
}

/// One agent program.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name, also the file's: `claude`.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// The profile's own version: it goes up with each change that an amendment could care about.
    pub version: u32,
    /// Versions of the agent whose screens it was made from, oldest first; none if nobody said.
    pub seen: Vec<Vec<u32>>,
    /// How its process is recognised.
    pub process: ProcessRule,
    /// How its screen looks; may be shared with another profile.
    pub screen: Arc<ScreenRules>,
    /// How it takes a paste.
    pub paste: PasteTraits,
    /// Where its session transcripts are, as a style that `sys::transcript` knows; `None` where it has none.
    pub transcript: Option<String>,
    /// Whether it runs hooks that report starts, ends and blocks.
    pub hooks: bool,
    /// The events of its hooks that we take in, by name; empty where we can't set them up.
    pub hook_events: Vec<Hooked>,
}

impl Profile {
    /// The newest version that was seen, if this one is newer.
    pub fn newest_seen_before(&self, version: &[u32]) -> Option<&[u32]> {
        self.seen.last().map(Vec::as_slice).filter(|newest| version > *newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_recognised_by_path_name_or_script() {
        let rule = ProcessRule {
            exe_contains: vec!["/claude/versions/".into()],
            exe_names: vec!["claude".into()],
            script_contains: vec!["/claude-code/".into()],
            args_start: Vec::new(),
            version_path: Some(Regex::new(r"/versions/(?P<version>[\d.]+)").unwrap()),
        };
        let argv = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        for (exe, args, expected) in [
            ("/usr/bin/claude", argv(&["claude"]), true),
            ("/usr/bin/claude (deleted)", argv(&["claude"]), true),
            ("/h/.local/share/claude/versions/2.1.220", argv(&["claude"]), true),
            ("/usr/bin/node", argv(&["node", "/lib/claude-code/cli.js"]), true),
            ("/usr/bin/node", argv(&["node", "server.js"]), false),
            ("/usr/bin/vim", argv(&["vim", "claude"]), false),
            ("/usr/bin/bash", argv(&[]), false),
        ] {
            assert_eq!(rule.is_match(exe, &args), expected, "{exe} {args:?}");
        }
        let version = rule.version("/h/.local/share/claude/versions/2.1.220", &[]);
        assert_eq!(version.as_deref(), Some("2.1.220"));
    }

    #[test]
    fn arguments_can_be_required() {
        let rule = ProcessRule {
            exe_names: vec!["ng".into()],
            args_start: vec!["demo".into(), "agent".into()],
            ..ProcessRule::default()
        };
        let argv = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(rule.is_match("/opt/ng", &argv("ng demo agent --title x")));
        assert!(!rule.is_match("/opt/ng", &argv("ng tasks")));
    }
}
