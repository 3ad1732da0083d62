//! The service: see [`nexus_watcher::daemon`].

fn main() {}
