//! Every saved screen in `tests/captures/` is judged, and the verdict compared with its label.
//!
//! Adding a screen needs no Rust: put the three files into a folder. What cannot be read is listed in
//! `docs/accuracy.md`; a listed screen that is read after all fails the test too.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use nexus_watcher::agents::Profiles;
use nexus_watcher::logic::pane::{
    self, Auth, InputRow, Mode, Overlay, PaneVerdict, Profile, ScreenFacts, State, judge_capture,
};
use nexus_watcher::logic::screen::Capture;
use proptest::prelude::*;
use serde::Deserialize;

/// What was done to the pane when the screen was saved.
#[derive(Debug, Deserialize)]
struct Label {
    agent: String,
    state: String,
    input_row: String,
    turn_running: bool,
    #[serde(default)]
    overlay: String,
    tmux: TmuxLabel,
}

/// What tmux said of the pane.
#[derive(Debug, Deserialize)]
struct TmuxLabel {
    pane_title: String,
    pane_dead: String,
    pane_in_mode: String,
}

struct Screen {
    name: String,
    label: Label,
    capture: Capture,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn screens() -> Vec<Screen> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root().join("tests/captures")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders.iter().filter(|path| path.is_dir()) {
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files.iter().filter(|path| path.extension().is_some_and(|ext| ext == "json")) {
            let label = serde_json::from_slice(&std::fs::read(file).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let capture = Capture::from_bytes(&std::fs::read(file.with_extension("ansi")).unwrap());
            let folder = folder.file_name().unwrap().to_str().unwrap();
            let name = format!("{folder}/{}", file.file_stem().unwrap().to_str().unwrap());
            found.push(Screen { name, label, capture });
        }
    }
    assert!(found.len() > 400, "only {} captures found", found.len());
    found
}

/// Facts that a live look has besides the text.
fn live_facts(label: &Label) -> ScreenFacts {
    ScreenFacts {
        dead: Some(label.tmux.pane_dead == "1"),
        in_mode: Some(label.tmux.pane_in_mode == "1"),
        title: Some(label.tmux.pane_title.clone()),
        version: None,
    }
}

/// The one table: which verdicts a label accepts, and which fields it wants. Returns what is missing.
fn compare(label: &Label, verdict: &PaneVerdict) -> Vec<String> {
    let row = label.input_row != "none";
    let retrying = label.turn_running && matches!(label.state.as_str(), "api-error" | "over-limit" | "auth-required");
    let mut wrong = Vec::new();
    let mut want = |ok: bool, what: &str| {
        if !ok {
            wrong.push(what.to_owned());
        }
    };
    let state = verdict.state;
    let free = matches!(state, State::Idle | State::AutosuggestOnly);
    match label.state.as_str() {
        _ if retrying => {
            want(state == State::Busy, "state busy");
            want(verdict.retrying.is_some(), "retrying=");
        }
        "idle" => want(state == State::Idle, "state idle"),
        "idle-with-suggestion" => {
            want(state == State::AutosuggestOnly, "state autosuggest-only");
            want(verdict.input == Some(InputRow::Ghost), "input=ghost");
        }
        "draft" => {
            want(state == State::UserTyping, "state user-typing");
            want(verdict.input == Some(InputRow::Typed), "input=typed");
        }
        "busy" if label.input_row == "typed" => {
            want(matches!(state, State::Busy | State::UserTyping), "state busy or user-typing");
            want(verdict.input == Some(InputRow::Typed), "input=typed");
        }
        "busy" => want(state == State::Busy, "state busy"),
        "queued" => {
            want(state == State::Busy, "state busy");
            want(verdict.queued, "queued=1");
        }
        "working-background" => want(state == State::WorkingBackground, "state working-background"),
        "blocked-permission" => want(blocked(verdict, &[Overlay::Permission]), "blocked overlay=permission"),
        "blocked-question" => want(blocked(verdict, &[Overlay::AskUq]), "blocked overlay=askuq"),
        "blocked-plan" => want(blocked(verdict, &[Overlay::Plan]), "blocked overlay=plan"),
        "blocked-trust" => want(
            blocked(verdict, &[Overlay::WorkspaceTrust, Overlay::BypassPermissions]),
            "blocked overlay=workspace-trust or bypass-permissions",
        ),
        "blocked-menu" | "onboarding" => {
            want(blocked(verdict, &[Overlay::Menu, Overlay::Dialog]), "blocked overlay=menu or dialog");
        }
        "over-limit" if row => {
            want(state == State::OverLimit, "state over-limit");
            want(verdict.reset_at.is_some() && verdict.limit.is_some(), "reset_at= and limit=");
        }
        "over-limit" => {
            want(matches!(state, State::OverLimit | State::Blocked), "state over-limit or blocked");
            want(verdict.overlay == Some(Overlay::RateLimit), "overlay=rate-limit");
        }
        "auth-required" if row => {
            want(free, "state idle or autosuggest-only");
            want(verdict.auth.is_some(), "auth=");
        }
        "auth-required" => {
            want(state == State::Blocked, "state blocked");
            want(verdict.auth == Some(Auth::Login), "auth=login");
        }
        "api-error" => {
            want(free, "state idle or autosuggest-only");
            want(verdict.notice.is_some(), "notice=");
        }
        "shell" => {
            want(matches!(state, State::Absent | State::Unknown), "state absent or unknown");
            want(verdict.agent.is_none(), "no agent");
        }
        "dead" => {
            want(state == State::Absent, "state absent");
            want(verdict.evidence.first().is_some_and(|e| e.rule == "pane_dead"), "evidence=pane_dead");
        }
        "unknown" => want(matches!(state, State::Unknown | State::Empty | State::Blocked), "state unknown"),
        "copy-mode" => {
            let under = if label.turn_running { State::Busy } else { State::Idle };
            want(state == under, "what lies under copy mode");
            want(verdict.mode == Some(Mode::Copy), "mode=copy");
        }
        other => want(false, &format!("a mapping for the label {other:?}")),
    }
    wrong
}

fn blocked(verdict: &PaneVerdict, overlays: &[Overlay]) -> bool {
    verdict.state == State::Blocked && verdict.overlay.is_some_and(|overlay| overlays.contains(&overlay))
}

/// Whether acting on the verdict could do harm, whatever else it says.
fn is_unsafe(label: &Label, verdict: &PaneVerdict) -> bool {
    let running = label.turn_running;
    let may_paste = match label.state.as_str() {
        "idle" | "idle-with-suggestion" => true,
        "api-error" | "auth-required" => label.input_row != "none" && !running,
        // What lies under copy mode; the mode itself forbids the paste.
        "copy-mode" => !running && verdict.mode == Some(Mode::Copy),
        _ => false,
    };
    let may_retire = matches!(label.state.as_str(), "dead" | "shell");
    let dialog = label.state.starts_with("blocked-")
        || matches!(label.state.as_str(), "onboarding")
        || (matches!(label.state.as_str(), "over-limit" | "auth-required") && label.input_row == "none")
        || (label.state == "unknown" && label.overlay == "transcript");
    match verdict.state {
        State::Idle | State::AutosuggestOnly => !may_paste,
        State::Absent => !may_retire,
        State::Blocked => !dialog,
        State::Busy => dialog,
        _ => false,
    }
}

fn report(screen: &Screen, profile: &Profile, facts: &ScreenFacts, verdict: &PaneVerdict, wrong: &str) -> String {
    let wanted = pane::wanted_style(profile, screen.capture.plain());
    let styled = wanted.map(|(first, last)| (first, screen.capture.styled(first, last)));
    let styled = styled.as_ref().map(|(first, rows)| (*first, rows.as_slice()));
    let mut text =
        format!("{}: label {:?}/{}, want {wrong}\n", screen.name, screen.label.state, screen.label.input_row);
    let _infallible = writeln!(
        text,
        "    got state={} input={:?} overlay={:?} notice={:?} retrying={:?}",
        verdict.state, verdict.input, verdict.overlay, verdict.notice, verdict.retrying
    );
    for evidence in &verdict.evidence {
        let _infallible = writeln!(text, "    evidence {} row {:?}: {:?}", evidence.rule, evidence.row, evidence.line);
    }
    for (region, id, line) in pane::matches(profile, facts, screen.capture.plain(), styled) {
        let _infallible = writeln!(text, "    matched {} {id}: {line}", region.word());
    }
    text
}

/// Captures listed in `docs/accuracy.md` as not readable.
fn known_gaps() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("docs/accuracy.md")).unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("- `")?.split_once('`').map(|(name, _)| name.to_owned()))
        .filter(|name| name.contains("--"))
        .collect()
}

fn check_all(facts_of: impl Fn(&Label) -> ScreenFacts, needs_tmux: impl Fn(&Label) -> bool) {
    let profiles = Profiles::builtin().unwrap();
    let gaps = known_gaps();
    let (mut failures, mut failed, mut total) = (Vec::new(), BTreeSet::new(), 0);
    let screens = screens();
    for screen in screens.iter().filter(|screen| !needs_tmux(&screen.label)) {
        let profile = profiles.get(&screen.label.agent).unwrap();
        let facts = facts_of(&screen.label);
        let verdict = judge_capture(profile, &facts, &screen.capture);
        total += 1;
        let wrong = compare(&screen.label, &verdict);
        if is_unsafe(&screen.label, &verdict) {
            failures.push(report(screen, profile, &facts, &verdict, "A SAFE ANSWER"));
        } else if !wrong.is_empty() {
            failed.insert(screen.name.clone());
            if !gaps.contains(&screen.name) {
                failures.push(report(screen, profile, &facts, &verdict, &wrong.join(", ")));
            }
        }
        if gaps.contains(&screen.name) && wrong.is_empty() {
            failures.push(format!("{}: listed in docs/accuracy.md, but it is read well: take it out\n", screen.name));
        }
    }
    let unknown = gaps.iter().filter(|gap| !screens.iter().any(|screen| screen.name == **gap));
    failures.extend(unknown.map(|gap| format!("{gap}: listed in docs/accuracy.md, but there is no such capture\n")));
    assert!(failures.is_empty(), "{} of {total} screens:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_capture_is_read_as_labelled_with_the_facts_of_tmux() {
    check_all(live_facts, |_| false);
}

#[test]
fn every_capture_is_read_as_labelled_by_its_text_alone() {
    check_all(|_| ScreenFacts::default(), |label| label.state == "copy-mode");
}
