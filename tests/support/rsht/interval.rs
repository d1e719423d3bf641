//! An interval: the value of one attribute during a span; and runs of intervals, as the machines write them.
//!
//! In: intervals in any order. Out: a [`Run`], 24 bytes an interval. The state machine of a chunk closes about three
//! intervals per event, so these bytes decide how much memory an analysis needs at its peak. Therefore a value takes 32
//! bits: 2 for its kind, 30 for a code, a text's id or a small integer; a larger value is in a side list, and the 30
//! bits are its position there.
//!
//! An unknown value has no interval: it is never stored, neither before or after an attribute's life nor in between. A
//! query for an instant without an interval returns unknown.

use std::cmp::Ordering;
use whyslow::parts::base::names::NameId;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::timeline::attributes::AttributeId;
pub use whyslow::parts::timeline::history::StateValue;

/// One attribute, one span, one value. Ordered by attribute, then time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    pub attribute: AttributeId,
    /// When; never empty.
    pub span: Span,
    pub value: StateValue,
}

/// An interval in 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    pub start: Timestamp,
    pub end: Timestamp,
    pub attribute: u32,
    value: u32,
}

const CODE: u32 = 0;
const SMALL: u32 = 1;
const TEXT: u32 = 2;
const ASIDE: u32 = 3;

impl Packed {
    /// Its length in ns; exact even where the difference of two `i64` is not one.
    #[inline]
    pub fn length(&self) -> u64 {
        self.end.abs_diff(self.start)
    }

    /// Its value; `aside` is the side list of its run.
    pub fn value(&self, aside: &[StateValue]) -> StateValue {
        match self.value & 3 {
            CODE => StateValue::Code((self.value >> 2) as u16),
            SMALL => StateValue::Int(i64::from(self.value as i32 >> 2)),
            TEXT => StateValue::Text(NameId::from_raw(self.value >> 2)),
            _ => aside.get((self.value >> 2) as usize).copied().unwrap_or(StateValue::Int(0)),
        }
    }

    /// The total order of time: end, attribute, start, value. The result must not depend on the order of equal
    /// intervals.
    pub fn by_end(&self, other: &Packed, aside: &[StateValue]) -> Ordering {
        (self.end, self.attribute, self.start)
            .cmp(&(other.end, other.attribute, other.start))
            .then_with(|| self.value(aside).cmp(&other.value(aside)))
    }

    /// The total order within one attribute: start, end, value.
    pub fn by_start(&self, other: &Packed, aside: &[StateValue]) -> Ordering {
        (self.start, self.end).cmp(&(other.start, other.end)).then_with(|| self.value(aside).cmp(&other.value(aside)))
    }
}

/// The intervals that the machine of one chunk closed, in any order.
#[derive(Clone, Debug)]
pub struct Run {
    pub(super) items: Vec<Packed>,
    pub(super) aside: Vec<StateValue>,
    /// First start, last end; empty when there are no intervals.
    pub(super) span: Span,
    /// One more than the highest attribute.
    pub(super) attributes: usize,
}

impl Default for Run {
    fn default() -> Self {
        Run { items: Vec::new(), aside: Vec::new(), span: Span::new(Timestamp::MAX, Timestamp::MIN), attributes: 0 }
    }
}

impl Run {
    /// Add an interval. An empty one is not kept.
    pub fn push(&mut self, attribute: AttributeId, span: Span, value: StateValue) {
        if span.is_empty() {
            return;
        }
        let value = match value {
            StateValue::Code(code) => u32::from(code) << 2 | CODE,
            StateValue::Int(n) if (-(1 << 29)..1 << 29).contains(&n) => (n as u32) << 2 | SMALL,
            StateValue::Text(id) if id.raw() < 1 << 30 => id.raw() << 2 | TEXT,
            _ => self.set_aside(value),
        };
        self.span = Span::new(self.span.start.min(span.start), self.span.end.max(span.end));
        self.attributes = self.attributes.max(attribute.index() + 1);
        self.items.push(Packed { start: span.start, end: span.end, attribute: attribute.raw(), value });
    }

    /// Number of intervals.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The intervals in order of addition.
    pub fn iter(&self) -> impl Iterator<Item = Interval> {
        self.items.iter().map(|item| Interval {
            attribute: AttributeId::from_raw(item.attribute),
            span: Span::new(item.start, item.end),
            value: item.value(&self.aside),
        })
    }

    fn set_aside(&mut self, value: StateValue) -> u32 {
        self.aside.push(value);
        ((self.aside.len() - 1) as u32) << 2 | ASIDE
    }
}

impl Extend<Interval> for Run {
    fn extend<T: IntoIterator<Item = Interval>>(&mut self, intervals: T) {
        for i in intervals {
            self.push(i.attribute, i.span, i.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_keeps_every_value() {
        let values = [
            StateValue::Code(0),
            StateValue::Code(u16::MAX),
            StateValue::Int(0),
            StateValue::Int(-1),
            StateValue::Int((1 << 29) - 1),
            StateValue::Int(1 << 29),
            StateValue::Int(-(1 << 29)),
            StateValue::Int(i64::MIN),
            StateValue::Text(NameId::at(7)),
            StateValue::Text(NameId::from_raw(u32::MAX)),
        ];
        let mut run = Run::default();
        for (at, value) in values.iter().enumerate() {
            run.push(AttributeId::at(at), Span::of_ns(0, 1), *value);
        }
        assert_eq!(run.iter().map(|i| i.value).collect::<Vec<_>>(), values);
        assert_eq!(run.aside.len(), 3);
    }

    #[test]
    fn push_drops_empty_spans() {
        let mut run = Run::default();
        run.push(AttributeId::at(0), Span::of_ns(5, 5), StateValue::Code(1));
        run.push(AttributeId::at(0), Span::of_ns(5, 4), StateValue::Code(1));
        assert!(run.is_empty());
    }

    #[test]
    fn length_is_exact_over_all_of_time() {
        let mut run = Run::default();
        run.push(AttributeId::at(0), Span::new(Timestamp::MIN, Timestamp::MAX), StateValue::Code(1));
        assert_eq!(run.items[0].length(), u64::MAX);
    }
}
