//! The leaves of a history file, each read and checked when it is asked for.
//!
//! In: the places of blocks, and the parts of lines that each has. Out: a leaf whose checksum fits, whose rows are as
//! many as the index says, have ids that lead to entries of the tables, and are in order of time, up to the next part
//! of their line. So a leaf is believed or not whatever the others are. Cost: one positioned read, the checksum, and
//! decoding each row once.

use super::checked::CheckedRow;
use super::index::BlockEntry;
use super::tables::Bounds;
use crate::base::memory_error::MemoryError;
use crate::base::time::Span;
use crate::saved::container::{SavedFile, SectionName};
use crate::timeline::MarkRow;
use crate::timeline::store::directory::{LineDirectory, PartsBy};
use crate::timeline::store::leaf_bytes::Leaf;
use crate::timeline::store::marks::{MarkLeaf, MarkStore};
use crate::timeline::store::pool::LeafSource;
use std::marker::PhantomData;
use std::sync::Arc;

/// Where the blocks of a timeline are, and which ids they may have.
#[derive(Clone, Debug)]
pub(super) struct BlocksOf {
    pub file: Arc<SavedFile>,
    pub section: SectionName,
    pub bounds: Bounds,
}

impl BlocksOf {
    fn bytes(&self, block: &BlockEntry) -> Option<Arc<[u8]>> {
        self.file.leaf(self.section, block.offset, block.length).map(Into::into)
    }

    fn damaged(&self, span: Span) -> MemoryError {
        let (path, Span { start, end }) = (self.file.path().display(), span);
        MemoryError::Damaged(format!(
            "{path}: the history file is damaged: states from {start} to {end} ns cannot be read; build it again with \
             `whyslow build --history`"
        ))
    }
}

/// The leaves of a family.
#[derive(Debug)]
pub(super) struct KeptLeaves<R> {
    of: BlocksOf,
    blocks: Vec<BlockEntry>,
    directory: Arc<LineDirectory>,
    by_leaf: PartsBy,
    family: PhantomData<fn() -> R>,
}

impl<R: CheckedRow> KeptLeaves<R> {
    /// The leaves in some blocks; `None` where a part is in none of them, or a leaf has more rows than it can.
    pub fn new(of: BlocksOf, blocks: Vec<BlockEntry>, directory: &Arc<LineDirectory>) -> Option<KeptLeaves<R>> {
        let (by_leaf, directory) = (directory.by_leaf(blocks.len()), Arc::clone(directory));
        let kept = KeptLeaves { of, blocks, directory, by_leaf, family: PhantomData };
        let parts: usize = (0..kept.len()).map(|leaf| kept.by_leaf.group(leaf).len()).sum();
        let fits = |leaf| kept.rows_of(leaf) <= usize::from(u16::MAX);
        (parts == kept.directory.len() && (0..kept.len()).all(fits)).then_some(kept)
    }

    /// Number of leaves.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Number of rows of a leaf.
    pub fn rows_of(&self, leaf: usize) -> usize {
        let rows = |part: &u32| self.directory.rows_of(*part as usize..*part as usize + 1) as usize;
        self.by_leaf.group(leaf).iter().map(rows).sum()
    }

    /// The span of a leaf that is damaged.
    pub fn span(&self, leaf: usize) -> Span {
        self.blocks.get(leaf).map_or_else(Span::default, |block| lossy(block.span))
    }

    /// A leaf that is as it was written.
    pub fn sound(&self, leaf: usize) -> Option<Leaf> {
        let read = Leaf::from_bytes(self.of.bytes(self.blocks.get(leaf)?)?, R::FAMILY).ok()?;
        let parts = self.by_leaf.group(leaf);
        let fits = read.rows() == self.rows_of(leaf)
            && read.names::<R>(self.directory.named(parts))
            && parts.iter().all(|part| self.is_believed(&read, *part as usize));
        fits.then_some(read)
    }

    /// The rows of a part have known ids and are in order of time, up to the next part of the line.
    fn is_believed(&self, leaf: &Leaf, number: usize) -> bool {
        let Some(part) = self.directory.part(number) else { return false };
        let mut known_to = part.start;
        let in_order = leaf.all(part.first.into(), part.rows.into(), part.start, |row: &R| {
            let span = row.span();
            let in_order = known_to <= span.start && span.start <= span.end;
            known_to = if R::OVERLAPS { span.start } else { span.end };
            in_order && row.is_known(&self.of.bounds)
        });
        let is_last = !self.directory.line(self.directory.line_of(number)).contains(&(number + 1));
        in_order && (is_last || known_to <= self.directory.start(number + 1))
    }
}

impl<R: CheckedRow> LeafSource for KeptLeaves<R> {
    fn read(&self, leaf: u32) -> Result<Leaf, MemoryError> {
        self.sound(leaf as usize).ok_or_else(|| self.of.damaged(self.span(leaf as usize)))
    }
}

/// The leaves of delimiting events.
#[derive(Debug)]
pub(super) struct KeptMarks {
    of: BlocksOf,
    blocks: Vec<BlockEntry>,
}

impl KeptMarks {
    /// The leaves in some blocks.
    pub fn new(of: BlocksOf, blocks: Vec<BlockEntry>) -> KeptMarks {
        KeptMarks { of, blocks }
    }

    /// Number of leaves.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The span of a leaf that is damaged.
    pub fn span(&self, leaf: usize) -> Span {
        self.blocks.get(leaf).map_or_else(Span::default, |block| lossy(block.span))
    }

    /// A leaf that is as it was written, whose ids are known.
    pub fn sound(&self, leaf: usize) -> Option<MarkLeaf> {
        let read = MarkLeaf::from_bytes(self.of.bytes(self.blocks.get(leaf)?)?).ok()?;
        let store = MarkStore::from_parts(vec![read.clone()], []);
        let mark = |row: MarkRow| row.with_fields(store.fields(row.number).collect());
        store.all().all(|row| self.of.bounds.mark(&mark(row))).then_some(read)
    }
}

impl LeafSource for KeptMarks {
    fn read(&self, leaf: u32) -> Result<Leaf, MemoryError> {
        self.sound(leaf as usize).map(Leaf::from).ok_or_else(|| self.of.damaged(self.span(leaf as usize)))
    }
}

/// The span of lost rows: an instant lasts a nanosecond, so that it meets what contains it.
fn lossy(span: Span) -> Span {
    Span::new(span.start, span.end.max(span.start.saturating_add(1)))
}
