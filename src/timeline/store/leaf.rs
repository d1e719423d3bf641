//! The rows of one leaf: those of several lines over some span, column by column.
//!
//! The ends of rows count from the first end in the leaf. The starts follow from them: for rows that follow each other
//! from the end of the row before (and a column of gaps, which is empty where they tile a life), for others from a
//! column of lengths. All differences wrap, so any two moments are kept exactly.

use super::columns::BLOCK;
use super::leaf_bytes::{Leaf, LeafWriter, names_lines};
use crate::base::time::{Span, Timestamp};
use crate::timeline::row::Row;
use smallvec::SmallVec;
use std::ops::Range;

/// The most values of a row that the state history shows.
pub const MOST_SHOWN: usize = 2;

/// The most numbers of a row besides its span.
pub(super) const MOST_FIELDS: usize = 6;

/// Columns before those of its numbers: ends; gaps or lengths.
pub(super) const SPAN_COLUMNS: usize = 2;

/// Decoded rows.
pub(super) type RowBlock<R> = SmallVec<[R; BLOCK]>;

/// How the start of a row follows from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It is the end of the row before, mostly.
    Follows,
    /// By its length.
    Length,
    /// It is an instant.
    Instant,
}

/// A row that a leaf can keep: its span, and some numbers, which are best small.
pub trait StoredRow: Row {
    /// How its start is kept.
    #[doc(hidden)]
    const EXTENT: Extent;
    /// How many numbers it has, at most [`MOST_FIELDS`].
    #[doc(hidden)]
    const FIELDS: usize;
    /// One of its numbers.
    #[doc(hidden)]
    fn field(&self, number: usize) -> u64;
    /// How many states it can have whose time nodes add up.
    #[doc(hidden)]
    const STATES: usize = 0;
    /// The state of a row with these numbers, below [`StoredRow::STATES`].
    #[doc(hidden)]
    fn state_of(_field: impl Fn(usize) -> u64) -> usize {
        0
    }
    /// Its state.
    #[doc(hidden)]
    #[inline(always)]
    fn state(&self) -> usize {
        Self::state_of(|number| self.field(number))
    }
    /// How many values of it the state history shows.
    #[doc(hidden)]
    const SHOWN: usize = 0;
    /// These values; `None` for one that is unknown.
    #[doc(hidden)]
    fn shown(&self) -> [Option<u32>; MOST_SHOWN] {
        [None; MOST_SHOWN]
    }
    /// Whether two of these values are shown alike; `tid` has the tid of a thread. `None` where that is not known.
    #[doc(hidden)]
    fn shows_same(a: u32, b: u32, _tid: impl Fn(u32) -> Option<i32>) -> Option<bool> {
        Some(a == b)
    }
    /// A row by its span and its numbers.
    #[doc(hidden)]
    fn of(span: Span, field: impl Fn(usize) -> u64) -> Self;
}

/// The columns of a leaf as they are added.
struct LeafColumns<'r, R> {
    rows: &'r [R],
    leaf: LeafWriter,
    /// Those of the column that is added; kept for the next.
    numbers: Vec<u64>,
}

impl<R> LeafColumns<'_, R> {
    fn append(&mut self, number: impl FnMut(&R) -> u64) {
        self.numbers.clear();
        self.numbers.extend(self.rows.iter().map(number));
        self.leaf.append(&self.numbers);
    }
}

/// `a` minus `b`, which [`Timestamp::wrapping_add`] adds again.
#[inline(always)]
fn difference(a: Timestamp, b: Timestamp) -> u64 {
    a.ns().wrapping_sub(b.ns()) as u64
}

impl Leaf {
    /// The leaf of some rows; `parts` has the line and the position of the first row of each part, ascending.
    pub fn encode<R: StoredRow>(rows: &[R], parts: impl Iterator<Item = (u32, usize)> + Clone) -> Leaf {
        let base = rows.iter().map(|row| row.span().end).min().unwrap_or_default();
        let leaf = LeafWriter::new(R::FAMILY, base, rows.len());
        let mut columns = LeafColumns { rows, leaf, numbers: Vec::new() };
        columns.append(|row| difference(row.span().end, base));
        match R::EXTENT {
            Extent::Instant => columns.leaf.append(&[]),
            Extent::Length => columns.append(|row| difference(row.span().end, row.span().start)),
            Extent::Follows => {
                let mut first = parts.clone().map(|(_, first)| first).peekable();
                let (mut at, mut before) = (0, Timestamp::ZERO);
                columns.append(|row| {
                    let from = std::mem::replace(&mut before, row.span().end);
                    at += 1;
                    if first.next_if_eq(&(at - 1)).is_some() { 0 } else { difference(row.span().start, from) }
                });
            }
        }
        for number in 0..R::FIELDS {
            columns.append(|row| row.field(number));
        }
        let LeafColumns { mut leaf, mut numbers, .. } = columns;
        if names_lines(R::FAMILY) {
            let mut append = |number: &dyn Fn((u32, usize)) -> u64| {
                numbers.clear();
                numbers.extend(parts.clone().map(number));
                leaf.append_items(&numbers);
            };
            // One larger, so that each takes a byte.
            append(&|(line, _)| u64::from(line) + 1);
            append(&|(_, first)| first as u64);
            if R::EXTENT == Extent::Follows {
                append(&|(_, first)| rows.get(first).map_or(0, |row| difference(row.span().end, row.span().start)));
            }
        }
        leaf.finish()
    }

    /// A number of a part, whose columns are after those of the rows.
    #[inline(always)]
    fn of_part<R: StoredRow>(&self, column: usize, part: usize) -> u64 {
        let column = self.columns.get(SPAN_COLUMNS + R::FIELDS + column);
        column.map_or(0, |column| column.get(&self.bytes, part))
    }

    /// The line of a part.
    #[inline(always)]
    pub fn line_of<R: StoredRow>(&self, part: usize) -> u32 {
        (self.of_part::<R>(0, part) as u32).wrapping_sub(1)
    }

    /// The position of the first row of a part; the number of rows for the part after the last.
    #[inline(always)]
    fn first_of<R: StoredRow>(&self, part: usize) -> usize {
        if part < self.items() { self.of_part::<R>(1, part) as usize } else { self.rows() }
    }

    /// True where it has these parts, each with its line and the position of its first row.
    pub fn names<R: StoredRow>(&self, parts: impl ExactSizeIterator<Item = (u32, usize)>) -> bool {
        !names_lines(R::FAMILY)
            || parts.len() == self.items()
                && parts.enumerate().all(|(at, part)| part == (self.line_of::<R>(at), self.first_of::<R>(at)))
    }

    /// The spans of the rows of some lines, with the line and the position of each.
    pub fn each_span<R: StoredRow>(&self, lines: &Range<u32>, mut each: impl FnMut(u32, usize, Span)) {
        let (mut low, mut high) = (0, self.items());
        while low < high {
            let middle = low.midpoint(high);
            if self.line_of::<R>(middle) < lines.start {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let (mut part, mut row) = (low, self.first_of::<R>(low));
        let (mut line, mut next, mut end) = (0, row, Timestamp::ZERO);
        let (mut ends, mut extents) = ([0; BLOCK], [0; BLOCK]);
        let [end_column, extent_column, ..] = &self.columns;
        while row < self.rows() {
            end_column.fill(&self.bytes, row, &mut ends);
            extent_column.fill(&self.bytes, row, &mut extents);
            for (of_end, extent) in ends.iter().zip(&extents).take(self.rows() - row) {
                let before = std::mem::replace(&mut end, self.base.wrapping_add(*of_end));
                let first = (row == next).then_some(part);
                if let Some(first) = first {
                    line = self.line_of::<R>(first);
                    if line >= lines.end {
                        return;
                    }
                    part += 1;
                    next = self.first_of::<R>(part);
                }
                let start = match (R::EXTENT, first) {
                    (Extent::Follows, Some(first)) => end.wrapping_add(self.of_part::<R>(2, first).wrapping_neg()),
                    (Extent::Follows, None) => before.wrapping_add(*extent),
                    (Extent::Length, _) => end.wrapping_add(extent.wrapping_neg()),
                    (Extent::Instant, _) => end,
                };
                each(line, row, Span { start, end });
                row += 1;
            }
        }
    }

    /// All rows with their lines.
    pub fn each_row<R: StoredRow>(&self, mut each: impl FnMut(u32, R)) {
        let mut block = RowBlock::<R>::new();
        for part in 0..self.items() {
            let (line, first, end) = (self.line_of::<R>(part), self.first_of::<R>(part), self.first_of::<R>(part + 1));
            for row in (first..end).step_by(BLOCK) {
                let start = match R::EXTENT {
                    Extent::Follows if row == first => {
                        self.end(row).wrapping_add(self.of_part::<R>(2, part).wrapping_neg())
                    }
                    extent => self.start(extent, row),
                };
                block.clear();
                self.decode(row, end - row, start, &mut block);
                block.iter().for_each(|row| each(line, *row));
            }
        }
    }

    /// The end of a row.
    #[inline(always)]
    pub fn end(&self, row: usize) -> Timestamp {
        let [ends, ..] = &self.columns;
        self.base.wrapping_add(ends.get(&self.bytes, row))
    }

    /// The start of a row that is not the first of its line here.
    #[inline(always)]
    pub fn start(&self, extent: Extent, row: usize) -> Timestamp {
        let [_, extents, ..] = &self.columns;
        match extent {
            Extent::Instant => self.end(row),
            Extent::Length => self.end(row).wrapping_add(extents.get(&self.bytes, row).wrapping_neg()),
            Extent::Follows => self.end(row.saturating_sub(1)).wrapping_add(extents.get(&self.bytes, row)),
        }
    }

    /// Some rows from `row` on, at most [`BLOCK`]; the first of them starts at `start`.
    pub fn decode<R: StoredRow>(&self, row: usize, count: usize, start: Timestamp, rows: &mut impl Extend<R>) {
        let count = count.min(BLOCK);
        let mut columns = [[0; BLOCK]; SPAN_COLUMNS + MOST_FIELDS];
        let sources = self.columns.iter().take(SPAN_COLUMNS + R::FIELDS);
        for (numbers, column) in columns.iter_mut().zip(sources) {
            column.fill(&self.bytes, row, numbers);
        }
        let [ends, extents, fields @ ..] = &columns;
        let mut start = start;
        rows.extend((0..count).map(|at| {
            let number = |column: &[u64; BLOCK]| column.get(at).copied().unwrap_or(0);
            let end = self.base.wrapping_add(number(ends));
            let begin = match R::EXTENT {
                Extent::Instant => end,
                Extent::Length => end.wrapping_add(number(extents).wrapping_neg()),
                Extent::Follows if at == 0 => start,
                Extent::Follows => start.wrapping_add(number(extents)),
            };
            start = end;
            R::of(Span { start: begin, end }, |field| fields.get(field).map_or(0, number))
        }));
    }

    /// Whether `is_right` holds for each of `count` rows from `first` on, of which the first starts at `start`.
    pub fn all<R: StoredRow>(
        &self,
        first: usize,
        count: usize,
        start: Timestamp,
        mut is_right: impl FnMut(&R) -> bool,
    ) -> bool {
        let mut block = RowBlock::<R>::new();
        (first..first + count).step_by(BLOCK).all(|row| {
            block.clear();
            let start = if row == first { start } else { self.start(R::EXTENT, row) };
            self.decode(row, first + count - row, start, &mut block);
            block.iter().all(&mut is_right)
        })
    }

    /// The state of a row: no other number of it is read.
    #[inline(always)]
    pub fn state<R: StoredRow>(&self, row: usize) -> usize {
        let [_, _, fields @ ..] = &self.columns;
        R::state_of(|field| fields.get(field).map_or(0, |column| column.get(&self.bytes, row)))
    }

    /// A row that starts at `start`.
    #[inline(always)]
    pub fn get<R: StoredRow>(&self, row: usize, start: Timestamp) -> R {
        let span = Span { start, end: self.end(row) };
        let [_, _, fields @ ..] = &self.columns;
        R::of(span, |field| fields.get(field).map_or(0, |column| column.get(&self.bytes, row)))
    }
}
