//! Questions about all threads in a window of time.
//!
//! In: a span. Out: the rows of all threads that meet it, or the time in each state. Cost: the nodes and leaves of the
//! store that meet the span (`store::nodes`), whatever the number of threads. The time of one thread is that of its
//! sums, where they are kept, and of the rows about the borders, whatever the number of rows.

use super::reader::RowReader;
use super::row::Row;
use super::segments::{Call, Segment, ThreadId};
pub use super::store::across::{LanePlaces, LaneQuestion, LaneTable, StateSet};
use super::store::leaf::StoredRow;
use super::store::sums::{self, KindTimes, PartTimes};
use crate::base::time::Span;
use std::ops::Range;

impl RowReader<'_> {
    /// The segments of all threads that meet a span, in no order.
    pub fn segments_across(&self, span: Span, mut each: impl FnMut(ThreadId, &Segment)) {
        let rows = &self.timeline().rows.segments;
        let looked = rows.meeting(0..u32::MAX, span, |line, row| each(ThreadId::from_raw(line), &row));
        self.tally().ask_across(Segment::FAMILY, looked);
    }

    /// The system calls of all threads that meet a span, in no order.
    pub fn calls_across(&self, span: Span, mut each: impl FnMut(ThreadId, &Call)) {
        let rows = &self.timeline().rows.calls;
        let looked = rows.meeting(0..u32::MAX, span, |line, row| each(ThreadId::from_raw(line), &row));
        self.tally().ask_across(Call::FAMILY, looked);
    }

    /// All system calls, those of a thread in order.
    pub fn each_call(&self, mut each: impl FnMut(ThreadId, Call)) {
        let looked = self.timeline().rows.calls.each_row(|line, row| each(ThreadId::from_raw(line), row));
        self.tally().ask_across(Call::FAMILY, looked);
    }

    /// Where the time of threads is that a question asks for.
    pub fn lane_places(&self, asked: &LaneQuestion<'_>) -> LanePlaces<'_> {
        let places = self.timeline().rows.segments.lane_places(asked);
        self.tally().ask_across(Segment::FAMILY, places.looked());
        places
    }

    /// The time of threads in each kind of segment at some of these places: `add` gets lane, columns, kind, and the
    /// nanoseconds in the one column; `None`: all of the columns.
    pub fn lane_times(
        &self,
        asked: &LaneQuestion<'_>,
        places: &LanePlaces<'_>,
        part: Range<usize>,
        add: impl FnMut(usize, Range<usize>, usize, Option<u64>),
    ) {
        self.timeline().rows.segments.times(asked, places, part, add);
    }

    /// The time of a thread in each kind of segment, inside a span; `None` where no sums of the thread are kept.
    pub fn kind_times_of(&self, thread: ThreadId, span: Span) -> Option<KindTimes> {
        let (rows, at) = (&self.timeline().rows, thread.index());
        rows.sums.has(at).then(|| {
            let line = rows.segments.line(at);
            let parts = line.parts_before(|start| start < span.start)..line.parts_before(|start| start <= span.end);
            let start = |part| line.part_start(part).unwrap_or(span.end);
            let (mut times, borders) = match rows.sums.between(at, parts) {
                Some(PartTimes { from, to, times }) => {
                    (times, vec![Span::new(span.start, start(from)), Span::new(start(to), span.end)])
                }
                None => ([0; Segment::STATES], vec![span]),
            };
            for border in borders {
                self.segments(thread).within(border).for_each(|row| sums::add(&mut times, &row, border));
            }
            times
        })
    }
}
