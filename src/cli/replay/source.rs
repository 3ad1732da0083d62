//! The screens that a folder holds: recordings, bundles of a report, and captures with their labels. What can't be read is
//! named and left out.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::logic::archive::Frame;
use crate::logic::archive::wire::{Damage, Frames, is_recording};
use crate::logic::pane::Label;
use crate::logic::screen::Capture;
use crate::sys::{files, recordings};

/// How deep below the folder is looked.
const MAX_DEPTH: usize = 3;

/// One screen.
pub(super) enum Item {
    /// As it was recorded.
    Recorded { place: String, frame: Box<Frame> },
    /// As it was saved, with what was done to it.
    Labelled { place: String, label: Box<Label>, capture: Capture },
}

/// The screens of a folder, by name of file and then in the order of recording.
pub(super) struct Screens {
    root: PathBuf,
    files: VecDeque<PathBuf>,
    ready: VecDeque<Item>,
    /// What was left out, for people.
    pub(super) damaged: Vec<String>,
}

impl Screens {
    /// Finds the files.
    ///
    /// Errors: there is no such folder, or it holds none.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        let about = fs::metadata(path).with_context(|| format!("looking for {}", path.display()))?;
        if about.is_dir() {
            walk(path, MAX_DEPTH, &mut files).with_context(|| format!("listing {}", path.display()))?;
        } else {
            files.push(path.to_owned());
        }
        if files.is_empty() {
            bail!(
                "{} holds no recorded screens (*.jsonl.gz), no bundles and no captures (.ansi with .json)",
                path.display()
            );
        }
        let root = if about.is_dir() { path } else { path.parent().unwrap_or(path) };
        Ok(Self { root: root.to_owned(), files: files.into(), ready: VecDeque::new(), damaged: Vec::new() })
    }

    /// Reads the next file.
    fn read(&mut self, path: &Path) {
        let place = path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
        let name = path.to_string_lossy();
        let read = if name.ends_with(".json") || name.ends_with(".ansi") {
            self.read_json(path, &place)
        } else {
            self.read_frames(path, &place)
        };
        if let Err(error) = read {
            self.damaged.push(format!("{place}: {error:#}"));
        }
    }

    /// Reads a recording.
    fn read_frames(&mut self, path: &Path, place: &str) -> anyhow::Result<()> {
        let bytes = recordings::read(path)?;
        if !bytes.is_empty() && !is_recording(&bytes) && Frames::of(&bytes).all(|found| found.is_err()) {
            bail!("no recording");
        }
        for found in Frames::of(&bytes) {
            match found {
                Ok(frame) => self.ready.push_back(Item::Recorded { place: place.to_owned(), frame }),
                Err(Damage { at, what }) => self.damaged.push(format!("{place}: byte {at}: {what}")),
            }
        }
        Ok(())
    }

    /// Reads a label with its capture, or a bundle.
    fn read_json(&mut self, path: &Path, place: &str) -> anyhow::Result<()> {
        let path = path.with_extension("json");
        let text = files::read_text(&path, files::MAX_STATE_BYTES)?;
        let text = text.with_context(|| format!("its label {} is missing", path.display()))?;
        let ansi = path.with_extension("ansi");
        if !ansi.exists() {
            let value: serde_json::Value = serde_json::from_str(&text)?;
            let Some(frame) = value.get("frame") else { bail!("neither a bundle nor a label with its .ansi") };
            let frame = Box::new(serde_json::from_value(frame.clone())?);
            self.ready.push_back(Item::Recorded { place: place.to_owned(), frame });
            return Ok(());
        }
        let label = Box::new(serde_json::from_str(&text).context("its label")?);
        let capture = Capture::from_bytes(&recordings::read(&ansi)?);
        let place = place.rsplit_once('.').map_or(place, |(stem, _)| stem).to_owned();
        self.ready.push_back(Item::Labelled { place, label, capture });
        Ok(())
    }
}

impl Iterator for Screens {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            let path = self.files.pop_front()?;
            self.read(&path);
        }
    }
}

/// The files below a folder that may hold screens. Links are not followed.
fn walk(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(dir)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = entry.file_name().to_string_lossy().into_owned();
        // A folder may hold other JSON; what is no label has no screen beside it, and what is no bundle says so.
        let is_json = path.extension().is_some_and(|ending| ending == "json")
            && (path.with_extension("ansi").exists() || is_bundle(&path));
        if kind.is_dir() && depth > 0 {
            walk(&path, depth - 1, found)?;
        } else if kind.is_file() && (name.ends_with(recordings::ENDING) || is_json) {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether a file is a bundle of `ng pane-state --report`.
fn is_bundle(path: &Path) -> bool {
    let text = files::read_text(path, files::MAX_STATE_BYTES).ok().flatten();
    text.is_some_and(|text| text.contains("\"nexus-watcher-screen\""))
}
