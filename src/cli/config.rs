//! `ng config`: checks the configuration, prints what holds, and makes the example and the reference page.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::json;

use crate::config::error::{ConfigError, Place};
use crate::config::in_force::Record;
use crate::config::load::{Loaded, Origin, find_file, find_root, load_file};
use crate::config::{document, keys, schema};
use crate::sys::env::{Env, ProcessEnv};

use super::{Invocation, Verb, current_dir, render};

mod migrate;
mod show;

pub(super) const VERB: Verb = Verb { command, run, usage: 2 };

fn command() -> Command {
    Command::new("config")
        .about("Check the configuration, and show what holds")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("check")
                .about("Check the file that would be read, or FILE; list every problem")
                .arg(file_arg("The file to check"))
                .arg(
                    Arg::new("strict")
                        .long("strict")
                        .action(ArgAction::SetTrue)
                        .help("Count unknown keys and older forms as problems"),
                ),
        )
        .subcommand(Command::new("doc").about("Print docs/configuration.md"))
        .subcommand(Command::new("example").about("Print nexus.example.yml"))
        .subcommand(
            Command::new("get").about("Print the value of one key").arg(
                Arg::new("key").value_name("KEY").required(true).help("Its full name, as monitor.interval_seconds"),
            ),
        )
        .subcommand(
            Command::new("migrate")
                .about("Show how an older file would be written now, and write it")
                .arg(file_arg("The file to rewrite; without it, the one that is read"))
                .arg(
                    Arg::new("write")
                        .long("write")
                        .action(ArgAction::SetTrue)
                        .help("Write it, and leave the file as it was beside it"),
                ),
        )
        .subcommand(Command::new("schema").about("Print nexus.schema.json, the JSON Schema of the file, for editors"))
        .subcommand(
            Command::new("show")
                .about("Print every key, its value, where it came from, and what the running watcher has"),
        )
}

/// An optional file.
fn file_arg(help: &'static str) -> Arg {
    Arg::new("file").value_name("FILE").value_parser(clap::value_parser!(PathBuf)).help(help)
}

fn run(invocation: &Invocation, args: &ArgMatches) -> anyhow::Result<u8> {
    match args.subcommand() {
        Some(("check", sub)) => {
            check(invocation, sub.get_one::<PathBuf>("file").map(PathBuf::as_path), sub.get_flag("strict"))
        }
        Some(("doc", _)) => text(invocation, &document::reference()),
        Some(("example", _)) => text(invocation, &document::example()),
        Some(("get", sub)) => get(invocation, sub.get_one::<String>("key").map_or("", String::as_str)),
        Some(("migrate", sub)) => {
            let file = sub.get_one::<PathBuf>("file").map(PathBuf::as_path);
            migrate::run(invocation, file, sub.get_flag("write"))
        }
        Some(("schema", _)) => {
            render::json(&schema::schema())?;
            Ok(0)
        }
        _ => show::run(invocation),
    }
}

/// `doc` and `example`: a file as it should be.
fn text(invocation: &Invocation, text: &str) -> anyhow::Result<u8> {
    if invocation.json {
        render::json(&json!({"text": text}))?;
    } else {
        render::line(text.trim_end());
    }
    Ok(0)
}

/// `check [FILE]`: a named file is checked alone, without the environment's values.
fn check(invocation: &Invocation, file: Option<&Path>, strict: bool) -> anyhow::Result<u8> {
    match loaded_for_check(invocation, file)? {
        Ok(loaded) => {
            let read = loaded.settings.config_file.as_ref().map(|path| path.display().to_string());
            let set = loaded.values.iter().filter(|setting| setting.origin != Origin::Default).count();
            let fails = strict && (!loaded.warnings.is_empty() || loaded.is_in_an_older_form);
            if invocation.json {
                let (warnings, notices) = (&loaded.warnings, &loaded.notices);
                render::json(&json!({
                    "ok": !fails, "file": read, "problems": [], "warnings": warnings, "notices": notices,
                }))?;
            } else {
                let name = read.as_deref().unwrap_or("no file");
                render::line(&format!("{name}: fine, {set} of {} keys set", loaded.values.len()));
                show::warn(&loaded);
                for notice in &loaded.notices {
                    render::note(&format!("note: {notice}"));
                }
                // What is said of a named file has nothing to do with the watcher.
                let running = if file.is_none() { show::running(invocation) } else { None };
                for complaint in running.iter().flat_map(Record::complaints) {
                    render::note(&format!("running watcher: {complaint}"));
                }
            }
            Ok(u8::from(fails))
        }
        Err(error) if invocation.json => {
            let file = error.problems.iter().find_map(|problem| match &problem.place {
                Place::File { path, .. } => Some(path.display().to_string()),
                Place::Variable(_) | Place::Nowhere => None,
            });
            render::json(
                &json!({"ok": false, "file": file, "problems": error.problems, "warnings": [], "notices": []}),
            )?;
            Ok(1)
        }
        Err(error) => {
            render::note(&error.to_string());
            Ok(1)
        }
    }
}

/// What `check` looks at.
fn loaded_for_check(invocation: &Invocation, file: Option<&Path>) -> anyhow::Result<Result<Loaded, ConfigError>> {
    let cwd = current_dir()?;
    let (env, flag) = (invocation.env(), invocation.root.as_deref());
    Ok(match file {
        Some(file) => {
            // A file can be checked anywhere; the root only matters for relative paths in it.
            let root = find_root(&env, flag, &cwd).unwrap_or_else(|_no_nexus| cwd.clone());
            load_file(&OnlyHome, &root, Some(&cwd.join(file)), &cwd)
        }
        None => find_root(&env, flag, &cwd).and_then(|root| {
            let file = find_file(&env, &root, &cwd)?;
            load_file(&env, &root, file.as_deref(), &cwd)
        }),
    })
}

/// The environment without any value for a key.
struct OnlyHome;

impl Env for OnlyHome {
    fn get(&self, name: &str) -> Option<String> {
        (name == "HOME").then(|| ProcessEnv.get(name))?
    }
}

/// `get KEY`. A name that is no key is a usage error, 2; a key without a value is 1.
fn get(invocation: &Invocation, path: &str) -> anyhow::Result<u8> {
    let Some(key) = keys::by_path(path) else {
        render::note(&format!("ng config: {}", no_such_key(path)));
        return Ok(if keys::fate(path).is_some() { 1 } else { 2 });
    };
    let loaded = invocation.settings()?;
    let Some(setting) = loaded.values.iter().find(|setting| setting.key == key) else {
        anyhow::bail!("{path} has no value")
    };
    if invocation.json {
        render::json(&show::row(&loaded, setting, show::running(invocation).as_ref()))?;
    } else {
        render::line(&setting.value.to_plain());
    }
    Ok(0)
}

/// What to say of a name that is no key.
fn no_such_key(path: &str) -> String {
    if keys::fate(path).is_some() {
        return format!("{path} is known, but not used by this version, so it has no value");
    }
    if keys::is_section(path) {
        return format!("{path:?} is a block of keys, not one; `ng config show | grep '^{path}[.]'` lists them");
    }
    match keys::nearest_key(path) {
        Some(near) => format!("there is no key {path:?} (did you mean {near}?)"),
        None => format!("there is no key {path:?} (`ng config show` lists them)"),
    }
}
