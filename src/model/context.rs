//! The union of all calling context trees: each context once, parents before children.
//!
//! A context is a call path: frames from the root. Frames are functions, system calls, waits and threads
//! (ALGORITHMS.md 5.3). Thread frames carry the thread's *name*, so that executions share them; which threads
//! they were is in [`Contexts::who`]. Interning a child is one hash look-up.

use super::ids::ThreadInfoId;
use super::wait_kind::WaitKind;
use crate::base::names::NameId;
use foldhash::HashMap;
use std::collections::BTreeMap;

crate::base::names::handle! {
    /// A node of the tree.
    ContextId,
}

/// Begin of the names of function frames that are no functions: time of a rank between two calls, of which no region
/// but the outermost is known.
pub const COMPUTATION: &str = "computation ";

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameKind {
    /// The process of the execution's own thread: the first frame of each tree.
    Process,
    /// A user-space function, or `file+0xoffset` where it has no name.
    Function,
    /// A function that the compiler put into the one above it.
    Inlined,
    /// Some functions of a file none of whose names is known, drawn `[libc.so.6]`.
    File,
    KernelFunction,
    /// A system call, drawn `[futex]`.
    Call,
    /// A wait, drawn `[block device]`; the threads that caused it may be below it.
    Wait(WaitKind),
    /// Another thread, drawn `thread journal` (`rank 3` in MPI runs): the path went over to it, or it held the CPU or
    /// the disk. `WaitKind` is how the thread above waited for it (`Thread` or `Network`); below a `Wait` it repeats
    /// that wait's kind.
    Thread(WaitKind),
    /// No stack is known here, drawn `[no stack]`.
    NoStack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    pub kind: FrameKind,
    /// Its name, without brackets or prefix.
    pub name: NameId,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: Option<ContextId>,
    frame: Frame,
    depth: u32,
    spent: WaitKind,
    waits: bool,
}

/// The tree. Roots are `Process` frames; there may be several.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    nodes: Vec<Node>,
    ids: HashMap<(Option<ContextId>, Frame), ContextId>,
    /// For thread frames: nanoseconds over all executions, by the thread that it was.
    pub who: BTreeMap<(ContextId, ThreadInfoId), u64>,
}

impl Contexts {
    /// The child of `parent` with this frame, made on first sight.
    pub fn child(&mut self, parent: Option<ContextId>, frame: Frame) -> ContextId {
        if let Some(id) = self.ids.get(&(parent, frame)) {
            return *id;
        }
        let above = parent.map(|p| self.nodes[p.index()]);
        let (spent, waits) = match (above, frame.kind) {
            (Some(a), _) if a.waits => (a.spent, true),
            (_, FrameKind::Wait(s) | FrameKind::Thread(s)) => (s, true),
            _ => (WaitKind::Cpu, false),
        };
        let id = ContextId::at(self.nodes.len());
        self.nodes.push(Node { parent, frame, depth: above.map_or(0, |a| a.depth + 1), spent, waits });
        self.ids.insert((parent, frame), id);
        id
    }

    /// Number of contexts.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All of them in order of their ids: parent and last frame.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (Option<ContextId>, Frame)> + '_ {
        self.nodes.iter().map(|n| (n.parent, n.frame))
    }

    /// Its parent; parents have smaller ids.
    pub fn parent(&self, id: ContextId) -> Option<ContextId> {
        self.nodes[id.index()].parent
    }

    pub fn frame(&self, id: ContextId) -> Frame {
        self.nodes[id.index()].frame
    }

    /// Frames above it.
    pub fn depth(&self, id: ContextId) -> u32 {
        self.nodes[id.index()].depth
    }

    /// How the execution's own thread spent the time here: its outermost wait.
    pub fn spent(&self, id: ContextId) -> WaitKind {
        self.nodes[id.index()].spent
    }

    /// The threads behind a thread frame, with their nanoseconds over all executions; none for other frames.
    pub fn threads_of(&self, id: ContextId) -> impl Iterator<Item = (ThreadInfoId, u64)> + '_ {
        let of_frame = (id, ThreadInfoId::at(0))..=(id, ThreadInfoId::from_raw(u32::MAX));
        self.who.range(of_frame).map(|((_, thread), ns)| (*thread, *ns))
    }

    /// By context: whether it is `id` or below it. Cost: one look at each context after `id`.
    pub fn within(&self, id: ContextId) -> Vec<bool> {
        let mut inside = vec![false; self.nodes.len()];
        for at in id.index()..inside.len() {
            let below = self.nodes[at].parent.is_some_and(|parent| inside[parent.index()]);
            inside[at] = at == id.index() || below;
        }
        inside
    }

    /// Contexts from the root to `id`, both included.
    pub fn path(&self, id: ContextId) -> Vec<ContextId> {
        let up = || std::iter::successors(Some(id), |at| self.parent(*at));
        let mut path = Vec::with_capacity(up().count());
        path.extend(up());
        path.reverse();
        path
    }
}
