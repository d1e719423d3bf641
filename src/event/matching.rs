//! Which send belongs to which receive.
//!
//! In: the halves of messages that each location recorded. Out: [`Pair`]s, matched by (sender, receiver, tag) in posting
//! order: MPI's non-overtaking rule holds between sends and *posted* receives, and the communicator recorded with a
//! receive may be wrong (BT and SP: the original instead of its duplicate), so it only serves to find the peer.
//! Cost: linear; parallel over receivers.

use super::mpi::{LocationRun, NOWHERE};
use crate::base::work::{Cancelled, Work, in_order};
use foldhash::HashMap;

/// A matched message: positions of location and half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Sending location, position in its `sends`.
    pub send: (u32, u32),
    /// Receiving location, position in its `receives`.
    pub receive: (u32, u32),
}

/// All messages whose two halves were recorded, by receiving location and posting order.
pub(super) fn pairs(locations: &[LocationRun], work: &Work) -> Result<Vec<Pair>, Cancelled> {
    let by_receiver = by_receiver(locations);
    let mut pairs = Vec::new();
    let found = |i| match_receiver(locations, &by_receiver, i);
    in_order(work, locations.len(), found, |_, found| pairs.extend(found))?;
    Ok(pairs)
}

/// For each receiver, for each sender: positions of its sends to that receiver.
fn by_receiver(locations: &[LocationRun]) -> Vec<Vec<(u32, Vec<u32>)>> {
    let mut lists: Vec<Vec<(u32, Vec<u32>)>> = vec![Vec::new(); locations.len()];
    for (sender, location) in (0_u32..).zip(locations) {
        for (position, send) in (0_u32..).zip(&location.sends) {
            let Some(list) = send.peer.and_then(|to| lists.get_mut(to.index())) else { continue };
            match list.last_mut() {
                Some((last, positions)) if *last == sender => positions.push(position),
                _ => list.push((sender, vec![position])),
            }
        }
    }
    lists
}

/// Match the receives of one location.
fn match_receiver(locations: &[LocationRun], by_receiver: &[Vec<(u32, Vec<u32>)>], receiver: usize) -> Vec<Pair> {
    // A queue of sends per (sender, tag), as a linked list through the positions of all sends to this receiver.
    let mut sent: Vec<(u32, u32)> = Vec::new();
    let mut next: Vec<u32> = Vec::new();
    let mut queues: HashMap<(u32, u32), (u32, u32)> = HashMap::default();
    for (sender, positions) in by_receiver.get(receiver).into_iter().flatten() {
        let Some(location) = locations.get(*sender as usize) else { continue };
        for position in positions {
            let Some(send) = location.sends.get(*position as usize) else { continue };
            let at = sent.len() as u32;
            sent.push((*sender, *position));
            next.push(NOWHERE);
            let (_, tail) = queues.entry((*sender, send.tag)).or_insert((at, at));
            if *tail != at {
                next[*tail as usize] = at;
                *tail = at;
            }
        }
    }
    let Some(location) = locations.get(receiver) else { return Vec::new() };
    let mut pairs = Vec::with_capacity(location.receives.len());
    for (position, receive) in (0_u32..).zip(&location.receives) {
        let Some(from) = receive.peer else { continue };
        let Some((head, _)) = queues.get_mut(&(from.0, receive.tag)) else { continue };
        if let Some(send) = sent.get(*head as usize) {
            pairs.push(Pair { send: *send, receive: (receiver as u32, position) });
            *head = next[*head as usize];
        }
    }
    pairs
}
