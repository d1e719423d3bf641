//! The differential tree: for each context the time of the slow and of the fast executions in it, and whether the
//! difference is more than chance. ALGORITHMS.md 7.2 to 7.4.
//!
//! Sums are exact integers; an execution without a context counts as zero there. Nodes are in pre-order, siblings by
//! name, so that boxes do not jump. Cost: linear in the groups' sparse lists, plus the tests of contexts that
//! matter (0.1 % of either group's mean duration).

use super::chance::{self, GroupSizes, MemberValue, Splits};
use super::groups::total;
use super::{DiffNode, DiffTree};
use crate::base::ctx::{Cancel, Cancelled};
use crate::base::statistics::{Sums, benjamini_hochberg, welch_of_sample};
use crate::model::context::{ContextId, Frame, FrameKind};
use crate::model::execution::{ContextTime, ExecutionId, InclusiveTimes};
use crate::model::weights::Weights;
use crate::model::{Model, TraceLevel};

/// Executions in the smaller group, and executions that have the tested context, from which Welch's test applies.
pub(super) const WELCH_FROM: u64 = 8;
/// Share of a group's mean duration below which a context is not tested.
pub(super) const TESTED_SHARE: f64 = 1e-3;
/// Least deviation, in ns: below a microsecond, clocks and tracing decide.
pub(super) const FLOOR_NS: f64 = 1e3;

/// A frame as drawn: `[futex]`, `thread journal`, `rank 3`, `handle_request`, `flush?` (the file that gave the name is
/// unproven).
pub fn frame_text(model: &Model, context: ContextId) -> String {
    frame_in_words(model, model.contexts.frame(context))
}

/// A frame as drawn, wherever it is.
pub fn frame_in_words(model: &Model, frame: Frame) -> String {
    match frame.kind {
        FrameKind::Function | FrameKind::Inlined => model.names.function(frame.name).into_owned(),
        _ => frame_name(model, frame),
    }
}

/// A frame as drawn, but without the mark of unproven names, for sorting.
fn frame_name(model: &Model, frame: Frame) -> String {
    let name = model.names.get(frame.name);
    match frame.kind {
        FrameKind::Process | FrameKind::Function | FrameKind::Inlined | FrameKind::KernelFunction => name.to_string(),
        FrameKind::File | FrameKind::Call | FrameKind::Wait(_) => format!("[{name}]"),
        // The name of a rank says that it is one: `rank 3 thread 1`.
        FrameKind::Thread(_) if Parties::of(model) == Parties::Ranks => name.to_string(),
        FrameKind::Thread(_) => format!("thread {name}"),
        FrameKind::NoStack => "[no stack]".into(),
    }
}

/// One of the two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupSide {
    Slow,
    Fast,
}

/// Time of both groups in one place.
#[derive(Clone, Debug)]
pub(super) struct GroupSums {
    pub slow: Sums,
    pub fast: Sums,
    /// Executions of the slow group that have it.
    pub slow_having: u64,
    /// Executions of the fast group that have it.
    pub fast_having: u64,
    /// Executions of both groups that have it, each counted once whatever it represents.
    pub kept_having: u64,
}

impl GroupSums {
    pub fn new(groups: &GroupPair<'_>) -> Self {
        let [slow, fast] = groups.counts.map(Sums::zeros);
        GroupSums { slow, fast, slow_having: 0, fast_having: 0, kept_having: 0 }
    }

    /// Add the time of an execution that has it, and represents so many.
    pub fn put(&mut self, side: GroupSide, ns: u64, weight: u64) {
        let (sums, having) = match side {
            GroupSide::Slow => (&mut self.slow, &mut self.slow_having),
            GroupSide::Fast => (&mut self.fast, &mut self.fast_having),
        };
        sums.put_times(ns, weight);
        *having += weight;
        self.kept_having += 1;
    }

    fn is_empty(&self) -> bool {
        self.kept_having == 0
    }

    pub fn delta(&self) -> f64 {
        self.slow.mean() - self.fast.mean()
    }

    /// The difference in standard deviations of the fast group, or of `floor` where that is more.
    pub fn deviations(&self, floor: f64) -> Option<f64> {
        let enough = self.fast.n >= 2 && self.slow.n >= 1;
        enough.then(|| self.delta() / self.fast.population_variance().sqrt().max(floor))
    }
}

/// Those who run the executions and wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parties {
    /// Threads of programs.
    Threads,
    /// Ranks of MPI runs, with their threads.
    Ranks,
}

impl Parties {
    /// Of a model.
    pub(super) fn of(model: &Model) -> Parties {
        let of_runs = !model.traces.is_empty() && model.traces.iter().all(|t| t.level == TraceLevel::MpiRun);
        if of_runs { Parties::Ranks } else { Parties::Threads }
    }

    /// One of them.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Parties::Threads => "thread",
            Parties::Ranks => "rank",
        }
    }
}

/// Both groups, and the values that are computed once for all contexts.
pub(super) struct GroupPair<'a> {
    pub model: &'a Model,
    pub slow: &'a [ExecutionId],
    pub fast: &'a [ExecutionId],
    pub cancel: &'a Cancel,
    /// Least deviation: a microsecond, or 0.1 % of the fast group's mean duration.
    pub floor_ns: f64,
    pub weights: Weights<'a>,
    /// How many executions the groups represent: slow, fast.
    pub counts: [u64; 2],
    /// How many of equal weight would say as much of the means.
    effective: [f64; 2],
    slow_mean: f64,
    fast_mean: f64,
    splits: Option<Splits>,
}

impl<'a> GroupPair<'a> {
    pub fn new(model: &'a Model, slow: &'a [ExecutionId], fast: &'a [ExecutionId], cancel: &'a Cancel) -> Self {
        let weights = model.executions.weights();
        let counts = [weights.sum(slow), weights.sum(fast)];
        let mean = |members: &[ExecutionId], count: u64| total(model, members) as f64 / count.max(1) as f64;
        let (slow_mean, fast_mean) = (mean(slow, counts[0]), mean(fast, counts[1]));
        let effective = [weights.effective(slow), weights.effective(fast)];
        let few = (slow.len().min(fast.len()) as u64) < WELCH_FROM && !fast.is_empty();
        let splits = few.then(|| Splits::new(slow.len(), fast.len()));
        let floor_ns = FLOOR_NS.max(fast_mean * 1e-3);
        GroupPair { model, slow, fast, cancel, floor_ns, weights, counts, effective, slow_mean, fast_mean, splits }
    }

    /// Executions of the slow group, then those of the fast one.
    pub fn members(&self) -> impl Iterator<Item = (GroupSide, ExecutionId)> + '_ {
        let slow = self.slow.iter().map(|e| (GroupSide::Slow, *e));
        slow.chain(self.fast.iter().map(|e| (GroupSide::Fast, *e)))
    }

    /// How many pairs of a slow and a fast execution there are; of one group alone as many as it has executions.
    pub fn pairs(&self) -> u128 {
        let [slow, fast] = self.counts.map(u128::from);
        slow * fast.max(1)
    }

    /// How many executions a member represents, by its position in [`members`](Self::members).
    pub fn weight(&self, member: usize) -> u64 {
        let id = self.slow.get(member).or_else(|| self.fast.get(member - self.slow.len()));
        id.map_or(1, |id| self.weights.of(id.index()))
    }

    /// The mean of a value of some executions, each counted for all that it represents.
    pub fn mean(&self, members: &[ExecutionId], value: impl Fn(usize) -> f64) -> f64 {
        let of = |id: &ExecutionId| value(id.index()) * self.weights.of(id.index()) as f64;
        members.iter().map(of).sum::<f64>() / self.weights.sum(members).max(1) as f64
    }

    /// The group of a member, by its position in [`members`](Self::members).
    pub fn side(&self, member: usize) -> GroupSide {
        if member < self.slow.len() { GroupSide::Slow } else { GroupSide::Fast }
    }

    /// True if the time in either group is large enough for a test.
    pub fn is_tested(&self, pair: &GroupSums) -> bool {
        pair.slow.mean() >= TESTED_SHARE * self.slow_mean || pair.fast.mean() >= TESTED_SHARE * self.fast_mean
    }

    /// True if so few executions have it that only permutations give its chance.
    fn is_rare(&self, pair: &GroupSums) -> bool {
        self.splits.is_some() || pair.kept_having < WELCH_FROM
    }

    /// Two-sided p-value, not corrected. `values`: asked for only where few have it.
    pub fn p_value(&self, pair: &GroupSums, values: impl FnOnce() -> Vec<MemberValue>) -> Option<f64> {
        let sizes = GroupSizes { slow: self.slow.len(), fast: self.fast.len() };
        match &self.splits {
            _ if self.fast.is_empty() => None,
            Some(splits) => {
                let mut list = vec![0; sizes.slow + sizes.fast];
                values().into_iter().for_each(|of| list[of.member as usize] = of.value);
                Some(splits.p_value(&list))
            }
            None if self.is_rare(pair) => Some(chance::rare(&values(), sizes)),
            None => welch_of_sample(&pair.fast, &pair.slow, [self.effective[1], self.effective[0]]).map(|w| w.p),
        }
    }
}

/// The tree, and the raw p-values of its nodes (for correction together with those of the causes).
pub(super) struct BuiltTree {
    pub tree: DiffTree,
    /// By context: numerator of the difference of the own times over the product of the group sizes, exactly.
    pub own: Vec<i128>,
    raw: Vec<Option<f64>>,
}

/// The time of each execution by context: those of its model, or those of the inverted tree.
pub(super) trait TimesByContext {
    /// The model that has the contexts and their names.
    fn model(&self) -> &Model;
    /// Own times of an execution; a context may come several times.
    fn own(&mut self, execution: ExecutionId, put: impl FnMut(ContextId, u64));
    /// Times of an execution with the contexts below; each context once.
    fn inclusive(&mut self, execution: ExecutionId, put: impl FnMut(ContextId, u64));
    fn own_and_inclusive(
        &mut self,
        execution: ExecutionId,
        own: impl FnMut(ContextId, u64),
        inclusive: impl FnMut(ContextId, u64),
    ) {
        self.own(execution, own);
        self.inclusive(execution, inclusive);
    }
}

/// The contexts of a model.
struct ModelTimes<'a> {
    model: &'a Model,
    inclusive: InclusiveTimes<'a>,
    /// The own times of an execution, unpacked once for both.
    row: Vec<ContextTime>,
}

impl TimesByContext for ModelTimes<'_> {
    fn model(&self) -> &Model {
        self.model
    }

    fn own(&mut self, execution: ExecutionId, mut put: impl FnMut(ContextId, u64)) {
        self.model.executions.own.row(execution.index()).for_each(|time| put(time.context, time.ns));
    }

    fn inclusive(&mut self, execution: ExecutionId, put: impl FnMut(ContextId, u64)) {
        self.inclusive.of(self.model.executions.own.row(execution.index()), put);
    }

    fn own_and_inclusive(
        &mut self,
        execution: ExecutionId,
        mut own: impl FnMut(ContextId, u64),
        inclusive: impl FnMut(ContextId, u64),
    ) {
        self.row.clear();
        self.row.extend(self.model.executions.own.row(execution.index()));
        self.row.iter().for_each(|time| own(time.context, time.ns));
        self.inclusive.of(self.row.iter().copied(), inclusive);
    }
}

/// Accumulate both groups into one tree.
pub(super) fn build(groups: &GroupPair<'_>) -> Result<BuiltTree, Cancelled> {
    let model = groups.model;
    build_of(groups, &mut ModelTimes { model, inclusive: InclusiveTimes::new(&model.contexts), row: Vec::new() })
}

/// Accumulate times of both groups into one tree.
pub(super) fn build_of(groups: &GroupPair<'_>, of_execution: &mut impl TimesByContext) -> Result<BuiltTree, Cancelled> {
    let n = of_execution.model().contexts.len();
    let mut pairs = vec![GroupSums::new(groups); n];
    let mut own = vec![0_i128; n];
    // The first values by context: all of them where few have it.
    let mut few: Vec<Vec<MemberValue>> = vec![Vec::new(); n];
    // Without a fast group the difference is the slow one's own time.
    let [n_slow, n_fast] = groups.counts.map(|count| i128::from(count.max(1)));
    for (member, (side, e)) in (0..).zip(groups.members()) {
        let times = groups.weights.of(e.index());
        let factor = (if side == GroupSide::Slow { n_fast } else { -n_slow }) * i128::from(times);
        groups.cancel.check()?;
        of_execution.own_and_inclusive(
            e,
            |context, ns| {
                let sum = &mut own[context.index()];
                *sum = sum.saturating_add(i128::from(ns).saturating_mul(factor));
            },
            |context, ns| {
                let pair = &mut pairs[context.index()];
                if pair.kept_having < WELCH_FROM {
                    few[context.index()].push(MemberValue { member, value: ns });
                }
                pair.put(side, ns, times);
            },
        );
    }
    let raw = raw_p_values(groups, &pairs, few, of_execution)?;
    let self_delta = |context: ContextId| own[context.index()] as f64 / (n_slow * n_fast) as f64;
    let mut tree = of_sums(of_execution.model(), &pairs, groups.counts, self_delta);
    for node in &mut tree.nodes {
        node.deviations = pairs[node.context.index()].deviations(groups.floor_ns);
    }
    let raw = tree.nodes.iter().map(|node| raw[node.context.index()]).collect();
    Ok(BuiltTree { tree, own, raw })
}

/// The tree of sums by context, which hold the times below each context too. `self_delta`: the difference of the own
/// time of a context. Without deviations and p-values.
pub(super) fn of_sums(
    model: &Model,
    pairs: &[GroupSums],
    [n_slow, n_fast]: [u64; 2],
    self_delta: impl Fn(ContextId) -> f64,
) -> DiffTree {
    let mut nodes = Vec::new();
    for OrderedContext { context, parent, depth } in pre_order(model, pairs) {
        let pair = &pairs[context.index()];
        let share = |having: u64, n: u64| having as f64 / n.max(1) as f64;
        nodes.push(DiffNode {
            context,
            parent,
            size: 1,
            depth,
            slow_mean_ns: pair.slow.mean(),
            fast_mean_ns: pair.fast.mean(),
            delta_ns: pair.delta(),
            self_delta_ns: self_delta(context),
            deviations: None,
            p_value: None,
            slow_affected: share(pair.slow_having, n_slow),
            fast_affected: share(pair.fast_having, n_fast),
        });
    }
    for at in (0..nodes.len()).rev() {
        if let Some(parent) = nodes[at].parent {
            nodes[parent as usize].size += nodes[at].size;
        }
    }
    DiffTree { nodes }
}

impl BuiltTree {
    /// Correct the p-values of the tree and of `others` (the causes) for the number of all of them.
    pub fn correct(&mut self, others: &mut [Option<f64>]) {
        let places: Vec<f64> = self.raw.iter().chain(others.iter()).copied().flatten().collect();
        let mut corrected = benjamini_hochberg(&places).into_iter();
        let nodes = self.tree.nodes.iter_mut().map(|n| &mut n.p_value).zip(self.raw.iter().map(Option::is_some));
        for (p, tested) in nodes {
            *p = if tested { corrected.next() } else { None };
        }
        for p in others.iter_mut().filter(|p| p.is_some()) {
            *p = corrected.next();
        }
    }
}

/// Uncorrected p-values by context.
fn raw_p_values(
    groups: &GroupPair<'_>,
    pairs: &[GroupSums],
    few: Vec<Vec<MemberValue>>,
    times: &mut impl TimesByContext,
) -> Result<Vec<Option<f64>>, Cancelled> {
    let tested: Vec<bool> = pairs.iter().map(|p| !p.is_empty() && groups.is_tested(p)).collect();
    let mut raw = vec![None; pairs.len()];
    // Of small groups permutations need each execution's value; they are gathered by context in one pass.
    let mut columns = few;
    if groups.splits.is_some() {
        columns.iter_mut().for_each(Vec::clear);
        for (member, (_, e)) in (0..).zip(groups.members()) {
            times.inclusive(e, |context, ns| {
                if tested[context.index()] {
                    columns[context.index()].push(MemberValue { member, value: ns });
                }
            });
        }
    }
    for (at, pair) in pairs.iter().enumerate().filter(|(at, _)| tested[*at]) {
        groups.cancel.check()?;
        raw[at] = groups.p_value(pair, || std::mem::take(&mut columns[at]));
    }
    Ok(raw)
}

/// A context in the order of the tree.
struct OrderedContext {
    context: ContextId,
    /// Position of its parent in the order.
    parent: Option<u32>,
    depth: u32,
}

/// Contexts that occur, parents before children, siblings by name.
fn pre_order(model: &Model, pairs: &[GroupSums]) -> Vec<OrderedContext> {
    let mut children: Vec<Vec<ContextId>> = vec![Vec::new(); pairs.len()];
    let mut roots = Vec::new();
    for (at, _) in pairs.iter().enumerate().filter(|(_, pair)| !pair.is_empty()) {
        let context = ContextId::at(at);
        match model.contexts.parent(context) {
            Some(parent) => children[parent.index()].push(context),
            None => roots.push(context),
        }
    }
    let by_name = |list: &mut Vec<ContextId>| {
        list.sort_by_cached_key(|c| {
            let frame = model.contexts.frame(*c);
            (frame_name(model, frame), frame.kind, *c)
        });
        list.reverse();
    };
    by_name(&mut roots);
    children.iter_mut().for_each(by_name);
    let mut order = Vec::new();
    let mut open: Vec<OrderedContext> =
        roots.into_iter().map(|context| OrderedContext { context, parent: None, depth: 0 }).collect();
    while let Some(next) = open.pop() {
        let (parent, depth) = (Some(order.len() as u32), next.depth + 1);
        let below = &children[next.context.index()];
        open.extend(below.iter().map(|context| OrderedContext { context: *context, parent, depth }));
        order.push(next);
    }
    order
}

#[cfg(test)]
mod tests;
