//! Packets that left one host and arrived on another.
//!
//! In: the network's events of all traces. Out: flights, each by the clock it left and the one it reached. A packet is
//! known by its whole TCP header: connection, sequence number, acknowledgement, flags, length. On one host it may be
//! seen several times (bridges, containers); what is seen again later than [`PASSAGE`] is another packet with the same
//! header (a retransmission, a sign of life), whose own passage may not have been recorded: such headers say nothing.
//!
//! Streams are read in pieces side by side, in no order; tables of pieces are joined by minimum and maximum, so that
//! nothing depends on the pieces. A table that grows over [`MOST`] headers keeps those whose hash ends in one more
//! zero bit: an even sample, the same for any order. Cost: one reading, of the clocks that may have flights: their
//! recordings overlap, or, with clocks that are far off, a few samples of each show packets that one host sends to
//! another which receives such packets. Recordings made one after the other so cost next to nothing.

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
/// Headers in the table.
const MOST: usize = 1 << 19;
/// Bytes of packets that a worker reads at a time.
const PIECE: u64 = 4 << 20;

/// A packet between two clocks, each end by its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flight {
    pub from: u16,
    pub to: u16,
    pub sent: Timestamp,
    pub received: Timestamp,
}

/// A header seen by one clock, on its way out or in.
#[derive(Clone, Copy, Debug)]
struct Seen {
    clock: u16,
    sent: bool,
    first: Timestamp,
    last: Timestamp,
}

#[derive(Debug)]
struct Table {
    /// Hashes end in so many zero bits.
    level: u32,
    most: usize,
    seen: HashMap<TcpSegment, SmallVec<[Seen; 2]>>,
}

/// The same on every run.
fn rank(segment: &TcpSegment) -> u64 {
    foldhash::quality::FixedState::with_seed(0).hash_one(segment)
}

impl Table {
    fn new(most: usize) -> Table {
        Table { level: 0, most, seen: HashMap::default() }
    }

    fn add(&mut self, segment: &TcpSegment, new: Seen) {
        if rank(segment).trailing_zeros() < self.level {
            return;
        }
        let all = self.seen.entry(*segment).or_default();
        match all.iter_mut().find(|s| (s.clock, s.sent) == (new.clock, new.sent)) {
            Some(known) => (known.first, known.last) = (known.first.min(new.first), known.last.max(new.last)),
            None => all.push(new),
        }
        while self.seen.len() > self.most {
            self.level += 1;
            self.seen.retain(|segment, _| rank(segment).trailing_zeros() >= self.level);
        }
    }

    fn join(&mut self, other: Table) {
        self.level = self.level.max(other.level);
        let level = self.level;
        self.seen.retain(|segment, _| rank(segment).trailing_zeros() >= level);
        for (segment, all) in other.seen {
            all.iter().for_each(|seen| self.add(&segment, *seen));
        }
    }

    fn flights(&self) -> Vec<Flight> {
        let mut flights = Vec::new();
        let once = |s: &&Seen| s.last.since(s.first) <= PASSAGE;
        for all in self.seen.values() {
            for sent in all.iter().filter(|s| s.sent).filter(once) {
                let arrivals = all.iter().filter(|s| !s.sent && s.clock != sent.clock).filter(once);
                let flight = |r: &Seen| Flight { from: sent.clock, to: r.clock, sent: sent.first, received: r.first };
                flights.extend(arrivals.map(flight));
            }
        }
        flights.sort_unstable();
        flights
    }
}

/// A trace and what is read of it.
struct Reading<'a> {
    source: &'a Source,
    clock: u16,
    binding: Binding,
    plan: Plan,
}

/// Packets of a stream that are sampled, and records of each.
const SAMPLES: usize = 4;
const RECORDS: usize = 1000;

/// Who sends to whom.
type Route = (u128, u128);

/// A run of packets of one stream.
struct Piece {
    reading: usize,
    stream: StreamId,
    packets: Range<usize>,
}

/// All flights between the clocks, sorted; `lives` are their recordings by their own time.
pub(super) fn find(
    sources: &[Source],
    clocks: &[HostClock],
    lives: &[Span],
    ctx: &Ctx,
) -> Result<Vec<Flight>, Cancelled> {
    let mut readings = Vec::new();
    for (clock, about) in clocks.iter().enumerate() {
        for source in about.traces.iter().filter_map(|i| sources.get(*i)) {
            let binding = Binding::focused(&source.trace, &[], Focus::Packets);
            let plan = source.trace.compile(&binding.projection);
            readings.push(Reading { source, clock: u16::try_from(clock).unwrap_or(u16::MAX), binding, plan });
        }
    }
    let talk = talking(&readings, lives);
    readings.retain(|r| talk.contains(&r.clock));
    let pieces = cut(&readings);
    ctx.progress.enter("clocks", pieces.len() as u64);
    let mut table = Table::new(MOST);
    let read = |i: usize| pieces.get(i).and_then(|piece| Some(piece.read(readings.get(piece.reading)?)));
    in_order(ctx, pieces.len(), read, |_, found| {
        found.into_iter().for_each(|found| table.join(found));
        ctx.progress.step(1);
    })?;
    Ok(table.flights())
}

/// The clocks that may have flights.
fn talking(readings: &[Reading<'_>], lives: &[Span]) -> BTreeSet<u16> {
    let mut talk = BTreeSet::new();
    let overlap = |a: u16, b: u16| {
        let life = |clock: u16| lives.get(usize::from(clock)).copied().unwrap_or_default();
        !life(a).clip(life(b)).is_empty()
    };
    let clocks: BTreeSet<u16> = readings.iter().map(|r| r.clock).collect();
    let pairs = clocks.iter().flat_map(|a| clocks.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b);
    talk.extend(pairs.clone().filter(|(a, b)| overlap(*a, *b)).flat_map(|(a, b)| [a, b]));
    if talk.len() < clocks.len() {
        let mut routes: BTreeMap<(u16, bool), BTreeSet<Route>> = BTreeMap::new();
        readings.iter().for_each(|r| r.sample(&mut routes));
        let empty = BTreeSet::new();
        let of = |clock, sent| routes.get(&(clock, sent)).unwrap_or(&empty);
        talk.extend(pairs.filter(|(a, b)| !of(*a, true).is_disjoint(of(*b, false))).flat_map(|(a, b)| [a, b]));
    }
    talk
}

fn cut(readings: &[Reading<'_>]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (reading, r) in readings.iter().enumerate() {
        let streams = r.source.trace.streams().iter().enumerate();
        for (number, stream) in streams.filter(|(_, s)| r.binding.binds(&r.source.trace, s.stream_class)) {
            let (mut start, mut bytes) = (0, 0u64);
            for (i, packet) in stream.packets.iter().enumerate() {
                bytes = bytes.saturating_add(packet.bytes);
                if bytes >= PIECE || i + 1 == stream.packets.len() {
                    pieces.push(Piece { reading, stream: StreamId::at(number), packets: start..i + 1 });
                    (start, bytes) = (i + 1, 0);
                }
            }
        }
    }
    pieces
}

impl Piece {
    fn read(&self, reading: &Reading<'_>) -> Table {
        let mut table = Table::new(MOST);
        reading.read(self.stream, self.packets.clone(), usize::MAX, |segment, sent, t| {
            table.add(segment, Seen { clock: reading.clock, sent, first: t, last: t });
        });
        table
    }
}

impl Reading<'_> {
    /// What is sent and received in some packets of a stream, of their first `records`. What is damaged here is said
    /// when the trace is read for good.
    fn read(
        &self,
        stream: StreamId,
        packets: Range<usize>,
        records: usize,
        mut take: impl FnMut(&TcpSegment, bool, Timestamp),
    ) {
        let mut binder = Binder::new(&self.binding, 0);
        let mut reader = self.source.trace.reader(&self.plan, stream, packets);
        let (mut batch, mut events) = (Batch::default(), Vec::new());
        let mut left = records;
        while let Some(record) = reader.next().filter(|_| left > 0) {
            left -= 1;
            binder.read(&record, &mut batch, &mut events);
            for event in events.drain(..) {
                let (id, sent) = match event.kind {
                    Kind::Send(id) => (id, true),
                    Kind::Receive(id) => (id, false),
                    _ => continue,
                };
                if let Some(segment) = batch.packet_of(id).and_then(|p| p.tcp).filter(|s| !s.flow.is_loopback()) {
                    take(&segment, sent, event.time);
                }
            }
        }
    }

    /// Who sends and receives in a few places of the trace.
    fn sample(&self, routes: &mut BTreeMap<(u16, bool), BTreeSet<Route>>) {
        for (number, stream) in self.source.trace.streams().iter().enumerate() {
            let count = stream.packets.len();
            let places: BTreeSet<usize> = (0..SAMPLES.min(count)).map(|i| i * count / SAMPLES.min(count)).collect();
            for at in places.into_iter().filter(|_| self.binding.binds(&self.source.trace, stream.stream_class)) {
                self.read(StreamId::at(number), at..at + 1, RECORDS, |segment, sent, _| {
                    let route = (segment.flow.source, segment.flow.dest);
                    routes.entry((self.clock, sent)).or_default().insert(route);
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::batch::Flow;

    fn segment(seq: u32) -> TcpSegment {
        let flow = Flow { source: 1, dest: 2, source_port: 3, dest_port: 4 };
        TcpSegment { flow, seq, ack: 9, flags: 0x18, len: 100 }
    }

    fn seen(clock: u16, sent: bool, t: i64) -> Seen {
        let t = Timestamp::new(t);
        Seen { clock, sent, first: t, last: t }
    }

    fn table(rows: &[(u32, Seen)]) -> Table {
        let mut table = Table::new(MOST);
        rows.iter().for_each(|(seq, seen)| table.add(&segment(*seq), *seen));
        table
    }

    #[test]
    fn first_sight_on_both_sides_and_nothing_of_what_was_sent_twice() {
        let again = PASSAGE + 1;
        let rows = [
            // Two devices on each side.
            (1, seen(0, true, 10)),
            (1, seen(0, true, 14)),
            (1, seen(1, false, 7)),
            (1, seen(1, false, 9)),
            // Seen on one side only.
            (2, seen(0, true, 20)),
            // A retransmission.
            (3, seen(1, true, 30)),
            (3, seen(1, true, 30 + again)),
            (3, seen(0, false, 40)),
            // Forwarded by a third host.
            (4, seen(0, true, 50)),
            (4, seen(2, false, 60)),
            (4, seen(2, true, 61)),
            (4, seen(1, false, 70)),
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
    fn a_full_table_is_a_sample_that_does_not_depend_on_the_order() {
        let rows: Vec<u32> = (0..10_000).collect();
        let fill = |rows: &mut dyn Iterator<Item = &u32>| {
            let mut table = Table::new(300);
            rows.for_each(|seq| {
                table.add(&segment(*seq), seen(0, true, 5));
                table.add(&segment(*seq), seen(1, false, 6));
            });
            table
        };
        let whole = fill(&mut rows.iter());
        let backwards = fill(&mut rows.iter().rev());
        let mut joined = fill(&mut rows[7000..].iter());
        joined.join(fill(&mut rows[..7000].iter()));
        let keys = |table: &Table| table.seen.keys().map(|s| s.seq).collect::<BTreeSet<_>>();
        assert!((100..=300).contains(&whole.seen.len()), "{}", whole.seen.len());
        assert_eq!((keys(&whole), whole.level), (keys(&backwards), backwards.level));
        assert_eq!((keys(&whole), whole.level), (keys(&joined), joined.level));
    }
}
