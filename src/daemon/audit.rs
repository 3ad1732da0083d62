//! Writes the record of every act on a pane: its intent before it is sent, what tmux said, what was seen afterwards
//! (`logic::audit`). The gate takes no act without a [`Record`], and a record can't be had without a cause and a source.
//!
//! An act whose intent can't be written is not sent. What comes after an act waits in memory until it can be written; if
//! the process ends first, the act is told as unknown.

use std::cell::RefCell;
use std::io;

use super::outside::Outside;
use crate::logic::audit::screen::{Screen, ScreenId};
use crate::logic::audit::{ACTS, Cause, Checked, Ended, Event, Intent, Line, Place, Program, SCREENS, Source, What};
use crate::logic::delivery::machine::Happened;
use crate::logic::delivery::{Outcome, Proof, ProofBy};
use crate::logic::ids::{PaneId, ServerId, WindowName};
use crate::sys::files::{self, Durability};
use crate::sys::seed;
use crate::sys::tmux::{Capture, CaptureRequest, Tmux};

/// Most bytes of lines that wait while they can't be written.
const MAX_WAITING: usize = 64 << 10;

/// What all records of this process share.
#[derive(Debug, Default)]
pub struct Audit {
    /// Lines that could not be written yet.
    waiting: RefCell<String>,
    /// What was last not tried, and why: the same again is no news.
    not_tried: RefCell<Option<(Cause, String)>>,
}

/// Why something is done to a pane, by whom, and whether it may be done again.
#[derive(Clone, Debug)]
pub(super) struct Warrant {
    /// Why.
    pub(super) cause: Cause,
    /// Who.
    pub(super) by: Source,
    /// What keeps it from being done twice.
    pub(super) repeat: Repeat,
}

/// What keeps an act from being done twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Nothing: doing it again changes nothing.
    Harmless,
    /// The caller's own journal, which it reads before it asks again.
    Journalled,
    /// The gate: a paste under this key is refused if there was one, also by another process or before a crash.
    Never(String),
}

impl Warrant {
    /// An act of this process.
    pub(super) fn new(program: Program, src: &str, cause: Cause, repeat: Repeat) -> Self {
        Self { cause, by: Source { program, src: src.to_owned(), pid: std::process::id() }, repeat }
    }
}

/// The record of what is done to one pane for one cause.
#[derive(Debug)]
pub(super) struct Record {
    warrant: Warrant,
    window: WindowName,
    /// The screen of the last look, as long as nothing was done since.
    seen: Option<Vec<String>>,
    /// At the last look a shell waited behind the agent.
    pub(super) shell_behind: bool,
    /// Screens that were written for this record.
    kept: Vec<ScreenId>,
    /// Acts of which nothing was said yet that was seen afterwards.
    open: Vec<String>,
    /// The pane of the last act.
    pane: Option<PaneId>,
}

impl Record {
    pub(super) fn new(warrant: Warrant, window: WindowName) -> Self {
        Self { warrant, window, seen: None, shell_behind: false, kept: Vec::new(), open: Vec::new(), pane: None }
    }

    /// The key under which this is pasted at most once.
    pub(super) fn key(&self) -> Option<&str> {
        match &self.warrant.repeat {
            Repeat::Never(key) => Some(key),
            Repeat::Harmless | Repeat::Journalled => None,
        }
    }

    /// Who acts, and why.
    pub(super) fn says(&self) -> String {
        format!("{} {} {}", self.warrant.by.src, self.warrant.by.pid, self.warrant.cause.says())
    }

    /// Takes in a look at the pane.
    pub(super) fn saw(&mut self, rows: &[String], shell_behind: bool) {
        self.seen = Some(rows.to_vec());
        self.shell_behind = shell_behind;
    }

    /// Whether anything was tried.
    fn has_acted(&self) -> bool {
        self.pane.is_some()
    }

    /// Writes down what is about to be done; the act's id. `None`: it can't be written down and must not be done.
    ///
    /// With `may_wait` it is written when it can be: for an act that only completes what is on record.
    pub(super) fn begin<T>(
        &mut self,
        out: &Outside<T>,
        (server, pane): (&ServerId, Option<PaneId>),
        (checked, what): (Option<Checked>, What),
        may_wait: bool,
    ) -> Option<String> {
        let before = self.keep_screen(out);
        let place = Place { window: self.window.0.clone(), server: Some(server.clone()), pane };
        let intent = Intent { place, checked, before, ..self.intent(what) };
        let id = act_id();
        let line = Line { at_ms: out.clock.now().at, id: id.clone(), event: Event::Intent(Box::new(intent)) };
        match append(out, &line, Durability::Durable) {
            Ok(()) => Some(id),
            Err(error) if may_wait => {
                out.edges.fails("audit", &error, "an act can't be recorded yet");
                wait(out, &line);
                Some(id)
            }
            Err(error) => {
                out.edges.fails("audit", &error, "an act can't be recorded, and is not done");
                None
            }
        }
    }

    /// Writes down what tmux said of an act.
    pub(super) fn end<T>(&mut self, out: &Outside<T>, id: String, pane: Option<PaneId>, happened: &Happened) {
        let (outcome, why) = ended(happened);
        append_or_wait(
            out,
            &Line { at_ms: out.clock.now().at, id: id.clone(), event: Event::Outcome { outcome, why } },
        );
        self.pane = pane;
        if matches!(outcome, Ended::Done | Ended::Unknown) {
            self.seen = None;
            self.open.push(id);
        }
    }

    /// Writes down what was seen of the acts so far.
    pub(super) fn observed<T>(&mut self, out: &Outside<T>, what: &str) {
        let after = if self.open.is_empty() { None } else { self.keep_screen(out) };
        for id in std::mem::take(&mut self.open) {
            let event = Event::Seen { observed: what.to_owned(), after: after.clone() };
            append_or_wait(out, &Line { at_ms: out.clock.now().at, id, event });
        }
    }

    /// Writes down how it ended: what was seen of the acts, or that nothing was tried of `what`, and why.
    pub(super) async fn close<T: Tmux>(&mut self, out: &Outside<T>, what: What, outcome: &Outcome) {
        if !self.has_acted() {
            self.not_tried(out, what, outcome);
            return;
        }
        if let Some(pane) = self.pane.filter(|_| !self.open.is_empty() && self.seen.is_none()) {
            // The proof came before another look; what the pane shows is asked for once.
            let request = CaptureRequest { pane, rows: None, styled: false };
            let answer = out.tmux.capture(&[request]).await.ok().and_then(|mut answers| answers.pop());
            if let Some(Capture::Rows(rows)) = answer {
                self.seen = Some(rows);
            }
        }
        self.observed(out, &says(outcome));
    }

    /// Writes down that something was in the way before anything was tried; the same again is not written.
    fn not_tried<T>(&mut self, out: &Outside<T>, what: What, outcome: &Outcome) {
        let ended = match outcome {
            Outcome::Held(_) | Outcome::Absent(_) => Ended::Refused,
            Outcome::NoTmux(_) | Outcome::Failed(_) => Ended::Failed,
            // Nothing was done, and somebody saw a text of an earlier run.
            Outcome::Received(_) | Outcome::Placed | Outcome::Unknown(_) => return,
        };
        let why = says(outcome);
        let news = Some((self.warrant.cause.clone(), why.clone()));
        if out.audit.not_tried.replace(news.clone()) == news {
            return;
        }
        let intent = Box::new(Intent { before: self.keep_screen(out), ..self.intent(what) });
        let event = Event::NotTried { intent, outcome: ended, why };
        append_or_wait(out, &Line { at_ms: out.clock.now().at, id: act_id(), event });
    }

    /// An act of this cause at no particular pane.
    fn intent(&self, what: What) -> Intent {
        Intent {
            by: self.warrant.by.clone(),
            cause: self.warrant.cause.clone(),
            what,
            place: Place { window: self.window.0.clone(), server: None, pane: None },
            checked: None,
            before: None,
        }
    }

    /// Writes the screen of the last look, unless this record has it; its name. A screen that can't be written is done
    /// without.
    fn keep_screen<T>(&mut self, out: &Outside<T>) -> Option<ScreenId> {
        let screen = Screen::of(self.seen.as_ref()?, out.clock.now().at);
        if !self.kept.contains(&screen.id) {
            if let Err(error) = files::append_log(&out.state.at(SCREENS), &screen.line(), Durability::Hint) {
                out.edges.fails("audit-screens", &error, "a screen before or after an act can't be kept");
                return None;
            }
            out.edges.works("audit-screens");
            self.kept.push(screen.id.clone());
        }
        Some(screen.id)
    }
}

/// The name of a new act: short, since people type it.
fn act_id() -> String {
    let mut id = seed::mark();
    id.truncate(10);
    id
}

/// Appends a line behind those that wait.
fn append<T>(out: &Outside<T>, line: &Line, durability: Durability) -> io::Result<()> {
    let waiting = out.audit.waiting.borrow().clone();
    files::append_log(&out.state.at(ACTS), &(waiting + &line.line()), durability)?;
    out.audit.waiting.borrow_mut().clear();
    out.edges.works("audit");
    Ok(())
}

/// Appends a line, or keeps it until one can be appended.
fn append_or_wait<T>(out: &Outside<T>, line: &Line) {
    if let Err(error) = append(out, line, Durability::Hint) {
        out.edges.fails("audit", &error, "what became of an act can't be recorded yet");
        wait(out, line);
    }
}

/// Keeps a line until one can be appended.
fn wait<T>(out: &Outside<T>, line: &Line) {
    let mut waiting = out.audit.waiting.borrow_mut();
    let text = line.line();
    if waiting.len() + text.len() <= MAX_WAITING {
        waiting.push_str(&text);
    }
}

/// Writes what waits, where it can be written by now.
pub(super) fn write_waiting<T>(out: &Outside<T>) {
    let waiting = out.audit.waiting.borrow().clone();
    if !waiting.is_empty() && files::append_log(&out.state.at(ACTS), &waiting, Durability::Hint).is_ok() {
        out.audit.waiting.borrow_mut().clear();
        out.edges.works("audit");
    }
}

/// What tmux said of an act, in the words of the log.
fn ended(happened: &Happened) -> (Ended, Option<String>) {
    match happened {
        Happened::Refused(hold) => (Ended::Refused, Some(format!("{}: {}", hold.word(), hold.says()))),
        Happened::Vanished(why) => (Ended::Refused, Some(why.clone())),
        Happened::NothingTyped(why) => (Ended::Failed, Some(why.clone())),
        Happened::MayHaveTyped(why) => (Ended::Unknown, Some(why.clone())),
        Happened::Acted | Happened::Seen(_) | Happened::Noted | Happened::Proofs(_) | Happened::Slept => {
            (Ended::Done, None)
        }
    }
}

/// How a delivery ended, for people.
fn says(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Received(Proof { by, queued }) => {
            let seen = match by {
                ProofBy::Hook => "its hook saw it",
                ProofBy::Transcript => "its session file has it",
                ProofBy::Screen => "its screen shows it",
            };
            let how = if *queued { "queued until the turn ends" } else { "arrived" };
            format!("{how}: {seen}")
        }
        Outcome::Placed => "left in the input box, as asked for".to_owned(),
        Outcome::Held(hold) => format!("{}: {}", hold.word(), hold.says()),
        Outcome::Absent(why) | Outcome::NoTmux(why) | Outcome::Failed(why) | Outcome::Unknown(why) => why.clone(),
    }
}
