//! A fresh look at the window that is typed into: which pane it is, what it is doing, what stands in its input box.

use super::observe;
use super::outside::Outside;
use crate::config::resolved::ViGuard;
use crate::logic::delivery::gate::{Chip, Composer, Seen, Target};
use crate::logic::ids::{PaneId, ServerNumber, WindowId};
use crate::logic::pane::{self, ProcessFacts, State};
use crate::logic::snapshot::{PaneFacts, TmuxView};
use crate::logic::time::Now;
use crate::sys::tmux::{Tmux, TmuxError};

/// Which window is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// The one window of this name.
    Name(String),
    /// This pane.
    Pane(PaneId),
}

impl Aim {
    /// The orchestrator's window.
    pub(super) fn target<T>(out: &Outside<T>) -> Self {
        Self::Name(out.settings.get().target_window.clone())
    }

    fn means(&self, pane: &PaneFacts) -> bool {
        match self {
            Self::Name(name) => pane.window_name.as_str() == name,
            Self::Pane(id) => pane.pane == *id,
        }
    }
}

impl std::fmt::Display for Aim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Pane(id) => id.fmt(f),
        }
    }
}

/// Looks at a window.
pub(super) async fn at<T: Tmux>(out: &Outside<T>, aim: &Aim) -> Target {
    let view = match out.tmux.view().await {
        Ok(view) => view,
        Err(error @ (TmuxError::NotInstalled | TmuxError::NoServer { .. } | TmuxError::TooOld { .. })) => {
            return Target::NoTmux(error.to_string());
        }
        Err(error) => return Target::CannotTell(error.to_string()),
    };
    out.observer.meet(&view);
    let now = out.clock.now();
    let (facts, process) = match choose(out, aim, &view, &now) {
        Ok(chosen) => chosen,
        Err(target) => return target,
    };
    let Some(key) = view.key(facts.pane) else {
        let why = view.silence(facts.pane.server()).unwrap_or("its server does not answer");
        return Target::CannotTell(format!("{}: {why}", facts.pane));
    };
    let Some(pid) = facts.pid else {
        return Target::CannotTell(format!("tmux does not say which process runs in {}", facts.pane));
    };
    if let Some(why) = process.unclear.filter(|why| why.hides_screen()) {
        let what = process.other.as_deref().map(|what| format!(" ({what})")).unwrap_or_default();
        return Target::CannotTell(format!("{}: {}{what}", facts.pane, why.says()));
    }
    let Some(profile) = out.observer.profile(&process) else {
        return Target::Absent(format!("no agent runs in the window {aim}"));
    };
    let rows = match observe::read(out, facts, &profile).await {
        Ok(rows) => rows,
        Err(error) => return Target::CannotTell(error.to_string()),
    };
    let Some(rows) = rows else { return Target::Absent(format!("the pane {} is gone", facts.pane)) };
    let screen = observe::judge(&profile, facts, &process, &rows);
    let process = out.observer.recounted(process, facts, &screen, &now);
    let verdict = observe::fuse(out, facts, &process, screen, &now);
    if verdict.state == State::Absent {
        return Target::Absent(format!("no agent runs in the window {aim}"));
    }
    let styled = rows.styled.as_ref().map(|(first, rows)| (*first, rows.as_slice()));
    let found = pane::composer(&profile, &rows.plain, styled);
    let boxed = found.as_ref().map(|found| usize::from(found.first_row)..=usize::from(found.last_row));
    let composer = found.map(|found| {
        let drawn = rows.plain.get(usize::from(found.first_row)..=usize::from(found.last_row)).unwrap_or_default();
        Composer {
            text: found.text.replace('\n', ""),
            rows: drawn.iter().map(|row| row.trim_end_matches(' ').to_owned()).collect(),
            chip: found.chip.map(|chip| Chip { text: chip.text, lines: chip.lines }),
        }
    });
    let outside = rows
        .plain
        .iter()
        .enumerate()
        .filter(|(at, _)| boxed.as_ref().is_none_or(|boxed| !boxed.contains(at)))
        .map(|(_, row)| row.clone())
        .collect();
    // One mark can be required as it is; of several, only one need be there, so none is.
    let composer_mark = match profile.paste.live_marks.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
    Target::Present(Box::new(Seen {
        key,
        pid,
        agent_pid: process.agent_pid,
        shell_behind: process.shell_behind,
        synchronized: facts.synchronized,
        in_mode: facts.in_mode,
        verdict,
        composer,
        outside,
        screen: rows.plain,
        busy: profile.paste.busy,
        numbered_folds: profile.paste.numbered_folds,
        vi_guard: match out.settings.get().vi_guard {
            ViGuard::Always => true,
            ViGuard::Never => false,
            ViGuard::Auto => !profile.paste.bracketed,
        },
        composer_mark,
    }))
}

/// Chooses the pane: in the one window that is meant, the one live pane, or the one that runs an agent.
fn choose<'a, T>(
    out: &Outside<T>,
    name: &Aim,
    view: &'a TmuxView,
    now: &Now,
) -> Result<(&'a PaneFacts, ProcessFacts), Target> {
    let panes: Vec<&PaneFacts> = view.panes.iter().filter(|pane| name.means(pane)).collect();
    let Some(first) = panes.first() else {
        let is_meant = |server: ServerNumber| match name {
            Aim::Name(_) => true,
            Aim::Pane(id) => id.server() == server,
        };
        // What a server that does not answer has is not known.
        let silent = view.unlisted().find(|server| is_meant(*server)).and_then(|server| view.silence(server));
        return Err(match (name, silent) {
            (_, Some(why)) => Target::CannotTell(format!("whether {name} is there can't be told: {why}")),
            (Aim::Name(name), None) => Target::Absent(format!("no window is named {name}")),
            (Aim::Pane(_), None) => Target::Absent(format!("{name} is gone")),
        });
    };
    if panes.iter().any(|pane| pane.window != first.window) {
        let mut windows: Vec<WindowId> = panes.iter().map(|pane| pane.window).collect();
        windows.sort_unstable();
        windows.dedup();
        let windows: Vec<String> = windows.iter().map(WindowId::to_string).collect();
        let windows = windows.join(", ");
        return Err(Target::Ambiguous(format!("several windows are named {name} ({windows}); rename all but one")));
    }
    let live: Vec<&PaneFacts> = panes.into_iter().filter(|pane| pane.dead.is_none()).collect();
    match live.as_slice() {
        [] => Err(Target::Absent(format!("the pane of the window {name} is dead"))),
        [only] => Ok((*only, out.observer.processes(only, now))),
        several => {
            let mut agents = several
                .iter()
                .map(|pane| (*pane, out.observer.processes(pane, now)))
                .filter(|(_, process)| process.agent.is_some());
            match (agents.next(), agents.next()) {
                (Some(only), None) => Ok(only),
                (None, _) => Err(Target::Ambiguous(format!("none of the panes of {name} is known to run an agent"))),
                (Some(_), Some(_)) => Err(Target::Ambiguous(format!("several panes of {name} run an agent"))),
            }
        }
    }
}
