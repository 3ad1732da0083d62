//! The only source of randomness.

#![expect(clippy::disallowed_methods, reason = "this is the module that draws random numbers")]

use rand::RngExt as _;

/// Sixteen hex digits that no screen can know: marks between answers.
pub fn mark() -> String {
    format!("{:016x}", rand::rng().random::<u64>())
}

/// Six lower-case hex digits: the nonce of an emit.
pub fn nonce() -> String {
    format!("{:06x}", rand::rng().random_range(0..0x100_0000_u32))
}
