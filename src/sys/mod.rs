//! DOES. Each file owns one outside thing. Nothing here decides what should happen.

pub mod action_log;
pub mod child;
pub mod clock;
pub mod decisions;
pub mod env;
pub mod fault;
pub mod files;
pub mod git;
pub mod group;
pub mod hook_files;
pub mod instance;
pub mod liveness;
pub mod lock;
pub mod log_file;
pub mod logging;
pub mod processes;
pub mod procfs;
pub mod seed;
pub mod space;
pub mod stdin;
pub mod systemd;
pub mod takeover;
pub mod terminal;
pub mod ticker;
pub mod tmux;
pub mod transcript;
