//! Reported faults of reading and writing that need the programs themselves: the right pane of a window, an agent without
//! scrollback, a service without a locale. Section A of the reported pains; `docs/coverage.md` lists them.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a failure is a panic, and the real programs run")]

#[path = "support/fleet.rs"]
mod fleet;

use std::fs;

use fleet::Fleet;
use serde_json::Value;

/// What `ng` prints with these arguments; it must succeed.
fn ng(fleet: &Fleet, args: &[&str]) -> String {
    let (code, text) = fleet.ng(args);
    assert_eq!(code, 0, "{args:?}: {text}");
    text
}

/// Splits a window: the new pane has the focus, and a program in it that never stops talking.
fn split(fleet: &Fleet, window: &str) {
    let agent = fleet.tmux(&["list-panes", "-t", &fleet.window(window), "-F", "#{pane_id}"]);
    let chatty = "while :; do echo '? [y/N] Do you want to proceed?'; read -t 0.1 -r _; done";
    fleet.tmux(&["split-window", "-t", &fleet.window(window), "-l", "10", &format!("exec bash -c \"{chatty}\"")]);
    let panes = fleet.tmux(&["list-panes", "-t", &fleet.window(window), "-F", "#{pane_id} #{pane_active}"]);
    assert!(panes.contains(&format!("{agent} 0")), "the other pane has the focus: {panes}");
    fleet.wait("the shell to talk", || fleet.screen(window).contains("Do you want to proceed?"));
}

#[test]
fn p06_the_agent_s_pane_is_meant_whatever_has_the_focus() {
    let mut fleet = Fleet::new();
    fleet.agent("w1", &fleet.hooks("w1"));
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    let agent = fleet.tmux(&["list-panes", "-t", &fleet.window("w1"), "-F", "#{pane_id}"]);
    let before = ng(&fleet, &["pane-state", "w1"]);
    assert!(before.starts_with("state=idle "), "{before}");
    split(&fleet, "w1");
    split(&fleet, "orchestrator");
    for spec in ["w1", agent.as_str()] {
        fleet.wait("the agent to be idle beside it", || ng(&fleet, &["pane-state", spec]).starts_with("state=idle "));
    }
    ng(&fleet, &["send", "w1", "-m", "please look at the tests"]);
    assert_eq!(fleet.submitted("w1"), ["please look at the tests"]);
    fleet.decide("w1", "0a1b2c3d4e5f");
    fleet.watch();
    fleet.wait_emit("the report", |emit| emit["received"] == true);
    assert!(fleet.submitted("orchestrator")[0].contains("0a1b2c3d4e5f"));
    for (window, text) in [("w1", "please look"), ("orchestrator", "0a1b2c3d4e5f")] {
        let shown = fleet.screen(window);
        assert!(!shown.contains(text), "typed into the pane with the focus: {shown}");
    }
}

#[test]
fn p15_quoted_dialogs_get_no_key_and_hold_nothing_up() {
    const QUOTED: [(&str, &str); 4] = [
        ("perm", "Do you want to proceed?\\n❯ 1. Yes\\n  2. Yes, and don't ask again\\n  3. No\\n\\nEsc to cancel"),
        ("ask", "❯ 1. SQLite\\n  2. Type something.\\n  3. Chat about this\\n\\nEnter to select · Esc to cancel"),
        ("limit", "You've hit your session limit · resets 8pm (Asia/Tokyo)"),
        (
            "trust",
            "Quick safety check\\n\\n❯ No, exit\\n  Yes, I trust this folder\\n\\nEnter to confirm · Esc to cancel",
        ),
    ];
    let mut fleet = Fleet::new();
    fleet.configure("monitor:\n  interval_seconds: 1\n  idle_threshold_seconds: 1\n");
    for (window, _) in QUOTED {
        fleet.agent(window, "");
    }
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    for (window, text) in QUOTED {
        for reader in [window, "orchestrator"] {
            fleet.tell(reader, &format!("say The file says:\\n{text}"));
        }
    }
    for (window, text) in QUOTED {
        for reader in [window, "orchestrator"] {
            fleet.wait("the quotation", || fleet.screen(reader).contains(text.rsplit("\\n").next().unwrap()));
        }
    }
    fleet.decide("perm", "0a1b2c3d4e5f");
    fleet.watch();
    fleet.wait_settled("the report", || fleet.emits().iter().any(|emit| emit["received"] == true));
    let told = fleet.submitted("orchestrator");
    assert_eq!(told.iter().filter(|report| report.contains("0a1b2c3d4e5f")).count(), 1, "{told:#?}");
    // An Enter behind each frame, and no other key.
    let bytes = fleet.bytes("orchestrator");
    let outside: String = bytes.split("\\x1b[200~").map(|part| part.rsplit("\\x1b[201~").next().unwrap()).collect();
    assert_eq!(outside, "\\r".repeat(told.len()));
    for (window, _) in QUOTED {
        assert_eq!(fleet.bytes(window), "", "{window}");
        assert!(ng(&fleet, &["pane-state", window]).starts_with("state=idle "), "{window}");
    }
}

#[test]
fn p22_without_scrollback_state_paste_and_proof_work() {
    let fleet = Fleet::new();
    fleet.agent("w1", "");
    let facts = fleet.tmux(&["list-panes", "-t", &fleet.window("w1"), "-F", "#{alternate_on} #{history_size}"]);
    assert_eq!(facts, "1 0");
    assert!(ng(&fleet, &["pane-state", "w1"]).starts_with("state=idle "));
    let text: Vec<String> = (1..=20).map(|n| format!("line {n} of a report")).collect();
    // Neither hooks nor a transcript: only the visible rows can prove it.
    ng(&fleet, &["send", "w1", "-m", &text.join("\n")]);
    assert_eq!(fleet.submitted("w1"), [text.join("\n")]);
    assert_eq!(fleet.tmux(&["list-panes", "-t", &fleet.window("w1"), "-F", "#{history_size}"]), "0");
}

#[test]
fn p23_without_a_locale_every_window_and_verdict_is_the_same() {
    let mut fleet = Fleet::new();
    let names = ["日本語", "émoji 🚀", "tab\tname", "plain"];
    for (number, name) in names.iter().enumerate() {
        fleet.agent(&format!("a{number}"), "--draft 'größer 合并'");
        fleet.tmux(&["rename-window", "-t", &fleet.window(&format!("a{number}")), name]);
    }
    let seen = |locale: &[(&str, &str)]| {
        let mut command = fleet.command(env!("CARGO_BIN_EXE_ng"));
        command.env_remove("LANG").env_remove("LC_ALL").envs(locale.iter().copied());
        let output = command.args(["pane-state", "--all", "nexus", "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let field = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let rows = found.as_array().unwrap().iter();
        rows.map(|row| (field(row, "name"), field(row, "state"), field(row, "input"))).collect::<Vec<_>>()
    };
    let bare = seen(&[("LANG", "C")]);
    assert_eq!(bare, seen(&[("LC_ALL", "C.UTF-8")]));
    assert_eq!(bare, seen(&[]));
    let drafts = bare.iter().filter(|(_, state, input)| (state.as_str(), input.as_str()) == ("user-typing", "typed"));
    assert_eq!(drafts.count(), names.len(), "{bare:?}");
    // As tmux keeps the tab.
    let names = ["日本語", "émoji 🚀", r"tab\tname", "plain"];
    for name in names {
        assert!(bare.iter().any(|(window, ..)| window == name), "{name}: {bare:?}");
    }
    // The service knows and names them too.
    fleet.configure("monitor:\n  interval_seconds: 1\n");
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    for (number, name) in names.iter().enumerate() {
        fleet.tell(&format!("a{number}"), "dialog permission");
        fleet.decide(name, &format!("0a1b2c3d4e5{number}"));
    }
    for name in names {
        fleet.wait("the dialog", || fleet.screen(name).contains("Esc to cancel"));
    }
    fleet.env.push(("LANG".into(), "C".into()));
    fleet.watch();
    fleet.wait_settled("the report", || fleet.emits().iter().any(|emit| emit["received"] == true));
    let told = fleet.submitted("orchestrator").join("\n");
    assert!(told.contains("| 4 awaiting-input"), "{told}");
    for name in ["'日本語'", "'émoji 🚀'", r"'tab\tname'", "plain"] {
        assert!(told.contains(&format!("window={name} fp=")), "{name}: {told}");
    }
}

/// The reports that name these windows, by how many of them each names.
fn named_in(fleet: &Fleet, windows: &[String]) -> Vec<usize> {
    let reports = fleet.submitted("orchestrator").into_iter();
    let count =
        |report: String| windows.iter().filter(|window| report.contains(&format!("- {window} pane-absent"))).count();
    reports.map(count).filter(|count| *count > 0).collect()
}

#[test]
fn p25_ten_blocked_panes_are_one_notice_also_after_a_restart() {
    let mut fleet = Fleet::new();
    fleet.configure("monitor:\n  interval_seconds: 1\n  idle_threshold_seconds: 1\n");
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    let windows: Vec<String> = (10..20).map(|n| format!("worker{n}")).collect();
    for window in &windows {
        fleet.agent(window, "--dialog permission");
    }
    // They have been at rest since long before.
    let since = chrono::Utc::now().timestamp() - 7200;
    let anchors: Vec<String> = windows.iter().map(|window| format!("{window}\t{since}")).collect();
    fs::write(fleet.state("engagement-log.tsv"), anchors.join("\n") + "\n").unwrap();
    fleet.watch();
    fleet.wait("the blocked panes to be told", || !named_in(&fleet, &windows).is_empty() && !fleet.is_pending());
    fleet.kill_watcher();
    fleet.watch();
    // Something else to tell, so that it is known to be at work.
    fleet.decide("worker10", "0a1b2c3d4e5f");
    fleet.wait("the decision to be told", || {
        fleet.submitted("orchestrator").iter().any(|report| report.contains("0a1b2c3d4e5f"))
    });
    assert_eq!(named_in(&fleet, &windows), [10], "{:#?}", fleet.submitted("orchestrator"));
}
