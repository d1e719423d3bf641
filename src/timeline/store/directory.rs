//! The directory of lines: in which leaves the rows of each line are, without reading one.
//!
//! In: the parts of one line after the other, those of a line in order. Out: any of them by its number, and those of a
//! line, in constant time. What is known of a part is in one row of a [`BitTable`]: 7 to 10 bytes, and one for a line.

use super::part_value::{PartValue, PartValues};
use crate::base::bit_table::BitTable;
use crate::base::packed::packed;
use crate::base::time::Timestamp;
use get_size2::GetSize;
use std::ops::Range;

/// The rows of one line in one leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinePart {
    /// Start of the first row.
    pub start: Timestamp,
    /// Number of rows before them: in the line, and of all lines before it in the directory.
    pub before: u64,
    pub leaf: u32,
    /// Position of the first row in the leaf.
    pub first: u16,
    pub rows: u16,
    /// What is known of the values of the rows.
    pub values: PartValues,
}

impl LinePart {
    /// The positions of its rows in the leaf.
    pub(super) fn positions(&self) -> Range<usize> {
        let first = usize::from(self.first);
        first..first + usize::from(self.rows)
    }
}

/// Columns of a part.
const START: usize = 0;
const LEAF: usize = 1;
const FIRST: usize = 2;
const BEFORE: usize = 3;
const VALUES: usize = 4;
const COLUMNS: usize = 5;

packed! { LineDirectory { parts, lines, rows } }

/// Where the rows of all lines are.
#[derive(Clone, Debug, PartialEq, Eq, GetSize)]
pub struct LineDirectory {
    /// By line and position.
    parts: BitTable<COLUMNS>,
    /// By line: the number of its first part; then the number of parts.
    lines: BitTable<1>,
    /// Rows of all parts.
    rows: u64,
}

impl Default for LineDirectory {
    fn default() -> Self {
        LineDirectory::for_values(0)
    }
}

/// A moment as a number in the same order.
pub(super) fn in_order(t: Timestamp) -> u64 {
    (t.ns() as u64) ^ 1 << 63
}

/// The moment of a number.
pub(super) fn moment(number: u64) -> Timestamp {
    Timestamp::new((number ^ 1 << 63) as i64)
}

impl LineDirectory {
    /// A directory without lines, of rows that show this many values.
    pub const fn for_values(shown: usize) -> LineDirectory {
        // What is known of values changes with late changes of rows.
        let reserved = [0, 0, 0, 0, shown as u8 * PartValue::BITS];
        LineDirectory { parts: BitTable::with_reserved(reserved), lines: BitTable::with_reserved([0]), rows: 0 }
    }

    /// How many values its rows show.
    pub fn shown(&self) -> usize {
        usize::from(self.parts.reserved(VALUES) / PartValue::BITS)
    }

    /// Add the next part of the line that is added: where it starts, its leaf, its rows there, its values.
    pub fn push(&mut self, start: Timestamp, leaf: u32, rows: Range<usize>, values: PartValues) {
        let number = PartValue::to_number(values);
        self.parts.push([in_order(start), leaf.into(), rows.start as u64, self.rows, number]);
        self.rows += rows.len() as u64;
    }

    /// The next parts are those of the next line; also before the first one, and after the last.
    pub fn begin_line(&mut self) {
        self.lines.push([self.parts.len() as u64]);
    }

    /// Once all lines are there.
    pub fn seal(&mut self) {
        self.parts.seal();
        self.lines.seal();
    }

    /// True where each number is one that it can be: in a file they may be anything. Each part has rows, which follow
    /// those of the part before, and each line has the parts after those of the line before.
    pub fn is_whole(&self) -> bool {
        let firsts = || (0..self.lines.len()).map(|line| self.lines.get(line, 0));
        let ends = (firsts().next().unwrap_or(0), firsts().next_back().unwrap_or(0));
        let mut before = 0..=0;
        let mut follows = |rows: u64| {
            let next = rows.saturating_add(1)..=rows.saturating_add(u16::MAX.into());
            std::mem::replace(&mut before, next).contains(&rows)
        };
        let is_part = |[_, leaf, first, before, values]: [u64; COLUMNS]| {
            let in_leaf = leaf <= u32::MAX.into() && first <= u16::MAX.into();
            in_leaf && follows(before) && PartValue::of_number(values).is_some()
        };
        let is_right = (0..self.len()).map(|part| self.parts.row(part)).all(is_part) && follows(self.rows);
        is_right && firsts().is_sorted() && ends == (0, self.len() as u64)
    }

    /// Number of lines.
    pub fn lines(&self) -> usize {
        self.lines.len().saturating_sub(1)
    }

    /// Number of parts of all lines.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Number of rows of all lines.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The numbers of the parts of a line; none for one that is not known.
    #[inline]
    pub fn line(&self, line: usize) -> Range<usize> {
        match line < self.lines() {
            true => self.lines.get(line, 0) as usize..self.lines.get(line + 1, 0) as usize,
            false => 0..0,
        }
    }

    /// The line of a part.
    pub fn line_of(&self, part: usize) -> usize {
        let after = self.lines.partition_point((0, self.lines.len()), 0, |first| first as usize <= part);
        after.saturating_sub(1)
    }

    /// A part by its number.
    #[inline]
    pub fn part(&self, part: usize) -> Option<LinePart> {
        (part < self.len()).then(|| {
            let [start, leaf, first, before, values] = self.parts.row(part);
            LinePart {
                start: moment(start),
                before,
                leaf: leaf as u32,
                first: first as u16,
                rows: (self.rows_before(part + 1) - before) as u16,
                values: PartValue::of_number(values).unwrap_or_default(),
            }
        })
    }

    /// All parts, by line and position.
    pub fn iter(&self) -> impl Iterator<Item = LinePart> {
        (0..self.len()).filter_map(|part| self.part(part))
    }

    /// Where a part starts.
    #[inline(always)]
    pub fn start(&self, part: usize) -> Timestamp {
        moment(self.parts.get(part, START))
    }

    /// Number of rows of all parts before one, which may be that after the last.
    #[inline(always)]
    pub fn rows_before(&self, part: usize) -> u64 {
        if part < self.len() { self.parts.get(part, BEFORE) } else { self.rows }
    }

    /// Number of rows of some parts.
    #[inline(always)]
    pub fn rows_of(&self, parts: Range<usize>) -> u64 {
        self.rows_before(parts.end).saturating_sub(self.rows_before(parts.start))
    }

    /// The first of some parts of a line for which `is_before` of its start is false.
    #[inline(always)]
    pub fn starts(&self, parts: Range<usize>, is_before: impl Fn(Timestamp) -> bool) -> usize {
        self.parts.partition_point((parts.start, parts.end), START, |start| is_before(moment(start)))
    }

    /// The part of a line that has its row at a position among the rows of the line.
    pub fn with_row(&self, parts: Range<usize>, row: usize) -> Option<usize> {
        let row = self.rows_before(parts.start).checked_add(row as u64)?;
        let after = self.parts.partition_point((parts.start, parts.end), BEFORE, |before| before <= row);
        after.checked_sub(1).filter(|part| parts.contains(part) && row < self.rows_before(after))
    }

    /// Change what is known of the values of a part.
    pub fn set_values(&mut self, part: usize, values: PartValues) {
        self.parts.set(part, VALUES, PartValue::to_number(values));
    }

    /// The numbers of all parts by leaf and position in it. A part of a leaf that is not among this many is left out.
    pub fn by_leaf(&self, leaves: usize) -> PartsBy {
        let mut all = PartsBy::of(|| (0..self.len()).map(|part| self.parts.get(part, LEAF) as usize), leaves);
        // Lines may have other numbers than when the leaf was made.
        all.sort_groups(|part| self.parts.get(part as usize, FIRST));
        all
    }

    /// The line and the position of the first row of some parts.
    pub fn named(&self, parts: &[u32]) -> impl ExactSizeIterator<Item = (u32, usize)> + Clone {
        let of = |part: &u32| (self.line_of(*part as usize) as u32, self.parts.get(*part as usize, FIRST) as usize);
        parts.iter().map(of)
    }

    /// The directory of some lines, of rows that show this many values.
    #[cfg(test)]
    pub fn of(lines: &[Vec<LinePart>], shown: usize) -> LineDirectory {
        let mut directory = LineDirectory::for_values(shown);
        for line in lines {
            directory.begin_line();
            line.iter().for_each(|part| directory.push(part.start, part.leaf, part.positions(), part.values));
        }
        directory.begin_line();
        directory.seal();
        directory
    }
}

/// The numbers of parts by another number: that of their leaf, say.
#[derive(Clone, Debug, Default)]
pub struct PartsBy {
    parts: Vec<u32>,
    /// By group: after its last part.
    ends: Vec<u32>,
}

impl PartsBy {
    /// A stable sort of parts by their groups, of this number; parts of others are left out.
    pub fn of<I: Iterator<Item = usize>>(group_of_parts: impl Fn() -> I, groups: usize) -> PartsBy {
        let mut ends = vec![0_u32; groups.saturating_add(1)];
        for group in group_of_parts() {
            ends.get_mut(group.saturating_add(1)).into_iter().for_each(|count| *count += 1);
        }
        let mut all = 0;
        for end in &mut ends {
            all += *end;
            *end = all;
        }
        ends.pop();
        let mut parts = vec![0; all as usize];
        for (part, group) in (0..).zip(group_of_parts()) {
            if let Some(next) = ends.get_mut(group) {
                parts.get_mut(*next as usize).into_iter().for_each(|place| *place = part);
                *next += 1;
            }
        }
        PartsBy { parts, ends }
    }

    /// Sort the parts of each group by a number of each.
    fn sort_groups(&mut self, number: impl Fn(u32) -> u64) {
        let mut rest = self.parts.as_mut_slice();
        let mut before = 0;
        for end in &self.ends {
            let group = rest.split_off_mut(..(end - std::mem::replace(&mut before, *end)) as usize);
            group.unwrap_or_default().sort_by_key(|part| number(*part));
        }
    }

    /// The parts of a group.
    pub fn group(&self, group: usize) -> &[u32] {
        let from = group.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(group).copied().unwrap_or(from);
        self.parts.get(from as usize..end as usize).unwrap_or(&[])
    }
}
