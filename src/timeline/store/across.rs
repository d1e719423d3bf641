//! Questions about many lines at once, answered by the nodes above the leaves.
//!
//! In: a range of lines and a span. Out: the rows that meet it, each once, in no order; or the time in each state; or
//! all rows, leaf by leaf. Cost: the nodes and leaves that meet the span, whatever the number of lines: a search line
//! by line costs a descent for each. Of states the leaves inside the span are not read: their nodes have the sums.

use super::leaf::StoredRow;
use super::leaves::LeafPin;
use super::nodes::{NodeBounds, Step, meets};
use super::parts::LineStore;
use crate::base::time::Span;
use std::ops::Range;

impl<R: StoredRow> LineStore<R> {
    /// The rows of some lines that meet a span, those without length where they are inside. Returns the number of nodes
    /// and leaves that were looked at.
    pub fn meeting(&self, lines: Range<u32>, span: Span, mut each: impl FnMut(u32, R)) -> (u32, u32) {
        let (mut pin, mut leaves) = (LeafPin::default(), 0);
        let nodes = self.nodes.search(
            lines.clone(),
            span,
            |_| false,
            |step| match step {
                Step::Inside(_) => {}
                Step::Lifted(leaf, row) => {
                    leaves += 1;
                    if let Some(leaf) = self.leaves.get(leaf, &mut pin) {
                        each(row.line, leaf.get(row.row.into(), row.span.start));
                    }
                }
                Step::Leaf(leaf) => {
                    leaves += 1;
                    self.meeting_in_leaf(leaf, &lines, span, &mut pin, &mut each);
                }
            },
        );
        (nodes, leaves)
    }

    /// All rows with their lines, leaf by leaf: each leaf is read once, where a walk over each line would read it for
    /// each of its parts. Rows of a line come in order. Returns the number of nodes and leaves that were looked at.
    pub fn each_row(&self, mut each: impl FnMut(u32, R)) -> (u32, u32) {
        self.leaves.iter().for_each(|leaf| leaf.each_row(&mut each));
        (0, self.leaves.len() as u32)
    }

    /// The rows of a leaf that meet a span and are not lifted.
    fn meeting_in_leaf(
        &self,
        leaf: u32,
        lines: &Range<u32>,
        span: Span,
        pin: &mut LeafPin,
        each: &mut impl FnMut(u32, R),
    ) {
        let Some((begin, leaf)) =
            self.nodes.bounds(leaf).map(|bounds| bounds.span.start).zip(self.leaves.get(leaf, pin))
        else {
            return;
        };
        leaf.each_span::<R>(lines, |line, row, of| {
            if of.start >= begin && meets(of, span) {
                each(line, leaf.get(row, of.start));
            }
        });
    }

    /// The nanoseconds in each state of the rows that meet a span, inside it, of lines for which `is_wanted`; `others`
    /// says whether there are other lines between two bounds. Returns the number of nodes and leaves that were looked
    /// at.
    pub fn times(
        &self,
        span: Span,
        is_wanted: impl Fn(u32) -> bool,
        others: impl Fn(&NodeBounds) -> bool,
        times: &mut [u64],
    ) -> (u32, u32) {
        let (mut pin, mut leaves) = (LeafPin::default(), 0);
        let all = 0..u32::MAX;
        let add = |times: &mut [u64], row: &R| {
            let inside = row.span().clip(span);
            if let Some(time) = times.get_mut(row.state()).filter(|_| !inside.is_empty()) {
                *time += inside.end.abs_diff(inside.start);
            }
        };
        let nodes = self.nodes.search(
            all.clone(),
            span,
            |bounds| !others(bounds),
            |step| match step {
                Step::Inside(of) => times.iter_mut().zip(of).for_each(|(time, of)| *time += of),
                Step::Lifted(leaf, row) if is_wanted(row.line) => {
                    leaves += 1;
                    if let Some(leaf) = self.leaves.get(leaf, &mut pin) {
                        add(times, &leaf.get(row.row.into(), row.span.start));
                    }
                }
                Step::Lifted(..) => {}
                Step::Leaf(leaf) => {
                    leaves += 1;
                    self.meeting_in_leaf(leaf, &all, span, &mut pin, &mut |line, row: R| {
                        if is_wanted(line) {
                            add(times, &row);
                        }
                    });
                }
            },
        );
        (nodes, leaves)
    }
}
