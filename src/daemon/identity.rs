//! Who runs in each pane: the process trees, asked for as rarely as the answer allows.
//!
//! What a tree means is `logic::pane::identity`; how long an answer stands is `recall`. Nothing here looks at a screen.

use std::sync::Arc;

use super::observe::Observer;
use super::recall::Known;
use crate::logic::pane::identity::{agent, same_agent, with_agent, without_agent};
use crate::logic::pane::process::Process;
use crate::logic::pane::{self, Liveness, PaneVerdict, ProcessFacts, Profile, Unclear};
use crate::logic::snapshot::PaneFacts;
use crate::logic::time::{Now, Timestamp};
use crate::sys::processes::{Hold, Tree, Unseen};

impl Observer {
    /// What the process tree of a pane says now.
    pub(crate) fn processes(&self, facts: &PaneFacts, now: &Now) -> ProcessFacts {
        let proven = |known: &mut Known| known.proven(facts, now).cloned();
        let known = self.recall.borrow_mut().pane(facts.pane).process.as_mut().and_then(proven);
        known.unwrap_or_else(|| self.walked(facts, None, now))
    }

    /// The same for a sweep: a pane in which nothing moves is not looked into each time.
    pub(super) fn processes_believed(&self, facts: &PaneFacts, now: &Now) -> ProcessFacts {
        let believed = |known: &Known| known.believed(facts, now).cloned();
        let known = self.recall.borrow_mut().pane(facts.pane).process.as_ref().and_then(believed);
        known.unwrap_or_else(|| self.processes(facts, now))
    }

    /// The same with what runs below the agent counted anew where that could change what this screen comes to and the
    /// last count may not stand any more.
    pub(super) fn recounted(
        &self,
        process: ProcessFacts,
        facts: &PaneFacts,
        screen: &PaneVerdict,
        now: &Now,
    ) -> ProcessFacts {
        if process.liveness != Liveness::Alive {
            return process;
        }
        let stands = {
            let mut recall = self.recall.borrow_mut();
            match recall.pane(facts.pane).process.as_mut() {
                Some(known) if !pane::weighs_background(screen) => {
                    known.forget_text();
                    true
                }
                Some(known) => known.counts_stand(facts, screen.content_hash, now),
                None => !pane::weighs_background(screen),
            }
        };
        if stands {
            return process;
        }
        self.walked(facts, screen.content_hash, now)
    }

    /// The profile to judge a pane's screen by.
    pub(crate) fn profile(&self, process: &ProcessFacts) -> Option<Arc<Profile>> {
        self.profiles().of_pane(process).cloned()
    }

    /// Walks the process tree of a pane and remembers what it says, for a screen with this text.
    fn walked(&self, facts: &PaneFacts, text: Option<u64>, now: &Now) -> ProcessFacts {
        let before = {
            let mut recall = self.recall.borrow_mut();
            let known = recall.pane(facts.pane).process.take();
            known.filter(|known| known.is_of(facts)).map(Known::into_facts)
        };
        let (found, seen_at, hold) = self.walk(facts, before.as_ref(), now);
        let known = Known::new(facts.pid, seen_at, found.clone(), hold).with_text(text);
        self.recall.borrow_mut().pane(facts.pane).process = Some(known);
        found
    }

    /// Walks the process tree of a pane, and takes hold of the agent if there is one. With what it says, since when: the
    /// list of processes may be a moment old, and what started since is not on it.
    fn walk(
        &self,
        facts: &PaneFacts,
        before: Option<&ProcessFacts>,
        now: &Now,
    ) -> (ProcessFacts, Now, Option<Box<dyn Hold>>) {
        let Some(pid) = facts.pid else { return (Unclear::NoPanePid.alone(), *now, None) };
        let Tree { processes: tree, age, read_at } = match self.processes.tree(pid, now) {
            Ok(tree) => tree,
            Err(Unseen::Gone) if self.sees_server(facts, now) == Some(true) => {
                return (ProcessFacts { liveness: Liveness::Gone, ..ProcessFacts::default() }, *now, None);
            }
            Err(Unseen::Gone | Unseen::Blind) => return (Unclear::Blind.alone(), *now, None),
        };
        let profiles = self.profiles();
        let profile_of = |process: &Process| profiles.of(process).map(AsRef::as_ref);
        let Some((process, profile)) = agent(&tree, profile_of) else {
            let found = without_agent(&tree, age, before);
            // Ids of another container may be those of anything here.
            if found.liveness == Liveness::Gone && self.sees_server(facts, now) == Some(false) {
                return (Unclear::Blind.alone(), *now, None);
            }
            return (found, read_at, None);
        };
        let mut found = with_agent(&tree, process, profile, now.at);
        if found.version.is_none() {
            found.version = self.packaged(&tree, process, profile, before);
        }
        (found, read_at, self.processes.hold(&line_to(process, &tree)))
    }

    /// The agent's version by its package: the one that was found before, if it is the same process, since its files may
    /// have been replaced meanwhile.
    fn packaged(
        &self,
        tree: &[Process],
        process: &Process,
        profile: &Profile,
        before: Option<&ProcessFacts>,
    ) -> Option<String> {
        let who = (Some(process.pid), Some(process.started_at));
        match before.filter(|before| (before.agent_pid, before.agent_started) == who) {
            Some(before) if before.version.is_some() => before.version.clone(),
            _ => same_agent(tree, process, profile)
                .find_map(|process| self.processes.version(process, &profile.process.packages)),
        }
    }

    /// Whether the pane's tmux server is among the processes that are seen; `None` if the server is not known.
    fn sees_server(&self, facts: &PaneFacts, now: &Now) -> Option<bool> {
        let (pid, start_s) = self.recall.borrow().server(facts.pane).map(|server| (server.pid, server.start_s))?;
        Some(self.processes.sees(pid, Timestamp::from_secs(start_s), now))
    }
}

/// A process and what is above it in its tree.
fn line_to<'a>(process: &'a Process, tree: &'a [Process]) -> Vec<&'a Process> {
    let mut line = vec![process];
    // Parents come before their children.
    for above in tree.iter().rev() {
        if line.last().is_some_and(|last| last.ppid == above.pid && last.depth > above.depth) {
            line.push(above);
        }
    }
    line
}
