//! The one gate to a pane. Nothing else in the program may call [`Tmux::act`] or [`Tmux::clear_bells`].
//!
//! The last look at the screen belongs to the act itself: tmux checks the pane, its process and the texts on its
//! screen in the same command list that types. A mismatch is a refusal with a reason, not an error. The caller has
//! journalled the intent before it comes here.
//!
//! Each act is recorded for `ng audit` before it is sent, or is not sent; a [`Record`] says why it is done and by whom.

use super::audit::{Record, Warrant};
use super::outside::Outside;
use crate::logic::audit::{Checked, What};
use crate::logic::delivery::gate::Hold;
use crate::logic::delivery::machine::Happened;
use crate::logic::ids::{PaneKey, ServerId, WindowId, WindowName};
use crate::sys::fault;
use crate::sys::once::{self, Asked};
use crate::sys::tmux::{Act, ActOutcome, ActRefusal, GuardedAct, Key, Tmux, TmuxError};

/// The pane that was judged, and what must still be on its screen with the act.
#[derive(Clone, Debug)]
pub(super) struct On {
    /// The pane.
    pub(super) key: PaneKey,
    /// Its process.
    pub(super) pid: u32,
    /// Texts, each within one row.
    pub(super) texts: Vec<String>,
    /// Whole rows.
    pub(super) rows: Vec<String>,
}

/// Presses `i` and `BSpace` in an empty input box, if its screen is still what it was: a vi box is in insert mode then,
/// any other is as it was.
pub(super) async fn vi_guard<T: Tmux>(out: &Outside<T>, record: &mut Record, on: On) -> Happened {
    act(out, record, on, Act::Press(vec![Key::LetterI, Key::BSpace]), false).await
}

/// Pastes a text into a pane, if its screen is still what it was, and if it was not pasted before under its key. What was
/// refused or failed before anything was typed does not use up the key.
pub(super) async fn paste<T: Tmux>(out: &Outside<T>, record: &mut Record, on: On, text: String) -> Happened {
    let asked = record.key().map(|key| once::claim(&out.state, key, &record.says())).transpose();
    let claim = match asked {
        Ok(None) => None,
        Ok(Some(Asked::Ours(claim))) => Some(claim),
        Ok(Some(Asked::Used)) => return Happened::Refused(Hold::Once),
        Err(error) => {
            out.edges.fails("once", &error, "the key of an act can't be claimed; nothing is typed");
            return Happened::Refused(Hold::NoJournal);
        }
    };
    let happened = act(out, record, on, Act::Paste(text), false).await;
    if let Some(claim) = claim
        && matches!(happened, Happened::Refused(_) | Happened::Vanished(_) | Happened::NothingTyped(_))
        && let Err(error) = claim.give_back()
    {
        tracing::warn!(%error, "the key of a refused act can't be given back; it counts as used");
    }
    happened
}

/// Presses Enter in a pane, if its screen is still what it was. With `may_wait` its own record may come later: the text
/// that it submits is on record, and would otherwise stand unsent where a person types.
pub(super) async fn enter<T: Tmux>(out: &Outside<T>, record: &mut Record, on: On, may_wait: bool) -> Happened {
    act(out, record, on, Act::Press(vec![Key::Enter]), may_wait).await
}

/// Checks and acts in one server-side command list, and says what became of it in the machine's words.
async fn act<T: Tmux>(out: &Outside<T>, record: &mut Record, on: On, act: Act, may_wait: bool) -> Happened {
    let On { key, pid, texts, rows } = on;
    let no_shell = record.shell_behind;
    let checked = Checked { pid, no_shell, texts: texts.clone(), rows: rows.clone() };
    let what = what(&act);
    let word = what.kind();
    let Some(id) = record.begin(out, (&key.server, Some(key.pane)), (Some(checked), what), may_wait) else {
        return Happened::Refused(Hold::NoJournal);
    };
    fault::point("before-act");
    let guarded =
        GuardedAct { server: key.server, pane: key.pane, pid, require: texts, rows, refuse: Vec::new(), no_shell, act };
    let answer = out.tmux.act(&guarded).await;
    fault::point("after-act");
    match &answer {
        Ok(ActOutcome::Done) => tracing::info!(pane = %guarded.pane, what = word, act = id, "acted"),
        Ok(ActOutcome::Refused(why)) => {
            tracing::info!(pane = %guarded.pane, what = word, act = id, %why, "refused");
        }
        Err(error) => out.edges.fails("act", error, "acting on a pane failed"),
    }
    if answer.is_ok() {
        out.edges.works("act");
    }
    let happened = match answer {
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
    };
    record.end(out, id, Some(guarded.pane), &happened);
    happened
}

/// Clears the bells of windows; `named` are those of them that are there, by name.
pub(super) async fn clear_bells<T: Tmux>(
    out: &Outside<T>,
    warrant: Warrant,
    (server, windows): (&ServerId, &[WindowId]),
    named: Vec<String>,
) -> Result<(), TmuxError> {
    let mut record = Record::new(warrant, WindowName(String::new()));
    let what = What::Bell { windows: windows.to_vec(), names: named };
    let Some(id) = record.begin(out, (server, None), (None, what), false) else {
        return Err(TmuxError::NotOurs { why: "the clearing can't be recorded".to_owned() });
    };
    let cleared = out.tmux.clear_bells(windows).await;
    let happened = match &cleared {
        Ok(()) => Happened::Acted,
        Err(error @ TmuxError::Refused { .. }) => Happened::Vanished(error.to_string()),
        Err(error) if error.typed_nothing() => Happened::NothingTyped(error.to_string()),
        Err(error) => Happened::MayHaveTyped(error.to_string()),
    };
    record.end(out, id, None, &happened);
    cleared
}

/// What an act is called in the record. The text of a paste stands there by its beginning and its digest only.
fn what(act: &Act) -> What {
    match act {
        Act::Paste(text) => What::paste(text),
        Act::Press(keys) => What::Keys { keys: keys.iter().map(|key| key.name().to_owned()).collect() },
    }
}
