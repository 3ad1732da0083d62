//! Waits for several things at once, on one thread.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// A future under way, or what came of it.
enum Stage<F: Future> {
    /// Under way.
    Runs(Pin<Box<F>>),
    /// Done.
    Done(Option<F::Output>),
}

/// What comes of each of these futures, in their order, once all are done.
pub async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F::Output: Unpin,
{
    let mut stages: Vec<Stage<F>> = futures.into_iter().map(|future| Stage::Runs(Box::pin(future))).collect();
    poll_fn(|context| {
        let mut is_done = true;
        for stage in &mut stages {
            if let Stage::Runs(future) = stage {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *stage = Stage::Done(Some(output)),
                    Poll::Pending => is_done = false,
                }
            }
        }
        if !is_done {
            return Poll::Pending;
        }
        let outputs = stages.iter_mut().filter_map(|stage| match stage {
            Stage::Done(output) => output.take(),
            Stage::Runs(_) => None,
        });
        Poll::Ready(outputs.collect())
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_slowest_decides_and_the_order_stays() {
        let began = tokio::time::Instant::now();
        let sleeps = [3, 1, 2].map(|secs| async move {
            tokio::time::sleep(Duration::from_secs(secs)).await;
            secs
        });
        assert_eq!(all(sleeps).await, [3, 1, 2]);
        assert_eq!(began.elapsed(), Duration::from_secs(3));
        assert!(all(Vec::<std::future::Ready<u8>>::new()).await.is_empty());
    }
}
