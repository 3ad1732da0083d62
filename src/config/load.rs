//! Finds the nexus and its one configuration file, and makes checked settings of it.
//!
//! A value comes from the environment, else from the file, else from the table. Every problem is found before any is
//! reported. The file is read through `sys::files`, the environment through [`Env`].

use std::collections::BTreeMap;
use std::fs::FileType;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use crate::sys::env::Env;
use crate::sys::files;

use super::error::{ConfigError, Place, Problem};
use super::judge::{Judged, judge};
use super::keys::{self, Fate, Key, TEMPLATE_EXCEPTIONS};
use super::loaded::Source;
pub use super::loaded::{Change, Flag, Loaded, Origin, Setting};
use super::old::Old;
use super::resolved::Settings;
use super::value::{Bases, Value};
use super::yaml::Node;

/// Largest configuration file, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Files that are looked for below the root; the first that exists is the only one read.
const FILES: &[&str] = &["config/nexus.yml", "nexus.yml", OLD_PLACE, "config/nexus.example.yml", "nexus.example.yml"];

/// Where trees of an older layout have their file.
const OLD_PLACE: &str = "monitor/nexus.yml";

/// Files that, beside a folder `monitor`, make a folder a nexus.
const MARKS: &[&str] = &["nexus.yml", "config/nexus.yml", OLD_PLACE, "nexus.example.yml"];

/// Loads the configuration of the nexus that is meant.
///
/// Errors: every problem of the file and of the environment; nothing is applied in part.
pub fn load(env: &dyn Env, root_flag: Option<&Path>, cwd: &Path) -> Result<Loaded, ConfigError> {
    let root = find_root(env, root_flag, cwd)?;
    let file = find_file(env, &root, cwd)?;
    load_file(env, &root, file.as_deref(), cwd)
}

/// Loads this file, or the defaults where there is none, for this root.
///
/// Errors: as for [`load`].
pub fn load_file(env: &dyn Env, root: &Path, file: Option<&Path>, cwd: &Path) -> Result<Loaded, ConfigError> {
    let home = variable(env, "HOME")?.map(PathBuf::from);
    let bases = Bases { root, home: home.as_deref() };
    let text = file.map(read).transpose()?;
    let mut judged = match (file, &text) {
        (Some(path), Some(text)) => judge(path, text, bases),
        _ => Judged::default(),
    };
    let mut settings = Settings::defaults(root);
    settings.state_dir = state_dir(env, root, cwd)?;
    settings.config_file = file.map(Path::to_owned);
    let mut problems = std::mem::take(&mut judged.problems);
    let mut values = Vec::with_capacity(keys::all().len());
    for &key in keys::all() {
        match chosen(env, key, &judged, bases) {
            Ok((value, origin)) => values.push(Setting { key, value, origin }),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        // A check over values that are wrong already would only repeat that.
        return Err(ConfigError { problems });
    }
    let notices = notices(root, file, &judged, bases);
    let is_in_an_older_form = judged.text.is_some() || !judged.old.is_empty();
    let text = judged.text.take().or(text);
    let warnings = std::mem::take(&mut judged.warnings);
    let routes = judged.values.into_iter().map(|(key, (_, route))| (key, route)).collect();
    let source = text.map(|text| Source { text, routes });
    let loaded = Loaded { settings, notices: Vec::new(), warnings, is_in_an_older_form, values, source }.settled()?;
    Ok(Loaded { notices, ..loaded })
}

/// The value of a key and where it came from.
fn chosen(env: &dyn Env, key: &'static Key, judged: &Judged, bases: Bases<'_>) -> Result<(Value, Origin), Problem> {
    if let Some(text) = variable(env, key.env)? {
        return match key.kind.check_variable(&text, bases) {
            Ok(value) => Ok((value, Origin::Variable(key.env))),
            Err(wrong) => Err(Problem {
                place: Place::Variable(key.env.into()),
                key: Some(key.path.into()),
                what: format!("found {}, expected {}", wrong.found, wrong.expected),
                hint: wrong.hint,
            }),
        };
    }
    match judged.values.get(key.path) {
        Some((value, _)) => Ok((value.clone(), Origin::File)),
        None => Ok((key.kind.default_value(), Origin::Default)),
    }
}

/// An environment variable; an empty one counts as unset.
///
/// Errors: it is set to something that is not text, which must not pass for unset.
fn variable(env: &dyn Env, name: &str) -> Result<Option<String>, Problem> {
    if env.is_garbled(name) {
        return Err(Problem {
            place: Place::Variable(name.into()),
            key: None,
            what: "the value is not UTF-8".into(),
            hint: Some("set it again, or unset it".into()),
        });
    }
    Ok(env.non_empty(name))
}

/// The root of the nexus that is meant: the flag, else `NEXUS_ROOT`, else the nearest folder upwards from `cwd` that
/// holds `monitor/` and a configuration.
///
/// Errors: what was given is no folder, or there is no such folder upwards.
pub fn find_root(env: &dyn Env, root_flag: Option<&Path>, cwd: &Path) -> Result<PathBuf, ConfigError> {
    let nowhere =
        |what: String, hint: &str| Problem { place: Place::Nowhere, key: None, what, hint: Some(hint.into()) };
    if let Some(given) = root_flag {
        let root = cwd.join(given);
        return if root.is_dir() {
            Ok(root)
        } else {
            Err(nowhere(format!("--root {}: there is no such folder", given.display()), "give the folder of the nexus")
                .into())
        };
    }
    if let Some(given) = variable(env, "NEXUS_ROOT")? {
        let root = cwd.join(&given);
        return if root.is_dir() {
            Ok(root)
        } else {
            let what = format!("found {given:?}, which is no folder");
            let hint = Some("set it to the folder of the nexus, or unset it".into());
            Err(Problem { place: Place::Variable("NEXUS_ROOT".into()), key: None, what, hint }.into())
        };
    }
    let is_nexus = |dir: &&Path| dir.join("monitor").is_dir() && MARKS.iter().any(|mark| dir.join(mark).is_file());
    cwd.ancestors().find(is_nexus).map(Path::to_owned).ok_or_else(|| {
        let what = format!("no nexus found in {} or any folder above it", cwd.display());
        nowhere(what, "go to its folder, give --root DIR, or set NEXUS_ROOT").into()
    })
}

/// The state directory of this root: `NEXUS_STATE_DIR`, else `monitor/.state` in it.
///
/// Errors: the variable is not text.
pub fn state_dir(env: &dyn Env, root: &Path, cwd: &Path) -> Result<PathBuf, ConfigError> {
    Ok(variable(env, "NEXUS_STATE_DIR")?.map_or_else(|| root.join("monitor/.state"), |given| cwd.join(given)))
}

/// The one configuration file of this root; `None` if there is none.
///
/// Errors: `NEXUS_CONFIG` names a file that does not exist.
pub fn find_file(env: &dyn Env, root: &Path, cwd: &Path) -> Result<Option<PathBuf>, ConfigError> {
    if let Some(given) = variable(env, "NEXUS_CONFIG")? {
        let path = cwd.join(&given);
        if !path.exists() {
            let what = format!("found {given:?}, which does not exist");
            let hint = Some("set it to the configuration file, or unset it".into());
            return Err(Problem { place: Place::Variable("NEXUS_CONFIG".into()), key: None, what, hint }.into());
        }
        return Ok(Some(path));
    }
    Ok(FILES.iter().map(|name| root.join(name)).find(|path| !is_missing(path)))
}

/// Whether there is nothing with this name. A link that leads nowhere, or a folder that may not be entered, is a file
/// that can't be read, not a missing one: defaults would hide the mistake.
pub(super) fn is_missing(path: &Path) -> bool {
    let is_absence = |error: io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    path.symlink_metadata().is_err_and(is_absence)
}

/// The place of a file in the order in which files are looked for; one that was named comes first, none at all last.
pub(super) fn rank(root: &Path, file: Option<&Path>) -> usize {
    let Some(file) = file else { return usize::MAX };
    FILES.iter().position(|name| root.join(name) == *file).map_or(0, |place| place + 1)
}

/// Reads a configuration file.
///
/// Errors: it is no text file that can be read.
pub fn read(path: &Path) -> Result<String, ConfigError> {
    let problem = |what: String, hint: &str| -> ConfigError {
        let place = Place::File { path: path.to_owned(), at: None };
        Problem { place, key: None, what, hint: Some(hint.into()) }.into()
    };
    let kind = path.metadata().map(|metadata| metadata.file_type());
    if kind.as_ref().is_ok_and(FileType::is_dir) {
        return Err(problem("this is a folder, not a file".into(), "give the file in it"));
    }
    // Reading a pipe would wait for a writer that may never come.
    if kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket()) {
        return Err(problem("this is a pipe or a socket, not a file".into(), "give a file"));
    }
    match files::read_text(path, MAX_FILE_BYTES) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(problem("there is no such file".into(), "check its name, and where a link leads")),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(problem(format!("the file is {error}"), "it must be UTF-8 text of at most 1 MiB"))
        }
        Err(error) => Err(problem(format!("the file can't be read: {error}"), "check its owner and mode")),
    }
}

/// What the operator should know once.
fn notices(root: &Path, file: Option<&Path>, judged: &Judged, bases: Bases<'_>) -> Vec<String> {
    let mut notices = Vec::new();
    match file {
        None => {
            notices.push(format!("there is no configuration file in {}: every key has its default", root.display()));
        }
        Some(read) => {
            if *read == root.join(OLD_PLACE) {
                notices.push(format!("{} is an old place; move it to config/nexus.yml", read.display()));
            }
            let misnamed = ["config/nexus.yaml", "nexus.yaml"].map(|name| root.join(name));
            let misnamed = misnamed.iter().filter(|path| *path != read && path.is_file());
            notices.extend(misnamed.map(|path| format!("{} is not read; its name must end in .yml", path.display())));
            let shadowed = FILES[..3].iter().map(|name| root.join(name)).filter(|path| path != read && path.is_file());
            notices.extend(shadowed.map(|path| format!("{} is not read, since {} is", path.display(), read.display())));
        }
    }
    if let Some((_, _, Node::Text(written))) = judged.unused.iter().find(|(path, ..)| path == "nexus.root")
        && bases.expand(written) != root
    {
        notices.push(format!("nexus.root ({written:?}) is not used: the root is {}", root.display()));
    }
    if judged.text.is_some() {
        notices
            .push("the file is indented with tabs, each read as two spaces (`ng config migrate` replaces them)".into());
    }
    if !judged.old.is_empty() {
        let told: Vec<_> = judged.old.iter().map(Old::told).collect();
        notices.push(format!("in an older form: {} (`ng config migrate` rewrites it)", told.join(", ")));
    }
    notices.push(github_notice(judged));
    let names = |wanted: Fate| {
        let is_told = |(path, fate, node): &&(String, Fate, Node)| {
            *fate == wanted && !path.starts_with("github.") && path != "nexus.root" && !is_as_in_example(path, node)
        };
        judged.unused.iter().filter(is_told).map(|(path, ..)| path.as_str()).collect::<Vec<_>>()
    };
    for (fate, why) in [(Fate::Later, "not used by this version"), (Fate::Out, "ignored, its part is left out")] {
        let names = names(fate);
        if !names.is_empty() {
            notices.push(format!("known, but {why}: {}", names.join(", ")));
        }
    }
    notices.retain(|notice| !notice.is_empty());
    notices
}

/// Whether an unused key says no more than the example does.
fn is_as_in_example(path: &str, node: &Node) -> bool {
    TEMPLATE_EXCEPTIONS.iter().any(|known| known.path == path && *node == Node::Switch(known.template))
}

/// Why the parts that need GitHub are off.
fn github_notice(judged: &Judged) -> String {
    let block: BTreeMap<&str, &Node> =
        judged.unused.iter().filter_map(|(path, _, node)| Some((path.strip_prefix("github.")?, node))).collect();
    if block.is_empty() {
        return "GitHub is off: there is no github block".into();
    }
    let placeholder = block.iter().find(|(_, node)| matches!(node, Node::Text(text) if is_placeholder(text)));
    match placeholder {
        Some((key, _)) => format!("GitHub is off: github.{key} still has its placeholder"),
        None => "GitHub is off: the github block is known, but not used by this version".into(),
    }
}

/// Whether a text was meant to be replaced.
fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let has_brackets = lower.find('<').is_some_and(|open| lower[open..].contains('>'));
    let marks = ["your-", "your_", "changeme", "change-me", "placeholder", "todo", "fixme", "/path/to/", "xxx"];
    let whole = ["", "owner/name", "owner/repo", "org/repo", "you", "user", "login"];
    has_brackets || whole.contains(&lower.as_str()) || marks.iter().any(|mark| lower.contains(mark))
}
