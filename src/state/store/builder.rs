//! Rows become leaves.
//!
//! In: rows of lines, those of one line by start, those of all lines roughly by end. Out: a [`LineStore`]. The rows
//! that were added since the last slab are sorted by line and cut into leaves of at most [`MOST_ROWS`] rows; so the
//! leaves depend on the rows and on the moments at which slabs are sealed alone.

use super::leaf::StoredRow;
use super::leaf_bytes::Leaf;
use super::leaves::Leaves;
use super::parts::{LinePart, LineStore};
use super::pool::LeafPool;
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

/// The rows of a family, as they are sealed.
#[derive(Clone, Debug)]
pub(in crate::state) struct LineStoreBuilder<R> {
    open: Vec<R>,
    stretches: Vec<Stretch>,
    leaves: Leaves,
    /// Bytes of the leaves.
    sealed_bytes: usize,
    parts: Vec<PartOfLine>,
}

impl<R> Default for LineStoreBuilder<R> {
    fn default() -> Self {
        let (open, stretches, leaves, parts) = (Vec::new(), Vec::new(), Leaves::default(), Vec::new());
        LineStoreBuilder { open, stretches, leaves, sealed_bytes: 0, parts }
    }
}

impl<R: StoredRow> LineStoreBuilder<R> {
    /// Add rows of a line, which come after those that it has.
    pub fn push(&mut self, line: usize, rows: impl IntoIterator<Item = R>) {
        let from = self.open.len();
        self.open.extend(rows);
        if from < self.open.len() {
            self.stretches.push(Stretch { line: line as u32, rows: from..self.open.len() });
        }
    }

    /// Number of rows that are in no leaf yet.
    pub fn open_rows(&self) -> usize {
        self.open.len()
    }

    /// Bytes of all leaves.
    pub fn sealed_bytes(&self) -> usize {
        self.sealed_bytes
    }

    /// Move the leaves, and those to come, to a pool.
    pub fn move_to(&mut self, pool: &Arc<LeafPool>) {
        self.leaves.move_to(pool, R::FAMILY);
    }

    /// Move the rows added since the last slab into leaves.
    pub fn seal_slab(&mut self) {
        self.stretches.sort_by_key(|stretch| stretch.line);
        let mut open = std::mem::take(&mut self.open);
        let mut rows: Vec<R> = Vec::with_capacity(MOST_ROWS.min(open.len()));
        let from = self.parts.len();
        for stretch in std::mem::take(&mut self.stretches) {
            let mut left = open.get(stretch.rows).unwrap_or(&[]);
            while let Some(first) = left.first() {
                let leaf = self.leaves.len() as u32;
                let (own, rest) = left.split_at(left.len().min(MOST_ROWS - rows.len()));
                match self.parts.get_mut(from..).and_then(<[_]>::last_mut) {
                    Some(PartOfLine { line, part }) if *line == stretch.line && part.leaf == leaf => {
                        part.rows += own.len() as u16;
                    }
                    _ => {
                        let (start, first) = (first.span().start, rows.len() as u16);
                        let part = LinePart { start, before: 0, leaf, first, rows: own.len() as u16 };
                        self.parts.push(PartOfLine { line: stretch.line, part });
                    }
                }
                rows.extend_from_slice(own);
                left = rest;
                if rows.len() == MOST_ROWS {
                    self.add_leaf(from, &mut rows);
                }
            }
        }
        if !rows.is_empty() {
            self.add_leaf(from, &mut rows);
        }
        open.clear();
        self.open = open;
    }

    /// Add a leaf of some rows; their parts are the last ones, from `from` on.
    fn add_leaf(&mut self, from: usize, rows: &mut Vec<R>) {
        let leaf = self.leaves.len() as u32;
        let slab = self.parts.get(from..).unwrap_or(&[]);
        let parts = slab.get(slab.partition_point(|of| of.part.leaf < leaf)..).unwrap_or(&[]);
        let leaf = Leaf::encode(rows, parts.iter().map(|of| usize::from(of.part.first)));
        self.sealed_bytes += leaf.heap_bytes();
        self.leaves.push(leaf, R::FAMILY);
        rows.clear();
    }

    /// Give the lines other numbers: `lines` has those of the present ones.
    pub fn renumber(&mut self, lines: &[u32]) {
        let new = |line: u32| lines.get(line as usize).copied().unwrap_or(line);
        self.parts.iter_mut().for_each(|of| of.line = new(of.line));
        self.stretches.iter_mut().for_each(|stretch| stretch.line = new(stretch.line));
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
