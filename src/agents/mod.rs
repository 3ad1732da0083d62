//! Profiles of agent programs: what each looks like, as data. One YAML file in `config/agents/` and one line here; an
//! operator's files replace them, add to them or amend them (`docs/adding-an-agent.md`).

mod amend;
pub mod profile;
pub mod source;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::logic::pane::process::Process;
use crate::logic::pane::{DIALOG_SHAPE, ProcessFacts, Profile, ScreenFacts, judge_capture};
use crate::logic::screen::Capture;

use amend::Amendment;
pub use profile::{ProfileError, parse};
pub use source::{Amended, FileProblem, Origin, ProfileFile, Source};

/// Every built-in profile: name and text, in the order in which a screen of unknown origin is tried.
pub const BUILTIN: &[(&str, &str)] = &[
    ("claude", include_str!("../../config/agents/claude.yml")),
    ("demo", include_str!("../../config/agents/demo.yml")),
    ("opencode", include_str!("../../config/agents/opencode.yml")),
    ("aider", include_str!("../../config/agents/aider.yml")),
    ("gemini", include_str!("../../config/agents/gemini.yml")),
    ("codex", include_str!("../../config/agents/codex.yml")),
    ("qwen", include_str!("../../config/agents/qwen.yml")),
    // Last: whoever has a profile of its own is not any other.
    ("generic", include_str!("../../config/agents/generic.yml")),
];

/// The profiles in use.
#[derive(Clone, Debug)]
pub struct Profiles {
    /// In the order of [`BUILTIN`], then those of the operator's own.
    list: Vec<(Arc<Profile>, Source)>,
}

impl Profiles {
    /// Reads the built-in profiles.
    ///
    /// Errors: names the profile and the key; a build whose profiles do not load fails its tests.
    pub fn builtin() -> Result<Self, ProfileError> {
        let mut profiles = Self { list: Vec::new() };
        for (name, text) in BUILTIN {
            let source = Source { origin: Origin::BuiltIn, amended: Vec::new(), text: Cow::Borrowed(text) };
            profiles.list.push((Arc::new(profiles.parse(name, text)?), source));
        }
        Ok(profiles)
    }

    /// The built-in profiles with the operator's files applied in the order given. A file that can't be used changes
    /// nothing, and is named beside the profiles.
    ///
    /// Errors: a built-in profile does not load.
    pub fn with_files(files: &[ProfileFile]) -> Result<(Self, Vec<FileProblem>), ProfileError> {
        if files.is_empty() {
            return Ok((Self::builtin()?, Vec::new()));
        }
        let mut sorted = Sorted::of(files);
        let mut profiles = Self { list: Vec::new() };
        for (name, text) in BUILTIN {
            let own = profiles.parse(name, text)?;
            let source = Source { origin: Origin::BuiltIn, amended: Vec::new(), text: Cow::Borrowed(text) };
            profiles.add(&mut sorted, name, Some((own, source)));
        }
        for name in sorted.whole.keys().cloned().collect::<Vec<_>>() {
            profiles.add(&mut sorted, &name, None);
        }
        sorted.refuse_the_rest(&profiles);
        Ok((profiles, sorted.problems))
    }

    /// Reads one profile, which may share the screen of those that are here already.
    fn parse(&self, name: &str, text: &str) -> Result<Profile, ProfileError> {
        parse(name, text, |other| self.get(other).cloned())
    }

    /// Adds the profile of this name: the operator's, else the built-in one, with what amends it.
    fn add(&mut self, sorted: &mut Sorted, name: &str, own: Option<(Profile, Source)>) {
        let mut chosen = own;
        if let Some((path, text)) = sorted.whole.remove(name) {
            match self.parse(name, &text) {
                Ok(profile) => {
                    let source = Source { origin: Origin::File(path), amended: Vec::new(), text: Cow::Owned(text) };
                    chosen = Some((profile, source));
                }
                Err(error) => sorted.problems.push(problem(&path, &text, error)),
            }
        }
        let Some((mut profile, mut source)) = chosen else { return };
        for (path, text, amendment) in sorted.amendments.remove(name).unwrap_or_default() {
            let amended = amend::apply(&path, &text, amendment, &source.text);
            match amended.and_then(|(new, done)| match self.parse(name, &new) {
                Ok(profile) => Ok((profile, new, done)),
                Err(error) => Err(problem_of_amendment(&path, &text, error)),
            }) {
                Ok((new, text, done)) => {
                    profile = new;
                    source.text = Cow::Owned(text);
                    source.amended.push(done);
                }
                Err(problem) => sorted.problems.push(problem),
            }
        }
        self.list.push((Arc::new(profile), source));
    }

    /// The profile with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Profile>> {
        self.iter().find(|profile| profile.name == name)
    }

    /// Every profile.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.list.iter().map(|(profile, _)| profile)
    }

    /// Every profile, and where it comes from.
    pub fn sources(&self) -> impl Iterator<Item = (&Arc<Profile>, &Source)> {
        self.list.iter().map(|(profile, source)| (profile, source))
    }

    /// The profile of a process, as far as can be told.
    pub fn of(&self, process: &Process) -> Option<&Arc<Profile>> {
        self.iter().find(|profile| profile.process.is_process(process))
    }

    /// The profile to judge a pane's screen by, given what runs in it.
    pub fn of_pane(&self, process: &ProcessFacts) -> Option<&Arc<Profile>> {
        match (&process.agent, process.unclear) {
            (_, Some(why)) if why.hides_screen() => None,
            (Some(name), _) => self.get(name),
            // Who draws it is not known: the commonest agent's rules may still recognise it.
            (None, Some(_)) => self.iter().next(),
            (None, None) => None,
        }
    }

    /// The profile of a saved screen of which nothing else is known: the first that finds its box, else the first that
    /// has a rule for it. Else the first one; what only looks like a dialog may be anybody's.
    pub fn of_screen(&self, capture: &Capture) -> Option<&Arc<Profile>> {
        let mut has_rule = None;
        for profile in self.iter() {
            let verdict = judge_capture(profile, &ScreenFacts::default(), capture);
            if verdict.input.is_some() {
                return Some(profile);
            }
            let is_known = verdict.agent.is_some() && verdict.evidence.iter().all(|reason| reason.rule != DIALOG_SHAPE);
            has_rule = has_rule.or_else(|| is_known.then_some(profile));
        }
        has_rule.or_else(|| self.iter().next())
    }

    /// The profile of the process with this executable and these arguments (the first is the program's name). What an
    /// operator wrote whole is meant for that very program, so it goes before what is built in.
    pub fn of_process(&self, exe: &str, argv: &[String]) -> Option<&Arc<Profile>> {
        let is_own = |source: &Source| source.origin != Origin::BuiltIn;
        let own = self.list.iter().filter(|(_, source)| is_own(source));
        let built_in = self.list.iter().filter(|(_, source)| !is_own(source));
        own.chain(built_in).map(|(profile, _)| profile).find(|profile| profile.process.is_match(exe, argv))
    }
}

/// The operator's files by what they are.
#[derive(Default)]
struct Sorted {
    /// Whole profiles, by name.
    whole: BTreeMap<String, (PathBuf, String)>,
    /// Amendments by the profile that they are for, in the order given.
    amendments: BTreeMap<String, Vec<(PathBuf, String, Amendment)>>,
    /// What can't be used.
    problems: Vec<FileProblem>,
}

impl Sorted {
    /// Sorts files.
    fn of(files: &[ProfileFile]) -> Self {
        let mut sorted = Self::default();
        for file in files {
            if let Err(problem) = sorted.take(file) {
                sorted.problems.push(problem);
            }
        }
        sorted
    }

    /// Sorts one file in.
    fn take(&mut self, file: &ProfileFile) -> Result<(), FileProblem> {
        let path = &file.path;
        let text = file.text.as_ref().map_err(|why| FileProblem::of(path, None, format!("it can't be read: {why}")))?;
        if amend::is_amendment(path, text)? {
            let amendment = amend::parse(path, text)?;
            let same = self.amendments.entry(amendment.amends.clone()).or_default();
            same.push((path.clone(), text.clone(), amendment));
            return Ok(());
        }
        let name = file.stem().to_owned();
        if let Some((other, _)) = self.whole.get(&name) {
            let what = format!("{} holds a profile of this name already; remove one of them", other.display());
            return Err(FileProblem::of(path, None, what));
        }
        self.whole.insert(name, (path.clone(), text.clone()));
        Ok(())
    }

    /// Says which amendments were for no profile.
    fn refuse_the_rest(&mut self, profiles: &Profiles) {
        let known: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        for (name, rest) in std::mem::take(&mut self.amendments) {
            for (path, text, _) in rest {
                let what = format!("no profile {name:?}; known are: {}", known.join(", "));
                self.problems.push(FileProblem::at(&path, &text, "amends", what));
            }
        }
    }
}

/// What is wrong with a profile, as a problem of the file that made it so.
fn problem(path: &std::path::Path, text: &str, error: ProfileError) -> FileProblem {
    match error {
        ProfileError::Form { problem, line, .. } => {
            let what = problem.split(" at line ").next().unwrap_or(&problem);
            FileProblem::of(path, line, format!("{what}; see docs/adding-an-agent.md for the form"))
        }
        ProfileError::Value { key, problem, .. } => FileProblem::at(path, text, &key, problem),
    }
}

/// The same for what an amendment made of a profile: the reader's line is one of the outcome, not of the file.
fn problem_of_amendment(path: &std::path::Path, text: &str, error: ProfileError) -> FileProblem {
    let mut found = problem(path, text, error);
    if found.key.is_empty() {
        let named = found.what.split('`').nth(1).unwrap_or_default();
        found.line = FileProblem::at(path, text, named, "").line;
    }
    found
}

#[cfg(test)]
mod tests;
