//! Commands that change a running demo agent, one a line, as a test or a person writes them into its control pipe.

use super::dialog::Kind;

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Begin a turn, for this many seconds or until told otherwise.
    Busy(Option<u64>),
    /// End the turn.
    Idle,
    /// Replace the draft.
    Draft(String),
    /// Show a suggestion.
    Ghost(String),
    /// Open a dialog.
    Dialog(Kind),
    /// Close the dialog without an answer.
    Close,
    /// Ring.
    Bell,
    /// End the program with this exit code.
    Exit(u8),
    /// Print something as the agent's own words.
    Say(String),
    /// Set the pane's title.
    Title(String),
}

/// Reads one line. `None` if it is no command.
pub(super) fn parse(line: &str) -> Option<Command> {
    let line = line.trim();
    let (verb, rest) = line.split_once(' ').map_or((line, ""), |(verb, rest)| (verb, rest.trim()));
    let text = || rest.replace("\\n", "\n");
    match verb {
        "busy" if rest.is_empty() => Some(Command::Busy(None)),
        "busy" => rest.parse().ok().map(|seconds| Command::Busy(Some(seconds))),
        "idle" => Some(Command::Idle),
        "draft" => Some(Command::Draft(text())),
        "ghost" => Some(Command::Ghost(text())),
        "dialog" => Kind::by_name(rest).map(Command::Dialog),
        "close" => Some(Command::Close),
        "bell" => Some(Command::Bell),
        "exit" if rest.is_empty() => Some(Command::Exit(0)),
        "exit" => rest.parse().ok().map(Command::Exit),
        "say" => Some(Command::Say(text())),
        "title" => Some(Command::Title(text())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: impl Into<Option<Command>>) {
        assert_eq!(parse(line), expected.into(), "{line}");
    }

    #[test]
    fn lines_mean_what_they_say() {
        check("busy", Some(Command::Busy(None)));
        check("busy 12\n", Some(Command::Busy(Some(12))));
        check("busy soon", None);
        check("draft two words", Some(Command::Draft("two words".into())));
        check("draft one\\ntwo", Some(Command::Draft("one\ntwo".into())));
        check("dialog permission", Some(Command::Dialog(Kind::Permission)));
        check("dialog other", None);
        check("exit 3", Some(Command::Exit(3)));
        check("exit 300", None);
        check("", None);
    }
}
