//! Kept screens on disk.
//!
//! Shape: a directory (0700) of files `screens-<epoch>-<pid>-<number>.jsonl.gz` (0600). Each screen is one line of JSON in
//! a gzip member of its own, so that `zcat` prints the whole and a file that was cut off loses its last screen only. A
//! full directory loses its oldest file.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use rustix::fs::OFlags;

use super::files;

/// What files of screens are called.
const SUFFIX: &str = ".jsonl.gz";
/// A full directory loses about so much of itself at a time.
const FILES: u64 = 8;
/// Largest line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 4 << 20;

/// A recording that is being made.
#[derive(Debug)]
pub struct Recording {
    dir: PathBuf,
    /// Most bytes of the directory.
    max_bytes: u64,
    /// Beginning of this recording's names.
    stem: String,
    number: u32,
    /// Bytes of the current file.
    bytes: u64,
}

impl Recording {
    /// Starts one. The directory is created if it is missing.
    ///
    /// Errors: the directory can't be made, or is no directory of ours.
    pub fn start(dir: &Path, epoch: i64, max_bytes: u64) -> io::Result<Self> {
        files::create_private_dir(dir)?;
        if fs::symlink_metadata(dir)?.file_type().is_symlink() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link"));
        }
        let stem = format!("screens-{epoch:010}-{}", std::process::id());
        Ok(Self { dir: dir.to_owned(), max_bytes, stem, number: 0, bytes: 0 })
    }

    /// Adds one line.
    ///
    /// Errors: the file can't be written; what was written before stays whole.
    pub fn add(&mut self, line: &str) -> io::Result<()> {
        let mut member = GzEncoder::new(Vec::new(), Compression::fast());
        member.write_all(line.as_bytes())?;
        member.write_all(b"\n")?;
        let member = member.finish()?;
        if self.bytes > 0 && self.bytes + member.len() as u64 > self.max_bytes / FILES {
            self.number += 1;
            self.bytes = 0;
        }
        let path = self.dir.join(format!("{}-{:04}{SUFFIX}", self.stem, self.number));
        let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(no_follow).open(&path)?;
        let before = file.metadata()?.len();
        if let Err(error) = file.write_all(&member) {
            // Half a member would hide what is added later.
            let _best_effort = file.set_len(before);
            return Err(error);
        }
        self.bytes = before + member.len() as u64;
        self.prune(&path)
    }

    /// Removes the oldest files while the directory is too large.
    fn prune(&self, current: &Path) -> io::Result<()> {
        let mut sizes: Vec<(PathBuf, u64)> = Vec::new();
        for path in list(&self.dir)? {
            let size = fs::metadata(&path).map_or(0, |data| data.len());
            sizes.push((path, size));
        }
        let mut total: u64 = sizes.iter().map(|(_, size)| size).sum();
        for (path, size) in sizes {
            if total <= self.max_bytes || path == current {
                break;
            }
            files::remove(&path)?;
            total -= size;
        }
        Ok(())
    }
}

/// The files of screens in a directory, oldest first.
///
/// Errors: the directory can't be read.
pub fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let names = files::list_names(dir)?;
    Ok(names.into_iter().filter(|name| name.ends_with(SUFFIX)).map(|name| dir.join(name)).collect())
}

/// Reads a file of screens line by line. The callback gets each line, and once why the rest can't be read.
///
/// Errors: the file can't be opened.
pub fn read(path: &Path, mut each: impl FnMut(Result<&str, String>)) -> io::Result<()> {
    let Some(file) = files::open_regular(path)? else { return Err(io::ErrorKind::NotFound.into()) };
    let mut reader = BufReader::new(MultiGzDecoder::new(BufReader::new(file)));
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) if line.ends_with(b"\n") => each(Ok(String::from_utf8_lossy(&line).trim_end())),
            Ok(_) => {
                each(Err("its last screen is cut off".to_owned()));
                return Ok(());
            }
            Err(error) => {
                each(Err(format!("the rest can't be read: {error}")));
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(dir: &Path) -> Vec<Result<String, String>> {
        let mut found = Vec::new();
        for path in list(dir).unwrap() {
            read(&path, |line| found.push(line.map(str::to_owned))).unwrap();
        }
        found
    }

    #[test]
    fn what_was_kept_is_read_again_and_a_cut_file_loses_its_end_only() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("kept");
        let mut recording = Recording::start(&dir, 100, 1 << 20).unwrap();
        for line in ["one", "two", "three"] {
            recording.add(line).unwrap();
        }
        assert_eq!(lines(&dir), ["one", "two", "three"].map(|line| Ok(line.to_owned())));
        let path = list(&dir).unwrap().remove(0);
        let length = fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length - 5).unwrap();
        let cut = lines(&dir);
        assert_eq!(cut[..2], ["one", "two"].map(|line| Ok(line.to_owned())));
        assert!(cut.last().unwrap().is_err(), "{cut:?}");
    }

    #[test]
    fn a_full_directory_loses_its_oldest_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut recording = Recording::start(dir.path(), 100, 4000).unwrap();
        for number in 0..200 {
            recording.add(&format!("{number} {}", number * 7919 % 1000)).unwrap();
        }
        let kept = lines(dir.path());
        let total: u64 = list(dir.path()).unwrap().iter().map(|path| fs::metadata(path).unwrap().len()).sum();
        assert!(total <= 4000, "{total}");
        assert!(kept.last().unwrap().as_ref().unwrap().starts_with("199 ") && kept.len() < 200, "{}", kept.len());
    }

    #[test]
    fn a_link_in_the_place_of_the_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, dir.path().join("link")).unwrap();
        assert!(Recording::start(&dir.path().join("link"), 1, 1000).is_err());
    }
}
