//! When the watcher starts itself anew: its deliveries fail again and again (`protocol-facts` §8.4). What it was about is
//! journalled, so that a new start loses nothing; it is bounded by a cool-down and a count, and can be switched off.

use super::outside::Outside;
use super::tally;
use crate::logic::delivery::trouble::{self, Restart};
use crate::logic::time::Now;
use crate::sys::alerts;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES};
use crate::sys::handover;

/// The name that the program says with its version.
const PROGRAM: &str = "nexus-watcher";

/// Past restarts, lines `<epoch> <why>`.
const HISTORY: &str = "watcher-self-heal-history.txt";

/// Tells the new start why it is one; the startup sweep tells the orchestrator.
const MARKER: &str = "watcher-revived";

/// Why, in both files.
const WHY: &str = "emit-delivery-failed";

/// Judges a failed delivery: alerts if that is due, and says whether the watcher is to start itself anew.
pub(super) async fn is_due<T>(out: &Outside<T>) -> bool {
    let settings = out.settings.get();
    let failures = tally::failures(out);
    if failures < settings.delivery_fail_limit {
        return false;
    }
    let now = out.clock.now();
    let what = if settings.self_heal {
        prepare(out, &now).await
    } else {
        Err("it goes on as it is, since monitor.watcher.self_heal_enabled is off".to_owned())
    };
    let told = match &what {
        Ok(()) => "it starts itself anew",
        Err(why) => why.as_str(),
    };
    if what.is_ok() || trouble::is_worth_saying(failures, settings.delivery_fail_limit) {
        alerts::raise(
            &out.state,
            &now,
            &format!(
                "emit-delivery {failures} deliveries to {} failed in a row; {told}; see ng emits",
                settings.target_window
            ),
        );
    }
    what.is_ok()
}

/// Makes sure that a new start is allowed and will come up, and leaves word for it. Errors: why there is none.
async fn prepare<T>(out: &Outside<T>, now: &Now) -> Result<(), String> {
    let path = out.state.at(HISTORY);
    let history =
        files::read_text(&path, MAX_STATE_BYTES).map_err(|error| format!("{HISTORY} can't be read: {error}"))?;
    let history = history.unwrap_or_default();
    match trouble::restart(&history, now.at) {
        Restart::Now => {}
        Restart::Resting => return Err("it has started itself anew a moment ago and goes on as it is".into()),
        Restart::Tripped => return Err("to start anew has not helped; it goes on as it is".into()),
    }
    // A watcher that can't come up again must not end.
    handover::can_start(PROGRAM).await.map_err(|error| format!("it can't start itself anew: {error}"))?;
    let text = trouble::remember_restart(&history, WHY, now.at);
    files::write_atomic(&path, text.as_bytes(), Durability::Durable)
        .map_err(|error| format!("it does not start itself anew, since {HISTORY} can't be written: {error}"))?;
    let marker =
        format!("reason={WHY}\ndowntime_estimate_s=0\ndetected_at={}\nrestarted_by=watcher-self-heal\n", now.iso());
    if let Err(error) = files::write_atomic(&out.state.at(MARKER), marker.as_bytes(), Durability::Hint) {
        tracing::warn!(%error, "the new start can't be told why it is one");
    }
    Ok(())
}
