//! The systemd unit as the distribution's own verifier sees it. `scripts/test.sh` installs that; without it this fails.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and starts programs")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A nexus at an odd place, with an installed program.
struct Nexus {
    dir: tempfile::TempDir,
}

impl Nexus {
    fn new() -> Self {
        let nexus = Self { dir: tempfile::tempdir().unwrap() };
        for folder in ["ne xus/monitor", "ne xus/config", "b%in dir", "run"] {
            fs::create_dir_all(nexus.at(folder)).unwrap();
        }
        fs::copy("/bin/true", nexus.at("b%in dir/nexus-watcher")).unwrap();
        nexus
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// The unit that `ng` prints in this environment.
    fn unit(&self, env: &[(&str, &str)]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_ng"))
            .arg("service")
            .args(["unit", "--program"])
            .arg(self.at("b%in dir/nexus-watcher"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("NEXUS_ROOT", self.at("ne xus"))
            .env("XDG_RUNTIME_DIR", self.at("run"))
            .envs(env.iter().copied())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What the verifier has to say of a unit.
    fn verify(&self, unit: &str) -> String {
        let path = self.at("run/nexus-watcher.service");
        fs::write(&path, unit).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let output = Command::new("systemd-analyze")
            .args(["verify", "--user", "--man=no"])
            .arg(&path)
            .env("HOME", self.dir.path())
            .env("XDG_RUNTIME_DIR", self.at("run"))
            .output()
            .expect("systemd-analyze runs; scripts/test.sh installs it (Debian: apt-get install systemd)");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        if output.status.success() { said } else { format!("{said}\nit failed: {}", output.status) }
    }
}

fn environment(unit: &str) -> Vec<&str> {
    unit.lines().filter_map(|line| line.strip_prefix("Environment=")).collect()
}

#[test]
fn the_verifier_has_nothing_to_say() {
    let nexus = Nexus::new();
    let unit = nexus.unit(&[("TMUX_TMPDIR", "/var/tmp/a \"b\""), ("NEXUS_STATE_DIR", "/st ate/100%")]);
    assert_eq!(nexus.verify(&unit), "");
    // It would say so.
    assert!(nexus.verify(&unit.replace("WatchdogSec=", "WatchdogSecs=")).contains("Unknown key"));
    assert!(nexus.verify(&unit.replace("b%%in dir/nexus-watcher", "gone")).contains("is not executable"));
}

#[test]
fn the_tmux_of_the_shell_that_asks_is_the_one_that_is_watched() {
    let nexus = Nexus::new();
    let run = nexus.at("run").display().to_string();
    let has = |env: &[(&str, &str)], expected: &[&str]| {
        let unit = nexus.unit(env);
        let found: Vec<&str> = environment(&unit).into_iter().filter(|line| line.contains("TMUX")).collect();
        assert_eq!(found, expected, "{env:?}");
    };
    has(&[], &[]);
    let inside = format!("{run}/tmux-7/work,12,0");
    has(&[("TMUX", &inside)], &["\"NEXUS_TMUX_SOCKET=%t/tmux-7/work\""]);
    has(&[("TMUX", &inside), ("NEXUS_TMUX_SOCKET", "other")], &["\"NEXUS_TMUX_SOCKET=other\""]);
    has(&[("TMUX_TMPDIR", &run)], &[&*format!("\"TMUX_TMPDIR={run}\"")]);
    // The file says it, and the service reads the file.
    fs::write(nexus.at("ne xus/config/nexus.yml"), "monitor:\n  tmux:\n    sockets: [mine]\n").unwrap();
    has(&[("TMUX", &inside)], &[]);
}

#[test]
fn the_template_has_one_user() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installer = fs::read_to_string(root.join("scripts/install.sh")).unwrap();
    assert!(!installer.contains("[Service]") && installer.contains("service unit"));
}
