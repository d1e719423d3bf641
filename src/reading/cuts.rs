//! Where chunks begin: the times at which the bytes since the last cut reach a size.
//!
//! In: times and bytes of packets, or of parts of them. Out: times, ascending. Bytes are spread evenly over their
//! time, so that a chunk's bytes are those of its own part of each packet: traces whose packets begin at the same
//! moments (copies of a recording, tracers that switch all packets at once) have a great many open. There is a cut at
//! the begin of a packet where the chunk is about as large as it should be by then, since fewer packets meet two
//! chunks so; else between begins. Each chunk opens the packets that it meets, so a packet is cut into few parts.
//! Cost: a sort of the packets' begins and ends.

use crate::base::time::Timestamp;
use crate::input::trace::Trace;

/// Divisor of a chunk's size: by that part it may be larger, if it ends with the begin of a packet then.
pub(super) const LARGER_BY: u64 = 8;
/// Parts into which packets are cut at most, about: a chunk has at least the bytes of the open packets divided by this.
const MOST_PARTS: u64 = 16;
/// Fractions of a byte, in bits.
const FRACTION: u32 = 40;

/// Times that bound the records of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub begin: Timestamp,
    pub end: Timestamp,
}

impl Bounds {
    pub const NONE: Bounds = Bounds { begin: Timestamp::MIN, end: Timestamp::MAX };

    /// The times that a packet names; `None` where it names none. A packet that ends before it begins has them swapped.
    pub fn of(trace: &Trace, stream: usize, packet: usize) -> Option<Bounds> {
        let packet = trace.streams().get(stream)?.packets.get(packet)?;
        let (begin, end) = (packet.begin?, packet.end?);
        Some(Bounds { begin: begin.min(end), end: begin.max(end) })
    }

    pub fn clamp(self, time: Timestamp) -> Timestamp {
        time.min(self.end).max(self.begin)
    }
}

/// Times and bytes of a packet, or of a part of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedPacket {
    pub bounds: Bounds,
    pub bytes: u64,
    /// Bytes of the packet.
    pub whole: u64,
}

impl TimedPacket {
    /// A packet of a trace; `None` where it does not name its times.
    pub fn of(trace: &Trace, stream: usize, packet: usize) -> Option<TimedPacket> {
        let bounds = Bounds::of(trace, stream, packet)?;
        let bytes = trace.streams().get(stream)?.packets.get(packet)?.bytes;
        Some(TimedPacket { bounds, bytes, whole: bytes })
    }

    /// Its bytes before a time.
    pub fn bytes_before(self, time: Timestamp) -> u64 {
        let Bounds { begin, end } = self.bounds;
        if time <= begin {
            return 0;
        }
        if end <= time {
            return self.bytes;
        }
        let part = u128::from(self.bytes) * u128::from(time.abs_diff(begin));
        (part / u128::from(end.abs_diff(begin))) as u64
    }

    /// Its bytes for each nanosecond, in fractions.
    fn rate(self) -> u128 {
        let length = self.bounds.end.abs_diff(self.bounds.begin);
        (u128::from(self.bytes) << FRACTION) / u128::from(length.max(1))
    }
}

/// The begin or the end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Begin,
    End,
}

/// A moment at which the bytes for each nanosecond change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PacketEdge {
    at: Timestamp,
    edge: Edge,
    packet: usize,
}

/// The sweep over the begins and ends of packets.
#[derive(Clone, Debug, Default)]
struct Sweep {
    here: Timestamp,
    /// Bytes since the last cut, and for each nanosecond, in fractions.
    weight: u128,
    rate: u128,
    /// Bytes of the packets that have begun and not ended.
    open: u64,
    /// Bytes since the last cut and to come.
    left: u64,
    cuts: Vec<Timestamp>,
}

impl Sweep {
    /// Bytes that the chunk should have, in fractions; 0: any.
    fn full(&self, size: &impl Fn(u64) -> u64) -> u128 {
        let size = size(self.left);
        let least = if size > 0 { self.open / MOST_PARTS } else { 0 };
        u128::from(size.max(least)) << FRACTION
    }

    /// Go on to a time before which no packet begins or ends, with cuts on the way where chunks would become too large.
    fn advance(&mut self, to: Timestamp, size: &impl Fn(u64) -> u64) {
        while self.here < to {
            let way = u128::from(to.abs_diff(self.here));
            let there = self.weight + self.rate * way;
            let full = self.full(size);
            // What is at this moment is before the cut.
            let cut = (full.saturating_sub(self.weight) / self.rate.max(1)).max(1);
            if full == 0 || there <= full + full / u128::from(LARGER_BY) || way <= cut {
                (self.here, self.weight) = (to, there);
            } else {
                self.here = self.here.wrapping_add(cut as u64);
                self.weight += self.rate * cut;
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        self.left = self.left.saturating_sub((self.weight >> FRACTION) as u64);
        self.weight = 0;
        self.cuts.push(self.here);
    }

    fn pass(&mut self, edge: Edge, packet: TimedPacket) {
        match (edge, packet.bounds.begin == packet.bounds.end) {
            (Edge::Begin, true) => self.weight += u128::from(packet.bytes) << FRACTION,
            (Edge::Begin, false) => (self.rate, self.open) = (self.rate + packet.rate(), self.open + packet.whole),
            (Edge::End, true) => {}
            (Edge::End, false) => (self.rate, self.open) = (self.rate - packet.rate(), self.open - packet.whole),
        }
    }
}

/// The begins and ends of packets in order.
fn edges(packets: &[TimedPacket]) -> Vec<PacketEdge> {
    let edges_of = |(number, packet): (usize, &TimedPacket)| {
        let edge = |at, edge| PacketEdge { at, edge, packet: number };
        [edge(packet.bounds.begin, Edge::Begin), edge(packet.bounds.end, Edge::End)]
    };
    let mut edges: Vec<PacketEdge> = packets.iter().enumerate().flat_map(edges_of).collect();
    edges.sort_unstable();
    edges
}

/// The most bytes of the packets that are open at a time.
pub(super) fn most_open(packets: &[TimedPacket]) -> u64 {
    let (mut sweep, mut most) = (Sweep::default(), 0);
    for PacketEdge { edge, packet, .. } in edges(packets) {
        packets.get(packet).into_iter().for_each(|packet| sweep.pass(edge, *packet));
        most = most.max(sweep.open);
    }
    most
}

/// The times to cut at. `size` says how large a chunk should be where this many bytes are left; 0: there is a cut at
/// each begin of a packet and no other.
pub(super) fn cuts(packets: &[TimedPacket], size: impl Fn(u64) -> u64) -> Vec<Timestamp> {
    let edges = edges(packets);
    let left = packets.iter().map(|packet| packet.bytes).sum();
    let first = edges.first().map_or(Timestamp::MAX, |edge| edge.at);
    let mut sweep = Sweep { here: first, left, ..Sweep::default() };
    let mut last = first;
    for PacketEdge { at, edge, packet } in edges {
        sweep.advance(at, &size);
        // There is no cut at the end of time: only the last chunk holds it.
        let can_cut = edge == Edge::Begin && std::mem::replace(&mut last, at) < at && at < Timestamp::MAX;
        if can_cut && sweep.weight >= sweep.full(&size) {
            sweep.cut();
        }
        packets.get(packet).into_iter().for_each(|packet| sweep.pass(edge, *packet));
    }
    sweep.cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(begin: i64, end: i64, bytes: u64) -> TimedPacket {
        let bounds = Bounds { begin: Timestamp::new(begin), end: Timestamp::new(end) };
        TimedPacket { bounds, bytes, whole: bytes }
    }

    fn cut(packets: &[TimedPacket], size: u64) -> Vec<i64> {
        cuts(packets, |_| size).into_iter().map(Timestamp::ns).collect()
    }

    /// Bytes of each chunk.
    fn chunks(packets: &[TimedPacket], cuts: &[i64]) -> Vec<u64> {
        let before = |t: i64| packets.iter().map(|packet| packet.bytes_before(Timestamp::new(t))).sum::<u64>();
        let ends = cuts.iter().copied().chain([i64::MAX]);
        let mut last = 0;
        ends.map(|end| before(end) - std::mem::replace(&mut last, before(end))).collect()
    }

    #[test]
    fn packets_that_begin_at_once_are_cut_where_their_bytes_reach_the_size() {
        let copies: Vec<TimedPacket> = (0..6400).map(|i| packet(i / 64 * 1000, i / 64 * 1000 + 1000, 64)).collect();
        let at = cut(&copies, 1024);
        assert!((1..).zip(&at).take(20).all(|(i, t)| t.abs_diff(250 * i) <= 2), "{at:?}");
        let (last, others) = chunks(&copies, &at).split_last().map(|(last, others)| (*last, others.to_vec())).unwrap();
        assert!(last <= 1160 && others.iter().all(|bytes| (1000..=1160).contains(bytes)), "{others:?} {last}");
        // Not into more parts than 16 each.
        assert_eq!(cut(&copies, 1)[..3], [62, 124, 186]);
    }

    #[test]
    fn a_chunk_ends_with_the_begin_of_a_packet_that_is_near() {
        // Two streams, whose packets follow each other.
        let streams: Vec<TimedPacket> = (0..40).map(|i| packet(i * 500, i * 500 + 1000, 100)).collect();
        let at = cut(&streams, 950);
        assert!(at.len() >= 3 && at.iter().all(|t| t % 500 == 0), "{at:?}");
        assert!(chunks(&streams, &at).iter().rev().skip(1).all(|bytes| (950..=1068).contains(bytes)));
        // Each begin but the first.
        assert_eq!(cut(&streams, 0), (1..40).map(|i| i * 500).collect::<Vec<_>>());
        assert!(cut(&streams, u64::MAX >> 1).is_empty());
    }

    #[test]
    fn packets_at_the_ends_of_time_and_without_length_are_cut() {
        let strange =
            [packet(i64::MIN, i64::MAX, 100), packet(5, 5, 1000), packet(5, 5, 0), packet(i64::MAX, i64::MAX, 9)];
        for size in [0, 1, 10, 100, 2000] {
            let at = cut(&strange, size);
            assert!(at.is_sorted_by(|a, b| a < b) && at.len() < 30, "{size}: {at:?}");
            assert!(at.iter().all(|t| i64::MIN < *t && *t < i64::MAX));
        }
        assert!(cut(&[], 10).is_empty());
        assert_eq!(cut(&[packet(7, 7, 10), packet(8, 8, 10)], 10), [8]);
    }
}
