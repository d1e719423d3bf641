//! The only way to the rows of a [`Timeline`]: readers and their cursors.
//!
//! A [`RowReader`] belongs to one analysis and one worker. It gives [`RowCursor`]s over the rows of one line (the
//! segments of a thread, the runs of a CPU, ...), which are sorted by start. A cursor keeps its place: a question for
//! the same row or the next costs a comparison, any other a binary search, O(log rows). The questions are counted
//! ([`super::questions`]).

use super::questions::{Access, Asker, Family, Tally};
use super::segments::{Call, Segment, StackSample, ThreadId};
use super::timeline::{CounterOwner, CounterValue, CpuRun, DiskRequest, HostId, Mark, PageFault, Service, Timeline};
use crate::base::time::{Span, Timestamp};
use std::cell::Cell;

/// What an analysis reads with; one for each worker.
#[derive(Debug)]
pub struct RowReader<'t> {
    timeline: &'t Timeline,
    asker: Asker,
    tally: Tally,
}

impl Drop for RowReader<'_> {
    fn drop(&mut self) {
        self.timeline.questions.add(self.asker, &self.tally);
    }
}

/// A row of a line.
pub trait Row: Copy {
    /// The rows of which it is one.
    const FAMILY: Family;
    /// When; empty for an instant.
    fn span(&self) -> Span;
}

/// Declares the rows that have a span, and those of an instant.
macro_rules! rows {
    ($($row:ident $family:ident $this:ident => $span:expr;)+) => {$(
        impl Row for $row {
            const FAMILY: Family = Family::$family;
            #[inline(always)]
            fn span(&self) -> Span {
                let $this = self;
                $span
            }
        }
    )+};
}

rows! {
    Segment Segments row => row.span;
    Call Calls row => row.span;
    StackSample Samples row => Span::new(row.time, row.time);
    CpuRun Runs row => row.span;
    DiskRequest Requests row => row.span;
    Service Services row => row.span;
    PageFault Faults row => Span::new(row.time, row.time);
    CounterValue Counters row => Span::new(row.time, row.time);
}

impl<'t> RowReader<'t> {
    pub(super) fn new(timeline: &'t Timeline, asker: Asker) -> RowReader<'t> {
        RowReader { timeline, asker, tally: Tally::new() }
    }

    /// The segments of a thread, which tile its life.
    pub fn segments(&self, thread: ThreadId) -> RowCursor<'_, Segment> {
        self.cursor(self.timeline.rows.get(thread.index()).map_or(&[], |rows| &rows.segments))
    }

    /// The system calls of a thread, by start.
    pub fn calls(&self, thread: ThreadId) -> RowCursor<'_, Call> {
        self.cursor(self.timeline.rows.get(thread.index()).map_or(&[], |rows| &rows.calls))
    }

    /// The stack samples of a thread, by time.
    pub fn samples(&self, thread: ThreadId) -> RowCursor<'_, StackSample> {
        self.cursor(self.timeline.rows.get(thread.index()).map_or(&[], |rows| &rows.samples))
    }

    /// The threads that ran on a CPU; they do not overlap.
    pub fn runs(&self, host: HostId, cpu: u32) -> RowCursor<'_, CpuRun> {
        self.cursor(self.timeline.runs_of(host, cpu))
    }

    /// All disk requests, by start.
    pub fn requests(&self) -> RowCursor<'_, DiskRequest> {
        self.cursor(&self.timeline.disk)
    }

    /// The work of a kernel thread for others; it does not overlap.
    pub fn services(&self, thread: ThreadId) -> RowCursor<'_, Service> {
        self.cursor(equal(&self.timeline.services, |service| service.thread, thread))
    }

    /// The page faults of a thread; none where they were not recorded.
    pub fn faults(&self, thread: ThreadId) -> RowCursor<'_, PageFault> {
        let faults = self.timeline.page_faults.as_deref().unwrap_or(&[]);
        self.cursor(equal(faults, |fault| fault.thread, thread))
    }

    /// The values of a hardware counter, by its position among the counters of the timeline.
    pub fn counter(&self, counter: usize, owner: CounterOwner) -> RowCursor<'_, CounterValue> {
        let values = self.timeline.counters.get(counter).map_or(&[][..], |counter| &counter.values);
        self.cursor(equal(values, |value| value.owner, owner))
    }

    /// The delimiting events of all tasks, in the order in which they were recorded or added.
    pub fn marks(&self) -> impl ExactSizeIterator<Item = &'t Mark> + use<'t> {
        count(self.tally.of(Family::Marks, Access::All));
        self.timeline.marks.iter()
    }

    /// One of them by its position.
    pub fn mark(&self, position: usize) -> Option<&'t Mark> {
        count(self.tally.of(Family::Marks, Access::At));
        self.timeline.marks.get(position)
    }

    /// Count a question that a table answers which is derived from the rows, or resident.
    #[inline(always)]
    pub fn asked(&self, family: Family, access: Access) {
        count(self.tally.of(family, access));
    }

    fn cursor<'r, R: Row>(&'r self, rows: &'r [R]) -> RowCursor<'r, R> {
        RowCursor { rows, at: 0, tally: &self.tally }
    }
}

#[inline(always)]
fn count(counter: &Cell<u32>) {
    counter.set(counter.get().saturating_add(1));
}

/// The rows of one owner among rows that are sorted by owner.
fn equal<R, K: Ord + Copy>(rows: &[R], owner: impl Fn(&R) -> K, wanted: K) -> &[R] {
    let start = rows.partition_point(|row| owner(row) < wanted);
    let rows = rows.get(start..).unwrap_or(&[]);
    rows.get(..rows.partition_point(|row| owner(row) <= wanted)).unwrap_or(&[])
}

/// A place among the rows of one line.
#[derive(Clone, Debug)]
pub struct RowCursor<'r, R> {
    rows: &'r [R],
    /// The row that was returned last.
    at: usize,
    tally: &'r Tally,
}

impl<'r, R: Row> RowCursor<'r, R> {
    #[inline(always)]
    fn count(&self, access: Access) {
        count(self.tally.of(R::FAMILY, access));
    }

    /// True where the line has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row that ends after `t` first: the one that holds at `t`, else the next that begins. For lines whose rows do
    /// not overlap.
    #[inline]
    pub fn first_after(&mut self, t: Timestamp) -> Option<R> {
        self.count(Access::At);
        let ends_after = |row: &R| row.span().end > t;
        let before = self.at.checked_sub(1).and_then(|before| self.rows.get(before));
        // A walk in order of time asks for the same row or the next.
        if before.is_none_or(|row| !ends_after(row)) {
            for at in [self.at, self.at + 1] {
                match self.rows.get(at) {
                    Some(row) if !ends_after(row) => {}
                    found => {
                        self.at = at.min(self.rows.len());
                        return found.copied();
                    }
                }
            }
        }
        self.at = self.rows.partition_point(|row| !ends_after(row));
        self.rows.get(self.at).copied()
    }

    /// The row that holds at `t`. For lines whose rows do not overlap.
    pub fn at(&mut self, t: Timestamp) -> Option<R> {
        self.first_after(t).filter(|row| row.span().start <= t)
    }

    /// The last row that begins at `t` or before.
    pub fn last_begun(&mut self, t: Timestamp) -> Option<R> {
        self.count(Access::At);
        self.at = self.rows.partition_point(|row| row.span().start <= t);
        self.at = self.at.checked_sub(1)?;
        self.rows.get(self.at).copied()
    }

    /// The first row that begins at `t` or later.
    pub fn first_from(&mut self, t: Timestamp) -> Option<R> {
        self.count(Access::At);
        self.at = self.rows.partition_point(|row| row.span().start < t);
        self.rows.get(self.at).copied()
    }

    /// The row behind the one that was returned last.
    pub fn next_row(&mut self) -> Option<R> {
        self.count(Access::Next);
        self.at = (self.at + 1).min(self.rows.len());
        self.rows.get(self.at).copied()
    }

    /// The row before the one that was returned last.
    pub fn previous_row(&mut self) -> Option<R> {
        self.count(Access::Next);
        self.at = self.at.checked_sub(1)?;
        self.rows.get(self.at).copied()
    }

    /// The rows that begin in a span, in order.
    #[inline]
    pub fn begun_in(&mut self, span: Span) -> impl Iterator<Item = R> + use<'r, R> {
        self.count(Access::Within);
        self.at = self.rows.partition_point(|row| row.span().start < span.start);
        let rows = self.rows.get(self.at..).unwrap_or(&[]);
        rows.iter().take_while(move |row| row.span().start < span.end).copied()
    }

    /// The rows that meet a span, in order; those without length where they are inside. For lines whose rows do not
    /// overlap.
    #[inline]
    pub fn within(&mut self, span: Span) -> impl Iterator<Item = R> + use<'r, R> {
        self.count(Access::Within);
        self.at = self.rows.partition_point(|row| row.span().end <= span.start);
        let rows = self.rows.get(self.at..).unwrap_or(&[]);
        rows.iter().take_while(move |row| row.span().start < span.end).copied()
    }

    /// All rows, in order.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = R> + ExactSizeIterator + Clone + use<'r, R> {
        self.count(Access::All);
        self.rows.iter().copied()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The first row.
    pub fn first(&mut self) -> Option<R> {
        self.count(Access::At);
        self.at = 0;
        self.rows.first().copied()
    }

    /// The last row.
    pub fn last(&mut self) -> Option<R> {
        self.count(Access::At);
        self.at = self.rows.len().saturating_sub(1);
        self.rows.last().copied()
    }
}
