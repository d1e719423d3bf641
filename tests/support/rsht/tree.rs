//! The sealed tree: nodes with their bounds, numbered level by level, and its packing from nodes.
//!
//! In: nodes in any order from a builder ([`Packing`]), children before parents. Out: a [`Tree`] in which the children
//! of a node follow each other. So a parent needs no copy of its children's bounds: a search reads one short range of
//! the table of bounds.
//!
//! Any node may hold intervals. The bulk build puts them into leaves only; other packings (the classic SHT and the
//! eSHT of the benchmark) use inner nodes too, and the same searches work for all of them.
//!
//! Besides the nodes the tree has the life of each attribute, from its first interval to the end of its last: a query
//! for an instant outside needs no search.

use super::columns::{Bounds, Columns};
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::timeline::attributes::AttributeId;

/// The sizes of a tree's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Largest number of intervals per node (*n*).
    pub node: usize,
    /// Largest number of children per node (*c*), at least 2.
    pub fanout: usize,
    /// Size of an R-tree.
    pub depth: Depth,
}

/// Number of leaves of an R-tree: about one interval of each attribute, so that any instant is in about two R-trees,
/// and no more, so that R-trees stay small (ALGORITHMS.md 8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// As many leaves as one interval of every attribute fills.
    Variable,
    /// `c^r` leaves for a given *r*, as the thesis packs them; for comparison.
    Fixed(u32),
}

impl Default for Shape {
    /// Measured (benches/history.rs): with smaller nodes a full query visits more of them, with larger ones the last
    /// step of a single query takes longer.
    fn default() -> Self {
        Shape { node: 2048, fanout: 64, depth: Depth::Variable }
    }
}

impl Shape {
    /// Number of intervals of one R-tree in a history of this many attributes.
    pub(super) fn slab(&self, attributes: usize) -> usize {
        let leaves = match self.depth {
            Depth::Variable => attributes.div_ceil(self.node.max(1)).max(1),
            Depth::Fixed(r) => self.fanout.saturating_pow(r),
        };
        leaves.saturating_mul(self.node.max(1))
    }
}

/// A node of a [`Tree`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// First child; its siblings follow.
    pub(super) child: u32,
    /// Number of children.
    pub(super) children: u32,
    /// Number of nodes below it on the longest path to a leaf.
    pub(super) level: u32,
    /// Its own intervals.
    pub(super) columns: Columns,
}

impl Node {
    pub fn children(&self) -> std::ops::Range<u32> {
        self.child..self.child + self.children
    }

    /// Its own intervals.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }
}

/// The sealed tree. `bounds` and `nodes` run parallel; the root is the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    pub(super) shape: Shape,
    pub(super) bounds: Vec<Bounds>,
    pub(super) nodes: Vec<Node>,
    /// The roots of the R-trees, ascending.
    pub(super) slabs: Vec<u32>,
    /// By attribute: first start to last end; empty where there is no interval.
    pub(super) lives: Vec<Span>,
    pub(super) len: u64,
}

/// The life of an attribute without intervals.
const NEVER: Span = Span { start: Timestamp::MAX, end: Timestamp::MIN };

impl Tree {
    /// Number of intervals.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Number of levels, including root and leaves.
    pub fn depth(&self) -> u32 {
        self.nodes.first().map_or(0, |root| root.level + 1)
    }

    /// Bytes of memory in total.
    pub fn size(&self) -> usize {
        let columns: usize = self.nodes.iter().map(|node| node.columns.size()).sum();
        let rest = size_of::<Node>() - size_of::<Columns>() + size_of::<Bounds>();
        columns
            + self.nodes.len() * rest
            + self.slabs.len() * size_of::<u32>()
            + self.lives.len() * size_of::<Span>()
            + size_of::<Tree>()
    }

    /// First start to last end of all intervals; empty when there is none.
    pub fn span(&self) -> Span {
        self.bounds.first().filter(|_| self.len > 0).map_or(Span::default(), |b| Span::new(b.start, b.end))
    }

    /// First start to last end of one attribute's intervals; `None` when it has none.
    pub fn life(&self, attribute: AttributeId) -> Option<Span> {
        self.lives.get(attribute.index()).copied().filter(|life| !life.is_empty())
    }

    /// Number of attributes: ids below it may have intervals.
    pub fn attributes(&self) -> usize {
        self.lives.len()
    }
}

#[derive(Clone)]
struct Draft {
    level: u32,
    bounds: Bounds,
    columns: Columns,
    children: Vec<u32>,
}

/// The root of an R-tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct BandRoot {
    /// The band of its intervals.
    pub band: usize,
    pub node: u32,
}

/// Nodes from which a tree is made.
#[derive(Clone, Default)]
pub struct Packing {
    drafts: Vec<Draft>,
    slabs: Vec<u32>,
}

impl Packing {
    /// A node with intervals of its own between `bounds` ([`Bounds::NONE`] for none), above existing nodes.
    pub fn node(&mut self, (bounds, columns): (Bounds, Columns), children: Vec<u32>) -> u32 {
        let below = || children.iter().filter_map(|child| self.drafts.get(*child as usize));
        let bounds = below().fold(bounds, |all, child| all.join(child.bounds));
        let level = below().map(|child| child.level + 1).max().unwrap_or(0);
        self.drafts.push(Draft { level, bounds, columns, children });
        (self.drafts.len() - 1) as u32
    }

    /// An R-tree over `leaves` in their order, `fanout` under each node. Returns its root; `None` without leaves.
    pub(super) fn slab(&mut self, leaves: Vec<(Bounds, Columns)>, fanout: usize) -> Option<u32> {
        let leaves = leaves.into_iter().map(|leaf| self.node(leaf, Vec::new())).collect();
        let root = self.above(leaves, fanout)?;
        self.slabs.push(root);
        Some(root)
    }

    /// The tree over all R-trees.
    pub(super) fn join_bands(self, mut roots: Vec<BandRoot>, shape: Shape) -> Tree {
        roots.sort_by_key(|root| {
            let bounds = self.bounds(root.node);
            (root.band, bounds.start, bounds.end, bounds.low)
        });
        let mut packing = self;
        let root = packing.above(roots.into_iter().map(|root| root.node).collect(), shape.fanout);
        packing.seal(root, shape)
    }

    /// Add nodes above `nodes`, `fanout` under each, until there is one, which is returned; `None` without nodes. Low
    /// neighbours are joined until they are as high as the others, so that a few small R-trees do not make the tree
    /// higher.
    pub fn above(&mut self, nodes: Vec<u32>, fanout: usize) -> Option<u32> {
        let level = |id: u32| self.drafts.get(id as usize).map_or(0, |draft| draft.level);
        let mut nodes: Vec<(u32, u32)> = nodes.into_iter().map(|id| (level(id), id)).collect();
        while nodes.len() > 1 {
            let low = nodes.iter().map(|(level, _)| *level).min()?;
            let mut joined = Vec::with_capacity(nodes.len());
            for neighbours in nodes.chunk_by(|a, b| a.0 == low && b.0 == low) {
                for group in neighbours.chunks(fanout.max(2)) {
                    joined.push(match group {
                        [(level, id)] => ((*level).max(low + 1), *id),
                        _ => (
                            low + 1,
                            self.node((Bounds::NONE, Columns::default()), group.iter().map(|g| g.1).collect()),
                        ),
                    });
                }
            }
            nodes = joined;
        }
        nodes.first().map(|(_, id)| *id)
    }

    /// Bounds of a node.
    pub fn bounds(&self, node: u32) -> Bounds {
        self.drafts.get(node as usize).map_or(Bounds::NONE, |draft| draft.bounds)
    }

    /// The tree below `root`; nodes that are not below it are left out.
    pub fn seal(mut self, root: Option<u32>, shape: Shape) -> Tree {
        let mut order: Vec<u32> = root.into_iter().collect();
        let mut bounds = Vec::with_capacity(self.drafts.len());
        let mut nodes = Vec::with_capacity(self.drafts.len());
        let mut number = vec![None; self.drafts.len()];
        let mut at = 0;
        while let Some(draft) = order.get(at).and_then(|id| self.drafts.get_mut(*id as usize)) {
            number[order[at] as usize] = Some(at as u32);
            bounds.push(draft.bounds);
            nodes.push(Node {
                child: order.len() as u32,
                children: draft.children.len() as u32,
                level: draft.level,
                columns: std::mem::take(&mut draft.columns),
            });
            order.append(&mut draft.children);
            at += 1;
        }
        let mut slabs: Vec<u32> = self.slabs.iter().filter_map(|slab| number.get(*slab as usize).copied()?).collect();
        slabs.sort_unstable();
        let len = nodes.iter().map(|node| node.columns.len() as u64).sum();
        let mut tree = Tree { shape, bounds, nodes, slabs, lives: Vec::new(), len };
        tree.lives = tree.find_lives();
        tree
    }
}

impl Tree {
    /// The life of every attribute.
    fn find_lives(&self) -> Vec<Span> {
        let attributes = self.bounds.first().filter(|_| !self.is_empty()).map_or(0, |root| root.high as usize + 1);
        let mut lives = vec![NEVER; attributes];
        for (bounds, node) in self.bounds.iter().zip(&self.nodes).filter(|(_, node)| !node.columns.is_empty()) {
            node.columns.lives(bounds.low, bounds.high, |attribute, life| {
                if let Some(all) = lives.get_mut(attribute as usize) {
                    *all = Span::new(all.start.min(life.start), all.end.max(life.end));
                }
            });
        }
        lives
    }
}
