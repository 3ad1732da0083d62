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
