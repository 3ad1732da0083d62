//! What each hook event changes, by real payloads.

use super::*;
use crate::logic::time::Timestamp;

fn now() -> Now {
    Now::fixed(Timestamp::from_secs(1_790_000_000))
}

fn context(is_target: bool) -> HookContext {
    HookContext { window: Some(WindowName("w3".into())), pane: Some(PaneId::new(12)), server: None, is_target }
}

/// What a run of events leaves behind.
#[derive(Default)]
struct Disk {
    files: BTreeMap<String, String>,
    decisions: BTreeMap<String, DecisionRecord>,
    closed: Vec<String>,
    effects: Vec<Effect>,
}

impl Disk {
    fn beat(&self) -> Heartbeat {
        self.files.get("heartbeat/w3.json").and_then(|text| Heartbeat::parse(text)).unwrap_or_default()
    }

    fn hook(&mut self, event: &str, payload: Value) -> &mut Self {
        self.hook_in(event, payload, &context(false))
    }

    fn hook_in(&mut self, event: &str, mut payload: Value, context: &HookContext) -> &mut Self {
        payload["hook_event_name"] = event.into();
        let payload: Payload = serde_json::from_value(payload).unwrap();
        let prior = Prior {
            heartbeat: self.files.get("heartbeat/w3.json").and_then(|text| Heartbeat::parse(text)),
            pending_tool: self.files.get("pending-tool/w3.json").and_then(|text| serde_json::from_str(text).ok()),
        };
        self.effects = effects_of(Event::parse(event).unwrap(), &payload, context, prior, &now());
        for effect in self.effects.clone() {
            match effect {
                Effect::Write { path, text } | Effect::Receipt { path, text, .. } => {
                    self.files.insert(path, text);
                }
                Effect::Remove { path } => {
                    self.files.remove(&path);
                }
                Effect::Decide(record) => {
                    self.decisions.entry(record.fingerprint.clone()).or_insert(*record);
                }
                Effect::Close { fingerprint, .. } => {
                    if self.decisions.contains_key(fingerprint.as_str()) {
                        self.closed.push(fingerprint.to_string());
                    }
                }
                Effect::Touch { .. }
                | Effect::Append { .. }
                | Effect::MarkUnresolved { .. }
                | Effect::Refuse { .. } => {}
            }
        }
        self
    }
}

fn bash(id: &str) -> Value {
    json!({"session_id": "s-1", "tool_name": "Bash", "tool_use_id": id, "tool_input": {"command": "touch x"}})
}

fn asked(id: &str) -> Disk {
    let mut disk = Disk::default();
    let mut request = bash("");
    disk.hook("UserPromptSubmit", json!({"session_id": "s-1", "prompt": "go"})).hook("PreToolUse", bash(id));
    request["tool_use_id"] = "".into();
    disk.hook("PermissionRequest", request);
    disk
}

#[test]
fn one_prompt_is_one_record_though_it_is_announced_twice() {
    let mut disk = asked("t1");
    assert_eq!(disk.decisions.len(), 1);
    disk.hook(
        "Notification",
        json!({"message": "Claude needs your permission", "notification_type": "permission_prompt"}),
    );
    assert_eq!(disk.decisions.len(), 1);
    let record = disk.decisions.values().next().unwrap();
    assert_eq!(record.kind, "permission_prompt");
    assert_eq!(record.prompt_excerpt, "permission to use Bash: touch x");
    assert_eq!(record.tool_context["tool_use_id"], "t1");
    assert_eq!(disk.beat().state, "permission_prompt");
}

#[test]
fn the_notification_finds_its_record_though_another_tool_is_pending() {
    let mut disk = Disk::default();
    disk.hook("PreToolUse", bash("t1")).hook("PreToolUse", json!({"tool_name": "Read", "tool_use_id": "t2"}));
    disk.hook("PermissionRequest", bash(""));
    disk.hook(
        "Notification",
        json!({"message": "Claude needs your permission", "notification_type": "permission_prompt"}),
    );
    let commands: Vec<_> = disk.decisions.values().map(|d| &d.tool_context["tool_input"]["command"]).collect();
    assert_eq!(commands, ["touch x"]);
}

#[test]
fn the_same_command_asked_again_is_another_record() {
    let mut disk = asked("t1");
    disk.hook("PostToolUse", bash("t1")).hook("PreToolUse", bash("t2")).hook("PermissionRequest", bash(""));
    assert_eq!(disk.decisions.len(), 2);
}

#[test]
fn a_prompt_answered_in_the_pane_is_closed_by_the_end_of_its_tool_only() {
    let mut disk = asked("t1");
    disk.hook("PostToolUse", bash("other"));
    assert_eq!((disk.closed.len(), disk.beat().state.as_str()), (0, "permission_prompt"));
    disk.hook("PostToolUse", bash("t1"));
    assert_eq!((disk.closed.len(), disk.beat().state.as_str()), (1, "busy"));
    assert!(disk.beat().open_decision.is_empty());
    assert!(!disk.files.contains_key("pending-tool/w3.json"));
}

#[test]
fn a_permission_notification_alone_still_makes_a_record() {
    let mut disk = Disk::default();
    disk.hook("Notification", json!({"message": "Claude needs your permission to use Read"}));
    assert_eq!(disk.decisions.len(), 1);
    assert_eq!(disk.beat().state, "permission_prompt");
}

#[test]
fn informational_notifications_and_the_orchestrators_own_idleness_make_no_record() {
    let mut disk = Disk::default();
    disk.hook("Notification", json!({"message": "done", "notification_type": "agent_completed"}));
    let idle = json!({"message": "Claude is waiting for your input", "notification_type": "idle_prompt"});
    disk.hook_in("Notification", idle.clone(), &context(true));
    assert_eq!(disk.decisions.len(), 0);
    disk.hook("Notification", idle);
    assert_eq!(disk.decisions.len(), 1);
}

#[test]
fn a_clean_stop_is_idle_until_the_next_event() {
    let mut disk = Disk::default();
    disk.hook("UserPromptSubmit", json!({"session_id": "s-1", "prompt": "go"}))
        .hook("Stop", json!({"session_id": "s-1"}));
    assert_eq!((disk.beat().state.as_str(), disk.beat().last_turn_end), ("idle_prompt", Some(1_790_000_000)));
    disk.hook("UserPromptSubmit", json!({"session_id": "s-1", "prompt": "more"}));
    assert_eq!((disk.beat().state.as_str(), disk.beat().last_turn_end), ("user_prompt", None));
}

#[test]
fn a_stop_with_a_message_queued_is_not_idle() {
    let mut disk = Disk::default();
    let prompt = |text: &str, id: &str| json!({"session_id": "s-1", "prompt": text, "prompt_id": id});
    disk.hook("UserPromptSubmit", prompt("slow", "p1")).hook("UserPromptSubmit", prompt("queued", "p1"));
    disk.hook("Stop", json!({"prompt_id": "p1"}));
    assert_eq!((disk.beat().state.as_str(), disk.beat().last_turn_end), ("busy", None));
    disk.hook("Stop", json!({"prompt_id": "p2"}));
    assert_eq!(disk.beat().state, "idle_prompt");
    // A turn that was interrupted fires nothing; the next prompt has an id of its own.
    disk.hook("UserPromptSubmit", prompt("a", "p3")).hook("UserPromptSubmit", prompt("b", "p4"));
    disk.hook("Stop", json!({"prompt_id": "p4"}));
    assert_eq!(disk.beat().state, "idle_prompt");
}

#[test]
fn a_sub_agent_at_work_does_not_make_an_idle_session_busy() {
    let mut disk = Disk::default();
    disk.hook("UserPromptSubmit", json!({"prompt": "go"})).hook("Stop", json!({}));
    let mut tool = bash("t9");
    tool["agent_id"] = "a1".into();
    disk.hook("PreToolUse", tool.clone()).hook("PostToolUse", tool).hook("SubagentStop", json!({"agent_id": "a1"}));
    assert_eq!((disk.beat().state.as_str(), disk.beat().last_turn_end.is_some()), ("idle_prompt", true));
}

#[test]
fn what_others_wrote_into_the_heartbeat_survives() {
    let mut disk = Disk::default();
    let text = r#"{"state":"busy","external_waits":[{"kind":"slurm","id":"7"}],"scheduled_wakeup_at":9}"#;
    disk.files.insert("heartbeat/w3.json".into(), text.into());
    disk.hook("Stop", json!({}));
    assert_eq!(disk.beat().external_waits(), [("slurm".to_owned(), "7".to_owned())]);
    assert_eq!(disk.beat().scheduled_wakeup_at(), Some(9));
}

#[test]
fn a_signature_in_a_prompt_leaves_a_receipt() {
    let sig = "nexus-emit-sig 2026-05-11T13:42:01-07:00";
    for (prompt, receipts) in [
        (format!("<pasted_content id=\"3290\">\nhello\n--- {sig} 0a1b2c ---\n</pasted_content>"), vec!["0a1b2c"]),
        (format!("{sig} 0a1b2c"), vec!["0a1b2c"]),
        (format!("{sig} 0a1b2c ---\n{sig} ffffff ---"), vec!["0a1b2c", "ffffff"]),
        (format!("{sig} 0a1b2cd"), vec![]),
        (format!("{sig} ../../ ---"), vec![]),
        (sig.to_owned(), vec![]),
        ("nexus-emit-sig tomorrow 0a1b2c ---".to_owned(), vec![]),
        (format!("<task-notification>\n{sig} 0a1b2c ---"), vec![]),
    ] {
        let mut disk = Disk::default();
        disk.hook("UserPromptSubmit", json!({"session_id": "s-1", "prompt": prompt}));
        let found: Vec<_> = disk.files.keys().filter_map(|path| path.strip_prefix("receipts/")).collect();
        let wanted: Vec<_> = receipts.iter().map(|nonce| format!("{nonce}.json")).collect();
        assert_eq!(found, wanted, "{prompt}");
    }
}

#[test]
fn without_a_window_only_receipts_are_written() {
    let nowhere = HookContext { window: None, pane: None, server: None, is_target: false };
    let mut disk = Disk::default();
    disk.hook_in("UserPromptSubmit", json!({"prompt": "nexus-emit-sig 2026-05-11T13:42:01Z 0a1b2c"}), &nowhere);
    assert_eq!(disk.files.keys().collect::<Vec<_>>(), ["receipts/0a1b2c.json"]);
}

#[test]
fn only_the_orchestrators_window_moves_the_orchestrators_files() {
    let session = "85ad3742-4e87-4e06-ad5e-b3de1cb7df53";
    let touches =
        |disk: &Disk, name: &str| disk.effects.iter().any(|e| matches!(e, Effect::Touch { path } if *path == name));
    let mut disk = Disk::default();
    disk.hook_in("UserPromptSubmit", json!({"session_id": session, "prompt": "x"}), &context(true));
    assert!(touches(&disk, "orchestrator-paste-received"));
    assert_eq!(disk.files["orchestrator-session-id"], format!("{session}\n"));
    disk.hook_in("Stop", json!({}), &context(true));
    assert!(touches(&disk, "orchestrator-heartbeat"));
    disk.hook_in("UserPromptSubmit", json!({"session_id": "--evil option", "prompt": "x"}), &context(true));
    assert_eq!(disk.files["orchestrator-session-id"], format!("{session}\n"));

    let mut worker = Disk::default();
    worker.hook("UserPromptSubmit", json!({"session_id": session, "prompt": "x"})).hook("Stop", json!({}));
    assert!(!touches(&worker, "orchestrator-heartbeat") && !worker.files.contains_key("orchestrator-session-id"));
}

#[test]
fn the_end_of_a_background_task_is_no_prompt_of_a_person() {
    let mut disk = Disk::default();
    disk.hook("UserPromptSubmit", json!({"session_id": "s", "prompt": "<task-notification>\n…"}));
    assert!(!disk.files.contains_key("user-prompt/w3"));
    assert_eq!(disk.beat().state, "user_prompt");
}

#[test]
fn a_failed_turn_leaves_a_marker_and_a_clean_stop_removes_it() {
    for (error, message, file) in [
        ("server_error", "API Error: 500", "turn-failure/w3.json"),
        ("rate_limit", "You've hit your limit · resets 3am (UTC)", "over-limit/w3.json"),
    ] {
        let mut disk = Disk::default();
        disk.hook("StopFailure", json!({"error": error, "last_assistant_message": message}));
        assert!(disk.files.contains_key(file), "{file}");
        disk.hook("Stop", json!({}));
        assert!(!disk.files.contains_key(file), "{file}");
    }
}

#[test]
fn only_the_orchestrators_questions_are_refused() {
    let refused = |tool: &str, is_target: bool| {
        let mut disk = Disk::default();
        disk.hook_in("PreToolUse", json!({"tool_name": tool, "tool_use_id": "t1"}), &context(is_target));
        let refused = disk.effects.iter().any(|effect| matches!(effect, Effect::Refuse { .. }));
        (refused, disk.files.contains_key("pending-tool/w3.json"))
    };
    assert_eq!(refused("AskUserQuestion", true), (true, false));
    assert_eq!(refused("AskUserQuestion", false), (false, true));
    assert_eq!(refused("Bash", true), (false, true));
}

#[test]
fn a_tool_servers_dialog_is_one_record_until_it_is_answered() {
    let mut disk = Disk::default();
    let asked =
        json!({"mcp_server_name": "deploy", "message": "Which region?", "mode": "form", "elicitation_id": "e1"});
    disk.hook("UserPromptSubmit", json!({"prompt": "go"})).hook("PreToolUse", bash("t1")).hook("Elicitation", asked);
    disk.hook("Notification", json!({"notification_type": "elicitation_dialog", "message": "input needed"}));
    let record = disk.decisions.values().next().unwrap();
    assert_eq!((disk.decisions.len(), record.kind.as_str()), (1, "elicitation"));
    assert_eq!(record.prompt_excerpt, "deploy: Which region?");
    assert_eq!(disk.beat().state, "permission_prompt");
    // Another tool of the batch ends meanwhile.
    disk.hook("PostToolUse", bash("t2"));
    assert_eq!(disk.beat().state, "permission_prompt");
    disk.hook("ElicitationResult", json!({"mcp_server_name": "deploy", "action": "accept"}));
    assert_eq!((disk.closed.len(), disk.beat().state.as_str()), (1, "busy"));
}

#[test]
fn a_tool_servers_dialog_without_an_id_is_another_record_each_time() {
    let mut disk = Disk::default();
    disk.hook("Elicitation", json!({"mcp_server_name": "a", "message": "x"}));
    disk.hook("Elicitation", json!({"mcp_server_name": "a", "message": "y"}));
    assert_eq!(disk.decisions.len(), 2);
}

#[test]
fn a_compaction_that_a_person_asked_for_leaves_the_session_as_it_was() {
    let mut disk = Disk::default();
    disk.hook("UserPromptSubmit", json!({"prompt": "go"})).hook("Stop", json!({}));
    disk.hook("PreCompact", json!({"trigger": "manual"}));
    assert_eq!(disk.beat().state, "busy");
    disk.hook("SessionStart", json!({"source": "compact"}));
    assert_eq!(disk.beat().state, "idle_prompt");
    disk.hook("PostCompact", json!({"trigger": "manual"}));
    assert_eq!(disk.beat().state, "idle_prompt");
    // One that comes by itself is part of a turn.
    disk.hook("UserPromptSubmit", json!({"prompt": "go"})).hook("PreCompact", json!({"trigger": "auto"}));
    disk.hook("SessionStart", json!({"source": "compact"})).hook("PostCompact", json!({"trigger": "auto"}));
    assert_eq!(disk.beat().state, "busy");
}

#[test]
fn a_wakeup_that_the_agent_schedules_is_noted_and_kept() {
    let mut disk = Disk::default();
    disk.hook("PostToolUse", json!({"tool_name": "ScheduleWakeup", "tool_input": {"delaySeconds": 90}}));
    disk.hook("Stop", json!({}));
    assert_eq!(disk.beat().scheduled_wakeup_at(), Some(1_790_000_090));
    for odd in [json!("soon"), json!(-5), json!(null), json!(1e300)] {
        let mut disk = Disk::default();
        disk.hook("PostToolUse", json!({"tool_name": "ScheduleWakeup", "tool_input": {"delaySeconds": odd}}));
        assert_eq!(disk.beat().scheduled_wakeup_at(), None);
    }
}

#[test]
fn a_call_that_a_rule_refused_is_over() {
    let mut disk = asked("t1");
    let mut denied = bash("t1");
    denied["reason"] = "outside the project".into();
    disk.hook("PermissionDenied", denied);
    assert_eq!((disk.closed.len(), disk.beat().state.as_str()), (1, "busy"));
    assert!(!disk.files.contains_key("pending-tool/w3.json"));
}

#[test]
fn the_originals_record_of_a_pending_tool_is_understood_and_ours_has_its_fields() {
    let mut disk = Disk::default();
    let pending = r#"{"tool":"Bash","input_summary":"{\"command\":\"ls\"}","ts":1759000000.5}"#;
    disk.files.insert("pending-tool/w3.json".into(), pending.into());
    disk.hook("Notification", json!({"message": "Claude needs your permission"}));
    let record = disk.decisions.values().next().unwrap();
    assert_eq!((record.kind.as_str(), &record.tool_context["tool"]), ("permission_prompt", &json!("Bash")));

    disk.hook("PreToolUse", bash("t1"));
    let ours: Value = serde_json::from_str(&disk.files["pending-tool/w3.json"]).unwrap();
    assert_eq!(ours["tool"], "Bash");
    assert_eq!(ours["input_summary"], r#"{"command":"touch x"}"#);
}
