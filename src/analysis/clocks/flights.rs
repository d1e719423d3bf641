//! Matched packets: packets that left one host and arrived at another.
//!
//! In: the network events of all traces. Out: flights, each with its times by the clocks of both hosts. A packet is
//! identified by its whole TCP header: connection, sequence number, acknowledgement, flags, length. One host may record
//! it several times (bridges, containers); a record later than [`PASSAGE`] is another packet with the same header (a
//! retransmission, a keep-alive), and either one may be missing at the other host: such headers are not used.
//!
//! Workers read ranges of packets of the streams, in no order; their tables are joined by minimum and maximum, so that
//! the result does not depend on the ranges. A table that grows over [`MOST`] headers keeps those whose hash ends in
//! one more zero bit: an even sample, the same for any order. Cost: one reading of the clocks that may have flights:
//! those whose recordings overlap, or, with clocks that are far apart, those of which a few samples show packets that
//! one host sends and the other receives. So recordings made one after the other cost very little.

use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::kind::Kind;
use crate::input::Source;
use crate::input::record::StreamId;
use crate::input::trace::Plan;
use crate::model::clock::HostClock;
use crate::reading::batch::{Batch, TcpSegment};
use crate::reading::bind::{Binder, Binding, Focus};
use foldhash::HashMap;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::ops::Range;

/// Time in which a packet passes the devices of one host.
const PASSAGE: Ns = 10_000_000;
/// Largest number of headers in a table.
const MOST: usize = 1 << 19;
/// Bytes of packets that a worker reads at a time.
const RANGE_BYTES: u64 = 4 << 20;

/// A packet between two hosts, with the time of each end by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flight {
    pub from: u16,
    pub to: u16,
    pub sent: Timestamp,
    pub received: Timestamp,
}

/// An end of a packet's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FlightEnd {
    Sending,
    Arrival,
}

/// The records of a header on one host, of its sending or of its arrival.
#[derive(Clone, Copy, Debug)]
struct Sighting {
    clock: u16,
    end: FlightEnd,
    first: Timestamp,
    last: Timestamp,
}

#[derive(Debug)]
struct SightingTable {
    /// The hash of each header ends in this many zero bits.
    level: u32,
    most: usize,
    seen: HashMap<TcpSegment, SmallVec<[Sighting; 2]>>,
}

/// A hash that is the same in every run of the program.
fn rank(segment: &TcpSegment) -> u64 {
    foldhash::quality::FixedState::with_seed(0).hash_one(segment)
}

impl SightingTable {
    fn new(most: usize) -> SightingTable {
        SightingTable { level: 0, most, seen: HashMap::default() }
    }

    fn add(&mut self, segment: &TcpSegment, new: Sighting) {
        if rank(segment).trailing_zeros() < self.level {
            return;
        }
        let all = self.seen.entry(*segment).or_default();
        match all.iter_mut().find(|s| (s.clock, s.end) == (new.clock, new.end)) {
            Some(known) => (known.first, known.last) = (known.first.min(new.first), known.last.max(new.last)),
            None => all.push(new),
        }
        while self.seen.len() > self.most {
            self.level += 1;
            self.seen.retain(|segment, _| rank(segment).trailing_zeros() >= self.level);
        }
    }

    fn join(&mut self, other: SightingTable) {
        self.level = self.level.max(other.level);
        let level = self.level;
        self.seen.retain(|segment, _| rank(segment).trailing_zeros() >= level);
        for (segment, all) in other.seen {
            all.iter().for_each(|seen| self.add(&segment, *seen));
        }
    }

    fn flights(&self) -> Vec<Flight> {
        let mut flights = Vec::new();
        let once = |s: &&Sighting| s.last.since(s.first) <= PASSAGE;
        for all in self.seen.values() {
            for sent in all.iter().filter(|s| s.end == FlightEnd::Sending).filter(once) {
                let arrivals = all.iter().filter(|s| s.end == FlightEnd::Arrival && s.clock != sent.clock).filter(once);
                let flight =
                    |r: &Sighting| Flight { from: sent.clock, to: r.clock, sent: sent.first, received: r.first };
                flights.extend(arrivals.map(flight));
            }
        }
        flights.sort_unstable();
        flights
    }
}

/// A trace with its binding and decode plan.
struct NetworkTrace<'a> {
    source: &'a Source,
    clock: u16,
    binding: Binding,
    plan: Plan,
}

/// Packets of a stream that are sampled.
const SAMPLES: usize = 4;
/// Records that are read of each sampled packet.
const RECORDS: usize = 1000;

/// Source and destination addresses.
type Route = (u128, u128);

/// A range of packets of one stream.
struct ReadRange {
    /// Position of its trace.
    trace: usize,
    stream: StreamId,
    packets: Range<usize>,
}

/// All flights between the clocks, sorted; `lives` are the spans of their recordings by their own time.
pub(super) fn find(
    sources: &[Source],
    clocks: &[HostClock],
    lives: &[Span],
    ctx: &Ctx,
) -> Result<Vec<Flight>, Cancelled> {
    let mut traces = Vec::new();
    for (clock, about) in clocks.iter().enumerate() {
        for source in about.traces.iter().filter_map(|i| sources.get(*i)) {
            let binding = Binding::focused(&source.trace, &[], Focus::Packets);
            let plan = source.trace.compile(&binding.projection);
            traces.push(NetworkTrace { source, clock: u16::try_from(clock).unwrap_or(u16::MAX), binding, plan });
        }
    }
    let connected = connected(&traces, lives);
    traces.retain(|r| connected.contains(&r.clock));
    let ranges = cut(&traces);
    ctx.progress.enter("clocks", ranges.len() as u64);
    let mut table = SightingTable::new(MOST);
    let read = |i: usize| ranges.get(i).and_then(|range| Some(range.read(traces.get(range.trace)?)));
    in_order(ctx, ranges.len(), read, |_, found| {
        found.into_iter().for_each(|found| table.join(found));
        ctx.progress.step(1);
    })?;
    Ok(table.flights())
}

/// The clocks that may have flights: those whose recording overlaps that of another, and those with a route to one.
fn connected(traces: &[NetworkTrace<'_>], lives: &[Span]) -> BTreeSet<u16> {
    let clocks: BTreeSet<u16> = traces.iter().map(|r| r.clock).collect();
    let mut found = overlapping(&clocks, lives);
    if found.len() < clocks.len() {
        let mut routes: BTreeMap<(u16, FlightEnd), BTreeSet<Route>> = BTreeMap::new();
        traces.iter().for_each(|r| r.sample(&mut routes));
        let mut ends: BTreeMap<Route, [Vec<u16>; 2]> = BTreeMap::new();
        for ((clock, end), of) in routes {
            of.into_iter().for_each(|route| ends.entry(route).or_default()[end as usize].push(clock));
        }
        for [from, to] in ends.values() {
            let has_other = |clock: &&u16, all: &[u16]| all.iter().any(|other| other != *clock);
            found.extend(from.iter().filter(|clock| has_other(clock, to)));
            found.extend(to.iter().filter(|clock| has_other(clock, from)));
        }
    }
    found
}

/// The clocks whose recording overlaps that of another: of those that begin earlier one ends later than it begins, or
/// the next one begins before it ends.
fn overlapping(clocks: &BTreeSet<u16>, lives: &[Span]) -> BTreeSet<u16> {
    let life = |clock: &u16| Some((*lives.get(usize::from(*clock))?, *clock));
    let mut all: Vec<(Span, u16)> = clocks.iter().filter_map(life).filter(|(life, _)| !life.is_empty()).collect();
    all.sort_unstable_by_key(|(life, _)| life.start);
    let begins = all.iter().map(|(life, _)| life.start).skip(1).chain([Timestamp::MAX]);
    let mut latest = Timestamp::MIN;
    let overlaps = |((life, clock), next): (&(Span, u16), Timestamp)| {
        let before = latest;
        latest = latest.max(life.end);
        (life.start < before || next < life.end).then_some(*clock)
    };
    all.iter().zip(begins).filter_map(overlaps).collect()
}

fn cut(traces: &[NetworkTrace<'_>]) -> Vec<ReadRange> {
    let mut ranges = Vec::new();
    for (trace, of) in traces.iter().enumerate() {
        let streams = of.source.trace.streams().iter().enumerate();
        for (number, stream) in streams.filter(|(_, s)| of.binding.binds(&of.source.trace, s.stream_class)) {
            let (mut start, mut bytes) = (0, 0u64);
            for (i, packet) in stream.packets.iter().enumerate() {
                bytes = bytes.saturating_add(packet.bytes);
                if bytes >= RANGE_BYTES || i + 1 == stream.packets.len() {
                    ranges.push(ReadRange { trace, stream: StreamId::at(number), packets: start..i + 1 });
                    (start, bytes) = (i + 1, 0);
                }
            }
        }
    }
    ranges
}

impl ReadRange {
    fn read(&self, trace: &NetworkTrace<'_>) -> SightingTable {
        let mut table = SightingTable::new(MOST);
        trace.read(self.stream, self.packets.clone(), usize::MAX, |segment, end, t| {
            table.add(segment, Sighting { clock: trace.clock, end, first: t, last: t });
        });
        table
    }
}

impl NetworkTrace<'_> {
    /// Pass the sent and received packets among the first `records` records of some packets of a stream to `take`: the
    /// header, the end of its way, and the time. The main reading of the trace reports damage.
    fn read(
        &self,
        stream: StreamId,
        packets: Range<usize>,
        records: usize,
        mut take: impl FnMut(&TcpSegment, FlightEnd, Timestamp),
    ) {
        let mut binder = Binder::new(&self.binding, 0);
        let mut reader = self.source.trace.reader(&self.plan, stream, packets);
        let (mut batch, mut events) = (Batch::default(), Vec::new());
        let mut remaining = records;
        while let Some(record) = reader.next().filter(|_| remaining > 0) {
            remaining -= 1;
            binder.read(&record, &mut batch, &mut events);
            for event in events.drain(..) {
                let (id, end) = match event.kind {
                    Kind::Send(id) => (id, FlightEnd::Sending),
                    Kind::Receive(id) => (id, FlightEnd::Arrival),
                    _ => continue,
                };
                if let Some(segment) = batch.packet_of(id).and_then(|p| p.tcp).filter(|s| !s.flow.is_loopback()) {
                    take(&segment, end, event.time);
                }
            }
        }
    }

    /// Add the routes of packets in a few places of the trace to `routes`.
    fn sample(&self, routes: &mut BTreeMap<(u16, FlightEnd), BTreeSet<Route>>) {
        for (number, stream) in self.source.trace.streams().iter().enumerate() {
            let count = stream.packets.len();
            let places: BTreeSet<usize> = (0..SAMPLES.min(count)).map(|i| i * count / SAMPLES.min(count)).collect();
            for at in places.into_iter().filter(|_| self.binding.binds(&self.source.trace, stream.stream_class)) {
                self.read(StreamId::at(number), at..at + 1, RECORDS, |segment, end, _| {
                    let route = (segment.flow.source, segment.flow.dest);
                    routes.entry((self.clock, end)).or_default().insert(route);
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FlightEnd::{Arrival, Sending};
    use super::*;
    use crate::reading::batch::Flow;

    fn segment(seq: u32) -> TcpSegment {
        let flow = Flow { source: 1, dest: 2, source_port: 3, dest_port: 4 };
        TcpSegment { flow, seq, ack: 9, flags: 0x18, len: 100 }
    }

    fn seen(clock: u16, end: FlightEnd, t: i64) -> Sighting {
        let t = Timestamp::new(t);
        Sighting { clock, end, first: t, last: t }
    }

    fn table(rows: &[(u32, Sighting)]) -> SightingTable {
        let mut table = SightingTable::new(MOST);
        rows.iter().for_each(|(seq, seen)| table.add(&segment(*seq), *seen));
        table
    }

    #[test]
    fn overlapping_finds_the_clocks_of_any_two_that_overlap() {
        let clocks: BTreeSet<u16> = (0..7).collect();
        let mut random = 7u64;
        let mut next = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) as i64
        };
        let mut counts = BTreeSet::new();
        for _ in 0..500 {
            let life = |_| {
                let start = next() % 40;
                Span::of_ns(start, start + next() % 12)
            };
            let lives: Vec<Span> = (0..7).map(life).collect();
            let overlaps = |a: &u16| {
                let meets = |b: &u16| b != a && !lives[usize::from(*a)].clip(lives[usize::from(*b)]).is_empty();
                clocks.iter().any(meets)
            };
            let wanted: BTreeSet<u16> = clocks.iter().copied().filter(overlaps).collect();
            counts.insert(wanted.len());
            assert_eq!(overlapping(&clocks, &lives), wanted, "{lives:?}");
        }
        assert!(counts.len() > 4, "{counts:?}");
    }

    #[test]
    fn flights_takes_first_sightings_and_ignores_packets_sent_twice() {
        let again = PASSAGE + 1;
        let rows = [
            // Two devices on each side.
            (1, seen(0, Sending, 10)),
            (1, seen(0, Sending, 14)),
            (1, seen(1, Arrival, 7)),
            (1, seen(1, Arrival, 9)),
            // Recorded on one host only.
            (2, seen(0, Sending, 20)),
            // A retransmission.
            (3, seen(1, Sending, 30)),
            (3, seen(1, Sending, 30 + again)),
            (3, seen(0, Arrival, 40)),
            // Forwarded by a third host.
            (4, seen(0, Sending, 50)),
            (4, seen(2, Arrival, 60)),
            (4, seen(2, Sending, 61)),
            (4, seen(1, Arrival, 70)),
        ];
        let flight = |from, to, sent, received| {
            let (sent, received) = (Timestamp::new(sent), Timestamp::new(received));
            Flight { from, to, sent, received }
        };
        let wanted = [flight(0, 1, 10, 7), flight(0, 1, 50, 70), flight(0, 2, 50, 60), flight(2, 1, 61, 70)];
        assert_eq!(table(&rows).flights(), wanted);
        for cut in 0..rows.len() {
            let mut joined = table(&rows[cut..]);
            joined.join(table(&rows[..cut]));
            assert_eq!(joined.flights(), wanted, "cut at {cut}");
        }
    }

    #[test]
    fn full_table_keeps_a_sample_that_does_not_depend_on_the_order() {
        let rows: Vec<u32> = (0..10_000).collect();
        let fill = |rows: &mut dyn Iterator<Item = &u32>| {
            let mut table = SightingTable::new(300);
            rows.for_each(|seq| {
                table.add(&segment(*seq), seen(0, Sending, 5));
                table.add(&segment(*seq), seen(1, Arrival, 6));
            });
            table
        };
        let whole = fill(&mut rows.iter());
        let backwards = fill(&mut rows.iter().rev());
        let mut joined = fill(&mut rows[7000..].iter());
        joined.join(fill(&mut rows[..7000].iter()));
        let keys = |table: &SightingTable| table.seen.keys().map(|s| s.seq).collect::<BTreeSet<_>>();
        assert!((100..=300).contains(&whole.seen.len()), "{}", whole.seen.len());
        assert_eq!((keys(&whole), whole.level), (keys(&backwards), backwards.level));
        assert_eq!((keys(&whole), whole.level), (keys(&joined), joined.level));
    }
}
