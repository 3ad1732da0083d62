//! What can happen beside the loop: a closed list.

use super::deliver::Archived;
use crate::logic::delivery::Outcome;
use crate::logic::delivery::journal::Pending;

/// Something that ended beside the loop.
#[derive(Debug)]
pub(super) enum Event {
    /// A delivery ended.
    Delivered {
        /// What was to be delivered.
        archived: Box<Archived>,
        /// How it ended.
        outcome: Outcome,
    },
    /// The pending delivery was settled, or could not be yet.
    Settled {
        /// The delivery.
        pending: Box<Pending>,
        /// How it ended.
        outcome: Outcome,
    },
}
