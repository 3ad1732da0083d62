//! Transcripts of real sessions, and files that change under the reader.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde_json::json;

use super::*;

const SIG: &str = "nexus-emit-sig 2026-05-11T13:42:01-07:00 0a1b2c";

fn file(records: &[Value]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for record in records {
        writeln!(file, "{record}").unwrap();
    }
    file
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/claude-hooks").join(name)
}

fn find_signature(path: &Path, offset: u64, needle: &str) -> io::Result<Search> {
    find(path, offset, Wanted::Part(needle))
}

#[test]
fn only_what_was_sent_is_a_proof() {
    let pasted = format!("<pasted_content id=\"3290\">\n…\n--- {SIG} ---\n</pasted_content id=\"3290\">");
    let user = |fields: Value, content: Value| {
        let mut record = json!({"type": "user", "message": {"role": "user", "content": content}});
        record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        record
    };
    let quoted = format!("<task-notification>\n{SIG}");
    for (record, found) in [
        (user(json!({"promptSource": "typed"}), pasted.clone().into()), Found::User),
        (user(json!({"promptSource": "queued"}), json!([{"type": "text", "text": pasted}])), Found::User),
        (user(json!({}), pasted.clone().into()), Found::User),
        (user(json!({"promptSource": "system"}), pasted.clone().into()), Found::None),
        (user(json!({"isMeta": true}), pasted.clone().into()), Found::None),
        (user(json!({"isSidechain": true}), pasted.clone().into()), Found::None),
        (user(json!({"isCompactSummary": true}), pasted.clone().into()), Found::None),
        (user(json!({}), json!([{"type": "tool_result", "content": pasted}])), Found::None),
        (user(json!({"promptSource": "typed"}), json!([{"type": "tool_result", "content": pasted}])), Found::None),
        (user(json!({}), format!("<local-command-stdout>{SIG}").into()), Found::None),
        (json!({"type": "queue-operation", "operation": "enqueue", "content": pasted}), Found::Enqueued),
        (json!({"type": "queue-operation", "operation": "enqueue", "content": quoted}), Found::None),
        (json!({"type": "queue-operation", "operation": "remove", "content": pasted}), Found::None),
        (json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": pasted}}), Found::User),
        (json!({"type": "attachment", "attachment": {"type": "file", "prompt": pasted}}), Found::None),
        (json!({"type": "assistant", "message": {"content": pasted}}), Found::None),
        (json!({"type": "api-request-blob", "body": pasted}), Found::None),
        (json!([SIG]), Found::None),
    ] {
        let file = file(&[json!({"type": "mode"}), record.clone()]);
        let search = find_signature(file.path(), 0, SIG).unwrap();
        assert_eq!((search.found, search.is_at_end), (found, true), "{record}");
        assert_eq!(search.next_offset, end_offset(file.path()).unwrap());
    }
}

#[test]
fn a_recorded_session_shows_the_queue_and_then_the_prompt() {
    let path = sample("transcript-sample-2.1.332.jsonl");
    assert_eq!(find_signature(&path, 0, "a queued note").unwrap().found, Found::User);
    let text = fs::read_to_string(&path).unwrap();
    let enqueued = text.find("a queued note").unwrap();
    let end = enqueued + text[enqueued..].find('\n').unwrap() + 1;
    let cut = tempfile::NamedTempFile::new().unwrap();
    fs::write(cut.path(), &text[..end]).unwrap();
    assert_eq!(find_signature(cut.path(), 0, "a queued note").unwrap().found, Found::Enqueued);
    let old = sample("transcript-sample-2.0.77.jsonl");
    assert_eq!(find_signature(&old, 0, "SCENARIO:text hello").unwrap().found, Found::User);
}

#[test]
fn a_line_that_is_still_being_written_is_read_when_it_is_whole() {
    let record = json!({"type": "user", "promptSource": "typed", "message": {"content": SIG}}).to_string();
    let (first, second) = record.split_at(record.len() - 10);
    let mut file = file(&[json!({"type": "mode"})]);
    let begin = end_offset(file.path()).unwrap();
    write!(file, "{first}").unwrap();
    let search = find_signature(file.path(), begin, SIG).unwrap();
    assert_eq!((search.found, search.next_offset), (Found::None, begin));
    writeln!(file, "{second}").unwrap();
    let search = find_signature(file.path(), search.next_offset, SIG).unwrap();
    assert_eq!((search.found, search.next_offset), (Found::User, end_offset(file.path()).unwrap()));
    assert_eq!(find_signature(file.path(), search.next_offset, SIG).unwrap().found, Found::None);
}

#[test]
fn an_offset_taken_inside_a_line_skips_that_line_only() {
    let mut file = file(&[]);
    write!(file, "{{\"type\":\"mo").unwrap();
    let inside = end_offset(file.path()).unwrap();
    writeln!(file, "de\"}}").unwrap();
    writeln!(file, "{}", json!({"type": "user", "promptSource": "typed", "message": {"content": SIG}})).unwrap();
    assert_eq!(find_signature(file.path(), inside, SIG).unwrap().found, Found::User);
}

#[test]
fn a_missing_or_replaced_file_is_read_from_the_start_when_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("x.jsonl");
    let nothing = Search { found: Found::None, next_offset: 0, is_at_end: true };
    assert_eq!(find_signature(&missing, 500, SIG).unwrap(), nothing);
    let short = file(&[json!({"type": "user", "message": {"content": SIG}})]);
    assert_eq!(find_signature(short.path(), 1 << 30, SIG).unwrap().found, Found::User);
    assert!(find_signature(dir.path(), 0, SIG).is_err());
}

#[test]
fn a_file_longer_than_one_read_is_read_in_pieces() {
    let mut file = file(&[json!({"type": "mode", "x": "y".repeat(9 << 20)})]);
    writeln!(file, "{}", json!({"type": "user", "promptSource": "typed", "message": {"content": SIG}})).unwrap();
    let (mut offset, mut calls) = (0, 0);
    loop {
        let search = find_signature(file.path(), offset, SIG).unwrap();
        calls += 1;
        assert!(search.next_offset > offset && calls < 5);
        if search.found == Found::User {
            break;
        }
        offset = search.next_offset;
    }
    assert!(calls > 1);
}

#[test]
fn a_transcript_is_bound_by_its_session_id() {
    let dir = tempfile::tempdir().unwrap();
    let env = BTreeMap::from([("HOME".to_owned(), dir.path().display().to_string())]);
    let place = dir.path().join(".claude/projects/-srv-demo-x");
    fs::create_dir_all(&place).unwrap();
    for id in ["aaa", "bbb"] {
        fs::write(place.join(format!("{id}.jsonl")), "").unwrap();
    }
    let (ours, other) = (place.join("aaa.jsonl"), place.join("bbb.jsonl"));
    let cwd = Path::new("/srv/demo.x");
    assert_eq!(locate(&env, "aaa", None, Some(cwd)), Some(ours.clone()));
    assert_eq!(locate(&env, "aaa", None, None), Some(ours.clone()));
    assert_eq!(locate(&env, "aaa", Some(&other), Some(Path::new("/elsewhere"))), Some(ours.clone()));
    let told = dir.path().join("aaa.jsonl");
    fs::write(&told, "").unwrap();
    assert_eq!(locate(&env, "aaa", Some(&told), Some(cwd)), Some(told));
    for id in ["ccc", "", "../bbb", "a/b"] {
        assert_eq!(locate(&env, id, None, Some(cwd)), None, "{id}");
    }
    let moved = BTreeMap::from([("CLAUDE_CONFIG_DIR".to_owned(), dir.path().join(".claude").display().to_string())]);
    assert_eq!(locate(&moved, "aaa", None, Some(cwd)), Some(ours));
}

#[test]
fn a_short_text_is_found_as_the_whole_of_a_prompt_only() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for content in ["yes, and more", "sa\"y\"  yes"] {
        let record = serde_json::json!({"type": "user", "promptSource": "typed", "message": {"content": content}});
        std::io::Write::write_all(&mut file, format!("{record}\n").as_bytes()).unwrap();
    }
    let found = |whole: &str| find(file.path(), 0, Wanted::Whole(whole)).unwrap().found;
    assert_eq!(found("yes"), Found::None);
    assert_eq!(found("sa\"y\" yes"), Found::User);
}

#[test]
fn the_tail_holds_whole_records_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    assert!(tail(&path, 100).unwrap().is_empty());
    for (text, max, expected) in [
        ("", 100, vec![]),
        ("one\ntwo\nthr", 100, vec!["one", "two"]),
        ("one\ntwo\nthree\n", 11, vec!["two", "three"]),
        ("one\ntwo\nthree\n", 10, vec!["three"]),
        ("a-line-longer-than-that", 10, vec![]),
        ("a-line-longer-than-that\n", 10, vec![]),
    ] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(tail(&path, max).unwrap(), expected, "{text:?} {max}");
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(tail(&path, 10).is_err());
}
