//! What it costs to judge a screen: from the bytes that tmux prints to a verdict with its evidence, over every saved
//! screen; and that a screen that did not change is not judged again.

#![expect(clippy::unwrap_used, reason = "a bench ends at the first surprise")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use nexus_watcher::agents::Profiles;
use nexus_watcher::daemon::{Outside, observe};
use nexus_watcher::logic::ids::{PaneId, ServerId, SessionId, WindowId, WindowName};
use nexus_watcher::logic::pane::{self, PaneVerdict, Profile, ScreenFacts, judge_capture};
use nexus_watcher::logic::screen::Capture as SavedScreen;
use nexus_watcher::logic::snapshot::{PaneFacts, TmuxView};
use nexus_watcher::logic::time::Timestamp;
use nexus_watcher::sys::clock::Clock;
use nexus_watcher::sys::files::StateDir;
use nexus_watcher::sys::tmux::{
    ActOutcome, Capture, CaptureRequest, GuardedAct, Reading, Tmux, TmuxError, read_in_rounds,
};

mod support;

use support::report::{Budget, Figure, head, row};
use support::screens::{self, Screen};
use support::{median, quantile, sized, timed};

const MEDIAN: Duration = Duration::from_micros(50);
const P99: Duration = Duration::from_micros(200);

/// The rows of one printed screen, as the tmux client cuts them.
fn rows(raw: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(raw);
    text.strip_suffix('\n').unwrap_or(&text).split('\n').map(str::to_owned).collect()
}

/// A screen, and what the second look at it prints, if there is one.
struct Live {
    plain: Vec<u8>,
    styled: Option<(u16, Vec<u8>)>,
    facts: ScreenFacts,
}

impl Live {
    fn of(profile: &Profile, screen: &Screen) -> Self {
        let saved = SavedScreen::from_bytes(&screen.ansi);
        let wanted = pane::wanted_style(profile, &rows(&screen.plain));
        let styled = wanted.map(|(first, last)| (first, (saved.styled(first, last).join("\n") + "\n").into_bytes()));
        let facts = ScreenFacts {
            dead: Some(false),
            in_mode: Some(false),
            title: Some(screen.title.clone()),
            ..ScreenFacts::default()
        };
        Self { plain: screen.plain.clone(), styled, facts }
    }

    /// What the watcher does between the bytes and the verdict.
    fn judge(&self, profile: &Profile) -> PaneVerdict {
        let plain = rows(&self.plain);
        let wanted = pane::wanted_style(profile, &plain);
        let styled = wanted.and(self.styled.as_ref()).map(|(first, raw)| (*first, rows(raw)));
        let styled = styled.as_ref().map(|(first, rows)| (*first, rows.as_slice()));
        pane::judge_screen(profile, &self.facts, &plain, styled)
    }
}

/// How long each call takes, every call of every round: a slow one is not explained away.
fn each<T, U>(list: &[T], run: impl Fn(&T) -> U) -> Vec<Duration> {
    let rounds = sized(30, 1);
    let once = |item: &T| timed(|| black_box(run(black_box(item)))).1;
    (0..rounds).flat_map(|_| list.iter().map(once).collect::<Vec<_>>()).collect()
}

fn main() {
    let profiles = Profiles::builtin().unwrap();
    let profile = profiles.get("claude").unwrap();
    let screens = screens::all();
    let live: Vec<Live> = screens.iter().map(|screen| Live::of(profile, screen)).collect();
    // Figures of one round follow each other in the order of the screens.
    let large: Vec<usize> = (0..screens.len()).filter(|&nth| screens[nth].size == (200, 50)).collect();
    let at_large = |times: &[Duration]| {
        times.chunks(screens.len()).flat_map(|round| large.iter().map(|&nth| round[nth])).collect::<Vec<_>>()
    };

    head();
    let ours = each(&live, |screen| screen.judge(profile));
    let bare = each(&live, |screen| rows(&screen.plain));
    let cut = "cutting the bytes into rows";
    let bare_of = |times: &[Duration], share: f64| Some((cut, Figure::Time(quantile(times, share))));
    let at_most = |most| Budget::AtMost(Figure::Time(most));
    row(
        &format!("one screen, bytes to verdict, median of {} screens", screens.len()),
        Figure::Time(median(&ours)),
        bare_of(&bare, 0.5),
        at_most(MEDIAN),
    );
    row("the same, p99 of all sizes", Figure::Time(quantile(&ours, 0.99)), bare_of(&bare, 0.99), at_most(P99));
    let (ours, bare) = (at_large(&ours), at_large(&bare));
    row(
        &format!("at 200×50, median of {} screens", large.len()),
        Figure::Time(median(&ours)),
        bare_of(&bare, 0.5),
        at_most(MEDIAN),
    );
    row("at 200×50, p99", Figure::Time(quantile(&ours, 0.99)), bare_of(&bare, 0.99), at_most(P99));

    // `ng pane-state --capture`: every cell of a screen with colours is read, which the watcher never does.
    let facts = ScreenFacts::default();
    let saved = each(&screens, |screen| judge_capture(profile, &facts, &SavedScreen::from_bytes(&screen.ansi)));
    let bare = each(&screens, |screen| {
        let mut parser = vte::Parser::new();
        parser.advance(&mut Ignore, &screen.ansi);
    });
    let vte = |share| Some(("bare vte", Figure::Time(quantile(&bare, share))));
    row("a saved screen with all its colours, median", Figure::Time(median(&saved)), vte(0.5), at_most(MEDIAN));
    let p99 = Figure::Time(quantile(&at_large(&saved), 0.99));
    let parsed = Figure::Time(quantile(&at_large(&bare), 0.99));
    row("the same at 200×50, p99", p99, Some(("bare vte", parsed)), at_most(P99));

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(unchanged(live));
}

/// Reads escape sequences and drops them.
struct Ignore;

impl vte::Perform for Ignore {}

/// A tmux server that is not there: its panes show saved screens.
struct Saved {
    screens: Vec<Live>,
    captures: Cell<u64>,
}

impl Tmux for Saved {
    async fn view(&self) -> Result<TmuxView, TmuxError> {
        let server = ServerId { socket: "none".into(), pid: 1, start_s: 1 };
        let panes = (0..).take(self.screens.len()).map(pane_facts).collect();
        Ok(TmuxView::of_one(server, "3.3a", panes))
    }

    async fn capture(&self, requests: &[CaptureRequest]) -> Result<Vec<Capture>, TmuxError> {
        let answer = |request: &CaptureRequest| {
            let screen = &self.screens[usize::try_from(request.pane.number()).unwrap()];
            match (request.styled, &screen.styled) {
                (false, _) => {
                    self.captures.set(self.captures.get() + 1);
                    Capture::Rows(rows(&screen.plain))
                }
                (true, Some((_, raw))) => Capture::Rows(rows(raw)),
                (true, None) => Capture::Gone,
            }
        };
        Ok(requests.iter().map(answer).collect())
    }

    async fn view_of(&self, window: &WindowName) -> Result<TmuxView, TmuxError> {
        Ok(self.view().await?.of_window(window))
    }

    async fn read(&self, reading: &mut dyn Reading) -> Result<(), TmuxError> {
        read_in_rounds(self, reading).await
    }

    async fn act(&self, _act: &GuardedAct) -> Result<ActOutcome, TmuxError> {
        unreachable!("a bench types nothing")
    }

    async fn clear_bells(&self, _windows: &[WindowId]) -> Result<(), TmuxError> {
        unreachable!("a bench clears nothing")
    }
}

fn pane_facts(number: u32) -> PaneFacts {
    PaneFacts {
        pane: PaneId::new(number),
        window: WindowId::new(number),
        session: SessionId::new(0),
        session_name: "nexus".into(),
        window_name: WindowName(format!("w{number}")),
        window_index: number,
        window_active: true,
        pane_active: true,
        activity: Timestamp::from_secs(1),
        dead: None,
        pid: None,
        in_mode: false,
        synchronized: false,
        alternate_on: false,
        cursor: (0, 0),
        cursor_shown: true,
        size: (200, 50),
        history: 0,
        bell: false,
        title: String::new(),
    }
}

/// Looks twice at a fleet that does not change.
async fn unchanged(screens: Vec<Live>) {
    let count = screens.len();
    let dir = tempfile::tempdir().unwrap();
    let env: BTreeMap<String, String> = BTreeMap::new();
    let out = Outside {
        audit: nexus_watcher::daemon::audit::Audit::default(),
        edges: nexus_watcher::daemon::edges::Edges::default(),
        tmux: Saved { screens, captures: Cell::new(0) },
        clock: Clock::System,
        state: StateDir::new(dir.path()),
        settings: nexus_watcher::config::resolved::Settings::defaults(dir.path()).into(),
        env: Box::new(env),
        observer: observe::Observer::new().unwrap(),
        board: nexus_watcher::daemon::board::Board::default(),
    };
    let view = out.tmux.view().await.unwrap();
    let mut looks = Vec::new();
    for _ in 0..2 {
        let before = out.tmux.captures.get();
        let start = support::Stopwatch::start();
        let seen = observe::panes(&out, &view, &out.clock.now()).await.unwrap();
        looks.push((start.elapsed(), out.tmux.captures.get() - before));
        assert_eq!(seen.len(), count);
    }
    let ((first, all), (second, again)) = (looks[0], looks[1]);
    assert_eq!(all, u64::try_from(count).unwrap(), "the first look judges every screen");
    let each = |time: Duration| Figure::Time(time / u32::try_from(count).unwrap());
    let none = Budget::AtMost(Figure::Count(0));
    row(
        "screens judged in a second look at a fleet that did not change",
        Figure::Count(again),
        Some(("first look", Figure::Count(all))),
        none,
    );
    row("one pane of that second look", each(second), Some(("of the first look", each(first))), Budget::Open);
}
