//! Rows that an analysis derives from a timeline, kept as the timeline keeps its own: the stacks of threads over time.
//!
//! In: the rows of one line after the other, in order of time. Out: compressed leaves, which a
//! [`RowReader`](super::reader::RowReader) reads. ALGORITHMS.md 8.11.

use super::sealed::Timeline;
use super::segments::StackChange;
use super::store::builder::LineStoreBuilder;
use super::store::parts::{LineStore, LineView};
use super::store::pool::LeafPool;
use get_size2::GetSize;
use std::sync::Arc;

/// Rows are sealed when this many are open.
const SLAB: usize = 1 << 14;

/// The stacks of some threads over time; a line has those of one thread.
#[derive(Clone, Debug, Default, GetSize)]
pub struct StackLines(LineStore<StackChange>);

/// [`StackLines`] as they are made.
#[derive(Debug)]
pub struct StackLinesBuilder {
    rows: LineStoreBuilder<StackChange>,
    /// Where the timeline keeps leaves that memory has no room for.
    pool: Option<Arc<LeafPool>>,
}

impl StackLinesBuilder {
    /// For stacks that are derived from a timeline.
    pub fn new(timeline: &Timeline) -> StackLinesBuilder {
        StackLinesBuilder { rows: LineStoreBuilder::default(), pool: timeline.rows.pool.clone() }
    }

    /// Add the next change of a line.
    #[inline]
    pub fn push(&mut self, line: usize, change: StackChange) {
        self.rows.push(line, &[change]);
        if self.rows.open_rows() >= SLAB {
            self.rows.seal_slab();
            self.pool.iter().for_each(|pool| self.rows.move_to(pool));
        }
    }

    /// The changes of this many lines.
    pub fn finish(self, lines: usize) -> StackLines {
        let mut rows = self.rows.finish(lines);
        self.pool.iter().for_each(|pool| rows.move_to(pool));
        StackLines(rows)
    }
}

impl StackLines {
    pub fn line(&self, line: usize) -> LineView<'_, StackChange> {
        self.0.line(line)
    }
}
