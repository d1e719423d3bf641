//! Chunks: spans of the time line over all streams, and the records of each.
//!
//! In: the packet indexes of traces. Out: chunks balanced by bytes (`cuts`). A packet that overlaps several chunks (at
//! most one per stream and cut) is left at the first record after a chunk, and the next chunk reads on from there
//! (`places`). Where that place is not known, the reader skips the records before the chunk by their headers.
//!
//! A record belongs to the chunk that holds its time, so records of equal times are never separated. The chunk in which
//! a packet ends reports the errors in it. No result may depend on where the cuts are. ALGORITHMS.md 10.1.

use super::cuts::{Bounds, TimedPacket, cuts};
use super::packet_times::{PacketPlace, PacketTimes};
use super::places::{PacketPosition, StreamPlaces};
use crate::base::ctx::Cancel;
use crate::base::notice::{Notice, Notices};
use crate::base::time::{Span, Timestamp};
use crate::input::record::{ClassId, Record, StreamId};
use crate::input::records::Records;
use crate::input::stream::{Checkpoint, Passed, Position};
use crate::input::trace::{Plan, Trace, each_reader};
use std::ops::Range;

/// How large chunks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ChunkTarget {
    /// A cut at the begin of every packet.
    Packet,
    /// About this many bytes.
    Bytes(u64),
    /// By the size of the trace and the number of workers.
    #[default]
    Balanced,
    /// By the size of the trace and the number of workers, with at most about this many bytes.
    Within(u64),
    /// One chunk: for tests alone.
    #[cfg_attr(program, allow(dead_code))]
    Whole,
    /// At these times, in order: tests cut between any two events.
    #[cfg_attr(program, allow(dead_code))]
    Moments(&'static [Timestamp]),
}

/// Consecutive packets of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketRange {
    /// Position of the trace in the list.
    pub trace: usize,
    pub stream: StreamId,
    /// Packets that may hold records of the chunk.
    pub packets: Range<usize>,
}

/// A span of the time line over all streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Records from here on.
    pub from: Timestamp,
    /// Records before this.
    pub until: Timestamp,
    /// Streams in the order of traces and of their ids.
    pub ranges: Vec<PacketRange>,
    /// Bytes of its part of each packet, which are spread evenly over the packet's time.
    pub bytes: u64,
}

/// A balanced chunk is a worker's share of the bytes that are left, divided by this.
const CHUNKS_PER_SHARE: u64 = 2;
/// Least and most bytes of a balanced chunk.
const LEAST: u64 = 1 << 20;
const MOST: u64 = 32 << 20;

/// The times to cut at. Traces with packets that do not name their times are not cut.
fn cuts_of(traces: &[&Trace], times: &PacketTimes, target: ChunkTarget, workers: usize) -> Vec<Timestamp> {
    let Some(packets) = times.packets(traces) else { return Vec::new() };
    match target {
        ChunkTarget::Packet => cuts(&packets, |_| 0),
        ChunkTarget::Bytes(bytes) => cuts(&packets, |_| bytes),
        ChunkTarget::Balanced => cuts(&packets, |left| balanced(left, MOST, workers)),
        ChunkTarget::Within(most) => cuts(&packets, |left| balanced(left, most, workers)),
        ChunkTarget::Whole => Vec::new(),
        ChunkTarget::Moments(moments) => {
            let mut cuts: Vec<Timestamp> = moments.iter().copied().filter(|t| *t < Timestamp::MAX).collect();
            cuts.dedup();
            cuts
        }
    }
}

/// Bytes of the next chunk where this many are left: ever smaller, so that all workers end at about the same time.
/// Bounded, because memory holds the chunks that are being read.
pub(super) fn balanced(left: u64, most: u64, workers: usize) -> u64 {
    (left / (CHUNKS_PER_SHARE * workers.max(1) as u64)).clamp(LEAST, MOST).min(most)
}

/// Cut the time line of some traces into chunks.
pub fn cut(traces: &[&Trace], target: ChunkTarget, workers: usize) -> Vec<Chunk> {
    cut_by(traces, &PacketTimes::default(), target, workers)
}

/// [`cut`], by the times of the events in some packets.
pub(super) fn cut_by(traces: &[&Trace], times: &PacketTimes, target: ChunkTarget, workers: usize) -> Vec<Chunk> {
    let cuts = cuts_of(traces, times, target, workers);
    let bounds: Vec<Timestamp> = std::iter::once(Timestamp::MIN).chain(cuts).chain([Timestamp::MAX]).collect();
    let chunk = |w: &[Timestamp]| Chunk { from: w[0], until: w[1], ranges: Vec::new(), bytes: 0 };
    let mut chunks: Vec<Chunk> = bounds.windows(2).map(chunk).collect();
    for (number, trace) in traces.iter().enumerate() {
        for stream in 0..trace.streams().len() {
            distribute(&mut chunks, number, trace, stream);
            for packet in 0..trace.streams()[stream].packets.len() {
                match times.parts(traces, PacketPlace { trace: number, stream, packet }) {
                    Some(parts) => parts.for_each(|part| weigh(&mut chunks, part)),
                    // Traces with such a packet are one chunk.
                    None => chunks[0].bytes += trace.streams()[stream].packets[packet].bytes,
                }
            }
        }
    }
    chunks
}

/// Count the bytes of a packet, or of a part of one, in the chunks that it meets.
fn weigh(chunks: &mut [Chunk], packet: TimedPacket) {
    let first = chunks.partition_point(|chunk| chunk.ends_before(packet.bounds.begin));
    let mut before = 0;
    for chunk in chunks.iter_mut().skip(first).take_while(|chunk| chunk.from <= packet.bounds.end) {
        let until = if chunk.until < Timestamp::MAX { packet.bytes_before(chunk.until) } else { packet.bytes };
        chunk.bytes += until - std::mem::replace(&mut before, until);
    }
}

/// Give each chunk the packets of one stream that may hold its records: all from the first to the last such packet,
/// because packets may be out of order.
fn distribute(chunks: &mut [Chunk], number: usize, trace: &Trace, stream: usize) {
    let count = trace.streams()[stream].packets.len();
    let bounds: Vec<Bounds> =
        (0..count).map(|packet| Bounds::of(trace, stream, packet).unwrap_or(Bounds::NONE)).collect();
    // The latest end of any packet up to here, the earliest begin of any from here on: both ascend.
    let mut latest = Vec::with_capacity(count);
    for packet in &bounds {
        latest.push(packet.end.max(latest.last().copied().unwrap_or(Timestamp::MIN)));
    }
    let mut earliest = vec![Timestamp::MAX; count];
    let mut least = Timestamp::MAX;
    for (packet, earliest) in bounds.iter().zip(&mut earliest).rev() {
        least = least.min(packet.begin);
        *earliest = least;
    }
    for chunk in chunks.iter_mut() {
        let first = latest.partition_point(|end| *end < chunk.from);
        let after = earliest.partition_point(|begin| !chunk.ends_before(*begin));
        if first < after {
            chunk.ranges.push(PacketRange { trace: number, stream: StreamId::at(stream), packets: first..after });
        }
    }
}

impl Chunk {
    /// True for times inside.
    pub fn holds(&self, time: Timestamp) -> bool {
        self.from <= time && !self.ends_before(time)
    }

    /// True for times after it. The last chunk ends with the time line.
    fn ends_before(&self, time: Timestamp) -> bool {
        self.until <= time && self.until < Timestamp::MAX
    }
}

/// The position of a record relative to the chunk that [`PacketRange::read`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkSide {
    /// Before the chunk: the last checkpoint event of its packet before the chunk begins.
    Before,
    /// In the chunk.
    Inside,
}

/// What is needed to read a stream.
#[derive(Clone, Copy)]
pub(super) struct StreamSource<'a, 'p> {
    pub trace: &'a Trace,
    pub plan: &'a Plan,
    /// Where its packets were left; always by the same plan, and with the same checkpoints.
    pub places: &'p StreamPlaces,
}

impl PacketRange {
    /// Pass the records of the packets that are in the chunk to `take`, packet by packet. Records before the chunk are
    /// skipped, except that the last one of each packet whose class is a `checkpoint` is passed first.
    ///
    /// A record's time is clamped to its packet's bounds, else it could belong to a chunk that does not read its
    /// packet, and to no earlier than the records written before it, so that a packet can be left at the first record
    /// after the chunk.
    pub(super) fn read<'a>(
        &self,
        StreamSource { trace, plan, places }: StreamSource<'a, '_>,
        chunk: &Chunk,
        cancel: &Cancel,
        checkpoint: impl Fn(ClassId) -> bool,
        mut take: impl FnMut(&Record<'_, 'a>, ChunkSide),
    ) -> RangeOutcome {
        let mut outcome = RangeOutcome::default();
        for packet in self.packets.clone() {
            let bounds = Bounds::of(trace, self.stream.index(), packet).unwrap_or(Bounds::NONE);
            if cancel.is_cancelled() {
                break;
            }
            if bounds.end < chunk.from || chunk.ends_before(bounds.begin) {
                continue;
            }
            let reader = trace.reader(plan, self.stream, packet..packet + 1);
            let place = places.before(packet, chunk.from);
            let read = each_reader!(
                reader,
                reader => read_packet(reader, bounds, chunk, place, &checkpoint, &mut take),
                continue
            );
            let is_damaged = read.notices.count(Notice::DamagedPacket) > 0;
            if let Some(last) = read.last.filter(|t| is_damaged && *t > Timestamp::MIN && chunk.holds(*t)) {
                // A packet that does not name its end: how much is missing is unknown.
                let end = if bounds.end < Timestamp::MAX { bounds.end } else { last };
                outcome.damaged.push(Span::new(last, end));
            }
            if chunk.holds(bounds.end) {
                outcome.notices.merge(&read.notices);
                let stream = || trace.streams()[self.stream.index()].name.clone();
                outcome.notices.add(Notice::TimeBackwards, read.passed.backwards, stream);
            } else {
                let PacketOutcome { passed, position, .. } = read;
                places.keep(PacketPosition { packet, cut: chunk.until, position, passed });
            }
        }
        outcome
    }
}

/// The result of reading packets for a chunk, besides their records.
#[derive(Clone, Debug, Default)]
pub struct RangeOutcome {
    /// Problems in the packets that end in the chunk.
    pub notices: Notices,
    /// By damaged packet whose last readable record is in the chunk: from that record to the end of the packet.
    pub damaged: Vec<Span>,
}

/// The result of reading one packet, besides its records.
struct PacketOutcome {
    notices: Notices,
    /// Its records up to the end of the chunk.
    passed: Passed,
    /// Where it was left.
    position: Position,
    /// Time of the last record, where the packet was read to its end.
    last: Option<Timestamp>,
}

/// Pass the records of a packet that are in a chunk to `take`, from a place before the chunk on.
fn read_packet<'a>(
    mut reader: impl Records<'a>,
    bounds: Bounds,
    chunk: &Chunk,
    place: Option<PacketPosition>,
    checkpoint: impl Fn(ClassId) -> bool,
    mut take: impl FnMut(&Record<'_, 'a>, ChunkSide),
) -> PacketOutcome {
    reader.resume(place.map(|place| place.position));
    let mut passed = place.map_or(Passed::NOTHING, |place| place.passed);
    let mut position = reader.position();
    if bounds.begin < chunk.from {
        position = reader.seek(chunk.from, &mut passed, &checkpoint);
        if let Some(Checkpoint { position, latest }) = passed.checkpoint {
            let here = reader.position();
            reader.go(position);
            if let Some(record) = reader.next() {
                take(&Record { time: bounds.clamp(latest), ..record }, ChunkSide::Before);
            }
            reader.go(here);
        }
    }
    let mut is_left = false;
    while let Some(record) = reader.next() {
        let time = bounds.clamp(passed.latest.max(record.time));
        is_left = chunk.ends_before(time);
        if is_left {
            break;
        }
        passed.meet(record.time, record.class, position, &checkpoint);
        if chunk.from <= time {
            take(&Record { time, ..record }, ChunkSide::Inside);
        }
        position = reader.position();
    }
    let last = (!is_left).then(|| bounds.clamp(passed.latest));
    PacketOutcome { notices: reader.notices(), passed, position, last }
}
