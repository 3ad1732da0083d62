//! `ng`: see [`nexus_watcher::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    nexus_watcher::cli::run(std::env::args_os().collect())
}
