//! The time of each thread in each state up to some of its parts.
//!
//! ```text
//!  parts of a line   |  70 rows  |  90 rows  |        400 rows        |  20  |  ...
//!  sums                                      ^ of 160 rows            ^ of 560
//! ```
//! Nodes add up all lines (`nodes`), so they know nothing of the cells of one. In: the segments of threads, as they are
//! written to a file. Out: for parts about [`SPACING`] rows apart the time in each state of all rows before them in the
//! line. The time in a span is the difference of the last of these sums in it and the first, and that of the rows
//! between them and its borders: whatever the number of rows in between. A line whose rows overlap has no sums, since
//! the history shows only one of two rows then. Cost: making them reads all rows; 20 to 30 bytes for each.

use super::leaf::StoredRow;
use super::parts::LineStore;
use crate::base::bit_table::BitTable;
use crate::base::packed::packed;
use crate::base::time::Span;
use crate::timeline::Segment;
use get_size2::GetSize;
use std::ops::Range;

/// Rows between two sums of a line, at least.
const SPACING: u64 = 128;

/// The nanoseconds in each kind of segment, by [`SegmentKind`](crate::timeline::SegmentKind) as a number.
pub type KindTimes = [u64; Segment::STATES];

/// The column of the part; those of the states follow.
const PART: usize = 0;
const COLUMNS: usize = 1 + Segment::STATES;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, GetSize)]
pub struct StateSums {
    /// By line: the number of its first sum; then the number of sums.
    lines: BitTable<1>,
    /// By line: the position of a part in it, and the time before that.
    sums: BitTable<COLUMNS>,
}

packed! { StateSums { lines, sums } }

/// The time of a line between two of its parts.
#[derive(Clone, Copy, Debug)]
pub struct PartTimes {
    /// The position of the first part.
    pub from: usize,
    /// The position of the part after the last.
    pub to: usize,
    pub times: KindTimes,
}

impl StateSums {
    /// Of all segments.
    pub fn of(segments: &LineStore<Segment>) -> StateSums {
        let (directory, mut all) = (segments.directory(), StateSums::default());
        for line in 0..directory.lines() {
            all.lines.push([all.sums.len() as u64]);
            let own = directory.line(line);
            let state = |part| directory.part(part).and_then(|part| part.values.first().copied());
            if !own.clone().all(|part| state(part).is_some_and(|value| value.is_sure())) {
                continue;
            }
            let (mut sum, mut from) = ([0; COLUMNS], own.start);
            for (position, part) in own.enumerate() {
                if directory.rows_of(from..part) >= SPACING {
                    (sum[PART], from) = (position as u64, part);
                    all.sums.push(sum);
                }
                let [_, times @ ..] = &mut sum;
                segments.rows_of(part).for_each(|row| add(times, &row, row.span));
            }
        }
        all.lines.push([all.sums.len() as u64]);
        all.lines.seal();
        all.sums.seal();
        all
    }

    /// Whether a line has any.
    pub fn has(&self, line: usize) -> bool {
        !self.of_line(line).is_empty()
    }

    fn of_line(&self, line: usize) -> Range<usize> {
        match line + 1 < self.lines.len() {
            true => self.lines.get(line, 0) as usize..self.lines.get(line + 1, 0) as usize,
            false => 0..0,
        }
    }

    /// The time of a line between the first and the last sum at some of its parts; `None` where there are not two.
    pub fn between(&self, line: usize, parts: Range<usize>) -> Option<PartTimes> {
        let Range { start, end } = self.of_line(line);
        let at = |position: usize| self.sums.partition_point((start, end), PART, |part| part < position as u64);
        let (first, last) = (at(parts.start), at(parts.end).checked_sub(1)?);
        let ([from, before @ ..], [to, mut times @ ..]) = (self.sums.row(first), self.sums.row(last));
        times.iter_mut().zip(before).for_each(|(time, before)| *time = time.wrapping_sub(before));
        (first < last).then_some(PartTimes { from: from as usize, to: to as usize, times })
    }
}

/// Add the time of a row inside a span.
pub fn add(times: &mut KindTimes, row: &Segment, span: Span) {
    let inside = row.span.clip(span);
    if let Some(time) = times.get_mut(row.state()).filter(|_| !inside.is_empty()) {
        *time = time.wrapping_add(inside.end.abs_diff(inside.start));
    }
}
