//! The example file and the reference page, both made from the key table.

use std::fmt::Write as _;

use super::keys::{self, Fate, Key, TEMPLATE_EXCEPTIONS, UNUSED};

/// What stands above the keys of the example.
const EXAMPLE_HEAD: &str = "\
# yaml-language-server: $schema=../nexus.schema.json
# Configuration of the nexus watcher. Made by `ng config example`; every key is here, with its default.
#
# Copy it to config/nexus.yml and change what you need; a key that is missing has its default. `ng config check` checks it,
# `ng config show` tells what holds and why. docs/configuration.md is the reference. Above each key stand what it does,
# then what is accepted, the environment variable that wins over the file, and what a change needs to take effect.
# The first line lets editors check config/nexus.yml while it is written.
";

/// What stands above the table of the reference page.
const DOC_HEAD: &str = "\
# Configuration

Made by `ng config doc` from the key table, `src/config/keys/`.

## Where values come from

The root is the folder given by `--root`, else by `NEXUS_ROOT`, else the nearest folder upwards from the current one
that holds `monitor/` and one of `nexus.yml`, `config/nexus.yml` and `nexus.example.yml`.

One file is read, the first of these that exists; files are never merged:

1. the file that `NEXUS_CONFIG` names,
2. `config/nexus.yml`,
3. `nexus.yml`,
4. `monitor/nexus.yml`, an old place,
5. `config/nexus.example.yml`,
6. `nexus.example.yml`.

A value comes from its environment variable, else from the file, else it is the default. An empty variable counts as
unset, and so does a key without a value. In a variable, the items of a list are separated by commas. `~` and
`$NEXUS_ROOT` at the beginning of a path are replaced, and a relative path is taken from the root. Two variables have
no key: `NEXUS_STATE_DIR` names the state directory (default: `monitor/.state` in the root), `HOME` is `~`.

A value that is wrong stops the start, with one line for each problem: file, line, column, key, what was found, what was
expected. `ng config check [FILE]` prints the same lines, `ng config show` prints every value and where it came from,
`ng config get KEY` prints one.

A key that nobody knows is no reason to refuse a file, since a later version may know it: it is said at the start and by
`ng config check` (which fails for it with `--strict`), with the key that was probably meant, and sets nothing.

## Older files

Files of the original tools and of earlier versions load as they are. Numbers and switches in quotes (`\"30\"`, `yes`, `1`),
names with another unit (`interval_minutes`, `idle_close_seconds`) and indentation by tabs alone are read as they were
meant, which is said. `ng config migrate` shows how such lines would be written now; `ng config migrate --write` writes
them, keeps comments, order and unknown keys, and leaves the file as it was beside it as `nexus.yml.before-migrate`: to
move that back is the undo. What is not certain is not rewritten but named. Twice is the same as once.

## Editors

`nexus.schema.json` (`ng config schema`) is the JSON Schema of the file, draft 2020-12, made from the same table. It marks
unknown keys and older forms, too. A comment `# yaml-language-server: $schema=PATH` in the first line, with the path of
that file, lets most editors use it.

## Changes while the watcher runs

A running watcher looks at its file every two seconds, and reads it when it was changed and has looked the same twice;
SIGHUP makes it read the file at once. Replacing the file and turning a link to another file are changes, too. What a
change needs to take effect stands under *Reload*: `live` nothing more, `restart` a restart of the watcher, `new windows`
a window that is opened afterwards. The variables are those the watcher was started with, and they win as at the start.

A file that is wrong, that can't be read or that is gone changes nothing: the last good configuration stays in force,
whole, and the log and `ng watcher-status` say why. `ng config show` compares what is written with what the running
watcher has in force, from `config-in-force.json` in the state directory.

## Keys

| Key | Type | Default | Environment | Reload | What it does |
|---|---|---|---|---|---|
";

/// The whole of `nexus.example.yml`.
pub fn example() -> String {
    let mut text = EXAMPLE_HEAD.to_owned();
    let mut rows: Vec<Row> = keys::all().iter().map(|key| Row::of_key(key)).collect();
    rows.extend(TEMPLATE_EXCEPTIONS.iter().map(|exception| Row {
        path: exception.path,
        comments: vec![
            exception.doc.to_owned(),
            format!("Known, but not used by this version. Without this key: {}.", exception.default),
        ],
        value: exception.template.to_string(),
    }));
    rows.sort_by_key(|row| row.path);
    write_section(&mut text, &rows, "", 0);
    text
}

/// A key in the example.
struct Row {
    path: &'static str,
    comments: Vec<String>,
    value: String,
}

impl Row {
    fn of_key(key: &Key) -> Self {
        let expected = key.kind.expected();
        let facts = format!("{}; {}; {}", expected, key.env, key.reload.name());
        let value = key.kind.default_value().to_yaml();
        Self { path: key.path, comments: vec![key.doc.to_owned(), facts], value }
    }
}

/// Writes the keys of a section, then the sections in it. `prefix` is its name with a dot, or empty.
fn write_section(text: &mut String, rows: &[Row], prefix: &str, depth: usize) {
    let indent = "  ".repeat(depth);
    let below = || rows.iter().filter_map(|row| Some((row, row.path.strip_prefix(prefix)?)));
    for (row, name) in below().filter(|(_, name)| !name.contains('.')) {
        for comment in &row.comments {
            for line in wrapped(comment, 116 - indent.len()) {
                let _infallible = writeln!(text, "{indent}# {line}");
            }
        }
        let space = if row.value.is_empty() { "" } else { " " };
        let _infallible = writeln!(text, "{indent}{name}:{space}{}", row.value);
    }
    let mut written = "";
    for (_, name) in below() {
        let Some((section, _)) = name.split_once('.') else { continue };
        if section != written {
            written = section;
            let _infallible = writeln!(text, "\n{indent}{section}:");
            write_section(text, rows, &format!("{prefix}{section}."), depth + 1);
        }
    }
}

/// The whole of `docs/configuration.md`.
pub fn reference() -> String {
    let mut text = DOC_HEAD.to_owned();
    for key in keys::all() {
        let default = key.kind.default_value().to_yaml();
        let default = if default.is_empty() { "unset".to_owned() } else { format!("`{default}`") };
        let (path, expected, env, reload) = (key.path, key.kind.expected(), key.env, key.reload.name());
        let _infallible = writeln!(text, "| `{path}` | {expected} | {default} | `{env}` | {reload} | {} |", key.doc);
    }
    text.push_str("\n## Where the example and the default differ\n\nAs in the original tools: a file of your own that lacks the key has the default, a tree that reads the example has\nits value. This version does not use these keys yet.\n\n| Key | Default | Example |\n|---|---|---|\n");
    for exception in TEMPLATE_EXCEPTIONS {
        let _infallible =
            writeln!(text, "| `{}` | `{}` | `{}` |", exception.path, exception.default, exception.template);
    }
    text.push_str("\n## Known and not used\n\nFiles written for the original tools load. These keys are known and set nothing in this version (`*` is any ending):\n\n");
    write_unused(&mut text, Fate::Later);
    text.push_str("\nThese belong to parts that are left out, and are ignored:\n\n");
    write_unused(&mut text, Fate::Out);
    text
}

/// Writes the patterns of keys that have this fate.
fn write_unused(text: &mut String, fate: Fate) {
    for unused in UNUSED.iter().filter(|unused| unused.fate == fate) {
        let _infallible = writeln!(text, "- `{}`", unused.pattern);
    }
}

/// A text in lines of at most this many letters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
