//! Several tmux servers under one watcher, with real ones that have the same ids and the same window names. What counts is
//! what the receiving programs got, by their own logs.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
mod fleet;

use std::fs;
use std::time::{Duration, Instant};

use fleet::Fleet;
use nexus_watcher::sys::tmux::{Servers, Tmux as _, TmuxClient};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A nexus that watches two servers: its own, and that of a second fleet.
struct Two {
    a: Fleet,
    b: Fleet,
}

impl Two {
    /// Each with its window `keeper` as `@0` and its pane as `%0`.
    fn new() -> Self {
        let (mut a, b) = (Fleet::new(), Fleet::new());
        a.env.push(("NEXUS_TMUX_SOCKET".into(), format!("{},{}", a.socket(), b.socket())));
        a.configure("monitor:\n  interval_seconds: 1\n  tmux:\n    sessions: ['*']\n");
        Self { a, b }
    }

    /// Opens a window of this name on both: the same ids.
    fn agents(&self, name: &str, on_a: &str, on_b: &str) {
        self.a.agent(name, on_a);
        self.b.agent(name, on_b);
        assert_eq!(self.a.window(name), self.b.window(name), "the same id on both servers");
    }

    /// Verdicts of `ng pane-state --all`, by pane.
    fn verdicts(&self) -> Vec<(String, Value)> {
        let output = self.a.command(env!("CARGO_BIN_EXE_ng")).args(["pane-state", "--all", "--json"]).output().unwrap();
        let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        list.into_iter().map(|one| (one["pane"].as_str().unwrap().to_owned(), one)).collect()
    }

    fn verdict(&self, pane: &str) -> Value {
        let found = self.verdicts().into_iter().find(|(id, _)| id == pane);
        found.unwrap_or_else(|| panic!("no pane {pane}")).1
    }

    /// The process of the second server.
    fn second(&self) -> Pid {
        Pid::from_raw(self.b.tmux(&["display-message", "-p", "#{pid}"]).parse().unwrap()).unwrap()
    }

    /// What the running watcher recorded of a pane, newest last: state and rule.
    fn history(&self, file: &str) -> Vec<(String, String)> {
        let text = fs::read_to_string(self.a.state("panes").join(file)).unwrap_or_default();
        let record: Value = serde_json::from_str(&text).unwrap_or_default();
        let word = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let all = record["transitions"].as_array().cloned().unwrap_or_default();
        all.iter().map(|one| (word(one, "state"), word(one, "rule"))).collect()
    }

    /// How often a task of the watcher has run.
    fn runs(&self, task: &str) -> usize {
        let log = fs::read_to_string(self.a.state("watcher-scheduler.jsonl")).unwrap_or_default();
        log.lines().filter(|line| line.contains(&format!("\"{task}\""))).count()
    }
}

/// Asserts that nothing was typed into a window.
fn assert_untouched(fleet: &Fleet, window: &str) {
    let log = fleet.log(window);
    assert!(log.iter().all(|event| event["event"] != "read"), "{window}: {log:?}");
}

/// A stopped process, which goes on at the latest when the test ends.
struct Stopped(Pid);

impl Stopped {
    fn stop(pid: Pid) -> Self {
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _gone = kill_process(self.0, Signal::CONT);
    }
}

#[test]
fn verdicts_of_the_same_ids_and_names_are_told_apart() {
    let two = Two::new();
    let hooks = two.a.hooks("w1");
    two.agents("w1", "", &hooks);
    two.agents("w2", "--dialog permission", "--busy");
    // The hooks of the second server's agent write into the file that is named after the window.
    two.b.tell("w1", "busy");
    let beat = || fs::read_to_string(two.a.state("heartbeat/w1.json")).unwrap_or_default();
    let (code, said) = two.a.ng(&["send", "1/%1", "--no-wait", "-m", "begin"]);
    assert_eq!(code, 0, "{said}");
    two.a.wait("a heartbeat of the second server", || beat().contains(&format!("{},", two.b.socket())));
    let state = |pane: &str| two.verdict(pane)["state"].clone();
    assert_eq!((state("%1"), state("%2")), ("idle".into(), "blocked".into()));
    assert_eq!((state("1/%1"), state("1/%2")), ("busy".into(), "busy".into()));
    let witnesses = |pane: &str| two.verdict(pane)["evidence"].to_string().contains("\"hook\"");
    assert_eq!((witnesses("%1"), witnesses("1/%1")), (false, true), "whose hook it is");
    // By a name that both have, nobody is meant.
    let (code, said) = two.a.ng(&["pane-state", "w1"]);
    assert_eq!(code, 64, "{said}");
    assert!(said.contains("ask for one of @1 (nexus:1), 1/@1 (nexus:1)"), "{said}");
    let (code, said) = two.a.ng(&["pane-state", "1/@2"]);
    assert!(code == 0 && said.contains("state=busy ") && said.contains(" name=w2 pane=1/%2 "), "{code} {said}");
    let (code, said) = two.a.ng(&["pane-state", "2/%1"]);
    assert!(code == 3 && said.contains("no server 2 in monitor.tmux.sockets"), "{code} {said}");
}

#[test]
fn a_text_arrives_on_the_server_that_it_is_for() {
    let two = Two::new();
    let hooks = two.a.hooks("w1");
    two.agents("w1", &hooks, &hooks);
    for (spec, code) in [("1/%1", 0), ("1/@1", 0), ("w1", 2), ("1/%9", 6), ("3/%1", 6)] {
        let (got, said) = two.a.ng(&["send", spec, "-m", spec]);
        assert_eq!(got, code, "{spec}: {said}");
    }
    assert_eq!(two.b.submitted("w1"), ["1/%1", "1/@1"]);
    assert_untouched(&two.a, "w1");
    let (code, said) = two.a.ng(&["send", "%1", "-m", "for the first"]);
    assert_eq!((code, two.a.submitted("w1")), (0, vec!["for the first".to_owned()]), "{said}");
    assert_eq!(two.b.submitted("w1").len(), 2);
}

#[test]
fn reports_reach_the_target_on_its_server_and_bells_are_cleared_where_they_were_told() {
    let mut two = Two::new();
    // `@1` rings on both; that of the first server has a name of which no bell is ever told.
    two.a.agent("monitor", "");
    two.b.agent("w1", "");
    // The target is `%2` of the second server; `%2` of the first is an idle agent like it.
    two.a.agent("w2", "");
    two.b.orchestrator("");
    assert_eq!(two.a.window("w2"), two.b.window("orchestrator"));
    let rings = |fleet: &Fleet, window: &str| {
        fleet.tmux(&["display-message", "-p", "-t", &fleet.window(window), "#{window_bell_flag}"]) == "1"
    };
    two.a.tell("monitor", "bell");
    two.b.tell("w1", "bell");
    two.a.wait("the bells", || rings(&two.a, "monitor") && rings(&two.b, "w1"));
    two.a.watch();
    two.a.wait("the bell to be told", || {
        two.b.submitted("orchestrator").iter().any(|text| text.contains("  - w1 (idx 1, 1/@1)"))
    });
    two.a.wait("the bell to be cleared", || !rings(&two.b, "w1"));
    assert!(rings(&two.a, "monitor"), "what nobody told of the first server stands");
    two.a.decide("w2", "0a1b2c3d4e5f");
    two.a.wait("the decision to be told", || {
        two.b.submitted("orchestrator").iter().any(|text| text.contains("0a1b2c3d4e5f"))
    });
    for window in ["monitor", "w2"] {
        assert_untouched(&two.a, window);
    }
    assert_untouched(&two.b, "w1");
    // Each pane's past is in a file of its own.
    assert!(two.a.state("panes/1.json").exists() && two.a.state("panes/1-1.json").exists());
}

#[tokio::test]
async fn a_server_that_hangs_is_waited_for_a_moment_only() {
    let two = Two::new();
    let sockets = [two.a.socket().to_owned(), two.b.socket().to_owned()];
    let servers = Servers::of_sockets(&sockets, |socket| TmuxClient::new(socket, None));
    let both = servers.view().await.unwrap();
    let _stopped = Stopped::stop(two.second());
    // The client's own deadline is four seconds.
    for (look, within) in [3000, 2000, 2000, 2000].into_iter().enumerate() {
        let began = Instant::now();
        let view = servers.view().await.unwrap();
        assert!(began.elapsed() < Duration::from_millis(within), "look {look}: {:?}", began.elapsed());
        assert_eq!((view.silence(0), view.silence(1).is_some()), (None, true));
        assert_eq!(view.panes.len(), both.panes.len(), "what it listed last stays");
    }
}

#[test]
fn a_server_that_hangs_blinds_nobody_and_its_panes_are_unknown() {
    let mut two = Two::new();
    two.a.orchestrator("");
    two.b.agent("w1", "--busy");
    two.a.watch();
    two.a.wait("a look at both", || !two.history("1-1.json").is_empty());
    let stopped = Stopped::stop(two.second());
    let degraded = || fs::read_to_string(two.a.state("degraded.json")).unwrap_or_default();
    two.a.wait("its panes to be unknown", || {
        two.history("1-1.json").last() == Some(&("unknown".to_owned(), "server-not-answering".to_owned()))
    });
    two.a.wait("it to be said", || {
        degraded().contains(&format!("1 of 2 servers: socket {}: tmux did not answer", two.b.socket()))
    });
    // The first server is watched at its pace: every two seconds, and a report arrives.
    let (began, before) = (Instant::now(), two.runs("target_window"));
    two.a.wait("five passes", || two.runs("target_window") >= before + 5);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    // A decision of a window that nothing is known of now is told, and nothing is concluded from what the server does not say.
    two.a.decide("w1", "0a1b2c3d4e5f");
    two.a.wait("a report", || two.a.submitted("orchestrator").iter().any(|text| text.contains("0a1b2c3d4e5f")));
    assert!(two.a.submitted("orchestrator").iter().all(|text| !text.contains("-w1 1/@1")));
    // Who looks anew, and has never heard it, says so.
    let (code, said) = two.a.ng(&["pane-state", "orchestrator"]);
    assert!(code == 0 && said.contains("state=") && said.contains("1 of 2 servers"), "{code} {said}");
    let (code, said) = two.a.ng(&["pane-state", "1/%1"]);
    assert!(code == 2 && said.contains("can't be told"), "{code} {said}");
    let (code, said) = two.a.ng(&["send", "1/%1", "-m", "no"]);
    assert!(code == 1 && said.contains("can't be told"), "{code} {said}");
    drop(stopped);
    two.a.wait("it to be heard again", || {
        two.history("1-1.json").last().is_some_and(|(state, _)| state == "busy") && !degraded().contains("1 of 2")
    });
    assert_untouched(&two.b, "w1");
}

#[test]
fn a_report_waits_for_a_target_whose_server_hangs_and_comes_once() {
    let mut two = Two::new();
    two.a.agent("w1", "");
    two.b.orchestrator("");
    two.a.watch();
    two.a.wait("a look at both", || !two.history("1-1.json").is_empty());
    let stopped = Stopped::stop(two.second());
    two.a.decide("w1", "0a1b2c3d4e5f");
    two.a.wait_emit("the report to be held", |emit| emit["outcome"] == "held");
    drop(stopped);
    let told = || two.b.submitted("orchestrator").iter().filter(|text| text.contains("0a1b2c3d4e5f")).count();
    two.a.wait_settled("the report", || told() > 0);
    assert_eq!(told(), 1);
    assert_untouched(&two.a, "w1");
}

#[test]
fn a_server_that_was_restarted_is_another_and_nothing_is_typed_into_it() {
    let mut two = Two::new();
    two.a.agent("w1", "");
    two.b.orchestrator("--dialog permission");
    two.a.decide("w1", "0a1b2c3d4e5f");
    two.a.watch();
    two.a.wait_emit("a report to be held", |emit| emit["outcome"] == "held");
    two.a.wait("the pane's past", || !two.history("1-1.json").is_empty());
    let server_of = |file: &str| {
        let text = fs::read_to_string(two.a.state("panes").join(file)).unwrap_or_default();
        serde_json::from_str::<Value>(&text).unwrap_or_default()["key"]["server"]["pid"].clone()
    };
    let before = server_of("1-1.json");
    kill_process(two.second(), Signal::KILL).unwrap();
    two.b.wait("its end", || !two.b.server_lives());
    two.b.start_server();
    // The same ids, another agent under another name.
    two.b.agent("another", "");
    two.a.wait("the new server to be known", || {
        let now = server_of("1-1.json");
        !now.is_null() && now != before
    });
    assert!(two.history("1-1.json").iter().all(|(state, _)| state != "blocked"), "{:?}", two.history("1-1.json"));
    let passes = two.runs("compose_emit");
    two.a.wait("two more tries to tell", || two.runs("compose_emit") >= passes + 2);
    assert_untouched(&two.b, "another");
    assert_untouched(&two.a, "w1");
    // The report is told once there is a target again.
    two.b.orchestrator("");
    two.a.wait("the report", || two.b.submitted("orchestrator").iter().any(|text| text.contains("0a1b2c3d4e5f")));
    assert_untouched(&two.b, "another");
}
