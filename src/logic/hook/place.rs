//! Whose hook this is, where its command line does not say: hooks in a user's settings run in every session.
//!
//! Pure. `cli::hook_place` brings the processes above the hook and what tmux says of its pane.

use serde::{Deserialize, Serialize};

use crate::logic::ids::{SessionId, WindowName};
use crate::logic::snapshot::PaneFacts;
use crate::logic::worker::scope;

/// A process above the hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Above {
    /// Whether it is an agent's.
    pub is_agent: bool,
    /// Its arguments, the program's name not among them.
    pub args: Vec<String>,
}

/// What the processes above a hook say of the session that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is the outermost agent; the settings file that it was given, if any.
    Own {
        /// `--settings`.
        settings: Option<String>,
    },
    /// Another agent runs it, as a tool: what it does is that one's work.
    Nested,
}

/// Where a session stands that has these processes above its hook, nearest first.
///
/// No agent among them (they can't be read, or the agent is not known) counts as the outermost.
pub fn standing(above: &[Above]) -> Standing {
    let mut agents: Vec<&Above> = Vec::new();
    let mut was_agent = false;
    for process in above {
        let is_wrapper = was_agent && agents.last().is_some_and(|inner| process.args.ends_with(&inner.args));
        if process.is_agent && !is_wrapper {
            agents.push(process);
        }
        was_agent = process.is_agent;
    }
    if agents.len() > 1 {
        return Standing::Nested;
    }
    let args = agents.first().map(|agent| agent.args.as_slice()).unwrap_or_default();
    let mut rest = args.iter();
    let settings = rest.find_map(|arg| match arg.strip_prefix("--settings") {
        Some("") => Some(None),
        Some(value) => value.strip_prefix('=').map(|value| Some(value.to_owned())),
        None => None,
    });
    Standing::Own { settings: settings.and_then(|given| given.or_else(|| rest.next().cloned())) }
}

/// The window that a hook belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its name.
    pub window: WindowName,
    /// Whether it is the orchestrator's.
    pub is_target: bool,
}

/// The place of a pane; `None` if it is in no watched session.
pub fn of_pane(panes: &[PaneFacts], pane: &PaneFacts, sessions: &[String], target: &str) -> Option<Place> {
    let watched = scope::sessions(panes, sessions, target)?;
    let in_scope = |session: &SessionId| watched.contains(session);
    // A linked window is listed once for each of its sessions.
    let is_watched = panes.iter().any(|listed| listed.pane == pane.pane && in_scope(&listed.session));
    is_watched.then(|| Place { window: pane.window_name.clone(), is_target: pane.window_name.as_str() == target })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::worker::scope::tests::pane;

    fn process(text: &str) -> Above {
        let mut words = text.split_whitespace().map(str::to_owned);
        let is_agent = words.next().is_some_and(|word| word == "agent");
        Above { is_agent, args: words.collect() }
    }

    fn check(chain: &[&str], expected: &Standing) {
        let chain: Vec<Above> = chain.iter().map(|text| process(text)).collect();
        assert_eq!(standing(&chain), *expected, "{chain:?}");
    }

    #[test]
    fn an_agent_that_another_agent_runs_is_nested_and_a_wrapper_is_not_another() {
        let own = |settings: Option<&str>| Standing::Own { settings: settings.map(str::to_owned) };
        check(&["sh", "agent", "bash", "tmux"], &own(None));
        check(&["sh", "agent -p x", "bash -c y", "agent", "bash"], &Standing::Nested);
        check(&["sh", "agent -p x", "agent --resume"], &Standing::Nested);
        check(&["sh", "agent --resume z", "agent /lib/cli.js --resume z", "bash"], &own(None));
        check(&[], &own(None));
    }

    #[test]
    fn the_settings_file_is_the_one_of_the_nearest_agent() {
        let own = |settings: Option<&str>| Standing::Own { settings: settings.map(str::to_owned) };
        check(&["sh", "agent --settings /s/w3.json -c"], &own(Some("/s/w3.json")));
        check(&["sh", "agent --settings=/s/w3.json"], &own(Some("/s/w3.json")));
        check(&["sh", "agent --settings"], &own(None));
        check(&["sh", "agent --setting-sources user"], &own(None));
    }

    #[test]
    fn a_pane_is_ours_in_a_watched_session_only() {
        let panes = [pane(1, "orchestrator"), pane(2, "w2")];
        let mut elsewhere = pane(3, "w3");
        elsewhere.session = SessionId::new(7);
        let all: Vec<PaneFacts> = panes.iter().cloned().chain([elsewhere.clone()]).collect();
        let place = |pane: &PaneFacts, target: &str| {
            of_pane(&all, pane, &[], target).map(|place| (place.window.0, place.is_target))
        };
        assert_eq!(place(&panes[1], "orchestrator"), Some(("w2".into(), false)));
        assert_eq!(place(&panes[0], "orchestrator"), Some(("orchestrator".into(), true)));
        assert_eq!(place(&elsewhere, "orchestrator"), None);
        assert_eq!(place(&panes[1], "nobody"), None, "without a target nobody knows which session is meant");
        assert!(of_pane(&all, &elsewhere, &["*".into()], "orchestrator").is_some());
    }
}
