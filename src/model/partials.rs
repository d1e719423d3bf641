//! Partial results: sums over the executions of a task on a host, which add up to those of a fleet.
//!
//! In: executions and two groups of them. Out: per host the number of executions, a histogram of their durations, and
//! per group and context sums, sums of squares and counts. All are integers, and adding saturates, so that any order
//! and grouping of additions gives the same: [`HostTotals`] are a commutative monoid (ALGORITHMS.md 6.5). Cost: linear
//! in the times of the executions, each by its depth; adding is linear in the contexts.

use super::Model;
use super::context::ContextId;
use super::execution::{ExecutionId, InclusiveTimes};
use super::weights::KeptNumbers;
use crate::base::digest::Digest;
use crate::base::names::Names;
use crate::base::statistics::{Sums, nearest_rank_of};
use crate::base::time::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// Bits of a duration that its bucket keeps: a bucket is at most a 128th as wide as its values.
const KEPT_BITS: u32 = 7;
/// Durations below have buckets of their own.
const EXACT: u64 = 2 << KEPT_BITS;

/// Durations by bucket: exact below 256 ns, then 128 buckets of equal width from each power of two to the next. So the
/// ends of a bucket are less than 1 % apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationHistogram {
    /// Counts by bucket, none of them zero.
    pub counts: BTreeMap<u32, u64>,
}

impl DurationHistogram {
    /// The bucket of a duration; a negative one, which only broken clocks give, is in the first.
    pub fn bucket(duration: Ns) -> u32 {
        let ns = u64::try_from(duration).unwrap_or(0);
        if ns < EXACT {
            return ns as u32;
        }
        let shift = ns.ilog2() - KEPT_BITS;
        // Each power of two has 128 buckets; those before the first of them are the exact ones.
        (shift << KEPT_BITS) + (ns >> shift) as u32
    }

    /// The least and the largest duration of a bucket.
    pub fn bounds(bucket: u32) -> (Ns, Ns) {
        let bucket = u64::from(bucket);
        if bucket < EXACT {
            return (bucket as Ns, bucket as Ns);
        }
        let shift = (bucket >> KEPT_BITS) - 1;
        let kept = bucket - (shift << KEPT_BITS);
        let least = i128::from(kept) << shift.min(64);
        let end = i128::from(kept + 1) << shift.min(64);
        let bounded = |ns: i128| Ns::try_from(ns).unwrap_or(Ns::MAX);
        (bounded(least), bounded(end - 1))
    }

    /// Count a duration of so many executions.
    pub fn put(&mut self, duration: Ns, times: u64) {
        let count = self.counts.entry(Self::bucket(duration)).or_insert(0);
        *count = count.saturating_add(times);
    }

    /// Count what another one has counted.
    pub fn add(&mut self, other: &DurationHistogram) {
        for (bucket, count) in &other.counts {
            let all = self.counts.entry(*bucket).or_insert(0);
            *all = all.saturating_add(*count);
        }
    }

    /// How many durations it has counted.
    pub fn count(&self) -> u64 {
        self.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The bounds of the bucket that has the duration of that percentile, by nearest rank; `None` without durations.
    pub fn percentile(&self, percent: f64) -> Option<(Ns, Ns)> {
        let rank = nearest_rank_of(usize::try_from(self.count()).unwrap_or(usize::MAX), percent) as u64;
        let mut before = 0_u64;
        for (bucket, count) in &self.counts {
            before = before.saturating_add(*count);
            if before > rank {
                return Some(Self::bounds(*bucket));
            }
        }
        self.counts.last_key_value().map(|(bucket, _)| Self::bounds(*bucket))
    }
}

/// What the executions of a group spent in a context, with the contexts below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextTotals {
    /// Executions that spent time there.
    pub having: u64,
    /// Nanoseconds.
    pub sum: u128,
    /// Of the nanoseconds of each execution.
    pub squares: u128,
}

impl ContextTotals {
    /// Count the nanoseconds of an execution that represents so many.
    pub fn put(&mut self, ns: u64, weight: u64) {
        let (ns, times) = (u128::from(ns), u128::from(weight));
        self.add(&ContextTotals { having: weight, sum: ns * times, squares: (ns * ns).saturating_mul(times) });
    }

    /// Add another one.
    pub fn add(&mut self, other: &ContextTotals) {
        let ContextTotals { having, sum, squares } = self;
        *having = having.saturating_add(other.having);
        *sum = sum.saturating_add(other.sum);
        *squares = squares.saturating_add(other.squares);
    }
}

/// One group of executions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupTotals {
    /// Of their durations.
    pub durations: Sums,
    /// The sum of the squares of their weights: how much a sample says of the means follows from it.
    pub squared_weights: u128,
    /// The same by length.
    pub by_length: DurationHistogram,
    /// By context in which any of them spent time, ascending.
    pub contexts: Vec<(ContextId, ContextTotals)>,
}

impl GroupTotals {
    /// Add another one of the same contexts.
    pub fn add(&mut self, other: &GroupTotals) {
        self.durations = added(self.durations, other.durations);
        self.squared_weights = self.squared_weights.saturating_add(other.squared_weights);
        self.by_length.add(&other.by_length);
        let mut all = Vec::with_capacity(self.contexts.len().max(other.contexts.len()));
        let (mut own, mut others) =
            (std::mem::take(&mut self.contexts).into_iter().peekable(), other.contexts.iter().copied().peekable());
        loop {
            let next = match (own.peek(), others.peek()) {
                (Some((a, _)), Some((b, _))) if a == b => {
                    let (Some((context, mut totals)), Some((_, more))) = (own.next(), others.next()) else { break };
                    totals.add(&more);
                    Some((context, totals))
                }
                (Some((a, _)), Some((b, _))) if a < b => own.next(),
                (Some(_), None) => own.next(),
                _ => others.next(),
            };
            let Some(next) = next else { break };
            all.push(next);
        }
        self.contexts = all;
    }
}

/// Sums of both sets of values.
pub fn added(a: Sums, b: Sums) -> Sums {
    Sums { n: a.n.saturating_add(b.n), s1: a.s1.saturating_add(b.s1), s2: a.s2.saturating_add(b.s2) }
}

/// The executions of a task on one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTotals {
    /// The digests of the executions' parts of databases: what is in these totals.
    pub sources: BTreeSet<Digest>,
    /// All executions by length, in a group or not.
    pub by_length: DurationHistogram,
    /// What was kept of them.
    pub kept: KeptNumbers,
    /// Executions during which events were lost, or in which a wait has no cause.
    pub unsure: u64,
    /// The slow ones, the fast ones.
    pub groups: [GroupTotals; 2],
}

impl HostTotals {
    /// Add another one of the same contexts and groups.
    pub fn add(&mut self, other: &HostTotals) {
        self.sources.extend(&other.sources);
        self.by_length.add(&other.by_length);
        self.kept.add(other.kept);
        self.unsure = self.unsure.saturating_add(other.unsure);
        self.groups.iter_mut().zip(&other.groups).for_each(|(all, more)| all.add(more));
    }
}

/// The totals of each host in a part of a database, with the groups to which its executions belong: slow, fast.
pub fn totals(model: &Model, source: Digest, groups: [&[ExecutionId]; 2]) -> BTreeMap<String, HostTotals> {
    let (e, weights) = (&model.executions, model.executions.weights());
    let host =
        |i: usize| e.who.get(i).and_then(|who| model.who.get(who.index())).map_or(Names::MISSING, |who| who.host);
    let mut all: BTreeMap<_, HostTotals> = BTreeMap::new();
    for i in 0..e.len() {
        let (of_host, weight) = (all.entry(host(i)).or_default(), weights.of(i));
        of_host.by_length.put(e.duration(i), weight);
        of_host.kept.put(weight);
        of_host.unsure += u64::from(e.unsure.at(i)) * weight;
    }
    let mut inclusive = InclusiveTimes::new(&model.contexts);
    for (group, members) in groups.into_iter().enumerate() {
        let mut by_context: BTreeMap<_, BTreeMap<ContextId, ContextTotals>> = BTreeMap::new();
        for member in members {
            let i = member.index();
            let Some(of_host) = all.get_mut(&host(i)) else { continue };
            let of_group = &mut of_host.groups[group];
            let ns = u64::try_from(e.duration(i)).unwrap_or(0);
            let weight = weights.of(i);
            of_group.durations.n += weight;
            of_group.durations.put_times(ns, weight);
            of_group.squared_weights += u128::from(weight).pow(2);
            of_group.by_length.put(e.duration(i), weight);
            let contexts = by_context.entry(host(i)).or_default();
            inclusive.of(e.own.row(i), |context, ns| contexts.entry(context).or_default().put(ns, weight));
        }
        for (host, contexts) in by_context {
            if let Some(of_host) = all.get_mut(&host) {
                of_host.groups[group].contexts = contexts.into_iter().collect();
            }
        }
    }
    let named = |(host, mut totals): (_, HostTotals)| {
        totals.sources.insert(source);
        (model.names.get(host).to_owned(), totals)
    };
    all.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::statistics::Random;

    #[test]
    fn buckets_tile_all_durations_and_are_narrow() {
        let mut end = -1;
        for bucket in 0..DurationHistogram::bucket(Ns::MAX) {
            let (least, most) = DurationHistogram::bounds(bucket);
            assert_eq!(least, end + 1, "{bucket}");
            assert_eq!([least, most].map(DurationHistogram::bucket), [bucket; 2]);
            assert!((most - least) as f64 <= 0.01 * least as f64, "{least} to {most}");
            end = most;
        }
        assert_eq!(DurationHistogram::bounds(DurationHistogram::bucket(Ns::MAX)), (end + 1, Ns::MAX));
        assert_eq!(DurationHistogram::bucket(-5), 0);
        assert_eq!(DurationHistogram::bounds(u32::MAX), (Ns::MAX, Ns::MAX), "no bucket of a file is refused");
    }

    #[test]
    fn percentile_is_that_of_the_sorted_durations_within_their_bucket() {
        let mut random = Random::new(3);
        let mut sorted: Vec<Ns> = (0..1_001).map(|_| 1 << random.below(40)).map(|ns| ns + ns / 3).collect();
        let mut histogram = DurationHistogram::default();
        sorted.iter().for_each(|ns| histogram.put(*ns, 1));
        sorted.sort_unstable();
        for percent in [0.0, 0.1, 50.0, 95.0, 99.9, 100.0] {
            let exact = crate::base::statistics::nearest_rank(&sorted, percent).unwrap();
            let (least, most) = histogram.percentile(percent).unwrap();
            assert!((least..=most).contains(&exact), "p{percent}: {exact} in {least}..={most}");
        }
        assert_eq!(DurationHistogram::default().percentile(50.0), None);
    }
}
