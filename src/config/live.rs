//! The settings in force, and how they follow their file while the watcher runs.
//!
//! Whoever acts on a setting asks [`Live::get`] when he needs it, and keeps no copy. The owner of the loop calls
//! [`Live::look`] each time round; it reads the file when it was changed or when a reload was asked for, and returns
//! what is to be said. A file that is wrong changes nothing: what was in force stays in force.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

use super::error::{ConfigError, Place, Problem};
use super::in_force::{self, Record, Waiting};
use super::keys::{Key, Reload as Class};
use super::load::{self, Change, Flag, Loaded};
use super::loaded::{Origin, Reload};
use super::resolved::Settings;
use super::stamp::Stamp;
use crate::logic::time::{Now, Timestamp};
use crate::sys::env::Env;
use crate::sys::files::StateDir;

/// How often the file is looked at. A change is read when it has looked the same twice, so that a file that is being
/// written is left alone until it is whole.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How often a file that can't be used is read again although it looks the same, since the reason may be elsewhere.
const RETRY_EVERY: Duration = Duration::from_secs(60);

/// Most unknown keys that are said of one file.
const MAX_WARNINGS: usize = 20;

/// The settings in force. Clones share them.
#[derive(Clone)]
pub struct Live(Rc<Shared>);

/// What the clones share.
struct Shared {
    settings: RefCell<Rc<Settings>>,
    /// Where they come from; `None` if they never change.
    follower: RefCell<Option<Follower>>,
    asked: Cell<bool>,
    wake: Notify,
    done: Notify,
}

/// Something that a reload found and that is worth saying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The file is fine again.
    Fixed,
    /// The file can't be used, and what was in force stays in force.
    Failed(ConfigError),
    /// This value is in force now.
    InForce(Change),
    /// The key has its running value again, so no restart is needed for it.
    NotWaiting(&'static Key),
    /// Something that the operator should know once.
    Notice(String),
    /// The record of what is in force can't be written.
    RecordFailed(String),
    /// A reload was asked for, and nothing differs.
    Unchanged,
    /// This value comes into force with a restart.
    Waiting(Change),
}

/// What of the file is not in force, in a line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Why it can't be used.
    pub failure: Option<String>,
    /// What needs a restart.
    pub waiting: Option<String>,
}

/// Where the settings come from, for a watcher that follows its file.
pub struct Origins {
    /// The environment; its values win over the file at every reload.
    pub env: Box<dyn Env>,
    /// What relative names refer to.
    pub cwd: PathBuf,
    /// What the command line gives.
    pub flags: Vec<Flag>,
}

impl std::fmt::Debug for Origins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment may hold secrets.
        f.debug_struct("Origins").field("flags", &self.flags).finish_non_exhaustive()
    }
}

/// The file as it is followed.
struct Follower {
    origins: Origins,
    state: StateDir,
    /// What is in force.
    running: Loaded,
    /// The file that was last read, whatever came of it.
    read: Option<Stamp>,
    /// A changed file that was seen once.
    settling: Option<Stamp>,
    next_look: Duration,
    next_retry: Duration,
    started: Timestamp,
    /// Keys that wait for a restart.
    waiting: Vec<Change>,
    /// When the file was last read, and what was wrong with it.
    at: Timestamp,
    failure: Option<ConfigError>,
    /// Whether the record on disk lacks something.
    record_is_old: bool,
    record_failure: Option<String>,
}

impl From<Settings> for Live {
    /// Settings that never change.
    fn from(settings: Settings) -> Self {
        Self::new(settings, None)
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Live").field(&self.0.settings).finish()
    }
}

impl Live {
    fn new(settings: Settings, follower: Option<Follower>) -> Self {
        Self(Rc::new(Shared {
            settings: RefCell::new(Rc::new(settings)),
            follower: RefCell::new(follower),
            asked: Cell::new(false),
            wake: Notify::new(),
            done: Notify::new(),
        }))
    }

    /// Settings that follow their file from now on.
    pub fn following(loaded: Loaded, origins: Origins, now: &Now) -> Self {
        let settings = loaded.settings.clone();
        let follower = Follower {
            origins,
            state: StateDir::new(&settings.state_dir),
            running: loaded,
            // What was read at the start may have been changed since, so the file is read once more.
            read: None,
            settling: None,
            next_look: Duration::ZERO,
            next_retry: Duration::ZERO,
            started: now.at,
            waiting: Vec::new(),
            at: now.at,
            failure: None,
            record_is_old: true,
            record_failure: None,
        };
        Self::new(settings, Some(follower))
    }

    /// The settings that are in force now. Ask again for each use; a copy goes stale.
    pub fn get(&self) -> Rc<Settings> {
        Rc::clone(&self.0.settings.borrow())
    }

    /// Asks for a reload, and waits until the loop has done it, whatever came of it.
    pub async fn reload(&self) {
        self.0.asked.set(true);
        self.0.wake.notify_one();
        self.0.done.notified().await;
    }

    /// What stands in the way of the file, as it is now: why it can't be used, and what of it needs a restart.
    pub fn standing(&self) -> Standing {
        let follower = self.0.follower.borrow();
        let Some(follower) = follower.as_ref() else { return Standing::default() };
        let told = |change: &Change| {
            let (from, to) = (change.from.to_json(), change.to.to_json());
            format!("{} was changed from {from} to {to}", change.key.path)
        };
        let waiting: Vec<_> = follower.waiting.iter().map(told).collect();
        Standing {
            failure: follower.failure.as_ref().map(|error| error.to_string().replace('\n', "; ")),
            waiting: (!waiting.is_empty()).then(|| waiting.join("; ")),
        }
    }

    /// Completes when a reload is asked for.
    pub async fn asked(&self) {
        self.0.wake.notified().await;
    }

    /// Reads the file if it is time to, and puts in force what it says.
    pub fn look(&self, now: &Now) -> Vec<News> {
        let mut news = Vec::new();
        let asked = self.0.asked.take();
        if let Some(follower) = self.0.follower.borrow_mut().as_mut()
            && follower.wants_reading(now, asked)
        {
            follower.read(now, &mut news);
            *self.0.settings.borrow_mut() = Rc::new(follower.running.settings.clone());
        }
        if asked {
            if news.is_empty() {
                news.push(News::Unchanged);
            }
            self.0.done.notify_one();
        }
        news
    }

    /// Writes down what is in force, if that is not written yet. For the watcher that holds the instance lock only: one
    /// that observes says nothing of the other's settings.
    pub fn write_record(&self, now: &Now) -> Option<News> {
        self.0.follower.borrow_mut().as_mut()?.write_record(now)
    }
}

impl Follower {
    /// Whether the file is to be read now. Looks at it no more often than [`LOOK_EVERY`], unless asked to read.
    fn wants_reading(&mut self, now: &Now, asked: bool) -> bool {
        if asked {
            return true;
        }
        if now.uptime < self.next_look {
            return false;
        }
        self.next_look = now.uptime + LOOK_EVERY;
        let stamp = self.stamp();
        if self.read.as_ref() == Some(&stamp) {
            self.settling = None;
            return self.failure.is_some() && now.uptime >= self.next_retry;
        }
        let is_settled = self.settling.as_ref() == Some(&stamp);
        self.settling = Some(stamp);
        is_settled
    }

    fn stamp(&self) -> Stamp {
        let file = self.find();
        Stamp::of(file.as_ref().map(Option::as_deref).map_err(ToString::to_string))
    }

    fn find(&self) -> Result<Option<PathBuf>, ConfigError> {
        load::find_file(self.origins.env.as_ref(), &self.running.settings.root, &self.origins.cwd)
    }

    /// Reads the file and takes over what may come into force.
    fn read(&mut self, now: &Now, news: &mut Vec<News>) {
        // Taken before the file is read: what is written meanwhile is a change.
        self.read = Some(self.stamp());
        self.settling = None;
        self.next_retry = now.uptime + RETRY_EVERY;
        match self.load() {
            Ok(reload) => self.take(reload, news),
            // What was said of it still holds.
            Err(error) if self.failure.as_ref() == Some(&error) => return,
            Err(error) => {
                news.push(News::Failed(error.clone()));
                self.failure = Some(error);
            }
        }
        self.at = now.at;
        self.record_is_old = true;
    }

    /// What the file comes to.
    ///
    /// Errors: as at the start, and where the file that is in force has gone or is empty by now: what would be read
    /// instead of it, or the defaults, is not what anybody asked for. An editor without space leaves an empty file.
    fn load(&self) -> Result<Reload, ConfigError> {
        let settings = &self.running.settings;
        let found = self.find()?;
        if let Some(gone) = settings.config_file.as_ref().filter(|file| load::is_missing(file))
            && load::rank(&settings.root, found.as_deref()) > load::rank(&settings.root, Some(gone))
        {
            let next = found.map_or_else(|| "the defaults".to_owned(), |path| path.display().to_string());
            return Err(ConfigError::from(Problem {
                place: Place::File { path: gone.clone(), at: None },
                key: None,
                what: "the file is gone".into(),
                hint: Some(format!("put it back; a restart would go on with {next}")),
            }));
        }
        let mut loaded =
            load::load_file(self.origins.env.as_ref(), &settings.root, found.as_deref(), &self.origins.cwd)?;
        let is_set = |loaded: &Loaded| loaded.values.iter().any(|setting| setting.origin == Origin::File);
        if let Some(path) = found.filter(|_| loaded.is_blank() && is_set(&self.running)) {
            return Err(ConfigError::from(Problem {
                place: Place::File { path, at: None },
                key: None,
                what: "the file is empty".into(),
                hint: Some("write it again; a restart would go on with the defaults".into()),
            }));
        }
        for flag in &self.origins.flags {
            loaded = loaded.with_flag(flag)?;
        }
        loaded.in_place_of(&self.running)
    }

    /// Puts a configuration in force.
    fn take(&mut self, reload: Reload, news: &mut Vec<News>) {
        if self.failure.take().is_some() {
            news.push(News::Fixed);
        }
        let (waiting, in_force): (Vec<_>, Vec<_>) =
            reload.changes.into_iter().partition(|change| change.key.reload == Class::Restart);
        news.extend(in_force.into_iter().map(News::InForce));
        let is_new = |change: &&Change| !self.waiting.contains(change);
        news.extend(waiting.iter().filter(is_new).cloned().map(News::Waiting));
        let is_over = |change: &&Change| !waiting.iter().any(|other| other.key == change.key);
        news.extend(self.waiting.iter().filter(is_over).map(|change| News::NotWaiting(change.key)));
        let is_unsaid = |notice: &&String| !self.running.notices.contains(notice);
        news.extend(reload.loaded.notices.iter().filter(is_unsaid).cloned().map(News::Notice));
        let is_unsaid = |warning: &&Problem| !self.running.warnings.contains(warning);
        let warnings = reload.loaded.warnings.iter().filter(is_unsaid).take(MAX_WARNINGS);
        news.extend(warnings.map(|warning| News::Notice(warning.to_string())));
        self.waiting = waiting;
        self.running = reload.loaded;
    }

    /// Writes down what is in force, if that is not written yet. A failure is said once and tried again.
    fn write_record(&mut self, now: &Now) -> Option<News> {
        if !self.record_is_old {
            return None;
        }
        let waiting = |change: &Change| Waiting {
            key: change.key.path.to_owned(),
            in_force: change.from.to_json(),
            written: change.to.to_json(),
        };
        let record = Record {
            pid: std::process::id(),
            started: self.started.iso(now.offset),
            read: self.at.iso(now.offset),
            file: self.running.settings.config_file.as_ref().map(|path| path.display().to_string()),
            keys: self.running.values.iter().map(|one| (one.key.path.to_owned(), one.value.to_json())).collect(),
            waiting: self.waiting.iter().map(waiting).collect(),
            problems: self.failure.iter().flat_map(|error| &error.problems).map(ToString::to_string).collect(),
        };
        match in_force::write(&self.state, &record) {
            Ok(()) => {
                self.record_is_old = false;
                self.record_failure = None;
                None
            }
            Err(error) => {
                let error = error.to_string();
                let is_news = self.record_failure.as_ref() != Some(&error);
                self.record_failure = Some(error.clone());
                is_news.then_some(News::RecordFailed(error))
            }
        }
    }
}
