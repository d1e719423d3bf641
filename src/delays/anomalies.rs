//! The whole answer of `whyslow anomalies`: frequent patterns, their abnormal occurrences, and how a delay spread.
//!
//! In: mined patterns, the executions of a kernel recording, and settings. Out: [`Anomalies`]. Fast enough to be asked
//! at each change of a setting.

use super::mined_executions::MinedExecutions;
use super::propagation;
use super::propagation::what;
use super::root_causes;
use super::unexplained;
use crate::analysis::offsets::StreamClock;
use crate::analysis::patterns::late::ResponsibleEvent;
use crate::analysis::patterns::table::{PatternId, PatternShape, PatternTable};
use crate::analysis::patterns::{Lateness, PatternAnalysis, Treatment};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::time::{Span, Timestamp};
use crate::delays::routes;
use crate::event::operation::{Operations, Sequence};
use crate::explain::idle::IdleWaits;
use crate::explain::{timelines, waiting};
use crate::model::Model;
use crate::model::anomalies::{
    Anomalies, Anomaly, AnomalySummary, Examined, ExaminedExecutions, Pattern, Responsible, StreamInfo,
};
use crate::model::settings::{PatternVerdict, Settings};
use std::cmp::Reverse;

/// The anomalies of mined patterns under these settings. Fast enough to be called at each change of q or s.
#[cfg(not(program))]
pub fn of_patterns(mined: &PatternAnalysis, settings: &Settings, ctx: &Ctx) -> Result<Anomalies, Cancelled> {
    find(mined, None, Completeness::Complete, settings, ctx)
}

/// Whether a recording holds all events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Completeness {
    /// No loss is known.
    Complete,
    /// Events were lost.
    Lossy,
}

/// The anomalies of mined patterns and of delayed executions. Delayed executions come first, if there are executions;
/// delays that they did not wait for follow.
pub(super) fn find(
    mined: &PatternAnalysis,
    served: Option<&MinedExecutions>,
    completeness: Completeness,
    settings: &Settings,
    ctx: &Ctx,
) -> Result<Anomalies, Cancelled> {
    let idle = if served.is_none() { Some(IdleWaits::new(mined)) } else { None };
    let treat = |stream: u32, blamed: &ResponsibleEvent| {
        let kind = mined.operations.kind_of(stream, blamed.event);
        match (served, &idle) {
            (Some(served), _) => served.treat(stream, kind, blamed.local),
            (None, Some(idle)) => idle.treat(stream, kind, blamed.event),
            (None, None) => Treatment::Responsible,
        }
    };
    let lateness = mined.lateness_of(settings, treat, ctx)?;
    let (mut patterns, mut anomalies, mut found) = repeated(mined, &lateness, ctx)?;
    match (served, &idle) {
        (Some(served), _) => {
            let differences = routes::of_executions(mined, served, settings, &ctx.cancel);
            let mut delayed = served.delayed().find(settings, &ctx.cancel);
            ctx.cancel.check()?;
            routes::add(differences, &mut delayed.anomalies, &mut delayed.paths);
            found.put_after(delayed.paths, delayed.anomalies.len());
            let first = patterns.len() as u32;
            patterns.extend(delayed.patterns);
            let of_executions =
                delayed.anomalies.into_iter().map(|a| Anomaly { pattern: a.pattern.map(|p| first + p), ..a });
            anomalies.splice(0..0, of_executions);
        }
        // Routes are unknown where events were lost.
        (None, Some(idle)) if completeness == Completeness::Complete => {
            let differences = routes::of_iterations(mined, idle, settings, &ctx.cancel);
            routes::add(differences, &mut anomalies, &mut found.paths);
        }
        (None, _) => {}
    }
    ctx.cancel.check()?;
    let summary = AnomalySummary {
        events: mined.operations.sequences.iter().map(|s| 2 * s.operations.len() as u64).sum(),
        patterns: patterns.len() as u64,
        selected: patterns.iter().filter(|p| p.verdict == PatternVerdict::Selected).count() as u64,
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
        origin: origin(mined).min(executions.map_or(Timestamp::MAX, |m| m.origin)),
        summary,
        streams: streams(mined, served),
        patterns,
        anomalies,
        around: timelines::around(mined, &found.paths),
        paths: found.paths,
        paths_left_out: found.left_out,
        waiting: mined.waiting(ctx)?.map(|w| waiting::named(w, &mined.operations)),
        sources: Vec::new(),
        unexplained: unexplained::of(mined, &lateness),
        examined: examined(&mined.operations, executions),
    };
    found.sources = root_causes::of(&found);
    Ok(found)
}

fn examined(operations: &Operations, executions: Option<&Model>) -> Examined {
    let task = |m: &Model| ExaminedExecutions {
        task: m.tasks.get(m.task).cloned().unwrap_or_default(),
        count: m.executions.len() as u64,
    };
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

/// Repeated sequences of each stream: the patterns, their abnormal occurrences, and the propagation of delays.
fn repeated(
    mined: &PatternAnalysis,
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

/// The streams of the operations, then those of threads of executions that made no calls.
fn streams(mined: &PatternAnalysis, served: Option<&MinedExecutions>) -> Vec<StreamInfo> {
    let streams = mined.operations.sequences.iter().zip(&mined.clocks).map(|(sequence, clock)| StreamInfo {
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

fn origin(mined: &PatternAnalysis) -> Timestamp {
    let first = |(sequence, clock): (&Sequence, &StreamClock)| Some(clock.common(sequence.operations.first()?.start));
    mined.operations.sequences.iter().zip(&mined.clocks).filter_map(first).min().unwrap_or_default()
}

fn pattern(table: &PatternTable, operations: &Operations, lateness: &Lateness, id: PatternId) -> Pattern {
    let limits = &lateness.limits[id.index()];
    let usual = &limits.usual;
    Pattern {
        name: table.name(id, &operations.names),
        symbols: table.symbols(id, &operations.names),
        is_loop: matches!(table.patterns[id.index()].shape, PatternShape::Loop { .. }),
        occurrences: table.occurrences[id.index()].len() as u64,
        verdict: limits.verdict(),
        max_ref_ns: usual.max_ref,
        limit_ns: usual.limit,
        longest_ns: usual.longest.max(limits.opening.longest),
    }
}

fn anomaly(mined: &PatternAnalysis, lateness: &Lateness, measured: &[PatternId], at: usize) -> Anomaly {
    let late = &lateness.late[at];
    let stream = late.occurrence.stream;
    let clock = mined.clocks[stream as usize];
    let character = late.pattern.and_then(|pattern| lateness.limits.get(pattern.index()));
    let max_ref = match character {
        Some(character) => character.of(late.occurrence).max_ref,
        None => late.responsible.iter().map(|b| b.reference).sum(),
    };
    let responsible = late.responsible.iter().map(|blamed| Responsible {
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
