//! From the values of a clock to the common time line.

use super::schema::Clock;
use crate::base::time::{Shift, Timestamp, exact_ns};

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
        let ends = if cycles < 0 { i64::MIN } else { i64::MAX };
        let own = exact_ns(cycles, self.frequency).unwrap_or(ends);
        self.shift.map_or(own, |shift| shift.apply(own))
    }
}
