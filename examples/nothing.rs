//! A program that does nothing: what starting a program costs, for `benches/hook.rs` to compare with.

fn main() {}
