//! The parallel engine: a trace is cut into chunks of its time line, workers look at one chunk each, and what they
//! found is merged from left to right while later chunks are still being read.
//!
//! ALGORITHMS.md 10.1 and 10.2. A chunk is a span of time over all streams, balanced by bytes: where the weight of the
//! packets since the last cut, each placed at its begin, reaches the target, the next one begins. A packet that meets several chunks (at most
//! one per stream and cut) is read for each: what lies before the chunk is stepped over by headers, what lies behind is not read.
//! A record belongs to the chunk that its time lies in, so records of equal times are never separated, and what is
//! wrong with a packet is told by the chunk in which it ends. Nothing that is computed may depend on where the cuts lie.
//!
//! An [`Analysis`] says what a chunk means without its past, and how that is joined to what is known of the past. Where
//! that cannot be said exactly (recordings that contradict themselves), it refuses the partial, and the chunk is run again
//! from the true state on its left: slower, counted, and right. [`Way`] holds all that results must not depend on.
//! Counting headers needs no past and no order: it takes runs of packets of one stream (`input/count.rs`).

use crate::base::ctx::{Cancel, Cancelled, Ctx};
use crate::base::notice::{Notice, Notices};
use crate::base::parallel::in_order;
use crate::base::time::{Ns, Span};
use crate::input::record::{ClassId, Record, StreamId};
use crate::input::trace::{Plan, Reader, Records, Trace};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// How large chunks are; results do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ChunkTarget {
    /// A cut at the begin of every packet.
    Packet,
    /// About so many bytes.
    Bytes(u64),
    /// By the size of the trace and the number of workers.
    #[default]
    Balanced,
    /// One chunk.
    Whole,
}

/// How an engine is driven. Results depend on none of it: `tests/workers/` varies all of it.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Size of chunks.
    pub chunks: ChunkTarget,
    /// Whether workers look at what lies before their chunk in packets that they decode anyway.
    pub seeds: bool,
    /// Chunks, by number, that are run again though nothing asks for it.
    pub again: fn(usize) -> bool,
    /// Called by the worker that has looked at a chunk, before it hands it on.
    pub after: fn(usize),
}

impl Default for Way {
    fn default() -> Self {
        Way { chunks: ChunkTarget::default(), seeds: true, again: |_| false, after: |_| {} }
    }
}

/// Some packets of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Position of the trace in the list.
    pub trace: usize,
    /// Stream.
    pub stream: StreamId,
    /// Packets that may hold records of the chunk.
    pub packets: Range<usize>,
}

/// A span of the time line over all streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Records from here on.
    pub from: Ns,
    /// Records before this.
    pub until: Ns,
    /// Streams in the order of traces and of their ids.
    pub pieces: Vec<Piece>,
    /// Bytes of the packets that begin in it.
    pub bytes: u64,
}

/// What can be computed over chunks.
pub trait Analysis: Sync {
    /// What one chunk says without knowledge of the past.
    type Partial: Send;
    /// What all chunks so far say, from the true beginning.
    type Whole: Send;

    /// Look at a chunk; runs on a worker. What it returns once cancelled is thrown away.
    fn chunk(&self, traces: &[&Trace], chunk: &Chunk, seeds: bool, cancel: &Cancel) -> Self::Partial;

    /// True when joining the next chunk on the right gives exactly what running it from `whole` would.
    fn fits(&self, _whole: &Self::Whole, _right: &Self::Partial) -> bool {
        true
    }

    /// Join the next chunk on the right, which fits; runs in order, on one thread, while later chunks are being looked at.
    fn merge(&self, whole: &mut Self::Whole, right: Self::Partial);

    /// Run the next chunk from the true state on its left.
    fn replay(&self, whole: &mut Self::Whole, traces: &[&Trace], chunk: &Chunk, cancel: &Cancel) {
        self.merge(whole, self.chunk(traces, chunk, false, cancel));
    }
}

/// Run an analysis over the chunks of `traces`; closing the whole is the caller's.
pub fn run<A: Analysis>(
    analysis: &A,
    mut whole: A::Whole,
    traces: &[&Trace],
    way: &Way,
    ctx: &Ctx,
) -> Result<A::Whole, Cancelled> {
    let chunks = cut(traces, way.chunks, ctx.threads);
    ctx.progress.enter("reading", chunks.iter().map(|c| c.bytes).sum());
    let look = |i: usize| {
        let partial = analysis.chunk(traces, &chunks[i], way.seeds, &ctx.cancel);
        ctx.progress.step(chunks[i].bytes);
        (way.after)(i);
        partial
    };
    in_order(ctx, chunks.len(), look, |i, partial| {
        if ctx.cancel.is_cancelled() {
        } else if analysis.fits(&whole, &partial) && !(way.again)(i) {
            analysis.merge(&mut whole, partial);
        } else {
            drop(partial);
            analysis.replay(&mut whole, traces, &chunks[i], &ctx.cancel);
            ctx.progress.replayed.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    ctx.progress.done.store(ctx.progress.total.load(Ordering::Relaxed), Ordering::Relaxed);
    Ok(whole)
}

/// A chunk is one part in so many of a worker's share of what is left.
const SHARES: u64 = 2;

/// Between which times the records of a packet are held; any, where the packet does not tell. One that ends before it
/// begins is taken from its end on.
fn times(trace: &Trace, stream: usize, packet: usize) -> Option<(Ns, Ns)> {
    let packet = trace.streams().get(stream)?.packets.get(packet)?;
    let (begin, end) = (packet.begin?, packet.end?);
    Some((begin.min(end), begin.max(end)))
}

/// Where to cut: the begins of packets at which the weight of the packets since the last cut reaches the target. Traces whose packets do not tell their times are not cut.
fn cuts(traces: &[&Trace], target: ChunkTarget, workers: usize) -> Vec<Ns> {
    let mut begins: Vec<(Ns, u64)> = Vec::new();
    for trace in traces {
        for (number, stream) in trace.streams().iter().enumerate() {
            for (at, packet) in stream.packets.iter().enumerate() {
                let Some((begin, _)) = times(trace, number, at) else { return Vec::new() };
                begins.push((begin, packet.bytes));
            }
        }
    }
    begins.sort_unstable();
    let mut left: u64 = begins.iter().map(|(_, bytes)| bytes).sum();
    let size = |left: u64| match target {
        ChunkTarget::Packet => Some(0),
        ChunkTarget::Bytes(bytes) => Some(bytes),
        // Ever smaller, so that all workers end at about the same time. Not larger: a chunk is what is in memory at a time.
        ChunkTarget::Balanced => Some((left / (SHARES * workers.max(1) as u64)).clamp(1 << 20, 32 << 20)),
        ChunkTarget::Whole => None,
    };
    let mut cuts = Vec::new();
    let mut weight = 0;
    for (begin, bytes) in begins {
        // At the end of time nothing is cut: the last chunk holds it, and no other may.
        let fits = begin < Ns::MAX && cuts.last() != Some(&begin);
        if weight > 0 && fits && size(left).is_some_and(|size| weight >= size) {
            cuts.push(begin);
            left -= weight;
            weight = 0;
        }
        weight += bytes;
    }
    cuts
}

/// Cut the time line of some traces into chunks.
pub fn cut(traces: &[&Trace], target: ChunkTarget, workers: usize) -> Vec<Chunk> {
    let cuts = cuts(traces, target, workers);
    let bounds: Vec<Ns> = std::iter::once(Ns::MIN).chain(cuts).chain([Ns::MAX]).collect();
    let chunk = |w: &[Ns]| Chunk { from: w[0], until: w[1], pieces: Vec::new(), bytes: 0 };
    let mut chunks: Vec<Chunk> = bounds.windows(2).map(chunk).collect();
    for (number, trace) in traces.iter().enumerate() {
        for stream in 0..trace.streams().len() {
            spread(&mut chunks, number, trace, stream);
        }
    }
    chunks
}

/// Give each chunk the packets of one stream that may hold its records: a run of packets, because what lies out of
/// order is taken along.
fn spread(chunks: &mut [Chunk], number: usize, trace: &Trace, stream: usize) {
    let count = trace.streams()[stream].packets.len();
    let of = |packet| times(trace, stream, packet).unwrap_or((Ns::MIN, Ns::MAX));
    // The latest end of any packet up to here, the earliest begin of any from here on: both ascend.
    let mut latest = Vec::with_capacity(count);
    for packet in 0..count {
        latest.push(of(packet).1.max(latest.last().copied().unwrap_or(Ns::MIN)));
    }
    let mut earliest = vec![Ns::MAX; count];
    let mut least = Ns::MAX;
    for packet in (0..count).rev() {
        least = least.min(of(packet).0);
        earliest[packet] = least;
    }
    for chunk in chunks.iter_mut() {
        let first = latest.partition_point(|end| *end < chunk.from);
        let after = earliest.partition_point(|begin| !chunk.ends_before(*begin));
        if first < after {
            chunk.pieces.push(Piece { trace: number, stream: StreamId::at(stream), packets: first..after });
        }
    }
    for packet in 0..count {
        let at = chunks.partition_point(|chunk| chunk.ends_before(of(packet).0));
        if let Some(chunk) = chunks.get_mut(at) {
            chunk.bytes += trace.streams()[stream].packets[packet].bytes;
        }
    }
}

impl Chunk {
    /// True for times that lie in it.
    pub fn holds(&self, time: Ns) -> bool {
        self.from <= time && !self.ends_before(time)
    }

    /// True for times behind it. The last chunk ends with everything.
    fn ends_before(&self, time: Ns) -> bool {
        self.until <= time && self.until < Ns::MAX
    }
}

impl Piece {
    /// Give the records of the piece that lie in the chunk to `take`, packet by packet, with `true`. What lies before is stepped over;
    /// of each packet the last record there whose class is a `landmark` is given first, with `false`.
    ///
    /// A record's time is held to its packet's bounds, else it could belong to a chunk that does not read its packet, and to no
    /// earlier than what was written before it, so that a packet is left at the first record behind the chunk. What is wrong with
    /// a packet is told by the chunk in which it ends. Returned beside it: of damaged packets, from their last record that can be read, where
    /// the chunk holds it, to their end.
    pub fn read<'a>(
        &self,
        trace: &'a Trace,
        plan: &'a Plan,
        chunk: &Chunk,
        cancel: &Cancel,
        landmark: impl Fn(ClassId) -> bool,
        mut take: impl FnMut(&Record<'_, 'a>, bool),
    ) -> (Notices, Vec<Span>) {
        let (mut notices, mut damaged) = (Notices::default(), Vec::new());
        for packet in self.packets.clone() {
            let bounds = times(trace, self.stream.index(), packet).unwrap_or((Ns::MIN, Ns::MAX));
            if cancel.is_cancelled() {
                break;
            }
            if bounds.1 < chunk.from || chunk.ends_before(bounds.0) {
                continue;
            }
            let (found, backwards, last) = match trace.reader(plan, self.stream, packet..packet + 1) {
                Reader::Ctf(reader) => read_packet(reader, bounds, chunk, &landmark, &mut take),
                Reader::Perf(reader) => read_packet(reader, bounds, chunk, &landmark, &mut take),
                Reader::Ftrace(reader) => read_packet(reader, bounds, chunk, &landmark, &mut take),
                Reader::Nothing => continue,
            };
            let is_damaged = found.count(Notice::DamagedPacket) > 0;
            if let Some(last) = last.filter(|t| is_damaged && *t > Ns::MIN && chunk.holds(*t)) {
                // Of a packet that does not tell its end it is not known how much is missing.
                let end = if bounds.1 < Ns::MAX { bounds.1 } else { last };
                damaged.push(Span::new(last, end));
            }
            if chunk.holds(bounds.1) {
                notices.merge(&found);
                notices.add(Notice::TimeBackwards, backwards, || trace.streams()[self.stream.index()].name.clone());
            }
        }
        (notices, damaged)
    }
}

/// The records of a packet with these bounds that lie in a chunk. Returns what was wrong with it, and how many lie before their
/// predecessor; and, where it was read to its end, the time of its last record.
fn read_packet<'a>(
    mut reader: impl Records<'a>,
    (begin, end): (Ns, Ns),
    chunk: &Chunk,
    landmark: impl Fn(ClassId) -> bool,
    mut take: impl FnMut(&Record<'_, 'a>, bool),
) -> (Notices, u64, Option<Ns>) {
    let held = |time: Ns| time.min(end).max(begin);
    let (mut last, mut latest, mut backwards) = (Ns::MIN, Ns::MIN, 0);
    if begin < chunk.from {
        let sought = reader.seek(chunk.from, &landmark);
        (last, latest, backwards) = (sought.last, sought.latest, sought.backwards);
        if let Some((position, latest)) = sought.landmark {
            let here = reader.position();
            reader.go(position);
            if let Some(record) = reader.next() {
                take(&Record { time: held(latest), ..record }, false);
            }
            reader.go(here);
        }
    }
    while let Some(record) = reader.next() {
        backwards += u64::from(record.time < last);
        (last, latest) = (record.time, latest.max(record.time));
        let time = held(latest);
        if chunk.ends_before(time) {
            return (reader.notices(), backwards, None);
        }
        if chunk.from <= time {
            take(&Record { time, ..record }, true);
        }
    }
    (reader.notices(), backwards, Some(held(latest)))
}
