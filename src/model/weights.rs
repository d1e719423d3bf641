//! How many executions one represents: the one place where weights are read.
//!
//! In: the executions of a model, of which a sample may have been kept (`sample`). Out: the weight of each, sums of
//! them, and percentiles of weighted values. Executions without the column [`Metric::Weight`] represent themselves, and
//! each figure is what it is without weights, to the bit. Cost: a look-up for each execution. ALGORITHMS.md section
//! 6.6.

use super::column_values::ColumnValues;
use super::execution::{ExecutionId, Executions};
use super::metric::Metric;
use crate::base::statistics::nearest_rank_of;

/// The largest weight that a file may have.
pub const MOST_WEIGHT: u64 = 1_000_000;

/// The weights of executions.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a>(Option<&'a ColumnValues>);

impl Executions {
    /// How many executions each represents.
    pub fn weights(&self) -> Weights<'_> {
        Weights(self.column(&Metric::Weight).map(|column| &column.values))
    }

    /// How many executions they represent.
    pub fn count(&self) -> u64 {
        let weights = self.weights();
        if weights.are_one() { self.len() as u64 } else { (0..self.len()).map(|i| weights.of(i)).sum() }
    }
}

impl Weights<'_> {
    /// True where each execution represents itself.
    pub fn are_one(self) -> bool {
        self.0.is_none()
    }

    /// How many executions one represents.
    #[inline]
    pub fn of(self, execution: usize) -> u64 {
        let value = self.0.and_then(|values| values.get(execution));
        value.and_then(|weight| u64::try_from(weight).ok()).map_or(1, |weight| weight.max(1))
    }

    /// How many executions some represent.
    pub fn sum(self, members: &[ExecutionId]) -> u64 {
        if self.are_one() { members.len() as u64 } else { members.iter().map(|id| self.of(id.index())).sum() }
    }

    /// How many executions of equal weight say as much of a mean as some of unequal weights do (Kish).
    pub fn effective(self, members: &[ExecutionId]) -> f64 {
        if self.are_one() {
            return members.len() as f64;
        }
        let squares: u128 = members.iter().map(|id| u128::from(self.of(id.index())).pow(2)).sum();
        effective_size(self.sum(members), squares)
    }
}

/// The effective number of values whose weights have this sum and this sum of squares.
pub fn effective_size(sum: u64, squares: u128) -> f64 {
    if squares == 0 { 0.0 } else { sum as f64 * sum as f64 / squares as f64 }
}

/// Values, ascending, and how many executions have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankedValues {
    values: Vec<i64>,
    /// By position the number of executions up to it; none where each value is that of one.
    upto: Option<Vec<u64>>,
}

impl RankedValues {
    /// Values with their weights, in any order.
    pub fn new(values: impl Iterator<Item = (i64, u64)>, are_one: bool) -> RankedValues {
        if are_one {
            let mut all = Vec::with_capacity(values.size_hint().0);
            all.extend(values.map(|(value, _)| value));
            all.sort_unstable();
            return RankedValues { values: all, upto: None };
        }
        let mut all: Vec<(i64, u64)> = values.collect();
        all.sort_unstable();
        let upto = all.iter().scan(0_u64, |sum, (_, weight)| {
            *sum += weight;
            Some(*sum)
        });
        let upto = Some(upto.collect());
        RankedValues { values: all.into_iter().map(|(value, _)| value).collect(), upto }
    }

    /// Values of one execution each, ascending.
    pub fn of_sorted(values: Vec<i64>) -> RankedValues {
        RankedValues { values, upto: None }
    }

    /// The durations of some executions.
    pub fn durations(executions: &Executions, of: impl Iterator<Item = usize>) -> RankedValues {
        let weights = executions.weights();
        RankedValues::new(of.map(|i| (executions.duration(i), weights.of(i))), weights.are_one())
    }

    /// The values that were kept, ascending.
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    /// How many executions have a value before this position.
    pub fn before(&self, at: usize) -> u64 {
        match &self.upto {
            None => at as u64,
            Some(upto) => at.checked_sub(1).and_then(|last| upto.get(last)).copied().unwrap_or(0),
        }
    }

    /// How many executions have a value.
    pub fn count(&self) -> u64 {
        self.before(self.values.len())
    }

    /// The position of a percentile by nearest rank, of the values from a position on.
    pub fn position(&self, from: usize, percent: f64) -> usize {
        let before = self.before(from);
        let rank = nearest_rank_of(usize::try_from(self.count() - before).unwrap_or(usize::MAX), percent) as u64;
        match &self.upto {
            None => from + rank as usize,
            Some(upto) => upto.partition_point(|upto| *upto <= before + rank),
        }
    }

    /// The percentile by nearest rank; `None` without values.
    pub fn nearest_rank(&self, percent: f64) -> Option<i64> {
        self.values.get(self.position(0, percent)).copied()
    }
}

/// What was kept of executions, where it is not all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptNumbers {
    /// Executions that were there.
    pub of: u64,
    /// Those that were kept.
    pub kept: u64,
    /// Those of them that represent themselves alone.
    pub in_full: u64,
    /// The largest weight: of the others one in so many was kept.
    pub one_in: u64,
}

impl KeptNumbers {
    /// Those of some executions; `None` where all were kept.
    pub fn of(executions: &Executions) -> Option<KeptNumbers> {
        let weights = executions.weights();
        (!weights.are_one()).then(|| {
            let mut all = KeptNumbers::default();
            (0..executions.len()).for_each(|i| all.put(weights.of(i)));
            all
        })
    }

    /// Count an execution of this weight.
    pub fn put(&mut self, weight: u64) {
        self.of = self.of.saturating_add(weight);
        self.kept = self.kept.saturating_add(1);
        self.in_full = self.in_full.saturating_add(u64::from(weight == 1));
        self.one_in = self.one_in.max(weight);
    }

    /// Count those of others.
    pub fn add(&mut self, other: KeptNumbers) {
        self.of = self.of.saturating_add(other.of);
        self.kept = self.kept.saturating_add(other.kept);
        self.in_full = self.in_full.saturating_add(other.in_full);
        self.one_in = self.one_in.max(other.one_in);
    }

    /// True where all were kept.
    pub fn are_all(self) -> bool {
        self.kept == self.of
    }

    /// `a sample: 1210 of 10000 executions, 500 kept in full, the others one in 13 with weights`.
    pub fn words(self) -> String {
        let count = crate::base::figure::count;
        let KeptNumbers { of, kept, in_full, one_in } = self;
        format!(
            "a sample: {} of {} executions, {} kept in full, the others one in {} with weights",
            count(kept),
            count(of),
            count(in_full),
            count(one_in)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::statistics::{Random, nearest_rank};

    #[test]
    fn ranked_values_are_those_of_the_repeated_values() {
        let mut random = Random::new(7);
        for _ in 0..200 {
            let all: Vec<(i64, u64)> =
                (0..1 + random.below(30)).map(|_| (random.below(20) as i64, 1 + random.below(9) as u64)).collect();
            let mut repeated: Vec<i64> =
                all.iter().flat_map(|(value, times)| std::iter::repeat_n(*value, *times as usize)).collect();
            repeated.sort_unstable();
            let ranked = RankedValues::new(all.iter().copied(), false);
            assert_eq!(ranked.count(), repeated.len() as u64);
            for percent in [0.0, 1.0, 50.0, 95.0, 99.0, 100.0] {
                assert_eq!(ranked.nearest_rank(percent), nearest_rank(&repeated, percent), "{percent} {all:?}");
            }
        }
        assert_eq!(RankedValues::new(std::iter::empty(), false).nearest_rank(50.0), None);
    }

    #[test]
    fn effective_size_is_the_number_of_equal_weights_and_less_of_others() {
        assert!((effective_size(30, 300) - 3.0).abs() < 1e-12);
        assert!(effective_size(12, 102) < 2.0);
        assert_eq!(effective_size(0, 0), 0.0);
    }
}
