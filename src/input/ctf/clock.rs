//! Converts the values of a clock to times on the common time line.

use super::schema::Clock;
use crate::base::time::{ClockCorrection, Timestamp, canonical_ns, exact_ns};

impl Clock {
    /// A value as babeltrace2 converts it: offset and cycles apart, in double precision. `None`: overflow.
    pub(super) fn canonical(&self, cycles: u64) -> Option<Timestamp> {
        let seconds = i128::from(self.offset_seconds) * 1_000_000_000;
        let offset = canonical_ns(self.offset_cycles, self.frequency)?;
        let value = canonical_ns(cycles, self.frequency)?;
        Timestamp::checked(seconds + offset + value)
    }
}

/// Converts a clock's cycles to times on the common time line.
#[derive(Clone, Copy, Debug)]
pub(super) struct CycleScale {
    /// Cycles from the origin to clock value 0.
    pub(super) base: i128,
    /// Cycles a second.
    pub(super) frequency: u64,
    /// From this clock's own time line to the common one, where the two differ.
    pub(super) correction: Option<ClockCorrection>,
}

impl CycleScale {
    pub(super) fn of(clock: &Clock) -> CycleScale {
        let whole = i128::from(clock.offset_seconds) * i128::from(clock.frequency);
        CycleScale { base: whole + i128::from(clock.offset_cycles), frequency: clock.frequency, correction: None }
    }

    /// The time of a clock value, clamped to the ends of the time line.
    #[inline]
    pub(super) fn ns(&self, cycles: u64) -> Timestamp {
        let cycles = self.base + i128::from(cycles);
        let ends = if cycles < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let own = exact_ns(cycles, self.frequency).unwrap_or(ends);
        self.correction.map_or(own, |correction| correction.apply(own))
    }
}
