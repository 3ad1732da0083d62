//! From captures to verdicts: reads what changed, in stages, and fuses screen, hooks and processes.
//!
//! A pane is read again when anything in its `list-panes` row changed, or when its activity stamp was less than a second
//! old at the last read: tmux counts activity in whole seconds, so two changes within one look like none.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::outside::Outside;
use super::past;
use super::recall::{Recall, Screen};
use super::session;
use crate::agents::Profiles;
use crate::logic::ids::{PaneId, ServerNumber};
use crate::logic::pane::activity::Activity;
use crate::logic::pane::{
    self, Evidence, HookFacts, LimitStamp, PaneVerdict, ProcessFacts, Profile, Reader, ScreenFacts, State, Wanted,
    Witness,
};
use crate::logic::screen::Shape;
use crate::logic::snapshot::{ObservedPane, PaneFacts, TmuxView};
use crate::logic::time::Now;
use crate::sys::join;
use crate::sys::processes::{Machine, Processes};
use crate::sys::tmux::{Capture, CaptureRequest, Reading, Tmux, TmuxError};

/// The last row that tmux may be asked for, whatever the size of the pane: it stops at the pane's own last row.
const LAST_ROW: u16 = i16::MAX.unsigned_abs();

/// What was seen at the last look.
#[derive(Debug)]
pub struct Observer {
    profiles: RefCell<Rc<Profiles>>,
    pub(super) processes: Box<dyn Processes>,
    pub(super) recall: RefCell<Recall>,
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
        Self { profiles: RefCell::new(profiles), processes, recall: RefCell::default() }
    }

    /// Takes note of who the watched servers are, and of what is ambiguous between them. Whoever looks at some of the
    /// panes only shows all of them here first.
    pub fn meet(&self, view: &TmuxView) {
        let mut recall = self.recall.borrow_mut();
        recall.meet(view);
        recall.note_twins(view);
    }

    /// Judges by other profiles from now on; what was judged by the old ones is judged anew.
    pub fn replace(&self, profiles: Profiles) {
        *self.profiles.borrow_mut() = Rc::new(profiles);
        self.recall.borrow_mut().judge_anew();
    }

    /// The verdict on a screen with what its changes tell, where nothing else is known of it.
    pub(super) fn over_time(
        &self,
        facts: &PaneFacts,
        process: &ProcessFacts,
        screen: PaneVerdict,
        now: &Now,
    ) -> PaneVerdict {
        let by_text = self.profile(process).is_some_and(|profile| profile.screen.layout.shape == Shape::None);
        let Some(hash) = screen.content_hash.filter(|_| by_text) else { return screen };
        let mut recall = self.recall.borrow_mut();
        let pane = recall.pane(facts.pane);
        let activity = Activity::seen(pane.activity, hash, now.at);
        pane.activity = Some(activity);
        activity.weigh(screen, now.at)
    }

    /// The profiles in force.
    pub(crate) fn profiles(&self) -> Rc<Profiles> {
        Rc::clone(&self.profiles.borrow())
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

/// Rule of a verdict on a pane whose server does not answer.
pub(super) const SERVER_SILENT: &str = "server-not-answering";

/// What one pass saw of a pane: who runs in it, and the verdict on its screen if that was read. Else why nothing was.
type Look = Result<(ProcessFacts, Option<PaneVerdict>), String>;

/// Verdicts on every pane of a view. Panes of a server that does not answer are unknown.
///
/// Errors: nothing could be read of any server.
pub async fn panes<T: Tmux>(out: &Outside<T>, view: &TmuxView, now: &Now) -> Result<Vec<ObservedPane>, TmuxError> {
    let observer = &out.observer;
    observer.recall.borrow_mut().keep(view);
    let looks = sweep(out, view, now).await?;
    let mut list = Vec::with_capacity(view.panes.len());
    for (facts, look) in view.panes.iter().zip(looks) {
        let (process, verdict) = match look {
            Ok(seen) => seen,
            Err(why) => {
                let verdict =
                    PaneVerdict::of(State::Unknown, Evidence::new(Witness::Tmux, SERVER_SILENT).with_line(why));
                list.push(ObservedPane { facts: facts.clone(), verdict });
                continue;
            }
        };
        if let Some(verdict) = verdict {
            let screen = Screen::new(facts.clone(), &process, now.at, verdict);
            observer.recall.borrow_mut().pane(facts.pane).screen = Some(screen);
        }
        let screen = match (&observer.recall.borrow_mut().pane(facts.pane).screen, observer.profile(&process)) {
            (Some(screen), Some(_)) => screen.verdict.clone(),
            _ => pane::nothing_to_judge(),
        };
        let screen = observer.over_time(facts, &process, screen, now);
        let process = &observer.recounted(process, facts, &screen, now);
        let mut recall = observer.recall.borrow_mut();
        let pane = recall.pane(facts.pane);
        let stamp = pane.limit_stamp(&out.state, facts).cloned();
        let hook = session::hook(out, pane, facts, &screen, now);
        let fresh = out.settings.get().hook_fresh;
        let verdict = pane::fuse(facts, process, hook.as_ref(), screen, now.at, fresh);
        let verdict = pane::with_limit_stamp(verdict, stamp.as_ref(), hook.as_ref(), now.at);
        list.push(ObservedPane { facts: facts.clone(), verdict });
    }
    past::weigh(out, view, &mut list, now);
    Ok(list)
}

/// Looks at every pane of a view, at all servers at once.
///
/// Errors: nothing could be read of any server.
async fn sweep<T: Tmux>(out: &Outside<T>, view: &TmuxView, now: &Now) -> Result<Vec<Look>, TmuxError> {
    let sweeps = join::all(of_servers(&view.panes).map(async |(server, panes)| {
        if let Some(why) = view.silence(server) {
            return (panes.len(), Err(Unread::Silent(why.to_owned())));
        }
        let mut sweep = Sweep::over(&out.observer, panes, now);
        match out.tmux.read(&mut sweep).await {
            Ok(()) => (panes.len(), Ok(sweep)),
            Err(error) => (panes.len(), Err(Unread::Failed(error))),
        }
    }))
    .await;
    let is_read = sweeps.iter().any(|(_, sweep)| sweep.is_ok());
    let mut looks = Vec::with_capacity(view.panes.len());
    for (count, sweep) in sweeps {
        match sweep {
            Ok(Sweep { processes, verdicts, .. }) => looks.extend(processes.into_iter().zip(verdicts).map(Ok)),
            Err(Unread::Failed(error)) if !is_read => return Err(error),
            Err(Unread::Failed(error)) => looks.extend(std::iter::repeat_n(Err(error.to_string()), count)),
            Err(Unread::Silent(why)) => looks.extend(std::iter::repeat_n(Err(why), count)),
        }
    }
    Ok(looks)
}

/// Why the panes of a server could not be read.
enum Unread {
    /// It did not list them either.
    Silent(String),
    /// It listed them just now.
    Failed(TmuxError),
}

/// Panes server by server, as they are listed.
pub(super) fn of_servers(panes: &[PaneFacts]) -> impl Iterator<Item = (ServerNumber, &[PaneFacts])> {
    let chunks = panes.chunk_by(|one, next| one.pane.server() == next.pane.server());
    chunks.filter_map(|panes| Some((panes.first()?.pane.server(), panes)))
}

/// One pass over panes: asks for the screens that changed, and judges each while tmux prints the next.
struct Sweep<'a> {
    observer: &'a Observer,
    panes: &'a [PaneFacts],
    now: &'a Now,
    /// What was found of the first panes so far.
    processes: Vec<ProcessFacts>,
    /// The pane that is looked at next.
    at: usize,
    /// Panes that are being read, and what is wanted of each beyond the first question.
    readers: HashMap<usize, (Reader, Wanted)>,
    further: VecDeque<usize>,
    /// Of the panes that were read.
    verdicts: Vec<Option<PaneVerdict>>,
}

impl<'a> Sweep<'a> {
    fn over(observer: &'a Observer, panes: &'a [PaneFacts], now: &'a Now) -> Self {
        Self {
            observer,
            panes,
            now,
            processes: Vec::with_capacity(panes.len()),
            at: 0,
            readers: HashMap::new(),
            further: VecDeque::new(),
            verdicts: Vec::new(),
        }
    }

    /// Whether a pane's screen has to be read.
    fn wants(&mut self, at: usize, facts: &PaneFacts) -> bool {
        if at >= self.processes.len() {
            self.processes.push(self.observer.processes_believed(facts, self.now));
        }
        let Some(process) = self.processes.get(at) else { return false };
        let is_current = |screen: &Screen| screen.is_current(facts, process);
        facts.dead.is_none()
            && self.observer.profile(process).is_some()
            && !self.observer.recall.borrow_mut().pane(facts.pane).screen.as_ref().is_some_and(is_current)
    }

    /// Goes on with a pane: asks for what is wanted of it next, or keeps the verdict.
    fn go_on(&mut self, at: usize, reader: Reader) -> Option<CaptureRequest> {
        let (facts, process) = (self.panes.get(at)?, self.processes.get(at)?);
        let profile = self.observer.profile(process)?;
        let screen = screen_facts(facts, process);
        match step(reader, &profile, &screen, facts.pane) {
            Step::Wants(reader, wanted) => {
                self.readers.insert(at, (reader, wanted));
                Some(request(facts.pane, wanted))
            }
            Step::Done(verdict) => {
                self.keep(at, verdict);
                None
            }
        }
    }

    /// Keeps the verdict on a pane.
    fn keep(&mut self, at: usize, verdict: PaneVerdict) {
        if let Some(place) = self.verdicts.get_mut(at) {
            *place = Some(verdict);
        }
    }
}

impl Reading for Sweep<'_> {
    fn begin(&mut self) {
        self.at = 0;
        self.readers.clear();
        self.further.clear();
        self.verdicts = vec![None; self.panes.len()];
    }

    fn next(&mut self) -> Option<(usize, CaptureRequest)> {
        // What is wanted further soon after what was read, so that both are of one picture.
        while let Some(at) = self.further.pop_front() {
            if let (Some((_, wanted)), Some(facts)) = (self.readers.get(&at), self.panes.get(at)) {
                return Some((at, request(facts.pane, *wanted)));
            }
        }
        while let Some(facts) = self.panes.get(self.at) {
            let at = self.at;
            self.at += 1;
            if self.wants(at, facts)
                && let Some(request) = self.go_on(at, Reader::new(facts.size.1))
            {
                return Some((at, request));
            }
        }
        None
    }

    fn take(&mut self, at: usize, _request: CaptureRequest, capture: Capture) {
        let Some((mut reader, wanted)) = self.readers.remove(&at) else { return };
        match capture {
            Capture::Gone => self.keep(at, gone()),
            Capture::Rows(rows) => {
                reader.take(wanted, rows);
                if self.go_on(at, reader).is_some() {
                    self.further.push_back(at);
                }
            }
        }
    }
}

/// What is to be done about a pane that is being read.
enum Step {
    /// More of it has to be seen.
    Wants(Reader, Wanted),
    /// It is judged.
    Done(PaneVerdict),
}

/// Takes one step in judging a pane. A screen that panics the rules is not understood, and ends neither the sweep nor
/// the watch.
fn step(mut reader: Reader, profile: &Profile, screen: &ScreenFacts, pane: PaneId) -> Step {
    let stepped = contained(move || match reader.wants(profile, screen) {
        Some(wanted) => Some(Step::Wants(reader, wanted)),
        None => reader.into_verdict().map(Step::Done),
    });
    stepped.flatten().unwrap_or_else(|| Step::Done(panicked(pane)))
}

/// The question for rows that are wanted of a pane.
fn request(pane: PaneId, wanted: Wanted) -> CaptureRequest {
    match wanted {
        Wanted::Plain { from: 0 } => CaptureRequest { pane, rows: None, styled: false },
        Wanted::Plain { from } => CaptureRequest { pane, rows: Some((from, LAST_ROW)), styled: false },
        Wanted::Styled { first, last } => CaptureRequest { pane, rows: Some((first, last)), styled: true },
    }
}

/// The question for the rows of which the colour matters.
fn wanted_colours(profile: &Profile, pane: PaneId, plain: &[String]) -> Option<CaptureRequest> {
    let (first, last) = contained(|| pane::wanted_style(profile, plain)).flatten()?;
    Some(request(pane, Wanted::Styled { first, last }))
}

/// The verdict from all witnesses.
pub(super) fn fuse<T>(
    out: &Outside<T>,
    facts: &PaneFacts,
    process: &ProcessFacts,
    screen: PaneVerdict,
    now: &Now,
) -> PaneVerdict {
    let mut recall = out.observer.recall.borrow_mut();
    let pane = recall.pane(facts.pane);
    let stamp = pane.limit_stamp(&out.state, facts).cloned();
    let hook = session::hook(out, pane, facts, &screen, now);
    let verdict = pane::fuse(facts, process, hook.as_ref(), screen, now.at, out.settings.get().hook_fresh);
    pane::with_limit_stamp(verdict, stamp.as_ref(), hook.as_ref(), now.at)
}

/// What the hooks of the pane's window wrote last.
pub(super) fn hook<T>(out: &Outside<T>, facts: &PaneFacts) -> Option<HookFacts> {
    out.observer.recall.borrow_mut().pane(facts.pane).hook(&out.state, facts).cloned()
}

/// The stamp of a usage limit that the hooks of the pane's window left.
pub(super) fn limit_stamp<T>(out: &Outside<T>, facts: &PaneFacts) -> Option<LimitStamp> {
    out.observer.recall.borrow_mut().pane(facts.pane).limit_stamp(&out.state, facts).cloned()
}

/// Judges one screen that was read whole.
pub(super) fn judge(profile: &Profile, facts: &PaneFacts, process: &ProcessFacts, rows: &Rows) -> PaneVerdict {
    let screen = screen_facts(facts, process);
    let styled = rows.styled.as_ref().map(|(first, rows)| (*first, rows.as_slice()));
    contained(|| pane::judge_screen(profile, &screen, &rows.plain, styled)).unwrap_or_else(|| panicked(facts.pane))
}

/// What is known of a pane's screen besides its text.
pub(super) fn screen_facts(facts: &PaneFacts, process: &ProcessFacts) -> ScreenFacts {
    ScreenFacts::from(facts).with_version(process.version.clone())
}

/// The verdict on a screen that no rule was made for.
fn panicked(pane: PaneId) -> PaneVerdict {
    tracing::error!(%pane, "judging this pane's screen panicked");
    PaneVerdict::of(State::Unknown, Evidence::new(Witness::Screen, "judging-panicked"))
}

/// What a decision on outside data comes to; `None` if it panicked.
pub(crate) fn contained<T>(decide: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(decide)).ok()
}

/// Reads one pane's screen: all of it plain, then the rows of which the colour matters. `None` if it has gone.
pub(super) async fn read<T: Tmux>(
    out: &Outside<T>,
    facts: &PaneFacts,
    profile: &Profile,
) -> Result<Option<Rows>, TmuxError> {
    let whole = CaptureRequest { pane: facts.pane, rows: None, styled: false };
    let Some(Capture::Rows(plain)) = out.tmux.capture(&[whole]).await?.pop() else { return Ok(None) };
    let Some(request) = wanted_colours(profile, facts.pane, &plain) else {
        return Ok(Some(Rows { plain, styled: None }));
    };
    let first = request.rows.map_or(0, |(first, _)| first);
    let Some(Capture::Rows(styled)) = out.tmux.capture(&[request]).await?.pop() else { return Ok(None) };
    Ok(Some(Rows { plain, styled: Some((first, styled)) }))
}

/// A pane that went away between the list and the capture.
fn gone() -> PaneVerdict {
    PaneVerdict::of(State::Unknown, Evidence::new(Witness::Tmux, "pane-gone-during-read"))
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
