//! How large chunks may be, so that the buffers of their events stay within their part of the memory budget.
//!
//! In: bound traces, the budget, the number of workers. Out: the size of chunks, and the bytes of all buffers. A worker
//! decodes a chunk into one buffer and merges its streams into a second, and at most two merged chunks for each worker
//! wait or are being joined (`base/parallel.rs`): three buffers for each worker. Each grows to the largest chunk that
//! it held, and a chunk is in two of them: so they hold no more than the largest chunks twice over. How many bytes of
//! events a byte of trace makes is measured on a packet in the middle of the largest stream of each schema, since only
//! the events that are asked for are decoded: 0.3 to 1 in the recordings at hand. No result depends on it. Cost: at
//! most [`MOST_SAMPLED`] packets decoded twice, and none where any trace of this size would fit.

use super::batch::Batch;
use super::bind::{Binder, Binding};
use super::chunks::{Chunk, ChunkTarget, PacketRange, StreamSource, balanced, cut_by};
use super::cuts::LARGER_BY;
use super::density::EventDensity;
use super::engine::EngineOptions;
use super::packet_times::PacketTimes;
use super::places::StreamPlaces;
use super::sources::BoundTraces;
use crate::base::ctx::{Cancel, Ctx};
use crate::base::time::Timestamp;
use crate::input::record::StreamId;
use crate::input::trace::Trace;
use foldhash::HashMap;
use std::cmp::Reverse;
use std::sync::Arc;

/// Buffers of a worker.
const BUFFERS: u64 = 3;
/// Of them, merged chunks that wait or are being joined.
const WAITING: u64 = 2;
/// Divisor: by that part a chunk of measured packets may have more events than its share, since the parts of a packet
/// say when its events are, but not to the event.
const MARGIN: u64 = 8;
/// Schemas that are sampled, the largest first.
const MOST_SAMPLED: usize = 4;
/// Packets of more bytes are not sampled.
const LONGEST_SAMPLE: u64 = 1 << 20;
/// Bytes of a chunk, at least: smaller ones take more time than they save memory.
const LEAST_CHUNK: u64 = 64 << 10;

/// The traces of a schema.
#[derive(Clone, Copy, Debug)]
struct SchemaTraces {
    /// The number of the first one.
    first: usize,
    bytes: u64,
}

/// Bytes of a chunk whose events take this many.
fn within(density: EventDensity, share: u64) -> u64 {
    (density.encoded(share) / (LARGER_BY + 1) * LARGER_BY).max(LEAST_CHUNK)
}

impl BoundTraces {
    /// The engine's options with chunks whose buffers stay within their part of the budget, and the bytes that these
    /// buffers take. The options stay as they are where there is no budget, or where they say how large chunks are.
    /// `rows`: bytes of rows that workers make for each byte of events, and that wait like these.
    pub fn fit_buffers(
        &mut self,
        traces: &[&Trace],
        options: &EngineOptions,
        rows: u64,
        ctx: &Ctx,
    ) -> (EngineOptions, u64) {
        let Some(budget) = &ctx.budget else { return (*options, 0) };
        let workers = ctx.threads as u64;
        let mut share = budget.for_buffers(ctx.threads) / (workers * (BUFFERS + WAITING * rows));
        let packets = traces.iter().flat_map(|trace| trace.streams()).flat_map(|stream| &stream.packets);
        let whole: u64 = packets.map(|packet| packet.bytes).sum();
        let largest = balanced(whole, u64::MAX, ctx.threads);
        let fits_anyway = EventDensity::DENSEST.decoded(largest) <= share;
        let mut density = if fits_anyway { EventDensity::DENSEST } else { self.density(traces, &ctx.cancel) };
        let chunks = match options.chunks {
            ChunkTarget::Balanced => {
                self.times = PacketTimes::of_crowded(self, traces, within(density, share), ctx);
                if self.times.events > 0 {
                    density = EventDensity::of(self.times.events, self.times.bytes);
                    share = share / (MARGIN + 1) * MARGIN;
                }
                ChunkTarget::Within(within(density, share))
            }
            chunks => chunks,
        };
        let all = cut_by(traces, &self.times, chunks, ctx.threads);
        let mut sizes: Vec<u64> = all.iter().map(|chunk| chunk.bytes).collect();
        sizes.sort_unstable_by_key(|bytes| Reverse(*bytes));
        if !fits_anyway {
            let most = sizes.first().copied().unwrap_or(0);
            (self.density, self.most_events) = (Some(density), Some(density.events(most)));
        }
        // A buffer is as large as the largest chunk that it held; each chunk is in two of them, and its rows in one.
        let held = |each: usize, buffers: u64| -> u64 {
            let chunks = sizes.iter().flat_map(|bytes| std::iter::repeat_n(*bytes, each));
            density.decoded(chunks.take(buffers as usize).sum())
        };
        let bytes = held(2, BUFFERS * workers).saturating_add(held(1, WAITING * workers).saturating_mul(rows));
        let margin = if self.times.events > 0 { bytes / MARGIN } else { 0 };
        (EngineOptions { chunks, ..*options }, bytes.saturating_add(margin))
    }

    /// How dense the events of these traces are, by samples of the largest schemas.
    fn density(&self, traces: &[&Trace], cancel: &Cancel) -> EventDensity {
        let mut schemas: HashMap<*const Binding, SchemaTraces> = HashMap::default();
        for (number, (bound, trace)) in self.all.iter().zip(traces).enumerate() {
            let bytes: u64 = trace.streams().iter().flat_map(|s| &s.packets).map(|p| p.bytes).sum();
            let of_schema = schemas.entry(Arc::as_ptr(&bound.binding));
            of_schema.or_insert(SchemaTraces { first: number, bytes: 0 }).bytes += bytes;
        }
        let mut largest: Vec<SchemaTraces> = schemas.into_values().collect();
        largest.sort_unstable_by_key(|schema| (Reverse(schema.bytes), schema.first));
        largest.truncate(MOST_SAMPLED);
        let whole: u64 = largest.iter().map(|schema| schema.bytes).sum();
        let weighted = |SchemaTraces { first, bytes }: SchemaTraces| {
            let density = self.sample(first, traces, cancel).unwrap_or(EventDensity::DENSEST);
            u128::from(density.0) * u128::from(bytes)
        };
        let sum: u128 = largest.into_iter().map(weighted).sum();
        EventDensity((sum / u128::from(whole.max(1))).max(64) as u64)
    }

    /// How dense the events are in a packet of a trace; `None` where it has none that can be sampled.
    fn sample(&self, number: usize, traces: &[&Trace], cancel: &Cancel) -> Option<EventDensity> {
        let (bound, trace) = (self.all.get(number)?, *traces.get(number)?);
        let streams = trace.streams().iter().enumerate();
        let (stream, largest) = streams.max_by_key(|(_, s)| s.packets.iter().map(|p| p.bytes).sum::<u64>())?;
        let packet = largest.packets.len() / 2;
        let bytes = largest.packets.get(packet)?.bytes;
        (0 < bytes && bytes <= LONGEST_SAMPLE).then_some(())?;
        let range = PacketRange { trace: number, stream: StreamId::at(stream), packets: packet..packet + 1 };
        let chunk = Chunk { from: Timestamp::MIN, until: Timestamp::MAX, ranges: Vec::new(), bytes };
        let (mut batch, mut events) = (Batch::default(), Vec::new());
        let mut binder = Binder::new(&bound.binding, number as u16);
        let source = StreamSource { trace, plan: bound.plan(), places: &StreamPlaces::default() };
        range.read(source, &chunk, cancel, |_| false, |record, _| binder.read(record, &mut batch, &mut events));
        Some(EventDensity::of(events.len() as u64, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::budget::Budget;
    use crate::event::kind::Event;
    use crate::input::{self, Argument, Opened, Source};

    #[test]
    fn fit_buffers_keeps_buffers_within_their_part_of_the_budget() {
        let argument = Argument::parse("fixtures/traces/lock-contention");
        let Ok(Opened::Traces(sources)) = input::open(&[argument], &Ctx::new(1)) else { panic!("it is a trace") };
        let sources: Vec<&Source> = sources.iter().collect();
        let traces: Vec<&Trace> = sources.iter().map(|source| &source.trace).collect();
        let mut sizes = Vec::new();
        for mebibytes in [32, 64, 4096] {
            let budget = Budget { bytes: mebibytes << 20, leaves: None, file: None };
            let ctx = Ctx { budget: Some(budget.clone()), ..Ctx::new(2) };
            let mut bound = BoundTraces::new(&traces, &[], |trace| Binding::new(trace, &[]), &ctx).unwrap();
            let (options, said) = bound.fit_buffers(&traces, &EngineOptions::default(), 0, &ctx);
            let mut notices = Default::default();
            let chunks = cut_by(&traces, bound.packet_times(), options.chunks, 2);
            let mut bytes = |chunk: &Chunk| {
                let batch = bound.read(&traces, chunk, &ctx.cancel, &mut notices, |_, _| {}, None);
                batch.events.len() * size_of::<Event>()
            };
            let mut decoded: Vec<usize> = chunks.iter().map(&mut bytes).collect();
            decoded.sort_unstable_by_key(|bytes| Reverse(*bytes));
            // Two workers, three buffers for each.
            let (most, held) = (decoded[0], 2 * decoded.iter().take(3).sum::<usize>() as u64);
            assert!(0 < held && held <= said, "{mebibytes} MiB: {held} of {said}");
            assert!(said <= budget.for_buffers(2).max(6 * EventDensity::DENSEST.decoded(LEAST_CHUNK)), "{said}");
            sizes.push(most);
            // Who says how large chunks are gets them.
            let packets = EngineOptions { chunks: ChunkTarget::Packet, ..EngineOptions::default() };
            assert_eq!(bound.fit_buffers(&traces, &packets, 0, &ctx).0.chunks, ChunkTarget::Packet);
        }
        assert!(sizes.is_sorted(), "{sizes:?}");
    }

    /// Packets of copies begin at the same moments, and so do bursts of their events.
    #[test]
    fn fit_buffers_cuts_copies_of_a_recording_within_packets() {
        let argument = |i| Argument::parse(format!("{i}=fixtures/traces/lock-contention/kernel"));
        let arguments: Vec<Argument> = (0..12).map(argument).collect();
        let Ok(Opened::Traces(sources)) = input::open(&arguments, &Ctx::new(2)) else { panic!("they are traces") };
        let sources: Vec<&Source> = sources.iter().collect();
        let traces: Vec<&Trace> = sources.iter().map(|source| &source.trace).collect();
        let budget = Budget { bytes: 48 << 20, leaves: None, file: None };
        let ctx = Ctx { budget: Some(budget.clone()), ..Ctx::new(2) };
        let mut bound = BoundTraces::new(&traces, &[], |trace| Binding::new(trace, &[]), &ctx).unwrap();
        let (options, said) = bound.fit_buffers(&traces, &EngineOptions::default(), 0, &ctx);
        assert!(said <= budget.for_buffers(2), "{said}");
        let chunks = cut_by(&traces, bound.packet_times(), options.chunks, 2);
        let bytes: u64 = chunks.iter().map(|chunk| chunk.bytes).sum();
        assert!(bytes.abs_diff(bound.packet_times().bytes) < 1000, "{bytes}");
        let events = |chunk: &Chunk| {
            let mut notices = Default::default();
            bound.read(&traces, chunk, &ctx.cancel, &mut notices, |_, _| {}, None).events.len() * size_of::<Event>()
        };
        let mut decoded: Vec<usize> = chunks.iter().map(events).collect();
        decoded.sort_unstable_by_key(|bytes| Reverse(*bytes));
        let (most, held) = (decoded[0], 2 * decoded.iter().take(3).sum::<usize>() as u64);
        assert!(held <= said, "{held} of {said} in {} chunks", chunks.len());
        // Without the times of their events the bursts are too large, those at the begin, where the tracer names all
        // threads, by the most.
        let evenly = cut_by(&traces, &PacketTimes::default(), options.chunks, 2);
        assert!(evenly.iter().take(20).map(events).max().unwrap() > most, "{}", evenly.len());
    }

    /// A record with a call stack makes two events, one of a class without a meaning none.
    #[test]
    fn packet_times_count_the_events_that_are_decoded() {
        for name in ["lock-contention", "cpu-contention", "disk-contention"] {
            let argument = Argument::parse(format!("fixtures/traces/{name}/kernel"));
            let Ok(Opened::Traces(sources)) = input::open(&[argument], &Ctx::new(1)) else { panic!("it is a trace") };
            let sources: Vec<&Source> = sources.iter().collect();
            let traces: Vec<&Trace> = sources.iter().map(|source| &source.trace).collect();
            let ctx = Ctx::new(1);
            let bound = BoundTraces::new(&traces, &[], |trace| Binding::new(trace, &[]), &ctx).unwrap();
            let times = PacketTimes::of_crowded(&bound, &traces, 0, &ctx);
            let (mut events, mut notices) = (0, Default::default());
            for chunk in cut_by(&traces, &times, ChunkTarget::Whole, 1) {
                let batch = bound.read(&traces, &chunk, &ctx.cancel, &mut notices, |_, _| {}, None);
                events += batch.events.len() as u64;
            }
            assert!(events > 0 && (events..events + events / 50).contains(&times.events), "{name}: {events} {times:?}");
        }
    }

    #[test]
    fn event_density_converts_both_ways() {
        let density = EventDensity::of(1_000, 100_000);
        assert_eq!(density, EventDensity(512));
        assert_eq!((density.decoded(1 << 20), density.encoded(1 << 20)), (1 << 19, 2 << 20));
        assert_eq!(EventDensity::of(u64::MAX >> 20, 1), EventDensity::DENSEST);
        assert_eq!(EventDensity::of(0, 0), EventDensity(64));
    }
}
