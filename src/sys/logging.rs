//! The service's log: `<state>/logs/watcher.<date>.log`, one `[<iso>] message` line an event, in ten files of 10 MiB at
//! most; `watcher.log` beside them points at the newest, and so does the old name `<state>/watcher.log`. Where no file can
//! be written, the lines go to standard error until one can: a log is no condition for watching.
//!
//! `NEXUS_LOG` chooses what is logged (default `info`), in the form of `tracing_subscriber::EnvFilter`.

use std::fmt::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;
use rustix::fs::Mode;
use tracing::{Event, Level, Subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields, MakeWriter};
use tracing_subscriber::registry::{LookupSpan, Scope};

use crate::sys::clock::Clock;
use crate::sys::files::{self, StateDir};
use crate::sys::liveness::LOG_DIR;
use crate::sys::log_file::{Health, Limits, LogFile};

/// How much is kept: a storm of lines must not fill a disk, nor push out what happened before it at once.
const LIMITS: Limits = Limits { max_bytes: 10 << 20, max_files: 10 };

/// Longest line, in bytes.
const MAX_LINE: usize = 16 << 10;

/// Lines that may wait to be written. More are dropped, and counted.
const MAX_WAITING: usize = 16_384;

/// What is logged unless the environment says otherwise.
const DEFAULT_FILTER: &str = "info";

/// Writes the last lines when it is dropped; keep it in `main` under a name.
#[derive(Debug)]
#[must_use = "dropping the guard ends the log"]
pub struct LogGuard {
    /// Ends the background writer.
    _worker: WorkerGuard,
    /// Whether the file can be written.
    health: Health,
    /// Lines that came faster than they could be written.
    dropped: ErrorCounter,
}

impl LogGuard {
    /// Why lines are being lost; `None` if they are not.
    pub fn trouble(&self) -> Option<String> {
        self.health.trouble()
    }

    /// How many lines were dropped so far, since they came faster than they could be written.
    pub fn dropped(&self) -> usize {
        self.dropped.dropped_lines()
    }
}

/// Makes every file that this process creates private to its account. For the very start of `main`.
pub fn tighten_umask() {
    let _before = rustix::process::umask(Mode::from_raw_mode(0o077));
}

/// Starts the log of this process. `filter` is the value of `NEXUS_LOG`.
///
/// Errors: the filter cannot be understood, or a log was started before.
pub fn start(state: &StateDir, filter: Option<&str>) -> anyhow::Result<LogGuard> {
    let filter = parse_filter(filter)?;
    let file = LogFile::new(&state.at(LOG_DIR), "watcher", LIMITS, || Clock::System.now());
    let health = file.health();
    let (writer, worker) = NonBlockingBuilder::default().buffered_lines_limit(MAX_WAITING).finish(file);
    let dropped = writer.error_counter();
    tracing::subscriber::set_global_default(subscriber(filter, writer)).context("starting the log a second time")?;
    // Where a file of the original tools stands under the old name, it stays.
    let _no_link = files::link(Path::new("logs/watcher.log"), &state.at("watcher.log"));
    Ok(LogGuard { _worker: worker, health, dropped })
}

/// Reads a filter; nothing or an empty text is the default.
fn parse_filter(filter: Option<&str>) -> anyhow::Result<EnvFilter> {
    let text = filter.filter(|text| !text.is_empty()).unwrap_or(DEFAULT_FILTER);
    EnvFilter::try_new(text).with_context(|| format!("NEXUS_LOG={text:?}: try `info` or `nexus_watcher=debug`"))
}

/// The subscriber that writes our lines to `writer`.
fn subscriber<W>(filter: EnvFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(false).event_format(Lines).finish()
}

/// One event, one line: `[<iso>] message field=value`, with the level where it is not `INFO`, and the spans around it.
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut text = String::new();
        if *event.metadata().level() != Level::INFO {
            write!(text, "{} ", event.metadata().level())?;
        }
        context.field_format().format_fields(Writer::new(&mut text), event)?;
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            write!(text, " <{}", span.name())?;
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>().filter(|fields| !fields.is_empty()) {
                write!(text, " {fields}")?;
            }
            text.push('>');
        }
        // Values come from outside: they may neither forge a line nor command the terminal of whoever reads this.
        let fits = |(at, _): &(usize, char)| *at < MAX_LINE;
        let text: String =
            text.char_indices().take_while(fits).map(|(_, c)| if c.is_control() { ' ' } else { c }).collect();
        writeln!(out, "[{}] {}", Clock::System.now().iso(), text.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::*;

    /// What was logged.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(filter: &str, log: impl FnOnce()) -> String {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = subscriber(parse_filter(Some(filter)).unwrap(), move || writer.clone());
        tracing::subscriber::with_default(subscriber, log);
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_line_is_the_time_in_brackets_and_the_message() {
        let text = logged("info", || tracing::info!(pane = 3, "started"));
        let (time, rest) = text.strip_prefix('[').unwrap().split_once("] ").unwrap();
        assert!(crate::logic::time::Timestamp::parse_iso(time).is_some(), "{time}");
        assert_eq!(rest, "started pane=3\n");
        assert!(logged("info", || tracing::warn!("odd")).ends_with("] WARN odd\n"));
        assert_eq!(logged("info", || tracing::debug!("quiet")), "");
        let inside = || tracing::info_span!("task", task = "bell_windows").in_scope(|| tracing::info!("slow"));
        assert!(logged("info", inside).ends_with("] slow <task task=\"bell_windows\">\n"));
    }

    #[test]
    fn a_value_from_outside_forges_no_line_and_no_escape() {
        let text = logged("info", || tracing::info!(window = "a\n[now] forged\u{1b}[31m", "seen"));
        assert_eq!(text.matches('\n').count(), 1, "{text:?}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let text = logged("info", || tracing::info!("{}", "é".repeat(MAX_LINE)));
        assert!(text.len() < MAX_LINE + 100, "{}", text.len());
    }

    #[test]
    fn a_filter_that_makes_no_sense_is_an_error_that_says_what_would() {
        let error = parse_filter(Some("nexus=louder")).unwrap_err();
        assert!(error.to_string().contains("NEXUS_LOG"), "{error}");
        assert!(parse_filter(None).is_ok() && parse_filter(Some("")).is_ok());
    }

    #[test]
    fn the_file_is_made_in_the_log_folder_and_named_for_the_day() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        let guard = start(&state, Some("off")).unwrap();
        assert_eq!((guard.trouble(), guard.dropped()), (None, 0));
        drop(guard);
        let old_name = std::fs::read_link(state.at("watcher.log")).unwrap();
        assert_eq!(old_name, Path::new("logs/watcher.log"));
        let names = files::list_names(&state.at(LOG_DIR)).unwrap();
        assert!(
            names.iter().any(|name| name.starts_with("watcher.2") && name.strip_suffix(".log").is_some()),
            "{names:?}"
        );
        assert!(names.contains(&"watcher.log".to_owned()), "{names:?}");
    }
}
