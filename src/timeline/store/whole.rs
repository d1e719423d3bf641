//! A store made of its leaves and its resident lists, and checked.
//!
//! In: leaves and the directory of lines; from a file, where they may be anything. Out: the store, if each row of a
//! leaf belongs to exactly one part and the parts of a line follow each other; else the first contradiction. Cost:
//! linear in the parts.

use super::directory::{LineDirectory, LinePart, PartsBy};
use super::leaf::StoredRow;
use super::leaf_bytes::{Leaf, LeafError};
use super::leaves::{LeafHandle, Leaves};
use super::nodes::{LeafNode, Nodes};
use super::part_value::PartValues;
use super::parts::LineStore;
use std::marker::PhantomData;
use std::sync::Arc;

/// What is wrong with the lists of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A leaf does not have the bytes that it should have.
    #[error("leaf {leaf}: {error}")]
    Leaf {
        /// Its position.
        leaf: usize,
        /// What is wrong with it.
        error: LeafError,
    },
    /// The parts of a line are out of order, or one is without rows.
    #[error("the parts of line {0} are out of order")]
    Order(usize),
    /// The parts of a leaf are not its rows.
    #[error("the parts of leaf {0} are not its rows")]
    Rows(usize),
    /// The bounds of a node, what it adds up, or a lifted row is wrong.
    #[error("the nodes above its leaves are not those of its rows")]
    Nodes,
    /// What is known of the values of a part is not so.
    #[error("what is known of the values of part {0} is not what its rows show")]
    Values(usize),
}

impl<R: StoredRow> LineStore<R> {
    /// The store of these leaves and this directory, which are checked against each other: each row of a leaf belongs
    /// to one part, and the parts of a line follow each other.
    pub fn from_parts(leaves: Vec<Leaf>, directory: Arc<LineDirectory>) -> Result<Self, StoreError> {
        let by_leaf = directory.by_leaf(leaves.len());
        check_directory(leaves.iter().map(Leaf::rows), &directory, &by_leaf)?;
        let (leaves, nodes) = (Leaves::Here(leaves), Nodes::default());
        let mut store = LineStore { leaves, nodes, directory, family: PhantomData };
        store.nodes = store.made_nodes(&by_leaf);
        Ok(store)
    }

    /// The store of leaves that have as many rows as `rows` says, and are looked at when they are read, as the nodes
    /// above them are.
    pub fn from_kept(
        leaves: Leaves,
        nodes: Nodes,
        rows: impl ExactSizeIterator<Item = usize>,
        directory: Arc<LineDirectory>,
    ) -> Result<Self, StoreError> {
        check_directory(rows, &directory, &directory.by_leaf(leaves.len()))?;
        Ok(LineStore { leaves, nodes, directory, family: PhantomData })
    }

    /// What does not hold of the store (`--check`): it is made again of the bytes of its leaves and of its lists.
    /// `tid` has the tid of a thread.
    pub fn check(&self, tid: impl Fn(u32) -> Option<i32>) -> Result<(), StoreError> {
        let read = |(leaf, of): (usize, LeafHandle<'_>)| {
            Leaf::from_bytes(of.bytes().clone(), R::FAMILY).map_err(|error| StoreError::Leaf { leaf, error })
        };
        let leaves = self.leaves().iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let again = LineStore::<R>::from_parts(leaves, Arc::clone(&self.directory))?;
        if self.nodes != again.nodes {
            return Err(StoreError::Nodes);
        }
        if let Some(leaf) = again.unnamed() {
            return Err(StoreError::Rows(leaf));
        }
        // Parts of which nothing is known are right.
        let fits = |(part, made): (LinePart, PartValues)| {
            part.values.iter().zip(made).all(|(value, made)| !value.is_sure() || *value == made)
        };
        let wrong = self.directory.iter().zip(again.values(tid)).position(|both| !fits(both));
        wrong.map_or(Ok(()), |part| Err(StoreError::Values(part)))
    }

    /// The nodes of the rows in the leaves.
    fn made_nodes(&self, by_leaf: &PartsBy) -> Nodes {
        Nodes::of((0..self.leaves.len()).map(|leaf| {
            let own = by_leaf.group(leaf);
            let rows: Vec<R> = own.iter().flat_map(|part| self.rows_of(*part as usize)).collect();
            LeafNode::new(&rows, self.directory.named(own))
        }))
    }

    /// The first leaf that does not name the lines of its parts.
    fn unnamed(&self) -> Option<usize> {
        let by_leaf = self.directory.by_leaf(self.leaves.len());
        let is_named = |at: usize, leaf: &Leaf| leaf.names::<R>(self.directory.named(by_leaf.group(at)));
        self.leaves.iter().enumerate().position(|(at, leaf)| !is_named(at, &leaf))
    }
}

/// The first contradiction of a directory with itself, or with the number of rows of each leaf.
fn check_directory(
    leaves: impl ExactSizeIterator<Item = usize>,
    directory: &LineDirectory,
    by_leaf: &PartsBy,
) -> Result<(), StoreError> {
    for line in 0..directory.lines() {
        let mut before: Option<LinePart> = None;
        for part in directory.line(line).filter_map(|part| directory.part(part)) {
            let in_order = before.replace(part).is_none_or(|a| a.leaf < part.leaf && a.start <= part.start);
            if !in_order || part.rows == 0 {
                return Err(StoreError::Order(line));
            }
        }
    }
    let (count, mut parts) = (leaves.len(), 0);
    for (leaf, leaf_rows) in leaves.enumerate() {
        let (mut rows, own) = (0, by_leaf.group(leaf));
        for part in own.iter().filter_map(|part| directory.part(*part as usize)) {
            if usize::from(part.first) != rows {
                return Err(StoreError::Rows(leaf));
            }
            rows += usize::from(part.rows);
        }
        if rows != leaf_rows {
            return Err(StoreError::Rows(leaf));
        }
        parts += own.len();
    }
    if parts != directory.len() {
        return Err(StoreError::Rows(count));
    }
    Ok(())
}
