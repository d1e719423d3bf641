//! Time: integer nanoseconds on one line, and the two ways from clock cycles to them.
//!
//! Moments are [`Timestamp`]s, durations [`Ns`], all intervals half-open. There are two conversions on purpose:
//! [`exact_ns`] is what whyslow computes with (128-bit integers, rounded down); [`canonical_ns`] repeats babeltrace2's
//! arithmetic in double precision and serves `dump --canonical` alone (docs/CANONICAL.md).

use get_size2::GetSize;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A duration in nanoseconds.
pub type Ns = i64;

/// A moment: nanoseconds since the origin of the clock that the value is on, which is the common time line unless its
/// name says `local`.
///
/// The difference of two moments is a duration ([`Ns`]); a moment and a duration make a moment; two moments do not add
/// up. The operators overflow as those of integers do: times that a trace can choose go through [`Timestamp::since`],
/// [`Timestamp::saturating_add`] and [`Timestamp::saturating_sub`]. In JSON and in files a moment is its number.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, GetSize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The origin of the clock.
    pub const ZERO: Timestamp = Timestamp(0);
    /// Before every moment of a recording.
    pub const MIN: Timestamp = Timestamp(i64::MIN);
    /// After every moment of a recording.
    pub const MAX: Timestamp = Timestamp(i64::MAX);

    /// The moment `ns` nanoseconds after the origin.
    #[inline]
    pub const fn new(ns: i64) -> Timestamp {
        Timestamp(ns)
    }

    /// The nearest moment to `ns` nanoseconds after the origin.
    pub const fn clamped(ns: i128) -> Timestamp {
        if ns > i64::MAX as i128 {
            Timestamp::MAX
        } else if ns < i64::MIN as i128 {
            Timestamp::MIN
        } else {
            Timestamp(ns as i64)
        }
    }

    /// The moment `ns` nanoseconds after the origin; `None` when it does not fit.
    pub fn checked(ns: i128) -> Option<Timestamp> {
        i64::try_from(ns).ok().map(Timestamp)
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub const fn ns(self) -> i64 {
        self.0
    }

    /// The duration from `earlier` to this moment, negative where this is before it; the nearest duration where it does
    /// not fit.
    #[inline]
    pub const fn since(self, earlier: Timestamp) -> Ns {
        self.0.saturating_sub(earlier.0)
    }

    /// The distance of two moments, whichever is first.
    #[inline]
    pub const fn abs_diff(self, other: Timestamp) -> u64 {
        self.0.abs_diff(other.0)
    }

    /// The moment `distance` later, the inverse of [`Timestamp::abs_diff`]; one that does not fit wraps around.
    #[inline]
    pub const fn wrapping_add(self, distance: u64) -> Timestamp {
        Timestamp(self.0.wrapping_add_unsigned(distance))
    }

    /// The moment `duration` later; the last one where that does not fit.
    #[inline]
    pub const fn saturating_add(self, duration: Ns) -> Timestamp {
        Timestamp(self.0.saturating_add(duration))
    }

    /// The moment `duration` earlier; the first one where that does not fit.
    #[inline]
    pub const fn saturating_sub(self, duration: Ns) -> Timestamp {
        Timestamp(self.0.saturating_sub(duration))
    }

    /// The moment `duration` later, if there is one.
    pub fn checked_add(self, duration: Ns) -> Option<Timestamp> {
        self.0.checked_add(duration).map(Timestamp)
    }

    /// The moment `duration` earlier, if there is one.
    pub fn checked_sub(self, duration: Ns) -> Option<Timestamp> {
        self.0.checked_sub(duration).map(Timestamp)
    }
}

impl std::ops::Sub for Timestamp {
    type Output = Ns;

    fn sub(self, earlier: Timestamp) -> Ns {
        self.0 - earlier.0
    }
}

impl std::ops::Add<Ns> for Timestamp {
    type Output = Timestamp;

    fn add(self, duration: Ns) -> Timestamp {
        Timestamp(self.0 + duration)
    }
}

impl std::ops::Sub<Ns> for Timestamp {
    type Output = Timestamp;

    fn sub(self, duration: Ns) -> Timestamp {
        Timestamp(self.0 - duration)
    }
}

impl std::ops::AddAssign<Ns> for Timestamp {
    fn add_assign(&mut self, duration: Ns) {
        self.0 += duration;
    }
}

impl From<Timestamp> for i128 {
    fn from(moment: Timestamp) -> i128 {
        i128::from(moment.0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A half-open interval `[start, end)` of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, GetSize)]
pub struct Span {
    /// First nanosecond inside.
    pub start: Timestamp,
    /// First nanosecond after.
    pub end: Timestamp,
}

impl Span {
    /// The interval `[start, end)`.
    #[inline]
    pub fn new(start: Timestamp, end: Timestamp) -> Self {
        Span { start, end }
    }

    /// The interval between two moments in nanoseconds since the origin.
    pub const fn of_ns(start: i64, end: i64) -> Self {
        Span { start: Timestamp::new(start), end: Timestamp::new(end) }
    }

    /// Its length; zero when the end is before the start.
    #[inline]
    pub fn len(self) -> Ns {
        self.end.since(self.start).max(0)
    }

    /// The last nanosecond inside; the start where nothing is inside.
    pub fn last_moment(self) -> Timestamp {
        self.end.saturating_sub(1).max(self.start)
    }

    /// True when nothing is inside.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// True when `t` is inside.
    #[inline]
    pub fn contains(self, t: Timestamp) -> bool {
        self.start <= t && t < self.end
    }

    /// The part that is in both.
    #[inline]
    pub fn clip(self, other: Span) -> Span {
        Span { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    /// The time of any of some spans: in order, none of which touches another.
    pub fn union(mut spans: Vec<Span>) -> Vec<Span> {
        spans.sort_unstable();
        spans.dedup_by(|next, last| {
            let touches = next.start <= last.end;
            if touches {
                last.end = last.end.max(next.end);
            }
            touches
        });
        spans
    }
}

/// Converts one clock's times to another's by a straight line: `t + offset + drift * (t - origin)`. All arithmetic is
/// in integers, so the result is the same on every machine, and two times keep their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockCorrection {
    /// The moment at which `offset` holds.
    pub origin: Timestamp,
    /// The difference of the two clocks at that moment.
    pub offset: Ns,
    /// Added per nanosecond after `origin`, in units of 2^-[`ClockCorrection::SCALE`].
    pub drift: i64,
}

impl ClockCorrection {
    /// Bits after the point of `drift`.
    pub const SCALE: u32 = 50;

    /// The time on the other clock; a time that does not fit is clamped to the nearest end of the time line.
    pub fn apply(self, t: Timestamp) -> Timestamp {
        let drifted = (i128::from(self.drift) * (i128::from(t) - i128::from(self.origin))) >> Self::SCALE;
        let there = i128::from(t) + i128::from(self.offset) + drifted;
        Timestamp::clamped(there)
    }

    /// The correction that has the effect of this one followed by `next`.
    pub fn then(self, next: ClockCorrection) -> ClockCorrection {
        let (a, b) = (i128::from(self.drift), i128::from(next.drift));
        let drift = (a + b + ((a * b) >> Self::SCALE)).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        let offset = next.apply(self.apply(self.origin)).since(self.origin);
        ClockCorrection { origin: self.origin, offset, drift }
    }
}

/// Cycles of a clock of `frequency` Hz to nanoseconds, exactly, rounded down. `None` when it does not fit.
pub fn exact_ns(cycles: i128, frequency: u64) -> Option<Timestamp> {
    let frequency = i128::from(frequency.max(1));
    if frequency == 1_000_000_000 {
        return Timestamp::checked(cycles);
    }
    Timestamp::checked(cycles.checked_mul(1_000_000_000)?.div_euclid(frequency))
}

/// Cycles to nanoseconds the way babeltrace2 does it: through a double unless the clock runs at 1 GHz.
/// `None` means its `overflow`.
pub fn canonical_ns(cycles: u64, frequency: u64) -> Option<i128> {
    if frequency == 1_000_000_000 {
        return Some(i128::from(cycles));
    }
    let ns = 1e9 * cycles as f64 / frequency as f64;
    (ns.is_finite() && ns < u64::MAX as f64).then_some(ns as u64 as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn union_joins_what_touches_and_what_is_inside() {
        let spans = |all: &[(Ns, Ns)]| all.iter().map(|(from, to)| Span::of_ns(*from, *to)).collect::<Vec<_>>();
        assert_eq!(Span::union(spans(&[(7, 9), (0, 5), (1, 2), (5, 6), (8, 12)])), spans(&[(0, 6), (7, 12)]));
        assert_eq!(Span::union(Vec::new()), []);
    }

    #[test]
    fn exact_rounds_down_on_both_sides_of_zero() {
        assert_eq!(exact_ns(1, 3), Some(Timestamp::new(333_333_333)));
        assert_eq!(exact_ns(-1, 3), Some(Timestamp::new(-333_333_334)));
        assert_eq!(exact_ns(i128::from(u64::MAX), 1_000_000_000), None);
    }

    #[test]
    fn clock_correction_drifts_around_its_origin_and_keeps_the_order() {
        let correction =
            ClockCorrection { origin: Timestamp::new(1_000), offset: -7, drift: -(1 << (ClockCorrection::SCALE - 2)) };
        let apply = |t| correction.apply(Timestamp::new(t));
        assert_eq!([1_000, 1_004, 996].map(|t| apply(t).ns()), [993, 996, 990]);
        assert!((0..4_000).all(|t| apply(t) <= apply(t + 1)));
        let next =
            ClockCorrection { origin: Timestamp::new(5), offset: 100, drift: 1 << (ClockCorrection::SCALE - 10) };
        let both = correction.then(next);
        assert!((0..4_000).all(|t| both.apply(Timestamp::new(t)).abs_diff(next.apply(apply(t))) <= 1));
        assert_eq!(
            ClockCorrection { offset: i64::MAX, ..ClockCorrection::default() }.apply(Timestamp::new(5)),
            Timestamp::MAX
        );
    }

    #[test]
    fn canonical_goes_through_a_double() {
        assert_eq!(canonical_ns(u64::MAX >> 1, 1_000_000_000), Some(i128::from(u64::MAX >> 1)));
        assert_eq!(canonical_ns(9_007_199_254_740_993, 1_000_000), Some(9_007_199_254_740_992_000));
    }
}
