//! Matches received packets with their sends (ALGORITHMS.md 4.5).
//!
//! Sends wait in a list for each connection and direction. A receive takes the first with equal sequence number,
//! acknowledgement and flags; else the first that contains its bytes (segmentation splits, receive offload joins).
//! Without a TCP header the address of the buffer is the key, which is valid on one host. Buffers are used again, so a
//! send before a loss does not match a receive after it. The lists are bounded in number and age. Cost: the length of a
//! connection's list, which is short where packets arrive.

use super::thread_state::SegmentNumber;
use crate::base::time::{Ns, Timestamp};
use crate::reading::batch::{Flow, NetworkPacket, TcpSegment};
use crate::state::timeline::{HostId, ThreadId, Waker};
use foldhash::HashMap;
use std::collections::VecDeque;

/// A send older than this is not matched any more.
const OLDEST: Ns = 60_000_000_000;
/// Sends waiting over all connections.
const MOST: usize = 1 << 16;

/// Connections that keep their list although nothing waits there: most are used again.
const KEPT_LISTS: usize = 1 << 12;

/// After clock correction two hosts' clocks may still differ by more than the transit time of a packet: a send is
/// matched with receives up to this long before it.
const EARLY: Ns = 1_000_000;

/// The key of a list. Loopback addresses mean another machine on each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Route {
    Flow(Option<HostId>, Flow),
    Buffer(HostId, u64),
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    segment: TcpSegment,
    sender: Waker,
}

/// A wait that a packet ended before its send was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedWait {
    pub thread: ThreadId,
    /// The wait among the segments of the thread.
    pub segment: SegmentNumber,
}

/// A receive whose send may follow.
#[derive(Clone, Copy, Debug)]
struct EarlyReceive {
    at: Timestamp,
    host: HostId,
    segment: TcpSegment,
    wait: EndedWait,
}

/// Sends that wait for their receive.
#[derive(Clone, Debug, Default)]
pub(super) struct Packets {
    waiting: HashMap<Route, VecDeque<Sent>>,
    /// Time and list of each send, in order of time, to drop the oldest first.
    order: VecDeque<(Timestamp, Route)>,
    /// In order of time.
    early: VecDeque<EarlyReceive>,
    /// The last loss of each host.
    lost: HashMap<HostId, Timestamp>,
}

fn route(host: HostId, packet: &NetworkPacket) -> Route {
    match packet.tcp {
        Some(TcpSegment { flow, .. }) => Route::Flow(flow.is_loopback().then_some(host), flow),
        None => Route::Buffer(host, packet.buffer),
    }
}

impl Packets {
    /// A packet without a known send ended a wait at `at` on `host`. Only a packet from another host can precede its
    /// send.
    pub fn ended(&mut self, host: HostId, packet: &NetworkPacket, wait: EndedWait, at: Timestamp) {
        if let Some(segment) = packet.tcp.filter(|s| !s.flow.is_loopback()) {
            self.early.push_back(EarlyReceive { at, host, segment, wait });
            if self.early.len() > MOST {
                self.early.pop_front();
            }
        }
    }

    /// The waits that a packet ended before it is sent at `at`.
    fn early(&mut self, host: HostId, packet: &NetworkPacket, at: Timestamp) -> Vec<EndedWait> {
        while self.early.front().is_some_and(|early| at.since(early.at) > EARLY) {
            self.early.pop_front();
        }
        let ended = self.early.iter().filter(|early| early.host != host && packet.tcp == Some(early.segment));
        ended.map(|early| early.wait).collect()
    }

    /// A thread sends. Returns the waits that the packet ended already, because clocks are slightly off.
    pub fn send(&mut self, host: HostId, packet: &NetworkPacket, sender: Waker) -> Vec<EndedWait> {
        let at = sender.at;
        let ended = self.early(host, packet, at);
        if !ended.is_empty() {
            return ended;
        }
        while self.order.front().is_some_and(|(t, _)| at.since(*t) > OLDEST) || self.order.len() >= MOST {
            self.forget_oldest();
        }
        let route = route(host, packet);
        let sent = Sent { segment: packet.tcp.unwrap_or_default(), sender };
        let waiting = self.waiting.entry(route).or_default();
        // Of a packet and its retransmissions the first one counts.
        if !waiting.iter().any(|other| other.segment == sent.segment) {
            waiting.push_back(sent);
            self.order.push_back((at, route));
        }
        ended
    }

    fn forget_oldest(&mut self) {
        let Some((at, route)) = self.order.pop_front() else { return };
        if let Some(waiting) = self.waiting.get_mut(&route) {
            while waiting.front().is_some_and(|sent| sent.sender.at <= at) {
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

    /// A packet arrives. Returns its sender, where it is known.
    pub fn receive(&mut self, host: HostId, packet: &NetworkPacket) -> Option<Waker> {
        let route = route(host, packet);
        let waiting = self.waiting.get_mut(&route)?;
        if let (Route::Buffer(..), Some(lost)) = (route, self.lost.get(&host)) {
            waiting.retain(|sent| sent.sender.at >= *lost);
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
        if waiting.is_empty() && self.waiting.len() > KEPT_LISTS {
            self.waiting.remove(&route);
        }
        Some(sent.sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostId = HostId::at(0);

    fn sender(at: i64) -> Waker {
        Waker { thread: ThreadId::at(1), at: Timestamp::new(at) }
    }

    fn tcp(seq: u32, len: u32, flags: u16) -> NetworkPacket {
        let flow = Flow { source: 1 << 40, dest: 2 << 40, source_port: 7, dest_port: 8 };
        NetworkPacket { buffer: 0, tcp: Some(TcpSegment { flow, seq, ack: 5, flags, len }) }
    }

    #[test]
    fn receive_takes_the_first_of_several_transmissions() {
        let mut packets = Packets::default();
        packets.send(HOST, &tcp(100, 10, 0x18), sender(10));
        packets.send(HOST, &tcp(100, 10, 0x18), sender(20));
        assert_eq!(packets.receive(HOST, &tcp(100, 10, 0x18)), Some(sender(10)));
        assert_eq!(packets.receive(HOST, &tcp(100, 10, 0x18)), None);
    }

    #[test]
    fn receive_matches_parts_of_a_large_send_across_the_wrap() {
        let mut packets = Packets::default();
        let start = u32::MAX - 99;
        packets.send(HOST, &tcp(start, 300, 0x18), sender(10));
        for part in 0..3 {
            let got = packets.receive(HostId::at(1), &tcp(start.wrapping_add(part * 100), 100, 0x10));
            assert_eq!(got, Some(sender(10)), "part {part}");
        }
        assert_eq!(packets.receive(HOST, &tcp(start, 100, 0x10)), None);
    }

    #[test]
    fn send_returns_waits_that_it_ended_early_on_another_host() {
        let mut packets = Packets::default();
        let wait = EndedWait { thread: ThreadId::at(7), segment: SegmentNumber(3) };
        packets.ended(HostId::at(1), &tcp(100, 10, 0x18), wait, Timestamp::new(10));
        assert_eq!(packets.send(HostId::at(1), &tcp(100, 10, 0x18), sender(12)), []);
        assert_eq!(packets.send(HOST, &tcp(200, 10, 0x18), sender(12)), []);
        assert_eq!(packets.send(HOST, &tcp(100, 10, 0x18), sender(12)), [wait]);
        assert_eq!(packets.send(HOST, &tcp(100, 10, 0x18), sender(11 + EARLY)), []);
    }

    #[test]
    fn receive_without_headers_matches_the_buffer_on_its_host() {
        let mut packets = Packets::default();
        let packet = NetworkPacket { buffer: 77, tcp: None };
        packets.send(HOST, &packet, sender(10));
        assert_eq!(packets.receive(HostId::at(1), &packet), None);
        assert_eq!(packets.receive(HOST, &packet), Some(sender(10)));
        // After a loss the buffer may hold another packet.
        packets.send(HOST, &packet, sender(20));
        packets.send(HOST, &tcp(100, 10, 0), sender(20));
        packets.lose(HOST, Timestamp::new(30));
        assert_eq!(packets.receive(HOST, &packet), None);
        assert_eq!(packets.receive(HOST, &tcp(100, 10, 0)), Some(sender(20)));
    }

    #[test]
    fn send_bounds_the_lists() {
        let mut packets = Packets::default();
        for i in 0..2 * MOST as u32 {
            packets.send(HOST, &NetworkPacket { buffer: u64::from(i), tcp: None }, sender(i.into()));
        }
        assert!(packets.order.len() <= MOST && packets.waiting.len() <= MOST);
        packets.send(HOST, &tcp(1, 1, 0), sender(OLDEST + 2 * MOST as Ns));
        assert_eq!(packets.waiting.len(), 1);
    }
}
