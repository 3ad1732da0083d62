//! A settings file that belongs to somebody else: read whole, kept aside, replaced in one step.
//!
//! Mode and owner stay, a link stays a link and what it leads to is replaced. Refused is what can't be replaced without
//! harm: a read-only file, a file with a second name, a link to nowhere, anything but a file, a file that changed
//! between the reading and the writing.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::files;

/// Largest settings file, in bytes.
const MAX_BYTES: u64 = 4 << 20;
/// End of the name of the copy from before the first change.
const ASIDE: &str = ".before-nexus";

/// A settings file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFile {
    /// Where it lies, links resolved.
    path: PathBuf,
    /// What it held; `None` if there is none.
    text: Option<String>,
}

impl SettingsFile {
    /// Reads the file at a path.
    ///
    /// Errors: a link to nowhere, no regular file, more than 4 MB, not UTF-8, or not readable.
    pub fn read(path: &Path) -> io::Result<Self> {
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Ok(target) = fs::read_link(path) {
                    return Err(invalid(&format!("it is a link to {}, which is not there", target.display())));
                }
                return Ok(Self { path: std::path::absolute(path)?, text: None });
            }
            Err(error) => return Err(error),
        };
        let text = files::read_text(&real, MAX_BYTES)?;
        Ok(Self { path: real, text })
    }

    /// Where it lies, links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it held; `None` if there is none.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Where the copy from before the first change lies.
    pub fn aside(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(ASIDE);
        PathBuf::from(name)
    }

    /// Keeps what was read as the copy from before the first change, with the file's mode.
    ///
    /// Errors: also where the file itself may not be replaced; then no copy is made.
    pub fn set_aside(&self) -> io::Result<()> {
        self.check()?;
        match &self.text {
            Some(text) => self.write(&self.aside(), text),
            None => files::remove(&self.aside()),
        }
    }

    /// What the copy from before the first change holds; `None` if there is none.
    pub fn read_aside(&self) -> io::Result<Option<String>> {
        files::read_text(&self.aside(), MAX_BYTES)
    }

    /// Replaces the file.
    pub fn replace(&self, text: &str) -> io::Result<()> {
        self.check()?;
        self.write(&self.path, text)
    }

    /// Removes the file.
    pub fn remove(&self) -> io::Result<()> {
        self.check()?;
        files::remove(&self.path)
    }

    /// Checks that the file is as it was read and may be replaced.
    fn check(&self) -> io::Result<()> {
        let refused = |what: &str| Err(io::Error::other(what.to_owned()));
        if Self::read(&self.path)? != *self {
            return refused("it changed while it was being edited; nothing was written, run the command again");
        }
        let Ok(data) = fs::metadata(&self.path) else { return Ok(()) };
        if data.mode() & 0o200 == 0 {
            return refused("it is read-only; nothing was written. If it is yours to change: chmod u+w");
        }
        if data.nlink() > 1 {
            return refused("it has a second name (a hard link), which would keep the old text; nothing was written");
        }
        Ok(())
    }

    /// Writes a file beside the settings, or the settings themselves, in one step.
    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let dir = path.parent().unwrap_or(Path::new("/"));
        files::create_private_dir(dir)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = dir.join(format!(".{name}.{}.tmp", std::process::id()));
        let model = fs::metadata(&self.path).ok();
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            if let Some(model) = &model {
                let owner = file.metadata()?;
                if (owner.uid(), owner.gid()) != (model.uid(), model.gid()) {
                    std::os::unix::fs::fchown(&file, Some(model.uid()), Some(model.gid()))?;
                }
                file.set_permissions(Permissions::from_mode(model.mode() & 0o7777))?;
            }
            file.sync_all()?;
            fs::rename(&temporary, path)?;
            File::open(dir)?.sync_all()
        })();
        if written.is_err() {
            let _litter = fs::remove_file(&temporary);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn dir() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("settings.json");
        (dir, path)
    }

    #[test]
    fn a_replacement_keeps_the_mode_and_the_link() {
        let (dir, path) = dir();
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let link = dir.path().join("link.json");
        symlink("settings.json", &link).unwrap();
        let file = SettingsFile::read(&link).unwrap();
        file.set_aside().unwrap();
        file.replace("{\"a\":1}").unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&link).unwrap(), "{\"a\":1}");
        assert_eq!(fs::read_to_string(file.aside()).unwrap(), "{}");
        for kept in [&path, &file.aside()] {
            assert_eq!(fs::metadata(kept).unwrap().mode() & 0o7777, 0o640);
        }
        let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["link.json", "settings.json", "settings.json.before-nexus"]);
    }

    #[test]
    fn a_file_that_is_not_there_is_made_with_its_directory_and_is_private() {
        let (dir, _) = dir();
        let path = dir.path().join("new/dir/settings.json");
        let file = SettingsFile::read(&path).unwrap();
        assert_eq!(file.text(), None);
        file.replace("{}").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let file = SettingsFile::read(&path).unwrap();
        file.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_cannot_be_replaced_without_harm_is_refused() {
        let (dir, path) = dir();
        let refused = |change: &dyn Fn()| {
            let _gone = fs::remove_file(&path);
            fs::write(&path, "{}").unwrap();
            let file = SettingsFile::read(&path).unwrap();
            change();
            file.replace("{\"new\":1}").map_err(|error| error.to_string()).unwrap_err()
        };
        let set = |mode: u32| fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        assert!(refused(&|| fs::write(&path, "{\"other\":1}").unwrap()).contains("changed while"));
        assert!(refused(&|| fs::remove_file(&path).unwrap()).contains("changed while"));
        assert!(refused(&|| set(0o444)).contains("read-only"));
        assert!(refused(&|| fs::hard_link(&path, dir.path().join("twin")).unwrap()).contains("second name"));
        assert_eq!(fs::read_to_string(dir.path().join("twin")).unwrap(), "{}");
        let dangling = dir.path().join("dangling");
        symlink("nowhere/x", &dangling).unwrap();
        assert!(SettingsFile::read(&dangling).unwrap_err().to_string().contains("nowhere/x"));
        assert!(SettingsFile::read(dir.path()).is_err());
        fs::write(&path, [0xff]).unwrap();
        assert!(SettingsFile::read(&path).is_err());
    }
}
