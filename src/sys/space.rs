//! Whether a directory can be written right now, found out without leaving anything behind: a file without a name is
//! written and forgotten. Full disks, quotas, limits, read-only mounts and permissions all show that way.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{Access, OFlags, StatVfsMountFlags, access, statvfs};

/// As much as the files that matter need.
const TRIAL_BYTES: usize = 4096;

/// Checks that this account can write a file in a directory.
///
/// Errors: it can't, and why; `NotFound` if there is no such directory.
pub fn check_writable(dir: &Path) -> io::Result<()> {
    let unnamed = i32::try_from(OFlags::TMPFILE.bits()).unwrap_or(0);
    match OpenOptions::new().write(true).mode(0o600).custom_flags(unnamed).open(dir) {
        Ok(mut file) => file.write_all(&[0; TRIAL_BYTES]),
        // File systems without such files say it in one of two ways.
        Err(error)
            if error.kind() == io::ErrorKind::Unsupported
                || error.raw_os_error() == Some(rustix::io::Errno::ISDIR.raw_os_error()) =>
        {
            check_by_asking(dir)
        }
        Err(error) => Err(error),
    }
}

/// The same by asking only: a limit or a quota does not show.
fn check_by_asking(dir: &Path) -> io::Result<()> {
    access(dir, Access::WRITE_OK | Access::EXEC_OK)?;
    let about = statvfs(dir)?;
    if about.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(rustix::io::Errno::ROFS.into());
    }
    // File systems that do not count have zero in both.
    if about.f_blocks > 0 && about.f_bavail == 0 {
        return Err(rustix::io::Errno::NOSPC.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        check_writable(dir.path()).unwrap();
        check_by_asking(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_takes_no_byte_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        for trial in [check_writable, check_by_asking] {
            assert_eq!(trial(&dir.path().join("missing")).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(check_writable(&file).is_err(), "no directory");
    }
}
