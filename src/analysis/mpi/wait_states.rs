//! Wait states: the part of each call in which it could not progress because another rank or thread was late.
//!
//! In: operations, messages, collectives, clocks. Out: [`RankWait`]s by stream and operation. A call waits until the
//! last of its preconditions held: the sending call began, the receive was posted, the last member entered, the lock
//! was released, the team was called. The rest of the call is transfer or its own work. Definitions as Scalasca's,
//! except that the destination of a reduction waits for its last sender, and that flow control is a state of its own. A
//! call waits for late senders or for late receivers, not for both at once. Cost: linear, and one search per call that
//! waits.

use crate::analysis::offsets::StreamClock;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use crate::base::search::insert_sorted;
use crate::base::time::{Ns, Timestamp};
use crate::event::operation::{CollectiveKind, Message, OperationPlace, Operations};
use crate::model::carrier::Carrier;
use crate::model::wait_state::WaitState;

/// A wait of one operation, on the common time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankWait {
    /// The operation that waits.
    pub place: OperationPlace,
    /// The kind of wait.
    pub kind: WaitState,
    pub start: Timestamp,
    /// The time until which the operation could not continue.
    pub until: Timestamp,
    /// The late operation that it waited for. Itself if no rank is late (completion).
    pub cause: OperationPlace,
    /// The position of the collective operation of both; none for messages.
    pub collective: Option<u32>,
}

impl RankWait {
    pub fn len(&self) -> Ns {
        self.until - self.start
    }

    /// True when nothing was waited for.
    pub fn is_empty(&self) -> bool {
        self.until <= self.start
    }
}

/// All waits, by place; of several waits of one kind in one operation the last.
pub fn find(operations: &Operations, clocks: &[StreamClock], ctx: &Ctx) -> Result<Vec<RankWait>, Cancelled> {
    let finder = Finder { operations, clocks };
    let messages = &operations.messages;
    // Messages to one stream are adjacent, and so are those to one of its operations.
    let first = |stream: usize| messages.partition_point(|m| (m.to.stream as usize) < stream);
    let mut waits: Vec<RankWait> = Vec::new();
    let of_stream = |stream: usize| {
        let received = messages.get(first(stream)..first(stream + 1)).unwrap_or(&[]);
        let mut found = finder.messages(received);
        found.chunk_by_mut(|a, b| a.place == b.place).for_each(|one| one.sort_unstable_by_key(order));
        last_of_each(&mut found);
        found
    };
    in_order(ctx, operations.sequences.len(), of_stream, |_, found| waits.extend(found))?;
    let mut by_collectives = Vec::new();
    finder.collectives(&mut by_collectives);
    if !by_collectives.is_empty() {
        by_collectives.sort_unstable_by_key(order);
        insert_sorted(&mut waits, &by_collectives, order);
        last_of_each(&mut waits);
    }
    Ok(waits)
}

/// The order of waits; the last of a kind in an operation comes last.
fn order(w: &RankWait) -> (OperationPlace, WaitState, Timestamp, OperationPlace, Timestamp) {
    (w.place, w.kind, w.until, w.cause, w.start)
}

/// Keep of the waits of one place and kind only the last. They are in order.
fn last_of_each(waits: &mut Vec<RankWait>) {
    let mut receives = None;
    waits.dedup_by(|next, kept| {
        let same = (next.place, next.kind) == (kept.place, kept.kind);
        if same {
            *kept = *next;
        }
        same
    });
    waits.retain(|w| {
        if w.kind.of_receiver() {
            receives = Some(w.place);
        }
        // A call that waited for a message and to send another waited once: late senders take precedence.
        !(w.kind.of_sender() && receives == Some(w.place))
    });
}

struct Finder<'a> {
    operations: &'a Operations,
    clocks: &'a [StreamClock],
}

impl Finder<'_> {
    fn common(&self, stream: u32, local: Timestamp) -> Timestamp {
        self.clocks.get(stream as usize).map_or(local, |c| c.common(local))
    }

    fn start(&self, place: OperationPlace) -> Option<Timestamp> {
        Some(self.common(place.stream, self.operations.get(place)?.start))
    }

    fn end(&self, place: OperationPlace) -> Option<Timestamp> {
        Some(self.common(place.stream, self.operations.get(place)?.end))
    }

    /// The wait of an operation until `cause` allowed it to continue; `None` where it did not have to wait.
    fn wait(
        &self,
        place: OperationPlace,
        kind: WaitState,
        until: Timestamp,
        cause: OperationPlace,
        collective: Option<u32>,
    ) -> Option<RankWait> {
        let (start, end) = (self.start(place)?, self.end(place)?);
        let wait = RankWait { place, kind, start, until: until.min(end), cause, collective };
        (!wait.is_empty()).then_some(wait)
    }

    /// The waits for the messages that one stream received.
    fn messages(&self, messages: &[Message]) -> Vec<RankWait> {
        let mut waits = Vec::new();
        // By position: the earliest send of the messages that this stream received later.
        let mut earliest: Vec<Timestamp> = vec![Timestamp::MAX; messages.len()];
        let mut sent = Timestamp::MAX;
        for (m, earliest) in messages.iter().zip(&mut earliest).rev() {
            *earliest = sent;
            if m.carrier == Carrier::Message {
                sent = sent.min(self.start(m.from).unwrap_or(Timestamp::MAX));
            }
        }
        for (m, earliest) in messages.iter().zip(earliest) {
            if m.from.stream == m.to.stream {
                continue;
            }
            let (kind, until) = match m.carrier {
                Carrier::Message => {
                    let Some(began) = self.start(m.from) else { continue };
                    let kind = if earliest < began { WaitState::WrongOrder } else { WaitState::LateSender };
                    (kind, Some(began))
                }
                Carrier::Rendezvous => (WaitState::LateReceiver, self.start(m.from)),
                Carrier::FlowControl => (WaitState::FlowControl, self.start(m.from)),
                Carrier::Post => (WaitState::LatePost, self.start(m.from)),
                Carrier::Complete => (WaitState::LateComplete, self.start(m.from)),
                Carrier::Fork => (WaitState::IdleThreads, self.end(m.to)),
                Carrier::Launch => (WaitState::IdleAccelerator, self.end(m.to)),
                Carrier::Lock => (WaitState::Lock, Some(self.common(m.from.stream, m.sent))),
                Carrier::Accelerator => (WaitState::Accelerator, Some(self.common(m.from.stream, m.sent))),
                Carrier::Task => (WaitState::Tasks, Some(self.common(m.from.stream, m.sent))),
                Carrier::Exit => (WaitState::Join, Some(self.common(m.from.stream, m.sent))),
                // Collectives are handled separately; the others are carriers of kernel recordings.
                _ => continue,
            };
            waits.extend(until.and_then(|until| self.wait(m.to, kind, until, m.from, None)));
        }
        waits
    }

    fn collectives(&self, waits: &mut Vec<RankWait>) {
        for (collective, at) in self.operations.collectives.iter().zip(0_u32..) {
            let members = &collective.members;
            let entered = |p: &OperationPlace| Some((self.start(*p)?, *p));
            let last =
                |of: &[OperationPlace]| of.iter().filter_map(entered).max_by_key(|(t, p)| (*t, std::cmp::Reverse(*p)));
            let root = |root: Option<u32>| members.get(root? as usize).copied();
            let mut add = |place: OperationPlace, kind, entered: Option<(Timestamp, OperationPlace)>| {
                let wait = entered
                    .filter(|(_, cause)| *cause != place)
                    .and_then(|(until, cause)| self.wait(place, kind, until, cause, Some(at)));
                waits.extend(wait);
            };
            match collective.exchange {
                CollectiveKind::Barrier | CollectiveKind::All | CollectiveKind::TeamBarrier => {
                    let kind = match collective.exchange {
                        CollectiveKind::Barrier => WaitState::Barrier,
                        CollectiveKind::TeamBarrier => WaitState::ThreadBarrier,
                        _ => WaitState::AllToAll,
                    };
                    let last_to_enter = last(members);
                    members.iter().for_each(|m| add(*m, kind, last_to_enter));
                }
                CollectiveKind::FromOne(one) => {
                    let last_to_enter = root(one).as_ref().and_then(entered);
                    members.iter().for_each(|m| add(*m, WaitState::LateBroadcast, last_to_enter));
                }
                CollectiveKind::ToOne(one) => {
                    if let Some(root) = root(one) {
                        let others: Vec<OperationPlace> = members.iter().copied().filter(|m| *m != root).collect();
                        add(root, WaitState::EarlyReduce, last(&others));
                    }
                }
                CollectiveKind::Prefix => {
                    for (i, m) in members.iter().enumerate() {
                        add(*m, WaitState::Prefix, last(members.get(..i).unwrap_or(&[])));
                    }
                }
            }
            if collective.exchange.all_wait() {
                self.completion(members, at, waits);
            }
        }
    }

    /// No rank leaves before all have entered; after the first has left, the others take longer than necessary.
    fn completion(&self, members: &[OperationPlace], collective: u32, waits: &mut Vec<RankWait>) {
        let left = |p: &OperationPlace| Some((self.end(*p)?, *p));
        let Some((first, first_member)) = members.iter().filter_map(left).min() else { return };
        for member in members.iter().filter(|m| **m != first_member) {
            let Some((end, start)) = self.end(*member).zip(self.start(*member)) else { continue };
            let start = start.max(first);
            if end > start {
                let kind = WaitState::Completion;
                waits.push(RankWait {
                    place: *member,
                    kind,
                    start,
                    until: end,
                    cause: *member,
                    collective: Some(collective),
                });
            }
        }
    }
}
