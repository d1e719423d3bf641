//! Where chunks left the packets of a stream.
//!
//! In: the position at which a worker left a packet that goes on after its chunk, with what is known of the events
//! before it. Out: the same to the worker of the next chunk, which reads on from there, so that a packet is read once,
//! however many chunks it meets. Where that place is not known yet, since the chunk before is being read still, an
//! earlier place of the same packet does, or its begin: the worker skips the events up to its chunk. Nothing but the
//! cost depends on it.

use crate::base::time::Timestamp;
use crate::input::stream::{Passed, Position};
use std::sync::{Mutex, PoisonError};

/// A place in a packet, between the events of two chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketPosition {
    /// Number of the packet.
    pub packet: usize,
    /// The events before it are earlier than this, the others are not.
    pub cut: Timestamp,
    pub position: Position,
    pub passed: Passed,
}

/// The two latest places of a stream: a worker may be overtaken in it by that of the next chunk.
#[derive(Debug, Default)]
pub(super) struct StreamPlaces(Mutex<[Option<PacketPosition>; 2]>);

impl StreamPlaces {
    /// The last place in a packet up to a time.
    pub fn before(&self, packet: usize, time: Timestamp) -> Option<PacketPosition> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = places.iter().flatten().filter(|place| place.packet == packet && place.cut <= time);
        known.max_by_key(|place| place.cut).copied()
    }

    /// Keep a place; the earliest goes.
    pub fn keep(&self, place: PacketPosition) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = places.iter_mut().min_by_key(|place| place.map(|place| place.cut));
        earliest.into_iter().for_each(|earliest| *earliest = Some(place));
    }
}

#[cfg(test)]
mod tests;
