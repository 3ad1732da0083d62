//! The one gate to a pane. Nothing else in the program may call [`Tmux::act`].
//!
//! The last look at the screen belongs to the act itself: tmux checks the pane, its process and the texts on its
//! screen in the same command list that types. A mismatch is a refusal with a reason, not an error. The caller has
//! journalled the intent before it comes here.

use crate::logic::delivery::gate::Hold;
use crate::logic::delivery::machine::Happened;
use crate::logic::ids::PaneKey;
use crate::sys::tmux::{Act, ActOutcome, ActRefusal, GuardedAct, Key, Tmux};

/// Pastes a text into a pane, if each of `require` is still on its screen.
pub(super) async fn paste<T: Tmux>(tmux: &T, key: PaneKey, pid: u32, require: Vec<String>, text: String) -> Happened {
    act(tmux, key, pid, require, Act::Paste(text)).await
}

/// Presses `i` and `BSpace` in an empty input box, if each of `require` is still on the screen: a vi box is in insert
/// mode then, any other is as it was.
pub(super) async fn vi_guard<T: Tmux>(tmux: &T, key: PaneKey, pid: u32, require: Vec<String>) -> Happened {
    act(tmux, key, pid, require, Act::Press(vec![Key::LetterI, Key::BSpace])).await
}

/// Presses Enter in a pane, if each of `require` is still on its screen.
pub(super) async fn enter<T: Tmux>(tmux: &T, key: PaneKey, pid: u32, require: Vec<String>) -> Happened {
    act(tmux, key, pid, require, Act::Press(vec![Key::Enter])).await
}

/// Checks and acts in one server-side command list, and says what became of it in the machine's words.
async fn act<T: Tmux>(tmux: &T, key: PaneKey, pid: u32, require: Vec<String>, act: Act) -> Happened {
    let guarded = GuardedAct { server: key.server, pane: key.pane, pid, require, refuse: Vec::new(), act };
    let answer = tmux.act(&guarded).await;
    match &answer {
        Ok(ActOutcome::Done) => tracing::info!(pane = %guarded.pane, what = what(&guarded.act), "acted"),
        Ok(ActOutcome::Refused(why)) => {
            tracing::info!(pane = %guarded.pane, what = what(&guarded.act), %why, "refused");
        }
        Err(error) => tracing::warn!(pane = %guarded.pane, what = what(&guarded.act), %error, "act failed"),
    }
    match answer {
        Ok(ActOutcome::Done) => Happened::Acted,
        Ok(ActOutcome::Refused(refusal)) => match refusal {
            ActRefusal::Gone | ActRefusal::Dead => Happened::Vanished(refusal.to_string()),
            ActRefusal::InMode => Happened::Refused(Hold::CopyMode),
            ActRefusal::Synchronized => Happened::Refused(Hold::Synchronized),
            ActRefusal::OtherProcess | ActRefusal::OtherServer | ActRefusal::ScreenChanged => {
                Happened::Refused(Hold::Changed)
            }
        },
        Err(error) if error.typed_nothing() => Happened::NothingTyped(error.to_string()),
        Err(error) => Happened::MayHaveTyped(error.to_string()),
    }
}

/// What kind of act it is, for the log; never its text.
fn what(act: &Act) -> &'static str {
    match act {
        Act::Paste(_) => "paste",
        Act::Press(_) => "keys",
    }
}
