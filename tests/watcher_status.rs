//! `ng watcher-status` and `monitor/ng` from outside: exit codes, what is said, and that looking changes nothing.

#![expect(clippy::disallowed_methods, reason = "tests start children of their own")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "support/output.rs"]
mod output;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use output::check;

/// An empty nexus.
struct Nexus {
    dir: tempfile::TempDir,
}

impl Nexus {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn state(&self, name: &str) -> PathBuf {
        self.dir.path().join("monitor/.state").join(name)
    }

    fn write(&self, name: &str, text: &[u8]) {
        let path = self.state(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn age(&self, name: &str, secs: u64) {
        let file = fs::File::options().write(true).open(self.state(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(secs)).unwrap();
    }

    fn run(&self, program: &Path, args: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.dir.path()).env("PATH", std::env::var("PATH").unwrap());
        command.args(args).current_dir(self.dir.path()).output().unwrap()
    }

    fn status(&self, args: &[&str]) -> Output {
        let root = self.dir.path().to_str().unwrap();
        self.run(Path::new(env!("CARGO_BIN_EXE_ng")), &[&["--root", root, "watcher-status"], args].concat())
    }
}

#[test]
fn the_exit_code_is_the_verdict() {
    let nexus = Nexus::new();
    check(&nexus.status(&[]), 3, "state=NO-HEARTBEAT");
    assert!(!nexus.state("").exists(), "looking makes nothing");
    // A pid that no process has, and nobody holds the lock.
    nexus.write("watcher-heartbeat", b"pid=4194305\nts=2026-10-05T09:00:00-07:00\ntarget=orch\n");
    check(&nexus.status(&[]), 2, "pid: 4194305 (DEAD)");
    check(&nexus.status(&["--json"]), 2, "\"state\": \"DOWN\"");
    // Somebody holds the lock, from wherever.
    nexus.write("nexus-instance.lock", b"pid: 4194305\nhost: elsewhere\n");
    let lock = fs::File::open(nexus.state("nexus-instance.lock")).unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    check(&nexus.status(&[]), 0, "instance-lock: held (assessment=live-remote host=elsewhere");
    nexus.age("watcher-heartbeat", 200);
    check(&nexus.status(&[]), 1, "state=BUSY");
    nexus.write("watcher-progress", b"stage=loop-tick\n");
    nexus.age("watcher-progress", 1000);
    check(&nexus.status(&[]), 4, "state=WEDGED");
}

#[test]
fn the_configured_interval_is_what_counts() {
    let nexus = Nexus::new();
    nexus.write("watcher-heartbeat", b"pid=4194305\n");
    nexus.write("nexus-instance.lock", b"pid: 4194305\nhost: elsewhere\n");
    let lock = fs::File::open(nexus.state("nexus-instance.lock")).unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    nexus.write("watcher-cycle", b"period_s=300\nema_s=300\n");
    check(&nexus.status(&[]), 1, "state=BUSY");
    fs::write(nexus.dir.path().join("nexus.yml"), "monitor:\n  interval_seconds: 300\n").unwrap();
    check(&nexus.status(&[]), 0, "state=UP");
    let tasks = nexus
        .run(Path::new(env!("CARGO_BIN_EXE_ng")), &["--root", nexus.dir.path().to_str().unwrap(), "--json", "tasks"]);
    check(&tasks, 0, "\"every_s\": 300");
    // A broken configuration is said, and the question is answered all the same.
    fs::write(nexus.dir.path().join("nexus.yml"), "monitor: [\n").unwrap();
    check(&nexus.status(&[]), 1, "the cadences are the defaults");
}

#[test]
fn the_root_flag_wins_over_the_environment() {
    let (asked, other) = (Nexus::new(), Nexus::new());
    other.write("watcher-heartbeat", b"pid=4194305\n");
    let output = Command::new(env!("CARGO_BIN_EXE_ng"))
        .args(["--root", asked.dir.path().to_str().unwrap(), "watcher-status"])
        .env("NEXUS_STATE_DIR", other.state(""))
        .output()
        .unwrap();
    check(&output, 3, "state=NO-HEARTBEAT");
}

#[test]
fn rubbish_is_passed_over_and_cannot_command_the_terminal() {
    let nexus = Nexus::new();
    for name in ["watcher-heartbeat", "watcher-cycle", "watcher.lock", "nexus-instance.lock", "watcher-scheduler.jsonl"]
    {
        nexus.write(
            name,
            b"pid=1\x1b[31m\nts=\x1b]0;x\x07\ntarget=a\x1b[2J\nhost: \x1b[1m\nstarted_at: \x1b[2m\n\xc2\x9b",
        );
    }
    let output = nexus.status(&["--scheduler"]);
    check(&output, 0, "heartbeat: ");
    assert!(!output.stdout.contains(&0x1b), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn what_is_no_verdict_has_a_code_of_its_own() {
    let nexus = Nexus::new();
    fs::create_dir(nexus.dir.path().join("monitor")).unwrap();
    fs::write(nexus.dir.path().join("monitor/.state"), "a file").unwrap();
    check(&nexus.status(&[]), 64, "check its path and permissions");
    check(&nexus.status(&["--nonsense"]), 64, "--nonsense");
    let ng = Path::new(env!("CARGO_BIN_EXE_ng"));
    check(
        &nexus.run(ng, &["--root", "/does/not/exist", "watcher-status"]),
        64,
        "--root /does/not/exist: there is no such folder",
    );
}

#[test]
fn the_shim_runs_the_built_program_for_its_nexus() {
    let nexus = Nexus::new();
    let shim = nexus.dir.path().join("monitor/ng");
    fs::create_dir_all(shim.parent().unwrap()).unwrap();
    for script in ["monitor/ng", "monitor/find_program.sh"] {
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join(script), nexus.dir.path().join(script)).unwrap();
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_ng")).parent().unwrap();
    let run = |path: &str, bin_dir: &str| {
        let mut command = Command::new("/bin/sh");
        command.arg(&shim).args(["watcher-status"]).env_clear().env("PATH", path).env("NEXUS_BIN_DIR", bin_dir);
        command.current_dir("/").output().unwrap()
    };
    nexus.write("watcher-target", b"from-this-nexus\n");
    let path = "/usr/bin:/bin";
    check(&run(path, bin.to_str().unwrap()), 3, "target: from-this-nexus");
    check(&run(&format!("{path}:{}", bin.display()), ""), 3, "target: from-this-nexus");
    // The shim alone in PATH does not call itself for ever.
    check(&run(&format!("{}:{path}", shim.parent().unwrap().display()), ""), 1, "no built program found");
}

#[test]
fn what_is_degraded_is_listed_with_since_when_and_what_to_do() {
    let nexus = Nexus::new();
    nexus.write("watcher-heartbeat", b"pid=4194305\n");
    let modes =
        br#"{"pid":4194305,"modes":[{"mode":"unproven-text","since_ms":1000,"since":"1970-01-01T00:00:01+00:00",
        "detail":"report abc\u001b[2J: a fold"},{"mode":"of-a-later-version","since_ms":1,"since":"x","detail":"y"}]}"#;
    nexus.write("degraded.json", modes);
    // It does not run, so what it said last holds no more.
    let output = nexus.status(&[]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("degraded:"), "{output:?}");
    nexus.write("nexus-instance.lock", b"pid: 4194305\nhost: elsewhere\n");
    let lock = fs::File::open(nexus.state("nexus-instance.lock")).unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    check(&nexus.status(&[]), 0, "degraded: unproven-text since=1970-01-01T00:00:01+00:00 (");
    check(&nexus.status(&[]), 0, ") report abc [2J: a fold; do: go to the pane");
    let output = nexus.status(&["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["degraded"].as_array().unwrap().len(), 1);
    assert_eq!(json["degraded"][0]["mode"], "unproven-text");
    // What another watcher wrote, or rubbish, is none of its words.
    nexus.write("watcher-heartbeat", b"pid=4194304\n");
    assert!(!String::from_utf8_lossy(&nexus.status(&[]).stdout).contains("degraded:"));
    nexus.write("degraded.json", b"{\"pid\":");
    check(&nexus.status(&[]), 0, "state=UP");
}

#[test]
fn a_state_directory_that_cannot_be_written_is_found_by_looking() {
    let nexus = Nexus::new();
    nexus.write("watcher-progress", b"stage=loop-tick\n");
    nexus.age("watcher-progress", 600);
    // No byte can be written by a process with this limit, as on a full disk.
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 0; trap '' XFSZ; exec \"$0\" --root \"$1\" watcher-status", env!("CARGO_BIN_EXE_ng")])
        .arg(nexus.dir.path())
        .output()
        .unwrap();
    check(&output, 3, "degraded: state-unwritable since=? ");
    check(&output, 3, "what the watcher wrote is 10m old; do: free space");
}

#[test]
fn every_degraded_mode_is_explained_to_the_operator() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operating.md")).unwrap();
    for mode in nexus_watcher::logic::degraded::Mode::ALL {
        assert!(page.contains(&format!("| `{}` |", mode.word())), "docs/operating.md does not explain {}", mode.word());
    }
}
