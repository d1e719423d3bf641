//! Rows that a worker has made of a chunk, on their way to leaves.
//!
//! In: rows of parts of threads and CPUs, with the worker's ids. Out: the same with the ids of the machine. A few,
//! those that later events may read or change, become rows of the machine's threads at once. All others stay where they
//! are: the slab that they belong to notes their place, and the worker that makes leaves of it copies them with their
//! new ids. So the stage that joins chunks in order does not touch them. Cost: constant for each part, a search in its
//! segments, and a copy of the rows that are not settled.
//!
//! Rows that go to a slab before its moment are those that would go there at that moment: what is settled stays so.

use super::cpu::{Cpu, CpuId};
use super::prepared::{CpuPart, ThreadPart, is_sender, sender_number};
use super::sealed_rows::NEAR;
use super::thread_state::{Label, OpenCall, ThreadState};
use crate::base::names::NameId;
use crate::base::time::Timestamp;
use crate::event::stack::{RawStackId, SampleWeight};
use crate::timeline::store::builder::RowSource;
use crate::timeline::store::row_builders::RowBuilders;
use crate::timeline::{Call, CpuRun, Segment, StackSample, ThreadId, ThreadName, Waker};
use get_size2::GetSize;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Fewer settled rows than this become rows of the machine's thread all the same: a note costs more.
const LEAST: usize = 8;

/// The rows of all parts.
#[derive(Clone, Debug, Default, GetSize)]
pub(super) struct PreparedRows {
    pub segments: Vec<Segment>,
    pub calls: Vec<Call>,
    pub samples: Vec<StackSample>,
    pub names: Vec<ThreadName>,
    pub runs: Vec<CpuRun>,
}

impl PreparedRows {
    /// Its memory, for another batch.
    pub fn emptied(mut self) -> PreparedRows {
        self.segments.clear();
        self.calls.clear();
        self.samples.clear();
        self.names.clear();
        self.runs.clear();
        self
    }
}

/// The ids of the machine for those of a worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    pub names: Vec<NameId>,
    pub threads: Vec<ThreadId>,
    pub cpus: Vec<Option<CpuId>>,
    /// By number of the receive.
    pub senders: Vec<Option<Waker>>,
}

impl Ids {
    #[inline]
    pub fn name(&self, name: NameId) -> NameId {
        self.names.get(name.index()).copied().unwrap_or(name)
    }

    #[inline]
    pub fn thread(&self, thread: ThreadId) -> ThreadId {
        self.threads.get(thread.index()).copied().unwrap_or(thread)
    }

    pub fn waker(&self, waker: Waker) -> Option<Waker> {
        if is_sender(waker.thread) {
            *self.senders.get(sender_number(waker.thread))?
        } else {
            Some(Waker { thread: self.thread(waker.thread), ..waker })
        }
    }

    pub fn label(&self, label: Label) -> Label {
        Label {
            waker: label.waker.and_then(|waker| self.waker(waker)),
            qualifier: label.qualifier.map(|name| self.name(name)),
            ..label
        }
    }

    pub fn open_call(&self, call: OpenCall) -> OpenCall {
        OpenCall { name: self.name(call.name), ..call }
    }

    fn segment(&self, segment: &Segment) -> Segment {
        Segment {
            waker: segment.waker.and_then(|waker| self.waker(waker)),
            qualifier: segment.qualifier.map(|name| self.name(name)),
            ..*segment
        }
    }

    fn call(&self, call: &Call) -> Call {
        Call { name: self.name(call.name), ..*call }
    }

    /// `stacks` has the machine's stacks by the batch's.
    fn sample(&self, sample: &StackSample, stacks: &[Option<RawStackId>]) -> StackSample {
        let known = |id: Option<RawStackId>| *stacks.get(id?.index())?;
        let named = |weight: SampleWeight| SampleWeight { event: self.name(weight.event), ..weight };
        let weight = sample.weight.get().map(named).into();
        StackSample { user: known(sample.user), kernel: known(sample.kernel), weight, ..*sample }
    }

    fn run(&self, run: &CpuRun) -> CpuRun {
        CpuRun { thread: self.thread(run.thread), ..*run }
    }
}

/// The ids of rows in slabs: no row has one that is added later.
#[derive(Debug, Default)]
struct RowIds {
    ids: Ids,
    stacks: Vec<Option<RawStackId>>,
}

/// The rows of a chunk, which slabs may read.
#[derive(Debug, Default)]
pub(super) struct WorkerRows {
    pub rows: PreparedRows,
    ids: Mutex<Arc<RowIds>>,
}

impl WorkerRows {
    /// Rows whose ids are not known yet.
    pub fn new(rows: PreparedRows) -> Arc<WorkerRows> {
        Arc::new(WorkerRows { rows, ids: Mutex::default() })
    }

    /// The ids of all rows that slabs have got so far.
    pub fn set_ids(&self, ids: Ids, stacks: Vec<Option<RawStackId>>) {
        *self.ids.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(RowIds { ids, stacks });
    }

    fn ids(&self) -> Arc<RowIds> {
        Arc::clone(&self.ids.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Some rows.
fn some<R>(rows: &[R], range: Range<u32>) -> &[R] {
    rows.get(range.start as usize..range.end as usize).unwrap_or(&[])
}

impl RowSource<Segment> for WorkerRows {
    fn copy(&self, rows: Range<u32>, into: &mut Vec<Segment>) {
        let RowIds { ids, .. } = &*self.ids();
        into.extend(some(&self.rows.segments, rows).iter().map(|segment| ids.segment(segment)));
    }
}

impl RowSource<Call> for WorkerRows {
    fn copy(&self, rows: Range<u32>, into: &mut Vec<Call>) {
        let RowIds { ids, .. } = &*self.ids();
        into.extend(some(&self.rows.calls, rows).iter().map(|call| ids.call(call)));
    }
}

impl RowSource<StackSample> for WorkerRows {
    fn copy(&self, rows: Range<u32>, into: &mut Vec<StackSample>) {
        let RowIds { ids, stacks } = &*self.ids();
        into.extend(some(&self.rows.samples, rows).iter().map(|sample| ids.sample(sample, stacks)));
    }
}

impl RowSource<CpuRun> for WorkerRows {
    fn copy(&self, rows: Range<u32>, into: &mut Vec<CpuRun>) {
        let RowIds { ids, .. } = &*self.ids();
        into.extend(some(&self.rows.runs, rows).iter().map(|run| ids.run(run)));
    }
}

/// True if two neighbours may turn out to be one wait: the sender of a packet by which one ended may be unknown to the
/// machine, too.
pub(super) fn may_join(segments: &[Segment]) -> bool {
    let is_open = |segment: &Segment| segment.waker.is_some_and(|waker| is_sender(waker.thread));
    segments.windows(2).any(|pair| {
        let [before, after] = pair else { return false };
        is_open(after)
            && before.span.end == after.span.start
            && before.kind == after.kind
            && (before.waker.is_none() || is_open(before))
    })
}

/// The rows of a part, and what is needed to take them.
pub(super) struct TakenRows<'a> {
    pub rows: &'a Arc<WorkerRows>,
    pub ids: &'a Ids,
    /// By the batch's.
    pub stacks: &'a [Option<RawStackId>],
}

impl ThreadState {
    /// Take the rows of a part, once its slots are set: `since` is the start of the segment that was open before. Where
    /// rows may go to the store, `into` gets those that are settled.
    pub(super) fn take_rows(
        &mut self,
        (line, since): (usize, Timestamp),
        part: &ThreadPart,
        taken: &TakenRows<'_>,
        into: Option<&mut RowBuilders>,
    ) {
        let TakenRows { rows, ids, stacks } = *taken;
        let (mut segments, mut calls, mut samples) = (part.segments.clone(), part.calls.clone(), part.samples.clone());
        let first = segments.next().and_then(|first| rows.rows.segments.get(first));
        first.into_iter().for_each(|first| self.add_first_segment(ids.segment(first), since));
        if let Some(into) = into {
            let settled = self.settled_of(part, &rows.rows);
            if settled >= LEAST {
                let until = part.segments.start + settled;
                let all = self.rows.segments.len();
                self.seal_segments(line, all, into);
                self.sealed.stored += until - segments.start;
                into.segments.push_from(line, Arc::clone(rows) as _, segments.start..until);
                segments.start = until;
            }
            if calls.len() > LEAST {
                let all = self.rows.calls.len();
                self.seal_calls(line, all, into);
                self.thread.runs_program();
                into.calls.push_from(line, Arc::clone(rows) as _, calls.start..calls.end - 1);
                calls.start = calls.end - 1;
            }
            if samples.len() > LEAST {
                let first = samples.next().and_then(|first| rows.rows.samples.get(first));
                self.rows.samples.extend(first.map(|first| ids.sample(first, stacks)));
                let all = self.rows.samples.len();
                self.seal_samples(line, all, into);
                into.samples.push_from(line, Arc::clone(rows) as _, samples.start..samples.end - 1);
                samples.start = samples.end - 1;
            }
        }
        let of = &rows.rows;
        self.rows.segments.reserve(segments.len());
        for segment in of.segments.get(segments).unwrap_or(&[]) {
            self.add_segment(ids.segment(segment));
        }
        self.rows.calls.extend(of.calls.get(calls).unwrap_or(&[]).iter().map(|call| ids.call(call)));
        let samples = of.samples.get(samples).unwrap_or(&[]);
        self.rows.samples.extend(samples.iter().map(|sample| ids.sample(sample, stacks)));
    }

    /// Number of segments of a part that no later event reads or changes. An ended thread that runs on may still
    /// relabel those of its last call.
    fn settled_of(&self, part: &ThreadPart, rows: &PreparedRows) -> usize {
        let segments = rows.segments.get(part.segments.clone()).unwrap_or(&[]);
        if segments.len() <= LEAST || part.may_join {
            return 0;
        }
        let last_call = rows.calls.get(part.calls.clone()).and_then(|calls| calls.last());
        let since = match (self.call, last_call.or(self.rows.calls.last())) {
            (Some(OpenCall { since, .. }), _) => since,
            (None, Some(last)) => last.span.end,
            (None, None) => Timestamp::MIN,
        };
        let settled = segments.partition_point(|segment| segment.span.end <= since);
        settled.max(segments.len().saturating_sub(NEAR)).min(segments.len() - 1)
    }

    /// Put rows that were taken back in front of the others.
    pub(super) fn take_back(&mut self, segments: Vec<Segment>) {
        self.sealed.stored -= segments.len();
        self.rows.segments.splice(0..0, segments);
    }
}

impl Cpu {
    /// Take the runs of a part, before its slots are set; `into` gets them where rows may go to the store.
    pub(super) fn take_runs(
        &mut self,
        line: usize,
        part: &CpuPart,
        taken: &TakenRows<'_>,
        into: Option<&mut RowBuilders>,
    ) {
        let mut runs = part.runs.clone();
        let all = &taken.rows.rows.runs;
        let first = runs.next().and_then(|first| all.get(first)).map(|first| taken.ids.run(first));
        first.into_iter().for_each(|first| self.add_first_run(first));
        match into {
            Some(into) if runs.len() >= LEAST => {
                into.runs.push(line, &self.runs);
                self.runs.clear();
                into.runs.push_from(line, Arc::clone(taken.rows) as _, runs);
            }
            _ => self.runs.extend(all.get(runs).unwrap_or(&[]).iter().map(|run| taken.ids.run(run))),
        }
    }
}
