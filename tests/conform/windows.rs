//! Panes, windows and sessions: what is listed, and how it is told apart.

use nexus_watcher::logic::ids::{PaneId, WindowName};
use nexus_watcher::sys::tmux::{ActRefusal, Capture, GuardedAct, Tmux as _};

use crate::support::world::ask::{enter, facts, guarded, panes, paste, refused, text, whole};
use crate::support::world::{Program, World};

pub(crate) async fn a_missing_pane_is_gone_and_never_another<W: World>(world: &W) {
    let (stays, goes) = (
        world.open("main", "stays", Program::Shows(vec![])).await,
        world.open("main", "goes", Program::Receiver { framed: false }).await,
    );
    let act = guarded(world, goes, paste("x")).await;
    world.close(goes);
    assert!(panes(world).await.iter().all(|facts| facts.pane != goes));
    for missing in [goes, PaneId::new(999)] {
        let seen = world.client().capture(&[whole(missing), whole(stays), whole(missing)]).await.unwrap();
        let [Capture::Gone, Capture::Rows(rows), Capture::Gone] = seen.as_slice() else { panic!("{seen:?}") };
        assert_eq!(rows[0], "end", "a missing pane holds nothing up");
        for what in [paste("x"), enter()] {
            refused(world, &GuardedAct { pane: missing, act: what, ..act.clone() }, ActRefusal::Gone).await;
        }
    }
    assert_eq!(text(world, stays).await, ["end"]);
    assert!(text(world, PaneId::new(0)).await.is_empty());
}

pub(crate) async fn names_are_labels_that_may_repeat_and_change<W: World>(world: &W) {
    let one = world.open("main", "same", Program::Cat).await;
    let two = world.open("main", "same", Program::Cat).await;
    let before = (facts(world, one).await, facts(world, two).await);
    assert_eq!(before.0.window_name, before.1.window_name);
    assert_ne!(before.0.window, before.1.window);
    world.rename(one, "日本 #{pid} a:b.c");
    world.renumber(two, 7);
    let after = (facts(world, one).await, facts(world, two).await);
    assert_eq!(after.0.window_name.as_str(), "日本 #{pid} a:b.c");
    assert_eq!((after.1.window_index, after.1.window_name.as_str()), (7, "same"));
    assert_eq!((after.0.window, after.0.pid), (before.0.window, before.0.pid));
    assert_eq!((after.1.window, after.1.pid), (before.1.window, before.1.pid));
    let third = world.open("main", "third", Program::Cat).await;
    assert_eq!(facts(world, third).await.window_index, 2, "the lowest number that is free");
}

pub(crate) async fn a_name_finds_its_own_windows_only<W: World>(world: &W) {
    let view_of = async |name: &str| -> Vec<PaneId> {
        let view = world.client().view_of(&WindowName(name.to_owned())).await.unwrap();
        assert_eq!(view.servers, world.client().view().await.unwrap().servers);
        view.panes.into_iter().map(|facts| facts.pane).collect()
    };
    for name in ["w", "W", "w1", "a b", "#{window_name}", "w,x}", "日本", "*", "-t", "@0", "%0"] {
        let one = world.open("main", name, Program::Cat).await;
        let two = world.open("other", name, Program::Cat).await;
        let second = world.split(one);
        assert_eq!(view_of(name).await, [one, second, two], "{name}");
        world.close(one);
        assert_eq!(view_of(name).await, [two], "{name}");
    }
    for name in ["absent", "fir", "first*", "#{window_name}x", ""] {
        assert_eq!(view_of(name).await, [], "{name}");
    }
    assert_eq!(view_of("first").await, [PaneId::new(0)]);
}

pub(crate) async fn sessions_are_listed_by_name_and_windows_by_number<W: World>(world: &W) {
    let zulu = world.open("zulu", "w", Program::Cat).await;
    let alpha = world.open("alpha", "w", Program::Cat).await;
    let one = world.open("main", "one", Program::Cat).await;
    let two = world.open("main", "two", Program::Cat).await;
    let beside = world.split(one);
    world.renumber(one, 9);
    let order: Vec<_> = panes(world).await.into_iter().map(|f| (f.session_name, f.window_index, f.pane)).collect();
    let expected = [
        ("alpha", 0, alpha),
        ("main", 0, PaneId::new(0)),
        ("main", 2, two),
        ("main", 9, one),
        ("main", 9, beside),
        ("zulu", 0, zulu),
    ];
    assert_eq!(order, expected.map(|(session, index, pane)| (session.to_owned(), index, pane)));
    assert_ne!(facts(world, zulu).await.session, facts(world, alpha).await.session);
    assert_eq!(facts(world, one).await.window, facts(world, beside).await.window);
    assert!(facts(world, one).await.pane_active && !facts(world, beside).await.pane_active);
}

pub(crate) async fn when_the_current_window_closes_the_one_before_is_current<W: World>(world: &W) {
    let mut open = Vec::new();
    for name in ["a", "b", "c"] {
        open.push(world.open("main", name, Program::Cat).await);
    }
    let [a, b, c] = open[..] else { unreachable!() };
    let current = async || -> Vec<PaneId> {
        panes(world).await.into_iter().filter(|facts| facts.window_active).map(|facts| facts.pane).collect()
    };
    assert_eq!(current().await, [PaneId::new(0)], "a window that opens in the background stays there");
    world.select(b, "main");
    world.select(c, "main");
    world.close(c);
    assert_eq!(current().await, [b]);
    world.close(b);
    assert_eq!(current().await, [PaneId::new(0)]);
    world.close(PaneId::new(0));
    assert_eq!(current().await, [a]);
    let mut open = Vec::new();
    for name in ["d", "e", "f"] {
        open.push(world.open("other", name, Program::Cat).await);
    }
    world.close(open[0]);
    assert_eq!(current().await, [a, open[2]], "left of the first is the last");
}

pub(crate) async fn a_linked_window_is_listed_once<W: World>(world: &W) {
    let pane = world.open("zulu", "w", Program::Cat).await;
    world.open("alpha", "v", Program::Cat).await;
    world.link(pane, "alpha");
    world.link(pane, "main");
    let listed: Vec<_> = panes(world).await.into_iter().filter(|facts| facts.pane == pane).collect();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].session_name.as_str(), listed[0].window_index), ("alpha", 1), "under the first session");
    assert!(!listed[0].window_active, "what it is in that session");
    world.close(pane);
    assert_eq!(panes(world).await.len(), 2, "a session without windows is gone");
}
