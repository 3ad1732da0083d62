//! `ng emits replay` from outside: what was archived since the last ack, in order, and what an ack remembers.

#![expect(clippy::disallowed_methods, reason = "tests start children of their own")]
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A nexus with an archive.
struct Nexus {
    dir: tempfile::TempDir,
}

impl Nexus {
    fn new(emits: &[(&str, &str)]) -> Self {
        let nexus = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(nexus.state("diffs")).unwrap();
        for (name, text) in emits {
            nexus.archive(name, text);
        }
        nexus
    }

    fn state(&self, name: &str) -> PathBuf {
        self.dir.path().join("monitor/.state").join(name)
    }

    fn archive(&self, name: &str, text: &str) {
        fs::write(self.state("diffs").join(name), text).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ng"));
        command.env_clear().env("HOME", self.dir.path()).current_dir(self.dir.path());
        command.arg("--root").arg(self.dir.path()).args(["emits", "replay"]).args(args);
        command
    }

    fn replay(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

const FIRST: (&str, &str) = ("2026-05-11_20-42-01_ffffff.md", "one\n");
const SECOND: (&str, &str) = ("2026-05-11_20-43-01_aaaaaa_resurface.md", "two\nlines\n");
const THIRD: (&str, &str) = ("2026-05-11_20-44-01_bbbbbb_full-state.md", "three\n");

#[test]
fn everything_since_the_last_ack_comes_oldest_first_and_an_ack_ends_it() {
    let nexus = Nexus::new(&[SECOND, FIRST, ("notes.md", "not an emit")]);
    let all = format!(">>> {}\none\n>>> {}\ntwo\nlines\n", FIRST.0, SECOND.0);
    assert_eq!(nexus.replay(&[]), all);
    assert_eq!(nexus.replay(&["--ack"]), all, "without an ack everything comes again");
    assert_eq!(fs::read_to_string(nexus.state("last-ack.txt")).unwrap(), "2026-05-11T20:43:01+00:00\n");
    assert_eq!(nexus.replay(&["--ack"]), "");
    nexus.archive(THIRD.0, THIRD.1);
    assert_eq!(nexus.replay(&[]), format!(">>> {}\nthree\n", THIRD.0));
    assert_eq!(
        nexus.replay(&["--json"]),
        format!("[\n  {{\n    \"archive\": \"{}\",\n    \"text\": \"three\\n\"\n  }}\n]\n", THIRD.0)
    );
}

#[test]
fn the_time_of_the_file_counts_as_the_original_tools_leave_it() {
    let nexus = Nexus::new(&[FIRST, SECOND, THIRD]);
    fs::write(nexus.state("last-ack.txt"), "2020-01-01T00:00:00-07:00\n").unwrap();
    // 2026-05-11 20:43:30 UTC.
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_778_532_210);
    fs::File::options().write(true).open(nexus.state("last-ack.txt")).unwrap().set_modified(at).unwrap();
    assert_eq!(nexus.replay(&[]), format!(">>> {}\nthree\n", THIRD.0));
}

#[test]
fn what_nobody_reads_is_not_acked() {
    let nexus = Nexus::new(&[FIRST, SECOND]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert!(nexus.command(&["--ack"]).stdout(writer).status().unwrap().success(), "a broken pipe is success");
    assert!(!nexus.state("last-ack.txt").exists());
}

#[test]
fn an_archive_that_cannot_be_read_is_an_error_and_acks_nothing() {
    let nexus = Nexus::new(&[FIRST]);
    fs::remove_file(nexus.state("diffs").join(FIRST.0)).unwrap();
    fs::create_dir(nexus.state("diffs").join(FIRST.0)).unwrap();
    let output = nexus.command(&["--ack"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(FIRST.0), "{said}");
    assert!(!nexus.state("last-ack.txt").exists());
}
