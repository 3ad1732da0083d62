//! An amendment: a short file of the operator's that adds, changes or removes rules of a profile, or sets other keys of
//! it. Applied to the profile's text as data, before it is checked; so what comes out is a profile like any other.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_yaml::{Mapping, Value};

use super::profile::{RawRule, RawVotes};
use super::source::{Amended, FileProblem};

/// How alike a rule's id must be to one that does not exist to be offered instead.
const ALIKE: f32 = 0.6;

/// An amendment as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Amendment {
    /// The profile.
    pub(super) amends: String,
    /// The version of that profile that it was made for.
    #[serde(default)]
    made_for: Option<u32>,
    /// For people.
    #[serde(default)]
    why: Option<String>,
    /// Keys of the profile that are replaced, one by one.
    #[serde(default)]
    set: Mapping,
    /// Whole rules.
    #[serde(default)]
    add: Vec<RawRule>,
    /// Parts of rules, by id.
    #[serde(default)]
    change: BTreeMap<String, RuleChange>,
    /// Ids of rules.
    #[serde(default)]
    remove: Vec<String>,
}

/// What is to be changed about a rule. It is read to be checked; what is applied is the text itself, in which a key that
/// is set to nothing is taken out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "its form is what is checked")]
struct RuleChange {
    region: Option<crate::logic::screen::Region>,
    literal: Option<String>,
    regex: Option<String>,
    cursor: Option<bool>,
    priority: Option<i32>,
    says: Option<RawVotes>,
    since: Option<String>,
    until: Option<String>,
    why: Option<String>,
}

/// Whether the text is meant as an amendment.
///
/// Errors: it is no mapping, or not YAML.
pub(super) fn is_amendment(path: &Path, text: &str) -> Result<bool, FileProblem> {
    let value: Value = serde_yaml::from_str(text).map_err(|error| form(path, &error))?;
    match value {
        Value::Mapping(map) => Ok(map.contains_key("amends")),
        Value::Null => Err(FileProblem::of(path, None, "the file is empty; write a profile, or an amendment, into it")),
        _ => Err(FileProblem::of(path, Some(1), "neither a profile (`name: …`) nor an amendment (`amends: NAME`)")),
    }
}

/// Reads an amendment.
///
/// Errors: a key that nobody knows, a value of the wrong form; with its line.
pub(super) fn parse(path: &Path, text: &str) -> Result<Amendment, FileProblem> {
    serde_yaml::from_str(text).map_err(|error| form(path, &error))
}

/// The text of a profile with the amendment applied, and what was done.
///
/// Errors: the amendment speaks of rules or keys that the profile does not have.
pub(super) fn apply(
    path: &Path,
    text: &str,
    amendment: Amendment,
    profile: &str,
) -> Result<(String, Amended), FileProblem> {
    let bad = |key: String, what: String| FileProblem::at(path, text, &key, what);
    let mut value: Value = serde_yaml::from_str(profile).map_err(|error| form(path, &error))?;
    // The same text as data: the typed form above is for checking only.
    let raw: Value = serde_yaml::from_str(text).map_err(|error| form(path, &error))?;
    let mut done = Amended {
        path: path.to_owned(),
        made_for: amendment.made_for,
        added: Vec::new(),
        changed: Vec::new(),
        removed: Vec::new(),
        set: Vec::new(),
        why: amendment.why,
    };
    let touches_rules = !(amendment.add.is_empty() && amendment.change.is_empty() && amendment.remove.is_empty());
    if let Some(model) = value.get("screen").and_then(Value::as_str)
        && (touches_rules || amendment.set.contains_key("screen"))
    {
        let what = format!("{} has the screen of {model}; amend {model} instead", amendment.amends);
        return Err(bad("amends".into(), what));
    }
    if amendment.set.contains_key("name") {
        return Err(bad("set.name".into(), "a profile keeps its name; write a new one whole instead".into()));
    }
    if let Some(key) = merge(&mut value, &amendment.set, "", &mut done.set) {
        return Err(bad(key, "holds rules; use `add`, `change` and `remove`".into()));
    }
    if touches_rules {
        let rules = value.get_mut("screen").and_then(|screen| screen.get_mut("rules")).and_then(Value::as_sequence_mut);
        let rules = rules.ok_or_else(|| bad("amends".into(), format!("{} has no rules", amendment.amends)))?;
        for id in &amendment.remove {
            let at = place(rules, id).map_err(|what| bad(format!("remove.{id}"), what))?;
            rules.remove(at);
            done.removed.push(id.clone());
        }
        for id in amendment.change.keys() {
            let at = place(rules, id).map_err(|what| bad(format!("change.{id}"), what))?;
            let change = raw.get("change").and_then(|all| all.get(id)).and_then(Value::as_mapping);
            if let (Some(change), Some(Value::Mapping(rule))) = (change, rules.get_mut(at)) {
                change_rule(rule, change);
            }
            done.changed.push(id.clone());
        }
        let added = raw.get("add").and_then(Value::as_sequence).cloned().unwrap_or_default();
        for (rule, value) in amendment.add.iter().zip(added).rev() {
            if place(rules, &rule.id).is_ok() {
                let what = "a rule of this id is there already; `change` it, or take an id of your own".to_owned();
                return Err(bad(format!("add.{}", rule.id), what));
            }
            // Of rules with the same priority the first one wins, and that should be the operator's.
            rules.insert(0, value);
            done.added.insert(0, rule.id.clone());
        }
    }
    let text = serde_yaml::to_string(&value).map_err(|error| form(path, &error))?;
    Ok((text, done))
}

/// Where the rule stands.
///
/// Errors: nowhere; with the id that may have been meant.
fn place(rules: &[Value], id: &str) -> Result<usize, String> {
    let id_of = |rule: &Value| rule.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(at) = rules.iter().position(|rule| id_of(rule) == id) {
        return Ok(at);
    }
    let alike = |other: &String| similar::TextDiff::from_chars(other.as_str(), id).ratio();
    let nearest = rules.iter().map(id_of).map(|other| (alike(&other), other)).max_by(|a, b| a.0.total_cmp(&b.0));
    Err(match nearest {
        Some((ratio, other)) if ratio >= ALIKE => format!("no rule of this id; did you mean {other}?"),
        _ => "no rule of this id; `ng agents show NAME` prints them".to_owned(),
    })
}

/// Replaces parts of a rule. A pattern of one kind takes the place of the other kind.
fn change_rule(rule: &mut Mapping, change: &Mapping) {
    for (key, value) in change {
        match key.as_str() {
            Some("literal") => drop(rule.remove("regex")),
            Some("regex") => drop(rule.remove("literal")),
            _ => {}
        }
        if value.is_null() {
            rule.remove(key);
        } else {
            rule.insert(key.clone(), value.clone());
        }
    }
}

/// Replaces keys of a profile, one by one; lists are replaced whole, and a key that is set to nothing is taken out.
/// Returns the key that may not be set, if there is one.
fn merge(value: &mut Value, set: &Mapping, above: &str, done: &mut Vec<String>) -> Option<String> {
    let Value::Mapping(map) = value else { return None };
    for (key, new) in set {
        let name = format!("{above}{}", key.as_str().unwrap_or("?"));
        if name == "screen.rules" {
            return Some(format!("set.{name}"));
        }
        match (map.get_mut(key), new) {
            (Some(old @ Value::Mapping(_)), Value::Mapping(new)) => {
                if let Some(bad) = merge(old, new, &format!("{name}."), done) {
                    return Some(bad);
                }
                continue;
            }
            (_, Value::Null) => drop(map.remove(key)),
            _ => drop(map.insert(key.clone(), new.clone())),
        }
        done.push(name);
    }
    None
}

/// What the reader said, with its line.
pub(super) fn form(path: &Path, error: &serde_yaml::Error) -> FileProblem {
    let line = error.location().map(|place| place.line());
    let said = error.to_string();
    // The place is said before it already.
    let what = said.split(" at line ").next().unwrap_or(&said);
    FileProblem::of(path, line, format!("{what}; see docs/adding-an-agent.md for the form"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROFILE: &str =
        "name: x\nscreen:\n  prompt: '>'\n  rules:\n    - {id: a, region: tail, literal: b, why: c}\n";

    /// Lines that amendments are made of, and some that they are not.
    fn line() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("amends: x".to_owned()),
            Just("add:".to_owned()),
            Just("  - {id: z, region: footer, regex: '(', says: {state: busy}, why: w}".to_owned()),
            Just("change: {a: {literal: c, regex: null}}".to_owned()),
            Just("change: {a: {}}".to_owned()),
            Just("remove: [a, a]".to_owned()),
            Just("set: {screen: {prompt: 'x', rules: 1}, name: y}".to_owned()),
            Just("set: {screen: null}".to_owned()),
            Just("made_for: 3".to_owned()),
            Just("? [1]".to_owned()),
            Just("&a [*a]".to_owned()),
            ".{0,20}",
        ]
    }

    proptest! {
        #[test]
        fn no_text_makes_an_amendment_panic(lines in proptest::collection::vec(line(), 0..7)) {
            let (path, text) = (Path::new("f.yml"), lines.join("\n"));
            if let Ok(true) = is_amendment(path, &text)
                && let Ok(amendment) = parse(path, &text)
                && let Err(problem) = apply(path, &text, amendment, PROFILE)
            {
                prop_assert!(problem.to_string().starts_with("f.yml"), "{problem}");
            }
        }
    }

    #[test]
    fn a_pattern_of_one_kind_takes_the_place_of_the_other_and_nothing_takes_a_key_out() {
        let text = "amends: x\nchange: {a: {regex: 'd', why: e, region: null}}\n";
        let amendment = parse(Path::new("f"), text).unwrap();
        let (profile, done) = apply(Path::new("f"), text, amendment, PROFILE).unwrap();
        let value: Value = serde_yaml::from_str(&profile).unwrap();
        let rule = &value["screen"]["rules"][0];
        assert_eq!((rule["regex"].as_str(), rule.get("literal"), rule.get("region")), (Some("d"), None, None));
        assert_eq!(done.summary(), "changes a");
    }
}
