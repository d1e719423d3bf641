//! The invariants of the tree, one by one (ALGORITHMS.md 8.3).
//!
//! In: a sealed tree. Out: the first invariant that does not hold, with its node. Cost: O(N log N), one copy of all
//! intervals. The checks read the stored data alone and never use the functions by which searches skip nodes.

use super::build::BANDS;
use super::columns::Bounds;
use super::interval::Interval;
use super::tree::{Depth, Tree};
use whyslow::parts::base::time::Timestamp;

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Every node but the root is the child of exactly one earlier node.
    #[error("node {node} of the state history is not the child of exactly one earlier node")]
    Parent {
        /// Position of the node.
        node: usize,
    },
    /// Levels fall from parent to child.
    #[error("node {node} of the state history is not on a higher level than its children")]
    Level {
        /// Position of the node.
        node: usize,
    },
    /// Bounds are the smallest that hold the node's intervals and children.
    #[error("the bounds of node {node} of the state history are not tight")]
    Bounds {
        /// Position of the node.
        node: usize,
    },
    /// At most `node` intervals and `fanout` children.
    #[error("node {node} of the state history is too full")]
    TooFull {
        /// Position of the node.
        node: usize,
    },
    /// Within a node intervals are sorted by attribute and start, and none is empty.
    #[error("the intervals of node {node} of the state history are not sorted or one is empty")]
    Unsorted {
        /// Position of the node.
        node: usize,
    },
    /// The leaves of an R-tree are ordered by attribute; neighbours share at most one attribute.
    #[error("the leaves of the R-tree below node {node} of the state history are not ordered by attribute")]
    Unpacked {
        /// Position of the R-tree's root.
        node: usize,
    },
    /// All leaves of an R-tree but the last are full.
    #[error("a leaf of the R-tree below node {node} of the state history is not full")]
    NotFull {
        /// Position of the R-tree's root.
        node: usize,
    },
    /// The tree is at most two levels higher than its leaves and bands need.
    #[error("the state history is {0} levels deep, more than its leaves need")]
    TooDeep(u32),
    /// The intervals of one attribute do not overlap.
    #[error("attribute {attribute} of the state history has two values at {at} ns")]
    Overlap {
        attribute: u32,
        /// Start of the second interval.
        at: Timestamp,
    },
    /// The life of an attribute runs from its first start to its last end.
    #[error("the life of attribute {0} of the state history is wrong")]
    Life(u32),
    /// The number of intervals of the tree is the sum over its nodes.
    #[error("the number of intervals of the state history is not the sum over its nodes")]
    Count,
}

impl Tree {
    /// The first invariant that does not hold.
    pub fn check(&self) -> Result<(), Broken> {
        let mut all: Vec<Interval> = Vec::new();
        let mut parents = vec![0u32; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            for child in node.children() {
                let below = self.nodes.get(child as usize).filter(|_| child as usize > at);
                let below = below.ok_or(Broken::Parent { node: child as usize })?;
                if below.level >= node.level {
                    return Err(Broken::Level { node: at });
                }
                parents[child as usize] += 1;
            }
            self.check_node(at)?;
            all.extend(node.columns.iter());
        }
        if let Some(node) = (1..parents.len()).find(|at| parents[*at] != 1) {
            return Err(Broken::Parent { node });
        }
        for slab in &self.slabs {
            self.check_slab(*slab)?;
        }
        let leaves = self.nodes.iter().filter(|node| node.children == 0).count();
        // Each band may end with an R-tree of few leaves; the division into R-trees and the root may add one level
        // each.
        let (mut needed, mut reach) = (1, 1usize);
        while reach < leaves.saturating_mul(BANDS + 1) {
            reach = reach.saturating_mul(self.shape.fanout.max(2));
            needed += 1;
        }
        if !self.slabs.is_empty() && self.depth() > needed + 2 {
            return Err(Broken::TooDeep(self.depth()));
        }
        if all.len() as u64 != self.len {
            return Err(Broken::Count);
        }
        self.check_attributes(all)
    }

    fn check_node(&self, at: usize) -> Result<(), Broken> {
        let node = &self.nodes[at];
        if node.columns.len() > self.shape.node || node.children as usize > self.shape.fanout {
            return Err(Broken::TooFull { node: at });
        }
        let intervals: Vec<Interval> = node.columns.iter().collect();
        if intervals.iter().any(|i| i.span.is_empty())
            || !intervals.is_sorted_by_key(|i| (i.attribute, i.span.start, i.span.end, i.value))
        {
            return Err(Broken::Unsorted { node: at });
        }
        let own = intervals.iter().map(|i| Bounds {
            start: i.span.start,
            end: i.span.end,
            low: i.attribute.raw(),
            high: i.attribute.raw(),
        });
        let below = node.children().map(|child| self.bounds[child as usize]);
        if self.bounds[at] != own.chain(below).fold(Bounds::NONE, Bounds::join) {
            return Err(Broken::Bounds { node: at });
        }
        Ok(())
    }

    fn check_slab(&self, root: u32) -> Result<(), Broken> {
        // Children are in order, so replacing each node by its children keeps the leaves in order.
        let mut leaves = vec![root];
        while let Some(inner) = leaves.iter().position(|at| self.nodes[*at as usize].children > 0) {
            let children = self.nodes[leaves[inner] as usize].children();
            leaves.splice(inner..=inner, children);
        }
        let node = root as usize;
        let bounds = |leaf: &u32| self.bounds[*leaf as usize];
        if !leaves.is_sorted_by(|a, b| bounds(a).high <= bounds(b).low) {
            return Err(Broken::Unpacked { node });
        }
        let full = |leaf: &u32| self.nodes[*leaf as usize].columns.len() == self.shape.node;
        let before_last = leaves.len().saturating_sub(1);
        if !leaves.iter().take(before_last).all(full) {
            return Err(Broken::NotFull { node });
        }
        let most = match self.shape.depth {
            Depth::Variable => leaves.len(),
            Depth::Fixed(r) => self.shape.fanout.saturating_pow(r),
        };
        if leaves.len() > most { Err(Broken::TooFull { node }) } else { Ok(()) }
    }

    fn check_attributes(&self, mut all: Vec<Interval>) -> Result<(), Broken> {
        all.sort_unstable();
        let mut lives = vec![None; self.lives.len()];
        for group in all.chunk_by(|a, b| a.attribute == b.attribute) {
            let attribute = group[0].attribute;
            if let Some(two) = group.windows(2).find(|two| two[0].span.end > two[1].span.start) {
                return Err(Broken::Overlap { attribute: attribute.raw(), at: two[1].span.start });
            }
            let life = group.last().map(|last| (group[0].span.start, last.span.end));
            *lives.get_mut(attribute.index()).ok_or(Broken::Life(attribute.raw()))? = life;
        }
        for (attribute, (life, found)) in self.lives.iter().zip(lives).enumerate() {
            if Some((life.start, life.end)).filter(|_| !life.is_empty()) != found {
                return Err(Broken::Life(attribute as u32));
            }
        }
        Ok(())
    }
}
