//! Which send belongs to which receive.
//!
//! In: the halves of messages that each location recorded. Out: [`MessagePair`]s, matched by (sender, receiver, tag) in
//! posting order: MPI's non-overtaking rule holds between sends and *posted* receives, and the communicator recorded
//! with a receive may be wrong (BT and SP: the original instead of its duplicate), so it only serves to find the peer.
//! Cost: linear; parallel over receivers.

use super::mpi::{LocationRun, MessageHalf, NOWHERE};
use super::operation::{Message, OperationPlace, SendCompletion};
use crate::base::allocator::return_free_memory;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::model::carrier::Carrier;
use foldhash::HashMap;
use std::sync::{Mutex, PoisonError};

/// A matched message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessagePair {
    /// The half among the `sends` of its location.
    pub send: HalfPlace,
    /// The half among the `receives` of its location.
    pub receive: HalfPlace,
}

/// The place of a half of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfPlace {
    /// Position of the location.
    pub location: u32,
    /// Position among its sends, or among its receives.
    pub position: u32,
}

/// All messages whose two halves were recorded, by receiving location and posting order.
pub(super) fn pairs(locations: &[LocationRun], ctx: &Ctx) -> Result<Vec<MessagePair>, Cancelled> {
    let by_receiver = by_receiver(locations);
    let mut pairs = Vec::new();
    let found = |i: usize| {
        let receives = locations.get(i).map_or(&[][..], |l| &l.receives);
        match_receiver(locations, &by_receiver, i, receives)
    };
    in_order(ctx, locations.len(), found, |_, found| pairs.extend(found))?;
    Ok(pairs)
}

/// Messages, and how each was handed over.
#[derive(Default)]
pub(super) struct Matched {
    /// By receiving place, then by time of arrival.
    pub(super) messages: Vec<Message>,
    /// Of those whose sender may have had to wait.
    pub(super) send_completions: Vec<SendCompletion>,
    /// Receives from a known rank without a matching send.
    pub(super) unmatched: u64,
}

/// The messages of all locations, of the halves that were matched. The halves are dropped receiver by receiver, so that
/// memory never holds both forms of all messages.
pub(super) fn messages(locations: &mut [LocationRun], ctx: &Ctx) -> Result<Matched, Cancelled> {
    let all: usize = locations.iter().map(|l| l.receives.len()).sum();
    let receives: Vec<Mutex<Vec<MessageHalf>>> =
        locations.iter_mut().map(|l| Mutex::new(std::mem::take(&mut l.receives))).collect();
    let by_receiver = by_receiver(locations);
    let mut matched = Matched { messages: Vec::with_capacity(all), ..Matched::default() };
    let shared: &[LocationRun] = locations;
    let found = |i: usize| {
        let receives = receives
            .get(i)
            .map_or_else(Vec::new, |r| std::mem::take(&mut *r.lock().unwrap_or_else(PoisonError::into_inner)));
        let pairs = match_receiver(shared, &by_receiver, i, &receives);
        let with_peer = receives.iter().filter(|r| r.peer().is_some()).count();
        let halves = |pair: &MessagePair| {
            let HalfPlace { location, position } = pair.send;
            let send = shared.get(location as usize)?.sends.get(position as usize)?;
            Some((location, send, receives.get(pair.receive.position as usize)?))
        };
        let mut found = Matched { unmatched: (with_peer - pairs.len()) as u64, ..Matched::default() };
        for (sender, send, receive) in pairs.iter().filter_map(halves) {
            found.messages.push(message(sender, send, i as u32, receive));
            found.send_completions.extend(completion(sender, send, i as u32, receive));
        }
        found.messages.sort_by_key(|m| (m.to, m.received, m.from));
        found
    };
    in_order(ctx, shared.len(), found, |at, found| {
        if at % RECEIVERS == RECEIVERS - 1 {
            return_free_memory();
        }
        matched.messages.extend(found.messages);
        matched.send_completions.extend(found.send_completions);
        matched.unmatched += found.unmatched;
    })?;
    Ok(matched)
}

/// After this many receivers the memory of their halves is given back: messages are in one list, which cannot use it.
const RECEIVERS: usize = 64;

fn message(sender: u32, send: &MessageHalf, receiver: u32, receive: &MessageHalf) -> Message {
    Message {
        carrier: Carrier::Message,
        from: OperationPlace { stream: sender, operation: send.operation },
        to: OperationPlace { stream: receiver, operation: receive.operation },
        sent: send.time,
        received: receive.time,
    }
}

fn completion(sender: u32, send: &MessageHalf, receiver: u32, receive: &MessageHalf) -> Option<SendCompletion> {
    let from = OperationPlace { stream: sender, operation: send.operation };
    let posted = OperationPlace { stream: receiver, operation: receive.other };
    let known = ![send.operation, send.other, receive.other].contains(&NOWHERE);
    known.then_some(SendCompletion { from, done: send.other, posted, bytes: send.bytes })
}

/// For each receiver, for each sender: positions of its sends to that receiver.
fn by_receiver(locations: &[LocationRun]) -> Vec<Vec<(u32, Vec<u32>)>> {
    let mut lists: Vec<Vec<(u32, Vec<u32>)>> = vec![Vec::new(); locations.len()];
    for (sender, location) in (0_u32..).zip(locations) {
        for (position, send) in (0_u32..).zip(&location.sends) {
            let Some(list) = send.peer().and_then(|to| lists.get_mut(to.index())) else { continue };
            match list.last_mut() {
                Some((last, positions)) if *last == sender => positions.push(position),
                _ => list.push((sender, vec![position])),
            }
        }
    }
    lists
}

/// The sends of one sender with one tag that are not received yet: positions of the first and of the last.
struct SendQueue {
    head: u32,
    tail: u32,
}

/// The queues by sender and tag. Those used lately are found without a hash look-up.
#[derive(Default)]
struct SendQueues {
    queues: Vec<SendQueue>,
    known: HashMap<(u32, u32), u32>,
    recent: [Option<((u32, u32), u32)>; RECENT],
}

/// The number of queues that are known without a hash look-up.
const RECENT: usize = 32;

impl SendQueues {
    fn recent(key: (u32, u32)) -> usize {
        (key.0.wrapping_mul(7) ^ key.1) as usize % RECENT
    }

    fn get(&mut self, key: (u32, u32)) -> Option<&mut SendQueue> {
        let recent = &mut self.recent[Self::recent(key)];
        let at = match *recent {
            Some((known, at)) if known == key => at,
            _ => *self.known.get(&key)?,
        };
        *recent = Some((key, at));
        self.queues.get_mut(at as usize)
    }

    /// Append a send; gives the position of the one before it.
    fn push(&mut self, key: (u32, u32), at: u32) -> Option<u32> {
        if let Some(queue) = self.get(key) {
            return Some(std::mem::replace(&mut queue.tail, at));
        }
        self.known.insert(key, self.queues.len() as u32);
        self.queues.push(SendQueue { head: at, tail: at });
        None
    }
}

/// Match the receives of one location.
fn match_receiver(
    locations: &[LocationRun],
    by_receiver: &[Vec<(u32, Vec<u32>)>],
    receiver: usize,
    receives: &[MessageHalf],
) -> Vec<MessagePair> {
    // A queue of sends per (sender, tag), as a linked list through the positions of all sends to this receiver.
    let mut sent: Vec<HalfPlace> = Vec::new();
    let mut next: Vec<u32> = Vec::new();
    let mut queues = SendQueues::default();
    for (sender, positions) in by_receiver.get(receiver).into_iter().flatten() {
        let Some(location) = locations.get(*sender as usize) else { continue };
        for position in positions {
            let Some(send) = location.sends.get(*position as usize) else { continue };
            let at = sent.len() as u32;
            sent.push(HalfPlace { location: *sender, position: *position });
            next.push(NOWHERE);
            if let Some(before) = queues.push((*sender, send.tag), at) {
                next[before as usize] = at;
            }
        }
    }
    let mut pairs = Vec::with_capacity(receives.len());
    for (position, receive) in (0_u32..).zip(receives) {
        let Some(from) = receive.peer() else { continue };
        let Some(queue) = queues.get((from.raw(), receive.tag)) else { continue };
        if let Some(send) = sent.get(queue.head as usize) {
            pairs.push(MessagePair { send: *send, receive: HalfPlace { location: receiver as u32, position } });
            queue.head = next[queue.head as usize];
        }
    }
    pairs
}
