//! Linked histograms: a range on one metric changes the histograms of all others at once.
//!
//! [`Linked`] is made once: for each metric its values, the executions in order of it, and the bin of each execution
//! (bins of one execution side by side, so that one cache line serves all metrics). A [`Selection`] is one group: a
//! range per metric, for each execution a mask of the metrics that reject it, and the histograms. A histogram counts
//! the executions that pass all *other* metrics' ranges: its own range does not hollow it out. Absent values fail
//! any range on their metric. ALGORITHMS.md 7.1.
//!
//! Moving a range finds its new positions by binary search and visits only the executions between old and new ones:
//! O(log N + K x M). Where more than one in `RECOUNT` changes sides, one pass over all is faster than visiting them
//! in order of the metric. Invariant: after any sequence of moves the state equals that of a new selection with the
//! same ranges (`tests/oracle.rs`).

use super::execution::ExecutionId;
use super::histogram::{Bins, ValueRange};
use super::metric::{ABSENT, Column, Metric};
use super::weights::Weights;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;

/// Metrics that can be linked: one bit each in a mask, and one bit for [`Selection::exclude`].
pub const MOST_METRICS: usize = 63;
/// Above one in this many, a recount is cheaper than visiting each.
const RECOUNT: usize = 4;
/// Bin of executions without a value, and the size of a row of counts.
const NO_BIN: usize = 255;
const ROW: usize = NO_BIN + 1;
const EXCLUDED: u64 = 1 << MOST_METRICS;

/// One metric of all executions.
#[derive(Clone, Debug)]
pub struct Axis {
    pub metric: Metric,
    pub bins: Bins,
    values: Vec<i64>,
    /// Executions by value, absent ones first.
    order: Vec<u32>,
    /// Executions without a value.
    absent: usize,
}

impl Axis {
    fn new(column: &Column) -> Self {
        let mut pairs: Vec<(i64, u32)> = column.values.iter().zip(0..).collect();
        pairs.sort_unstable();
        let absent = pairs.partition_point(|(v, _)| *v == ABSENT);
        let sorted: Vec<i64> = pairs[absent..].iter().map(|(v, _)| *v).collect();
        Axis {
            metric: column.metric.clone(),
            bins: Bins::new(&sorted, column.metric.unit()),
            values: column.values.iter().collect(),
            order: pairs.into_iter().map(|(_, i)| i).collect(),
            absent,
        }
    }

    /// Positions of the executions whose value is in the range; all without one.
    fn positions(&self, range: Option<ValueRange>) -> (usize, usize) {
        let Some(ValueRange { from, to }) = range else { return (0, self.order.len()) };
        let below = |v: i64| self.order.partition_point(|i| self.values[*i as usize] < v);
        let lo = below(from).max(self.absent);
        (lo, below(to).max(lo))
    }
}

/// All metrics of all executions, ready to be selected from.
#[derive(Clone, Debug)]
pub struct Linked {
    len: usize,
    axes: Vec<Axis>,
    /// Bins by execution, then by metric.
    bins: Vec<u8>,
    /// By execution how many it represents; none where each represents itself.
    weights: Vec<u32>,
}

impl Linked {
    /// Link the first [`MOST_METRICS`] columns; each has one value per execution. O(M N log N).
    pub fn new(columns: &[Column], ctx: &Ctx) -> Result<Self, Cancelled> {
        let columns = &columns[..columns.len().min(MOST_METRICS)];
        let len = columns.iter().map(|c| c.values.len()).min().unwrap_or(0);
        let mut axes = Vec::with_capacity(columns.len());
        let mut bins = vec![NO_BIN as u8; len * columns.len()];
        let make = |m: usize| {
            let axis = Axis::new(&columns[m]);
            let of: Vec<u8> = axis.values.iter().map(|v| axis.bins.of(*v).unwrap_or(NO_BIN) as u8).collect();
            (axis, of)
        };
        in_order(ctx, columns.len(), make, |m, (axis, of)| {
            for (row, bin) in bins.chunks_exact_mut(columns.len()).zip(of) {
                row[m] = bin;
            }
            axes.push(axis);
        })?;
        Ok(Linked { len, axes, bins, weights: Vec::new() })
    }

    /// With the numbers of executions for which those of a sample stand.
    #[must_use]
    pub fn weighted(mut self, weights: Weights<'_>) -> Linked {
        let weight = |i| u32::try_from(weights.of(i)).unwrap_or(u32::MAX);
        self.weights = if weights.are_one() { Vec::new() } else { (0..self.len).map(weight).collect() };
        self
    }

    fn weight(&self, execution: usize) -> u32 {
        self.weights.get(execution).copied().unwrap_or(1)
    }

    /// The metrics, in the order of the columns.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Position of a metric among them.
    pub fn position(&self, metric: &Metric) -> Option<usize> {
        self.axes.iter().position(|a| a.metric == *metric)
    }

    /// Number of executions.
    #[cfg(not(program))]
    pub fn executions(&self) -> usize {
        self.len
    }

    fn row(&self, execution: usize) -> &[u8] {
        let width = self.axes.len();
        &self.bins[execution * width..(execution + 1) * width]
    }
}

/// One group: ranges, and what passes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    ranges: Vec<Option<ValueRange>>,
    /// By execution: bit `m` is set when metric `m` rejects it.
    masks: Vec<u64>,
    /// By metric, then by bin.
    counts: Vec<u32>,
    passing: usize,
}

impl Selection {
    /// The group of all executions.
    pub fn new(linked: &Linked) -> Self {
        let mut all = Selection {
            ranges: vec![None; linked.axes.len()],
            masks: vec![0; linked.len],
            counts: Vec::new(),
            passing: 0,
        };
        all.recount(linked);
        all
    }

    /// Number of executions that pass.
    #[cfg(not(program))]
    pub fn passing(&self) -> usize {
        self.passing
    }

    /// The range on a metric.
    pub fn range(&self, axis: usize) -> Option<ValueRange> {
        self.ranges.get(axis).copied().flatten()
    }

    /// Executions by bin of a metric, its own range ignored.
    pub fn counts(&self, linked: &Linked, axis: usize) -> &[u32] {
        let bins = linked.axes.get(axis).map_or(0, |a| a.bins.len());
        self.counts.get(axis * ROW..axis * ROW + bins).unwrap_or(&[])
    }

    /// Members of the group by bin of a metric, its own range included. O(bins), and O(n) in the executions of the bins
    /// that the range cuts.
    pub fn members_by_bin(&self, linked: &Linked, axis: usize) -> Vec<u32> {
        let mut counts = self.counts(linked, axis).to_vec();
        let (Some(ValueRange { from, to }), Some(of)) = (self.range(axis), linked.axes.get(axis)) else {
            return counts;
        };
        for (bin, count) in counts.iter_mut().enumerate() {
            let Some(ValueRange { from: low, to: high }) = of.bins.range(bin) else { continue };
            if from <= low && high <= to {
                continue;
            }
            let first = low.max(from);
            let (first, last) = of.positions(Some(ValueRange { from: first, to: high.min(to).max(first) }));
            let passing = of.order[first..last].iter().filter(|i| self.masks[**i as usize] == 0);
            *count = passing.fold(0, |sum, i| sum.wrapping_add(linked.weight(*i as usize)));
        }
        counts
    }

    /// The executions that pass, ascending.
    #[cfg(not(program))]
    pub fn members(&self) -> Vec<ExecutionId> {
        let passing = self.masks.iter().enumerate().filter(|(_, m)| **m == 0);
        passing.map(|(i, _)| ExecutionId::at(i)).collect()
    }

    /// Set the range on a metric, or clear it.
    pub fn select(&mut self, linked: &Linked, axis: usize, range: Option<ValueRange>) {
        let (Some(of), Some(old)) = (linked.axes.get(axis), self.ranges.get(axis).copied()) else { return };
        self.ranges[axis] = range;
        let ((old_lo, old_hi), (lo, hi)) = (of.positions(old), of.positions(range));
        let changed = if hi <= old_lo || old_hi <= lo {
            [(old_lo, old_hi), (lo, hi)]
        } else {
            [(old_lo.min(lo), old_lo.max(lo)), (old_hi.min(hi), old_hi.max(hi))]
        };
        let bit = 1_u64 << axis;
        if changed.iter().map(|(from, to)| to - from).sum::<usize>() > linked.len / RECOUNT {
            let range_or_all = range.unwrap_or(ValueRange { from: ABSENT, to: i64::MAX });
            // A range may end at the largest value only by leaving it out; no range leaves nothing out.
            let all = range.is_none();
            for (mask, v) in self.masks.iter_mut().zip(&of.values) {
                let passes = all || (range_or_all.contains(*v) && *v != ABSENT);
                *mask = if passes { *mask & !bit } else { *mask | bit };
            }
            self.recount(linked);
            return;
        }
        for (from, to) in changed {
            for i in &of.order[from..to] {
                self.flip(linked, *i as usize, bit);
            }
        }
    }

    /// Leave out executions for reasons that are no range (`!=`); replaces what was left out before.
    pub fn exclude(&mut self, linked: &Linked, out: impl Fn(ExecutionId) -> bool) {
        for (i, mask) in self.masks.iter_mut().enumerate() {
            *mask = if out(ExecutionId::at(i)) { *mask | EXCLUDED } else { *mask & !EXCLUDED };
        }
        self.recount(linked);
    }

    /// One execution passes one metric that rejected it, or the other way round.
    fn flip(&mut self, linked: &Linked, execution: usize, bit: u64) {
        let mask = &mut self.masks[execution];
        *mask ^= bit;
        let others = *mask & !bit;
        let enters = *mask & bit == 0;
        let weight = linked.weight(execution);
        let step =
            |count: &mut u32| *count = if enters { count.wrapping_add(weight) } else { count.wrapping_sub(weight) };
        let row = linked.row(execution);
        if others == 0 {
            let own = bit.trailing_zeros() as usize;
            self.passing = if enters { self.passing + 1 } else { self.passing - 1 };
            for (axis, (bin, counts)) in row.iter().zip(self.counts.chunks_exact_mut(ROW)).enumerate() {
                if axis != own {
                    step(&mut counts[usize::from(*bin)]);
                }
            }
        } else if others.is_power_of_two()
            && let Some(bin) = row.get(others.trailing_zeros() as usize)
        {
            step(&mut self.counts[others.trailing_zeros() as usize * ROW + usize::from(*bin)]);
        }
    }

    /// Count everything anew from the masks.
    fn recount(&mut self, linked: &Linked) {
        self.counts.clear();
        self.counts.resize(linked.axes.len() * ROW, 0);
        self.passing = 0;
        let width = linked.axes.len();
        if width == 0 {
            return;
        }
        for (execution, (mask, row)) in self.masks.iter().zip(linked.bins.chunks_exact(width)).enumerate() {
            let weight = linked.weight(execution);
            if *mask == 0 {
                self.passing += 1;
                for (bin, counts) in row.iter().zip(self.counts.chunks_exact_mut(ROW)) {
                    let count = &mut counts[usize::from(*bin)];
                    *count = count.wrapping_add(weight);
                }
            } else if mask.is_power_of_two()
                && let Some(bin) = row.get(mask.trailing_zeros() as usize)
            {
                let count = &mut self.counts[mask.trailing_zeros() as usize * ROW + usize::from(*bin)];
                *count = count.wrapping_add(weight);
            }
        }
    }
}
