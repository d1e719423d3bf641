//! The two groups: given by filters, or proposed from the durations alone (ALGORITHMS.md 7.5).
//!
//! Proposed groups are expressed as filters that anyone can type: the members are always found by evaluating the
//! filters, so that a printed filter gives the printed counts. Cost O(N log N).

use super::filter::{Filter, Operand, Test};
use super::members;
use super::{CompareError, ComparisonRequest, Group, GroupsOrigin};
use crate::base::op::Op;
use crate::base::statistics::{divide_rounded, nearest_rank};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use std::collections::BTreeMap;

/// Filters of the slow group, of the fast one, and how they came about.
type Proposal = (Vec<Filter>, Vec<Filter>, GroupsOrigin);

/// Executions beyond a gap that make it one.
const BEYOND_GAP: usize = 5;
/// Executions below which none is held against others.
const FEWEST: usize = 5;
/// Distance of two modes in deviations from which the valley between them separates (ALGORITHMS.md 7.5).
const MODES_APART: f64 = 4.5;

/// Slow and fast group of a request, and how they came about.
pub fn groups(model: &Model, request: &ComparisonRequest) -> Result<(Group, Group, GroupsOrigin), CompareError> {
    if model.executions.is_empty() {
        let task = model.tasks.get(model.task).cloned().unwrap_or_default();
        return Err(CompareError::NoExecutions { task });
    }
    let (mut slow, mut fast, origin) = match (request.slow.is_empty(), request.fast.is_empty()) {
        (true, true) => match propose(model, request)? {
            Some(proposed) => proposed,
            None => {
                let fast = Group { filters: Vec::new(), members: Vec::new(), mean_ns: 0 };
                return Ok((group(model, "slow", request.within.clone(), &[])?, fast, GroupsOrigin::All));
            }
        },
        (false, false) => (request.slow.clone(), request.fast.clone(), GroupsOrigin::Given),
        (false, true) => (request.slow.clone(), rest("slow", &request.slow), GroupsOrigin::Given),
        (true, false) => (rest("fast", &request.fast), request.fast.clone(), GroupsOrigin::Given),
    };
    for filters in [&mut slow, &mut fast] {
        let missing: Vec<Filter> = request.within.iter().filter(|f| !filters.contains(f)).cloned().collect();
        filters.extend(missing);
    }
    for (own, filters) in [("slow", &slow), ("fast", &fast)] {
        let itself = |f: &&Filter| matches!(&f.test, Test::Compare(_, Operand::Name(n)) if f.metric == Metric::Group && n == own);
        if let Some(filter) = filters.iter().find(itself) {
            return Err(CompareError::Filter(format!("filter `{filter}`: the {own} group cannot leave itself")));
        }
    }
    Ok((group(model, "slow", slow.clone(), &fast)?, group(model, "fast", fast, &slow)?, origin))
}

/// The filters of the executions that the group `name` leaves, of the same types and traces.
fn rest(name: &str, filters: &[Filter]) -> Vec<Filter> {
    let other = Filter::named(Metric::Group, Op::NotEqual, name);
    let others: Vec<&Filter> = filters.iter().filter(|f| f.metric != Metric::Type).collect();
    // A group that is a type is held against the other types, else against its own.
    let types = filters.iter().filter(|f| f.metric == Metric::Type && !others.is_empty());
    types.cloned().chain([other]).collect()
}

fn group(model: &Model, name: &'static str, filters: Vec<Filter>, others: &[Filter]) -> Result<Group, CompareError> {
    let members = members::members(model, &filters, others).map_err(CompareError::Filter)?;
    if members.is_empty() {
        return Err(CompareError::EmptyGroup { group: name, reason: members::why_empty(model, &filters, others) });
    }
    let sum: i128 = members.iter().map(|id| i128::from(model.executions.duration(id.index()))).sum();
    let mean_ns = divide_rounded(sum, members.len() as u128);
    Ok(Group { filters, members, mean_ns })
}

fn percentile(op: Op, percent: f64) -> Filter {
    Filter { metric: Metric::Duration, test: Test::Compare(op, Operand::Percentile(percent)) }
}

/// Filters that separate slow from fast: at the largest gap, else at the valley between two modes, else the tail
/// against the lower half. `None` where there is no contrast: too few executions, or all of one length.
fn propose(model: &Model, request: &ComparisonRequest) -> Result<Option<Proposal>, CompareError> {
    let within = members::members(model, &request.within, &[]).map_err(CompareError::Filter)?;
    if request.by_trace || model.choice.as_ref().is_some_and(|choice| choice.by_trace) {
        let proposed = by_trace(model, &within);
        if proposed.is_some() {
            return Ok(proposed);
        }
    }
    let mut sorted: Vec<i64> = within.iter().map(|e| model.executions.duration(e.index())).collect();
    sorted.sort_unstable();
    Ok(by_duration(model, &sorted, !request.within.is_empty()))
}

/// The same by duration alone; `some`: of some executions only, whose percentiles are not those of all.
fn by_duration(model: &Model, sorted: &[i64], some: bool) -> Option<Proposal> {
    if sorted.len() < FEWEST
        || sorted.first() == sorted.last()
        || model.choice.as_ref().is_some_and(|choice| choice.profile)
    {
        return None;
    }
    let split = |at: usize, origin| {
        let (below, above) = (sorted[at - 1], sorted[at]);
        let (most, least) = round_apart(below, above);
        let slow = Filter::compare(Metric::Duration, Op::AtLeast, least);
        let fast = Filter::compare(Metric::Duration, Op::AtMost, most);
        (vec![slow], vec![fast], origin)
    };
    let logs: Vec<f64> = sorted.iter().map(|d| (*d).max(1) as f64).map(f64::ln).collect();
    Some(if let Some(at) = largest_gap(sorted, &logs) {
        split(at, GroupsOrigin::Gap)
    } else if let Some(at) = valley(sorted, &logs) {
        split(at, GroupsOrigin::Valley)
    } else if some {
        let (least, most) = (nearest_rank(sorted, 95.0)?, nearest_rank(sorted, 50.0)?);
        let slow = Filter::compare(Metric::Duration, Op::AtLeast, least);
        (vec![slow], vec![Filter::compare(Metric::Duration, Op::AtMost, most)], GroupsOrigin::Percentile)
    } else {
        (vec![percentile(Op::AtLeast, 95.0)], vec![percentile(Op::AtMost, 50.0)], GroupsOrigin::Percentile)
    })
}

/// The executions of the trace in which they took longer on average, against those of the other.
fn by_trace(model: &Model, within: &[ExecutionId]) -> Option<Proposal> {
    let executions = &model.executions;
    let mut of: BTreeMap<&str, (i128, i128)> = BTreeMap::new();
    for i in within.iter().map(|e| e.index()) {
        let label = &model.traces.get(executions.trace.get(i)?.index())?.label;
        let sum = of.entry(label).or_default();
        *sum = (sum.0 + i128::from(executions.duration(i)), sum.1 + 1);
    }
    let [(a, (a_ns, a_n)), (b, (b_ns, b_n))] = of.into_iter().collect::<Vec<_>>().try_into().ok()?;
    let filter = |label: &str| vec![Filter::named(Metric::Trace, Op::Equal, label)];
    let (slow, fast) = if a_ns * b_n > b_ns * a_n { (a, b) } else { (b, a) };
    Some((filter(slow), filter(fast), GroupsOrigin::Trace))
}

/// Position of the first execution beyond the largest gap above the median, if it is a factor of two.
fn largest_gap(sorted: &[i64], logs: &[f64]) -> Option<usize> {
    let last = sorted.len().checked_sub(BEYOND_GAP)?;
    let mut best: Option<(f64, usize)> = None;
    for at in (sorted.len() / 2).max(1)..=last {
        let gap = logs[at] - logs[at - 1];
        if best.is_none_or(|(most, _)| gap > most) {
            best = Some((gap, at));
        }
    }
    let (_, at) = best?;
    (sorted[at] / 2 >= sorted[at - 1].max(1)).then_some(at)
}

/// Position of the first execution above the split with least variance within its sides (Otsu), if the two sides
/// lie far enough apart and neither is tiny.
fn valley(sorted: &[i64], logs: &[f64]) -> Option<usize> {
    let n = sorted.len();
    let least = BEYOND_GAP.max(n.div_ceil(200));
    // Sums around the middle value, which keeps the squares small.
    let middle = logs[n / 2];
    let (mut all, mut all_squares) = (0.0, 0.0);
    for x in logs.iter().map(|l| l - middle) {
        all += x;
        all_squares += x * x;
    }
    let (mut low, mut low_squares) = (0.0, 0.0);
    let mut best: Option<(f64, usize, f64)> = None;
    for at in 1..n {
        let x = logs[at - 1] - middle;
        low += x;
        low_squares += x * x;
        if at < least || n - at < least || sorted[at] == sorted[at - 1] {
            continue;
        }
        let (k, m) = (at as f64, (n - at) as f64);
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

/// Two round numbers that keep two neighbours apart: `below <= most < least <= above`, with as few digits as do.
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

    fn model(durations: &[i64]) -> Model {
        let mut m = Model { tasks: vec!["app:request".into()].into(), ..Model::default() };
        for d in durations {
            m.executions.start.push(0);
            m.executions.end.push(*d);
        }
        m
    }

    fn proposed(durations: &[i64]) -> (Vec<String>, Vec<String>, GroupsOrigin, usize, usize) {
        let (slow, fast, origin) = groups(&model(durations), &ComparisonRequest::default()).unwrap();
        let text = |g: &Group| g.filters.iter().map(Filter::to_string).collect();
        (text(&slow), text(&fast), origin, slow.members.len(), fast.members.len())
    }

    #[test]
    fn a_gap_is_found_and_rounded() {
        let mut durations: Vec<i64> = (0..200).map(|i| 9_000_000 + i * 17_321).collect();
        durations.extend([48_123_456, 50_000_001, 51_234_567, 60_777_777, 49_999_999]);
        let (slow, fast, origin, n_slow, n_fast) = proposed(&durations);
        assert_eq!((origin, n_slow, n_fast), (GroupsOrigin::Gap, 5, 200));
        assert_eq!((slow, fast), (vec!["duration>=40ms".to_string()], vec!["duration<=20ms".to_string()]));
    }

    #[test]
    fn four_stragglers_are_no_gap() {
        let mut durations: Vec<i64> = (0..200).map(|i| 9_000_000 + i * 17_321).collect();
        durations.extend([48_000_000; 4]);
        assert_eq!(proposed(&durations).2, GroupsOrigin::Percentile);
    }

    #[test]
    fn two_modes_are_parted_at_the_valley() {
        let mode = |centre: i64, width: i64| (0..100).map(move |i| centre + (i - 50) * width);
        let (.., origin, n_slow, n_fast) =
            proposed(&mode(1_000_000, 6_000).chain(mode(2_600_000, 12_000)).collect::<Vec<_>>());
        assert_eq!((origin, n_slow, n_fast), (GroupsOrigin::Valley, 100, 100));
    }

    #[test]
    fn one_mode_is_not_parted() {
        let durations: Vec<i64> = (0..400).map(|i| 1_000_000 + i * 5_000).collect();
        let (slow, fast, origin, n_slow, n_fast) = proposed(&durations);
        assert_eq!((origin, n_slow, n_fast), (GroupsOrigin::Percentile, 21, 200));
        assert_eq!((slow, fast), (vec!["duration>=p95".to_string()], vec!["duration<=p50".to_string()]));
    }

    #[test]
    fn rounding_never_moves_an_execution() {
        for (below, above) in [(1, 2), (12, 13), (999, 1001), (12_345_678, 48_765_432), (0, i64::MAX), (99, 1000)] {
            let (most, least) = round_apart(below, above);
            assert!(below <= most && most < least && least <= above, "{below} {above}: {most} {least}");
        }
        assert_eq!(round_apart(12_345_678, 48_765_432), (20_000_000, 40_000_000));
    }

    #[test]
    fn groups_that_cannot_be_are_explained() {
        let says = |durations: &[i64], slow: &[&str]| {
            let slow = slow.iter().map(|t| t.parse().unwrap()).collect();
            groups(&model(durations), &ComparisonRequest { slow, ..ComparisonRequest::default() })
                .unwrap_err()
                .to_string()
        };
        assert!(says(&[], &[]).starts_with("task app:request has no executions"));
        for durations in [&[5][..], &[5; 20], &[4, 5, 5, 6]] {
            let (slow, fast, origin) = groups(&model(durations), &ComparisonRequest::default()).unwrap();
            assert_eq!((slow.members.len(), slow.mean_ns, origin), (durations.len(), 5, GroupsOrigin::All));
            assert!(fast.members.is_empty() && slow.filters.is_empty());
        }
        assert!(says(&[5, 7], &["duration>1s"]).contains("it goes from 5ns to 7ns"));
        assert!(says(&[5, 7], &["field.x>1"]).contains("no field.x"));
    }
}
