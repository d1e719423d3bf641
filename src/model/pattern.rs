//! Frequent patterns, their abnormal occurrences, and how a delay spread: the whole answer of `whyslow anomalies`.
//!
//! It holds no reference to the trace. Times are on the common time line; `local` ones on the stream's own clock.

use super::Model;
use super::idle::IdleWaits;
use super::mining::Served;
use super::propagation::{self, Path, Step};
use super::routes;
use super::sources::{self, Source};
use super::strips::{self, Named};
use super::unexplained::{self, Unexplained};
use super::waiting::Waiting;
use crate::analysis::offsets::Clock;
use crate::analysis::patterns::blame::Blamed;
use crate::analysis::patterns::measure::{Limit, Settings, Verdict};
use crate::analysis::patterns::routes::Change;
use crate::analysis::patterns::table::{PatternId, Shape, Table};
use crate::analysis::patterns::{Lateness, Mined, Treatment};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::time::{Ns, Span};
use crate::event::operation::{EventKind, Operations, Place, Sequence, ThreadPlace};
use std::cmp::Reverse;

/// A stream and its clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// The label shown, if it is not the name: `rank 2`, `rank 2 thread 1`.
    pub label: String,
    /// MPI rank of its process, where it has one.
    pub rank: Option<u32>,
    /// The thread, where it is one of a kernel recording.
    pub thread: Option<ThreadPlace>,
    /// Common time = local time + this, at its first operation.
    pub offset_ns: Ns,
    /// How much faster the common clock runs, in parts per 10^9.
    pub drift_ppb: f64,
    /// How far the offset may be off; `None` where nothing ties this stream to the first.
    pub error_ns: Option<Ns>,
}

/// A pattern with its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// As people write it: `loop 250 x (MPI_Recv MPI_Send)`.
    pub name: String,
    /// Its parts; of a loop, its body's.
    pub symbols: Vec<String>,
    /// It is a loop.
    pub is_loop: bool,
    /// How often it occurs, on all streams.
    pub occurrences: u64,
    /// Selected, or why not.
    pub verdict: Verdict,
    /// The longest duration of the reference group.
    pub max_ref_ns: Ns,
    /// From this duration on an occurrence is an anomaly.
    pub limit_ns: Ns,
    /// The longest occurrence.
    pub longest_ns: Ns,
}

/// An event that took too long.
#[derive(Clone, Debug, PartialEq)]
pub struct Responsible {
    /// `MPI_Recv`, or `after MPI_Recv` for a gap.
    pub what: String,
    /// The event.
    pub kind: EventKind,
    /// When, on the stream's own clock.
    pub local: Span,
    /// Longer than in the reference by this.
    pub excess_ns: Ns,
    /// How long it takes in the reference.
    pub reference_ns: Ns,
    /// The place where the occurrence's calls differ from the others'.
    pub route: Option<Change>,
}

impl Responsible {
    /// A step of a path as what was too long in its anomaly.
    pub(super) fn of(step: &Step) -> Responsible {
        Responsible {
            what: step.what.clone(),
            kind: step.kind,
            local: step.local,
            excess_ns: step.excess_ns,
            reference_ns: step.reference_ns,
            route: step.route,
        }
    }
}

/// An occurrence that took too long.
#[derive(Clone, Debug, PartialEq)]
pub struct Anomaly {
    /// Position in [`Anomalies::patterns`]; `None` of an event that is late outside all of them.
    pub pattern: Option<u32>,
    /// Position in [`Anomalies::streams`].
    pub stream: u32,
    /// When.
    pub span: Span,
    /// The same on the stream's own clock.
    pub local: Span,
    /// Duration over the longest of the reference group.
    pub factor: f64,
    /// Longer than the reference occurrence by this.
    pub excess_ns: Ns,
    /// It is the first step of a path.
    pub source: bool,
    /// No single event is to blame.
    pub diffuse: bool,
    /// It waited for work, outside of all executions: neither source nor victim.
    pub idle: bool,
    /// The execution that it is, where executions are judged.
    pub execution: Option<u32>,
    /// The events that took too long, in order.
    pub responsible: Vec<Responsible>,
}

impl Anomaly {
    /// Its calls differ from the other occurrences, and it has no other anomaly.
    pub fn only_differs(&self) -> bool {
        !self.responsible.is_empty() && self.responsible.iter().all(|r| r.route.is_some())
    }
}

/// The columns of the paper's table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Events analysed: beginnings and ends of operations.
    pub events: u64,
    /// Patterns.
    pub patterns: u64,
    /// Patterns selected.
    pub selected: u64,
    /// Occurrences that took too long.
    pub anomalies: u64,
    /// Anomalies that spread.
    pub sources: u64,
    /// Messages on the longest path.
    pub longest_path: u64,
    /// Causes that would come after their effects: left out.
    pub violations: u64,
}

/// Everything about the patterns of a recording, for one choice of `q` and `s`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Anomalies {
    /// Part of the occurrences that is the reference.
    pub q: f64,
    /// Threshold: this many times the longest of the reference.
    pub s: f64,
    /// How limits were found.
    pub limit: Limit,
    /// The first operation, on the common time line: people count from there.
    pub origin: Ns,
    /// Figures.
    pub summary: Summary,
    /// Streams and clocks.
    pub streams: Vec<Stream>,
    /// All patterns, selected or not.
    pub patterns: Vec<Pattern>,
    /// Ordered by excess, largest first.
    pub anomalies: Vec<Anomaly>,
    /// Ordered by what they cause, most first.
    pub paths: Vec<Path>,
    /// Paths that were left out of `paths`.
    pub paths_left_out: u64,
    /// Waiting in totals, of an MPI run.
    pub waiting: Option<Waiting>,
    /// The sources of all paths, what one did again and again in one row, and waits for work behind them.
    pub sources: Vec<Source>,
    /// The ranks around each of the first sources over time, in an MPI run; by number of the source.
    pub around: Vec<Named>,
    /// Waits without a known cause: neither source nor victim of any path.
    pub unexplained: Vec<Unexplained>,
    /// Extent of the analysis.
    pub examined: Examined,
}

/// Extent of the analysis: reported where nothing was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Threads or ranks.
    pub streams: u64,
    /// Their operations.
    pub operations: u64,
    /// Executions, and of which task, in kernel recordings that have some.
    pub executions: Option<(String, u64)>,
    /// How long all of these took together.
    pub executions_ns: Ns,
    /// MPI ranks, not threads of a kernel recording.
    pub is_mpi: bool,
    /// Its metadata declare system calls: where no operation is known there may have been some, of unknown threads.
    pub declares_calls: bool,
}

impl Anomalies {
    /// Characterise what was mined under these settings. Fast enough to be called at each change of q or s.
    pub fn new(mined: &Mined, settings: &Settings, ctx: &Ctx) -> Result<Self, Cancelled> {
        Anomalies::of(mined, None, false, settings, ctx)
    }

    /// The same; where there are executions they come first, and what they did not wait for is listed behind. `lossy`: events
    /// were lost.
    pub(super) fn of(
        mined: &Mined,
        served: Option<&Served>,
        lossy: bool,
        settings: &Settings,
        ctx: &Ctx,
    ) -> Result<Self, Cancelled> {
        let idle = if served.is_none() { Some(IdleWaits::new(mined)) } else { None };
        let treat = |stream: u32, blamed: &Blamed| {
            let kind = mined.operations.kind_of(stream, blamed.event);
            match (served, &idle) {
                (Some(served), _) => served.treat(stream, kind, blamed.local),
                (None, Some(idle)) => idle.treat(stream, kind, blamed.event),
                (None, None) => Treatment::Judged,
            }
        };
        let lateness = mined.lateness_of(settings, treat, ctx)?;
        let (mut patterns, mut anomalies, mut found) = repeated(mined, &lateness, ctx)?;
        match (served, &idle) {
            (Some(served), _) => {
                let detours = routes::of_executions(mined, served, settings, &ctx.cancel);
                let mut delayed = served.delayed().find(settings);
                routes::add(detours, &mut delayed.anomalies, &mut delayed.paths);
                found.put_behind(delayed.paths, delayed.anomalies.len());
                let first = patterns.len() as u32;
                patterns.extend(delayed.patterns);
                let of_executions =
                    delayed.anomalies.into_iter().map(|a| Anomaly { pattern: a.pattern.map(|p| first + p), ..a });
                anomalies.splice(0..0, of_executions);
            }
            // Routes are unknown where events were lost.
            (None, Some(idle)) if !lossy => {
                let detours = routes::of_turns(mined, idle, settings, &ctx.cancel);
                routes::add(detours, &mut anomalies, &mut found.paths);
            }
            (None, _) => {}
        }
        ctx.cancel.check()?;
        let summary = Summary {
            events: mined.operations.sequences.iter().map(|s| 2 * s.operations.len() as u64).sum(),
            patterns: patterns.len() as u64,
            selected: patterns.iter().filter(|p| p.verdict == Verdict::Selected).count() as u64,
            anomalies: anomalies.len() as u64,
            sources: found.spreading,
            longest_path: found.longest,
            violations: lateness.spread.violations,
        };
        let executions = served.map(|s| &s.model);
        let mut found = Anomalies {
            q: settings.q,
            s: settings.s,
            limit: settings.limit,
            origin: origin(mined).min(executions.map_or(Ns::MAX, |m| m.origin)),
            summary,
            streams: streams(mined, served),
            patterns,
            anomalies,
            around: strips::around(mined, &found.paths),
            paths: found.paths,
            paths_left_out: found.left_out,
            waiting: mined.waiting.as_ref().map(|w| Waiting::new(w, &mined.operations)),
            sources: Vec::new(),
            unexplained: unexplained::of(mined, &lateness),
            examined: Examined::new(&mined.operations, executions),
        };
        found.sources = sources::of(&found);
        Ok(found)
    }
}

impl Examined {
    fn new(operations: &Operations, executions: Option<&Model>) -> Examined {
        let task = |m: &Model| (m.tasks.get(m.task).cloned().unwrap_or_default(), m.executions.len() as u64);
        let durations = |m: &Model| (0..m.executions.len()).map(|i| m.executions.duration(i)).sum();
        Examined {
            streams: operations.sequences.len() as u64,
            operations: operations.sequences.iter().map(|s| s.operations.len() as u64).sum(),
            executions: executions.map(task),
            executions_ns: executions.map_or(0, durations),
            is_mpi: operations.sequences.iter().any(|s| s.rank.is_some()),
            declares_calls: false,
        }
    }
}

/// Repeated sequences of each stream: the patterns, their abnormal occurrences, and the propagation of delays.
fn repeated(
    mined: &Mined,
    lateness: &Lateness,
    ctx: &Ctx,
) -> Result<(Vec<Pattern>, Vec<Anomaly>, propagation::Found), Cancelled> {
    let measured: Vec<PatternId> = mined.table.measured().map(|(id, _)| id).collect();
    let patterns = measured.iter().map(|id| pattern(&mined.table, &mined.operations, lateness, *id)).collect();
    let mut order: Vec<u32> = (0..lateness.late.len() as u32).collect();
    order.sort_by_key(|l| {
        let late = &lateness.late[*l as usize];
        (late.idle, Reverse(late.excess), late.occurrence, late.pattern)
    });
    let mut numbers = vec![0_u32; order.len()];
    for (number, late) in (0..).zip(&order) {
        numbers[*late as usize] = number;
    }
    ctx.cancel.check()?;
    let found = propagation::paths(mined, lateness, &numbers);
    let mut anomalies: Vec<Anomaly> = order.iter().map(|l| anomaly(mined, lateness, &measured, *l as usize)).collect();
    for source in &found.sources {
        if let Some(anomaly) = anomalies.get_mut(*source as usize) {
            anomaly.source = true;
        }
    }
    Ok((patterns, anomalies, found))
}

/// The streams of the operations, and of executions those beyond them.
fn streams(mined: &Mined, served: Option<&Served>) -> Vec<Stream> {
    let streams = mined.operations.sequences.iter().zip(&mined.clocks).map(|(sequence, clock)| Stream {
        name: sequence.stream.clone(),
        label: sequence.label.clone(),
        rank: sequence.rank,
        thread: sequence.thread.clone(),
        offset_ns: clock.offset,
        drift_ppb: clock.drift * 1e9,
        error_ns: clock.error,
    });
    streams.chain(served.iter().flat_map(|s| s.beyond.iter().cloned())).collect()
}

fn origin(mined: &Mined) -> Ns {
    let first = |(sequence, clock): (&Sequence, &Clock)| Some(clock.common(sequence.operations.first()?.start));
    mined.operations.sequences.iter().zip(&mined.clocks).filter_map(first).min().unwrap_or(0)
}

fn pattern(table: &Table, operations: &Operations, lateness: &Lateness, id: PatternId) -> Pattern {
    let characters = &lateness.characters[id.index()];
    let usual = &characters.usual;
    Pattern {
        name: table.name(id, &operations.names),
        symbols: table.symbols(id, &operations.names),
        is_loop: matches!(table.patterns[id.index()].shape, Shape::Loop { .. }),
        occurrences: table.occurrences[id.index()].len() as u64,
        verdict: characters.verdict(),
        max_ref_ns: usual.max_ref,
        limit_ns: usual.limit,
        longest_ns: usual.longest.max(characters.opening.longest),
    }
}

fn anomaly(mined: &Mined, lateness: &Lateness, measured: &[PatternId], at: usize) -> Anomaly {
    let late = &lateness.late[at];
    let stream = late.occurrence.stream;
    let clock = mined.clocks[stream as usize];
    let character = late.pattern.and_then(|pattern| lateness.characters.get(pattern.index()));
    let max_ref = match character {
        Some(character) => character.of(late.occurrence).max_ref,
        None => late.blamed.iter().map(|b| b.reference).sum(),
    };
    let responsible = late.blamed.iter().map(|blamed| Responsible {
        what: what(&mined.operations, stream, blamed.event),
        kind: mined.operations.kind_of(stream, blamed.event),
        local: blamed.local,
        excess_ns: blamed.excess,
        reference_ns: blamed.reference,
        route: None,
    });
    Anomaly {
        pattern: late.pattern.and_then(|pattern| measured.binary_search(&pattern).ok()).map(|at| at as u32),
        stream,
        span: Span::new(clock.common(late.local.start), clock.common(late.local.end)),
        local: late.local,
        factor: late.local.len() as f64 / max_ref.max(1) as f64,
        excess_ns: late.excess,
        source: false,
        diffuse: late.diffuse,
        idle: late.idle,
        execution: None,
        responsible: responsible.collect(),
    }
}

/// An event as people call it: `MPI_Recv`, or `after MPI_Recv` for a gap.
pub(super) fn what(operations: &Operations, stream: u32, event: u32) -> String {
    let operation = operations.get(Place { stream, operation: event / 2 });
    let name = operation.map_or("", |o| operations.names.get(o.symbol));
    if event % 2 == 1 { format!("after {name}") } else { name.to_owned() }
}
