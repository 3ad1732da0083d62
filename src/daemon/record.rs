//! Looks at panes to keep their screens: whole and with colours, only those that changed, over the one control client.
//!
//! It asks the same witnesses as the sweep of [`observe`] and remembers in the same place what need not be
//! read again. It writes nothing; who called it has the frames.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use super::outside::Outside;
use super::recall::Screen;
use super::{observe, session};
use crate::logic::archive::Frame;
use crate::logic::archive::frame::{Versions, panicked};
use crate::logic::ids::{PaneId, ServerId, ServerNumber};
use crate::logic::pane::{self, ProcessFacts};
use crate::logic::screen::Capture as Text;
use crate::logic::snapshot::{PaneFacts, TmuxView};
use crate::logic::time::Now;
use crate::sys::join;
use crate::sys::tmux::{Capture, CaptureRequest, Reading, Tmux, TmuxError};

/// What was kept last of each pane.
#[derive(Debug, Default)]
pub struct Recorder {
    /// Who each server is, as it last answered.
    servers: BTreeMap<ServerNumber, ServerId>,
    /// What a later screen is compared with.
    kept: HashMap<PaneId, Frame>,
    /// The rows as they were last read, of panes that did not change since.
    rows: HashMap<PaneId, Vec<String>>,
}

impl Recorder {
    /// Looks at the panes of a view, and returns those that are worth a record; those of a server that does not answer are
    /// not looked at.
    ///
    /// Errors: nothing could be read of any server; what was kept stands.
    pub async fn look<T: Tmux>(
        &mut self,
        out: &Outside<T>,
        view: &TmuxView,
        now: &Now,
    ) -> Result<Vec<Frame>, TmuxError> {
        self.keep(view);
        out.observer.recall.borrow_mut().keep(view);
        let answering = observe::of_servers(&view.panes).filter(|(server, _)| view.silence(*server).is_none());
        let sweeps = join::all(answering.map(async |(_, panes)| {
            let mut sweep = Sweep { out, panes, now, processes: Vec::new(), at: 0, read: HashMap::new() };
            out.tmux.read(&mut sweep).await.map(|()| sweep)
        }))
        .await;
        let is_read = sweeps.iter().any(Result::is_ok);
        let mut news = Vec::new();
        for sweep in sweeps {
            match sweep {
                Ok(sweep) => self.take(out, view, sweep, now, &mut news),
                Err(error) if !is_read => return Err(error),
                // It is looked at again next time.
                Err(error) => tracing::debug!(%error, "a server's screens can't be read"),
            }
        }
        Ok(news)
    }

    /// Forgets panes that are no longer listed, and those of a server that is another now.
    fn keep(&mut self, view: &TmuxView) {
        for (number, server) in view.answered() {
            if self.servers.get(&number) != Some(server) {
                self.kept.retain(|id, _| id.server() != number);
                self.rows.retain(|id, _| id.server() != number);
                self.servers.insert(number, server.clone());
            }
        }
        let listed: HashSet<PaneId> = view.panes.iter().map(|pane| pane.pane).collect();
        self.kept.retain(|id, _| listed.contains(id));
        self.rows.retain(|id, _| listed.contains(id));
    }

    /// Takes in what was seen of one server's panes, and adds what is worth a record.
    fn take<T>(&mut self, out: &Outside<T>, view: &TmuxView, sweep: Sweep<'_, T>, now: &Now, news: &mut Vec<Frame>) {
        let Sweep { panes, processes, mut read, .. } = sweep;
        for (at, (facts, process)) in panes.iter().zip(processes).enumerate() {
            let is_new = match read.remove(&at) {
                Some(Capture::Rows(rows)) => {
                    self.rows.insert(facts.pane, rows);
                    true
                }
                Some(Capture::Gone) => continue,
                None => false,
            };
            let Some(rows) = self.rows.get(&facts.pane) else { continue };
            let seen = Seen { facts: facts.clone(), process, rows: rows.clone(), is_new };
            let frame = frame(out, view.version(facts.pane), seen, now);
            if self.kept.get(&facts.pane).is_none_or(|before| frame.is_news_after(before)) {
                news.push(frame);
            }
        }
    }

    /// Takes note that a frame was written.
    pub fn kept(&mut self, frame: Frame) {
        self.kept.insert(frame.facts.pane, frame);
    }

    /// How many panes something was kept of.
    pub fn panes(&self) -> usize {
        self.kept.len()
    }
}

/// What a sweep saw of a pane.
struct Seen {
    facts: PaneFacts,
    process: ProcessFacts,
    rows: Vec<String>,
    /// Whether the rows were read just now.
    is_new: bool,
}

/// A pane with everything that is known of it now.
fn frame<T>(out: &Outside<T>, tmux: &str, seen: Seen, now: &Now) -> Frame {
    let Seen { facts, process, rows, is_new } = seen;
    let observer = &out.observer;
    let profile = observer.profile(&process);
    let screen = match profile.as_deref().filter(|_| facts.dead.is_none()) {
        Some(profile) => {
            let known = observe::screen_facts(&facts, &process);
            let text = Text::from_rows(rows.clone());
            observe::contained(|| pane::judge_capture(profile, &known, &text)).unwrap_or_else(panicked)
        }
        None => pane::nothing_to_judge(),
    };
    if is_new {
        let kept = Screen::new(facts.clone(), &process, now.at, screen.clone());
        observer.recall.borrow_mut().pane(facts.pane).screen = Some(kept);
    }
    let screen = observer.over_time(&facts, &process, screen, now);
    let process = observer.recounted(process, &facts, &screen, now);
    let mut recall = observer.recall.borrow_mut();
    let remembered = recall.pane(facts.pane);
    let limit = remembered.limit_stamp(&out.state, &facts).cloned();
    let hook = session::hook(out, remembered, &facts, &screen, now);
    let text_changed = remembered.activity.and_then(pane::activity::Activity::changed_at);
    let fresh: Duration = out.settings.get().hook_fresh;
    let mut frame = Frame {
        at: now.at,
        versions: Versions {
            ng: env!("CARGO_PKG_VERSION").to_owned(),
            tmux: tmux.to_owned(),
            profile: profile.as_ref().map(|profile| (profile.name.clone(), profile.version)),
        },
        facts,
        process,
        hook,
        limit,
        hook_fresh_s: fresh.as_secs(),
        text_changed,
        masked: false,
        rows,
        verdict: screen,
    };
    frame.verdict = observe::contained(|| frame.judge(profile.as_deref())).unwrap_or_else(panicked);
    frame
}

/// One pass over panes: asks for the screens that changed.
struct Sweep<'a, T> {
    out: &'a Outside<T>,
    panes: &'a [PaneFacts],
    now: &'a Now,
    /// What was found of the first panes so far.
    processes: Vec<ProcessFacts>,
    /// The pane that is looked at next.
    at: usize,
    read: HashMap<usize, Capture>,
}

impl<T> Reading for Sweep<'_, T> {
    fn begin(&mut self) {
        self.at = 0;
        self.read.clear();
    }

    fn next(&mut self) -> Option<(usize, CaptureRequest)> {
        while let Some(facts) = self.panes.get(self.at) {
            let (at, observer) = (self.at, &self.out.observer);
            self.at += 1;
            if at >= self.processes.len() {
                self.processes.push(observer.processes_believed(facts, self.now));
            }
            let process = self.processes.get(at)?;
            let mut recall = observer.recall.borrow_mut();
            let is_current = |screen: &Screen| screen.is_current(facts, process);
            if !recall.pane(facts.pane).screen.as_ref().is_some_and(is_current) {
                return Some((at, CaptureRequest { pane: facts.pane, rows: None, styled: true }));
            }
        }
        None
    }

    fn take(&mut self, at: usize, _request: CaptureRequest, capture: Capture) {
        self.read.insert(at, capture);
    }
}
