//! The intervals of one node, column by column.
//!
//! In: intervals sorted by attribute, then start. Out: the same intervals in the smallest columns of whole bytes, with
//! random access. Each column (attribute, start, length, value) holds unsigned differences to a base in as many bytes
//! (0 to 8) as its largest needs; a fifth column of one byte holds the kinds of the values, unless all are of one kind.
//! A leaf of kernel states takes 12 to 14 bytes per interval; a leaf whose numbers all need eight bytes takes 29.
//!
//! Attributes and starts count from the node's own bounds, so most columns are two to four bytes wide. Lengths are
//! kept rather than ends: they are smaller, and `t - start < length` in unsigned arithmetic is true exactly when the
//! interval contains `t`.
//!
//! `find` searches by attribute and time, `scan` tests a range of positions against a span.

mod find;
mod scan;

use super::interval::{Interval, Packed, Run, StateValue};
use std::sync::Arc;
use whyslow::parts::base::names::NameId;
use whyslow::parts::base::time::{Span, Timestamp};
use whyslow::parts::timeline::attributes::AttributeId;

/// Bytes after the last column, so that every element can be read as eight.
const PADDING: usize = 8;

/// The times and attributes of some intervals: `[start, end)`, `low..=high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Smallest start.
    pub start: Timestamp,
    /// Largest end.
    pub end: Timestamp,
    /// Smallest attribute.
    pub low: u32,
    /// Largest attribute.
    pub high: u32,
}

impl Bounds {
    /// The bounds of no interval: neutral for [`Bounds::join`].
    pub const NONE: Bounds = Bounds { start: Timestamp::MAX, end: Timestamp::MIN, low: u32::MAX, high: 0 };

    /// The bounds of both.
    pub fn join(self, other: Bounds) -> Bounds {
        Bounds {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum ValueKind {
    Code,
    Int,
    Text,
}

impl ValueKind {
    /// The kind by its byte.
    fn of(byte: u8) -> ValueKind {
        match byte {
            1 => ValueKind::Int,
            2 => ValueKind::Text,
            _ => ValueKind::Code,
        }
    }
}

/// The kinds of the values of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKinds {
    /// All of one kind.
    All(ValueKind),
    /// One byte per value, from this offset on.
    Each(u32),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Column {
    offset: u32,
    width: u8,
}

impl Column {
    fn mask(self) -> u64 {
        if self.width == 0 { 0 } else { u64::MAX >> (64 - 8 * u32::from(self.width)) }
    }

    /// Write one element per item, each as eight bytes: the next element, or the next column, overwrites the bytes
    /// beyond its width.
    fn write(self, bytes: &mut [u8], items: &[Packed], get: impl Fn(&Packed) -> u64) {
        if self.width == 0 {
            return;
        }
        let places = bytes.get_mut(self.offset as usize..).unwrap_or(&mut []);
        let mut at = 0;
        for item in items {
            // An array, and not `copy_from_slice`, which the compiler leaves as a call for each element.
            if let Some(place) = places.get_mut(at..).and_then(|places| places.first_chunk_mut()) {
                *place = get(item).to_le_bytes();
            }
            at += usize::from(self.width);
        }
    }
}

/// The intervals of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    bytes: Arc<[u8]>,
    len: u32,
    /// First and last attribute, first start: bases of the columns.
    low: u32,
    high: u32,
    start: Timestamp,
    attributes: Column,
    starts: Column,
    lengths: Column,
    values: Column,
    kinds: ValueKinds,
}

impl Default for Columns {
    fn default() -> Self {
        Columns {
            bytes: Arc::new([]),
            len: 0,
            low: 0,
            high: 0,
            start: Timestamp::ZERO,
            attributes: Column::default(),
            starts: Column::default(),
            lengths: Column::default(),
            values: Column::default(),
            kinds: ValueKinds::All(ValueKind::Code),
        }
    }
}

fn width(largest: u64) -> u8 {
    (u64::BITS - largest.leading_zeros()).div_ceil(8) as u8
}

/// The width of a column that every scan reads: three bytes take several times as long to unpack as four.
fn scanned(largest: u64) -> u8 {
    if width(largest) == 3 { 4 } else { width(largest) }
}

/// The kind of a value, and its number in the column.
fn split(value: StateValue) -> (ValueKind, u64) {
    match value {
        StateValue::Code(code) => (ValueKind::Code, u64::from(code)),
        // Zigzag: small negative numbers stay small, because the sign is in the lowest bit.
        StateValue::Int(n) => (ValueKind::Int, ((n << 1) ^ (n >> 63)) as u64),
        StateValue::Text(id) => (ValueKind::Text, u64::from(id.raw())),
    }
}

/// The value of a kind and a number.
fn value(kind: ValueKind, raw: u64) -> StateValue {
    match kind {
        ValueKind::Code => StateValue::Code(raw as u16),
        ValueKind::Int => StateValue::Int((raw >> 1) as i64 ^ -((raw & 1) as i64)),
        ValueKind::Text => StateValue::Text(NameId::from_raw(raw as u32)),
    }
}

fn since(time: Timestamp, base: Timestamp) -> u64 {
    time.abs_diff(base)
}

impl Columns {
    /// Encode intervals sorted by attribute and start, with their bounds.
    pub(super) fn encode(items: &[Packed], aside: &[StateValue]) -> (Bounds, Columns) {
        let mut bounds = Bounds::NONE;
        let (mut longest, mut largest) = (0, 0);
        let (mut first_kind, mut is_mixed) = (None, false);
        for item in items {
            bounds.start = bounds.start.min(item.start);
            bounds.end = bounds.end.max(item.end);
            bounds.low = bounds.low.min(item.attribute);
            bounds.high = bounds.high.max(item.attribute);
            longest = longest.max(item.length());
            let (kind, raw) = split(item.value(aside));
            largest = largest.max(raw);
            is_mixed |= *first_kind.get_or_insert(kind) != kind;
        }
        let Some(kind) = first_kind else { return (bounds, Columns::default()) };
        let n = items.len();
        let latest = items.iter().fold(0, |latest, i| since(i.start, bounds.start).max(latest));
        let mut size = 0;
        let mut column = |width: u8| {
            let column = Column { offset: size as u32, width };
            size += n * usize::from(width);
            column
        };
        let attributes = column(width(u64::from(bounds.high - bounds.low)));
        let starts = column(scanned(latest));
        let lengths = column(scanned(longest));
        let values = column(width(largest));
        let kinds_at = size;
        let mut bytes = vec![0; size + if is_mixed { n } else { 0 } + PADDING];
        attributes.write(&mut bytes, items, |i| u64::from(i.attribute - bounds.low));
        starts.write(&mut bytes, items, |i| since(i.start, bounds.start));
        lengths.write(&mut bytes, items, Packed::length);
        values.write(&mut bytes, items, |i| split(i.value(aside)).1);
        if is_mixed {
            for (place, item) in bytes.iter_mut().skip(kinds_at).zip(items) {
                *place = split(item.value(aside)).0 as u8;
            }
        }
        let columns = Columns {
            bytes: bytes.into(),
            len: n as u32,
            low: bounds.low,
            high: bounds.high,
            start: bounds.start,
            attributes,
            starts,
            lengths,
            values,
            kinds: if is_mixed { ValueKinds::Each(kinds_at as u32) } else { ValueKinds::All(kind) },
        };
        (bounds, columns)
    }

    /// Encode intervals sorted by attribute and start, with their bounds.
    pub fn of_sorted(intervals: &[Interval]) -> (Bounds, Columns) {
        let mut run = Run::default();
        run.extend(intervals.iter().copied());
        Columns::encode(&run.items, &run.aside)
    }

    /// Number of intervals.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory, itself included.
    pub fn size(&self) -> usize {
        size_of::<Columns>() + self.bytes.len()
    }

    fn load(&self, column: Column, at: usize) -> u64 {
        let place = column.offset as usize + at * usize::from(column.width);
        match self.bytes.get(place..place + 8) {
            Some(&[a, b, c, d, e, f, g, h]) => u64::from_le_bytes([a, b, c, d, e, f, g, h]) & column.mask(),
            _ => 0,
        }
    }

    /// The attribute of the interval at a position.
    pub fn attribute(&self, at: usize) -> u32 {
        self.low + self.load(self.attributes, at) as u32
    }

    pub fn start(&self, at: usize) -> Timestamp {
        self.start.wrapping_add(self.load(self.starts, at))
    }

    pub fn end(&self, at: usize) -> Timestamp {
        self.start(at).wrapping_add(self.load(self.lengths, at))
    }

    /// The kind of the value at a position.
    fn kind(&self, at: usize) -> ValueKind {
        match self.kinds {
            ValueKinds::All(kind) => kind,
            ValueKinds::Each(offset) => ValueKind::of(self.bytes.get(offset as usize + at).copied().unwrap_or(0)),
        }
    }

    /// The interval at a position below `len`.
    pub fn get(&self, at: usize) -> Interval {
        let start = self.start(at);
        let end = start.wrapping_add(self.load(self.lengths, at));
        Interval {
            attribute: AttributeId::from_raw(self.attribute(at)),
            span: Span { start, end },
            value: value(self.kind(at), self.load(self.values, at)),
        }
    }

    /// All intervals, by attribute and start.
    pub fn iter(&self) -> impl Iterator<Item = Interval> {
        (0..self.len()).map(|at| self.get(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(intervals: &[(u32, i64, i64, StateValue)]) -> (Bounds, Columns) {
        let mut run = Run::default();
        run.extend(intervals.iter().map(|(attribute, start, end, value)| Interval {
            attribute: AttributeId::from_raw(*attribute),
            span: Span::of_ns(*start, *end),
            value: *value,
        }));
        Columns::encode(&run.items, &run.aside)
    }

    #[test]
    fn encode_keeps_intervals_of_any_width() {
        let extreme = [
            (0, i64::MIN, i64::MAX, StateValue::Int(i64::MIN)),
            (3, -5, 5, StateValue::Int(i64::MAX)),
            (3, 5, 6, StateValue::Text(NameId::from_raw(u32::MAX))),
            (u32::MAX, 0, i64::MAX, StateValue::Code(u16::MAX)),
        ];
        for few in 0..=extreme.len() {
            let (_, columns) = encode(&extreme[..few]);
            let back: Vec<_> =
                columns.iter().map(|i| (i.attribute.raw(), i.span.start.ns(), i.span.end.ns(), i.value)).collect();
            assert_eq!(back, extreme[..few]);
        }
    }

    #[test]
    fn encode_gives_tight_bounds_and_narrow_columns() {
        let (bounds, columns) = encode(&[
            (1000, 1_000_000_000_000, 1_000_000_000_100, StateValue::Code(1)),
            (1001, 1_000_000_000_200, 1_000_000_000_255, StateValue::Code(2)),
        ]);
        let (start, end) = (Timestamp::new(1_000_000_000_000), Timestamp::new(1_000_000_000_255));
        assert_eq!(bounds, Bounds { start, end, low: 1000, high: 1001 });
        assert_eq!(columns.bytes.len(), 2 * 4 + PADDING);
    }

    #[test]
    fn searches_find_exactly_the_intervals_that_meet() {
        let state = StateValue::Code(1);
        let (_, columns) = encode(&[(1, 0, 5, state), (1, 5, 9, state), (1, 12, 20, state), (4, 3, 4, state)]);
        assert_eq!(columns.of(1, 0), 0..3);
        assert_eq!(columns.of(2, 0), 3..3);
        assert_eq!(columns.of(4, 3), 3..4);
        assert_eq!(columns.between(0, 4, 0), 0..4);
        assert_eq!(
            [4, 5, 9, 11, 12, 20].map(|t| columns.holding(0..3, Timestamp::new(t))),
            [Some(0), Some(1), None, None, Some(2), None]
        );
        assert_eq!(columns.meeting(0..3, Span::of_ns(4, 6)), 0..2);
        assert_eq!(columns.meeting(0..3, Span::of_ns(9, 12)), 2..2);
        let mut found = Vec::new();
        columns.scan(0..4, Span::of_ns(3, 5), &mut found);
        assert_eq!(found, [columns.get(0), columns.get(3)]);
    }
}
