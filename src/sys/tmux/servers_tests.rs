//! Several servers by a fake of each, on the virtual clock.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::logic::ids::ServerId;
use crate::logic::snapshot::PaneFacts;
use crate::logic::worker::scope::tests::pane;
use crate::sys::tmux::Act;

/// How a server is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Answers,
    Hangs,
    Absent,
    Refuses,
}

/// One server; clones are the same one.
#[derive(Clone)]
struct Fake(Rc<Inner>);

struct Inner {
    pid: Cell<u32>,
    way: Cell<Way>,
    panes: RefCell<Vec<PaneFacts>>,
    /// What it was asked for, in words.
    asked: RefCell<Vec<String>>,
}

impl Fake {
    fn new(pid: u32) -> Self {
        let panes = RefCell::new(vec![pane(0, "orchestrator"), pane(5, "w1")]);
        Self(Rc::new(Inner { pid: Cell::new(pid), way: Cell::new(Way::Answers), panes, asked: RefCell::default() }))
    }

    fn is(&self, way: Way) {
        self.0.way.set(way);
    }

    /// What it was asked for since the last call.
    fn asked(&self) -> Vec<String> {
        self.0.asked.take()
    }

    /// Answers as it is now; one that hangs answers in half a second after it stopped hanging, or after a minute by an
    /// error, as the real client does sooner.
    async fn answer<R>(&self, what: String, answer: R) -> Result<R, TmuxError> {
        self.0.asked.borrow_mut().push(what);
        let began = Instant::now();
        while self.0.way.get() == Way::Hangs {
            if began.elapsed() >= Duration::from_secs(4) {
                return Err(TmuxError::Timeout { doing: "listing panes", after_ms: 4000 });
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        match self.0.way.get() {
            Way::Absent => Err(TmuxError::NoServer { socket: format!("socket {}", self.0.pid.get()) }),
            Way::Refuses => Err(TmuxError::Refused { doing: "listing panes", stderr: "no".into() }),
            Way::Answers | Way::Hangs => Ok(answer),
        }
    }

    fn id(&self) -> ServerId {
        ServerId { socket: "/s".into(), pid: self.0.pid.get(), start_s: 1 }
    }
}

impl Tmux for Fake {
    async fn view(&self) -> Result<TmuxView, TmuxError> {
        self.answer("view".into(), ()).await?;
        Ok(TmuxView::of_one(self.id(), "3.5", self.0.panes.borrow().clone()))
    }

    async fn view_of(&self, window: &WindowName) -> Result<TmuxView, TmuxError> {
        self.answer(format!("view {window}"), ()).await?;
        Ok(TmuxView::of_one(self.id(), "3.5", self.0.panes.borrow().clone()).of_window(window))
    }

    async fn capture(&self, requests: &[CaptureRequest]) -> Result<Vec<Capture>, TmuxError> {
        let ids: Vec<String> = requests.iter().map(|request| request.pane.to_string()).collect();
        let rows = |id: &String| Capture::Rows(vec![format!("{id} of {}", self.0.pid.get())]);
        self.answer(format!("capture {}", ids.join(" ")), ids.iter().map(rows).collect()).await
    }

    async fn read(&self, reading: &mut dyn Reading) -> Result<(), TmuxError> {
        crate::sys::tmux::read_in_rounds(self, reading).await
    }

    async fn act(&self, act: &GuardedAct) -> Result<ActOutcome, TmuxError> {
        self.answer(format!("act {}", act.pane), ActOutcome::Done).await
    }

    async fn clear_bells(&self, windows: &[WindowId]) -> Result<(), TmuxError> {
        let ids: Vec<String> = windows.iter().map(ToString::to_string).collect();
        self.answer(format!("clear {}", ids.join(" ")), ()).await
    }
}

/// Two servers with the same panes, and both together.
fn two() -> (Fake, Fake, Servers<Fake>) {
    let (a, b) = (Fake::new(1), Fake::new(2));
    let servers = Servers::new([("socket a".to_owned(), a.clone()), ("socket b".to_owned(), b.clone())]);
    (a, b, servers)
}

fn ids(view: &TmuxView) -> Vec<String> {
    view.panes.iter().map(|pane| format!("{} {} {}", pane.pane, pane.window, pane.session)).collect()
}

async fn later(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}

#[tokio::test(start_paused = true)]
async fn what_two_servers_list_is_told_apart_by_number() {
    let (_, _, servers) = two();
    let view = servers.view().await.unwrap();
    assert_eq!(ids(&view), ["%0 @0 $0", "%5 @5 $0", "1/%0 1/@0 1/$0", "1/%5 1/@5 1/$0"]);
    let key = |text: &str| view.key(PaneId::parse(text).unwrap()).map(|key| key.server.pid);
    assert_eq!((key("%5"), key("1/%5"), view.trouble()), (Some(1), Some(2), None));
    let target = servers.view_of(&WindowName("orchestrator".into())).await.unwrap();
    assert_eq!(ids(&target), ["%0 @0 $0", "1/%0 1/@0 1/$0"]);
}

#[tokio::test(start_paused = true)]
async fn every_question_and_act_goes_to_its_own_server_by_the_raw_id() {
    let (a, b, servers) = two();
    let request = |text: &str| CaptureRequest { pane: PaneId::parse(text).unwrap(), rows: None, styled: false };
    let captures = servers.capture(&["1/%5", "%0", "1/%0", "2/%0"].map(request)).await.unwrap();
    let rows = |text: &str| Capture::Rows(vec![text.to_owned()]);
    assert_eq!(captures, [rows("%5 of 2"), rows("%0 of 1"), rows("%0 of 2"), Capture::Gone]);
    assert_eq!((a.asked(), b.asked()), (vec!["capture %0".to_owned()], vec!["capture %5 %0".to_owned()]));
    let act = |text: &str| GuardedAct {
        server: a.id(),
        pane: PaneId::parse(text).unwrap(),
        pid: 1,
        require: vec![],
        rows: vec![],
        refuse: vec![],
        no_shell: false,
        act: Act::Press(vec![]),
    };
    assert_eq!(Tmux::act(&servers, &act("1/%5")).await, Ok(ActOutcome::Done));
    assert_eq!(Tmux::act(&servers, &act("7/%5")).await, Ok(ActOutcome::Refused(ActRefusal::Gone)));
    assert_eq!((a.asked(), b.asked()), (vec![], vec!["act %5".to_owned()]));
    servers.clear_bells(&["1/@5", "@0", "1/@0"].map(|text| WindowId::parse(text).unwrap())).await.unwrap();
    assert_eq!((a.asked(), b.asked()), (vec!["clear @0".to_owned()], vec!["clear @5 @0".to_owned()]));
}

/// A reading of the panes with these ids, which asks for each a second time.
#[derive(Default)]
struct Twice {
    ids: Vec<&'static str>,
    asked: usize,
    further: Vec<usize>,
    taken: Vec<String>,
}

impl Twice {
    fn request(&self, at: usize) -> CaptureRequest {
        CaptureRequest { pane: PaneId::parse(self.ids[at]).unwrap(), rows: None, styled: false }
    }
}

impl Reading for Twice {
    fn begin(&mut self) {
        (self.asked, self.further, self.taken) = (0, vec![], vec![]);
    }

    fn next(&mut self) -> Option<(usize, CaptureRequest)> {
        let at = match self.further.pop() {
            Some(at) => at,
            None if self.asked < self.ids.len() => {
                self.asked += 1;
                self.asked - 1
            }
            None => return None,
        };
        Some((at, self.request(at)))
    }

    fn take(&mut self, at: usize, request: CaptureRequest, capture: Capture) {
        assert_eq!(request, self.request(at), "as it was asked");
        let Capture::Rows(rows) = capture else { panic!("{capture:?}") };
        if self.taken.len() < self.ids.len() {
            self.further.push(at);
        }
        self.taken.push(rows[0].clone());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reading_goes_to_the_one_server_that_it_is_of() {
    let (a, b, servers) = two();
    let mut reading = Twice { ids: vec!["1/%0", "1/%5"], ..Twice::default() };
    servers.read(&mut reading).await.unwrap();
    assert_eq!(reading.taken.len(), 4);
    assert!(reading.taken.iter().all(|rows| rows.ends_with(" of 2")), "{:?}", reading.taken);
    assert_eq!((a.asked(), b.asked().len()), (vec![], 2));
    let mixed = servers.read(&mut Twice { ids: vec!["%0", "1/%5"], ..Twice::default() }).await;
    assert!(matches!(mixed, Err(TmuxError::Malformed { .. })), "{mixed:?}");
    assert_eq!(b.asked(), Vec::<String>::new(), "and nothing was asked of the wrong one");
    servers.read(&mut Twice::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_keeps_nobody_waiting_and_its_panes_stay() {
    let (a, b, servers) = two();
    let whole = ids(&servers.view().await.unwrap());
    b.is(Way::Hangs);
    let mut longest = Duration::ZERO;
    for look in 0..100 {
        let began = Instant::now();
        let view = servers.view().await.unwrap();
        longest = longest.max(if look == 0 { Duration::ZERO } else { began.elapsed() });
        assert!(began.elapsed() <= Duration::from_secs(1), "look {look}: {:?}", began.elapsed());
        assert_eq!(ids(&view), whole);
        assert_eq!(
            (view.key(PaneId::new(5)).map(|key| key.server), view.key(PaneId::new(5).on(1))),
            (Some(a.id()), None)
        );
        let why = view.silence(1).unwrap();
        assert!(why.starts_with("socket b: tmux did not answer within ") && view.silence(0).is_none(), "{why}");
        assert_eq!(view.unlisted().next(), None);
        later(2).await;
    }
    assert!(longest <= Duration::from_millis(100), "{longest:?}");
    let of_name = servers.view_of(&WindowName("w1".into())).await.unwrap();
    assert_eq!(ids(&of_name), ["%5 @5 $0", "1/%5 1/@5 1/$0"], "by name as well");
    assert!((100..=110).contains(&a.asked().len()));
    // 1, 2, 4, 8, 16, 32 and then 60 seconds apart, each question being open for four.
    let asked = b.asked().len();
    assert!((7..=10).contains(&asked), "{asked}");
    // It is heard again at the latest when it is asked again.
    b.is(Way::Answers);
    b.0.panes.borrow_mut().pop();
    later(60).await;
    let view = servers.view().await.unwrap();
    assert_eq!((view.silence(1), ids(&view).len()), (None, 3));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_late_is_taken_up_by_a_later_look() {
    let (_, b, servers) = two();
    servers.view().await.unwrap();
    b.is(Way::Hangs);
    assert!(servers.view().await.unwrap().silence(1).is_some());
    later(1).await;
    b.is(Way::Answers);
    let asked = b.asked().len();
    assert_eq!(servers.view().await.unwrap().silence(1), None);
    assert_eq!((asked, b.asked().len()), (2, 0), "by the question that was open");
}

#[tokio::test(start_paused = true)]
async fn looks_at_the_same_time_ask_a_silent_server_once() {
    let (_, b, servers) = two();
    b.is(Way::Hangs);
    servers.view().await.unwrap();
    later(10).await;
    b.asked();
    servers.view().await.unwrap();
    later(2).await;
    let (one, two) = tokio::join!(servers.view(), servers.view());
    assert!(one.unwrap().silence(1).is_some() && two.unwrap().silence(1).is_some());
    assert!(b.asked().len() <= 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_was_never_heard_is_not_known_and_one_that_is_gone_has_nothing() {
    let (_, b, servers) = two();
    b.is(Way::Hangs);
    let view = servers.view().await.unwrap();
    assert_eq!((ids(&view).len(), view.unlisted().collect::<Vec<_>>()), (2, vec![1]));
    b.is(Way::Absent);
    later(5).await;
    servers.view().await.unwrap();
    later(5).await;
    let view = servers.view().await.unwrap();
    assert_eq!((ids(&view).len(), view.unlisted().next(), view.silence(1)), (2, None, None));
    assert!(matches!(&view.servers[1], ServerAnswer::Gone(why) if why.contains("socket 2")), "{view:?}");
    // It comes back as another one.
    b.0.pid.set(9);
    b.is(Way::Answers);
    later(8).await;
    let view = servers.view().await.unwrap();
    assert_eq!(view.key(PaneId::new(5).on(1)).map(|key| key.server.pid), Some(9));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_loses_its_panes_at_once() {
    let (_, b, servers) = two();
    servers.view().await.unwrap();
    b.is(Way::Absent);
    let view = servers.view().await.unwrap();
    assert_eq!((ids(&view).len(), view.silence(1), view.unlisted().next()), (2, None, None));
}

#[tokio::test(start_paused = true)]
async fn without_any_answer_it_is_an_error_that_names_each() {
    let (a, b, servers) = two();
    a.is(Way::Absent);
    b.is(Way::Refuses);
    let error = servers.view().await.unwrap_err();
    let TmuxError::NoneAnswers { why } = &error else { panic!("{error:?}") };
    assert!(why.contains("no tmux server on socket 1") && why.contains("socket b: tmux refused"), "{why}");
    b.is(Way::Absent);
    later(10).await;
    let expected = TmuxError::NoServer { socket: "socket 1, socket 2".to_owned() };
    assert_eq!(servers.view().await.unwrap_err(), expected);
}

#[tokio::test(start_paused = true)]
async fn one_server_is_asked_as_if_there_was_nothing_between() {
    let only = Fake::new(1);
    let servers = Servers::new([("socket a".to_owned(), only.clone())]);
    assert_eq!(servers.view().await, only.view().await);
    only.is(Way::Hangs);
    let began = Instant::now();
    assert_eq!(servers.view().await, Err(TmuxError::Timeout { doing: "listing panes", after_ms: 4000 }));
    assert!(began.elapsed() >= Duration::from_secs(4), "its own deadline counts");
    only.is(Way::Absent);
    assert_eq!(servers.view().await, Err(TmuxError::NoServer { socket: "socket 1".to_owned() }));
    only.is(Way::Answers);
    assert_eq!(ids(&servers.view().await.unwrap()).len(), 2, "and it is never left alone");
}

#[tokio::test(start_paused = true)]
async fn the_same_server_by_two_names_is_watched_once() {
    let (_, b, servers) = two();
    b.0.pid.set(1);
    let view = servers.view().await.unwrap();
    assert_eq!(ids(&view).len(), 2);
    assert!(view.trouble().unwrap().contains("the same server as socket a"), "{:?}", view.trouble());
}
