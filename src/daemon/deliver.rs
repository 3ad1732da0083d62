//! Carries out deliveries: drives `logic::delivery::machine`, keeps the journal, performs the commits of what arrived.
//!
//! Crash order: the intent is durable before anything is typed; a proof is recorded before its commits are performed;
//! the intent is removed last. Killed anywhere, the next start settles what is pending before it tells anything.

use std::time::Duration;

use super::outside::Outside;
use super::witness::Watch;
use super::{actuate, look, perform};
use crate::logic::action::Emit;
use crate::logic::delivery::Outcome;
use crate::logic::delivery::gate::Hold;
use crate::logic::delivery::journal::{self, Event, Kind, Pending};
use crate::logic::delivery::machine::{Delivery, Happened, Limits, Step};
use crate::logic::emit::archive;
use crate::logic::ids::{PaneKey, Signature};
use crate::sys::files::{self, Durability, MAX_STATE_BYTES};
use crate::sys::tmux::Tmux;

/// How often the target is looked at while a delivery is under way. The pane's proof can scroll away within 100 ms.
const LOOK_EVERY: Duration = Duration::from_millis(40);

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
    files::write_atomic(&out.state.at("diffs").join(&name), text.as_bytes(), Durability::Durable)?;
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
pub(super) fn note<T>(out: &Outside<T>, event: &Event, durability: Durability) {
    if let Err(error) = files::append_lines(&out.state.at(journal::EMITS), &event.line(), durability) {
        tracing::error!(%error, nonce = event.nonce, event = event.event.word(), "could not record what became of an emit");
    }
}

/// Tries to deliver an archived emit. What arrived is committed before this returns.
pub(super) async fn attempt<T: Tmux>(out: &Outside<T>, archived: &Archived) -> Outcome {
    let emit = &archived.emit;
    let line_breaks = u32::try_from(emit.body.matches('\n').count()).unwrap_or(u32::MAX);
    let delivery = Delivery::new(emit.signature.clone(), line_breaks, limits(out, out.settings.paste_confirm));
    let outcome = drive(out, delivery, Some(emit), &emit.signature, Watch::new(None), line_breaks).await;
    conclude(out, &emit.signature, &emit.commits, &outcome).await;
    outcome
}

/// Settles the pending delivery of an earlier run or of an unknown outcome: looks for its proof, never pastes.
pub(super) async fn settle<T: Tmux>(out: &Outside<T>, pending: &Pending) -> Outcome {
    let delivery = Delivery::settle_earlier(
        pending.signature.clone(),
        pending.line_breaks,
        (pending.pane.clone(), pending.pid),
        limits(out, SETTLE_FOR),
        out.clock.now().uptime,
    );
    let watch = Watch::new(pending.transcript.clone());
    let outcome = drive(out, delivery, None, &pending.signature, watch, pending.line_breaks).await;
    match &outcome {
        Outcome::Received(_) => conclude(out, &pending.signature, &pending.commits, &outcome).await,
        Outcome::Held(_) => {}
        _ => {
            // No witness that can be read has seen it: its news are told again, and said to be a repeat.
            let event = Event {
                detail: Some("no witness has seen it; its news are told again".into()),
                ..Event::new(out.clock.now().at, &pending.signature.nonce, Kind::Repeated)
            };
            note(out, &event, Durability::Hint);
            remove_pending(out);
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
            set_aside(out, &path);
            return None;
        }
    };
    match serde_json::from_str(&text) {
        Ok(pending) => Some(pending),
        Err(error) => {
            tracing::error!(%error, path = %path.display(), "the pending delivery is damaged; set aside");
            set_aside(out, &path);
            None
        }
    }
}

/// Renames a file that can't be used, so that nothing is overwritten.
fn set_aside<T>(out: &Outside<T>, path: &std::path::Path) {
    let aside = path.with_extension(format!("damaged.{}", out.clock.now().at.secs()));
    if let Err(error) = std::fs::rename(path, &aside) {
        tracing::error!(%error, path = %path.display(), "could not set a damaged file aside");
    }
}

fn limits<T>(out: &Outside<T>, confirm: Duration) -> Limits {
    Limits {
        settle: out.settings.paste_settle,
        confirm,
        look_every: LOOK_EVERY,
        screen_counts: out.settings.witnesses.screen,
    }
}

/// Runs the machine to its end.
async fn drive<T: Tmux>(
    out: &Outside<T>,
    mut delivery: Delivery,
    emit: Option<&Emit>,
    signature: &Signature,
    mut watch: Watch,
    line_breaks: u32,
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
            Step::Enter { key, pid, require } => {
                stamp_machine_input(out);
                actuate::enter(&out.tmux, key, pid, require).await
            }
            Step::Paste { key, pid, require } => match emit {
                Some(emit) => paste(out, emit, key, pid, require, &mut watch, line_breaks).await,
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
    key: PaneKey,
    pid: u32,
    require: Vec<String>,
    watch: &mut Watch,
    line_breaks: u32,
) -> Happened {
    let now = out.clock.now();
    watch.begin(out);
    let pending = Pending {
        signature: emit.signature.clone(),
        pane: key.clone(),
        pid,
        line_breaks,
        transcript: watch.transcript(),
        commits: emit.commits.clone(),
        at_ms: now.at,
    };
    let text = serde_json::to_string(&pending).expect("a pending delivery is plain data");
    if let Err(error) = files::write_atomic(&out.state.at(journal::PENDING), text.as_bytes(), Durability::Durable) {
        // Without a journal a crash could tell twice or lose; nothing is typed.
        tracing::error!(%error, "the delivery could not be journalled; nothing is typed");
        return Happened::Refused(Hold::NoJournal);
    }
    note(out, &Event::new(now.at, &emit.signature.nonce, Kind::Intent), Durability::Hint);
    stamp_machine_input(out);
    let happened = actuate::paste(&out.tmux, key, pid, require, emit.body.clone()).await;
    if matches!(happened, Happened::Refused(_) | Happened::Vanished(_) | Happened::NothingTyped(_)) {
        remove_pending(out);
    }
    happened
}

/// Records how a delivery ended and performs the commits of what arrived.
async fn conclude<T: Tmux>(
    out: &Outside<T>,
    signature: &Signature,
    commits: &[crate::logic::signal::Commit],
    outcome: &Outcome,
) {
    let now = out.clock.now();
    if let Outcome::Received(proof) = outcome {
        note(out, &Event::of_outcome(now.at, &signature.nonce, outcome), Durability::Durable);
        perform::commits(&out.tmux, &out.state, out.settings.dedup_ring, commits, Some(now.at)).await;
        for path in ["orchestrator-last-paste.ts", "watcher-last-emit-delivery.ts"] {
            let text = format!("{}\n", now.at.secs());
            if let Err(error) = files::write_atomic(&out.state.at(path), text.as_bytes(), Durability::Hint) {
                tracing::warn!(%error, path, "could not stamp a delivery");
            }
        }
        remove_pending(out);
        tracing::info!(nonce = signature.nonce, witness = proof.by.word(), queued = proof.queued, "emit received");
    }
}

/// Removes the pending delivery: it is settled, or nothing of it was typed.
fn remove_pending<T>(out: &Outside<T>) {
    if let Err(error) = files::remove(&out.state.at(journal::PENDING)) {
        tracing::error!(%error, "could not remove the journal of a settled delivery");
    }
}

/// Stamps the coming keys as the machine's, so that they are never taken for a person's.
fn stamp_machine_input<T>(out: &Outside<T>) {
    let line = format!("{}\t{}\twatcher-emit\n", out.settings.target_window, out.clock.now().at.secs());
    if let Err(error) = files::append_lines(&out.state.at("machine-input.tsv"), &line, Durability::Hint) {
        tracing::warn!(%error, "could not stamp machine input");
    }
}
