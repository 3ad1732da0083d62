//! The profiles of agents in force, and how they follow the operator's files while the watcher runs.
//!
//! A change is taken over when the files have looked the same twice, so that a file that is being written is left alone.
//! Files that can't be used change nothing: what was in force stays in force, and the board says so.

use std::path::Path;
use std::time::Duration;

use super::outside::Outside;
use crate::agents::{FileProblem, ProfileFile, Profiles};
use crate::config::resolved::Settings;
use crate::logic::degraded::Mode;
use crate::logic::time::Now;
use crate::sys::profile_files;

/// Where the operator's files are, unless the configuration says otherwise; below the nexus.
const DIR: &str = "config/agents.d";

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// The operator's files of this nexus.
pub fn files(settings: &Settings) -> Vec<ProfileFile> {
    match &settings.agents_dir {
        Some(dir) => files_in(dir),
        None => files_in(&settings.root.join(DIR)),
    }
}

/// The operator's files in this directory.
fn files_in(dir: &Path) -> Vec<ProfileFile> {
    profile_files::read(dir).into_iter().map(|(path, text)| ProfileFile { path, text }).collect()
}

/// The files as they are followed.
#[derive(Debug, Default)]
pub(super) struct ProfileWatch {
    /// What was read last, whatever came of it; of a watcher that begins, nothing: it has the built-in profiles.
    read: Vec<ProfileFile>,
    /// Changed files that were seen once.
    settling: Option<Vec<ProfileFile>>,
    next_look: Duration,
    /// Whether the files were looked at before.
    begun: bool,
}

impl ProfileWatch {
    /// Looks at the files if it is time to, and puts in force what they say.
    pub(super) fn look<T>(&mut self, out: &Outside<T>, now: &Now) {
        if self.begun && now.uptime < self.next_look {
            return;
        }
        self.next_look = now.uptime + LOOK_EVERY;
        let is_first = !std::mem::replace(&mut self.begun, true);
        let found = files(&out.settings.get());
        if found == self.read {
            self.settling = None;
            return;
        }
        if !is_first && self.settling.as_ref() != Some(&found) {
            self.settling = Some(found);
            return;
        }
        self.settling = None;
        match Profiles::with_files(&found) {
            Ok((profiles, problems)) if problems.is_empty() || is_first => {
                say(&profiles);
                out.observer.replace(profiles);
                report(out, now, &problems);
            }
            Ok((_, problems)) => report(out, now, &problems),
            Err(error) => tracing::error!(%error, "the built-in profiles do not load"),
        }
        self.read = found;
    }
}

/// Says on the board what is wrong with the files, or that nothing is.
fn report<T>(out: &Outside<T>, now: &Now, problems: &[FileProblem]) {
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    out.board.report(now, Mode::AgentProfiles, (!said.is_empty()).then(|| said.join("; ")).as_deref());
}

/// Says in the log what is in force.
fn say(profiles: &Profiles) {
    for (profile, source) in profiles.sources() {
        for amended in &source.amended {
            let (file, what) = (amended.path.display(), amended.summary());
            tracing::info!(profile = profile.name, %file, "an amendment is in force: {what}");
        }
        if let crate::agents::Origin::File(path) = &source.origin {
            tracing::info!(profile = profile.name, file = %path.display(), "a profile of a file is in force");
        }
    }
}
