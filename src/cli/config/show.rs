//! `ng config show`: every key with its value, its origin, what a change of it needs, and what the running watcher has.

use serde_json::json;

use crate::config::in_force::{self, Record};
use crate::config::keys::Reload;
use crate::config::load::{Loaded, Setting};

use crate::cli::{Invocation, render, state_dir};

/// What the running watcher of the nexus that is meant has in force; `None` if none runs.
pub(super) fn running(invocation: &Invocation) -> Option<Record> {
    in_force::of_running(&state_dir(invocation).ok()?)
}

/// Prints everything.
pub(super) fn run(invocation: &Invocation) -> anyhow::Result<u8> {
    let running = running(invocation);
    let loaded = match (invocation.settings(), &running) {
        (Ok(loaded), _) => loaded,
        // The file is wrong, and the question is what holds nevertheless.
        (Err(error), Some(record)) => return only_running(invocation, &error, record),
        (Err(error), None) => return Err(error),
    };
    if invocation.json {
        let rows: Vec<_> = loaded.values.iter().map(|setting| row(&loaded, setting, running.as_ref())).collect();
        let file = loaded.settings.config_file.as_ref().map(|path| path.display().to_string());
        render::json(&json!({
            "root": loaded.settings.root.display().to_string(),
            "state_dir": loaded.settings.state_dir.display().to_string(),
            "file": file,
            "watcher": running.as_ref().map(about),
            "keys": rows,
            "warnings": loaded.warnings,
            "notices": loaded.notices,
        }))?;
        return Ok(0);
    }
    let width = loaded.values.iter().map(|setting| setting.key.path.len()).max().unwrap_or_default();
    let watcher = running.as_ref().map_or_else(|| "none".to_owned(), |record| format!("pid {}", record.pid));
    render::line(&format!("{:width$}  {}", "root", loaded.settings.root.display()));
    render::line(&format!("{:width$}  {}", "state directory", loaded.settings.state_dir.display()));
    render::line(&format!("{:width$}  {watcher}", "running watcher"));
    for setting in &loaded.values {
        let value = setting.value.to_yaml();
        let value = if value.is_empty() { "(unset)" } else { &value };
        let (origin, reload) = (loaded.origin(setting), setting.key.reload.name());
        let standing = standing(setting, running.as_ref()).map(|text| format!("; {text}")).unwrap_or_default();
        render::line(&format!("{:width$}  {value}  ({origin}; {reload}{standing})", setting.key.path));
    }
    warn(&loaded);
    for notice in &loaded.notices {
        render::note(&format!("note: {notice}"));
    }
    for complaint in running.iter().flat_map(Record::complaints) {
        render::note(&format!("running watcher: {complaint}"));
    }
    Ok(0)
}

/// What the running watcher has in force, where the configuration can't be used. The answer is no success.
fn only_running(invocation: &Invocation, error: &anyhow::Error, record: &Record) -> anyhow::Result<u8> {
    if invocation.json {
        render::json(&json!({"error": format!("{error:#}"), "watcher": about(record), "running": record.keys}))?;
        return Ok(1);
    }
    let width = record.keys.keys().map(String::len).max().unwrap_or_default();
    render::line(&format!("{:width$}  pid {}", "running watcher", record.pid));
    for (key, value) in &record.keys {
        render::line(&format!("{key:width$}  {value}  (in force)"));
    }
    render::note(&format!("ng config: {error:#}"));
    Ok(1)
}

/// The running watcher, in JSON.
fn about(record: &Record) -> serde_json::Value {
    let Record { pid, started, read, file, waiting, problems, .. } = record;
    json!({"pid": pid, "started": started, "read": read, "file": file, "waiting": waiting, "problems": problems})
}

/// Most unknown keys that are printed.
const MAX_WARNINGS: usize = 20;

/// Prints what nobody knows in the file.
pub(super) fn warn(loaded: &Loaded) {
    for warning in loaded.warnings.iter().take(MAX_WARNINGS) {
        render::note(&format!("warning: {warning}"));
    }
    if let Some(more) = loaded.warnings.len().checked_sub(MAX_WARNINGS).filter(|more| *more > 0) {
        render::note(&format!("warning: ... and {more} more unknown keys"));
    }
}

/// What the running watcher has for a key, in words; `None` if none runs or it does not say.
fn standing(setting: &Setting, running: Option<&Record>) -> Option<String> {
    let has = running?.keys.get(setting.key.path)?;
    Some(match setting.key.reload {
        _ if *has == setting.value.to_json() => "in force".to_owned(),
        Reload::Restart => format!("the running watcher has {has} until a restart"),
        // Its environment may differ from ours, its file may be bad, or it has not looked yet.
        Reload::Live | Reload::NewWindows => format!("the running watcher has {has}"),
    })
}

/// One key in JSON.
pub(super) fn row(loaded: &Loaded, setting: &Setting, running: Option<&Record>) -> serde_json::Value {
    let has = running.and_then(|record| record.keys.get(setting.key.path));
    json!({
        "key": setting.key.path,
        "value": setting.value.to_json(),
        "origin": loaded.origin(setting),
        "reload": setting.key.reload.name(),
        "running": has,
        "in_force": has.map(|has| *has == setting.value.to_json()),
    })
}
