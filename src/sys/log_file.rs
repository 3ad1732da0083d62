//! A log in files of a bounded size: a file a day, another when one is full, the oldest go. A link of a fixed name points at
//! the newest, so that `tail -F` follows.
//!
//! Writing never fails for whoever logs: a line that can't be written goes to standard error, as far as that is bounded
//! too, and the file is tried again a little later. Whether it works is told by [`Health`]. A file that somebody cut or
//! removed is taken as it is found.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::logic::time::Now;
use crate::sys::files;

/// How long after a failure the file is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Most bytes that go to standard error while the file can't be written; it may end in a file of its own.
const MAX_ASTRAY: usize = 256 << 10;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of one file, in bytes.
    pub max_bytes: u64,
    /// How many files.
    pub max_files: usize,
}

/// Whether the log works.
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<Option<String>>>);

impl Health {
    /// Why the last line could not be written; `None` if it was.
    pub fn trouble(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, trouble: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// The log of one program: `<dir>/<stem>.<day>.log`, then `<stem>.<day>.<n>.log`, and the link `<stem>.log`.
pub struct LogFile {
    dir: PathBuf,
    stem: &'static str,
    limits: Limits,
    clock: Box<dyn Fn() -> Now + Send>,
    open: Option<Open>,
    health: Health,
    /// No earlier than this, by the monotonic clock, the file is tried again.
    retry_at: Duration,
    /// Bytes that went to standard error since the file was written last.
    astray: usize,
}

/// The file that is written.
struct Open {
    file: File,
    day: String,
}

impl std::fmt::Debug for LogFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogFile").field("dir", &self.dir).field("stem", &self.stem).finish_non_exhaustive()
    }
}

impl LogFile {
    /// A log in this folder, which is made if need be. Opens the file, so that [`Health`] tells at once whether it works.
    pub fn new(dir: &Path, stem: &'static str, limits: Limits, clock: impl Fn() -> Now + Send + 'static) -> Self {
        let mut log = Self {
            dir: dir.to_owned(),
            stem,
            limits,
            clock: Box::new(clock),
            open: None,
            health: Health::default(),
            retry_at: Duration::ZERO,
            astray: 0,
        };
        let now = (log.clock)();
        if let Err(error) = log.ready(&now, 0) {
            log.failed(&now, &error);
        }
        log
    }

    /// Tells whether it works.
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Writes one whole line.
    fn line(&mut self, line: &[u8]) {
        let now = (self.clock)();
        if self.open.is_some() || now.uptime >= self.retry_at {
            match self.try_line(&now, line) {
                Ok(()) => {
                    self.astray = 0;
                    self.health.set(None);
                    return;
                }
                Err(error) => self.failed(&now, &error),
            }
        }
        if self.astray + line.len() <= MAX_ASTRAY {
            self.astray += line.len();
            // There is nowhere left to say that this fails too.
            let _lost = io::stderr().lock().write_all(line);
        }
    }

    fn try_line(&mut self, now: &Now, line: &[u8]) -> io::Result<()> {
        let open = self.ready(now, line.len() as u64)?;
        let length = open.file.metadata()?.len();
        if let Err(error) = open.file.write_all(line) {
            // Half a line would spoil the next one, and a full disk is no place for it.
            let _kept_as_is = open.file.set_len(length);
            return Err(error);
        }
        Ok(())
    }

    fn failed(&mut self, now: &Now, error: &io::Error) {
        self.open = None;
        self.retry_at = now.uptime + RETRY_AFTER;
        self.health.set(Some(format!("the log in {} can't be written: {error}", self.dir.display())));
    }

    /// The file for the next line: today's, with room for it, and still in its place.
    fn ready(&mut self, now: &Now, room: u64) -> io::Result<&mut Open> {
        let day = now.iso().chars().take(10).collect::<String>();
        let fits = |open: &Open| {
            let about = open.file.metadata()?;
            let has_room = about.len() == 0 || about.len().saturating_add(room) <= self.limits.max_bytes;
            io::Result::Ok(open.day == day && about.nlink() > 0 && has_room)
        };
        let is_usable = match &self.open {
            Some(open) => fits(open)?,
            None => false,
        };
        if !is_usable {
            // Closed before another is opened, and gone if that fails.
            self.open = None;
            let file = self.open_newest(&day, room)?;
            return Ok(self.open.insert(Open { file, day }));
        }
        self.open.as_mut().ok_or_else(|| io::Error::other("no file is open"))
    }

    /// Opens the newest file of a day, or the next one if that is full; points the link at it, and removes what is too much.
    fn open_newest(&self, day: &str, room: u64) -> io::Result<File> {
        files::create_private_dir(&self.dir)?;
        let mut all = self.files()?;
        let newest = all.iter().filter(|(of, _, _)| of == day).map(|(_, number, _)| *number).max();
        let mut number = newest.unwrap_or(0);
        let mut file = self.open_file(day, number)?;
        let length = file.metadata()?.len();
        if length > 0 && length.saturating_add(room) > self.limits.max_bytes {
            number += 1;
            file = self.open_file(day, number)?;
        }
        let name = self.name(day, number);
        // The link is for readers: without it the log is still written.
        let _no_link = files::link(Path::new(&name), &self.dir.join(format!("{}.log", self.stem)));
        if all.iter().all(|(_, _, other)| *other != name) {
            all.push((day.to_owned(), number, name.clone()));
        }
        all.sort();
        let too_many = all.len().saturating_sub(self.limits.max_files.max(1));
        for (_, _, old) in all.iter().take(too_many).filter(|(_, _, old)| *old != name) {
            // One that can't be removed is tried again with the next file.
            let _stays = fs::remove_file(self.dir.join(old));
        }
        Ok(file)
    }

    fn open_file(&self, day: &str, number: u32) -> io::Result<File> {
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
        let path = self.dir.join(self.name(day, number));
        let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
    }

    fn name(&self, day: &str, number: u32) -> String {
        match number {
            0 => format!("{}.{day}.log", self.stem),
            number => format!("{}.{day}.{number}.log", self.stem),
        }
    }

    /// Every file of this log: its day, its number, its name.
    fn files(&self) -> io::Result<Vec<(String, u32, String)>> {
        let of = |name: String| {
            let middle = name.strip_prefix(self.stem)?.strip_prefix('.')?.strip_suffix(".log")?;
            let (day, number) = match middle.split_once('.') {
                Some((day, number)) => (day, number.parse().ok()?),
                None => (middle, 0),
            };
            let is_day = day.len() == 10 && day.bytes().all(|b| b.is_ascii_digit() || b == b'-');
            is_day.then(|| (day.to_owned(), number, name.clone()))
        };
        Ok(files::list_names(&self.dir)?.into_iter().filter_map(of).collect())
    }
}

impl Write for LogFile {
    /// Takes whole lines; always succeeds.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::logic::time::Timestamp;

    /// A log whose clock is set by hand, in seconds.
    fn log(dir: &Path, max_bytes: u64, max_files: usize) -> (LogFile, Arc<AtomicU64>) {
        let time = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&time);
        let now = move || Now::fixed(Timestamp::from_secs(i64::try_from(clock.load(Ordering::Relaxed)).unwrap()));
        (LogFile::new(dir, "watcher", Limits { max_bytes, max_files }, now), time)
    }

    fn logs(dir: &Path) -> Vec<String> {
        files::list_names(dir).unwrap().into_iter().filter(|name| name != "watcher.log").collect()
    }

    /// Writes a line as the log's thread does: in one piece.
    fn say(log: &mut LogFile, text: &str) {
        log.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    fn newest(dir: &Path) -> String {
        fs::read_to_string(dir.join("watcher.log")).unwrap()
    }

    #[test]
    fn a_storm_of_lines_fills_no_more_than_its_share() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = log(dir.path(), 1000, 4);
        for number in 0..10_000 {
            say(&mut log, &format!("line {number:06} of a storm"));
        }
        let sizes: Vec<u64> =
            logs(dir.path()).iter().map(|n| fs::metadata(dir.path().join(n)).unwrap().len()).collect();
        assert_eq!(sizes.len(), 4);
        assert!(sizes.iter().all(|size| *size <= 1000), "{sizes:?}");
        assert!(sizes.iter().sum::<u64>() > 3000, "{sizes:?}");
        assert!(newest(dir.path()).ends_with("line 009999 of a storm\n"));
        assert_eq!(log.health().trouble(), None);
    }

    #[test]
    fn each_day_has_a_file_and_the_oldest_go() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, time) = log(dir.path(), 1000, 3);
        fs::write(dir.path().join("watcher.notes.log"), "another's").unwrap();
        for day in 0..5 {
            time.store(day * 86_400, Ordering::Relaxed);
            say(&mut log, &format!("day {day}"));
        }
        let names = ["watcher.1970-01-03.log", "watcher.1970-01-04.log", "watcher.1970-01-05.log", "watcher.notes.log"];
        assert_eq!(logs(dir.path()), names);
        assert_eq!(newest(dir.path()), "day 4\n");
    }

    #[test]
    fn a_restart_goes_on_where_the_last_one_ended() {
        let dir = tempfile::tempdir().unwrap();
        for run in 0..4 {
            let (mut log, _) = log(dir.path(), 20, 9);
            say(&mut log, &format!("run {run} x"));
        }
        assert_eq!(logs(dir.path()), ["watcher.1970-01-01.1.log", "watcher.1970-01-01.log"]);
        assert_eq!(newest(dir.path()), "run 2 x\nrun 3 x\n");
        // Ten is newer than nine.
        fs::write(dir.path().join("watcher.1970-01-01.10.log"), "").unwrap();
        let (mut log, _) = log(dir.path(), 20, 9);
        say(&mut log, "in the tenth");
        assert_eq!(newest(dir.path()), "in the tenth\n");
    }

    #[test]
    fn a_file_that_somebody_cut_or_removed_is_taken_as_found() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _) = log(dir.path(), 1000, 3);
        say(&mut log, "first");
        // As a rotation that copies and truncates.
        File::options().write(true).open(dir.path().join("watcher.log")).unwrap().set_len(0).unwrap();
        say(&mut log, "second");
        assert_eq!(newest(dir.path()), "second\n");
        fs::remove_file(dir.path().join("watcher.1970-01-01.log")).unwrap();
        say(&mut log, "third");
        assert_eq!(newest(dir.path()), "third\n");
        fs::remove_dir_all(dir.path()).unwrap();
        say(&mut log, "fourth");
        assert_eq!(newest(dir.path()), "fourth\n");
    }

    #[test]
    fn a_log_that_cannot_be_written_says_so_and_recovers_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("logs");
        fs::write(&folder, "no folder").unwrap();
        let (mut log, time) = log(&folder, 1000, 3);
        assert!(log.health().trouble().is_some_and(|why| why.contains("logs can't be written")));
        fs::remove_file(&folder).unwrap();
        say(&mut log, "too early");
        assert!(log.health().trouble().is_some(), "it is not tried with every line");
        time.store(5, Ordering::Relaxed);
        say(&mut log, "again");
        assert_eq!(log.health().trouble(), None);
        assert_eq!(newest(&folder), "again\n");
    }

    #[test]
    fn nothing_but_a_regular_file_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("kept");
        fs::write(&kept, "kept").unwrap();
        std::os::unix::fs::symlink(&kept, dir.path().join("watcher.1970-01-01.log")).unwrap();
        let (mut log, _) = log(dir.path(), 1000, 3);
        say(&mut log, "astray");
        assert!(log.health().trouble().is_some());
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
    }
}
