//! `config-in-force.json` in the state directory: what the running watcher acts on, and what became of its last reload.
//!
//! Written by the watcher, read by `ng`, whose own environment and file may say something else. It holds no secrets:
//! only keys of the table are in it, and keys that name secrets name the file that holds them.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::keys;
use super::resolved::Settings;
use super::value::Value;
use crate::logic::instance::holder::Holder;
use crate::sys::files::{self, Durability, MAX_STATE_BYTES, StateDir};
use crate::sys::lock::{self, Probe};

/// Its name in the state directory.
pub const FILE: &str = "config-in-force.json";

/// What the running watcher says of its configuration.
///
/// Shape: times are ISO 8601 in local time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Record {
    /// The watcher.
    pub pid: u32,
    /// When it started.
    pub started: String,
    /// When the file was last read with another result than before.
    pub read: String,
    /// The file whose values are in force, if there is one.
    pub file: Option<String>,
    /// Every key with the value in force.
    pub keys: BTreeMap<String, serde_json::Value>,
    /// Keys that are set to another value, which needs a restart.
    #[serde(default)]
    pub waiting: Vec<Waiting>,
    /// What is wrong with the file as it is now; while there is something, an earlier reading of it is in force.
    #[serde(default)]
    pub problems: Vec<String>,
}

/// A key that waits for a restart.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Waiting {
    /// Its name.
    pub key: String,
    /// The value in force.
    pub in_force: serde_json::Value,
    /// The value that is set.
    pub written: serde_json::Value,
}

impl Record {
    /// What an operator should know, a line each; empty if all is well.
    pub fn complaints(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(first) = self.problems.first() {
            let more = match self.problems.len() - 1 {
                0 => String::new(),
                more => format!(" (and {more} more: ng config check)"),
            };
            lines.push(format!(
                "the configuration can't be used, what was in force before {} stays: {first}{more}",
                self.read
            ));
        }
        for waiting in &self.waiting {
            let Waiting { key, in_force, written } = waiting;
            lines.push(format!("{key} was changed from {in_force} to {written}, which needs a restart"));
        }
        lines
    }

    /// The settings in force, for questions about the running watcher. What this version does not know, or a value that
    /// it would not accept, has the value of `fallback`.
    pub fn settings(&self, fallback: &Settings) -> Settings {
        let mut settings = fallback.clone();
        for &key in keys::all() {
            if let Some(value) = self.keys.get(key.path).and_then(|json| Value::of_json(&key.kind, json)) {
                key.kind.apply(&mut settings, value);
            }
        }
        settings.config_file = self.file.as_deref().map(|file| Path::new(file).to_owned());
        settings
    }
}

/// Writes the record.
///
/// Errors: the state directory can't be written.
pub fn write(state: &StateDir, record: &Record) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(record)?;
    text.push('\n');
    files::write_atomic(&state.at(FILE), text.as_bytes(), Durability::Hint)
}

/// What the watcher that runs now has written; `None` if none runs, or if it has written nothing that can be read.
pub fn of_running(state: &StateDir) -> Option<Record> {
    // A watcher that was killed leaves its record behind, so only the lock tells whether it is still true.
    let Probe::Held(holder) = lock::probe(state) else { return None };
    let text = files::read_text(&state.at(FILE), MAX_STATE_BYTES).ok()??;
    let record: Record = serde_json::from_str(&text).ok()?;
    // One that has just started may not have written its own yet.
    (Holder::parse(&holder).pid == Some(record.pid)).then_some(record)
}
