//! What `--against` compares with: the profiles in use with another file in place of one of them, or those of a git
//! revision of this project. The code that reads them is always that of this program.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::agents::{Origin, ProfileFile, Profiles, Source};
use crate::cli::{Invocation, current_dir};
use crate::sys::git;

/// Where the profiles are in a checkout.
const FOLDER: &str = "config/agents";

/// The other profiles.
pub(super) struct Against {
    pub(super) profiles: Profiles,
    /// What they are, for people.
    pub(super) says: String,
}

impl Against {
    /// Finds them: a file of this name, else a revision.
    ///
    /// Errors: neither; or what is there can't be used.
    pub(super) fn find(invocation: &Invocation, given: &[&PathBuf], what: &str) -> anyhow::Result<Self> {
        let path = PathBuf::from(what);
        if path.is_file() {
            let files: Vec<&PathBuf> = given.iter().copied().chain([&path]).collect();
            let profiles = invocation.profiles_with(&files)?;
            let is_this = |source: &Source| source.origin == Origin::File(path.clone());
            let own = profiles.sources().find(|(_, source)| is_this(source)).map(|(profile, _)| &profile.name);
            let known = Profiles::builtin()?;
            if let Some(name) = own.filter(|name| known.get(name).is_none()) {
                let known: Vec<&str> = known.iter().map(|profile| profile.name.as_str()).collect();
                bail!(
                    "it would be a profile {name:?} of its own, which judges no screen that was recorded; name the file \
                     like the profile that it replaces ({})",
                    known.join(", ")
                );
            }
            return Ok(Self { profiles, says: format!("against the profiles in use with {what}") });
        }
        if what.starts_with('-') || what.is_empty() {
            bail!("{what:?} is neither a profile file nor a git revision");
        }
        of_revision(what).with_context(|| format!("{what:?} is no profile file, and as a git revision"))
    }
}

/// The profiles of a revision. One that it lacks, or that this program can't read, stays as it is now, which is said.
fn of_revision(revision: &str) -> anyhow::Result<Against> {
    let here = current_dir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting")?;
    let (commit, texts) = runtime.block_on(async {
        let (root, commit) = git::find_commit(&here, revision).await?;
        let texts = git::files_of(&root, &commit, FOLDER).await?;
        anyhow::Ok((commit, texts))
    })?;
    let files: Vec<ProfileFile> = texts
        .into_iter()
        .filter(|(path, _)| Path::new(path).extension().is_some_and(|ending| ending == "yml"))
        .map(|(path, text)| ProfileFile { path: path.into(), text: Ok(text) })
        .collect();
    if files.is_empty() {
        bail!("it has no {FOLDER}/*.yml; run this in a checkout of nexus-watcher");
    }
    let (profiles, problems) = Profiles::with_files(&files)?;
    let has = |name: &str| files.iter().any(|file| file.path.file_stem().is_some_and(|stem| stem == name));
    let mut kept: Vec<String> =
        profiles.iter().filter(|profile| !has(&profile.name)).map(|profile| profile.name.clone()).collect();
    kept.extend(problems.iter().map(ToString::to_string));
    let short = commit.get(..10).unwrap_or(&commit);
    let mut says = format!("against the profiles of {revision} ({short}), read by this program's code");
    if !kept.is_empty() {
        says = format!("{says}; taken as they are now, since it has none that can be used: {}", kept.join("; "));
    }
    Ok(Against { profiles, says })
}
