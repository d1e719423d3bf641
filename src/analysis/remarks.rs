//! What the remarks of a recording say about its threads: priorities, kernel work on their behalf, who stopped them.
//!
//! In: the remarks, in order of time, and the threads on CPUs. Out: answers by thread and time; `None` is *not known*.
//! Work of the kernel lasts from its begin to its end. Where it has no end, because that was lost, nothing is said of
//! it; work inside of other work belongs to that. A pause for write-back has one event, right before it: it lasts
//! until the thread runs again. Cost: linear in remarks, and a look-up of the running thread for each one that is about
//! it; a binary search for each question. ALGORITHMS.md 5.4.

use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::event::remark::{KernelWork, Priority, Remark, RemarkKind};
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{SegmentKind, Thread, ThreadId, Timeline};
use foldhash::HashMap;

/// A pause begins at most this much later than its event.
const PAUSES_WITHIN: Ns = 1_000_000;
/// A signal that stops a thread was sent at most this much earlier.
const STOPS_WITHIN: Ns = 1_000_000_000;

/// A throttled thread leaves its CPU within this time, at the end of the same call of the scheduler.
const THROTTLED_WITHIN: Ns = 100_000;
/// The part of a wait that may come after the packet which ended it.
const LAST_PART: Ns = 10;
/// The events of one packet are at most so far apart, and so few.
const TOGETHER: Ns = 100_000;
const LOOKED_AT: usize = 4;

/// Work of the kernel for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkSpan {
    /// From its begin to its end.
    pub span: Span,
    /// What the kernel did.
    pub work: KernelWork,
}

/// A signal that stops a process.
#[derive(Clone, Copy, Debug)]
struct StopSignal {
    time: Timestamp,
    by: ThreadId,
}

/// The remarks by thread.
#[derive(Debug, Default)]
pub struct Remarks {
    /// By host and id, in order of time.
    priorities: HashMap<(HostId, i32), Vec<(Timestamp, Priority)>>,
    works: HashMap<ThreadId, Vec<WorkSpan>>,
    /// By host and the id that the signal names.
    stops: HashMap<(HostId, i32), Vec<StopSignal>>,
    /// By host and the id that the signal names: the numbers of other signals.
    signals: HashMap<(HostId, i32), Vec<(Timestamp, u8)>>,
    /// By host, in order: when the kernel's timers sent packets, and which of them were segments of TCP sent again.
    timer_packets: HashMap<HostId, Vec<TimerPacket>>,
    /// By host and CPU, in order: when a control group was throttled there.
    throttled: HashMap<(HostId, u32), Vec<Timestamp>>,
}

/// A packet that a timer of the kernel sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimerPacket {
    time: Timestamp,
    kind: TcpTimer,
}

/// What a timer of TCP does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpTimer {
    /// It sends any packet, such as a delayed acknowledgement.
    Sends,
    /// It sends a segment again.
    Retransmits,
}

impl Remarks {
    /// Those of a timeline.
    pub fn new(timeline: &Timeline) -> Remarks {
        let mut all = Remarks::default();
        let reader = timeline.reader(Asker::Ecct);
        let mut open: HashMap<ThreadId, OpenWork> = HashMap::default();
        for Remark { time, host, cpu, tid, kind } in timeline.remarks().iter().copied() {
            // The thread that runs on the CPU, unless the event names another one.
            let running = || {
                let thread = reader.runs(host, cpu).at(time)?.thread;
                let names_it = |of: &Thread| !of.idle && (tid < 0 || of.tid == tid);
                timeline.thread(thread).is_some_and(names_it).then_some(thread)
            };
            let mut sends = |kind| all.timer_packets.entry(host).or_default().push(TimerPacket { time, kind });
            match kind {
                RemarkKind::Priority(priority) => {
                    all.priorities.entry((host, tid)).or_default().push((time, priority));
                }
                RemarkKind::TimerSends => sends(TcpTimer::Sends),
                RemarkKind::Retransmits => sends(TcpTimer::Retransmits),
                // Those are read where the metrics are made (`frequencies.rs`).
                RemarkKind::Frequency { .. } => {}
                RemarkKind::Throttled => all.throttled.entry((host, cpu)).or_default().push(time),
                RemarkKind::Stops(stopped) => {
                    let by = running().map(|by| StopSignal { time, by });
                    all.stops.entry((host, stopped)).or_default().extend(by);
                }
                RemarkKind::Signal { number, to } => {
                    all.signals.entry((host, to)).or_default().push((time, number));
                }
                RemarkKind::Begins(work) => {
                    let Some(thread) = running() else { continue };
                    match work {
                        KernelWork::WriteBack => {
                            all.works.entry(thread).or_default().extend(pause_after(&reader, thread, time));
                        }
                        _ => open.entry(thread).or_default().begin(time, work),
                    }
                }
                RemarkKind::Ends(work) => {
                    let Some(thread) = running() else { continue };
                    let ended = open.get_mut(&thread).and_then(|open| open.end(time, work));
                    all.works.entry(thread).or_default().extend(ended);
                }
            }
        }
        all.works.values_mut().for_each(|works| works.sort_unstable_by_key(|work| (work.span.start, work.span.end)));
        all
    }

    /// The priority of a thread at a time: that of its last switch before, else of its first one.
    pub fn priority(&self, thread: &Thread, t: Timestamp) -> Priority {
        let Some(known) = self.priorities.get(&(thread.host, thread.tid)) else { return Priority::UNKNOWN };
        let before = known.partition_point(|(time, _)| *time <= t);
        let at = known.get(before.saturating_sub(1));
        at.map_or(Priority::UNKNOWN, |(_, priority)| *priority)
    }

    /// True where the kernel worked for any thread.
    pub fn has_work(&self) -> bool {
        !self.works.is_empty()
    }

    /// The work of the kernel for a thread in a span, in order, clipped to it.
    pub fn works(&self, thread: ThreadId, span: Span) -> impl Iterator<Item = WorkSpan> + '_ {
        let all = self.works.get(&thread).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|work| work.span.end <= span.start);
        let within = all.get(first..).unwrap_or(&[]).iter().take_while(move |work| work.span.start < span.end);
        within.map(move |work| WorkSpan { span: work.span.clip(span), ..*work })
    }

    /// True where a probe showed the kernel throttling a control group.
    pub fn has_throttling(&self) -> bool {
        !self.throttled.is_empty()
    }

    /// True for a wait for a CPU that begins where a control group was just throttled on it.
    pub fn begins_throttled(&self, host: HostId, cpu: u32, wait: Span) -> bool {
        let Some(all) = self.throttled.get(&(host, cpu)) else { return false };
        let before = all.partition_point(|time| *time <= wait.start).checked_sub(1);
        before.and_then(|at| all.get(at)).is_some_and(|time| wait.start.since(*time) <= THROTTLED_WITHIN)
    }

    /// The timer of TCP that ended a wait for the network: its packet is the last one in it, and no more than a tenth
    /// of the wait comes after it. One wait may have ended so by chance; those of many executions do not.
    pub fn ended_by_timer(&self, host: HostId, wait: Span) -> Option<TcpTimer> {
        let all = self.timer_packets.get(&host)?;
        let until = all.get(..all.partition_point(|packet| packet.time <= wait.end))?;
        let last = until.last()?.time;
        if last < wait.start || wait.end.since(last).saturating_mul(LAST_PART) > wait.len() {
            return None;
        }
        // The event of a segment that is sent again and that of its packet come together.
        let together = until.iter().rev().take(LOOKED_AT).filter(|packet| last.since(packet.time) <= TOGETHER);
        let is_again = together.into_iter().any(|packet| packet.kind == TcpTimer::Retransmits);
        Some(if is_again { TcpTimer::Retransmits } else { TcpTimer::Sends })
    }

    /// The signals that were sent in a span to stop a thread or its process, with the threads that sent them.
    pub fn stop_signals(&self, thread: &Thread, span: Span) -> impl Iterator<Item = (Timestamp, ThreadId)> + '_ {
        let sent = ids(thread).filter_map(|id| self.stops.get(&id));
        sent.flat_map(move |all| sent_in(all, span, |signal| signal.time).map(|signal| (signal.time, signal.by)))
    }

    /// The other signals that were sent to a thread or its process in a span, with their numbers.
    pub fn signals(&self, thread: &Thread, span: Span) -> impl Iterator<Item = (Timestamp, u8)> + '_ {
        let sent = ids(thread).filter_map(|id| self.signals.get(&id));
        sent.flat_map(move |all| sent_in(all, span, |(time, _)| *time).copied())
    }

    /// The thread that sent the signal which stopped another at a time.
    pub fn stopped_by(&self, thread: &Thread, t: Timestamp) -> Option<ThreadId> {
        let sent = [thread.tid, thread.pid].into_iter().filter_map(|id| self.stops.get(&(thread.host, id)));
        let before = sent.filter_map(|all| {
            let at = all.partition_point(|signal| signal.time <= t).checked_sub(1)?;
            all.get(at).filter(|signal| t.since(signal.time) <= STOPS_WITHIN)
        });
        before.max_by_key(|signal| signal.time).map(|signal| signal.by)
    }
}

/// The ids by which a signal names a thread: its own, and that of its process.
fn ids(thread: &Thread) -> impl Iterator<Item = (HostId, i32)> + use<> {
    let Thread { host, tid, pid, .. } = *thread;
    std::iter::once(tid).chain((pid != tid).then_some(pid)).map(move |id| (host, id))
}

/// Those of a list in order of time that are in a span.
fn sent_in<T>(all: &[T], span: Span, time: impl Fn(&T) -> Timestamp) -> impl Iterator<Item = &T> {
    let first = all.partition_point(|signal| time(signal) < span.start);
    all.iter().skip(first).take_while(move |signal| time(signal) < span.end)
}

/// Work that has begun, of one thread.
#[derive(Default)]
struct OpenWork {
    outermost: Option<(Timestamp, KernelWork)>,
    /// Works inside of it.
    inside: Vec<KernelWork>,
}

/// Works of a thread inside of each other: the kernel has no more.
const DEEPEST: usize = 8;

impl OpenWork {
    fn begin(&mut self, t: Timestamp, work: KernelWork) {
        match self.outermost {
            Some((_, open)) if open != work && !self.inside.contains(&work) && self.inside.len() < DEEPEST => {
                self.inside.push(work);
            }
            // Work is never inside of the same: the end of that one was lost.
            _ => {
                self.outermost = Some((t, work));
                self.inside.clear();
            }
        }
    }

    fn end(&mut self, t: Timestamp, work: KernelWork) -> Option<WorkSpan> {
        if let Some(at) = self.inside.iter().rposition(|inside| *inside == work) {
            self.inside.truncate(at);
            return None;
        }
        let (since, work) = self.outermost.take_if(|(_, open)| *open == work)?;
        self.inside.clear();
        Some(WorkSpan { span: Span::new(since, t), work })
    }
}

/// The time that a thread is off the CPU right after a moment.
fn pause_after(reader: &RowReader<'_>, thread: ThreadId, t: Timestamp) -> Option<WorkSpan> {
    let mut segments = reader.segments(thread);
    let mut segment = segments.at(t)?;
    while segment.kind == SegmentKind::Running && segment.span.end.since(t) <= PAUSES_WITHIN {
        segment = segments.next_row()?;
    }
    (segment.kind != SegmentKind::Running).then_some(WorkSpan { span: segment.span, work: KernelWork::WriteBack })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::{HOST, PID, TimelineBuilder, thread};

    fn at(ns: Ns) -> Timestamp {
        Timestamp::new(ns)
    }

    /// Thread 1 runs up to 100, then thread 2; and what is said of the running one.
    fn of(kinds: &[(Ns, RemarkKind)]) -> (Timeline, Remarks) {
        let mut builder = TimelineBuilder::new(2);
        builder.segment(1, 0, 100, SegmentKind::Running, 0).segment(1, 100, 180, SegmentKind::Timer, 0);
        builder.segment(2, 0, 100, SegmentKind::Preempted, 0).segment(2, 100, 180, SegmentKind::Running, 0);
        builder.runs(&[(0, 100, 1), (100, 180, 2)]);
        let remark = |(ns, kind): &(Ns, RemarkKind)| Remark { time: at(*ns), host: HOST, cpu: 0, tid: -1, kind: *kind };
        builder.0.tables.remarks = kinds.iter().map(remark).collect();
        let timeline = builder.sealed();
        let remarks = Remarks::new(&timeline);
        (timeline, remarks)
    }

    #[test]
    fn work_lasts_from_its_begin_to_its_end() {
        use KernelWork::{Compaction, Reclaim, WriteBack};
        use RemarkKind::{Begins, Ends};
        let all = Span::of_ns(0, 180);
        let works = |kinds: &[(Ns, RemarkKind)], n: usize| {
            let found = of(kinds).1;
            found.works(thread(n), all).map(|w| (w.span.start.ns(), w.span.end.ns(), w.work)).collect::<Vec<_>>()
        };
        assert_eq!(works(&[(10, Begins(Reclaim)), (60, Ends(Reclaim))], 1), [(10, 60, Reclaim)]);
        // Of the thread that runs then.
        assert_eq!(works(&[(110, Begins(Reclaim)), (160, Ends(Reclaim))], 2), [(110, 160, Reclaim)]);
        assert!(works(&[(10, Begins(Reclaim)), (160, Ends(Reclaim))], 1).is_empty());
        // The work inside belongs to it.
        let nested = [(10, Begins(Reclaim)), (20, Begins(Compaction)), (30, Ends(Compaction)), (60, Ends(Reclaim))];
        assert_eq!(works(&nested, 1), [(10, 60, Reclaim)]);
        // An end was lost.
        let lost = [(10, Begins(Reclaim)), (50, Begins(Reclaim)), (60, Ends(Reclaim)), (70, Ends(Compaction))];
        assert_eq!(works(&lost, 1), [(50, 60, Reclaim)]);
        assert!(works(&[(10, Begins(Reclaim))], 1).is_empty());
        assert_eq!(works(&[(95, Begins(WriteBack))], 1), [(100, 180, WriteBack)]);
    }

    #[test]
    fn signals_are_those_of_the_thread_and_of_its_process() {
        let signal = |number, to| RemarkKind::Signal { number, to };
        let (timeline, remarks) =
            of(&[(10, signal(10, 2)), (20, signal(14, PID)), (30, signal(9, 1)), (40, signal(2, 2))]);
        let sent = |n: usize, span| {
            let mut all: Vec<(Ns, u8)> = remarks
                .signals(timeline.thread(thread(n)).unwrap(), span)
                .map(|(time, number)| (time.ns(), number))
                .collect();
            all.sort_unstable();
            all
        };
        assert_eq!(sent(2, Span::of_ns(0, 100)), [(10, 10), (20, 14), (40, 2)]);
        assert_eq!(sent(2, Span::of_ns(10, 40)), [(10, 10), (20, 14)]);
        assert_eq!(sent(1, Span::of_ns(0, 100)), [(20, 14), (30, 9)]);
        assert_eq!(remarks.stopped_by(timeline.thread(thread(2)).unwrap(), at(50)), None, "they stop nothing");
    }

    #[test]
    fn stopped_by_names_the_sender_and_priority_holds_from_its_switch_on() {
        let kinds = [(50, RemarkKind::Stops(2)), (60, RemarkKind::Stops(9))];
        let (timeline, mut remarks) = of(&kinds);
        let known = |n: usize| timeline.thread(thread(n)).unwrap();
        assert_eq!(remarks.stopped_by(known(2), at(70)), Some(thread(1)));
        let sent = |n, span| remarks.stop_signals(known(n), span).map(|(time, by)| (time.ns(), by)).collect::<Vec<_>>();
        assert_eq!(sent(2, Span::of_ns(50, 60)), [(50, thread(1))]);
        assert_eq!((sent(2, Span::of_ns(51, 90)), sent(1, Span::of_ns(0, 90))), (Vec::new(), Vec::new()));
        assert_eq!(remarks.stopped_by(known(2), at(40)), None);
        assert_eq!(remarks.stopped_by(known(1), at(70)), None);
        remarks.stops.insert((HOST, PID), vec![StopSignal { time: at(55), by: thread(2) }]);
        assert_eq!(remarks.stopped_by(known(1), at(70)), Some(thread(2)));
        let (usual, real_time) = (Priority::from_kernel(Some(120)), Priority::from_kernel(Some(49)));
        let of_wait = |ended: &Remarks| ended.ended_by_timer(HOST, Span::of_ns(0, 1_000_000));
        let sends = |kinds: &[(Ns, RemarkKind)]| of_wait(&of(kinds).1);
        let (timer, again) = (RemarkKind::TimerSends, RemarkKind::Retransmits);
        assert_eq!(sends(&[(950_000, timer)]), Some(TcpTimer::Sends));
        assert_eq!(sends(&[(940_000, again), (950_000, timer)]), Some(TcpTimer::Retransmits));
        assert_eq!(sends(&[(800_000, timer), (1_000_001, timer)]), None, "too early, and too late");
        let throttled = of(&[(90, RemarkKind::Throttled)]).1;
        assert!(throttled.begins_throttled(HOST, 0, Span::of_ns(95, 9_000)));
        assert!(!throttled.begins_throttled(HOST, 1, Span::of_ns(95, 9_000)), "another CPU");
        assert!(!throttled.begins_throttled(HOST, 0, Span::of_ns(80, 9_000)), "it waited already");
        remarks.priorities.insert((HOST, 2), vec![(at(20), usual), (at(80), real_time)]);
        assert_eq!([10, 79, 80].map(|ns| remarks.priority(known(2), at(ns))), [usual, usual, real_time]);
        assert_eq!(remarks.priority(known(1), at(50)), Priority::UNKNOWN);
    }
}
