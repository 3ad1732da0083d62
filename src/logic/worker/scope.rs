//! Which windows are looked at, and which of them are workers. Names decide, since the protocol says so.

use std::collections::{BTreeMap, BTreeSet};

use crate::logic::ids::{SessionId, WindowId, WindowName};
use crate::logic::snapshot::PaneFacts;

/// Names that no worker has (`protocol-facts` §4.1).
const RESERVED: &[&str] = &["watcher", "claude", "orchestrator", "monitor"];

/// Names whose bell means nothing to the orchestrator.
const SILENT: &[&str] = &["orchestrator", "claude", "monitor"];

/// First character of the short-lived windows that a sandbox opens to ring.
const NOTICE_MARK: char = '•';

/// A window by one of its panes: the active one where there is a choice.
#[derive(Clone, Copy, Debug)]
pub struct WindowRow<'a> {
    /// The pane that stands for the window.
    pub facts: &'a PaneFacts,
}

/// The sessions that are watched (`monitor.tmux.sessions`).
///
/// Shape: the configured names; `*` means all; without a setting, the sessions that hold a window of the target's
///        name. `None` if there is no such window: then nobody knows which session is meant.
pub fn sessions(panes: &[PaneFacts], configured: &[String], target: &str) -> Option<BTreeSet<SessionId>> {
    let all = configured.iter().any(|name| name == "*");
    let wanted = |pane: &&PaneFacts| {
        all || if configured.is_empty() {
            pane.window_name.as_str() == target
        } else {
            configured.contains(&pane.session_name)
        }
    };
    let found: BTreeSet<SessionId> = panes.iter().filter(wanted).map(|pane| pane.session).collect();
    (!found.is_empty()).then_some(found)
}

/// The windows of these sessions in list order, each once, by its active pane.
pub fn windows<'a>(panes: &'a [PaneFacts], sessions: &BTreeSet<SessionId>) -> Vec<WindowRow<'a>> {
    let mut rows: Vec<WindowRow<'a>> = Vec::new();
    let mut places: BTreeMap<WindowId, usize> = BTreeMap::new();
    for facts in panes.iter().filter(|pane| sessions.contains(&pane.session)) {
        match places.get(&facts.window).and_then(|place| rows.get_mut(*place)) {
            Some(row) if facts.pane_active => row.facts = facts,
            Some(_) => {}
            None => {
                places.insert(facts.window, rows.len());
                rows.push(WindowRow { facts });
            }
        }
    }
    rows
}

/// Whether a window of this name is a worker.
pub fn is_worker(name: &WindowName, target: &str, services: &str, registry: &[String]) -> bool {
    let name = name.as_str();
    let reserved = name.is_empty() || name == target || name == services || RESERVED.contains(&name);
    !reserved && !is_notice(name) && !registry.iter().any(|service| service == name)
}

/// Whether the bell of a window of this name is worth telling.
pub fn rings(name: &WindowName, target: &str) -> bool {
    let name = name.as_str();
    name != target && !SILENT.contains(&name) && !is_notice(name)
}

/// Whether this is one of the short-lived windows that a sandbox opens to ring.
pub fn is_notice(name: &str) -> bool {
    name.starts_with(NOTICE_MARK)
}

/// Names of registered services: field 1 of `monitor/services.registry`, rows with at least four fields.
pub fn registry_names(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let line = line.trim_end();
        let fields: Vec<&str> = line.split('\t').collect();
        (!line.starts_with('#') && fields.len() >= 4).then(|| fields.first().map(|name| name.trim().to_owned()))?
    };
    text.lines().filter_map(name).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::logic::ids::PaneId;
    use crate::logic::time::Timestamp;

    /// A pane of a window with this number and name, in session `$0` named `main`.
    pub(crate) fn pane(number: u32, name: &str) -> PaneFacts {
        PaneFacts {
            pane: PaneId::new(number),
            window: WindowId::new(number),
            session: SessionId::new(0),
            session_name: "main".into(),
            window_name: WindowName(name.into()),
            window_index: number,
            window_active: false,
            pane_active: true,
            activity: Timestamp::from_secs(0),
            dead: None,
            pid: Some(100 + number),
            in_mode: false,
            synchronized: false,
            alternate_on: false,
            cursor: (0, 0),
            cursor_shown: true,
            size: (80, 24),
            history: 0,
            bell: false,
            title: String::new(),
        }
    }

    #[test]
    fn workers_are_what_nobody_else_is() {
        let registry = registry_names("# c\nweb\t/w\trun\ttrue\nshort\t/w\n\n");
        assert_eq!(registry, ["web"]);
        for (name, worker) in [
            ("w3", true),
            ("a.b c/d", true),
            ("lead", false),
            ("cockpit", false),
            ("watcher", false),
            ("claude", false),
            ("orchestrator", false),
            ("monitor", false),
            ("•w3", false),
            ("", false),
            ("web", false),
            ("short", true),
        ] {
            assert_eq!(is_worker(&WindowName(name.into()), "lead", "cockpit", &registry), worker, "{name}");
        }
    }

    #[test]
    fn the_target_decides_the_session_unless_it_is_configured() {
        let elsewhere = PaneFacts { session: SessionId::new(1), session_name: "private".into(), ..pane(7, "mail") };
        let panes = [pane(1, "orchestrator"), pane(2, "w2"), elsewhere];
        let found = |configured: &[&str], target: &str| -> Option<Vec<u32>> {
            let configured: Vec<String> = configured.iter().map(|name| (*name).to_owned()).collect();
            sessions(&panes, &configured, target).map(|set| set.into_iter().map(SessionId::number).collect())
        };
        assert_eq!(found(&[], "orchestrator"), Some(vec![0]));
        assert_eq!(found(&[], "gone"), None);
        assert_eq!(found(&["*"], "gone"), Some(vec![0, 1]));
        assert_eq!(found(&["private"], "orchestrator"), Some(vec![1]));
        assert_eq!(found(&["absent"], "orchestrator"), None);
    }

    #[test]
    fn a_window_stands_once_and_by_its_active_pane() {
        let second = PaneFacts { pane: PaneId::new(9), ..pane(2, "w2") };
        let first = PaneFacts { pane_active: false, ..pane(2, "w2") };
        let panes = [pane(1, "w1"), first, second];
        let rows = windows(&panes, &BTreeSet::from([SessionId::new(0)]));
        let shown: Vec<_> = rows.iter().map(|row| row.facts.pane.number()).collect();
        assert_eq!(shown, [1, 9]);
    }
}
