//! `whyslow anomalies` for people and for programs (schema `whyslow.anomalies/1`, PRODUCT.md).
//!
//! In: [`Anomalies`] and the warnings. Out: JSON here, and text that begins with the root causes, because they are the
//! answer: which thread caused a delay, how much, and which threads it delayed.

mod paths;
mod place;
mod text;
mod verdict;
mod words;

pub use text::{ListBounds, rule, text};
pub use verdict::{beside_comparison, verdict, verdict_path, why_others};
pub use words::{Words, doing, examined, of_source, routed};

use self::place::{PlaceJson, place_of};
use super::compared_causes::ComparedCauses;
use super::waiting::{self, WaitingJson};
use crate::base::notice::Notices;
use crate::base::time::{Ns, Timestamp};
use crate::base::{clean, figure};
use crate::model::anomalies::{Anomalies, Anomaly, Pattern, Responsible, StreamInfo};
use crate::model::carrier::Carrier;
use crate::model::propagation::{InnerFunction, Noise, PropagationPath, PropagationStep, RouteChange};
use crate::model::root_cause::RootCause;
use crate::model::settings::PatternVerdict;
use crate::model::unexplained::UnexplainedWait;
use crate::model::waiting::Waiting;
use serde::{Serialize, Serializer};

/// The JSON document.
#[derive(Serialize)]
pub struct Document<'a> {
    schema: &'static str,
    q: f64,
    s: f64,
    limit: &'static str,
    summary: SummaryJson,
    verdict: String,
    examined: String,
    clocks: Vec<ClockJson>,
    patterns: Entries<'a, Pattern, PatternJson>,
    anomalies: Entries<'a, Anomaly, AnomalyJson>,
    paths: Entries<'a, PropagationPath, PathJson>,
    sources: Entries<'a, RootCause, SourceJson>,
    comparison: Option<ComparedCauses>,
    waits_without_source: Entries<'a, UnexplainedWait, UnexplainedJson>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    waiting: Option<WaitingJson>,
    /// The rank that all others wait for although nothing is unusual, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    steady: Option<String>,
    truncated: bool,
    warnings: Vec<String>,
}

/// A list of the document, whose entries are made one by one while it is written: all of them at once may be more than
/// a memory limit has room for.
struct Entries<'a, T, J> {
    found: &'a Anomalies,
    all: &'a [T],
    entry: fn(&Anomalies, usize, &T) -> J,
}

impl<T, J: Serialize> Serialize for Entries<'_, T, J> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entry = |(position, one)| (self.entry)(self.found, position, one);
        serializer.collect_seq(self.all.iter().enumerate().map(entry))
    }
}

#[derive(Clone, Debug, Serialize)]
struct SummaryJson {
    events: u64,
    patterns: u64,
    selected: u64,
    anomalies: u64,
    sources: u64,
    longest_path: u64,
    violations: u64,
    idle: u64,
    operations: u64,
    streams: u64,
    task: Option<String>,
    executions: Option<u64>,
}

/// A stream's clock.
#[derive(Clone, Debug, Serialize)]
pub struct ClockJson {
    stream: String,
    offset_ns: Ns,
    error_ns: Option<Ns>,
    drift_ppb: f64,
}

impl std::fmt::Display for ClockJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = self.error_ns.map_or_else(|| "unknown".to_owned(), figure::duration);
        write!(f, "clock of {}: correction {}, error at most {error}", self.stream, figure::duration(self.offset_ns))?;
        if self.drift_ppb == 0.0 { Ok(()) } else { write!(f, ", drift {}", figure::drift(self.drift_ppb)) }
    }
}

#[derive(Clone, Debug, Serialize)]
struct PatternJson {
    id: usize,
    name: String,
    symbols: Vec<String>,
    #[serde(rename = "loop")]
    is_loop: bool,
    occurrences: u64,
    selected: bool,
    reason: &'static str,
    max_ref_ns: Ns,
    limit_ns: Ns,
    longest_ns: Ns,
}

#[derive(Clone, Debug, Serialize)]
struct AnomalyJson {
    id: usize,
    pattern: Option<u32>,
    #[serde(flatten)]
    place: PlaceJson,
    start_ns: Timestamp,
    end_ns: Timestamp,
    local_start_ns: Timestamp,
    local_end_ns: Timestamp,
    factor: f64,
    excess_ns: Ns,
    source: bool,
    diffuse: bool,
    idle: bool,
    execution: Option<u32>,
    responsible: Vec<ResponsibleJson>,
}

#[derive(Clone, Debug, Serialize)]
struct ResponsibleJson {
    what: String,
    kind: &'static str,
    local_start_ns: Timestamp,
    local_end_ns: Timestamp,
    excess_ns: Ns,
    reference_ns: Ns,
    route: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
struct PathJson {
    excess_ns: Ns,
    affected_ns: Ns,
    messages: u64,
    source: u32,
    execution: Option<u32>,
    steps: Vec<StepJson>,
}

/// A row of the table of root causes.
#[derive(Clone, Debug, Serialize)]
struct SourceJson {
    name: String,
    process: Option<String>,
    streams: Vec<String>,
    rank: Option<u32>,
    pid: Option<i32>,
    tid: Option<i32>,
    what: String,
    function: Option<String>,
    kind: &'static str,
    via: Vec<&'static str>,
    victim: Option<VictimJson>,
    noise: Option<&'static str>,
    route: Option<&'static str>,
    idle: bool,
    in_executions: bool,
    affected_ns: Ns,
    inner: Vec<InnerJson>,
    share: Option<f64>,
    excess_ns: Ns,
    factor: f64,
    occurrences: u64,
    executions: u64,
    first_ns: Timestamp,
    last_ns: Timestamp,
    anomalies: Vec<u32>,
    paths: Vec<u32>,
}

/// A function below that of a root cause, and the part of the delay in it.
#[derive(Clone, Debug, Serialize)]
struct InnerJson {
    function: String,
    ns: Ns,
}

/// Waits of one call without a known cause.
#[derive(Clone, Debug, Serialize)]
struct UnexplainedJson {
    #[serde(flatten)]
    place: PlaceJson,
    what: String,
    function: Option<String>,
    waits: u64,
    sent_in_time: u64,
    excess_ns: Ns,
    late: Option<LateJson>,
    first_ns: Timestamp,
    last_ns: Timestamp,
}

/// The rank that was late for most of it.
#[derive(Clone, Debug, Serialize)]
struct LateJson {
    #[serde(flatten)]
    place: PlaceJson,
    ns: Ns,
}

#[derive(Clone, Debug, Serialize)]
struct VictimJson {
    name: String,
    function: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
struct StepJson {
    anomaly: u32,
    #[serde(flatten)]
    place: PlaceJson,
    what: String,
    function: Option<String>,
    kind: &'static str,
    start_ns: Timestamp,
    end_ns: Timestamp,
    local_start_ns: Timestamp,
    local_end_ns: Timestamp,
    excess_ns: Ns,
    reference_ns: Ns,
    via: Option<&'static str>,
    noise: Option<&'static str>,
    route: Option<&'static str>,
}

/// The document of an analysis; `compared` is the result of comparing the same executions.
pub fn json<'a>(found: &'a Anomalies, notices: &Notices, compared: Option<ComparedCauses>) -> Document<'a> {
    let summary = &found.summary;
    Document {
        schema: "whyslow.anomalies/1",
        q: found.q,
        s: found.s,
        limit: found.limit.name(),
        summary: SummaryJson {
            events: summary.events,
            patterns: summary.patterns,
            selected: summary.selected,
            anomalies: summary.anomalies,
            sources: summary.sources,
            longest_path: summary.longest_path,
            violations: summary.violations,
            idle: found.anomalies.iter().filter(|a| a.idle).count() as u64,
            operations: found.examined.operations,
            streams: found.examined.streams,
            task: found.examined.executions.as_ref().map(|e| clean::owned(&e.task)),
            executions: found.examined.executions.as_ref().map(|e| e.count),
        },
        verdict: verdict(found),
        examined: examined(found, notices),
        clocks: clocks(&found.streams),
        patterns: Entries { found, all: &found.patterns, entry: |_, id, p| pattern(id, p) },
        anomalies: Entries { found, all: &found.anomalies, entry: anomaly },
        paths: Entries { found, all: &found.paths, entry: |found, _, p| path(found, p) },
        sources: Entries { found, all: &found.sources, entry: |found, _, s| source(found, s) },
        comparison: compared,
        waits_without_source: Entries { found, all: &found.unexplained, entry: |found, _, u| unexplained(found, u) },
        waiting: found.waiting.as_ref().map(|w| waiting::json(Some(w))),
        steady: found.waiting.as_ref().and_then(Waiting::sentence).map(|s| clean::line(&s)),
        truncated: found.paths_left_out > 0,
        warnings: notices.sentences().iter().map(|s| clean::line(s)).collect(),
    }
}

/// Another document with one path beside it.
#[derive(Clone, Debug, Serialize)]
pub struct WithPath<T> {
    #[serde(flatten)]
    document: T,
    path: Option<PathJson>,
}

/// A document, and the path that is selected on the screen.
pub fn with_path<T: Serialize>(document: T, found: &Anomalies, at: usize) -> WithPath<T> {
    WithPath { document, path: found.paths.get(at).map(|p| path(found, p)) }
}

/// The clocks alone, for `info --full`.
pub fn clocks(streams: &[StreamInfo]) -> Vec<ClockJson> {
    let clock = |s: &StreamInfo| ClockJson {
        stream: clean::owned(&s.name),
        offset_ns: s.offset_ns,
        error_ns: s.error_ns,
        drift_ppb: s.drift_ppb,
    };
    streams.iter().map(clock).collect()
}

fn pattern(id: usize, p: &Pattern) -> PatternJson {
    PatternJson {
        id,
        name: clean::owned(&p.name),
        symbols: p.symbols.iter().map(|s| clean::owned(s)).collect(),
        is_loop: p.is_loop,
        occurrences: p.occurrences,
        selected: p.verdict == PatternVerdict::Selected,
        reason: p.verdict.reason(),
        max_ref_ns: p.max_ref_ns,
        limit_ns: p.limit_ns,
        longest_ns: p.longest_ns,
    }
}

fn anomaly(found: &Anomalies, id: usize, a: &Anomaly) -> AnomalyJson {
    let responsible = |r: &Responsible| ResponsibleJson {
        what: clean::owned(&r.what),
        kind: r.kind.name(),
        local_start_ns: r.local.start,
        local_end_ns: r.local.end,
        excess_ns: r.excess_ns,
        reference_ns: r.reference_ns,
        route: r.route.map(RouteChange::name),
    };
    AnomalyJson {
        id,
        pattern: a.pattern,
        place: place_of(found, a.stream),
        start_ns: a.span.start,
        end_ns: a.span.end,
        local_start_ns: a.local.start,
        local_end_ns: a.local.end,
        factor: a.factor,
        excess_ns: a.excess_ns,
        source: a.source,
        diffuse: a.diffuse,
        idle: a.idle,
        execution: a.execution,
        responsible: a.responsible.iter().map(responsible).collect(),
    }
}

fn path(found: &Anomalies, path: &PropagationPath) -> PathJson {
    let step = |s: &PropagationStep| StepJson {
        anomaly: s.anomaly,
        place: place_of(found, s.stream),
        what: clean::owned(&s.what),
        function: s.function.as_deref().map(clean::owned),
        kind: s.kind.name(),
        start_ns: s.span.start,
        end_ns: s.span.end,
        local_start_ns: s.local.start,
        local_end_ns: s.local.end,
        excess_ns: s.excess_ns,
        reference_ns: s.reference_ns,
        via: s.carrier.map(Carrier::name),
        noise: s.noise.map(Noise::name),
        route: s.route.map(RouteChange::name),
    };
    PathJson {
        excess_ns: path.excess_ns,
        affected_ns: path.affected_ns,
        messages: path.messages,
        source: path.source,
        execution: path.execution,
        steps: path.steps.iter().map(step).collect(),
    }
}

fn unexplained(found: &Anomalies, u: &UnexplainedWait) -> UnexplainedJson {
    UnexplainedJson {
        place: place_of(found, u.stream),
        what: clean::owned(&u.what),
        function: u.function.as_deref().map(clean::owned),
        waits: u.waits,
        sent_in_time: u.sent_in_time,
        excess_ns: u.excess_ns,
        late: u.late.map(|late| LateJson { place: place_of(found, late.stream), ns: late.ns }),
        first_ns: u.span.start,
        last_ns: u.span.end,
    }
}

fn inner(inner: &InnerFunction) -> InnerJson {
    InnerJson { function: clean::owned(&inner.function), ns: inner.ns }
}

fn source(found: &Anomalies, source: &RootCause) -> SourceJson {
    let stream = |at: &u32| found.streams.get(*at as usize);
    // A single thread or rank has numbers; the threads of a pool share at most their process.
    let one = source.streams.first().and_then(stream).filter(|_| source.streams.len() == 1);
    let pids: Vec<i32> = source.streams.iter().filter_map(|s| Some(stream(s)?.thread.as_ref()?.pid)).collect();
    let span = source.span();
    SourceJson {
        name: clean::owned(&source.name),
        process: Some(clean::owned(&source.process)).filter(|p| !p.is_empty()),
        streams: source.streams.iter().filter_map(|s| Some(clean::owned(&stream(s)?.name))).collect(),
        rank: one.and_then(|s| s.rank),
        pid: pids.first().copied().filter(|first| pids.iter().all(|pid| pid == first)),
        tid: one.and_then(|s| Some(s.thread.as_ref()?.tid)),
        what: clean::owned(&source.what),
        function: source.function.as_deref().map(clean::owned),
        kind: source.kind.name(),
        via: source.carriers.iter().map(|carrier| carrier.name()).collect(),
        victim: source
            .victim
            .as_ref()
            .map(|v| VictimJson { name: clean::owned(&v.name), function: v.function.as_deref().map(clean::owned) }),
        noise: source.noise.map(Noise::name),
        route: source.route.map(RouteChange::name),
        idle: source.idle,
        in_executions: source.in_executions,
        affected_ns: source.affected_ns,
        inner: source.inner.iter().map(inner).collect(),
        share: found.share(source),
        excess_ns: source.excess_ns,
        factor: source.factor,
        occurrences: source.occurrences.len() as u64,
        executions: source.executions,
        first_ns: span.start,
        last_ns: span.end,
        anomalies: source.occurrences.iter().map(|o| o.anomaly).collect(),
        paths: source.occurrences.iter().filter_map(|o| o.path).collect(),
    }
}
