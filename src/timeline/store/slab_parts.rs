//! The parts of lines while their rows are sealed, slab by slab; and the directory that is made of them.
//!
//! In: the parts of each slab, on the worker that seals it. Out: the directory of all lines. What is known of the ends
//! of a part is needed until the part that follows it in its line is known, so that the values of both are compared:
//! a part takes 10 to 20 bytes until then. Cost: each part is packed twice; 8 bytes a part while the directory is made.

use super::directory::{LineDirectory, LinePart, PartsBy, in_order, moment};
use super::leaf::StoredRow;
use super::part_value::PartValue;
use super::values::{LineSoFar, PartEnds};
use crate::base::bit_table::BitTable;

/// Numbers that a part is kept as; its line is the first.
const NUMBERS: usize = 6 + PartEnds::NUMBERS;

/// The parts of a slab as numbers.
pub(super) type PartTable = BitTable<NUMBERS>;

/// A part, and the line that it is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartOfLine {
    pub line: u32,
    pub part: LinePart,
    pub ends: PartEnds,
}

impl PartOfLine {
    /// Add it to others.
    pub fn push_to(self, table: &mut PartTable) {
        let LinePart { start, leaf, first, rows, values, .. } = self.part;
        let (values, [a, b, c, d, e, f]) = (PartValue::to_number(values), self.ends.to_numbers());
        let (line, start, leaf) = (self.line.into(), in_order(start), leaf.into());
        table.push([line, start, leaf, first.into(), rows.into(), values, a, b, c, d, e, f]);
    }

    fn of_row(table: &PartTable, row: usize) -> PartOfLine {
        let [line, start, leaf, first, rows, values, ends @ ..] = table.row(row);
        let (values, ends) = (PartValue::of_number(values).unwrap_or_default(), PartEnds::of_numbers(ends));
        let (start, leaf, first, rows) = (moment(start), leaf as u32, first as u16, rows as u16);
        PartOfLine { line: line as u32, part: LinePart { start, before: 0, leaf, first, rows, values }, ends }
    }
}

/// The parts of a slab, after those of others.
#[derive(Clone, Debug)]
struct PlacedParts {
    /// Number of leaves before its own.
    leaves: u32,
    /// Number of parts before its own.
    first: u32,
    parts: PartTable,
}

/// The parts of the slabs so far.
#[derive(Clone, Debug, Default)]
pub(super) struct PartsOfSlabs(Vec<PlacedParts>);

impl PartsOfSlabs {
    fn len(&self) -> u32 {
        self.0.last().map_or(0, |last| last.first + last.parts.len() as u32)
    }

    /// The slab of a part, which is that of an earlier one or follows it: the next one mostly.
    fn slab_of(&self, number: u32, before: usize) -> usize {
        let rest = self.0.get(before + 1..).unwrap_or(&[]);
        let is_before = |of: &PlacedParts| of.first <= number;
        match rest {
            [first, ..] if !is_before(first) => before,
            [_, second, ..] if !is_before(second) => before + 1,
            _ => before + rest.partition_point(is_before),
        }
    }

    /// Add those of the next slab, which has this many leaves before its own.
    pub fn add(&mut self, leaves: u32, parts: PartTable) {
        if parts.len() > 0 {
            self.0.push(PlacedParts { leaves, first: self.len(), parts });
        }
    }

    /// Give the lines other numbers.
    pub fn renumber(&mut self, new: impl Fn(u32) -> u32) {
        for PlacedParts { parts, .. } in &mut self.0 {
            let old = std::mem::take(parts);
            for row in 0..old.len() {
                let of = PartOfLine::of_row(&old, row);
                PartOfLine { line: new(of.line), ..of }.push_to(parts);
            }
            parts.seal();
        }
    }

    /// The directory of this many lines; `tid` has the tid of a thread.
    pub fn directory<R: StoredRow>(&self, lines: usize, tid: impl Fn(u32) -> Option<i32>) -> LineDirectory {
        let tables = || self.0.iter().map(|of| &of.parts);
        let line = |table: &PartTable, part: usize| table.get(part, 0) as usize;
        let by_line = PartsBy::of(|| tables().flat_map(|of| (0..of.len()).map(move |part| line(of, part))), lines);
        let mut directory = LineDirectory::for_values(R::SHOWN);
        for line in 0..lines {
            directory.begin_line();
            let (mut so_far, mut slab) = (LineSoFar::default(), 0);
            for number in by_line.group(line) {
                slab = self.slab_of(*number, slab);
                let Some(of) = self.0.get(slab) else { continue };
                let PartOfLine { mut part, ends, .. } = PartOfLine::of_row(&of.parts, (number - of.first) as usize);
                so_far.add::<R>(&mut part, &ends, &tid);
                directory.push(part.start, part.leaf + of.leaves, part.positions(), part.values);
            }
        }
        directory.begin_line();
        directory.seal();
        directory
    }
}
