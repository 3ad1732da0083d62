//! `target_window`: tells whether the orchestrator's window holds a live pane.
//!
//! A pane that `remain-on-exit` keeps after its command ended is not a presence. A tmux that did not answer is not
//! an absence.

use std::time::Duration;

use super::{Class, Need, Out, Task, TaskSpec};
use crate::config::resolved::Settings;
use crate::logic::action::Action;
use crate::logic::snapshot::{Gathered, PaneFacts, Snapshot};
use crate::logic::time::Now;

/// Return code for "no live pane".
pub(crate) const ABSENT: i32 = 2;

/// Return code for "could not look": try again later.
const TRY_LATER: i32 = 75;

/// Cadence of `compose_emit` while the target is missing.
const HURRY_EVERY: Duration = Duration::from_secs(5);

/// How long that cadence lasts, and how often it is asked for.
const HURRY_LASTING: Duration = Duration::from_secs(60);

pub(super) const SPEC: TaskSpec = TaskSpec {
    name: "target_window",
    every: |_settings| Duration::from_secs(2),
    class: Class::Cheap,
    needs: &[Need::Target],
    doc: "Tells whether the orchestrator's window holds a live pane.",
    build: || Box::new(TargetWindow::default()),
};

/// Memory of the task.
#[derive(Default)]
struct TargetWindow {
    /// When `compose_emit` was last hurried in this absence.
    hurried_at: Option<Duration>,
}

/// Whether this pane is the target, alive.
fn is_presence(settings: &Settings, pane: &PaneFacts) -> bool {
    let sessions = &settings.tmux_sessions;
    let in_scope = sessions.is_empty() || sessions.iter().any(|name| name == "*" || *name == pane.session_name);
    in_scope && pane.window_name.as_str() == settings.target_window && pane.dead.is_none()
}

impl Task for TargetWindow {
    fn decide(&mut self, now: &Now, settings: &Settings, snap: &Snapshot, out: &mut Out) {
        let view = match &snap.target {
            Gathered::Got(view) => view,
            Gathered::NotAsked => return,
            Gathered::Failed(_) => {
                out.rc = TRY_LATER;
                return;
            }
        };
        // What a server that does not answer listed last may be over, and what it never listed may be there.
        let mut is_open = view.unlisted().next().is_some();
        for pane in view.panes.iter().filter(|pane| is_presence(settings, pane)) {
            if view.silence(pane.pane.server()).is_none() {
                self.hurried_at = None;
                return;
            }
            is_open = true;
        }
        if is_open {
            out.rc = TRY_LATER;
            return;
        }
        out.rc = ABSENT;
        let lasts = self.hurried_at.is_some_and(|at| now.uptime.saturating_sub(at) < HURRY_LASTING);
        if !lasts {
            self.hurried_at = Some(now.uptime);
            out.actions.push(Action::Hurry { task: "compose_emit", every: HURRY_EVERY, lasting: HURRY_LASTING });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, settings, tmux};
    use super::*;
    use crate::logic::snapshot::DeadPane;
    use crate::logic::worker::scope::tests::pane;

    fn run(task: &mut TargetWindow, secs: i64, tmux: Gathered<crate::logic::snapshot::TmuxView>) -> (i32, usize) {
        let mut out = Out::default();
        task.decide(&at(secs), &settings(), &Snapshot { target: tmux, ..Snapshot::default() }, &mut out);
        (out.rc, out.actions.len())
    }

    #[test]
    fn presence_is_a_live_pane_in_the_window_of_exactly_that_name() {
        let dead = PaneFacts { dead: Some(DeadPane::default()), ..pane(1, "orchestrator") };
        for (panes, rc) in [
            (vec![pane(1, "orchestrator")], 0),
            (vec![dead.clone(), pane(2, "orchestrator")], 0),
            (vec![dead], 2),
            (vec![pane(1, "orchestrator-2")], 2),
            (vec![pane(1, "Orchestrator")], 2),
            (vec![], 2),
        ] {
            let mut task = TargetWindow::default();
            assert_eq!(run(&mut task, 100, tmux(panes.clone())).0, rc, "{panes:?}");
        }
    }

    #[test]
    fn a_tmux_that_did_not_answer_is_no_absence() {
        let mut task = TargetWindow::default();
        assert_eq!(run(&mut task, 100, Gathered::Failed("timeout".into())), (75, 0));
        assert_eq!(run(&mut task, 100, Gathered::NotAsked), (0, 0));
    }

    #[test]
    fn a_server_that_does_not_answer_is_neither_a_presence_nor_an_absence() {
        use crate::logic::snapshot::{ServerAnswer, TmuxView};
        let (target, other) = (pane(1, "orchestrator"), pane(2, "w2"));
        let of_second =
            |pane: &PaneFacts| PaneFacts { pane: pane.pane.on(1), window: pane.window.on(1), ..pane.clone() };
        let answered = || match tmux(vec![]) {
            Gathered::Got(view) => view.servers[0].clone(),
            _ => unreachable!(),
        };
        let silent = |is_listed| ServerAnswer::Silent { why: "late".into(), is_listed };
        for (second, panes, rc) in [
            (silent(true), vec![other.clone(), of_second(&target)], 75),
            (silent(false), vec![other.clone()], 75),
            (silent(true), vec![target.clone(), of_second(&other)], 0),
            (silent(true), vec![other.clone(), of_second(&other)], 2),
            (ServerAnswer::Gone("no server".into()), vec![other.clone()], 2),
        ] {
            let view = TmuxView { servers: vec![answered(), second], panes };
            let mut task = TargetWindow::default();
            assert_eq!(run(&mut task, 100, Gathered::Got(view.clone())).0, rc, "{view:?}");
        }
    }

    #[test]
    fn an_absence_hurries_the_report_once_a_minute() {
        let mut task = TargetWindow::default();
        let hurried: Vec<usize> =
            [100, 102, 158, 160, 162].iter().map(|secs| run(&mut task, *secs, tmux(vec![])).1).collect();
        assert_eq!(hurried, [1, 0, 0, 1, 0]);
        assert_eq!(run(&mut task, 164, tmux(vec![pane(1, "orchestrator")])), (0, 0));
        assert_eq!(run(&mut task, 166, tmux(vec![])), (2, 1));
    }
}
