//! An operator's profile files: the running watcher and every verb judge by them, a bad one changes nothing and is said.

#![expect(clippy::disallowed_methods, reason = "tests run real programs")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/fleet.rs"]
mod fleet;

use std::fs;

use fleet::Fleet;
use serde_json::Value;

/// Reads the demo agent's ordinary footer as a limit, so that nothing may be typed.
const HOLDS: &str = "\
amends: claude
why: a trial
made_for: 999
add:
  - id: trial-limit
    region: footer
    literal: '? for shortcuts'
    priority: 75
    says: {state: over-limit}
    why: a trial
";

/// Writes a profile file as an editor does.
fn write(fleet: &Fleet, name: &str, text: &str) {
    let dir = fleet.root().join("config/agents.d");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(".draft"), text).unwrap();
    fs::rename(dir.join(".draft"), dir.join(name)).unwrap();
}

fn state(fleet: &Fleet, window: &str, more: &[&str]) -> String {
    let args: Vec<&str> = ["pane-state", window].iter().chain(more).copied().collect();
    let (_, said) = fleet.ng(&args);
    said.split_whitespace().find_map(|word| word.strip_prefix("state=")).unwrap_or(&said).to_owned()
}

#[test]
fn a_running_watcher_judges_by_an_amendment_while_its_file_is_there() {
    let mut fleet = Fleet::new();
    fleet.orchestrator("");
    write(&fleet, "trial.yml", HOLDS);
    fleet.decide("keeper", "aaaaaaaaaaaa");
    fleet.watch();
    fleet.wait_emit("the report to be held", |emit| emit["outcome"] == "held");
    let status = || fleet.ng(&["watcher-status"]).1;
    // One that can't be used changes nothing: the last good one holds.
    write(&fleet, "trial.yml", &HOLDS.replace("region: footer", "region: feet"));
    fleet.wait("the bad file to be said", || status().contains("degraded: agent-profiles since="));
    assert!(status().contains("trial.yml:6: add[0].region: unknown variant `feet`"), "{}", status());
    assert!(fleet.emits().iter().all(|emit| emit["received"] != true), "{:?}", fleet.emits());
    fs::remove_file(fleet.root().join("config/agents.d/trial.yml")).unwrap();
    fleet.wait_emit("the report, judged by the built-in profile again", |emit| emit["received"] == true);
    fleet.wait("the fault to be over", || !status().contains("agent-profiles"));
}

#[test]
fn the_verbs_list_check_and_try_profile_files() {
    let fleet = Fleet::new();
    fleet.orchestrator("");
    let list = || serde_json::from_str::<Value>(&fleet.ng(&["agents", "--json"]).1).unwrap();
    assert_eq!(list()["profiles"][0]["origin"], "built-in");
    assert_eq!(fleet.ng(&["agents"]).0, 0);
    assert_eq!(
        fleet.ng(&["agents", "check"]),
        (0, "there are no profile files; the built-in profiles are in use\n".into())
    );

    // A file that is not in place yet is tried on one look.
    let draft = fleet.root().join("trial.yml");
    fs::write(&draft, HOLDS).unwrap();
    let draft = draft.to_str().unwrap();
    assert_eq!(state(&fleet, "orchestrator", &[]), "idle");
    assert_eq!(state(&fleet, "orchestrator", &["--profile", draft]), "over-limit");
    let (code, said) = fleet.ng(&["agents", "check", draft]);
    assert!(
        code == 0 && said.contains("trial.yml: fine: amends claude: adds trial-limit (made for version 999"),
        "{said}"
    );

    write(&fleet, "trial.yml", HOLDS);
    assert_eq!(state(&fleet, "orchestrator", &[]), "over-limit");
    let listed = list();
    let amended = &listed["profiles"][0]["amended"][0];
    assert_eq!((&amended["adds"][0], &amended["stale"]), (&"trial-limit".into(), &true.into()), "{listed}");
    let (code, said) = fleet.ng(&["agents"]);
    assert!(code == 0 && said.contains("built-in, amended") && said.contains("still needed?"), "{said}");
    let (code, said) = fleet.ng(&["agents", "show", "claude"]);
    assert!(code == 0 && said.contains("id: trial-limit"), "{said}");
    assert_eq!(fleet.ng(&["agents", "show", "nobody"]).0, 2);

    write(&fleet, "trial.yml", &HOLDS.replace("'? for shortcuts'", "[a, b]"));
    for args in [&["agents"][..], &["agents", "check"]] {
        let (code, said) = fleet.ng(args);
        assert!(code == 1 && said.contains("config/agents.d/trial.yml:7: add[0].literal: invalid type"), "{said}");
    }
    // What is in place and bad is said beside the answer, which is the built-in profile's.
    let (code, said) = fleet.ng(&["pane-state", "orchestrator"]);
    assert!(code == 0 && said.contains("state=idle") && said.contains("the file is left out"), "{said}");
    let bad = fleet.root().join("config/agents.d/trial.yml");
    assert_eq!(fleet.ng(&["pane-state", "orchestrator", "--profile", bad.to_str().unwrap()]).0, 64);
}

#[test]
fn the_directory_of_profile_files_is_a_setting() {
    let fleet = Fleet::new();
    fleet.orchestrator("");
    fs::create_dir(fleet.root().join("elsewhere")).unwrap();
    fs::write(fleet.root().join("elsewhere/trial.yml"), HOLDS).unwrap();
    fleet.configure("monitor:\n  agents:\n    dir: elsewhere\n");
    assert_eq!(state(&fleet, "orchestrator", &[]), "over-limit");
}
