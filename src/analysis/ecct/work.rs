//! Work of the kernel on behalf of the threads of a path: reclaim and compaction of memory, pauses for write-back.
//!
//! In: a segment of a path, and the work by events (`analysis/remarks.rs`). Out: its parts, those in which the kernel
//! worked below a step that names the work. Cost: one comparison where no such event was recorded, else a binary search
//! for each segment. ALGORITHMS.md sections 5.3 and 5.4.

use super::{OutlineId, OutlineStep, Walk};
use crate::analysis::path::PathSegment;
use crate::analysis::remarks::WorkSpan;
use crate::base::time::Span;

impl Walk<'_, '_> {
    /// Step through the parts of a segment in which the kernel worked on something for its thread, and the others.
    pub(super) fn step_by_work(&mut self, segment: &PathSegment) {
        if !self.sources.remarks.has_work() {
            return self.step_by_pause(segment);
        }
        let mut at = segment.span.start;
        for WorkSpan { span, work } in self.sources.remarks.works(segment.thread, segment.span) {
            self.step_by_pause(&PathSegment { span: Span::new(at, span.start), ..*segment });
            self.work = Some(work);
            self.step_by_pause(&PathSegment { span, ..*segment });
            self.work = None;
            at = span.end;
        }
        self.step_by_pause(&PathSegment { span: Span::new(at, segment.span.end), ..*segment });
    }

    /// The node of the work that the kernel does for the thread of a node, where it does any.
    pub(super) fn in_work(&mut self, node: OutlineId) -> OutlineId {
        self.work.map_or(node, |work| self.outline.child(Some(node), OutlineStep::Work(work)))
    }
}
