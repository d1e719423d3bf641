//! Groups proposed from the durations alone: the slow tail against the usual executions (ALGORITHMS.md 7.5).
//!
//! In: durations, ascending. Out: filters of both groups that a user can type. The slow group is a tail: never more
//! than a third of the executions, and never more than those above the median. Where the durations have two peaks and
//! the upper one is larger than a third, the peaks are two kinds of executions and not slow and fast ones: the tail of
//! the upper peak is compared with the rest of that peak, and the lower one is left out. Cost O(N).

use super::GroupsOrigin;
use super::filter::{Filter, Operand, Test};
use crate::base::figure;
use crate::base::op::Op;
use crate::model::metric::Metric;
use crate::model::weights::RankedValues;

/// Filters of the two groups, and their origin.
pub(super) struct Proposal {
    pub slow: Vec<Filter>,
    pub fast: Vec<Filter>,
    pub origin: GroupsOrigin,
    /// What neither group has, in a sentence.
    pub left_out: Vec<String>,
}

impl Proposal {
    /// Without executions that are left out.
    pub fn new(slow: Vec<Filter>, fast: Vec<Filter>, origin: GroupsOrigin) -> Proposal {
        Proposal { slow, fast, origin, left_out: Vec::new() }
    }
}

/// Executions beyond a gap by which it counts in full.
const BEYOND_GAP: u64 = 5;
/// The least gap, as the ratio of the two durations around it.
const LEAST_GAP: f64 = 2.0;
/// Executions below which no groups are proposed.
pub(super) const FEWEST: usize = 5;
/// Executions of an upper peak from which the peaks are kinds.
const KIND: u64 = 12;
/// Peaks one above the other that are looked at.
const MOST_PEAKS: usize = 4;
/// Distance of two modes in deviations from which the valley between them separates (ALGORITHMS.md 7.5).
const MODES_APART: f64 = 4.5;

/// Filters that separate slow from fast; `None` where the durations have no tail. `all`: they are those of all
/// executions, so that percentiles of the filters are theirs.
pub(super) fn by_duration(ranked: &RankedValues, all: bool) -> Option<Proposal> {
    let sorted = ranked.values();
    if sorted.len() < FEWEST || sorted.first() == sorted.last() {
        return None;
    }
    // The executions before this one are of another kind.
    let mut from = 0;
    for _ in 0..MOST_PEAKS {
        let part = Part { ranked, from };
        let most = part.count() / 3;
        if let Some(at) = largest_gap(&part, most) {
            return Some(split(ranked, from, at, GroupsOrigin::Gap));
        }
        match valley(&part) {
            Some(at) if part.from(at) <= most => return Some(split(ranked, from, at, GroupsOrigin::Valley)),
            Some(at) if part.from(at) >= KIND => from = at,
            _ => break,
        }
    }
    tail(ranked, from, all)
}

/// The durations from a position on. All positions are those in the whole list.
struct Part<'a> {
    ranked: &'a RankedValues,
    from: usize,
}

impl Part<'_> {
    /// How many executions have them.
    fn count(&self) -> u64 {
        self.from(self.from)
    }

    /// How many executions are at a position or after it.
    fn from(&self, at: usize) -> u64 {
        self.ranked.count() - self.ranked.before(at)
    }

    /// How many executions are before a position.
    fn before(&self, at: usize) -> u64 {
        self.ranked.before(at) - self.ranked.before(self.from)
    }
}

/// The groups below and above a position.
fn split(ranked: &RankedValues, from: usize, at: usize, origin: GroupsOrigin) -> Proposal {
    let (most, least) = around(ranked.values(), at);
    let slow = Filter::compare(Metric::Duration, Op::AtLeast, least);
    proposal(ranked, from, slow, at, Filter::compare(Metric::Duration, Op::AtMost, most), origin)
}

/// The slowest twentieth and the faster half of the executions from a position on.
fn tail(ranked: &RankedValues, from: usize, all: bool) -> Option<Proposal> {
    let (sorted, part) = (ranked.values(), Part { ranked, from });
    let at_percent = |percent| sorted.get(ranked.position(from, percent)).copied();
    let (high, middle) = (at_percent(95.0)?, at_percent(50.0)?);
    let mut at = sorted.partition_point(|d| *d < high).max(from);
    // Of equal durations all are slow, or none.
    let is_tail = part.from(at) <= part.count() / 3;
    if !is_tail {
        at = sorted.partition_point(|d| *d <= high);
    }
    let least = *sorted.get(at)?;
    let percentile =
        |op, percent| Filter { metric: Metric::Duration, test: Test::Compare(op, Operand::Percentile(percent)) };
    let (slow, fast) = if all && from == 0 && is_tail {
        (percentile(Op::AtLeast, 95.0), percentile(Op::AtMost, 50.0))
    } else {
        (Filter::compare(Metric::Duration, Op::AtLeast, least), Filter::compare(Metric::Duration, Op::AtMost, middle))
    };
    let usual = sorted.partition_point(|d| *d <= middle);
    Some(proposal(ranked, from, slow, usual, fast, GroupsOrigin::Percentile))
}

/// The fast executions end at position `to`; `fast` is their filter where no other kind is left out.
fn proposal(
    ranked: &RankedValues,
    from: usize,
    slow: Filter,
    to: usize,
    fast: Filter,
    origin: GroupsOrigin,
) -> Proposal {
    if from == 0 {
        return Proposal::new(vec![slow], vec![fast], origin);
    }
    let sorted = ranked.values();
    let (lower_most, least) = around(sorted, from);
    let (below, above) = (sorted[to - 1], sorted[to]);
    let (most, beyond) = round_apart(below, above);
    let end = Operand::Number(if most > below { most } else { beyond });
    let fast = Filter { metric: Metric::Duration, test: Test::In(Operand::Number(least), end) };
    let left_out = vec![left_out(ranked.before(from), ranked.count(), lower_most, least)];
    Proposal { slow: vec![slow], fast: vec![fast], origin, left_out }
}

/// The executions of the lower peak in a sentence.
fn left_out(lower: u64, all: u64, most: i64, least: i64) -> String {
    let (most, least) = (figure::time(most as f64), figure::time(least as f64));
    if lower * 3 <= all {
        format!(
            "{lower} of {all} executions are unusually fast: they take {most} at most, all others {least} or more; \
             neither group has them"
        )
    } else {
        format!(
            "the executions are of two kinds: {lower} of {all} take {most} at most, the others {least} or more; the \
             groups are slow and usual executions of the longer kind"
        )
    }
}

/// Round bounds below and above a position.
fn around(sorted: &[i64], at: usize) -> (i64, i64) {
    round_apart(sorted[at - 1], sorted[at])
}

/// Position of the first execution beyond the largest gap, of those with at most `most` executions beyond them. A gap
/// with fewer than [`BEYOND_GAP`] executions beyond it counts in proportion: it takes a large one to set a single
/// execution apart.
fn largest_gap(part: &Part<'_>, most: u64) -> Option<usize> {
    let sorted = part.ranked.values();
    let mut best: Option<(f64, usize)> = None;
    let fits = (part.from + 1..sorted.len()).rev().take_while(|at| part.from(*at) <= most).last();
    for at in fits.unwrap_or(sorted.len())..sorted.len() {
        let ratio = sorted[at] as f64 / sorted[at - 1].max(1) as f64;
        let gap = ratio * part.from(at).min(BEYOND_GAP) as f64 / BEYOND_GAP as f64;
        if best.is_none_or(|(largest, _)| gap > largest) {
            best = Some((gap, at));
        }
    }
    best.filter(|(gap, _)| *gap >= LEAST_GAP).map(|(_, at)| at)
}

/// Position of the first execution above the split with least variance within its sides (Otsu), if the two sides
/// are far enough apart and neither is tiny.
fn valley(part: &Part<'_>) -> Option<usize> {
    let (sorted, n) = (part.ranked.values(), part.count());
    let log = |at: usize| (sorted[at].max(1) as f64).ln();
    let least = BEYOND_GAP.max(n.div_ceil(200));
    // Sums around the middle value, which keeps the squares small.
    let middle = log(part.from + (sorted.len() - part.from) / 2);
    let weight = |at: usize| (part.before(at + 1) - part.before(at)) as f64;
    let (mut all, mut all_squares) = (0.0, 0.0);
    for at in part.from..sorted.len() {
        let x = log(at) - middle;
        all += x * weight(at);
        all_squares += x * x * weight(at);
    }
    let (mut low, mut low_squares) = (0.0, 0.0);
    let mut best: Option<(f64, usize, f64)> = None;
    for at in part.from + 1..sorted.len() {
        let x = log(at - 1) - middle;
        low += x * weight(at - 1);
        low_squares += x * x * weight(at - 1);
        if part.before(at) < least || part.from(at) < least || sorted[at] == sorted[at - 1] {
            continue;
        }
        let (k, m) = (part.before(at) as f64, part.from(at) as f64);
        let (mean_low, mean_high) = (low / k, (all - low) / m);
        let var_low = (low_squares / k - mean_low * mean_low).max(0.0);
        let var_high = ((all_squares - low_squares) / m - mean_high * mean_high).max(0.0);
        let within = k * var_low + m * var_high;
        if best.is_none_or(|(smallest, ..)| within < smallest) {
            let apart = std::f64::consts::SQRT_2 * (mean_high - mean_low) / (var_low + var_high).sqrt().max(1e-9);
            best = Some((within, at, apart));
        }
    }
    best.filter(|(_, _, apart)| *apart >= MODES_APART).map(|(_, at, _)| at)
}

/// Two round numbers that separate two neighbours: `below <= most < least <= above`, with as few digits as possible.
fn round_apart(below: i64, above: i64) -> (i64, i64) {
    let mut step = 1_i64;
    let mut best = (below, above);
    while let Some(next) = step.checked_mul(10) {
        step = next;
        let (most, least) = (below.div_euclid(step) + i64::from(below % step != 0), above.div_euclid(step));
        let (Some(most), Some(least)) = (most.checked_mul(step), least.checked_mul(step)) else { break };
        if most >= above || least <= below || most >= least {
            break;
        }
        best = (most, least);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filters of both groups, the origin, and the sentences.
    fn proposed(durations: Vec<i64>) -> (String, String, GroupsOrigin, Vec<String>) {
        let Proposal { slow, fast, origin, left_out } = by_duration(&ranked(durations), true).unwrap();
        (slow[0].to_string(), fast[0].to_string(), origin, left_out)
    }

    fn ranked(durations: Vec<i64>) -> RankedValues {
        RankedValues::new(durations.into_iter().map(|duration| (duration, 1)), true)
    }

    /// So many durations around a centre.
    fn peak(centre: i64, n: i64) -> impl Iterator<Item = i64> {
        (0..n).map(move |i| centre + (i - n / 2) * centre / 5_000)
    }

    #[test]
    fn slow_group_is_the_tail_of_the_upper_peak() {
        let (slow, fast, origin, said) = proposed(peak(800_000, 12).chain(peak(4_500_000, 488)).collect());
        assert_eq!((slow.as_str(), origin), ("duration>=4.6971ms", GroupsOrigin::Percentile));
        assert_eq!(fast, "duration in 4ms..4.5ms");
        assert!(said[0].starts_with("12 of 500 executions are unusually fast: they take 1.00 ms at most"), "{said:?}");
        let (slow, fast, origin, said) =
            proposed(peak(10_000, 90).chain(peak(1_000_000, 106)).chain([9_000_000; 4]).collect());
        assert_eq!((slow.as_str(), fast.as_str(), origin), ("duration>=9ms", "duration<=2ms", GroupsOrigin::Gap));
        assert!(said.is_empty(), "{said:?}");
        let (_, fast, _, said) = proposed(peak(10_000, 90).chain(peak(1_000_000, 110)).collect());
        assert!(fast.starts_with("duration in ") && said[0].starts_with("the executions are of two kinds: 90 of 200"));
    }

    #[test]
    fn largest_ratio_sets_few_executions_apart() {
        let usual = || (0..1_000).map(|i| 1_000_000 + i * 1_700);
        let (slow, ..) = proposed(usual().chain([104_000_000]).collect());
        assert_eq!(slow, "duration>=100ms", "one is far beyond all others");
        let (slow, _, origin, _) = proposed(usual().chain([9_000_000]).collect());
        assert_eq!((slow.as_str(), origin), ("duration>=p95", GroupsOrigin::Percentile));
        let (slow, ..) = proposed(usual().chain((0..60).map(|i| 60_000_000 + i)).chain([200_000_000]).collect());
        assert_eq!(slow, "duration>=60ms", "the larger ratio");
    }

    #[test]
    fn slow_group_is_never_more_than_a_third() {
        for seed in 1..200_u64 {
            let mut state = seed;
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 33
            };
            let n = 5 + random() % 300;
            let (modes, spread) = (1 + random() % 4, 1 + random() % 50);
            let mut all: Vec<i64> = (0..n)
                .map(|_| (10_i64.pow(3 + (random() % modes) as u32)) * (10 + (random() % spread) as i64) / 10)
                .collect();
            all.sort_unstable();
            let Some(Proposal { slow, fast, .. }) = by_duration(&ranked(all.clone()), true) else { continue };
            let count = |filter: &Filter| {
                let range = filter.range(&ranked(all.clone())).unwrap();
                all.iter().filter(|d| range.contains(**d)).count()
            };
            let (slow, fast) = (count(&slow[0]), count(&fast[0]));
            assert!(slow > 0 && fast > 0 && slow * 3 <= all.len() && slow + fast <= all.len(), "{seed}: {slow} {fast}");
        }
    }

    #[test]
    fn round_apart_never_moves_an_execution() {
        for (below, above) in [(1, 2), (12, 13), (999, 1001), (12_345_678, 48_765_432), (0, i64::MAX), (99, 1000)] {
            let (most, least) = round_apart(below, above);
            assert!(below <= most && most < least && least <= above, "{below} {above}: {most} {least}");
        }
        assert_eq!(round_apart(12_345_678, 48_765_432), (20_000_000, 40_000_000));
    }
}
