//! Says in the log what a reload of the configuration found. Each is said once: [`Live`](crate::config::live::Live)
//! returns only what is news.

use crate::config::live::News;

/// Says it.
pub(super) fn say(news: &News) {
    match news {
        // These are degraded modes, which the board says.
        News::Failed(_) | News::Fixed | News::NotWaiting(_) | News::Waiting(_) => {}
        News::InForce(change) => {
            let (from, to) = (change.from.to_json(), change.to.to_json());
            tracing::info!(%from, %to, "{} is in force", change.key.path);
        }
        News::Notice(text) => tracing::info!("{text}"),
        News::RecordFailed(error) => tracing::warn!(error, "what is in force can't be written down"),
        News::Unchanged => tracing::info!("the configuration was read again, and nothing differs"),
    }
}
