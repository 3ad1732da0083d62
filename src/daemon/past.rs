//! What each pane was before: takes in the verdicts of a sweep, keeps them steady, and writes what changed of them. Begins with what an
//! earlier run of the watcher wrote of the same pane.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use super::observe::SERVER_SILENT;
use super::outside::Outside;
use crate::logic::degraded::Mode;
use crate::logic::ids::{PaneId, PaneKey};
use crate::logic::pane::history::{History, Record};
use crate::logic::pane::{PaneVerdict, silence, steady};
use crate::logic::snapshot::{ObservedPane, PaneFacts, TmuxView};
use crate::logic::time::Now;
use crate::sys::files::StateDir;
use crate::sys::pane_history;

/// What is remembered of one pane's past.
#[derive(Debug)]
pub(super) struct Past {
    record: Record,
    steady: steady::Memory,
    silence: Option<silence::Memory>,
    /// It is not written as it is.
    is_unwritten: bool,
}

impl Past {
    /// What is known of a pane that was not seen before.
    pub(super) fn begin(state: &StateDir, key: PaneKey, facts: &PaneFacts) -> Self {
        // A record that can't be read is of no more use than none.
        let record = match pane_history::read(state, &key).ok().flatten() {
            // The same pane may have had another number.
            Some(record) => Record { key, ..record },
            None => Record { key, window: facts.window_name.clone(), transitions: History::default(), silent: None },
        };
        Self { record, steady: steady::Memory::default(), silence: None, is_unwritten: false }
    }

    /// Takes in a look at the pane; what is to be reported of it, if it is on its own.
    fn look(&mut self, facts: &PaneFacts, verdict: PaneVerdict, now: &Now) -> PaneVerdict {
        let (memory, verdict) = std::mem::take(&mut self.steady).step(verdict, facts.activity, now);
        self.steady = memory;
        verdict
    }

    /// Takes in that nothing is known of the pane now. What it was before stands for when it is seen again.
    fn lose(&mut self, verdict: &PaneVerdict, now: &Now) {
        self.is_unwritten |= self.record.transitions.note(verdict, now.at);
    }

    /// Takes in what is reported of the pane, and adds for how long it is silent.
    fn note(&mut self, facts: &PaneFacts, verdict: &mut PaneVerdict, stale_after: Duration, now: &Now) {
        self.silence = silence::Memory::step(self.silence, self.record.silent, verdict, now);
        let stale = self.silence.filter(|silence| !stale_after.is_zero() && silence.lasts(now) >= stale_after);
        verdict.stale_s = stale.map(|silence| silence.lasts(now).as_secs());
        let silent = stale.map(|silence| silence.silence());
        if self.record.transitions.note(verdict, now.at) || self.record.silent != silent {
            self.record.window.clone_from(&facts.window_name);
            self.record.silent = silent;
            self.is_unwritten = true;
        }
    }
}

/// Weighs what a sweep saw against what was seen before: each pane on its own, then all of them together. Panes of a
/// server that does not answer were not seen.
pub(super) fn weigh<T>(out: &Outside<T>, view: &TmuxView, panes: &mut [ObservedPane], now: &Now) {
    let mut recall = out.observer.recall.borrow_mut();
    let mut verdicts: BTreeMap<PaneId, PaneVerdict> = BTreeMap::new();
    for ObservedPane { facts, verdict } in panes.iter() {
        if is_lost(verdict) {
            if let Some(past) = &mut recall.pane(facts.pane).past {
                past.lose(verdict, now);
            }
            continue;
        }
        let Some(key) = view.key(facts.pane) else { continue };
        // A window that is linked into several sessions is listed in each.
        if let Entry::Vacant(place) = verdicts.entry(facts.pane) {
            let past = recall.pane(facts.pane).past.get_or_insert_with(|| Past::begin(&out.state, key, facts));
            place.insert(past.look(facts, verdict.clone(), now));
        }
    }
    let (fleet, doubt) = std::mem::take(&mut recall.fleet).step(&mut verdicts, now.uptime);
    recall.fleet = fleet;
    out.board.report(now, Mode::FleetChanged, doubt.as_deref());
    let stale_after = out.settings.get().stale_after;
    for ObservedPane { facts, verdict } in panes {
        if let (Some(mut steady), Some(past)) = (verdicts.get(&facts.pane).cloned(), &mut recall.pane(facts.pane).past)
        {
            past.note(facts, &mut steady, stale_after, now);
            *verdict = steady;
        }
    }
}

/// Whether nothing was seen of a pane, since its server does not answer.
fn is_lost(verdict: &PaneVerdict) -> bool {
    verdict.evidence.first().is_some_and(|reason| reason.rule == SERVER_SILENT)
}

/// Writes what changed since the last call. What can't be written is tried again at the next one.
pub(super) fn write<T>(out: &Outside<T>) {
    let mut recall = out.observer.recall.borrow_mut();
    let known = recall.known_servers();
    let (mut panes, have_gone) = recall.pasts();
    panes.sort_unstable_by_key(|past| past.record.key.pane);
    for past in panes.iter_mut().filter(|past| past.is_unwritten) {
        match pane_history::write(&out.state, &past.record) {
            Ok(()) => past.is_unwritten = false,
            // That the state directory can't be written is said by the loop, once.
            Err(error) => tracing::debug!(%error, pane = %past.record.key.pane, "its history can't be written"),
        }
    }
    if have_gone {
        let left: Vec<_> = panes.iter().map(|past| past.record.key.pane).collect();
        if let Err(error) = pane_history::keep_only(&out.state, &known, &left) {
            tracing::debug!(%error, "histories of panes that have gone can't be removed");
        }
    }
}
