//! The saved screens of `tests/captures/`, as bytes.

use std::fs;
use std::path::PathBuf;

use super::repository;

/// One saved screen.
#[derive(Clone, Debug)]
pub struct Screen {
    /// Folder and name.
    pub path: PathBuf,
    /// Columns and rows.
    pub size: (u16, u16),
    /// The pane's title.
    pub title: String,
    /// What `capture-pane -p -e` gave.
    pub ansi: Vec<u8>,
    /// What `capture-pane -p` gave.
    pub plain: Vec<u8>,
}

/// Every saved screen, in the order of its path.
pub fn all() -> Vec<Screen> {
    let folders = fs::read_dir(repository().join("tests/captures")).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "ansi"));
    paths.sort();
    let screens: Vec<Screen> = paths.into_iter().map(read).collect();
    assert!(screens.len() > 600, "only {} screens found", screens.len());
    screens
}

fn read(path: PathBuf) -> Screen {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let (columns, rows) = name.rsplit_once("--").unwrap().1.split_once('x').unwrap();
    let size = (columns.parse().unwrap(), rows.parse().unwrap());
    let (ansi, plain) = (fs::read(&path).unwrap(), fs::read(path.with_extension("txt")).unwrap());
    let label: serde_json::Value = serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
    let title = label["tmux"]["pane_title"].as_str().expect("the label has the title").to_owned();
    Screen { path, size, title, ansi, plain }
}
