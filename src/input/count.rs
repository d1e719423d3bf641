//! Counts the events of each name in a recording, and those that the tracer lost.
//!
//! Reads headers and skips bodies. Packets are counted in parallel, in chunks of about equal size; the sums do not
//! depend on the chunks.

use super::Source;
use super::record::{Projection, StreamId};
use super::trace::{Plan, Trace};
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::mapped::Mapped;
use crate::base::notice::{Notice, Notices};
use crate::base::parallel::in_order;
use crate::model::counts::RecordCounts;
use foldhash::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// Bytes of packets in a chunk.
const CHUNK: u64 = 1 << 20;

/// Bytes of a file whose pages a worker gives back at a time.
const GIVEN_BACK: usize = 8 << 20;

/// A run of packets of one stream of one trace.
struct PacketRun {
    source: usize,
    stream: StreamId,
    packets: Range<usize>,
}

/// Count the events of some traces.
pub fn count(sources: &[Source], ctx: &Ctx) -> Result<(RecordCounts, Notices), Cancelled> {
    // The first worker that needs a plan compiles it.
    let plans: Vec<OnceLock<Plan>> = sources.iter().map(|_| OnceLock::new()).collect();
    let runs = cut(sources);
    ctx.progress.enter("counting", runs.len() as u64);
    let mut totals: Vec<Vec<u64>> = sources.iter().map(|s| vec![0; s.trace.classes().len()]).collect();
    let mut notices = Notices::default();
    let make = |i: usize| {
        let run = runs.get(i)?;
        let source = sources.get(run.source)?;
        let plan = plans.get(run.source)?.get_or_init(|| source.trace.compile(&Projection::default()));
        let mut counts = vec![0u64; source.trace.classes().len()];
        let mut reader = source.trace.reader(plan, run.stream, run.packets.clone());
        reader.count(&mut counts);
        Some((run.source, counts, reader.notices()))
    };
    in_order(ctx, runs.len(), make, |_, made| {
        let Some((source, counts, found)) = made else { return };
        for (total, n) in totals.get_mut(source).into_iter().flatten().zip(counts) {
            *total += n;
        }
        notices.merge(&found);
        ctx.progress.step(1);
    })?;
    let mut sum = RecordCounts::default();
    let mut per_name: HashMap<&str, u64> = HashMap::default();
    for (source, totals) in sources.iter().zip(totals) {
        for (class, n) in source.trace.classes().iter().zip(totals).filter(|(_, n)| *n > 0) {
            *per_name.entry(&class.name).or_default() += n;
            sum.events += n;
        }
        let LostTotals { events, packets } = lost(&source.trace);
        sum.discarded_events = sum.discarded_events.saturating_add(events);
        sum.discarded_packets = sum.discarded_packets.saturating_add(packets);
        sum.streams += source.trace.streams().len() as u64;
        sum.packets += source.trace.streams().iter().map(|s| s.packets.len() as u64).sum::<u64>();
        notices.merge(&source.trace.notices());
    }
    sum.per_name = per_name.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    notices.add(Notice::DiscardedEvents, sum.discarded_events, String::new);
    notices.add(Notice::DiscardedPackets, sum.discarded_packets, String::new);
    Ok((sum, notices))
}

/// Give the pages of large files back, on all workers, when nothing more is asked of the traces: what the process maps
/// when it ends is unmapped by one.
pub fn give_back(sources: &[Source], ctx: &Ctx) -> Result<(), Cancelled> {
    let large = |file: &&Mapped| file.bytes().len() > GIVEN_BACK;
    let files = sources.iter().flat_map(|source| source.trace.files()).filter(large);
    let parts = files.flat_map(|file| (0..file.bytes().len()).step_by(GIVEN_BACK).map(move |from| (file, from)));
    let parts: Vec<(&Mapped, usize)> = parts.collect();
    let make = |part: usize| {
        if let Some((file, from)) = parts.get(part) {
            file.give_back(*from..from.saturating_add(GIVEN_BACK));
        }
    };
    in_order(ctx, parts.len(), make, |_, ()| {})
}

/// Numbers that the tracer recorded of what it lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostTotals {
    pub events: u64,
    pub packets: u64,
}

/// The events and packets that the tracer recorded as lost.
pub fn lost(trace: &Trace) -> LostTotals {
    let counted = trace.streams().iter().flat_map(|s| &s.losses).filter_map(|loss| loss.events);
    LostTotals {
        events: counted.fold(0u64, u64::saturating_add),
        packets: trace.streams().iter().map(|s| s.lost_packets).fold(0, u64::saturating_add),
    }
}

fn cut(sources: &[Source]) -> Vec<PacketRun> {
    let mut runs = Vec::new();
    for (source, s) in sources.iter().enumerate() {
        for (number, stream) in s.trace.streams().iter().enumerate() {
            let stream_id = StreamId::at(number);
            let (mut start, mut bytes) = (0, 0u64);
            for (i, packet) in stream.packets.iter().enumerate() {
                bytes = bytes.saturating_add(packet.bytes);
                if bytes >= CHUNK || i + 1 == stream.packets.len() {
                    runs.push(PacketRun { source, stream: stream_id, packets: start..i + 1 });
                    (start, bytes) = (i + 1, 0);
                }
            }
        }
    }
    runs
}
