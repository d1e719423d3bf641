//! The calling contexts of all executions before their functions have names: a tree whose steps are whole stacks.
//!
//! An execution has hundreds of segments and each stack some ten functions, but the distinct chains of *stacks* are
//! few. So executions are accumulated into this coarse tree first; then only its stacks are resolved, and each of its
//! nodes is given its frames once (`explain/contexts.rs`). Interning a child is one look-up; parents precede children.

use super::stacks::StackId;
use crate::base::names::NameId;
use crate::base::time::Ns;
use crate::event::host::HostId;
use crate::event::remark::KernelWork;
use crate::model::environment::ServerPort;
use crate::model::wait_kind::WaitKind;
use crate::timeline::ThreadId;
use foldhash::HashMap;

crate::base::names::handle! {
/// A node of an [`Outline`].
OutlineId, }

/// One step down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutlineStep {
    /// The process of the execution's own thread, by shown name.
    Process(Option<NameId>),
    /// The functions and the system call of a stack.
    Stack(StackId),
    /// A wait, with its device, interrupt or reason where recorded (a name of the timeline).
    Wait(WaitKind, Option<NameId>),
    /// A wait with a name that no recording gives.
    Named(WaitKind, &'static str),
    /// Work of the kernel on behalf of the thread.
    Work(KernelWork),
    /// A stop by a signal that another thread sent, by shown name.
    SentBy(Option<NameId>),
    /// So many of all CPUs were idle during a wait for one.
    IdleCpus(u16, u16),
    /// A wait for a CPU that a quota of this period causes, in ns.
    Quota(Ns),
    /// A wait for a CPU that the quota of a control group causes, by the group's number on its host.
    Throttled(HostId, u32),
    /// A sleep between calls of this name (of the timeline) that fail.
    Polls(NameId),
    /// A wait for an answer that did not come in time.
    NoAnswer(NoAnswer),
    /// Another thread, by shown name.
    Thread(WaitKind, Option<NameId>),
}

/// An answer that did not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoAnswer {
    /// The time limit, in ns, to two digits.
    pub within: Ns,
    /// The port of the server, where it is known.
    pub port: Option<ServerPort>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: Option<OutlineId>,
    step: OutlineStep,
    /// The kind of the outermost wait above or at the node.
    kind: WaitKind,
    waits: bool,
}

/// The tree.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    nodes: Vec<Node>,
    ids: HashMap<(Option<OutlineId>, OutlineStep), OutlineId>,
    /// For thread steps: nanoseconds by thread, as threads share names.
    by_thread: HashMap<(OutlineId, ThreadId), u64>,
}

impl Outline {
    /// The child of `parent` by `step`, added where it is new.
    pub fn child(&mut self, parent: Option<OutlineId>, step: OutlineStep) -> OutlineId {
        *self.ids.entry((parent, step)).or_insert_with(|| {
            let above = parent.map(|p| self.nodes[p.index()]);
            let (kind, waits) = match (above, step) {
                (Some(above), _) if above.waits => (above.kind, true),
                (_, OutlineStep::Wait(kind, _) | OutlineStep::Named(kind, _) | OutlineStep::Thread(kind, _)) => {
                    (kind, true)
                }
                _ => (WaitKind::Cpu, false),
            };
            self.nodes.push(Node { parent, step, kind, waits });
            OutlineId::at(self.nodes.len() - 1)
        })
    }

    /// Add `ns` to this thread's part of the time below the thread step `node`.
    pub fn count(&mut self, node: OutlineId, thread: ThreadId, ns: u64) {
        *self.by_thread.entry((node, thread)).or_insert(0) += ns;
    }

    /// The kind of time that the execution's own thread spent at a node: that of its outermost wait.
    pub fn wait_kind(&self, id: OutlineId) -> WaitKind {
        self.nodes[id.index()].kind
    }

    /// The last step of a node.
    pub fn step(&self, id: OutlineId) -> Option<OutlineStep> {
        self.nodes.get(id.index()).map(|node| node.step)
    }

    /// Nodes in order: parent and step.
    pub fn nodes(&self) -> impl Iterator<Item = (Option<OutlineId>, OutlineStep)> + '_ {
        self.nodes.iter().map(|n| (n.parent, n.step))
    }

    /// The threads at the thread steps, each with its nanoseconds; unordered.
    pub fn threads(&self) -> impl Iterator<Item = (OutlineId, ThreadId, u64)> + '_ {
        self.by_thread.iter().map(|((node, thread), ns)| (*node, *thread, *ns))
    }

    /// Add another outline; gives the new id of each of its nodes. Merging in order of the executions gives the
    /// same tree for any number of workers.
    pub fn merge(&mut self, other: &Outline) -> Vec<OutlineId> {
        let mut ids: Vec<OutlineId> = Vec::with_capacity(other.nodes.len());
        for (parent, step) in other.nodes() {
            let parent = parent.map(|p| ids[p.index()]);
            ids.push(self.child(parent, step));
        }
        for (node, thread, ns) in other.threads() {
            self.count(ids[node.index()], thread, ns);
        }
        ids
    }
}
