//! What is true and what was told: the invariants of a run.
//!
//! It is told what really happened, and reads what the watcher wrote down. The first thing that must not be ends the run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use nexus_watcher::logic::delivery::journal::{self, Kind};
use nexus_watcher::logic::emit::dedup::{RING_FILE, stable_hash};
use nexus_watcher::logic::ids::WindowId;
use nexus_watcher::logic::time::Now;
use nexus_watcher::sys::files::{self, StateDir};

use super::told::{Told, without_bell};

/// How long what was sent is remembered.
const MEMORY: Duration = Duration::from_secs(86_400);
/// How many hashes of sent texts are remembered; the watcher's own ring is far shorter.
const HASHES: usize = 256;
/// Largest file of the watcher's that is read.
const MAX_BYTES: u64 = 64 << 20;

/// What the invariants depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// How soon something is told once the orchestrator can be reached and nothing else is wrong.
    pub(crate) prompt: Duration,
    /// `monitor.emit_cooldown_seconds`.
    pub(crate) cooldown: Duration,
    /// `monitor.idle_threshold_seconds`.
    pub(crate) idle: Duration,
}

/// A text that the orchestrator was sent.
#[derive(Clone, Debug)]
struct Sent {
    at: Duration,
    /// The watcher has noted the proof of it.
    proven: bool,
    /// Its receipt was written at once, for everybody to read.
    readable: bool,
}

/// A decision that waits.
#[derive(Clone, Copy, Debug)]
struct Decision {
    born: Duration,
    told: Option<Duration>,
    /// Its dialog is on the screen.
    open: bool,
}

/// A bell that stands.
#[derive(Clone, Debug)]
struct Bell {
    name: String,
    born: Duration,
    told: bool,
}

/// How much went on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Emits that the watcher composed.
    pub(crate) composed: u64,
    /// Emits that the orchestrator was sent.
    pub(crate) sent: u64,
    /// Those that said that they repeat another.
    pub(crate) repeats: u64,
    /// Things worth telling.
    pub(crate) news: u64,
    /// Decisions that were told.
    pub(crate) decisions: u64,
    /// Bells that were cleared.
    pub(crate) bells: u64,
}

/// The oracle.
#[derive(Debug)]
pub(crate) struct Truth {
    bounds: Bounds,
    state: StateDir,
    /// What must not have been, and when.
    pub(crate) failed: Option<(Duration, String)>,
    /// How much went on.
    pub(crate) counts: Counts,
    sent: BTreeMap<String, Sent>,
    order: VecDeque<String>,
    hashes: VecDeque<String>,
    decisions: BTreeMap<(String, String), Decision>,
    bells: BTreeMap<WindowId, Bell>,
    /// Lines of the local state that the orchestrator knows of.
    believed: BTreeSet<String>,
    /// Lines that are not as it believes, since when.
    odd: BTreeMap<String, Duration>,
    may_come: BTreeSet<String>,
    may_go: BTreeSet<String>,
    cut: bool,
    baseline: Option<BTreeSet<String>>,
    pairs: BTreeSet<(String, String)>,
    pairs_told: BTreeSet<(String, String)>,
    /// Workers that were at work long enough to be seen, and rest since.
    resting: BTreeMap<String, Duration>,
    /// The last composed emits, as nonce and signature.
    composed: VecDeque<(String, String)>,
    emits_read: usize,
    /// The emit that the next one has to name as the one it repeats.
    owes: Option<String>,
    clock_set: Option<Duration>,
    /// What was composed and what was news in the present day of the run.
    today: (u64, u64, u64),
}

impl Truth {
    pub(crate) fn new(bounds: Bounds, state: StateDir) -> Self {
        Self {
            bounds,
            state,
            failed: None,
            counts: Counts::default(),
            sent: BTreeMap::new(),
            order: VecDeque::new(),
            hashes: VecDeque::new(),
            decisions: BTreeMap::new(),
            bells: BTreeMap::new(),
            believed: BTreeSet::new(),
            odd: BTreeMap::new(),
            may_come: BTreeSet::new(),
            may_go: BTreeSet::new(),
            cut: false,
            baseline: None,
            pairs: BTreeSet::new(),
            pairs_told: BTreeSet::new(),
            resting: BTreeMap::new(),
            composed: VecDeque::new(),
            emits_read: 0,
            owes: None,
            clock_set: None,
            today: (0, 0, 0),
        }
    }

    /// Notes what must not have been; the first one stands.
    pub(crate) fn fail(&mut self, at: Duration, what: impl Into<String>) {
        self.failed.get_or_insert_with(|| (at, what.into()));
    }

    /// The wall clock was set: ages are not what they were.
    pub(crate) fn clock_was_set(&mut self, at: Duration) {
        self.clock_set = Some(at);
    }

    /// What the orchestrator knows from the start.
    pub(crate) fn begin(&mut self, lines: BTreeSet<String>) {
        self.believed = lines;
    }

    /// Something worth telling happened.
    pub(crate) fn news(&mut self) {
        self.counts.news += 1;
    }

    /// The orchestrator was sent a text. `readable`: its receipt stands for everybody to read.
    pub(crate) fn sent(&mut self, now: &Now, text: &str, readable: bool) -> Option<Told> {
        let at = now.uptime;
        let told = Told::parse(text)?;
        self.counts.sent += 1;
        if self.sent.insert(told.signature.clone(), Sent { at, proven: false, readable }).is_some() {
            self.fail(at, format!("{} was sent twice", told.signature));
        }
        // The watcher may have seen it arrive before we are told.
        self.read_emits(at);
        self.check_repeat(at, &told);
        for key in &told.decisions {
            self.counts.decisions += 1;
            let Some(decision) = self.decisions.get_mut(key) else {
                self.fail(at, format!("a decision was told that nobody asked for: {key:?}"));
                continue;
            };
            let before = decision.told.replace(at);
            let soon =
                before.is_some_and(|before| at.saturating_sub(before) + Duration::from_secs(3) < self.bounds.cooldown);
            let set = self.clock_set.is_some_and(|set| before.is_some_and(|before| set >= before));
            if soon && !set && told.repeat_of.is_none() {
                self.fail(at, format!("the decision {key:?} was told again within its cooldown, without a word"));
            }
        }
        for bell in self.bells.values_mut().filter(|bell| told.bells.contains(&bell.name)) {
            bell.told = true;
        }
        let came: Vec<&String> = told.came.difference(&told.went).collect();
        let went: Vec<&String> = told.went.difference(&told.came).collect();
        for line in came {
            self.believed.insert(line.clone());
            self.may_come.insert(line.clone());
        }
        for line in went {
            self.believed.remove(line);
            self.may_go.insert(line.clone());
        }
        self.cut |= told.cut;
        self.pairs_told.extend(told.workers.iter().cloned());
        self.resting.retain(|name, _| !told.workers.iter().any(|(worker, _)| worker == name));
        self.hashes.push_back(stable_hash(&told.body));
        if self.hashes.len() > HASHES {
            self.hashes.pop_front();
        }
        self.order.push_back(told.signature.clone());
        Some(told)
    }

    /// A repetition says so, and is none while the proof of the first can be read.
    fn check_repeat(&mut self, at: Duration, told: &Told) {
        let last = self.order.back().and_then(|sig| Some((sig.clone(), self.sent.get(sig)?.clone())));
        if let Some((sig, last)) = last
            && !last.proven
            && told.repeat_of.is_none()
        {
            self.fail(
                at,
                format!("{sig} was sent and never proven, and {} does not say that it repeats it", told.signature),
            );
        }
        if let Some(owed) = self.owes.take()
            && told.repeat_of.is_none()
        {
            self.fail(at, format!("{} does not say that it repeats {owed}", told.signature));
        }
        let Some(of) = &told.repeat_of else { return };
        self.counts.repeats += 1;
        if let Some(first) = self.sent.get(of)
            && (first.proven || (first.readable && at.saturating_sub(first.at) > Duration::from_secs(1)))
        {
            let how = if first.proven { "was proven" } else { "left a receipt that can be read" };
            self.fail(at, format!("{} repeats {of}, which {how}", told.signature));
        }
    }

    /// A worker's dialog opened, and a record was written.
    pub(crate) fn decision_opened(&mut self, at: Duration, window: &str, fingerprint: &str) {
        self.news();
        self.decisions.insert((window.into(), fingerprint.into()), Decision { born: at, told: None, open: true });
    }

    /// Its dialog is gone, whatever became of the record.
    pub(crate) fn decision_closed(&mut self, window: &str) {
        for (_, decision) in self.decisions.iter_mut().filter(|((name, _), _)| name == window) {
            decision.open = false;
        }
    }

    /// A window rang.
    pub(crate) fn rang(&mut self, at: Duration, window: WindowId, name: &str) {
        self.news();
        self.bells.entry(window).or_insert(Bell { name: name.to_owned(), born: at, told: false });
    }

    /// A window is gone, and its bell with it.
    pub(crate) fn window_gone(&mut self, window: WindowId) {
        self.bells.remove(&window);
    }

    /// The server is gone, and every bell with it.
    pub(crate) fn server_gone(&mut self) {
        self.bells.clear();
        self.resting.clear();
    }

    /// The watcher cleared bells.
    pub(crate) fn bells_cleared(&mut self, at: Duration, windows: &[WindowId]) {
        for window in windows {
            if let Some(bell) = self.bells.remove(window) {
                self.counts.bells += 1;
                if !bell.told {
                    self.fail(at, format!("the bell of {} was cleared and never told", bell.name));
                }
            }
        }
    }

    /// A worker rests after work that the watcher had time to see.
    pub(crate) fn rests(&mut self, at: Duration, name: &str) {
        self.news();
        self.resting.insert(name.to_owned(), at);
    }

    /// A worker does something else than rest.
    pub(crate) fn stirs(&mut self, name: &str) {
        self.resting.remove(name);
    }

    /// The local state as it is.
    pub(crate) fn local(&mut self, at: Duration, lines: &BTreeSet<String>) {
        if self.cut {
            // What was left out can't be known; the names of it were.
            self.believed.clone_from(lines);
        }
        let odd: BTreeSet<&String> = self.believed.symmetric_difference(lines).collect();
        self.odd.retain(|line, _| odd.contains(line));
        for line in odd {
            self.odd.entry(line.clone()).or_insert(at);
        }
    }

    /// Whether everything that should have been told by now was. `calm` is since when nothing is wrong.
    pub(crate) fn check(&mut self, at: Duration, calm: Duration) {
        let Bounds { prompt, cooldown, idle } = self.bounds;
        let late = |since: Duration, grace: Duration| {
            at.saturating_sub(since) >= grace + prompt && at.saturating_sub(calm) >= prompt
        };
        let mut found = None;
        for (key, decision) in &self.decisions {
            if decision.open && decision.told.is_none() && late(decision.born, Duration::ZERO) {
                found = Some(format!("the decision {key:?} of {:?} was not told", decision.born));
            }
        }
        for bell in self.bells.values() {
            if !bell.told && late(bell.born, cooldown) {
                found = Some(format!("the bell of {} of {:?} was not told", bell.name, bell.born));
            }
        }
        for (line, since) in &self.odd {
            if late(*since, cooldown) {
                found = Some(format!("the change of {line:?} of {since:?} was not told"));
            }
        }
        for (name, since) in &self.resting {
            if late(*since, cooldown + idle) {
                found = Some(format!("that {name} rests since {since:?} was not told"));
            }
        }
        if let Some(found) = found {
            self.fail(at, found);
        }
    }

    /// Whether the watcher says that it lives: its files are fresh.
    pub(crate) fn check_fresh(&mut self, now: &Now, calm: Duration) {
        let quiet = now.uptime.saturating_sub(calm);
        for (file, patience) in [("watcher-progress", 60), ("watcher-cycle", 300)] {
            let patience = Duration::from_secs(patience);
            if quiet < patience * 2 || self.clock_set.is_some_and(|set| now.uptime.saturating_sub(set) < patience * 2) {
                continue;
            }
            let text = files::read_text(&self.state.at(file), MAX_BYTES).ok().flatten().unwrap_or_default();
            let epoch = text.lines().find_map(|line| line.strip_prefix("epoch=")?.parse::<i64>().ok());
            let age = epoch.map(|epoch| now.at.secs() - epoch);
            if age.is_none_or(|age| age.unsigned_abs() > patience.as_secs()) {
                self.fail(now.uptime, format!("{file} is {age:?} s old: {text:?}"));
            }
        }
    }

    /// Whether the watcher says no more than there is to say. Called now and then; judges whole days.
    pub(crate) fn check_volume(&mut self, at: Duration, open: u64) {
        let day = at.as_secs() / 86_400;
        let (today, composed, news) = self.today;
        if day > today {
            let (composed, news) = (self.counts.composed - composed, self.counts.news - news);
            // A decision that waits is told again in each cooldown.
            let again = open * (86_400 / self.bounds.cooldown.as_secs().max(1));
            if composed > 100 + 4 * news + again {
                self.fail(at, format!("{composed} emits were composed in a day with {news} news"));
            }
            self.today = (day, self.counts.composed, self.counts.news);
        }
        let old = at.saturating_sub(MEMORY);
        while let Some(first) = self.order.front()
            && self.sent.get(first).is_none_or(|sent| sent.at < old)
        {
            self.sent.remove(first);
            self.order.pop_front();
        }
        self.decisions.retain(|_, decision| decision.open || decision.born > old);
    }

    /// How many decisions wait.
    pub(crate) fn open_decisions(&self) -> u64 {
        self.decisions.values().filter(|decision| decision.open).count() as u64
    }

    /// Reads everything that the watcher may have written since, and judges it.
    pub(crate) fn read_files(&mut self, at: Duration) {
        self.read_emits(at);
        let read = |name: &str| files::read_text(&self.state.at(name), MAX_BYTES).ok().flatten().unwrap_or_default();
        let stamps = read("pending-decisions-emit-state.tsv");
        let ring = read(RING_FILE);
        let pairs = read("idle-state.tsv");
        let baseline = files::read_text(&self.state.at("last-snapshot.txt"), MAX_BYTES).ok().flatten();
        for line in stamps.lines() {
            let mut columns = line.split('\t');
            let key = (columns.next().unwrap_or_default().to_owned(), columns.next().unwrap_or_default().to_owned());
            // Those of long ago are forgotten here.
            if self.decisions.get(&key).is_some_and(|decision| decision.told.is_none()) {
                self.fail(at, format!("the decision {key:?} counts as told and was not"));
            }
        }
        // An emit leaves its own hash, and perhaps that of a part of it, under one stamp.
        let rows: Vec<(&str, &str)> = ring.lines().filter_map(|line| line.split_once('\t')).collect();
        for (stamp, hash) in &rows {
            let mut beside = rows.iter().filter(|(other, _)| other == stamp);
            if !beside.any(|(_, hash)| self.hashes.iter().any(|sent| sent == hash)) {
                self.fail(at, format!("the ring holds an emit that nobody was sent ({hash})"));
            }
        }
        self.judge_pairs(at, &pairs);
        if let Some(baseline) = baseline {
            self.judge_baseline(at, &baseline);
        }
    }

    fn judge_pairs(&mut self, at: Duration, text: &str) {
        let new: BTreeSet<(String, String)> =
            text.lines().filter_map(|line| line.rsplit_once('\t')).map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
        if new == self.pairs {
            return;
        }
        for pair in new.difference(&self.pairs) {
            if !self.pairs_told.contains(pair) {
                self.failed.get_or_insert_with(|| (at, format!("{pair:?} counts as told and was not")));
            }
        }
        for pair in self.pairs.difference(&new) {
            self.pairs_told.remove(pair);
        }
        self.pairs = new;
    }

    fn judge_baseline(&mut self, at: Duration, text: &str) {
        let is_line = |line: &&str| !line.starts_with('#') && !line.starts_with("---");
        let new: BTreeSet<String> = text.lines().filter(is_line).map(without_bell).collect();
        let Some(old) = self.baseline.replace(new.clone()) else { return };
        if old == new {
            return;
        }
        for line in new.difference(&old) {
            if !self.may_come.remove(line) && !self.cut {
                self.failed.get_or_insert_with(|| (at, format!("the baseline has {line:?}, which was never told")));
            }
        }
        for line in old.difference(&new) {
            if !self.may_go.remove(line) && !self.cut {
                self.failed.get_or_insert_with(|| (at, format!("the baseline lost {line:?}, which was never told")));
            }
        }
        self.cut = false;
    }

    /// Reads the watcher's own word on its deliveries.
    fn read_emits(&mut self, at: Duration) {
        let path = self.state.at(journal::EMITS);
        let Ok(length) = std::fs::metadata(&path).map(|data| data.len()) else { return };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length < self.emits_read {
            // The log was rotated.
            self.emits_read = 0;
        }
        if length == self.emits_read {
            return;
        }
        let text = files::read_text(&path, MAX_BYTES).ok().flatten().unwrap_or_default();
        let new = text.get(self.emits_read..).unwrap_or_default();
        let whole = new.rfind('\n').map_or("", |end| &new[..=end]);
        self.emits_read += whole.len();
        for event in whole.lines().filter_map(|line| serde_json::from_str::<journal::Event>(line).ok()) {
            match event.event {
                Kind::Composed => {
                    self.counts.composed += 1;
                    let iso = event.iso.unwrap_or_default();
                    self.composed.push_back((event.nonce.clone(), format!("{iso} {}", event.nonce)));
                    if self.composed.len() > HASHES {
                        self.composed.pop_front();
                    }
                }
                Kind::Verified | Kind::Queued => {
                    let known = self.composed.iter().rev().find(|(nonce, _)| *nonce == event.nonce);
                    let sig = known.map(|(_, sig)| sig.clone()).unwrap_or_default();
                    match self.sent.get_mut(&sig) {
                        Some(sent) => sent.proven = true,
                        None => self
                            .fail(at, format!("{sig:?} counts as received by {:?} and was never sent", event.witness)),
                    }
                }
                // The watcher gave up on its proof, so what it tells next may be a repetition.
                Kind::Repeated => self.owes = Some(event.nonce),
                _ => {}
            }
        }
    }
}
