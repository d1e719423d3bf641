//! Finds the intervals of a node by attribute and time.
//!
//! Binary search: over the attributes first, then over the starts. The intervals of one attribute are disjoint, so they
//! are sorted by start *and* by end.

use super::Columns;
use std::ops::Range;
use whyslow::parts::base::time::{Span, Timestamp};

impl Columns {
    /// First position in `within` for which `before` is false; `before` is true up to some position and false after it.
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

    /// The position of an attribute if all were distributed evenly.
    fn guess(&self, attribute: u32) -> usize {
        let (above, all) = (u64::from(attribute.saturating_sub(self.low)), u64::from(self.high - self.low).max(1));
        (above * (self.len() as u64).saturating_sub(1) / all) as usize
    }

    /// Read the probable positions of some attributes before they are searched one by one, so that cache misses
    /// overlap.
    pub fn touch(&self, attributes: impl Iterator<Item = u32>) {
        let touched = attributes.fold(0, |all, attribute| {
            let at = self.guess(attribute.min(self.high));
            [self.attributes, self.starts, self.lengths, self.values].iter().fold(all, |all, c| all ^ self.load(*c, at))
        });
        std::hint::black_box(touched);
    }

    /// First position from `from` on whose attribute is `attribute` or later. Attributes are distributed about evenly
    /// over a node, so the search begins at the position by even distribution: it mostly reads one cache line instead
    /// of one for each halving.
    fn first_from(&self, attribute: u32, from: usize) -> usize {
        let before = |at: usize| self.attribute(at) < attribute;
        if attribute > self.high || from >= self.len() {
            return self.len();
        }
        let guess = from.max(self.guess(attribute));
        // Steps away from the guess that double until the position is between two of them.
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

    /// Positions of the intervals of `attribute`, searched from position `from` on.
    pub fn of(&self, attribute: u32, from: usize) -> Range<usize> {
        self.between(attribute, attribute, from)
    }

    /// Positions of the intervals of the attributes `low..=high`, searched from position `from` on.
    pub fn between(&self, low: u32, high: u32, from: usize) -> Range<usize> {
        let start = if low <= self.low { from } else { self.first_from(low, from) };
        if high >= self.high {
            return start..self.len();
        }
        // With many attributes each has few intervals: search nearby first.
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

    /// Among `of`, positions of one attribute: the one whose interval contains `t`.
    pub fn holding(&self, of: Range<usize>, t: Timestamp) -> Option<usize> {
        let after = Self::partition(of.clone(), |at| self.start(at) <= t);
        (after > of.start && t < self.end(after - 1)).then(|| after - 1)
    }

    /// Among `of`, positions of one attribute: those whose intervals meet `span`.
    pub fn meeting(&self, of: Range<usize>, span: Span) -> Range<usize> {
        let start = Self::partition(of.clone(), |at| self.end(at) <= span.start);
        let end = Self::partition(start..of.end, |at| self.start(at) < span.end);
        start..end
    }
}
