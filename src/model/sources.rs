//! The table of root causes: repeated delays by one thread in one function, or by a rank in one phase, are one row.
//!
//! In: the paths and anomalies found. Out: [`Source`]s, those that caused most first. Every delay is in one row: paths of one
//! source count it once. Waits for work come last and count for nothing. Cost: a sort of the paths.

use super::pattern::Anomalies;
use super::propagation::{Noise, Path, Step};
use crate::analysis::patterns::routes::Change;
use crate::base::time::{Ns, Span};
use crate::event::operation::{EventKind, Via};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// One time that a source caused a delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// Position of its anomaly: of a source with victims the one of its first path.
    pub anomaly: u32,
    /// Position of its first path; `None` for a wait for work, which is on no path.
    pub path: Option<u32>,
    /// Its paths, which are adjacent.
    pub paths: u32,
    /// When.
    pub span: Span,
    /// The delay that it caused.
    pub affected_ns: Ns,
    /// Longer than usual by this.
    pub excess_ns: Ns,
    /// Times its reference; of what usually does not happen, times a microsecond.
    pub factor: f64,
    /// It usually does not happen: there is nothing of which it is so many times.
    pub is_new: bool,
    /// Executions that it delayed.
    pub executions: Vec<u32>,
}

impl Occurrence {
    /// Times its reference, where it has one.
    pub fn times(&self) -> Option<f64> {
        (!self.is_new).then_some(self.factor)
    }
}

/// A row: the same thread, function, carriers and victim's function; under MPI the same rank and phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Positions of the streams that it was, ascending.
    pub streams: Vec<u32>,
    /// Name of the thread; with `*` where threads of a pool differ by their number only. `rank 4` under MPI. Of an interrupt
    /// its own: `softirq NET_RX`.
    pub name: String,
    /// Name of its process; empty under MPI.
    pub process: String,
    /// Its call, or what it did.
    pub what: String,
    /// Its activity.
    pub kind: EventKind,
    /// The function, where stacks were recorded.
    pub function: Option<String>,
    /// Carriers of the delay, from the source to the last victim.
    pub via: Vec<Via>,
    /// Name of the last victim and its function, where it is another.
    pub victim: Option<(String, Option<String>)>,
    /// Noise of the system.
    pub noise: Option<Noise>,
    /// The difference between the calls of its executions (or iterations) and the others'; of all its occurrences.
    pub route: Option<Change>,
    /// Waits for work: neither source nor victim.
    pub idle: bool,
    /// It delayed executions.
    pub in_executions: bool,
    /// All the delay that it caused.
    pub affected_ns: Ns,
    /// Longer than usual by this, all occurrences together.
    pub excess_ns: Ns,
    /// The largest of its occurrences.
    pub factor: f64,
    /// Executions that it delayed.
    pub executions: u64,
    /// In order of time.
    pub occurrences: Vec<Occurrence>,
}

impl Source {
    /// The time from its first occurrence to its last.
    pub fn span(&self) -> Span {
        let start = self.occurrences.iter().map(|o| o.span.start).min().unwrap_or(0);
        let end = self.occurrences.iter().map(|o| o.span.end).max().unwrap_or(start);
        Span::new(start, end)
    }
}

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
    via: Vec<Via>,
    victim: Option<(String, Option<String>)>,
    noise: bool,
}

/// All rows.
pub(super) fn of(found: &Anomalies) -> Vec<Source> {
    let mut rows: BTreeMap<Key, Vec<(u32, Occurrence)>> = BTreeMap::new();
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
        let (name, process) = found.named(anomaly.stream);
        let (what, kind) = (worst.what.clone(), worst.kind);
        let key = Key { idle: true, name, process, what, kind, ..Key::default() };
        let occurrence = Occurrence {
            anomaly: at,
            path: None,
            paths: 0,
            span: worst.local,
            affected_ns: 0,
            excess_ns: worst.excess_ns,
            factor: factor(worst.excess_ns, worst.reference_ns),
            is_new: worst.reference_ns < SMALLEST,
            executions: Vec::new(),
        };
        rows.entry(key).or_default().push((anomaly.stream, occurrence));
    }
    let mut sources: Vec<Source> = rows.into_iter().map(|(key, all)| row(found, key, all)).collect();
    let rank = |s: &Source| (s.idle, found.examined.executions.is_some() && !s.in_executions);
    sources.sort_by_key(|s| (rank(s), Reverse(s.affected_ns), Reverse(s.excess_ns), s.streams.clone(), s.span().start));
    sources
}

/// References below this are none.
const SMALLEST: Ns = 1_000;

/// Times the reference.
fn factor(excess: Ns, reference: Ns) -> f64 {
    (excess + reference) as f64 / reference.max(SMALLEST) as f64
}

/// The paths of one source as an occurrence, and its row; `first` is the position of the first path.
fn of_paths(found: &Anomalies, paths: &[Path], first: u32) -> Option<(Key, u32, Occurrence)> {
    let path = paths.first()?;
    let (source, last): (&Step, &Step) = (path.steps.first()?, path.steps.last()?);
    let is_rank = found.streams.get(source.stream as usize).is_some_and(|s| s.rank.is_some());
    let (mut name, process) = found.named(source.stream);
    if !path.origin.is_empty() {
        name.clone_from(&path.origin);
    }
    let is_interrupt = source.kind == EventKind::Interrupt;
    let process = if is_interrupt { String::new() } else { process };
    if is_interrupt {
        // A handler is no doing of the thread that it interrupts.
        name.clone_from(&source.what);
    }
    let victim = (path.steps.len() > 1 && !is_rank && (last.stream != source.stream || is_interrupt)).then(|| {
        // A thread loses its CPU in whatever function it runs.
        let function = last.function.clone().filter(|_| last.kind != EventKind::Runnable && !is_interrupt);
        (found.named(last.stream).0, function)
    });
    let key = Key {
        idle: false,
        in_executions: path.execution.is_some(),
        name,
        process,
        what: source.what.clone(),
        kind: source.kind,
        function: path.function.clone().or_else(|| source.function.clone()),
        via: if is_rank { Vec::new() } else { path.steps.iter().filter_map(|s| s.via).collect() },
        victim,
        noise: source.noise.is_some(),
    };
    let executions: BTreeSet<u32> = paths.iter().filter_map(|p| p.execution).collect();
    let occurrence = Occurrence {
        anomaly: source.anomaly,
        path: Some(first),
        paths: paths.len() as u32,
        span: source.span,
        affected_ns: path.affected_ns,
        excess_ns: path.excess_ns,
        factor: factor(source.excess_ns, source.reference_ns),
        is_new: source.reference_ns < SMALLEST,
        executions: executions.into_iter().collect(),
    };
    Some((key, source.stream, occurrence))
}

fn row(found: &Anomalies, key: Key, all: Vec<(u32, Occurrence)>) -> Source {
    let streams: BTreeSet<u32> = all.iter().map(|(stream, _)| *stream).collect();
    let mut occurrences: Vec<Occurrence> = all.into_iter().map(|(_, o)| o).collect();
    occurrences.sort_by_key(|o| (o.span.start, o.span.end, o.anomaly));
    let executions: BTreeSet<u32> = occurrences.iter().flat_map(|o| &o.executions).copied().collect();
    let step = |o: &Occurrence| found.paths.get(o.path? as usize)?.steps.first();
    let noise = occurrences.iter().find_map(|o| step(o)?.noise);
    let route = occurrences.first().and_then(|o| step(o)?.route);
    let route = route.filter(|_| occurrences.iter().all(|o| step(o).is_some_and(|s| s.route == route)));
    Source {
        streams: streams.into_iter().collect(),
        name: key.name,
        process: key.process,
        what: key.what,
        kind: key.kind,
        function: key.function,
        via: key.via,
        victim: key.victim,
        noise,
        route,
        idle: key.idle,
        in_executions: key.in_executions,
        affected_ns: occurrences.iter().map(|o| o.affected_ns).sum(),
        excess_ns: occurrences.iter().map(|o| o.excess_ns).sum(),
        factor: occurrences.iter().map(|o| o.factor).fold(0.0, f64::max),
        executions: executions.len() as u64,
        occurrences,
    }
}

impl Source {
    /// The largest of its occurrences' times their references; `None` where none has one.
    pub fn times(&self) -> Option<f64> {
        self.occurrences.iter().filter_map(Occurrence::times).reduce(f64::max)
    }
}

impl Anomalies {
    /// The part of all executions' time that a source delayed them by; `None` where there are none.
    pub fn share(&self, source: &Source) -> Option<f64> {
        let all = self.examined.executions_ns;
        (all > 0).then(|| source.affected_ns as f64 / all as f64)
    }

    /// Names of a stream's thread and process; of a rank `rank 4` and nothing.
    fn named(&self, stream: u32) -> (String, String) {
        let Some(stream) = self.streams.get(stream as usize) else { return Default::default() };
        match (stream.rank, &stream.thread) {
            (Some(_), _) if !stream.label.is_empty() => (stream.label.clone(), String::new()),
            (Some(rank), _) => (format!("rank {rank}"), String::new()),
            (None, Some(thread)) => (thread.name.clone(), thread.process.clone()),
            (None, None) => (stream.name.clone(), String::new()),
        }
    }
}
