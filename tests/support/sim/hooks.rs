//! What agents leave on disk: the files of their hooks, as `ng hook` would write them, and their session transcripts.
//!
//! The decisions are the real ones (`logic::hook`). Modification times are set to the machine's clock, since the watcher
//! prunes by them and notices new decisions by that of their folder.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nexus_watcher::logic::hook::{Effect, Event, Heartbeat, HookContext, Payload, Prior, effects_of};
use nexus_watcher::logic::ids::{PaneId, WindowName};
use nexus_watcher::logic::time::{Now, Timestamp};
use nexus_watcher::sys::files::{self, Durability, StateDir};
use nexus_watcher::sys::{decisions, hook_files};
use serde_json::json;

/// Where one agent's hooks run.
#[derive(Clone, Debug)]
pub(crate) struct HookPlace {
    /// Its window.
    pub(crate) window: String,
    /// Its pane.
    pub(crate) pane: PaneId,
    /// Its session.
    pub(crate) session: String,
    /// Its session's transcript.
    pub(crate) transcript: PathBuf,
    /// It is the orchestrator.
    pub(crate) is_target: bool,
}

impl HookPlace {
    /// Takes in one event, whose further payload is `fields`.
    pub(crate) fn event(&self, state: &StateDir, now: &Now, event: &str, fields: &serde_json::Value) {
        let mut payload = json!({
            "hook_event_name": event,
            "session_id": self.session,
            "transcript_path": self.transcript,
            "permission_mode": "default",
        });
        if let (Some(all), Some(more)) = (payload.as_object_mut(), fields.as_object()) {
            all.extend(more.clone());
        }
        let payload = Payload::parse(payload.to_string().as_bytes()).expect("an object");
        let event = Event::parse(event).expect("an event that counts");
        let window = WindowName(self.window.clone());
        let context = HookContext {
            window: Some(window.clone()),
            pane: Some(self.pane),
            server: None,
            is_target: self.is_target,
        };
        for effect in effects_of(event, &payload, &context, prior(state, &window), now) {
            carry_out(state, &effect, now).expect("the hook can write");
        }
    }

    /// Appends a prompt to the transcript, as the session records it when it is sent.
    pub(crate) fn record(&self, text: &str, queued: bool) {
        let line = if queued {
            json!({"type": "queue-operation", "operation": "enqueue", "sessionId": self.session, "content": text})
        } else {
            json!({
                "type": "user",
                "sessionId": self.session,
                "promptSource": "typed",
                "message": {"role": "user", "content": text},
            })
        };
        let mut file = fs::OpenOptions::new().create(true).append(true).open(&self.transcript).expect("a transcript");
        writeln!(file, "{line}").expect("a transcript line");
    }
}

/// What the hook reads beforehand.
fn prior(state: &StateDir, window: &WindowName) -> Prior {
    let read = |path: String| files::read_text(&state.at(path), 1 << 20).ok().flatten();
    let pending = read(format!("pending-tool/{}.json", window.file_stem()));
    Prior {
        heartbeat: read(Heartbeat::path(window)).and_then(|text| Heartbeat::parse(&text)),
        pending_tool: pending.and_then(|text| serde_json::from_str(&text).ok()),
    }
}

/// Carries one change out, as `cli::hook` does.
fn carry_out(state: &StateDir, effect: &Effect, now: &Now) -> io::Result<()> {
    let stamped = |path: &Path, text: &str| {
        files::write_atomic(path, text.as_bytes(), Durability::Hint)?;
        set_time(path, now.at)
    };
    match effect {
        Effect::Write { path, text } => stamped(&state.at(path), text),
        Effect::Receipt { path, text, from_target } => {
            let path = state.at(path);
            if !from_target && path.symlink_metadata().is_ok() {
                return Ok(());
            }
            stamped(&path, text)
        }
        Effect::Remove { path } => files::remove(&state.at(path)),
        Effect::Touch { path } => stamped(&state.at(path), ""),
        Effect::Append { path, line } => files::append_lines(&state.at(path), &format!("{line}\n"), Durability::Hint),
        Effect::Decide(record) => {
            decisions::create(state, &WindowName(record.window.clone()), record)?;
            set_time(&state.at("decisions"), now.at)
        }
        Effect::Close { window, fingerprint } => {
            let note = [("resolved", hook_files::ANSWERED_IN_PANE), ("resolved_at", &now.iso())];
            decisions::close(state, window, fingerprint, &note)?;
            let tombstone = format!("decisions/{}.{fingerprint}.handled.json", window.file_stem());
            set_time(&state.at(tombstone), now.at).or_else(absent)?;
            set_time(&state.at("decisions"), now.at).or_else(absent)
        }
        Effect::MarkUnresolved { window } => {
            decisions::mark_unresolved(state, window)?;
            set_time(&state.at("decisions"), now.at).or_else(absent)
        }
        Effect::Refuse { .. } => Ok(()),
    }
}

/// A file that is not there needs no time.
fn absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Sets a file's modification time to the machine's clock.
pub(crate) fn set_time(path: &Path, at: Timestamp) -> io::Result<()> {
    let since = Duration::from_millis(u64::try_from(at.millis()).unwrap_or(0));
    File::open(path)?.set_modified(SystemTime::UNIX_EPOCH + since)
}
