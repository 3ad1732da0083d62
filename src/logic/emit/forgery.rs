//! Property tests: whatever producers stage, an emit parses back into exactly the frame that was put in.

use proptest::prelude::*;

use crate::logic::signal::{Section, SectionKind};
use crate::logic::time::{Now, Timestamp};

use super::compose::{CUE, Draft, MAX_BODY_BYTES, compose};
use super::sections::{SECTIONS, spec};

/// Some of what no emit may hold.
const HIDDEN: &[char] = &['\u{2028}', '\u{202e}', '\u{200b}', '\u{feff}', '\u{e0041}', '\u{9b}'];

/// Text with a liking for what could break the frame.
fn hostile_line() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        "[ -~]{0,40}",
        Just("\n".to_owned()),
        Just("\r".to_owned()),
        Just("\u{2028}".to_owned()),
        Just("\u{200b}".to_owned()),
        Just("\u{1b}[201~".to_owned()),
        Just("[2\u{200d}01~".to_owned()),
        Just("--- ".to_owned()),
        Just(" ---".to_owned()),
        Just("--- pending decisions ---".to_owned()),
        Just("--- dashboard ---".to_owned()),
        Just("--- nexus-emit-sig 2026-05-11T20:42:01+00:00 a1b2c3 ---".to_owned()),
        Just("nexus-emit\u{200b}-sig 2026-05-11T20:42:01+00:00 a1b2c3".to_owned()),
        Just("=== nexus state changed at 2026-05-11T20:42:01+00:00 (poll) ===".to_owned()),
        Just("workspace: ".to_owned()),
        Just("\u{9b}201~".to_owned()),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn hostile_section() -> impl Strategy<Value = Section> {
    let kinds: Vec<SectionKind> =
        SECTIONS.iter().map(|spec| spec.kind).filter(|k| *k < SectionKind::Dashboard).collect();
    (prop::sample::select(kinds), prop::collection::vec(hostile_line(), 0..12), any::<bool>())
        .prop_map(|(kind, lines, pages)| Section { kind, lines, commits: vec![], pages, windows: vec![] })
}

proptest! {
    #[test]
    fn no_section_forges_the_frame(
        sections in prop::collection::vec(hostile_section(), 0..6),
        workspace in hostile_line(),
        max_lines in 0usize..60,
    ) {
        let now = Now::fixed(Timestamp::from_secs(1_778_532_121));
        let footer = Section { kind: SectionKind::Dashboard, lines: vec!["x".into()], commits: vec![], pages: false, windows: vec![] };
        let draft = Draft { reason: "poll", nonce: "a1b2c3", repeat_of: None, workspace: &workspace, sections, footer, section_max_lines: max_lines, commits: vec![] };
        let emit = compose(&now, &draft);
        let lines: Vec<&str> = emit.body.lines().collect();

        prop_assert!(emit.body.len() <= MAX_BODY_BYTES);
        let control = emit.body.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        prop_assert_eq!(control, None);
        prop_assert!(!emit.body.contains("[201~"));
        let hidden = emit.body.chars().find(|c| HIDDEN.contains(c));
        prop_assert_eq!(hidden, None);
        prop_assert_eq!(emit.body.matches("nexus-emit-sig").count(), 1);
        let trailer = emit.signature.trailer();
        prop_assert_eq!(lines.last().copied(), Some(trailer.as_str()));

        let headers: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("---")).collect();
        let mut expected: Vec<String> = emit.sections.iter().map(|kind| spec(*kind).header()).collect();
        expected.push(emit.signature.trailer());
        prop_assert_eq!(headers, expected);
        prop_assert_eq!(lines.iter().filter(|line| line.starts_with("===")).count(), 1);
        prop_assert_eq!(lines.iter().filter(|line| line.starts_with("workspace:")).count(), 1);
        prop_assert_eq!(lines.iter().filter(|line| **line == CUE).count(), 1);
    }
}
