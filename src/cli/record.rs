//! `ng record`: keeps the screens of panes while they change, for `ng replay`, for new captures, and for reports.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::pane_live::{self, Meant, Which};
use super::{Invocation, Verb, amount, render};
use crate::daemon::Outside;
use crate::daemon::record::Recorder;
use crate::logic::archive::{Frame, masked_frame, wire};
use crate::logic::shell::quote;
use crate::logic::snapshot::TmuxView;
use crate::logic::time::{Now, age_text};
use crate::sys::recordings::Writer;
use crate::sys::tmux::{self, Servers, Tmux as _, TmuxClient};

pub(super) const VERB: Verb = Verb { command, run, usage: 64 };

/// Where recordings are kept, below the state directory, unless said otherwise.
const DIR: &str = "recordings";
/// How often people who watch are told how far it is.
const TELL_EVERY: Duration = Duration::from_secs(60);

fn command() -> Command {
    Command::new("record")
        .about("Keep the screens of panes while they change, until interrupted")
        .after_help(
            "Exit: 0 ended as told, 1 something could not be written, 2 could not look, 3 no such window, 64 usage. \
             Read what was kept with: ng replay DIR",
        )
        .arg(Arg::new("window").value_name("WINDOW").help("A window or pane, as for ng pane-state"))
        .arg(
            Arg::new("all")
                .long("all")
                .action(ArgAction::SetTrue)
                .help("Every watched window (or those of session WINDOW)"),
        )
        .arg(
            Arg::new("dir")
                .long("dir")
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Where to; otherwise recordings/ in the state directory"),
        )
        .arg(
            Arg::new("for")
                .long("for")
                .value_name("DURATION")
                .value_parser(amount::duration)
                .help("End after so long: 90s, 30m, 8h, 1h30m"),
        )
        .arg(
            Arg::new("max-size")
                .long("max-size")
                .value_name("SIZE")
                .value_parser(amount::size)
                .default_value("256M")
                .help("Drop the oldest screens beyond this size: 500K, 256M, 2G"),
        )
        .arg(
            Arg::new("every")
                .long("every")
                .value_name("DURATION")
                .value_parser(amount::duration)
                .default_value("1s")
                .help("How often to look"),
        )
        .arg(
            Arg::new("mask")
                .long("mask")
                .action(ArgAction::SetTrue)
                .help("Mask words, names and titles; a screen that would then be judged otherwise is left out"),
        )
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let window = args.get_one::<String>("window").map(String::as_str);
    let which = match (args.get_flag("all"), window) {
        (true, session) => Which::All(session),
        (false, Some(window)) => Which::One(window),
        (false, None) => return Ok(refuse(64, "which pane? Give a window, %pane or --all")),
    };
    let settings = invocation.settings()?.settings;
    let dir = args.get_one::<PathBuf>("dir").cloned().unwrap_or_else(|| settings.state_dir.join(DIR));
    let max_bytes = args.get_one::<u64>("max-size").copied().unwrap_or_default();
    let writer = match Writer::open(&dir, max_bytes) {
        Ok(writer) => writer,
        Err(error) => return Ok(refuse(1, &format!("cannot record to {}: {error}", dir.display()))),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")?;
    runtime.block_on(async {
        let out = pane_live::lasting_outside(settings, invocation.profiles()?)?;
        let mut recording = Recording {
            out,
            which,
            recorder: Recorder::default(),
            mask: args.get_flag("mask"),
            left_out: 0,
            writer,
            json: invocation.json,
            frames: 0,
            lost: 0,
            trouble: None,
            is_heard: true,
        };
        let every = args.get_one::<Duration>("every").copied().unwrap_or(Duration::from_secs(1));
        recording.run(args.get_one::<Duration>("for").copied(), every).await
    })
}

/// Says why nothing is recorded.
fn refuse(code: u8, why: &str) -> u8 {
    render::note(&format!("ng record: {why}"));
    code
}

/// A recording in progress.
struct Recording<'a> {
    out: Outside<Servers<TmuxClient>>,
    which: Which<'a>,
    recorder: Recorder,
    mask: bool,
    /// Screens that can't be masked.
    left_out: u64,
    writer: Writer,
    json: bool,
    frames: u64,
    /// Writes that failed; each is tried again.
    lost: u64,
    /// What keeps it from recording right now; said once.
    trouble: Option<String>,
    /// Whether somebody still reads the events.
    is_heard: bool,
}

impl Recording<'_> {
    /// Records until it is told to end, or its time is over.
    async fn run(&mut self, lasts: Option<Duration>, every: Duration) -> anyhow::Result<u8> {
        let mut term = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        let mut int = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
        // A write beyond a limit on file sizes is an error like a full disk, not an end.
        let _size_limit =
            signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).context("listening for SIGXFSZ")?;
        let began = self.out.clock.now();
        match self.view().await {
            Ok(Ok(view)) => self.begin(view.panes.len(), lasts, every),
            Ok(Err((code, why))) => return Ok(refuse(code, &why)),
            Err(error) => return Ok(refuse(2, &error)),
        }
        let mut told = began.uptime;
        loop {
            let now = self.out.clock.now();
            if lasts.is_some_and(|lasts| now.uptime.saturating_sub(began.uptime) >= lasts) {
                break;
            }
            self.look(&now).await;
            if now.uptime.saturating_sub(told) >= TELL_EVERY && std::io::stderr().is_terminal() {
                told = now.uptime;
                render::note(&format!("{} so far", self.sum()));
            }
            if self.json && !self.is_heard {
                break;
            }
            let left = lasts.map(|lasts| (began.uptime + lasts).saturating_sub(self.out.clock.now().uptime));
            tokio::select! {
                _ = term.recv() => break,
                _ = int.recv() => break,
                () = tokio::time::sleep(left.map_or(every, |left| left.min(every))) => {}
            }
        }
        Ok(self.end())
    }

    /// What tmux lists of the panes that are meant; or the exit code for that there are none, and why.
    ///
    /// Errors: tmux can't be asked.
    async fn view(&self) -> Result<Result<TmuxView, (u8, String)>, String> {
        let mut view = match self.out.tmux.view().await {
            Ok(view) => view,
            Err(error) => return Err(tmux::check_installed().await.err().unwrap_or(error).to_string()),
        };
        self.out.observer.meet(&view);
        match pane_live::meant(self.which, &self.out.settings.get(), &view) {
            Meant::Windows(windows) => view.panes.retain(|pane| windows.contains(&pane.window)),
            Meant::Pane(pane) => view.panes = vec![*pane],
            Meant::None(why) => return Ok(Err((3, why))),
            Meant::Unknown(why) => return Err(why),
            Meant::Several(why) => return Ok(Err((64, why))),
        }
        // A window that is linked into several sessions is listed in each.
        let mut seen = Vec::new();
        view.panes.retain(|pane| {
            let is_first = !seen.contains(&pane.pane);
            seen.push(pane.pane);
            is_first
        });
        Ok(Ok(view))
    }

    /// Looks once, and keeps what changed. What goes wrong is said once, and tried again.
    async fn look(&mut self, now: &Now) {
        let view = match self.view().await {
            Ok(Ok(view)) => view,
            Ok(Err((_, why))) | Err(why) => return self.trouble(Some(why)),
        };
        let news = match self.recorder.look(&self.out, &view, now).await {
            Ok(news) => news,
            Err(error) => return self.trouble(Some(error.to_string())),
        };
        let mut trouble = None;
        for frame in news {
            let masked = self.mask.then(|| self.masked(&frame));
            if masked == Some(None) {
                self.left_out += 1;
                self.recorder.kept(frame);
                continue;
            }
            let shown = masked.flatten();
            let written = shown.as_ref().unwrap_or(&frame);
            match self.write(written) {
                Ok(bytes) => {
                    self.tell_frame(written, bytes);
                    self.recorder.kept(frame);
                }
                Err(error) => {
                    self.lost += 1;
                    trouble = Some(format!("cannot write to {}: {error}", self.writer.dir().display()));
                }
            }
        }
        self.trouble(trouble);
    }

    /// The frame with its words masked, if it can be.
    fn masked(&self, frame: &Frame) -> Option<Frame> {
        masked_frame(frame, self.out.observer.profile(&frame.process).as_deref())
    }

    /// Writes a frame; how many bytes it took.
    fn write(&mut self, frame: &Frame) -> std::io::Result<usize> {
        let record = wire::encode(frame)?;
        self.writer.append(&record, frame.at)?;
        self.frames += 1;
        Ok(record.len())
    }

    /// Says what is wrong, if that is new, or that nothing is any more.
    fn trouble(&mut self, trouble: Option<String>) {
        if trouble == self.trouble {
            return;
        }
        match &trouble {
            Some(why) => render::note(&format!("ng record: {why}; it is tried again")),
            None => render::note("ng record: it goes on"),
        }
        self.event(&json!({ "event": if trouble.is_some() { "trouble" } else { "goes-on" }, "why": trouble }));
        self.trouble = trouble;
    }

    /// Says that it begins.
    fn begin(&mut self, panes: usize, lasts: Option<Duration>, every: Duration) {
        let dir = self.writer.dir().display().to_string();
        let until = lasts.map_or_else(|| "until interrupted".to_owned(), |lasts| format!("for {}", age_text(lasts)));
        render::note(&format!("recording {panes} panes to {dir} {until}; Ctrl-C ends it"));
        self.event(&json!({ "event": "began", "panes": panes, "dir": dir, "every_ms": every.as_millis() as u64 }));
    }

    /// Says that a screen was kept.
    fn tell_frame(&mut self, frame: &Frame, bytes: usize) {
        if self.json {
            self.event(&json!({
                "event": "frame", "at": frame.at, "pane": frame.facts.pane, "window": frame.facts.window_name,
                "state": frame.verdict.state, "bytes": bytes,
            }));
        }
    }

    /// Says how it ended; the exit code.
    fn end(&mut self) -> u8 {
        let dir = self.writer.dir().display().to_string();
        self.event(&json!({
            "event": "ended", "frames": self.frames, "left_out": self.left_out, "lost": self.lost, "files_dropped": self.writer.dropped,
            "bytes": self.writer.total_bytes(), "dir": dir,
        }));
        render::note(&format!("{}; judge them again with: ng replay {}", self.sum(), quote(&dir)));
        u8::from(self.lost > 0)
    }

    /// What was recorded, for people.
    fn sum(&self) -> String {
        let kib = self.writer.total_bytes().div_ceil(1024);
        let mut sum = format!("{} screens kept, {kib} KiB", self.frames);
        if self.writer.dropped > 0 {
            sum = format!("{sum}, {} older files dropped to make room", self.writer.dropped);
        }
        if self.left_out > 0 {
            sum = format!("{sum}, {} left out that could not be masked", self.left_out);
        }
        if self.lost > 0 {
            sum = format!("{sum}, {} writes failed", self.lost);
        }
        sum
    }

    /// Prints an event for programs.
    fn event(&mut self, event: &Value) {
        if self.json && self.is_heard {
            self.is_heard = render::try_line(&event.to_string());
        }
    }
}
