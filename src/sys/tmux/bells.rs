//! Clears bell flags without creating a session and without changing what anybody looks at.
//!
//! tmux clears a window's bell when the window is *selected*, which moves what people see and their last-window key.
//! The one command that clears and moves nothing is `kill-session -C` (despite its name it ends nothing; in tmux since
//! 2.2): it clears the alerts of *every* window of a session, and only that session's marks. So it runs behind a check
//! in the same command list that no window but the given ones rings there: a bell that nobody has reported stays. The
//! activity and silence marks of that session go too. Checked on 3.3a by `tests/tmux_real.rs`.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::logic::ids::{SessionId, WindowId};

use crate::sys::seed::mark;

use super::TmuxError;
use super::batch::{Words, literal, print, sequence};
use super::oneshot::{Socket, run};
use super::parse::WindowRow;

/// What is being done, for errors.
pub(super) const DOING: &str = "clearing bells";

/// Clears the bells of `wanted` in every session of `rows` where one of them rings.
///
/// Errors: `Refused` if some session was left alone because another window rings there; the others are cleared.
pub(super) async fn clear(
    socket: &Socket,
    rows: &[WindowRow],
    wanted: &[WindowId],
    deadline: Duration,
) -> Result<(), TmuxError> {
    let ringing = rows.iter().filter(|row| row.bell && wanted.contains(&row.window));
    let sessions: BTreeSet<SessionId> = ringing.map(|row| row.session).collect();
    if sessions.is_empty() {
        return Ok(());
    }
    let nonce = mark();
    let raw = run(socket, &commands(&sessions, wanted, &nonce), None, deadline, DOING).await?;
    let text = String::from_utf8_lossy(&raw);
    let count = |word: &str| text.lines().filter(|line| *line == format!("{nonce} {word}")).count();
    let (cleared, kept) = (count("cleared"), count("kept"));
    if cleared + kept != sessions.len() {
        let why = format!("{cleared} cleared and {kept} kept of {} sessions", sessions.len());
        return Err(TmuxError::Malformed { doing: DOING, why });
    }
    if kept > 0 {
        let stderr = format!("another window rings in {kept} of the sessions; their bells stand");
        return Err(TmuxError::Refused { doing: DOING, stderr });
    }
    Ok(())
}

/// One check-and-clear a session.
fn commands(sessions: &BTreeSet<SessionId>, wanted: &[WindowId], nonce: &str) -> Words {
    let ids = wanted.iter().map(WindowId::to_string).collect::<Vec<_>>().join("|");
    // An `X` for each window of the session that rings and is not among the wanted; nothing is what we want to see.
    let strangers = format!("#{{W:#{{?window_bell_flag,#{{?#{{m/r:^({ids})$,#{{window_id}}}},,X}},}}}}");
    let check = format!("#{{==:{strangers},}}");
    let mut all = Vec::new();
    for session in sessions {
        if !all.is_empty() {
            all.push(";".to_owned());
        }
        let target = session.to_string();
        let clear = literal(&["kill-session", "-C", "-t", &target]);
        let then = sequence(&[clear, print(&format!("{nonce} cleared"))]);
        let otherwise = sequence(&[print(&format!("{nonce} kept"))]);
        all.extend(literal(&["if-shell", "-F", "-t", &format!("{target}:"), &check, &then, &otherwise]));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_is_cleared_and_never_ended() {
        let sessions = BTreeSet::from([SessionId::new(2)]);
        let words = commands(&sessions, &[WindowId::new(1), WindowId::new(5)], "n");
        assert_eq!(
            words.join(" "),
            "if-shell -F -t $2: \
            #{==:#{W:#{?window_bell_flag,#{?#{m/r:^(@1|@5)$,#{window_id}},,X},}},} \
            kill-session -C -t '$2' ; display-message -p 'n cleared' display-message -p 'n kept'"
        );
    }
}
