//! The built-in profiles, and what an operator's files make of them.

use super::*;
use crate::logic::pane::State;

fn file(name: &str, text: &str) -> ProfileFile {
    ProfileFile { path: PathBuf::from(format!("/n/config/agents.d/{name}")), text: Ok(text.to_owned()) }
}

fn load(files: &[ProfileFile]) -> (Profiles, Vec<String>) {
    let (profiles, problems) = Profiles::with_files(files).unwrap();
    (profiles, problems.iter().map(ToString::to_string).collect())
}

/// Asserts what is said of one bad file, and that nothing of it is in force.
fn check_bad(name: &str, text: &str, expected: &str) {
    let (profiles, problems) = load(&[file(name, text)]);
    assert_eq!(problems.len(), 1, "{text}: {problems:?}");
    let said = problems[0].strip_prefix("/n/config/agents.d/").unwrap();
    assert!(said.starts_with(expected), "{said}");
    let builtin = Profiles::builtin().unwrap();
    assert!(profiles.sources().map(|(_, source)| source).eq(builtin.sources().map(|(_, source)| source)));
}

/// What a 3-a.m. operator writes after a release that words its footer anew.
const FIX: &str = "\
amends: claude
why: 2.9.0 words the footer anew
made_for: 1
add:
  - id: claude-footer-interrupt-2-9
    region: footer
    regex: 'press esc twice'
    priority: 60
    says: {state: busy}
    why: seen on 2.9.0 only
";

#[test]
fn every_builtin_profile_loads_under_its_own_name() {
    let profiles = Profiles::builtin().unwrap();
    let names: Vec<_> = profiles.iter().map(|profile| profile.name.as_str()).collect();
    assert_eq!(names, BUILTIN.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for profile in profiles.iter() {
        assert!(profile.version > 0, "{} has a version of its own", profile.name);
    }
}

#[test]
fn the_demo_agent_has_the_screen_of_its_model_and_its_own_process() {
    let profiles = Profiles::builtin().unwrap();
    let (claude, demo) = (profiles.get("claude").unwrap(), profiles.get("demo").unwrap());
    assert!(Arc::ptr_eq(&claude.screen, &demo.screen));
    let argv: Vec<String> = ["ng", "demo", "agent"].map(str::to_owned).into();
    assert_eq!(profiles.of_process("/opt/bin/ng", &argv).unwrap().name, "demo");
    assert_eq!(profiles.of_process("/usr/bin/claude", &[]).unwrap().name, "claude");
    assert!(profiles.of_process("/usr/bin/bash", &[]).is_none());
}

#[test]
fn ten_lines_add_a_rule_to_a_profile_and_to_whoever_shares_its_screen() {
    let rule = "─".repeat(60);
    let screen = format!("● Working.\n{rule}\n❯\u{a0}\n{rule}\n  press esc twice\n");
    let judge = |profiles: &Profiles, name: &str| {
        let capture = Capture::from_bytes(screen.as_bytes());
        judge_capture(profiles.get(name).unwrap(), &ScreenFacts::default(), &capture).state
    };
    let (amended, problems) = load(&[file("fix.yml", FIX)]);
    assert_eq!(problems, [""; 0]);
    for (profiles, expected) in [(&Profiles::builtin().unwrap(), State::Idle), (&amended, State::Busy)] {
        assert_eq!((judge(profiles, "claude"), judge(profiles, "demo")), (expected, expected));
    }
    let (_, source) = amended.sources().find(|(profile, _)| profile.name == "claude").unwrap();
    assert_eq!(source.origin, Origin::BuiltIn);
    assert_eq!(source.amended[0].summary(), "adds claude-footer-interrupt-2-9");
    assert_eq!(source.amended[0].made_for, Some(1));
    // What is in effect is a profile that could stand in a file of its own.
    let whole = parse("claude", &source.text, |_| None).unwrap();
    assert_eq!(whole.screen.rules[0].id, "claude-footer-interrupt-2-9");
}

#[test]
fn rules_are_changed_removed_and_other_keys_set() {
    let text = "amends: claude\nremove: [claude-survey]\nchange:\n  claude-spinner: {literal: 'Zzz', priority: 99}\nset:\n  \
                seen: [9.9.9]\n  paste: {busy: hold}\n  screen: {prompt: '>'}\n";
    let (profiles, problems) = load(&[file("a.yml", text)]);
    assert_eq!(problems, [""; 0]);
    let claude = profiles.get("claude").unwrap();
    let rule = claude.screen.rules.iter().find(|rule| rule.id == "claude-spinner").unwrap();
    assert_eq!((rule.priority, rule.pattern.as_str()), (99, "Zzz"));
    assert!(claude.screen.rules.iter().all(|rule| rule.id != "claude-survey"));
    assert_eq!((claude.screen.layout.prompt, claude.screen.layout.rule), ('>', '─'));
    assert_eq!(claude.paste.busy, crate::logic::pane::BusyPaste::Hold);
    assert!(claude.paste.numbered_folds, "what is not named stays");
    assert_eq!(claude.seen, [[9, 9, 9]]);
    let (_, source) = profiles.sources().next().unwrap();
    assert_eq!(
        source.amended[0].summary(),
        "changes claude-spinner; removes claude-survey; sets seen, paste.busy, screen.prompt"
    );
}

#[test]
fn files_are_applied_in_order_and_a_bad_one_spoils_no_other() {
    let (profiles, problems) = load(&[
        file("10.yml", FIX),
        file("20.yml", "amends: claude\nremove: [no-such-rule]\n"),
        file("30.yml", "amends: claude\nchange:\n  claude-footer-interrupt-2-9: {priority: 61}\n"),
    ]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    let (claude, source) = profiles.sources().next().unwrap();
    assert_eq!((claude.screen.rules[0].priority, source.amended.len()), (61, 2));
}

#[test]
fn a_file_replaces_a_profile_whole_or_adds_one() {
    let other = "name: fig\ntitle: Fig\nprocess: {exe_names: [fig]}\npaste: {bracketed: true, busy: hold, live_marks: \
                 ['>']}\nscreen: claude\n";
    let (_, claude) = BUILTIN[0];
    let whole = claude.replacen("title: Claude Code", "title: Mine", 1);
    let (profiles, problems) = load(&[file("claude.yml", &whole), file("fig.yml", other), file("x.yml", FIX)]);
    assert_eq!(problems, [""; 0]);
    assert_eq!(profiles.iter().last().unwrap().name, "fig");
    let (mine, source) = profiles.sources().next().unwrap();
    assert_eq!((mine.title.as_str(), source.amended.len()), ("Mine", 1));
    assert_eq!(source.origin, Origin::File("/n/config/agents.d/claude.yml".into()));
    assert!(Arc::ptr_eq(&profiles.get("fig").unwrap().screen, &mine.screen));
    assert_eq!(profiles.of_process("/usr/bin/fig", &[]).unwrap().name, "fig");
    // A program that is named for the generic profile too is the one with a profile of its own.
    let any = "amends: generic\nset:\n  process: {exe_names: [fig, fog]}\n";
    let (profiles, problems) = load(&[file("any.yml", any), file("fig.yml", other)]);
    assert_eq!(problems, [""; 0]);
    let of = |exe: &str| profiles.of_process(exe, &[]).map(|profile| profile.name.as_str());
    assert_eq!((of("/usr/bin/fig"), of("/usr/bin/fog"), of("/usr/bin/vim")), (Some("fig"), Some("generic"), None));
}

#[test]
fn a_bad_file_is_told_by_file_line_and_key() {
    check_bad("a.yml", "", "a.yml: the file is empty");
    check_bad("a.yml", "- x\n", "a.yml:1: neither a profile");
    check_bad("a.yml", "amends: [\n", "a.yml:2: ");
    check_bad("a.yml", "amends: claud\n", "a.yml:1: amends: no profile \"claud\"; known are: claude");
    check_bad("a.yml", "amends: claude\nad: []\n", "a.yml:2: unknown field `ad`");
    check_bad("a.yml", &FIX.replace("twice", "(twice"), "a.yml:7: screen.rules.claude-footer-interrupt-2-9");
    check_bad(
        "a.yml",
        &FIX.replace("region: footer", "region: feet"),
        "a.yml:6: add[0].region: unknown variant `feet`",
    );
    check_bad("a.yml", &FIX.replace("    why: seen on 2.9.0 only\n", ""), "a.yml:5: add[0]: missing field `why`");
    check_bad("a.yml", &FIX.replace("-2-9", ""), "a.yml:5: add.claude-footer-interrupt: a rule of this id");
    check_bad(
        "a.yml",
        "amends: claude\nchange:\n  claude-spiner: {priority: 1}\n",
        "a.yml:3: change.claude-spiner: no rule of this id; did you mean claude-spinner?",
    );
    check_bad("a.yml", "amends: claude\nset:\n  screen:\n    rules: []\n", "a.yml:4: set.screen.rules: holds rules");
    check_bad("a.yml", "amends: claude\nset:\n  pasta: 1\n", "a.yml:3: unknown field `pasta`");
    check_bad("a.yml", "amends: demo\nremove: [claude-spinner]\n", "a.yml:1: amends: demo has the screen of claude");
    check_bad("fig.yml", "name: fog\n", "fig.yml:1: missing field");
    let unreadable = ProfileFile { path: "/n/config/agents.d/a.yml".into(), text: Err("denied".into()) };
    assert!(load(&[unreadable]).1[0].ends_with("a.yml: it can't be read: denied"));
}
