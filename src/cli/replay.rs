//! `ng replay`: judges kept screens again, and says which verdicts are others than before, or than by other profiles.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::json;

use super::{Invocation, Verb, render};
use crate::agents::{ProfileFile, Profiles};
use crate::logic::archive::{Difference, Frame, Table};
use crate::logic::pane::judge_capture;
use crate::logic::text::{Joiners, visible};
use crate::sys::{git, profile_files, recordings};

pub(super) const VERB: Verb = Verb { command, run, usage: 64 };

fn command() -> Command {
    Command::new("replay")
        .about("Judge kept screens again (`ng record`), and say which verdicts change")
        .after_help(
            "Exit: 0 no verdict changes, 1 some do, 2 something could not be read, 64 usage.\n\
             A git revision gives its profiles only, not its code.",
        )
        .arg(
            Arg::new("dir")
                .value_name("DIR")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .help("A directory of kept screens, or one such file"),
        )
        .arg(
            Arg::new("against").long("against").value_name("PROFILE|GIT-REV").help(
                "Compare with this profile file, or with the profiles of this revision of the project's checkout",
            ),
        )
        .arg(
            Arg::new("table")
                .long("table")
                .action(ArgAction::SetTrue)
                .help("Print how many screens were taken for what"),
        )
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let Some(dir) = args.get_one::<PathBuf>("dir") else { return Ok(64) };
    let profiles = invocation.profiles()?;
    let against = match args.get_one::<String>("against") {
        Some(given) => match others(given) {
            Ok(others) => Some(others),
            Err(error) => {
                render::note(&format!("ng replay: --against {given}: {error:#}"));
                return Ok(64);
            }
        },
        None => None,
    };
    let files = match files(dir) {
        Ok(files) => files,
        Err(error) => {
            render::note(&format!("ng replay: {error:#}"));
            return Ok(2);
        }
    };
    let mut replayed = Replayed::default();
    for path in &files {
        let read =
            recordings::read(path, |line| replayed.take(path, line, &profiles, against.as_ref(), invocation.json));
        if let Err(error) = read {
            replayed.bad(path, &error.to_string());
        }
    }
    if args.get_flag("table") && !invocation.json {
        for line in replayed.table.lines() {
            render::line(&line);
        }
    }
    render::note(&format!(
        "ng replay: {} screens, {} verdicts changed, {} not read",
        replayed.screens, replayed.changed, replayed.bad
    ));
    Ok(match (replayed.bad, replayed.changed) {
        (1.., _) => 2,
        (0, 1..) => 1,
        (0, 0) => 0,
    })
}

/// The files that are meant.
fn files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if dir.is_file() {
        return Ok(vec![dir.to_owned()]);
    }
    let files = recordings::list(dir).with_context(|| format!("reading {}", dir.display()))?;
    anyhow::ensure!(!files.is_empty(), "no kept screens in {}; make some with: ng record --all", dir.display());
    Ok(files)
}

/// The profiles to compare with: those built in, with a file or those of a revision in their place.
fn others(given: &str) -> anyhow::Result<Profiles> {
    let path = Path::new(given);
    let files: Vec<ProfileFile> = if path.is_file() {
        vec![ProfileFile { path: path.to_owned(), text: profile_files::read_file(path) }]
    } else {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")?;
        let texts = runtime
            .block_on(git::files_of(Path::new("."), given, "config/agents"))
            .context("it is no file, and git knows no profiles of a revision of that name here")?;
        texts.into_iter().map(|(name, text)| ProfileFile { path: name.into(), text: Ok(text) }).collect()
    };
    let (profiles, problems) = Profiles::with_files(&files)?;
    match problems.first() {
        Some(problem) => anyhow::bail!("{problem}"),
        None => Ok(profiles),
    }
}

/// What came of it so far.
#[derive(Default)]
struct Replayed {
    screens: u64,
    changed: u64,
    bad: u64,
    table: Table,
}

impl Replayed {
    fn take(
        &mut self,
        path: &Path,
        line: Result<&str, String>,
        now: &Profiles,
        against: Option<&Profiles>,
        json: bool,
    ) {
        let frame = match line.and_then(Frame::parse) {
            Ok(frame) => frame,
            Err(why) => return self.bad(path, &why),
        };
        let Some(profile) = now.get(&frame.agent) else {
            return self.bad(path, &format!("a screen of {}, of which there is no profile", frame.agent));
        };
        let (capture, facts) = (frame.capture(), frame.facts());
        let here = judge_capture(profile, &facts, &capture);
        // Without other profiles, with what was said when the screen was kept.
        let (old, new) = match against.and_then(|others| others.get(&frame.agent)) {
            Some(other) => (here, judge_capture(other, &facts, &capture)),
            None => (frame.verdict.clone(), here),
        };
        self.screens += 1;
        self.table.count(&frame.agent, frame.agent_version.as_deref(), old.state, new.state);
        let Some(difference) = Difference::between(&old, &new) else { return };
        self.changed += 1;
        if json {
            let document = json!({"at": frame.at, "pane": frame.pane, "window": frame.window, "agent": frame.agent, "change": difference});
            if let Err(error) = render::json(&document) {
                render::note(&format!("ng replay: {error:#}"));
            }
        } else {
            render::line(&format!(
                "{} {} {} {}: {} ({}) -> {} ({})",
                frame.at,
                frame.pane,
                visible(&frame.window, Joiners::Drop),
                frame.agent,
                difference.old,
                difference.old_rule,
                difference.new,
                difference.new_rule
            ));
        }
    }

    fn bad(&mut self, path: &Path, why: &str) {
        self.bad += 1;
        render::note(&format!("ng replay: {}: {why}", path.display()));
    }
}
