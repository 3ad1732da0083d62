//! `monitor/watcher/launcher.sh` on its own: flags, exit codes, detaching, waiting. A stand-in takes the service's place, so
//! that each way of ending can be had; `tests/launcher_real.rs` starts the service itself.

#![expect(clippy::disallowed_methods, reason = "tests start children of their own")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Locks, publishes its pid and heartbeat, and waits to be ended. With `STAND_IN_EXIT` it ends at once with that code.
const STAND_IN: &str = r#"#!/bin/sh
state=$NEXUS_STATE_DIR
for arg in "$@"; do
    if [ "$arg" = --instance-status ]; then
        if flock -n "$state/nexus-instance.lock" true; then echo "instance-lock: free (no live holder)"
        else echo "instance-lock: HELD"; fi
        exit 0
    fi
done
if [ -n "${STAND_IN_EXIT:-}" ]; then echo "stand-in: ends with $STAND_IN_EXIT" >&2; exit "$STAND_IN_EXIT"; fi
exec 8>>"$state/nexus-instance.lock"
flock -n 8 || exit 4
echo "$*" >"$state/arguments"
echo $$ >"$state/watcher.pid"
printf 'pid=%s\nts=x\ntarget=x\n' $$ >"$state/watcher-heartbeat"
exec sleep 600
"#;

/// A nexus with a stand-in for the service.
struct Nexus {
    dir: tempfile::TempDir,
}

impl Nexus {
    fn new() -> Self {
        let nexus = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(nexus.at("bin")).unwrap();
        fs::create_dir_all(nexus.at("root")).unwrap();
        fs::write(nexus.at("bin/nexus-watcher"), STAND_IN).unwrap();
        fs::set_permissions(nexus.at("bin/nexus-watcher"), fs::Permissions::from_mode(0o755)).unwrap();
        nexus
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("monitor/watcher/launcher.sh"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("NEXUS_ROOT", self.at("root"))
            .env("NEXUS_BIN_DIR", self.at("bin"))
            .env("NEXUS_STATE_DIR", self.at("state"));
        command
    }

    fn launch(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn pid(&self) -> Option<u32> {
        fs::read_to_string(self.at("state/watcher.pid")).ok()?.trim().parse().ok()
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        if let Some(pid) = self.pid().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed())) {
            let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

fn check(output: &Output, code: i32, words: &str) {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "{words:?} in {said}");
}

#[test]
fn a_start_is_detached_and_keeps_none_of_our_files() {
    let nexus = Nexus::new();
    let output = nexus.launch(&["--target", "my window"]);
    let pid = nexus.pid().expect("it published its pid");
    check(&output, 0, &format!("started pid={pid}"));
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let session = stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap();
    assert_eq!(session, pid.to_string(), "it leads a session of its own");
    let open: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .collect();
    assert!(!open.iter().any(|file| file.ends_with("watcher-restart.lock")), "{open:?}");
    assert!(open.contains(&PathBuf::from("/dev/null")), "{open:?}");
    let arguments = fs::read_to_string(nexus.at("state/arguments")).unwrap();
    let root = fs::canonicalize(nexus.at("root")).unwrap();
    assert_eq!(arguments.trim(), format!("--root {} --target my window", root.display()));
    let mode = fs::metadata(nexus.at("state")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "the state directory is private");
}

#[test]
fn a_second_start_is_refused_and_ensure_has_nothing_to_do() {
    let nexus = Nexus::new();
    check(&nexus.launch(&[]), 0, "started");
    let first = nexus.pid();
    check(&nexus.launch(&[]), 4, "take over with --replace");
    check(&nexus.launch(&["--ensure"]), 0, "nothing to do");
    check(&nexus.launch(&["--instance-status"]), 0, "instance-lock: HELD");
    assert_eq!(nexus.pid(), first);
}

#[test]
fn of_two_starts_at_once_one_runs() {
    let nexus = Nexus::new();
    let piped = || {
        let mut command = nexus.command(&[]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let (one, two) = (piped(), piped());
    let mut codes = [one, two].map(|child| child.wait_with_output().unwrap().status.code());
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(4)]);
}

#[test]
fn each_way_of_not_coming_up_has_its_code() {
    // (what the service ends with, the launcher's code)
    for (ended, code) in [("0", 3), ("1", 1), ("2", 2), ("4", 4), ("5", 5), ("6", 6), ("101", 3)] {
        let nexus = Nexus::new();
        let output = nexus.command(&[]).env("STAND_IN_EXIT", ended).output().unwrap();
        check(&output, code, &format!("stand-in: ends with {ended}"));
    }
    let nexus = Nexus::new();
    let output = nexus.command(&["--ensure"]).env("STAND_IN_EXIT", "0").output().unwrap();
    check(&output, 0, "nothing to do");
}

#[test]
fn bad_input_is_one_clear_line_and_starts_nothing() {
    let check = |args: &[&str], change: &dyn Fn(&Nexus, &mut Command), code, words: &str| {
        let nexus = Nexus::new();
        let mut command = nexus.command(args);
        change(&nexus, &mut command);
        let output = command.output().unwrap();
        check(&output, code, words);
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{args:?}");
        assert_eq!(nexus.pid(), None, "{args:?}");
    };
    let as_is = |_: &Nexus, _: &mut Command| {};
    check(&["--nonsense"], &as_is, 1, "unknown flag --nonsense");
    check(&["--target", ""], &as_is, 2, "--target needs a value");
    check(&["--target"], &as_is, 2, "--target needs a value");
    check(&["--root", "/does/not/exist"], &as_is, 2, "there is no directory /does/not/exist");
    check(&["--replace"], &|nexus, _| fs::write(nexus.at("state"), "a file").unwrap(), 5, "cannot write to the state");
    check(
        &[],
        &|nexus, command| {
            // Everything that the launcher uses, except tmux.
            let path = nexus.at("path");
            fs::create_dir(&path).unwrap();
            for tool in ["sh", "readlink", "dirname", "setsid", "flock", "mkdir", "cat", "date", "grep", "sleep"] {
                let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
                    .map(|dir| dir.join(tool))
                    .find(|file| file.exists())
                    .unwrap();
                std::os::unix::fs::symlink(found, path.join(tool)).unwrap();
            }
            command.env("PATH", path);
        },
        2,
        "tmux is not installed",
    );
}
