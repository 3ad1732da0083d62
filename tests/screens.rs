//! Every saved screen in `tests/captures/` is judged, and the verdict compared with its label.
//!
//! Adding a screen needs no Rust: put the three files into a folder. What cannot be read is listed in
//! `docs/accuracy.md`; a listed screen that is read after all fails the test too.

#![expect(clippy::unwrap_used, reason = "a test that can't read its captures has to stop")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use nexus_watcher::agents::Profiles;
use nexus_watcher::logic::pane::{self, InputRow, Label, PaneVerdict, Profile, ScreenFacts, State, judge_capture};
use nexus_watcher::logic::screen::Capture;
use proptest::prelude::*;

#[path = "support/captures.rs"]
mod captures;
#[path = "fingerprints/mod.rs"]
mod fingerprints;

use captures::{Screen, known_gaps, root, screens};

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

fn check_all(text_alone: bool, facts_of: impl Fn(&Label) -> ScreenFacts, needs_tmux: impl Fn(&Label) -> bool) {
    let profiles = Profiles::builtin().unwrap();
    let gaps = known_gaps(text_alone);
    let (mut failures, mut failed, mut total) = (Vec::new(), BTreeSet::new(), 0);
    let screens = screens();
    for screen in screens.iter().filter(|screen| !needs_tmux(&screen.label)) {
        let profile = profiles.get(&screen.label.agent).unwrap();
        let facts = facts_of(&screen.label);
        let verdict = judge_capture(profile, &facts, &screen.capture);
        total += 1;
        let wrong = screen.label.compare(&verdict);
        if screen.label.forbids(&verdict) {
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
    check_all(false, Label::facts, |_| false);
}

#[test]
fn every_capture_is_read_as_labelled_by_its_text_alone() {
    check_all(true, |_| ScreenFacts::default(), |label| label.state == "copy-mode");
}

#[test]
fn the_versions_that_a_profile_says_were_seen_are_those_of_its_captures() {
    let profiles = Profiles::builtin().unwrap();
    for profile in profiles.iter().filter(|profile| profile.name != "demo") {
        let mut versions: Vec<Vec<u32>> = screens()
            .iter()
            .filter(|screen| screen.label.agent == profile.name)
            .filter_map(|screen| pane_version(screen.label.version.as_deref()?))
            .collect();
        versions.sort();
        versions.dedup();
        assert_eq!(profile.seen, versions, "seen: of config/agents/{}.yml", profile.name);
    }
}

/// `2.1.332` as numbers.
fn pane_version(text: &str) -> Option<Vec<u32>> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

#[test]
fn a_verdict_says_that_the_agent_is_newer_than_its_rules() {
    let claude = claude();
    let box_ = drawn("● Done.", EMPTY_BOX, "  ? for shortcuts");
    for (version, newer) in [(None, false), (Some("2.0.77"), false), (Some("2.1.332"), false), (Some("99.0.1"), true)] {
        let facts = ScreenFacts::default().with_version(version.map(str::to_owned));
        let verdict = judge_capture(&claude, &facts, &box_);
        let said = verdict.evidence.iter().find(|reason| reason.rule == pane::VERSION_NOT_SEEN);
        assert_eq!(said.is_some(), newer, "{version:?}");
        assert_eq!(verdict.state, State::Idle);
        assert!(said.is_none_or(|reason| reason.line.as_deref().unwrap().starts_with("99.0.1; ")), "{said:?}");
    }
}

#[test]
fn a_screen_of_unknown_origin_gets_no_unsafe_answer() {
    let profiles = Profiles::builtin().unwrap();
    let mut wrong = Vec::new();
    for screen in screens().iter().filter(|screen| screen.label.state != "copy-mode") {
        let profile = profiles.of_screen(&screen.capture).unwrap();
        let verdict = judge_capture(profile, &ScreenFacts::default(), &screen.capture);
        if screen.label.forbids(&verdict) {
            let facts = ScreenFacts::default();
            let say = format!("A SAFE ANSWER, though judged as {}", profile.name);
            wrong.push(report(screen, profile, &facts, &verdict, &say));
        }
    }
    assert!(wrong.is_empty(), "{} screens:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_box_of_codex_without_the_terminal_s_cursor_is_not_live() {
    let profiles = Profiles::builtin().unwrap();
    let (mut codex, mut open) = (0, 0);
    for screen in screens() {
        let profile = profiles.get(&screen.label.agent).unwrap();
        let judge = |shown| {
            let facts = ScreenFacts { cursor_shown: shown, ..screen.label.facts() };
            judge_capture(profile, &facts, &screen.capture).state
        };
        let free = |state| matches!(state, State::Idle | State::AutosuggestOnly | State::UserTyping | State::Busy);
        if screen.label.agent != "codex" {
            assert_eq!(judge(Some(false)), judge(Some(true)), "{}", screen.name);
            continue;
        }
        codex += 1;
        assert!(!free(judge(Some(false))), "{}", screen.name);
        assert_eq!(judge(None), judge(Some(true)), "{}", screen.name);
        open += usize::from(free(judge(None)));
    }
    assert!(codex > 400 && open > 200, "{codex} {open}");
}

#[test]
fn a_live_dialog_says_what_it_offers_and_what_enter_would_choose() {
    let profiles = Profiles::builtin().unwrap();
    let mut offered = 0;
    for screen in screens() {
        let verdict = judge_capture(profiles.get(&screen.label.agent).unwrap(), &screen.label.facts(), &screen.capture);
        let under = verdict.options.iter().filter(|option| option.under_cursor).count();
        // opencode marks the chosen one by its colour only.
        let marked = screen.label.agent != "opencode";
        assert!(verdict.options.is_empty() || under == usize::from(marked), "{}: {:?}", screen.name, verdict.options);
        let row = verdict.evidence.iter().find(|reason| reason.rule == "option-under-cursor");
        for option in verdict.options.iter().filter(|option| option.under_cursor) {
            let line = row.and_then(|reason| reason.line.as_deref()).unwrap_or_default();
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                screen.label.agent == "aider"
                    || line.contains(option.label.trim_end_matches('…'))
                    || line.ends_with('…'),
                "{}: {line}",
                screen.name
            );
        }
        if verdict.state != State::Blocked {
            assert!(verdict.options.is_empty() && verdict.question.is_none(), "{}", screen.name);
        }
        offered += under;
        if matches!(screen.label.state.as_str(), "blocked-permission" | "blocked-plan" | "blocked-question") {
            assert!(verdict.options.len() > 1, "{}: {:?}", screen.name, verdict.options);
        }
    }
    assert!(offered > 100, "only {offered} dialogs offer anything");
    // One that no rule names offers just the same.
    let text =
        "  Pick a colour for the tests\n\n  ❯ Red \x1b]0;x\x07hot\n    Green\n\n  Enter to confirm · Esc to cancel";
    let verdict = judge_capture(&claude(), &ScreenFacts::default(), &Capture::from_bytes(text.as_bytes()));
    assert_eq!((verdict.state, verdict.overlay), (State::Blocked, Some(pane::Overlay::Dialog)));
    assert_eq!(verdict.question.as_deref(), Some("Pick a colour for the tests"));
    let labels: Vec<(&str, bool)> =
        verdict.options.iter().map(|option| (option.label.as_str(), option.under_cursor)).collect();
    assert_eq!(labels, [("Red hot", true), ("Green", false)]);
}

#[test]
fn an_explanation_is_of_the_verdict_and_of_the_rows_of_the_screen() {
    let profiles = Profiles::builtin().unwrap();
    let mut near = 0;
    // How near each silent rule came takes long without optimisation.
    for screen in screens().iter().step_by(30) {
        let profile = profiles.get(&screen.label.agent).unwrap();
        let (facts, plain) = (screen.label.facts(), screen.capture.plain());
        let wanted = pane::wanted_style(profile, plain).filter(|_| screen.capture.has_colour());
        let styled = wanted.map(|(first, last)| (first, screen.capture.styled(first, last)));
        let styled = styled.as_ref().map(|(first, rows)| (*first, rows.as_slice()));
        let (verdict, explanation) = pane::explain(profile, &facts, plain, styled);
        assert_eq!(verdict, judge_whole(profile, &facts, &screen.capture), "{}", screen.name);
        let is_rule = |id: &str| profile.screen.rules.iter().any(|rule| rule.id == id);
        let decided = &verdict.evidence[0].rule;
        if is_rule(decided) {
            let found = explanation.matched.iter().find(|matched| matched.rule == *decided);
            assert!(found.is_some_and(|found| found.outcome.starts_with("decides")), "{}: {decided}", screen.name);
        }
        for (first, last) in explanation.regions.iter().filter_map(|region| region.rows) {
            assert!(first <= last && last < plain.len(), "{}: {first}-{last} of {}", screen.name, plain.len());
        }
        for region in explanation.regions.iter().filter(|region| region.region == "footer") {
            let (first, last) = region.rows.unwrap();
            let rows = plain[first..=last].iter().filter(|row| !row.trim().is_empty()).count();
            let is_cut = region.lines[0].ends_with("are left out)");
            assert!(is_cut || rows == region.lines.len(), "{}: {region:?}", screen.name);
        }
        for nearly in &explanation.nearest {
            assert!(explanation.matched.iter().all(|matched| matched.rule != nearly.rule), "{}", screen.name);
            near += 1;
        }
    }
    assert!(near > 20, "only {near} rules nearly matched");
}

#[test]
fn an_explanation_names_what_kept_a_rule_silent() {
    let claude = claude();
    let check = |version: Option<&str>, capture: &Capture, id: &str, reason: &str| {
        let facts = ScreenFacts::default().with_version(version.map(str::to_owned));
        let (_, explanation) = pane::explain(&claude, &facts, capture.plain(), None);
        let found = explanation.nearest.iter().find(|near| near.rule == id);
        assert!(found.is_some_and(|near| near.reason.contains(reason)), "{id}: {:?}", explanation.nearest);
    };
    // A footer that was worded anew.
    let anew = drawn("● Working.", EMPTY_BOX, "  ⏸ manual mode on · esc to halt");
    check(None, &anew, "claude-footer-interrupt", "\"to halt\" instead of");
    // A rule for other versions, and one for a box without the agent's cursor, which a screen without colours can't show.
    let silent = drawn("❯ go", EMPTY_BOX, "  main | 12%\n  ⏵⏵ bypass permissions on (shift+tab to cycle)");
    check(Some("2.0.77"), &silent, "claude-turn-without-end", "for versions from 2.1.0; this is 2.0.77");
    let help = drawn("● Done.", EMPTY_BOX, "  ! for shell mode   esc esc to clear\n  / for commands   shift+tab");
    check(None, &help, "claude-help-without-cursor", "no colour tells where it is");
}

/// The verdict on the whole screen at once.
fn judge_whole(profile: &Profile, facts: &ScreenFacts, capture: &Capture) -> PaneVerdict {
    let wanted = pane::wanted_style(profile, capture.plain()).filter(|_| capture.has_colour());
    let styled = wanted.map(|(first, last)| (first, capture.styled(first, last)));
    let styled = styled.as_ref().map(|(first, rows)| (*first, rows.as_slice()));
    pane::judge_screen(profile, facts, capture.plain(), styled)
}

#[test]
fn the_last_rows_of_a_screen_tell_the_same_as_all_of_it() {
    let profiles = Profiles::builtin().unwrap();
    let (mut differences, mut spared) = (Vec::new(), 0);
    // As after a long conversation: more of it above what the capture shows.
    let talk = "● It keeps the last good state.\n  A redraw never looks like a new screen.\n\n".repeat(12);
    let mut all = screens();
    all.extend(screens().into_iter().map(|screen| {
        let ansi = [talk.as_bytes(), &screen.ansi].concat();
        Screen { name: format!("{}, longer", screen.name), capture: Capture::from_bytes(&ansi), ansi, ..screen }
    }));
    for screen in all {
        let profile = profiles.get(&screen.label.agent).unwrap();
        let facts = screen.label.facts().with_version(screen.label.version.clone());
        let mut reader = pane::Reader::new(u16::try_from(screen.capture.plain().len()).unwrap());
        let first = reader.wants(profile, &facts);
        let whole = judge_whole(profile, &facts, &screen.capture);
        let staged = judge_capture(profile, &facts, &screen.capture);
        if staged != whole {
            differences.push(format!("{}: in stages {staged:?}\n    at once {whole:?}", screen.name));
        }
        if let Some(pane::Wanted::Plain { from: from @ 1.. }) = first {
            reader.take(pane::Wanted::Plain { from }, screen.capture.plain()[usize::from(from)..].to_vec());
            let again = matches!(reader.wants(profile, &facts), Some(pane::Wanted::Plain { .. }));
            spared += usize::from(!again);
        }
    }
    assert!(differences.is_empty(), "{} screens:\n{}", differences.len(), differences.join("\n"));
    assert!(spared > 100, "only {spared} screens were told by their last rows");
}

#[test]
fn every_fingerprint_is_seen_on_a_capture_or_listed_as_not_seen() {
    let profiles = Profiles::builtin().unwrap();
    let mut seen = BTreeSet::new();
    for screen in screens() {
        let profile = profiles.get(&screen.label.agent).unwrap();
        let facts = screen.label.facts();
        let wanted = pane::wanted_style(profile, screen.capture.plain());
        let styled = wanted.map(|(first, last)| (first, screen.capture.styled(first, last)));
        let styled = styled.as_ref().map(|(first, rows)| (*first, rows.as_slice()));
        for facts in [facts, ScreenFacts::default()] {
            let found = pane::matches(profile, &facts, screen.capture.plain(), styled);
            seen.extend(found.into_iter().map(|(_, id, _)| id));
        }
    }
    let text = std::fs::read_to_string(root().join("docs/accuracy.md")).unwrap();
    let listed: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("- `")?.split_once('`').map(|(id, _)| id.to_owned()))
        .filter(|id| !id.contains("--"))
        .collect();
    let rules = profiles.iter().flat_map(|profile| &profile.screen.rules);
    let ids: BTreeSet<String> = rules.map(|rule| rule.id.clone()).collect();
    let not_seen: BTreeSet<String> = ids.difference(&seen).cloned().collect();
    assert_eq!(listed, not_seen, "the list of rules without a capture in docs/accuracy.md must be the right-hand one");
}

#[test]
fn every_fingerprint_matches_its_texts_and_no_near_miss() {
    let profiles = Profiles::builtin().unwrap();
    let rules: Vec<_> = profiles.iter().flat_map(|profile| &profile.screen.rules).collect();
    for rule in &rules {
        let (_, hits, misses) = fingerprints::all()
            .find(|(id, ..)| *id == rule.id)
            .unwrap_or_else(|| panic!("{}: give it texts that it matches and near misses", rule.id));
        assert!(!hits.is_empty() && !misses.is_empty(), "{}", rule.id);
        for hit in *hits {
            assert!(rule.pattern.is_match(hit), "{} must match {hit:?}", rule.id);
        }
        for miss in *misses {
            assert!(!rule.pattern.is_match(miss), "{} must not match {miss:?}", rule.id);
        }
    }
    for (id, ..) in fingerprints::all() {
        assert!(rules.iter().any(|rule| rule.id == *id), "{id} is no rule");
    }
}

/// The profile, read once.
fn claude() -> Arc<Profile> {
    static CLAUDE: LazyLock<Arc<Profile>> =
        LazyLock::new(|| Arc::clone(Profiles::builtin().unwrap().get("claude").unwrap()));
    Arc::clone(&CLAUDE)
}

/// A screen of the shape that Claude Code draws, with this above the box, in the box and below it.
fn drawn(above: &str, inside: &str, below: &str) -> Capture {
    let rule = "─".repeat(60);
    Capture::from_bytes(format!("{above}\n\n{rule}\n{inside}\n{rule}\n{below}\n").as_bytes())
}

const EMPTY_BOX: &str = "❯\u{a0}\x1b[7m \x1b[0m";

#[test]
fn a_spinner_is_known_by_its_shape_and_place_not_by_its_word() {
    let claude = claude();
    let facts = ScreenFacts::default();
    let finished = ["✻ Brewed for 3m 12s", "✶ Zorbled for 1h 3m · done 9:32 PM", "✻ Conversation compacted"];
    for word in ["Zorbling", "Hyper-whisking", "Überlegend", "Doing the thing", "思考中"] {
        for tail in ["…", "… (esc to interrupt)", "… (12s · ↓ 1.2k tokens)", "… (1m 9s · thinking)"] {
            for glyph in ['·', '✢', '✳', '✶', '✻', '✽', '*'] {
                let above = format!("❯ go\n\n● Working on it.\n\n{glyph} {word}{tail}");
                let verdict = judge_capture(&claude, &facts, &drawn(&above, EMPTY_BOX, "  ? for shortcuts"));
                assert_eq!(verdict.state, State::Busy, "{above}");
                let quoted = format!("❯ go\n\n● It prints:\n  {glyph} {word}{tail}\n");
                let verdict = judge_capture(&claude, &facts, &drawn(&quoted, EMPTY_BOX, "  ? for shortcuts"));
                assert_eq!(verdict.state, State::Idle, "{quoted}");
            }
        }
    }
    for line in finished {
        let verdict = judge_capture(&claude, &facts, &drawn(line, EMPTY_BOX, "  ? for shortcuts"));
        assert_eq!(verdict.state, State::Idle, "{line}");
    }
}

#[test]
fn a_limit_counts_only_while_nothing_came_after_it() {
    let claude = claude();
    let facts = ScreenFacts::default();
    let notice = "❯ go\n  ⎿ \u{a0}You've hit your weekly limit · resets Oct 5, 1am (UTC)\n     /upgrade to increase your usage limit.";
    let verdict = judge_capture(&claude, &facts, &drawn(notice, EMPTY_BOX, "  ? for shortcuts"));
    assert_eq!(verdict.state, State::OverLimit);
    assert_eq!(verdict.limit.as_deref(), Some("weekly"));
    assert_eq!(verdict.reset_at.as_deref(), Some("Oct_5,_1am_UTC"));
    let ended = judge_capture(&claude, &facts, &drawn(&format!("{notice}\n\n✻ Cooked for 0s"), EMPTY_BOX, "  x"));
    assert_eq!(ended.state, State::OverLimit, "the line that closes a turn is no news");
    for after in ["❯ again\n\n● Here you are.", "❯ again"] {
        let verdict =
            judge_capture(&claude, &facts, &drawn(&format!("{notice}\n\n{after}"), EMPTY_BOX, "  ? for shortcuts"));
        assert_eq!(verdict.state, State::Idle, "{after}");
    }
    let running = drawn(notice, EMPTY_BOX, "  esc to interrupt");
    assert_eq!(judge_capture(&claude, &facts, &running).state, State::Busy);
}

#[test]
fn a_turn_without_its_closing_line_is_not_idle_where_the_footer_is_silent() {
    let claude = claude();
    let silent = "  main | 12%\n  ⏵⏵ bypass permissions on (shift+tab to cycle)";
    for (above, below, state) in [
        ("❯ go\n\n● Some text that streams\n  and goes on", silent, State::Busy),
        ("❯ go", silent, State::Busy),
        ("❯ go\n\n● All done.\n\n✻ Cooked for 3s · done 9:32 PM", silent, State::Idle),
        ("❯ go\n\n● Some text\n  ⎿ \u{a0}Interrupted · What should Claude do instead?", silent, State::Idle),
        ("❯ /cost\n  ⎿ \u{a0}Total cost: 1", silent, State::Idle),
        ("❯ go\n\n● API Error: 500 Internal server error.", silent, State::Idle),
        ("❯ go\n\n● All done.", "  ⏸ manual mode on · ? for shortcuts", State::Idle),
        (" Claude Code v2.0.77\n\n❯ go\n\n● All done.", silent, State::Idle),
        ("", silent, State::Idle),
    ] {
        let verdict = judge_capture(&claude, &ScreenFacts::default(), &drawn(above, EMPTY_BOX, below));
        assert_eq!(verdict.state, state, "{above}\n{below}");
    }
}

#[test]
fn a_turning_title_tells_of_a_turn_only_where_the_agent_is_on_the_screen() {
    let claude = claude();
    let facts = ScreenFacts { title: Some("⠂ Fix the loader".into()), ..ScreenFacts::default() };
    let viewer = format!("● Some text\n{}\n  Showing detailed transcript · ctrl+o to toggle", "─".repeat(60));
    let box_of = |below: &str| drawn("● Some text", EMPTY_BOX, below);
    for (capture, state) in [
        (Capture::from_bytes(viewer.as_bytes()), State::Busy),
        (box_of("  ? for shortcuts"), State::Busy),
        (box_of("  ⏸ manual mode on · 1 shell · ↓ to manage"), State::WorkingBackground),
        (box_of("  ? for shortcuts\ndemo$ "), State::Unknown),
        (Capture::from_bytes(b"demo$ "), State::Unknown),
    ] {
        assert_eq!(judge_capture(&claude, &facts, &capture).state, state);
    }
    let quiet = ScreenFacts { title: Some("✳ Fix the loader".into()), ..ScreenFacts::default() };
    assert_eq!(judge_capture(&claude, &quiet, &Capture::from_bytes(viewer.as_bytes())).state, State::Unknown);
}

#[test]
fn anything_printed_below_a_box_makes_it_a_remnant() {
    let claude = claude();
    let facts = ScreenFacts::default();
    for below in ["  ? for shortcuts\ndemo$ ", "  ? for shortcuts\nKilled\ndemo$ make\nok", "demo$ "] {
        let verdict = judge_capture(&claude, &facts, &drawn("● Done.", EMPTY_BOX, below));
        assert_eq!((verdict.state, verdict.agent), (State::Unknown, None), "{below}");
    }
    // A list of completions stands at the left edge on 2.1.220, below a draft that asks for one.
    let list = "/add-dir    Add a working directory\n/agents     Manage agents";
    for (inside, below, state) in [
        ("❯\u{a0}/\x1b[7m \x1b[0m", list, State::UserTyping),
        ("❯\u{a0}/\x1b[7m \x1b[0m", "  x\ndemo$ ", State::Unknown),
        (EMPTY_BOX, list, State::Unknown),
    ] {
        assert_eq!(judge_capture(&claude, &facts, &drawn("● Done.", inside, below)).state, state, "{below}");
    }
    // A status line of the user's own may start at the left edge while the agent's footer follows.
    let verdict = judge_capture(&claude, &facts, &drawn("● Done.", EMPTY_BOX, "main | 12%\n  ? for shortcuts"));
    assert_eq!(verdict.state, State::Idle);
}

#[test]
fn without_colour_a_text_in_the_box_counts_as_a_draft() {
    let claude = claude();
    let capture = drawn("● Done.", "❯\u{a0}run the tests", "  ? for shortcuts");
    let verdict = judge_capture(&claude, &ScreenFacts::default(), &capture);
    assert_eq!((verdict.state, verdict.input), (State::UserTyping, Some(InputRow::Unclear)));
    let plain = Capture::from_bytes(b"");
    assert_eq!(judge_capture(&claude, &ScreenFacts::default(), &plain).state, State::Unknown);
}

#[test]
fn the_text_of_the_box_comes_out_joined_with_its_folded_paste() {
    let claude = claude();
    for (inside, text, chip) in [
        (
            "❯\u{a0}[Pasted text #1 +40 lines] and\n  more\x1b[7m ",
            "[Pasted text #1 +40 lines] and\nmore",
            Some(Some(40)),
        ),
        ("❯\u{a0}\x1b[0m[Pasted text #2]\x1b[7m ", "[Pasted text #2]", Some(None)),
        ("❯\u{a0}\x1b[0mfirst\n\n  third\x1b[7m ", "first\n\nthird", None),
        ("❯\u{a0}\x1b[0m日本語 🚀 שלום\x1b[7m ", "日本語 🚀 שלום", None),
    ] {
        let capture = drawn("● Done.", inside, "  ? for shortcuts");
        let (first, last) = pane::wanted_style(&claude, capture.plain()).unwrap();
        let rows = capture.styled(first, last);
        let composer = pane::composer(&claude, capture.plain(), Some((first, &rows))).unwrap();
        assert_eq!(composer.text, text);
        assert_eq!(composer.input, InputRow::Typed, "{inside:?}");
        assert_eq!(composer.chip.map(|chip| chip.lines), chip);
    }
}

#[test]
fn a_screen_that_moved_on_between_the_two_reads_is_not_called_typed_or_blank_wrongly() {
    let claude = claude();
    let capture = drawn("● Done.", "❯\u{a0}hello", "  ? for shortcuts");
    let rows = vec!["❯\u{a0}\x1b[7m \x1b[0m".to_owned()];
    let (first, _) = pane::wanted_style(&claude, capture.plain()).unwrap();
    let verdict = pane::judge_screen(&claude, &ScreenFacts::default(), capture.plain(), Some((first, &rows)));
    assert_eq!((verdict.state, verdict.input), (State::UserTyping, Some(InputRow::Unclear)));
}

#[test]
fn numbers_alone_do_not_change_the_checksum_and_text_does() {
    let claude = claude();
    let hash = |above: &str| {
        judge_capture(&claude, &ScreenFacts::default(), &drawn(above, EMPTY_BOX, "  ? for shortcuts")).content_hash
    };
    assert_eq!(hash("● step 1 of 9"), hash("● step 22 of 9"));
    assert_eq!(hash("● done"), hash(&format!("● done\n{}◐ medium · /effort", " ".repeat(40))));
    assert_ne!(hash("● done"), hash("● undone"));
}

#[test]
fn other_programs_are_nobodys_box() {
    let claude = claude();
    for screen in [
        "~/demo\n❯ ",
        "demo$ ls\nmain.py\ndemo$ ",
        "top - 10:00\n  PID USER\n    1 root",
        "❯ cargo test\n  running 3 tests\n  ok\n❯ ",
    ] {
        let verdict = judge_capture(&claude, &ScreenFacts::default(), &Capture::from_bytes(screen.as_bytes()));
        assert_eq!((verdict.state, verdict.agent), (State::Unknown, None), "{screen}");
    }
}

/// Rows made of the pieces that screens are made of, so that odd combinations are reached.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("─".repeat(40)),
        Just("▔".repeat(40)),
        Just("❯\u{a0}".to_owned()),
        Just("❯ 1. Yes".to_owned()),
        Just("  2. No".to_owned()),
        Just("  ? for shortcuts".to_owned()),
        Just("  ⎿ \u{a0}You've hit your limit".to_owned()),
        Just("✻ Brewing… (3s)".to_owned()),
        Just("Esc to cancel".to_owned()),
        Just("demo$ ".to_owned()),
        Just(String::new()),
        Just("\x1b[2mdim\x1b[7m ".to_owned()),
        ".{0,30}",
    ]
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _any = judge_capture(&claude(), &ScreenFacts::default(), &Capture::from_bytes(&bytes));
    }

    #[test]
    fn no_mixture_of_pieces_panics_or_is_idle_without_an_empty_box(rows in proptest::collection::vec(piece(), 0..14)) {
        let claude = claude();
        let capture = Capture::from_bytes(rows.join("\n").as_bytes());
        let verdict = judge_capture(&claude, &ScreenFacts::default(), &capture);
        if matches!(verdict.state, State::Idle | State::AutosuggestOnly) {
            let composer = pane::composer(&claude, capture.plain(), None);
            prop_assert!(composer.is_some_and(|composer| composer.plain_prompt));
            prop_assert!(matches!(verdict.input, Some(InputRow::Blank | InputRow::Ghost)));
        }
    }

    #[test]
    fn styled_rows_of_any_place_do_not_panic(first in 0u16..60, rows in proptest::collection::vec(piece(), 0..8)) {
        let capture = drawn("● Done.", "❯\u{a0}text\n  more", "  ? for shortcuts");
        let _any = pane::judge_screen(&claude(), &ScreenFacts::default(), capture.plain(), Some((first, &rows)));
    }
}

#[test]
fn a_question_at_the_end_of_a_line_editor_is_live_only_while_nothing_follows() {
    let profiles = Profiles::builtin().unwrap();
    let aider = profiles.get("aider").unwrap();
    let rule = "─".repeat(40);
    let screen = |end: &str| Capture::from_bytes(format!("{rule}\n> go on\n\n{end}\n").as_bytes());
    for (end, state) in [
        ("Add main.py? (Y)es/(N)o [Yes]:", State::Blocked),
        ("Add it? (Y)es/(N)o/(A)ll/(S)kip all/(D)on't ask again [Yes]: n", State::Blocked),
        ("Add it? (Y)es/(N)\no [Yes]:", State::Blocked),
        ("Say (Y)es/(N)o [Yes]: whenever it asks", State::Busy),
        ("Add it? (Y)es/(N)o [Yes]: y\n\nAdded.", State::Busy),
        (&format!("Done.\n{rule}\n>"), State::Idle),
        ("Done.\ndemo$", State::Unknown),
    ] {
        let verdict = judge_capture(aider, &ScreenFacts::default(), &screen(end));
        assert_eq!(verdict.state, state, "{end}: {:?}", verdict.evidence);
        if state == State::Blocked {
            let chosen: Vec<&str> =
                verdict.options.iter().filter(|one| one.under_cursor).map(|one| one.label.as_str()).collect();
            assert_eq!(chosen, ["(Y)es"]);
        }
    }
}

/// Codex 0.171.0 draws `/memories` over the page, while its empty prompt stays on the screen and takes no keys.
#[test]
fn a_dialog_that_floats_over_a_live_prompt_of_codex_is_not_idle() {
    let profiles = Profiles::builtin().unwrap();
    let profile = profiles.get("codex").unwrap();
    let check = |panel: &str, footer: &str, wanted: State| {
        let page = format!(
            "• 31. line 31\n  32. line 32\n{panel}\n  Worked for <1s • 09:24\n\n\n\u{1b}[1m›\u{1b}[0m \u{1b}[2mAsk Codex\u{1b}[0m\n\n{footer}\n"
        );
        let facts = ScreenFacts { title: Some("demo".to_owned()), ..ScreenFacts::default() };
        let verdict = judge_capture(profile, &facts, &Capture::from_bytes(page.as_bytes()));
        assert_eq!(verdict.state, wanted, "{page}\n{:?}", verdict.evidence);
    };
    let covered = "  mock-1 default · /srv/demo";
    let live = "  mock-1 default · /srv/demo\n  ← for agents · ? for shortcuts";
    let floating = "  33. line 33 › 1. Yes, enable  Save\n  34. line 34   2. Not now      Keep\n  35. line     enter select · esc back";
    check(floating, covered, State::Unknown);
    check(&floating.replace("enter select · esc back", "select"), covered, State::Unknown);
    check("  › 1. Yes\n    2. No\n    enter select · esc back", covered, State::Unknown);
    // Text that only quotes such a dialog: the live prompt has its whole footer, or the labels stand where text does.
    check(floating, live, State::AutosuggestOnly);
    check("  › 1. Yes\n    2. No\n  enter select · esc back", covered, State::AutosuggestOnly);
    check("  it asked: › 1. Yes, enable\n  and then it went on", covered, State::AutosuggestOnly);
}
