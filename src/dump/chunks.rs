//! The text, made on all workers: all lines in order are cut into chunks, each worker makes the text of one chunk at a
//! time, and the chunks are written in order.
//!
//! The cuts come from scanning the events of some packets (a window) without decoding their values, at about a
//! twentieth of the cost of making their text. The scan leaves *samples* in each stream: positions with a known key and
//! the weight up to the next sample. Merged over all streams the samples give chunks of about equal weight; from the
//! sample before a cut a worker scans on to the begin of its chunk in each stream.
//!
//! The scan does not check values, so that damage to an event may show only when its text is made. Then the assumed
//! position and latest time after it may be wrong. So each chunk reports its end, which must equal the begin of the
//! next one to the bit, and the cut itself must have been reached; if not, the caller resumes from the last position
//! that is certain. Memory: two chunks of text per worker, and the samples of one window.

use super::error::DumpError;
use super::lines::{Cut, End, OrderKey, Stream, StreamPosition, merge};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::notice::Notices;
use crate::base::parallel::in_order;
use crate::input::records::PassedRecord;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sizes in bytes of packets' content; the output depends on none of them.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// From one sample of a stream to the next.
    pub sample: u64,
    /// Packets and events that one worker turns into text.
    pub chunk: u64,
    /// Size of the part that is scanned for each worker before it is turned into text.
    pub window: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes { sample: 4 << 10, chunk: 256 << 10, window: 16 << 20 }
    }
}

/// Limit of a chunk's text, whatever its predicted size.
const MOST_TEXT: usize = 64 << 20;

/// The check whether times are in range covers this many cycles ahead.
const AHEAD: u64 = 1 << 32;

/// Packets that one worker steps over at a time.
const PIECE: u64 = 1 << 20;

/// A place in a stream at which a chunk may end, and the bytes from there to the next one.
#[derive(Clone, Copy, Debug)]
struct Sample {
    cut: Cut,
    bytes: u64,
}

/// The text of a chunk.
struct Made {
    starts: Vec<StreamPosition>,
    text: Vec<u8>,
    ends: Vec<End>,
}

/// Write chunks starting at `positions` while each matches its prediction. On return `positions` is up to where output
/// is valid, so that the caller can resume there.
pub(super) fn write(
    streams: &[Stream<'_>],
    positions: &mut Vec<StreamPosition>,
    notices: &mut [Notices],
    sizes: &Sizes,
    ctx: &Ctx,
    out: &mut (impl Write + Send),
) -> Result<(), DumpError> {
    let most = sizes.window.saturating_mul(ctx.threads as u64);
    let spare = Mutex::default();
    // The first window is small, so that a reader of the first lines need not wait.
    let mut bytes = sizes.chunk.saturating_mul(4 * ctx.threads as u64).min(most);
    loop {
        let (ranges, whole) = window(streams, positions, bytes);
        let samples = survey(streams, positions, &ranges, sizes, ctx)?;
        let mut cuts = choose(streams, &samples, &ranges, sizes.chunk).into_iter().map(Some).collect::<Vec<_>>();
        if whole {
            cuts.push(None);
        }
        if cuts.is_empty() {
            // The times of these packets do not match their order in the file.
            bytes = bytes.saturating_mul(2);
            continue;
        }
        let window = Window { streams, samples, cuts, spare: &spare };
        let sound = window.write(positions, notices, ctx, out)?;
        if whole || !sound {
            return Ok(());
        }
        bytes = bytes.saturating_mul(2).min(most);
    }
}

/// The packets of the next window: about this many bytes from the positions on, those that begin first. True if no
/// others are left.
fn window(streams: &[Stream<'_>], positions: &[StreamPosition], bytes: u64) -> (Vec<Range<usize>>, bool) {
    let mut ranges: Vec<Range<usize>> = positions.iter().map(|resume| resume.packet..resume.packet).collect();
    let packet = |rank: usize, number: usize| streams.get(rank)?.packet(number);
    let begin = |rank: usize, number: usize| Some(Reverse((packet(rank, number)?.begin, rank)));
    let mut heap: BinaryHeap<_> = ranges.iter().enumerate().filter_map(|(rank, r)| begin(rank, r.end)).collect();
    let mut taken = 0;
    while taken < bytes
        && let Some(Reverse((_, rank))) = heap.pop()
        && let Some(range) = ranges.get_mut(rank)
    {
        taken += packet(rank, range.end).map_or(0, |packet| packet.bytes.max(1));
        range.end += 1;
        heap.extend(begin(rank, range.end));
    }
    (ranges, heap.is_empty())
}

/// The samples of each stream in the window.
fn survey(
    streams: &[Stream<'_>],
    positions: &[StreamPosition],
    ranges: &[Range<usize>],
    sizes: &Sizes,
    ctx: &Ctx,
) -> Result<Vec<Vec<Sample>>, Cancelled> {
    let mut pieces = Vec::new();
    for (rank, (stream, range)) in streams.iter().zip(ranges).enumerate() {
        let (mut start, mut bytes) = (range.start, 0);
        for number in range.clone() {
            bytes += stream.packet(number).map_or(0, |packet| packet.bytes);
            if bytes >= PIECE || number + 1 == range.end {
                pieces.push((rank, start..number + 1));
                (start, bytes) = (number + 1, 0);
            }
        }
    }
    let step = |i: usize| {
        let (rank, packets) = pieces.get(i)?;
        let (stream, resume) = (streams.get(*rank)?, positions.get(*rank)?);
        let first = StreamPosition { packet: packets.start, ..StreamPosition::default() };
        let from = if packets.start == resume.packet {
            StreamPosition { highest: OrderKey::default(), next: None, ..*resume }
        } else {
            first
        };
        Some((*rank, sample(stream, *rank, &from, packets.end, sizes.sample)))
    };
    let mut samples: Vec<Vec<Sample>> = streams.iter().map(|_| Vec::new()).collect();
    let mut highest: Vec<OrderKey> = positions.iter().map(|resume| resume.highest).collect();
    in_order(ctx, pieces.len(), step, |_, found| {
        let Some((rank, (found, most))) = found else { return };
        if let (Some(samples), Some(highest)) = (samples.get_mut(rank), highest.get_mut(rank)) {
            samples.extend(found.into_iter().map(|mut sample| {
                sample.cut.key = sample.cut.key.max(*highest);
                sample.cut.resume.highest = sample.cut.resume.highest.max(*highest);
                sample.cut.resume.next = Some(sample.cut.key);
                sample
            }));
            *highest = most.max(*highest);
        }
    })?;
    Ok(samples)
}

/// The samples of some packets of a stream, and the latest key in them; keys are counted from the position on.
fn sample(
    stream: &Stream<'_>,
    rank: usize,
    from: &StreamPosition,
    until: usize,
    every: u64,
) -> (Vec<Sample>, OrderKey) {
    let mut samples: Vec<Sample> = Vec::new();
    let mut reader = stream.reader(&stream.layout.steps, from, until);
    let mut highest = from.highest;
    // The packet that was sampled last, and the bit from which on the next sample is taken.
    let (mut last, mut due) = (usize::MAX, 0);
    // Time grows with the clock, except where it is out of range; up to `safe` it is in range. So between samples only
    // the largest value of the clock in the packet counts.
    let (mut safe, mut most) = (0, None);
    while let Some(PassedRecord { clock: cycles, .. }) = reader.step() {
        let (packet, position) = (reader.packet(), reader.began());
        let goes_on = packet == last && position.at < due;
        if goes_on && cycles <= safe {
            most = most.max(Some(cycles));
            continue;
        }
        highest = highest.max(most.take().and_then(|most| stream.time(last, most)).unwrap_or_default());
        let ahead = cycles.saturating_add(AHEAD);
        safe = if matches!(stream.time(packet, ahead), Some(OrderKey(Some(_)))) { ahead } else { 0 };
        let key = highest.max(stream.time(packet, cycles).unwrap_or_default());
        if !goes_on {
            if packet == last
                && let Some(before) = samples.last_mut()
            {
                let start = before.cut.resume.position.map_or(0, |position| position.at);
                before.bytes = (position.at - start) / 8;
            }
            let bytes = stream.packet(packet).map_or(0, |packet| packet.bytes).saturating_sub(position.at / 8);
            let resume = StreamPosition { packet, position: Some(position), highest, next: None };
            samples.push(Sample { cut: Cut { key, rank, resume }, bytes });
            (last, due) = (packet, position.at + every * 8);
        }
        highest = key;
    }
    let most = most.and_then(|most| stream.time(last, most)).unwrap_or_default();
    (samples, highest.max(most))
}

/// The cuts: at samples between which there are about `chunk` bytes, up to where all streams were stepped over.
fn choose(streams: &[Stream<'_>], samples: &[Vec<Sample>], ranges: &[Range<usize>], chunk: u64) -> Vec<Cut> {
    let mut limit = None;
    for ((stream, samples), range) in streams.iter().zip(samples).zip(ranges) {
        if range.end < stream.packets {
            // The begin of the next packet, or the position in the last one.
            let next = stream.packet(range.end).and_then(|packet| packet.begin);
            let last = OrderKey(next).max(samples.last().map_or_else(OrderKey::default, |sample| sample.cut.key));
            limit = Some(limit.map_or(last, |limit: OrderKey| limit.min(last)));
        }
    }
    let mut all: Vec<&Sample> = samples.iter().flatten().collect();
    // Stable: the samples of a stream stay in order.
    all.sort_by_key(|sample| (sample.cut.key, sample.cut.rank));
    let (mut cuts, mut weight) = (Vec::new(), 0);
    for sample in all {
        if limit.is_some_and(|limit| sample.cut.key > limit) {
            break;
        }
        if weight >= chunk.max(1) {
            cuts.push(sample.cut);
            weight = 0;
        }
        weight += sample.bytes;
    }
    cuts
}

/// A part of the order that is cut into chunks.
struct Window<'w, 'a> {
    streams: &'w [Stream<'a>],
    samples: Vec<Vec<Sample>>,
    /// The end of each chunk; `None`: that of all.
    cuts: Vec<Option<Cut>>,
    /// Buffers of texts that were written, to be used again.
    spare: &'w Mutex<Vec<Vec<u8>>>,
}

impl Window<'_, '_> {
    /// Write the chunks from the positions on; false if one did not match its prediction. Afterwards the positions are
    /// after the last chunk that was written.
    fn write(
        &self,
        positions: &mut Vec<StreamPosition>,
        notices: &mut [Notices],
        ctx: &Ctx,
        out: &mut (impl Write + Send),
    ) -> Result<bool, DumpError> {
        let begin = positions.clone();
        let (mut sound, mut failed) = (true, None);
        // Set once no more chunks are needed.
        let stop = AtomicBool::new(false);
        let make = |i: usize| if stop.load(Ordering::Relaxed) { Ok(None) } else { self.make(i, &begin, ctx) };
        in_order(ctx, self.cuts.len(), make, |i, made: Result<Option<Made>, Cancelled>| {
            if failed.is_some() || !sound {
                return;
            }
            let mut made = match made {
                Ok(Some(made)) => made,
                // `in_order` reports the cancellation.
                other => {
                    sound &= other.is_err();
                    return stop.store(true, Ordering::Relaxed);
                }
            };
            let cut = self.cuts.get(i).and_then(Option::as_ref);
            let meets = |cut: &Cut| made.ends.get(cut.rank).is_some_and(|end| end.resume == cut.resume);
            sound = made.starts == *positions && cut.is_none_or(meets);
            if sound {
                failed = out.write_all(&made.text).err();
                *positions = made.ends.iter().map(|end| end.resume).collect();
                notices.iter_mut().zip(&made.ends).for_each(|(all, end)| all.merge(&end.notices));
            }
            made.text.clear();
            self.spare().push(made.text);
            stop.store(!sound || failed.is_some(), Ordering::Relaxed);
        })?;
        failed.map_or(Ok(sound), |error: io::Error| Err(error.into()))
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The text of a chunk; `None` if it is far longer than a chunk should be.
    fn make(&self, i: usize, begin: &[StreamPosition], ctx: &Ctx) -> Result<Option<Made>, Cancelled> {
        let starts = match i.checked_sub(1).and_then(|before| self.cuts.get(before)) {
            Some(Some(cut)) => self.starts(begin, cut),
            _ => begin.to_vec(),
        };
        let mut text = self.spare().pop().unwrap_or_default();
        let cut = self.cuts.get(i).and_then(Option::as_ref);
        let merged = merge(self.streams, &starts, cut, &mut text, |text| {
            ctx.cancel.check()?;
            if text.len() > MOST_TEXT { Err(io::Error::from(io::ErrorKind::OutOfMemory).into()) } else { Ok(()) }
        });
        match merged {
            Ok(ends) => Ok(Some(Made { starts, text, ends })),
            Err(DumpError::Output(_)) => Ok(None),
            Err(DumpError::Cancelled(cancelled)) => Err(cancelled),
        }
    }

    /// The position where each stream continues after a cut: from the last sample before it some events are stepped
    /// over.
    fn starts(&self, begin: &[StreamPosition], cut: &Cut) -> Vec<StreamPosition> {
        let one = |(rank, ((stream, samples), begin)): (usize, ((&Stream<'_>, &Vec<Sample>), &StreamPosition))| {
            if rank == cut.rank {
                return cut.resume;
            }
            let before = samples.partition_point(|sample| (sample.cut.key, rank) < (cut.key, cut.rank));
            let from = before.checked_sub(1).and_then(|last| samples.get(last)).map_or(begin, |s| &s.cut.resume);
            if from.is_at(stream, rank, Some(cut)) {
                return *from;
            }
            let mut reader = stream.reader(&stream.layout.steps, from, stream.packets);
            let mut highest = from.highest;
            while let Some(PassedRecord { clock: cycles, .. }) = reader.step() {
                let (packet, position) = (reader.packet(), reader.began());
                let key = highest.max(stream.time(packet, cycles).unwrap_or_default());
                if cut.before(rank, key, packet, position) {
                    return StreamPosition { packet, position: Some(position), highest, next: Some(key) };
                }
                highest = key;
            }
            StreamPosition { packet: stream.packets, position: None, highest, next: None }
        };
        self.streams.iter().zip(&self.samples).zip(begin).enumerate().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::base::time::Timestamp;
    use crate::dump::chunks::*;
    use crate::dump::text::{Form, LineLayout};
    use crate::input::{Argument, Opened, open};

    const TYPES: &str = "/* CTF 1.8 */ typealias integer { size = 8; } := u8;\n\
        trace { major = 1; minor = 8; byte_order = le; }; clock { name = c; };\n\
        stream { event.header := struct { integer { size = 8; map = clock.c.value; } timestamp; }; };\n\
        event { name = e; fields := struct { enum : u8 { a } t; variant <t> { u8 a; } v; }; };\n";

    /// Three streams of 80 events; `spoil` may change them. What `look` finds out about their dump.
    fn with_trace<T>(spoil: impl Fn(&mut [Vec<[u8; 3]>]), look: impl Fn(&[Stream<'_>], &Ctx) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("metadata"), TYPES).unwrap();
        let mut events: Vec<Vec<[u8; 3]>> = (0..3).map(|i| (0..80).map(|n| [n + i, 0, n]).collect()).collect();
        spoil(&mut events);
        for (i, events) in events.iter().enumerate() {
            std::fs::write(folder.path().join(format!("s{i}")), events.concat()).unwrap();
        }
        let ctx = Ctx::new(2);
        let argument = Argument::new(folder.path().to_owned());
        let Ok(Opened::Traces(sources)) = open(&[argument], &ctx) else { panic!("no trace") };
        let trace = &sources[0].trace;
        let layout = LineLayout::new(trace, Form::Canonical);
        let streams: Vec<Stream<'_>> = (0..trace.streams().len()).map(|i| Stream::new(trace, &layout, i)).collect();
        look(&streams, &ctx)
    }

    const SIZES: Sizes = Sizes { sample: 1, chunk: 12, window: 60 };

    fn lines(out: &[u8]) -> usize {
        out.iter().filter(|b| **b == b'\n').count()
    }

    /// Lines that were written by chunks, and whether all streams were read to their ends.
    fn by_chunks(streams: &[Stream<'_>], ctx: &Ctx) -> (usize, bool) {
        let (mut positions, mut out) = (vec![StreamPosition::default(); streams.len()], Vec::new());
        let mut notices: Vec<Notices> = streams.iter().map(|_| Notices::default()).collect();
        write(streams, &mut positions, &mut notices, &SIZES, ctx, &mut out).unwrap();
        (lines(&out), positions.iter().zip(streams).all(|(resume, stream)| resume.packet == stream.packets))
    }

    #[test]
    fn chunks_leave_no_work_to_one_worker() {
        assert_eq!(with_trace(|_| {}, by_chunks), (240, true));
        // The selector of an event selects nothing, so its packet ends there.
        assert_eq!(with_trace(|streams| streams[1][40][1] = 9, by_chunks), (200, true));
        // Times go back, and are the same for long.
        assert_eq!(with_trace(|streams| streams[2][10..70].iter_mut().for_each(|e| e[0] = 5), by_chunks), (240, true));
    }

    #[test]
    fn chunk_with_another_begin_than_assumed_is_not_written() {
        with_trace(
            |_| {},
            |streams, ctx| {
                let begin = vec![StreamPosition::default(); streams.len()];
                let (ranges, _) = window(streams, &begin, u64::MAX);
                let samples = survey(streams, &begin, &ranges, &SIZES, ctx).unwrap();
                let cuts = choose(streams, &samples, &ranges, SIZES.chunk);
                assert!(cuts.len() > 10);
                for wrong in 0..4 {
                    let mut cuts: Vec<Option<Cut>> = cuts.iter().copied().map(Some).collect();
                    let cut = cuts[wrong].as_mut().unwrap();
                    // As if events before it had had a later time, and were not there.
                    let last = OrderKey(Some(Timestamp::MAX));
                    (cut.resume.highest, cut.resume.next, cut.key) = (last, Some(last), last);
                    let (mut positions, mut out) = (begin.clone(), Vec::new());
                    let mut notices: Vec<Notices> = streams.iter().map(|_| Notices::default()).collect();
                    let part =
                        Window { streams, samples: samples.clone(), cuts: cuts.clone(), spare: &Mutex::default() };
                    assert!(!part.write(&mut positions, &mut notices, ctx, &mut out).unwrap());
                    let sure = Window {
                        streams,
                        samples: samples.clone(),
                        cuts: cuts[..wrong].to_vec(),
                        spare: &Mutex::default(),
                    };
                    let (mut sound, mut text) = (begin.clone(), Vec::new());
                    assert!(sure.write(&mut sound, &mut notices, ctx, &mut text).unwrap());
                    assert!(positions == sound && out == text && (wrong == 0) == text.is_empty());
                }
            },
        );
    }
}
