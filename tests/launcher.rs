//! `monitor/watcher/launcher.sh`: flags, exit codes, detaching, waiting, single flight. A stand-in takes the service's place,
//! so that each way of ending can be had; `tests/launcher_real.rs` and `tests/instance.rs` start the service itself.

#![expect(clippy::disallowed_methods, reason = "tests start children of their own")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/output.rs"]
mod output;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use output::check;
use rustix::process::{Pid, Signal, kill_process};

/// Locks, publishes its pid and heartbeat, and waits to be ended. With `STAND_IN_EXIT` it ends at once with that code,
/// with `STAND_IN_SILENT` it publishes nothing. Its interpreter bears the service's name, by which it is recognised.
const STAND_IN: &str = r#"#!SHELL
state=$NEXUS_STATE_DIR
if [ -n "${STAND_IN_EXIT:-}" ]; then echo "stand-in: ends with $STAND_IN_EXIT" >&2; exit "$STAND_IN_EXIT"; fi
exec 8>>"$state/nexus-instance.lock"
flock -n 8 || exit 4
printf 'pid: %s\nhost: %s\nboot_id: %s\n' $$ "$(hostname)" "$(cat /proc/sys/kernel/random/boot_id)" >"$state/nexus-instance.lock"
echo "$*" >"$state/arguments"
echo $$ >"$state/stand-in.pid"
if [ -z "${STAND_IN_SILENT:-}" ]; then
    echo $$ >"$state/watcher.pid"
    printf 'pid=%s\nts=x\ntarget=x\n' $$ >"$state/watcher-heartbeat"
fi
[ -p "$state/never" ] || mkfifo "$state/never"
read -r line <>"$state/never"
"#;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A nexus with a stand-in for the service.
struct Nexus {
    dir: tempfile::TempDir,
}

impl Nexus {
    fn new() -> Self {
        let nexus = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(nexus.at("bin")).unwrap();
        fs::create_dir_all(nexus.at("root")).unwrap();
        fs::copy("/bin/sh", nexus.at("bin/nexus-watcher")).unwrap();
        let shell = nexus.at("bin/nexus-watcher").display().to_string();
        fs::write(nexus.at("bin/stand-in"), STAND_IN.replace("SHELL", &shell)).unwrap();
        fs::set_permissions(nexus.at("bin/stand-in"), fs::Permissions::from_mode(0o755)).unwrap();
        nexus
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("monitor/watcher/launcher.sh"));
        command
            .args(args)
            .arg("--program")
            .arg(self.at("bin/stand-in"))
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("NEXUS_ROOT", self.at("root"))
            .env("NEXUS_BIN_DIR", Path::new(env!("CARGO_BIN_EXE_nexus-watcher")).parent().unwrap())
            .env("NEXUS_STATE_DIR", self.at("state"));
        command
    }

    fn launch(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_default()
    }

    fn pid(&self) -> Option<u32> {
        self.read("state/stand-in.pid").trim().parse().ok()
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        // Everything that runs our copy of the shell, which is nobody else's.
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let is_ours = fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == self.at("bin/nexus-watcher"));
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid.filter(|_| is_ours) {
                let _gone = kill_process(pid, Signal::KILL);
            }
        }
    }
}

fn is_alive(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_start_is_detached_and_keeps_none_of_our_files() {
    let nexus = Nexus::new();
    let output = nexus.launch(&["--target", "my window"]);
    let pid = nexus.pid().expect("it published its pid");
    check(&output, 0, &format!("started pid={pid}"));
    let open: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .collect();
    assert!(!open.iter().any(|file| file.ends_with("watcher-restart.lock")), "{open:?}");
    assert!(
        open.contains(&PathBuf::from("/dev/null")) && open.contains(&nexus.at("state/logs/launch.log")),
        "{open:?}"
    );
    let root = fs::canonicalize(nexus.at("root")).unwrap();
    assert_eq!(
        nexus.read("state/arguments").trim(),
        format!("--detached --root {} --target my window", root.display())
    );
    let mode = fs::metadata(nexus.at("state")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "the state directory is private");
    let spawns = nexus.read("state/watcher-spawns.log");
    let line = format!("] spawned pid={pid} target=my window replace=0 ensure=0\n");
    assert!(spawns.contains(" launcher[") && spawns.contains("caller=[ppid=") && spawns.ends_with(&line), "{spawns}");
    check(&Nexus::new().launch(&["--window", "old name"]), 0, "started");
}

#[test]
fn a_second_start_is_refused_and_ensure_has_nothing_to_do() {
    let nexus = Nexus::new();
    check(&nexus.launch(&[]), 0, "started");
    let first = nexus.pid().unwrap();
    check(&nexus.launch(&[]), 4, "take over with --replace");
    check(&nexus.launch(&["--ensure"]), 0, "nothing to do");
    check(&nexus.launch(&["--instance-status"]), 0, "instance-lock: HELD");
    assert_eq!(nexus.pid(), Some(first));
    let spawns = nexus.read("state/watcher-spawns.log");
    for words in [format!("refuse-bare live={first}"), format!("ensure-noop live={first}")] {
        assert!(spawns.contains(&words), "{words} in {spawns}");
    }
}

#[test]
fn a_replacement_ends_the_old_one_and_a_stop_request_with_it() {
    let nexus = Nexus::new();
    check(&nexus.launch(&[]), 0, "started");
    let first = nexus.pid().unwrap();
    fs::write(nexus.at("state/watcher-stop-requested"), "").unwrap();
    check(&nexus.launch(&["--replace"]), 0, &format!("ended the watcher {first}"));
    let second = nexus.pid().unwrap();
    assert!(second != first && !is_alive(first) && is_alive(second));
    assert!(!nexus.at("state/watcher-stop-requested").exists(), "a start is a start");
    let spawns = nexus.read("state/watcher-spawns.log");
    assert!(spawns.contains(&format!("replace-reaped groups={first}\n")), "{spawns}");
    assert!(spawns.ends_with("replace=1 ensure=0\n"), "{spawns}");
}

#[test]
fn a_lock_that_a_survivor_has_inherited_is_code_6_and_names_it() {
    let nexus = Nexus::new();
    // What the old one leaves behind is in nobody's group, and not recognised by its program.
    let script = nexus.read("bin/stand-in");
    let leaves_one = script.replace("echo \"$*\" >", "setsid sleep 600 &\necho $! >\"$state/left.pid\"\necho \"$*\" >");
    fs::write(nexus.at("bin/stand-in"), leaves_one).unwrap();
    check(&nexus.launch(&[]), 0, "started");
    fs::write(nexus.at("bin/stand-in"), script).unwrap();
    let left = nexus.read("state/left.pid").trim().to_owned();
    check(&nexus.launch(&["--replace"]), 6, &format!("process {left}"));
    kill_process(Pid::from_raw(left.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    check(&nexus.launch(&["--replace"]), 0, "started");
}

#[test]
fn of_many_starts_at_once_one_runs() {
    for (args, codes) in [(&[][..], [0, 4, 4, 4, 4]), (&["--ensure"], [0; 5]), (&["--replace"], [0; 5])] {
        let nexus = Nexus::new();
        let start = |_| nexus.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let children: Vec<_> = (0..5).map(start).collect();
        let ended = children.into_iter().map(|child| child.wait_with_output().unwrap());
        let mut found: Vec<_> = ended.map(|output| output.status.code().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, codes, "{args:?}: {}", nexus.read("state/watcher-spawns.log"));
        let exe = nexus.at("bin/nexus-watcher");
        let live = fs::read_dir("/proc").unwrap().flatten();
        let live = live.filter(|entry| fs::read_link(entry.path().join("exe")).is_ok_and(|found| found == exe));
        let leads = |pid: &str| {
            let about = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            about.contains("(stand-in)") || about.contains("(nexus-watcher)")
        };
        let pids: Vec<String> = live.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        assert_eq!(pids.iter().filter(|pid| leads(pid)).count(), 1, "{args:?}: {pids:?}");
    }
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
    fs::set_permissions(nexus.at("bin/stand-in"), fs::Permissions::from_mode(0o644)).unwrap();
    check(&nexus.launch(&[]), 3, "cannot start");
    assert!(nexus.read("state/watcher-spawns.log").contains("spawn-failed ("));
}

#[test]
fn a_slow_service_is_waited_for_with_progress_and_is_a_success_while_it_runs() {
    let nexus = Nexus::new();
    let output = nexus.command(&[]).env("STAND_IN_SILENT", "1").output().unwrap();
    check(&output, 0, "slow: it runs");
    check(&output, 0, "to publish its pid and heartbeat (5 of 15 s)");
    check(&output, 0, "(10 of 15 s)");
    assert!(is_alive(nexus.pid().unwrap()));
}

#[test]
fn another_launcher_at_work_is_waited_for_and_then_refused() {
    let nexus = Nexus::new();
    fs::create_dir_all(nexus.at("state")).unwrap();
    let lock = fs::File::create(nexus.at("state/watcher-restart.lock")).unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    check(&nexus.launch(&["--wait", "0"]), 5, "another launcher has been at work");
    let mut waiting = nexus.command(&[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(waiting.stderr.as_mut().unwrap()), &mut said).unwrap();
    assert!(said.contains("waiting up to 45 s"), "{said}");
    assert_eq!(nexus.pid(), None, "nothing was started meanwhile");
    drop(lock);
    assert!(waiting.wait().unwrap().success());
    assert!(nexus.pid().is_some());
}

#[test]
fn a_watcher_that_lost_its_lock_file_still_counts() {
    let nexus = Nexus::new();
    check(&nexus.launch(&[]), 0, "started");
    let first = nexus.pid().unwrap();
    fs::remove_file(nexus.at("state/nexus-instance.lock")).unwrap();
    check(&nexus.launch(&[]), 4, "though its lock file was removed");
    check(&nexus.launch(&["--ensure"]), 0, "nothing to do");
    check(&nexus.launch(&["--replace"]), 0, &format!("ended the watcher {first}"));
    wait_until("the first is gone", || !is_alive(first));
}

#[test]
fn more_than_one_watcher_after_a_start_is_code_6() {
    let nexus = Nexus::new();
    // The service that is started brings a second one along, whose lock file is removed under it.
    let script = nexus.read("bin/stand-in").replace(
        "exec 8>>",
        "if [ -z \"${SECOND:-}\" ]; then SECOND=1 NEXUS_STATE_DIR=$state STAND_IN_SILENT=1 \"$0\" &\n\
         until [ -s \"$state/stand-in.pid\" ]; do :; done; mv \"$state/stand-in.pid\" \"$state/second.pid\"\n\
         rm \"$state/nexus-instance.lock\"; fi\nexec 8>>",
    );
    fs::write(nexus.at("bin/stand-in"), script).unwrap();
    let output = nexus.launch(&[]);
    check(&output, 6, "more than one watcher runs");
    let (first, second) = (nexus.pid().unwrap(), nexus.read("state/second.pid"));
    let line = format!("post-spawn-duplicate pids={first},{}", second.trim());
    assert!(nexus.read("state/watcher-spawns.log").contains(&line), "{line}");
}

#[test]
fn no_sandbox_is_accepted_once_and_recorded() {
    let nexus = Nexus::new();
    check(&nexus.launch(&["--i-accept-no-sandbox"]), 0, "started");
    let first = nexus.read("state/no-sandbox-accepted");
    let keys: Vec<_> = first.lines().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    assert_eq!(keys, ["accepted_at", "user", "host", "context"], "{first}");
    check(&nexus.launch(&["--i-accept-no-sandbox", "--ensure"]), 0, "nothing to do");
    assert_eq!(nexus.read("state/no-sandbox-accepted"), first);
}

#[test]
fn a_beacon_that_rules_nothing_out_refuses_a_start_but_not_a_restart() {
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let remote = |at: u64| format!("host: elsewhere\npid: 7\nnonce: x\nepoch: {at}\n");
    // (what the beacon says, the code of a start, of a replacement, the words)
    for (name, text, start, replace, words) in [
        ("fresh", remote(now()), 4, 4, "live-remote: a watcher on host elsewhere"),
        ("from the future", remote(now() + 9000), 4, 4, "live-remote"),
        ("stale", remote(now() - 700), 0, 0, ""),
        ("corrupt", "rubbish".into(), 4, 0, "can't be read, so a watcher on another host can't be ruled out"),
        ("of this host", remote(now()).replace("elsewhere", &hostname()), 0, 0, ""),
    ] {
        for (args, code) in [(&[][..], start), (&["--ensure"], start), (&["--replace"], replace)] {
            let nexus = Nexus::new();
            fs::create_dir_all(nexus.at("state")).unwrap();
            fs::write(nexus.at("state/nexus-instance.heartbeat"), &text).unwrap();
            let output = nexus.launch(args);
            assert_eq!(output.status.code(), Some(code), "{name} {args:?}: {output:?}");
            check(&output, code, if code == 0 { "started" } else { words });
            assert_eq!(nexus.pid().is_some(), code == 0, "{name}");
        }
    }
}

fn hostname() -> String {
    String::from_utf8(Command::new("hostname").output().unwrap().stdout).unwrap().trim().to_owned()
}

#[test]
fn bad_input_is_one_clear_line_and_starts_nothing() {
    let check = |args: &[&str], change: &dyn Fn(&Nexus, &mut Command), code, words: &str| {
        let nexus = Nexus::new();
        let mut command = nexus.command(args);
        change(&nexus, &mut command);
        let output = command.output().unwrap();
        check(&output, code, words);
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{args:?}: {output:?}");
        assert_eq!(nexus.pid(), None, "{args:?}");
    };
    let as_is = |_: &Nexus, _: &mut Command| {};
    check(&["--nonsense"], &as_is, 1, "unexpected argument '--nonsense' found; see launcher.sh --help");
    check(&["--replace", "--ensure"], &as_is, 1, "cannot be used with");
    check(&["--target", ""], &as_is, 2, "a value is required for '--target <WINDOW>'");
    check(&["--window="], &as_is, 2, "a value is required for '--target <WINDOW>'");
    check(&["--root", "/does/not/exist"], &as_is, 2, "--root /does/not/exist: there is no such folder");
    check(&["--replace"], &|nexus, _| fs::write(nexus.at("state"), "a file").unwrap(), 5, "no directory stands there");
    let bad_config = |nexus: &Nexus, _: &mut Command| {
        fs::create_dir_all(nexus.at("root/config")).unwrap();
        fs::write(nexus.at("root/config/nexus.yml"), "monitor:\n  interval_seconds: soon\n").unwrap();
    };
    check(&["--replace"], &bad_config, 1, "monitor.interval_seconds");
    check(
        &[],
        &|nexus, command| {
            // Everything that the launcher uses, except tmux.
            let path = nexus.at("path");
            fs::create_dir(&path).unwrap();
            for tool in ["sh", "readlink", "dirname"] {
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

#[test]
fn a_bad_configuration_or_a_read_only_directory_ends_nobody() {
    let nexus = Nexus::new();
    check(&nexus.launch(&[]), 0, "started");
    let first = nexus.pid().unwrap();
    fs::create_dir_all(nexus.at("root/config")).unwrap();
    fs::write(nexus.at("root/config/nexus.yml"), "monitor:\n  interval_seconds: soon\n").unwrap();
    check(&nexus.launch(&["--replace"]), 1, "monitor.interval_seconds");
    fs::remove_file(nexus.at("root/config/nexus.yml")).unwrap();
    assert!(is_alive(first));
    // Root may write anywhere but on a file system that is read-only, so it is one in a namespace of its own.
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]).arg(format!(
        "mount --bind {state} {state} && mount -o remount,ro,bind {state} && exec \"$@\"",
        state = nexus.at("state").display()
    ));
    let launcher = nexus.command(&["--replace"]);
    command.arg("sh").arg(launcher.get_program()).args(launcher.get_args()).env_clear();
    command.envs(launcher.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    check(&output, 5, "Read-only file system");
    assert!(is_alive(first), "{output:?}");
}
