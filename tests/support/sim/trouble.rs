//! What can go wrong, each by its name, and the plan of a run: a fixed list made from the seed, so that a run can be
//! repeated without some of it.

use std::time::Duration;

use super::dice::Dice;

/// One kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    /// Somebody types into the orchestrator's box.
    Draft,
    /// Somebody pastes several lines into it.
    PastedDraft,
    /// A dialog opens in the orchestrator's pane.
    Dialog,
    /// A tmux mode is opened there.
    CopyMode,
    /// The window's panes are synchronised.
    Synchronized,
    /// The pane dies and stays as a dead one for a while.
    Death,
    /// The window goes; a new one of that name comes.
    WindowGone,
    /// A second window bears the orchestrator's name.
    Twin,
    /// The agent ends and leaves its shell in the pane, under the same process id.
    Shell,
    /// The tmux server ends; another starts, with ids from zero.
    ServerRestart,
    /// The tmux server answers nobody for a while, then catches up.
    Hang,
    /// Single answers of tmux are lost, before or after the act took effect.
    Timeout,
    /// tmux refuses single commands, or its answer is rubbish.
    Refusal,
    /// The agent does not take an Enter.
    SwallowedEnter,
    /// The prompt hook writes no receipt, and perhaps the session no transcript either.
    LostReceipt,
    /// The prompt hook writes its receipt late.
    LateReceipt,
    /// The session transcript is not written.
    NoTranscript,
    /// The session transcript is written late.
    LateTranscript,
    /// The agent draws what was pasted late.
    SlowEcho,
    /// The watcher ends at any moment, and is started again.
    Crash,
    /// The watcher ends between two steps of a delivery, and is started again.
    CrashAtStep,
    /// Somebody does something exactly before or after an act.
    Race,
    /// The orchestrator's turns are long.
    LongTurns,
    /// The watcher can't write its files.
    DiskFull,
    /// Single writes fail.
    FailedWrite,
    /// The wall clock is set forward or back.
    ClockSet,
}

impl Trouble {
    /// Every kind.
    pub(crate) const ALL: [Self; 26] = [
        Self::Draft,
        Self::PastedDraft,
        Self::Dialog,
        Self::CopyMode,
        Self::Synchronized,
        Self::Death,
        Self::WindowGone,
        Self::Twin,
        Self::Shell,
        Self::ServerRestart,
        Self::Hang,
        Self::Timeout,
        Self::Refusal,
        Self::SwallowedEnter,
        Self::LostReceipt,
        Self::LateReceipt,
        Self::NoTranscript,
        Self::LateTranscript,
        Self::SlowEcho,
        Self::Crash,
        Self::CrashAtStep,
        Self::Race,
        Self::LongTurns,
        Self::DiskFull,
        Self::FailedWrite,
        Self::ClockSet,
    ];

    /// The kind of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|trouble| format!("{trouble:?}") == name)
    }
}

/// One fault of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Its place in the plan of its seed, whatever was left out.
    pub(crate) number: usize,
    /// What.
    pub(crate) kind: Trouble,
    /// When.
    pub(crate) at: Duration,
    /// For how long, where it lasts.
    pub(crate) lasts: Duration,
    /// The seed of its further chances.
    pub(crate) seed: u64,
}

/// The faults of a run: one every `gap` on average, of about half of the kinds, since some hide others. The first
/// minutes are quiet, as are the last.
pub(crate) fn plan(seed: u64, length: Duration, quiet: Duration, gap: Duration) -> Vec<Fault> {
    let mut dice = Dice::new(!seed);
    let kinds: Vec<Trouble> = Trouble::ALL.into_iter().filter(|_| dice.chance(50)).collect();
    let mut faults = Vec::new();
    let mut at = Duration::from_secs(30) + dice.span(gap);
    let end = length.saturating_sub(quiet);
    while !kinds.is_empty() && at < end {
        let kind = *dice.pick(&kinds);
        let longest = if dice.chance(15) { 600 } else { 90 };
        let lasts = dice.secs(1, longest).min(end.saturating_sub(at));
        faults.push(Fault { number: faults.len(), kind, at, lasts, seed: dice.next() });
        at += dice.span(gap);
    }
    faults
}
