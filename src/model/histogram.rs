//! Bins of a metric: the same for both groups, so that bars compare.
//!
//! Few distinct values (names, small counts) get a bin each; skewed numbers get bins of equal ratio, the rest bins
//! of equal width. Edges are integers and half-open; every present value is in exactly one bin. Cost O(N log N)
//! for the sorted values that it asks for.

use super::metric::{ABSENT, Unit};

/// Most bins, and most distinct values that get one each.
const MOST: usize = 64;
/// The largest value by the median from which bins of equal ratio show more.
const SKEWED: i64 = 8;

/// Bins of one metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bins {
    /// Ascending; bin `i` holds values `edges[i] <= v < edges[i + 1]`. Empty when no execution has a value.
    pub edges: Vec<i64>,
    /// Edges grow by a ratio, not by a width.
    pub logarithmic: bool,
}

/// A half-open range of values: `from` is inside, `to` is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRange {
    /// The first value.
    pub from: i64,
    /// The first value after it.
    pub to: i64,
}

impl ValueRange {
    /// No value.
    pub const EMPTY: ValueRange = ValueRange { from: 0, to: 0 };

    /// One value.
    pub fn single(value: i64) -> ValueRange {
        ValueRange { from: value, to: value.saturating_add(1) }
    }

    /// True for a value inside.
    pub fn contains(self, value: i64) -> bool {
        self.from <= value && value < self.to
    }

    /// True if both have a value in common.
    pub fn overlaps(self, other: ValueRange) -> bool {
        self.from < other.to && other.from < self.to
    }

    /// The values that both contain; a range that ends before it begins contains none.
    pub fn intersection(self, other: ValueRange) -> ValueRange {
        ValueRange { from: self.from.max(other.from), to: self.to.min(other.to) }
    }
}

impl Bins {
    /// Bins for present values in ascending order.
    pub fn new(sorted: &[i64], unit: Unit) -> Self {
        let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else {
            return Bins { edges: Vec::new(), logarithmic: false };
        };
        let end = most.saturating_add(1);
        let mut distinct: Vec<i64> = sorted.chunk_by(|a, b| a == b).take(MOST + 1).map(|run| run[0]).collect();
        if distinct.len() <= MOST && (unit != Unit::Ns || distinct.len() <= 2) {
            distinct.push(end);
            return Bins { edges: distinct, logarithmic: false };
        }
        let positive = &sorted[sorted.partition_point(|v| *v <= 0)..];
        let median = positive.get(positive.len() / 2).copied().unwrap_or(0);
        let logarithmic = median > 0 && most / SKEWED >= median;
        let mut edges = if logarithmic {
            let first = positive[0].max(most / 1_000_000);
            let ratio = (end as f64 / first as f64).ln() / (MOST - 1) as f64;
            let edge = |i: usize| (first as f64 * (ratio * i as f64).exp()) as i64;
            (0..MOST - 1).map(|i| edge(i).max(first)).filter(|e| *e < end).collect::<Vec<_>>()
        } else {
            let width = (i128::from(end) - i128::from(least)).max(1);
            (0..MOST as i128).map(|i| (i128::from(least) + width * i / MOST as i128) as i64).collect()
        };
        edges.push(least);
        edges.push(end);
        edges.sort_unstable();
        edges.dedup();
        Bins { edges, logarithmic }
    }

    pub fn len(&self) -> usize {
        self.edges.len().saturating_sub(1)
    }

    /// True when no execution has a value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bin of a value; `None` for absent ones.
    pub fn of(&self, value: i64) -> Option<usize> {
        if value == ABSENT || self.is_empty() {
            return None;
        }
        // Only the very last value of the type can be at the end.
        Some(self.edges.partition_point(|e| *e <= value).saturating_sub(1).min(self.len() - 1))
    }

    /// The values of a bin.
    pub fn range(&self, bin: usize) -> Option<ValueRange> {
        Some(ValueRange { from: *self.edges.get(bin)?, to: *self.edges.get(bin + 1)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(values: &mut [i64], unit: Unit) -> Bins {
        values.sort_unstable();
        let bins = Bins::new(values, unit);
        assert!(bins.edges.is_sorted() && bins.len() <= MOST + 1);
        for v in values.iter().copied() {
            let ValueRange { from, to } = bins.range(bins.of(v).unwrap()).unwrap();
            assert!(from <= v && (v < to || v == i64::MAX), "{v} in {from}..{to}");
        }
        bins
    }

    #[test]
    fn bins_of_few_values_hold_one_value_each() {
        assert_eq!(holds(&mut [7, 3, 7, 9], Unit::Name).edges, [3, 7, 9, 10]);
    }

    #[test]
    fn bins_of_skewed_times_have_equal_ratios() {
        let mut values: Vec<i64> = (0..1000).map(|i| 1_000_000 + i * 1000).chain([90_000_000, 0]).collect();
        let bins = holds(&mut values, Unit::Ns);
        assert!(bins.logarithmic && bins.edges[0] == 0);
        let mut flat: Vec<i64> = (0..1000).map(|i| 1_000_000 + i * 1000).collect();
        assert!(!holds(&mut flat, Unit::Ns).logarithmic);
    }

    #[test]
    fn bins_include_extremes() {
        holds(&mut [i64::MIN + 1, -5, 0, i64::MAX], Unit::Ns);
        holds(&mut [1, 2, i64::MAX], Unit::Ns);
        assert!(Bins::new(&[], Unit::Ns).is_empty() && Bins::new(&[], Unit::Ns).of(3).is_none());
        assert_eq!(holds(&mut [5], Unit::Ns).len(), 1);
    }
}
