//! The lines of all streams between two cuts, merged in order.
//!
//! A [`StreamPosition`] is a position between two events of a stream, a [`Cut`] a position between two events of the
//! merged order. A stream is read one event beyond a cut, to know that the event exists; it belongs to the next chunk.

use super::error::DumpError;
use super::text::{Form, LineLayout, Text, signed, time_of_day, unsigned};
use crate::base::notice::Notices;
use crate::base::time::Timestamp;
use crate::input::record::{ClassId, StreamId};
use crate::input::records::PassedRecord;
use crate::input::stream::{CanonicalTime, Packet, Position};
use crate::input::trace::{Plan, Reader, Trace};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bytes that are collected before they are written.
const BUFFER: usize = 256 << 10;

/// The key of the order: the time of an event. Events without one, or with one out of range, come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderKey(pub(super) Option<Timestamp>);

/// A stream that is dumped; its rank is its position in the list.
pub(super) struct Stream<'a> {
    pub(super) trace: &'a Trace,
    pub(super) layout: &'a LineLayout,
    pub(super) id: StreamId,
    pub(super) packets: usize,
}

/// A position between two events of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamPosition {
    /// The packet in which the next event is looked for; after the last one, there is none.
    pub(super) packet: usize,
    /// Position in the packet; `None`: not begun.
    pub(super) position: Option<Position>,
    /// The latest key so far.
    pub(super) highest: OrderKey,
    /// The latest key up to and with the next event, once that was seen.
    pub(super) next: Option<OrderKey>,
}

/// A position in the whole order: before one event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// The latest key of the event's stream up to and with it.
    pub(super) key: OrderKey,
    /// The rank of its stream.
    pub(super) rank: usize,
    pub(super) resume: StreamPosition,
}

/// How far a stream was read.
pub(super) struct End {
    pub(super) resume: StreamPosition,
    /// Problems found so far.
    pub(super) notices: Notices,
}

impl<'a> Stream<'a> {
    pub(super) fn new(trace: &'a Trace, layout: &'a LineLayout, number: usize) -> Self {
        let id = StreamId::at(number);
        Stream { trace, layout, id, packets: trace.streams().get(number).map_or(0, |s| s.packets.len()) }
    }

    /// Facts about a packet.
    pub(super) fn packet(&self, number: usize) -> Option<&'a Packet> {
        self.trace.streams().get(self.id.index())?.packets.get(number)
    }

    /// A reader from a position up to before a packet, by one of the layout's plans.
    pub(super) fn reader(&self, plan: &'a Plan, resume: &StreamPosition, until: usize) -> Reader<'a> {
        let mut reader = self.trace.reader(plan, self.id, resume.packet..until);
        reader.resume(resume.position);
        reader
    }

    /// The time of a clock value as it is shown. `None`: there is no clock; a key without a time: out of range.
    pub(super) fn time(&self, packet: usize, cycles: u64) -> Option<OrderKey> {
        match self.layout.form {
            Form::Canonical => match self.trace.canonical_time(self.id, packet, cycles) {
                CanonicalTime::NoClock => None,
                CanonicalTime::Overflow => Some(OrderKey(None)),
                CanonicalTime::At(time) => Some(OrderKey(Some(time))),
            },
            Form::Readable => self.trace.exact_time(self.id, packet, cycles).map(|time| OrderKey(Some(time))),
        }
    }
}

impl StreamPosition {
    /// True if it is known that nothing is between it and a cut, or the end.
    pub(super) fn is_at(&self, stream: &Stream<'_>, rank: usize, cut: Option<&Cut>) -> bool {
        match (self.next, self.position, cut) {
            (Some(key), Some(position), Some(cut)) => cut.before(rank, key, self.packet, position),
            _ => self.position.is_none() && self.packet >= stream.packets,
        }
    }
}

impl Cut {
    /// True if an event of another key or place follows: `key` is the latest of its stream up to and including it.
    pub(super) fn before(&self, rank: usize, key: OrderKey, packet: usize, position: Position) -> bool {
        if rank == self.rank {
            (packet, position.at) >= (self.resume.packet, self.resume.position.map_or(0, |position| position.at))
        } else {
            (key, rank) >= (self.key, self.rank)
        }
    }
}

/// The lines of one stream, one at a time.
struct Lines<'s, 'a> {
    stream: &'s Stream<'a>,
    reader: Reader<'a>,
    text: Text<'a>,
    class: ClassId,
    time: Option<OrderKey>,
    /// The latest key before the line, and up to and with it.
    before: OrderKey,
    key: OrderKey,
}

impl<'s, 'a> Lines<'s, 'a> {
    fn new(stream: &'s Stream<'a>, resume: &StreamPosition) -> Self {
        let reader = stream.reader(&stream.layout.plan, resume, stream.packets);
        let (text, highest) = (stream.layout.text(), resume.highest);
        Lines { stream, reader, text, class: ClassId::at(0), time: None, before: highest, key: highest }
    }

    /// Go to the next event; false at the end.
    fn next(&mut self) -> bool {
        self.text.out.clear();
        self.before = self.key;
        let Some(PassedRecord { class, clock }) = self.reader.show(&mut self.text) else { return false };
        self.class = class;
        self.time = self.stream.time(self.reader.packet(), clock);
        self.key = self.key.max(self.time.unwrap_or_default());
        true
    }

    /// True if the event is after the cut.
    fn is_after(&self, cut: Option<&Cut>, rank: usize) -> bool {
        cut.is_some_and(|cut| cut.before(rank, self.key, self.reader.packet(), self.reader.began()))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let layout = self.stream.layout;
        match (self.time, layout.form) {
            (None, _) => out.push(b'-'),
            (Some(OrderKey(None)), _) => out.extend_from_slice(b"overflow"),
            (Some(OrderKey(Some(time))), Form::Canonical) => signed(time.ns(), out),
            (Some(OrderKey(Some(time))), Form::Readable) => time_of_day(time, out),
        }
        out.extend_from_slice(&layout.host);
        match self.stream.trace.packet_cpu(self.stream.id, self.reader.packet()) {
            None => out.push(b'-'),
            Some(cpu) => unsigned(u64::from(cpu), out),
        }
        out.extend_from_slice(layout.names.get(self.class.index()).map_or(&[], Vec::as_slice));
        out.extend_from_slice(&self.text.out);
        out.push(b'\n');
    }
}

/// Append the lines of all streams from their positions up to a cut, in order, to `text`; `flush` may empty it. Returns
/// how far each stream was read.
pub(super) fn merge(
    streams: &[Stream<'_>],
    positions: &[StreamPosition],
    cut: Option<&Cut>,
    text: &mut Vec<u8>,
    mut flush: impl FnMut(&mut Vec<u8>) -> Result<(), DumpError>,
) -> Result<Vec<End>, DumpError> {
    let begin = |(rank, (stream, resume)): (usize, (_, &StreamPosition))| {
        if resume.is_at(stream, rank, cut) { None } else { Some(Lines::new(stream, resume)) }
    };
    let mut all: Vec<Option<Lines<'_, '_>>> = streams.iter().zip(positions).enumerate().map(begin).collect();
    let mut ends: Vec<StreamPosition> = positions.to_vec();
    let mut heap: BinaryHeap<Reverse<(OrderKey, usize)>> = BinaryHeap::new();
    // Queue a stream's next line; true if it is the least of all.
    let mut next = |lines: &mut Lines<'_, '_>, rank: usize, heap: &mut BinaryHeap<Reverse<(OrderKey, usize)>>| {
        let there = lines.next();
        if there && !lines.is_after(cut, rank) {
            let key = (lines.key, rank);
            if heap.peek().is_none_or(|Reverse(least)| key <= *least) {
                return true;
            }
            heap.push(Reverse(key));
            return false;
        }
        let highest = lines.before;
        if let Some(end) = ends.get_mut(rank) {
            let (packet, position) = (lines.reader.packet(), Some(lines.reader.began()));
            *end = if there {
                StreamPosition { packet, position, highest, next: Some(lines.key) }
            } else {
                StreamPosition { packet: lines.stream.packets, position: None, highest, next: None }
            };
        }
        false
    };
    for (rank, lines) in all.iter_mut().enumerate() {
        if let Some(lines) = lines
            && next(lines, rank, &mut heap)
        {
            heap.push(Reverse((lines.key, rank)));
        }
    }
    let mut full = text.len() + BUFFER;
    while let Some(Reverse((_, rank))) = heap.pop() {
        let Some(Some(lines)) = all.get_mut(rank) else { break };
        loop {
            lines.write(text);
            if text.len() >= full {
                flush(text)?;
                full = text.len() + BUFFER;
            }
            if !next(lines, rank, &mut heap) {
                break;
            }
        }
    }
    flush(text)?;
    let end = |(lines, resume): (&Option<Lines<'_, '_>>, StreamPosition)| End {
        resume,
        notices: lines.as_ref().map_or_else(Notices::default, |lines| lines.reader.notices()),
    };
    Ok(all.iter().zip(ends).map(end).collect())
}
