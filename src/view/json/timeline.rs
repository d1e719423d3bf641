//! The timeline of one execution.

use super::calls::{self, CallJson};
use crate::base::clean;
use crate::base::time::Ns;
use crate::compare::calls::CallTree;
use crate::compare::frame_text;
use crate::compare::moments::Divergence;
use crate::model::Model;
use crate::model::context::ContextId;
use crate::model::execution::ExecutionId;
use crate::model::execution_timeline::{TimelineEvent, TimelineSegment, TimelineThread, TimelineWait};
use serde::Serialize;
use std::collections::BTreeMap;

/// Segments written, at most; the longest ones.
const MOST_SEGMENTS: usize = 10_000;

#[derive(Serialize)]
pub(super) struct TimelineJson {
    threads: Vec<ThreadJson>,
    paths: Vec<Vec<String>>,
    segments: Vec<SegmentJson>,
    segments_left_out: usize,
    calls: Vec<CallJson>,
    calls_left_out: usize,
    calls_cut_below: Option<u32>,
    waits: Vec<WaitJson>,
    events: Vec<EventJson>,
    events_left_out: u64,
}

#[derive(Serialize)]
struct ThreadJson {
    host: String,
    process: String,
    thread: String,
    pid: i32,
    tid: i32,
}

#[derive(Serialize)]
struct SegmentJson {
    start_ns: Ns,
    ns: Ns,
    thread: u32,
    state: &'static str,
    cpu: Option<u32>,
    /// Position in `paths`.
    path: usize,
}

#[derive(Serialize)]
struct WaitJson {
    start_ns: Ns,
    end_ns: Ns,
    thread: u32,
    waits_for: u32,
    via: &'static str,
}

#[derive(Serialize)]
struct EventJson {
    at_ns: Ns,
    ns: Ns,
    thread: u32,
    kind: &'static str,
    name: String,
    result: Option<i64>,
    error: Option<String>,
}

#[derive(Serialize)]
pub(super) struct DivergenceJson {
    a_ns: Ns,
    b_ns: Ns,
    delta_ns: Ns,
}

impl From<Divergence> for DivergenceJson {
    fn from(Divergence { a_ns, b_ns, delta_ns }: Divergence) -> Self {
        DivergenceJson { a_ns, b_ns, delta_ns }
    }
}

pub(super) fn timeline(model: &Model, execution: ExecutionId, tree: &CallTree) -> Option<TimelineJson> {
    let timeline = model.timelines.get(&execution)?;
    let mut shown: Vec<&TimelineSegment> = timeline.segments.iter().collect();
    shown.sort_by_key(|segment| (std::cmp::Reverse(segment.ns), segment.start_ns));
    let segments_left_out = shown.len().saturating_sub(MOST_SEGMENTS);
    shown.truncate(MOST_SEGMENTS);
    shown.sort_by_key(|segment| segment.start_ns);
    let mut known: BTreeMap<ContextId, usize> = BTreeMap::new();
    let mut paths = Vec::new();
    let mut path = |context: ContextId| {
        *known.entry(context).or_insert_with(|| {
            paths.push(model.contexts.path(context).into_iter().map(|c| clean::owned(&frame_text(model, c))).collect());
            paths.len() - 1
        })
    };
    let segment = |s: &&TimelineSegment| SegmentJson {
        start_ns: s.start_ns,
        ns: s.ns,
        thread: s.thread,
        state: s.state.name(),
        cpu: s.cpu,
        path: path(s.context),
    };
    let segments = shown.iter().map(segment).collect();
    let thread = |t: &TimelineThread| ThreadJson {
        host: clean::owned(&t.host),
        process: clean::owned(&t.process),
        thread: clean::owned(&t.name),
        pid: t.pid,
        tid: t.tid,
    };
    let wait = |w: &TimelineWait| WaitJson {
        start_ns: w.start_ns,
        end_ns: w.end_ns,
        thread: w.waiter,
        waits_for: w.waits_for,
        via: w.carrier.name(),
    };
    let event = |e: &TimelineEvent| EventJson {
        at_ns: e.at_ns,
        ns: e.ns,
        thread: e.thread,
        kind: e.kind.name(),
        name: clean::owned(&e.name),
        result: e.result,
        error: e.error.clone(),
    };
    let calls = calls::calls(model, tree);
    Some(TimelineJson {
        calls_left_out: tree.calls().len() - calls.len(),
        calls_cut_below: tree.deepest,
        calls,
        threads: timeline.threads.iter().map(thread).collect(),
        paths,
        segments,
        segments_left_out,
        waits: timeline.waits.iter().map(wait).collect(),
        events: timeline.events.iter().map(event).collect(),
        events_left_out: timeline.events_left_out,
    })
}
