//! `ng config migrate`: shows how a file of an older form would be written now, and with `--write` writes it, with the
//! file as it was beside it.

use std::path::Path;

use anyhow::Context as _;
use serde_json::json;

use crate::cli::{Invocation, current_dir, render};
use crate::config::load::{self, find_file, find_root};
use crate::config::migrate::{Migration, plan};
use crate::sys::files;

/// What is put behind the name of the file as it was.
const SUFFIX: &str = "before-migrate";

/// Shows, and writes if asked to. A file that is wrong, or that can't be rewritten with certainty, is 1.
pub(super) fn run(invocation: &Invocation, file: Option<&Path>, write: bool) -> anyhow::Result<u8> {
    let cwd = current_dir()?;
    let env = invocation.env();
    let root = find_root(&env, invocation.root.as_deref(), &cwd);
    let path = if let Some(file) = file {
        Some(cwd.join(file))
    } else {
        let root = root.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        find_file(&env, root, &cwd)?
    };
    let Some(path) = path else { anyhow::bail!("there is no configuration file; every key has its default") };
    let root = root.unwrap_or(cwd);
    let text = load::read(&path)?;
    let migration = match plan(&path, &text, &root) {
        Ok(migration) => migration,
        Err(error) if invocation.json => {
            render::json(&json!({"file": path.display().to_string(), "problems": error.problems}))?;
            return Ok(1);
        }
        Err(error) => {
            render::note(&error.to_string());
            return Ok(1);
        }
    };
    let backup = if write && !migration.is_nothing() { Some(replace(&path, &text, &migration)?) } else { None };
    if invocation.json {
        render::json(&json!({
            "file": path.display().to_string(),
            "lines": migration.lines,
            "lines_with_tabs": migration.tabbed,
            "written": backup.is_some(),
            "backup": backup,
            "problems": [],
        }))?;
        return Ok(0);
    }
    tell(&path, &migration);
    match backup {
        Some(backup) => render::line(&format!("written; to undo it: mv {backup} {}", path.display())),
        None if !migration.is_nothing() => render::line("nothing is written yet: ng config migrate --write"),
        None => {}
    }
    Ok(0)
}

/// Prints what changes.
fn tell(path: &Path, migration: &Migration) {
    let path = path.display();
    if migration.is_nothing() {
        render::line(&format!("{path}: nothing to rewrite"));
        return;
    }
    if migration.tabbed > 0 {
        // Such lines may hold anything, secrets of other parts too, so they are counted only.
        render::line(&format!("{path}: {} lines are indented with tabs; each becomes two spaces", migration.tabbed));
    }
    for change in &migration.lines {
        let clean = |text: &str| text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
        render::line(&format!("{path}:{}:", change.line));
        render::line(&format!("-{}", clean(&change.before)));
        render::line(&format!("+{}", clean(&change.after)));
    }
}

/// Writes the file, and returns the name of the file as it was.
fn replace(path: &Path, text: &str, migration: &Migration) -> anyhow::Result<String> {
    let real = path.canonicalize().with_context(|| format!("finding {}", path.display()))?;
    let backup = files::back_up(&real, SUFFIX)
        .with_context(|| format!("cannot copy {} beside itself; nothing was changed", real.display()))?;
    // What an editor saved meanwhile must not be lost.
    if load::read(path)? != text {
        files::remove(&backup)?;
        anyhow::bail!("{} was changed meanwhile; nothing was written, try again", path.display());
    }
    files::rewrite(path, migration.text.as_bytes())
        .with_context(|| format!("cannot write {}; the file as it was is {}", path.display(), backup.display()))?;
    Ok(backup.display().to_string())
}
