//! Triggers: the events that ended waits, with the last sender and times on the common time line.
//!
//! In: messages and collectives, sorted by receiving place. A wait ends with the last message to arrive (of a held
//! send: with the receive that was posted), or with the last member to enter. Cost: a binary search per wait.

use crate::analysis::offsets::StreamClock;
use crate::base::time::{Span, Timestamp};
use crate::event::operation::{Operation, OperationPlace, Operations};
use crate::model::carrier::Carrier;

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The operation that sent, or came.
    pub from: OperationPlace,
    /// When, on the common time line.
    pub sent: Timestamp,
    /// The carrier.
    pub carrier: Carrier,
}

/// Finds what ended waits.
#[derive(Debug)]
pub struct Triggers<'a> {
    operations: &'a Operations,
    clocks: &'a [StreamClock],
    /// For each operation that is part of a collective operation, which; sorted.
    attended: Vec<(OperationPlace, u32)>,
}

impl<'a> Triggers<'a> {
    /// Sort the members of all collective operations.
    pub fn new(operations: &'a Operations, clocks: &'a [StreamClock]) -> Self {
        let collectives = (0_u32..).zip(&operations.collectives);
        let mut attended: Vec<_> =
            collectives.flat_map(|(m, collective)| collective.members.iter().map(move |p| (*p, m))).collect();
        attended.sort_unstable();
        Triggers { operations, clocks, attended }
    }

    /// The clock of a stream.
    pub fn clock(&self, stream: u32) -> StreamClock {
        self.clocks.get(stream as usize).copied().unwrap_or_default()
    }

    /// An operation's time on the common line.
    pub fn span(&self, stream: u32, operation: &Operation) -> Span {
        let clock = self.clock(stream);
        Span::new(clock.common(operation.start), clock.common(operation.end))
    }

    /// The trigger that ended the wait of an operation left at `end`.
    pub fn of(&self, place: OperationPlace, end: Timestamp) -> Option<Trigger> {
        let messages = &self.operations.messages;
        let first = messages.partition_point(|m| m.to < place);
        let received = messages[first..].iter().take_while(|m| m.to == place).map(|m| {
            // A message left while the sending operation lasted, of which tracers record the attempt; wake-ups and
            // packets are recorded as they happen.
            let left = match (m.carrier, self.operations.get(m.from)) {
                (Carrier::Message, Some(o)) => o.end.max(m.sent),
                _ => m.sent,
            };
            Trigger { from: m.from, sent: self.clock(m.from.stream).common(left), carrier: m.carrier }
        });
        let at = self.attended.binary_search_by_key(&place, |(p, _)| *p).ok();
        let collective = at.and_then(|at| self.operations.collectives.get(self.attended[at].1 as usize));
        let members =
            collective.into_iter().flat_map(|m| m.members.iter().map(|member| (m.exchange.carrier(), member)));
        let members = members.filter_map(|(carrier, member)| {
            let came = self.clock(member.stream).common(self.operations.get(*member)?.start);
            Some(Trigger { from: *member, sent: came, carrier })
        });
        // A member that came after this one had left made it wait for nothing (a broadcast).
        let members = members.filter(|t| t.sent <= end);
        received.chain(members).max_by_key(|t| (t.sent, std::cmp::Reverse(t.from)))
    }
}
