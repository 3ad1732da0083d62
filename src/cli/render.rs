//! The only place that prints. A broken pipe is success.

/// Prints a line of a result.
pub(crate) fn line(text: &str) {
    put(&mut std::io::stdout().lock(), text);
}

/// Prints a line that is not a result.
pub(crate) fn note(text: &str) {
    put(&mut std::io::stderr().lock(), text);
}

/// Prints a value as one JSON document.
pub(crate) fn json<T: serde::Serialize>(value: &T) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Prints what clap has to say. Returns the exit code: 0 for help and version, else `usage`.
pub(crate) fn usage_error(error: &clap::Error, usage: u8) -> u8 {
    let text = error.render().to_string();
    if error.use_stderr() {
        note(text.trim_end());
        usage
    } else {
        line(text.trim_end());
        0
    }
}

/// Prints a failure as one line with its causes. Returns the exit code 1, or 0 for a broken pipe.
pub(crate) fn failure(verb: &str, error: &anyhow::Error) -> u8 {
    let broken_pipe = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|io| io.kind() == std::io::ErrorKind::BrokenPipe);
    if broken_pipe {
        return 0;
    }
    note(&format!("ng {verb}: {error:#}"));
    1
}

/// Writes a line; whoever closed the other end does not want it.
fn put(out: &mut dyn std::io::Write, text: &str) {
    let _closed = writeln!(out, "{text}");
}
