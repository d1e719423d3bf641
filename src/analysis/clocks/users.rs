//! The clock of a user-space trace on that of its host's kernel, by where its events ran.
//!
//! In: a user-space trace that shares no clock with the one kernel trace of its host, and what that kernel says of who
//! ran where. Out: the offset, with its bound. A user-space event of a thread can only have happened while that thread
//! had the event's CPU, outside its system calls. So every event allows some offsets and forbids the others. Those that
//! most events allow, or nearly as many, may all be the truth: often stretches of time a few microseconds apart,
//! because a thread makes calls in between. One in the middle of them is taken, and how far the others reach from it is
//! the bound: small where threads run irregularly, periods long where they run like a clock. Where fewer than [`AGREE`]
//! in a hundred of the events allow any, nothing is fitted.
//!
//! The two clocks count on one machine: no drift is looked for. Cost: a kernel pass of its own over the host's kernel
//! trace, and a sort of at most [`MOST`] stretches. ALGORITHMS.md section 4.5.

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::task::{Delimiter, Pairing, TaskDefinition};
use crate::input::Trace;
use crate::input::record::StreamId;
use crate::reading::batch::Batch;
use crate::reading::bind::{Binder, Binding};
use crate::state::kernel::{Options, record};
use crate::state::timeline::CpuTimeline;
use foldhash::HashMap;

/// Packets of each stream that are looked at, and events of all.
const PACKETS: usize = 32;
const EVENTS: usize = 2048;
/// Stretches of time that are sorted.
const MOST: usize = 1 << 22;
/// Events that a fit needs, and how many in a hundred must allow it.
const FEWEST: usize = 8;
const AGREE: usize = 90;

/// A fitted clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fitted {
    /// What is to be added to its times.
    pub offset: Ns,
    /// How far that may be off.
    pub error: Ns,
}

/// When threads ran in user mode, by CPU and thread id as user space sees it.
#[derive(Debug, Default)]
pub(super) struct Ran(HashMap<(u16, i32), Vec<Span>>);

impl Ran {
    /// What the kernel traces of one host say.
    pub fn of(kernel: &[&Trace], ctx: &Ctx) -> Result<Ran, Cancelled> {
        let (recording, _) = record(kernel, &[], &Options::default(), ctx)?;
        let mut ran = Ran::default();
        for CpuTimeline { cpu, runs, .. } in &recording.cpus {
            for run in runs {
                let Some(thread) = recording.thread(run.thread).filter(|thread| !thread.idle) else { continue };
                let tid = thread.virtual_ids.map_or(thread.tid, |ids| ids.tid);
                let stretches = ran.0.entry((u16::try_from(*cpu).unwrap_or(u16::MAX), tid)).or_default();
                let mut from = run.span.start;
                let first = thread.calls.partition_point(|call| call.span.end <= run.span.start);
                for call in thread.calls[first..].iter().take_while(|call| call.span.start < run.span.end) {
                    stretches.extend(Some(Span::new(from, call.span.start)).filter(|s| s.start < s.end));
                    from = from.max(call.span.end);
                }
                stretches.extend(Some(Span::new(from, run.span.end)).filter(|s| s.start < s.end));
            }
        }
        Ok(ran)
    }

    /// The offset that most events of `user` allow.
    pub fn fit(&self, user: &[&Trace]) -> Option<Fitted> {
        let mut events: Vec<(Timestamp, &Vec<Span>)> = Vec::new();
        for trace in user {
            events.extend(sample(trace).into_iter().filter_map(|(t, cpu, tid)| Some((t, self.0.get(&(cpu, tid))?))));
        }
        events.sort_unstable_by_key(|(t, _)| *t);
        let mut stretches: usize = events.iter().map(|(_, spans)| spans.len()).sum();
        while stretches > MOST || events.len() > EVENTS {
            let mut keep = false;
            events.retain(|_| {
                keep = !keep;
                keep
            });
            stretches = events.iter().map(|(_, spans)| spans.len()).sum();
        }
        let spans = |(t, spans): &(Timestamp, &Vec<Span>)| {
            let t = *t;
            spans.iter().map(move |s| (s.start.since(t), s.end.since(t))).collect::<Vec<_>>()
        };
        let allowed: Vec<Vec<(Ns, Ns)>> = events.iter().map(spans).collect();
        most_allowed(&allowed)
    }
}

/// Some events of a user-space trace, spread over it: time, CPU and thread id.
fn sample(trace: &Trace) -> Vec<(Timestamp, u16, i32)> {
    let delimiter = |event: String| Delimiter { event, key: Vec::new(), conditions: Vec::new() };
    let any = TaskDefinition {
        name: String::new(),
        begins: trace.classes().iter().map(|class| delimiter(class.name.clone())).collect(),
        ends: Vec::new(),
        pairing: Pairing::Thread,
        kind: None,
        nest: false,
    };
    let binding = Binding::new(trace, &[any]);
    let plan = trace.compile(&binding.projection);
    let mut found = Vec::new();
    for (stream, told) in trace.streams().iter().enumerate() {
        for packet in (0..told.packets.len()).step_by((told.packets.len() / PACKETS).max(1)) {
            let (mut batch, mut events) = (Batch::default(), Vec::new());
            let mut binder = Binder::new(&binding, 0);
            let mut reader = trace.reader(&plan, StreamId::at(stream), packet..packet + 1);
            while let Some(record) = reader.next() {
                binder.read(&record, &mut batch, &mut events);
            }
            let tid = |who| batch.context(who).and_then(|identity| identity.vtid.or(identity.tid));
            found.extend(events.iter().filter_map(|event| Some((event.time, event.cpu, tid(event.who)?))));
        }
    }
    found.dedup();
    found
}

/// By event the offsets that it allows, half-open and apart. One that most events allow, amid all that nearly as many
/// do; `None` where they are too few or do not agree.
fn most_allowed(events: &[Vec<(Ns, Ns)>]) -> Option<Fitted> {
    let mut changes: Vec<(Ns, i32)> = Vec::new();
    events.iter().flatten().for_each(|(from, to)| changes.extend([(*from, 1), (*to, -1)]));
    changes.sort_unstable();
    let mut places: Vec<(i32, Ns, Ns)> = Vec::new();
    let (mut count, mut most) = (0, 0);
    for pair in changes.windows(2) {
        count += pair[0].1;
        most = most.max(count);
        if is_near(count, most) && pair[0].0 < pair[1].0 {
            places.push((count, pair[0].0, pair[1].0));
        }
    }
    if (most as usize) < FEWEST || (most as usize) * 100 < events.len() * AGREE {
        return None;
    }
    places.retain(|(count, ..)| is_near(*count, most));
    let (from, to) = (places.first()?.1, places.last()?.2);
    let middle = from.midpoint(to);
    // Within a place: an offset that most events forbid would put them where their threads did not run.
    let best = places.iter().filter(|(count, ..)| *count == most).map(|(_, from, to)| from.midpoint(*to));
    let offset = best.min_by_key(|offset| offset.abs_diff(middle))?;
    let error = offset.saturating_sub(from).max(to.saturating_sub(offset));
    Some(Fitted { offset, error: error.max(1) })
}

/// What nearly as many events allow as the most may be the truth as well.
fn is_near(count: i32, most: i32) -> bool {
    i64::from(count) * 50 >= i64::from(most) * 49
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_that_most_events_allow_with_its_bound() {
        // A thread runs for 10 in every 100, or a little more; events in the first half of each run; ahead by 1,000.
        let runs: Vec<Span> = (0..40).map(|i| Span::of_ns(i * 100 + i * i, i * 100 + i * i + 10)).collect();
        let allowed = |t: i64| runs.iter().map(|s| (s.start.ns() - t, s.end.ns() - t)).collect::<Vec<_>>();
        let mut events: Vec<_> = (0..40).map(|i| allowed(i * 100 + i * i + i % 5 + 1_000)).collect();
        assert_eq!(most_allowed(&events), Some(Fitted { offset: -997, error: 3 }));
        // One that says something else does no harm; few say nothing.
        events.push(vec![(5, 6)]);
        assert_eq!(most_allowed(&events).map(|f| f.offset), Some(-997));
        assert_eq!(most_allowed(&events[..5]), None);
        // Those that a call keeps apart are near each other: what lies between them is the bound.
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
        // Nor do events agree that each allow something else.
        let apart: Vec<_> = (0..40).map(|i| vec![(i * 100, i * 100 + 10)]).collect();
        assert_eq!(most_allowed(&apart), None);
    }
}
