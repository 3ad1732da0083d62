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

#[test]
fn every_setting_is_read_by_what_acts_on_it() {
    // Scripts ask for these by `ng config get`.
    let by_scripts = [("orchestrator_command", "monitor.orchestrator.command", "scripts/run.sh")];
    let resolved = fs::read_to_string(root().join("src/config/resolved.rs")).unwrap();
    let (_, fields) = resolved.split_once("pub struct Settings {").unwrap();
    let (fields, _) = fields.split_once("\n}").unwrap();
    let fields: Vec<&str> =
        fields.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next()).collect();
    assert!(fields.len() > 30, "{fields:?}");
    let code: String = sources("src")
        .iter()
        .filter(|(name, _)| !name.starts_with("src/config/"))
        .map(|(_, text)| shipped(text))
        .collect();
    for field in fields {
        if let Some((_, key, script)) = by_scripts.iter().find(|(name, ..)| *name == field) {
            assert!(fs::read_to_string(root().join(script)).unwrap().contains(key), "{script} does not read {key}");
            continue;
        }
        let is_read = code.match_indices(&format!(".{field}")).any(|(at, found)| {
            let next = code[at + found.len()..].chars().next();
            !next.is_some_and(|c| c.is_alphanumeric() || c == '_')
        });
        assert!(
            is_read,
            "nothing outside src/config reads the setting {field}: a key that is accepted and does nothing"
        );
    }
}

#[test]
fn nothing_that_runs_keeps_a_copy_of_the_settings() {
    for dir in ["src/tasks", "src/daemon"] {
        for (name, text) in sources(dir).into_iter().filter(|(name, _)| !name.ends_with("tests.rs")) {
            for line in shipped(&text).lines().filter(|line| line.starts_with("    ") && line.ends_with(',')) {
                let is_field = line.contains(": Settings,") || line.contains("Rc<Settings>,");
                assert!(!is_field, "{name} keeps settings, which go stale when the file changes: {line}");
            }
        }
    }
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
    assert_eq!(holders("tmux.clear_bells("), ["src/daemon/actuate.rs"]);
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

/// A page of the documentation.
fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs").join(name)).unwrap_or_else(|error| panic!("docs/{name}: {error}"))
}

/// The texts between backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// A row of `docs/coverage.md`.
struct CoverageRow {
    what: String,
    status: String,
    places: Vec<String>,
    tests: Vec<String>,
}

/// Every row of `docs/coverage.md`, with a complaint about each that has not four cells.
fn coverage() -> Vec<CoverageRow> {
    let mut rows = Vec::new();
    for line in page("coverage.md").lines().filter(|line| line.starts_with("| ")) {
        // A bar that belongs to a text is written `\|`.
        let cells: Vec<String> =
            line.replace("\\|", "\u{1}").trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let [what, status, places, tests] = cells.as_slice() else { panic!("not four cells: {line}") };
        if what == "what" {
            continue;
        }
        let owned = |cell: &str| quoted(cell).into_iter().map(str::to_owned).collect();
        rows.push(CoverageRow {
            what: what.clone(),
            status: status.clone(),
            places: owned(places),
            tests: owned(tests),
        });
    }
    rows
}

#[test]
fn what_coverage_names_exists() {
    for row in coverage() {
        for place in &row.places {
            assert!(root().join(place).exists(), "{}: there is no {place}", row.what);
        }
        for test in &row.tests {
            assert!(test.contains("::"), "{}: {test} names no test function", row.what);
            assert_is_test(&row.what, test);
        }
    }
}

/// Asserts that `path::function` is a test.
fn assert_is_test(what: &str, named: &str) {
    let Some((path, name)) = named.split_once("::") else { return };
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{what}: {path}: {error}"));
    // Each check of this suite is a test for each form of tmux by its place in the table.
    if path == "tests/conformance.rs" && [",", ";"].iter().any(|end| text.contains(&format!("\n        {name}{end}\n")))
    {
        return;
    }
    let at = text.find(&format!("fn {name}(")).unwrap_or_else(|| panic!("{what}: no test {named}"));
    let before = text[..at].lines().rev().take(3).collect::<Vec<_>>().join("\n");
    assert!(before.contains("test]"), "{what}: {named} is no test");
}

#[test]
fn every_promise_is_proven_by_a_test_that_exists() {
    let safety = page("safety.md");
    let rows = safety.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| promise "));
    let mut count = 0;
    for row in rows {
        count += 1;
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").collect();
        let [promise, _, proof] = cells.as_slice() else { panic!("not three cells: {row}") };
        let proofs = quoted(proof);
        assert!(proofs.iter().any(|name| name.starts_with("tests/")), "nothing proves: {promise}");
        for name in proofs {
            let path = name.split("::").next().unwrap();
            assert!(
                root().join(path).exists() || root().join("docs").join(path).exists(),
                "{promise}: there is no {path}"
            );
            assert_is_test(promise, name);
        }
    }
    assert!(count > 15, "only {count} promises were read");
}

#[test]
fn every_coverage_row_has_a_status_that_holds() {
    /// The numbers after each `issue ` in a text.
    fn issues(text: &str) -> Vec<u32> {
        text.split("issue ")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
            .collect()
    }
    let contracts = page("contracts.md");
    let departures = contracts.split("## 9.").nth(1).and_then(|text| text.split("## 10.").next()).unwrap();
    for CoverageRow { what, status, places, tests } in coverage() {
        let shown = !places.is_empty() && !tests.is_empty();
        let planned = issues(&status);
        assert!(planned.iter().all(|issue| (3..=12).contains(issue)), "{what}: {status}");
        if status == "built" {
            assert!(shown, "{what} is said to be built, by no file or no test");
        } else if status.starts_with("planned (issue ") {
            assert!(planned.len() == 1 && status.ends_with(')') && !shown, "{what}: {status}");
        } else if status.starts_with("part: ") {
            assert!(shown && !planned.is_empty(), "{what}: which part by what, and which issue brings the rest?");
        } else if let Some(line) = status.strip_prefix("departs (§9.") {
            let line = line.split(')').next().unwrap();
            assert!(departures.contains(&format!("\n{line}. ")), "{what}: contracts.md §9 has no line {line}");
            assert!(shown, "{what} departs, by no file or no test");
        } else {
            panic!("{what}: no such status: {status}");
        }
    }
}

/// Rows of `docs/coverage.md`, counted against the specifications. It only grows.
const COVERAGE_ROWS: usize = 341;

#[test]
fn no_row_of_coverage_vanishes() {
    let rows = coverage();
    assert!(rows.len() >= COVERAGE_ROWS, "{} rows of {COVERAGE_ROWS}", rows.len());
    // The tables of the specifications, each row by its first word.
    let named = |word: &str| rows.iter().any(|row| row.what.contains(&format!("`{word}")));
    for task in "target_window orchestrator_liveness over_limit_wakes pending_decisions requests_poll detect_unstick \
                 deliveries_poll orphan_async_wakes bell_windows snapshot_local idle_section over_limit_scan \
                 orphan_async_scan compose_emit prune_archive github_poll full_state_snap functional_check \
                 comment_surface reports_roll cc_version_check cc_auto_update version_check clone_drift service_health"
        .split_whitespace()
    {
        assert!(named(task), "no row for the task {task}");
    }
    for word in "watcher-heartbeat watcher-progress watcher-cycle UP BUSY WEDGED DOWN wrapped wrapped-but-stub \
                 no-wrap-up idle-too-long healthy bypass stale watch.enabled watch.resumes watch.respawns \
                 watch.staleMinutes watch.intervalMinutes watch.learn watch.spinFailures resume respawn orphan \
                 unmeasured watch-error exit live-local stale-reboot live-remote unknown none same-host corrupt"
        .split_whitespace()
    {
        assert!(named(word), "no row for {word}");
    }
}

#[test]
fn every_verb_is_documented() {
    let commands = page("commands.md");
    let mut verbs = 0;
    let files = sources("src/cli");
    for (name, text) in &files {
        let mut code = shipped(text);
        if !code.contains("const VERB: Verb") {
            continue;
        }
        verbs += 1;
        // A verb with several parts is a folder.
        let place = name.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        for (_, text) in files.iter().filter(|(part, _)| part != name && part.starts_with(&format!("{place}/"))) {
            code.push_str(&shipped(text));
        }
        let file = place.rsplit('/').next().unwrap().replace('_', "-");
        let section = commands
            .split("\n## ")
            .find(|section| section.starts_with(&format!("ng {file}\n")))
            .unwrap_or_else(|| panic!("docs/commands.md has no section \"ng {file}\""));
        assert!(section.contains("Exit codes: "), "ng {file} has no exit codes");
        assert!(section.contains("```sh\n"), "ng {file} has no example");
        let about = code.split(".about(\"").skip(1).filter_map(|rest| rest.split('"').next());
        for about in about {
            assert!(section.contains(about), "ng {file} lacks: {about}");
        }
        let long = code.split(".long(\"").skip(1).filter_map(|rest| rest.split('"').next());
        for flag in long {
            assert!(section.contains(&format!("`--{flag}")), "ng {file} lacks --{flag}");
        }
    }
    let listed = shipped(&fs::read_to_string(root().join("src/cli/mod.rs")).unwrap()).matches("::VERB,").count();
    assert_eq!((verbs, commands.matches("\n## ng ").count()), (listed, listed));
}

#[test]
fn every_decision_record_has_a_number_of_its_own() {
    let mut numbers = BTreeSet::new();
    for entry in fs::read_dir(root().join("docs/adr")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let number = name.split('-').next().unwrap().to_owned();
        assert!(number.len() == 4 && number.bytes().all(|b| b.is_ascii_digit()), "{name}");
        let text = page(&format!("adr/{name}"));
        assert!(text.starts_with(&format!("# {number} ")), "{name} has another number in its title");
        for part in ["Status: ", "## Context\n", "## Decision\n", "## How we would notice it was wrong\n"] {
            assert!(text.contains(part), "{name} lacks {part:?}");
        }
        assert!(numbers.insert(number.clone()), "{number} is taken twice");
    }
    // Numbers are given out before the records are written, so a gap is no mistake.
    assert!(numbers.len() >= 9);
}

#[test]
fn every_module_is_on_the_map() {
    let map = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let design = page("architecture.md");
    for line in map.lines().filter_map(|line| line.strip_prefix("pub mod ")) {
        let module = line.trim_end_matches(';');
        assert!(map.contains(&format!("//! - [`{module}`]")), "src/lib.rs does not say what {module} is");
        let shown = [format!("`src/{module}/`"), format!("`src/{module}.rs`")];
        assert!(shown.iter().any(|place| design.contains(place)), "docs/architecture.md has no {module} on its map");
    }
}

/// Asserts that a package is used in these places only: a file, or a folder that ends in `/`.
fn check_users(package: &str, places: &[&str]) {
    let mut users = holders(&format!("{package}::"));
    users.extend(holders(&format!("use {package}")));
    assert!(!users.is_empty(), "{package} is used nowhere");
    for user in users {
        let allowed = places.iter().any(|place| user == *place || (place.ends_with('/') && user.starts_with(place)));
        assert!(allowed, "{user} uses {package}, which belongs to {places:?} (docs/adr/0001-packages.md)");
    }
}

#[test]
fn each_replaceable_package_has_one_place() {
    check_users("tmux_interface", &["src/sys/tmux/"]);
    check_users("serde_yaml", &["src/config/yaml.rs", "src/agents/amend.rs", "src/agents/profile.rs"]);
    check_users("fs2", &["src/sys/lock.rs"]);
    check_users("hostname", &["src/sys/"]);
    check_users("clap_complete", &["src/cli/completions.rs"]);
    check_users("clap_mangen", &["src/cli/manual.rs"]);
    check_users("sd_notify", &["src/sys/systemd.rs"]);
}

#[test]
fn a_delivery_presses_enter_and_the_vi_guard_only() {
    for (name, text) in sources("src") {
        if name.starts_with("src/sys/tmux/") {
            continue;
        }
        let code = shipped(&text);
        for (at, _) in code.match_indices("Key::") {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                continue;
            }
            let key: String = code[at + 5..].chars().take_while(char::is_ascii_alphanumeric).collect();
            let demo = name.starts_with("src/demo/") || name.starts_with("src/config/");
            assert!(
                demo || (["Enter", "LetterI", "BSpace"].contains(&key.as_str()) && name == "src/daemon/actuate.rs"),
                "{name} presses {key}"
            );
        }
    }
}

#[test]
fn the_documentation_stands_alone() {
    let mut pages = vec!["README.md".to_owned()];
    for dir in ["docs", "docs/adr"] {
        for entry in fs::read_dir(root().join(dir)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "md") {
                pages.push(path.strip_prefix(root()).unwrap().display().to_string());
            }
        }
    }
    for name in pages {
        let text = fs::read_to_string(root().join(&name)).unwrap();
        for outside in ["../", "-facts.md", "style-examples", "crates.md"] {
            assert!(!text.contains(outside), "{name} names {outside}, which is not in the project");
        }
        // A page or a source that is named in backticks exists.
        for path in quoted(&text).into_iter().filter(|path| !path.contains([' ', '<', '*', '…', '%'])) {
            let is_source = ["src/", "tests/", "docs/", "scripts/"].iter().any(|dir| path.starts_with(dir));
            let file = path.split("::").next().unwrap();
            let later = ["simulation", "conformance", "crash", "fuzz", "adding-an-agent"]
                .iter()
                .any(|word| file.contains(word));
            assert!(!is_source || later || root().join(file).exists(), "{name} names {path}, which does not exist");
        }
    }
}
