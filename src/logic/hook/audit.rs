//! Whether somebody's settings have our hooks as they should be, event by event.

use serde_json::Value;

use super::settings::{HookLine, Hooked};

/// How an event stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audited {
    /// Our hook is there.
    Installed,
    /// Our hook is there, but only for the tools of this matcher.
    Narrowed(String),
    /// It is not there.
    Missing,
    /// It calls another copy of the program, which runs.
    OtherProgram(String),
    /// It calls a program that does not run.
    ProgramGone(String),
    /// It writes to a state directory that is not there.
    StateGone(String),
    /// It is there, but this version of the agent does not know the event.
    UnknownToVersion,
}

impl Audited {
    /// Whether the event reaches us.
    pub fn is_fine(&self) -> bool {
        matches!(self, Self::Installed | Self::Narrowed(_) | Self::OtherProgram(_))
    }

    /// One word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Narrowed(_) => "narrowed",
            Self::Missing => "missing",
            Self::OtherProgram(_) => "other-program",
            Self::ProgramGone(_) => "stale-program",
            Self::StateGone(_) => "stale-state",
            Self::UnknownToVersion => "unknown-event",
        }
    }

    /// More, for people; empty where the word says it all.
    pub fn detail(&self) -> String {
        match self {
            Self::Installed | Self::Missing => String::new(),
            Self::Narrowed(matcher) => format!("only for tools that match {matcher:?}"),
            Self::OtherProgram(ng) => format!("calls {ng}"),
            Self::ProgramGone(ng) => format!("calls {ng}, which does not run"),
            Self::StateGone(state) => format!("writes to {state}, which is not there"),
            Self::UnknownToVersion => "this version does not know it and opens a dialog at its next start".into(),
        }
    }
}

/// What the caller knows of the machine.
pub struct Machine<'a> {
    /// Path of the program that an install would name.
    pub ng: &'a str,
    /// Whether a hook belongs to the nexus that asks.
    pub is_ours: &'a dyn Fn(&HookLine) -> bool,
    /// Whether a program is there and can be run.
    pub runs: &'a dyn Fn(&str) -> bool,
    /// Whether a state directory is there.
    pub has_state: &'a dyn Fn(&str) -> bool,
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("ng", &self.ng).finish_non_exhaustive()
    }
}

/// How each event stands: those that this version has, then those that it should not have.
pub fn audit(settings: &Value, events: &[&Hooked], machine: &Machine<'_>) -> Vec<(String, Audited)> {
    let mut rows: Vec<(String, Audited)> = events
        .iter()
        .map(|hooked| (hooked.event.clone(), standing(&settings["hooks"][&hooked.event], machine)))
        .collect();
    let named = settings["hooks"].as_object().into_iter().flatten();
    for (event, entries) in named.filter(|(event, _)| !events.iter().any(|hooked| hooked.event == **event)) {
        if standing(entries, machine) != Audited::Missing {
            rows.push((event.clone(), Audited::UnknownToVersion));
        }
    }
    rows
}

/// How one event stands.
fn standing(entries: &Value, machine: &Machine<'_>) -> Audited {
    for entry in entries.as_array().into_iter().flatten() {
        for hook in entry["hooks"].as_array().into_iter().flatten() {
            let line = hook["command"].as_str().and_then(HookLine::parse);
            let Some(line) = line.filter(|line| (machine.is_ours)(line)) else { continue };
            let matcher = entry["matcher"].as_str().unwrap_or_default();
            return if !(machine.has_state)(&line.state_dir) {
                Audited::StateGone(line.state_dir)
            } else if !(machine.runs)(&line.ng) {
                Audited::ProgramGone(line.ng)
            } else if !matches!(matcher, "" | "*" | ".*") {
                Audited::Narrowed(matcher.to_owned())
            } else if line.ng != machine.ng {
                Audited::OtherProgram(line.ng)
            } else {
                Audited::Installed
            };
        }
    }
    Audited::Missing
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_event_stands_as_its_first_hook_of_ours_does() {
        let entry = |command: &str, matcher: &str| json!([{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]);
        let settings = json!({"hooks": {
            "A": entry("/opt/ng hook A --state /s", "*"),
            "B": entry("/old/ng hook B --state /s", ""),
            "C": entry("/gone/ng hook C --state /s", ""),
            "D": entry("/opt/ng hook D --state /moved", ""),
            "E": entry("/opt/ng hook E --state /s", "Bash"),
            "F": entry("/opt/ng hook F --state /other", ""),
            "G": entry("say done", ""),
            "H": entry("/opt/ng hook H --state /s", ""),
            "I": entry("another", ""),
        }});
        let events = ["A", "B", "C", "D", "E", "F", "G"].map(|event| Hooked {
            event: event.into(),
            has_matcher: false,
            since: None,
        });
        let machine = Machine {
            ng: "/opt/ng",
            is_ours: &|line| line.state_dir != "/other",
            runs: &|ng| !ng.starts_with("/gone"),
            has_state: &|state| state != "/moved",
        };
        let rows = audit(&settings, &events.iter().collect::<Vec<_>>(), &machine);
        let words: Vec<(&str, &str)> = rows.iter().map(|(event, standing)| (event.as_str(), standing.word())).collect();
        let expected = [
            ("A", "installed"),
            ("B", "other-program"),
            ("C", "stale-program"),
            ("D", "stale-state"),
            ("E", "narrowed"),
            ("F", "missing"),
            ("G", "missing"),
            ("H", "unknown-event"),
        ];
        assert_eq!(words, expected);
        assert!(audit(&Value::Null, &[], &machine).is_empty());
    }
}
