//! Names of delays whose functions call each other: one activity of a thread has one name.
//!
//! Which function names a delay depends on when the delayed execution began to wait: who came while the holder of a
//! lock was in the second half of `flush` waited for `checksum`, who came before it for `flush`, which calls that. In:
//! delays with the functions that name them. Out: the same with one function for each activity, and the time in the
//! functions below it. Cost: n log n in the delays times the depth of their callers. ALGORITHMS.md 9.7.

use super::chains::{ChainId, ChainLink, WaitChains};
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::explain::naming::Activity;
use crate::model::Model;
use crate::model::event_kind::EventKind;
use crate::model::propagation::{InnerFunction, PropagationPath};
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A delay: its path, the chain in which its source is, and the activity of the source.
pub(super) struct Traced {
    pub(super) chain: ChainId,
    pub(super) named: Activity,
    pub(super) path: PropagationPath,
}

/// What one activity has in common: the name of the thread, however it was waited for, its wait, and what it did.
type ActivityKey = (Option<NameId>, Option<ChainLink>, EventKind, String);

/// A delay whose function is known.
struct Settled {
    at: usize,
    function: NameId,
    /// Callers of the function, from the outermost.
    callers: Vec<NameId>,
    /// The stacks of the delay itself show the function.
    is_shown: bool,
}

impl Settled {
    /// The last of its callers that names delays, too.
    fn caller_among(&self, names: &BTreeSet<NameId>) -> Option<NameId> {
        self.callers.iter().rev().find(|name| **name != self.function && names.contains(name)).copied()
    }
}

/// A function, and the caller that names other delays.
type Below = (NameId, Option<NameId>);

/// A function that names delays, and one of its callers that does so, too.
type Nested = (NameId, NameId);

/// Give the delays of one activity one function.
pub(super) fn settle(traced: &mut [Option<Traced>], chains: &WaitChains, model: &Model) {
    let supplied = supplied(traced);
    let mut activities: HashMap<ActivityKey, Vec<Settled>> = HashMap::default();
    for (at, delay) in traced.iter().enumerate() {
        let Some(delay) = delay else { continue };
        let (Some(own), Some(source)) = (delay.named.function, delay.path.steps.first()) else { continue };
        let supplied = supplied.get(&at).copied();
        let mut callers = delay.named.callers.clone();
        callers.extend(supplied.is_some().then_some(own));
        let link = chains.get(delay.chain).link;
        // A wait has the name of its kind: the thread that waits is above it.
        let name = |chain: ChainId| match chains.get(chain).link {
            ChainLink::Process(name) | ChainLink::Thread(_, name) => Some(name),
            ChainLink::Wait(..) => None,
        };
        let wait = Some(link).filter(|link| !link.is_thread());
        let key = (chains.upwards(delay.chain).find_map(name), wait, source.kind, source.what.clone());
        let function = supplied.unwrap_or(own);
        let is_shown = supplied.is_none() && !delay.named.is_open;
        activities.entry(key).or_default().push(Settled { at, function, callers, is_shown });
    }
    for settled in activities.into_values() {
        let names: BTreeSet<NameId> = settled.iter().map(|s| s.function).collect();
        let callers = |s: &Settled| s.callers.iter().map(|caller| (s.function, *caller)).collect::<Vec<Nested>>();
        let nested = settled.iter().flat_map(callers).filter(|(_, caller)| names.contains(caller)).collect();
        let families = if names.len() > 1 { families(&settled, &names, traced) } else { BTreeMap::new() };
        for s in &settled {
            let Some(delay) = traced.get_mut(s.at).and_then(Option::as_mut) else { continue };
            let function = families.get(&(s.function, s.caller_among(&names))).copied().unwrap_or(s.function);
            delay.path.inner = inner(delay, s, function, &nested, model);
            let named = model.names.function(function).into_owned();
            match delay.path.steps.first_mut() {
                Some(source) if s.is_shown => source.function = Some(named),
                _ => delay.path.function = Some(named),
            }
        }
    }
}

/// If the stacks of one delay end above the source's function, the source's other delays supply it: the function in
/// which, by them, most of its time was spent.
fn supplied(traced: &[Option<Traced>]) -> HashMap<usize, NameId> {
    let mut known: BTreeMap<ChainId, BTreeMap<NameId, (Ns, Vec<NameId>)>> = BTreeMap::new();
    for Traced { chain, named, path } in traced.iter().flatten().filter(|delay| !delay.named.is_open) {
        let Some(function) = named.function else { continue };
        let (ns, callers) = known.entry(*chain).or_default().entry(function).or_default();
        *ns += path.excess_ns;
        callers.extend(&named.callers);
    }
    let supplied = |(at, delay): (usize, &Option<Traced>)| {
        let Traced { chain, named, .. } = delay.as_ref().filter(|delay| delay.named.is_open)?;
        let functions = known.get(chain).into_iter().flatten();
        let below = functions.filter(|(_, (_, callers))| named.function.is_none_or(|f| callers.contains(&f)));
        let below: Vec<(Ns, NameId)> = below.map(|(function, (ns, _))| (*ns, *function)).collect();
        let all: Ns = below.iter().map(|(ns, _)| ns).sum();
        let (ns, most) = below.into_iter().max_by_key(|(ns, function)| (*ns, Reverse(*function)))?;
        (ns * 2 >= all).then_some((at, most))
    };
    traced.iter().enumerate().filter_map(supplied).collect()
}

/// The name of each family of functions. A function and its caller are one family if the delays that the caller names
/// were in the function for at least half of their time, or if the delays that the function names were at the times
/// of such delays: then both are parts of one activity.
fn families(settled: &[Settled], names: &BTreeSet<NameId>, traced: &[Option<Traced>]) -> BTreeMap<Below, NameId> {
    let mut members: BTreeMap<Below, Vec<&Settled>> = BTreeMap::new();
    for s in settled {
        members.entry((s.function, s.caller_among(names))).or_default().push(s);
    }
    let mut above: BTreeMap<Below, Below> = BTreeMap::new();
    for (below, inside) in &members {
        let Some(caller) = below.1 else { continue };
        let outer = || members.range((caller, None)..).take_while(|((function, _), _)| *function == caller);
        let outside: Vec<&Settled> = outer().flat_map(|(_, all)| all).copied().collect();
        if spends_half(&outside, below.0, traced) || overlaps(inside, &outside, traced) {
            outer().for_each(|(outer, _)| join(&mut above, *below, *outer));
        }
    }
    let mut families: BTreeMap<Below, Vec<Below>> = BTreeMap::new();
    for below in members.keys() {
        families.entry(top(&above, *below)).or_default().push(*below);
    }
    let mut chosen = BTreeMap::new();
    for family in families.into_values().filter(|family| family.len() > 1) {
        let all: Vec<&Settled> = family.iter().filter_map(|below| members.get(below)).flatten().copied().collect();
        let name = covering(&all, traced);
        chosen.extend(family.iter().filter_map(|below| Some((*below, name?))));
    }
    chosen
}

/// The family of functions to which one belongs.
fn top(above: &BTreeMap<Below, Below>, mut below: Below) -> Below {
    while let Some(next) = above.get(&below) {
        below = *next;
    }
    below
}

/// Make two families one.
fn join(above: &mut BTreeMap<Below, Below>, a: Below, b: Below) {
    let (a, b) = (top(above, a), top(above, b));
    if a != b {
        above.insert(a, b);
    }
}

/// The delay of a function that is settled.
fn delay_of<'a>(settled: &Settled, traced: &'a [Option<Traced>]) -> Option<&'a Traced> {
    traced.get(settled.at)?.as_ref()
}

/// Some delays were in a function for at least half of their time, as far as their own stacks show it.
fn spends_half(all: &[&Settled], function: NameId, traced: &[Option<Traced>]) -> bool {
    let shown = all.iter().filter(|s| s.is_shown).filter_map(|s| delay_of(s, traced));
    let (inside, all) = shown.fold((0.0, 0.0), |(inside, all), delay| {
        let ns = delay.path.excess_ns as f64;
        (inside + ns * delay.named.share_in(function), all + ns)
    });
    all > 0.0 && inside * 2.0 >= all
}

/// Some delays were, for at least half of their time, at the times of others of the same thread.
fn overlaps(inside: &[&Settled], outside: &[&Settled], traced: &[Option<Traced>]) -> bool {
    let span = |s: &&Settled| {
        let source = delay_of(s, traced)?.path.steps.first()?;
        Some((source.stream, source.span))
    };
    let mut outer: Vec<(u32, Span)> = outside.iter().filter_map(span).collect();
    outer.sort_by_key(|(stream, span)| (*stream, span.start));
    // No two of these overlap.
    outer.dedup_by(|(stream, span), (before, last)| {
        let is_joined = stream == before && span.start <= last.end;
        if is_joined {
            last.end = last.end.max(span.end);
        }
        is_joined
    });
    let (mut common, mut all) = (0, 0);
    for (stream, span) in inside.iter().filter_map(span) {
        let first = outer.partition_point(|(s, other)| (*s, other.end) <= (stream, span.start));
        let meets = |(s, other): &&(u32, Span)| *s == stream && other.start < span.end;
        let parts = outer.iter().skip(first).take_while(meets);
        common += parts.map(|(_, other)| other.end.min(span.end) - other.start.max(span.start)).sum::<Ns>();
        all += span.len();
    }
    all > 0 && common * 2 >= all
}

/// Of the functions that name some delays, the deepest that has 80 % of their time, else the outermost.
fn covering(all: &[&Settled], traced: &[Option<Traced>]) -> Option<NameId> {
    let mut depths: BTreeMap<NameId, usize> = BTreeMap::new();
    for s in all {
        let depth = depths.entry(s.function).or_default();
        *depth = s.callers.len().max(*depth);
    }
    let (mut sums, mut whole): (BTreeMap<NameId, f64>, f64) = (BTreeMap::new(), 0.0);
    for (s, delay) in all.iter().filter_map(|s| Some((s, delay_of(s, traced)?))) {
        let ns = delay.path.excess_ns as f64;
        whole += ns;
        let shares: Vec<(NameId, f64)> = match s.is_shown {
            true => delay.named.within.iter().map(|(name, _)| (*name, delay.named.share_in(*name))).collect(),
            // What other delays supply holds all of the time.
            false => {
                s.callers.iter().chain([&s.function]).collect::<BTreeSet<_>>().into_iter().map(|n| (*n, 1.0)).collect()
            }
        };
        for (function, share) in shares.into_iter().filter(|(function, _)| depths.contains_key(function)) {
            *sums.entry(function).or_default() += ns * share;
        }
    }
    let has_most = |function: &NameId| sums.get(function).is_some_and(|ns| ns * 100.0 >= whole * 80.0);
    let depth = |function: &NameId| (depths.get(function).copied(), Reverse(*function));
    let deepest = depths.keys().filter(|function| has_most(function)).max_by_key(|function| depth(function));
    deepest.or_else(|| depths.keys().min_by_key(|function| depth(function))).copied()
}

/// The functions below the one that names a delay, among those that name delays of its activity, with their time.
fn inner(
    delay: &Traced,
    settled: &Settled,
    function: NameId,
    nested: &BTreeSet<Nested>,
    model: &Model,
) -> Vec<InnerFunction> {
    if !settled.is_shown {
        return Vec::new();
    }
    let calls = settled.callers.iter().chain([&settled.function]);
    let outside: Vec<NameId> = calls.take_while(|name| **name != function).copied().collect();
    // One that a function calls is below it unless it is above it as well, in a recursion.
    let is_below =
        |name: &&NameId| **name != function && nested.contains(&(**name, function)) && !outside.contains(name);
    let part = |name: &NameId| InnerFunction {
        function: model.names.function(*name).into_owned(),
        ns: (delay.path.excess_ns as f64 * delay.named.share_in(*name)).round() as Ns,
    };
    delay.named.within.iter().map(|(name, _)| name).filter(is_below).map(part).filter(|inner| inner.ns > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Timestamp;
    use crate::model::context::{Frame, FrameKind};
    use crate::model::propagation::PropagationStep;
    use crate::model::wait_kind::WaitKind;

    const MS: Ns = 1_000_000;

    /// When a delay begins in ms, its path of functions with the percentage spent in each, and which of them names it.
    type MadeUp<'a> = (Ns, &'a [(&'a str, u64)], &'a str);

    /// The names after [`settle`], with their inner functions, of delays of 10 ms that one thread caused.
    fn settled(delays: &[MadeUp<'_>]) -> Vec<(String, Vec<(String, Ns)>)> {
        let mut model = Model::default();
        let [server, journal] = ["server", "journal"].map(|name| model.names.intern(name));
        let own = model.contexts.child(None, Frame { kind: FrameKind::Process, name: server });
        let thread = Frame { kind: FrameKind::Thread(WaitKind::Thread), name: journal };
        let held = model.contexts.child(Some(own), thread);
        let chains = WaitChains::new(&model.contexts);
        let mut traced = Vec::new();
        for (begin, functions, function) in delays {
            let functions: Vec<(NameId, u64)> =
                functions.iter().map(|(name, percent)| (model.names.intern(name), *percent)).collect();
            let named = model.names.intern(function);
            let mut within = functions.clone();
            within.sort_unstable();
            let callers = functions.iter().map(|(name, _)| *name).take_while(|name| *name != named).collect();
            let activity = Activity { function: Some(named), callers, within, total: 100, ..Activity::default() };
            let span = Span::new(Timestamp::new(begin * MS), Timestamp::new((begin + 10) * MS));
            let step = PropagationStep {
                anomaly: 0,
                stream: 0,
                what: "running".into(),
                kind: EventKind::Running,
                span,
                local: span,
                function: Some((*function).to_owned()),
                excess_ns: 10 * MS,
                reference_ns: 0,
                carrier: None,
                noise: None,
                route: None,
            };
            let path = PropagationPath {
                source: 0,
                execution: Some(0),
                origin: String::new(),
                function: None,
                context: None,
                inner: Vec::new(),
                excess_ns: 10 * MS,
                affected_ns: 10 * MS,
                messages: 1,
                steps: vec![step],
            };
            traced.push(Some(Traced { chain: chains.of(held), named: activity, path }));
        }
        settle(&mut traced, &chains, &model);
        let of = |delay: Traced| {
            let inner = delay.path.inner.iter().map(|inner| (inner.function.clone(), inner.ns / MS)).collect();
            (delay.path.function_of_source().unwrap_or_default(), inner)
        };
        traced.into_iter().flatten().map(of).collect()
    }

    fn names(delays: &[MadeUp<'_>]) -> Vec<String> {
        settled(delays).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn settle_joins_a_function_with_the_caller_that_spends_half_its_time_in_it() {
        let outer: &[(&str, u64)] = &[("main", 100), ("flush", 100), ("checksum", 60)];
        let inner: &[(&str, u64)] = &[("main", 100), ("flush", 100), ("checksum", 100)];
        let found = settled(&[(0, outer, "flush"), (20, outer, "flush"), (40, inner, "checksum")]);
        assert_eq!(found[0], ("flush".to_owned(), vec![("checksum".to_owned(), 6)]));
        assert_eq!(found[2], ("flush".to_owned(), vec![("checksum".to_owned(), 10)]));
        // Most of the time was in the inner one.
        let found = names(&[(0, outer, "flush"), (20, inner, "checksum"), (40, inner, "checksum")]);
        assert_eq!(found, ["checksum"; 3]);
    }

    #[test]
    fn settle_keeps_functions_apart_that_are_different_work() {
        let outer: &[(&str, u64)] = &[("main", 100), ("flush", 100), ("checksum", 20)];
        let inner: &[(&str, u64)] = &[("main", 100), ("flush", 100), ("checksum", 100)];
        let found = settled(&[(0, outer, "flush"), (20, inner, "checksum")]);
        assert_eq!(found[0], ("flush".to_owned(), vec![("checksum".to_owned(), 2)]), "the overlap is said");
        assert_eq!(found[1], ("checksum".to_owned(), Vec::new()));
        // The same function with another caller is other work.
        let other: &[(&str, u64)] = &[("main", 100), ("load", 100), ("checksum", 100)];
        assert_eq!(names(&[(0, outer, "flush"), (5, other, "checksum")]), ["flush", "checksum"]);
        // What a thread did beside it is not below it.
        let both: &[(&str, u64)] = &[("main", 100), ("write", 60), ("read", 40)];
        let found = settled(&[(0, both, "write"), (20, &[("main", 100), ("read", 100)], "read")]);
        assert_eq!(found[0], ("write".to_owned(), Vec::new()));
    }

    #[test]
    fn settle_joins_functions_that_delayed_at_one_time() {
        let outer: &[(&str, u64)] = &[("main", 100), ("flush", 100), ("checksum", 20)];
        let inner: &[(&str, u64)] = &[("main", 100), ("flush", 100), ("checksum", 100)];
        assert_eq!(names(&[(0, outer, "flush"), (4, inner, "checksum")]), ["flush", "flush"]);
    }

    #[test]
    fn settle_ends_where_functions_call_each_other() {
        let one: &[(&str, u64)] = &[("a", 100), ("b", 100)];
        let two: &[(&str, u64)] = &[("b", 100), ("a", 100)];
        let found = names(&[(0, one, "b"), (20, two, "a")]);
        assert_eq!(found[0], found[1]);
    }
}
