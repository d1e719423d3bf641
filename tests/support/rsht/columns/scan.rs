//! Finds the intervals among some positions that meet a span, in blocks that compile to vector instructions.

use super::super::interval::{Interval, StateValue};
use super::{Column, Columns, ValueKind, ValueKinds, since, value};
use std::ops::Range;
use whyslow::parts::base::time::Span;
use whyslow::parts::timeline::attributes::AttributeId;

/// Intervals that a scan tests at a time.
const BLOCK: usize = 64;

impl Columns {
    /// Add to `found` the intervals at the positions `within`, of any attributes, that meet `span`.
    pub fn scan(&self, within: Range<usize>, span: Span, found: &mut Vec<Interval>) {
        // No interval starts before the base, so a span that ends there meets none.
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

    /// [`Columns::scan`] of one block whose starts and lengths have four bytes at most: the intervals that start at
    /// `last` or before and end after `first`.
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
        let interval = |i: usize, value: StateValue| {
            let start = self.start.wrapping_add(starts[i].into());
            let span = Span { start, end: start.wrapping_add(lengths[i].into()) };
            Interval { attribute: AttributeId::from_raw(self.low + attributes[i]), span, value }
        };
        // One loop for each kind, so that no loop tests the kind.
        match self.kinds {
            ValueKinds::All(ValueKind::Code) => {
                for_each_set(&meets, |i| found.push(interval(i, value(ValueKind::Code, values[i]))));
            }
            ValueKinds::All(ValueKind::Int) => {
                for_each_set(&meets, |i| found.push(interval(i, value(ValueKind::Int, values[i]))));
            }
            ValueKinds::All(ValueKind::Text) => {
                for_each_set(&meets, |i| found.push(interval(i, value(ValueKind::Text, values[i]))));
            }
            ValueKinds::Each(_) => {
                for_each_set(&meets, |i| found.push(interval(i, value(self.kind(at + i), values[i]))));
            }
        }
    }

    /// [`BLOCK`] elements of a column of at most four bytes, from `at` on. Written out by width, so that the compiler
    /// makes vector instructions of it.
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

/// Call `hit` with each position that is one and not zero.
fn for_each_set(set: &[u8; BLOCK], mut hit: impl FnMut(usize)) {
    // One word for the whole block: a loop over bytes, or over eight at a time, ends with a branch misprediction that
    // costs more than its work. The multiplication gathers the lowest bits of eight bytes in the highest byte.
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
