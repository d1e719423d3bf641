//! A location's own clock against the archive's, from its ClockOffset records.
//!
//! OTF2-FACTS.md section 6: between two records the offset is interpolated, and before the first and after the last
//! interval it is extrapolated; a single record changes nothing.

/// A linear part of the correction: from `start` up to and including `end`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    start: u64,
    end: u64,
    offset: i64,
    slope: f64,
}

/// A ClockOffset record: the offset at a time of the location's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockOffset {
    pub(super) time: u64,
    pub(super) offset: i64,
}

impl Stretch {
    /// The line between two records; `None` where no time passes between them.
    fn between(pair: &[ClockOffset]) -> Option<Stretch> {
        let [first, last] = pair else { return None };
        if last.time <= first.time {
            return None;
        }
        let slope = (last.offset as f64 - first.offset as f64) / (last.time - first.time) as f64;
        Some(Stretch { start: first.time, end: last.time, offset: first.offset, slope })
    }
}

/// Piecewise linear correction; empty where nothing was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalClock {
    stretches: Vec<Stretch>,
}

impl LocalClock {
    /// The correction from the records of a location, in the order of the file.
    pub(super) fn new(offsets: &[ClockOffset]) -> Self {
        LocalClock { stretches: offsets.windows(2).filter_map(Stretch::between).collect() }
    }

    /// True where the archive has no correction for this clock.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// A recorded time on the archive's clock, in ticks.
    #[inline]
    pub fn correct(&self, ticks: u64) -> i128 {
        if self.stretches.is_empty() {
            return i128::from(ticks);
        }
        let at = self.stretches.partition_point(|s| s.end < ticks);
        let Some(s) = self.stretches.get(at).or(self.stretches.last()) else { return i128::from(ticks) };
        let moved = i128::from(ticks) + i128::from(s.offset);
        if s.slope == 0.0 {
            return moved;
        }
        let since = i128::from(ticks) - i128::from(s.start);
        // Both conversions give the same number; that of 64 bits is one instruction.
        let since = i64::try_from(since).map_or(since as f64, |since| since as f64);
        moved + (s.slope * since).round_ties_even() as i128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correct_extrapolates_and_ignores_a_single_record() {
        let clock = |records: &[(u64, i64)]| {
            let records: Vec<_> =
                records.iter().map(|(time, offset)| ClockOffset { time: *time, offset: *offset }).collect();
            LocalClock::new(&records)
        };
        let three = clock(&[(100, 10), (200, 20), (300, 20)]);
        let corrected = [0, 100, 150, 200, 250, 400].map(|t| three.correct(t));
        assert_eq!(corrected, [0, 110, 165, 220, 270, 420]);
        assert_eq!(clock(&[(100, 10)]).correct(5), 5);
        assert_eq!(clock(&[(100, 10), (100, 12)]).correct(5), 5, "no time passes between these");
    }
}
