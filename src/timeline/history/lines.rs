//! What is asked of the state history, and the values of one attribute that answer.

use super::StateValue;
use crate::base::time::{Span, Timestamp};
use crate::timeline::attributes::AttributeId;

/// The value of an attribute during a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub span: Span,
    /// `None` where it is unknown.
    pub value: Option<StateValue>,
}

/// The values of one attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryLine {
    pub attribute: AttributeId,
    /// In order of time, disjoint.
    pub held: Vec<Held>,
}

/// The time of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Time {
    /// The values at these instants, in any order.
    Instants(Vec<Timestamp>),
    /// All values within a span; the first and last one may reach beyond it.
    Range(Span),
    /// A span cut into this many cells (2^20 at most) of equal width. The value of a cell is the state with most time
    /// in it, of two equal ones the lower; where values are no states, the value at its start.
    Points(Span, usize),
    /// The longest intervals.
    Longest(Longest),
}

/// The intervals that meet a span, longest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Longest {
    pub span: Span,
    /// So many at most.
    pub count: usize,
    /// Of this value alone, as it is shown.
    pub value: Option<String>,
}

/// More points than any screen shows.
const MOST_POINTS: usize = 1 << 20;

/// So many instants of `span` at equal distances, the first at its start; fewer where it has fewer nanoseconds.
pub(super) fn points_of(span: Span, points: usize) -> Vec<Timestamp> {
    let length = u128::from(span.end.abs_diff(span.start));
    if span.is_empty() || points == 0 {
        return Vec::new();
    }
    let points = (points.min(MOST_POINTS) as u128).min(length);
    (0..points).map(|i| span.start.wrapping_add((length * i / points) as u64)).collect()
}
