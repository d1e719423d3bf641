//! What a worker has prepared of a chunk, and how the machine takes it.
//!
//! In: the events that only the machine can step through, and, at their places among these, rows of running threads
//! that the worker has made of the other events ([`RunPart`]). Out: the machine as if it had stepped through all of
//! them. Cost: a few nanoseconds for each row.

use super::machine::{BatchIds, Machine};
use super::thread_state::{Label, OpenCall, Sched};
use crate::base::heap::{HeapSize, block};
use crate::base::time::{Span, Timestamp};
use crate::event::kind::{Context, Event, TextId, ThreadContextId};
use crate::event::stack::{RawStackId, StackOrigin};
use crate::reading::batch::Batch;
use crate::state::timeline::{Call, HostId, SegmentKind, StackSample, ThreadId};
use smallvec::SmallVec;
use std::ops::Range;

/// A call that has not returned, by ids of the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenLocalCall {
    pub since: Timestamp,
    pub name: TextId,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalCall {
    pub since: Timestamp,
    pub until: Timestamp,
    pub name: TextId,
    pub ret: i64,
}

/// A stack sample of a running thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalSample {
    pub time: Timestamp,
    pub origin: StackOrigin,
    pub user: Option<RawStackId>,
    pub kernel: Option<RawStackId>,
}

/// The time over which interrupts interrupted a thread; the outermost context.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalInterruption {
    pub from: Timestamp,
    pub to: Timestamp,
    pub context: Context,
    pub name: TextId,
}

/// The call of a thread after some of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallAfter {
    /// As before.
    Same,
    Outside,
    Inside(OpenLocalCall),
}

/// Consecutive events of the thread that runs on a CPU, as rows.
#[derive(Clone, Debug)]
pub(super) struct RunPart {
    pub host: HostId,
    pub cpu: u16,
    /// Number of events.
    pub events: u32,
    /// Time of the last.
    pub last: Timestamp,
    /// Time of the last whose context names the thread.
    pub confirmed_at: Option<Timestamp>,
    /// Contexts that describe it.
    pub contexts: SmallVec<[ThreadContextId; 2]>,
    /// Its rows among those of this lane.
    pub lane: usize,
    pub interruptions: Range<usize>,
    /// Number of interrupt handlers and soft interrupts.
    pub handlers: u64,
    pub calls: Range<usize>,
    pub samples: Range<usize>,
    pub call: CallAfter,
}

/// What comes before an event that is left.
#[derive(Clone, Copy, Debug)]
pub(super) enum Due {
    /// A text becomes a name here: names are numbered in the order of all events.
    Name(TextId),
    /// The same for a stack.
    Stack(RawStackId),
    /// The next part of a run.
    Part,
    /// The call chain that was recorded with the wake-up that follows.
    WakeChain(RawStackId),
    /// One of the moments at which rows may be sealed; all parts of runs before it have come.
    Seal,
}

/// A thing at its place among the events that are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct DueAt {
    /// Number of events before it.
    pub at: u32,
    pub due: Due,
}

/// What a worker has prepared of a batch, besides the events that it left there.
#[derive(Clone, Debug, Default)]
pub(super) struct Prepared {
    /// By place.
    pub due: Vec<DueAt>,
    pub parts: Vec<RunPart>,
    /// By lane.
    pub rows: Vec<LaneRows>,
}

/// The rows of the threads that ran on a CPU.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneRows {
    pub interruptions: Vec<LocalInterruption>,
    pub calls: Vec<LocalCall>,
    pub samples: Vec<LocalSample>,
}

impl Prepared {
    /// Its memory, for another batch.
    pub fn emptied(mut self) -> Prepared {
        self.due.clear();
        self.parts.clear();
        for rows in &mut self.rows {
            rows.interruptions.clear();
            rows.calls.clear();
            rows.samples.clear();
        }
        self
    }
}

impl HeapSize for Prepared {
    fn heap_bytes(&self) -> usize {
        let lane = |rows: &LaneRows| block(&rows.interruptions) + block(&rows.calls) + block(&rows.samples);
        block(&self.due) + block(&self.parts) + block(&self.rows) + self.rows.iter().map(lane).sum::<usize>()
    }
}

impl Machine {
    /// Step through the events of a batch, and take the rows that were made of others; batches come in order of time.
    pub(super) fn absorb_prepared(&mut self, batch: &Batch, prepared: &Prepared) {
        let mut ids = BatchIds::new(batch);
        let mut parts = prepared.parts.iter();
        let mut stepped = 0;
        for DueAt { at, due } in &prepared.due {
            let at = *at as usize;
            self.step_all(batch.events.get(stepped..at).unwrap_or(&[]), &mut ids);
            stepped = at;
            match due {
                Due::Name(text) => _ = ids.name(&mut self.out, *text),
                Due::Stack(stack) => _ = ids.stack(&mut self.out.tables.stacks, Some(*stack)),
                Due::Part => parts.next().into_iter().for_each(|part| self.add_part(part, prepared, &mut ids)),
                Due::WakeChain(stack) => ids.wake_chain = Some(*stack),
                Due::Seal => self.seal_rows(),
            }
        }
        self.step_all(batch.events.get(stepped..).unwrap_or(&[]), &mut ids);
    }

    fn step_all(&mut self, events: &[Event], ids: &mut BatchIds<'_>) {
        events.iter().for_each(|event| self.step(event, ids));
        self.unsealed_events += events.len();
    }

    /// Add the rows of the thread that runs on a CPU.
    fn add_part(&mut self, part: &RunPart, prepared: &Prepared, ids: &mut BatchIds<'_>) {
        self.end = self.end.max(part.last);
        let Some(c) = self.cpus.id(part.host, part.cpu, part.last) else { return };
        let (Some(thread), Some(rows)) = (self.cpus[c].thread, prepared.rows.get(part.lane)) else { return };
        if let Some(confirmed_at) = part.confirmed_at {
            self.cpus[c].confirm(confirmed_at);
        }
        let batch = ids.batch;
        for context in part.contexts.iter().filter_map(|who| batch.context(*who)) {
            self.describe(thread, part.last, context, ids);
        }
        if let Some(quality) = self.out.tables.quality.get_mut(part.host.index()) {
            quality.interrupts += part.handlers;
        }
        let state = &self.threads[thread];
        if state.sched == Sched::Running(c) && !state.runs_softirqs {
            let interruptions = rows.interruptions.get(part.interruptions.clone());
            self.add_interruptions(thread, part.host, interruptions.unwrap_or(&[]), ids);
        }
        let calls = rows.calls.get(part.calls.clone()).unwrap_or(&[]);
        let samples = rows.samples.get(part.samples.clone()).unwrap_or(&[]);
        let begin = self.start();
        let call = |call: &LocalCall| {
            let LocalCall { since, until, name, ret } = *call;
            Some(Call { span: Span::new(since, until), name: ids.known_name(name)?, ret: Some(ret) })
        };
        let sample = |sample: &LocalSample| {
            let LocalSample { time, origin, user, kernel } = *sample;
            let [user, kernel] = [user, kernel].map(|stack| ids.known_stack(stack));
            StackSample { time, origin, user, kernel }
        };
        let (calls, samples) = (calls.iter().filter_map(call), samples.iter().map(sample));
        self.threads[thread].add_settled(thread.index(), begin, calls, samples, &mut self.sealed);
        let open = |of: OpenLocalCall, name| OpenCall { since: of.since, name };
        match part.call {
            CallAfter::Same => {}
            CallAfter::Outside => self.threads[thread].call = None,
            CallAfter::Inside(call) => {
                self.threads[thread].call = ids.known_name(call.name).map(|name| open(call, name));
            }
        }
        self.unsealed_events += part.events as usize;
    }

    /// A thread was interrupted.
    fn add_interruptions(&mut self, thread: ThreadId, host: HostId, all: &[LocalInterruption], ids: &mut BatchIds<'_>) {
        for LocalInterruption { from, to, context, name } in all {
            let qualifier = self.handler(host, *context, *name, ids);
            let state = &mut self.threads[thread];
            state.cut(*from, Label::of(SegmentKind::Running));
            state.cut(*to, Label { qualifier, ..Label::of(SegmentKind::Interrupted) });
        }
    }
}
