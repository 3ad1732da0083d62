//! Writing into a pane: what went wrong with other tools, tried on ours with real tmux and demo agents. What counts is what
//! the receiving program got, byte by byte, by its own log. Others of these trials stand in `tests/delivery_real.rs`,
//! `tests/send.rs` and `tests/tmux_real.rs`, under their numbers too.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/at_once.rs"]
mod at_once;
#[path = "support/fleet.rs"]
mod fleet;

use std::process::{Child, Stdio};
use std::time::Duration;

use at_once::all_at_once;
use fleet::Fleet;

const SIGNAL: &str = "0a1b2c3d4e5f";
const TEXT: &str = "please look at the tests";
const START: &str = "\\x1b[200~";
const END: &str = "\\x1b[201~";

/// A text as it arrives in a paste: in a frame, its line ends as carriage returns.
fn framed(text: &str) -> String {
    format!("{START}{}{END}", text.replace('\n', "\r").as_bytes().escape_ascii())
}

/// What a program got outside paste frames.
fn outside(bytes: &str) -> String {
    bytes.split(START).map(|part| part.rsplit(END).next().unwrap_or_default()).collect()
}

fn told(fleet: &Fleet, fingerprint: &str) -> usize {
    fleet.submitted("orchestrator").iter().filter(|text| text.contains(fingerprint)).count()
}

/// Starts a send without waiting for its end.
fn start_send(fleet: &Fleet, window: &str, text: &str) -> Child {
    let mut send = fleet.command(env!("CARGO_BIN_EXE_ng"));
    send.args(["send", window, "--wait", "60", "-m", text]).stdout(Stdio::null()).stderr(Stdio::null());
    send.spawn().unwrap()
}

/// P28: line breaks at the end of a text are no Enter; that is a key of its own behind the frame.
#[test]
fn a_text_that_ends_in_line_breaks_is_one_frame_and_one_return() {
    let mut fleet = Fleet::new();
    fleet.agent("w1", &fleet.hooks("w1"));
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    assert_eq!(fleet.ng(&["send", "w1", "-m", "one line\nand another\n\n\n"]).0, 0);
    assert_eq!(fleet.bytes("w1"), framed("one line\nand another") + "\\r");
    fleet.decide("keeper", SIGNAL);
    fleet.watch();
    fleet.wait_emit("the report", |emit| emit["received"] == true);
    let report = fleet.submitted("orchestrator").remove(0);
    assert_eq!(fleet.bytes("orchestrator"), framed(&report) + "\\r");
}

/// P30: a folded text that stays in the box is typed and not sent, and never typed again.
#[test]
fn a_folded_text_that_no_enter_submits_is_said_to_stand_there() {
    let mut fleet = Fleet::new();
    fleet.configure("monitor:\n  interval_seconds: 1\n  paste_confirm_timeout_seconds: 6\n");
    for window in ["w1", "orchestrator"] {
        fleet.agent(window, "--drop-enter 99");
    }
    let lines: Vec<String> = (1..=60).map(|n| format!("line {n} of a long text")).collect();
    let (code, said) = fleet.ng(&["send", "w1", "--confirm-timeout", "4", "-m", &lines.join("\n")]);
    assert!(code == 4 && said.contains("not sent"), "{code}: {said}");
    for n in 0..20 {
        fleet.decide("keeper", &format!("0a1b2c3d4e{n:02x}"));
    }
    fleet.watch();
    fleet.wait_emit("the report to be unknown", |emit| {
        emit["outcome"] == "unknown" && emit["detail"].as_str().is_some_and(|why| why.starts_with("unproven-text"))
    });
    for window in ["w1", "orchestrator"] {
        assert!(fleet.screen(window).contains("[Pasted text #1 +"), "{window}");
        assert!(fleet.submitted(window).is_empty(), "{window}");
        assert_eq!(fleet.bytes(window).matches(START).count(), 1, "{window}");
    }
}

/// P31: what this tmux makes of a pasted text.
#[test]
fn a_text_arrives_byte_by_byte_as_it_was_sent() {
    let fleet = Fleet::new();
    fleet.agent("w1", &fleet.hooks("w1"));
    let texts = [
        "tabs\tand  blanks, a \\ backslash, \\033[31m, ^[[201~ and \\e",
        "#{pid} #(date) %H:%M $HOME `id` ; kill-server ;\n'quotes' \"both\" {braces}",
        "Grüße, 日本語, 한국어, \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} and שלום",
    ];
    for text in texts {
        assert_eq!(fleet.ng(&["send", "w1", "-m", text]).0, 0, "{text}");
    }
    let expected: String = texts.iter().map(|text| framed(text) + "\\r").collect();
    assert_eq!(fleet.bytes("w1"), expected);
}

/// P36: what waits in the queue of a busy agent is not sent again, however long it waits.
#[test]
fn a_queued_report_is_one_copy_after_further_reports() {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&format!("{} --busy", fleet.hooks("orchestrator")));
    fleet.decide("keeper", SIGNAL);
    fleet.watch();
    fleet.wait_emit("the first to be queued", |emit| emit["outcome"] == "queued");
    for round in 1..=3 {
        let later = format!("00000000000{round}");
        fleet.decide("keeper", &later);
        fleet.wait_settled("the next", || told(&fleet, &later) == 1);
        assert_eq!(told(&fleet, SIGNAL), 1, "round {round}");
    }
    fleet.tell("orchestrator", "idle");
    fleet.wait_settled("the queue to be taken up", || {
        fleet.log("orchestrator").iter().any(|event| event["event"] == "taken-up")
    });
    assert_eq!(told(&fleet, SIGNAL), 1);
}

/// P39: eight senders to eight panes at once, again and again; no text goes astray and no buffer stays.
/// `NEXUS_ROUNDS` says how often.
#[test]
fn texts_of_many_senders_at_once_never_cross() {
    let rounds: usize = std::env::var("NEXUS_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let fleet = Fleet::new();
    let windows: Vec<String> = (0..8).map(|n| format!("w{n}")).collect();
    for window in &windows {
        fleet.agent(window, "");
    }
    let text = |window: &str, round: usize| format!("for {window} in round {round}: {TEXT}");
    for round in 0..rounds {
        let sends: Vec<Child> = windows.iter().map(|window| start_send(&fleet, window, &text(window, round))).collect();
        for mut send in sends {
            assert_eq!(send.wait().unwrap().code(), Some(0), "round {round}");
        }
    }
    for window in &windows {
        let expected: Vec<String> = (0..rounds).map(|round| text(window, round)).collect();
        assert_eq!(fleet.submitted(window), expected);
    }
    assert_eq!(fleet.tmux(&["list-buffers"]), "");
}

/// P39: a sender that is killed at any moment leaves no buffer behind, and nothing half of a text.
#[test]
fn a_sender_that_is_killed_leaves_no_buffer_and_no_half_of_a_text() {
    let text = format!("{TEXT} {}", "and another line of a long text\n".repeat(900));
    let whole = framed(text.trim_end());
    let places = ["before-journal", "before-act", "after-act", "after-paste", "before-enter"].map(Ok);
    // How far a sender gets in these milliseconds differs from run to run.
    let moments = (1..=8).map(|n| Err(300 * n));
    all_at_once(places.into_iter().chain(moments).collect(), |moment: Result<&str, u64>| {
        let mut fleet = Fleet::new();
        fleet.agent("w1", "");
        match moment {
            Ok(place) => {
                fleet.env.push(("NEXUS_FAULT".into(), place.into()));
                assert_eq!(start_send(&fleet, "w1", &text).wait().unwrap().code(), None, "{place}: killed");
                fleet.env.clear();
            }
            Err(millis) => {
                let mut send = start_send(&fleet, "w1", &text);
                // Not to wait for anything: how far the sender gets is what is tried.
                std::thread::sleep(Duration::from_millis(millis));
                send.kill().unwrap();
                send.wait().unwrap();
            }
        }
        // What was on its way to tmux still arrives, and whole.
        let got = || fleet.bytes("w1");
        fleet.wait("nothing or a whole text", || got().is_empty() || got().starts_with(&whole));
        match moment {
            Ok("before-journal" | "before-act") => assert_eq!(got(), "", "{moment:?}"),
            Ok(_) => fleet.wait("a whole text", || got() == whole),
            Err(_) => {}
        }
        // The next sender finds nothing of it in tmux.
        fleet.agent("w2", "");
        assert_eq!(fleet.ng(&["send", "w2", "-m", TEXT]).0, 0, "{moment:?}");
        assert_eq!(fleet.tmux(&["list-buffers"]), "", "{moment:?}");
    });
}

/// P41: no Escape is ever sent, whatever the agent is doing.
#[test]
fn no_escape_is_part_of_any_delivery() {
    let cases = vec!["", "--busy", "--vim", "--vim --busy", "--drop-enter 1", "--ghost 'run the tests'", "--inline"];
    all_at_once(cases, |switches| {
        let mut fleet = Fleet::new();
        fleet.agent("w1", switches);
        fleet.orchestrator(&format!("{} {switches}", fleet.hooks("orchestrator")));
        fleet.decide("keeper", SIGNAL);
        fleet.watch();
        fleet.wait_emit(switches, |emit| emit["received"] == true);
        let (code, said) = fleet.ng(&["send", "w1", "--wait", "2", "-m", TEXT]);
        assert_eq!(code, 0, "{switches}: {said}");
        for window in ["w1", "orchestrator"] {
            let got = fleet.bytes(window);
            assert!(got.contains(START), "{switches} {window}");
            assert!(!outside(&got).contains("\\x1b"), "{switches} {window}: {got}");
        }
    });
}

/// P42: in the normal mode of a vi box a framed text arrives as it is, and no letter of it is a command.
#[test]
fn a_vi_box_in_normal_mode_takes_a_framed_text_whole() {
    let mut fleet = Fleet::new();
    fleet.agent("w1", "--vim");
    fleet.orchestrator(&format!("{} --vim", fleet.hooks("orchestrator")));
    let text = "dd jump over\nthe lazy dog\nand :q!";
    assert_eq!(fleet.ng(&["send", "w1", "-m", text]).0, 0);
    assert_eq!(fleet.submitted("w1"), [text]);
    fleet.decide("keeper", SIGNAL);
    fleet.watch();
    let emit = fleet.wait_emit("the report", |emit| emit["received"] == true);
    let archive = fleet.state("diffs").join(emit["archive"].as_str().unwrap());
    assert_eq!(fleet.submitted("orchestrator"), [std::fs::read_to_string(archive).unwrap().trim_end()]);
}

/// P45, P47: no key goes to a dialog of any kind, neither for a report nor for a text of a person, nor because its pane is
/// silent; the window is said to be blocked.
#[test]
fn no_dialog_of_any_kind_gets_a_key() {
    let mut fleet = Fleet::new();
    fleet.configure("monitor:\n  interval_seconds: 1\n  idle_threshold_seconds: 1\n  stale_seconds: 1\n");
    let kinds = ["ask", "limit", "permission", "plan", "trust"];
    for kind in kinds {
        fleet.agent(kind, &format!("--dialog {kind}"));
    }
    // The default of this one is yes.
    let keys = fleet.root().join("keys");
    std::fs::copy("/bin/cat", fleet.root().join("claude")).unwrap();
    let options = "Quick safety check: is this a folder you trust?\n\n ❯ 1. Yes, I trust this folder\n   2. No, exit\n\n \
                   Enter to confirm · Esc to cancel\n";
    std::fs::write(fleet.root().join("screen"), options).unwrap();
    let root = fleet.root().display();
    let line = format!("stty raw -echo opost; cat {root}/screen; exec {root}/claude > {}", keys.display());
    fleet.tmux(&["new-window", "-d", "-t", "nexus:", "-n", "yes", &line]);
    fleet.wait("the menu", || fleet.screen("yes").contains("Enter to confirm"));
    fleet.orchestrator(&format!("{} --dialog trust", fleet.hooks("orchestrator")));
    fleet.decide("permission", SIGNAL);
    fleet.watch();
    fleet.wait_emit("the report to be held", |emit| {
        emit["outcome"] == "held" && emit["detail"].as_str().is_some_and(|why| why.starts_with("dialog"))
    });
    for window in kinds.into_iter().chain(["yes"]) {
        let (code, said) = fleet.ng(&["send", window, "--no-wait", "-m", TEXT]);
        assert_eq!(code, 7, "{window}: {said}");
        let (_, state) = fleet.ng(&["pane-state", window]);
        assert!(["state=blocked", "state=over-limit"].iter().any(|word| state.starts_with(word)), "{window}: {state}");
    }
    fleet.wait_settled("further looks", || true);
    for window in kinds.into_iter().chain(["orchestrator"]) {
        assert_eq!(fleet.bytes(window), "", "{window}");
    }
    assert_eq!(std::fs::read_to_string(&keys).unwrap(), "");
    // Who answers lets the report through, once.
    fleet.tell("orchestrator", "close");
    fleet.wait_emit("the report", |emit| emit["received"] == true);
    assert_eq!(told(&fleet, SIGNAL), 1);
}

/// P50: the target's program ends again and again while reports wait for it; the server lives, and the news are told once.
#[test]
fn a_target_that_keeps_ending_does_not_end_the_server() {
    let mut fleet = Fleet::new();
    fleet.tmux(&["set-option", "-g", "remain-on-exit", "on"]);
    fleet.decide("keeper", SIGNAL);
    fleet.watch();
    for round in 0..6 {
        fleet.orchestrator("--busy");
        fleet.tell("orchestrator", "exit 3");
        let window = fleet.window("orchestrator");
        fleet.wait("the pane to die", || fleet.tmux(&["list-panes", "-t", &window, "-F", "#{pane_dead}"]) == "1");
        fleet.decide("keeper", &format!("00000000000{round}"));
        assert!(fleet.server_lives() && fleet.watcher_lives(), "round {round}");
        fleet.tmux(&["kill-window", "-t", &window]);
    }
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.wait_settled("the news", || fleet.emits().last().is_some_and(|emit| emit["received"] == true));
    assert!(told(&fleet, SIGNAL) >= 1);
    assert!(fleet.server_lives());
}
