//! What another reading of the same screen changed: field by field, and as a table of what became what.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::logic::pane::PaneVerdict;
use crate::logic::text::{Joiners, visible};

/// What may differ without any consequence: reasons, ages, and checksums of text.
const NOT_COMPARED: &[&str] = &["evidence", "content_hash", "stale_s", "held"];

/// A field of a verdict that two readings fill differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The field, as `--json` names it.
    pub field: String,
    /// What it was; `-` for nothing.
    pub old: String,
    /// What it is.
    pub new: String,
}

/// The fields in which two verdicts differ, the state first.
pub fn differences(old: &PaneVerdict, new: &PaneVerdict) -> Vec<Difference> {
    let (old, new) = (fields(old), fields(new));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut found: Vec<Difference> = names
        .into_iter()
        .filter(|name| !NOT_COMPARED.contains(&name.as_str()) && old.get(*name) != new.get(*name))
        .map(|name| Difference { field: name.clone(), old: shown(old.get(name)), new: shown(new.get(name)) })
        .collect();
    found.sort_by_key(|difference| difference.field != "state");
    found
}

/// The fields of a verdict by name. Nothing is nothing, whether it is written or left out.
fn fields(verdict: &PaneVerdict) -> Map<String, Value> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(verdict) else { return Map::new() };
    fields.retain(|_, value| !value.is_null());
    fields
}

/// A value for people; text of a screen may hold anything.
fn shown(value: Option<&Value>) -> String {
    match value {
        None => "-".to_owned(),
        Some(Value::String(text)) => visible(text, Joiners::Drop).replace(['\n', '\t'], " "),
        Some(other) => visible(&other.to_string(), Joiners::Drop),
    }
}

/// How often which state became which, by agent and version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table(BTreeMap<(String, String, String), BTreeMap<String, usize>>);

/// One row of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableRow<'a> {
    /// The agent.
    pub agent: &'a str,
    /// Its version.
    pub version: &'a str,
    /// What it was.
    pub old: &'a str,
    /// What it became, and how often.
    pub new: &'a BTreeMap<String, usize>,
}

impl Table {
    /// Counts one screen.
    pub fn add(&mut self, (agent, version): (String, String), old: &str, new: &str) {
        let row = self.0.entry((agent, version, old.to_owned())).or_default();
        *row.entry(new.to_owned()).or_default() += 1;
    }

    /// The rows, by agent, version and old state.
    pub fn rows(&self) -> Vec<TableRow<'_>> {
        self.0.iter().map(|((agent, version, old), new)| TableRow { agent, version, old, new }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::pane::{Evidence, Overlay, State, Witness};

    #[test]
    fn verdicts_differ_by_what_follows_from_them() {
        let old = PaneVerdict::of(State::Busy, Evidence::new(Witness::Screen, "a"));
        let mut new = PaneVerdict::of(State::Busy, Evidence::new(Witness::Hook, "b"));
        new.content_hash = Some(4);
        assert_eq!(differences(&old, &new), []);
        new.state = State::Blocked;
        new.overlay = Some(Overlay::Plan);
        new.agent = Some("a\u{1b}[2Jb".into());
        let found = differences(&old, &new);
        let found: Vec<_> = found.iter().map(|d| (d.field.as_str(), d.old.as_str(), d.new.as_str())).collect();
        assert_eq!(found[0], ("state", "busy", "blocked"));
        assert!(found.contains(&("overlay", "-", "plan")), "{found:?}");
        assert!(found.iter().all(|(_, _, new)| !new.contains('\u{1b}')), "{found:?}");
    }

    #[test]
    fn a_table_counts_what_became_what() {
        let mut table = Table::default();
        let who = || ("claude".to_owned(), "2.1".to_owned());
        table.add(who(), "busy", "idle");
        table.add(who(), "busy", "busy");
        table.add(who(), "busy", "busy");
        let rows = table.rows();
        assert_eq!((rows.len(), rows[0].new["busy"], rows[0].new["idle"]), (1, 2, 1));
    }
}
