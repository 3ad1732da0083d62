//! The decision record of a prompt: its fingerprint, kind and excerpt (`protocol-facts` §6.1).

use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};

use super::payload::{Payload, bounded, clean};
use crate::logic::ids::{Fingerprint, WindowName};

/// Most lines of an excerpt.
const MAX_LINES: usize = 20;
/// Longest excerpt line, in characters.
const MAX_LINE_CHARS: usize = 300;

/// The first twelve hex digits of the SHA-1 of the parts, joined by `|`.
fn fingerprint(parts: &[&str]) -> Fingerprint {
    use std::fmt::Write as _;
    let digest = Sha1::digest(parts.join("|").as_bytes());
    let mut hex = String::with_capacity(12);
    for byte in digest.iter().take(6) {
        let _infallible = write!(hex, "{byte:02x}");
    }
    Fingerprint::parse(&hex).expect("six bytes print as twelve hex digits")
}

/// Fingerprint of the prompt about one tool call.
pub(super) fn of_tool_call(window: &WindowName, tool_use_id: &str) -> Fingerprint {
    fingerprint(&[window.as_str(), "tool", tool_use_id])
}

/// Fingerprint of a prompt whose tool call has no known id; the time keeps it apart from the same prompt later.
pub(super) fn of_prompt(window: &WindowName, payload: &Payload, at_ms: i64) -> Fingerprint {
    let input = payload.tool_input.to_string();
    let asked = if input == "null" { &payload.message } else { &input };
    fingerprint(&[
        window.as_str(),
        &payload.session_id,
        &payload.prompt_id,
        &payload.tool_name,
        asked,
        &at_ms.to_string(),
    ])
}

/// Fingerprint of a notification by the protocol: window, kind and message.
///
/// A permission notification says the same words each time, so its turn's id is part of it where the agent tells one.
pub(super) fn of_notification(window: &WindowName, kind: &str, payload: &Payload) -> Fingerprint {
    if kind == "permission_prompt" && !payload.prompt_id.is_empty() {
        let message = payload.notification_message();
        return fingerprint(&[window.as_str(), kind, message, &payload.session_id, &payload.prompt_id]);
    }
    fingerprint(&[window.as_str(), kind, payload.notification_message()])
}

/// Kind of a permission request.
pub(super) fn kind_of_request(tool_name: &str) -> &'static str {
    if tool_name == "AskUserQuestion" { "blocked_question" } else { "permission_prompt" }
}

/// What a tool call asks, for people: the question with its options, or the tool with its input.
///
/// Shape: at most 20 lines; the first one alone says what is asked.
pub(super) fn excerpt_of_tool(tool_name: &str, input: &Value) -> String {
    let mut lines = Vec::new();
    if let Some(Value::Array(questions)) = input.get("questions") {
        for question in questions {
            lines.extend(text_field(question, "question"));
            let Some(Value::Array(options)) = question.get("options") else { continue };
            for (number, option) in (1..).zip(options) {
                let label = text_field(option, "label").unwrap_or_default();
                let description = text_field(option, "description").map(|text| format!(": {text}")).unwrap_or_default();
                lines.push(format!("{number}. {label}{description}"));
            }
        }
    }
    if lines.is_empty() {
        // The field that says most comes first, on the line that the emit shows.
        let telling = ["command", "file_path", "path", "url", "query", "pattern", "plan"];
        let main = telling.iter().find_map(|key| input.get(key).and_then(Value::as_str)).unwrap_or_default();
        let mut rest = main.lines();
        let first = rest.next().unwrap_or_default();
        let tool = if tool_name.is_empty() { "a tool" } else { tool_name };
        lines.push(format!("permission to use {tool}{}{first}", if first.is_empty() { "" } else { ": " }));
        lines.extend(rest.map(str::to_owned));
        lines.extend(text_field(input, "description").map(|text| format!("({text})")));
    }
    join(lines.iter().map(String::as_str))
}

/// A message, cut to what an excerpt may hold.
pub(super) fn excerpt_of_message(message: &str) -> String {
    join(message.lines())
}

/// At most 20 clean lines.
fn join<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.take(MAX_LINES).map(|line| clean(line, MAX_LINE_CHARS)).collect::<Vec<_>>().join("\n")
}

/// A field that is a text.
fn text_field(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// What is known of the tool call, for `tool_context` and `pending-tool/<window>.json`.
///
/// `tool` and `input_summary` repeat the call in the form of the original tools, which read nothing else.
/// `truncated` says that the input is not whole, so that nobody judges a command by half of it.
pub(super) fn tool_context(payload: &Payload, tool_use_id: &str, at_s: i64) -> Value {
    let (input, truncated) = bounded(&payload.tool_input);
    let mut context = json!({
        "tool": clean(&payload.tool_name, 200),
        "input_summary": input.to_string().chars().take(200).collect::<String>(),
        "tool_name": clean(&payload.tool_name, 200),
        "tool_input": input,
        "tool_use_id": clean(tool_use_id, 200),
        "session_id": clean(&payload.session_id, 200),
        "permission_mode": clean(&payload.permission_mode, 40),
        "ts": at_s,
    });
    if truncated {
        context["truncated"] = Value::Bool(true);
    }
    context
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_shows_its_options_and_a_tool_what_it_would_do() {
        let ask = json!({"questions": [{"question": "Which?", "options": [{"label": "A", "description": "one"}, {"label": "B"}]}]});
        assert_eq!(excerpt_of_tool("AskUserQuestion", &ask), "Which?\n1. A: one\n2. B");
        let bash = json!({"command": "rm -rf build\nls", "description": "Clean"});
        assert_eq!(excerpt_of_tool("Bash", &bash), "permission to use Bash: rm -rf build\nls\n(Clean)");
        assert_eq!(excerpt_of_tool("", &Value::Null), "permission to use a tool");
    }

    #[test]
    fn a_question_is_told_from_a_permission() {
        assert_eq!(kind_of_request("AskUserQuestion"), "blocked_question");
        assert_eq!(kind_of_request("Bash"), "permission_prompt");
    }

    #[test]
    fn an_excerpt_is_short_and_has_no_control_characters() {
        let long = excerpt_of_message(&"\u{1b}[31mx\n".repeat(100));
        assert_eq!(long.lines().count(), 20);
        assert!(!long.contains('\u{1b}'));
    }

    #[test]
    fn an_idle_prompt_has_the_protocols_fingerprint() {
        let payload = Payload { message: "Claude is waiting for your input".into(), ..Payload::default() };
        let fp = of_notification(&WindowName("w3".into()), "idle_prompt", &payload);
        // sha1("w3|idle_prompt|Claude is waiting for your input"), first twelve digits.
        assert_eq!(fp.as_str(), "870a309be2b0");
    }
}
