//! A simulated machine: a tmux server, the agents in its panes, their processes, and their hooks. Time is tokio's, so a
//! paused runtime turns weeks into seconds. The same suite runs on this tmux and on the real one (`tests/conformance.rs`).
//!
//! - [`machine`]: the tmux server and what a test may do to it.
//! - [`tmux`]: the same as the watcher sees it; [`tmux::SimTmux`] is what the watcher is given.
//! - [`program`]: what runs in a pane; [`agent`] and [`draw`] are the one that matters.
//! - [`hooks`]: the files that an agent's hooks and its session leave.
//! - [`dice`]: all chance, from one seed.
//!
//! The simulated fleet (`tests/simulation.rs`, `docs/simulation.md`) is made of these:
//!
//! - [`plan`] and [`trouble`]: a run as data, and what goes wrong in it; [`strike`] lets it go wrong.
//! - [`fleet`]: what agents and people do all day. [`truth`] and [`told`]: what is true, what was told, what must hold.
//! - [`run`]: the real loop beside all that. [`shrink`]: a failing run, made smaller.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod agent;
pub(crate) mod dice;
pub(crate) mod draw;
pub(crate) mod fleet;
pub(crate) mod hooks;
pub(crate) mod machine;
pub(crate) mod plan;
pub(crate) mod program;
pub(crate) mod run;
pub(crate) mod shrink;
pub(crate) mod strike;
pub(crate) mod tmux;
pub(crate) mod told;
pub(crate) mod trouble;
pub(crate) mod truth;
