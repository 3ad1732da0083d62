//! Finds the window of a hook whose command line names none, as hooks of a user's own settings are.
//!
//! The answer is kept for each session of an agent (`hook-sessions/<session>.json`) and made anew when a session starts
//! or a prompt is sent: only then are the processes above read and tmux asked, so a tool call costs one small file. A
//! session that is not ours (nested in another agent, outside the watched sessions, outside tmux, told already by hooks
//! of its own) is remembered as such, and nothing is written for it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::agents::Profiles;
use crate::config::load;
use crate::config::resolved::Settings;
use crate::logic::hook::{self, Above, Place, Standing, is_session_id, server_in};
use crate::logic::ids::{PaneId, WindowName};
use crate::logic::time::Now;
use crate::sys::env::{Env as _, ProcessEnv};
use crate::sys::files::{self, Durability, StateDir};
use crate::sys::procfs;
use crate::sys::tmux::{Socket, Tmux as _, TmuxClient};

/// How long tmux may take: the agent waits meanwhile.
const TMUX_PATIENCE: Duration = Duration::from_millis(1500);
/// Largest settings file that is looked into, in bytes.
const MAX_SETTINGS_BYTES: u64 = 4 << 20;

/// A question.
pub(super) struct Asked<'a> {
    /// The state directory.
    pub(super) state: &'a StateDir,
    /// The nexus, if the command line names it.
    pub(super) root: Option<&'a Path>,
    /// The agent's session.
    pub(super) session_id: &'a str,
    /// Whether a session starts or a prompt is sent.
    pub(super) is_turning: bool,
    /// When.
    pub(super) now: &'a Now,
}

/// What is kept of a session.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Known {
    /// Its window; `None` if it is not ours.
    place: Option<Place>,
    /// `TMUX_PANE` when it was found out.
    pane: String,
    /// `TMUX` when it was found out.
    tmux: String,
    /// When that was, in seconds.
    at: i64,
}

/// The window; `None` if the session is not ours.
///
/// Errors: tmux could not be asked; the session counts as not ours for now.
pub(super) fn find(asked: &Asked<'_>) -> Result<Option<Place>, String> {
    let variable = |name: &str| ProcessEnv.get(name).unwrap_or_default();
    let (pane, tmux) = (variable("TMUX_PANE"), variable("TMUX"));
    let kept =
        is_session_id(asked.session_id).then(|| asked.state.at(format!("hook-sessions/{}.json", asked.session_id)));
    if !asked.is_turning
        && let Some(known) = kept.as_deref().and_then(read)
        && (known.pane.as_str(), known.tmux.as_str()) == (pane.as_str(), tmux.as_str())
    {
        return Ok(known.place);
    }
    let place = look(asked, &pane, &tmux)?;
    if let Some(path) = kept {
        let known = Known { place: place.clone(), pane, tmux, at: asked.now.at.secs() };
        let text = serde_json::to_string(&known).map_err(|error| error.to_string())?;
        files::write_atomic(&path, text.as_bytes(), Durability::Hint)
            .map_err(|error| format!("writing {}: {error}", path.display()))?;
    }
    Ok(place)
}

/// What is kept; what can't be read counts as nothing.
fn read(path: &Path) -> Option<Known> {
    serde_json::from_str(&files::read_text(path, 1 << 16).ok()??).ok()
}

/// Finds out.
fn look(asked: &Asked<'_>, pane: &str, tmux: &str) -> Result<Option<Place>, String> {
    match hook::standing(&above()) {
        Standing::Nested => return Ok(None),
        Standing::Own { settings: Some(file) } if names_a_window(&file) => return Ok(None),
        Standing::Own { .. } => {}
    }
    let named = |name: &str| ProcessEnv.non_empty(name).map(WindowName);
    let is_target = ProcessEnv.get("NEXUS_IS_ORCHESTRATOR").as_deref() == Some("1");
    let by_name = named("NEXUS_WINDOW").or_else(|| named("NEXUS_WORKER_WINDOW"));
    let by_name = by_name.or_else(|| named("NEXUS_ORCHESTRATOR_WINDOW").filter(|_| is_target));
    if let Some(window) = by_name {
        return Ok(Some(Place { window, is_target }));
    }
    let socket = server_in(tmux).and_then(|server| server.rsplit_once(',')).map(|(socket, _)| socket);
    let (Some(pane), Some(socket)) = (PaneId::parse(pane), socket) else {
        return Ok(None);
    };
    let settings = settings(asked);
    if !is_watched(&settings, socket) {
        return Ok(None);
    }
    let view = view(socket).map_err(|why| format!("asking tmux for the window of {pane}: {why}"))?;
    let found = view.iter().find(|listed| listed.pane == pane);
    Ok(found.and_then(|found| hook::of_pane(&view, found, &settings.tmux_sessions, &settings.target_window)))
}

/// The processes above this one.
fn above() -> Vec<Above> {
    let profiles = Profiles::builtin().ok();
    let is_agent =
        |exe: &str, argv: &[String]| profiles.as_ref().is_some_and(|profiles| profiles.of_process(exe, argv).is_some());
    let found = procfs::above(std::process::id()).into_iter().map(|process| {
        let argv = process.argv.unwrap_or_default();
        let is_agent = process.exe.is_some_and(|exe| is_agent(&exe, &argv));
        Above { is_agent, args: argv.get(1..).unwrap_or_default().to_vec() }
    });
    found.collect()
}

/// Whether a settings file has hooks of ours that name their window.
fn names_a_window(file: &str) -> bool {
    let text = files::read_text(Path::new(file), MAX_SETTINGS_BYTES).ok().flatten();
    let value = text.and_then(|text| serde_json::from_str(&text).ok());
    value.is_some_and(|value| hook::commands_of(&value).iter().any(|command| command.window.is_some()))
}

/// The settings of the nexus; the defaults where they can't be had, since a hook must do without.
fn settings(asked: &Asked<'_>) -> Settings {
    let root = asked.root.map(Path::to_owned).or_else(|| {
        let state = asked.state.path();
        let monitor = state.parent().filter(|_| state.ends_with("monitor/.state"))?;
        monitor.parent().map(Path::to_owned)
    });
    let root = root.or_else(|| ProcessEnv.non_empty("NEXUS_ROOT").map(PathBuf::from)).unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    match load::load(&ProcessEnv, Some(&root), &here) {
        Ok(loaded) => loaded.settings,
        Err(_) => Settings::defaults(&root),
    }
}

/// Whether the server with this socket is one that is watched.
fn is_watched(settings: &Settings, socket: &str) -> bool {
    let name = socket.rsplit('/').next().unwrap_or(socket);
    Socket::parse_all(&settings.tmux_sockets).into_iter().any(|watched| match watched {
        Socket::Default => name == "default",
        Socket::Name(given) => name == given,
        Socket::Path(path) => {
            let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            real(&path) == real(Path::new(socket))
        }
    })
}

/// Every pane of the server.
fn view(socket: &str) -> Result<Vec<crate::logic::snapshot::PaneFacts>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let client = TmuxClient::new(Socket::Path(PathBuf::from(socket)), None).with_deadline(TMUX_PATIENCE);
    let client = client.without_control();
    runtime.block_on(client.view()).map(|view| view.panes).map_err(|error| error.to_string())
}
