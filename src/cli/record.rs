//! `ng record`: keeps the screens of windows while it runs, each time one changes, for `ng replay`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::pane_live::{self, Which};
use super::{Invocation, Verb, render};
use crate::daemon::Outside;
use crate::daemon::observe;
use crate::logic::archive::{Frame, masked};
use crate::logic::ids::PaneId;
use crate::logic::pane::judge_capture;
use crate::logic::screen::Capture as Screen;
use crate::logic::snapshot::{ObservedPane, TmuxView};
use crate::sys::recordings::Recording;
use crate::sys::tmux::{Capture, CaptureRequest, Tmux as _, TmuxClient};

pub(super) const VERB: Verb = Verb { command, run, usage: 64 };

/// How often the panes are looked at.
const EVERY: Duration = Duration::from_secs(1);

fn command() -> Command {
    Command::new("record")
        .about("Keep the screens of windows, each time one changes, until interrupted")
        .after_help("Exit: 0 ended as asked, 2 could not look or write, 3 no such window, 64 usage.")
        .arg(
            Arg::new("window")
                .value_name("WINDOW")
                .help("A window by name, index, @id or session:index, or a pane by %id"),
        )
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
                .help("Where to keep them [default: recordings in the state directory]"),
        )
        .arg(
            Arg::new("seconds")
                .long("for")
                .value_name("SECONDS")
                .value_parser(clap::value_parser!(u64).range(1..))
                .help("End by itself after so long"),
        )
        .arg(
            Arg::new("max-mb")
                .long("max-mb")
                .value_name("MB")
                .default_value("256")
                .value_parser(clap::value_parser!(u64).range(1..1_000_000))
                .help("Most megabytes in the directory; the oldest screens go"),
        )
        .arg(
            Arg::new("mask")
                .long("mask")
                .action(ArgAction::SetTrue)
                .help("Mask words (a screen that would then be judged otherwise is left out)"),
        )
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let window = args.get_one::<String>("window").map(String::as_str);
    let which = match (args.get_flag("all"), window) {
        (true, session) => Which::All(session),
        (false, Some(window)) => Which::One(window),
        (false, None) => {
            render::note("ng record: which panes? Give a window, %pane or --all");
            return Ok(64);
        }
    };
    let settings = invocation.settings()?.settings;
    let dir = args.get_one::<PathBuf>("dir").cloned().unwrap_or_else(|| settings.state_dir.join("recordings"));
    let max_bytes = args.get_one::<u64>("max-mb").copied().unwrap_or(256) << 20;
    let profiles = invocation.profiles()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")?;
    runtime.block_on(async {
        let out = pane_live::outside_for_long(settings, profiles)?;
        let mut recording = Recording::start(&dir, out.clock.now().at.secs(), max_bytes)
            .with_context(|| format!("keeping screens in {}", dir.display()))?;
        let mut kept = Kept { mask: args.get_flag("mask"), ..Kept::default() };
        let mut int = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
        let mut term = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        let end = args.get_one::<u64>("seconds").map(|seconds| out.clock.now().uptime + Duration::from_secs(*seconds));
        render::note(&format!("ng record: keeping screens in {}; Ctrl-C ends it", dir.display()));
        loop {
            match kept.look(&out, which, &mut recording).await? {
                Looked::Fine => {}
                Looked::Not(code, why) => {
                    render::note(&format!("ng record: {why}"));
                    return Ok(code);
                }
            }
            if end.is_some_and(|end| out.clock.now().uptime >= end) {
                break;
            }
            tokio::select! {
                _ = int.recv() => break,
                _ = term.recv() => break,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
        render::note(&format!("ng record: {} screens kept, {} left out", kept.screens, kept.left_out));
        Ok(0)
    })
}

/// What came of a look.
enum Looked {
    /// Everything that changed is kept.
    Fine,
    /// Nothing; exit code and why.
    Not(u8, String),
}

/// What was kept last.
#[derive(Default)]
struct Kept {
    mask: bool,
    last: HashMap<PaneId, String>,
    screens: u64,
    left_out: u64,
    looked: bool,
}

impl Kept {
    /// Looks once, and keeps what changed.
    async fn look(
        &mut self,
        out: &Outside<TmuxClient>,
        which: Which<'_>,
        recording: &mut Recording,
    ) -> anyhow::Result<Looked> {
        let mut view = match out.tmux.view().await {
            Ok(view) => view,
            Err(error) => return Ok(Looked::Not(2, error.to_string())),
        };
        match pane_live::narrow(out, which, &mut view) {
            Ok(()) => self.looked = true,
            // A window may be closed while it is recorded: that ends it.
            Err(why) if self.looked => return Ok(Looked::Not(0, why)),
            Err(why) => return Ok(Looked::Not(3, why)),
        }
        let now = out.clock.now();
        let observed = match observe::panes(out, &view, &now).await {
            Ok(observed) => observed,
            Err(error) => return Ok(Looked::Not(2, error.to_string())),
        };
        let requests: Vec<CaptureRequest> =
            observed.iter().map(|pane| CaptureRequest { pane: pane.facts.pane, rows: None, styled: true }).collect();
        let captures = match out.tmux.capture(&requests).await {
            Ok(captures) => captures,
            Err(error) => return Ok(Looked::Not(2, error.to_string())),
        };
        for (pane, capture) in observed.iter().zip(captures) {
            let Capture::Rows(rows) = capture else { continue };
            let mut screen = rows.join("\n");
            screen.push('\n');
            if self.last.get(&pane.facts.pane) == Some(&screen) {
                continue;
            }
            match frame(out, &view, pane, &screen, self.mask, now.at.secs()) {
                Some(frame) => {
                    recording.add(&serde_json::to_string(&frame)?).context("keeping a screen")?;
                    self.screens += 1;
                }
                None => self.left_out += 1,
            }
            self.last.insert(pane.facts.pane, screen);
        }
        Ok(Looked::Fine)
    }
}

/// One kept screen; `None` if nobody's rules fit it, or it can't be masked.
pub(super) fn frame(
    out: &Outside<TmuxClient>,
    view: &TmuxView,
    pane: &ObservedPane,
    screen: &str,
    mask: bool,
    at: i64,
) -> Option<Frame> {
    let profiles = out.observer.profiles();
    let capture = Screen::from_bytes(screen.as_bytes());
    let named = pane.verdict.agent.as_deref().and_then(|name| profiles.get(name));
    let profile = named.or_else(|| profiles.of_screen(&capture))?;
    let facts = crate::logic::pane::ScreenFacts::from(&pane.facts).with_version(pane.verdict.agent_version.clone());
    let (screen, verdict) = if mask {
        masked(profile, &facts, &capture)?
    } else {
        (screen.to_owned(), judge_capture(profile, &facts, &capture))
    };
    Some(Frame {
        v: Frame::form(),
        at,
        pane: pane.facts.pane.to_string(),
        window: pane.facts.window_name.0.clone(),
        size: pane.facts.size,
        title: pane.facts.title.clone(),
        dead: pane.facts.dead.is_some(),
        in_mode: pane.facts.in_mode,
        agent: profile.name.clone(),
        agent_version: pane.verdict.agent_version.clone(),
        ng: env!("CARGO_PKG_VERSION").to_owned(),
        tmux: view.version.clone(),
        masked: mask,
        screen,
        verdict,
        // Evidence of other witnesses can name files and texts.
        fused: (!mask).then(|| pane.verdict.clone()),
    })
}
