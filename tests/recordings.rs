//! Screens are kept, judged again, and masked: over every capture, and with a real tmux server.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test fails by panicking and starts programs")]

#[path = "support/captures.rs"]
#[expect(dead_code, reason = "other tests read more of a capture")]
mod captures;
#[path = "support/tmux_server.rs"]
mod tmux_server;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use captures::screens;
use nexus_watcher::agents::Profiles;
use nexus_watcher::logic::archive::{Difference, masked};
use nexus_watcher::logic::pane::judge_capture;
use nexus_watcher::logic::screen::Capture;
use tmux_server::{TmuxServer, wait_until};

#[test]
fn a_masked_screen_is_judged_as_before_and_says_little() {
    let profiles = Profiles::builtin().unwrap();
    let (mut refused, mut count, mut words) = (Vec::new(), 0, (0, 0));
    for screen in screens() {
        let profile = profiles.get(&screen.label.agent).unwrap();
        let facts = screen.label.facts();
        count += 1;
        let Some((text, verdict)) = masked(profile, &facts, &screen.capture) else {
            refused.push(screen.name);
            continue;
        };
        let again = judge_capture(profile, &facts, &Capture::from_bytes(text.as_bytes()));
        let whole = judge_capture(profile, &facts, &screen.capture);
        assert_eq!(again, verdict, "{}", screen.name);
        assert_eq!(Difference::between(&whole, &again), None, "{}", screen.name);
        let long = |rows: &[String]| {
            rows.iter()
                .flat_map(|row| row.split_whitespace())
                .filter(|word| {
                    word.len() > 4
                        && word.chars().all(|ch| ch.is_ascii_alphabetic())
                        && word.chars().any(|ch| !matches!(ch, 'x' | 'X'))
                })
                .count()
        };
        words.0 += long(screen.capture.plain());
        words.1 += long(Capture::from_bytes(text.as_bytes()).plain());
    }
    assert!(refused.len() * 50 < count, "{} of {count} can't be masked: {refused:?}", refused.len());
    assert!(words.1 * 3 < words.0, "of {} words {} are still there", words.0, words.1);
}

#[test]
fn no_secret_survives_wherever_it_stands() {
    let profiles = Profiles::builtin().unwrap();
    let secrets = ["sk-ant-api03-SECRETsecret0123", "jane.doe@example.com", "0123456789abcdef0123456789abcdef"];
    let mut checked = 0;
    for screen in screens().iter().step_by(9) {
        let profile = profiles.get(&screen.label.agent).unwrap();
        let text = String::from_utf8_lossy(&screen.ansi).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        for at in (0..lines.len()).step_by(7) {
            let mut with: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            with[at] = format!("{} {}", lines[at], secrets.join(" "));
            let capture = Capture::from_bytes(with.join("\n").as_bytes());
            if let Some((shown, verdict)) = masked(profile, &screen.label.facts(), &capture) {
                let told = serde_json::to_string(&verdict).unwrap();
                checked += 1;
                for secret in secrets {
                    assert!(!shown.contains(secret) && !told.contains(secret), "{} row {at}: {secret}", screen.name);
                }
            }
        }
    }
    assert!(checked > 100, "only {checked}");
}

/// A private nexus, and a pane that shows what its file holds.
struct Scene {
    server: TmuxServer,
    dir: tempfile::TempDir,
}

impl Scene {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("monitor/.state")).unwrap();
        fs::copy("/bin/cat", dir.path().join("claude")).unwrap();
        let scene = Self { server: TmuxServer::start(100, 30), dir };
        scene.draw("● Done.");
        let pipe = scene.path("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // Kept open for writing by itself, so that each write is one more screen.
        let line =
            format!("exec {} {} - <>{}", scene.path("claude").display(), scene.path("first").display(), pipe.display());
        scene.server.tmux(&["new-window", "-d", "-t", "nexus:", "-n", "w1", &line]);
        scene.server.wait_for("w1", "Done", Duration::from_secs(20));
        scene
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn screen(above: &str) -> String {
        let rule = "─".repeat(100);
        format!("\x1b[H\x1b[2J{above}\n\n{rule}\n❯\u{a0}\n{rule}\n  ? for shortcuts\n")
    }

    fn draw(&self, above: &str) {
        fs::write(self.path("first"), Self::screen(above)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ng"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path())
            .env("NEXUS_ROOT", self.dir.path())
            .env("NEXUS_STATE_DIR", self.path("monitor/.state"))
            .env("NEXUS_TMUX_SOCKET", self.server.socket())
            .current_dir(self.dir.path());
        command
    }

    fn ng(&self, args: &[&str]) -> (i32, String, String) {
        said(&self.command(args).output().unwrap())
    }
}

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn kept(dir: &Path) -> usize {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|data| usize::try_from(data.len()).unwrap()).sum()
}

#[test]
fn a_recorded_window_is_judged_again_and_a_changed_profile_shows() {
    let scene = Scene::start();
    let kept_in = scene.path("kept");
    let dir = kept_in.display().to_string();
    let mut recorder =
        scene.command(&["record", "w1", "--dir", &dir]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let patience = Duration::from_secs(20);
    wait_until("the first screen", patience, || if kept(&kept_in) > 0 { Ok(()) } else { Err(String::new()) });
    let first = kept(&kept_in);
    fs::write(scene.path("pipe"), Scene::screen("✻ Brewing… (12s · esc to interrupt)")).unwrap();
    wait_until("the second screen", patience, || if kept(&kept_in) > first { Ok(()) } else { Err(String::new()) });
    let ended = Command::new("kill").args(["-INT", &recorder.id().to_string()]).status().unwrap();
    assert!(ended.success());
    assert_eq!(recorder.wait().unwrap().code(), Some(0));

    let (code, out, err) = scene.ng(&["replay", &dir]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert!(err.contains("2 screens, 0 verdicts changed, 0 not read"), "{err}");

    let amended = scene.path("claude.yml");
    fs::write(&amended, "amends: claude\nremove: [claude-spinner, claude-spinner-interrupt]\n").unwrap();
    let (code, out, err) = scene.ng(&["replay", &dir, "--against", &amended.display().to_string(), "--table"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("busy (claude-spinner) -> "), "{out}");
    assert!(out.contains("| claude |"), "{out}");

    let file = fs::read_dir(&kept_in).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 7]).unwrap();
    let (code, _, err) = scene.ng(&["replay", &dir]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("1 not read"), "{err}");
}

#[test]
fn what_can_not_be_replayed_is_said_with_what_to_do() {
    let scene = Scene::start();
    for (args, code, words) in [
        (vec!["replay", "nowhere"], 2, "nowhere"),
        (vec!["replay", "monitor"], 2, "ng record --all"),
        (vec!["replay", "monitor", "--against", "no-such-rev"], 64, "no-such-rev"),
        (vec!["record"], 64, "which panes"),
        (vec!["record", "nobody", "--for", "1"], 3, "nobody"),
    ] {
        let (got, _, err) = scene.ng(&args);
        assert_eq!(got, code, "{args:?}: {err}");
        assert!(err.contains(words), "{args:?}: {err}");
    }
}
