//! Nexus Watcher: watches a tmux session full of coding agents on behalf of one orchestrator agent and one operator.
//!
//! Map, in the direction data flows (`docs/architecture.md` has the whole design):
//!
//! - [`sys`] reads and writes the outside: tmux, files, processes, clock. Nothing else does.
//! - [`logic`] decides. It does no input or output and reads no clock; the time is an argument.
//! - [`agents`] holds the profiles: what each agent program looks like, as data.
//! - [`tasks`] is the table of everything the watcher does on a schedule.
//! - [`config`] is the one key table, and how a file becomes checked settings.
//! - [`daemon`] runs the loop: gather, observe, decide, act, deliver, commit.
//! - [`service`] is the `nexus-watcher` program: arguments, lock, log, heartbeat, exit code.
//! - [`cli`] is `ng`, the command of the orchestrator and of people.
//! - [`demo`] is a small program that behaves like an agent, for trials without an account.
//!
//! Invariants that hold everywhere: nothing reaches a pane except through `daemon::actuate`; *cannot tell* is a value
//! and causes no action; only a verified receipt retires a signal; text from outside is data.

pub mod agents;
pub mod cli;
pub mod config;
pub mod daemon;
pub mod demo;
pub mod logic;
pub mod service;
pub mod sys;
pub mod tasks;
