//! `ng pane-state WINDOW --report`: one screen with what its verdict rests on, masked, for a report of a misread screen.
//! What will be saved is shown before it is. `ng replay` reads it back.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde::Serialize;

use super::pane_live::{self, Meant, Which};
use super::pane_state::refuse;
use super::{Invocation, render};
use crate::agents::Profiles;
use crate::daemon::record::Recorder;
use crate::logic::archive::{Frame, masked_frame};
use crate::logic::text::{Joiners, visible};
use crate::sys::files::{self, Durability};
use crate::sys::stdin;
use crate::sys::tmux::Tmux as _;

/// What marks such a file; `ng replay` looks for it.
const KIND: &str = "nexus-watcher-screen";

/// What is saved.
#[derive(Serialize)]
struct Bundle<'a> {
    kind: &'a str,
    frame: &'a Frame,
}

/// Adds the flags of a report.
pub(super) fn args(command: Command) -> Command {
    command
        .arg(
            Arg::new("report")
                .long("report")
                .action(ArgAction::SetTrue)
                .requires("window")
                .conflicts_with_all(["all", "states", "capture", "explain"])
                .help("Save the screen with its words masked, after showing it, to be attached to a report"),
        )
        .arg(
            Arg::new("out")
                .long("out")
                .value_name("FILE")
                .requires("report")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Where to [default: nexus-screen-TIME.json here]"),
        )
        .arg(
            Arg::new("yes")
                .long("yes")
                .action(ArgAction::SetTrue)
                .requires("report")
                .help("Save without asking; it is still shown"),
        )
}

/// Makes a report of the one pane that is meant. The result is the exit code.
pub(super) fn run(invocation: &Invocation, args: &ArgMatches, profiles: Profiles) -> anyhow::Result<u8> {
    let Some(window) = args.get_one::<String>("window") else { return Ok(64) };
    let asks = !args.get_flag("yes");
    if asks && !std::io::stdin().is_terminal() {
        return Ok(refuse(
            64,
            "--report asks before it saves, and there is no terminal to ask on; look at it and give --yes",
        ));
    }
    let settings = invocation.settings()?.settings;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")?;
    let looked = runtime.block_on(async {
        let out = pane_live::outside(settings, profiles)?;
        let mut view = match out.tmux.view().await {
            Ok(view) => view,
            Err(error) => return Ok(Err((2, error.to_string()))),
        };
        out.observer.meet(&view);
        match pane_live::meant(Which::One(window), &out.settings.get(), &view) {
            Meant::Windows(windows) => view.panes.retain(|pane| windows.contains(&pane.window)),
            Meant::Pane(pane) => view.panes = vec![*pane],
            Meant::None(why) => return Ok(Err((3, why))),
            Meant::Unknown(why) => return Ok(Err((2, why))),
            Meant::Several(why) => return Ok(Err((64, why))),
        }
        let now = out.clock.now();
        let mut frames = match Recorder::default().look(&out, &view, &now).await {
            Ok(frames) => frames,
            Err(error) => return Ok(Err((2, error.to_string()))),
        };
        // Of several panes the one that runs an agent, else the one that is in front.
        frames.sort_by_key(|frame| (frame.process.agent.is_none(), !frame.facts.pane_active));
        let Some(frame) = frames.into_iter().next() else {
            return Ok(Err((2, format!("nothing could be read of {window}"))));
        };
        let profile = out.observer.profile(&frame.process);
        let masked = masked_frame(&frame, profile.as_deref());
        anyhow::Ok(masked.map(|masked| (masked, now.at.secs())).ok_or_else(|| {
            (2, "this screen can't be masked without being judged otherwise, so nothing was saved".to_owned())
        }))
    })?;
    let (frame, epoch) = match looked {
        Ok(found) => found,
        Err((code, why)) => return Ok(refuse(code, &why)),
    };
    let bundle = serde_json::to_string_pretty(&Bundle { kind: KIND, frame: &frame }).context("writing the report")?;
    let path = args.get_one::<PathBuf>("out").cloned().unwrap_or_else(|| format!("nexus-screen-{epoch}.json").into());
    if path.symlink_metadata().is_ok() {
        return Ok(refuse(2, &format!("{} is there already; choose another with --out", path.display())));
    }
    show(&frame, &bundle);
    if asks && !stdin::says_yes().context("reading the answer")? {
        render::note("nothing was saved");
        return Ok(1);
    }
    // A path of its own, since a bare name has no directory to write beside.
    let full = std::path::absolute(&path).with_context(|| format!("finding {}", path.display()))?;
    if let Err(error) = files::write_atomic(&full, bundle.as_bytes(), Durability::Durable) {
        return Ok(refuse(2, &format!("cannot save to {}: {error}", path.display())));
    }
    render::line(&path.display().to_string());
    Ok(0)
}

/// Shows what will be saved: the screen as people read it, then every byte of the rest.
fn show(frame: &Frame, bundle: &str) {
    render::note("This is what will be saved. Masking knows no names: read it.\n");
    for row in frame.capture().plain() {
        render::note(&format!("  | {}", visible(row, Joiners::Drop)));
    }
    let mut rest = true;
    for line in bundle.lines() {
        // The rows were shown above; with their escape sequences nobody can read them.
        rest = rest && !line.trim_start().starts_with("\"rows\":") || line.trim_start().starts_with("],");
        if rest {
            render::note(&visible(line, Joiners::Drop));
        }
    }
    render::note("\nSave it? [y/N]");
}
