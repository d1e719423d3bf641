//! The ranks of a run, and their threads, as lines of a timeline: their states, and the regions in which they are.
//!
//! In: operations with innermost regions, clocks. Out: a [`RecordedTimeline`], whose thread *n* is stream *n*. A call
//! that communicates is `blocked` until the last thing that it needs has happened, with the late stream as its waker,
//! and transfers (`network`) from then on; where nothing of what it needs is recorded, all of it is `blocked` without a
//! waker. The rest of a wait within a process, and all other time, is `running`. Regions are the rows of system calls.
//! Rows are made by all workers, some operations of a stream at a time, and become leaves in order of the streams.
//! Cost: linear, and a search per call that waits. ALGORITHMS.md 9.9.

use super::wait_states::{RankWait, find};
use crate::analysis::offsets::fit;
use crate::analysis::patterns::rendezvous;
use crate::analysis::patterns::triggers::{LastWait, Triggers};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::heap::MemoryPart;
use crate::base::parallel::in_order;
use crate::base::time::{Span, Timestamp};
use crate::event::host::{HostId, TraceOrigin};
use crate::event::kind::Event;
use crate::event::operation::{Operation, OperationPlace, Operations, Sequence};
use crate::event::prev_state::Generation;
use crate::model::carrier::Carrier;
use crate::model::event_kind::EventKind;
use crate::model::facts::Quality;
use crate::model::wait_state::WaitState;
use crate::timeline::store::pool::LeafPool;
use crate::timeline::store::row_builders::RowBuilders;
use crate::timeline::{
    Call, Host, RecordedTimeline, Segment, SegmentKind, Tables, Thread, ThreadDraft, ThreadId, ThreadName, ThreadRows,
    TimelineDraft, Waker,
};
use foldhash::HashSet;
use std::ops::Range;

/// Operations of which a worker makes rows at once.
const AT_ONCE: usize = 1 << 13;

/// The timeline of a run on this machine.
pub fn timeline(mut operations: Operations, host: &str, ctx: &Ctx) -> Result<RecordedTimeline, Cancelled> {
    let clocks = fit(&operations);
    rendezvous::find(&mut operations, &clocks, ctx)?;
    let waits = find(&operations, &clocks, ctx)?;
    let pool = LeafPool::within(ctx, 0)?;
    let lines = Lines { operations: &operations, triggers: Triggers::new(&operations, &clocks), waits: &waits };
    let mut units: Vec<(u32, Range<usize>)> = Vec::new();
    for (stream, sequence) in (0_u32..).zip(&operations.sequences) {
        let count = sequence.operations.len();
        // Without operations: one unit, for its regions.
        let unit = |from: usize| (stream, from..(from + AT_ONCE).min(count));
        units.extend((0..count.max(1)).step_by(AT_ONCE).map(unit));
    }
    let mut builders = RowBuilders { pool: pool.clone(), ..RowBuilders::default() };
    ctx.progress.enter("states", units.len() as u64);
    let rows = |unit: usize| units.get(unit).map(|(stream, own)| (*stream as usize, lines.rows(*stream, own.clone())));
    in_order(ctx, units.len(), rows, |_, made| {
        ctx.progress.step(1);
        made.into_iter().for_each(|(stream, rows)| builders.push_thread(stream, rows));
    })?;
    ctx.progress.parts.hold(MemoryPart::OpenRows, builders.open_bytes().all);
    let mut timeline = lines.draft(host).recorded(builders);
    timeline.count_questions(ctx.questions.clone());
    timeline.leave_room_for_results(pool.as_ref(), ctx);
    timeline.hold(&ctx.progress.parts);
    Ok(timeline)
}

/// The streams of a run on the common time line.
struct Lines<'a> {
    operations: &'a Operations,
    triggers: Triggers<'a>,
    /// By place.
    waits: &'a [RankWait],
}

impl Lines<'_> {
    /// From its first record to its last, or the end of its last operation.
    fn life(&self, stream: u32) -> Span {
        let sequence = self.sequence(stream);
        let clock = self.triggers.clock(stream);
        let (regions, operations) = (&sequence.regions, &sequence.operations);
        let starts = regions.first().map(|first| first.time).into_iter().chain(operations.first().map(|o| o.start));
        let ends = regions.last().map(|last| last.time).into_iter().chain(operations.last().map(|o| o.end));
        let bounds = starts.min().zip(ends.max());
        let common = |(start, end)| Span::new(clock.common(start), clock.common(end));
        bounds.map_or(Span::new(Timestamp::ZERO, Timestamp::ZERO), common)
    }

    fn sequence(&self, stream: u32) -> &Sequence {
        // Every caller numbers the streams that there are.
        &self.operations.sequences[stream as usize]
    }

    /// The rows of some operations of a stream, with the time after each up to the next one; the first ones have the
    /// time before, too.
    fn rows(&self, stream: u32, own: Range<usize>) -> ThreadRows {
        let sequence = self.sequence(stream);
        let local = |at: usize| sequence.operations.get(at).map(|operation| operation.start);
        let from = local(own.start).filter(|_| own.start > 0).unwrap_or(Timestamp::MIN);
        let until = local(own.end).unwrap_or(Timestamp::MAX);
        let calls = self.calls(stream, Span::new(from, until));
        ThreadRows { segments: self.segments(stream, own), calls, ..ThreadRows::default() }
    }

    /// The regions that begin in a span of the stream's own clock.
    fn calls(&self, stream: u32, begin_in: Span) -> Vec<Call> {
        let clock = self.triggers.clock(stream);
        let changes = &self.sequence(stream).regions;
        let first = changes.partition_point(|change| change.time < begin_in.start);
        let own = changes.iter().zip(changes.iter().skip(1)).skip(first);
        let own = own.take_while(|(change, _)| change.time < begin_in.end);
        let call = |name, from, until| Call {
            span: Span::new(clock.common(from), clock.common(until)),
            name,
            ret: None,
            descriptor: None,
        };
        let calls = own.filter_map(|(change, next)| Some(call(change.region?, change.time, next.time)));
        calls.filter(|call| !call.span.is_empty()).collect()
    }

    fn segments(&self, stream: u32, own: Range<usize>) -> Vec<Segment> {
        let sequence = self.sequence(stream);
        let life = self.life(stream);
        let start_of = |operation: &Operation| self.triggers.span(stream, operation).start;
        let Some(first) = sequence.operations.get(own.start) else { return Vec::new() };
        let from = if own.start == 0 { life.start } else { start_of(first) };
        let mut states = States { rows: Vec::new(), at: from };
        let place = |at: usize| OperationPlace { stream, operation: at as u32 };
        let mut waits = &self.waits[self.waits.partition_point(|wait| wait.place < place(own.start))..];
        let mut last = LastWait::default();
        for (at, operation) in sequence.operations.iter().enumerate().take(own.end).skip(own.start) {
            let span = self.triggers.span(stream, operation);
            states.until(span.start, SegmentKind::Running, None);
            let here = waits.iter().take_while(|wait| wait.place == place(at)).count();
            let (those, others) = waits.split_at(here);
            waits = others;
            let late = those.iter().filter(|wait| wait.kind != WaitState::Completion);
            if let Some(RankWait { until, cause, .. }) = late.max_by_key(|wait| (wait.until, wait.cause)) {
                let waker = Waker { thread: ThreadId::at(cause.stream as usize), at: *until };
                states.until(*until, SegmentKind::Blocked, Some(waker));
            }
            let rest = match EventKind::from(operation.kind).waits() {
                false => SegmentKind::Running,
                true => match self.triggers.after(&mut last, place(at), span.end) {
                    Some(trigger) if is_between_ranks(trigger.carrier) => SegmentKind::Network,
                    Some(_) => SegmentKind::Running,
                    None => SegmentKind::Blocked,
                },
            };
            states.until(span.end, rest, None);
        }
        let until = sequence.operations.get(own.end).map_or(life.end, start_of);
        states.until(until, SegmentKind::Running, None);
        states.rows
    }

    /// The tables and threads of the timeline, without rows.
    fn draft(&self, host: &str) -> TimelineDraft {
        let mut tables = Tables { names: self.operations.names.clone(), of_ranks: true, ..Tables::default() };
        let host_name = tables.names.intern(host);
        tables.hosts.push(Host { name: host_name, kernel_release: None });
        tables.quality.push(Quality::default());
        let host = HostId::at(0);
        tables.traces.push(TraceOrigin { host, kernel: false, generation: Generation::Unknown });
        let mut taken: HashSet<String> = HashSet::default();
        let mut threads = Vec::new();
        let mut bounds: Option<Span> = None;
        for (stream, sequence) in (0_u32..).zip(&self.operations.sequences) {
            let label = sequence.label();
            let others = (2..).map(|n| format!("{label}~{n}"));
            let mut names = std::iter::once(label.to_owned()).chain(others);
            let name = names.find(|name| taken.insert(name.clone())).unwrap_or_default();
            let life = self.life(stream);
            if !life.is_empty() {
                let all = bounds.unwrap_or(life);
                bounds = Some(Span::new(all.start.min(life.start), all.end.max(life.end)));
            }
            let mut thread = Thread::new(host, stream as i32, life);
            thread.names.push(ThreadName { from: life.start, name: tables.names.intern(&name) });
            threads.push(ThreadDraft { thread, rows: ThreadRows::default() });
        }
        tables.span = bounds.unwrap_or(Span::new(Timestamp::ZERO, Timestamp::ZERO));
        TimelineDraft { tables, threads, ..TimelineDraft::default() }
    }
}

/// What arrived came from another rank, so that it had to be transferred.
fn is_between_ranks(carrier: Carrier) -> bool {
    use Carrier::{Collective, Complete, FlowControl, Message, Post, Rendezvous};
    matches!(carrier, Collective | Complete | FlowControl | Message | Post | Rendezvous)
}

/// States of a stream, one after the other.
struct States {
    rows: Vec<Segment>,
    /// The end of the last.
    at: Timestamp,
}

impl States {
    /// The next state, up to a moment.
    fn until(&mut self, end: Timestamp, kind: SegmentKind, waker: Option<Waker>) {
        if end <= self.at {
            return;
        }
        let span = Span::new(self.at, end);
        self.at = end;
        match self.rows.last_mut().filter(|last| (last.kind, last.waker, waker) == (kind, None, None)) {
            Some(last) => last.span.end = end,
            None => self.rows.push(Segment { span, kind, waker, qualifier: None, cpu: Event::NO_CPU.into() }),
        }
    }
}
