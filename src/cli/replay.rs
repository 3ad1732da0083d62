//! `ng replay`: judges recorded or saved screens again, offline, and says what became another.

mod against;
mod source;

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde::Serialize;

use super::{Invocation, Verb, render};
use crate::agents::Profiles;
use crate::daemon::observe::contained;
use crate::logic::archive::{Difference, Frame, Table, differences, frame};
use crate::logic::pane::{Grade, Label, PaneVerdict, judge_capture};
use crate::logic::screen::Capture;
use crate::logic::text::{Joiners, visible};
use crate::logic::time::utc;
use against::Against;
use source::{Item, Screens};

pub(super) const VERB: Verb = Verb { command, run, usage: 64 };

fn command() -> Command {
    Command::new("replay")
        .about("Judge recorded screens again, and say what became another")
        .after_help(
            "DIR holds what `ng record` kept, bundles of `ng pane-state --report`, or captures with labels (.ansi and \
             .json, as in tests/captures).\n\nExit: 0 nothing became another, 1 something did (or a label is not met), \
             2 could not read, 64 usage.",
        )
        .arg(
            Arg::new("dir")
                .value_name("DIR")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .help("The folder, or one file of it"),
        )
        .arg(
            Arg::new("against")
                .long("against")
                .value_name("PROFILE|REV")
                .help("Compare with another profile file, or with the profiles (not the code) of a git revision"),
        )
        .arg(
            Arg::new("profile")
                .long("profile")
                .value_name("FILE")
                .action(ArgAction::Append)
                .value_parser(clap::value_parser!(PathBuf))
                .help("Judge with this profile file too, as `ng pane-state --profile`"),
        )
        .arg(
            Arg::new("table")
                .long("table")
                .action(ArgAction::SetTrue)
                .help("Print how often what became what, by agent and version"),
        )
        .arg(
            Arg::new("screen")
                .long("screen")
                .value_name("N")
                .value_parser(clap::value_parser!(usize))
                .conflicts_with_all(["against", "table", "json"])
                .help("Print the screen with this number as it was, with its colours"),
        )
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    let Some(dir) = args.get_one::<PathBuf>("dir") else { return Ok(64) };
    let given: Vec<&PathBuf> = args.get_many("profile").into_iter().flatten().collect();
    let profiles = match invocation.profiles_with(&given) {
        Ok(profiles) => profiles,
        Err(problem) => return Ok(refuse(&format!("--profile: {problem:#}"))),
    };
    let against = match args.get_one::<String>("against").map(|what| Against::find(invocation, &given, what)) {
        None => None,
        Some(Ok(against)) => Some(against),
        Some(Err(error)) => return Ok(refuse(&format!("--against: {error:#}"))),
    };
    let mut screens = match Screens::open(dir) {
        Ok(screens) => screens,
        Err(error) => return Ok(refuse(&format!("{error:#}"))),
    };
    if let Some(number) = args.get_one::<usize>("screen") {
        return Ok(print_screen(&mut screens, *number));
    }
    let mut replay = Replay::default();
    for item in screens.by_ref() {
        replay.take(&item, &profiles, against.as_ref());
    }
    if replay.screens == 0 {
        for damage in &screens.damaged {
            render::note(&format!("ng replay: {damage}"));
        }
        return Ok(refuse(&format!("nothing in {} can be judged", dir.display())));
    }
    let out = Output { replay: &replay, damaged: &screens.damaged, against: against.as_ref() };
    if invocation.json {
        render::json(&out.document())?;
    } else {
        out.print(args.get_flag("table"));
    }
    Ok(u8::from(replay.is_another()))
}

/// Says why nothing was judged.
fn refuse(why: &str) -> u8 {
    render::note(&format!("ng replay: {why}"));
    2
}

/// Prints one screen.
fn print_screen(screens: &mut Screens, number: usize) -> u8 {
    let Some(item) = number.checked_sub(1).and_then(|before| screens.nth(before)) else {
        return refuse(&format!("there is no screen {number}"));
    };
    let rows = match &item {
        Item::Recorded { frame, .. } => frame.rows.clone(),
        Item::Labelled { capture, .. } => capture.styled(0, u16::try_from(capture.plain().len()).unwrap_or(u16::MAX)),
    };
    // What is in a file may be anything; a terminal gets the text only.
    let rows = if std::io::stdout().is_terminal() { Capture::from_rows(rows).plain().to_vec() } else { rows };
    for row in rows {
        render::line(&row);
    }
    0
}

/// What became another.
#[derive(Debug, Serialize)]
struct Change {
    /// Number of the screen, from 1, as `--screen` takes it.
    number: usize,
    /// Which screen: its file, when it was seen, its pane and window.
    screen: String,
    agent: String,
    version: String,
    /// The fields that differ; of a labelled screen, what the label wants and the verdict has not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<Difference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    /// How the verdict measures up to the label, before and now.
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<String>,
    /// The rules that decided.
    rules: (String, String),
}

/// What was found.
#[derive(Debug, Default)]
struct Replay {
    screens: usize,
    labelled: usize,
    changes: Vec<Change>,
    grades: BTreeMap<Grade, usize>,
    table: Table,
}

impl Replay {
    /// Whether something became another.
    fn is_another(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Judges a screen.
    fn take(&mut self, item: &Item, profiles: &Profiles, against: Option<&Against>) {
        self.screens += 1;
        match item {
            Item::Recorded { place, frame } => {
                let now = judged(frame, profiles);
                let (old, new) = match against {
                    None => (frame.verdict.clone(), now),
                    Some(other) => {
                        let then = judged(frame, &other.profiles);
                        (now, then)
                    }
                };
                self.table.add(frame.agent(), old.state.word(), new.state.word());
                let differences = differences(&old, &new);
                if !differences.is_empty() {
                    let name = visible(frame.facts.window_name.as_str(), Joiners::Drop);
                    let screen = format!("{} {} {name} ({place})", frame.at.iso(utc()), frame.facts.pane);
                    let who = frame.agent();
                    self.note(screen, who, differences, Vec::new(), None, (&old, &new));
                }
            }
            Item::Labelled { place, label, capture } => {
                self.labelled += 1;
                self.take_labelled(place, label, capture, profiles, against);
            }
        }
    }

    /// Judges a screen of which is known what was done to it.
    fn take_labelled(
        &mut self,
        place: &str,
        label: &Label,
        capture: &Capture,
        profiles: &Profiles,
        against: Option<&Against>,
    ) {
        let now = labelled(label, capture, profiles);
        let who = (label.agent.clone(), label.version.clone().unwrap_or_else(|| "-".to_owned()));
        let Some(other) = against else {
            let grade = label.grade(&now);
            *self.grades.entry(grade).or_default() += 1;
            self.table.add(who.clone(), &label.state, now.state.word());
            if grade != Grade::Right {
                let missing = label.compare(&now);
                self.note(place.to_owned(), who, Vec::new(), missing, Some(grade.to_string()), (&now, &now));
            }
            return;
        };
        let then = labelled(label, capture, &other.profiles);
        self.table.add(who.clone(), now.state.word(), then.state.word());
        let differences = differences(&now, &then);
        if !differences.is_empty() {
            let grade = format!("{} -> {}", label.grade(&now), label.grade(&then));
            self.note(place.to_owned(), who, differences, Vec::new(), Some(grade), (&now, &then));
        }
    }

    /// Keeps a change.
    fn note(
        &mut self,
        screen: String,
        (agent, version): (String, String),
        differences: Vec<Difference>,
        missing: Vec<String>,
        grade: Option<String>,
        (old, new): (&PaneVerdict, &PaneVerdict),
    ) {
        let rule = |verdict: &PaneVerdict| verdict.evidence.first().map(|one| one.rule.clone()).unwrap_or_default();
        let (number, rules) = (self.screens, (rule(old), rule(new)));
        self.changes.push(Change { number, screen, agent, version, differences, missing, grade, rules });
    }
}

/// Judges a recorded screen. One that panics the rules is not understood.
fn judged(frame: &Frame, profiles: &Profiles) -> PaneVerdict {
    let profile = profiles.of_pane(&frame.process);
    contained(|| frame.judge(profile.map(AsRef::as_ref))).unwrap_or_else(frame::panicked)
}

/// Judges a saved screen with the facts of its label.
fn labelled(label: &Label, capture: &Capture, profiles: &Profiles) -> PaneVerdict {
    let judge = || {
        let profile = profiles.get(&label.agent).or_else(|| profiles.of_screen(capture))?;
        Some(judge_capture(profile, &label.facts(), capture))
    };
    contained(judge).flatten().unwrap_or_else(frame::panicked)
}

/// What is printed.
struct Output<'a> {
    replay: &'a Replay,
    damaged: &'a [String],
    against: Option<&'a Against>,
}

impl Output<'_> {
    /// The answer as JSON.
    fn document(&self) -> serde_json::Value {
        let Replay { screens, labelled, changes, grades, table } = self.replay;
        let grades: BTreeMap<String, usize> = grades.iter().map(|(grade, count)| (grade.to_string(), *count)).collect();
        serde_json::json!({
            "screens": screens, "labelled": labelled, "changes": changes, "grades": grades, "table": table.rows(),
            "damaged": self.damaged, "against": self.against.map(|against| &against.says),
        })
    }

    /// The answer for people.
    fn print(&self, with_table: bool) {
        if let Some(against) = self.against {
            render::note(&format!("ng replay: {}", against.says));
        }
        for damage in self.damaged {
            render::note(&format!("ng replay: {damage}"));
        }
        for change in &self.replay.changes {
            render::line(&line(change));
        }
        if with_table {
            render::line(&format!("{:<10} {:<12} {:<22} NEW", "AGENT", "VERSION", "OLD"));
            for row in self.replay.table.rows() {
                let new: Vec<String> = row.new.iter().map(|(state, count)| format!("{state} {count}")).collect();
                let [agent, version, old] = [row.agent, row.version, row.old].map(|text| visible(text, Joiners::Drop));
                render::line(&format!("{agent:<10} {version:<12} {old:<22} {}", new.join(", ")));
            }
        }
        render::line(&self.summary());
    }

    /// The last line.
    fn summary(&self) -> String {
        let Replay { screens, changes, grades, .. } = self.replay;
        let what = if self.against.is_some() { "would be judged otherwise" } else { "judged otherwise than recorded" };
        let mut parts = vec![format!("{screens} screens")];
        if grades.is_empty() {
            parts.push(format!("{} {what}", changes.len()));
        } else {
            parts.extend(grades.iter().map(|(grade, count)| format!("{count} {grade}")));
            let recorded = screens.saturating_sub(self.replay.labelled);
            if recorded > 0 {
                let others = changes.iter().filter(|change| change.grade.is_none()).count();
                parts.push(format!("{others} of {recorded} recorded {what}"));
            }
        }
        if !self.damaged.is_empty() {
            parts.push(format!("{} damaged pieces left out", self.damaged.len()));
        }
        parts.join(", ")
    }
}

/// A change for people.
fn line(change: &Change) -> String {
    let Change { number, screen, agent, version, differences, missing, grade, rules } = change;
    let grade = grade.as_deref().map(|grade| format!("{grade}: ")).unwrap_or_default();
    let mut what: Vec<String> =
        differences.iter().map(|one| format!("{} {} -> {}", one.field, one.old, one.new)).collect();
    if !missing.is_empty() {
        what.push(format!("wants {}", missing.join(", ")));
    }
    let rules = if rules.0 == rules.1 { rules.0.clone() } else { format!("{} -> {}", rules.0, rules.1) };
    visible(&format!("#{number} {screen} {agent} {version}: {grade}{} [{rules}]", what.join("; ")), Joiners::Drop)
        .replace(['\n', '\t'], " ")
}
