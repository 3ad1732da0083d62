//! The service: see [`nexus_watcher::service`].

use std::process::ExitCode;

fn main() -> ExitCode {
    nexus_watcher::service::main(std::env::args_os().collect())
}
