//! A store made of its leaves and its resident lists, and checked.
//!
//! In: leaves, the parts of all lines, the first part of each line; from a file, where they may be anything. Out: the
//! store, if each row of a leaf belongs to exactly one part and the parts of a line follow each other; else the first
//! contradiction. Cost: linear in the parts, and a sort of them.

use super::leaf::StoredRow;
use super::leaf_bytes::{Leaf, LeafError};
use super::leaves::{LeafHandle, Leaves};
use super::nodes::{LeafNode, Nodes};
use super::parts::{LinePart, LineStore};
use super::values::PartValues;
use std::marker::PhantomData;

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
    /// The first parts of lines are out of order, or not those of the list of parts.
    #[error("its list of lines does not fit the list of parts")]
    Lines,
    /// The parts of a line are out of order, or their counts of rows do not add up.
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
    /// The store of these leaves and resident lists, which are checked against each other: each row of a leaf belongs
    /// to one part, and the parts of a line follow each other.
    pub fn from_parts(leaves: Vec<Leaf>, parts: Vec<LinePart>, lines: Vec<u32>) -> Result<Self, StoreError> {
        check_lists(leaves.iter().map(Leaf::rows), &parts, &lines)?;
        let (leaves, nodes) = (Leaves::Here(leaves), Nodes::default());
        let mut store = LineStore { leaves, nodes, parts, lines, family: PhantomData };
        store.nodes = store.made_nodes();
        Ok(store)
    }

    /// The store of leaves that have as many rows as `rows` says, and are looked at when they are read, as the nodes
    /// above them are.
    pub fn from_kept(
        leaves: Leaves,
        nodes: Nodes,
        rows: impl ExactSizeIterator<Item = usize>,
        parts: Vec<LinePart>,
        lines: Vec<u32>,
    ) -> Result<Self, StoreError> {
        check_lists(rows, &parts, &lines)?;
        Ok(LineStore { leaves, nodes, parts, lines, family: PhantomData })
    }

    /// What does not hold of the store (`--check`): it is made again of the bytes of its leaves and of its lists.
    /// `tid` has the tid of a thread.
    pub fn check(&self, tid: impl Fn(u32) -> Option<i32>) -> Result<(), StoreError> {
        let read = |(leaf, of): (usize, LeafHandle<'_>)| {
            Leaf::from_bytes(of.bytes().clone(), R::FAMILY).map_err(|error| StoreError::Leaf { leaf, error })
        };
        let leaves = self.leaves().iter().enumerate().map(read).collect::<Result<_, _>>()?;
        let again = LineStore::<R>::from_parts(leaves, self.parts().to_vec(), self.lines().to_vec())?;
        if self.nodes != again.nodes {
            return Err(StoreError::Nodes);
        }
        if let Some(leaf) = again.unnamed() {
            return Err(StoreError::Rows(leaf));
        }
        // Parts of which nothing is known are right.
        let fits = |(part, made): (&LinePart, PartValues)| {
            part.values.iter().zip(made).all(|(value, made)| !value.is_sure() || *value == made)
        };
        let wrong = self.parts().iter().zip(again.values(tid)).position(|both| !fits(both));
        wrong.map_or(Ok(()), |part| Err(StoreError::Values(part)))
    }

    /// The parts by leaf and position, with their lines.
    fn parts_by_leaf(&self) -> Vec<(u32, &LinePart)> {
        let line = |(line, ends): (u32, &[u32])| {
            let [from, to] = [0, 1].map(|at| ends.get(at).map_or(0, |end| *end as usize));
            self.parts.get(from..to).unwrap_or(&[]).iter().map(move |part| (line, part))
        };
        let mut parts: Vec<(u32, &LinePart)> = (0..).zip(self.lines.windows(2)).flat_map(line).collect();
        parts.sort_unstable_by_key(|(_, part)| (part.leaf, part.first));
        parts
    }

    /// The nodes of the rows in the leaves.
    fn made_nodes(&self) -> Nodes {
        let all = self.parts_by_leaf();
        let mut rest = all.as_slice();
        Nodes::of((0..self.leaves.len() as u32).map(|leaf| {
            let (own, others) = rest.split_at(rest.partition_point(|(_, part)| part.leaf <= leaf));
            rest = others;
            let rows: Vec<R> = own.iter().flat_map(|(_, part)| self.rows_of(part)).collect();
            LeafNode::new(&rows, own.iter().map(|(line, part)| (*line, usize::from(part.first))))
        }))
    }

    /// The first leaf that does not name the lines of its parts.
    fn unnamed(&self) -> Option<usize> {
        let all = self.parts_by_leaf();
        let mut of_leaf = all.chunk_by(|(_, a), (_, b)| a.leaf == b.leaf).peekable();
        self.leaves.iter().enumerate().position(|(at, leaf)| {
            let own = of_leaf.next_if(|own| own.first().is_some_and(|(_, part)| part.leaf as usize == at));
            !leaf.names::<R>(own.unwrap_or(&[]).iter().map(|(line, part)| (*line, usize::from(part.first))))
        })
    }
}

/// The first contradiction of resident lists with each other, or with the number of rows of each leaf.
fn check_lists(
    leaves: impl ExactSizeIterator<Item = usize>,
    parts: &[LinePart],
    lines: &[u32],
) -> Result<(), StoreError> {
    let count = leaves.len();
    let ends = lines.first().zip(lines.last());
    if !lines.is_sorted() || ends.map_or((0, 0), |(first, last)| (*first, *last as usize)) != (0, parts.len()) {
        return Err(StoreError::Lines);
    }
    for (line, of) in lines.windows(2).enumerate() {
        let &[from, to] = of else { continue };
        let (mut rows, mut before): (u32, Option<&LinePart>) = (0, None);
        for part in parts.get(from as usize..to as usize).unwrap_or(&[]) {
            let in_order = before.replace(part).is_none_or(|a| a.leaf < part.leaf && a.start <= part.start);
            if !in_order || part.before != rows || part.rows == 0 {
                return Err(StoreError::Order(line));
            }
            rows = rows.checked_add(part.rows.into()).ok_or(StoreError::Order(line))?;
        }
    }
    let mut by_leaf: Vec<&LinePart> = parts.iter().collect();
    by_leaf.sort_unstable_by_key(|part| (part.leaf, part.first));
    let mut left = by_leaf.as_slice();
    for (number, leaf_rows) in leaves.enumerate() {
        let (own, rest) = left.split_at(left.partition_point(|part| part.leaf as usize <= number));
        let mut rows = 0;
        for part in own {
            if usize::from(part.first) != rows {
                return Err(StoreError::Rows(number));
            }
            rows += usize::from(part.rows);
        }
        if rows != leaf_rows {
            return Err(StoreError::Rows(number));
        }
        left = rest;
    }
    if !left.is_empty() {
        return Err(StoreError::Rows(count));
    }
    Ok(())
}
