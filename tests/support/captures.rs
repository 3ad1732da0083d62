//! Reads the saved screens of `tests/captures/`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nexus_watcher::logic::pane::Label;
use nexus_watcher::logic::screen::Capture;

/// A saved screen.
pub(crate) struct Screen {
    /// `<agent>-<version>/<what>--<columns>x<rows>`.
    pub(crate) name: String,
    /// What was done to the pane.
    pub(crate) label: Label,
    /// The bytes of the capture.
    pub(crate) ansi: Vec<u8>,
    /// The same, read.
    pub(crate) capture: Capture,
}

/// The project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Every saved screen, by name.
pub(crate) fn screens() -> Vec<Screen> {
    let mut found = Vec::new();
    for folder in sorted(&root().join("tests/captures")).iter().filter(|path| path.is_dir()) {
        for file in sorted(folder).iter().filter(|path| path.extension().is_some_and(|ext| ext == "json")) {
            let label = serde_json::from_slice(&fs::read(file).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let ansi = fs::read(file.with_extension("ansi"))
                .unwrap_or_else(|error| panic!("the screen of {}: {error}", file.display()));
            let capture = Capture::from_bytes(&ansi);
            let folder = folder.file_name().unwrap().to_str().unwrap();
            let name = format!("{folder}/{}", file.file_stem().unwrap().to_str().unwrap());
            found.push(Screen { name, label, ansi, capture });
        }
    }
    assert!(found.len() > 600, "only {} captures found", found.len());
    found
}

/// Heading of the list of captures that only the facts of tmux make readable.
const TEXT_GAPS: &str = "## Gaps of the text alone";

/// Captures that `docs/accuracy.md` lists, since their label says what the screen does not show; with `text_alone` also
/// those where tmux shows it.
pub(crate) fn known_gaps(text_alone: bool) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/accuracy.md")).unwrap();
    let (always, of_text) = text.split_once(TEXT_GAPS).unwrap();
    let lines = always.lines().chain(of_text.lines().take_while(|_| text_alone));
    lines
        .filter_map(|line| line.strip_prefix("- `")?.split_once('`').map(|(name, _)| name.to_owned()))
        .filter(|name| name.contains("--"))
        .collect()
}

/// What a folder holds, by name.
fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}
