//! Spans that belong to no attribute: system calls, executions. The longest of a window come first, without sorting
//! all.
//!
//! In: [`StoredSpan`]s in any order. Out: an iterator over those that meet a window, from the longest to the shortest;
//! the first results come after a few nodes are read, and memory is that of the open nodes, not of the whole
//! (ALGORITHMS.md 8.8, \[002\] 5.4).
//!
//! Spans are sorted by start once; above them is an implicit tree of extents: the smallest start, the largest end and
//! the greatest duration below each node. Iteration holds two heaps, nodes by the longest span that may be below them,
//! and spans read but not given yet; as long as a node may hold a span as long as the longest one, it is read. Ties are
//! decided by start, end and position, the latest first, so the order is total.

use crate::base::time::{Span, Timestamp};
use foldhash::HashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A span and what it is of: a position in the caller's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredSpan {
    /// From, to; may be empty.
    pub span: Span,
    /// Position in the caller's table.
    pub item: u32,
}

/// Segments under a leaf, and children under a node.
const FANOUT: usize = 64;

/// Bounds of the spans below a node.
#[derive(Clone, Copy, Debug)]
struct Extent {
    start: Timestamp,
    end: Timestamp,
    longest: u64,
}

impl Extent {
    fn of(segment: &StoredSpan) -> Self {
        Extent { start: segment.span.start, end: segment.span.end, longest: duration(segment) }
    }

    fn join(self, other: Extent) -> Extent {
        Extent {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
            longest: self.longest.max(other.longest),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct SpanStore {
    /// By start, end, item.
    all: Vec<StoredSpan>,
    /// Extents, the leaves' first; the last level has one.
    levels: Vec<Vec<Extent>>,
}

impl SpanStore {
    /// A store of `all`. A segment that ends before it starts counts as empty.
    pub fn new(mut all: Vec<StoredSpan>) -> Self {
        for segment in &mut all {
            segment.span.end = segment.span.end.max(segment.span.start);
        }
        all.sort_unstable();
        let join = |group: &[Extent]| group.iter().copied().reduce(Extent::join);
        let leaf = |group: &[StoredSpan]| group.iter().map(Extent::of).reduce(Extent::join);
        let mut levels: Vec<Vec<Extent>> = vec![all.chunks(FANOUT).filter_map(leaf).collect()];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            levels.push(below.chunks(FANOUT).filter_map(join).collect());
        }
        SpanStore { all, levels }
    }

    /// The segments that meet `window`, the longest first. An empty one meets it if it is inside.
    pub fn longest(&self, window: Span) -> LongestFirst<'_> {
        let mut iter = LongestFirst { store: self, window, nodes: BinaryHeap::new(), segments: BinaryHeap::new() };
        let top = self.levels.len().saturating_sub(1);
        iter.open(top, 0..self.levels.get(top).map_or(0, Vec::len));
        iter
    }
}

fn duration(segment: &StoredSpan) -> u64 {
    segment.span.end.abs_diff(segment.span.start)
}

/// The longest of spans that come one by one, as [`SpanStore::longest`] gives them, each with what it is of.
/// Memory is that of the answer; a span costs a comparison, or a change of the heap of those that stay.
#[derive(Debug)]
pub struct LongestSpans<T> {
    most: usize,
    /// Duration, start, end, position.
    kept: BinaryHeap<Reverse<(u64, Timestamp, Timestamp, u64)>>,
    /// By position.
    values: HashMap<u64, T>,
    added: u64,
}

impl<T> LongestSpans<T> {
    /// So many of them at most.
    pub fn new(most: usize) -> LongestSpans<T> {
        LongestSpans { most, kept: BinaryHeap::new(), values: HashMap::default(), added: 0 }
    }

    /// Add a span.
    pub fn add(&mut self, span: Span, value: T) {
        let key = Reverse((span.end.abs_diff(span.start), span.start, span.end, self.added));
        self.added += 1;
        if self.kept.len() >= self.most {
            // The shortest of them is at the top.
            if self.kept.peek().is_none_or(|shortest| key >= *shortest) {
                return;
            }
            self.kept.pop().map(|Reverse((.., at))| self.values.remove(&at));
        }
        self.values.insert(key.0.3, value);
        self.kept.push(key);
    }

    /// Those that stay.
    pub fn longest_first(mut self) -> impl Iterator<Item = (Span, T)> {
        let sorted = self.kept.into_sorted_vec().into_iter();
        sorted.filter_map(move |Reverse((_, start, end, at))| Some((Span::new(start, end), self.values.remove(&at)?)))
    }
}

/// A node by the longest span that may be below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    longest: u64,
    level: usize,
    at: usize,
}

/// A segment by its place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    duration: u64,
    segment: StoredSpan,
    at: usize,
}

/// The segments of a window, the longest first. Dropping it ends the work.
#[derive(Clone, Debug)]
pub struct LongestFirst<'a> {
    store: &'a SpanStore,
    window: Span,
    nodes: BinaryHeap<Node>,
    segments: BinaryHeap<Place>,
}

impl LongestFirst<'_> {
    fn meets(&self, start: Timestamp, end: Timestamp) -> bool {
        start < self.window.end && (end > self.window.start || start >= self.window.start)
    }

    /// Queue the nodes `range` of a level.
    fn open(&mut self, level: usize, range: std::ops::Range<usize>) {
        for at in range {
            let extent = self.store.levels.get(level).and_then(|level| level.get(at));
            if let Some(extent) = extent.filter(|e| self.meets(e.start, e.end)) {
                self.nodes.push(Node { longest: extent.longest, level, at });
            }
        }
    }

    /// Read a node: queue its children.
    fn read(&mut self, level: usize, at: usize) {
        let below = at * FANOUT..(at + 1) * FANOUT;
        if let Some(children) = level.checked_sub(1) {
            self.open(children, below);
            return;
        }
        for (at, segment) in self.store.all.iter().enumerate().take(below.end).skip(below.start) {
            if self.meets(segment.span.start, segment.span.end) {
                self.segments.push(Place { duration: duration(segment), segment: *segment, at });
            }
        }
    }
}

impl Iterator for LongestFirst<'_> {
    type Item = StoredSpan;

    fn next(&mut self) -> Option<StoredSpan> {
        while let Some(Node { longest, level, at }) = self.nodes.peek().copied() {
            // A node may still hold an equal that ties put first.
            if self.segments.peek().is_some_and(|place| place.duration > longest) {
                break;
            }
            self.nodes.pop();
            self.read(level, at);
        }
        self.segments.pop().map(|place| place.segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The reference: filter, sort, reverse.
    fn longest(all: &[StoredSpan], window: Span) -> Vec<StoredSpan> {
        let Span { start: from, end: to } = window;
        let meets = |s: &&StoredSpan| s.span.start < to && (s.span.end > from || s.span.start >= from);
        let mut kept: Vec<StoredSpan> = all.iter().filter(meets).copied().collect();
        kept.sort_by_key(|s| (i128::from(s.span.end) - i128::from(s.span.start), *s));
        kept.reverse();
        kept
    }

    fn segments() -> impl Strategy<Value = Vec<StoredSpan>> {
        let start = prop_oneof![
            20 => (-300..300i64).prop_map(Timestamp::new),
            1 => Just(Timestamp::MIN),
            1 => Just(Timestamp::MAX - 50),
        ];
        let length = prop_oneof![3 => 0..9i64, 1 => 0..500i64];
        let segment = (start, length, 0..50u32).prop_map(|(start, length, item)| StoredSpan {
            span: Span::new(start, start.saturating_add(length)),
            item,
        });
        prop::collection::vec(segment, 0..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn longest_equals_sorting(all in segments(), from in -350..350i64, length in 0..700i64) {
            let store = SpanStore::new(all.clone());
            let from = Timestamp::new(from);
            for window in [Span::new(from, from + length), Span::new(Timestamp::MIN, Timestamp::MAX)] {
                prop_assert_eq!(store.longest(window).collect::<Vec<_>>(), longest(&all, window));
            }
        }
    }

    proptest! {
        #[test]
        fn longest_spans_are_those_of_the_store(all in segments(), count in 0..50_usize) {
            let mut kept = LongestSpans::new(count);
            let all: Vec<StoredSpan> = (0..).zip(all).map(|(item, of)| StoredSpan { item, ..of }).collect();
            all.iter().for_each(|of| kept.add(of.span, of.item));
            let whole = Span::new(Timestamp::MIN, Timestamp::MAX);
            let wanted = longest(&all, whole).into_iter().take(count);
            let found = kept.longest_first().map(|(span, item)| StoredSpan { span, item });
            prop_assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
        }
    }

    #[test]
    fn longest_finds_the_first_in_few_nodes() {
        let span = |i: i64| Span::new(Timestamp::new(i), Timestamp::new(i + i * 7_919 % 100_003));
        let all: Vec<StoredSpan> = (0..100_000).map(|i| StoredSpan { span: span(i), item: i as u32 }).collect();
        let store = SpanStore::new(all.clone());
        let window = Span::new(Timestamp::new(50_000), Timestamp::new(60_000));
        let mut iter = store.longest(window);
        assert_eq!(iter.next(), longest(&all, window).first().copied());
        assert!(iter.segments.len() <= 2 * FANOUT, "{}", iter.segments.len());
    }
}
