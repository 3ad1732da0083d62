//! Fetches what the due tasks need, each once, into one `Snapshot`. A part that failed is `Failed(reason)`, never empty.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::SystemTime;

use super::observe;
use super::outside::Outside;
use crate::config::resolved::Settings;
use crate::logic::emit::notices::install_failed_at;
use crate::logic::hook::Notification;
use crate::logic::ids::WindowName;
use crate::logic::schedule::{Nudge, WatchedFile};
use crate::logic::snapshot::{
    FileStamp, Gathered, InstallFailure, LocalState, ReportText, Snapshot, StateText, TmuxView,
};
use crate::logic::time::Now;
use crate::logic::worker::log::drop_unused;
use crate::logic::worker::scope;
use crate::sys::files::{self, MAX_STATE_BYTES, StateDir};
use crate::sys::tmux::{Socket, Tmux, TmuxError};
use crate::sys::{action_log, archived, decisions, git};
use crate::tasks::Need;

/// Largest report that is read for its check, in bytes.
const MAX_REPORT_BYTES: u64 = 1 << 20;

/// Most reports that are read in one tick: the newest wrap-ups.
const MAX_REPORTS: usize = 200;

/// What agents' hooks append to when an agent asks for attention.
const NOTIFICATIONS: &str = "worker-notifications.jsonl";

/// How much of its end is read, in bytes.
const MAX_NOTIFICATION_BYTES: u64 = 64 << 10;

/// Most failed installations that are read; the others are read when these were told.
const MAX_INSTALL_FAILURES: usize = 50;

/// The action log, read on from where it was left. Shared by everything that gathers at the same time.
pub(super) type ActionLog = Rc<RefCell<action_log::Follower>>;

/// An action log of which nothing was read yet.
pub(super) fn action_log() -> ActionLog {
    Rc::new(RefCell::new(action_log::Follower::new(drop_unused)))
}

/// Notices decisions that come and go.
#[derive(Debug)]
pub(super) struct Gatherer {
    decisions_dir: std::path::PathBuf,
    decisions_seen: Option<SystemTime>,
}

impl Gatherer {
    pub(super) fn new(state: &StateDir) -> Self {
        Self { decisions_dir: state.at("decisions"), decisions_seen: None }
    }

    /// Whether a decision came or went since the last call.
    pub(super) fn decisions_changed(&mut self) -> bool {
        let modified = std::fs::metadata(&self.decisions_dir).and_then(|dir| dir.modified()).ok();
        let changed = modified.is_some() && modified != self.decisions_seen && self.decisions_seen.is_some();
        self.decisions_seen = modified.or(Some(SystemTime::UNIX_EPOCH));
        changed
    }
}

/// Fetches everything that `needs` names.
pub(super) async fn gather<T: Tmux>(out: &Outside<T>, log: &ActionLog, now: &Now, needs: &[Need]) -> Snapshot {
    let has = |need: Need| needs.contains(&need);
    let settings = out.settings.get();
    let mut snapshot = Snapshot::default();
    if has(Need::Tmux) || has(Need::Panes) {
        match out.tmux.view().await {
            Ok(view) => {
                if has(Need::Panes) {
                    snapshot.panes = watched_panes(out, &view, now).await;
                }
                snapshot.tmux = Gathered::Got(view);
            }
            Err(error) => {
                let why = unanswered(&settings, &error);
                if has(Need::Panes) {
                    snapshot.panes = Gathered::Failed(why.clone());
                }
                snapshot.tmux = Gathered::Failed(why);
            }
        }
    }
    if has(Need::Target) {
        snapshot.target = target(out, &snapshot.tmux).await;
    }
    if has(Need::Decisions) {
        snapshot.decisions = match decisions::list(&out.state) {
            Ok(files) => Gathered::Got(files),
            Err(error) => Gathered::Failed(error.to_string()),
        };
    }
    if has(Need::ActionLog) {
        let events = log.borrow_mut().read(&out.state);
        match events {
            Ok(events) => {
                read_reports(&settings, &events, &mut snapshot);
                snapshot.action_log = Gathered::Got(events);
            }
            Err(error) => snapshot.action_log = Gathered::Failed(error.to_string()),
        }
    }
    if has(Need::Local) {
        snapshot.local = Gathered::Got(local(&settings).await);
    }
    if has(Need::ArchiveNames) {
        snapshot.archive_names = match files::list_names(&out.state.at("diffs")) {
            Ok(names) => Gathered::Got(names),
            Err(error) => Gathered::Failed(error.to_string()),
        };
    }
    if has(Need::Registry) {
        snapshot.registry = text_of(&settings.root.join("monitor/services.registry"));
    }
    if has(Need::StatusPage)
        && let Some(path) = &settings.status_url_file
    {
        snapshot.status_page = text_of(path);
    }
    if has(Need::InstallFailures) {
        snapshot.install_failures = install_failures(&out.state);
    }
    if has(Need::Notifications) {
        // A count on one line of the emit: without the file, or without its beginning, it is lower and no more.
        let text = archived::read_tail(&out.state, NOTIFICATIONS, MAX_NOTIFICATION_BYTES).ok().flatten();
        snapshot.notifications = text.iter().flat_map(|text| text.lines()).filter_map(Notification::parse).collect();
    }
    for need in needs {
        match need {
            Need::File(path) => {
                snapshot.files.insert(path, text_of(&out.state.at(path)));
            }
            Need::Stamp(path) => {
                snapshot.stamps.insert(path, files::stamp(&out.state.at(path)));
            }
            _ => {}
        }
    }
    snapshot
}

/// The target's panes, out of the list of all of them if that was asked for.
async fn target<T: Tmux>(out: &Outside<T>, all: &Gathered<TmuxView>) -> Gathered<TmuxView> {
    let name = WindowName(out.settings.get().target_window.clone());
    match all {
        Gathered::Got(view) => Gathered::Got(view.of_window(&name)),
        Gathered::Failed(why) => Gathered::Failed(why.clone()),
        Gathered::NotAsked => match out.tmux.view_of(&name).await {
            Ok(view) => Gathered::Got(view),
            Err(error) => Gathered::Failed(unanswered(&out.settings.get(), &error)),
        },
    }
}

/// Why no server answered, with the name of the socket; of several, the error names each.
fn unanswered(settings: &Settings, error: &TmuxError) -> String {
    match Socket::parse_all(&settings.tmux_sockets).as_slice() {
        [only] => error.says_of(&only.describe()),
        _ => error.to_string(),
    }
}

/// Verdicts on the panes of the watched sessions. While no session holds the target window, nobody knows which one is
/// meant, and that is not the same as one without panes.
async fn watched_panes<T: Tmux>(
    out: &Outside<T>,
    view: &TmuxView,
    now: &Now,
) -> Gathered<Vec<crate::logic::snapshot::ObservedPane>> {
    let settings = out.settings.get();
    out.observer.meet(view);
    let Some(sessions) = scope::sessions(&view.panes, &settings.tmux_sessions, &settings.target_window) else {
        return Gathered::Failed(format!("no session holds a window named {}", settings.target_window));
    };
    let mut watched = view.clone();
    watched.panes.retain(|pane| sessions.contains(&pane.session));
    match observe::panes(out, &watched, now).await {
        Ok(panes) => Gathered::Got(panes),
        Err(error) => Gathered::Failed(error.to_string()),
    }
}

/// The files whose writing pulls the emit forward, as far as they are there.
pub(super) fn watched(state: &StateDir) -> Vec<WatchedFile<'static>> {
    let look = |path: &'static str| match files::stamp(&state.at(path)) {
        FileStamp::At { modified, is_empty } => Some(WatchedFile { path, modified, is_empty }),
        FileStamp::Absent | FileStamp::Unreadable(_) => None,
    };
    Nudge::PATHS.into_iter().filter_map(look).collect()
}

/// What failed installations of the agent left.
fn install_failures(state: &StateDir) -> Vec<InstallFailure> {
    let names = files::list_names(state.path()).unwrap_or_else(|error| {
        tracing::debug!(%error, "the state directory can't be listed");
        Vec::new()
    });
    let ours = names.into_iter().rev().filter(|name| install_failed_at(name).is_some());
    let found = ours.map(|name| InstallFailure { text: text_of(&state.at(&name)), name });
    found.take(MAX_INSTALL_FAILURES).collect()
}

/// A small text file as a task wants it.
fn text_of(path: &std::path::Path) -> StateText {
    match files::read_text(path, MAX_STATE_BYTES) {
        Ok(Some(text)) => StateText::Text(text),
        Ok(None) => StateText::Absent,
        Err(error) => StateText::Unreadable(error.to_string()),
    }
}

/// Reads the reports that wrap-ups cite, newest wrap-ups first.
fn read_reports(settings: &Settings, events: &[crate::logic::snapshot::ActionEvent], snapshot: &mut Snapshot) {
    let cited: BTreeSet<&str> = events
        .iter()
        .rev()
        .filter(|event| event.event == "wrap-up")
        .filter_map(|event| event.extra.get("report"))
        .filter_map(|report| report.rsplit('/').next())
        .take(MAX_REPORTS)
        .collect();
    for name in cited {
        let text = match files::read_text(&settings.root.join("reports").join(name), MAX_REPORT_BYTES) {
            Ok(Some(text)) => ReportText::Found(text),
            Ok(None) => ReportText::Missing,
            Err(error) => ReportText::Unreadable(error.to_string()),
        };
        snapshot.report_texts.insert(name.to_owned(), text);
    }
}

/// Reports and repositories of the nexus.
async fn local(settings: &Settings) -> LocalState {
    let reports = match files::list_names(&settings.root.join("reports")) {
        Ok(names) => Gathered::Got(
            names
                .into_iter()
                .filter(|name| std::path::Path::new(name).extension().is_some_and(|end| end == "md"))
                .collect(),
        ),
        Err(error) => Gathered::Failed(error.to_string()),
    };
    let git = if settings.git_enabled {
        match git::describe(&settings.root).await {
            Ok(lines) => Gathered::Got(lines),
            Err(error) => Gathered::Failed(error.to_string()),
        }
    } else {
        Gathered::NotAsked
    };
    LocalState { reports, git }
}
