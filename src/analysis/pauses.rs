//! When the whole machine stood still: stretches in which several threads had a CPU and not one of them did anything
//! that was recorded.
//!
//! A virtual machine whose host takes its CPUs away, a machine that is suspended, firmware that keeps all CPUs busy:
//! all threads stop at once, and go on later. Whatever ran then took longer, for no reason of its own. In: a recording.
//! Out: such stretches by host. Time is cut into slots. In a slot nothing happened where no thread's state, call or
//! stack changed; how much should have happened in a run of such slots follows from how often the threads that had a
//! CPU throughout do something while they run (the busiest of them left out: it may be computing). Where ten should
//! have, chance is no explanation. Threads that compute for long without an event are expected to do little, so that
//! they pause nothing. Cost: linear in edges, calls and samples. ALGORITHMS.md 7.7.

use crate::base::time::{Ns, Span};
use crate::state::timeline::{HostId, SegmentKind, Thread, Timeline};

/// Length of a slot, at least.
const SLOT: Ns = 100_000;
/// Slots of a recording, at most.
const SLOTS: Ns = 1 << 22;
/// Slots in a row, at least.
const LEAST: usize = 10;
/// Events that should have happened, at least: that none did has by chance a probability of 5 in 100,000.
const EXPECTED: f64 = 10.0;

/// Stretches in which each host stood still, in order of time.
pub fn pauses(timeline: &Timeline) -> Vec<Vec<Span>> {
    let hosts = 0..timeline.hosts.len();
    hosts
        .map(HostId::at)
        .map(|host| if timeline.is_scheduled(host) { of_host(timeline, host) } else { Vec::new() })
        .collect()
}

/// What a slot is made of.
struct Slots {
    origin: Ns,
    length: Ns,
    count: usize,
}

impl Slots {
    fn new(span: Span) -> Slots {
        let length = SLOT.max(span.len() / SLOTS);
        Slots { origin: span.start, length, count: (span.len() / length) as usize + 1 }
    }

    fn at(&self, t: Ns) -> usize {
        (t.saturating_sub(self.origin).max(0) / self.length).min(self.count as Ns - 1) as usize
    }

    fn span(&self, from: usize, to: usize) -> Span {
        let start = |slot: usize| self.origin.saturating_add(slot as Ns * self.length);
        Span::new(start(from), start(to))
    }
}

fn of_host(timeline: &Timeline, host: HostId) -> Vec<Span> {
    let slots = Slots::new(timeline.span);
    // By slot: something happened; threads that have a CPU throughout, and what they do a slot, as changes to the slot
    // before.
    let mut happened = vec![false; slots.count];
    let mut running: Vec<(usize, usize, f64)> = Vec::new();
    for thread in timeline.threads.iter().filter(|t| t.host == host && !t.idle) {
        thread.segments.iter().for_each(|segment| happened[slots.at(segment.span.start)] = true);
        thread.calls.iter().for_each(|call| {
            happened[slots.at(call.span.start)] = true;
            happened[slots.at(call.span.end)] = true;
        });
        thread.samples.iter().for_each(|sample| happened[slots.at(sample.time)] = true);
        let rate = rate(thread) * slots.length as f64;
        for segment in thread.segments.iter().filter(|e| e.kind == SegmentKind::Running) {
            let (from, to) = (slots.at(segment.span.start) + 1, slots.at(segment.span.end));
            if to >= from + LEAST {
                running.push((from, to, rate));
            }
        }
    }
    running.sort_by_key(|(from, ..)| *from);
    let mut pauses = Vec::new();
    let mut open: Vec<(usize, usize, f64)> = Vec::new();
    let mut next = 0;
    let mut at = 0;
    while at < slots.count {
        if happened[at] {
            at += 1;
            continue;
        }
        let end = (at..slots.count).find(|slot| happened[*slot]).unwrap_or(slots.count);
        while let Some(run) = running.get(next).filter(|(from, ..)| *from <= at) {
            open.push(*run);
            next += 1;
        }
        open.retain(|(_, to, _)| *to >= end);
        let (rates, busiest) =
            open.iter().fold((0.0, 0.0_f64), |(all, most), (.., rate)| (all + rate, most.max(*rate)));
        if end - at >= LEAST && open.len() >= 2 && (rates - busiest) * (end - at) as f64 >= EXPECTED {
            pauses.push(slots.span(at, end));
        }
        at = end;
    }
    pauses
}

/// What a thread does while it has a CPU that changes anything that is recorded: times per nanosecond.
fn rate(thread: &Thread) -> f64 {
    let running = thread.segments.iter().filter(|e| e.kind == SegmentKind::Running);
    let (runs, ns) = running.fold((0, 0), |(n, ns), e| (n + 1, ns + e.span.len()));
    (runs + 2 * thread.calls.len() + thread.samples.len()) as f64 / ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::TimelineBuilder;
    use crate::state::timeline::Host;

    /// Three threads that make a call every 50 us; all of them stop from 40 to 48 ms, or the first alone.
    fn builder(all: bool) -> TimelineBuilder {
        let mut builder = TimelineBuilder::new(3);
        let name = builder.0.names.intern("host");
        builder.0.hosts.push(Host { name, kernel_release: None });
        builder.0.span = Span::new(0, 100_000_000);
        builder.runs(&[(0, 100_000_000, 1)]);
        let stop = |thread: usize| (thread == 1 || all).then(|| Span::new(40_000_000, 48_000_000));
        for thread in 1..=3 {
            let mut t = 0;
            while t < 100_000_000 {
                if stop(thread).is_none_or(|stop| t < stop.start || t >= stop.end) {
                    builder.silent_call(thread, t + 10_000, t + 20_000);
                }
                t += 50_000;
            }
            builder.segment(thread, 0, 100_000_000, SegmentKind::Running, 0);
        }
        builder
    }

    #[test]
    fn a_machine_pauses_where_nobody_goes_on() {
        let found = |builder: &TimelineBuilder| {
            let all = pauses(&builder.0);
            all.into_iter().flatten().collect::<Vec<_>>()
        };
        let paused = found(&builder(true));
        assert!(paused.len() == 1 && (7_500_000..=8_000_000).contains(&paused[0].len()), "{paused:?}");
        assert!((40_000_000..48_000_000).contains(&paused[0].start), "{paused:?}");
        assert!(found(&builder(false)).is_empty(), "one that computes pauses nothing");
    }
}
