//! Reading a screen in stages, the same live and offline: its last rows plain, the whole of it where those do not tell,
//! and colours only of the rows where they matter. Most screens are told by a dozen rows at the bottom, which cost tmux
//! a third of the screen.
//!
//! Pure: it says what it wants to see next and is given it. `daemon::observe` asks tmux, [`judge_capture`] a saved
//! screen. What it says about the last rows it would say about the whole screen too (`tests/screens.rs`).

use super::classify::{ScreenFacts, is_told_by_last_rows, judge_bottom, judge_screen, wanted_style};
use super::profile::Profile;
use super::verdict::{Evidence, PaneVerdict, State, Witness};
use crate::logic::screen::style::Capture;

/// How many rows are read first: a box of a few rows, its footer, and what the agent said last.
const BOTTOM_ROWS: u16 = 24;
/// A screen that has no more than this above the last rows is read whole at once.
const SPARED_ROWS: u16 = 8;

/// Rows that are wanted next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All rows from this one to the last, plain. A screen that has grown in the meantime is then still read to its end.
    Plain {
        /// The first row.
        from: u16,
    },
    /// These rows with escape sequences.
    Styled {
        /// The first row.
        first: u16,
        /// The last row.
        last: u16,
    },
}

/// One screen as far as it was read.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Rows of the screen.
    height: u16,
    /// The rows so far and the row that they begin with.
    plain: Option<(u16, Vec<String>)>,
    /// Rows with colour and the row that they begin with.
    styled: Option<(u16, Vec<String>)>,
    /// The verdict, as soon as nothing more is wanted.
    verdict: Option<PaneVerdict>,
}

impl Reader {
    /// A screen of so many rows of which nothing was read.
    pub const fn new(height: u16) -> Self {
        Self { height, plain: None, styled: None, verdict: None }
    }

    /// What has to be seen next; `None` once there is a verdict.
    pub fn wants(&mut self, profile: &Profile, facts: &ScreenFacts) -> Option<Wanted> {
        let Some((from, plain)) = &self.plain else {
            let spared = self.height.saturating_sub(BOTTOM_ROWS);
            let in_stages = spared > SPARED_ROWS && is_told_by_last_rows(profile, facts);
            return Some(Wanted::Plain { from: if in_stages { spared } else { 0 } });
        };
        let from = *from;
        if self.styled.is_none()
            && let Some((first, last)) = wanted_style(profile, plain)
            && (from == 0 || judge_bottom(profile, facts, plain, None).is_some())
        {
            return Some(Wanted::Styled { first: first.saturating_add(from), last: last.saturating_add(from) });
        }
        let styled = self.styled.as_ref().and_then(|(first, rows)| Some((first.checked_sub(from)?, rows.as_slice())));
        let verdict = match from {
            0 => Some(judge_screen(profile, facts, plain, styled)),
            _ => judge_bottom(profile, facts, plain, styled).map(|verdict| verdict.moved_down(from)),
        };
        self.verdict = verdict;
        if self.verdict.is_some() {
            return None;
        }
        self.styled = None;
        Some(Wanted::Plain { from: 0 })
    }

    /// Takes in what was wanted.
    pub fn take(&mut self, wanted: Wanted, rows: Vec<String>) {
        match wanted {
            Wanted::Plain { from } => self.plain = Some((from, rows)),
            Wanted::Styled { first, .. } => self.styled = Some((first, rows)),
        }
    }

    /// The verdict, once nothing more is wanted.
    pub fn into_verdict(self) -> Option<PaneVerdict> {
        self.verdict
    }
}

/// The verdict on a screen that belongs to no known agent.
pub fn nothing_to_judge() -> PaneVerdict {
    PaneVerdict::of(State::Unknown, Evidence::new(Witness::Screen, "no-agent-to-judge-by"))
}

/// Judges a saved screen in the stages of the live reader.
pub fn judge_capture(profile: &Profile, facts: &ScreenFacts, capture: &Capture) -> PaneVerdict {
    let plain = capture.plain();
    let mut reader = Reader::new(u16::try_from(plain.len()).unwrap_or(u16::MAX));
    while let Some(wanted) = reader.wants(profile, facts) {
        let rows = match wanted {
            Wanted::Plain { from } => plain.get(usize::from(from)..).unwrap_or_default().to_vec(),
            Wanted::Styled { first, last } if capture.has_colour() => capture.styled(first, last),
            // A screen that was saved without colours tells nothing about them.
            Wanted::Styled { .. } => Vec::new(),
        };
        reader.take(wanted, rows);
    }
    reader.into_verdict().unwrap_or_else(|| judge_screen(profile, facts, plain, None))
}
