//! A location's own clock against the archive's, from its ClockOffset records.
//!
//! OTF2-FACTS section 6: between two records the offset is interpolated, before the first and after the last interval
//! that interval's line goes on; one record alone changes nothing.

/// One stretch of the correction: from `start` on, up to and including `end`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    start: u64,
    end: u64,
    offset: i64,
    slope: f64,
}

/// Piecewise linear correction; empty where nothing was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LocalClock {
    stretches: Vec<Stretch>,
}

impl LocalClock {
    /// From (local time, offset) records in the order of the file.
    pub(super) fn new(offsets: Vec<(u64, i64)>) -> Self {
        let stretch = |pair: &[(u64, i64)]| match *pair {
            [(start, offset), (end, next)] if end > start => {
                let slope = (next as f64 - offset as f64) / (end - start) as f64;
                Some(Stretch { start, end, offset, slope })
            }
            _ => None,
        };
        LocalClock { stretches: offsets.windows(2).filter_map(stretch).collect() }
    }

    /// True where the archive says nothing about this clock.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// A recorded time on the archive's clock, in ticks.
    pub fn correct(&self, ticks: u64) -> i128 {
        let at = self.stretches.partition_point(|s| s.end < ticks);
        let Some(s) = self.stretches.get(at).or(self.stretches.last()) else { return i128::from(ticks) };
        let moved = i128::from(ticks) + i128::from(s.offset);
        if s.slope == 0.0 {
            return moved;
        }
        let since = i128::from(ticks) - i128::from(s.start);
        // Both conversions round alike; that of 64 bits is one instruction.
        let since = i64::try_from(since).map_or(since as f64, |since| since as f64);
        moved + (s.slope * since).round_ties_even() as i128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on_outside_and_one_record_is_none() {
        let clock = LocalClock::new(vec![(100, 10), (200, 20), (300, 20)]);
        let corrected = [0, 100, 150, 200, 250, 400].map(|t| clock.correct(t));
        assert_eq!(corrected, [0, 110, 165, 220, 270, 420]);
        assert_eq!(LocalClock::new(vec![(100, 10)]).correct(5), 5);
        assert_eq!(LocalClock::new(vec![(100, 10), (100, 12)]).correct(5), 5, "no time passes between these");
    }
}
