//! Builds questions for tmux, in the two forms in which they can be asked: one line each for the control client, or
//! one process for all of them.
//!
//! Owns quoting for tmux's own parser and the markers between one-shot answers. Runs nothing.

use tmux_interface::{CapturePane, IfShell, ListPanes, ListWindows, TmuxCommand};

use crate::logic::ids::{PaneId, WindowName};

use super::parse::{IDENTITY_FORMAT, PANE_FORMAT};
use super::{CaptureRequest, TmuxError};

/// One tmux command as its words.
pub(super) type Words = Vec<String>;

/// A question: a command, and the pane without which it would fail.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    /// The command.
    command: Words,
    /// The pane that it is about.
    pane: Option<PaneId>,
}

/// The answer to one [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// What it printed: lines, each with its line feed.
    Text(Vec<u8>),
    /// The command failed, in tmux's words.
    Failed(String),
}

/// Questions of which the later ones may depend on the answers to earlier ones.
pub(super) trait Dialogue {
    /// The next question; `None` if there is none unless an answer brings one.
    fn next(&mut self) -> Option<Ask>;

    /// Takes the answer to the oldest question that has none.
    fn take(&mut self, answer: Answer);
}

/// tmux's words for a pane that is not there; both forms of asking answer with them.
const NO_PANE: &str = "can't find pane";

impl Answer {
    /// Whether this says that the pane is gone.
    pub(super) fn is_no_pane(&self) -> bool {
        matches!(self, Self::Failed(words) if words.starts_with(NO_PANE))
    }
}

/// At most this many questions go into one process: tmux refuses a command of more than 16 kB.
pub(super) const MAX_ASKS_PER_PROCESS: usize = 50;

/// The words of a command that `tmux_interface` built.
pub(super) fn words(command: &TmuxCommand<'_>) -> Words {
    command.to_vec().into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// Words from literals.
pub(super) fn literal(parts: &[&str]) -> Words {
    parts.iter().map(|&part| part.to_owned()).collect()
}

/// `display-message -p`: prints `format`. tmux runs strftime over it, so it holds no `%` of its own.
pub(super) fn print(format: &str) -> Words {
    literal(&["display-message", "-p", format])
}

/// Who the server is.
pub(super) fn ask_identity() -> Ask {
    Ask { command: print(IDENTITY_FORMAT), pane: None }
}

/// Every pane of every session.
pub(super) fn ask_panes() -> Ask {
    Ask { command: words(&ListPanes::new().all().format(PANE_FORMAT).build()), pane: None }
}

/// The panes of the windows of one name; `None` if the name holds what means something in a filter.
pub(super) fn ask_panes_named(window: &WindowName) -> Option<Ask> {
    let name = window.as_str();
    let is_plain =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    let filter = format!("#{{==:#{{window_name}},{name}}}");
    let list = || words(&ListPanes::new().all().format(PANE_FORMAT).filter(filter).build());
    is_plain.then(|| Ask { command: list(), pane: None })
}

/// Every window of every session, in a form of the caller's.
pub(super) fn ask_windows(format: &str) -> Ask {
    Ask { command: words(&ListWindows::new().all().format(format).build()), pane: None }
}

/// Rows of one pane.
pub(super) fn ask_capture(request: &CaptureRequest) -> Ask {
    let mut capture = CapturePane::new().stdout();
    if request.styled {
        capture = capture.escape_sequences();
    }
    if let Some((first, last)) = request.rows {
        capture = capture.start_line(first.to_string()).end_line(last.to_string());
    }
    let command = words(&capture.target_pane(request.pane.to_string()).build());
    Ask { command, pane: Some(request.pane) }
}

impl Ask {
    /// Appends the line that a control client sends.
    pub(super) fn write_line(&self, text: &mut String) {
        text.push_str(&quoted(&self.command));
        text.push('\n');
    }

    /// The form in a chain, where a failing command would take all later ones with it: a missing pane is answered by
    /// `gone` instead. The id is compared, since for a missing pane tmux answers from the window that some attached
    /// client looks at.
    fn chained(&self, gone: &str) -> Words {
        let Some(pane) = self.pane else { return self.command.clone() };
        let mut check = IfShell::new()
            .not_execute()
            .target_pane(pane.to_string())
            .shell_command(format!("#{{==:#{{pane_id}},{pane}}}"))
            .command(quoted(&self.command))
            .build();
        check.push_param(quoted(&print(gone)));
        words(&check)
    }
}

/// The argument list of one process that asks everything, each answer behind a marker with the nonce.
pub(super) fn chain(asks: &[Ask], nonce: &str) -> Words {
    let mut all = Vec::new();
    for ask in asks {
        all.extend(print(&marker(nonce)));
        all.push(";".to_owned());
        all.extend(ask.chained(&gone(nonce)));
        all.push(";".to_owned());
    }
    all.extend(print(&end(nonce)));
    all
}

/// Splits what the process of [`chain`] printed into one answer a question.
///
/// Errors: `Malformed` if a marker is missing, one is too many, or the end is not there.
pub(super) fn split_chain(
    raw: &[u8],
    count: usize,
    nonce: &str,
    doing: &'static str,
) -> Result<Vec<Answer>, TmuxError> {
    let malformed = |why: String| TmuxError::Malformed { doing, why };
    let (marker, gone, end) = (marker(nonce), gone(nonce), end(nonce));
    let mut answers: Vec<Answer> = Vec::with_capacity(count);
    let mut ended = false;
    for line in raw.split_inclusive(|&byte| byte == b'\n') {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        if ended {
            return Err(malformed("text after the end marker".to_owned()));
        } else if bare == marker.as_bytes() {
            answers.push(Answer::Text(Vec::new()));
        } else if bare == end.as_bytes() {
            ended = true;
        } else {
            match answers.last_mut() {
                Some(last) if bare == gone.as_bytes() => *last = Answer::Failed(NO_PANE.to_owned()),
                Some(Answer::Text(text)) => text.extend_from_slice(line),
                _ => return Err(malformed("text where a marker belongs".to_owned())),
            }
        }
    }
    if !ended || answers.len() != count {
        return Err(malformed(format!("{} of {count} answers, end marker {ended}", answers.len())));
    }
    Ok(answers)
}

fn marker(nonce: &str) -> String {
    format!("@@{nonce} next")
}

fn gone(nonce: &str) -> String {
    format!("@@{nonce} gone")
}

fn end(nonce: &str) -> String {
    format!("@@{nonce} end")
}

/// Quotes words for tmux's command parser, which reads single quotes as a shell does.
pub(super) fn quoted(words: &[String]) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'@' | b'/');
    let one = |word: &String| {
        if !word.is_empty() && word.bytes().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Several commands for one command string.
pub(super) fn sequence(commands: &[Words]) -> String {
    commands.iter().map(|words| quoted(words)).collect::<Vec<_>>().join(" ; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str) -> Answer {
        Answer::Text(body.as_bytes().to_vec())
    }

    #[test]
    fn a_capture_asks_for_its_rows_and_colours_only_when_wanted() {
        let request = CaptureRequest { pane: PaneId::new(3), rows: Some((38, 49)), styled: true };
        let line = |request| {
            let mut text = String::new();
            ask_capture(request).write_line(&mut text);
            text
        };
        assert_eq!(line(&request), "capture-pane -e -p -E 49 -S 38 -t '%3'\n");
        let request = CaptureRequest { pane: PaneId::new(3), rows: None, styled: false };
        assert_eq!(line(&request), "capture-pane -p -t '%3'\n");
    }

    #[test]
    fn a_name_that_a_filter_would_read_otherwise_is_not_filtered_by() {
        let line = |name: &str| {
            let mut text = String::new();
            ask_panes_named(&WindowName(name.into()))?.write_line(&mut text);
            Some(text)
        };
        assert!(line("or-che_str.1").unwrap().contains(" -f '#{==:#{window_name},or-che_str.1}'"));
        for name in ["", "a b", "a,b", "#{pid}", "a}", "ä", "a'b", "a:b"] {
            assert_eq!(line(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_chained_capture_survives_a_missing_pane() {
        let request = CaptureRequest { pane: PaneId::new(3), rows: None, styled: false };
        let args = chain(&[ask_capture(&request)], "n");
        assert_eq!(
            args.join(" "),
            "display-message -p @@n next ; if-shell -F -t %3 #{==:#{pane_id},%3} capture-pane -p -t '%3' \
             display-message -p '@@n gone' ; display-message -p @@n end"
        );
    }

    #[test]
    fn answers_split_at_markers_that_carry_the_nonce() {
        let split = |raw: &str, count| split_chain(raw.as_bytes(), count, "n", "testing").ok();
        assert_eq!(
            split("@@n next\na\n\n@@n next\n@@n gone\n@@n end\n", 2),
            Some(vec![text("a\n\n"), Answer::Failed(NO_PANE.to_owned())])
        );
        assert_eq!(split("@@n next\n@@x next\n@@n end\n", 1), Some(vec![text("@@x next\n")]), "another nonce is text");
        for (raw, count) in [
            ("@@n next\na\n", 1),
            ("@@n next\na\n@@n end\n", 2),
            ("a\n@@n next\n@@n end\n", 1),
            ("@@n next\n@@n end\nmore\n", 1),
            ("", 1),
        ] {
            assert_eq!(split(raw, count), None, "{raw:?}");
        }
    }

    #[test]
    fn words_are_quoted_for_tmux() {
        assert_eq!(quoted(&literal(&["a", "b c", "it's", "", "%1", ";"])), r"a 'b c' 'it'\''s' '' '%1' ';'");
    }
}
