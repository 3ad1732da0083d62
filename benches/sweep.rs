//! What a sweep over a real tmux server costs: list, captures, verdicts; beside a bare control client that makes the
//! same captures, and beside one tmux process a pane.
//!
//! All panes are 200×50 and show agents' screens. Processor time is that of the tmux server, of the control client and
//! of this process together.

#![expect(clippy::unwrap_used, clippy::unchecked_time_subtraction, reason = "a bench ends at the first surprise")]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::time::Duration;

use nexus_watcher::daemon::{Outside, observe};
use nexus_watcher::logic::ids::{PaneId, WindowId, WindowName};
use nexus_watcher::logic::snapshot::TmuxView;
use nexus_watcher::sys::clock::Clock;
use nexus_watcher::sys::files::StateDir;
use nexus_watcher::sys::procfs::ProcessTable;
use nexus_watcher::sys::tmux::{
    ActOutcome, Capture, CaptureRequest, GuardedAct, Reading, Socket, Tmux, TmuxClient, TmuxError,
};

mod support;

use support::bare::Bare;
use support::process;
use support::report::{Budget, Figure, head, row};
use support::server::Server;
use support::{Stopwatch, median, pause, sized, timed};

/// Most of the processor time that a sweep of 200 panes with ten changed may take.
const CHANGED_CPU: Duration = Duration::from_millis(5);

/// After this, a pane's activity stamp can be trusted and the process table counts as old.
const SETTLED: Duration = Duration::from_millis(2200);

/// The real client, keeping the captures that it is asked for.
struct Counting {
    inner: TmuxClient,
    asked: RefCell<Vec<CaptureRequest>>,
}

impl Tmux for Counting {
    async fn view(&self) -> Result<TmuxView, TmuxError> {
        self.inner.view().await
    }

    async fn view_of(&self, window: &WindowName) -> Result<TmuxView, TmuxError> {
        self.inner.view_of(window).await
    }

    async fn capture(&self, requests: &[CaptureRequest]) -> Result<Vec<Capture>, TmuxError> {
        self.asked.borrow_mut().extend_from_slice(requests);
        self.inner.capture(requests).await
    }

    async fn read(&self, reading: &mut dyn Reading) -> Result<(), TmuxError> {
        self.inner.read(&mut CountingReading { inner: reading, asked: &self.asked }).await
    }

    async fn act(&self, _act: &GuardedAct) -> Result<ActOutcome, TmuxError> {
        unreachable!("a bench types nothing")
    }

    async fn clear_bells(&self, _windows: &[WindowId]) -> Result<(), TmuxError> {
        unreachable!("a bench clears nothing")
    }
}

/// Keeps the captures that somebody else asks for.
struct CountingReading<'a> {
    inner: &'a mut dyn Reading,
    asked: &'a RefCell<Vec<CaptureRequest>>,
}

impl Reading for CountingReading<'_> {
    fn begin(&mut self) {
        self.inner.begin();
    }

    fn next(&mut self) -> Option<(usize, CaptureRequest)> {
        let next = self.inner.next()?;
        self.asked.borrow_mut().push(next.1);
        Some(next)
    }

    fn take(&mut self, tag: usize, request: CaptureRequest, capture: Capture) {
        self.inner.take(tag, request, capture);
    }
}

type World = Outside<Counting>;

fn world(server: &Server) -> World {
    let env: BTreeMap<String, String> = BTreeMap::new();
    let dir = server.path("nexus");
    Outside {
        audit: nexus_watcher::daemon::audit::Audit::default(),
        edges: nexus_watcher::daemon::edges::Edges::default(),
        tmux: Counting { inner: TmuxClient::new(Socket::Path(server.socket()), None), asked: RefCell::default() },
        clock: Clock::System,
        state: StateDir::new(dir.join("monitor/.state")),
        settings: nexus_watcher::config::resolved::Settings::defaults(&dir).into(),
        env: Box::new(env),
        observer: observe::Observer::new().unwrap(),
        board: nexus_watcher::daemon::board::Board::default(),
    }
}

/// One sweep as the daemon makes it. Returns how many panes were captured.
async fn sweep(out: &World) -> u64 {
    out.tmux.asked.borrow_mut().clear();
    let view = out.tmux.view().await.unwrap();
    let seen = observe::panes(out, &view, &out.clock.now()).await.unwrap();
    assert!(seen.len() >= view.panes.len());
    let asked = out.tmux.asked.borrow();
    let panes: BTreeSet<PaneId> = asked.iter().map(|request| request.pane).collect();
    u64::try_from(panes.len()).unwrap()
}

/// A sweep that remembers nothing: the time that passes, and processor time by this reading of it.
async fn full_sweep(out: &mut World, panes: u64, cpu: impl Fn() -> Duration) -> (Duration, Duration) {
    out.observer = observe::Observer::new().unwrap();
    let before = cpu();
    let watch = Stopwatch::start();
    let captured = sweep(out).await;
    let passed = (watch.elapsed(), cpu() - before);
    assert_eq!(captured, panes, "every pane is captured");
    passed
}

/// What the last sweep asked tmux besides the list.
fn questions(out: &World) -> Vec<String> {
    let command = |request: &CaptureRequest| {
        let colour = if request.styled { "-e " } else { "" };
        let rows = request.rows.map_or_else(String::new, |(first, last)| format!("-E {last} -S {first} "));
        format!("capture-pane {colour}-p {rows}-t '{}'", request.pane)
    };
    out.tmux.asked.borrow().iter().map(command).collect()
}

/// Every pane whole and plain.
async fn whole_screens(out: &World) -> Vec<CaptureRequest> {
    let view = out.tmux.view().await.unwrap();
    view.panes.iter().map(|pane| CaptureRequest { pane: pane.pane, rows: None, styled: false }).collect()
}

/// Processor time of the server, a client and this process.
fn cpu(server: &Server, client: u32) -> Duration {
    process::cpu(server.pid) + process::cpu(client) + process::own_cpu()
}

/// The control client that the library has started.
fn client(bare: &Bare) -> u32 {
    let children = process::children(std::process::id());
    let is_ours = |&pid: &u32| pid != bare.pid() && process::name(pid).starts_with("tmux");
    children.into_iter().find(is_ours).expect("reads go over a control client")
}

async fn full_sweeps(server: &Server, out: &mut World, bare: &mut Bare, panes: u64) {
    let rounds = sized(25, 2);
    full_sweep(out, panes, process::own_cpu).await;
    let asked = questions(out);
    let ours_client = client(bare);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut ours_cpu, mut their_cpu) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (time, processor) = full_sweep(out, panes, || cpu(server, ours_client)).await;
        ours.push(time);
        ours_cpu.push(processor);
        let before = cpu(server, bare.pid());
        theirs.push(timed(|| bare.ask(&asked)).1);
        their_cpu.push(cpu(server, bare.pid()) - before);
    }
    let (ours, beside) = (Figure::Time(median(&ours)), Figure::Time(median(&theirs)));
    row(&format!("{panes} panes, all captured"), ours, Some(("bare control client", beside)), Budget::Times(1.3));
    let (ours_cpu, beside) = (Figure::Time(median(&ours_cpu)), Figure::Time(median(&their_cpu)));
    row(&format!("{panes} panes, processor time"), ours_cpu, Some(("bare control client", beside)), Budget::Open);
    let one_each = || {
        for (pane, _) in server.panes() {
            server.tmux(&["capture-pane", "-p", "-t", &pane]);
        }
    };
    let processes: Vec<Duration> = (0..sized(3, 1)).map(|_| timed(one_each).1).collect();
    let beside = Figure::Time(median(&processes));
    row(&format!("{panes} panes, all captured"), ours, Some(("one process a pane", beside)), Budget::Open);
}

/// Where the time of a full sweep goes.
async fn parts(server: &Server, out: &World, bare: &mut Bare, panes: u64) {
    let ours_client = client(bare);
    let whole = whole_screens(out).await;
    let plain: Vec<String> = whole.iter().map(|request| format!("capture-pane -p -t '{}'", request.pane)).collect();
    let (mut view, mut table, mut trees, mut captures) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut bare_captures = Vec::new();
    for _ in 0..sized(25, 2) {
        let part = Part::start(server, ours_client);
        let seen = out.tmux.view().await.unwrap();
        view.push(part.end());
        let part = Part::start(server, ours_client);
        let processes = ProcessTable::read().unwrap();
        table.push(part.end());
        let part = Part::start(server, ours_client);
        for pid in seen.panes.iter().filter_map(|pane| pane.pid) {
            black_box(processes.below(pid).unwrap());
        }
        trees.push(part.end());
        let part = Part::start(server, ours_client);
        black_box(out.tmux.capture(&whole).await.unwrap());
        captures.push(part.end());
        let part = Part::start(server, bare.pid());
        bare.ask(&plain);
        bare_captures.push(part.end());
    }
    let parts = [
        ("the list of panes", view),
        ("the table of processes", table),
        ("the processes below each pane", trees),
        ("plain captures through the tmux client", captures),
        ("plain captures through the bare client", bare_captures),
    ];
    for (what, times) in parts {
        let (time, cpu): (Vec<Duration>, Vec<Duration>) = times.into_iter().unzip();
        let cpu = ("its processor time", Figure::Time(median(&cpu)));
        row(&format!("{panes} panes, part: {what}"), Figure::Time(median(&time)), Some(cpu), Budget::Open);
    }
}

/// Time and processor time of a part.
struct Part<'a> {
    server: &'a Server,
    client: u32,
    watch: Stopwatch,
    cpu: Duration,
}

impl<'a> Part<'a> {
    fn start(server: &'a Server, client: u32) -> Self {
        Self { server, client, cpu: cpu(server, client), watch: Stopwatch::start() }
    }

    fn end(self) -> (Duration, Duration) {
        (self.watch.elapsed(), cpu(self.server, self.client) - self.cpu)
    }
}

/// Sweeps in which so many panes have changed, one every two seconds.
async fn steady(server: &Server, out: &mut World, bare: &mut Bare, changed: usize) {
    let ours_client = client(bare);
    let ttys = server.panes();
    let mut list = vec!["list-panes -a -F '#{pane_id} #{window_activity} #{pane_pid} #{pane_title}'".to_owned()];
    list.extend(ttys.iter().take(changed).map(|(pane, _)| format!("capture-pane -p -t '{pane}'")));
    // The first sweep may meet panes that were young or had changed a moment ago.
    pause(SETTLED);
    sweep(out).await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut most = 0;
    for round in 0..sized(11, 1) {
        for (_, tty) in ttys.iter().take(changed) {
            Server::draw(tty, &format!("\r\x1b[1A{round} more\x1b[1B\r"));
        }
        pause(SETTLED);
        let before = cpu(server, ours_client);
        most = most.max(sweep(out).await);
        ours.push(cpu(server, ours_client) - before);
        let before = cpu(server, bare.pid());
        bare.ask(&list);
        theirs.push(cpu(server, bare.pid()) - before);
    }
    let panes = ttys.len();
    let beside = Figure::Time(median(&theirs));
    row(
        &format!("{panes} panes, {changed} changed, processor time"),
        Figure::Time(median(&ours)),
        Some(("bare control client", beside)),
        Budget::AtMost(Figure::Time(CHANGED_CPU)),
    );
    let expected = u64::try_from(changed).unwrap();
    let captured = Figure::Count(most);
    row(
        &format!("{panes} panes, {changed} changed, panes captured"),
        captured,
        None,
        Budget::AtMost(Figure::Count(expected)),
    );
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut server = Server::start();
    let mut out = world(&server);
    head();
    runtime.block_on(async {
        server.grow(1);
        server.tmux(&["kill-window", "-t", "nexus:keeper"]);
        let mut bare = Bare::attach(&server);
        let sizes: &[usize] = sized(&[10, 50, 100, 200], &[3]);
        for &panes in sizes {
            server.grow(panes);
            full_sweeps(&server, &mut out, &mut bare, u64::try_from(panes).unwrap()).await;
        }
        let most = sizes.last().copied().unwrap();
        parts(&server, &out, &mut bare, u64::try_from(most).unwrap()).await;
        steady(&server, &mut out, &mut bare, most / 20).await;
        steady(&server, &mut out, &mut bare, 0).await;
    });
}
