//! Who overrules whom, and when: one table, which `docs/fusion.md` shows and [`fuse`](super::fuse()) follows. The first
//! row that holds decides; no other code weighs one witness against another.

use std::time::Duration;

use super::fuse::{HookFacts, Liveness, PID_GONE, ProcessFacts, TURN_CLOSED, TURN_OVER, TURN_PRESUMED};
use super::verdict::{Overlay, PaneVerdict, State, Witness};
use crate::logic::snapshot::PaneFacts;
use crate::logic::time::Timestamp;

/// How long a hook's word stands against a screen that contradicts it: the screen may not be repainted yet.
// Seen: the pane shows a submitted prompt 45 to 98 ms after the hook, later on a loaded machine.
const REPAINT: Duration = Duration::from_secs(3);

/// How long a pane must not have been drawn for a turn that is only presumed to be over. A client that waits for the next
/// word of an answer gives up and says so before that (Codex after 5 min).
const SILENT: Duration = Duration::from_secs(310);

/// The same where what was said last closes a turn: whatever runs has drawn its own prompt or text by then.
const SILENT_AFTER_CLOSING: Duration = Duration::from_secs(30);

/// Everything that is known of a pane at one look.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// What tmux says.
    pub facts: &'a PaneFacts,
    /// What the process tree says.
    pub process: &'a ProcessFacts,
    /// What the hooks wrote last, with the session's own file where that was looked at.
    pub hook: Option<&'a HookFacts>,
    /// What the screen looks like, its title included.
    pub screen: &'a PaneVerdict,
    /// Now.
    pub now: Timestamp,
    /// How long a hook's word counts.
    pub fresh: Duration,
}

/// What a row comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// This state, and nothing of what the screen shows: nobody draws it any more.
    Nobody(State),
    /// This state, with what else the screen shows.
    Is(State),
    /// Blocked by this overlay, which the screen need not name.
    Asks(Overlay),
    /// What the screen shows.
    Screen,
    /// The turn is over, so what stands in the box decides: nothing is `idle`, a suggestion `autosuggest-only`; else what
    /// the screen shows.
    ByBox,
}

impl Then {
    /// The words in the table.
    pub fn words(self) -> String {
        match self {
            Self::Nobody(state) => format!("`{state}`, without what the screen shows"),
            Self::Is(state) => format!("`{state}`"),
            Self::Asks(_) => format!("`{}`", State::Blocked),
            Self::Screen => "what the screen shows".to_owned(),
            Self::ByBox => "by the box: `idle`, `autosuggest-only`, or what the screen shows".to_owned(),
        }
    }
}

/// A row: who decides, when, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The rule's id in the evidence.
    pub id: &'static str,
    /// Who decides.
    pub witness: Witness,
    /// When, for people.
    pub when: &'static str,
    /// What it comes to.
    pub then: Then,
    /// Whether it holds.
    holds: fn(&Case<'_>) -> bool,
}

impl Row {
    /// The first row that holds.
    pub fn of(case: &Case<'_>) -> &'static Self {
        // The last row holds always.
        TABLE.iter().find(|row| (row.holds)(case)).unwrap_or(&NOBODY_ELSE)
    }
}

/// The row for what no other row is for.
const NOBODY_ELSE: Row = Row {
    id: "no-hook",
    witness: Witness::Screen,
    when: "no hook wrote anything about the pane",
    then: Then::Screen,
    holds: |_| true,
};

/// Shortens the table.
const fn row(id: &'static str, witness: Witness, then: Then, when: &'static str, holds: fn(&Case<'_>) -> bool) -> Row {
    Row { id, witness, when, then, holds }
}

/// The table, strongest first.
#[expect(clippy::redundant_closure_for_method_calls, reason = "a method is not general enough in its lifetime")]
pub const TABLE: &[Row] = &[
    row("pane_dead", Witness::Tmux, Then::Nobody(State::Absent), "the pane's command has ended", |case| {
        case.facts.dead.is_some()
    }),
    row(
        "not-reached",
        Witness::Process,
        Then::Nobody(State::Unknown),
        "the pane shows another place, or its agent does not have the keys",
        |case| case.process.unclear.is_some_and(super::identity::Unclear::hides_screen),
    ),
    row(
        super::fuse::LIVE_DESCENDANT,
        Witness::Process,
        Then::Nobody(State::Unknown),
        "no agent is under the pane, and another program is",
        |case| case.process.liveness == Liveness::Gone && case.process.other.is_some(),
    ),
    row(
        "tree-empty-past-grace",
        Witness::Process,
        Then::Nobody(State::Absent),
        "only a shell is under the pane, and has been for longer than an agent takes to start",
        |case| case.process.liveness == Liveness::Gone && case.process.shell,
    ),
    row(PID_GONE, Witness::Process, Then::Nobody(State::Absent), "nothing is under the pane", |case| {
        case.process.liveness == Liveness::Gone
    }),
    row(
        "hook-behind-screen",
        Witness::Screen,
        Then::Screen,
        "the screen shows a live dialog or a usage limit, whatever a hook says",
        |case| matches!(case.screen.state, State::Blocked | State::OverLimit),
    ),
    row(
        "transcript-turn-over",
        Witness::Transcript,
        Then::ByBox,
        "the session's file ends with an interrupt, an error or the end of the turn, not before the hook's last word and \
         over 3 s ago, and the screen shows no busy mark",
        |case| case.lets_end() && case.session_says_over(),
    ),
    row(
        "hook-contradicted",
        Witness::Screen,
        Then::Screen,
        "a fresh hook says busy, over 3 s ago, and the screen says that the turn was interrupted or declined",
        |case| case.is_fresh() && case.says_busy() && case.is_settled() && case.has(TURN_OVER),
    ),
    row("hook-busy", Witness::Hook, Then::Is(State::Busy), "a fresh hook says busy", |case| {
        case.is_fresh() && case.says_busy()
    }),
    row(
        "hook-permission-not-painted",
        Witness::Hook,
        Then::Is(State::Busy),
        "a fresh hook says that a dialog is up, at most 3 s ago, and the screen shows a box without a draft",
        |case| case.asks() && case.has_box() && !case.is_settled() && case.screen.state != State::UserTyping,
    ),
    row(
        "hook-answered",
        Witness::Screen,
        Then::Screen,
        "a fresh hook says that a dialog is up, and the screen shows a box",
        |case| case.asks() && case.has_box(),
    ),
    row(
        "hook-permission",
        Witness::Hook,
        Then::Asks(Overlay::Permission),
        "a fresh hook says that a dialog is up, and the screen shows no box",
        |case| case.asks(),
    ),
    row(
        "hook-turn-end",
        Witness::Hook,
        Then::ByBox,
        "a hook saw the turn end, 3 s to 30 min ago, and the screen only presumes that one runs",
        |case| {
            let saw_end = case.hook.is_some_and(|hook| hook.last_turn_end.is_some());
            saw_end && case.is_fresh() && case.is_settled() && case.is_presumed()
        },
    ),
    row(
        "closed-silent",
        Witness::Tmux,
        Then::ByBox,
        "only the footer tells of a turn, below a line that closes one, and nothing was drawn for 30 s",
        |case| case.is_presumed() && case.has(TURN_CLOSED) && case.silence() >= SILENT_AFTER_CLOSING,
    ),
    row(
        "presumed-silent",
        Witness::Tmux,
        Then::ByBox,
        "the screen only presumes that a turn runs, and nothing was drawn for 310 s",
        |case| case.is_presumed() && case.silence() >= SILENT,
    ),
    row("hook-idle", Witness::Screen, Then::Screen, "a fresh hook says anything else", |case| case.is_fresh()),
    row("hook-stale", Witness::Screen, Then::Screen, "the hook's last word is too old to count", |case| {
        case.hook.is_some()
    }),
    NOBODY_ELSE,
];

impl Case<'_> {
    /// Whether this rule spoke on the screen.
    fn has(&self, rule: &str) -> bool {
        self.screen.evidence.iter().any(|reason| reason.rule == rule)
    }

    /// Whether the screen shows an input row.
    fn has_box(&self) -> bool {
        self.screen.input.is_some()
    }

    /// Whether the hook's word counts.
    fn is_fresh(&self) -> bool {
        self.hook.is_some_and(|hook| hook.is_fresh(self.now, self.fresh))
    }

    /// Whether the screen had time to be painted since the hook spoke.
    fn is_settled(&self) -> bool {
        self.hook.and_then(|hook| hook.age(self.now)).is_some_and(|age| age > REPAINT)
    }

    /// Whether the hook says that a turn runs.
    fn says_busy(&self) -> bool {
        self.hook.is_some_and(HookFacts::says_busy)
    }

    /// Whether a fresh hook says that a dialog is up.
    fn asks(&self) -> bool {
        self.is_fresh() && self.hook.is_some_and(|hook| hook.state == "permission_prompt")
    }

    /// Whether the screen shows a running turn only because no end of it is to be seen.
    fn is_presumed(&self) -> bool {
        self.screen.state == State::Busy && self.has(TURN_PRESUMED)
    }

    /// For how long nothing was drawn. A clock that was set back tells nothing.
    fn silence(&self) -> Duration {
        self.now.since(self.facts.activity)
    }

    /// Whether the screen has nothing against the end of a turn.
    fn lets_end(&self) -> bool {
        self.is_presumed() || matches!(self.screen.state, State::Idle | State::AutosuggestOnly)
    }

    /// Whether the session's file says that the turn is over which the hook believes in, or the screen.
    fn session_says_over(&self) -> bool {
        let Some(hook) = self.hook else { return false };
        let believed = hook.says_busy() || hook.state == "permission_prompt" || self.is_presumed();
        let over_at = hook.turn.as_ref().and_then(super::turn::Turn::over_at);
        // Times of hooks are whole seconds.
        let is_later = |at: Timestamp| hook.last_activity.is_none_or(|spoke| at.secs() >= spoke.secs());
        believed && over_at.is_some_and(|at| is_later(at) && self.now.since(at) > REPAINT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table as the documentation shows it.
    fn table() -> String {
        let rows = TABLE.iter().zip(1..).map(|(row, number)| {
            format!("| {number} | `{}` | {} | {} | {} |\n", row.id, row.witness, row.when, row.then.words())
        });
        format!("| | rule | who decides | when | the pane is |\n|---|---|---|---|---|\n{}", rows.collect::<String>())
    }

    #[test]
    fn the_documentation_shows_the_table_that_the_code_follows() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/fusion.md");
        let doc = std::fs::read_to_string(path).unwrap();
        assert!(doc.contains(&table()), "docs/fusion.md should hold this table:\n{}", table());
    }

    #[test]
    fn every_rule_has_its_own_name_and_the_last_one_always_holds() {
        let mut ids: Vec<&str> = TABLE.iter().map(|row| row.id).collect();
        assert_eq!(TABLE.last().map(|row| row.id), Some(NOBODY_ELSE.id));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), TABLE.len());
    }
}
