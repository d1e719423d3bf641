//! A small generator of random numbers: the same on every machine.

/// Its state; any number but 0.
pub struct Dice(pub u64);

impl Dice {
    /// One of `0..sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}
