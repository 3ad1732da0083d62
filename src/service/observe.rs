//! A watcher that can't open the instance lock only observes: its loop runs and logs, it tells and touches nothing, and it
//! becomes a full watcher as soon as it gets the lock. It says so loudly wherever it is asked for
//! (`watcher-observing`, read by [`instance::observing`]).

use std::cell::RefCell;
use std::fs::File;
use std::pin::Pin;
use std::time::Duration;

use super::preflight::{self, Corrupt};
use super::{Service, Stop};
use crate::cli::render;
use crate::daemon::Run;
use crate::sys::clock::Clock;
use crate::sys::files::{self, Durability, StateDir};
use crate::sys::instance;
use crate::sys::lock::{self, InstanceLock, LockError, OBSERVER_FILE};

/// How often the lock is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(2);

/// The observer's place: one a state directory, like the instance's. Dropping it leaves nothing behind.
#[derive(Debug)]
pub(super) struct Place {
    state: StateDir,
    /// The file's lock.
    _lock: Option<InstanceLock>,
    /// The open file, on a file system that has no locks.
    _file: Option<File>,
}

impl Place {
    /// Takes the place, and writes why.
    ///
    /// Errors: another watcher observes already.
    pub(super) fn take(state: &StateDir, body: &str) -> Result<Self, Stop> {
        let path = state.at(OBSERVER_FILE);
        let (lock, file) = match lock::acquire_file(state, OBSERVER_FILE, body) {
            Ok(lock) => (Some(lock), None),
            Err(LockError::Held { .. }) => {
                let other = instance::observing(state).map_or_else(|| "another".to_owned(), |other| other.says());
                return Err(Stop::new(4, format!("a watcher observes already: {other}")));
            }
            Err(LockError::Unopenable { .. }) => {
                match files::write_atomic(&path, body.as_bytes(), Durability::Hint).and_then(|()| File::open(&path)) {
                    Ok(file) => (None, Some(file)),
                    Err(error) => {
                        render::note(&format!("nexus-watcher: {} can't be written: {error}", path.display()));
                        (None, None)
                    }
                }
            }
        };
        Ok(Self { state: state.clone(), _lock: lock, _file: file })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _left_is_only_litter = files::remove(&self.state.at(OBSERVER_FILE));
    }
}

/// Observes until the lock can be had. `None` if it was told to end, or another has the lock.
pub(super) async fn until_locked(
    service: &Service<'_>,
    why: &str,
    told: Pin<&mut impl Future<Output = ()>>,
) -> anyhow::Result<Option<InstanceLock>> {
    let text =
        format!("OBSERVE-ONLY: {why}; until then nothing is told, typed or cleared, and the lock is tried again");
    tracing::error!("{text}");
    render::note(&format!("nexus-watcher: {text}"));
    let found = RefCell::new(None);
    let end = async {
        tokio::select! {
            () = told => {}
            lock = retry(service, why) => *found.borrow_mut() = lock,
        }
    };
    service.run(service.settings.clone().into(), Run::Observe, end).await?;
    let lock = found.take();
    if lock.is_some() {
        tracing::info!("the instance lock could be taken: a full watcher from now on");
    }
    Ok(lock)
}

/// Tries the lock until it can be had or is another's.
async fn retry(service: &Service<'_>, why: &str) -> Option<InstanceLock> {
    let mut said = why.to_owned();
    loop {
        tokio::time::sleep(RETRY_EVERY).await;
        match lock::acquire(service.state, &service.holder.render()) {
            Ok(lock) => {
                let stale = service.settings.beacon_stale;
                return match preflight::refuse_remote(service.state, stale, Corrupt::Passes) {
                    Ok(()) => Some(lock),
                    Err(Stop { why, .. }) => {
                        tracing::error!("{why}; standing down");
                        None
                    }
                };
            }
            Err(LockError::Held { path, metadata }) => {
                tracing::error!("{}; standing down", instance::refusal(&path, &metadata));
                return None;
            }
            Err(error @ LockError::Unopenable { .. }) => {
                let text = error.to_string();
                if text != said {
                    tracing::warn!("{text}");
                    said = text;
                }
            }
        }
    }
}

/// What the observer's file says.
pub(super) fn body(holder: &crate::logic::instance::holder::Holder, why: &str) -> String {
    let mut holder = holder.clone();
    holder.started_at = Clock::System.now().iso();
    instance::observer_body(&holder, why)
}
