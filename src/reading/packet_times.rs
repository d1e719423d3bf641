//! When the events of crowded packets are.
//!
//! In: packets, of which more are open at a time than a chunk should hold. Out: the number of events of each packet,
//! and the times between parts of it that have as many events each. Where events come in bursts, a packet that is
//! spread evenly over its time would make chunks of the bursts too large, and many packets of the same moments (copies
//! of a recording) have their bursts together. A packet weighs as many bytes as its events have on average, since
//! memory holds events: a record with a call stack makes one for the stack too, one of a class without a meaning none.
//! No result depends on it. `crowded` counts them.

use super::cuts::{Bounds, TimedPacket};
use crate::base::time::Timestamp;
use crate::input::trace::Trace;
use foldhash::HashMap;

/// Parts of a packet.
pub(super) const PARTS: usize = 16;

/// A packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PacketPlace {
    pub trace: usize,
    pub stream: usize,
    pub packet: usize,
}

impl PacketPlace {
    pub const FIRST: PacketPlace = PacketPlace { trace: 0, stream: 0, packet: 0 };
}

/// The events of a packet, at most: all stacks are there, all delimiters delimit.
#[derive(Debug)]
pub(super) struct PacketEvents {
    pub events: u64,
    /// Times between its parts; none where it has too few events.
    pub between: Vec<Timestamp>,
}

/// The events of packets, where they were counted.
#[derive(Debug, Default)]
pub struct PacketTimes {
    pub(super) packets: HashMap<PacketPlace, PacketEvents>,
    /// Of all packets.
    pub(super) events: u64,
    /// Of all packets.
    pub(super) bytes: u64,
}

impl PacketTimes {
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
            TimedPacket { bounds: Bounds { begin, end }, bytes, whole: whole.bytes }
        }))
    }
}
