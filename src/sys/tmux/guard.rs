//! The only place that types: builds one command list that checks and acts, runs it, and reads what became of it.
//!
//! The server evaluates the checks and the act without looking at anything else in between, so a pane can't die, open a
//! mode or show a dialog between them. A paste into a dead pane ends the whole server on tmux 3.2 and 3.3, and Enter in
//! a dialog that was not there a moment ago approves something. No answer, or any other answer than the two that carry
//! our nonce, is an error and never *done*.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tmux_interface::LoadBuffer;

use crate::sys::seed::mark;

use super::batch::{Words, literal, print, sequence, words};
use super::oneshot::{Socket, run};
use super::{Act, ActOutcome, ActRefusal, GuardedAct, Key, TmuxError};

const DOING: &str = "acting on a pane";
/// The same before anything was sent.
const PREPARING: &str = "preparing to act on a pane";

/// What the server says of the pane when a check failed; the order is that of [`Facts`]. Screen texts are left out:
/// strftime runs over a printed format.
const FACTS: &str = "#{pid} #{start_time} #{pane_id} #{pane_dead} #{pane_in_mode} #{pane_synchronized} #{pane_pid}";

/// Whether the program in front is a shell by its name (`logic::pane::process`).
const SHELL_IN_FRONT: &str = " #{?#{m/r:^-?(a|ba|da|fi|k|z)?sh$,#{pane_current_command}},1,0}";

/// Numbers the buffers of this process.
static BUFFERS: AtomicU64 = AtomicU64::new(0);

/// Checks the act, has the server check and do it, and says what became of it.
///
/// Errors: `Malformed` for text, keys or needles that may not be sent (nothing was); every other error leaves open
/// whether the act happened.
pub(super) async fn carry_out(socket: &Socket, act: &GuardedAct, deadline: Duration) -> Result<ActOutcome, TmuxError> {
    let nonce = mark();
    let number = BUFFERS.fetch_add(1, Ordering::Relaxed);
    let buffer = format!("nexus-watcher-{}-{number}-{nonce}", std::process::id());
    let plan = plan(act, &nonce, &buffer)?;
    let answer = run(socket, &plan.args, plan.input.as_deref().map(str::as_bytes), deadline, DOING).await;
    let outcome = answer.and_then(|raw| read_outcome(&String::from_utf8_lossy(&raw), act, &nonce));
    if plan.input.is_some() && outcome.is_err() && !matches!(outcome, Err(TmuxError::Timeout { .. })) {
        // The list stopped halfway; the text must not stay behind. Usually the buffer is gone, which is no fault.
        let delete = literal(&["delete-buffer", "-b", &buffer]);
        let _already_gone = run(socket, &delete, None, deadline, DOING).await;
    }
    outcome
}

/// What to run for an act.
#[derive(Debug)]
struct Plan {
    args: Words,
    input: Option<String>,
}

fn plan(act: &GuardedAct, nonce: &str, buffer: &str) -> Result<Plan, TmuxError> {
    let pane = act.pane.to_string();
    let check = check(act)?;
    let report = literal(&["display-message", "-p", "-t", &pane, &format!("{nonce} refused {FACTS}")]);
    let done = print(&format!("{nonce} done"));
    let mut args = Words::new();
    let (steps, otherwise, input) = match &act.act {
        Act::Paste(text) => {
            let text = sendable(text)?;
            args.extend(words(&LoadBuffer::new().buffer_name(buffer).path("-").build()));
            args.push(";".to_owned());
            let paste = literal(&["paste-buffer", "-p", "-d", "-b", buffer, "-t", &pane]);
            let delete = literal(&["delete-buffer", "-b", buffer]);
            (vec![paste, done], vec![report, delete], Some(text.to_owned()))
        }
        Act::Press(keys) => {
            if keys.is_empty() {
                return Err(unsent("no key to press"));
            }
            let mut press = literal(&["send-keys", "-H", "-t", &pane]);
            press.extend(keys.iter().map(|&key| key_byte(key).to_owned()));
            (vec![press, done], vec![report], None)
        }
    };
    args.extend(literal(&["if-shell", "-F", "-t", &pane, &check, &sequence(&steps), &sequence(&otherwise)]));
    Ok(Plan { args, input })
}

/// One comparison of everything that must hold with what holds: a missing pane, an empty value or an odd one differs.
fn check(act: &GuardedAct) -> Result<String, TmuxError> {
    let mut expected = format!("{} {} {} 0 0 0 {}", act.server.pid, act.server.start_s, act.pane, act.pid);
    let mut actual = FACTS.to_owned();
    let required = act.require.iter().map(|needle| (needle, '1'));
    let refused = act.refuse.iter().map(|needle| (needle, '0'));
    for (needle, wanted) in required.chain(refused) {
        expected.push(' ');
        expected.push(wanted);
        actual.push_str(" #{?#{C:");
        actual.push_str(&pattern(needle)?);
        actual.push_str("},1,0}");
    }
    for row in &act.rows {
        expected.push_str(" 1");
        actual.push_str(" #{?#{C/r:");
        actual.push_str(&whole_row(row)?);
        actual.push_str("},1,0}");
    }
    if act.no_shell {
        expected.push_str(" 0");
        actual.push_str(SHELL_IN_FRONT);
    }
    Ok(format!("#{{==:{expected},{actual}}}"))
}

/// A literal text as `#{C:}` wants it: an fnmatch pattern, which tmux puts between stars and matches with each row of
/// the visible screen, trailing blanks cut, after expanding it as a format.
fn pattern(needle: &str) -> Result<String, TmuxError> {
    let needle = needle.trim_end_matches([' ', '\t']);
    if needle.is_empty() || needle.chars().any(char::is_control) {
        return Err(unsent("a screen text to look for is empty or holds control characters"));
    }
    let mut pattern = String::with_capacity(needle.len());
    for c in needle.chars() {
        match c {
            '*' | '?' | '[' | ']' | '\\' => pattern.push('\\'),
            '#' | ',' | '}' => pattern.push('#'),
            _ => {}
        }
        pattern.push(c);
    }
    Ok(pattern)
}

/// A whole row as `#{C/r:}` wants it: an extended regular expression, expanded as a format first.
fn whole_row(row: &str) -> Result<String, TmuxError> {
    let row = row.trim_end_matches([' ', '\t']);
    if row.is_empty() || row.chars().any(char::is_control) {
        return Err(unsent("a screen row to look for is empty or holds control characters"));
    }
    let mut pattern = String::with_capacity(row.len() + 2);
    pattern.push('^');
    for c in row.chars() {
        if r".^$*+?()[]{}|\".contains(c) {
            pattern.push('\\');
        }
        if matches!(c, '#' | ',' | '}') {
            pattern.push('#');
        }
        pattern.push(c);
    }
    pattern.push('$');
    Ok(pattern)
}

/// The text without its trailing line feeds, if every character of it may reach a terminal.
///
/// An ESC in a pasted text reaches the program as it is up to tmux 3.6b, and ends the paste frame.
fn sendable(text: &str) -> Result<&str, TmuxError> {
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return Err(unsent("no text to paste"));
    }
    match text.chars().find(|&c| c.is_control() && c != '\n' && c != '\t') {
        Some(c) => Err(unsent(&format!("the text holds the control character U+{:04X}", u32::from(c)))),
        None => Ok(text),
    }
}

fn unsent(why: &str) -> TmuxError {
    TmuxError::Malformed { doing: PREPARING, why: format!("{why}; nothing was sent") }
}

/// Whether an act that failed with this error has certainly typed nothing.
///
/// A command that fails ends the list, and nothing that can fail follows the act; so tmux's own refusals are certain.
pub(super) fn typed_nothing(error: &TmuxError) -> bool {
    match error {
        TmuxError::NotInstalled
        | TmuxError::NoServer { .. }
        | TmuxError::NotOurs { .. }
        | TmuxError::TooOld { .. }
        | TmuxError::Refused { .. } => true,
        TmuxError::Malformed { doing, .. } => *doing == PREPARING,
        TmuxError::NoneAnswers { .. } | TmuxError::Timeout { .. } | TmuxError::Io { .. } => false,
    }
}

/// The byte that a key sends, in hexadecimal.
///
/// A key by its name goes through tmux's encoding, which a program (`CSI > 4 ; 2 m`), the option `extended-keys` and, from
/// 3.5, `extended-keys-format csi-u` have a say in, and `backspace` as well. The byte itself is what every agent reads as
/// the key while it asks for nothing else, and tmux never offers it more.
fn key_byte(key: Key) -> &'static str {
    match key {
        Key::Enter => "0d",
        Key::Escape => "1b",
        Key::BSpace => "7f",
        Key::LetterI => "69",
    }
}

/// Reads the one line that the command list prints.
fn read_outcome(text: &str, act: &GuardedAct, nonce: &str) -> Result<ActOutcome, TmuxError> {
    let malformed = |why: &str| TmuxError::Malformed { doing: DOING, why: why.to_owned() };
    let line = text.strip_suffix('\n').ok_or_else(|| malformed("no answer; it is open whether the act happened"))?;
    let said = line.strip_prefix(nonce).ok_or_else(|| malformed("an answer that is not ours"))?;
    if said == " done" {
        return Ok(ActOutcome::Done);
    }
    let facts = said.strip_prefix(" refused ").ok_or_else(|| malformed("neither done nor refused"))?;
    let facts: Vec<&str> = facts.split(' ').collect();
    let &[pid, start, pane, dead, mode, synchronized, pane_pid] = facts.as_slice() else {
        return Err(malformed("the refusal does not say why"));
    };
    Ok(ActOutcome::Refused(refusal(act, &Facts { pid, start, pane, dead, mode, synchronized, pane_pid })))
}

/// The values of [`FACTS`].
struct Facts<'a> {
    pid: &'a str,
    start: &'a str,
    pane: &'a str,
    dead: &'a str,
    mode: &'a str,
    synchronized: &'a str,
    pane_pid: &'a str,
}

/// The first check that failed; the screen is what is left when all others held.
fn refusal(act: &GuardedAct, facts: &Facts<'_>) -> ActRefusal {
    let expected = |value: &dyn std::fmt::Display, found: &str| value.to_string() == found;
    if !expected(&act.server.pid, facts.pid) || !expected(&act.server.start_s, facts.start) {
        ActRefusal::OtherServer
    } else if !expected(&act.pane, facts.pane) {
        ActRefusal::Gone
    } else if facts.dead != "0" {
        ActRefusal::Dead
    } else if facts.mode != "0" {
        ActRefusal::InMode
    } else if facts.synchronized != "0" {
        ActRefusal::Synchronized
    } else if !expected(&act.pid, facts.pane_pid) {
        ActRefusal::OtherProcess
    } else {
        ActRefusal::ScreenChanged
    }
}

#[cfg(test)]
mod tests {
    use crate::logic::ids::{PaneId, ServerId};

    use super::*;

    fn act(what: Act) -> GuardedAct {
        GuardedAct {
            server: ServerId { socket: "/s".to_owned(), pid: 7, start_s: 1_700_000_000 },
            pane: PaneId::new(3),
            pid: 4711,
            require: Vec::new(),
            rows: Vec::new(),
            refuse: Vec::new(),
            no_shell: false,
            act: what,
        }
    }

    #[test]
    fn a_paste_is_loaded_checked_pasted_and_reported_in_one_list() {
        let plan = plan(&act(Act::Paste("-a;\n\n".to_owned())), "n", "b").unwrap();
        assert_eq!(plan.input.as_deref(), Some("-a;"));
        let condition = format!("#{{==:7 1700000000 %3 0 0 0 4711,{FACTS}}}");
        let expected = ["load-buffer", "-b", "b", "-", ";", "if-shell", "-F", "-t", "%3", &condition];
        assert_eq!(plan.args[..10], expected);
        assert!(plan.args[10].ends_with("-p -d -b b -t '%3' ; display-message -p 'n done'"), "{}", plan.args[10]);
        assert!(plan.args[11].ends_with("' ; delete-buffer -b b"), "{}", plan.args[11]);
        assert_eq!(plan.args.len(), 12);
    }

    #[test]
    fn keys_are_pressed_as_their_bytes_behind_the_same_check() {
        let plan = plan(&act(Act::Press(vec![Key::LetterI, Key::BSpace, Key::Enter])), "n", "b").unwrap();
        assert!(plan.input.is_none());
        assert!(plan.args[5].ends_with(" -H -t '%3' 69 7f 0d ; display-message -p 'n done'"), "{}", plan.args[5]);
    }

    #[test]
    fn nothing_that_could_do_harm_is_ever_sent() {
        for text in ["", "\n\n", "a\u{1b}[201~b", "a\rb", "a\u{0}", "\u{7f}", "\u{9b}1m", "a\u{8}"] {
            let result = plan(&act(Act::Paste(text.to_owned())), "n", "b");
            let error = result.unwrap_err();
            assert!(matches!(error, TmuxError::Malformed { .. }) && typed_nothing(&error), "{text:?}");
        }
        assert!(plan(&act(Act::Press(Vec::new())), "n", "b").is_err());
        for needle in ["", "  ", "a\nb", "\u{1b}"] {
            let mut guarded = act(Act::Press(vec![Key::Enter]));
            guarded.refuse = vec![needle.to_owned()];
            assert!(plan(&guarded, "n", "b").is_err(), "{needle:?}");
        }
    }

    #[test]
    fn needles_are_literal_in_both_of_tmux_s_languages() {
        for (needle, escaped) in [
            ("plain ❯\u{a0}x", "plain ❯\u{a0}x"),
            ("a*b?c[d]", r"a\*b\?c\[d\]"),
            ("#{pid},}", "##{pid#}#,#}"),
            (r"C:\x", r"C:\\x"),
            ("cut  ", "cut"),
        ] {
            assert_eq!(pattern(needle).unwrap(), escaped, "{needle}");
        }
    }

    #[test]
    fn whole_rows_are_literal_in_both_of_tmux_s_languages() {
        for (row, escaped) in [
            ("❯\u{a0}", "^❯\u{a0}$"),
            ("❯ a.b(c)*#,}|{1}%d  ", r"^❯ a\.b\(c\)\*###,\#}\|\{1\#}%d$"),
            (r"[Pasted text #1 +4 lines] \^$", r"^\[Pasted text ##1 \+4 lines\] \\\^\$$"),
        ] {
            assert_eq!(whole_row(row).unwrap(), escaped, "{row}");
        }
        assert!(whole_row("  ").is_err() && whole_row("a\u{1b}").is_err());
    }

    #[test]
    fn every_refusal_is_told_apart_and_anything_else_is_an_error() {
        let guarded = act(Act::Press(vec![Key::Enter]));
        let read = |text: &str| read_outcome(text, &guarded, "n");
        assert_eq!(read("n done\n"), Ok(ActOutcome::Done));
        for (facts, refusal) in [
            ("8 1700000000 %3 0 0 0 4711", ActRefusal::OtherServer),
            ("7 1700000001 %3 0 0 0 4711", ActRefusal::OtherServer),
            ("7 1700000000     ", ActRefusal::Gone),
            ("7 1700000000 %3 1 0 0 4711", ActRefusal::Dead),
            ("7 1700000000 %3 0 2 0 4711", ActRefusal::InMode),
            ("7 1700000000 %3 0 0 1 4711", ActRefusal::Synchronized),
            ("7 1700000000 %3 0 0 0 4712", ActRefusal::OtherProcess),
            ("7 1700000000 %3 0 0 0 4711", ActRefusal::ScreenChanged),
        ] {
            assert_eq!(read(&format!("n refused {facts}\n")), Ok(ActOutcome::Refused(refusal)), "{facts}");
        }
        for odd in ["", "n done", "m done\n", "n done\nn done\n", "n refused\n", "n refused 7\n", "done\n"] {
            let error = read(odd).unwrap_err();
            assert!(matches!(error, TmuxError::Malformed { .. }) && !typed_nothing(&error), "{odd:?}");
        }
    }
}
