//! Rows become leaves.
//!
//! In: rows of lines, those of one line by start, those of all lines roughly by end. Out: a [`LineStore`]. The rows
//! that were added since the last slab are sorted by line and cut into leaves of at most [`MOST_ROWS`] rows; so the
//! leaves depend on the rows and on the moments at which slabs are taken alone. A slab can be sealed by another thread
//! than the one that fills the next; sealed slabs are added in the order in which they were taken. The rows of a slab
//! are in blocks of one size, which all slabs of the family share: slabs differ in size, and one that kept its memory
//! would keep that of the largest that it ever was. Rows that have memory of their own are not copied into blocks: the
//! slab reads them there when it is sealed ([`RowSource`]).

use super::directory::LinePart;
use super::leaf::StoredRow;
use super::leaf_bytes::Leaf;
use super::leaves::Leaves;
use super::nodes::{LeafNode, Nodes};
use super::parts::LineStore;
use super::pool::LeafPool;
use super::slab_parts::{PartOfLine, PartTable, PartsOfSlabs};
use super::values::{PartEnds, of_rows};
use get_size2::GetSize;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::{Add, Range};
use std::sync::Arc;

/// The most rows of a leaf: 14 to 30 KB.
const MOST_ROWS: usize = 2048;

/// Rows of a block: 24 to 64 KiB.
const BLOCK: usize = 1024;

/// Rows that have memory of their own until they are in leaves.
pub trait RowSource<R>: Debug + Send + Sync {
    /// Add some of them, by number.
    fn copy(&self, rows: Range<u32>, into: &mut Vec<R>);
}

/// Rows of one line that follow each other in the open slab.
#[derive(Clone, Debug)]
struct Stretch {
    line: u32,
    rows: Range<u32>,
    /// Their source, a position in [`OpenSlab::sources`]; `None`: they are in the blocks.
    source: Option<u32>,
}

/// The rows of a family that are in no leaf yet.
#[derive(Clone, Debug)]
pub struct OpenSlab<R> {
    /// All but the last are full.
    blocks: Vec<Vec<R>>,
    sources: Vec<Arc<dyn RowSource<R>>>,
    /// Number of rows that are in sources.
    in_sources: usize,
    stretches: Vec<Stretch>,
}

impl<R> Default for OpenSlab<R> {
    fn default() -> Self {
        OpenSlab { blocks: Vec::new(), sources: Vec::new(), in_sources: 0, stretches: Vec::new() }
    }
}

/// The leaves of a slab, numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct SealedSlab {
    leaves: Vec<Leaf>,
    nodes: Vec<LeafNode>,
    parts: PartTable,
    /// Those of the leaf that is filled.
    open: Vec<PartOfLine>,
}

impl<R: StoredRow> OpenSlab<R> {
    /// Bytes of its blocks, and of its rows in sources.
    pub fn bytes(&self) -> usize {
        (self.blocks.len() * BLOCK + self.in_sources) * size_of::<R>()
    }

    /// Number of rows.
    fn len(&self) -> usize {
        self.in_blocks() + self.in_sources
    }

    fn in_blocks(&self) -> usize {
        self.blocks.last().map_or(0, |last| (self.blocks.len() - 1) * BLOCK + last.len())
    }

    fn push(&mut self, line: usize, mut rows: &[R], mut block: impl FnMut() -> Vec<R>) {
        if rows.is_empty() {
            return;
        }
        let from = self.in_blocks() as u32;
        while !rows.is_empty() {
            let room = self.blocks.last().map_or(0, |last| BLOCK - last.len());
            if room == 0 {
                self.blocks.push(block());
                continue;
            }
            let Some(last) = self.blocks.last_mut() else { break };
            let (here, others) = rows.split_at(room.min(rows.len()));
            last.extend_from_slice(here);
            rows = others;
        }
        let rows = from..self.in_blocks() as u32;
        match self.stretches.last_mut() {
            Some(last) if last.line == line as u32 && last.source.is_none() => last.rows.end = rows.end,
            _ => self.stretches.push(Stretch { line: line as u32, rows, source: None }),
        }
    }

    fn push_from(&mut self, line: usize, source: Arc<dyn RowSource<R>>, rows: Range<usize>) {
        if !self.sources.last().is_some_and(|last| Arc::ptr_eq(last, &source)) {
            self.sources.push(source);
        }
        self.in_sources += rows.len();
        let source = Some(self.sources.len() as u32 - 1);
        self.stretches.push(Stretch { line: line as u32, rows: rows.start as u32..rows.end as u32, source });
    }

    /// Add the first rows of a stretch, `most` of them at most. Returns their number.
    fn copy(&self, stretch: &Stretch, most: usize, into: &mut Vec<R>) -> usize {
        let Range { start, end } = stretch.rows;
        let before = into.len();
        match stretch.source {
            Some(source) => {
                let end = end.min(start.saturating_add(most as u32));
                self.sources.get(source as usize).into_iter().for_each(|source| source.copy(start..end, into));
            }
            None => {
                let at = start as usize;
                let block = self.blocks.get(at / BLOCK).and_then(|block| block.get(at % BLOCK..)).unwrap_or(&[]);
                into.extend_from_slice(&block[..block.len().min(end as usize - at).min(most)]);
            }
        }
        into.len() - before
    }

    /// Its rows as leaves; the slab is empty then.
    pub fn seal(&mut self) -> SealedSlab {
        self.stretches.sort_by_key(|stretch| stretch.line);
        let mut sealed = SealedSlab::default();
        let mut rows: Vec<R> = Vec::with_capacity(MOST_ROWS.min(self.len()));
        let mut stretches = std::mem::take(&mut self.stretches);
        for stretch in &mut stretches {
            while !stretch.rows.is_empty() {
                let before = rows.len();
                let count = self.copy(stretch, MOST_ROWS - before, &mut rows);
                let Some(first) = rows.get(before) else { break };
                sealed.add_part(stretch.line, first, before, count);
                stretch.rows.start += count as u32;
                if rows.len() == MOST_ROWS {
                    sealed.add_leaf(&mut rows);
                }
            }
        }
        if !rows.is_empty() {
            sealed.add_leaf(&mut rows);
        }
        stretches.clear();
        self.stretches = stretches;
        self.blocks.iter_mut().for_each(Vec::clear);
        self.sources.clear();
        sealed.parts.seal();
        sealed.open = Vec::new();
        sealed
    }

    /// Its rows by line; the slab is empty then.
    fn take_lines(&mut self) -> Vec<(usize, Vec<R>)> {
        self.stretches.sort_by_key(|stretch| stretch.line);
        let mut lines: Vec<(usize, Vec<R>)> = Vec::new();
        for mut stretch in std::mem::take(&mut self.stretches) {
            let line = stretch.line as usize;
            if lines.last().is_none_or(|(last, _)| *last != line) {
                lines.push((line, Vec::new()));
            }
            let Some((_, rows)) = lines.last_mut() else { break };
            while !stretch.rows.is_empty() {
                match self.copy(&stretch, usize::MAX, rows) {
                    0 => break,
                    count => stretch.rows.start += count as u32,
                }
            }
        }
        self.blocks.iter_mut().for_each(Vec::clear);
        self.sources.clear();
        lines
    }
}

impl SealedSlab {
    /// Count rows of a line that come next in the leaf to be added.
    fn add_part<R: StoredRow>(&mut self, line: u32, first: &R, before: usize, count: usize) {
        match self.open.last_mut() {
            Some(last) if last.line == line => last.part.rows += count as u16,
            _ => {
                let (leaf, start) = (self.leaves.len() as u32, first.span().start);
                let (first, rows) = (before as u16, count as u16);
                let part = LinePart { start, before: 0, leaf, first, rows, values: Default::default() };
                self.open.push(PartOfLine { line, part, ends: PartEnds::default() });
            }
        }
    }

    /// Add a leaf of some rows, of which the open parts are.
    fn add_leaf<R: StoredRow>(&mut self, rows: &mut Vec<R>) {
        for PartOfLine { part, ends, .. } in &mut self.open {
            let own = rows.get(part.positions()).unwrap_or(&[]);
            (part.values, *ends) = of_rows(part.start, own);
        }
        let parts = self.open.iter().map(|of| (of.line, usize::from(of.part.first)));
        self.leaves.push(Leaf::encode(rows, parts.clone()));
        self.nodes.push(LeafNode::new(rows, parts));
        self.open.drain(..).for_each(|of| of.push_to(&mut self.parts));
        rows.clear();
    }
}

/// Bytes of the memory for rows that are in no leaf yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenBytes {
    pub all: usize,
    /// Of it, without rows.
    pub spare: usize,
}

impl Add for OpenBytes {
    type Output = OpenBytes;

    fn add(self, other: OpenBytes) -> OpenBytes {
        OpenBytes { all: self.all + other.all, spare: self.spare + other.spare }
    }
}

/// The rows of a family, as they are sealed.
#[derive(Clone, Debug)]
pub struct LineStoreBuilder<R> {
    open: OpenSlab<R>,
    /// Empty blocks.
    spare: Vec<Vec<R>>,
    /// Number of all blocks: those of slabs that were taken, too.
    blocks: usize,
    /// Number of all rows in sources, likewise.
    in_sources: usize,
    leaves: Leaves,
    nodes: Nodes,
    /// Bytes of the leaves.
    sealed_bytes: usize,
    parts: PartsOfSlabs,
}

impl<R> Default for LineStoreBuilder<R> {
    fn default() -> Self {
        LineStoreBuilder {
            open: OpenSlab::default(),
            spare: Vec::new(),
            blocks: 0,
            in_sources: 0,
            leaves: Leaves::default(),
            nodes: Nodes::default(),
            sealed_bytes: 0,
            parts: PartsOfSlabs::default(),
        }
    }
}

impl<R: StoredRow> LineStoreBuilder<R> {
    /// Add rows of a line, which come after those that it has.
    pub fn push(&mut self, line: usize, rows: &[R]) {
        let LineStoreBuilder { open, spare, blocks, .. } = self;
        let block = || {
            spare.pop().unwrap_or_else(|| {
                *blocks += 1;
                Vec::with_capacity(BLOCK)
            })
        };
        open.push(line, rows, block);
    }

    /// Add rows of several lines, sorted by line.
    pub fn push_lines(&mut self, rows: &[R], line: impl Fn(&R) -> usize) {
        for same in rows.chunk_by(|a, b| line(a) == line(b)) {
            same.first().into_iter().for_each(|first| self.push(line(first), same));
        }
    }

    /// Add rows of a line, which come after those that it has; they are read when the slab is sealed.
    pub fn push_from(&mut self, line: usize, source: Arc<dyn RowSource<R>>, rows: Range<usize>) {
        self.in_sources += rows.len();
        self.open.push_from(line, source, rows);
    }

    /// Take back the rows added since the last slab, by line.
    pub fn take_lines(&mut self) -> Vec<(usize, Vec<R>)> {
        let mut slab = self.take_slab();
        let lines = slab.take_lines();
        self.give_back(slab);
        lines
    }

    /// Bytes of the memory for rows that are in no leaf yet, those of slabs that were taken, too.
    pub fn open_bytes(&self) -> OpenBytes {
        let block = BLOCK * size_of::<R>();
        let in_sources = self.in_sources * size_of::<R>();
        OpenBytes { all: self.blocks * block + in_sources, spare: self.spare.len() * block }
    }

    /// Number of rows that are in no leaf yet.
    pub fn open_rows(&self) -> usize {
        self.open.len()
    }

    /// Take the rows added since the last slab.
    pub fn take_slab(&mut self) -> OpenSlab<R> {
        std::mem::take(&mut self.open)
    }

    /// Use the memory of a slab that was sealed again.
    pub fn give_back(&mut self, empty: OpenSlab<R>) {
        self.in_sources -= empty.in_sources;
        self.spare.extend(empty.blocks);
        if self.open.stretches.capacity() == 0 {
            self.open.stretches = empty.stretches;
        }
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
    pub fn add_slab(&mut self, slab: SealedSlab) {
        let leaves = self.leaves.len() as u32;
        self.parts.add(leaves, slab.parts);
        slab.nodes.into_iter().for_each(|node| self.nodes.push(node));
        for leaf in slab.leaves {
            self.sealed_bytes += leaf.get_heap_size();
            self.leaves.push(leaf, R::FAMILY);
        }
    }

    /// Move the rows added since the last slab into leaves.
    pub fn seal_slab(&mut self) {
        let mut slab = self.take_slab();
        self.add_slab(slab.seal());
        self.give_back(slab);
    }

    /// Give the lines other numbers: `lines` has those of the present ones.
    pub fn renumber(&mut self, lines: &[u32]) {
        let new = |line: u32| lines.get(line as usize).copied().unwrap_or(line);
        self.parts.renumber(new);
        self.open.stretches.iter_mut().for_each(|stretch| stretch.line = new(stretch.line));
    }

    /// The store of `lines` lines.
    pub fn finish(self, lines: usize) -> LineStore<R> {
        self.finish_with(lines, |_| None)
    }

    /// The store of `lines` lines, whose rows name threads of which `tid` has the tid.
    pub fn finish_with(mut self, lines: usize, tid: impl Fn(u32) -> Option<i32>) -> LineStore<R> {
        self.seal_slab();
        self.leaves.shrink_to_fit();
        self.nodes.seal();
        let directory = Arc::new(self.parts.directory::<R>(lines, tid));
        LineStore { leaves: self.leaves, nodes: self.nodes, directory, family: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Timestamp;
    use crate::timeline::{PageFault, ThreadId};

    /// A slab of many rows leaves its memory to all that follow; only slabs that are open at a time add up.
    #[test]
    fn open_bytes_are_those_of_the_most_rows_at_a_time() {
        let mut builder = LineStoreBuilder::default();
        let row = |i: usize| PageFault { thread: ThreadId::from_raw(0), time: Timestamp::new(i as i64) };
        let bytes = |rows: usize| rows * size_of::<PageFault>();
        let mut from = 0;
        let mut slab = |builder: &mut LineStoreBuilder<PageFault>, rows: usize| {
            builder.push(0, &(from..from + rows).map(row).collect::<Vec<PageFault>>());
            from += rows;
            assert_eq!(builder.open_rows(), rows);
            builder.take_slab()
        };
        let mut waiting: Vec<_> = [8192, 1024].map(|rows| slab(&mut builder, rows)).into();
        assert_eq!(builder.open_bytes(), OpenBytes { all: bytes(9216), spare: 0 });
        assert_eq!(waiting[0].bytes(), bytes(8192));
        for rows in [1024, 3072, 2048, 1024].repeat(5) {
            waiting.push(slab(&mut builder, rows));
            let mut first = waiting.remove(0);
            builder.add_slab(first.seal());
            builder.give_back(first);
            let OpenBytes { all, spare } = builder.open_bytes();
            assert_eq!((all, all - spare), (bytes(9216 + 1024), waiting.iter().map(OpenSlab::bytes).sum::<usize>()));
        }
        for mut slab in waiting {
            builder.add_slab(slab.seal());
        }
        let times: Vec<i64> = builder.finish(1).line(0).all().map(|fault| fault.time.ns()).collect();
        assert_eq!(times, (0..from as i64).collect::<Vec<_>>());
    }
}
