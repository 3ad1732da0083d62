//! `scripts/install.sh` and its undo in a private HOME: what it puts where, that it can be repeated, that it replaces a
//! running program, and that the undo leaves exactly what had been there.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and starts programs")]

#[path = "support/running.rs"]
mod running;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use running::Running;

/// Stands in for `systemctl`: notes how it was called. `active` is a file that says that the unit runs.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >>"$HOME/systemctl.calls"
case "$*" in *is-active*) [ -e "$HOME/active" ] ;; esac
"#;

/// Stands in for the watcher: says that somebody holds the lock if a file says so.
const WATCHER: &str = r#"#!/bin/sh
[ "$1" != --instance-status ] || { [ -e "$HOME/held" ] && echo 'instance-lock: HELD'; exit 0; }
"#;

/// A private home, a nexus, and what a build has left: the real `ng`, and a stand-in for the watcher.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let home = Self { dir: tempfile::tempdir().unwrap() };
        for folder in ["home dir", "ne xus/monitor", "target/debug", "path"] {
            fs::create_dir_all(home.at(folder)).unwrap();
        }
        fs::copy(env!("CARGO_BIN_EXE_ng"), home.at("target/debug/ng")).unwrap();
        home.program("target/debug/nexus-watcher", WATCHER);
        // Everything that the script calls, but no systemctl.
        for program in [
            "awk",
            "basename",
            "bash",
            "cat",
            "chmod",
            "cp",
            "cut",
            "dirname",
            "head",
            "id",
            "mkdir",
            "mktemp",
            "mv",
            "rm",
            "rmdir",
            "sed",
            "sh",
            "sha256sum",
            "sort",
        ] {
            let real = ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(program)).find(|path| path.exists());
            std::os::unix::fs::symlink(real.expect("a usual program"), home.at("path").join(program)).unwrap();
        }
        home
    }

    fn with_systemd() -> Self {
        let home = Self::new();
        home.program("path/systemctl", SYSTEMCTL);
        home
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// A place in the home.
    fn home(&self, path: &str) -> PathBuf {
        self.at("home dir").join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    fn program(&self, path: &str, text: &str) {
        self.write(path, text);
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/install.sh"))
            .args(["--debug", "--no-build"])
            .args(args)
            .env_clear()
            .env("PATH", self.at("path"))
            .env("HOME", self.home(""))
            .env("NEXUS_ROOT", self.at("ne xus"))
            .env("CARGO_TARGET_DIR", self.at("target"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Every file and folder of the home, with the text and the mode of files.
    fn everything(&self) -> BTreeMap<PathBuf, Option<(Vec<u8>, u32)>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.home("")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path.clone());
                    found.insert(path, None);
                } else {
                    let mode = fs::metadata(&path).unwrap().permissions().mode();
                    found.insert(path.clone(), Some((fs::read(&path).unwrap(), mode)));
                }
            }
        }
        found
    }
}

/// Runs it and checks the exit code; returns what it said on both streams.
fn check(home: &Home, args: &[&str], code: i32) -> String {
    let output = home.run(args);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{args:?}:\n{said}");
    said
}

#[test]
fn what_was_installed_works_and_the_undo_leaves_nothing() {
    let home = Home::with_systemd();
    check(&home, &[], 0);
    let ng = home.home(".local/bin/ng");
    assert!(Command::new(&ng).arg("--version").output().unwrap().status.success());
    assert_eq!(fs::metadata(&ng).unwrap().permissions().mode() & 0o777, 0o755);
    let unit = fs::read_to_string(home.home(".config/systemd/user/nexus-watcher.service")).unwrap();
    let program = home.home(".local/bin/nexus-watcher").display().to_string();
    assert!(unit.contains(&format!("ExecStart=\"{program}\"")) && unit.contains("/ne xus\""), "{unit}");
    for place in ["bash-completion/completions/ng", "fish/vendor_completions.d/ng.fish", "zsh/site-functions/_ng"] {
        assert!(fs::read_to_string(home.home(".local/share").join(place)).unwrap().contains("watcher-status"));
    }
    assert!(home.home(".local/share/man/man1/ng-watcher-status.1").exists());
    let calls = fs::read_to_string(home.home("systemctl.calls")).unwrap();
    assert!(!calls.contains("enable") && !calls.contains("start"), "nothing is started unasked: {calls}");

    let before = home.everything();
    let said = check(&home, &[], 0);
    assert!(said.contains("unchanged") && !said.contains("installed"), "{said}");
    fs::write(home.home("systemctl.calls"), &calls).unwrap();
    assert_eq!(home.everything(), before, "installing twice changes nothing");

    check(&home, &["--undo"], 0);
    fs::remove_file(home.home("systemctl.calls")).unwrap();
    assert!(home.everything().is_empty(), "{:?}", home.everything().keys());
    assert!(check(&home, &["--undo"], 0).contains("Nothing is installed"));
}

#[test]
fn the_undo_puts_back_what_was_replaced_and_spares_what_others_own() {
    let home = Home::with_systemd();
    home.program("home dir/.local/bin/ng", "#!/bin/sh\necho mine\n");
    home.write("home dir/.config/systemd/user/nexus-watcher.service", "[Unit]\n");
    home.write("home dir/.local/share/man/man1/other.1", "other");
    home.write("home dir/.config/nexus.yml", "monitor: {}\n");
    let before = home.everything();
    let said = check(&home, &[], 0);
    assert!(said.contains("keeping    a copy of"), "{said}");
    assert!(home.home(".local/share/nexus-watcher/replaced").is_dir());
    check(&home, &[], 0);
    check(&home, &["--undo"], 0);
    fs::remove_file(home.home("systemctl.calls")).unwrap();
    assert_eq!(home.everything(), before);
}

#[test]
fn what_was_changed_since_is_kept_by_an_upgrade_and_left_by_the_undo() {
    let home = Home::new();
    check(&home, &[], 0);
    fs::write(home.home(".local/share/zsh/site-functions/_ng"), "mine").unwrap();
    assert!(check(&home, &[], 0).contains("_ng.yours, which you had changed"));
    fs::write(home.home(".local/share/zsh/site-functions/_ng"), "mine again").unwrap();
    let said = check(&home, &["--undo"], 0);
    assert!(said.contains("_ng, which was changed since"), "{said}");
    let files: Vec<String> = home
        .everything()
        .iter()
        .filter_map(|(path, file)| file.as_ref().map(|_| path.file_name().unwrap().to_string_lossy().into_owned()))
        .collect();
    assert_eq!(files, ["_ng", "_ng.yours"]);
}

/// Stands in for `ng`, whose size would make many installs slow.
const SMALL_NG: &str = "#!/bin/sh\ncase \"$*\" in *--list) echo send ;; *) echo \"$*\" ;; esac\n";

/// What the script calls to change something.
const CHANGERS: [&str; 6] = ["chmod", "cp", "mkdir", "mv", "rm", "rmdir"];

/// Has the script killed before (or after) the nth call by which it changes something; `None` ends that.
fn kill_at(home: &Home, nth: Option<(usize, bool)>) {
    for program in CHANGERS {
        let path = home.at("path").join(program);
        let _none = fs::remove_file(&path);
        let real =
            ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(program)).find(|path| path.exists()).unwrap();
        let Some((nth, is_after)) = nth else {
            std::os::unix::fs::symlink(real, path).unwrap();
            continue;
        };
        let (calls, real) = (home.at("calls"), real.display());
        let (first, last) = if is_after { (format!("{real} \"$@\""), ":") } else { (":".into(), "exit 1") };
        let kill = format!(
            "#!/bin/sh\necho >>'{0}'\ncount=0; while read -r _; do count=$((count + 1)); done <'{0}'\n[ $count = {nth} ] || exec {real} \"$@\"\n{first}\nkill -9 $PPID\n{last}\n",
            calls.display()
        );
        home.program(&format!("path/{program}"), &kill);
    }
    let _none = fs::remove_file(home.at("calls"));
}

#[test]
fn an_install_or_an_undo_that_was_killed_is_undone_whole() {
    let home = Home::new();
    home.program("target/debug/ng", SMALL_NG);
    home.program("home dir/.local/bin/ng", "#!/bin/sh\necho mine\n");
    home.write("home dir/.local/share/other", "other");
    let before = home.everything();
    let mut deaths = 0;
    for is_undo in [false, true] {
        for nth in (1..40).map(|nth| (nth, nth % 2 == 0)) {
            if is_undo {
                check(&home, &[], 0);
            }
            kill_at(&home, Some(nth));
            let killed = home.run(if is_undo { &["--undo"] } else { &[] });
            kill_at(&home, None);
            deaths += usize::from(killed.status.code().is_none());
            let said = check(&home, &["--undo"], 0);
            assert!(!said.contains("changed since"), "{is_undo} {nth:?}:\n{said}");
            assert_eq!(home.everything(), before, "{is_undo} {nth:?}:\n{said}");
        }
    }
    assert!(deaths > 60, "{deaths}");
}

#[test]
fn an_upgrade_that_was_killed_is_finished_by_the_next_or_undone() {
    let home = Home::new();
    home.program("target/debug/ng", SMALL_NG);
    home.write("home dir/.local/share/other", "other");
    let before = home.everything();
    for (round, nth) in (1..12).flat_map(|nth| [(nth, false), (nth, true)]).enumerate() {
        home.program("target/debug/nexus-watcher", &format!("{WATCHER}# old {round}\n"));
        check(&home, &[], 0);
        home.program("target/debug/nexus-watcher", &format!("{WATCHER}# new {round}\n"));
        kill_at(&home, Some(nth));
        home.run(&[]);
        kill_at(&home, None);
        if round % 2 == 0 {
            let said = check(&home, &[], 0);
            assert!(!said.contains("you had changed"), "{nth:?}:\n{said}");
        }
        let said = check(&home, &["--undo"], 0);
        assert!(!said.contains("changed since"), "{nth:?}:\n{said}");
        assert_eq!(home.everything(), before, "{nth:?}:\n{said}");
    }
}

#[test]
fn an_upgrade_under_a_running_watcher_leaves_it_its_program() {
    let home = Home::new();
    // A program proper: the text of a running script may be overwritten, that of a program is busy.
    fs::copy("/bin/sleep", home.at("target/debug/nexus-watcher")).unwrap();
    check(&home, &[], 0);
    let path = home.home(".local/bin/nexus-watcher");
    let mut running = Running(Command::new(&path).arg("1000").spawn().unwrap());
    let inode = fs::metadata(&path).unwrap().ino();
    home.program("target/debug/nexus-watcher", WATCHER);
    let said = check(&home, &[], 0);
    assert!(said.contains("installed") && said.contains("/nexus-watcher"), "{said}");
    assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
    assert_eq!(running.0.try_wait().unwrap(), None, "it goes on");
    assert_eq!(fs::read_to_string(&path).unwrap(), WATCHER);
}

#[test]
fn it_is_enabled_only_when_asked_to_and_disabled_by_the_undo() {
    let home = Home::with_systemd();
    home.write("home dir/held", "");
    let said = check(&home, &["--enable", "--name", "second"], 4);
    assert!(said.contains("a watcher that systemd did not start runs already"), "{said}");
    fs::remove_file(home.home("held")).unwrap();
    check(&home, &["--enable", "--name", "second"], 0);
    let calls = || fs::read_to_string(home.home("systemctl.calls")).unwrap();
    let order = ["--user daemon-reload", "--user --quiet enable second.service", "--user restart second.service"];
    let found: Vec<String> = calls().lines().filter(|line| order.contains(line)).map(str::to_owned).collect();
    assert_eq!(found, order);
    // The one that systemd runs is no stranger.
    home.write("home dir/active", "");
    home.write("home dir/held", "");
    check(&home, &["--enable", "--name", "second"], 0);
    check(&home, &["--undo"], 0);
    assert!(calls().contains("--user --quiet disable --now second.service"), "{}", calls());
    assert!(!home.home(".config").exists());
}

#[test]
fn without_systemd_it_says_how_to_start() {
    let home = Home::new();
    let said = check(&home, &[], 0);
    assert!(said.contains("launcher.sh --root ") && said.contains("--ensure") && said.contains("ne\\ xus"), "{said}");
    assert!(!home.home(".config").exists(), "a unit that nobody reads");
    assert!(check(&home, &["--enable"], 1).contains("needs a systemd user manager"));
}

#[test]
fn a_trial_and_faulty_calls_change_nothing() {
    let home = Home::with_systemd();
    let said = check(&home, &["--dry-run", "--enable"], 0);
    assert!(said.contains("/.local/bin/nexus-watcher") && said.contains("restart nexus-watcher.service"), "{said}");
    assert!(check(&home, &["--unod"], 2).contains("unknown argument '--unod'"));
    assert!(check(&home, &["--prefix"], 2).contains("needs a value"));
    assert!(check(&home, &["--root", "/does/not/exist"], 2).contains("there is no directory"));
    assert!(check(&home, &["--name", "../x"], 2).contains("--name may hold"));
    // A configuration that is wrong is found before anything is replaced.
    home.write("ne xus/config/nexus.yml", "monitor:\n  interval_seconds: soon\n");
    assert!(check(&home, &[], 1).contains("interval_seconds"));
    let _none = fs::remove_file(home.home("systemctl.calls"));
    assert!(home.everything().is_empty(), "{:?}", home.everything().keys());
}
