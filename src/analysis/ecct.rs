//! From a critical path to the enhanced calling context tree of an execution.
//!
//! In: path segments (contiguous, in order), stacks, the thread on each CPU, the threads that used the disk. Out:
//! nanoseconds per node of an [`Outline`]. Their sum is exactly the length of the path, because every part of a segment
//! is added to one node.
//!
//! The walk keeps a list of the threads that the path went through. Time on a CPU is added to the thread's stack at
//! that time; a wait is added below the stack at which the thread stopped. Where the path enters another thread, a
//! thread step is added below the waiting stack, so that the tree reads: this thread, in this function, waited for that
//! thread, in that function. Three refinements:
//!
//! - Below a *runnable* wait are the threads that ran on the CPU instead, with their functions, and the time in which
//!   it was idle; below a *disk wait* the threads that had requests in flight.
//! - Below the stack of a *kernel thread* that works for another thread is that client, in the function that submitted
//!   the work. If the client itself waits for the kernel thread, the kernel thread is shown alone.
//! - *Queues are skipped.* A thread that waits for a lock is often woken by another one that had waited in the same
//!   place (equal stack and call). That thread is not the cause, and naming it would spread one cause over as many
//!   contexts as there are orders in the queue. So the cause of *its* wait is put directly below the first waiter.
//!
//! Cost: linear in segments plus stack changes and CPU runs inside them. ALGORITHMS.md sections 5.3 and 5.4.

mod held;
mod polling;
mod resources;
mod times;
mod unanswered;
mod work;

use super::carriers;
use super::disk::DiskUse;
use super::hops::{HopId, Hops};
use super::leaders::Leaders;
use super::outline::{Outline, OutlineId, OutlineStep};
use super::path::{Entered, PathSegment};
use super::pauses::Pauses;
use super::remarks::Remarks;
use super::stacks::StackTimelines;
use super::stacks::cursor::StackCursors;
use super::thread_names::ThreadNames;
use crate::base::names::NameId;
use crate::base::time::{Span, Timestamp};
use crate::event::remark::KernelWork;
use crate::event::stack::RawStackId;
use crate::model::carrier::Carrier;
use crate::model::wait_kind::WaitKind;
use crate::symbols::kernel::KernelSymbols;
use crate::timeline::questions::{Access, Family};
use crate::timeline::reader::RowReader;
use crate::timeline::{SegmentKind, Service, Thread, ThreadId, Timeline};
use foldhash::HashMap;
use held::HeldFor;
use smallvec::SmallVec;
use times::NodeTimes;
pub use times::{NodeTime, TimeOrder, add_equal_nodes};

/// The inputs of trees.
#[derive(Debug)]
pub struct EcctInputs<'a> {
    /// The states of all threads.
    pub timeline: &'a Timeline,
    /// Their stacks over time.
    pub timelines: &'a StackTimelines,
    /// Its threads' shown names.
    pub names: &'a ThreadNames,
    pub disk: &'a DiskUse,
    /// First threads of processes.
    pub leaders: &'a Leaders,
    /// By host, when it or its CPUs were paused.
    pub pauses: &'a [Pauses],
    /// What events say of its threads besides.
    pub remarks: &'a Remarks,
    /// Names of the kernel's functions, where given.
    pub kernel: Option<&'a KernelSymbols>,
}

/// A thread that the path went through.
struct PathThread {
    thread: ThreadId,
    /// The hops down to it; the first hop where hops are not recorded.
    hop: HopId,
    /// Its thread step (for the execution's own thread, the process).
    root: OutlineId,
    /// Root and the stack at which it stopped last.
    node: OutlineId,
    /// Position of the thread in the list whose node is the parent of the root.
    below: Option<usize>,
    /// The place of its thread step; none of the process.
    entry: Option<ThreadEntry>,
}

/// Where a path enters a thread.
#[derive(Clone, Copy)]
struct ThreadEntry {
    /// The node of the waiting thread.
    parent: OutlineId,
    kind: WaitKind,
}

/// Makes the trees of paths, one after the other. Paths of the same threads that follow each other in time find their
/// stacks at little cost.
pub struct TreeBuilder<'a> {
    sources: &'a EcctInputs<'a>,
    reader: &'a RowReader<'a>,
    stacks: StackCursors<'a>,
    holds: HoldingStacks,
}

/// Kernel stacks, and what the innermost function holds a thread back for.
type HoldingStacks = HashMap<RawStackId, Option<HeldFor>>;

impl<'a> TreeBuilder<'a> {
    /// A builder that reads with `reader`.
    pub fn new(sources: &'a EcctInputs<'a>, reader: &'a RowReader<'a>) -> TreeBuilder<'a> {
        TreeBuilder { sources, reader, stacks: sources.timelines.cursors(reader), holds: HoldingStacks::default() }
    }

    /// Accumulate one path into the outline.
    pub fn accumulate(&mut self, path: &[PathSegment], order: TimeOrder, outline: &mut Outline) -> Vec<NodeTime> {
        Walk::new(self, NodeTimes::new(order, path.len()), outline, None).through(path).0
    }

    /// Accumulate one path, and for each entry the hops down to the thread that spent the time. The entries are in
    /// order of time and tile the path; those of a shared disk follow each other over their wait.
    pub fn accumulate_with_hops(
        &mut self,
        path: &[PathSegment],
        outline: &mut Outline,
        hops: &mut Hops,
    ) -> (Vec<NodeTime>, Vec<HopId>) {
        Walk::new(self, NodeTimes::new(TimeOrder::Kept, path.len()), outline, Some(hops)).through(path)
    }
}

struct Walk<'w, 'a> {
    sources: &'a EcctInputs<'a>,
    reader: &'a RowReader<'a>,
    outline: &'w mut Outline,
    passed: Vec<PathThread>,
    own: NodeTimes,
    /// Places among the stacks of the threads that were asked for last.
    stacks: &'w mut StackCursors<'a>,
    hops: Option<&'w mut Hops>,
    /// The hop of the thread that spends the time that is added.
    hop: HopId,
    /// By entry of `own`, where `hops` are asked for.
    spent_by: Vec<HopId>,
    /// The thread step of the client for which a kernel thread works in the time that is added.
    client: Option<(OutlineId, ThreadId)>,
    holds: &'w mut HoldingStacks,
    /// What the kernel does for the thread in the time that is added.
    work: Option<KernelWork>,
    /// The moment whose process name the execution has: its last one, because threads are given names after they began.
    named_at: Timestamp,
}

impl<'w, 'a> Walk<'w, 'a> {
    fn new(
        builder: &'w mut TreeBuilder<'a>,
        own: NodeTimes,
        outline: &'w mut Outline,
        hops: Option<&'w mut Hops>,
    ) -> Self {
        let TreeBuilder { sources, reader, stacks, holds } = builder;
        Walk {
            sources,
            reader,
            outline,
            passed: Vec::new(),
            own,
            stacks,
            hops,
            hop: HopId::at(0),
            spent_by: Vec::new(),
            client: None,
            holds,
            work: None,
            named_at: Timestamp::ZERO,
        }
    }

    fn through(mut self, path: &[PathSegment]) -> (Vec<NodeTime>, Vec<HopId>) {
        self.named_at = path.last().map_or(Timestamp::ZERO, |segment| segment.span.last_moment());
        path.iter().for_each(|segment| self.step_by_name(segment));
        (self.own.take(), self.spent_by)
    }

    /// The hop from `above` to the thread that delayed it.
    fn hop_to(&mut self, above: Option<HopId>, thread: ThreadId, carrier: impl FnOnce(&Timeline) -> Carrier) -> HopId {
        let timeline = self.sources.timeline;
        self.hops.as_mut().map_or(HopId::at(0), |hops| hops.child(above, thread, carrier(timeline)))
    }

    /// Step through the parts of a segment in which its thread has one name: an exec may come in the middle of it.
    fn step_by_name(&mut self, segment: &PathSegment) {
        let timeline = self.sources.timeline;
        let thread = timeline.thread(segment.thread).filter(|_| segment.depth > 0);
        let mut at = segment.span.start;
        for rename in thread.map_or(&[][..], |thread| thread.renames_in(segment.span)) {
            self.step_by_work(&PathSegment { span: Span::new(at, rename.from), ..*segment });
            at = rename.from;
        }
        self.step_by_work(&PathSegment { span: Span::new(at, segment.span.end), ..*segment });
    }

    /// Step through the parts of a segment in which its CPU went on, and those in which it was paused.
    fn step_by_pause(&mut self, segment: &PathSegment) {
        let host = self.sources.timeline.thread(segment.thread).map(|thread| thread.host.index());
        let pauses = host.and_then(|host| self.sources.pauses.get(host));
        let Some(pauses) = pauses.filter(|pauses| segment.kind.has_cpu() && !pauses.cpus.is_empty()) else {
            return self.step(segment, false);
        };
        let mut at = segment.span.start;
        for pause in pauses.of_cpu(segment.cpu, segment.span) {
            self.step(&PathSegment { span: Span::new(at, pause.start), ..*segment }, false);
            self.step(&PathSegment { span: pause, ..*segment }, true);
            at = pause.end;
        }
        self.step(&PathSegment { span: Span::new(at, segment.span.end), ..*segment }, false);
    }

    fn step(&mut self, segment: &PathSegment, is_paused: bool) {
        self.enter(segment);
        let Some(top) = self.passed.last() else { return };
        let hop = top.hop;
        self.hop = hop;
        let (root, mut node, span) = (top.root, top.node, segment.span);
        if span.is_empty() {
            return;
        }
        // A kernel thread whose own execution is analysed has no client.
        let serves = self.passed.len() > 1;
        if serves && segment.kind != SegmentKind::Running {
            let service = self.reader.services(segment.thread).within(span).next();
            node = self.client_node(node, service);
        }
        match segment.kind {
            _ if is_paused => self.add_stolen(node, segment),
            SegmentKind::Running if serves => self.add_served(root, segment.thread, span),
            SegmentKind::Running => self.add_stacks(root, segment.thread, span, None),
            SegmentKind::Preempted => self.add_preempted(node, segment),
            SegmentKind::Disk => self.add_disk(node, segment),
            SegmentKind::Unknown => self.add_unknown(root, segment),
            SegmentKind::Timer => self.add_timer(node, segment),
            kind => self.add_wait(node, kind.wait_kind(), segment),
        }
        (self.hop, self.client) = (hop, None);
        self.count_passed(span.len() as u64);
        let stopped = self.stack(root, segment.thread, span.end);
        let stopped = self.in_work(stopped);
        if let Some(top) = self.passed.last_mut() {
            top.node = stopped;
        }
    }

    /// Enter the segment's thread: return to it if it is in the list, else go down from the thread above.
    fn enter(&mut self, segment: &PathSegment) {
        let depth = self.passed.len().min(segment.depth as usize);
        let keep = self.passed.get(depth).is_some_and(|p| p.thread == segment.thread);
        self.passed.truncate(if keep { depth + 1 } else { depth });
        if keep {
            self.rename(segment.span.start);
            return;
        }
        let thread = self.sources.timeline.thread(segment.thread);
        let start = segment.span.start;
        let (root, below, hop, entry) = match self.passed.len().checked_sub(1) {
            None => {
                let leader = thread.map(|t| self.sources.leaders.of(self.sources.timeline, t, self.named_at));
                let name = leader.and_then(|l| self.name_at(l, self.named_at));
                let hop = self.hop_to(None, segment.thread, |_| Carrier::Wakeup);
                (self.outline.child(None, OutlineStep::Process(name)), None, hop, None)
            }
            Some(above) => {
                let waiter = self.passed[above].thread;
                let above = self.head_of_queue(above, start);
                let (delayed, entered) = (self.passed[above].hop, segment.entered);
                let hop = self.hop_to(Some(delayed), segment.thread, |all| carriers::of(all, waiter, start, entered));
                let (kind, parent) = self.entered(above, segment);
                let step = OutlineStep::Thread(kind, thread.and_then(|t| self.name_at(t, start)));
                (self.outline.child(Some(parent), step), Some(above), hop, Some(ThreadEntry { parent, kind }))
            }
        };
        let node = self.stack(root, segment.thread, start);
        self.passed.push(PathThread { thread: segment.thread, hop, root, node, below, entry });
    }

    /// Give the last thread a step of the name that it has at `t`, which is another one after an exec.
    fn rename(&mut self, t: Timestamp) {
        let Some(&PathThread { thread: id, root, entry: Some(entry), .. }) = self.passed.last() else { return };
        let Some(thread) = self.sources.timeline.thread(id).filter(|thread| thread.names.len() > 1) else { return };
        let step = OutlineStep::Thread(entry.kind, self.name_at(thread, t));
        let renamed = self.outline.child(Some(entry.parent), step);
        if renamed != root {
            let node = self.stack(renamed, id, t);
            if let Some(last) = self.passed.last_mut() {
                (last.root, last.node) = (renamed, node);
            }
        }
    }

    /// The first of the threads above that wait in the same place, each for the next.
    fn head_of_queue(&mut self, mut at: usize, t: Timestamp) -> usize {
        let mut place = |i: usize| {
            let id = self.stacks.of(self.passed[i].thread).at(t);
            let stack = self.sources.timelines.get(id);
            Some((stack.user?, stack.call?))
        };
        let mut own = place(at);
        while at > 0 && own.is_some() {
            let above = place(at - 1);
            if above != own {
                break;
            }
            (at, own) = (at - 1, above);
        }
        at
    }

    /// The name of a thread as it is shown.
    fn name_at(&self, thread: &Thread, t: Timestamp) -> Option<NameId> {
        self.reader.asked(Family::Names, Access::At);
        self.sources.names.at(thread, t)
    }

    fn stack(&mut self, root: OutlineId, thread: ThreadId, t: Timestamp) -> OutlineId {
        let stack = self.stacks.of(thread).at(t);
        self.outline.child(Some(root), OutlineStep::Stack(stack))
    }

    fn add(&mut self, node: OutlineId, ns: u64) {
        if ns > 0 {
            self.own.push(NodeTime { node, ns });
            if let Some((root, client)) = self.client {
                self.outline.count(root, client, ns);
            }
            if self.hops.is_some() {
                self.spent_by.push(self.hop);
            }
        }
    }

    /// The node of a wait below `node`, and below that its name where it has one.
    fn wait(&mut self, node: OutlineId, kind: WaitKind, name: Option<NameId>) -> OutlineId {
        let wait = self.outline.child(Some(node), OutlineStep::Wait(kind, None));
        match name {
            None => wait,
            Some(_) => self.outline.child(Some(wait), OutlineStep::Wait(kind, name)),
        }
    }

    /// Time in which it is unknown whether the thread ran or waited; its calls and samples give the context.
    fn add_unknown(&mut self, root: OutlineId, segment: &PathSegment) {
        for (part, stack) in self.stacks.of(segment.thread).over(segment.span) {
            let node = self.outline.child(Some(root), OutlineStep::Stack(stack));
            let unknown = self.wait(node, WaitKind::UnknownState, segment.qualifier);
            self.add(unknown, part.len() as u64);
        }
    }

    /// Running time of a thread, by its functions; `service` is the work of a kernel thread for a client.
    fn add_stacks(&mut self, root: OutlineId, thread: ThreadId, span: Span, service: Option<Service>) {
        let (hop, client) = (self.hop, self.client);
        for (part, stack) in self.stacks.of(thread).over(span) {
            let node = self.outline.child(Some(root), OutlineStep::Stack(stack));
            let node = self.in_work(node);
            let node = self.client_node(node, service);
            self.add(node, part.len() as u64);
            (self.hop, self.client) = (hop, client);
        }
    }

    /// Running time of a thread, divided by the clients for which it works.
    fn add_served(&mut self, root: OutlineId, thread: ThreadId, span: Span) {
        let mut at = span.start;
        let services: SmallVec<[Service; 4]> = self.reader.services(thread).within(span).collect();
        for service in services {
            let part = service.span.clip(Span::new(at, span.end));
            self.add_stacks(root, thread, Span::new(at, part.start), None);
            self.add_stacks(root, thread, part, Some(service));
            at = part.end;
        }
        self.add_stacks(root, thread, Span::new(at, span.end), None);
    }

    /// From a kernel thread to the client for which it works, in the function that submitted the work; `node` itself
    /// where the client is one of the threads that wait for it.
    fn client_node(&mut self, node: OutlineId, service: Option<Service>) -> OutlineId {
        let is_waiter = |s: &Service| self.passed.iter().any(|passed| passed.thread == s.client);
        let Some(service) = service.filter(|service| !is_waiter(service)) else { return node };
        let Some(client) = self.sources.timeline.thread(service.client) else { return node };
        let step = OutlineStep::Thread(WaitKind::Thread, self.name_at(client, service.since));
        let root = self.outline.child(Some(node), step);
        self.hop = self.hop_to(Some(self.hop), service.client, |_| Carrier::Workqueue);
        self.client = Some((root, service.client));
        self.stack(root, service.client, service.since)
    }

    /// Count the segment's time at the thread steps of all threads above it.
    fn count_passed(&mut self, ns: u64) {
        let mut at = self.passed.len().checked_sub(1);
        while let Some(passed) = at.and_then(|i| self.passed.get(i)) {
            if passed.below.is_some() {
                self.outline.count(passed.root, passed.thread, ns);
            }
            at = passed.below;
        }
    }
}

#[cfg(test)]
mod tests;
