//! Whether the target may be typed into right now (`contracts.md` §6, first rows).

use serde::{Deserialize, Serialize};

use crate::logic::ids::PaneKey;
use crate::logic::pane::{Auth, BusyPaste, InputRow, Mode, PaneVerdict, State};

/// What the last look at the target found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// tmux is not there at all.
    NoTmux(String),
    /// tmux did not answer, or the screen could not be read.
    CannotTell(String),
    /// Several windows or panes could be meant.
    Ambiguous(String),
    /// No window of that name, or no live pane in it.
    Absent(String),
    /// Here it is.
    Present(Box<Seen>),
}

/// A live target as seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The pane.
    pub key: PaneKey,
    /// The pane's process.
    pub pid: u32,
    /// The agent's own process, where it is known.
    pub agent_pid: Option<u32>,
    /// Whether a shell takes the keys when the agent ends.
    pub shell_behind: bool,
    /// Whether the window's panes are synchronised.
    pub synchronized: bool,
    /// Whether a tmux mode is open.
    pub in_mode: bool,
    /// What it is doing.
    pub verdict: PaneVerdict,
    /// The text in the input box, rows joined; `None` where there is no box.
    pub composer: Option<Composer>,
    /// The rows of the screen outside the input box, top to bottom.
    pub outside: Vec<String>,
    /// All rows of the screen, top to bottom, for the record of what is done.
    pub screen: Vec<String>,
    /// What the agent does with a paste while a turn runs.
    pub busy: BusyPaste,
    /// Whether the agent numbers folded pastes and never uses a number again while it runs.
    pub numbered_folds: bool,
    /// Whether `i` and `BSpace` go before a paste (`monitor.paste.vi_guard`).
    pub vi_guard: bool,
    /// A literal text that is on the screen exactly while the input box is live; checked again by tmux with the act.
    pub composer_mark: Option<String>,
}

/// The input box as seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Composer {
    /// Its text, rows joined without padding.
    pub text: String,
    /// Its rows as drawn, without the blanks at their end.
    pub rows: Vec<String>,
    /// The folded-paste mark in it.
    pub chip: Option<Chip>,
}

/// A folded paste: the mark that stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    /// As drawn: `[Pasted text #1 +41 lines]`.
    pub text: String,
    /// The number of line breaks it stands for, where it says.
    pub lines: Option<u32>,
}

/// Why nothing was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// Somebody's unsent text is in the box.
    Draft,
    /// A dialog is open; Enter would answer it.
    Dialog,
    /// A tmux mode (copy mode) is open.
    CopyMode,
    /// Keys go to several panes.
    Synchronized,
    /// A turn runs and this agent does not queue.
    Busy,
    /// The usage limit holds the agent.
    OverLimit,
    /// Signed out or at a login form.
    Login,
    /// The box is in a vi normal mode with text in it, or an earlier paste of ours stands in it unproven.
    Unproven,
    /// The agent's queue holds messages, ours perhaps among them.
    Queue,
    /// Several windows or panes could be the target.
    Ambiguous,
    /// What the pane is doing can't be told.
    CannotTell,
    /// The pane changed between the look and the act.
    Changed,
    /// The intent could not be written down first.
    NoJournal,
    /// Another of our programs is typing into this pane.
    Locked,
    /// It was done before under the same key, or begun.
    Once,
}

impl Hold {
    /// The printed word, also in `ng emits`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Dialog => "dialog",
            Self::CopyMode => "copy-mode",
            Self::Synchronized => "synchronized",
            Self::Busy => "busy",
            Self::OverLimit => "over-limit",
            Self::Login => "login",
            Self::Unproven => "unproven-text",
            Self::Queue => "queue",
            Self::Ambiguous => "ambiguous",
            Self::CannotTell => "cannot-tell",
            Self::Changed => "changed",
            Self::NoJournal => "no-journal",
            Self::Locked => "locked",
            Self::Once => "once",
        }
    }

    /// One sentence for people.
    pub const fn says(self) -> &'static str {
        match self {
            Self::Draft => "somebody's unsent text is in the input box; send or clear it",
            Self::Dialog => "a dialog is open; answer it",
            Self::CopyMode => "a tmux mode (copy mode) is open in the pane; leave it",
            Self::Synchronized => "the window's panes are synchronised; switch synchronize-panes off",
            Self::Busy => "a turn is running and this agent does not queue messages",
            Self::OverLimit => "the agent has reached its usage limit",
            Self::Login => "the agent is signed out; sign in",
            Self::Unproven => {
                "the box holds an earlier paste that is folded or has other text beside it; look and send or clear it"
            }
            Self::Queue => {
                "the agent's queue holds messages, an unproven one of ours perhaps among them; wait until it takes them up"
            }
            Self::Ambiguous => {
                "several windows bear the target's name, or not exactly one of its panes runs an agent; rename or close \
                 all but one"
            }
            Self::CannotTell => "what the pane is doing can't be told",
            Self::Changed => "the pane changed between the look and the act",
            Self::NoJournal => {
                "the state directory can't be written, so the delivery could not be journalled; free space or fix its permissions"
            }
            Self::Locked => "another delivery to this pane is under way; wait a moment",
            Self::Once => "it was typed before under this key, or cut off while it was; ng audit shows it",
        }
    }
}

/// Whether the target may be typed into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Yes. `queue` when a turn is running and the agent will queue the text.
    Open {
        /// A turn is running.
        queue: bool,
    },
    /// No, for this reason.
    Held(Hold),
}

/// Judges a live target. Anything that is not positively an open box is a hold.
pub fn judge(seen: &Seen) -> Gate {
    let verdict = &seen.verdict;
    if seen.in_mode || verdict.mode == Some(Mode::Copy) {
        return Gate::Held(Hold::CopyMode);
    }
    if seen.synchronized {
        return Gate::Held(Hold::Synchronized);
    }
    if verdict.auth == Some(Auth::Login) {
        return Gate::Held(Hold::Login);
    }
    match verdict.state {
        State::Blocked => return Gate::Held(Hold::Dialog),
        State::OverLimit => return Gate::Held(Hold::OverLimit),
        State::UserTyping => return Gate::Held(Hold::Draft),
        State::Unknown | State::Empty | State::Absent => return Gate::Held(Hold::CannotTell),
        State::Idle
        | State::AutosuggestOnly
        | State::Busy
        | State::WorkingBackground
        | State::WorkingSelfPaced
        | State::IdleOrphanAsync => {}
    }
    if verdict.auth == Some(Auth::Expired) {
        return Gate::Held(Hold::Login);
    }
    // The input row decides, whatever the state: a draft can stand in the box of a busy pane.
    match verdict.input {
        Some(InputRow::Typed | InputRow::Unclear) => return Gate::Held(Hold::Draft),
        Some(InputRow::Blank | InputRow::Ghost) => {}
        None => return Gate::Held(Hold::CannotTell),
    }
    if verdict.chip.is_some() {
        return Gate::Held(Hold::Draft);
    }
    let busy = verdict.state == State::Busy;
    if busy && seen.busy == BusyPaste::Hold {
        return Gate::Held(Hold::Busy);
    }
    Gate::Open { queue: busy }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::logic::ids::{PaneId, ServerId};
    use crate::logic::pane::{Evidence, Overlay, Witness};

    /// A live Claude-like target in this state with this input row.
    pub(crate) fn seen(state: State, input: Option<InputRow>) -> Seen {
        let mut verdict = PaneVerdict::of(state, Evidence::new(Witness::Screen, "test"));
        verdict.input = input;
        Seen {
            key: PaneKey { server: ServerId { socket: "/tmp/s".into(), pid: 7, start_s: 1 }, pane: PaneId::new(3) },
            pid: 42,
            agent_pid: Some(43),
            shell_behind: false,
            synchronized: false,
            in_mode: false,
            verdict,
            composer: Some(Composer::default()),
            outside: Vec::new(),
            screen: Vec::new(),
            busy: BusyPaste::Queue,
            numbered_folds: true,
            vi_guard: false,
            composer_mark: Some("❯\u{a0}".into()),
        }
    }

    #[test]
    fn only_an_open_box_is_typed_into() {
        use InputRow::{Blank, Ghost, Typed, Unclear};
        for state in State::ALL.iter().copied() {
            for input in [None, Some(Blank), Some(Ghost), Some(Typed), Some(Unclear)] {
                let gate = judge(&seen(state, input));
                let open = matches!(input, Some(Blank | Ghost))
                    && matches!(
                        state,
                        State::Idle
                            | State::AutosuggestOnly
                            | State::Busy
                            | State::WorkingBackground
                            | State::WorkingSelfPaced
                            | State::IdleOrphanAsync
                    );
                assert_eq!(matches!(gate, Gate::Open { .. }), open, "{state} {input:?}");
            }
        }
    }

    #[test]
    fn each_obstacle_has_its_own_reason() {
        let idle = || seen(State::Idle, Some(InputRow::Blank));
        let check = |change: &dyn Fn(&mut Seen), hold: Hold| {
            let mut target = idle();
            change(&mut target);
            assert_eq!(judge(&target), Gate::Held(hold));
        };
        check(&|t| t.in_mode = true, Hold::CopyMode);
        check(&|t| t.synchronized = true, Hold::Synchronized);
        check(&|t| t.verdict.auth = Some(Auth::Login), Hold::Login);
        check(&|t| t.verdict.auth = Some(Auth::Expired), Hold::Login);
        check(&|t| t.verdict.chip = Some("[Pasted text #1]".into()), Hold::Draft);
        check(
            &|t| {
                t.verdict.state = State::Blocked;
                t.verdict.overlay = Some(Overlay::Permission);
            },
            Hold::Dialog,
        );
        check(
            &|t| {
                t.verdict.state = State::Busy;
                t.busy = BusyPaste::Hold;
            },
            Hold::Busy,
        );
        assert_eq!(judge(&idle()), Gate::Open { queue: false });
        let busy = seen(State::Busy, Some(InputRow::Blank));
        assert_eq!(judge(&busy), Gate::Open { queue: true });
    }
}
