//! When the events of crowded packets are.
//!
//! In: packets, of which more are open at a time than a chunk should hold. Out: the number of events of each packet,
//! and the times between parts of it that have as many events each. Where events come in bursts, a packet that is
//! spread evenly over its time would make chunks of the bursts too large, and many packets of the same moments (copies
//! of a recording) have their bursts together. A packet weighs as many bytes as its events have on average, since
//! memory holds events: a record with a call stack makes one for the stack too, one of a class without a meaning none.
//! No result depends on it. Cost: the headers of these packets are read once more, on the workers, without their
//! fields.

use super::cuts::{TimedPacket, most_open};
use super::sources::BoundTraces;
use crate::base::ctx::Ctx;
use crate::base::parallel::in_order;
use crate::base::time::Timestamp;
use crate::input::record::StreamId;
use crate::input::trace::{PassedRecord, Trace};
use foldhash::HashMap;

/// Parts of a packet.
pub(super) const PARTS: usize = 16;
/// The packets that are open at a time have so many times the bytes of a chunk, from which on they are crowded.
const CROWDED: u64 = 4;
/// Events between two looks at the clock.
const EVERY: u64 = 32;

/// A packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PacketPlace {
    pub trace: usize,
    pub stream: usize,
    pub packet: usize,
}

/// The events of a packet, at most: all stacks are there, all delimiters delimit.
#[derive(Debug)]
struct PacketEvents {
    events: u64,
    /// Times between its parts; none where it has too few events.
    between: Vec<Timestamp>,
}

/// The events of packets, where they were counted.
#[derive(Debug, Default)]
pub struct PacketTimes {
    packets: HashMap<PacketPlace, PacketEvents>,
    /// Of all packets.
    pub(super) events: u64,
    /// Of all packets.
    pub(super) bytes: u64,
}

impl PacketTimes {
    /// Of all packets, if more bytes of them are open at a time than some chunks of `size` have.
    pub(super) fn of_crowded(bound: &BoundTraces, traces: &[&Trace], size: u64, ctx: &Ctx) -> PacketTimes {
        let mut times = PacketTimes::default();
        let Some(packets) = times.packets(traces) else { return times };
        if most_open(&packets) <= size.saturating_mul(CROWDED) {
            return times;
        }
        let streams = |trace: usize| (0..traces[trace].streams().len()).map(move |stream| (trace, stream));
        let streams: Vec<(usize, usize)> = (0..traces.len()).flat_map(streams).collect();
        let measure = |at: usize| {
            let (trace, stream) = streams[at];
            let packets = 0..traces[trace].streams()[stream].packets.len();
            let places = packets.map(|packet| PacketPlace { trace, stream, packet });
            places.filter_map(|place| Some((place, events_of(bound, traces, place)?))).collect::<Vec<_>>()
        };
        // Once cancelled, the work ends before a chunk is read.
        let _ = in_order(ctx, streams.len(), measure, |_, measured| times.packets.extend(measured));
        times.bytes = packets.iter().map(|packet| packet.bytes).sum();
        times.events = times.packets.values().map(|packet| packet.events).sum();
        times
    }

    /// The parts of all packets; `None` where a packet does not name its times.
    pub(super) fn packets(&self, traces: &[&Trace]) -> Option<Vec<TimedPacket>> {
        let mut parts = Vec::new();
        for (trace, of) in traces.iter().enumerate() {
            for (stream, packets) in of.streams().iter().enumerate() {
                for packet in 0..packets.packets.len() {
                    parts.extend(self.parts(traces, PacketPlace { trace, stream, packet })?);
                }
            }
        }
        Some(parts)
    }

    /// The parts of a packet, of as many bytes each; the whole packet where its events were not counted, `None` where
    /// it does not name its times.
    pub(super) fn parts(&self, traces: &[&Trace], place: PacketPlace) -> Option<impl Iterator<Item = TimedPacket>> {
        let whole = TimedPacket::of(traces[place.trace], place.stream, place.packet)?;
        let counted = self.packets.get(&place);
        let between = counted.map_or(&[][..], |packet| &packet.between);
        let weight = |events: u64| u128::from(events) * u128::from(self.bytes) / u128::from(self.events.max(1));
        let weight = counted.map_or(whole.bytes, |packet| weight(packet.events) as u64);
        let count = between.len() as u64 + 1;
        let begins = std::iter::once(whole.bounds.begin).chain(between.iter().copied());
        let ends = between.iter().copied().chain([whole.bounds.end]);
        Some((0..count).zip(begins.zip(ends)).map(move |(at, (begin, end))| {
            let bytes = weight * (at + 1) / count - weight * at / count;
            TimedPacket { bounds: super::chunks::Bounds { begin, end }, bytes, whole: whole.bytes }
        }))
    }
}

/// Count the events of a packet by the classes of its records, and look at the clock of every few.
fn events_of(bound: &BoundTraces, traces: &[&Trace], place: PacketPlace) -> Option<PacketEvents> {
    let (trace, bound) = (traces[place.trace], bound.all.get(place.trace)?);
    let bounds = TimedPacket::of(trace, place.stream, place.packet)?.bounds;
    let packets = place.packet..place.packet + 1;
    let mut reader = trace.reader(bound.plan(), StreamId::at(place.stream), packets);
    let mut clocks = Vec::new();
    let mut events = 0;
    while let Some(PassedRecord { class, clock }) = reader.step() {
        let before = events;
        events += bound.binding.most_events(class);
        if before.div_ceil(EVERY) < events.div_ceil(EVERY) {
            clocks.push(clock);
        }
    }
    if clocks.len() < PARTS {
        return Some(PacketEvents { events, between: Vec::new() });
    }
    let mut latest = bounds.begin;
    let time = |part: usize| {
        let clock = clocks.get(clocks.len() * part / PARTS).copied()?;
        // Chunks are cut by times within the packet's, which never go back.
        latest = trace.exact_time(StreamId::at(place.stream), place.packet, clock)?.min(bounds.end).max(latest);
        Some(latest)
    };
    Some(PacketEvents { events, between: (1..PARTS).map_while(time).collect() })
}
