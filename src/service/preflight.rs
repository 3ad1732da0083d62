//! What keeps a watcher from starting here although the lock is free: one on another host.

use std::time::Duration;

use super::Stop;
use crate::cli::render;
use crate::logic::instance::beacon::BeaconVerdict;
use crate::sys::clock::Clock;
use crate::sys::files::StateDir;
use crate::sys::instance::{self, BEACON_FILE};

/// What a beacon that can't be read means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Corrupt {
    /// A watcher on another host can't be ruled out: no start. For a start that a person or a script asks for.
    Refuses,
    /// A restart must never keep itself out by a file that it writes, and the lock is the judge on this host.
    Passes,
}

/// Whether a watcher on another host has left a beacon, of whatever age.
pub(super) fn another_host_was_here(state: &StateDir) -> bool {
    matches!(
        instance::remote_verdict(state, Clock::System.now().at, Duration::MAX),
        BeaconVerdict::LiveRemote(_) | BeaconVerdict::StaleRemote
    )
}

/// Refuses to start beside a watcher on another host, which the lock may not show.
pub(super) fn refuse_remote(state: &StateDir, stale_after: Duration, corrupt: Corrupt) -> Result<(), Stop> {
    let path = state.at(BEACON_FILE);
    let path = path.display();
    match instance::remote_verdict(state, Clock::System.now().at, stale_after) {
        BeaconVerdict::None | BeaconVerdict::SameHost | BeaconVerdict::StaleRemote => Ok(()),
        BeaconVerdict::LiveRemote(beacon) => Err(Stop::new(
            4,
            format!(
                "live-remote: a watcher on host {} (pid {}) uses {}; end it there, or wait {} s after its last sign of life",
                beacon.host,
                beacon.pid,
                state.path().display(),
                stale_after.as_secs()
            ),
        )),
        BeaconVerdict::Corrupt if corrupt == Corrupt::Refuses => Err(Stop::new(
            4,
            format!(
                "{path} can't be read, so a watcher on another host can't be ruled out; if there is none, start with \
                 --replace, or remove that file"
            ),
        )),
        BeaconVerdict::Corrupt => {
            render::note(&format!(
                "{path} can't be read, so a watcher on another host can't be ruled out; starting all the same"
            ));
            Ok(())
        }
    }
}
