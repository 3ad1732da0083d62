//! Whether files have changed since they were read, without reading them again.
//!
//! A file is taken for unchanged only if its inode, size and times are the same *and* it had been left alone for a while
//! when it was stamped: two changes within one tick of a file system's clock look alike.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::fault;

/// Coarsest clock of a file system that is known, in seconds.
const CLOCK_S: i64 = 2;

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &PathBuf) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        Some(Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        })
    }

    /// Whether the file had been left alone at this time (seconds since 1970, by the clock that file times follow).
    fn is_settled(&self, at_s: i64) -> bool {
        at_s.saturating_sub(self.modified.0.max(self.changed.0)) > CLOCK_S
    }
}

/// Files as they were at one moment.
#[derive(Debug, Default)]
pub struct Stamps {
    files: Vec<(PathBuf, Option<Stamp>)>,
    are_settled: bool,
}

impl Stamps {
    /// Stamps these files. Call it *before* reading them, so that a change in between shows.
    pub fn of(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        // The real time also where the rest of the program lives in a simulated one: it is what file times are made of.
        let now_s = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
        let files: Vec<_> = paths.into_iter().map(|path| (Stamp::of(&path), path)).map(|(a, b)| (b, a)).collect();
        // Of a file that is not there, nothing can be mistaken.
        // In a simulated run each change is a new file, and so a new inode.
        let are_settled =
            fault::is_simulated() || files.iter().all(|(_, stamp)| stamp.is_none_or(|stamp| stamp.is_settled(now_s)));
        Self { files, are_settled }
    }

    /// Whether what was read after the stamping is still what stands there. `false` where that can't be told.
    pub fn are_current(&self) -> bool {
        self.are_settled && self.files.iter().all(|(path, stamp)| Stamp::of(path) == *stamp)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn only_a_file_that_was_left_alone_is_taken_for_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let stamps = || Stamps::of([path.clone()]);
        assert!(stamps().are_current(), "not there");
        let absent = stamps();
        fs::write(&path, "1").unwrap();
        assert!(!absent.are_current(), "there now");
        assert!(!stamps().are_current(), "too young to tell");
        // Nothing sets the time of the last change of an inode, so the stamp is made older here.
        let old = |mut stamps: Stamps| {
            stamps.are_settled = true;
            stamps
        };
        assert!(old(stamps()).are_current());
        let before = old(stamps());
        let hour_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(3600);
        fs::File::options().append(true).open(&path).unwrap().set_modified(hour_ago).unwrap();
        assert!(!before.are_current(), "another time");
        let before = old(stamps());
        fs::write(dir.path().join("b"), "2").unwrap();
        fs::rename(dir.path().join("b"), &path).unwrap();
        assert!(!before.are_current(), "another file in its place");
        let before = old(stamps());
        fs::remove_file(&path).unwrap();
        assert!(!before.are_current(), "gone");
    }

    #[test]
    fn a_stamp_settles_after_the_coarsest_clock() {
        let stamp = |modified_s, changed_s| Stamp {
            device: 1,
            inode: 1,
            size: 1,
            modified: (modified_s, 0),
            changed: (changed_s, 0),
        };
        for (modified_s, changed_s, settled) in
            [(0, 0, true), (97, 97, true), (98, 0, false), (0, 98, false), (100, 100, false), (i64::MAX, 0, false)]
        {
            assert_eq!(stamp(modified_s, changed_s).is_settled(100), settled, "{modified_s} {changed_s}");
        }
    }
}
