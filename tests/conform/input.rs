//! What reaches the program.

use nexus_watcher::logic::ids::PaneId;
use nexus_watcher::sys::tmux::{Act, GuardedAct, Key, Tmux as _, TmuxError};

use crate::support::world::ask::{done, enter, facts, guarded, paste, receives, receives_only, shows, text};
use crate::support::world::{Program, World};

pub(crate) async fn a_paste_is_framed_where_the_program_asked<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Receiver { framed: true }).await;
    let mut expected = String::new();
    for text in ["one", "two\nlines\n\n", "tab\t日本 #{pid} $HOME 'q';", "-x"] {
        done(world, &guarded(world, pane, paste(text)).await).await;
        let sent = text.trim_end_matches('\n').replace('\n', "\r");
        expected.extend(["\u{1b}[200~", &sent, "\u{1b}[201~"]);
        receives(world, pane, &expected).await;
        done(world, &guarded(world, pane, enter()).await).await;
        expected += "\r";
        receives(world, pane, &expected).await;
    }
    assert_eq!(text(world, pane).await, ["ready"], "it shows nothing of it");
}

pub(crate) async fn a_paste_without_frames_has_carriage_returns<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Receiver { framed: false }).await;
    done(world, &guarded(world, pane, paste("two\nlines\n")).await).await;
    receives(world, pane, "two\rlines").await;
}

pub(crate) async fn keys_arrive_as_their_bytes<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Receiver { framed: true }).await;
    let keys = vec![Key::LetterI, Key::BSpace, Key::Enter, Key::Escape, Key::Enter];
    done(world, &guarded(world, pane, Act::Press(keys)).await).await;
    receives(world, pane, "i\u{7f}\r\u{1b}\r").await;
}

pub(crate) async fn text_that_may_not_be_sent_is_not_sent<W: World>(world: &W) {
    let pane = world.open("main", "w", Program::Receiver { framed: false }).await;
    let base = guarded(world, pane, paste("fine")).await;
    let needle = |text: &str| GuardedAct { require: vec![text.to_owned()], ..base.clone() };
    let mut acts: Vec<GuardedAct> = ["a\u{1b}[201~b", "a\rb", "\u{0}", "\u{7f}", "\u{9b}1m", "a\u{8}", "", "\n\n"]
        .map(|text| GuardedAct { act: paste(text), ..base.clone() })
        .to_vec();
    acts.push(GuardedAct { act: Act::Press(vec![]), ..base.clone() });
    acts.extend(["", "  ", "a\nb", "\u{1b}"].map(needle));
    acts.push(GuardedAct { refuse: vec!["a\tb".into()], ..base.clone() });
    acts.push(GuardedAct { rows: vec![" ".into()], ..base.clone() });
    for act in acts {
        let error = world.client().act(&act).await.unwrap_err();
        assert!(matches!(error, TmuxError::Malformed { .. }) && error.typed_nothing(), "{act:?}: {error}");
    }
    receives_only(world, pane, "fine").await;
}

pub(crate) async fn a_terminal_echoes_a_paste_and_enter_ends_the_line<W: World>(world: &W) {
    let pane = PaneId::new(0);
    done(world, &guarded(world, pane, paste("hello 日本")).await).await;
    shows(world, pane, &["hello 日本"]).await;
    assert_eq!(facts(world, pane).await.cursor, (10, 0));
    done(world, &guarded(world, pane, Act::Press(vec![Key::BSpace])).await).await;
    shows(world, pane, &["hello 日"]).await;
    done(world, &guarded(world, pane, enter()).await).await;
    shows(world, pane, &["hello 日", "hello 日"]).await;
    assert_eq!(facts(world, pane).await.cursor, (0, 2));
}
