//! The tests' generator of pseudo-random numbers: the same numbers for the same seed on every machine, so that a
//! failure is its seed.
#![allow(dead_code)]

/// The state of a xorshift generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator for this seed. Small seeds are spread over all bits.
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.below(2);
        }
        random
    }

    /// A number below `n`; 0 where `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }

    /// A number from `from` to below `to`.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.below((to - from).max(1) as usize) as i64
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// `value`, up to `percent` percent more or less.
    pub fn around(&mut self, value: i64, percent: i64) -> i64 {
        value * self.between(100 - percent, 101 + percent) / 100
    }

    /// A time of work: 80 to 120 % of `value`, and once in 12 times 100 to 160 %.
    pub fn about(&mut self, value: i64) -> i64 {
        let part = if self.once_in(12) { self.between(100, 160) } else { self.between(80, 120) };
        value * part / 100
    }
}
