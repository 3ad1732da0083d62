//! Keeps count of deliveries that are refused or fail, in the files of the protocol, and alerts (`protocol-facts` §8.2,
//! §8.4). What the counts mean is `logic::delivery::trouble`'s.

use std::io;

use super::outside::Outside;
use crate::logic::delivery::Outcome;
use crate::logic::delivery::trouble::{self, Counts, Deferrals};
use crate::logic::ids::WindowName;
use crate::logic::time::age_text;
use crate::sys::alerts;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES};

/// Failures in a row of the watcher's own deliveries.
pub(super) const FAILURES: &str = "watcher-emit-delivery-fail.count";

/// Whose delivery it is: only the watcher's own failures are its own trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// An emit.
    Watcher,
    /// `ng send`.
    Person,
}

/// Counts an outcome, and alerts where that is due.
pub(super) fn count<T>(out: &Outside<T>, window: &WindowName, outcome: &Outcome, whose: Whose) {
    let counted = match Counts::of(outcome) {
        Counts::Delivered => delivered(out, window, whose),
        Counts::Deferred => deferred(out, window, outcome, whose),
        Counts::Failed if whose == Whose::Watcher => failed(out),
        Counts::Failed | Counts::Nothing => Ok(()),
    };
    match counted {
        Ok(()) => out.edges.works("delivery-counts"),
        Err(error) => out.edges.fails("delivery-counts", &error, "the counts of failed deliveries can't be written"),
    }
}

/// Failures of the watcher's own deliveries in a row, as last counted.
pub(super) fn failures<T>(out: &Outside<T>) -> u32 {
    let text = files::read_text(&out.state.at(FAILURES), MAX_STATE_BYTES);
    // What can't be read is no reason to do anything.
    text.ok().flatten().map_or(0, |text| trouble::parse_count(&text))
}

fn delivered<T>(out: &Outside<T>, window: &WindowName, whose: Whose) -> io::Result<()> {
    let stem = window.file_stem();
    files::remove(&out.state.at(format!("paste-deferral/{stem}")))?;
    files::remove(&out.state.at(format!("paste-deferral-alerts/{stem}")))?;
    if whose == Whose::Watcher {
        files::remove(&out.state.at(FAILURES))?;
    }
    Ok(())
}

fn deferred<T>(out: &Outside<T>, window: &WindowName, outcome: &Outcome, whose: Whose) -> io::Result<()> {
    let now = out.clock.now();
    let stem = window.file_stem();
    let path = out.state.at(format!("paste-deferral/{stem}"));
    let before = files::read_text(&path, MAX_STATE_BYTES)?.and_then(|text| Deferrals::parse(&text));
    let deferrals = Deferrals::with_one_more(before, now.at);
    files::write_atomic(&path, deferrals.text().as_bytes(), Durability::Hint)?;
    if whose == Whose::Person {
        // Whoever sends has been told by the exit code.
        return Ok(());
    }
    let alerts_path = out.state.at(format!("paste-deferral-alerts/{stem}"));
    let alerts =
        files::read_text(&alerts_path, MAX_STATE_BYTES)?.map_or(0, |text| trouble::alerts_of(&text, deferrals));
    let due = deferrals.alerts_due(now.at);
    if due <= alerts {
        return Ok(());
    }
    let why = match outcome {
        Outcome::Held(hold) => format!("{}: {}", hold.word(), hold.says()),
        _ => "refused".to_owned(),
    };
    // Written first: an alert that is not told is better than one at every attempt.
    let told = Deferrals { count: due, ..deferrals };
    files::write_atomic(&alerts_path, told.text().as_bytes(), Durability::Hint)?;
    alerts::raise(
        &out.state,
        &now,
        &format!(
            "paste-deferral target={} count={} for={} ({why})",
            window.as_str(),
            deferrals.count,
            age_text(now.at.since(deferrals.first)),
        ),
    );
    Ok(())
}

fn failed<T>(out: &Outside<T>) -> io::Result<()> {
    let count = failures(out).saturating_add(1);
    files::write_atomic(&out.state.at(FAILURES), format!("{count}\n").as_bytes(), Durability::Hint)
}
