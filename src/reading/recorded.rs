//! How many records of each class a trace holds: an estimate, from some of its packets.
//!
//! In: a trace, and the stream classes to look at. Out: numbers of records by class, extrapolated from the bytes that
//! were read, and whether two classes of one name are copies. Metadata only declares: a channel may have had an event
//! disabled, or a filter may have kept most of its events out, so a declared class can be empty. The packets are spread
//! evenly over the streams. Only the headers of their first records are read, and the fields where a stream has two
//! classes of one name, since a copy has the same. So the cost is at most [`PACKETS`] times [`RECORDS`] records for
//! each stream class, and as much for [`STREAMS`] streams that got no packet of these: the ring buffers of a trace.dat
//! have events of their own, and one may be small.

use crate::base::time::{Ns, Timestamp};
use crate::input::record::{ClassId, FieldPath, Projection, Scope, StreamId, Value};
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
        let mut named: BTreeMap<(u32, &str), usize> = BTreeMap::new();
        trace.classes().iter().for_each(|class| *named.entry((class.stream_class, class.known())).or_default() += 1);
        let wanted = |(at, class): (usize, &Class)| {
            let may_be_copy = named.get(&(class.stream_class, class.known())).is_some_and(|classes| *classes > 1);
            let fields = || {
                let mut fields: Vec<FieldPath> = trace
                    .payload_fields(ClassId::at(at))
                    .into_iter()
                    .map(|field| FieldPath::new(Scope::Payload, field.name))
                    .collect();
                fields.sort_unstable();
                fields
            };
            let is_read = streams.contains_key(&class.stream_class);
            is_read.then(|| if may_be_copy { fields() } else { Vec::new() })
        };
        let wanted = trace.classes().iter().enumerate().map(wanted).collect();
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
    let mut last: Option<(ClassId, Timestamp, Vec<Value<'_>>)> = None;
    for _ in 0..RECORDS {
        let Some(record) = reader.next() else { return false };
        let (class, time) = (record.class, record.time);
        let is_copy = |(other, at, values): &(ClassId, Timestamp, Vec<Value<'_>>)| {
            let is_together = *other != class && time.since(*at) <= TOGETHER && name(*other) == name(class);
            is_together && says_the_same(values, record.values)
        };
        let copy = last.take().filter(is_copy);
        for paired in [Some(class), copy.as_ref().map(|(other, ..)| *other)].into_iter().flatten() {
            if let Some(count) = counts.get_mut(paired.index()) {
                count.paired += u64::from(copy.is_some());
            }
        }
        // Each record has one copy.
        last = copy.is_none().then(|| (class, time, record.values.to_vec()));
        if let Some(count) = counts.get_mut(class.index()) {
            count.records += 1;
        }
    }
    true
}

/// True where two records of one event have the same fields.
fn says_the_same(one: &[Value<'_>], other: &[Value<'_>]) -> bool {
    let content = |value: &Value<'_>| (value.as_i64(), value.as_text().map(<[u8]>::to_vec));
    one.iter().map(content).eq(other.iter().map(content))
}
