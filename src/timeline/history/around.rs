//! Intervals about a span, made of the rows there.
//!
//! In: a line of rows that are sorted by start. Out: the intervals that meet a span, from the last row before it whose
//! value differs from that of its neighbour, to the first known one after it. Cost: one descent, the rows that are
//! about the span, and the equal neighbours of the first and the last.

use super::StateValue;
use super::join::{Joined, cut};
use crate::base::time::{Span, Timestamp};
use crate::timeline::reader::RowCursor;
use crate::timeline::row::Row;
use crate::timeline::store::leaf::StoredRow;

/// Intervals of an attribute about a span, and what is beside them.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// Ascending: those that meet the span, and the last one before it if its start is unknown.
    pub(super) intervals: Vec<(Span, StateValue)>,
    /// Where the first known value after them begins, if the end of the span is unknown.
    pub(super) next: Option<Timestamp>,
}

impl Around {
    /// Where the last known value before an unknown moment ends, and where the next one begins.
    pub(super) fn known_about(&self, t: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
        let after = self.intervals.partition_point(|(span, _)| span.end <= t);
        let before = after.checked_sub(1).and_then(|at| self.intervals.get(at)).map(|(span, _)| span.end);
        (before, self.intervals.get(after).map(|(span, _)| span.start).or(self.next))
    }
}

/// The intervals that meet a span.
pub(super) fn meeting(intervals: &[(Span, StateValue)], span: Span) -> &[(Span, StateValue)] {
    let from = intervals.partition_point(|(own, _)| own.end <= span.start);
    let rest = intervals.get(from..).unwrap_or(&[]);
    rest.get(..rest.partition_point(|(own, _)| own.start < span.end)).unwrap_or(&[])
}

/// The intervals about `want` of the rows of a line, which are sorted by start, one by one: there may be more than fit
/// into memory. Returns what [`Around::next`] is.
pub(super) fn windowed<R: StoredRow + Row>(
    mut cursor: RowCursor<'_, R>,
    until: Timestamp,
    want: Span,
    value: impl Fn(&R) -> Option<StateValue>,
    add: &mut dyn FnMut(Span, StateValue),
) -> Option<Timestamp> {
    let span = |row: &R| cut(row.span(), until);
    let mut row = cursor.last_begun(want.start);
    // The last known row: its interval is the one before `want`, if it does not reach into it.
    while row.is_some_and(|row| span(&row).is_empty() || value(&row).is_none()) {
        row = cursor.previous_row();
    }
    // The first of its equal neighbours.
    let known = row.as_ref().and_then(&value);
    while row.is_some_and(|row| span(&row).is_empty() || value(&row) == known) {
        row = cursor.previous_row();
    }
    let mut next = if row.is_some() { cursor.next_row() } else { cursor.first() };
    let mut add = |(span, value): (Span, StateValue)| {
        add(span, value);
        span.end
    };
    let (mut joined, mut known_to) = (Joined::default(), None);
    while let Some(row) = next {
        let (span, value) = (span(&row), value(&row));
        if !span.is_empty() {
            known_to = joined.add(span, value).map(&mut add).or(known_to);
            // What is known to the end of `want`, or what is known next, is known.
            let is_after = span.start >= want.end && joined.start() == Some(span.start);
            if is_after && value.is_some() {
                return Some(span.start);
            }
            if is_after && known_to.is_some_and(|end| end >= want.end) {
                return None;
            }
        }
        next = cursor.next_row();
    }
    joined.last().map(add);
    None
}
