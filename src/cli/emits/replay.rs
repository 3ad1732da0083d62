//! `ng emits replay`: the reports since the last ack, for an orchestrator that wakes up and may have missed some.
//!
//! The time of `last-ack.txt` is that of the last ack. An ack moves it to the newest report that was printed and no
//! further, so that one which is archived meanwhile is not acked unread.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::cli::render;
use crate::logic::emit::archive::{composed_at, newer_than};
use crate::logic::snapshot::FileStamp;
use crate::logic::time::Timestamp;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES, StateDir};

/// Its time is that of the last ack; its text says the same for people.
const ACK_FILE: &str = "last-ack.txt";

/// One archived report.
#[derive(Debug, Serialize)]
struct Replayed {
    /// Its name in `diffs/`.
    archive: String,
    /// Its text; none if it was deleted meanwhile.
    text: Option<String>,
}

/// Prints what was archived since the last ack, oldest first, and acks it if that is asked for.
///
/// Errors: the archive or the ack can't be read, or the ack can't be written.
pub(super) fn replay(state: &StateDir, json: bool, ack: bool) -> anyhow::Result<u8> {
    let since = last_ack(state)?;
    let mut printed: BTreeSet<String> = BTreeSet::new();
    let mut rows = Vec::new();
    let mut taken = true;
    loop {
        // Whatever is archived while this prints belongs to it, until nothing new is found.
        let new: Vec<String> =
            newer_than(&names(state)?, since).into_iter().filter(|name| !printed.contains(name)).collect();
        if new.is_empty() || !taken {
            break;
        }
        for name in new {
            let row = Replayed { text: text(state, &name)?, archive: name };
            printed.insert(row.archive.clone());
            if json {
                rows.push(row);
            } else if taken {
                let text = row.text.as_deref().unwrap_or("(its text is no longer in the archive)");
                taken = render::try_line(&format!(">>> {}\n{}", row.archive, text.trim_end()));
            }
        }
    }
    if json {
        taken = render::try_line(&serde_json::to_string_pretty(&rows)?);
    } else if printed.is_empty() {
        render::note("no report since the last ack");
    }
    let newest = printed.iter().filter_map(|name| composed_at(name)).max();
    // What the reader did not take is not acked.
    if let (true, true, Some(newest)) = (ack, taken, newest) {
        write_ack(state, newest)?;
    }
    Ok(0)
}

/// When the reports were last acked; `None` if never.
fn last_ack(state: &StateDir) -> anyhow::Result<Option<Timestamp>> {
    match files::stamp(&state.at(ACK_FILE)) {
        FileStamp::At { modified, .. } => Ok(Some(modified)),
        FileStamp::Absent => Ok(None),
        FileStamp::Unreadable(why) => Err(anyhow::anyhow!("cannot look at {}: {why}", state.at(ACK_FILE).display())),
    }
}

/// The names in the archive.
fn names(state: &StateDir) -> anyhow::Result<Vec<String>> {
    let dir = state.at("diffs");
    files::list_names(&dir).map_err(|error| anyhow::anyhow!("cannot list {}: {error}", dir.display()))
}

/// The text of an archived report.
fn text(state: &StateDir, name: &str) -> anyhow::Result<Option<String>> {
    let path = state.at("diffs").join(name);
    files::read_text(&path, MAX_STATE_BYTES).map_err(|error| anyhow::anyhow!("cannot read {}: {error}", path.display()))
}

/// Moves the last ack to this time.
fn write_ack(state: &StateDir, at: Timestamp) -> anyhow::Result<()> {
    let path = state.at(ACK_FILE);
    files::write_atomic(&path, format!("{at}\n").as_bytes(), Durability::Hint)
        .and_then(|()| files::set_stamp(&path, at))
        .map_err(|error| anyhow::anyhow!("the ack can't be written to {}: {error}", path.display()))
}
