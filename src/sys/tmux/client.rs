//! The real [`Tmux`]: reads over the control client while it works, over one-shot processes while it does not.
//!
//! After a failure the control client is left alone for one second, then two, up to a minute; meanwhile every question
//! is still answered. Acts never go over the control client.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast;
use tokio::time::{Instant, timeout};

use crate::logic::ids::{WindowId, WindowName};
use crate::logic::snapshot::TmuxView;

use super::batch::{Answer, Ask, Dialogue, ask_capture, ask_identity, ask_panes, ask_panes_named, ask_windows};
use super::control::{Control, choose_session};
use super::oneshot::{Socket, ask_all, timed_out};
use super::parse::{WINDOW_FORMAT, WindowRow, parse_identity, parse_panes, parse_rows, parse_windows};
use super::{ActOutcome, Capture, CaptureRequest, GuardedAct, Reading, Tmux, TmuxError, TmuxEvent, bells, guard};

/// How long one call may take. A sweep of 200 panes takes 30 ms; a server that is this late is stuck.
const DEADLINE: Duration = Duration::from_secs(4);
/// First pause after the control client failed.
const BACK_OFF_FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const BACK_OFF_MAX: Duration = Duration::from_secs(60);
/// Clients that have not ended although their input is closed; with this many, a stuck server gets no more.
const MAX_LIVE: usize = 2;
/// What captures are for, for errors.
const READING: &str = "reading screens";

/// Why reads do not go over the control client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Control,
    Off,
    NotYet,
    NoServer,
    NoSession,
    Failed,
    TimedOut,
}

/// When the control client may be tried.
#[derive(Debug)]
struct Breaker {
    mode: Mode,
    pause: Duration,
    not_before: Option<Instant>,
}

impl Breaker {
    fn allows(&self, now: Instant) -> bool {
        self.mode != Mode::Off && self.not_before.is_none_or(|at| now >= at)
    }

    fn works(&mut self) {
        *self = Self { mode: Mode::Control, pause: BACK_OFF_FIRST, not_before: None };
    }

    /// Waits before the next attempt, and twice as long after the next failure. A server that is not there is no fault
    /// of the client's, so that wait does not grow.
    fn fails(&mut self, mode: Mode, now: Instant) {
        self.mode = mode;
        self.not_before = now.checked_add(self.pause);
        if mode != Mode::NoServer {
            self.pause = (self.pause * 2).min(BACK_OFF_MAX);
        }
    }
}

/// A tmux server as the watcher sees it. Made for one thread; calls may overlap.
#[derive(Debug)]
pub struct TmuxClient {
    socket: Socket,
    prefer_window: Option<String>,
    deadline: Duration,
    control: tokio::sync::Mutex<Option<Control>>,
    breaker: Mutex<Breaker>,
    events: broadcast::Sender<TmuxEvent>,
    live: Arc<AtomicUsize>,
}

impl TmuxClient {
    /// A client for the server on `socket`; nothing is started until something is asked.
    ///
    /// `prefer_window` (a name or `@id`) is the window in whose session the control client rather attaches.
    pub fn new(socket: Socket, prefer_window: Option<String>) -> Self {
        let breaker = Breaker { mode: Mode::NotYet, pause: BACK_OFF_FIRST, not_before: None };
        Self {
            socket,
            prefer_window,
            deadline: DEADLINE,
            control: tokio::sync::Mutex::new(None),
            breaker: Mutex::new(breaker),
            events: broadcast::Sender::new(64),
            live: Arc::default(),
        }
    }

    /// The same with another deadline for each call.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// The same without the control client: every read is a process of its own.
    #[must_use]
    pub fn without_control(self) -> Self {
        lock(&self.breaker).mode = Mode::Off;
        Self { control: tokio::sync::Mutex::new(None), ..self }
    }

    /// How reads are done, for status: `control`, or `one-shot:` and why.
    pub fn mode(&self) -> &'static str {
        match lock(&self.breaker).mode {
            Mode::Control => "control",
            Mode::Off => "one-shot: control mode is switched off",
            Mode::NotYet => "one-shot: nothing asked yet",
            Mode::NoServer => "one-shot: no tmux server",
            Mode::NoSession => "one-shot: attaching to any session would do harm",
            Mode::Failed => "one-shot: the control client failed",
            Mode::TimedOut => "one-shot: the control client did not answer",
        }
    }

    /// What happens on the server while the control client lives. A hint to look, never a fact; a slow listener misses
    /// some.
    pub fn events(&self) -> broadcast::Receiver<TmuxEvent> {
        self.events.subscribe()
    }

    /// Asks over the control client, else by process; the deadline covers both.
    async fn ask(&self, asks: &[Ask], doing: &'static str) -> Result<Vec<Answer>, TmuxError> {
        let both = async {
            if let Some(answers) = self.ask_control(asks, doing).await {
                return Ok(answers);
            }
            ask_all(&self.socket, asks, self.deadline, doing).await
        };
        timeout(self.deadline, both).await.unwrap_or_else(|_| Err(timed_out(doing, self.deadline)))
    }

    /// The answers of the control client; `None` if it can't be used.
    async fn ask_control(&self, asks: &[Ask], doing: &'static str) -> Option<Vec<Answer>> {
        self.with_control(async |control| control.exchange(asks, doing).await).await
    }

    /// Uses the control client; `None` if it can't be used, which the breaker remembers.
    async fn with_control<R>(&self, talk: impl AsyncFnOnce(&mut Control) -> Result<R, TmuxError>) -> Option<R> {
        // A second caller does not wait for the first; it uses a process.
        let mut place = self.control.try_lock().ok()?;
        // Taken out while in use: a caller that gives up halfway leaves no half-read answers behind, since the client
        // is dropped with it.
        let kept = place.take();
        if kept.is_none() && !lock(&self.breaker).allows(Instant::now()) {
            return None;
        }
        let attempt = async {
            let mut control = match kept {
                Some(control) => control,
                None => self.connect().await?,
            };
            let said = talk(&mut control).await.map_err(|_| Mode::Failed)?;
            Ok((control, said))
        };
        match timeout(self.deadline / 2, attempt).await.unwrap_or(Err(Mode::TimedOut)) {
            Ok((control, said)) => {
                *place = Some(control);
                lock(&self.breaker).works();
                Some(said)
            }
            Err(mode) => {
                lock(&self.breaker).fails(mode, Instant::now());
                None
            }
        }
    }

    /// The panes that a question lists, with the server's identity.
    async fn list(&self, panes: Ask) -> Result<TmuxView, TmuxError> {
        const DOING: &str = "listing panes";
        let answers = self.ask(&[ask_identity(), panes], DOING).await?;
        let mut texts = answers.into_iter().map(|answer| text(answer, DOING));
        let mut next = || texts.next().unwrap_or_else(|| Err(missing(DOING)));
        let (server, version) = parse_identity(&next()?, DOING)?;
        let panes = parse_panes(&next()?, DOING)?;
        Ok(TmuxView::of_one(server, version, panes))
    }

    async fn connect(&self) -> Result<Control, Mode> {
        if self.live.load(Ordering::Relaxed) >= MAX_LIVE {
            return Err(Mode::TimedOut);
        }
        let mode = |error: TmuxError| match error {
            TmuxError::NoServer { .. } => Mode::NoServer,
            TmuxError::Timeout { .. } => Mode::TimedOut,
            _ => Mode::Failed,
        };
        let asks = [ask_windows(WINDOW_FORMAT)];
        let answers = ask_all(&self.socket, &asks, self.deadline, "choosing a session").await.map_err(mode)?;
        let rows = windows(answers, "choosing a session").map_err(mode)?;
        let session = choose_session(&rows, self.prefer_window.as_deref()).ok_or(Mode::NoSession)?;
        Control::open(&self.socket, session, &self.events, &self.live).await.map_err(mode)
    }
}

impl Tmux for TmuxClient {
    async fn view(&self) -> Result<TmuxView, TmuxError> {
        self.list(ask_panes()).await
    }

    async fn view_of(&self, window: &WindowName) -> Result<TmuxView, TmuxError> {
        if let Some(ask) = ask_panes_named(window) {
            let view = self.list(ask).await?.of_window(window);
            // Nothing found is no proof that nothing is there: then the whole list decides.
            if !view.panes.is_empty() {
                return Ok(view);
            }
        }
        Ok(self.view().await?.of_window(window))
    }

    async fn capture(&self, requests: &[CaptureRequest]) -> Result<Vec<Capture>, TmuxError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let asks: Vec<Ask> = requests.iter().map(ask_capture).collect();
        let answers = self.ask(&asks, READING).await?;
        if answers.len() != requests.len() {
            return Err(missing(READING));
        }
        answers.into_iter().map(captured).collect()
    }

    async fn read(&self, reading: &mut dyn Reading) -> Result<(), TmuxError> {
        let both = async {
            let mut asked = Asked::begin(reading);
            if self.with_control(async |control| control.converse(&mut asked, READING).await).await.is_some() {
                return asked.end();
            }
            let mut asked = Asked::begin(reading);
            loop {
                let asks: Vec<Ask> = std::iter::from_fn(|| asked.next()).collect();
                if asks.is_empty() {
                    return asked.end();
                }
                for answer in ask_all(&self.socket, &asks, self.deadline, READING).await? {
                    asked.take(answer);
                }
            }
        };
        timeout(self.deadline, both).await.unwrap_or_else(|_| Err(timed_out(READING, self.deadline)))
    }

    async fn act(&self, act: &GuardedAct) -> Result<ActOutcome, TmuxError> {
        guard::carry_out(&self.socket, act, self.deadline).await
    }

    async fn clear_bells(&self, wanted: &[WindowId]) -> Result<(), TmuxError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let answers = self.ask(&[ask_windows(WINDOW_FORMAT)], bells::DOING).await?;
        bells::clear(&self.socket, &windows(answers, bells::DOING)?, wanted, self.deadline).await
    }
}

/// A reading, and which of its questions are under way.
struct Asked<'a> {
    reading: &'a mut dyn Reading,
    unanswered: VecDeque<(usize, CaptureRequest)>,
    /// What tmux refused, if it did; the exchange goes on, since the client is none the worse for it.
    refused: Result<(), TmuxError>,
}

impl<'a> Asked<'a> {
    fn begin(reading: &'a mut dyn Reading) -> Self {
        reading.begin();
        Self { reading, unanswered: VecDeque::new(), refused: Ok(()) }
    }

    fn end(self) -> Result<(), TmuxError> {
        if self.unanswered.is_empty() { self.refused } else { Err(missing(READING)) }
    }
}

impl Dialogue for Asked<'_> {
    fn next(&mut self) -> Option<Ask> {
        let (tag, request) = self.reading.next()?;
        self.unanswered.push_back((tag, request));
        Some(ask_capture(&request))
    }

    fn take(&mut self, answer: Answer) {
        let asked = self.unanswered.pop_front().ok_or_else(|| missing(READING));
        match asked.and_then(|asked| Ok((asked, captured(answer)?))) {
            Ok(((tag, request), capture)) => self.reading.take(tag, request, capture),
            Err(error) => self.refused = Err(error),
        }
    }
}

/// What a capture gave.
fn captured(answer: Answer) -> Result<Capture, TmuxError> {
    if answer.is_no_pane() { Ok(Capture::Gone) } else { Ok(Capture::Rows(parse_rows(&text(answer, READING)?))) }
}

/// The rows of the one answer about windows.
fn windows(answers: Vec<Answer>, doing: &'static str) -> Result<Vec<WindowRow>, TmuxError> {
    let answer = answers.into_iter().next().ok_or_else(|| missing(doing))?;
    parse_windows(&text(answer, doing)?, doing)
}

fn text(answer: Answer, doing: &'static str) -> Result<Vec<u8>, TmuxError> {
    match answer {
        Answer::Text(text) => Ok(text),
        Answer::Failed(stderr) => Err(TmuxError::Refused { doing, stderr }),
    }
}

fn missing(doing: &'static str) -> TmuxError {
    TmuxError::Malformed { doing, why: "an answer is missing".to_owned() }
}

/// Locks; a panic elsewhere leaves nothing half-done here, so poison is no reason to stop.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_breaker_waits_twice_as_long_each_time_up_to_a_minute() {
        let mut breaker = Breaker { mode: Mode::NotYet, pause: BACK_OFF_FIRST, not_before: None };
        assert!(breaker.allows(Instant::now()));
        for pause_s in [1, 2, 4, 8, 16, 32, 60, 60] {
            let now = Instant::now();
            breaker.fails(Mode::Failed, now);
            assert!(!breaker.allows(now + Duration::from_millis(pause_s * 1000 - 1)), "{pause_s}");
            assert!(breaker.allows(now + Duration::from_secs(pause_s)), "{pause_s}");
        }
        breaker.works();
        for _ in 0..3 {
            let now = Instant::now();
            breaker.fails(Mode::NoServer, now);
            assert!(breaker.allows(now + Duration::from_secs(1)), "an absent server does not lengthen the wait");
        }
    }
}
