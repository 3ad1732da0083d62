//! The configuration as its users meet it: files, environment, messages word for word.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing stops here")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nexus_watcher::config::document;
use nexus_watcher::config::error::{ConfigError, Place};
use nexus_watcher::config::keys::{self, Key, TEMPLATE_EXCEPTIONS};
use nexus_watcher::config::load::{Loaded, MAX_FILE_BYTES, Origin, load};
use nexus_watcher::config::resolved::{Settings, StatusSurface, ViGuard, Witnesses};
use nexus_watcher::config::value::Kind;

/// A nexus in a temporary folder, with an environment of its own.
struct Trial {
    dir: tempfile::TempDir,
    env: BTreeMap<String, String>,
}

impl Trial {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("monitor")).unwrap();
        let env = BTreeMap::from([("HOME".to_owned(), "/home/op".to_owned())]);
        Self { dir, env }
    }

    /// With this `nexus.yml`.
    fn with(text: &str) -> Self {
        Self::new().file("nexus.yml", text)
    }

    fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn var(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn load(&self) -> Result<Loaded, ConfigError> {
        load(&self.env, Some(self.dir.path()), Path::new("/"))
    }

    /// What is printed about what is wrong, with the folder's name replaced.
    fn message(&self) -> String {
        let error = self.load().expect_err("this configuration is wrong");
        error.to_string().replace(&self.dir.path().display().to_string(), "NEXUS")
    }
}

/// Checks the exact message for this `nexus.yml`.
fn check_message(text: &str, expected: &str) {
    assert_eq!(Trial::with(text).message(), expected, "for:\n{text}");
}

/// The fields of settings by name, as text.
fn fields(settings: &Settings) -> BTreeMap<String, String> {
    let text = format!("{settings:#?}");
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines().skip(1) {
        if line.starts_with("    ") && !line.starts_with("     ") && !line.trim_start().starts_with(['}', ']', ')']) {
            line.trim().split(':').next().unwrap().clone_into(&mut name);
        }
        let _infallible = writeln!(fields.entry(name.clone()).or_default(), "{line}");
    }
    fields.remove("");
    fields
}

/// Names of the fields in which two settings differ.
fn changed(one: &Settings, other: &Settings) -> Vec<String> {
    let other = fields(other);
    fields(one).into_iter().filter(|(name, text)| other.get(name) != Some(text)).map(|(name, _)| name).collect()
}

/// A fine value that is not the default: as YAML and as a variable.
fn another(key: &Key) -> (String, String) {
    match &key.kind {
        Kind::List { words, .. } if !words.is_empty() => (format!("[{}]", words[0]), words[0].into()),
        Kind::List { .. } => ("[a, b/c]".into(), "a, b/c".into()),
        Kind::Path { .. } => ("/some/where".into(), "/some/where".into()),
        Kind::Switch { default, .. } => ((!default).to_string(), (!default).to_string()),
        Kind::Text { .. } => ("else".into(), "else".into()),
        Kind::Whole { default, range, .. } => {
            let other = if default < range.end() { default + 1 } else { default - 1 };
            (other.to_string(), other.to_string())
        }
        Kind::Word { default, words, .. } => {
            let other = words.iter().find(|word| *word != default).unwrap();
            ((*other).into(), (*other).into())
        }
    }
}

/// A file that sets one key.
fn file_with(path: &str, yaml: &str) -> String {
    let names: Vec<_> = path.split('.').collect();
    let (last, sections) = names.split_last().unwrap();
    let mut text = String::new();
    for (depth, section) in sections.iter().enumerate() {
        let _infallible = writeln!(text, "{}{section}:", "  ".repeat(depth));
    }
    let _infallible = writeln!(text, "{}{last}: {yaml}", "  ".repeat(sections.len()));
    text
}

#[test]
fn every_key_of_the_file_reaches_one_field_of_its_own() {
    let defaults = Trial::with("").load().unwrap().settings;
    // Several keys may make up one field; then each changes another part of it.
    let mut reached: BTreeMap<(String, String), &str> = BTreeMap::new();
    for &key in keys::all() {
        let trial = Trial::with(&file_with(key.path, &another(key).0));
        let loaded = trial.load().unwrap_or_else(|error| panic!("{error}"));
        let mut settings = loaded.settings;
        settings.root.clone_from(&defaults.root);
        settings.state_dir.clone_from(&defaults.state_dir);
        settings.config_file.clone_from(&defaults.config_file);
        let changed = changed(&settings, &defaults);
        assert_eq!(changed.len(), 1, "{} changes {changed:?}", key.path);
        let text = fields(&settings)[&changed[0]].clone();
        assert_eq!(reached.insert((changed[0].clone(), text), key.path), None, "two keys change {changed:?}");
    }
    let mut all: Vec<String> = fields(&defaults).into_keys().collect();
    all.retain(|name| !["root", "state_dir", "config_file"].contains(&name.as_str()));
    let mut with_a_key: Vec<String> = reached.into_keys().map(|(field, _)| field).collect();
    with_a_key.dedup();
    assert_eq!(all, with_a_key, "each field has a key");
}

#[test]
fn the_environment_wins_over_the_file_and_an_empty_variable_does_not() {
    for &key in keys::all() {
        let (yaml, variable) = another(key);
        let from_file = Trial::with(&file_with(key.path, &yaml)).load().unwrap();
        let find = |loaded: &Loaded| loaded.values.iter().find(|one| one.key.path == key.path).unwrap().clone();
        assert_eq!(find(&from_file).origin, Origin::File, "{}", key.path);
        assert_ne!(find(&from_file).value, key.kind.default_value(), "{}", key.path);

        let default = key.kind.default_value().to_yaml();
        let over_file = Trial::with(&file_with(key.path, &default)).var(key.env, &variable).load().unwrap();
        assert_eq!(find(&over_file).origin, Origin::Variable(key.env), "{}", key.path);
        assert_eq!(find(&over_file).value, find(&from_file).value, "{} and {}", key.path, key.env);

        let empty = Trial::with(&file_with(key.path, &yaml)).var(key.env, "").load().unwrap();
        assert_eq!(find(&empty).value, find(&from_file).value, "{}", key.path);
    }
}

#[test]
fn a_value_outside_its_bounds_or_of_another_type_is_refused_for_every_key() {
    for &key in keys::all() {
        let mut bad = vec!["{a: 1}".to_owned(), "!tag x".to_owned(), "[[x]]".to_owned(), "\"a\\nb\"".to_owned()];
        match &key.kind {
            Kind::Whole { range, .. } => {
                bad.extend(["-1", "1.5", "soon", "true", "[1]", "1e3x", "18446744073709551616"].map(str::to_owned));
                bad.extend(["\"030\"", "\" 30\"", "30s"].map(str::to_owned));
                bad.push((range.end() + 1).to_string());
                bad.extend(range.start().checked_sub(1).map(|below| below.to_string()));
            }
            Kind::Switch { .. } => bad.extend(["enabled", "2", "[true]", "1.0"].map(str::to_owned)),
            Kind::Word { .. } => bad.extend(["other", "1", "[auto]", "AUTO"].map(str::to_owned)),
            Kind::Text { may_be_empty, .. } => {
                bad.extend(["5", "true", "[x]", "1.5"].map(str::to_owned));
                bad.extend((!may_be_empty).then(|| "\"\"".to_owned()));
            }
            Kind::Path { .. } => bad.extend(["5", "true", "[x]"].map(str::to_owned)),
            Kind::List { .. } => bad.extend(["x", "5", "[1]", "[\"\"]"].map(str::to_owned)),
        }
        for yaml in bad {
            let Err(error) = Trial::with(&file_with(key.path, &yaml)).load() else {
                panic!("{}: {yaml} was accepted", key.path)
            };
            let text = error.to_string();
            assert_eq!(error.problems.len(), 1, "{text}");
            assert!(text.contains(&format!(": {}: found ", key.path)), "{text}");
            assert!(text.contains(&key.kind.expected()), "{text}");
        }
    }
}

#[test]
fn messages_say_file_line_column_key_what_was_found_and_what_was_expected() {
    check_message(
        "monitor:\n  interval_seconds: soon\n",
        "NEXUS/nexus.yml:2:21: monitor.interval_seconds: found \"soon\", expected a whole number of seconds from 1 to 86400",
    );
    check_message(
        "monitor:\n  interval_seconds: \"0\"\n",
        "NEXUS/nexus.yml:2:21: monitor.interval_seconds: found \"0\", expected a whole number of seconds from 1 to 86400",
    );
    check_message(
        "monitor: {idle_close_hours: 24h}",
        "NEXUS/nexus.yml:1:29: monitor.idle_close_hours: found \"24h\", expected a whole number of hours from 1 to 8760 \
         (write 24, without quotes or unit)",
    );
    check_message(
        "monitor:\n  snapshot:\n    git_enabled: enabled\n",
        "NEXUS/nexus.yml:3:18: monitor.snapshot.git_enabled: found \"enabled\", expected true or false \
         (write true, without quotes)",
    );
    check_message(
        "monitor:\n  paste:\n    vi_guard: atuo\n",
        "NEXUS/nexus.yml:3:15: monitor.paste.vi_guard: found \"atuo\", expected auto, always or never (did you mean auto?)",
    );
    check_message(
        "monitor:\n  paste:\n    witnesses:\n      - hook\n      - scren\n",
        "NEXUS/nexus.yml:5:9: monitor.paste.witnesses: found \"scren\", expected a list of hook, transcript and screen \
         (did you mean screen?)",
    );
    check_message(
        "monitor:\n  paste:\n    witnesses: []\n",
        "NEXUS/nexus.yml:3:16: monitor.paste.witnesses: found an empty list, expected a list of hook, transcript and \
         screen with at least one of them",
    );
    check_message(
        "monitor:\n  tmux:\n    sessions: main\n",
        "NEXUS/nexus.yml:3:15: monitor.tmux.sessions: found \"main\", expected a list of texts (write [main])",
    );
    check_message(
        "monitor:\n  target_window: 7\n",
        "NEXUS/nexus.yml:2:18: monitor.target_window: found 7, expected one line of text that is not empty \
         (put it in quotes)",
    );
    check_message("monitor: fast\n", "NEXUS/nexus.yml:1:10: monitor: found \"fast\", expected keys below it");
    check_message("- a\n", "NEXUS/nexus.yml:1:1: found a list, expected sections such as monitor:");
}

#[test]
fn an_unknown_key_is_told_with_the_nearest_known_one() {
    let check = |path: &str, hint: &str| {
        let loaded = Trial::with(&file_with(path, "text")).load().unwrap_or_else(|error| panic!("{error}"));
        let [warning] = loaded.warnings.as_slice() else { panic!("{path}: {:?}", loaded.warnings) };
        let text = warning.to_string();
        let (_, told) = text.split_once(".yml:").unwrap();
        let depth = path.split('.').count();
        assert_eq!(told, format!("{depth}:{}: {path}: there is no such key ({hint})", depth * 2 - 1));
    };
    check("monitor.intervall_seconds", "did you mean monitor.interval_seconds?");
    check("monitor.tmux.scokets", "did you mean monitor.tmux.sockets?");
    check("monitor.heartbeat_tick_seconds", "did you mean monitor.watcher.heartbeat_tick_seconds?");
    check("monitor.watcher.heartbeat_tick", "did you mean monitor.watcher.heartbeat_tick_seconds?");
    check("monitor.watcher.on_dialogue", "did you mean monitor.watcher.on_dialog?");
    check("interval_seconds", "did you mean monitor.interval_seconds?");
    check("montior", "did you mean monitor?");
    check("monitor.colour_of_the_sky", "`ng config example` has every key");
    let trial = Trial::with("monitor.interval_seconds: 5\nmonitor:\n  idle_close_hours: 5\n");
    let loaded = trial.load().unwrap();
    assert!(
        loaded.warnings[0].to_string().ends_with(
            "nexus.yml:1:1: monitor.interval_seconds: there is no such key \
             (write each section on a line of its own, with the next one indented below it)"
        ),
        "{:?}",
        loaded.warnings
    );
    // What is around it counts.
    assert_eq!(loaded.settings.idle_close, Duration::from_secs(5 * 3600));
}

#[test]
fn a_key_that_is_given_twice_is_an_error_at_the_second() {
    check_message(
        "monitor:\n  interval_seconds: 5\n  target_window: a\n  interval_seconds: 6\nmonitor:\n  target_window: b\n",
        "NEXUS/nexus.yml:4:3: monitor.interval_seconds: given twice, first on line 2 (keep one)\n\
         NEXUS/nexus.yml:5:1: monitor: given twice, first on line 1 (keep one)",
    );
    check_message(
        "github:\n  repo: a/b\n  repo: a/c\n",
        "NEXUS/nexus.yml:3:3: github.repo: given twice, first on line 2 (keep one)",
    );
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_file_and_the_environment_last() {
    let trial = Trial::with("monitor:\n  interval_seconds: 0\n\nstatus_surface:\n  kind: 1\n")
        .var("MONITOR_IDLE_CLOSE_HOURS", "never")
        .var("MONITOR_SNAPSHOT_GIT_ENABLED", "yes");
    assert_eq!(
        trial.message(),
        "NEXUS/nexus.yml:2:21: monitor.interval_seconds: found 0, expected a whole number of seconds from 1 to 86400\n\
         NEXUS/nexus.yml:5:9: status_surface.kind: found 1, expected one line of text that is not empty \
         (put it in quotes)\n\
         environment variable MONITOR_IDLE_CLOSE_HOURS: monitor.idle_close_hours: found \"never\", expected a whole \
         number of hours from 1 to 8760\n\
         environment variable MONITOR_SNAPSHOT_GIT_ENABLED: monitor.snapshot.git_enabled: found \"yes\", expected true \
         or false (did you mean true?)"
    );
}

#[test]
fn text_that_is_not_yaml_is_told_in_words() {
    check_message(
        "monitor:\n\tinterval_seconds: 5\n  target_window: a\n",
        "NEXUS/nexus.yml:2:1: this is not valid YAML: found character that cannot start any token, while scanning for \
         the next token (use spaces to indent, YAML allows no tabs)",
    );
    check_message(
        "monitor:\n  interval_seconds: 5\n target_window: a\n",
        "NEXUS/nexus.yml:3:2: this is not valid YAML: did not find expected key, while parsing a block mapping \
         (compare the indentation of this line with the lines above)",
    );
    check_message(
        "monitor:\n  target_window: \"a\n",
        "NEXUS/nexus.yml:3:1: this is not valid YAML: found unexpected end of stream, while scanning a quoted scalar at \
         line 2 column 18 (a quote or bracket is not closed)",
    );
    check_message(
        "monitor:\n---\nmonitor:\n",
        "NEXUS/nexus.yml: this is not valid YAML: there is more than one document in it (a line of --- begins another)",
    );
    check_message("monitor: *nobody\n", "NEXUS/nexus.yml:1:10: this is not valid YAML: unknown anchor");
}

#[test]
fn what_can_not_be_read_is_told_with_what_to_do() {
    let check = |trial: Trial, expected: &str| assert_eq!(trial.message(), expected);
    let folder = Trial::new();
    fs::create_dir(folder.path("nexus.yml")).unwrap();
    check(folder, "NEXUS/nexus.yml: this is a folder, not a file (give the file in it)");
    check(
        Trial::new().file("nexus.yml", b"monitor:\n  target_window: \xff\n"),
        "NEXUS/nexus.yml: the file is not UTF-8 (it must be UTF-8 text of at most 1 MiB)",
    );
    let long = "#".repeat(usize::try_from(MAX_FILE_BYTES).unwrap() + 1);
    check(
        Trial::with(&long),
        "NEXUS/nexus.yml: the file is longer than 1048576 bytes (it must be UTF-8 text of at most 1 MiB)",
    );
    let dangling = Trial::with("");
    fs::create_dir(dangling.path("config")).unwrap();
    std::os::unix::fs::symlink("nowhere", dangling.path("config/nexus.yml")).unwrap();
    check(dangling, "NEXUS/config/nexus.yml: there is no such file (check its name, and where a link leads)");
    let pipe = Trial::new();
    let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, pipe.path("nexus.yml"), fifo, mode, 0).unwrap();
    check(pipe, "NEXUS/nexus.yml: this is a pipe or a socket, not a file (give a file)");
    let missing = Trial::with("").var("NEXUS_CONFIG", "/nowhere/nexus.yml");
    check(
        missing,
        "environment variable NEXUS_CONFIG: found \"/nowhere/nexus.yml\", which does not exist \
         (set it to the configuration file, or unset it)",
    );
}

#[test]
fn a_file_of_a_megabyte_is_read_and_one_full_of_problems_costs_a_bounded_number_of_readings() {
    let size = usize::try_from(MAX_FILE_BYTES).unwrap() - 64;
    let comments = "# a comment\n".repeat(size / 12) + "monitor:\n  interval_seconds: 7\n";
    let mut unknown = String::new();
    while unknown.len() < size {
        let _infallible = writeln!(unknown, "key_{}: 1", unknown.len());
    }
    let repeated = "a: 1\n".repeat(size / 5);
    let mut bombs = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, before) in ('b'..='j').zip('a'..='i') {
        let _infallible = writeln!(bombs, "{name}: &{name} [{}]", vec![format!("*{before}"); 9].join(", "));
    }
    let deep = "[".repeat(20_000);
    assert_eq!(Trial::with(&comments).load().unwrap().settings.interval, Duration::from_secs(7));
    let unknown = Trial::with(&unknown).load().unwrap().warnings;
    assert!(unknown.len() > 1000);
    let positions = unknown.iter().filter(|one| matches!(one.place, Place::File { at: Some(_), .. })).count();
    assert!(positions <= 2, "a position is a reading of the whole text");
    for (text, told) in
        [(repeated.as_str(), "\n... and "), (&bombs, "repetition limit exceeded"), (&deep, "recursion limit exceeded")]
    {
        let message = Trial::with(text).message();
        assert!(message.contains(told), "{message}");
        assert!(message.lines().count() <= 21, "{message}");
        // A position is a reading of the whole text.
        let positions = message.lines().filter(|line| line.starts_with("NEXUS/nexus.yml:1")).count();
        assert!(positions <= 2, "{message}");
    }
}

#[test]
fn a_file_without_content_and_keys_without_value_mean_the_defaults() {
    for text in [
        "",
        "\n",
        "# nothing\n",
        "---\n",
        "{}",
        "monitor:\n",
        "monitor: ~\n",
        "monitor:\n  interval_seconds:\n",
        "\u{feff}monitor:\n",
    ] {
        let trial = Trial::with(text);
        let loaded = trial.load().unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let mut expected = Settings::defaults(trial.dir.path());
        expected.config_file = Some(trial.path("nexus.yml"));
        assert_eq!(loaded.settings, expected, "{text:?}");
    }
}

#[test]
fn anchors_and_aliases_are_followed() {
    let loaded = Trial::with("monitor:\n  idle_threshold_seconds: &n 77\n  interval_seconds: *n\n").load().unwrap();
    assert_eq!(loaded.settings.interval, Duration::from_secs(77));
}

#[test]
fn values_become_what_is_acted_on() {
    let text = "monitor:\n  idle_close_hours: 2\n  diff_retention_days: 3\n  paste:\n    witnesses: [screen, hook]\n    \
                vi_guard: never\nstatus_surface:\n  kind: external\n  url_file: ~/url\n  feed: reports/feed\n";
    let trial = Trial::with(text);
    let settings = trial.load().unwrap().settings;
    assert_eq!(settings.idle_close, Duration::from_secs(7200));
    assert_eq!(settings.archive_keep, Duration::from_secs(259_200));
    assert_eq!(settings.witnesses, Witnesses { hook: true, transcript: false, screen: true });
    assert_eq!(settings.vi_guard, ViGuard::Never);
    assert_eq!(settings.status_surface, StatusSurface::External);
    assert_eq!(settings.status_url_file, Some("/home/op/url".into()));
    assert_eq!(settings.status_feed, Some(trial.path("reports/feed")));
    let unknown = Trial::with("status_surface: {kind: kiosk}").load().unwrap().settings.status_surface;
    assert_eq!(unknown, StatusSurface::Unknown("kiosk".into()));
    let rooted = Trial::with("status_surface: {feed: $NEXUS_ROOT/feed}");
    assert_eq!(rooted.load().unwrap().settings.status_feed, Some(rooted.path("feed")));
}

#[test]
fn values_that_do_not_go_together_are_refused() {
    check_message(
        "monitor:\n  paste: {settle_seconds: 30}\n  paste_confirm_timeout_seconds: 10\n",
        "NEXUS/nexus.yml:3:34: monitor.paste_confirm_timeout_seconds: 10 s is shorter than \
         monitor.paste.settle_seconds, 30 s",
    );
    check_message(
        "monitor: {watcher: {heartbeat_tick_seconds: 300}, instance_heartbeat_staleness_seconds: 300}\n",
        "NEXUS/nexus.yml:1:89: monitor.instance_heartbeat_staleness_seconds: 300 s is less than twice \
         monitor.watcher.heartbeat_tick_seconds, 300 s, so a healthy watcher would count as down",
    );
    check_message(
        "monitor: {target_window: services}\n",
        "monitor.services_window: \"services\" is the target window as well (monitor.target_window)",
    );
}

#[test]
fn one_file_is_read_and_files_are_never_merged() {
    let all = ["config/nexus.yml", "nexus.yml", "monitor/nexus.yml", "config/nexus.example.yml", "nexus.example.yml"];
    for (from, expected) in all.iter().enumerate() {
        let mut trial = Trial::new();
        for (number, name) in all.iter().enumerate().skip(from) {
            // Each file sets a key of its own as well, which must not show when another file is read.
            let text =
                format!("monitor:\n  interval_seconds: {}\n  emit_dedup_ring_size: {}\n", number + 1, number + 20);
            trial = trial.file(name, text);
        }
        let settings = trial.load().unwrap().settings;
        assert_eq!(settings.config_file, Some(trial.path(expected)));
        assert_eq!(settings.interval, Duration::from_secs(from as u64 + 1));
    }
    let merged = Trial::with("monitor:\n  interval_seconds: 9\n")
        .file("nexus.example.yml", "monitor:\n  emit_dedup_ring_size: 99\n");
    assert_eq!(merged.load().unwrap().settings.dedup_ring, 8);
    let named = Trial::with("monitor: {interval_seconds: 9}").file("other.yml", "monitor: {interval_seconds: 11}");
    let other = named.path("other.yml").display().to_string();
    assert_eq!(named.var("NEXUS_CONFIG", &other).load().unwrap().settings.interval, Duration::from_secs(11));
}

#[test]
fn the_root_is_the_flag_or_the_variable_or_the_nearest_nexus_upwards() {
    let outer = Trial::with("");
    let inner = outer.path("projects/inner");
    fs::create_dir_all(inner.join("monitor/watcher")).unwrap();
    fs::create_dir_all(inner.join("config")).unwrap();
    fs::write(inner.join("config/nexus.yml"), "").unwrap();
    let root = |flag: Option<&Path>, env: &BTreeMap<String, String>, cwd: &Path| {
        load(env, flag, cwd).map(|loaded| loaded.settings.root).map_err(|error| error.to_string())
    };
    let nothing = BTreeMap::new();
    let variable = BTreeMap::from([("NEXUS_ROOT".to_owned(), outer.dir.path().display().to_string())]);
    assert_eq!(root(None, &nothing, &inner.join("monitor/watcher")), Ok(inner.clone()));
    assert_eq!(root(None, &nothing, &outer.path("projects")), Ok(outer.dir.path().to_owned()));
    assert_eq!(root(None, &variable, &inner), Ok(outer.dir.path().to_owned()));
    assert_eq!(root(Some(&inner), &variable, Path::new("/")), Ok(inner.clone()));
    assert_eq!(root(Some(Path::new("inner")), &nothing, &outer.path("projects")), Ok(inner));

    let empty = tempfile::tempdir().unwrap();
    assert_eq!(
        root(None, &nothing, empty.path()),
        Err(format!(
            "no nexus found in {} or any folder above it (go to its folder, give --root DIR, or set NEXUS_ROOT)",
            empty.path().display()
        ))
    );
    assert_eq!(
        root(Some(Path::new("/nowhere")), &variable, Path::new("/")),
        Err("--root /nowhere: there is no such folder (give the folder of the nexus)".into())
    );
    let wrong = BTreeMap::from([("NEXUS_ROOT".to_owned(), "/nowhere".to_owned())]);
    assert_eq!(
        root(None, &wrong, Path::new("/")),
        Err("environment variable NEXUS_ROOT: found \"/nowhere\", which is no folder \
             (set it to the folder of the nexus, or unset it)"
            .into())
    );
}

#[test]
fn the_state_directory_is_in_the_root_unless_the_variable_names_another() {
    let trial = Trial::with("");
    assert_eq!(trial.load().unwrap().settings.state_dir, trial.path("monitor/.state"));
    assert_eq!(trial.var("NEXUS_STATE_DIR", "state").load().unwrap().settings.state_dir, Path::new("/state"));
}

#[test]
fn the_socket_variable_wins_over_the_file() {
    let trial = Trial::with("monitor: {tmux: {sockets: [main]}}").var("NEXUS_TMUX_SOCKET", "/tmp/tmux-0/lab");
    assert_eq!(trial.load().unwrap().settings.tmux_sockets, ["/tmp/tmux-0/lab"]);
}

#[test]
fn a_file_of_the_original_tools_loads_and_says_what_is_not_used() {
    let trial = Trial::with(include_str!("configs/original.yml"));
    let loaded = trial.load().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded.settings.interval, Duration::from_secs(90));
    assert_eq!(loaded.settings.idle_close, Duration::from_secs(48 * 3600));
    assert_eq!(loaded.settings.status_surface, StatusSurface::External);
    let notices = loaded.notices.join("\n");
    for part in [
        "nexus.root (\"~/nexus\") is not used: the root is ",
        "GitHub is off: the github block is known, but not used by this version",
        "known, but not used by this version: ",
        "monitor.cockpit_window",
        "known, but ignored, its part is left out: lit.s2_api_key, lit.library_path, monitor.remote.bind",
    ] {
        assert!(notices.contains(part), "{part} in:\n{notices}");
    }
}

#[test]
fn a_github_block_that_is_missing_or_has_placeholders_is_told_once() {
    let check = |text: &str, expected: &str| {
        let notices = Trial::with(text).load().unwrap().notices;
        assert_eq!(notices, [expected], "{text}");
    };
    check("monitor:\n", "GitHub is off: there is no github block");
    check("github:\n", "GitHub is off: there is no github block");
    check("github: {user_login: me, repo: owner/name}", "GitHub is off: github.repo still has its placeholder");
    check("github: {user_login: <your login>}", "GitHub is off: github.user_login still has its placeholder");
    check("github: {bot_pem_path: /path/to/key.pem}", "GitHub is off: github.bot_pem_path still has its placeholder");
}

#[test]
fn a_second_file_that_is_not_read_is_told() {
    let trial = Trial::with("").file("config/nexus.yml", "");
    let expected = format!(
        "{} is not read, since {} is",
        trial.path("nexus.yml").display(),
        trial.path("config/nexus.yml").display()
    );
    assert!(trial.load().unwrap().notices.contains(&expected));
    let none = Trial::new().load().unwrap();
    assert_eq!(none.settings.config_file, None);
    assert!(none.notices[0].starts_with("there is no configuration file in "), "{:?}", none.notices);
}

#[test]
fn the_example_and_the_reference_are_what_the_table_makes() {
    let check = |file: &str, made: String, verb: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(written == made, "{file} is not what the key table makes; run: ng config {verb} > {file}");
    };
    let schema = serde_json::to_string_pretty(&nexus_watcher::config::schema::schema()).unwrap() + "\n";
    check("nexus.schema.json", schema, "schema");
    check("nexus.example.yml", document::example(), "example");
    check("docs/configuration.md", document::reference(), "doc");
}

#[test]
fn several_sockets_are_watched_and_none_twice() {
    let loaded = Trial::with("monitor:\n  tmux:\n    sockets: [one, two]\n").load().unwrap();
    assert_eq!(loaded.settings.tmux_sockets, ["one", "two"]);
    assert!(loaded.notices.iter().all(|notice| !notice.contains("tmux")), "{:?}", loaded.notices);
    let error = Trial::with("monitor:\n  tmux:\n    sockets: [one, two, one]\n").load().unwrap_err().to_string();
    assert!(error.contains("monitor.tmux.sockets") && error.contains("\"one\" is listed twice"), "{error}");
}

#[test]
fn the_example_says_the_defaults_except_where_it_is_listed() {
    let trial = Trial::new().file("nexus.example.yml", document::example());
    let loaded = trial.load().unwrap_or_else(|error| panic!("{error}"));
    let mut expected = Settings::defaults(trial.dir.path());
    expected.config_file = Some(trial.path("nexus.example.yml"));
    assert_eq!(loaded.settings, expected);
    assert_eq!(loaded.notices, ["GitHub is off: there is no github block"]);

    let example: serde_yaml::Value = serde_yaml::from_str(&document::example()).unwrap();
    let at = |path: &str| path.split('.').fold(&example, |node, name| &node[name]).clone();
    for &key in keys::all() {
        let expected: serde_yaml::Value = serde_yaml::from_str(&key.kind.default_value().to_yaml()).unwrap();
        assert_eq!(at(key.path), expected, "{}", key.path);
    }
    let exceptions: Vec<_> = TEMPLATE_EXCEPTIONS.iter().map(|one| (one.path, one.default, one.template)).collect();
    assert_eq!(
        exceptions,
        [("monitor.cc_auto_update.enabled", false, true), ("monitor.requests.enabled", true, false)]
    );
    for (path, default, template) in exceptions {
        assert_ne!(default, template);
        assert_eq!(at(path), serde_yaml::Value::Bool(template), "{path}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic_and_every_position_is_in_the_text(text in config_text()) {
        if let Err(error) = Trial::with(&text).load() {
            for problem in &error.problems {
                if let Place::File { at: Some(at), .. } = &problem.place {
                    proptest::prop_assert!(at.line >= 1 && at.column >= 1, "{problem}");
                    proptest::prop_assert!(at.line <= text.lines().count() + 1, "{problem} in {text:?}");
                }
            }
        }
    }
}

/// Texts that look like a configuration, more or less.
fn config_text() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::{Strategy as _, any, prop_oneof};
    let words = prop_oneof![
        proptest::sample::select(vec![
            "monitor:",
            "interval_seconds:",
            "paste:",
            "witnesses:",
            "status_surface:",
            "github:",
            "\n",
            "\n  ",
            "\n    ",
            " ",
            "- ",
            "[",
            "]",
            "{",
            "}",
            ",",
            "&a ",
            "*a",
            "!t ",
            "|",
            ">",
            "\"",
            "'",
            "60",
            "-1",
            "yes",
            "~",
            "\t",
            "#",
            "---",
            "<<: ",
            "? ",
            "\u{feff}",
            "é",
            "hook",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    proptest::collection::vec(words, 0..24).prop_map(|words| words.concat())
}

/// Runs `ng` in a nexus with an environment of its own: exit code, standard output, standard error.
#[expect(clippy::disallowed_methods, reason = "the program itself is under test")]
fn ng(trial: &Trial, args: &[&str]) -> (i32, String, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_ng"))
        .args(args)
        .current_dir(trial.dir.path())
        .env_clear()
        .envs(&trial.env)
        .output()
        .unwrap();
    // The kernel names the current directory without links, as the temporary folder may not be.
    let real = trial.dir.path().canonicalize().unwrap().display().to_string();
    let text = |bytes: Vec<u8>| {
        String::from_utf8(bytes)
            .unwrap()
            .replace(&real, "NEXUS")
            .replace(&trial.dir.path().display().to_string(), "NEXUS")
    };
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn ng_config_check_prints_problems_on_standard_error_and_fails() {
    let fine = Trial::with("monitor:\n  interval_seconds: 5\n");
    let printed = "NEXUS/nexus.yml: fine, 1 of 34 keys set\n".replace("34", &keys::all().len().to_string());
    assert_eq!(ng(&fine, &["config", "check"]), (0, printed, "note: GitHub is off: there is no github block\n".into()));
    let bad = Trial::with("monitor:\n  interval_seconds: 0\n");
    let problem = "NEXUS/nexus.yml:2:21: monitor.interval_seconds: found 0, expected a whole number of seconds from 1 \
                   to 86400\n";
    assert_eq!(ng(&bad, &["config", "check"]), (1, String::new(), problem.into()));
    assert_eq!(ng(&bad, &["config", "check", "nexus.yml"]), (1, String::new(), problem.into()));
    let (code, json, _) = ng(&bad, &["config", "check", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(code, 1);
    assert_eq!(
        json,
        serde_json::json!({"ok": false, "file": "NEXUS/nexus.yml", "notices": [], "warnings": [], "problems": [{
            "file": "NEXUS/nexus.yml", "line": 2, "column": 21, "variable": null, "key": "monitor.interval_seconds",
            "problem": "found 0, expected a whole number of seconds from 1 to 86400", "hint": null,
        }]})
    );
    let unknown = Trial::with("monitor:\n  intervall_seconds: 5\ngithub: {repo: a/b}\n");
    let warning = "warning: NEXUS/nexus.yml:2:3: monitor.intervall_seconds: there is no such key \
                   (did you mean monitor.interval_seconds?)\n";
    let (code, _, told) = ng(&unknown, &["config", "check"]);
    assert!(code == 0 && told.starts_with(warning), "{told}");
    assert_eq!(ng(&unknown, &["config", "check", "--strict"]).0, 1);
    let (_, json, _) = ng(&unknown, &["config", "check", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["ok"], &json["warnings"][0]["line"]), (&true.into(), &2.into()));
}

#[test]
fn ng_config_check_of_a_named_file_does_not_mix_in_the_environment() {
    let trial = Trial::with("").file("other.yml", "monitor: {interval_seconds: 5}").var("MONITOR_INTERVAL", "soon");
    assert_eq!(ng(&trial, &["config", "check", "other.yml"]).0, 0);
    assert_eq!(ng(&trial, &["config", "check"]).0, 1);
}

#[test]
fn ng_config_get_prints_a_value_alone() {
    let trial = Trial::with("monitor: {tmux: {sessions: [a, b]}}").var("MONITOR_INTERVAL", "7");
    let get = |key: &str| ng(&trial, &["config", "get", key]);
    assert_eq!(get("monitor.interval_seconds"), (0, "7\n".into(), String::new()));
    assert_eq!(get("monitor.target_window"), (0, "orchestrator\n".into(), String::new()));
    assert_eq!(get("monitor.tmux.sessions"), (0, "a\nb\n".into(), String::new()));
    assert_eq!(get("status_surface.feed"), (0, "\n".into(), String::new()));
    for block in ["monitor", "monitor.tmux"] {
        let (code, said, complaint) = get(block);
        assert!(code == 2 && said.is_empty() && complaint.contains("is a block of keys"), "{complaint}");
    }
    assert_eq!(
        get("monitor.tmux.session"),
        (
            2,
            String::new(),
            "ng config: there is no key \"monitor.tmux.session\" (did you mean monitor.tmux.sessions?)\n".into()
        )
    );
    assert_eq!(
        get("github.repo"),
        (
            1,
            String::new(),
            "ng config: github.repo is known, but not used by this version, so it has no value\n".into()
        )
    );
    let (_, json, _) = ng(&trial, &["config", "get", "monitor.interval_seconds", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "key": "monitor.interval_seconds", "value": 7, "origin": "MONITOR_INTERVAL", "reload": "live",
            "running": null, "in_force": null,
        })
    );
}

#[test]
fn ng_config_show_says_where_each_value_came_from() {
    let trial = Trial::with("# c\nmonitor:\n  idle_close_hours: 9\n").var("MONITOR_INTERVAL", "7");
    let (code, shown, _) = ng(&trial, &["config", "show"]);
    assert_eq!(code, 0);
    let row = |key: &str| {
        let line = shown.lines().find(|line| line.starts_with(&format!("{key} "))).unwrap();
        line[key.len()..].trim_start().to_owned()
    };
    assert_eq!(shown.lines().count(), keys::all().len() + 3);
    assert_eq!(row("running watcher"), "none");
    assert_eq!(row("root"), "NEXUS");
    assert_eq!(row("state directory"), "NEXUS/monitor/.state");
    assert_eq!(row("monitor.interval_seconds"), "7  (MONITOR_INTERVAL; live)");
    assert_eq!(row("monitor.idle_close_hours"), "9  (NEXUS/nexus.yml:3; live)");
    assert_eq!(row("monitor.target_window"), "orchestrator  (default; restart)");
    assert_eq!(row("status_surface.feed"), "(unset)  (default; live)");
}

#[test]
fn a_variable_that_is_not_text_does_not_pass_for_unset() {
    use std::os::unix::ffi::OsStrExt as _;
    let trial = Trial::with("");
    #[expect(clippy::disallowed_methods, reason = "the program itself is under test")]
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_ng"))
        .args(["config", "check"])
        .current_dir(trial.dir.path())
        .env_clear()
        .env("NEXUS_ROOT", std::ffi::OsStr::from_bytes(b"/tmp/\xff"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "environment variable NEXUS_ROOT: the value is not UTF-8 (set it again, or unset it)\n"
    );
}

#[test]
fn ng_config_without_a_word_it_knows_is_a_usage_error() {
    let trial = Trial::with("");
    for args in [&["config"][..], &["config", "chek"], &["config", "get"]] {
        assert_eq!(ng(&trial, args).0, 2, "{args:?}");
    }
}
