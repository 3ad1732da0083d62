//! `ng pane-state --explain` on a live pane: what each witness said, what stands where, and what the pane was before.

#![expect(clippy::disallowed_methods, reason = "tests run real programs")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/fleet.rs"]
mod fleet;

use fleet::Fleet;
use serde_json::Value;

#[test]
fn a_live_verdict_is_explained_for_people_and_for_programs() {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.watch();
    // `panes/<number>.json` is the watcher's record of what it saw.
    fleet.wait("the watcher to record the panes", || {
        std::fs::read_dir(fleet.state("panes")).is_ok_and(|mut found| found.next().is_some())
    });
    let (code, said) = fleet.ng(&["pane-state", "orchestrator", "--explain", "--json"]);
    let verdict: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{code} {error}: {said}"));
    let explain = &verdict["explain"];
    assert_eq!((code, &verdict["agent"], &explain["profile"]), (0, &"demo".into(), &"demo".into()), "{said}");
    let witnesses: Vec<&str> =
        explain["witnesses"].as_array().unwrap().iter().map(|seen| seen["witness"].as_str().unwrap()).collect();
    for witness in ["tmux", "process", "hook", "title"] {
        assert!(witnesses.contains(&witness), "{witnesses:?}");
    }
    assert!(explain["witnesses"][0]["age_s"].is_u64(), "{said}");
    let region = |name: &str| {
        let found = explain["regions"].as_array().unwrap().iter().find(|region| region["region"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {said}")).clone()
    };
    let (input, footer) = (region("input"), region("footer"));
    assert!(input["rows"][1].as_u64() < footer["rows"][0].as_u64(), "{input} {footer}");
    assert!(!explain["history"].as_array().unwrap().is_empty(), "{said}");

    let (code, said) = fleet.ng(&["pane-state", "orchestrator", "--explain"]);
    assert_eq!(code, 0);
    let mut lines = said.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("state=") && !line.contains('\t')), "{said}");
    for heading in ["witnesses:", "screen, by the profile demo version", "matched:", "nearly matched:", "history:"] {
        assert!(said.lines().any(|line| line.starts_with(heading)), "{heading}\n{said}");
    }
    assert!(said.lines().any(|line| line.contains(" ago  ")), "{said}");
    assert_eq!(fleet.ng(&["pane-state", "--all", "--explain", "--json"]).0, 0);

    // A pane of nobody's is explained too.
    let (code, said) = fleet.ng(&["pane-state", "keeper", "--explain"]);
    assert!(code == 0 && said.contains("witnesses:") && said.contains("screen"), "{said}");
}

#[test]
fn the_stamp_of_a_usage_limit_holds_a_live_pane_until_its_agent_works_again() {
    let fleet = Fleet::new();
    fleet.orchestrator("");
    let state = || fleet.ng(&["pane-state", "orchestrator"]).1.split(' ').next().unwrap_or_default().to_owned();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let write = |path: &str, text: String| {
        let path = fleet.state(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    assert_eq!(state(), "state=idle");
    let stamp = format!(r#"{{"ts":{},"reset_at":"3am_UTC","window":"orchestrator"}}"#, now - 60);
    write("over-limit/orchestrator.json", stamp);
    assert_eq!(state(), "state=over-limit");
    let (_, said) = fleet.ng(&["pane-state", "orchestrator", "--explain"]);
    assert!(said.contains("reset_at=3am_UTC") && said.contains("resets 3am_UTC; counts"), "{said}");
    // A heartbeat of another pane of that name: the stamp may be that one's.
    let beat = |pane: &str, at: u64, state: &str| {
        format!(r#"{{"state":"{state}","last_activity":{at},"event":null,"window":"orchestrator","pane":"{pane}"}}"#)
    };
    write("heartbeat/orchestrator.json", beat("%99", now - 60, "idle_prompt"));
    assert_eq!(state(), "state=idle");
    let pane = fleet.tmux(&["display-message", "-p", "-t", &fleet.window("orchestrator"), "#{pane_id}"]);
    write("heartbeat/orchestrator.json", beat(&pane, now - 60, "idle_prompt"));
    assert_eq!(state(), "state=over-limit");
    write("heartbeat/orchestrator.json", beat(&pane, now - 40, "busy"));
    assert_eq!(state(), "state=idle", "it has worked since");
}
