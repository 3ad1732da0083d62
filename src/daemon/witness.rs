//! The witnesses that are files: the prompt hook's receipt, and the session transcript.

use std::path::PathBuf;
use std::time::Duration;

use super::outside::Outside;
use crate::logic::delivery::{Proof, ProofBy};
use crate::logic::ids::{Signature, WindowName};
use crate::sys::files::{self, MAX_STATE_BYTES};
use crate::sys::hook_files;
use crate::sys::transcript::{self, Found};

/// How often a transcript that is not there yet is looked for: a session may be in any of thousands of folders.
const SEARCH_EVERY: Duration = Duration::from_secs(1);

/// Watches the file witnesses for one signature.
#[derive(Debug)]
pub(super) struct Watch {
    /// The transcript and where to read on.
    transcript: Option<(PathBuf, u64)>,
    /// When a transcript was last looked for in vain.
    searched: Option<Duration>,
    /// The reading failed and was logged.
    said: bool,
}

impl Watch {
    /// A watch that goes on from a journalled place in the transcript.
    pub(super) fn new(from: Option<(String, u64)>) -> Self {
        let transcript = from.map(|(path, offset)| (PathBuf::from(path), offset));
        Self { transcript, searched: None, said: false }
    }

    /// Notes the present end of the transcript: only what comes later is about this delivery.
    pub(super) fn begin<T>(&mut self, out: &Outside<T>) {
        self.transcript =
            session_file(out).map(|path| (path.clone(), transcript::end_offset(&path).unwrap_or_default()));
    }

    /// The place in the transcript, for the journal.
    pub(super) fn transcript(&self) -> Option<(String, u64)> {
        self.transcript.as_ref().map(|(path, offset)| (path.display().to_string(), *offset))
    }

    /// A proof, if one of the witnesses that count has seen the signature.
    pub(super) fn proof<T>(&mut self, out: &Outside<T>, signature: &Signature) -> Option<Proof> {
        if out.settings.get().witnesses.hook && has_receipt(out, signature) {
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
            self.transcript = session_file(out).map(|path| (path, 0));
        }
        let (path, offset) = self.transcript.as_mut()?;
        match transcript::find_signature(path, *offset, &signature.needle()) {
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

/// Whether the prompt hook wrote a receipt for exactly this signature.
fn has_receipt<T>(out: &Outside<T>, signature: &Signature) -> bool {
    let target = &out.settings.get().target_window;
    // A text of ours that somebody handed on to another agent has left a receipt of that agent's.
    hook_files::read_receipt(&out.state, &signature.nonce).is_ok_and(|receipt| {
        receipt.is_some_and(|receipt| {
            receipt.iso == signature.iso && (receipt.window.is_empty() || receipt.window == *target)
        })
    })
}

/// The transcript of the target's session: by its hooks, else by the session id pinned when it was started.
fn session_file<T>(out: &Outside<T>) -> Option<PathBuf> {
    let target = WindowName(out.settings.get().target_window.clone());
    if let Ok(Some(found)) = hook_files::read_heartbeat(&out.state, &target, None) {
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
    let pinned = files::read_text(&out.state.at("orchestrator-session-id"), MAX_STATE_BYTES).ok()??;
    transcript::locate(out.env.as_ref(), pinned.trim(), None, Some(&out.settings.get().root))
}
