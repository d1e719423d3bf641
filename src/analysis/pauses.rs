//! Times in which a whole machine was paused: several threads were on CPUs and none of them made a recorded event. The
//! same pass over the segments feeds the search for pauses of single CPUs (`clock_watch.rs`) and for threads that a CPU
//! quota holds back (`quota_watch.rs`, and `throttling.rs` where the kernel's counters were recorded).
//!
//! If a hypervisor deschedules a virtual machine, a machine is suspended, or firmware keeps all CPUs busy, all threads
//! stop at once and continue later. Everything that ran then took longer, without a cause of its own. In: a timeline.
//! Out: the pauses by host. Time is divided into slots. A slot is empty if no thread's state, call or stack changed in
//! it. The number of events to expect in a run of empty slots follows from the event rates of the threads that were on
//! a CPU throughout, except the busiest, which may be computing. Where ten events were expected, chance is no
//! explanation. Threads that compute for long without an event have low rates, so they cause no false pauses. Cost:
//! linear in segments, calls and samples. ALGORITHMS.md 7.7.

use super::clock_watch::{ClockWatch, CpuPauses, FoundPauses};
use super::quota_watch::{QuotaWatch, Quotas};
use super::throttling::{ThrottleWatch, Throttling};
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{SegmentKind, Thread, ThreadId, Timeline};

/// Length of a slot, at least.
const SLOT: Ns = 100_000;
/// Slots of a recording, at most.
const SLOTS: Ns = 1 << 22;
/// Slots in a row, at least.
const LEAST: usize = 10;
/// A shorter run is looked at for no steal time, which the kernel counts in ticks of 10 ms at most.
const LONG_RUN: Ns = 5_000_000;
/// Expected events, at least: the probability that none happens by chance is 5 in 100,000.
const EXPECTED: f64 = 10.0;

/// The times in which a host, one of its CPUs, or some of its threads were kept from running.
#[derive(Debug, Default)]
pub struct Pauses {
    /// Of all CPUs at once, in order of time.
    pub machine: Vec<Span>,
    /// Of a CPU whose timer interrupts did not come.
    pub cpus: CpuPauses,
    /// Of a CPU whose timer interrupts did not come, but which may do without a clock.
    pub doubtful: CpuPauses,
    /// True where the absence of a clock's interrupts would show them.
    pub has_clock: bool,
    /// Of threads that a CPU quota holds back.
    pub quotas: Quotas,
    /// Of threads that a CPU quota holds back, by what the kernel counted, where that was recorded.
    pub throttling: Throttling,
}

impl Pauses {
    /// The pauses of a CPU inside of a span, in order.
    pub fn of_cpu(&self, cpu: u32, span: Span) -> impl Iterator<Item = Span> + '_ {
        within(&self.cpus, cpu, span)
    }
}

fn within(all: &CpuPauses, cpu: u32, span: Span) -> impl Iterator<Item = Span> + '_ {
    let all = all.get(&cpu).map_or(&[][..], Vec::as_slice);
    let first = all.partition_point(|pause| pause.end <= span.start);
    all[first..].iter().take_while(move |pause| pause.start < span.end).map(move |pause| pause.clip(span))
}

impl Pauses {
    /// How much of a run of a thread the hypervisor may have given to others: its pauses that are doubtful, and the
    /// steal time between the samples around it where no clock shows when, if that may have been half of the run or
    /// more.
    pub fn stolen_at_most(&self, cpu: u32, run: Span) -> Ns {
        let doubtful: Ns = within(&self.doubtful, cpu, run).map(|pause| pause.len()).sum();
        let known = self.throttling.surroundings().filter(|_| !self.has_clock && run.len() >= LONG_RUN);
        let steal = known.and_then(|known| known.steal(cpu, run)).map_or(0, |steal| steal.min(run.len()));
        doubtful.max(if steal.saturating_mul(2) >= run.len() { steal } else { 0 })
    }

    /// True where the machine was paused, or may have been.
    pub fn has_any(&self) -> bool {
        let counts_steal = || self.throttling.surroundings().is_some_and(|known| known.has_steal());
        !self.machine.is_empty() || !self.doubtful.is_empty() || !self.has_clock && counts_steal()
    }
}

/// The pauses of each host.
pub fn pauses(timeline: &Timeline) -> Vec<Pauses> {
    let mut threads = vec![Vec::new(); timeline.hosts().len()];
    for (thread, known) in timeline.threads_by_id().filter(|(_, thread)| !thread.idle) {
        threads.get_mut(known.host.index()).into_iter().for_each(|of_host| of_host.push((thread, known)));
    }
    let of_host = |(at, threads): (usize, Vec<(ThreadId, &Thread)>)| {
        let host = HostId::at(at);
        if timeline.is_scheduled(host) { of_host(timeline, host, &threads) } else { Pauses::default() }
    };
    threads.into_iter().enumerate().map(of_host).collect()
}

/// The division of a span into slots.
struct Slots {
    origin: Timestamp,
    length: Ns,
    count: usize,
}

impl Slots {
    fn new(span: Span) -> Slots {
        let length = SLOT.max(span.len() / SLOTS);
        Slots { origin: span.start, length, count: (span.len() / length) as usize + 1 }
    }

    fn at(&self, t: Timestamp) -> usize {
        (t.since(self.origin).max(0) / self.length).min(self.count as Ns - 1) as usize
    }

    fn span(&self, from: usize, to: usize) -> Span {
        let start = |slot: usize| self.origin.saturating_add(slot as Ns * self.length);
        Span::new(start(from), start(to))
    }
}

/// The time of a thread on a CPU, in whole slots.
#[derive(Clone, Copy)]
struct CpuTime {
    /// First slot.
    from: usize,
    /// First slot after.
    to: usize,
    /// Expected events in a slot.
    rate: f64,
}

/// The pauses of a host with these threads, its idle ones left out.
fn of_host(timeline: &Timeline, host: HostId, threads: &[(ThreadId, &Thread)]) -> Pauses {
    let slots = Slots::new(timeline.span());
    // By slot: an event happened.
    let mut happened = vec![false; slots.count];
    let mut busy: Vec<CpuTime> = Vec::new();
    let mut running: Vec<Span> = Vec::new();
    let (mut watch, mut quotas) = (ClockWatch::default(), QuotaWatch::default());
    let mut throttling = ThrottleWatch::new(timeline.environment(host));
    let reader = timeline.reader(Asker::Pauses);
    for (thread, known) in threads.iter().copied() {
        running.clear();
        watch.begin_thread();
        quotas.begin_thread();
        for segment in reader.segments(thread).all() {
            happened[slots.at(segment.span.start)] = true;
            watch.segment(&segment, timeline.names());
            quotas.segment(thread, known, &segment);
            throttling.segment(thread, &segment);
            if segment.kind == SegmentKind::Running {
                running.push(segment.span);
            }
        }
        reader.calls(thread).all().for_each(|call| {
            for t in [call.span.start, call.span.end] {
                happened[slots.at(t)] = true;
                watch.event(t);
            }
        });
        reader.samples(thread).all().for_each(|sample| {
            happened[slots.at(sample.time)] = true;
            watch.event(sample.time);
        });
        let rate = rate(&reader, thread, &running) * slots.length as f64;
        for span in &running {
            let (from, to) = (slots.at(span.start) + 1, slots.at(span.end));
            if to >= from + LEAST {
                busy.push(CpuTime { from, to, rate });
            }
        }
    }
    let has_clock = watch.has_clock();
    let FoundPauses { sure, doubtful } = watch.finish();
    Pauses {
        machine: of_machine(&slots, &happened, busy),
        has_clock,
        cpus: sure,
        doubtful,
        quotas: quotas.finish(host, &reader),
        throttling: throttling.finish(|id| timeline.thread(id)),
    }
}

/// The runs of slots without an event in which many were due.
fn of_machine(slots: &Slots, happened: &[bool], mut busy: Vec<CpuTime>) -> Vec<Span> {
    busy.sort_by_key(|time| time.from);
    let mut pauses = Vec::new();
    let mut open: Vec<CpuTime> = Vec::new();
    let mut next = 0;
    let mut at = 0;
    while at < slots.count {
        if happened[at] {
            at += 1;
            continue;
        }
        let end = (at..slots.count).find(|slot| happened[*slot]).unwrap_or(slots.count);
        while let Some(run) = busy.get(next).filter(|time| time.from <= at) {
            open.push(*run);
            next += 1;
        }
        open.retain(|time| time.to >= end);
        let (rates, busiest) =
            open.iter().fold((0.0, 0.0_f64), |(all, most), time| (all + time.rate, most.max(time.rate)));
        if end - at >= LEAST && open.len() >= 2 && (rates - busiest) * (end - at) as f64 >= EXPECTED {
            pauses.push(slots.span(at, end));
        }
        at = end;
    }
    pauses
}

/// The recorded events of a thread per nanosecond of running.
fn rate(reader: &RowReader<'_>, thread: ThreadId, running: &[Span]) -> f64 {
    let (runs, ns) = (running.len(), running.iter().map(|span| span.len()).sum::<Ns>());
    (runs + 2 * reader.calls(thread).len() + reader.samples(thread).len()) as f64 / ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::TimelineBuilder;
    use crate::model::environment::{Environment, PlacedEnvironment, ThreadSetting};
    use crate::timeline::Host;
    use std::sync::Arc;

    /// Three threads that make a call every 50 us; from 40 to 48 ms all of them pause, or the first alone.
    fn builder(all: bool) -> TimelineBuilder {
        let mut builder = TimelineBuilder::new(3);
        let name = builder.0.tables.names.intern("host");
        builder.0.tables.hosts.push(Host { name, kernel_release: None });
        builder.0.tables.span = Span::of_ns(0, 100_000_000);
        builder.runs(&[(0, 100_000_000, 1)]);
        let stop = |thread: usize| (thread == 1 || all).then(|| Span::of_ns(40_000_000, 48_000_000));
        for thread in 1..=3 {
            let mut t = 0;
            while t < 100_000_000 {
                if stop(thread).is_none_or(|stop| t < stop.start.ns() || t >= stop.end.ns()) {
                    builder.silent_call(thread, t + 10_000, t + 20_000);
                }
                t += 50_000;
            }
            builder.segment(thread, 0, 100_000_000, SegmentKind::Running, 0);
        }
        builder
    }

    /// Without a clock, and with the twin that has one: a run in which the CPU may have been with others.
    #[test]
    fn steal_time_counts_where_no_clock_shows_pauses() {
        let steal = [(0, 100), (1, 500), (2, 510)].map(|(line, value)| ThreadSetting { line, value });
        let values = Environment { steal: [(0, steal.to_vec())].into(), ..Environment::default() };
        let times = [0, 1_000_000_000, 2_000_000_000].map(Timestamp::new).to_vec();
        let placed = Arc::new(PlacedEnvironment { values: Arc::new(values), times });
        let throttling = ThrottleWatch::new(Some(&placed)).finish(|_| None);
        let mut pauses = Pauses { throttling, ..Pauses::default() };
        let ms = |start: Ns, end: Ns| Span::of_ns(start * 1_000_000, end * 1_000_000);
        assert_eq!(pauses.stolen_at_most(0, ms(100, 700)), 400_000_000);
        assert_eq!(pauses.stolen_at_most(0, ms(100, 200)), 100_000_000, "all of it");
        assert_eq!(pauses.stolen_at_most(0, ms(1_100, 1_300)), 0, "too little to matter");
        assert_eq!(pauses.stolen_at_most(0, ms(100, 104)), 0, "a short run");
        assert_eq!(pauses.stolen_at_most(1, ms(100, 700)), 0, "another CPU");
        assert!(pauses.has_any());
        pauses.has_clock = true;
        assert_eq!(pauses.stolen_at_most(0, ms(100, 700)), 0);
        assert!(!pauses.has_any());
    }

    #[test]
    fn pauses_finds_a_time_without_events_of_any_thread() {
        let found = |builder: &TimelineBuilder| {
            let all = pauses(&builder.sealed());
            all.into_iter().flat_map(|of_host| of_host.machine).collect::<Vec<_>>()
        };
        let paused = found(&builder(true));
        assert!(paused.len() == 1 && (7_500_000..=8_000_000).contains(&paused[0].len()), "{paused:?}");
        assert!((40_000_000..48_000_000).contains(&paused[0].start.ns()), "{paused:?}");
        assert!(found(&builder(false)).is_empty(), "one thread that computes is no pause");
    }
}
