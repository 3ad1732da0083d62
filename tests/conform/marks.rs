//! Bells and the stamps of activity.

use nexus_watcher::logic::ids::{PaneId, WindowId};
use nexus_watcher::logic::snapshot::PaneFacts;
use nexus_watcher::logic::time::Timestamp;
use nexus_watcher::sys::tmux::{Tmux as _, TmuxError};

use crate::support::world::ask::{done, enter, facts, guarded, panes, ring, ringing, shows, text};
use crate::support::world::{Program, World, until};

pub(crate) async fn a_bell_stands_until_it_is_cleared<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Cat).await;
    world.print(pane, "quiet");
    shows(world, pane, &["quiet"]).await;
    assert_eq!(ringing(world).await, []);
    let window = ring(world, pane).await;
    assert_eq!(ringing(world).await, [window], "looking takes no bell away");
    let before = panes(world).await;
    assert_eq!(world.client().clear_bells(&[window]).await, Ok(()));
    assert_eq!(ringing(world).await, []);
    assert_eq!(world.client().clear_bells(&[window]).await, Ok(()), "nothing rings: nothing to do");
    let quiet: Vec<_> = before.into_iter().map(|facts| PaneFacts { bell: false, ..facts }).collect();
    assert_eq!(panes(world).await, quiet, "and nothing else has changed");
    ring(world, pane).await;
}

pub(crate) async fn a_bell_that_was_not_named_is_never_cleared<W: World>(world: &W) {
    let one = world.open("main", "one", Program::Cat).await;
    let two = world.open("main", "two", Program::Cat).await;
    world.open("other", "first", Program::Cat).await;
    let elsewhere = world.open("other", "w", Program::Cat).await;
    let (first, second) = (ring(world, one).await, ring(world, two).await);
    let third = ring(world, elsewhere).await;
    for named in [vec![first], vec![second], vec![first, WindowId::new(0), third]] {
        let cleared = world.client().clear_bells(&named).await;
        assert!(matches!(cleared, Err(TmuxError::Refused { .. })), "{named:?}: {cleared:?}");
    }
    assert_eq!(ringing(world).await, [first, second], "the other session's bell was named and alone");
    assert_eq!(world.client().clear_bells(&[second, first]).await, Ok(()));
    assert_eq!(ringing(world).await, []);
    ring(world, elsewhere).await;
    ring(world, one).await;
    assert_eq!(world.client().clear_bells(&[first]).await, Ok(()), "what rings in another session is no matter");
    assert_eq!(ringing(world).await, [third]);
    assert_eq!(world.client().clear_bells(&[WindowId::new(99), first]).await, Ok(()), "none of them rings");
}

pub(crate) async fn the_bells_of_a_linked_window_are_those_of_its_sessions<W: World>(world: &W) {
    let linked = world.open("main", "linked", Program::Cat).await;
    world.open("zulu", "first", Program::Cat).await;
    let other = world.open("zulu", "other", Program::Cat).await;
    world.link(linked, "zulu");
    let (first, second) = (ring(world, linked).await, ring(world, other).await);
    let cleared = world.client().clear_bells(&[first]).await;
    assert!(matches!(cleared, Err(TmuxError::Refused { .. })), "{cleared:?}");
    assert_eq!(ringing(world).await, [first, second], "it is cleared in one session and rings in the other");
    assert_eq!(world.client().clear_bells(&[first, second]).await, Ok(()));
    assert_eq!(ringing(world).await, []);
}

pub(crate) async fn whoever_looks_has_heard_the_bell<W: World>(world: &W) {
    let elsewhere = world.open("other", "w", Program::Cat).await;
    ring(world, elsewhere).await;
    assert_eq!(ringing(world).await.len(), 1, "a current window rings too where nobody looks");
    world.close(elsewhere);
    let linked = world.open("main", "linked", Program::Cat).await;
    world.open("other", "first", Program::Cat).await;
    world.link(linked, "other");
    ring(world, linked).await;
    world.select(linked, "other");
    assert_eq!(ringing(world).await, [], "in one session and so in all");
    assert!(!facts(world, linked).await.window_active, "and nothing moves in the others");
    let pane = world.open("main", "w", Program::Cat).await;
    ring(world, pane).await;
    world.select(pane, "main");
    assert_eq!(ringing(world).await, []);
    world.select(PaneId::new(0), "main");
    assert_eq!(ringing(world).await, []);
}

pub(crate) async fn stamps_are_whole_seconds<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Cat).await;
    let beside = world.split(pane);
    // Two changes within a second have the same stamp; a busy machine may need several attempts to make two.
    until("two changes in a second", async || {
        world.print(pane, "a");
        let one = async || (facts(world, pane).await, text(world, pane).await.concat());
        let first = until("the first", async || Some(one().await).filter(|(_, text)| !text.is_empty())).await;
        world.print(pane, "b");
        let second = until("the second", async || Some(one().await).filter(|(_, text)| *text != first.1)).await;
        assert_eq!(second.0.activity.millis() % 1000, 0);
        assert_eq!(
            facts(world, beside).await.activity,
            facts(world, pane).await.activity,
            "panes share their window's"
        );
        (second.0.activity == first.0.activity).then_some(())
    })
    .await;
    let before = facts(world, pane).await.activity;
    let later = until("a later stamp", async || {
        world.print(pane, "c");
        Some(facts(world, pane).await.activity).filter(|stamp| *stamp > before)
    })
    .await;
    assert_eq!(later.millis() % 1000, 0);
}

/// Waits until a stamp that is made now is later than this pane's; that one's stamp.
async fn a_second_passes<W: World>(world: &W, pane: PaneId) -> Timestamp {
    let before = facts(world, pane).await.activity;
    let mark = world.open("clock", "w", Program::Cat).await;
    until("a second", async || {
        world.print(mark, "x");
        (facts(world, mark).await.activity > before).then_some(())
    })
    .await;
    before
}

pub(crate) async fn what_is_no_output_leaves_no_stamp<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Shows(vec![])).await;
    let before = a_second_passes(world, pane).await;
    world.copy_mode(pane, true);
    assert!(facts(world, pane).await.in_mode);
    world.copy_mode(pane, false);
    world.synchronize(pane, true);
    world.synchronize(pane, false);
    world.rename(pane, "v");
    done(world, &guarded(world, pane, enter()).await).await;
    world.terminate(pane).await;
    assert_eq!(text(world, pane).await.len(), 1, "its screen has changed");
    world.respawn(pane);
    assert_eq!(text(world, pane).await.len(), 0, "and once more");
    assert_eq!(facts(world, pane).await.activity, before);
}

pub(crate) async fn a_window_that_becomes_current_is_stamped<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Shows(vec![])).await;
    let before = a_second_passes(world, pane).await;
    world.select(PaneId::new(0), "main");
    assert!(facts(world, PaneId::new(0)).await.activity <= before, "it was current before");
    world.select(pane, "main");
    let selected = facts(world, pane).await.activity;
    assert!(selected > before);
    let first = a_second_passes(world, PaneId::new(0)).await;
    world.close(pane);
    assert!(facts(world, PaneId::new(0)).await.activity > first, "when the current one closes, too");
}
