//! The only place that prints. A broken pipe is success; any other result that can't be written is a failure.

use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a result was lost though somebody wanted it: a full disk, for instance.
static RESULT_LOST: AtomicBool = AtomicBool::new(false);

/// Prints a line of a result.
pub(crate) fn line(text: &str) {
    let _nobody_reads = try_line(text);
}

/// Prints a line of a result; `false` if nobody took it.
pub(crate) fn try_line(text: &str) -> bool {
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    if written.as_ref().is_err_and(|error| error.kind() != ErrorKind::BrokenPipe) {
        RESULT_LOST.store(true, Ordering::Relaxed);
    }
    written.is_ok()
}

/// The exit code of a run that would end with `code`: a result that was lost is no success, and ends with `lost`.
pub(crate) fn exit_code(program: &str, code: u8, lost: u8) -> u8 {
    if code == 0 && RESULT_LOST.load(Ordering::Relaxed) {
        note(&format!("{program}: standard output can't be written; is its disk full?"));
        return lost;
    }
    code
}

/// Prints a line that is not a result.
pub(crate) fn note(text: &str) {
    // Nobody is left to be told.
    let _closed = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a value as one JSON document.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints what clap has to say: help as it is, an error as one line. Returns the exit code: 0 for help and version, else
/// `usage`. `program` is how the command was called, as far as that is known: `ng emits`.
pub(crate) fn usage_error(program: &str, error: &clap::Error, usage: u8) -> u8 {
    let text = error.render().to_string();
    if !error.use_stderr() {
        line(text.trim_end());
        return 0;
    }
    // Called with nothing: the help is the answer.
    let is_help = error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    note(&if is_help { text.trim_end().to_owned() } else { usage_line(program, &text) });
    usage
}

/// What was wrong, the name that may have been meant, and where the help is, as one line.
///
/// Shape: clap's text is paragraphs: `error: ...`, tips, `Usage: ...`, where to ask.
fn usage_line(program: &str, text: &str) -> String {
    let mut paragraphs = text.split("\n\n");
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line = joined(paragraphs.next().unwrap_or_default());
    let mut command = program.to_owned();
    for paragraph in paragraphs.map(joined) {
        if let Some(tip) = paragraph.strip_prefix("tip: ").filter(|tip| tip.contains("similar")) {
            line = format!("{line}; {tip}");
        } else if let Some(used) = paragraph.strip_prefix("Usage: ") {
            let is_name = |word: &&str| !word.starts_with(['[', '<', '-']);
            command = used.split(' ').take_while(is_name).collect::<Vec<_>>().join(" ");
        }
    }
    let what: String = line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    format!("{command}: {}; see {command} --help", what.strip_prefix("error: ").unwrap_or(&what))
}

/// Prints a failure as one line with its causes. Returns the exit code 1, or 0 for a broken pipe.
pub(crate) fn failure(verb: &str, error: &anyhow::Error) -> u8 {
    let broken_pipe = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|io| io.kind() == ErrorKind::BrokenPipe);
    if broken_pipe {
        return 0;
    }
    note(&format!("ng {verb}: {error:#}"));
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_error_is_one_line_that_names_the_help() {
        let check = |text: &str, expected: &str| assert_eq!(usage_line("ng x", text), expected);
        check(
            "error: unexpected argument '--a' found\n\n  tip: to pass '--a' as a value, use '-- --a'\n\nUsage: ng x y [OPTIONS] \
             <W>\n\nFor more information, try '--help'.\n",
            "ng x y: unexpected argument '--a' found; see ng x y --help",
        );
        check(
            "error: the following required arguments were not provided:\n  --e <E>\n  <A>\n\nUsage: ng x --e <E> <A>\n",
            "ng x: the following required arguments were not provided: --e <E> <A>; see ng x --help",
        );
        check(
            "error: unrecognized subcommand 'emit'\n\n  tip: a similar subcommand exists: 'emits'\n\nUsage: ng [OPTIONS]\n",
            "ng: unrecognized subcommand 'emit'; a similar subcommand exists: 'emits'; see ng --help",
        );
        check("error: invalid value 'a\u{1b}' for '-n'\n", "ng x: invalid value 'a\u{fffd}' for '-n'; see ng x --help");
    }
}
