//! Frequent patterns, their abnormal occurrences, and how a delay spread: the whole answer of `whyslow anomalies`.
//!
//! Times are on the common time line; `local` ones on the stream's own clock.

use crate::base::time::{Ns, Span, Timestamp};
use crate::model::event_kind::EventKind;
use crate::model::propagation::{PropagationPath, PropagationStep, RouteChange};
use crate::model::root_cause::RootCause;
use crate::model::settings::{PatternVerdict, ThresholdRule};
use crate::model::thread::ThreadIdentity;
use crate::model::timeline::RankTimeline;
use crate::model::unexplained::UnexplainedWait;
use crate::model::waiting::Waiting;

/// A stream and its clock.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamInfo {
    pub name: String,
    /// The label shown, if it is not the name: `rank 2`, `rank 2 thread 1`.
    pub label: String,
    /// MPI rank of its process, where it has one.
    pub rank: Option<u32>,
    /// The thread, where it is one of a kernel recording.
    pub thread: Option<ThreadIdentity>,
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
    pub verdict: PatternVerdict,
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
    pub kind: EventKind,
    /// When, on the stream's own clock.
    pub local: Span,
    /// Longer than in the reference by this.
    pub excess_ns: Ns,
    /// How long it takes in the reference.
    pub reference_ns: Ns,
    /// The place where the occurrence's calls differ from the others'.
    pub route: Option<RouteChange>,
}

impl Responsible {
    /// The responsible event of an anomaly, from the step of a path.
    pub fn of(step: &PropagationStep) -> Responsible {
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
    pub span: Span,
    /// The span on the stream's own clock.
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
pub struct AnomalySummary {
    /// Events analysed: beginnings and ends of operations.
    pub events: u64,
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
    pub limit: ThresholdRule,
    /// The first operation, on the common time line: people count from there.
    pub origin: Timestamp,
    /// Figures.
    pub summary: AnomalySummary,
    /// Streams and clocks.
    pub streams: Vec<StreamInfo>,
    /// All patterns, selected or not.
    pub patterns: Vec<Pattern>,
    /// Ordered by excess, largest first.
    pub anomalies: Vec<Anomaly>,
    /// Ordered by what they cause, most first.
    pub paths: Vec<PropagationPath>,
    /// Paths that were left out of `paths`.
    pub paths_left_out: u64,
    /// Waiting in totals, of an MPI run.
    pub waiting: Option<Waiting>,
    /// The root causes of all paths, repeated ones in one row; waits for work come last.
    pub sources: Vec<RootCause>,
    /// The ranks around each of the first sources over time, in an MPI run; by number of the source.
    pub around: Vec<RankTimeline>,
    /// Waits without a known cause: neither source nor victim of any path.
    pub unexplained: Vec<UnexplainedWait>,
    /// Extent of the analysis.
    pub examined: Examined,
}

/// Executions that were examined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExaminedExecutions {
    /// Their task.
    pub task: String,
    pub count: u64,
}

/// Extent of the analysis: reported where nothing was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Threads or ranks.
    pub streams: u64,
    /// Their operations.
    pub operations: u64,
    /// Executions, and of which task, in kernel recordings that have some.
    pub executions: Option<ExaminedExecutions>,
    /// How long all of these took together.
    pub executions_ns: Ns,
    /// MPI ranks, not threads of a kernel recording.
    pub is_mpi: bool,
    /// Its metadata declare system calls: where no operation is known there may have been some, of unknown threads.
    pub declares_calls: bool,
}

/// The names of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamName {
    /// Name of its thread, or its rank.
    pub name: String,
    /// Name of its process; empty if it has none.
    pub process: String,
}

impl Anomalies {
    /// Occurrences of all root causes.
    pub fn times(&self) -> u64 {
        self.sources.iter().map(|source| source.occurrences.len() as u64).sum()
    }

    /// The part of all executions' time that a source delayed them by; `None` where there are none.
    pub fn share(&self, source: &RootCause) -> Option<f64> {
        let all = self.examined.executions_ns;
        (all > 0).then(|| source.affected_ns as f64 / all as f64)
    }

    /// The names of a stream; of a rank `rank 4` without a process.
    pub fn named(&self, stream: u32) -> StreamName {
        let Some(stream) = self.streams.get(stream as usize) else { return StreamName::default() };
        let (name, process) = match (stream.rank, &stream.thread) {
            (Some(_), _) if !stream.label.is_empty() => (stream.label.clone(), String::new()),
            (Some(rank), _) => (format!("rank {rank}"), String::new()),
            (None, Some(thread)) => (thread.name.clone(), thread.process.clone()),
            (None, None) => (stream.name.clone(), String::new()),
        };
        StreamName { name, process }
    }
}
