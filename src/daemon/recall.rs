//! What is remembered of each pane from the last look, and when it still stands. Everything here saves work only: a
//! pane that is not remembered is read anew, with the same result.

use std::collections::HashMap;
use std::time::Duration;

use crate::logic::ids::{PaneId, ServerId, WindowName};
use crate::logic::pane::{HookFacts, Liveness, PaneVerdict, ProcessFacts};
use crate::logic::snapshot::{PaneFacts, TmuxView};
use crate::logic::time::{Now, Timestamp};
use crate::sys::files::StateDir;
use crate::sys::hook_files;
use crate::sys::processes::Hold;
use crate::sys::stamp::Stamps;

/// A stamp younger than this at the read may hide a later change: tmux counts activity in whole seconds.
const STAMP_SETTLES: Duration = Duration::from_secs(1);

/// How long a pane in which no agent was found and nothing is drawn is believed to have none.
const NO_AGENT_LASTS: Duration = Duration::from_secs(30);

/// The panes of one server.
#[derive(Debug, Default)]
pub(super) struct Recall {
    server: Option<ServerId>,
    panes: HashMap<PaneId, Remembered>,
}

impl Recall {
    /// Forgets panes that are no longer listed; all of them if this is another server.
    pub(super) fn keep(&mut self, view: &TmuxView) {
        if self.server.as_ref() != Some(&view.server) {
            self.panes.clear();
            self.server = Some(view.server.clone());
        }
        if self.panes.len() > view.panes.len() {
            self.panes.retain(|id, _| view.panes.iter().any(|pane| pane.pane == *id));
        }
    }

    /// What is remembered of a pane.
    pub(super) fn pane(&mut self, id: PaneId) -> &mut Remembered {
        self.panes.entry(id).or_default()
    }
}

/// What is remembered of a pane.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    pub(super) process: Option<Known>,
    pub(super) screen: Option<Screen>,
    hook: Option<Hook>,
}

/// What its process tree was found to say.
#[derive(Debug)]
pub(super) struct Known {
    /// The pane's process.
    pid: Option<u32>,
    /// When the tree was walked.
    walked_at: Now,
    facts: ProcessFacts,
    /// The agent, and what is between it and the pane. What else runs in the tree is not watched, so nothing that is
    /// derived from it may be kept.
    hold: Option<Box<dyn Hold>>,
}

impl Known {
    pub(super) fn new(pid: Option<u32>, walked_at: Now, facts: ProcessFacts, hold: Option<Box<dyn Hold>>) -> Self {
        Self { pid, walked_at, facts, hold }
    }

    /// What it says, if the very processes that say it still run the same programs.
    pub(super) fn proven(&self, pane: &PaneFacts) -> Option<&ProcessFacts> {
        let holds = self.pid == pane.pid && self.hold.as_ref().is_some_and(|hold| hold.is_unchanged());
        holds.then_some(&self.facts)
    }

    /// That there is no agent, for as long as nothing was drawn since. Not for what types: it looks itself.
    pub(super) fn still_none(&self, pane: &PaneFacts, now: &Now) -> Option<&ProcessFacts> {
        let age = now.uptime.saturating_sub(self.walked_at.uptime);
        let is_quiet = self.walked_at.at.since(pane.activity) >= STAMP_SETTLES;
        let is_sure = self.facts.liveness == Liveness::Gone;
        (self.pid == pane.pid && is_sure && is_quiet && age < NO_AGENT_LASTS).then_some(&self.facts)
    }
}

/// A screen as it was last read.
#[derive(Debug)]
pub(super) struct Screen {
    facts: PaneFacts,
    /// Name and version of the agent that it was judged by.
    agent: (Option<String>, Option<String>),
    read_at: Timestamp,
    pub(super) verdict: PaneVerdict,
}

impl Screen {
    pub(super) fn new(facts: PaneFacts, process: &ProcessFacts, read_at: Timestamp, verdict: PaneVerdict) -> Self {
        Self { facts, agent: (process.agent.clone(), process.version.clone()), read_at, verdict }
    }

    /// Whether it still stands for what the row says: nothing that goes with a change of the screen is another, and the
    /// activity stamp was not so young at the read that a later change may share it.
    pub(super) fn is_current(&self, now: &PaneFacts, process: &ProcessFacts) -> bool {
        let old = &self.facts;
        (old.activity, old.cursor, old.size, old.history) == (now.activity, now.cursor, now.size, now.history)
            && (old.alternate_on, old.in_mode, old.pid) == (now.alternate_on, now.in_mode, now.pid)
            && old.title == now.title
            && (&self.agent.0, &self.agent.1) == (&process.agent, &process.version)
            && self.read_at.since(now.activity) >= STAMP_SETTLES
    }
}

/// What the window's hooks wrote last.
#[derive(Debug)]
struct Hook {
    window: WindowName,
    stamps: Stamps,
    facts: Option<HookFacts>,
}

impl Remembered {
    /// What the window's hooks wrote last, if it is about this pane. Read again only if a file changed.
    pub(super) fn hook(&mut self, state: &StateDir, pane: &PaneFacts) -> Option<&HookFacts> {
        let known = self.hook.take().filter(|hook| hook.window == pane.window_name && hook.stamps.are_current());
        let hook = known.unwrap_or_else(|| Hook {
            window: pane.window_name.clone(),
            stamps: Stamps::of(hook_files::heartbeat_files(state, &pane.window_name)),
            facts: read_hook(state, pane),
        });
        self.hook.insert(hook).facts.as_ref()
    }
}

/// The heartbeat of the pane's window as facts for the fusion.
fn read_hook(state: &StateDir, pane: &PaneFacts) -> Option<HookFacts> {
    // A heartbeat that can't be read tells nothing; the screen decides.
    let found = hook_files::read_heartbeat(state, &pane.window_name, Some(pane.pane)).ok()??;
    let heartbeat = found.heartbeat;
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Some(HookFacts {
        state: heartbeat.state.clone(),
        event: some(&heartbeat.event),
        last_activity: Some(Timestamp::from_secs(heartbeat.last_activity)),
        last_turn_end: heartbeat.last_turn_end.map(Timestamp::from_secs),
        session_id: some(&heartbeat.session_id),
        scheduled_wakeup_at: heartbeat.scheduled_wakeup_at().map(Timestamp::from_secs),
        external_waits: heartbeat.external_waits().into_iter().map(|(kind, id)| format!("{kind}:{id}")).collect(),
        source: Some(found.path),
    })
}
