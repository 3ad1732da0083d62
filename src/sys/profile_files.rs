//! Reads the operator's profile files. What they mean is the business of `agents`.
//!
//! Shape: every `*.yml` and `*.yaml` of one directory, by name; hidden files and those of editors are passed over.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::files;

/// Largest file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Most files.
const MAX_FILES: usize = 100;

/// The profile files of a directory, each with its text or why it can't be read. A directory that is not there holds
/// none; one that can't be read stands for itself.
pub fn read(dir: &Path) -> Vec<(PathBuf, Result<String, String>)> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![(dir.to_owned(), Err(error.to_string()))],
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| is_profile(path)).collect();
    paths.sort();
    let more = paths.len() > MAX_FILES;
    paths.truncate(MAX_FILES);
    let mut found: Vec<_> = paths
        .into_iter()
        .map(|path| {
            let text = read_file(&path);
            (path, text)
        })
        .collect();
    if more {
        found.push((dir.to_owned(), Err(format!("more than {MAX_FILES} files; the rest is not read"))));
    }
    found
}

/// Reads one file, wherever it is.
pub fn read_file(path: &Path) -> Result<String, String> {
    match files::read_text(path, MAX_FILE_BYTES) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err("there is no such file".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether the name is one of a profile file.
fn is_profile(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_yaml = path.extension().is_some_and(|end| end == "yml" || end == "yaml");
    is_yaml && !name.starts_with(['.', '#'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_by_name_and_what_is_not_one_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["20.yml", "10.yaml", ".hidden.yml", "#x.yml", "note.txt", "x.yml~"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        std::fs::create_dir(dir.path().join("30.yml")).unwrap();
        let found = read(dir.path());
        let names: Vec<&str> = found.iter().map(|(path, _)| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["10.yaml", "20.yml", "30.yml"]);
        assert_eq!(found[0].1.as_deref(), Ok("10.yaml"));
        assert!(found[2].1.as_ref().is_err_and(|why| why.contains("regular file")), "{found:?}");
        assert!(read(&dir.path().join("nothing")).is_empty());
        assert!(read(&dir.path().join("20.yml"))[0].1.is_err());
    }
}
