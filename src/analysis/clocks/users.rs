//! Fits the clock of a user-space trace to the clock of its host's kernel trace, by the CPUs on which its events ran.
//!
//! In: a user-space trace that shares no clock with the only kernel trace of its host, and the running threads of each
//! CPU from that kernel trace. Out: the offset, with its bound. A user-space event of a thread can only have happened
//! while that thread ran on the event's CPU, outside its system calls. So every event allows some offsets and forbids
//! the others. Each offset that the most events allow, or nearly as many, may be the true one: often these are
//! intervals a few microseconds apart, because a thread makes calls in between. The result is one in the middle of
//! them, and its bound is the distance to the farthest of the others: small where threads run irregularly, several
//! periods where they run periodically. Where fewer than [`AGREE`] percent of the events allow any common offset,
//! nothing is fitted.
//!
//! The two clocks count on one machine, so no drift is fitted. Cost: a kernel pass of its own over the host's kernel
//! trace, and a sort of at most [`MOST`] intervals of offsets. ALGORITHMS.md section 4.5.

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::task::{Delimiter, Pairing, TaskDefinition};
use crate::input::Trace;
use crate::input::record::StreamId;
use crate::kernel::{Options, record};
use crate::reading::batch::Batch;
use crate::reading::bind::{Binder, Binding};
use crate::timeline::questions::Asker;
use foldhash::HashMap;

/// Packets of each stream that are read.
const PACKETS: usize = 32;
/// Largest number of events that are used.
const EVENTS: usize = 2048;
/// Largest number of intervals of offsets that are sorted.
const MOST: usize = 1 << 22;
/// Smallest number of events for a fit.
const FEWEST: usize = 8;
/// Percentage of the events that must allow the offset.
const AGREE: usize = 90;

/// A fitted clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fitted {
    /// To add to its times.
    pub offset: Ns,
    /// Bound of the error of `offset`.
    pub error: Ns,
}

/// The spans in which threads ran in user mode, by CPU and thread id in the innermost namespace.
#[derive(Debug, Default)]
pub(super) struct UserRuns(HashMap<(u16, i32), Vec<Span>>);

impl UserRuns {
    /// The runs in the kernel traces of one host.
    pub fn of(kernel: &[&Trace], ctx: &Ctx) -> Result<UserRuns, Cancelled> {
        let (timeline, _) = record(kernel, &[], &Options::default(), ctx)?;
        let mut found = UserRuns::default();
        let reader = timeline.reader(Asker::Clocks);
        for (host, cpu) in timeline.cpus() {
            for run in reader.runs(host, cpu).all() {
                let Some(thread) = timeline.thread(run.thread).filter(|thread| !thread.idle) else { continue };
                let tid = thread.virtual_ids.map_or(thread.tid, |ids| ids.tid);
                let spans = found.0.entry((u16::try_from(cpu).unwrap_or(u16::MAX), tid)).or_default();
                let mut from = run.span.start;
                for call in reader.calls(run.thread).within(run.span) {
                    spans.extend(Some(Span::new(from, call.span.start)).filter(|s| s.start < s.end));
                    from = from.max(call.span.end);
                }
                spans.extend(Some(Span::new(from, run.span.end)).filter(|s| s.start < s.end));
            }
        }
        Ok(found)
    }

    /// The offset that most events of `user` allow.
    pub fn fit(&self, user: &[&Trace]) -> Option<Fitted> {
        let mut events: Vec<(Timestamp, &Vec<Span>)> = Vec::new();
        for trace in user {
            events.extend(
                sample(trace).into_iter().filter_map(|event| Some((event.time, self.0.get(&(event.cpu, event.tid))?))),
            );
        }
        events.sort_unstable_by_key(|(t, _)| *t);
        let mut intervals: usize = events.iter().map(|(_, spans)| spans.len()).sum();
        while intervals > MOST || events.len() > EVENTS {
            let mut keep = false;
            events.retain(|_| {
                keep = !keep;
                keep
            });
            intervals = events.iter().map(|(_, spans)| spans.len()).sum();
        }
        let spans = |(t, spans): &(Timestamp, &Vec<Span>)| {
            let t = *t;
            spans.iter().map(move |s| (s.start.since(t), s.end.since(t))).collect::<Vec<_>>()
        };
        let allowed: Vec<Vec<(Ns, Ns)>> = events.iter().map(spans).collect();
        most_allowed(&allowed)
    }
}

/// An event of a user-space trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SampledEvent {
    time: Timestamp,
    cpu: u16,
    /// Thread id as the event has it.
    tid: i32,
}

/// Some events of a user-space trace, distributed over it.
fn sample(trace: &Trace) -> Vec<SampledEvent> {
    let delimiter = |event: String| Delimiter { event, key: Vec::new(), conditions: Vec::new() };
    let any = TaskDefinition {
        name: String::new(),
        begins: trace.classes().iter().map(|class| delimiter(class.name.clone())).collect(),
        ends: Vec::new(),
        pairing: Pairing::Thread,
        kind: None,
        nest: false,
        process: None,
    };
    let binding = Binding::new(trace, &[any]);
    let plan = trace.compile(&binding.projection);
    let mut found = Vec::new();
    for (number, stream) in trace.streams().iter().enumerate() {
        for packet in (0..stream.packets.len()).step_by((stream.packets.len() / PACKETS).max(1)) {
            let (mut batch, mut events) = (Batch::default(), Vec::new());
            let mut binder = Binder::new(&binding, 0);
            let mut reader = trace.reader(&plan, StreamId::at(number), packet..packet + 1);
            while let Some(record) = reader.next() {
                binder.read(&record, &mut batch, &mut events);
            }
            let tid = |who| batch.context(who).and_then(|identity| identity.vtid.or(identity.tid));
            found.extend(
                events
                    .iter()
                    .filter_map(|event| Some(SampledEvent { time: event.time, cpu: event.cpu, tid: tid(event.who)? })),
            );
        }
    }
    found.dedup();
    found
}

/// An interval of offsets, and the number of events that allow them.
#[derive(Clone, Copy, Debug)]
struct AllowedOffsets {
    events: i32,
    from: Ns,
    to: Ns,
}

/// The best offset: one that the most events allow, in the middle of all that nearly as many allow. `events` has the
/// half-open, disjoint intervals of offsets that each event allows. `None` where events are too few or do not agree.
fn most_allowed(events: &[Vec<(Ns, Ns)>]) -> Option<Fitted> {
    let mut changes: Vec<(Ns, i32)> = Vec::new();
    events.iter().flatten().for_each(|(from, to)| changes.extend([(*from, 1), (*to, -1)]));
    changes.sort_unstable();
    let mut allowed: Vec<AllowedOffsets> = Vec::new();
    let (mut count, mut most) = (0, 0);
    for pair in changes.windows(2) {
        count += pair[0].1;
        most = most.max(count);
        if is_near(count, most) && pair[0].0 < pair[1].0 {
            allowed.push(AllowedOffsets { events: count, from: pair[0].0, to: pair[1].0 });
        }
    }
    if (most as usize) < FEWEST || (most as usize) * 100 < events.len() * AGREE {
        return None;
    }
    allowed.retain(|offsets| is_near(offsets.events, most));
    let (from, to) = (allowed.first()?.from, allowed.last()?.to);
    let middle = from.midpoint(to);
    // The middle of one interval, not of all: between two intervals the threads of the events did not run.
    let best = allowed.iter().filter(|offsets| offsets.events == most).map(|offsets| offsets.from.midpoint(offsets.to));
    let offset = best.min_by_key(|offset| offset.abs_diff(middle))?;
    let error = offset.saturating_sub(from).max(to.saturating_sub(offset));
    Some(Fitted { offset, error: error.max(1) })
}

/// True where nearly as many events allow an offset as the most: it may be the true one as well.
fn is_near(count: i32, most: i32) -> bool {
    i64::from(count) * 50 >= i64::from(most) * 49
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_allowed_gives_the_offset_with_its_bound() {
        // A thread runs for 10 in every 100, or a little more; events in the first half of each run; ahead by 1,000.
        let runs: Vec<Span> = (0..40).map(|i| Span::of_ns(i * 100 + i * i, i * 100 + i * i + 10)).collect();
        let allowed = |t: i64| runs.iter().map(|s| (s.start.ns() - t, s.end.ns() - t)).collect::<Vec<_>>();
        let mut events: Vec<_> = (0..40).map(|i| allowed(i * 100 + i * i + i % 5 + 1_000)).collect();
        assert_eq!(most_allowed(&events), Some(Fitted { offset: -997, error: 3 }));
        // One contradicting event does no harm; few events give no result.
        events.push(vec![(5, 6)]);
        assert_eq!(most_allowed(&events).map(|f| f.offset), Some(-997));
        assert_eq!(most_allowed(&events[..5]), None);
        // Offsets that a call separates are near each other: their distance is the bound.
        let call = |t: i64| {
            runs.iter()
                .flat_map(move |s| [(s.start.ns() - t, s.start.ns() + 4 - t), (s.start.ns() + 7 - t, s.end.ns() - t)])
        };
        let events: Vec<_> = (0..40).map(|i| call(i * 100 + i * i + i % 2 + 1_000).collect()).collect();
        assert_eq!(most_allowed(&events), Some(Fitted { offset: -998, error: 7 }));
        // Regular runs allow offsets that are periods apart: so is the bound.
        let regular = |t: i64| (0..40).map(|i| (i * 100 - t, i * 100 + 10 - t)).collect::<Vec<_>>();
        let events: Vec<_> = (10..30).map(|i| regular(i * 100 + 1)).collect();
        let fitted = most_allowed(&events).unwrap();
        assert!(fitted.error >= 1_000, "{fitted:?}");
        // Events that each allow other offsets do not agree.
        let apart: Vec<_> = (0..40).map(|i| vec![(i * 100, i * 100 + 10)]).collect();
        assert_eq!(most_allowed(&apart), None);
    }
}
