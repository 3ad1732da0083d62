//! Delivers emits: archives, journals, drives, and performs the commits of what arrived.
//!
//! Crash order: the intent is durable before anything is typed; a proof is recorded before its commits are performed;
//! the intent is removed last. Killed anywhere, the next start settles what is pending before it tells anything.

use std::io;
use std::time::Duration;

use super::audit::{self, Repeat, Warrant};
use super::drive::{self, Journal, Letter};
use super::look::Aim;
use super::outside::Outside;
use super::perform;
use super::tally;
use super::witness::Watch;
use crate::logic::action::Emit;
use crate::logic::audit::{Cause, Program};
use crate::logic::delivery::journal::{self, Event, Kind, Pending};
use crate::logic::delivery::machine::{Delivery, Fold, Limits};
use crate::logic::delivery::{Outcome, Pasted, cap};
use crate::logic::emit::archive;
use crate::logic::ids::{PaneKey, Signature, WindowName};
use crate::logic::time::Now;
use crate::sys::archived;
use crate::sys::fault;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES};
use crate::sys::tmux::Tmux;

/// How long to wait before what arrived is recorded again, while the state directory can't be written.
const RECORD_AGAIN: Duration = Duration::from_secs(2);

/// How much of the end of the event log is read at the start.
const MAX_EVENTS_BYTES: u64 = 1 << 20;

/// How long the proof of an earlier delivery is looked for before its news are told again.
const SETTLE_FOR: Duration = Duration::from_secs(3);

/// How often the pane is looked at meanwhile. What it shows of an earlier delivery does not scroll away just now, and one
/// that can't be settled is looked into for hours.
const SETTLE_LOOK_EVERY: Duration = Duration::from_millis(300);

/// Who types emits, in `machine-input.tsv`.
const SRC: &str = "watcher-emit";

/// An emit that stands in the archive.
#[derive(Clone, Debug)]
pub(super) struct Archived {
    /// The emit.
    pub(super) emit: Emit,
}

/// Archives an emit. It is not typed unless this succeeded.
pub(super) fn archive<T>(out: &Outside<T>, emit: Emit, repeat_of: Option<&Signature>) -> std::io::Result<Archived> {
    let name = archive::file_name(emit.at, &emit.signature.nonce, &emit.reason);
    let text = format!("{}\n", emit.body);
    fault::point("before-archive");
    files::write_atomic(&out.state.at("diffs").join(&name), text.as_bytes(), Durability::Durable)?;
    fault::point("after-archive");
    tracing::info!(nonce = emit.signature.nonce, reason = emit.reason, archive = name, "emit composed");
    let composed = Event {
        iso: Some(emit.signature.iso.clone()),
        reason: Some(emit.reason.clone()),
        archive: Some(name),
        sections: emit.sections.clone(),
        bytes: Some(emit.body.len() as u64),
        repeat_of: repeat_of.map(|sig| format!("{} {}", sig.iso, sig.nonce)),
        ..Event::new(emit.at, &emit.signature.nonce, Kind::Composed)
    };
    note(out, &composed, Durability::Hint);
    // A convenience copy for people and scripts of the original tools.
    match files::write_atomic(&out.state.at("last-change.txt"), text.as_bytes(), Durability::Hint) {
        Ok(()) => out.edges.works("last-change"),
        Err(error) => out.edges.fails("last-change", &error, "could not write last-change.txt"),
    }
    Ok(Archived { emit })
}

/// Appends an event to `emits.jsonl`. A failure is logged: the event log is for people, the pending file is the truth.
///
/// `false` if it failed in a way that may pass by itself.
pub(super) fn note<T>(out: &Outside<T>, event: &Event, durability: Durability) -> bool {
    match files::append_lines(&out.state.at(journal::EMITS), &event.line(), durability) {
        Ok(()) => {
            out.edges.works("emits");
            true
        }
        Err(error) => {
            out.edges.fails("emits", &error, "could not record what became of an emit");
            !perform::may_pass(&error)
        }
    }
}

/// The emit of an earlier run that may have been typed, and of which the event log tells no end.
pub(super) fn left_open<T>(out: &Outside<T>) -> Option<Signature> {
    match archived::read_tail(&out.state, journal::EMITS, MAX_EVENTS_BYTES) {
        Ok(text) => journal::left_open(&journal::fold(&text.unwrap_or_default()).0),
        Err(error) => {
            tracing::warn!(%error, "the event log can't be read; whether an emit is a repetition can't be told");
            None
        }
    }
}

/// Tries to deliver an archived emit. What arrived is committed before this returns.
pub(super) async fn attempt<T: Tmux>(out: &Outside<T>, archived: &Archived) -> Outcome {
    let emit = &archived.emit;
    let pasted = Pasted::new(emit.signature.clone(), page(out, emit));
    let delivery = Delivery::new(pasted.clone(), drive::limits(out, out.settings.get().paste_confirm));
    let letter = letter(out, pasted, Cause::Report { nonce: emit.signature.nonce.clone() });
    let watch = Watch::new(letter.window.clone(), None, None);
    let mut journal = PendingFile { out, emit: Some((emit, &letter.pasted.body)), pending: None };
    let (outcome, _) = drive::drive(out, &letter, delivery, watch, &mut journal).await;
    conclude(out, &emit.signature, &emit.commits, &outcome).await;
    tally::count(out, &letter.window, &outcome, tally::Whose::Watcher);
    outcome
}

/// What is pasted of an emit: all of it, or its beginning with a pointer to the archive, where it stands whole.
fn page<T>(out: &Outside<T>, emit: &Emit) -> String {
    let name = archive::file_name(emit.at, &emit.signature.nonce, &emit.reason);
    let path = out.state.at("diffs").join(name);
    let how = format!("read it with: ng emits show {}", emit.signature.nonce);
    let pointer = |missing| cap::pointer(missing, &path.display().to_string(), &how);
    cap::fit(&emit.body, &emit.signature.trailer(), out.settings.get().paste_max_bytes, pointer)
}

fn letter<T>(out: &Outside<T>, pasted: Pasted, cause: Cause) -> Letter {
    Letter {
        aim: Aim::target(out),
        window: WindowName(out.settings.get().target_window.clone()),
        warrant: Warrant::new(Program::Watcher, SRC, cause, Repeat::Journalled),
        pasted,
        // Who typed into the orchestrator's window decides nothing; an unreadable table must not silence the watcher.
        must_stamp: false,
    }
}

/// Settles the pending delivery of an earlier run or of an unknown outcome: looks for its proof, never pastes.
pub(super) async fn settle<T: Tmux>(out: &Outside<T>, pending: &Pending) -> Outcome {
    let pasted = Pasted::new(pending.signature.clone(), pending.body.clone());
    let delivery = Delivery::settle_earlier(
        pasted.clone(),
        (pending.pane.clone(), pending.pid),
        pending.fold.clone(),
        Limits { look_every: SETTLE_LOOK_EVERY, ..drive::limits(out, SETTLE_FOR) },
        out.clock.now().uptime,
    );
    let letter = letter(out, pasted, Cause::EarlierReport { nonce: pending.signature.nonce.clone() });
    let watch = Watch::new(letter.window.clone(), None, pending.transcript.clone()).on(pending.pane.server.clone());
    let mut journal = PendingFile { out, emit: None, pending: Some(pending.clone()) };
    let (outcome, _) = drive::drive(out, &letter, delivery, watch, &mut journal).await;
    match &outcome {
        Outcome::Received(_) => conclude(out, &pending.signature, &pending.commits, &outcome).await,
        Outcome::Held(_) => {}
        _ => {
            // No witness that can be read has seen it: its news are told again, and said to be a repeat.
            let event = Event {
                detail: Some("no witness has seen it; its news are told again".into()),
                ..Event::new(out.clock.now().at, &pending.signature.nonce, Kind::Repeated)
            };
            note(out, &event, Durability::Durable);
            fault::point("before-repeat");
            remove_pending(out);
            fault::point("after-repeat");
        }
    }
    // Its failure was counted when it failed, and why it stays open is a degraded mode of its own.
    if matches!(outcome, Outcome::Received(_)) {
        tally::count(out, &letter.window, &outcome, tally::Whose::Watcher);
    }
    outcome
}

/// The journal of an emit: `delivery/pending.json`.
struct PendingFile<'a, T> {
    out: &'a Outside<T>,
    /// The emit and the text that is pasted of it; `None` for an earlier delivery, which is never pasted again.
    emit: Option<(&'a Emit, &'a String)>,
    /// What stands in the file.
    pending: Option<Pending>,
}

impl<T> PendingFile<'_, T> {
    fn write(&self, pending: &Pending) -> io::Result<()> {
        let text = serde_json::to_string(pending).expect("a pending delivery is plain data");
        files::write_atomic(&self.out.state.at(journal::PENDING), text.as_bytes(), Durability::Durable)
    }
}

impl<T> Journal for PendingFile<'_, T> {
    fn intent(&mut self, pane: &PaneKey, pid: u32, transcript: Option<(String, u64)>, now: &Now) -> io::Result<()> {
        let (emit, body) = self.emit.ok_or_else(|| io::Error::other("an earlier delivery is never pasted again"))?;
        let pending = Pending {
            signature: emit.signature.clone(),
            pane: pane.clone(),
            pid,
            body: body.clone(),
            fold: None,
            transcript,
            commits: emit.commits.clone(),
            at_ms: now.at,
        };
        self.write(&pending)?;
        self.pending = Some(pending);
        note(self.out, &Event::new(now.at, &emit.signature.nonce, Kind::Intent), Durability::Hint);
        Ok(())
    }

    fn fold(&mut self, fold: &Fold) -> io::Result<()> {
        let Some(pending) = &mut self.pending else { return Ok(()) };
        pending.fold = Some(fold.clone());
        let pending = pending.clone();
        self.write(&pending)
    }

    fn withdraw(&mut self) {
        self.pending = None;
        remove_pending(self.out);
    }
}

/// Reads the pending delivery. A file that can't be read is set aside, said, and never overwritten.
pub(super) fn read_pending<T>(out: &Outside<T>) -> Option<Pending> {
    let path = out.state.at(journal::PENDING);
    let text = match files::read_text(&path, MAX_STATE_BYTES) {
        Ok(text) => text?,
        Err(error) => {
            tracing::error!(%error, path = %path.display(), "the pending delivery can't be read");
            set_aside(&path);
            return None;
        }
    };
    match serde_json::from_str(&text) {
        Ok(pending) => Some(pending),
        Err(error) => {
            tracing::error!(%error, path = %path.display(), "the pending delivery is damaged; set aside");
            set_aside(&path);
            None
        }
    }
}

/// Renames a pending delivery that can't be used, so that nothing is overwritten.
fn set_aside(path: &std::path::Path) {
    if let Err(error) = files::set_aside(path) {
        tracing::error!(%error, path = %path.display(), "could not set a damaged file aside");
    }
}

/// Records that a delivery arrived, and performs its commits. Other outcomes leave everything as it is.
///
/// While the state directory can't be written this goes on trying: without its commits the same news would be told
/// again, and nothing else could be journalled anyway.
async fn conclude<T: Tmux>(
    out: &Outside<T>,
    signature: &Signature,
    commits: &[crate::logic::signal::Commit],
    outcome: &Outcome,
) {
    let now = out.clock.now();
    let Outcome::Received(proof) = outcome else { return };
    fault::point("before-proof");
    let event = Event::of_outcome(now.at, &signature.nonce, outcome);
    let mut recorded = false;
    loop {
        recorded = recorded || note(out, &event, Durability::Durable);
        fault::point("after-proof");
        let committed = perform::commits(out, commits, Some((now.at, &signature.nonce))).await.is_ok();
        if recorded && committed {
            break;
        }
        tokio::time::sleep(RECORD_AGAIN).await;
    }
    for path in ["orchestrator-last-paste.ts", "watcher-last-emit-delivery.ts"] {
        let text = format!("{}\n", now.at.secs());
        if let Err(error) = files::write_atomic(&out.state.at(path), text.as_bytes(), Durability::Hint) {
            tracing::warn!(%error, path, "could not stamp a delivery");
        }
    }
    fault::point("before-removal");
    remove_pending(out);
    fault::point("after-removal");
    audit::write_waiting(out);
    tracing::info!(nonce = signature.nonce, witness = proof.by.word(), queued = proof.queued, "emit received");
}

/// Removes the pending delivery: it is settled, or nothing of it was typed.
fn remove_pending<T>(out: &Outside<T>) {
    if let Err(error) = files::remove(&out.state.at(journal::PENDING)) {
        tracing::error!(%error, "could not remove the journal of a settled delivery");
    }
}
