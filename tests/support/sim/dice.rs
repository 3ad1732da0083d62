//! Numbers that look random and are the same in each run with the same seed.

use std::time::Duration;

/// An xorshift generator.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice of a seed; neighbouring seeds give unlike numbers.
    pub(crate) fn new(seed: u64) -> Self {
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    /// Whether something that happens in so many of a hundred cases happens.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A time from one to the other, in milliseconds.
    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }

    /// A time from one to the other, in whole seconds and some milliseconds.
    pub(crate) fn secs(&mut self, from: u64, to: u64) -> Duration {
        self.millis(from * 1000, to * 1000)
    }

    /// A time that is this long on average, and up to twice as long.
    pub(crate) fn span(&mut self, average: Duration) -> Duration {
        self.millis(0, u64::try_from(average.as_millis()).unwrap_or(u64::MAX / 4) * 2)
    }

    /// Further dice that roll on their own.
    pub(crate) fn split(&mut self) -> Self {
        Self::new(self.next())
    }

    /// One of these.
    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let at = self.below(of.len() as u64);
        &of[usize::try_from(at).unwrap()]
    }
}
