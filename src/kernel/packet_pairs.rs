//! Packets of a chunk that a worker has matched, and how the machine takes them.
//!
//! In: the sends and receives of held CPUs by number, with what the worker knows of each. Out: the sends that wait on
//! their routes after the chunk, and the sender of each received packet. The worker's matches hold for a route on which
//! nothing waited when the chunk began, and whose packets are all known to the worker; on any other one the machine
//! matches them itself. Cost: a search for each route, and some nanoseconds for a packet that was sent and received in
//! the chunk.

use super::packets::{ListId, Packets, Route};
use crate::event::host::HostId;
use crate::reading::batch::NetworkPacket;
use crate::timeline::Waker;
use get_size2::GetSize;

/// What became of a send in its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, GetSize)]
pub(super) enum SendFate {
    /// It waits for its receive.
    Waits,
    Received,
    /// It repeats one that waited.
    Repeated,
}

/// A send of a chunk. Its thread is the worker's.
#[derive(Clone, Copy, Debug, GetSize)]
pub(super) struct ChunkSend {
    pub sender: Waker,
    pub fate: SendFate,
}

/// The packets of a chunk, as a worker has matched them.
#[derive(Clone, Debug, Default, GetSize)]
pub(super) struct PacketPairs {
    /// By number of the send.
    pub sends: Vec<ChunkSend>,
    /// By number of the receive: the number of the send.
    pub receives: Vec<Option<u32>>,
    /// By number of the route: true where the worker does not know all packets.
    pub is_left: Vec<bool>,
}

impl PacketPairs {
    /// Its memory, for another chunk.
    pub fn emptied(mut self) -> PacketPairs {
        self.sends.clear();
        self.receives.clear();
        self.is_left.clear();
        self
    }
}

/// A packet of a chunk and the worker's number of its route.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoutedPacket<'b> {
    pub host: HostId,
    pub packet: &'b NetworkPacket,
    pub route: u32,
}

/// A route of the chunk.
#[derive(Clone, Copy, Debug)]
struct ChunkRoute {
    list: Option<ListId>,
    /// The worker's matches hold.
    is_matched: bool,
}

/// The packets of a chunk while the machine takes them.
#[derive(Debug)]
pub(super) struct TakenPackets<'b> {
    pairs: &'b PacketPairs,
    /// By the worker's number; `None`: not met yet.
    routes: Vec<Option<ChunkRoute>>,
    sends: usize,
    receives: usize,
}

impl<'b> TakenPackets<'b> {
    pub fn new(pairs: &'b PacketPairs) -> TakenPackets<'b> {
        TakenPackets { pairs, routes: vec![None; pairs.is_left.len()], sends: 0, receives: 0 }
    }

    pub fn next_send(&mut self) -> Option<ChunkSend> {
        let send = self.pairs.sends.get(self.sends).copied();
        self.sends += 1;
        send
    }

    /// The route of a packet.
    fn route(&mut self, of: RoutedPacket<'_>, packets: &Packets) -> Option<&mut ChunkRoute> {
        let number = of.route as usize;
        let slot = self.routes.get_mut(number)?;
        Some(slot.get_or_insert_with(|| {
            let list = packets.list(&Route::of(of.host, of.packet));
            let is_known = self.pairs.is_left.get(number) == Some(&false);
            ChunkRoute { list, is_matched: is_known && list.is_none_or(|list| !packets.has_waiting(list)) }
        }))
    }

    /// The list to which a send is added; `None` if it was received in the chunk, or repeats another send.
    pub fn list_for(&mut self, of: RoutedPacket<'_>, fate: SendFate, packets: &mut Packets) -> Option<ListId> {
        let route = self.route(of, packets)?;
        if route.is_matched && fate != SendFate::Waits {
            return None;
        }
        Some(*route.list.get_or_insert_with(|| packets.list_for_sends(Route::of(of.host, of.packet))))
    }

    /// The sender of the next received packet: one of the machine, or the worker's.
    pub fn sender(&mut self, of: RoutedPacket<'_>, packets: &mut Packets) -> Option<PacketSender> {
        let pairs = self.pairs;
        let number = self.receives;
        self.receives += 1;
        let route = self.route(of, packets)?;
        if route.is_matched {
            let send = (*pairs.receives.get(number)?)?;
            return pairs.sends.get(send as usize).map(|send| PacketSender::OfChunk(send.sender));
        }
        // A send that was left may have made the list.
        let find = || packets.list(&Route::of(of.host, of.packet));
        route.list = route.list.or_else(find);
        packets.receive_on(route.list?, of.host, of.packet).map(PacketSender::Known)
    }
}

/// The sender of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum PacketSender {
    /// With the machine's id.
    Known(Waker),
    /// With the worker's.
    OfChunk(Waker),
}
