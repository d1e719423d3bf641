//! The threads that used a disk while another thread waited for it.
//!
//! In: the disk requests of a timeline. Out: for a wait, the threads that had requests in flight on the same device,
//! with their part of the wait, and for how long there was none. A device is a queue, in which each request is delayed
//! by the others. So the wait is cut wherever a request enters or leaves the device, and each part is divided in
//! proportion to the bytes in flight. The waiter's own bytes count as well, because a thread that reads much waits
//! long; their part, the remainders of the divisions, and short times in which nothing is in flight belong to the wait
//! itself.
//!
//! Requests that a kernel thread submitted (write-back, journal) belong to the thread that was in a call like `fsync`
//! at that time, if there was exactly one, because that call causes them. Otherwise they belong to the thread that
//! queued the work which submitted them, where that is recorded. Those of an io_uring worker (`iou-wrk-TID`,
//! `iou-sqp-TID`) belong to the thread in the worker's name. Where no requests were recorded, threads that waited for a
//! disk at the same time share equally.
//!
//! A request whose completion was not recorded is over when its row ends, when the wait of its submitter for a disk
//! ends, or when it would have outlived all others by far, whichever is first. Otherwise it would hide that the disk
//! was idle, and its owner would be blamed.
//!
//! Cost: a binary search and a sweep over the requests in the wait. ALGORITHMS.md section 5.4, `share`, with weights.

use crate::base::time::{Ns, Span, Timestamp};
use crate::event::host::HostId;
use crate::timeline::questions::Asker;
use crate::timeline::reader::RowReader;
use crate::timeline::{DiskRequest, SegmentKind, Thread, ThreadId, Timeline};
use foldhash::HashMap;
use std::collections::BTreeMap;

/// Calls that write data out which other calls left in the page cache.
const SYNC_CALLS: [&str; 6] = ["fsync", "fdatasync", "sync", "syncfs", "msync", "sync_file_range"];
/// Sync calls that are examined for one request, latest first.
const SYNC_DEPTH: usize = 64;

/// A request in the queue of a device, or a wait where no requests were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InFlight {
    span: Span,
    bytes: u64,
    owner: Option<ThreadId>,
}

/// The requests of a device, sorted by start; `reach[i]` is the latest end among the first `i + 1`.
#[derive(Clone, Debug, Default)]
struct Queue {
    all: Vec<InFlight>,
    reach: Vec<Timestamp>,
}

impl Queue {
    fn push(&mut self, item: InFlight) {
        self.reach.push(self.reach.last().copied().unwrap_or(Timestamp::MIN).max(item.span.end));
        self.all.push(item);
    }

    /// Order what was pushed by its start.
    fn sort(&mut self) {
        if !self.all.is_sorted_by_key(|item| item.span.start) {
            self.all.sort_by_key(|item| item.span.start);
            self.reach.clear();
            std::mem::take(&mut self.all).into_iter().for_each(|item| self.push(item));
        }
    }

    fn over(&self, span: Span) -> impl Iterator<Item = &InFlight> {
        let first = self.reach.partition_point(|end| *end <= span.start);
        let all = self.all.get(first..).unwrap_or(&[]);
        all.iter().take_while(move |r| r.span.start < span.end).filter(move |r| r.span.end > span.start)
    }
}

/// The part of a wait that one thread caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The thread that had requests in flight; `None` for one that is not known.
    pub thread: Option<ThreadId>,
    /// When it submitted them: its stack at that time shows why.
    pub since: Timestamp,
    /// Its part in nanoseconds.
    pub ns: u64,
}

/// A wait for a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskWait {
    /// The parts that other threads caused, ordered by thread and time. With `idle` they never exceed the wait; the
    /// rest is the wait's own.
    pub shares: Vec<Share>,
    /// The time in which the device had no request, in parts of 2 ms or more; 0 where no requests were
    /// recorded.
    pub idle: Ns,
}

/// A shorter time without requests is that of a request on its way to the disk, or of a wake-up.
const SHORTEST_IDLE: Ns = 2_000_000;

/// A request whose completion was not recorded takes at most this many times as long as the longest other of its
/// device, but for short ones.
const BY_FAR: Ns = 10;
/// A request that takes no longer may be any.
const LONG_REQUEST: Ns = 100_000_000;

/// A request that one device served.
#[derive(Clone, Copy, Debug)]
struct DeviceRequest {
    device: u32,
    span: Span,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequestEnd {
    time: Timestamp,
    device: u32,
}

/// The disk requests of a timeline, indexed by device, thread and end.
#[derive(Clone, Debug, Default)]
pub struct DiskUse {
    devices: BTreeMap<(HostId, u32), Queue>,
    of_thread: HashMap<ThreadId, Vec<DeviceRequest>>,
    /// Ends of requests, sorted.
    ends: BTreeMap<HostId, Vec<RequestEnd>>,
    /// Waiting threads per host, where no requests were recorded.
    waiters: BTreeMap<HostId, Queue>,
}

impl DiskUse {
    /// Index the requests of a timeline.
    pub fn new(timeline: &Timeline) -> Self {
        let mut result = DiskUse::default();
        let reader = timeline.reader(Asker::Disk);
        if reader.requests().is_empty() {
            result.collect_waiters(timeline, &reader);
            return result;
        }
        let (syncs, rings) = (sync_calls(timeline, &reader), ring_owners(timeline));
        let (mut longest, mut unfinished) = (Longest::default(), Vec::new());
        for request in reader.requests().all() {
            let owner = owner(timeline, &syncs, &rings, &request);
            if request.is_completed {
                longest.note(&request);
                result.add(&request, owner);
            } else {
                unfinished.push((request, owner));
            }
        }
        for (mut request, owner) in unfinished {
            request.span.end = longest.end(&reader, &request);
            result.add(&request, owner);
        }
        result.devices.values_mut().for_each(Queue::sort);
        result.of_thread.values_mut().for_each(|of| of.sort_by_key(|request| request.span.start));
        result.ends.values_mut().for_each(|ends| ends.sort_unstable());
        result
    }

    /// Add a request; the lists are sorted later.
    fn add(&mut self, request: &DiskRequest, owner: Option<ThreadId>) {
        let DiskRequest { host, device, span, .. } = *request;
        let item = InFlight { span, bytes: request.bytes.max(1), owner };
        self.devices.entry((host, device)).or_default().push(item);
        self.ends.entry(host).or_default().push(RequestEnd { time: span.end, device });
        if let Some(owner) = owner {
            self.of_thread.entry(owner).or_default().push(DeviceRequest { device, span });
        }
    }

    fn collect_waiters(&mut self, timeline: &Timeline, reader: &RowReader<'_>) {
        let mut waits: Vec<(HostId, InFlight)> = Vec::new();
        for (id, thread) in timeline.threads_by_id() {
            let disk = reader.segments(id).all().filter(|e| e.kind == SegmentKind::Disk);
            let item = |span| InFlight { span, bytes: 1, owner: Some(id) };
            waits.extend(disk.map(|e| (thread.host, item(e.span))));
        }
        waits.sort_by_key(|(_, w)| (w.span.start, w.owner));
        for (host, wait) in waits {
            self.waiters.entry(host).or_default().push(wait);
        }
    }

    /// What is known of the wait of `waiter` over `span`.
    pub fn wait(&self, host: HostId, waiter: ThreadId, span: Span) -> DiskWait {
        match self.device(host, waiter, span) {
            Some(device) => self.devices.get(&(host, device)).map(|queue| share(queue, waiter, None, span)),
            // Without requests the queue is made of the waits themselves: a wait does not delay itself, and whether the
            // disk was idle is unknown.
            None => {
                self.waiters.get(&host).map(|queue| DiskWait { idle: 0, ..share(queue, waiter, Some(waiter), span) })
            }
        }
        .unwrap_or_default()
    }

    /// The device that was waited for: that of the waiter's own request that ends nearest to the end of the wait;
    /// without one, that of the last request that completed during the wait.
    fn device(&self, host: HostId, waiter: ThreadId, span: Span) -> Option<u32> {
        let own = self.of_thread.get(&waiter).map_or(&[][..], |r| r);
        let until = own.partition_point(|request| request.span.start < span.end);
        let own = own[..until].iter().rev().take(SYNC_DEPTH).filter(|request| request.span.end > span.start);
        if let Some(request) = own.min_by_key(|request| (request.span.end.abs_diff(span.end), request.device)) {
            return Some(request.device);
        }
        let ends = self.ends.get(&host)?;
        let last = ends[..ends.partition_point(|end| end.time <= span.end)].last()?;
        (last.time >= span.start).then_some(last.device)
    }
}

/// The source of requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RequestSource {
    /// The thread that submitted them; `None` if unknown.
    thread: Option<ThreadId>,
    /// When it submitted them.
    since: Timestamp,
}

/// The direction of a change; at equal times, bytes leave before others enter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Leaves,
    Enters,
}

/// Bytes enter or leave the queue of a device; ordered by time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QueueChange {
    time: Timestamp,
    direction: Direction,
    source: RequestSource,
    bytes: u64,
}

/// The parts of a wait over `span` that the items of a queue caused. Items of `excluded` are not counted; those of
/// `waiter` are counted, and their part is left to the wait itself.
fn share(queue: &Queue, waiter: ThreadId, excluded: Option<ThreadId>, span: Span) -> DiskWait {
    let mut changes: Vec<QueueChange> = Vec::new();
    for item in queue.over(span) {
        if item.owner.is_some() && item.owner == excluded {
            continue;
        }
        let inside = item.span.clip(span);
        let source = RequestSource { thread: item.owner, since: item.span.start };
        changes.push(QueueChange { time: inside.start, direction: Direction::Enters, source, bytes: item.bytes });
        changes.push(QueueChange { time: inside.end, direction: Direction::Leaves, source, bytes: item.bytes });
    }
    changes.sort_unstable();
    let mut in_flight: BTreeMap<RequestSource, u64> = BTreeMap::new();
    let mut shares: BTreeMap<RequestSource, u64> = BTreeMap::new();
    let (mut from, mut idle) = (span.start, 0);
    let long = |length: Ns| if length >= SHORTEST_IDLE { length } else { 0 };
    for QueueChange { time, direction, source, bytes } in changes {
        let length = Span::new(from, time).len() as u128;
        if length > 0 {
            idle += if in_flight.is_empty() { long(length as Ns) } else { 0 };
            let total: u128 = in_flight.values().map(|b| u128::from(*b)).sum();
            for (key, bytes) in in_flight.iter().filter(|(source, _)| source.thread != Some(waiter)) {
                // At most `length`, which came from a time span.
                *shares.entry(*key).or_insert(0) += (length * u128::from(*bytes) / total) as u64;
            }
            from = time;
        }
        let of_source = in_flight.entry(source).or_insert(0);
        *of_source = match direction {
            Direction::Enters => of_source.saturating_add(bytes),
            Direction::Leaves => of_source.saturating_sub(bytes),
        };
        if *of_source == 0 {
            in_flight.remove(&source);
        }
    }
    idle += long(Span::new(from, span.end).len());
    let share = |(RequestSource { thread, since }, ns)| Share { thread, since, ns };
    DiskWait { shares: shares.into_iter().map(share).filter(|share| share.ns > 0).collect(), idle }
}

/// By host and device: the longest time that a request took whose completion was recorded.
#[derive(Default)]
struct Longest(BTreeMap<(HostId, u32), Ns>);

impl Longest {
    fn note(&mut self, completed: &DiskRequest) {
        let longest = self.0.entry((completed.host, completed.device)).or_insert(0);
        *longest = completed.span.len().max(*longest);
    }

    /// The end of a request whose completion was not recorded, no later than that of its row: when the first wait for a
    /// disk of its submitter ends, or when it would have taken by far the longest of its device.
    fn end(&self, reader: &RowReader<'_>, request: &DiskRequest) -> Timestamp {
        let span = request.span;
        let longest = self.0.get(&(request.host, request.device));
        let by_far = longest.map(|longest| span.start.saturating_add(longest.saturating_mul(BY_FAR).max(LONG_REQUEST)));
        let woken = request.submitter.and_then(|submitter| {
            let mut segments = reader.segments(submitter);
            let first = segments.at(span.start)?;
            let after = std::iter::successors(Some(first), |_| segments.next_row());
            let wait = after.take_while(|of| of.span.start < span.end).find(|of| !of.kind.has_cpu())?;
            (wait.kind == SegmentKind::Disk).then_some(wait.span.end)
        });
        by_far.into_iter().chain(woken).fold(span.end, Timestamp::min)
    }
}

/// A call that writes data out.
struct SyncCall {
    host: HostId,
    span: Span,
    thread: ThreadId,
}

/// The calls that write data out, sorted by start.
fn sync_calls(timeline: &Timeline, reader: &RowReader<'_>) -> Vec<SyncCall> {
    let wanted: Vec<_> = SYNC_CALLS.iter().filter_map(|name| timeline.names().find(name)).collect();
    let mut syncs = Vec::new();
    if wanted.is_empty() {
        return syncs;
    }
    reader.each_call(|thread, call| {
        let known = timeline.thread(thread).filter(|_| wanted.contains(&call.name));
        syncs.extend(known.map(|of| SyncCall { host: of.host, span: call.span, thread }));
    });
    syncs.sort_by_key(|call| (call.span.start, call.thread));
    syncs
}

fn owner(
    timeline: &Timeline,
    syncs: &[SyncCall],
    rings: &HashMap<(HostId, i32), ThreadId>,
    request: &DiskRequest,
) -> Option<ThreadId> {
    let submitter = request.submitter?;
    let t = request.span.start;
    let thread = timeline.thread(submitter)?;
    if let Some(tid) = ring_owner(timeline, thread, t) {
        return rings.get(&(request.host, tid)).copied().or(Some(submitter));
    }
    if !thread.is_kernel(timeline.names()) {
        return Some(submitter);
    }
    let begun = syncs[..syncs.partition_point(|call| call.span.start <= t)].iter().rev().take(SYNC_DEPTH);
    let mut under_way = begun.filter(|call| call.host == request.host && call.span.contains(t));
    match (under_way.next(), under_way.next()) {
        (Some(call), None) => Some(call.thread),
        _ => request.queued_by.or(Some(submitter)),
    }
}

/// The tid in the name of an io_uring worker: the thread that it works for.
fn ring_owner(timeline: &Timeline, thread: &Thread, t: Timestamp) -> Option<i32> {
    let name = timeline.names().get(thread.name_at(t)?);
    name.strip_prefix("iou-wrk-").or_else(|| name.strip_prefix("iou-sqp-"))?.parse().ok()
}

/// The threads that io_uring workers work for; of several instances of one tid the last.
fn ring_owners(timeline: &Timeline) -> HashMap<(HostId, i32), ThreadId> {
    let named = timeline.threads().iter().filter_map(|t| Some((t.host, ring_owner(timeline, t, t.life.end)?)));
    let wanted: std::collections::BTreeSet<(HostId, i32)> = named.collect();
    let all = timeline.threads().iter().enumerate().filter(|(_, t)| wanted.contains(&(t.host, t.tid)) && !t.idle);
    all.map(|(i, t)| ((t.host, t.tid), ThreadId::at(i))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::timeline_builder::{TimelineBuilder, thread};
    use crate::timeline::ThreadName;

    fn queue(items: &[(Ns, Ns, u64, u32)]) -> Queue {
        let mut queue = Queue::default();
        for (start, end, bytes, owner) in items {
            let owner = Some(ThreadId::from_raw(*owner));
            queue.push(InFlight { span: Span::of_ns(*start, *end), bytes: *bytes, owner });
        }
        queue
    }

    fn parts(queue: &Queue, excluded: Option<ThreadId>, span: Span) -> Vec<(u32, u64)> {
        let thread = |s: &Share| s.thread.map_or(u32::MAX, |t| t.raw());
        share(queue, ThreadId::at(1), excluded, span).shares.iter().map(|s| (thread(s), s.ns)).collect()
    }

    #[test]
    fn share_divides_by_bytes_in_flight_and_leaves_the_waiters_own() {
        let q = queue(&[(0, 100, 300, 2), (10, 50, 100, 1), (20, 30, 600, 3)]);
        // [10,20): 10*300/400 = 7; [20,30): 10*300/1000 = 3 and 6; [30,50): 20*300/400 = 15.
        assert_eq!(parts(&q, None, Span::of_ns(10, 50)), [(2, 25), (3, 6)]);
        assert_eq!(parts(&q, None, Span::of_ns(60, 90)), [(2, 30)]);
        assert_eq!(parts(&q, None, Span::of_ns(100, 190)), []);
    }

    #[test]
    fn idle_is_the_time_without_any_request_of_the_device() {
        const MS: Ns = 1_000_000;
        let ms = |(from, to, of)| (from * MS, to * MS, 1, of);
        let items = [(0, 10, 2), (5, 20, 1), (60, 70, 1), (71, 90, 3)].map(ms);
        let idle = |from, to| share(&queue(&items), ThreadId::at(1), None, Span::of_ns(from * MS, to * MS)).idle;
        assert_eq!([idle(8, 68), idle(8, 15), idle(40, 80), idle(66, 100)], [40 * MS, 0, 20 * MS, 10 * MS]);
        // Without requests only waits are known.
        let mut disk = DiskUse::default();
        disk.waiters.insert(HostId::at(0), queue(&items));
        assert_eq!(disk.wait(HostId::at(0), ThreadId::at(1), Span::of_ns(8 * MS, 68 * MS)).idle, 0);
    }

    #[test]
    fn share_of_waiters_is_equal_and_leaves_the_remainder() {
        let q = queue(&[(6, 9, 1, 2), (6, 9, 1, 3), (6, 9, 1, 1)]);
        assert_eq!(parts(&q, Some(ThreadId::at(1)), Span::of_ns(6, 9)), [(2, 1), (3, 1)]);
    }

    #[test]
    fn owner_of_a_workers_request_is_the_thread_that_it_works_for() {
        let mut builder = TimelineBuilder::new(4);
        let (ring, kworker) =
            (builder.0.tables.names.intern("iou-wrk-1"), builder.0.tables.names.intern("kworker/1:2"));
        builder.0.threads[1].thread.names = vec![ThreadName { from: Timestamp::ZERO, name: ring }];
        builder.0.threads[2].thread.names = vec![ThreadName { from: Timestamp::ZERO, name: kworker }];
        builder.request(0, 100, 2).request(0, 100, 3).request(0, 100, 3);
        builder.0.disk[1].queued_by = Some(thread(4));
        let use_ = DiskUse::new(&builder.sealed());
        let owners: Vec<_> = use_.devices[&(HostId::at(0), 8)].all.iter().map(|r| r.owner).collect();
        assert_eq!(owners, [Some(thread(1)), Some(thread(4)), Some(thread(3))]);
    }

    #[test]
    fn request_without_a_completion_ends_with_the_wait_for_it_or_when_it_outlives_all_others_by_far() {
        const MS: Ns = 1_000_000;
        let mut builder = TimelineBuilder::new(4);
        for (n, wait) in [(1, SegmentKind::Disk), (2, SegmentKind::Timer), (3, SegmentKind::Disk)] {
            builder.segment(n, 0, 10 * MS, SegmentKind::Running, 0).segment(n, 10 * MS, 30 * MS, wait, 0);
            builder.segment(n, 30 * MS, 2000 * MS, SegmentKind::Running, 0).request(5 * MS, 2000 * MS, n);
        }
        // The third ends with its row before; the last one was completed.
        builder.0.disk[2].span.end = Timestamp::new(20 * MS);
        builder.0.disk.iter_mut().for_each(|request| request.is_completed = false);
        builder.request(100 * MS, 115 * MS, 4);
        let disk = DiskUse::new(&builder.sealed());
        let ends = disk.devices[&(HostId::at(0), 8)].all.iter().map(|request| request.span.end.ns() / MS);
        assert_eq!(ends.collect::<Vec<_>>(), [30, 155, 20, 115]);
    }

    #[test]
    fn over_finds_a_long_request_before_short_ones() {
        let q = queue(&[(0, 100, 1, 2), (1, 2, 1, 3), (3, 4, 1, 3), (5, 6, 1, 3)]);
        assert_eq!(q.over(Span::of_ns(50, 60)).count(), 1);
    }
}
