//! From an event to what changes on disk.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::decision;
use super::failure::{classify, reset_token};
use super::heartbeat::Heartbeat;
use super::payload::{Event, Payload, clean};
use super::receipt::{Receipt, signatures};
use crate::logic::ids::{Fingerprint, PaneId, Signature, WindowName};
use crate::logic::snapshot::DecisionRecord;
use crate::logic::time::Now;

/// Longest name or id that is kept, in characters.
const MAX_ID_CHARS: usize = 200;
/// Most receipts from one prompt: it can quote older emits, the newest stands last.
const MAX_RECEIPTS: usize = 8;
/// Notifications that ask nothing of anybody (seen in the event list of 2.1.332).
pub(super) const INFORMATIONAL: &[&str] = &[
    "agent_completed",
    "auth_success",
    "computer_use_exit",
    "elicitation_complete",
    "elicitation_response",
    "notify",
    "plugin_notification",
    "push_notification",
];

/// The tool by which an agent asks its user a question.
const QUESTION_TOOL: &str = "AskUserQuestion";
/// What stands as the open tool while a tool server's dialog is open.
const ELICITATION: &str = "elicitation";
/// What the orchestrator is told instead of opening a question.
const QUESTION_REFUSED: &str = "Not asked: the watcher pastes its reports into this pane, and a question dialog would \
    swallow them. Write the question as plain text in your reply and end the turn; an answer comes as a message, here \
    or through the watcher.";

/// Where the hook runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookContext {
    /// The window; `None` if nothing names it: then only receipts are written.
    pub window: Option<WindowName>,
    /// The pane, from the environment.
    pub pane: Option<PaneId>,
    /// The pane's tmux server, as [`server_in`](super::server_in) reads it from the environment.
    pub server: Option<String>,
    /// Whether the window is the orchestrator's.
    pub is_target: bool,
}

/// What earlier events left, as far as [`Event::wants_pending_tool`] and the window say that it is needed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prior {
    /// The window's heartbeat.
    pub heartbeat: Option<Heartbeat>,
    /// The pending tool.
    pub pending_tool: Option<Value>,
}

/// One change. Paths are relative to the state directory and made of window stems, fingerprints and nonces only.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Replace a hint.
    Write {
        /// Relative path.
        path: String,
        /// Whole new text.
        text: String,
    },
    /// Write a receipt. An existing one stays, unless this one is from the orchestrator's window.
    Receipt {
        /// Relative path.
        path: String,
        /// Whole new text.
        text: String,
        /// From the orchestrator's window.
        from_target: bool,
    },
    /// Delete a file.
    Remove {
        /// Relative path.
        path: String,
    },
    /// Set a file's modification time; its text is empty.
    Touch {
        /// Relative path.
        path: &'static str,
    },
    /// Append a line to a bounded log.
    Append {
        /// Relative path.
        path: &'static str,
        /// The line, without newline.
        line: String,
    },
    /// Write a decision record, unless it is there or its tombstone is.
    Decide(Box<DecisionRecord>),
    /// Close a record because its prompt was answered in the pane.
    Close {
        /// The record's window.
        window: WindowName,
        /// The record.
        fingerprint: Fingerprint,
    },
    /// Mark every live record of the window `unresolved`.
    MarkUnresolved {
        /// The window.
        window: WindowName,
    },
    /// Let the agent not do what it is about to do.
    Refuse {
        /// What the agent is told.
        why: &'static str,
    },
}

/// What this event changes.
pub fn effects_of(event: Event, payload: &Payload, context: &HookContext, prior: Prior, now: &Now) -> Vec<Effect> {
    let mut effects = Vec::new();
    if event == Event::UserPromptSubmit {
        receipts(payload, context, now, &mut effects);
    }
    if event == Event::PreToolUse && context.is_target && payload.tool_name == QUESTION_TOOL {
        effects.push(Effect::Refuse { why: QUESTION_REFUSED });
    }
    let Some(window) = &context.window else { return effects };
    let mut turn =
        Turn { event, payload, window, context, now, pending: prior.pending_tool, is_queued: false, effects };
    // Records come before the heartbeat, which refers to them.
    let prior = prior.heartbeat.map(|was| of_this_server(was, context)).unwrap_or_default();
    let next = turn.heartbeat(&prior);
    turn.side_files();
    if let Some(beat) = next {
        turn.write(Heartbeat::path(window), &beat);
    }
    turn.effects
}

/// One event on its way.
struct Turn<'a> {
    /// The event.
    event: Event,
    /// Its payload.
    payload: &'a Payload,
    /// The window it is about.
    window: &'a WindowName,
    /// Where the hook runs.
    context: &'a HookContext,
    /// When.
    now: &'a Now,
    /// The pending tool, if it was read.
    pending: Option<Value>,
    /// The prompt was sent while a turn runs.
    is_queued: bool,
    /// What has been decided so far.
    effects: Vec<Effect>,
}

impl Turn<'_> {
    /// The next heartbeat; `None` leaves the file as it is. Adds the effects on decision records.
    fn heartbeat(&mut self, was: &Heartbeat) -> Option<Heartbeat> {
        let payload = self.payload;
        let mut beat = Heartbeat { last_turn_end: None, ..was.clone() };
        match self.event {
            Event::SessionStart => {
                if payload.source == "compact" {
                    beat = compacted(beat);
                } else {
                    "session_start".clone_into(&mut beat.state);
                    beat = closed(beat);
                    beat.queued_prompts = 0;
                }
            }
            Event::SessionEnd => {
                "session_end".clone_into(&mut beat.state);
                beat = closed(beat);
            }
            Event::UserPromptSubmit => {
                // A message sent during a turn carries that turn's id (2.1.332) and becomes a turn of its own.
                self.is_queued =
                    was.is_working() && !payload.prompt_id.is_empty() && payload.prompt_id == was.prompt_id;
                beat.queued_prompts = if self.is_queued { was.queued_prompts.saturating_add(1) } else { 0 };
                beat = closed(beat);
                "user_prompt".clone_into(&mut beat.state);
            }
            Event::PreToolUse | Event::PostToolBatch | Event::Working => {
                let of_session = self.event != Event::Working && !payload.is_of_subagent();
                if !of_session && !was.is_working() {
                    // A sub-agent at work does not make an idle session busy.
                    return None;
                }
                "busy".clone_into(&mut beat.state);
            }
            Event::PostToolUse => return self.after_tool(was, beat),
            Event::PermissionRequest => beat = self.request(beat),
            Event::Elicitation => beat = self.elicitation(beat),
            Event::ElicitationResult => {
                if was.open_tool == ELICITATION {
                    self.close(&was.open_decision);
                    beat = closed(beat);
                }
                "busy".clone_into(&mut beat.state);
            }
            Event::PreCompact => {
                if payload.trigger == "manual" && !was.is_working() {
                    beat.before_compact.clone_from(&was.state);
                }
                "busy".clone_into(&mut beat.state);
            }
            Event::PostCompact => beat = compacted(beat),
            Event::Notification => return self.notification(was, beat).map(|beat| self.stamped(beat)),
            Event::Stop => {
                beat = closed(beat);
                self.effects.push(Effect::MarkUnresolved { window: self.window.clone() });
                if was.queued_prompts > 0 {
                    // The next turn begins without an event of its own, so the session is not idle.
                    beat.queued_prompts = was.queued_prompts.saturating_sub(1);
                    "busy".clone_into(&mut beat.state);
                } else {
                    "idle_prompt".clone_into(&mut beat.state);
                    beat.last_turn_end = Some(self.now.at.secs());
                }
            }
            Event::StopFailure => {
                beat = closed(beat);
                beat.queued_prompts = 0;
                "stop_failure".clone_into(&mut beat.state);
            }
        }
        Some(self.stamped(beat))
    }

    /// After a tool has run: its prompt, if it had one, was answered.
    fn after_tool(&mut self, was: &Heartbeat, mut beat: Heartbeat) -> Option<Heartbeat> {
        let id = &self.payload.tool_use_id;
        if !id.is_empty() {
            self.close(decision::of_tool_call(self.window, id).as_str());
        }
        if self.payload.hook_event_name == "PostToolUse" && self.payload.tool_name == "ScheduleWakeup" {
            let delay_s = self.payload.tool_input.get("delaySeconds").and_then(Value::as_u64);
            if let Some(delay_s) = delay_s.and_then(|delay| i64::try_from(delay).ok()) {
                beat.schedule_wakeup(self.now.at.secs().saturating_add(delay_s));
            }
        }
        let is_open = was.state == "permission_prompt" && !was.open_tool.is_empty() && was.open_tool != *id;
        if is_open {
            // Another tool of the same batch ended; the dialog is still there.
            return Some(self.stamped(beat));
        }
        if self.payload.is_of_subagent() && !was.is_working() && was.state != "permission_prompt" {
            return None;
        }
        "busy".clone_into(&mut beat.state);
        beat = closed(beat);
        Some(self.stamped(beat))
    }

    /// A permission dialog or a question opens.
    fn request(&mut self, mut beat: Heartbeat) -> Heartbeat {
        let payload = self.payload;
        let id = self.pending_id();
        let fingerprint = match &id {
            Some(id) => decision::of_tool_call(self.window, id),
            None => decision::of_prompt(self.window, payload, self.now.at.millis()),
        };
        let id = id.unwrap_or_default();
        let context = decision::tool_context(payload, &id, self.now.at.secs());
        let excerpt = decision::excerpt_of_tool(&payload.tool_name, &payload.tool_input);
        self.decide(decision::kind_of_request(&payload.tool_name), &fingerprint, excerpt, context);
        "permission_prompt".clone_into(&mut beat.state);
        fingerprint.as_str().clone_into(&mut beat.open_decision);
        beat.open_tool = id;
        beat
    }

    /// A tool server asks the person something.
    fn elicitation(&mut self, mut beat: Heartbeat) -> Heartbeat {
        let payload = self.payload;
        let fingerprint = if payload.elicitation_id.is_empty() {
            decision::of_prompt(self.window, payload, self.now.at.millis())
        } else {
            decision::of_tool_call(self.window, &payload.elicitation_id)
        };
        let excerpt = decision::excerpt_of_message(&format!("{}: {}", payload.mcp_server_name, payload.message));
        self.decide(ELICITATION, &fingerprint, excerpt, self.pending.clone().unwrap_or(Value::Null));
        "permission_prompt".clone_into(&mut beat.state);
        fingerprint.as_str().clone_into(&mut beat.open_decision);
        ELICITATION.clone_into(&mut beat.open_tool);
        beat
    }

    /// Closes a record, if this is the fingerprint of one.
    fn close(&mut self, fingerprint: &str) {
        if let Some(fingerprint) = Fingerprint::parse(fingerprint) {
            self.effects.push(Effect::Close { window: self.window.clone(), fingerprint });
        }
    }

    /// The program wants attention.
    fn notification(&mut self, was: &Heartbeat, mut beat: Heartbeat) -> Option<Heartbeat> {
        let payload = self.payload;
        let kind = clean(payload.notification_kind(), 40);
        let line = json!({
            "event": "Notification",
            "notification_type": kind,
            "message": clean(payload.notification_message(), 500),
            "window": self.window,
            "ts": self.now.at.secs(),
        });
        self.effects.push(Effect::Append { path: "worker-notifications.jsonl", line: line.to_string() });
        if INFORMATIONAL.contains(&kind.as_str()) {
            return None;
        }
        if kind == "idle_prompt" {
            beat = closed(beat);
            beat.queued_prompts = 0;
            beat.state.clone_from(&kind);
            if self.context.is_target {
                // An idle orchestrator is where signals go, not a signal.
                return Some(beat);
            }
        }
        if kind == "elicitation_dialog" && was.open_tool == ELICITATION {
            // Its own event has told it.
            return Some(beat);
        }
        let pending_id = self.pending_field("tool_use_id");
        let excerpt = decision::excerpt_of_message(payload.notification_message());
        let context = self.pending.clone().unwrap_or(Value::Null);
        if kind == "permission_prompt" {
            let fingerprint = Fingerprint::parse(&was.open_decision).unwrap_or_else(|| match pending_id.as_deref() {
                Some(id) => decision::of_tool_call(self.window, id),
                None => decision::of_notification(self.window, &kind, payload),
            });
            let tool = self.pending_tool_name().unwrap_or_default();
            let shown = match context.get("tool_input") {
                Some(input) => decision::excerpt_of_tool(&tool, input),
                None => excerpt,
            };
            self.decide(decision::kind_of_request(&tool), &fingerprint, shown, context);
            beat.state.clone_from(&kind);
            fingerprint.as_str().clone_into(&mut beat.open_decision);
            beat.open_tool = pending_id.unwrap_or_default();
        } else {
            let fingerprint = decision::of_notification(self.window, &kind, payload);
            let context = if kind == "idle_prompt" { Value::Null } else { context };
            self.decide(&kind, &fingerprint, excerpt, context);
        }
        Some(beat)
    }

    /// Adds a decision record.
    fn decide(&mut self, kind: &str, fingerprint: &Fingerprint, prompt_excerpt: String, tool_context: Value) {
        self.effects.push(Effect::Decide(Box::new(DecisionRecord {
            ts: self.now.iso(),
            window: self.window.to_string(),
            session_id: clean(&self.payload.session_id, MAX_ID_CHARS),
            kind: kind.to_owned(),
            prompt_excerpt,
            tool_context,
            fingerprint: fingerprint.to_string(),
            unresolved: None,
            other: BTreeMap::new(),
        })));
    }

    /// The files beside the heartbeat and the decisions.
    fn side_files(&mut self) {
        let stem = self.window.file_stem();
        let pending_path = format!("pending-tool/{stem}.json");
        if self.event == Event::UserPromptSubmit && !self.is_queued {
            // A declined tool call ends without an event; a new turn shows that nothing is pending.
            self.effects.push(Effect::Remove { path: pending_path.clone() });
        }
        match self.event {
            Event::UserPromptSubmit if !self.payload.is_task_notification() => {
                let session: String = self.payload.session_id.chars().filter(|c| !c.is_control()).collect();
                let session = clean(&session, MAX_ID_CHARS);
                let text = format!("{}\t{session}\n", self.now.at.secs());
                self.effects.push(Effect::Write { path: format!("user-prompt/{stem}"), text });
                if self.context.is_target {
                    self.effects.push(Effect::Touch { path: "orchestrator-paste-received" });
                    if is_session_id(&session) {
                        let path = "orchestrator-session-id".to_owned();
                        self.effects.push(Effect::Write { path, text: format!("{session}\n") });
                    }
                }
            }
            Event::PreToolUse if self.effects.iter().any(|effect| matches!(effect, Effect::Refuse { .. })) => {}
            Event::PreToolUse => {
                let context = decision::tool_context(self.payload, &self.payload.tool_use_id, self.now.at.secs());
                self.write(pending_path, &context);
            }
            Event::PostToolUse => {
                let pending = self.pending_field("tool_use_id");
                let id = &self.payload.tool_use_id;
                if id.is_empty() || pending.is_none_or(|pending| pending == *id) {
                    self.effects.push(Effect::Remove { path: pending_path });
                }
                self.target_lives();
            }
            Event::Stop => {
                self.effects.push(Effect::Remove { path: pending_path });
                self.effects.push(Effect::Remove { path: format!("turn-failure/{stem}.json") });
                self.effects.push(Effect::Remove { path: format!("over-limit/{stem}.json") });
                self.target_lives();
            }
            Event::StopFailure => self.failure(&stem),
            Event::SessionStart | Event::SessionEnd if self.payload.source != "compact" => {
                self.effects.push(Effect::Remove { path: pending_path });
            }
            _ => {}
        }
    }

    /// The orchestrator shows life.
    fn target_lives(&mut self) {
        if self.context.is_target {
            self.effects.push(Effect::Touch { path: "orchestrator-heartbeat" });
        }
    }

    /// The marker of a failed turn, or the stamp of a limit.
    fn failure(&mut self, stem: &str) {
        let payload = self.payload;
        let message = payload.error_message();
        let failure = classify(payload.error_token(), message);
        let session_id = clean(&payload.session_id, MAX_ID_CHARS);
        let ts = self.now.at.secs();
        if failure.category == "rate_limit" {
            let stamp = json!({
                "ts": ts,
                "session_id": session_id,
                "error_type": "rate_limit",
                "error_message": clean(message, 500),
                "reset_at": reset_token(message),
                "window": self.window,
                "hook_event_name": "StopFailure",
            });
            self.write(format!("over-limit/{stem}.json"), &stamp);
        } else {
            let marker = json!({
                "ts": ts,
                "error": clean(payload.error_token(), MAX_ID_CHARS),
                "category": failure.category,
                "recovery": failure.recovery,
                "last_msg": clean(message, 200),
                "session_id": session_id,
                "window": self.window,
                "hook_event_name": "StopFailure",
            });
            self.write(format!("turn-failure/{stem}.json"), &marker);
        }
    }

    /// A text field of the pending tool, unless it is empty.
    fn pending_field(&self, key: &str) -> Option<String> {
        let text = self.pending.as_ref()?.get(key)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Name of the pending tool, in our form of the file or the original's.
    fn pending_tool_name(&self) -> Option<String> {
        self.pending_field("tool_name").or_else(|| self.pending_field("tool"))
    }

    /// The id of the tool call that a permission request is about: the payload's, else the pending tool's if it is the
    /// same call (requests carry no id on any version seen).
    fn pending_id(&self) -> Option<String> {
        if !self.payload.tool_use_id.is_empty() {
            return Some(clean(&self.payload.tool_use_id, MAX_ID_CHARS));
        }
        let same_tool = self.pending_tool_name()? == self.payload.tool_name;
        let (input, _) = super::payload::bounded(&self.payload.tool_input);
        let same_input = self.pending.as_ref()?.get("tool_input")? == &input;
        if same_tool && same_input { self.pending_field("tool_use_id") } else { None }
    }

    /// Fills in what every event tells.
    fn stamped(&self, mut beat: Heartbeat) -> Heartbeat {
        let payload = self.payload;
        if !payload.session_id.is_empty() {
            let session = clean(&payload.session_id, MAX_ID_CHARS);
            if session != beat.session_id {
                beat.last_tool.clear();
                beat.permission_mode.clear();
                beat.transcript_path.clear();
                beat.session_id = session;
            }
        }
        let keep = |field: &mut String, text: &str, max_chars: usize| {
            if !text.is_empty() {
                *field = clean(text, max_chars);
            }
        };
        keep(&mut beat.transcript_path, &payload.transcript_path, 4096);
        keep(&mut beat.last_tool, &payload.tool_name, MAX_ID_CHARS);
        if !payload.is_of_subagent() {
            keep(&mut beat.permission_mode, &payload.permission_mode, 40);
            keep(&mut beat.prompt_id, &payload.prompt_id, MAX_ID_CHARS);
        }
        if let Some(pane) = self.context.pane {
            beat.pane = pane.to_string();
            beat.tmux = self.context.server.clone().unwrap_or_default();
        }
        beat.window = self.window.to_string();
        payload.hook_event_name.clone_into(&mut beat.event);
        beat.last_activity = self.now.at.secs();
        beat.with_lists()
    }

    /// Adds a JSON file.
    fn write<T: serde::Serialize>(&mut self, path: String, value: &T) {
        if let Ok(mut text) = serde_json::to_string(value) {
            text.push('\n');
            self.effects.push(Effect::Write { path, text });
        }
    }
}

/// What an earlier event told, if another tmux server's agent may have told it: nothing of its turn is ours.
fn of_this_server(was: Heartbeat, context: &HookContext) -> Heartbeat {
    let is_other = context.server.as_ref().is_some_and(|server| !was.tmux.is_empty() && was.tmux != *server);
    if !is_other {
        return was;
    }
    Heartbeat { queued_prompts: 0, before_compact: String::new(), last_turn_end: None, ..closed(was) }
}

/// A compaction is over: one that a person asked for leaves the session as it was before.
fn compacted(mut beat: Heartbeat) -> Heartbeat {
    if !beat.before_compact.is_empty() {
        beat.state = std::mem::take(&mut beat.before_compact);
    }
    beat
}

/// No prompt is open any more.
fn closed(mut beat: Heartbeat) -> Heartbeat {
    beat.open_decision.clear();
    beat.open_tool.clear();
    beat
}

/// Whether a text can be a session id: it is handed to a command line when the session is resumed.
pub fn is_session_id(text: &str) -> bool {
    (8..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// One receipt for each signature in the prompt, which a long paste carries inside `<pasted_content …>`.
fn receipts(payload: &Payload, context: &HookContext, now: &Now, effects: &mut Vec<Effect>) {
    if payload.is_task_notification() {
        // A background task's output may quote an emit; nobody sent it.
        return;
    }
    let mut found: Vec<Signature> = signatures(&payload.prompt).collect();
    let older = found.len().saturating_sub(MAX_RECEIPTS);
    for signature in found.drain(older..) {
        let Some(path) = Receipt::path(&signature.nonce) else { continue };
        let receipt = Receipt {
            ts: now.iso(),
            epoch_ms: now.at.millis(),
            session_id: clean(&payload.session_id, MAX_ID_CHARS),
            window: context.window.as_ref().map(ToString::to_string).unwrap_or_default(),
            pane: context.pane.map(|pane| pane.to_string()).unwrap_or_default(),
            iso: signature.iso,
        };
        let Ok(mut text) = serde_json::to_string(&receipt) else { continue };
        text.push('\n');
        effects.push(Effect::Receipt { path, text, from_target: context.is_target });
    }
}

#[cfg(test)]
#[path = "effects_tests.rs"]
mod tests;
