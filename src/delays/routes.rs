//! Executions (or, if there are none, iterations of loops) whose calls differ from the others': anomalies whose
//! responsible event is the differing step, with its cost.
//!
//! In: differences in routes (`patterns/routes`), and the anomalies and paths of delays. Out: the same with
//! the differences among them. A step that is a delay already is only marked; any other difference is a path of one
//! step, whose cost counts where no delay covers its time. Cost: linear in the operations of the iterations and the
//! steps of all paths. ALGORITHMS.md 9.8.

use super::mined_executions::MinedExecutions;
use super::wait_links::ChainPart;
use crate::analysis::patterns::routes::{Difference, RouteOccurrence};
use crate::analysis::patterns::{PatternAnalysis, routes};
use crate::base::ctx::Cancel;
use crate::base::names::NameId;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::operation::{Operation, OperationPlace, Operations};
use crate::explain::idle::IdleWaits;
use crate::model::anomalies::{Anomaly, Responsible};
use crate::model::event_kind::EventKind;
use crate::model::propagation::{PropagationPath, PropagationStep, RouteChange};
use crate::model::settings::Settings;
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Operations that are named one by one.
const NAMED: usize = 3;

/// A difference, ready to be reported.
#[derive(Clone, Debug)]
pub(super) struct RouteDelay {
    /// The execution, where there are some.
    execution: Option<ComparedExecution>,
    /// All of the occurrence.
    span: Span,
    /// Name of the thread, as contexts would show it; empty for its own.
    origin: String,
    /// How long it lasted, times the usual.
    factor: f64,
    /// The differing step; its anomaly is not known yet.
    step: PropagationStep,
}

/// An execution among those that are compared with each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComparedExecution {
    execution: u32,
    population: u32,
}

/// Those of executions, on their own threads. If events were lost during an execution its route is unknown.
pub(super) fn of_executions(
    mined: &PatternAnalysis,
    served: &MinedExecutions,
    settings: &Settings,
    cancel: &Cancel,
) -> Vec<RouteDelay> {
    let (operations, executions) = (&mined.operations, &served.model.executions);
    let mut numbers = Vec::new();
    let mut occurrences = Vec::new();
    for (at, population) in (0_u32..).zip(&served.reference.population) {
        let i = at as usize;
        let is_lossy = served.contributions.lossy.get(i).copied().unwrap_or(false);
        let stream = served.contributions.own.get(i).and_then(|own| served.stream_of(*own));
        let all = stream.and_then(|s| operations.sequences.get(s as usize)).map(|s| &s.operations);
        let (Some(stream), Some(all), false) = (stream, all, is_lossy) else { continue };
        if i >= executions.len() {
            continue;
        }
        let Span { start, end } = executions.span(i);
        let position = |t: Timestamp| all.partition_point(|o| o.start < t) as u32;
        let operations = position(start)..position(end).max(position(start));
        occurrences.push(RouteOccurrence { population: *population, stream, operations });
        numbers.push(ComparedExecution { execution: at, population: *population });
    }
    let found = routes::find(operations, &occurrences, settings.q, settings.s, cancel);
    let delay = |difference: &Difference| {
        let at = difference.occurrence as usize;
        let compared = *numbers.get(at)?;
        let ComparedExecution { execution, population } = compared;
        let span = ((execution as usize) < executions.len()).then(|| executions.span(execution as usize))?;
        let root = served.reference.root(execution)?;
        let usual = served.reference.bounds(population, root, ChainPart::Whole, settings).max_ref_ns;
        Some(RouteDelay {
            execution: Some(compared),
            span,
            origin: served.contributions.name(&served.model, execution).to_owned(),
            factor: span.len() as f64 / usual.max(1) as f64,
            step: step(operations, occurrences.get(at)?, span, difference),
        })
    };
    found.iter().filter_map(delay).collect()
}

/// Those of iterations of outermost loops, in kernel recordings without executions. An iteration begins after the wait
/// for work or, where no wait is known, after an operation that each iteration makes once. Iterations of threads of
/// one name and process are compared with each other.
pub(super) fn of_iterations(
    mined: &PatternAnalysis,
    idle: &IdleWaits,
    settings: &Settings,
    cancel: &Cancel,
) -> Vec<RouteDelay> {
    let operations = &mined.operations;
    let mut populations: HashMap<(&str, &str, NameId), u32> = HashMap::default();
    let mut occurrences: Vec<RouteOccurrence> = Vec::new();
    for loops in mined.iterations() {
        let Some(sequence) = operations.sequences.get(loops.stream as usize) else { continue };
        let idle = idle.of(loops.stream).to_vec();
        let once = || loops.spans.first().and_then(|span| once_in(&sequence.operations, *span));
        let call = match idle.first() {
            Some(at) => sequence.operations.get(*at as usize).map(|o| o.symbol),
            None => once(),
        };
        let (Some(thread), Some(call)) = (&sequence.thread, call) else { continue };
        let next = populations.len() as u32;
        let population = *populations.entry((&thread.process, &thread.name, call)).or_insert(next);
        let named = (0_u32..).zip(&sequence.operations).filter(|(_, o)| o.symbol == call).map(|(at, _)| at);
        let begins: Vec<u32> = if idle.is_empty() { named.collect() } else { idle };
        let occurrence =
            |pair: &[u32]| RouteOccurrence { population, stream: loops.stream, operations: pair[0] + 1..pair[1] };
        occurrences.extend(begins.windows(2).map(occurrence));
    }
    // From the end of the operation at which it begins to the beginning of the next one.
    let span = |occurrence: &RouteOccurrence| -> Option<Span> {
        let at = |operation: u32| operations.get(OperationPlace { stream: occurrence.stream, operation });
        Some(Span::new(at(occurrence.operations.start.checked_sub(1)?)?.end, at(occurrence.operations.end)?.start))
    };
    let mut lengths: BTreeMap<u32, Vec<Ns>> = BTreeMap::new();
    for occurrence in &occurrences {
        lengths.entry(occurrence.population).or_default().extend(span(occurrence).map(|s| s.len()));
    }
    let middle = |all: &mut Vec<Ns>| {
        let middle = all.len().saturating_sub(1) / 2;
        if all.is_empty() { 0 } else { *all.select_nth_unstable(middle).1 }
    };
    let usual: BTreeMap<u32, Ns> = lengths.iter_mut().map(|(population, all)| (*population, middle(all))).collect();
    let delay = |difference: &Difference| {
        let occurrence = occurrences.get(difference.occurrence as usize)?;
        let span = span(occurrence)?;
        let usual = usual.get(&occurrence.population).copied().unwrap_or(0);
        let factor = span.len() as f64 / usual.max(1) as f64;
        let (origin, step) = (String::new(), step(operations, occurrence, span, difference));
        Some(RouteDelay { execution: None, span, origin, factor, step })
    };
    let found = routes::find(operations, &occurrences, settings.q, settings.s, cancel);
    found.iter().filter_map(delay).collect()
}

/// The first operation of a span that is made once in it.
fn once_in(operations: &[Operation], span: Span) -> Option<NameId> {
    let first = operations.partition_point(|o| o.start < span.start);
    let inside = || operations.iter().skip(first).take_while(|o| o.start < span.end).map(|o| o.symbol);
    let mut numbers: HashMap<NameId, u32> = HashMap::default();
    inside().for_each(|name| *numbers.entry(name).or_default() += 1);
    inside().find(|name| numbers.get(name) == Some(&1))
}

/// The differing step of an iteration. Kernel recordings have one clock.
fn step(
    operations: &Operations,
    occurrence: &RouteOccurrence,
    whole: Span,
    difference: &Difference,
) -> PropagationStep {
    let (stream, range) = (occurrence.stream, &difference.operations);
    let all = operations.sequences.get(stream as usize).map_or(&[][..], |s| &s.operations);
    let inside = all.get(range.start as usize..range.end as usize).unwrap_or(&[]);
    let beside =
        |at: Option<u32>| at.filter(|at| occurrence.operations.contains(at)).and_then(|at| all.get(at as usize));
    let gap = || {
        let start = beside(range.start.checked_sub(1)).map_or(whole.start, |o| o.end);
        Span::new(start, beside(Some(range.start)).map_or(whole.end, |o| o.start).max(start))
    };
    let span = routes::span(operations, stream, range).unwrap_or_else(gap);
    PropagationStep {
        anomaly: 0,
        stream,
        what: what(operations, inside, difference),
        // Waits do not change a route.
        kind: if inside.is_empty() { EventKind::Gap } else { EventKind::Operation },
        span,
        local: span,
        function: operations.function(stream, span).map(|name| operations.names.function(name).into_owned()),
        excess_ns: difference.excess,
        reference_ns: difference.reference,
        carrier: None,
        noise: None,
        route: Some(difference.change),
    }
}

/// The operations that differ, in words.
fn what(operations: &Operations, inside: &[Operation], difference: &Difference) -> String {
    let text = |names: &[NameId]| {
        let named: Vec<&str> = names.iter().take(NAMED).map(|name| operations.names.get(*name)).collect();
        named.join(", ") + if names.len() > NAMED { ", ..." } else { "" }
    };
    let made: Vec<NameId> = inside.iter().map(|o| o.symbol).collect();
    let without = |mut names: Vec<NameId>, others: &[NameId]| {
        for other in others {
            if let Some(at) = names.iter().position(|name| name == other) {
                names.remove(at);
            }
        }
        names
    };
    match difference.change {
        RouteChange::Additional => text(&without(made, &difference.usual)),
        RouteChange::Missing => text(&without(difference.usual.clone(), &made)),
        RouteChange::Instead | RouteChange::Order => format!("{} instead of {}", text(&made), text(&difference.usual)),
    }
}

/// The anomaly of a different route: that of an execution, or of an iteration by its stream and begin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AnomalyKey {
    Execution(u32),
    Iteration(u32, Timestamp),
}

/// Add differences to the anomalies: a step that is one is marked, the others become anomalies and paths of their own.
pub(super) fn add(differences: Vec<RouteDelay>, anomalies: &mut Vec<Anomaly>, paths: &mut Vec<PropagationPath>) {
    if differences.is_empty() {
        return;
    }
    let shown = KnownSteps::new(anomalies, paths);
    let mut known: BTreeMap<AnomalyKey, u32> = BTreeMap::new();
    for (at, anomaly) in (0_u32..).zip(&*anomalies).filter(|(_, a)| a.execution.is_some()) {
        known.extend(anomaly.execution.map(|execution| (AnomalyKey::Execution(execution), at)));
    }
    let mut source = paths.last().map_or(0, |p| p.source + 1);
    for RouteDelay { execution, span, origin, factor, mut step } in differences {
        let number = execution.map(|compared| compared.execution);
        let covering = shown.covering(number, &step, paths);
        if let Some((path, at)) = covering.same {
            mark(anomalies, paths, path, at, &step);
            continue;
        }
        let key = number.map_or(AnomalyKey::Iteration(step.stream, span.start), AnomalyKey::Execution);
        step.anomaly = *known.entry(key).or_insert_with(|| {
            anomalies.push(Anomaly {
                pattern: execution.map(|compared| compared.population),
                stream: step.stream,
                span,
                local: span,
                factor,
                excess_ns: 0,
                source: true,
                diffuse: false,
                idle: false,
                execution: number,
                responsible: Vec::new(),
            });
            anomalies.len() as u32 - 1
        });
        let cost = if covering.any { 0 } else { step.excess_ns.max(0) };
        if let Some(anomaly) = anomalies.get_mut(step.anomaly as usize) {
            anomaly.source = true;
            anomaly.excess_ns += if covering.any { 0 } else { step.excess_ns };
            anomaly.responsible.push(Responsible::of(&step));
            anomaly.responsible.sort_by_key(|r| (r.local.start, Reverse(r.excess_ns)));
        }
        paths.push(PropagationPath {
            source,
            execution: number,
            origin,
            function: None,
            context: None,
            inner: Vec::new(),
            excess_ns: step.excess_ns,
            // Only an execution is known to have waited for it.
            affected_ns: if number.is_some() { cost } else { 0 },
            messages: 0,
            steps: vec![step],
        });
        source += 1;
    }
    reorder(anomalies, paths);
}

/// A step is the differing one.
fn mark(anomalies: &mut [Anomaly], paths: &mut [PropagationPath], path: usize, at: usize, differing: &PropagationStep) {
    let Some(step) = paths.get_mut(path).and_then(|p| p.steps.get_mut(at)) else { return };
    step.route = differing.route;
    let Some(anomaly) = anomalies.get_mut(step.anomaly as usize) else { return };
    let same = anomaly.responsible.iter_mut().find(|r| r.local == step.local && r.excess_ns == step.excess_ns);
    if let Some(responsible) = same {
        responsible.route = differing.route;
    }
}

/// A path and the position of a step there.
type StepAt = (usize, usize);

/// An execution, where there are some, and a stream.
type Where = (Option<u32>, u32);

/// The steps of anomalies, by execution and stream.
struct KnownSteps(HashMap<Where, Vec<StepAt>>);

/// The part of it that covers a difference.
#[derive(Default)]
struct Covering {
    /// A step that is the difference itself.
    same: Option<StepAt>,
    /// Any step covers its time.
    any: bool,
}

impl KnownSteps {
    fn new(anomalies: &[Anomaly], paths: &[PropagationPath]) -> KnownSteps {
        let is_judged = |step: &PropagationStep| anomalies.get(step.anomaly as usize).is_some_and(|a| !a.idle);
        let mut steps: HashMap<Where, Vec<StepAt>> = HashMap::default();
        for (at, path) in paths.iter().enumerate() {
            for (position, step) in path.steps.iter().enumerate().filter(|(_, step)| is_judged(step)) {
                steps.entry((path.execution, step.stream)).or_default().push((at, position));
            }
        }
        KnownSteps(steps)
    }

    fn covering(&self, execution: Option<u32>, differing: &PropagationStep, paths: &[PropagationPath]) -> Covering {
        let mut covering = Covering::default();
        for (path, at) in self.0.get(&(execution, differing.stream)).into_iter().flatten() {
            let Some(step) = paths.get(*path).and_then(|p| p.steps.get(*at)) else { continue };
            let common = step.span.clip(differing.span).len();
            if differing.span.is_empty() || common * 2 < differing.span.len() {
                continue;
            }
            covering.any = true;
            // A step much longer than the difference is another delay, which encloses it.
            let alike = step.excess_ns <= 2 * differing.excess_ns && differing.excess_ns <= 2 * step.excess_ns;
            if alike && covering.same.is_none() {
                covering.same = Some((*path, *at));
            }
        }
        covering
    }
}

/// Put anomalies in order of their excess, idle ones last, and sources in order of what they cause.
fn reorder(anomalies: &mut Vec<Anomaly>, paths: &mut Vec<PropagationPath>) {
    let mut order: Vec<u32> = (0..anomalies.len() as u32).collect();
    let key = |at: &u32| anomalies.get(*at as usize).map(|a| (a.idle, Reverse(a.excess_ns), *at));
    order.sort_by_key(key);
    let mut numbers = vec![0_u32; order.len()];
    for (number, at) in (0..).zip(&order) {
        numbers[*at as usize] = number;
    }
    let mut old: Vec<Option<Anomaly>> = std::mem::take(anomalies).into_iter().map(Some).collect();
    anomalies.extend(order.iter().filter_map(|at| old.get_mut(*at as usize)?.take()));
    let mut of_source: Vec<Vec<PropagationPath>> = Vec::new();
    for path in paths.drain(..) {
        match of_source.last_mut().filter(|all| all.first().is_some_and(|first| first.source == path.source)) {
            Some(all) => all.push(path),
            None => of_source.push(vec![path]),
        }
    }
    of_source.sort_by_key(|all| Reverse(all.first().map(|p| p.affected_ns)));
    for (number, mut all) in (0..).zip(of_source) {
        for path in &mut all {
            path.source = number;
            path.steps.iter_mut().for_each(|step| step.anomaly = numbers[step.anomaly as usize]);
        }
        paths.extend(all);
    }
}
