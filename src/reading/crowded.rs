//! Counts the events of crowded packets, before chunks are cut by them ([`packet_times`](super::packet_times)).
//!
//! In: bound traces. Out: [`PacketTimes`], empty where no packets are crowded. Cost: the headers of all records, on the
//! workers; where there are more than [`MEASURED`] streams, those of about as many, to which the others are taken to be
//! alike.

use super::cuts::{TimedPacket, most_open};
use super::packet_times::{PARTS, PacketEvents, PacketPlace, PacketTimes};
use super::sources::BoundTraces;
use crate::base::ctx::Ctx;
use crate::base::parallel::in_order;
use crate::base::time::Timestamp;
use crate::input::record::StreamId;
use crate::input::records::PassedRecord;
use crate::input::trace::Trace;
use std::collections::BTreeMap;

impl PacketTimes {
    /// Of all packets, if more bytes of them are open at a time than some chunks of `size` have.
    pub(super) fn of_crowded(bound: &BoundTraces, traces: &[&Trace], size: u64, ctx: &Ctx) -> PacketTimes {
        let mut times = PacketTimes::default();
        let Some(packets) = times.packets(traces) else { return times };
        if most_open(&packets) <= size.saturating_mul(CROWDED) {
            return times;
        }
        let streams: usize = traces.iter().map(|trace| trace.streams().len()).sum();
        // A step that no power of two divides meets the streams of each CPU, whose number is one as a rule.
        times.measure(bound, traces, (streams / MEASURED).max(1) | 1, ctx);
        times
    }

    /// Measure the packets of each `step`th stream. Of another stream it is taken that the events of a packet are at
    /// such parts of its time as those of the measured packet of its kind that begins nearest: of copies of a recording
    /// they are.
    fn measure(&mut self, bound: &BoundTraces, traces: &[&Trace], step: usize, ctx: &Ctx) {
        let streams = |trace: usize| (0..traces[trace].streams().len()).map(move |stream| (trace, stream));
        let packets = |(trace, stream): (usize, usize)| {
            let of: &Trace = traces[trace];
            (0..of.streams()[stream].packets.len()).map(move |packet| PacketPlace { trace, stream, packet })
        };
        let streams: Vec<(usize, usize)> = (0..traces.len()).flat_map(streams).collect();
        let measured: Vec<(usize, usize)> = streams.iter().copied().step_by(step).collect();
        let read = |at: usize| {
            let events = |place| Some((place, events_of(bound, traces, place)?));
            packets(measured[at]).filter_map(events).collect::<Vec<_>>()
        };
        let mut known: BTreeMap<(PacketKind, Timestamp, PacketPlace), (TimedPacket, PacketEvents)> = BTreeMap::new();
        let timed = |place: PacketPlace| TimedPacket::of(traces[place.trace], place.stream, place.packet);
        let kind = |place: PacketPlace| PacketKind {
            of_kernel: bound.origins.get(place.trace).is_some_and(|origin| origin.kernel),
            stream_class: traces[place.trace].streams()[place.stream].stream_class,
        };
        // Once cancelled, the work ends before a chunk is read.
        let _ = in_order(ctx, measured.len(), read, |_, found| {
            let timed =
                |(place, of)| timed(place).map(|packet| ((kind(place), packet.bounds.begin, place), (packet, of)));
            known.extend(found.into_iter().filter_map(timed));
        });
        for place in streams.into_iter().enumerate().filter(|(at, _)| at % step > 0).flat_map(|(_, of)| packets(of)) {
            let Some(packet) = timed(place) else { continue };
            let at = (kind(place), packet.bounds.begin, PacketPlace::FIRST);
            let near = [known.range(..at).next_back(), known.range(at..).next()];
            let near = near.into_iter().flatten().filter(|((kind, ..), _)| *kind == at.0);
            let nearest = near.min_by_key(|((_, begin, _), _)| begin.abs_diff(at.1));
            nearest.into_iter().for_each(|(_, like)| _ = self.packets.insert(place, packet.like(like)));
        }
        self.packets.extend(known.into_iter().map(|((_, _, place), (_, events))| (place, events)));
        self.bytes = self.packets.keys().filter_map(|place| timed(*place)).map(|packet| packet.bytes).sum();
        self.events = self.packets.values().map(|packet| packet.events).sum();
    }
}

/// Packets of one kind have about as many events in as many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PacketKind {
    of_kernel: bool,
    stream_class: u32,
}

impl TimedPacket {
    /// Its events, if they are at such parts of its time as those of another packet, and as dense.
    fn like(self, (packet, events): &(TimedPacket, PacketEvents)) -> PacketEvents {
        let scaled =
            |part: u64, to: u64, whole: u64| (u128::from(part) * u128::from(to) / u128::from(whole.max(1))) as u64;
        let length = |packet: TimedPacket| packet.bounds.end.abs_diff(packet.bounds.begin);
        let part = |t: &Timestamp| scaled(t.abs_diff(packet.bounds.begin), length(self), length(*packet));
        let between = events.between.iter().map(|t| self.bounds.begin.wrapping_add(part(t))).collect();
        PacketEvents { events: scaled(self.bytes, events.events, packet.bytes), between }
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

/// Streams whose packets are measured, about, where there are more.
const MEASURED: usize = 64;

/// The packets that are open at a time have this many times the bytes of a chunk, from which on they are crowded.
const CROWDED: u64 = 4;

/// Events between two looks at the clock.
const EVERY: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{self, Argument, Opened, Source};
    use crate::reading::bind::Binding;

    /// Of copies it makes no difference how many streams are measured.
    #[test]
    fn measure_takes_streams_to_be_like_those_of_their_kind() {
        let argument = |i| Argument::parse(format!("{i}=fixtures/traces/lock-contention"));
        let arguments: Vec<Argument> = (0..6).map(argument).collect();
        let ctx = Ctx::new(1);
        let Ok(Opened::Traces(sources)) = input::open(&arguments, &ctx) else { panic!("they are traces") };
        let sources: Vec<&Source> = sources.iter().collect();
        let traces: Vec<&Trace> = sources.iter().map(|source| &source.trace).collect();
        let bound = BoundTraces::new(&traces, &[], |trace| Binding::new(trace, &[]), &ctx).unwrap();
        let measured = |step| {
            let mut times = PacketTimes::default();
            times.measure(&bound, &traces, step, &ctx);
            times
        };
        let (all, some) = (measured(1), measured(7));
        assert!(all.packets.len() > 20 && all.events > 0);
        assert_eq!((all.packets.len(), all.events, all.bytes), (some.packets.len(), some.events, some.bytes));
        for (place, packet) in &all.packets {
            let like = &some.packets[place];
            assert_eq!((packet.events, &packet.between), (like.events, &like.between), "{place:?}");
        }
    }
}
