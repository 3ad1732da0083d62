//! Files of older forms: what is read of them, how they are rewritten, and what is never touched or shown. The schema is
//! held against the reader.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing stops here")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nexus_watcher::config::document;
use nexus_watcher::config::keys;
use nexus_watcher::config::load::{Loaded, load_file};
use nexus_watcher::config::migrate::plan;
use nexus_watcher::config::schema::schema;
use nexus_watcher::config::value::Kind;
use serde_json::Value;

/// Files that operators have.
const OLDER: &str = include_str!("configs/older.yml");
const ORIGINAL: &str = include_str!("configs/original.yml");

fn load(text: &str) -> Result<Loaded, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nexus.yml");
    fs::write(&path, text).unwrap();
    let env: BTreeMap<String, String> = BTreeMap::new();
    load_file(&env, dir.path(), Some(&path), Path::new("/")).map_err(|error| error.to_string())
}

fn migrated(text: &str) -> String {
    plan(Path::new("nexus.yml"), text, Path::new("/nexus")).unwrap_or_else(|error| panic!("{error}\n{text}")).text
}

/// What sets something, for comparison.
fn values(text: &str) -> Vec<(&'static str, Value)> {
    let loaded = load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    // Relative paths are in a folder of each loading's own.
    let root = loaded.settings.root.display().to_string();
    let value = |value: &Value| serde_json::from_str(&value.to_string().replace(&root, "NEXUS")).unwrap();
    loaded.values.iter().map(|setting| (setting.key.path, value(&setting.value.to_json()))).collect()
}

#[test]
fn an_older_file_is_read_as_it_was_meant_and_says_so() {
    let loaded = load(OLDER).unwrap();
    let settings = &loaded.settings;
    assert_eq!(settings.interval, Duration::from_secs(120));
    assert_eq!(settings.idle_threshold, Duration::from_secs(90));
    assert_eq!(settings.idle_close, Duration::from_secs(48 * 3600));
    assert_eq!(settings.max_sleep, Duration::from_secs(5));
    assert_eq!(settings.paste_settle, Duration::from_secs(4));
    assert_eq!((settings.dedup_ring, settings.archive_max_files), (16, 16));
    assert_eq!((settings.git_enabled, settings.target_window.as_str()), (true, "main"));
    let notices = loaded.notices.join("\n");
    for part in [
        "in an older form: interval_minutes: 2 is read as monitor.interval_seconds: 120, ",
        "monitor.idle_threshold_seconds: \"90\" is read as 90, ",
        "monitor.snapshot.git_enabled: \"yes\" is read as true, ",
        "(`ng config migrate` rewrites it)",
    ] {
        assert!(notices.contains(part), "{part} in {notices}");
    }
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
}

#[test]
fn what_is_not_certain_is_refused() {
    let check = |text: &str, expected: &str| {
        let error = load(text).expect_err(text);
        assert!(error.contains(expected), "{error}");
    };
    check(
        "monitor: {idle_close_minutes: 90}",
        "found 90, expected what comes to a whole number of hours from 1 to 8760",
    );
    check("monitor: {interval_days: 2}", "found 2, expected what comes to a whole number of seconds from 1 to 86400");
    check("monitor: {interval_minutes: 18446744073709551615}", "expected what comes to a whole number of seconds");
    check(
        "monitor: {interval_seconds: 60, interval_minutes: 1}",
        "interval_minutes: given twice: in another unit as well, as monitor.interval_seconds (keep one)",
    );
    check("monitor: {interval_minutes: 1, interval_seconds: 60}", "given twice: in another unit as well");
    check("monitor: {interval_seconds: \"0\"}", "expected a whole number of seconds from 1 to 86400");
}

#[test]
fn a_file_is_rewritten_where_it_is_old_and_nowhere_else() {
    let after = migrated(OLDER);
    let expected = [
        ("interval_minutes: 2      # how often", "interval_seconds: 120      # how often"),
        ("idle_threshold_seconds: \"90\"", "idle_threshold_seconds: 90"),
        ("idle_close_seconds: '172800'   # two days", "idle_close_hours: 48   # two days"),
        ("git_enabled: \"yes\"", "git_enabled: true"),
        ("max_sleep: 5", "max_sleep_seconds: 5"),
        ("settle_seconds: '4'", "settle_seconds: 4"),
        ("emit_dedup_ring_size: &size \"16\"", "emit_dedup_ring_size: &size 16"),
    ];
    let mut wanted = OLDER.to_owned();
    for (from, to) in expected {
        assert!(wanted.contains(from), "{from}");
        wanted = wanted.replace(from, to);
    }
    assert_eq!(after, wanted);
}

#[test]
fn rewriting_changes_no_meaning_and_is_done_once() {
    let tabbed =
        "# c\nmonitor:\n\tinterval_seconds: \"30\" # c\n\tsnapshot:\n\t\tgit_enabled: off\nother:\n\tkey: 'a\tb'\n";
    let crlf = "monitor:\r\n  interval_seconds: \"30\"\r\n  target_window: a\r\n";
    let flow = "{monitor: {interval_seconds: '30', idle_close_hours: \"5\", tmux: {sessions: [\"30\"]}}, x: \"30\"}";
    let wide = "ü: é\nmonitor: {services_window: \"é\", interval_seconds: \"30\"}\n";
    for text in [ORIGINAL, tabbed, crlf, flow, wide, "", "# c\n", "monitor:\n", &document::example()] {
        let after = migrated(text);
        assert_eq!(values(text), values(&after), "{text}");
        assert_eq!(migrated(&after), after, "twice is once");
        assert!(!load(&after).unwrap().is_in_an_older_form, "{after}");
        assert_eq!(text.lines().count(), after.lines().count());
    }
    assert_eq!(migrated(ORIGINAL), ORIGINAL);
    assert_eq!(migrated(&document::example()), document::example());
    assert_eq!(
        migrated(tabbed),
        "# c\nmonitor:\n  interval_seconds: 30 # c\n  snapshot:\n    git_enabled: false\nother:\n  key: 'a\tb'\n"
    );
    assert_eq!(migrated(crlf), "monitor:\r\n  interval_seconds: 30\r\n  target_window: a\r\n");
}

#[test]
fn a_value_that_stands_in_an_odd_way_is_left_to_a_person() {
    for text in [
        "monitor:\n  interval_seconds:\n    |-\n    30\n",
        "monitor:\n  interval_seconds: !!str 30\n",
        "monitor:\n  interval_seconds: >-\n    30\n",
        "x: &n \"30\"\nmonitor:\n  interval_seconds: *n\n",
    ] {
        // Where it is refused at once there is nothing to rewrite.
        let Ok(before) = load(text) else { continue };
        match plan(Path::new("nexus.yml"), text, Path::new("/nexus")) {
            Ok(migration) => assert_eq!(values(&migration.text), values(text), "{text}"),
            Err(error) => assert!(error.to_string().contains("change it by hand"), "{error}"),
        }
        assert!(before.is_in_an_older_form, "{text}");
    }
}

/// Runs `ng` in this folder: exit code and what it prints.
#[expect(clippy::disallowed_methods, reason = "the program itself is under test")]
fn ng(root: &Path, args: &[&str]) -> (i32, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ng"));
    let output = command.args(args).current_dir(root).env_clear().env("HOME", root).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap().replace(&root.display().to_string(), "NEXUS"))
}

/// A nexus whose file is this.
fn nexus(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("monitor")).unwrap();
    fs::create_dir_all(dir.path().join("config")).unwrap();
    let path = dir.path().join("config/nexus.yml");
    fs::write(&path, text).unwrap();
    (dir, path)
}

#[test]
fn ng_config_migrate_shows_then_writes_and_the_backup_undoes_it() {
    let (dir, path) = nexus(OLDER);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let (code, shown) = ng(dir.path(), &["config", "migrate"]);
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("NEXUS/config/nexus.yml:10:\n-  interval_minutes: 2      # how often\n+  interval_seconds: 120"),
        "{shown}"
    );
    assert!(shown.ends_with("nothing is written yet: ng config migrate --write\n"), "{shown}");
    assert_eq!(fs::read_to_string(&path).unwrap(), OLDER);

    let (code, written) = ng(dir.path(), &["config", "migrate", "--write"]);
    let backup = dir.path().join("config/nexus.yml.before-migrate");
    assert_eq!(code, 0, "{written}");
    let undo = "written; to undo it: mv NEXUS/config/nexus.yml.before-migrate NEXUS/config/nexus.yml\n";
    assert!(written.ends_with(undo), "{written}");
    assert_eq!(fs::read_to_string(&backup).unwrap(), OLDER);
    assert_eq!(fs::read_to_string(&path).unwrap(), migrated(OLDER));
    for file in [&path, &backup] {
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o640, "{}", file.display());
    }
    let nothing = (0, "NEXUS/config/nexus.yml: nothing to rewrite\n".to_owned());
    assert_eq!(ng(dir.path(), &["config", "migrate", "--write"]), nothing);
    assert_eq!(fs::read_dir(dir.path().join("config")).unwrap().count(), 2);

    fs::rename(&backup, &path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), OLDER);
    let (_, json) = ng(dir.path(), &["config", "migrate", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["written"], &json["lines"][0]["line"]), (&false.into(), &10.into()));
}

#[test]
fn a_link_stays_a_link_and_an_older_backup_stays() {
    let (dir, path) = nexus("");
    let real = dir.path().join("real.yml");
    fs::write(&real, "monitor: {interval_seconds: \"7\"}\n").unwrap();
    fs::write(dir.path().join("real.yml.before-migrate"), "older\n").unwrap();
    fs::remove_file(&path).unwrap();
    symlink("../real.yml", &path).unwrap();
    let (code, told) = ng(dir.path(), &["config", "migrate", "--write"]);
    assert!(code == 0 && told.contains("real.yml.before-migrate.2"), "{told}");
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "monitor: {interval_seconds: 7}\n");
    assert_eq!(fs::read_to_string(dir.path().join("real.yml.before-migrate")).unwrap(), "older\n");
}

#[test]
fn a_wrong_file_is_not_rewritten() {
    let wrong = "monitor:\n  interval_seconds: \"30\"\n  idle_close_hours: never\n";
    let (dir, path) = nexus(wrong);
    let (code, told) = ng(dir.path(), &["config", "migrate", "--write"]);
    assert!(code == 1 && told.contains("nexus.yml:3:21: monitor.idle_close_hours: found \"never\""), "{told}");
    assert_eq!(fs::read_to_string(&path).unwrap(), wrong);
    assert_eq!(fs::read_dir(dir.path().join("config")).unwrap().count(), 1);
}

#[test]
fn no_verb_prints_what_keys_of_other_parts_hold() {
    let tabbed = "lit:\n\ts2_api_key: s2-secret-of-another-part\nmonitor:\n\tinterval_seconds: \"30\"\n\tmystery_token: \
                  s2-secret-of-another-part\n";
    for text in [OLDER, tabbed] {
        let (dir, _) = nexus(text);
        for args in [
            &["config", "show"][..],
            &["config", "show", "--json"],
            &["config", "check"],
            &["config", "check", "--json"],
            &["config", "migrate"],
            &["config", "migrate", "--json"],
            &["config", "migrate", "--write"],
        ] {
            let (code, told) = ng(dir.path(), args);
            assert_eq!(code, 0, "{args:?} {told}");
            assert!(!told.contains("s2-secret"), "{args:?} {told}");
        }
    }
}

/// Whether a value fulfils a schema: as much of the draft as our schema uses; an unknown word is a failure.
fn fulfils(schema: &Value, value: &Value) -> bool {
    let Some(rules) = schema.as_object() else { return schema.as_bool().unwrap() };
    let fits_type = |name: &str| match name {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        "object" => value.is_object(),
        "string" => value.is_string(),
        other => panic!("type {other}"),
    };
    let length = value.as_str().map(|text| text.chars().count() as u64);
    rules.iter().all(|(word, rule)| match word.as_str() {
        "$schema" | "title" | "description" | "default" | "patternProperties" | "additionalProperties" => true,
        "type" => match rule {
            Value::Array(names) => names.iter().any(|name| fits_type(name.as_str().unwrap())),
            name => fits_type(name.as_str().unwrap()),
        },
        "enum" => rule.as_array().unwrap().contains(value),
        "minimum" => value.as_i64().is_none_or(|number| number >= rule.as_i64().unwrap()),
        "maximum" => value.as_u64().is_none_or(|number| number <= rule.as_u64().unwrap()),
        "minLength" => length.is_none_or(|length| length >= rule.as_u64().unwrap()),
        "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap()),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| fulfils(rule, item))),
        "pattern" => {
            value.as_str().is_none_or(|text| regex::Regex::new(rule.as_str().unwrap()).unwrap().is_match(text))
        }
        "properties" => value.as_object().is_none_or(|entries| {
            entries.iter().all(|(name, value)| {
                let patterns = rules.get("patternProperties").and_then(Value::as_object);
                let by_pattern = || {
                    let mut all = patterns?.iter();
                    Some(all.find(|(pattern, _)| name.starts_with(pattern.trim_start_matches('^')))?.1)
                };
                let rule = rule.get(name).or_else(by_pattern).or(rules.get("additionalProperties"));
                rule.is_none_or(|rule| fulfils(rule, value))
            })
        }),
        other => panic!("the test does not know {other}"),
    })
}

/// A YAML text as JSON.
fn json_of(text: &str) -> Value {
    serde_yaml::from_str::<Value>(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn the_schema_accepts_what_is_read_without_a_word() {
    let schema = schema();
    for text in
        [ORIGINAL, &document::example(), &migrated(OLDER).replace("  a_key_of_the_future", "  # "), "monitor:\n"]
    {
        assert!(fulfils(&schema, &json_of(text)), "{text}");
    }
    assert!(!fulfils(&schema, &json_of(OLDER)), "older forms are marked");
    for key in keys::all() {
        let mut samples: Vec<String> =
            ["~", "true", "0", "1", "-1", "1.5", "text", "\"\"", "\"a\\nb\"", "[]", "[a]", "[1]", "{a: 1}"]
                .map(str::to_owned)
                .into();
        match &key.kind {
            Kind::Whole { range, .. } => {
                let ends = [range.start().saturating_sub(1), *range.start(), *range.end(), range.end() + 1];
                samples.extend(ends.map(|end| end.to_string()));
            }
            Kind::List { words, .. } | Kind::Word { words, .. } => {
                samples.extend(words.iter().flat_map(|word| [(*word).to_owned(), format!("[{word}]")]));
            }
            Kind::Path { .. } | Kind::Switch { .. } | Kind::Text { .. } => {}
        }
        for sample in samples {
            let (names, last) = key.path.rsplit_once('.').unwrap();
            let open: String = names.split('.').flat_map(|name| ["{", name, ": "]).collect();
            let text = format!("{open}{{{last}: {sample}}}{}", "}".repeat(names.split('.').count()));
            let loaded = load(&text);
            // Values that do not go together are beyond a schema.
            let is_together = loaded.as_ref().is_ok_and(|loaded| !loaded.is_in_an_older_form)
                || loaded.as_ref().is_err_and(|error| !error.contains(": found "));
            assert_eq!(fulfils(&schema, &json_of(&text)), is_together, "{text}: {:?}", loaded.err());
        }
    }
}

#[test]
fn the_schema_marks_unknown_keys_and_knows_every_unused_one() {
    let schema = schema();
    for text in ["monitor: {intervall_seconds: 5}", "montior: {}", "monitor: {paste: {settle: {x: 1}}}"] {
        assert!(!fulfils(&schema, &json_of(text)), "{text}");
    }
    for text in ["github: {whatever: {x: 1}}", "monitor: {graphql_threshold: 3, respawn_x: 1}", "notebooks: 1"] {
        assert!(fulfils(&schema, &json_of(text)), "{text}");
    }
}
