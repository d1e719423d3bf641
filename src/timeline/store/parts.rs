//! Lines as parts of leaves, and the places of their rows.
//!
//! In: the sealed leaves of a family and the parts of each line, in order. Out: the rows of a line by place, by start
//! or by end. A search by start or end is O(log parts + log rows of a part); the next row costs nothing but its
//! numbers. The rows of a line are sorted by start; a search by end is for lines whose rows do not overlap.

use super::directory::{LineDirectory, LinePart};
use super::leaf::{RowBlock, StoredRow};
use super::leaf_bytes::Leaf;
use super::leaves::{LeafPin, Leaves, NO_LEAVES};
use super::nodes::Nodes;
use super::pool::LeafPool;
use crate::base::time::Timestamp;
use get_size2::GetSize;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Rows that are looked at in turn before a search.
const NEAR: usize = 6;

/// The sealed rows of a family.
#[derive(Clone, Debug, GetSize)]
#[get_size(ignore(R))]
pub struct LineStore<R> {
    pub(super) leaves: Leaves,
    pub(super) nodes: Nodes,
    pub(super) directory: Arc<LineDirectory>,
    #[get_size(ignore)]
    pub(super) family: PhantomData<R>,
}

impl<R> Default for LineStore<R> {
    fn default() -> Self {
        LineStore { leaves: Leaves::default(), nodes: Nodes::default(), directory: Arc::default(), family: PhantomData }
    }
}

impl<R: StoredRow> LineStore<R> {
    /// The rows of a line; none for one that is not known.
    #[inline]
    pub fn line(&self, line: usize) -> LineView<'_, R> {
        self.view(self.directory.line(line))
    }

    /// The rows of one of the parts, by its number.
    pub fn rows_of(&self, part: usize) -> LineRows<'_, R> {
        self.view(part..part + 1).all()
    }

    fn view(&self, parts: Range<usize>) -> LineView<'_, R> {
        let (from, end) = (parts.start as u32, parts.end as u32);
        LineView { leaves: &self.leaves, directory: &self.directory, from, end, family: PhantomData }
    }

    pub fn leaves(&self) -> &Leaves {
        &self.leaves
    }

    /// The nodes above the leaves.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Where the rows of each line are.
    pub fn directory(&self) -> &Arc<LineDirectory> {
        &self.directory
    }

    /// Move the leaves to a pool.
    pub fn move_to(&mut self, pool: &Arc<LeafPool>) {
        self.leaves.move_to(pool, R::FAMILY);
    }

    /// True where no line has a row.
    pub fn is_empty(&self) -> bool {
        self.row_count() == 0
    }

    /// Number of rows of all lines.
    pub fn row_count(&self) -> usize {
        self.directory.rows() as usize
    }
}

/// A row by its line and its position in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowPlace {
    pub line: usize,
    pub row: usize,
}

/// The rows of one line.
#[derive(Clone, Copy, Debug)]
pub struct LineView<'s, R> {
    leaves: &'s Leaves,
    directory: &'s LineDirectory,
    /// The number of its first part.
    from: u32,
    /// The one after its last part.
    end: u32,
    family: PhantomData<R>,
}

static NO_LINES: LineDirectory = LineDirectory::for_values(0);

impl<R> Default for LineView<'_, R> {
    fn default() -> Self {
        LineView { leaves: &NO_LEAVES, directory: &NO_LINES, from: 0, end: 0, family: PhantomData }
    }
}

/// A place in a line: a row, or after the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    part: u32,
    /// Below the number of rows of the part; 0 after the last part.
    row: u32,
}

impl<'s, R: StoredRow> LineView<'s, R> {
    /// The numbers of its parts.
    fn numbers(self) -> Range<usize> {
        self.from as usize..self.end as usize
    }

    /// Number of rows.
    pub fn len(self) -> usize {
        self.directory.rows_of(self.numbers()) as usize
    }

    /// True for a line without rows.
    pub fn is_empty(self) -> bool {
        self.from == self.end
    }

    /// Number of parts.
    pub fn parts(self) -> usize {
        self.numbers().len()
    }

    /// One of its parts.
    pub fn part(self, part: usize) -> Option<LinePart> {
        self.directory.part(self.number(part as u32)?)
    }

    /// The number of a part in the directory.
    #[inline(always)]
    fn number(self, part: u32) -> Option<usize> {
        let number = self.from.checked_add(part)?;
        (number < self.end).then_some(number as usize)
    }

    /// Where one of its parts starts.
    #[inline(always)]
    pub fn part_start(self, part: usize) -> Option<Timestamp> {
        Some(self.directory.start(self.number(part as u32)?))
    }

    /// Number of rows of one of its parts: `pin` knows that of the part that was looked up last.
    #[inline(always)]
    fn rows_of_part(self, part: u32, pin: &LeafPin) -> Option<u32> {
        let number = self.number(part)?;
        let known = pin.known_rows(number).map(u32::from);
        Some(known.unwrap_or_else(|| self.directory.rows_of(number..number + 1) as u32))
    }

    /// Number of parts that start before a moment, by `is_before` of their starts.
    #[inline(always)]
    pub fn parts_before(self, is_before: impl Fn(Timestamp) -> bool) -> usize {
        self.directory.starts(self.numbers(), is_before) - self.from as usize
    }

    /// The place of a row of a part.
    pub fn place(self, part: usize, row: usize) -> Option<Place> {
        let has = row < self.rows_of_part(part as u32, &LeafPin::default())? as usize;
        has.then_some(Place { part: part as u32, row: row as u32 })
    }

    /// Number of rows of a part that begin at `t` or before.
    pub fn begun_in_part(self, part: usize, t: Timestamp, pin: &mut LeafPin) -> usize {
        let place = self.search(part + 1, pin, |part, leaf, row| Self::start_in(part, leaf, row) <= t);
        if place.part as usize == part {
            place.row as usize
        } else {
            self.rows_of_part(part as u32, pin).unwrap_or(0) as usize
        }
    }

    /// Behind the last row.
    pub fn end_place(self) -> Place {
        Place { part: self.end - self.from, row: 0 }
    }

    /// The part at a place, and its leaf.
    #[inline(always)]
    fn at<'a>(self, place: Place, pin: &'a mut LeafPin) -> Option<(LinePart, &'a Leaf)>
    where
        's: 'a,
    {
        let part = pin.part(self.directory, self.number(place.part)?)?;
        Some((part, self.leaves.get(part.leaf, pin)?))
    }

    #[inline(always)]
    fn start_in(part: &LinePart, leaf: &Leaf, row: u32) -> Timestamp {
        if row == 0 { part.start } else { leaf.start(R::EXTENT, usize::from(part.first) + row as usize) }
    }

    /// The row at a place.
    #[inline]
    pub fn get(self, place: Place, pin: &mut LeafPin) -> Option<R> {
        let (part, leaf) = self.at(place, pin)?;
        let start = Self::start_in(&part, leaf, place.row);
        Some(leaf.get(usize::from(part.first) + place.row as usize, start))
    }

    /// The row at a place, and some that follow it in its leaf.
    pub fn decode(self, place: Place, rows: &mut Vec<R>, pin: &mut LeafPin) {
        let Some((part, leaf)) = self.at(place, pin) else { return };
        let left = u32::from(part.rows).saturating_sub(place.row) as usize;
        let start = Self::start_in(&part, leaf, place.row);
        leaf.decode::<R>(usize::from(part.first) + place.row as usize, left, start, rows);
    }

    /// The start of the row at a place; that of the first row of a part is resident.
    #[inline(always)]
    pub fn start(self, place: Place, pin: &mut LeafPin) -> Option<Timestamp> {
        if place.row == 0 {
            return self.part_start(place.part as usize);
        }
        let (part, leaf) = self.at(place, pin)?;
        Some(Self::start_in(&part, leaf, place.row))
    }

    /// The end of the row at a place.
    #[inline(always)]
    pub fn end(self, place: Place, pin: &mut LeafPin) -> Option<Timestamp> {
        let (part, leaf) = self.at(place, pin)?;
        Some(leaf.end(usize::from(part.first) + place.row as usize))
    }

    /// So many rows after a place, in the same part.
    #[inline(always)]
    pub fn ahead(self, place: Place, rows: usize) -> Place {
        Place { row: place.row + rows as u32, ..place }
    }

    /// The place after a row.
    #[inline(always)]
    pub fn after(self, place: Place, pin: &LeafPin) -> Place {
        match self.rows_of_part(place.part, pin) {
            Some(rows) if place.row + 1 < rows => Place { row: place.row + 1, ..place },
            Some(_) => Place { part: place.part + 1, row: 0 },
            None => place,
        }
    }

    /// The place before another; `None` for the first.
    #[inline(always)]
    pub fn before(self, place: Place, pin: &LeafPin) -> Option<Place> {
        if place.row > 0 {
            return Some(Place { row: place.row - 1, ..place });
        }
        let part = place.part.checked_sub(1)?;
        Some(Place { part, row: self.rows_of_part(part, pin)?.saturating_sub(1) })
    }

    /// The first place for which `is_before` is false; `is_before` is true up to some row and false from then on.
    /// `after` is the number of parts whose first row may be before that place: only the last of them is searched.
    #[inline]
    fn search(self, after: usize, pin: &mut LeafPin, is_before: impl Fn(&LinePart, &Leaf, u32) -> bool) -> Place {
        let next = Place { part: after as u32, row: 0 };
        let Some(part) = next.part.checked_sub(1) else { return next };
        let Some((of, leaf)) = self.at(Place { part, row: 0 }, pin) else { return next };
        let (mut low, mut high) = (0, u32::from(of.rows));
        while low < high {
            let middle = low.midpoint(high);
            if is_before(&of, leaf, middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        if low < u32::from(of.rows) { Place { part, row: low } } else { next }
    }

    /// The first row that begins at `t` or later.
    #[inline]
    pub fn starts_from(self, t: Timestamp, pin: &mut LeafPin) -> Place {
        let after = self.parts_before(|start| start < t);
        self.search(after, pin, |part, leaf, row| Self::start_in(part, leaf, row) < t)
    }

    /// The first row that starts at `t` or later, if it is `place` or one of the next few; `None` for the first place,
    /// which no question led to.
    #[inline]
    pub fn starts_near(self, place: Place, t: Timestamp, pin: &mut LeafPin) -> Option<Place> {
        if self.start(self.before(place, pin)?, pin)? >= t {
            return None;
        }
        let mut at = place;
        for _ in 0..NEAR {
            if self.start(at, pin).is_none_or(|start| start >= t) {
                return Some(at);
            }
            at = self.after(at, pin);
        }
        None
    }

    /// The first row that begins after `t`.
    #[inline]
    pub fn starts_after(self, t: Timestamp, pin: &mut LeafPin) -> Place {
        let after = self.parts_before(|start| start <= t);
        self.search(after, pin, |part, leaf, row| Self::start_in(part, leaf, row) <= t)
    }

    /// The first row that ends after `t`, where rows do not overlap.
    #[inline]
    pub fn ends_after(self, t: Timestamp, pin: &mut LeafPin) -> Place {
        let after = self.parts_before(|start| start <= t);
        self.search(after, pin, |part, leaf, row| leaf.end(usize::from(part.first) + row as usize) <= t)
    }

    /// The rows from a place on that begin before `until`; `leaves` counts those that are read.
    pub fn rows_before(self, at: Place, until: Timestamp, pin: LeafPin, leaves: &'s Cell<u32>) -> RowsBefore<'s, R> {
        RowsBefore { line: self, next: at, until, pin, leaves }
    }

    /// All rows.
    pub fn all(self) -> LineRows<'s, R> {
        let (next, end, pin) = (Place::default(), self.end_place(), LeafPin::default());
        LineRows { line: self, next, end, block: RowBlock::new(), at: 0, pin }
    }

    /// The position of a place among the rows of the line.
    pub fn position(self, place: Place) -> usize {
        let (from, at) = (self.from as usize, (self.from + place.part) as usize);
        self.directory.rows_of(from..at) as usize + place.row as usize
    }
}

/// Rows of a line in order, decoded some at a time.
#[derive(Clone, Debug)]
pub struct LineRows<'s, R: StoredRow> {
    line: LineView<'s, R>,
    /// Behind the rows of the block.
    next: Place,
    end: Place,
    /// In order.
    block: RowBlock<R>,
    /// The first of them that was not returned.
    at: usize,
    pin: LeafPin,
}

impl<R: StoredRow> LineRows<'_, R> {
    /// Decode the next rows; false where there is none.
    fn refill(&mut self) -> bool {
        self.block.clear();
        self.at = 0;
        if self.next == self.end {
            return false;
        }
        let Some((part, leaf)) = self.line.at(self.next, &mut self.pin) else { return false };
        let until = if self.next.part == self.end.part { self.end.row } else { u32::from(part.rows) };
        let left = until.saturating_sub(self.next.row) as usize;
        let start = LineView::<R>::start_in(&part, leaf, self.next.row);
        leaf.decode(usize::from(part.first) + self.next.row as usize, left, start, &mut self.block);
        let row = self.next.row + self.block.len() as u32;
        self.next = match row < u32::from(part.rows) {
            true => Place { row, ..self.next },
            false => Place { part: self.next.part + 1, row: 0 },
        };
        !self.block.is_empty()
    }
}

impl<R: StoredRow> Iterator for LineRows<'_, R> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        if self.at == self.block.len() && !self.refill() {
            return None;
        }
        let row = self.block.get(self.at).copied();
        self.at += 1;
        row
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let after = self.line.position(self.end).saturating_sub(self.line.position(self.next));
        let left = after + self.block.len() - self.at;
        (left, Some(left))
    }
}

impl<R: StoredRow> DoubleEndedIterator for LineRows<'_, R> {
    fn next_back(&mut self) -> Option<R> {
        if self.next == self.end {
            return if self.at < self.block.len() { self.block.pop() } else { None };
        }
        self.end = self.line.before(self.end, &self.pin)?;
        self.line.get(self.end, &mut self.pin)
    }
}

impl<R: StoredRow> ExactSizeIterator for LineRows<'_, R> {}

/// The rows of a line that begin before a moment.
#[derive(Clone, Debug)]
pub struct RowsBefore<'s, R> {
    line: LineView<'s, R>,
    next: Place,
    until: Timestamp,
    pin: LeafPin,
    leaves: &'s Cell<u32>,
}

impl<R> Drop for RowsBefore<'_, R> {
    fn drop(&mut self) {
        self.leaves.set(self.leaves.get().saturating_add(self.pin.take_looked()));
    }
}

impl<R: StoredRow> Iterator for RowsBefore<'_, R> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        let (part, leaf) = self.line.at(self.next, &mut self.pin)?;
        let start = LineView::<R>::start_in(&part, leaf, self.next.row);
        if start >= self.until {
            return None;
        }
        let row = leaf.get(usize::from(part.first) + self.next.row as usize, start);
        self.next = self.line.after(self.next, &self.pin);
        Some(row)
    }
}
