//! Writes the tables of `docs/accuracy.md`: `cargo run --example accuracy`, after captures or profiles changed.

#![expect(clippy::unwrap_used, reason = "a generator that can't read its captures has to stop")]

#[path = "../tests/support/accuracy.rs"]
mod accuracy;
#[path = "../tests/support/captures.rs"]
#[expect(dead_code, reason = "tests read more of a capture")]
mod captures;

fn main() {
    let path = captures::root().join(accuracy::PAGE);
    let page = accuracy::page(&std::fs::read_to_string(&path).unwrap());
    std::fs::write(&path, page).unwrap();
}
