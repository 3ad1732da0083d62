//! Says in the log what a reload of the configuration found. Each is said once: [`Live`](crate::config::live::Live)
//! returns only what is news.

use crate::config::live::News;

/// Says it.
pub(super) fn say(news: &News) {
    match news {
        News::Fixed => tracing::info!("the configuration is fine again"),
        News::Failed(error) => {
            tracing::error!("the configuration can't be used, the last good one stays in force: {}", one_line(error));
        }
        News::InForce(change) => {
            let (from, to) = (change.from.to_json(), change.to.to_json());
            tracing::info!(%from, %to, "{} is in force", change.key.path);
        }
        News::NotWaiting(key) => tracing::info!("{} has its running value again and needs no restart", key.path),
        News::Notice(text) => tracing::info!("{text}"),
        News::RecordFailed(error) => tracing::warn!(error, "what is in force can't be written down"),
        News::Unchanged => tracing::info!("the configuration was read again, and nothing differs"),
        News::Waiting(change) => {
            let (from, to) = (change.from.to_json(), change.to.to_json());
            tracing::warn!(in_force = %from, written = %to, "{} was changed, which needs a restart", change.key.path);
        }
    }
}

/// All problems in one line, since a line of the log is one event.
fn one_line(error: &crate::config::error::ConfigError) -> String {
    error.to_string().replace('\n', "; ")
}
