//! The state directory: atomic writes, bounded reads, appends that leave no half line.
//!
//! Directories are 0700, files 0600. A write is a temporary file in the same directory, then a rename; a *durable*
//! write also syncs the file and the directory, for what would lose a signal. Symbolic links are not followed when
//! writing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use super::fault;
use crate::logic::snapshot::FileStamp;
use crate::logic::time::Timestamp;

/// Largest state file that is read whole, in bytes.
pub const MAX_STATE_BYTES: u64 = 8 << 20;

/// Most damaged files of one name that are kept aside.
const MAX_ASIDE: u32 = 1000;

/// Whether a write must survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// A hint: the rename is enough.
    Hint,
    /// Losing it would lose a signal: sync the file and its directory.
    Durable,
}

/// Creates a directory and its parents with mode 0700; fine if it exists.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Replaces a file's content atomically. The parent directory is created if it is missing.
pub fn write_atomic(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    fault::write(path)?;
    let dir = path.parent().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a file needs a directory"))?;
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a file needs a name"))?;
    let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temporary = dir.join(format!("{}.tmp.{}.{unique}", name.to_string_lossy(), std::process::id()));
    let open = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary);
    let mut file = match open() {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_private_dir(dir)?;
            open()?
        }
        Err(error) => return Err(error),
    };
    let written = (|| {
        file.write_all(bytes)?;
        if durability == Durability::Durable {
            file.sync_all()?;
        }
        fs::rename(&temporary, path)?;
        if durability == Durability::Durable {
            File::open(dir)?.sync_all()?;
        }
        Ok(())
    })();
    if written.is_err() {
        // The original is untouched; a leftover temporary file is only litter.
        let _litter = fs::remove_file(&temporary);
    }
    written
}

/// Appends whole lines to a file, created with mode 0600. `text` must end in a newline.
///
/// A file whose last line was cut off (a crash, a full disk) gets a newline first, so that our line stays whole; a
/// failed append is cut back to where it began.
pub fn append_lines(path: &Path, text: &str, durability: Durability) -> io::Result<()> {
    debug_assert!(text.ends_with('\n'), "appended text ends in a newline");
    fault::write(path)?;
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let open = || OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(flags).open(path);
    let mut file = match open() {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_private_dir(path.parent().unwrap_or(Path::new(".")))?;
            open()?
        }
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let length = metadata.len();
    let mut whole = String::new();
    if length > 0 {
        file.seek(SeekFrom::Start(length - 1))?;
        let mut last = [0_u8];
        if file.read(&mut last)? == 1 && last[0] != b'\n' {
            whole.push('\n');
        }
    }
    whole.push_str(text);
    if let Err(error) = file.write_all(whole.as_bytes()) {
        let _kept_as_is = file.set_len(length);
        return Err(error);
    }
    if durability == Durability::Durable {
        file.sync_data()?;
    }
    Ok(())
}

/// The same for a log of ours that must be writable: what stands in its place, or in that of its folder, and is neither a
/// file nor a folder of ours is set aside.
pub fn append_log(path: &Path, text: &str, durability: Durability) -> io::Result<()> {
    let Err(error) = append_lines(path, text, durability) else { return Ok(()) };
    let is = |path: &Path, right: fn(&fs::Metadata) -> bool| fs::symlink_metadata(path).is_ok_and(|it| !right(&it));
    let folder = path.parent().unwrap_or(Path::new("."));
    let wrong = if is(folder, fs::Metadata::is_dir) {
        folder
    } else if is(path, fs::Metadata::is_file) {
        path
    } else {
        return Err(error);
    };
    let aside = set_aside(wrong)?;
    tracing::error!(path = %wrong.display(), aside = %aside.display(), "it is no log of ours; set aside and begun anew");
    append_lines(path, text, durability)
}

/// Reads a text file of at most `max_bytes`; `None` if it does not exist.
///
/// Errors: `InvalidData` if it is longer or not UTF-8, `InvalidInput` if it is no regular file.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<Option<String>> {
    let Some(file) = open_regular(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("longer than {max_bytes} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8"))
}

/// Reads the whole lines among the last `max_bytes` of a file; `None` if it does not exist. What is not UTF-8 is replaced.
pub fn read_tail(path: &Path, max_bytes: u64) -> io::Result<Option<String>> {
    let Some(mut file) = open_regular(path)? else { return Ok(None) };
    let start = file.metadata()?.len().saturating_sub(max_bytes);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if start == 0 {
        return Ok(Some(text));
    }
    // The first line is cut off.
    Ok(Some(text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()))
}

/// Opens a regular file for reading without waiting, whatever stands there: a pipe would hold the watcher up for ever,
/// and a device has no end. `None` if it does not exist.
pub(super) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = match OpenOptions::new().read(true).custom_flags(nonblock).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.metadata()?.is_file() {
        Ok(Some(file))
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// When a file was last written and whether it has content; its text is not read.
pub fn stamp(path: &Path) -> FileStamp {
    match fs::metadata(path) {
        Ok(metadata) => match metadata.modified() {
            Ok(modified) => FileStamp::At { modified: timestamp(modified), is_empty: metadata.len() == 0 },
            Err(error) => FileStamp::Unreadable(error.to_string()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => FileStamp::Absent,
        Err(error) => FileStamp::Unreadable(error.to_string()),
    }
}

/// Sets the time of a file; fine if it is not there.
pub fn set_stamp(path: &Path, at: Timestamp) -> io::Result<()> {
    let at = match u64::try_from(at.millis()) {
        Ok(millis) => SystemTime::UNIX_EPOCH + Duration::from_millis(millis),
        Err(_) => SystemTime::UNIX_EPOCH,
    };
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    match OpenOptions::new().write(true).custom_flags(flags).open(path) {
        Ok(file) => file.set_modified(at),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// A file's time; one before 1970 counts as 1970.
fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Renames what can't be used to a free name beside it, `<name>.damaged.<n>`, so that nothing is overwritten.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    fault::write(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let aside = (1..=MAX_ASIDE)
        .map(|number| path.with_file_name(format!("{name}.damaged.{number}")))
        .find(|aside| fs::symlink_metadata(aside).is_err())
        .ok_or_else(|| io::Error::other(format!("{MAX_ASIDE} damaged files of that name were set aside already")))?;
    fs::rename(path, &aside)?;
    Ok(aside)
}

/// Makes a symbolic link, replacing one that points elsewhere; whatever else stands there is left alone.
pub fn link(to: &Path, at: &Path) -> io::Result<()> {
    match fs::symlink_metadata(at) {
        Ok(found) if !found.is_symlink() => return Err(io::ErrorKind::AlreadyExists.into()),
        Ok(_) if fs::read_link(at).is_ok_and(|old| old == to) => return Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let name = at.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let temporary = at.with_file_name(format!("{name}.tmp.{}", std::process::id()));
    remove(&temporary)?;
    std::os::unix::fs::symlink(to, &temporary)?;
    // Whoever follows the link sees one or the other.
    fs::rename(&temporary, at)
}

/// Copies a file beside itself under a free name, `<name>.<suffix>` or with a number behind it, and returns that name.
/// Mode and content are those of the file.
pub fn back_up(path: &Path, suffix: &str) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let numbered = (2..=MAX_ASIDE).map(|number| format!("{name}.{suffix}.{number}"));
    let backup = std::iter::once(format!("{name}.{suffix}"))
        .chain(numbered)
        .map(|name| path.with_file_name(name))
        .find(|backup| fs::symlink_metadata(backup).is_err())
        .ok_or_else(|| io::Error::other(format!("{MAX_ASIDE} such files stand there already")))?;
    fs::copy(path, &backup)?;
    File::open(&backup)?.sync_all()?;
    Ok(backup)
}

/// Replaces the content of a file that is there, atomically and durably, and keeps its mode. Where it is a link, the file
/// that it leads to is replaced and the link stays.
pub fn rewrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let permissions = fs::metadata(&path)?.permissions();
    write_atomic(&path, bytes, Durability::Durable)?;
    fs::set_permissions(&path, permissions)
}

/// Deletes a file; fine if it is not there.
pub fn remove(path: &Path) -> io::Result<()> {
    fault::write(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Names of the entries of a directory, sorted; empty if it does not exist.
pub fn list_names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Checks that a directory can be looked into; fine if it does not exist.
///
/// Errors: it, or what leads to it, is no directory or may not be read.
pub fn check_dir(dir: &Path) -> io::Result<()> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The state directory and its well-known places (`protocol-facts` §1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// The state directory at this path; nothing is created.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file or folder in it, by relative path.
    pub fn at(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.0.join(relative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_and_a_missing_file_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.ts");
        assert_eq!(stamp(&path), FileStamp::Absent);
        set_stamp(&path, Timestamp::from_secs(5)).unwrap();
        assert_eq!(stamp(&path), FileStamp::Absent);
        fs::write(&path, "").unwrap();
        for at in [Timestamp::from_millis(1_759_000_000_250), Timestamp::from_secs(0)] {
            set_stamp(&path, at).unwrap();
            assert_eq!(stamp(&path), FileStamp::At { modified: at, is_empty: true });
        }
    }

    #[test]
    fn an_append_after_a_cut_line_stays_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "half").unwrap();
        append_lines(&path, "whole\n", Durability::Hint).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "half\nwhole\n");
    }

    #[test]
    fn what_stands_in_the_place_of_a_log_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit/log");
        append_log(&path, "first\n", Durability::Hint).unwrap();
        append_log(&path, "second\n", Durability::Hint).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\nsecond\n");
        let check = |put: &dyn Fn(&Path), wrong: &str| {
            fs::remove_dir_all(dir.path()).unwrap();
            fs::create_dir_all(dir.path().join("audit")).unwrap();
            put(&dir.path().join(wrong));
            append_log(&path, "line\n", Durability::Durable).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "line\n", "{wrong}");
            assert!(fs::symlink_metadata(dir.path().join(format!("{wrong}.damaged.1"))).is_ok(), "{wrong}");
        };
        check(&|path| fs::create_dir(path).unwrap(), "audit/log");
        check(&|path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap(), "audit/log");
        let mode = rustix::fs::Mode::RUSR;
        check(&|path| rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap(), "audit/log");
        check(&|path| fs::remove_dir(path).and_then(|()| fs::write(path, "a file")).unwrap(), "audit");
    }

    #[test]
    fn a_write_creates_its_directory_and_is_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/file");
        write_atomic(&path, b"text", Durability::Durable).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(dir.path().join("a/b")).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(list_names(&dir.path().join("a/b")).unwrap(), ["file"]);
    }

    #[test]
    fn a_failed_write_keeps_the_original_and_leaves_no_litter() {
        let dir = tempfile::tempdir().unwrap();
        // A directory stands where the file should go, so the rename fails.
        let path = dir.path().join("taken");
        fs::create_dir(&path).unwrap();
        assert!(write_atomic(&path, b"text", Durability::Hint).is_err());
        assert_eq!(list_names(dir.path()).unwrap(), ["taken"]);
    }

    #[test]
    fn a_tail_is_whole_lines_past_what_is_spoiled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!(read_tail(&path, 10).unwrap(), None);
        fs::write(&path, b"first\nsec\xffond\nthird\n").unwrap();
        assert_eq!(read_tail(&path, 100).unwrap().unwrap(), "first\nsec\u{fffd}ond\nthird\n");
        assert_eq!(read_tail(&path, 10).unwrap().unwrap(), "third\n");
    }

    #[test]
    fn a_directory_that_is_not_there_is_fine_and_one_that_is_a_file_is_not() {
        let dir = tempfile::tempdir().unwrap();
        assert!(check_dir(dir.path()).is_ok() && check_dir(&dir.path().join("missing")).is_ok());
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(check_dir(&dir.path().join("file")).is_err() && check_dir(&dir.path().join("file/below")).is_err());
    }

    #[test]
    fn nothing_but_a_regular_file_is_read_or_appended_to_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        let zero = dir.path().join("zero");
        std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
        for path in [&pipe, &zero, &dir.path().to_path_buf()] {
            assert!(read_text(path, 1 << 20).is_err(), "{}", path.display());
            assert!(read_tail(path, 1 << 20).is_err(), "{}", path.display());
            assert!(append_lines(path, "x\n", Durability::Hint).is_err(), "{}", path.display());
        }
        let kept = dir.path().join("kept");
        fs::write(&kept, "kept\n").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        assert!(append_lines(&link, "x\n", Durability::Hint).is_err());
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept\n");
    }

    #[test]
    fn a_file_that_is_too_long_or_not_text_is_an_error_and_a_missing_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        assert_eq!(read_text(&path, 10).unwrap(), None);
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(read_text(&path, 10).is_err());
        fs::write(&path, "12345678901").unwrap();
        assert!(read_text(&path, 10).is_err());
    }
}
