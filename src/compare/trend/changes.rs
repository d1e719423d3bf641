//! Change points: where the level of a sequence moves, by ranks, with the chance that a sequence without a change shows
//! as much.
//!
//! In: one value for each point, in order. Out: the positions of the first points after each change, ascending, each
//! with its corrected p-value. The idea: in each of a fixed set of intervals the split is looked for whose sides differ
//! most by Mann-Whitney's statistic; what the largest of all of them is without any change depends on the number of
//! points alone, so random orders of as many ranks give the limit. Cost: the intervals have n log n points together,
//! which are ranked once for the values and once for each of 999 random orders (9,999 of fewer than 16 points); of a
//! sequence without a change some twenty orders are enough. ALGORITHMS.md 7.11.

use crate::base::ctx::{Cancel, Cancelled};
use crate::base::statistics::{Random, mann_whitney, median};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

/// Points below which no order of them is rarer than [`CHANCE`].
pub const FEWEST_POINTS: usize = 10;
/// The chance that any change is found in a sequence without one.
pub const CHANCE: f64 = 0.01;
/// Random orders, without the found one itself; more of few points, whose rarest order is hardly rarer than [`CHANCE`].
const ROUNDS: usize = 999;
const ROUNDS_OF_FEW: usize = 9_999;
const FEW_POINTS: usize = 16;
/// Splits whose sides differ by this share of the largest distance may be the place of a change.
const NEARLY: f64 = 0.9;
/// Points of the shortest interval.
const SHORTEST: f64 = 4.0;
const SEED: u64 = 0x7E4D_0001;

/// A change between a point and the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// Position of the first point after it.
    pub at: usize,
    /// The chance that a sequence without a change differs as much anywhere.
    pub p_value: f64,
    /// The share of pairs of a point before it and one after it in which the latter is larger; ties count half.
    pub superiority: f64,
}

/// The split of an interval whose sides differ most.
#[derive(Clone, Debug, PartialEq)]
struct SplitInterval {
    interval: Range<usize>,
    /// Position of the first value of the second side.
    at: usize,
    /// The distance of Mann-Whitney's statistic from its mean, in standard deviations without ties.
    distance: f64,
}

/// The change points of a sequence; none where it has fewer than [`FEWEST_POINTS`].
pub fn change_points(values: &[i64], cancel: &Cancel) -> Result<Vec<ChangePoint>, Cancelled> {
    let (mut found, mut open) = (Vec::new(), Vec::new());
    open.push(0..values.len());
    while let Some(within) = open.pop() {
        if let Some((at, p_value)) = change_in(&values[within.clone()], cancel)? {
            found.push((within.start + at, p_value));
            open.extend([within.start..within.start + at, within.start + at..within.end]);
        }
    }
    found.sort_by_key(|(at, _)| *at);
    // The interval that showed a change may end before the next one: between its neighbours there is more to place it.
    let (mut places, mut ranks): (Vec<usize>, _) = (found.iter().map(|(at, _)| *at).collect(), Ranks::default());
    let neighbours = |places: &[usize], i: usize| {
        let from = i.checked_sub(1).map_or(0, |before| places[before]);
        from..places.get(i + 1).copied().unwrap_or(values.len())
    };
    for i in 0..places.len() {
        let within = neighbours(&places, i);
        places[i] = ranks.place(values, within).unwrap_or(places[i]);
    }
    let change = |(i, (_, p_value)): (usize, &(usize, f64))| {
        let (within, at) = (neighbours(&places, i), places[i]);
        let (mut before, mut after) = (values[within.start..at].to_vec(), values[at..within.end].to_vec());
        let superiority = mann_whitney(&mut before, &mut after).map_or(0.5, |test| test.superiority);
        ChangePoint { at, p_value: *p_value, superiority }
    };
    Ok(found.iter().enumerate().map(change).collect())
}

/// The clearest change of a sequence, with its chance, if that is small enough.
fn change_in(values: &[i64], cancel: &Cancel) -> Result<Option<(usize, f64)>, Cancelled> {
    if values.len() < FEWEST_POINTS {
        return Ok(None);
    }
    let (intervals, mut ranks) = (intervals(values.len()), Ranks::default());
    let splits = intervals.iter().filter_map(|interval| ranks.best_split(values, interval.clone()));
    // Of equal ones the longest, then the first.
    let key = |split: &SplitInterval| (split.interval.len(), Reverse(split.interval.start));
    let best = splits.max_by(|a, b| a.distance.total_cmp(&b.distance).then_with(|| key(a).cmp(&key(b))));
    let Some(SplitInterval { interval, distance, at }) = best else { return Ok(None) };
    let chance = chance(values.len(), &intervals, distance, cancel)?;
    Ok(chance.map(|p_value| (ranks.place(values, interval).unwrap_or(at), p_value)))
}

/// The intervals of a sequence of `n`, from the whole one on: each length is that of the layer before by the square
/// root of two, and neighbours overlap by half or more.
fn intervals(n: usize) -> Vec<Range<usize>> {
    const TINY: f64 = 1e-9;
    let whole = n as f64;
    let mut all = BTreeSet::new();
    for layer in 0.. {
        let more = std::f64::consts::SQRT_2.powi(layer);
        let length = whole / more;
        if length < SHORTEST - TINY {
            break;
        }
        let many = 2.0 * (more - TINY).ceil() - 1.0;
        let step = if many > 1.0 { (whole - length) / (many - 1.0) } else { 0.0 };
        for i in 0..many as usize {
            let from = i as f64 * step;
            all.insert(((from + TINY).floor() as usize, ((from + length - TINY).ceil() as usize).min(n)));
        }
    }
    all.into_iter().map(|(from, to)| from..to).collect()
}

/// Ranks the values of one interval after the other.
#[derive(Default)]
struct Ranks {
    order: Vec<(i64, usize)>,
    /// Twice the ranks, so that those of equal values stay integers.
    twice: Vec<i64>,
}

impl Ranks {
    /// `None` where all values are equal.
    fn best_split(&mut self, values: &[i64], interval: Range<usize>) -> Option<SplitInterval> {
        let inside = &values[interval.clone()];
        let n = inside.len();
        self.order.clear();
        self.order.extend(inside.iter().copied().zip(0..));
        self.order.sort_unstable();
        self.twice.clear();
        self.twice.resize(n, 0);
        let mut before = 0;
        for equal in self.order.chunk_by(|(a, _), (b, _)| a == b) {
            let to = before + equal.len();
            equal.iter().for_each(|(_, at)| self.twice[*at] = (before + 1 + to) as i64);
            before = to;
        }
        let best = self.distances().max_by(|(a, of_a), (b, of_b)| of_a.total_cmp(of_b).then(b.cmp(a)));
        let (at, distance) = best.filter(|(_, distance)| *distance > 0.0)?;
        Some(SplitInterval { at: interval.start + at, interval, distance })
    }

    /// Of the interval that was ranked last, each position with the distance of its two sides.
    fn distances(&self) -> impl Iterator<Item = (usize, f64)> {
        let n = self.twice.len();
        let sums = self.twice.iter().scan(0_i64, move |sum, twice| {
            *sum += twice - (n as i64 + 1);
            Some(*sum)
        });
        (1..n).zip(sums).map(move |(at, sum)| {
            let (before, after) = (at as f64, (n - at) as f64);
            (at, sum.abs() as f64 / 2.0 / (before * after * (n as f64 + 1.0) / 12.0).sqrt())
        })
    }

    /// The place of the change in an interval that has one: of the splits whose sides differ nearly as much as those of
    /// the best one, that whose sides are closest to their medians. Ranks alone prefer sides of equal length.
    fn place(&mut self, values: &[i64], interval: Range<usize>) -> Option<usize> {
        let most = self.best_split(values, interval.clone())?.distance;
        let inside = &values[interval.clone()];
        let candidates: Vec<usize> =
            self.distances().filter(|(_, distance)| *distance >= NEARLY * most).map(|(at, _)| at).collect();
        let scatter = |at: &usize| -> u128 { [&inside[..*at], &inside[*at..]].map(scatter).iter().sum() };
        candidates.into_iter().min_by_key(|at| (scatter(at), *at)).map(|at| interval.start + at)
    }
}

/// The sum of the distances from the median.
fn scatter(values: &[i64]) -> u128 {
    let median = median(values.to_vec());
    values.iter().map(|value| u128::from(value.abs_diff(median))).sum()
}

/// How many random orders are drawn of so many points.
fn rounds(points: usize) -> usize {
    if points < FEW_POINTS { ROUNDS_OF_FEW } else { ROUNDS }
}

/// The chance that a sequence of `n` without a change has a split of any interval whose sides differ by as much as
/// `observed`; `None` where that is more than [`CHANCE`].
fn chance(n: usize, intervals: &[Range<usize>], observed: f64, cancel: &Cancel) -> Result<Option<f64>, Cancelled> {
    let mut random = Random::new(SEED ^ n as u64);
    let mut order: Vec<i64> = (0..n as i64).collect();
    let rounds = rounds(n);
    let (mut ranks, mut reached) = (Ranks::default(), 0);
    for _ in 0..rounds {
        cancel.check()?;
        for i in (1..n).rev() {
            order.swap(i, random.below(i + 1));
        }
        let mut splits = intervals.iter().filter_map(|interval| ranks.best_split(&order, interval.clone()));
        reached += usize::from(splits.any(|split| split.distance >= observed));
        // With the found one itself a hundredth of them.
        if (reached + 1) as f64 > CHANCE * (rounds + 1) as f64 {
            return Ok(None);
        }
    }
    Ok(Some((reached + 1) as f64 / (rounds + 1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[i64]) -> Vec<usize> {
        change_points(values, &Cancel::default()).unwrap().iter().map(|change| change.at).collect()
    }

    /// Values of one of several shapes of noise, none of them normal: all that matters is their order.
    fn noise(random: &mut Random, shape: usize) -> i64 {
        let unit = random.below(1 << 20) as f64 / f64::from(1 << 20);
        match shape % 4 {
            0 => (unit * 1e6) as i64,
            // A long tail.
            1 => (1e3 / (unit + 1e-3)) as i64,
            // Two peaks.
            2 => (unit * 1e5) as i64 + [4_000_000, 1_000_000, 1_000_000][random.below(3)],
            // Few values: ties.
            _ => (unit * 6.0) as i64 * 1_000_000,
        }
    }

    #[test]
    fn change_points_are_rare_in_noise() {
        let mut random = Random::new(5);
        let tried = 600;
        let wrong = (0..tried).filter(|i| {
            let values: Vec<i64> = (0..10 + i % 50).map(|_| noise(&mut random, *i)).collect();
            !found(&values).is_empty()
        });
        // Six are expected at most; sixteen are the 99.95th percentile of that.
        let wrong = wrong.count();
        assert!(wrong <= 16, "{wrong} of {tried}");
    }

    /// A step, a stretch that ends again, stairs: each change is found, within a point of its place.
    #[test]
    fn change_points_are_where_they_were_planted() {
        let mut random = Random::new(11);
        let (mut planted, mut hit, mut wrong) = (0, 0, 0);
        for i in 0..45 {
            let places: Vec<usize> = match i % 3 {
                0 => vec![7 + random.below(20)],
                1 => vec![10 + random.below(5), 24 + random.below(5)],
                _ => vec![12, 26],
            };
            let level = |at: usize| match (i % 3, places.iter().filter(|place| **place <= at).count()) {
                // The stretch ends.
                (1, 2) => 0,
                (_, steps) => steps as i64,
            };
            let values: Vec<i64> =
                (0..40).map(|at| noise(&mut random, i % 2) % 1_000_000 + level(at) * 1_500_000).collect();
            let found = found(&values);
            planted += places.len();
            hit += places.iter().filter(|place| found.iter().any(|at| at.abs_diff(**place) <= 1)).count();
            wrong += found.iter().filter(|at| places.iter().all(|place| at.abs_diff(*place) > 1)).count();
        }
        // Each of 110 stretches between changes may have a false one with a chance of a hundredth.
        assert!(hit == planted && wrong <= 4, "{hit} of {planted}, {wrong} wrong");
    }

    #[test]
    fn change_points_need_points() {
        let step = |n: usize| -> Vec<i64> {
            (0..n as i64).map(|i| i * 7 % 10 + if i >= n as i64 / 2 { 1000 } else { 0 }).collect()
        };
        assert!(found(&step(9)).is_empty() && found(&[7; 60]).is_empty());
        assert_eq!(found(&step(FEWEST_POINTS)), [5]);
        let change = change_points(&step(40), &Cancel::default()).unwrap()[0];
        assert_eq!((change.at, change.superiority), (20, 1.0));
        assert!(change.p_value <= 0.001, "{change:?}");
    }

    #[test]
    fn change_points_do_not_depend_on_unit_and_direction() {
        let mut random = Random::new(3);
        let values: Vec<i64> = (0..50).map(|at| noise(&mut random, 0) + i64::from(at >= 30) * 900_000).collect();
        let others: Vec<i64> = values.iter().map(|value| value * 3 + 17).collect();
        assert_eq!(change_points(&values, &Cancel::default()), change_points(&others, &Cancel::default()));
        assert_eq!(found(&values).len(), 1);
        // The same read backwards, at the same gap.
        let back: Vec<i64> = values.iter().rev().copied().collect();
        assert_eq!(found(&back), found(&values).iter().map(|at| 50 - at).collect::<Vec<_>>());
    }

    #[test]
    fn intervals_cover_the_sequence_and_overlap() {
        for n in 10..200 {
            let all = intervals(n);
            assert!(all.contains(&(0..n)) && all.iter().all(|i| i.end <= n && i.len() >= 4), "{n}");
            let points: usize = all.iter().map(Range::len).sum();
            assert!(points <= 5 * n * n.ilog2() as usize, "{n}: {points}");
        }
    }
}
