//! `no-sandbox-accepted`: older set-ups ask whoever starts a watcher to accept that it runs outside a sandbox. None is
//! required here (`docs/contracts.md` §7), so this only records who accepted, once.

use crate::cli::render;
use crate::sys::clock::Clock;
use crate::sys::env::ProcessEnv;
use crate::sys::files::{self, Durability, StateDir};
use crate::sys::instance::Here;

/// The record's name in the state directory.
const ACCEPTED_FILE: &str = "no-sandbox-accepted";

/// Records the acceptance unless there is a record.
pub(super) fn record(state: &StateDir, context: &str) {
    let path = state.at(ACCEPTED_FILE);
    if path.exists() {
        return;
    }
    let now = Clock::System.now();
    let holder = Here::look().describe(&ProcessEnv, state.path(), "", &now);
    let text = format!(
        "accepted_at: {}\nuser: {}\nhost: {}\ncontext: {context}\n",
        now.iso(),
        holder.user.replace(char::is_control, " "),
        holder.host
    );
    match files::write_atomic(&path, text.as_bytes(), Durability::Hint) {
        Ok(()) => render::note("no sandbox is required; that none is wanted was recorded once"),
        Err(error) => render::note(&format!("{} can't be written: {error}", path.display())),
    }
}
