//! Values in order of their starts become intervals.
//!
//! In: values of one attribute with their spans. Out: its intervals: of two that overlap the later one counts, and
//! neighbours of equal value are one interval. Traces contradict themselves, and the lines of several threads that had
//! one tid are joined, so values may overlap. Cost: linear; a sort where they are not in order.

use super::StateValue;
use crate::base::time::{Span, Timestamp};

/// Write the intervals of values up to a moment. Where two overlap, the later one ends the earlier one; neighbours of
/// equal value become one interval.
pub(super) fn join(
    values: impl Iterator<Item = (Span, Option<StateValue>)> + Clone,
    until: Timestamp,
    mut write: impl FnMut(Span, StateValue),
) {
    let values = values.map(|(span, value)| (cut(span, until), value)).filter(|(span, _)| !span.is_empty());
    // The values of one thread are in order; only those of several threads of one tid, or of a timeline that
    // contradicts itself, need sorting.
    let mut joined = Joined::default();
    let mut add = |(span, value)| joined.add(span, value).into_iter().for_each(|(span, value)| write(span, value));
    if values.clone().is_sorted_by_key(|(span, _)| span.start) {
        values.for_each(&mut add);
    } else {
        let mut values: Vec<(Span, Option<StateValue>)> = values.collect();
        values.sort_by_key(|(span, _)| span.start);
        values.into_iter().for_each(&mut add);
    }
    joined.last().into_iter().for_each(|(span, value)| write(span, value));
}

/// The part of a span before `until`.
pub(super) fn cut(span: Span, until: Timestamp) -> Span {
    Span::new(span.start, span.end.min(until).max(span.start))
}

/// Values in order of start, as they become intervals.
#[derive(Default)]
pub(super) struct Joined(Option<(Span, Option<StateValue>)>);

impl Joined {
    /// Add the next value; the interval that it ends.
    pub(super) fn add(&mut self, span: Span, value: Option<StateValue>) -> Option<(Span, StateValue)> {
        match &mut self.0 {
            Some((before, same)) if *same == value && before.end >= span.start => {
                before.end = before.end.max(span.end);
                None
            }
            _ => {
                let (before, known) = self.0.replace((span, value))?;
                let ended = Span::new(before.start, before.end.min(span.start));
                // Nothing is left of one of two that begin together.
                known.filter(|_| !ended.is_empty()).map(|known| (ended, known))
            }
        }
    }

    /// Where the value that was added last begins, its equal neighbours included.
    pub(super) fn start(&self) -> Option<Timestamp> {
        self.0.map(|(span, _)| span.start)
    }

    /// The last interval.
    pub(super) fn last(self) -> Option<(Span, StateValue)> {
        let (span, value) = self.0?;
        Some((span, value?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn join_cuts_overlaps_and_joins_equal_neighbours() {
        let values = [
            (Span::of_ns(0, 10), Some(StateValue::Int(1))),
            (Span::of_ns(10, 20), Some(StateValue::Int(1))),
            (Span::of_ns(15, 30), Some(StateValue::Int(2))),
            (Span::of_ns(30, 30), Some(StateValue::Int(9))),
            (Span::of_ns(30, 40), None),
            (Span::of_ns(35, 50), Some(StateValue::Int(2))),
            (Span::of_ns(60, 70), Some(StateValue::Int(2))),
        ];
        let mut written = Vec::new();
        join(values.into_iter(), Timestamp::MAX, |span, value| written.push((span.start.ns(), span.end.ns(), value)));
        let two = StateValue::Int(2);
        assert_eq!(written, [(0, 15, StateValue::Int(1)), (15, 30, two), (35, 50, two), (60, 70, two)]);
    }
}
