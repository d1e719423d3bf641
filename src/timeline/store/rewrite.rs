//! Rows that change after they were sealed.
//!
//! In: places of rows, and what becomes of each. Starts stay, since they order a line and find its parts; so do ends in
//! families that show values, whose parts know which rows touch. Out: their leaves and the nodes above are made anew,
//! and what is known of the values of their parts, and of the parts after these. Cost: the leaves that change, the
//! list of parts, and the leaves of neighbours where the first or last row of a part shows another value than before.

use super::directory::LinePart;
use super::leaf::{MOST_SHOWN, StoredRow};
use super::leaf_bytes::Leaf;
use super::nodes::{LeafNode, Nodes};
use super::part_value::PartValues;
use super::parts::{LineStore, RowPlace};
use super::values::{of_rows, shown};
use std::ops::Range;
use std::sync::Arc;

/// A row by its leaf and its position there, and its number among those that change.
type Change = (u32, usize, usize);

impl<R: StoredRow> LineStore<R> {
    /// Change some rows but not their starts, nor their ends where [`StoredRow::SHOWN`] is not 0. `rows` has their
    /// lines and their positions in the line; `change` gets the position among `rows`. Several changes of one row come
    /// in the order of `rows`.
    pub fn rewrite(&mut self, rows: &[RowPlace], mut change: impl FnMut(usize, &mut R)) {
        let mut wanted: Vec<Change> = Vec::with_capacity(rows.len());
        for (number, RowPlace { line, row }) in rows.iter().enumerate() {
            let (directory, parts) = (&self.directory, self.directory.line(*line));
            let before = directory.rows_before(parts.start);
            let part = directory.with_row(parts, *row).and_then(|part| directory.part(part));
            if let Some(part) = part {
                let inside = *row - (part.before - before) as usize;
                wanted.push((part.leaf, usize::from(part.first) + inside, number));
            }
        }
        if wanted.is_empty() {
            return;
        }
        wanted.sort_unstable();
        let by_leaf = self.directory.by_leaf(self.leaves.len());
        let mut joining: Vec<Range<usize>> = Vec::new();
        let mut nodes = self.nodes.leaves();
        for changes in wanted.chunk_by(|a, b| a.0 == b.0) {
            let Some(leaf) = changes.first().map(|(leaf, ..)| *leaf) else { continue };
            let changed = self.rewrite_leaf(by_leaf.group(leaf as usize), changes, &mut change, &mut nodes);
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
        let directory = Arc::clone(&self.directory);
        let own: Vec<LinePart> = parts.iter().filter_map(|at| directory.part(*at as usize)).collect();
        let mut all: Vec<R> = parts.iter().flat_map(|at| self.rows_of(*at as usize)).collect();
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
        for (((at, part), old), new) in parts.iter().zip(&own).zip(before).zip(facts(&all)) {
            let mut values = part.values;
            for (value, new) in values.iter_mut().zip(new.0) {
                // One that is not sure stays so: spans are as they were.
                *value =
                    if value.is_sure() && new.is_sure() { new.with_joins(value.joins()) } else { Default::default() };
            }
            self.set_values(*at as usize, values);
            if old.1 != new.1 {
                other.push(*at as usize);
            }
        }
        let Some(leaf) = own.first().map(|part| part.leaf) else { return other };
        let named = directory.named(parts);
        let (changed, node) = (Leaf::encode(&all, named.clone()), LeafNode::new(&all, named));
        self.leaves.replace(leaf as usize, changed, R::FAMILY);
        if let Some(place) = nodes.get_mut(leaf as usize) {
            *place = node;
        }
        other
    }

    fn set_values(&mut self, part: usize, values: PartValues) {
        // The directory of a file has other readers.
        Arc::make_mut(&mut self.directory).set_values(part, values);
    }

    /// Whether the part at a position joins the one before it, once their values have changed and their spans have
    /// not.
    pub(super) fn join_again(&mut self, at: usize) {
        let Some(part) = self.directory.part(at).filter(|part| part.values.iter().any(|value| value.is_sure())) else {
            return;
        };
        let from = self.directory.line(self.directory.line_of(at)).start;
        let has_length = |row: &R| !row.span().is_empty();
        let first = self.rows_of(at).find(has_length);
        let last = (from..at).rev().filter_map(|part| self.rows_of(part).rev().find(has_length)).next();
        let touching = first.zip(last).filter(|(first, last)| last.span().end == first.span().start);
        let joins = touching.map_or([false; MOST_SHOWN], |(first, last)| {
            let mut joins = [false; MOST_SHOWN];
            let both = shown(&first).into_iter().zip(shown(&last));
            joins.iter_mut().zip(both).for_each(|(joins, (a, b))| *joins = a != 0 && a == b);
            joins
        });
        let mut values = part.values;
        for (value, joins) in values.iter_mut().zip(joins).filter(|(value, _)| value.is_sure()) {
            *value = value.with_joins(joins);
        }
        self.set_values(at, values);
    }

    /// The positions of the parts whose first row with a length may continue the part at a position: that part and
    /// those after it, up to one that has such a row.
    pub(super) fn may_join(&self, at: usize) -> Range<usize> {
        let end = self.directory.line(self.directory.line_of(at)).end;
        let has_length = |part: usize| self.rows_of(part).any(|row| !row.span().is_empty());
        let after = (at + 1..end).find(|part| has_length(*part));
        at..after.map_or(end, |after| after + 1)
    }
}
