//! How agents arrange their screens. Each shape finds the same things (the input box, a dialog, what stands above) in its
//! own way; what they are called and what they mean is the profile's.
//!
//! A new shape is one file here, a word in [`Shape`], and its arm where the screen is taken apart: `composer::find`,
//! `dialog::find`, `tail::items`, `tail::status`.

pub(in crate::logic::screen) mod barred;
pub(in crate::logic::screen) mod footed;
pub(in crate::logic::screen) mod line;
pub(in crate::logic::screen) mod open;
pub(in crate::logic::screen) mod ruled;

use std::ops::Range;

use serde::Deserialize;

use super::region::is_blank_row;

/// How an agent arranges its screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A prompt row between two lines across the screen, blocks at the left edge above, an indented footer below.
    #[default]
    Ruled,
    /// A prompt row with blank rows around it, paragraphs at the left edge above, an indented footer below.
    Open,
    /// A line across the screen, a prompt row somewhat below it, a footer in columns.
    Footed,
    /// Blocks with a bar at their left, the input box with a corner; pickers float over the page.
    Barred,
    /// A line across the screen and right below it a prompt at the left edge.
    Line,
    /// Nobody knows: nothing is found on it.
    None,
}

impl Shape {
    /// Whether a live input box is found from its own rows up, so that the rows far above it need not be read. A shape
    /// whose dialogs float over a live box can't say so.
    pub const fn is_read_from_the_bottom(self) -> bool {
        match self {
            Self::Ruled | Self::Open | Self::Footed => true,
            Self::Barred | Self::Line | Self::None => false,
        }
    }
}

/// The paragraphs among these rows, newest first: what stands between blank rows.
pub(in crate::logic::screen) fn paragraphs(
    rows: &[String],
    from: usize,
    end: usize,
) -> impl Iterator<Item = Range<usize>> {
    let mut below = end;
    (from..end).rev().filter_map(move |at| {
        let is_blank = |at: usize| rows.get(at).is_none_or(|row| is_blank_row(row));
        if is_blank(at) {
            below = at;
            return None;
        }
        let starts = at == from || is_blank(at - 1);
        starts.then_some(at..below)
    })
}
