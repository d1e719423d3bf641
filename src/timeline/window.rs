//! Questions about all threads in a window of time.
//!
//! In: a span. Out: the rows of all threads that meet it, or the time in each state. Cost: the nodes and leaves of the
//! store that meet the span (`store::nodes`), whatever the number of threads.

use super::reader::RowReader;
use super::row::Row;
use super::segments::{Call, Segment, ThreadId};
use super::store::leaf::StoredRow;
use crate::base::time::Span;

/// The nanoseconds of some threads in each kind of segment, by [`SegmentKind`](super::segments::SegmentKind) as a
/// number.
pub type KindTimes = [u64; Segment::STATES];

/// Threads whose time is not added up with that of all others, ascending.
#[derive(Clone, Debug, Default)]
pub struct ThreadsApart(pub Vec<ThreadId>);

impl ThreadsApart {
    fn contains(&self, thread: ThreadId) -> bool {
        self.0.binary_search(&thread).is_ok()
    }

    /// True where any of them is between two lines, both included.
    fn any_between(&self, low: u32, high: u32) -> bool {
        let from = self.0.partition_point(|thread| thread.raw() < low);
        self.0.get(from).is_some_and(|thread| thread.raw() <= high)
    }
}

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

    /// The time of all threads but some in each kind of segment, inside a span.
    pub fn kind_times(&self, span: Span, apart: &ThreadsApart) -> KindTimes {
        let mut times = [0; Segment::STATES];
        let is_wanted = |line| !apart.contains(ThreadId::from_raw(line));
        let rows = &self.timeline().rows.segments;
        let looked = rows.times(span, is_wanted, |bounds| apart.any_between(bounds.low, bounds.high), &mut times);
        self.tally().ask_across(Segment::FAMILY, looked);
        times
    }
}
