//! Profiles of agent programs: what each looks like, as data. One YAML file in `config/agents/` and one line here.

pub mod profile;

use std::sync::Arc;

use crate::logic::pane::Profile;
use crate::logic::pane::process::Process;

pub use profile::{ProfileError, parse};

/// Every built-in profile: name and text, in the order in which a screen of unknown origin is tried.
pub const BUILTIN: &[(&str, &str)] = &[
    ("claude", include_str!("../../config/agents/claude.yml")),
    ("demo", include_str!("../../config/agents/demo.yml")),
];

/// The profiles in use.
#[derive(Clone, Debug)]
pub struct Profiles {
    /// In the order of [`BUILTIN`].
    list: Vec<Arc<Profile>>,
}

impl Profiles {
    /// Reads the built-in profiles.
    ///
    /// Errors: names the profile and the key; a build whose profiles do not load fails its tests.
    pub fn builtin() -> Result<Self, ProfileError> {
        let mut list: Vec<Arc<Profile>> = Vec::new();
        for (name, text) in BUILTIN {
            let profile = parse(name, text, |other| list.iter().find(|known| known.name == other).cloned())?;
            list.push(Arc::new(profile));
        }
        Ok(Self { list })
    }

    /// The profile with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Profile>> {
        self.list.iter().find(|profile| profile.name == name)
    }

    /// Every profile.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.list.iter()
    }

    /// The profile of a process, as far as can be told.
    pub fn of(&self, process: &Process) -> Option<&Arc<Profile>> {
        self.list.iter().find(|profile| profile.process.is_process(process))
    }

    /// The profile of the process with this executable and these arguments (the first is the program's name).
    pub fn of_process(&self, exe: &str, argv: &[String]) -> Option<&Arc<Profile>> {
        self.list.iter().find(|profile| profile.process.is_match(exe, argv))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_profile_loads_under_its_own_name() {
        let profiles = Profiles::builtin().unwrap();
        let names: Vec<_> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        assert_eq!(names, BUILTIN.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }

    #[test]
    fn the_demo_agent_has_the_screen_of_its_model_and_its_own_process() {
        let profiles = Profiles::builtin().unwrap();
        let (claude, demo) = (profiles.get("claude").unwrap(), profiles.get("demo").unwrap());
        assert!(Arc::ptr_eq(&claude.screen, &demo.screen));
        let argv: Vec<String> = ["ng", "demo", "agent"].map(str::to_owned).into();
        assert_eq!(profiles.of_process("/opt/bin/ng", &argv).unwrap().name, "demo");
        assert_eq!(profiles.of_process("/usr/bin/claude", &[]).unwrap().name, "claude");
        assert!(profiles.of_process("/usr/bin/bash", &[]).is_none());
    }
}
