//! The service: arguments, lock, logging guard, exit code; everything else is [`nexus_watcher::daemon`].

use std::process::ExitCode;

fn main() -> ExitCode {
    nexus_watcher::service::main(std::env::args_os().collect())
}
