//! What the checks ask of a [`World`], in short.

#![expect(clippy::unwrap_used, reason = "a failure is a panic")]

use nexus_watcher::logic::ids::{PaneId, WindowId};
use nexus_watcher::logic::snapshot::PaneFacts;
use nexus_watcher::sys::tmux::{Act, ActOutcome, ActRefusal, Capture, CaptureRequest, GuardedAct, Key, Tmux as _};

use super::{World, until};

pub(crate) fn whole(pane: PaneId) -> CaptureRequest {
    CaptureRequest { pane, rows: None, styled: false }
}

pub(crate) fn paste(text: &str) -> Act {
    Act::Paste(text.to_owned())
}

pub(crate) fn enter() -> Act {
    Act::Press(vec![Key::Enter])
}

/// Every pane.
pub(crate) async fn panes<W: World>(world: &W) -> Vec<PaneFacts> {
    world.client().view().await.unwrap().panes
}

/// What is said of a pane.
pub(crate) async fn facts<W: World>(world: &W, pane: PaneId) -> PaneFacts {
    panes(world).await.into_iter().find(|facts| facts.pane == pane).unwrap()
}

/// The rows of a pane.
pub(crate) async fn rows<W: World>(world: &W, request: CaptureRequest) -> Vec<String> {
    match world.client().capture(&[request]).await.unwrap().as_slice() {
        [Capture::Rows(rows)] => rows.clone(),
        other => panic!("{request:?}: {other:?}"),
    }
}

/// The rows of a pane that are not blank.
pub(crate) async fn text<W: World>(world: &W, pane: PaneId) -> Vec<String> {
    rows(world, whole(pane)).await.into_iter().filter(|row| !row.is_empty()).collect()
}

/// Waits until a pane shows these rows and no others.
pub(crate) async fn shows<W: World>(world: &W, pane: PaneId, wanted: &[&str]) {
    until(&format!("{wanted:?}"), async || (text(world, pane).await == wanted).then_some(())).await;
}

/// An act on a pane as it is now.
pub(crate) async fn guarded<W: World>(world: &W, pane: PaneId, act: Act) -> GuardedAct {
    let view = world.client().view().await.unwrap();
    let pid = view.panes.iter().find(|facts| facts.pane == pane).and_then(|facts| facts.pid).unwrap();
    GuardedAct {
        server: view.server(0).unwrap().clone(),
        pane,
        pid,
        require: vec![],
        rows: vec![],
        refuse: vec![],
        no_shell: false,
        act,
    }
}

pub(crate) async fn done<W: World>(world: &W, act: &GuardedAct) {
    assert_eq!(world.client().act(act).await, Ok(ActOutcome::Done), "{act:?}");
}

pub(crate) async fn refused<W: World>(world: &W, act: &GuardedAct, why: ActRefusal) {
    assert_eq!(world.client().act(act).await, Ok(ActOutcome::Refused(why)), "{act:?}");
}

/// Waits until a receiver was sent as much as this, and compares.
pub(crate) async fn receives<W: World>(world: &W, pane: PaneId, wanted: &str) {
    let got = until("what was sent", async || Some(world.received(pane)).filter(|got| got.len() >= wanted.len())).await;
    assert_eq!(got, wanted);
}

/// A receiver without frames, and what was meant for it is on its way: what the world sends next comes after it.
pub(crate) async fn receives_only<W: World>(world: &W, pane: PaneId, mark: &str) {
    done(world, &guarded(world, pane, paste(mark)).await).await;
    receives(world, pane, mark).await;
}

/// The windows that ring.
pub(crate) async fn ringing<W: World>(world: &W) -> Vec<WindowId> {
    panes(world).await.into_iter().filter(|facts| facts.bell).map(|facts| facts.window).collect()
}

/// Rings, and waits until it is told.
pub(crate) async fn ring<W: World>(world: &W, pane: PaneId) -> WindowId {
    world.ring(pane);
    until("the bell", async || Some(facts(world, pane).await).filter(|facts| facts.bell)).await.window
}
