//! Fits two clocks: a straight line from one's time to the other's by which no packet arrives before it was sent.
//!
//! In: points (own time at one end of a packet's transit, the other clock's time at the other end). When a packet is
//! sent here, the other clock shows at most the time of its arrival; when one arrives here, the other clock shows at
//! least the time of its sending. So the line passes below the points of the first kind and above those of the second;
//! only the convex hulls of both matter. The true line is between the flattest and the steepest such line.
//!
//! For a slope, the distance between the highest line above and the lowest line below is a concave function of the
//! slope, so the possible slopes are found by bisection, and each step evaluates the hulls. The result is the middle of
//! them, in the middle of that distance; where the packets do not limit the slope (it reaches [`LARGEST`]) it is the
//! possible one that is nearest to no drift. The error is the largest distance to another possible line anywhere in the
//! recording. Where no straight line is possible (a clock was stepped), the result is the line that contradicts the
//! packets least. With packets one way only there is no drift, and the fastest packet has no transit time.
//!
//! Cost: O(n log n) for n points, O(hull) per step. Exact in 128-bit integers, which limits times to 2^60 ns from the
//! start of the recording (and 2^62 between the clocks). After Jabbarifar's incremental convex hulls (ALGORITHMS.md
//! 4.5). Least squares was rejected: queueing times bias it.

use crate::base::time::{ClockCorrection, Ns, Span, Timestamp};

/// No clock has a larger drift: 500 parts in a million, the most by which NTP slews a clock.
const LARGEST: i128 = (1 << ClockCorrection::SCALE) / 2000;
/// No recording lasts longer.
const FARTHEST: i128 = 1 << 60;
/// No clock is ahead of another by more; a clock since 1970 is ahead of one since boot by less.
const LARGEST_LEAD: i128 = 1 << 62;

/// The times of two clocks at the two ends of a packet's transit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockPoint {
    own: Timestamp,
    other: Timestamp,
}

/// Bounds of a line, in the order of the packets.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// The line passes at or below these.
    above: Vec<ClockPoint>,
    /// The line passes at or above these.
    below: Vec<ClockPoint>,
}

impl Points {
    /// At `own` the other clock shows at most `other`.
    pub fn not_after(&mut self, own: Timestamp, other: Timestamp) {
        self.above.push(ClockPoint { own, other });
    }

    /// At `own` the other clock shows at least `other`.
    pub fn not_before(&mut self, own: Timestamp, other: Timestamp) {
        self.below.push(ClockPoint { own, other });
    }
}

/// The correction of one clock to another, fitted to packets between their hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FittedCorrection {
    pub correction: ClockCorrection,
    /// Bound of its error; `None` where packets were sent one way only.
    pub error: Option<Ns>,
    /// Number of packets from which it was fitted.
    pub packets: u64,
}

/// Own time since the origin, and the other clock's lead then.
type Point = (i128, i128);

/// The convex hull of points on their lower (`sign` 1) or upper (-1) side, by own time.
fn hull(points: &[ClockPoint], origin: Timestamp, sign: i128) -> Vec<Point> {
    let lead = |point: &ClockPoint| {
        (i128::from(point.own) - i128::from(origin), i128::from(point.other) - i128::from(point.own))
    };
    let near = |(x, y): &Point| x.abs() < FARTHEST && y.abs() < LARGEST_LEAD;
    let mut points: Vec<Point> = points.iter().map(lead).filter(near).collect();
    points.sort_unstable_by_key(|(x, y)| (*x, sign * *y));
    points.dedup_by_key(|(x, _)| *x);
    let mut hull: Vec<Point> = Vec::new();
    for c in points {
        while let [.., a, b] = hull[..]
            && sign * ((b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)) <= 0
        {
            hull.pop();
        }
        hull.push(c);
    }
    hull
}

/// The height at the origin of a line of a slope through a point, scaled.
fn height(slope: i128, (x, y): &Point) -> i128 {
    (*y << ClockCorrection::SCALE) - slope * x
}

/// The first argument in `[from, to]` at which a concave function is largest.
fn peak(mut from: i128, mut to: i128, value: impl Fn(i128) -> i128) -> i128 {
    while from < to {
        let middle = from + (to - from).div_euclid(2);
        if value(middle) < value(middle + 1) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// The last argument from `from` towards `to` for which `holds` is true; it is true for `from` and false after some
/// argument.
fn last(from: i128, to: i128, holds: impl Fn(i128) -> bool) -> i128 {
    let (mut good, mut bad) = (from, to);
    if holds(to) {
        return to;
    }
    while (good - bad).abs() > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

/// Fit a line for the time `life` (own time); `None` without points.
pub fn fit(points: Points, life: Span) -> Option<FittedCorrection> {
    let origin = life.start;
    let (above, below) = (hull(&points.above, origin, 1), hull(&points.below, origin, -1));
    let packets = (points.above.len() + points.below.len()) as u64;
    let line = |offset: i128, drift: i128, error: Option<i128>| {
        let ns = |n: i128| n.clamp(Ns::MIN.into(), Ns::MAX.into()) as Ns;
        FittedCorrection {
            correction: ClockCorrection { origin, offset: ns(offset), drift: drift as i64 },
            error: error.map(ns),
            packets,
        }
    };
    let least = above.iter().map(|p| p.1).min();
    let most = below.iter().map(|p| p.1).max();
    let one_way = match (least, most) {
        (None, None) => return None,
        (Some(lead), None) | (None, Some(lead)) => Some(line(lead, 0, None)),
        (Some(_), Some(_)) => None,
    };
    if one_way.is_some() {
        return one_way;
    }
    // Never empty from here on.
    let top = |slope| above.iter().map(|p| height(slope, p)).min().unwrap_or(0);
    let bottom = |slope| below.iter().map(|p| height(slope, p)).max().unwrap_or(0);
    let distance = |slope| top(slope) - bottom(slope);
    let best = peak(-LARGEST, LARGEST, distance);
    let middle = |slope| (top(slope) + bottom(slope)).div_euclid(2) >> ClockCorrection::SCALE;
    if distance(best) < 0 {
        return Some(line(middle(best), best, Some((-distance(best) >> (ClockCorrection::SCALE + 1)) + 1)));
    }
    let flattest = last(best, -LARGEST, |slope| distance(slope) >= 0);
    let steepest = last(best, LARGEST, |slope| distance(slope) >= 0);
    let slope = if flattest > -LARGEST && steepest < LARGEST {
        (flattest + steepest).div_euclid(2)
    } else {
        0.clamp(flattest, steepest)
    };
    let offset = middle(slope);
    let off = |t: i128| {
        let here = (offset << ClockCorrection::SCALE) + slope * t;
        let highest = |s: i128| top(s) + s * t;
        let lowest = |s: i128| -(bottom(s) + s * t);
        let up = highest(peak(flattest, steepest, highest)) - here;
        let down = here + lowest(peak(flattest, steepest, lowest));
        (up.max(down) >> ClockCorrection::SCALE) + 1
    };
    let error = off(0).max(off(i128::from(life.len()).min(FARTHEST)));
    Some(line(offset, slope, Some(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Ns = 1_000_000_000;

    fn not_after(points: &mut Points, own: i64, other: i64) {
        points.not_after(Timestamp::new(own), Timestamp::new(other));
    }

    fn not_before(points: &mut Points, own: i64, other: i64) {
        points.not_before(Timestamp::new(own), Timestamp::new(other));
    }

    /// Packets both ways over ten seconds; the other clock leads by `lead` and gains `ppm`.
    fn both_ways(lead: Ns, ppm: Ns, way: impl Fn(Ns) -> Ns) -> Points {
        let other = |t: i64| t + lead + t / 1_000_000 * ppm;
        let mut points = Points::default();
        for t in (0..10 * SECOND).step_by(7_000_000) {
            not_after(&mut points, t, other(t + way(t)));
            not_before(&mut points, t + 3_000_000 + way(t), other(t + 3_000_000));
        }
        points
    }

    #[test]
    fn fit_finds_lead_and_drift_within_the_error() {
        for (lead, ppm) in [(0, 0), (-83_000_000, 40), (5 * SECOND, -120), (1_700_000_000 * SECOND, 499)] {
            let points = both_ways(lead, ppm, |t| 20_000 + (t / 7_000_000 * 7919) % 300_000);
            let line = fit(points, Span::of_ns(0, 10 * SECOND)).unwrap();
            let error = line.error.unwrap();
            assert!((20_000..200_000).contains(&error), "{lead} {ppm}: {error}");
            for t in (0..=10 * SECOND).step_by(SECOND as usize) {
                let off = line.correction.apply(Timestamp::new(t)).ns() - (t + lead + t / 1_000_000 * ppm);
                assert!(off.abs() <= error, "{lead} {ppm} at {t}: {off} > {error}");
            }
        }
    }

    #[test]
    fn fit_finds_an_offset_and_no_drift_from_few_packets() {
        let mut points = Points::default();
        not_after(&mut points, 1000, 6000);
        not_before(&mut points, 2000, 6500);
        // Ahead by at most 5000 and at least 4500; a second later the drift may have made half a millisecond of it.
        let line = fit(points, Span::of_ns(0, SECOND)).unwrap();
        assert_eq!((line.correction.offset, line.correction.drift), (4750, 0));
        assert!((500_000..501_000).contains(&line.error.unwrap()), "{line:?}");
    }

    #[test]
    fn fit_assumes_no_transit_time_for_the_fastest_packet_one_way() {
        let mut points = Points::default();
        for (sent, received) in [(0, 700), (100, 500), (200, 900)] {
            not_after(&mut points, sent, received);
        }
        let line = fit(points.clone(), Span::of_ns(0, 1000)).unwrap();
        assert_eq!((line.correction.offset, line.error, line.packets), (400, None, 3));
        let back = Points {
            above: Vec::new(),
            below: points.above.iter().map(|point| ClockPoint { own: point.other, other: point.own }).collect(),
        };
        assert_eq!(fit(back, Span::of_ns(0, 1000)).unwrap().correction.offset, -400);
        assert_eq!(fit(Points::default(), Span::of_ns(0, 1000)), None);
    }

    #[test]
    fn fit_of_a_stepped_clock_has_a_large_error() {
        let mut points = both_ways(1_000_000, 0, |_| 1000);
        let jumped = both_ways(1_000_000 + 80_000_000, 0, |_| 1000);
        points.above.iter_mut().zip(jumped.above).skip(700).for_each(|(p, j)| *p = j);
        points.below.iter_mut().zip(jumped.below).skip(700).for_each(|(p, j)| *p = j);
        let line = fit(points, Span::of_ns(0, 10 * SECOND)).unwrap();
        assert!(line.error.unwrap() > 30_000_000, "{line:?}");
        assert!(line.correction.drift as i128 == LARGEST || line.correction.drift > 0);
    }

    #[test]
    fn fit_ignores_impossible_times() {
        let mut points = Points::default();
        points.not_after(Timestamp::MIN, Timestamp::MAX);
        points.not_before(Timestamp::MAX, Timestamp::MIN);
        assert_eq!(fit(points, Span::of_ns(0, 10)), None);
    }

    proptest! {
        /// A possible line is found: no packet between straight clocks arrives before it was sent.
        #[test]
        fn fit_lets_no_packet_arrive_before_it_was_sent(
            lead in -SECOND..SECOND,
            ppm in -400..400_i64,
            ways in proptest::collection::vec((0..10 * SECOND, 2..2_000_000_i64, any::<bool>()), 2..60),
        ) {
            let other = |t: i64| t + lead + (i128::from(t) * i128::from(ppm) / 1_000_000) as i64;
            let mut points = Points::default();
            for (t, way, here) in &ways {
                if *here {
                    not_after(&mut points, *t, other(t + way));
                } else {
                    not_before(&mut points, t + way, other(*t));
                }
            }
            let line = fit(points, Span::of_ns(0, 10 * SECOND)).unwrap();
            let apply = |t: i64| line.correction.apply(Timestamp::new(t)).ns();
            let both = ways.iter().any(|w| w.2) && ways.iter().any(|w| !w.2);
            prop_assert_eq!(both, line.error.is_some());
            for (t, way, here) in ways {
                // A nanosecond for each rounding.
                if here {
                    prop_assert!(!both || apply(t) <= other(t + way) + 1);
                } else {
                    prop_assert!(!both || apply(t + way) + 1 >= other(t));
                }
            }
        }
    }
}
