//! Runs a plan: the real loop beside a simulated fleet, on a clock that jumps to whatever happens next.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use nexus_watcher::agents::Profiles;
use nexus_watcher::config::resolved::Settings;
use nexus_watcher::daemon::audit::Audit;
use nexus_watcher::daemon::board::Board;
use nexus_watcher::daemon::edges::Edges;
use nexus_watcher::daemon::observe::Observer;
use nexus_watcher::daemon::{self, Outside, Run};
use nexus_watcher::logic::time::Timestamp;
use nexus_watcher::sys::clock::Clock;
use nexus_watcher::sys::fault::{self, Step};

use super::dice::Dice;
use super::fleet::{Fleet, Switches};
use super::plan::Plan;
use super::tmux::SimTmux;
use super::truth::{Bounds, Counts};

/// Monday, 30 November 2026, 00:00 UTC.
const START_S: i64 = 1_795_996_800;
/// How soon a watcher that ended is started again, in seconds.
const DOWN: (u64, u64) = (1, 30);

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Report {
    /// What must not have been, and when.
    pub(crate) failed: Option<(Duration, String)>,
    /// How much went on.
    pub(crate) counts: Counts,
    /// What happened last.
    pub(crate) trace: Vec<String>,
    /// Resident memory and files of the state directory (number and bytes), each simulated day.
    pub(crate) sizes: Vec<Size>,
}

/// How much room the run takes at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Resident memory of the whole process, in KiB.
    pub(crate) memory_kib: u64,
    /// Files of the state directory.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
}

/// Settings under which a day of a run holds what a week of a real one does.
fn settings(root: &Path) -> Settings {
    let mut settings = Settings::defaults(root);
    settings.emit_cooldown = Duration::from_secs(900);
    settings.dedup_max_quiet = Duration::from_secs(3600);
    settings.idle_threshold = Duration::from_secs(300);
    settings.archive_keep = Duration::from_secs(86_400);
    settings.archive_max_files = 300;
    settings.state_log_max_bytes = 256 << 10;
    settings.scheduler_log_max_bytes = 256 << 10;
    settings
}

/// A directory in memory, if the machine has one: the run writes a hundred thousand files.
fn scratch() -> tempfile::TempDir {
    let shm = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix("nexus-sim");
    match builder.tempdir_in(shm) {
        Ok(dir) => dir,
        Err(_) => builder.tempdir().expect("a temporary directory"),
    }
}

/// Runs a plan to its end, or to the first thing that must not be.
pub(crate) fn run(plan: &Plan) -> Report {
    let dir = scratch();
    for sub in ["monitor/.state/decisions", "reports", "sessions", "home"] {
        fs::create_dir_all(dir.path().join(sub)).expect("a folder");
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let report = runtime.block_on(live(plan, dir.path()));
    fault::intercept(None);
    report
}

async fn live(plan: &Plan, root: &Path) -> Report {
    // One value for each run; it must outlive everything that tells the time.
    let set_by: &'static AtomicI64 = Box::leak(Box::default());
    let clock = Clock::settable(Timestamp::from_secs(START_S), set_by);
    let settings = settings(root);
    let bounds = Bounds {
        prompt: Duration::from_secs(150),
        cooldown: settings.emit_cooldown,
        idle: settings.idle_threshold + settings.spawn_grace,
    };
    let fleet = Fleet::new(plan.clone(), root, clock, set_by, bounds);
    let (tmux, switches) = (fleet.tmux.clone(), Rc::clone(&fleet.switches));
    intercept(&switches, &tmux);
    let profiles = Rc::new(Profiles::builtin().expect("the built-in profiles load"));
    let fleet = Rc::new(RefCell::new(fleet));
    let mut sizes = Vec::new();
    let mut dice = Dice::new(plan.seed ^ 0x5eed);
    {
        let mut driver = std::pin::pin!(drive(Rc::clone(&fleet), plan.length, root, &mut sizes));
        loop {
            let outside = Outside {
                audit: Audit::default(),
                edges: Edges::default(),
                tmux: tmux.clone(),
                clock,
                state: fleet.borrow().state.clone(),
                settings: settings.clone().into(),
                env: Box::new(BTreeMap::from([("HOME".to_owned(), root.join("home").display().to_string())])),
                board: Board::default(),
                observer: Observer::with(Rc::clone(&profiles), Box::new(tmux.processes())),
            };
            switches.ended.set(false);
            let now = clock.now().uptime;
            fleet.borrow_mut().up_since = Some(now);
            let wake = Rc::clone(&fleet.borrow().wake);
            let watcher = daemon::run(outside, Run::Forever, wake, std::future::pending());
            let watcher = watched(Rc::clone(&switches), watcher);
            tokio::select! {
                biased;
                () = &mut driver => break,
                () = switches.end.notified() => {}
                ended = watcher => {
                    let at = clock.now().uptime;
                    fleet.borrow_mut().truth.fail(at, format!("the watcher ended by itself: {ended:?}"));
                    break;
                }
            }
            switches.end_in.set(None);
            fleet.borrow_mut().up_since = None;
            fleet.borrow_mut().note("the watcher ended; it is started again soon");
            tokio::select! {
                biased;
                () = &mut driver => break,
                () = tokio::time::sleep(dice.secs(DOWN.0, DOWN.1)) => {}
            }
        }
    }
    let fleet = fleet.borrow();
    Report {
        failed: fleet.truth.failed.clone(),
        counts: fleet.truth.counts,
        trace: fleet.trace().cloned().collect(),
        sizes,
    }
}

/// Marks the time in which the watcher's own code runs.
async fn watched<T>(switches: Rc<Switches>, watcher: impl Future<Output = T>) -> T {
    let mut watcher = std::pin::pin!(watcher);
    std::future::poll_fn(|context| {
        switches.running.set(true);
        let polled = watcher.as_mut().poll(context);
        switches.running.set(false);
        polled
    })
    .await
}

/// Lets the fleet live until the run is over.
async fn drive(fleet: Rc<RefCell<Fleet>>, length: Duration, root: &Path, sizes: &mut Vec<Size>) {
    let (clock, stirred) = {
        let fleet = fleet.borrow();
        (fleet.clock, Rc::clone(&fleet.tmux.stirred))
    };
    let start = tokio::time::Instant::now();
    let mut day = 0;
    loop {
        fleet.borrow_mut().step();
        let now = clock.now().uptime;
        if now.as_secs() / 86_400 > day {
            day = now.as_secs() / 86_400;
            sizes.push(size(root));
        }
        if now >= length || fleet.borrow().truth.failed.is_some() {
            return;
        }
        let next = fleet.borrow().next_time().min(length);
        tokio::select! {
            biased;
            () = stirred.notified() => {}
            () = tokio::time::sleep_until(start + next) => {}
        }
    }
}

/// Lets writes fail and the watcher end at a step, as the switches say.
fn intercept(switches: &Rc<Switches>, tmux: &SimTmux) {
    const JUDGED: [&str; 5] = [
        "emits.jsonl",
        "pending-decisions-emit-state.tsv",
        "idle-state.tsv",
        "last-snapshot.txt",
        "last-emit-stable-hash.ring",
    ];
    let (switches, stirred) = (Rc::clone(switches), Rc::clone(&tmux.stirred));
    fault::intercept(Some(Box::new(move |step| {
        if !switches.running.get() {
            return Ok(());
        }
        let gone = || Err(io::Error::other("the process has ended"));
        if switches.ended.get() {
            return gone();
        }
        if let Some(left) = switches.end_in.get() {
            switches.end_in.set(left.checked_sub(1));
            if left == 0 {
                switches.ended.set(true);
                switches.end.notify_one();
                return gone();
            }
        }
        let Step::Write(path) = step else { return Ok(()) };
        if switches.disk_full.get() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if let Some(left) = switches.fail_write.get() {
            switches.fail_write.set(left.checked_sub(1));
            if left == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        if path.file_name().is_some_and(|name| JUDGED.iter().any(|judged| name == *judged)) {
            switches.wrote.set(true);
            stirred.notify_one();
        }
        Ok(())
    })));
}

/// How much room everything takes now.
fn size(root: &Path) -> Size {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    let mut size = Size { memory_kib: pages * 4, ..Size::default() };
    let mut folders = vec![root.join("monitor/.state")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(data) if data.is_dir() => folders.push(entry.path()),
                Ok(data) => {
                    size.files += 1;
                    size.bytes += data.len();
                }
                Err(_) => {}
            }
        }
    }
    size
}
