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

/// Columns of parts: the line, the position of the first row, and its length where starts follow from the row before.
const PART_COLUMNS: usize = 3;

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

    /// The first part whose line is not below a number.
    fn part_from<R: StoredRow>(&self, line: u32) -> usize {
        let (mut low, mut high) = (0, self.items());
        while low < high {
            let middle = low.midpoint(high);
            if self.line_of::<R>(middle) < line {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The rows of some lines that meet a span and start at `begin` or later: the line, the position and the span of
    /// each. Spans are compared a block at a time and without a branch for each.
    pub fn each_meeting<R: StoredRow>(
        &self,
        lines: &Range<u32>,
        begin: Timestamp,
        span: Span,
        mut each: impl FnMut(u32, usize, Span),
    ) {
        let from = self.part_from::<R>(lines.start);
        let end = self.first_of::<R>(self.part_from::<R>(lines.end));
        let mut parts = PartColumns::new::<R>(self, from);
        let (mut row, mut line, mut before) = (self.first_of::<R>(from), 0, Timestamp::ZERO);
        let (mut ends, mut extents) = ([0; BLOCK], [0; BLOCK]);
        let (mut spans, mut line_of_rows) = ([Span::default(); BLOCK], [0; BLOCK]);
        let [end_column, extent_column, ..] = &self.columns;
        while row < end {
            end_column.fill(&self.bytes, row, &mut ends);
            extent_column.fill(&self.bytes, row, &mut extents);
            for (of, (end, extent)) in spans.iter_mut().zip(ends.iter().zip(&extents)) {
                let end = self.base.wrapping_add(*end);
                let start = match R::EXTENT {
                    Extent::Follows => before.wrapping_add(*extent),
                    Extent::Length => end.wrapping_add(extent.wrapping_neg()),
                    Extent::Instant => end,
                };
                before = end;
                *of = Span { start, end };
            }
            line_of_rows.fill(line);
            while let Some(first) = parts.next_before(row + BLOCK) {
                line = first.line;
                line_of_rows.iter_mut().skip(first.row - row).for_each(|of| *of = line);
                if let (Extent::Follows, Some(of)) = (R::EXTENT, spans.get_mut(first.row - row)) {
                    of.start = of.end.wrapping_add(first.length.wrapping_neg());
                }
            }
            let mut met = spans.iter().enumerate().fold(0_u32, |met, (at, of)| {
                let is_met = (of.start >= begin) & (of.start < span.end);
                met | u32::from(is_met & ((of.end > span.start) | (of.start >= span.start))) << at
            });
            met &= u32::MAX.checked_shr((u32::BITS as usize - (end - row).min(BLOCK)) as u32).unwrap_or(0);
            while met != 0 {
                let at = met.trailing_zeros() as usize % BLOCK;
                met &= met - 1;
                each(line_of_rows[at], row + at, spans[at]);
            }
            row += BLOCK;
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
        self.with_span(row, Span { start, end: self.end(row) })
    }

    /// A row whose span is known.
    #[inline(always)]
    pub fn with_span<R: StoredRow>(&self, row: usize, span: Span) -> R {
        let [_, _, fields @ ..] = &self.columns;
        R::of(span, |field| fields.get(field).map_or(0, |column| column.get(&self.bytes, row)))
    }
}

/// The first row of a part.
struct FirstRow {
    line: u32,
    row: usize,
    /// Its duration, where starts follow from the row before.
    length: u64,
}

/// The columns of the parts of a leaf, read a block at a time.
struct PartColumns<'l> {
    leaf: &'l Leaf,
    /// Position of these columns among those of the leaf.
    columns: usize,
    part: usize,
    /// By column; from the last multiple of a block on.
    numbers: [[u64; BLOCK]; PART_COLUMNS],
}

impl<'l> PartColumns<'l> {
    /// From a part on.
    fn new<R: StoredRow>(leaf: &'l Leaf, part: usize) -> PartColumns<'l> {
        let columns = SPAN_COLUMNS + R::FIELDS;
        let mut parts = PartColumns { leaf, columns, part, numbers: [[0; BLOCK]; PART_COLUMNS] };
        parts.read();
        parts
    }

    fn read(&mut self) {
        let columns = self.leaf.columns.iter().skip(self.columns);
        for (numbers, column) in self.numbers.iter_mut().zip(columns) {
            column.fill(&self.leaf.bytes, self.part / BLOCK * BLOCK, numbers);
        }
    }

    /// The first row of the next part, where it is before a row.
    #[inline(always)]
    fn next_before(&mut self, row: usize) -> Option<FirstRow> {
        let [lines, firsts, lengths] = &self.numbers;
        let at = self.part % BLOCK;
        let first =
            FirstRow { line: (lines[at] as u32).wrapping_sub(1), row: firsts[at] as usize, length: lengths[at] };
        if self.part >= self.leaf.items() || first.row >= row {
            return None;
        }
        self.part += 1;
        if self.part % BLOCK == 0 {
            self.read();
        }
        Some(first)
    }
}
