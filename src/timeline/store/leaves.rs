//! The leaves of one store: all in memory, or in a [`LeafPool`].
//!
//! In: leaves in order. Out: each by its position. As long as the leaves of all families fit into their part of the
//! memory they are a list, and reading one costs nothing; else they move to the pool, and a reader holds the leaf that
//! it reads by a [`LeafPin`].

use super::directory::{LineDirectory, LinePart};
use super::leaf_bytes::Leaf;
use super::pool::{LeafId, LeafPool, LeafSource};
use crate::timeline::questions::Family;
use get_size2::GetSize;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

/// The leaves of one store.
#[derive(Clone, Debug, GetSize)]
pub enum Leaves {
    /// In memory.
    Here(Vec<Leaf>),
    /// In memory or in a file.
    Pooled(PooledLeaves),
}

/// Leaves in a pool.
#[derive(Clone, Debug, GetSize)]
pub struct PooledLeaves {
    #[get_size(ignore)]
    pool: Arc<LeafPool>,
    ids: Vec<LeafId>,
}

/// A leaf of a store that is read, and the part that was looked up last, kept by the reader.
#[derive(Debug, Default)]
pub struct LeafPin {
    leaf: u32,
    held: Option<Arc<Leaf>>,
    /// With its number.
    part: Option<(usize, LinePart)>,
    /// Parts that were looked up, each in a leaf of its own.
    looked: u32,
}

impl Clone for LeafPin {
    fn clone(&self) -> Self {
        // What this one looked up is counted once.
        LeafPin { leaf: self.leaf, held: self.held.clone(), part: self.part, looked: 0 }
    }
}

/// A leaf, wherever it is.
#[derive(Clone, Debug)]
pub enum LeafHandle<'s> {
    /// In memory.
    Here(&'s Leaf),
    /// Of a pool.
    Pooled(Arc<Leaf>),
}

impl Deref for LeafHandle<'_> {
    type Target = Leaf;

    fn deref(&self) -> &Leaf {
        match self {
            LeafHandle::Here(leaf) => leaf,
            LeafHandle::Pooled(leaf) => leaf,
        }
    }
}

pub(super) static NO_LEAVES: Leaves = Leaves::Here(Vec::new());

impl Default for Leaves {
    fn default() -> Self {
        Leaves::Here(Vec::new())
    }
}

impl Leaves {
    /// So many leaves, which a pool reads from a source when they are asked for.
    pub fn kept(pool: &Arc<LeafPool>, source: &Arc<dyn LeafSource>, count: usize, family: Family) -> Leaves {
        let ids = (0..count as u32).map(|leaf| pool.add_kept(source, leaf, family)).collect();
        Leaves::Pooled(PooledLeaves { pool: Arc::clone(pool), ids })
    }

    /// True where they are in a pool.
    pub fn is_pooled(&self) -> bool {
        matches!(self, Leaves::Pooled(_))
    }

    /// Number of leaves.
    pub fn len(&self) -> usize {
        match self {
            Leaves::Here(leaves) => leaves.len(),
            Leaves::Pooled(pooled) => pooled.ids.len(),
        }
    }

    /// A leaf, which `pin` keeps; `None` beyond the last, and where it cannot be read.
    #[inline(always)]
    pub fn get<'a>(&'a self, leaf: u32, pin: &'a mut LeafPin) -> Option<&'a Leaf> {
        match self {
            Leaves::Here(leaves) => leaves.get(leaf as usize),
            Leaves::Pooled(pooled) => pin.hold(pooled, leaf),
        }
    }

    /// A leaf by itself.
    pub fn handle(&self, leaf: usize) -> Option<LeafHandle<'_>> {
        match self {
            Leaves::Here(leaves) => leaves.get(leaf).map(LeafHandle::Here),
            Leaves::Pooled(pooled) => pooled.get(leaf).map(LeafHandle::Pooled),
        }
    }

    /// All leaves in order; an error is kept by the pool, and such a leaf is left out.
    pub fn iter(&self) -> impl Iterator<Item = LeafHandle<'_>> {
        (0..self.len()).filter_map(|leaf| self.handle(leaf))
    }

    /// Add a leaf.
    pub fn push(&mut self, leaf: Leaf, family: Family) {
        match self {
            Leaves::Here(leaves) => leaves.push(leaf),
            Leaves::Pooled(pooled) => pooled.ids.push(pooled.pool.add(leaf, family)),
        }
    }

    /// Put another leaf in the place of one. In a pool the old one stays, for other copies of this store, and gives way
    /// first.
    pub fn replace(&mut self, at: usize, leaf: Leaf, family: Family) {
        match self {
            Leaves::Here(leaves) => {
                if let Some(old) = leaves.get_mut(at) {
                    *old = leaf;
                }
            }
            Leaves::Pooled(pooled) => {
                if let Some(id) = pooled.ids.get_mut(at) {
                    *id = pooled.pool.add(leaf, family);
                }
            }
        }
    }

    /// Move all leaves to a pool, where they are not in one.
    pub fn move_to(&mut self, pool: &Arc<LeafPool>, family: Family) {
        if let Leaves::Here(leaves) = self {
            let ids = std::mem::take(leaves).into_iter().map(|leaf| pool.add(leaf, family)).collect();
            *self = Leaves::Pooled(PooledLeaves { pool: Arc::clone(pool), ids });
        }
    }

    /// Release what the list of leaves has reserved.
    pub fn shrink_to_fit(&mut self) {
        match self {
            Leaves::Here(leaves) => leaves.shrink_to_fit(),
            Leaves::Pooled(pooled) => pooled.ids.shrink_to_fit(),
        }
    }

    /// Bytes of the blocks that are its own: those of a pool are the pool's.
    pub fn own_bytes(&self) -> usize {
        match self {
            Leaves::Here(leaves) => leaves.iter().map(GetSize::get_heap_size).sum(),
            Leaves::Pooled(_) => 0,
        }
    }
}

impl PooledLeaves {
    fn get(&self, leaf: usize) -> Option<Arc<Leaf>> {
        self.pool.get(*self.ids.get(leaf)?)
    }
}

impl LeafPin {
    #[inline]
    fn hold(&mut self, of: &PooledLeaves, leaf: u32) -> Option<&Leaf> {
        if self.leaf != leaf || self.held.is_none() {
            (self.leaf, self.held) = (leaf, of.get(leaf as usize));
        }
        self.held.as_deref()
    }

    /// A part of the directory of the store by its number.
    #[inline(always)]
    pub(super) fn part(&mut self, of: &LineDirectory, number: usize) -> Option<LinePart> {
        if let Some((_, part)) = self.part.filter(|(known, _)| *known == number) {
            return Some(part);
        }
        let part = of.part(number)?;
        self.looked += 1;
        self.part = Some((number, part));
        Some(part)
    }

    /// Number of rows of a part of the directory, where it is the part that was looked up last.
    #[inline(always)]
    pub(super) fn known_rows(&self, number: usize) -> Option<u16> {
        self.part.filter(|(known, _)| *known == number).map(|(_, part)| part.rows)
    }

    /// How many leaves it looked at since it was asked last.
    #[inline(always)]
    pub fn take_looked(&mut self) -> u32 {
        std::mem::take(&mut self.looked)
    }
}
