//! Ranked causes: each part of the difference named, measured and worded.
//!
//! In: the parts of [`super::partition`]. Out: causes whose `extra_ns` add up to the difference of the two mean
//! durations exactly; small parts and rounding go to one last entry without a rank. `naming.rs` finds the names
//! (ALGORITHMS.md 7.6). Cost: linear in the groups' sparse lists and in the parts' contexts times their depth.

use super::chance::MemberValue;
use super::kernel_paths::in_kernel;
use super::leaves::Leaves;
use super::naming::{PartName, name};
use super::other_reason::OtherReason;
use super::partition::{DifferencePart, PartitionInput, drawn_path, is_below, main_threads, origins, partition};
use super::tree::{BuiltTree, GroupPair, GroupSums};
use super::words::{TotalDifference, common_phrase, figures, part_phrase, phrase, sentence_case};
use super::{Cause, CausePart, across};
use crate::base::ctx::Cancelled;
use crate::base::figure;
use crate::base::names::NameId;
use crate::base::statistics::divide_rounded;
use crate::model::context::{ContextId, FrameKind};
use crate::model::execution::{ContextTime, ExecutionId};
use crate::model::wait_kind::WaitKind;
use std::collections::BTreeMap;

/// Causes shown, at most.
pub(super) const SHOWN: usize = 12;
/// A cause is shown from this fraction of the whole difference on: a hundredth.
pub(super) const SMALLEST: i128 = 100;
/// Standard deviations above the fast mean from which an execution clearly has more of a part.
const CLEARLY_MORE: f64 = 3.0;

/// The causes, and the values that the verdict needs of them.
pub(super) struct RankedCauses {
    pub causes: Vec<Cause>,
    /// By ranked cause: time per execution, slow ones first.
    pub values: Vec<Vec<u64>>,
    /// By ranked cause: the phrase of its sentence.
    pub phrases: Vec<String>,
    /// The contexts of the first cause, ascending.
    pub first: Vec<ContextId>,
    /// Those of them in which the thread to blame did what it mostly did.
    pub prevailing: Vec<ContextId>,
    /// The place of the first cause.
    pub place: CausePlace,
    /// What else explains the first cause.
    pub other_reason: Option<OtherReason>,
}

/// The place of a cause's time, and the reason if the recording does not say more about it.
#[derive(Clone, Debug, Default)]
pub(super) struct CausePlace {
    /// The function or call; empty if unknown.
    pub site: String,
    /// The reason of an unknown wait or state.
    pub reason: Option<String>,
}

/// Shares of the two groups' executions that a part touches.
#[derive(Clone, Copy)]
struct Affected {
    slow: f64,
    fast: f64,
}

/// Rank the parts of the difference; `whole_ns` is the difference of the mean durations.
pub(super) fn rank(groups: &GroupPair<'_>, built: &mut BuiltTree, whole_ns: i64) -> Result<RankedCauses, Cancelled> {
    let model = groups.model;
    let (origins, threads) = (origins(model), main_threads(model));
    let input = PartitionInput { model, origins: &origins, threads: &threads, own: &built.own };
    let sum: i128 = built.own.iter().sum();
    let parts = by_size(across::joined(groups, &input, partition(&input), sum), sum);
    let matters = |p: &&DifferencePart| p.difference != 0 && p.difference.abs() * SMALLEST >= sum.abs();
    let shown: Vec<DifferencePart> = parts.iter().filter(matters).take(SHOWN).cloned().collect();
    let small = parts.len() - shown.len();
    let values = values(groups, &shown)?;

    let first = shown.first().map_or_else(Vec::new, |p| p.contexts.clone());
    let leaves = shown.first().map(|part| Leaves::new(&input, part));
    let mut ranked = RankedCauses {
        causes: Vec::new(),
        values,
        phrases: Vec::new(),
        prevailing: leaves.as_ref().map_or_else(Vec::new, |leaves| leaves.prevailing(first.clone())),
        first,
        place: CausePlace::default(),
        other_reason: leaves.as_ref().and_then(OtherReason::of),
    };
    let mut p_values = Vec::new();
    for (at, part) in shown.iter().enumerate() {
        groups.cancel.check()?;
        let list = &ranked.values[at];
        let sums = sums(groups, list.iter().copied().map(|ns| Some(ns).filter(|ns| *ns > 0)));
        p_values.push(groups.p_value(&sums, || MemberValue::of_list(list)));
        let affected = affected(groups, &input, part, list)?;
        let named = name(groups, &input, part);
        let common = part.common.as_ref().map(|common| common_phrase(common, &named));
        let in_kernel = in_kernel(part.kind, &Leaves::new(&input, part));
        ranked.phrases.push(common.unwrap_or_else(|| phrase(part.kind, &named) + &through(&named) + &in_kernel));
        if at == 0 {
            ranked.place = CausePlace { site: named.site.clone(), reason: reason(&input, part) };
        }
        let pairs = groups.pairs();
        ranked.causes.push(Cause {
            rank: Some(at as u32 + 1),
            kind: Some(part.kind),
            extra_ns: divide_rounded(part.difference, pairs),
            share: if sum == 0 { 0.0 } else { part.difference as f64 / sum as f64 },
            deviations: sums.deviations(groups.floor_ns),
            p_value: None,
            slow_affected: affected.slow,
            fast_affected: affected.fast,
            path: drawn_path(model, named.context),
            context: Some(named.context),
            places: places(&input, part),
            contexts: part.contexts.clone(),
            by: named.by,
            parts: kinds_of(groups, &input, part),
            sentence: String::new(),
        });
    }
    built.correct(&mut p_values);
    let whole = TotalDifference::new(groups, whole_ns);
    for ((cause, p), phrase) in ranked.causes.iter_mut().zip(p_values).zip(&ranked.phrases) {
        cause.p_value = p;
        cause.sentence = format!("{}: {}.", sentence_case(phrase), figures(cause, &whole));
    }
    let explained: i64 = ranked.causes.iter().map(|c| c.extra_ns).fold(0, i64::saturating_add);
    let rest = whole_ns.saturating_sub(explained);
    if small > 0 || rest != 0 {
        ranked.causes.push(remainder(rest, whole_ns, small));
    }
    Ok(ranked)
}

/// What a part over several kinds has of each; none for a part of one kind.
fn kinds_of(groups: &GroupPair<'_>, input: &PartitionInput<'_>, part: &DifferencePart) -> Vec<CausePart> {
    let Some(common) = &part.common else { return Vec::new() };
    let pairs = groups.pairs();
    let of_kind = |(kind, difference): (WaitKind, i128)| {
        let is_kind = |context: &ContextId| input.model.contexts.spent(*context) == kind;
        let contexts = part.contexts.iter().copied().filter(is_kind).collect();
        let named = across::of_kind(input, common, kind, contexts);
        let phrase = part_phrase(kind, &name(groups, input, &named), common);
        CausePart { kind, extra_ns: divide_rounded(difference, pairs), phrase }
    };
    let mut kinds: Vec<CausePart> = across::by_kind(input, &part.contexts).into_iter().map(of_kind).collect();
    kinds.retain(|of_kind| i128::from(of_kind.extra_ns.abs()) * SMALLEST * pairs as i128 >= part.difference.abs());
    kinds.sort_by_key(|of_kind| (std::cmp::Reverse(of_kind.extra_ns), of_kind.kind));
    kinds
}

/// The places of the own thread with at least a hundredth of a part, the largest first.
fn places(input: &PartitionInput<'_>, part: &DifferencePart) -> Vec<ContextId> {
    let mut sums: BTreeMap<ContextId, i128> = BTreeMap::new();
    for context in &part.contexts {
        *sums.entry(input.origins[context.index()].site).or_insert(0) += input.own[context.index()];
    }
    let mut places: Vec<(ContextId, i128)> = sums.into_iter().collect();
    places.retain(|(_, sum)| sum.abs() * SMALLEST >= part.difference.abs());
    places.sort_by_key(|(context, sum)| (std::cmp::Reverse(sum.abs()), *context));
    places.into_iter().map(|(context, _)| context).collect()
}

/// Parts by size, the largest one with the sign of the whole first: a cause of extra time is extra time.
pub(super) fn by_size(mut parts: Vec<DifferencePart>, sum: i128) -> Vec<DifferencePart> {
    parts.sort_by_key(|p| std::cmp::Reverse(p.difference.abs()));
    if let Some(at) = parts.iter().position(|p| p.difference.signum() == sum.signum()) {
        parts[..=at].rotate_right(1);
    }
    parts
}

/// `, whose work the journal of vda did`, where a kernel thread delayed the execution for the culprit.
fn through(named: &PartName) -> String {
    named.through.as_ref().map_or_else(String::new, |role| format!(", whose work {role} did"))
}

/// Sums of both groups over the members' values, slow ones first; `None` where an execution has none.
fn sums(groups: &GroupPair<'_>, values: impl Iterator<Item = Option<u64>>) -> GroupSums {
    let mut sums = GroupSums::new(groups);
    for (member, ns) in values.enumerate() {
        if let Some(ns) = ns {
            sums.put(groups.side(member), ns, groups.weight(member));
        }
    }
    sums
}

/// The last entry: all small parts, and the rounding of the others.
fn remainder(extra_ns: i64, whole_ns: i64, small: usize) -> Cause {
    let subject = match small {
        0 => "Rounding".to_owned(),
        1 => "1 smaller difference".to_owned(),
        _ => format!("{small} smaller differences together"),
    };
    let share = if whole_ns == 0 { 0.0 } else { extra_ns as f64 / whole_ns as f64 };
    Cause::remainder(None, extra_ns, share, format!("{subject}: {}.", figure::time(extra_ns as f64)))
}

/// By part the time of each execution, slow ones first.
fn values(groups: &GroupPair<'_>, parts: &[DifferencePart]) -> Result<Vec<Vec<u64>>, Cancelled> {
    let mut part_of: Vec<Option<usize>> = vec![None; groups.model.contexts.len()];
    for (at, part) in parts.iter().enumerate() {
        for context in &part.contexts {
            part_of[context.index()] = Some(at);
        }
    }
    let mut values = vec![vec![0; groups.slow.len() + groups.fast.len()]; parts.len()];
    for (member, (_, e)) in groups.members().enumerate() {
        groups.cancel.check()?;
        for ContextTime { context, ns } in groups.model.executions.own.row(e.index()) {
            if let Some(part) = part_of[context.index()] {
                values[part][member] += ns;
            }
        }
    }
    Ok(values)
}

/// Shares of both groups that have clearly more of a part than fast executions usually have; of a part that the slow
/// group has less of, the shares that have it at all. Where a function names the part, only time known to be in that
/// function counts.
fn affected(
    groups: &GroupPair<'_>,
    input: &PartitionInput<'_>,
    part: &DifferencePart,
    values: &[u64],
) -> Result<Affected, Cancelled> {
    let mut in_function = part.clone();
    if let Some(node) = part.node {
        in_function.contexts.retain(|c| is_below(input.model, input.origins[c.index()].site, node));
    }
    let known = if in_function.contexts.len() == part.contexts.len() {
        Vec::new()
    } else {
        self::values(groups, &[in_function])?
    };
    let values = known.first().map_or(values, Vec::as_slice);
    let sums = sums(groups, values.iter().copied().map(Some));
    let usual = if part.difference > 0 {
        sums.fast.mean() + CLEARLY_MORE * sums.fast.population_variance().sqrt()
    } else {
        0.0
    };
    let limit = groups.floor_ns.max(usual);
    let share = |of: &[u64], members: &[ExecutionId], count: u64| {
        let touched = of.iter().zip(members).filter(|(ns, _)| **ns as f64 > limit);
        touched.map(|(_, id)| groups.weights.of(id.index())).sum::<u64>() as f64 / count.max(1) as f64
    };
    let (slow, fast) = values.split_at(groups.slow.len().min(values.len()));
    let [n_slow, n_fast] = groups.counts;
    Ok(Affected { slow: share(slow, groups.slow, n_slow), fast: share(fast, groups.fast, n_fast) })
}

/// The reason why the recording does not say more about a part's time: the one that most of it has.
fn reason(input: &PartitionInput<'_>, part: &DifferencePart) -> Option<String> {
    if !matches!(part.kind, WaitKind::UnknownWait | WaitKind::UnknownState) {
        return None;
    }
    let tree = &input.model.contexts;
    let mut reasons: BTreeMap<NameId, i128> = BTreeMap::new();
    for context in &part.contexts {
        let below_wait =
            tree.parent(*context).is_some_and(|above| matches!(tree.frame(above).kind, FrameKind::Wait(_)));
        if below_wait && matches!(tree.frame(*context).kind, FrameKind::Wait(_)) {
            *reasons.entry(tree.frame(*context).name).or_insert(0) += input.own[context.index()];
        }
    }
    let (most, _) = reasons.into_iter().max_by_key(|(_, sum)| sum.abs())?;
    Some(input.model.names.get(most).to_owned())
}
