//! The server: its end, its absence, its successor.

use nexus_watcher::logic::ids::{PaneId, WindowId, WindowName};
use nexus_watcher::logic::snapshot::PaneFacts;
use nexus_watcher::sys::tmux::{ActRefusal, Tmux as _, TmuxError};

use crate::support::world::ask::{enter, guarded, panes, paste, refused, text, whole};
use crate::support::world::{Program, World, until};

pub(crate) async fn without_a_server_every_question_says_so<W: World>(world: &W) {
    let pane = PaneId::new(0);
    let act = guarded(world, pane, enter()).await;
    world.stop_server().await;
    let client = world.client();
    for _ in 0..2 {
        let errors = [
            client.view().await.unwrap_err(),
            client.view_of(&WindowName("first".into())).await.unwrap_err(),
            client.capture(&[whole(pane)]).await.unwrap_err(),
            client.clear_bells(&[WindowId::new(0)]).await.unwrap_err(),
            client.act(&act).await.unwrap_err(),
        ];
        for error in &errors {
            assert!(matches!(error, TmuxError::NoServer { .. }) && error.typed_nothing(), "{errors:?}");
        }
        assert_eq!(client.capture(&[]).await, Ok(vec![]), "nothing is asked, so nothing fails");
        assert_eq!(client.clear_bells(&[]).await, Ok(()));
    }
}

pub(crate) async fn a_server_that_ends_is_noticed_and_its_successor_is_another<W: World>(world: &W) {
    let first = world.client().view().await.unwrap();
    let mut act = guarded(world, PaneId::new(0), paste("meant for another")).await;
    world.stop_server().await;
    assert!(matches!(world.client().view().await, Err(TmuxError::NoServer { .. })));
    world.start_server().await;
    let second = world.client().view().await.unwrap();
    let (before, after) = (first.server(0).unwrap(), second.server(0).unwrap());
    assert_ne!(before, after);
    assert_eq!(before.socket, after.socket);
    let ids = |panes: &[PaneFacts]| -> Vec<_> { panes.iter().map(|f| (f.pane, f.window, f.session)).collect() };
    assert_eq!(ids(&first.panes), ids(&second.panes), "numbers begin anew");
    act.pid = second.panes[0].pid.unwrap();
    refused(world, &act, ActRefusal::OtherServer).await;
    assert!(text(world, PaneId::new(0)).await.is_empty());
}

pub(crate) async fn the_last_window_takes_the_server_with_it<W: World>(world: &W) {
    let other = world.open("other", "w", Program::Cat).await;
    world.close(PaneId::new(0));
    assert_eq!(panes(world).await.iter().map(|facts| facts.pane).collect::<Vec<_>>(), [other]);
    world.close(other);
    until("the end of the server", async || {
        matches!(world.client().view().await, Err(TmuxError::NoServer { .. })).then_some(())
    })
    .await;
}
