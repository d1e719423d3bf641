//! Spans that belong to no attribute: system calls, executions. Iterated by start, by end or by duration, up or down,
//! without sorting them all.
//!
//! In: [`StoredSpan`]s in any order. Out: an iterator in any of six orders over those that meet a window; the first
//! results come after a few nodes are read, and memory is that of the open nodes, not of the whole (ALGORITHMS.md 8.8,
//! \[002\] 5.4).
//!
//! Spans are sorted by start once; above them is an implicit tree of extents: the smallest and largest start, end and
//! duration below each node. Iteration holds two heaps, nodes by the best span that may be below them, and spans read
//! but not given yet; as long as a node may hold a span as good as the best one, it is read. Ties are decided by start,
//! end and position, so the order is total, and downwards is exactly upwards reversed.

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

/// The key of the order; ties by start, then end, then item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanOrder {
    /// Start.
    Start,
    /// End.
    End,
    /// Length.
    Duration,
}

/// The end of the order that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The smallest.
    Up,
    /// The largest.
    Down,
}

/// Segments under a leaf, and children under a node.
const FANOUT: usize = 64;

/// Bounds of the spans below a node.
#[derive(Clone, Copy, Debug)]
struct Extent {
    starts: Extremes<Timestamp>,
    ends: Extremes<Timestamp>,
    durations: Extremes<u64>,
}

/// The least and the greatest of some values.
#[derive(Clone, Copy, Debug)]
struct Extremes<T> {
    least: T,
    most: T,
}

impl<T: Copy + Ord> Extremes<T> {
    fn of(value: T) -> Self {
        Extremes { least: value, most: value }
    }

    fn join(self, other: Self) -> Self {
        Extremes { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

impl Extent {
    fn of(segment: &StoredSpan) -> Self {
        let Span { start, end } = segment.span;
        Extent { starts: Extremes::of(start), ends: Extremes::of(end), durations: Extremes::of(duration(segment)) }
    }

    fn join(self, other: Extent) -> Extent {
        Extent {
            starts: self.starts.join(other.starts),
            ends: self.ends.join(other.ends),
            durations: self.durations.join(other.durations),
        }
    }
}

/// The store.
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

    /// Number of segments.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The segments that meet `window`, in order. An empty one meets it if it is inside.
    pub fn iter(&self, order: SpanOrder, direction: Direction, window: Span) -> InOrder<'_> {
        let mut iter =
            InOrder { store: self, order, direction, window, nodes: BinaryHeap::new(), segments: BinaryHeap::new() };
        let top = self.levels.len().saturating_sub(1);
        iter.open(top, 0..self.levels.get(top).map_or(0, Vec::len));
        iter
    }
}

fn duration(segment: &StoredSpan) -> u64 {
    (segment.span.end.ns() as u64).wrapping_sub(segment.span.start.ns() as u64)
}

/// The longest of spans that come one by one, as [`SpanStore::iter`] downwards gives them, each with what it is of.
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

/// Times as unsigned numbers in the same order.
fn rank(time: Timestamp) -> u64 {
    time.ns() as u64 ^ 1 << 63
}

/// A node by the best span that may be below it.
type Node = Reverse<(u64, usize, usize)>;

/// A segment by its place in the order: field, start, end, position.
type Place = Reverse<((u64, u64, u64, u64), usize)>;

/// The segments of a window in order. Dropping it ends the work.
#[derive(Clone, Debug)]
pub struct InOrder<'a> {
    store: &'a SpanStore,
    order: SpanOrder,
    direction: Direction,
    window: Span,
    nodes: BinaryHeap<Node>,
    segments: BinaryHeap<Place>,
}

impl InOrder<'_> {
    /// Downwards is upwards of the complement.
    fn directed(&self, rank: u64) -> u64 {
        if self.direction == Direction::Up { rank } else { !rank }
    }

    /// Positions for the best of a node.
    fn bound(&self, extent: &Extent) -> u64 {
        let (least, most) = match self.order {
            SpanOrder::Start => (rank(extent.starts.least), rank(extent.starts.most)),
            SpanOrder::End => (rank(extent.ends.least), rank(extent.ends.most)),
            SpanOrder::Duration => (extent.durations.least, extent.durations.most),
        };
        self.directed(if self.direction == Direction::Up { least } else { most })
    }

    fn place(&self, at: usize, segment: &StoredSpan) -> Place {
        let (start, end) = (rank(segment.span.start), rank(segment.span.end));
        let field = match self.order {
            SpanOrder::Start => start,
            SpanOrder::End => end,
            SpanOrder::Duration => duration(segment),
        };
        let directed = |rank| self.directed(rank);
        Reverse(((directed(field), directed(start), directed(end), directed(at as u64)), at))
    }

    fn meets(&self, start: Timestamp, end: Timestamp) -> bool {
        start < self.window.end && (end > self.window.start || start >= self.window.start)
    }

    /// Queue the nodes `range` of a level.
    fn open(&mut self, level: usize, range: std::ops::Range<usize>) {
        for at in range {
            let extent = self.store.levels.get(level).and_then(|level| level.get(at));
            if let Some(extent) = extent.filter(|e| self.meets(e.starts.least, e.ends.most)) {
                let bound = self.bound(extent);
                self.nodes.push(Reverse((bound, level, at)));
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
                let place = self.place(at, segment);
                self.segments.push(place);
            }
        }
    }
}

impl Iterator for InOrder<'_> {
    type Item = StoredSpan;

    fn next(&mut self) -> Option<StoredSpan> {
        while let Some(Reverse((bound, level, at))) = self.nodes.peek().copied() {
            // A node may still hold an equal that ties put first.
            if self.segments.peek().is_some_and(|Reverse((place, _))| place.0 < bound) {
                break;
            }
            self.nodes.pop();
            self.read(level, at);
        }
        let Reverse((_, at)) = self.segments.pop()?;
        self.store.all.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The reference: filter, sort, reverse.
    fn sorted(all: &[StoredSpan], order: SpanOrder, direction: Direction, window: Span) -> Vec<StoredSpan> {
        let Span { start: from, end: to } = window;
        let meets = |s: &&StoredSpan| s.span.start < to && (s.span.end > from || s.span.start >= from);
        let mut kept: Vec<StoredSpan> = all.iter().filter(meets).copied().collect();
        kept.sort_by_key(|s| {
            let field = match order {
                SpanOrder::Start => i128::from(s.span.start),
                SpanOrder::End => i128::from(s.span.end),
                SpanOrder::Duration => i128::from(s.span.end) - i128::from(s.span.start),
            };
            (field, *s)
        });
        if direction == Direction::Down {
            kept.reverse();
        }
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
        fn iter_equals_sorting_in_every_order(all in segments(), from in -350..350i64, length in 0..700i64) {
            let store = SpanStore::new(all.clone());
            let from = Timestamp::new(from);
            for window in [Span::new(from, from + length), Span::new(Timestamp::MIN, Timestamp::MAX)] {
                for order in [SpanOrder::Start, SpanOrder::End, SpanOrder::Duration] {
                    for direction in [Direction::Up, Direction::Down] {
                        let found: Vec<_> = store.iter(order, direction, window).collect();
                        prop_assert_eq!(found, sorted(&all, order, direction, window));
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn longest_spans_are_those_of_the_store(all in segments(), count in 0..50_usize) {
            let mut longest = LongestSpans::new(count);
            let all: Vec<StoredSpan> = (0..).zip(all).map(|(item, of)| StoredSpan { item, ..of }).collect();
            all.iter().for_each(|of| longest.add(of.span, of.item));
            let whole = Span::new(Timestamp::MIN, Timestamp::MAX);
            let wanted = sorted(&all, SpanOrder::Duration, Direction::Down, whole).into_iter().take(count);
            let found = longest.longest_first().map(|(span, item)| StoredSpan { span, item });
            prop_assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
        }
    }

    #[test]
    fn iter_finds_the_first_by_start_in_few_nodes() {
        let span = |i: i64| Span::new(Timestamp::new(i), Timestamp::new(i + i % 97));
        let all = (0..100_000).map(|i| StoredSpan { span: span(i), item: i as u32 }).collect();
        let store = SpanStore::new(all);
        let window = Span::new(Timestamp::new(50_000), Timestamp::new(60_000));
        let mut iter = store.iter(SpanOrder::Start, Direction::Up, window);
        let first = (0..100_000).map(span).find(|span| span.end > window.start).map(|span| span.start);
        assert_eq!(iter.next().map(|s| s.span.start), first);
        assert!(iter.segments.len() <= 2 * FANOUT, "{}", iter.segments.len());
    }
}
