//! The two groups: given by filters, or proposed from the durations alone (ALGORITHMS.md 7.5).
//!
//! Proposed groups are expressed as filters that a user can type: evaluating the filters always finds the members, so
//! that a printed filter gives the printed counts. Cost O(N log N).

use super::filter::{Filter, Operand, Test};
use super::members;
use super::members::SelectError;
use super::{CompareError, ComparisonRequest, Group, GroupsOrigin};
use crate::base::op::Op;
use crate::base::statistics::{divide_rounded, nearest_rank};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use std::collections::BTreeMap;

/// Filters of the two groups, and their origin.
struct Proposal {
    slow: Vec<Filter>,
    fast: Vec<Filter>,
    origin: GroupsOrigin,
}

/// The two groups of a request, and their origin.
#[derive(Debug)]
pub(super) struct SelectedGroups {
    pub slow: Group,
    pub fast: Group,
    pub origin: GroupsOrigin,
}

/// Executions beyond a gap that make it one.
const BEYOND_GAP: usize = 5;
/// Executions below which no groups are proposed.
const FEWEST: usize = 5;
/// Distance of two modes in deviations from which the valley between them separates (ALGORITHMS.md 7.5).
const MODES_APART: f64 = 4.5;

/// The groups of a request.
pub(super) fn groups(model: &Model, request: &ComparisonRequest) -> Result<SelectedGroups, CompareError> {
    if model.executions.is_empty() {
        let task = model.tasks.get(model.task).cloned().unwrap_or_default();
        return Err(CompareError::NoExecutions { task });
    }
    let Proposal { mut slow, mut fast, origin } = match (request.slow.is_empty(), request.fast.is_empty()) {
        (true, true) => match propose(model, request)? {
            Some(proposed) => proposed,
            None => {
                let fast = Group { filters: Vec::new(), members: Vec::new(), mean_ns: 0 };
                let slow = group(model, "slow", request.within.clone(), &[])?;
                return Ok(SelectedGroups { slow, fast, origin: GroupsOrigin::All });
            }
        },
        (false, false) => given(request.slow.clone(), request.fast.clone()),
        (false, true) => given(request.slow.clone(), rest("slow", &request.slow)),
        (true, false) => given(rest("fast", &request.fast), request.fast.clone()),
    };
    for filters in [&mut slow, &mut fast] {
        let missing: Vec<Filter> = request.within.iter().filter(|f| !filters.contains(f)).cloned().collect();
        filters.extend(missing);
    }
    for (own, filters) in [("slow", &slow), ("fast", &fast)] {
        let is_own = |test: &Test| matches!(test, Test::Compare(_, Operand::Name(name)) if name == own);
        let excludes_itself = |f: &&Filter| f.metric == Metric::Group && is_own(&f.test);
        if let Some(filter) = filters.iter().find(excludes_itself) {
            return Err(SelectError::ExcludesItself { filter: filter.to_string(), group: own }.into());
        }
    }
    let slow_group = group(model, "slow", slow.clone(), &fast)?;
    Ok(SelectedGroups { slow: slow_group, fast: group(model, "fast", fast, &slow)?, origin })
}

fn given(slow: Vec<Filter>, fast: Vec<Filter>) -> Proposal {
    Proposal { slow, fast, origin: GroupsOrigin::Given }
}

/// The filters of the executions that are not in the group `name`, of the same types.
fn rest(name: &str, filters: &[Filter]) -> Vec<Filter> {
    let other = Filter::named(Metric::Group, Op::NotEqual, name);
    let others: Vec<&Filter> = filters.iter().filter(|f| f.metric != Metric::Type).collect();
    // A group that is a whole type is compared with the other types, any other group with its own types.
    let types = filters.iter().filter(|f| f.metric == Metric::Type && !others.is_empty());
    types.cloned().chain([other]).collect()
}

/// The group that some filters select; an error where it is empty.
pub(super) fn group(
    model: &Model,
    name: &'static str,
    filters: Vec<Filter>,
    others: &[Filter],
) -> Result<Group, CompareError> {
    let members = members::members(model, &filters, others)?;
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

/// Filters that separate slow from fast: at the largest gap, else at the valley between two modes, else the tail and
/// the lower half. `None` if there is no contrast: too few executions, or all of one length.
fn propose(model: &Model, request: &ComparisonRequest) -> Result<Option<Proposal>, CompareError> {
    let within = members::members(model, &request.within, &[])?;
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

/// The same by duration alone; `some`: only some executions were selected, so their percentiles are not those of all.
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
        Proposal { slow: vec![slow], fast: vec![fast], origin }
    };
    let logs: Vec<f64> = sorted.iter().map(|d| (*d).max(1) as f64).map(f64::ln).collect();
    Some(if let Some(at) = largest_gap(sorted, &logs) {
        split(at, GroupsOrigin::Gap)
    } else if let Some(at) = valley(sorted, &logs) {
        split(at, GroupsOrigin::Valley)
    } else if some {
        let (least, most) = (nearest_rank(sorted, 95.0)?, nearest_rank(sorted, 50.0)?);
        let slow = Filter::compare(Metric::Duration, Op::AtLeast, least);
        let fast = Filter::compare(Metric::Duration, Op::AtMost, most);
        Proposal { slow: vec![slow], fast: vec![fast], origin: GroupsOrigin::Percentile }
    } else {
        let (slow, fast) = (percentile(Op::AtLeast, 95.0), percentile(Op::AtMost, 50.0));
        Proposal { slow: vec![slow], fast: vec![fast], origin: GroupsOrigin::Percentile }
    })
}

/// The trace whose executions took longer on average as the slow group, the other as the fast one.
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
    Some(Proposal { slow: filter(slow), fast: filter(fast), origin: GroupsOrigin::Trace })
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
/// are far enough apart and neither is tiny.
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
    use crate::base::time::Timestamp;

    fn model(durations: &[i64]) -> Model {
        let mut m = Model { tasks: vec!["app:request".into()].into(), ..Model::default() };
        for d in durations {
            m.executions.start.push(Timestamp::ZERO);
            m.executions.end.push(Timestamp::new(*d));
        }
        m
    }

    fn proposed(durations: &[i64]) -> (Vec<String>, Vec<String>, GroupsOrigin, usize, usize) {
        let found = groups(&model(durations), &ComparisonRequest::default()).unwrap();
        let SelectedGroups { slow, fast, origin } = found;
        let text = |g: &Group| g.filters.iter().map(Filter::to_string).collect();
        (text(&slow), text(&fast), origin, slow.members.len(), fast.members.len())
    }

    #[test]
    fn groups_proposes_rounded_bounds_at_a_gap() {
        let mut durations: Vec<i64> = (0..200).map(|i| 9_000_000 + i * 17_321).collect();
        durations.extend([48_123_456, 50_000_001, 51_234_567, 60_777_777, 49_999_999]);
        let (slow, fast, origin, n_slow, n_fast) = proposed(&durations);
        assert_eq!((origin, n_slow, n_fast), (GroupsOrigin::Gap, 5, 200));
        assert_eq!((slow, fast), (vec!["duration>=40ms".to_string()], vec!["duration<=20ms".to_string()]));
    }

    #[test]
    fn groups_takes_no_gap_before_four_executions() {
        let mut durations: Vec<i64> = (0..200).map(|i| 9_000_000 + i * 17_321).collect();
        durations.extend([48_000_000; 4]);
        assert_eq!(proposed(&durations).2, GroupsOrigin::Percentile);
    }

    #[test]
    fn groups_separates_two_modes_at_the_valley() {
        let mode = |centre: i64, width: i64| (0..100).map(move |i| centre + (i - 50) * width);
        let (.., origin, n_slow, n_fast) =
            proposed(&mode(1_000_000, 6_000).chain(mode(2_600_000, 12_000)).collect::<Vec<_>>());
        assert_eq!((origin, n_slow, n_fast), (GroupsOrigin::Valley, 100, 100));
    }

    #[test]
    fn groups_takes_percentiles_of_one_mode() {
        let durations: Vec<i64> = (0..400).map(|i| 1_000_000 + i * 5_000).collect();
        let (slow, fast, origin, n_slow, n_fast) = proposed(&durations);
        assert_eq!((origin, n_slow, n_fast), (GroupsOrigin::Percentile, 21, 200));
        assert_eq!((slow, fast), (vec!["duration>=p95".to_string()], vec!["duration<=p50".to_string()]));
    }

    #[test]
    fn round_apart_never_moves_an_execution() {
        for (below, above) in [(1, 2), (12, 13), (999, 1001), (12_345_678, 48_765_432), (0, i64::MAX), (99, 1000)] {
            let (most, least) = round_apart(below, above);
            assert!(below <= most && most < least && least <= above, "{below} {above}: {most} {least}");
        }
        assert_eq!(round_apart(12_345_678, 48_765_432), (20_000_000, 40_000_000));
    }

    #[test]
    fn groups_explains_empty_groups() {
        let says = |durations: &[i64], slow: &[&str]| {
            let slow = slow.iter().map(|t| t.parse().unwrap()).collect();
            groups(&model(durations), &ComparisonRequest { slow, ..ComparisonRequest::default() })
                .unwrap_err()
                .to_string()
        };
        assert!(says(&[], &[]).starts_with("task app:request has no executions"));
        for durations in [&[5][..], &[5; 20], &[4, 5, 5, 6]] {
            let found = groups(&model(durations), &ComparisonRequest::default()).unwrap();
            let SelectedGroups { slow, fast, origin } = found;
            assert_eq!((slow.members.len(), slow.mean_ns, origin), (durations.len(), 5, GroupsOrigin::All));
            assert!(fast.members.is_empty() && slow.filters.is_empty());
        }
        assert!(says(&[5, 7], &["duration>1s"]).contains("the values go from 5ns to 7ns"));
        assert!(says(&[5, 7], &["field.x>1"]).contains("no field.x"));
    }
}
