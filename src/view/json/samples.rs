//! Some executions of each group, and two executions moment by moment.

use super::calls::{self, CallsJson};
use super::timeline::{self, DivergenceJson, TimelineJson};
use crate::base::names::NameId;
use crate::base::time::{Ns, Timestamp};
use crate::base::{clean, figure};
use crate::compare::calls::aligned::PairedCalls;
use crate::compare::frame_text;
use crate::compare::moments::{Alignment, Moment};
use crate::model::Model;
use crate::model::execution::ExecutionId;
use serde::Serialize;

/// Executions of each group given as samples.
const SAMPLES: usize = 20;

#[derive(Serialize)]
pub(super) struct SampleJson {
    group: &'static str,
    execution: u32,
    trace: String,
    start_ns: Timestamp,
    /// Since the first event of the recording: a number that every reader of JSON keeps whole.
    since_ns: Ns,
    time_of_day: Option<String>,
    duration_ns: Ns,
    process: String,
    thread: String,
    pid: Option<i32>,
    tid: Option<i32>,
}

/// Executions of a group from its longest to its shortest, evenly spread over them.
pub fn sampled(model: &Model, members: &[ExecutionId], most: usize) -> Vec<ExecutionId> {
    let mut by_length = members.to_vec();
    by_length.sort_by_key(|e| (std::cmp::Reverse(model.executions.duration(e.index())), *e));
    let (n, most) = (by_length.len(), most.min(by_length.len()));
    (0..most).map(|i| by_length[if most == 1 { 0 } else { i * (n - 1) / (most - 1) }]).collect()
}

pub(super) fn samples(model: &Model, group: &'static str, members: &[ExecutionId]) -> Vec<SampleJson> {
    sampled(model, members, SAMPLES).into_iter().map(|e| sample(model, group, e)).collect()
}

pub(super) fn sample(model: &Model, group: &'static str, e: ExecutionId) -> SampleJson {
    let i = e.index();
    let who = model.executions.who.get(i).and_then(|w| model.who.get(w.index()));
    let text = |id: Option<NameId>| id.map_or_else(String::new, |id| clean::owned(model.names.get(id)));
    let trace = model.executions.trace.get(i).and_then(|t| model.traces.get(t.index()));
    let start = model.executions.start.at(i);
    SampleJson {
        group,
        execution: e.raw(),
        trace: trace.map_or_else(String::new, |t| clean::owned(&t.label)),
        start_ns: start,
        since_ns: start.since(model.origin),
        time_of_day: figure::time_of_day(start.since(Timestamp::ZERO)),
        duration_ns: model.executions.duration(i),
        process: text(who.map(|w| w.process)),
        thread: text(who.map(|w| w.thread)),
        pid: who.map(|w| w.pid),
        tid: who.map(|w| w.tid),
    }
}

#[derive(Serialize)]
pub(super) struct AlignmentJson {
    a: SampleJson,
    b: SampleJson,
    /// Frames to which paths were cut because there were too many moments; null where they were not.
    depth: Option<u32>,
    moments: Vec<MomentJson>,
    divergence: Option<DivergenceJson>,
    a_timeline: Option<TimelineJson>,
    b_timeline: Option<TimelineJson>,
    calls: CallsJson,
}

#[derive(Serialize)]
pub(super) struct MomentJson {
    path: Vec<String>,
    kind: &'static str,
    /// Since the execution began; null where it has no such moment.
    a_start_ns: Option<Ns>,
    a_ns: Ns,
    b_start_ns: Option<Ns>,
    b_ns: Ns,
    delta_ns: Ns,
}

pub(super) fn alignment(model: &Model, aligned: &Alignment, calls: &PairedCalls) -> AlignmentJson {
    let moment = |m: &Moment| MomentJson {
        path: model.contexts.path(m.context).into_iter().map(|c| clean::owned(&frame_text(model, c))).collect(),
        kind: model.contexts.spent(m.context).name(),
        a_start_ns: m.a.map(|p| p.start_ns),
        a_ns: m.a.map_or(0, |p| p.ns),
        b_start_ns: m.b.map(|p| p.start_ns),
        b_ns: m.b.map_or(0, |p| p.ns),
        delta_ns: m.delta_ns(),
    };
    AlignmentJson {
        a: sample(model, "a", aligned.a),
        b: sample(model, "b", aligned.b),
        depth: aligned.depth,
        moments: aligned.moments.iter().map(moment).collect(),
        divergence: aligned.divergence().map(Into::into),
        a_timeline: timeline::timeline(model, aligned.a, &calls.trees[0]),
        b_timeline: timeline::timeline(model, aligned.b, &calls.trees[1]),
        calls: calls::aligned(model, calls),
    }
}
