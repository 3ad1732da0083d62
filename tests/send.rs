//! `ng send` and `monitor/paste-followup.sh`: what people and agents type goes the way of the watcher's own reports. What
//! counts is what the receiving program got, by its own log.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use std::path::Path;
use std::process::{Command, Stdio};

use fleet::Fleet;
use serde_json::Value;

/// Asserts that nothing was typed into a window.
fn assert_untouched(fleet: &Fleet, window: &str) {
    let log = fleet.log(window);
    assert!(log.iter().all(|event| event["event"] != "read"), "{window}: {log:?}");
}

/// Sends with an exit code; the message names what it is about.
fn check(fleet: &Fleet, args: &[&str], code: i32, says: &str) {
    let mut all = vec!["send"];
    all.extend(args);
    let (got, text) = fleet.ng(&all);
    assert_eq!(got, code, "{args:?}: {text}");
    assert!(text.contains(says), "{args:?}: {text}");
}

/// The rows of `ng send --list`.
fn rows(fleet: &Fleet) -> Vec<Value> {
    let (code, text) = fleet.ng(&["send", "--list", "--json"]);
    assert_eq!(code, 0, "{text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_text_arrives_once_and_the_exit_code_says_so() {
    let fleet = Fleet::new();
    fleet.agent("w1", &fleet.hooks("w1"));
    fleet.agent("w2", "--busy");
    check(&fleet, &["w1", "-m", "please look at the tests"], 0, "delivered to w1");
    check(&fleet, &["w1", "-m", "yes"], 0, "delivered to w1");
    check(&fleet, &["w2", "--no-wait", "-m", "and then rebase on main"], 0, "queued in w2");
    let lines: Vec<String> = (1..=20).map(|n| format!("line {n}")).collect();
    check(&fleet, &["w1", "-m", &lines.join("\n")], 0, "delivered to w1");
    assert_eq!(fleet.submitted("w1"), ["please look at the tests", "yes", &lines.join("\n")]);
    assert_eq!(fleet.submitted("w2"), ["and then rebase on main"]);
    // Each is stamped as the machine's before it is typed.
    let stamps = std::fs::read_to_string(fleet.state("machine-input.tsv")).unwrap();
    assert!(stamps.lines().all(|line| line.ends_with("\tng-send")), "{stamps}");
    let told: Vec<Value> = rows(&fleet);
    assert_eq!(
        told.iter().map(|row| row["outcome"].clone()).collect::<Vec<_>>(),
        ["delivered", "delivered", "queued", "delivered"]
    );
}

/// P33, P34, P45, P50: a draft, a dialog, a tmux mode, a dead pane.
#[test]
fn what_is_in_the_way_is_named_and_nothing_is_typed() {
    let fleet = Fleet::new();
    fleet.agent("draft", "--draft 'merge only after'");
    fleet.agent("dialog", "--dialog permission");
    fleet.agent("copy", "");
    fleet.agent("dead", "");
    fleet.agent("twin", "");
    fleet.tmux(&["new-window", "-d", "-t", "nexus:", "-n", "twin", "sleep 1000"]);
    fleet.tmux(&["copy-mode", "-t", &fleet.window("copy")]);
    let dead = fleet.window("dead");
    fleet.tmux(&["set-option", "-w", "-t", &dead, "remain-on-exit", "on"]);
    fleet.tell("dead", "exit 3");
    fleet.wait("the pane to die", || fleet.tmux(&["list-panes", "-t", &dead, "-F", "#{pane_dead}"]) == "1");
    for (window, code, says) in [
        ("draft", 7, "draft: somebody's unsent text"),
        ("dialog", 7, "dialog: a dialog is open"),
        ("copy", 7, "copy-mode: "),
        ("dead", 5, "is dead"),
        ("twin", 2, "means several windows; ask for one of @"),
        ("nobody", 6, "no window \"nobody\""),
        ("@99", 6, "no window \"@99\""),
        ("%99", 6, "no pane %99"),
    ] {
        check(&fleet, &[window, "--no-wait", "-m", "please look at the tests"], code, says);
    }
    for window in ["draft", "dialog", "copy", "dead", "twin"] {
        assert_untouched(&fleet, window);
    }
    assert!(fleet.server_lives());
    // An id means one window, also where the name does not.
    let twin = fleet.tmux(&["list-windows", "-t", "nexus", "-F", "#{window_id} #{window_name}"]);
    let twin = twin.lines().find_map(|line| line.strip_suffix(" twin")).unwrap();
    check(&fleet, &[twin, "-m", "please look at the tests"], 0, "delivered to twin");
    assert_eq!(fleet.submitted("twin").len(), 1);
}

#[test]
fn nothing_is_typed_into_a_pane_that_leads_elsewhere() {
    let fleet = Fleet::new();
    let log = fleet.root().join("behind.log").display().to_string();
    let agent = format!("exec {} demo agent --root {} --log {log}", env!("CARGO_BIN_EXE_ng"), fleet.root().display());
    fleet.tmux(&["new-session", "-d", "-s", "inner", "-n", "behind", "-x", "120", "-y", "40", &agent]);
    let socket = fleet.tmux(&["display-message", "-p", "#{socket_path}"]);
    let attach = format!("TMUX= exec tmux -u -S {socket} attach -t inner");
    fleet.tmux(&["new-window", "-d", "-t", "nexus:", "-n", "outer", &attach]);
    fleet.wait("the idle box behind to show", || fleet.screen("outer").contains('\u{276f}'));
    let (code, text) = fleet.ng(&["pane-state", "outer"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("state=unknown ") && text.contains(" reason=not-watched "), "{text}");
    check(&fleet, &["outer", "--no-wait", "-m", "please look at the tests"], 7, "cannot-tell: ");
    assert_untouched(&fleet, "behind");
}

#[test]
fn usage_errors_are_two_and_say_what_to_give() {
    let fleet = Fleet::new();
    fleet.agent("w1", "");
    for (args, says) in [
        (&["w1", "-m", " \n\u{200b} "] as &[&str], "there is no text"),
        (&["w1"], "there is no text"),
        (&["w1", "--file", "/nonexistent"], "there is no file /nonexistent"),
        (&["w1", "-m", "x", "--src", "two words"], "--src is one word"),
        (&["w1", "-m", "x", "--file", "y"], "cannot be used with"),
        (&[], "required"),
    ] {
        check(&fleet, args, 2, says);
    }
    assert_untouched(&fleet, "w1");
}

#[test]
fn it_waits_for_an_idle_prompt() {
    let fleet = Fleet::new();
    fleet.agent("w1", "--busy");
    let mut send = fleet.command(env!("CARGO_BIN_EXE_ng"));
    let send = send.args(["send", "w1", "--wait", "60", "-m", "please look at the tests"]);
    let mut child = send.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    fleet.tell("w1", "idle");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let submitted: Vec<Value> = fleet.log("w1").into_iter().filter(|event| event["event"] == "submit").collect();
    assert_eq!(submitted.len(), 1);
    assert_eq!(submitted[0]["queued"], false, "it was sent when the turn had ended");
}

/// P29: Enter alone is repeated.
#[test]
fn an_enter_that_is_dropped_is_repeated_and_the_text_is_not() {
    let fleet = Fleet::new();
    fleet.agent("w1", "--drop-enter 2");
    fleet.agent("w2", "--drop-enter 99");
    check(&fleet, &["w1", "-m", "please look at the tests"], 0, "delivered to w1");
    assert_eq!(fleet.submitted("w1"), ["please look at the tests"]);
    check(&fleet, &["w2", "--confirm-timeout", "4", "-m", "please look at the tests"], 4, "not sent");
    // Where the text stands, a second one is not typed.
    check(&fleet, &["w2", "--no-wait", "-m", "please look at the tests"], 7, "draft");
    assert!(fleet.submitted("w2").is_empty());
    assert_eq!(fleet.screen("w2").matches("please look at the tests").count(), 1);
}

#[test]
fn without_a_stamp_of_machine_input_no_key_is_pressed() {
    let fleet = Fleet::new();
    fleet.agent("w1", "");
    std::fs::create_dir(fleet.state("machine-input.tsv")).unwrap();
    check(&fleet, &["w1", "--no-wait", "-m", "please look at the tests"], 7, "no-journal");
    assert_untouched(&fleet, "w1");
}

#[test]
fn a_text_is_left_in_the_box_if_it_is_asked_for() {
    let fleet = Fleet::new();
    fleet.agent("w1", "");
    check(&fleet, &["w1", "--no-enter", "-m", "please look at the tests"], 0, "placed in the input box of w1");
    assert!(fleet.screen("w1").contains("please look at the tests"));
    assert!(fleet.submitted("w1").is_empty());
    let stamps = std::fs::read_to_string(fleet.state("machine-input.tsv")).unwrap();
    assert!(stamps.ends_with("\tng-send-no-enter\n"), "{stamps}");
}

/// P40: control bytes are stripped.
#[test]
fn what_nobody_can_see_is_not_sent() {
    let fleet = Fleet::new();
    fleet.agent("w1", "");
    let text =
        "please\u{200b} look\u{202e} at\u{ad} the\u{1b}[201~ tests\u{2028}and \u{1f468}\u{200d}\u{1f469} \u{7}too";
    check(&fleet, &["w1", "-m", text], 0, "delivered to w1");
    assert_eq!(fleet.submitted("w1"), ["please look at the tests\nand \u{1f468}\u{200d}\u{1f469} too"]);
}

#[test]
fn a_text_that_is_too_long_points_to_all_of_it() {
    let fleet = Fleet::new();
    fleet.configure("monitor:\n  paste:\n    max_bytes: 2000\n");
    fleet.agent("w1", &fleet.hooks("w1"));
    let lines: Vec<String> = (0..500).map(|n| format!("this is line {n}")).collect();
    let text = lines.join("\n") + "\n";
    std::fs::write(fleet.root().join("long.txt"), &text).unwrap();
    let (code, answer) = fleet.ng(&["send", "w1", "--json", "--file", fleet.root().join("long.txt").to_str().unwrap()]);
    assert_eq!(code, 0, "{answer}");
    let answer: Value = serde_json::from_str(&answer[answer.find('{').unwrap()..]).unwrap();
    let whole = answer["whole_text"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(whole).unwrap(), text);
    let submitted = fleet.submitted("w1").remove(0);
    let last = submitted.lines().last().unwrap();
    assert!(submitted.len() <= 2000 && last.ends_with(&format!(" more lines: {whole}; read that file]")), "{last}");
}

#[test]
fn many_senders_to_one_pane_never_mix_their_texts() {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.decide("keeper", "0a1b2c3d4e5f");
    let texts: Vec<String> = (0..5).map(|n| format!("sender number {n} says this {n}{n}{n}")).collect();
    fleet.watch();
    let children: Vec<_> = texts
        .iter()
        .map(|text| {
            let mut send = fleet.command(env!("CARGO_BIN_EXE_ng"));
            send.args(["send", "orchestrator", "--wait", "60", "-m", text]).stdout(Stdio::null()).stderr(Stdio::null());
            send.spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    fleet.wait_emit("the emit to be received", |emit| emit["received"] == true);
    let submitted = fleet.submitted("orchestrator");
    for text in &texts {
        assert_eq!(submitted.iter().filter(|got| *got == text).count(), 1, "{text}: {submitted:?}");
    }
    let emits = submitted.iter().filter(|text| text.contains("0a1b2c3d4e5f")).count();
    assert_eq!(emits, 1, "{submitted:?}");
}

#[test]
fn a_send_that_was_killed_is_seen_and_its_text_is_not_typed_again() {
    for (place, pasted) in [
        ("before-journal", false),
        ("after-journal", false),
        ("after-paste", true),
        ("before-enter", true),
        ("after-enter", true),
    ] {
        let mut fleet = Fleet::new();
        fleet.agent("w1", "");
        fleet.env.push(("NEXUS_FAULT".into(), place.into()));
        let (code, _) = fleet.ng(&["send", "w1", "-m", "please look at the tests"]);
        assert_eq!(code, -1, "{place}: killed");
        fleet.env.clear();
        let told = rows(&fleet);
        assert_eq!(told.len(), usize::from(place != "before-journal"), "{place}");
        assert!(told.iter().all(|row| row["outcome"] == "intent"), "{place}: {told:?}");
        if place == "before-journal" {
            assert_untouched(&fleet, "w1");
            continue;
        }
        // The lock went with its holder, and what stands in the box is nobody's to send.
        let (code, text) = fleet.ng(&["send", "w1", "--no-wait", "-m", "another text altogether"]);
        assert!(text.contains("an earlier send to w1"), "{place}: {text}");
        let in_box = pasted && place != "after-enter";
        assert_eq!(code, if in_box { 7 } else { 0 }, "{place}: {text}");
        let twice = fleet.submitted("w1").iter().filter(|text| text.contains("please look")).count();
        assert!(twice <= 1, "{place}");
    }
}

#[test]
fn the_old_name_is_a_shim_with_its_options_and_codes() {
    let fleet = Fleet::new();
    fleet.agent("w1", "");
    fleet.agent("draft", "--draft 'merge only after'");
    let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("monitor/paste-followup.sh");
    let programs = Path::new(env!("CARGO_BIN_EXE_ng")).parent().unwrap();
    let run = |args: &[&str], input: &str| {
        let file = fleet.root().join("input");
        std::fs::write(&file, input).unwrap();
        let mut command: Command = fleet.command(shim.to_str().unwrap());
        command.args(args).env("NEXUS_BIN_DIR", programs).stdin(std::fs::File::open(file).unwrap());
        command.output().unwrap().status.code().unwrap()
    };
    let about = ["--note", "nudge", "--issue", "42", "--comment", "7", "--confirm-timeout", "20"];
    assert_eq!(run(&[&["w1"], &about[..]].concat(), "please look at the tests\n"), 0);
    assert_eq!(run(&["draft", "--message", "please look at the tests"], ""), 7);
    assert_eq!(run(&["nobody", "--message", "x"], ""), 6);
    assert_eq!(run(&["w1", "--no-such-flag"], ""), 2);
    assert_eq!(fleet.submitted("w1"), ["please look at the tests"]);
    let stamps = std::fs::read_to_string(fleet.state("machine-input.tsv")).unwrap();
    assert!(stamps.lines().all(|line| line.starts_with("w1\t") && line.ends_with("\tpaste-followup")), "{stamps}");
    let log = std::fs::read_to_string(fleet.state("action-log.jsonl")).unwrap();
    let event: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    for (key, value) in [
        ("event", "paste-followup"),
        ("window", "w1"),
        ("outcome", "delivered"),
        ("rc", "0"),
        ("issue", "42"),
        ("comment", "7"),
        ("note", "nudge"),
    ] {
        assert_eq!(event[key], value, "{event}");
    }
    assert_eq!(log.lines().count(), 1, "{log}");
}

#[test]
fn a_text_with_a_key_is_typed_at_most_once_whatever_ends_in_between() {
    const TEXT: &str = "please look at the tests";
    let mut fleet = Fleet::new();
    fleet.agent("w1", &format!("{} --draft 'merge only after'", fleet.hooks("w1")));
    let once = ["w1", "--no-wait", "--once", "nudge w1 of issue 42", "-m", TEXT];
    // What is refused costs no attempt.
    check(&fleet, &once, 7, "draft: ");
    fleet.tell("w1", "draft ");
    fleet.wait("the draft to be gone", || !fleet.screen("w1").contains("merge only"));
    check(&fleet, &once, 0, "delivered to w1");
    check(&fleet, &once, 7, "once: it was typed before under this key");
    check(&fleet, &["w1", "--once", "nudge w1 of issue 43", "-m", TEXT], 0, "delivered to w1");
    assert_eq!(fleet.submitted("w1"), [TEXT, TEXT]);
    // A killed sender leaves its key behind: nobody knows how far it got.
    for place in ["before-act", "after-act", "after-enter"] {
        fleet.agent(place, "");
        let args = ["send", place, "--once", place, "-m", TEXT];
        fleet.env.push(("NEXUS_FAULT".into(), place.into()));
        assert_eq!(fleet.ng(&args).0, -1, "{place}: killed");
        fleet.env.clear();
        fleet.tmux(&["send-keys", "-t", &fleet.window(place), "C-c"]);
        let (code, said) = fleet.ng(&args);
        assert!(code == 7 && said.contains("once: "), "{place}: {code} {said}");
        assert!(fleet.submitted(place).len() <= 1, "{place}");
    }
    check(&fleet, &["w1", "--once", " ", "-m", TEXT], 2, "--once");
}

#[test]
fn of_many_senders_with_one_key_one_types() {
    let fleet = Fleet::new();
    fleet.agent("w1", "");
    let children: Vec<_> = (0..5)
        .map(|_| {
            let mut send = fleet.command(env!("CARGO_BIN_EXE_ng"));
            send.args(["send", "w1", "--wait", "60", "--once", "a key", "-m", "please look at the tests"]);
            send.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let mut codes: Vec<_> = children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap()).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 7, 7, 7, 7]);
    assert_eq!(fleet.submitted("w1"), ["please look at the tests"]);
}
