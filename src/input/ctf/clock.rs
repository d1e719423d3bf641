//! From the values of a clock to the common time line.

use super::schema::Clock;
use crate::base::time::{Shift, Timestamp, canonical_ns, exact_ns};

impl Clock {
    /// A value as babeltrace2 converts it: offset and cycles apart, in double precision. `None`: overflow.
    pub(super) fn canonical(&self, cycles: u64) -> Option<Timestamp> {
        let seconds = i128::from(self.offset_seconds) * 1_000_000_000;
        let offset = canonical_ns(self.offset_cycles, self.frequency)?;
        let value = canonical_ns(cycles, self.frequency)?;
        Timestamp::checked(seconds + offset + value)
    }
}

/// The way from a clock's cycles to the common time line.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockTransform {
    /// Cycles from the origin to clock value 0.
    pub(super) base: i128,
    /// Cycles a second.
    pub(super) frequency: u64,
    /// From this clock's own time line to the common one, where they are two.
    pub(super) shift: Option<Shift>,
}

impl ClockTransform {
    pub(super) fn of(clock: &Clock) -> ClockTransform {
        let whole = i128::from(clock.offset_seconds) * i128::from(clock.frequency);
        ClockTransform { base: whole + i128::from(clock.offset_cycles), frequency: clock.frequency, shift: None }
    }

    /// Nanoseconds from the origin; where they do not fit, the end of the line on that side.
    #[inline]
    pub(super) fn ns(&self, cycles: u64) -> Timestamp {
        let cycles = self.base + i128::from(cycles);
        let ends = if cycles < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let own = exact_ns(cycles, self.frequency).unwrap_or(ends);
        self.shift.map_or(own, |shift| shift.apply(own))
    }
}
