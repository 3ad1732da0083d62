//! Several tmux servers as one: each id carries the number of its server, and every question and act goes to that one,
//! with the id as that server knows it.
//!
//! All are asked at once. A server that is late or gone does not keep the others waiting (`slot`). With one server
//! everything goes straight to it.

use std::collections::BTreeMap;

use crate::logic::ids::{PaneId, ServerNumber, WindowId, WindowName};
use crate::logic::snapshot::{ServerAnswer, TmuxView};
use crate::sys::join;

use super::slot::Slot;
use super::{
    ActOutcome, ActRefusal, Capture, CaptureRequest, GuardedAct, Reading, Socket, Tmux, TmuxClient, TmuxError,
};

/// What captures are for, for errors.
const READING: &str = "reading screens";

/// The watched tmux servers.
#[derive(Debug)]
pub struct Servers<T> {
    slots: Vec<Slot<T>>,
}

impl Servers<TmuxClient> {
    /// The servers of `monitor.tmux.sockets`, each with a client that `make` builds; none means the user's own server.
    pub fn of_sockets(sockets: &[String], make: impl Fn(Socket) -> TmuxClient) -> Self {
        Self::new(Socket::parse_all(sockets).into_iter().map(|socket| (socket.describe(), make(socket))))
    }

    /// The client of each server.
    pub fn clients(&self) -> impl Iterator<Item = &TmuxClient> {
        self.slots.iter().map(|slot| slot.client.as_ref())
    }
}

impl<T: Tmux + 'static> Servers<T> {
    /// These servers, each with the name of its socket for people, numbered in this order; at most 256.
    pub fn new(clients: impl IntoIterator<Item = (String, T)>) -> Self {
        let numbered = (0..=ServerNumber::MAX).zip(clients);
        Self { slots: numbered.map(|(number, (name, client))| Slot::new(number, name, client)).collect() }
    }

    /// The server that an id belongs to.
    fn slot(&self, number: ServerNumber) -> Option<&Slot<T>> {
        self.slots.get(usize::from(number))
    }

    /// Asks all servers, and merges what they list.
    async fn list(&self, window: Option<&WindowName>) -> Result<TmuxView, TmuxError> {
        let answers = join::all(self.slots.iter().map(|slot| slot.list(window))).await;
        let errors =
            || answers.iter().zip(&self.slots).filter_map(|(answer, slot)| Some((answer.as_ref().err()?, slot)));
        if errors().count() == answers.len() {
            return Err(none_answered(errors().map(|(error, slot)| (slot.name.as_str(), error))));
        }
        let mut view = TmuxView { servers: Vec::with_capacity(answers.len()), panes: Vec::new() };
        for (answer, slot) in answers.into_iter().zip(&self.slots) {
            match answer {
                Ok(listed) => {
                    if let Some(first) = view.number_of(&listed.id) {
                        let first = self.slot(first).map_or("", |slot| &slot.name);
                        let why = format!("{}: it is the same server as {first}; remove one of the two", slot.name);
                        view.servers.push(ServerAnswer::Gone(why));
                        continue;
                    }
                    view.servers
                        .push(ServerAnswer::Answered { id: listed.id.clone(), version: listed.version.clone() });
                    view.panes.extend(listed.panes.iter().cloned());
                }
                Err(error @ TmuxError::NoServer { .. }) => view.servers.push(ServerAnswer::Gone(error.to_string())),
                Err(error) => {
                    let (why, last) = (error.says_of(&slot.name), slot.last());
                    view.servers.push(ServerAnswer::Silent { why, is_listed: last.is_some() });
                    let panes = last.iter().flat_map(|last| &last.panes);
                    view.panes
                        .extend(panes.filter(|pane| window.is_none_or(|name| pane.window_name == *name)).cloned());
                }
            }
        }
        Ok(view)
    }
}

impl<T: Tmux + 'static> Tmux for Servers<T> {
    async fn view(&self) -> Result<TmuxView, TmuxError> {
        match self.slots.as_slice() {
            [only] => only.client.view().await,
            _ => self.list(None).await,
        }
    }

    async fn view_of(&self, window: &WindowName) -> Result<TmuxView, TmuxError> {
        match self.slots.as_slice() {
            [only] => only.client.view_of(window).await,
            _ => self.list(Some(window)).await,
        }
    }

    async fn capture(&self, requests: &[CaptureRequest]) -> Result<Vec<Capture>, TmuxError> {
        if let [only] = self.slots.as_slice()
            && requests.iter().all(|request| request.pane.server() == 0)
        {
            return only.client.capture(requests).await;
        }
        let mut of_server: BTreeMap<ServerNumber, Vec<usize>> = BTreeMap::new();
        for (at, request) in requests.iter().enumerate() {
            of_server.entry(request.pane.server()).or_default().push(at);
        }
        let asked = of_server.into_iter().filter_map(|(number, places)| Some((self.slot(number)?, places)));
        let answers = join::all(asked.map(async |(slot, places)| {
            let raw: Vec<CaptureRequest> =
                places.iter().filter_map(|at| requests.get(*at)).map(CaptureRequest::raw).collect();
            let captures = slot.within(READING, slot.client.capture(&raw)).await?;
            Ok::<_, TmuxError>((places, captures))
        }))
        .await;
        // A pane of a server that is not watched is no pane.
        let mut captures = vec![Capture::Gone; requests.len()];
        for answer in answers {
            let (places, found) = answer?;
            for (at, capture) in places.into_iter().zip(found) {
                if let Some(place) = captures.get_mut(at) {
                    *place = capture;
                }
            }
        }
        Ok(captures)
    }

    async fn read(&self, reading: &mut dyn Reading) -> Result<(), TmuxError> {
        reading.begin();
        // Whose panes these are, the first question tells; it is asked again when the reading begins.
        let Some((_, first)) = reading.next() else { return Ok(()) };
        let number = first.pane.server();
        let Some(slot) = self.slot(number) else { return Err(mixed()) };
        let mut reading = OfServer { reading, number, is_mixed: false };
        if self.slots.len() == 1 {
            slot.client.read(&mut reading).await?;
        } else {
            slot.within(READING, slot.client.read(&mut reading)).await?;
        }
        if reading.is_mixed { Err(mixed()) } else { Ok(()) }
    }

    async fn act(&self, act: &GuardedAct) -> Result<ActOutcome, TmuxError> {
        let Some(slot) = self.slot(act.pane.server()) else { return Ok(ActOutcome::Refused(ActRefusal::Gone)) };
        let raw = GuardedAct { pane: act.pane.raw(), ..act.clone() };
        Tmux::act(slot.client.as_ref(), &raw).await
    }

    async fn clear_bells(&self, windows: &[WindowId]) -> Result<(), TmuxError> {
        let mut of_server: BTreeMap<ServerNumber, Vec<WindowId>> = BTreeMap::new();
        for window in windows {
            of_server.entry(window.server()).or_default().push(window.raw());
        }
        let cleared = of_server.into_iter().filter_map(|(number, windows)| Some((self.slot(number)?, windows)));
        let answers = join::all(cleared.map(async |(slot, windows)| slot.client.clear_bells(&windows).await)).await;
        answers.into_iter().collect()
    }
}

impl CaptureRequest {
    /// The same for the server itself.
    fn raw(&self) -> Self {
        Self { pane: self.pane.raw(), ..*self }
    }
}

/// A reading as its server knows the panes.
struct OfServer<'a> {
    reading: &'a mut dyn Reading,
    number: ServerNumber,
    /// It asked for a pane of another server, which is not asked for anywhere.
    is_mixed: bool,
}

impl Reading for OfServer<'_> {
    fn begin(&mut self) {
        self.reading.begin();
    }

    fn next(&mut self) -> Option<(usize, CaptureRequest)> {
        let (tag, request) = self.reading.next()?;
        self.is_mixed |= request.pane.server() != self.number;
        (!self.is_mixed).then(|| (tag, request.raw()))
    }

    fn take(&mut self, tag: usize, request: CaptureRequest, capture: Capture) {
        let pane: PaneId = request.pane.on(self.number);
        self.reading.take(tag, CaptureRequest { pane, ..request }, capture);
    }
}

/// The error for a reading that is not of one server.
fn mixed() -> TmuxError {
    TmuxError::Malformed { doing: READING, why: "a reading is of the panes of one watched server".to_owned() }
}

/// The error for that no server answered.
fn none_answered<'a>(errors: impl Iterator<Item = (&'a str, &'a TmuxError)>) -> TmuxError {
    let errors: Vec<_> = errors.collect();
    let gone = errors.iter().filter_map(|(_, error)| match error {
        TmuxError::NoServer { socket } => Some(socket.as_str()),
        _ => None,
    });
    let gone: Vec<&str> = gone.collect();
    if gone.len() == errors.len() {
        return TmuxError::NoServer { socket: gone.join(", ") };
    }
    if let Some((_, TmuxError::NotInstalled)) = errors.first() {
        return TmuxError::NotInstalled;
    }
    TmuxError::NoneAnswers {
        why: errors.iter().map(|(name, error)| error.says_of(name)).collect::<Vec<_>>().join("; "),
    }
}

#[cfg(test)]
#[path = "servers_tests.rs"]
mod tests;
