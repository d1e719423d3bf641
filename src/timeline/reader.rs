//! The only way to the rows of a [`Timeline`]: readers and their cursors.
//!
//! A [`RowReader`] belongs to one analysis and one worker. It gives [`RowCursor`]s over the rows of one line (the
//! segments of a thread, the runs of a CPU, ...), which are sorted by start. A cursor keeps its place and its leaf: a
//! question for the same row or the next costs a comparison, any other two binary searches, O(log rows). Rows are in
//! compressed leaves (`timeline::store`), in memory or in a file; a row that cannot be read back is absent, and the
//! work ends with the reason (`store::pool`). The questions are counted ([`super::questions`]).

use super::derived::StackLines;
use super::questions::{Access, Asker, Family, Tally, add};
use super::rows::{CounterOwner, CounterValue, CpuRun, DiskRequest, MarkRow, PageFault, Service};
use super::sealed::Timeline;
use super::segments::{Call, Segment, StackChange, StackSample, ThreadId};
use super::store::leaf::StoredRow;
use super::store::leaves::LeafPin;
use super::store::parts::{LineView, Place, RowsBefore};
use crate::base::time::{Span, Timestamp};
use crate::event::host::HostId;
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
        self.timeline.questions.iter().for_each(|counts| self.tally.add_to(counts, self.asker));
    }
}

impl Timeline {
    /// A reader of its rows, for one analysis on one worker.
    pub fn reader(&self, asker: Asker) -> RowReader<'_> {
        RowReader::new(self, asker)
    }
}

impl<'t> RowReader<'t> {
    pub fn new(timeline: &'t Timeline, asker: Asker) -> RowReader<'t> {
        RowReader { timeline, asker, tally: Tally::new() }
    }

    /// The timeline that is read.
    pub fn timeline(&self) -> &'t Timeline {
        self.timeline
    }

    /// The segments of a thread, which tile its life.
    pub fn segments(&self, thread: ThreadId) -> RowCursor<'_, Segment> {
        self.cursor(self.timeline.rows.segments.line(thread.index()))
    }

    /// The system calls of a thread, by start.
    pub fn calls(&self, thread: ThreadId) -> RowCursor<'_, Call> {
        self.cursor(self.timeline.rows.calls.line(thread.index()))
    }

    /// The stack samples of a thread, by time.
    pub fn samples(&self, thread: ThreadId) -> RowCursor<'_, StackSample> {
        self.cursor(self.timeline.rows.samples.line(thread.index()))
    }

    /// The stacks of a line of `lines`, which an analysis derived.
    pub fn stacks<'r>(&'r self, lines: &'r StackLines, line: usize) -> RowCursor<'r, StackChange> {
        self.cursor(lines.line(line))
    }

    /// The threads that ran on a CPU; they do not overlap.
    pub fn runs(&self, host: HostId, cpu: u32) -> RowCursor<'_, CpuRun> {
        let line = self.timeline.line_of_cpu(host, cpu);
        self.cursor(line.map_or_else(LineView::default, |line| self.timeline.rows.runs.line(line)))
    }

    /// All disk requests, by start.
    pub fn requests(&self) -> RowCursor<'_, DiskRequest> {
        self.cursor(self.timeline.rows.requests.line(0))
    }

    /// The work of a kernel thread for others; it does not overlap.
    pub fn services(&self, thread: ThreadId) -> RowCursor<'_, Service> {
        self.cursor(self.timeline.rows.services.line(thread.index()))
    }

    /// The page faults of a thread; none where they were not recorded.
    pub fn faults(&self, thread: ThreadId) -> RowCursor<'_, PageFault> {
        let faults = self.timeline.rows.page_faults.as_ref();
        self.cursor(faults.map_or_else(LineView::default, |faults| faults.line(thread.index())))
    }

    /// The values of a hardware counter, by its position among the counters of the timeline.
    pub fn counter(&self, counter: usize, owner: CounterOwner) -> RowCursor<'_, CounterValue> {
        let counter = self.timeline.rows.counters.get(counter);
        let line = counter.and_then(|counter| Some(counter.values.line(counter.owners.binary_search(&owner).ok()?)));
        self.cursor(line.unwrap_or_default())
    }

    /// The delimiting events of all tasks, in the order in which they were recorded or added.
    pub fn marks(&self) -> impl ExactSizeIterator<Item = MarkRow> + use<'t> {
        self.asked(Family::Marks, Access::All);
        self.timeline.rows.marks.all()
    }

    /// Number of them.
    pub fn mark_count(&self) -> usize {
        self.timeline.rows.marks.len()
    }

    /// One of them by its number.
    pub fn mark(&self, number: u32) -> Option<MarkRow> {
        self.asked(Family::Marks, Access::At);
        self.timeline.rows.marks.get(number)
    }

    /// Count a question that a table answers which is derived from the rows, or resident.
    #[inline(always)]
    pub fn asked(&self, family: Family, access: Access) {
        self.tally.ask(family, access);
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    fn cursor<'r, R: StoredRow>(&'r self, line: LineView<'r, R>) -> RowCursor<'r, R> {
        RowCursor::new(line, &self.tally)
    }
}

/// A place among the rows of one line.
#[derive(Clone, Debug)]
pub struct RowCursor<'r, R> {
    line: LineView<'r, R>,
    /// Where a search or the last decoding led; a walk is some rows ahead.
    from: Place,
    /// The row there, where it was returned last.
    row: Option<R>,
    pin: LeafPin,
    walk: Walk<R>,
    /// Where the leaves are counted that the last question looks at.
    leaves: &'r Cell<u32>,
    tally: &'r Tally,
}

impl<R> Drop for RowCursor<'_, R> {
    fn drop(&mut self) {
        self.count_leaves();
    }
}

impl<R> RowCursor<'_, R> {
    #[inline(always)]
    fn count_leaves(&mut self) {
        if let looked @ 1.. = self.pin.take_looked() {
            add(self.leaves, looked);
        }
    }
}

/// Rows that are decoded together for a walk from row to row.
#[derive(Clone, Debug)]
struct Walk<R> {
    /// From the place of the cursor on, in one part; none where it does not walk.
    rows: Vec<R>,
    /// Those that were returned.
    taken: usize,
    /// Steps from row to row since the cursor was put to its place.
    steps: u32,
}

/// Steps from row to row before more than one is decoded at a time.
const STEPS: u32 = 3;

impl<'r, R: StoredRow> RowCursor<'r, R> {
    pub(super) fn new(line: LineView<'r, R>, tally: &'r Tally) -> RowCursor<'r, R> {
        let walk = Walk { rows: Vec::new(), taken: 0, steps: 0 };
        let leaves = tally.leaves(R::FAMILY, Access::At);
        RowCursor { line, from: Place::default(), row: None, pin: LeafPin::default(), walk, leaves, tally }
    }

    #[inline(always)]
    fn count(&mut self, access: Access) {
        self.count_leaves();
        self.leaves = self.tally.leaves(R::FAMILY, access);
        self.tally.ask(R::FAMILY, access);
    }

    /// The rows from the place of the cursor on that begin before a moment.
    #[inline]
    fn rows_before(&self, until: Timestamp) -> RowsBefore<'r, R> {
        self.line.rows_before(self.from, until, self.pin.clone(), self.leaves)
    }

    /// Put the cursor to a place; what was decoded for a walk belongs to another.
    #[inline(always)]
    fn put(&mut self, at: Place, row: Option<R>) {
        (self.from, self.row) = (at, row);
        self.walk.rows.clear();
        (self.walk.taken, self.walk.steps) = (0, 0);
    }

    /// The place of the row that was returned last.
    #[inline(always)]
    fn place(&self) -> Place {
        self.line.ahead(self.from, self.walk.taken.saturating_sub(1))
    }

    #[inline(always)]
    fn row(&self) -> Option<R> {
        match self.walk.taken.checked_sub(1) {
            Some(last) => self.walk.rows.get(last).copied(),
            None => self.row,
        }
    }

    /// True where the line has no row.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// The row that ends after `t` first: the one that holds at `t`, else the next that begins. For lines whose rows do
    /// not overlap.
    #[inline]
    pub fn first_after(&mut self, t: Timestamp) -> Option<R> {
        self.count(Access::At);
        // A walk in order of time asks for the same row or the next.
        match self.row().map(|row| row.span()) {
            Some(span) if span.start <= t && t < span.end => self.row(),
            Some(span) if span.end <= t => {
                let next = self.line.after(self.place(), &self.pin);
                let is_next = self.line.end(next, &mut self.pin).is_none_or(|end| end > t);
                let place = if is_next { next } else { self.line.ends_after(t, &mut self.pin) };
                self.go_to(place)
            }
            _ => {
                let place = self.line.ends_after(t, &mut self.pin);
                self.go_to(place)
            }
        }
    }

    /// The row that holds at `t`. For lines whose rows do not overlap.
    pub fn at(&mut self, t: Timestamp) -> Option<R> {
        self.first_after(t).filter(|row| row.span().start <= t)
    }

    /// The last row that begins at `t` or before.
    pub fn last_begun(&mut self, t: Timestamp) -> Option<R> {
        self.count(Access::At);
        let place = self.starts_after(t);
        self.go_before(place)
    }

    /// The first place whose row begins after `t`: often near the last one.
    #[inline]
    fn starts_after(&mut self, t: Timestamp) -> Place {
        // A cursor that was not asked yet is not near: looking there would read the first leaf.
        let at = self.place();
        let was_asked = self.row().is_some() || at != Place::default();
        let from = self.line.after(at, &self.pin);
        let near =
            t.checked_add(1).filter(|_| was_asked).and_then(|after| self.line.starts_near(from, after, &mut self.pin));
        near.unwrap_or_else(|| self.line.starts_after(t, &mut self.pin))
    }

    /// The first row that begins at `t` or later.
    pub fn first_from(&mut self, t: Timestamp) -> Option<R> {
        self.count(Access::At);
        let place = self.line.starts_from(t, &mut self.pin);
        self.go_to(place)
    }

    /// The row after the one that was returned last.
    #[inline]
    pub fn next_row(&mut self) -> Option<R> {
        self.count(Access::Next);
        match self.walk.rows.get(self.walk.taken) {
            Some(row) => {
                self.walk.taken += 1;
                Some(*row)
            }
            None => self.step(),
        }
    }

    /// The next row, where it is not decoded; after some steps with rows that follow it.
    #[inline(never)]
    fn step(&mut self) -> Option<R> {
        let next = self.line.after(self.place(), &self.pin);
        let steps = self.walk.steps.saturating_add(1);
        let row = if steps > STEPS { None } else { self.line.get(next, &mut self.pin) };
        self.put(next, row);
        if steps > STEPS {
            self.line.decode(next, &mut self.walk.rows, &mut self.pin);
            self.walk.taken = self.walk.rows.len().min(1);
        }
        self.walk.steps = steps;
        self.row()
    }

    /// The row before the one that was returned last.
    pub fn previous_row(&mut self) -> Option<R> {
        self.count(Access::Next);
        self.go_before(self.place())
    }

    /// The start of the row after the one that was returned last.
    pub fn next_start(&mut self) -> Option<Timestamp> {
        self.line.start(self.line.after(self.place(), &self.pin), &mut self.pin)
    }

    fn go_to(&mut self, place: Place) -> Option<R> {
        let row = self.line.get(place, &mut self.pin);
        self.put(place, row);
        row
    }

    /// The row before a place; the cursor stays there where there is none.
    fn go_before(&mut self, place: Place) -> Option<R> {
        match self.line.before(place, &self.pin) {
            Some(before) => self.go_to(before),
            None => {
                self.put(place, None);
                None
            }
        }
    }

    /// The rows that begin in a span, in order.
    #[inline]
    pub fn begun_in(&mut self, span: Span) -> impl Iterator<Item = R> + use<'r, R> {
        self.count(Access::Within);
        // Spans in order of time begin a few rows after the one before.
        let near = self.line.starts_near(self.place(), span.start, &mut self.pin);
        let place = near.unwrap_or_else(|| self.line.starts_from(span.start, &mut self.pin));
        self.put(place, None);
        self.rows_before(span.end)
    }

    /// The rows that hold in a span, in order, for rows that each hold until the next one.
    #[inline]
    pub fn holding_in(&mut self, span: Span) -> impl Iterator<Item = R> + use<'r, R> {
        self.count(Access::Within);
        let next = self.starts_after(span.start);
        self.put(self.line.before(next, &self.pin).unwrap_or(next), None);
        self.rows_before(span.end)
    }

    /// The rows that meet a span, in order; those without length where they are inside. For lines whose rows do not
    /// overlap.
    #[inline]
    pub fn within(&mut self, span: Span) -> impl Iterator<Item = R> + use<'r, R> {
        self.count(Access::Within);
        let place = self.line.ends_after(span.start, &mut self.pin);
        self.put(place, None);
        self.rows_before(span.end)
    }

    /// All rows, in order.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = R> + ExactSizeIterator + Clone + use<'r, R> {
        self.tally.ask(R::FAMILY, Access::All);
        add(self.tally.leaves(R::FAMILY, Access::All), self.line.parts() as u32);
        self.line.all()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// The first row.
    pub fn first(&mut self) -> Option<R> {
        self.count(Access::At);
        self.go_to(Place::default())
    }

    /// The last row.
    pub fn last(&mut self) -> Option<R> {
        self.count(Access::At);
        self.go_before(self.line.end_place())
    }
}
