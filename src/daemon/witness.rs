//! The witnesses that are files: the prompt hook's receipt or stamp, and the session transcript.

use std::path::PathBuf;
use std::time::Duration;

use super::outside::Outside;
use crate::logic::delivery::{Mark, Pasted, Proof, ProofBy};
use crate::logic::hook::Whose;
use crate::logic::ids::{PaneId, PaneKey, ServerId, Signature, WindowName};
use crate::logic::inbox::stems;
use crate::logic::snapshot::FileStamp;
use crate::sys::files::{self, MAX_STATE_BYTES};
use crate::sys::hook_files;
use crate::sys::transcript::{self, Found, Wanted};

/// How often a transcript that is not there yet is looked for: a session may be in any of thousands of folders.
const SEARCH_EVERY: Duration = Duration::from_secs(1);

/// Watches the file witnesses for one text.
#[derive(Debug)]
pub(super) struct Watch {
    /// The window that it was pasted into.
    window: WindowName,
    /// Its pane, where only that pane's session counts.
    pane: Option<PaneId>,
    /// Its server, once that is known: a window of the same name on another one counts for nothing.
    server: Option<ServerId>,
    /// What the prompt hook had stamped for the window before the paste.
    stamped: Option<Stamp>,
    /// The transcript and where to read on.
    transcript: Option<(PathBuf, u64)>,
    /// When a transcript was last looked for in vain.
    searched: Option<Duration>,
    /// The reading failed and was logged.
    said: bool,
}

impl Watch {
    /// A watch that goes on from a journalled place in the transcript.
    pub(super) fn new(window: WindowName, pane: Option<PaneId>, from: Option<(String, u64)>) -> Self {
        let transcript = from.map(|(path, offset)| (PathBuf::from(path), offset));
        Self { window, pane, server: None, stamped: None, transcript, searched: None, said: false }
    }

    /// The same for a text that was pasted on this server.
    pub(super) fn on(self, server: ServerId) -> Self {
        Self { server: Some(server), ..self }
    }

    /// Notes the present end of the transcript: only what comes later is about this delivery, to this pane.
    pub(super) fn begin<T>(&mut self, out: &Outside<T>, key: &PaneKey) {
        self.server = Some(key.server.clone());
        self.stamped = self.last_stamp(out);
        self.transcript = session_file(out, &self.window, self.whose(out))
            .map(|path| (path.clone(), transcript::end_offset(&path).unwrap_or_default()));
    }

    /// Whose files of hooks tell of it.
    fn whose<T>(&self, out: &Outside<T>) -> Whose<'_> {
        let twin = self.pane.map(|pane| out.observer.recall.borrow().twin(pane));
        Whose { pane: self.pane, server: self.server.as_ref(), twin: twin.unwrap_or_default() }
    }

    /// The place in the transcript, for the journal.
    pub(super) fn transcript(&self) -> Option<(String, u64)> {
        self.transcript.as_ref().map(|(path, offset)| (path.display().to_string(), *offset))
    }

    /// A proof, if one of the witnesses that count has seen the text. `hook_counts` tells whether the hook's word would be
    /// one; else the others are asked.
    pub(super) fn proof<T>(&mut self, out: &Outside<T>, pasted: &Pasted, hook_counts: bool) -> Option<Proof> {
        let has_hook = || match &pasted.mark {
            Mark::Signed(signature) => has_receipt(out, signature, &self.window),
            Mark::Words(_) => self.has_new_stamp(out),
        };
        if hook_counts && out.settings.get().witnesses.hook && has_hook() {
            return Some(Proof { by: ProofBy::Hook, queued: false });
        }
        if !out.settings.get().witnesses.transcript {
            return None;
        }
        let now = out.clock.now().uptime;
        let is_due = self.searched.is_none_or(|at| now.saturating_sub(at) >= SEARCH_EVERY);
        if self.transcript.is_none() && is_due {
            self.searched = Some(now);
            // A session writes its file at its first prompt; all of a file that was not there before is later.
            self.transcript = session_file(out, &self.window, self.whose(out)).map(|path| (path, 0));
        }
        let (path, offset) = self.transcript.as_mut()?;
        let needle = pasted.needle();
        let wanted = needle.as_deref().map_or(Wanted::Whole(&pasted.body), Wanted::Part);
        match transcript::find(path, *offset, wanted) {
            Ok(search) => {
                *offset = search.next_offset;
                let queued = match search.found {
                    // One call reads a bounded piece; the next one goes on from there.
                    Found::None => return None,
                    Found::Enqueued => true,
                    Found::User => false,
                };
                Some(Proof { by: ProofBy::Transcript, queued })
            }
            Err(error) => {
                if !std::mem::replace(&mut self.said, true) {
                    tracing::warn!(%error, path = %path.display(), "the transcript can't be read");
                }
                None
            }
        }
    }
}

/// The prompt hook's last stamp of a window: `user-prompt/<window>`, `<epoch>\t<session-id>`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    at_s: i64,
    session: String,
    /// When the file was written, which is finer than its whole seconds.
    written: FileStamp,
}

impl Watch {
    /// The last stamp of the session that runs in the window. A stamp is the window's by name only, so the heartbeat says
    /// whether it is this pane's; a session whose first prompt this is has none yet.
    fn last_stamp<T>(&self, out: &Outside<T>) -> Option<Stamp> {
        let session = hook_files::read_heartbeat(&out.state, &self.window, self.whose(out)).ok()??.heartbeat.session_id;
        let stamp = read_stamp(out, &self.window).filter(|stamp| stamp.session == session);
        Some(stamp.unwrap_or(Stamp { at_s: i64::MIN, session, written: FileStamp::Absent }))
    }

    /// Whether the hook stamped a prompt of the same session since the paste.
    fn has_new_stamp<T>(&self, out: &Outside<T>) -> bool {
        let (Some(before), Some(now)) = (&self.stamped, read_stamp(out, &self.window)) else { return false };
        // A stamp counts whole seconds: a second prompt within one is known by the time of the file.
        let is_later = now.at_s > before.at_s || (now.at_s == before.at_s && now.written != before.written);
        now.session == before.session && !now.session.is_empty() && is_later
    }
}

fn read_stamp<T>(out: &Outside<T>, window: &WindowName) -> Option<Stamp> {
    let (written, text) = stems(window).iter().find_map(|stem| {
        let path = out.state.at(format!("user-prompt/{stem}"));
        // The time first: if the file is written between the two, the next look sees another time.
        let written = files::stamp(&path);
        Some((written, files::read_text(&path, MAX_STATE_BYTES).ok().flatten()?))
    })?;
    let (at_s, session) = text.trim().split_once('\t')?;
    Some(Stamp { at_s: at_s.parse().ok()?, session: session.to_owned(), written })
}

/// Whether the prompt hook wrote a receipt for exactly this signature.
fn has_receipt<T>(out: &Outside<T>, signature: &Signature, window: &WindowName) -> bool {
    // A text of ours that somebody handed on to another agent has left a receipt of that agent's.
    hook_files::read_receipt(&out.state, &signature.nonce).is_ok_and(|receipt| {
        receipt.is_some_and(|receipt| {
            receipt.iso == signature.iso && (receipt.window.is_empty() || receipt.window == window.as_str())
        })
    })
}

/// The transcript of the window's session: by its hooks, else, for the orchestrator, by the session id pinned when it was
/// started.
fn session_file<T>(out: &Outside<T>, window: &WindowName, whose: Whose<'_>) -> Option<PathBuf> {
    if let Ok(Some(found)) = hook_files::read_heartbeat(&out.state, window, whose) {
        let heartbeat = found.heartbeat;
        let told = Some(PathBuf::from(&heartbeat.transcript_path)).filter(|path| path.is_absolute());
        // A session that has not written yet has no file; the path that its hook told is where it will be.
        return transcript::locate(
            out.env.as_ref(),
            &heartbeat.session_id,
            told.as_deref(),
            Some(&out.settings.get().root),
        )
        .or(told);
    }
    if window.as_str() != out.settings.get().target_window {
        return None;
    }
    let pinned = files::read_text(&out.state.at("orchestrator-session-id"), MAX_STATE_BYTES).ok()??;
    transcript::locate(out.env.as_ref(), pinned.trim(), None, Some(&out.settings.get().root))
}
