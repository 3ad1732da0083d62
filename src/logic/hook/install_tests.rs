//! What an install and its undo do to settings of all kinds.

use serde_json::Value;

use super::*;

fn command(ng: &str) -> HookCommand {
    HookCommand { ng: ng.into(), root: None, state_dir: "/n/monitor/.state".into(), window: None, is_target: false }
}

fn hooked(event: &str) -> Hooked {
    Hooked { event: event.into(), has_matcher: event == "PreToolUse", since: None }
}

fn is_ours(line: &HookLine) -> bool {
    line.state_dir == "/n/monitor/.state"
}

fn put(text: &str, ng: &str, events: &[&str]) -> Edited {
    let events: Vec<Hooked> = events.iter().map(|event| hooked(event)).collect();
    install(text, &command(ng), &events.iter().collect::<Vec<_>>(), &is_ours).unwrap()
}

const OTHERS: &str = r#"{
    "model": "opus",
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "say done", "timeout": 3}]}
        ],
        "PreToolUse": [
            {
                "matcher": "Bash",
                "hooks": [
                    {"type": "command", "command": "guard.sh"}
                ]
            }
        ]
    },
    "permissions": { "allow": [ "Bash(ls:*)" ], "unknown": 1.0e3 }
}
"#;

#[test]
fn an_install_adds_to_what_others_have_and_its_undo_leaves_their_bytes() {
    for text in [
        OTHERS,
        "{}",
        "{}\n",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}]}}",
        "{\n\t\"a\": 1\n}\n",
        "{\r\n  \"a\": 1\r\n}\r\n",
        "\u{feff}{\n  \"a\": \"ü\"\n}",
    ] {
        let installed = put(text, "/opt/ng", &["PreToolUse", "Stop", "Notification"]);
        assert_eq!(installed.changes.len(), 3, "{text}");
        let value: Value = serde_json::from_str(installed.text.trim_start_matches('\u{feff}')).unwrap();
        assert_eq!(super::super::commands_of(&value).len(), 3, "{}", installed.text);
        let again = put(&installed.text, "/opt/ng", &["PreToolUse", "Stop", "Notification"]);
        assert_eq!((again.text.as_str(), again.changes.len()), (installed.text.as_str(), 0), "{text}");
        let back = uninstall(&installed.text, &is_ours).unwrap();
        assert_eq!(back.text, text);
        assert_eq!(back.changes.len(), 3);
    }
}

#[test]
fn what_is_added_reads_like_the_file_it_is_added_to() {
    let installed = put("{\n  \"model\": \"opus\"\n}\n", "/opt/ng", &["PreToolUse"]);
    let expected = r#"{
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "*",
        "hooks": [
          {
            "type": "command",
            "command": "/opt/ng hook PreToolUse --state /n/monitor/.state",
            "timeout": 10
          }
        ]
      }
    ]
  }
}
"#;
    assert_eq!(installed.text, expected);
}

#[test]
fn an_empty_file_becomes_whole_settings() {
    for text in ["", "\n", "  "] {
        let installed = put(text, "/opt/ng", &["Stop"]);
        assert!(installed.text.starts_with("{\n  \"hooks\"") && installed.text.ends_with("}\n"), "{}", installed.text);
        assert_eq!(uninstall(&installed.text, &is_ours).unwrap().text, "{}\n");
    }
}

#[test]
fn a_program_that_moved_is_updated_in_place_and_the_owners_changes_beside_it_stay() {
    let installed = put(OTHERS, "/old/ng", &["PreToolUse", "Stop"]);
    let changed = installed.text.replace("\"matcher\": \"*\"", "\"matcher\": \"Bash|Edit\"");
    let changed = changed.replacen("\"timeout\": 10", "\"timeout\": 4", 1);
    let moved = put(&changed, "/new/ng", &["PreToolUse", "Stop"]);
    assert_eq!(moved.changes, [("PreToolUse".into(), Change::Updated), ("Stop".into(), Change::Updated)]);
    assert_eq!(moved.text, changed.replace("/old/ng", "/new/ng"));
}

#[test]
fn an_event_that_the_version_has_lost_is_taken_out_and_a_new_one_put_in() {
    let old = put(OTHERS, "/opt/ng", &["Stop", "StopFailure"]);
    let new = put(&old.text, "/opt/ng", &["Stop", "Elicitation"]);
    assert_eq!(new.changes, [("Elicitation".into(), Change::Added), ("StopFailure".into(), Change::Removed)]);
    assert!(!new.text.contains("StopFailure"));
}

#[test]
fn ours_in_an_entry_with_others_goes_alone_and_twice_becomes_once() {
    let ours = "/opt/ng hook Stop --state /n/monitor/.state";
    let text = format!(
        r#"{{"hooks":{{"Stop":[{{"hooks":[{{"type":"command","command":"{ours}"}},{{"type":"command","command":"x"}}]}},{{"hooks":[{{"type":"command","command":"{ours}"}}]}}]}}}}"#
    );
    let once = put(&text, "/opt/ng", &["Stop"]);
    assert_eq!((once.text.matches(ours).count(), once.changes.len()), (1, 1));
    let none = uninstall(&text, &is_ours).unwrap();
    assert_eq!(none.text, r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}}"#);
}

#[test]
fn the_hooks_of_another_nexus_are_left_alone() {
    let other = HookCommand { state_dir: "/m/monitor/.state".into(), ..command("/opt/ng") };
    let stop = hooked("Stop");
    let text = install("{}", &other, &[&stop], &|line| line.state_dir == "/m/monitor/.state").unwrap().text;
    let both = put(&text, "/opt/ng", &["Stop"]);
    assert_eq!(both.text.matches("ng hook Stop").count(), 2);
    assert_eq!(uninstall(&both.text, &is_ours).unwrap().text, text);
}

#[test]
fn what_is_no_settings_is_refused_with_its_place() {
    for (text, line, words) in [
        ("[]", 1, "settings are an object"),
        ("{\n \"hooks\": []\n}", 2, "`hooks` is an object"),
        ("{\n \"hooks\": {\n  \"Stop\": {}\n }\n}", 3, "`hooks.Stop` is a list"),
        ("{\n // mine\n}", 2, "key must be a string"),
        ("{\n \"a\": 1,\n \"a\": 2\n}", 3, "stands twice"),
    ] {
        let stop = hooked("Stop");
        let mistake = install(text, &command("/opt/ng"), &[&stop], &is_ours).unwrap_err();
        assert_eq!(mistake.line, line, "{text}: {mistake}");
        assert!(mistake.what.contains(words), "{text}: {mistake}");
        assert!(uninstall(text, &is_ours).is_err());
    }
}

#[test]
fn entries_of_unknown_kinds_are_no_concern_of_ours() {
    let text = r#"{"hooks":{"Stop":[null,7,{"hooks":"x"},{"hooks":[{"type":"http","url":"u"},null]}],"New":[[]]}}"#;
    let installed = put(text, "/opt/ng", &["Stop"]);
    assert_eq!(uninstall(&installed.text, &is_ours).unwrap().text, text);
}
