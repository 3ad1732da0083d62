//! Every saved screen before the gate: where its label forbids typing, the gate is shut.

#![expect(clippy::unwrap_used, reason = "a test that can't read its captures has to stop")]

use std::path::{Path, PathBuf};

use nexus_watcher::agents::Profiles;
use nexus_watcher::logic::delivery::gate::{Composer, Gate, Seen, judge};
use nexus_watcher::logic::ids::{PaneId, PaneKey, ServerId};
use nexus_watcher::logic::pane::{BusyPaste, PaneVerdict, ScreenFacts, judge_capture};
use nexus_watcher::logic::screen::Capture;
use serde_json::Value;

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn seen(verdict: PaneVerdict, in_mode: bool) -> Seen {
    Seen {
        agent_pid: None,
        numbered_folds: false,
        key: PaneKey { server: ServerId { socket: "/s".into(), pid: 7, start_s: 1 }, pane: PaneId::new(3) },
        pid: 42,
        synchronized: false,
        in_mode,
        verdict,
        composer: Some(Composer::default()),
        outside: Vec::new(),
        screen: Vec::new(),
        shell_behind: false,
        busy: BusyPaste::Queue,
        vi_guard: false,
        composer_mark: None,
    }
}

/// Whether a screen with this label may be typed into.
fn may_type(label: &Value) -> bool {
    let free_row = matches!(label["input_row"].as_str(), Some("empty" | "suggestion"));
    let states = ["idle", "idle-with-suggestion", "busy", "queued", "working-background", "api-error"];
    // A turn that tries again after an error is a running turn.
    let retrying = label["turn_running"] == true && label["overlay"] == "none";
    free_row && (retrying || states.iter().any(|state| label["state"] == *state))
}

#[test]
fn the_gate_is_shut_wherever_the_label_forbids_typing() {
    let profiles = Profiles::builtin().unwrap();
    let (mut judged, mut open, mut wrong) = (0, 0, Vec::new());
    for folder in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures")) {
        for file in files(&folder).iter().filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let label: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
            let text = |key: &str| label["tmux"][key].as_str().unwrap_or_default().to_owned();
            // A dead pane or a shell is told by its process, before its screen is looked at.
            if matches!(label["state"].as_str(), Some("dead" | "shell")) {
                continue;
            }
            let in_mode = text("pane_in_mode") == "1";
            let facts = ScreenFacts {
                dead: Some(false),
                in_mode: Some(in_mode),
                title: Some(text("pane_title")),
                ..ScreenFacts::default()
            };
            let capture = Capture::from_bytes(&std::fs::read(file.with_extension("ansi")).unwrap());
            let profile = profiles.get(label["agent"].as_str().unwrap()).unwrap();
            let gate = judge(&seen(judge_capture(profile, &facts, &capture), in_mode));
            judged += 1;
            if matches!(gate, Gate::Open { .. }) {
                open += 1;
                // Without credentials the first prompt is the first to be refused; until then the screen does not tell.
                let untold = file.to_string_lossy().contains("/auth-not-logged-in-idle--");
                if !may_type(&label) && !untold {
                    wrong.push(format!("{}: {}", file.display(), label["state"]));
                }
            }
        }
    }
    assert!(judged > 500 && open > 100, "{judged} judged, {open} open");
    assert!(wrong.is_empty(), "typed into:\n{}", wrong.join("\n"));
}
