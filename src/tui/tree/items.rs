//! What a row of the differential tree is about: a node, a chain of nodes with one time, or small siblings together.

use crate::compare::DiffNode;

/// Part of the whole below which a node is small.
const SMALL: f64 = 0.01;

/// A row of the tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TreeItem {
    /// A node, or a chain of them.
    Node(NodeChain),
    /// Small siblings together.
    Small(SmallNodes),
}

/// Nodes that share a row, each the only child of the one before it and with the same time. The row is about the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeChain {
    /// By position in [`DiffTree::nodes`], where the others follow it.
    pub first: u32,
    pub last: u32,
    /// Rows above it that it is below of.
    pub depth: u32,
}

impl NodeChain {
    /// True where a node is one of them.
    pub(super) fn has(&self, node: u32) -> bool {
        (self.first..=self.last).contains(&node)
    }

    /// True where it is more than one node.
    pub fn is_long(&self) -> bool {
        self.first < self.last
    }
}

impl TreeItem {
    /// Rows above it that it is below of.
    pub fn depth(&self) -> u32 {
        match self {
            TreeItem::Node(chain) => chain.depth,
            TreeItem::Small(small) => small.depth,
        }
    }

    /// The node that the row is about; `None` for several.
    pub fn node(&self) -> Option<u32> {
        match self {
            TreeItem::Node(chain) => Some(chain.last),
            TreeItem::Small(_) => None,
        }
    }
}

/// Siblings that are too small for a row each: less than a hundredth of the whole time and of the whole difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmallNodes {
    /// The parent; `None` for roots.
    pub parent: Option<u32>,
    /// The first of them.
    pub first: u32,
    pub count: u32,
    /// Rows above them that they are below of.
    pub depth: u32,
    /// Sum of the slow group's mean times.
    pub slow_mean_ns: f64,
    /// Sum of the fast group's mean times.
    pub fast_mean_ns: f64,
    /// Sum of the differences.
    pub delta_ns: f64,
}

/// Below both limits a node is small.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SmallLimits {
    mean_ns: f64,
    delta_ns: f64,
}

impl SmallLimits {
    /// Of the roots of a tree.
    pub fn new<'a>(roots: impl Iterator<Item = &'a DiffNode>) -> SmallLimits {
        let (slow, fast) = roots.fold((0.0, 0.0), |(s, f), n| (s + n.slow_mean_ns, f + n.fast_mean_ns));
        SmallLimits { mean_ns: SMALL * f64::max(slow, fast), delta_ns: SMALL * (slow - fast).abs() }
    }

    /// True where a node is below both.
    pub fn is_small(&self, node: &DiffNode) -> bool {
        node.slow_mean_ns.max(node.fast_mean_ns) < self.mean_ns && node.delta_ns.abs() < self.delta_ns
    }
}
