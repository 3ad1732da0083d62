//! `bell_windows`: lists standing bells on worker windows. Their delivery clears them.

use std::time::Duration;

use super::{Class, Need, Out, Task, TaskSpec};
use crate::config::resolved::Settings;
use crate::logic::emit::bells;
use crate::logic::signal::StagedSignal;
use crate::logic::snapshot::Snapshot;
use crate::logic::time::Now;
use crate::logic::worker::scope;

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "bell_windows",
    every: |_settings| Duration::from_secs(30),
    class: Class::Cheap,
    needs: &[Need::Tmux],
    doc: "Lists standing bells on worker windows.",
    build: || Box::new(BellWindows),
};

/// The task has no memory: tmux remembers the bells.
struct BellWindows;

impl Task for BellWindows {
    fn decide(&mut self, now: &Now, settings: &Settings, snap: &Snapshot, out: &mut Out) {
        let Some(view) = snap.tmux.got() else { return };
        let target = settings.target_window.as_str();
        let Some(sessions) = scope::sessions(&view.panes, &settings.tmux_sessions, target) else { return };
        let windows = scope::windows(&view.panes, &sessions);
        let section = bells::section(view, &windows, target);
        out.staged =
            Some(StagedSignal { at: now.at, sections: section.into_iter().collect(), ..StagedSignal::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, settings, tmux};
    use super::*;
    use crate::logic::ids::WindowId;
    use crate::logic::signal::Commit;
    use crate::logic::snapshot::{Gathered, PaneFacts};
    use crate::logic::worker::scope::tests::pane;

    fn staged(tmux: Gathered<crate::logic::snapshot::TmuxView>) -> Option<StagedSignal> {
        let mut out = Out::default();
        BellWindows.decide(&at(100), &settings(), &Snapshot { tmux, ..Snapshot::default() }, &mut out);
        out.staged
    }

    fn ringing(number: u32, name: &str) -> PaneFacts {
        PaneFacts { bell: true, ..pane(number, name) }
    }

    #[test]
    fn bells_of_workers_are_listed_and_cleared_by_delivery() {
        let panes = vec![
            ringing(1, "orchestrator"),
            ringing(2, "monitor"),
            ringing(3, "•w3"),
            pane(4, "quiet"),
            ringing(5, "worker-3"),
            PaneFacts { pane: crate::logic::ids::PaneId::new(50), ..ringing(5, "worker-3") },
        ];
        let staged = staged(tmux(panes)).unwrap();
        let [section] = staged.sections.as_slice() else { panic!("{staged:?}") };
        assert_eq!(section.lines, ["  - worker-3 (idx 5)"]);
        let [Commit::ClearBells { windows, .. }] = section.commits.as_slice() else { panic!("{section:?}") };
        assert_eq!(*windows, [5, 1, 2, 3].map(WindowId::new));
        assert!(section.pages);
    }

    #[test]
    fn only_the_configured_sessions_ring() {
        let elsewhere = PaneFacts {
            session: crate::logic::ids::SessionId::new(1),
            session_name: "fleet".into(),
            ..ringing(7, "w7")
        };
        let panes = tmux(vec![pane(1, "orchestrator"), ringing(5, "w5"), elsewhere]);
        let settings = Settings { tmux_sessions: vec!["fleet".into()], ..settings() };
        let mut out = Out::default();
        BellWindows.decide(&at(100), &settings, &Snapshot { tmux: panes, ..Snapshot::default() }, &mut out);
        assert_eq!(out.staged.unwrap().sections[0].lines, ["  - w7 (idx 7)"]);
    }

    #[test]
    fn no_bell_is_staged_as_nothing_and_no_answer_is_not_staged() {
        assert_eq!(staged(tmux(vec![pane(1, "orchestrator")])).unwrap().sections, []);
        assert_eq!(staged(Gathered::Failed("timeout".into())), None);
        assert_eq!(staged(tmux(vec![ringing(5, "in-another-session")])), None);
    }
}
