//! JSON text with the place of everything in it, and edits that leave all else as it is.
//!
//! For settings files that belong to somebody else: their order, spacing and unknown keys stay byte for byte. Each edit
//! returns a new text; the places of the old one are void then.

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

/// A text that is not the JSON that is needed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {what}")]
pub struct Mistake {
    /// Line, from one.
    pub line: usize,
    /// Column, from one.
    pub column: usize,
    /// What is wrong there.
    pub what: String,
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Offset of its first byte.
    pub(super) start: usize,
    /// Offset behind its last byte.
    pub(super) end: usize,
    /// What it is.
    pub(super) shape: Shape,
}

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An object's members, in order.
    Object(Vec<Member>),
    /// A list's elements, in order.
    Array(Vec<Node>),
    /// Anything else.
    Scalar,
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Offset of the quote before its key.
    pub(super) start: usize,
    /// Its key.
    pub(super) key: String,
    /// Its value.
    pub(super) value: Node,
}

impl Node {
    /// Reads a whole text.
    ///
    /// Errors: the first thing that is no JSON, or a key that stands twice in one object: which of the two counts is
    ///         a matter of the reader.
    pub(super) fn parse(text: &str) -> Result<Self, Mistake> {
        // The known reader judges; ours only finds places.
        if let Err(error) = serde_json::from_str::<Value>(text.trim_start_matches(BOM)) {
            let said = error.to_string();
            let what = said.split(" at line ").next().unwrap_or_default().to_owned();
            return Err(Mistake { line: error.line(), column: error.column(), what });
        }
        let mut reader = Reader { text, at: if text.starts_with(BOM) { BOM.len_utf8() } else { 0 } };
        reader.value()
    }

    /// The member with this key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match &self.shape {
            Shape::Object(members) => members.iter().find(|member| member.key == key).map(|member| &member.value),
            _ => None,
        }
    }

    /// The elements of a list; none of anything else.
    pub(super) fn elements(&self) -> &[Self] {
        match &self.shape {
            Shape::Array(elements) => elements,
            _ => &[],
        }
    }

    /// The value as text.
    pub(super) fn text<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// The value, if it is a string.
    pub(super) fn string(&self, text: &str) -> Option<String> {
        serde_json::from_str(self.text(text)).ok()
    }
}

/// The mark with which some editors begin a file.
const BOM: char = '\u{feff}';

/// Finds places in a text that is known to be JSON.
struct Reader<'a> {
    /// The whole text.
    text: &'a str,
    /// Offset of the next byte.
    at: usize,
}

impl Reader<'_> {
    /// A value; afterwards the next byte is the one behind it.
    fn value(&mut self) -> Result<Node, Mistake> {
        self.blanks();
        let start = self.at;
        let shape = match self.peek() {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => {
                self.string();
                Shape::Scalar
            }
            _ => {
                while self.peek().is_some_and(|b| !b",]} \t\r\n".contains(&b)) {
                    self.at += 1;
                }
                Shape::Scalar
            }
        };
        Ok(Node { start, end: self.at, shape })
    }

    /// An object, at its brace.
    fn object(&mut self) -> Result<Shape, Mistake> {
        let mut members: Vec<Member> = Vec::new();
        self.at += 1;
        loop {
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'"') => {
                    let start = self.at;
                    self.string();
                    let key: String =
                        serde_json::from_str(self.text.get(start..self.at).unwrap_or_default()).unwrap_or_default();
                    if members.iter().any(|member| member.key == key) {
                        return Err(self.mistake(start, format!("the key {key:?} stands twice")));
                    }
                    self.blanks();
                    self.at += 1;
                    members.push(Member { start, key, value: self.value()? });
                }
                _ => {
                    self.at += 1;
                    return Ok(Shape::Object(members));
                }
            }
        }
    }

    /// A list, at its bracket.
    fn array(&mut self) -> Result<Shape, Mistake> {
        let mut elements = Vec::new();
        self.at += 1;
        loop {
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                None | Some(b']') => {
                    self.at += 1;
                    return Ok(Shape::Array(elements));
                }
                _ => elements.push(self.value()?),
            }
        }
    }

    /// Passes over a string, at its quote.
    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return;
            }
        }
    }

    /// Passes over blanks.
    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    /// The next byte.
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// A mistake at an offset.
    fn mistake(&self, at: usize, what: String) -> Mistake {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Mistake { line, column, what }
    }
}

/// How a file is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Layout {
    /// One level of indentation.
    unit: String,
    /// The end of a line.
    newline: &'static str,
}

impl Layout {
    /// The layout of a text; two blanks and `\n` where it tells none.
    fn of(text: &str) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indents = text.lines().skip(1).map(|line| line.len() - line.trim_start_matches([' ', '\t']).len());
        let first = text.lines().skip(1).zip(indents).find(|(_, indent)| *indent > 0);
        let unit = first.and_then(|(line, indent)| line.get(..indent)).unwrap_or("  ").to_owned();
        Self { unit, newline }
    }

    /// A value over several lines, of which all but the first begin with `indent`.
    fn print(&self, value: &impl Serialize, indent: &str) -> String {
        let mut bytes = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
        value.serialize(&mut serializer).expect("what we add can be written as JSON");
        let text = String::from_utf8(bytes).expect("JSON is UTF-8");
        text.replace('\n', &format!("{}{indent}", self.newline))
    }
}

/// The blanks before an offset, if only they stand before it on its line and a line stands above.
fn indent_at(text: &str, at: usize) -> Option<&str> {
    let before = text.get(..at)?;
    let line = before.get(before.rfind('\n')? + 1..)?;
    line.chars().all(|ch| ch == ' ' || ch == '\t').then_some(line)
}

/// The indentation of the line on which an offset stands.
fn indent_of_line(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..blanks).unwrap_or_default()
}

/// The text with another value in this place.
pub(super) fn replace(text: &str, node: &Node, value: &impl Serialize) -> String {
    let new = Layout::of(text).print(value, indent_of_line(text, node.start));
    splice(text, node.start, node.end, &new)
}

/// The text with a further element at the end of this list.
pub(super) fn append(text: &str, list: &Node, value: &impl Serialize) -> String {
    let ends = list.elements().last().map(|last| (last.start, last.end));
    add(text, list, ends, None, value)
}

/// The text with a further member at the end of this object.
pub(super) fn insert(text: &str, object: &Node, key: &str, value: &impl Serialize) -> String {
    let ends = match &object.shape {
        Shape::Object(members) => members.last().map(|last| (last.start, last.value.end)),
        _ => None,
    };
    add(text, object, ends, Some(key), value)
}

/// Adds behind the last thing in a container, in the manner of that thing.
fn add(
    text: &str,
    container: &Node,
    last: Option<(usize, usize)>,
    key: Option<&str>,
    value: &impl Serialize,
) -> String {
    let layout = Layout::of(text);
    let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
    let Some((start, end)) = last else {
        let outer = indent_of_line(text, container.start);
        let inner = format!("{outer}{}", layout.unit);
        let new = format!("{n}{inner}{key}{}{n}{outer}", layout.print(value, &inner), n = layout.newline);
        return splice(text, container.start + 1, container.end.saturating_sub(1), &new);
    };
    let new = match indent_at(text, start) {
        Some(indent) => format!(",{}{indent}{key}{}", layout.newline, layout.print(value, indent)),
        None => format!(", {key}{}", serde_json::to_string(value).expect("what we add can be written as JSON")),
    };
    splice(text, end, end, &new)
}

/// The text without this element of a list.
pub(super) fn remove_element(text: &str, list: &Node, index: usize) -> String {
    let places: Vec<(usize, usize)> = list.elements().iter().map(|element| (element.start, element.end)).collect();
    remove(text, list, &places, index)
}

/// The text without this member of an object.
pub(super) fn remove_member(text: &str, object: &Node, key: &str) -> String {
    let Shape::Object(members) = &object.shape else { return text.to_owned() };
    let places: Vec<(usize, usize)> = members.iter().map(|member| (member.start, member.value.end)).collect();
    match members.iter().position(|member| member.key == key) {
        Some(index) => remove(text, object, &places, index),
        None => text.to_owned(),
    }
}

/// Removes one of several things with the comma that parts it from a neighbour.
fn remove(text: &str, container: &Node, places: &[(usize, usize)], index: usize) -> String {
    let Some((start, end)) = places.get(index) else { return text.to_owned() };
    let before = index.checked_sub(1).and_then(|index| places.get(index));
    let after = index.checked_add(1).and_then(|index| places.get(index));
    match (before, after) {
        (Some((_, before)), _) => splice(text, *before, *end, ""),
        (None, Some((after, _))) => splice(text, *start, *after, ""),
        (None, None) => splice(text, container.start + 1, container.end.saturating_sub(1), ""),
    }
}

/// The text with another piece between two offsets.
fn splice(text: &str, start: usize, end: usize, new: &str) -> String {
    let (head, tail) = (text.get(..start).unwrap_or_default(), text.get(end..).unwrap_or_default());
    [head, new, tail].concat()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_mistake_is_named_with_its_place() {
        for (text, line, column, words) in [
            ("{\n  \"a\": 1,\n}", 3, 1, "trailing comma"),
            ("// mine\n{}", 1, 1, "expected value"),
            ("{\"a\": 1\n \"b\": 2}", 2, 2, "expected `,` or `}`"),
            ("", 1, 0, "EOF"),
            ("{} x", 1, 4, "trailing characters"),
            ("{\n  \"hooks\": {},\n  \"hooks\": {}\n}", 3, 3, "stands twice"),
        ] {
            let mistake = Node::parse(text).unwrap_err();
            assert_eq!((mistake.line, mistake.column), (line, column), "{text:?}: {mistake}");
            assert!(mistake.what.contains(words), "{text:?}: {mistake}");
        }
    }

    #[test]
    fn every_value_is_found_where_it_stands() {
        let text = "\u{feff}{ \"a\\\"b\" : [ 1, \"x]}\" , {\"c\":null} ], \"d\":-1.5e3 }\n";
        let root = Node::parse(text).unwrap();
        let list = root.get("a\"b").unwrap();
        let found: Vec<&str> = list.elements().iter().map(|element| element.text(text)).collect();
        assert_eq!(found, ["1", "\"x]}\"", "{\"c\":null}"]);
        assert_eq!(root.get("d").unwrap().text(text), "-1.5e3");
        assert_eq!(list.elements()[1].string(text).unwrap(), "x]}");
    }

    /// Adds a member and a further element, then removes both; the text must be what it was.
    fn check_there_and_back(text: &str, with_both: &str) {
        let added = insert(text, &Node::parse(text).unwrap(), "new", &json!({"k": []}));
        let root = Node::parse(&added).unwrap();
        let both = append(&added, root.get("l").unwrap(), &json!({"k": 1}));
        assert_eq!(both, with_both);
        let root = Node::parse(&both).unwrap();
        let list = root.get("l").unwrap();
        let without = remove_element(&both, list, list.elements().len() - 1);
        let back = remove_member(&without, &Node::parse(&without).unwrap(), "new");
        assert_eq!(back, text);
    }

    #[test]
    fn what_is_added_has_the_layout_of_what_stands_there_and_goes_without_a_trace() {
        check_there_and_back(
            "{\n  \"l\": [\n    1\n  ],\n  \"z\": 0\n}\n",
            "{\n  \"l\": [\n    1,\n    {\n      \"k\": 1\n    }\n  ],\n  \"z\": 0,\n  \"new\": {\n    \"k\": []\n  }\n}\n",
        );
        check_there_and_back(
            "{\r\n\t\"l\": []\r\n}",
            "{\r\n\t\"l\": [\r\n\t\t{\r\n\t\t\t\"k\": 1\r\n\t\t}\r\n\t],\r\n\t\"new\": {\r\n\t\t\"k\": []\r\n\t}\r\n}",
        );
        check_there_and_back("{\"l\":[1]}", "{\"l\":[1, {\"k\":1}], \"new\": {\"k\":[]}}");
    }

    #[test]
    fn a_value_is_replaced_in_its_place() {
        let text = "{\n    \"a\": [\n        {\"x\": 1}\n    ]\n}";
        let root = Node::parse(text).unwrap();
        let new = replace(text, &root.get("a").unwrap().elements()[0], &json!({"y": 2}));
        assert_eq!(new, "{\n    \"a\": [\n        {\n            \"y\": 2\n        }\n    ]\n}");
    }

    #[test]
    fn the_first_of_several_goes_with_the_comma_behind_it() {
        let text = "[\n  1,\n  2\n]";
        let list = Node::parse(text).unwrap();
        assert_eq!(remove_element(text, &list, 0), "[\n  2\n]");
        assert_eq!(remove_element("[1]", &Node::parse("[1]").unwrap(), 0), "[]");
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic_and_edits_leave_json(text in r#"[\{\}\[\]",:\\ \n\tau019é-]{0,40}"#) {
            if let Ok(root) = Node::parse(&text) {
                let value = json!({"k": [1, {"deep": "é"}]});
                let edited = match &root.shape {
                    Shape::Object(_) => insert(&text, &root, "a new key", &value),
                    Shape::Array(_) => append(&text, &root, &value),
                    Shape::Scalar => replace(&text, &root, &value),
                };
                proptest::prop_assert!(serde_json::from_str::<Value>(&edited).is_ok(), "{text:?} became {edited:?}");
            }
        }
    }
}
