//! Carries out deliveries: drives `logic::delivery::machine`, keeps the journal, performs the commits of what arrived.
//!
//! Crash order: the intent is durable before anything is typed; a proof is recorded before its commits are performed;
//! the intent is removed last. Killed anywhere, the next start settles what is pending before it tells anything.

use std::time::Duration;

use super::actuate::Screen;
use super::outside::Outside;
use super::witness::Watch;
use super::{actuate, look, perform};
use crate::logic::action::Emit;
use crate::logic::delivery::gate::Hold;
use crate::logic::delivery::journal::{self, Event, Kind, Pending};
use crate::logic::delivery::machine::{Delivery, Happened, Limits, Step};
use crate::logic::delivery::{Outcome, Pasted};
use crate::logic::emit::archive;
use crate::logic::ids::{PaneKey, Signature};
use crate::sys::fault;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES};
use crate::sys::tmux::Tmux;

/// How often the target is looked at while a delivery is under way. The pane's proof can scroll away within 100 ms.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// How long to wait before what arrived is recorded again, while the state directory can't be written.
const RECORD_AGAIN: Duration = Duration::from_secs(2);

/// How much of the end of the event log is read at the start.
const MAX_EVENTS_BYTES: u64 = 1 << 20;

/// How long an agent may take to take back the letter of the vi guard.
const VI_GUARD_SETTLES: Duration = Duration::from_millis(150);

/// How long the proof of an earlier delivery is looked for before its news are told again.
const SETTLE_FOR: Duration = Duration::from_secs(3);

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
    if let Err(error) = files::write_atomic(&out.state.at("last-change.txt"), text.as_bytes(), Durability::Hint) {
        tracing::warn!(%error, "could not write last-change.txt");
    }
    Ok(Archived { emit })
}

/// Appends an event to `emits.jsonl`. A failure is logged: the event log is for people, the pending file is the truth.
///
/// `false` if it failed in a way that may pass by itself.
pub(super) fn note<T>(out: &Outside<T>, event: &Event, durability: Durability) -> bool {
    match files::append_lines(&out.state.at(journal::EMITS), &event.line(), durability) {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, nonce = event.nonce, event = event.event.word(), "could not record what became of an emit");
            !perform::may_pass(&error)
        }
    }
}

/// The emit of an earlier run that may have been typed, and of which the event log tells no end.
pub(super) fn left_open<T>(out: &Outside<T>) -> Option<Signature> {
    match files::read_tail(&out.state.at(journal::EMITS), MAX_EVENTS_BYTES) {
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
    let pasted = Pasted::new(emit.signature.clone(), emit.body.clone());
    let delivery = Delivery::new(pasted, limits(out, out.settings.get().paste_confirm));
    let outcome = drive(out, delivery, Some(emit), &emit.signature, Watch::new(None)).await;
    conclude(out, &emit.signature, &emit.commits, &outcome).await;
    outcome
}

/// Settles the pending delivery of an earlier run or of an unknown outcome: looks for its proof, never pastes.
pub(super) async fn settle<T: Tmux>(out: &Outside<T>, pending: &Pending) -> Outcome {
    let delivery = Delivery::settle_earlier(
        Pasted::new(pending.signature.clone(), pending.body.clone()),
        (pending.pane.clone(), pending.pid),
        limits(out, SETTLE_FOR),
        out.clock.now().uptime,
    );
    let watch = Watch::new(pending.transcript.clone());
    let outcome = drive(out, delivery, None, &pending.signature, watch).await;
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
    outcome
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

fn limits<T>(out: &Outside<T>, confirm: Duration) -> Limits {
    Limits {
        settle: out.settings.get().paste_settle,
        confirm,
        look_every: LOOK_EVERY,
        screen_counts: out.settings.get().witnesses.screen,
    }
}

/// Runs the machine to its end.
async fn drive<T: Tmux>(
    out: &Outside<T>,
    mut delivery: Delivery,
    emit: Option<&Emit>,
    signature: &Signature,
    mut watch: Watch,
) -> Outcome {
    let mut step = delivery.start();
    loop {
        let happened = match step {
            Step::Done(outcome) => return outcome,
            Step::Look => Happened::Seen(look::target(out).await),
            Step::Sleep(time) => {
                tokio::time::sleep(time).await;
                Happened::Slept
            }
            Step::Prove => Happened::Proofs(watch.proof(out, signature)),
            Step::Enter { key, pid, require, rows } => {
                stamp_machine_input(out);
                fault::point("before-enter");
                let happened = actuate::enter(&out.tmux, key, pid, Screen { texts: require, rows }).await;
                fault::point("after-enter");
                happened
            }
            Step::Paste { key, pid, require, rows, vi_guard } => match emit {
                Some(emit) => {
                    let on = Screen { texts: require, rows };
                    paste(out, emit, (key, pid), (on, vi_guard), &mut watch).await
                }
                // A settling delivery never asks for a paste; if it did, nothing is typed.
                None => Happened::NothingTyped("an earlier delivery is never pasted again".into()),
            },
        };
        step = delivery.next(out.clock.now().uptime, happened);
    }
}

/// Writes the intent durably, then pastes.
async fn paste<T: Tmux>(
    out: &Outside<T>,
    emit: &Emit,
    (key, pid): (PaneKey, u32),
    (on, vi_guard): (Screen, bool),
    watch: &mut Watch,
) -> Happened {
    let now = out.clock.now();
    watch.begin(out);
    let pending = Pending {
        signature: emit.signature.clone(),
        pane: key.clone(),
        pid,
        body: emit.body.clone(),
        transcript: watch.transcript(),
        commits: emit.commits.clone(),
        at_ms: now.at,
    };
    let text = serde_json::to_string(&pending).expect("a pending delivery is plain data");
    fault::point("before-journal");
    if let Err(error) = files::write_atomic(&out.state.at(journal::PENDING), text.as_bytes(), Durability::Durable) {
        // Without a journal a crash could tell twice or lose; nothing is typed.
        tracing::error!(%error, "the delivery could not be journalled; nothing is typed");
        return Happened::Refused(Hold::NoJournal);
    }
    fault::point("after-journal");
    note(out, &Event::new(now.at, &emit.signature.nonce, Kind::Intent), Durability::Hint);
    stamp_machine_input(out);
    fault::point("before-paste");
    let mut happened = Happened::Acted;
    if vi_guard {
        happened = actuate::vi_guard(&out.tmux, key.clone(), pid, on.clone()).await;
        // The box shows the letter for a moment, and the paste is refused on a box that is not empty.
        tokio::time::sleep(VI_GUARD_SETTLES).await;
    }
    if happened == Happened::Acted {
        happened = actuate::paste(&out.tmux, key, pid, on, emit.body.clone()).await;
    }
    fault::point("after-paste");
    if matches!(happened, Happened::Refused(_) | Happened::Vanished(_) | Happened::NothingTyped(_)) {
        remove_pending(out);
    }
    happened
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
        let committed =
            perform::commits(&out.tmux, &out.state, out.settings.get().dedup_ring, commits, Some(now.at)).await.is_ok();
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
    tracing::info!(nonce = signature.nonce, witness = proof.by.word(), queued = proof.queued, "emit received");
}

/// Removes the pending delivery: it is settled, or nothing of it was typed.
fn remove_pending<T>(out: &Outside<T>) {
    if let Err(error) = files::remove(&out.state.at(journal::PENDING)) {
        tracing::error!(%error, "could not remove the journal of a settled delivery");
    }
}

/// Stamps the coming keys as the machine's, so that they are never taken for a person's.
fn stamp_machine_input<T>(out: &Outside<T>) {
    let line = format!("{}\t{}\twatcher-emit\n", out.settings.get().target_window, out.clock.now().at.secs());
    if let Err(error) = files::append_lines(&out.state.at("machine-input.tsv"), &line, Durability::Hint) {
        tracing::warn!(%error, "could not stamp machine input");
    }
}
