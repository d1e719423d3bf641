//! The calling contexts of all executions before their functions have names: a tree whose steps are whole stacks.
//!
//! An execution has hundreds of segments and each stack some ten functions, but the distinct chains of *stacks* are
//! few. So executions are folded into this coarse tree first; then only the stacks that stand in it are resolved, and
//! each of its nodes is named once (`explain/contexts.rs`). Interning a child is one look-up; parents precede children.

use super::stacks::StackId;
use crate::base::names::NameId;
use crate::model::wait_kind::WaitKind;
use crate::state::timeline::ThreadId;
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
    /// A wait, with what the recording says of it (a name of the recording).
    Wait(WaitKind, Option<NameId>),
    /// Another thread, by shown name.
    Thread(WaitKind, Option<NameId>),
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: Option<OutlineId>,
    step: OutlineStep,
    spent: WaitKind,
    waits: bool,
}

/// The tree.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    nodes: Vec<Node>,
    ids: HashMap<(Option<OutlineId>, OutlineStep), OutlineId>,
    /// For thread steps: nanoseconds by the thread that it was.
    who: HashMap<(OutlineId, ThreadId), u64>,
}

impl Outline {
    /// The child of `parent` by `step`, made on first sight.
    pub fn child(&mut self, parent: Option<OutlineId>, step: OutlineStep) -> OutlineId {
        *self.ids.entry((parent, step)).or_insert_with(|| {
            let above = parent.map(|p| self.nodes[p.index()]);
            let (spent, waits) = match (above, step) {
                (Some(above), _) if above.waits => (above.spent, true),
                (_, OutlineStep::Wait(spent, _) | OutlineStep::Thread(spent, _)) => (spent, true),
                _ => (WaitKind::Cpu, false),
            };
            self.nodes.push(Node { parent, step, spent, waits });
            OutlineId::at(self.nodes.len() - 1)
        })
    }

    /// `ns` more of the time below the thread step `node` were this thread's.
    pub fn count(&mut self, node: OutlineId, thread: ThreadId, ns: u64) {
        *self.who.entry((node, thread)).or_insert(0) += ns;
    }

    /// How the execution's own thread spent the time at a node: its outermost wait.
    pub fn spent(&self, id: OutlineId) -> WaitKind {
        self.nodes[id.index()].spent
    }

    /// The last step of a node.
    pub fn step(&self, id: OutlineId) -> Option<OutlineStep> {
        self.nodes.get(id.index()).map(|node| node.step)
    }

    /// Nodes in order: parent and step.
    pub fn nodes(&self) -> impl Iterator<Item = (Option<OutlineId>, OutlineStep)> + '_ {
        self.nodes.iter().map(|n| (n.parent, n.step))
    }

    /// Who stood at the thread steps, and how long; in no order.
    pub fn who(&self) -> impl Iterator<Item = (OutlineId, ThreadId, u64)> + '_ {
        self.who.iter().map(|((node, thread), ns)| (*node, *thread, *ns))
    }

    /// Take in another outline; gives the new id of each of its nodes. Merging in order of the executions gives the
    /// same tree for any number of workers.
    pub fn merge(&mut self, other: &Outline) -> Vec<OutlineId> {
        let mut ids: Vec<OutlineId> = Vec::with_capacity(other.nodes.len());
        for (parent, step) in other.nodes() {
            let parent = parent.map(|p| ids[p.index()]);
            ids.push(self.child(parent, step));
        }
        for (node, thread, ns) in other.who() {
            self.count(ids[node.index()], thread, ns);
        }
        ids
    }
}
