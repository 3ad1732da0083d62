//! Runs that go on beside the loop: what takes long to fetch is fetched there, so that it never holds the loop up.
//!
//! Only the fetching is beside. The loop is told when it ends, fetches the rest and lets the task decide, so that every
//! decision sees the state directory as it is by then. The schedule says when a run hangs; it is then cut off here, with
//! the processes that it started, and what it would have said is not heard any more.

use std::collections::BTreeMap;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;

use crate::config::resolved::Settings;
use crate::logic::snapshot::Snapshot;
use crate::tasks::{Need, TaskSpec};

/// A run that has not ended.
#[derive(Debug)]
struct Run {
    /// Tells it from an earlier run of the same task, whose end may still be under way.
    number: u64,
    /// Ends it.
    abort: AbortHandle,
}

/// What a run fetched.
#[derive(Debug)]
pub(super) struct Fetched {
    /// The task.
    pub(super) task: &'static str,
    /// Which of its runs.
    number: u64,
    /// The parts of the snapshot that take long; nothing if the fetching broke off.
    pub(super) snapshot: Option<Box<Snapshot>>,
}

/// The runs.
#[derive(Debug)]
pub(super) struct Beside {
    runs: BTreeMap<&'static str, Run>,
    started: u64,
    sender: UnboundedSender<Fetched>,
    fetched: UnboundedReceiver<Fetched>,
}

impl Beside {
    pub(super) fn new() -> Self {
        let (sender, fetched) = mpsc::unbounded_channel();
        Self { runs: BTreeMap::new(), started: 0, sender, fetched }
    }

    /// Starts fetching for a task; its end, also by a panic, comes from [`Self::next`].
    pub(super) fn start(&mut self, name: &'static str, fetch: impl Future<Output = Snapshot> + 'static) {
        self.started = self.started.wrapping_add(1);
        let (number, sender) = (self.started, self.sender.clone());
        let job = tokio::task::spawn_local(fetch);
        let abort = job.abort_handle();
        tokio::task::spawn_local(async move {
            let snapshot = match job.await {
                Ok(snapshot) => Some(Box::new(snapshot)),
                Err(error) if error.is_cancelled() => return,
                Err(error) => {
                    tracing::error!(task = name, %error, "fetching for a task broke off");
                    None
                }
            };
            // The receiver is gone only when the loop has ended.
            let _ended = sender.send(Fetched { task: name, number, snapshot });
        });
        self.runs.insert(name, Run { number, abort });
    }

    /// Waits for a run to end, for ever if there is none. One that was cut off after it had ended is not heard.
    pub(super) async fn next(&mut self) -> Fetched {
        loop {
            match self.fetched.recv().await {
                Some(fetched) if self.ended(&fetched) => return fetched,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Whether this is the end of the run in flight, which it then no longer is.
    fn ended(&mut self, fetched: &Fetched) -> bool {
        let is_that = self.runs.get(fetched.task).is_some_and(|run| run.number == fetched.number);
        if is_that {
            self.runs.remove(fetched.task);
        }
        is_that
    }

    /// Cuts a run off.
    pub(super) fn abort(&mut self, name: &str) {
        if let Some(run) = self.runs.remove(name) {
            run.abort.abort();
        }
    }

    /// Whether any run is in flight.
    pub(super) fn in_flight(&self) -> bool {
        !self.runs.is_empty()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for run in self.runs.values() {
            run.abort.abort();
        }
    }
}

/// The needs of a task that may take long: with any, it runs beside the loop.
pub(super) fn slow_needs(spec: &TaskSpec, settings: &Settings) -> Vec<Need> {
    // Names of reports are a list of one directory; git looks at every file of a repository.
    spec.needs.iter().copied().filter(|need| *need == Need::Local && settings.git_enabled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn within<T>(job: impl Future<Output = T>) -> T {
        tokio::task::LocalSet::new().run_until(job).await
    }

    #[tokio::test]
    async fn a_run_ends_with_what_it_fetched_or_with_nothing_when_it_panics() {
        within(async {
            let mut beside = Beside::new();
            beside.start("snapshot_local", async { Snapshot { told: true, ..Snapshot::default() } });
            assert!(beside.in_flight());
            let fetched = beside.next().await;
            assert!(fetched.task == "snapshot_local" && fetched.snapshot.is_some_and(|snapshot| snapshot.told));
            beside.start("snapshot_local", async { panic!("on purpose") });
            assert!(beside.next().await.snapshot.is_none());
            assert!(!beside.in_flight());
        })
        .await;
    }

    #[tokio::test]
    async fn a_run_that_is_cut_off_is_dropped_and_never_heard() {
        within(async {
            let mut beside = Beside::new();
            let (held, dropped) = tokio::sync::oneshot::channel::<()>();
            beside.start("snapshot_local", async move {
                let _held = held;
                std::future::pending().await
            });
            beside.abort("snapshot_local");
            assert!(dropped.await.is_err(), "what it held is dropped, children included");
            // One that had ended already, but was not heard before it was cut off.
            beside.start("snapshot_local", async { Snapshot::default() });
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            beside.abort("snapshot_local");
            beside.start("snapshot_local", async { Snapshot { told: true, ..Snapshot::default() } });
            assert!(beside.next().await.snapshot.is_some_and(|snapshot| snapshot.told), "the newest run");
        })
        .await;
    }
}
