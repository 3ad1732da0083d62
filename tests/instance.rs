//! One watcher a state directory, with the service itself: who holds it, who must not start, who stands down, who only
//! observes. Each test has a nexus and a tmux server of its own.

#![expect(clippy::disallowed_methods, reason = "tests start children of their own")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/output.rs"]
mod output;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use output::{check, said};
use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(40);

const WATCHER: &str = env!("CARGO_BIN_EXE_nexus-watcher");
const NG: &str = env!("CARGO_BIN_EXE_ng");

/// A nexus beside a private tmux server with an orchestrator window.
struct Nexus {
    dir: tempfile::TempDir,
    /// First in the path of whatever runs here.
    tools: Option<PathBuf>,
}

impl Nexus {
    fn new() -> Self {
        let nexus = Self { dir: tempfile::tempdir().unwrap(), tools: None };
        fs::create_dir_all(nexus.at("root/config")).unwrap();
        fs::create_dir_all(nexus.at("root/monitor/.state")).unwrap();
        nexus.tmux(&["new-session", "-d", "-s", "nexus", "-n", "orchestrator", "cat"]);
        nexus
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn state(&self, name: &str) -> PathBuf {
        self.at("root/monitor/.state").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.state(name)).unwrap_or_default()
    }

    fn log(&self) -> String {
        self.read("logs/watcher.log")
    }

    fn tmux(&self, args: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        self.hermetic(command.arg("-S").arg(self.at("tmux")).args(["-f", "/dev/null"]).args(args));
        command.env("PATH", std::env::var("PATH").unwrap()).output().unwrap()
    }

    fn hermetic<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let path = std::env::var("PATH").unwrap();
        let path = self.tools.as_ref().map_or(path.clone(), |tools| format!("{}:{path}", tools.display()));
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.dir.path())
            .env("LC_ALL", "C.UTF-8")
            .env("NEXUS_BIN_DIR", Path::new(WATCHER).parent().unwrap())
            .env("NEXUS_TMUX_SOCKET", self.at("tmux"))
            .stdin(Stdio::null())
    }

    fn run(&self, program: &str, args: &[&str]) -> Output {
        let mut command = Command::new(program);
        self.hermetic(command.arg("--root").arg(self.at("root")).args(args)).output().unwrap()
    }

    fn launch(&self, args: &[&str]) -> Output {
        self.run(concat!(env!("CARGO_MANIFEST_DIR"), "/monitor/watcher/launcher.sh"), args)
    }

    fn ng(&self, args: &[&str]) -> Output {
        self.run(NG, args)
    }

    /// Starts the service in the foreground and returns at once.
    fn spawn(&self, program: &Path, args: &[&str]) -> Running<'_> {
        let mut command = Command::new(program);
        self.hermetic(command.arg("--root").arg(self.at("root")).args(args));
        let child = command.stdout(Stdio::null()).stderr(fs::File::create(self.at("stderr")).unwrap()).spawn().unwrap();
        Running { nexus: self, child }
    }

    /// Starts the service in the foreground and waits until it is up.
    fn watch(&self) -> Running<'_> {
        let running = self.spawn(Path::new(WATCHER), &[]);
        running.wait_up();
        running
    }

    fn pid(&self) -> Option<u32> {
        self.read("watcher.pid").trim().parse().ok()
    }
}

impl Drop for Nexus {
    fn drop(&mut self) {
        let watcher = self.pid().filter(|pid| runs_the_watcher(*pid)).and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = watcher {
            let _gone = kill_process(pid, Signal::KILL);
        }
        self.tmux(&["kill-server"]);
    }
}

/// A service that this test started.
struct Running<'a> {
    nexus: &'a Nexus,
    child: Child,
}

impl Running<'_> {
    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_up(&self) {
        let pid = format!("pid={}\n", self.pid());
        wait_until("the watcher is up", || self.nexus.read("watcher-heartbeat").starts_with(&pid));
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid().cast_signed()).unwrap(), signal).unwrap();
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    fn wait_ended(&mut self) -> Option<i32> {
        wait_until("the watcher has ended", || !self.is_running());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn runs_the_watcher(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program.to_string_lossy().contains("nexus-watcher"))
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A beacon of another host, as its watcher would write it.
fn remote_beacon(epoch: u64) -> String {
    format!(
        "host: elsewhere\nboot_id: b\npid_ns: pid:[1]\npid: 7\ntmux: t\nnexus_root: /x\nnonce: other\nepoch: {epoch}\nts: x\n"
    )
}

fn here(name: &str) -> String {
    match name {
        "host" => fs::read_to_string("/proc/sys/kernel/hostname"),
        _ => fs::read_to_string("/proc/sys/kernel/random/boot_id"),
    }
    .unwrap()
    .trim()
    .to_owned()
}

/// Asserts everything that holds while somebody in another pid namespace holds the lock.
fn check_respected(nexus: &Nexus) {
    check(&nexus.launch(&["--instance-status"]), 0, "instance-lock: HELD");
    check(&nexus.launch(&["--instance-status"]), 0, "assessment=live-local");
    check(&nexus.launch(&[]), 4, "another sandbox (pid namespace)");
    check(&nexus.launch(&["--ensure"]), 0, "nothing to do");
    check(&nexus.launch(&["--replace"]), 4, "another sandbox (pid namespace); end it there");
    check(&nexus.run(WATCHER, &[]), 4, "another sandbox (pid namespace)");
    check(&nexus.run(WATCHER, &["--replace"]), 4, "end it there");
    check(&nexus.ng(&["watcher", "stop"]), 1, "end it there");
}

#[test]
fn a_holder_that_says_it_is_of_another_pid_namespace_is_respected() {
    let nexus = Nexus::new();
    let body = format!("pid: 1\nhost: {}\nboot_id: {}\npid_ns: pid:[1]\n", here("host"), here("boot_id"));
    fs::write(nexus.state("nexus-instance.lock"), body).unwrap();
    // Somebody of a program that is no watcher here holds it: this test.
    let lock = fs::File::options().write(true).open(nexus.state("nexus-instance.lock")).unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    check_respected(&nexus);
}

/// Processes that have a file open.
fn holders_of(inode: u64) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_it = |pid: &i32| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|entry| fs::metadata(entry.path()).ok()).any(|meta| meta.ino() == inode)
    };
    pids.filter(has_it).collect()
}

#[test]
fn a_watcher_in_another_pid_namespace_is_respected() {
    let nexus = Nexus::new();
    // As root a namespace of pids is enough; everybody else needs one of users first.
    let ways: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];
    let args = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let works = |way: &&&[&str]| {
        Command::new("unshare").args(**way).args(args).arg("true").output().is_ok_and(|output| output.status.success())
    };
    let way = ways.iter().find(works).expect(
        "this machine lets nobody make a pid namespace, so this can't be tested here; the test above plays it by its record",
    );
    let mut command = Command::new("unshare");
    command.args(*way).args(args).arg(WATCHER).arg("--root").arg(nexus.at("root"));
    let child = nexus.hermetic(&mut command).stderr(Stdio::null()).spawn().unwrap();
    let mut inside = Running { nexus: &nexus, child };
    wait_until("the watcher inside is up", || nexus.read("watcher-heartbeat").starts_with("pid=1\n"));
    check_respected(&nexus);
    // Process 1 of this namespace is no watcher, and the lock says that one lives.
    check(&nexus.ng(&["watcher-status"]), 0, "state=UP");
    check(&nexus.ng(&["watcher", "supervise"]), 0, "");
    check(&nexus.ng(&["watcher", "revive"]), 0, "stopped on purpose");
    assert!(inside.is_running(), "it goes on");
    drop(inside);
    wait_until("the lock is free", || said(&nexus.launch(&["--instance-status"])).contains("free"));
    check(&nexus.launch(&[]), 0, "started");
}

#[test]
fn what_a_watcher_left_before_a_reboot_is_no_holder() {
    let nexus = Nexus::new();
    let pid = std::process::id();
    let body = format!("pid: {pid}\nhost: {}\nboot_id: of-an-earlier-boot\n", here("host"));
    fs::write(nexus.state("nexus-instance.lock"), body).unwrap();
    fs::write(nexus.state("watcher.pid"), format!("{pid}\n")).unwrap();
    fs::write(nexus.state("watcher-heartbeat"), format!("pid={pid}\nts=x\ntarget=orchestrator\n")).unwrap();
    fs::write(nexus.state("nexus-instance.heartbeat"), remote_beacon(now_s()).replace("elsewhere", &here("host")))
        .unwrap();
    check(&nexus.launch(&["--instance-status"]), 0, "free (no live holder)");
    check(&nexus.ng(&["watcher-status"]), 2, "state=DOWN");
    check(&nexus.launch(&[]), 0, "started");
    check(&nexus.launch(&["--instance-status"]), 0, "assessment=live-local");
    check(&nexus.ng(&["watcher-status"]), 0, "state=UP");
}

#[test]
fn a_pid_that_another_nexus_uses_now_is_no_holder() {
    let (ours, theirs) = (Nexus::new(), Nexus::new());
    let other = theirs.watch();
    fs::write(ours.state("watcher-heartbeat"), format!("pid={}\nts=x\ntarget=orchestrator\n", other.pid())).unwrap();
    check(&ours.ng(&["watcher-status"]), 2, "state=DOWN");
    check(&ours.launch(&["--replace"]), 0, "started");
    check(&theirs.ng(&["watcher-status"]), 0, "state=UP");
}

#[test]
fn a_fresh_beacon_of_another_host_is_refused_and_a_stale_one_taken_over() {
    let beacon = "nexus-instance.heartbeat";
    for (name, text, code) in [
        ("fresh", remote_beacon(now_s()), Some(4)),
        ("from the future", remote_beacon(now_s() + 9000), Some(4)),
        ("stale", remote_beacon(now_s() - 700), None),
        ("corrupt", "rubbish".to_owned(), None),
        ("of this host", remote_beacon(now_s()).replace("elsewhere", &here("host")), None),
    ] {
        let nexus = Nexus::new();
        fs::write(nexus.state(beacon), &text).unwrap();
        if let Some(code) = code {
            check(&nexus.run(WATCHER, &[]), code, "live-remote: a watcher on host elsewhere (pid 7)");
            assert_eq!(nexus.read(beacon), text, "{name}: left alone");
            assert_eq!(nexus.pid(), None, "{name}: nothing is published beside it");
        } else {
            let _watcher = nexus.watch();
            wait_until(name, || nexus.read(beacon).contains(&format!("host: {}\n", here("host"))));
        }
    }
}

#[test]
fn a_restart_beside_another_host_ends_nobody() {
    let nexus = Nexus::new();
    let mut watcher = nexus.watch();
    watcher.signal(Signal::STOP);
    fs::write(nexus.state("nexus-instance.heartbeat"), remote_beacon(now_s())).unwrap();
    for program in [WATCHER, concat!(env!("CARGO_MANIFEST_DIR"), "/monitor/watcher/launcher.sh")] {
        check(&nexus.run(program, &["--replace"]), 4, "live-remote");
    }
    assert!(watcher.is_running());
}

#[test]
fn one_that_stood_still_while_another_took_over_stands_down() {
    let nexus = Nexus::new();
    let mut watcher = nexus.watch();
    wait_until("it has looked at everything once", || nexus.read("watcher-progress").contains("loop-tick"));
    watcher.signal(Signal::STOP);
    // The successor runs on another host, where this lock does not reach.
    let beacon = remote_beacon(now_s());
    fs::write(nexus.state("nexus-instance.heartbeat"), &beacon).unwrap();
    watcher.signal(Signal::CONT);
    assert_eq!(watcher.wait_ended(), Some(0), "{}", nexus.log());
    assert!(
        nexus.log().contains("another watcher (pid 7 on elsewhere) has taken over; standing down"),
        "{}",
        nexus.log()
    );
    assert_eq!(nexus.read("nexus-instance.heartbeat"), beacon, "the successor's beacon is left alone");
    assert!(!nexus.state("watcher.pid").exists());
}

#[test]
fn one_that_stood_still_and_was_not_succeeded_goes_on() {
    let nexus = Nexus::new();
    let mut watcher = nexus.watch();
    watcher.signal(Signal::STOP);
    let old = nexus.read("nexus-instance.heartbeat");
    let aged = old.lines().map(|line| match line.split_once(": ") {
        Some(("epoch", _)) => format!("epoch: {}\n", now_s() - 5000),
        _ => format!("{line}\n"),
    });
    let aged: String = aged.collect();
    fs::write(nexus.state("nexus-instance.heartbeat"), &aged).unwrap();
    watcher.signal(Signal::CONT);
    wait_until("its beacon is fresh again", || {
        let beacon = nexus.read("nexus-instance.heartbeat");
        beacon != aged && beacon.contains("nonce: ")
    });
    assert!(watcher.is_running());
}

#[test]
fn without_the_lock_it_only_observes_and_becomes_a_watcher_when_it_gets_it() {
    let nexus = Nexus::new();
    let precious = nexus.at("precious");
    fs::write(&precious, "text").unwrap();
    symlink(&precious, nexus.state("nexus-instance.lock")).unwrap();
    let mut watcher = nexus.spawn(Path::new(WATCHER), &[]);
    wait_until("it observes", || nexus.log().contains("OBSERVE-ONLY"));

    let mut names: Vec<_> =
        fs::read_dir(nexus.state("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["logs", "nexus-instance.lock", "watcher-observing", "watcher.log"]);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
    let observes = format!("OBSERVE-ONLY: process {} has no instance lock", watcher.pid());
    check(&nexus.launch(&["--instance-status"]), 0, &observes);
    check(&nexus.launch(&["--instance-status"]), 0, "instance-lock: unknown (it is a symbolic link");
    check(&nexus.ng(&["watcher-status"]), 3, &observes);
    check(&nexus.ng(&["watcher", "supervise"]), 1, "could not open nexus-instance.lock");
    check(&nexus.ng(&["watcher", "revive"]), 5, "one runs without the instance lock");
    check(&nexus.launch(&[]), 4, &observes);
    check(&nexus.launch(&["--ensure"]), 3, &observes);
    check(&nexus.run(WATCHER, &[]), 4, "a watcher observes already");
    check(&nexus.run(WATCHER, &["--once"]), 5, "cannot lock");
    assert!(fs::read_to_string(nexus.at("stderr")).unwrap().contains("OBSERVE-ONLY"));

    fs::remove_file(nexus.state("nexus-instance.lock")).unwrap();
    watcher.wait_up();
    check(&nexus.ng(&["watcher-status"]), 0, "state=UP");
    assert!(!said(&nexus.launch(&["--instance-status"])).contains("OBSERVE-ONLY"));
    assert!(watcher.is_running() && !nexus.state("watcher-observing").exists());
}

#[test]
fn an_observer_stands_down_for_a_watcher_and_is_ended_by_a_replacement() {
    let nexus = Nexus::new();
    let lock = nexus.state("nexus-instance.lock");
    fs::create_dir(&lock).unwrap();
    let mut observer = nexus.spawn(Path::new(WATCHER), &[]);
    wait_until("it observes", || nexus.state("watcher-observing").exists());
    // Another takes the lock first: whoever holds it is the one.
    let real = nexus.at("real.lock");
    let file = fs::File::create(&real).unwrap();
    fs2::FileExt::lock_exclusive(&file).unwrap();
    fs::remove_dir(&lock).unwrap();
    fs::rename(&real, &lock).unwrap();
    let code = observer.wait_ended();
    // It may have been faster than the rename.
    assert!(code == Some(0), "{}", nexus.log());

    drop(file);
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let mut observer = nexus.spawn(Path::new(WATCHER), &[]);
    wait_until("it observes", || nexus.state("watcher-observing").exists());
    let output = nexus.launch(&["--replace"]);
    check(&output, 3, "OBSERVE-ONLY");
    check(&output, 3, &format!("ended the watcher {}", observer.pid()));
    assert_eq!(observer.wait_ended(), Some(0));
    fs::remove_dir(&lock).unwrap();
    wait_until("the second becomes a watcher", || nexus.pid().is_some());
}

#[test]
fn no_child_has_the_lock_open() {
    let mut nexus = Nexus::new();
    let tools = nexus.at("tools");
    fs::create_dir(&tools).unwrap();
    fs::create_dir(nexus.at("root/.git")).unwrap();
    fs::write(nexus.at("root/config/nexus.yml"), "monitor:\n  snapshot:\n    git_enabled: true\n").unwrap();
    // Every program that the watcher starts writes down what it was given.
    for tool in ["git", "tmux"] {
        let real = said(&Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().unwrap());
        let script = format!(
            "#!/bin/sh\nls -l /proc/$$/fd >\"{given}/.$$\"\nmv \"{given}/.$$\" \"{given}/{tool}.$$\"\nexec {} \"$@\"\n",
            real.trim(),
            given = nexus.at("given").display(),
        );
        fs::write(tools.join(tool), script).unwrap();
        fs::set_permissions(tools.join(tool), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::create_dir(nexus.at("given")).unwrap();
    nexus.tools = Some(tools);
    let watcher = nexus.watch();
    let given = |tool: &str| {
        let files = fs::read_dir(nexus.at("given")).unwrap().flatten();
        files
            .filter(|file| file.file_name().to_string_lossy().starts_with(tool))
            .map(|file| file.path())
            .collect::<Vec<_>>()
    };
    wait_until("git and tmux were started", || !given("git.").is_empty() && given("tmux.").len() > 1);
    for file in given("git.").into_iter().chain(given("tmux.")) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(" 0 -> ") && !text.contains("nexus-instance") && !text.contains(".lock"), "{text}");
        let others: Vec<_> =
            text.lines().filter(|line| line.contains(".state/") && !line.contains(" -> /proc/")).collect();
        assert!(others.is_empty(), "{others:?}");
    }
    // The same by the kernel's own word, for those that last.
    let lock = fs::metadata(nexus.state("nexus-instance.lock")).unwrap().ino();
    assert_eq!(holders_of(lock), [watcher.pid().cast_signed()]);
}

#[test]
fn of_many_starts_of_every_kind_at_once_one_watcher_is_left() {
    let nexus = Nexus::new();
    let launcher = concat!(env!("CARGO_MANIFEST_DIR"), "/monitor/watcher/launcher.sh");
    // Past the launcher, the lock alone decides.
    let _direct = [nexus.spawn(Path::new(WATCHER), &[]), nexus.spawn(Path::new(WATCHER), &[])];
    let nexus = &nexus;
    std::thread::scope(|scope| {
        for args in [&[][..], &["--ensure"], &["--replace"], &["--replace"], &["--ensure"], &[]] {
            scope.spawn(move || {
                let output = nexus.run(launcher, args);
                // A start that finds one is refused; one that was started may have been replaced before it was up.
                let code = output.status.code().unwrap();
                assert!(matches!(code, 0 | 3 | 4), "{args:?}: {}", said(&output));
            });
        }
    });
    check(&nexus.launch(&["--ensure"]), 0, "");
    wait_until("one is up", || nexus.ng(&["watcher-status"]).status.code() == Some(0));
    let lock = fs::metadata(nexus.state("nexus-instance.lock")).unwrap().ino();
    assert_eq!(holders_of(lock), [nexus.pid().unwrap().cast_signed()]);
}

#[test]
fn a_watcher_whose_program_was_replaced_by_an_update_is_still_recognised() {
    let nexus = Nexus::new();
    let program = nexus.at("nexus-watcher");
    fs::copy(WATCHER, &program).unwrap();
    let mut old = nexus.spawn(&program, &[]);
    old.wait_up();
    fs::remove_file(&program).unwrap();
    check(&nexus.ng(&["watcher-status"]), 0, &format!("pid: {} (alive)", old.pid()));
    check(&nexus.launch(&["--ensure"]), 0, "nothing to do");
    check(&nexus.launch(&["--replace"]), 0, &format!("ended the watcher {}", old.pid()));
    assert_eq!(old.wait_ended(), Some(0));
}

#[test]
fn the_pid_is_published_before_anything_slow() {
    let mut nexus = Nexus::new();
    let tools = nexus.at("tools");
    fs::create_dir(&tools).unwrap();
    let pipe = nexus.at("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    fs::write(tools.join("tmux"), format!("#!/bin/sh\nread line <\"{}\"\necho tmux 3.3a\n", pipe.display())).unwrap();
    fs::set_permissions(tools.join("tmux"), fs::Permissions::from_mode(0o755)).unwrap();
    nexus.tools = Some(tools);
    let mut watcher = nexus.spawn(Path::new(WATCHER), &[]);
    wait_until("the pid is published", || nexus.pid() == Some(watcher.pid()));
    assert!(!nexus.state("watcher-heartbeat").exists(), "it is not up yet");
    check(&nexus.launch(&["--instance-status"]), 0, "assessment=live-local");
    // A signal before it is up ends it as every program.
    watcher.signal(Signal::TERM);
    assert_eq!(watcher.wait_ended(), None);
    assert!(nexus.pid().is_some(), "killed, so it could not take its pid back");
    let opened =
        rustix::fs::open(&pipe, rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK, rustix::fs::Mode::empty());
    drop(opened);
}

#[test]
fn in_the_foreground_it_says_what_it_waits_for_and_a_hang_up_does_not_end_it() {
    let nexus = Nexus::new();
    nexus.tmux(&["kill-server"]);
    let mut watcher = nexus.watch();
    let said = || fs::read_to_string(nexus.at("stderr")).unwrap();
    wait_until("it says so", || said().contains("waiting for a tmux server with a window named orchestrator"));
    assert_eq!(said().lines().count(), 1, "{}", said());
    watcher.signal(Signal::HUP);
    wait_until("the configuration was read again", || nexus.log().contains("read again"));
    assert!(watcher.is_running());
    watcher.signal(Signal::TERM);
    assert_eq!(watcher.wait_ended(), Some(0));
}

#[test]
fn a_launched_watcher_leads_a_session_of_its_own() {
    let nexus = Nexus::new();
    check(&nexus.launch(&["--target", "orchestrator"]), 0, "started");
    let pid = nexus.pid().unwrap();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!((fields[2], fields[3]), (&*pid.to_string(), &*pid.to_string()), "group and session");
}

#[test]
fn a_supervisor_is_told_what_to_do_and_a_crashed_watcher_is_revived() {
    let nexus = Nexus::new();
    let tick = || {
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/monitor/watcher-supervise-tick.sh"));
        nexus.hermetic(command.env("NEXUS_ROOT", "")).env("NEXUS_ROOT", nexus.at("root")).output().unwrap()
    };
    check(&tick(), 1, "watcher NO-HEARTBEAT");
    check(&nexus.launch(&[]), 0, "started");
    let first = nexus.pid().unwrap();
    let fine = tick();
    check(&fine, 0, "");
    assert_eq!(said(&fine), "", "nothing to say");
    assert!(nexus.state("watcher-supervisor-heartbeat").exists());
    check(&nexus.ng(&["watcher", "revive"]), 0, "the watcher lives");

    kill_process(Pid::from_raw(first.cast_signed()).unwrap(), Signal::KILL).unwrap();
    wait_until("it is down", || tick().status.code() == Some(1));
    check(&tick(), 1, "monitor/ng watcher revive");
    check(&nexus.ng(&["watcher", "revive"]), 0, "started");
    assert_ne!(nexus.pid(), Some(first));
    let marker = nexus.read("watcher-revived");
    assert!(marker.starts_with("reason=DOWN") && marker.contains("restarted_by=orchestrator-monitor\n"), "{marker}");

    check(&nexus.ng(&["watcher", "stop"]), 0, "stopped the watcher");
    check(&tick(), 1, "stopped on purpose");
    check(&nexus.ng(&["watcher", "revive"]), 0, "stopped on purpose");
    check(&nexus.ng(&["watcher", "stop"]), 0, "no watcher runs");
    assert_eq!(nexus.read("watcher-revive-history.txt").lines().count(), 1);
    let full = format!("{} watcher-revive\n", now_s()).repeat(5);
    fs::write(nexus.state("watcher-revive-history.txt"), full).unwrap();
    fs::remove_file(nexus.state("watcher-stop-requested")).unwrap();
    check(&nexus.ng(&["watcher", "revive"]), 3, "5 times within 10 minutes");
    check(&nexus.launch(&[]), 0, "started");
}

#[test]
fn the_shim_of_the_original_has_its_codes() {
    let nexus = Nexus::new();
    let main = concat!(env!("CARGO_MANIFEST_DIR"), "/monitor/watcher/main.sh");
    check(&nexus.run(main, &["--nonsense"]), 1, "unexpected argument '--nonsense'");
    check(&nexus.run(main, &["--once"]), 0, "");
    assert!(!nexus.state("watcher.pid").exists() && !nexus.state("nexus-instance.heartbeat").exists());
    let _watcher = nexus.watch();
    check(&nexus.run(main, &["--target", "orchestrator"]), 4, "another watcher holds");
}

#[test]
fn a_state_directory_that_may_not_be_written_is_one_line_and_code_5() {
    let nexus = Nexus::new();
    let state = nexus.state("");
    for mode in [0o000, 0o500] {
        fs::set_permissions(&state, fs::Permissions::from_mode(mode)).unwrap();
        for args in [&[][..], &["--launch"]] {
            let mut command = Command::new(WATCHER);
            if rustix::process::getuid().is_root() {
                // Nothing is forbidden to root.
                fs::set_permissions(nexus.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
                command = Command::new("setpriv");
                command.args(["--reuid=65534", "--clear-groups"]).arg(copy_for_all(&nexus));
            }
            let output = nexus.hermetic(command.args(args).arg("--root").arg(nexus.at("root"))).output().unwrap();
            check(&output, 5, "cannot write to the state directory");
            assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
        }
    }
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
}

/// The service, where every account may run it.
fn copy_for_all(nexus: &Nexus) -> PathBuf {
    let copy = nexus.at("service");
    if !copy.exists() {
        fs::copy(WATCHER, &copy).unwrap();
    }
    for dir in ["root", "root/config", "root/monitor"] {
        fs::set_permissions(nexus.at(dir), fs::Permissions::from_mode(0o755)).unwrap();
    }
    copy
}
