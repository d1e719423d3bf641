//! Differences by chance alone: random splits of the same executions, with fixed seeds.
//!
//! Two uses. The **permutation test** of a difference of means serves groups too small for Welch's test, and
//! differences that few executions have, which no normal distribution describes however large the groups are. It tries
//! all splits if there are at most 100,000, else random ones, and ends early once the answer is clearly "chance" (Besag
//! and Clifford 1991: after 20 splits at least as extreme, p = 20 / splits tried). The **A/A control** of the verdict
//! counts random groups of the same sizes between which a cause is as large; it sums only lists that can be.
//! ALGORITHMS.md 7.4 and 7.7. Sums are integers throughout.
//!
//! Values come as one list, the slow group's first. Cost: permutation O(splits x smaller group), control
//! O(rounds x smaller group) per list.

use crate::base::statistics::Random;
use std::cell::RefCell;

/// Splits tried, at most.
const SPLITS: usize = 100_000;
/// Positions in the splits of a control that are kept: 4 MiB.
const MOST_KEPT: usize = 1 << 20;
/// Splits as extreme as the observed one, after which more would not change the answer.
const ENOUGH: usize = 20;
const SEED: u64 = 0x5107_0FA5_7C0D_E000;

/// The ways to choose the smaller group from all executions, drawn once, as far as a test looks at them, and used for
/// every context.
#[derive(Debug)]
pub struct Splits {
    total: usize,
    smaller: usize,
    slow: usize,
    exhaustive: bool,
    drawn: RefCell<DrawnSplits>,
}

impl Splits {
    /// Splits of `slow + fast` executions.
    pub fn new(slow: usize, fast: usize) -> Self {
        let (total, smaller) = (slow + fast, slow.min(fast));
        let exhaustive = ways(total, smaller) <= SPLITS;
        let drawn = if exhaustive { DrawnSplits::all(total, smaller) } else { DrawnSplits::new(total, smaller, SEED) };
        Splits { total, smaller, slow, exhaustive, drawn: RefCell::new(drawn) }
    }

    /// Two-sided p-value of the difference of the means of `values[..slow]` and the rest.
    pub fn p_value(&self, values: &[u64]) -> f64 {
        if self.smaller == 0 || values.len() != self.total {
            return 1.0;
        }
        let sum = |of: &[u64]| of.iter().map(|v| i128::from(*v)).sum::<i128>();
        let (n, k, all) = (self.total as i128, self.smaller as i128, sum(values));
        // The difference of the means is (s n - all k) / (k (n - k)) for a sum s of the k chosen: as extreme as the
        // observed one are sums at or beyond two bounds.
        let own = if self.slow == self.smaller { &values[..self.slow] } else { &values[self.slow..] };
        let observed = (sum(own) * n - all * k).abs();
        let high = (all * k + observed + n - 1).div_euclid(n);
        let low = (all * k - observed).div_euclid(n);
        let is_extreme = |pick: &[u32]| {
            let s = pick.iter().map(|i| values[*i as usize]).fold(0, u64::saturating_add);
            i128::from(s) >= high || i128::from(s) <= low
        };
        let mut drawn = self.drawn.borrow_mut();
        let (mut tried, mut as_extreme) = (0, 0);
        let all = if self.exhaustive { drawn.kept.len() / self.smaller } else { SPLITS };
        while tried < all {
            as_extreme += usize::from(is_extreme(drawn.of_round(tried, Keep::All)));
            tried += 1;
            if !self.exhaustive && as_extreme >= ENOUGH {
                return ENOUGH as f64 / tried as f64;
            }
        }
        let own = usize::from(!self.exhaustive);
        (as_extreme + own) as f64 / (tried + own) as f64
    }
}

/// A value that is not zero, and its member of the groups: the slow group's come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberValue {
    /// Position of the member.
    pub member: u32,
    pub value: u64,
}

impl MemberValue {
    /// Those of a list by member.
    pub fn of_list(values: &[u64]) -> Vec<MemberValue> {
        let all = (0..).zip(values).map(|(member, value)| MemberValue { member, value: *value });
        all.filter(|of| of.value > 0).collect()
    }
}

/// The permutation test for few nonzero values: exact, over all ways in which these may fall into the two groups.
/// Two-sided p-value of the difference of the means of both groups. Cost: 2^(nonzero values).
pub fn rare(having: &[MemberValue], sizes: GroupSizes) -> f64 {
    let (n, m, slow) = (sizes.slow, sizes.fast, sizes.slow);
    let having: Vec<(usize, i128)> = having.iter().map(|of| (of.member as usize, i128::from(of.value))).collect();
    let all: i128 = having.iter().map(|(_, v)| v).sum();
    // The difference of the means times n m, for a sum of the slow group's values.
    let apart = |sum: i128| (sum * m as i128 - (all - sum) * n as i128).abs();
    let observed = apart(having.iter().filter(|(i, _)| *i < slow).map(|(_, v)| v).sum());
    let falling = |from: usize, many: usize| (0..many).map(|i| from.saturating_sub(i) as f64).product::<f64>();
    let whole = falling(n + m, having.len());
    let ways = 1_u64 << having.len().min(20);
    let chance = |way: u64| {
        let inside = || having.iter().enumerate().filter(|(bit, _)| way >> bit & 1 == 1);
        let sum: i128 = inside().map(|(_, (_, v))| v).sum();
        let k = inside().count();
        if apart(sum) >= observed { falling(n, k) * falling(m, having.len() - k) / whole } else { 0.0 }
    };
    if whole == 0.0 { 1.0 } else { (0..ways).map(chance).sum::<f64>().min(1.0) }
}

/// Binomial coefficient, or any number above [`SPLITS`].
fn ways(n: usize, k: usize) -> usize {
    let mut ways = 1_usize;
    for i in 0..k.min(n - k) {
        ways = ways.saturating_mul(n - i) / (i + 1);
        if ways > SPLITS {
            return usize::MAX;
        }
    }
    ways
}

/// Draws without replacement (the first steps of a Fisher-Yates shuffle).
#[derive(Debug)]
struct Draw(Vec<u32>);

impl Draw {
    fn new(n: usize) -> Self {
        Draw((0..n as u32).collect())
    }

    fn some(&mut self, k: usize, random: &mut Random) -> &[u32] {
        for i in 0..k {
            let rest = &mut self.0[i..];
            let j = random.below(rest.len());
            rest.swap(0, j);
        }
        &self.0[..k]
    }
}

/// Whether splits are kept to be asked about again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    All,
    None,
}

/// The splits that were drawn so far.
#[derive(Debug)]
struct DrawnSplits {
    total: usize,
    smaller: usize,
    seed: u64,
    random: Random,
    draw: Draw,
    /// The smaller group of each round.
    kept: Vec<u32>,
}

impl DrawnSplits {
    fn new(total: usize, smaller: usize, seed: u64) -> DrawnSplits {
        let (random, draw) = (Random::new(seed), Draw::new(0));
        DrawnSplits { total, smaller, seed, random, draw, kept: Vec::new() }
    }

    /// Every subset once, in lexicographic order.
    fn all(total: usize, smaller: usize) -> DrawnSplits {
        let mut drawn = DrawnSplits::new(total, smaller, SEED);
        let (n, k) = (total as u32, smaller as u32);
        let mut pick: Vec<u32> = (0..k).collect();
        loop {
            drawn.kept.extend_from_slice(&pick);
            let Some(at) = (0..pick.len()).rev().find(|i| pick[*i] < n - k + *i as u32) else { return drawn };
            pick[at] += 1;
            for i in at + 1..pick.len() {
                pick[i] = pick[i - 1] + 1;
            }
        }
    }

    /// The smaller group of a round; rounds come in order, from the first on.
    fn of_round(&mut self, round: usize, keep: Keep) -> &[u32] {
        let place = round * self.smaller..(round + 1) * self.smaller;
        if place.end > self.kept.len() {
            if round == 0 {
                (self.random, self.draw) = (Random::new(self.seed), Draw::new(self.total));
            }
            let pick = self.draw.some(self.smaller, &mut self.random);
            if keep == Keep::None {
                return pick;
            }
            self.kept.extend_from_slice(pick);
        }
        &self.kept[place]
    }
}

/// The A/A control: random splits into groups of the same sizes. They are drawn when they are first asked for, and kept
/// for other lists if they are not too many.
#[derive(Debug)]
pub struct RandomSplits {
    smaller: usize,
    rounds: Rounds,
    drawn: RefCell<DrawnSplits>,
}

impl RandomSplits {
    /// Splits of executions into groups of these sizes.
    pub fn new(sizes: GroupSizes, rounds: Rounds) -> RandomSplits {
        let (total, smaller) = (sizes.slow + sizes.fast, sizes.slow.min(sizes.fast));
        RandomSplits { smaller, rounds, drawn: RefCell::new(DrawnSplits::new(total, smaller, SEED ^ 1)) }
    }

    /// True if in more than `may_reach` of the splits the means of some list differ by `observed` or more, in the unit
    /// of the values, the slow group's first.
    pub fn reach(&self, lists: &[Vec<u64>], observed: f64) -> bool {
        if self.smaller == 0 {
            return false;
        }
        let lists: Vec<SplitList<'_>> = lists.iter().map(|list| SplitList::new(list, self.smaller)).collect();
        let lists: Vec<SplitList<'_>> = lists.into_iter().filter(|list| list.most_apart() >= observed).collect();
        if lists.is_empty() {
            return false;
        }
        let keep = if self.rounds.tried * self.smaller <= MOST_KEPT { Keep::All } else { Keep::None };
        let mut drawn = self.drawn.borrow_mut();
        let missing = (self.rounds.tried * self.smaller).saturating_sub(drawn.kept.len());
        drawn.kept.reserve_exact(if keep == Keep::All { missing } else { 0 });
        let reaching = (0..self.rounds.tried).filter(|round| {
            let pick = drawn.of_round(*round, keep);
            lists.iter().any(|list| list.apart(list.sum(pick)) >= observed)
        });
        reaching.take(self.rounds.may_reach + 1).count() > self.rounds.may_reach
    }
}

/// Executions in the two groups.
#[derive(Clone, Copy, Debug)]
pub struct GroupSizes {
    /// In the slow group, whose values come first.
    pub slow: usize,
    /// In the fast group.
    pub fast: usize,
}

/// Random splits of a control.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// How many are tried.
    pub tried: usize,
    /// How many of them may reach the observed difference.
    pub may_reach: usize,
}

/// A list of values that is split at random, and the sums that are possible.
struct SplitList<'a> {
    values: &'a [u64],
    smaller: usize,
    all: u128,
}

impl SplitList<'_> {
    fn new(values: &[u64], smaller: usize) -> SplitList<'_> {
        SplitList { values, smaller, all: sum(values.iter()) }
    }

    /// The sum of the chosen values.
    fn sum(&self, chosen: &[u32]) -> u128 {
        let values = || chosen.iter().map(|i| self.values[*i as usize]);
        // No part of a sum that fits overflows.
        if self.all <= u128::from(u64::MAX) { values().sum::<u64>().into() } else { values().map(u128::from).sum() }
    }

    /// The difference of the means if the smaller group's values have this sum.
    fn apart(&self, s: u128) -> f64 {
        let larger = (self.values.len() - self.smaller) as f64;
        (s as f64 / self.smaller as f64 - (self.all - s) as f64 / larger).abs()
    }

    /// The largest difference that any split can have: the smaller group has the smallest values or the largest ones.
    /// Rounding keeps the order of sums, so no split is beyond it.
    fn most_apart(&self) -> f64 {
        let mut sorted = self.values.to_vec();
        sorted.select_nth_unstable(self.smaller - 1);
        let low = sum(sorted[..self.smaller].iter());
        sorted.select_nth_unstable_by(self.smaller - 1, |a, b| b.cmp(a));
        self.apart(low).max(self.apart(sum(sorted[..self.smaller].iter())))
    }
}

fn sum<'a>(values: impl Iterator<Item = &'a u64>) -> u128 {
    values.map(|v| u128::from(*v)).sum()
}

/// Stretches of time into which [`flips`] cuts the executions.
const BLOCKS: usize = 16;
/// Stretches that the control needs.
const FEWEST_BLOCKS: usize = 8;
/// Executions that a stretch needs.
const IN_A_BLOCK: usize = 4;

/// The A/A control in time: neighbouring executions are alike, so halves are drawn in stretches. The members, in the
/// order of their starts (`order`: positions in the lists), are cut into stretches of equal size; in each round every
/// stretch keeps or swaps its labels by chance. Per round the largest absolute difference of means over all lists;
/// ascending. `None` if there are too few executions. The slow group's values come first.
pub fn flips(lists: &[Vec<u64>], order: &[u32], slow: usize, rounds: usize) -> Option<Vec<f64>> {
    let blocks = BLOCKS.min(order.len() / IN_A_BLOCK);
    if blocks < FEWEST_BLOCKS {
        return None;
    }
    let block_of = |at: usize| at * blocks / order.len();
    // By stretch the number of slow and of fast members; by list and stretch their sums.
    let mut counts = vec![[0_u64; 2]; blocks];
    let mut sums = vec![vec![[0_u128; 2]; blocks]; lists.len()];
    for (at, member) in order.iter().enumerate() {
        let (block, side) = (block_of(at), usize::from(*member as usize >= slow));
        counts[block][side] += 1;
        for (list, sums) in lists.iter().zip(&mut sums) {
            sums[block][side] += u128::from(list.get(*member as usize).copied().unwrap_or(0));
        }
    }
    let mut random = Random::new(SEED ^ 2);
    let mut largest: Vec<f64> = (0..rounds)
        .map(|_| {
            let swaps: Vec<usize> = (0..blocks).map(|_| random.below(2)).collect();
            let side = |side: usize| swaps.iter().zip(&counts).map(|(swap, n)| n[side ^ swap]).sum::<u64>();
            let (n, m) = (side(0), side(1));
            if n == 0 || m == 0 {
                return 0.0;
            }
            let apart = |sums: &Vec<[u128; 2]>| {
                let of = |side: usize| swaps.iter().zip(sums).map(|(swap, s)| s[side ^ swap]).sum::<u128>();
                (of(0) as f64 / n as f64 - of(1) as f64 / m as f64).abs()
            };
            sums.iter().map(apart).fold(0.0, f64::max)
        })
        .collect();
    largest.sort_by(f64::total_cmp);
    Some(largest)
}

/// Rounds of [`is_shifted_as_far`].
const SHIFTS: usize = 200;
/// Rounds that may reach the observed difference.
const MAY_SHIFT: usize = SHIFTS / 100;
/// Fraction of the observed difference that counts as reaching it.
const AS_MUCH: f64 = 0.5;

/// An execution of the order that [`is_shifted_as_far`] takes.
#[derive(Clone, Copy, Debug)]
pub struct TimedExecution {
    /// Duration.
    pub ns: u64,
    /// In the slow group, in the fast group, or in neither.
    pub is_slow: Option<bool>,
}

/// The A/A control in time of a property. Neighbouring executions are alike in their properties and in their durations,
/// so a stretch of a property coincides with a slow stretch now and then. So the classes (small numbers; like the
/// executions in the order of their starts) are moved against the executions, as a ring, by a random distance; within
/// each of 16 stretches they are rotated by up to a quarter of it, since types may alternate. True if in more than one
/// round of a hundred the groups' means differ by half of `observed` when each execution is replaced by the mean of the
/// others of its class; false if there are too few executions. Cost: linear, times 200 where it is false.
pub fn is_shifted_as_far(classes: &[u32], executions: &[TimedExecution], observed: f64) -> bool {
    let n = classes.len().min(executions.len());
    let length = n / BLOCKS;
    if length < IN_A_BLOCK {
        return false;
    }
    let (classes, executions) = (&classes[..n], &executions[..n]);
    let mut random = Random::new(SEED ^ 3);
    let mut sums = ClassSums::new(classes, executions);
    // Two copies, so that no shift leads beyond the end.
    let ring = [classes, classes].concat();
    let reaching = (0..SHIFTS).filter(|_| {
        let shift = random.below(n);
        sums.of.fill([ClassSum::default(); 3]);
        for (block, executions) in executions.chunks(length).enumerate() {
            let block = &ring[block * length + shift..][..executions.len()];
            // The remainder after the last whole stretch is not rotated.
            let rotation = if block.len() == length { random.below(length.div_ceil(4)) } else { 0 };
            let (late, early) = block.split_at(rotation);
            early.iter().chain(late).zip(executions).for_each(|(class, execution)| sums.add(*class, *execution));
        }
        sums.differ() >= AS_MUCH * observed
    });
    reaching.take(MAY_SHIFT + 1).count() > MAY_SHIFT
}

/// Number and total time of some executions of a class.
#[derive(Clone, Copy, Default)]
struct ClassSum {
    number: u64,
    ns: u64,
}

/// Executions and their time by class.
struct ClassSums {
    /// By class, for fast executions, slow ones, and others.
    of: Vec<[ClassSum; 3]>,
    /// The mean of all.
    whole: f64,
}

impl ClassSums {
    fn new(classes: &[u32], executions: &[TimedExecution]) -> ClassSums {
        let whole = executions.iter().map(|e| e.ns as f64).sum::<f64>() / executions.len().max(1) as f64;
        ClassSums {
            of: vec![[ClassSum::default(); 3]; classes.iter().max().map_or(0, |most| *most as usize + 1)],
            whole,
        }
    }

    fn add(&mut self, class: u32, TimedExecution { ns, is_slow }: TimedExecution) {
        let sum = &mut self.of[class as usize][is_slow.map_or(2, usize::from)];
        sum.number += 1;
        sum.ns = sum.ns.saturating_add(ns);
    }

    /// The difference of the groups' means when each execution is replaced by the mean of the others of its class (by
    /// the mean of all, if there are no others).
    fn differ(&self) -> f64 {
        let [fast, slow] = [0, 1].map(|side| {
            let (mut members, mut sum) = (0, 0.0);
            for class in &self.of {
                let ClassSum { number, ns: own } = class[side];
                let n: u64 = class.iter().map(|sum| sum.number).sum();
                let all = class.iter().fold(0.0, |all, sum| all + sum.ns as f64);
                members += number;
                // For each of them the sum of all but itself.
                sum += match n {
                    0 | 1 => number as f64 * self.whole,
                    _ => (number as f64 * all - own as f64) / (n - 1) as f64,
                };
            }
            sum / members.max(1) as f64
        });
        slow - fast
    }
}

#[cfg(test)]
mod tests;
