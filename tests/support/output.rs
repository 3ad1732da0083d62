//! What a program that ended said, against what it should have said.

use std::process::Output;

/// What it said on either stream.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Asserts the exit code, and that `words` are among what it said on either stream.
pub(crate) fn check(output: &Output, code: i32, words: &str) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "{words:?} in {said}");
}
