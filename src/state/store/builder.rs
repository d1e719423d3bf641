//! Rows become leaves.
//!
//! In: rows of lines, those of one line by start, those of all lines roughly by end. Out: a [`LineStore`]. The rows
//! that were added since the last slab are sorted by line and cut into leaves of at most [`MOST_ROWS`] rows; so the
//! leaves depend on the rows and on the moments at which slabs are taken alone. A slab can be sealed by another thread
//! than the one that fills the next; sealed slabs are added in the order in which they were taken.

use super::leaf::StoredRow;
use super::leaf_bytes::Leaf;
use super::leaves::Leaves;
use super::parts::{LinePart, LineStore};
use super::pool::LeafPool;
use crate::base::heap::{HeapSize, block};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// The most rows of a leaf: 14 to 30 KB.
const MOST_ROWS: usize = 2048;

/// Rows of one line that follow each other in the open slab.
#[derive(Clone, Debug)]
struct Stretch {
    line: u32,
    rows: Range<usize>,
}

/// A part, and the line that it is of.
#[derive(Clone, Copy, Debug)]
struct PartOfLine {
    line: u32,
    part: LinePart,
}

/// The rows of a family that are in no leaf yet.
#[derive(Clone, Debug)]
pub(in crate::state) struct OpenSlab<R> {
    rows: Vec<R>,
    stretches: Vec<Stretch>,
}

impl<R> Default for OpenSlab<R> {
    fn default() -> Self {
        OpenSlab { rows: Vec::new(), stretches: Vec::new() }
    }
}

/// The leaves of a slab, numbered from 0.
#[derive(Clone, Debug, Default)]
pub(in crate::state) struct SealedSlab {
    leaves: Vec<Leaf>,
    parts: Vec<PartOfLine>,
}

impl<R> HeapSize for OpenSlab<R> {
    fn heap_bytes(&self) -> usize {
        block(&self.rows) + block(&self.stretches)
    }
}

impl<R: StoredRow> OpenSlab<R> {
    fn push(&mut self, line: usize, rows: impl IntoIterator<Item = R>) {
        let from = self.rows.len();
        self.rows.extend(rows);
        let rows = from..self.rows.len();
        match self.stretches.last_mut() {
            _ if rows.is_empty() => {}
            Some(last) if last.line == line as u32 => last.rows.end = rows.end,
            _ => self.stretches.push(Stretch { line: line as u32, rows }),
        }
    }

    /// Its rows as leaves; the slab is empty then.
    pub fn seal(&mut self) -> SealedSlab {
        self.stretches.sort_by_key(|stretch| stretch.line);
        let mut sealed = SealedSlab::default();
        let mut rows: Vec<R> = Vec::with_capacity(MOST_ROWS.min(self.rows.len()));
        for stretch in self.stretches.drain(..) {
            let mut left = self.rows.get(stretch.rows).unwrap_or(&[]);
            while let Some(first) = left.first() {
                let leaf = sealed.leaves.len() as u32;
                let (own, rest) = left.split_at(left.len().min(MOST_ROWS - rows.len()));
                match sealed.parts.last_mut() {
                    Some(PartOfLine { line, part }) if *line == stretch.line && part.leaf == leaf => {
                        part.rows += own.len() as u16;
                    }
                    _ => {
                        let (start, first) = (first.span().start, rows.len() as u16);
                        let part = LinePart { start, before: 0, leaf, first, rows: own.len() as u16 };
                        sealed.parts.push(PartOfLine { line: stretch.line, part });
                    }
                }
                rows.extend_from_slice(own);
                left = rest;
                if rows.len() == MOST_ROWS {
                    sealed.add_leaf(&mut rows);
                }
            }
        }
        if !rows.is_empty() {
            sealed.add_leaf(&mut rows);
        }
        self.rows.clear();
        sealed
    }
}

impl SealedSlab {
    /// Add a leaf of some rows; their parts are the last ones.
    fn add_leaf<R: StoredRow>(&mut self, rows: &mut Vec<R>) {
        let leaf = self.leaves.len() as u32;
        let parts = self.parts.get(self.parts.partition_point(|of| of.part.leaf < leaf)..).unwrap_or(&[]);
        self.leaves.push(Leaf::encode(rows, parts.iter().map(|of| usize::from(of.part.first))));
        rows.clear();
    }
}

/// The rows of a family, as they are sealed.
#[derive(Clone, Debug)]
pub(in crate::state) struct LineStoreBuilder<R> {
    open: OpenSlab<R>,
    leaves: Leaves,
    /// Bytes of the leaves.
    sealed_bytes: usize,
    parts: Vec<PartOfLine>,
}

impl<R> Default for LineStoreBuilder<R> {
    fn default() -> Self {
        let (open, leaves, parts) = (OpenSlab::default(), Leaves::default(), Vec::new());
        LineStoreBuilder { open, leaves, sealed_bytes: 0, parts }
    }
}

impl<R: StoredRow> LineStoreBuilder<R> {
    /// Add rows of a line, which come after those that it has.
    pub fn push(&mut self, line: usize, rows: impl IntoIterator<Item = R>) {
        self.open.push(line, rows);
    }

    /// Bytes of the memory for rows that are in no leaf yet.
    pub fn open_bytes(&self) -> usize {
        self.open.heap_bytes()
    }

    /// Number of rows that are in no leaf yet.
    pub fn open_rows(&self) -> usize {
        self.open.rows.len()
    }

    /// Take the rows added since the last slab; `empty` gives its memory to the next ones.
    pub fn take_slab(&mut self, empty: OpenSlab<R>) -> OpenSlab<R> {
        std::mem::replace(&mut self.open, empty)
    }

    /// Bytes of all leaves.
    pub fn sealed_bytes(&self) -> usize {
        self.sealed_bytes
    }

    /// Move the leaves, and those to come, to a pool.
    pub fn move_to(&mut self, pool: &Arc<LeafPool>) {
        self.leaves.move_to(pool, R::FAMILY);
    }

    /// Add the next slab that was taken.
    pub fn add_slab(&mut self, mut slab: SealedSlab) {
        let leaves = self.leaves.len() as u32;
        slab.parts.iter_mut().for_each(|of| of.part.leaf += leaves);
        self.parts.append(&mut slab.parts);
        for leaf in slab.leaves {
            self.sealed_bytes += leaf.heap_bytes();
            self.leaves.push(leaf, R::FAMILY);
        }
    }

    /// Move the rows added since the last slab into leaves.
    pub fn seal_slab(&mut self) {
        let sealed = self.open.seal();
        self.add_slab(sealed);
    }

    /// Give the lines other numbers: `lines` has those of the present ones.
    pub fn renumber(&mut self, lines: &[u32]) {
        let new = |line: u32| lines.get(line as usize).copied().unwrap_or(line);
        self.parts.iter_mut().for_each(|of| of.line = new(of.line));
        self.open.stretches.iter_mut().for_each(|stretch| stretch.line = new(stretch.line));
    }

    /// The store of `lines` lines.
    pub fn finish(mut self, lines: usize) -> LineStore<R> {
        self.seal_slab();
        let mut parts = self.parts;
        parts.sort_by_key(|of| of.line);
        let starts = (0..=lines).map(|line| parts.partition_point(|of| (of.line as usize) < line) as u32).collect();
        let (mut line, mut before) = (0, 0);
        for of in &mut parts {
            if of.line != line {
                (line, before) = (of.line, 0);
            }
            of.part.before = before;
            before += u32::from(of.part.rows);
        }
        self.leaves.shrink_to_fit();
        let parts = parts.into_iter().map(|of| of.part).collect();
        LineStore { leaves: self.leaves, parts, lines: starts, family: PhantomData }
    }
}
