//! One look at one pane that keeps everything it saw, for people who ask why. It judges as the sweep does.

use super::observe;
use super::outside::Outside;
use crate::logic::pane::history::History;
use crate::logic::pane::{self, Explanation, PaneVerdict, WitnessSeen};
use crate::logic::snapshot::{PaneFacts, TmuxView};
use crate::logic::time::Now;
use crate::sys::pane_history;
use crate::sys::tmux::{Tmux, TmuxError};

/// What was seen of a pane.
#[derive(Debug)]
pub struct Explained {
    /// The verdict from all witnesses.
    pub verdict: PaneVerdict,
    /// What its screen was judged by; none if no profile is for it, or it could not be read.
    pub screen: Option<Explanation>,
    /// What each witness said.
    pub witnesses: Vec<WitnessSeen>,
    /// What the running watcher saw the pane become, oldest first.
    pub history: History,
}

/// Looks at a pane; `None` if it has gone.
pub async fn pane<T: Tmux>(
    out: &Outside<T>,
    view: &TmuxView,
    facts: &PaneFacts,
    now: &Now,
) -> Result<Option<Explained>, TmuxError> {
    let process = out.observer.processes(facts, now);
    let profile = out.observer.profile(&process).filter(|_| facts.dead.is_none());
    let (verdict, screen) = match &profile {
        None => (pane::nothing_to_judge(), None),
        Some(profile) => {
            let Some(rows) = observe::read(out, facts, profile).await? else { return Ok(None) };
            let verdict = observe::judge(profile, facts, &process, &rows);
            let styled = rows.styled.as_ref().map(|(first, rows)| (*first, rows.as_slice()));
            let screen = observe::screen_facts(facts, &process);
            (verdict, Some(pane::explain(profile, &screen, &rows.plain, styled).1))
        }
    };
    let process = out.observer.recounted(process, facts, &verdict, now);
    let verdict = observe::fuse(out, facts, &process, verdict, now);
    let hook = observe::hook(out, facts);
    let fresh = out.settings.get().hook_fresh;
    let mut witnesses = vec![
        pane::witnesses::of_tmux(facts),
        pane::witnesses::of_process(&process, now.at),
        pane::witnesses::of_hook(hook.as_ref(), now.at, fresh),
        pane::witnesses::of_title(facts, now.at),
    ];
    let stamp = observe::limit_stamp(out, facts);
    witnesses.extend(stamp.map(|stamp| pane::witnesses::of_limit_stamp(&stamp, hook.as_ref(), now.at)));
    // A history that can't be read is none: nothing rests on it.
    let record = view.key(facts.pane).and_then(|key| pane_history::read(&out.state, &key).ok().flatten());
    let history = record.map(|record| record.transitions);
    Ok(Some(Explained { verdict, screen, witnesses, history: history.unwrap_or_default() }))
}
