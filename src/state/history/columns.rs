//! The intervals of one node, column by column.
//!
//! In: intervals sorted by attribute, then start. Out: the same in as few bytes as whole-byte columns allow, with
//! random access. Each column (attribute, start, length, value) holds unsigned differences to a base in as many bytes
//! (0 to 8) as its largest needs; a fifth column of one byte tells what the values are, unless all are of one kind.
//! A leaf of kernel states takes 12 to 14 bytes an interval, one where every number needs eight bytes 29.
//!
//! Attributes and starts count from the node's own bounds, so most columns are two to four bytes wide. Lengths are
//! kept rather than ends: they are smaller, and `t - start < length` in unsigned arithmetic is the whole test whether
//! an interval holds at `t`.
//!
//! Finding is by binary search: over the attributes first, then over the starts, for the intervals of one attribute
//! are disjoint and so sorted by start *and* end.

use super::interval::{Interval, Packed, Run, Value};
use crate::base::names::NameId;
use crate::base::time::{Ns, Span};
use crate::state::attributes::AttributeId;
use std::ops::Range;
use std::sync::Arc;

/// Bytes after the last column, so that every element can be read as eight.
const PADDING: usize = 8;

/// Times and attributes between which something lies: `[start, end)`, `low..=high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Smallest start.
    pub start: Ns,
    /// Largest end.
    pub end: Ns,
    /// Smallest attribute.
    pub low: u32,
    /// Largest attribute.
    pub high: u32,
}

impl Bounds {
    /// The bounds of nothing: neutral for [`Bounds::join`].
    pub const NONE: Bounds = Bounds { start: Ns::MAX, end: Ns::MIN, low: u32::MAX, high: 0 };

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

/// What the values of a node are.
const CODE: u8 = 0;
const INT: u8 = 1;
const TEXT: u8 = 2;
const MIXED: u8 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Column {
    offset: u32,
    width: u8,
}

impl Column {
    fn mask(self) -> u64 {
        if self.width == 0 { 0 } else { u64::MAX >> (64 - 8 * u32::from(self.width)) }
    }

    /// Write one element per item, each as eight bytes: the next element, or the next column, overwrites what it has too
    /// many.
    fn write(self, bytes: &mut [u8], items: &[Packed], get: impl Fn(&Packed) -> u64) {
        if self.width == 0 {
            return;
        }
        let places = bytes.get_mut(self.offset as usize..).unwrap_or(&mut []);
        let mut at = 0;
        for item in items {
            if let Some(place) = places.get_mut(at..at + 8) {
                place.copy_from_slice(&get(item).to_le_bytes());
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
    start: Ns,
    attributes: Column,
    starts: Column,
    lengths: Column,
    values: Column,
    /// One of the constants above; with `MIXED` a byte each at `kinds`.
    kind: u8,
    kinds: u32,
}

impl Default for Columns {
    fn default() -> Self {
        Columns {
            bytes: Arc::new([]),
            len: 0,
            low: 0,
            high: 0,
            start: 0,
            attributes: Column::default(),
            starts: Column::default(),
            lengths: Column::default(),
            values: Column::default(),
            kind: CODE,
            kinds: 0,
        }
    }
}

fn width(largest: u64) -> u8 {
    (u64::BITS - largest.leading_zeros()).div_ceil(8) as u8
}

/// The same for columns that every scan reads whole: three bytes take several times as long to unpack as four.
fn scanned(largest: u64) -> u8 {
    if width(largest) == 3 { 4 } else { width(largest) }
}

fn split(value: Value) -> (u8, u64) {
    match value {
        Value::Code(code) => (CODE, u64::from(code)),
        // Small negative numbers stay small: the sign goes to the lowest bit.
        Value::Int(n) => (INT, ((n << 1) ^ (n >> 63)) as u64),
        Value::Text(id) => (TEXT, u64::from(id.raw())),
    }
}

fn value(kind: u8, raw: u64) -> Value {
    match kind {
        CODE => Value::Code(raw as u16),
        INT => Value::Int((raw >> 1) as i64 ^ -((raw & 1) as i64)),
        _ => Value::Text(NameId::from_raw(raw as u32)),
    }
}

fn since(time: Ns, base: Ns) -> u64 {
    (time as u64).wrapping_sub(base as u64)
}

impl Columns {
    /// Encode intervals sorted by attribute and start, with their bounds.
    pub(super) fn encode(items: &[Packed], aside: &[Value]) -> (Bounds, Columns) {
        let mut bounds = Bounds::NONE;
        let (mut longest, mut largest, mut kinds) = (0, 0, 0u8);
        for item in items {
            bounds.start = bounds.start.min(item.start);
            bounds.end = bounds.end.max(item.end);
            bounds.low = bounds.low.min(item.attribute);
            bounds.high = bounds.high.max(item.attribute);
            longest = longest.max(item.length());
            let (kind, raw) = split(item.value(aside));
            largest = largest.max(raw);
            kinds |= 1 << kind;
        }
        if items.is_empty() {
            return (bounds, Columns::default());
        }
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
        let mixed = !kinds.is_power_of_two();
        let kinds_at = size;
        let mut bytes = vec![0; size + if mixed { n } else { 0 } + PADDING];
        attributes.write(&mut bytes, items, |i| u64::from(i.attribute - bounds.low));
        starts.write(&mut bytes, items, |i| since(i.start, bounds.start));
        lengths.write(&mut bytes, items, Packed::length);
        values.write(&mut bytes, items, |i| split(i.value(aside)).1);
        if mixed {
            for (place, item) in bytes.iter_mut().skip(kinds_at).zip(items) {
                *place = split(item.value(aside)).0;
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
            kind: if mixed { MIXED } else { kinds.trailing_zeros() as u8 },
            kinds: kinds_at as u32,
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

    /// Its start.
    pub fn start(&self, at: usize) -> Ns {
        self.start.wrapping_add(self.load(self.starts, at) as i64)
    }

    /// Its end.
    pub fn end(&self, at: usize) -> Ns {
        self.start(at).wrapping_add(self.load(self.lengths, at) as i64)
    }

    /// What the value at a position is.
    fn kind(&self, at: usize) -> u8 {
        if self.kind < MIXED { self.kind } else { self.bytes.get(self.kinds as usize + at).copied().unwrap_or(CODE) }
    }

    /// The interval at a position below `len`.
    pub fn get(&self, at: usize) -> Interval {
        let start = self.start(at);
        let end = start.wrapping_add(self.load(self.lengths, at) as i64);
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

    /// First position in `within` for which `before` is false; `before` holds up to some position and not after.
    fn partition(within: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (within.start, within.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Where an attribute would be if all lay evenly.
    fn guess(&self, attribute: u32) -> usize {
        let (above, all) = (u64::from(attribute.saturating_sub(self.low)), u64::from(self.high - self.low).max(1));
        (above * (self.len() as u64).saturating_sub(1) / all) as usize
    }

    /// Read where the intervals of some attributes probably are, before they are looked for one by one: so memory that is in
    /// no cache is waited for once, not for each of them.
    pub fn touch(&self, attributes: impl Iterator<Item = u32>) {
        let touched = attributes.fold(0, |all, attribute| {
            let at = self.guess(attribute.min(self.high));
            [self.attributes, self.starts, self.lengths, self.values].iter().fold(all, |all, c| all ^ self.load(*c, at))
        });
        std::hint::black_box(touched);
    }

    /// First position from `from` on whose attribute is `attribute` or later. Attributes lie about evenly in a node, so the
    /// search begins where it would be then: it mostly touches one line of memory instead of one for each halving.
    fn first_from(&self, attribute: u32, from: usize) -> usize {
        let before = |at: usize| self.attribute(at) < attribute;
        if attribute > self.high || from >= self.len() {
            return self.len();
        }
        let guess = from.max(self.guess(attribute));
        // Steps away from the guess that double until the answer lies between two of them.
        let mut step = 8;
        let (low, high) = if before(guess) {
            let mut low = guess + 1;
            while low + step < self.len() && before(low + step) {
                low += step + 1;
                step *= 2;
            }
            (low, self.len().min(low + step))
        } else {
            let mut high = guess;
            while high - from > step && !before(high - step) {
                high -= step;
                step *= 2;
            }
            (from.max(high.saturating_sub(step)), high)
        };
        Self::partition(low..high, before)
    }

    /// Positions of the intervals of `attribute`, looked for from position `from` on.
    pub fn of(&self, attribute: u32, from: usize) -> Range<usize> {
        self.between(attribute, attribute, from)
    }

    /// Positions of the intervals of the attributes `low..=high`, looked for from position `from` on.
    pub fn between(&self, low: u32, high: u32, from: usize) -> Range<usize> {
        let start = if low <= self.low { from } else { self.first_from(low, from) };
        if high >= self.high {
            return start..self.len();
        }
        // Few intervals share an attribute where attributes are many: look near before looking far.
        let mut step = 1;
        while start + step < self.len() && self.attribute(start + step) <= high {
            step *= 2;
        }
        let end = Self::partition(start + step / 2..self.len().min(start + step), |at| self.attribute(at) <= high);
        start..end
    }

    /// Call `found` with each attribute of `low..=high` and the time from its first start to its last end.
    pub fn lives(&self, low: u32, high: u32, mut found: impl FnMut(u32, Span)) {
        let within = self.between(low, high, 0);
        let mut first = within.start;
        while first < within.end {
            let attribute = self.attribute(first);
            let mut last = first;
            while last + 1 < within.end && self.attribute(last + 1) == attribute {
                last += 1;
            }
            found(attribute, Span::new(self.start(first), self.end(last)));
            first = last + 1;
        }
    }

    /// In `of`, positions of one attribute: the one whose interval holds at `t`.
    pub fn holding(&self, of: Range<usize>, t: Ns) -> Option<usize> {
        let after = Self::partition(of.clone(), |at| self.start(at) <= t);
        (after > of.start && t < self.end(after - 1)).then(|| after - 1)
    }

    /// In `of`, positions of one attribute: those whose intervals meet `span`.
    pub fn meeting(&self, of: Range<usize>, span: Span) -> Range<usize> {
        let start = Self::partition(of.clone(), |at| self.end(at) <= span.start);
        let end = Self::partition(start..of.end, |at| self.start(at) < span.end);
        start..end
    }

    /// Add to `found` the intervals at the positions `within`, of any attributes, that meet `span`.
    pub fn scan(&self, within: Range<usize>, span: Span, found: &mut Vec<Interval>) {
        // Before the base nothing starts; a span that ends there meets nothing.
        if span.end <= self.start || span.is_empty() {
            return;
        }
        let first = since(span.start.max(self.start), self.start);
        let past = since(span.end, self.start);
        let mut at = within.start;
        if let (Ok(first), true) = (u32::try_from(first), self.starts.width <= 4 && self.lengths.width <= 4) {
            let last = u32::try_from(past - 1).unwrap_or(u32::MAX);
            while at + BLOCK <= within.end {
                self.scan_block(at, first, last, found);
                at += BLOCK;
            }
        }
        for at in at..within.end {
            let start = self.load(self.starts, at);
            let end = start.saturating_add(self.load(self.lengths, at));
            if start < past && end > first {
                found.push(self.get(at));
            }
        }
    }

    /// [`Columns::scan`] of one block whose starts and lengths fit four bytes: what starts at `last` or before and ends
    /// after `first`.
    fn scan_block(&self, at: usize, first: u32, last: u32, found: &mut Vec<Interval>) {
        let (starts, lengths) = (self.block(self.starts, at), self.block(self.lengths, at));
        let mut meets = [0u8; BLOCK];
        for (meets, (start, length)) in meets.iter_mut().zip(starts.iter().zip(&lengths)) {
            *meets = u8::from(*start <= last) & u8::from(first.saturating_sub(*start) < *length);
        }
        if meets == [0; BLOCK] {
            return;
        }
        let attributes = self.block(self.attributes, at);
        let values = if self.values.width <= 4 {
            self.block(self.values, at).map(u64::from)
        } else {
            std::array::from_fn(|i| self.load(self.values, at + i))
        };
        let interval = |i: usize, value: Value| {
            let start = self.start.wrapping_add(starts[i].into());
            let span = Span { start, end: start.wrapping_add(lengths[i].into()) };
            Interval { attribute: AttributeId::from_raw(self.low + attributes[i]), span, value }
        };
        // One loop for each kind, so that none asks which it is.
        match self.kind {
            CODE => each(&meets, |i| found.push(interval(i, value(CODE, values[i])))),
            INT => each(&meets, |i| found.push(interval(i, value(INT, values[i])))),
            TEXT => each(&meets, |i| found.push(interval(i, value(TEXT, values[i])))),
            _ => each(&meets, |i| found.push(interval(i, value(self.kind(at + i), values[i])))),
        }
    }

    /// [`BLOCK`] elements of a column of at most four bytes, from `at` on. Written out by width, so that the compiler makes
    /// vector instructions of it.
    fn block(&self, column: Column, at: usize) -> [u32; BLOCK] {
        let mut block = [0; BLOCK];
        let width = usize::from(column.width);
        let place = column.offset as usize + at * width;
        let bytes = self.bytes.get(place..place + BLOCK * width).unwrap_or(&[]);
        match width {
            1 => block.iter_mut().zip(bytes).for_each(|(to, from)| *to = u32::from(*from)),
            2 => copy(&mut block, bytes, |[a, b]| u32::from(u16::from_le_bytes([a, b]))),
            3 => copy(&mut block, bytes, |[a, b, c]| u32::from_le_bytes([a, b, c, 0])),
            4 => copy(&mut block, bytes, u32::from_le_bytes),
            _ => {}
        }
        block
    }
}

/// Intervals that a scan tests at a time.
const BLOCK: usize = 64;

/// Call `hit` with each position that is one and not zero.
fn each(set: &[u8; BLOCK], mut hit: impl FnMut(usize)) {
    // One word for the whole block: a loop over bytes, or over eight at a time, ends where the processor does not expect it,
    // and that costs more than all its work. The multiplication gathers the lowest bits of eight bytes in the highest byte.
    let gather = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    let mut left = set.as_chunks::<8>().0.iter().rev().fold(0, |word, eight| word << 8 | gather(eight));
    while left != 0 {
        hit(left.trailing_zeros() as usize);
        left &= left - 1;
    }
}

fn copy<const W: usize>(block: &mut [u32; BLOCK], bytes: &[u8], number: impl Fn([u8; W]) -> u32) {
    for (to, from) in block.iter_mut().zip(bytes.as_chunks::<W>().0) {
        *to = number(*from);
    }
}

#[cfg(test)]
mod tests {
    use super::super::interval::Run;
    use super::*;

    fn encode(intervals: &[(u32, Ns, Ns, Value)]) -> (Bounds, Columns) {
        let mut run = Run::default();
        run.extend(intervals.iter().map(|(attribute, start, end, value)| Interval {
            attribute: AttributeId::from_raw(*attribute),
            span: Span::new(*start, *end),
            value: *value,
        }));
        Columns::encode(&run.items, &run.aside)
    }

    #[test]
    fn intervals_come_back_whatever_their_width() {
        let extreme = [
            (0, Ns::MIN, Ns::MAX, Value::Int(i64::MIN)),
            (3, -5, 5, Value::Int(i64::MAX)),
            (3, 5, 6, Value::Text(NameId::from_raw(u32::MAX))),
            (u32::MAX, 0, Ns::MAX, Value::Code(u16::MAX)),
        ];
        for few in 0..=extreme.len() {
            let (_, columns) = encode(&extreme[..few]);
            let back: Vec<_> = columns.iter().map(|i| (i.attribute.raw(), i.span.start, i.span.end, i.value)).collect();
            assert_eq!(back, extreme[..few]);
        }
    }

    #[test]
    fn bounds_are_tight_and_columns_narrow() {
        let (bounds, columns) = encode(&[
            (1000, 1_000_000_000_000, 1_000_000_000_100, Value::Code(1)),
            (1001, 1_000_000_000_200, 1_000_000_000_255, Value::Code(2)),
        ]);
        assert_eq!(bounds, Bounds { start: 1_000_000_000_000, end: 1_000_000_000_255, low: 1000, high: 1001 });
        assert_eq!(columns.bytes.len(), 2 * 4 + PADDING);
    }

    #[test]
    fn searches_find_exactly_what_meets() {
        let state = Value::Code(1);
        let (_, columns) = encode(&[(1, 0, 5, state), (1, 5, 9, state), (1, 12, 20, state), (4, 3, 4, state)]);
        assert_eq!(columns.of(1, 0), 0..3);
        assert_eq!(columns.of(2, 0), 3..3);
        assert_eq!(columns.of(4, 3), 3..4);
        assert_eq!(columns.between(0, 4, 0), 0..4);
        assert_eq!(
            [4, 5, 9, 11, 12, 20].map(|t| columns.holding(0..3, t)),
            [Some(0), Some(1), None, None, Some(2), None]
        );
        assert_eq!(columns.meeting(0..3, Span::new(4, 6)), 0..2);
        assert_eq!(columns.meeting(0..3, Span::new(9, 12)), 2..2);
        let mut found = Vec::new();
        columns.scan(0..4, Span::new(3, 5), &mut found);
        assert_eq!(found, [columns.get(0), columns.get(3)]);
    }
}
