//! Which send does a received packet come from? (ALGORITHMS.md 4.5)
//!
//! Sends wait in a list for each connection and direction. A receive takes the first with equal sequence number,
//! acknowledgement and flags; else the first whose bytes its own bytes are part of (segmentation splits, receive
//! offload joins). Without a TCP header the address of the buffer is the key, which serves on one host; buffers are
//! used again, so what was sent in one before events were lost is no sender of what arrives in it later. The lists are
//! bounded in number and age; cost: the length of a connection's list, which is short where packets arrive.

use crate::base::time::{Ns, Timestamp};
use crate::reading::batch::{Flow, NetworkPacket, TcpSegment};
use crate::state::timeline::{HostId, ThreadId};
use foldhash::HashMap;
use std::collections::VecDeque;

/// A send older than this is not matched any more.
const OLDEST: Ns = 60_000_000_000;
/// Sends waiting over all connections.
const MOST: usize = 1 << 16;

/// Between hosts, clocks that were fitted may still be off by more than a packet's way takes: a send is looked for
/// among what arrived so long before it.
const EARLY: Ns = 1_000_000;

/// Loopback addresses mean another machine on each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Route {
    Flow(Option<HostId>, Flow),
    Buffer(HostId, u64),
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    segment: TcpSegment,
    by: ThreadId,
    at: Timestamp,
}

/// A wait that a packet ended whose send had not come: the thread, and which of its segments.
type Ended = (ThreadId, usize);

/// Sends that wait for their receive.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    waiting: HashMap<Route, VecDeque<Sent>>,
    /// The same in order of time, to forget the oldest first.
    order: VecDeque<(Timestamp, Route)>,
    /// What came before its send, in order of time.
    early: VecDeque<(Timestamp, HostId, TcpSegment, Ended)>,
    /// When events of a host were lost last.
    lost: HashMap<HostId, Timestamp>,
}

fn route(host: HostId, packet: &NetworkPacket) -> Route {
    match packet.tcp {
        Some(TcpSegment { flow, .. }) => Route::Flow(flow.is_loopback().then_some(host), flow),
        None => Route::Buffer(host, packet.buffer),
    }
}

impl Packets {
    /// A wait was ended at `at` on `host` by a packet of which no send is known. Only what comes from another host can
    /// be too early.
    pub fn ended(&mut self, host: HostId, packet: &NetworkPacket, wait: Ended, at: Timestamp) {
        if let Some(segment) = packet.tcp.filter(|s| !s.flow.is_loopback()) {
            self.early.push_back((at, host, segment, wait));
            if self.early.len() > MOST {
                self.early.pop_front();
            }
        }
    }

    /// The waits that a packet has ended before it is sent.
    fn early(&mut self, host: HostId, packet: &NetworkPacket, at: Timestamp) -> Vec<Ended> {
        while self.early.front().is_some_and(|(t, ..)| at.saturating_sub(*t) > EARLY) {
            self.early.pop_front();
        }
        let same = |segment: &TcpSegment| packet.tcp.as_ref() == Some(segment);
        let ended = self.early.iter().filter(|(_, there, segment, _)| *there != host && same(segment));
        ended.map(|(.., wait)| *wait).collect()
    }

    /// A thread sends. Gives the waits that the packet has ended already, by clocks that are a little off.
    pub fn send(&mut self, host: HostId, packet: &NetworkPacket, by: ThreadId, at: Timestamp) -> Vec<Ended> {
        let ended = self.early(host, packet, at);
        if !ended.is_empty() {
            return ended;
        }
        while self.order.front().is_some_and(|(t, _)| at.saturating_sub(*t) > OLDEST) || self.order.len() >= MOST {
            self.forget_oldest();
        }
        let route = route(host, packet);
        let sent = Sent { segment: packet.tcp.unwrap_or_default(), by, at };
        let waiting = self.waiting.entry(route).or_default();
        // A retransmission: the first one counts.
        if !waiting.iter().any(|s| s.segment == sent.segment) {
            waiting.push_back(sent);
            self.order.push_back((at, route));
        }
        ended
    }

    fn forget_oldest(&mut self) {
        let Some((at, route)) = self.order.pop_front() else { return };
        if let Some(waiting) = self.waiting.get_mut(&route) {
            while waiting.front().is_some_and(|s| s.at <= at) {
                waiting.pop_front();
            }
            if waiting.is_empty() {
                self.waiting.remove(&route);
            }
        }
    }

    /// Events of a host are lost from `t` on.
    pub fn lose(&mut self, host: HostId, t: Timestamp) {
        self.lost.insert(host, t);
    }

    /// A packet arrives: who sent it, and when.
    pub fn receive(&mut self, host: HostId, packet: &NetworkPacket) -> Option<(ThreadId, Timestamp)> {
        let route = route(host, packet);
        let waiting = self.waiting.get_mut(&route)?;
        if let (Route::Buffer(..), Some(lost)) = (route, self.lost.get(&host)) {
            waiting.retain(|sent| sent.at >= *lost);
        }
        let segment = packet.tcp.unwrap_or_default();
        let exact =
            |s: &Sent| (s.segment.seq, s.segment.ack, s.segment.flags) == (segment.seq, segment.ack, segment.flags);
        let offset = |s: &Sent| segment.seq.wrapping_sub(s.segment.seq);
        let at = waiting.iter().position(exact).or_else(|| waiting.iter().position(|s| offset(s) < s.segment.len))?;
        let sent = waiting[at];
        if offset(&sent).saturating_add(segment.len) >= sent.segment.len {
            waiting.remove(at);
        }
        if waiting.is_empty() {
            self.waiting.remove(&route);
        }
        Some((sent.by, sent.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostId = HostId::at(0);

    fn tcp(seq: u32, len: u32, flags: u16) -> NetworkPacket {
        let flow = Flow { source: 1 << 40, dest: 2 << 40, source_port: 7, dest_port: 8 };
        NetworkPacket { buffer: 0, tcp: Some(TcpSegment { flow, seq, ack: 5, flags, len }) }
    }

    #[test]
    fn the_first_of_a_retransmission_counts() {
        let mut packets = Packets::default();
        packets.send(HOST, &tcp(100, 10, 0x18), ThreadId::at(1), 10);
        packets.send(HOST, &tcp(100, 10, 0x18), ThreadId::at(1), 20);
        assert_eq!(packets.receive(HOST, &tcp(100, 10, 0x18)), Some((ThreadId::at(1), 10)));
        assert_eq!(packets.receive(HOST, &tcp(100, 10, 0x18)), None);
    }

    #[test]
    fn a_large_send_arrives_in_parts_also_across_the_wrap() {
        let mut packets = Packets::default();
        let start = u32::MAX - 99;
        packets.send(HOST, &tcp(start, 300, 0x18), ThreadId::at(1), 10);
        for part in 0..3 {
            let got = packets.receive(HostId::at(1), &tcp(start.wrapping_add(part * 100), 100, 0x10));
            assert_eq!(got, Some((ThreadId::at(1), 10)), "part {part}");
        }
        assert_eq!(packets.receive(HOST, &tcp(start, 100, 0x10)), None);
    }

    #[test]
    fn what_came_a_little_early_from_another_host_finds_its_send() {
        let mut packets = Packets::default();
        let wait = (ThreadId::at(7), 3);
        packets.ended(HostId::at(1), &tcp(100, 10, 0x18), wait, 10);
        assert_eq!(packets.send(HostId::at(1), &tcp(100, 10, 0x18), ThreadId::at(1), 12), []);
        assert_eq!(packets.send(HOST, &tcp(200, 10, 0x18), ThreadId::at(1), 12), []);
        assert_eq!(packets.send(HOST, &tcp(100, 10, 0x18), ThreadId::at(1), 12), [wait]);
        assert_eq!(packets.send(HOST, &tcp(100, 10, 0x18), ThreadId::at(1), 11 + EARLY), []);
    }

    #[test]
    fn without_headers_the_buffer_is_the_key_on_its_host() {
        let mut packets = Packets::default();
        let packet = NetworkPacket { buffer: 77, tcp: None };
        packets.send(HOST, &packet, ThreadId::at(1), 10);
        assert_eq!(packets.receive(HostId::at(1), &packet), None);
        assert_eq!(packets.receive(HOST, &packet), Some((ThreadId::at(1), 10)));
        // After a loss it may hold another packet.
        packets.send(HOST, &packet, ThreadId::at(1), 20);
        packets.send(HOST, &tcp(100, 10, 0), ThreadId::at(1), 20);
        packets.lose(HOST, 30);
        assert_eq!(packets.receive(HOST, &packet), None);
        assert_eq!(packets.receive(HOST, &tcp(100, 10, 0)), Some((ThreadId::at(1), 20)));
    }

    #[test]
    fn the_lists_are_bounded() {
        let mut packets = Packets::default();
        for i in 0..2 * MOST as u32 {
            packets.send(HOST, &NetworkPacket { buffer: u64::from(i), tcp: None }, ThreadId::at(1), Timestamp::from(i));
        }
        assert!(packets.order.len() <= MOST && packets.waiting.len() <= MOST);
        packets.send(HOST, &tcp(1, 1, 0), ThreadId::at(1), OLDEST + Timestamp::from(2 * MOST as u32));
        assert_eq!(packets.waiting.len(), 1);
    }
}
