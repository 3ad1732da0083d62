//! Carries out everything that does not touch a pane: commits of verified deliveries, state files, pruning.
//!
//! Every step is idempotent, since a crash between two of them repeats the whole list.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::actuate;
use super::audit::{Repeat, Warrant};
use super::outside::Outside;
use crate::logic::audit::{Cause, Program};
use crate::logic::emit::dedup::{Delivered, RING_FILE, Ring};
use crate::logic::ids::{ServerId, WindowId};
use crate::logic::signal::Commit;
use crate::logic::time::Timestamp;
use crate::sys::fault;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES, StateDir};
use crate::sys::tmux::Tmux;

/// Carries out commits in order. A failure is logged and does not stop the rest: a signal that is told twice is better
/// than one that is lost.
///
/// `report` is when the proof of which report came; the stamps of cooldowns count from then, not from when the text was composed.
/// Errors: the last failure that may pass by itself, such as a full disk: worth another try of the whole list.
pub(super) async fn commits<T: Tmux>(
    out: &Outside<T>,
    commits: &[Commit],
    report: Option<(Timestamp, &str)>,
) -> io::Result<()> {
    let (state, ring) = (&out.state, out.settings.get().dedup_ring);
    let delivered = report.map(|(at, _)| at);
    let mut passing = Ok(());
    for commit in commits {
        let done = match commit {
            Commit::WriteState { path, text } => {
                files::write_atomic(&state.at(path), text.as_bytes(), Durability::Durable)
            }
            Commit::RemoveState { path } => files::remove(&state.at(path)),
            Commit::AddRows { path, rows } => add_rows(state, path, rows),
            Commit::StampRow { path, key, at_s } => {
                stamp_row(state, path, key, delivered.map_or(*at_s, Timestamp::secs))
            }
            Commit::RememberHash { hash, at_s } => {
                remember_hash(state, hash, delivered.map_or(*at_s, Timestamp::secs), ring)
            }
            Commit::StampFile { path } => delivered.map_or(Ok(()), |at| files::set_stamp(&state.at(path), at)),
            Commit::ClearBells { server, windows } => {
                clear_bells(out, server, windows, report.map(|(_, nonce)| nonce)).await;
                Ok(())
            }
        };
        if delivered.is_some() {
            fault::point("between-commits");
        }
        if let Err(error) = done {
            tracing::error!(?commit, %error, "could not record what was delivered");
            if may_pass(&error) {
                passing = Err(error);
            }
        }
    }
    passing
}

/// Whether a failed write may succeed later without anybody touching the file itself.
pub(super) fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem | FileTooLarge)
}

/// Adds those of these rows to a table that it lacks.
fn add_rows(state: &StateDir, path: &str, rows: &[String]) -> io::Result<()> {
    let path = state.at(path);
    let old = read_table(&path)?;
    let known: BTreeSet<&str> = old.lines().collect();
    let new = rows.iter().map(String::as_str).filter(|row| !known.contains(row));
    let text: String = old.lines().chain(new).flat_map(|line| [line, "\n"]).collect();
    files::write_atomic(&path, text.as_bytes(), Durability::Durable)
}

/// Clears bells on the server where they were told, whatever number it has by now; not if another server answers in its
/// place, where the same ids are other windows, whose bells nobody told.
async fn clear_bells<T: Tmux>(out: &Outside<T>, server: &ServerId, windows: &[WindowId], report: Option<&str>) {
    let cleared = match out.tmux.view().await {
        Ok(view) => {
            let Some(number) = view.number_of(server) else { return };
            let windows: Vec<WindowId> = windows.iter().map(|window| window.on(number)).collect();
            let cause = Cause::Told { nonce: report.map(str::to_owned) };
            let warrant = Warrant::new(Program::Watcher, "watcher-bells", cause, Repeat::Harmless);
            let there = view.panes.iter().filter(|pane| windows.contains(&pane.window));
            let names: BTreeSet<String> = there.map(|pane| pane.window_name.0.clone()).collect();
            actuate::clear_bells(out, warrant, (server, &windows), names.into_iter().collect()).await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = cleared {
        tracing::warn!(%error, "bells could not be cleared; they will be told again");
    }
}

/// Reads a table that is about to be rewritten. One that can't be read is set aside under another name, since the rest
/// would be told again for as long as it stood there.
fn read_table(path: &Path) -> io::Result<String> {
    match files::read_text(path, MAX_STATE_BYTES) {
        Ok(text) => Ok(text.unwrap_or_default()),
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
            let aside = files::set_aside(path)?;
            tracing::error!(%error, path = %path.display(), aside = %aside.display(), "damaged; set aside and begun anew");
            Ok(String::new())
        }
        Err(error) => Err(error),
    }
}

/// Sets the stamp of one row of a table whose lines are `key columns..<TAB>epoch`.
fn stamp_row(state: &StateDir, path: &str, key: &[String], at_s: i64) -> io::Result<()> {
    let path = state.at(path);
    let old = read_table(&path)?;
    let prefix = format!("{}\t", key.join("\t"));
    let mut text: String =
        old.lines().filter(|line| !line.starts_with(&prefix)).flat_map(|line| [line, "\n"]).collect();
    text.push_str(&prefix);
    text.push_str(&at_s.to_string());
    text.push('\n');
    files::write_atomic(&path, text.as_bytes(), Durability::Durable)
}

/// Appends a hash to the ring and keeps its newest lines.
fn remember_hash(state: &StateDir, hash: &str, at_s: i64, ring: usize) -> io::Result<()> {
    let path = state.at(RING_FILE);
    let old = read_table(&path)?;
    let delivered = Delivered { at: Timestamp::from_secs(at_s), hash: hash.to_owned() };
    files::write_atomic(&path, Ring::parse(&old).with(delivered, ring).as_bytes(), Durability::Hint)
}

/// Deletes archived emits by name.
pub(super) fn prune_archive(state: &StateDir, names: &[String]) {
    for name in names {
        if name.contains('/') {
            continue;
        }
        if let Err(error) = files::remove(&state.at("diffs").join(name)) {
            tracing::warn!(name, %error, "could not delete an archived emit");
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path());
        (dir, state)
    }

    fn text(state: &StateDir, path: &str) -> String {
        std::fs::read_to_string(state.at(path)).unwrap()
    }

    #[test]
    fn stamping_a_row_replaces_only_that_row() {
        let (_dir, state) = state();
        let key = |window: &str| vec![window.to_owned(), "0a1b2c3d4e5f".to_owned()];
        stamp_row(&state, "t.tsv", &key("w3"), 10).unwrap();
        stamp_row(&state, "t.tsv", &key("w33"), 11).unwrap();
        stamp_row(&state, "t.tsv", &key("w3"), 12).unwrap();
        assert_eq!(text(&state, "t.tsv"), "w33\t0a1b2c3d4e5f\t11\nw3\t0a1b2c3d4e5f\t12\n");
    }

    #[test]
    fn added_rows_leave_the_others_alone_and_stand_once() {
        let (_dir, state) = state();
        let rows = ["w1\tidle".to_owned(), "w2\tidle".to_owned()];
        add_rows(&state, "t.tsv", &rows[..1]).unwrap();
        add_rows(&state, "t.tsv", &rows).unwrap();
        add_rows(&state, "t.tsv", &rows).unwrap();
        assert_eq!(text(&state, "t.tsv"), "w1\tidle\nw2\tidle\n");
    }

    #[test]
    fn a_table_that_cannot_be_read_is_set_aside_and_begun_anew() {
        let (_dir, state) = state();
        let key = ["w3".to_owned(), "0a1b2c3d4e5f".to_owned()];
        std::fs::write(state.at("t.tsv"), b"ok\tok\n\xe9\n").unwrap();
        std::fs::create_dir(state.at("dir.tsv")).unwrap();
        for path in ["t.tsv", "dir.tsv"] {
            stamp_row(&state, path, &key, 10).unwrap();
            assert_eq!(text(&state, path), "w3\t0a1b2c3d4e5f\t10\n");
        }
        let kept: Vec<_> = files::list_names(state.path()).unwrap();
        assert_eq!(kept.iter().filter(|name| name.contains(".damaged.")).count(), 2, "{kept:?}");
    }

    #[test]
    fn the_hash_ring_keeps_its_newest_lines_once_each() {
        let (_dir, state) = state();
        for (at, hash) in [(1, "aa"), (2, "bb"), (3, "aa"), (4, "cc")] {
            remember_hash(&state, hash, at, 2).unwrap();
        }
        assert_eq!(text(&state, RING_FILE), "3\taa\n4\tcc\n");
    }

    #[test]
    fn pruning_never_leaves_the_archive() {
        let (_dir, state) = state();
        std::fs::create_dir(state.at("diffs")).unwrap();
        std::fs::write(state.at("kept"), "").unwrap();
        std::fs::write(state.at("diffs/a.md"), "").unwrap();
        prune_archive(&state, &["../kept".into(), "a.md".into()]);
        assert!(state.at("kept").exists() && !state.at("diffs/a.md").exists());
    }
}
