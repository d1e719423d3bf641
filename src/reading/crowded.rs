//! Counts the events of crowded packets, before chunks are cut by them ([`packet_times`](super::packet_times)).
//!
//! In: bound traces. Out: [`PacketTimes`], empty where no packets are crowded. Cost: the headers of all records, on the
//! workers.

use super::cuts::{TimedPacket, most_open};
use super::packet_times::{PARTS, PacketEvents, PacketPlace, PacketTimes};
use super::sources::BoundTraces;
use crate::base::ctx::Ctx;
use crate::base::parallel::in_order;
use crate::input::record::StreamId;
use crate::input::records::PassedRecord;
use crate::input::trace::Trace;

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

/// The packets that are open at a time have this many times the bytes of a chunk, from which on they are crowded.
const CROWDED: u64 = 4;

/// Events between two looks at the clock.
const EVERY: u64 = 32;
