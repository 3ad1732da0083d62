//! Screens that are kept: what one is, and how a person's own words are taken out of it. Reading and writing files is the
//! business of `sys::recordings`.

pub mod frame;
pub mod mask;

pub use frame::{Difference, Frame, Table};
pub use mask::masked;
