//! `ng agents`: the profiles of agent programs in use, where they come from, and whether an operator's files are right.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};

use super::{Invocation, Verb, render};
use crate::agents::{Amended, FileProblem, Origin, ProfileFile, Profiles, Source};
use crate::logic::pane::Profile;
use crate::logic::text::{Joiners, visible};
use crate::sys::profile_files;

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

fn command() -> Command {
    Command::new("agents")
        .about("List the profiles of agents in use, check files of your own, and print a profile")
        .after_help("Exit: 0 fine, 1 a file can't be used, 2 usage.")
        .subcommand(
            Command::new("check").about("Check profile files, or all of this nexus; list every problem").arg(
                Arg::new("file")
                    .value_name("FILE")
                    .num_args(0..)
                    .value_parser(clap::value_parser!(PathBuf))
                    .help("Files to check; they need not be in place yet"),
            ),
        )
        .subcommand(
            Command::new("show")
                .about("Print a profile as it is in effect")
                .arg(Arg::new("name").value_name("NAME").required(true).help("The profile, as `ng agents` lists it")),
        )
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    match args.subcommand() {
        Some(("check", sub)) => {
            let given: Vec<&PathBuf> = sub.get_many("file").into_iter().flatten().collect();
            check(invocation, &given)
        }
        Some(("show", sub)) => show(invocation, sub.get_one::<String>("name").map_or("", String::as_str)),
        _ => list(invocation),
    }
}

/// Lists the profiles.
fn list(invocation: &Invocation) -> anyhow::Result<u8> {
    let (profiles, problems) = Profiles::with_files(&invocation.profile_files())?;
    if invocation.json {
        let list: Vec<Value> = profiles.sources().map(|(profile, source)| document(profile, source)).collect();
        render::json(&json!({ "profiles": list, "problems": problem_documents(&problems) }))?;
    } else {
        for line in table(&profiles) {
            render::line(&line);
        }
    }
    Ok(say(&problems))
}

/// Checks files together with those that are in place.
fn check(invocation: &Invocation, given: &[&PathBuf]) -> anyhow::Result<u8> {
    let in_place = invocation.profile_files();
    let files = with_given(in_place, given);
    let (profiles, problems) = Profiles::with_files(&files)?;
    let is_meant = |path: &Path| given.is_empty() || given.iter().any(|one| one.as_path() == path);
    let problems: Vec<FileProblem> = problems.into_iter().filter(|problem| is_meant(&problem.path)).collect();
    let mut done = Vec::new();
    for file in files.iter().filter(|file| is_meant(&file.path)) {
        let is_bad = problems.iter().any(|problem| problem.path == file.path);
        let does = (!is_bad).then(|| what_it_does(&profiles, &file.path));
        done.push((file, does));
    }
    if invocation.json {
        let files: Vec<Value> =
            done.iter().map(|(file, does)| json!({ "file": file.path, "does": does, "ok": does.is_some() })).collect();
        render::json(&json!({ "ok": problems.is_empty(), "files": files, "problems": problem_documents(&problems) }))?;
    } else {
        for (file, does) in &done {
            if let Some(does) = does {
                render::line(&format!("{}: fine: {does}", file.path.display()));
            }
        }
        if done.is_empty() {
            render::line("there are no profile files; the built-in profiles are in use");
        }
    }
    Ok(say(&problems))
}

/// The files in place and the given ones; of a file that is both, the given one.
pub(super) fn with_given(in_place: Vec<ProfileFile>, given: &[&PathBuf]) -> Vec<ProfileFile> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let is_given = |file: &ProfileFile| given.iter().any(|path| real(path) == real(&file.path));
    let mut files: Vec<ProfileFile> = in_place.into_iter().filter(|file| !is_given(file)).collect();
    files.extend(given.iter().map(|path| ProfileFile { path: (*path).clone(), text: profile_files::read_file(path) }));
    files
}

/// Prints a profile.
fn show(invocation: &Invocation, name: &str) -> anyhow::Result<u8> {
    let profiles = invocation.profiles()?;
    let Some((profile, source)) = profiles.sources().find(|(profile, _)| profile.name == name) else {
        let known: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        render::note(&format!("ng agents: no profile {:?}; known are: {}", shown(name), known.join(", ")));
        return Ok(2);
    };
    if invocation.json {
        let mut document = document(profile, source);
        document["text"] = json!(source.text);
        render::json(&document)?;
    } else {
        render::line(source.text.trim_end());
    }
    Ok(0)
}

/// What a file in use does, for people.
fn what_it_does(profiles: &Profiles, path: &Path) -> String {
    for (profile, source) in profiles.sources() {
        if source.origin == Origin::File(path.to_owned()) {
            return format!("holds the profile {} ({} rules)", profile.name, profile.screen.rules.len());
        }
        if let Some(amended) = source.amended.iter().find(|amended| amended.path == path) {
            let stale = stale(profile, amended).map(|note| format!(" ({note})")).unwrap_or_default();
            return shown(&format!("amends {}: {}{stale}", profile.name, amended.summary()));
        }
    }
    "is not in use".to_owned()
}

/// That the profile has changed since the amendment was made, if it has.
fn stale(profile: &Profile, amended: &Amended) -> Option<String> {
    let made_for = amended.made_for.filter(|made_for| *made_for != profile.version)?;
    Some(format!("made for version {made_for} of the profile, which is {} now: still needed?", profile.version))
}

/// The table of profiles for people, and below it what amends them.
fn table(profiles: &Profiles) -> Vec<String> {
    let line = |cells: [&str; 6]| {
        let [name, title, version, hooks, seen, from] = cells.map(shown);
        format!("{name:<10} {title:<16} {version:>7} {hooks:<7} {seen:<20} {from}").trim_end().to_owned()
    };
    let mut lines = vec![line(["NAME", "TITLE", "VERSION", "HOOKS", "SEEN", "FROM"])];
    for (profile, source) in profiles.sources() {
        let from = match &source.origin {
            Origin::BuiltIn => "built-in".to_owned(),
            Origin::File(path) => path.display().to_string(),
        };
        let amended = if source.amended.is_empty() { "" } else { ", amended" };
        let (version, from) = (profile.version.to_string(), format!("{from}{amended}"));
        lines.push(line([&profile.name, &profile.title, &version, profile.hooks.word(), &seen(profile), &from]));
    }
    for (profile, source) in profiles.sources() {
        for amended in &source.amended {
            lines.push(String::new());
            lines.push(shown(&format!("{}: {}", amended.path.display(), amended.summary())));
            let notes = [amended.why.clone(), stale(profile, amended)];
            lines.extend(notes.iter().flatten().map(|note| format!("  {}", shown(note))));
        }
    }
    lines
}

/// The versions that were seen: the oldest and the newest.
fn seen(profile: &Profile) -> String {
    let text = |version: &Vec<u32>| version.iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
    match profile.seen.as_slice() {
        [] => "-".to_owned(),
        [one] => text(one),
        [first, .., last] => format!("{} to {}", text(first), text(last)),
    }
}

/// A profile as JSON.
fn document(profile: &Profile, source: &Source) -> Value {
    let origin = match &source.origin {
        Origin::BuiltIn => json!("built-in"),
        Origin::File(path) => json!(path),
    };
    let seen: Vec<String> = profile
        .seen
        .iter()
        .map(|version| version.iter().map(ToString::to_string).collect::<Vec<_>>().join("."))
        .collect();
    let amended: Vec<Value> = source
        .amended
        .iter()
        .map(|one| {
            json!({
                "file": one.path, "why": one.why, "made_for": one.made_for, "stale": stale(profile, one).is_some(),
                "adds": one.added, "changes": one.changed, "removes": one.removed, "sets": one.set,
            })
        })
        .collect();
    json!({
        "name": profile.name, "title": profile.title, "version": profile.version, "seen": seen,
        "hooks": profile.hooks.word(), "rules": profile.screen.rules.len(), "origin": origin, "amended": amended,
    })
}

/// Problems as JSON.
fn problem_documents(problems: &[FileProblem]) -> Vec<Value> {
    let one = |problem: &FileProblem| {
        let key = Some(problem.key.as_str()).filter(|key| !key.is_empty());
        json!({ "file": problem.path, "line": problem.line, "key": key, "what": problem.what })
    };
    problems.iter().map(one).collect()
}

/// Says what is wrong; the exit code.
fn say(problems: &[FileProblem]) -> u8 {
    for problem in problems {
        render::note(&format!("ng agents: {}", shown(&problem.to_string())));
    }
    u8::from(!problems.is_empty())
}

/// Text of a file on one line, without what can't be seen.
fn shown(text: &str) -> String {
    visible(text, Joiners::Drop).replace(['\n', '\t'], " ")
}
