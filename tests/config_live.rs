//! The configuration followed while the watcher runs, on a clock of the test's own: when a changed file is read, what of
//! it comes into force, what is said and written down.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing stops here")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nexus_watcher::config::in_force::{self, Record};
use nexus_watcher::config::keys::{self, Key, Reload};
use nexus_watcher::config::live::{Live, News, Origins};
use nexus_watcher::config::load::{Flag, load};
use nexus_watcher::config::resolved::Settings;
use nexus_watcher::config::value::Kind;
use nexus_watcher::logic::time::{Now, Timestamp};

/// A nexus whose configuration is followed.
struct Lab {
    dir: tempfile::TempDir,
    env: BTreeMap<String, String>,
    flags: Vec<Flag>,
    live: Option<Live>,
    secs: i64,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("monitor/.state")).unwrap();
        Self { dir, env: BTreeMap::new(), flags: Vec::new(), live: None, secs: 1_000_000 }
    }

    /// Following this `nexus.yml`, which was read once more already.
    fn on(text: &str) -> Self {
        let mut lab = Self::new();
        lab.write("nexus.yml", text);
        lab.start();
        assert_eq!(lab.settle(), Vec::<String>::new());
        lab
    }

    fn start(&mut self) {
        let loaded = load(&self.env, Some(self.dir.path()), Path::new("/")).unwrap_or_else(|error| panic!("{error}"));
        let loaded = self.flags.iter().fold(loaded, |loaded, flag| loaded.with_flag(flag).unwrap());
        let origins = Origins { env: Box::new(self.env.clone()), cwd: "/".into(), flags: self.flags.clone() };
        self.live = Some(Live::following(loaded, origins, &self.now()));
    }

    fn now(&self) -> Now {
        Now::fixed(Timestamp::from_secs(self.secs))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Replaces a file as careful editors and deployment tools do.
    fn replace(&self, name: &str, text: &str) {
        self.write("draft", text);
        fs::rename(self.path("draft"), self.path(name)).unwrap();
    }

    fn live(&self) -> &Live {
        self.live.as_ref().unwrap()
    }

    fn settings(&self) -> Settings {
        Settings::clone(&self.live().get())
    }

    /// One look, two seconds after the last.
    fn look(&mut self) -> Vec<String> {
        self.secs += 2;
        let (now, mut news) = (self.now(), self.live().look(&self.now()));
        news.extend(self.live().write_record(&now));
        news.iter().map(|news| self.told(news)).collect()
    }

    /// Looks until a change had time to settle.
    fn settle(&mut self) -> Vec<String> {
        (0..3).flat_map(|_| self.look()).collect()
    }

    fn told(&self, news: &News) -> String {
        let text = match news {
            News::Fixed => "fixed".into(),
            News::Failed(error) => format!("failed: {error}"),
            News::InForce(change) => format!("{} {}", change.key.path, change.to.to_yaml()),
            News::NotWaiting(key) => format!("{} waits no more", key.path),
            News::Notice(text) | News::RecordFailed(text) => text.clone(),
            News::Unchanged => "unchanged".into(),
            News::Waiting(change) => format!("{} {} waits", change.key.path, change.to.to_yaml()),
        };
        text.replace(&self.dir.path().display().to_string(), "NEXUS")
    }

    fn record(&self) -> Record {
        let text = fs::read_to_string(self.path("monitor/.state").join(in_force::FILE)).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// A fine value that is not the default.
fn another(key: &Key) -> String {
    match &key.kind {
        Kind::List { words, .. } if !words.is_empty() => format!("[{}]", words[0]),
        Kind::List { .. } => "[a]".into(),
        Kind::Path { .. } => "/some/where".into(),
        Kind::Switch { default, .. } => (!default).to_string(),
        Kind::Text { .. } => "else".into(),
        Kind::Whole { default, range, .. } if default < range.end() => (default + 1).to_string(),
        Kind::Whole { default, .. } => (default - 1).to_string(),
        Kind::Word { default, words, .. } => (*words.iter().find(|word| *word != default).unwrap()).into(),
    }
}

/// A file that sets one key.
fn file_with(path: &str, yaml: &str) -> String {
    let names: Vec<_> = path.split('.').collect();
    let lines = names.iter().enumerate().map(|(depth, name)| format!("{}{name}:", "  ".repeat(depth)));
    format!("{} {yaml}\n", lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn a_change_is_in_force_when_the_file_has_looked_the_same_twice() {
    let mut lab = Lab::on("monitor:\n  interval_seconds: 60\n");
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 7\n");
    assert_eq!(lab.look(), Vec::<String>::new());
    assert_eq!(lab.settings().interval, Duration::from_secs(60));
    assert_eq!(lab.look(), ["monitor.interval_seconds 7"]);
    assert_eq!(lab.settings().interval, Duration::from_secs(7));
    assert_eq!(lab.settle(), Vec::<String>::new());
}

#[test]
fn a_file_that_is_being_written_is_left_alone() {
    let mut lab = Lab::on("monitor:\n  interval_seconds: 60\n");
    let whole = "monitor:\n  interval_seconds: 777\n";
    for length in 1..whole.len() {
        lab.write("nexus.yml", &whole[..length]);
        assert_eq!(lab.look(), Vec::<String>::new(), "{length}");
    }
    assert_eq!(lab.settings().interval, Duration::from_secs(60));
    lab.write("nexus.yml", whole);
    assert_eq!(lab.settle(), ["monitor.interval_seconds 777"]);
}

#[test]
fn looks_between_two_stats_cost_nothing_and_find_nothing() {
    let mut lab = Lab::on("monitor:\n");
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 7\n");
    for _ in 0..10 {
        assert_eq!(lab.live().look(&lab.now()), []);
    }
    assert_eq!(lab.settle(), ["monitor.interval_seconds 7"]);
}

#[test]
fn each_live_key_comes_into_force_and_each_other_one_waits_for_what_it_needs() {
    for &key in keys::all() {
        let mut lab = Lab::on("monitor:\n");
        let before = lab.settings();
        let value = another(key);
        lab.write("nexus.yml", &file_with(key.path, &value));
        let told = lab.settle();
        let is_restart = key.reload == Reload::Restart;
        assert_eq!(told, [format!("{} {value}{}", key.path, if is_restart { " waits" } else { "" })], "{}", key.path);
        assert_eq!(lab.settings() == before, is_restart, "{}", key.path);
        let fresh = load(&lab.env, Some(lab.dir.path()), Path::new("/")).unwrap();
        if !is_restart {
            assert_eq!(lab.settings(), fresh.settings, "{}", key.path);
        }
        let waiting: Vec<_> = lab.record().waiting.into_iter().map(|waiting| waiting.key).collect();
        assert_eq!(waiting, if is_restart { vec![key.path.to_owned()] } else { vec![] });
    }
}

#[test]
fn a_key_that_needs_a_restart_is_said_once_a_change_and_no_more_when_it_is_changed_back() {
    let mut lab = Lab::on("monitor:\n  target_window: main\n");
    lab.write("nexus.yml", "monitor:\n  target_window: other\n");
    assert_eq!(lab.settle(), ["monitor.target_window other waits"]);
    lab.write("nexus.yml", "monitor:\n  target_window: other\n  interval_seconds: 5\n");
    assert_eq!(lab.settle(), ["monitor.interval_seconds 5"]);
    assert_eq!(
        lab.record().complaints(),
        ["monitor.target_window was changed from \"main\" to \"other\", which needs a restart"]
    );
    lab.write("nexus.yml", "monitor:\n  target_window: third\n  interval_seconds: 5\n");
    assert_eq!(lab.settle(), ["monitor.target_window third waits"]);
    assert_eq!(lab.settings().target_window, "main");
    lab.write("nexus.yml", "monitor:\n  target_window: main\n  interval_seconds: 5\n");
    assert_eq!(lab.settle(), ["monitor.target_window waits no more"]);
    assert_eq!(lab.record().complaints(), Vec::<String>::new());
}

#[test]
fn a_bad_file_leaves_the_last_good_one_in_force_and_is_said_once() {
    let mut lab = Lab::on("monitor:\n  interval_seconds: 60\n");
    lab.write("nexus.yml", "monitor:\n  interval_seconds: soon\n  emit_dedup_ring_size: 5\n");
    let failed = "failed: NEXUS/nexus.yml:2:21: monitor.interval_seconds: found \"soon\", expected a whole number of \
                  seconds from 1 to 86400";
    assert_eq!(lab.settle(), [failed]);
    assert_eq!((lab.settings().interval, lab.settings().dedup_ring), (Duration::from_secs(60), 8));
    // However long it stays bad, and whatever is written around the mistake.
    lab.write("nexus.yml", "monitor:\n  interval_seconds: soon\n  emit_dedup_ring_size: 55\n");
    assert_eq!((0..200).flat_map(|_| lab.look()).collect::<Vec<_>>(), Vec::<String>::new());
    let complaint = &lab.record().complaints()[0];
    assert!(complaint.contains("what was in force before 1970-01-12T"), "{complaint}");
    assert!(complaint.contains("nexus.yml:2:21: monitor.interval_seconds: found \"soon\""), "{complaint}");
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 9\n");
    assert_eq!(lab.settle(), ["fixed", "monitor.interval_seconds 9"]);
    assert_eq!(lab.record().complaints(), Vec::<String>::new());
}

#[test]
fn values_that_do_not_go_together_with_what_is_kept_are_refused_whole() {
    let mut lab = Lab::on("monitor:\n  paste_confirm_timeout_seconds: 20\n");
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 9\n  paste: {settle_seconds: 30}\n");
    let told = lab.settle();
    assert!(told[0].starts_with("failed: monitor.paste_confirm_timeout_seconds: 20 s is shorter than"), "{told:?}");
    assert_eq!((told.len(), lab.settings().interval), (1, Duration::from_secs(60)));
}

#[test]
fn a_replaced_file_and_a_turned_link_are_changes_even_of_the_same_length_and_time() {
    let mut lab = Lab::on("monitor:\n  interval_seconds: 11\n");
    lab.replace("nexus.yml", "monitor:\n  interval_seconds: 22\n");
    assert_eq!(lab.settle(), ["monitor.interval_seconds 22"]);

    let old = fs::metadata(lab.path("nexus.yml")).unwrap().modified().unwrap();
    for (name, value) in [("one.yml", 33), ("two.yml", 44)] {
        lab.write(name, &format!("monitor:\n  interval_seconds: {value}\n"));
        fs::File::options().write(true).open(lab.path(name)).unwrap().set_modified(old).unwrap();
    }
    for (name, value) in [("one.yml", 33), ("two.yml", 44)] {
        symlink(name, lab.path("draft")).unwrap();
        fs::rename(lab.path("draft"), lab.path("nexus.yml")).unwrap();
        assert_eq!(lab.settle(), [format!("monitor.interval_seconds {value}")]);
    }
    // A folder in between that is a link, as mounted volumes are deployed.
    for (folder, value) in [("v1", 55), ("v2", 66)] {
        lab.write(&format!("{folder}/nexus.yml"), &format!("monitor:\n  interval_seconds: {value}\n"));
        symlink(folder, lab.path("draft")).unwrap();
        fs::rename(lab.path("draft"), lab.path("config")).unwrap();
        assert_eq!(lab.settle()[0], format!("monitor.interval_seconds {value}"));
    }
}

#[test]
fn a_file_written_in_place_with_an_old_time_is_a_change() {
    let mut lab = Lab::on("monitor:\n  interval_seconds: 11\n");
    let old = fs::metadata(lab.path("nexus.yml")).unwrap().modified().unwrap();
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 22\n");
    fs::File::options().write(true).open(lab.path("nexus.yml")).unwrap().set_modified(old).unwrap();
    assert_eq!(lab.settle(), ["monitor.interval_seconds 22"]);
}

#[test]
fn a_file_that_is_gone_is_no_change_to_the_defaults() {
    let mut lab = Lab::new();
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 9\n");
    lab.write("nexus.example.yml", "monitor:\n");
    lab.start();
    lab.settle();
    fs::remove_file(lab.path("nexus.yml")).unwrap();
    let next = "failed: NEXUS/nexus.yml: the file is gone (put it back; a restart would go on with ";
    assert_eq!(lab.settle(), [format!("{next}NEXUS/nexus.example.yml)")]);
    assert_eq!(lab.settings().interval, Duration::from_secs(9));
    fs::remove_file(lab.path("nexus.example.yml")).unwrap();
    assert_eq!(lab.settle(), [format!("{next}the defaults)")]);
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 9\n");
    assert_eq!(lab.settle(), ["fixed"]);
}

#[test]
fn a_file_that_cannot_be_read_leaves_the_last_good_one_in_force() {
    let mut lab = Lab::on("monitor:\n  interval_seconds: 9\n");
    fs::remove_file(lab.path("nexus.yml")).unwrap();
    symlink("nowhere", lab.path("nexus.yml")).unwrap();
    let told = lab.settle();
    assert!(told[0].starts_with("failed: NEXUS/nexus.yml: there is no such file"), "{told:?}");
    fs::remove_file(lab.path("nexus.yml")).unwrap();
    fs::create_dir(lab.path("nexus.yml")).unwrap();
    let told = lab.settle();
    assert!(told[0].starts_with("failed: NEXUS/nexus.yml: this is a folder"), "{told:?}");
    assert_eq!(lab.settings().interval, Duration::from_secs(9));
    fs::remove_dir(lab.path("nexus.yml")).unwrap();
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 9\n");
    assert_eq!(lab.settle(), ["fixed"]);
}

#[test]
fn a_file_that_comes_first_is_read_from_then_on() {
    let mut lab = Lab::new();
    lab.start();
    lab.settle();
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 9\n");
    assert_eq!(lab.settle(), ["monitor.interval_seconds 9"]);
    lab.write("config/nexus.yml", "monitor:\n  interval_seconds: 10\n");
    let told = lab.settle();
    assert_eq!(told, ["monitor.interval_seconds 10", "NEXUS/nexus.yml is not read, since NEXUS/config/nexus.yml is"]);
    assert_eq!(lab.record().file, Some(lab.path("config/nexus.yml").display().to_string()));
}

#[test]
fn the_environment_and_the_command_line_win_over_the_file_at_a_reload_too() {
    let mut lab = Lab::new();
    lab.env.insert("MONITOR_INTERVAL".into(), "5".into());
    lab.flags = vec![Flag { name: "--target", key: "monitor.target_window", value: "boss".into() }];
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 60\n  target_window: main\n");
    lab.start();
    lab.settle();
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 70\n  target_window: other\n  emit_dedup_ring_size: 5\n");
    assert_eq!(lab.settle(), ["monitor.emit_dedup_ring_size 5"]);
    let settings = lab.settings();
    assert_eq!((settings.interval, settings.target_window.as_str()), (Duration::from_secs(5), "boss"));
}

#[test]
fn what_was_written_between_the_start_and_the_first_look_is_found() {
    let mut lab = Lab::new();
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 60\n");
    lab.start();
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 61\n");
    assert_eq!(lab.settle(), ["monitor.interval_seconds 61"]);
}

#[test]
fn touching_a_file_and_changing_its_comments_is_no_news() {
    let mut lab = Lab::on("monitor:\n  interval_seconds: 60\n");
    lab.replace("nexus.yml", "# kept by nobody\nmonitor:\n  interval_seconds: 60\n");
    assert_eq!(lab.settle(), Vec::<String>::new());
}

#[tokio::test]
async fn a_reload_that_is_asked_for_reads_at_once_and_says_when_it_is_done() {
    let mut lab = Lab::on("monitor:\n  interval_seconds: 60\n");
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 7\n");
    let live = lab.live().clone();
    let mut asking = std::pin::pin!(live.reload());
    assert!(futures_pending(asking.as_mut()), "nobody has looked yet");
    live.asked().await;
    assert_eq!(lab.look(), ["monitor.interval_seconds 7"]);
    asking.await;
    let mut again = std::pin::pin!(live.reload());
    assert!(futures_pending(again.as_mut()));
    assert_eq!(lab.look(), ["unchanged"]);
    again.await;
}

/// Whether a future has not ended when it is asked once.
fn futures_pending<F: Future>(future: std::pin::Pin<&mut F>) -> bool {
    let waker = std::task::Waker::noop();
    future.poll(&mut std::task::Context::from_waker(waker)).is_pending()
}

#[test]
fn the_record_says_what_is_in_force_and_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut lab = Lab::on("monitor:\n  interval_seconds: 7\n");
    lab.write(
        "nexus.yml",
        "monitor:\n  interval_seconds: 8\n  tmux: {sessions: [a]}\nstatus_surface: {feed: x/feed}\n",
    );
    lab.settle();
    let record = lab.record();
    let mode = fs::metadata(lab.path("monitor/.state").join(in_force::FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(record.pid, std::process::id());
    assert_eq!(record.settings(&Settings::defaults(lab.dir.path())), lab.settings());
    assert_eq!(lab.settings().tmux_sessions, Vec::<String>::new());
    assert_eq!(lab.settings().status_feed, Some(lab.path("x/feed")));
}

#[test]
fn a_record_that_cannot_be_written_is_said_once_and_written_later() {
    let mut lab = Lab::on("monitor:\n  interval_seconds: 7\n");
    let place = lab.path("monitor/.state").join(in_force::FILE);
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    lab.write("nexus.yml", "monitor:\n  interval_seconds: 8\n");
    assert_eq!(lab.settle().len(), 2);
    assert_eq!(lab.settle(), Vec::<String>::new());
    fs::remove_dir(&place).unwrap();
    lab.look();
    assert_eq!(lab.record().keys["monitor.interval_seconds"], 8);
}
