//! The files of recorded screens: `screens-<milliseconds since 1970>.jsonl.gz` in one folder, written to at the end only.
//! What a record's bytes mean is `crate::logic::archive::wire`.
//!
//! Files are 0600 in a folder of 0700; symbolic links are not followed when writing. Together they take no more room than
//! was allowed: the oldest file goes first, never the one that is being written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::{fault, files};
use crate::logic::time::Timestamp;

/// How the files end.
pub const ENDING: &str = ".jsonl.gz";
/// How the files begin.
const BEGINNING: &str = "screens-";
/// One file takes at most this part of the room, so that dropping the oldest drops no more than that.
const PARTS: u64 = 16;
/// A file is not closed before it has this many bytes, however little room there is.
const MIN_FILE_BYTES: u64 = 64 << 10;
/// How many names are tried for a new file.
const MAX_NAMES: i64 = 1000;
/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

/// Writes records to a folder.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    max_bytes: u64,
    open: Option<(File, PathBuf, u64)>,
    /// Bytes of the files that are closed, oldest first.
    closed: Vec<(PathBuf, u64)>,
    /// How many files had to make room.
    pub dropped: u64,
}

impl Writer {
    /// A writer to this folder, which is made if it is missing. Files that are there already count, and go first.
    ///
    /// Errors: the folder is a link, or others may write in it; it can't be made or listed.
    pub fn open(dir: &Path, max_bytes: u64) -> io::Result<Self> {
        let refuse = |why: &str| io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned());
        match fs::symlink_metadata(dir) {
            Ok(found) if found.is_symlink() => return Err(refuse("it is a symbolic link; name the folder itself")),
            Ok(found) if !found.is_dir() => return Err(io::ErrorKind::NotADirectory.into()),
            Ok(found) if found.mode() & 0o022 != 0 => {
                return Err(refuse("others may write in it; `chmod go-w` it, or name another folder"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => files::create_private_dir(dir)?,
            Err(error) => return Err(error),
        }
        let mut closed = Vec::new();
        for path in list(dir)? {
            closed.push((path.clone(), fs::symlink_metadata(&path)?.len()));
        }
        let mut writer = Self { dir: dir.to_owned(), max_bytes, open: None, closed, dropped: 0 };
        writer.make_room(0)?;
        Ok(writer)
    }

    /// Appends a record, whole or not at all.
    ///
    /// Errors: it can't be written; what was written of it is taken back.
    pub fn append(&mut self, record: &[u8], now: Timestamp) -> io::Result<()> {
        let more = record.len() as u64;
        self.make_room(more)?;
        let full = (self.max_bytes / PARTS).max(MIN_FILE_BYTES).min(self.max_bytes);
        if self.open.as_ref().is_some_and(|(_, _, size)| size.saturating_add(more) > full)
            && let Some((_, path, size)) = self.open.take()
        {
            self.closed.push((path, size));
        }
        let (file, path, size) = match &mut self.open {
            Some(open) => open,
            open @ None => open.insert(create(&self.dir, now)?),
        };
        fault::write(path)?;
        if let Err(error) = file.write_all(record) {
            // Half a record costs the reader only itself; nothing is lost if this fails too.
            let _kept_as_is = file.set_len(*size);
            return Err(error);
        }
        *size += more;
        Ok(())
    }

    /// Drops the oldest files until so many bytes more have room.
    fn make_room(&mut self, more: u64) -> io::Result<()> {
        loop {
            let open = self.open.as_ref().map_or(0, |(_, _, size)| *size);
            let total = self.closed.iter().fold(open, |sum, (_, size)| sum.saturating_add(*size)).saturating_add(more);
            if total <= self.max_bytes || self.closed.is_empty() {
                return Ok(());
            }
            let (oldest, _) = self.closed.remove(0);
            files::remove(&oldest)?;
            self.dropped += 1;
        }
    }

    /// Where it writes.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How many bytes all files have.
    pub fn total_bytes(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, |(_, _, size)| *size);
        self.closed.iter().fold(open, |sum, (_, size)| sum.saturating_add(*size))
    }
}

/// Makes a new file, never over another.
fn create(dir: &Path, now: Timestamp) -> io::Result<(File, PathBuf, u64)> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    for millis in now.millis()..now.millis().saturating_add(MAX_NAMES) {
        let path = dir.join(format!("{BEGINNING}{millis:014}{ENDING}"));
        match OpenOptions::new().append(true).create_new(true).mode(0o600).custom_flags(flags).open(&path) {
            Ok(file) => return Ok((file, path, 0)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("no free name for a recording"))
}

/// The recordings in a folder, oldest first.
pub fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let is_ours = |name: &String| name.starts_with(BEGINNING) && name.ends_with(ENDING);
    Ok(files::list_names(dir)?.into_iter().filter(is_ours).map(|name| dir.join(name)).collect())
}

/// Reads a file whole.
///
/// Errors: it is no regular file, larger than [`MAX_FILE_BYTES`], or can't be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let Some(file) = files::open_regular(path)? else { return Err(io::ErrorKind::NotFound.into()) };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "larger than 1 GiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn sizes(dir: &Path) -> Vec<u64> {
        list(dir).unwrap().iter().map(|path| fs::metadata(path).unwrap().len()).collect()
    }

    #[test]
    fn recordings_are_private_and_never_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("night");
        Writer::open(&place, 1000).unwrap().append(b"x", Timestamp::from_secs(1)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place), mode(&list(&place).unwrap()[0])), (0o700, 0o600));
        let link = dir.path().join("link");
        symlink(&place, &link).unwrap();
        assert!(Writer::open(&link, 1000).unwrap_err().to_string().contains("symbolic link"));
        // A link where the next file would be is no place to write to.
        let elsewhere = dir.path().join("elsewhere");
        symlink(&elsewhere, place.join(format!("{BEGINNING}{:014}{ENDING}", 2000))).unwrap();
        Writer::open(&place, 1000).unwrap().append(b"x", Timestamp::from_secs(2)).unwrap();
        assert!(!elsewhere.exists());
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Writer::open(&place, 1000).unwrap_err().to_string().contains("others may write"));
    }

    #[test]
    fn what_is_kept_never_takes_more_room_than_was_allowed_and_the_oldest_goes_first() {
        let dir = tempfile::tempdir().unwrap();
        let max = 300 << 10;
        let mut writer = Writer::open(dir.path(), max).unwrap();
        for round in 0..100_u8 {
            writer.append(&vec![round; 10 << 10], Timestamp::from_secs(i64::from(round))).unwrap();
            assert!(sizes(dir.path()).iter().sum::<u64>() <= max, "{round}: {:?}", sizes(dir.path()));
        }
        let all: Vec<u8> = list(dir.path()).unwrap().iter().flat_map(|path| fs::read(path).unwrap()).collect();
        assert_eq!(all.last(), Some(&99));
        assert!(all.first().is_some_and(|first| *first > 60) && all.is_sorted(), "{:?}", all.first());
        assert!(writer.dropped > 5 && writer.total_bytes() == all.len() as u64);
        // A smaller limit at the next start holds for what is there.
        let writer = Writer::open(dir.path(), 100 << 10).unwrap();
        assert!(writer.total_bytes() <= 100 << 10);
    }

    #[test]
    fn another_start_does_not_write_into_what_was_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            Writer::open(dir.path(), 1000).unwrap().append(b"half", Timestamp::from_secs(1)).unwrap();
        }
        assert_eq!(sizes(dir.path()), [4, 4]);
    }
}
