//! What each witness said of a pane, and how old that is, for people. What it comes to is decided by [`fuse`](super::fuse()).

use std::time::Duration;

use serde::Serialize;

use super::fuse::{HookFacts, Liveness, ProcessFacts};
use super::limit_stamp::LimitStamp;
use super::verdict::Witness;
use crate::logic::snapshot::PaneFacts;
use crate::logic::text::{Joiners, visible};
use crate::logic::time::Timestamp;

/// What one witness said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WitnessSeen {
    /// Who.
    pub witness: Witness,
    /// What it said.
    pub says: String,
    /// How old that is, in seconds; none where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_s: Option<u64>,
    /// The file that it was read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl WitnessSeen {
    /// Something that was said just now.
    pub fn new(witness: Witness, says: impl Into<String>, age: Option<Duration>) -> Self {
        let says = visible(&says.into(), Joiners::Drop).replace(['\n', '\t'], " ");
        Self { witness, says, age_s: age.map(|age| age.as_secs()), source: None }
    }
}

/// What tmux says of a pane.
pub fn of_tmux(facts: &PaneFacts) -> WitnessSeen {
    let mut says = vec![format!("{}x{}", facts.size.0, facts.size.1)];
    match facts.dead {
        Some(_) => says.push("the pane's command has ended".into()),
        None => says.push("the pane lives".into()),
    }
    for (is_so, text) in [
        (facts.in_mode, "a tmux mode covers it"),
        (facts.synchronized, "its input is synchronised"),
        (facts.alternate_on, "on the alternate screen"),
    ] {
        if is_so {
            says.push(text.into());
        }
    }
    WitnessSeen::new(Witness::Tmux, says.join(", "), Some(Duration::ZERO))
}

/// What the pane's title is, and when anything was last drawn.
pub fn of_title(facts: &PaneFacts, now: Timestamp) -> WitnessSeen {
    let says = format!("{:?}; the pane last drew something", facts.title);
    WitnessSeen::new(Witness::Title, says, Some(now.since(facts.activity)))
}

/// What the process tree says.
pub fn of_process(process: &ProcessFacts, now: Timestamp) -> WitnessSeen {
    let mut says = Vec::new();
    match (process.liveness, &process.agent) {
        (Liveness::Alive, Some(agent)) => {
            let pid = process.agent_pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
            let version = process.version.as_deref().unwrap_or("of unknown version");
            says.push(format!("{agent} {version} lives{pid}"));
        }
        (Liveness::Alive, None) => says.push("an agent lives".into()),
        (Liveness::Gone, _) => says.push("no agent lives below the pane".into()),
        (Liveness::Unknown, _) => says.push("whether an agent lives can't be told".into()),
    }
    if let Some(why) = process.unclear {
        says.push(why.says().to_owned());
    }
    if let Some(other) = &process.other {
        says.push(format!("{other} runs"));
    } else if process.shell {
        says.push("a shell waits".into());
    }
    if let Some(shells) = process.background_shells {
        says.push(format!("{shells} background shells"));
    }
    if let Some(cpu) = process.background_cpu.filter(|_| process.background_shells.is_some_and(|count| count > 0)) {
        says.push(format!("{cpu} ticks of processor time in them"));
    }
    let age = process.counted_at.map_or(Duration::ZERO, |at| now.since(at));
    WitnessSeen::new(Witness::Process, says.join(", "), Some(age))
}

/// What the hooks wrote last.
pub fn of_hook(hook: Option<&HookFacts>, now: Timestamp, fresh: Duration) -> WitnessSeen {
    let Some(hook) = hook else {
        return WitnessSeen::new(Witness::Hook, "nothing was written for this window", None);
    };
    let event = hook.event.as_deref().unwrap_or("no event");
    let counts = if hook.is_fresh(now, fresh) { "counts" } else { "too old to count" };
    let mut seen = WitnessSeen::new(Witness::Hook, format!("{} ({event}), {counts}", hook.state), hook.age(now));
    seen.source.clone_from(&hook.source);
    seen
}

/// The stamp of a usage limit.
pub fn of_limit_stamp(stamp: &LimitStamp, hook: Option<&HookFacts>, now: Timestamp) -> WitnessSeen {
    let counts = stamp.is_over(hook, now).unwrap_or("counts");
    let says = format!("a usage limit ended a turn, resets {}; {counts}", stamp.reset_at);
    let mut seen = WitnessSeen::new(Witness::Hook, says, Some(now.since(stamp.at)));
    seen.source = Some(stamp.source.clone());
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::worker::scope::tests::pane;

    #[test]
    fn each_witness_says_what_it_saw_and_how_old_that_is() {
        let now = Timestamp::from_secs(1000);
        let facts =
            PaneFacts { title: "a\u{1b}]b".into(), in_mode: true, activity: Timestamp::from_secs(940), ..pane(1, "w") };
        let said = |seen: WitnessSeen| (seen.says, seen.age_s);
        assert!(of_tmux(&facts).says.contains("the pane lives, a tmux mode covers it"));
        assert_eq!(said(of_title(&facts, now)).1, Some(60));
        assert!(!of_title(&facts, now).says.contains('\u{1b}'));
        let process = ProcessFacts {
            agent: Some("claude".into()),
            agent_pid: Some(7),
            version: Some("2.1.0".into()),
            liveness: Liveness::Alive,
            background_shells: Some(0),
            ..ProcessFacts::default()
        };
        assert_eq!(said(of_process(&process, now)), ("claude 2.1.0 lives, pid 7, 0 background shells".into(), Some(0)));
        let hook = HookFacts { state: "busy".into(), last_activity: Some(facts.activity), ..HookFacts::default() };
        let fresh = Duration::from_secs(30);
        assert_eq!(said(of_hook(Some(&hook), now, fresh)), ("busy (no event), too old to count".into(), Some(60)));
        assert_eq!(of_hook(None, now, fresh).age_s, None);
    }
}
