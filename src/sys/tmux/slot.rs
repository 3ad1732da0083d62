//! One server among several: what it answered last, and how it is asked while it does not answer.
//!
//! A server that is late is waited for a moment only; its answer is then taken up by a later look, and it is asked again
//! after one second, then two, up to a minute. The question goes on where it was: to end a client halfway has taken
//! servers down.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::logic::ids::{ServerId, ServerNumber, WindowName};
use crate::logic::snapshot::{PaneFacts, ServerAnswer, TmuxView};

use super::{Tmux, TmuxError};

/// How long the others wait for a server that answered last time. A sweep of 200 panes takes 30 ms.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long they wait for one that did not.
const DOUBT: Duration = Duration::from_millis(100);
/// How long all screens of a server may take to read.
pub(super) const READING: Duration = Duration::from_secs(2);
/// First pause before a server that did not answer is asked again.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// Longest pause for one that is silent.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Longest pause for one that is not there: to ask is cheap then, and people start it at any time.
const PAUSE_GONE: Duration = Duration::from_secs(8);

/// What a server lists, ids with its number.
#[derive(Clone, Debug)]
pub(super) struct Listed {
    /// Who it is.
    pub(super) id: ServerId,
    /// Its version.
    pub(super) version: String,
    /// Its panes.
    pub(super) panes: Vec<PaneFacts>,
}

/// A question under way.
struct Asking {
    /// Whether it is about all panes.
    is_whole: bool,
    /// The answer to come.
    answer: Pin<Box<dyn Future<Output = Result<TmuxView, TmuxError>>>>,
}

/// Why a server is not waited for.
#[derive(Debug)]
struct Trouble {
    /// What it last came to.
    error: TmuxError,
    /// The pause before it is asked again.
    pause: Duration,
    /// When that is over.
    not_before: Instant,
}

/// What is remembered of a server.
#[derive(Default)]
struct Memory {
    /// What it listed last, all of it.
    last: Option<Rc<Listed>>,
    /// Set while it does not answer.
    trouble: Option<Trouble>,
    /// A question that it has not answered yet.
    asking: Option<Asking>,
}

/// One of several servers.
pub(super) struct Slot<T> {
    /// Its client, which knows raw ids only.
    pub(super) client: Rc<T>,
    /// How people call its socket.
    pub(super) name: String,
    /// Its number.
    pub(super) number: ServerNumber,
    memory: RefCell<Memory>,
}

impl<T> std::fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").field("name", &self.name).field("number", &self.number).finish_non_exhaustive()
    }
}

impl<T: Tmux + 'static> Slot<T> {
    pub(super) fn new(number: ServerNumber, name: String, client: T) -> Self {
        Self { client: Rc::new(client), name, number, memory: RefCell::default() }
    }

    /// Asks for its panes, or for those of the windows of one name, and waits for a moment.
    ///
    /// Errors: it did not answer; what it last came to.
    pub(super) async fn list(&self, window: Option<&WindowName>) -> Result<Rc<Listed>, TmuxError> {
        let (mut asking, patience) = self.question(window)?;
        match timeout(patience, asking.answer.as_mut()).await {
            Ok(Ok(view)) => self.heard(view, asking.is_whole, window),
            Ok(Err(error)) => Err(self.failed(error)),
            Err(_) => Err(self.late(asking, patience)),
        }
    }

    /// The question to wait for, and for how long.
    fn question(&self, window: Option<&WindowName>) -> Result<(Asking, Duration), TmuxError> {
        let mut memory = self.memory.borrow_mut();
        let under_way = memory.asking.take();
        let Some(trouble) = &mut memory.trouble else { return Ok((self.ask(window), PATIENCE)) };
        if let Some(asking) = under_way {
            return Ok((asking, DOUBT));
        }
        let now = Instant::now();
        if now < trouble.not_before {
            return Err(trouble.error.clone());
        }
        // Nobody else asks meanwhile.
        trouble.not_before = now + trouble.pause;
        Ok((self.ask(None), DOUBT))
    }

    fn ask(&self, window: Option<&WindowName>) -> Asking {
        let (client, window) = (Rc::clone(&self.client), window.cloned());
        let is_whole = window.is_none();
        let answer = Box::pin(async move {
            match window {
                Some(window) => client.view_of(&window).await,
                None => client.view().await,
            }
        });
        Asking { is_whole, answer }
    }

    /// Takes in an answer.
    fn heard(&self, view: TmuxView, is_whole: bool, window: Option<&WindowName>) -> Result<Rc<Listed>, TmuxError> {
        let Some(ServerAnswer::Answered { id, version }) = view.servers.into_iter().next() else {
            let why = "it did not say who it is".to_owned();
            return Err(self.failed(TmuxError::Malformed { doing: "listing panes", why }));
        };
        let mut listed = Listed { id, version, panes: view.panes };
        for pane in &mut listed.panes {
            pane.pane = pane.pane.on(self.number);
            pane.window = pane.window.on(self.number);
            pane.session = pane.session.on(self.number);
        }
        let listed = Rc::new(listed);
        let mut memory = self.memory.borrow_mut();
        memory.trouble = None;
        if is_whole {
            memory.last = Some(Rc::clone(&listed));
        }
        Ok(match window {
            Some(window) if is_whole => Rc::new(listed.of_window(window)),
            _ => listed,
        })
    }

    /// Notes that it did not answer, and returns why.
    fn failed(&self, error: TmuxError) -> TmuxError {
        let mut memory = self.memory.borrow_mut();
        let is_gone = matches!(error, TmuxError::NoServer { .. });
        if is_gone {
            memory.last = None;
        }
        let longest = if is_gone { PAUSE_GONE } else { PAUSE_MAX };
        let pause = memory.trouble.as_ref().map_or(PAUSE_FIRST, |trouble| (trouble.pause * 2).min(longest));
        memory.trouble = Some(Trouble { error: error.clone(), pause, not_before: Instant::now() + pause });
        error
    }

    /// Notes that it is not waited for any longer, and returns that as an error.
    fn late(&self, asking: Asking, waited: Duration) -> TmuxError {
        let is_new = self.memory.borrow().trouble.is_none();
        let error = TmuxError::Timeout { doing: "listing panes", after_ms: millis(waited) };
        let error = if is_new { self.failed(error) } else { error };
        let mut memory = self.memory.borrow_mut();
        memory.asking.get_or_insert(asking);
        // What it came to before says more than that it still does not answer.
        memory.trouble.as_ref().map_or(error, |trouble| trouble.error.clone())
    }

    /// Waits for something else that it is asked, as long as screens may take.
    pub(super) async fn within<R>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<R, TmuxError>>,
    ) -> Result<R, TmuxError> {
        match timeout(READING, work).await {
            Ok(done) => done,
            Err(_) => Err(self.failed(TmuxError::Timeout { doing, after_ms: millis(READING) })),
        }
    }

    /// What it listed last, if it did not answer but is not gone.
    pub(super) fn last(&self) -> Option<Rc<Listed>> {
        self.memory.borrow().last.clone()
    }
}

impl Listed {
    /// The same with the panes of the windows of this name.
    fn of_window(&self, name: &WindowName) -> Self {
        let panes = self.panes.iter().filter(|pane| pane.window_name == *name).cloned().collect();
        Self { id: self.id.clone(), version: self.version.clone(), panes }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
