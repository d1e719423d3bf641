//! The rows of a line part by part, and what is known of parts without their leaves.
//!
//! In: a line whose values the state history shows. Out: for each of its parts, by number, where it starts and what is
//! known of its values, which reads no leaf; and its rows by position, each of which reads the leaf of the part, if it
//! is not the one that was read last. ALGORITHMS.md 8.11.

use super::questions::{Access, add};
use super::reader::RowReader;
use super::rows::CpuRun;
use super::segments::{Call, Segment, ThreadId};
use super::store::leaf::StoredRow;
use super::store::leaves::LeafPin;
use super::store::part_value::PartValue;
use super::store::parts::LineView;
use crate::base::time::Timestamp;
use crate::event::host::HostId;
use std::cell::Cell;

/// The parts of one line.
#[derive(Debug)]
pub struct PartCursor<'r, R> {
    line: LineView<'r, R>,
    reader: &'r RowReader<'r>,
    /// The leaf that was read last.
    pin: LeafPin,
    /// Where the leaves are counted that it reads.
    leaves: &'r Cell<u32>,
}

impl<R> Drop for PartCursor<'_, R> {
    fn drop(&mut self) {
        add(self.leaves, self.pin.take_looked());
    }
}

impl RowReader<'_> {
    /// The parts of a thread's segments.
    pub fn segment_parts(&self, thread: ThreadId) -> PartCursor<'_, Segment> {
        PartCursor::new(self, self.timeline().rows.segments.line(thread.index()))
    }

    /// Those of a thread's system calls.
    pub fn call_parts(&self, thread: ThreadId) -> PartCursor<'_, Call> {
        PartCursor::new(self, self.timeline().rows.calls.line(thread.index()))
    }

    /// Those of the threads on a CPU.
    pub fn run_parts(&self, host: HostId, cpu: u32) -> PartCursor<'_, CpuRun> {
        let line = self.timeline().line_of_cpu(host, cpu);
        PartCursor::new(self, line.map_or_else(LineView::default, |line| self.timeline().rows.runs.line(line)))
    }
}

impl<'r, R: StoredRow> PartCursor<'r, R> {
    pub fn new(reader: &'r RowReader<'r>, line: LineView<'r, R>) -> PartCursor<'r, R> {
        PartCursor { line, reader, pin: LeafPin::default(), leaves: reader.tally().leaves(R::FAMILY, Access::At) }
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.line.parts()
    }

    /// The last part that starts at `t` or before.
    pub fn begun(&self, t: Timestamp) -> Option<usize> {
        self.reader.asked(R::FAMILY, Access::At);
        self.line.parts_before(|start| start <= t).checked_sub(1)
    }

    /// Where the first row of a part starts.
    pub fn start(&self, part: usize) -> Option<Timestamp> {
        self.line.part_start(part)
    }

    /// Number of rows of a part.
    pub fn rows(&self, part: usize) -> usize {
        self.line.part(part).map_or(0, |part| part.rows.into())
    }

    /// What is known of the values of a part, by the number of the value in [`StoredRow::shown`].
    pub fn value(&self, part: usize, number: usize) -> Option<PartValue> {
        self.line.part(part)?.values.get(number).copied()
    }

    /// Number of rows of a part that start at `t` or before.
    pub fn rows_begun(&mut self, part: usize, t: Timestamp) -> usize {
        self.line.begun_in_part(part, t, &mut self.pin)
    }

    /// A row of a part.
    pub fn row(&mut self, part: usize, row: usize) -> Option<R> {
        self.reader.asked(R::FAMILY, Access::Next);
        self.line.get(self.line.place(part, row)?, &mut self.pin)
    }
}
