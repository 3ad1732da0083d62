//! The invariants of `docs/architecture.md` that can be read off the sources.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust source below `dir`, with its text.
fn sources(dir: &str) -> Vec<(String, String)> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(dir), &mut found);
    found.sort();
    assert!(!found.is_empty(), "{dir} holds sources");
    found
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect()
}

/// The part of a source before its unit tests, without comments.
fn shipped(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// `crate::` paths that a source uses, also inside braces: `crate::sys::tmux::{Tmux, ..}` gives `sys::tmux`.
fn uses(text: &str) -> BTreeSet<String> {
    let code = shipped(text);
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let path: String = code[at + "crate::".len()..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == ':')
            .collect();
        found.insert(path.trim_end_matches(':').to_owned());
    }
    found
}

/// Asserts that no source of a layer uses what it must not.
fn check_layer(dir: &str, forbidden: &[&str]) {
    for (name, text) in sources(dir) {
        for path in uses(&text) {
            for ban in forbidden {
                assert!(
                    path != *ban && !path.starts_with(&format!("{ban}::")),
                    "{name} uses crate::{path}, but {dir} must not use crate::{ban} (docs/architecture.md §3)"
                );
            }
        }
    }
}

/// Asserts that no source of a layer names any of these texts.
fn check_words(dir: &str, words: &[&str]) {
    for (name, text) in sources(dir) {
        let code = shipped(&text);
        for word in words {
            assert!(!code.contains(word), "{name} names {word}, which {dir} must not");
        }
    }
}

#[test]
fn logic_depends_on_nothing_that_does() {
    check_layer("src/logic", &["sys", "daemon", "cli", "tasks", "demo", "service"]);
    check_words(
        "src/logic",
        &[
            "std::fs",
            "std::net",
            "std::process",
            "std::env",
            "Instant::now",
            "SystemTime",
            "tokio",
            "tracing",
            "async fn",
        ],
    );
}

#[test]
fn tasks_are_pure() {
    check_layer("src/tasks", &["sys", "daemon", "cli", "demo", "service"]);
    check_words("src/tasks", &["std::fs", "std::net", "std::process", "std::env", "Instant::now", "tokio", "tracing"]);
}

#[test]
fn sys_does_not_know_who_calls_it() {
    check_layer("src/sys", &["tasks", "daemon", "cli", "demo", "service"]);
}

#[test]
fn the_demo_and_the_daemon_do_not_know_the_command_line() {
    check_layer("src/daemon", &["cli", "demo", "service"]);
}

/// Sources in which a text stands, outside comments and unit tests.
fn holders(word: &str) -> Vec<String> {
    sources("src").into_iter().filter(|(_, text)| shipped(text).contains(word)).map(|(name, _)| name).collect()
}

#[test]
fn keys_and_pastes_have_one_call_site_each() {
    for word in ["\"send-keys", "\"paste-buffer", "send-keys ", "paste-buffer "] {
        let found = holders(word);
        assert!(found.len() <= 1, "{word} stands in {found:?}");
        if let [only] = found.as_slice() {
            assert_eq!(only, "src/sys/tmux/guard.rs", "{word}");
        }
    }
    let both: BTreeSet<String> = holders("send-keys").into_iter().chain(holders("paste-buffer")).collect();
    assert_eq!(both.into_iter().collect::<Vec<_>>(), ["src/sys/tmux/guard.rs"]);
    // Only the actuator asks tmux to act.
    assert_eq!(holders(".act(&"), ["src/daemon/actuate.rs"]);
}

#[test]
fn a_panic_in_one_task_must_not_abort_the_process() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(!manifest.contains("panic = \"abort\""));
}

#[test]
fn every_module_says_what_it_owns() {
    for (name, text) in sources("src") {
        assert!(text.trim_start().starts_with("//!"), "{name} has no module documentation");
        assert!(!text.contains("//! stub"), "{name} is a stub");
    }
}

#[test]
fn nothing_depends_on_a_path_outside_the_project() {
    let mut files = sources("src");
    files.extend(sources("tests"));
    for script in
        ["scripts/run.sh", "scripts/test.sh", ".ci/run", "tests/lab/agent_lab.sh", "tests/lab/mock_llm.py", "README.md"]
    {
        files.push((script.to_owned(), fs::read_to_string(root().join(script)).unwrap()));
    }
    let outside = ["..", "shared"].join("/");
    for (name, text) in files {
        assert!(!text.contains(&outside), "{name} names a path outside the project");
    }
}
