//! `ng audit` against what the receiving programs got, by their own logs: every key and paste is on record, with why, by
//! whom, and the screens before and after; and nothing is typed that could not be recorded.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use fleet::Fleet;
use nexus_watcher::logic::ids::{PaneId, PaneKey, ServerId};
use nexus_watcher::sys::files::StateDir;
use nexus_watcher::sys::target_lock;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const SIGNAL: &str = "0a1b2c3d4e5f";
const TEXT: &str = "please look at the tests";

/// The rows of `ng audit` with these arguments.
fn audit(fleet: &Fleet, args: &[&str]) -> Vec<Value> {
    let (code, text) = fleet.ng(&[&["audit", "--json", "--last", "1000"], args].concat());
    assert_eq!(code, 0, "{text}");
    serde_json::from_str(&text[text.find('[').unwrap()..]).unwrap()
}

/// The acts of a report or a send, with their screens.
fn shown(fleet: &Fleet, id: &str) -> Vec<Value> {
    let (code, text) = fleet.ng(&["audit", "--json", "--show", id]);
    assert_eq!(code, 0, "{text}");
    serde_json::from_str(&text[text.find('[').unwrap()..]).unwrap()
}

fn screen(row: &Value, which: &str) -> String {
    let rows = row[which].as_array().unwrap_or_else(|| panic!("no {which}: {row}"));
    rows.iter().map(|row| row.as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

/// Everything that a program got, as it was sent.
fn bytes(fleet: &Fleet, window: &str) -> String {
    fleet.log(window).iter().filter_map(|event| event["bytes"].as_str().map(str::to_owned)).collect()
}

/// Asserts that the acts on record are what the program got: as many frames and Enters.
fn assert_complete(fleet: &Fleet, window: &str) {
    let rows = audit(fleet, &["--window", window, "--outcome", "done"]);
    let of = |kind: &str| rows.iter().filter(|row| row["what"]["kind"] == kind).count();
    let got = bytes(fleet, window);
    let outside = got.split("\\x1b[200~").map(|part| part.rsplit("\\x1b[201~").next().unwrap_or_default());
    let enters: usize = outside.map(|part| part.matches("\\r").count()).sum();
    assert_eq!((of("paste"), of("keys")), (got.matches("\\x1b[200~").count(), enters), "{window}: {got} {rows:#?}");
}

#[test]
fn what_was_typed_is_listed_with_why_by_whom_and_both_screens() {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.agent("w1", "--drop-enter 1");
    fleet.decide("keeper", SIGNAL);
    fleet.watch();
    let emit = fleet.wait_emit("the emit to be received", |emit| emit["received"] == true);
    let (code, answer) = fleet.ng(&["send", "w1", "--json", "-m", TEXT]);
    assert_eq!(code, 0, "{answer}");
    let sent: Value = serde_json::from_str(&answer[answer.find('{').unwrap()..]).unwrap();
    assert_complete(&fleet, "orchestrator");
    assert_complete(&fleet, "w1");

    let nonce = emit["nonce"].as_str().unwrap();
    let acts = shown(&fleet, nonce);
    let kinds: Vec<_> = acts.iter().map(|row| row["what"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["paste", "keys"], "{acts:#?}");
    for row in &acts {
        assert_eq!((&row["outcome"], &row["place"]["window"]), (&"done".into(), &"orchestrator".into()), "{row}");
        assert_eq!((&row["by"]["program"], &row["by"]["pid"]), (&"watcher".into(), &fleet.watcher_pid().into()));
        assert_eq!((&row["cause"]["of"], &row["cause"]["nonce"]), (&"report".into(), &nonce.into()));
        assert!(row["checked"]["pid"].as_u64().is_some_and(|pid| pid > 1), "{row}");
    }
    let text = fleet.submitted("orchestrator").remove(0);
    let digest = Sha256::digest(&text).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    assert_eq!((&acts[0]["what"]["sha256"], &acts[0]["what"]["bytes"]), (&digest.into(), &text.len().into()));
    assert_eq!(acts[0]["what"]["first_line"], text.lines().next().unwrap());
    // The paste found an empty box and filled it, the Enter found that and emptied it.
    let fold = "[Pasted text #1";
    let screens: Vec<_> = ["screen_before", "screen_after"]
        .iter()
        .flat_map(|which| acts.iter().map(|row| screen(row, which).contains(fold)))
        .collect();
    assert_eq!(screens, [false, true, true, false], "{acts:#?}");
    assert!(acts[1]["observed"].as_str().unwrap().starts_with("arrived: "), "{acts:#?}");

    let acts = shown(&fleet, sent["id"].as_str().unwrap());
    let kinds: Vec<_> = acts.iter().map(|row| row["what"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["paste", "keys", "keys"], "the first Enter was dropped: {acts:#?}");
    assert_eq!(acts[1]["observed"], "our text stands in the input box");
    assert_eq!((&acts[0]["by"]["program"], &acts[0]["by"]["src"]), (&"ng-send".into(), &"ng-send".into()));
    assert!(screen(&acts[0], "screen_after").contains(TEXT) && screen(&acts[2], "screen_before").contains(TEXT));

    // Each filter, and the words for people.
    assert!(audit(&fleet, &["--kind", "paste"]).iter().all(|row| row["what"]["kind"] == "paste"));
    assert_eq!(audit(&fleet, &["--since", "1h"]).len(), audit(&fleet, &[]).len());
    assert!(audit(&fleet, &["--since", "2099-01-01T00:00:00+00:00"]).is_empty());
    let (code, text) = fleet.ng(&["audit", "--window", "w1", "--last", "1"]);
    assert_eq!((code, text.lines().count()), (0, 1), "{text}");
    assert!(text.contains("w1 %") && text.contains("keys Enter  done  for send "), "{text}");
    let (code, text) = fleet.ng(&["audit", "--show", sent["id"].as_str().unwrap()]);
    assert_eq!(code, 0, "{text}");
    for word in ["checked:  process ", "on its screen ", "screen before:", "screen after:", TEXT, "its screen shows it"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    for (args, expected, word) in [
        (&["audit", "--show", "ffffff0000"] as &[&str], 1, "no act, report or send"),
        (&["audit", "--kind", "mouse"], 2, "paste"),
        (&["audit", "--since", "yesterday"], 2, "2026-05-11T13:42:01+02:00"),
    ] {
        let (code, text) = fleet.ng(args);
        assert!(code == expected && text.contains(word), "{args:?}: {code} {text}");
    }
    for path in ["audit/acts.jsonl", "audit/screens.jsonl"] {
        let mode = std::fs::metadata(fleet.state(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
    }
}

#[test]
fn what_was_in_the_way_is_on_record_once_and_nothing_was_typed() {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&format!("{} --draft 'merge only after'", fleet.hooks("orchestrator")));
    fleet.agent("w1", "--dialog permission");
    fleet.decide("keeper", SIGNAL);
    fleet.watch();
    let held = fleet.wait_emit("the emit to be held", |emit| emit["outcome"] == "held");
    assert_eq!(fleet.ng(&["send", "w1", "--wait", "2", "-m", TEXT]).0, 7);
    for (window, why) in [("orchestrator", "draft: "), ("w1", "dialog: ")] {
        let rows = audit(&fleet, &["--window", window]);
        assert_eq!(rows.len(), 1, "{rows:#?}");
        assert_eq!((&rows[0]["outcome"], &rows[0]["what"]["kind"]), (&"refused".into(), &"paste".into()));
        assert!(rows[0]["why"].as_str().unwrap().starts_with(why), "{rows:#?}");
        assert_eq!(bytes(&fleet, window), "", "{window}");
    }
    let rows = shown(&fleet, held["nonce"].as_str().unwrap());
    assert!(screen(&rows[0], "screen_before").contains("merge only after"), "{rows:#?}");
}

#[test]
fn an_act_that_was_cut_off_is_unknown_and_says_who_ended() {
    for (place, typed) in [("before-act", false), ("after-act", true)] {
        let mut fleet = Fleet::new();
        fleet.agent("w1", "");
        fleet.orchestrator(&format!("{} --no-collapse", fleet.hooks("orchestrator")));
        fleet.decide("keeper", SIGNAL);
        fleet.env.push(("NEXUS_FAULT".into(), place.into()));
        assert_eq!(fleet.ng(&["send", "w1", "-m", TEXT]).0, -1, "{place}: killed");
        fleet.watch();
        fleet.wait_watcher_killed(place);
        fleet.env.clear();
        for (window, who) in [("w1", "the sender ended"), ("orchestrator", "the watcher ended")] {
            let rows = audit(&fleet, &["--window", window, "--outcome", "unknown"]);
            assert_eq!(rows.len(), 1, "{place}: {rows:#?}");
            assert_eq!((&rows[0]["why"], &rows[0]["what"]["kind"]), (&who.into(), &"paste".into()), "{place}");
            fleet.wait(place, || bytes(&fleet, window).is_empty() != typed);
        }
        // The next watcher settles it, and says that this is what it does.
        fleet.watch();
        fleet.wait_emit("the emit to be received or told anew", |emit| emit["received"] == true);
        let rows = audit(&fleet, &["--window", "orchestrator", "--outcome", "done"]);
        let cause = if typed { "earlier-report" } else { "report" };
        assert!(rows.iter().all(|row| row["cause"]["of"] == cause), "{place}: {rows:#?}");
        assert!(!rows.is_empty(), "{place}");
    }
}

#[test]
fn whatever_stands_in_the_place_of_the_record_neither_silences_the_watcher_nor_hides_what_it_typed() {
    for wrong in ["audit", "audit/acts.jsonl", "audit/screens.jsonl"] {
        let mut fleet = Fleet::new();
        fleet.orchestrator(&fleet.hooks("orchestrator"));
        if wrong == "audit" {
            std::fs::write(fleet.state(wrong), "a file").unwrap();
        } else {
            std::fs::create_dir_all(fleet.state(wrong)).unwrap();
        }
        fleet.decide("keeper", SIGNAL);
        fleet.watch();
        let emit = fleet.wait_emit(wrong, |emit| emit["received"] == true);
        fleet.wait(wrong, || shown(&fleet, emit["nonce"].as_str().unwrap()).len() == 2);
        assert!(fleet.state(&format!("{wrong}.damaged.1")).exists(), "{wrong}");
    }
}

#[test]
fn bells_that_were_told_and_cleared_are_on_record() {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.agent("w1", "");
    fleet.tell("w1", "bell");
    let flag = |fleet: &Fleet| fleet.tmux(&["display-message", "-p", "-t", &fleet.window("w1"), "#{window_bell_flag}"]);
    fleet.wait("the bell", || flag(&fleet) == "1");
    fleet.watch();
    fleet.wait("the bell to be cleared", || flag(&fleet) == "0");
    fleet.wait("its record", || audit(&fleet, &["--kind", "bell"]).iter().any(|row| row["outcome"] == "done"));
    let rows = audit(&fleet, &["--kind", "bell", "--window", "w1"]);
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert_eq!(rows[0]["cause"]["of"], "told");
    let nonce = rows[0]["cause"]["nonce"].as_str().unwrap();
    assert!(fleet.submitted("orchestrator").iter().any(|text| text.contains(nonce)));
}

#[test]
fn a_pane_that_another_program_types_into_is_waited_for_and_said_once() {
    let fleet = Fleet::new();
    fleet.agent("w1", "");
    let said = fleet.tmux(&[
        "display-message",
        "-p",
        "-t",
        &fleet.window("w1"),
        "#{socket_path} #{pid} #{start_time} #{pane_id}",
    ]);
    let [socket, pid, start, pane] = said.split(' ').collect::<Vec<_>>()[..] else { panic!("{said}") };
    let server = ServerId { socket: socket.to_owned(), pid: pid.parse().unwrap(), start_s: start.parse().unwrap() };
    let key = PaneKey { server, pane: PaneId::parse(pane).unwrap() };
    let held = target_lock::try_take(&StateDir::new(fleet.state("")), &key, "test").unwrap();
    assert!(matches!(held, target_lock::Attempt::Taken(_)));
    assert_eq!(fleet.ng(&["send", "w1", "--wait", "2", "-m", TEXT]).0, 7);
    let rows = audit(&fleet, &["--window", "w1"]);
    assert_eq!(rows.len(), 1, "it was tried again and again, for one reason: {rows:#?}");
    assert!(rows[0]["why"].as_str().unwrap().starts_with("locked: "), "{rows:#?}");
    assert_eq!(bytes(&fleet, "w1"), "");
    drop(held);
    assert_eq!(fleet.ng(&["send", "w1", "-m", TEXT]).0, 0);
    assert_complete(&fleet, "w1");
}

/// Starts a send that stops right before the act, changes the world, and lets it go on; its exit code.
fn send_around(fleet: &Fleet, args: &[&str], change: impl FnOnce()) -> i32 {
    let mut command = fleet.command(env!("CARGO_BIN_EXE_ng"));
    command.env("NEXUS_FAULT", "before-act=stop").args(args).stdout(Stdio::null()).stderr(Stdio::null());
    let mut send = command.spawn().unwrap();
    let stat = format!("/proc/{}/stat", send.id());
    fleet.wait("the sender to stop", || {
        std::fs::read_to_string(&stat).unwrap().rsplit(')').next().unwrap().starts_with(" T")
    });
    change();
    let pid = rustix::process::Pid::from_raw(i32::try_from(send.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    send.wait().unwrap().code().unwrap()
}

#[test]
fn what_tmux_refused_is_on_record_and_uses_up_no_key() {
    let fleet = Fleet::new();
    fleet.agent("w1", &fleet.hooks("w1"));
    let window = fleet.window("w1");
    let args = ["send", "w1", "--no-wait", "--once", "k", "-m", TEXT];
    let code = send_around(&fleet, &args, || {
        fleet.tmux(&["copy-mode", "-t", &window]);
    });
    assert_eq!(code, 7);
    let rows = audit(&fleet, &["--window", "w1"]);
    assert_eq!(rows.len(), 1, "{rows:#?}");
    assert_eq!((&rows[0]["outcome"], rows[0]["checked"].is_object()), (&"refused".into(), true));
    assert!(rows[0]["why"].as_str().unwrap().starts_with("copy-mode: "), "{rows:#?}");
    assert_eq!(bytes(&fleet, "w1"), "");
    fleet.tmux(&["send-keys", "-t", &window, "-X", "cancel"]);
    assert_eq!(fleet.ng(&args).0, 0);
    assert_complete(&fleet, "w1");
}

#[test]
fn the_shell_of_an_agent_that_ended_right_before_the_act_gets_nothing() {
    let fleet = Fleet::new();
    // As a person starts an agent: from a shell, which is there again when it ends, below what it has drawn.
    fleet.tmux(&["new-window", "-d", "-t", "nexus:", "-n", "w1", "env -i PS1=shell: PATH=/usr/bin:/bin HOME=/ sh -i"]);
    let window = fleet.window("w1");
    fleet.wait("the shell", || fleet.screen("w1").contains("shell:"));
    let log = fleet.root().join("w1.log");
    let agent = format!(
        "{} demo agent --inline --root {} --log {}",
        env!("CARGO_BIN_EXE_ng"),
        fleet.root().display(),
        log.display()
    );
    fleet.tmux(&["send-keys", "-t", &window, "-l", &agent]);
    fleet.tmux(&["send-keys", "-t", &window, "Enter"]);
    fleet.wait("the agent", || fleet.screen("w1").contains('\u{276f}'));
    assert_eq!(fleet.ng(&["send", "w1", "-m", TEXT]).0, 0, "while it runs");
    assert_eq!(audit(&fleet, &["--kind", "paste"])[0]["checked"]["no_shell"], true);
    let code = send_around(&fleet, &["send", "w1", "--no-wait", "-m", "touch one\ntouch two\ntouch three"], || {
        let pid = fleet.log("w1")[0]["pid"].as_i64().unwrap();
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        fleet.wait("the shell again", || {
            fleet.tmux(&["display-message", "-p", "-t", &window, "#{pane_current_command}"]) == "sh"
        });
    });
    assert!(fleet.screen("w1").contains('\u{276f}'), "the box still stands there: {}", fleet.screen("w1"));
    assert_eq!(code, 7);
    let rows = audit(&fleet, &["--outcome", "refused"]);
    assert!(rows.len() == 1 && rows[0]["why"].as_str().unwrap().starts_with("changed: "), "{rows:#?}");
}
