//! Causes over several kinds of time: one function, or one thread, behind most of the difference.
//!
//! In: the parts of [`super::partition`], which divide time by its kind first. Out: the same parts, but where no part
//! has half of the difference and one function of the execution's own thread has half of it over several kinds (it runs
//! longer there, and loses its CPU there), its time is one part; else where one thread to blame has (the execution
//! waits for it, and for a CPU on which it runs). A function that the fast executions spend their time in as well is
//! none, nor is the outermost of the program: all time is in `main`. Of a function and those that it calls the
//! innermost counts that has four fifths of what is known of the largest; unknown stacks above it go with it. Sums stay
//! exact: every context is in one part. Cost: linear in the contexts times their depth. ALGORITHMS.md 7.6.

use super::partition::{BlamedThread, Common, DifferencePart, PartitionInput, is_below};
use super::tree::{GroupPair, Parties};
use crate::base::names::NameId;
use crate::model::context::{ContextId, FrameKind};
use crate::model::wait_kind::WaitKind;
use std::collections::{BTreeMap, BTreeSet};

/// Divisor of the part's difference: a kind counts from there on.
const LEAST_KIND: i128 = 10;
/// Percent of the known part of the largest function's difference that an inner one must have to stand for it.
const INNER: i128 = 80;
/// Divisor: fast executions spend in a function at most their own time divided by this, and the slow ones' extra time
/// there divided by this.
const SELDOM: f64 = 4.0;
/// Functions that are looked at, the largest first.
const TRIED: usize = 16;

/// Join what one function or thread has over several kinds, where no part has half of `sum`.
pub(super) fn joined(
    groups: &GroupPair<'_>,
    input: &PartitionInput<'_>,
    parts: Vec<DifferencePart>,
    sum: i128,
) -> Vec<DifferencePart> {
    let has_half = |difference: i128| difference * 2 >= sum;
    let is_apart = sum > 0 && !groups.fast.is_empty() && Parties::of(input.model) == Parties::Threads;
    if !is_apart || parts.iter().any(|part| has_half(part.difference)) {
        return parts;
    }
    let known =
        |c: &ContextId| !matches!(input.model.contexts.spent(*c), WaitKind::UnknownWait | WaitKind::UnknownState);
    let contexts: Vec<ContextId> = parts.iter().flat_map(|part| part.contexts.iter().copied()).filter(known).collect();
    let found = function(groups, input, &contexts, sum).or_else(|| thread(input, &contexts, sum));
    let Some((common, mut inside)) = found else { return parts };
    inside.sort_unstable();
    let members: BTreeSet<ContextId> = inside.iter().copied().collect();
    let kinds = by_kind(input, &inside);
    let Some((kind, _)) = kinds.iter().max_by_key(|(kind, difference)| (**difference, std::cmp::Reverse(**kind)))
    else {
        return parts;
    };
    let blamed = if let Common::Thread(thread) = &common { Some(thread.clone()) } else { None };
    let whole = DifferencePart { blamed, common: Some(common), ..input.part(*kind, inside) };
    let rest = parts.into_iter().filter_map(|mut part| {
        part.contexts.retain(|context| !members.contains(context));
        part.difference = input.sum(&part.contexts);
        (!part.contexts.is_empty()).then_some(part)
    });
    std::iter::once(whole).chain(rest).collect()
}

/// Differences of some contexts by kind.
pub(super) fn by_kind(input: &PartitionInput<'_>, contexts: &[ContextId]) -> BTreeMap<WaitKind, i128> {
    let mut kinds = BTreeMap::new();
    for context in contexts {
        *kinds.entry(input.model.contexts.spent(*context)).or_insert(0) += input.own[context.index()];
    }
    kinds
}

/// What such a part has of one kind, with the thread to blame for most of it.
pub(super) fn of_kind(
    input: &PartitionInput<'_>,
    common: &Common,
    kind: WaitKind,
    contexts: Vec<ContextId>,
) -> DifferencePart {
    let mut threads: BTreeMap<BlamedThread, i128> = BTreeMap::new();
    for context in &contexts {
        if let Some(blamed) = input.blamed(*context) {
            *threads.entry(blamed).or_insert(0) += input.own[context.index()];
        }
    }
    let part = input.part(kind, contexts);
    let node = if let Common::Function(frame) = common { Some(*frame) } else { None };
    let most = threads.into_iter().max_by_key(|(_, difference)| *difference);
    match most.filter(|_| kind != WaitKind::Cpu) {
        Some((blamed, difference)) if difference * 2 >= part.difference => {
            DifferencePart { blamed: Some(blamed), node, ..part }
        }
        Some(_) => DifferencePart { several: true, node, ..part },
        None => DifferencePart { node, ..part },
    }
}

/// True if a part of this difference has a tenth or more of it in each of several kinds.
fn has_several_kinds(input: &PartitionInput<'_>, contexts: &[ContextId], difference: i128) -> bool {
    let kinds = by_kind(input, contexts);
    kinds.values().filter(|of_kind| **of_kind * LEAST_KIND >= difference).count() > 1
}

/// What one function has in all contexts of the own thread.
#[derive(Default)]
struct InFunction {
    difference: i128,
    /// Frames above it, weighed by the difference.
    depth: i128,
    /// The difference of contexts in which no other function of the program is above it.
    outermost: i128,
    contexts: Vec<ContextId>,
    /// A context that ends in it.
    frame: Option<ContextId>,
}

/// The function that has half of the difference over several kinds.
fn function(
    groups: &GroupPair<'_>,
    input: &PartitionInput<'_>,
    contexts: &[ContextId],
    sum: i128,
) -> Option<(Common, Vec<ContextId>)> {
    let (tree, names) = (&input.model.contexts, &input.model.names);
    let mut functions: BTreeMap<NameId, InFunction> = BTreeMap::new();
    for context in contexts {
        let own = input.own[context.index()];
        let mut seen = BTreeSet::new();
        for frame in tree.path(input.origins[context.index()].site) {
            let name = tree.frame(frame).name;
            let is_function = matches!(tree.frame(frame).kind, FrameKind::Function | FrameKind::Inlined);
            if is_function && names.is_program_function(name) && seen.insert(name) {
                let function = functions.entry(name).or_default();
                function.difference += own;
                function.outermost += if seen.len() == 1 { own } else { 0 };
                function.depth += own * i128::from(tree.depth(frame));
                function.contexts.push(*context);
                function.frame.get_or_insert(frame);
            }
        }
    }
    let is_large = |f: &InFunction| f.difference * 2 >= sum && f.outermost * 2 < f.difference;
    let mut large: Vec<InFunction> = functions.into_values().filter(is_large).collect();
    large.sort_by_key(|f| std::cmp::Reverse(f.difference));
    large.truncate(TRIED);
    large.retain(|f| is_seldom(groups, input, f) && has_several_kinds(input, &f.contexts, f.difference));
    let outer = large.first()?.contexts.clone();
    // Of the outer function's time the part that may be in the inner one or not says nothing.
    let is_inner = |f: &InFunction| {
        let inside: BTreeSet<&ContextId> = f.contexts.iter().collect();
        let is_unknown = |c: &&ContextId| input.origins[c.index()].unknown.is_some() && !inside.contains(c);
        let unknown: i128 = outer.iter().filter(is_unknown).map(|c| input.own[c.index()]).sum();
        f.difference * 100 >= (input.sum(&outer) - unknown) * INNER
    };
    // Mean depths: a / b > c / d without a division.
    let deeper = |a: &InFunction, b: &InFunction| (a.depth * b.difference).cmp(&(b.depth * a.difference));
    let found = large.iter().filter(|f| is_inner(f)).max_by(|a, b| deeper(a, b))?;
    let frame = found.frame?;
    // Time in an unknown stack below an ancestor of the function is most likely more of the same.
    let inside: BTreeSet<&ContextId> = found.contexts.iter().collect();
    let is_near = |c: &&ContextId| {
        let above = input.origins[c.index()].unknown.and_then(|unknown| tree.parent(unknown));
        !inside.contains(c) && above.is_some_and(|above| is_below(input.model, frame, above))
    };
    let near: Vec<ContextId> = contexts.iter().filter(is_near).copied().collect();
    let near = if input.sum(&near) > 0 { near } else { Vec::new() };
    Some((Common::Function(frame), found.contexts.iter().copied().chain(near).collect()))
}

/// True if the fast executions spend little time in a function.
fn is_seldom(groups: &GroupPair<'_>, input: &PartitionInput<'_>, function: &InFunction) -> bool {
    let inside: BTreeSet<ContextId> = function.contexts.iter().copied().collect();
    let executions = &groups.model.executions;
    let time = |i: usize| -> u64 {
        executions.own.row(i).filter(|time| inside.contains(&time.context)).map(|time| time.ns).sum()
    };
    let [n_slow, n] = groups.counts.map(|count| count.max(1) as f64);
    let fast = groups.mean(groups.fast, |i| time(i) as f64);
    let all = groups.mean(groups.fast, |i| executions.duration(i) as f64);
    let extra = input.sum(&function.contexts) as f64 / (n * n_slow);
    fast * SELDOM <= extra.min(all)
}

/// The thread to blame that has half of the difference over several kinds.
fn thread(input: &PartitionInput<'_>, contexts: &[ContextId], sum: i128) -> Option<(Common, Vec<ContextId>)> {
    let mut threads: BTreeMap<BlamedThread, Vec<ContextId>> = BTreeMap::new();
    for context in contexts {
        let kind = input.model.contexts.spent(*context);
        if kind.row().blames_thread
            && let Some(blamed) = input.blamed(*context)
        {
            threads.entry(blamed).or_default().push(*context);
        }
    }
    let whole = |contexts: &Vec<ContextId>| input.sum(contexts);
    let (blamed, contexts) = threads.into_iter().max_by_key(|(_, contexts)| whole(contexts))?;
    let difference = whole(&contexts);
    let is_cause = difference * 2 >= sum && has_several_kinds(input, &contexts, difference);
    is_cause.then_some((Common::Thread(blamed), contexts))
}

#[cfg(test)]
mod tests {
    use crate::base::ctx::Ctx;
    use crate::compare::scenario::ModelBuilder;
    use crate::compare::{Comparison, ComparisonRequest, compare};

    /// 400 executions, one in 20 with these parts more, in ms.
    fn ask(extra: &[(&str, u64)]) -> Comparison {
        let mut s = ModelBuilder::new(11);
        for i in 0..400 {
            let work = s.around(2.0);
            let mut parts = vec![("p;main;handle", work)];
            parts.extend(extra.iter().filter(|_| i % 20 == 3).map(|(path, ms)| (*path, ms * 1_000_000)));
            s.run("x", "p", "p", 1, &parts);
        }
        let c = compare(&s.seal(), &ComparisonRequest::default(), &Ctx::new(1)).unwrap();
        assert_eq!(c.causes.iter().map(|cause| cause.extra_ns).sum::<i64>(), c.extra_ns);
        c
    }

    const OTHER: &str = "p;main;handle;log;[write];{disk}";

    #[test]
    fn function_over_several_kinds_is_the_cause() {
        let c = ask(&[
            ("p;main;handle;rebuild;rebuild_table", 12),
            ("p;main;handle;rebuild;rebuild_table;{preempted};thread xz@xz", 11),
            ("p;main;handle;rebuild;rebuild_table;[futex];thread gc@p;sweep", 3),
            (OTHER, 3),
        ]);
        let sentence = &c.verdict.sentence;
        assert!(
            c.verdict.confident && sentence.starts_with("In rebuild_table: 26.0 ms of 29.1 ms extra (89%)"),
            "{sentence}"
        );
        assert!(sentence.contains("12.0 ms running, 11.0 ms waiting for a CPU while xz ran"), "{sentence}");
        assert_eq!(c.causes[0].parts.len(), 3);
        assert_eq!(c.causes[0].by.function.as_deref(), Some("rebuild_table"));
    }

    #[test]
    fn function_of_all_executions_is_no_cause() {
        let c = ask(&[
            ("p;main;handle", 12),
            ("p;main;handle;{preempted};thread xz@xz", 6),
            ("p;main;handle;{preempted};thread cc@cc", 6),
            (OTHER, 6),
        ]);
        assert!(c.causes.iter().all(|cause| cause.parts.is_empty()), "{:#?}", c.causes[0]);
        // One kind that has half needs no other.
        let c = ask(&[("p;main;handle;rebuild", 12), ("p;main;handle;rebuild;{preempted};thread xz@xz", 5)]);
        assert!(c.causes[0].parts.is_empty() && c.verdict.sentence.starts_with("Running rebuild"), "{:?}", c.verdict);
    }

    #[test]
    fn thread_over_several_kinds_is_the_cause() {
        let c = ask(&[
            ("p;main;handle;[futex];thread gc@p;sweep", 9),
            ("p;main;parse;{preempted};thread gc@p;sweep", 9),
            (OTHER, 9),
            ("p;main;reply;[nanosleep];{timer}", 6),
        ]);
        let sentence = &c.verdict.sentence;
        assert!(sentence.starts_with("Because of thread gc of p, which ran sweep: 18.0 ms of 33.1 ms"), "{sentence}");
        assert_eq!((c.causes[0].parts.len(), c.causes[0].by.thread.as_deref()), (2, Some("gc")));
    }
}
