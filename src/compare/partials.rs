//! Comparison of two groups of a fleet from partial results: what the slow executions do that the fast ones don't.
//!
//! In: the totals of each host, one after the other, and the contexts of all. Out: a [`PartialComparison`] with the
//! figures that [`compare`](super::compare) computes from executions, where sums decide them: means, their differences
//! by context, the parts of the difference, Welch's test; percentiles within the buckets of the histograms. What needs
//! each execution's values is not there: permutations, shares of executions that a cause touches, other properties, the
//! verdict. Cost: linear in the contexts of all hosts; in memory are the sums of one fleet. ALGORITHMS.md section 6.5.

use super::causes::{SHOWN, SMALLEST, by_size};
use super::filter::{Filter, Operand, Test};
use super::groups::rest;
use super::members::members;
use super::naming::name;
use super::partition::{PartitionInput, drawn_path, origins, partition};
use super::select_error::SelectError;
use super::tree::{FLOOR_NS, GroupPair, GroupSums, TESTED_SHARE, WELCH_FROM, of_sums};
use super::words::{phrase, sentence_case};
use super::{DiffTree, Spread};
use crate::base::ctx::Cancel;
use crate::base::op::Op;
use crate::base::statistics::{Sums, benjamini_hochberg, divide_rounded, welch_of_sample};
use crate::model::Model;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::metric::Metric;
use crate::model::partials::{ContextTotals, DurationHistogram, HostTotals, added};
use crate::model::wait_kind::WaitKind;
use crate::model::weights::{KeptNumbers, effective_size};
use std::collections::BTreeMap;

/// Filters that do not select the same on each host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter `{filter}`: {why}")]
pub struct UnequalFilter {
    filter: String,
    why: &'static str,
}

/// Why a filter selects others in each recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inequality {
    /// It has a percentile.
    Percentile,
    /// It is about the time since a begin, or about a number.
    Position,
}

/// Why a filter does not decide by an execution alone; `None` where it does.
pub fn inequality(filter: &Filter) -> Option<Inequality> {
    let operands: &[&Operand] = match &filter.test {
        Test::Compare(_, one) => &[one],
        Test::In(from, to) => &[from, to],
        Test::AnyOf(_) => &[],
    };
    if operands.iter().any(|operand| matches!(operand, Operand::Percentile(_))) {
        return Some(Inequality::Percentile);
    }
    let is_position = matches!(filter.metric, Metric::Start | Metric::End | Metric::Elapsed | Metric::Execution);
    is_position.then_some(Inequality::Position)
}

/// The groups of these filters, where one that is not given has the rest. Each filter must decide by the execution
/// alone: what is the 95th percentile, or the first second, on one host is not that on another.
pub fn fleet_groups(slow: &[Filter], fast: &[Filter]) -> Result<[Vec<Filter>; 2], UnequalFilter> {
    for filter in slow.iter().chain(fast) {
        let why = match inequality(filter) {
            None => continue,
            Some(Inequality::Percentile) => {
                "a percentile is another one on each host: write a time, or take the groups of united partial results \
                 by --groups"
            }
            Some(Inequality::Position) => {
                "times since the begin of a recording, and numbers, are other ones on each host"
            }
        };
        return Err(UnequalFilter { filter: filter.to_string(), why });
    }
    Ok(match (slow.is_empty(), fast.is_empty()) {
        (false, true) => [slow.to_vec(), rest("slow", slow)],
        (true, false) => [rest("fast", fast), fast.to_vec()],
        _ => [slow.to_vec(), fast.to_vec()],
    })
}

/// The groups of a fleet by the lengths of all its executions: from the 95th percentile on, and up to the median, each
/// with the whole bucket that has it. `None` without a contrast.
pub fn groups_by_length(lengths: &DurationHistogram) -> Option<[Vec<Filter>; 2]> {
    let ((least, _), (_, most)) = (lengths.percentile(95.0)?, lengths.percentile(50.0)?);
    let of = |op, ns| vec![Filter::compare(Metric::Duration, op, ns)];
    (least > most).then(|| [of(Op::AtLeast, least), of(Op::AtMost, most)])
}

/// The members of both groups in a part of a database. A part without the metric of a filter has none.
pub fn fleet_members(model: &Model, groups: &[Vec<Filter>; 2]) -> Result<[Vec<ExecutionId>; 2], SelectError> {
    let of = |own: &[Filter], others: &[Filter]| match members(model, own, others) {
        Err(SelectError::NoMetric { .. }) => Ok(Vec::new()),
        found => found,
    };
    Ok([of(&groups[0], &groups[1])?, of(&groups[1], &groups[0])?])
}

/// One group of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialGroup {
    /// How many executions.
    pub count: u64,
    /// Rounded to the nearest nanosecond.
    pub mean_ns: i64,
    /// The largest durations of the buckets that have the percentiles: at most 1 % more than these are.
    pub spread: Spread,
}

/// A host of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedHost {
    pub name: String,
    /// In a group or not.
    pub executions: u64,
    /// How many, and their mean, rounded; of the slow group, then of the fast one.
    pub groups: [(u64, i64); 2],
}

/// A part of the difference.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialCause {
    /// From 1; `None` for the last entry, which joins the small ones.
    pub rank: Option<u32>,
    pub kind: Option<WaitKind>,
    /// Extra nanoseconds per execution. Those of all causes add up to the difference of the means.
    pub extra_ns: i64,
    /// Share of the difference.
    pub share: f64,
    /// Frames from the root, as drawn.
    pub path: Vec<String>,
    /// What happened, in words.
    pub phrase: String,
}

/// Everything about two groups of a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialComparison {
    /// All executions, in a group or not.
    pub executions: u64,
    /// What was kept of them.
    pub kept: KeptNumbers,
    /// Those of them of which not all is known.
    pub unsure: u64,
    /// By name.
    pub hosts: Vec<ComparedHost>,
    /// Slow, fast.
    pub groups: [PartialGroup; 2],
    /// By length: all executions, the slow ones, the fast ones.
    pub by_length: [DurationHistogram; 3],
    /// Difference of the means, rounded.
    pub extra_ns: i64,
    /// The difference by calling context.
    pub tree: DiffTree,
    /// The parts of the difference, the largest first.
    pub causes: Vec<PartialCause>,
}

/// The sums of one fleet in the making.
pub struct FleetSums {
    executions: u64,
    kept: KeptNumbers,
    unsure: u64,
    hosts: Vec<ComparedHost>,
    durations: [Sums; 2],
    squared_weights: [u128; 2],
    /// All, slow, fast.
    by_length: [DurationHistogram; 3],
    /// By context: slow, fast.
    contexts: Vec<[ContextTotals; 2]>,
}

impl FleetSums {
    /// Nothing yet, in so many contexts.
    pub fn new(contexts: usize) -> FleetSums {
        FleetSums {
            executions: 0,
            kept: KeptNumbers::default(),
            unsure: 0,
            hosts: Vec::new(),
            durations: [Sums::zeros(0); 2],
            squared_weights: [0; 2],
            by_length: Default::default(),
            contexts: vec![Default::default(); contexts],
        }
    }

    /// Add a host.
    pub fn put(&mut self, name: &str, totals: &HostTotals) {
        let executions = totals.by_length.count();
        self.executions = self.executions.saturating_add(executions);
        self.kept.add(totals.kept);
        self.by_length[0].add(&totals.by_length);
        self.unsure = self.unsure.saturating_add(totals.unsure);
        for (side, group) in totals.groups.iter().enumerate() {
            self.durations[side] = added(self.durations[side], group.durations);
            self.squared_weights[side] = self.squared_weights[side].saturating_add(group.squared_weights);
            self.by_length[side + 1].add(&group.by_length);
            for (context, more) in &group.contexts {
                self.contexts[context.index()][side].add(more);
            }
        }
        let groups = [0, 1].map(|side| totals.groups[side].durations).map(|sums| (sums.n, mean(&sums)));
        self.hosts.push(ComparedHost { name: name.to_owned(), executions, groups });
    }

    /// Compare the groups. `model` has the contexts and their names; `None` where a group is empty.
    pub fn compared(self, model: &Model, cancel: &Cancel) -> Option<PartialComparison> {
        let [slow, fast] = self.durations;
        if slow.n == 0 || fast.n == 0 {
            return None;
        }
        let difference = signed(slow.s1) * i128::from(fast.n) - signed(fast.s1) * i128::from(slow.n);
        let pairs = u128::from(slow.n) * u128::from(fast.n);
        let effective = [0, 1].map(|side| effective_size(self.durations[side].n, self.squared_weights[side]));
        let of = |sums: ContextTotals, n: u64| Sums { n, s1: sums.sum, s2: sums.squares };
        // How many were kept of those that have it is not in the sums: as many in proportion as of all.
        let kept = |having: u64, side: usize| {
            let share = effective[side] / self.durations[side].n.max(1) as f64;
            if share == 1.0 { having } else { (having as f64 * share) as u64 }
        };
        let sums = |[a, b]: &[ContextTotals; 2]| GroupSums {
            slow: of(*a, slow.n),
            fast: of(*b, fast.n),
            slow_having: a.having,
            fast_having: b.having,
            kept_having: kept(a.having, 0).saturating_add(kept(b.having, 1)),
        };
        let all: Vec<GroupSums> = self.contexts.iter().map(sums).collect();
        let own = own_differences(model, &self.contexts, slow.n, fast.n);
        let self_delta = |context: ContextId| own[context.index()] as f64 / pairs as f64;
        let mut tree = of_sums(model, &all, [slow.n, fast.n], self_delta);
        test(&mut tree, &all, [&slow, &fast], effective);
        let spread = |lengths: &DurationHistogram| {
            let at = |percent| lengths.percentile(percent).map_or(0, |(_, most)| most);
            Spread { p50_ns: at(50.0), p95_ns: at(95.0), p99_ns: at(99.0), max_ns: at(100.0) }
        };
        let group = |sums: &Sums, lengths: &DurationHistogram| PartialGroup {
            count: sums.n,
            mean_ns: mean(sums),
            spread: spread(lengths),
        };
        let extra_ns = divide_rounded(difference, pairs);
        Some(PartialComparison {
            executions: self.executions,
            kept: self.kept,
            unsure: self.unsure,
            hosts: self.hosts,
            groups: [group(&slow, &self.by_length[1]), group(&fast, &self.by_length[2])],
            by_length: self.by_length,
            extra_ns,
            causes: causes(model, &own, pairs, extra_ns, cancel),
            tree,
        })
    }
}

fn signed(sum: u128) -> i128 {
    i128::try_from(sum).unwrap_or(i128::MAX)
}

fn mean(sums: &Sums) -> i64 {
    divide_rounded(signed(sums.s1), sums.n.into())
}

/// By context: numerator of the difference of the own times over the product of the group sizes, exactly. What a
/// context has beyond those below it is its own.
fn own_differences(model: &Model, contexts: &[[ContextTotals; 2]], slow: u64, fast: u64) -> Vec<i128> {
    let difference = |[a, b]: &[ContextTotals; 2]| {
        let weighed = |sum: u128, n: u64| signed(sum).saturating_mul(n.into());
        weighed(a.sum, fast).saturating_sub(weighed(b.sum, slow))
    };
    let whole: Vec<i128> = contexts.iter().map(difference).collect();
    let mut own = whole.clone();
    for (at, (parent, _)) in model.contexts.nodes().enumerate() {
        if let Some(parent) = parent {
            own[parent.index()] = own[parent.index()].saturating_sub(whole[at]);
        }
    }
    own
}

/// Deviations and p-values of the nodes; of contexts that few executions have, which only permutations test, none.
fn test(tree: &mut DiffTree, all: &[GroupSums], [slow, fast]: [&Sums; 2], [many, usual]: [f64; 2]) {
    let floor = FLOOR_NS.max(fast.mean() * 1e-3);
    let enough = many.min(usual) >= WELCH_FROM as f64;
    let is_tested = |sums: &GroupSums| {
        let matters = sums.slow.mean() >= TESTED_SHARE * slow.mean() || sums.fast.mean() >= TESTED_SHARE * fast.mean();
        enough && matters && sums.kept_having >= WELCH_FROM
    };
    let welch = |sums: &GroupSums| welch_of_sample(&sums.fast, &sums.slow, [usual, many]);
    let p_value = |sums: &GroupSums| welch(sums).map(|welch| welch.p).filter(|_| is_tested(sums));
    let raw: Vec<Option<f64>> = tree.nodes.iter().map(|node| p_value(&all[node.context.index()])).collect();
    let mut corrected = benjamini_hochberg(&raw.iter().copied().flatten().collect::<Vec<f64>>()).into_iter();
    for (node, raw) in tree.nodes.iter_mut().zip(raw) {
        node.deviations = all[node.context.index()].deviations(floor);
        node.p_value = raw.and_then(|_| corrected.next());
    }
}

/// The parts of the difference, as the partition finds them, the largest first; the small ones and rounding last.
fn causes(model: &Model, own: &[i128], pairs: u128, whole_ns: i64, cancel: &Cancel) -> Vec<PartialCause> {
    let (origins, threads) = (origins(model), BTreeMap::new());
    let input = PartitionInput { model, origins: &origins, threads: &threads, own };
    let sum: i128 = own.iter().sum();
    let parts = by_size(partition(&input), sum);
    // Which thread runs the executions is not in the sums.
    let unknown = GroupPair::new(model, &[], &[], cancel);
    let share = |difference: i128| if sum == 0 { 0.0 } else { difference as f64 / sum as f64 };
    let matters = parts.iter().filter(|part| part.difference != 0 && part.difference.abs() * SMALLEST >= sum.abs());
    let mut all: Vec<PartialCause> = Vec::new();
    for part in matters.take(SHOWN) {
        let named = name(&unknown, &input, part);
        all.push(PartialCause {
            rank: Some(all.len() as u32 + 1),
            kind: Some(part.kind),
            extra_ns: divide_rounded(part.difference, pairs),
            share: share(part.difference),
            path: drawn_path(model, named.context),
            phrase: sentence_case(&phrase(part.kind, &named)),
        });
    }
    let small = parts.len() - all.len();
    let rest = whole_ns.saturating_sub(all.iter().map(|cause| cause.extra_ns).fold(0, i64::saturating_add));
    if small > 0 || rest != 0 {
        let phrase = if small == 0 { "Rounding".to_owned() } else { format!("Smaller differences ({small})") };
        let share = if whole_ns == 0 { 0.0 } else { rest as f64 / whole_ns as f64 };
        all.push(PartialCause { rank: None, kind: None, extra_ns: rest, share, path: Vec::new(), phrase });
    }
    all
}
