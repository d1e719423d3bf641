//! The packets of a chunk.
//!
//! In: the packets that held CPUs send and receive, and those of events that are left. Out: what becomes of each send,
//! and the send of each receive, as if nothing had waited on its route before the chunk ([`PacketPairs`]). Cost: that
//! of matching them.

use crate::base::time::Timestamp;
use crate::event::host::HostId;
use crate::event::kind::PacketId;
use crate::kernel::packet_pairs::{ChunkSend, PacketPairs, SendFate};
use crate::kernel::packets::{ListId, MOST, OLDEST, Packets, Route};
use crate::reading::batch::{Batch, NetworkPacket};
use crate::timeline::{ThreadId, Waker};
use foldhash::HashMap;
use std::collections::hash_map::Entry;

/// The packets of a chunk so far.
#[derive(Debug, Default)]
pub(super) struct ChunkPackets {
    /// Their numbers, in the order in which they were met.
    routes: HashMap<Route, u32>,
    /// By number of the route.
    lists: Vec<ListId>,
    /// The sends that wait; instead of its thread each has its number.
    waiting: Packets,
    pairs: PacketPairs,
    /// No match holds.
    is_unknown: bool,
}

impl ChunkPackets {
    /// No packets, in the memory of others.
    pub fn new(spare: PacketPairs) -> ChunkPackets {
        ChunkPackets { pairs: spare, ..ChunkPackets::default() }
    }

    /// Number of packets that were received.
    pub fn receives(&self) -> usize {
        self.pairs.receives.len()
    }

    /// The number of a packet's route.
    fn route(&mut self, host: HostId, packet: &NetworkPacket) -> u32 {
        let route = Route::of(host, packet);
        let next = self.lists.len() as u32;
        match self.routes.entry(route) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                new.insert(next);
                self.lists.push(self.waiting.list_for_sends(route));
                self.pairs.is_left.push(false);
                next
            }
        }
    }

    /// A packet is sent by a thread of the worker, or, where `is_known` is false, perhaps not at all. Returns the
    /// number of its route.
    pub fn send(&mut self, host: HostId, packet: &NetworkPacket, sender: Waker, is_known: bool) -> u32 {
        let route = self.route(host, packet);
        let number = ThreadId::at(self.pairs.sends.len());
        let is_new = self.waiting.add(self.lists[route as usize], packet, Waker { thread: number, ..sender });
        let fate = if is_new { SendFate::Received } else { SendFate::Repeated };
        self.pairs.sends.push(ChunkSend { sender, fate });
        self.pairs.is_left[route as usize] |= !is_known;
        route
    }

    /// A packet is received. Returns the number of its route.
    pub fn receive(&mut self, host: HostId, packet: &NetworkPacket) -> u32 {
        let route = self.route(host, packet);
        let sent = self.waiting.receive_on(self.lists[route as usize], host, packet);
        self.pairs.receives.push(sent.map(|sent| sent.thread.raw()));
        route
    }

    /// An event with a packet is left.
    pub fn leave(&mut self, batch: &Batch, host: HostId, packet: PacketId) {
        if let Some(packet) = batch.packet_of(packet) {
            let route = self.route(host, packet);
            self.pairs.is_left[route as usize] = true;
        }
    }

    /// The worker cannot match packets: events were lost, or a send may follow its receive.
    pub fn forget(&mut self) {
        self.is_unknown = true;
    }

    /// All packets of a chunk from `start` to `end`. The machine drops sends that are too old or too many: in a chunk
    /// where that may happen no match holds.
    pub fn finish(mut self, start: Timestamp, end: Timestamp) -> PacketPairs {
        let may_drop = end.since(start) >= OLDEST || self.pairs.sends.len() >= MOST;
        if self.is_unknown || may_drop {
            self.pairs.is_left.fill(true);
        }
        for sender in self.waiting.all_waiting() {
            if let Some(send) = self.pairs.sends.get_mut(sender.thread.index()) {
                send.fate = SendFate::Waits;
            }
        }
        self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::packet_pairs::{PacketSender, RoutedPacket, TakenPackets};
    use crate::reading::batch::{Flow, TcpSegment};
    use proptest::prelude::*;

    const HOST: HostId = HostId::at(0);

    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// On a held CPU or, where false, left.
        Send(bool, NetworkPacket),
        Receive(bool, NetworkPacket),
        Lose,
    }

    fn packet() -> impl Strategy<Value = NetworkPacket> {
        (0..2u16, 0..4u32, 0..4u32, 0..3u64).prop_map(|(port, seq, len, buffer)| {
            let flow = Flow { source: 1, dest: 2, source_port: port, dest_port: 8 };
            let tcp = TcpSegment { flow, seq: seq * 10, ack: 0, flags: 0, len: 10 + len / 3 * 10 };
            NetworkPacket { buffer, tcp: (buffer > 0).then_some(tcp) }
        })
    }

    fn step() -> impl Strategy<Value = Step> {
        let is_held = || prop::bool::weighted(0.9);
        prop_oneof![
            20 => (is_held(), packet()).prop_map(|(is_held, packet)| Step::Send(is_held, packet)),
            20 => (is_held(), packet()).prop_map(|(is_held, packet)| Step::Receive(is_held, packet)),
            1 => Just(Step::Lose),
        ]
    }

    fn at(number: usize) -> Waker {
        Waker { thread: ThreadId::at(number), at: Timestamp::new(number as i64) }
    }

    /// The senders of all received packets, and those of the sends that wait in the end.
    type Senders = (Vec<Option<Waker>>, Vec<Waker>);

    fn senders(received: Vec<Option<Waker>>, packets: &Packets) -> Senders {
        let mut waiting: Vec<Waker> = packets.all_waiting().collect();
        waiting.sort_unstable();
        (received, waiting)
    }

    fn one_by_one(steps: &[Step]) -> Senders {
        let (mut packets, mut received) = (Packets::default(), Vec::new());
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Send(_, packet) => _ = packets.send(HOST, packet, at(number)),
                Step::Receive(_, packet) => received.push(packets.receive(HOST, packet)),
                Step::Lose => packets.lose(HOST, at(number).at),
            }
        }
        senders(received, &packets)
    }

    fn by_chunks(steps: &[Step], most: usize) -> Senders {
        let (mut packets, mut received) = (Packets::default(), Vec::new());
        for (chunk, steps) in steps.chunks(most).enumerate() {
            let first = chunk * most;
            let mut matched = ChunkPackets::new(PacketPairs::default());
            let mut batch = Batch::default();
            let prepare = |(number, step): (usize, &Step)| match step {
                Step::Send(true, packet) => matched.send(HOST, packet, at(first + number), true),
                Step::Receive(true, packet) => matched.receive(HOST, packet),
                Step::Send(false, packet) | Step::Receive(false, packet) => {
                    let id = batch.packet(*packet);
                    matched.leave(&batch, HOST, id);
                    0
                }
                Step::Lose => {
                    matched.forget();
                    0
                }
            };
            let routes: Vec<u32> = steps.iter().enumerate().map(prepare).collect();
            let pairs = matched.finish(at(first).at, at(first + most).at);
            let mut taken = TakenPackets::new(&pairs);
            for (number, (step, route)) in steps.iter().zip(routes).enumerate() {
                let sender = at(first + number);
                match step {
                    Step::Send(true, packet) => {
                        let fate = taken.next_send().unwrap().fate;
                        match taken.list_for(RoutedPacket { host: HOST, packet, route }, fate, &mut packets) {
                            Some(list) => _ = packets.send_on(list, HOST, packet, sender),
                            None => packets.pass(sender.at, fate == SendFate::Received),
                        }
                    }
                    Step::Receive(true, packet) => {
                        let sender = taken.sender(RoutedPacket { host: HOST, packet, route }, &mut packets);
                        received
                            .push(sender.map(|(PacketSender::Known(sender) | PacketSender::OfChunk(sender))| sender));
                    }
                    Step::Send(false, packet) => _ = packets.send(HOST, packet, sender),
                    Step::Receive(false, packet) => received.push(packets.receive(HOST, packet)),
                    Step::Lose => packets.lose(HOST, sender.at),
                }
            }
        }
        senders(received, &packets)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn packets_of_chunks_match_as_one_by_one(steps in prop::collection::vec(step(), 0..80), most in 1..40usize) {
            prop_assert_eq!(by_chunks(&steps, most), one_by_one(&steps));
        }
    }
}
