//! Real agents, driven through a private tmux server and a scripted model. Needs what `scripts/test.sh` installs;
//! built only with the feature `lab`.

#[path = "support/lab.rs"]
mod lab;
#[path = "support/tmux_server.rs"]
mod tmux_server;

use std::time::Duration;

use lab::{Lab, hook_settings, transcripts};
use serde_json::Value;
use tmux_server::wait_until;

const ANSWER: Duration = Duration::from_secs(30);

#[test]
fn claude_answers_and_its_hooks_and_session_file_tell() {
    let lab = Lab::start();
    let receipts = lab.dir().join("receipts");
    let settings =
        hook_settings(&lab.dir().join("settings.json"), &["SessionStart", "UserPromptSubmit", "Stop"], |event| {
            format!("{{ cat; echo; }} >> '{}-{event}'", receipts.display())
        });
    let home = lab.claude("orchestrator").settings(&settings).start_ready();
    lab.tmux.send("orchestrator", "SCENARIO:text the answer is forty-two");
    lab.tmux.wait_for("orchestrator", "● the answer is forty-two", ANSWER);

    for event in ["SessionStart", "UserPromptSubmit", "Stop"] {
        let payload = wait_until(&format!("the {event} hook"), ANSWER, || {
            let text = std::fs::read_to_string(format!("{}-{event}", receipts.display())).unwrap_or_default();
            let first = text.lines().next().unwrap_or_default().to_owned();
            serde_json::from_str::<Value>(&first).map_err(|error| format!("{error}: {text}"))
        });
        assert_eq!(payload["hook_event_name"], event);
        if event == "UserPromptSubmit" {
            assert_eq!(payload["prompt"], "SCENARIO:text the answer is forty-two");
        }
    }
    wait_until("the session file's record of the prompt", ANSWER, || {
        let records = transcripts(&home);
        let typed = records.iter().flatten().any(|record| {
            record["type"] == "user" && record["message"]["content"] == "SCENARIO:text the answer is forty-two"
        });
        if typed { Ok(()) } else { Err(format!("{records:?}")) }
    });
}

#[test]
fn three_claudes_share_a_session_and_one_asks_for_permission() {
    let lab = Lab::start();
    for window in ["orchestrator", "w1", "w2"] {
        lab.claude(window).start();
    }
    for window in ["orchestrator", "w1", "w2"] {
        lab.tmux.wait_for(window, lab::READY, lab::START_WITHIN);
    }
    lab.tmux.send("w1", "SCENARIO:slow 25");
    lab.tmux.send("w2", "SCENARIO:bash rm -rf build");
    lab.tmux.wait_for("w1", "esc to interrupt", ANSWER);
    lab.tmux.wait_for("w2", "Do you want to proceed", ANSWER);
    assert!(lab.tmux.screen("orchestrator").contains("? for shortcuts"), "nobody touched the orchestrator");
}

#[test]
fn our_hooks_leave_a_receipt_and_a_decision() {
    let lab = Lab::start();
    let hooks = lab.hooks("orchestrator", true);
    lab.claude("orchestrator").settings(&hooks).start();
    let hooks = lab.hooks("w2", false);
    lab.claude("w2").settings(&hooks).start();
    for window in ["orchestrator", "w2"] {
        lab.tmux.wait_for(window, lab::READY, lab::START_WITHIN);
    }
    lab.tmux.send("orchestrator", "SCENARIO:text read it");
    lab.tmux.send("w2", "SCENARIO:bash rm -rf build");
    let receipt = lab.state().join("orchestrator-paste-received");
    wait_until("the receipt of the orchestrator's prompt", ANSWER, || {
        receipt.exists().then_some(()).ok_or_else(|| lab.tmux.screen("orchestrator"))
    });
    wait_until("the decision of w2", ANSWER, || {
        let records = std::fs::read_dir(lab.state().join("decisions")).into_iter().flatten().flatten();
        let mut names = records.map(|record| record.file_name().to_string_lossy().into_owned());
        names.find(|name| name.starts_with("w2.")).ok_or_else(|| lab.tmux.screen("w2"))
    });
}
