//! Whether a file is still the one that was read, without reading it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What the file system says of the configuration file. Links are followed, so a link that is turned to another file is
/// a change; the time of the last change to the inode can't be set by hand, so neither an old time that a copy keeps nor
/// a change of the mode is missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The file that would be read, if there is one.
    path: Option<PathBuf>,
    /// Its identity, length and times; why it can't be looked at.
    seen: Result<[i128; 5], String>,
}

impl Stamp {
    /// Looks at the file that would be read, or says why none can be named.
    pub(super) fn of(file: Result<Option<&Path>, String>) -> Self {
        let nanos = |secs: i64, nanos: i64| i128::from(secs) * 1_000_000_000 + i128::from(nanos);
        let look = |path: &Path| {
            let data = path.metadata().map_err(|error| error.kind().to_string())?;
            let (modified, changed) = (nanos(data.mtime(), data.mtime_nsec()), nanos(data.ctime(), data.ctime_nsec()));
            Ok([i128::from(data.dev()), i128::from(data.ino()), i128::from(data.len()), modified, changed])
        };
        match file {
            Ok(None) => Self { path: None, seen: Ok([0; 5]) },
            Ok(Some(path)) => Self { path: Some(path.to_owned()), seen: look(path) },
            Err(why) => Self { path: None, seen: Err(why) },
        }
    }
}
