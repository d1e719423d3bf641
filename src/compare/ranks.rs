//! Two groups of an MPI run's iterations side by side: by region and rank role, and by iteration.
//!
//! In: a model of iterations with the ranks' roles, and the groups of a comparison. Out: mean times per iteration,
//! which runs on different numbers of ranks have in common. A region is the deepest one of the rank itself: the time
//! that a call waited for others counts for the call. Cost: linear in the members' contexts, and a walk up per context.

use super::Comparison;
use crate::base::names::NameId;
use crate::model::context::{ContextId, FrameKind};
use crate::model::execution::{ContextTime, ExecutionId};
use crate::model::metric::{ABSENT, Metric};
use crate::model::{Model, TraceLevel};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Mean times of iterations in both groups; `None` where a group has no such iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupMeans {
    /// Of the slow group.
    pub slow_ns: Option<i64>,
    /// Of the fast group.
    pub fast_ns: Option<i64>,
}

impl GroupMeans {
    /// Slow minus fast, where both are known.
    pub fn delta_ns(&self) -> Option<i64> {
        Some(self.slow_ns? - self.fast_ns?)
    }
}

/// One region on ranks of one role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionRow {
    /// The region, or call.
    pub region: String,
    /// The role; `None`: all ranks together.
    pub role: Option<String>,
    /// Per iteration of a rank of this role.
    pub means: GroupMeans,
}

/// Some iterations one after another, of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IterationRow {
    /// Number of the first.
    pub first: i64,
    /// Number of the last.
    pub last: i64,
    /// Their length.
    pub means: GroupMeans,
}

/// The comparison of two groups of iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankComparison {
    /// Of all ranks together, then by role; largest difference first.
    pub regions: Vec<RegionRow>,
    /// In order.
    pub iterations: Vec<IterationRow>,
}

/// At most this many rows of iterations.
const ROWS: i64 = 10;

/// The number of an iteration, by [`Metric::Field`].
pub const ITERATION: &str = "turn";

#[derive(Clone, Copy, Default)]
struct Sum {
    ns: i64,
    iterations: i64,
}

impl Sum {
    fn mean(self) -> Option<i64> {
        (self.iterations > 0).then(|| self.ns / self.iterations)
    }
}

fn means(sums: [Sum; 2]) -> GroupMeans {
    let [slow_ns, fast_ns] = sums.map(Sum::mean);
    GroupMeans { slow_ns, fast_ns }
}

/// The comparison; `None` where the model is not one of MPI runs, or has one group only.
pub fn ranks(model: &Model, c: &Comparison) -> Option<RankComparison> {
    let groups = [&c.slow.members, &c.fast.members];
    let of_runs = model.traces.iter().all(|t| t.level == TraceLevel::MpiRun);
    let roles: Vec<i64> = model.executions.column(&Metric::Role)?.values.iter().collect();
    let numbers = model.executions.column(&Metric::Field(ITERATION.to_owned()));
    let numbers: Vec<i64> = numbers.into_iter().flat_map(|column| column.values.iter()).collect();
    if !of_runs || groups.iter().any(|g| g.is_empty()) {
        return None;
    }
    let regions = regions(model, groups, &roles);
    Some(RankComparison { regions, iterations: iterations(model, groups, &numbers) })
}

fn regions(model: &Model, groups: [&Vec<ExecutionId>; 2], roles: &[i64]) -> Vec<RegionRow> {
    let weights = model.executions.weights();
    let by_context: Vec<Option<NameId>> =
        (0..model.contexts.len()).map(|at| region(model, ContextId::at(at))).collect();
    // By role, and without one for all ranks.
    let mut times: BTreeMap<(Option<i64>, NameId), [i64; 2]> = BTreeMap::new();
    let mut counts: BTreeMap<Option<i64>, [i64; 2]> = BTreeMap::new();
    for (at, members) in groups.into_iter().enumerate() {
        for execution in members {
            let role = roles.get(execution.index()).copied().filter(|role| *role != ABSENT);
            let both: &[Option<i64>] = if role.is_some() { &[None, role] } else { &[None] };
            let weight = weights.of(execution.index()) as i64;
            both.iter().for_each(|role| counts.entry(*role).or_default()[at] += weight);
            for ContextTime { context, ns } in model.executions.own.row(execution.index()) {
                if let Some(Some(region)) = by_context.get(context.index()) {
                    both.iter().for_each(|role| times.entry((*role, *region)).or_default()[at] += ns as i64 * weight);
                }
            }
        }
    }
    let text = |role: i64| Some(model.names.get(NameId::from_raw(u32::try_from(role).ok()?)).to_owned());
    let row = |((role, region), ns): ((Option<i64>, NameId), [i64; 2])| {
        let iterations = counts.get(&role).copied().unwrap_or_default();
        let sum = |at: usize| Sum { ns: ns[at], iterations: iterations[at] };
        let region = model.names.get(region).to_owned();
        RegionRow { region, role: role.and_then(text), means: means([sum(0), sum(1)]) }
    };
    let mut rows: Vec<RegionRow> = times.into_iter().map(row).collect();
    // A role that one group lacks comes after those that can be compared.
    let size = |r: &RegionRow| Reverse((r.means.delta_ns().map(i64::abs), r.means.slow_ns, r.means.fast_ns));
    rows.sort_by_key(|r| (r.role.is_some(), size(r)));
    rows
}

/// The deepest region of the execution's own rank.
fn region(model: &Model, context: ContextId) -> Option<NameId> {
    let frames = model.contexts.path(context).into_iter().map(|c| model.contexts.frame(c));
    let own = frames.take_while(|frame| !matches!(frame.kind, FrameKind::Thread(_)));
    own.filter(|frame| frame.kind == FrameKind::Function).last().map(|frame| frame.name)
}

fn iterations(model: &Model, groups: [&Vec<ExecutionId>; 2], numbers: &[i64]) -> Vec<IterationRow> {
    let weights = model.executions.weights();
    let number = |e: &ExecutionId| numbers.get(e.index()).copied().filter(|n| *n != ABSENT);
    let last = groups.iter().flat_map(|g| g.iter().filter_map(number)).max().unwrap_or(-1);
    let per_row = (last / ROWS).saturating_add(1);
    let mut sums: BTreeMap<i64, [Sum; 2]> = BTreeMap::new();
    for (at, members) in groups.into_iter().enumerate() {
        for execution in members {
            if let Some(number) = number(execution) {
                let sum = &mut sums.entry(number / per_row).or_default()[at];
                let weight = weights.of(execution.index()) as i64;
                sum.ns += model.executions.duration(execution.index()) * weight;
                sum.iterations += weight;
            }
        }
    }
    let row = |(row, sums): (i64, [Sum; 2])| IterationRow {
        first: row * per_row,
        last: (row * per_row + per_row - 1).min(last),
        means: means(sums),
    };
    sums.into_iter().map(row).collect()
}
