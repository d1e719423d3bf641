//! The packets of a chunk.
//!
//! In: the packets that held CPUs send and receive, and those of events that are left. Out: what becomes of each send,
//! and the send of each receive, as if nothing had waited on its route before the chunk ([`PacketPairs`]). Cost: that
//! of matching them.

use crate::base::time::Timestamp;
use crate::event::kind::PacketId;
use crate::reading::batch::{Batch, NetworkPacket};
use crate::state::kernel::packet_pairs::{ChunkSend, PacketPairs, SendFate};
use crate::state::kernel::packets::{ListId, MOST, OLDEST, Packets, Route};
use crate::state::timeline::{HostId, ThreadId, Waker};
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
