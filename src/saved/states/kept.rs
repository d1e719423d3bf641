//! The leaves of a history file, each read and checked when it is asked for.
//!
//! In: the places of blocks, and the parts of lines that each has. Out: a leaf whose checksum fits, whose rows are as
//! many as the index says, have ids that lead to entries of the tables, and are in order of time, up to the next part
//! of their line. So a leaf is believed or not whatever the others are. Cost: one positioned read, the checksum, and
//! decoding each row once.

use super::HistoryFile;
use super::checked::CheckedRow;
use super::container::SectionName;
use super::index::BlockEntry;
use super::tables::Bounds;
use crate::base::memory::MemoryError;
use crate::base::time::{Span, Timestamp};
use crate::timeline::MarkRow;
use crate::timeline::store::leaf_bytes::Leaf;
use crate::timeline::store::leaves::LeafSource;
use crate::timeline::store::marks::{MarkLeaf, MarkStore};
use crate::timeline::store::parts::LinePart;
use std::marker::PhantomData;
use std::sync::Arc;

/// Where the blocks of a timeline are, and which ids they may have.
#[derive(Clone, Debug)]
pub(super) struct BlocksOf {
    pub file: Arc<HistoryFile>,
    pub section: SectionName,
    pub bounds: Bounds,
}

impl BlocksOf {
    fn bytes(&self, block: &BlockEntry) -> Option<Arc<[u8]>> {
        self.file.block(self.section, block.offset, block.length).map(Into::into)
    }

    fn damaged(&self, span: Span) -> MemoryError {
        let (path, Span { start, end }) = (self.file.path().display(), span);
        MemoryError::Damaged(format!(
            "{path}: the history file is damaged: states from {start} to {end} ns cannot be read; build it again with \
             `whyslow build --history`"
        ))
    }
}

/// The rows of one line in a leaf.
#[derive(Clone, Copy, Debug)]
struct KeptPart {
    leaf: u32,
    start: Timestamp,
    /// Where the next part of the line starts.
    until: Timestamp,
    line: u32,
    first: u16,
    rows: u16,
}

/// The leaves of a family.
#[derive(Debug)]
pub(super) struct KeptLeaves<R> {
    of: BlocksOf,
    blocks: Vec<BlockEntry>,
    /// By leaf and position.
    parts: Vec<KeptPart>,
    family: PhantomData<fn() -> R>,
}

impl<R: CheckedRow> KeptLeaves<R> {
    /// The leaves in some blocks; `None` where a part is in none of them, or a leaf has more rows than it can.
    pub fn new(of: BlocksOf, blocks: Vec<BlockEntry>, parts: &[LinePart], lines: &[u32]) -> Option<KeptLeaves<R>> {
        let mut kept = Vec::with_capacity(parts.len());
        let mut rows = vec![0_u32; blocks.len()];
        for (line, ends) in (0..).zip(lines.windows(2)) {
            let &[from, to] = ends else { continue };
            let parts = parts.get(from as usize..to as usize)?;
            for (at, part) in parts.iter().enumerate() {
                let rows = rows.get_mut(part.leaf as usize)?;
                *rows = rows.saturating_add(part.rows.into());
                let until = parts.get(at + 1).map_or(Timestamp::MAX, |next| next.start);
                let LinePart { start, leaf, first, rows, .. } = *part;
                kept.push(KeptPart { leaf, start, until, line, first, rows });
            }
        }
        kept.sort_unstable_by_key(|part| (part.leaf, part.first));
        let fits = kept.len() == parts.len() && rows.iter().all(|rows| *rows <= u32::from(u16::MAX));
        fits.then_some(KeptLeaves { of, blocks, parts: kept, family: PhantomData })
    }

    /// Number of leaves.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    fn parts_of(&self, leaf: usize) -> &[KeptPart] {
        let from = self.parts.partition_point(|part| (part.leaf as usize) < leaf);
        let rest = self.parts.get(from..).unwrap_or(&[]);
        rest.get(..rest.partition_point(|part| part.leaf as usize == leaf)).unwrap_or(&[])
    }

    /// Number of rows of a leaf.
    pub fn rows_of(&self, leaf: usize) -> usize {
        self.parts_of(leaf).iter().map(|part| usize::from(part.rows)).sum()
    }

    /// The span of a leaf that is damaged.
    pub fn span(&self, leaf: usize) -> Span {
        self.blocks.get(leaf).map_or_else(Span::default, |block| lossy(block.span))
    }

    /// A leaf that is as it was written.
    pub fn sound(&self, leaf: usize) -> Option<Leaf> {
        let read = Leaf::from_bytes(self.of.bytes(self.blocks.get(leaf)?)?, R::FAMILY).ok()?;
        let parts = self.parts_of(leaf);
        let fits = read.rows() == self.rows_of(leaf)
            && read.names::<R>(parts.iter().map(|part| (part.line, usize::from(part.first))))
            && parts.iter().all(|part| self.is_believed(&read, part));
        fits.then_some(read)
    }

    /// The rows of a part have known ids and are in order of time.
    fn is_believed(&self, leaf: &Leaf, part: &KeptPart) -> bool {
        let mut known_to = part.start;
        let in_order = leaf.all(part.first.into(), part.rows.into(), part.start, |row: &R| {
            let span = row.span();
            let in_order = known_to <= span.start && span.start <= span.end;
            known_to = if R::OVERLAPS { span.start } else { span.end };
            in_order && row.is_known(&self.of.bounds)
        });
        in_order && known_to <= part.until
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
