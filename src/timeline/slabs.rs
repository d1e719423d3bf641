//! Segments that are sealed slab by slab, for benchmarks of the store without a kernel pass.
//!
//! In: the segments of threads over one span after the other. Out: a timeline whose leaves are made as in the pass, by
//! all workers.

use super::Timeline;
use super::draft::TimelineDraft;
use super::segments::{Segment, ThreadId};
use super::store::row_builders::RowBuilders;
use crate::base::ctx::{Cancelled, Ctx};
use crate::base::parallel::in_order;
use std::ops::Range;

/// The segments of threads over some span.
#[derive(Clone, Debug, Default)]
pub struct SegmentSlab {
    pub rows: Vec<Segment>,
    /// Which of the rows each thread has.
    pub threads: Vec<(ThreadId, Range<usize>)>,
}

impl SegmentSlab {
    fn builders(&self) -> RowBuilders {
        let mut open = RowBuilders::default();
        for (thread, rows) in &self.threads {
            open.segments.push(thread.index(), self.rows.get(rows.clone()).unwrap_or(&[]));
        }
        open
    }
}

impl TimelineDraft {
    /// The timeline of these segments, and then of what is in the draft.
    pub fn seal_slabs(self, slabs: &[SegmentSlab], ctx: &Ctx) -> Result<Timeline, Cancelled> {
        let leaves = |slab: usize| slabs.get(slab).map(|slab| slab.builders().take_slabs().seal()).unwrap_or_default();
        let mut builders = RowBuilders::default();
        in_order(ctx, slabs.len(), leaves, |_, sealed| builders.add_slabs(sealed))?;
        Ok(self.recorded(builders).seal())
    }
}
