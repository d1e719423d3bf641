//! Profiles: where one spent its time, and what one of two spends that the other does not.
//!
//! In: a model whose executions are samples. Out: the same [`Comparison`] as of executions, so that every screen shows
//! it. A group's amounts are sums over its samples, divided by the number of its runs (the recordings that it comes
//! from): not a sample but a run takes longer. The parts of the difference are functions by their own amounts
//! ([`parts`]); how far samples alone scatter is measured by resampling blocks of time ([`bootstrap`]).
//!
//! ```text
//! groups -> sums by context -> tree, parts by function -> gains and their intervals -> sentence
//! ```
//! ALGORITHMS.md 7.8. Cost: linear in samples, times the depth of their contexts; the resampling is bounded.

mod bootstrap;
mod parts;
mod sentence;
#[cfg(test)]
mod tests;

use super::groups::{self, SelectedGroups};
use super::tree::{self, GroupSums};
use super::{Cause, CompareError, Comparison, ComparisonRequest, Culprit, Dimension, Group, GroupsOrigin, ProfileUnit};
use crate::base::ctx::Ctx;
use crate::base::op::Op;
use crate::base::statistics::Sums;
use crate::compare::filter::Filter;
use crate::compare::tree::frame_text;
use crate::model::Model;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::metric::{Metric, Unit};
use crate::model::profile::Profile;
use crate::model::wait_kind::WaitKind;
use bootstrap::Gain;
use parts::Parts;
use std::collections::{BTreeMap, BTreeSet};

/// Causes shown, at most.
const SHOWN: usize = 12;
/// A cause is shown from this share of the larger side on.
const SMALLEST: f64 = 0.01;
/// Values of a property that are listed, and the least share that one needs.
const LISTED: usize = 4;
const LEAST_LISTED: f64 = 0.02;

/// One side of the comparison.
struct Side {
    /// Samples, ascending in time.
    members: Vec<ExecutionId>,
    /// The recordings that they come from.
    pub runs: u64,
    /// The sum over all runs.
    pub total: u128,
    /// By what amounts are multiplied: 1 but for the fast side by the sample.
    pub scale: f64,
}

impl Side {
    fn new(model: &Model, group: &Group) -> Side {
        let executions = &model.executions;
        let runs: BTreeSet<_> = group.members.iter().filter_map(|e| executions.trace.get(e.index())).collect();
        let amount = |e: &ExecutionId| u128::from(executions.duration(e.index()).unsigned_abs());
        let total = group.members.iter().map(amount).sum();
        Side { members: group.members.clone(), runs: runs.len().max(1) as u64, total, scale: 1.0 }
    }

    /// An amount of all runs as one of a run.
    pub fn per_run(&self, amount: f64) -> f64 {
        amount * self.scale / self.runs as f64
    }

    /// What a run has in all.
    pub fn whole(&self) -> f64 {
        self.per_run(self.total as f64)
    }
}

/// Compare two groups of samples, or say where the only one went.
pub(super) fn compare(
    model: &Model,
    profile: &Profile,
    request: &ComparisonRequest,
    ctx: &Ctx,
) -> Result<Comparison, CompareError> {
    let SelectedGroups { mut slow, mut fast, origin, .. } = select(model, request)?;
    // Samples have amounts and no durations.
    (slow.spread, fast.spread) = (None, None);
    let (slow_side, mut fast_side) = (Side::new(model, &slow), Side::new(model, &fast));
    if request.per == ProfileUnit::Sample && fast_side.total > 0 {
        fast_side.scale = slow_side.whole() / fast_side.whole();
    }
    let sides = [slow_side, fast_side];
    slow.mean_ns = rounded(sides[0].whole());
    fast.mean_ns = rounded(sides[1].whole());
    let extra_ns = slow.mean_ns - fast.mean_ns;
    let own = [own_sums(model, &sides[0]), own_sums(model, &sides[1])];
    ctx.cancel.check()?;
    let tree = differential_tree(model, &sides, &own);
    let parts = Parts::new(model, &own);
    ctx.cancel.check()?;
    let gains = bootstrap::gains(model, &sides, &parts, ctx)?;
    let found = Found { model, profile, slow: &slow, fast: &fast, sides: &sides, parts: &parts, gains: &gains, origin };
    let order = found.ranked();
    let causes = found.causes(&order, extra_ns);
    let verdict = sentence::verdict(&found, &order, request.per);
    let mut warnings = sentence::warnings(&found);
    warnings.extend(model.notices.sentences());
    let dimensions = properties(model, &slow, &fast);
    Ok(Comparison { extra_ns, tree, causes, kinds: Vec::new(), dimensions, verdict, warnings, slow, fast })
}

fn rounded(amount: f64) -> i64 {
    amount.round() as i64
}

/// The groups: as given; else the two labels, the one that has more against the other; else all samples together.
fn select(model: &Model, request: &ComparisonRequest) -> Result<SelectedGroups, CompareError> {
    if model.executions.is_empty() || !request.slow.is_empty() || !request.fast.is_empty() {
        return groups::groups(model, request);
    }
    let mut by_label: BTreeMap<&str, u64> = BTreeMap::new();
    for trace in &model.traces {
        *by_label.entry(&trace.label).or_default() += 1;
    }
    let labels: Vec<(&str, u64)> = by_label.into_iter().collect();
    if let [(a, a_runs), (b, b_runs)] = labels[..] {
        let group = |label: &str, name| {
            let filter = Filter::named(Metric::Trace, Op::Equal, label);
            groups::group(model, name, std::iter::once(filter).chain(request.within.iter().cloned()).collect(), &[])
        };
        let (of_a, of_b) = (group(a, "slow")?, group(b, "fast")?);
        let total = |group: &Group| Side::new(model, group).total;
        let a_is_slow = total(&of_a) * u128::from(b_runs) > total(&of_b) * u128::from(a_runs);
        let (slow, fast) = if a_is_slow { (of_a, of_b) } else { (of_b, of_a) };
        return Ok(SelectedGroups { slow, fast, origin: GroupsOrigin::Trace, left_out: Vec::new() });
    }
    Ok(SelectedGroups::alone(groups::group(model, "slow", request.within.clone(), &[])?))
}

/// By context: the own amounts of a side, and how many samples have it.
struct ContextSums {
    pub amounts: Vec<u128>,
    pub samples: Vec<u64>,
}

fn own_sums(model: &Model, side: &Side) -> ContextSums {
    let n = model.contexts.len();
    let mut sums = ContextSums { amounts: vec![0; n], samples: vec![0; n] };
    for member in &side.members {
        for time in model.executions.own.row(member.index()) {
            sums.amounts[time.context.index()] += u128::from(time.ns);
            sums.samples[time.context.index()] += 1;
        }
    }
    sums
}

/// The difference by context. Parents come before children, so one pass from the end adds up what is below.
fn differential_tree(model: &Model, sides: &[Side; 2], own: &[ContextSums; 2]) -> super::DiffTree {
    let mut inclusive = [own[0].amounts.clone(), own[1].amounts.clone()];
    let mut having = [own[0].samples.clone(), own[1].samples.clone()];
    for at in (0..model.contexts.len()).rev() {
        if let Some(parent) = model.contexts.parent(ContextId::at(at)) {
            for side in 0..2 {
                inclusive[side][parent.index()] += inclusive[side][at];
                having[side][parent.index()] += having[side][at];
            }
        }
    }
    let sums = |side: usize, at: usize| {
        let mut sums = Sums::zeros(sides[side].runs);
        sums.put((inclusive[side][at] as f64 * sides[side].scale).round() as u64);
        sums
    };
    let pair = |at: usize| GroupSums {
        slow: sums(0, at),
        fast: sums(1, at),
        slow_having: having[0][at],
        fast_having: having[1][at],
        kept_having: having[0][at] + having[1][at],
    };
    let pairs: Vec<GroupSums> = (0..model.contexts.len()).map(pair).collect();
    let sizes = [0, 1].map(|side: usize| sides[side].members.len() as u64);
    let of = |side: usize, at: ContextId| sides[side].per_run(own[side].amounts[at.index()] as f64);
    tree::of_sums(model, &pairs, sizes, |context| of(0, context) - of(1, context))
}

/// What is known of both sides before it is said.
struct Found<'a> {
    pub model: &'a Model,
    pub profile: &'a Profile,
    pub slow: &'a Group,
    pub fast: &'a Group,
    pub sides: &'a [Side; 2],
    pub parts: &'a Parts,
    pub gains: &'a [Gain],
    pub origin: GroupsOrigin,
}

impl Found<'_> {
    /// There is one group only.
    pub fn is_alone(&self) -> bool {
        self.origin == GroupsOrigin::All
    }

    /// By how much a run of the slow side has more.
    pub fn extra(&self) -> f64 {
        self.sides[0].whole() - self.sides[1].whole()
    }

    /// That of which shares are printed: the difference; what was gained where both sides have as much in all.
    pub fn base(&self) -> f64 {
        let gained: f64 = self.gains.iter().map(|gain| gain.gain.max(0.0)).sum();
        if self.extra().abs() < gained / 1e3 { gained } else { self.extra() }
    }

    /// Parts in the order of what they gained: beyond what all others gained, unless all gained alike.
    fn ranked(&self) -> Vec<usize> {
        let beyond = self.gains.iter().map(|gain| gain.beyond).fold(0.0, f64::max);
        let by_beyond = !self.is_alone() && beyond >= self.extra().abs() / 5.0;
        let value = |at: &usize| if by_beyond { self.gains[*at].beyond } else { self.gains[*at].gain };
        let mut order: Vec<usize> = (0..self.gains.len()).collect();
        order.sort_by(|a, b| value(b).total_cmp(&value(a)).then(a.cmp(b)));
        order
    }

    /// The ranked causes, and the rest in one entry, so that all add up to the difference exactly. The first one, which
    /// the sentence names, is shown however small it is.
    fn causes(&self, order: &[usize], extra_ns: i64) -> Vec<Cause> {
        let whole = self.sides[0].whole().max(self.sides[1].whole());
        let is_shown = |(number, at): &(usize, &usize)| {
            let gain = self.gains[**at].gain.abs();
            gain >= SMALLEST * whole || (*number == 0 && gain > 0.0)
        };
        let base = self.base();
        let share = |ns: i64| if base == 0.0 { 0.0 } else { ns as f64 / base };
        let mut left = extra_ns;
        let mut causes: Vec<Cause> = Vec::new();
        for (_, at) in order.iter().enumerate().filter(is_shown).take(SHOWN) {
            let extra = rounded(self.gains[*at].gain);
            left -= extra;
            causes.push(self.cause(*at, causes.len() as u32 + 1, extra, share(extra)));
        }
        if left != 0 || causes.is_empty() {
            causes.push(rest(left, share(left), self.profile));
        }
        causes
    }

    fn cause(&self, at: usize, rank: u32, extra_ns: i64, share: f64) -> Cause {
        let part = &self.parts.all[at];
        let affected = |side: usize| part.samples[side] as f64 / self.sides[side].members.len().max(1) as f64;
        let path = self.model.contexts.path(part.heaviest);
        Cause {
            rank: Some(rank),
            kind: Some(WaitKind::Cpu),
            extra_ns,
            share,
            deviations: None,
            p_value: None,
            slow_affected: affected(0),
            fast_affected: affected(1),
            path: path.iter().map(|context| frame_text(self.model, *context)).collect(),
            context: Some(part.heaviest),
            contexts: part.contexts.clone(),
            places: Vec::new(),
            by: Culprit {
                process: Some(self.model.names.get(part.process).to_owned()),
                function: Some(part.name.clone()),
                ..Culprit::default()
            },
            parts: Vec::new(),
            sentence: sentence::of_cause(self, at),
        }
    }
}

/// The entry without a rank, for the parts that are too small to be shown.
fn rest(left: i64, share: f64, profile: &Profile) -> Cause {
    let sentence = format!("Other functions together: {}.", profile.amount(left as f64));
    Cause::remainder(Some(WaitKind::Cpu), left, share, sentence)
}

/// Shares of processes, threads and images: which of them there are, or how both sides differ in them.
fn properties(model: &Model, slow: &Group, fast: &Group) -> Vec<Dimension> {
    let mut all = Vec::new();
    for column in model.executions.columns.iter().filter(|column| is_property(&column.metric)) {
        let shares = |group: &Group| {
            let mut amounts: BTreeMap<i64, f64> = BTreeMap::new();
            for member in &group.members {
                let value = column.values.get(member.index()).unwrap_or(-1);
                *amounts.entry(value).or_default() += model.executions.duration(member.index()) as f64;
            }
            let total: f64 = amounts.values().sum();
            amounts.values_mut().for_each(|amount| *amount /= total.max(1.0));
            amounts
        };
        let [slow, fast] = [shares(slow), shares(fast)];
        let values: BTreeSet<i64> = slow.keys().chain(fast.keys()).copied().collect();
        let of = |shares: &BTreeMap<i64, f64>, value: i64| shares.get(&value).copied().unwrap_or(0.0);
        let mut found: Vec<Dimension> = values
            .into_iter()
            .map(|value| Dimension {
                name: column.metric.name(),
                value: model.name_of(value).to_owned(),
                slow_share: of(&slow, value),
                fast_share: of(&fast, value),
                effect: (of(&slow, value) - of(&fast, value)).abs(),
            })
            .filter(|found| found.slow_share.max(found.fast_share) >= LEAST_LISTED)
            .collect();
        found.sort_by(|a, b| b.slow_share.total_cmp(&a.slow_share).then_with(|| a.value.cmp(&b.value)));
        found.truncate(LISTED);
        all.extend(found);
    }
    all
}

fn is_property(metric: &Metric) -> bool {
    metric.unit() == Unit::Name && !matches!(metric, Metric::Trace)
}
