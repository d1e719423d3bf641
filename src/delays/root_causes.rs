//! The table of root causes: repeated delays by one thread in one function, or by a rank in one phase, are one row.
//!
//! In: the paths and anomalies found. Out: [`RootCause`]s, those that caused most first. Every delay is in one row:
//! paths of one source count it once. Waits for work come last and are not counted. Cost: a sort of the paths.

use crate::base::time::Ns;
use crate::model::anomalies::{Anomalies, StreamName};
use crate::model::carrier::Carrier;
use crate::model::event_kind::EventKind;
use crate::model::propagation::{InnerFunction, PropagationPath, PropagationStep};
use crate::model::root_cause::{CausedDelay, RootCause, Victim};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Key: occurrences with the same key are one row.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    idle: bool,
    in_executions: bool,
    name: String,
    process: String,
    what: String,
    kind: EventKind,
    function: Option<String>,
    carriers: Vec<Carrier>,
    victim: Option<Victim>,
    noise: bool,
}

/// All rows.
pub(super) fn of(found: &Anomalies) -> Vec<RootCause> {
    let mut rows: BTreeMap<Key, Vec<(u32, CausedDelay)>> = BTreeMap::new();
    let mut first = 0;
    for paths in found.paths.chunk_by(|a, b| a.source == b.source) {
        if let Some((key, stream, occurrence)) = of_paths(found, paths, first) {
            rows.entry(key).or_default().push((stream, occurrence));
        }
        first += paths.len() as u32;
    }
    for (at, anomaly) in (0_u32..).zip(&found.anomalies).filter(|(_, a)| a.idle) {
        let worst = anomaly.responsible.iter().max_by_key(|r| (r.excess_ns, Reverse(r.local.start)));
        let Some(worst) = worst else { continue };
        let StreamName { name, process } = found.named(anomaly.stream);
        let (what, kind) = (worst.what.clone(), worst.kind);
        let key = Key { idle: true, name, process, what, kind, ..Key::default() };
        let occurrence = CausedDelay {
            anomaly: at,
            path: None,
            paths: 0,
            span: worst.local,
            affected_ns: 0,
            inner: Vec::new(),
            excess_ns: worst.excess_ns,
            factor: factor(worst.excess_ns, worst.reference_ns),
            is_new: worst.reference_ns < SMALLEST,
            executions: Vec::new(),
        };
        rows.entry(key).or_default().push((anomaly.stream, occurrence));
    }
    let mut sources: Vec<RootCause> = rows.into_iter().map(|(key, all)| row(found, key, all)).collect();
    let rank = |s: &RootCause| (s.idle, found.examined.executions.is_some() && !s.in_executions);
    sources.sort_by_key(|s| (rank(s), Reverse(s.affected_ns), Reverse(s.excess_ns), s.streams.clone(), s.span().start));
    sources
}

/// A reference below this counts as none.
const SMALLEST: Ns = 1_000;

/// Times the reference.
fn factor(excess: Ns, reference: Ns) -> f64 {
    (excess + reference) as f64 / reference.max(SMALLEST) as f64
}

/// The paths of one source as an occurrence, and its row; `first` is the position of the first path.
fn of_paths(found: &Anomalies, paths: &[PropagationPath], first: u32) -> Option<(Key, u32, CausedDelay)> {
    let path = paths.first()?;
    let (source, last): (&PropagationStep, &PropagationStep) = (path.steps.first()?, path.steps.last()?);
    let is_rank = found.streams.get(source.stream as usize).is_some_and(|s| s.rank.is_some());
    let StreamName { mut name, process } = found.named(source.stream);
    if !path.origin.is_empty() {
        name.clone_from(&path.origin);
    }
    let is_interrupt = source.kind == EventKind::Interrupt;
    let process = if is_interrupt { String::new() } else { process };
    if is_interrupt {
        // A handler is no activity of the thread that it interrupts.
        name.clone_from(&source.what);
    }
    let victim = (path.steps.len() > 1 && !is_rank && (last.stream != source.stream || is_interrupt)).then(|| {
        // The function in which a thread loses its CPU is not the reason.
        let function = last.function.clone().filter(|_| last.kind != EventKind::Runnable && !is_interrupt);
        Victim { name: found.named(last.stream).name, function }
    });
    let key = Key {
        idle: false,
        in_executions: path.execution.is_some(),
        name,
        process,
        what: source.what.clone(),
        kind: source.kind,
        function: path.function_of_source(),
        carriers: if is_rank { Vec::new() } else { path.steps.iter().filter_map(|s| s.carrier).collect() },
        victim,
        noise: source.noise.is_some(),
    };
    let executions: BTreeSet<u32> = paths.iter().filter_map(|p| p.execution).collect();
    let occurrence = CausedDelay {
        anomaly: source.anomaly,
        path: Some(first),
        paths: paths.len() as u32,
        span: source.span,
        affected_ns: path.affected_ns,
        inner: path.inner.clone(),
        excess_ns: path.excess_ns,
        factor: factor(source.excess_ns, source.reference_ns),
        is_new: source.reference_ns < SMALLEST,
        executions: executions.into_iter().collect(),
    };
    Some((key, source.stream, occurrence))
}

fn row(found: &Anomalies, key: Key, all: Vec<(u32, CausedDelay)>) -> RootCause {
    let streams: BTreeSet<u32> = all.iter().map(|(stream, _)| *stream).collect();
    let mut occurrences: Vec<CausedDelay> = all.into_iter().map(|(_, o)| o).collect();
    occurrences.sort_by_key(|o| (o.span.start, o.span.end, o.anomaly));
    let executions: BTreeSet<u32> = occurrences.iter().flat_map(|o| &o.executions).copied().collect();
    let step = |o: &CausedDelay| found.paths.get(o.path? as usize)?.steps.first();
    let noise = occurrences.iter().find_map(|o| step(o)?.noise);
    let route = occurrences.first().and_then(|o| step(o)?.route);
    let route = route.filter(|_| occurrences.iter().all(|o| step(o).is_some_and(|s| s.route == route)));
    RootCause {
        streams: streams.into_iter().collect(),
        name: key.name,
        process: key.process,
        what: key.what,
        kind: key.kind,
        function: key.function,
        carriers: key.carriers,
        victim: key.victim,
        noise,
        route,
        idle: key.idle,
        in_executions: key.in_executions,
        inner: InnerFunction::sums(occurrences.iter().flat_map(|o| &o.inner)),
        affected_ns: occurrences.iter().map(|o| o.affected_ns).sum(),
        excess_ns: occurrences.iter().map(|o| o.excess_ns).sum(),
        factor: occurrences.iter().map(|o| o.factor).fold(0.0, f64::max),
        executions: executions.len() as u64,
        occurrences,
    }
}
