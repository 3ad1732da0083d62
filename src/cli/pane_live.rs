//! Finds the panes that a person means, for every verb that takes a window; and the live half of `ng pane-state`, which
//! judges them as the watcher does.

use std::collections::BTreeSet;

use anyhow::Context as _;

use super::pane_explain::Explain;
use super::{Invocation, render};
use crate::agents::Profiles;
use crate::config::resolved::Settings;
use crate::daemon::Outside;
use crate::daemon::audit::Audit;
use crate::daemon::board::Board;
use crate::daemon::edges::Edges;
use crate::daemon::explain::{self, Explained};
use crate::daemon::observe::{self, Observer};
use crate::logic::emit::clean;
use crate::logic::ids::{PaneId, SessionId, WindowId};
use crate::logic::snapshot::{ObservedPane, PaneFacts, TmuxView};
use crate::logic::worker::scope;
use crate::sys::clock::Clock;
use crate::sys::env::ProcessEnv;
use crate::sys::files::StateDir;
use crate::sys::tmux::{self, Servers, Socket, Tmux as _, TmuxClient};

/// Which panes are meant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which<'a> {
    /// Every window in scope, or every one of this session.
    All(Option<&'a str>),
    /// One window or pane as people spell it.
    One(&'a str),
}

/// What the look gave.
#[derive(Debug)]
pub(super) enum Answer {
    /// The panes that were asked for, one a window.
    Judged(Vec<(ObservedPane, Option<Explain>)>),
    /// tmux could not be asked; why.
    CannotLook(String),
    /// No such window; what there is.
    NoSuchWindow(String),
    /// More than one window is meant; which.
    Ambiguous(String),
}

/// Looks.
pub(super) fn look(
    invocation: &Invocation,
    which: Which<'_>,
    profiles: Profiles,
    explains: bool,
) -> anyhow::Result<Answer> {
    let settings = invocation.settings()?.settings;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")?;
    runtime.block_on(async {
        let out = outside(settings, profiles)?;
        let mut view = match out.tmux.view().await {
            Ok(view) => view,
            // An old tmux answers in ways that say nothing of its age.
            Err(error) => {
                let error = tmux::check_installed().await.err().unwrap_or(error);
                return Ok(Answer::CannotLook(error.to_string()));
            }
        };
        out.observer.meet(&view);
        say_what_is_missing(&view);
        let wanted = match meant(which, &out.settings.get(), &view) {
            Meant::Windows(windows) => windows,
            Meant::Pane(pane) => {
                let window = pane.window;
                view.panes = vec![*pane];
                vec![window]
            }
            Meant::None(why) => return Ok(Answer::NoSuchWindow(why)),
            Meant::Unknown(why) => return Ok(Answer::CannotLook(why)),
            Meant::Several(why) => return Ok(Answer::Ambiguous(why)),
        };
        view.panes.retain(|pane| wanted.contains(&pane.window));
        let now = out.clock.now();
        let observed = match observe::panes(&out, &view, &now).await {
            Ok(observed) => observed,
            Err(error) => return Ok(Answer::CannotLook(error.to_string())),
        };
        let mut judged = Vec::with_capacity(wanted.len());
        for mut pane in wanted.iter().filter_map(|id| representative(*id, &observed)) {
            let mut explained = None;
            if explains && view.key(pane.facts.pane).is_some() {
                // Looked at once more, whole: what is explained is what was seen now.
                match explain::pane(&out, &view, &pane.facts, &out.clock.now()).await {
                    Ok(Some(seen)) => {
                        pane.verdict = seen.verdict;
                        let Explained { witnesses, screen, history, .. } = seen;
                        explained = Some(Explain { witnesses, screen, history: Some(history), at: now.at });
                    }
                    Ok(None) => {}
                    Err(error) => return Ok(Answer::CannotLook(error.to_string())),
                }
            }
            judged.push((pane, explained));
        }
        Ok(Answer::Judged(judged))
    })
}

/// What somebody means who names panes.
pub(super) enum Meant {
    /// Every pane of these windows.
    Windows(Vec<WindowId>),
    /// This pane.
    Pane(Box<PaneFacts>),
    /// Nothing; why.
    None(String),
    /// What is meant may be on a server that does not answer; why.
    Unknown(String),
    /// More than one window; which.
    Several(String),
}

/// Which of these panes are meant.
pub(super) fn meant(which: Which<'_>, settings: &Settings, view: &TmuxView) -> Meant {
    let panes = &view.panes;
    let in_scope = scope::sessions(panes, &settings.tmux_sessions, &settings.target_window);
    match which {
        Which::All(session) => {
            let meant = |pane: &&PaneFacts| match (session, &in_scope) {
                (Some(session), _) => pane.session_name == session,
                (None, Some(scope)) => scope.contains(&pane.session),
                (None, None) => true,
            };
            let mut windows: Vec<WindowId> = panes.iter().filter(meant).map(|pane| pane.window).collect();
            windows.dedup();
            if windows.is_empty() {
                return Meant::None(format!("no session {}", session.unwrap_or("is there")));
            }
            Meant::Windows(windows)
        }
        Which::One(spec) => match find(spec, view, in_scope.as_ref()) {
            Found::Pane(found) => Meant::Pane(Box::new(found)),
            Found::Window(only) => Meant::Windows(vec![only]),
            Found::None(why) => Meant::None(why),
            Found::Unknown(why) => Meant::Unknown(why),
            Found::Several(why) => Meant::Several(why),
        },
    }
}

/// The outside as a verb sees it that looks once.
pub(super) fn outside(settings: Settings, profiles: Profiles) -> anyhow::Result<Outside<Servers<TmuxClient>>> {
    outside_with(settings, profiles, |socket| TmuxClient::new(socket, None).without_control())
}

/// The outside as a verb sees it that goes on looking, over one control client a server.
pub(super) fn lasting_outside(settings: Settings, profiles: Profiles) -> anyhow::Result<Outside<Servers<TmuxClient>>> {
    outside_with(settings, profiles, |socket| TmuxClient::new(socket, None))
}

fn outside_with(
    settings: Settings,
    profiles: Profiles,
    client: impl Fn(Socket) -> TmuxClient,
) -> anyhow::Result<Outside<Servers<TmuxClient>>> {
    let observer = Observer::new()?;
    observer.replace(profiles);
    Ok(Outside {
        audit: Audit::default(),
        edges: Edges::default(),
        tmux: Servers::of_sockets(&settings.tmux_sockets, client),
        clock: Clock::System,
        state: StateDir::new(&settings.state_dir),
        settings: settings.into(),
        env: Box::new(ProcessEnv),
        observer,
        board: Board::default(),
    })
}

/// The one pane that is meant to be typed into.
#[derive(Debug)]
pub(super) enum Chosen {
    /// This one.
    Pane(Box<PaneFacts>),
    /// tmux could not be asked; why.
    CannotLook(String),
    /// No such window.
    NoSuchWindow(String),
    /// More than one window or pane is meant; which.
    Ambiguous(String),
}

/// Chooses the pane that a spelling means: a pane by its id; else the only live pane of the one window, or the only one
/// that runs an agent. A dead one is chosen where there is no other, so that the caller can say so.
pub(super) async fn choose(out: &Outside<Servers<TmuxClient>>, spec: &str) -> Chosen {
    let view = match out.tmux.view().await {
        Ok(view) => view,
        Err(error) => return Chosen::CannotLook(tmux::check_installed().await.err().unwrap_or(error).to_string()),
    };
    out.observer.meet(&view);
    let settings = out.settings.get();
    let in_scope = scope::sessions(&view.panes, &settings.tmux_sessions, &settings.target_window);
    let window = match find(spec, &view, in_scope.as_ref()) {
        Found::Pane(pane) => return Chosen::Pane(Box::new(pane)),
        Found::Window(window) => window,
        Found::None(why) => return Chosen::NoSuchWindow(why),
        Found::Unknown(why) => return Chosen::CannotLook(why),
        Found::Several(why) => return Chosen::Ambiguous(why),
    };
    let mut panes: Vec<&PaneFacts> = Vec::new();
    // A window that is linked into several sessions is listed in each.
    for pane in view.panes.iter().filter(|pane| pane.window == window) {
        if !panes.iter().any(|known| known.pane == pane.pane) {
            panes.push(pane);
        }
    }
    let live: Vec<&PaneFacts> = panes.iter().copied().filter(|pane| pane.dead.is_none()).collect();
    match (live.as_slice(), panes.as_slice()) {
        ([only], _) | ([], [only, ..]) => Chosen::Pane(Box::new((*only).clone())),
        ([], []) => Chosen::NoSuchWindow(format!("no window {spec:?}")),
        (several, _) => {
            let now = out.clock.now();
            let agents: Vec<&&PaneFacts> =
                several.iter().filter(|pane| out.observer.processes(pane, &now).agent.is_some()).collect();
            if let [only] = agents.as_slice() {
                return Chosen::Pane(Box::new((**only).clone()));
            }
            let ids: Vec<String> = several.iter().map(|pane| pane.pane.to_string()).collect();
            Chosen::Ambiguous(format!(
                "{spec:?} has several panes, and not exactly one of them runs an agent; name one of {}",
                ids.join(", ")
            ))
        }
    }
}

/// What a spelling means.
enum Found {
    /// This pane.
    Pane(PaneFacts),
    /// This window.
    Window(WindowId),
    /// Nothing; why.
    None(String),
    /// It may be on a server that does not answer; why.
    Unknown(String),
    /// More than one window; which.
    Several(String),
}

/// Finds what a spelling means. Windows in scope come first; only if none is meant there, all sessions are searched.
fn find(spec: &str, view: &TmuxView, in_scope: Option<&BTreeSet<SessionId>>) -> Found {
    let panes = &view.panes;
    let named = PaneId::parse(spec).map(PaneId::server).or_else(|| WindowId::parse(spec).map(WindowId::server));
    let none = |what: &str| {
        let silent = view.unlisted().find(|server| named.is_none_or(|named| named == *server));
        match (silent.and_then(|server| view.silence(server)), named) {
            (Some(why), _) => Found::Unknown(format!("whether there is a {what} can't be told: {why}")),
            (None, Some(server)) if usize::from(server) >= view.servers.len() => {
                Found::None(format!("no {what}: there is no server {server} in monitor.tmux.sockets"))
            }
            (None, _) => Found::None(format!("no {what}")),
        }
    };
    if let Some(id) = PaneId::parse(spec) {
        return match panes.iter().find(|pane| pane.pane == id) {
            Some(pane) => Found::Pane(pane.clone()),
            None => none(&format!("pane {spec}")),
        };
    }
    let local: Vec<&PaneFacts> =
        panes.iter().filter(|pane| in_scope.is_none_or(|scope| scope.contains(&pane.session))).collect();
    let all: Vec<&PaneFacts> = panes.iter().collect();
    let found = [local, all].iter().map(|panes| meant_by(spec, panes)).find(|found| !found.is_empty());
    match found.as_deref() {
        None | Some([]) => none(&format!("window {spec:?}")),
        Some([only]) => Found::Window(*only),
        Some(several) => {
            let named: Vec<String> = several
                .iter()
                .filter_map(|id| panes.iter().find(|pane| pane.window == *id))
                .map(|pane| format!("{} ({}:{})", pane.window, clean::label(&pane.session_name), pane.window_index))
                .collect();
            Found::Several(format!("{spec:?} means several windows; ask for one of {}", named.join(", ")))
        }
    }
}

/// Says on standard error which servers are missing from an answer.
fn say_what_is_missing(view: &TmuxView) {
    if let Some(why) = view.trouble() {
        render::note(&format!("ng: not answering, {why}"));
    }
}

/// The windows that a spelling means: `@id`, an index, `session:index`, `session:name`, or the exact name.
///
/// An `@id` means that window only: it is the way out where names are ambiguous, so no name may stand in its place.
fn meant_by(spec: &str, panes: &[&PaneFacts]) -> Vec<WindowId> {
    let id = WindowId::parse(spec);
    let is_meant = |pane: &PaneFacts| {
        if let Some(id) = id {
            return pane.window == id;
        }
        let names = |text: &str| {
            pane.window_name.as_str() == text || text.parse::<u32>().is_ok_and(|index| index == pane.window_index)
        };
        let in_session = spec
            .split_once(':')
            .is_some_and(|(session, rest)| pane.session_name == session.trim_start_matches('=') && names(rest));
        names(spec) || in_session
    };
    let mut found: Vec<WindowId> = Vec::new();
    for pane in panes.iter().filter(|pane| is_meant(pane)) {
        if !found.contains(&pane.window) {
            found.push(pane.window);
        }
    }
    found
}

/// The pane that stands for a window: the one that runs an agent, else the active one.
fn representative(window: WindowId, observed: &[ObservedPane]) -> Option<ObservedPane> {
    let panes = || observed.iter().filter(|pane| pane.facts.window == window);
    let mut agents = panes().filter(|pane| pane.verdict.agent.is_some());
    let only_agent = agents.next().filter(|_| agents.next().is_none());
    only_agent.or_else(|| panes().find(|pane| pane.facts.pane_active)).or_else(|| panes().next()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::worker::scope::tests::pane;

    #[test]
    fn a_window_is_named_by_id_index_session_or_exact_name_and_never_by_a_prefix() {
        let panes: Vec<PaneFacts> = [(1, "w"), (2, "w"), (3, "w-2"), (4, "a.b"), (5, "x:y"), (6, "@3")]
            .iter()
            .map(|(number, name)| PaneFacts { window_index: *number, ..pane(*number, name) })
            .collect();
        let refs: Vec<&PaneFacts> = panes.iter().collect();
        let check = |spec: &str, expected: &[u32]| {
            let expected: Vec<WindowId> = expected.iter().map(|number| WindowId::new(*number)).collect();
            assert_eq!(meant_by(spec, &refs), expected, "{spec}");
        };
        check("w", &[1, 2]);
        check("w-2", &[3]);
        check("w-", &[]);
        check("a.b", &[4]);
        check("a", &[]);
        check("x:y", &[5]);
        check("@3", &[3]);
        check("4", &[4]);
        check("main:a.b", &[4]);
        check("=main:3", &[3]);
        check("other:3", &[]);
        check("", &[]);
    }
}
