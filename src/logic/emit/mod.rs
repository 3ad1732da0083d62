//! The emit: the one page that the orchestrator gets. What stands on it, in which order, when it is worth sending.
//!
//! [`sections`] is the table of what can stand on the page; [`compose`] makes the page; [`choose`] says whether to
//! send one and why; [`dedup`] says whether it was said before, [`retired`] what a
//! delivery has settled; [`clean`] makes text from outside safe; [`archive`]
//! names the copies. [`bells`], [`decisions`], [`full_state`] and [`notices`] turn what was gathered into
//! sections.

pub mod archive;
pub mod bells;
pub mod choose;
pub mod clean;
pub mod compose;
pub mod decisions;
pub mod dedup;
pub mod footer;
pub mod full_state;
pub mod notices;
pub mod retired;
pub mod sections;

#[cfg(test)]
mod forgery;
