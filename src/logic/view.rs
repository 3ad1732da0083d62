//! What the watched tmux servers answered: who they are and which panes they list.
//!
//! A pane's server is found by the number in its id, never by anything that a caller brings along, so that nobody can
//! pair a pane with the identity of another server.

use super::ids::{PaneId, PaneKey, ServerId, ServerNumber, WindowName};
use super::snapshot::PaneFacts;

/// What one server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAnswer {
    /// It lists its panes.
    Answered {
        /// Who it is.
        id: ServerId,
        /// Its version, as `#{version}` says: `3.3a`.
        version: String,
    },
    /// It is not there, and nor are its panes; the text says why.
    Gone(String),
    /// It did not answer, so nothing is known of its panes now.
    Silent {
        /// Why, for people; names the socket.
        why: String,
        /// Whether the panes that it listed last are listed. If not, it has never answered, and what is missing from the
        /// list may be there all the same.
        is_listed: bool,
    },
}

/// What the watched tmux servers answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TmuxView {
    /// By number, in the order of `monitor.tmux.sockets`.
    pub servers: Vec<ServerAnswer>,
    /// Every pane of every session, a linked window once, server by server.
    pub panes: Vec<PaneFacts>,
}

impl TmuxView {
    /// The answer of the only server.
    pub fn of_one(id: ServerId, version: impl Into<String>, panes: Vec<PaneFacts>) -> Self {
        Self { servers: vec![ServerAnswer::Answered { id, version: version.into() }], panes }
    }

    /// The same servers, with the panes of the windows of this name.
    #[must_use]
    pub fn of_window(&self, name: &WindowName) -> Self {
        let panes = self.panes.iter().filter(|pane| pane.window_name == *name).cloned().collect();
        Self { servers: self.servers.clone(), panes }
    }

    /// The servers that answered, by number.
    pub fn answered(&self) -> impl Iterator<Item = (ServerNumber, &ServerId)> {
        (0..).zip(&self.servers).filter_map(|(number, answer)| match answer {
            ServerAnswer::Answered { id, .. } => Some((number, id)),
            ServerAnswer::Gone(_) | ServerAnswer::Silent { .. } => None,
        })
    }

    /// The server with this number, if it answered.
    pub fn server(&self, number: ServerNumber) -> Option<&ServerId> {
        match self.servers.get(usize::from(number)) {
            Some(ServerAnswer::Answered { id, .. }) => Some(id),
            _ => None,
        }
    }

    /// The version of the server that a pane is on; empty if it did not answer.
    pub fn version(&self, pane: PaneId) -> &str {
        match self.servers.get(usize::from(pane.server())) {
            Some(ServerAnswer::Answered { version, .. }) => version,
            _ => "",
        }
    }

    /// The number that this very server has now.
    pub fn number_of(&self, server: &ServerId) -> Option<ServerNumber> {
        self.answered().find(|(_, id)| *id == server).map(|(number, _)| number)
    }

    /// The pane with the identity of its own server; `None` if that did not answer.
    pub fn key(&self, pane: PaneId) -> Option<PaneKey> {
        Some(PaneKey { server: self.server(pane.server())?.clone(), pane })
    }

    /// Why nothing is known of the panes of this server now, if it did not answer.
    pub fn silence(&self, number: ServerNumber) -> Option<&str> {
        match self.servers.get(usize::from(number)) {
            Some(ServerAnswer::Silent { why, .. }) => Some(why),
            _ => None,
        }
    }

    /// Servers of which nothing is known, not even what they last listed: what is absent from the list may be theirs.
    pub fn unlisted(&self) -> impl Iterator<Item = ServerNumber> {
        (0..).zip(&self.servers).filter_map(|(number, answer)| {
            matches!(answer, ServerAnswer::Silent { is_listed: false, .. }).then_some(number)
        })
    }

    /// What to tell people of servers that did not answer; `None` if all did.
    pub fn trouble(&self) -> Option<String> {
        let whys = self.servers.iter().filter_map(|answer| match answer {
            ServerAnswer::Answered { .. } => None,
            ServerAnswer::Gone(why) | ServerAnswer::Silent { why, .. } => Some(why.as_str()),
        });
        let whys: Vec<&str> = whys.collect();
        (!whys.is_empty()).then(|| format!("{} of {} servers: {}", whys.len(), self.servers.len(), whys.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::worker::scope::tests::pane;

    fn id(pid: u32) -> ServerId {
        ServerId { socket: "/s".into(), pid, start_s: 1 }
    }

    fn view(servers: Vec<ServerAnswer>) -> TmuxView {
        TmuxView { servers, panes: vec![pane(1, "w")] }
    }

    fn answered(pid: u32) -> ServerAnswer {
        ServerAnswer::Answered { id: id(pid), version: format!("3.{pid}") }
    }

    #[test]
    fn a_pane_has_the_identity_of_its_own_server_only() {
        let silent = ServerAnswer::Silent { why: "x".into(), is_listed: true };
        let view = view(vec![answered(1), silent, answered(3)]);
        let pane = PaneId::new(5);
        let key = |number| view.key(pane.on(number)).map(|key| (key.server.pid, key.pane));
        assert_eq!(key(0), Some((1, pane)));
        assert_eq!(key(1), None, "one that did not answer");
        assert_eq!(key(2), Some((3, pane.on(2))));
        assert_eq!(key(3), None, "one that is not watched");
        assert_eq!((view.version(pane.on(2)), view.version(pane.on(1))), ("3.3", ""));
        assert_eq!((view.number_of(&id(3)), view.number_of(&id(2))), (Some(2), None));
    }

    #[test]
    fn what_is_not_known_is_told_apart_from_what_is_gone() {
        let silent = |is_listed| ServerAnswer::Silent { why: "b: late".into(), is_listed };
        let gone = || ServerAnswer::Gone("c: nobody".into());
        for (servers, unlisted, trouble) in [
            (vec![answered(1)], vec![], None),
            (vec![answered(1), silent(true)], vec![], Some("1 of 2 servers: b: late")),
            (vec![answered(1), silent(false), gone()], vec![1], Some("2 of 3 servers: b: late; c: nobody")),
        ] {
            let view = view(servers);
            assert_eq!((view.unlisted().collect::<Vec<_>>(), view.trouble().as_deref()), (unlisted, trouble));
        }
    }
}
