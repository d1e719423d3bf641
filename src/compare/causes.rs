//! Ranked causes: each part of the difference named, measured and worded.
//!
//! In: the parts of [`super::partition`]. Out: causes whose `extra_ns` add up to the difference of the two mean
//! durations exactly; small parts and rounding go to one last entry without a rank. A part is named after the
//! deepest function that covers at least 80 % of what is known of it (ALGORITHMS.md 7.4), separately for the
//! execution's own thread (the site) and for the thread to blame; only where there is none, half is enough. Cost:
//! linear in the groups' sparse lists and in the parts' contexts times their depth.

use super::partition::{
    BlamedThread, DifferencePart, PartitionInput, drawn_path, is_below, is_servant, main_threads, origins, partition,
};
use super::tree::{BuiltTree, GroupPair, GroupSums};
use super::words::{Blame, TotalDifference, figures, phrase, sentence_case};
use super::{Cause, Culprit};
use crate::base::ctx::Cancelled;
use crate::base::figure;
use crate::base::names::{NameId, fold_digits};
use crate::base::statistics::divide_rounded;
use crate::event::kernel_thread::role;
use crate::model::context::{ContextId, FrameKind};
use crate::model::wait_kind::WaitKind;
use crate::model::{Model, ThreadInfo, ThreadInfoId};
use std::collections::{BTreeMap, BTreeSet};

/// Causes shown, at most; one must be a hundredth of the whole difference.
const SHOWN: usize = 12;
/// Leaves asked for the name of a part.
const SPOKESMEN: usize = 16;

/// The causes, and what the verdict asks of them.
pub(super) struct RankedCauses {
    pub causes: Vec<Cause>,
    /// By ranked cause: time per execution, slow ones first.
    pub values: Vec<Vec<u64>>,
    /// By ranked cause: the phrase of its sentence.
    pub phrases: Vec<String>,
    /// The contexts of the first cause, ascending.
    pub first: Vec<ContextId>,
    /// Of the first cause: its place, and why nobody knows more of that time, where that is so.
    pub place: CausePlace,
}

/// Where the time of a cause was, and what is not known of it.
#[derive(Clone, Debug, Default)]
pub(super) struct CausePlace {
    pub site: String,
    pub reason: Option<String>,
}

/// Rank the parts of the difference; `whole_ns` is the difference of the mean durations.
pub(super) fn rank(groups: &GroupPair<'_>, built: &mut BuiltTree, whole_ns: i64) -> Result<RankedCauses, Cancelled> {
    let model = groups.model;
    let (origins, threads) = (origins(model), main_threads(model));
    let ground = PartitionInput { model, origins: &origins, threads: &threads, own: &built.own };
    let mut parts = partition(&ground);
    let pairs = groups.slow.len() as u128 * groups.fast.len().max(1) as u128;
    let sum: i128 = built.own.iter().sum();
    // Parts with the sign of the whole first among the largest: a cause of extra time is extra time.
    parts.sort_by_key(|p| std::cmp::Reverse(p.difference.abs()));
    if let Some(at) = parts.iter().position(|p| p.difference.signum() == sum.signum()) {
        parts[..=at].rotate_right(1);
    }
    let matters = |p: &&DifferencePart| p.difference != 0 && p.difference.abs() * 100 >= sum.abs();
    let shown: Vec<DifferencePart> = parts.iter().filter(matters).take(SHOWN).cloned().collect();
    let folded = parts.len() - shown.len();
    let values = values(groups, &shown)?;

    let first = shown.first().map_or_else(Vec::new, |p| p.contexts.clone());
    let mut ranked =
        RankedCauses { causes: Vec::new(), values, phrases: Vec::new(), first, place: CausePlace::default() };
    let whole = TotalDifference::new(groups, whole_ns);
    let mut p_values = Vec::new();
    for (at, part) in shown.iter().enumerate() {
        groups.cancel.check()?;
        let list = &ranked.values[at];
        let mut pair = GroupSums::new(groups);
        for (member, ns) in list.iter().enumerate().filter(|(_, ns)| **ns > 0) {
            pair.put(member < groups.slow.len(), *ns);
        }
        p_values.push(groups.p_value(&pair, || list.clone()));
        let (slow_affected, fast_affected) = affected(groups, &ground, part, &ranked.values[at])?;
        let named = name(groups, &ground, part);
        let extra_ns = divide_rounded(part.difference, pairs);
        let through = named.through.as_ref().map_or_else(String::new, |role| format!(", whose work {role} did"));
        ranked.phrases.push(phrase(part.kind, &named.site, &named.by, named.blame) + &through);
        if at == 0 {
            ranked.place = CausePlace { site: named.site.clone(), reason: reason(&ground, part) };
        }
        ranked.causes.push(Cause {
            rank: Some(at as u32 + 1),
            kind: Some(part.kind),
            extra_ns,
            share: if sum == 0 { 0.0 } else { part.difference as f64 / sum as f64 },
            deviations: pair.deviations(groups.floor_ns),
            p_value: None,
            slow_affected,
            fast_affected,
            path: drawn_path(model, named.context),
            context: Some(named.context),
            by: named.by,
            sentence: String::new(),
        });
    }
    built.correct(&mut p_values);
    for ((cause, p), phrase) in ranked.causes.iter_mut().zip(p_values).zip(&ranked.phrases) {
        cause.p_value = p;
        cause.sentence = format!("{}: {}.", sentence_case(phrase), figures(cause, &whole));
    }
    let told: i64 = ranked.causes.iter().map(|c| c.extra_ns).fold(0, i64::saturating_add);
    let rest = whole_ns.saturating_sub(told);
    if folded > 0 || rest != 0 {
        ranked.causes.push(remainder(rest, whole_ns, folded));
    }
    Ok(ranked)
}

/// The last entry: everything small, and the rounding of the others.
fn remainder(extra_ns: i64, whole_ns: i64, folded: usize) -> Cause {
    let what = if folded == 0 { "Rounding".to_string() } else { format!("{folded} smaller differences together") };
    Cause {
        rank: None,
        kind: None,
        extra_ns,
        share: if whole_ns == 0 { 0.0 } else { extra_ns as f64 / whole_ns as f64 },
        deviations: None,
        p_value: None,
        slow_affected: 0.0,
        fast_affected: 0.0,
        path: Vec::new(),
        context: None,
        by: Culprit::default(),
        sentence: format!("{what}: {}.", figure::time(extra_ns as f64)),
    }
}

/// For each part the time of each execution, slow ones first.
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
        for (context, ns) in groups.model.executions.own.row(e.index()) {
            if let Some(part) = part_of[context.index()] {
                values[part][member] += ns;
            }
        }
    }
    Ok(values)
}

/// Shares of both groups that have clearly more of it than fast executions usually have; of what is less in the
/// slow group, the shares that have it at all. Where the part is named by a function, only what is known to be in it
/// counts.
fn affected(
    groups: &GroupPair<'_>,
    ground: &PartitionInput<'_>,
    part: &DifferencePart,
    values: &[u64],
) -> Result<(f64, f64), Cancelled> {
    let mut seen = part.clone();
    if let Some(node) = part.node {
        seen.contexts.retain(|c| is_below(ground.model, ground.origins[c.index()].site, node));
    }
    let known = if seen.contexts.len() == part.contexts.len() { Vec::new() } else { self::values(groups, &[seen])? };
    let values = known.first().map_or(values, Vec::as_slice);
    let mut pair = GroupSums::new(groups);
    values.iter().enumerate().for_each(|(member, ns)| pair.put(member < groups.slow.len(), *ns));
    let usual = if part.difference > 0 { pair.fast.mean() + 3.0 * pair.fast.population_variance().sqrt() } else { 0.0 };
    let limit = groups.floor_ns.max(usual);
    let share = |of: &[u64]| of.iter().filter(|ns| **ns as f64 > limit).count() as f64 / of.len().max(1) as f64;
    let (slow, fast) = values.split_at(groups.slow.len().min(values.len()));
    Ok((share(slow), share(fast)))
}

/// Why nobody knows more of a part's time: what stands at most of it.
fn reason(ground: &PartitionInput<'_>, part: &DifferencePart) -> Option<String> {
    if !matches!(part.kind, WaitKind::UnknownWait | WaitKind::UnknownState) {
        return None;
    }
    let tree = &ground.model.contexts;
    let mut reasons: BTreeMap<NameId, i128> = BTreeMap::new();
    for context in &part.contexts {
        let below_wait =
            tree.parent(*context).is_some_and(|above| matches!(tree.frame(above).kind, FrameKind::Wait(_)));
        if below_wait && matches!(tree.frame(*context).kind, FrameKind::Wait(_)) {
            *reasons.entry(tree.frame(*context).name).or_insert(0) += ground.own[context.index()];
        }
    }
    let (most, _) = reasons.into_iter().max_by_key(|(_, sum)| sum.abs())?;
    Some(ground.model.names.get(most).to_owned())
}

struct NamedPart {
    context: ContextId,
    by: Culprit,
    site: String,
    blame: Blame,
    /// The thread of the kernel that worked for whoever is to blame, in words.
    through: Option<String>,
}

/// Name a part: where, by whom, in which function, and the context that stands for it.
fn name(groups: &GroupPair<'_>, ground: &PartitionInput<'_>, part: &DifferencePart) -> NamedPart {
    let model = ground.model;
    let frame = |c: ContextId| model.contexts.frame(c);
    let sign = part.difference.signum();
    let mut leaves: Vec<(ContextId, i128)> =
        part.contexts.iter().map(|c| (*c, ground.own[c.index()] * sign)).filter(|(_, d)| *d > 0).collect();
    leaves.sort_by_key(|(c, d)| (std::cmp::Reverse(*d), *c));
    let heaviest = leaves.first().map_or_else(|| part.contexts[0], |(c, _)| *c);
    let process = |c: ContextId| frame(model.contexts.path(c)[0]).name;

    if part.kind == WaitKind::Cpu {
        let context = part.node.unwrap_or(model.contexts.path(heaviest)[0]);
        let own = model.contexts.path(context);
        let is_function = |c: &&ContextId| frame(**c).kind == FrameKind::Function && is_named(model, **c);
        let function = own.iter().rev().find(is_function);
        let function = function.map(|c| model.names.function(frame(*c).name).into_owned());
        let call = own.iter().rev().find(|c| frame(**c).kind == FrameKind::Call);
        let call = call.map(|c| model.names.get(frame(*c).name));
        let by = own_thread(groups, process(heaviest), function.as_deref().unwrap_or(""));
        let site = match (function, call) {
            (Some(function), Some(call)) => format!("{call} for {function}"),
            (function, call) => function.or(call.map(str::to_owned)).unwrap_or_default(),
        };
        return NamedPart { context, by, site, blame: Blame::Nobody, through: None };
    }

    // How the kernel waits inside of a call is the same for all who wait in it: the call says more.
    let own_frames = |leaf: ContextId| {
        let mut path = model.contexts.path(ground.origins[leaf.index()].site);
        let call = path.iter().rposition(|c| frame(*c).kind == FrameKind::Call);
        path.truncate(call.map_or(path.len(), |at| at + 1));
        path
    };
    let site = common_function(model, &leaves, own_frames);
    if let Some((name, ..)) = site {
        leaves.sort_by_key(|(c, _)| !own_frames(*c).iter().any(|f| frame(*f).name == name));
    }
    let message = message_call(model, &leaves, own_frames);
    let call = own_frames(heaviest).into_iter().rev().find(|c| frame(*c).kind == FrameKind::Call);
    let site = match (message, site) {
        (None, Some((function, _))) => model.names.function(function).into_owned(),
        (message, _) => {
            message.or(call.map(|c| frame(c).name)).map_or_else(String::new, |n| model.names.get(n).to_owned())
        }
    };

    let (blame, whom) = blamed(ground, part, &leaves, model.names.get(process(heaviest)));
    if let Some(whom) = whom {
        leaves.retain(|(c, _)| ground.blamed(*c).as_ref() == Some(&whom));
        let tail = |leaf: ContextId| {
            let culprit = ground.origins[leaf.index()].culprit;
            let path = model.contexts.path(leaf);
            let from = path.iter().position(|c| Some(*c) == culprit).map_or(path.len(), |at| at + 1);
            path[from..].to_vec()
        };
        let function = common_function(model, &leaves, tail);
        let culprit = leaves.first().and_then(|(c, _)| ground.origins[c.index()].culprit).unwrap_or(heaviest);
        let context = function.map_or(culprit, |(_, at)| at);
        let is_thread = |c: &&ContextId| matches!(frame(**c).kind, FrameKind::Thread(_));
        let path = model.contexts.path(context);
        let thread = path.iter().rev().find(is_thread).copied().unwrap_or(culprit);
        // The same thread is reached through several contexts; a thread further down stands for itself.
        let mut frames: BTreeSet<ContextId> =
            leaves.iter().filter_map(|(c, _)| ground.origins[c.index()].culprit).collect();
        if !frames.contains(&thread) {
            frames = BTreeSet::from([thread]);
        }
        let by = other_thread(model, &frames, function.map(|(name, _)| name));
        let above = path.iter().rev().skip_while(|c| **c != thread).skip(1).find(is_thread);
        let through = above.filter(|c| is_servant(model, **c)).and_then(|c| role(model.names.get(frame(*c).name)));
        return NamedPart { context, by, site, blame, through };
    }
    let path = model.contexts.path(heaviest);
    let culprit = ground.origins[heaviest.index()].culprit;
    let context = path.iter().copied().take_while(|c| Some(*c) != culprit).last().unwrap_or(heaviest);
    let by = own_thread(groups, process(heaviest), &site);
    NamedPart { context, by, site, blame: Blame::Nobody, through: None }
}

/// The call of the message passing library in which at least half of the time was waited: it says more than the function around it.
fn message_call(
    model: &Model,
    leaves: &[(ContextId, i128)],
    frames: impl Fn(ContextId) -> Vec<ContextId>,
) -> Option<NameId> {
    let last = |leaf: ContextId| frames(leaf).last().map(|c| model.contexts.frame(*c).name);
    let call = leaves.first().and_then(|(leaf, _)| last(*leaf)).filter(|n| model.names.get(*n).starts_with("MPI_"))?;
    let total: i128 = leaves.iter().map(|(_, d)| d).sum();
    let there: i128 = leaves.iter().filter(|(leaf, _)| last(*leaf) == Some(call)).map(|(_, d)| d).sum();
    (there * 2 >= total).then_some(call)
}

/// Who is to blame for a wait: the part's thread, or the one with the largest share where there are several; for the
/// disk, another process that had a tenth of it or more (threads of the same program are fellow sufferers).
fn blamed(
    ground: &PartitionInput<'_>,
    part: &DifferencePart,
    leaves: &[(ContextId, i128)],
    process: &str,
) -> (Blame, Option<BlamedThread>) {
    let one_thread = part.blamed.as_ref().is_some_and(|b| b.thread.is_some());
    if one_thread {
        return (Blame::One, part.blamed.clone());
    }
    if part.blamed.is_none() && !part.several && part.kind != WaitKind::Disk {
        return (Blame::Nobody, None);
    }
    let mut shares: BTreeMap<BlamedThread, i128> = BTreeMap::new();
    for (context, share) in leaves {
        if let Some(whom) = ground.blamed(*context) {
            *shares.entry(whom).or_insert(0) += share;
        }
    }
    if part.kind == WaitKind::Disk {
        shares.retain(|of, share| of.process != process && *share * 10 >= part.difference.abs());
    }
    match shares.into_iter().max_by_key(|(_, share)| *share) {
        None => (Blame::Nobody, None),
        Some((whom, _)) if part.several => (Blame::Several, Some(whom)),
        Some((whom, share)) if part.blamed.is_some() && share * 5 < part.difference.abs() * 4 => {
            (Blame::Program, Some(whom))
        }
        Some((whom, _)) => (Blame::One, Some(whom)),
    }
}

/// The deepest function that covers 80 % (else half) of the leaves whose functions are known, and the context where
/// it stands on the first leaf that has it. Functions without a name, and the kernel's, only where most leaves have no other.
fn common_function(
    model: &Model,
    leaves: &[(ContextId, i128)],
    frames: impl Fn(ContextId) -> Vec<ContextId>,
) -> Option<(NameId, ContextId)> {
    let function = |c: ContextId, any: bool| {
        let frame = model.contexts.frame(c);
        match frame.kind {
            FrameKind::Function if any || is_named(model, c) => Some(frame.name),
            FrameKind::KernelFunction if any => Some(frame.name),
            _ => None,
        }
    };
    let total: i128 = leaves.iter().map(|(_, d)| d).sum();
    let has_any = |leaf: ContextId| frames(leaf).into_iter().any(|c| function(c, true).is_some());
    let with_any: i128 = leaves.iter().filter(|(leaf, _)| has_any(*leaf)).map(|(_, share)| share).sum();
    for any in [false, true] {
        let mut known = 0;
        let mut covers: BTreeMap<NameId, i128> = BTreeMap::new();
        for (leaf, share) in leaves {
            let names: BTreeSet<NameId> = frames(*leaf).into_iter().filter_map(|c| function(c, any)).collect();
            known += if names.is_empty() { 0 } else { *share };
            for name in names {
                *covers.entry(name).or_insert(0) += share;
            }
        }
        // What few leaves have a name for would speak for the others.
        if known == 0 || known * 20 < total || known * 2 < with_any {
            continue;
        }
        for percent in [80, 50] {
            for (leaf, _) in leaves.iter().take(SPOKESMEN) {
                let on_it = frames(*leaf).into_iter().rev().find_map(|c| {
                    let name = function(c, any)?;
                    (covers.get(&name)? * 100 >= known * percent).then_some((name, c))
                });
                if on_it.is_some() {
                    return on_it;
                }
            }
        }
    }
    None
}

/// False for functions without symbols, which stand as `[libc.so.6]`, `[unknown]`, `file+0xoffset` or `0xaddress`, and for the C
/// library's `syscall`, through which a program makes any call at all.
fn is_named(model: &Model, function: ContextId) -> bool {
    let name = model.names.get(model.contexts.frame(function).name);
    !name.starts_with('[') && !name.starts_with("0x") && !name.contains("+0x") && name != "syscall"
}

/// The execution's own thread as the one who spent the time: what all slow executions have in common.
fn own_thread(groups: &GroupPair<'_>, process: NameId, function: &str) -> Culprit {
    let model = groups.model;
    let mut time: BTreeMap<ThreadInfoId, u64> = BTreeMap::new();
    for e in groups.slow {
        *time.entry(model.executions.who[e.index()]).or_insert(0) += 1;
    }
    let mut by = describe(model, &time);
    by.process = Some(model.names.get(process).to_string());
    by.function = (!function.is_empty()).then(|| function.to_string());
    by
}

/// Another thread, by the frames that stand for it.
fn other_thread(model: &Model, frames: &BTreeSet<ContextId>, function: Option<NameId>) -> Culprit {
    let mut time: BTreeMap<ThreadInfoId, u64> = BTreeMap::new();
    for frame in frames {
        for ((_, who), ns) in
            model.contexts.who.range((*frame, ThreadInfoId::at(0))..=(*frame, ThreadInfoId::from_raw(u32::MAX)))
        {
            *time.entry(*who).or_insert(0) += ns;
        }
    }
    let mut by = describe(model, &time);
    if by.thread.is_none() {
        let named = frames.first().map(|c| model.names.get(model.contexts.frame(*c).name).to_string());
        by.thread = named;
    }
    by.function = function.map(|f| model.names.function(f).into_owned());
    by
}

/// What at least nine tenths of the weight agree on, field by field; thread names with digits folded if need be.
fn describe(model: &Model, weights: &BTreeMap<ThreadInfoId, u64>) -> Culprit {
    fn agreed<T: Ord>(
        model: &Model,
        weights: &BTreeMap<ThreadInfoId, u64>,
        of: impl Fn(&ThreadInfo) -> T,
    ) -> Option<T> {
        let mut sums: BTreeMap<T, u128> = BTreeMap::new();
        for (who, weight) in weights {
            if let Some(who) = model.who.get(who.index()) {
                *sums.entry(of(who)).or_insert(0) += u128::from(*weight);
            }
        }
        let total: u128 = sums.values().sum();
        sums.into_iter().find(|(_, sum)| total > 0 && sum * 10 >= total * 9).map(|(value, _)| value)
    }
    let text = |id: NameId| model.names.get(id).to_string();
    let thread = agreed(model, weights, |w| w.thread).map(text);
    let folded = || agreed(model, weights, |w| fold_digits(model.names.get(w.thread)));
    Culprit {
        host: agreed(model, weights, |w| w.host).map(text),
        process: agreed(model, weights, |w| w.process).map(text),
        pid: agreed(model, weights, |w| (w.host, w.pid)).map(|(_, pid)| pid),
        tid: agreed(model, weights, |w| (w.host, w.tid)).map(|(_, tid)| tid),
        thread: thread.or_else(folded),
        function: None,
    }
}
