//! From captures to verdicts: reads what changed, in two stages, and fuses screen, hooks and processes.
//!
//! A pane is read again when anything in its `list-panes` row changed, or when its activity stamp was less than a second
//! old at the last read: tmux counts activity in whole seconds, so two changes within one look like none.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use super::outside::Outside;
use crate::agents::Profiles;
use crate::logic::ids::PaneKey;
use crate::logic::pane::{
    self, Evidence, HookFacts, Liveness, PaneVerdict, ProcessFacts, Profile, ScreenFacts, State, Witness,
};
use crate::logic::snapshot::{ObservedPane, PaneFacts, TmuxView};
use crate::logic::time::{Now, Timestamp};
use crate::sys::hook_files;
use crate::sys::processes::{Machine, Processes};
use crate::sys::tmux::{Capture, CaptureRequest, Tmux, TmuxError};

/// A stamp younger than this at the read may hide a later change.
const STAMP_SETTLES: Duration = Duration::from_secs(1);

/// A pane younger than this may be one whose agent has not started yet (`NEXUS_PANE_BOOT_GRACE_SECONDS`).
const BOOT_GRACE: Duration = Duration::from_secs(90);

/// What was seen at the last look.
#[derive(Debug)]
pub struct Observer {
    profiles: Rc<Profiles>,
    processes: Box<dyn Processes>,
    screens: RefCell<HashMap<PaneKey, Screen>>,
}

impl Observer {
    /// An observer that has seen nothing, with the built-in profiles and the processes of this machine.
    ///
    /// Errors: a built-in profile does not load; a build like that fails its tests.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self::with(Rc::new(Profiles::builtin()?), Box::new(Machine::default())))
    }

    /// An observer that has seen nothing.
    pub fn with(profiles: Rc<Profiles>, processes: Box<dyn Processes>) -> Self {
        Self { profiles, processes, screens: RefCell::default() }
    }

    /// What the process tree of a pane says.
    pub(super) fn processes(&self, facts: &PaneFacts, now: &Now) -> ProcessFacts {
        let unknown = ProcessFacts::default();
        let Some(tree) = facts.pid.and_then(|pid| self.processes.tree(pid, now)) else { return unknown };
        let live = || tree.processes.iter().filter(|process| process.is_live());
        let found = live().find_map(|process| {
            let exe = process.exe.as_deref().unwrap_or_default();
            let argv = process.argv.as_deref().unwrap_or_default();
            let profile = self.profiles.of_process(exe, argv)?;
            Some((process, profile, profile.process.version(exe, argv)))
        });
        if let Some((process, profile, version)) = found {
            return ProcessFacts {
                agent: Some(profile.name.clone()),
                agent_pid: Some(process.pid),
                version,
                liveness: Liveness::Alive,
                ..ProcessFacts::default()
            };
        }
        let other = live().find(|process| !process.is_shell()).map(|process| process.comm.clone());
        // An agent may be about to start in a young pane, and a process that can't be read may be one.
        let unclear = tree.age < BOOT_GRACE || live().any(|process| process.exe.is_none());
        let liveness = if unclear { Liveness::Unknown } else { Liveness::Gone };
        ProcessFacts { liveness, shell: other.is_none(), other, ..ProcessFacts::default() }
    }

    /// The profile to judge a pane's screen by.
    pub(super) fn profile(&self, process: &ProcessFacts) -> Option<&Profile> {
        match (&process.agent, process.liveness) {
            (Some(name), _) => self.profiles.get(name).map(AsRef::as_ref),
            // Who draws it is not known: the commonest agent's rules may still recognise it.
            (None, Liveness::Unknown) => self.profiles.iter().next().map(AsRef::as_ref),
            (None, _) => None,
        }
    }

    /// Forgets panes that are no longer listed.
    fn forget_others(&self, view: &TmuxView) {
        let mut screens = self.screens.borrow_mut();
        if screens.len() > view.panes.len() {
            screens.retain(|key, _| key.server == view.server && view.panes.iter().any(|pane| pane.pane == key.pane));
        }
    }
}

/// What a `list-panes` row says about whether the screen changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChangeKey {
    activity: Timestamp,
    cursor: (u16, u16),
    size: (u16, u16),
    history: u64,
    alternate: bool,
    in_mode: bool,
    pid: Option<u32>,
    agent: Option<String>,
    title: String,
}

impl ChangeKey {
    fn of(facts: &PaneFacts, process: &ProcessFacts) -> Self {
        Self {
            activity: facts.activity,
            cursor: facts.cursor,
            size: facts.size,
            history: facts.history,
            alternate: facts.alternate_on,
            in_mode: facts.in_mode,
            pid: facts.pid,
            agent: process.agent.clone(),
            title: facts.title.clone(),
        }
    }
}

/// A screen as it was last read.
#[derive(Clone, Debug)]
struct Screen {
    key: ChangeKey,
    read_at: Timestamp,
    verdict: PaneVerdict,
}

impl Screen {
    /// Whether it still stands for what the row says.
    fn is_current(&self, key: &ChangeKey) -> bool {
        self.key == *key && self.read_at.since(key.activity) >= STAMP_SETTLES
    }
}

/// One pane's rows as read, in two stages.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    /// The visible screen, plain.
    pub(super) plain: Vec<String>,
    /// Rows with escape sequences, from the given row on.
    pub(super) styled: Option<(u16, Vec<String>)>,
}

/// Verdicts on every pane of a view.
pub async fn panes<T: Tmux>(out: &Outside<T>, view: &TmuxView, now: &Now) -> Result<Vec<ObservedPane>, TmuxError> {
    let observer = &out.observer;
    observer.forget_others(view);
    let processes: Vec<ProcessFacts> = view.panes.iter().map(|facts| observer.processes(facts, now)).collect();
    let key_of = |facts: &PaneFacts| PaneKey { server: view.server.clone(), pane: facts.pane };
    let mut wanted: Vec<(&PaneFacts, &ProcessFacts, &Profile)> = Vec::new();
    for (facts, process) in view.panes.iter().zip(&processes) {
        let change = ChangeKey::of(facts, process);
        let current = observer.screens.borrow().get(&key_of(facts)).is_some_and(|screen| screen.is_current(&change));
        if facts.dead.is_none()
            && !current
            && let Some(profile) = observer.profile(process)
        {
            wanted.push((facts, process, profile));
        }
    }
    let rows = read(out, &wanted.iter().map(|(facts, _, profile)| (*facts, *profile)).collect::<Vec<_>>()).await?;
    for ((facts, process, profile), rows) in wanted.into_iter().zip(rows) {
        let verdict = rows.map_or_else(gone, |rows| judge(profile, facts, process, &rows));
        let screen = Screen { key: ChangeKey::of(facts, process), read_at: now.at, verdict };
        observer.screens.borrow_mut().insert(key_of(facts), screen);
    }
    let mut verdicts = Vec::with_capacity(view.panes.len());
    for (facts, process) in view.panes.iter().zip(&processes) {
        let screen = observer.screens.borrow().get(&key_of(facts)).map(|screen| screen.verdict.clone());
        let screen = match (screen, observer.profile(process)) {
            (Some(screen), Some(_)) => screen,
            _ => nothing_to_judge(),
        };
        let verdict = fuse(out, facts, process, screen, now);
        verdicts.push(ObservedPane { facts: facts.clone(), verdict });
    }
    Ok(verdicts)
}

/// The verdict from all witnesses.
pub(super) fn fuse<T>(
    out: &Outside<T>,
    facts: &PaneFacts,
    process: &ProcessFacts,
    screen: PaneVerdict,
    now: &Now,
) -> PaneVerdict {
    let hook = hook_facts(out, facts);
    pane::fuse(facts, process, hook.as_ref(), screen, now.at, out.settings.get().hook_fresh)
}

/// Judges one screen. A screen that panics the rules is not understood, and ends neither the sweep nor the watch.
pub(super) fn judge(profile: &Profile, facts: &PaneFacts, process: &ProcessFacts, rows: &Rows) -> PaneVerdict {
    let screen = ScreenFacts { version: process.version.clone(), ..ScreenFacts::from(facts) };
    let styled = rows.styled.as_ref().map(|(first, rows)| (*first, rows.as_slice()));
    contained(|| pane::judge_screen(profile, &screen, &rows.plain, styled)).unwrap_or_else(|| {
        tracing::error!(pane = %facts.pane, "judging this pane's screen panicked");
        PaneVerdict::of(State::Unknown, Evidence::new(Witness::Screen, "judging-panicked"))
    })
}

/// What a decision on outside data comes to; `None` if it panicked.
fn contained<T>(decide: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(decide)).ok()
}

/// Reads screens in two exchanges: all of them plain, then the rows of which the colour matters. `None` is a pane that
/// has gone in the meantime.
pub(super) async fn read<T: Tmux>(
    out: &Outside<T>,
    panes: &[(&PaneFacts, &Profile)],
) -> Result<Vec<Option<Rows>>, TmuxError> {
    if panes.is_empty() {
        return Ok(Vec::new());
    }
    let whole: Vec<CaptureRequest> =
        panes.iter().map(|(facts, _)| CaptureRequest { pane: facts.pane, rows: None, styled: false }).collect();
    let plain = out.tmux.capture(&whole).await?;
    let mut rows: Vec<Option<Rows>> = Vec::with_capacity(panes.len());
    let mut colours = Vec::new();
    for (at, ((facts, profile), capture)) in panes.iter().zip(plain).enumerate() {
        rows.push(match capture {
            Capture::Gone => None,
            Capture::Rows(plain) => {
                if let Some(range) = contained(|| pane::wanted_style(profile, &plain)).flatten() {
                    colours.push((at, range.0, CaptureRequest { pane: facts.pane, rows: Some(range), styled: true }));
                }
                Some(Rows { plain, styled: None })
            }
        });
    }
    if colours.is_empty() {
        return Ok(rows);
    }
    let requests: Vec<CaptureRequest> = colours.iter().map(|(_, _, request)| *request).collect();
    let styled = out.tmux.capture(&requests).await?;
    for ((at, first, _), capture) in colours.into_iter().zip(styled) {
        let slot = rows.get_mut(at).expect("the index comes from this list");
        match (capture, slot.as_mut()) {
            (Capture::Rows(styled), Some(rows)) => rows.styled = Some((first, styled)),
            _ => *slot = None,
        }
    }
    Ok(rows)
}

/// A pane that went away between the list and the capture.
fn gone() -> PaneVerdict {
    PaneVerdict::of(State::Unknown, Evidence::new(Witness::Tmux, "pane-gone-during-read"))
}

/// A pane whose screen belongs to no known agent.
fn nothing_to_judge() -> PaneVerdict {
    PaneVerdict::of(State::Unknown, Evidence::new(Witness::Screen, "no-agent-to-judge-by"))
}

/// What the window's hooks wrote last, if it is about this pane, as facts for the fusion.
fn hook_facts<T>(out: &Outside<T>, facts: &PaneFacts) -> Option<HookFacts> {
    // A heartbeat that can't be read tells nothing; the screen decides.
    let found = hook_files::read_heartbeat(&out.state, &facts.window_name, Some(facts.pane)).ok()??;
    Some(HookFacts::of(&found.heartbeat, found.path))
}

#[cfg(test)]
mod tests {
    use super::contained;

    #[test]
    fn a_panic_on_outside_data_stays_where_it_is() {
        assert_eq!(contained(|| 1), Some(1));
        assert_eq!(contained(|| -> u8 { panic!("on purpose") }), None);
    }
}
