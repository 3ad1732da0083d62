//! The local state that is compared between polls: reports, windows, repositories; and whether a change of it is
//! worth an emit.
//!
//! [`baseline`] is the text that is compared and the decision what becomes of it; [`classify`] tells signal from
//! noise in a diff.

pub mod baseline;
pub mod classify;
