//! The session's own file as a witness of a pane: found by the session id that the hooks told, never by its age, and read
//! at its end only, when it changed and could change the verdict.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::outside::Outside;
use super::recall::Remembered;
use crate::logic::pane::turn::Turn;
use crate::logic::pane::{self, HookFacts, PaneVerdict};
use crate::logic::snapshot::PaneFacts;
use crate::logic::time::Now;
use crate::sys::stamp::Stamps;
use crate::sys::transcript;

/// How much of the end of a session is read, in bytes: a turn's last records, also after a long answer.
const TAIL_BYTES: u64 = 64 << 10;

/// How often a session that has no file yet is searched for.
const SEARCH_EVERY: Duration = Duration::from_secs(60);

/// The file of the session that runs in a pane.
#[derive(Debug)]
pub(super) struct Session {
    id: String,
    searched: Duration,
    path: Option<PathBuf>,
    /// What was read last, and what the file was then.
    read: Option<(Stamps, Option<Turn>)>,
}

/// What the hooks of a pane's window wrote last, with what the session's own file says of the turn where that counts.
pub(super) fn hook<T>(
    out: &Outside<T>,
    pane: &mut Remembered,
    facts: &PaneFacts,
    screen: &PaneVerdict,
    now: &Now,
) -> Option<HookFacts> {
    let mut hook = pane.hook(&out.state, facts)?.clone();
    if pane::weighs_session(&hook, screen)
        && let Some(id) = hook.session_id.clone()
    {
        let known = pane.session.take().filter(|known| known.id == id);
        let session = known.unwrap_or(Session { id, searched: now.uptime, path: None, read: None });
        hook.turn = pane.session.insert(session).turn(out, hook.session_file.as_deref(), now);
    }
    Some(hook)
}

impl Session {
    /// What its end says, read again only if it changed.
    fn turn<T>(&mut self, out: &Outside<T>, told: Option<&str>, now: &Now) -> Option<Turn> {
        let is_due = self.searched == now.uptime || now.uptime.saturating_sub(self.searched) >= SEARCH_EVERY;
        if self.path.is_none() && is_due {
            self.searched = now.uptime;
            let root = &out.settings.get().root;
            self.path = transcript::locate(out.env.as_ref(), &self.id, told.map(Path::new), Some(root));
        }
        let path = self.path.as_ref()?;
        if let Some((stamps, turn)) = &self.read
            && stamps.are_current()
        {
            return turn.clone();
        }
        let stamps = Stamps::of([path.clone()]);
        // A file that can't be read tells nothing; the other witnesses decide.
        let lines = transcript::tail(path, TAIL_BYTES).ok();
        let source = path.to_string_lossy();
        let turn = lines.map(|lines| Turn::of(lines.iter().map(String::as_str), source.into_owned()));
        self.read = Some((stamps, turn.clone()));
        turn
    }
}
