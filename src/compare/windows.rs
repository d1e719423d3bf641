//! The control of windows of time: do other stretches of the recording differ as much?
//!
//! If one group precedes the other, any change on the machine in between is a cause as well, and no shuffling within
//! the two windows can show it. So two neighbouring windows of as many executions are placed elsewhere in the
//! recording, with their border outside of the compared pair; filters that both groups have hold there too. A
//! difference that such windows reach proves nothing. Without other executions there is nothing to compare with. Cost:
//! linear in the executions' sparse lists. ALGORITHMS.md 7.7.

use super::Group;
use super::filter::Filter;
use super::members;
use super::tree::GroupPair;
use crate::model::execution::ExecutionId;

/// Positions of a pair of windows, per length of the pair.
const STEPS: usize = 8;
/// Fraction of the observed difference that counts as equal.
const AS_MUCH: f64 = 0.8;

/// True if the values of `time` differ as much between other windows as between these, which is `extra_ns`.
pub(super) fn differ_elsewhere(
    groups: &GroupPair<'_>,
    (slow, fast): (&Group, &Group),
    time: impl Fn(usize) -> f64,
    extra_ns: f64,
) -> bool {
    let model = groups.model;
    let start = |id: &ExecutionId| (model.executions.start.at(id.index()), *id);
    let bounds = |group: &Group| Some((group.members.iter().map(start).min()?, group.members.iter().map(start).max()?));
    let (Some(a), Some(b)) = (bounds(slow), bounds(fast)) else { return false };
    let (first, second) = if a < b { (a, b) } else { (b, a) };
    if first.1 >= second.0 {
        return false;
    }
    let shared: Vec<Filter> = slow.filters.iter().filter(|f| fast.filters.contains(f)).cloned().collect();
    let Ok(mut all) = members::members(model, &shared, &[]) else { return false };
    all.sort_by_key(|id| start(id));
    let (before, after) =
        if a < b { (slow.members.len(), fast.members.len()) } else { (fast.members.len(), slow.members.len()) };
    // Prefix sums of the time, so that each window costs one subtraction.
    let (mut sums, mut counts) = (vec![0.0], vec![0]);
    for id in &all {
        let weight = groups.weights.of(id.index());
        sums.push(sums.last().copied().unwrap_or(0.0) + time(id.index()) * weight as f64);
        counts.push(counts.last().copied().unwrap_or(0) + weight);
    }
    let mean = |from: usize, n: usize| {
        let count: u64 = counts[from + n] - counts[from];
        (sums[from + n] - sums[from]) / count.max(1) as f64
    };
    let inside = |at: usize| all.get(at).is_some_and(|id| start(id) > first.0 && start(id) <= second.1);
    let step = ((before + after) / STEPS).max(1);
    let places = (0..).map(|i| i * step).take_while(|at| at + before + after <= all.len());
    let mut elsewhere = places.filter(|at| !inside(at + before));
    elsewhere.any(|at| (mean(at, before) - mean(at + before, after)).abs() >= AS_MUCH * extra_ns)
}

#[cfg(test)]
mod tests {
    use crate::base::ctx::Ctx;
    use crate::compare::scenario::ModelBuilder;
    use crate::compare::{Comparison, ComparisonRequest, compare};

    /// Six windows of 100 executions; each takes as long as its number says, in tenths of a millisecond.
    fn windows(tenths: [u64; 6]) -> Comparison {
        let mut s = ModelBuilder::new(1);
        for i in 0..600 {
            let more = tenths[i / 100] * 100_000;
            s.run("x", "p", "p", 1, &[("p;main;work", 1_000_000 + more + (i as u64 * 7919) % 9000)]);
        }
        let model = s.seal();
        let at = |i: usize| model.executions.start.get(i).map_or(i64::MAX >> 1, |start| start.ns());
        let window = |n: usize| format!("start in {}ns..{}ns", at(n * 100), at(n * 100 + 100));
        let list = |n: usize| vec![window(n).parse().unwrap()];
        let request = ComparisonRequest { slow: list(3), fast: list(2), ..ComparisonRequest::default() };
        compare(&with_starts(model), &request, &Ctx::new(1)).unwrap()
    }

    fn with_starts(mut model: crate::model::Model) -> crate::model::Model {
        use crate::model::metric::{Column, Metric};
        let values = model.executions.start.iter().map(|start| start.ns()).collect();
        model.executions.columns.push(Column { metric: Metric::Start, values });
        model
    }

    #[test]
    fn differ_elsewhere_rejects_a_change_that_comes_and_goes() {
        let once = windows([0, 0, 0, 9, 9, 9]);
        assert!(once.verdict.confident, "{:?}", once.verdict);
        let often = windows([9, 0, 0, 9, 0, 9]);
        assert!(!often.verdict.confident && often.verdict.sentence.contains("other stretches"), "{:?}", often.verdict);
    }
}
