//! The timeline of one execution: a drawing's view of its critical path.
//!
//! In: an execution and its contexts with their times, in order of time. Out: an [`ExecutionTimeline`]. The contexts
//! tile the path, so the segment of the path in which a context's time begins gives its thread, state and CPU. The
//! windows in which the path is in a thread give the waits: while a window is open, the thread above it waits for it.
//! Cost: linear in the segments of the path, in the system calls of its threads meanwhile, and in all executions, whose
//! begins and ends are events, too.

mod events;

use crate::analysis::carriers;
use crate::analysis::executions::Execution;
use crate::analysis::leaders::Leaders;
use crate::analysis::path::{self, Entered, PathSegment};
use crate::analysis::remarks::Remarks;
use crate::analysis::thread_names::ThreadNames;
use crate::base::names::{NameId, Names};
use crate::base::time::{Ns, Span, Timestamp};
use crate::model::context::{Contexts, FrameKind};
use crate::model::execution::ContextTime;
use crate::model::execution_timeline::{ExecutionTimeline, TimelineSegment, TimelineThread, TimelineWait};
use crate::model::wait_kind::WaitKind;
use crate::timeline::{ThreadId, Timeline, known_cpu};
use foldhash::HashMap;

/// The tables that name threads.
#[derive(Clone, Copy)]
pub(super) struct TimelineInputs<'a> {
    pub(super) timeline: &'a Timeline,
    pub(super) leaders: &'a Leaders,
    pub(super) shown: &'a ThreadNames,
    /// Names of the model.
    pub(super) names: &'a Names,
    pub(super) contexts: &'a Contexts,
    pub(super) remarks: &'a Remarks,
    /// Position of the task among those of the delimiting events.
    pub(super) task: u32,
}

/// The timeline of an execution whose contexts have these times, in order of time.
pub(super) fn of(inputs: TimelineInputs<'_>, execution: &Execution, own: &[ContextTime]) -> ExecutionTimeline {
    let path = path::walk(inputs.timeline, execution.thread, execution.span);
    let drawn = ExecutionTimeline { start: execution.span.start, ns: execution.span.len(), ..Default::default() };
    let mut drawing =
        Drawing { inputs, origin: execution.span.start, lanes: HashMap::default(), windows: Vec::new(), drawn };
    let mut open: Vec<OpenWindow> = Vec::new();
    for segment in &path {
        let keeps = usize::try_from(segment.depth).unwrap_or(usize::MAX) + usize::from(!segment.span.is_empty());
        while open.len() > keeps {
            drawing.close(&mut open, segment.span.start);
        }
        if open.len() <= segment.depth as usize {
            let waiter = open.last().map(|above| above.thread);
            open.push(OpenWindow {
                thread: segment.thread,
                start: segment.span.start,
                waiter,
                entered: segment.entered,
            });
            drawing.lane(segment.thread, segment.span.start);
        }
    }
    while !open.is_empty() {
        drawing.close(&mut open, execution.span.end);
    }
    drawing.add_segments(&path, own);
    events::add(&mut drawing);
    drawing.drawn
}

/// The path is in a thread.
struct OpenWindow {
    thread: ThreadId,
    start: Timestamp,
    /// The thread that waits for it.
    waiter: Option<ThreadId>,
    entered: Entered,
}

/// The path was in a thread, or in threads that it waited for.
struct ThreadWindow {
    thread: ThreadId,
    span: Span,
}

struct Drawing<'a> {
    inputs: TimelineInputs<'a>,
    origin: Timestamp,
    lanes: HashMap<ThreadId, u32>,
    windows: Vec<ThreadWindow>,
    drawn: ExecutionTimeline,
}

impl Drawing<'_> {
    fn since(&self, t: Timestamp) -> Ns {
        t.since(self.origin)
    }

    /// Position of a thread, which is named as at `t` if it is new.
    fn lane(&mut self, thread: ThreadId, t: Timestamp) -> u32 {
        if let Some(known) = self.lanes.get(&thread) {
            return *known;
        }
        let lane = self.drawn.threads.len() as u32;
        self.drawn.threads.push(self.describe(thread, t));
        self.lanes.insert(thread, lane);
        lane
    }

    fn describe(&self, id: ThreadId, t: Timestamp) -> TimelineThread {
        let TimelineInputs { timeline, leaders, shown, names, .. } = self.inputs;
        let recorded = |id: Option<NameId>| id.map_or("unknown", |id| timeline.names().get(id)).to_owned();
        let Some(thread) = timeline.thread(id) else {
            let unknown = || "unknown".to_owned();
            return TimelineThread { host: unknown(), process: unknown(), name: unknown(), pid: 0, tid: 0 };
        };
        TimelineThread {
            host: recorded(timeline.hosts().get(thread.host.index()).map(|host| host.name)),
            process: recorded(leaders.of(timeline, thread, t).name_at(t)),
            name: shown.at(thread, t).map_or_else(|| recorded(thread.name_at(t)), |id| names.get(id).to_owned()),
            pid: thread.pid,
            tid: thread.tid,
        }
    }

    /// Close the innermost window: its thread wakes the one above.
    fn close(&mut self, open: &mut Vec<OpenWindow>, end: Timestamp) {
        let Some(window) = open.pop() else { return };
        let span = Span::new(window.start, end);
        if span.is_empty() {
            return;
        }
        let waits_for = self.lane(window.thread, window.start);
        if let Some(waiter) = window.waiter {
            let carrier = carriers::of(self.inputs.timeline, waiter, window.start, window.entered);
            let wait = TimelineWait {
                start_ns: self.since(window.start),
                end_ns: self.since(end),
                waiter: self.lane(waiter, window.start),
                waits_for,
                carrier,
            };
            self.drawn.waits.push(wait);
        }
        self.windows.push(ThreadWindow { thread: window.thread, span });
    }

    /// The segments: each part of the path with the context that its time is added to.
    fn add_segments(&mut self, path: &[PathSegment], own: &[ContextTime]) {
        let mut path = path.iter().filter(|segment| !segment.span.is_empty()).peekable();
        let mut at: Ns = 0;
        for ContextTime { context, ns } in own.iter().filter(|time| time.ns > 0) {
            while path.next_if(|segment| segment.span.end.since(self.origin) <= at).is_some() {}
            let Some(segment) = path.peek() else { break };
            let state = match self.inputs.contexts.frame(*context).kind {
                FrameKind::Wait(kind @ (WaitKind::Stolen | WaitKind::Throttled)) => kind,
                _ => segment.kind.wait_kind(),
            };
            let cpu = known_cpu(segment.cpu).filter(|_| segment.kind.has_cpu());
            let thread = self.lanes.get(&segment.thread).copied().unwrap_or(0);
            let ns = *ns as i64;
            match self.drawn.segments.last_mut() {
                Some(last) if (last.context, last.thread, last.state, last.cpu) == (*context, thread, state, cpu) => {
                    last.ns += ns;
                }
                _ => {
                    let segment = TimelineSegment { start_ns: at, ns, thread, state, cpu, context: *context };
                    self.drawn.segments.push(segment);
                }
            }
            at += ns;
        }
    }
}
