//! Workers: which windows are workers, how long each has been idle, whether it wrapped up, and what changed.
//!
//! [`scope`] says which windows count; [`engagement`] keeps the anchors of idle ages; [`log`] reads the action log;
//! [`report`] checks a report; [`class`] classifies one worker; [`roster`] holds what a look at all of them came to;
//! [`transition`] says what is new; [`workspace`] counts.

pub mod class;
pub mod engagement;
pub mod log;
pub mod report;
pub mod roster;
pub mod scope;
pub mod transition;
pub mod workspace;
