//! Real agents, driven through a private tmux server and a scripted model. Needs what `scripts/test.sh` installs;
//! built only with the feature `lab`.

#[path = "support/lab.rs"]
mod lab;
#[path = "support/scene.rs"]
mod scene;
#[path = "support/tmux_server.rs"]
mod tmux_server;

use std::time::Duration;

use lab::{Lab, hook_settings, transcripts};
use scene::{LEAD, LeadHooks, PATIENCE, Scene};
use serde_json::Value;
use tmux_server::wait_until;

/// Whether an emit's row says that it arrived.
fn received(emit: &Value) -> bool {
    emit["received"] == true
}

/// Whether an emit's row says that nothing was typed, for this reason.
fn held(reason: &'static str) -> impl Fn(&Value) -> bool {
    move |emit| emit["outcome"] == "held" && emit["detail"].as_str().is_some_and(|detail| detail.starts_with(reason))
}

/// What every emit ends with.
const MARK: &str = "nexus-emit-sig";

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

#[test]
fn an_emit_arrives_and_each_witness_alone_proves_it() {
    let mut scene = Scene::start(LeadHooks::On);
    let own = scene.own_decision();
    scene.watch(&[]);
    let emit = scene.wait_emit(&own, "the emit to be received", received);
    scene.assert_told_once(&own, &emit);
    for witness in ["hook", "transcript", "screen"] {
        // A short one and one of more than a hundred lines; the agent folds both while they stand in its box.
        for count in [1, 25] {
            check_proof(&mut scene, witness, count);
        }
    }
}

#[test]
fn without_hooks_the_transcript_and_the_screen_each_prove_it_alone() {
    let mut scene = Scene::start(LeadHooks::Off);
    for witness in ["transcript", "screen"] {
        for count in [1, 25] {
            check_proof(&mut scene, witness, count);
        }
    }
    assert!(!scene.lab.state().join("orchestrator-paste-received").exists(), "the orchestrator has no hooks");
    // With every witness allowed it arrives as well.
    let decision = scene.decide(1).remove(0);
    scene.watch(&[]);
    let emit = scene.wait_emit(&decision, "the emit to be received", received);
    scene.assert_told_once(&decision, &emit);
}

#[test]
fn an_emit_for_a_busy_orchestrator_waits_in_its_queue_and_is_told_once() {
    let mut scene = Scene::start(LeadHooks::On);
    for witness in ["hook", "transcript", "screen"] {
        for count in [1, 25] {
            scene.wait_for_rest();
            scene.lab.tmux.send(LEAD, "SCENARIO:slow 9");
            scene.lab.tmux.wait_for(LEAD, "esc to interrupt", PATIENCE);
            let (decision, emit) = check_queued(&mut scene, witness, count);
            scene.assert_told_once(&decision, &emit);
        }
    }
}

#[test]
fn the_screen_alone_proves_a_second_emit_in_the_queue() {
    let mut scene = Scene::start(LeadHooks::Off);
    scene.lab.tmux.send(LEAD, "SCENARIO:slow 12");
    scene.lab.tmux.wait_for(LEAD, "esc to interrupt", PATIENCE);
    let told = [1, 25].map(|count| check_queued(&mut scene, "screen", count));
    for (decision, emit) in told {
        scene.assert_told_once(&decision, &emit);
    }
}

#[test]
fn an_emit_that_comes_while_a_command_runs_is_told_once() {
    let mut scene = Scene::start(LeadHooks::On);
    for witness in ["hook", "transcript", "screen"] {
        scene.wait_for_rest();
        scene.lab.tmux.send(LEAD, "SCENARIO:bash python3 -c 'import time; time.sleep(8)'");
        scene.lab.tmux.wait_for(LEAD, "Running", PATIENCE);
        let (decision, emit) = check_queued(&mut scene, witness, 1);
        scene.assert_told_once(&decision, &emit);
    }
}

#[test]
fn a_draft_is_kept_and_the_emit_is_told_once_when_it_is_gone() {
    let mut scene = Scene::start(LeadHooks::On);
    scene.lab.tmux.paste(LEAD, "half a thought");
    scene.lab.tmux.wait_for(LEAD, "half a thought", PATIENCE);
    let own = scene.own_decision();
    scene.watch(&[]);
    scene.wait_emit(&own, "the emit to be held", held("draft"));
    // It is looked at again and again meanwhile.
    scene.outlast(Duration::from_secs(5));
    assert_eq!(scene.told(MARK), 0, "{}", scene.story());
    assert_eq!(scene.told("half a thought"), 0, "{}", scene.story());
    assert!(scene.lab.tmux.screen(LEAD).contains("half a thought"), "{}", scene.story());

    scene.lab.tmux.key(LEAD, "C-c");
    let emit = scene.wait_emit(&own, "the emit to be received", received);
    scene.assert_told_once(&own, &emit);
    assert_eq!(scene.told("half a thought"), 0, "{}", scene.story());
}

#[test]
fn an_open_dialog_is_not_answered_and_the_emit_is_told_once_when_it_is_gone() {
    let mut scene = Scene::start(LeadHooks::On);
    let touched = scene.lab.dir().join("touched");
    scene.lab.tmux.send(LEAD, &format!("SCENARIO:bash touch {}", touched.display()));
    scene.lab.tmux.wait_for(LEAD, "Do you want to proceed", PATIENCE);
    let own = scene.own_decision();
    scene.watch(&[]);
    scene.wait_emit(&own, "the emit to be held", held("dialog"));
    scene.outlast(Duration::from_secs(5));
    assert_eq!(scene.told(MARK), 0, "{}", scene.story());
    assert!(scene.lab.tmux.screen(LEAD).contains("Do you want to proceed"), "{}", scene.story());

    scene.lab.tmux.key(LEAD, "Escape");
    let emit = scene.wait_emit(&own, "the emit to be received", received);
    scene.assert_told_once(&own, &emit);
    assert!(!touched.exists(), "nobody allowed the command\n{}", scene.story());
}

#[test]
fn a_fold_that_a_killed_watcher_left_is_sent_by_the_next_and_told_once() {
    let mut scene = Scene::start(LeadHooks::On);
    let own = scene.own_decision();
    scene.watch_until_killed("after-fold");
    scene.lab.tmux.wait_for(LEAD, r"\[Pasted text #\d+ \+\d+ lines\]", PATIENCE);
    assert_eq!(scene.told(MARK), 0, "{}", scene.story());
    scene.watch(&[]);
    let emit = scene.wait_emit(&own, "the emit to be received", received);
    scene.assert_told_once(&own, &emit);
    assert!(emit["repeat_of"].is_null(), "{}", scene.story());
}

#[test]
fn a_number_of_a_fold_is_not_used_again() {
    let scene = Scene::start(LeadHooks::On);
    let fold = |what: &str| {
        scene.lab.tmux.paste(LEAD, "one\ntwo\nthree\nfour\nfive");
        scene.wait(&format!("the fold {what}"), || {
            let screen = scene.lab.tmux.screen(LEAD);
            let (_, rest) = screen.rsplit_once("[Pasted text #")?;
            rest.split(' ').next()?.parse::<u32>().ok()
        })
    };
    let gone = |what: &str| {
        scene.wait(what, || (!scene.lab.tmux.screen(LEAD).contains("[Pasted text #")).then_some(()));
    };
    let mut numbers = vec![fold("at first")];
    scene.lab.tmux.key(LEAD, "C-c");
    gone("the box to be cleared");
    numbers.push(fold("after clearing"));
    scene.lab.tmux.key(LEAD, "Enter");
    gone("the prompt to be sent");
    scene.wait_for_rest();
    numbers.push(fold("after sending"));
    scene.lab.tmux.key(LEAD, "C-c");
    gone("the box to be cleared again");
    scene.lab.tmux.send(LEAD, "/clear");
    scene.wait("the conversation to be forgotten", || scene.lab.tmux.screen(LEAD).contains("/clear").then_some(()));
    scene.wait_for_rest();
    numbers.push(fold("after /clear"));
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
}

#[test]
fn a_text_that_ng_sends_reaches_the_model_once_whoever_sees_it() {
    let scene = Scene::start(LeadHooks::On);
    let long = |n: usize| (0..60).map(|line| format!("row {line} of text {n}")).collect::<Vec<_>>().join("\n");
    let mut number = 0;
    let mut send = |witnesses: &str, text: &str, outcome: &str| {
        number += 1;
        scene.configure(&[&format!("witnesses: [{witnesses}]")]);
        let text = format!("{text}\nthis is the end of number {number:02}");
        let (code, answer) = scene.lab.ng(&["send", LEAD, "--no-wait", "--json", "-m", &text]);
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        assert_eq!((code, &answer["outcome"]), (0, &outcome.into()), "{answer}\n{}", scene.story());
        format!("the end of number {number:02}")
    };
    let mut told = Vec::new();
    for witness in ["hook", "transcript", "screen", "hook, transcript, screen"] {
        for text in [
            "please look at the tests",
            &long(1),
            "what nobody\u{200b} sees\u{202e} is gone \u{1f468}\u{200d}\u{1f469}",
        ] {
            scene.wait_for_rest();
            told.push(send(witness, text, "delivered"));
        }
    }
    scene.wait_for_rest();
    scene.lab.tmux.send(LEAD, "SCENARIO:slow 25");
    scene.lab.tmux.wait_for(LEAD, "esc to interrupt", PATIENCE);
    told.push(send("hook, transcript, screen", "and then rebase", "queued"));
    told.push(send("hook, transcript, screen", &long(2), "queued"));
    for mark in told {
        scene.wait(&format!("{mark} to reach the model"), || (scene.told(&mark) > 0).then_some(()));
        assert_eq!(scene.told(&mark), 1, "{mark}\n{}", scene.story());
    }
    // A dialog is nobody's to answer by a text.
    let (code, _) = scene.lab.ng(&["send", "w2", "--no-wait", "-m", "please look at the tests"]);
    assert_eq!(code, 7, "{}", scene.story());
    assert!(scene.lab.tmux.screen("w2").contains("Do you want to proceed"), "{}", scene.story());
}

/// Asserts that an emit about so many new decisions is received, by this witness alone, and told once.
fn check_proof(scene: &mut Scene, witness: &str, count: usize) {
    scene.wait_for_rest();
    let decisions = scene.decide(count);
    scene.watch(&[&format!("witnesses: [{witness}]")]);
    let what = format!("{witness} to prove {count} decisions");
    let emit = scene.wait_emit(&decisions[0], &what, received);
    assert_eq!((&emit["witness"], &emit["outcome"]), (&witness.into(), &"verified".into()), "{}", scene.story());
    scene.assert_told_once(&decisions[0], &emit);
}

/// Asserts that an emit for an orchestrator whose turn runs is proven by this witness alone while it waits. Returns the
/// decision and the emit, to be told once when it is taken up.
fn check_queued(scene: &mut Scene, witness: &str, count: usize) -> (String, Value) {
    let decisions = scene.decide(count);
    scene.watch(&[&format!("witnesses: [{witness}]")]);
    let what = format!("{witness} to prove {count} decisions in the queue");
    let emit = scene.wait_emit(&decisions[0], &what, received);
    assert_eq!((&emit["witness"], &emit["outcome"]), (&witness.into(), &"queued".into()), "{}", scene.story());
    assert_eq!(scene.told(&format!("fp={} ", decisions[0])), 0, "it waits in the queue\n{}", scene.story());
    (decisions[0].clone(), emit)
}
