//! Triggers: the events that ended waits, with the last sender and times on the common time line.
//!
//! In: messages and collectives, sorted by receiving place. A wait ends with the last message to arrive (of a held
//! send: with the receive that was posted), or with the last member to enter. Cost: a search per wait, from the wait
//! before where the caller keeps its place.

use crate::analysis::offsets::StreamClock;
use crate::base::search::partition_point_near;
use crate::base::time::{Span, Timestamp};
use crate::event::operation::{CollectiveInstance, Operation, OperationPlace, Operations};
use crate::model::carrier::Carrier;

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// The operation that sent, or entered.
    pub from: OperationPlace,
    /// The time of that, on the common time line.
    pub sent: Timestamp,
    pub carrier: Carrier,
}

/// A member of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CollectiveMember {
    place: OperationPlace,
    /// Position of the operation.
    collective: u32,
}

/// Where the search for the trigger of one wait of a stream ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastWait {
    /// Among the messages to the stream.
    message: usize,
    /// Among the members of all collective operations.
    member: usize,
}

/// Finds the events that ended waits.
#[derive(Debug)]
pub struct Triggers<'a> {
    operations: &'a Operations,
    clocks: &'a [StreamClock],
    /// By stream: position of the first message to it; then the number of messages.
    first: Vec<usize>,
    /// Members of all collective operations, sorted by place.
    members: Vec<CollectiveMember>,
    /// By collective operation: the last member to enter, and when.
    last_to_enter: Vec<Option<Trigger>>,
}

impl<'a> Triggers<'a> {
    /// Sort the members of all collective operations.
    pub fn new(operations: &'a Operations, clocks: &'a [StreamClock]) -> Self {
        let collectives = (0_u32..).zip(&operations.collectives);
        let mut members: Vec<_> = collectives
            .flat_map(|(m, collective)| {
                collective.members.iter().map(move |p| CollectiveMember { place: *p, collective: m })
            })
            .collect();
        members.sort_unstable();
        let streams = 0..=operations.sequences.len();
        let first = streams.map(|s| operations.messages.partition_point(|m| (m.to.stream as usize) < s)).collect();
        let mut triggers = Triggers { operations, clocks, first, members, last_to_enter: Vec::new() };
        let last = |c: &CollectiveInstance| triggers.entries(c).max_by_key(order);
        triggers.last_to_enter = operations.collectives.iter().map(last).collect();
        triggers
    }

    /// When each member of a collective operation entered.
    fn entries(&self, collective: &'a CollectiveInstance) -> impl Iterator<Item = Trigger> {
        let carrier = collective.exchange.carrier();
        collective.members.iter().filter_map(move |member| {
            let entered = self.clock(member.stream).common(self.operations.get(*member)?.start);
            Some(Trigger { from: *member, sent: entered, carrier })
        })
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
        self.after(&mut LastWait::default(), place, end)
    }

    /// [`of`](Self::of), where the search begins at another wait of the stream, which this one replaces.
    pub fn after(&self, last: &mut LastWait, place: OperationPlace, end: Timestamp) -> Option<Trigger> {
        let stream = place.stream as usize;
        let to_stream = self.first.get(stream).zip(self.first.get(stream + 1));
        let messages = to_stream.and_then(|(from, to)| self.operations.messages.get(*from..*to)).unwrap_or(&[]);
        last.message = partition_point_near(messages, last.message, |m| m.to < place);
        let received = messages[last.message..].iter().take_while(|m| m.to == place).map(|m| {
            // Tracers record a send at its begin, while the message leaves until the end of the operation; wake-ups and
            // packets are recorded when they happen.
            let sent = match (m.carrier, self.operations.get(m.from)) {
                (Carrier::Message, Some(o)) => o.end.max(m.sent),
                _ => m.sent,
            };
            Trigger { from: m.from, sent: self.clock(m.from.stream).common(sent), carrier: m.carrier }
        });
        last.member = partition_point_near(&self.members, last.member, |member| member.place < place);
        let member = self.members.get(last.member).filter(|member| member.place == place);
        let collective = member.map(|member| member.collective as usize);
        received.chain(collective.and_then(|at| self.entered_before(at, end))).max_by_key(order)
    }

    /// The last member that entered a collective operation until `end`. One that entered later, after another had left,
    /// did not delay that one (a broadcast).
    fn entered_before(&self, collective: usize, end: Timestamp) -> Option<Trigger> {
        let last = self.last_to_enter.get(collective).copied().flatten()?;
        if last.sent <= end {
            return Some(last);
        }
        self.entries(self.operations.collectives.get(collective)?).filter(|t| t.sent <= end).max_by_key(order)
    }
}

/// Of several triggers the latest; of equals the first by place.
fn order(trigger: &Trigger) -> (Timestamp, std::cmp::Reverse<OperationPlace>) {
    (trigger.sent, std::cmp::Reverse(trigger.from))
}
