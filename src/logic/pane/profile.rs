//! What is known of one agent program, as data: how to recognise its process, how its screen looks, how it takes a paste.
//!
//! Profiles are read from `config/agents/*.yml` by `crate::agents`; this is the checked form that decisions use.

use std::sync::Arc;

use super::process_rule::ProcessRule;
use crate::logic::hook::Hooked;
use crate::logic::screen::ScreenRules;

/// What a paste while a turn runs does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyPaste {
    /// The agent keeps the message and takes it up by itself.
    Queue,
    /// It cuts the turn, or nobody knows: wait for the end of the turn.
    Hold,
}

/// How the agent takes a paste.
#[derive(Clone, Debug)]
pub struct PasteTraits {
    /// Whether it understands paste frames (bracketed paste).
    pub bracketed: bool,
    /// Whether it numbers folded pastes and never uses a number again while it runs.
    pub numbered_folds: bool,
    /// What happens while a turn runs.
    pub busy: BusyPaste,
    /// Texts of which one stands on the screen whenever the input box is live; for checks inside the tmux server.
    pub live_marks: Vec<String>,
}

/// How much of what an agent does its hooks tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hooks {
    /// Every start and every end of a turn, however it ends, and every dialog.
    Full,
    /// Starts, ordinary ends and dialogs; some ends (an interrupt, a declined call) tell nothing.
    Partial,
    /// Nothing.
    #[default]
    None,
}

impl Hooks {
    /// The word in a profile.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }

    /// Whether they tell anything.
    pub const fn tell(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether a turn that has ended is always told, so that a hook which says that a turn runs needs no second witness.
    pub const fn tell_every_end(self) -> bool {
        matches!(self, Self::Full)
    }
}

/// One agent program.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name, also the file's: `claude`.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// The profile's own version: it goes up with each change that an amendment could care about.
    pub version: u32,
    /// Versions of the agent whose screens it was made from, oldest first; none if nobody said.
    pub seen: Vec<Vec<u32>>,
    /// How its process is recognised.
    pub process: ProcessRule,
    /// How its screen looks; may be shared with another profile.
    pub screen: Arc<ScreenRules>,
    /// How it takes a paste.
    pub paste: PasteTraits,
    /// Where its session transcripts are, as a style that `sys::transcript` knows; `None` where it has none.
    pub transcript: Option<String>,
    /// How much its hooks tell.
    pub hooks: Hooks,
    /// The events of its hooks that we take in, by name; empty where we can't set them up.
    pub hook_events: Vec<Hooked>,
}

impl Profile {
    /// The newest version that was seen, if this one is newer.
    pub fn newest_seen_before(&self, version: &[u32]) -> Option<&[u32]> {
        self.seen.last().map(Vec::as_slice).filter(|newest| version > *newest)
    }
}
