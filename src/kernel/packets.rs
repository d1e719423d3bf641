//! Matches received packets with their sends (ALGORITHMS.md 4.5).
//!
//! Sends wait in a list for each connection and direction. A receive takes the first with equal sequence number,
//! acknowledgement and flags; else the first that contains its bytes (segmentation splits, receive offload joins).
//! Without a TCP header the address of the buffer is the key, which is valid on one host. Buffers are used again, so a
//! send before a loss does not match a receive after it. The lists are bounded in number and age. Cost: the length of a
//! connection's list, which is short where packets arrive.

use super::sealed_rows::SegmentNumber;
use crate::base::time::{Ns, Timestamp};
use crate::event::host::HostId;
use crate::reading::batch::{Flow, NetworkPacket, TcpSegment};
use crate::timeline::{ThreadId, Waker};
use foldhash::HashMap;
use std::collections::VecDeque;

/// A send older than this is not matched any more.
pub(super) const OLDEST: Ns = 60_000_000_000;
/// Sends waiting over all connections.
pub(super) const MOST: usize = 1 << 16;

/// Routes that keep their list although nothing waits there: most are used again.
const KEPT_LISTS: usize = 1 << 12;

/// After clock correction two hosts' clocks may still differ by more than the transit time of a packet: a send is
/// matched with receives up to this long before it.
const EARLY: Ns = 1_000_000;

/// The key of a list. Loopback addresses mean another machine on each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Route {
    Flow(Option<HostId>, Flow),
    Buffer(HostId, u64),
}

impl Route {
    /// Of a packet that was sent or received on a host.
    pub fn of(host: HostId, packet: &NetworkPacket) -> Route {
        match packet.tcp {
            Some(TcpSegment { flow, .. }) => Route::Flow(flow.is_loopback().then_some(host), flow),
            None => Route::Buffer(host, packet.buffer),
        }
    }
}

/// The position of a list, valid until [`Packets::drop_unused`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListId(u32);

impl ListId {
    /// No list.
    const NONE: ListId = ListId(u32::MAX);
}

/// What distinguishes packets of one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bytes {
    seq: u32,
    ack: u32,
    len: u32,
    flags: u16,
}

impl Bytes {
    fn of(packet: &NetworkPacket) -> Bytes {
        let TcpSegment { seq, ack, flags, len, flow: _ } = packet.tcp.unwrap_or_default();
        Bytes { seq, ack, len, flags }
    }
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    bytes: Bytes,
    sender: Waker,
}

/// The sends that wait on a route.
#[derive(Clone, Debug, Default)]
struct WaitingSends {
    sends: VecDeque<Sent>,
    /// Some sequence number is before that of an earlier send.
    is_unsorted: bool,
    /// Number of its entries in [`Packets::order`].
    ordered: usize,
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
    routes: HashMap<Route, ListId>,
    lists: Vec<WaitingSends>,
    /// Lists of no route.
    unused: Vec<ListId>,
    /// Number of routes that were in use when the others were dropped last.
    used: usize,
    /// Time and list of each send, in order of time, to drop the oldest first.
    order: VecDeque<(Timestamp, ListId)>,
    /// In order of time.
    early: VecDeque<EarlyReceive>,
    /// The last loss of each host.
    lost: HashMap<HostId, Timestamp>,
}

impl WaitingSends {
    /// Add a send, unless it is a retransmission: the first one counts. Most numbers are not before those that wait.
    fn push(&mut self, sent: Sent) -> bool {
        let is_before = |a: u32, b: u32| (1..1 << 31).contains(&b.wrapping_sub(a));
        self.is_unsorted &= !self.sends.is_empty();
        for other in self.sends.iter().rev() {
            if other.bytes == sent.bytes {
                return false;
            }
            if !self.is_unsorted && is_before(other.bytes.seq, sent.bytes.seq) {
                break;
            }
        }
        self.is_unsorted |= self.sends.back().is_some_and(|last| is_before(sent.bytes.seq, last.bytes.seq));
        self.sends.push_back(sent);
        true
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

    /// The list of a route, where it has one.
    pub fn list(&self, route: &Route) -> Option<ListId> {
        self.routes.get(route).copied()
    }

    /// The list of a route.
    pub fn list_for_sends(&mut self, route: Route) -> ListId {
        let (lists, unused) = (&mut self.lists, &mut self.unused);
        *self.routes.entry(route).or_insert_with(|| {
            unused.pop().unwrap_or_else(|| {
                lists.push(WaitingSends::default());
                ListId(lists.len() as u32 - 1)
            })
        })
    }

    /// Routes on which nothing waits have no list any more, if there are many: twice as many as were in use the last
    /// time, so that the look at all of them costs each new one no more than a constant.
    pub fn drop_unused(&mut self) {
        if self.routes.len() <= KEPT_LISTS.max(2 * self.used) {
            return;
        }
        let Packets { routes, lists, unused, .. } = self;
        routes.retain(|_, list| {
            let is_used = lists.get(list.0 as usize).is_some_and(|list| list.ordered > 0 || !list.sends.is_empty());
            if !is_used {
                unused.push(*list);
            }
            is_used
        });
        self.used = self.routes.len();
    }

    /// A thread sends. Returns the waits that the packet ended already, because clocks are slightly off.
    pub fn send(&mut self, host: HostId, packet: &NetworkPacket, sender: Waker) -> Vec<EndedWait> {
        let list = self.list_for_sends(Route::of(host, packet));
        self.send_on(list, host, packet, sender)
    }

    /// [`send`](Self::send) of a packet whose list is known.
    pub fn send_on(&mut self, list: ListId, host: HostId, packet: &NetworkPacket, sender: Waker) -> Vec<EndedWait> {
        let at = sender.at;
        let ended = self.early(host, packet, at);
        if !ended.is_empty() {
            return ended;
        }
        self.drop_oldest(at);
        if self.add(list, packet, sender) {
            self.order.push_back((at, list));
        }
        ended
    }

    /// Add a send to a list, unless it is a retransmission.
    pub fn add(&mut self, list: ListId, packet: &NetworkPacket, sender: Waker) -> bool {
        let Some(waiting) = self.lists.get_mut(list.0 as usize) else { return false };
        let is_new = waiting.push(Sent { bytes: Bytes::of(packet), sender });
        waiting.ordered += usize::from(is_new);
        is_new
    }

    /// A send at `at` need not wait: it was received already, or, where `counts` is false, it is a retransmission. It
    /// counts among the sends of which the oldest are dropped like any other.
    pub fn pass(&mut self, at: Timestamp, counts: bool) {
        self.drop_oldest(at);
        if counts {
            self.order.push_back((at, ListId::NONE));
        }
    }

    /// The senders of all sends that wait.
    pub fn all_waiting(&self) -> impl Iterator<Item = Waker> {
        self.lists.iter().flat_map(|list| list.sends.iter().map(|sent| sent.sender))
    }

    /// True if a send waits in a list.
    pub fn has_waiting(&self, list: ListId) -> bool {
        self.lists.get(list.0 as usize).is_some_and(|list| !list.sends.is_empty())
    }

    /// Before a send at `at`, those that are too old or too many are dropped.
    fn drop_oldest(&mut self, at: Timestamp) {
        while self.order.front().is_some_and(|(t, _)| at.since(*t) > OLDEST) || self.order.len() >= MOST {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((at, list)) = self.order.pop_front() else { return };
        if let Some(waiting) = self.lists.get_mut(list.0 as usize) {
            waiting.ordered -= 1;
            while waiting.sends.front().is_some_and(|sent| sent.sender.at <= at) {
                waiting.sends.pop_front();
            }
        }
    }

    /// Events of a host are lost from `t` on.
    pub fn lose(&mut self, host: HostId, t: Timestamp) {
        self.lost.insert(host, t);
    }

    /// A packet arrives. Returns its sender, where it is known.
    pub fn receive(&mut self, host: HostId, packet: &NetworkPacket) -> Option<Waker> {
        let list = self.list(&Route::of(host, packet))?;
        self.receive_on(list, host, packet)
    }

    /// [`receive`](Self::receive) of a packet whose list is known.
    pub fn receive_on(&mut self, list: ListId, host: HostId, packet: &NetworkPacket) -> Option<Waker> {
        let waiting = &mut self.lists.get_mut(list.0 as usize)?.sends;
        if let (None, Some(lost)) = (packet.tcp, self.lost.get(&host)) {
            waiting.retain(|sent| sent.sender.at >= *lost);
        }
        let Bytes { seq, ack, len, flags } = Bytes::of(packet);
        let exact = |s: &Sent| (s.bytes.seq, s.bytes.ack, s.bytes.flags) == (seq, ack, flags);
        let offset = |s: &Sent| seq.wrapping_sub(s.bytes.seq);
        let at = waiting.iter().position(exact).or_else(|| waiting.iter().position(|s| offset(s) < s.bytes.len))?;
        let sent = waiting[at];
        if offset(&sent).saturating_add(len) >= sent.bytes.len {
            waiting.remove(at);
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
    fn send_counts_the_first_of_several_transmissions_in_any_order() {
        let mut packets = Packets::default();
        let sent = [(100, 1), (200, 2), (100, 3), (50, 4), (200, 5), (50, 6), (300, 7), (200, 8)];
        for (seq, at) in sent {
            packets.send(HOST, &tcp(seq, 10, 0x18), sender(at));
        }
        for (seq, first) in [(200, 2), (50, 4), (300, 7), (100, 1)] {
            assert_eq!(packets.receive(HOST, &tcp(seq, 10, 0x18)), Some(sender(first)));
            assert_eq!(packets.receive(HOST, &tcp(seq, 10, 0x18)), None);
        }
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
        packets.drop_unused();
        assert!(packets.order.len() <= MOST && packets.routes.len() <= MOST);
        // Each of these is older than the next one can match.
        let at = |i: usize| (i as Ns + 2) * (OLDEST + 1);
        for i in 0..2 * MOST {
            packets.send(HOST, &NetworkPacket { buffer: (4 * MOST + i) as u64, tcp: None }, sender(at(i)));
        }
        packets.drop_unused();
        assert_eq!((packets.routes.len(), packets.order.len()), (1, 1));
        // Lists of other routes are used again.
        let lists = packets.lists.len();
        packets.send(HOST, &tcp(1, 1, 0), sender(at(2 * MOST)));
        assert_eq!(packets.receive(HOST, &tcp(1, 1, 0)), Some(sender(at(2 * MOST))));
        assert_eq!(packets.lists.len(), lists);
    }
}
