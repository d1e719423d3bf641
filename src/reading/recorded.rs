//! How many records of each class a trace holds: an estimate, from some of its packets.
//!
//! In: a trace, and the stream classes to look at. Out: numbers of records by class, extrapolated from the bytes that
//! were read, and whether two classes of one name are copies. Metadata only declares: a channel may have had an event
//! disabled, or a filter may have kept most of its events out, so a declared class can be empty. The packets are spread
//! evenly over the streams, and only the headers of their first records are read, so the cost is at most [`PACKETS`]
//! times [`RECORDS`] headers for each stream class, and as much for [`STREAMS`] streams that got no packet of these:
//! the ring buffers of a trace.dat have events of their own, and one may be small.

use crate::base::time::{Ns, Timestamp};
use crate::input::record::{ClassId, Projection, StreamId};
use crate::input::stream::Class;
use crate::input::trace::{Plan, Reader, Trace};
use std::collections::BTreeMap;

/// Packets of a stream class that are read.
const PACKETS: usize = 8;
/// Streams without such a packet of which the first packet is read.
const STREAMS: usize = 64;
/// Records of a packet that are read.
const RECORDS: usize = 512;
/// Records from which a class's own number is reliable in a sample.
const ENOUGH: u64 = 32;
/// Where a recorder has several events on one tracepoint, it writes their records within this time of each other.
const TOGETHER: Ns = 100_000;

/// Number of records of some class.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordEstimate {
    /// Extrapolated to all packets.
    pub records: f64,
    /// True where so many were read, or all packets were, that the number is reliable.
    pub is_reliable: bool,
    /// Most of its records stand beside one of another class with the same name, in the same stream.
    pub is_beside_copy: bool,
}

/// Of a class, in what was read.
#[derive(Clone, Copy, Default)]
struct Count {
    records: u64,
    /// Of them, those that stand beside a copy.
    paired: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct RecordEstimates(Vec<RecordEstimate>);

/// What was read of a stream class.
#[derive(Default)]
struct Sample {
    /// In its streams, and of them in what was read.
    bytes: u64,
    read: u64,
    is_whole: bool,
}

impl RecordEstimates {
    /// Read some packets of the stream classes that are `wanted`.
    pub fn sample(trace: &Trace, wanted: impl Fn(u32) -> bool) -> RecordEstimates {
        let mut streams: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, stream) in trace.streams().iter().enumerate().filter(|(_, stream)| wanted(stream.stream_class)) {
            streams.entry(stream.stream_class).or_default().push(at);
        }
        if streams.is_empty() {
            return RecordEstimates::default();
        }
        let none_but_times = |stream_class: u32| streams.contains_key(&stream_class).then(Vec::new);
        let wanted = trace.classes().iter().map(|class| none_but_times(class.stream_class)).collect();
        let plan = trace.compile(&Projection { wanted });
        let mut counts = vec![Count::default(); trace.classes().len()];
        let samples: BTreeMap<u32, Sample> =
            streams.iter().map(|(class, streams)| (*class, read(trace, &plan, streams, &mut counts))).collect();
        let estimate = |(class, count): (&Class, Count)| {
            let Some(sample) = samples.get(&class.stream_class) else { return RecordEstimate::default() };
            RecordEstimate {
                records: count.records as f64 * sample.bytes as f64 / sample.read.max(1) as f64,
                is_reliable: sample.is_whole || count.records >= ENOUGH,
                is_beside_copy: count.records > 0 && count.paired * 2 >= count.records,
            }
        };
        RecordEstimates(trace.classes().iter().zip(counts).map(estimate).collect())
    }

    /// Of a class; none of one that was not looked at.
    pub fn of(&self, class: ClassId) -> RecordEstimate {
        self.0.get(class.index()).copied().unwrap_or_default()
    }
}

/// Count the records of some packets of streams of one class.
fn read(trace: &Trace, plan: &Plan, streams: &[usize], counts: &mut [Count]) -> Sample {
    let packets_of = |stream: usize| trace.streams().get(stream).map_or(&[][..], |stream| &stream.packets);
    let all: usize = streams.iter().map(|stream| packets_of(*stream).len()).sum();
    let mut sample = Sample { is_whole: all <= PACKETS, ..Sample::default() };
    let (mut number, mut next, mut passed_over) = (0, 0, 0);
    for stream in streams {
        let mut read = |at: usize, bytes: u64| {
            let mut reader = trace.reader(plan, StreamId::at(*stream), at..at + 1);
            let is_cut = count(trace, &mut reader, counts);
            let read = if is_cut { reader.position().at / 8 } else { bytes };
            sample.is_whole &= !is_cut;
            sample.read = sample.read.saturating_add(read.min(bytes));
        };
        let (packets, before) = (packets_of(*stream), next);
        for (at, packet) in packets.iter().enumerate() {
            if number * PACKETS >= next * all {
                next += 1;
                read(at, packet.bytes);
            }
            number += 1;
        }
        if let Some(first) = packets.first().filter(|_| next == before && passed_over < STREAMS) {
            passed_over += 1;
            read(0, first.bytes);
        }
        sample.bytes = packets.iter().fold(sample.bytes, |sum, packet| sum.saturating_add(packet.bytes));
    }
    sample
}

/// Count the first records of a packet. True where it may hold more.
fn count(trace: &Trace, reader: &mut Reader<'_>, counts: &mut [Count]) -> bool {
    let name = |class: ClassId| trace.classes().get(class.index()).map(Class::known);
    let mut last: Option<(ClassId, Timestamp)> = None;
    for _ in 0..RECORDS {
        let Some((class, time)) = reader.next().map(|record| (record.class, record.time)) else { return false };
        let copy = last
            .take()
            .filter(|(other, at)| *other != class && time.since(*at) <= TOGETHER && name(*other) == name(class));
        // Each record has one copy.
        last = copy.is_none().then_some((class, time));
        for paired in [Some(class), copy.map(|(other, _)| other)].into_iter().flatten() {
            if let Some(count) = counts.get_mut(paired.index()) {
                count.paired += u64::from(copy.is_some());
            }
        }
        if let Some(count) = counts.get_mut(class.index()) {
            count.records += 1;
        }
    }
    true
}
