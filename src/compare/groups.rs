//! The two groups: given by filters, or proposed (by `proposal`, from the durations alone; ALGORITHMS.md 7.5).
//!
//! Proposed groups are expressed as filters that a user can type: evaluating the filters always finds the members, so
//! that a printed filter gives the printed counts. Cost O(N log N).

use super::failures::{self, Comparable};
use super::filter::{Filter, Operand, Test};
use super::members;
use super::proposal::{self, Proposal};
use super::select_error::SelectError;
use super::since_begin;
use super::{CompareError, ComparisonRequest, Group, GroupsOrigin, Spread};
use crate::base::op::Op;
use crate::base::statistics::divide_rounded;
use crate::model::Model;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use crate::model::weights::RankedValues;
use std::collections::BTreeMap;

/// The two groups of a request, and their origin.
#[derive(Debug)]
pub(super) struct SelectedGroups {
    pub slow: Group,
    pub fast: Group,
    pub origin: GroupsOrigin,
    /// What neither group has, in sentences.
    pub left_out: Vec<String>,
}

impl SelectedGroups {
    /// A single group, which is compared with nothing.
    pub fn alone(all: Group) -> SelectedGroups {
        let fast = Group { filters: Vec::new(), members: Vec::new(), count: 0, mean_ns: 0, spread: None };
        SelectedGroups { slow: all, fast, origin: GroupsOrigin::All, left_out: Vec::new() }
    }
}

/// The groups of a request.
pub(super) fn groups(model: &Model, request: &ComparisonRequest) -> Result<SelectedGroups, CompareError> {
    if model.executions.is_empty() {
        let task = model.tasks.get(model.task).cloned().unwrap_or_default();
        return Err(CompareError::NoExecutions { task });
    }
    let request = &with_times_since_begin(model, request)?;
    let Proposal { mut slow, mut fast, origin, left_out } = match (request.slow.is_empty(), request.fast.is_empty()) {
        (true, true) => match propose(model, request)? {
            Some(proposed) => proposed,
            None => {
                return Ok(SelectedGroups::alone(group(model, "slow", request.within.clone(), &[])?));
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
    Ok(SelectedGroups { slow: slow_group, fast: group(model, "fast", fast, &slow)?, origin, left_out })
}

/// The request without times of day: the groups then select the same on every screen.
fn with_times_since_begin(model: &Model, request: &ComparisonRequest) -> Result<ComparisonRequest, SelectError> {
    let resolved = |filters| since_begin::resolved(model, filters);
    let (slow, fast, within) = (resolved(&request.slow)?, resolved(&request.fast)?, resolved(&request.within)?);
    Ok(ComparisonRequest { slow, fast, within, by_trace: request.by_trace, per: request.per })
}

fn given(slow: Vec<Filter>, fast: Vec<Filter>) -> Proposal {
    Proposal::new(slow, fast, GroupsOrigin::Given)
}

/// The filters of the executions that are not in the group `name`, of the same types.
pub(super) fn rest(name: &str, filters: &[Filter]) -> Vec<Filter> {
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
    let count = model.executions.weights().sum(&members);
    let mean_ns = divide_rounded(total(model, &members), count.into());
    let spread = Some(spread(model, &members));
    Ok(Group { filters, members, count, mean_ns, spread })
}

/// The durations of all executions for which some stand, added up.
pub(super) fn total(model: &Model, members: &[ExecutionId]) -> i128 {
    let weights = model.executions.weights();
    let of = |id: &ExecutionId| i128::from(model.executions.duration(id.index())) * i128::from(weights.of(id.index()));
    members.iter().map(of).sum()
}

/// How long the executions of a group take.
fn spread(model: &Model, members: &[ExecutionId]) -> Spread {
    let ranked = RankedValues::durations(&model.executions, members.iter().map(|id| id.index()));
    let at = |percent| ranked.nearest_rank(percent).unwrap_or(0);
    Spread { p50_ns: at(50.0), p95_ns: at(95.0), p99_ns: at(99.0), max_ns: at(100.0) }
}

/// Filters that separate slow from fast: by the trace, else by the duration. `None` if there is no contrast: too few
/// executions, or all of one length.
fn propose(model: &Model, request: &ComparisonRequest) -> Result<Option<Proposal>, CompareError> {
    let within = members::members(model, &request.within, &[])?;
    if request.by_trace || model.choice.as_ref().is_some_and(|choice| choice.by_trace) {
        let proposed = by_trace(model, &within);
        if proposed.is_some() {
            return Ok(proposed);
        }
    }
    if model.choice.as_ref().is_some_and(|choice| choice.profile) {
        return Ok(None);
    }
    let Comparable { members, both, fast, left_out } = failures::comparable(model, within);
    let ranked = RankedValues::durations(&model.executions, members.iter().map(|e| e.index()));
    Ok(proposal::by_duration(&ranked, members.len() == model.executions.len()).map(|mut proposed| {
        proposed.slow.extend(both.iter().cloned());
        proposed.fast.extend(both.into_iter().chain(fast));
        proposed.left_out.extend(left_out);
        proposed
    }))
}

/// The trace whose executions took longer on average as the slow group, the other as the fast one.
fn by_trace(model: &Model, within: &[ExecutionId]) -> Option<Proposal> {
    let (executions, weights) = (&model.executions, model.executions.weights());
    let mut of: BTreeMap<&str, (i128, i128)> = BTreeMap::new();
    for i in within.iter().map(|e| e.index()) {
        let label = &model.traces.get(executions.trace.get(i)?.index())?.label;
        let sum = of.entry(label).or_default();
        let weight = i128::from(weights.of(i));
        *sum = (sum.0 + i128::from(executions.duration(i)) * weight, sum.1 + weight);
    }
    let [(a, (a_ns, a_n)), (b, (b_ns, b_n))] = of.into_iter().collect::<Vec<_>>().try_into().ok()?;
    let filter = |label: &str| vec![Filter::named(Metric::Trace, Op::Equal, label)];
    let (slow, fast) = if a_ns * b_n > b_ns * a_n { (a, b) } else { (b, a) };
    Some(Proposal::new(filter(slow), filter(fast), GroupsOrigin::Trace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Timestamp;

    fn model(durations: &[i64]) -> Model {
        let mut m = Model { tasks: vec!["app:request".into()].into(), ..Model::default() };
        for d in durations {
            m.executions.start.push(Timestamp::ZERO);
            m.executions.duration.push(*d);
        }
        m
    }

    fn proposed(durations: &[i64]) -> (Vec<String>, Vec<String>, GroupsOrigin, usize, usize) {
        let found = groups(&model(durations), &ComparisonRequest::default()).unwrap();
        let SelectedGroups { slow, fast, origin, .. } = found;
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
    fn groups_takes_a_gap_before_few_executions_only_where_it_is_large() {
        let mut durations: Vec<i64> = (0..200).map(|i| 9_000_000 + i * 17_321).collect();
        durations.extend([48_000_000; 2]);
        assert_eq!(proposed(&durations).2, GroupsOrigin::Percentile);
        durations.truncate(200);
        durations.extend([148_000_000; 2]);
        assert_eq!(proposed(&durations).2, GroupsOrigin::Gap);
    }

    #[test]
    fn groups_separates_two_modes_at_the_valley() {
        let mode = |centre: i64, width: i64| (0..100).map(move |i| centre + (i - 50) * width);
        let few = mode(2_600_000, 12_000).step_by(3);
        let (.., origin, n_slow, n_fast) = proposed(&mode(1_000_000, 6_000).chain(few).collect::<Vec<_>>());
        assert_eq!((origin, n_slow, n_fast), (GroupsOrigin::Valley, 34, 100));
        // A larger upper mode is another kind of execution: its own tail is slow.
        let (.., origin, n_slow, n_fast) =
            proposed(&mode(1_000_000, 6_000).chain(mode(2_600_000, 12_000)).collect::<Vec<_>>());
        assert_eq!((origin, n_slow, n_fast), (GroupsOrigin::Percentile, 6, 50));
    }

    #[test]
    fn groups_takes_percentiles_of_one_mode() {
        let durations: Vec<i64> = (0..400).map(|i| 1_000_000 + i * 5_000).collect();
        let (slow, fast, origin, n_slow, n_fast) = proposed(&durations);
        assert_eq!((origin, n_slow, n_fast), (GroupsOrigin::Percentile, 21, 200));
        assert_eq!((slow, fast), (vec!["duration>=p95".to_string()], vec!["duration<=p50".to_string()]));
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
            let SelectedGroups { slow, fast, origin, .. } = found;
            assert_eq!((slow.members.len(), slow.mean_ns, origin), (durations.len(), 5, GroupsOrigin::All));
            assert!(fast.members.is_empty() && slow.filters.is_empty());
        }
        assert!(says(&[5, 7], &["duration>1s"]).contains("the values go from 5ns to 7ns"));
        assert!(says(&[5, 7], &["field.x>1"]).contains("no field.x"));
    }
}
