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
    /// The operation that sent, or entered.
    pub from: OperationPlace,
    /// The time of that, on the common time line.
    pub sent: Timestamp,
    /// The carrier.
    pub carrier: Carrier,
}

/// Finds the events that ended waits.
#[derive(Debug)]
pub struct Triggers<'a> {
    operations: &'a Operations,
    clocks: &'a [StreamClock],
    /// Members of collective operations, each with the position of its operation; sorted.
    members: Vec<(OperationPlace, u32)>,
}

impl<'a> Triggers<'a> {
    /// Sort the members of all collective operations.
    pub fn new(operations: &'a Operations, clocks: &'a [StreamClock]) -> Self {
        let collectives = (0_u32..).zip(&operations.collectives);
        let mut members: Vec<_> =
            collectives.flat_map(|(m, collective)| collective.members.iter().map(move |p| (*p, m))).collect();
        members.sort_unstable();
        Triggers { operations, clocks, members }
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
            // Tracers record a send at its begin, while the message leaves until the end of the operation; wake-ups and
            // packets are recorded when they happen.
            let sent = match (m.carrier, self.operations.get(m.from)) {
                (Carrier::Message, Some(o)) => o.end.max(m.sent),
                _ => m.sent,
            };
            Trigger { from: m.from, sent: self.clock(m.from.stream).common(sent), carrier: m.carrier }
        });
        let at = self.members.binary_search_by_key(&place, |(p, _)| *p).ok();
        let collective = at.and_then(|at| self.operations.collectives.get(self.members[at].1 as usize));
        let members =
            collective.into_iter().flat_map(|m| m.members.iter().map(|member| (m.exchange.carrier(), member)));
        let members = members.filter_map(|(carrier, member)| {
            let entered = self.clock(member.stream).common(self.operations.get(*member)?.start);
            Some(Trigger { from: *member, sent: entered, carrier })
        });
        // A member that entered after this one had left did not delay it (a broadcast).
        let members = members.filter(|t| t.sent <= end);
        received.chain(members).max_by_key(|t| (t.sent, std::cmp::Reverse(t.from)))
    }
}
