//! DECIDES. No input or output, no clock, environment, randomness, async or logging: values in, values out.
//!
//! One folder a capability; each can be read without the others. Shared vocabulary stands beside the folders:
//! [`ids`], [`time`], [`snapshot`] (what a tick may look at), [`signal`] (what is to be told) and [`action`] (what is
//! to be done).

#![warn(clippy::missing_docs_in_private_items)]

pub mod action;
pub mod archive;
pub mod audit;
pub mod degraded;
pub mod delivery;
pub mod emit;
pub mod hook;
pub mod ids;
pub mod inbox;
pub mod instance;
pub mod local;
pub mod pane;
pub mod schedule;
pub mod screen;
pub mod shell;
pub mod signal;
pub mod snapshot;
pub mod text;
pub mod time;
pub mod view;
pub mod worker;
