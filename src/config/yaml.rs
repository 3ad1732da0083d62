//! YAML as written: a tree that keeps order and repeated keys, and where each part of it stands in the text.
//!
//! The only importer of the YAML crate besides the agent profiles. It judges nothing; `load` does. The crate gives a
//! position with an error only, so [`position`] reads the text again and fails on purpose at the part in question.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, EnumAccess, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A place in a text. Units: lines and columns start at 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// A part of a YAML document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Nothing was written.
    Null,
    /// `true` or `false`.
    Switch(bool),
    /// A whole number that is not negative.
    Whole(u64),
    /// Any other number.
    Number(f64),
    /// Text, quoted or not.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys with values, in the order of the text; a repeated key is there twice.
    Map(Vec<(String, Node)>),
    /// A value with a `!tag`.
    Tagged,
}

/// Why a text is not YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotYaml {
    /// Where, if it is known.
    pub(super) at: Option<Position>,
    /// The parser's reason.
    pub(super) reason: String,
}

/// Which half of an entry is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// Reads a text; an empty one is [`Node::Null`].
pub(super) fn parse(text: &str) -> Result<Node, NotYaml> {
    let is_blank = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
    if is_blank {
        return Ok(Node::Null);
    }
    serde_yaml::from_str(text).map_err(|error| {
        let at = error.location().map(|at| Position { line: at.line(), column: at.column() });
        NotYaml { reason: reason(&error.to_string(), at), at: at.map(|at| as_edited(text, at)) }
    })
}

/// The parser's message without the position, which is told apart.
fn reason(message: &str, at: Option<Position>) -> String {
    if message.contains("more than one document") {
        return "there is more than one document in it (a line of --- begins another)".into();
    }
    match at {
        Some(Position { line, column }) => message.replacen(&format!(" at line {line} column {column}"), "", 1),
        None => message.to_owned(),
    }
}

/// Where the part of a parsed text stands that is reached by these entry and item numbers, counted from zero.
pub(super) fn position(text: &str, route: &[usize], half: Half) -> Option<Position> {
    let finder = Finder { route, half };
    let error = finder.deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
    error.location().map(|at| as_edited(text, Position { line: at.line(), column: at.column() }))
}

/// A position of the parser as people count lines: YAML ends a line at characters that editors show within one.
fn as_edited(text: &str, at: Position) -> Position {
    let (mut parsed, mut edited) = (Position { line: 1, column: 1 }, Position { line: 1, column: 1 });
    let mut letters = text.chars().peekable();
    while (parsed.line, parsed.column) < (at.line, at.column) {
        let Some(letter) = letters.next() else { break };
        let ends_both = letter == '\n';
        // A carriage return before a line feed ends the line together with it.
        let ends = ends_both
            || matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}')
            || (letter == '\r' && letters.peek() != Some(&'\n'));
        let next = |at: Position, ends: bool| {
            if ends { Position { line: at.line + 1, column: 1 } } else { Position { column: at.column + 1, ..at } }
        };
        if parsed.line < at.line || !ends {
            parsed = next(parsed, ends);
        } else {
            // The end of the line that is meant comes first: the position is beyond it.
            break;
        }
        edited = next(edited, ends_both);
    }
    edited
}

/// Descends along a route and fails at its end.
struct Finder<'a> {
    route: &'a [usize],
    half: Half,
}

/// Accepts nothing, so that the parser reports the position of whatever stands here.
struct Stop;

impl<'de> DeserializeSeed<'de> for Stop {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Stop {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing")
    }
}

impl<'de> DeserializeSeed<'de> for Finder<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.route.is_empty() { Stop.deserialize(deserializer) } else { deserializer.deserialize_any(self) }
    }
}

impl<'de> Visitor<'de> for Finder<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or keys with values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((&wanted, rest)) = self.route.split_first() else { return Ok(()) };
        for _before in 0..wanted {
            if map.next_entry::<IgnoredAny, IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        if rest.is_empty() && self.half == Half::Key {
            map.next_key_seed(Stop)?;
        } else if map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Finder { route: rest, half: self.half })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some((&wanted, rest)) = self.route.split_first() else { return Ok(()) };
        for _before in 0..wanted {
            if list.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        list.next_element_seed(Finder { route: rest, half: self.half })?;
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

/// Builds a [`Node`] from whatever stands there.
struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Switch(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Whole(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "the number is only shown in a message")]
    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(u64::try_from(value).map_or(Node::Number(value as f64), Node::Whole))
    }

    #[expect(clippy::cast_precision_loss, reason = "the number is only shown in a message")]
    fn visit_u128<E>(self, value: u128) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "the number is only shown in a message")]
    fn visit_i128<E>(self, value: i128) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Node>()? {
            entries.push((key.as_key(), map.next_value()?));
        }
        Ok(Node::Map(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Node, A::Error> {
        use serde::de::VariantAccess as _;
        let (_tag, content) = tagged.variant::<String>()?;
        content.newtype_variant::<IgnoredAny>()?;
        Ok(Node::Tagged)
    }
}

impl Node {
    /// This node as the name of a key; YAML allows more than text there.
    fn as_key(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Null => "~".into(),
            Self::Switch(value) => value.to_string(),
            Self::Whole(value) => value.to_string(),
            Self::Number(value) => value.to_string(),
            Self::List(_) | Self::Map(_) | Self::Tagged => "?".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, route: &[usize], half: Half, line: usize, column: usize) {
        parse(text).unwrap();
        assert_eq!(position(text, route, half), Some(Position { line, column }), "{text:?} {route:?} {half:?}");
    }

    #[test]
    fn keys_and_values_are_found_in_block_style() {
        let text = "# c\na:\n  b: 1\n  c:\n    d: 'x'\ne: [1, two]\n";
        check(text, &[0], Half::Key, 2, 1);
        check(text, &[0, 0], Half::Key, 3, 3);
        check(text, &[0, 0], Half::Value, 3, 6);
        check(text, &[0, 1, 0], Half::Value, 5, 8);
        check(text, &[1, 1], Half::Value, 6, 8);
    }

    #[test]
    fn the_second_of_a_repeated_key_is_found() {
        check("a: 1\na: 2\n", &[1], Half::Key, 2, 1);
    }

    #[test]
    fn positions_are_found_in_flow_style_behind_quotes_and_wide_letters() {
        check("{a: {'é b': 1, \"c\": 2}}", &[0, 1], Half::Key, 1, 16);
        check("é: ü\nx: 3", &[0], Half::Value, 1, 4);
    }

    #[test]
    fn lines_are_counted_as_editors_count_them() {
        check("a: 'x\u{2028}y'\nb: 'z\u{85}'\nc: 5\n", &[2], Half::Value, 3, 4);
        check("a: 1\r\nb: 2\r\n", &[1], Half::Value, 2, 4);
        let broken = parse("60monitor:\ta\u{2028}A").unwrap_err();
        assert_eq!(broken.at.map(|at| at.line), Some(1), "{broken:?}");
    }

    #[test]
    fn an_alias_is_found_where_its_anchor_is() {
        check("a: &x soon\nb: *x\n", &[1], Half::Value, 1, 4);
    }

    #[test]
    fn a_route_that_leads_nowhere_has_no_position() {
        assert_eq!(position("a: 1\n", &[7], Half::Key), None);
        assert_eq!(position("a: 1\n", &[0, 0], Half::Key).map(|at| at.line), Some(1));
    }

    #[test]
    fn every_kind_of_node_is_kept() {
        let text = "a: ~\nb: true\nc: 7\nd: -7\ne: 1.5\nf: yes\ng: \"30\"\nh: [1]\ni: {}\nj: !t 5\nk:\n1: x\na: 2\n";
        let entry = |key: &str, node: Node| (key.to_owned(), node);
        assert_eq!(
            parse(text),
            Ok(Node::Map(vec![
                entry("a", Node::Null),
                entry("b", Node::Switch(true)),
                entry("c", Node::Whole(7)),
                entry("d", Node::Number(-7.0)),
                entry("e", Node::Number(1.5)),
                entry("f", Node::Text("yes".into())),
                entry("g", Node::Text("30".into())),
                entry("h", Node::List(vec![Node::Whole(1)])),
                entry("i", Node::Map(Vec::new())),
                entry("j", Node::Tagged),
                entry("k", Node::Null),
                entry("1", Node::Text("x".into())),
                entry("a", Node::Whole(2)),
            ]))
        );
    }

    #[test]
    fn a_text_without_content_is_null() {
        for text in ["", "\n\n", "# only a comment\n", "---\n", "   \n# c"] {
            assert_eq!(parse(text), Ok(Node::Null), "{text:?}");
        }
    }
}
