//! What is remembered of each pane from the last look, and when it still stands. Everything here saves work only: a
//! pane that is not remembered is read anew, with the same result.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use super::past::Past;
use super::session::Session;
use crate::logic::hook::{Twin, Whose};
use crate::logic::ids::{PaneId, ServerId, ServerNumber, WindowName};
use crate::logic::pane::activity::Activity;
use crate::logic::pane::sanity;
use crate::logic::pane::{HookFacts, LimitStamp, Liveness, PaneVerdict, ProcessFacts, Unclear};
use crate::logic::snapshot::{PaneFacts, TmuxView};
use crate::logic::time::{Now, Timestamp};
use crate::sys::files::StateDir;
use crate::sys::hook_files;
use crate::sys::processes::Hold;
use crate::sys::stamp::Stamps;

/// A stamp younger than this at the read may hide a later change: tmux counts activity in whole seconds.
const STAMP_SETTLES: Duration = Duration::from_secs(1);

/// How long a pane in which nothing is drawn is believed to run the agent that it ran: one that ends without a word is
/// noticed after this.
const AGENT_LASTS: Duration = Duration::from_secs(10);

/// How long such a pane is believed to run none: one that starts without a word is noticed after this.
const NO_AGENT_LASTS: Duration = Duration::from_secs(30);

/// How long what was counted below an agent stands while its text is the same: no shells, and some. One that ends may be
/// silent; one that starts is not, since the agent has a turn for it.
const NO_SHELLS_LAST: Duration = Duration::from_secs(120);
const SHELLS_LAST: Duration = Duration::from_secs(10);

/// How long it stands at most while things are drawn, though the text looks the same: two turns can end in the same words.
const SAME_TEXT_LASTS: Duration = Duration::from_secs(30);

/// The panes of the watched servers.
#[derive(Debug, Default)]
pub(super) struct Recall {
    /// Who each server is, as it last answered.
    servers: BTreeMap<ServerNumber, ServerId>,
    /// Panes whose names another server has as well.
    twins: HashMap<PaneId, Twin>,
    panes: HashMap<PaneId, Remembered>,
    /// What was reported of all of them.
    pub(super) fleet: sanity::Memory,
    /// Panes have gone since that was last asked.
    have_gone: bool,
}

impl Recall {
    /// Takes note of who the servers are: of the panes of one that is another now, nothing is remembered.
    pub(super) fn meet(&mut self, view: &TmuxView) {
        for (number, server) in view.answered() {
            if self.servers.get(&number) == Some(server) {
                continue;
            }
            let is_its = |id: PaneId| id.server() == number;
            self.panes.retain(|id, _| !is_its(*id));
            self.fleet.forget(is_its);
            self.servers.insert(number, server.clone());
            self.have_gone = true;
        }
    }

    /// Takes note of which panes of this whole list have names that another server has as well.
    pub(super) fn note_twins(&mut self, view: &TmuxView) {
        self.twins = if view.servers.len() > 1 { twins(&view.panes) } else { HashMap::new() };
    }

    /// Takes note of who the servers are, and forgets panes that are no longer listed.
    pub(super) fn keep(&mut self, view: &TmuxView) {
        self.meet(view);
        if self.panes.len() > view.panes.len() {
            let listed: HashSet<PaneId> = view.panes.iter().map(|pane| pane.pane).collect();
            self.panes.retain(|id, _| listed.contains(id));
            self.have_gone = true;
        }
    }

    /// What was there before, of every pane that was judged, and whether panes have gone since the last call.
    pub(super) fn pasts(&mut self) -> (Vec<&mut Past>, bool) {
        let have_gone = std::mem::take(&mut self.have_gone);
        (self.panes.values_mut().filter_map(|pane| pane.past.as_mut()).collect(), have_gone)
    }

    /// The server that a pane is on.
    pub(super) fn server(&self, pane: PaneId) -> Option<&ServerId> {
        self.servers.get(&pane.server())
    }

    /// The servers that answered so far.
    pub(super) fn known_servers(&self) -> Vec<ServerNumber> {
        self.servers.keys().copied().collect()
    }

    /// Forgets what was judged by profiles that are no longer in force.
    pub(super) fn judge_anew(&mut self) {
        for pane in self.panes.values_mut() {
            (pane.process, pane.screen, pane.activity) = (None, None, None);
        }
    }

    /// What is remembered of a pane.
    pub(super) fn pane(&mut self, id: PaneId) -> &mut Remembered {
        let pane = self.panes.entry(id).or_default();
        if pane.server.is_none() {
            pane.server = self.servers.get(&id.server()).cloned();
        }
        pane.twin = self.twins.get(&id).copied().unwrap_or_default();
        pane
    }

    /// What another server has under the names of a pane.
    pub(super) fn twin(&self, id: PaneId) -> Twin {
        self.twins.get(&id).copied().unwrap_or_default()
    }
}

/// What is remembered of a pane.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// Its server, which tells whose its hooks' files are.
    server: Option<ServerId>,
    twin: Twin,
    pub(super) process: Option<Known>,
    pub(super) screen: Option<Screen>,
    pub(super) past: Option<Past>,
    pub(super) session: Option<Session>,
    /// The text over time, of an agent of which nothing else is known.
    pub(super) activity: Option<Activity>,
    hook: Option<Hook>,
    limit: Option<Limit>,
}

/// What its process tree was found to say.
#[derive(Debug)]
pub(super) struct Known {
    /// The pane's process.
    pid: Option<u32>,
    /// When it was found, or last found to be still so.
    seen_at: Now,
    facts: ProcessFacts,
    /// When the whole tree was walked. What was counted below the agent is of then.
    walked_at: Now,
    /// The text that was on the screen then, if it was counted for one.
    text: Option<u64>,
    /// The agent, and what is between it and the pane. What else runs in the tree is not watched, so what is derived from
    /// it is kept only as long as [`Known::counts_stand`].
    hold: Option<Box<dyn Hold>>,
}

impl Known {
    pub(super) fn new(pid: Option<u32>, seen_at: Now, facts: ProcessFacts, hold: Option<Box<dyn Hold>>) -> Self {
        Self { pid, seen_at, facts, walked_at: seen_at, text: None, hold }
    }

    /// Whether it is about the process that this pane has now.
    pub(super) fn is_of(&self, pane: &PaneFacts) -> bool {
        self.pid == pane.pid
    }

    /// What was found.
    pub(super) fn into_facts(self) -> ProcessFacts {
        self.facts
    }

    /// The same, counted for a screen with this text.
    pub(super) fn with_text(self, text: Option<u64>) -> Self {
        Self { text, ..self }
    }

    /// After a screen on which a turn runs: the same text later is not the same end.
    pub(super) fn forget_text(&mut self) {
        self.text = None;
    }

    /// Whether what was counted below the agent still stands: the text of the screen is that for which it was counted, or
    /// nothing was drawn since, and that is not long ago. A clock in a status line is drawn without an end.
    pub(super) fn counts_stand(&self, pane: &PaneFacts, text: Option<u64>, now: &Now) -> bool {
        let lasts = if self.facts.background_shells == Some(0) { NO_SHELLS_LAST } else { SHELLS_LAST };
        let is_quiet = self.walked_at.at.since(pane.activity) >= STAMP_SETTLES;
        let is_same = text.is_some() && text == self.text;
        let age = now.uptime.saturating_sub(self.walked_at.uptime);
        self.pid == pane.pid && age < lasts && (is_quiet || (is_same && age < SAME_TEXT_LASTS))
    }

    /// What it says, if the very processes that say it still run the same programs.
    pub(super) fn proven(&mut self, pane: &PaneFacts, now: &Now) -> Option<&ProcessFacts> {
        if self.pid != pane.pid || !self.hold.as_ref()?.is_unchanged() {
            return None;
        }
        self.seen_at = *now;
        Some(&self.facts)
    }

    /// What it says, if nothing was drawn since it was found, and that is not long ago. Not for what types: that has to
    /// be sure.
    pub(super) fn believed(&self, pane: &PaneFacts, now: &Now) -> Option<&ProcessFacts> {
        let lasts = match self.facts.liveness {
            Liveness::Alive => AGENT_LASTS,
            Liveness::Gone => NO_AGENT_LASTS,
            // Somebody who is elsewhere may come back as silently as an agent ends.
            Liveness::Unknown if self.facts.unclear == Some(Unclear::NotWatched) => AGENT_LASTS,
            Liveness::Unknown => return None,
        };
        let is_quiet = self.seen_at.at.since(pane.activity) >= STAMP_SETTLES;
        let is_young = now.uptime.saturating_sub(self.seen_at.uptime) < lasts;
        (self.pid == pane.pid && is_quiet && is_young).then_some(&self.facts)
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
            && old.cursor_shown == now.cursor_shown
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
    twin: Twin,
    stamps: Stamps,
    facts: Option<HookFacts>,
}

impl Remembered {
    /// What the window's hooks wrote last, if it is about this pane. Read again only if a file changed.
    pub(super) fn hook(&mut self, state: &StateDir, pane: &PaneFacts) -> Option<&HookFacts> {
        let known = self.hook.take().filter(|hook| hook.window == pane.window_name && hook.twin == self.twin);
        let known = known.filter(|hook| hook.stamps.are_current());
        let hook = known.unwrap_or_else(|| Hook {
            window: pane.window_name.clone(),
            twin: self.twin,
            stamps: Stamps::of(hook_files::heartbeat_files(state, &pane.window_name)),
            facts: read_hook(state, &pane.window_name, self.whose(pane)),
        });
        self.hook.insert(hook).facts.as_ref()
    }
}

/// The stamp of a usage limit of the window.
#[derive(Debug)]
struct Limit {
    window: WindowName,
    twin: Twin,
    stamps: Stamps,
    stamp: Option<LimitStamp>,
}

impl Remembered {
    /// The stamp of a usage limit that the window's hooks left. Read again only if a file changed.
    pub(super) fn limit_stamp(&mut self, state: &StateDir, pane: &PaneFacts) -> Option<&LimitStamp> {
        let known = self.limit.take().filter(|limit| limit.window == pane.window_name && limit.twin == self.twin);
        let known = known.filter(|limit| limit.stamps.are_current());
        let limit = known.unwrap_or_else(|| Limit {
            window: pane.window_name.clone(),
            twin: self.twin,
            stamps: Stamps::of(hook_files::limit_stamp_files(state, &pane.window_name)),
            stamp: hook_files::read_limit_stamp(state, &pane.window_name, self.whose(pane)),
        });
        self.limit.insert(limit).stamp.as_ref()
    }

    /// Whose files of hooks are this pane's.
    fn whose(&self, pane: &PaneFacts) -> Whose<'_> {
        Whose { pane: Some(pane.pane), server: self.server.as_ref(), twin: self.twin }
    }
}

/// The panes of windows whose names another server has as well.
fn twins(panes: &[PaneFacts]) -> HashMap<PaneId, Twin> {
    let mut of_name: HashMap<&WindowName, Vec<PaneId>> = HashMap::new();
    for pane in panes {
        of_name.entry(&pane.window_name).or_default().push(pane.pane);
    }
    let twin = |id: PaneId, others: &[PaneId]| {
        let mut others = others.iter().filter(|other| other.server() != id.server()).peekable();
        others.peek()?;
        Some(if others.any(|other| other.number() == id.number()) { Twin::Pane } else { Twin::Window })
    };
    let found = panes.iter().filter_map(|pane| Some((pane.pane, twin(pane.pane, of_name.get(&pane.window_name)?)?)));
    found.collect()
}

/// The heartbeat of the pane's window as facts for the fusion.
fn read_hook(state: &StateDir, window: &WindowName, whose: Whose<'_>) -> Option<HookFacts> {
    // A heartbeat that can't be read tells nothing; the screen decides.
    let found = hook_files::read_heartbeat(state, window, whose).ok()??;
    Some(HookFacts::of(&found.heartbeat, found.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::worker::scope::tests::pane;

    /// A view of two servers, with these panes as `(id, window name)`.
    fn two(pids: (u32, u32), panes: &[(&str, &str)]) -> TmuxView {
        let answered = |pid| {
            let id = ServerId { socket: "/s".into(), pid, start_s: 1 };
            crate::logic::snapshot::ServerAnswer::Answered { id, version: "3.5".into() }
        };
        let listed = panes.iter().map(|(id, name)| PaneFacts { pane: PaneId::parse(id).unwrap(), ..pane(0, name) });
        TmuxView { servers: vec![answered(pids.0), answered(pids.1)], panes: listed.collect() }
    }

    #[test]
    fn a_server_that_is_another_takes_only_its_own_memories_along() {
        let mut recall = Recall::default();
        let panes = [("%1", "w"), ("1/%1", "w")];
        recall.keep(&two((1, 2), &panes));
        for (id, _) in panes {
            let remembered = recall.pane(PaneId::parse(id).unwrap());
            remembered.activity = Some(Activity::seen(None, 1, Timestamp::from_secs(1)));
        }
        recall.keep(&two((1, 3), &panes));
        let is_known = |recall: &mut Recall, id: &str| recall.pane(PaneId::parse(id).unwrap()).activity.is_some();
        assert_eq!((is_known(&mut recall, "%1"), is_known(&mut recall, "1/%1")), (true, false));
        assert_eq!(recall.server(PaneId::new(1).on(1)).map(|server| server.pid), Some(3));
        recall.keep(&two((1, 3), &[("1/%1", "w")]));
        assert!(!is_known(&mut recall, "%1"));
    }

    #[test]
    fn what_two_servers_call_the_same_is_known() {
        let view = two((1, 2), &[("%1", "w"), ("%2", "w"), ("%3", "x"), ("1/%1", "w"), ("1/%3", "y"), ("1/%9", "w")]);
        let mut recall = Recall::default();
        recall.note_twins(&view);
        for (id, twin) in [
            ("%1", Twin::Pane),
            ("%2", Twin::Window),
            ("%3", Twin::None),
            ("1/%1", Twin::Pane),
            ("1/%3", Twin::None),
            ("1/%9", Twin::Window),
        ] {
            assert_eq!(recall.twin(PaneId::parse(id).unwrap()), twin, "{id}");
        }
    }

    #[derive(Debug)]
    struct Fixed(bool);

    impl Hold for Fixed {
        fn is_unchanged(&self) -> bool {
            self.0
        }
    }

    fn at(secs: i64) -> Now {
        Now { uptime: Duration::from_secs(secs.unsigned_abs()), ..Now::fixed(Timestamp::from_secs(secs)) }
    }

    fn facts(activity: i64, pid: u32) -> PaneFacts {
        PaneFacts { activity: Timestamp::from_secs(activity), pid: Some(pid), ..pane(1, "w1") }
    }

    fn known(liveness: Liveness, hold: Option<bool>) -> Known {
        let hold = hold.map(|holds| Box::new(Fixed(holds)) as Box<dyn Hold>);
        Known::new(Some(7), at(100), ProcessFacts { liveness, ..ProcessFacts::default() }, hold)
    }

    #[test]
    fn a_quiet_pane_is_believed_for_a_while() {
        for (liveness, activity, pid, now, believed) in [
            (Liveness::Alive, 99, 7, 109, true),
            (Liveness::Alive, 99, 7, 110, false),
            (Liveness::Alive, 100, 7, 101, false),
            (Liveness::Alive, 105, 7, 106, false),
            (Liveness::Alive, 90, 8, 101, false),
            (Liveness::Gone, 90, 7, 129, true),
            (Liveness::Gone, 90, 7, 130, false),
            (Liveness::Unknown, 90, 7, 101, false),
        ] {
            let found = known(liveness, None).believed(&facts(activity, pid), &at(now)).is_some();
            assert_eq!(found, believed, "{liveness:?} {activity} {pid} {now}");
        }
    }

    #[test]
    fn what_was_counted_stands_while_the_text_is_the_same_and_shorter_if_there_was_something() {
        for (shells, activity, pid, text, now, stands) in [
            (Some(0), 99, 7, None, 219, true),
            (Some(0), 99, 7, None, 220, false),
            (Some(0), 100, 7, None, 101, false),
            (Some(0), 129, 7, Some(5), 129, true),
            (Some(0), 130, 7, Some(5), 130, false),
            (Some(0), 100, 7, Some(6), 101, false),
            (Some(0), 90, 8, Some(5), 101, false),
            (Some(1), 99, 7, None, 109, true),
            (Some(1), 99, 7, Some(5), 110, false),
            (None, 99, 7, None, 110, false),
        ] {
            let found = ProcessFacts { background_shells: shells, ..ProcessFacts::default() };
            let mut known = Known::new(Some(7), at(100), found, Some(Box::new(Fixed(true)))).with_text(Some(5));
            assert!(known.proven(&facts(activity, 7), &at(now)).is_some(), "the agent itself is still there");
            assert_eq!(
                known.counts_stand(&facts(activity, pid), text, &at(now)),
                stands,
                "{shells:?} {activity} {now}"
            );
        }
    }

    #[test]
    fn what_is_held_proves_it_anew() {
        for (hold, pid, proven) in
            [(Some(true), 7, true), (Some(false), 7, false), (None, 7, false), (Some(true), 8, false)]
        {
            let mut known = known(Liveness::Alive, hold);
            assert_eq!(known.proven(&facts(90, pid), &at(200)).is_some(), proven, "{hold:?} {pid}");
            assert_eq!(known.believed(&facts(90, 7), &at(205)).is_some(), proven, "{hold:?} {pid}, later");
        }
    }

    #[test]
    fn a_screen_stands_until_anything_about_it_changes() {
        let process = ProcessFacts::default();
        let verdict = PaneVerdict::of(
            crate::logic::pane::State::Idle,
            crate::logic::pane::Evidence::new(crate::logic::pane::Witness::Screen, "x"),
        );
        let check = |expected: bool, read_at: i64, change: &dyn Fn(&mut PaneFacts)| {
            let screen = Screen::new(facts(100, 7), &process, Timestamp::from_secs(read_at), verdict.clone());
            let mut now = facts(100, 7);
            change(&mut now);
            assert_eq!(screen.is_current(&now, &process), expected, "{now:?}");
        };
        check(true, 101, &|_| {});
        check(false, 100, &|_| {});
        check(false, 101, &|pane| pane.activity = Timestamp::from_secs(101));
        check(false, 101, &|pane| pane.cursor.1 += 1);
        check(false, 101, &|pane| pane.size.0 += 1);
        check(false, 101, &|pane| pane.history += 1);
        check(false, 101, &|pane| pane.alternate_on ^= true);
        check(false, 101, &|pane| pane.in_mode ^= true);
        check(false, 101, &|pane| pane.pid = Some(8));
        check(false, 101, &|pane| pane.title.push('x'));
        check(true, 101, &|pane| pane.bell ^= true);
        let other = ProcessFacts { agent: Some("claude".into()), ..ProcessFacts::default() };
        let screen = Screen::new(facts(100, 7), &process, Timestamp::from_secs(101), verdict);
        assert!(!screen.is_current(&facts(100, 7), &other));
        let newer = ProcessFacts { version: Some("2".into()), ..ProcessFacts::default() };
        assert!(!screen.is_current(&facts(100, 7), &newer));
    }
}
