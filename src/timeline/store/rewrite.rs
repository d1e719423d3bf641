//! Rows that change after they were sealed.
//!
//! In: places of rows, and what becomes of each. Starts stay, since they order a line and find its parts; so do ends in
//! families that show values, whose parts know which rows touch. Out: their leaves and the nodes above are made anew,
//! and what is known of the values of their parts, and of the parts behind these. Cost: the leaves that change, the
//! list of parts, and the leaves of neighbours where the first or last row of a part shows another value than before.

use super::leaf::StoredRow;
use super::leaf_bytes::Leaf;
use super::nodes::{LeafNode, Nodes};
use super::parts::{LinePart, LineStore, LineView, RowPlace};
use super::values::{MOST_SHOWN, of_rows, shown};
use std::marker::PhantomData;
use std::ops::Range;

/// A row by its leaf and its position there, and its number among those that change.
type Change = (u32, usize, usize);

impl<R: StoredRow> LineStore<R> {
    /// Change some rows but not their starts, nor their ends where [`StoredRow::SHOWN`] is not 0. `rows` has their
    /// lines and their positions in the line; `change` gets the position among `rows`. Several changes of one row come
    /// in the order of `rows`.
    pub fn rewrite(&mut self, rows: &[RowPlace], mut change: impl FnMut(usize, &mut R)) {
        let mut wanted: Vec<Change> = Vec::with_capacity(rows.len());
        for (number, RowPlace { line, row }) in rows.iter().enumerate() {
            let view = self.line(*line);
            let part = view.parts.partition_point(|part| part.before as usize <= *row);
            let Some(part) = part.checked_sub(1).and_then(|at| view.parts.get(at)) else { continue };
            let inside = *row - part.before as usize;
            if inside < usize::from(part.rows) {
                wanted.push((part.leaf, usize::from(part.first) + inside, number));
            }
        }
        if wanted.is_empty() {
            return;
        }
        wanted.sort_unstable();
        let mut by_leaf: Vec<u32> = (0..self.parts.len() as u32).collect();
        by_leaf.sort_unstable_by_key(|at| self.parts.get(*at as usize).map(|part| (part.leaf, part.first)));
        let mut joining: Vec<Range<usize>> = Vec::new();
        let mut nodes = self.nodes.leaves();
        for changes in wanted.chunk_by(|a, b| a.0 == b.0) {
            let Some(leaf) = changes.first().map(|(leaf, ..)| *leaf) else { continue };
            let leaf_of = |at: &u32| self.parts.get(*at as usize).map_or(u32::MAX, |part| part.leaf);
            let from = by_leaf.partition_point(|at| leaf_of(at) < leaf);
            let until = by_leaf.partition_point(|at| leaf_of(at) <= leaf);
            let changed = self.rewrite_leaf(by_leaf.get(from..until).unwrap_or(&[]), changes, &mut change, &mut nodes);
            joining.extend(changed.into_iter().map(|at| self.may_join(at)));
        }
        self.nodes = Nodes::of(nodes);
        let mut joining: Vec<usize> = joining.into_iter().flatten().collect();
        joining.sort_unstable();
        joining.dedup();
        joining.into_iter().for_each(|at| self.join_again(at));
    }

    /// Change rows of one leaf, of which these are the parts; those whose first or last row shows another value.
    fn rewrite_leaf(
        &mut self,
        parts: &[u32],
        changes: &[Change],
        change: &mut impl FnMut(usize, &mut R),
        nodes: &mut [LeafNode],
    ) -> Vec<usize> {
        let own: Vec<LinePart> = parts.iter().filter_map(|at| self.parts.get(*at as usize)).copied().collect();
        let views = own.chunks(1).map(|part| LineView { leaves: &self.leaves, parts: part, family: PhantomData });
        let mut all: Vec<R> = views.flat_map(LineView::all).collect();
        let facts = |all: &[R]| -> Vec<_> {
            own.iter().map(|part| of_rows(part.start, all.get(part.positions()).unwrap_or(&[]))).collect()
        };
        let before = facts(&all);
        for (_, row, number) in changes {
            if let Some(row) = all.get_mut(*row) {
                change(*number, row);
            }
        }
        let mut other = Vec::new();
        for ((at, old), new) in parts.iter().zip(before).zip(facts(&all)) {
            let Some(part) = self.parts.get_mut(*at as usize) else { continue };
            for (value, new) in part.values.iter_mut().zip(new.0) {
                // One that is not sure stays so: spans are as they were.
                *value =
                    if value.is_sure() && new.is_sure() { new.with_joins(value.joins()) } else { Default::default() };
            }
            if old.1 != new.1 {
                other.push(*at as usize);
            }
        }
        let Some(leaf) = own.first().map(|part| part.leaf) else { return other };
        let lines = parts.iter().map(|at| self.lines.partition_point(|from| from <= at).saturating_sub(1) as u32);
        let named = lines.zip(own.iter().map(|part| usize::from(part.first)));
        let (changed, node) = (Leaf::encode(&all, named.clone()), LeafNode::new(&all, named));
        self.leaves.replace(leaf as usize, changed, R::FAMILY);
        if let Some(place) = nodes.get_mut(leaf as usize) {
            *place = node;
        }
        other
    }

    /// Whether the part at a position joins the one before it, once their values have changed and their spans have
    /// not.
    pub(super) fn join_again(&mut self, at: usize) {
        let Some(part) = self.parts.get(at).filter(|part| part.values.iter().any(|value| value.is_sure())) else {
            return;
        };
        let line = self.lines.partition_point(|from| *from as usize <= at).saturating_sub(1);
        let from = self.lines.get(line).map_or(at, |from| *from as usize);
        let has_length = |row: &R| !row.span().is_empty();
        let first = self.rows_of(part).find(has_length);
        let before = self.parts.get(from..at).unwrap_or(&[]).iter().rev();
        let last = before.filter_map(|part| self.rows_of(part).rev().find(has_length)).next();
        let touching = first.zip(last).filter(|(first, last)| last.span().end == first.span().start);
        let joins = touching.map_or([false; MOST_SHOWN], |(first, last)| {
            let mut joins = [false; MOST_SHOWN];
            let both = shown(&first).into_iter().zip(shown(&last));
            joins.iter_mut().zip(both).for_each(|(joins, (a, b))| *joins = a != 0 && a == b);
            joins
        });
        if let Some(part) = self.parts.get_mut(at) {
            part.values.iter_mut().zip(joins).for_each(|(value, joins)| {
                if value.is_sure() {
                    *value = value.with_joins(joins);
                }
            });
        }
    }

    /// The positions of the parts whose first row with a length may continue the part at a position: that part and
    /// those behind it, up to one that has such a row.
    pub(super) fn may_join(&self, at: usize) -> Range<usize> {
        let line = self.lines.partition_point(|from| *from as usize <= at);
        let end = self.lines.get(line).map_or(at + 1, |end| *end as usize);
        let has_length = |part: &LinePart| self.rows_of(part).any(|row| !row.span().is_empty());
        let behind = self.parts.get(at + 1..end).unwrap_or(&[]).iter().position(has_length);
        at..behind.map_or(end, |behind| at + 2 + behind)
    }
}
