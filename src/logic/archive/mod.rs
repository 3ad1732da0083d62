//! Recorded screens: what is kept of one ([`frame`]), the bytes of a record ([`wire`]), and what another reading makes
//! of it ([`change`]); and how a person's own words are taken out of it ([`mask`]).
//!
//! Owns the format (`docs/adr/0023-kept-screens.md`). Files are `crate::sys::recordings`; who asks tmux is
//! `crate::daemon::record`.

pub mod change;
pub mod frame;
pub mod mask;
pub mod wire;

pub use change::{Difference, Table, differences};
pub use frame::Frame;
pub use mask::{masked, masked_frame};
