//! Panes that must not be written to.

use nexus_watcher::logic::ids::{PaneId, ServerId};
use nexus_watcher::logic::snapshot::DeadPane;
use nexus_watcher::sys::tmux::{ActRefusal, GuardedAct};

use crate::support::world::ask::{
    done, enter, facts, guarded, paste, receives_only, refused, rows, shows, text, whole,
};
use crate::support::world::{Program, SIZE, World};

pub(crate) async fn an_ended_program_leaves_its_pane_and_how_it_ended<W: World>(world: &W) {
    let ended = world.open("main", "w", Program::Ends(7)).await;
    let pane = world.open("main", "w", Program::Shows(vec!["one", "two"])).await;
    let before = facts(world, pane).await;
    assert_eq!(before.dead, None);
    world.terminate(pane).await;
    let after = facts(world, pane).await;
    assert_eq!(after.dead, Some(DeadPane { status: None, signal: Some(15) }));
    assert_eq!(facts(world, ended).await.dead, Some(DeadPane { status: Some(7), signal: None }));
    assert_eq!((after.pid, after.window, after.session), (before.pid, before.window, before.session));
    let shown = rows(world, whole(pane)).await;
    assert_eq!((shown.len(), &shown[0]), (usize::from(SIZE.1), &"two".to_owned()), "the screen went up by a row");
    assert!(shown[39].starts_with("Pane is dead (signal 15, "), "{shown:?}");
    assert!(rows(world, whole(ended)).await[39].starts_with("Pane is dead (status 7, "));
    for act in [paste("x"), enter()] {
        refused(world, &guarded(world, pane, act.clone()).await, ActRefusal::Dead).await;
        refused(world, &guarded(world, ended, act).await, ActRefusal::Dead).await;
    }
    assert_eq!(rows(world, whole(pane)).await, shown);
    assert!(facts(world, PaneId::new(0)).await.dead.is_none(), "the server lives");
}

pub(crate) async fn another_program_in_the_pane_is_another_process<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Shows(vec!["old"])).await;
    let act = guarded(world, pane, paste("x")).await;
    world.respawn(pane);
    refused(world, &act, ActRefusal::OtherProcess).await;
    let fresh = guarded(world, pane, paste("y")).await;
    assert_ne!(fresh.pid, act.pid);
    done(world, &fresh).await;
    shows(world, pane, &["y"]).await;
    let ended = world.open("main", "w", Program::Ends(0)).await;
    world.respawn(ended);
    assert_eq!(facts(world, ended).await.dead, None);
    done(world, &guarded(world, ended, paste("z")).await).await;
    shows(world, ended, &["z"]).await;
}

pub(crate) async fn in_copy_mode_a_pane_is_read_and_not_written<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Receiver { framed: false }).await;
    world.copy_mode(pane, true);
    assert!(facts(world, pane).await.in_mode);
    assert!(!facts(world, PaneId::new(0)).await.in_mode);
    world.print(pane, "meanwhile");
    shows(world, pane, &["ready", "meanwhile"]).await;
    for act in [paste("x"), enter()] {
        refused(world, &guarded(world, pane, act).await, ActRefusal::InMode).await;
    }
    assert!(facts(world, pane).await.in_mode, "a refused act leaves no mode");
    world.copy_mode(pane, false);
    assert!(!facts(world, pane).await.in_mode);
    receives_only(world, pane, "after").await;
}

pub(crate) async fn a_synchronised_window_is_never_written_to<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Receiver { framed: false }).await;
    let beside = world.split(pane);
    let alone = world.open("main", "alone", Program::Receiver { framed: false }).await;
    for on in [pane, alone] {
        world.synchronize(on, true);
        assert!(facts(world, on).await.synchronized);
    }
    assert!(facts(world, beside).await.synchronized && !facts(world, PaneId::new(0)).await.synchronized);
    for target in [pane, beside, alone] {
        for act in [paste("x"), enter()] {
            refused(world, &guarded(world, target, act).await, ActRefusal::Synchronized).await;
        }
    }
    for on in [pane, alone] {
        world.synchronize(on, false);
        receives_only(world, on, "after").await;
    }
    assert!(text(world, beside).await.is_empty(), "a paste is for one pane");
}

pub(crate) async fn another_server_is_refused<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Receiver { framed: false }).await;
    let good = guarded(world, pane, paste("x")).await;
    let other = |server: ServerId| GuardedAct { server, ..good.clone() };
    let ServerId { socket, pid, start_s } = good.server.clone();
    refused(world, &other(ServerId { socket: socket.clone(), pid: pid + 1, start_s }), ActRefusal::OtherServer).await;
    refused(world, &other(ServerId { socket, pid, start_s: start_s - 1 }), ActRefusal::OtherServer).await;
    receives_only(world, pane, "x").await;
}

pub(crate) async fn the_first_reason_is_told<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Shows(vec![])).await;
    let wrong = |act: GuardedAct| GuardedAct { require: vec!["absent".into()], ..act };
    let act = wrong(guarded(world, pane, enter()).await);
    let stranger = GuardedAct { pid: act.pid + 1, ..act.clone() };
    refused(world, &act, ActRefusal::ScreenChanged).await;
    refused(world, &stranger, ActRefusal::OtherProcess).await;
    world.synchronize(pane, true);
    refused(world, &stranger, ActRefusal::Synchronized).await;
    world.copy_mode(pane, true);
    refused(world, &stranger, ActRefusal::InMode).await;
    world.copy_mode(pane, false);
    world.terminate(pane).await;
    refused(world, &stranger, ActRefusal::Dead).await;
    world.close(pane);
    refused(world, &stranger, ActRefusal::Gone).await;
    let mut elsewhere = stranger;
    elsewhere.server.pid += 1;
    refused(world, &elsewhere, ActRefusal::OtherServer).await;
}
