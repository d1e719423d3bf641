//! Propagation: for each responsible event that waited, the event that made it wait.
//!
//! In: late occurrences, messages, collectives, clocks. Out: [`DelayForest`], a forest over (occurrence, event) nodes:
//! each node has at most one cause, because a wait ends with the last event waited for. ALGORITHMS.md 9.5.
//!
//! The last message to arrive, or the last member to enter, ended the wait. If the message was sent in time, the delay
//! is in the transfer or in a receiver that did not run, and no other thread is its cause. Otherwise an earlier
//! activity made the sender late: the latest responsible event there that explains at least half of the wait, else the
//! one that explains most. The handbook searches only the occurrence that contains the send. Here (\[OWN\]) the search
//! includes earlier occurrences, back to one usual length before the wait began: with a message posted at the start of
//! an iteration, the delay that made it late is in the iteration before.
//!
//! A send that was held until its receive was posted waits as well, for the activities of its receiver before that.
//! Waits that cause waits end before them on the common time line, and of a held send only the time until the posting
//! counts (it may return after its message arrived), so there are no cycles; an order that the clocks contradict drops
//! the edge and is counted. Cost: O((nodes + members of collectives) log nodes).

use super::late::{EventIndex, LateOccurrence};
use super::measure::PatternLimits;
use super::triggers::{Trigger, Triggers};
use crate::analysis::offsets::StreamClock;
use crate::base::ctx::Cancel;
use crate::base::time::{Ns, Span, Timestamp};
use crate::event::operation::{OperationPlace, Operations};
use crate::model::carrier::Carrier;
use crate::model::event_kind::EventKind;

/// A node: a responsible event of a late occurrence.
#[derive(Clone, Copy, Debug)]
pub struct DelayNode {
    /// Position of its stream.
    pub stream: u32,
    pub event: EventIndex,
    /// Position of its occurrence.
    pub late: u32,
    /// Position of the event among the responsible ones of that.
    pub responsible: u32,
    /// The kind of the event.
    pub kind: EventKind,
    /// On the common time line.
    pub span: Span,
    /// Its duration minus that in the reference occurrence.
    pub excess: Ns,
}

#[derive(Clone, Debug, Default)]
pub struct DelayForest {
    /// Sorted by stream, then event.
    pub nodes: Vec<DelayNode>,
    /// By node.
    pub causes: Vec<Option<DelayCause>>,
    /// Positions of all nodes, ordered so that a node comes after its cause.
    pub order: Vec<u32>,
    /// Edges dropped because the cause would end after its effect.
    pub violations: u64,
}

/// The cause of a node's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayCause {
    /// Position of the node that was late.
    pub node: u32,
    /// The carrier of the delay.
    pub carrier: Carrier,
    /// The part of the wait's excess that it explains.
    pub explained: Ns,
}

/// A cause explains at least one part in this many of the excess.
const SHARE: Ns = 10;

/// Find all causes; once cancelled, some of them.
pub fn find(
    operations: &Operations,
    clocks: &[StreamClock],
    late: &[LateOccurrence],
    limits: &[PatternLimits],
    cancel: &Cancel,
) -> DelayForest {
    let mut nodes: Vec<DelayNode> = Vec::new();
    for (l, occurrence) in (0_u32..).zip(late).filter(|(_, late)| !late.idle) {
        let stream = occurrence.occurrence.stream;
        let clock = clocks.get(stream as usize).copied().unwrap_or_default();
        for (b, blamed) in (0_u32..).zip(&occurrence.responsible) {
            let span = Span::new(clock.common(blamed.local.start), clock.common(blamed.local.end));
            let kind = operations.kind_of(stream, blamed.event);
            nodes.push(DelayNode {
                stream,
                event: blamed.event,
                late: l,
                responsible: b,
                kind,
                span,
                excess: blamed.excess,
            });
        }
    }
    // An event may be responsible in a unit and in a larger pattern: the unit comes first and keeps it.
    nodes.sort_by_key(|n| (n.stream, n.event, n.late));
    nodes.dedup_by_key(|n| (n.stream, n.event));
    let search = Search { late, limits, nodes: &nodes, triggers: Triggers::new(operations, clocks) };
    // This strictly increases along a chain of waits (ties are broken by position), so there are no cycles.
    let ended = |node: &DelayNode| {
        let trigger = search.trigger(node);
        match trigger {
            Some(by) if node.kind == EventKind::Send => (trigger, (by.sent, true)),
            _ => (trigger, (node.span.end, false)),
        }
    };
    let (waits, ends): (Vec<Option<Trigger>>, Vec<(Timestamp, bool)>) = nodes.iter().map(ended).unzip();
    let mut violations = 0;
    let causes = nodes.iter().zip(waits).zip(&ends).zip(0_u32..).map(|(((node, trigger), end), at)| {
        if cancel.is_cancelled() {
            return None;
        }
        let cause = search.cause(node, trigger?)?;
        // An event that does not wait ends every chain; a send may return after its message has arrived.
        let before = &search.nodes[cause.node as usize];
        let after = if before.kind.waits() {
            (ends[cause.node as usize], cause.node) >= (*end, at)
        } else {
            before.span.start >= node.span.end
        };
        violations += u64::from(after);
        (!after).then_some(cause)
    });
    let causes = causes.collect();
    let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
    order.sort_by_key(|at| (ends[*at as usize], *at));
    DelayForest { nodes, causes, order, violations }
}

/// The first event of the stream that ended a wait which cannot have delayed that end. A rank that enters a collective
/// operation, posts a receive or releases a lock was delayed by its earlier events, a sender by the send as well.
pub(super) fn last_before(trigger: &Trigger) -> EventIndex {
    let by_itself = matches!(trigger.carrier, Carrier::Message | Carrier::Wakeup | Carrier::Packet);
    let itself = by_itself || matches!(trigger.carrier, Carrier::Accelerator | Carrier::Task | Carrier::Exit);
    2 * trigger.from.operation + u32::from(itself)
}

struct Search<'a> {
    late: &'a [LateOccurrence],
    limits: &'a [PatternLimits],
    nodes: &'a [DelayNode],
    triggers: Triggers<'a>,
}

impl Search<'_> {
    /// The event that ended the wait of a node.
    fn trigger(&self, node: &DelayNode) -> Option<Trigger> {
        let place = OperationPlace { stream: node.stream, operation: node.event / 2 };
        node.kind.waits().then(|| self.triggers.of(place, node.span.end)).flatten()
    }

    /// The node that made this one wait, whose wait `trigger` ended.
    fn cause(&self, node: &DelayNode, trigger: Trigger) -> Option<DelayCause> {
        if trigger.from.stream == node.stream {
            return None;
        }
        // The part that the sender could have avoided: the wait until it sent, over what such a wait usually takes. The
        // rest is the transfer, or a receiver that did not run.
        let occurrence = &self.late[node.late as usize];
        let reference = occurrence.responsible[node.responsible as usize].reference;
        let sender_part = (trigger.sent - node.span.start - reference).min(node.excess);
        if sender_part < node.excess / 2 {
            return None;
        }
        let last = last_before(&trigger);
        let end = self.nodes.partition_point(|n| (n.stream, n.event) < (trigger.from.stream, last));
        let limits = occurrence.pattern.and_then(|pattern| self.limits.get(pattern.index()));
        let usual = limits.map_or(0, |limits| limits.of(occurrence.occurrence).max_ref);
        let mut most: Option<(Ns, usize)> = None;
        for (at, candidate) in self.nodes[..end].iter().enumerate().rev() {
            let occurrence = &self.late[candidate.late as usize];
            let holds_the_send = trigger.from.operation < occurrence.occurrence.first + occurrence.length;
            let recent = candidate.span.end >= node.span.start - usual;
            if candidate.stream != trigger.from.stream || !(holds_the_send || recent) {
                break;
            }
            let explained = candidate.excess.min(sender_part);
            if most.is_none_or(|(m, _)| explained > m) {
                most = Some((explained, at));
            }
            if candidate.excess >= sender_part / 2 {
                most = Some((explained, at));
                break;
            }
        }
        let (explained, at) = most.filter(|(explained, _)| explained.saturating_mul(SHARE) >= node.excess)?;
        Some(DelayCause { node: at as u32, carrier: trigger.carrier, explained })
    }
}
