//! Bad input: one clear line that says what to do, the documented exit code, nothing overwritten, no panic.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and waits by polling")]

#[path = "support/fleet.rs"]
#[allow(dead_code, reason = "each test file uses its part of the fleet")]
mod fleet;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fleet::Fleet;

const NG: &str = env!("CARGO_BIN_EXE_ng");
const WATCHER: &str = env!("CARGO_BIN_EXE_nexus-watcher");
const LAUNCHER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/monitor/watcher/launcher.sh");

/// A nexus without a tmux server, and the programs in an empty environment.
struct Nexus {
    dir: tempfile::TempDir,
}

impl Nexus {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["root/monitor", "root/config", "home", "bin"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        fs::write(dir.path().join("root/config/nexus.yml"), "monitor: {}\n").unwrap();
        Self { dir }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// A program in the root, in an environment of its own; the tmux socket is one that nobody listens on. The launcher
    /// takes the tree that it lies in for the root unless it is told, which is this project's own.
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.at("root"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.at("home"))
            .env("NEXUS_BIN_DIR", Path::new(NG).parent().unwrap())
            .env("NEXUS_TMUX_SOCKET", self.at("no.sock"))
            .stdin(Stdio::null());
        if program == LAUNCHER {
            command.env("NEXUS_ROOT", self.at("root"));
        }
        command
    }

    /// Puts the tools of the launcher, and `tmux` if it is given, into a `PATH` of their own.
    fn path_with(&self, tmux: Option<&str>) -> PathBuf {
        let bin = self.at("bin");
        let path = std::env::var_os("PATH").unwrap();
        for tool in
            ["sh", "readlink", "dirname", "setsid", "flock", "mkdir", "cat", "date", "grep", "sleep", "sed", "tr"]
        {
            let found = std::env::split_paths(&path).map(|dir| dir.join(tool));
            let _exists = symlink({ found }.find(|file| file.exists()).unwrap(), bin.join(tool));
        }
        if let Some(script) = tmux {
            fs::write(bin.join("tmux"), script).unwrap();
            fs::set_permissions(bin.join("tmux"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        bin
    }
}

/// Asserts the exit code, and that one line and nothing else is said, which holds `words`.
fn check(output: &Output, code: i32, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(said.contains(words), "{words:?} in {said}");
}

/// Asserts that a text tells of no panic.
fn no_panic(text: &str) {
    assert!(!text.contains("panicked") && !text.contains("RUST_BACKTRACE"), "{text}");
}

#[test]
fn a_usage_error_is_one_line_that_names_the_help() {
    let nexus = Nexus::new();
    let bad = "unexpected argument '--bogus' found";
    for (args, code, words) in [
        (&["--bogus"][..], 2, format!("ng: {bad}; see ng --help")),
        (&["emit"], 2, "unrecognized subcommand 'emit'; a similar subcommand exists: 'emits'".into()),
        (&["--root"], 2, "a value is required for '--root <DIR>'".into()),
        (&["config", "--bogus"], 2, format!("ng config: {bad}; see ng config --help")),
        (&["config", "check", "--bogus"], 2, format!("ng config check: {bad}")),
        (&["config", "get"], 2, "not provided: <KEY>; see ng config get --help".into()),
        (&["decision-ack", "--bogus"], 2, bad.into()),
        (&["decision-ack"], 2, "not provided: <WINDOW|PATH>".into()),
        (&["decision-ack", "w"], 2, "give WINDOW FINGERPRINT".into()),
        (&["decision-ack", "w", "12"], 2, "give the twelve hex digits".into()),
        (&["demo", "--bogus"], 2, bad.into()),
        (&["demo", "agent", "--role", "king"], 2, "[possible values: ".into()),
        (&["emits", "--bogus"], 2, bad.into()),
        (&["emits", "-n", "x"], 2, "invalid value 'x' for '--count <N>'".into()),
        (&["emits", "show", "--bogus"], 2, bad.into()),
        (&["hooks", "--bogus"], 2, bad.into()),
        (&["hooks", "settings"], 2, "not provided: --window <NAME>".into()),
        (&["log-action", "me"], 2, "not provided: --event <EVENT>".into()),
        (&["pane-state", "--bogus"], 64, bad.into()),
        (&["pane-state"], 64, "which pane?".into()),
        (&["tasks", "--bogus"], 2, bad.into()),
        (&["watcher-status", "--bogus"], 64, bad.into()),
    ] {
        check(&nexus.command(NG, args).output().unwrap(), code, &words);
    }
    check(&nexus.command(WATCHER, &["--bogus"]).output().unwrap(), 1, "see nexus-watcher --help");
    check(&nexus.command(WATCHER, &["--target"]).output().unwrap(), 1, "a value is required");
    check(
        &nexus.command(LAUNCHER, &["--bogus"]).output().unwrap(),
        1,
        "launcher.sh: unexpected argument '--bogus' found; see launcher.sh --help",
    );
    // A hook never fails its agent's turn.
    for args in [&["hook", "--bogus"][..], &["hook", "stop"], &["hook"]] {
        assert_ne!(nexus.command(NG, args).output().unwrap().status.code(), None, "{args:?}");
    }
    assert!(!nexus.at("root/monitor/.state").exists(), "bad usage makes nothing");
}

/// Every way to ask or start, with the exit code where the question could not be put.
const ALL: &[(&str, &[&str], i32)] = &[
    (NG, &["decision-ack", "w", "0a1b2c3d4e5f"], 1),
    (NG, &["decision-ack", "w", "--all"], 1),
    (NG, &["emits"], 1),
    (NG, &["emits", "show"], 1),
    (NG, &["hooks", "settings", "--window", "w"], 1),
    (NG, &["log-action", "me", "--event", "x"], 1),
    (NG, &["tasks"], 1),
    (NG, &["watcher-status"], 64),
    (NG, &["watcher-status", "--scheduler"], 64),
    (WATCHER, &[], 5),
    (WATCHER, &["--replace"], 5),
    (LAUNCHER, &[], 5),
    (LAUNCHER, &["--replace"], 5),
];

#[test]
fn a_state_directory_that_cannot_be_looked_into_is_not_an_empty_one() {
    let nexus = Nexus::new();
    let file = nexus.at("root/monitor/.state");
    fs::write(&file, "mine").unwrap();
    for (program, args, code) in ALL {
        let output = nexus.command(program, args).output().unwrap();
        check(&output, *code, "NEXUS_STATE_DIR");
        // A folder below a file can't be looked into either.
        let below = file.join("below");
        check(&nexus.command(program, args).env("NEXUS_STATE_DIR", below).output().unwrap(), *code, "NEXUS_STATE_DIR");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_state_directory_without_permissions_is_told_apart_too() {
    let nexus = Nexus::new();
    let locked = nexus.at("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read_dir(&locked).is_ok() {
        // The superuser may read everything; the test above has the same fault without permissions.
        return;
    }
    for (program, args, code) in ALL {
        let output = nexus.command(program, args).env("NEXUS_STATE_DIR", &locked).output().unwrap();
        check(&output, *code, "state directory");
    }
}

#[test]
fn a_root_that_leads_nowhere_is_said() {
    let nexus = Nexus::new();
    for (program, args, code) in ALL {
        // Without a root there is nothing to start.
        let code = if *code == 5 { 2 } else { *code };
        let at = |command: &mut Command| command.output().unwrap();
        check(&at(nexus.command(program, args).env("NEXUS_ROOT", "/does/not/exist")), code, "/does/not/exist");
        check(&at(&mut nexus.command(program, &[&["--root", "/does/not"], *args].concat())), code, "/does/not");
        if *program != LAUNCHER {
            check(&at(nexus.command(program, args).current_dir("/")), code, "no nexus found in /");
        }
    }
    for args in [&["pane-state", "w"][..], &["pane-state", "--all"]] {
        check(&nexus.command(NG, args).current_dir("/").output().unwrap(), 2, "give --root DIR, or set NEXUS_ROOT");
    }
}

#[test]
fn no_tmux_an_old_tmux_and_no_server_are_each_said() {
    let nexus = Nexus::new();
    let ask: &[(&str, &[&str])] = &[(NG, &["pane-state", "w"]), (NG, &["pane-state", "--all"])];
    let start: &[(&str, &[&str])] = &[(WATCHER, &[]), (WATCHER, &["--once"])];
    let path = nexus.path_with(None);
    for (program, args) in [ask, start, &[(LAUNCHER, &[])]].concat() {
        let output = nexus.command(program, args).env("PATH", &path).output().unwrap();
        check(&output, 2, "tmux is not installed or not in PATH; install it");
    }
    let path = nexus.path_with(Some("#!/bin/sh\necho 'tmux 3.1c'\n"));
    for (program, args) in [ask, start].concat() {
        let output = nexus.command(program, args).env("PATH", &path).output().unwrap();
        check(&output, 2, "tmux 3.1c is too old; install version 3.2 or later");
    }
    let output = nexus.command(LAUNCHER, &[]).env("PATH", &path).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("tmux 3.1c is too old"));
    for (program, args) in ask {
        check(&nexus.command(program, args).output().unwrap(), 2, "no tmux server on ");
    }
}

#[test]
fn a_bad_configuration_stops_the_start_and_not_the_questions() {
    let nexus = Nexus::new();
    let file = nexus.at("root/config/nexus.yml");
    fs::write(&file, "monitor:\n  interval_seconds: soon\n").unwrap();
    let output = nexus.command(WATCHER, &[]).output().unwrap();
    check(&output, 1, "nexus.yml:2:21: monitor.interval_seconds");
    check(&nexus.command(NG, &["config", "check"]).output().unwrap(), 1, "nexus.yml:2:21");
    assert_eq!(nexus.command(NG, &["watcher-status"]).output().unwrap().status.code(), Some(3));
    let output = nexus.command(NG, &["tasks"]).output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("compose_emit"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the cadences are the defaults"));
    // A configuration that can't be reached is not a missing one.
    fs::remove_dir_all(nexus.at("root/config")).unwrap();
    symlink("config", nexus.at("root/config")).unwrap();
    fs::write(nexus.at("root/nexus.yml"), "monitor: {}\n").unwrap();
    check(&nexus.command(NG, &["config", "check"]).output().unwrap(), 1, "config/nexus.yml: the file can't be read");
}

#[test]
fn the_tasks_are_listed_with_the_configured_cadence() {
    let nexus = Nexus::new();
    fs::write(nexus.at("root/config/nexus.yml"), "monitor:\n  interval_seconds: 7\n").unwrap();
    let output = nexus.command(NG, &["tasks"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let row = text.lines().find(|line| line.starts_with("compose_emit")).unwrap();
    assert_eq!(row.split_whitespace().nth(1), Some("7s"), "{row}");
}

#[test]
fn the_root_flag_wins_over_every_variable_and_a_folder_below_it_finds_it() {
    let (ours, other) = (Nexus::new(), Nexus::new());
    for (nexus, name) in [(&ours, "ours"), (&other, "other")] {
        fs::create_dir_all(nexus.at("root/monitor/.state")).unwrap();
        fs::write(nexus.at("root/monitor/.state/watcher-target"), name).unwrap();
    }
    let root = ours.at("root");
    let said = |command: &mut Command| String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned();
    let mut command = other.command(NG, &["--root", root.to_str().unwrap(), "watcher-status"]);
    let text =
        said(command.env("NEXUS_ROOT", other.at("root")).env("NEXUS_STATE_DIR", other.at("root/monitor/.state")));
    assert!(text.contains("target: ours"), "{text}");
    let text = said(ours.command(NG, &["watcher-status"]).current_dir(ours.at("root/monitor")));
    assert!(text.contains("target: ours"), "{text}");
}

#[test]
fn every_answer_comes_in_json_too() {
    let nexus = Nexus::new();
    for args in [
        &["config", "check"][..],
        &["config", "doc"],
        &["config", "example"],
        &["config", "get", "monitor.interval_seconds"],
        &["config", "show"],
        &["emits"],
        &["hooks", "settings", "--window", "w"],
        &["hooks", "settings", "--window", "w", "--out", "-"],
        &["tasks"],
        &["watcher-status"],
        &["watcher-status", "--scheduler"],
        &["pane-state", "--capture", "/dev/null"],
    ] {
        let output = nexus.command(NG, &[args, &["--json"]].concat()).output().unwrap();
        let parsed = serde_json::from_slice::<serde_json::Value>(&output.stdout);
        assert!(parsed.is_ok(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_reader_that_left_is_success_and_a_full_disk_is_not() {
    let nexus = Nexus::new();
    for args in [&["config", "doc"][..], &["emits", "--json"], &["tasks"], &["--help"], &["config", "show"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = nexus.command(NG, args).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert!(output.status.success(), "{args:?}");
        no_panic(&String::from_utf8_lossy(&output.stderr));
    }
    // Where the code is a verdict, 1 would be one.
    for (args, code) in [(&["config", "doc"][..], 1), (&["pane-state", "--states"], 64)] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = nexus.command(NG, args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        check(&output, code, "standard output can't be written");
    }
}

#[test]
fn windows_are_found_by_any_name_and_never_guessed() {
    let fleet = Fleet::new();
    for name in ["dup", "dup", "a.b", "x:y", "two words", "🦀", "%3", "@0", "-x"] {
        fleet.tmux(&["new-window", "-d", "-t", "nexus:", "-n", name, "sleep 100000"]);
    }
    for (spec, code, words) in [
        ("a.b", 0, "name=a.b "),
        ("x:y", 0, "name=x:y "),
        ("two words", 0, "name=two_words "),
        ("🦀", 0, "name=🦀 "),
        ("-x", 0, "name=-x "),
        // Ids win over names: they are what an ambiguous name is resolved with.
        ("%3", 0, "name=a.b "),
        ("@0", 0, "name=keeper "),
        ("nexus:3", 0, "name=a.b "),
        ("dup", 64, "\"dup\" means several windows; ask for one of @1 (nexus:1), @2 (nexus:2)"),
        ("nosuch", 3, "no window \"nosuch\"; list them with: ng pane-state --all"),
        ("a", 3, "no window \"a\""),
        ("a*", 3, "no window \"a*\""),
        ("%99", 3, "no pane %99"),
        ("@99", 3, "no window \"@99\""),
        ("99999999999999999999", 3, "no window"),
    ] {
        let (got, text) = fleet.ng(&["pane-state", "--", spec]);
        assert_eq!(got, code, "{spec}: {text}");
        assert!(text.contains(words) && text.trim_end().lines().count() == 1, "{spec}: {text}");
    }
    assert_eq!(fleet.ng(&["pane-state", "--all", "nosuch"]).0, 3);
    assert_eq!(fleet.ng(&["pane-state", "--agent", "nobody", "keeper"]).0, 64);
}

#[test]
fn a_second_watcher_is_refused_in_one_line() {
    let mut fleet = Fleet::new();
    fleet.watch();
    fleet.wait("the watcher to be up", || fleet.ng(&["watcher-status"]).0 == 0);
    let lock = fs::read(fleet.state("nexus-instance.lock")).unwrap();
    let nexus = Nexus::new();
    let root = fleet.root().to_str().unwrap().to_owned();
    for program in [WATCHER, LAUNCHER] {
        let output = nexus.command(program, &["--root", &root]).output().unwrap();
        check(&output, 4, "take over with --replace");
    }
    check(&nexus.command(WATCHER, &["--root", &root, "--ensure"]).output().unwrap(), 0, "nothing to do");
    assert_eq!(fs::read(fleet.state("nexus-instance.lock")).unwrap(), lock);
    assert_eq!(fleet.ng(&["watcher-status"]).0, 0);
}

/// Every file below a directory, as paths relative to it.
fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(dir.join(&folder)).unwrap().flatten() {
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Runs a watcher until it has told something, spoils every file of its state directory, and asserts that the next
/// watcher still tells what is new, once, and that every verb answers.
fn check_spoiled(kind: &str, spoil: impl Fn(&Path)) {
    let mut fleet = Fleet::new();
    fleet.orchestrator(&fleet.hooks("orchestrator"));
    fleet.decide("keeper", "0a1b2c3d4e5f");
    fleet.watch();
    fleet.wait_emit("the first emit", |emit| emit["received"] == true);
    fleet.kill_watcher();
    let state = fleet.state("");
    for file in files_below(&state) {
        // Without its lock a watcher does not start, which is asserted on its own.
        if file != Path::new("nexus-instance.lock") {
            spoil(&state.join(file));
        }
    }
    fleet.decide("keeper", "00000000000f");
    fleet.watch();
    fleet.wait(&format!("the emit after {kind}"), || told(&fleet) > 0);
    for (verb, code) in [
        (&["emits"][..], 0),
        (&["tasks"], 0),
        (&["watcher-status", "--scheduler"], 0),
        (&["pane-state", "--all"], 0),
        (&["decision-ack", "keeper", "00000000000f"], 0),
        (&["config", "check"], 0),
    ] {
        let (got, text) = fleet.ng(verb);
        no_panic(&text);
        // A log in whose place a directory stands can't be read or written, and that is said.
        let is_hidden = kind == "a directory" && verb == ["emits"];
        assert_eq!(got, if is_hidden { 1 } else { code }, "{kind}: {verb:?}: {text}");
    }
    assert_eq!(told(&fleet), 1, "{kind}");
    for file in files_below(&fleet.state("logs")) {
        no_panic(&String::from_utf8_lossy(&fs::read(fleet.state("logs").join(file)).unwrap()));
    }
}

/// How often the decision after the spoiling was told.
fn told(fleet: &Fleet) -> usize {
    fleet.submitted("orchestrator").iter().filter(|text| text.contains("00000000000f")).count()
}

#[test]
fn a_watcher_starts_and_tells_over_empty_files() {
    check_spoiled("no bytes", |path| fs::write(path, "").unwrap());
}

#[test]
fn a_watcher_starts_and_tells_over_cut_files() {
    check_spoiled("a cut", |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    });
}

#[test]
fn a_watcher_starts_and_tells_over_binary_files() {
    check_spoiled("binary", |path| fs::write(path, [0xff, 0xfe, 0x00, 0x1b, b'{', b'\n', 0x80]).unwrap());
}

#[test]
fn a_watcher_starts_and_tells_over_files_of_100_mb() {
    // Sparse: they cost no disk.
    check_spoiled("100 MB", |path| {
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(100 << 20).unwrap();
    });
}

#[test]
fn a_watcher_starts_and_tells_over_directories_in_the_place_of_files() {
    check_spoiled("a directory", |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    });
}

#[test]
fn a_lock_that_cannot_be_opened_leaves_nothing_to_a_single_run() {
    let nexus = Nexus::new();
    fs::create_dir_all(nexus.at("root/monitor/.state/nexus-instance.lock")).unwrap();
    // One that goes on observes; tests/instance.rs has that.
    check(&nexus.command(WATCHER, &["--once"]).output().unwrap(), 5, "cannot lock ");
}
