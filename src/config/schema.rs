//! The JSON Schema (draft 2020-12) of the file, made from the key table, for editors.
//!
//! It is stricter than the reader where that helps while writing: unknown keys and the forms of older files are marked,
//! as `ng config check --strict` does.

use serde_json::{Map, Value as Json, json};

use super::keys::{self, Fate, Key, TEMPLATE_EXCEPTIONS, UNUSED};
use super::value::Kind;

/// The schema.
pub fn schema() -> Json {
    let mut root = section();
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("Configuration of the nexus watcher");
    for &key in keys::all() {
        put(&mut root, key.path, of_key(key));
    }
    for exception in TEMPLATE_EXCEPTIONS {
        let text = format!("{} Known, but not used by this version.", exception.doc);
        put(&mut root, exception.path, json!({"type": ["boolean", "null"], "description": text}));
    }
    for unused in UNUSED {
        let fate = match unused.fate {
            Fate::Later => "Known, but not used by this version.",
            Fate::Out => "Ignored: its part is left out.",
        };
        let about = json!({"description": fate});
        match unused.pattern.strip_suffix('*') {
            None => put(&mut root, unused.pattern, about),
            Some(start) => match start.strip_suffix('.') {
                // Whatever stands in this section.
                Some(path) => {
                    let at = parent(&mut root, path);
                    let open = at["properties"].as_object().is_some_and(|known| known.contains_key(last(path)));
                    if open {
                        at["properties"][last(path)]["additionalProperties"] = about;
                    } else {
                        at["properties"][last(path)] = about;
                    }
                }
                None => parent(&mut root, start)["patternProperties"][format!("^{}", last(start))] = about,
            },
        }
    }
    root
}

/// A section without keys. One that is written and empty means the defaults.
fn section() -> Json {
    json!({"type": ["object", "null"], "properties": {}, "patternProperties": {}, "additionalProperties": false})
}

/// The last part of a name.
fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The section in which a key stands, made where it is missing.
fn parent<'a>(root: &'a mut Json, path: &str) -> &'a mut Json {
    let mut at = root;
    for name in path.split('.').rev().skip(1).collect::<Vec<_>>().into_iter().rev() {
        if !at["properties"].is_object() {
            at["properties"] = Json::Object(Map::new());
        }
        let known = at["properties"].as_object().is_some_and(|known| known.contains_key(name));
        if !known {
            at["properties"][name] = section();
        }
        at = &mut at["properties"][name];
    }
    at
}

/// Puts the schema of a key in its place.
fn put(root: &mut Json, path: &str, value: Json) {
    parent(root, path)["properties"][last(path)] = value;
}

/// The schema of one key.
fn of_key(key: &Key) -> Json {
    // No control character, in a form that every dialect of patterns knows.
    let line = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";
    let mut of = match &key.kind {
        Kind::List { words, may_be_empty, .. } => {
            let item = if words.is_empty() {
                json!({"type": "string", "minLength": 1, "pattern": line})
            } else {
                json!({"type": "string", "enum": words})
            };
            json!({"type": ["array", "null"], "items": item, "minItems": usize::from(!may_be_empty)})
        }
        Kind::Switch { .. } => json!({"type": ["boolean", "null"]}),
        Kind::Path { .. } | Kind::Text { may_be_empty: true, .. } => {
            json!({"type": ["string", "null"], "pattern": line})
        }
        Kind::Text { .. } => {
            json!({"type": ["string", "null"], "pattern": line, "minLength": 1})
        }
        Kind::Whole { range, .. } => {
            json!({"type": ["integer", "null"], "minimum": range.start(), "maximum": range.end()})
        }
        Kind::Word { words, .. } => {
            let words: Vec<Json> = words.iter().map(|word| json!(word)).chain([Json::Null]).collect();
            json!({"enum": words})
        }
    };
    let (expected, env, reload) = (key.kind.expected(), key.env, key.reload.name());
    of["description"] = json!(format!("{} ({expected}; {env}; {reload})", key.doc));
    of["default"] = key.kind.default_value().to_json();
    of
}
