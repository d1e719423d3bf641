//! Waits, and what is known of them besides their kind: what holds a thread back or stops it, by the kernel's call
//! stack where it left the CPU; who sent the signal; the timer that ended a wait for the network.
//!
//! In: a thread of a path and the moment at which it left the CPU. Out: the quota or the freezer of its control group,
//! where the innermost function besides the scheduler's own is theirs; for a stop, its node. Stacks without names of
//! the kernel's functions say nothing. Cost: each distinct stack is looked at once. ALGORITHMS.md sections 5.3 and 5.4.

use super::{Entered, OutlineId, OutlineStep, PathSegment, PathThread, Walk};
use crate::analysis::remarks::TcpTimer;
use crate::analysis::throttling::{is_enforced_in, is_frozen_in};
use crate::base::time::Timestamp;
use crate::model::wait_kind::{BY_FREEZER, BY_SIGNAL, BY_TRACER, RETRANSMITTED, TCP_TIMER, WaitKind};
use crate::timeline::{SegmentKind, ThreadId};

/// What holds a thread back in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldFor {
    /// The CPU quota of its control group.
    Quota,
    /// The freezer of its control group.
    Freezer,
}

impl Walk<'_, '_> {
    /// What holds a thread back that left the CPU at `t`, or before.
    pub(super) fn held_for(&mut self, thread: ThreadId, t: Timestamp) -> Option<HeldFor> {
        let kernel = self.sources.kernel?;
        let stack = self.sources.timelines.get(self.stacks.of(thread).at(t)).kernel?;
        *self.holds.entry(stack).or_insert_with(|| {
            let functions = kernel.functions(self.sources.timeline.stacks().get(stack));
            let innermost_first = || functions.iter().rev().copied();
            let quota = is_enforced_in(innermost_first()).then_some(HeldFor::Quota);
            quota.or_else(|| is_frozen_in(innermost_first()).then_some(HeldFor::Freezer))
        })
    }

    /// The kind of wait by which the path goes on from the thread at `above`, and its node.
    pub(super) fn entered(&mut self, above: usize, segment: &PathSegment) -> (WaitKind, OutlineId) {
        let PathThread { thread: waiter, node, .. } = self.passed[above];
        match segment.entered {
            Entered::Network => (WaitKind::Network, self.ended_by_timer(node, waiter, segment.span.start)),
            Entered::Disk => (WaitKind::Disk, node),
            Entered::Start | Entered::Blocked | Entered::Fork => match self.held_for(waiter, segment.span.start) {
                Some(HeldFor::Freezer) => (WaitKind::Stopped, self.frozen(node)),
                _ => (WaitKind::Thread, node),
            },
            Entered::Stopped => (WaitKind::Stopped, self.signalled(node, waiter, segment.span.start)),
            Entered::Traced => (WaitKind::Stopped, self.named(node, WaitKind::Stopped, BY_TRACER)),
        }
    }

    /// A wait without another thread: at most the name of a device, an interrupt or a reason is known.
    pub(super) fn add_wait(&mut self, node: OutlineId, kind: WaitKind, segment: &PathSegment) {
        let has_name =
            matches!(kind, WaitKind::Interrupted | WaitKind::Device | WaitKind::UnknownWait | WaitKind::Stopped);
        let name = segment.qualifier.filter(|_| has_name);
        let text = name.map(|name| self.sources.timeline.names().get(name));
        let (thread, start) = (segment.thread, segment.span.start);
        let wait = match kind {
            WaitKind::UnknownWait if self.held_for(thread, start) == Some(HeldFor::Freezer) => self.frozen(node),
            WaitKind::Network => {
                let wait = self.wait(node, kind, None);
                self.ended_by_timer(wait, thread, start)
            }
            WaitKind::Stopped if text == Some(BY_SIGNAL) => self.signalled(node, thread, start),
            _ => self.wait(node, kind, name),
        };
        self.add(wait, segment.span.len() as u64);
    }

    /// The node of a thread's wait for the network at `t`, below `node` where a timer of TCP ended it.
    fn ended_by_timer(&mut self, node: OutlineId, waiter: ThreadId, t: Timestamp) -> OutlineId {
        let host = self.sources.timeline.thread(waiter).map(|thread| thread.host);
        let wait = self.reader.segments(waiter).at(t).filter(|wait| wait.kind == SegmentKind::Network);
        let timer = host.zip(wait).and_then(|(host, wait)| self.sources.remarks.ended_by_timer(host, wait.span));
        let name = match timer {
            None => return node,
            Some(TcpTimer::Sends) => TCP_TIMER,
            Some(TcpTimer::Retransmits) => RETRANSMITTED,
        };
        self.outline.child(Some(node), OutlineStep::Named(WaitKind::Network, name))
    }

    /// The node of a wait below `node`, and below that one a name that no recording gives.
    pub(super) fn named(&mut self, node: OutlineId, kind: WaitKind, name: &'static str) -> OutlineId {
        let wait = self.wait(node, kind, None);
        self.outline.child(Some(wait), OutlineStep::Named(kind, name))
    }

    /// The node of a stop by the freezer.
    fn frozen(&mut self, node: OutlineId) -> OutlineId {
        self.named(node, WaitKind::Stopped, BY_FREEZER)
    }

    /// The node of a stop of a thread by a signal, below that its sender where that was recorded.
    fn signalled(&mut self, node: OutlineId, stopped: ThreadId, t: Timestamp) -> OutlineId {
        let wait = self.named(node, WaitKind::Stopped, BY_SIGNAL);
        let timeline = self.sources.timeline;
        let sender = timeline.thread(stopped).and_then(|thread| self.sources.remarks.stopped_by(thread, t));
        let Some(sender) = sender.and_then(|sender| timeline.thread(sender)) else { return wait };
        let step = OutlineStep::SentBy(self.name_at(sender, t));
        self.outline.child(Some(wait), step)
    }
}
