//! What a pane is doing: the vocabulary, and the fusion of all witnesses into one verdict with its evidence.
//!
//! The vocabulary is `protocol-facts` §3.3 (`docs/contracts.md` §3). *Cannot tell* is [`State::Unknown`] or
//! [`State::Empty`]; both cause no action.

pub mod verdict;

pub use verdict::{Auth, Evidence, InputRow, Mode, Overlay, PaneVerdict, State, Witness};
