//! Session transcripts of Claude Code: where one is, and whether a prompt of ours arrived in it.
//!
//! A transcript is bound by session id, never "the newest file". It is read forward from a byte offset, whole lines
//! only. Its texts are data: a tool's output, a background task's result or a summary can quote an emit, and is no
//! proof that one arrived.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::env::Env;

/// Most bytes read in one call.
const MAX_READ_BYTES: u64 = 8 << 20;
/// Most project folders that are searched for a session whose folder is not known.
const MAX_PROJECTS: usize = 5000;

/// What a transcript says about a text of ours. The order is that of strength.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    /// Nothing so far.
    None,
    /// It waits in the session's queue.
    Enqueued,
    /// It is a prompt of the conversation, or was taken up in a running turn.
    User,
}

/// What one call found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// The strongest finding in what was read.
    pub found: Found,
    /// Where the next call continues: the start of the first line not read whole.
    pub next_offset: u64,
    /// Whether everything that is there was read.
    pub is_at_end: bool,
}

/// The transcript of a session.
///
/// Shape: `told` is the path that the hook reported, taken only if it names this session; else the usual place below
/// `CLAUDE_CONFIG_DIR` (or `~/.claude`) for this working directory; else whichever project folder has the session.
pub fn locate(env: &dyn Env, session_id: &str, told: Option<&Path>, cwd: Option<&Path>) -> Option<PathBuf> {
    let is_id = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if session_id.is_empty() || session_id.len() > 128 || !session_id.bytes().all(is_id) {
        return None;
    }
    let file_name = format!("{session_id}.jsonl");
    let is_file = |path: &PathBuf| fs::metadata(path).is_ok_and(|data| data.is_file());
    let told =
        told.filter(|path| path.is_absolute() && path.file_name().is_some_and(|name| name == file_name.as_str()));
    if let Some(path) = told.map(Path::to_owned).filter(is_file) {
        return Some(path);
    }
    let config = env.non_empty("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let projects = config.or_else(|| Some(Path::new(&env.non_empty("HOME")?).join(".claude")))?.join("projects");
    if let Some(path) = cwd.map(|cwd| projects.join(slug(cwd)).join(&file_name)).filter(is_file) {
        return Some(path);
    }
    let folders = fs::read_dir(projects).ok()?.take(MAX_PROJECTS).flatten();
    folders.map(|folder| folder.path().join(&file_name)).find(is_file)
}

/// The folder name of a working directory: everything but letters and digits becomes `-`.
pub fn slug(cwd: &Path) -> String {
    cwd.to_string_lossy().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

/// The transcript's length, as the offset from which a later prompt is looked for; 0 if it does not exist yet.
pub fn end_offset(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(data) => Ok(data.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// What is looked for in a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// A prompt with this in it: plain text without quotes and backslashes, as a signature is.
    Part(&'a str),
    /// A prompt that says this and nothing else, white space aside.
    Whole(&'a str),
}

impl Wanted<'_> {
    /// Whether a line of the file may hold it; JSON writes some characters otherwise.
    fn may_be_in(self, line: &str) -> bool {
        match self {
            Self::Part(needle) => line.contains(needle),
            Self::Whole(_) => true,
        }
    }

    /// Whether a prompt's text is it.
    fn is_in(self, text: &str) -> bool {
        match self {
            Self::Part(needle) => text.contains(needle),
            Self::Whole(whole) => text.split_whitespace().eq(whole.split_whitespace()),
        }
    }
}

/// Looks for a text of ours in what was written since `offset`; at most 8 MiB a call.
///
/// Shape:  An `offset` inside a line is moved
///         to the next line; one beyond the end means that the file was replaced, and it is read from the start.
/// Errors: anything but a missing file, which is "nothing so far": a session writes its file at its first prompt.
pub fn find(path: &Path, offset: u64, wanted: Wanted<'_>) -> io::Result<Search> {
    let nothing = Search { found: Found::None, next_offset: 0, is_at_end: true };
    let mut file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(nothing),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut start = if offset > length { 0 } else { offset };
    // One byte earlier shows whether the offset is at the start of a line.
    let seek_to = start.saturating_sub(1);
    file.seek(SeekFrom::Start(seek_to))?;
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    let is_at_end = seek_to.saturating_add(bytes.len() as u64) >= length;
    let mut rest = bytes.as_slice();
    if start > 0 {
        let Some(newline) = rest.iter().position(|b| *b == b'\n') else {
            return Ok(Search { next_offset: after_cut_line(seek_to, &bytes, is_at_end), is_at_end, ..nothing });
        };
        rest = rest.get(newline + 1..).unwrap_or_default();
        start = seek_to.saturating_add(newline as u64 + 1);
    }
    let Some(last_newline) = rest.iter().rposition(|b| *b == b'\n') else {
        return Ok(Search { next_offset: after_cut_line(start, rest, is_at_end), is_at_end, ..nothing });
    };
    let whole = rest.get(..=last_newline).unwrap_or_default();
    let lines = whole.split(|b| *b == b'\n').map(String::from_utf8_lossy);
    let found = lines.filter(|line| wanted.may_be_in(line)).map(|line| judge(&line, wanted)).max();
    Ok(Search { found: found.unwrap_or(Found::None), next_offset: start.saturating_add(whole.len() as u64), is_at_end })
}

/// The last whole records of a session, oldest first; at most this many bytes of them. Empty if it has not written yet.
///
/// Errors: it is there and can't be read.
pub fn tail(path: &Path, max_bytes: u64) -> io::Result<Vec<String>> {
    let mut file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let start = file.metadata()?.len().saturating_sub(max_bytes);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    // The first line may have lost its beginning, and the last one may still grow.
    let first = if start == 0 { 0 } else { bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1) };
    let end = bytes.iter().rposition(|b| *b == b'\n').unwrap_or(0);
    let whole = bytes.get(first..end).unwrap_or_default();
    Ok(String::from_utf8_lossy(whole).lines().map(str::to_owned).collect())
}

/// Where to continue after a line that did not end: at its start while it may still grow, beyond it when one line alone
/// is longer than a read.
fn after_cut_line(start: u64, bytes: &[u8], is_at_end: bool) -> u64 {
    if is_at_end { start } else { start.saturating_add(bytes.len() as u64) }
}

/// Opens a regular file without waiting, whatever stands there.
fn open(path: &Path) -> io::Result<File> {
    let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(nonblock).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// What one record says about a text of ours.
///
/// Source: records of Claude Code 2.0.77 and 2.1.332 (`agent-facts` §6 and §9).
fn judge(line: &str, wanted: Wanted<'_>) -> Found {
    let Ok(record) = serde_json::from_str::<Value>(line) else { return Found::None };
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_set = |key: &str| record.get(key).and_then(Value::as_bool).unwrap_or(false);
    match text(&record, "type").as_str() {
        "user" if !is_set("isMeta") && !is_set("isSidechain") && !is_set("isCompactSummary") => {
            let content = record.get("message").and_then(|message| message.get("content"));
            let source = record.get("promptSource").and_then(Value::as_str);
            let is_prompt = match (source, content) {
                (Some("system" | "sdk"), _) => false,
                (Some(_), Some(content)) => says(content, wanted),
                // Versions without the field: a prompt is a plain text, a tool's result is a list.
                (None, Some(Value::String(content))) => is_sent(content, wanted),
                (None | Some(_), _) => false,
            };
            if is_prompt { Found::User } else { Found::None }
        }
        "queue-operation" if text(&record, "operation") == "enqueue" => {
            if record.get("content").is_some_and(|content| says(content, wanted)) {
                Found::Enqueued
            } else {
                Found::None
            }
        }
        "attachment" => {
            let attachment = record.get("attachment").unwrap_or(&Value::Null);
            let is_ours = attachment.get("prompt").is_some_and(|prompt| says(prompt, wanted));
            if text(attachment, "type") == "queued_command" && is_ours { Found::User } else { Found::None }
        }
        _ => Found::None,
    }
}

/// Whether a content (a text, or a list with text parts) is a sent text that is wanted.
fn says(content: &Value, wanted: Wanted<'_>) -> bool {
    match content {
        Value::String(text) => is_sent(text, wanted),
        Value::Array(parts) => parts.iter().any(|part| {
            let is_text = part.get("type").and_then(Value::as_str) == Some("text");
            is_text && part.get("text").and_then(Value::as_str).is_some_and(|text| is_sent(text, wanted))
        }),
        _ => false,
    }
}

/// Whether a text is wanted and was sent by somebody, not made by the program from what a command printed.
fn is_sent(text: &str, wanted: Wanted<'_>) -> bool {
    const MADE_BY_THE_PROGRAM: &[&str] =
        &["<task-notification>", "<local-command-", "<bash-stdout>", "<bash-stderr>", "<command-name>"];
    let start = text.trim_start();
    wanted.is_in(text) && !MADE_BY_THE_PROGRAM.iter().any(|tag| start.starts_with(tag))
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
